//! Origin of non-finite values: a form and its input at a point → its first part without a finite value, as written.
//!
//! The form is evaluated as tensors before any simplification, first itself, then its derivative. From a value that is
//! not finite the search goes to a non-finite operand, through the active branch of a condition, until all operands are
//! finite.

use crate::differentiate::differentiate;
use crate::eval::{TensorValues, tensors};
use crate::form::{Expr, ExprId, Form, Row, Terminal};
use crate::point::{Input, Part, PointForm, Region, Side, Slot};
use crate::source::{Source, Span};
use std::collections::BTreeMap;

/// The input of a form at a point.
pub type PointInput = BTreeMap<Input, f64>;

/// A part of a form without a finite value.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFiniteOrigin {
    /// Its location in the text.
    pub span: Option<Span>,
    /// Its text, or that of the expression of which it is the derivative, and its value: "`log(J)` is NaN".
    pub what: String,
    /// Its operands, with their values: "`J` = -0.13".
    pub operands: Vec<String>,
    /// The fields on which it depends: "`grad(u)` = [0, 1]".
    pub fields: Vec<String>,
}

/// Returns the part of a form's integral over `region` without a finite value, if there is one.
pub fn non_finite_origin(
    form: &Form,
    source: &Source,
    region: &Region,
    inputs: &PointInput,
) -> Option<NonFiniteOrigin> {
    let form = differentiate(form);
    let integral = form.integrals.iter().find(|integral| integral.region == *region)?;
    let roots =
        |rows: &[Row]| -> Vec<ExprId> { rows.iter().flat_map(|row| row.factors()).collect() };
    [integral.energy.into_iter().collect(), roots(&integral.rows), roots(&integral.action)]
        .iter()
        .find_map(|roots: &Vec<ExprId>| {
            let values =
                tensors(&form.exprs, roots, |terminal| components(&form, terminal, inputs));
            let found = roots.iter().find_map(|&root| first(&form, &values, root))?;
            Some(origin(&form, source, &values, found))
        })
}

/// Returns the components of a terminal; directions are 1, so that coefficients are visible.
fn components(form: &Form, terminal: Terminal, inputs: &PointInput) -> Vec<f64> {
    let sum = |(field, order, side), gradient: bool| -> Vec<f64> {
        let Some(rate) = form.rate(field, order) else { return Vec::new() };
        let (u, r) = match gradient {
            false => (Terminal::Field(field, side), Terminal::Aux(rate.aux, side)),
            true => (Terminal::FieldGradient(field, side), Terminal::AuxGradient(rate.aux, side)),
        };
        let s = inputs.get(&Input::Param(rate.param, 0)).copied().unwrap_or(0.0);
        let [u, r] = [u, r].map(|terminal| components(form, terminal, inputs));
        u.iter().zip(r).map(|(u, r)| s * u + r).collect()
    };
    match terminal {
        Terminal::Rate(field, order, side) => return sum((field, order, side), false),
        Terminal::RateGradient(field, order, side) => return sum((field, order, side), true),
        Terminal::Penalty(field, side) => {
            let of = |input| inputs.get(&input).copied().unwrap_or(1.0);
            let extent = of(Input::Extent(side.unwrap_or_default()));
            return vec![of(Input::PenaltyFactor(field)) / extent];
        }
        _ => {}
    }
    let count = form.shape_of(terminal).map_or(1, |shape| shape.components());
    let side = terminal.side().unwrap_or_default();
    let slot = |field: usize, flat: usize, order: usize| {
        let (component, part) = Part::of_flat(form.space_of(terminal), flat, order, form.dim);
        Slot { field, side, component, part }
    };
    let input = |flat: usize| match terminal {
        Terminal::Field(i, _) => Some(Input::State(slot(i, flat, 0))),
        Terminal::FieldGradient(i, _) => Some(Input::State(slot(i, flat, 1))),
        Terminal::FieldHessian(i, _) => Some(Input::State(slot(i, flat, 2))),
        Terminal::Aux(i, _) => Some(Input::Aux(slot(i, flat, 0))),
        Terminal::AuxGradient(i, _) => Some(Input::Aux(slot(i, flat, 1))),
        Terminal::Param(i) => Some(Input::Param(i, flat)),
        Terminal::Coordinates => Some(Input::Coordinate(flat)),
        Terminal::Normal => Some(Input::Normal(flat)),
        Terminal::Time => Some(Input::Time),
        Terminal::Diameter(_) => Some(Input::Diameter(side)),
        Terminal::Extent(_) => Some(Input::Extent(side)),
        Terminal::Degree => Some(Input::Degree),
        Terminal::Rate(..)
        | Terminal::RateGradient(..)
        | Terminal::Penalty(..)
        | Terminal::Test(..)
        | Terminal::TestGradient(..)
        | Terminal::TestHessian(..)
        | Terminal::Direction(..)
        | Terminal::DirectionGradient(..)
        | Terminal::DirectionHessian(..) => None,
    };
    let value = |flat| input(flat).map_or(1.0, |input| inputs.get(&input).copied().unwrap_or(0.0));
    (0..count).map(value).collect()
}

/// Returns the inputs that a form may read on a region.
pub fn inputs(form: &PointForm, region: &Region) -> Vec<Input> {
    let mut all = Vec::new();
    for side in Side::ALL.into_iter().take(if region.is_interior() { 2 } else { 1 }) {
        for (field, of) in form.fields.iter().enumerate() {
            for component in 0..of.shape.components() {
                let parts = Part::of_component(of.space, component, form.dim).into_iter();
                all.extend(parts.map(|part| Input::State(Slot { field, side, component, part })));
            }
        }
        for (field, of) in form.aux.iter().enumerate() {
            for component in 0..of.shape.components() {
                let parts = match of.location.space() {
                    Some(space) => Part::of_component(space, component, form.dim),
                    None => vec![Part::Value],
                };
                let parts = parts.into_iter();
                all.extend(parts.map(|part| Input::Aux(Slot { field, side, component, part })));
            }
        }
        all.push(Input::Diameter(side));
        all.extend((!region.is_of_cells()).then_some(Input::Extent(side)));
    }
    for (index, param) in form.params.iter().enumerate() {
        all.extend((0..param.shape.components()).map(|component| Input::Param(index, component)));
    }
    all.extend((0..form.fields.len()).map(Input::PenaltyFactor));
    all.extend((0..form.dim).flat_map(|axis| [Input::Coordinate(axis), Input::Normal(axis)]));
    all.extend([Input::Time, Input::Degree]);
    all
}

fn finite(values: &TensorValues, id: ExprId) -> bool {
    values[&id].iter().all(|value| value.is_finite())
}

/// Returns the first expression below a root that is not finite although all its operands are.
fn first(form: &Form, values: &TensorValues, root: ExprId) -> Option<ExprId> {
    let mut at = (!finite(values, root)).then_some(root)?;
    loop {
        let operands = match *form.exprs.expr(at) {
            Expr::Select(condition, a, b) => vec![if values[&condition][0] == 0.0 { b } else { a }],
            ref expr => expr.operands(),
        };
        match operands.into_iter().find(|&operand| !finite(values, operand)) {
            Some(operand) => at = operand,
            None => return Some(at),
        }
    }
}

fn origin(form: &Form, source: &Source, values: &TensorValues, found: ExprId) -> NonFiniteOrigin {
    let origin = form.exprs.origin(found);
    let written = |id: ExprId| match (form.names.get(&id), form.exprs.expr(id)) {
        (Some(name), _) => Some(name.clone()),
        (None, Expr::Terminal(terminal)) => name(form, *terminal),
        (None, Expr::Constant(_) | Expr::Zero(_) | Expr::Identity(_)) => None,
        _ => {
            let origin = form.exprs.origin(id).filter(|origin| !origin.derived)?;
            Some(one_line(source.slice(origin.span)))
        }
    };
    let value = shown(&values[&found]);
    let text = origin.map(|origin| one_line(source.slice(origin.span)));
    let what = match (text, origin.is_some_and(|origin| origin.derived)) {
        (Some(text), false) => format!("`{text}` is {value}"),
        (Some(text), true) => format!("the derivative of `{text}` is {value}"),
        (None, _) => format!("the form is {value}"),
    };
    let mut operands: Vec<String> = Vec::new();
    for id in form.exprs.expr(found).operands() {
        let Some(text) = written(id) else { continue };
        let line = format!("`{text}` = {}", shown(&values[&id]));
        if !operands.contains(&line) {
            operands.push(line);
        }
    }
    let fields = form.exprs.reachable_in_order(&[found]).into_iter().filter_map(|id| {
        let &Expr::Terminal(terminal) = form.exprs.expr(id) else { return None };
        let state = matches!(
            terminal,
            Terminal::Field(..) | Terminal::FieldGradient(..) | Terminal::FieldHessian(..)
        );
        let line = format!("`{}` = {}", name(form, terminal)?, shown(&values[&id]));
        (state && !operands.contains(&line)).then_some(line)
    });
    let fields = fields.collect();
    NonFiniteOrigin { span: origin.map(|origin| origin.span), what, operands, fields }
}

/// Returns the name of a terminal in the language.
fn name(form: &Form, terminal: Terminal) -> Option<String> {
    match terminal {
        Terminal::Test(..)
        | Terminal::TestGradient(..)
        | Terminal::TestHessian(..)
        | Terminal::Direction(..)
        | Terminal::DirectionGradient(..)
        | Terminal::DirectionHessian(..) => None,
        _ => Some(form.terminal_name(terminal)),
    }
}

/// Returns text on one line, shortened if necessary.
fn one_line(text: &str) -> String {
    const MOST: usize = 60;
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

/// Formats a number, or several in brackets, to five digits.
pub fn shown(values: &[f64]) -> String {
    let number = |&value: &f64| match value.abs() {
        _ if !value.is_finite() || value == 0.0 => format!("{value}"),
        1e-3..1e5 => {
            let text = format!("{value:.5}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => format!("{value:.4e}"),
    };
    match values {
        [value] => number(value),
        values => format!("[{}]", values.iter().map(number).collect::<Vec<_>>().join(", ")),
    }
}
