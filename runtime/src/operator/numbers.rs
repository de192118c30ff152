//! Unknown numbers of an operator: their values are parameters of its kernels, and two further operators compute their
//! equations and the border of the Jacobian ([`crate::solve::solve_bordered`]).
//!
//! The rows of the numbers are integrals. A kernel stores one entry per cell, and pairwise summation gives the total: it
//! depends neither on the number of threads nor on their order, and no two cells write to one entry.

use super::Operator;
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::solve::{Border, BorderedSystem, NonlinearSystem, OperatorError};
use std::ops::Range;

/// Unknown numbers with the operators of their equations.
pub(crate) struct NumberEquations {
    /// Values of the time and the parameters of the form, the numbers from `first` on.
    pub(crate) params: Vec<f64>,
    /// Position of the first number in `params`.
    pub(crate) first: usize,
    /// Number of numbers.
    pub(crate) count: usize,
    /// The rows and their derivatives by the numbers, in the degrees of freedom of a last field.
    pub(crate) integrals: CellIntegrals,
    /// The columns and rows of the border, by selectors after the parameters; `None` if both are 0.
    pub(crate) border: Option<Operator>,
    /// Fields whose constants the numbers determine.
    pub(crate) free: Vec<usize>,
    /// True if all equations are affine.
    pub(crate) affine: bool,
}

/// An operator whose residual has one entry per cell and component in a last field.
pub(crate) struct CellIntegrals {
    operator: Operator,
    found: Vector,
    /// Degrees of freedom and number of components of each additional field.
    further: Vec<(Range<usize>, usize)>,
}

impl CellIntegrals {
    /// Takes an operator whose fields from number `own` on are the additional ones, with their numbers of components.
    pub(crate) fn new(operator: Operator, own: usize, components: &[usize]) -> Self {
        let on = operator.discretisation();
        let dofs = (own..on.fields.len()).map(|field| on.dofs_of(field));
        let further = dofs.zip(components.iter().copied()).collect();
        let operator = operator.of_first(own);
        let found = operator.zeros();
        Self { operator, found, further }
    }

    /// Returns the operator.
    pub(crate) fn operator(&self) -> &Operator {
        &self.operator
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(crate) fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.operator.set_params(params)
    }

    /// Returns the integrals of all components of the additional fields at a state, concatenated.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(crate) fn evaluate(&mut self, state: &Vector) -> Result<Vec<f64>, OperatorError> {
        let Self { operator, found, further } = self;
        operator.residual(state, found)?;
        operator.finish()?;
        let mut sums = Vec::new();
        for (unknowns, components) in further {
            let mut field = found.part(unknowns.clone());
            // Unknowns of cells beyond a part count where their cell is.
            let others = found.sharing().map_or(&[][..], |sharing| sharing.others());
            for others in others {
                let (start, end) = (others.start.max(unknowns.start), others.end.min(unknowns.end));
                (start..end).for_each(|unknown| field[unknown - unknowns.start] = 0.0);
            }
            sums.extend((0..*components).map(|at| sum(&field, at, *components)));
        }
        operator.discretisation().mesh.sum_in_all(&mut sums);
        Ok(sums)
    }
}

/// Sums every `stride`-th number from `first` pairwise, so that rounding grows with the logarithm of their count.
fn sum(numbers: &[f64], first: usize, stride: usize) -> f64 {
    let count = numbers.len() / stride;
    if count <= 64 {
        return numbers.iter().skip(first).step_by(stride).sum();
    }
    let (left, right) = numbers.split_at(count / 2 * stride);
    sum(left, first, stride) + sum(right, first, stride)
}

impl NumberEquations {
    /// Returns the operators of the equations and of the border.
    pub(super) fn operators(&mut self) -> impl Iterator<Item = &mut Operator> {
        std::iter::once(&mut self.integrals.operator).chain(&mut self.border)
    }

    fn values(&self) -> &[f64] {
        &self.params[self.first..self.first + self.count]
    }

    /// Sets the time and the parameters, but keeps the numbers; returns all.
    pub(super) fn with_params(&mut self, params: &[f64]) -> Result<Vec<f64>, DeviceError> {
        let values = self.values().to_vec();
        let mut all = params.to_vec();
        all[self.first..self.first + self.count].copy_from_slice(&values);
        self.take_params(all)
    }

    fn take_params(&mut self, all: Vec<f64>) -> Result<Vec<f64>, DeviceError> {
        self.integrals.set_params(&all)?;
        self.params.clone_from(&all);
        Ok(all)
    }

    /// Returns the border's residual with one selector.
    fn selected(&mut self, u: &Vector, selector: usize) -> Result<Vector, OperatorError> {
        let mut found = u.like();
        let Some(border) = &mut self.border else { return Ok(found) };
        let mut params = self.params.clone();
        params.resize(params.len() + 2 * self.count, 0.0);
        params[self.params.len() + selector] = 1.0;
        border.set_params(&params)?;
        border.raw_residual(u, &mut found)?;
        Ok(found)
    }
}

impl Operator {
    /// Returns the rows of the numbers and their derivatives by numbers at a state.
    fn integrate(
        &self,
        numbers: &mut NumberEquations,
        u: &Vector,
    ) -> Result<Vec<f64>, OperatorError> {
        if self.blocks.on.affine.is_empty() {
            return numbers.integrals.evaluate(u);
        }
        let mut state = u.clone();
        self.engine.constraints().distribute(&mut state)?;
        numbers.integrals.evaluate(&state)
    }

    /// Sets the unknown numbers.
    pub(crate) fn with_number_equations(&mut self, numbers: NumberEquations) {
        self.numbers = Some(Box::new(numbers));
    }

    /// Replaces nodal data that the approximation of J⁻¹ does not depend on, by index: by entries of a vector of this
    /// operator, without host copies, or by 0. `from` returns the degree of freedom
    /// of each value; each operator calls it once.
    ///
    /// # Errors
    ///
    /// A device failure, a vector of another device.
    pub(crate) fn set_at_nodes(
        &mut self,
        aux: usize,
        x: Option<&Vector>,
        from: &dyn Fn() -> Vec<u32>,
    ) -> Result<(), OperatorError> {
        if let Some(numbers) = &mut self.numbers {
            numbers.operators().try_for_each(|own| own.set_at_nodes(aux, x, from))?;
        }
        self.blocks.set_at_nodes(self.engine.memory(), aux, x, from)
    }

    /// The same by values, which are copied from the host.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub(crate) fn set_values_at_nodes(
        &mut self,
        aux: usize,
        values: &[f64],
    ) -> Result<(), OperatorError> {
        if let Some(numbers) = &mut self.numbers {
            numbers.operators().try_for_each(|own| own.set_values_at_nodes(aux, values))?;
        }
        self.blocks.set_values_at_nodes(self.engine.memory(), aux, values)
    }

    /// Returns the values of the unknown numbers, and the position of the first among the parameters.
    pub(crate) fn number_values(&self) -> Option<(usize, &[f64])> {
        self.numbers.as_ref().map(|own| (own.first, own.values()))
    }
}

impl BorderedSystem for Operator {
    fn fields_alone(&mut self) -> &mut dyn NonlinearSystem {
        self
    }

    fn numbers(&self) -> Vec<f64> {
        self.numbers.as_ref().map_or_else(Vec::new, |own| own.values().to_vec())
    }

    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), OperatorError> {
        let Some(own) = &mut self.numbers else { return Ok(()) };
        let mut params = own.params.clone();
        params[own.first..own.first + own.count].copy_from_slice(numbers);
        own.take_params(params.clone())?;
        // The Jacobian of affine equations does not depend on the numbers; nor does its approximation.
        let kept = if own.affine { self.take_approximation() } else { None };
        let set = self.set_params(&params);
        if kept.is_some() {
            self.precondition_by(kept);
        }
        Ok(set?)
    }

    fn both_residuals(&mut self, u: &Vector, r: &mut Vector) -> Result<Vec<f64>, OperatorError> {
        self.raw_residual(u, r)?;
        let Some(mut own) = self.numbers.take() else { return Ok(Vec::new()) };
        let found = self.balance_all_but(&own.free, r).and_then(|()| self.integrate(&mut own, u));
        let count = own.count;
        self.numbers = Some(own);
        let mut found = found?;
        found.truncate(count);
        Ok(found)
    }

    fn border(&mut self, u: &Vector) -> Result<Border, OperatorError> {
        let Some(mut own) = self.numbers.take() else {
            return Ok(Border { columns: Vec::new(), rows: Vec::new(), corner: Vec::new() });
        };
        let count = own.count;
        let selected = (0..2 * count).map(|at| own.selected(u, at));
        let border = selected.collect::<Result<Vec<_>, _>>().and_then(|mut columns| {
            let rows = columns.split_off(count);
            let corner = self.integrate(&mut own, u)?.split_off(count);
            Ok(Border { columns, rows, corner })
        });
        self.numbers = Some(own);
        border
    }

    fn is_affine(&self) -> bool {
        self.numbers.as_ref().is_none_or(|own| own.affine)
    }

    fn free_constants(&self) -> Vec<Vector> {
        let free = self.numbers.iter().flat_map(|own| &own.free);
        free.flat_map(|&field| self.constants_of(field).cloned()).collect()
    }

    fn make_consistent(&self, r: &mut Vector) -> Result<(), OperatorError> {
        self.balance(r)
    }

    fn settle(&self, u: &mut Vector) -> Result<(), OperatorError> {
        let free = self.numbers.as_ref().map_or(&[][..], |own| &own.free);
        self.complete_all_but(free, u)
    }
}
