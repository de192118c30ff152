//! `wf run`: solve the problems of a file.

mod dry;
mod goal;
mod sweep;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fem_dsl::check::problem::Overrides;
use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use fem_dsl::source::seen;
use runtime::device::Device;
use runtime::output::{writable, write_text};
use runtime::run::{Figure, RunError, Solution, run_from};
use runtime::solve::Continue;
use serde_json::{Value, json};

use crate::arguments::{DeviceArguments, ProblemArguments, written_as};
use crate::blame::Blame;
use crate::console::Console;
use crate::problem::{called, chosen, compile, overrides, prepare, read, spare, with_threads};
use crate::report::{Failure, Report};
use goal::Goal;
use sweep::Sweep;
use table::{Table, line_files};

/// Solve the problems of a file, report on each, and write what ParaView opens.
///
/// A problem that fails does not keep those after it from being solved; the exit code is 1 then.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf run examples/poisson.wf
  wf run examples/poisson.wf --degree 4 --param f=2
  wf run examples/poisson.wf --param f=1,2,4 --report f.csv     a solve for each value, each from the one before
  wf run examples/poisson.wf --param f=1..10:5                  five values, both ends included
  wf run examples/poisson.wf --mesh 'box(dim: 3, cells: 16)' --output box.vtu
  wf run examples/poisson.wf --json --no-output     one object a problem
  wf run - --output - < poisson.wf > poisson.vtu    from standard input to standard output
  wf run examples/poisson.wf --dry-run              what it takes, without solving
  wf run examples/poisson.wf --interpret      without a compiler
  wf run examples/poisson.wf --backend cuda   the whole solve on a GPU
  wf run examples/poisson.wf --backend cuda --scatter owner   the same bits at every run")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// The file for the solution, which is VTU: its name ends in `.vtu` or has no extension; `-` is standard output, and
    /// the report goes to standard error. NAME.vtu of the problem's name in the current folder without it. What a solve
    /// that stops short has reached goes to NAME.unconverged.vtu beside it.
    #[arg(long, short, value_name = "FILE", conflicts_with = "no_output")]
    pub(crate) output: Option<PathBuf>,

    /// Write no file.
    #[arg(long)]
    pub(crate) no_output: bool,

    /// A table of what the problem reports, as CSV: a row for each solve, a column for each number. `report NAME = line(…)`
    /// goes to PROBLEM-NAME.csv beside the solution instead.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Solve nothing: say how many cells and unknowns there are, and what memory they take at least.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let wanted = arguments.problem.problem.as_deref();
    let all = overrides(&arguments.problem);
    let sweep = Sweep::of(&all)?;
    let mut aside = false;
    if arguments.output.is_some() {
        let goal = Goal::of(arguments, "", console)?;
        goal.try_out(&arguments.problem.file)?;
        aside = goal.is_standard_output();
        if aside && sweep.is_some() {
            return Err(Failure::usage(
                "`--output -` takes one solution, but a parameter has several values\nhelp: name a file",
            ));
        }
    }
    if let Some(path) = &arguments.report {
        spare(path, &arguments.problem.file)?;
        writable(path)?;
        written_as(path, &["csv"], "a table of reports")?;
    }
    // Each value of a sweep with what the command line says then.
    let values: Vec<(Option<&str>, Overrides)> = match &sweep {
        None => vec![(None, all)],
        Some(sweep) => {
            let own = |value: &'_ String| sweep.overrides(&all, value);
            sweep.values.iter().map(|value| (Some(value.as_str()), own(value))).collect()
        }
    };
    let source = read(&arguments.problem.file)?;
    let program = compile(&source, wanted, &values[0].1, console)?;
    let names = chosen(&program, wanted)?;
    for (given, option) in [(&arguments.output, "--output"), (&arguments.report, "--report")] {
        if given.is_some() && names.len() > 1 {
            return Err(Failure::input(format!(
                "{option} names one file, but there are several problems\nhelp: choose one with --problem NAME"
            )));
        }
    }
    let device = arguments.device.open_for(&arguments.problem)?;
    let (mut report, common) = (Report::default(), console.take());
    for name in &names {
        let (mut table, mut start) = (Table::default(), None);
        for (number, (value, overrides)) in values.iter().enumerate() {
            let problem = Blame { program: &program, problem: name, overrides };
            let varied = sweep.as_ref().zip(*value);
            let varied = varied.map(|(sweep, value)| (number + 1, sweep.name.as_str(), value));
            let solve = Solve { arguments, which: problem, varied, device: &device, console };
            let done = with_threads(arguments.threads, || match arguments.dry_run {
                true => dry::estimated(problem, &arguments.problem.file),
                false => solve.one(&mut start, &mut table),
            });
            let done = done.flatten().map_err(|failure| match (names.len(), varied) {
                (1, None) => failure,
                (_, None) => failure.note(&format!("the problem `{name}` is not solved")),
                (_, Some((_, param, value))) => failure
                    .note(&format!("the problem `{name}` is not solved for {param} = {value}")),
            });
            let warnings = [common.clone(), console.take()].concat();
            report.add(("problem", name), done, warnings);
        }
        if let Some(path) = arguments.report.as_ref().filter(|_| table.len() > 0) {
            table.write(path)?;
        }
        if sweep.is_some() && table.len() > 0 {
            report.text.push_str(&table.text());
        }
    }
    report.aside = aside;
    Ok(report)
}

/// One solve.
struct Solve<'a> {
    arguments: &'a Arguments,
    which: Blame<'a>,
    /// The number, the parameter and its value where it has several.
    varied: Option<(usize, &'a str, &'a str)>,
    device: &'a Option<Arc<dyn Device>>,
    console: &'a Console,
}

impl Solve<'_> {
    /// Solves one problem from where the last solve ended, if there was one, and leaves its end there.
    fn one(&self, start: &mut Option<Vec<f64>>, table: &mut Table) -> Result<Report, Failure> {
        let Self { arguments, which, varied, device, console } = *self;
        let (name, file) = (which.problem, &arguments.problem.file);
        let goal = Goal::of(arguments, name, console)?.numbered(varied.map(|(number, ..)| number));
        goal.try_out(file)?;
        console.progress().say(format!("{name}: making the mesh"));
        let (problem, mesh) = prepare(which.program, name, file, which.overrides)?;
        which.warn(&problem, console);
        let mut target = arguments.problem.target();
        target.wishes.scatter = arguments.device.scatter;
        console.progress().say(format!("{name}: setting up {} cells and kernels", mesh.n_cells()));
        let mut observe = |now: runtime::solve::Progress| {
            let (iteration, residual, target) = (now.iteration, now.residual, now.target);
            console.progress().say(format!(
                "{name}: iteration {iteration}, residual {residual:.2e} of {target:.2e}"
            ));
            Continue::Yes
        };
        let earlier = start.as_deref();
        let solution = run_from(&problem, mesh, earlier, &target, device.clone(), &mut observe);
        let solution = solution.map_err(|error| match error {
            RunError::Unconverged { source, reached } => {
                goal.write_reached(which.run(&problem, *source), file, &problem, &reached)
            }
            error => which.run(&problem, error),
        })?;
        table.add(varied.map(|(_, param, value)| (param, value)), &solution.reports);
        console.progress().say(format!("{name}: writing the solution"));
        let written =
            goal.write(&problem, &solution).and_then(|()| self.write_lines(&goal, &solution));
        // What was found is said, also where it cannot be written.
        let path = goal.path().filter(|_| written.is_ok());
        let (mut text, mut value) =
            (text(&problem, &solution, path), value(&problem, &solution, path));
        if let Some((_, param, given)) = varied {
            text = text.replacen('\n', &format!(", {param} = {given}\n"), 1);
            value["sweep"] = json!({ param: given });
        }
        *start = Some(solution.u);
        let report = Report::new(text, value);
        match written {
            Ok(()) => Ok(report),
            Err(failure) => Err(failure.after(report)),
        }
    }

    /// Writes the lines that are reported, beside the solution.
    fn write_lines(&self, goal: &Goal, solution: &Solution) -> Result<(), Failure> {
        let Goal::File(path) = goal else { return Ok(()) };
        for (file, text) in line_files(&path.with_extension(""), &solution.reports) {
            spare(&file, &self.arguments.problem.file)?;
            write_text(&file, &text)?;
        }
        Ok(())
    }
}

fn shape_word(shape: Shape) -> String {
    match shape {
        Shape::Scalar => "scalar".to_owned(),
        Shape::Vector(n) => format!("vector of {n}"),
        Shape::Matrix(m, n) => format!("{m}×{n} matrix"),
    }
}

fn text(problem: &Problem, solution: &Solution, output: Option<&Path>) -> String {
    let form = &problem.form;
    let mesh = &solution.on.mesh;
    let fields: Vec<String> = form
        .fields
        .iter()
        .zip(&solution.elements.fields)
        .map(|(field, element)| {
            let (name, shape, degree) = (&field.name, shape_word(field.shape), element.degree());
            let of = if element.is_continuous() { "" } else { " in L2" };
            format!("{name}: {shape}{of}, degree {degree}")
        })
        .collect();
    let action = solution.kernels.plans.iter().find(|p| p.task == kernels_gen::plan::Task::Action);
    let plan = action.map_or_else(String::new, |plan| {
        format!(
            "{}, {} lanes, geometry {}, unknowns by {:?}",
            solution.kernels.word, plan.lanes, plan.geometry, plan.indices
        )
    });
    let report = &solution.report;
    let notes = solution.notes.iter().map(|note| format!("  note        {note}"));
    let mut lines = vec![
        format!("{} ({})", problem.name, form.name),
        format!("  mesh        {} cells ({})", mesh.n_cells(), mesh.cell().name()),
        format!("  unknowns    {} ({})", solution.on.n_dofs(), fields.join("; ")),
        format!("  quadrature  {}", solution.elements.rule),
        format!("  kernels     {plan}"),
        format!(
            "  solver      {}, {} iterations{}",
            report.solver,
            report.iterations,
            if solution.linear_iterations == report.iterations {
                String::new()
            } else {
                format!(" ({} linear)", solution.linear_iterations)
            }
        ),
        format!("  residual    {:.3e}", solution.residual),
    ];
    if let Some(device) = &solution.kernels.device {
        let (backend, scatter) = (solution.kernels.backend, solution.kernels.scatter());
        lines.insert(4, format!("  device      {backend} ({device}), scatter {scatter}"));
    }
    lines.splice(2..2, notes);
    for (field, l2, h1) in &solution.errors {
        lines.push(format!("  error       {}: L2 {l2:.6e}, H1 {h1:.6e}", form.fields[*field].name));
    }
    if let Some(energy) = solution.energy {
        lines.push(format!("  energy      {energy:.12e}"));
    }
    lines.extend(ranges(problem, solution).map(|line| format!("  range       {line}")));
    lines.extend(
        solution
            .reports
            .iter()
            .map(|report| format!("  report      {} = {}", report.name, figure(&report.value))),
    );
    lines.push(format!("  throughput  {:.3e} DoF/s", solution.throughput));
    let seconds = solution.seconds;
    lines.push(format!(
        "  seconds     compile {:.3}, set up {:.3}, solve {:.3}",
        seconds.compile, seconds.set_up, seconds.solve
    ));
    if let Some(path) = output {
        lines.push(format!("  output      {}", seen(&path.display().to_string())));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// The smallest and the largest value of each component of each field.
fn ranges<'a>(problem: &'a Problem, solution: &'a Solution) -> impl Iterator<Item = String> + 'a {
    let fields = problem.form.fields.iter().zip(&solution.ranges);
    fields.flat_map(|(field, ranges)| {
        ranges.iter().enumerate().map(|(component, [least, most])| {
            let name = match ranges.len() {
                1 => field.name.clone(),
                _ => format!("{}[{component}]", field.name),
            };
            format!("{name}: {least:.6e} to {most:.6e}")
        })
    })
}

/// A report as a person reads it: at most so many points of a line.
fn figure(figure: &Figure) -> String {
    let list = |values: &[f64]| {
        let shown: Vec<String> = values.iter().map(|value| format!("{value:.10e}")).collect();
        format!("[{}]", shown.join(", "))
    };
    match figure {
        Figure::Value(Shape::Scalar, values) => format!("{:.10e}", values[0]),
        Figure::Value(Shape::Vector(_), values) => list(values),
        Figure::Value(Shape::Matrix(_, columns), values) => {
            let rows: Vec<String> = values.chunks(*columns).map(list).collect();
            format!("[{}]", rows.join(", "))
        }
        Figure::Line(_, points) => format!("{} points", points.len()),
    }
}

/// The same as data: numbers, and arrays of numbers; of a line objects with its places and values.
fn figure_value(figure: &Figure) -> Value {
    let shaped = |shape: &Shape, values: &[f64]| match shape {
        Shape::Scalar => json!(values[0]),
        Shape::Vector(_) => json!(values),
        Shape::Matrix(_, columns) => values.chunks(*columns).map(|row| json!(row)).collect(),
    };
    match figure {
        Figure::Value(shape, values) => shaped(shape, values),
        Figure::Line(shape, points) => points
            .iter()
            .map(|(x, values)| json!({ "x": x, "value": shaped(shape, values) }))
            .collect(),
    }
}

fn value(problem: &Problem, solution: &Solution, output: Option<&Path>) -> Value {
    let report = &solution.report;
    let mut value = json!({
        "problem": problem.name,
        "form": problem.form.name,
        "cell": solution.on.mesh.cell().name(),
        "degree": problem.degree,
        "quadrature": solution.elements.rule.to_string(),
        "cells": solution.on.mesh.n_cells(),
        "dofs": solution.on.n_dofs(),
        "notes": solution.notes,
        "kernels": solution.kernels.word,
        "backend": solution.kernels.backend.word(),
        "scatter": solution.kernels.scatter().to_string(),
        "solver": report.solver,
        "iterations": report.iterations,
        "linear_iterations": solution.linear_iterations,
        "residual": solution.residual,
        "dofs_per_second": solution.throughput,
        "seconds": {
            "compile": solution.seconds.compile,
            "set_up": solution.seconds.set_up,
            "solve": solution.seconds.solve,
        },
    });
    if let Some(object) = value.as_object_mut() {
        if !solution.errors.is_empty() {
            let errors = solution.errors.iter().map(|&(field, l2, h1)| {
                json!({ "field": problem.form.fields[field].name, "l2": l2, "h1": h1 })
            });
            object.insert("errors".into(), errors.collect());
        }
        if let [(_, l2, h1)] = solution.errors.as_slice() {
            object.insert("error_l2".into(), json!(l2));
            object.insert("error_h1".into(), json!(h1));
        }
        if let Some(device) = &solution.kernels.device {
            object.insert("device".into(), json!(device));
        }
        if let Some(energy) = solution.energy {
            object.insert("energy".into(), json!(energy));
        }
        let fields = problem.form.fields.iter().zip(&solution.ranges);
        let ranges = fields.map(|(field, ranges)| {
            let [least, most] = [0, 1].map(|end| match &ranges[..] {
                [range] => json!(range[end]),
                ranges => ranges.iter().map(|range| json!(range[end])).collect(),
            });
            (field.name.clone(), json!({ "minimum": least, "maximum": most }))
        });
        object.insert("fields".into(), Value::Object(ranges.collect()));
        if !solution.reports.is_empty() {
            let reports = solution.reports.iter();
            let reports = reports.map(|report| (report.name.clone(), figure_value(&report.value)));
            object.insert("reports".into(), Value::Object(reports.collect()));
        }
        if let Some(path) = output {
            object.insert("output".into(), json!(called(path)));
        }
    }
    value
}
