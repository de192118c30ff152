//! Linearity of a weak form in its test functions: the offending terms, and their kind.

use super::expression::{Checker, Value};
use super::names::{Block, ExprContext, Meaning};
use crate::ast::{self, BinaryOp, ExprKind, UnaryOp};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::form::{Expr, ExprId, Exprs, MatrixFunction as M, Terminal};
use crate::source::Span;
use std::collections::BTreeMap;

/// The dependence of an expression on the test functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dependence {
    /// Zero, which is compatible with all others.
    Zero,
    None,
    Linear,
    Other,
}

impl Dependence {
    /// Returns the dependence of a sum.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Zero, one) | (one, Self::Zero) => one,
            (a, b) if a == b => a,
            _ => Self::Other,
        }
    }

    /// Returns the dependence of a product.
    fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Zero, _) | (_, Self::Zero) => Self::Zero,
            (Self::None, one) | (one, Self::None) => one,
            _ => Self::Other,
        }
    }

    /// Returns the dependence of any other operation.
    fn through(self) -> Self {
        if matches!(self, Self::Zero | Self::None) { Self::None } else { Self::Other }
    }
}

/// Returns whether a weak form is linear and homogeneous in its test functions.
pub(super) fn linear_in_tests(exprs: &Exprs, value: ExprId) -> bool {
    matches!(dependences(exprs, &[value])[&value], Dependence::Linear | Dependence::Zero)
}

/// Returns the dependence on the test functions of each expression that `values` depend on.
fn dependences(exprs: &Exprs, values: &[ExprId]) -> BTreeMap<ExprId, Dependence> {
    let mut dependence: BTreeMap<ExprId, Dependence> = BTreeMap::new();
    for id in exprs.reachable_in_order(values) {
        let of = |a: &ExprId| dependence[a];
        let expr = exprs.expr(id);
        let result = match expr {
            _ if exprs.is_zero(id) => Dependence::Zero,
            Expr::Constant(_) | Expr::Zero(_) | Expr::Identity(_) => Dependence::None,
            Expr::Terminal(
                Terminal::Test(..) | Terminal::TestGradient(..) | Terminal::TestHessian(..),
            ) => Dependence::Linear,
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
    dependence
}

/// The reason why a part of a weak form is not linear.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Offence {
    /// A term without any test function.
    NoTest,
    /// Two test functions in one term.
    Product,
    /// A test function in a power.
    Power,
    /// A test function in a denominator.
    Denominator,
    /// A test function in a condition.
    Condition,
    /// A test function in a nonlinear function.
    Function(String),
    /// A test function in a name for a nonlinear expression, with its declaration.
    Named(String, Span),
    /// Anything else.
    Other,
}

/// Returns the parts of the weak form `root` that are not linear in the test functions, each minimal part once.
pub(super) fn offences(
    checker: &mut Checker<'_>,
    root: ast::ExprId,
    region: Option<Block>,
) -> Vec<Diagnostic> {
    let values = checker.values(root, ExprContext::region(region));
    let known: Vec<ExprId> = values.values().copied().flatten().collect();
    let dependence = dependences(&checker.form.exprs, &known);
    let mut search = Search { checker, values, dependence, found: Vec::new() };
    search.run(root);
    let mut found = search.found;
    if found.is_empty() {
        found.push((checker.span(root), Offence::Other));
    }
    let tests: Vec<String> =
        checker.names.tests.iter().map(|(name, _)| format!("`{}`", name.name)).collect();
    found.into_iter().map(|(span, offence)| offence.describe(span, &tests)).collect()
}

impl Offence {
    fn describe(&self, span: Span, tests: &[String]) -> Diagnostic {
        let label = match self {
            Self::NoTest => "no test function in this term".to_owned(),
            Self::Product => "test functions are multiplied here".to_owned(),
            Self::Power => "a power of a test function".to_owned(),
            Self::Denominator => "divided by a test function".to_owned(),
            Self::Condition => "a test function decides here".to_owned(),
            Self::Function(name) => format!("`{name}` of a test function"),
            Self::Named(name, _) => format!("`{name}` is not linear in them"),
            Self::Other => "this is not linear in them".to_owned(),
        };
        let message = "a residual is linear in its test functions";
        let diagnostic = Diagnostic::new(Code::NotLinear, message).label(span, label);
        match self {
            Self::NoTest if tests.is_empty() => {
                diagnostic.help("declare one, `test v for u;`, and multiply by it or its gradient")
            }
            Self::NoTest => {
                let tests = tests.join(" or ");
                diagnostic.help(format!("multiply this term by {tests}, or by a gradient of it"))
            }
            Self::Named(_, declared) => diagnostic
                .secondary(*declared, "declared here")
                .help("every term has exactly one test function, or its gradient, as a factor"),
            _ => diagnostic
                .help("every term has exactly one test function, or its gradient, as a factor"),
        }
    }
}

/// The search for offences in the text of a weak form.
struct Search<'c, 'a> {
    checker: &'c Checker<'a>,
    values: BTreeMap<ast::ExprId, Value>,
    dependence: BTreeMap<ExprId, Dependence>,
    found: Vec<(Span, Offence)>,
}

impl Search<'_, '_> {
    fn run(&mut self, root: ast::ExprId) {
        // Parts that should be linear; the first in the text on top.
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            match self.dependence(id) {
                Dependence::Zero | Dependence::Linear => {}
                Dependence::None => self.offend(id, Offence::NoTest),
                Dependence::Other => {
                    let before = open.len();
                    self.inside(id, &mut open);
                    open[before..].reverse();
                }
            }
        }
    }

    fn offend(&mut self, id: ast::ExprId, offence: Offence) {
        self.found.push((self.checker.span(id), offence));
    }

    fn dependence(&self, id: ast::ExprId) -> Dependence {
        let value = self.values.get(&id).copied().flatten();
        value.map_or(Dependence::Zero, |value| self.dependence[&value])
    }

    /// Examines an expression that is neither linear nor free of tests: reports it, or adds its parts to the search.
    fn inside(&mut self, id: ast::ExprId, open: &mut Vec<ast::ExprId>) {
        let file = self.checker.file;
        match &file.exprs[id].kind {
            ExprKind::Unary { op: UnaryOp::Neg, operand, .. } => open.push(*operand),
            ExprKind::Binary { op: BinaryOp::Add | BinaryOp::Sub, left, right, .. } => {
                open.extend([*left, *right]);
            }
            ExprKind::Binary { op: BinaryOp::Mul, left, right, .. } => {
                self.product(id, [*left, *right], open);
            }
            ExprKind::Binary { op: BinaryOp::Div, left, right, .. } => {
                match self.dependence(*right) {
                    Dependence::None => open.push(*left),
                    _ => self.offend(id, Offence::Denominator),
                }
            }
            ExprKind::Binary { op: BinaryOp::Pow, .. } => self.offend(id, Offence::Power),
            ExprKind::Array(items) => open.extend(items),
            ExprKind::If { condition, then, otherwise } => match self.dependence(*condition) {
                Dependence::None => open.extend([*then, *otherwise]),
                _ => self.offend(*condition, Offence::Condition),
            },
            ExprKind::Call { function, arguments, .. } => {
                match (function.name.as_str(), &arguments[..]) {
                    ("dot" | "inner" | "outer" | "cross", &[a, b]) => {
                        self.product(id, [a, b], open);
                    }
                    (
                        "grad" | "div" | "curl" | "tr" | "sym" | "skew" | "dev" | "transpose"
                        | "inside" | "outside" | "jump" | "avg" | "tangential",
                        &[a],
                    ) => open.push(a),
                    (name, _) => self.offend(id, Offence::Function(name.to_owned())),
                }
            }
            ExprKind::Name(name) => {
                let entry = self.checker.names.entries.get(name.as_str());
                let definition = entry.filter(|e| matches!(e.meaning, Meaning::Definition(_)));
                let offence = definition
                    .map_or(Offence::Other, |entry| Offence::Named(name.clone(), entry.span));
                self.offend(id, offence);
            }
            _ => self.offend(id, Offence::Other),
        }
    }

    /// Examines a nonlinear product: both factors have tests, or one factor is nonlinear in them.
    fn product(&mut self, id: ast::ExprId, factors: [ast::ExprId; 2], open: &mut Vec<ast::ExprId>) {
        match factors.map(|factor| self.dependence(factor)) {
            [Dependence::None, _] => open.push(factors[1]),
            [_, Dependence::None] => open.push(factors[0]),
            _ => self.offend(id, Offence::Product),
        }
    }
}
