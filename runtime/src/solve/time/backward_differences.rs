//! Backward differentiation formulas with variable steps, orders 1 to 5.

use super::sdirk::Tableau;
use super::weights::{combined, differences, lagrange};
use super::{History, Stage, StageSolver, StepResult, TimeScheme, TimeState};
use crate::algebra::vector::Vector;

/// Backward differentiation formula.
pub(super) struct BackwardDifferences {
    pub(super) order: usize,
}

impl<E> TimeScheme<E> for BackwardDifferences {
    fn order(&self) -> usize {
        self.order
    }

    /// One more than a step needs, for the estimate.
    fn kept_states(&self) -> usize {
        self.order + 1
    }

    fn step(
        &self,
        history: &History,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E> {
        let order = self.order;
        if history.past.len() < order {
            return begin(order, history, length, stages);
        }
        let time = history.state().time + length;
        let past: Vec<&TimeState> = history.past.iter().take(order).collect();
        let times: Vec<f64> =
            std::iter::once(time).chain(past.iter().map(|state| state.time)).collect();
        let weights = differences(&times);
        let (s, rest) = (weights[0], &weights[1..]);
        let of = |part: fn(&TimeState) -> &Vector| {
            let terms: Vec<(f64, &Vector)> =
                rest.iter().copied().zip(past.iter().map(|state| part(state))).collect();
            combined(&terms)
        };
        let r = of(|state| &state.u);
        let r2 = match history.second {
            true => combined(&[(s, &r), (1.0, &of(|state| &state.v))]),
            false => r.like(),
        };
        let known: Vec<&TimeState> = history.past.iter().collect();
        let predicted = {
            let times: Vec<f64> = known.iter().map(|state| state.time).collect();
            let terms: Vec<(f64, &Vector)> = lagrange(time, &times)
                .into_iter()
                .zip(known.iter().map(|state| &state.u))
                .collect();
            combined(&terms)
        };
        let mut x = predicted.clone();
        stages.solve(&Stage::at(time, s, [&r, &r2]), &mut x)?;
        // The error of the polynomial through one more value estimates that of the formula.
        let estimate = (known.len() > order).then(|| {
            let reach = time - known[order].time;
            let difference = combined(&[(length / reach, &x), (-length / reach, &predicted)]);
            difference.norm()
        });
        let v = combined(&[(s, &x), (1.0, &r)]);
        let a = history.second.then(|| combined(&[(s * s, &x), (1.0, &r2)]));
        Ok(StepResult { state: TimeState { time, u: x, v, a }, estimate })
    }
}

/// Starts backward differences with too few values: Runge-Kutta steps of one order less, which suffices for a few
/// steps. Order 5 combines order-3 results of two and four substeps by Richardson extrapolation, with an error
/// ratio of 8.
fn begin<E>(
    order: usize,
    history: &History,
    length: f64,
    stages: &mut dyn StageSolver<Error = E>,
) -> Result<StepResult, E> {
    let tableau = Tableau::of(order.clamp(2, 3));
    if order < 5 {
        return tableau.step_from(history, history.state(), length, stages);
    }
    let mut in_parts = |parts: usize| {
        let part = length / parts as f64;
        let mut taken = tableau.step_from(history, history.state(), part, stages)?;
        for _ in 1..parts {
            taken = tableau.step_from(history, &taken.state, part, stages)?;
        }
        Ok(taken)
    };
    let (coarse, fine) = (in_parts(2)?, in_parts(4)?);
    let better =
        |fine: &Vector, coarse: &Vector| combined(&[(8.0 / 7.0, fine), (-1.0 / 7.0, coarse)]);
    let (old, new) = (coarse.state, fine.state);
    let u = better(&new.u, &old.u);
    let estimate = Some(combined(&[(1.0, &u), (-1.0, &new.u)]).norm());
    let (v, a) = (better(&new.v, &old.v), new.a.zip(old.a).map(|(new, old)| better(&new, &old)));
    Ok(StepResult { state: TimeState { time: history.state().time + length, u, v, a }, estimate })
}
