//! The θ-scheme: F(t + θ Δt, u + θ Δu, Δu / Δt) = 0.

use super::weights::combined;
use super::{History, Stage, StageSolver, StepResult, TimeScheme, TimeState};
use crate::algebra::vector::Vector;

/// θ-scheme.
pub(super) struct ThetaScheme {
    pub(super) theta: f64,
}

impl<E> TimeScheme<E> for ThetaScheme {
    fn order(&self) -> usize {
        if self.theta == 0.5 { 2 } else { 1 }
    }

    fn gives_rates_at_end(&self) -> bool {
        self.theta == 1.0
    }

    fn step(
        &self,
        history: &History,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E> {
        let (before, theta) = (history.state(), self.theta);
        let s = 1.0 / (theta * length);
        let r = combined(&[(-s, &before.u)]);
        let r2 = combined(&[(-s * s, &before.u), (-s, &before.v)]);
        let (time, end) = (before.time + theta * length, before.time + length);
        let mut x = history.extrapolated(time);
        stages.solve(&Stage::at(time, s, [&r, &r2]), &mut x)?;
        let v = combined(&[(s, &x), (1.0, &r)]);
        let extrapolated =
            |old: &Vector, at: &Vector| combined(&[(1.0 / theta, at), (1.0 - 1.0 / theta, old)]);
        let mut u = extrapolated(&before.u, &x);
        stages.keep_algebraic(&x, &mut u);
        // The newest rates belong to a time within the step; nothing depends on them.
        let step = (theta, length);
        let a = history.second.then(|| {
            let stage = combined(&[(s * s, &x), (1.0, &r2)]);
            at_end(history, step, stage, |state| &state.v, before.a.as_ref())
        });
        let v = match history.second {
            true => extrapolated(&before.v, &v),
            false => at_end(history, step, v, |state| &state.u, Some(&before.v)),
        };
        Ok(StepResult { state: TimeState { time: end, u, v, a }, estimate: None })
    }
}

/// Extrapolates a rate from the stage of a θ-step to its end, linearly through that of the last step, the
/// difference quotient of `of`. The first step uses the initial rate, if it is known.
fn at_end(
    history: &History,
    (theta, length): (f64, f64),
    stage: Vector,
    of: impl Fn(&TimeState) -> &Vector,
    begun: Option<&Vector>,
) -> Vector {
    let ahead = (1.0 - theta) * length;
    let known = begun.filter(|_| history.begun.rates);
    let (share, older) = match (history.past.get(1), known) {
        _ if theta == 1.0 => return stage,
        (Some(older), _) => {
            let (last, h) = (of(history.state()), history.state().time - older.time);
            let apart = (1.0 - theta) * h + theta * length;
            (ahead / apart, combined(&[(1.0 / h, last), (-1.0 / h, of(older))]))
        }
        (None, Some(begun)) => (ahead / (theta * length), begun.clone()),
        (None, None) => return stage,
    };
    combined(&[(1.0 + share, &stage), (-share, &older)])
}
