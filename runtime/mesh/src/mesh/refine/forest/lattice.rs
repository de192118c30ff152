//! Node numbering of a uniformly refined mesh of quadrilaterals or hexahedra with n cells per direction and coarse
//! cell.
//!
//! With geometry of order g, the nodes of a coarse cell form a lattice with n·g steps per direction. A node's number
//! follows from the vertex, edge or face that contains it and its position in that entity's frame, on which both cells
//! agree. Nodes on [0, 1] are symmetric, so a reversed edge is counted from its other end.

use crate::mesh::{Cell, Topology};

/// Lattice of all cells of a mesh.
pub(super) struct CellLattice<'a> {
    topology: &'a Topology,
    steps: usize,
    /// Dimension and number of the sub-entity, for each choice of 0, 1 or interior per axis.
    corners: Vec<(usize, usize)>,
    /// The first number of each dimension's entities.
    start: [usize; 4],
}

impl<'a> CellLattice<'a> {
    pub(super) fn new(topology: &'a Topology, steps: usize) -> Self {
        let cell = topology.cell();
        let dim = cell.dim();
        let mut count = [topology.n_vertices(), topology.edges().len(), topology.faces().len(), 0];
        count[dim] = topology.n_cells();
        let mut start = [0; 4];
        for d in 1..4 {
            start[d] = start[d - 1] + count[d - 1] * (steps - 1).pow(d as u32 - 1);
        }
        Self { topology, steps, corners: corners(cell), start }
    }

    /// Returns the number of a node of a cell, by its lattice coordinates.
    pub(super) fn number(&self, cell: usize, at: [usize; 3]) -> usize {
        let (n, dim) = (self.steps, self.topology.cell().dim());
        let mut slot = 0;
        let (mut free, mut count) = ([0; 3], 0);
        for axis in (0..dim).rev() {
            let side = if at[axis] == 0 {
                0
            } else if at[axis] == n {
                1
            } else {
                2
            };
            slot = 3 * slot + side;
        }
        for &at in at[..dim].iter().filter(|&&at| at != 0 && at != n) {
            free[count] = at;
            count += 1;
        }
        let (of, local) = self.corners[slot];
        let (entity, [s, t, r]) = match of {
            0 => (self.topology.vertices(cell)[local] as usize, [1; 3]),
            _ if of == dim => (cell, free),
            1 => {
                let reversed = self.topology.edge_reversed(cell, local);
                let along = if reversed { n - free[0] } else { free[0] };
                (self.topology.edges().of_cell(cell)[local] as usize, [along, 1, 1])
            }
            _ => {
                let seen = self.topology.face_orientation(cell, local);
                let [mut s, mut t, _] = free;
                if seen & 1 == 1 {
                    (s, t) = (t, s);
                }
                s = if seen & 2 == 2 { n - s } else { s };
                t = if seen & 4 == 4 { n - t } else { t };
                (self.topology.faces().of_cell(cell)[local] as usize, [s, t, 1])
            }
        };
        let inside = match of {
            0 => 0,
            1 => s - 1,
            2 => (t - 1) * (n - 1) + s - 1,
            _ => ((r - 1) * (n - 1) + t - 1) * (n - 1) + s - 1,
        };
        self.start[of] + entity * (n - 1).pow(of as u32) + inside
    }
}

/// Returns the sub-entity of a tensor cell for each choice of 0, 1 or interior per axis, as base-3 digits.
pub(super) fn corners(cell: Cell) -> Vec<(usize, usize)> {
    let mut table = vec![(0, 0); 3usize.pow(cell.dim() as u32)];
    for dim in 0..=cell.dim() {
        for (number, vertices) in cell.entities(dim).iter().enumerate() {
            let spanned = vertices.iter().fold(0, |bits, v| bits | (v ^ vertices[0]));
            let slot = (0..cell.dim()).rev().fold(0, |slot, axis| {
                3 * slot + if spanned >> axis & 1 == 1 { 2 } else { vertices[0] >> axis & 1 }
            });
            table[slot] = (dim, number);
        }
    }
    table
}
