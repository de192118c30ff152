//! `wf run`: solve the problems of a file.

mod dry;
mod goal;
mod picture;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use fem_dsl::source::seen;
use runtime::device::Device;
use runtime::run::{RunError, Solution, run_on};
use runtime::solve::Continue;
use serde_json::{Value, json};

use crate::arguments::{DeviceArguments, ProblemArguments};
use crate::blame::Blame;
use crate::console::Console;
use crate::problem::{called, chosen, compile, overrides, prepare, read, with_threads};
use crate::report::{Failure, Report};
use goal::Goal;
use picture::PictureArguments;

/// Solve the problems of a file, report on each, and write what ParaView opens.
///
/// A problem that fails does not keep those after it from being solved; the exit code is 1 then.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf run examples/poisson.wf
  wf run examples/poisson.wf --degree 4 --param f=2
  wf run examples/poisson.wf --mesh 'box(dim: 3, cells: 16)' --output box.vtu
  wf run examples/poisson.wf --json --no-output     one object a problem
  wf run - --output - < poisson.wf > poisson.vtu    from standard input to standard output
  wf run examples/poisson.wf --picture u.png --slice z=0      the solution inside, without ParaView
  wf run examples/traction.wf --picture bent.svg --warp 0.1   its boundary, deformed by a tenth of the displacement
  wf run examples/stokes.wf --problem channel --picture p.png --field p
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

    #[command(flatten)]
    pub(crate) picture: PictureArguments,

    /// Solve nothing: say how many cells and unknowns there are, and what memory they take at least.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let wanted = arguments.problem.problem.as_deref();
    let mut aside = false;
    if arguments.output.is_some() {
        let goal = Goal::of(arguments, "", console)?;
        goal.try_out(&arguments.problem.file)?;
        aside = goal.is_standard_output();
    }
    arguments.picture.try_out(&arguments.problem.file)?;
    let overrides = overrides(&arguments.problem);
    let source = read(&arguments.problem.file)?;
    let program = compile(&source, wanted, &overrides, console)?;
    let names = chosen(&program, wanted)?;
    if arguments.output.is_some() && names.len() > 1 {
        return Err(Failure::input(
            "--output names one file, but there are several problems\nhelp: choose one with --problem NAME",
        ));
    }
    if arguments.picture.is_wanted() && names.len() > 1 {
        return Err(Failure::input(
            "--picture names one file, but there are several problems\nhelp: choose one with --problem NAME",
        ));
    }
    let device = arguments.device.open_for(&arguments.problem)?;
    let (mut report, common) = (Report::default(), console.take());
    for name in &names {
        let problem = Blame { program: &program, problem: name, overrides: &overrides };
        let done = with_threads(arguments.threads, || match arguments.dry_run {
            true => dry::estimated(problem, &arguments.problem.file),
            false => one(arguments, problem, &device, console),
        });
        let done = done.flatten().map_err(|failure| match names.len() {
            1 => failure,
            _ => failure.note(&format!("the problem `{name}` is not solved")),
        });
        let warnings = [common.clone(), console.take()].concat();
        report.add(("problem", name), done, warnings);
    }
    report.aside = aside;
    Ok(report)
}

/// Solves one problem.
fn one(
    arguments: &Arguments,
    which: Blame<'_>,
    device: &Option<Arc<dyn Device>>,
    console: &Console,
) -> Result<Report, Failure> {
    let (name, file) = (which.problem, &arguments.problem.file);
    let goal = Goal::of(arguments, name, console)?;
    goal.try_out(file)?;
    console.progress().say(format!("{name}: making the mesh"));
    let (problem, mesh) = prepare(which.program, name, file, which.overrides)?;
    arguments.picture.check(&problem, &mesh)?;
    which.warn(&problem, console);
    let mut target = arguments.problem.target();
    target.wishes.scatter = arguments.device.scatter;
    console.progress().say(format!("{name}: setting up {} cells and kernels", mesh.n_cells()));
    let mut observe = |now: runtime::solve::Progress| {
        let (iteration, residual, target) = (now.iteration, now.residual, now.target);
        console
            .progress()
            .say(format!("{name}: iteration {iteration}, residual {residual:.2e} of {target:.2e}"));
        Continue::Yes
    };
    let solution = run_on(&problem, mesh, &target, device.clone(), &mut observe);
    let solution = solution.map_err(|error| match error {
        RunError::Unconverged { source, reached } => {
            goal.write_reached(which.run(&problem, *source), file, &problem, &reached)
        }
        error => which.run(&problem, error),
    })?;
    console.progress().say(format!("{name}: writing the solution"));
    let written = goal.write(&problem, &solution);
    let drawn = arguments.picture.draw(&problem, &solution, console);
    // What was found is said, also where it cannot be written.
    let files = Files {
        output: goal.path().filter(|_| written.is_ok()),
        picture: arguments.picture.path().filter(|_| drawn.is_ok()),
        note: drawn.as_ref().ok().and_then(Option::as_deref),
    };
    let report = Report::new(text(&problem, &solution, files), value(&problem, &solution, files));
    match written.and(drawn.map(drop)) {
        Ok(()) => Ok(report),
        Err(failure) => Err(failure.after(report)),
    }
}

/// What was written.
#[derive(Clone, Copy)]
struct Files<'a> {
    output: Option<&'a Path>,
    picture: Option<&'a Path>,
    /// What should be known of the picture.
    note: Option<&'a str>,
}

fn shape_word(shape: Shape) -> String {
    match shape {
        Shape::Scalar => "scalar".to_owned(),
        Shape::Vector(n) => format!("vector of {n}"),
        Shape::Matrix(m, n) => format!("{m}×{n} matrix"),
    }
}

fn text(problem: &Problem, solution: &Solution, files: Files<'_>) -> String {
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
    let notes = solution.notes.iter().map(String::as_str).chain(files.note);
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
    lines.push(format!("  throughput  {:.3e} DoF/s", solution.throughput));
    let seconds = solution.seconds;
    lines.push(format!(
        "  seconds     compile {:.3}, set up {:.3}, solve {:.3}",
        seconds.compile, seconds.set_up, seconds.solve
    ));
    for (what, path) in [("output", files.output), ("picture", files.picture)] {
        if let Some(path) = path {
            lines.push(format!("  {what:<10}  {}", seen(&path.display().to_string())));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn value(problem: &Problem, solution: &Solution, files: Files<'_>) -> Value {
    let report = &solution.report;
    let mut value = json!({
        "problem": problem.name,
        "form": problem.form.name,
        "cell": solution.on.mesh.cell().name(),
        "degree": problem.degree,
        "quadrature": solution.elements.rule.to_string(),
        "cells": solution.on.mesh.n_cells(),
        "dofs": solution.on.n_dofs(),
        "notes": solution.notes.iter().map(String::as_str).chain(files.note).collect::<Vec<_>>(),
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
        for (what, path) in [("output", files.output), ("picture", files.picture)] {
            if let Some(path) = path {
                object.insert(what.into(), json!(called(path)));
            }
        }
    }
    value
}
