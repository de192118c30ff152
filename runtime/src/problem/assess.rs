//! Errors against known solutions, and the energy of a solution.
//!
//! Large meshes are integrated by generated kernels ([`fem_dsl::measures`]), in double precision whatever the precision
//! of the solve. Small ones use the interpreter of point forms ([`functional`]), which needs no compiler; it is also
//! the fallback if kernels cannot be compiled.

use super::evaluation_state::EvaluationState;
use super::integrals::Integrals;
use super::kernels::SharedResources;
use super::platform::Platform;
use super::{DataError, RunError};
use crate::algebra::vector::{Precision, root_of_squares};
use crate::device::jit::Jit;
use crate::kernels::compile::prefetch::KernelRequest;
use crate::kernels::compile::{Execution, Target, facts};
use crate::operator::TableCache;
use crate::operator::functional::{self, measuring_rule, rule_of_data};
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::measures;
use fem_dsl::point::{Integral, PointForm};
use fem_dsl::problem::{Expression, Problem};
use kernels_gen::choose::PlanOverrides;
use kernels_gen::element::{LinePoints, Rule};
use kernels_gen::plan::{Elements, Task};

/// Number of quadrature points from which compiled kernels are faster than the interpreter.
const MANY: usize = 1_000_000;

/// Integration backend.
#[derive(Clone, Copy)]
pub(super) struct IntegrationBackend<'a> {
    /// Processor and device.
    platform: &'a Platform,
    /// Number of quadrature points from which kernels are compiled.
    many: usize,
}

impl<'a> IntegrationBackend<'a> {
    pub(super) fn new(platform: &'a Platform) -> Self {
        Self { platform, many: MANY }
    }

    /// Returns the kernels that evaluate errors and the energy of a solution.
    pub(super) fn requests(
        &self,
        problem: &Problem,
        on: &Discretisation,
        elements: &Elements,
    ) -> Vec<KernelRequest> {
        let known = (!problem.exact.is_empty()).then(|| {
            (measures::errors(&problem.form, &problem.exact), measuring_rule(on, elements.rule))
        });
        let energy = energy_of(&problem.form, problem).and_then(|_| {
            Some((measures::energy(&problem.form)?, rule_of_data(on, elements.rule)))
        });
        let request = |(form, rule): (PointForm, Rule)| {
            let Platform { target, device, .. } = self.kernels(on, rule)?;
            let elements = Elements::new(&form, elements.cell, elements.degree, rule).ok()?;
            let (tasks, deferred) = (vec![Task::Residual], Vec::new());
            let (facts, needs_deferred) = (facts(on), false);
            Some(KernelRequest {
                form,
                elements,
                facts,
                tasks,
                deferred,
                needs_deferred,
                target,
                device,
            })
        };
        known.into_iter().chain(energy).filter_map(request).collect()
    }

    /// Returns the platform of compiled kernels for a rule; `None` selects the interpreter.
    fn kernels(&self, on: &Discretisation, rule: Rule) -> Option<Platform> {
        let target = self.platform.target;
        let few = on.mesh.cells_in_all() * rule.count() < self.many;
        if few || target.execution == Execution::Interpreted {
            return None;
        }
        // Errors below single precision need double precision.
        let device = self.platform.device.as_ref().filter(|_| target.precision == Precision::F64);
        if device.is_none() && Jit::global().compiler().is_err() {
            return None;
        }
        let (precision, wishes) = (Precision::F64, PlanOverrides::default());
        let target = Target { precision, wishes, execution: Execution::Compiled, ..target };
        Some(Platform::new(target, device.cloned()))
    }
}

/// Returns the errors against known solutions, (field, L2, H1), and the energy if the form has one. `table_cache`
/// caches operator tables.
///
/// # Errors
///
/// An error that is not finite.
pub(super) fn assess(
    problem: &Problem,
    of: EvaluationState<'_>,
    means: IntegrationBackend<'_>,
    table_cache: &mut TableCache,
) -> Result<(Vec<(usize, f64, f64)>, Option<f64>), RunError> {
    let form = of.form;
    // Tables of another precision or device cannot be shared.
    let mut other = TableCache::default();
    let table_cache =
        if means.platform.target.precision == Precision::F64 { table_cache } else { &mut other };
    let known = errors(&problem.exact, of, means, table_cache)?;
    for &(field, l2, h1) in &known {
        if let Some(value) = [l2, h1].into_iter().find(|error| !error.is_finite()) {
            let field = form.fields[field].name.clone();
            return Err(DataError::ExactNotFinite { field, value }.into());
        }
    }
    let integral = energy_of(form, problem);
    let energy = integral.map(|own| energy(own, of, means, table_cache)).transpose()?;
    Ok((known, energy))
}

/// Returns the integral of a form that has an energy; that of a stage contains terms of its time derivative.
fn energy_of<'f>(form: &'f PointForm, problem: &Problem) -> Option<&'f Integral> {
    match form.integrals.as_slice() {
        [integral]
            if integral.symmetric
                && integral.region.is_of_cells()
                && problem.stepping.is_none() =>
        {
            Some(integral)
        }
        _ => None,
    }
}

/// Computes the errors against known solutions.
fn errors(
    known: &[(usize, Expression)],
    of: EvaluationState<'_>,
    means: IntegrationBackend<'_>,
    table_cache: &mut TableCache,
) -> Result<Vec<(usize, f64, f64)>, RunError> {
    let EvaluationState { on, u, parameters, .. } = of;
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let rule = measuring_rule(on, of.elements.rule);
    if let Some(platform) = means.kernels(of.on, rule) {
        match errors_by_kernels(known, of, SharedResources { platform: &platform, table_cache }) {
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
    of: EvaluationState<'_>,
    beside: SharedResources<'_>,
) -> Result<Vec<(usize, f64, f64)>, RunError> {
    let form = measures::errors(of.form, known);
    let EvaluationState { on, elements, .. } = of;
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

/// Computes the energy at a state minus the energy at 0.
fn energy(
    integral: &Integral,
    of: EvaluationState<'_>,
    means: IntegrationBackend<'_>,
    table_cache: &mut TableCache,
) -> Result<f64, RunError> {
    let EvaluationState { on, u, elements, parameters, .. } = of;
    let rule = rule_of_data(on, elements.rule);
    if let Some(platform) = means.kernels(of.on, rule) {
        match energy_by_kernels(integral, of, SharedResources { platform: &platform, table_cache })
        {
            Ok(found) => return Ok(found),
            Err(error) => tracing::debug!("the energy is interpreted: {error}"),
        }
    }
    Ok(functional::energy(on, integral, rule, u, parameters)?)
}

fn energy_by_kernels(
    integral: &Integral,
    of: EvaluationState<'_>,
    beside: SharedResources<'_>,
) -> Result<f64, RunError> {
    let Some(form) = measures::energy(of.form) else { return Ok(0.0) };
    let elements = of.elements;
    let rule = rule_of_data(of.on, elements.rule);
    let elements = Elements::new(&form, elements.cell, elements.degree, rule)?;
    // The ray may pass through states without a density.
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

/// Appends s to the parameter values.
fn scaled(of: EvaluationState<'_>, s: f64) -> Vec<f64> {
    let Parameters { values, .. } = of.parameters;
    values.iter().copied().chain([s]).collect()
}

#[cfg(test)]
mod tests;
