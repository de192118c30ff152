//! Solvers on small dense and banded systems with known solutions.

mod indefinite;
mod limits;
mod local;
mod noise;
mod unsymmetric;

use super::*;
use crate::algebra::linear::lend_applied;
use crate::algebra::vector::{Precision, Real as _};

/// A dense matrix, row-major.
struct Dense {
    n: usize,
    entries: Vec<f64>,
}

impl Dense {
    fn new(n: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        Self { n, entries: (0..n * n).map(|k| entry(k / n, k % n)).collect() }
    }

    fn product(&self, x: &[f64]) -> Vec<f64> {
        self.entries.chunks(self.n).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    fn inverse_diagonal(&self, precision: Precision) -> Vector {
        let mut d: Vec<f64> = (0..self.n).map(|i| self.entries[i * self.n + i]).collect();
        d.iter_mut().for_each(|d| *d = 1.0 / *d);
        Vector::from_slice(&d, precision)
    }
}

impl LinearOperator for Dense {
    fn size(&self) -> usize {
        self.n
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        y.set(&self.product(&x.to_vec()));
        Ok(())
    }
}

/// Returns the second difference with a varying, badly scaled coefficient: symmetric positive definite.
fn stiff(n: usize) -> Dense {
    let k = |i: usize| 1.0 + 100.0 * ((i * 7919) % 13) as f64;
    Dense::new(n, |i, j| {
        if i == j {
            k(i) + k(i + 1)
        } else if i + 1 == j {
            -k(j)
        } else if j + 1 == i {
            -k(i)
        } else {
            0.0
        }
    })
}

fn wave(n: usize) -> Vec<f64> {
    (0..n).map(|i| (1.3 * i as f64).sin() + 0.2).collect()
}

fn error(x: &Vector, expected: &[f64]) -> f64 {
    let difference: f64 = x.to_vec().iter().zip(expected).map(|(a, b)| (a - b).powi(2)).sum();
    let scale: f64 = expected.iter().map(|b| b * b).sum();
    (difference / scale).sqrt()
}

#[test]
fn cg_solves_to_the_tolerance() {
    let a = stiff(60);
    let expected = wave(60);
    let b = Vector::from_slice(&a.product(&expected), Precision::F64);
    let inverse = a.inverse_diagonal(Precision::F64);
    for preconditioner in [Preconditioner::Identity, Preconditioner::Jacobi(&inverse)] {
        let mut x = b.like();
        let settings = CgSettings { rtol: 1e-12, ..CgSettings::default() };
        let report = cg(&a, &b, &mut x, preconditioner, settings, &mut silent).expect("applies");
        let report = report.converged().expect("converges");
        assert!(error(&x, &expected) < 1e-9);
        assert_eq!(report.history.len(), report.iterations + 1);
        let mut r = b.like();
        a.apply(&x, &mut r).expect("applies");
        r.axpby(1.0, &b, -1.0);
        assert!(r.norm() <= 1e-12 * b.norm(), "the true residual meets the tolerance");
    }
}

/// A preconditioner given as an operator acts like its diagonal.
#[test]
fn cg_takes_an_operator_as_preconditioner() {
    struct Diagonal(Vector);
    impl LinearOperator for Diagonal {
        fn size(&self) -> usize {
            self.0.len()
        }
        fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
            y.copy_from(x);
            y.multiply(&self.0);
            Ok(())
        }
    }
    let a = stiff(40);
    let b = Vector::from_slice(&wave(40), Precision::F64);
    let inverse = a.inverse_diagonal(Precision::F64);
    let operator = Diagonal(inverse.clone());
    let run = |preconditioner| {
        let mut x = b.like();
        let report = cg(&a, &b, &mut x, preconditioner, CgSettings::default(), &mut silent);
        report.expect("applies").converged().expect("converges").iterations
    };
    let (one, other) =
        (run(Preconditioner::Jacobi(&inverse)), run(Preconditioner::Operator(&operator)));
    assert!(one.abs_diff(other) <= 1, "{one} and {other} iterations");
}

/// A diagonal that rounds its result to single precision, in other units.
struct RoundedDiagonal {
    inverse: Vector,
    lends: bool,
}

impl RoundedDiagonal {
    /// Returns 8 D⁻¹ x.
    fn rounded(&self, x: &Vector) -> Vector {
        let mut y = x.clone();
        y.multiply(&self.inverse);
        y.scale(8.0);
        Vector::from_slice(&y.to_vec(), Precision::F32)
    }
}

impl LinearOperator for RoundedDiagonal {
    fn size(&self) -> usize {
        self.inverse.len()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        y.put_part(0.125, &self.rounded(x), 0..x.len());
        Ok(())
    }

    fn apply_lending(
        &self,
        x: &Vector,
        norm: f64,
        work: &mut Option<Vector>,
        take: &mut dyn FnMut(f64, &Vector),
    ) -> Result<(), OperatorError> {
        assert_eq!(norm, x.norm(), "the norm is that of the residual");
        if self.lends {
            take(0.125, &self.rounded(x));
            return Ok(());
        }
        lend_applied(x, work, take, |y| self.apply(x, y))
    }
}

/// A result that is lent in single precision gives the bits of one that is copied.
#[test]
fn cg_takes_results_in_the_precision_of_the_preconditioner() {
    let a = stiff(40);
    let b = Vector::from_slice(&wave(40), Precision::F64);
    let run = |lends| {
        let inverse = a.inverse_diagonal(Precision::F64);
        let operator = RoundedDiagonal { inverse, lends };
        let (mut x, own) = (b.like(), Preconditioner::Operator(&operator));
        let report = cg(&a, &b, &mut x, own, CgSettings::default(), &mut silent);
        (x.to_vec(), report.expect("applies").converged().expect("converges").history)
    };
    assert_eq!(run(true), run(false));
}

/// Work vectors of earlier solves, of other sizes and with other preconditioners, change nothing.
#[test]
fn cg_reuses_work_vectors() {
    let mut work = None;
    for n in [40, 40, 60, 60] {
        let a = stiff(n);
        let b = Vector::from_slice(&wave(n), Precision::F64);
        let inverse = a.inverse_diagonal(Precision::F64);
        let operator = RoundedDiagonal { inverse: inverse.clone(), lends: false };
        for own in [
            Preconditioner::Operator(&operator),
            Preconditioner::Jacobi(&inverse),
            Preconditioner::Identity,
        ] {
            let (mut x, mut alone) = (b.like(), b.like());
            let settings = CgSettings::default();
            let kept = cg::cg_with(&mut work, &a, &b, &mut x, own, settings, &mut silent);
            let expected = cg(&a, &b, &mut alone, own, settings, &mut silent);
            let histories = [kept, expected].map(|report| report.expect("applies").history);
            assert_eq!(histories[0], histories[1]);
            assert_eq!(x.to_vec(), alone.to_vec());
        }
    }
}

#[test]
fn cg_in_single_precision_reaches_what_it_can_and_says_when_it_cannot() {
    let a = stiff(30);
    let expected = wave(30);
    let b = Vector::from_slice(&a.product(&expected), Precision::F32);
    let inverse = a.inverse_diagonal(Precision::F32);
    let solve = |rtol| {
        let mut x = b.like();
        let settings = CgSettings { rtol, strict: true, ..CgSettings::default() };
        let jacobi = Preconditioner::Jacobi(&inverse);
        cg(&a, &b, &mut x, jacobi, settings, &mut silent).expect("applies").outcome
    };
    assert_eq!(solve(1e-5), Outcome::Converged);
    assert_eq!(solve(1e-14), Outcome::BelowRounding);
}

#[test]
fn cg_names_what_is_wrong_with_a_system() {
    let run = |a: &Dense, b: &[f64], settings: CgSettings| {
        let b = Vector::from_slice(b, Precision::F64);
        let mut x = b.like();
        cg(a, &b, &mut x, Preconditioner::Identity, settings, &mut silent).expect("applies")
    };
    let indefinite = Dense::new(4, |i, j| if i == j { [1.0, -1.0, 2.0, -2.0][i] } else { 0.0 });
    let report = run(&indefinite, &[1.0, 3.0, 1.0, 1.0], CgSettings::default());
    assert!(matches!(report.outcome, Outcome::Indefinite { curvature } if curvature < 0.0));
    assert!(report.converged().expect_err("not solved").to_string().contains("gmres"));

    let broken = Dense::new(3, |i, j| if i == j { f64::NAN } else { 0.0 });
    assert_eq!(run(&broken, &[1.0; 3], CgSettings::default()).outcome, Outcome::NotFinite);
    let fine = stiff(3);
    assert_eq!(
        run(&fine, &[1.0, f64::NAN, 0.0], CgSettings::default()).outcome,
        Outcome::NotFinite
    );

    let zero = run(&fine, &[0.0; 3], CgSettings::default());
    assert_eq!((zero.outcome, zero.iterations), (Outcome::Converged, 0));

    let short = CgSettings { max_iterations: 3, ..CgSettings::default() };
    let report = run(&stiff(50), &wave(50), short);
    assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, 3));

    // Singular (pure Neumann), and the right-hand side is outside the range.
    let neumann = Dense::new(5, |i, j| match i.abs_diff(j) {
        0 => 1.0 + f64::from(i > 0 && i < 4),
        1 => -1.0,
        _ => 0.0,
    });
    let report = run(&neumann, &[1.0, 0.0, 2.0, 0.5, 0.3], CgSettings::default());
    assert_ne!(report.outcome, Outcome::Converged);
}

#[test]
fn an_observer_can_stop_a_solve() {
    let a = stiff(50);
    let b = Vector::from_slice(&wave(50), Precision::F64);
    let mut x = b.like();
    let mut seen = Vec::new();
    let report = cg(&a, &b, &mut x, Preconditioner::Identity, CgSettings::default(), &mut |p| {
        seen.push(p.iteration);
        if p.iteration == 5 { Continue::No } else { Continue::Yes }
    });
    assert_eq!(report.expect("applies").outcome, Outcome::Cancelled);
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

#[test]
fn gmres_solves_unsymmetric_and_indefinite_systems() {
    let n = 40;
    let a = Dense::new(n, |i, j| match (j + n - i) % n {
        0 => 3.0 * if i % 3 == 0 { -1.0 } else { 1.0 },
        1 => 1.5,
        39 => -0.5,
        _ => 0.01 * ((i * 31 + j * 17) % 7) as f64,
    });
    let expected = wave(n);
    let b = Vector::from_slice(&a.product(&expected), Precision::F64);
    let inverse = a.inverse_diagonal(Precision::F64);
    for restart in [n, 25] {
        let mut x = b.like();
        let settings = GmresSettings { rtol: 1e-11, restart, ..GmresSettings::default() };
        let jacobi = Preconditioner::Jacobi(&inverse);
        let report = gmres(&a, &b, &mut x, jacobi, settings, &mut silent).expect("applies");
        let report = report.converged().expect("converges");
        assert!(error(&x, &expected) < 1e-9, "restart {restart}: {}", error(&x, &expected));
        if restart == n {
            assert!(report.iterations <= n, "a full space holds the solution");
        }
    }
}

#[test]
fn gmres_ends_on_breakdown_and_on_singular_systems() {
    let identity = Dense::new(6, |i, j| f64::from(u8::from(i == j)) * 2.0);
    let b = Vector::from_slice(&wave(6), Precision::F64);
    let mut x = b.like();
    let settings = GmresSettings::default();
    let run = |a: &Dense, x: &mut Vector| {
        gmres(a, &b, x, Preconditioner::Identity, settings, &mut silent).expect("applies")
    };
    let report = run(&identity, &mut x);
    assert_eq!((report.outcome, report.iterations), (Outcome::Converged, 1));
    let singular = Dense::new(6, |i, j| f64::from(u8::from(i == j && i > 0)));
    let mut x = b.like();
    assert_eq!(run(&singular, &mut x).outcome, Outcome::Stagnated);
}

/// R_i(u) = Σ_j A_ij u_j + s u_i³ − b_i, with an optional unsymmetric or indefinite part in A.
struct Cubic {
    a: Dense,
    s: f64,
    b: Vec<f64>,
    symmetric: bool,
    jacobian: Dense,
}

impl Cubic {
    fn new(a: Dense, s: f64, solution: &[f64], symmetric: bool) -> Self {
        let b = a.product(solution).iter().zip(solution).map(|(a, u)| a + s * u.powi(3)).collect();
        let jacobian = Dense::new(a.n, |_, _| 0.0);
        Self { a, s, b, symmetric, jacobian }
    }
}

impl NonlinearSystem for Cubic {
    fn size(&self) -> usize {
        self.a.n
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        let u = u.to_vec();
        let linear = self.a.product(&u);
        let values: Vec<f64> =
            (0..u.len()).map(|i| linear[i] + self.s * u[i].powi(3) - self.b[i]).collect();
        r.set(&values);
        Ok(())
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        let (u, a, s) = (u.to_vec(), &self.a, self.s);
        self.jacobian = Dense::new(a.n, |i, j| {
            a.entries[i * a.n + j] + if i == j { 3.0 * s * u[i] * u[i] } else { 0.0 }
        });
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        &self.jacobian
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        let n = self.a.n;
        let entries: Vec<f64> = (0..n).map(|i| self.jacobian.entries[i * n + i]).collect();
        diagonal.set(&entries);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        self.symmetric
    }
}

fn solve(system: &mut Cubic, u: &mut Vector, settings: NewtonOptions) -> Report {
    newton(system, u, settings, &mut silent, &mut silent).expect("applies")
}

#[test]
fn newton_converges_faster_than_linearly() {
    let solution = wave(30);
    let mut system = Cubic::new(stiff(30), 500.0, &solution, true);
    for forcing in [Forcing::default(), Forcing::Fixed(1e-10)] {
        let mut u = Vector::zeros(30, Precision::F64);
        let settings = NewtonOptions { forcing, rtol: 1e-12, ..NewtonOptions::default() };
        let result = solve(&mut system, &mut u, settings);
        let (history, steps) = (result.history.clone(), result.newton.clone());
        result.converged().expect("converges");
        assert!(error(&u, &solution) < 1e-9);
        assert!(steps.iter().all(|step| step.solver == "cg"));
        if forcing == Forcing::Fixed(1e-10) {
            let n = history.len();
            let (a, b, c) = (history[n - 4], history[n - 3], history[n - 2]);
            let order = (c / b).ln() / (b / a).ln();
            assert!(order > 1.6, "order {order} in {history:?}");
        }
    }
}

#[test]
fn newton_falls_back_on_gmres_where_curvature_is_negative() {
    let solution = wave(20);
    let shifted = Dense::new(20, |i, j| {
        if i == j { [4.0, -3.0][i % 2] } else { 0.1 / (1.0 + i.abs_diff(j) as f64) }
    });
    let mut system = Cubic::new(shifted, 0.05, &solution, true);
    let mut u = Vector::zeros(20, Precision::F64);
    let result = solve(&mut system, &mut u, NewtonOptions::default());
    assert_eq!(result.newton.last().expect("has steps").solver, "gmres");
    result.converged().expect("converges");
    assert!(error(&u, &solution) < 1e-8);
}

/// atan: full Newton steps from 3 diverge; a line search prevents that.
struct Arctangent {
    slope: Dense,
}

impl NonlinearSystem for Arctangent {
    fn size(&self) -> usize {
        1
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        r.set_entry(0, u.get(0).atan());
        Ok(())
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.slope = Dense::new(1, |_, _| 1.0 / (1.0 + u.get(0) * u.get(0)));
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        &self.slope
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        diagonal.set_entry(0, self.slope.entries[0]);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        true
    }
}

#[test]
fn the_line_search_saves_steps_that_are_too_long() {
    let run = |line_search| {
        let mut u = Vector::from_slice(&[3.0], Precision::F64);
        let mut system = Arctangent { slope: Dense::new(1, |_, _| 1.0) };
        let settings = NewtonOptions {
            line_search,
            atol: 1e-12,
            max_iterations: 30,
            forcing: Forcing::Fixed(1e-12),
            ..NewtonOptions::default()
        };
        let result = newton(&mut system, &mut u, settings, &mut silent, &mut silent);
        (result.expect("applies"), u.get(0))
    };
    let (result, u) = run(true);
    assert!(result.newton.iter().any(|step| step.backtracks > 0));
    result.converged().expect("converges");
    assert!(u.abs() < 1e-11);
    assert_ne!(run(false).0.outcome, Outcome::Converged);
}

/// u² + 1 has no root, and its derivative vanishes at its minimum.
struct NoRoot {
    slope: Dense,
    broken: bool,
}

impl NonlinearSystem for NoRoot {
    fn size(&self) -> usize {
        1
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        r.set_entry(0, if self.broken { f64::NAN } else { u.get(0) * u.get(0) + 1.0 });
        Ok(())
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.slope = Dense::new(1, |_, _| 2.0 * u.get(0));
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        &self.slope
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        diagonal.set_entry(0, 2.0);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        false
    }
}

#[test]
fn newton_admits_failure() {
    let run = |broken| {
        let mut u = Vector::from_slice(&[1.0], Precision::F64);
        let mut system = NoRoot { slope: Dense::new(1, |_, _| 1.0), broken };
        let result =
            newton(&mut system, &mut u, NewtonOptions::default(), &mut silent, &mut silent);
        result.expect("applies")
    };
    assert_eq!(run(true).outcome, Outcome::NotFinite);
    let report = run(false);
    assert_ne!(report.outcome, Outcome::Converged);
    assert!(report.converged().is_err());
}

#[test]
fn an_affine_system_takes_one_linear_solve() {
    let solution = wave(25);
    for symmetric in [true, false] {
        let mut system = Cubic::new(stiff(25), 0.0, &solution, symmetric);
        let mut u = Vector::from_slice(&[0.5; 25], Precision::F64);
        let settings = CgSettings { rtol: 1e-12, ..CgSettings::default() };
        let report =
            solve_affine(&mut system, &mut u, settings, LinearOptions::default(), &mut silent);
        let report = report.expect("applies").converged().expect("converges");
        assert_eq!(report.solver, if symmetric { "cg" } else { "gmres" });
        assert!(error(&u, &solution) < 1e-9);
    }
}
