//! Sum factorisation on quadrilaterals and hexahedra.
//!
//! With n nodes and q points per direction, and the collocation derivative D at the points:
//!
//! ```text
//! 1. directions but the last   u[n]…[n]  →  v[n][q]…     B, rows then columns, layer by layer
//! 2. last direction            v[q]…[q], z = D v         one pass over the columns, in place
//! 3. layer by layer            y = D v; then row by row: D v in registers, point function, Dᵀ
//! 4. last direction            Bᵀ (v + Dᵀ z)             one pass over the columns, in place
//! 5. the other directions      back to the nodes
//! ```
//!
//! For coinciding nodes and points, 1 and 5 vanish. If no gradient is needed, 2 to 4 are one pass over the columns with
//! the point function in its middle (Kronbichler and Kormann 2012, section 3; the fused row keeps the first direction
//! out of memory).
//!
//! D differentiates polynomials of degree q − 1 exactly and no others. Elements with more nodes, n > q (curved geometry
//! of low-order fields, reduced quadrature), are evaluated and tested point by point with dense tables instead, and so
//! are those with second derivatives.

mod arrays;
mod diagonal;
mod geometry;
mod transfer;

use arrays::Arrays;
pub(super) use arrays::{ElementVector, Tensor};

use super::column::Column;
use super::{prefetch, simplex};
use crate::kir::{Index, ValueId};
use crate::lower::contract::{contract, derive_and_integrate, interpolate_and_derive};
use crate::lower::factors::Factors;
use crate::lower::facts::KernelFacts;
use crate::lower::geometry::{CellGeometry, cell_geometry, gather_corners};
use crate::lower::jacobian::{MultilinearLayer, multilinear_row};
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::point::at_point;
use crate::lower::stored::TestFactors;
use fem_dsl::point::Part;

/// A point of the rule.
struct Point<'a> {
    /// Its index along the row.
    x: &'a Index,
    /// The index of its row.
    y: &'a Index,
    /// Its position in private arrays.
    place: Index,
    /// Its index in the rule.
    number: Index,
}

pub(super) fn lower(s: &mut Lowering<'_>) {
    let tensor = Tensor::new(s);
    for index in 0..s.facts.quantities.len() {
        tensor.gather(s, index);
    }
    tensor.resolve(s);
    gather_corners(s);
    prefetch::cells(s);
    prefetch::nodes(s);
    s.gathered();
    let column_only = tensor.column_only(s);
    for index in 0..s.facts.quantities.len() {
        tensor.interpolate_layers(s, index);
    }
    if column_only {
        tensor.columns_with_points(s);
    } else {
        for index in 0..s.facts.quantities.len() {
            tensor.last_direction(s, index);
        }
        if s.facts.plan.task == crate::plan::Task::Diagonal {
            diagonal::lower(s, &tensor);
            return;
        }
        tensor.layers(s);
        if s.facts.plan.task == crate::plan::Task::Matrix {
            return;
        }
        tensor.last_direction_back(s);
    }
    tensor.integrate_layers(s);
    tensor.resolve_back(s);
    tensor.scatter(s);
}

/// Computes the columns of the element matrix that belong to one component. For each of its basis functions these are
/// all steps, starting from a unit vector, with the available coefficients.
pub(super) fn columns(s: &mut Lowering<'_>, column: &Column<'_>) {
    let tensor = Tensor::new(s);
    // An unrolled column skips products with 0; with several components there are so many columns that compilers take
    // ten times as long.
    let unroll = tensor.tiny(s.facts) && s.facts.elements.components.iter().sum::<usize>() == 1;
    let mark = s.b.mark();
    tensor.each_unit(s, unroll, |s, j| {
        s.forget();
        s.b.release(mark);
        tensor.resolve(s);
        tensor.interpolate_layers(s, 0);
        if tensor.column_only(s) {
            tensor.columns_with_points(s);
        } else {
            tensor.last_direction(s, 0);
            tensor.layers(s);
            tensor.last_direction_back(s);
        }
        tensor.integrate_layers(s);
        tensor.resolve_back(s);
        tensor.put(s, column, j);
    });
}

impl Tensor {
    /// Returns whether steps 2 to 4 are one pass, because nothing has a gradient.
    fn column_only(&self, s: &Lowering<'_>) -> bool {
        !s.facts.elements.are_vector_valued()
            && s.facts.quantities.iter().all(|quantity| !quantity.gradient)
            && !(0..s.facts.rows()).any(|row| s.facts.tested(row).1)
            && (s.facts.has_result() || s.facts.plan.task.transfers())
            && s.facts.plan.task != crate::plan::Task::Diagonal
            && self.results.iter().all(|result| result.dense.is_none())
            && self.dense.iter().all(Option::is_none)
    }

    /// Returns q^d.
    pub(super) fn q_all(&self) -> usize {
        self.q.pow(self.dim as u32)
    }

    /// Returns the extent of a private array with a value at each point.
    pub(super) fn volume(&self) -> usize {
        self.q * self.plane
    }

    /// Returns the distance of layers of nodes in the private array of nodal values.
    pub(super) fn nodal_plane(&self, factors: &Factors) -> usize {
        let identity = factors.is_collocated && !factors.dense;
        let rows = || (0..self.dim - 1).map(|axis| factors.n(axis)).product();
        if identity { self.plane } else { rows() }
    }

    /// Returns q^(d−1), the columns of the last direction.
    pub(super) fn columns(&self) -> usize {
        self.q.pow(self.dim as u32 - 1)
    }

    pub(super) fn unrolled(&self, facts: &KernelFacts<'_>, extent: usize) -> bool {
        extent <= facts.unroll()
    }

    /// Returns whether the cell is so small that all loops are unrolled.
    fn tiny(&self, facts: &KernelFacts<'_>) -> bool {
        self.q_all() <= facts.unroll()
    }

    /// Performs step 1.
    fn interpolate_layers(&self, s: &mut Lowering<'_>, index: usize) {
        let (factors, arrays) = &self.inputs[index];
        if factors.is_collocated || self.dense[index].is_some() {
            return;
        }
        let quantity = s.facts.quantities[index].clone();
        s.b.comment(&format!("interpolate {}", quantity.name));
        let (q, dim) = (self.q, self.dim);
        let (n, layers) = (factors.n(0), factors.n(dim - 1));
        let rows_a_layer = if dim == 3 { factors.n(1) } else { 1 };
        let nodes = n * rows_a_layer * layers;
        let layer = if dim == 3 { Some(s.b.local("layer", rows_a_layer * q)) } else { None };
        let even_odd = s.facts.plan.even_odd;
        let tiny = self.tiny(s.facts);
        for c in 0..quantity.components {
            let (from, to) = (c * nodes, c * self.volume());
            s.b.repeat("k", layers, tiny, |b, k| {
                b.repeat("j", rows_a_layer, tiny, |b, j| {
                    let start = (&k.times(rows_a_layer) + &j).times(n).plus(from);
                    let input = b.load_line(arrays.nodal, &start, 1, n);
                    let output = contract(b, factors.interpolate(0), &input, None, even_odd);
                    match layer {
                        Some(layer) => b.store_line(layer, &j.times(q), 1, &output),
                        None => {
                            b.store_line(arrays.value, &k.times(self.plane).plus(to), 1, &output)
                        }
                    }
                });
                if let Some(layer) = layer {
                    b.repeat("i", q, tiny, |b, i| {
                        let input = b.load_line(layer, &i, q, rows_a_layer);
                        let output = contract(b, factors.interpolate(1), &input, None, even_odd);
                        let start = (&k.times(self.plane) + &i).plus(to);
                        b.store_line(arrays.value, &start, q, &output);
                    });
                }
            });
        }
    }

    /// Performs step 5.
    pub(super) fn integrate_layers(&self, s: &mut Lowering<'_>) {
        for result in &self.results {
            self.integrate_layers_of(s, result);
        }
    }

    fn integrate_layers_of(&self, s: &mut Lowering<'_>, result: &ElementVector) {
        let ElementVector { factors, arrays, .. } = result;
        if factors.is_collocated || result.dense.is_some() {
            return;
        }
        s.comment_on("integrate", result.field);
        let (q, dim) = (self.q, self.dim);
        let (n, layers) = (factors.n(0), factors.n(dim - 1));
        let rows_a_layer = if dim == 3 { factors.n(1) } else { 1 };
        let nodes = n * rows_a_layer * layers;
        let (rows, columns) =
            (factors.interpolate(0).transposed(), factors.interpolate(1).transposed());
        let layer = if dim == 3 { Some(s.b.local("layer_back", rows_a_layer * q)) } else { None };
        let even_odd = s.facts.plan.even_odd;
        let tiny = self.tiny(s.facts);
        for c in 0..result.rows.len() {
            let (to, from) = (c * nodes, c * self.volume());
            s.b.repeat("k", layers, tiny, |b, k| {
                if let Some(layer) = layer {
                    b.repeat("i", q, tiny, |b, i| {
                        let start = (&k.times(self.plane) + &i).plus(from);
                        let input = b.load_line(arrays.value, &start, q, q);
                        let output = contract(b, &columns, &input, None, even_odd);
                        b.store_line(layer, &i, q, &output);
                    });
                }
                b.repeat("j", rows_a_layer, tiny, |b, j| {
                    let input = match layer {
                        Some(layer) => b.load_line(layer, &j.times(q), 1, q),
                        None => b.load_line(arrays.value, &k.times(self.plane).plus(from), 1, q),
                    };
                    let output = contract(b, &rows, &input, None, even_odd);
                    let start = (&k.times(rows_a_layer) + &j).times(n).plus(to);
                    b.store_line(arrays.nodal, &start, 1, &output);
                });
            });
        }
    }

    /// Performs step 2.
    fn last_direction(&self, s: &mut Lowering<'_>, index: usize) {
        let (factors, arrays) = &self.inputs[index];
        let quantity = s.facts.quantities[index].clone();
        let identity = factors.is_collocated;
        let derives = quantity.gradient && factors.derived[self.dim - 1];
        if (identity && !derives) || self.dense[index].is_some() {
            return;
        }
        s.b.comment(&format!("last direction of {}", quantity.name));
        let columns = self.columns();
        let even_odd = s.facts.plan.even_odd;
        let tiny = self.tiny(s.facts);
        for c in 0..quantity.components {
            let offset = c * self.volume();
            s.b.repeat("column", columns, tiny, |b, column| {
                let start = column.plus(offset);
                let interpolate = factors.interpolate(self.dim - 1);
                let input = b.load_line(arrays.value, &start, self.plane, interpolate.columns);
                let values = match arrays.last {
                    Some(last) => {
                        let (values, derivatives) = interpolate_and_derive(
                            b,
                            interpolate,
                            &factors.derive,
                            &input,
                            even_odd,
                        );
                        b.store_line(last, &start, self.plane, &derivatives);
                        values
                    }
                    None => contract(b, interpolate, &input, None, even_odd),
                };
                if !identity {
                    b.store_line(arrays.value, &start, self.plane, &values);
                }
            });
        }
    }

    /// Performs step 4.
    fn last_direction_back(&self, s: &mut Lowering<'_>) {
        for result in &self.results {
            self.last_direction_back_of(s, result);
        }
    }

    fn last_direction_back_of(&self, s: &mut Lowering<'_>, result: &ElementVector) {
        let ElementVector { factors, arrays, .. } = result;
        let identity = factors.is_collocated;
        let derives = factors.derived[self.dim - 1];
        if (identity && !(derives && result.has_gradient(s))) || result.dense.is_some() {
            return;
        }
        s.comment_on("last direction back", result.field);
        let columns = self.columns();
        let even_odd = s.facts.plan.even_odd;
        let tiny = self.tiny(s.facts);
        let back = factors.interpolate(self.dim - 1).transposed();
        let derive_back = factors.derive.transposed();
        for (c, row) in result.rows.clone().enumerate() {
            let offset = c * self.volume();
            let has_gradient = derives && s.facts.tested(row).1;
            s.b.repeat("column", columns, tiny, |b, column| {
                let start = column.plus(offset);
                let values = b.load_line(arrays.value, &start, self.plane, self.q);
                let output = match (arrays.last, has_gradient) {
                    (Some(last), true) => {
                        let flux = b.load_line(last, &start, self.plane, self.q);
                        derive_and_integrate(b, &derive_back, &back, &flux, &values, even_odd)
                    }
                    _ => contract(b, &back, &values, None, even_odd),
                };
                b.store_line(arrays.value, &start, self.plane, &output);
            });
        }
    }

    /// Performs step 3.
    fn layers(&self, s: &mut Lowering<'_>) {
        let q = self.q;
        let even_odd = s.facts.plan.even_odd;
        let tiny = self.tiny(s.facts);
        self.clear_dense_result(s);
        s.b.comment("points");
        let cell = cell_geometry(s);
        if self.dim == 2 {
            let layer = self.layer_geometry(s, &cell, None);
            repeat(s, "y", q, tiny, |s, y| self.row(s, &cell, &layer, &Index::default(), y));
            return;
        }
        repeat(s, "z", q, tiny, |s, z| {
            for (index, quantity) in s.facts.quantities.iter().enumerate() {
                let (factors, arrays) = &self.inputs[index];
                let Some(middle) = arrays.middle else { continue };
                for c in 0..quantity.components {
                    let from = z.times(self.plane).plus(c * self.volume());
                    s.b.repeat("x", q, tiny, |b, x| {
                        let input = b.load_line(arrays.value, &(&from + &x), q, q);
                        let output = contract(b, &factors.derive, &input, None, even_odd);
                        b.store_line(middle, &x.plus(c * q * q), q, &output);
                    });
                }
            }
            let layer = self.layer_geometry(s, &cell, Some(&z));
            repeat(s, "y", q, tiny, |s, y| self.row(s, &cell, &layer, &z, y));
            for ElementVector { factors, arrays, rows, .. } in &self.results {
                let Some(middle) = arrays.middle else { continue };
                let back = factors.derive.transposed();
                for (c, row) in rows.clone().enumerate() {
                    if !s.facts.tested(row).1 {
                        continue;
                    }
                    let to = z.times(self.plane).plus(c * self.volume());
                    s.b.repeat("x", q, tiny, |b, x| {
                        let values = b.load_line(arrays.value, &(&to + &x), q, q);
                        let flux = b.load_line(middle, &x.plus(c * q * q), q, q);
                        let output = contract(b, &back, &flux, Some(&values), even_odd);
                        b.store_line(arrays.value, &(&to + &x), q, &output);
                    });
                }
            }
        });
    }

    /// Processes one row of points: D in the first direction, the point function, Dᵀ.
    fn row(
        &self,
        s: &mut Lowering<'_>,
        cell: &CellGeometry,
        layer: &Option<MultilinearLayer>,
        z: &Index,
        y: Index,
    ) {
        let q = self.q;
        let even_odd = s.facts.plan.even_odd;
        let first = (&z.times(q) + &y).times(q);
        // In private arrays the distance of layers may be larger.
        let place = &z.times(self.plane) + &y.times(q);
        prefetch::points(s, &first, q);
        for (index, quantity) in s.facts.quantities.iter().enumerate() {
            let (factors, arrays) = &self.inputs[index];
            if self.dense[index].is_some() {
                continue;
            }
            for c in 0..quantity.components {
                let start = place.plus(c * self.volume());
                let values = s.b.load_line(arrays.value, &start, 1, q);
                if quantity.value {
                    s.b.store_line(arrays.row_value, &Index::from(c * q), 1, &values);
                }
                if let Some(row) = arrays.row {
                    let derivatives = contract(&mut s.b, &factors.derive, &values, None, even_odd);
                    s.b.store_line(row, &Index::from(c * q), 1, &derivatives);
                }
            }
        }
        let row_geometry = layer.as_ref().map(|layer| {
            let eta = s.b.load_table(self.points, y.clone());
            s.b.name(eta, "eta");
            let needs_x = s.facts.needs_x;
            multilinear_row(&mut s.b, layer, eta, q, needs_x, 0)
        });
        repeat(s, "x", q, self.unroll_row, |s, x| {
            let point = Point { x: &x, y: &y, place: &place + &x, number: &first + &x };
            let at = self.point_geometry(s, cell, row_geometry.as_ref(), &point);
            let mut evaluate = |s: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
                self.evaluate(s, quantity, c, part, &point)
            };
            let tested = at_point(s, &at, &point.number, &mut evaluate);
            for result in self.results.iter().filter(|_| !tested.is_empty()) {
                let own = &tested[result.rows.clone()];
                match &result.dense {
                    Some(tables) => {
                        simplex::integrate(s, result.arrays.nodal, tables, own, &point.number);
                    }
                    None => self.store_tested(s, &result.arrays, own, &point),
                }
            }
        });
        if s.facts.plan.task == crate::plan::Task::Diagonal {
            return;
        }
        for result in self.results.iter().filter(|result| result.dense.is_none()) {
            self.row_back(s, result, &place);
        }
    }

    /// Applies Dᵀ along a row of points.
    fn row_back(&self, s: &mut Lowering<'_>, result: &ElementVector, place: &Index) {
        let (q, even_odd) = (self.q, s.facts.plan.even_odd);
        let ElementVector { factors, arrays, rows, .. } = result;
        let back = factors.derive.transposed();
        for (c, row) in rows.clone().enumerate() {
            let (has_value, has_gradient) = s.facts.tested(row);
            let start = place.plus(c * self.volume());
            let values =
                has_value.then(|| s.b.load_line(arrays.row_value, &Index::from(c * q), 1, q));
            let output = match (arrays.row, has_gradient) {
                (Some(row), true) if factors.derived[0] => {
                    let flux = s.b.load_line(row, &Index::from(c * q), 1, q);
                    contract(&mut s.b, &back, &flux, values.as_deref(), even_odd)
                }
                _ => values.unwrap_or_else(|| vec![s.b.constant(0.0); q]),
            };
            s.b.store_line(arrays.value, &start, 1, &output);
        }
    }

    fn evaluate(
        &self,
        s: &mut Lowering<'_>,
        quantity: usize,
        c: usize,
        part: Part,
        point: &Point<'_>,
    ) -> ValueId {
        if let Some(dense) = &self.dense[quantity] {
            return simplex::value_at(s, dense, quantity, c, part, &point.number);
        }
        let arrays = &self.inputs[quantity].1;
        let missing = "a quantity's gradient should be evaluated where it is needed";
        let (local, at) = match part {
            Part::Value => (arrays.row_value, point.x.plus(c * self.q)),
            Part::Derivative(0) => (arrays.row.expect(missing), point.x.plus(c * self.q)),
            Part::Derivative(1) if self.dim == 3 => {
                let at = (&point.y.times(self.q) + point.x).plus(c * self.q * self.q);
                (arrays.middle.expect(missing), at)
            }
            Part::Derivative(_) => {
                (arrays.last.expect(missing), point.place.plus(c * self.volume()))
            }
            Part::Second(..) => unreachable!("second derivatives are evaluated densely"),
            Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
        };
        s.b.load(local, at)
    }

    fn store_tested(
        &self,
        s: &mut Lowering<'_>,
        arrays: &Arrays,
        tested: &[TestFactors],
        point: &Point<'_>,
    ) {
        let (x, y) = (point.x, point.y);
        for (c, tested) in tested.iter().enumerate() {
            if let Some(value) = tested.value {
                s.b.store(arrays.row_value, x.plus(c * self.q), value);
            }
            for (axis, &flux) in tested.gradient.iter().enumerate() {
                let (local, at) = match axis {
                    0 => (arrays.row, x.plus(c * self.q)),
                    1 if self.dim == 3 => {
                        (arrays.middle, (&y.times(self.q) + x).plus(c * self.q * self.q))
                    }
                    _ => (arrays.last, point.place.plus(c * self.volume())),
                };
                if let Some(local) = local {
                    s.b.store(local, at, flux);
                }
            }
        }
    }

    /// Performs steps 2 to 4 in one pass if only values are needed: each column stays in registers.
    fn columns_with_points(&self, s: &mut Lowering<'_>) {
        let q = self.q;
        let columns = self.columns();
        let even_odd = s.facts.plan.even_odd;
        let tiny = self.tiny(s.facts);
        s.b.comment("last direction, points, and back");
        let cell = cell_geometry(s);
        // The line of points runs along the last direction: directions are renamed cyclically.
        let outer = if self.dim == 3 { q } else { 1 };
        repeat(s, "y", outer, tiny, |s, y| {
            let layer = self.layer_geometry(s, &cell, (self.dim == 3).then_some(&y));
            repeat(s, "x", q, tiny, |s, x| {
                let column = &y.times(q) + &x;
                prefetch::points(s, &column.times(q), q);
                let mut lines = Vec::new();
                for (index, quantity) in s.facts.quantities.iter().enumerate() {
                    let (factors, arrays) = &self.inputs[index];
                    for c in 0..quantity.components {
                        let start = column.plus(c * self.volume());
                        let matrix = factors.interpolate(self.dim - 1);
                        let input = s.b.load_line(arrays.value, &start, self.plane, matrix.columns);
                        let line = contract(&mut s.b, matrix, &input, None, even_odd);
                        lines.push(((index, c), line));
                    }
                }
                let row = layer.as_ref().map(|layer| {
                    let eta = s.b.load_table(self.points, x.clone());
                    let needs_x = s.facts.needs_x;
                    multilinear_row(&mut s.b, layer, eta, q, needs_x, self.dim - 1)
                });
                let zero = s.b.constant(0.0);
                let mut outputs = vec![vec![zero; q]; s.facts.rows()];
                for z in 0..q {
                    let point = column.plus(z * columns);
                    let xi = Index::from(z);
                    let at = Point { x: &xi, y: &x, place: Index::default(), number: point };
                    let point = &at.number;
                    let at = self.point_geometry(s, &cell, row.as_ref(), &at);
                    let mut evaluate = |_: &mut Lowering<'_>, index: usize, c: usize, _: Part| {
                        let line = lines.iter().find(|(key, _)| *key == (index, c));
                        line.map(|(_, line)| line[z]).expect("a value should be there")
                    };
                    let tested = at_point(s, &at, point, &mut evaluate);
                    for (output, tested) in outputs.iter_mut().zip(tested) {
                        output[z] = tested.value.unwrap_or(zero);
                    }
                }
                for ElementVector { factors, arrays, rows, .. } in &self.results {
                    let back = factors.interpolate(self.dim - 1).transposed();
                    for (c, values) in outputs[rows.clone()].iter().enumerate() {
                        let output = contract(&mut s.b, &back, values, None, even_odd);
                        let start = column.plus(c * self.volume());
                        s.b.store_line(arrays.value, &start, self.plane, &output);
                    }
                }
            });
        });
    }

    /// Clears a dense result, which is summed over the points.
    fn clear_dense_result(&self, s: &mut Lowering<'_>) {
        if s.facts.plan.task == crate::plan::Task::Diagonal {
            return;
        }
        for result in &self.results {
            let Some(tables) = &result.dense else { continue };
            let (nodal, length) = (result.arrays.nodal, result.rows.len() * tables.nodes);
            s.b.clear(nodal, 0, length);
        }
    }

    /// Visits all points with their geometry and inputs, for tasks that store values at the points in private arrays.
    pub(super) fn each_row_point(&self, s: &mut Lowering<'_>) {
        self.layers(s);
    }

    /// Returns the results of the task, field by field.
    pub(super) fn results(&self) -> &[ElementVector] {
        &self.results
    }
}
