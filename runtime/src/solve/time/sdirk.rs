//! Singly diagonally implicit Runge-Kutta formulas: one solve per stage, all with the same factor; the last stage is
//! the end of the step.

use super::weights::combined;
use super::{History, Stage, StageSolver, StepResult, TimeScheme, TimeState};
use crate::algebra::vector::Vector;

/// A Runge-Kutta formula.
pub(super) struct Tableau {
    /// Diagonal coefficient.
    pub(super) gamma: f64,
    /// Coefficients of the rates of earlier stages.
    pub(super) rows: Vec<Vec<f64>>,
    /// Stage times relative to the step.
    pub(super) nodes: Vec<f64>,
    /// Weights of the rates minus those of the embedded formula.
    pub(super) error: Vec<f64>,
    /// Order of the embedded formula.
    pub(super) embedded_order: usize,
}

impl Tableau {
    /// Returns the formula of 2, 3 or 4 stages, of order 2, 3 and 3. The first two are Alexander's (1977, SIAM J.
    /// Numer. Anal. 14, section 4); that of four stages has γ = ¼ and satisfies the four conditions of order 3.
    pub(super) fn of(stages: usize) -> Self {
        match stages {
            2 => {
                let gamma = 1.0 - std::f64::consts::FRAC_1_SQRT_2;
                Self::with(gamma, vec![vec![], vec![1.0 - gamma]], &[1.0, 0.0], 1)
            }
            3 => {
                // The root of γ³ − 3 γ² + 3/2 γ − 1/6 = 0 between 1/6 and 1/2.
                let gamma = 0.435_866_521_508_459;
                let first = -(6.0 * gamma * gamma - 16.0 * gamma + 1.0) / 4.0;
                let second = (6.0 * gamma * gamma - 20.0 * gamma + 5.0) / 4.0;
                let rows = vec![vec![], vec![(1.0 - gamma) / 2.0], vec![first, second]];
                let late = (1.0 - 2.0 * gamma) / (1.0 - gamma);
                Self::with(gamma, rows, &[1.0 - late, late, 0.0], 2)
            }
            _ => {
                let rows = vec![
                    vec![],
                    vec![0.5],
                    vec![17.0 / 40.0, -7.0 / 40.0],
                    vec![5.0 / 12.0, -1.0 / 12.0, 5.0 / 12.0],
                ];
                Self::with(0.25, rows, &[0.0, 0.0, 1.0, 0.0], 2)
            }
        }
    }

    fn with(gamma: f64, rows: Vec<Vec<f64>>, lower: &[f64], embedded_order: usize) -> Self {
        let nodes = rows.iter().map(|row| row.iter().sum::<f64>() + gamma).collect();
        let weights = rows.last().into_iter().flatten().copied().chain([gamma]);
        let error = weights.zip(lower).map(|(own, lower)| own - lower).collect();
        Self { gamma, rows, nodes, error, embedded_order }
    }

    /// Takes a step from a state.
    pub(super) fn step_from<E>(
        &self,
        history: &History,
        before: &TimeState,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E> {
        let s = 1.0 / (self.gamma * length);
        // Derivatives of u and of v at the stages.
        let (mut of_u, mut of_v): (Vec<Vector>, Vec<Vector>) = (Vec::new(), Vec::new());
        let mut x = history.extrapolated(before.time + self.nodes[0] * length);
        let mut r2 = x.like();
        for (row, node) in self.rows.iter().zip(&self.nodes) {
            let base = |old: &Vector, rates: &[Vector]| {
                let known = row.iter().zip(rates).map(|(a, rate)| (length * a, rate));
                combined(&std::iter::once((1.0, old)).chain(known).collect::<Vec<_>>())
            };
            let mut r = base(&before.u, &of_u);
            r.scale(-s);
            let v_base = history.second.then(|| base(&before.v, &of_v));
            if let Some(v_base) = &v_base {
                r2 = combined(&[(s, &r), (-s, v_base)]);
            }
            let time = before.time + node * length;
            stages.solve(&Stage::at(time, s, [&r, &r2]), &mut x)?;
            let rate = combined(&[(s, &x), (1.0, &r)]);
            if let Some(v_base) = &v_base {
                of_v.push(combined(&[(s, &rate), (-s, v_base)]));
            }
            of_u.push(rate);
        }
        let difference: Vec<(f64, &Vector)> =
            self.error.iter().zip(&of_u).map(|(e, rate)| (length * e, rate)).collect();
        let mut difference = combined(&difference);
        stages.keep_algebraic(&x.like(), &mut difference);
        let estimate = Some(difference.norm());
        let time = before.time + length;
        let v = of_u.pop().unwrap_or_else(|| x.like());
        Ok(StepResult { state: TimeState { time, u: x, v, a: of_v.pop() }, estimate })
    }
}

impl<E> TimeScheme<E> for Tableau {
    fn order(&self) -> usize {
        self.embedded_order
    }

    fn step(
        &self,
        history: &History,
        length: f64,
        stages: &mut dyn StageSolver<Error = E>,
    ) -> Result<StepResult, E> {
        self.step_from(history, history.state(), length, stages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_fulfil_the_conditions_of_their_order() {
        for (stages, order) in [(2, 2), (3, 3), (4, 3)] {
            let Tableau { gamma, rows, nodes, error, embedded_order } = Tableau::of(stages);
            let near = |found: f64, wanted: f64| {
                assert!((found - wanted).abs() < 1e-14, "{stages} stages: {found}, not {wanted}");
            };
            let full: Vec<Vec<f64>> =
                rows.iter().map(|row| row.iter().copied().chain([gamma]).collect()).collect();
            let times = |weights: &[f64], of: &[f64]| -> f64 {
                weights.iter().zip(of).map(|(w, x)| w * x).sum()
            };
            let ones = vec![1.0; stages];
            let squares: Vec<f64> = nodes.iter().map(|c| c * c).collect();
            let again: Vec<f64> = full.iter().map(|row| times(row, &nodes)).collect();
            let last = full.last().expect("stages");
            near(nodes[stages - 1], 1.0);
            near(times(last, &ones), 1.0);
            near(times(last, &nodes), 0.5);
            if order > 2 {
                near(times(last, &squares), 1.0 / 3.0);
                near(times(last, &again), 1.0 / 6.0);
            }
            near(times(&error, &ones), 0.0);
            if embedded_order > 1 {
                near(times(&error, &nodes), 0.0);
            }
        }
    }
}
