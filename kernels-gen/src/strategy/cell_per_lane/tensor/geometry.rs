//! The geometry of tensor cells: data of a layer, a row and a point.

use super::{Point, Tensor};
use crate::abi::Role;
use crate::kir::Index;
use crate::kir::build::Builder;
use crate::lower::geometry::{
    CellGeometry, curved, position, reference_point, stored_geometry, with_second,
};
use crate::lower::jacobian::{
    MultilinearLayer, MultilinearRow, PointGeometry, multilinear_layer, multilinear_point,
};
use crate::lower::lowering::Lowering;
use crate::plan::Geometry;

impl Tensor {
    /// Permutes the bits of the monomials of the multilinear map, with the direction of the line of points as the
    /// first.
    fn renamed(&self, s: &Lowering<'_>, bits: usize) -> usize {
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
        s: &mut Lowering<'_>,
        cell: &CellGeometry,
        z: Option<&Index>,
    ) -> Option<MultilinearLayer> {
        let corners = matches!(cell, CellGeometry::Multilinear(_));
        let multilinear = s.facts.plan.geometry == Geometry::Vertices && s.facts.needs_geometry();
        if !(corners || multilinear) {
            return None;
        }
        let dim = self.dim;
        let order: Vec<usize> = (0..1 << dim).map(|bits| self.renamed(s, bits)).collect();
        let zeta = z.map(|z| s.b.load_table(self.points, z.clone()));
        if let Some(zeta) = zeta.filter(|_| !self.column_only(s)) {
            s.b.name(zeta, "zeta");
        }
        if let CellGeometry::Multilinear(modes) = cell {
            let mode = |_: &mut Builder, mode: usize, i: usize| modes[order[mode]][i];
            return Some(multilinear_layer(&mut s.b, dim, zeta, mode));
        }
        let base = Index::from(s.b.batch()).times(s.facts.geometry_numbers());
        let argument = s.arguments[&Role::Geometry];
        Some(multilinear_layer(&mut s.b, dim, zeta, |b, mode, i| {
            b.load_lanes(argument, base.plus(order[mode] * dim + i))
        }))
    }

    pub(super) fn point_geometry(
        &self,
        s: &mut Lowering<'_>,
        cell: &CellGeometry,
        row: Option<&MultilinearRow>,
        at: &Point<'_>,
    ) -> PointGeometry {
        let point = &at.number;
        if let Some(known) = stored_geometry(s, point) {
            return known;
        }
        let weight = s.b.load_table(self.weights, point.clone());
        s.b.name(weight, "w");
        match (cell, row) {
            (CellGeometry::Affine(map), _) => map.at(s, weight, |s| reference_point(s, point)),
            (_, Some(row)) => {
                let xi = s.b.load_table(self.points, at.x.clone());
                if !self.column_only(s) {
                    s.b.name(xi, "xi");
                }
                multilinear_point(&mut s.b, row, xi, weight)
            }
            (_, None) => {
                let x = position(s);
                let mut part = |s: &mut Lowering<'_>, i, part| self.evaluate(s, x, i, part, at);
                let curved = curved(s, weight, &mut part);
                with_second(s, curved, part)
            }
        }
    }
}
