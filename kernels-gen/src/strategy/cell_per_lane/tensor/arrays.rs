//! Data of the sum factorisation: the arrays of each quantity, and the 1D factors.

use super::super::simplex::EvaluatedQuantity;
use crate::element::{Element, LinePoints};
use crate::kir::{Entries, LocalId, TableId};
use crate::lower::factors::{Factors, factors};
use crate::lower::facts::{Quantity, QuantitySource};
use crate::lower::lowering::Lowering;
use crate::lower::tables::Tables;
use crate::plan::{Plan, Target};
use fem_dsl::point::Side;
use std::ops::Range;

/// The private arrays of one quantity or result; component c of an array of length l starts at
/// c · l / components.
#[derive(Clone)]
pub(in crate::strategy::cell_per_lane) struct Arrays {
    /// Nodal values, n^d.
    pub(in crate::strategy::cell_per_lane) nodal: LocalId,
    /// Values at the points, q^d; the same array as `nodal` if they coincide.
    pub(in crate::strategy::cell_per_lane) value: LocalId,
    /// Derivatives in the last direction, q^d.
    pub(super) last: Option<LocalId>,
    /// Derivatives in the middle direction of one layer, q².
    pub(super) middle: Option<LocalId>,
    /// Derivatives in the first direction of one row, q.
    pub(super) row: Option<LocalId>,
    /// Values of one row, q.
    pub(super) row_value: LocalId,
}

impl Arrays {
    fn has_derivatives(&self) -> bool {
        [self.last, self.middle, self.row].iter().any(Option::is_some)
    }
}

/// Constant data of a kernel during its construction.
pub(in crate::strategy::cell_per_lane) struct Tensor {
    pub(in crate::strategy::cell_per_lane) dim: usize,
    pub(in crate::strategy::cell_per_lane) q: usize,
    /// The distance of layers of points in private arrays: q^(d−1). It is larger if this is a multiple of 2 KiB, for
    /// which a column maps to few sets of the cache.
    pub(in crate::strategy::cell_per_lane) plane: usize,
    pub(in crate::strategy::cell_per_lane) line: LinePoints,
    pub(super) points: TableId,
    pub(super) weights: TableId,
    pub(super) unroll_row: bool,
    /// Factors and arrays of each quantity.
    pub(super) inputs: Vec<(Factors, Arrays)>,
    /// For each quantity with n > q or second derivatives, its dense evaluation.
    pub(super) dense: Vec<Option<EvaluatedQuantity>>,
    /// The results of the task, field by field.
    pub(super) results: Vec<ElementVector>,
}

/// The result of one field.
pub(in crate::strategy::cell_per_lane) struct ElementVector {
    pub(in crate::strategy::cell_per_lane) field: usize,
    /// Its components among those of all fields.
    pub(in crate::strategy::cell_per_lane) rows: Range<usize>,
    pub(in crate::strategy::cell_per_lane) factors: Factors,
    pub(in crate::strategy::cell_per_lane) arrays: Arrays,
    /// Its dense test functions if n > q or second derivatives are tested.
    pub(super) dense: Option<Tables>,
}

impl ElementVector {
    /// Returns whether any component is tested against a gradient.
    pub(super) fn has_gradient(&self, s: &Lowering<'_>) -> bool {
        self.rows.clone().any(|row| s.facts.tested(row).1)
    }
}

/// Returns the distance of layers of points in private arrays.
fn plane(plan: &Plan, dim: usize, q: usize) -> usize {
    let layer = q.pow(dim as u32 - 1);
    let bytes = layer * plan.lanes * plan.precision.bytes();
    // Threads keep their arrays in registers.
    if plan.target == Target::Vectors && dim == 3 && bytes.is_multiple_of(2048) {
        layer + 1
    } else {
        layer
    }
}

impl Tensor {
    pub(super) fn new(s: &mut Lowering<'_>) -> Self {
        let dim = s.facts.elements.cell.dim();
        let line = s.facts.elements.rule.line().expect("a tensor cell should have a tensor rule");
        let q = line.count();
        let points = s.b.table("points", Entries::Real(line.points()));
        let weights = s.b.table("weights", Entries::Real(s.facts.elements.rule.weights()));
        let is_dense = |element: Element, second: bool| element.degree() + 1 > q || second;
        let mut quantities = s.facts.quantities.iter();
        let dense = quantities.any(|of| is_dense(of.element, of.second))
            || s.facts.results().iter().any(|&field| {
                let second = s.facts.rows_of(field).any(|row| s.facts.tests_second(row));
                is_dense(s.facts.elements.fields[field], second)
            });
        let small = q <= s.facts.unroll() || s.facts.integral.graph.nodes().len() * q <= 1500;
        let mut tensor = Self {
            dim,
            q,
            plane: plane(s.facts.plan, dim, q),
            line,
            points,
            weights,
            unroll_row: small && !dense,
            inputs: Vec::new(),
            dense: Vec::new(),
            results: Vec::new(),
        };
        for quantity in &s.facts.quantities {
            let mut factors = factors(line, quantity.element, s.facts.plan.task);
            factors.dense |= quantity.second;
            let arrays = tensor.arrays(s, quantity, &factors);
            tensor
                .dense
                .push(factors.dense.then(|| EvaluatedQuantity::new(s, quantity, arrays.nodal)));
            tensor.inputs.push((factors, arrays));
        }
        for (field, rows) in s.facts.written_rows() {
            let outcome = tensor.outcome(s, field, rows);
            tensor.results.push(outcome);
        }
        tensor
    }

    /// Returns the arrays of a field's result: those of its own values if it is evaluated, too.
    fn outcome(&self, s: &mut Lowering<'_>, field: usize, rows: Range<usize>) -> ElementVector {
        let own = [QuantitySource::Direction(field), QuantitySource::State(field)];
        let shared = own.iter().find_map(|source| s.facts.quantity(*source));
        let mut factors = factors(self.line, s.facts.elements.fields[field], s.facts.plan.task);
        let second = rows.clone().any(|row| s.facts.tests_second(row));
        factors.dense |= second;
        // The inputs are still read at later points while a dense result accumulates.
        let shared = shared.filter(|&index| !factors.dense && !self.inputs[index].0.dense);
        // In a column of an element matrix a field can have several results, one of which may reuse them.
        let alike = |index: &usize| s.facts.quantities[*index].components == rows.len();
        let taken = self.results.iter().any(|result| result.field == field);
        let shared = shared.filter(alike).filter(|_| !taken);
        let result = Quantity {
            source: QuantitySource::Direction(field),
            name: s.facts.of_field("r", field),
            components: rows.len(),
            stored: rows.len(),
            element: s.facts.elements.fields[field],
            value: true,
            gradient: rows.clone().any(|row| s.facts.tested(row).1),
            second,
        };
        let mut arrays = match shared {
            Some(index) => self.inputs[index].1.clone(),
            None => self.arrays(s, &result, &factors),
        };
        let dense = factors
            .dense
            .then(|| Tables::with_seconds(s, (&result.name, Side::Inside), result.element, second));
        if dense.is_none() && result.gradient && !arrays.has_derivatives() {
            self.derivative_arrays(s, &result, &mut arrays, factors.derived);
        }
        if shared.is_some() {
            // A row of the result is written point by point while the row's inputs are read.
            let (components, name) = (result.components, &result.name);
            arrays.row_value = s.b.local(&format!("{name}_row"), components * self.q);
            if result.gradient && factors.derived[0] {
                arrays.row = Some(s.b.local(&format!("{name}_row_x"), components * self.q));
            }
        }
        ElementVector { field, rows, factors, arrays, dense }
    }

    fn arrays(&self, s: &mut Lowering<'_>, quantity: &Quantity, factors: &Factors) -> Arrays {
        let (name, components) = (&quantity.name, quantity.components);
        let q_all = self.volume();
        let nodal_length = components * quantity.element.count();
        if factors.dense {
            // Dense tables only need the nodes.
            let nodal = s.b.local(&format!("{name}_nodal"), nodal_length);
            let (last, middle, row) = (None, None, None);
            return Arrays { nodal, value: nodal, last, middle, row, row_value: nodal };
        }
        let value = s.b.local(&format!("{name}_q"), components * q_all);
        let nodal = if factors.is_collocated {
            value
        } else {
            s.b.local(&format!("{name}_nodal"), nodal_length)
        };
        let row_value = s.b.local(&format!("{name}_row"), components * self.q);
        let mut arrays = Arrays { nodal, value, last: None, middle: None, row: None, row_value };
        if quantity.gradient {
            self.derivative_arrays(s, quantity, &mut arrays, factors.derived);
        }
        arrays
    }

    fn derivative_arrays(
        &self,
        s: &mut Lowering<'_>,
        quantity: &Quantity,
        arrays: &mut Arrays,
        derived: [bool; 3],
    ) {
        let (name, components) = (&quantity.name, quantity.components);
        let letter = if self.dim == 3 { "z" } else { "y" };
        let q_all = self.volume();
        if derived[self.dim - 1] {
            arrays.last = Some(s.b.local(&format!("{name}_{letter}"), components * q_all));
        }
        if self.dim == 3 && derived[1] {
            arrays.middle = Some(s.b.local(&format!("{name}_y"), components * self.q * self.q));
        }
        if derived[0] {
            arrays.row = Some(s.b.local(&format!("{name}_x"), components * self.q));
        }
    }
}
