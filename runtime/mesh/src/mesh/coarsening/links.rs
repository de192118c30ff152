//! Facet neighbours of each cell with their relative orientation, across periodic sides ([`FacetLinks`]).
//!
//! ```text
//! corner p of a facet in a cell's numbering: bits along the facet's axes, the lower axis first
//! the same corner in the neighbour's numbering: p, its bits exchanged or not, ⊕ flips
//! ```

use super::labels::TagLabels;
use crate::mesh::{Mesh, Topology};

/// No cell.
pub(super) const NONE: u32 = u32::MAX;

const OUTER: u8 = 1 << 3;
const BOUND: u8 = 1 << 4;
const FACET: u8 = 5;

/// The tangential axes of a facet by its normal axis, the lower one first.
const OTHERS: [[usize; 2]; 3] = [[1, 2], [0, 2], [0, 1]];

/// Facets of cells, with number 2d · cell + facet.
pub(super) struct FacetLinks {
    dim: usize,
    /// The neighbour across each facet.
    across: Vec<u32>,
    /// Bit 0 exchanges the axes, bits 1 and 2 are flips, bit 3 marks facets of the geometric boundary, bit 4 differing
    /// tags. The higher bits are the facet's number in the neighbour.
    how: Vec<u8>,
}

/// The neighbour across a facet, with relative orientation.
#[derive(Clone, Copy)]
pub(super) struct FacetLink {
    pub(super) cell: u32,
    how: u8,
}

impl FacetLinks {
    pub(super) fn new(mesh: &Mesh, labels: &TagLabels) -> Self {
        let (connectivity, topology) = (mesh.connectivity(), mesh.topology());
        let (facets, surface) = (connectivity.facets(), topology.facets());
        let sides = mesh.cell().facets().len();
        let mut across = vec![NONE; mesh.n_cells() * sides];
        let mut how = vec![0; across.len()];
        // The first cell of each facet, and its number there.
        let mut firsts = vec![(NONE, 0u8); facets.len()];
        for cell in 0..mesh.n_cells() {
            let both = facets.of_cell(cell).iter().zip(surface.of_cell(cell));
            for (local, (&facet, &own)) in both.enumerate() {
                let here = cell * sides + local;
                if surface.n_cells(own as usize) == 1 {
                    how[here] |= OUTER;
                }
                let first = &mut firsts[facet as usize];
                if first.0 == NONE {
                    *first = (cell as u32, local as u8);
                    continue;
                }
                let (first, there) = (first.0 as usize, usize::from(first.1));
                let other = first * sides + there;
                (across[here], across[other]) = (first as u32, cell as u32);
                let bound = labels.bind([cell, first], own);
                let seen = [seen(connectivity, cell, local), seen(connectivity, first, there)];
                how[here] |= between(seen[0], seen[1]) | bound | (there as u8) << FACET;
                how[other] |= between(seen[1], seen[0]) | bound | (local as u8) << FACET;
            }
        }
        Self { dim: mesh.dim(), across, how }
    }

    /// Returns the neighbour across a facet; `None` on the boundary.
    pub(super) fn across(&self, cell: u32, facet: usize) -> Option<FacetLink> {
        let here = cell as usize * 2 * self.dim + facet;
        let cell = self.across[here];
        (cell != NONE).then_some(FacetLink { cell, how: self.how[here] })
    }

    /// Returns whether a facet lies on the geometric boundary and so cannot lie inside a patch.
    pub(super) fn is_outer(&self, cell: u32, facet: usize) -> bool {
        self.how[cell as usize * 2 * self.dim + facet] & OUTER != 0
    }

    /// Returns whether tags prevent a facet from lying inside a patch.
    pub(super) fn is_bound(&self, cell: u32, facet: usize) -> bool {
        self.how[cell as usize * 2 * self.dim + facet] & BOUND != 0
    }
}

impl TagLabels {
    /// Returns the bit that prevents a facet between two cells from lying inside a patch.
    fn bind(&self, cells: [usize; 2], facet: u32) -> u8 {
        let bound = self.cell(cells[0]) != self.cell(cells[1]) || self.facet(facet) != 0;
        if bound { BOUND } else { 0 }
    }
}

impl FacetLink {
    /// Returns the axis normal to the facet in the neighbour, and the end of that axis.
    fn facet(self) -> (usize, u8) {
        let facet = self.how >> FACET;
        (usize::from(facet / 2), facet % 2)
    }

    /// Returns the neighbour's corner that is even along all axes; `even` is that of this cell.
    pub(super) fn even(self, even: u8, facet: usize, dim: usize) -> u8 {
        let (normal, side) = (facet / 2, (facet % 2) as u8);
        let (there, end) = self.facet();
        let is_odd = (even >> normal & 1) ^ side;
        let along = (end ^ is_odd) << there;
        let [a, b] = OTHERS[normal];
        let [c, e] = OTHERS[there];
        if dim == 1 {
            return along;
        }
        if dim == 2 {
            let (own, other) = (1 - normal, 1 - there);
            return along | ((even >> own ^ self.how >> 1) & 1) << other;
        }
        let corner = [even >> a & 1, even >> b & 1];
        let exchanged = usize::from(self.how & 1);
        let flips = [self.how >> 1 & 1, self.how >> 2 & 1];
        along | (corner[exchanged] ^ flips[0]) << c | (corner[1 - exchanged] ^ flips[1]) << e
    }

    /// Returns the patch axes along the neighbour's axes; `axes` are those of this cell.
    pub(super) fn axes(self, axes: [u8; 3], facet: usize, dim: usize) -> [u8; 3] {
        let (normal, (there, _)) = (facet / 2, self.facet());
        let mut across = [0, 1, 2];
        across[there] = axes[normal];
        if dim == 1 {
            return across;
        }
        if dim == 2 {
            across[1 - there] = axes[1 - normal];
            return across;
        }
        let exchanged = usize::from(self.how & 1);
        across[OTHERS[there][0]] = axes[OTHERS[normal][exchanged]];
        across[OTHERS[there][1]] = axes[OTHERS[normal][1 - exchanged]];
        across
    }
}

/// Returns the orientation of a facet in a cell ([`Topology::face_orientation`]).
fn seen(topology: &Topology, cell: usize, facet: usize) -> u8 {
    match topology.cell().dim() {
        _ if topology.is_oriented() => 0,
        2 => u8::from(topology.edge_reversed(cell, facet)) << 1,
        _ => topology.face_orientation(cell, facet),
    }
}

/// Returns the relative orientation of two cells at a facet.
fn between(from: u8, to: u8) -> u8 {
    let flips = (from ^ to) >> 1;
    let flips = if to & 1 == 1 { flips >> 1 & 1 | (flips & 1) << 1 } else { flips };
    (from ^ to) & 1 | flips << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_go_from_one_view_to_another() {
        let exchange = |p: u8, how: u8| if how & 1 == 1 { p >> 1 & 1 | (p & 1) << 1 } else { p };
        for from in 0..8 {
            for to in 0..8 {
                let how = between(from, to);
                for corner in 0..4 {
                    // The corner in the facet's own frame.
                    let own = exchange(corner, from) ^ from >> 1;
                    let expected = exchange(own ^ to >> 1, to);
                    assert_eq!(exchange(corner, how) ^ how >> 1, expected);
                }
            }
        }
    }
}
