//! Semantics of the scalar operations in f64: one definition for constant folding and for evaluation.
//!
//! All transcendental functions use `libm`, so that folded constants, and with them generated sources, do not depend on
//! the platform.

use crate::terms::{Binary, Comparison, Unary};

/// Evaluates a function of one number.
pub fn unary(function: Unary, a: f64) -> f64 {
    match function {
        Unary::Neg => -a,
        Unary::Sqrt => a.sqrt(),
        Unary::Exp => libm::exp(a),
        Unary::Log => libm::log(a),
        Unary::Sin => libm::sin(a),
        Unary::Cos => libm::cos(a),
        Unary::Tan => libm::tan(a),
        Unary::Asin => libm::asin(a),
        Unary::Acos => libm::acos(a),
        Unary::Atan => libm::atan(a),
        Unary::Sinh => libm::sinh(a),
        Unary::Cosh => libm::cosh(a),
        Unary::Tanh => libm::tanh(a),
        Unary::Abs => a.abs(),
        Unary::Sign => f64::from(i8::from(a > 0.0) - i8::from(a < 0.0)),
    }
}

/// Evaluates a function of two numbers; `Min` and `Max` return the first on a tie.
pub fn binary(function: Binary, a: f64, b: f64) -> f64 {
    match function {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Pow => libm::pow(a, b),
        Binary::Atan2 => libm::atan2(a, b),
        Binary::Min => {
            if a <= b {
                a
            } else {
                b
            }
        }
        Binary::Max => {
            if a >= b {
                a
            } else {
                b
            }
        }
    }
}

/// Computes aⁿ by repeated multiplication; 1 for n = 0, the reciprocal of a⁻ⁿ for n < 0.
pub fn powi(a: f64, n: i32) -> f64 {
    let (mut power, mut square, mut rest) = (1.0, a, n.unsigned_abs());
    while rest > 0 {
        if rest & 1 == 1 {
            power *= square;
        }
        rest >>= 1;
        if rest > 0 {
            square *= square;
        }
    }
    if n < 0 { 1.0 / power } else { power }
}

/// Evaluates a comparison.
#[expect(clippy::float_cmp, reason = "the user asks for exact equality")]
pub fn compare(comparison: Comparison, a: f64, b: f64) -> bool {
    match comparison {
        Comparison::Lt => a < b,
        Comparison::Le => a <= b,
        Comparison::Gt => a > b,
        Comparison::Ge => a >= b,
        Comparison::Eq => a == b,
        Comparison::Ne => a != b,
    }
}

/// Returns 1/c if multiplying by it equals dividing by c exactly: c is a power of two whose reciprocal is a normal
/// number.
pub fn exact_reciprocal(c: f64) -> Option<f64> {
    let mantissa = c.to_bits() & ((1 << (f64::MANTISSA_DIGITS - 1)) - 1);
    (c.is_normal() && mantissa == 0 && (1.0 / c).is_normal()).then(|| 1.0 / c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinks_and_ties() {
        assert_eq!(unary(Unary::Sign, 0.0), 0.0);
        assert_eq!(unary(Unary::Sign, -3.0), -1.0);
        assert!(binary(Binary::Min, 0.0, -0.0).is_sign_positive());
        assert!(binary(Binary::Max, -0.0, 0.0).is_sign_negative());
    }

    #[test]
    fn whole_powers() {
        assert_eq!(powi(-2.0, 5), -32.0);
        assert_eq!(powi(-2.0, -3), -0.125);
        assert_eq!(powi(0.0, 0), 1.0);
        assert_eq!(powi(3.0, 13), 1_594_323.0);
        assert_eq!(powi(1.0, i32::MIN), 1.0);
    }

    #[test]
    fn only_powers_of_two_have_exact_reciprocals() {
        assert_eq!(exact_reciprocal(4.0), Some(0.25));
        assert_eq!(exact_reciprocal(-0.5), Some(-2.0));
        for c in [3.0, 0.1, 0.0, f64::INFINITY, f64::MIN_POSITIVE / 4.0, f64::MAX] {
            assert_eq!(exact_reciprocal(c), None, "{c}");
        }
    }
}
