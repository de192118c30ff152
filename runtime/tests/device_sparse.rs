//! Sparse matrix products of vendor libraries, the benchmark reference of operators.

use super::devices;
use devices::devices;
use fem_bench::{CASES, input, prepare};
use runtime::device::{Backend, ElementKind};
use runtime::kernels::compile::{Execution, Target};
use runtime::operator::assemble::Csr;

#[test]
fn products_with_sparse_matrices_agree_with_the_hosts() {
    let mut target = Target::native();
    target.execution = Execution::Interpreted;
    for device in devices() {
        for case in [CASES[2], CASES[7]] {
            let prepared = prepare(&case, 2, 500, &target).expect("a small problem");
            let matrix = Csr::assemble(&prepared.operator).expect("a matrix");
            let sparse = device.sparse(&matrix.starts, &matrix.columns, &matrix.values);
            let Some(sparse) = sparse.expect("a matrix on the device") else {
                assert_ne!(device.backend(), Backend::Cuda, "cuSPARSE is a part of CUDA's toolkit");
                continue;
            };
            let n = matrix.starts.len() - 1;
            let (entries, mut wanted) = (input(n), vec![0.0; n]);
            matrix.apply(&entries, &mut wanted);
            let x = device.upload(&entries).expect("x");
            let mut y = device.zeros(ElementKind::F64, n).expect("y");
            // The old contents are overwritten.
            for _ in 0..2 {
                sparse.apply(&x, &mut y).expect("a product");
            }
            let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            for (a, b) in device.download(&y).expect("y").iter().zip(&wanted) {
                assert!((a - b).abs() <= 1e-13 * most, "{}: {a} and {b}", case.name);
            }
            let mut short = device.zeros(ElementKind::F64, n - 1).expect("a vector");
            assert!(sparse.apply(&x, &mut short).is_err(), "too short");
        }
    }
}
