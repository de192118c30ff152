//! Newton's method with rounding error above the tolerance.

use super::*;
use crate::support::random::random_entries;
use std::cell::Cell;

/// Number of degrees of freedom.
const SIZE: usize = 4096;
/// Rounding error of the first evaluation, a small multiple of that of u.
const NOISE: f64 = 1e-14;

struct Identity;

impl LinearOperator for Identity {
    fn size(&self) -> usize {
        SIZE
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        y.copy_from(x);
        Ok(())
    }
}

/// u = 1, with a residual whose rounding error varies and decreases slightly between evaluations.
struct Creeping {
    evaluations: Cell<i32>,
}

impl NonlinearSystem for Creeping {
    fn size(&self) -> usize {
        SIZE
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        let evaluation = self.evaluations.replace(self.evaluations.get() + 1);
        let size = NOISE * 0.97_f64.powi(evaluation);
        let numbers = u.to_vec().into_iter().zip(random_entries(SIZE, evaluation as u64));
        r.set(&numbers.map(|(u, noise)| (u - 1.0) + size * noise).collect::<Vec<f64>>());
        Ok(())
    }

    fn linearise(&mut self, _: &Vector) -> Result<(), OperatorError> {
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        &Identity
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        diagonal.fill(1.0);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        true
    }
}

#[test]
fn steps_that_creep_through_noise_end() {
    let mut system = Creeping { evaluations: Cell::new(0) };
    let mut u = Vector::zeros(SIZE, Precision::F64);
    let settings = NewtonOptions { rtol: 1e-17, ..NewtonOptions::default() };
    let report = newton(&mut system, &mut u, settings, &mut silent, &mut silent).expect("applied");
    assert_eq!(report.outcome, Outcome::Rounding, "{:?}", report.history);
    assert!(report.iterations <= 6, "{:?}", report.history);
    assert!(u.to_vec().iter().all(|u| (u - 1.0).abs() < 1e-12));
}
