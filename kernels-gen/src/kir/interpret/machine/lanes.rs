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

/// Evaluates an operation that reads no memory. `before` contains the values that precede `out`, each with as many
/// lanes as `out`.
pub(super) fn evaluate(op: &Op, precision: Precision, before: &[f64], out: &mut [f64]) {
    let lanes = out.len();
    let of = |id: ValueId| &before[id.index() * lanes..][..lanes];
    let truth = |is_true: bool| f64::from(u8::from(is_true));
    match *op {
        Op::Unary(function, a) => unary(function, of(a), out),
        Op::Binary(function, a, b) => binary(function, of(a), of(b), out),
        Op::Fma(a, b, c) => fma(precision, of(a), of(b), of(c), out),
        Op::FmaNeg(a, b, c) => fma_neg(precision, of(a), of(b), of(c), out),
        Op::Reciprocal(a) => map(of(a), out, |a| 1.0 / a),
        Op::Quotient(a, b) => zip(of(a), of(b), out, |a, b| a / b),
        Op::Compare(comparison, a, b) => {
            zip(of(a), of(b), out, |a, b| truth(arithmetic::compare(comparison, a, b)));
        }
        Op::And(a, b) => zip(of(a), of(b), out, |a, b| truth(a != 0.0 && b != 0.0)),
        Op::Or(a, b) => zip(of(a), of(b), out, |a, b| truth(a != 0.0 || b != 0.0)),
        Op::Not(a) => map(of(a), out, |a| truth(a == 0.0)),
        Op::Select(condition, a, b) => {
            let (condition, a, b) = (of(condition), of(a), of(b));
            for lane in 0..lanes {
                out[lane] = if condition[lane] == 0.0 { b[lane] } else { a[lane] };
            }
        }
        Op::Broadcast(a) => out.copy_from_slice(of(a)),
        // Set once by the machine.
        Op::Constant(_)
        | Op::LoadLocal(..)
        | Op::LoadShared(..)
        | Op::LoadTable(..)
        | Op::LoadUniform(..)
        | Op::LoadLanes(..)
        | Op::Flag { .. }
        | Op::Gather { .. }
        | Op::LoadAt { .. } => {}
    }
    if precision == Precision::F32 {
        out.iter_mut().for_each(|number| *number = rounded(precision, *number));
    }
}

fn map(a: &[f64], out: &mut [f64], f: impl Fn(f64) -> f64) {
    out.iter_mut().zip(a).for_each(|(out, &a)| *out = f(a));
}

fn zip(a: &[f64], b: &[f64], out: &mut [f64], f: impl Fn(f64, f64) -> f64) {
    out.iter_mut().zip(a).zip(b).for_each(|((out, &a), &b)| *out = f(a, b));
}

fn unary(function: Unary, a: &[f64], out: &mut [f64]) {
    match function {
        Unary::Neg => map(a, out, |a| -a),
        other => map(a, out, |a| arithmetic::unary(other, a)),
    }
}

fn binary(function: Binary, a: &[f64], b: &[f64], out: &mut [f64]) {
    match function {
        Binary::Add => zip(a, b, out, |a, b| a + b),
        Binary::Sub => zip(a, b, out, |a, b| a - b),
        Binary::Mul => zip(a, b, out, |a, b| a * b),
        Binary::Div => zip(a, b, out, |a, b| a / b),
        other => zip(a, b, out, |a, b| arithmetic::binary(other, a, b)),
    }
}

/// Computes a · b + c.
fn fma(precision: Precision, a: &[f64], b: &[f64], c: &[f64], out: &mut [f64]) {
    let operands = out.iter_mut().zip(a).zip(b).zip(c);
    match precision {
        Precision::F64 => operands.for_each(|(((out, a), b), c)| *out = a.mul_add(*b, *c)),
        Precision::F32 => operands.for_each(|(((out, &a), &b), &c)| {
            *out = f64::from((a as f32).mul_add(b as f32, c as f32));
        }),
    }
}

/// Computes c − a · b.
fn fma_neg(precision: Precision, a: &[f64], b: &[f64], c: &[f64], out: &mut [f64]) {
    let operands = out.iter_mut().zip(a).zip(b).zip(c);
    match precision {
        Precision::F64 => operands.for_each(|(((out, a), b), c)| *out = (-a).mul_add(*b, *c)),
        Precision::F32 => operands.for_each(|(((out, &a), &b), &c)| {
            *out = f64::from((-a as f32).mul_add(b as f32, c as f32));
        }),
    }
}
