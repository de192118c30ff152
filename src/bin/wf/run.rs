//! `wf run`: solve the problems of a file.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use indicatif::{ProgressBar, ProgressStyle};
use kernels_gen::plan::Scatter;
use runtime::compile::Target;
use runtime::device::Device;
use runtime::output::writable;
use runtime::run::{RunError, Solution, run_on};
use runtime::solve::Continue;
use serde_json::{Value, json};

use crate::arguments::{DeviceArguments, ProblemArguments};
use crate::blame::Blame;
use crate::problem::{chosen, compile, overrides, prepare, spare, with_threads};
use crate::report::{Failure, Report};

/// Solve the problems of a file, report on each, and write what ParaView opens.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf run examples/poisson.wf
  wf run examples/poisson.wf --degree 4 --param f=2
  wf run examples/poisson.wf --mesh 'box(dim: 3, cells: 16)' --output box.vtu
  wf run examples/poisson.wf --json --no-output
  wf run examples/poisson.wf --interpret      without a compiler
  wf run examples/poisson.wf --backend cuda   the whole solve on a GPU
  wf run examples/poisson.wf --backend cuda --scatter owner   the same bits at every run")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// The file for the solution; NAME.vtu of the problem's name in the current folder without it.
    #[arg(long, short, value_name = "FILE", conflicts_with = "no_output")]
    pub(crate) output: Option<PathBuf>,

    /// Write no file.
    #[arg(long)]
    pub(crate) no_output: bool,

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(arguments: &Arguments, quiet: bool) -> Result<Report, Failure> {
    let file = &arguments.problem.file;
    let overrides = overrides(&arguments.problem);
    let wanted = arguments.problem.problem.as_deref();
    let program = compile(file, "", wanted, &overrides)?;
    let names = chosen(&program, wanted)?;
    if arguments.output.is_some() && names.len() > 1 {
        return Err(Failure::input(
            "--output names one file, but there are several problems\nhelp: choose one with --problem NAME",
        ));
    }
    let device = arguments.device.open()?;
    if device.is_some() && arguments.problem.interpret {
        return Err(Failure::input(
            "--interpret is for the processor's kernels\nhelp: leave it or --backend out",
        ));
    }
    let mut report = Report { text: String::new(), json: Vec::new() };
    for name in &names {
        let output = match (&arguments.output, arguments.no_output) {
            (_, true) => None,
            (Some(path), false) => Some(path.clone()),
            (None, false) => Some(PathBuf::from(format!("{name}.vtu"))),
        };
        let solved = with_threads(arguments.threads, || {
            if let Some(path) = &output {
                spare(path, file)?;
                writable(path)?;
            }
            let (problem, mesh) = prepare(&program, name, file, &overrides)?;
            let mut target = arguments.problem.target();
            target.wishes.scatter = arguments.device.scatter;
            let blame = Blame { program: &program, problem: name, overrides: &overrides };
            let solution = solve(&problem, mesh, &target, device.clone(), quiet);
            let solution = solution.map_err(|error| blame.run(&problem, error))?;
            if let Some(path) = &output {
                weakform::write_vtu(path, &problem.form, &solution.on, &solution.u)?;
            }
            Ok::<_, Failure>((problem, solution))
        })?;
        let (problem, solution) = match solved {
            Ok(solved) => solved,
            Err(failure) => return Err(failure.after(report)),
        };
        report.text.push_str(&text(&problem, &solution, output.as_deref()));
        report.json.push(value(&problem, &solution, output.as_deref()));
    }
    Ok(report)
}

fn solve(
    problem: &Problem,
    mesh: runtime::mesh::Mesh,
    target: &Target,
    device: Option<Arc<dyn Device>>,
    quiet: bool,
) -> Result<Solution, RunError> {
    let bar = if quiet || !std::io::stderr().is_terminal() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
        bar.set_style(style);
    }
    bar.set_message(format!("{}: preparing", problem.name));
    bar.enable_steady_tick(Duration::from_millis(100));
    let mut observe = |progress: runtime::solve::Progress| {
        bar.set_message(format!(
            "{}: iteration {}, residual {:.2e} of {:.2e}",
            problem.name, progress.iteration, progress.residual, progress.target
        ));
        Continue::Yes
    };
    let solution = run_on(problem, mesh, target, device, &mut observe);
    bar.finish_and_clear();
    solution
}

fn shape_word(shape: Shape) -> String {
    match shape {
        Shape::Scalar => "scalar".to_owned(),
        Shape::Vector(n) => format!("vector of {n}"),
        Shape::Matrix(m, n) => format!("{m}×{n} matrix"),
    }
}

/// How results came to their vector; the processor colours its chunks of cells.
fn scatter(solution: &Solution) -> Scatter {
    let plan = solution.kernels.device.as_ref().and(solution.kernels.plans.first());
    plan.map_or(Scatter::Coloured, |plan| plan.scatter)
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
    let notes = mesh.notes().iter().chain(&solution.notes);
    let notes = notes.map(|note| format!("  note        {note}"));
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
        let (backend, scatter) = (solution.kernels.backend, scatter(solution));
        lines.insert(4, format!("  device      {backend} ({device}), scatter {scatter}"));
    }
    lines.splice(2..2, notes);
    for (field, l2, h1) in &solution.errors {
        lines.push(format!("  error       {}: L2 {l2:.6e}, H1 {h1:.6e}", form.fields[*field].name));
    }
    if let Some(energy) = solution.energy {
        lines.push(format!("  energy      {energy:.12e}"));
    }
    lines.push(format!("  throughput  {:.3e} DoF/s", solution.throughput));
    let seconds = solution.seconds;
    lines.push(format!(
        "  seconds     compile {:.3}, set up {:.3}, solve {:.3}",
        seconds.compile, seconds.set_up, seconds.solve
    ));
    if let Some(path) = output {
        lines.push(format!("  output      {}", path.display()));
    }
    lines.push(String::new());
    lines.join("\n")
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
        "notes": solution.on.mesh.notes().iter().chain(&solution.notes).collect::<Vec<_>>(),
        "kernels": solution.kernels.word,
        "backend": solution.kernels.backend.word(),
        "scatter": scatter(solution).to_string(),
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
        if let Some(path) = output {
            object.insert("output".into(), json!(path));
        }
    }
    value
}
