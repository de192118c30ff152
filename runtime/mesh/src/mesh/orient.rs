//! Consistent orientation: renumbers cells so that neighbours agree on the direction of shared entities.
//!
//! Quadrilaterals and hexahedra: opposite edges of a cell belong to one class (a row of cells in two dimensions, a dual
//! sheet in three). Every class is given one direction; a cell's first vertex is the one at which its edges start. Axes
//! of hexahedra are sorted by class, so that a shared face has the same first axis in both cells. This fails if a class
//! meets itself with opposite directions (a Möbius strip of cells); then the mesh is unchanged. If a sheet cuts one
//! hexahedron twice, the order of those two axes is unchanged, and [`Topology::is_oriented`] may be false. The
//! numbering of degrees of freedom must then use [`Topology::face_orientation`].
//!
//! Quadrilaterals keep a positive Jacobian determinant (axes are exchanged if needed). Hexahedra may get a negative
//! one, and so may simplices, whose vertices are sorted by number: integrals use |det|.

use super::{Cell, MeshError, Topology};

/// A renumbering of a cell's vertices: new local vertex → old local vertex.
pub type Renumbering = [u8; 8];

/// The identity renumbering.
pub const IDENTITY: Renumbering = [0, 1, 2, 3, 4, 5, 6, 7];

/// Renumberings after which edges and faces of quadrilaterals or hexahedra agree. `None` if they agree already, or if
/// it is impossible.
pub fn orient(
    cell: Cell,
    n_vertices: usize,
    cell_vertices: &[u32],
) -> Result<Option<Vec<Renumbering>>, MeshError> {
    let topology = Topology::new(cell, n_vertices, cell_vertices.to_vec())?;
    if !cell.is_tensor() || topology.is_oriented() {
        return Ok(None);
    }
    let Some(classes) = EdgeClasses::of(&topology) else { return Ok(None) };
    Ok(Some((0..topology.n_cells()).map(|c| renumbering(&topology, &classes, c)).collect()))
}

/// Returns the axis of a local edge of a tensor cell.
fn axis(edge: &[usize]) -> usize {
    (edge[0] ^ edge[1]).trailing_zeros() as usize
}

fn renumbering(topology: &Topology, classes: &EdgeClasses, cell: usize) -> Renumbering {
    let dim = topology.cell().dim();
    let mut axes = [(0u32, 0usize); 3];
    let mut flips = 0;
    for (local, edge) in topology.cell().entities(1).iter().enumerate() {
        if edge[0] == 0 {
            let along = axis(edge);
            let (class, against) = classes.of_edge(topology.edges().of_cell(cell)[local]);
            axes[along] = (class, along);
            if against != topology.edge_reversed(cell, local) {
                flips |= 1 << along;
            }
        }
    }
    if dim == 3 {
        axes.sort_unstable();
    } else if (flips as u32).count_ones() == 1 {
        axes.swap(0, 1);
    }
    let mut result = IDENTITY;
    for (new, old) in result.iter_mut().enumerate().take(1 << dim) {
        let spread = (0..dim).fold(0, |old, a| old | (new >> a & 1) << axes[a].1);
        *old = (spread ^ flips) as u8;
    }
    result
}

/// Classes of parallel edges: a union-find structure whose links store relative directions.
struct EdgeClasses {
    parent: Vec<u32>,
    against: Vec<bool>,
}

impl EdgeClasses {
    /// Builds the classes; `None` if a class runs against itself.
    fn of(topology: &Topology) -> Option<EdgeClasses> {
        let n = topology.edges().len();
        let mut classes = EdgeClasses { parent: (0..n as u32).collect(), against: vec![false; n] };
        let locals = topology.cell().entities(1);
        let first: Vec<usize> = locals
            .iter()
            .map(|edge| locals.iter().position(|e| axis(e) == axis(edge)).unwrap_or(0))
            .collect();
        for cell in 0..topology.n_cells() {
            let edges = topology.edges().of_cell(cell);
            for local in 0..locals.len() {
                let against = topology.edge_reversed(cell, local)
                    != topology.edge_reversed(cell, first[local]);
                if !classes.join(edges[first[local]], edges[local], against) {
                    return None;
                }
            }
        }
        // Every edge points at its root, so that `of_edge` needs no search.
        for edge in 0..n as u32 {
            let (root, against) = classes.find(edge);
            classes.parent[edge as usize] = root;
            classes.against[edge as usize] = against;
        }
        Some(classes)
    }

    /// Returns the class of an edge, and whether the edge runs against it.
    fn of_edge(&self, edge: u32) -> (u32, bool) {
        (self.parent[edge as usize], self.against[edge as usize])
    }

    fn find(&mut self, edge: u32) -> (u32, bool) {
        let (mut at, mut against) = (edge, false);
        while self.parent[at as usize] != at {
            against ^= self.against[at as usize];
            at = self.parent[at as usize];
        }
        // Path compression.
        let (root, total) = (at, against);
        let (mut at, mut rest) = (edge, total);
        while self.parent[at as usize] != at {
            let (next, step) = (self.parent[at as usize], self.against[at as usize]);
            self.parent[at as usize] = root;
            self.against[at as usize] = rest;
            rest ^= step;
            at = next;
        }
        (root, total)
    }

    /// Merges the classes of two edges; returns false on contradictory directions.
    fn join(&mut self, a: u32, b: u32, against: bool) -> bool {
        let ((root_a, from_a), (root_b, from_b)) = (self.find(a), self.find(b));
        let relation = from_a ^ from_b ^ against;
        if root_a == root_b {
            return !relation;
        }
        // The smaller number stays root: a class is identified by its first edge.
        let (root, child) = (root_a.min(root_b), root_a.max(root_b));
        self.parent[child as usize] = root;
        self.against[child as usize] = relation;
        true
    }
}
