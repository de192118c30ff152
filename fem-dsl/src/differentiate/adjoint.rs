//! Reverse mode: the derivative of one scalar by each terminal.

use super::tangent::{binary_slopes, cofactor_derivative, power_slope, slope, zero_at_zero};
use crate::arena::IndexVec;
use crate::form::{BuildError, Expr, ExprId, Exprs, MatrixFunction, Shape, Terminal};
use std::collections::BTreeMap;

/// Computes ∂root/∂terminal of a scalar `root` for every terminal that `select` accepts, in the terminal's shape;
/// absent ones are zero. For an energy density and the fields, this is f0 and f1; likewise for a weak form, which is
/// linear in its test functions, and the test functions.
///
/// # Errors
///
/// None for a scalar that the builder created.
pub fn adjoint(
    exprs: &mut Exprs,
    root: ExprId,
    select: impl Fn(Terminal) -> bool,
) -> Result<BTreeMap<Terminal, ExprId>, BuildError> {
    let order = exprs.reachable_in_order(&[root]);
    let mut wanted: IndexVec<ExprId, bool> = exprs.nodes().iter().map(|_| false).collect();
    for &id in &order {
        let expr = exprs.expr(id);
        wanted[id] = matches!(expr, Expr::Terminal(terminal) if select(*terminal))
            || expr.operands().iter().any(|&operand| wanted[operand]);
    }
    let one = exprs.constant(1.0);
    let mut sweep = Sweep { exprs, wanted, adjoints: BTreeMap::from([(root, one)]) };
    let mut result = BTreeMap::new();
    let before = sweep.exprs.begin(None);
    for id in order.into_iter().rev() {
        if !sweep.wanted[id] {
            continue;
        }
        let Some(g) = sweep.adjoints.remove(&id) else { continue };
        match sweep.exprs.expr(id).clone() {
            Expr::Terminal(terminal) => {
                result.insert(terminal, g);
            }
            expr => {
                sweep.exprs.derive(id);
                sweep.through(id, &expr, g)?;
            }
        }
    }
    sweep.exprs.begin(before);
    Ok(result)
}

struct Sweep<'a> {
    exprs: &'a mut Exprs,
    wanted: IndexVec<ExprId, bool>,
    adjoints: BTreeMap<ExprId, ExprId>,
}

impl Sweep<'_> {
    /// Adds the result of `part` to the adjoint of `operand`, if that is required.
    fn give(
        &mut self,
        operand: ExprId,
        part: impl FnOnce(&mut Exprs) -> Result<ExprId, BuildError>,
    ) -> Result<(), BuildError> {
        if !self.wanted[operand] {
            return Ok(());
        }
        let part = part(self.exprs)?;
        let sum = match self.adjoints.get(&operand) {
            Some(&before) => self.exprs.add(before, part)?,
            None => part,
        };
        self.adjoints.insert(operand, sum);
        Ok(())
    }

    /// Propagates the adjoint g of `id` to its operands.
    fn through(&mut self, id: ExprId, expr: &Expr, g: ExprId) -> Result<(), BuildError> {
        match *expr {
            Expr::Constant(_)
            | Expr::Zero(_)
            | Expr::Identity(_)
            | Expr::Terminal(_)
            | Expr::Compare(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Not(_) => Ok(()),
            Expr::Literal(_, ref components) => {
                components.iter().enumerate().try_for_each(|(flat, &component)| {
                    self.give(component, |exprs| Ok(exprs.component(g, flat)))
                })
            }
            Expr::Component(a, flat) => self.give(a, |exprs| {
                let (shape, zero) = (exprs.shape(a), exprs.constant(0.0));
                let items = (0..shape.components()).map(|i| if i == flat { g } else { zero });
                exprs.literal(shape, items.collect())
            }),
            Expr::Neg(a) => self.give(a, |exprs| exprs.neg(g)),
            Expr::Add(a, b) => {
                self.give(a, |_| Ok(g))?;
                self.give(b, |_| Ok(g))
            }
            Expr::Sub(a, b) => {
                self.give(a, |_| Ok(g))?;
                self.give(b, |exprs| exprs.neg(g))
            }
            Expr::Mul(s, a) => {
                self.give(s, |exprs| exprs.inner(a, g))?;
                self.give(a, |exprs| exprs.mul(s, g))
            }
            Expr::Div(a, s) => {
                self.give(a, |exprs| exprs.div(g, s))?;
                self.give(s, |exprs| {
                    let inner = exprs.inner(id, g)?;
                    let ratio = exprs.div(inner, s)?;
                    exprs.neg(ratio)
                })
            }
            Expr::Dot(a, b) => self.through_dot(a, b, g),
            Expr::Inner(a, b) => {
                self.give(a, |exprs| exprs.mul(g, b))?;
                self.give(b, |exprs| exprs.mul(g, a))
            }
            Expr::Norm(a) => self.give(a, |exprs| {
                let ratio = exprs.div(g, id)?;
                let factor = zero_at_zero(exprs, id, ratio)?;
                exprs.mul(factor, a)
            }),
            Expr::Outer(a, b) => {
                self.give(a, |exprs| exprs.dot(g, b))?;
                self.give(b, |exprs| exprs.dot(a, g))
            }
            // g · (da × b) = da · (b × g),  g · (a × db) = db · (g × a)
            Expr::Cross(a, b) => {
                self.give(a, |exprs| exprs.cross(b, g))?;
                self.give(b, |exprs| exprs.cross(g, a))
            }
            Expr::TensorCross(a, b) => {
                self.give(a, |exprs| exprs.tensor_cross(b, g))?;
                self.give(b, |exprs| exprs.tensor_cross(a, g))
            }
            Expr::Matrix(function, a) => self.give(a, |exprs| matrix(exprs, function, id, a, g)),
            Expr::Unary(function, a) => self.give(a, |exprs| {
                let slope = slope(exprs, function, id, a)?;
                exprs.mul(slope, g)
            }),
            Expr::Binary(function, a, b) => {
                let wants = ((a, self.wanted[a]), (b, self.wanted[b]));
                let slopes = binary_slopes(self.exprs, function, id, wants.0, wants.1)?;
                for (operand, slope) in [a, b].into_iter().zip(slopes) {
                    if let Some(slope) = slope {
                        self.give(operand, |exprs| exprs.mul(slope, g))?;
                    }
                }
                Ok(())
            }
            Expr::Powi(a, n) => self.give(a, |exprs| {
                let slope = power_slope(exprs, a, n)?;
                exprs.mul(slope, g)
            }),
            Expr::Select(condition, a, b) => {
                self.give(a, |exprs| {
                    let zero = exprs.zero(exprs.shape(g));
                    exprs.select(condition, g, zero)
                })?;
                self.give(b, |exprs| {
                    let zero = exprs.zero(exprs.shape(g));
                    exprs.select(condition, zero, g)
                })
            }
        }
    }

    /// Propagates through a · b of ranks 1 and 2, not both 1.
    fn through_dot(&mut self, a: ExprId, b: ExprId, g: ExprId) -> Result<(), BuildError> {
        let transposed = |exprs: &mut Exprs, a| exprs.matrix(MatrixFunction::Transpose, a);
        self.give(a, |exprs| match (exprs.shape(a).rank(), exprs.shape(b).rank()) {
            (2, 1) => exprs.outer(g, b),
            (1, _) => exprs.dot(b, g),
            _ => {
                let right = transposed(exprs, b)?;
                exprs.dot(g, right)
            }
        })?;
        self.give(b, |exprs| match (exprs.shape(a).rank(), exprs.shape(b).rank()) {
            (1, 2) => exprs.outer(a, g),
            _ => {
                let left = transposed(exprs, a)?;
                exprs.dot(left, g)
            }
        })
    }
}

/// Returns the adjoint of A ↦ f(A): the factor of dA in the contraction of f's change with g.
fn matrix(
    exprs: &mut Exprs,
    function: MatrixFunction,
    id: ExprId,
    a: ExprId,
    g: ExprId,
) -> Result<ExprId, BuildError> {
    let n = exprs.shape(a).extent(0);
    debug_assert!(exprs.shape(a) == Shape::matrix(n, n) || function == MatrixFunction::Transpose);
    match function {
        MatrixFunction::Trace => {
            let identity = exprs.identity(n);
            exprs.mul(g, identity)
        }
        MatrixFunction::Determinant => {
            let cofactor = exprs.matrix(MatrixFunction::Cofactor, a)?;
            exprs.mul(g, cofactor)
        }
        // −A⁻ᵀ G A⁻ᵀ
        MatrixFunction::Inverse => {
            let transposed = exprs.matrix(MatrixFunction::Transpose, id)?;
            let left = exprs.dot(transposed, g)?;
            let product = exprs.dot(left, transposed)?;
            exprs.neg(product)
        }
        MatrixFunction::Cofactor => cofactor_derivative(exprs, a, g),
        MatrixFunction::Sym
        | MatrixFunction::Skew
        | MatrixFunction::Dev
        | MatrixFunction::Transpose => exprs.matrix(function, g),
    }
}
