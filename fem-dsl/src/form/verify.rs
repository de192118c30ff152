//! Invariants of every [`Form`] between two stages:
//!
//! 1. dim is 1, 2 or 3; shapes of fields, aux and params have 1 to 64 components per index; a
//!    parameter has as many finite values as components, and a default of its shape that depends
//!    only on parameters and constants;
//! 2. every operand precedes its expression; every expression has the type that the builder assigns
//!    to its operation; every terminal exists and has the shape that the form defines for it;
//! 3. the cells' integral, if any, comes first, and only expressions on facets use the normal; inputs
//!    have sides between cells alone, and there each input with two values has one;
//! 4. rows are ordered by field and side, one for each, none of them empty or zero; f0 has the shape of the
//!    field, f1 that of its gradient, f2 that of its second derivatives; an energy is a scalar;
//! 5. no row contains a test function; only the action contains directions;
//! 6. before `differentiate` there is no action; after it, the action is linear and
//!    homogeneous in the direction.

use super::{Expr, ExprId, Exprs, Form, Integral, MatrixFunction, Row, Shape, Terminal, Type};
use crate::terms::{Binary, Region, Side, Unary};
use crate::verify::{Phase, VerifyError, ensure};
use std::collections::BTreeMap;

/// Verifies a form.
///
/// # Errors
///
/// The first violated invariant.
pub fn verify_form(form: &Form, phase: Phase) -> Result<(), VerifyError> {
    ensure(matches!(form.dim, 1..=3), || format!("dimension {}", form.dim))?;
    declarations(form)?;
    for (id, expr) in form.exprs.nodes().iter_enumerated() {
        let before = expr.operands().iter().all(|operand| *operand < id);
        ensure(before, || format!("{id} precedes an operand"))?;
        typed(form, id, expr)?;
    }
    for (i, integral) in form.integrals.iter().enumerate() {
        let first = i == 0 || integral.region != Region::Cells;
        ensure(first, || "the cells' integral should come first".to_owned())?;
        of_integral(form, integral, phase)?;
    }
    Ok(())
}

/// Verifies in debug builds.
///
/// # Panics
///
/// Panics on a violated invariant.
pub(crate) fn expect_form(form: &Form, phase: Phase) {
    if cfg!(debug_assertions)
        && let Err(error) = verify_form(form, phase)
    {
        panic!("{error}\n{form}");
    }
}

fn declarations(form: &Form) -> Result<(), VerifyError> {
    ensure(form.params.len() == form.defaults.len(), || "one default a parameter".to_owned())?;
    for (param, &default) in form.params.iter().zip(&form.defaults) {
        let shape = Shape::from(param.shape);
        let fits = param.value.len() == shape.components()
            && param.value.iter().all(|value| value.is_finite())
            && form.exprs.ty(default) == Type::Tensor(shape);
        ensure(fits, || format!("parameter {}", param.name))?;
        let plain = terminals(&form.exprs, &[default]).all(|t| matches!(t, Terminal::Param(_)));
        ensure(plain, || format!("the default of {}", param.name))?;
    }
    let shapes = form.fields.iter().map(|field| field.shape);
    for shape in shapes.chain(form.aux.iter().map(|aux| aux.shape)) {
        let extents = Shape::from(shape).extents();
        ensure(extents.iter().all(|n| (1..=64).contains(n)), || format!("shape {shape:?}"))?;
    }
    Ok(())
}

fn terminals(exprs: &Exprs, roots: &[ExprId]) -> impl Iterator<Item = Terminal> {
    exprs.reachable_in_order(roots).into_iter().filter_map(|id| match exprs.expr(id) {
        Expr::Terminal(terminal) => Some(*terminal),
        _ => None,
    })
}

/// Checks that the type of `id` is that of its operation.
fn typed(form: &Form, id: ExprId, expr: &Expr) -> Result<(), VerifyError> {
    let exprs = &form.exprs;
    let expected = expected_type(form, expr);
    ensure(expected == Some(exprs.ty(id)), || {
        format!("{id} = {expr:?} has type {:?}, not {expected:?}", exprs.ty(id))
    })
}

fn expected_type(form: &Form, expr: &Expr) -> Option<Type> {
    let exprs = &form.exprs;
    let tensor = |a: ExprId| match exprs.ty(a) {
        Type::Tensor(shape) => Some(shape),
        Type::Truth => None,
    };
    let scalars = |all: &[ExprId]| all.iter().all(|&a| tensor(a) == Some(Shape::SCALAR));
    let truths = |all: &[ExprId]| all.iter().all(|&a| exprs.ty(a) == Type::Truth);
    let scalar = Type::Tensor(Shape::SCALAR);
    match *expr {
        Expr::Constant(number) => number.get().is_finite().then_some(scalar),
        Expr::Zero(shape) => (!shape.is_scalar()).then_some(Type::Tensor(shape)),
        Expr::Identity(n) => Some(Type::Tensor(Shape::matrix(n, n))),
        Expr::Terminal(terminal) => form.shape_of(terminal).map(Type::Tensor),
        Expr::Literal(shape, ref components) => {
            (scalars(components) && components.len() == shape.components() && !shape.is_scalar())
                .then_some(Type::Tensor(shape))
        }
        Expr::Component(a, flat) => {
            let shape = tensor(a).filter(|shape| !shape.is_scalar())?;
            (flat < shape.components()).then_some(scalar)
        }
        Expr::Neg(a) => tensor(a).map(Type::Tensor),
        Expr::Add(a, b) | Expr::Sub(a, b) => {
            tensor(a).filter(|&shape| tensor(b) == Some(shape)).map(Type::Tensor)
        }
        Expr::Mul(s, a) | Expr::Div(a, s) => tensor(a).filter(|_| scalars(&[s])).map(Type::Tensor),
        Expr::Dot(a, b) => {
            let (left, right) = (tensor(a)?, tensor(b)?);
            let (p, q) = (left.rank(), right.rank());
            let fits = (1..=2).contains(&p)
                && (1..=2).contains(&q)
                && p + q > 2
                && left.extent(p - 1) == right.extent(0);
            let extents =
                [&left.extents()[..p.checked_sub(1)?], right.extents().get(1..)?].concat();
            fits.then(|| Shape::of(&extents))?.map(Type::Tensor)
        }
        Expr::Inner(a, b) => {
            let shape = tensor(a)?;
            (!shape.is_scalar() && tensor(b) == Some(shape)).then_some(scalar)
        }
        Expr::Norm(a) => tensor(a).filter(|shape| !shape.is_scalar()).map(|_| scalar),
        Expr::Outer(a, b) => {
            let (left, right) = (tensor(a)?, tensor(b)?);
            (left.rank() == 1 && right.rank() == 1)
                .then(|| Type::Tensor(Shape::matrix(left.extent(0), right.extent(0))))
        }
        Expr::Cross(a, b) => {
            let shape = Some(Shape::vector(3));
            (tensor(a) == shape && tensor(b) == shape).then_some(Type::Tensor(Shape::vector(3)))
        }
        Expr::TensorCross(a, b) => {
            let shape = Some(Shape::matrix(3, 3));
            (tensor(a) == shape && tensor(b) == shape).then_some(Type::Tensor(Shape::matrix(3, 3)))
        }
        Expr::Matrix(function, a) => matrix_type(function, tensor(a)?),
        Expr::Unary(function, a) => (function != Unary::Neg && scalars(&[a])).then_some(scalar),
        Expr::Binary(function, a, b) => {
            let own = matches!(function, Binary::Pow | Binary::Atan2 | Binary::Min | Binary::Max);
            (own && scalars(&[a, b])).then_some(scalar)
        }
        Expr::Powi(a, _) => scalars(&[a]).then_some(scalar),
        Expr::Compare(_, a, b) => scalars(&[a, b]).then_some(Type::Truth),
        Expr::And(a, b) | Expr::Or(a, b) => truths(&[a, b]).then_some(Type::Truth),
        Expr::Not(a) => truths(&[a]).then_some(Type::Truth),
        Expr::Select(c, a, b) => {
            let shape = tensor(a).filter(|&shape| tensor(b) == Some(shape))?;
            truths(&[c]).then_some(Type::Tensor(shape))
        }
    }
}

fn matrix_type(function: MatrixFunction, shape: Shape) -> Option<Type> {
    let transposed = || Shape::matrix(shape.extent(1), shape.extent(0));
    match function {
        MatrixFunction::Transpose => (shape.rank() == 2).then(|| Type::Tensor(transposed())),
        MatrixFunction::Trace => shape.square().map(|_| Type::Tensor(Shape::SCALAR)),
        MatrixFunction::Determinant => {
            shape.square().filter(|&n| n <= 3).map(|_| Type::Tensor(Shape::SCALAR))
        }
        MatrixFunction::Inverse | MatrixFunction::Cofactor => {
            shape.square().filter(|&n| n <= 3).map(|_| Type::Tensor(shape))
        }
        MatrixFunction::Sym | MatrixFunction::Skew | MatrixFunction::Dev => {
            shape.square().map(|_| Type::Tensor(shape))
        }
    }
}

fn of_integral(form: &Form, integral: &Integral, phase: Phase) -> Result<(), VerifyError> {
    let normal = !integral.region.is_of_cells();
    let interior = integral.region.is_interior();
    let allowed = |terminal: Terminal, action: bool| {
        let sided = match interior {
            true => !form.has_two_values(terminal),
            false => terminal.side().is_none(),
        };
        let known = match terminal {
            Terminal::Test(..) | Terminal::TestGradient(..) | Terminal::TestHessian(..) => false,
            Terminal::Direction(..)
            | Terminal::DirectionGradient(..)
            | Terminal::DirectionHessian(..) => action,
            Terminal::Normal | Terminal::Extent(_) | Terminal::Penalty(..) => normal,
            _ => true,
        };
        sided && known
    };
    for (rows, action) in [(&integral.rows, false), (&integral.action, true)] {
        let key = |row: &Row| (row.field, row.side);
        let ordered = rows.windows(2).all(|pair| key(&pair[0]) < key(&pair[1]));
        ensure(ordered, || "rows are ordered by field and side".to_owned())?;
        for row in rows {
            let one = form.fields[row.field].space.is_continuous() && row.f0.is_some();
            let exists = row.side == Side::Inside || interior && !one;
            ensure(exists, || format!("a row of field {} outside", row.field))?;
            of_row(form, *row)?;
            let roots: Vec<ExprId> = row.factors().collect();
            let bad = terminals(&form.exprs, &roots).find(|&terminal| !allowed(terminal, action));
            ensure(bad.is_none(), || format!("{bad:?} in a row of field {}", row.field))?;
            for root in roots.into_iter().filter(|_| action) {
                ensure(linear(&form.exprs, root), || format!("{root} is not linear in δu"))?;
            }
        }
    }
    if let Some(energy) = integral.energy {
        let bad = terminals(&form.exprs, &[energy]).find(|&terminal| !allowed(terminal, false));
        ensure(bad.is_none(), || format!("{bad:?} in an energy"))?;
        let scalar = form.exprs.ty(energy) == Type::Tensor(Shape::SCALAR);
        ensure(scalar, || "an energy is a scalar".to_owned())?;
    }
    let undifferentiated = phase == Phase::Differentiated || integral.action.is_empty();
    ensure(undifferentiated, || "an action before `differentiate`".to_owned())
}

fn of_row(form: &Form, row: Row) -> Result<(), VerifyError> {
    let name = || format!("row of field {}", row.field);
    ensure(!row.is_empty(), || format!("empty {}", name()))?;
    let terminals = [
        Terminal::Field(row.field, None),
        Terminal::FieldGradient(row.field, None),
        Terminal::FieldHessian(row.field, None),
    ];
    for (value, terminal) in [row.f0, row.f1, row.f2].into_iter().zip(terminals) {
        let Some(value) = value else { continue };
        let shape = form.shape_of(terminal).map(Type::Tensor);
        ensure(Some(form.exprs.ty(value)) == shape, || format!("{terminal:?} in {}", name()))?;
        ensure(!form.exprs.is_zero(value), || format!("zero {terminal:?} in {}", name()))?;
    }
    Ok(())
}

/// Returns whether an expression is linear and homogeneous in the direction.
fn linear(exprs: &Exprs, root: ExprId) -> bool {
    // None: independent; Some(true): linear; Some(false): anything else.
    let mut dependence: BTreeMap<ExprId, Option<bool>> = BTreeMap::new();
    for id in exprs.reachable_in_order(&[root]) {
        let of = |a: ExprId| if exprs.is_zero(a) { Some(true) } else { dependence[&a] };
        let expr = exprs.expr(id);
        let operands = expr.operands();
        let depends = operands.iter().any(|operand| dependence[operand].is_some());
        let value = match *expr {
            Expr::Terminal(
                Terminal::Direction(..)
                | Terminal::DirectionGradient(..)
                | Terminal::DirectionHessian(..),
            ) => Some(true),
            _ if !depends => None,
            Expr::Literal(..) | Expr::Add(..) | Expr::Sub(..) => {
                Some(operands.iter().all(|&a| of(a) == Some(true)))
            }
            Expr::Component(a, _) | Expr::Neg(a) | Expr::Matrix(_, a) => dependence[&a],
            Expr::Mul(a, b)
            | Expr::Dot(a, b)
            | Expr::Inner(a, b)
            | Expr::Outer(a, b)
            | Expr::Cross(a, b)
            | Expr::TensorCross(a, b) => match (dependence[&a], dependence[&b]) {
                (one, None) | (None, one) => one,
                _ => Some(false),
            },
            Expr::Div(a, s) => {
                if dependence[&s].is_none() {
                    of(a)
                } else {
                    Some(false)
                }
            }
            Expr::Select(c, a, b) => {
                Some(dependence[&c].is_none() && of(a) == Some(true) && of(b) == Some(true))
            }
            _ => Some(false),
        };
        dependence.insert(id, value);
    }
    exprs.is_zero(root) || dependence[&root] == Some(true)
}
