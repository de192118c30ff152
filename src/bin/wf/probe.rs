//! `wf probe`: numbers that do not depend on any numbering, to compare a form with a paper or another code.

use clap::Args;
use fem_dsl::problem::Expression;
use runtime::compile::{compile as compile_kernels, facts};
use runtime::expression::evaluate;
use runtime::operator::CellOperator;
use runtime::run::{Setup, set_up};
use runtime::solve::{LinearOperator as _, NonlinearSystem as _};
use runtime::vector::Vector;
use serde_json::json;

use crate::arguments::{Assignment, ProblemArguments};
use crate::problem::{compile, overrides, prepare, with_threads};
use crate::report::{Failure, Report};

/// Print R(u)·v, and with a direction w also vᵀJ(u)w, for expressions interpolated at the nodes.
///
/// The numbers do not depend on how cells or unknowns are numbered. Conditions are left aside.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf probe examples/poisson.wf --at 'u=x[0]^2' --test 'u=x[1]'
  wf probe examples/poisson.wf --mesh 'box(dim: 2, cells: 4)' --degree 2 --at 'u=x[0]' --direction 'u=x[0]' --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    /// The state, for each field: --at 'u=x[0] * x[1]'.
    #[arg(long, value_name = "FIELD=EXPR", required = true)]
    pub(crate) at: Vec<Assignment>,

    /// The direction w of the derivative, for each field.
    #[arg(long, value_name = "FIELD=EXPR")]
    pub(crate) direction: Vec<Assignment>,

    /// The test function v, for each field; 1 in every component without it.
    #[arg(long, value_name = "FIELD=EXPR")]
    pub(crate) test: Vec<Assignment>,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    with_threads(None, || probe(arguments))?
}

/// The problem that is probed: the one named, the first, or one made of the flags.
fn program(arguments: &Arguments) -> Result<(fem_dsl::program::Program, String), Failure> {
    let file = &arguments.problem.file;
    let program = compile(file, "")?;
    let first = program.problems().next().map(|head| head.name.to_owned());
    if let Some(name) = arguments.problem.problem.clone().or(first) {
        return Ok((program, name));
    }
    let [form] = program.forms() else {
        return Err(Failure::input(
            "the file has no problem and not exactly one form\nhelp: add a problem that solves the form",
        ));
    };
    let mut name = "probed".to_owned();
    while program.form(&name).is_some() {
        name.push('_');
    }
    let text = format!(
        "problem {name} solves {} {{ mesh = box(dim: 2, cells: 1); degree = 1; }}",
        form.name
    );
    Ok((compile(file, &text)?, name))
}

fn probe(arguments: &Arguments) -> Result<Report, Failure> {
    let (program, name) = program(arguments)?;
    let overrides = overrides(&arguments.problem);
    let (mut problem, mesh) = prepare(&program, &name, &arguments.problem.file, &overrides)?;
    problem.dirichlet.clear();
    let dim = mesh.dim();
    let values = |option: &str, list: &[Assignment]| {
        let pairs: Vec<_> = list.iter().map(|a| (a.name.clone(), a.value.clone())).collect();
        let found = program.field_values(&problem.form.name, dim, option, &pairs);
        found.map_err(|found| Failure::diagnostics(program.source(), &found))
    };
    let at = values("--at", &arguments.at)?;
    let direction = values("--direction", &arguments.direction)?;
    let test = values("--test", &arguments.test)?;
    let setup = set_up(&problem, mesh)?;
    let target = arguments.problem.target();
    let mut tasks = vec![kernels_gen::plan::Task::Residual];
    if !direction.is_empty() {
        tasks.push(kernels_gen::plan::Task::Action);
    }
    let compiled =
        compile_kernels(&problem.form, &setup.elements, &facts(&setup.on), &tasks, &target)?;
    let kernels = compiled.word();
    let mut operator = CellOperator::new(
        setup.on.clone(),
        compiled.module,
        &compiled.kernels,
        target.precision,
        &setup.parameters.values,
        false,
    )?;
    let u = nodal(&setup, operator.vector(), &at, 0.0)?;
    let v = nodal(&setup, operator.vector(), &test, 1.0)?;
    let mut r = operator.vector();
    operator.residual(&u, &mut r)?;
    let residual = r.dot(&v);
    let cells = setup.on.mesh.n_cells();
    let dofs = setup.on.n_dofs();
    let mut text =
        format!("{cells} cells, {dofs} unknowns, {}; kernels {kernels}\n", setup.elements.rule);
    text.push_str(&format!("R(u)·v    {residual:.16e}\n"));
    let mut value =
        json!({ "cells": cells, "dofs": dofs, "kernels": kernels, "residual": residual });
    if !direction.is_empty() {
        let w = nodal(&setup, operator.vector(), &direction, 0.0)?;
        operator.linearise(&u)?;
        operator.apply(&w, &mut r)?;
        let jacobian = r.dot(&v);
        text.push_str(&format!("v·J(u)w   {jacobian:.16e}\n"));
        value["jacobian"] = json!(jacobian);
    }
    Ok(Report::new(text, value))
}

/// Interpolates an expression at the nodes; without one, every component is `otherwise`.
fn nodal(
    setup: &Setup,
    mut vector: Vector,
    values: &[(usize, Expression)],
    otherwise: f64,
) -> Result<Vector, Failure> {
    let Some((_, expression)) = values.last() else {
        vector.fill(otherwise);
        return Ok(vector);
    };
    let points = setup.on.fields[0].space.points(&setup.on.mesh, &setup.on.partition)?;
    let nothing = |_: usize| f64::NAN;
    let entries = evaluate(expression, &expression.value, &points, &setup.parameters, nothing);
    if let Some(at) = entries.iter().position(|value| !value.is_finite()) {
        let point = points[at / expression.value.len()];
        return Err(Failure::input(format!("an expression is {} at {point:?}", entries[at])));
    }
    vector.set(&entries);
    Ok(vector)
}
