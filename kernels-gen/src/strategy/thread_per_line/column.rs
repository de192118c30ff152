//! The column of points of a thread: D, the point function, Dᵀ, and the geometry along it.

use super::{ElementVector, Group, first_mode, mode_stride};
use crate::kir::{Index, LocalId, Statement, ValueId};
use crate::limits::WRITTEN_OUT;
use crate::lower::contract::contract;
use crate::lower::geometry::{Affine, affine_map, curved, position, stored_geometry};
use crate::lower::jacobian::{
    MultilinearRow, PointGeometry, multilinear_layer, multilinear_point, multilinear_row,
};
use crate::lower::lowering::{Evaluate, Lowering, repeat};
use crate::lower::point::at_point;
use crate::plan::Geometry;
use fem_dsl::point::Part;

/// The geometry that is constant along a column of points.
enum ColumnGeometry {
    /// The whole map.
    Affine(Affine),
    /// The multilinear map along the last axis.
    Row(Box<MultilinearRow>),
    /// None: the map is this quantity.
    Curved(usize),
    /// None: it was stored at the points, or is not needed.
    Absent,
}

/// The values of one component of a quantity in a column.
pub(super) struct Column {
    /// Values at the points, unless they are reread from shared memory.
    values: Option<Line>,
    /// Derivatives along the column.
    slopes: Option<Line>,
}

/// Values at the points of a column: in registers if the points are unrolled, else in a private array.
pub(super) enum Line {
    Registers(Vec<ValueId>),
    Array(LocalId),
}

impl Line {
    /// Allocates values: zeros in registers, an array uninitialised.
    fn new(s: &mut Lowering<'_>, name: &str, q: usize, rolled: bool) -> Self {
        match rolled {
            true => Self::Array(s.b.local(name, q)),
            false => Self::Registers(vec![s.b.constant(0.0); q]),
        }
    }

    /// Stores known values.
    fn of(s: &mut Lowering<'_>, name: &str, numbers: Vec<ValueId>, rolled: bool) -> Self {
        if !rolled {
            return Self::Registers(numbers);
        }
        let array = s.b.local(name, numbers.len());
        for (at, &number) in numbers.iter().enumerate() {
            s.b.store(array, Index::from(at), number);
        }
        Self::Array(array)
    }

    fn get(&self, s: &mut Lowering<'_>, at: &Index) -> ValueId {
        match self {
            Self::Registers(numbers) => numbers[known(at)],
            Self::Array(array) => s.b.load(*array, at.clone()),
        }
    }

    fn set(&mut self, s: &mut Lowering<'_>, at: &Index, number: ValueId) {
        match self {
            Self::Registers(numbers) => numbers[known(at)] = number,
            Self::Array(array) => s.b.store(*array, at.clone(), number),
        }
    }

    /// Returns all values in registers.
    fn all(&self, s: &mut Lowering<'_>, q: usize) -> Vec<ValueId> {
        (0..q).map(|at| self.get(s, &Index::from(at))).collect()
    }
}

/// Returns the index of an unrolled point.
fn known(at: &Index) -> usize {
    assert!(at.terms.is_empty(), "registers have no index");
    at.constant as usize
}

/// The work at each point of a column: its position in the column, its geometry, its index, its values.
type PointBody<'e> =
    dyn FnMut(&mut Lowering<'_>, &Index, &PointGeometry, &Index, &mut Evaluate<'_>) + 'e;

impl Group {
    /// Applies D along the last axis, the point function, and Dᵀ.
    pub(super) fn column(&self, s: &mut Lowering<'_>, columns: &[Vec<Column>]) {
        let (q, even_odd) = (self.layout.q, s.facts.plan.even_odd);
        let zero = s.b.constant(0.0);
        let rolled = self.rolled(s);
        let mut lines = |name: &str| -> Vec<Vec<Line>> {
            let results = self.results.iter();
            let of = |outcome: &ElementVector| {
                outcome.rows.clone().map(|_| Line::new(s, name, q, rolled)).collect()
            };
            results.map(of).collect()
        };
        let (mut values, mut fluxes) = (lines("tested"), lines("flux"));
        let own = self.own_row(self.dim - 1);
        self.each_point(s, columns, &mut |s, at, known, number, evaluate| {
            let tested = at_point(s, known, number, evaluate);
            for (result, outcome) in self.results.iter().enumerate() {
                for (c, tested) in tested[outcome.rows.clone()].iter().enumerate() {
                    values[result][c].set(s, at, tested.value.unwrap_or(zero));
                    let Some((&last, first)) = tested.gradient.split_last() else { continue };
                    for (axis, &flux) in first.iter().enumerate() {
                        let Some(array) = outcome.shared.slope(axis) else { continue };
                        let place = self.place(&own, &c.into(), at);
                        s.b.store_shared(array, place, flux);
                    }
                    fluxes[result][c].set(s, at, last);
                }
            }
        });
        let back = self.derive.transposed();
        let mut waiting = Vec::new();
        for (result, outcome) in self.results.iter().enumerate() {
            for (c, row) in outcome.rows.clone().enumerate() {
                let (has_value, has_gradient) = s.facts.tested(row);
                let tested = values[result][c].all(s, q);
                if outcome.shared.flat {
                    self.integrate_column(s, outcome, c, &tested);
                    continue;
                }
                let sum = if has_gradient && outcome.shared.derives(self.dim - 1) {
                    let fluxes = fluxes[result][c].all(s, q);
                    let onto = has_value.then_some(&tested[..]);
                    contract(&mut s.b, &back, &fluxes, onto, even_odd)
                } else {
                    tested
                };
                if self.in_place {
                    waiting.push((outcome, c, has_gradient && outcome.shared.derives(0), sum));
                } else {
                    self.store(&mut s.b, outcome.shared.value(), &own, &c.into(), &sum);
                }
            }
        }
        if !waiting.is_empty() {
            s.b.barrier();
            s.b.comment("back in x");
            self.slopes_back(s, &self.results.iter().collect::<Vec<_>>());
            s.b.barrier();
            s.b.comment("and in z");
        }
        for (outcome, c, onto, mut sum) in waiting {
            let (array, c) = (outcome.shared.value(), Index::from(c));
            if onto {
                let across = self.load(&mut s.b, array, &own, &c, q);
                sum = sum.iter().zip(across).map(|(&sum, across)| s.b.add(across, sum)).collect();
            }
            self.store(&mut s.b, array, &own, &c, &sum);
        }
        if self.results.iter().any(|outcome| !outcome.shared.in_column()) {
            s.b.barrier();
        }
    }

    /// Calls `body` with each point of the thread's column.
    pub(super) fn each_point(
        &self,
        s: &mut Lowering<'_>,
        columns: &[Vec<Column>],
        body: &mut PointBody<'_>,
    ) {
        let geometry = self.column_geometry(s);
        let across = self.weight_across(s);
        let rolled = self.rolled(s);
        repeat(s, "point", self.layout.q, !rolled, |s, at| {
            // The index of the point: the digits are the first axes.
            let digits = self.digits.iter().rev();
            let number = digits.fold(at.clone(), |number, &digit| {
                &number.times(self.layout.q) + &Index::from(digit)
            });
            let known = self.geometry_at(s, &geometry, columns, &number, across, &at);
            let mut evaluate = |s: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
                self.value_at(s, quantity, &columns[quantity][c], c, part, &at)
            };
            body(s, &at, &known, &number, &mut evaluate);
            s.b.statement(Statement::Fence);
        });
    }

    /// Returns whether the points of a column are a loop, with the thread's arrays in memory: if unrolled code would
    /// take a compiler minutes.
    fn rolled(&self, s: &Lowering<'_>) -> bool {
        let (q, point) = (self.layout.q, s.facts.integral.graph.nodes().len());
        // Each stored value takes a few products with the map.
        let stored = if s.facts.plan.task.stores() { 8 * s.facts.stored_numbers() } else { 0 };
        q > s.facts.plan.unroll || q * (point + stored) > WRITTEN_OUT
    }

    /// Computes a column's values that do not depend on the point; in place, also the required values.
    pub(super) fn columns(&self, s: &mut Lowering<'_>) -> Vec<Vec<Column>> {
        let (q, even_odd, rolled) = (self.layout.q, s.facts.plan.even_odd, self.rolled(s));
        let own = self.own_row(self.dim - 1);
        let mut columns = Vec::new();
        for (quantity, shared) in s.facts.quantities.iter().zip(&self.inputs) {
            let column = |s: &mut Lowering<'_>, c: usize| match (shared.flat, shared.identity()) {
                (true, _) if shared.in_column() => {
                    let (nodes, axis) = (self.own_nodes(&s.b), self.gather_axis(shared));
                    let values = self.gather_line(s, (quantity, shared), (&nodes, axis), c);
                    Column { values: Some(Line::of(s, "values", values, rolled)), slopes: None }
                }
                (true, _) => {
                    let matrix = shared.factors.interpolate(self.dim - 1);
                    let line = self.load(&mut s.b, shared.value(), &own, &c.into(), matrix.columns);
                    let values = contract(&mut s.b, matrix, &line, None, even_odd);
                    Column { values: Some(Line::of(s, "values", values, rolled)), slopes: None }
                }
                (false, _) => {
                    let load = |s: &mut Lowering<'_>| {
                        self.load(&mut s.b, shared.value(), &own, &c.into(), q)
                    };
                    let kept = self.in_place && quantity.value;
                    let values = kept.then(|| load(s));
                    let slopes = shared.derives(self.dim - 1).then(|| {
                        let values = values.clone().unwrap_or_else(|| load(s));
                        let slopes = contract(&mut s.b, &self.derive, &values, None, even_odd);
                        Line::of(s, "slopes", slopes, rolled)
                    });
                    Column {
                        values: values.map(|kept| Line::of(s, "values", kept, rolled)),
                        slopes,
                    }
                }
            };
            columns.push((0..shared.components).map(|c| column(s, c)).collect());
        }
        columns
    }

    /// Returns a part of a component of a quantity at a point of the column.
    fn value_at(
        &self,
        s: &mut Lowering<'_>,
        quantity: usize,
        column: &Column,
        c: usize,
        part: Part,
        at: &Index,
    ) -> ValueId {
        let (shared, last) = (&self.inputs[quantity], self.dim - 1);
        let place = || self.place(&self.own_row(last), &c.into(), at);
        let missing = "a gradient should be held where it is needed";
        match (part, &column.slopes) {
            (Part::Value, _) => match &column.values {
                Some(values) => values.get(s, at),
                None => s.b.load_shared(shared.value(), place()),
            },
            (Part::Derivative(axis), Some(slopes)) if axis == last => slopes.get(s, at),
            (Part::Derivative(axis), _) => {
                s.b.load_shared(shared.slope(axis).expect(missing), place())
            }
            (Part::Second(..), _) => {
                unreachable!("second derivatives have one lane or thread a cell")
            }
            (Part::Exterior(_), _) => unreachable!("the pull-back replaces exterior derivatives"),
        }
    }

    /// Applies Bᵀ along a column whose values are in registers, or scatters if nodes are points.
    fn integrate_column(
        &self,
        s: &mut Lowering<'_>,
        outcome: &ElementVector,
        c: usize,
        values: &[ValueId],
    ) {
        let shared = &outcome.shared;
        if shared.in_column() {
            let (nodes, axis) = (self.own_nodes(&s.b), self.gather_axis(shared));
            return self.scatter_line(s, outcome, &nodes, (axis, c), values);
        }
        let integrate = shared.factors.interpolate(self.dim - 1).transposed();
        let line = contract(&mut s.b, &integrate, values, None, s.facts.plan.even_odd);
        self.store(&mut s.b, shared.value(), &self.own_row(self.dim - 1), &c.into(), &line);
    }

    /// Computes the product of the weights of the other axes.
    fn weight_across(&self, s: &mut Lowering<'_>) -> ValueId {
        let weights =
            self.digits.iter().map(|&digit| s.b.load_table(self.weights, Index::from(digit)));
        let weights: Vec<ValueId> = weights.collect();
        let mut product = weights[0];
        for &weight in &weights[1..] {
            product = s.b.mul(product, weight);
        }
        s.b.name(product, "w_across")
    }

    /// Computes the geometry of the thread's column.
    fn column_geometry(&self, s: &mut Lowering<'_>) -> ColumnGeometry {
        match s.facts.plan.geometry {
            _ if !s.facts.needs_geometry() => return ColumnGeometry::Absent,
            Geometry::Affine => return ColumnGeometry::Affine(affine_map(s)),
            Geometry::Stored => return ColumnGeometry::Absent,
            Geometry::Nodes(_) => return ColumnGeometry::Curved(position(s)),
            _ => {}
        }
        let modes = self.modes.expect("the coefficients of the map should be shared");
        let base = Index::from(self.cell).times(mode_stride(s));
        let (dim, first) = (self.dim, first_mode(s));
        // The column runs along the last axis, which becomes the first; the first axis becomes the second.
        let permuted = |bits: usize| (bits << (dim - 1) | bits >> 1) & ((1 << dim) - 1);
        let zero = s.b.constant(0.0);
        let third = self.digits.get(1).map(|&j| s.b.load_table(self.points, Index::from(j)));
        let third = third.map(|eta| s.b.name(eta, "eta"));
        let layer = multilinear_layer(&mut s.b, dim, third, |b, mode, axis| {
            match (permuted(mode) * dim + axis).checked_sub(first) {
                Some(at) => b.load_shared(modes, base.plus(at)),
                None => zero,
            }
        });
        let xi = s.b.load_table(self.points, Index::from(self.digits[0]));
        s.b.name(xi, "xi");
        let needs_x = s.facts.needs_x;
        // The determinant alone is a quadratic polynomial; the whole map would take too many registers.
        let points = if self.flat { self.layout.q } else { 0 };
        ColumnGeometry::Row(Box::new(multilinear_row(
            &mut s.b,
            &layer,
            xi,
            points,
            needs_x,
            dim - 1,
        )))
    }

    fn geometry_at(
        &self,
        s: &mut Lowering<'_>,
        geometry: &ColumnGeometry,
        columns: &[Vec<Column>],
        number: &Index,
        across: ValueId,
        at: &Index,
    ) -> PointGeometry {
        let (last, own) = if self.rolled(s) {
            (s.b.load_table(self.points, at.clone()), s.b.load_table(self.weights, at.clone()))
        } else {
            let at = known(at);
            (s.b.constant(self.line.points()[at]), s.b.constant(self.line.weights()[at]))
        };
        let weight = s.b.mul(across, own);
        s.b.name(weight, "w");
        if let Some(known) = stored_geometry(s, number) {
            return known;
        }
        match geometry {
            ColumnGeometry::Absent => unreachable!("what is given should have been taken"),
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
                let mut at = multilinear_point(&mut s.b, row, last, weight);
                // Restores the order z, x, y.
                at.rotate();
                at
            }
        }
    }
}
