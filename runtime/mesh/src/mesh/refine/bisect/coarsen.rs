//! Coarsening: undoes bisections of marked leaves.
//!
//! The midpoint of an edge is removed when all leaves at it are marked, so that all cells bisected there have two
//! marked leaves. If a child was bisected itself, the edge waits for the edge of that bisection. Edges may wait for
//! each other in a cycle if edge lengths define the initial marks; these are removed together. The removed sets are the
//! strongly connected components that wait for no other edge (Tarjan, "Depth-first search and linear graph algorithms",
//! SIAM J. Comput. 1, 1972).

use super::tree::BisectionTree;

/// State of the search for strongly connected components of edges.
struct ComponentSearch<'a> {
    tree: &'a BisectionTree,
    /// Marks of the nodes.
    marked: &'a [bool],
    /// Tarjan's discovery index of each edge, from 1, and its low link.
    found: Vec<u32>,
    low: Vec<u32>,
    count: u32,
    /// Edges with unknown component, and whether one must stay.
    open: Vec<(u32, bool)>,
    /// For each edge, whether its component is known.
    closed: Vec<bool>,
    /// The components to remove.
    going: Vec<Vec<u32>>,
}

/// A stack frame: an edge, and the edges it waits for that are not visited yet.
struct SearchFrame {
    edge: u32,
    /// Its index among the open edges.
    place: usize,
    waits_for: Vec<u32>,
}

impl<'a> ComponentSearch<'a> {
    fn new(tree: &'a BisectionTree, marked: &'a [bool]) -> Self {
        let n = tree.edges.numbers();
        Self {
            tree,
            marked,
            found: vec![0; n],
            low: vec![0; n],
            count: 0,
            open: Vec::new(),
            closed: vec![false; n],
            going: Vec::new(),
        }
    }

    /// Finds the component of an edge, and those of all edges that it waits for.
    fn from(&mut self, edge: u32) {
        if self.found[edge as usize] > 0 {
            return;
        }
        let mut way = vec![self.enter(edge)];
        while let Some(step) = way.last_mut() {
            let (edge, place) = (step.edge as usize, step.place);
            let Some(other) = step.waits_for.pop() else {
                way.pop();
                self.leave(edge as u32, place);
                if let Some(before) = way.last() {
                    self.look_back(before.edge as usize, before.place, edge);
                }
                continue;
            };
            match self.found[other as usize] {
                0 => {
                    let step = self.enter(other);
                    way.push(step);
                }
                _ => self.look_back(edge, place, other as usize),
            }
        }
    }

    fn enter(&mut self, edge: u32) -> SearchFrame {
        self.count += 1;
        (self.found[edge as usize], self.low[edge as usize]) = (self.count, self.count);
        let (mut waits_for, mut stays) = (Vec::new(), false);
        for node in self.tree.divided(edge) {
            let first = self.tree.nodes[node].children;
            for child in [first, first + 1] {
                match self.tree.is_leaf(child) {
                    true => stays |= !self.marked[child as usize],
                    false => waits_for.push(self.tree.divided_edge(child)),
                }
            }
        }
        if stays {
            waits_for.clear();
        }
        self.open.push((edge, stays));
        SearchFrame { edge, place: self.open.len() - 1, waits_for }
    }

    /// Updates an edge from a visited edge that it waits for.
    fn look_back(&mut self, edge: usize, place: usize, other: usize) {
        match self.closed[other] {
            // The other edge can be removed only later.
            true => self.open[place].1 = true,
            false => self.low[edge] = self.low[edge].min(self.low[other]),
        }
    }

    /// Closes a component when its first edge is complete.
    fn leave(&mut self, edge: u32, place: usize) {
        if self.low[edge as usize] < self.found[edge as usize] {
            return;
        }
        let component = self.open.split_off(place);
        component.iter().for_each(|(edge, _)| self.closed[*edge as usize] = true);
        if component.iter().all(|(_, stays)| !stays) {
            self.going.push(component.into_iter().map(|(edge, _)| edge).collect());
        }
    }
}

impl BisectionTree {
    /// Undoes the possible bisections of marked leaves; returns their number.
    pub(super) fn coarsen(&mut self, leaves: &[u32], marked: &[bool]) -> usize {
        let before = self.n_leaves;
        for edges in self.going(leaves, marked) {
            let mut nodes: Vec<u32> = edges.iter().flat_map(|&edge| self.divided(edge)).collect();
            nodes.sort_unstable_by_key(|&node| std::cmp::Reverse(self.nodes[node].depth));
            nodes.into_iter().for_each(|node| self.join(node));
        }
        before - self.n_leaves
    }

    /// Returns the edges whose midpoints are removed; each list is removed together.
    fn going(&self, leaves: &[u32], marked: &[bool]) -> Vec<Vec<u32>> {
        let mut search = ComponentSearch::new(self, marked);
        for &leaf in leaves.iter().filter(|&&leaf| marked[leaf as usize]) {
            if let Some(parent) = self.parent(leaf) {
                search.from(self.divided_edge(parent));
            }
        }
        search.going
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Cell, CellOrdering, Mesh, MeshData};

    /// Returns tetrahedra around an edge, with random outer vertices in their sectors.
    fn ring(count: usize, mut number: impl FnMut() -> f64) -> Mesh {
        let mut points = vec![[0.0; 3], [0.0, 0.0, 0.7 + 0.3 * number()]];
        for sector in 0..count {
            let turn = (sector as f64 + 0.2 * number()) / count as f64 * std::f64::consts::TAU;
            let (radius, height) = (1.0 + 0.3 * number(), 0.5 + 0.5 * number());
            points.push([radius * turn.cos(), radius * turn.sin(), height]);
        }
        let other = |sector: usize| 2 + (sector % count) as u32;
        let nodes = (0..count).flat_map(|sector| [0, other(sector), other(sector + 1), 1]);
        let parts = MeshData { points, nodes: nodes.collect(), ..MeshData::default() };
        Mesh::new(Cell::Tetrahedron, 1, parts, CellOrdering::Original).expect("a mesh")
    }

    #[test]
    fn edges_that_wait_for_each_other_go_together() {
        let mut state = 1u64;
        let mut number = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 40) as f64 / f64::from(1 << 23) - 1.0
        };
        let mut circles = 0;
        for round in 0..1000 {
            let mesh = ring(3 + round % 4, &mut number);
            let mut tree = BisectionTree::new(&mesh);
            let leaves = |tree: &BisectionTree| {
                let mut leaves = Vec::new();
                (0..tree.n_roots as u32).for_each(|root| tree.walk(root, |leaf| leaves.push(leaf)));
                leaves
            };
            for _ in 0..6 {
                tree.refine(&leaves(&tree)).expect("few leaves");
            }
            loop {
                let marked = vec![true; tree.nodes.numbers()];
                let all = leaves(&tree);
                circles += tree.going(&all, &marked).iter().filter(|edges| edges.len() > 1).count();
                if tree.coarsen(&all, &marked) == 0 {
                    break;
                }
            }
            assert_eq!(tree.n_leaves, tree.n_roots);
        }
        assert!(circles > 0, "there should be some");
    }
}
