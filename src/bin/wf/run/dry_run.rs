//! `wf run --dry-run`: memory and solver of a file's problems, predicted before any setup.

use std::path::Path;

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::problem::{MeshSource, Stepping};
use kernels_gen::generate::elements;
use runtime::device::Device;
use runtime::mesh::initial::made_by_all;
use runtime::mesh::periodic::PeriodicError;
use runtime::mesh::{EntityCounts, LoadError, generate};
use runtime::problem::{
    ModesPlan, PredictedLevel, Prediction, ProblemProperties, RunError, SolvePlan, SolveResources,
    estimate, plan_modes, plan_solve, predict,
};
use runtime::support::memory::{Bytes, MemoryBudget, MemoryEstimate};
use serde_json::{Value, json};

use crate::attribution::ErrorAttribution;
use crate::problem::coarse;
use crate::report::{Failure, Report};

/// The number of processes.
#[derive(Clone, Copy)]
pub(super) struct ProcessCount {
    /// The total number.
    pub(super) all: usize,
    /// The number on this host.
    pub(super) here: usize,
}

/// Scales the memory model to one of several processes: `made_by_all` of the mesh plus a share of it, the whole
/// factorisation, and a share of everything else.
fn shared_out(estimate: &mut MemoryEstimate, processes: usize, made_by_all: f64) {
    let share = 1.0 / processes as f64;
    for (part, bytes) in estimate.parts.iter_mut().filter(|_| processes > 1) {
        *bytes *= match *part {
            "mesh" => made_by_all + share,
            "matrix and factors" => 1.0,
            _ => share,
        };
    }
}

/// Returns the memory model of a problem, for each of several processes. The mesh of a generator is not generated, that
/// of a file is read.
pub(super) fn estimated(
    which: ErrorAttribution<'_>,
    file: &Path,
    device: Option<&dyn Device>,
    processes: ProcessCount,
) -> Result<Report, Failure> {
    let ErrorAttribution { program, problem: name, overrides } = which;
    let bases = counts(which, file)?;
    let counts = bases[0];
    let refused = |found: Vec<Diagnostic>| Failure::diagnostics(program.source(), &found);
    let problem = program.problem(name, counts.cell.dim(), overrides).map_err(refused)?;
    let counts = counts.refined(problem.refine);
    let refined = (0..problem.refine).rev().map(|times| bases[0].refined(times));
    let meshes: Vec<EntityCounts> =
        std::iter::once(counts).chain(refined).chain(bases[1..].iter().copied()).collect();
    let (form, degree) = (&problem.form, problem.degree);
    let elements = elements(form, counts.cell, degree, counts.order, problem.quadrature)
        .map_err(|error| which.run(&problem, RunError::from(error)))?;
    let several = processes.all > 1;
    let resources = SolveResources::cores(processes.all * rayon::current_num_threads())
        .in_processes(processes.all)
        .with_device(device.is_some());
    let properties = ProblemProperties::counted(form, &elements, &counts, resources);
    let solve = plan_solve(&properties, problem.solver.as_ref());
    let solve = solve.map_err(|error| which.run(&problem, error))?;
    let mut estimate = estimate(form, &elements, &counts, &solve);
    // Eigenvalues are found otherwise, and the costs of several devices are not known.
    let is_known = problem.eigen.is_none() && !(several && device.is_some());
    let predicted = is_known.then(|| predict(&solve, form, &elements, &meshes)).flatten();
    let levels = predicted.iter().map(|predicted| predicted.bytes).filter(|bytes| *bytes > 0.0);
    estimate.parts.extend(levels.map(|bytes| ("levels", bytes)));
    // Adaptive steps, factors, and simplices with periodic sides need all of it at each.
    let factors = estimate.parts.iter().any(|(part, _)| *part == "matrix and factors");
    let simplices = !counts.cell.is_tensor() && !problem.periodic.is_empty();
    let has_all = processes.all == 1 || problem.adapt.is_some() || factors || simplices;
    let made = if has_all { counts.cells() } else { made_by_all(&meshes, processes.all) };
    shared_out(&mut estimate, processes.all, made as f64 / counts.cells() as f64);
    let there = estimate.on_device();
    if device.is_some() {
        // They are in device memory only.
        estimate.parts.retain(|(part, _)| !["tables", "vectors", "levels"].contains(part));
    }
    let (room, here) = (MemoryBudget::now(), processes.here as f64);
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
        "fits": room.as_ref().map(|room| here * estimate.bytes() <= room.bytes),
        "processes": processes.all,
        "bytes_in_all": processes.all as f64 * estimate.bytes(),
    });
    let mut text = text(name, &form.name, &counts, &estimate, (room.as_ref(), processes));
    if let Some(predicted) = &predicted {
        value["plan"] = plan(&solve, predicted);
        text.push_str(&describe(&solve, predicted));
    }
    if let Some(eigen) = &problem.eigen {
        let properties = ProblemProperties::counted_of_modes(form, &elements, &counts, resources);
        text.push_str(&of_modes(&plan_modes(&properties, eigen.preconditioner), &mut value));
    }
    if let Some(device) = device {
        let free = device.free_bytes();
        value["device"] = json!(device.name());
        value["device_bytes"] = json!(there);
        value["device_available_bytes"] = json!(free);
        let free = free.map_or_else(String::new, |free| format!(" of {} free", Bytes(free)));
        text.push_str(&format!(
            "  on device   {} at least{free} ({})\n",
            Bytes(there),
            device.name()
        ));
    }
    if let Some(adapt) = problem.adapt.filter(|_| problem.stepping.is_none()) {
        value["steps_at_most"] = json!(adapt.steps + 1);
        text.push_str(&format!(
            "  steps       {} at most, of which this is the first\n",
            adapt.steps + 1
        ));
    }
    if let Some(stepping) = &problem.stepping {
        text.push_str(&through_time(stepping, &mut value));
    }
    let report = Report::new(text, value);
    // With several processes, each numbers a subdomain.
    let possible = if has_all { numbered(which, &counts, problem.refine) } else { Ok(()) };
    match possible {
        Ok(()) => Ok(report),
        Err(failure) => Err(failure.after(report)),
    }
}

/// Reports the steps of a time-dependent problem; the figures above are per stage.
fn through_time(stepping: &Stepping, value: &mut Value) -> String {
    let Stepping { scheme, from, to, step, .. } = stepping;
    let steps = step.filter(|_| stepping.tolerance.is_none()).map(|step| (to - from) / step);
    let steps = steps.map(|steps| (steps - 1e-9).ceil().max(1.0));
    let word = scheme.word();
    value["time"] = json!({ "scheme": word, "from": from, "to": to, "steps": steps });
    let steps = match (steps, stepping.tolerance) {
        (Some(steps), _) => format!("{steps} steps at least"),
        (None, Some(tolerance)) => format!("steps by a tolerance of {tolerance}"),
        (None, None) => "steps of a length that it finds".to_owned(),
    };
    let solved = if scheme.is_explicit() {
        "no solve but with the mass"
    } else {
        "the solve above is of a stage"
    };
    format!("  time        {word} from {from} to {to}, {steps}; {solved}\n")
}

/// Checks that indices can number the entities of the mesh: if not, no amount of memory suffices.
fn numbered(
    which: ErrorAttribution<'_>,
    counts: &EntityCounts,
    times: usize,
) -> Result<(), Failure> {
    if times > 0 {
        let refused =
            |error| LoadError::Refine { times, error: Box::new(PeriodicError::Mesh(error)) };
        counts.check_indices().map_err(|error| which.mesh(&refused(error)))?;
    }
    let rejected = |found: Vec<Diagnostic>| Failure::diagnostics(which.program.source(), &found);
    let (source, _) = which.program.mesh(which.problem, which.overrides).map_err(rejected)?;
    let MeshSource::Generator { name, arguments } = source else { return Ok(()) };
    generate::check(&name, &arguments).map_err(|error| which.mesh(&LoadError::Generate(error)))
}

/// Returns the counts of a problem's mesh before refinement, and those of the coarser meshes of a generator.
fn counts(which: ErrorAttribution<'_>, file: &Path) -> Result<Vec<EntityCounts>, Failure> {
    let ErrorAttribution { program, problem, overrides } = which;
    let rejected = |found: Vec<Diagnostic>| Failure::diagnostics(program.source(), &found);
    let (source, _) = program.mesh(problem, overrides).map_err(rejected)?;
    match source {
        MeshSource::Generator { name, arguments } => {
            let counts = generate::counts(&name, &arguments);
            let mut all = vec![counts.map_err(|error| which.mesh(&LoadError::Generate(error)))?];
            let mut own = arguments;
            while let Some(coarser) = generate::coarser(&name, &own) {
                all.extend(generate::counts(&name, &coarser));
                own = coarser;
            }
            Ok(all)
        }
        MeshSource::File(_) => {
            Ok(vec![EntityCounts::of(&coarse(program, problem, file, overrides)?.1)])
        }
    }
}

/// Returns the line of the solver of an eigenvalue problem; also records it as `plan`.
fn of_modes(plan: &ModesPlan, value: &mut Value) -> String {
    let (solver, by) = (plan.solver(), plan.preconditioner());
    value["plan"] = json!({ "solver": solver, "preconditioner": by });
    let by = by.map_or_else(String::new, |by| format!(", preconditioner {by}"));
    format!("  solver      {solver}{by}\n")
}

/// A plan with its prediction, for other programs.
fn plan(plan: &SolvePlan, of: &Prediction) -> Value {
    let level = |level: &PredictedLevel| json!({ "degree": level.degree, "cells": level.cells, "unknowns": level.unknowns as u64 });
    json!({
        "solver": of.solver,
        "reason": plan.reason,
        "of_a_step": plan.newton.is_some(),
        "preconditioner": of.preconditioner,
        "levels": of.levels.iter().map(level).collect::<Vec<_>>(),
        "below": of.coarsest,
        "iterations": of.iterations,
        "applications": of.applications,
        "making_seconds": of.making,
        "solve_seconds": of.solving,
    })
}

/// A plan with its prediction as a person reads it.
fn describe(plan: &SolvePlan, of: &Prediction) -> String {
    let by = of.preconditioner.filter(|by| *by != "none");
    let by = by.map_or_else(String::new, |by| format!(", preconditioner {by}"));
    let step = if plan.newton.is_some() { ", for a step of Newton's method" } else { "" };
    let reason = plan.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let mut text = format!("  solver      {}{by}{step}{reason}\n", of.solver);
    if !of.levels.is_empty() {
        let sizes =
            of.levels.iter().map(|level| format!("{} (degree {})", level.unknowns, level.degree));
        let sizes: Vec<String> = sizes.collect();
        let below = of.coarsest.unwrap_or("nothing");
        text.push_str(&format!("  levels      {}; {below} below\n", sizes.join(", ")));
    }
    let place = match plan.properties.resources {
        SolveResources { has_device: true, .. } => "the device".to_owned(),
        SolveResources { cores: 1, .. } => "one core".to_owned(),
        SolveResources { cores, processes: 1, .. } => format!("{cores} cores"),
        SolveResources { cores, .. } => format!("{cores} cores of all processes"),
    };
    let making = match (of.levels.is_empty(), of.making) {
        (false, seconds) => format!("levels in {}, ", duration(seconds)),
        (true, 0.0) => String::new(),
        (true, seconds) => format!("factors in {}, ", duration(seconds)),
    };
    if let Some([least, most]) = of.iterations {
        let [from, to] = of.solving.map(duration);
        let solve = if from == to { from } else { format!("{from} to {to}") };
        text.push_str(&format!(
            "  roughly     {making}{least:.0} to {most:.0} iterations in {solve} on {place}, if it is elliptic and its domain compact\n"
        ));
    } else if !making.is_empty() {
        text.push_str(&format!("  roughly     {} on {place}\n", making.trim_end_matches(", ")));
    }
    text
}

/// Formats a duration in common units.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => "less than 1 ms".to_owned(),
        seconds if seconds < 1.0 => format!("{:.0} ms", 1e3 * seconds),
        seconds if seconds < 120.0 => format!("{seconds:.1} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

fn text(
    name: &str,
    form: &str,
    counts: &EntityCounts,
    estimate: &MemoryEstimate,
    (room, processes): (Option<&MemoryBudget>, ProcessCount),
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
    if processes.all > 1 {
        let sum = Bytes(processes.all as f64 * estimate.bytes());
        let count = processes.all;
        lines.push(format!("  processes   {count}, each with so much: {sum} in all"));
    }
    if estimate.perhaps > 0.0 {
        let more = Bytes(estimate.perhaps);
        lines.push(format!("  factors     {more} more, where iterations give way to them"));
    }
    if let Some(room) = room {
        let wanted = processes.here as f64 * estimate.bytes();
        let fits = if wanted <= room.bytes { "" } else { "; too little" };
        lines.push(format!("  available   {} ({}){fits}", Bytes(room.bytes), room.bound));
    }
    lines.push(String::new());
    lines.join("\n")
}
