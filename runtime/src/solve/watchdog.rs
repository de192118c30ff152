//! Full steps with exact linear solves in place of stalled backtracking, with a return to the initial state if they
//! fail.

use crate::algebra::vector::Vector;

/// Residual ratio below which full steps are retried after a failure.
const AGAIN: f64 = 0.1;
/// Relative tolerance of equal residual norms, which show that the active set cycles.
const SAME: f64 = 1e-12;

/// The watchdog of a Newton solve.
#[derive(Default)]
pub(super) struct Watchdog {
    /// State before the full steps, while these are in progress.
    start: Option<RestartState>,
    /// True if full steps have reduced the residual.
    has_helped: bool,
    /// Total number of discarded full steps.
    discarded: usize,
    /// Residual norm below which full steps are retried.
    again_below: Option<f64>,
}

/// A state to return to.
struct RestartState {
    state: NewtonIterate,
    /// Residual norm after each full step so far.
    norms: Vec<f64>,
}

/// An iterate of Newton's method.
pub(super) struct NewtonIterate {
    pub(super) u: Vector,
    /// R(u).
    pub(super) r: Vector,
    pub(super) norm: f64,
    /// (η, ‖R‖) of the last step.
    pub(super) previous: Option<(f64, f64)>,
}

impl Watchdog {
    /// Returns whether full steps are in progress.
    pub(super) fn is_on(&self) -> bool {
        self.start.is_some()
    }

    /// Returns whether linear solves are exact: inexact ones would not settle an active set.
    pub(super) fn is_exact(&self) -> bool {
        self.has_helped || self.is_on()
    }

    /// Returns the number of discarded full steps.
    pub(super) fn discarded(&self) -> usize {
        self.discarded
    }

    /// Returns whether full steps may start at a residual of this norm.
    pub(super) fn may_start(&self, norm: f64) -> bool {
        !self.is_on() && self.again_below.is_none_or(|bound| norm < bound)
    }

    /// Starts full steps.
    pub(super) fn start(&mut self, state: NewtonIterate) {
        self.start = Some(RestartState { state, norms: Vec::new() });
    }

    /// Judges a full step by its residual norm; returns whether to continue.
    pub(super) fn accepts(&mut self, norm: f64, limit: usize) -> bool {
        let Some(start) = &mut self.start else { return true };
        if norm < start.state.norm {
            self.has_helped = true;
            self.start = None;
            return true;
        }
        let repeats = start.norms.iter().any(|own| (own - norm).abs() <= SAME * norm);
        start.norms.push(norm);
        norm.is_finite() && !repeats && start.norms.len() < limit
    }

    /// Ends failed full steps; returns the state before them.
    pub(super) fn take_back(&mut self) -> Option<NewtonIterate> {
        let RestartState { state, norms } = self.start.take()?;
        self.discarded += norms.len();
        self.again_below = Some(AGAIN * state.norm);
        Some(state)
    }

    /// Returns a note on the full steps.
    pub(super) fn note(&self) -> Option<String> {
        self.has_helped.then(|| {
            "backtracking stalled: full steps with exact linear solves were taken in its place"
                .to_owned()
        })
    }
}
