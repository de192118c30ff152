//! Forward mode: derivatives of the terminals → the derivative of each expression.

use crate::arena::IndexVec;
use crate::form::{BuildError, Expr, ExprId, Exprs, MatrixFunction, Shape, Terminal};
use crate::point::{Binary, Comparison, Unary};
use std::collections::BTreeSet;

type Derivative = Option<ExprId>;

/// Computes the derivatives of `roots` for changes of the terminals by `seed` (`None` for no change). Every derivative
/// has its root's shape; none is zero.
///
/// # Errors
///
/// Errors of `seed`.
pub fn tangent(
    exprs: &mut Exprs,
    roots: &[ExprId],
    mut seed: impl FnMut(&mut Exprs, Terminal) -> Result<Derivative, BuildError>,
) -> Result<Vec<Derivative>, BuildError> {
    let order = exprs.reachable_in_order(roots);
    let mut derivatives: IndexVec<ExprId, Derivative> =
        exprs.nodes().iter().map(|_| None).collect();
    let before = exprs.begin(None);
    for id in order {
        let expr = exprs.expr(id).clone();
        exprs.derive(id);
        derivatives[id] = match expr {
            Expr::Terminal(terminal) => seed(exprs, terminal)?,
            _ => of_operation(exprs, &derivatives, id, &expr)?,
        }
        .filter(|&derivative| !exprs.is_zero(derivative));
    }
    exprs.begin(before);
    Ok(roots.iter().map(|&root| derivatives[root]).collect())
}

fn of_operation(
    exprs: &mut Exprs,
    d: &IndexVec<ExprId, Derivative>,
    id: ExprId,
    expr: &Expr,
) -> Result<Derivative, BuildError> {
    if expr.operands().iter().all(|&operand| d[operand].is_none()) {
        return Ok(None);
    }
    let derivative = match *expr {
        Expr::Constant(_)
        | Expr::Zero(_)
        | Expr::Identity(_)
        | Expr::Terminal(_)
        | Expr::Compare(..)
        | Expr::And(..)
        | Expr::Or(..)
        | Expr::Not(_) => None,
        Expr::Literal(shape, ref components) => {
            let zero = exprs.constant(0.0);
            let items = components.iter().map(|&component| d[component].unwrap_or(zero)).collect();
            Some(exprs.literal(shape, items)?)
        }
        Expr::Component(a, flat) => d[a].map(|da| exprs.component(da, flat)),
        Expr::Neg(a) => map(d[a], |da| exprs.neg(da))?,
        Expr::Add(a, b) => sum(exprs, d[a], d[b])?,
        Expr::Sub(a, b) => difference(exprs, d[a], d[b])?,
        Expr::Mul(a, b) => bilinear(exprs, (a, d[a]), (b, d[b]), Exprs::mul)?,
        Expr::Div(a, s) => quotient(exprs, id, d[a], (s, d[s]))?,
        Expr::Dot(a, b) => bilinear(exprs, (a, d[a]), (b, d[b]), Exprs::dot)?,
        Expr::Inner(a, b) if a == b => map(d[a], |da| {
            let (two, inner) = (exprs.constant(2.0), exprs.inner(a, da)?);
            exprs.mul(two, inner)
        })?,
        Expr::Inner(a, b) => bilinear(exprs, (a, d[a]), (b, d[b]), Exprs::inner)?,
        Expr::Norm(a) => map(d[a], |da| {
            let inner = exprs.inner(a, da)?;
            let ratio = exprs.div(inner, id)?;
            zero_at_zero(exprs, id, ratio)
        })?,
        Expr::Outer(a, b) => bilinear(exprs, (a, d[a]), (b, d[b]), Exprs::outer)?,
        Expr::Cross(a, b) => bilinear(exprs, (a, d[a]), (b, d[b]), Exprs::cross)?,
        Expr::TensorCross(a, b) => bilinear(exprs, (a, d[a]), (b, d[b]), Exprs::tensor_cross)?,
        Expr::Matrix(function, a) => map(d[a], |da| matrix(exprs, function, id, a, da))?,
        Expr::Unary(function, a) => map(d[a], |da| {
            let slope = slope(exprs, function, id, a)?;
            exprs.mul(slope, da)
        })?,
        Expr::Binary(function, a, b) => binary(exprs, function, id, (a, d[a]), (b, d[b]))?,
        Expr::Powi(a, n) => map(d[a], |da| {
            let slope = power_slope(exprs, a, n)?;
            exprs.mul(slope, da)
        })?,
        Expr::Select(condition, a, b) => {
            let zero = exprs.zero(exprs.shape(id));
            Some(exprs.select(condition, d[a].unwrap_or(zero), d[b].unwrap_or(zero))?)
        }
    };
    Ok(derivative)
}

fn map(
    derivative: Derivative,
    rule: impl FnOnce(ExprId) -> Result<ExprId, BuildError>,
) -> Result<Derivative, BuildError> {
    derivative.map(rule).transpose()
}

fn sum(exprs: &mut Exprs, a: Derivative, b: Derivative) -> Result<Derivative, BuildError> {
    match (a, b) {
        (Some(a), Some(b)) => exprs.add(a, b).map(Some),
        (one, None) | (None, one) => Ok(one),
    }
}

fn difference(exprs: &mut Exprs, a: Derivative, b: Derivative) -> Result<Derivative, BuildError> {
    match (a, b) {
        (Some(a), Some(b)) => exprs.sub(a, b).map(Some),
        (None, Some(b)) => exprs.neg(b).map(Some),
        (a, None) => Ok(a),
    }
}

/// Computes d(a ∘ b) = da ∘ b + a ∘ db.
fn bilinear(
    exprs: &mut Exprs,
    (a, da): (ExprId, Derivative),
    (b, db): (ExprId, Derivative),
    product: impl Fn(&mut Exprs, ExprId, ExprId) -> Result<ExprId, BuildError>,
) -> Result<Derivative, BuildError> {
    let left = map(da, |da| product(exprs, da, b))?;
    let right = map(db, |db| product(exprs, a, db))?;
    sum(exprs, left, right)
}

/// Computes dq = (da − q ds) / s for q = a / s.
fn quotient(
    exprs: &mut Exprs,
    q: ExprId,
    da: Derivative,
    (s, ds): (ExprId, Derivative),
) -> Result<Derivative, BuildError> {
    let change = map(ds, |ds| exprs.mul(ds, q))?;
    let numerator = difference(exprs, da, change)?;
    map(numerator, |numerator| exprs.div(numerator, s))
}

/// Returns `value`, but 0 if the norm `at` is 0.
pub(super) fn zero_at_zero(
    exprs: &mut Exprs,
    at: ExprId,
    value: ExprId,
) -> Result<ExprId, BuildError> {
    let zero = exprs.constant(0.0);
    let kink = exprs.compare(Comparison::Eq, at, zero)?;
    let flat = exprs.zero(exprs.shape(value));
    exprs.select(kink, flat, value)
}

/// Returns the derivative of f(A) in the direction dA; `id` is f(A).
fn matrix(
    exprs: &mut Exprs,
    function: MatrixFunction,
    id: ExprId,
    a: ExprId,
    da: ExprId,
) -> Result<ExprId, BuildError> {
    match function {
        MatrixFunction::Trace
        | MatrixFunction::Sym
        | MatrixFunction::Skew
        | MatrixFunction::Dev
        | MatrixFunction::Transpose => exprs.matrix(function, da),
        // cof A : dA
        MatrixFunction::Determinant => {
            let cofactor = exprs.matrix(MatrixFunction::Cofactor, a)?;
            exprs.inner(cofactor, da)
        }
        // −A⁻¹ dA A⁻¹
        MatrixFunction::Inverse => {
            let left = exprs.dot(id, da)?;
            let product = exprs.dot(left, id)?;
            exprs.neg(product)
        }
        MatrixFunction::Cofactor => cofactor_derivative(exprs, a, da),
    }
}

/// Returns the derivative of cof at A in the direction H, self-adjoint in H: 0 for 1×1, cof H for 2×2, the tensor cross
/// product of A and H for 3×3.
pub(super) fn cofactor_derivative(
    exprs: &mut Exprs,
    a: ExprId,
    h: ExprId,
) -> Result<ExprId, BuildError> {
    match exprs.shape(a).square() {
        Some(1) => Ok(exprs.zero(Shape::matrix(1, 1))),
        Some(2) => exprs.matrix(MatrixFunction::Cofactor, h),
        _ => exprs.tensor_cross(a, h),
    }
}

/// Computes f′(a); `id` is f(a).
pub(super) fn slope(
    exprs: &mut Exprs,
    function: Unary,
    id: ExprId,
    a: ExprId,
) -> Result<ExprId, BuildError> {
    let one = exprs.constant(1.0);
    let square = |exprs: &mut Exprs, a| {
        let two = exprs.constant(2.0);
        exprs.pow(a, two)
    };
    match function {
        Unary::Neg => Ok(exprs.constant(-1.0)),
        Unary::Sqrt => {
            let half = exprs.constant(0.5);
            exprs.div(half, id)
        }
        Unary::Exp => Ok(id),
        Unary::Log => exprs.div(one, a),
        Unary::Sin => exprs.unary(Unary::Cos, a),
        Unary::Cos => {
            let sine = exprs.unary(Unary::Sin, a)?;
            exprs.neg(sine)
        }
        Unary::Tan => {
            let square = square(exprs, id)?;
            exprs.add(one, square)
        }
        Unary::Asin | Unary::Acos => {
            let square = square(exprs, a)?;
            let rest = exprs.sub(one, square)?;
            let root = exprs.unary(Unary::Sqrt, rest)?;
            let slope = exprs.div(one, root)?;
            if function == Unary::Asin { Ok(slope) } else { exprs.neg(slope) }
        }
        Unary::Atan => {
            let square = square(exprs, a)?;
            let sum = exprs.add(one, square)?;
            exprs.div(one, sum)
        }
        Unary::Sinh => exprs.unary(Unary::Cosh, a),
        Unary::Cosh => exprs.unary(Unary::Sinh, a),
        Unary::Tanh => {
            let square = square(exprs, id)?;
            exprs.sub(one, square)
        }
        Unary::Abs => exprs.unary(Unary::Sign, a),
        Unary::Sign => Ok(exprs.constant(0.0)),
    }
}

/// Computes n aⁿ⁻¹.
pub(super) fn power_slope(exprs: &mut Exprs, a: ExprId, n: i32) -> Result<ExprId, BuildError> {
    let exponent = exprs.constant(f64::from(n) - 1.0);
    let power = exprs.pow(a, exponent)?;
    let factor = exprs.constant(f64::from(n));
    exprs.mul(factor, power)
}

/// Computes b aᵇ⁻¹, with two exceptions. It is 0 for b = 0 and any a. It is also 0 for a square a = 0 and b < 1. The
/// derivative of a is 0 there, so that the derivative of the power is 0 for b > 1/2, and by convention, as for a norm,
/// for other b.
fn slope_by_base(exprs: &mut Exprs, a: ExprId, b: ExprId) -> Result<ExprId, BuildError> {
    let (zero, one) = (exprs.constant(0.0), exprs.constant(1.0));
    let exponent = exprs.sub(b, one)?;
    let power = exprs.pow(a, exponent)?;
    let slope = exprs.mul(b, power)?;
    match exprs.value(b) {
        Some(b) if b < 1.0 && is_square(exprs, a) => zero_at_zero(exprs, a, slope),
        Some(_) => Ok(slope),
        None => {
            let mut flat = exprs.compare(Comparison::Eq, b, zero)?;
            if is_square(exprs, a) {
                let touches = exprs.compare(Comparison::Eq, a, zero)?;
                let steep = exprs.compare(Comparison::Lt, b, one)?;
                let kink = exprs.and(touches, steep)?;
                flat = exprs.or(flat, kink)?;
            }
            exprs.select(flat, zero, slope)
        }
    }
}

/// Returns whether a scalar is a square, or a sum of squares, so that it is nonnegative and its derivative vanishes
/// with it.
fn is_square(exprs: &Exprs, a: ExprId) -> bool {
    let positive =
        |a: ExprId| matches!(exprs.expr(a), Expr::Constant(number) if number.get() > 0.0);
    let (mut open, mut seen) = (vec![a], BTreeSet::new());
    while let Some(a) = open.pop() {
        if !seen.insert(a) {
            continue;
        }
        match *exprs.expr(a) {
            Expr::Inner(x, y) if x == y => {}
            Expr::Mul(x, y) if x == y => {}
            Expr::Powi(_, n) if n > 0 && n % 2 == 0 => {}
            Expr::Norm(_) | Expr::Unary(Unary::Abs, _) => {}
            Expr::Mul(s, x) if positive(s) => open.push(x),
            Expr::Div(x, s) if positive(s) => open.push(x),
            Expr::Add(x, y) => open.extend([x, y]),
            _ => return false,
        }
    }
    true
}

/// Computes the two partial derivatives of f(a, b), if requested; `id` is f(a, b).
pub(super) fn binary_slopes(
    exprs: &mut Exprs,
    function: Binary,
    id: ExprId,
    (a, wants_a): (ExprId, bool),
    (b, wants_b): (ExprId, bool),
) -> Result<[Derivative; 2], BuildError> {
    let (zero, one) = (exprs.constant(0.0), exprs.constant(1.0));
    let (left, right) = match function {
        Binary::Add => (one, one),
        Binary::Sub => (one, exprs.constant(-1.0)),
        Binary::Mul => (b, a),
        Binary::Div => {
            let reciprocal = exprs.div(one, b)?;
            let product = exprs.mul(id, reciprocal)?;
            (reciprocal, exprs.neg(product)?)
        }
        Binary::Pow => {
            let by_base = if wants_a { slope_by_base(exprs, a, b)? } else { zero };
            let by_exponent = if wants_b {
                // It vanishes with aᵇ.
                let log = exprs.unary(Unary::Log, a)?;
                let slope = exprs.mul(id, log)?;
                if exprs.value(a).is_some() { slope } else { zero_at_zero(exprs, id, slope)? }
            } else {
                zero
            };
            (by_base, by_exponent)
        }
        Binary::Atan2 => {
            let squares = (exprs.mul(a, a)?, exprs.mul(b, b)?);
            let sum = exprs.add(squares.0, squares.1)?;
            let ratio = exprs.div(a, sum)?;
            (exprs.div(b, sum)?, exprs.neg(ratio)?)
        }
        Binary::Min | Binary::Max => {
            let order = if function == Binary::Min { Comparison::Le } else { Comparison::Ge };
            let first = exprs.compare(order, a, b)?;
            (exprs.select(first, one, zero)?, exprs.select(first, zero, one)?)
        }
    };
    Ok([wants_a.then_some(left), wants_b.then_some(right)])
}

fn binary(
    exprs: &mut Exprs,
    function: Binary,
    id: ExprId,
    (a, da): (ExprId, Derivative),
    (b, db): (ExprId, Derivative),
) -> Result<Derivative, BuildError> {
    if matches!(function, Binary::Min | Binary::Max) {
        let order = if function == Binary::Min { Comparison::Le } else { Comparison::Ge };
        let (zero, first) = (exprs.constant(0.0), exprs.compare(order, a, b)?);
        return exprs.select(first, da.unwrap_or(zero), db.unwrap_or(zero)).map(Some);
    }
    let slopes = binary_slopes(exprs, function, id, (a, da.is_some()), (b, db.is_some()))?;
    let mut parts = [None; 2];
    for (part, (slope, d)) in parts.iter_mut().zip(slopes.into_iter().zip([da, db])) {
        if let (Some(slope), Some(d)) = (slope, d) {
            *part = Some(exprs.mul(slope, d)?);
        }
    }
    sum(exprs, parts[0], parts[1])
}
