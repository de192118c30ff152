//! The schemes of Newmark (1959), and of Chung and Hulbert (1993), generalised-α.

use super::weights::combined;
use super::{History, Stage, StageSolver, StepResult, TimeScheme, TimeState};

/// Newmark's formulas with an averaged equation.
pub(super) struct NewmarkScheme {
    pub(super) beta: f64,
    pub(super) gamma: f64,
    /// α_m.
    pub(super) of_rates: f64,
    /// α_f.
    pub(super) of_states: f64,
}

impl NewmarkScheme {
    /// Returns the parameters of Chung and Hulbert (1993) from the spectral radius in the limit of long steps.
    pub(super) fn of_radius(rho: f64) -> Self {
        let of_rates = (2.0 * rho - 1.0) / (rho + 1.0);
        let of_states = rho / (rho + 1.0);
        let beta = (1.0 - of_rates + of_states).powi(2) / 4.0;
        Self { beta, gamma: 0.5 - of_rates + of_states, of_rates, of_states }
    }
}

impl<E> TimeScheme<E> for NewmarkScheme {
    fn order(&self) -> usize {
        2
    }

    fn needs_initial_rates(&self) -> bool {
        true
    }

    fn step(
        &self,
        history: &History,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E> {
        let &Self { beta, gamma, of_rates, of_states } = self;
        let before = history.state();
        let none = before.u.like();
        let old_a = before.a.as_ref().unwrap_or(&none);
        // a = p u + q, v = b u + c at the end.
        let p = 1.0 / (beta * length * length);
        let q = combined(&[(-p, &before.u), (-p * length, &before.v), (1.0 - 0.5 / beta, old_a)]);
        let b = gamma * length * p;
        let c =
            combined(&[(1.0, &before.v), (length * (1.0 - gamma), old_a), (length * gamma, &q)]);
        // x = (1 − α_f) u + α_f u_before, likewise for rates.
        let share = 1.0 - of_states;
        let (s1, s2) = (b, (1.0 - of_rates) * p / share);
        let r1 = combined(&[(share, &c), (of_states, &before.v), (-of_states * b, &before.u)]);
        let r2 = combined(&[
            (1.0 - of_rates, &q),
            (of_rates, old_a),
            (-of_states * (1.0 - of_rates) * p / share, &before.u),
        ]);
        let (time, end) = (before.time + share * length, before.time + length);
        let mut x = history.extrapolated(time);
        stages.solve(&Stage { time, factors: [s1, s2], rates: [&r1, &r2] }, &mut x)?;
        let mut u = combined(&[(1.0 / share, &x), (-of_states / share, &before.u)]);
        stages.keep_algebraic(&x, &mut u);
        let a = combined(&[(p, &u), (1.0, &q)]);
        let v = combined(&[(b, &u), (1.0, &c)]);
        Ok(StepResult { state: TimeState { time: end, u, v, a: Some(a) }, estimate: None })
    }
}
