//! Load steps for Newton's method: R(u; s) = 0 for s = 1/n, 2/n, …, 1, where s scales boundary values and parameters.
//!
//! Each step starts from the solution u of the one before and goes along the tangent of the path,
//!
//! ```text
//! u ← u + Δg + δ,    J(u; s) δ = −R(u; s) − (R(u + ε Δg; s + ε Δs) − R(u; s)) / ε
//! ```
//!
//! with the change Δg of the boundary values, so that the interior follows the boundary at once: cells beside it would
//! turn inside out otherwise. The difference quotient has only to be good enough for a guess.

use super::direction::Direction;
use super::{
    CgSettings, NewtonReport, NewtonSettings, NonlinearSystem, Observer, OperatorError, Outcome,
    Progress, newton,
};
use crate::vector::Vector;

/// ε of the difference quotient, relative to a load step.
const EPSILON: f64 = 1e-6;
/// How well the tangent is solved for.
const TANGENT: f64 = 1e-3;

/// A system with a load.
pub trait Loaded: NonlinearSystem {
    /// Scales what grows with the load, boundary values aside, by `s`, from 0 to 1.
    ///
    /// # Errors
    ///
    /// What fails on a device.
    fn set_load(&mut self, s: f64) -> Result<(), OperatorError>;
}

/// How a solve in load steps went.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// Outcome, steps and history of all load steps together.
    pub newton: NewtonReport,
    /// The load steps that were solved.
    pub solved: usize,
}

/// Solves R(u; 1) = 0 by `steps` equal load steps from R(u; 0) = 0, of which `u` without its boundary values
/// `boundary` is a solution or a guess. `boundary` is 0 in free unknowns.
///
/// # Errors
///
/// The system cannot be applied.
pub fn newton_in_load_steps(
    system: &mut dyn Loaded,
    u: &mut Vector,
    boundary: &Vector,
    steps: usize,
    settings: NewtonSettings,
    observe: Observer<'_>,
    observe_inner: Observer<'_>,
) -> Result<LoadReport, OperatorError> {
    let steps = steps.max(1);
    let mut all: Option<NewtonReport> = None;
    u.axpy(-1.0, boundary);
    for step in 1..=steps {
        tangent(system, u, boundary, step, steps, settings, observe_inner)?;
        let before = all.as_ref().map_or(0, |all| all.report.iterations);
        let mut counted = |progress: Progress| {
            observe(Progress { iteration: before + progress.iteration, ..progress })
        };
        let report = newton(system, u, settings, &mut counted, observe_inner)?;
        let outcome = report.report.outcome;
        let joined = match all {
            None => report,
            Some(before) => join(before, report),
        };
        if outcome != Outcome::Converged || step == steps {
            let solved = if outcome == Outcome::Converged { step } else { step - 1 };
            return Ok(LoadReport { newton: joined, solved });
        }
        all = Some(joined);
    }
    Err(OperatorError::new("there is no load step"))
}

/// The reports of two load steps as one: the second's first residual is left out, so that there is one a step.
fn join(mut all: NewtonReport, next: NewtonReport) -> NewtonReport {
    let report = &mut all.report;
    report.outcome = next.report.outcome;
    report.iterations += next.report.iterations;
    report.history.extend_from_slice(&next.report.history[1..]);
    report.target = next.report.target;
    report.seconds += next.report.seconds;
    all.steps.extend(next.steps);
    all
}

/// Goes from the solution at s = (step − 1)/steps along the tangent to s = step/steps.
fn tangent(
    system: &mut dyn Loaded,
    u: &mut Vector,
    boundary: &Vector,
    step: usize,
    steps: usize,
    settings: NewtonSettings,
    observe: Observer<'_>,
) -> Result<(), OperatorError> {
    let (size, s) = (1.0 / steps as f64, (step - 1) as f64 / steps as f64);
    let (mut r, mut moved_r, mut moved) = (u.like(), u.like(), u.clone());
    system.set_load(s)?;
    system.residual(u, &mut r)?;
    system.set_load(s + EPSILON * size)?;
    moved.axpy(EPSILON * size, boundary);
    system.residual(&moved, &mut moved_r)?;
    system.set_load(s)?;
    // moved_r = −R − (R' − R)/ε
    moved_r.axpby(1.0 / EPSILON - 1.0, &r, -1.0 / EPSILON);
    let mut direction = Direction::new(u, settings.linear);
    let linear = CgSettings { rtol: TANGENT, atol: 0.0, max_iterations: settings.max_inner };
    let report = direction.solve(system, u, &moved_r, linear, observe)?;
    u.axpy(size, boundary);
    system.set_load(s + size)?;
    // Without a tangent the boundary moves alone; Newton's method says what is wrong.
    if matches!(report.outcome, Outcome::Converged | Outcome::IterationLimit | Outcome::Stagnated)
        && direction.delta.norm().is_finite()
    {
        u.axpy(1.0, &direction.delta);
    }
    Ok(())
}
