//! Load steps for Newton's method: R(u; s) = 0 for s = 1/n, 2/n, …, 1, where boundary values, parameters and data follow s.
//!
//! Each step starts from the solution u of the one before and goes along the tangent of the path,
//!
//! ```text
//! u ← u + Δg + δ,    J(u; s) δ = −R(u; s) − (R(u + ε Δg; s + ε Δs) − R(u; s)) / ε
//! ```
//!
//! with the change Δg = g(s + Δs) − g(s) of the boundary values, so that the interior follows the boundary at once: cells
//! beside it would turn inside out otherwise. The difference quotient has only to be good enough for a guess.
//!
//! A step that fails is taken in halves, from where it began, and these again, up to [`HALVINGS`] times.

use super::direction::Direction;
use super::{
    CgSettings, NewtonSettings, NonlinearSystem, Observer, OperatorError, Outcome, Progress,
    Report, newton,
};
use crate::algebra::vector::Vector;
use crate::support::doing::doing;

/// ε of the difference quotient, relative to a load step.
const EPSILON: f64 = 1e-6;
/// How well the tangent is solved for.
const TANGENT: f64 = 1e-3;
/// How often a load step that fails is halved.
pub const HALVINGS: u32 = 4;

/// A system with a load.
pub trait Loaded: NonlinearSystem {
    /// Makes it the system at the load `s`, from 0 to 1, and gives `boundary` the values of the essential conditions
    /// there, 0 in free unknowns.
    ///
    /// # Errors
    ///
    /// What has no value at this load, what fails on a device.
    fn set_load(&mut self, s: f64, boundary: &mut Vector) -> Result<(), OperatorError>;
}

/// How a solve in load steps went.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadReport {
    /// Outcome, steps and history of all load steps together, those that failed and were halved too.
    pub newton: Report,
    /// The load steps that were solved.
    pub solved: usize,
    /// The load steps that were halved, by their numbers from 1 on.
    pub halved: Vec<usize>,
}

/// Solves R(u; 1) = 0 by `steps` equal load steps from R(u; 0) = 0, of which `u` with the boundary values there is a
/// solution or a guess. `u` has the boundary values of the full load.
///
/// # Errors
///
/// The system cannot be applied.
pub fn newton_in_load_steps(
    system: &mut dyn Loaded,
    u: &mut Vector,
    steps: usize,
    settings: NewtonSettings,
    observe: Observer<'_>,
    observe_inner: Observer<'_>,
) -> Result<LoadReport, OperatorError> {
    let steps = steps.max(1);
    // The load in parts that are as small as they may become.
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
                // Two halves are a whole.
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

/// The reports of two solves as one: the second's first residual is left out, so that there is one a step.
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

/// Goes from the solution at the first load along the tangent to the second.
fn tangent(
    system: &mut dyn Loaded,
    u: &mut Vector,
    (s, end): (f64, f64),
    settings: NewtonSettings,
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
    let mut direction = Direction::new(u, settings.linear);
    let max_iterations = settings.max_inner;
    let linear = CgSettings { rtol: TANGENT, max_iterations, ..CgSettings::default() };
    let report = direction.solve(system, u, &moved_r, linear, observe)?;
    u.axpy(1.0, &change);
    system.set_load(end, &mut scratch)?;
    // Without a tangent the boundary moves alone; Newton's method says what is wrong.
    let usable = matches!(report.outcome, Outcome::IterationLimit | Outcome::Stagnated);
    if (usable || report.outcome.is_success()) && direction.delta.norm().is_finite() {
        u.axpy(1.0, &direction.delta);
    }
    Ok(())
}
