//! Driver of one solve: R(u) = 0, or the modes of an eigenvalue problem.
//!
//! ```text
//! context → operator → unique? → start → solve → converged? → measure
//! ```

use super::bounds::{self, Bounds};
use super::clock::{Clock, Phase};
use super::context::Context;
use super::difficulty::unconverged;
use super::measure::{State, measure, throughput};
use super::platform::Platform;
use super::solver::solve_planned;
use super::{RunError, Solution, check_fixed, check_unique, eigen, initial};
use crate::algebra::vector::Vector;
use crate::estimate::adapt::AdaptiveMesh;
use crate::mesh::{CoarsenedMesh, Mesh};
use crate::operator::Operator;
use crate::solve::{Continue, Progress};
use crate::space::discretisation::Discretisation;
use crate::space::prolongation::prolong;
use crate::support::progress::doing;
use crate::support::timers::{in_step, step};
use fem_dsl::problem::Problem;
use std::sync::Arc;

/// Initial state of a solve.
#[derive(Clone, Copy)]
pub(super) enum StartState<'a> {
    /// The initial state that the problem states.
    Problem,
    /// A solution on the same mesh and of the same degree.
    Solution(&'a [f64]),
    /// A solution on another mesh of the same adaptive hierarchy.
    OtherMesh(&'a Discretisation, &'a [f64]),
    /// A solution on the mesh of which this one is the refinement.
    CoarserMesh(&'a Discretisation, &'a [f64], &'a CoarsenedMesh),
}

/// Solves a problem once on a mesh.
///
/// # Errors
///
/// Errors of the problem on this mesh, a solve that does not converge.
pub(super) fn solve_steady(
    problem: &Arc<Problem>,
    mesh: Arc<Mesh>,
    start_at: StartState<'_>,
    platform: &Platform,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let mut clock = Clock::start();
    let setting_up = doing("numbering the degrees of freedom");
    let set_up = step("set-up");
    let (context, plan) = Context::planned(problem, mesh, platform)?;
    let _prefetch = problem.eigen.is_none().then(|| context.prefetch(&plan));
    let supported = supported(&context)?;
    if problem.eigen.is_none() {
        check_fixed(context.form(), &supported.on, &context.undetermined_parameters())?;
    }
    let (mut operator, kernels) = context.operator_for(&plan)?;
    drop(setting_up);
    let mut notes = [context.notes(), kernels.notes.clone()].concat();
    let checking = doing("checking that the solution is unique");
    let weak = match problem.eigen {
        None if !problem.bounds.is_empty() => {
            let (mut operator, _) = supported.operator_for(&plan)?;
            in_step("null space", || check_unique(&mut operator, &supported))?
        }
        None => in_step("null space", || check_unique(&mut operator, &context))?,
        Some(_) => Vec::new(),
    };
    drop(checking);
    let (mut u, said) = in_step("initial state", || begin(&context, start_at, &operator))?;
    drop(set_up);
    notes.extend([said, weak].concat());
    clock.end(Phase::SetUp);
    if let Some(eigen) = &problem.eigen {
        return eigen::solve_modes(
            &context,
            eigen,
            (operator, kernels),
            (u, notes),
            clock,
            observe,
        );
    }
    let solving = step("solve");
    let solved = solve_planned(&mut operator, &context, &mut u, (&plan, 0.0), None, observe);
    // What went wrong on a device comes before what it made of the numbers.
    operator.finish()?;
    let solved = solved
        .and_then(|(report, linear)| Ok((context.converged(&mut operator, &u, report)?, linear)));
    let (report, linear_iterations) =
        solved.map_err(|error| unconverged(error, &context.on, &u))?;
    drop(solving);
    clock.end(Phase::Solve);
    let measuring = step("measure");
    let multigrid = operator.approximation().map(|own| own.figures()).unwrap_or_default();
    // Frees the memory of the levels.
    operator.precondition_by(None);
    let mut r = u.like();
    let throughput = in_step("throughput", || throughput(&operator, &u, &mut r))?;
    let residual = bounds::free_residual(problem, &context.on, &context.parameters, &u, &mut r)?;
    let entries = in_step("download", || u.to_vec());
    operator.finish()?;
    notes.extend(report.notes.iter().cloned());
    let state = State {
        kernels,
        u: entries,
        report,
        linear_iterations,
        multigrid,
        residual,
        throughput,
        notes,
    };
    let tables = operator.table_cache();
    let context = context.with_numbers_of(&operator);
    let mut solution = measure(&context, &context, state, Some(&u), tables)?;
    drop(measuring);
    clock.end(Phase::Measure);
    solution.seconds = clock.seconds();
    Ok(solution)
}

/// Returns the context with conditions on all bounded degrees of freedom.
fn supported(context: &Context) -> Result<Context, RunError> {
    let Context { problem, on, parameters, .. } = context;
    if problem.bounds.is_empty() {
        return Ok(context.clone());
    }
    let bounds = Bounds::new(&problem.bounds, (&problem.form, on), parameters)?;
    Ok(Context { on: Arc::new(bounds.held(on)?), ..context.clone() })
}

/// Returns the initial state, and notes on values that conditions override.
pub(super) fn begin(
    context: &Context,
    start_at: StartState<'_>,
    operator: &Operator,
) -> Result<(Vector, Vec<String>), RunError> {
    let (problem, on) = (&context.problem, &context.on);
    let mut u = operator.initial()?;
    let moved = match start_at {
        StartState::OtherMesh(before, u) => {
            in_step("transfer of the solution", || AdaptiveMesh::transfer(before, u, on))
        }
        StartState::CoarserMesh(before, u, cells) => {
            in_step("transfer of the solution", || prolong((before, u), cells, on))
        }
        StartState::Problem | StartState::Solution(_) => None,
    };
    let earlier = match start_at {
        // Each mode starts from the problem's initial state, not from an earlier mode.
        _ if problem.eigen.is_some() => None,
        StartState::Solution(u) => Some(u),
        StartState::Problem | StartState::OtherMesh(..) | StartState::CoarserMesh(..) => {
            moved.as_deref()
        }
    };
    let notes = initial::begin(problem, on, &context.parameters, earlier, operator, &mut u)?;
    Ok((u, notes))
}
