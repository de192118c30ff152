//! The derivatives curl and div of expressions. In Hcurl and Hdiv they are the only ones that are functions: those of sums
//! and multiples follow from
//!
//! ```text
//! curl(s E) = ∇s × E + s curl E        div(s u) = ∇s · u + s div u
//! ```
//!
//! Those of other expressions are made of gradients, which such fields have in each cell.

use super::gradient;
use crate::form::{BuildError, Expr, ExprId, Form, MatrixFunction, Shape, Terminal, Type};
use crate::terms::Space;
use std::collections::{BTreeMap, BTreeSet};

type BuildResult = Result<ExprId, BuildError>;

/// Computes Σ_j ∂_j of the last index.
///
/// # Errors
///
/// An operand of another shape, or a derivative that does not exist.
pub fn divergence(form: &mut Form, a: ExprId) -> BuildResult {
    let (dim, found) = (form.dim, form.exprs.ty(a));
    let shape = form.exprs.shape(a);
    let rank = shape.rank();
    if found == Type::Truth || !(1..=2).contains(&rank) || shape.extent(rank - 1) != dim {
        let expected = match dim {
            1 => "a vector of 1 or a matrix of 1 column",
            2 => "a vector of 2 or a matrix of 2 columns",
            _ => "a vector of 3 or a matrix of 3 columns",
        };
        return Err(BuildError::Operand { operation: "div", expected, found });
    }
    if rank == 1 {
        return exterior(form, Exterior::Divergence, a);
    }
    let gradient = gradient(form, a)?;
    let exprs = &mut form.exprs;
    let rows = shape.extent(0);
    let mut components = Vec::with_capacity(rows);
    for i in 0..rows {
        let mut sum = exprs.constant(0.0);
        for j in 0..dim {
            let term = exprs.index(gradient, &[i, j, j])?;
            sum = exprs.add(sum, term)?;
        }
        components.push(sum);
    }
    exprs.literal(Shape::vector(rows), components)
}

/// Computes ∂a_i/∂x_j − ∂a_j/∂x_i: a vector in space, in the plane a number; there, the curl of a number is
/// [∂₁a, −∂₀a].
///
/// # Errors
///
/// An operand of another shape, or a derivative that does not exist.
pub fn curl(form: &mut Form, a: ExprId) -> BuildResult {
    let (dim, found) = (form.dim, form.exprs.ty(a));
    if dim == 2 && found == Type::Tensor(Shape::SCALAR) {
        let gradient = gradient(form, a)?;
        let exprs = &mut form.exprs;
        let (x, y) = (exprs.index(gradient, &[0])?, exprs.index(gradient, &[1])?);
        let components = vec![y, exprs.neg(x)?];
        return exprs.literal(Shape::vector(2), components);
    }
    if dim == 1 || found != Type::Tensor(Shape::vector(dim)) {
        let expected = match dim {
            1 => "two or three dimensions",
            2 => "a number or a vector of 2",
            _ => "a vector of 3",
        };
        return Err(BuildError::Operand { operation: "curl", expected, found });
    }
    exterior(form, Exterior::Curl, a)
}

/// The derivatives of vectors that map to functions in Hcurl and Hdiv.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exterior {
    Curl,
    Divergence,
}

impl Exterior {
    fn name(self) -> &'static str {
        match self {
            Self::Curl => "curl",
            Self::Divergence => "div",
        }
    }

    /// Returns whether functions in a space have this derivative.
    fn exists(self, space: Space) -> bool {
        space.derivative() == self.name()
    }

    /// Computes the derivative from the gradient.
    fn of_gradient(self, form: &mut Form, gradient: ExprId) -> BuildResult {
        let (dim, exprs) = (form.dim, &mut form.exprs);
        if self == Self::Divergence {
            return exprs.matrix(MatrixFunction::Trace, gradient);
        }
        // ∂a_i/∂x_j − ∂a_j/∂x_i
        let mut rotation = |i: usize, j: usize| {
            let (left, right) = (exprs.index(gradient, &[i, j])?, exprs.index(gradient, &[j, i])?);
            exprs.sub(left, right)
        };
        if dim == 2 {
            return rotation(1, 0);
        }
        let components = vec![rotation(2, 1)?, rotation(0, 2)?, rotation(1, 0)?];
        exprs.literal(Shape::vector(3), components)
    }

    /// Computes ∇s × a, or ∇s · a.
    fn product(self, form: &mut Form, slope: ExprId, a: ExprId) -> BuildResult {
        let (dim, exprs) = (form.dim, &mut form.exprs);
        match (self, dim) {
            (Self::Divergence, _) => exprs.dot(slope, a),
            (Self::Curl, 3) => exprs.cross(slope, a),
            (Self::Curl, _) => {
                let mut minor = |i: usize, j: usize| {
                    let (s, a) = (exprs.index(slope, &[i])?, exprs.index(a, &[j])?);
                    exprs.mul(s, a)
                };
                let (left, right) = (minor(0, 1)?, minor(1, 0)?);
                exprs.sub(left, right)
            }
        }
    }

    /// Computes the derivative of s a.
    fn multiple(self, form: &mut Form, s: ExprId, (a, of_a): (ExprId, ExprId)) -> BuildResult {
        let scaled = form.exprs.mul(s, of_a)?;
        let slope = gradient(form, s)?;
        if form.exprs.is_zero(slope) {
            return Ok(scaled);
        }
        let varying = self.product(form, slope, a)?;
        form.exprs.add(varying, scaled)
    }
}

/// Returns whether a terminal belongs to a field in Hcurl or Hdiv.
fn is_piola(form: &Form, terminal: Terminal) -> bool {
    form.space_of(terminal).is_some_and(Space::is_piola)
        && !matches!(terminal, Terminal::Penalty(..))
}

/// Computes a derivative of a vector.
fn exterior(form: &mut Form, of: Exterior, a: ExprId) -> BuildResult {
    let order = form.exprs.reachable_in_order(&[a]);
    // The fields in Hcurl and Hdiv on which each expression depends: the first of them.
    let mut first: BTreeMap<ExprId, Terminal> = BTreeMap::new();
    for &id in &order {
        let found = match *form.exprs.expr(id) {
            Expr::Terminal(terminal) => Some(terminal).filter(|&own| is_piola(form, own)),
            ref expr => expr.operands().iter().find_map(|operand| first.get(operand).copied()),
        };
        first.extend(found.map(|terminal| (id, terminal)));
    }
    // The summands, of which those with such fields are sums themselves.
    let mut wanted = BTreeSet::from([a]);
    for &id in order.iter().rev().filter(|id| first.contains_key(id)) {
        if wanted.contains(&id) {
            match summands(form, &first, of, id) {
                Ok(operands) => wanted.extend(operands),
                Err(BuildError::PartialDerivative { .. }) => {
                    let gradient = gradient(form, a)?;
                    return of.of_gradient(form, gradient);
                }
                Err(error) => return Err(error),
            }
        }
    }
    let mut derivatives: BTreeMap<ExprId, ExprId> = BTreeMap::new();
    for id in order.into_iter().filter(|id| wanted.contains(id)) {
        let value = match first.contains_key(&id) {
            true => of_sum(form, of, &derivatives, id)?,
            false => {
                let gradient = gradient(form, id)?;
                of.of_gradient(form, gradient)?
            }
        };
        derivatives.insert(id, value);
    }
    Ok(derivatives[&a])
}

/// Returns the vectors of which `id`, which depends on a field in Hcurl or Hdiv, is a sum or a multiple.
fn summands(
    form: &Form,
    first: &BTreeMap<ExprId, Terminal>,
    of: Exterior,
    id: ExprId,
) -> Result<Vec<ExprId>, BuildError> {
    let refused = |of: Exterior, operand: ExprId| {
        Err(BuildError::PartialDerivative { operation: of.name(), terminal: first[&operand] })
    };
    match *form.exprs.expr(id) {
        Expr::Terminal(terminal) => {
            if let Some(side) = terminal.side() {
                return Err(BuildError::GradientOfSide { terminal, side });
            }
            match terminal {
                Terminal::Field(..) | Terminal::Test(..) | Terminal::Direction(..) => {}
                Terminal::Rate(..) => {}
                _ => return Err(BuildError::HigherDerivative { terminal }),
            }
            match form.space_of(terminal).is_some_and(|space| of.exists(space)) {
                true => Ok(Vec::new()),
                false => refused(of, id),
            }
        }
        Expr::Neg(a) => Ok(vec![a]),
        Expr::Add(a, b) | Expr::Sub(a, b) => Ok(vec![a, b]),
        Expr::Mul(s, a) | Expr::Div(a, s) if !first.contains_key(&s) => Ok(vec![a]),
        Expr::Select(condition, a, b) if !first.contains_key(&condition) => Ok(vec![a, b]),
        _ => refused(of, id),
    }
}

/// Computes the derivative of a sum or multiple from those of its summands.
fn of_sum(
    form: &mut Form,
    of: Exterior,
    derivatives: &BTreeMap<ExprId, ExprId>,
    id: ExprId,
) -> BuildResult {
    match *form.exprs.expr(id) {
        Expr::Terminal(terminal) => {
            let exterior = match terminal {
                Terminal::Field(i, side) => Terminal::FieldGradient(i, side),
                Terminal::Test(i, side) => Terminal::TestGradient(i, side),
                Terminal::Direction(i, side) => Terminal::DirectionGradient(i, side),
                Terminal::Rate(i, order, side) => Terminal::RateGradient(i, order, side),
                _ => return Err(BuildError::HigherDerivative { terminal }),
            };
            let shape = form.shape_of(exterior).ok_or(BuildError::Rank { operation: of.name() })?;
            Ok(form.exprs.terminal(exterior, shape))
        }
        Expr::Neg(a) => form.exprs.neg(derivatives[&a]),
        Expr::Add(a, b) => form.exprs.add(derivatives[&a], derivatives[&b]),
        Expr::Sub(a, b) => form.exprs.sub(derivatives[&a], derivatives[&b]),
        Expr::Mul(s, a) => of.multiple(form, s, (a, derivatives[&a])),
        Expr::Div(a, s) => {
            let one = form.exprs.constant(1.0);
            let inverse = form.exprs.div(one, s)?;
            let slope = gradient(form, inverse)?;
            let scaled = form.exprs.div(derivatives[&a], s)?;
            if form.exprs.is_zero(slope) {
                return Ok(scaled);
            }
            let varying = of.product(form, slope, a)?;
            form.exprs.add(varying, scaled)
        }
        Expr::Select(condition, a, b) => {
            form.exprs.select(condition, derivatives[&a], derivatives[&b])
        }
        _ => unreachable!("`summands` refuses other operations"),
    }
}
