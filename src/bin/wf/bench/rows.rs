//! Rows of the suite `bp`, of processors and devices alike.

use fem_bench::kronbichler::entries;
use fem_bench::{BenchRow, Case};
use serde_json::{Value, json};

use super::{Arguments, CSR_DEGREE, CSR_ENTRIES, cost};
use crate::arguments::Degrees;
use crate::console::Console;
use crate::processes::Processes;

/// Returns the degrees at which a problem is measured, and a remark on unavailable ones.
pub(super) fn degrees(
    case: &Case,
    asked: &Degrees,
) -> (std::ops::RangeInclusive<usize>, Option<String>) {
    let (first, last) = (asked.first as usize, asked.last as usize);
    let note = (first < case.least).then(|| {
        format!("{:<14} {first:>2}  left out: its degrees begin at {}\n", case.name, case.least)
    });
    (first.max(case.least)..=last, note)
}

/// Returns the number of processes for a heading, if there are several.
pub(super) fn several(processes: &Processes) -> String {
    match processes.are_several() {
        true => format!("{} processes, each with ", processes.group().size()),
        false => String::new(),
    }
}

/// Reports the current measurement.
pub(super) fn say(console: &Console, case: &Case, degree: usize, dofs: usize) {
    console.progress().say(format!("{} of degree {degree}, {dofs} unknowns", case.name));
}

/// Returns whether the assembled matrix is measured in addition to the operator.
pub(super) fn has_csr(arguments: &Arguments, row: &BenchRow) -> bool {
    let entries = entries(3, row.degree, row.components, row.dofs as f64);
    row.degree <= CSR_DEGREE && !arguments.no_csr && entries <= CSR_ENTRIES
}

pub(super) fn line(row: &BenchRow) -> String {
    let mega = |rate: f64| rate / 1e6;
    let csr = row.csr_dofs_per_second();
    format!(
        "{:<14} {:>2} {:>9} {:>5}  {:<13} {:>8.1} {:>8.1} {:>7.0} {:>7.0} {:>5.0}% {:>8} {:>6}\n",
        row.problem,
        row.degree,
        row.dofs,
        row.lanes,
        row.geometry,
        mega(row.dofs_per_second()),
        row.flops_per_second() / 1e9,
        row.bytes_per_dof,
        row.flops_per_dof,
        100.0 * row.floor_fraction,
        csr.map_or_else(String::new, |csr| format!("{:.1}", mega(csr))),
        csr.map_or_else(String::new, |csr| format!("{:.2}", row.dofs_per_second() / csr)),
    )
}

pub(super) fn value(row: &BenchRow) -> Value {
    json!({
        "suite": "bp",
        "problem": row.problem,
        "cell": "hexahedron",
        "degree": row.degree,
        "quadrature": row.quadrature,
        "components": row.components,
        "backend": "cpu",
        "strategy": "cell_per_lane",
        "lanes": row.lanes,
        "geometry": row.geometry,
        "scatter": "coloured",
        "precision": "f64",
        "processes": row.processes,
        "threads": row.threads,
        "dofs": row.dofs,
        "dofs_per_second": row.dofs_per_second(),
        "bytes_per_dof": row.bytes_per_dof,
        "flops_per_dof": row.flops_per_dof,
        "operations_per_dof": row.operations_per_dof,
        "floor_fraction": row.floor_fraction,
        "predicted_dofs_per_second": row.dofs as f64 / row.predicted_seconds,
        "cells": row.cells,
        "counts": cost(&row.cost),
        "csr_dofs_per_second": row.csr_dofs_per_second(),
    })
}
