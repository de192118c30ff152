//! The map of a cell, for all strategies: the plan's geometry → values at a point.
//!
//! Quantities that are constant on a cell are computed by [`cell_geometry`] or [`affine_map`]; the others at each
//! point: [`stored_geometry`], [`Affine::at`], [`multilinear`], [`curved`].

use super::facts::{QuantitySource, geometry_element};
use super::lowering::{AffineMap, Lowering};
use crate::abi::{Owner, Role, TILE, coordinate_stride};
use crate::kir::{ArgumentId, Binary, Entries, Index, Positions, Run, Statement, Unary, ValueId};
use crate::lower::jacobian::{
    Bends, PointGeometry, SecondMap, cofactors, inverse, multilinear_layer, multilinear_point,
    multilinear_row, second_map,
};
use crate::plan::Geometry;
use fem_dsl::point::{Input, Part, Side};
use std::collections::BTreeMap;

/// The geometry of a cell that does not depend on the point.
pub(crate) enum CellGeometry {
    /// J is constant.
    Affine(Affine),
    /// Coefficients of the multilinear map: component i of the monomial with bits m at `[m][i]`.
    Multilinear(Vec<Vec<ValueId>>),
    /// None: the geometry differs from point to point.
    Varying,
}

impl CellGeometry {
    /// Returns the map of an affine cell.
    pub(crate) fn affine(&self) -> Affine {
        match self {
            Self::Affine(map) => map.clone(),
            _ => unreachable!("the cell should be affine"),
        }
    }
}

/// An affine map.
#[derive(Clone)]
pub(crate) struct Affine {
    /// J⁻¹.
    pub(crate) k: Vec<Vec<ValueId>>,
    /// |det J|.
    pub(crate) det: ValueId,
    /// The image of the reference origin, if needed.
    pub(crate) origin: Vec<ValueId>,
    /// The columns of J.
    pub(crate) jacobian: Vec<Vec<ValueId>>,
    /// The map of second derivatives, if it is needed.
    second: SecondMap,
}

impl Affine {
    /// Creates the map with this origin and Jacobian.
    fn new(s: &mut Lowering<'_>, origin: Vec<ValueId>, jacobian: Vec<Vec<ValueId>>) -> Self {
        let (k, det) = inverse(&mut s.b, &jacobian);
        let second = match s.facts.needs_second(Side::Inside) {
            true => second_map(&mut s.b, &k, &BTreeMap::new()),
            false => SecondMap::new(),
        };
        Self { k, det, origin, jacobian, second }
    }

    /// Creates the map with this inverse and determinant, without second derivatives.
    pub(crate) fn of_inverse(k: Vec<Vec<ValueId>>, det: ValueId) -> Self {
        Self { k, det, origin: Vec::new(), jacobian: Vec::new(), second: SecondMap::new() }
    }

    /// Returns the geometry at a point of this weight; `reference` are its reference coordinates.
    pub(crate) fn at(
        &self,
        s: &mut Lowering<'_>,
        weight: ValueId,
        reference: impl FnOnce(&mut Lowering<'_>) -> Vec<ValueId>,
    ) -> PointGeometry {
        let weight = s.b.mul(weight, self.det);
        let mut x = Vec::new();
        if s.facts.needs_x {
            let coordinates = reference(s);
            x = self.image(s, &coordinates);
        }
        let second = [self.second.clone(), SecondMap::new()];
        let columns = (!self.jacobian.is_empty()).then(|| self.jacobian.clone());
        PointGeometry { second, columns, ..PointGeometry::new(self.k.clone(), None, weight, x) }
    }

    /// Computes x = origin + Σ_a ξ_a J_a.
    fn image(&self, s: &mut Lowering<'_>, coordinates: &[ValueId]) -> Vec<ValueId> {
        let of = |i: usize| {
            let terms = self.jacobian.iter().zip(coordinates);
            terms.fold(self.origin[i], |sum, (column, &xi)| s.b.fma(xi, column[i], sum))
        };
        (0..self.origin.len()).map(of).collect()
    }
}

/// Computes the map of an affine cell.
pub(crate) fn affine_map(s: &mut Lowering<'_>) -> Affine {
    cell_geometry(s).affine()
}

/// Computes the geometry that is constant on a cell.
pub(crate) fn cell_geometry(s: &mut Lowering<'_>) -> CellGeometry {
    match s.facts.plan.geometry {
        _ if !s.facts.needs_geometry() => return CellGeometry::Varying,
        Geometry::Corners if s.facts.elements.cell.is_factorised() => {
            return CellGeometry::Multilinear(modes(s));
        }
        Geometry::Corners => {
            let corners = corners(s);
            let edges: Vec<_> = corners[1..].iter().map(|tip| minus(s, tip, &corners[0])).collect();
            return CellGeometry::Affine(Affine::new(s, corners[0].clone(), edges));
        }
        Geometry::Affine => {}
        _ => return CellGeometry::Varying,
    }
    let given = s.affine.take();
    let AffineMap { origin, jacobian } = given.unwrap_or_else(|| load_affine(s));
    CellGeometry::Affine(Affine::new(s, origin, jacobian))
}

/// Loads the stored map of an affine cell.
pub(crate) fn load_affine(s: &mut Lowering<'_>) -> AffineMap {
    let dim = s.facts.form.dim;
    let base = Index::from(s.b.batch()).times(s.facts.geometry_numbers());
    let argument = s.arguments[&Role::Geometry];
    let x = if s.facts.needs_x { dim } else { 0 };
    let origin = (0..x).map(|i| s.b.load_lanes(argument, base.plus(dim * dim + i))).collect();
    let jacobian = (0..dim)
        .map(|a| {
            let entry = |i: usize| base.plus(i * dim + a);
            (0..dim).map(|i| s.b.load_lanes(argument, entry(i))).collect()
        })
        .collect();
    AffineMap { origin, jacobian }
}

fn minus(s: &mut Lowering<'_>, u: &[ValueId], v: &[ValueId]) -> Vec<ValueId> {
    u.iter().zip(v).map(|(&u, &v)| s.b.sub(u, v)).collect()
}

/// Gathers the coordinates of the corners by the nodes of the first field, if the plan needs them.
pub(crate) fn gather_corners(s: &mut Lowering<'_>) {
    if s.facts.plan.geometry != Geometry::Corners || !s.facts.needs_geometry() {
        return;
    }
    let dim = s.facts.form.dim;
    let count = geometry_element(s.facts.elements, 1).count();
    let local = s.b.local("corners", count * dim);
    let positions = (0..count * dim).map(|i| i as u32).collect();
    let positions = s.b.table("corner_places", Entries::Position(positions));
    if let Some(place) = s.in_slots(Role::Coordinates, 0) {
        for corner in 0..count {
            let at = Index::from(s.b.batch()).times(count).plus(corner);
            for i in 0..dim {
                let x = place.load(&mut s.b, &at, i);
                s.b.store(local, Index::from(corner * dim + i), x);
            }
        }
        s.corners = Some(local);
        return;
    }
    let arrays = |role: Role| s.arguments.get(&role).copied();
    let axes: Vec<ArgumentId> = (0..dim).filter_map(|i| arrays(Role::Axis(i))).collect();
    let source = arrays(Role::Coordinates);
    let map = s.arguments[&Role::Map(Owner::Field(0), s.facts.by_node())];
    for corner in 0..count {
        let at = Index::from(s.b.batch()).times(count).plus(corner);
        let Some(source) = source.filter(|_| !s.facts.plan.tiles) else {
            for i in 0..dim {
                let (from, offset) = match source {
                    Some(tiles) => (tiles, i * TILE),
                    None => (axes[i], 0),
                };
                let x = s.b.gather(from, map, at.clone(), (1, offset), false);
                s.b.store(local, Index::from(corner * dim + i), x);
            }
            continue;
        };
        let (scale, first, length) = (coordinate_stride(dim), corner * dim, dim);
        let positions = Positions::Table(positions);
        let run =
            Run { map, at, scale, local, positions, first, length, masked: false, lines: None };
        s.b.statement(Statement::GatherRun { source, run });
    }
    s.corners = Some(local);
}

/// Returns the coordinates of the corners.
fn corners(s: &mut Lowering<'_>) -> Vec<Vec<ValueId>> {
    let (dim, count) = (s.facts.form.dim, geometry_element(s.facts.elements, 1).count());
    let local = s.corners.expect("the corners should have been gathered");
    let corner = |s: &mut Lowering<'_>, a: usize| {
        (0..dim).map(|i| s.b.load(local, Index::from(a * dim + i))).collect()
    };
    (0..count).map(|a| corner(s, a)).collect()
}

/// Returns the coefficient of the monomial m: Σ_{s ⊆ m} (−1)^|m∖s| x_s.
fn modes(s: &mut Lowering<'_>) -> Vec<Vec<ValueId>> {
    let mut modes = corners(s);
    for axis in 0..s.facts.form.dim {
        let bit = 1 << axis;
        for m in (0..modes.len()).filter(|m| m & bit != 0) {
            modes[m] = minus(s, &modes[m], &modes[m ^ bit]);
        }
    }
    modes
}

/// Returns the geometry at a point if it is not needed or was stored.
pub(crate) fn stored_geometry(s: &mut Lowering<'_>, point: &Index) -> Option<PointGeometry> {
    if !s.facts.needs_geometry() {
        return Some(unread(s));
    }
    (s.facts.plan.geometry == Geometry::Stored).then(|| stored(s, point))
}

/// Returns placeholder geometry that is not read.
pub(crate) fn unread(s: &mut Lowering<'_>) -> PointGeometry {
    PointGeometry::new(Vec::new(), None, s.b.constant(0.0), Vec::new())
}

/// Loads geometry that was stored at a point.
fn stored(s: &mut Lowering<'_>, point: &Index) -> PointGeometry {
    let dim = s.facts.elements.cell.dim();
    let numbers = s.facts.geometry_numbers();
    let argument = s.arguments[&Role::Geometry];
    let x = if s.facts.needs_x { dim } else { 0 };
    let load = |number: usize| {
        let at = s.stored_index(numbers, point, number);
        s.b.load_lanes(argument, at)
    };
    let loaded: Vec<ValueId> = (0..1 + dim * dim + x).map(load).collect();
    let (weight, rest) = (loaded[0], &loaded[1..]);
    let k = rest[..dim * dim].chunks(dim).map(<[ValueId]>::to_vec).collect();
    let x = rest[dim * dim..].to_vec();
    PointGeometry::new(k, None, weight, x)
}

/// Returns the weight of a point of the rule.
pub(crate) fn weight(s: &mut Lowering<'_>, point: &Index) -> ValueId {
    let weights = Entries::Real(s.facts.rule_weights());
    let weights = s.point_table("weights", weights);
    let weight = s.b.load_table(weights, point.clone());
    s.b.name(weight, "w")
}

/// Returns the reference coordinates of a point of the rule.
pub(crate) fn reference_point(s: &mut Lowering<'_>, point: &Index) -> Vec<ValueId> {
    let points = s.facts.rule_points();
    (0..s.facts.form.dim)
        .map(|axis| {
            let entries = points.iter().map(|p| p[axis]).collect();
            let table = s.point_table(["xi", "eta", "zeta"][axis], Entries::Real(entries));
            s.b.load_table(table, point.clone())
        })
        .collect()
}

/// Computes the geometry at a point of a cell with straight edges, from the coefficients of its map.
fn multilinear(s: &mut Lowering<'_>, point: &Index, weight: ValueId) -> PointGeometry {
    let dim = s.facts.form.dim;
    let at = reference_point(s, point);
    let base = Index::from(s.b.batch()).times(s.facts.geometry_numbers());
    let argument = s.arguments[&Role::Geometry];
    let layer = multilinear_layer(&mut s.b, dim, at.get(2).copied(), |b, mode, i| {
        b.load_lanes(argument, base.plus(mode * dim + i))
    });
    let needs_x = s.facts.needs_x;
    let row = multilinear_row(&mut s.b, &layer, at[1], 0, needs_x, 0);
    multilinear_point(&mut s.b, &row, at[0], weight)
}

/// Computes the geometry at a point of a curved cell; `position` evaluates component i of the map, or a derivative of
/// it.
pub(crate) fn curved(
    s: &mut Lowering<'_>,
    weight: ValueId,
    mut position: impl FnMut(&mut Lowering<'_>, usize, Part) -> ValueId,
) -> PointGeometry {
    let dim = s.facts.form.dim;
    let mut part = |s: &mut Lowering<'_>, part: Part| -> Vec<ValueId> {
        (0..dim).map(|i| position(s, i, part)).collect()
    };
    let columns: Vec<_> = (0..dim).map(|a| part(s, Part::Derivative(a))).collect();
    let x = if s.facts.needs_x { part(s, Part::Value) } else { Vec::new() };
    let (k, det) = cofactors(&mut s.b, &columns);
    PointGeometry { columns: Some(columns), ..PointGeometry::new(k, Some(det), weight, x) }
}

/// Computes the geometry at a point of the rule: `map` supplies the map of an affine cell, `position` component i of a
/// curved one, or a derivative of it.
pub(crate) fn geometry_at(
    s: &mut Lowering<'_>,
    point: &Index,
    map: impl FnOnce(&mut Lowering<'_>) -> Affine,
    mut position: impl FnMut(&mut Lowering<'_>, usize, Part) -> ValueId,
) -> PointGeometry {
    if let Some(known) = stored_geometry(s, point) {
        return known;
    }
    let weight = weight(s, point);
    let at = match s.facts.plan.geometry {
        Geometry::Vertices => multilinear(s, point, weight),
        Geometry::Nodes(_) => curved(s, weight, &mut position),
        _ => map(s).at(s, weight, |s| reference_point(s, point)),
    };
    let at = if s.facts.on_facets() { on_facet(s, at) } else { at };
    with_second(s, at, position)
}

/// Adds second derivatives of the map of a cell that is given by its nodes, and the map of those of functions, if they are
/// needed; `position` evaluates a part of component i of the map.
pub(crate) fn with_second(
    s: &mut Lowering<'_>,
    at: PointGeometry,
    position: impl FnMut(&mut Lowering<'_>, usize, Part) -> ValueId,
) -> PointGeometry {
    let nodes = matches!(s.facts.plan.geometry, Geometry::Nodes(_));
    if !nodes || !s.facts.needs_bends(Side::Inside) {
        return at;
    }
    let own = bends(s, Side::Inside, position);
    let [_, outside] = at.bends;
    let at = PointGeometry { bends: [own, outside], ..at };
    if !s.facts.needs_second(Side::Inside) {
        return at;
    }
    let at = match at.det {
        None => at,
        Some(det) => {
            let reciprocal = s.b.reciprocal(det);
            let size = s.b.unary(Unary::Abs, det);
            let row = |row: &Vec<ValueId>| row.iter().map(|&k| s.b.mul(k, reciprocal)).collect();
            let k = at.k.iter().map(row).collect();
            PointGeometry { k, det: None, weight: s.b.mul(at.weight, size), ..at }
        }
    };
    let [_, outside] = at.second;
    let second = [second_map(&mut s.b, &at.k, &at.bends[0]), outside];
    PointGeometry { second, ..at }
}

/// Evaluates the second derivatives of the map of a cell that are not 0.
fn bends(
    s: &mut Lowering<'_>,
    side: Side,
    mut position: impl FnMut(&mut Lowering<'_>, usize, Part) -> ValueId,
) -> Bends {
    let dim = s.facts.form.dim;
    let mut bends = Bends::new();
    let Some(map) = position_of(s, side).map(|map| &s.facts.quantities[map]) else { return bends };
    if !map.second {
        return bends;
    }
    let straight = map.element.degree() == 1;
    for part in Part::of_order(2, dim) {
        // A multilinear map is linear along each axis.
        if let Part::Second(a, b) = part
            && !(straight && a == b)
        {
            bends.insert((a, b), (0..dim).map(|i| position(s, i, part)).collect());
        }
    }
    bends
}

/// Converts the point to one of the facet ξ₀ = 0: with the normal, and with ds for dx.
///
/// ```text
/// ds = w |det J| |∇ξ₀|      n = −∇ξ₀ / |∇ξ₀|      hn = 1 / |∇ξ₀|
/// ```
fn on_facet(s: &mut Lowering<'_>, at: PointGeometry) -> PointGeometry {
    let det = at.det.expect("a facet's cell should be given by its nodes");
    let first = at.k[0].clone();
    // |cof₀| = |det J| |∇ξ₀|
    let length = norm(s, &first);
    let weight = s.b.mul(at.weight, length);
    let reciprocal = s.b.reciprocal(det);
    let k: Vec<Vec<ValueId>> =
        at.k.iter().map(|row| row.iter().map(|&k| s.b.mul(k, reciprocal)).collect()).collect();
    let (reads_normal, reads_extent) = (s.facts.reads_normal(), s.facts.reads_extent());
    if s.facts.sides() > 1 {
        let (normal, inside) = of_pair(s, (det, reciprocal), (&first, length));
        return PointGeometry { k, det: None, weight, normal, extents: [inside, None], ..at };
    }
    let extent = (reads_normal || reads_extent).then(|| {
        let size = s.b.unary(Unary::Abs, det);
        s.b.binary(Binary::Div, size, length)
    });
    let normal = match extent.filter(|_| reads_normal) {
        Some(extent) => {
            let scale = s.b.unary(Unary::Neg, extent);
            k[0].iter().map(|&k| s.b.mul(k, scale)).collect()
        }
        None => Vec::new(),
    };
    let extents = [extent.filter(|_| reads_extent), None];
    PointGeometry { k, det: None, weight, normal, extents, ..at }
}

/// Computes the normal of a pair's inside and its extent from the facet, with one division each: divisions take as long
/// as the rest of a point. `first` is cof₀, of this length.
fn of_pair(
    s: &mut Lowering<'_>,
    (det, reciprocal): (ValueId, ValueId),
    (first, length): (&[ValueId], ValueId),
) -> (Vec<ValueId>, Option<ValueId>) {
    let mut normal = Vec::new();
    if s.facts.reads_normal() {
        let sign = s.b.unary(Unary::Sign, det);
        let scale = s.b.reciprocal(length);
        let scale = s.b.mul(sign, scale);
        let scale = s.b.unary(Unary::Neg, scale);
        normal = first.iter().map(|&cofactor| s.b.mul(cofactor, scale)).collect();
    }
    let extent = s.facts.inputs.contains(&Input::Extent(Side::Inside)).then(|| {
        let size = s.b.unary(Unary::Abs, reciprocal);
        let slope = s.b.mul(size, length);
        s.b.reciprocal(slope)
    });
    (normal, extent)
}

/// Returns the quantity of the map of a curved cell on a side, if it is evaluated.
pub(crate) fn position_of(s: &Lowering<'_>, side: Side) -> Option<usize> {
    s.facts.quantity(QuantitySource::Position(side))
}

/// Adds the map of the outside to the geometry of a pair of cells, if it is needed; `position` evaluates component i of
/// a quantity, or a derivative of it.
pub(crate) fn with_outside(
    s: &mut Lowering<'_>,
    at: PointGeometry,
    mut position: impl FnMut(&mut Lowering<'_>, usize, usize, Part) -> ValueId,
) -> PointGeometry {
    let Some(outside) = position_of(s, Side::Outside) else { return at };
    let dim = s.facts.form.dim;
    // The point itself is that of the inside.
    let mut column = |s: &mut Lowering<'_>, a: usize| -> Vec<ValueId> {
        (0..dim).map(|i| position(s, outside, i, Part::Derivative(a))).collect()
    };
    let columns: Vec<Vec<ValueId>> = (0..dim).map(|a| column(s, a)).collect();
    let (k, det) = cofactors(&mut s.b, &columns);
    let reciprocal = s.b.reciprocal(det);
    let extents = [at.extents[0], extent_outside(s, &k[0], reciprocal)];
    let row = |row: &Vec<ValueId>| row.iter().map(|&k| s.b.mul(k, reciprocal)).collect();
    let k: Vec<Vec<ValueId>> = k.iter().map(row).collect();
    let ([inside, mut second], [own, mut other]) = (at.second, at.bends);
    if s.facts.needs_bends(Side::Outside) {
        other = bends(s, Side::Outside, |s, i, part| position(s, outside, i, part));
    }
    if s.facts.needs_second(Side::Outside) {
        second = second_map(&mut s.b, &k, &other);
    }
    let (second, bends) = ([inside, second], [own, other]);
    PointGeometry { outside: k, extents, second, bends, ..at }
}

/// Computes the length of a vector.
pub(crate) fn norm(s: &mut Lowering<'_>, vector: &[ValueId]) -> ValueId {
    let square = s.b.mul(vector[0], vector[0]);
    let square = vector[1..].iter().fold(square, |sum, &k| s.b.fma(k, k, sum));
    s.b.unary(Unary::Sqrt, square)
}

/// Computes 1 / |∇ξ₀| of the outside, if it is read, from cof₀ and 1 / det J. Of equal facets |cof₀| is that of the inside.
fn extent_outside(s: &mut Lowering<'_>, first: &[ValueId], reciprocal: ValueId) -> Option<ValueId> {
    s.facts.inputs.contains(&Input::Extent(Side::Outside)).then(|| {
        let length = norm(s, first);
        let size = s.b.unary(Unary::Abs, reciprocal);
        let slope = s.b.mul(size, length);
        s.b.reciprocal(slope)
    })
}

/// Returns the quantity of a curved cell's map.
pub(crate) fn position(s: &Lowering<'_>) -> usize {
    position_of(s, Side::Inside).expect("curved geometry should be evaluated")
}
