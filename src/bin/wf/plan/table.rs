//! Candidates as a table, and as JSON.

use std::fmt::Write as _;

use kernels_gen::choose::candidates::Candidate;
use kernels_gen::plan::{Linearisation, Scatter, Target};
use runtime::device;
use serde_json::{Value, json};

use crate::bench::cost;

use super::ProblemCandidates;

/// Formats seconds in a suitable unit.
pub(super) fn shown(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.1} us", 1e6 * s),
        s if s < 1.0 => format!("{:.2} ms", 1e3 * s),
        s => format!("{s:.2} s"),
    }
}

/// Formats a rate in a suitable unit.
fn rate(per_second: f64, unit: &str) -> String {
    match per_second {
        r if r >= 1e12 => format!("{:.2} T{unit}", r / 1e12),
        r => format!("{:.1} G{unit}", r / 1e9),
    }
}

/// Returns the scatter algorithm.
fn scatter(one: &Candidate) -> Scatter {
    // The CPU colours its chunks of cells.
    if one.plan.target == Target::Vectors { Scatter::Coloured } else { one.plan.scatter }
}

pub(super) fn text(planned: &ProblemCandidates<'_>) -> String {
    let candidates = planned.candidates;
    let mut text = subject(planned);
    let threads = candidates.all.iter().any(|one| one.threads > 0);
    text.push_str(&heads(threads));
    for number in 0..candidates.all.len() {
        text.push_str(&row(planned, number, threads));
    }
    let _ = writeln!(
        text,
        "\n  bytes and flops are of a cell; balance is flops a byte; * is taken: {}",
        why(planned)
    );
    if let Some(facets) = facets_in_words(facets(planned)) {
        let _ = writeln!(text, "  {facets} have kernels of their own, which the table leaves out");
    }
    for change in planned.changes {
        let _ = writeln!(text, "  {}", changed(planned, change.factor, change.candidate));
    }
    for (one, measured) in candidates.all.iter().zip(planned.measured) {
        if let Some(Err(error)) = measured {
            let first = error.lines().next().unwrap_or_default();
            let _ = writeln!(text, "  {}, {}: {first}", one.plan.strategy, one.geometry());
        }
    }
    text.push('\n');
    text
}

/// Returns the numbers of facets of integrals: between cells, and of the boundary.
fn facets(planned: &ProblemCandidates<'_>) -> [usize; 2] {
    let (form, on) = (planned.context.form(), &planned.context.on);
    let mut counts = [0; 2];
    for (number, integral) in form.integrals.iter().enumerate() {
        if integral.region.is_interior() {
            counts[0] += on.pairs_of(number).map_or(0, <[_]>::len);
        } else {
            counts[1] += on.facets_of(number).len();
        }
    }
    counts
}

/// Returns the text of the facets; `None` without any.
fn facets_in_words([between, boundary]: [usize; 2]) -> Option<String> {
    match (between, boundary) {
        (0, 0) => None,
        (between, 0) => Some(format!("{between} facets between cells")),
        (0, boundary) => Some(format!("{boundary} facets of the boundary")),
        (between, boundary) => {
            Some(format!("{between} facets between cells and {boundary} of the boundary"))
        }
    }
}

/// Returns the lines on the problem and the machine.
fn subject(planned: &ProblemCandidates<'_>) -> String {
    let ProblemCandidates { name, context, on, .. } = planned;
    let (mesh, elements) = (&context.on.mesh, &context.elements);
    let mut text = format!(
        "{name} ({}): {} on {} cells ({}) of degree {}, {}, {} unknowns\n",
        context.form().name,
        planned.task.word(),
        mesh.n_cells(),
        mesh.cell().name(),
        elements.degree,
        elements.rule,
        context.on.n_dofs()
    );
    let machine = &on.machine;
    let source = if on.measured {
        String::new()
    } else if planned.backend == crate::arguments::Backend::Cpu {
        " (a server core of 2023 each; `wf doctor --calibrate` measures this one)".to_owned()
    } else {
        " (those of an H200; `wf doctor --calibrate` measures the device that is here)".to_owned()
    };
    let _ = writeln!(
        text,
        "on {}: {} {}, multiply-adds {}{source}\n",
        on.name,
        if machine.has_lanes() { "read" } else { "copy" },
        rate(machine.bandwidth, "B/s"),
        rate(2.0 * machine.fma_rate, "FLOP/s"),
    );
    text
}

/// Returns the heads of the columns; candidates of a GPU have threads.
fn heads(threads: bool) -> String {
    let mut text = format!("  {:<20} {:<13} ", "strategy", "geometry");
    if threads {
        let _ = write!(text, "{:<8} {:>7} {:>6} {:>7} ", "scatter", "threads", "regs", "shared");
    } else {
        let _ = write!(text, "{:>5} ", "lanes");
    }
    let _ = writeln!(
        text,
        "{:>8} {:>8} {:>7} {:>8} {:>8} {:>8} {:>8}  {:<13} {:>9} {:>9} {:>9}",
        "vectors",
        "geometry",
        "stored",
        "data",
        "indices",
        "flops",
        "balance",
        "limiter",
        "floor",
        "predicted",
        "measured"
    );
    text
}

/// Returns the row of a candidate.
fn row(planned: &ProblemCandidates<'_>, number: usize, threads: bool) -> String {
    let (one, chosen) = (&planned.candidates.all[number], planned.candidates.chosen);
    let (mark, plan) = (if number == chosen { '*' } else { ' ' }, &one.plan);
    let mut text = format!("{mark} {:<20} {:<13} ", plan.strategy.to_string(), one.geometry());
    if threads {
        let _ = write!(
            text,
            "{:<8} {:>7} {:>6} {:>7} ",
            scatter(one).to_string(),
            one.threads,
            format!("<={}", one.registers),
            one.shared_bytes
        );
    } else {
        let _ = write!(text, "{:>5} ", plan.lanes);
    }
    let bytes = &one.cost.bytes;
    let measured = match &planned.measured[number] {
        None => String::new(),
        Some(Ok(seconds)) => shown(*seconds),
        Some(Err(_)) => "refused".to_owned(),
    };
    let _ = writeln!(
        text,
        "{:>8.0} {:>8.0} {:>7.0} {:>8.0} {:>8.0} {:>8.0} {:>8.2}  {:<13} {:>9} {:>9} {:>9}",
        bytes.vectors,
        bytes.geometry,
        bytes.stored,
        bytes.data,
        bytes.indices,
        one.cost.flops(),
        one.cost.flops() / bytes.total(),
        one.times.limiter().word(),
        shown(one.floor * planned.cells()),
        shown(planned.seconds(one)),
        measured,
    );
    text
}

/// Returns the reason for the choice of the candidate.
fn why(planned: &ProblemCandidates<'_>) -> String {
    let all = &planned.candidates.all;
    let taken = &all[planned.candidates.chosen];
    let limiter = taken.times.limiter().word();
    if all.len() == 1 {
        return format!("there is no other; {limiter} bounds it");
    }
    if planned.candidates.chosen == 0 {
        let next = all[1].seconds / taken.seconds;
        return format!(
            "it is predicted to take least, the next {next:.2} times as long; {limiter} bounds it"
        );
    }
    let best = &all[0];
    format!(
        "rules that were measured on GPUs take it, where the model would take {}, {} ({:.2} times as long)",
        best.plan.strategy,
        best.geometry(),
        best.seconds / taken.seconds
    )
}

/// Describes the change of the machine with which another candidate would be fastest.
fn changed(planned: &ProblemCandidates<'_>, factor: f64, candidate: usize) -> String {
    let one = &planned.candidates.all[candidate];
    let word = if factor > 1.0 { "more" } else { "less" };
    format!(
        "with {factor:.2} times the bandwidth for the same arithmetic, or {word}, the model takes {}, {}",
        one.plan.strategy,
        one.geometry()
    )
}

pub(super) fn value(planned: &ProblemCandidates<'_>) -> Value {
    let ProblemCandidates { name, context, candidates, on, .. } = planned;
    let (mesh, elements, machine) = (&context.on.mesh, &context.elements, &on.machine);
    let each = candidates.all.iter().enumerate().map(|(number, one)| {
        let mut value = json!({
            "strategy": one.plan.strategy.to_string(),
            "geometry": one.geometry(),
            "coefficients": match one.plan.linearisation {
                Linearisation::Stored => "stored",
                Linearisation::Recompute => "recomputed",
            },
            "scatter": scatter(one).to_string(),
            "lanes": one.plan.lanes,
            "threads": one.threads,
            "registers_at_most": one.registers,
            "shared_bytes": one.shared_bytes,
            "bytes": one.cost.bytes.total(),
            "flops": one.cost.flops(),
            "counts": cost(&one.cost),
            "limiter": one.times.limiter().word(),
            "floor_seconds": one.floor * planned.cells(),
            "seconds": planned.seconds(one),
            "chosen": number == candidates.chosen,
        });
        match &planned.measured[number] {
            Some(Ok(seconds)) => value["measured_seconds"] = json!(seconds),
            Some(Err(error)) => value["refused"] = json!(error),
            None => {}
        }
        value
    });
    let [between, boundary] = facets(planned);
    let changes = planned
        .changes
        .iter()
        .map(|change| json!({ "bandwidth_times": change.factor, "candidate": change.candidate }));
    json!({
        "problem": name,
        "form": context.form().name,
        "task": planned.task.word(),
        "backend": device::Backend::from(planned.backend).word(),
        "cell": mesh.cell().name(),
        "degree": elements.degree,
        "quadrature": elements.rule.to_string(),
        "cells": mesh.n_cells(),
        "facets": { "between": between, "boundary": boundary },
        "dofs": context.on.n_dofs(),
        "machine": {
            "name": on.name,
            "calibrated": on.measured,
            "bytes_per_second": machine.bandwidth,
            "flops_per_second": 2.0 * machine.fma_rate,
            "launch_seconds": machine.launch,
        },
        "candidates": each.collect::<Vec<_>>(),
        "chosen": candidates.chosen,
        "why": why(planned),
        "changes": changes.collect::<Vec<_>>(),
    })
}
