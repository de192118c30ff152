//! `wf probe`: numbers that do not depend on any numbering, to compare a form with a paper or another code.

use std::sync::Arc;

use clap::Args;
use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::parse::parse;
use fem_dsl::problem::{Expression, Problem};
use fem_dsl::program::Program;
use fem_dsl::source::{Source, Span};
use kernels_gen::element::ElementError;
use kernels_gen::plan::Task;
use runtime::device::Device;
use runtime::problem::{Context, Platform, interpolant};
use runtime::processes::ProcessGroup;
use runtime::solve::NonlinearSystem;
use runtime::support::expression::evaluate;
use serde_json::json;

use crate::arguments::{Assignment, DeviceArguments, ProblemArguments};
use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::problem::{appended, compile, overrides, own_part, read, with_threads};
use crate::processes::{Processes, together};
use crate::report::{Failure, Report};

/// Print R(u)·v, and with a direction w also vᵀJ(u)w, for expressions interpolated at the nodes.
///
/// The numbers do not depend on how cells or unknowns are numbered. Conditions are left aside.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf probe examples/poisson.wf --at 'u=x[0]^2' --test 'u=x[1]'
  wf probe examples/poisson.wf --mesh 'box(dim: 2, cells: 4)' --degree 2 --at 'u=x[0]' --direction 'u=x[0]' --json
  wf probe examples/poisson.wf --at 'u=x[0]^2' --backend opencl     on a device, as `wf run` does
  mpirun -n 4 wf probe examples/poisson.wf --at 'u=x[0]^2'     four processes: a build with `--features mpi`")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

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

pub(crate) fn execute(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    processes.reads(&arguments.problem.file)?;
    let source = processes.settle(read(&arguments.problem.file), console)?;
    processes.given(source.text())?;
    let number = processes.number_of_host();
    let device = arguments.device.open_in(&arguments.problem, &[], number);
    let device = processes.join(device, console)?;
    let group = processes.group();
    with_threads(processes.threads(None), || probe(arguments, &source, device, group, console))?
}

/// Returns the program with the probed problem: the one named, the first, or one built from the options.
fn program(
    arguments: &Arguments,
    source: &Source,
    overrides: &Overrides,
    console: &Console,
) -> Result<(Program, String), Failure> {
    let (parsed, _) = parse(source);
    let first = parsed.problems.first().map(|problem| problem.name.name.clone());
    if let Some(name) = arguments.problem.problem.clone().or(first) {
        return Ok((compile(source, Some(&name), overrides, console)?, name));
    }
    let program = compile(source, None, &Overrides::default(), console)?;
    let [form] = program.forms() else {
        return Err(Failure::input(
            "the file has no problem and not exactly one form\nhelp: add a problem that solves the form",
        ));
    };
    if overrides.mesh.is_none() {
        return Err(Failure::input(
            "the file has no problem, and so no mesh\nhelp: give one with --mesh, 'box(dim: 2, cells: 4)'",
        ));
    }
    let mut name = "probed".to_owned();
    while program.form(&name).is_some() {
        name.push('_');
    }
    let text = format!("problem {name} solves {} {{ }}", form.name);
    Ok((compile(&appended(source, &text), Some(&name), overrides, console)?, name))
}

fn probe(
    arguments: &Arguments,
    source: &Source,
    device: Option<Arc<dyn Device>>,
    group: &Arc<dyn ProcessGroup>,
    console: &Console,
) -> Result<Report, Failure> {
    let overrides = overrides(&arguments.problem);
    let (program, name) = program(arguments, source, &overrides, console)?;
    console.progress().say(format!("{name}: making the mesh"));
    let attribution = ErrorAttribution { program: &program, problem: &name, overrides: &overrides };
    let (mut problem, mesh) = own_part(attribution, &arguments.problem.file, group)?;
    problem.dirichlet.clear();
    problem.mean.clear();
    let dim = mesh.dim();
    let values = |option: &str, list: &[Assignment]| {
        let pairs: Vec<_> = list.iter().map(|a| (a.name.clone(), a.value.clone())).collect();
        let found = program.field_values(&problem.form.name, dim, option, &pairs);
        found.map_err(|found| Failure::diagnostics(program.source(), &found))
    };
    let at = values("--at", &arguments.at)?;
    let direction = values("--direction", &arguments.direction)?;
    let test = values("--test", &arguments.test)?;
    console.progress().say(format!("{name}: setting up {} cells and kernels", mesh.n_cells()));
    let mut target = arguments.problem.target();
    target.wishes.scatter = arguments.device.scatter;
    let context = Context::new(problem.clone(), mesh, Platform::new(target, device));
    let context = context.map_err(|error| attribution.run(&problem, error))?;
    let tasks: &[Task] = match direction.as_slice() {
        [] => &[Task::Residual],
        _ => &[Task::Residual, Task::Action],
    };
    let placed = context.operator_with(tasks);
    let (mut operator, kernels) = placed.map_err(|error| attribution.run(&problem, error))?;
    let nodal = |option: &str, list: &[Assignment], values: &[(usize, Expression)], otherwise| {
        let own = nodal(&context, values, otherwise)
            .map_err(|error| not_finite(&program, &problem, option, list, error));
        let mut vector = operator.vector();
        vector.set(&together(&**group, own)?);
        vector.synchronise();
        Ok::<_, Failure>(vector)
    };
    let u = nodal("--at", &arguments.at, &at, 0.0)?;
    let v = nodal("--test", &arguments.test, &test, 1.0)?;
    let w = nodal("--direction", &arguments.direction, &direction, 0.0)?;
    let mut r = operator.vector();
    operator.residual(&u, &mut r)?;
    let product = r.dot(&v);
    // Device errors precede errors of the resulting numbers.
    operator.finish()?;
    let residual = finite("R(u)·v", product)?;
    let cells = context.on.mesh.cells_in_all();
    let dofs = context.on.dofs_in_all();
    let mut text = format!(
        "{cells} cells, {dofs} unknowns, {}; kernels {}\n",
        context.elements.rule, kernels.word
    );
    if let Some(device) = &kernels.device {
        let (backend, scatter) = (kernels.backend, kernels.scatter());
        text.push_str(&format!("{backend} ({device}), scatter {scatter}\n"));
    }
    if group.size() > 1 {
        text.push_str(&format!("{} processes, each with a part of the mesh\n", group.size()));
    }
    let notes = context.notes();
    notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
    text.push_str(&format!("R(u)·v    {residual:.16e}\n"));
    let mut value = json!({
        "problem": name,
        "cells": cells,
        "dofs": dofs,
        "notes": notes,
        "processes": group.size(),
        "kernels": kernels.word,
        "backend": kernels.backend.word(),
        "device": kernels.device,
        "scatter": kernels.scatter().to_string(),
        "residual": residual,
    });
    if !direction.is_empty() {
        operator.linearise(&u)?;
        operator.jacobian().apply(&w, &mut r)?;
        let product = r.dot(&v);
        operator.finish()?;
        let jacobian = finite("v·J(u)w", product)?;
        text.push_str(&format!("v·J(u)w   {jacobian:.16e}\n"));
        value["jacobian"] = json!(jacobian);
    }
    Ok(Report::new(text, value))
}

/// An expression without a value at some point.
enum ProbeError {
    Points(ElementError),
    NotFinite { field: usize, value: f64, point: [f64; 3] },
}

/// Interpolates an expression at the nodes of each field that has one, 0 for the others; without any, every component
/// of all fields is `otherwise`. Outside of the part of the mesh on which a field lives it is 0.
fn nodal(
    context: &Context,
    values: &[(usize, Expression)],
    otherwise: f64,
) -> Result<Vec<f64>, ProbeError> {
    let start = if values.is_empty() { otherwise } else { 0.0 };
    let mut entries = vec![start; context.on.n_dofs()];
    for (field, expression) in values {
        let (on, nothing) = (&context.on, |_: usize| f64::NAN);
        let own = interpolant(on, *field, |points| {
            evaluate(expression, &expression.value, points, &context.parameters, nothing)
        });
        let own = own.map_err(ProbeError::Points)?;
        if let Some(at) = own.iter().position(|value| !value.is_finite()) {
            let space = &on.fields[*field].space;
            let points = space.points(&on.mesh, &on.partition).map_err(ProbeError::Points)?;
            let point = points[at / space.components()];
            return Err(ProbeError::NotFinite { field: *field, value: own[at], point });
        }
        entries[context.on.dofs_of(*field)].copy_from_slice(&own);
    }
    for (number, field) in context.on.fields.iter().enumerate() {
        let components = field.space.components();
        for &node in field.support.iter().flat_map(|support| &support.outside) {
            let own = context.on.dofs_of(number).start + node as usize * components;
            entries[own..own + components].fill(0.0);
        }
    }
    Ok(entries)
}

/// Reports the point of the mesh at which the expression of an option has no value.
fn not_finite(
    program: &Program,
    problem: &Problem,
    option: &str,
    list: &[Assignment],
    wrong: ProbeError,
) -> Failure {
    let (field, value, [x, y, z]) = match wrong {
        ProbeError::Points(error) => return Failure::input(error),
        ProbeError::NotFinite { field, value, point } => (field, value, point),
    };
    let name = &problem.form.fields[field].name;
    let said = list.iter().rev().find(|said| said.name == *name);
    let said = said.map(|said| Source::new(option, format!("{} = {}", said.name, said.value)));
    let message = format!("this expression is {value} at ({x}, {y}, {z})");
    let mut diagnostic = Diagnostic::new(Code::NotFinite, message)
        .help("choose one that is finite at all nodes of the mesh");
    if let Some(said) = said {
        let all = Span::new(0, said.text().len());
        diagnostic = diagnostic.label(all, "not a number everywhere").of_source(Arc::new(said));
    }
    Failure::diagnostics(program.source(), &[diagnostic])
}

/// Returns a result, which must be finite.
fn finite(what: &str, value: f64) -> Result<f64, Failure> {
    if value.is_finite() {
        return Ok(value);
    }
    Err(Failure::input(format!(
        "{what} is {value}\nhelp: the form divides by zero at this state, or takes a logarithm or a root \
         of a negative number: choose another with --at"
    )))
}
