//! Amplification of perturbations over many steps of an explicit Runge-Kutta formula: powers of the step itself.
//!
//! ```text
//! x_j = P(Δt L)^j x₀     L = −M⁻¹ ∂F/∂u     P(z) = Σ z^i / i!, i ≤ p     x₀ = L⁴ r for a pseudo-random r
//! ```
//!
//! L of upwind fluxes is not normal: its eigenvalue of the largest modulus need not be the mode that grows, and norms
//! may grow for a while although every mode decays. A step is unstable if two conditions hold:
//!
//! - The largest norm of the last powers exceeds that of as many earlier ones. Norms that oscillate do not.
//! - The last power exceeds what e^(Δt L) makes of its vector. Solutions that grow by their own equation do not.

use crate::algebra::vector::Vector;
use crate::problem::RunError;
use crate::problem::time::mass::FormMass;
use crate::solve::LinearOperator;

/// Share of the remaining steps that a check may cost.
const SHARE: f64 = 1.0 / 16.0;
/// Least and largest number of powers, but no more than steps.
const POWERS: [f64; 2] = [16.0, 128.0];
/// Number of powers that have two windows.
const FEWEST: f64 = 4.0;
/// Number of steps of a run of unknown length.
const UNKNOWN: f64 = 128.0;
/// Allowed growth of a perturbation over a run.
const GROWTH: f64 = 2.0;
/// Least growth of a step that the powers can show.
const VISIBLE: f64 = 3e-4;
/// Least excess of a power over the exact solution, relative to the allowed growth: unstable modes of upwind fluxes decay
/// exactly, whereas phases of resolved modes differ slightly, and with them their norms.
const EXCESS: f64 = 10.0;
/// Degree of the polynomial that stands for e^(Δt L), accurate for |Δt λ| ≤ 4.
const EXPONENTIAL: usize = 24;
/// Halvings of an unstable step, and bisection steps after them, which leave 1 %.
const HALVINGS: [usize; 2] = [24, 7];

/// The amplification of perturbations by a formula with the number of stages equal to its order.
pub(super) struct Amplification<'a> {
    mass: &'a FormMass,
    order: usize,
    /// Time that is left.
    left: f64,
    /// Diagonal of the mass, which gives the norm.
    weights: Vector,
    /// Buffers: a residual, a term of P and the next one, P x.
    work: [Vector; 4],
}

impl<'a> Amplification<'a> {
    pub(super) fn new(mass: &'a FormMass, order: usize, left: f64) -> Self {
        let mut weights = mass.inverse.clone();
        weights.invert();
        weights.make_absolute();
        let work = std::array::from_fn(|_| weights.like());
        Self { mass, order, left, weights, work }
    }

    /// Returns the number of steps of a length in the time that is left.
    fn steps(&self, length: f64) -> f64 {
        if self.left > 0.0 { (self.left / length).max(1.0) } else { UNKNOWN }
    }

    /// Returns the number of steps between two checks of a length.
    pub(super) fn interval(&self, length: f64) -> usize {
        (powers(self.steps(length)) as f64 / SHARE) as usize
    }

    /// Computes P(Δt L) x of a degree into the last buffer and returns its norm.
    fn apply(&mut self, degree: usize, length: f64, x: &Vector) -> Result<f64, RunError> {
        let [r, term, next, sum] = &mut self.work;
        term.copy_from(x);
        sum.copy_from(x);
        for i in 1..=degree {
            self.mass.without.apply(term, r)?;
            self.mass.solve(r, next)?;
            next.scale(length / i as f64);
            sum.axpy(1.0, next);
            std::mem::swap(term, next);
        }
        Ok(norm(sum, &self.weights, term))
    }

    /// Returns whether steps of a length are stable; x, the first vector, becomes the last one.
    pub(super) fn is_stable(&mut self, length: f64, x: &mut Vector) -> Result<bool, RunError> {
        let steps = self.steps(length);
        let (allowed, powers) = ((GROWTH.ln() / steps).max(VISIBLE), powers(steps));
        let first = norm(x, &self.weights, &mut self.work[0]);
        if first == 0.0 || !first.is_finite() {
            return Ok(true);
        }
        x.scale(1.0 / first);
        // The powers of the first quarter leave the modes that grow or decay slowly.
        let (begin, half) = (powers / 4, (powers - powers / 4) / 2);
        let (mut size, mut largest) = (0.0, [f64::NEG_INFINITY; 2]);
        for power in 0..begin + 2 * half {
            let growth = self.apply(self.order, length, x)?;
            if growth == 0.0 {
                return Ok(true);
            }
            if !growth.is_finite() {
                return Ok(false);
            }
            size += growth.ln();
            x.copy_from(&self.work[3]);
            x.scale(1.0 / growth);
            if power >= begin {
                let window = &mut largest[(power - begin) / half];
                *window = window.max(size);
            }
        }
        if largest[1] - largest[0] <= allowed * half as f64 {
            return Ok(true);
        }
        let exact = self.apply(EXPONENTIAL, length, x)?;
        let growth = self.apply(self.order, length, x)?;
        Ok(growth <= exact * (1.0 + EXCESS * allowed))
    }

    /// Returns the longest stable step below an unstable one, by bisection from a first vector.
    pub(super) fn longest(&mut self, length: f64, x: &Vector) -> Result<f64, RunError> {
        let (mut stable, mut not) = (length / 2.0, length);
        for _ in 0..HALVINGS[0] {
            if self.is_stable(stable, &mut x.clone())? {
                break;
            }
            (stable, not) = (stable / 2.0, stable);
        }
        for _ in 0..HALVINGS[1] {
            let middle = 0.5 * (stable + not);
            match self.is_stable(middle, &mut x.clone())? {
                true => stable = middle,
                false => not = middle,
            }
        }
        Ok(stable)
    }
}

/// Returns the number of powers that a check takes before a number of steps.
fn powers(steps: f64) -> usize {
    (SHARE * steps).max(POWERS[0].min(steps)).clamp(FEWEST, POWERS[1]) as usize
}

/// Returns √(Σ m_i x_i²).
fn norm(x: &Vector, weights: &Vector, work: &mut Vector) -> f64 {
    work.copy_from(x);
    work.multiply(weights);
    work.dot(x).abs().sqrt()
}

#[cfg(test)]
mod tests {
    use super::powers;

    #[test]
    fn a_check_costs_a_sixteenth_of_a_run() {
        let steps = [1.0, 10.0, 100.0, 256.0, 800.0, 2048.0, 1e6];
        assert_eq!(steps.map(powers), [4, 10, 16, 16, 50, 128, 128]);
    }
}
