//! Solutions: views of their numbers, reports, files and pictures.

use crate::errors::raised;
use crate::memory::views::{Constant, Part, points, view};
use crate::system::{System, locked};
use crate::values::{dimensions, origin, report};
use crate::vector::State;
use crate::watch::outside;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::PathBuf;
use weakform::Error;
use weakform::picture::PictureOptions;
use wf_program::summary::{WrittenFiles, reports_value, value};

/// A solved problem.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct Solution {
    pub(crate) solved: weakform::Solution,
    residuals: Vec<f64>,
}

impl Constant for Solution {
    fn numbers(&self, part: &Part) -> &[f64] {
        let all = self.solved.inner();
        match *part {
            Part::All => &all.u,
            Part::Field(field) => &all.u[all.context.on.dofs_of(field)],
            Part::Mode(mode, field) => &all.modes[mode].u[all.context.on.dofs_of(field)],
        }
    }
}

impl Solution {
    pub(crate) fn new(solved: weakform::Solution, residuals: Vec<f64>) -> Self {
        Self { solved, residuals }
    }

    fn field(&self, py: Python<'_>, name: &str) -> PyResult<usize> {
        let fields = &self.solved.inner().context.problem.form.fields;
        let known = || fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
        fields.iter().position(|field| field.name == name).ok_or_else(|| {
            raised(py, Error::Unknown { what: "field", name: name.to_owned(), known: known() })
        })
    }

    fn components(&self, field: usize) -> usize {
        self.solved.inner().context.on.fields[field].space.components()
    }
}

#[pymethods]
impl Solution {
    #[getter]
    fn problem(&self) -> &str {
        &self.solved.inner().context.problem.name
    }

    #[getter]
    fn form(&self) -> &str {
        self.solved.form().name()
    }

    /// The names and the shapes of the fields.
    #[getter]
    fn fields(&self) -> Vec<(String, Vec<usize>)> {
        let fields = &self.solved.inner().context.problem.form.fields;
        fields.iter().map(|field| (field.name.clone(), dimensions(field.shape))).collect()
    }

    /// Returns a read-only view of all degrees of freedom, field after field.
    #[getter]
    fn vector(this: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        view(this, &Part::All, 1).map(Bound::unbind)
    }

    /// Returns a read-only view of a field's values at its nodes.
    fn view(this: &Bound<'_, Self>, name: &str) -> PyResult<Py<PyAny>> {
        let field = this.get().field(this.py(), name)?;
        view(this, &Part::Field(field), this.get().components(field)).map(Bound::unbind)
    }

    /// Returns the position of each node of a field, (nodes, 3).
    fn points<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, name)?;
        let found = outside(py, || self.solved.points_of(name))?;
        points(py, &found.map_err(|error| raised(py, error))?)
    }

    #[getter]
    fn cells(&self) -> usize {
        self.solved.cells()
    }

    #[getter]
    fn dofs(&self) -> usize {
        self.solved.dofs()
    }

    #[getter]
    fn iterations(&self) -> usize {
        self.solved.iterations()
    }

    #[getter]
    fn solver(&self) -> &str {
        self.solved.inner().report.solver
    }

    #[getter]
    fn residual(&self) -> f64 {
        self.solved.residual()
    }

    /// The residual norm of each iteration.
    #[getter]
    fn residuals(&self) -> Vec<f64> {
        self.residuals.clone()
    }

    #[getter]
    fn energy(&self) -> Option<f64> {
        self.solved.energy()
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.solved.notes().to_vec()
    }

    /// Remarks on kernels that are interpreted for lack of a compiler.
    #[getter]
    fn kernel_notes(&self) -> Vec<String> {
        self.solved.inner().kernels.notes.clone()
    }

    #[getter]
    fn kernels(&self) -> &'static str {
        origin(self.solved.origin())
    }

    /// The seconds of each phase.
    #[getter]
    fn seconds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let own = self.solved.seconds();
        let all = PyDict::new(py);
        all.set_item("mesh", own.mesh)?;
        all.set_item("compile", own.compile)?;
        all.set_item("set_up", own.set_up)?;
        all.set_item("solve", own.solve)?;
        all.set_item("measure", own.measure)?;
        all.set_item("write", own.write)?;
        all.set_item("total", own.sum())?;
        Ok(all)
    }

    /// Returns the L2 and H1 errors of a field, if the problem has an exact solution.
    fn error(&self, py: Python<'_>, name: &str) -> PyResult<Option<(f64, f64)>> {
        self.field(py, name)?;
        Ok(self.solved.error(name))
    }

    #[getter]
    fn reports<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for own in &self.solved.inner().reports {
            all.set_item(&own.name, report(py, &own.value)?)?;
        }
        Ok(all)
    }

    /// The statistics and the reports of each step.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        let fields = &self.solved.inner().context.problem.form.fields;
        for (step, reports) in self.solved.steps().iter().zip(self.solved.step_reports()) {
            let row = PyDict::new(py);
            row.set_item("kind", step.kind.word())?;
            if let Some(time) = step.time {
                row.set_item("time", time)?;
            }
            row.set_item("cells", step.cells)?;
            row.set_item("dofs", step.dofs)?;
            if let Some(estimate) = step.estimate {
                row.set_item("estimate", estimate)?;
            }
            for &(field, l2, h1) in &step.errors {
                let name = &fields[field].name;
                row.set_item(format!("error_l2({name})"), l2)?;
                row.set_item(format!("error_h1({name})"), h1)?;
            }
            row.set_item("seconds", step.seconds)?;
            for own in reports {
                row.set_item(&own.name, report(py, &own.value)?)?;
            }
            all.append(row)?;
        }
        Ok(all)
    }

    /// The eigenvalues.
    #[getter]
    fn eigenvalues(&self) -> Vec<f64> {
        self.solved.modes().iter().map(|mode| mode.value).collect()
    }

    /// Returns a read-only view of a field's values in a mode, counted from 0.
    fn mode(this: &Bound<'_, Self>, mode: usize, name: &str) -> PyResult<Py<PyAny>> {
        let own = this.get();
        let field = own.field(this.py(), name)?;
        if mode >= own.solved.modes().len() {
            let text =
                format!("there is no mode {mode}\nhelp: there are {}", own.solved.modes().len());
            return Err(crate::errors::exception(this.py(), "InvalidValue", (text,))?);
        }
        view(this, &Part::Mode(mode, field), own.components(field)).map(Bound::unbind)
    }

    /// Returns the JSON object of `wf run --json` as text.
    fn summary(&self) -> String {
        let steps = self.solved.step_reports();
        let reported: Vec<_> = steps.iter().map(|own| reports_value(own)).collect();
        let solved = self.solved.inner();
        let steps = (self.solved.steps(), &reported[..]);
        value(&solved.context.problem, solved, steps, WrittenFiles::default()).to_string()
    }

    /// Writes the solution to a file.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        outside(py, || self.solved.write(path))?.map_err(|error| raised(py, error))
    }

    /// Returns the VTU file of the solution.
    fn vtu<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = outside(py, || self.solved.to_vtu())?;
        Ok(PyBytes::new(py, &bytes.map_err(|error| raised(py, error))?))
    }

    /// Draws the solution to a file.
    #[pyo3(signature = (path, field=None, slice=None, warp=None, size=None, range=None))]
    fn picture(
        &self,
        py: Python<'_>,
        path: PathBuf,
        field: Option<String>,
        slice: Option<&str>,
        warp: Option<f64>,
        size: Option<(u32, u32)>,
        range: Option<(f64, f64)>,
    ) -> PyResult<()> {
        let slice = match slice.map(str::parse).transpose() {
            Ok(slice) => slice,
            Err(error) => return Err(crate::errors::exception(py, "InvalidValue", (error,))?),
        };
        let options = PictureOptions { field, slice, warp, size, range };
        let drawn = outside(py, || self.solved.picture(path, &options))?;
        drawn.map_err(|error| raised(py, error))
    }

    /// Returns the system of the solved problem.
    fn system(&self, py: Python<'_>) -> PyResult<System> {
        let made = outside(py, || self.solved.system())?;
        let (system, _) = made.map_err(|error| raised(py, error))?;
        Ok(System::ready(self.solved.form().clone(), system))
    }
}

/// Measures a state of a system as the solution of a problem, with the report of its last solve.
#[pyfunction]
pub(crate) fn measured(py: Python<'_>, system: &System, u: State<'_>) -> PyResult<Solution> {
    let given = u.given()?;
    let report = py.detach(|| locked(&system.0).report.clone());
    let Some(report) = report else {
        let text = "nothing was solved yet\nhelp: call `solve` before `solution`";
        return Err(crate::errors::exception(py, "Error", (text,))?);
    };
    let residuals = report.history.clone();
    let solved = system.with(py, |system| {
        let u = given.on(system)?;
        system.solution(&u, report)
    })?;
    Ok(Solution::new(solved, residuals))
}
