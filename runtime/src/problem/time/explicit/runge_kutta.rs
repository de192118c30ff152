//! Explicit Runge-Kutta formulas of order 1 to 4 for u̇ = M⁻¹ (−F).
//!
//! ```text
//! Shu and Osher    u₁ = u + Δt u̇     u₂ = ¾ u + ¼ (u₁ + Δt u̇₁)     ⅓ u + ⅔ (u₂ + Δt u̇₂)
//! ```

use super::{ExplicitData, ExplicitScheme};
use crate::algebra::vector::Vector;
use crate::problem::RunError;
use crate::problem::time::stability::{ConjugatePair, longest_step};
use crate::problem::time::stages::ProblemStages;
use crate::solve::time::TimeState;
use fem_dsl::problem::{Formula, Mass as Kind};
use std::sync::Arc;

/// Extent of the stability region on the negative real axis, by order of the formula.
const REAL: [f64; 4] = [2.0, 2.0, 2.512, 2.785];

/// Evaluates the rate at a state and a time, which is given as a fraction of the step.
type RateFunction<'a> = dyn FnMut(f64, &mut Vector, &mut Vector) -> Result<(), RunError> + 'a;

/// Explicit Runge-Kutta formula.
pub(super) struct RungeKutta {
    pub(super) order: usize,
    pub(super) formula: Formula,
    pub(super) mass: Kind,
    /// Buffers: the weighted sum, and the rate of a stage.
    pub(super) stages: Option<[Vector; 2]>,
}

/// Stages of a formula.
enum Stages {
    /// Nodes, which are also the coefficients of the preceding stage, and the weights of the sum.
    Weighted { nodes: &'static [f64], weights: &'static [f64] },
    /// Nodes after the first, and the share of an Euler step from each in the next stage; the rest is the state.
    Convex { nodes: &'static [f64], shares: &'static [f64] },
}

/// Returns the stages of an order and a formula. Those of orders 1 and 2 preserve strong stability anyway.
fn stages(order: usize, formula: Formula) -> Stages {
    let (nodes, weights): (&[f64], &[f64]) = match (order, formula) {
        (3, Formula::Ssp) => {
            return Stages::Convex { nodes: &[1.0, 0.5], shares: &[0.25, 2.0 / 3.0] };
        }
        (1, _) => (&[0.0], &[1.0]),
        (2, _) => (&[0.0, 1.0], &[0.5, 0.5]),
        (3, _) => (&[0.0, 1.0 / 3.0, 2.0 / 3.0], &[0.25, 0.0, 0.75]),
        _ => (&[0.0, 0.5, 0.5, 1.0], &[1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0]),
    };
    Stages::Weighted { nodes, weights }
}

impl ExplicitScheme for RungeKutta {
    fn mass(&self) -> Kind {
        self.mass
    }

    fn degree(&self) -> Option<usize> {
        Some(self.order)
    }

    fn longest_step(
        &self,
        largest: f64,
        pair: Option<ConjugatePair>,
        (length, left): (f64, f64),
    ) -> f64 {
        match pair {
            Some(pair) => longest_step(self.order, pair, length, left).unwrap_or(f64::INFINITY),
            None => REAL[self.order - 1] / largest,
        }
    }

    /// A device replays a step if nothing depends on t.
    fn step(
        &mut self,
        data: &mut ExplicitData,
        length: f64,
        staged: &mut ProblemStages<'_>,
    ) -> Result<(), RunError> {
        let stages = stages(self.order, self.formula);
        let TimeState { time, u, v, .. } = &mut data.state;
        let [sum, rate] = self.stages.get_or_insert_with(|| [u.like(), u.like()]);
        let (now, mass, r, next) = (*time, &data.mass, &mut data.r, &mut data.next);
        let lumped = mass.kind == Kind::Lumped;
        let repeatable = lumped && staged.is_repeatable() && !staged.follows_time();
        let on = next.array().map(|(on, _)| Arc::clone(on)).filter(|_| repeatable);
        let mut all = |rate_at: &mut RateFunction<'_>| -> Result<(), RunError> {
            // The first stage is the final rate of the last step.
            match stages {
                Stages::Weighted { nodes, weights } => {
                    sum.copy_from(u);
                    sum.axpy(length * weights[0], v);
                    rate.copy_from(v);
                    for (node, weight) in nodes.iter().zip(weights).skip(1) {
                        next.copy_from(u);
                        next.axpy(length * node, rate);
                        rate_at(*node, next, rate)?;
                        sum.axpy(length * weight, rate);
                    }
                }
                Stages::Convex { nodes, shares } => {
                    sum.copy_from(u);
                    sum.axpy(length, v);
                    for (node, share) in nodes.iter().zip(shares) {
                        rate_at(*node, sum, rate)?;
                        sum.axpy(length, rate);
                        sum.axpby(1.0 - share, u, *share);
                    }
                }
            }
            rate_at(1.0, sum, rate)
        };
        match on {
            Some(on) => {
                staged.arrive(now, [None; 2])?;
                let mut rate_at = |_: f64, u: &mut Vector, rate: &mut Vector| {
                    staged.residual_here(u, r)?;
                    mass.solve(r, rate)
                };
                data.alike.step(length, &on, || all(&mut rate_at))?;
            }
            None => all(&mut |node, u, rate| {
                let time = now + node * length;
                // A diagonal mass does not couple free DoFs with the rates of constrained ones.
                let held = if lumped { None } else { staged.held_rate(1, time)? };
                staged.residual_at(time, u, [held.as_ref(), None], r)?;
                mass.solve(r, rate)?;
                if staged.settings.timed[0] { staged.hold_rate(1, time, rate) } else { Ok(()) }
            })?,
        }
        std::mem::swap(u, sum);
        std::mem::swap(v, rate);
        data.alike.swapped();
        (*time, data.state.a) = (now + length, None);
        Ok(())
    }
}
