//! The assembled matrix agrees with the operator for every benchmark problem and geometry; too many elements for 32-bit
//! indices are rejected.

use fem_bench::assembly::measured;
use fem_bench::product::Machine;
use fem_bench::{BenchError, CASES, prepare};
use fem_dsl::problem::Argument;
use kernels_gen::plan::{Geometry, Linearisation};
use runtime::kernels::compile::{Execution, Target};
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::generate::generate;
use runtime::operator::assemble::Csr;
use runtime::operator::{BuildError, Operator};
use runtime::solve::LinearOperator;
use runtime::space::constraint::affine::{AffineConstraint, AffineConstraints};
use std::sync::Arc;

/// Returns affine constraints on every seventh degree of freedom: two terms, one dependent term, or none.
fn rows(n: usize) -> AffineConstraints {
    let row = |i: usize| match i / 7 % 3 {
        0 => {
            AffineConstraint::new(i).plus(0.5, i + 1).plus(-0.25, (i + n / 2) % (n - 9) / 7 * 7 + 2)
        }
        1 => AffineConstraint::new(i).plus(2.0, i - 7),
        _ => AffineConstraint::new(i),
    };
    let rows: Vec<AffineConstraint> = (0..n - 9).step_by(7).map(row).collect();
    let place = |unknown: usize| unknown.to_string();
    AffineConstraints::close(n, &rows, std::iter::empty(), place).expect("no circle")
}

/// Compares A x by the matrix and by the operator.
fn compare(operator: &Operator, what: &str) {
    let matrix = Csr::assemble(operator).expect("a matrix");
    let mut x = operator.vector();
    let entries: Vec<f64> = (0..x.len()).map(|i| (i as f64).sin()).collect();
    x.set(&entries);
    let mut y = operator.vector();
    operator.apply(&x, &mut y).expect("an action");
    let mut product = vec![0.0; entries.len()];
    matrix.apply(&entries, &mut product);
    let wanted = y.to_vec();
    let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    for (i, (a, b)) in product.iter().zip(&wanted).enumerate() {
        let error = (a - b).abs() / most;
        assert!(error < 1e-13, "{what}, row {i}: {a} and not {b}");
    }
}

#[test]
fn the_matrix_gives_what_the_operator_gives() {
    let geometries = [Geometry::Vertices, Geometry::Corners, Geometry::Stored];
    let mut compared = 0;
    for case in CASES {
        for degree in case.least..=2 {
            for geometry in geometries {
                if geometry == Geometry::Corners && degree > 1 {
                    continue;
                }
                let mut target = Target::native();
                target.execution = Execution::Interpreted;
                target.wishes.geometry = Some(geometry);
                target.wishes.linearisation = Some(Linearisation::Recompute);
                let mut prepared = prepare(&case, degree, 200, &target).expect("a small problem");
                let what = format!("{} p = {degree}, {geometry}", case.name);
                compare(&prepared.operator, &what);
                if geometry == geometries[0] {
                    prepared.operator.constrain(rows(prepared.operator.vector().len())).expect("C");
                    compare(&prepared.operator, &format!("{what}, constrained"));
                }
                compared += 1;
            }
        }
    }
    // Stokes starts at degree 2, without the corner geometry.
    assert_eq!(compared, 8 * 5 + 2);
}

/// With 9^6 elements per cell of degree 8, the number of elements exceeds 32-bit indices; the error reports it before
/// any is created.
#[test]
fn more_elements_than_indices_number_are_refused() {
    let numbers = [("dim", 3.0), ("cells", 21.0)];
    let numbers = numbers.map(|(name, value)| (name.to_owned(), Argument::Number(value)));
    let mesh = Arc::new(generate("box", &numbers.into_iter().collect()).expect("a mesh"));
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    for assembly in [Assembly::Pattern, Assembly::Owner] {
        let how = Representation::Assembled(assembly);
        let error = measured(&mesh, 8, how, &Machine::Processor(target)).expect_err("too many");
        let BenchError::Build(BuildError::TooManyNumbers { numbers }) = error else {
            panic!("{error}, {assembly}")
        };
        assert!(numbers >= 9_usize.pow(6) * 21_usize.pow(3), "{numbers}");
        assert!(numbers > u32::MAX as usize && error.to_string().contains(&numbers.to_string()));
    }
}
