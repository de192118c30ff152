//! Views of facets: points of a facet rule in the cell, for a cell's facet and a frame.
//!
//! A facet between cells has its own frame, with an orientation relative to each cell ([`Topology::face_orientation`],
//! [`Topology::edge_reversed`]); points in that frame coincide for both. The facet of a facet integral has the frame of
//! the cell rotated to ξ₀ = 0 ([`Lagrange::turned`]).
//!
//! [`Lagrange::turned`]: kernels_gen::element::Lagrange::turned

use super::Topology;
use kernels_gen::element::Cell;

/// Views of the facets of a cell type: all orientations of the facet's own frame, then the rotated cell.
#[derive(Clone, Copy, Debug)]
pub struct FacetViews {
    cell: Cell,
}

impl FacetViews {
    /// Returns the views of the facets of a cell type.
    pub fn new(cell: Cell) -> Self {
        Self { cell }
    }

    /// Returns the number of views.
    pub fn count(self) -> usize {
        self.cell.facet_orientations() + 1
    }

    /// Returns the view of the rotated cell.
    pub fn turned(self) -> u8 {
        self.cell.facet_orientations() as u8
    }

    /// Returns the view in the facet's own frame.
    pub fn of(self, topology: &Topology, cell: usize, local: usize) -> u8 {
        match self.cell.dim() {
            1 => 0,
            2 => u8::from(topology.edge_reversed(cell, local)),
            _ => topology.face_orientation(cell, local),
        }
    }

    /// Converts a point of the frame to the cell's facet coordinates.
    fn in_cell(self, local: usize, view: u8, [s, t]: [f64; 2]) -> [f64; 2] {
        if view == self.turned() {
            return if self.cell.is_tensor() { [s, t] } else { self.turn(local, [s, t]) };
        }
        self.cell.oriented(view, [s, t])
    }

    /// Converts from the facet ξ₀ = 0 of a rotated simplex, in which vertex 1 is swapped with the one opposite the
    /// facet.
    fn turn(self, local: usize, [s, t]: [f64; 2]) -> [f64; 2] {
        let rest = if self.cell.dim() == 2 { 1.0 - s } else { 1.0 - s - t };
        let mut weights = [rest, 0.0, s, t];
        weights.swap(1, local);
        let vertices = self.cell.facets()[local];
        [weights[vertices[1]], vertices.get(2).map_or(0.0, |&vertex| weights[vertex])]
    }

    /// Converts the points of a facet rule, given on ξ₀ = 0, to the cell.
    pub fn points(self, local: usize, view: u8, rule: &[([f64; 3], f64)]) -> Vec<[f64; 3]> {
        let place = |&([_, s, t], _): &([f64; 3], f64)| {
            let [a, b] = self.in_cell(local, view, [s, t]);
            self.cell.entity_point(self.cell.dim() - 1, local, [a, b, 0.0])
        };
        rule.iter().map(place).collect()
    }

    /// Returns the permutation of a frame's grid points to the cell's grid on the facet, with q symmetric points per
    /// direction.
    pub fn grid(self, view: u8, q: usize) -> Vec<usize> {
        let last = q.saturating_sub(1).max(1) as f64;
        let n = q.pow(self.cell.dim() as u32 - 1);
        let place = |at: usize| {
            let frame = [at % q, at / q].map(|digit| digit as f64 / last);
            // A single point lies in the middle.
            let own = self.in_cell(0, view, frame).map(|x| (x * last).round() as usize);
            own[0].min(q - 1) + q * if self.cell.dim() == 3 { own[1].min(q - 1) } else { 0 }
        };
        (0..n).map(place).collect()
    }

    /// Returns the orientation in which the rotated cell on the other side of a facet, given by its facet and its view,
    /// has the facet coordinates of this one ([`Cell::oriented`]).
    pub fn between(self, (local, view): (usize, u8), other: (usize, u8)) -> u8 {
        let (whole, sample) = (self.turned(), self.sample());
        let frame = self.in_frame(view, self.in_cell(local, whole, sample));
        let wanted = self.in_cell(other.0, other.1, frame);
        let mut all = 0..self.cell.facet_orientations() as u8;
        let is_it = |&o: &u8| self.in_cell(other.0, whole, self.cell.oriented(o, sample)) == wanted;
        all.find(is_it).expect("an orientation should relate two views of a facet")
    }

    /// Returns the orientation in which a rotated cell has the coordinates of a view of one of its facets.
    pub fn rotated(self, local: usize, view: u8) -> u8 {
        let (whole, sample) = (self.turned(), self.sample());
        let wanted = self.in_cell(local, view, sample);
        let mut all = 0..self.cell.facet_orientations() as u8;
        let is_it = |&o: &u8| self.in_cell(local, whole, self.cell.oriented(o, sample)) == wanted;
        all.find(is_it).expect("an orientation should lead to each view")
    }

    /// Returns the inverse of an orientation.
    pub fn inverse(self, orientation: u8) -> u8 {
        let mut all = 0..self.cell.facet_orientations() as u8;
        all.find(|&o| self.composed(o, orientation) == 0).expect("orientations should form a group")
    }

    /// Returns the orientation that is `first` followed by `then`.
    pub fn composed(self, first: u8, then: u8) -> u8 {
        let sample = self.sample();
        let wanted = self.cell.oriented(then, self.cell.oriented(first, sample));
        let mut all = 0..self.cell.facet_orientations() as u8;
        let is_it = |&o: &u8| self.cell.oriented(o, sample) == wanted;
        all.find(is_it).expect("orientations should form a group")
    }

    /// Converts a half of a facet's frame (bits) to the axes of a rotated tensor cell with this view of the frame.
    pub fn half(self, view: u8, child: u8) -> u8 {
        let part = |bits: u8, at: [f64; 2]| {
            [0, 1].map(|axis| (at[axis] + f64::from(bits >> axis & 1)) / 2.0)
        };
        let sample = self.sample();
        let wanted = part(child, self.in_frame(view, sample));
        let own = |&bits: &u8| self.in_frame(view, part(bits, sample)) == wanted;
        (0..1 << (self.cell.dim() - 1)).find(own).expect("a half should be one in each view")
    }

    /// Orients two rotated tensor cells, of which the second has the facet coordinates of the first in `orientation`, so
    /// that the facet of the first is the lowest part of the second's; it is the half `bits` of it, along the axes of the
    /// first.
    pub fn lowest_half(self, bits: u8, orientation: u8) -> [u8; 2] {
        // A flip exchanges the halves along an axis, in both cells.
        let flip = |at: [f64; 2]| {
            [0, 1].map(|axis| if bits >> axis & 1 == 1 { 1.0 - at[axis] } else { at[axis] })
        };
        let at = |place: [f64; 2]| {
            let mut all = 0..self.cell.facet_orientations() as u8;
            let is_it = |&o: &u8| self.cell.oriented(o, self.sample()) == place;
            all.find(is_it).expect("a flip should be among the orientations")
        };
        let flipped = flip(self.sample());
        [at(flipped), at(self.cell.oriented(orientation, flipped))]
    }

    /// Returns a point of a facet that no orientation leaves where it is.
    fn sample(self) -> [f64; 2] {
        if self.cell.dim() == 3 { [0.25, 0.125] } else { [0.25, 0.0] }
    }

    /// Converts facet coordinates of a cell to its facet's frame.
    fn in_frame(self, view: u8, at: [f64; 2]) -> [f64; 2] {
        let all = 0..self.cell.facet_orientations() as u8;
        let mut places = all.map(|inverse| self.cell.oriented(inverse, at));
        let place = places.find(|&place| self.cell.oriented(view, place) == at);
        place.expect("an orientation should have an inverse")
    }

    /// Converts the child index along the cell's axes to halves of a facet's frame (bits).
    pub fn child(self, view: u8, own: usize) -> u8 {
        let middle = |bits: usize| [bits & 1, bits >> 1].map(|bit| 0.25 + 0.5 * bit as f64);
        let (frames, dim) = (1 << (self.cell.dim() - 1), self.cell.dim());
        let here = |&bits: &usize| {
            let [a, b] = self.in_cell(0, view, middle(bits)).map(|x| usize::from(x > 0.5));
            a + if dim == 3 { 2 * b } else { 0 } == own
        };
        (0..frames).find(here).unwrap_or(0) as u8
    }
}

/// Returns the outward normal of a facet of the reference cell, scaled by its area relative to its parameters.
pub fn reference_normal(cell: Cell, local: usize) -> [f64; 3] {
    let normal = cell.facet_normal(local);
    // The facet opposite a simplex's origin is larger in reference coordinates.
    let scale: f64 = normal.iter().map(|x| x.abs()).sum();
    normal.map(|x| x * scale)
}
