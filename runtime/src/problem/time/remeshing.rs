//! A mesh that follows the solution through time: error estimate of a state → next mesh → transfer of all states that the
//! integrator reads.
//!
//! ```text
//! step, …, step → estimate, mark → mesh → context, operator → states of the last mesh, interpolated → step …
//! ```
//!
//! Before the first step the mesh is adapted to the initial state: a trial step is taken on each mesh, and the next one
//! begins again.

use super::super::adaptation::{MeshAdaptation, estimated};
use super::super::checkpoint::StoredState;
use super::super::clock::Clock;
use super::super::context::Context;
use super::super::{AdaptivityError, RunError};
use super::stages::{ProblemStages, StageMemory};
use super::step_size::StepSizeController;
use super::stored_states::{StoredHistory, resumed};
use super::{Integrator, March, Outcome, Run};
use crate::estimate::adapt::AdaptiveMesh;
use crate::mesh::Mesh;
use crate::solve::BorderedSystem as _;
use crate::solve::time::{InitialState, TimeState};
use crate::space::discretisation::Discretisation;
use crate::support::timers::in_step;
use fem_dsl::problem::{AdaptiveRefinement, Problem, Scheme};
use std::collections::VecDeque;
use std::sync::Arc;

/// The meshes of a run through time.
pub(super) struct Remeshing {
    meshes: MeshAdaptation,
    every: usize,
    /// Number of meshes that may still be made for the initial state.
    trials: usize,
    /// Number of meshes made after the first step.
    count: usize,
    /// Smallest and largest number of degrees of freedom.
    range: [usize; 2],
}

impl Remeshing {
    /// Starts with the mesh of a problem; `None` without `adapt`.
    ///
    /// # Errors
    ///
    /// Cells that cannot be divided.
    pub(super) fn new(problem: &Problem, mesh: &Arc<Mesh>) -> Result<Option<Self>, RunError> {
        let Some(rule @ AdaptiveRefinement { every: Some(every), steps, .. }) = &problem.adapt
        else {
            return Ok(None);
        };
        let meshes = MeshAdaptation::new(problem, rule, Arc::clone(mesh))?;
        let range = [usize::MAX, 0];
        Ok(Some(Self { meshes, every: *every, trials: *steps, count: 0, range }))
    }

    /// Builds this process's part of the current mesh.
    ///
    /// # Errors
    ///
    /// Cells that fold when divided.
    pub(super) fn part(&self) -> Result<Arc<Mesh>, RunError> {
        self.meshes.part()
    }

    /// Returns a note about the meshes of the run.
    fn summary(&self) -> String {
        let (count, [least, most]) = (self.count, self.range);
        format!("`adapt` changed the mesh {count} times, with {least} to {most} unknowns")
    }
}

/// A run between two meshes.
pub(super) struct LeftRun {
    on: Arc<Discretisation>,
    history: StoredHistory,
    second: bool,
    numbers: Vec<f64>,
    memory: StageMemory,
    controller: StepSizeController,
    count_shown: usize,
    notes: Vec<String>,
}

impl LeftRun {
    /// Takes what belongs to the run and not to its mesh.
    pub(super) fn take(&mut self) -> (StageMemory, Vec<String>) {
        (std::mem::take(&mut self.memory), std::mem::take(&mut self.notes))
    }

    /// Transfers the states to the mesh of a stage solver, with the conditions of their times.
    fn resume(
        &self,
        scheme: Scheme,
        staged: &mut ProblemStages<'_>,
    ) -> Result<Integrator, RunError> {
        let on = Arc::clone(staged.on());
        let moved = |u: &[f64]| {
            AdaptiveMesh::transfer(&self.on, u, &on)
                .ok_or_else(|| RunError::from(AdaptivityError::NotTransferable))
        };
        let like = staged.operator.vector();
        staged.length = self.controller.length();
        let StoredHistory { past, largest, begun } = &self.history;
        let state = |stored: &StoredState| {
            let mut state = stored.state(&like, &moved)?;
            staged.constrain_on_new_mesh(&mut state)?;
            Ok(state)
        };
        let past: VecDeque<TimeState> = past.iter().map(state).collect::<Result<_, RunError>>()?;
        staged.operator.set_numbers(&self.numbers)?;
        let (largest, begun): (f64, InitialState) = (*largest, *begun);
        resumed((scheme, self.second), past, (largest, begun), staged)
    }
}

impl<'a> March<'a> {
    /// Continues a run on another mesh.
    pub(super) fn resume(mut run: Run<'a>, left: LeftRun) -> Result<Self, RunError> {
        let scheme = run.stepping.scheme;
        let mut integrator =
            in_step("transfer of the states", || left.resume(scheme, &mut run.staged))?;
        let LeftRun { controller, count_shown, .. } = left;
        integrator.prepare(controller.length(), &mut run.staged)?;
        Ok(Self::with((run, integrator), controller, count_shown))
    }

    /// Returns whether the mesh changes now.
    pub(super) fn is_due(&self, remeshing: &Remeshing) -> bool {
        self.count_taken >= remeshing.every
    }

    /// Adapts the mesh to the current state, and merges cells if `merges`; `None` if it stays as it is.
    pub(super) fn next_mesh(
        &mut self,
        remeshing: &mut Remeshing,
        merges: bool,
    ) -> Result<Option<Arc<Mesh>>, RunError> {
        self.count_taken = 0;
        let Self { run, integrator, .. } = self;
        integrator.confirm(&mut run.staged)?;
        let state = integrator.state();
        let seen: Context = run.staged.seen_with_rates(state)?;
        let estimate = estimated(&seen, &state.u.to_vec())?;
        in_step("next mesh", || remeshing.meshes.follow(&seen.on, &estimate, merges))
    }

    /// Takes a trial step from the initial state, and returns the mesh on which the run begins again; `None` if it begins
    /// on this one.
    pub(super) fn trial(
        &mut self,
        remeshing: &mut Remeshing,
    ) -> Result<Option<Arc<Mesh>>, RunError> {
        if let Some(next) = self.run.times.next(self.integrator.state().time) {
            while self.advance(next)?.is_none() {}
        }
        let next = self.next_mesh(remeshing, false)?;
        remeshing.trials = if next.is_some() { remeshing.trials - 1 } else { 0 };
        Ok(next)
    }

    /// Records the degrees of freedom of this mesh.
    pub(super) fn count(&mut self, remeshing: &mut Remeshing) {
        let dofs = self.run.staged.on().dofs_in_all();
        remeshing.range = [remeshing.range[0].min(dofs), remeshing.range[1].max(dofs)];
    }

    /// Adds the note about the meshes.
    pub(super) fn note(&mut self, remeshing: &Remeshing) {
        self.run.notes.push(remeshing.summary());
    }

    /// Leaves the mesh of this part of the run for another one.
    pub(super) fn leave(self, mesh: Arc<Mesh>, remeshing: &mut Remeshing) -> Outcome {
        remeshing.count += 1;
        let Self { run, integrator, controller, count_shown, .. } = self;
        let Run { staged, notes, clock, .. } = run;
        let history = StoredHistory::of(&integrator, &|vector| vector.to_vec());
        let second = integrator.state().a.is_some();
        let (on, numbers) = (Arc::clone(staged.on()), staged.operator.numbers());
        let mut memory = staged.into_memory();
        memory.forget_solver();
        let left = LeftRun { on, history, second, numbers, memory, controller, count_shown, notes };
        Outcome::Mesh { mesh, left: Some(Box::new(left)), clock }
    }
}

impl Remeshing {
    /// Returns whether the next step is a trial.
    pub(super) fn tries(&self) -> bool {
        self.trials > 0
    }
}

/// Returns the outcome of a trial: the run begins again.
pub(super) fn again(mesh: Arc<Mesh>, clock: Clock) -> Outcome {
    Outcome::Mesh { mesh, left: None, clock }
}
