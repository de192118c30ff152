//! Copies of expressions, in another arena or with other operands.

use super::ExprId;
use super::build::BuildError;
use super::expr::{Expr, Terminal};
use super::exprs::Exprs;
use super::shape::Shape;
use std::collections::BTreeMap;

impl Exprs {
    /// Copies the expression `id` of `old` to this arena; `to` maps its operands.
    pub(crate) fn copy_from(
        &mut self,
        old: &Self,
        id: ExprId,
        to: impl Fn(ExprId) -> ExprId,
    ) -> Result<ExprId, BuildError> {
        self.rebuild(old.expr(id), old.shape(id), to)
    }

    /// Returns an expression of a known shape with other operands; `to` maps them.
    pub(crate) fn rebuild(
        &mut self,
        expr: &Expr,
        shape: Shape,
        to: impl Fn(ExprId) -> ExprId,
    ) -> Result<ExprId, BuildError> {
        match *expr {
            Expr::Constant(number) => Ok(self.constant(number.get())),
            Expr::Zero(shape) => Ok(self.zero(shape)),
            Expr::Identity(n) => Ok(self.identity(n)),
            Expr::Terminal(terminal) => Ok(self.terminal(terminal, shape)),
            Expr::Literal(shape, ref components) => {
                let components = components.iter().map(|&a| to(a)).collect();
                self.literal(shape, components)
            }
            Expr::Component(a, flat) => Ok(self.component(to(a), flat)),
            Expr::Neg(a) => self.neg(to(a)),
            Expr::Add(a, b) => self.add(to(a), to(b)),
            Expr::Sub(a, b) => self.sub(to(a), to(b)),
            Expr::Mul(s, a) => self.mul(to(s), to(a)),
            Expr::Div(a, s) => self.div(to(a), to(s)),
            Expr::Dot(a, b) => self.dot(to(a), to(b)),
            Expr::Inner(a, b) => self.inner(to(a), to(b)),
            Expr::Norm(a) => self.norm(to(a)),
            Expr::Outer(a, b) => self.outer(to(a), to(b)),
            Expr::Cross(a, b) => self.cross(to(a), to(b)),
            Expr::TensorCross(a, b) => self.tensor_cross(to(a), to(b)),
            Expr::Matrix(function, a) => self.matrix(function, to(a)),
            Expr::Unary(function, a) => self.unary(function, to(a)),
            Expr::Binary(function, a, b) => self.binary(function, to(a), to(b)),
            Expr::Powi(a, n) => {
                let exponent = self.constant(f64::from(n));
                self.pow(to(a), exponent)
            }
            Expr::Compare(comparison, a, b) => self.compare(comparison, to(a), to(b)),
            Expr::And(a, b) => self.and(to(a), to(b)),
            Expr::Or(a, b) => self.or(to(a), to(b)),
            Expr::Not(a) => self.not(to(a)),
            Expr::Select(c, a, b) => self.select(to(c), to(a), to(b)),
        }
    }

    /// Copies expressions of `old` to this arena, with replacements of the same shape for terminals for which `replace`
    /// returns one.
    pub(crate) fn replaced(
        &mut self,
        old: &Self,
        roots: &[ExprId],
        replace: impl Fn(Terminal) -> Option<ExprId>,
    ) -> Result<Vec<ExprId>, BuildError> {
        let mut moved: BTreeMap<ExprId, ExprId> = BTreeMap::new();
        for id in old.reachable_in_order(roots) {
            let other = match old.expr(id) {
                Expr::Terminal(terminal) => replace(*terminal),
                _ => None,
            };
            let new = match other {
                Some(other) => other,
                None => self.copy_from(old, id, |a| moved[&a])?,
            };
            moved.insert(id, new);
        }
        Ok(roots.iter().map(|root| moved[root]).collect())
    }
}
