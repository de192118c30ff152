//! Checks of a Jacobian: derivative of the residual, symmetry and definiteness.
//!
//! ```text
//! ‖R(u + ε w) − R(u) − ε J(u) w‖ = O(ε²),  only rounding error for a linear form
//! v·J w = w·J v
//! p·J p > 0  for the directions p of the conjugate gradient method
//! ```

use super::{VerificationProblem, free, vector};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::{RunError, interpolant};
use crate::solve::NonlinearSystem;
use crate::solve::{CgSettings, Outcome, Preconditioner, cg, silent};

/// Number of halvings of ε.
const HALVINGS: i32 = 12;
/// Size of the direction, relative to the state.
const DIRECTION: f64 = 0.1;
/// Rounding error of a remainder, relative to its terms.
const ROUNDING: f64 = 2e-14;
/// Ratio of a significant remainder to its rounding error.
const CLEAR: f64 = 300.0;
/// Tolerance of v·Jw = w·Jv, relative to ‖v‖ ‖Jw‖.
const SYMMETRY: f64 = 1e-12;
/// Number of iterations that search for negative curvature.
const ITERATIONS: usize = 400;

/// Result of a Taylor test.
#[derive(Clone, Debug, PartialEq)]
pub struct TaylorResult {
    /// ε, and the norm of the remainder.
    pub remainders: Vec<(f64, f64)>,
    /// Order of the remainder; `None` if it is rounding error from the start.
    pub order: Option<f64>,
    /// True for a linear form, which should have no remainder.
    pub linear: bool,
}

impl TaylorResult {
    /// Returns whether the Jacobian is the derivative of the residual.
    pub fn holds(&self) -> bool {
        match self.order {
            None => true,
            Some(order) => !self.linear && order > 1.9,
        }
    }
}

/// Result of the symmetry and definiteness checks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SymmetryResult {
    /// |v·Jw − w·Jv| / (‖v‖ ‖Jw‖).
    pub defect: f64,
    /// True if all conjugate gradient directions have positive curvature; `None` for unsymmetric J.
    pub definite: Option<bool>,
}

impl SymmetryResult {
    /// Returns whether J is symmetric up to rounding.
    pub fn symmetric(&self) -> bool {
        self.defect <= SYMMETRY
    }
}

impl VerificationProblem {
    /// Compares J with differences of R at the known solution.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    pub fn taylor(&self, operator: &mut Operator) -> Result<TaylorResult, RunError> {
        let u = self.state(operator);
        let w = vector(&u, &self.direction()?);
        let (mut r, mut jw) = (u.like(), u.like());
        operator.residual(&u, &mut r)?;
        operator.linearise(&u)?;
        operator.jacobian().apply(&w, &mut jw)?;
        let mut d = u.like();
        operator.diagonal(&mut d)?;
        d.multiply(&u);
        // The terms of R are larger than R itself near a solution.
        let scale = d.norm() + r.norm() + jw.norm();
        let (mut moved, mut rest) = (u.like(), u.like());
        let mut remainders = Vec::new();
        for halving in 0..HALVINGS {
            let epsilon = 0.5f64.powi(halving);
            moved.copy_from(&u);
            moved.axpy(epsilon, &w);
            operator.residual(&moved, &mut rest)?;
            rest.axpy(-1.0, &r);
            rest.axpy(-epsilon, &jw);
            remainders.push((epsilon, rest.norm()));
        }
        let linear = self.context.form().integrals.iter().all(|integral| integral.linear);
        let order = order(&remainders, scale);
        Ok(TaylorResult { remainders, order, linear })
    }

    /// Returns a smooth direction, different in each component, and 0 in constrained degrees of freedom.
    fn direction(&self) -> Result<Vec<f64>, RunError> {
        let on = &self.context.on;
        let (from, to) = on.mesh.bounding_box_of_all();
        let mut w = vec![0.0; on.n_dofs()];
        for (number, (field, size)) in on.fields.iter().zip(self.sizes()).enumerate() {
            let components = field.space.value_components();
            let amplitude = DIRECTION * if size > 0.0 { size } else { 1.0 };
            let value = |x: &[f64; 3], component: usize| {
                let phase = (number + component) as f64;
                let inner = |axis: usize| {
                    let length = (to[axis] - from[axis]).max(f64::MIN_POSITIVE);
                    (1.9 - 0.3 * axis as f64 + 0.2 * phase) * (x[axis] - from[axis]) / length
                };
                let inner: f64 = (0..on.mesh.dim()).map(inner).sum();
                amplitude * (inner + 1.1 * phase).cos()
            };
            let own = interpolant(on, number, |points| {
                let rows = points.iter().map(|x| (0..components).map(move |c| (x, c)));
                rows.flatten().map(|(x, component)| value(x, component)).collect()
            })?;
            w[on.dofs_of(number)].copy_from_slice(&own);
        }
        free(on, &mut w);
        Ok(w)
    }

    /// Checks symmetry and searches for negative curvature at the known solution.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    pub fn signs(&self, operator: &mut Operator) -> Result<SymmetryResult, RunError> {
        let u = self.state(operator);
        let on = &self.context.on;
        let random = |seed: u64| {
            let mut entries = on.noise(seed);
            free(on, &mut entries);
            vector(&u, &entries)
        };
        let (v, w) = (random(1), random(2));
        operator.linearise(&u)?;
        let product = |x: &Vector| {
            let mut y = x.like();
            operator.jacobian().apply(x, &mut y).map(|()| y)
        };
        let (jv, jw) = (product(&v)?, product(&w)?);
        let size = (v.norm() * jw.norm()).max(w.norm() * jv.norm()).max(f64::MIN_POSITIVE);
        let defect = (v.dot(&jw) - w.dot(&jv)).abs() / size;
        let definite = match defect <= SYMMETRY {
            true => {
                let mut x = u.like();
                let max_iterations = ITERATIONS;
                let settings = CgSettings { rtol: 1e-6, max_iterations, ..CgSettings::default() };
                let none = Preconditioner::Identity;
                let report = cg(operator.jacobian(), &v, &mut x, none, settings, &mut silent)?;
                Some(!matches!(report.outcome, Outcome::Indefinite { .. }))
            }
            false => None,
        };
        Ok(SymmetryResult { defect, definite })
    }
}

/// Returns the observed order of remainders above rounding error, from the two smallest such ε.
fn order(remainders: &[(f64, f64)], scale: f64) -> Option<f64> {
    let clear = |remainder: f64| remainder.is_nan() || remainder > CLEAR * ROUNDING * scale;
    let last = remainders.iter().rposition(|&(_, remainder)| clear(remainder))?;
    if last == 0 {
        // Rounding error after the first halving: the order is a lower bound.
        let (_, first) = remainders[0];
        let (_, next) = *remainders.get(1)?;
        return Some((first / next.max(f64::MIN_POSITIVE)).log2());
    }
    let ((wide, before), (narrow, after)) = (remainders[last - 1], remainders[last]);
    Some((before / after).ln() / (wide / narrow).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_those_of_remainders_above_rounding() {
        let remainders = |power: i32, floor: f64| -> Vec<(f64, f64)> {
            let of = |halving| 0.5f64.powi(halving);
            (0..HALVINGS).map(|h| (of(h), (3.0 * of(h).powi(power)).max(floor))).collect()
        };
        for power in [1, 2, 3] {
            let found = order(&remainders(power, 1e-13), 1.0).expect("an order");
            assert!((found - f64::from(power)).abs() < 1e-9, "{power}: {found}");
        }
        assert_eq!(order(&[(1.0, 1e-13), (0.5, 3e-14)], 1.0), None);
        assert!(order(&[(1.0, f64::NAN), (0.5, f64::NAN)], 1.0).is_some_and(f64::is_nan));
        let taylor = |order, linear| TaylorResult { remainders: Vec::new(), order, linear };
        assert!(taylor(None, true).holds() && taylor(Some(2.0), false).holds());
        assert!(!taylor(Some(2.0), true).holds() && !taylor(Some(1.0), false).holds());
        assert!(!taylor(Some(f64::NAN), false).holds());
    }
}
