//! Facets of simplices in kernels that have tables for each: numbers of a facet, and of the facets of a pair of cells.
//!
//! A simplex is rotated so that a facet is ξ₀ = 0, and its other axes are oriented ([`Lagrange::turned`]). Of a pair, one
//! cell is oriented such that both have the same coordinates on the facet.

use crate::element::{Cell, Lagrange};
use fem_dsl::point::Side;

/// Returns the number of the facets of a pair of simplices, inside first, with their orientations.
pub fn of_pair(cell: Cell, facets: [u8; 2], orientations: [u8; 2]) -> u16 {
    let (n, m) = (cell.facets().len() as u16, cell.facet_orientations() as u16);
    let [inside, outside] = facets.map(u16::from);
    let [first, second] = orientations.map(u16::from);
    inside + n * (outside + n * (first + m * second))
}

/// Returns the facet of the cell on a side and its orientation; of single cells the number is that of the facet.
pub(crate) fn on_side(cell: Cell, number: u16, side: Side) -> (usize, u8) {
    let (n, m) = (cell.facets().len() as u16, cell.facet_orientations() as u16);
    let (facets, orientations) = (number % (n * n), number / (n * n));
    match side {
        Side::Inside => (usize::from(facets % n), (orientations % m) as u8),
        Side::Outside => (usize::from(facets / n), (orientations / m) as u8),
    }
}

/// The pairs of facets that occur in a mesh, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FacetPairs {
    bits: [u64; 9],
}

impl FacetPairs {
    /// Adds a pair.
    pub fn insert(&mut self, number: u16) {
        self.bits[usize::from(number) / 64] |= 1 << (number % 64);
    }

    /// Returns the numbers of the pairs, ascending.
    pub fn numbers(self) -> Vec<u16> {
        let has = |number: &u16| self.bits[usize::from(*number) / 64] >> (number % 64) & 1 == 1;
        (0..64 * self.bits.len() as u16).filter(has).collect()
    }
}

/// Returns the numbers of all pairs of facets whose cells list the vertices of a facet in one order.
pub fn sorted_pairs(cell: Cell) -> Vec<u16> {
    let corners = Lagrange::continuous(cell, 1).expect("degree 1 should have an element");
    // The ranks of the vertices on ξ₀ = 0 of the rotated cell among those of the facet.
    let ranks = |facet: u8, orientation: u8| -> Vec<usize> {
        let mut vertices = corners.turned(usize::from(facet), orientation);
        vertices.remove(1);
        vertices.iter().map(|v| vertices.iter().filter(|other| *other < v).count()).collect()
    };
    let all = 0..cell.facets().len() as u8;
    let pairs = all.clone().flat_map(|inside| all.clone().map(move |outside| [inside, outside]));
    let number = |[inside, outside]: [u8; 2]| {
        let mut orientations = 0..cell.facet_orientations() as u8;
        let own = orientations.find(|&of| ranks(inside, 0) == ranks(outside, of));
        of_pair(cell, [inside, outside], [0, own.unwrap_or(0)])
    };
    pairs.map(number).collect()
}
