//! The functions of the language, applied to checked arguments.

use super::side_words;
use crate::ast::SideWord;
use crate::differentiate::{curl, divergence, gradient, rate};
use crate::form::{BuildError, Expr, ExprId, Form, MatrixFunction, Shape, Terminal, Type};
use crate::point::{Binary, Unary};

type BuildResult = Result<ExprId, BuildError>;

#[derive(Clone, Copy)]
enum Function {
    Dot,
    Inner,
    Norm,
    Outer,
    Cross,
    Gradient,
    Rate,
    Divergence,
    Curl,
    Tangential,
    Matrix(MatrixFunction),
    Unary(Unary),
    Binary(Binary),
    Side(SideWord),
    Penalty,
}

fn function(name: &str) -> Option<Function> {
    Some(match name {
        "dot" => Function::Dot,
        "inner" => Function::Inner,
        "norm" => Function::Norm,
        "outer" => Function::Outer,
        "cross" => Function::Cross,
        "tr" => Function::Matrix(MatrixFunction::Trace),
        "det" => Function::Matrix(MatrixFunction::Determinant),
        "inv" => Function::Matrix(MatrixFunction::Inverse),
        "cof" => Function::Matrix(MatrixFunction::Cofactor),
        "sym" => Function::Matrix(MatrixFunction::Sym),
        "skew" => Function::Matrix(MatrixFunction::Skew),
        "dev" => Function::Matrix(MatrixFunction::Dev),
        "transpose" => Function::Matrix(MatrixFunction::Transpose),
        "grad" => Function::Gradient,
        "dt" => Function::Rate,
        "div" => Function::Divergence,
        "curl" => Function::Curl,
        "sqrt" => Function::Unary(Unary::Sqrt),
        "exp" => Function::Unary(Unary::Exp),
        "log" => Function::Unary(Unary::Log),
        "sin" => Function::Unary(Unary::Sin),
        "cos" => Function::Unary(Unary::Cos),
        "tan" => Function::Unary(Unary::Tan),
        "asin" => Function::Unary(Unary::Asin),
        "acos" => Function::Unary(Unary::Acos),
        "atan" => Function::Unary(Unary::Atan),
        "atan2" => Function::Binary(Binary::Atan2),
        "sinh" => Function::Unary(Unary::Sinh),
        "cosh" => Function::Unary(Unary::Cosh),
        "tanh" => Function::Unary(Unary::Tanh),
        "abs" => Function::Unary(Unary::Abs),
        "sign" => Function::Unary(Unary::Sign),
        "min" => Function::Binary(Binary::Min),
        "max" => Function::Binary(Binary::Max),
        "penalty" => Function::Penalty,
        "tangential" => Function::Tangential,
        _ => return SideWord::of(name).map(Function::Side),
    })
}

/// Returns the number of arguments of a function of the language; `None` for unknown functions.
pub(super) fn argument_count(name: &str) -> Option<usize> {
    Some(match function(name)? {
        Function::Dot
        | Function::Inner
        | Function::Outer
        | Function::Cross
        | Function::Binary(_) => 2,
        Function::Norm
        | Function::Gradient
        | Function::Rate
        | Function::Divergence
        | Function::Curl
        | Function::Tangential
        | Function::Matrix(_)
        | Function::Unary(_)
        | Function::Side(_)
        | Function::Penalty => 1,
    })
}

/// Applies a function of the language, on facets between cells if `interior`; `None` for an unknown function or a wrong number of arguments, which name
/// resolution has reported.
pub(super) fn apply(
    form: &mut Form,
    name: &str,
    arguments: &[ExprId],
    interior: bool,
) -> Option<BuildResult> {
    let exprs = &mut form.exprs;
    Some(match (function(name)?, arguments) {
        (Function::Dot, &[a, b]) => exprs.dot(a, b),
        (Function::Inner, &[a, b]) => exprs.inner(a, b),
        (Function::Outer, &[a, b]) => exprs.outer(a, b),
        (Function::Cross, &[a, b]) => exprs.cross(a, b),
        (Function::Binary(function), &[a, b]) => exprs.binary(function, a, b),
        (Function::Norm, &[a]) => exprs.norm(a),
        (Function::Matrix(function), &[a]) => exprs.matrix(function, a),
        (Function::Unary(function), &[a]) => exprs.unary(function, a),
        (Function::Gradient, &[a]) => {
            differentiable(form, "grad", a).and_then(|()| gradient(form, a))
        }
        (Function::Rate, &[a]) => differentiable(form, "dt", a).and_then(|()| rate(form, a)),
        (Function::Side(word), &[a]) => side_words::apply(form, word, a, interior),
        (Function::Penalty, &[a]) => match *form.exprs.expr(a) {
            Expr::Terminal(Terminal::Field(field, None)) => {
                Ok(form.exprs.terminal(Terminal::Penalty(field, None), Shape::SCALAR))
            }
            _ => {
                let (operation, expected) = ("penalty", "the name of a field");
                Err(BuildError::Operand { operation, expected, found: form.exprs.ty(a) })
            }
        },
        (Function::Divergence, &[a]) => divergence(form, a),
        (Function::Curl, &[a]) => curl(form, a),
        (Function::Tangential, &[a]) => tangential(form, a),
        _ => return None,
    })
}

/// Computes a − (a·n) n.
fn tangential(form: &mut Form, a: ExprId) -> BuildResult {
    let (vector, found) = (Shape::vector(form.dim), form.exprs.ty(a));
    if found != Type::Tensor(vector) {
        let expected = ["a vector of 1", "a vector of 2", "a vector of 3"][form.dim - 1];
        return Err(BuildError::Operand { operation: "tangential", expected, found });
    }
    let exprs = &mut form.exprs;
    let normal = exprs.terminal(Terminal::Normal, vector);
    let along = exprs.dot(a, normal)?;
    let along = exprs.mul(along, normal)?;
    exprs.sub(a, along)
}

fn differentiable(form: &Form, operation: &'static str, a: ExprId) -> Result<(), BuildError> {
    match form.exprs.ty(a) {
        Type::Tensor(_) => Ok(()),
        found => {
            Err(BuildError::Operand { operation, expected: "a number, vector or matrix", found })
        }
    }
}
