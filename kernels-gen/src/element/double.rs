//! Arithmetic on unevaluated sums of two `f64` (about 32 digits), in which the tables of this
//! module are computed before they are rounded once.
//!
//! Error-free sums and products after T. J. Dekker, "A floating-point technique for extending the
//! available precision", Numerische Mathematik 18 (1971), with the product's error from a fused
//! multiply-add. Only correctly rounded operations are used, so results do not depend on the
//! machine.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// hi + lo with |lo| at most half a unit in the last place of hi.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DoubleDouble {
    hi: f64,
    lo: f64,
}

impl DoubleDouble {
    pub(super) const ZERO: Self = Self { hi: 0.0, lo: 0.0 };
    pub(super) const ONE: Self = Self { hi: 1.0, lo: 0.0 };

    /// Returns the nearest `f64`.
    #[inline]
    pub(super) fn round(self) -> f64 {
        self.hi
    }

    /// Returns the nearest `f64`, or 0 if the number is a rounding error in a table whose largest entries are of
    /// order 1.
    #[inline]
    pub(super) fn round_or_zero(self) -> f64 {
        if self.hi.abs() < 1.0e-22 { 0.0 } else { self.hi }
    }

    #[inline]
    pub(super) fn abs(self) -> Self {
        if self.hi < 0.0 { -self } else { self }
    }

    #[inline]
    fn renormalised(hi: f64, lo: f64) -> Self {
        let sum = hi + lo;
        Self { hi: sum, lo: lo - (sum - hi) }
    }
}

impl From<f64> for DoubleDouble {
    #[inline]
    fn from(value: f64) -> Self {
        Self { hi: value, lo: 0.0 }
    }
}

impl From<usize> for DoubleDouble {
    #[inline]
    fn from(value: usize) -> Self {
        Self::from(value as f64)
    }
}

/// Returns a + b without error.
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

impl Add for DoubleDouble {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        let (hi, error) = two_sum(self.hi, other.hi);
        let (lo, rest) = two_sum(self.lo, other.lo);
        let first = Self::renormalised(hi, error + lo);
        Self::renormalised(first.hi, first.lo + rest)
    }
}

impl AddAssign for DoubleDouble {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Neg for DoubleDouble {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for DoubleDouble {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        let hi = self.hi * other.hi;
        let error = self.hi.mul_add(other.hi, -hi);
        Self::renormalised(hi, error + (self.hi * other.lo + self.lo * other.hi))
    }
}

impl Div for DoubleDouble {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        let first = self.hi / other.hi;
        let rest = self - other * Self::from(first);
        let second = rest.hi / other.hi;
        let rest = rest - other * Self::from(second);
        Self::renormalised(first, second) + Self::from(rest.hi / other.hi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_digits() {
        let third = DoubleDouble::ONE / DoubleDouble::from(3usize);
        let error = (third * DoubleDouble::from(3usize) - DoubleDouble::ONE).round();
        assert!(error.abs() < 1.0e-31, "{error}");
        let tenth = DoubleDouble::ONE / DoubleDouble::from(10usize);
        let sum = (0..10).fold(DoubleDouble::ZERO, |sum, _| sum + tenth);
        assert!((sum - DoubleDouble::ONE).round().abs() < 1.0e-30);
        assert!(third.lo != 0.0);
    }
}
