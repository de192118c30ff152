//! Linearity of a weak form in its test functions.

use crate::form::{Expr, ExprId, Exprs, MatrixFunction as M, Terminal};
use std::collections::BTreeMap;

/// How an expression depends on the test functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dependence {
    /// It is zero, which is any of the others too.
    Zero,
    None,
    Linear,
    Other,
}

impl Dependence {
    /// Of a sum.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Zero, one) | (one, Self::Zero) => one,
            (a, b) if a == b => a,
            _ => Self::Other,
        }
    }

    /// Of a product.
    fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Zero, _) | (_, Self::Zero) => Self::Zero,
            (Self::None, one) | (one, Self::None) => one,
            _ => Self::Other,
        }
    }

    /// Of anything else.
    fn through(self) -> Self {
        if matches!(self, Self::Zero | Self::None) { Self::None } else { Self::Other }
    }
}

/// Whether a weak form is linear and homogeneous in its test functions.
pub(super) fn linear_in_tests(exprs: &Exprs, value: ExprId) -> bool {
    let mut dependence: BTreeMap<ExprId, Dependence> = BTreeMap::new();
    for id in exprs.reachable_in_order(&[value]) {
        let of = |a: &ExprId| dependence[a];
        let expr = exprs.expr(id);
        let result = match expr {
            _ if exprs.is_zero(id) => Dependence::Zero,
            Expr::Constant(_) | Expr::Zero(_) | Expr::Identity(_) => Dependence::None,
            Expr::Terminal(Terminal::Test(_) | Terminal::TestGradient(_)) => Dependence::Linear,
            Expr::Terminal(_) => Dependence::None,
            Expr::Literal(_, components) => {
                components.iter().map(of).fold(Dependence::Zero, Dependence::plus)
            }
            Expr::Component(a, _)
            | Expr::Neg(a)
            | Expr::Matrix(M::Trace | M::Sym | M::Skew | M::Dev | M::Transpose, a) => of(a),
            Expr::Add(a, b) | Expr::Sub(a, b) => of(a).plus(of(b)),
            Expr::Mul(a, b)
            | Expr::Dot(a, b)
            | Expr::Inner(a, b)
            | Expr::Outer(a, b)
            | Expr::Cross(a, b)
            | Expr::TensorCross(a, b) => of(a).times(of(b)),
            Expr::Div(a, s) if of(s) == Dependence::None => of(a),
            Expr::Select(c, a, b) if of(c) == Dependence::None => of(a).plus(of(b)),
            Expr::Matrix(M::Cofactor, a) if exprs.shape(*a).square() == Some(2) => of(a),
            Expr::Div(..)
            | Expr::Select(..)
            | Expr::Matrix(..)
            | Expr::Norm(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Powi(..)
            | Expr::Compare(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_) => expr.operands().iter().map(of).fold(Dependence::None, |all, one| {
                if one.through() == Dependence::None { all } else { Dependence::Other }
            }),
        };
        dependence.insert(id, result);
    }
    matches!(dependence[&value], Dependence::Linear | Dependence::Zero)
}
