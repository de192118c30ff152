//! Parameters and `let`s, in dependency order.

use super::declare;
use super::expression::Checker;
use super::names::ExprContext;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::eval::tensors;
use crate::form::{Expr, ExprId, Form, Shape, Terminal, Type};
use crate::point::Param;
use std::collections::BTreeMap;

/// Declares the parameters with the values of their defaults.
pub(super) fn params(checker: &mut Checker<'_>) {
    let names = checker.names;
    let zero = checker.form.exprs.constant(0.0);
    for item in &names.params {
        // A placeholder, so that indices equal those of the declarations.
        let name = item.name.name.clone();
        checker.form.params.push(Param {
            name,
            shape: crate::point::Shape::Scalar,
            value: vec![0.0],
        });
        checker.form.defaults.push(zero);
    }
    checker.broken_params = (0..names.params.len()).collect();
    for &i in &names.param_order {
        if let Some((param, default)) = param(checker, i) {
            checker.form.params[i] = param;
            checker.form.defaults[i] = default;
            checker.broken_params.remove(&i);
        }
    }
}

fn param(checker: &mut Checker<'_>, i: usize) -> Option<(Param, ExprId)> {
    let item = checker.names.params[i];
    let mut diagnostics = Vec::new();
    let declared = match item.shape {
        Some(spec) => declare::shape(spec, checker.form.dim, &mut diagnostics).map(Shape::from),
        None => None,
    };
    for diagnostic in diagnostics {
        checker.report(diagnostic);
    }
    let place = ExprContext { param: true, ..ExprContext::region(None) };
    let default = checker.expression(item.value, place)?;
    let span = checker.span(item.value);
    let found = checker.form.exprs.ty(default);
    let Type::Tensor(shape) = found else {
        let message = "a parameter is a number, vector or matrix, not a condition";
        checker.report(Diagnostic::new(Code::NotACondition, message).label(span, ""));
        return None;
    };
    if let (Some(spec), Some(declared)) = (item.shape, declared)
        && declared != shape
    {
        let message =
            format!("`{}` is declared as {declared}, but this is {shape}", item.name.name);
        let mut diagnostic = Diagnostic::new(Code::WrongShape, message)
            .label(span, format!("this is {shape}"))
            .secondary(spec.span, format!("here this is {declared}"));
        if shape.rank() == 1 && declared.rank() == 1 {
            diagnostic = diagnostic.help(format!(
                "`vector` has as many components as there are dimensions; `vector({})` always {}",
                shape.extent(0),
                shape.extent(0)
            ));
        }
        checker.report(diagnostic);
        return None;
    }
    if item.shape.is_some() && declared.is_none() {
        return None;
    }
    let point_shape = shape.to_point()?;
    let value = parameter_value(&checker.form, &checker.form.params, default);
    if value.iter().any(|value| !value.is_finite()) {
        let message = format!("the default of `{}` is not a finite number", item.name.name);
        let shown: Vec<String> = value.iter().map(f64::to_string).collect();
        checker.report(
            Diagnostic::new(Code::NotFinite, message)
                .label(span, format!("this is {}", shown.join(", "))),
        );
        return None;
    }
    Some((Param { name: item.name.name.clone(), shape: point_shape, value }, default))
}

/// Returns the value of an expression in constants and parameters, with the values of `params`.
fn parameter_value(form: &Form, params: &[Param], expr: ExprId) -> Vec<f64> {
    let mut values: BTreeMap<ExprId, Vec<f64>> =
        tensors(&form.exprs, &[expr], |terminal| match terminal {
            Terminal::Param(i) => params[i].value.clone(),
            other => vec![f64::NAN; form.shape_of(other).map_or(1, Shape::components)],
        });
    values.remove(&expr).unwrap_or_default()
}

impl Form {
    /// Returns the values of all parameters with some overridden: a default that depends on an overridden parameter
    /// follows it.
    pub fn param_values(&self, overrides: &BTreeMap<usize, Vec<f64>>) -> Vec<Vec<f64>> {
        let mut params = self.params.clone();
        // Numbers of unresolved dependencies; overridden parameters have none.
        let mut waiting = vec![0_usize; self.params.len()];
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); self.params.len()];
        for (i, &default) in self.defaults.iter().enumerate() {
            if overrides.contains_key(&i) {
                continue;
            }
            for id in self.exprs.reachable_in_order(&[default]) {
                if let Expr::Terminal(Terminal::Param(used)) = *self.exprs.expr(id) {
                    waiting[i] += 1;
                    users[used].push(i);
                }
            }
        }
        let mut ready: Vec<usize> = (0..waiting.len()).filter(|&i| waiting[i] == 0).collect();
        while let Some(i) = ready.pop() {
            params[i].value = match overrides.get(&i) {
                Some(value) => value.clone(),
                None => parameter_value(self, &params, self.defaults[i]),
            };
            for &user in &users[i] {
                waiting[user] -= 1;
                if waiting[user] == 0 {
                    ready.push(user);
                }
            }
        }
        params.into_iter().map(|param| param.value).collect()
    }
}

/// Evaluates all `let`s, used or not.
pub(super) fn lets(checker: &mut Checker<'_>) {
    let names = checker.names;
    for &i in &names.definition_order {
        let definition = names.definitions[i];
        if definition.parameters.is_some() {
            continue;
        }
        let value = checker.expression(definition.body, ExprContext::region(definition.region));
        checker.lets.insert(i, value);
        if let Some(value) = value {
            let plain = matches!(
                checker.form.exprs.expr(value),
                Expr::Constant(_) | Expr::Zero(_) | Expr::Identity(_) | Expr::Terminal(_)
            );
            if !plain {
                let name = definition.name.name.clone();
                checker.form.names.entry(value).or_insert(name);
            }
        }
    }
}
