//! The expressions of problem blocks and of the command line: in coordinates, time, the cell diameter, the degree and
//! the form's parameters, or plain numbers.

use super::expression::Checker;
use super::names::{self, Entry, ExprContext, Meaning, Names};
use crate::ast;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::differentiate::{gradient, rate};
use crate::eval::tensors;
use crate::form::{ExprId, Exprs, Form, Shape, Terminal, Type};
use crate::manufacture::CoordinateFunction;
use crate::point::scalars::Scalars;
use crate::point::{self, scalarise};
use crate::problem::Expression;
use crate::source::Span;
use std::collections::BTreeMap;

/// The names that an expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AllowedNames {
    /// Coordinates, time and so on, and parameters.
    Functions,
    /// `pi`, `dim`, `I` and parameters.
    Numbers,
    /// These, and t and k: names that have a value after a solve.
    Settled,
}

/// Checks an expression in x, t, h, k and the parameters of `form`: boundary values, known solutions, auxiliary data.
/// Gradient and time derivatives are omitted if they do not exist.
///
/// # Errors
///
/// Errors of the expression.
pub fn expression(
    file: &ast::File,
    root: ast::ExprId,
    form: &Form,
) -> Result<Expression, Vec<Diagnostic>> {
    let (mut form, value) = checked(file, root, form, AllowedNames::Functions)?;
    let gradient = gradient(&mut form, value).ok();
    let first = rate(&mut form, value).ok();
    let second = first.and_then(|first| rate(&mut form, first).ok());
    let derivatives = [gradient, first, second];
    let roots: Vec<ExprId> =
        std::iter::once(value).chain(derivatives.into_iter().flatten()).collect();
    let mut scalars = Scalars::default();
    let nodes = scalarise(&mut scalars, &form, &roots);
    let shape = form.exprs.shape(value).to_point().unwrap_or(point::Shape::Scalar);
    let roots: Vec<point::NodeId> = roots.iter().flat_map(|root| nodes[root].clone()).collect();
    let (graph, moved) = point::finished(&scalars, &roots);
    let mut moved = moved.into_iter();
    let mut take = |count: usize| moved.by_ref().take(count).collect::<Vec<_>>();
    let value = take(shape.components());
    let [gradient, first, second] = derivatives.map(|of| take(of.map_or(0, |of| nodes[&of].len())));
    Ok(Expression { shape, graph, value, gradient, rates: [first, second] })
}

/// Checks an expression in numbers, parameters, t and k, whose values are known only later.
///
/// # Errors
///
/// Errors of the expression.
pub fn of_numbers(
    file: &ast::File,
    root: ast::ExprId,
    form: &Form,
) -> Result<Expression, Vec<Diagnostic>> {
    let (form, value) = checked(file, root, form, AllowedNames::Settled)?;
    let mut scalars = Scalars::default();
    let nodes = scalarise(&mut scalars, &form, &[value]);
    let shape = form.exprs.shape(value).to_point().unwrap_or(point::Shape::Scalar);
    let (graph, value) = point::finished(&scalars, &nodes[&value]);
    Ok(Expression { shape, graph, value, gradient: Vec::new(), rates: Default::default() })
}

/// Checks an expression like [`expression`], and returns it as tensors, for use in other expressions.
///
/// # Errors
///
/// Errors of the expression.
pub fn known(
    file: &ast::File,
    root: ast::ExprId,
    form: &Form,
) -> Result<CoordinateFunction, Vec<Diagnostic>> {
    let (form, value) = checked(file, root, form, AllowedNames::Functions)?;
    Ok(CoordinateFunction { exprs: form.exprs, value })
}

/// Evaluates an expression in numbers and parameters to a number, vector or matrix, row-major: settings, and values of
/// parameters; `params` contains the known ones.
///
/// # Errors
///
/// Errors of the expression.
pub fn number(
    file: &ast::File,
    root: ast::ExprId,
    form: &Form,
    params: &[Vec<f64>],
) -> Result<(point::Shape, Vec<f64>), Vec<Diagnostic>> {
    let (form, value) = checked(file, root, form, AllowedNames::Numbers)?;
    let values = tensors(&form.exprs, &[value], |terminal| match terminal {
        Terminal::Param(i) => match params.get(i) {
            Some(value) => value.clone(),
            None => form.params[i].value.clone(),
        },
        other => vec![f64::NAN; form.shape_of(other).map_or(1, Shape::components)],
    });
    let result = values[&value].clone();
    if result.iter().any(|number| !number.is_finite()) {
        let shown: Vec<String> = result.iter().map(f64::to_string).collect();
        let diagnostic = Diagnostic::new(Code::NotFinite, "this is not a finite number")
            .label(file.exprs[root].span, format!("its value is {}", shown.join(", ")));
        return Err(vec![diagnostic]);
    }
    Ok((form.exprs.shape(value).to_point().unwrap_or(point::Shape::Scalar), result))
}

/// Returns a form without fields and parameters, for expressions that belong to none.
pub fn no_form(dim: usize) -> Form {
    Form {
        name: String::new(),
        doc: String::new(),
        source: String::new(),
        dim,
        fields: Vec::new(),
        aux: Vec::new(),
        params: Vec::new(),
        rates: Vec::new(),
        defaults: Vec::new(),
        exprs: Exprs::new(),
        names: BTreeMap::new(),
        integrals: Vec::new(),
    }
}

fn checked(
    file: &ast::File,
    root: ast::ExprId,
    form: &Form,
    allowed: AllowedNames,
) -> Result<(Form, ExprId), Vec<Diagnostic>> {
    let mut names = Names::default();
    for (i, param) in form.own_params().iter().enumerate() {
        let entry = Entry { meaning: Meaning::Param(i), region: None, span: Span::default() };
        names.entries.insert(&param.name, entry);
    }
    let (param, settled) = (allowed != AllowedNames::Functions, allowed == AllowedNames::Settled);
    let place = ExprContext { param, settled, ..ExprContext::region(None) };
    let (names, diagnostics) = names::resolve_expression(file, root, names, place);
    let diagnostics =
        diagnostics.into_iter().map(|found| known_to_form(found, file, form, allowed));
    let scratch = Form {
        fields: form.fields.clone(),
        aux: form.aux.clone(),
        params: form.params.clone(),
        rates: form.rates.clone(),
        ..no_form(form.dim)
    };
    let mut checker = Checker::new(file, &names, scratch, diagnostics.collect());
    checker.cellwise = form.integrals.iter().any(|integral| integral.region.is_interior());
    let value = checker.expression(root, place);
    let (form, mut diagnostics) = checker.finish();
    let span = file.exprs[root].span;
    match value.map(|value| (value, form.exprs.ty(value))) {
        Some((value, Type::Tensor(shape))) if diagnostics.is_empty() => {
            if shape.to_point().is_some() {
                return Ok((form, value));
            }
            let message = format!("{shape} cannot stand here");
            diagnostics.push(Diagnostic::new(Code::WrongShape, message).label(span, ""));
        }
        Some((_, Type::Truth)) => {
            let message = "this is a condition, but a value is expected";
            diagnostics.push(Diagnostic::new(Code::NotACondition, message).label(span, ""));
        }
        // Broken syntax has been reported by the parser.
        _ => {}
    }
    Err(diagnostics)
}

/// Adds the meaning of a name in the form to a diagnostic about it.
fn known_to_form(
    diagnostic: Diagnostic,
    file: &ast::File,
    form: &Form,
    allowed: AllowedNames,
) -> Diagnostic {
    let Some(place) = diagnostic.primary().map(|label| label.span) else { return diagnostic };
    let name = file.exprs.iter().find_map(|expr| match &expr.kind {
        ast::ExprKind::Name(name) if expr.span == place => Some(name),
        _ => None,
    });
    let Some(name) = name.filter(|_| diagnostic.code == Code::UnknownName) else {
        return diagnostic;
    };
    let known = match allowed {
        AllowedNames::Functions => "x, t, k, dim, pi, I and the form's parameters",
        // Generators and solvers belong to no form.
        AllowedNames::Numbers if form.name.is_empty() => {
            "numbers, dim and pi, not the form's parameters"
        }
        AllowedNames::Numbers => "numbers, dim, pi, I and the form's parameters",
        AllowedNames::Settled => "numbers, t, k, dim, pi, I and the form's parameters",
    };
    let what = if form.fields.iter().any(|field| field.name == *name) {
        "a field, which is not known before the problem is solved"
    } else if form.aux.iter().any(|aux| aux.name == *name) {
        "auxiliary data, which only the form itself sees"
    } else {
        return diagnostic.note(format!("here are known: {known}"));
    };
    Diagnostic::new(Code::NotAvailableHere, format!("`{name}` is {what}"))
        .label(place, "not known here")
        .help(format!("use {known}"))
}
