//! Load stepping for Newton's method: R(u; s) = 0 for s = 1/n, 2/n, …, 1, with boundary values, parameters and data
//! that depend on s.
//!
//! Each step starts from the solution u of the last one and follows the tangent of the path,
//!
//! ```text
//! u ← u + Δg + δ,    J(u; s) δ = −R(u; s) − (R(u + ε Δg; s + ε Δs) − R(u; s)) / ε
//! ```
//!
//! with the change Δg = g(s + Δs) − g(s) of the boundary values. The interior thus follows the boundary at once;
//! otherwise cells at the boundary would invert. The difference quotient only provides an initial guess.
//!
//! A failed step is halved, repeatedly up to [`HALVINGS`] times.

use super::linear_solver::LinearSolver;
use super::{
    CgSettings, NewtonOptions, NonlinearSystem, Observer, OperatorError, Outcome, Progress, Report,
    newton,
};
use crate::algebra::vector::Vector;
use crate::support::progress::doing;

/// ε of the difference quotient, relative to a load step.
const EPSILON: f64 = 1e-6;
/// Relative tolerance of the tangent.
const TANGENT: f64 = 1e-3;
/// Maximum number of halvings of a load step.
pub const HALVINGS: u32 = 4;

/// A system with a load factor.
pub trait LoadableSystem: NonlinearSystem {
    /// Sets the load factor `s` from 0 to 1, and the essential boundary values `boundary`, with 0 in free degrees of
    /// freedom.
    ///
    /// # Errors
    ///
    /// Undefined values at this load, or a device failure.
    fn set_load(&mut self, s: f64, boundary: &mut Vector) -> Result<(), OperatorError>;
}

/// Report of a solve in load steps.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// Outcome, steps and history of all load steps, failed ones included.
    pub newton: Report,
    /// Number of completed load steps.
    pub solved: usize,
    /// Numbers of the halved load steps, from 1.
    pub halved: Vec<usize>,
}

/// Solves R(u; 1) = 0 in `steps` equal load steps from R(u; 0) = 0. On entry `u` has the boundary values of the full
/// load; with those of zero load it is a solution or a guess at s = 0.
///
/// # Errors
///
/// The system cannot be applied.
pub fn newton_in_load_steps(
    system: &mut dyn LoadableSystem,
    u: &mut Vector,
    steps: usize,
    settings: NewtonOptions,
    observe: Observer<'_>,
    observe_inner: Observer<'_>,
) -> Result<LoadReport, OperatorError> {
    let steps = steps.max(1);
    // Load in units of the smallest step.
    let (whole, end) = (1 << HALVINGS, steps << HALVINGS);
    let load = |at: usize| at as f64 / end as f64;
    let mut all: Option<Report> = None;
    let mut halved = Vec::new();
    let (mut boundary, mut before) = (u.like(), u.like());
    system.set_load(1.0, &mut boundary)?;
    u.axpy(-1.0, &boundary);
    system.set_load(0.0, &mut boundary)?;
    u.axpy(1.0, &boundary);
    let (mut at, mut size) = (0, whole);
    loop {
        before.copy_from(u);
        let _said = doing(format!("load step {} of {steps}", at / whole + 1));
        tangent(system, u, (load(at), load(at + size)), settings, observe_inner)?;
        let iterations = all.as_ref().map_or(0, |all| all.iterations);
        let mut counted = |progress: Progress| {
            observe(Progress { iteration: iterations + progress.iteration, ..progress })
        };
        let report = newton(system, u, settings, &mut counted, observe_inner)?;
        let outcome = report.outcome;
        let joined = match all {
            None => report,
            Some(before) => join(before, report),
        };
        match outcome {
            _ if outcome.is_success() => {
                at += size;
                // Merges two halves.
                while size < whole && at.is_multiple_of(2 * size) {
                    size *= 2;
                }
            }
            Outcome::Cancelled | Outcome::Singular { .. } => {
                return Ok(LoadReport { newton: joined, solved: at / whole, halved });
            }
            _ if size == 1 => {
                return Ok(LoadReport { newton: joined, solved: at / whole, halved });
            }
            _ => {
                size /= 2;
                let step = at / whole + 1;
                if halved.last() != Some(&step) {
                    halved.push(step);
                }
                u.copy_from(&before);
            }
        }
        if at == end {
            return Ok(LoadReport { newton: joined, solved: steps, halved });
        }
        all = Some(joined);
    }
}

/// Joins the reports of two solves; omits the initial residual of the second, so that there is one entry per step.
pub(crate) fn join(mut all: Report, next: Report) -> Report {
    all.outcome = next.outcome;
    all.iterations += next.iterations;
    all.history.extend_from_slice(&next.history[1..]);
    all.target = next.target;
    all.seconds += next.seconds;
    let news = next.notes.into_iter().filter(|note| !all.notes.contains(note));
    let news: Vec<String> = news.collect();
    all.notes.extend(news);
    all.newton.extend(next.newton);
    all
}

/// Follows the tangent from the solution at the first load to the second load.
fn tangent(
    system: &mut dyn LoadableSystem,
    u: &mut Vector,
    (s, end): (f64, f64),
    settings: NewtonOptions,
    observe: Observer<'_>,
) -> Result<(), OperatorError> {
    let (mut r, mut moved_r, mut moved) = (u.like(), u.like(), u.clone());
    let (mut change, mut scratch) = (u.like(), u.like());
    system.set_load(end, &mut change)?;
    system.set_load(s, &mut scratch)?;
    change.axpy(-1.0, &scratch);
    system.residual(u, &mut r)?;
    system.set_load(s + EPSILON * (end - s), &mut scratch)?;
    moved.axpy(EPSILON, &change);
    system.residual(&moved, &mut moved_r)?;
    system.set_load(s, &mut scratch)?;
    // moved_r = −R − (R' − R)/ε
    moved_r.axpby(1.0 / EPSILON - 1.0, &r, -1.0 / EPSILON);
    let mut direction = LinearSolver::new(u, settings.linear);
    let max_iterations = settings.max_inner;
    let linear = CgSettings { rtol: TANGENT, max_iterations, ..CgSettings::default() };
    let report = direction.solve(system, u, &moved_r, linear, observe)?;
    u.axpy(1.0, &change);
    system.set_load(end, &mut scratch)?;
    // Without a tangent only the boundary moves; Newton's method will report the cause.
    let usable = matches!(report.outcome, Outcome::IterationLimit | Outcome::Stagnated);
    if (usable || report.outcome.is_success()) && direction.delta.norm().is_finite() {
        u.axpy(1.0, &direction.delta);
    }
    Ok(())
}
