//! Solutions of states: errors, energy, reports and ranges, evaluated in one place for all drivers.

use super::assess::{IntegrationBackend, assess};
use super::clock::Seconds;
use super::context::Context;
use super::derived;
use super::evaluation_state::EvaluationState;
use super::reports::{self, ReportCache, ranges};
use super::{Kernels, RunError, Solution, sources};
use crate::algebra::vector::Vector;
use crate::operator::{Operator, TableCache};
use crate::solve::{MultigridStatistics, NonlinearSystem, Report};
use crate::support::progress::doing;
use crate::support::timers::in_step;
use std::time::Instant;

/// State that a driver has reached, with the figures of its solve.
pub(super) struct State {
    /// Kernels of the operator.
    pub(super) kernels: Kernels,
    /// Degrees of freedom.
    pub(super) u: Vec<f64>,
    /// Convergence report.
    pub(super) report: Report,
    /// Total number of linear iterations.
    pub(super) linear_iterations: usize,
    /// Multigrid levels of the preconditioner.
    pub(super) multigrid: Vec<MultigridStatistics>,
    /// ‖R(u)‖ over the free degrees of freedom.
    pub(super) residual: f64,
    /// Degrees of freedom per second of a residual.
    pub(super) throughput: f64,
    /// Notes about the problem and the solve.
    pub(super) notes: Vec<String>,
}

/// Measures a state; `seen` is the context with the time, data and derivatives of the state, and `vector` the state as an
/// operator's vector, if there is one. The seconds are those of the caller.
///
/// # Errors
///
/// An error or a report that cannot be evaluated.
pub(super) fn measure(
    context: &Context,
    seen: &Context,
    state: State,
    vector: Option<&Vector>,
    tables: TableCache,
) -> Result<Solution, RunError> {
    let _assessing = doing("evaluating errors and reports");
    let State { kernels, u, report, linear_iterations, multigrid, residual, throughput, mut notes } =
        state;
    let (problem, on) = (&seen.problem, &seen.on);
    let load = sources::load(problem, on, &seen.parameters)?;
    let load = load.as_deref();
    let of = EvaluationState { vector, load, ..EvaluationState::of(seen, &u) };
    let backend = IntegrationBackend::new(&seen.platform);
    let mut cache = ReportCache::new(tables);
    let (errors, energy) =
        in_step("errors and energy", || assess(problem, of, backend, &mut cache.tables))?;
    // For given numbers the equations may have an energy that the system does not.
    let energy = energy.filter(|_| problem.numbers.is_none());
    let energy = energy.filter(|&energy| match unrepresentable(energy, &u) {
        None => true,
        Some(how) => {
            notes.push(format!("the energy {how} and is left out: choose other units to see it"));
            false
        }
    });
    let (reports, said) =
        in_step("reports", || reports::report(&problem.reports, of, &seen.platform, &mut cache))?;
    notes.extend(said);
    let multipliers = || derived::multipliers(problem, of, &seen.platform, &mut cache.tables);
    let mut derived = in_step("multipliers", multipliers)?;
    derived.extend(in_step("derived fields", || derived::derived(&problem.reports, of))?);
    let own_range = |field| ranges(on, field, &u);
    let ranges = in_step("ranges", || (0..on.fields.len()).map(own_range).collect());
    Ok(Solution {
        size: [on.mesh.cells_in_all(), on.dofs_in_all()],
        context: context.clone(),
        kernels,
        u,
        report,
        linear_iterations,
        multigrid,
        residual,
        modes: Vec::new(),
        errors,
        energy,
        reports,
        derived,
        ranges,
        notes,
        seconds: Seconds::default(),
        throughput,
    })
}

/// Measures a vector of a context's operator as a solution; `report` is that of its solve.
///
/// # Errors
///
/// An error or a report that cannot be evaluated, a device failure.
pub fn solution_of(
    context: &Context,
    (operator, kernels): (&Operator, &Kernels),
    u: &Vector,
    report: Report,
) -> Result<Solution, RunError> {
    let context = &context.with_numbers_of(operator);
    let mut r = u.like();
    let throughput = throughput(operator, u, &mut r)?;
    let residual = r.norm();
    operator.finish()?;
    let notes = [context.notes(), kernels.notes.clone(), report.notes.clone()].concat();
    let state = State {
        kernels: kernels.clone(),
        u: u.to_vec(),
        // Without steps of Newton's method all iterations are linear.
        linear_iterations: match report.newton[..] {
            [] => report.iterations,
            _ => report.inner_iterations(),
        },
        report,
        multigrid: Vec::new(),
        residual,
        throughput,
        notes,
    };
    measure(context, context, state, Some(u), operator.table_cache())
}

/// Returns whether an energy overflows or underflows double precision although the degrees of freedom are finite.
fn unrepresentable(energy: f64, u: &[f64]) -> Option<&'static str> {
    let largest = || u.iter().fold(0.0, |most: f64, u| most.max(u.abs()));
    let tiny = |largest: f64| largest > 0.0 && largest < f64::MIN_POSITIVE.sqrt();
    match energy {
        energy if !energy.is_finite() && largest().is_finite() => Some("overflows"),
        energy if energy.abs() < f64::MIN_POSITIVE && tiny(largest()) => Some("underflows"),
        _ => None,
    }
}

/// Seconds after which a measured rate needs no further repetition.
const ENOUGH: f64 = 5e-3;

/// Computes r = R(u), and measures it: degrees of freedom per second, median of up to five evaluations.
pub(super) fn throughput(operator: &Operator, u: &Vector, r: &mut Vector) -> Result<f64, RunError> {
    let mut times = Vec::new();
    while times.len() < 5 && times.iter().sum::<f64>() < ENOUGH {
        let start = Instant::now();
        operator.residual(u, r)?;
        operator.finish()?;
        // All processes repeat it as often.
        times.push(u.largest(start.elapsed().as_secs_f64()));
    }
    times.sort_by(f64::total_cmp);
    Ok(u.entries_in_all() as f64 / times[times.len() / 2])
}
