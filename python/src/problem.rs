//! Problems: settings by name → a run with events → a solution.

use crate::errors::raised_by;
use crate::settings::{opened, parsed, wrong};
use crate::solution::Solution;
use crate::watch::{SolveEvent, watched};
use pyo3::prelude::*;
use weakform::{
    Assembly, Backend, Continue, Execution, Quadrature, Representation, RunEvent, Scatter,
};
use wf_program::summary::reports_value;

/// A problem with its settings.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct Problem(weakform::Problem);

impl Problem {
    pub(crate) fn new(problem: weakform::Problem) -> Self {
        Self(problem)
    }
}

/// Settings of a run; each is text, as the command line takes it.
type Settings = Vec<(String, String)>;

#[pymethods]
impl Problem {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The name of its form.
    #[getter]
    fn form(&self) -> &str {
        self.0.form().name()
    }

    /// Returns the names and shapes of the parameters of its form, in the dimensions in which it is valid.
    fn params(&self) -> Vec<(String, Vec<usize>)> {
        let form = self.0.form();
        let mut all: Vec<(String, Vec<usize>)> = Vec::new();
        for form in form.dimensions().into_iter().filter_map(|dim| form.point_form(dim).ok()) {
            for param in form.own_params() {
                if all.iter().all(|(name, _)| *name != param.name) {
                    all.push((param.name.clone(), crate::values::dimensions(param.shape)));
                }
            }
        }
        all
    }

    /// Solves the problem with settings, parameters and data, which replace those of its text.
    #[pyo3(signature = (settings, params, data, observe=None))]
    fn run(
        &self,
        py: Python<'_>,
        settings: Settings,
        params: Settings,
        data: Settings,
        observe: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Solution> {
        let mut problem = self.0.clone();
        for (name, value) in &settings {
            problem = set(py, problem, name, value)?;
        }
        for (name, value) in params {
            problem = problem.param(&name, value);
        }
        for (name, value) in data {
            problem = problem.aux(&name, value);
        }
        let form = problem.form().clone();
        let run = move |reporter: &crate::watch::Reporter<_>| {
            problem.run_with_events(|event| match event {
                RunEvent::Iteration(now) => reporter.iteration(now),
                RunEvent::Time { now, end } => reporter.report(|| SolveEvent::Time { now, end }),
                RunEvent::Step { step, reports } => reporter.report(|| {
                    SolveEvent::Step(serde_json::json!({
                        "kind": step.kind.word(),
                        "cells": step.cells,
                        "dofs": step.dofs,
                        "time": step.time,
                        "estimate": step.estimate,
                        "seconds": step.seconds,
                        "reports": reports_value(reports),
                    }))
                }),
                _ => Continue::Yes,
            })
        };
        let (solved, residuals) = watched(py, observe, run)?;
        let solved = solved.map_err(|error| raised_by(py, error, Some(&form), &residuals))?;
        Ok(Solution::new(solved, residuals))
    }
}

/// Sets what a keyword argument of `run` names.
fn set(
    py: Python<'_>,
    problem: weakform::Problem,
    name: &str,
    value: &str,
) -> PyResult<weakform::Problem> {
    Ok(match name {
        "mesh" => problem.mesh(value),
        "refine" => problem.refine(parsed(py, name, value)?),
        "degree" => problem.degree(parsed(py, name, value)?),
        "quadrature" => problem.quadrature(parsed::<Quadrature>(py, name, value)?),
        "solver" => problem.solver(value),
        "folder" => problem.folder(value),
        "scatter" => problem.scatter(parsed::<Scatter>(py, name, value)?),
        "checkpoint" => problem.checkpoint(value),
        "restart" => problem.restart(value),
        "kernels" => match value {
            "interpreted" => problem.execution(Execution::Interpreted),
            "compiled" => problem.compiled(),
            "automatic" => problem,
            _ => return Err(wrong(py, name, value, "automatic, compiled or interpreted")?),
        },
        "operator" => problem.representation(match value {
            "matrix-free" => Representation::MatrixFree,
            "ebe-v1" => Representation::Stored,
            "ebe-v2" => Representation::Recomputed,
            assembled => match assembled.strip_prefix("assembled:") {
                Some(way) => Representation::Assembled(parsed::<Assembly>(py, name, way)?),
                None => {
                    return Err(wrong(
                        py,
                        name,
                        value,
                        "matrix-free, assembled, ebe-v1 or ebe-v2",
                    )?);
                }
            },
        }),
        "device" => match opened(py, value)? {
            Some(device) => problem.device(device),
            None => problem,
        },
        _ => return Err(wrong(py, "setting", name, "a keyword of `run`")?),
    })
}

/// Returns the names of usable backends.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> Vec<&'static str> {
    let found = [("cuda", Backend::Cuda), ("opencl", Backend::OpenCl)];
    let usable =
        |&(_, backend): &(_, Backend)| py.detach(|| weakform::device(backend, None).is_ok());
    std::iter::once("cpu").chain(found.iter().filter(|&of| usable(of)).map(|of| of.0)).collect()
}
