//! The states that an integrator reads, as numbers: integrator ↔ [`StoredState`]s of another mesh or run.

use super::super::RunError;
use super::super::checkpoint::StoredState;
use super::stages::ProblemStages;
use super::{Integrator, parameters_at};
use crate::algebra::vector::Vector;
use crate::solve::time::{InitialState, Stepper, TimeState, time_scheme};
use fem_dsl::problem::Scheme;
use std::collections::VecDeque;

impl StoredState {
    /// Stores a state by the numbers of its vectors.
    pub(super) fn of(state: &TimeState, numbers: &dyn Fn(&Vector) -> Vec<f64>) -> Self {
        let a = state.a.as_ref().map_or_else(Vec::new, numbers);
        Self { time: state.time, u: numbers(&state.u), v: numbers(&state.v), a }
    }

    /// Returns the state with vectors like a given one, which take their entries from `entries`.
    pub(super) fn state<E>(
        &self,
        like: &Vector,
        entries: &dyn Fn(&[f64]) -> Result<Vec<f64>, E>,
    ) -> Result<TimeState, E> {
        let vector = |numbers: &[f64]| {
            let mut made = like.like();
            made.set(&entries(numbers)?);
            Ok(made)
        };
        let a = if self.a.is_empty() { None } else { Some(vector(&self.a)?) };
        Ok(TimeState { time: self.time, u: vector(&self.u)?, v: vector(&self.v)?, a })
    }
}

/// Stored states of an integrator.
pub(super) struct StoredHistory {
    /// States, newest first.
    pub(super) past: Vec<StoredState>,
    /// Largest ‖u‖ so far.
    pub(super) largest: f64,
    /// Properties of the initial state.
    pub(super) begun: InitialState,
}

impl StoredHistory {
    pub(super) fn of(integrator: &Integrator, numbers: &dyn Fn(&Vector) -> Vec<f64>) -> Self {
        let of = |state: &TimeState| StoredState::of(state, numbers);
        match integrator {
            Integrator::Implicit(stepper) => Self {
                past: stepper.past().map(of).collect(),
                largest: stepper.largest(),
                begun: stepper.begun(),
            },
            Integrator::Explicit(explicit) => Self {
                past: vec![of(explicit.state())],
                largest: 0.0,
                begun: InitialState { rates: true, norm: 0.0, tried: 0.0 },
            },
        }
    }
}

/// Restores an integrator from its states, newest first, with the largest ‖u‖ and the properties of the initial state.
pub(super) fn resumed(
    (scheme, second): (Scheme, bool),
    mut past: VecDeque<TimeState>,
    (largest, begun): (f64, InitialState),
    staged: &mut ProblemStages<'_>,
) -> Result<Integrator, RunError> {
    Ok(match time_scheme(scheme) {
        None => {
            let Some(state) = past.pop_front() else { unreachable!("there is one state") };
            set_time(staged, state.time);
            Integrator::new(scheme, state, None, staged)?
        }
        Some(scheme) => {
            Integrator::Implicit(Stepper::resume(scheme, second, past, (largest, begun)))
        }
    })
}

/// Sets the parameters for a step from a time.
pub(super) fn set_time(staged: &mut ProblemStages<'_>, time: f64) {
    let form = staged.context().form();
    parameters_at(form, staged.parameters_mut(), time, [0.0; 2]);
}
