//! Numbers with running rounding-error bounds, and the common tolerance.
//!
//! A number consists of a value and its scale: the sum of the absolute values of its terms, propagated through every
//! operation to first order,
//!
//! ```text
//! s(a ± b) = s(a) + s(b)      s(a b) = |a| s(b) + s(a) |b|      s(f(a)) = |f'(a)| s(a) + |f(a)|
//! ```
//!
//! except for products, which may have two factors that rounding has moved from 0: 4 eps s(a) s(b) is added (running
//! error analysis; N. J. Higham, "Accuracy and Stability of Numerical Algorithms", SIAM 2002, section 3.3). Any other
//! order of the same operations, in precision eps, then agrees to a moderate multiple of eps · s.

use fem_dsl::arena::IndexVec;
use fem_dsl::arithmetic;
use fem_dsl::point::{Binary, Graph, Input, Node, NodeId, Unary};
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// The largest relative error in any compared precision, for second-order errors of products.
const SECOND: f64 = FACTOR * f32::EPSILON as f64;

/// The tolerance as a multiple of eps · scale.
const FACTOR: f64 = 4.0;

/// A value with the sum of its absolute terms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BoundedValue {
    /// The value.
    pub value: f64,
    /// The sum of absolute terms; at least |value|.
    pub scale: f64,
}

impl BoundedValue {
    /// An exact zero.
    pub const ZERO: Self = Self { value: 0.0, scale: 0.0 };

    /// Creates an exact or once-rounded number.
    #[inline]
    pub fn new(value: f64) -> Self {
        Self { value, scale: value.abs() }
    }

    /// Creates a number with a known larger error.
    #[inline]
    pub fn with_scale(value: f64, scale: f64) -> Self {
        Self { value, scale: scale.max(value.abs()) }
    }

    /// Returns the tolerance in a precision.
    #[inline]
    pub fn tolerance(self, epsilon: f64) -> f64 {
        FACTOR * epsilon * self.scale
    }

    /// Returns the square root √a.
    pub fn sqrt(self) -> Self {
        unary(Unary::Sqrt, self)
    }
}

impl From<f64> for BoundedValue {
    #[inline]
    fn from(value: f64) -> Self {
        Self::new(value)
    }
}

impl Add for BoundedValue {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self { value: self.value + other.value, scale: self.scale + other.scale }
    }
}

impl AddAssign for BoundedValue {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for BoundedValue {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Neg for BoundedValue {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { value: -self.value, scale: self.scale }
    }
}

impl Mul for BoundedValue {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        let first = amplify(self.value, other.scale) + amplify(other.value, self.scale);
        // The second-order term, relevant if both factors are 0 up to rounding.
        let second = SECOND * self.scale * other.scale;
        let scale = if second.is_finite() { first + second } else { first };
        Self { value: self.value * other.value, scale }
    }
}

impl Div for BoundedValue {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let scale = (self.scale + amplify(value, other.scale)) / other.value.abs();
        Self::with_scale(value, scale)
    }
}

impl std::iter::Sum for BoundedValue {
    fn sum<I: Iterator<Item = Self>>(numbers: I) -> Self {
        numbers.fold(Self::ZERO, Add::add)
    }
}

/// Returns the product |slope| · scale; an exact zero remains 0 for any slope.
#[inline]
fn amplify(slope: f64, scale: f64) -> f64 {
    if scale == 0.0 { 0.0 } else { slope.abs() * scale }
}

/// Applies a unary function.
fn unary(function: Unary, a: BoundedValue) -> BoundedValue {
    let x = a.value;
    let value = arithmetic::unary(function, x);
    let slope = match function {
        Unary::Neg | Unary::Abs => return BoundedValue { value, scale: a.scale },
        Unary::Sign => 0.0,
        Unary::Sqrt => 0.5 / value,
        Unary::Exp => value,
        Unary::Log => 1.0 / x,
        Unary::Sin => libm::cos(x),
        Unary::Cos => libm::sin(x),
        Unary::Tan => 1.0 + value * value,
        Unary::Asin | Unary::Acos => 1.0 / (1.0 - x * x).sqrt(),
        Unary::Atan => 1.0 / (1.0 + x * x),
        Unary::Sinh => libm::cosh(x),
        Unary::Cosh => libm::sinh(x),
        Unary::Tanh => 1.0 - value * value,
    };
    BoundedValue { value, scale: amplify(slope, a.scale) + value.abs() }
}

/// Applies a binary function.
fn binary(function: Binary, a: BoundedValue, b: BoundedValue) -> BoundedValue {
    let value = arithmetic::binary(function, a.value, b.value);
    let scale = match function {
        Binary::Add => return a + b,
        Binary::Sub => return a - b,
        Binary::Mul => return a * b,
        Binary::Div => return a / b,
        Binary::Pow => {
            // A power a⁰ does not depend on a, and a positive power of 0 not on the exponent.
            let by_base = match b.value {
                0.0 => 0.0,
                exponent => exponent * arithmetic::binary(function, a.value, exponent - 1.0),
            };
            let by_exponent = if value == 0.0 { 0.0 } else { value * libm::log(a.value) };
            amplify(by_base, a.scale) + amplify(by_exponent, b.scale) + value.abs()
        }
        Binary::Atan2 => {
            let squares = a.value * a.value + b.value * b.value;
            (amplify(b.value, a.scale) + amplify(a.value, b.scale)) / squares + value.abs()
        }
        // Near a tie either argument may be selected.
        Binary::Min | Binary::Max => a.scale.max(b.scale),
    };
    BoundedValue { value, scale }
}

/// Returns the value of every node of a graph; truth values are 1 or 0.
pub(super) fn evaluate(
    graph: &Graph,
    mut input: impl FnMut(Input) -> BoundedValue,
) -> IndexVec<NodeId, BoundedValue> {
    let mut values: IndexVec<NodeId, BoundedValue> = IndexVec::new();
    let truth = |value: bool| BoundedValue { value: f64::from(u8::from(value)), scale: 0.0 };
    for node in graph.nodes() {
        let holds = |a: NodeId| values[a].value != 0.0;
        let value = match *node {
            Node::Constant(number) => BoundedValue::new(number.get()),
            Node::Input(which) => input(which),
            Node::Unary(function, a) => unary(function, values[a]),
            Node::Binary(function, a, b) => binary(function, values[a], values[b]),
            Node::Powi(a, n) => {
                let (a, slope) =
                    (values[a], arithmetic::powi(values[a].value, n.saturating_sub(1)));
                let value = arithmetic::powi(a.value, n);
                let scale = amplify(f64::from(n) * slope, a.scale) + value.abs();
                BoundedValue { value, scale }
            }
            Node::Compare(comparison, a, b) => {
                truth(arithmetic::compare(comparison, values[a].value, values[b].value))
            }
            Node::And(a, b) => truth(holds(a) && holds(b)),
            Node::Or(a, b) => truth(holds(a) || holds(b)),
            Node::Not(a) => truth(!holds(a)),
            Node::Select(condition, a, b) => values[if holds(condition) { a } else { b }],
        };
        values.push(value);
    }
    values
}

/// Compares a result in a precision with the reference; the error describes the difference.
pub fn check_close(got: f64, want: BoundedValue, epsilon: f64) -> Result<(), String> {
    let (error, bound) = ((got - want.value).abs(), want.tolerance(epsilon));
    if !bound.is_finite() || !want.value.is_finite() {
        return Err(format!("the reference is not finite: {want:?}"));
    }
    if error <= bound {
        return Ok(());
    }
    Err(format!("{got:e} for {:e}: off by {error:e}, at most {bound:e} allowed", want.value))
}

/// Asserts that every result agrees with the reference; reports the largest difference.
#[track_caller]
pub fn assert_all_close(got: &[f64], want: &[BoundedValue], epsilon: f64, context: &str) {
    assert_eq!(got.len(), want.len(), "{context}: different lengths");
    let excess = |i: &usize| {
        let (error, bound) = ((got[*i] - want[*i].value).abs(), want[*i].tolerance(epsilon));
        if error <= bound { 0.0 } else { error / bound.max(f64::MIN_POSITIVE) }
    };
    let wrong: Vec<usize> =
        (0..got.len()).filter(|&i| check_close(got[i], want[i], epsilon).is_err()).collect();
    if let Some(&worst) = wrong.iter().max_by(|a, b| excess(a).total_cmp(&excess(b))) {
        let message = check_close(got[worst], want[worst], epsilon).expect_err("a wrong entry");
        panic!(
            "{context}: {} of {} entries wrong; entry {worst}: {message}",
            wrong.len(),
            got.len()
        );
    }
}

/// `assert_close!(got, want, epsilon)` asserts that `got`, computed in a precision with unit roundoff `epsilon`, agrees
/// with the [`BoundedValue`] `want` up to the common tolerance, 4 · epsilon · Σ|terms|. A format string with arguments
/// may follow.
#[macro_export]
macro_rules! assert_close {
    ($got:expr, $want:expr, $epsilon:expr $(,)?) => {
        $crate::assert_close!($got, $want, $epsilon, "{}", stringify!($got))
    };
    ($got:expr, $want:expr, $epsilon:expr, $($context:tt)+) => {
        if let Err(message) =
            $crate::check_close(f64::from($got), $want, f64::from($epsilon))
        {
            panic!("{}: {message}", format_args!($($context)+));
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancellation_shows_in_the_scale() {
        let (a, b) = (BoundedValue::new(1.0), BoundedValue::new(1.0 - f64::EPSILON));
        let difference = a - b;
        assert_eq!(difference.value, f64::EPSILON);
        assert!(difference.scale > 1.9);
        let product = difference * BoundedValue::new(3.0);
        assert!(product.scale > 5.9);
        assert!(check_close(0.0, product, f64::EPSILON).is_ok());
        assert!(check_close(1.0e-13, product, f64::EPSILON).is_err());
        assert!(check_close(f64::NAN, product, f64::EPSILON).is_err());
    }

    #[test]
    fn infinite_scales_are_no_agreement() {
        let root = BoundedValue::with_scale(0.0, 1.0).sqrt();
        assert!(check_close(5.0, root, f64::EPSILON).is_err());
        assert_eq!(BoundedValue::ZERO.sqrt(), BoundedValue::ZERO);
    }

    #[test]
    fn scales_bound_the_error_of_single_precision() {
        // Each function in f32 against f64, at arguments with large amplification.
        let check = |function: Unary, x: f32, got: f32| {
            let want = unary(function, BoundedValue::new(f64::from(x) * (1.0 + 3.0e-8)));
            assert_close!(got, want, f32::EPSILON, "{function:?}({x})");
        };
        for x in [0.9f32, 1.0001, 20.0, 1.0e-3] {
            check(Unary::Exp, x, x.exp());
            check(Unary::Log, x, x.ln());
            check(Unary::Sin, x, x.sin());
            check(Unary::Tan, x, x.tan());
            check(Unary::Sqrt, x, x.sqrt());
            check(Unary::Tanh, x, x.tanh());
        }
    }
}
