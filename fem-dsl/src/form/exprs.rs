//! The arena of tensor expressions: hash-consed, typed, with the origin of each.

use super::ExprId;
use super::expr::Expr;
use super::shape::{Shape, Type};
use crate::arena::{Id, IndexVec, reachable};
use crate::source::Span;
use std::collections::BTreeMap;

/// The origin of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its location in the text.
    pub span: Span,
    /// True for a part of the derivative of the text.
    pub derived: bool,
}

/// A hash-consed arena of typed tensor expressions, operands first.
#[derive(Clone, Debug, Default)]
pub struct Exprs {
    nodes: IndexVec<ExprId, Expr>,
    types: IndexVec<ExprId, Type>,
    ids: BTreeMap<Expr, ExprId>,
    origins: IndexVec<ExprId, Option<Origin>>,
    /// The origin of expressions under construction.
    origin: Option<Origin>,
}

/// Equal expressions are equal regardless of their locations.
impl PartialEq for Exprs {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes && self.types == other.types
    }
}

impl Exprs {
    /// Returns an empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the expressions, operands first.
    pub fn nodes(&self) -> &IndexVec<ExprId, Expr> {
        &self.nodes
    }

    /// Returns the operation that defines an expression.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.nodes[id]
    }

    /// Returns an expression's type.
    pub fn ty(&self, id: ExprId) -> Type {
        self.types[id]
    }

    /// Returns an expression's shape; a condition counts as a scalar.
    pub fn shape(&self, id: ExprId) -> Shape {
        match self.types[id] {
            Type::Tensor(shape) => shape,
            Type::Truth => Shape::SCALAR,
        }
    }

    /// Returns whether an expression is known to be zero.
    pub fn is_zero(&self, id: ExprId) -> bool {
        matches!(self.expr(id), Expr::Zero(_)) || self.value(id) == Some(0.0)
    }

    /// Returns the value of a constant expression.
    pub fn value(&self, id: ExprId) -> Option<f64> {
        match self.expr(id) {
            Expr::Constant(number) => Some(number.get()),
            _ => None,
        }
    }

    /// Returns the expressions that `roots` depend on, operands first.
    pub fn reachable_in_order(&self, roots: &[ExprId]) -> Vec<ExprId> {
        reachable(roots, |id, each| self.nodes[id].for_operands(each))
    }

    /// Returns the id of `expr` with the given type; appends it if it is new. Neither checks nor folds.
    pub(super) fn intern(&mut self, expr: Expr, ty: Type) -> ExprId {
        if let Some(&id) = self.ids.get(&expr) {
            return id;
        }
        debug_assert!(
            expr.operands().iter().all(|operand| operand.index() < self.nodes.len()),
            "operands should precede their expression"
        );
        let id = self.nodes.push(expr.clone());
        self.types.push(ty);
        self.origins.push(self.origin);
        self.ids.insert(expr, id);
        id
    }

    /// Sets the origin of subsequent expressions, and returns the previous one.
    pub fn begin(&mut self, origin: Option<Origin>) -> Option<Origin> {
        std::mem::replace(&mut self.origin, origin)
    }

    /// Marks subsequent expressions as derivative of this expression.
    pub(crate) fn derive(&mut self, id: ExprId) {
        self.origin = self.origins[id].map(|origin| Origin { derived: true, ..origin });
    }

    /// Moves the locations of all expressions; returns `None` if one has no location.
    pub(crate) fn move_origins(&mut self, to: impl Fn(Span) -> Option<Span>) -> Option<()> {
        for origin in self.origins.iter_mut().chain([&mut self.origin]).flatten() {
            origin.span = to(origin.span)?;
        }
        Some(())
    }

    /// Returns the origin of an expression, if it was known at its first construction.
    pub fn origin(&self, id: ExprId) -> Option<Origin> {
        self.origins[id]
    }
}
