//! Binary trees of bisected cells, with the edges and faces of all.
//!
//! A bisected cell keeps its entities, so that the bisection can be undone. Periodic sides are identified, and a cell
//! may touch itself. Edges and faces therefore have their own numbers instead of being identified by vertices, and a
//! cell stores the direction of each edge. Each edge has a list of the leaves around it, and, once split, one of the
//! cells bisected at it. A bisection changes a bounded number of entries.

use super::origins::{ChildOrigins, parts};
use super::path::CellPath;
use super::pool::{NONE, Pool};
use super::rule::{SimplexKind, local, orders, root};
use crate::mesh::{Cell, Mesh};

/// A cell, bisected or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeNode {
    pub(super) parent: u32,
    /// The first child, followed by the second; `NONE` for a leaf.
    pub(super) children: u32,
    pub(super) kind: SimplexKind,
    pub(super) depth: u8,
    /// Edges that run against their own direction, one bit each.
    pub(super) reversed: u8,
}

/// An edge. List entries are places: cell · edges per cell + local edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeEdge {
    /// The midpoint and the two halves, in the edge's direction, if it is split.
    pub(super) middle: u32,
    pub(super) halves: u32,
    /// The head of the list of leaves around it.
    around: u32,
    /// The head of the list of cells bisected at it.
    pub(super) divided: u32,
}

impl TreeEdge {
    pub(super) const NEW: Self = Self { middle: NONE, halves: NONE, around: NONE, divided: NONE };

    /// Returns the head of a list.
    fn head(&mut self, list: EdgeList) -> &mut u32 {
        match list {
            EdgeList::Incident => &mut self.around,
            EdgeList::Divided => &mut self.divided,
        }
    }
}

/// The lists of an edge.
#[derive(Clone, Copy)]
pub(super) enum EdgeList {
    Incident,
    Divided,
}

/// A face of a tetrahedron. If it is split: its halves, in the direction of its marked edge, and the edge between them,
/// from the midpoint of the marked edge.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeFace {
    pub(super) halves: u32,
    pub(super) spoke: u32,
}

impl TreeFace {
    pub(super) const NEW: Self = Self { halves: NONE, spoke: NONE };
}

/// Neighbours in a doubly linked list.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListLink {
    before: u32,
    after: u32,
}

impl ListLink {
    pub(super) const ALONE: Self = Self { before: NONE, after: NONE };
}

#[derive(Clone, Debug)]
pub(super) struct BisectionTree {
    pub(super) cell: Cell,
    pub(super) parts: Vec<ChildOrigins>,
    /// The local number of edge 01.
    pub(super) first_edge: usize,
    pub(super) n_roots: usize,
    /// The vertex permutation of each root.
    orders: Vec<u8>,
    pub(super) nodes: Pool<TreeNode>,
    pub(super) vertices: Pool<()>,
    pub(super) edges: Pool<TreeEdge>,
    pub(super) faces: Pool<TreeFace>,
    /// `[node][local]`.
    pub(super) vertices_of: Vec<u32>,
    pub(super) edges_of: Vec<u32>,
    pub(super) faces_of: Vec<u32>,
    pub(super) links: Vec<ListLink>,
    pub(super) n_leaves: usize,
    /// The number of split edges and faces.
    pub(super) halved: [usize; 2],
}

impl BisectionTree {
    /// Creates the trees of a mesh of simplices.
    pub(super) fn new(mesh: &Mesh) -> Self {
        let (cell, topology) = (mesh.cell(), mesh.connectivity());
        let sizes = sizes(mesh);
        let orders_of_cell = orders(cell);
        let n_roots = mesh.n_cells();
        let mut tree = Self {
            cell,
            parts: parts(cell),
            first_edge: local(cell, &[0, 1]),
            n_roots,
            orders: Vec::with_capacity(n_roots),
            nodes: Pool::new(Vec::with_capacity(n_roots)),
            vertices: Pool::new(vec![(); topology.n_vertices()]),
            edges: Pool::new(vec![TreeEdge::NEW; topology.edges().len()]),
            faces: Pool::new(vec![TreeFace::NEW; topology.faces().len()]),
            vertices_of: Vec::new(),
            edges_of: Vec::new(),
            faces_of: Vec::new(),
            links: Vec::new(),
            n_leaves: n_roots,
            halved: [0; 2],
        };
        for number in 0..n_roots {
            let edges = topology.edges().of_cell(number);
            let size = |a: usize, b: usize| sizes[edges[local(cell, &[a, b])] as usize];
            let (which, kind) = root(cell, size);
            let order = &orders_of_cell[which];
            let mut reversed = 0;
            for (own, edge) in cell.entities(1).iter().enumerate() {
                let [a, b] = [order[edge[0]], order[edge[1]]];
                let there = local(cell, &[a, b]);
                tree.edges_of.push(edges[there]);
                reversed |= u8::from(topology.edge_reversed(number, there) != (a > b)) << own;
            }
            let vertices = topology.vertices(number);
            tree.vertices_of.extend(order.iter().map(|&vertex| vertices[vertex]));
            if cell.dim() == 3 {
                let faces = topology.faces().of_cell(number);
                tree.faces_of.extend(order.iter().map(|&opposite| faces[opposite]));
            }
            tree.orders.push(which as u8);
            tree.links.resize(tree.edges_of.len(), ListLink::ALONE);
            let node = TreeNode { parent: NONE, children: NONE, kind, depth: 0, reversed };
            let node = tree.nodes.one(node);
            tree.enter(node);
        }
        tree
    }

    /// Returns the vertices of a cell.
    pub(super) fn vertices(&self, node: u32) -> &[u32] {
        let n = self.cell.vertex_count();
        &self.vertices_of[node as usize * n..][..n]
    }

    /// Returns the refinement edge of a cell.
    pub(super) fn divided_edge(&self, node: u32) -> u32 {
        self.edges_of[self.place(node, self.first_edge)]
    }

    pub(super) fn is_leaf(&self, node: u32) -> bool {
        self.nodes[node].children == NONE
    }

    pub(super) fn parent(&self, node: u32) -> Option<u32> {
        Some(self.nodes[node].parent).filter(|&parent| parent != NONE)
    }

    /// Vertices, edges, faces and cells of the leaves, with periodic ones counted once; in two dimensions cells are
    /// third.
    pub(super) fn entities(&self) -> [u64; 4] {
        let [edges, faces] = self.halved;
        let mut all = [self.vertices.len(), self.edges.len() - edges, self.faces.len() - faces, 0];
        all[self.cell.dim()] = self.n_leaves;
        all.map(|count| count as u64)
    }

    /// Returns the place of a cell's edge in the tables.
    fn place(&self, node: u32, edge: usize) -> usize {
        node as usize * self.cell.entities(1).len() + edge
    }

    /// Returns the first leaf around an edge.
    pub(super) fn first_around(&self, edge: u32) -> Option<u32> {
        self.node_at(self.edges[edge].around)
    }

    fn node_at(&self, place: u32) -> Option<u32> {
        (place != NONE).then(|| place / self.cell.entities(1).len() as u32)
    }

    /// Returns the cells bisected at an edge.
    pub(super) fn divided(&self, edge: u32) -> impl Iterator<Item = u32> {
        let mut place = self.edges[edge].divided;
        std::iter::from_fn(move || {
            let node = self.node_at(place)?;
            place = self.links[place as usize].after;
            Some(node)
        })
    }

    /// Returns the initial cell that contains a cell, and the path to it.
    pub(super) fn path(&self, mut node: u32) -> (usize, CellPath) {
        let mut bits = (0u128, 0);
        while let Some(parent) = self.parent(node) {
            bits = (bits.0 | u128::from(node - self.nodes[parent].children) << bits.1, bits.1 + 1);
            node = parent;
        }
        let root = CellPath::new(usize::from(self.orders[node as usize]), self.nodes[node].kind);
        let down = (0..bits.1).rev();
        (node as usize, down.fold(root, |path, bit| path.child((bits.0 >> bit) as usize & 1)))
    }

    /// Calls `tell` for all leaves below a cell, in traversal order.
    pub(super) fn walk(&self, node: u32, mut tell: impl FnMut(u32)) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            match self.nodes[node].children {
                NONE => tell(node),
                first => open.extend([first + 1, first]),
            }
        }
    }

    /// Returns an estimate of the memory in bytes.
    pub(super) fn bytes(&self) -> f64 {
        let own = 4 * (self.vertices_of.len() + self.edges_of.len() + self.faces_of.len());
        let all = own + 8 * self.links.len() + 8 * self.faces.numbers();
        (all + 16 * (self.edges.numbers() + self.nodes.numbers())) as f64
    }

    /// Adds a leaf to the lists of its edges.
    pub(super) fn enter(&mut self, node: u32) {
        (0..self.cell.entities(1).len()).for_each(|edge| self.push(EdgeList::Incident, node, edge));
    }

    /// Removes a leaf from the lists of its edges.
    pub(super) fn leave(&mut self, node: u32) {
        (0..self.cell.entities(1).len())
            .for_each(|edge| self.remove(EdgeList::Incident, node, edge));
    }

    pub(super) fn push(&mut self, list: EdgeList, node: u32, edge: usize) {
        let place = self.place(node, edge);
        let head = self.edges[self.edges_of[place]].head(list);
        let after = std::mem::replace(head, place as u32);
        self.links[place] = ListLink { before: NONE, after };
        if after != NONE {
            self.links[after as usize].before = place as u32;
        }
    }

    pub(super) fn remove(&mut self, list: EdgeList, node: u32, edge: usize) {
        let place = self.place(node, edge);
        let ListLink { before, after } = self.links[place];
        match before {
            NONE => *self.edges[self.edges_of[place]].head(list) = after,
            before => self.links[before as usize].after = after,
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
    }
}

/// Returns the size of each edge: ordered by length, ties by number. Lengths are equal up to rounding.
fn sizes(mesh: &Mesh) -> Vec<(u32, u32)> {
    let edges = mesh.connectivity().edges();
    let square = |edge: usize| {
        let (cell, own) = edges.first_cell(edge);
        let ends = mesh.cell().entities(1)[own];
        let [a, b] = [0, 1].map(|i| mesh.points()[mesh.vertices(cell)[ends[i]] as usize]);
        (0..3).map(|c| (a[c] - b[c]).powi(2)).sum::<f64>()
    };
    let squares: Vec<f64> = (0..edges.len()).map(square).collect();
    let largest = squares.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // The bits of positive numbers are ordered like the numbers.
    let size = |(edge, square): (u32, f64)| (((square / largest) as f32).to_bits(), edge);
    (0..).zip(squares).map(size).collect()
}
