//! Diagnosis of a failed Newton solve: the switches of a form at the last iterate, and a remedy by a parameter sweep or
//! load steps. Runs only after a failure.

use super::context::Context;
use super::numerical_null_space::empty_row;
use super::{ConvergenceError, LastState, RunError};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::solve::{NonlinearSystem, Outcome, Report};
use crate::space::discretisation::Discretisation;
use crate::support::random::random_entries;
use fem_dsl::point::{Shape, factor_of_switches, switches};
use std::fmt;
use std::sync::Arc;

/// Size of a state perturbation, relative to max(largest entry, 1).
const PERTURBATION: f64 = 1e-3;

/// Properties of a form that make Newton's method fail.
#[derive(Clone, Debug, PartialEq)]
pub struct NewtonDifficulty {
    /// Nonsmooth functions of the solution, as spelled in the language.
    pub switches: Vec<&'static str>,
    /// A parameter for a sweep or load steps, with its value.
    pub param: Option<(String, f64)>,
}

impl fmt::Display for NewtonDifficulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.switches.iter().map(|name| format!("`{name}`")).collect();
        write!(f, "the form switches with the solution, by {}", names.join(", "))
    }
}

impl NewtonDifficulty {
    /// Returns the help text.
    pub fn remedy(&self) -> String {
        match &self.param {
            None => "take load steps, `solver = newton(steps: 10);`, or replace the switch by a smooth function".to_owned(),
            Some((name, value)) => {
                let values = (0..5).rev().map(|by| format!("{:e}", value / 10f64.powi(by)));
                let values: Vec<String> = values.collect();
                format!(
                    "approach it by a sweep, each solve from the one before, as `--param {name}={}`; or take load steps, \
                     `solver = newton(steps: 10, load: {name});`",
                    values.join(",")
                )
            }
        }
    }
}

/// A Jacobian that is singular at the initial state only: an equation has an empty row there, but not at states nearby.
#[derive(Clone, Debug, PartialEq)]
pub struct DegenerateJacobian {
    /// Field of the equation.
    pub field: String,
    /// Coordinates of the node.
    pub place: [f64; 3],
    /// Name of a parameter, a value at which the Jacobian is regular at this state, and the parameter's own value.
    pub param: Option<(String, f64, f64)>,
}

impl fmt::Display for DegenerateJacobian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.place;
        write!(
            f,
            "the Jacobian is singular at the start: the derivative of the equation of `{}` is 0 at ({x}, {y}, {z}) in this state, and elsewhere not",
            self.field
        )
    }
}

impl DegenerateJacobian {
    /// Returns the help text.
    pub fn remedy(&self) -> String {
        let field = &self.field;
        let start = format!("start elsewhere, by `initial {field} = …;`");
        match &self.param {
            None => start,
            Some((name, other, own)) => {
                format!(
                    "start from the solution with another parameter, by `--param {name}={other},{own}`, or {start}"
                )
            }
        }
    }
}

impl Context {
    /// Returns the report of a converged solve, or the error with its cause; `u` is the last iterate.
    ///
    /// # Errors
    ///
    /// The solve has not converged.
    pub fn converged(
        &self,
        operator: &mut Operator,
        u: &Vector,
        report: Report,
    ) -> Result<Report, RunError> {
        let source = match report.converged() {
            Ok(report) => return Ok(report),
            Err(source) => source,
        };
        if self.is_linear() || source.outcome == Outcome::Cancelled {
            return Err(source.into());
        }
        if let Some(degenerate) = self.degenerate(operator, u)? {
            return Err(ConvergenceError::Degenerate(degenerate).into());
        }
        let switches = switches(self.form());
        if switches.is_empty() {
            return Err(source.into());
        }
        let param = self
            .param_of_switches()
            .map(|(number, value)| (self.form().params[number].name.clone(), value));
        let difficulty = Box::new(NewtonDifficulty { switches, param });
        Err(ConvergenceError::Difficult { source, difficulty }.into())
    }

    /// Returns a diagnosis if the Jacobian is singular at a state but regular at a random perturbation of it.
    pub(super) fn degenerate(
        &self,
        operator: &mut Operator,
        u: &Vector,
    ) -> Result<Option<DegenerateJacobian>, RunError> {
        operator.linearise(u)?;
        let Some((of, place)) = empty_row(operator, &self.on)? else { return Ok(None) };
        let mut beside = u.clone();
        let state = u.to_vec();
        let largest = state.iter().fold(0.0f64, |most, entry| most.max(entry.abs()));
        let size = PERTURBATION * u.largest(largest).max(1.0);
        let moved = random_entries(u.len(), 5).into_iter().zip(state).map(|(x, u)| u + size * x);
        beside.set(&moved.collect::<Vec<f64>>());
        beside.synchronise();
        operator.linearise(&beside)?;
        if empty_row(operator, &self.on)?.is_some() {
            return Ok(None);
        }
        let field = self.form().fields[of.field].name.clone();
        let param = self.regular_beside(operator, u)?;
        Ok(Some(DegenerateJacobian { field, place, param }))
    }

    /// Searches for a parameter value at which the Jacobian is regular at a state; returns name, value and the
    /// parameter's own value.
    fn regular_beside(
        &self,
        operator: &mut Operator,
        u: &Vector,
    ) -> Result<Option<(String, f64, f64)>, RunError> {
        let own = &self.parameters.values;
        let mut found = None;
        for (number, param) in self.form().params.iter().enumerate() {
            if param.shape != Shape::Scalar {
                continue;
            }
            let at = self.parameters.range(number).start;
            for value in [own[at] - 1.0, own[at] - 2.0, 2.0, 1.0, 0.0, 1e-3] {
                let mut values = own.clone();
                values[at] = value;
                operator.set_params(&values)?;
                operator.linearise(u)?;
                if found.is_none() && value != own[at] && empty_row(operator, &self.on)?.is_none() {
                    found = Some((param.name.clone(), value, own[at]));
                }
            }
        }
        operator.set_params(own)?;
        Ok(found)
    }

    /// Returns the index of the first scalar parameter that multiplies a switch, and its value.
    pub(super) fn param_of_switches(&self) -> Option<(usize, f64)> {
        let number = factor_of_switches(self.form())?;
        let range = self.parameters.range(number);
        (range.len() == 1).then(|| (number, self.parameters.values[range.start]))
    }
}

/// Attaches the last iterate to an error, if it is finite.
pub(super) fn unconverged(error: RunError, on: &Arc<Discretisation>, u: &Vector) -> RunError {
    use ConvergenceError::{Difficult, LoadStep, Solve};
    if !matches!(error, RunError::Convergence(Solve(_) | Difficult { .. } | LoadStep { .. })) {
        return error;
    }
    let u = u.to_vec();
    match u.iter().all(|value| value.is_finite()) {
        true => RunError::Unconverged {
            source: Box::new(error),
            reached: Box::new(LastState { on: Arc::clone(on), u }),
        },
        false => error,
    }
}
