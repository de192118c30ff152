//! Smoothed aggregation as a preconditioner: nearly constant iteration counts, symmetry, constraints, rejected
//! matrices.

#[path = "aggregation/matrices.rs"]
mod matrices;

use super::devices;
use matrices::{Physics, Simplices, grid, noise, simplices};
use runtime::algebra::aggregation::{
    Aggregation, AggregationError, CoarsestSolver, Settings, constants, rigid_body_modes,
};
use runtime::algebra::sparse::Csr;
use runtime::algebra::vector::{Precision, Vector};
use runtime::solve::{
    CgSettings, LinearOperator, OperatorError, Outcome, Preconditioner, cg, silent,
};

/// A matrix as an operator.
struct Matrix<'a>(&'a Csr);

impl LinearOperator for Matrix<'_> {
    fn size(&self) -> usize {
        self.0.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let mut product = vec![0.0; y.len()];
        self.0.apply(&x.to_vec(), &mut product);
        y.set(&product);
        Ok(())
    }
}

fn levels(matrix: &Csr, blocks: usize, near_null: &[Vec<f64>]) -> Aggregation {
    Aggregation::new(matrix.clone(), blocks, near_null, &Settings::default()).expect("levels")
}

/// Returns the number of CG iterations to a tolerance of 1e-8.
fn iterations(matrix: &Csr, by: &Aggregation, b: &[f64]) -> usize {
    let b = Vector::from_slice(b, Precision::F64);
    let mut x = b.like();
    let settings = CgSettings { rtol: 1e-8, max_iterations: 200, ..CgSettings::default() };
    let by = Preconditioner::Operator(by);
    let report = cg(&Matrix(matrix), &b, &mut x, by, settings, &mut silent).expect("a solve");
    assert_eq!(report.outcome, Outcome::Converged);
    report.iterations
}

/// Returns a right-hand side with low and high frequencies; 0 at constrained entries.
fn load(n: usize, fixed: &[bool]) -> Vec<f64> {
    let held = |i: usize| fixed.get(i).is_some_and(|fixed| *fixed);
    let of = |(i, noise)| if held(i) { 0.0 } else { 1.0 + 0.5 * noise };
    noise(n, 3).into_iter().enumerate().map(of).collect()
}

/// Returns the iterations and the operator complexity of a scalar problem.
fn scalar(matrix: &Csr, fixed: &[bool]) -> (usize, f64) {
    let by = levels(matrix, 1, &constants(matrix.size(), 1, fixed));
    let found = iterations(matrix, &by, &load(matrix.size(), fixed));
    (found, by.figures().operator_complexity())
}

/// Asserts a bound of the iterations, and an operator complexity below 2.5.
fn at_most(name: &str, most: usize, found: (usize, f64)) {
    assert!(found.0 <= most, "{name}: {} iterations, {most} expected", found.0);
    assert!(found.1 < 2.5, "{name}: operator complexity {}", found.1);
}

#[test]
fn iterations_of_diffusion_hardly_grow() {
    for (dim, n, most) in
        [(2, 32, 8), (2, 100, 9), (2, 316, 11), (3, 10, 8), (3, 22, 9), (3, 46, 11)]
    {
        let matrix = grid(dim, n, true, |_, _| 1.0);
        at_most(&format!("{n}^{dim} nodes"), most, scalar(&matrix, &[]));
    }
    for (dim, n, most) in [(2, 30, 11), (2, 100, 13), (2, 300, 15), (3, 10, 11), (3, 22, 13)] {
        let Simplices { matrix, fixed, .. } = simplices(dim, n, [1; 3], Physics::Diffusion);
        at_most(&format!("simplices of {n}^{dim} cells"), most, scalar(&matrix, &fixed));
    }
}

#[test]
fn iterations_with_unequal_coefficients_hardly_grow() {
    for weak in [1e-2, 1e-4] {
        for (n, most) in [(32, 8), (100, 10), (200, 13)] {
            let matrix = grid(2, n, true, |axis, _| if axis == 0 { 1.0 } else { weak });
            at_most(&format!("{n}² nodes, {weak} across"), most, scalar(&matrix, &[]));
        }
        let matrix = grid(3, 22, true, |axis, _| if axis == 2 { weak } else { 1.0 });
        at_most(&format!("22³ nodes, {weak} across"), 10, scalar(&matrix, &[]));
    }
    // Checkerboard coefficients: 8 fields per direction, 4 in three dimensions.
    for (dim, n, fields, most) in [(2, 32, 8, 13), (2, 100, 8, 15), (2, 200, 8, 22), (3, 22, 4, 14)]
    {
        let odd = |at: [usize; 3]| at.iter().map(|x| x * fields / n).sum::<usize>() % 2 == 1;
        let matrix = grid(dim, n, true, |_, at| if odd(at) { 1e4 } else { 1.0 });
        at_most(&format!("{n}^{dim} nodes, a board"), most, scalar(&matrix, &[]));
    }
}

#[test]
fn rigid_body_modes_solve_elasticity_in_fewer_iterations() {
    for (dim, n, size, most, constants_least) in [
        (2, 22, [1, 1, 1], 18, 22),
        (2, 70, [1, 1, 1], 22, 30),
        (2, 25, [8, 1, 1], 24, 48),
        (3, 6, [1, 1, 1], 13, 16),
        (3, 12, [1, 1, 1], 15, 21),
        (3, 8, [4, 1, 1], 18, 40),
    ] {
        let Simplices { matrix, points, fixed } = simplices(dim, n, size, Physics::Elasticity);
        let b = load(matrix.size(), &fixed);
        let by = levels(&matrix, dim, &rigid_body_modes(dim, &points, &fixed));
        let name = format!("{n} cells a unit of {size:?}");
        at_most(&name, most, (iterations(&matrix, &by, &b), by.figures().operator_complexity()));
        let by = levels(&matrix, dim, &constants(points.len(), dim, &fixed));
        let found = iterations(&matrix, &by, &b);
        assert!(found >= constants_least, "{name}: constants alone take {found}");
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn applied(by: &Aggregation, b: &[f64]) -> Vec<f64> {
    let mut x = vec![f64::NAN; b.len()];
    by.apply(b, &mut x).expect("a cycle");
    x
}

#[test]
fn the_cycle_is_symmetric_and_positive() {
    let Simplices { matrix, points, fixed } = simplices(2, 60, [1; 3], Physics::Elasticity);
    let by = levels(&matrix, 2, &rigid_body_modes(2, &points, &fixed));
    assert!(by.levels().len() > 1 && matches!(by.bottom(), CoarsestSolver::Dense(_)));
    for seed in 1..4 {
        let (x, y) = (noise(matrix.size(), seed), noise(matrix.size(), seed + 10));
        let (mx, my) = (applied(&by, &x), applied(&by, &y));
        let scale = dot(&x, &mx).sqrt() * dot(&y, &my).sqrt();
        assert!((dot(&x, &my) - dot(&y, &mx)).abs() < 1e-12 * scale);
        assert!(dot(&x, &mx) > 0.0);
    }
}

#[test]
fn coarse_matrices_are_galerkins() {
    let Simplices { matrix, points, fixed } = simplices(2, 60, [1; 3], Physics::Elasticity);
    let by = levels(&matrix, 2, &rigid_body_modes(2, &points, &fixed));
    let [first, second, ..] = by.levels() else { panic!("two levels") };
    let coarse = noise(second.matrix.size(), 7);
    let (mut fine, mut image) = (vec![0.0; matrix.size()], vec![0.0; matrix.size()]);
    let (mut wanted, mut found) = (coarse.clone(), coarse.clone());
    first.prolongator.apply(&coarse, &mut fine);
    matrix.apply(&fine, &mut image);
    first.restrictor.apply(&image, &mut wanted);
    second.matrix.apply(&coarse, &mut found);
    let most = wanted.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let error = wanted.iter().zip(&found).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    assert!(error < 1e-13 * most, "{error} of {most}");
    for level in by.levels() {
        let columns = |row: usize| level.matrix.row(row).map(|entry| entry.0).collect::<Vec<_>>();
        assert!((0..level.matrix.size()).all(|row| columns(row).is_sorted()));
    }
    assert_eq!(by.figures().levels[1], (second.matrix.size(), second.matrix.values.len()));
    assert!(by.figures().bytes > 12 * matrix.values.len());
    assert!(by.figures().grid_complexity() > 1.05 && by.figures().grid_complexity() < 1.5);
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    let Simplices { matrix, points, fixed } = simplices(3, 14, [1; 3], Physics::Elasticity);
    let near_null = rigid_body_modes(3, &points, &fixed);
    let b = load(matrix.size(), &fixed);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let by = levels(&matrix, 3, &near_null);
            let x = applied(&by, &b);
            (by.levels().iter().map(|level| level.matrix.clone()).collect::<Vec<_>>(), x)
        })
    };
    let (one, two) = (with(1), with(2));
    assert!(one.0 == two.0 && one.1 == two.1);
}

#[test]
fn a_problem_whose_constants_nothing_holds_is_solved() {
    for (dim, n, most) in [(2, 32, 8), (2, 100, 9), (3, 22, 10)] {
        let matrix = grid(dim, n, false, |_, _| 1.0);
        let by = levels(&matrix, 1, &constants(matrix.size(), 1, &[]));
        let CoarsestSolver::Dense(factors) = by.bottom() else { panic!("factors") };
        assert_eq!(factors.left_out(), 1);
        let mut b = load(matrix.size(), &[]);
        let mean = b.iter().sum::<f64>() / b.len() as f64;
        b.iter_mut().for_each(|b| *b -= mean);
        let found = iterations(&matrix, &by, &b);
        assert!(found <= most, "{n}^{dim}: {found}");
    }
}

#[test]
fn fixed_unknowns_are_left_alone() {
    let Simplices { matrix, points, fixed } = simplices(2, 40, [1; 3], Physics::Diffusion);
    // Without information on constraints: rows of the identity are detected.
    let by = levels(&matrix, 1, &constants(points.len(), 1, &[]));
    let level = &by.levels()[0];
    let held = || (0..fixed.len()).filter(|&i| fixed[i]);
    assert!(held().count() == 41 && held().all(|i| level.prolongator.row(i).next().is_none()));
    let x = applied(&by, &load(fixed.len(), &fixed));
    assert!(held().all(|i| x[i] == 0.0));
    let mut b = vec![0.0; fixed.len()];
    held().for_each(|i| b[i] = 1.0);
    let x = applied(&by, &b);
    assert!((0..fixed.len()).all(|i| if fixed[i] { x[i] > 0.0 } else { x[i] == 0.0 }));
}

#[test]
fn a_matrix_that_is_nearly_its_diagonal_ends_where_it_is() {
    let n = 40;
    let mut matrix = grid(2, n, true, |_, _| 1e-4);
    for row in 0..n * n {
        let at = (matrix.starts[row]..matrix.starts[row + 1])
            .find(|&at| matrix.columns[at] as usize == row)
            .expect("a diagonal");
        matrix.values[at] += 1.0;
    }
    let by = levels(&matrix, 1, &constants(n * n, 1, &[]));
    assert!(by.levels().is_empty() && matches!(by.bottom(), CoarsestSolver::Smoothed { .. }));
    assert!(iterations(&matrix, &by, &load(n * n, &[])) <= 8);
}

#[test]
fn vectors_in_single_precision_are_taken() {
    let matrix = grid(2, 40, true, |_, _| 1.0);
    let by = levels(&matrix, 1, &constants(1600, 1, &[]));
    let b = load(1600, &[]);
    let mut single = Vector::zeros(1600, Precision::F32);
    let rounded = Vector::from_slice(&b, Precision::F32);
    LinearOperator::apply(&by, &rounded, &mut single).expect("a cycle");
    let wanted = applied(&by, &rounded.to_vec());
    assert!(single.to_vec().iter().zip(&wanted).all(|(a, b)| *a == f64::from(*b as f32)));
}

#[test]
fn what_is_no_such_matrix_is_refused_with_its_row() {
    let good = grid(2, 30, true, |_, _| 1.0);
    let ones = constants(900, 1, &[]);
    let refused = |change: &dyn Fn(&mut Csr)| {
        let mut matrix = good.clone();
        change(&mut matrix);
        let made = Aggregation::new(matrix, 1, &ones, &Settings::default());
        made.err().expect("no levels")
    };
    let diagonal = |row: usize| {
        let range = good.starts[row]..good.starts[row + 1];
        range.clone().find(|&at| good.columns[at] as usize == row).expect("a diagonal")
    };
    let wrong = AggregationError::NotPositive { row: 100, value: -1.0 };
    assert_eq!(refused(&|matrix| matrix.values[diagonal(100)] = -1.0), wrong);
    assert!(wrong.to_string().contains("row 100"));
    let wrong = AggregationError::NotFinite { row: 7 };
    assert_eq!(refused(&|matrix| matrix.values[diagonal(7) + 1] = f64::NAN), wrong);
    let wrong = AggregationError::NotSymmetric { row: 7, column: 8 };
    assert_eq!(refused(&|matrix| matrix.values[diagonal(7) + 1] = -0.5), wrong);
    let wrong = AggregationError::Columns { row: 899 };
    assert_eq!(refused(&|matrix| matrix.columns[diagonal(899)] = 900), wrong);
    let made = |blocks, near_null: &[Vec<f64>], settings: &Settings| {
        Aggregation::new(good.clone(), blocks, near_null, settings).err().expect("no levels")
    };
    let settings = Settings::default();
    let wrong = AggregationError::Blocks { unknowns: 900, blocks: 7 };
    assert_eq!(made(7, &ones, &settings), wrong);
    assert_eq!(made(1, &[], &settings), AggregationError::NearNull { vector: 0 });
    let short = [ones[0].clone(), vec![1.0; 3]];
    assert_eq!(made(1, &short, &settings), AggregationError::NearNull { vector: 1 });
    let wrong = AggregationError::Setting { setting: "steps" };
    assert_eq!(made(1, &ones, &Settings { steps: 0, ..settings }), wrong);
}

/// Cycles of levels on a device agree with the host for any layout.
#[test]
fn levels_of_matrices_on_a_device_do_what_they_do_here() {
    use runtime::device::{Arithmetic, VectorLayout};
    use runtime::problem::multigrid::matrices::on_device;
    use std::sync::Arc;

    let settings = Settings { coarsest: 40, ..Settings::default() };
    let plain = grid(2, 40, true, |_, _| 1.0);
    let body = simplices(2, 12, [1, 1, 1], Physics::Elasticity);
    let modes = rigid_body_modes(2, &body.points, &body.fixed);
    let ones = vec![vec![1.0; plain.size()]];
    for device in devices::devices() {
        for (matrix, blocks, near_null) in [(&plain, 1, &ones), (&body.matrix, 2, &modes)] {
            let n = matrix.size();
            let made = Aggregation::new(matrix.clone(), blocks, near_null, &settings);
            let made = made.expect("levels");
            assert!(made.levels().len() > 1, "{}", made.levels().len());
            assert!(on_device(&made, &Vector::zeros(n, Precision::F64)).expect("none").is_none());
            let (b, mut wanted) = (noise(n, 5), vec![0.0; n]);
            made.apply(&b, &mut wanted).expect("a cycle");
            let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            for (precision, bound) in [(Precision::F64, 1e-12), (Precision::F32, 1e-4)] {
                for layout in [VectorLayout::plain(blocks), VectorLayout::tiles(blocks)] {
                    let device = Arc::clone(&device);
                    let arithmetic = Arithmetic::with_layout(device, precision, layout);
                    let mut x = Vector::on_device(n, &arithmetic.expect("kernels"));
                    let levels = on_device(&made, &x).expect("a device").expect("levels there");
                    let mut r = x.like();
                    r.set(&b);
                    // The old contents are overwritten.
                    for _ in 0..2 {
                        levels.apply(&r, &mut x).expect("a cycle there");
                    }
                    for (a, b) in x.to_vec().iter().zip(&wanted) {
                        assert!((a - b).abs() <= bound * most, "{precision:?}: {a} and {b}");
                    }
                }
            }
        }
    }
}
