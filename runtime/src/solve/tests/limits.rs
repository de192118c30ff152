//! Limits of a solve: rounding error, the range of numbers, and settings, but not a temporarily growing residual.

use super::*;

/// A beam of n nodes, clamped at one end: Dᵀ D with the second difference D. Its condition number grows with n⁴.
struct Beam {
    n: usize,
    /// Factor of all entries.
    unit: f64,
}

impl Beam {
    fn new(n: usize) -> Self {
        Self { n, unit: 1.0 }
    }

    fn product(&self, x: &[f64]) -> Vec<f64> {
        let at = |x: &[f64], i: usize| x.get(i).copied().unwrap_or(0.0);
        let before = |i: usize, k: usize| if i >= k { x[i - k] } else { 0.0 };
        let bent: Vec<f64> =
            (0..self.n).map(|i| before(i, 2) - 2.0 * before(i, 1) + x[i]).collect();
        let row = |i: usize| bent[i] - 2.0 * at(&bent, i + 1) + at(&bent, i + 2);
        (0..self.n).map(|i| self.unit * row(i)).collect()
    }

    fn inverse_diagonal(&self, precision: Precision) -> Vector {
        let terms = |i: usize| match self.n - 1 - i {
            0 => 1.0,
            1 => 5.0,
            _ => 6.0,
        };
        let entries: Vec<f64> = (0..self.n).map(|i| 1.0 / (self.unit * terms(i))).collect();
        Vector::from_slice(&entries, precision)
    }

    /// Returns a load at the free end.
    fn load(&self, size: f64, precision: Precision) -> Vector {
        let mut b = Vector::zeros(self.n, precision);
        b.set_entry(self.n - 1, size);
        b
    }
}

impl LinearOperator for Beam {
    fn size(&self) -> usize {
        self.n
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        y.set(&self.product(&x.to_vec()));
        Ok(())
    }
}

fn solve(
    solver: &str,
    a: &dyn LinearOperator,
    b: &Vector,
    jacobi: &Vector,
    settings: CgSettings,
) -> Result<(Report, Vector), OperatorError> {
    let mut x = b.like();
    let jacobi = Preconditioner::Jacobi(jacobi);
    let report = match solver {
        "cg" => cg(a, b, &mut x, jacobi, settings, &mut silent),
        "minres" => minres(a, b, &mut x, jacobi, settings, &mut silent),
        "gmres" => {
            let CgSettings { rtol, atol, max_iterations, strict } = settings;
            let settings = GmresSettings { rtol, atol, max_iterations, restart: b.len(), strict };
            gmres(a, b, &mut x, jacobi, settings, &mut silent)
        }
        _ => {
            let mut direct = DirectSolver::new(Coupling::full(b.len()));
            direct.solve(a, b, &mut x, true, settings, &mut silent)
        }
    };
    Ok((report?, x))
}

fn true_residual(a: &dyn LinearOperator, b: &Vector, x: &Vector) -> f64 {
    let mut r = b.like();
    residual(a, b, x, &mut r).expect("applies")
}

const SOLVERS: [&str; 4] = ["cg", "minres", "gmres", "direct"];

#[test]
fn cg_goes_on_while_its_residual_grows() {
    let beam = Beam::new(400);
    let (b, jacobi) = (beam.load(1.0, Precision::F64), beam.inverse_diagonal(Precision::F64));
    let settings = CgSettings { rtol: 1e-4, max_iterations: 100_000, ..CgSettings::default() };
    let (report, x) = solve("cg", &beam, &b, &jacobi, settings).expect("applies");
    assert_eq!(report.outcome, Outcome::Converged, "{}", report.iterations);
    assert!(true_residual(&beam, &b, &x) <= 1e-4);
    // The smallest residual before the last ones is older than the patience.
    let before = report.history.iter().take(2500);
    assert!(report.iterations > 2500 && before.fold(f64::MAX, |a, &b| a.min(b)) > 0.01);
}

#[test]
fn no_tolerance_means_until_rounding_stops_it() {
    let beam = Beam::new(60);
    let (b, jacobi) = (beam.load(1.0, Precision::F64), beam.inverse_diagonal(Precision::F64));
    for solver in SOLVERS {
        let settings = CgSettings { rtol: 0.0, ..CgSettings::default() };
        let (report, x) = solve(solver, &beam, &b, &jacobi, settings).expect("applies");
        assert_eq!(report.outcome, Outcome::Rounding, "{solver}: {:?}", report.history.last());
        // The deflection of the end is the sum of squares, as D is triangular.
        let exact: f64 = (1..=60).map(|k| f64::from(k * k)).sum();
        assert!((x.get(59) / exact - 1.0).abs() < 1e-7, "{solver}: {}", x.get(59));
        let left = true_residual(&beam, &b, &x);
        assert!(left < 1e-8, "{solver}: {left}");
        assert!((report.residual() - left).abs() <= 1e-12, "{solver}: it reports the true one");
        assert!(report.converged().is_ok());
    }
}

#[test]
fn a_tolerance_below_rounding_is_said_to_be_one_where_it_must_be_reached() {
    let beam = Beam::new(60);
    let (b, jacobi) = (beam.load(1.0, Precision::F64), beam.inverse_diagonal(Precision::F64));
    for solver in SOLVERS {
        let settings = CgSettings { rtol: 1e-15, strict: true, ..CgSettings::default() };
        let (report, _) = solve(solver, &beam, &b, &jacobi, settings).expect("applies");
        assert_eq!(report.outcome, Outcome::BelowRounding, "{solver}");
        let said = report.converged().expect_err("not reached").to_string();
        assert!(said.contains("rounding leaves") && said.contains("help: "), "{said}");
        // A feasible mandatory tolerance is reached.
        let settings = CgSettings { rtol: 1e-8, ..settings };
        let (report, x) = solve(solver, &beam, &b, &jacobi, settings).expect("applies");
        assert_eq!(report.outcome, Outcome::Converged, "{solver}");
        assert!(true_residual(&beam, &b, &x) <= 1e-8);
    }
}

#[test]
fn loads_of_any_size_have_solutions_of_all_digits() {
    let (n, exact) = (30, (1..=30).map(|k| f64::from(k * k)).sum::<f64>());
    let sizes = [1e-300, 1e-200, 1e-160, 1.0, 1e160, 1e290];
    for solver in SOLVERS {
        for size in sizes {
            let beam = Beam::new(n);
            let (b, jacobi) =
                (beam.load(size, Precision::F64), beam.inverse_diagonal(Precision::F64));
            let (report, x) =
                solve(solver, &beam, &b, &jacobi, CgSettings::default()).expect("applies");
            let residual = report.residual();
            assert!(report.outcome.is_success(), "{solver}, {size}: {:?}", report.outcome);
            assert!(report.iterations > 0 && residual <= 1e-9 * size, "{solver}: {residual}");
            let error = x.get(n - 1) / size / exact - 1.0;
            assert!(error.abs() < 1e-7, "{solver}, {size}: {error}");
        }
        for size in [1e-30, 1.0, 1e30] {
            let beam = Beam::new(8);
            let (b, jacobi) =
                (beam.load(size, Precision::F32), beam.inverse_diagonal(Precision::F32));
            let (report, x) =
                solve(solver, &beam, &b, &jacobi, CgSettings::default()).expect("applies");
            assert!(report.outcome.is_success(), "{solver}, {size}: {:?}", report.outcome);
            let error = x.get(7) / f64::from(f32::from_f64(size)) / 204.0 - 1.0;
            assert!(error.abs() < 1e-2, "{solver}, {size} in single precision: {error}");
        }
    }
}

#[test]
fn numbers_that_leave_the_range_are_called_that() {
    for solver in SOLVERS {
        let outcome = |unit, size| {
            let beam = Beam { n: 20, unit };
            let (b, jacobi) =
                (beam.load(size, Precision::F64), beam.inverse_diagonal(Precision::F64));
            let solved = solve(solver, &beam, &b, &jacobi, CgSettings::default());
            solved.expect("applies").0
        };
        let over = outcome(1e-10, 1e305);
        assert_eq!(over.outcome, Outcome::Overflow, "{solver}");
        assert!(over.converged().expect_err("overflow").to_string().contains("overflows"));
        assert_eq!(outcome(1e30, 1e-303).outcome, Outcome::Underflow, "{solver}");
        assert_eq!(outcome(1.0, 1e-320).outcome, Outcome::Underflow, "{solver}");
    }
}

#[test]
fn settings_outside_of_their_ranges_are_refused() {
    let beam = Beam::new(5);
    let (b, jacobi) = (beam.load(1.0, Precision::F64), beam.inverse_diagonal(Precision::F64));
    let fine = CgSettings::default();
    let wrong = [
        (CgSettings { rtol: 1.0, ..fine }, "rtol"),
        (CgSettings { rtol: -1e-9, ..fine }, "rtol"),
        (CgSettings { rtol: f64::NAN, ..fine }, "rtol"),
        (CgSettings { atol: -1.0, ..fine }, "atol"),
        (CgSettings { atol: f64::INFINITY, ..fine }, "atol"),
        (CgSettings { max_iterations: 0, ..fine }, "max_iterations"),
    ];
    for (settings, name) in wrong {
        for solver in SOLVERS {
            let said = solve(solver, &beam, &b, &jacobi, settings).expect_err("refused");
            let said = said.to_string();
            assert!(said.contains(name) && said.contains("help: "), "{solver}: {said}");
        }
    }
    let refused = |settings: NewtonOptions| {
        let mut system = Cubic::new(stiff(5), 0.0, &wave(5), true);
        let mut u = Vector::zeros(5, Precision::F64);
        newton(&mut system, &mut u, settings, &mut silent, &mut silent).is_err()
    };
    let fine = NewtonOptions::default();
    assert!(!refused(fine));
    assert!(refused(NewtonOptions { rtol: 2.0, ..fine }));
    assert!(refused(NewtonOptions { max_iterations: 0, ..fine }));
    assert!(refused(NewtonOptions { max_inner: 0, ..fine }));
    assert!(refused(NewtonOptions { forcing: Forcing::Fixed(1.0), ..fine }));
    let restart = LinearOptions { restart: 0, ..LinearOptions::default() };
    assert!(refused(NewtonOptions { linear: restart, ..fine }));
}

#[test]
fn newton_solves_an_affine_system_in_a_step_and_stops_at_rounding() {
    let solution = wave(25);
    for (rtol, outcome) in [(1e-8, Outcome::Converged), (0.0, Outcome::Rounding)] {
        let mut system = Cubic::new(stiff(25), 0.0, &solution, true);
        let mut u = Vector::from_slice(&[0.5; 25], Precision::F64);
        let settings = NewtonOptions { forcing: Forcing::Target, rtol, ..NewtonOptions::default() };
        let report = super::solve(&mut system, &mut u, settings);
        assert_eq!(report.outcome, outcome, "{report:?}");
        assert!(report.iterations <= 2, "{report:?}");
        assert!(error(&u, &solution) < 1e-6);
    }
    // An initial residual at the rounding-error level.
    let mut system = Cubic::new(stiff(25), 500.0, &solution, true);
    let mut u = Vector::from_slice(&solution, Precision::F64);
    let report = super::solve(&mut system, &mut u, NewtonOptions::default());
    assert!(report.outcome.is_success(), "{report:?}");
}

/// CG reaches its limit, or finds no curvature, and the direct solver takes over.
#[test]
fn factors_take_over_where_iterations_fail() {
    let solution = wave(60);
    let mut system = indefinite::coupled(stiff(60), &solution);
    let mut u = Vector::zeros(60, Precision::F64);
    let after = DirectFallback::After { iterations: 5 };
    let linear = LinearOptions { factors: after, ..LinearOptions::default() };
    let settings = CgSettings { max_iterations: 20, ..CgSettings::default() };
    let report = solve_affine(&mut system, &mut u, settings, linear, &mut silent);
    let report = report.expect("applies");
    assert_eq!((report.solver, report.outcome), ("direct", Outcome::Converged));
    assert!(error(&u, &solution) < 1e-9);
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(note.contains("cg") && note.contains("after 5 iterations; direct"), "{note}");
    // Without permission it does not.
    let linear = LinearOptions { factors: DirectFallback::Never, ..linear };
    let report = solve_affine(&mut system, &mut u, settings, linear, &mut silent);
    assert_eq!(report.expect("applies").outcome, Outcome::IterationLimit);
}
