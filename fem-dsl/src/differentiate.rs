//! `differentiate`: [`Form`] → [`Form`], adding the Jacobian's pointwise action.
//!
//! ```text
//! δf(u; δu) = d/dε f(u + ε δu, ∇u + ε ∇δu, ∇∇u + ε ∇∇δu)  at ε = 0,   for f = f0, f1, f2 of each field
//! ```
//!
//! symbolically, in forward mode, on whole tensors, so that the structure of a form is preserved: `λ tr(ε) I + 2 μ ε`
//! becomes `λ tr(δε) I + 2 μ δε`. The same rules with other seeds yield the spatial gradient of an expression
//! ([`gradient`]); reverse mode (`adjoint`) converts an energy density or a weak form to f0 and f1.
//!
//! At kinks: abs and sign have derivative 0 at 0; norm, and any power of a square, 0 at 0; min and max that of the
//! first argument on a tie. A power a⁰ has derivative 0, also at a = 0.

mod adjoint;
mod exterior;
mod tangent;

pub use adjoint::adjoint;
pub use exterior::{curl, divergence};
pub use tangent::tangent;

use crate::form::{BuildError, ExprId, Exprs, Form, Shape, Terminal, expect_form};
use crate::point::{Location, Space};
use crate::verify::Phase;

/// Adds the derivative of every integral's rows in the direction δu.
pub fn differentiate(form: &Form) -> Form {
    let mut form = form.clone();
    let mut exprs = std::mem::take(&mut form.exprs);
    let mut integrals = std::mem::take(&mut form.integrals);
    for integral in &mut integrals {
        let values: Vec<Option<ExprId>> =
            integral.rows.iter().flat_map(|row| [row.f0, row.f1, row.f2]).collect();
        let roots: Vec<ExprId> = values.iter().copied().flatten().collect();
        let derivatives = tangent(&mut exprs, &roots, |exprs, terminal| {
            let of = match terminal {
                Terminal::Field(i, side) => Terminal::Direction(i, side),
                Terminal::FieldGradient(i, side) => Terminal::DirectionGradient(i, side),
                Terminal::FieldHessian(i, side) => Terminal::DirectionHessian(i, side),
                Terminal::Rate(i, _, side) => Terminal::Direction(i, side),
                Terminal::RateGradient(i, _, side) => Terminal::DirectionGradient(i, side),
                _ => return Ok(None),
            };
            let Some(shape) = form.shape_of(terminal) else { return Ok(None) };
            let direction = exprs.terminal(of, shape);
            match terminal {
                Terminal::Rate(i, order, _) | Terminal::RateGradient(i, order, _) => {
                    let rate = form.rate(i, order).expect("a checked form declares it");
                    let s = exprs.terminal(Terminal::Param(rate.param), Shape::SCALAR);
                    exprs.mul(s, direction).map(Some)
                }
                _ => Ok(Some(direction)),
            }
        })
        .expect("an expression that was built should have a derivative in every direction");
        let mut derivatives = derivatives.into_iter();
        let mut derivative = |value: Option<ExprId>| value.and_then(|_| derivatives.next()?);
        let rows = integral.rows.iter().map(|row| row.map(&mut derivative));
        integral.action = rows.filter(|row| !row.is_empty()).collect();
    }
    form.exprs = exprs;
    form.integrals = integrals;
    expect_form(&form, Phase::Differentiated);
    form
}

/// Returns the gradient of an expression of `form`, by the chain rule: with one more index, that of the derivative, at
/// the end.
///
/// # Errors
///
/// A required third derivative, or second one of anything but a field, a part that is only defined at points, or a
/// result with more than three indices.
pub fn gradient(form: &mut Form, a: ExprId) -> Result<ExprId, BuildError> {
    let mut exprs = std::mem::take(&mut form.exprs);
    let result = gradient_in(&mut exprs, form, a);
    form.exprs = exprs;
    result
}

fn gradient_in(exprs: &mut Exprs, form: &Form, a: ExprId) -> Result<ExprId, BuildError> {
    let too_many = BuildError::Rank { operation: "grad" };
    let shape = exprs.shape(a).raised(form.dim).ok_or(too_many)?;
    if let &crate::form::Expr::Terminal(terminal) = exprs.expr(a)
        && let Some(of) = gradient_terminal(form, terminal)?
    {
        return Ok(exprs.terminal(of, shape));
    }
    let mut columns = Vec::with_capacity(form.dim);
    for j in 0..form.dim {
        let derivative = tangent(exprs, &[a], |exprs, terminal| partial(exprs, form, terminal, j))?;
        let zero = exprs.zero(exprs.shape(a));
        let column = derivative[0].unwrap_or(zero);
        columns.push(exprs.components(column));
    }
    let n = exprs.shape(a).components();
    let components = (0..n).flat_map(|i| columns.iter().map(move |column| column[i])).collect();
    exprs.literal(shape, components)
}

/// Returns the time derivative of an expression of `form`, by the chain rule: of fields, and of t; coordinates,
/// parameters and functions of these are constant.
///
/// # Errors
///
/// A required third derivative, or a derivative of data or of a test function.
pub fn rate(form: &mut Form, a: ExprId) -> Result<ExprId, BuildError> {
    let mut exprs = std::mem::take(&mut form.exprs);
    let result = rate_in(&mut exprs, form, a);
    form.exprs = exprs;
    result
}

fn rate_in(exprs: &mut Exprs, form: &Form, a: ExprId) -> Result<ExprId, BuildError> {
    let shape = exprs.shape(a);
    let derivative = tangent(exprs, &[a], |exprs, terminal| {
        let of = match terminal {
            Terminal::Time => return Ok(Some(exprs.constant(1.0))),
            Terminal::Field(i, _) if form.fields[i].space.is_number() => {
                return Err(BuildError::NoRate { terminal });
            }
            Terminal::Field(i, side) => Terminal::Rate(i, 1, side),
            Terminal::FieldGradient(i, side) => Terminal::RateGradient(i, 1, side),
            Terminal::Rate(i, 1, side) => Terminal::Rate(i, 2, side),
            Terminal::RateGradient(i, 1, side) => Terminal::RateGradient(i, 2, side),
            Terminal::Param(_)
            | Terminal::Coordinates
            | Terminal::Normal
            | Terminal::Diameter(_)
            | Terminal::Extent(_)
            | Terminal::Penalty(..)
            | Terminal::Degree => return Ok(None),
            Terminal::Rate(..)
            | Terminal::RateGradient(..)
            | Terminal::Aux(..)
            | Terminal::AuxGradient(..)
            | Terminal::Test(..)
            | Terminal::TestGradient(..)
            | Terminal::Direction(..)
            | Terminal::DirectionGradient(..)
            | Terminal::FieldHessian(..)
            | Terminal::TestHessian(..)
            | Terminal::DirectionHessian(..) => return Err(BuildError::NoRate { terminal }),
        };
        Ok(form.shape_of(of).map(|shape| exprs.terminal(of, shape)))
    })?;
    Ok(derivative[0].unwrap_or_else(|| exprs.zero(shape)))
}

/// Returns the terminal that is the gradient of `terminal`, if it exists.
fn gradient_terminal(form: &Form, terminal: Terminal) -> Result<Option<Terminal>, BuildError> {
    if let Some(side) = terminal.side() {
        return Err(BuildError::GradientOfSide { terminal, side });
    }
    let is_piola = form.space_of(terminal).is_some_and(Space::is_piola);
    match terminal {
        Terminal::Field(i, side) if is_piola => Ok(Some(Terminal::FieldHessian(i, side))),
        Terminal::Test(i, side) if is_piola => Ok(Some(Terminal::TestHessian(i, side))),
        Terminal::Direction(i, side) if is_piola => Ok(Some(Terminal::DirectionHessian(i, side))),
        Terminal::Rate(..) if is_piola => {
            Err(BuildError::PartialDerivative { operation: "grad", terminal })
        }
        Terminal::FieldGradient(..)
        | Terminal::TestGradient(..)
        | Terminal::DirectionGradient(..)
            if is_piola =>
        {
            Err(BuildError::HigherDerivative { terminal })
        }
        Terminal::Field(i, side) => Ok(Some(Terminal::FieldGradient(i, side))),
        Terminal::Test(i, side) => Ok(Some(Terminal::TestGradient(i, side))),
        Terminal::Direction(i, side) => Ok(Some(Terminal::DirectionGradient(i, side))),
        Terminal::Rate(i, order, side) => Ok(Some(Terminal::RateGradient(i, order, side))),
        Terminal::Aux(i, side) => match form.aux[i].location {
            Location::Nodes(_) => Ok(Some(Terminal::AuxGradient(i, side))),
            Location::Cells | Location::Points => Err(BuildError::NoGradient { terminal }),
        },
        Terminal::FieldGradient(i, side) => Ok(Some(Terminal::FieldHessian(i, side))),
        Terminal::TestGradient(i, side) => Ok(Some(Terminal::TestHessian(i, side))),
        Terminal::DirectionGradient(i, side) => Ok(Some(Terminal::DirectionHessian(i, side))),
        Terminal::RateGradient(..)
        | Terminal::AuxGradient(..)
        | Terminal::FieldHessian(..)
        | Terminal::TestHessian(..)
        | Terminal::DirectionHessian(..) => Err(BuildError::HigherDerivative { terminal }),
        Terminal::Normal | Terminal::Extent(_) | Terminal::Penalty(..) => {
            Err(BuildError::NoGradient { terminal })
        }
        Terminal::Coordinates
        | Terminal::Param(_)
        | Terminal::Time
        | Terminal::Diameter(_)
        | Terminal::Degree => Ok(None),
    }
}

/// Returns ∂/∂x_j of a terminal.
fn partial(
    exprs: &mut Exprs,
    form: &Form,
    terminal: Terminal,
    j: usize,
) -> Result<Option<ExprId>, BuildError> {
    if terminal == Terminal::Coordinates {
        let components =
            (0..form.dim).map(|i| exprs.constant(if i == j { 1.0 } else { 0.0 })).collect();
        return exprs.literal(Shape::vector(form.dim), components).map(Some);
    }
    let Some(of) = gradient_terminal(form, terminal)? else { return Ok(None) };
    let (Some(shape), Some(raised)) = (form.shape_of(terminal), form.shape_of(of)) else {
        return Err(BuildError::Rank { operation: "grad" });
    };
    let whole = exprs.terminal(of, raised);
    let components =
        (0..shape.components()).map(|i| exprs.component(whole, i * form.dim + j)).collect();
    exprs.literal(shape, components).map(Some)
}
