//! The suite `dg`: discontinuous Galerkin operators matrix-free, by mesh, degree and size → rows and a table.

use std::path::Path;
use std::sync::Arc;

use fem_bench::dg::{Cost, PROBLEMS, Problem};
use kernels_gen::plan::Task;
use runtime::device::Device;
use serde_json::{Value, json};
use weakform::picture::write_charts;

use super::{Arguments, machine, named, named_in, of_pools, plot};
use crate::console::Console;
use crate::report::{Failure, Report};

pub(super) fn suite(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let problems = named_in(&arguments.problem, &PROBLEMS, |problem| problem.case.name)?;
    of_pools(arguments, draw, |device, report| rows(arguments, device, &problems, report, console))
}

/// Measures all problems, degrees and sizes with the threads of this pool.
fn rows(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    problems: &[Problem],
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let (name, threads) = (named(device), rayon::current_num_threads());
    report.text.push_str(&format!(
        "{name}, {threads} threads of the processor: operators of cells and of the facets between them, matrix-free;\n\
         unknowns are those of all components, B/DoF bytes of tables\n\
         problem           p  applies    cells  unknowns   seconds   MDoF/s   B/DoF\n"
    ));
    for problem in problems {
        for (degree, dofs) in arguments.degrees_and_sizes(6) {
            let shown = format!("{}, degree {degree}, {dofs} unknowns", problem.case.name);
            console.progress().say(format!("{shown}: a mesh"));
            let mesh = problem.mesh(degree, dofs)?;
            console.progress().say(shown);
            let cost = problem.cost(degree, &mesh, &machine(arguments, device))?;
            let cells = mesh.n_cells();
            report.row(&line(problem, degree, cells, &cost), console);
            report.json.push(value(problem, degree, cells, &cost, device));
        }
    }
    Ok(())
}

/// Returns the name of the measured task.
fn applied(problem: &Problem) -> &'static str {
    if problem.task == Task::Residual { "residual" } else { "action" }
}

fn line(problem: &Problem, degree: usize, cells: usize, cost: &Cost) -> String {
    format!(
        "{:<16} {degree:>2}  {:<8} {cells:>7} {:>9} {:>9.2e} {:>8.1} {:>7.1}\n",
        problem.case.name,
        applied(problem),
        cost.dofs,
        cost.seconds,
        cost.dofs_per_second() / 1e6,
        cost.bytes_per_dof(),
    )
}

fn value(
    problem: &Problem,
    degree: usize,
    cells: usize,
    cost: &Cost,
    device: Option<&Arc<dyn Device>>,
) -> Value {
    json!({
        "suite": "dg",
        "problem": problem.case.name,
        "applies": applied(problem),
        "affine": problem.affine,
        "components": problem.components,
        "degree": degree,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "cells": cells,
        "dofs": cost.dofs,
        "seconds": cost.seconds,
        "dofs_per_second": cost.dofs_per_second(),
        "bytes_per_dof": cost.bytes_per_dof(),
    })
}

/// Draws throughput over degree and size, and memory over degree.
fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let mut charts = plot::throughput(rows);
    charts.extend(plot::memory(rows));
    Ok(write_charts(path, "Discontinuous Galerkin operators", &charts)?)
}
