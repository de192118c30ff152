//! Solves with unknown numbers next to the fields, by a plan for the fields alone.

use super::{not_finite, precondition};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::RunError;
use crate::problem::context::Context;
use crate::problem::plan::SolvePlan;
use crate::solve::{
    BorderedSettings, CgSettings, Continue, Outcome, Progress, Report, solve_bordered,
};

/// Maximum number of steps of affine equations, all but the first of which correct rounding.
const AFFINE_STEPS: usize = 10;
/// Maximum number of steps where the equations are affine for given numbers.
const STEPS: usize = 50;

/// Solves R(u, c) = 0 and g(u, c) = 0 from the state `u` and the current numbers.
///
/// # Errors
///
/// Load steps, equations that do not determine the numbers, a singular matrix.
pub(super) fn solve(
    operator: &mut Operator,
    context: &Context,
    u: &mut Vector,
    (plan, floor): (&SolvePlan, f64),
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let newton = plan.newton.as_ref();
    if newton.is_some_and(|newton| newton.load_steps > 1 || newton.load.is_some()) {
        let message = "load steps do not go with unknown numbers\n\
                       help: sweep a parameter, `--sweep NAME=…`, where each solve starts from the last one";
        return Err(RunError::Setting(message.to_owned()));
    }
    let (preconditioning, note) = precondition(operator, context, &plan.linear)?;
    let stop = plan.stop(floor);
    let is_affine = context.problem.numbers.as_ref().is_some_and(|own| own.forms.linear);
    let max_steps = match newton {
        _ if is_affine => AFFINE_STEPS,
        None => STEPS,
        Some(_) => stop.max_iterations,
    };
    let settings = BorderedSettings {
        stop: CgSettings { max_iterations: stop.max_iterations.max(1), ..stop },
        max_steps,
        max_inner: newton.map_or(stop.max_iterations, |newton| newton.max_inner),
        linear: plan.linear.with(preconditioning),
        line_search: newton.is_none_or(|newton| newton.line_search),
    };
    let mut report = solve_bordered(operator, u, settings, observe)?;
    report.notes.extend(note);
    if let Some(error) = context.failed(&report) {
        return Err(error);
    }
    if report.outcome == Outcome::NotFinite {
        let context = context.with_numbers_of(operator);
        return Err(not_finite(operator, &context, u, &report));
    }
    let iterations = match report.newton[..] {
        [] => report.iterations,
        _ => report.inner_iterations(),
    };
    Ok((report, iterations))
}
