//! The geometry of tensor cells: what is known of a cell, a layer, a row and a point.

use super::{Point, Tensor};
use crate::abi::Role;
use crate::kir::{Entries, Index, ValueId};
use crate::lower::geometry::{
    AtPoint, MultilinearLayer, MultilinearRow, cofactors, inverse, multilinear_layer,
    multilinear_point,
};
use crate::plan::Geometry;
use crate::strategy::cell_per_lane::setting::{Setting, Source};
use crate::strategy::cell_per_lane::stored_geometry;
use fem_dsl::point::Part;

/// What is known of the geometry of a whole cell.
pub(in crate::strategy::cell_per_lane) enum CellGeometry {
    /// J⁻¹, |det J|, the image of the reference origin, and the columns of J.
    Constant {
        k: Vec<Vec<ValueId>>,
        det: ValueId,
        origin: Vec<ValueId>,
        jacobian: Vec<Vec<ValueId>>,
    },
    /// Nothing: it differs from point to point.
    Varying,
}

/// The geometry of an affine cell.
pub(in crate::strategy::cell_per_lane) fn cell_geometry(s: &mut Setting<'_>) -> CellGeometry {
    if s.plan.geometry != Geometry::Affine || !s.needs_geometry() {
        return CellGeometry::Varying;
    }
    let dim = s.form.dim;
    let base = Index::from(s.b.batch()).times(s.geometry_numbers());
    let argument = s.arguments[&Role::Geometry];
    let origin = (0..dim).map(|i| s.b.load_lanes(argument, base.plus(i))).collect();
    let jacobian: Vec<Vec<ValueId>> = (0..dim)
        .map(|a| {
            let entry = |i: usize| base.plus(dim + i * dim + a);
            (0..dim).map(|i| s.b.load_lanes(argument, entry(i))).collect()
        })
        .collect();
    let (k, det) = inverse(&mut s.b, &jacobian);
    CellGeometry::Constant { k, det, origin, jacobian }
}

/// x = origin + Σ_a ξ_a J_a.
pub(in crate::strategy::cell_per_lane) fn affine_point(
    s: &mut Setting<'_>,
    origin: &[ValueId],
    jacobian: &[Vec<ValueId>],
    coordinates: &[ValueId],
) -> Vec<ValueId> {
    (0..origin.len())
        .map(|i| {
            let terms = jacobian.iter().zip(coordinates);
            terms.fold(origin[i], |sum, (column, &xi)| s.b.fma(xi, column[i], sum))
        })
        .collect()
}

/// Reference coordinates of a point of the rule.
pub(in crate::strategy::cell_per_lane) fn reference_point(
    s: &mut Setting<'_>,
    point: &Index,
) -> Vec<ValueId> {
    let points = s.elements.rule.points();
    (0..s.form.dim)
        .map(|axis| {
            let entries = points.iter().map(|p| p[axis]).collect();
            let table = s.b.table(["xi", "eta", "zeta"][axis], Entries::Real(entries));
            s.b.load_table(table, point.clone())
        })
        .collect()
}

impl Tensor {
    /// Bits of the monomials of the multilinear map, with the direction of the line of points as
    /// the first.
    fn renamed(&self, s: &Setting<'_>, bits: usize) -> usize {
        if !self.column_only(s) {
            return bits;
        }
        // First ← last; the others move up by one.
        let dim = self.dim;
        (0..dim).fold(0, |renamed, direction| {
            let old = (direction + dim - 1) % dim;
            renamed | (((bits >> direction) & 1) << old)
        })
    }

    pub(super) fn layer_geometry(
        &self,
        s: &mut Setting<'_>,
        z: Option<&Index>,
    ) -> Option<MultilinearLayer> {
        if s.plan.geometry != Geometry::Vertices || !s.needs_geometry() {
            return None;
        }
        let dim = self.dim;
        let base = Index::from(s.b.batch()).times(s.geometry_numbers());
        let argument = s.arguments[&Role::Geometry];
        let order: Vec<usize> = (0..1 << dim).map(|bits| self.renamed(s, bits)).collect();
        let zeta = z.map(|z| s.b.load_table(self.points, z.clone()));
        Some(multilinear_layer(&mut s.b, dim, zeta, |b, mode, i| {
            b.load_lanes(argument, base.plus(order[mode] * dim + i))
        }))
    }

    pub(super) fn point_geometry(
        &self,
        s: &mut Setting<'_>,
        cell: &CellGeometry,
        row: Option<&MultilinearRow>,
        at: &Point<'_>,
    ) -> AtPoint {
        let point = &at.number;
        if !s.needs_geometry() {
            let weight = s.b.constant(0.0);
            return AtPoint { k: Vec::new(), det: None, weight, x: Vec::new() };
        }
        if s.plan.geometry == Geometry::Stored {
            return stored_geometry(s, point);
        }
        let weight = s.b.load_table(self.weights, point.clone());
        match (cell, row) {
            (CellGeometry::Constant { k, det, origin, jacobian }, _) => {
                let weight = s.b.mul(weight, *det);
                let x = if s.needs_x {
                    let coordinates = reference_point(s, point);
                    affine_point(s, origin, jacobian, &coordinates)
                } else {
                    Vec::new()
                };
                AtPoint { k: k.clone(), det: None, weight, x }
            }
            (CellGeometry::Varying, Some(row)) => {
                let xi = s.b.load_table(self.points, at.x.clone());
                multilinear_point(&mut s.b, row, xi, weight)
            }
            (CellGeometry::Varying, None) => self.isoparametric_point(s, at, weight),
        }
    }

    fn isoparametric_point(
        &self,
        s: &mut Setting<'_>,
        point: &Point<'_>,
        weight: ValueId,
    ) -> AtPoint {
        let position = s.quantity(Source::Position).expect("curved geometry should be evaluated");
        let columns: Vec<Vec<ValueId>> = (0..self.dim)
            .map(|a| {
                let part = Part::Derivative(a);
                (0..self.dim).map(|i| self.evaluate(s, position, i, part, point)).collect()
            })
            .collect();
        let coordinates = if s.needs_x {
            (0..self.dim).map(|i| self.evaluate(s, position, i, Part::Value, point)).collect()
        } else {
            Vec::new()
        };
        let (k, det) = cofactors(&mut s.b, &columns);
        AtPoint { k, det: Some(det), weight, x: coordinates }
    }
}
