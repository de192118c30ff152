//! Vectors on a device against those on the host: every operation, in both precisions, with lengths that do not fill
//! thread groups. Sums may differ by the rounding of their terms, entries by that of a few operations.

use super::devices;
use devices::devices;
use runtime::algebra::vector::{Precision, ScalarProduct, Vector, epsilon};
use runtime::device::{Arithmetic, VectorLayout};
use std::sync::Arc;

/// From one entry to more than the capacity of all thread groups.
const LENGTHS: [usize; 6] = [1, 3, 255, 1025, 70_001, 1_100_003];

/// Returns pseudo-random numbers in (−1, 1).
fn sample(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0
    };
    (0..len).map(next).collect()
}

/// Vectors with equal entries on the host and on a device.
struct Pair {
    host: Vector,
    there: Vector,
}

impl Pair {
    fn new(on: &Arc<Arithmetic>, len: usize, seed: u64) -> Self {
        let host = Vector::from_slice(&sample(len, seed), on.precision());
        let mut there = Vector::on_device(len, on);
        there.set(&host.to_vec());
        Self { host, there }
    }

    /// Compares entries computed by a few operations on numbers up to `size`.
    fn compare(&self, what: &str, size: f64) {
        let bound = 8.0 * epsilon(self.host.precision()) * size;
        let (host, there) = (self.host.to_vec(), self.there.to_vec());
        assert_eq!(host.len(), there.len(), "{what}");
        for (i, (a, b)) in host.iter().zip(&there).enumerate() {
            assert!((a - b).abs() <= bound, "{what}, entry {i} of {}: {a} and {b}", host.len());
        }
    }
}

/// Compares sums, given the sum of the absolute values of their terms.
fn close(what: &str, len: usize, (host, there): (f64, f64), terms: f64) {
    let bound = 4.0 * f64::EPSILON * (len as f64).sqrt().max(8.0) * terms;
    assert!((host - there).abs() <= bound, "{what} of {len}: {host} and {there}");
}

/// Consecutive fields with tiles of components and padding.
#[test]
fn a_vector_is_restricted_to_one_of_its_fields() {
    for device in devices() {
        for precision in [Precision::F64, Precision::F32] {
            let layout = VectorLayout::joined([
                (VectorLayout::plain(3), 3 * 1001),
                (VectorLayout::plain(1), 125),
            ]);
            let on = Arithmetic::with_layout(Arc::clone(&device), precision, layout);
            let on = on.expect("kernels");
            // A range that is no field passes through the host.
            let (len, parts) = (3128, [0..3003, 3003..3128, 7..3100]);
            let pair = Pair::new(&on, len, 5);
            let mut filled = pair.there.like();
            filled.fill(2.0);
            assert_eq!(filled.to_vec(), vec![2.0; len]);
            assert_eq!(filled.dot(&filled), 4.0 * len as f64, "no places without an unknown");
            for part in parts {
                let host = pair.host.restricted_to(part.clone());
                let alone = pair.there.restricted_to(part.clone());
                let (whole, found) = (pair.host.to_vec(), host.to_vec());
                assert!(
                    found
                        .iter()
                        .enumerate()
                        .all(|(i, x)| *x == if part.contains(&i) { whole[i] } else { 0.0 })
                );
                Pair { host, there: alone }.compare("a field alone", 0.0);
            }
        }
    }
}

#[test]
fn operations_agree_with_the_hosts() {
    for device in devices() {
        for precision in [Precision::F64, Precision::F32] {
            let on = Arithmetic::new(Arc::clone(&device), precision).expect("kernels");
            for len in LENGTHS {
                every_operation(&on, len);
                on.check().expect("no failure");
            }
        }
    }
}

fn every_operation(on: &Arc<Arithmetic>, len: usize) {
    let pair = |seed| Pair::new(on, len, seed);
    let (x, mut y) = (pair(1), pair(2));
    x.compare("set", 0.0);
    assert_eq!(x.there.get(len - 1), x.host.get(len - 1));
    for v in [&mut y.host, &mut y.there] {
        v.set_entry(len / 2, 0.0);
    }
    y.compare("set_entry", 0.0);
    let copy = y.there.clone();
    y.host.axpy(0.75, &x.host);
    y.there.axpy(0.75, &x.there);
    y.compare("axpy", 2.0);
    y.host.axpby(-1.5, &x.host, 0.25);
    y.there.axpby(-1.5, &x.there, 0.25);
    y.compare("axpby", 4.0);
    y.host.multiply(&x.host);
    y.there.multiply(&x.there);
    y.compare("multiply", 4.0);
    let mut some = x.host.like();
    some.set(
        &x.host
            .to_vec()
            .iter()
            .enumerate()
            .map(|(i, x)| if i % 3 == 0 { 0.0 } else { *x })
            .collect::<Vec<_>>(),
    );
    let mut there = x.there.like();
    there.set(&some.to_vec());
    let mut vanished = Pair { host: y.host.clone(), there: y.there.clone() };
    vanished.host.mask_by(&some);
    vanished.there.mask_by(&there);
    assert_eq!(vanished.host.get(0), 0.0);
    vanished.compare("mask_by", 4.0);
    y.host.scale(3.0);
    y.there.scale(3.0);
    y.compare("scale", 12.0);
    let sums = (y.host.axpy_dot(0.5, &x.host).value(), y.there.axpy_dot(0.5, &x.there).value());
    y.compare("axpy_dot", 16.0);
    let single = on.precision() == Precision::F32;
    let rounding = if single { 1e9 } else { 1.0 };
    close("axpy_dot", len, sums, sums.0 * rounding);
    let sums = (x.host.dot(&y.host), x.there.dot(&x.there.clone()));
    close("norm", len, (x.host.dot(&x.host), sums.1), sums.1);
    close("norm", len, (x.host.norm(), x.there.norm()), x.host.norm());

    for vector in [&x.host, &x.there] {
        let (mut turned, before) = (vector.clone(), vector.to_vec());
        turned.flip_signs();
        let after = turned.to_vec();
        let mut pairs = before.iter().zip(&after);
        assert!(pairs.clone().all(|(x, y)| x.abs() == y.abs()), "turn of {len}");
        let count = pairs.clone().filter(|(x, y)| x != y).count();
        assert!(
            count <= len && (len < 1000 || (count * 2).abs_diff(len) < len / 10),
            "{count} of {len}"
        );
        turned.flip_signs();
        assert!(pairs.all(|(x, _)| x.is_finite()) && turned.to_vec() == before, "turned twice");
    }

    let mut z = Pair { host: x.host.like(), there: copy };
    z.host.copy_from(&x.host);
    z.there.copy_from(&x.there);
    z.compare("copy_from", 0.0);
    close("dot", len, (z.host.dot(&x.host), z.there.dot(&x.there)), x.host.dot(&x.host));
    for v in [&mut z.host, &mut z.there] {
        v.set_entry(0, 0.0);
        v.invert();
    }
    let largest = z.host.to_vec().iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    z.compare("invert", largest);
    let mut sizes = Pair { host: z.host.clone(), there: z.there.clone() };
    for v in [&mut sizes.host, &mut sizes.there] {
        v.make_absolute();
    }
    sizes.compare("make_absolute", 0.0);
    for v in [&mut z.host, &mut z.there] {
        v.make_positive();
    }
    z.compare("make_positive", largest);
    assert_eq!(z.there.get(0), 1.0);
    for v in [&mut z.host, &mut z.there] {
        v.fill(-0.1);
    }
    z.compare("fill", 0.0);
}

#[test]
fn steps_of_conjugate_gradients_agree_with_the_hosts() {
    for device in devices() {
        for precision in [Precision::F64, Precision::F32] {
            let on = Arithmetic::new(Arc::clone(&device), precision).expect("kernels");
            for len in LENGTHS {
                for diagonal in [false, true] {
                    step(&on, len, diagonal);
                    on.check().expect("no failure");
                }
            }
        }
    }
}

fn step(on: &Arc<Arithmetic>, len: usize, diagonal: bool) {
    let pair = |seed| Pair::new(on, len, seed);
    let (mut x, mut r, mut p, mut q, mut d) = (pair(1), pair(2), pair(3), pair(4), pair(5));
    for v in [&mut q.host, &mut q.there] {
        // The product p·q is positive.
        v.copy_from(if v.array().is_some() { &p.there } else { &p.host });
        v.scale(2.0);
    }
    for v in [&mut d.host, &mut d.there] {
        v.make_positive();
    }
    let rz = 0.5 * p.host.dot(&q.host);
    let inverse = (diagonal.then_some(&d.host), diagonal.then_some(&d.there));
    let products = (p.host.dot_later(&q.host), p.there.dot_later(&q.there));
    let host = x.host.step(rz, &products.0, &p.host, &mut r.host, &q.host, inverse.0);
    let there = x.there.step(rz, &products.1, &p.there, &mut r.there, &q.there, inverse.1);
    x.compare("x", 4.0);
    r.compare("r", 4.0);
    let (r_there, rounding) = (r.there.to_vec(), f64::EPSILON / epsilon(on.precision()));
    let square: f64 = r_there.iter().map(|r| r * r).sum();
    close("curvature", len, (host.curvature, there.curvature), host.curvature);
    close("square", len, (square, there.square), square);
    close("square", len, (host.square, there.square), square / rounding);
    close("weighted", len, (host.weighted, there.weighted), square / rounding);
    p.host.advance(0.3, &r.host, inverse.0);
    p.there.advance(0.3, &r.there, inverse.1);
    p.compare("p", 8.0);
    if diagonal {
        let sums =
            (r.host.weighted_square(&d.host).value(), r.there.weighted_square(&d.there).value());
        close("weighted_square", len, sums, square / rounding);
    }
}

/// The velocity updates of the leapfrog method.
#[test]
fn steps_of_a_leapfrog_are_those_of_the_processor() {
    for device in devices() {
        for precision in [Precision::F64, Precision::F32] {
            let on = Arithmetic::new(Arc::clone(&device), precision).expect("kernels");
            for n in [1, 300, 20_000] {
                let pair = |seed: u64| Pair::new(&on, n, seed);
                let (mut next, mut v, u, r, m) = (pair(1), pair(2), pair(3), pair(4), pair(5));
                let mut a = pair(6);
                next.host.leap((0.1, 0.3), &mut v.host, &u.host, &r.host, &m.host);
                next.there.leap((0.1, 0.3), &mut v.there, &u.there, &r.there, &m.there);
                v.compare("v of a leap", 4.0);
                next.compare("next of a leap", 4.0);
                v.host.kick(0.7, &mut a.host, &r.host, &m.host);
                v.there.kick(0.7, &mut a.there, &r.there, &m.there);
                a.compare("a", 4.0);
                v.compare("v of a kick", 8.0);
                next.host.drift((0.1, 0.3), &mut v.host, &u.host, &a.host);
                next.there.drift((0.1, 0.3), &mut v.there, &u.there, &a.there);
                v.compare("v of a drift", 8.0);
                next.compare("next of a drift", 8.0);
            }
        }
    }
}

/// Without positive curvature there is no step.
#[test]
fn nothing_moves_along_a_direction_of_no_curvature() {
    for device in devices() {
        let on = Arithmetic::new(device, Precision::F64).expect("kernels");
        let n = 5001;
        let vector = |value: f64| {
            let mut vector = Vector::on_device(n, &on);
            vector.fill(value);
            vector
        };
        for (slope, known) in [(-1.0, false), (0.0, false), (f64::NAN, false), (-1.0, true)] {
            let (mut x, mut r, p, q) = (vector(3.0), vector(2.0), vector(1.0), vector(slope));
            let mut product = p.dot_later(&q);
            if known {
                product = ScalarProduct::known(product.value());
            }
            let step = x.step(1.0, &product, &p, &mut r, &q, None);
            let sum = slope * n as f64;
            assert!(step.curvature == sum || (sum.is_nan() && step.curvature.is_nan()), "{step:?}");
            assert_eq!(x.to_vec(), vec![3.0; n]);
            if !sum.is_nan() {
                assert_eq!((r.to_vec(), step.square), (vec![2.0; n], 4.0 * n as f64));
            }
        }
    }
}

#[test]
fn sums_are_the_same_bits_at_every_run() {
    for device in devices() {
        let on = Arithmetic::new(device, Precision::F64).expect("kernels");
        let (x, y) = (Pair::new(&on, 300_007, 1), Pair::new(&on, 300_007, 2));
        let first = x.there.dot(&y.there).to_bits();
        for _ in 0..20 {
            assert_eq!(x.there.dot(&y.there).to_bits(), first);
        }
    }
}

#[test]
fn a_device_without_room_says_so_at_the_next_check() {
    for device in devices() {
        let on = Arithmetic::new(device, Precision::F64).expect("kernels");
        let mut vector = Vector::on_device(1 << 50, &on);
        vector.fill(1.0);
        assert!(vector.norm().is_nan());
        let error = on.check().expect_err("no room").to_string();
        assert!(error.contains("no room") && error.contains("help: "), "{error}");
    }
}
