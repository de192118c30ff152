//! `wf run --dry-run`: what the problems of a file take, before anything of them is made.

use std::path::Path;

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::problem::MeshSource;
use kernels_gen::generate::elements;
use runtime::memory::{Bytes, Estimate, Room};
use runtime::mesh::periodic::PeriodicError;
use runtime::mesh::{Counts, LoadError, generate};
use runtime::run::{RunError, estimate};
use serde_json::json;

use crate::blame::Blame;
use crate::problem::coarse;
use crate::report::{Failure, Report};

/// The estimate of a problem. The mesh of a generator is not made, that of a file is read.
pub(super) fn estimated(which: Blame<'_>, file: &Path) -> Result<Report, Failure> {
    let Blame { program, problem: name, overrides } = which;
    let counts = counts(which, file)?;
    let told = |found: Vec<Diagnostic>| Failure::diagnostics(program.source(), &found);
    let problem = program.problem(name, counts.cell.dim(), overrides).map_err(told)?;
    let counts = counts.refined(problem.refine);
    let (form, degree) = (&problem.form, problem.degree);
    let elements = elements(form, counts.cell, degree, counts.order, problem.quadrature)
        .map_err(|error| which.run(&problem, RunError::from(error)))?;
    let estimate = estimate(form, &elements, &counts, problem.solver.as_ref());
    let room = Room::now();
    let parts = estimate.parts.iter().map(|(part, bytes)| ((*part).to_owned(), json!(bytes)));
    let mut value = json!({
        "problem": name,
        "form": form.name,
        "cell": counts.cell.name(),
        "degree": degree,
        "cells": counts.cells(),
        "dofs": estimate.unknowns as u64,
        "bytes": estimate.bytes(),
        "bytes_of_factors_if_needed": estimate.perhaps,
        "bytes_by_part": parts.collect::<serde_json::Map<_, _>>(),
        "available_bytes": room.as_ref().map(|room| room.bytes),
        "available": room.as_ref().map(|room| room.bound),
        "fits": room.as_ref().map(|room| estimate.bytes() <= room.bytes),
    });
    let mut text = text(name, &form.name, &counts, &estimate, room.as_ref());
    if let Some(adapt) = &problem.adapt {
        value["steps_at_most"] = json!(adapt.steps + 1);
        text.push_str(&format!(
            "  steps       {} at most, of which this is the first\n",
            adapt.steps + 1
        ));
    }
    let report = Report::new(text, value);
    match numbered(which, &counts, problem.refine) {
        Ok(()) => Ok(report),
        Err(failure) => Err(failure.after(report)),
    }
}

/// Whether indices can number what the mesh has: with any memory, it could not be made.
fn numbered(which: Blame<'_>, counts: &Counts, times: usize) -> Result<(), Failure> {
    if times > 0 {
        let refused =
            |error| LoadError::Refine { times, error: Box::new(PeriodicError::Mesh(error)) };
        counts.check_indices().map_err(|error| which.mesh(&refused(error)))?;
    }
    let told = |found: Vec<Diagnostic>| Failure::diagnostics(which.program.source(), &found);
    let (source, _) = which.program.mesh(which.problem, which.overrides).map_err(told)?;
    let MeshSource::Generator { name, arguments } = source else { return Ok(()) };
    generate::check(&name, &arguments).map_err(|error| which.mesh(&LoadError::Generate(error)))
}

/// The counts of a problem's mesh before it is refined.
fn counts(which: Blame<'_>, file: &Path) -> Result<Counts, Failure> {
    let Blame { program, problem, overrides } = which;
    let told = |found: Vec<Diagnostic>| Failure::diagnostics(program.source(), &found);
    let (source, _) = program.mesh(problem, overrides).map_err(told)?;
    match source {
        MeshSource::Generator { name, arguments } => {
            let counts = generate::counts(&name, &arguments);
            counts.map_err(|error| which.mesh(&LoadError::Generate(error)))
        }
        MeshSource::File(_) => Ok(Counts::of(&coarse(program, problem, file, overrides)?.1)),
    }
}

fn text(
    name: &str,
    form: &str,
    counts: &Counts,
    estimate: &Estimate,
    room: Option<&Room>,
) -> String {
    let parts = estimate.parts.iter().map(|(part, bytes)| format!("{part} {}", Bytes(*bytes)));
    let parts: Vec<String> = parts.collect();
    let all = Bytes(estimate.bytes());
    let mut lines = vec![
        format!("{name} ({form})"),
        format!("  mesh        {} cells ({})", counts.cells(), counts.cell.name()),
        format!("  unknowns    {}", estimate.unknowns),
        format!("  memory      {all} at least: {}", parts.join(", ")),
    ];
    if estimate.perhaps > 0.0 {
        let more = Bytes(estimate.perhaps);
        lines.push(format!("  factors     {more} more, where iterations give way to them"));
    }
    if let Some(room) = room {
        let fits = if estimate.bytes() <= room.bytes { "" } else { "; too little" };
        lines.push(format!("  available   {} ({}){fits}", Bytes(room.bytes), room.bound));
    }
    lines.push(String::new());
    lines.join("\n")
}
