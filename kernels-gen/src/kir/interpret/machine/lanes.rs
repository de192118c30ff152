//! The arithmetic of one value in all lanes at once: slices in, a slice out.
//!
//! An operation is decoded once for all its lanes, and the common ones are plain loops that compilers vectorise.

use crate::kir::{Op, Precision, ValueId};
use fem_dsl::arena::Id;
use fem_dsl::arithmetic;
use fem_dsl::point::{Binary, Unary};

/// Rounds to a precision. For + − · / and √ of singles, computing in double and rounding once more gives the correctly
/// rounded single.
pub(super) fn rounded(precision: Precision, number: f64) -> f64 {
    match precision {
        Precision::F64 => number,
        Precision::F32 => f64::from(number as f32),
    }
}

/// Returns whether [`evaluate`] computes an operation: one that reads no memory, and no constant.
#[inline(always)]
pub(super) fn is_arithmetic(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(..)
            | Op::Binary(..)
            | Op::Fma(..)
            | Op::FmaNeg(..)
            | Op::Reciprocal(_)
            | Op::Quotient(..)
            | Op::Compare(..)
            | Op::And(..)
            | Op::Or(..)
            | Op::Not(_)
            | Op::Select(..)
            | Op::Broadcast(_)
    )
}

/// Evaluates an operation that reads no memory. `before` contains the values that precede `out`, each with as many
/// lanes as `out`. Inlined with all its loops, so that these use the vector instructions of the caller.
#[inline(always)]
pub(super) fn evaluate(op: &Op, precision: Precision, before: &[f64], out: &mut [f64]) {
    let lanes = out.len();
    let of = |id: ValueId| &before[id.index() * lanes..][..lanes];
    let truth = |is_true: bool| f64::from(u8::from(is_true));
    match *op {
        Op::Unary(function, a) => unary(function, of(a), out),
        Op::Binary(function, a, b) => binary(function, of(a), of(b), out),
        Op::Fma(a, b, c) => fma(precision, (of(a), of(b), of(c)), out, |a| a),
        Op::FmaNeg(a, b, c) => fma(precision, (of(a), of(b), of(c)), out, |a| -a),
        Op::Reciprocal(a) => map(of(a), out, |a| 1.0 / a),
        Op::Quotient(a, b) => zip(of(a), of(b), out, |a, b| a / b),
        Op::Compare(comparison, a, b) => {
            zip(of(a), of(b), out, |a, b| truth(arithmetic::compare(comparison, a, b)));
        }
        Op::And(a, b) => zip(of(a), of(b), out, |a, b| truth(a != 0.0 && b != 0.0)),
        Op::Or(a, b) => zip(of(a), of(b), out, |a, b| truth(a != 0.0 || b != 0.0)),
        Op::Not(a) => map(of(a), out, |a| truth(a == 0.0)),
        Op::Select(condition, a, b) => {
            let choose = |condition, a, b| if condition == 0.0 { b } else { a };
            zip3((of(condition), of(a), of(b)), out, choose);
        }
        Op::Broadcast(a) => copy(of(a), out),
        // Not arithmetic.
        _ => {}
    }
    if precision == Precision::F32 {
        out.iter_mut().for_each(|number| *number = rounded(precision, *number));
    }
}

/// Lanes that a loop processes at once: a full vector register, or several, of any processor.
const AT_ONCE: usize = 8;

/// Copies all lanes.
#[inline(always)]
pub(super) fn copy(a: &[f64], out: &mut [f64]) {
    map(a, out, |a| a);
}

#[inline(always)]
fn map(a: &[f64], out: &mut [f64], f: impl Fn(f64) -> f64) {
    zip3((a, a, a), out, |a, _, _| f(a));
}

#[inline(always)]
fn zip(a: &[f64], b: &[f64], out: &mut [f64], f: impl Fn(f64, f64) -> f64) {
    zip3((a, b, b), out, |a, b, _| f(a, b));
}

/// Applies a function to each lane. The inner loop has a fixed length, so that it becomes vector instructions alone.
#[inline(always)]
fn zip3((a, b, c): (&[f64], &[f64], &[f64]), out: &mut [f64], f: impl Fn(f64, f64, f64) -> f64) {
    let (blocks, rest) = out.as_chunks_mut::<AT_ONCE>();
    let (a, a_rest) = a.as_chunks::<AT_ONCE>();
    let (b, b_rest) = b.as_chunks::<AT_ONCE>();
    let (c, c_rest) = c.as_chunks::<AT_ONCE>();
    for (((out, a), b), c) in blocks.iter_mut().zip(a).zip(b).zip(c) {
        for lane in 0..AT_ONCE {
            out[lane] = f(a[lane], b[lane], c[lane]);
        }
    }
    for (((out, &a), &b), &c) in rest.iter_mut().zip(a_rest).zip(b_rest).zip(c_rest) {
        *out = f(a, b, c);
    }
}

#[inline(always)]
fn unary(function: Unary, a: &[f64], out: &mut [f64]) {
    match function {
        Unary::Neg => map(a, out, |a| -a),
        other => out.iter_mut().zip(a).for_each(|(out, &a)| *out = arithmetic::unary(other, a)),
    }
}

#[inline(always)]
fn binary(function: Binary, a: &[f64], b: &[f64], out: &mut [f64]) {
    match function {
        Binary::Add => zip(a, b, out, |a, b| a + b),
        Binary::Sub => zip(a, b, out, |a, b| a - b),
        Binary::Mul => zip(a, b, out, |a, b| a * b),
        Binary::Div => zip(a, b, out, |a, b| a / b),
        other => {
            let operands = out.iter_mut().zip(a).zip(b);
            operands.for_each(|((out, &a), &b)| *out = arithmetic::binary(other, a, b));
        }
    }
}

/// Computes s(a) · b + c with the sign s.
#[inline(always)]
fn fma(
    precision: Precision,
    operands: (&[f64], &[f64], &[f64]),
    out: &mut [f64],
    sign: impl Fn(f64) -> f64,
) {
    match precision {
        Precision::F64 => zip3(operands, out, |a, b, c| sign(a).mul_add(b, c)),
        Precision::F32 => {
            zip3(operands, out, |a, b, c| f64::from((sign(a) as f32).mul_add(b as f32, c as f32)))
        }
    }
}
