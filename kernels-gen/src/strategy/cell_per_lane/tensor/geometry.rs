//! The geometry of tensor cells: what is known of a cell, a layer, a row and a point.

use super::{Point, Tensor};
use crate::abi::{Indices, Owner, Role, coordinate_stride};
use crate::kir::build::Builder;
use crate::kir::{Entries, Index, Statement, ValueId};
use crate::lower::geometry::{
    AtPoint, MultilinearLayer, MultilinearRow, cofactors, inverse, multilinear_layer,
    multilinear_point,
};
use crate::plan::Geometry;
use crate::strategy::cell_per_lane::setting::{Setting, Source, node_count};
use crate::strategy::cell_per_lane::stored_geometry;
use fem_dsl::point::Part;

/// What is known of the geometry of a whole cell.
pub(in crate::strategy) enum CellGeometry {
    /// J⁻¹, |det J|, the image of the reference origin, and the columns of J.
    Constant {
        k: Vec<Vec<ValueId>>,
        det: ValueId,
        origin: Vec<ValueId>,
        jacobian: Vec<Vec<ValueId>>,
    },
    /// Coefficients of the multilinear map: component i of the monomial with bits m at `[m][i]`.
    Multilinear(Vec<Vec<ValueId>>),
    /// Nothing: it differs from point to point.
    Varying,
}

/// The geometry of an affine cell.
pub(in crate::strategy) fn cell_geometry(s: &mut Setting<'_>) -> CellGeometry {
    let dim = s.form.dim;
    match s.plan.geometry {
        _ if !s.needs_geometry() => return CellGeometry::Varying,
        Geometry::Corners if s.elements.cell.is_tensor() => {
            return CellGeometry::Multilinear(modes(s));
        }
        Geometry::Corners => {
            let corners = corners(s);
            let edges: Vec<_> = corners[1..].iter().map(|tip| minus(s, tip, &corners[0])).collect();
            return constant(s, corners[0].clone(), edges);
        }
        Geometry::Affine => {}
        _ => return CellGeometry::Varying,
    }
    let base = Index::from(s.b.batch()).times(s.geometry_numbers());
    let argument = s.arguments[&Role::Geometry];
    let origin = (0..dim).map(|i| s.b.load_lanes(argument, base.plus(i))).collect();
    let jacobian: Vec<Vec<ValueId>> = (0..dim)
        .map(|a| {
            let entry = |i: usize| base.plus(dim + i * dim + a);
            (0..dim).map(|i| s.b.load_lanes(argument, entry(i))).collect()
        })
        .collect();
    constant(s, origin, jacobian)
}

fn constant(
    s: &mut Setting<'_>,
    origin: Vec<ValueId>,
    jacobian: Vec<Vec<ValueId>>,
) -> CellGeometry {
    let (k, det) = inverse(&mut s.b, &jacobian);
    CellGeometry::Constant { k, det, origin, jacobian }
}

fn minus(s: &mut Setting<'_>, u: &[ValueId], v: &[ValueId]) -> Vec<ValueId> {
    u.iter().zip(v).map(|(&u, &v)| s.b.sub(u, v)).collect()
}

/// Gathers the coordinates of the corners by the nodes of the first field, where the plan says so.
pub(in crate::strategy) fn gather_corners(s: &mut Setting<'_>) {
    if s.plan.geometry != Geometry::Corners || !s.needs_geometry() {
        return;
    }
    let dim = s.form.dim;
    let count = node_count(s.elements, 1);
    let local = s.b.local("corners", count * dim);
    let positions = (0..count * dim).map(|i| i as u32).collect();
    let positions = s.b.table("corner_places", Entries::Position(positions));
    let source = s.arguments[&Role::Coordinates];
    let map = s.arguments[&Role::Map(Owner::Field(0), Indices::Nodes)];
    for corner in 0..count {
        let at = Index::from(s.b.batch()).times(count).plus(corner);
        let (scale, first, length) = (coordinate_stride(dim), corner * dim, dim);
        s.b.statement(Statement::GatherRun {
            source,
            map,
            at,
            scale,
            local,
            positions,
            first,
            length,
        });
    }
    s.corners = Some(local);
}

/// The coordinates of the corners.
fn corners(s: &mut Setting<'_>) -> Vec<Vec<ValueId>> {
    let (dim, count) = (s.form.dim, node_count(s.elements, 1));
    let local = s.corners.expect("the corners should have been gathered");
    let corner = |s: &mut Setting<'_>, a: usize| {
        (0..dim).map(|i| s.b.load(local, Index::from(a * dim + i))).collect()
    };
    (0..count).map(|a| corner(s, a)).collect()
}

/// The coefficient of the monomial m: Σ_{s ⊆ m} (−1)^|m∖s| x_s.
fn modes(s: &mut Setting<'_>) -> Vec<Vec<ValueId>> {
    let mut modes = corners(s);
    for axis in 0..s.form.dim {
        let bit = 1 << axis;
        for m in (0..modes.len()).filter(|m| m & bit != 0) {
            modes[m] = minus(s, &modes[m], &modes[m ^ bit]);
        }
    }
    modes
}

/// x = origin + Σ_a ξ_a J_a.
pub(in crate::strategy) fn affine_point(
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
pub(in crate::strategy) fn reference_point(s: &mut Setting<'_>, point: &Index) -> Vec<ValueId> {
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
        cell: &CellGeometry,
        z: Option<&Index>,
    ) -> Option<MultilinearLayer> {
        let corners = matches!(cell, CellGeometry::Multilinear(_));
        if !corners && (s.plan.geometry != Geometry::Vertices || !s.needs_geometry()) {
            return None;
        }
        let dim = self.dim;
        let order: Vec<usize> = (0..1 << dim).map(|bits| self.renamed(s, bits)).collect();
        let zeta = z.map(|z| s.b.load_table(self.points, z.clone()));
        if let CellGeometry::Multilinear(modes) = cell {
            let mode = |_: &mut Builder, mode: usize, i: usize| modes[order[mode]][i];
            return Some(multilinear_layer(&mut s.b, dim, zeta, mode));
        }
        let base = Index::from(s.b.batch()).times(s.geometry_numbers());
        let argument = s.arguments[&Role::Geometry];
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
            (_, Some(row)) => {
                let xi = s.b.load_table(self.points, at.x.clone());
                multilinear_point(&mut s.b, row, xi, weight)
            }
            (_, None) => self.isoparametric_point(s, at, weight),
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
