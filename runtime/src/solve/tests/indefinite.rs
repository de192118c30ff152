//! MINRES, direct solver and load steps: symmetric indefinite systems, and systems with a load.

use super::*;

/// Returns a chain of springs with constraints: no diagonal in the last rows.
fn saddle(n: usize, m: usize) -> Dense {
    let stiff = stiff(n);
    Dense::new(n + m, |i, j| match (i < n, j < n) {
        (true, true) => stiff.entries[i * n + j],
        (false, false) => 0.0,
        _ => {
            let (unknown, row) = (i.min(j), i.max(j) - n);
            let along = unknown as f64 - (row * n / m) as f64;
            if (0.0..3.0).contains(&along) { 30.0 * (1.0 + along) } else { 0.0 }
        }
    })
}

fn residual(a: &Dense, b: &Vector, x: &Vector) -> f64 {
    let mut r = b.like();
    a.apply(x, &mut r).expect("applies");
    r.axpby(1.0, b, -1.0);
    r.norm()
}

#[test]
fn minres_solves_indefinite_systems_and_reports_true_residuals() {
    let a = saddle(45, 15);
    let expected = wave(60);
    let b = Vector::from_slice(&a.product(&expected), Precision::F64);
    let mut jacobi: Vec<f64> = (0..45).map(|i| 1.0 / a.entries[i * 60 + i]).collect();
    jacobi.resize(60, 0.2);
    let jacobi = Vector::from_slice(&jacobi, Precision::F64);
    for preconditioner in [Preconditioner::Identity, Preconditioner::Jacobi(&jacobi)] {
        // The recurrence residual equals the true one in every iteration.
        for limit in [1, 2, 5, 20] {
            let mut x = b.like();
            let settings = CgSettings { max_iterations: limit, ..CgSettings::default() };
            let report = minres(&a, &b, &mut x, preconditioner, settings, &mut silent);
            let report = report.expect("applies");
            assert_eq!((report.outcome, report.iterations), (Outcome::IterationLimit, limit));
            let (said, is) = (report.residual(), residual(&a, &b, &x));
            assert!((said - is).abs() < 1e-10 * b.norm(), "{limit}: {said} and {is}");
        }
        let mut x = b.like();
        let settings = CgSettings { rtol: 1e-12, ..CgSettings::default() };
        let report = minres(&a, &b, &mut x, preconditioner, settings, &mut silent);
        let report = report.expect("applies").converged().expect("converges");
        assert!(error(&x, &expected) < 1e-8, "{}", error(&x, &expected));
        assert!(residual(&a, &b, &x) <= 1e-12 * b.norm());
        assert_eq!(report.history.len(), report.iterations + 1);
    }
}

#[test]
fn minres_names_what_is_wrong_with_a_system() {
    let run = |a: &Dense, b: &[f64], inverse: &[f64]| {
        let (b, inverse) = (Vector::from_slice(b, Precision::F64), inverse.to_vec());
        let inverse = Vector::from_slice(&inverse, Precision::F64);
        let mut x = b.like();
        let jacobi = Preconditioner::Jacobi(&inverse);
        minres(a, &b, &mut x, jacobi, CgSettings::default(), &mut silent).expect("applies").outcome
    };
    let fine = stiff(4);
    assert!(matches!(run(&fine, &wave(4), &[-1.0; 4]), Outcome::Indefinite { .. }));
    assert_eq!(run(&fine, &[0.0; 4], &[1.0; 4]), Outcome::Converged);
    let broken = Dense::new(4, |_, _| f64::NAN);
    assert_eq!(run(&broken, &wave(4), &[1.0; 4]), Outcome::NotFinite);
    // Singular: solved if consistent, otherwise reported as stagnated.
    let singular = Dense::new(4, |i, j| if i == j { i as f64 } else { 0.0 });
    assert_eq!(run(&singular, &[0.0, 1.0, 1.0, 2.0], &[1.0; 4]), Outcome::Converged);
    assert_eq!(run(&singular, &[1.0, 1.0, 1.0, 2.0], &[1.0; 4]), Outcome::Stagnated);
}

/// A system with a full matrix.
struct Coupled(Cubic);

impl NonlinearSystem for Coupled {
    fn size(&self) -> usize {
        self.0.size()
    }
    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.0.residual(u, r)
    }
    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.0.linearise(u)
    }
    fn jacobian(&self) -> &dyn LinearOperator {
        self.0.jacobian()
    }
    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.0.diagonal(diagonal)
    }
    fn symmetric(&self) -> bool {
        self.0.symmetric
    }
    fn coupling(&self) -> Option<Coupling> {
        Some(Coupling::full(self.0.size()))
    }
}

/// Returns a linear system with a full matrix and a known solution.
pub(super) fn coupled(a: Dense, solution: &[f64]) -> impl NonlinearSystem {
    Coupled(Cubic::new(a, 0.0, solution, true))
}

fn linear(solver: InnerSolver) -> LinearOptions {
    LinearOptions { solver, restart: 60, ..LinearOptions::default() }
}

#[test]
fn every_linear_solver_solves_a_saddle_point() {
    let solution = wave(60);
    for solver in [InnerSolver::Minres, InnerSolver::Gmres, InnerSolver::Direct] {
        let mut system = Coupled(Cubic::new(saddle(45, 15), 0.0, &solution, true));
        let mut u = Vector::from_slice(&[0.5; 60], Precision::F64);
        let settings = CgSettings { rtol: 1e-12, ..CgSettings::default() };
        let report = solve_affine(&mut system, &mut u, settings, linear(solver), &mut silent);
        let report = report.expect("applies").converged().expect("converges");
        assert!(error(&u, &solution) < 1e-8, "{}: {}", report.solver, error(&u, &solution));
    }
}

#[test]
fn newton_by_factors_is_newton() {
    let solution = wave(30);
    let mut system = Coupled(Cubic::new(stiff(30), 500.0, &solution, true));
    let mut u = Vector::zeros(30, Precision::F64);
    let settings =
        NewtonOptions { linear: linear(InnerSolver::Direct), ..NewtonOptions::default() };
    let result = newton(&mut system, &mut u, settings, &mut silent, &mut silent);
    let result = result.expect("applies");
    assert!(result.newton.iter().all(|step| step.solver == "direct"));
    result.converged().expect("converges");
    assert!(error(&u, &solution) < 1e-9);
}

#[test]
fn factors_say_where_a_system_is_singular() {
    let neumann = |i: usize, j: usize| match i.abs_diff(j) {
        0 => 1.0 + f64::from(u8::from(i > 0 && i < 19)),
        1 => -1.0,
        _ => 0.0,
    };
    for symmetric in [true, false] {
        let mut system = Coupled(Cubic::new(Dense::new(20, neumann), 0.0, &[0.0; 20], symmetric));
        system.0.b = wave(20);
        let mut u = Vector::zeros(20, Precision::F64);
        let linear = linear(InnerSolver::Direct);
        let settings = CgSettings::default();
        let report = solve_affine(&mut system, &mut u, settings, linear, &mut silent);
        let report = report.expect("applies");
        assert!(matches!(report.outcome, Outcome::Singular { .. }), "{:?}", report.outcome);
        assert!(report.converged().expect_err("singular").to_string().contains("mean"));
    }
    // No pattern, no factors.
    let mut system = Cubic::new(stiff(5), 0.0, &wave(5), true);
    let mut u = Vector::zeros(5, Precision::F64);
    let linear = linear(InnerSolver::Direct);
    assert!(solve_affine(&mut system, &mut u, CgSettings::default(), linear, &mut silent).is_err());
}

/// A hardening spring, atan(u_1 − u_0) = s f, on a moving support u_0.
struct Spring {
    s: f64,
    f: f64,
    /// Position of the support as a function of the load.
    support: fn(f64) -> f64,
    u: [f64; 2],
    jacobian: Dense,
    /// Load factors of all residual evaluations.
    asked: std::cell::RefCell<Vec<f64>>,
}

impl NonlinearSystem for Spring {
    fn size(&self) -> usize {
        2
    }
    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.asked.borrow_mut().push(self.s);
        r.set(&[0.0, (u.get(1) - u.get(0)).atan() - self.s * self.f]);
        Ok(())
    }
    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.u = [u.get(0), u.get(1)];
        let slope = 1.0 / (1.0 + (self.u[1] - self.u[0]).powi(2));
        self.jacobian = Dense::new(2, |i, j| f64::from(u8::from(i == j)) * [1.0, slope][i]);
        Ok(())
    }
    fn jacobian(&self) -> &dyn LinearOperator {
        &self.jacobian
    }
    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        diagonal.set(&[1.0, self.jacobian.entries[3]]);
        Ok(())
    }
    fn symmetric(&self) -> bool {
        true
    }
}

impl LoadableSystem for Spring {
    fn set_load(&mut self, s: f64, boundary: &mut Vector) -> Result<(), OperatorError> {
        self.s = s;
        boundary.set(&[(self.support)(s), 0.0]);
        Ok(())
    }
}

fn spring(f: f64, support: fn(f64) -> f64) -> Spring {
    let asked = std::cell::RefCell::default();
    Spring { s: f64::NAN, f, support, u: [0.0; 2], jacobian: Dense::new(2, |_, _| 0.0), asked }
}

#[test]
fn load_steps_follow_the_boundary_and_the_parameter() {
    let mut system = spring(1.5, |s| 4.0 * s);
    let mut u = Vector::from_slice(&[4.0, 0.0], Precision::F64);
    let settings = NewtonOptions { line_search: false, ..NewtonOptions::default() };
    let mut seen = Vec::new();
    let result = newton_in_load_steps(
        &mut system,
        &mut u,
        10,
        settings,
        &mut |progress| {
            seen.push(progress.iteration);
            Continue::Yes
        },
        &mut silent,
    );
    let result = result.expect("applies");
    assert_eq!((result.solved, result.newton.outcome), (10, Outcome::Converged));
    assert!(result.halved.is_empty());
    assert!((u.get(0) - 4.0).abs() < 1e-12 && (u.get(1) - 4.0 - 1.5f64.tan()).abs() < 1e-8);
    // One entry per step, numbered consecutively.
    let report = &result.newton;
    assert_eq!(seen, (1..=report.iterations).collect::<Vec<_>>());
    assert_eq!(report.history.len(), report.iterations + 1);
    // Every load is visited, from 0.
    let asked = system.asked.borrow();
    for step in 0..=10 {
        assert!(asked.iter().any(|s| (s - f64::from(step) / 10.0).abs() < 1e-14), "{step}");
    }
}

#[test]
fn a_load_that_cannot_be_borne_says_in_which_step() {
    // atan stays below π/2, which 2 s reaches.
    let mut system = spring(2.0, |_| 0.0);
    let mut u = Vector::zeros(2, Precision::F64);
    let settings = NewtonOptions { max_iterations: 20, ..NewtonOptions::default() };
    let result = newton_in_load_steps(&mut system, &mut u, 8, settings, &mut silent, &mut silent);
    let result = result.expect("applies");
    assert_eq!(result.solved, 6);
    assert_ne!(result.newton.outcome, Outcome::Converged);
    assert_eq!(result.halved, [7], "halved before it is given up");
}

#[test]
fn load_steps_take_the_boundary_values_of_each_load() {
    // The support moves back and forth and ends where it began. An unloaded spring follows at once.
    let mut system = spring(0.0, |s| 4.0 * (std::f64::consts::PI * s).sin());
    let mut u = Vector::from_slice(&[4.0 * std::f64::consts::PI.sin(), 1e-3], Precision::F64);
    let mut supports = Vec::new();
    let settings = NewtonOptions { atol: 1e-12, ..NewtonOptions::default() };
    let solved = newton_in_load_steps(
        &mut system,
        &mut u,
        4,
        settings,
        &mut |_| {
            supports.push(());
            Continue::Yes
        },
        &mut silent,
    );
    assert_eq!(solved.expect("applies").solved, 4);
    assert!(u.get(0).abs() < 1e-12 && u.get(1).abs() < 1e-8, "{u:?}");
    // The predictor yields the solution, except in the first step, whose start is perturbed.
    assert!(supports.len() <= 4, "{} steps", supports.len());
}

#[test]
fn a_load_step_that_fails_is_halved() {
    // Newton's method diverges on atan from afar, where the tangent of a whole step ends.
    let mut system = spring(1.5, |s| 4.0 * s);
    let mut u = Vector::from_slice(&[4.0, 0.0], Precision::F64);
    let settings =
        NewtonOptions { line_search: false, max_iterations: 6, ..NewtonOptions::default() };
    let solved = newton_in_load_steps(&mut system, &mut u, 2, settings, &mut silent, &mut silent);
    let solved = solved.expect("applies");
    assert_eq!((solved.solved, solved.newton.outcome), (2, Outcome::Converged));
    assert_eq!(solved.halved, [2]);
    assert!((u.get(0) - 4.0).abs() < 1e-12 && (u.get(1) - 4.0 - 1.5f64.tan()).abs() < 1e-8);
}
