//! The column of points of a thread: D, the point function, Dᵀ, and the geometry along it.

use super::{Group, Held, barrier, first_mode, mode_stride};
use crate::kir::{Index, Statement, ValueId};
use crate::lower::contract::contract;
use crate::lower::geometry::{AtPoint, MultilinearRow, multilinear_layer, multilinear_row};
use crate::plan::Geometry;
use crate::strategy::geometry::{Affine, affine_map, along_row, curved, given, position};
use crate::strategy::point::{Evaluate, at_point};
use crate::strategy::setting::Setting;
use fem_dsl::point::Part;

/// What stays the same along a column of points.
enum ColumnGeometry {
    /// All of it.
    Affine(Affine),
    /// The multilinear map along the last axis.
    Row(Box<MultilinearRow>),
    /// Nothing, since the map is this quantity.
    Curved(usize),
    /// Nothing: it was stored at the points, or is not needed.
    Given,
}

/// What a column holds in registers of one component of a quantity.
struct Column {
    /// Values at the points, where they are not read from shared memory again.
    values: Vec<ValueId>,
    /// Derivatives along the column.
    slopes: Vec<ValueId>,
}

/// What is done at each point of a column: its place in the column, its geometry, its number, its values.
type AtEach<'e> = dyn FnMut(&mut Setting<'_>, usize, &AtPoint, &Index, &mut Evaluate<'_>) + 'e;

impl Group {
    /// D along the last axis, the points, and Dᵀ.
    pub(super) fn column(&self, s: &mut Setting<'_>) {
        let (q, even_odd) = (self.layout.q, s.plan.even_odd);
        let zero = s.b.constant(0.0);
        let components = self.result.as_ref().map_or(0, |result| result.components);
        let mut values = vec![vec![zero; q]; components];
        let mut fluxes = vec![vec![zero; q]; components];
        self.each_point(s, &mut |s, at, known, number, evaluate| {
            let tested = at_point(s, known, number, evaluate);
            for (c, tested) in tested.iter().enumerate() {
                values[c][at] = tested.value.unwrap_or(zero);
                let Some((&last, first)) = tested.gradient.split_last() else { continue };
                let slopes = self.result.as_ref().and_then(|result| result.slopes.as_ref());
                let Some(arrays) = slopes else { continue };
                let own = self.own_row(self.dim - 1);
                for (&array, &flux) in arrays.iter().zip(first) {
                    let place = self.place(&own, c, at);
                    s.b.statement(Statement::StoreShared(array, place, flux));
                }
                fluxes[c][at] = last;
            }
        });
        let Some(result) = &self.result else { return };
        if self.flat {
            return self.integrate_column(s, result, &values);
        }
        let own = self.own_row(self.dim - 1);
        let back = self.derive.transposed();
        for c in 0..components {
            let (has_value, has_gradient) = s.tested(c);
            let onto = has_value.then_some(&values[c][..]);
            let sum = if has_gradient {
                contract(&mut s.b, &back, &fluxes[c], onto, even_odd)
            } else {
                values[c].clone()
            };
            self.store(&mut s.b, result.value, &own, c, &sum);
        }
        barrier(s);
    }

    /// Calls `body` with each point of the thread's column.
    pub(super) fn each_point(&self, s: &mut Setting<'_>, body: &mut AtEach<'_>) {
        s.b.comment("points");
        let columns = self.columns(s);
        let geometry = self.column_geometry(s);
        let across = self.weight_across(s);
        for at in 0..self.layout.q {
            // The number of the point: the digits are the first axes.
            let digits = self.digits.iter().rev();
            let number = digits.fold(Index::from(at), |number, &digit| {
                &number.times(self.layout.q) + &Index::from(digit)
            });
            let known = self.geometry_at(s, &geometry, &columns, &number, across, at);
            let mut evaluate = |s: &mut Setting<'_>, quantity: usize, c: usize, part: Part| {
                self.value_at(s, quantity, &columns[quantity][c], c, part, at)
            };
            body(s, at, &known, &number, &mut evaluate);
            s.b.statement(Statement::Fence);
        }
    }

    /// What a column knows before its points.
    fn columns(&self, s: &mut Setting<'_>) -> Vec<Vec<Column>> {
        let (q, even_odd) = (self.layout.q, s.plan.even_odd);
        let own = self.own_row(self.dim - 1);
        let mut columns = Vec::new();
        for (quantity, held) in s.quantities.clone().iter().zip(&self.inputs) {
            let column = |s: &mut Setting<'_>, c: usize| match (self.flat, held.identity()) {
                (true, true) => {
                    let values = self.gather_line(s, quantity, held, c);
                    Column { values, slopes: Vec::new() }
                }
                (true, false) => {
                    let line = self.load(&mut s.b, held.value, &own, c, held.factors.n);
                    let matrix = &held.factors.interpolate;
                    let values = contract(&mut s.b, matrix, &line, None, even_odd);
                    Column { values, slopes: Vec::new() }
                }
                (false, _) => {
                    let slopes = held.slopes.is_some().then(|| {
                        let values = self.load(&mut s.b, held.value, &own, c, q);
                        contract(&mut s.b, &self.derive, &values, None, even_odd)
                    });
                    Column { values: Vec::new(), slopes: slopes.unwrap_or_default() }
                }
            };
            columns.push((0..held.components).map(|c| column(s, c)).collect());
        }
        columns
    }

    /// A part of a component of a quantity at a point of the column.
    fn value_at(
        &self,
        s: &mut Setting<'_>,
        quantity: usize,
        column: &Column,
        c: usize,
        part: Part,
        at: usize,
    ) -> ValueId {
        let (held, last) = (&self.inputs[quantity], self.dim - 1);
        let place = || self.place(&self.own_row(last), c, at);
        match (part, &held.slopes) {
            (Part::Value, _) => match column.values.get(at) {
                Some(&value) => value,
                None => s.b.load_shared(held.value, place()),
            },
            (Part::Derivative(axis), _) if axis == last => column.slopes[at],
            (Part::Derivative(axis), Some(arrays)) => s.b.load_shared(arrays[axis], place()),
            (Part::Derivative(_), None) => {
                unreachable!("a gradient should be held where it is needed")
            }
        }
    }

    /// Bᵀ along a column whose values are in registers, or the scattering where nodes are points.
    fn integrate_column(&self, s: &mut Setting<'_>, result: &Held, values: &[Vec<ValueId>]) {
        let even_odd = s.plan.even_odd;
        let own = self.own_row(self.dim - 1);
        let integrate = result.factors.interpolate.transposed();
        for (c, values) in values.iter().enumerate() {
            if result.identity() {
                self.scatter_line(s, result, self.gather_axis(result), c, values);
            } else {
                let line = contract(&mut s.b, &integrate, values, None, even_odd);
                self.store(&mut s.b, result.value, &own, c, &line);
            }
        }
        if !result.identity() {
            barrier(s);
        }
    }

    /// The product of the weights of the other axes.
    fn weight_across(&self, s: &mut Setting<'_>) -> ValueId {
        let weights =
            self.digits.iter().map(|&digit| s.b.load_table(self.weights, Index::from(digit)));
        let weights: Vec<ValueId> = weights.collect();
        let mut product = weights[0];
        for &weight in &weights[1..] {
            product = s.b.mul(product, weight);
        }
        product
    }

    /// What is known of the geometry of the thread's column.
    fn column_geometry(&self, s: &mut Setting<'_>) -> ColumnGeometry {
        match s.plan.geometry {
            _ if !s.needs_geometry() => return ColumnGeometry::Given,
            Geometry::Affine => return ColumnGeometry::Affine(affine_map(s)),
            Geometry::Stored => return ColumnGeometry::Given,
            Geometry::Nodes(_) => return ColumnGeometry::Curved(position(s)),
            _ => {}
        }
        let modes = self.modes.expect("the coefficients of the map should be held");
        let base = Index::from(self.cell).times(mode_stride(s));
        let (dim, first) = (self.dim, first_mode(s));
        // The column runs along the last axis, which takes the place of the first; the first axis
        // then is the second.
        let turned = |bits: usize| (bits << (dim - 1) | bits >> 1) & ((1 << dim) - 1);
        let zero = s.b.constant(0.0);
        let third = self.digits.get(1).map(|&j| s.b.load_table(self.points, Index::from(j)));
        let layer = multilinear_layer(&mut s.b, dim, third, |b, mode, axis| {
            match (turned(mode) * dim + axis).checked_sub(first) {
                Some(at) => b.load_shared(modes, base.plus(at)),
                None => zero,
            }
        });
        let xi = s.b.load_table(self.points, Index::from(self.digits[0]));
        let needs_x = s.needs_x;
        // The determinant alone is a quadratic polynomial; all of the map would take too many registers.
        let points = if self.flat { self.layout.q } else { 0 };
        ColumnGeometry::Row(Box::new(multilinear_row(&mut s.b, &layer, xi, points, needs_x)))
    }

    fn geometry_at(
        &self,
        s: &mut Setting<'_>,
        geometry: &ColumnGeometry,
        columns: &[Vec<Column>],
        number: &Index,
        across: ValueId,
        at: usize,
    ) -> AtPoint {
        let last = s.b.constant(self.line.points()[at]);
        let own = s.b.constant(self.line.weights()[at]);
        let weight = s.b.mul(across, own);
        if let Some(known) = given(s, number) {
            return known;
        }
        match geometry {
            ColumnGeometry::Given => unreachable!("what is given should have been taken"),
            ColumnGeometry::Curved(x) => {
                curved(s, weight, |s, i, part| self.value_at(s, *x, &columns[*x][i], i, part, at))
            }
            ColumnGeometry::Affine(map) => map.at(s, weight, |s| {
                let place = |digit: &_| s.b.load_table(self.points, Index::from(*digit));
                let mut place: Vec<ValueId> = self.digits.iter().map(place).collect();
                place.push(last);
                place
            }),
            ColumnGeometry::Row(row) => {
                let mut at = along_row(s, row, last, weight, number);
                // Back from z, x, y.
                at.k.rotate_left(1);
                at
            }
        }
    }
}
