//! Report on a solution: → text and JSON.

use std::path::{Path, PathBuf};

use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use fem_dsl::source::seen;
use kernels_gen::plan::{Plan, Task};
use runtime::problem::{Mode, ReportResult, ReportValue, Solution, Step};
use runtime::solve::{MultigridStatistics, NewtonStep, Smoother};
use serde_json::{Map, Value, json};

use crate::problem::called;

/// The files written.
#[derive(Clone, Copy)]
pub(super) struct WrittenFiles<'a> {
    pub(super) output: Option<&'a Path>,
    pub(super) picture: Option<&'a Path>,
    /// The line plots, by their names.
    pub(super) lines: &'a [(String, PathBuf)],
    /// A remark on the picture.
    pub(super) note: Option<&'a str>,
}

fn shape_word(shape: Shape) -> String {
    match shape {
        Shape::Scalar => "scalar".to_owned(),
        Shape::Vector(n) => format!("vector of {n}"),
        Shape::Matrix(m, n) => format!("{m}×{n} matrix"),
    }
}

/// Returns the plan of the Jacobian action.
fn action_plan(solution: &Solution) -> Option<&Plan> {
    solution.kernels.plans.iter().find(|plan| plan.task == Task::Action)
}

/// Returns the text for people.
pub(super) fn text(problem: &Problem, solution: &Solution, files: WrittenFiles<'_>) -> String {
    let form = &problem.form;
    let mesh = &solution.context.on.mesh;
    let fields: Vec<String> = form
        .fields
        .iter()
        .zip(&solution.context.elements.fields)
        .map(|(field, element)| {
            let (name, shape, degree) = (&field.name, shape_word(field.shape), element.degree());
            let of = if element.is_continuous() { "" } else { " in L2" };
            format!("{name}: {shape}{of}, degree {degree}")
        })
        .collect();
    let plan = action_plan(solution).map_or_else(String::new, |plan| {
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
        format!("  mesh        {} cells ({})", solution.size[0], mesh.cell().name()),
        format!("  unknowns    {} ({})", solution.size[1], fields.join("; ")),
        format!("  quadrature  {}", solution.context.elements.rule),
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
    lines.splice(6..6, solution.multigrid.iter().map(|levels| multigrid(solution, levels)));
    if let Some(device) = &solution.kernels.device {
        let (backend, scatter) = (solution.kernels.backend, solution.kernels.scatter());
        lines.insert(4, format!("  device      {backend} ({device}), scatter {scatter}"));
    }
    if let Some(cut) = solution.context.on.mesh.cut() {
        let count = cut.group().size();
        lines.insert(3, format!("  processes   {count}, each with a part of the mesh"));
    }
    lines.splice(2..2, notes);
    lines.extend(modes(solution));
    for (field, l2, h1) in &solution.errors {
        let own = &form.fields[*field];
        let norm = own.space.family();
        let norm = if norm == "L2" { "H1" } else { norm };
        lines.push(format!("  error       {}: L2 {l2:.6e}, {norm} {h1:.6e}", own.name));
    }
    if let Some(energy) = solution.energy {
        lines.push(format!("  energy      {energy:.12e}"));
    }
    lines.extend(ranges(problem, solution).map(|line| format!("  range       {line}")));
    // Reports of modes are printed with the modes.
    let reports = solution.reports.iter().filter(|_| solution.modes.is_empty());
    lines.extend(reports.map(|report| {
        let file = files.lines.iter().find(|(name, _)| *name == report.name);
        let file = file.map(|(_, path)| format!(" in {}", seen(&path.display().to_string())));
        let file = file.unwrap_or_default();
        format!("  report      {} = {}{file}", report.name, figure(&report.value))
    }));
    lines.push(format!("  throughput  {:.3e} DoF/s", solution.throughput));
    let seconds = solution.seconds;
    lines.push(format!(
        "  seconds     {:.3}: mesh {:.3}, compile {:.3}, set up {:.3}, solve {:.3}, measure {:.3}, write {:.3}",
        seconds.sum(),
        seconds.mesh,
        seconds.compile,
        seconds.set_up,
        seconds.solve,
        seconds.measure,
        seconds.write
    ));
    for (what, path) in [("output", files.output), ("picture", files.picture)] {
        if let Some(path) = path {
            lines.push(format!("  {what:<10}  {}", seen(&path.display().to_string())));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Returns the eigenvalues, the frequencies √λ / 2π, and the reports of each mode.
fn modes(solution: &Solution) -> impl Iterator<Item = String> + '_ {
    let head = (!solution.modes.is_empty())
        .then(|| "  modes       eigenvalue            √λ / 2π       residual".to_owned());
    let rows = solution.modes.iter().enumerate().flat_map(|(number, mode)| {
        let frequency = frequency(mode.value)
            .map_or_else(|| format!("{:<12}", "-"), |hertz| format!("{hertz:<12.6e}"));
        let row = format!(
            "  {:>9}   {:<20.12e}  {frequency}  {:.1e}",
            number + 1,
            mode.value,
            mode.residual
        );
        let reports = mode.reports.iter();
        let reports = reports
            .map(|report| format!("              {} = {}", report.name, figure(&report.value)));
        std::iter::once(row).chain(reports).collect::<Vec<_>>()
    });
    head.into_iter().chain(rows)
}

/// Returns √λ / 2π.
fn frequency(value: f64) -> Option<f64> {
    (value >= 0.0).then(|| value.sqrt() / std::f64::consts::TAU)
}

/// Returns the operator applications of a solve: one per iteration, one for the initial residual, and those of
/// multigrid.
fn applications(solution: &Solution) -> Option<usize> {
    let levels: usize = solution.multigrid.iter().map(|levels| levels.applications).sum();
    (!solution.multigrid.is_empty()).then_some(solution.linear_iterations + 1 + levels)
}

/// Describes the multigrid hierarchy of a preconditioner.
fn multigrid(solution: &Solution, levels: &MultigridStatistics) -> String {
    let sizes: Vec<String> = levels.levels.iter().map(|level| level.unknowns.to_string()).collect();
    let (steps, applications) = (levels.steps, applications(solution).unwrap_or_default());
    let of = levels.field.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    let smoother = match levels.smoother {
        Smoother::Chebyshev => "Chebyshev",
        Smoother::Jacobi => "Jacobi",
    };
    format!(
        "  multigrid   {of}{} levels ({} unknowns), {steps} + {steps} {smoother} steps, {} below; {applications} applications, \
         set up in {:.3} s",
        levels.levels.len(),
        sizes.join(", "),
        levels.coarsest,
        levels.seconds
    )
}

/// Returns the smallest and the largest value of each component of each field.
fn ranges<'a>(problem: &'a Problem, solution: &'a Solution) -> impl Iterator<Item = String> + 'a {
    let fields = problem.form.fields.iter().zip(&solution.ranges);
    fields.flat_map(|(field, ranges)| {
        ranges.iter().enumerate().map(|(component, [least, most])| {
            let name = match ranges.len() {
                1 => field.name.clone(),
                _ => format!("{}[{component}]", field.name),
            };
            format!("{name}: {least:.6e} to {most:.6e}")
        })
    })
}

/// Returns the multigrid hierarchy of a preconditioner as JSON.
fn levels(of: &MultigridStatistics) -> Value {
    let level = |level: &runtime::solve::LevelFigures| json!({ "unknowns": level.unknowns, "largest_eigenvalue": level.largest });
    let mut value = json!({
        "levels": of.levels.iter().map(level).collect::<Vec<_>>(),
        "smoother": of.smoother.word(),
        "steps": of.steps,
        "coarsest": of.coarsest,
        "set_up_seconds": of.seconds,
    });
    if let Some(field) = &of.field {
        value["field"] = json!(field);
    }
    value
}

/// Formats a report; for a line plot the number of points.
fn figure(figure: &ReportValue) -> String {
    let list = |values: &[f64]| {
        let shown: Vec<String> = values.iter().map(|value| format!("{value:.10e}")).collect();
        format!("[{}]", shown.join(", "))
    };
    match figure {
        ReportValue::Value(Shape::Scalar, values) => format!("{:.10e}", values[0]),
        ReportValue::Value(Shape::Vector(_), values) => list(values),
        ReportValue::Value(Shape::Matrix(_, columns), values) => {
            let rows: Vec<String> = values.chunks(*columns).map(list).collect();
            format!("[{}]", rows.join(", "))
        }
        ReportValue::Line(_, points) => {
            let empty = |(_, values): &&([f64; 3], Vec<f64>)| values.iter().any(|x| x.is_nan());
            match points.iter().filter(empty).count() {
                0 => format!("{} points", points.len()),
                gaps => format!("{} points, {gaps} without a value,", points.len()),
            }
        }
    }
}

/// Returns a report as JSON: numbers, and arrays of numbers; for a line plot objects with points and values.
fn figure_value(figure: &ReportValue) -> Value {
    let shaped = |shape: &Shape, values: &[f64]| match shape {
        Shape::Scalar => json!(values[0]),
        Shape::Vector(_) => json!(values),
        Shape::Matrix(_, columns) => values.chunks(*columns).map(|row| json!(row)).collect(),
    };
    match figure {
        ReportValue::Value(shape, values) => shaped(shape, values),
        ReportValue::Line(shape, points) => points
            .iter()
            .map(|(x, values)| json!({ "x": x, "value": shaped(shape, values) }))
            .collect(),
    }
}

/// Returns the JSON object for programs.
pub(super) fn value(
    problem: &Problem,
    solution: &Solution,
    (steps, reported): (&[Step], &[Value]),
    files: WrittenFiles<'_>,
) -> Value {
    let report = &solution.report;
    let mut value = json!({
        "problem": problem.name,
        "form": problem.form.name,
        "cell": solution.context.on.mesh.cell().name(),
        "degree": problem.degree,
        "quadrature": solution.context.elements.rule.to_string(),
        "cells": solution.size[0],
        "dofs": solution.size[1],
        "processes": solution.context.on.mesh.cut().map_or(1, |cut| cut.group().size()),
        "notes": solution.notes.iter().map(String::as_str).chain(files.note).collect::<Vec<_>>(),
        "kernels": solution.kernels.word,
        "compiler": solution.kernels.compiler,
        "backend": solution.kernels.backend.word(),
        "scatter": solution.kernels.scatter().to_string(),
        "solver": report.solver,
        "iterations": report.iterations,
        "linear_iterations": solution.linear_iterations,
        "multigrid": match &solution.multigrid[..] {
            [] => Value::Null,
            [one] if one.field.is_none() => levels(one),
            several => several.iter().map(levels).collect(),
        },
        "applications": applications(solution),
        "residual": solution.residual,
        "dofs_per_second": solution.throughput,
        "newton": report.newton.iter().map(newton_step).collect::<Vec<_>>(),
        "seconds": {
            "mesh": solution.seconds.mesh,
            "compile": solution.seconds.compile,
            "set_up": solution.seconds.set_up,
            "solve": solution.seconds.solve,
            "measure": solution.seconds.measure,
            "write": solution.seconds.write,
            "total": solution.seconds.sum(),
        },
    });
    if let Some(object) = value.as_object_mut() {
        insert_errors(object, problem, &solution.errors);
        let steps = steps.iter().zip(reported);
        let steps = steps.map(|(step, reports)| step_value(problem, step, reports));
        object.insert("steps".into(), steps.collect());
        if let Some(device) = &solution.kernels.device {
            object.insert("device".into(), json!(device));
        }
        if let Some(energy) = solution.energy {
            object.insert("energy".into(), json!(energy));
        }
        if let Some(plan) = action_plan(solution) {
            let indices = format!("{:?}", plan.indices);
            object.insert(
                "plan".into(),
                json!({ "lanes": plan.lanes, "geometry": plan.geometry.to_string(), "indices": indices }),
            );
        }
        let fields = problem.form.fields.iter().zip(&solution.ranges);
        let fields = fields.zip(&solution.context.elements.fields);
        let ranges = fields.map(|((field, ranges), element)| {
            let [least, most] = [0, 1].map(|end| match &ranges[..] {
                [range] => json!(range[end]),
                ranges => ranges.iter().map(|range| json!(range[end])).collect(),
            });
            let value = json!({
                "minimum": least,
                "maximum": most,
                "shape": shape_word(field.shape),
                "degree": element.degree(),
                "continuous": element.is_continuous(),
            });
            (field.name.clone(), value)
        });
        object.insert("fields".into(), Value::Object(ranges.collect()));
        if !solution.reports.is_empty() {
            object.insert("reports".into(), reports_value(&solution.reports));
        }
        if !files.lines.is_empty() {
            let lines = files.lines.iter().map(|(name, path)| (name.clone(), json!(called(path))));
            object.insert("lines".into(), Value::Object(lines.collect()));
        }
        if !solution.modes.is_empty() {
            let values: Vec<f64> = solution.modes.iter().map(|mode| mode.value).collect();
            object.insert("eigenvalues".into(), json!(values));
            object.insert("modes".into(), solution.modes.iter().map(mode_value).collect());
        }
        for (what, path) in [("output", files.output), ("picture", files.picture)] {
            if let Some(path) = path {
                object.insert(what.into(), json!(called(path)));
            }
        }
    }
    value
}

/// Returns a Newton step as JSON: the residual norm before it, its length, and the linear iterations.
fn newton_step(step: &NewtonStep) -> Value {
    json!({
        "residual": step.residual,
        "residual_of_fields": step.fields,
        "step": step.damping,
        "linear_iterations": step.inner_iterations,
    })
}

pub(super) fn reports_value(reports: &[ReportResult]) -> Value {
    let reports = reports.iter();
    let reports = reports.map(|report| (report.name.clone(), figure_value(&report.value)));
    Value::Object(reports.collect())
}

/// Returns a mode as JSON.
fn mode_value(mode: &Mode) -> Value {
    json!({
        "value": mode.value,
        "frequency": frequency(mode.value),
        "residual": mode.residual,
        "reports": reports_value(&mode.reports),
    })
}

/// Returns a step as JSON. Unknown values are null.
fn step_value(problem: &Problem, step: &Step, reports: &Value) -> Value {
    let mut value = json!({
        "kind": step.kind.word(),
        "time": step.time,
        "cells": step.cells,
        "dofs": step.dofs,
        "estimate": step.estimate,
        "error_l2": null,
        "error_h1": null,
        "seconds": step.seconds,
        "reports": reports,
    });
    if let Some(object) = value.as_object_mut() {
        insert_errors(object, problem, &step.errors);
    }
    value
}

/// Inserts the errors of all fields, and separately those of a single field.
fn insert_errors(object: &mut Map<String, Value>, problem: &Problem, errors: &[(usize, f64, f64)]) {
    if let [(_, l2, h1)] = errors {
        object.insert("error_l2".into(), json!(l2));
        object.insert("error_h1".into(), json!(h1));
    }
    if !errors.is_empty() {
        let errors = errors.iter().map(|&(field, l2, h1)| {
            json!({ "field": problem.form.fields[field].name, "l2": l2, "h1": h1 })
        });
        object.insert("errors".into(), errors.collect());
    }
}
