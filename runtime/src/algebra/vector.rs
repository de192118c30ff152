//! Vectors of degrees of freedom in double or single precision, and the vector operations of solvers.
//!
//! A [`Vector`] hides location and precision of its entries, so that solvers are independent of backends. Entries are
//! in host or device memory; from a device only reductions are copied until [`Vector::to_vec`] is called. Sums use
//! chunks of fixed length, whose partial sums are added in order: a result depends on the entries only, never on the
//! number of threads. Products are accumulated in double precision in every case.
//!
//! The last entry is followed by [`PADDING`] readable entries, since kernels load whole SIMD vectors.
//!
//! The fused operations follow Settgast et al. 2023, table 4: besides the operator, a conjugate gradient iteration
//! reads and writes each of its vectors once.

mod blas;
mod complex;
mod device_entries;
mod device_iterations;
pub(crate) mod multi_vector;
mod norm;
mod operations;
mod scaled;

use crate::support::random::{random_entries, random_signs};
pub use complex::ComplexPairs;
pub use device_iterations::DeviceIterations;
pub use kernels_gen::abi::Precision;
pub(crate) use norm::{norm, powers, root_of_squares};

use crate::device::cpu::{Buffer, PlainNumber};
use crate::device::{Arithmetic, Array, SumValues};
use crate::processes::interface_exchange::{InterfaceExchange, MessageNumber};
use blas::weigh;
use device_entries::{DeviceEntries, PendingProducts};
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Number of readable entries after the end of a vector.
pub const PADDING: usize = 64;

/// Returns the distance from 1 to the next number.
pub fn epsilon(precision: Precision) -> f64 {
    match precision {
        Precision::F64 => f64::EPSILON,
        Precision::F32 => f64::from(f32::EPSILON),
    }
}

/// Returns the name of the entry type: `f64` or `f32`.
pub fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::F64 => "f64",
        Precision::F32 => "f32",
    }
}

/// Entry type: `f64` or `f32`.
pub trait Real:
    PlainNumber
    + MessageNumber
    + PartialOrd
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + Into<f64>
{
    /// Precision of the type.
    const PRECISION: Precision;

    /// Rounds to this type.
    fn from_f64(value: f64) -> Self;

    /// Returns the entries of `vector` if they have this type.
    fn entries(vector: &Vector) -> Option<&[Self]>;

    /// Returns the entries of `vector` mutably if they have this type.
    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]>;
}

impl Real for f64 {
    const PRECISION: Precision = Precision::F64;

    fn from_f64(value: f64) -> Self {
        value
    }

    fn entries(vector: &Vector) -> Option<&[Self]> {
        match &vector.data {
            VectorData::Double(entries) => Some(&entries[..vector.len]),
            VectorData::Single(_) | VectorData::Remote(_) => None,
        }
    }

    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]> {
        match &mut vector.data {
            VectorData::Double(entries) => Some(&mut entries[..vector.len]),
            VectorData::Single(_) | VectorData::Remote(_) => None,
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
            VectorData::Single(entries) => Some(&entries[..vector.len]),
            VectorData::Double(_) | VectorData::Remote(_) => None,
        }
    }

    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]> {
        match &mut vector.data {
            VectorData::Single(entries) => Some(&mut entries[..vector.len]),
            VectorData::Double(_) | VectorData::Remote(_) => None,
        }
    }
}

/// Entries with padding.
#[derive(Clone)]
enum VectorData {
    Double(Buffer<f64>),
    Single(Buffer<f32>),
    Remote(DeviceEntries),
}

/// Sums of a reduction such as x·y, possibly still pending on a device.
pub struct ScalarProduct(ProductValue);

enum ProductValue {
    /// Both sums; the first one twice if there is only one.
    Known([f64; 2]),
    Pending(PendingProducts),
}

impl ScalarProduct {
    /// Wraps a known product.
    pub fn known(value: f64) -> Self {
        Self(ProductValue::Known([value; 2]))
    }

    /// Waits for its value.
    pub fn value(&self) -> f64 {
        self.values()[0]
    }

    /// Waits for both sums of a reduction; the first one twice if there is only one.
    fn values(&self) -> [f64; 2] {
        match &self.0 {
            ProductValue::Known(values) => *values,
            ProductValue::Pending(pending) => {
                let SumValues { first, second, .. } = pending.values();
                [first, second]
            }
        }
    }
}

impl fmt::Debug for ScalarProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ProductValue::Known([value, _]) => write!(f, "{value}"),
            ProductValue::Pending(_) => f.write_str("on its way"),
        }
    }
}

/// Scalars of a conjugate gradient step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CgStep {
    /// p·A p; if it is not positive and finite, the step was skipped.
    pub curvature: f64,
    /// r·r after the step.
    pub square: f64,
    /// r·D⁻¹r after the step; r·r without a diagonal.
    pub weighted: f64,
}

/// A vector of degrees of freedom.
#[derive(Clone)]
pub struct Vector {
    data: VectorData,
    len: usize,
    /// Hash of the DoF numbering, if it is known: see [`Vector::numbered`].
    numbering: Option<u64>,
    /// Interface degrees of freedom.
    sharing: Option<Arc<InterfaceExchange>>,
}

/// Runs `$body` with the entries of vectors of one precision as slices. The first group is written, the second is read.
macro_rules! with_entries {
    (($($out:ident),*), ($($input:ident),*), $body:expr) => {{
        match with_entries!(@precision $($out),* $(, $input)*) {
            Precision::F64 => with_entries!(@typed f64, ($($out),*), ($($input),*), $body),
            Precision::F32 => with_entries!(@typed f32, ($($out),*), ($($input),*), $body),
        }
    }};
    (@precision $(,)? $first:ident $($rest:tt)*) => { $first.precision() };
    (@typed $real:ty, ($($out:ident),*), ($($input:ident),*), $body:expr) => {{
        $(let $out = <$real>::entries_mut($out).expect("vectors should have one precision and place");)*
        $(let $input = <$real>::entries($input).expect("vectors should have one precision and place");)*
        $body
    }};
}

/// Returns the value of `$body` if the vectors live on a device, named as in [`with_entries`].
macro_rules! on_device {
    (($($out:ident),*), ($($input:ident),*), $body:expr) => {
        if let ($(VectorData::Remote($out),)* $(VectorData::Remote($input),)*) =
            ($(&mut $out.data,)* $(&$input.data,)*)
        {
            return $body;
        }
    };
}

mod interface;

impl CgStep {
    fn of(pending: &PendingProducts) -> Self {
        let SumValues { first, second, curvature } = pending.values();
        Self { curvature, square: first, weighted: second }
    }
}

impl Vector {
    /// Creates a vector of `len` zeros.
    pub fn zeros(len: usize, precision: Precision) -> Self {
        let data = match precision {
            Precision::F64 => VectorData::Double(Buffer::zeroed(len + PADDING)),
            Precision::F32 => VectorData::Single(Buffer::zeroed(len + PADDING)),
        };
        Self { data, len, numbering: None, sharing: None }
    }

    /// Attaches a hash of the DoF numbering: other operators reject the vector. Copies and vectors like it inherit the
    /// hash.
    #[must_use]
    pub fn numbered(self, numbering: u64) -> Self {
        Self { numbering: Some(numbering), ..self }
    }

    /// Returns the hash of its numbering, if it is known.
    pub fn numbering(&self) -> Option<u64> {
        self.numbering
    }

    /// Creates a vector of `len` zeros on a device. A device failure, in this and later operations, is stored there:
    /// see [`Arithmetic::check`].
    pub fn on_device(len: usize, arithmetic: &Arc<Arithmetic>) -> Self {
        let data = VectorData::Remote(DeviceEntries::zeros(arithmetic, len));
        Self { data, len, numbering: None, sharing: None }
    }

    /// Returns the device array and its arithmetic, for entries on a device.
    pub fn array(&self) -> Option<(&Arc<Arithmetic>, &Array)> {
        match &self.data {
            VectorData::Remote(remote) => Some((remote.arithmetic(), remote.array())),
            VectorData::Double(_) | VectorData::Single(_) => None,
        }
    }

    /// Returns the place of each entry in the device array, for entries on a device.
    pub fn places(&self) -> Option<Vec<usize>> {
        match &self.data {
            VectorData::Remote(remote) => {
                Some((0..self.len).map(|entry| remote.place(entry, self.len)).collect())
            }
            VectorData::Double(_) | VectorData::Single(_) => None,
        }
    }

    /// Returns the device array mutably, for entries on a device.
    pub fn array_mut(&mut self) -> Option<&mut Array> {
        match &mut self.data {
            VectorData::Remote(remote) => Some(remote.array_mut()),
            VectorData::Double(_) | VectorData::Single(_) => None,
        }
    }

    /// Creates a vector with these entries, rounded to `precision`.
    pub fn from_slice(entries: &[f64], precision: Precision) -> Self {
        let mut vector = Self::zeros(entries.len(), precision);
        vector.set(entries);
        vector
    }

    /// Creates zeros of the same length, precision and location.
    pub fn like(&self) -> Self {
        let zeros = match &self.data {
            VectorData::Remote(remote) => {
                let data = VectorData::Remote(remote.like(self.len));
                Self { data, len: self.len, numbering: None, sharing: None }
            }
            VectorData::Double(_) | VectorData::Single(_) => {
                Self::zeros(self.len, self.precision())
            }
        };
        Self { numbering: self.numbering, sharing: self.sharing.clone(), ..zeros }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the precision of the entries.
    pub fn precision(&self) -> Precision {
        match &self.data {
            VectorData::Double(_) => Precision::F64,
            VectorData::Single(_) => Precision::F32,
            VectorData::Remote(remote) => remote.precision(),
        }
    }

    /// Returns the entries if they have type `T` and are in host memory.
    pub fn entries<T: Real>(&self) -> Option<&[T]> {
        T::entries(self)
    }

    /// Returns the entries mutably if they have type `T` and are in host memory.
    pub fn entries_mut<T: Real>(&mut self) -> Option<&mut [T]> {
        T::entries_mut(self)
    }

    /// Returns the entries in double precision.
    pub fn to_vec(&self) -> Vec<f64> {
        match &self.data {
            VectorData::Double(entries) => entries[..self.len].to_vec(),
            VectorData::Single(entries) => {
                entries[..self.len].iter().map(|&x| f64::from(x)).collect()
            }
            VectorData::Remote(remote) => {
                let mut entries = remote.to_vec(self.len);
                // Entries lost by a device are NaN.
                entries.resize(self.len, f64::NAN);
                entries
            }
        }
    }

    /// Returns a range of entries in double precision. From a device only the field's entries are copied if the range
    /// is a field.
    pub fn part(&self, range: Range<usize>) -> Vec<f64> {
        match &self.data {
            VectorData::Double(entries) => entries[..self.len][range].to_vec(),
            VectorData::Single(entries) => {
                entries[..self.len][range].iter().map(|&x| f64::from(x)).collect()
            }
            VectorData::Remote(remote) => {
                let len = range.len();
                let mut entries = remote.part(range, self.len);
                // Entries lost by a device are NaN.
                entries.resize(len, f64::NAN);
                entries
            }
        }
    }

    /// Returns one entry in double precision.
    pub fn get(&self, index: usize) -> f64 {
        match &self.data {
            VectorData::Double(entries) => entries[..self.len][index],
            VectorData::Single(entries) => f64::from(entries[..self.len][index]),
            VectorData::Remote(remote) => remote.get(index, self.len),
        }
    }

    /// Replaces all entries, rounded to the vector's precision. The lengths must agree.
    pub fn set(&mut self, values: &[f64]) {
        assert_eq!(values.len(), self.len, "a vector takes as many values as it has entries");
        match &mut self.data {
            VectorData::Double(entries) => entries[..self.len].copy_from_slice(values),
            VectorData::Single(entries) => {
                for (entry, &value) in entries.iter_mut().zip(values) {
                    *entry = f32::from_f64(value);
                }
            }
            VectorData::Remote(remote) => remote.set(values),
        }
    }

    /// Replaces one entry.
    pub fn set_entry(&mut self, index: usize, value: f64) {
        assert!(index < self.len, "entry {index} of a vector of {}", self.len);
        match &mut self.data {
            VectorData::Double(entries) => entries[index] = value,
            VectorData::Single(entries) => entries[index] = f32::from_f64(value),
            VectorData::Remote(remote) => remote.set_entry(index, self.len, value),
        }
    }

    /// Sets self = value in every entry.
    pub fn fill(&mut self, value: f64) {
        let (len, y) = (self.len, self);
        on_device!((y), (), y.fill(len, value));
        y.assign(value);
    }

    /// Sets self = x, rounded to its own precision.
    pub fn convert_from(&mut self, x: &Self) {
        assert_eq!(self.len, x.len, "vectors should have one length");
        match (&mut self.data, &x.data) {
            (VectorData::Remote(y), VectorData::Remote(x)) => y.convert_from(x, self.len),
            _ => self.take_part(1.0, x, 0..x.len),
        }
    }

    /// Sets self = a·x for a range of x, the degrees of freedom of one field, rounded to its own precision.
    pub fn take_part(&mut self, a: f64, x: &Self, part: Range<usize>) {
        assert!(part.end <= x.len && part.len() == self.len, "a part should be one of the vector");
        let n = self.len;
        match (&mut self.data, &x.data) {
            (VectorData::Single(y), VectorData::Single(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| f32::from_f64(a * f64::from(x)));
            }
            (VectorData::Single(y), VectorData::Double(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| f32::from_f64(a * x));
            }
            (VectorData::Double(y), VectorData::Single(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| a * f64::from(x));
            }
            (VectorData::Double(y), VectorData::Double(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| a * x)
            }
            (VectorData::Remote(y), VectorData::Remote(own)) => y.take_part(a, (own, x.len), &part),
            _ => self.set(&x.to_vec()[part].iter().map(|x| a * x).collect::<Vec<_>>()),
        }
    }

    /// Sets a range of self, the degrees of freedom of one field, to a·x, rounded to its own precision.
    pub fn put_part(&mut self, a: f64, x: &Self, part: Range<usize>) {
        assert!(part.end <= self.len && part.len() == x.len, "a part should be one of the vector");
        let (n, all) = (x.len, self.len);
        match (&mut self.data, &x.data) {
            (VectorData::Single(y), VectorData::Single(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| f32::from_f64(a * f64::from(x)));
            }
            (VectorData::Single(y), VectorData::Double(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| f32::from_f64(a * x));
            }
            (VectorData::Double(y), VectorData::Single(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| a * f64::from(x));
            }
            (VectorData::Double(y), VectorData::Double(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| a * x)
            }
            (VectorData::Remote(y), VectorData::Remote(x)) => y.put_part(a, x, (&part, all)),
            _ => {
                let mut numbers = self.to_vec();
                numbers.splice(part, x.to_vec().into_iter().map(|x| a * x));
                self.set(&numbers);
            }
        }
    }

    /// Returns a vector with the entries of a range, the degrees of freedom of one field, and 0 elsewhere.
    #[must_use]
    pub fn restricted_to(&self, part: Range<usize>) -> Self {
        let mut alone = self.like();
        match (&mut alone.data, &self.data) {
            (VectorData::Single(y), VectorData::Single(x)) => {
                blas::convert(&mut y[part.clone()], &x[part], |x| x);
            }
            (VectorData::Double(y), VectorData::Double(x)) => {
                blas::convert(&mut y[part.clone()], &x[part], |x| x);
            }
            (VectorData::Remote(y), VectorData::Remote(x)) => y.take_alone(x, (&part, self.len)),
            _ => unreachable!("vectors that are alike lie in one place"),
        }
        alone
    }

    /// Sets self_i = i mod `period` − `period` / 2; on a device i is the position, padding included.
    pub(crate) fn ramp(&mut self, period: usize) {
        if let VectorData::Remote(remote) = &mut self.data {
            remote.ramp(period);
            return remote.synchronise();
        }
        let entry = |i: usize| (i % period) as f64 - (period / 2) as f64;
        let entries: Vec<f64> = (0..self.len).map(entry).collect();
        self.set(&entries);
        self.synchronise();
    }

    /// Sets pseudo-random entries in [−1, 1), equal in each call with the same seed on the same device.
    pub(crate) fn randomise(&mut self, seed: u64) {
        match &mut self.data {
            VectorData::Remote(remote) => remote.randomise(self.len, seed),
            VectorData::Double(_) | VectorData::Single(_) => {
                self.set(&random_entries(self.len, seed));
            }
        }
    }

    /// Multiplies each component of a range, the degrees of freedom of one field, by its weight.
    pub(crate) fn weigh(&mut self, range: Range<usize>, weights: &[f64]) {
        match &mut self.data {
            VectorData::Double(entries) => weigh(&mut entries[range], weights),
            VectorData::Single(entries) => weigh(&mut entries[range], weights),
            VectorData::Remote(remote) => remote.weigh(&range, self.len, weights),
        }
    }

    /// Sets self_i = ±self_i with pseudo-random signs, identical in every call and consistent between processes.
    pub fn flip_signs(&mut self) {
        if let VectorData::Remote(remote) = &mut self.data {
            remote.flip_signs();
        } else {
            let turned = self.to_vec().into_iter().zip(random_signs()).map(|(y, sign)| y * sign);
            let turned: Vec<f64> = turned.collect();
            self.set(&turned);
        }
        self.synchronise();
    }

    /// Sets self = a·x + b·self.
    pub fn axpby(&mut self, a: f64, x: &Self, b: f64) {
        self.combine((a, b), x);
    }

    /// Takes a Chebyshev step ([`Vector::chebyshev`]), from another residual `from` if it is given.
    pub fn chebyshev_step(
        &mut self,
        factors: (f64, f64),
        d: &mut Self,
        r: &mut Self,
        from: Option<&Self>,
        q: &Self,
        inverse: &Self,
    ) {
        match from {
            Some(from) => self.chebyshev_from(factors, r, d, from, q, inverse),
            None => self.chebyshev(factors, d, r, q, inverse),
        }
    }

    /// Returns self·x.
    pub fn dot(&self, x: &Self) -> f64 {
        self.dot_later(x).value()
    }

    /// Returns self·x, possibly still pending on a device.
    pub fn dot_later(&self, x: &Self) -> ScalarProduct {
        if std::ptr::eq(self, x) { self.square() } else { self.inner_product(x) }
    }

    /// Returns √(self·self), without underflow or overflow of squares.
    pub fn norm(&self) -> f64 {
        let square = self.dot(self);
        // Squares in single precision are safe: they are summed in double precision.
        if self.precision() == Precision::F32 {
            return square.sqrt();
        }
        let scaled = |factor: f64| {
            let mut scaled = self.clone();
            scaled.scale(factor);
            Ok::<_, Infallible>(scaled.dot(&scaled))
        };
        root_of_squares(square, scaled).unwrap_or_else(|never| match never {})
    }

    /// Takes a conjugate gradient step: self = self + α p, r = r − α q with α = `rz` / `curvature`; `inverse` is the
    /// diagonal of D⁻¹, by default the identity. If the curvature p·q is not positive and finite, the step is skipped.
    pub fn step(
        &mut self,
        rz: f64,
        curvature: &ScalarProduct,
        p: &Self,
        r: &mut Self,
        q: &Self,
        inverse: Option<&Self>,
    ) -> CgStep {
        let x = self;
        if let ProductValue::Pending(pending) = &curvature.0
            && x.stays_on_devices()
        {
            match inverse {
                Some(d) => on_device!((x, r), (p, q, d), {
                    CgStep::of(&x.conjugate(rz, pending, p, q, Some(d), r))
                }),
                None => on_device!((x, r), (p, q), {
                    CgStep::of(&x.conjugate(rz, pending, p, q, None, r))
                }),
            }
        }
        let curvature = curvature.value();
        let alpha = if curvature > 0.0 && curvature.is_finite() { rz / curvature } else { 0.0 };
        let sums = match inverse {
            Some(inverse) => x.step_scaled(alpha, r, p, q, inverse),
            None => x.step_plain(alpha, r, p, q),
        };
        let [square, weighted] = sums.values();
        CgStep { curvature, square, weighted }
    }

    /// Computes the next conjugate gradient direction self = D⁻¹r + β·self.
    pub fn advance(&mut self, beta: f64, r: &Self, inverse: Option<&Self>) {
        match inverse {
            Some(inverse) => self.advance_scaled(beta, r, inverse),
            None => self.advance_plain(beta, r),
        }
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            VectorData::Double(entries) => entries[..self.len].fmt(f),
            VectorData::Single(entries) => entries[..self.len].fmt(f),
            VectorData::Remote(remote) => remote.array().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
