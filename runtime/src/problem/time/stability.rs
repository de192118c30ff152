//! Stability of explicit Runge-Kutta formulas: amplification of an eigenmode of M⁻¹ ∂F/∂u in a step.
//!
//! ```text
//! u̇ = −λ u     u(t + Δt) = R(−λ Δt) u(t)     R(z) = Σ z^j / j!, j ≤ p     stable where |R(z)| ≤ max(1, |e^z|)
//! ```
//!
//! The stability regions of orders 1 and 2 exclude the imaginary axis: purely oscillating modes, as in advection, grow
//! for every step length. A mode may therefore grow by a factor of 2 over the whole run.

/// Allowed numerical growth of a mode over a run, relative to its exact growth.
const GROWTH: f64 = 2.0;
/// Rounding error of |R| in a step.
const ROUNDING: f64 = 1e-9;
/// Bisection steps for the longest stable step.
const HALVINGS: usize = 60;
/// Allowed residual ‖A² x − t A x + d x‖ relative to ‖A² x‖.
const UNEXPLAINED: f64 = 0.2;

/// A conjugate eigenvalue pair: real part, and absolute imaginary part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ConjugatePair {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// Scalar products of x, A x and A² x, for x in an invariant subspace of A.
pub(super) struct KrylovProducts {
    /// x·x, x·Ax, Ax·Ax.
    pub(super) of_two: [f64; 3],
    /// x·A²x, Ax·A²x.
    pub(super) with_last: [f64; 2],
    /// A²x·A²x.
    pub(super) last: f64,
}

impl KrylovProducts {
    /// Returns the eigenvalue pair of the least-squares fit A² x = t A x − d x; `None` if the fit is poor or the
    /// eigenvalues are real.
    pub(super) fn pair(&self) -> Option<ConjugatePair> {
        let ([xx, xy, yy], [xz, yz], zz) = (self.of_two, self.with_last, self.last);
        let determinant = xx * yy - xy * xy;
        // A x ∥ x: a single eigenvalue.
        if determinant.is_nan() || determinant <= 1e-10 * xx * yy {
            return None;
        }
        let t = (yz * xx - xz * xy) / determinant;
        let d = (yz * xy - xz * yy) / determinant;
        let left = zz + t * t * yy + d * d * xx - 2.0 * t * yz + 2.0 * d * xz - 2.0 * t * d * xy;
        let explained = left <= UNEXPLAINED * UNEXPLAINED * zz;
        let square = d - 0.25 * t * t;
        let turns = square > 0.0;
        (explained && turns).then(|| ConjugatePair { re: 0.5 * t, im: square.sqrt() })
    }
}

/// Returns |R(z)| of the formula of an order.
fn amplification(order: usize, z: [f64; 2]) -> f64 {
    let (mut sum, mut power, mut factorial) = ([1.0, 0.0], [1.0, 0.0], 1.0);
    for j in 1..=order {
        power = [power[0] * z[0] - power[1] * z[1], power[0] * z[1] + power[1] * z[0]];
        factorial *= j as f64;
        sum = [sum[0] + power[0] / factorial, sum[1] + power[1] / factorial];
    }
    sum[0].hypot(sum[1])
}

/// Returns whether steps of a length are stable for an eigenvalue pair over a time.
fn is_stable(order: usize, of: ConjugatePair, length: f64, time: f64) -> bool {
    let (re, im) = (-of.re * length, of.im * length);
    let own = re.exp().max(1.0);
    let growth = (amplification(order, [re, im]) / own).ln();
    let steps = (time / length).max(1.0);
    growth <= (GROWTH.ln() / steps).max(ROUNDING)
}

/// Returns the longest stable step for an eigenvalue pair over a time; `None` if `length` is stable.
pub(super) fn longest_step(order: usize, of: ConjugatePair, length: f64, time: f64) -> Option<f64> {
    if is_stable(order, of, length, time) {
        return None;
    }
    let [mut stable, mut not] = [0.0, length];
    for _ in 0..HALVINGS {
        let middle = 0.5 * (stable + not);
        if is_stable(order, of, middle, time) { stable = middle } else { not = middle }
    }
    Some(stable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_have_their_regions() {
        let turning = ConjugatePair { re: 0.0, im: 1.0 };
        let falling = ConjugatePair { re: 1.0, im: 0.0 };
        for (order, axis, real) in [(3, 3.0_f64.sqrt(), 2.5127), (4, 8.0_f64.sqrt(), 2.7853)] {
            let most = longest_step(order, turning, 10.0, 1e9).expect("bounded");
            assert!((most - axis).abs() < 1e-3, "{order}: {most}");
            let most = longest_step(order, falling, 10.0, 1e9).expect("bounded");
            assert!((most - real).abs() < 1e-3, "{order}: {most}");
        }
        // |R|² = 1 + z⁴/4 of the second order: 100 steps of 0.2 grow by 1.02, those of 1 by 10¹⁰.
        assert_eq!(longest_step(2, turning, 0.2, 20.0), None);
        let most = longest_step(2, turning, 1.0, 100.0).expect("bounded");
        assert!((0.2..0.5).contains(&most), "{most}");
        // Physical growth is allowed.
        assert_eq!(longest_step(2, ConjugatePair { re: -1.0, im: 0.0 }, 0.1, 1e3), None);
    }

    #[test]
    fn a_rotation_has_a_pair() {
        // A = [1, −2; 2, 1], x = (1, 0).
        let (x, y, z) = ([1.0, 0.0], [1.0, 2.0], [-3.0, 4.0]);
        let dot = |a: [f64; 2], b: [f64; 2]| a[0] * b[0] + a[1] * b[1];
        let products = KrylovProducts {
            of_two: [dot(x, x), dot(x, y), dot(y, y)],
            with_last: [dot(x, z), dot(y, z)],
            last: dot(z, z),
        };
        let pair = products.pair().expect("a pair");
        assert!((pair.re - 1.0).abs() < 1e-12 && (pair.im - 2.0).abs() < 1e-12, "{pair:?}");
    }
}
