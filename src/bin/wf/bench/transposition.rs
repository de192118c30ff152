//! The suite of thread transposition on a device.

use std::sync::Arc;

use fem_bench::BenchError;
use fem_bench::transposition::{
    BATCHES, BLOCKS, CELLS, PROBLEMS, PlanMeasurement, PreparedProblem, prepare,
};
use runtime::algebra::vector::Precision;
use runtime::device::Device;
use runtime::kernels::compile::CompileError;
use runtime::kernels::rates::Rates;
use runtime::kernels::rates::device::rates;
use serde_json::{Value, json};

use super::{Arguments, named_in};
use crate::console::Console;
use crate::report::{Failure, Report};

pub(super) fn suite(
    arguments: &Arguments,
    device: &Arc<dyn Device>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    console.progress().say("measuring the device");
    let measured = rates(&**device)?;
    report.text.push_str(&format!(
        "{device:?}: copy {:.0} GB/s, multiply-adds {:.2} TFLOP/s\n\
         GFLOP/s of a residual by equation 7, and its part of the floor of our own counts\n",
        measured.copy / 1e9,
        measured.flops / 1e12
    ));
    for problem in named_in(&arguments.problem, &PROBLEMS, |problem| problem.0)? {
        for cell in CELLS {
            for precision in [Precision::F32, Precision::F64] {
                let dofs = arguments.sizes().last as usize;
                let wishes = super::wishes(arguments);
                let prepared = prepare(device, problem, cell, precision, dofs, wishes)?;
                let word = if precision == Precision::F32 { "f32" } else { "f64" };
                let name = format!("{}, {cell}, {word}", problem.0);
                console.progress().say(format!("{name}, {dofs} unknowns"));
                let shown = table(&name, &prepared, precision, &measured, &mut |mut value| {
                    value["problem"] = json!(problem.0);
                    value["cell"] = json!(cell.to_string());
                    value["precision"] = json!(word);
                    value["backend"] = json!(device.backend().word());
                    value["device"] = json!(device.name());
                    report.json.push(value);
                })?;
                report.row(&shown, console);
            }
        }
    }
    Ok(())
}

/// Prints the table of one problem: blocks down, batches across.
fn table(
    name: &str,
    prepared: &PreparedProblem,
    precision: Precision,
    rates: &Rates,
    row: &mut dyn FnMut(Value),
) -> Result<String, Failure> {
    let flops = prepared.model_flops();
    let giga = |run: &PlanMeasurement| flops / run.seconds / 1e9;
    let part = |run: &PlanMeasurement| 100.0 * run.floor_fraction(rates, precision);
    let cell = &prepared.cell_per_lane;
    let mut text = format!(
        "\n{name}: {} unknowns, {} cells, {} point; equations 6 to 9 expect {:.2} flop/B and {:.0} GFLOP/s\n\
         one thread a cell ({}): {:.0} ({:.0}%)\n{:>8}",
        prepared.dofs(),
        prepared.n_cells(),
        prepared.points(),
        prepared.model(1).balance(),
        prepared.predicted(rates) / 1e9,
        cell.geometry,
        giga(cell),
        part(cell),
        "blocks",
    );
    for batches in BATCHES {
        text.push_str(&format!("{:>14}", format!("{batches} batches")));
    }
    text.push_str("  threads   cells   bytes  paper's\n");
    for blocks in BLOCKS {
        text.push_str(&format!("{blocks:>8}"));
        let mut last = None;
        for batches in BATCHES {
            let run = match prepared.measure(blocks, batches) {
                Ok(run) => run,
                Err(BenchError::Compile(CompileError::Plan(reason))) => {
                    text.push_str(&format!("{:>14}", "-"));
                    row(json!({ "suite": "transposition", "blocks": blocks, "batches": batches,
                        "refused": reason.to_string() }));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            text.push_str(&format!("{:>14}", format!("{:.0} ({:.0}%)", giga(&run), part(&run))));
            row(value(prepared, &run, rates, precision, (blocks, batches)));
            last = Some(run);
        }
        if let Some(run) = last {
            let model = prepared.model(blocks).shared_bytes();
            let PlanMeasurement { threads, cells, shared_bytes, .. } = run;
            text.push_str(&format!("  {threads:>7} {cells:>7} {shared_bytes:>7}  {model:>7}"));
        }
        text.push('\n');
    }
    Ok(text)
}

fn value(
    prepared: &PreparedProblem,
    run: &PlanMeasurement,
    rates: &Rates,
    precision: Precision,
    (blocks, batches): (usize, usize),
) -> Value {
    let model = prepared.model(blocks);
    json!({
        "suite": "transposition",
        "strategy": "thread_transposition",
        "dofs": prepared.dofs(),
        "n_cells": prepared.n_cells(),
        "points": prepared.points(),
        "blocks": blocks,
        "batches": batches,
        "threads": run.threads,
        "cells": run.cells,
        "shared_bytes": run.shared_bytes,
        "geometry": run.geometry,
        "seconds": run.seconds,
        "dofs_per_second": prepared.dofs() as f64 / run.seconds,
        "flops_per_second": run.flops / run.seconds,
        "bytes_per_dof": run.bytes / prepared.dofs() as f64,
        "floor_fraction": run.floor_fraction(rates, precision),
        "error": run.error,
        "model_shared_bytes": model.shared_bytes(),
        "model_balance": model.balance(),
        "model_flops_per_second": prepared.model_flops() / run.seconds,
        "model_flops_per_second_predicted": prepared.predicted(rates),
        "cell_per_lane_seconds": prepared.cell_per_lane.seconds,
    })
}
