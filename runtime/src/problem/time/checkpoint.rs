//! Checkpoints of the integrator: take and resume. Both discard factors and levels, so that the run goes on with
//! identical bits in either case.

use super::super::RunError;
use super::super::checkpoint::{
    Checkpoint, ProblemIdentity, StoredState, WholeMeshMap, of_states, refused,
};
use super::stages::ProblemStages;
use super::{Integrator, parameters_at, point_states};
use crate::algebra::vector::Vector;
use crate::solve::time::{InitialState, Stepper, TimeState, time_scheme};
use fem_dsl::problem::{Problem, Scheme};
use std::collections::VecDeque;

impl StoredState {
    fn of(state: &TimeState, whole: &WholeMeshMap) -> Self {
        let numbers = |vector: &Vector| whole.gathered(vector.to_vec());
        let a = state.a.as_ref().map_or_else(Vec::new, numbers);
        Self { time: state.time, u: numbers(&state.u), v: numbers(&state.v), a }
    }

    fn state(&self, like: &Vector, whole: &WholeMeshMap) -> TimeState {
        let vector = |numbers: &[f64]| {
            let mut made = like.like();
            made.set(&whole.part(numbers));
            made
        };
        let a = (!self.a.is_empty()).then(|| vector(&self.a));
        TimeState { time: self.time, u: vector(&self.u), v: vector(&self.v), a }
    }
}

impl Checkpoint {
    /// Takes a checkpoint of the integrator, which discards all data that a restarted run would not have. Collective.
    pub(super) fn take(
        integrator: &mut Integrator,
        (problem, scheme): (&Problem, Scheme),
        (length, shown): (f64, usize),
        staged: &mut ProblemStages<'_>,
        whole: &WholeMeshMap,
    ) -> Result<Self, RunError> {
        let of = |state: &TimeState| StoredState::of(state, whole);
        let (past, largest, begun): (Vec<StoredState>, f64, InitialState) = match &*integrator {
            Integrator::Implicit(stepper) => {
                (stepper.past().map(of).collect(), stepper.largest(), stepper.begun())
            }
            Integrator::Explicit(explicit) => {
                let begun = InitialState { rates: true, norm: 0.0, tried: 0.0 };
                (vec![of(explicit.state())], 0.0, begun)
            }
        };
        let second = integrator.state().a.is_some();
        let largest = [largest, staged.largest()];
        let identity = of_states(scheme, &problem.form);
        let (mesh, of) =
            (Some(whole.mesh), Some(ProblemIdentity::of(problem, staged.parameters())));
        let points = point_states::gathered(staged, whole);
        let left = Self {
            identity,
            mesh,
            problem: of,
            begun,
            second,
            past,
            points,
            length,
            largest,
            shown,
        };
        forget(integrator, scheme, staged)?;
        Ok(left)
    }

    /// Restores the integrator; adds notes on differences from the problem that wrote the checkpoint.
    ///
    /// # Errors
    ///
    /// A checkpoint of another form, scheme or mesh.
    pub(super) fn resume(
        &self,
        (problem, scheme): (&Problem, Scheme),
        like: &Vector,
        staged: &mut ProblemStages<'_>,
        whole: &WholeMeshMap,
        notes: &mut Vec<String>,
    ) -> Result<Integrator, RunError> {
        self.check_mesh(whole)?;
        if self.identity != of_states(scheme, &problem.form) {
            return Err(refused("is of another scheme, or of a form with other fields"));
        }
        if let Some(left) = &self.problem {
            notes.extend(
                left.compare(&ProblemIdentity::of(problem, staged.parameters()), &problem.form)?,
            );
        }
        point_states::resume(staged, whole, &self.points)?;
        let mut past: VecDeque<TimeState> =
            self.past.iter().map(|past| past.state(like, whole)).collect();
        let [largest, begun] = self.largest;
        staged.set_largest(begun);
        Ok(match time_scheme(scheme) {
            None => {
                let Some(state) = past.pop_front() else { unreachable!("there is one state") };
                at(staged, state.time);
                Integrator::new(scheme, state, None, staged)?
            }
            Some(scheme) => Integrator::Implicit(Stepper::resume(
                scheme,
                self.second,
                past,
                (largest, self.begun),
            )),
        })
    }
}

/// Sets the parameters for a step from a time.
fn at(staged: &mut ProblemStages<'_>, time: f64) {
    let form = staged.context().form();
    parameters_at(form, staged.parameters_mut(), time, [0.0; 2]);
}

/// Discards factors, levels and other data of earlier steps.
fn forget(
    integrator: &mut Integrator,
    scheme: Scheme,
    staged: &mut ProblemStages<'_>,
) -> Result<(), RunError> {
    staged.forget();
    if let Integrator::Explicit(explicit) = integrator {
        let state = explicit.state().clone();
        at(staged, state.time);
        *integrator = Integrator::new(scheme, state, None, staged)?;
        if let Integrator::Explicit(explicit) = integrator {
            explicit.quieten(staged)?;
        }
    }
    Ok(())
}
