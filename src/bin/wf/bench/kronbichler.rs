//! The suite `kronbichler`: derivatives matrix-free and as sparse matrices, by dimension, degree and size → rows and
//! tables.

use std::path::Path;
use std::sync::Arc;

use fem_bench::BenchError;
use fem_bench::kronbichler::{Cost, MATRIX, PROBLEMS, Problem, entries};
use runtime::device::Device;
use runtime::kernels::compile::CompileError;
use runtime::kernels::representation::Representation;
use runtime::mesh::Mesh;
use serde_json::{Value, json};
use weakform::picture::write_charts;

use super::{Arguments, CSR_ENTRIES, machine, named, named_in, of_pools, plot};
use crate::console::Console;
use crate::report::{Failure, Report};

/// A problem on a mesh.
struct Subject {
    problem: Problem,
    degree: usize,
    mesh: Arc<Mesh>,
}

/// The measurements, or the reason for the missing matrix.
struct Row {
    free: Cost,
    matrix: Result<Cost, String>,
}

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
        "{name}, {threads} threads of the processor: the derivative matrix-free, and as a sparse matrix in compressed rows.\n\
         new state: milliseconds at each of Newton's steps (of linear problems once), for the matrix its assembly; ratio: million\n\
         unknowns a second without over with it; pays: products of a step from which assembling takes less time than it saves\n\
         problem             p  unknowns |  MDoF/s GFLOP/s   B/DoF new state |  MDoF/s GFLOP/s   B/DoF new state | ratio    pays\n"
    ));
    for &problem in problems {
        let mut ratios = Vec::new();
        for (degree, dofs) in arguments.degrees_and_sizes(6) {
            let shown = format!("{}, degree {degree}, {dofs} unknowns", problem.case.name);
            console.progress().say(format!("{shown}: a mesh"));
            let mesh = problem.mesh(degree, dofs)?;
            let subject = Subject { problem, degree, mesh };
            let row = subject.row(arguments, device, &shown, console)?;
            let text = subject.line(&row);
            report.row(&text, console);
            report.json.push(subject.value(&row, device));
            ratios.extend(row.ratio().map(|ratio| (degree, ratio)));
        }
        if let Some(degree) = faster_from(&ratios) {
            let name = problem.case.name;
            report.text.push_str(&format!(
                "{name:<18} faster without a matrix from degree {degree} on (the paper, on hexahedra: 2)\n"
            ));
        }
    }
    Ok(())
}

/// Returns the degree from which all products are faster without a matrix.
fn faster_from(ratios: &[(usize, f64)]) -> Option<usize> {
    let slower = ratios.iter().rev().position(|(_, ratio)| *ratio <= 1.0);
    let first = ratios.len() - slower.unwrap_or(ratios.len());
    // Sizes of one degree are adjacent: all of them count.
    let before = first.checked_sub(1).map(|last| ratios[last].0);
    ratios[first..].iter().map(|(degree, _)| *degree).find(|&degree| Some(degree) != before)
}

impl Row {
    /// Returns the speed-up of the matrix-free product over the matrix.
    fn ratio(&self) -> Option<f64> {
        self.matrix.as_ref().ok().map(|matrix| matrix.product / self.free.product)
    }
}

impl Subject {
    fn row(
        &self,
        arguments: &Arguments,
        device: Option<&Arc<dyn Device>>,
        shown: &str,
        console: &Console,
    ) -> Result<Row, Failure> {
        let machine = machine(arguments, device);
        let cost = |how| self.problem.cost(self.degree, &self.mesh, how, &machine);
        console.progress().say(format!("{shown}: matrix-free"));
        let free = cost(Representation::MatrixFree)?;
        let components = self.problem.components;
        let wanted = entries(self.problem.dim, self.degree, components, free.dofs as f64);
        let matrix = if arguments.no_csr {
            Err("left out".to_owned())
        } else if wanted > CSR_ENTRIES {
            Err(format!("{wanted:.1e} entries are more than are assembled"))
        } else {
            console.progress().say(format!("{shown}: assembled"));
            refused(cost(MATRIX))?
        };
        Ok(Row { free, matrix })
    }

    fn line(&self, row: &Row) -> String {
        let Row { free, matrix } = row;
        let name = self.problem.case.name;
        let start = format!("{name:<18} {:>2} {:>9} |{}", self.degree, free.dofs, side(free));
        match matrix {
            Err(why) => format!("{start} | {}\n", why.lines().next().unwrap_or_default()),
            Ok(matrix) => {
                let ratio = row.ratio().unwrap_or_default();
                let pays = free.products_to_pay(matrix);
                let pays = pays.map_or_else(|| "-".to_owned(), |pays| format!("{pays:.0}"));
                format!("{start} |{} | {ratio:>5.2} {pays:>7}\n", side(matrix))
            }
        }
    }

    fn value(&self, row: &Row, device: Option<&Arc<dyn Device>>) -> Value {
        let Row { free, matrix } = row;
        let of = |number: &dyn Fn(&Cost) -> Option<f64>| matrix.as_ref().ok().and_then(number);
        json!({
            "suite": "kronbichler",
            "problem": self.problem.case.name,
            "dim": self.problem.dim,
            "components": self.problem.components,
            "nonlinear": self.problem.nonlinear,
            "degree": self.degree,
            "backend": device.map_or("cpu", |device| device.backend().word()),
            "device": device.map(|device| device.name()),
            "threads": rayon::current_num_threads(),
            "precision": "f64",
            "cells": self.mesh.n_cells(),
            "dofs": free.dofs,
            "seconds": free.product,
            "dofs_per_second": free.dofs_per_second(),
            "flops_per_second": free.flops_per_second(),
            "bytes_per_dof": free.bytes_per_dof(),
            "linearise_seconds": free.linearise,
            "csr_seconds": of(&|matrix| Some(matrix.product)),
            "csr_dofs_per_second": of(&|matrix| Some(matrix.dofs_per_second())),
            "csr_flops_per_second": of(&Cost::flops_per_second),
            "csr_bytes_per_dof": of(&|matrix| Some(matrix.bytes_per_dof())),
            "csr_entries": of(&|matrix| Some(matrix.entries as f64)),
            "csr_set_up_seconds": of(&|matrix| Some(matrix.set_up)),
            "csr_assembly_seconds": of(&|matrix| Some(matrix.linearise)),
            "csr_refused": matrix.as_ref().err(),
            "speedup": row.ratio(),
            "products_to_pay": of(&|matrix| free.products_to_pay(matrix)),
            "difference": of(&|matrix| Some(difference(&matrix.result, &free.result))),
        })
    }
}

/// Treats an infeasible matrix as a result rather than a failure of the suite.
pub(super) fn refused<T>(done: Result<T, BenchError>) -> Result<Result<T, String>, BenchError> {
    match done {
        Err(BenchError::Compile(CompileError::Plan(reason))) => Ok(Err(reason.to_string())),
        Err(BenchError::Build(reason)) => Ok(Err(reason.to_string())),
        done => done.map(Ok),
    }
}

/// Returns one side of the table.
fn side(cost: &Cost) -> String {
    let flops = cost.flops_per_second().map(|flops| format!("{:.1}", flops / 1e9));
    format!(
        "{:>8.1} {:>7} {:>7.1} {:>9.2}",
        cost.dofs_per_second() / 1e6,
        flops.unwrap_or_else(|| "-".to_owned()),
        cost.bytes_per_dof(),
        1e3 * cost.linearise,
    )
}

/// Computes ‖a − b‖ / ‖b‖.
fn difference(a: &[f64], b: &[f64]) -> f64 {
    let norm =
        |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let off = norm(&mut a.iter().zip(b).map(|(a, b)| a - b));
    (off / norm(&mut b.iter().copied())).sqrt()
}

/// Draws throughput over degree and size, and memory over degree.
fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let mut charts = plot::throughput(rows);
    charts.extend(plot::memory(rows));
    Ok(write_charts(path, "Derivatives with and without a matrix", &charts)?)
}

#[cfg(test)]
mod tests {
    use super::faster_from;

    #[test]
    fn the_degree_from_which_products_are_faster() {
        assert_eq!(faster_from(&[(1, 0.5), (2, 1.5), (3, 2.0)]), Some(2));
        assert_eq!(faster_from(&[(1, 1.5), (2, 0.9), (3, 2.0)]), Some(3));
        assert_eq!(faster_from(&[(1, 1.5), (2, 2.0)]), Some(1));
        assert_eq!(faster_from(&[(1, 0.5), (2, 0.9)]), None);
        assert_eq!(faster_from(&[]), None);
        // One of two sizes is slower.
        assert_eq!(faster_from(&[(1, 1.5), (2, 0.9), (2, 1.1), (3, 2.0)]), Some(3));
    }
}
