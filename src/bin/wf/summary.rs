//! Summary of a solution for programs: the JSON object of `wf run --json`.

use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use kernels_gen::plan::{Plan, Task};
use runtime::problem::{Mode, ReportResult, ReportValue, Solution, Step};
use runtime::solve::{MultigridStatistics, NewtonStep};
use runtime::support::timers::ProfileStep;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The files written.
#[derive(Clone, Copy, Debug, Default)]
pub struct WrittenFiles<'a> {
    /// The solution.
    pub output: Option<&'a Path>,
    /// The picture.
    pub picture: Option<&'a Path>,
    /// The line plots, by their names.
    pub lines: &'a [(String, PathBuf)],
    /// A remark on the picture.
    pub note: Option<&'a str>,
}

/// Returns a shape in words.
pub fn shape_word(shape: Shape) -> String {
    match shape {
        Shape::Scalar => "scalar".to_owned(),
        Shape::Vector(n) => format!("vector of {n}"),
        Shape::Matrix(m, n) => format!("{m}×{n} matrix"),
    }
}

/// Returns the plan of the Jacobian action.
pub fn action_plan(solution: &Solution) -> Option<&Plan> {
    solution.kernels.plans.iter().find(|plan| plan.task == Task::Action)
}

/// Returns √λ / 2π.
pub fn frequency(value: f64) -> Option<f64> {
    (value >= 0.0).then(|| value.sqrt() / std::f64::consts::TAU)
}

/// Returns the operator applications of a solve: one per iteration, one for the initial residual, and those of
/// multigrid.
pub fn applications(solution: &Solution) -> Option<usize> {
    let levels: usize = solution.multigrid.iter().map(|levels| levels.applications).sum();
    (!solution.multigrid.is_empty()).then_some(solution.linear_iterations + 1 + levels)
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
pub fn value(
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
        object.insert("fields".into(), fields_value(problem, solution));
        if !solution.reports.is_empty() {
            object.insert("reports".into(), reports_value(&solution.reports));
        }
        if !files.lines.is_empty() {
            let lines = files
                .lines
                .iter()
                .map(|(name, path)| (name.clone(), json!(path.display().to_string())));
            object.insert("lines".into(), Value::Object(lines.collect()));
        }
        if !solution.modes.is_empty() {
            let values: Vec<f64> = solution.modes.iter().map(|mode| mode.value).collect();
            object.insert("eigenvalues".into(), json!(values));
            object.insert("modes".into(), solution.modes.iter().map(mode_value).collect());
        }
        for (what, path) in [("output", files.output), ("picture", files.picture)] {
            if let Some(path) = path {
                object.insert(what.into(), json!(path.display().to_string()));
            }
        }
    }
    value
}

/// Returns ranges, shapes, degrees and continuity of the fields.
fn fields_value(problem: &Problem, solution: &Solution) -> Value {
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
    Value::Object(ranges.collect())
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

/// Returns reports as a JSON object.
pub fn reports_value(reports: &[ReportResult]) -> Value {
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

/// Returns a step of a profile and those nested in it as JSON.
pub fn profile_value(step: &ProfileStep) -> Value {
    json!({
        "step": step.name,
        "count": step.count,
        "seconds": step.seconds,
        "steps": step.steps.iter().map(profile_value).collect::<Vec<_>>(),
    })
}
