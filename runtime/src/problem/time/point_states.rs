//! States at points: the updates of a form, evaluated when a step has converged → data of the next step.

use super::super::checkpoint::{WholeMeshMap, refused};
use super::super::derived::next_states;
use super::super::prescribed::PointStates;
use super::super::{DataError, EvaluationState, RunError, together};
use super::stages::ProblemStages;
use crate::solve::time::TimeState;

/// Replaces the states of a problem by their updates at a state of its fields.
///
/// # Errors
///
/// An update that is not finite.
pub(super) fn update(staged: &ProblemStages<'_>, state: &TimeState) -> Result<(), RunError> {
    let problem = &staged.context().problem;
    if problem.states.is_empty() {
        return Ok(());
    }
    let (seen, u) = (staged.seen(state)?, state.u.to_vec());
    let next = next_states(problem, EvaluationState::of(&seen, &u))?;
    let broken = next.iter().find_map(|(aux, values)| {
        let value = values.iter().find(|value| !value.is_finite())?;
        let name = problem.form.aux[*aux].name.clone();
        Some(DataError::StateNotFinite { name, value: *value, time: state.time })
    });
    together(&seen.on.mesh, broken.map_or(Ok(()), |error| Err(error.into())))?;
    seen.prescribed.point_states().into_iter().for_each(|states| states.put(next.clone()));
    Ok(())
}

/// Returns the numbers of each state in a cell, by index of the data.
fn sizes<'a>(staged: &'a ProblemStages<'_>) -> impl Iterator<Item = (usize, usize)> + 'a {
    let context = staged.context();
    let points = context.elements.rule.count();
    let states = context.problem.states.iter();
    states.map(move |state| (state.aux, points * context.form().aux[state.aux].shape.components()))
}

/// Gathers the current states on the whole mesh, one after the other; collective.
pub(super) fn gathered(staged: &ProblemStages<'_>, whole: &WholeMeshMap) -> Vec<f64> {
    let states = staged.context().prescribed.point_states();
    let values = states.map_or_else(Vec::new, PointStates::all);
    let cells = staged.on().mesh.n_cells();
    let all = sizes(staged).flat_map(|(aux, each)| {
        let own = values.iter().find(|(own, _)| *own == aux);
        let own = own.map_or_else(|| vec![0.0; cells * each], |(_, own)| own.clone());
        whole.gathered_cells(own, each)
    });
    all.collect()
}

/// Restores the states of a checkpoint.
///
/// # Errors
///
/// A checkpoint with other states.
pub(super) fn resume(
    staged: &ProblemStages<'_>,
    whole: &WholeMeshMap,
    points: &[f64],
) -> Result<(), RunError> {
    let cells = staged.on().mesh.cells_in_all();
    let size: usize = sizes(staged).map(|(_, each)| cells * each).sum();
    if size != points.len() {
        return Err(refused("has other states at points, or another quadrature"));
    }
    let mut rest = points;
    let mut values = Vec::new();
    for (aux, each) in sizes(staged) {
        let (own, others) = rest.split_at(cells * each);
        rest = others;
        values.push((aux, whole.part_of_cells(own, each)));
    }
    let states = staged.context().prescribed.point_states();
    states.into_iter().for_each(|states| states.put(values.clone()));
    Ok(())
}
