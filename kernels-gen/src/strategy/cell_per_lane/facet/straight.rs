//! Jacobian of the map of a hexahedron with straight edges on its facet, from its corners, for pairs of cells.
//!
//! With the corners f_jk of the facet and the differences s_jk along ξ₀, both bilinear in the coordinates η, ζ of it:
//!
//! ```text
//! ∂x/∂ξ₀ = s₀₀ + η s_η + ζ s_ζ + η ζ s_ηζ      ∂x/∂η = f_η + ζ f_ηζ      ∂x/∂ζ = f_ζ + η f_ηζ
//! ```
//!
//! Of affine cells it is constant. Cells of equal size have the same columns ∂x/∂η and ∂x/∂ζ.

use super::Trace;
use crate::element::LinePoints;
use crate::kir::{Entries, Index, LocalId, ValueId};
use crate::lower::lowering::Lowering;
use fem_dsl::point::Part;

/// The Jacobian of a side: its columns, and how they grow along the facet, unless the cell is affine.
#[derive(Clone)]
pub(super) struct StraightMap {
    quantity: usize,
    is_larger: bool,
    /// True if the columns along the facet are those of the inside.
    is_shared: bool,
    /// ∂x/∂ξ₀, ∂x/∂η, ∂x/∂ζ.
    columns: [Vec<ValueId>; 3],
    growth: Option<Growth>,
}

/// Coefficients of the coordinates.
#[derive(Clone)]
struct Growth {
    /// s_η, s_ζ and s_ηζ.
    slopes: [Vec<ValueId>; 3],
    /// f_ηζ
    twist: Vec<ValueId>,
}

impl StraightMap {
    /// Returns the map of a quantity, if it is that of a hexahedron with straight edges without coordinates and second
    /// derivatives.
    pub(super) fn new(
        s: &mut Lowering<'_>,
        quantity: usize,
        trace: &Trace,
        maps: &[Self],
    ) -> Option<Self> {
        let own = &s.facts.quantities[quantity];
        let inside = maps.first().filter(|_| s.facts.plan.larger.is_none());
        let straight = s.facts.form.dim == 3 && s.facts.sides() > 1 && own.element.degree() == 1;
        let slope = trace
            .slope
            .filter(|_| own.source.is_position() && straight && !own.value && !own.second)?;
        let corners = |s: &mut Lowering<'_>, array: LocalId, corner: usize| -> Vec<ValueId> {
            (0..3).map(|i| s.b.load(array, Index::from(4 * i + corner))).collect()
        };
        let affine = s.facts.plan.affine;
        let first = corners(s, slope, 0);
        let (columns, twist) = match inside {
            Some(inside) => {
                let [_, eta, zeta] = inside.columns.clone();
                ([first, eta, zeta], inside.growth.as_ref().map(|growth| growth.twist.clone()))
            }
            None => {
                let facet: Vec<_> = (0..4).map(|corner| corners(s, trace.face, corner)).collect();
                let along = [minus(s, &facet[1], &facet[0]), minus(s, &facet[2], &facet[0])];
                let twist = (!affine).then(|| {
                    let opposite = minus(s, &facet[3], &facet[2]);
                    minus(s, &opposite, &along[0])
                });
                let [eta, zeta] = along;
                ([first, eta, zeta], twist)
            }
        };
        let growth = twist.map(|twist| {
            let slopes: Vec<_> = (0..4).map(|corner| corners(s, slope, corner)).collect();
            let along = [minus(s, &slopes[1], &slopes[0]), minus(s, &slopes[2], &slopes[0])];
            let opposite = minus(s, &slopes[3], &slopes[2]);
            let mixed = minus(s, &opposite, &along[0]);
            let [eta, zeta] = along;
            Growth { slopes: [eta, zeta, mixed], twist }
        });
        let (is_larger, is_shared) = (trace.line.is_larger, inside.is_some());
        Some(Self { quantity, is_larger, is_shared, columns, growth })
    }

    /// Returns the map on a line of constant ζ.
    pub(super) fn layer(&self, s: &mut Lowering<'_>, points: LinePoints, z: &Index) -> Self {
        let Some(Growth { slopes: [eta, zeta, mixed], twist }) = &self.growth else {
            return self.clone();
        };
        let at = self.coordinate(s, points, z);
        let [normal, first, second] = &self.columns;
        let along = |s: &mut Lowering<'_>| grown(s, at, twist, first);
        let first = if self.is_shared { first.clone() } else { along(s) };
        let columns = [grown(s, at, zeta, normal), first, second.clone()];
        let slopes = [grown(s, at, mixed, eta), zeta.clone(), mixed.clone()];
        Self { columns, growth: Some(Growth { slopes, twist: twist.clone() }), ..self.clone() }
    }

    /// Returns the map at a point of a line.
    pub(super) fn layer_point(&self, s: &mut Lowering<'_>, points: LinePoints, y: &Index) -> Self {
        let Some(Growth { slopes: [eta, ..], twist }) = &self.growth else {
            return self.clone();
        };
        let at = self.coordinate(s, points, y);
        let [normal, first, second] = &self.columns;
        let along = |s: &mut Lowering<'_>| grown(s, at, twist, second);
        let second = if self.is_shared { second.clone() } else { along(s) };
        let columns = [grown(s, at, eta, normal), first.clone(), second];
        Self { columns, growth: None, ..self.clone() }
    }

    /// Returns a coordinate of a point; those of the larger cell lie in the lower half of its facet.
    fn coordinate(&self, s: &mut Lowering<'_>, points: LinePoints, at: &Index) -> ValueId {
        let scale = if self.is_larger { 0.5 } else { 1.0 };
        let name = if self.is_larger { "half_points" } else { "points" };
        let entries = points.points().iter().map(|x| scale * x).collect();
        let table = s.b.table(name, Entries::Real(entries));
        s.b.load_table(table, at.clone())
    }
}

/// Returns the maps at a point, with the columns that the outside shares with the inside.
pub(super) fn joined(mut maps: Vec<StraightMap>) -> Vec<StraightMap> {
    if let [inside, outside] = &mut maps[..]
        && outside.is_shared
    {
        outside.columns[1..].clone_from_slice(&inside.columns[1..]);
    }
    maps
}

/// Returns component c of a column of a quantity's Jacobian, if it is among the maps.
pub(super) fn columns_at(
    maps: &[StraightMap],
    quantity: usize,
    c: usize,
    part: Part,
) -> Option<ValueId> {
    let map = maps.iter().find(|map| map.quantity == quantity)?;
    match part {
        Part::Derivative(axis) => Some(map.columns[axis][c]),
        Part::Value | Part::Second(..) | Part::Exterior(_) => None,
    }
}

fn minus(s: &mut Lowering<'_>, u: &[ValueId], v: &[ValueId]) -> Vec<ValueId> {
    u.iter().zip(v).map(|(&u, &v)| s.b.sub(u, v)).collect()
}

/// Computes v + x u.
fn grown(s: &mut Lowering<'_>, x: ValueId, u: &[ValueId], v: &[ValueId]) -> Vec<ValueId> {
    u.iter().zip(v).map(|(&u, &v)| s.b.fma(x, u, v)).collect()
}
