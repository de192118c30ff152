//! Errors against known solutions, and the energy: of a solution → numbers.
//!
//! Where there are many points, generated kernels integrate ([`fem_dsl::measures`]), in double precision whatever the solve
//! was in; else the interpreter of point forms does ([`functional`]), which needs no compiler. It does, too, where kernels
//! cannot be made.

use super::RunError;
use super::integrals::{Beside, Integrals};
use super::reports::State;
use crate::algebra::vector::{Precision, root_of_squares};
use crate::device::Device;
use crate::device::jit::Jit;
use crate::kernels::compile::{Execution, Target};
use crate::operator::Shelf;
use crate::operator::functional::{self, measuring_rule, rule_of_data};
use crate::support::expression::Parameters;
use fem_dsl::measures;
use fem_dsl::point::Integral;
use fem_dsl::problem::{Expression, Problem};
use kernels_gen::choose::Wishes;
use kernels_gen::element::{LinePoints, Rule};
use kernels_gen::plan::Elements;
use std::sync::Arc;

/// The points from which on kernels are compiled: the interpreter takes longer than that there.
const MANY: usize = 1_000_000;

/// What integrates.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    /// For what kernels are compiled.
    target: &'a Target,
    /// Where they run.
    device: Option<&'a Arc<dyn Device>>,
    /// The points from which on they are.
    many: usize,
}

impl<'a> Means<'a> {
    pub(super) fn new(target: &'a Target, device: Option<&'a Arc<dyn Device>>) -> Self {
        Self { target, device, many: MANY }
    }

    /// For what kernels are compiled that integrate with a rule; none where the interpreter does.
    fn kernels(&self, of: State<'_>, rule: Rule) -> Option<(Target, Option<&'a Arc<dyn Device>>)> {
        let target = self.target;
        let few = of.on.mesh.cells_in_all() * rule.count() < self.many;
        if few || target.execution == Execution::Interpreted {
            return None;
        }
        // What single precision has rounded away is not to be found with it.
        let device = self.device.filter(|_| target.precision == Precision::F64);
        if device.is_none() && Jit::global().compiler().is_err() {
            return None;
        }
        let (precision, wishes) = (Precision::F64, Wishes::default());
        Some((Target { precision, wishes, execution: Execution::Compiled, ..*target }, device))
    }
}

/// The errors where a solution is known, (field, L2, H1), and the energy where there is one. `shelf` has what operators need
/// not make again.
///
/// # Errors
///
/// An error that is not finite.
pub(super) fn assess(
    problem: &Problem,
    of: State<'_>,
    means: Means<'_>,
    shelf: &mut Shelf,
) -> Result<(Vec<(usize, f64, f64)>, Option<f64>), RunError> {
    let form = of.form;
    // What is measured in another precision, or elsewhere, than was solved in shares nothing with that.
    let mut other = Shelf::default();
    let shelf = if means.target.precision == Precision::F64 { shelf } else { &mut other };
    let known = errors(&problem.exact, of, means, shelf)?;
    for &(field, l2, h1) in &known {
        if let Some(value) = [l2, h1].into_iter().find(|error| !error.is_finite()) {
            let field = form.fields[field].name.clone();
            return Err(RunError::ExactNotFinite { field, value });
        }
    }
    let energy = match form.integrals.as_slice() {
        [integral] if integral.symmetric => Some(energy(integral, of, means, shelf)?),
        _ => None,
    };
    Ok((known, energy))
}

/// The errors against known solutions.
fn errors(
    known: &[(usize, Expression)],
    of: State<'_>,
    means: Means<'_>,
    shelf: &mut Shelf,
) -> Result<Vec<(usize, f64, f64)>, RunError> {
    let State { on, u, parameters, .. } = of;
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let rule = measuring_rule(on, of.elements.rule);
    if let Some((target, device)) = means.kernels(of, rule) {
        match errors_by_kernels(known, of, Beside { target: &target, device, shelf }) {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!("errors are interpreted: {error}"),
        }
    }
    let one = |(field, exact): &(usize, Expression)| {
        let (l2, h1) = functional::errors(on, (*field, rule), u, exact, parameters)?;
        Ok((*field, l2, h1))
    };
    known.iter().map(one).collect()
}

fn errors_by_kernels(
    known: &[(usize, Expression)],
    of: State<'_>,
    beside: Beside<'_>,
) -> Result<Vec<(usize, f64, f64)>, RunError> {
    let form = measures::errors(of.form, known);
    let State { on, elements, .. } = of;
    let rule = measuring_rule(on, elements.rule);
    let elements = Elements::new(&form, elements.cell, elements.degree, rule)?;
    let mut integrals = Integrals::new(&form, &elements, of, &scaled(of, 1.0), beside)?;
    let plain = integrals.evaluate()?;
    let mut norms = Vec::with_capacity(plain.len());
    for (at, &sum) in plain.iter().enumerate() {
        norms.push(root_of_squares(sum, |factor| {
            integrals.set_params(&scaled(of, factor))?;
            Ok::<_, RunError>(integrals.evaluate()?[at])
        })?);
    }
    let one = |((field, _), norms): (&(usize, Expression), &[f64])| {
        (*field, norms[0], norms[0].hypot(norms[1]))
    };
    Ok(known.iter().zip(norms.chunks(2)).map(one).collect())
}

/// The energy at a state, less that at 0.
fn energy(
    integral: &Integral,
    of: State<'_>,
    means: Means<'_>,
    shelf: &mut Shelf,
) -> Result<f64, RunError> {
    let State { on, u, elements, parameters, .. } = of;
    let rule = rule_of_data(on, elements.rule);
    if let Some((target, device)) = means.kernels(of, rule) {
        match energy_by_kernels(integral, of, Beside { target: &target, device, shelf }) {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!("the energy is interpreted: {error}"),
        }
    }
    Ok(functional::energy(on, integral, rule, u, parameters)?)
}

fn energy_by_kernels(
    integral: &Integral,
    of: State<'_>,
    beside: Beside<'_>,
) -> Result<f64, RunError> {
    let Some(form) = measures::energy(of.form) else { return Ok(0.0) };
    let elements = of.elements;
    let rule = rule_of_data(of.on, elements.rule);
    let elements = Elements::new(&form, elements.cell, elements.degree, rule)?;
    // The ray may lead through states that have no density.
    let along: Vec<(f64, f64)> = match integral.energy {
        Some(_) => vec![(1.0, 1.0), (0.0, -1.0)],
        None => {
            let ray = LinePoints::Gauss(functional::points_of_ray(integral));
            ray.points().into_iter().zip(ray.weights()).collect()
        }
    };
    let mut integrals = Integrals::new(&form, &elements, of, &scaled(of, 1.0), beside)?;
    let mut energy = 0.0;
    for (s, weight) in along {
        integrals.set_params(&scaled(of, s))?;
        energy += weight * integrals.evaluate()?.first().copied().unwrap_or(0.0);
    }
    Ok(energy)
}

/// The values of the parameters, and that of s behind them.
fn scaled(of: State<'_>, s: f64) -> Vec<f64> {
    let Parameters { values, .. } = of.parameters;
    values.iter().copied().chain([s]).collect()
}

#[cfg(test)]
mod tests;
