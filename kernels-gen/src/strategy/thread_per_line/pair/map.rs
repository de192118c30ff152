//! The maps of both cells of a pair at the point of a thread.
//!
//! Both have the same nodes on the facet, so that only the column of the Jacobian that leaves the facet differs. Of cells
//! with straight edges the coefficients of the multilinear maps are in shared memory; of curved ones values on the facet
//! at the nodes of the map, slopes of the inside and slopes of the outside.

use super::Pairs;
use crate::abi::Role;
use crate::element::Element;
use crate::kir::{Condition, Entries, Index, Unary, ValueId, VarId};
use crate::lower::contract::Matrix;
use crate::lower::facet_line::{FacetLine, weighted};
use crate::lower::facts::geometry_element;
use crate::lower::geometry::{norm, reference_point, unread, weight};
use crate::lower::jacobian::{self, PointGeometry};
use crate::lower::lowering::Lowering;
use crate::plan::Geometry;
use fem_dsl::point::Side;

/// The columns of the Jacobian of the inside, the place of the point, and the first column of the outside.
type MapValues = (Vec<Vec<ValueId>>, Vec<ValueId>, Option<Vec<ValueId>>);

impl Pairs {
    /// Copies the coefficients of the maps of both cells, or the values and slopes of curved ones, to shared memory.
    pub(super) fn stage_maps(&self, s: &mut Lowering<'_>) {
        let count = map_numbers(s);
        if count == 0 {
            return;
        }
        if let Some(element) = curved(s) {
            return self.stage_nodes(s, element);
        }
        let (numbers, first) = (s.facts.geometry_numbers(), first_mode(s));
        let argument = s.arguments[&Role::Geometry];
        let base = Index::from(s.b.batch()).times(numbers).plus(first);
        s.b.comment("the maps of the cells");
        for done in (0..count).step_by(self.members) {
            s.b.open_when();
            let at = Index::from(self.point).plus(done);
            let number = s.b.load_lanes(argument, &base + &at);
            s.b.store_shared(self.shared, &self.place(self.maps) + &at, number);
            let left = (count - done).min(self.members);
            let all = left == self.members;
            let conditions = (!all).then_some(Condition::Below(self.point, left));
            s.b.close_when(conditions.into_iter().collect());
        }
    }

    /// Computes the geometry at the point of the thread.
    pub(super) fn geometry(&self, s: &mut Lowering<'_>) -> PointGeometry {
        if !s.facts.needs_geometry() {
            return unread(s);
        }
        let point = Index::from(self.point);
        let weight = weight(s, &point);
        let reference = reference_point(s, &point);
        let (mut columns, x, outside) = match curved(s) {
            Some(element) => self.curved(s, element),
            None => self.straight(s, &reference),
        };
        // |cof₀| = |det J| |∇ξ₀|: no division but for the reciprocals.
        let (cofactors, det) = jacobian::cofactors(&mut s.b, &columns);
        let length = norm(s, &cofactors[0]);
        let weight = s.b.mul(weight, length);
        let (k, extent) = Self::inverse(s, &cofactors, det, length);
        let mut at = PointGeometry::new(k, None, weight, x);
        if s.facts.reads_normal() {
            let sign = s.b.unary(Unary::Sign, det);
            let scale = s.b.reciprocal(length);
            let scale = s.b.mul(sign, scale);
            let scale = s.b.unary(Unary::Neg, scale);
            at.normal = cofactors[0].iter().map(|&cofactor| s.b.mul(cofactor, scale)).collect();
        }
        at.extents[0] = Some(extent);
        if let Some(outside) = outside {
            columns[0] = outside;
            let (cofactors, det) = jacobian::cofactors(&mut s.b, &columns);
            let (k, extent) = Self::inverse(s, &cofactors, det, length);
            (at.outside, at.extents[1]) = (k, Some(extent));
        }
        at
    }

    /// Computes the inverse of a map from its cofactors and its determinant, and the extent of the cell from the facet;
    /// `length` is that of the first row of cofactors.
    fn inverse(
        s: &mut Lowering<'_>,
        cofactors: &[Vec<ValueId>],
        det: ValueId,
        length: ValueId,
    ) -> (Vec<Vec<ValueId>>, ValueId) {
        let one_over_det = s.b.reciprocal(det);
        let row = |row: &Vec<ValueId>| row.iter().map(|&c| s.b.mul(c, one_over_det)).collect();
        let k = cofactors.iter().map(row).collect();
        let one_over_size = s.b.unary(Unary::Abs, one_over_det);
        // Divisions by it are products with its reciprocal.
        let one_over_extent = s.b.mul(length, one_over_size);
        (k, s.b.reciprocal(one_over_extent))
    }

    /// Returns the coefficient of the monomial with these bits in the map of a cell.
    fn mode(&self, s: &mut Lowering<'_>, side: Side, bits: usize) -> Vec<ValueId> {
        let first = side as usize * (self.dim << self.dim) + bits * self.dim - first_mode(s);
        (0..self.dim)
            .map(|i| s.b.load_shared(self.shared, self.place(self.maps + first + i)))
            .collect()
    }

    /// Computes start + factor · slope.
    fn line(
        s: &mut Lowering<'_>,
        start: &[ValueId],
        slope: &[ValueId],
        xi: ValueId,
    ) -> Vec<ValueId> {
        start.iter().zip(slope).map(|(&start, &slope)| s.b.fma(xi, slope, start)).collect()
    }

    /// Computes the columns of the Jacobian of the inside on the facet ξ₀ = 0, the place of the point, and the column of
    /// the outside that leaves the facet, each if it is needed, of cells with straight edges.
    fn straight(&self, s: &mut Lowering<'_>, at: &[ValueId]) -> MapValues {
        let first = self.bilinear(s, (Side::Inside, 1), at);
        let mode = |s: &mut Lowering<'_>, bits: usize| self.mode(s, Side::Inside, bits);
        let mut columns = vec![first, mode(s, 2)];
        if self.dim == 3 {
            let (third, mixed) = (mode(s, 4), mode(s, 6));
            columns[1] = Self::line(s, &columns[1], &mixed, at[2]);
            columns.push(Self::line(s, &third, &mixed, at[1]));
        }
        let x = if s.facts.needs_x { self.bilinear(s, (Side::Inside, 0), at) } else { Vec::new() };
        let outside = s.facts.needs_outside();
        (columns, x, outside.then(|| self.bilinear(s, (Side::Outside, 1), at)))
    }

    /// Computes Σ_m c_m η^m₁ ζ^m₂ at the point from the coefficients of the monomials with bit `along` for ξ₀: the map on
    /// the facet for 0, the column of the Jacobian that leaves the facet for 1.
    fn bilinear(
        &self,
        s: &mut Lowering<'_>,
        (side, along): (Side, usize),
        at: &[ValueId],
    ) -> Vec<ValueId> {
        let mode = |s: &mut Lowering<'_>, bits: usize| self.mode(s, side, bits | along);
        let (start, slope) = (mode(s, 0), mode(s, 2));
        let low = Self::line(s, &start, &slope, at[1]);
        if self.dim == 2 {
            return low;
        }
        let (start, slope) = (mode(s, 4), mode(s, 6));
        let growth = Self::line(s, &start, &slope, at[1]);
        Self::line(s, &low, &growth, at[2])
    }

    /// Stores values on the facet, slopes of the inside and those of the outside at the nodes of curved maps.
    fn stage_nodes(&self, s: &mut Lowering<'_>, element: Element) {
        let line = FacetLine::new(self.points, element, false);
        let (dim, plane) = (self.dim, line.n.pow(self.dim as u32 - 1));
        let argument = s.arguments[&Role::Geometry];
        let base = Index::from(s.b.batch()).times(s.facts.geometry_numbers());
        let sides = if s.facts.needs_outside() { 2 } else { 1 };
        // Component i of a line of nodes: its first number among those of both cells, by its place in shared memory.
        let starts: Vec<usize> = (0..sides * plane)
            .flat_map(|line_of_side| (0..dim).map(move |i| line_of_side * dim * line.n + i))
            .collect();
        let lines = plane * dim;
        s.b.comment("the maps of the cells");
        for (side, first) in [(Side::Inside, 0), (Side::Outside, lines)] {
            let starts = starts.get(first..).unwrap_or_default();
            let starts = &starts[..lines.min(starts.len())];
            for (done, some) in (0..).step_by(self.members).zip(starts.chunks(self.members)) {
                let own = |thread: usize| some[(thread % self.members).min(some.len() - 1)] as u32;
                let threads = s.b.members();
                let start = s.b.listed_var("start", (0..threads).map(own).collect());
                s.b.open_when();
                let values: Vec<ValueId> = (0..line.n)
                    .map(|i| s.b.load_lanes(argument, (&base + &Index::from(start)).plus(i * dim)))
                    .collect();
                let place = &self.place(self.maps + done) + &Index::from(self.point);
                if side == Side::Inside {
                    let face = weighted(&mut s.b, &line.ends, &values);
                    s.b.store_shared(self.shared, place.clone(), face);
                }
                let slope = weighted(&mut s.b, &line.slopes, &values);
                s.b.store_shared(self.shared, place.plus(lines + first), slope);
                let all = some.len() == self.members;
                let conditions = (!all).then_some(Condition::Below(self.point, some.len()));
                s.b.close_when(conditions.into_iter().collect());
            }
        }
    }

    /// Computes the same as [`Pairs::straight`] for curved cells.
    fn curved(&self, s: &mut Lowering<'_>, element: Element) -> MapValues {
        let line = FacetLine::new(self.points, element, false);
        let lines = line.n.pow(self.dim as u32 - 1) * self.dim;
        let tables = [("map_values", &line.values), ("map_slopes", &line.derivatives)];
        let [y, z] = self.digits;
        let axes = [y, z].map(|digit| tables.map(|(name, of)| basis(s, name, of, digit)));
        let place = if s.facts.needs_x { 0..self.dim } else { 0..0 };
        let x = place.map(|i| self.at_nodes(s, (0, i), &axes, [0, 0])).collect();
        let mut columns = Vec::new();
        for (first, derived) in
            [(lines, [0, 0]), (0, [1, 0]), (0, [0, 1])].into_iter().take(self.dim)
        {
            let column = (0..self.dim).map(|i| self.at_nodes(s, (first, i), &axes, derived));
            columns.push(column.collect());
        }
        let outside = s.facts.needs_outside().then(|| {
            (0..self.dim).map(|i| self.at_nodes(s, (2 * lines, i), &axes, [0, 0])).collect()
        });
        (columns, x, outside)
    }

    /// Evaluates a component of numbers at the nodes of the maps from `first` on: with the values of the basis functions
    /// along each axis of the plane, or the derivatives.
    fn at_nodes(
        &self,
        s: &mut Lowering<'_>,
        (first, component): (usize, usize),
        axes: &[[Vec<ValueId>; 2]; 2],
        derived: [usize; 2],
    ) -> ValueId {
        let (along, across) = (&axes[0][derived[0]], &axes[1][derived[1]]);
        let n = along.len();
        let row = |s: &mut Lowering<'_>, b: usize| {
            let mut sum = None;
            for (a, &factor) in along.iter().enumerate() {
                let place = self.maps + first + (b * n + a) * self.dim + component;
                let value = s.b.load_shared(self.shared, self.place(place));
                sum = Some(add_product(s, factor, value, sum));
            }
            sum.expect("a line should have a node")
        };
        if self.dim == 2 {
            return row(s, 0);
        }
        let mut sum = None;
        for (b, &factor) in across.iter().enumerate() {
            let value = row(s, b);
            sum = Some(add_product(s, factor, value, sum));
        }
        sum.expect("a line should have a node")
    }
}

/// Computes factor · value + sum.
fn add_product(
    s: &mut Lowering<'_>,
    factor: ValueId,
    value: ValueId,
    sum: Option<ValueId>,
) -> ValueId {
    match sum {
        None => s.b.mul(factor, value),
        Some(sum) => s.b.fma(factor, value, sum),
    }
}

/// Returns a row of a table of basis functions, by a coordinate of the thread's point.
fn basis(s: &mut Lowering<'_>, name: &str, of: &Matrix, digit: VarId) -> Vec<ValueId> {
    let entries = (0..of.rows).flat_map(|q| (0..of.columns).map(move |a| of.at(q, a)));
    let table = s.b.spread_table(name, Entries::Real(entries.collect()));
    let at = |a: usize| Index::from(digit).times(of.columns).plus(a);
    (0..of.columns).map(|a| s.b.load_table(table, at(a))).collect()
}

/// Returns the element of the maps of curved cells.
fn curved(s: &Lowering<'_>) -> Option<Element> {
    match s.facts.plan.geometry {
        Geometry::Nodes(order) => Some(geometry_element(s.facts.elements, order).into()),
        _ => None,
    }
}

/// Returns the first coefficient in use: the image of the origin is needed for coordinates only.
fn first_mode(s: &Lowering<'_>) -> usize {
    if s.facts.needs_x { 0 } else { s.facts.form.dim }
}

/// Returns the numbers of a pair's maps in shared memory.
pub(super) fn map_numbers(s: &Lowering<'_>) -> usize {
    let (dim, facts) = (s.facts.form.dim, s.facts);
    let sides = if facts.needs_outside() { 2 } else { 1 };
    match curved(s) {
        _ if !facts.needs_geometry() => 0,
        Some(element) => (1 + sides) * (element.degree() + 1).pow(dim as u32 - 1) * dim,
        None => sides * (dim << dim) - first_mode(s),
    }
}
