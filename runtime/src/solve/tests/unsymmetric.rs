//! FGMRES and BiCGStab: unsymmetric systems, varying preconditioners, and breakdown of the recurrence.

use super::*;
use crate::algebra::vector::ComplexPairs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns the matrix of convection-diffusion along a chain.
fn convection(n: usize) -> Dense {
    Dense::new(n, |i, j| match j as i64 - i as i64 {
        0 => 2.0 + 0.05 * (i % 5) as f64,
        1 => -0.4,
        -1 => -1.6,
        _ => 0.0,
    })
}

/// Jacobi sweeps; their number varies between applications.
struct Sweeps<'a> {
    a: &'a Dense,
    inverse: Vector,
    applied: AtomicUsize,
}

impl LinearOperator for Sweeps<'_> {
    fn size(&self) -> usize {
        self.a.n
    }

    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let sweeps = 1 + self.applied.fetch_add(1, Ordering::Relaxed) % 3;
        let mut left = r.clone();
        z.fill(0.0);
        for _ in 0..sweeps {
            left.multiply(&self.inverse);
            z.axpy(1.0, &left);
            self.a.apply(z, &mut left)?;
            left.axpby(1.0, r, -1.0);
        }
        Ok(())
    }
}

#[test]
fn bicgstab_solves_to_the_tolerance_and_reports_true_residuals() {
    let a = convection(80);
    let expected = wave(80);
    let b = Vector::from_slice(&a.product(&expected), Precision::F64);
    let inverse = a.inverse_diagonal(Precision::F64);
    for preconditioner in [Preconditioner::Identity, Preconditioner::Jacobi(&inverse)] {
        let mut x = b.like();
        let settings = CgSettings { rtol: 1e-12, ..CgSettings::default() };
        let report = bicgstab(&a, &b, &mut x, preconditioner, settings, &mut silent);
        let report = report.expect("applies").converged().expect("converges");
        assert!(error(&x, &expected) < 1e-10, "{}", error(&x, &expected));
        assert!(report.iterations <= 120, "{} iterations", report.iterations);
        assert_eq!(report.history.len(), report.iterations + 1);
        let mut r = b.like();
        a.apply(&x, &mut r).expect("applies");
        r.axpby(1.0, &b, -1.0);
        assert!(r.norm() <= 1e-12 * b.norm() && r.norm() == report.residual());
    }
}

#[test]
fn bicgstab_names_what_is_wrong_with_a_system() {
    let run = |a: &Dense, b: &[f64]| {
        let b = Vector::from_slice(b, Precision::F64);
        let mut x = b.like();
        let settings = CgSettings { max_iterations: 50, ..CgSettings::default() };
        let report = bicgstab(a, &b, &mut x, Preconditioner::Identity, settings, &mut silent);
        report.expect("applies").outcome
    };
    assert_eq!(run(&convection(4), &[0.0; 4]), Outcome::Converged);
    assert_eq!(run(&Dense::new(4, |_, _| f64::NAN), &wave(4)), Outcome::NotFinite);
    // r·Ar is 0 for every r: a divisor vanishes.
    let turn = Dense::new(2, |i, j| f64::from(j as i32 - i as i32));
    let outcome = run(&turn, &[1.0, 2.0]);
    assert_eq!(outcome, Outcome::BrokeDown);
    let mut report = Report::ended("bicgstab", Instant::now(), 1.0, (outcome, vec![2.0, 2.0]));
    report.iterations = 1;
    let said = report.converged().expect_err("no solution").to_string();
    assert!(said.contains("broke down") && said.contains("help: use `gmres`"), "{said}");
    // A singular matrix with an inconsistent right-hand side.
    let singular = Dense::new(6, |i, j| f64::from(u8::from(i == j && i > 0)));
    let outcome = run(&singular, &wave(6));
    assert!(!outcome.is_success(), "{outcome:?}");
}

#[test]
fn fgmres_takes_a_preconditioner_that_changes() {
    let a = convection(80);
    let expected = wave(80);
    let b = Vector::from_slice(&a.product(&expected), Precision::F64);
    let inverse = a.inverse_diagonal(Precision::F64);
    let settings = GmresSettings { rtol: 1e-12, restart: 20, ..GmresSettings::default() };
    let mut x = b.like();
    let own = Sweeps { a: &a, inverse: inverse.clone(), applied: AtomicUsize::new(0) };
    let by = Preconditioner::Operator(&own);
    let report = fgmres(&a, &b, &mut x, by, settings, &mut silent).expect("applies");
    let report = report.converged().expect("converges");
    assert_eq!(report.solver, "fgmres");
    assert!(error(&x, &expected) < 1e-10, "{}", error(&x, &expected));
    // One application per iteration, none for the solution.
    assert_eq!(own.applied.load(Ordering::Relaxed), report.iterations);
    // With a constant preconditioner it is GMRES.
    let run = |flexible: bool| {
        let (mut x, jacobi) = (b.like(), Preconditioner::Jacobi(&inverse));
        let method = if flexible { fgmres } else { gmres };
        let report = method(&a, &b, &mut x, jacobi, settings, &mut silent).expect("applies");
        report.converged().expect("converges").iterations
    };
    assert!(run(true).abs_diff(run(false)) <= 1);
}

/// The real system [A −B; B A] of the diagonal matrix A + iB with these eigenvalues.
struct ComplexDiagonal(Vec<[f64; 2]>, Option<ComplexPairs>);

impl LinearOperator for ComplexDiagonal {
    fn size(&self) -> usize {
        2 * self.0.len()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let (x, n) = (x.to_vec(), self.0.len());
        let mut product = vec![0.0; 2 * n];
        for (i, [re, im]) in self.0.iter().enumerate() {
            product[i] = re * x[i] - im * x[n + i];
            product[n + i] = im * x[i] + re * x[n + i];
        }
        y.set(&product);
        Ok(())
    }

    fn complex_pairs(&self) -> Option<&ComplexPairs> {
        self.1.as_ref()
    }
}

/// A polynomial of degree m vanishes at m eigenvalues; a real one at their conjugates, too.
#[test]
fn complex_systems_take_a_step_for_each_eigenvalue() {
    let values = [[1.0, 0.0], [0.9, 0.3], [0.5, 0.7], [0.2, 1.0], [0.0, 1.1]];
    let all: Vec<[f64; 2]> = (0..40).map(|i| values[i % 5]).collect();
    let b = Vector::from_slice(&wave(80), Precision::F64);
    let pairs = || ComplexPairs::new(vec![[0..40, 40..80]]);
    let settings = GmresSettings { rtol: 1e-12, ..GmresSettings::default() };
    for method in [gmres, fgmres] {
        let run = |pairs| {
            let (a, mut x) = (ComplexDiagonal(all.clone(), pairs), b.like());
            let report = method(&a, &b, &mut x, Preconditioner::Identity, settings, &mut silent);
            let report = report.expect("applies").converged().expect("converges");
            let mut r = b.like();
            a.apply(&x, &mut r).expect("applies");
            r.axpby(1.0, &b, -1.0);
            assert!(r.norm() <= 1e-12 * b.norm());
            report.iterations
        };
        assert_eq!((run(pairs()), run(None)), (5, 9));
    }
    // The preconditioner of GMRES must be complex-linear, else the space is the real one.
    let (a, mut x) = (ComplexDiagonal(all, pairs()), b.like());
    let entries: Vec<f64> = (0..80).map(|i| if i < 40 { 1.0 } else { 1.5 }).collect();
    let unequal = Vector::from_slice(&entries, Precision::F64);
    let by = Preconditioner::Jacobi(&unequal);
    let report = gmres(&a, &b, &mut x, by, settings, &mut silent).expect("applies");
    assert!(report.converged().expect("converges").iterations > 5);
}
