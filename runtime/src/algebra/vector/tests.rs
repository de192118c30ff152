//! Host vector operations: results, and independence of the number of threads.

use super::{Precision, ScalarProduct, Vector};

fn sample(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
        })
        .collect()
}

#[test]
fn sums_do_not_depend_on_the_number_of_threads() {
    for precision in [Precision::F64, Precision::F32] {
        let x = Vector::from_slice(&sample(100_003, 1), precision);
        let y = Vector::from_slice(&sample(100_003, 2), precision);
        let d = Vector::from_slice(&sample(100_003, 3), precision);
        let run = |threads: usize| {
            let pool =
                rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| {
                let (mut u, mut r) = (x.clone(), y.clone());
                let sums = u.step(0.3, &ScalarProduct::known(1.0), &y, &mut r, &x, Some(&d));
                u.advance(0.7, &r, Some(&d));
                let last = u.axpy_dot(0.25, &r).value();
                (
                    x.dot(&y).to_bits(),
                    sums.square.to_bits(),
                    sums.weighted.to_bits(),
                    last.to_bits(),
                )
            })
        };
        assert_eq!(run(1), run(3));
    }
}

#[test]
fn operations_follow_their_formulas() {
    let n = 40_001;
    let (a, b, c, d) = (sample(n, 1), sample(n, 2), sample(n, 3), sample(n, 4));
    let vector = |v: &[f64]| Vector::from_slice(v, Precision::F64);
    let dot = |u: &[f64], v: &[f64]| u.iter().zip(v).map(|(u, v)| u * v).sum::<f64>();
    assert!((vector(&a).dot(&vector(&b)) - dot(&a, &b)).abs() < 1e-10);

    let (mut x, mut r) = (vector(&a), vector(&b));
    let curvature = ScalarProduct::known(4.0);
    let step = x.step(2.0, &curvature, &vector(&c), &mut r, &vector(&d), Some(&vector(&a)));
    let new_r: Vec<f64> = b.iter().zip(&d).map(|(b, d)| b - 0.5 * d).collect();
    let scaled: Vec<f64> = new_r.iter().zip(&a).map(|(r, a)| r * a).collect();
    assert_eq!(r.to_vec(), new_r);
    assert!((step.square - dot(&new_r, &new_r)).abs() < 1e-9);
    assert!((step.weighted - dot(&new_r, &scaled)).abs() < 1e-9);
    for i in 0..n {
        assert_eq!(x.get(i), a[i] + 0.5 * c[i]);
    }
    x.advance(2.0, &r, Some(&vector(&a)));
    assert_eq!(x.get(7), a[7] * new_r[7] + 2.0 * (a[7] + 0.5 * c[7]));
    let mut y = vector(&a);
    y.axpby(2.0, &vector(&b), 3.0);
    assert_eq!(y.get(n - 1), 2.0 * b[n - 1] + 3.0 * a[n - 1]);
    let sum = y.axpy_dot(-1.0, &vector(&a)).value();
    assert!((sum - y.dot(&y)).abs() < 1e-9);
    y.fill(4.0);
    y.invert();
    y.multiply(&vector(&c));
    assert_eq!(y.get(3), 0.25 * c[3]);
}

#[test]
fn norms_of_numbers_of_any_size() {
    let entries = [3.0, -4.0, 12.0];
    for size in [5e-324, 1e-310, 1e-300, 1e-160, 1e-140, 1.0, 1e140, 1e160, 1e300] {
        let scaled: Vec<f64> = entries.iter().map(|entry| entry * size).collect();
        let (norm, exact) = (Vector::from_slice(&scaled, Precision::F64).norm(), 13.0 * size);
        assert!((norm - exact).abs() <= 1e-15 * exact, "{norm:e} of {size:e}");
    }
    // Small entries do not affect the norm of larger ones, whatever their squares.
    assert_eq!(Vector::from_slice(&[1e-200, 1.0], Precision::F64).norm(), 1.0);
    assert_eq!(Vector::zeros(3, Precision::F64).norm(), 0.0);
    assert_eq!(Vector::from_slice(&[1.0, f64::INFINITY], Precision::F64).norm(), f64::INFINITY);
    assert!(Vector::from_slice(&[1e-200, f64::NAN], Precision::F64).norm().is_nan());
    let single = Vector::from_slice(&[3e-40, 4e-40], Precision::F32).norm();
    assert!((single / 5e-40 - 1.0).abs() < 1e-4, "{single:e}");
}
