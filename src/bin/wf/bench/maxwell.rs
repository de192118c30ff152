//! The suite `maxwell`: operators of H(curl) and H(div) matrix-free, and solves with them, by degree and size → rows
//! and a table.

use std::path::Path;
use std::sync::Arc;

use fem_bench::maxwell::{Cost, PROBLEMS, Problem};
use runtime::device::Device;
use runtime::mesh::Mesh;
use serde_json::{Value, json};
use weakform::picture::write_charts;

use super::multigrid::solved;
use super::{Arguments, machine, named, named_in, of_pools, plot};
use crate::console::Console;
use crate::report::{Failure, Report};

/// The reduction of the residual of a solve.
const TOLERANCE: f64 = 1e-8;

pub(super) fn suite(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let problems = named_in(&arguments.problem, &PROBLEMS, |problem| problem.case.name)?;
    of_pools(arguments, draw, |device, report| rows(arguments, device, &problems, report, console))
}

/// A solve of a problem that converges.
struct Solve {
    iterations: usize,
    seconds: f64,
    /// The sizes of the levels of multigrid; none with the diagonal.
    levels: Vec<usize>,
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
        "{name}, {threads} threads of the processor: products on a deformed box of hexahedra, and solves by CG to {TOLERANCE:e};\n\
         B/DoF: bytes of tables; levels: of multigrid, 0 with the diagonal; rate: million unknowns solved for a second\n\
         problem  p    cells  unknowns   seconds   MDoF/s  flop/DoF  B/DoF | levels iterations   solve    rate\n"
    ));
    for problem in problems {
        for (degree, dofs) in arguments.degrees_and_sizes(4) {
            let shown = format!("{}, degree {degree}, {dofs} unknowns", problem.case.name);
            console.progress().say(format!("{shown}: a mesh"));
            let mesh = problem.mesh(degree, dofs)?;
            console.progress().say(format!("{shown}: products"));
            let cost = problem.cost(degree, &mesh, &machine(arguments, device))?;
            let solve = match arguments.no_solve {
                true => None,
                false => {
                    console.progress().say(format!("{shown}: a solve"));
                    solve(&problem.text(degree, dofs, TOLERANCE), &mesh, device)
                }
            };
            let (cells, solve) = (mesh.n_cells(), solve.as_ref());
            report.row(&line(problem, degree, cells, (&cost, solve)), console);
            report.json.push(value(problem, degree, cells, (&cost, solve), device));
        }
    }
    Ok(())
}

/// Solves a text on a mesh; `None` without convergence.
fn solve(text: &str, mesh: &Arc<Mesh>, device: Option<&Arc<dyn Device>>) -> Option<Solve> {
    let solution = solved(text, &mut Some(Arc::clone(mesh)), device).ok()?;
    let levels = solution
        .multigrid
        .first()
        .map_or_else(Vec::new, |own| own.levels.iter().map(|level| level.unknowns).collect());
    Some(Solve { iterations: solution.linear_iterations, seconds: solution.seconds.solve, levels })
}

fn line(
    problem: &Problem,
    degree: usize,
    cells: usize,
    (cost, solve): (&Cost, Option<&Solve>),
) -> String {
    let start = format!(
        "{:<8} {degree:>1} {cells:>8} {:>9} {:>9.2e} {:>8.1} {:>9.0} {:>6.1} |",
        problem.case.name,
        cost.dofs,
        cost.seconds,
        cost.dofs_per_second() / 1e6,
        cost.flops_per_dof(),
        cost.bytes_per_dof(),
    );
    let Some(Solve { iterations, seconds, levels }) = solve else {
        return format!("{start} no solution\n");
    };
    let rate = cost.dofs as f64 / seconds / 1e6;
    format!("{start} {:>6} {iterations:>10} {seconds:>7.3} {rate:>7.2}\n", levels.len())
}

fn value(
    problem: &Problem,
    degree: usize,
    cells: usize,
    (cost, solve): (&Cost, Option<&Solve>),
    device: Option<&Arc<dyn Device>>,
) -> Value {
    json!({
        "suite": "maxwell",
        "problem": problem.case.name,
        "degree": degree,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "strategy": cost.strategy.map(|strategy| strategy.to_string()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "cells": cells,
        "dofs": cost.dofs,
        "seconds": cost.seconds,
        "dofs_per_second": cost.dofs_per_second(),
        "flops_per_dof": cost.flops_per_dof(),
        "bytes_per_dof": cost.bytes_per_dof(),
        "levels": solve.map(|solve| &solve.levels),
        "iterations": solve.map(|solve| solve.iterations),
        "solve_seconds": solve.map(|solve| solve.seconds),
        "solved_per_second": solve.map(|solve| cost.dofs as f64 / solve.seconds),
    })
}

/// Draws throughput over degree and size.
fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    Ok(write_charts(path, "Operators of H(curl) and H(div)", &plot::throughput(rows))?)
}
