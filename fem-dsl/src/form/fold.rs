//! Local folding in the builder: constants, zeros, ones, signs, identities. Each rule holds for all finite operands.
//! 0·x and x − x become 0; no other rule enlarges, and none reduces, the set on which a formula is finite. The builder
//! has checked the operands.

use super::ExprId;
use super::expr::{Expr, MatrixFunction};
use super::exprs::Exprs;
use super::shape::{Shape, Type};
use crate::arithmetic;
use crate::terms::{Binary, Comparison, Number, Unary};

fn intern(exprs: &mut Exprs, expr: Expr, shape: Shape) -> ExprId {
    exprs.intern(expr, Type::Tensor(shape))
}

pub(super) fn constant(exprs: &mut Exprs, value: f64) -> ExprId {
    intern(exprs, Expr::Constant(Number::new(value)), Shape::SCALAR)
}

/// Returns a folded number, unless it overflowed: then the operation is kept for run time.
fn folded(exprs: &mut Exprs, value: f64) -> Option<ExprId> {
    value.is_finite().then(|| constant(exprs, value))
}

pub(super) fn zero(exprs: &mut Exprs, shape: Shape) -> ExprId {
    if shape.is_scalar() { constant(exprs, 0.0) } else { intern(exprs, Expr::Zero(shape), shape) }
}

pub(super) fn literal(exprs: &mut Exprs, shape: Shape, components: Vec<ExprId>) -> ExprId {
    if shape.is_scalar() {
        return components[0];
    }
    if components.iter().all(|&a| exprs.is_zero(a)) {
        return zero(exprs, shape);
    }
    if let Expr::Component(whole, 0) = *exprs.expr(components[0]) {
        let same = |(i, &a): (usize, &ExprId)| *exprs.expr(a) == Expr::Component(whole, i);
        if exprs.shape(whole) == shape && components.iter().enumerate().all(same) {
            return whole;
        }
    }
    intern(exprs, Expr::Literal(shape, components.into()), shape)
}

pub(super) fn component(exprs: &mut Exprs, a: ExprId, flat: usize) -> ExprId {
    if exprs.shape(a).is_scalar() {
        return a;
    }
    match exprs.expr(a) {
        Expr::Zero(_) => constant(exprs, 0.0),
        &Expr::Identity(n) => constant(exprs, if flat / n == flat % n { 1.0 } else { 0.0 }),
        Expr::Literal(_, components) => components[flat],
        _ => intern(exprs, Expr::Component(a, flat), Shape::SCALAR),
    }
}

pub(super) fn neg(exprs: &mut Exprs, a: ExprId) -> ExprId {
    let shape = exprs.shape(a);
    match *exprs.expr(a) {
        Expr::Constant(number) => constant(exprs, -number.get()),
        Expr::Zero(_) => a,
        Expr::Neg(b) => b,
        Expr::Sub(b, c) => sub(exprs, c, b),
        Expr::Mul(s, b) if exprs.value(s).is_some() => {
            let s = neg(exprs, s);
            mul(exprs, s, b)
        }
        _ => intern(exprs, Expr::Neg(a), shape),
    }
}

pub(super) fn add(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    if exprs.is_zero(a) {
        return b;
    }
    if exprs.is_zero(b) {
        return a;
    }
    if let (Some(x), Some(y)) = (exprs.value(a), exprs.value(b))
        && let Some(sum) = folded(exprs, x + y)
    {
        return sum;
    }
    let shape = exprs.shape(a);
    match (exprs.expr(a), exprs.expr(b)) {
        (_, &Expr::Neg(c)) => sub(exprs, a, c),
        (&Expr::Neg(c), _) => sub(exprs, b, c),
        (Expr::Literal(_, left), Expr::Literal(_, right)) => {
            let pairs: Vec<_> = left.iter().copied().zip(right.iter().copied()).collect();
            let components = pairs.into_iter().map(|(x, y)| add(exprs, x, y)).collect();
            literal(exprs, shape, components)
        }
        _ if a == b => {
            let two = constant(exprs, 2.0);
            mul(exprs, two, a)
        }
        _ => intern(exprs, Expr::Add(a, b), shape),
    }
}

pub(super) fn sub(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let shape = exprs.shape(a);
    if a == b {
        return zero(exprs, shape);
    }
    if exprs.is_zero(b) {
        return a;
    }
    if let (Some(x), Some(y)) = (exprs.value(a), exprs.value(b))
        && let Some(difference) = folded(exprs, x - y)
    {
        return difference;
    }
    match *exprs.expr(b) {
        Expr::Neg(c) => add(exprs, a, c),
        // Not through `neg` if b is a difference: that would recurse infinitely.
        Expr::Sub(c, d) if exprs.is_zero(a) => sub(exprs, d, c),
        _ if exprs.is_zero(a) => neg(exprs, b),
        _ => intern(exprs, Expr::Sub(a, b), shape),
    }
}

/// Computes s · a with a scalar s.
pub(super) fn mul(exprs: &mut Exprs, s: ExprId, a: ExprId) -> ExprId {
    let shape = exprs.shape(a);
    if exprs.is_zero(s) || exprs.is_zero(a) {
        return zero(exprs, shape);
    }
    if s == a && matches!(exprs.expr(s), Expr::Norm(_)) {
        return powi(exprs, s, 2);
    }
    match (exprs.value(s), exprs.value(a)) {
        (Some(x), Some(y)) => {
            if let Some(product) = folded(exprs, x * y) {
                return product;
            }
        }
        (Some(1.0), _) => return a,
        (Some(-1.0), _) => return neg(exprs, a),
        (None, Some(_)) => return mul(exprs, a, s),
        (Some(x), None) => {
            // c (d b) = (c d) b
            if let Expr::Mul(t, b) = *exprs.expr(a)
                && let Some(y) = exprs.value(t)
                && let Some(product) = folded(exprs, x * y)
            {
                return mul(exprs, product, b);
            }
            if let Expr::Neg(b) = *exprs.expr(a) {
                let s = constant(exprs, -x);
                return mul(exprs, s, b);
            }
        }
        (None, None) => {
            // Signs and constants move outwards, where they can be combined.
            if let Some(out) = outwards(exprs, s, |exprs, s| mul(exprs, s, a)) {
                return out;
            }
            if let Some(out) = outwards(exprs, a, |exprs, a| mul(exprs, s, a)) {
                return out;
            }
        }
    }
    intern(exprs, Expr::Mul(s, a), shape)
}

/// Returns c f(a) for f(c a), with a linear f and a constant c.
fn outwards(
    exprs: &mut Exprs,
    a: ExprId,
    linear: impl FnOnce(&mut Exprs, ExprId) -> ExprId,
) -> Option<ExprId> {
    match *exprs.expr(a) {
        Expr::Neg(b) => {
            let inside = linear(exprs, b);
            Some(neg(exprs, inside))
        }
        Expr::Mul(c, b) if exprs.value(c).is_some() && exprs.value(b).is_none() => {
            let inside = linear(exprs, b);
            Some(mul(exprs, c, inside))
        }
        _ => None,
    }
}

/// Computes a / s with a scalar s.
pub(super) fn div(exprs: &mut Exprs, a: ExprId, s: ExprId) -> ExprId {
    let shape = exprs.shape(a);
    if exprs.is_zero(a) && !exprs.is_zero(s) {
        return a;
    }
    if let Some(x) = exprs.value(s) {
        if x == 1.0 {
            return a;
        }
        if let Some(y) = exprs.value(a)
            && let Some(quotient) = folded(exprs, y / x)
        {
            return quotient;
        }
        if let Some(reciprocal) = arithmetic::exact_reciprocal(x) {
            let reciprocal = constant(exprs, reciprocal);
            return mul(exprs, reciprocal, a);
        }
    }
    if let Expr::Neg(b) = *exprs.expr(a) {
        let inside = div(exprs, b, s);
        return neg(exprs, inside);
    }
    intern(exprs, Expr::Div(a, s), shape)
}

pub(super) fn pow(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    if let Some(exponent) = exprs.value(b) {
        if exponent.fract() == 0.0 && exponent.abs() <= f64::from(i32::MAX) {
            #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
            return powi(exprs, a, exponent as i32);
        }
        if let Some(base) = exprs.value(a)
            && let Some(power) = folded(exprs, arithmetic::binary(Binary::Pow, base, exponent))
        {
            return power;
        }
    }
    // |a|ᵇ = (a · a)^(b/2), whose derivative is a · b (a · a)^(b/2−1), also at 0. For a constant b the power is folded
    // further.
    if let Expr::Norm(inside) = *exprs.expr(a)
        && exprs.value(b).is_none()
    {
        let (square, half) = (inner(exprs, inside, inside), constant(exprs, 0.5));
        let exponent = mul(exprs, half, b);
        return pow(exprs, square, exponent);
    }
    intern(exprs, Expr::Binary(Binary::Pow, a, b), Shape::SCALAR)
}

pub(super) fn powi(exprs: &mut Exprs, a: ExprId, n: i32) -> ExprId {
    if n == 0 {
        return constant(exprs, 1.0);
    }
    if n == 1 {
        return a;
    }
    if let Some(base) = exprs.value(a)
        && let Some(power) = folded(exprs, arithmetic::powi(base, n))
    {
        return power;
    }
    if let Expr::Norm(b) = *exprs.expr(a)
        && n > 0
        && n % 2 == 0
    {
        let square = inner(exprs, b, b);
        return powi(exprs, square, n / 2);
    }
    if let Expr::Neg(b) = *exprs.expr(a) {
        let power = powi(exprs, b, n);
        return if n % 2 == 0 { power } else { neg(exprs, power) };
    }
    if let Expr::Powi(b, m) = *exprs.expr(a)
        && m > 0
        && n > 0
        && let Some(exponent) = m.checked_mul(n)
    {
        return powi(exprs, b, exponent);
    }
    intern(exprs, Expr::Powi(a, n), Shape::SCALAR)
}

pub(super) fn dot(exprs: &mut Exprs, a: ExprId, b: ExprId, shape: Shape) -> ExprId {
    if shape.is_scalar() {
        return inner(exprs, a, b);
    }
    if exprs.is_zero(a) || exprs.is_zero(b) {
        return zero(exprs, shape);
    }
    if matches!(exprs.expr(a), Expr::Identity(_)) {
        return b;
    }
    if matches!(exprs.expr(b), Expr::Identity(_)) {
        return a;
    }
    if let Some(out) = outwards(exprs, a, |exprs, a| dot(exprs, a, b, shape)) {
        return out;
    }
    if let Some(out) = outwards(exprs, b, |exprs, b| dot(exprs, a, b, shape)) {
        return out;
    }
    intern(exprs, Expr::Dot(a, b), shape)
}

pub(super) fn inner(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    if exprs.shape(a).is_scalar() {
        return mul(exprs, a, b);
    }
    if exprs.is_zero(a) || exprs.is_zero(b) {
        return constant(exprs, 0.0);
    }
    if matches!(exprs.expr(a), Expr::Identity(_)) {
        return matrix(exprs, MatrixFunction::Trace, b);
    }
    if matches!(exprs.expr(b), Expr::Identity(_)) {
        return matrix(exprs, MatrixFunction::Trace, a);
    }
    if let Some(out) = outwards(exprs, a, |exprs, a| inner(exprs, a, b)) {
        return out;
    }
    if let Some(out) = outwards(exprs, b, |exprs, b| inner(exprs, a, b)) {
        return out;
    }
    intern(exprs, Expr::Inner(a, b), Shape::SCALAR)
}

pub(super) fn norm(exprs: &mut Exprs, a: ExprId) -> ExprId {
    if exprs.shape(a).is_scalar() {
        return unary(exprs, Unary::Abs, a);
    }
    match *exprs.expr(a) {
        Expr::Zero(_) => constant(exprs, 0.0),
        Expr::Neg(b) => norm(exprs, b),
        _ => intern(exprs, Expr::Norm(a), Shape::SCALAR),
    }
}

pub(super) fn outer(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let shape = Shape::matrix(exprs.shape(a).extent(0), exprs.shape(b).extent(0));
    if exprs.is_zero(a) || exprs.is_zero(b) {
        return zero(exprs, shape);
    }
    if let Some(out) = outwards(exprs, a, |exprs, a| outer(exprs, a, b)) {
        return out;
    }
    if let Some(out) = outwards(exprs, b, |exprs, b| outer(exprs, a, b)) {
        return out;
    }
    intern(exprs, Expr::Outer(a, b), shape)
}

pub(super) fn cross(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    if a == b || exprs.is_zero(a) || exprs.is_zero(b) {
        return zero(exprs, Shape::vector(3));
    }
    intern(exprs, Expr::Cross(a, b), Shape::vector(3))
}

pub(super) fn tensor_cross(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    let shape = Shape::matrix(3, 3);
    if exprs.is_zero(a) || exprs.is_zero(b) {
        return zero(exprs, shape);
    }
    if let Some(out) = outwards(exprs, a, |exprs, a| tensor_cross(exprs, a, b)) {
        return out;
    }
    if let Some(out) = outwards(exprs, b, |exprs, b| tensor_cross(exprs, a, b)) {
        return out;
    }
    intern(exprs, Expr::TensorCross(a, b), shape)
}

pub(super) fn matrix(exprs: &mut Exprs, function: MatrixFunction, a: ExprId) -> ExprId {
    use MatrixFunction as M;
    let argument = exprs.shape(a);
    let shape = match function {
        M::Trace | M::Determinant => Shape::SCALAR,
        M::Transpose => Shape::matrix(argument.extent(1), argument.extent(0)),
        M::Inverse | M::Cofactor | M::Sym | M::Skew | M::Dev => argument,
    };
    let linear = matches!(function, M::Trace | M::Sym | M::Skew | M::Dev | M::Transpose);
    match *exprs.expr(a) {
        Expr::Zero(_) if linear || function == M::Determinant => return zero(exprs, shape),
        Expr::Identity(n) => match function {
            #[expect(clippy::cast_precision_loss, reason = "a matrix size")]
            M::Trace => return constant(exprs, n as f64),
            M::Determinant => return constant(exprs, 1.0),
            M::Skew | M::Dev => return zero(exprs, shape),
            M::Inverse | M::Cofactor | M::Sym | M::Transpose => return a,
        },
        Expr::Matrix(inside, b) => match (function, inside) {
            (M::Transpose, M::Transpose) => return b,
            (M::Transpose | M::Sym, M::Sym) | (M::Skew, M::Skew) | (M::Dev, M::Dev) => return a,
            (M::Transpose, M::Skew) => return neg(exprs, a),
            (M::Sym, M::Skew) | (M::Skew, M::Sym) => return zero(exprs, shape),
            (M::Trace, M::Skew | M::Dev) => return constant(exprs, 0.0),
            (M::Trace, M::Sym | M::Transpose) | (M::Determinant | M::Sym, M::Transpose) => {
                return matrix(exprs, function, b);
            }
            _ => {}
        },
        _ => {}
    }
    if linear && let Some(out) = outwards(exprs, a, |exprs, a| matrix(exprs, function, a)) {
        return out;
    }
    intern(exprs, Expr::Matrix(function, a), shape)
}

pub(super) fn unary(exprs: &mut Exprs, function: Unary, a: ExprId) -> ExprId {
    if function == Unary::Neg {
        return neg(exprs, a);
    }
    if let Some(x) = exprs.value(a)
        && let Some(result) = folded(exprs, arithmetic::unary(function, x))
    {
        return result;
    }
    match (function, exprs.expr(a)) {
        (Unary::Abs, &Expr::Neg(b)) => unary(exprs, function, b),
        (Unary::Abs, Expr::Unary(Unary::Abs, _) | Expr::Norm(_)) => a,
        _ => intern(exprs, Expr::Unary(function, a), Shape::SCALAR),
    }
}

pub(super) fn binary(exprs: &mut Exprs, function: Binary, a: ExprId, b: ExprId) -> ExprId {
    if let (Some(x), Some(y)) = (exprs.value(a), exprs.value(b))
        && let Some(result) = folded(exprs, arithmetic::binary(function, x, y))
    {
        return result;
    }
    if a == b && matches!(function, Binary::Min | Binary::Max) {
        return a;
    }
    intern(exprs, Expr::Binary(function, a, b), Shape::SCALAR)
}

/// Returns the truth of a comparison of two constants; constant conditions are stored as such comparisons.
fn known(exprs: &Exprs, condition: ExprId) -> Option<bool> {
    match *exprs.expr(condition) {
        Expr::Compare(comparison, a, b) => {
            Some(arithmetic::compare(comparison, exprs.value(a)?, exprs.value(b)?))
        }
        _ => None,
    }
}

pub(super) fn and(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    match (known(exprs, a), known(exprs, b)) {
        (Some(true), _) | (_, Some(false)) => b,
        (Some(false), _) | (_, Some(true)) => a,
        _ if a == b => a,
        _ => exprs.intern(Expr::And(a, b), Type::Truth),
    }
}

pub(super) fn or(exprs: &mut Exprs, a: ExprId, b: ExprId) -> ExprId {
    match (known(exprs, a), known(exprs, b)) {
        (Some(false), _) | (_, Some(true)) => b,
        (Some(true), _) | (_, Some(false)) => a,
        _ if a == b => a,
        _ => exprs.intern(Expr::Or(a, b), Type::Truth),
    }
}

pub(super) fn not(exprs: &mut Exprs, a: ExprId) -> ExprId {
    if let Expr::Not(b) = *exprs.expr(a) {
        return b;
    }
    match known(exprs, a) {
        Some(truth) => {
            let (zero, one) = (constant(exprs, 0.0), constant(exprs, 1.0));
            let other = if truth { one } else { zero };
            exprs.intern(Expr::Compare(Comparison::Eq, zero, other), Type::Truth)
        }
        None => exprs.intern(Expr::Not(a), Type::Truth),
    }
}

pub(super) fn select(exprs: &mut Exprs, condition: ExprId, a: ExprId, b: ExprId) -> ExprId {
    let shape = exprs.shape(a);
    match known(exprs, condition) {
        Some(true) => a,
        Some(false) => b,
        None if a == b => a,
        None => intern(exprs, Expr::Select(condition, a, b), shape),
    }
}
