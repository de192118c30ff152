//! Vectors of unknowns, in double or single precision, and the operations that solvers are made of.
//!
//! A [`Vector`] hides where and in which precision its entries live, so that no solver knows a
//! backend: in this machine's memory, or on a device, from where nothing but sums comes back until
//! [`Vector::to_vec`] asks for it. All sums are taken over chunks of a fixed length and the partial sums are added in
//! order: a result depends on the entries alone, never on the number of threads. Products are
//! accumulated in double precision whatever the entries are.
//!
//! Behind the last entry lie [`PADDING`] readable entries, because kernels load whole SIMD vectors.
//!
//! The fused operations follow Settgast et al. 2023, table 4: an iteration of the conjugate
//! gradient method reads and writes each of its vectors once beside the operator.

mod blas;
mod chain;
mod norm;
mod remote;
pub(crate) mod several;

use crate::support::random::random_signs;
pub use chain::Chain;
pub use kernels_gen::abi::Precision;
pub(crate) use norm::{norm, powers, root_of_squares};

use crate::device::cpu::{Buffer, Plain};
use crate::device::{Arithmetic, Array, Summed};
use crate::processes::sharing::{Number, Sharing};
use remote::{Pending, Remote};
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

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
    + Number
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
            Data::Single(_) | Data::Remote(_) => None,
        }
    }

    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]> {
        match &mut vector.data {
            Data::Double(entries) => Some(&mut entries[..vector.len]),
            Data::Single(_) | Data::Remote(_) => None,
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
            Data::Double(_) | Data::Remote(_) => None,
        }
    }

    fn entries_mut(vector: &mut Vector) -> Option<&mut [Self]> {
        match &mut vector.data {
            Data::Single(entries) => Some(&mut entries[..vector.len]),
            Data::Double(_) | Data::Remote(_) => None,
        }
    }
}

/// The entries and the padding behind them.
#[derive(Clone)]
enum Data {
    Double(Buffer<f64>),
    Single(Buffer<f32>),
    Remote(Remote),
}

/// x·y, which a device may still be forming.
pub struct Product(Form);

enum Form {
    Known(f64),
    Pending(Pending),
}

impl Product {
    /// A product that is known.
    pub fn known(value: f64) -> Self {
        Self(Form::Known(value))
    }

    /// Its value, which is waited for.
    pub fn value(&self) -> f64 {
        match &self.0 {
            Form::Known(value) => *value,
            Form::Pending(pending) => pending.values().first,
        }
    }
}

impl fmt::Debug for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Form::Known(value) => write!(f, "{value}"),
            Form::Pending(_) => f.write_str("on its way"),
        }
    }
}

/// What a step of the conjugate gradient method finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// p·A p; where it is not positive and finite, no step was made.
    pub curvature: f64,
    /// r·r after the step.
    pub square: f64,
    /// r·D⁻¹r after the step; r·r where there is no diagonal.
    pub weighted: f64,
}

/// A vector of unknowns.
#[derive(Clone)]
pub struct Vector {
    data: Data,
    len: usize,
    /// The numbering of the unknowns, where that is known: see [`Vector::numbered`].
    numbering: Option<u64>,
    /// Where other processes have some of the unknowns too.
    sharing: Option<Arc<Sharing>>,
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
        $(let $out = <$real>::entries_mut($out).expect("vectors should have one precision and place");)*
        $(let $input = <$real>::entries($input).expect("vectors should have one precision and place");)*
        $body
    }};
}

/// Returns what `$body` gives where the vectors live on a device, named as in [`with_entries`].
macro_rules! on_device {
    (($($out:ident),*), ($($input:ident),*), $body:expr) => {
        if let ($(Data::Remote($out),)* $(Data::Remote($input),)*) =
            ($(&mut $out.data,)* $(&$input.data,)*)
        {
            return $body;
        }
    };
}

mod fused;
mod shared;

/// Rounds to the precision that the context asks for.
fn real<T: Real>(value: f64) -> T {
    T::from_f64(value)
}

impl Step {
    fn of(pending: &Pending) -> Self {
        let Summed { first, second, curvature } = pending.values();
        Self { curvature, square: first, weighted: second }
    }
}

impl Vector {
    /// A vector of `len` zeros.
    pub fn zeros(len: usize, precision: Precision) -> Self {
        let data = match precision {
            Precision::F64 => Data::Double(Buffer::zeroed(len + PADDING)),
            Precision::F32 => Data::Single(Buffer::zeroed(len + PADDING)),
        };
        Self { data, len, numbering: None, sharing: None }
    }

    /// The same as a vector of unknowns that are numbered so: operators of others refuse it. Copies of it and vectors
    /// like it are numbered alike.
    #[must_use]
    pub fn numbered(self, numbering: u64) -> Self {
        Self { numbering: Some(numbering), ..self }
    }

    /// The numbering of its unknowns, where that is known.
    pub fn numbering(&self) -> Option<u64> {
        self.numbering
    }

    /// A vector of `len` zeros on a device. Where the device fails, in this and in what follows, the
    /// failure is kept there: see [`Arithmetic::check`].
    pub fn on_device(len: usize, arithmetic: &Arc<Arithmetic>) -> Self {
        let data = Data::Remote(Remote::zeros(arithmetic, len));
        Self { data, len, numbering: None, sharing: None }
    }

    /// The device's array, where the entries live on one, with what computes there.
    pub fn array(&self) -> Option<(&Arc<Arithmetic>, &Array)> {
        match &self.data {
            Data::Remote(remote) => Some((remote.arithmetic(), remote.array())),
            Data::Double(_) | Data::Single(_) => None,
        }
    }

    /// The device's array to be written, where the entries live on one.
    pub fn array_mut(&mut self) -> Option<&mut Array> {
        match &mut self.data {
            Data::Remote(remote) => Some(remote.array_mut()),
            Data::Double(_) | Data::Single(_) => None,
        }
    }

    /// A vector with these entries, rounded to `precision`.
    pub fn from_slice(entries: &[f64], precision: Precision) -> Self {
        let mut vector = Self::zeros(entries.len(), precision);
        vector.set(entries);
        vector
    }

    /// Zeros of the same length and precision, in the same place.
    pub fn like(&self) -> Self {
        let zeros = match &self.data {
            Data::Remote(remote) => {
                let data = Data::Remote(remote.like(self.len));
                Self { data, len: self.len, numbering: None, sharing: None }
            }
            Data::Double(_) | Data::Single(_) => Self::zeros(self.len, self.precision()),
        };
        Self { numbering: self.numbering, sharing: self.sharing.clone(), ..zeros }
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
        match &self.data {
            Data::Double(_) => Precision::F64,
            Data::Single(_) => Precision::F32,
            Data::Remote(remote) => remote.precision(),
        }
    }

    /// The entries, where they are of the type `T` and in this machine's memory.
    pub fn entries<T: Real>(&self) -> Option<&[T]> {
        T::entries(self)
    }

    /// The entries for writing, where they are of the type `T` and in this machine's memory.
    pub fn entries_mut<T: Real>(&mut self) -> Option<&mut [T]> {
        T::entries_mut(self)
    }

    /// The entries in double precision.
    pub fn to_vec(&self) -> Vec<f64> {
        match &self.data {
            Data::Double(entries) => entries[..self.len].to_vec(),
            Data::Single(entries) => entries[..self.len].iter().map(|&x| f64::from(x)).collect(),
            Data::Remote(remote) => {
                let mut entries = remote.to_vec(self.len);
                // What a device lost is no number.
                entries.resize(self.len, f64::NAN);
                entries
            }
        }
    }

    /// Some of the entries in double precision. Of a device's vector nothing else comes back where they are those of a
    /// field.
    pub fn part(&self, range: Range<usize>) -> Vec<f64> {
        match &self.data {
            Data::Double(entries) => entries[..self.len][range].to_vec(),
            Data::Single(entries) => {
                entries[..self.len][range].iter().map(|&x| f64::from(x)).collect()
            }
            Data::Remote(remote) => {
                let len = range.len();
                let mut entries = remote.part(range, self.len);
                // What a device lost is no number.
                entries.resize(len, f64::NAN);
                entries
            }
        }
    }

    /// One entry in double precision.
    pub fn get(&self, index: usize) -> f64 {
        match &self.data {
            Data::Double(entries) => entries[..self.len][index],
            Data::Single(entries) => f64::from(entries[..self.len][index]),
            Data::Remote(remote) => remote.get(index, self.len),
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
            Data::Remote(remote) => remote.set(values),
        }
    }

    /// Replaces one entry.
    pub fn set_entry(&mut self, index: usize, value: f64) {
        assert!(index < self.len, "entry {index} of a vector of {}", self.len);
        match &mut self.data {
            Data::Double(entries) => entries[index] = value,
            Data::Single(entries) => entries[index] = f32::from_f64(value),
            Data::Remote(remote) => remote.set_entry(index, self.len, value),
        }
    }

    /// self = value in every entry.
    pub fn fill(&mut self, value: f64) {
        let (len, y) = (self.len, self);
        on_device!((y), (), y.fill(len, value));
        with_entries!((y), (), blas::map(y, |_| real(value)));
    }

    /// self = x.
    pub fn copy_from(&mut self, x: &Self) {
        let y = self;
        on_device!((y), (x), y.copy_from(x));
        with_entries!((y), (x), blas::map2(y, x, |_, x| x));
    }

    /// self = x, rounded to the precision of this one.
    pub fn convert_from(&mut self, x: &Self) {
        assert_eq!(self.len, x.len, "vectors should have one length");
        match (&mut self.data, &x.data) {
            (Data::Remote(y), Data::Remote(x)) => y.convert_from(x, self.len),
            _ => self.take_part(1.0, x, 0..x.len),
        }
    }

    /// self = a·x in a part of x, the unknowns of one field, rounded to the precision of this one.
    pub fn take_part(&mut self, a: f64, x: &Self, part: Range<usize>) {
        assert!(part.end <= x.len && part.len() == self.len, "a part should be one of the vector");
        let n = self.len;
        match (&mut self.data, &x.data) {
            (Data::Single(y), Data::Single(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| f32::from_f64(a * f64::from(x)));
            }
            (Data::Single(y), Data::Double(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| f32::from_f64(a * x));
            }
            (Data::Double(y), Data::Single(x)) => {
                blas::convert(&mut y[..n], &x[part], |x| a * f64::from(x));
            }
            (Data::Double(y), Data::Double(x)) => blas::convert(&mut y[..n], &x[part], |x| a * x),
            (Data::Remote(y), Data::Remote(own)) => y.take_part(a, (own, x.len), &part),
            _ => self.set(&x.to_vec()[part].iter().map(|x| a * x).collect::<Vec<_>>()),
        }
    }

    /// self = a·x in a part of this vector, the unknowns of one field, rounded to its precision.
    pub fn put_part(&mut self, a: f64, x: &Self, part: Range<usize>) {
        assert!(part.end <= self.len && part.len() == x.len, "a part should be one of the vector");
        let (n, all) = (x.len, self.len);
        match (&mut self.data, &x.data) {
            (Data::Single(y), Data::Single(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| f32::from_f64(a * f64::from(x)));
            }
            (Data::Single(y), Data::Double(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| f32::from_f64(a * x));
            }
            (Data::Double(y), Data::Single(x)) => {
                blas::convert(&mut y[part], &x[..n], |x| a * f64::from(x));
            }
            (Data::Double(y), Data::Double(x)) => blas::convert(&mut y[part], &x[..n], |x| a * x),
            (Data::Remote(y), Data::Remote(x)) => y.put_part(a, x, (&part, all)),
            _ => {
                let mut numbers = self.to_vec();
                numbers.splice(part, x.to_vec().into_iter().map(|x| a * x));
                self.set(&numbers);
            }
        }
    }

    /// A vector with the entries of a part of this one, the unknowns of one field, and 0 in all others.
    #[must_use]
    pub fn restricted_to(&self, part: Range<usize>) -> Self {
        let mut alone = self.like();
        match (&mut alone.data, &self.data) {
            (Data::Single(y), Data::Single(x)) => {
                blas::convert(&mut y[part.clone()], &x[part], |x| x);
            }
            (Data::Double(y), Data::Double(x)) => {
                blas::convert(&mut y[part.clone()], &x[part], |x| x);
            }
            (Data::Remote(y), Data::Remote(x)) => y.take_alone(x, (&part, self.len)),
            _ => unreachable!("vectors that are alike lie in one place"),
        }
        alone
    }

    /// self_i = i mod `period` − `period` / 2, on a device by the place of an entry, also where there is no unknown.
    pub(crate) fn ramp(&mut self, period: usize) {
        if let Data::Remote(remote) = &mut self.data {
            remote.ramp(period);
            return remote.agree();
        }
        let entry = |i: usize| (i % period) as f64 - (period / 2) as f64;
        let entries: Vec<f64> = (0..self.len).map(entry).collect();
        self.set(&entries);
        self.agree();
    }

    /// self_i = ±self_i with signs without any order, the same at every call, and the same where several processes have an entry.
    pub fn turn(&mut self) {
        if let Data::Remote(remote) = &mut self.data {
            remote.turn();
        } else {
            let turned = self.to_vec().into_iter().zip(random_signs()).map(|(y, sign)| y * sign);
            let turned: Vec<f64> = turned.collect();
            self.set(&turned);
        }
        self.agree();
    }

    /// self = a·self.
    pub fn scale(&mut self, a: f64) {
        let y = self;
        on_device!((y), (), y.scale(a));
        with_entries!((y), (), blas::scale(y, real(a)));
    }

    /// self = self + a·x.
    pub fn axpy(&mut self, a: f64, x: &Self) {
        let y = self;
        on_device!((y), (x), y.axpby(a, x, 1.0));
        with_entries!((y), (x), blas::axpy(y, x, real(a)));
    }

    /// self = a·x + b·self.
    pub fn axpby(&mut self, a: f64, x: &Self, b: f64) {
        let y = self;
        on_device!((y), (x), y.axpby(a, x, b));
        with_entries!((y), (x), blas::axpby(y, x, real(a), real(b)));
    }

    /// self = self + a·x, and the new self·self.
    pub fn axpy_dot(&mut self, a: f64, x: &Self) -> f64 {
        let y = self;
        on_device!((y), (x), y.axpy_dot(a, x).values().first);
        let others = x.others();
        let square = with_entries!((y), (x), blas::axpy_dot(y, x, real(a), others));
        x.total(square)
    }

    /// self_i = self_i·x_i.
    pub fn multiply(&mut self, x: &Self) {
        let y = self;
        on_device!((y), (x), y.multiply(x));
        with_entries!((y), (x), blas::map2(y, x, |y, x| y * x));
    }

    /// self_i = 0 where x_i is 0.
    pub fn vanish_with(&mut self, x: &Self) {
        let y = self;
        on_device!((y), (x), y.vanish_with(x));
        with_entries!((y), (x), {
            blas::map2(y, x, |y, x| if x == real(0.0) { real(0.0) } else { y });
        });
    }

    /// self_i = 1/self_i, or 0 where self_i is 0.
    pub fn invert(&mut self) {
        let y = self;
        on_device!((y), (), y.invert());
        with_entries!((y), (), blas::map_f64(y, |y| if y == 0.0 { 0.0 } else { 1.0 / y }));
    }

    /// self·x.
    pub fn dot(&self, x: &Self) -> f64 {
        self.dot_later(x).value()
    }

    /// self·x, which a device need not have formed when this returns.
    pub fn dot_later(&self, x: &Self) -> Product {
        let y = self;
        on_device!((), (y, x), Product(Form::Pending(y.dot(x))));
        let others = self.others();
        Product::known(self.total(with_entries!((), (y, x), blas::dot(y, x, others))))
    }

    /// √(self·self), also where squares under- or overflow.
    pub fn norm(&self) -> f64 {
        let square = self.dot(self);
        // Squares of single precision are far inside of double precision, in which they are summed.
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

    /// self_i = |self_i|.
    pub fn make_absolute(&mut self) {
        let y = self;
        on_device!((y), (), y.make_absolute());
        with_entries!((y), (), blas::map_f64(y, f64::abs));
    }

    /// self_i = |self_i|, or 1 where self_i is 0.
    pub fn make_positive(&mut self) {
        let y = self;
        on_device!((y), (), y.make_positive());
        with_entries!((y), (), blas::map_f64(y, |y| if y == 0.0 { 1.0 } else { y.abs() }));
    }

    /// One step of the conjugate gradient method: self = self + α p, r = r − α q with
    /// α = `rz` / `curvature`, where `inverse` holds the diagonal of D⁻¹ (the identity where there
    /// is none). Where the curvature p·q is not positive and finite, nothing is changed.
    pub fn step(
        &mut self,
        rz: f64,
        curvature: &Product,
        p: &Self,
        r: &mut Self,
        q: &Self,
        inverse: Option<&Self>,
    ) -> Step {
        let x = self;
        if let Form::Pending(pending) = &curvature.0
            && x.stays_on_devices()
        {
            match inverse {
                Some(d) => on_device!((x, r), (p, q, d), {
                    Step::of(&x.conjugate(rz, pending, p, q, Some(d), r))
                }),
                None => on_device!((x, r), (p, q), {
                    Step::of(&x.conjugate(rz, pending, p, q, None, r))
                }),
            }
        }
        let curvature = curvature.value();
        let alpha = if curvature > 0.0 && curvature.is_finite() { rz / curvature } else { 0.0 };
        let (square, weighted) = x.advance_both(alpha, p, r, q, inverse);
        Step { curvature, square, weighted }
    }

    /// self = self + α p, r = r − α q; gives (r·r, r·D⁻¹r).
    fn advance_both(
        &mut self,
        alpha: f64,
        p: &Self,
        r: &mut Self,
        q: &Self,
        inverse: Option<&Self>,
    ) -> (f64, f64) {
        let x = self;
        if x.array().is_some() {
            x.axpy(alpha, p);
            let square = r.axpy_dot(-alpha, q);
            return (square, inverse.map_or(square, |inverse| r.weighted_square(inverse)));
        }
        let others = p.others();
        match inverse {
            Some(d) => {
                let (square, weighted) = with_entries!((x, r), (p, q, d), {
                    blas::step(x, r, p, q, d, real(alpha), others)
                });
                p.totals([square, weighted]).into()
            }
            None => {
                let square = with_entries!((x, r), (p, q), {
                    blas::step_plain(x, r, p, q, real(alpha), others)
                });
                let square = p.total(square);
                (square, square)
            }
        }
    }

    /// self = D⁻¹r + β·self: the next direction of the conjugate gradient method.
    pub fn advance(&mut self, beta: f64, r: &Self, inverse: Option<&Self>) {
        match inverse {
            Some(d) => {
                let p = self;
                on_device!((p), (r, d), p.advance(beta, r, d));
                with_entries!((p), (r, d), blas::advance(p, r, d, real(beta)));
            }
            None => self.axpby(1.0, r, beta),
        }
    }

    /// r·D⁻¹r for the diagonal D⁻¹ in `inverse`.
    pub fn weighted_square(&self, inverse: &Self) -> f64 {
        let (r, d) = (self, inverse);
        on_device!((), (r, d), r.weighted_square(d).values().first);
        let others = self.others();
        self.total(with_entries!((), (r, d), blas::weighted_square(r, d, others)))
    }
}

impl fmt::Debug for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.data {
            Data::Double(entries) => entries[..self.len].fmt(f),
            Data::Single(entries) => entries[..self.len].fmt(f),
            Data::Remote(remote) => remote.array().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
