//! The suite `bp`: the bake-off problems on the CPU or on a device ([`super::device`]) → a row per problem, degree and
//! size. Each of several processes has a subdomain of the box.

use std::sync::Arc;

use fem_bench::kronbichler::entries;
use fem_bench::{BenchError, BenchRow, CASES, Case, csr_seconds, measure, prepare_part};
use runtime::kernels::compile::Target;
use runtime::kernels::rates::{Rates, measure as measure_rates};
use runtime::processes::ProcessGroup;
use serde_json::{Value, json};

use super::{Arguments, CSR_DEGREE, CSR_ENTRIES, cost, device, kept, named_in, own_device, wishes};
use crate::arguments::Degrees;
use crate::console::Console;
use crate::problem::with_threads;
use crate::processes::Processes;
use crate::report::{Failure, Report};

pub(super) fn bake_off(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    let cases = named_in(&arguments.problem, &CASES, |case| case.name)?;
    if let [case, ..] = &cases[..]
        && cases.iter().all(|case| later(case, &arguments.degrees()))
    {
        return Err(Failure::input(format!(
            "the degrees of `{}` begin at {least}\nhelp: ask for --degree {least}, or more",
            case.name,
            least = case.least
        )));
    }
    let own = processes.threads(arguments.threads);
    let mut report = Report::default();
    if let Some(device) = own_device(arguments, processes, console)? {
        let done = with_threads(own, || {
            device::suite(arguments, &device, &cases, processes, &mut report, console)
        });
        return kept(report, done);
    }
    let threads: Vec<u16> = match own {
        Some(threads) => vec![threads],
        None => vec![1, std::thread::available_parallelism().map_or(1, |n| n.get() as u16)],
    };
    for threads in threads {
        let done = with_threads(Some(threads), || {
            suite(arguments, &cases, processes, &mut report, console)
        });
        report = kept(report, done)?;
    }
    Ok(report)
}

/// Returns whether all requested degrees are below those of a problem.
fn later(case: &Case, degrees: &Degrees) -> bool {
    (degrees.last as usize) < case.least
}

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

fn suite(
    arguments: &Arguments,
    cases: &[Case],
    processes: &Processes,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    console.progress().say("measuring this machine");
    let group = processes.group();
    // All processes are timed concurrently.
    group.meet(None);
    let rates = measure_rates()?.of_all(&**group);
    report.text.push_str(&format!(
        "{}{} threads: copy {:.1} GB/s, multiply-adds {:.1} GFLOP/s\n{:<14} {:>2} {:>9} {:>5}  {:<13} {:>8} {:>8} {:>7} {:>7} {:>6} {:>8} {:>6}\n",
        several(processes),
        rayon::current_num_threads(),
        rates.copy / 1e9,
        rates.flops / 1e9,
        "problem",
        "p",
        "unknowns",
        "lanes",
        "geometry",
        "MDoF/s",
        "GFLOP/s",
        "B/DoF",
        "F/DoF",
        "floor",
        "CSR",
        "ratio",
    ));
    for case in cases {
        let (degrees, note) = degrees(case, &arguments.degrees());
        report.text.extend(note);
        for degree in degrees {
            for dofs in arguments.sizes().each() {
                say(console, case, degree, dofs);
                let row = row(arguments, case, degree, dofs, &rates, group)?;
                report.row(&line(&row), console);
                report.json.push(value(&row));
            }
        }
    }
    Ok(())
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

fn row(
    arguments: &Arguments,
    case: &Case,
    degree: usize,
    dofs: usize,
    rates: &Rates,
    group: &Arc<dyn ProcessGroup>,
) -> Result<BenchRow, BenchError> {
    let target = Target { wishes: wishes(arguments), ..Target::native() };
    let prepared = prepare_part(case, degree, dofs, &target, group)?;
    let mut row = measure(case, &prepared, rates)?;
    if has_csr(arguments, &row) {
        row.csr_seconds = Some(csr_seconds(&prepared)?);
    }
    Ok(row)
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
