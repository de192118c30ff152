//! The geometry of a cell and of a point.

use super::layout::Digits;
use super::phases::Transposition;
use super::tables::Interpolated;
use crate::abi::Role;
use crate::kir::{Entries, Index, Statement, ValueId};
use crate::lower::geometry::{
    AtPoint, cofactors, multilinear_layer, multilinear_point, multilinear_row,
};
use crate::plan::Geometry;
use crate::strategy::cell_per_lane::setting::{Setting, Source};
use crate::strategy::cell_per_lane::stored_geometry;
use crate::strategy::cell_per_lane::tensor::{
    CellGeometry, affine_point, cell_geometry, gather_corners,
};
use fem_dsl::point::Part;

/// Numbers of the map of a cell that are computed once, by one thread; 0 where each point's does it.
pub(super) fn map_numbers(s: &Setting<'_>) -> usize {
    let dim = s.form.dim;
    let constant = matches!(s.plan.geometry, Geometry::Affine | Geometry::Corners);
    match constant && s.needs_geometry() && s.points() > 1 {
        true if s.needs_x => 1 + dim * dim + dim + dim * dim,
        true => 1 + dim * dim,
        false => 0,
    }
}

impl Transposition {
    /// The maps of affine cells to shared memory, one thread a cell.
    pub(super) fn maps(&self, s: &mut Setting<'_>) {
        let Some(shared) = self.map else { return };
        s.b.comment("the map of each cell");
        let digits = Digits::new(&mut s.b, "of", &self.layout, 1);
        digits.each_cell(s, &mut |s, cell| {
            gather_corners(s);
            let CellGeometry::Constant { k, det, origin, jacobian } = cell_geometry(s) else {
                unreachable!("an affine cell should be constant")
            };
            let mut numbers = vec![det];
            numbers.extend(k.iter().flatten());
            if s.needs_x {
                numbers.extend(&origin);
                numbers.extend(jacobian.iter().flatten());
            }
            for (i, number) in numbers.into_iter().enumerate() {
                let at = self.place(&Index::from(i), cell);
                s.b.statement(Statement::StoreShared(shared, at, number));
            }
        });
    }

    /// The geometry at a point.
    pub(super) fn geometry(
        &self,
        s: &mut Setting<'_>,
        values: &[Interpolated],
        point: &Index,
        cell: &Index,
    ) -> AtPoint {
        if !s.needs_geometry() {
            let weight = s.b.constant(0.0);
            return AtPoint { k: Vec::new(), det: None, weight, x: Vec::new() };
        }
        if s.plan.geometry == Geometry::Stored {
            return stored_geometry(s, point);
        }
        let weights = s.b.spread_table("weights", Entries::Real(s.elements.rule.weights()));
        let weight = s.b.load_table(weights, point.clone());
        match s.plan.geometry {
            Geometry::Vertices => multilinear(s, point, weight),
            Geometry::Nodes(_) => isoparametric(s, values, weight),
            _ => self.affine(s, point, cell, weight),
        }
    }

    fn affine(&self, s: &mut Setting<'_>, point: &Index, cell: &Index, weight: ValueId) -> AtPoint {
        let dim = s.form.dim;
        let (k, det, origin, jacobian) = match self.map {
            None => {
                gather_corners(s);
                let CellGeometry::Constant { k, det, origin, jacobian } = cell_geometry(s) else {
                    unreachable!("an affine cell should be constant")
                };
                (k, det, origin, jacobian)
            }
            Some(shared) => {
                let mut next = 0;
                let mut load = || {
                    next += 1;
                    s.b.load_shared(shared, self.place(&Index::from(next - 1), cell))
                };
                let det = load();
                let mut matrix =
                    || (0..dim).map(|_| (0..dim).map(|_| load()).collect()).collect::<Vec<_>>();
                let k = matrix();
                if s.needs_x {
                    let origin = (0..dim).map(|_| load()).collect();
                    let matrix = (0..dim).map(|_| (0..dim).map(|_| load()).collect()).collect();
                    (k, det, origin, matrix)
                } else {
                    (k, det, Vec::new(), Vec::new())
                }
            }
        };
        let weight = s.b.mul(weight, det);
        let x = if s.needs_x {
            let at = reference_point(s, point);
            affine_point(s, &origin, &jacobian, &at)
        } else {
            Vec::new()
        };
        AtPoint { k, det: None, weight, x }
    }
}

/// Reference coordinates of the thread's point.
pub(in crate::strategy) fn reference_point(s: &mut Setting<'_>, point: &Index) -> Vec<ValueId> {
    let points = s.elements.rule.points();
    (0..s.form.dim)
        .map(|axis| {
            let entries = points.iter().map(|p| p[axis]).collect();
            let name = ["xi", "eta", "zeta"][axis];
            let table = s.b.spread_table(name, Entries::Real(entries));
            s.b.load_table(table, point.clone())
        })
        .collect()
}

/// A cell with straight edges, from the coefficients of its map.
pub(in crate::strategy) fn multilinear(
    s: &mut Setting<'_>,
    point: &Index,
    weight: ValueId,
) -> AtPoint {
    let dim = s.form.dim;
    let at = reference_point(s, point);
    let base = Index::from(s.b.batch()).times(s.geometry_numbers());
    let argument = s.arguments[&Role::Geometry];
    let layer = multilinear_layer(&mut s.b, dim, at.get(2).copied(), |b, mode, i| {
        b.load_lanes(argument, base.plus(mode * dim + i))
    });
    let needs_x = s.needs_x;
    let row = multilinear_row(&mut s.b, &layer, at[1], 0, needs_x);
    multilinear_point(&mut s.b, &row, at[0], weight)
}

/// A curved cell, from the derivatives of its map.
pub(in crate::strategy) fn isoparametric(
    s: &mut Setting<'_>,
    values: &[Interpolated],
    weight: ValueId,
) -> AtPoint {
    let dim = s.form.dim;
    let position = s.quantity(Source::Position).expect("geometry should be evaluated");
    let of = |i: usize, part: Part| values[position].get(i, part);
    let column = |a: usize| (0..dim).map(|i| of(i, Part::Derivative(a))).collect::<Vec<_>>();
    let columns: Vec<Vec<ValueId>> = (0..dim).map(column).collect();
    let x = if s.needs_x { (0..dim).map(|i| of(i, Part::Value)).collect() } else { Vec::new() };
    let (k, det) = cofactors(&mut s.b, &columns);
    AtPoint { k, det: Some(det), weight, x }
}
