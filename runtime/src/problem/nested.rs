//! Nested iteration: a solve with bounds starts from the solution on a coarser mesh, and that one from a coarser one still.
//!
//! ```text
//! solve on the coarsest mesh → interpolate → solve → interpolate → … → solve on the mesh itself
//! ```
//!
//! Between two active sets the boundary of the contact moves by about a layer of cells. Their number therefore grows with
//! the number of cells across the domain if they start without a contact, and hardly from an interpolated solution
//! (Brandt and Cryer, SIAM J. Sci. Stat. Comput. 4, 1983, Section 4: full multigrid for free boundaries).

use super::clock::Clock;
use super::platform::Platform;
use super::steady::{StartState, solve_steady};
use super::{RunError, Solution};
use crate::mesh::{CoarsenedMesh, Mesh};
use crate::solve::{Continue, Progress};
use crate::support::progress::doing;
use fem_dsl::problem::{Problem, ValueSource};
use std::sync::Arc;

/// Number of cells across a mesh, the root of their number, up to which it needs no coarser one.
const FEW: usize = 32;

/// Solves a problem once on a mesh, by nested iteration if it has bounds.
///
/// # Errors
///
/// Those of [`solve_steady`]; a coarser mesh on which the solve fails is left out.
pub(super) fn solve_nested(
    problem: &Arc<Problem>,
    mesh: Arc<Mesh>,
    start_at: StartState<'_>,
    platform: &Platform,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Solution, RunError> {
    let mut levels = match start_at {
        StartState::Problem if fits_every_mesh(problem) => coarser_meshes(&mesh),
        _ => Vec::new(),
    };
    let (mut clock, mut solved) = (Clock::start(), 0);
    let mut last: Option<(Solution, CoarsenedMesh)> = None;
    while let Some(level) = levels.pop() {
        let _said = doing(format!("solving on {} cells first", level.mesh.cells_in_all()));
        let start = last.as_ref().map_or(StartState::Problem, from_coarser);
        let found = solve_steady(problem, Arc::clone(&level.mesh), start, platform, observe);
        let found =
            found.inspect_err(|error| tracing::debug!("a coarser mesh is left out: {error}"));
        last = found.ok().map(|solution| (solution, level));
        if let Some((solution, _)) = &last {
            clock.after(solution.seconds);
            solved += 1;
        }
    }
    let start = last.as_ref().map_or(start_at, from_coarser);
    let mut solution = solve_steady(problem, mesh, start, platform, observe)?;
    if solved > 0 {
        let s = if solved == 1 { "" } else { "es" };
        solution
            .notes
            .push(format!("bounds: started from the solution on {solved} coarser mesh{s}"));
        clock.after(solution.seconds);
        solution.seconds = clock.seconds();
    }
    Ok(solution)
}

fn from_coarser((solution, level): &(Solution, CoarsenedMesh)) -> StartState<'_> {
    StartState::CoarserMesh(&solution.context.on, &solution.u, level)
}

/// Returns whether a problem has bounds, and nothing that belongs to one mesh.
fn fits_every_mesh(problem: &Problem) -> bool {
    let formula = |value: &ValueSource| value.formula().is_some();
    !problem.bounds.is_empty()
        && problem.numbers.is_none()
        && problem.aux.iter().all(|data| formula(&data.value))
        && problem.initial.iter().all(|(_, value)| formula(value))
}

/// Returns the coarser meshes, the finest of them first.
fn coarser_meshes(mesh: &Arc<Mesh>) -> Vec<CoarsenedMesh> {
    let (mut levels, mut mesh) = (Vec::new(), Arc::clone(mesh));
    while mesh.cells_in_all() > FEW.pow(mesh.dim() as u32) {
        let coarser = mesh.coarsened();
        if mesh.in_all(usize::from(coarser.is_err())) > 0 {
            break;
        }
        let Ok(coarser) = coarser else { break };
        if coarser.mesh.cells_in_all() == mesh.cells_in_all() {
            break;
        }
        mesh = Arc::clone(&coarser.mesh);
        levels.push(coarser);
    }
    levels
}
