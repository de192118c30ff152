//! Full steps with exact linear solves in the place of a backtracking that stalls, and the way back where they do not help.

use crate::algebra::vector::Vector;

/// The part of the residual that must be left before full steps are tried again after they were in vain.
const AGAIN: f64 = 0.1;
/// Residual norms that agree so far are the same: the active set of a switch goes round in a circle.
const SAME: f64 = 1e-12;

/// The watchdog of a Newton solve.
#[derive(Default)]
pub(super) struct Watchdog {
    /// The state where full steps began, as long as they are under way.
    start: Option<Start>,
    /// Whether full steps have reduced the residual.
    has_helped: bool,
    /// Full steps in all that were discarded.
    discarded: usize,
    /// The residual norm below which full steps are tried again.
    again_below: Option<f64>,
}

/// A state that the solver may return to.
struct Start {
    state: Iterate,
    /// The residual norms after each full step so far.
    norms: Vec<f64>,
}

/// An iterate of Newton's method.
pub(super) struct Iterate {
    pub(super) u: Vector,
    /// R(u).
    pub(super) r: Vector,
    pub(super) norm: f64,
    /// (η, ‖R‖) of the step before.
    pub(super) previous: Option<(f64, f64)>,
}

impl Watchdog {
    /// Whether full steps are under way.
    pub(super) fn is_on(&self) -> bool {
        self.start.is_some()
    }

    /// Whether linear solves are exact: inexact ones would not settle an active set.
    pub(super) fn is_exact(&self) -> bool {
        self.has_helped || self.is_on()
    }

    /// Full steps that were discarded.
    pub(super) fn discarded(&self) -> usize {
        self.discarded
    }

    /// Whether full steps may begin at a residual of this norm.
    pub(super) fn may_start(&self, norm: f64) -> bool {
        !self.is_on() && self.again_below.is_none_or(|bound| norm < bound)
    }

    /// Begins full steps.
    pub(super) fn start(&mut self, state: Iterate) {
        self.start = Some(Start { state, norms: Vec::new() });
    }

    /// Judges a full step that leaves a residual of this norm; returns whether to go on from there.
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

    /// Ends full steps that were in vain; returns the state where they began.
    pub(super) fn take_back(&mut self) -> Option<Iterate> {
        let Start { state, norms } = self.start.take()?;
        self.discarded += norms.len();
        self.again_below = Some(AGAIN * state.norm);
        Some(state)
    }

    /// Describes the full steps.
    pub(super) fn note(&self) -> Option<String> {
        self.has_helped.then(|| {
            "backtracking stalled: full steps with exact linear solves were taken in its place"
                .to_owned()
        })
    }
}
