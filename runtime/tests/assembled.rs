//! The assembled matrix is the operator: every problem of the bench, however its kernel comes to the
//! map of a cell.

use kernels_gen::plan::{Geometry, Linearisation};
use runtime::assemble::Csr;
use runtime::bench::{CASES, prepare};
use runtime::compile::{Execution, Target};
use runtime::solve::LinearOperator;

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
                let prepared = prepare(&case, degree, 200, &target).expect("a small problem");
                let matrix = Csr::assemble(&prepared.operator).expect("a matrix");
                let mut x = prepared.operator.vector();
                let entries: Vec<f64> = (0..x.len()).map(|i| (i as f64).sin()).collect();
                x.set(&entries);
                let mut y = prepared.operator.vector();
                prepared.operator.apply(&x, &mut y).expect("an action");
                let mut product = vec![0.0; entries.len()];
                matrix.apply(&entries, &mut product);
                let wanted = y.to_vec();
                let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
                for (i, (a, b)) in product.iter().zip(&wanted).enumerate() {
                    let error = (a - b).abs() / most;
                    assert!(error < 1e-13, "{} p = {degree}, {geometry}, row {i}", case.name);
                }
                compared += 1;
            }
        }
    }
    // Stokes begins at degree 2, which has no corners.
    assert_eq!(compared, 8 * 5 + 2);
}
