//! Adjacency of the trees of a forest: neighbours across faces and around edges.
//!
//! The input is the [`Topology`] of the mesh, with periodic sides identified. The tables hold, for each face, the
//! neighbouring tree with both orientations; for each edge, all incident cells with directions; for each vertex, all
//! incident cells with their corners. A cell may be its own neighbour, even several times. If another tree sees an edge
//! reversed, coordinate a along it becomes 2³⁰ − h − a for a cell of width h.

use super::key::{CellKey, KeyLayout, UNITS};
use crate::mesh::{Cell, Topology};

/// Neighbour of a tree across a face.
#[derive(Clone, Copy, Debug, PartialEq)]
struct FaceNeighbour {
    tree: u32,
    face: u8,
    /// The orientations of the face in this tree and in the neighbour ([`Topology::face_orientation`]).
    seen: [u8; 2],
}

/// A tree incident to an edge or a vertex of the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncidentTree {
    /// The tree.
    pub tree: u32,
    /// The local number of the edge or the corner.
    pub local: u8,
    /// True if the tree has the edge against its own direction.
    pub reversed: bool,
}

/// Incidence lists of trees.
#[derive(Clone, Debug, PartialEq)]
struct IncidenceLists {
    per_tree: usize,
    /// `[tree][local]`: the entity.
    of: Vec<u32>,
    starts: Vec<u32>,
    all: Vec<IncidentTree>,
}

impl IncidenceLists {
    fn new(per_tree: usize, count: usize, of: Vec<u32>, reversed: impl Fn(usize) -> bool) -> Self {
        let mut starts = vec![0u32; count + 1];
        of.iter().for_each(|&entity| starts[entity as usize + 1] += 1);
        (0..count).for_each(|entity| starts[entity + 1] += starts[entity]);
        let mut next = starts.clone();
        let mut all = vec![IncidentTree { tree: 0, local: 0, reversed: false }; of.len()];
        for (place, &entity) in of.iter().enumerate() {
            let slot = &mut next[entity as usize];
            let (tree, local) = ((place / per_tree) as u32, (place % per_tree) as u8);
            all[*slot as usize] = IncidentTree { tree, local, reversed: reversed(place) };
            *slot += 1;
        }
        Self { per_tree, of, starts, all }
    }

    fn around(&self, tree: u32, local: usize) -> &[IncidentTree] {
        let entity = self.of[tree as usize * self.per_tree + local] as usize;
        &self.all[self.starts[entity] as usize..self.starts[entity + 1] as usize]
    }
}

/// The trees of a forest and their adjacency.
#[derive(Clone, Debug, PartialEq)]
pub struct TreeAdjacency {
    cell: Cell,
    n_trees: usize,
    /// The layout of the keys of leaves.
    pub layout: KeyLayout,
    /// `[tree][face]`.
    faces: Vec<Option<FaceNeighbour>>,
    edges: IncidenceLists,
    vertices: IncidenceLists,
}

/// Directions from a cell: faces 0 to 5 by axis and side; in three dimensions then the edges, by axis and the sides
/// along the other two.
pub(super) const FACES: usize = 6;
pub(super) const DIRECTIONS: usize = 18;

/// The other two axes.
pub(super) const OTHERS: [[usize; 2]; 3] = [[1, 2], [0, 2], [0, 1]];

impl TreeAdjacency {
    /// Creates the adjacency of quadrilaterals or hexahedra.
    pub(super) fn new(topology: &Topology) -> Self {
        let (cell, n_trees) = (topology.cell(), topology.n_cells());
        let each = |per_tree: usize, of: &dyn Fn(usize) -> Vec<u32>| {
            let mut all = Vec::with_capacity(n_trees * per_tree);
            (0..n_trees).for_each(|tree| all.extend(of(tree)));
            all
        };
        let (edges, corners) = (topology.edges(), cell.vertex_count());
        let (n_edges, n_faces) = (cell.entities(1).len(), cell.facets().len());
        let of_trees = each(n_edges, &|tree| edges.of_cell(tree).to_vec());
        let reversed = |place: usize| topology.edge_reversed(place / n_edges, place % n_edges);
        let around = IncidenceLists::new(n_edges, edges.len(), of_trees, reversed);
        let of_trees = each(corners, &|tree| topology.vertices(tree).to_vec());
        let vertices = IncidenceLists::new(corners, topology.n_vertices(), of_trees, |_| false);
        let facets = topology.facets();
        let of_trees = each(n_faces, &|tree| facets.of_cell(tree).to_vec());
        let sides = IncidenceLists::new(n_faces, facets.len(), of_trees, |_| false);
        let seen = |tree: u32, face: usize| match cell.dim() {
            1 => 0,
            2 => u8::from(topology.edge_reversed(tree as usize, face)) << 1,
            _ => topology.face_orientation(tree as usize, face),
        };
        let across = |place: usize| {
            let (tree, face) = ((place / n_faces) as u32, place % n_faces);
            let own = |side: &&IncidentTree| side.tree != tree || usize::from(side.local) != face;
            let other = sides.around(tree, face).iter().find(own)?;
            let there = seen(other.tree, usize::from(other.local));
            Some(FaceNeighbour {
                tree: other.tree,
                face: other.local,
                seen: [seen(tree, face), there],
            })
        };
        let faces = (0..n_trees * n_faces).map(across).collect();
        let layout = KeyLayout::new(cell.dim());
        Self { cell, n_trees, layout, faces, edges: around, vertices }
    }

    /// Returns the cell type of the trees.
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Returns the number of trees.
    pub fn n_trees(&self) -> usize {
        self.n_trees
    }

    /// Returns the trees around an edge of a tree, including itself.
    pub fn around_edge(&self, tree: u32, edge: usize) -> &[IncidentTree] {
        self.edges.around(tree, edge)
    }

    /// Returns the trees around a corner of a tree, including itself.
    pub fn around_vertex(&self, tree: u32, corner: usize) -> &[IncidentTree] {
        self.vertices.around(tree, corner)
    }

    /// Calls `tell` with each neighbour of the same level in the directions of a bit set; boundary directions give
    /// none. Around an edge of a tree there may be any number.
    pub(super) fn neighbours(
        &self,
        key: CellKey,
        directions: u32,
        mut tell: impl FnMut(usize, CellKey),
    ) {
        let mut left = directions;
        while left != 0 {
            let direction = left.trailing_zeros() as usize;
            left &= left - 1;
            if direction < FACES {
                let (axis, up) = (direction / 2, direction % 2 == 1);
                let near = self.layout.step(key, axis, up).or_else(|| self.behind(key, direction));
                near.into_iter().for_each(|near| tell(direction, near));
            } else {
                self.at_edge(key, direction - FACES, |near| tell(direction, near));
            }
        }
    }

    /// Visits the neighbours across an edge of a cell; inside a tree those across faces are excluded.
    fn at_edge(&self, key: CellKey, edge: usize, mut tell: impl FnMut(CellKey)) {
        let [first, second] = OTHERS[edge / 4];
        let sides = [edge % 2 == 1, edge / 2 % 2 == 1];
        let along = |axis: usize, up: bool| self.layout.step(key, axis, up);
        match (along(first, sides[0]), along(second, sides[1])) {
            (Some(near), Some(_)) => {
                self.layout.step(near, second, sides[1]).into_iter().for_each(tell);
            }
            (Some(near), None) => {
                self.behind(near, 2 * second + usize::from(sides[1])).into_iter().for_each(tell);
            }
            (None, Some(near)) => {
                self.behind(near, 2 * first + usize::from(sides[0])).into_iter().for_each(tell);
            }
            (None, None) => {
                let all = self.edges.around(key.tree(), edge);
                let Some(own) = all
                    .iter()
                    .find(|around| around.tree == key.tree() && usize::from(around.local) == edge)
                else {
                    return;
                };
                let (corner, level) = (self.layout.corner(key), key.level());
                let last = UNITS - (UNITS >> level);
                for other in all.iter().filter(|other| *other != own) {
                    let local = usize::from(other.local);
                    let mut at = [0; 3];
                    let here = corner[edge / 4];
                    at[local / 4] = if other.reversed == own.reversed { here } else { last - here };
                    let [first, second] = OTHERS[local / 4];
                    at[first] = if local % 2 == 1 { last } else { 0 };
                    at[second] = if local / 2 % 2 == 1 { last } else { 0 };
                    tell(self.layout.key(other.tree, at, level));
                }
            }
        }
    }

    /// Returns the neighbour across a face of the tree; `None` at the boundary.
    fn behind(&self, key: CellKey, face: usize) -> Option<CellKey> {
        let per_tree = self.cell.facets().len();
        let across = self.faces[key.tree() as usize * per_tree + face]?;
        let (corner, level) = (self.layout.corner(key), key.level());
        let last = UNITS - (UNITS >> level);
        let [first, second] = OTHERS[face / 2];
        let turned = |at: u32, flipped: bool| if flipped { last - at } else { at };
        let other = usize::from(across.face);
        let [to_first, to_second] = OTHERS[other / 2];
        let mut at = [0; 3];
        at[other / 2] = if other % 2 == 1 { last } else { 0 };
        let [here, there] = across.seen.map(|seen| [0, 1, 2].map(|bit| seen >> bit & 1 == 1));
        if self.cell.dim() == 1 {
            return Some(self.layout.key(across.tree, at, level));
        }
        if self.cell.dim() == 2 {
            // Both trees have the edge along the remaining axis.
            let along = turned(corner[1 - face / 2], here[1] != there[1]);
            at[1 - other / 2] = along;
        } else {
            let (mut s, mut t) = (corner[first], corner[second]);
            if here[0] {
                (s, t) = (t, s);
            }
            (s, t) = (turned(s, here[1] != there[1]), turned(t, here[2] != there[2]));
            if there[0] {
                (s, t) = (t, s);
            }
            (at[to_first], at[to_second]) = (s, t);
        }
        Some(self.layout.key(across.tree, at, level))
    }
}
