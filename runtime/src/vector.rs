//! Vectors of unknowns, in double or single precision, and the operations that solvers are made of.
//!
//! A [`Vector`] hides where and in which precision its entries live, so that no solver knows a
//! backend. All sums are taken over chunks of a fixed length and the partial sums are added in
//! order: a result depends on the entries alone, never on the number of threads. Products are
//! accumulated in double precision whatever the entries are.
//!
//! Behind the last entry lie [`PADDING`] readable entries, because kernels load whole SIMD vectors.
//!
//! The fused operations follow Settgast et al. 2023, table 4: an iteration of the conjugate
//! gradient method reads and writes each of its vectors once beside the operator.

mod blas;

pub use kernels_gen::abi::Precision;

use crate::device::cpu::{Buffer, Plain};
use std::fmt;

/// Entries that may be read behind the end of a vector.
pub const PADDING: usize = 64;

/// Distance from 1 to the next number.
pub fn epsilon(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => f64::EPSILON,
        Precision::F32 => f64::from(f32::EPSILON),
    }
}

/// The name of the type of entries: `f64` or `f32`.
pub fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => "f64",
        Precision::F32 => "f32",
    }
}

/// A type of entries: `f64` or `f32`.
pub trait Real:
    Plain
    + PartialEq
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + Into<f64>
{
    /// The precision that the type stands for.
    const PRECISION: Precision;

    /// The nearest number of this type.
    fn from_f64(value: f64) -> Self;

    /// The entries of `vector`, where they are of this type.
    fn entries(vector: &Vector) -> Option<&[Self]>;

    /// The entries of `vector` for writing, where they are of this type.
    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]>;
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;

    fn from_f64(value: f64) -> Self {
        value
    }

    fn entries(vector: &Vector) -> Option<&[Self]> {
        match &vector.data {
            Data::Double(entries) => Some(&entries[..vector.len]),
            Data::Single(_) => None,
        }
    }

    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]> {
        match &mut vector.data {
            Data::Double(entries) => Some(&mut entries[..vector.len]),
            Data::Single(_) => None,
        }
    }
}

impl Real for f32 {
    const PRECISION: Precision = Precision::F32;

    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to single precision is the purpose"
    )]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    fn entries(vector: &Vector) -> Option<&[Self]> {
        match &vector.data {
            Data::Single(entries) => Some(&entries[..vector.len]),
            Data::Double(_) => None,
        }
    }

    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]> {
        match &mut vector.data {
            Data::Single(entries) => Some(&mut entries[..vector.len]),
            Data::Double(_) => None,
        }
    }
}

/// The entries and the padding behind them.
#[derive(Clone)]
enum Data {
    Double(Buffer<f64>),
    Single(Buffer<f32>),
}

/// A vector of unknowns.
#[derive(Clone)]
pub struct Vector {
    data: Data,
    len: usize,
}

/// Runs `$body` with the entries of vectors of one precision as slices. The first group is written,
/// the second is read.
macro_rules! with_entries {
    (($($out:ident),*), ($($input:ident),*), $body:expr) => {{
        match with_entries!(@precision $($out),* $(, $input)*) {
            Precision::F64 => with_entries!(@typed f64, ($($out),*), ($($input),*), $body),
            Precision::F32 => with_entries!(@typed f32, ($($out),*), ($($input),*), $body),
        }
    }};
    (@precision $(,)? $first:ident $($rest:tt)*) => { $first.precision() };
    (@typed $real:ty, ($($out:ident),*), ($($input:ident),*), $body:expr) => {{
        $(let $out = <$real>::entries_mut($out).expect("vectors should have one precision");)*
        $(let $input = <$real>::entries($input).expect("vectors should have one precision");)*
        $body
    }};
}
/// Rounds to the precision that the context asks for.
fn real<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

impl Vector {
    /// A vector of `len` zeros.
    pub fn zeros(len: usize, precision: Precision) -> Self {
        let data = match precision {
            Precision::F64 => Data::Double(Buffer::zeroed(len + PADDING)),
            Precision::F32 => Data::Single(Buffer::zeroed(len + PADDING)),
        };
        Self { data, len }
    }

    /// A vector with these entries, rounded to `precision`.
    pub fn from_slice(entries: &[f64], precision: Precision) -> Self {
        let mut vector = Self::zeros(entries.len(), precision);
        vector.set(entries);
        vector
    }

    /// Zeros of the same length and precision.
    pub fn like(&self) -> Self {
        Self::zeros(self.len, self.precision())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The precision of the entries.
    pub fn precision(&self) -> Precision {
        match self.data {
            Data::Double(_) => Precision::F64,
            Data::Single(_) => Precision::F32,
        }
    }

    /// The entries, where they are of the type `T`.
    pub fn entries<T: Real>(&self) -> Option<&[T]> {
        T::entries(self)
    }

    /// The entries for writing, where they are of the type `T`.
    pub fn entries_mut<T: Real>(&mut self) -> Option<&mut [T]> {
        T::entries_mut(self)
    }

    /// The entries in double precision.
    pub fn to_vec(&self) -> Vec<f64> {
        match &self.data {
            Data::Double(entries) => entries[..self.len].to_vec(),
            Data::Single(entries) => entries[..self.len].iter().map(|&x| f64::from(x)).collect(),
        }
    }

    /// One entry in double precision.
    pub fn get(&self, index: usize) -> f64 {
        match &self.data {
            Data::Double(entries) => entries[..self.len][index],
            Data::Single(entries) => f64::from(entries[..self.len][index]),
        }
    }

    /// Replaces all entries, rounding to the vector's precision. The lengths must agree.
    pub fn set(&mut self, values: &[f64]) {
        assert_eq!(values.len(), self.len, "a vector takes as many values as it has entries");
        match &mut self.data {
            Data::Double(entries) => entries[..self.len].copy_from_slice(values),
            Data::Single(entries) => {
                for (entry, &value) in entries.iter_mut().zip(values) {
                    *entry = f32::from_f64(value);
                }
            }
        }
    }

    /// Replaces one entry.
    pub fn set_entry(&mut self, index: usize, value: f64) {
        assert!(index < self.len, "entry {index} of a vector of {}", self.len);
        match &mut self.data {
            Data::Double(entries) => entries[index] = value,
            Data::Single(entries) => entries[index] = f32::from_f64(value),
        }
    }

    /// self = value in every entry.
    pub fn fill(&mut self, value: f64) {
        let y = self;
        with_entries!((y), (), blas::map(y, |_| real(value)));
    }

    /// self = x.
    pub fn copy_from(&mut self, x: &Self) {
        let y = self;
        with_entries!((y), (x), blas::map2(y, x, |_, x| x));
    }

    /// self = a·self.
    pub fn scale(&mut self, a: f64) {
        let y = self;
        with_entries!((y), (), blas::scale(y, real(a)));
    }

    /// self = self + a·x.
    pub fn axpy(&mut self, a: f64, x: &Self) {
        let y = self;
        with_entries!((y), (x), blas::axpy(y, x, real(a)));
    }

    /// self = a·x + b·self.
    pub fn axpby(&mut self, a: f64, x: &Self, b: f64) {
        let y = self;
        with_entries!((y), (x), blas::axpby(y, x, real(a), real(b)));
    }

    /// self = self + a·x, and the new self·self.
    pub fn axpy_dot(&mut self, a: f64, x: &Self) -> f64 {
        let y = self;
        with_entries!((y), (x), blas::axpy_dot(y, x, real(a)))
    }

    /// self_i = self_i·x_i.
    pub fn multiply(&mut self, x: &Self) {
        let y = self;
        with_entries!((y), (x), blas::map2(y, x, |y, x| y * x));
    }

    /// self_i = 1/self_i, or 0 where self_i is 0.
    pub fn invert(&mut self) {
        let y = self;
        with_entries!((y), (), blas::map_f64(y, |y| if y == 0.0 { 0.0 } else { 1.0 / y }));
    }

    /// self·x.
    pub fn dot(&self, x: &Self) -> f64 {
        let y = self;
        with_entries!((), (y, x), blas::dot(y, x))
    }

    /// √(self·self).
    pub fn norm(&self) -> f64 {
        self.dot(self).sqrt()
    }

    /// self_i = |self_i|, or 1 where self_i is 0.
    pub fn make_positive(&mut self) {
        let y = self;
        with_entries!((y), (), blas::map_f64(y, |y| if y == 0.0 { 1.0 } else { y.abs() }));
    }

    /// One step of the conjugate gradient method: self = self + α p, r = r − α q; gives back
    /// (r·r, r·D⁻¹r) of the new r, where `inverse` holds the diagonal of D⁻¹ (the identity where
    /// there is none).
    pub fn step(
        &mut self,
        alpha: f64,
        p: &Self,
        r: &mut Self,
        q: &Self,
        inverse: Option<&Self>,
    ) -> (f64, f64) {
        let x = self;
        match inverse {
            Some(d) => {
                with_entries!((x, r), (p, q, d), blas::step(x, r, p, q, d, real(alpha)))
            }
            None => {
                let square =
                    with_entries!((x, r), (p, q), blas::step_plain(x, r, p, q, real(alpha)));
                (square, square)
            }
        }
    }

    /// self = D⁻¹r + β·self: the next direction of the conjugate gradient method.
    pub fn advance(&mut self, beta: f64, r: &Self, inverse: Option<&Self>) {
        match inverse {
            Some(d) => {
                let p = self;
                with_entries!((p), (r, d), blas::advance(p, r, d, real(beta)));
            }
            None => self.axpby(1.0, r, beta),
        }
    }

    /// r·D⁻¹r for the diagonal D⁻¹ in `inverse`.
    pub fn weighted_square(&self, inverse: &Self) -> f64 {
        let (r, d) = (self, inverse);
        with_entries!((), (r, d), blas::weighted_square(r, d))
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            Data::Double(entries) => entries[..self.len].fmt(f),
            Data::Single(entries) => entries[..self.len].fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Precision, Vector};

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
                    let sums = u.step(0.3, &y, &mut r, &x, Some(&d));
                    u.advance(0.7, &r, Some(&d));
                    let last = u.axpy_dot(0.25, &r);
                    (x.dot(&y).to_bits(), sums.0.to_bits(), sums.1.to_bits(), last.to_bits())
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
        let (square, weighted) = x.step(0.5, &vector(&c), &mut r, &vector(&d), Some(&vector(&a)));
        let new_r: Vec<f64> = b.iter().zip(&d).map(|(b, d)| b - 0.5 * d).collect();
        let scaled: Vec<f64> = new_r.iter().zip(&a).map(|(r, a)| r * a).collect();
        assert_eq!(r.to_vec(), new_r);
        assert!((square - dot(&new_r, &new_r)).abs() < 1e-9);
        assert!((weighted - dot(&new_r, &scaled)).abs() < 1e-9);
        for i in 0..n {
            assert_eq!(x.get(i), a[i] + 0.5 * c[i]);
        }
        x.advance(2.0, &r, Some(&vector(&a)));
        assert_eq!(x.get(7), a[7] * new_r[7] + 2.0 * (a[7] + 0.5 * c[7]));
        let mut y = vector(&a);
        y.axpby(2.0, &vector(&b), 3.0);
        assert_eq!(y.get(n - 1), 2.0 * b[n - 1] + 3.0 * a[n - 1]);
        let sum = y.axpy_dot(-1.0, &vector(&a));
        assert!((sum - y.dot(&y)).abs() < 1e-9);
        y.fill(4.0);
        y.invert();
        y.multiply(&vector(&c));
        assert_eq!(y.get(3), 0.25 * c[3]);
    }
}
