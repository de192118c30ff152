//! Solves along a path by arc length, beyond the folds of a load parameter.

use super::ramp::{LoadQuantity, LoadedSystem};
use super::{Context, not_finite};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::{ConvergenceError, RunError};
use crate::solve::{
    ArcLengthOptions, ArcLengthReport, Continue, LoadableSystem, NewtonOptions, Outcome, Progress,
    Report, newton_by_arc_length,
};

/// Follows the path of a parameter from 0 to its value.
///
/// # Errors
///
/// Conditions that depend on the parameter, a path that does not reach the value, an operator that cannot be applied.
pub(super) fn solve(
    (operator, context): (&mut Operator, &Context),
    u: &mut Vector,
    (param, options): (usize, ArcLengthOptions),
    settings: NewtonOptions,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Report, RunError> {
    let own = &context.form().params[param];
    let name = own.name.clone();
    if context.prescribed.conditions_depend_on(param) {
        return Err(RunError::Setting(format!(
            "a path by arc length changes `{name}`, on which a condition depends\n\
             help: let a term of the form depend on it, or take load steps: `newton(steps: 20, load: {name})`"
        )));
    }
    let range = context.parameters.range(param);
    let value = match context.parameters.values[range] {
        [value] if value != 0.0 => value,
        _ => {
            return Err(RunError::Setting(format!(
                "a path by arc length changes a number that is not 0, and `{name}` is none\n\
                 help: name another parameter by `load`"
            )));
        }
    };
    let load = LoadQuantity::Param(param);
    let mut system = LoadedSystem { operator, context, load, at: 1.0, failed: None };
    let found = newton_by_arc_length(&mut system, u, options, settings, observe);
    let failed = system.failed.take();
    let restored = system.set_load(1.0, &mut u.like());
    if let Some(error) = failed {
        return Err(error);
    }
    let ArcLengthReport { newton: mut report, points, folds, arrived, range } = found?;
    restored?;
    if report.outcome == Outcome::NotFinite {
        return Err(not_finite(operator, context, u, &report));
    }
    let folds: Vec<String> = folds.iter().map(|s| format!("{:.7}", s * value)).collect();
    let turns = match folds.is_empty() {
        true => "without a fold".to_owned(),
        false => format!("with a fold at {name} = {}", folds.join(", ")),
    };
    if !arrived && report.outcome.is_success() {
        let [least, most] = range.map(|s| s * value);
        let crossing = options.crossing;
        return Err(
            ConvergenceError::Path { name, value, crossing, points, least, most, turns }.into()
        );
    }
    report.notes.push(format!("path by arc length of {points} points, {turns}"));
    Ok(report)
}
