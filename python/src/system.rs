//! Systems: a form on a mesh with conditions and data of the caller → residual, Jacobian, solves.

use crate::errors::{exception, raised, raised_by};
use crate::memory::views::{copied, points};
use crate::mesh::Mesh;
use crate::settings::{opened, wrong};
use crate::values::{dimensions, origin, report};
use crate::vector::{State, Vector};
use crate::watch::{Reporter, outside, watched};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use weakform::{Boundary, Device, Error, Execution, Report, Setup, Trace};

/// A function of points and of the time.
type Function = Arc<dyn Fn(&[[f64; 3]], f64) -> Result<Vec<f64>, FunctionError> + Send + Sync>;

type FunctionError = Box<dyn std::error::Error + Send + Sync>;

/// The parts of a system before it is built.
#[derive(Clone)]
struct Parts {
    mesh: Arc<weakform::Mesh>,
    degree: usize,
    quadrature: Option<String>,
    time: f64,
    params: Vec<(String, Vec<f64>)>,
    data: Vec<(String, Function)>,
    conditions: Vec<(String, Trace, Boundary, Function)>,
    means: Vec<(String, Vec<f64>)>,
    execution: Execution,
    device: Option<Arc<dyn Device>>,
}

/// A system that may have to be built first.
pub(crate) struct Lazy {
    form: weakform::Form,
    /// None for the system of a solution.
    parts: Option<Parts>,
    built: Option<weakform::System>,
    pub(crate) report: Option<Report>,
}

impl Lazy {
    fn setup(&self) -> Result<Setup, Error> {
        let Some(parts) = &self.parts else {
            let message = "the system of a solution has the conditions of its problem\n\
                           help: begin with `form.on(mesh)` for others";
            return Err(weakform::RunError::Setting(message.to_owned()).into());
        };
        let parts = parts.clone();
        let mut setup = self.form.on((*parts.mesh).clone()).degree(parts.degree).time(parts.time);
        if let Some(quadrature) = parts.quadrature {
            let quadrature = quadrature.parse::<weakform::Quadrature>();
            let failed = |error: String| Error::from(weakform::RunError::Setting(error));
            setup = setup.quadrature(quadrature.map_err(|error| failed(error.to_string()))?);
        }
        for (name, value) in parts.params {
            setup = setup.param(&name, value);
        }
        for (name, values) in parts.data {
            setup = setup.aux_values(&name, move |points| values(points, 0.0));
        }
        for (field, trace, on, values) in parts.conditions {
            setup = setup.dirichlet_values(&field, trace, on, move |x, t| values(x, t));
        }
        for (field, mean) in parts.means {
            setup = setup.mean(&field, mean);
        }
        if let Some(device) = parts.device {
            setup = setup.device(device);
        }
        Ok(setup.execution(parts.execution))
    }

    /// Returns the system, which is built if necessary.
    pub(crate) fn built(&mut self) -> Result<&mut weakform::System, Error> {
        if self.built.is_none() {
            self.built = Some(self.setup()?.build()?);
        }
        // INVARIANT: it was just built.
        self.built.as_mut().ok_or(Error::NotLinearised)
    }
}

/// A form on a mesh.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct System(pub(crate) Arc<Mutex<Lazy>>);

pub(crate) fn locked(system: &Mutex<Lazy>) -> MutexGuard<'_, Lazy> {
    system.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// True while this thread runs a Python function that a system has called for values.
    static IN_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

/// Fails in a function that is called for values by the system it asks: both would wait for ever.
pub(crate) fn reachable(py: Python<'_>, system: &Mutex<Lazy>) -> PyResult<()> {
    if IN_FUNCTION.get() && matches!(system.try_lock(), Err(TryLockError::WouldBlock)) {
        let text = "a function of values asks the system that has called it\n\
                    help: take what it needs from the system before, or from `x` and `t`";
        return Err(exception(py, "Error", (text,))?);
    }
    Ok(())
}

impl System {
    pub(crate) fn ready(form: weakform::Form, system: weakform::System) -> Self {
        let lazy = Lazy { form, parts: None, built: Some(system), report: None };
        Self(Arc::new(Mutex::new(lazy)))
    }

    /// Calls a function with the built system, without the GIL.
    pub(crate) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut weakform::System) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        reachable(py, &self.0)?;
        let result = outside(py, || work(locked(&self.0).built()?))?;
        result.map_err(|error| raised(py, error))
    }

    /// Changes the parts, so that the system is built again.
    fn change(&self, py: Python<'_>, change: impl FnOnce(&mut Parts) + Send) -> PyResult<()> {
        reachable(py, &self.0)?;
        let done = py.detach(|| {
            let mut lazy = locked(&self.0);
            let done = lazy.parts.as_mut().map(change);
            if done.is_some() {
                lazy.built = None;
            }
            done
        });
        match done {
            Some(()) => Ok(()),
            None => {
                let text = "the system of a solution has the conditions of its problem\n\
                            help: begin with `form.on(mesh)` for others";
                Err(exception(py, "Error", (text,))?)
            }
        }
    }

    /// Returns the values of each field in a state.
    fn parts_of<'py>(&self, py: Python<'py>, u: &[f64]) -> PyResult<Bound<'py, PyDict>> {
        let (all, fields) = (PyDict::new(py), self.fields(py)?);
        let ends = fields.iter().skip(1).map(|(_, _, start)| *start).chain([u.len()]);
        for ((name, shape, start), end) in fields.iter().zip(ends) {
            all.set_item(name, copied(py, &u[*start..end], shape.iter().product())?)?;
        }
        Ok(all)
    }

    /// Checks the tags of a condition, which a build would refuse later.
    fn check_tags(&self, py: Python<'_>, field: &str, tags: &[String]) -> PyResult<()> {
        if tags.is_empty() {
            let text = format!(
                "the condition on `{field}` names no tag, and constrains nothing\n\
                 help: name tags of the mesh, or leave `on` out for the whole boundary"
            );
            return Err(exception(py, "InvalidValue", (text,))?);
        }
        reachable(py, &self.0)?;
        let known = py.detach(|| {
            let lazy = locked(&self.0);
            lazy.parts.as_ref().map(|parts| parts.mesh.facet_tags().keys().cloned().collect())
        });
        let known: Vec<String> = known.unwrap_or_default();
        match tags.iter().find(|tag| !known.contains(tag)) {
            Some(tag) if !known.is_empty() => {
                Err(raised(py, Error::Unknown { what: "tag", name: tag.clone(), known }))
            }
            _ => Ok(()),
        }
    }

    fn check_field(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let known: Vec<String> = self.fields(py)?.into_iter().map(|(name, ..)| name).collect();
        match known.iter().any(|own| own == name) {
            true => Ok(()),
            false => {
                Err(raised(py, Error::Unknown { what: "field", name: name.to_owned(), known }))
            }
        }
    }
}

#[pymethods]
impl System {
    /// Begins a form on a mesh.
    #[new]
    #[pyo3(signature = (form, mesh, degree, quadrature, time, params, kernels, device))]
    fn new(
        py: Python<'_>,
        form: &crate::form::Form,
        mesh: &Mesh,
        degree: usize,
        quadrature: Option<String>,
        time: f64,
        params: Vec<(String, Vec<f64>)>,
        kernels: &str,
        device: &str,
    ) -> PyResult<Self> {
        let execution = match kernels {
            "automatic" => Execution::Automatic,
            "compiled" => Execution::Compiled,
            "interpreted" => Execution::Interpreted,
            _ => return Err(wrong(py, "kernels", kernels, "automatic, compiled or interpreted")?),
        };
        let parts = Parts {
            mesh: Arc::clone(&mesh.0),
            degree,
            quadrature,
            time,
            params,
            data: Vec::new(),
            conditions: Vec::new(),
            means: Vec::new(),
            execution,
            device: opened(py, device)?,
        };
        let lazy = Lazy { form: form.0.clone(), parts: Some(parts), built: None, report: None };
        Ok(Self(Arc::new(Mutex::new(lazy))))
    }

    /// The names, shapes and first degrees of freedom of the fields; the latter are 0 before the system is built.
    #[getter]
    fn fields(&self, py: Python<'_>) -> PyResult<Vec<(String, Vec<usize>, usize)>> {
        reachable(py, &self.0)?;
        let (form, mesh) = py.detach(|| {
            let lazy = locked(&self.0);
            let dim = match (&lazy.parts, &lazy.built) {
                (Some(parts), _) => parts.mesh.dim(),
                (None, Some(built)) => built.mesh().dim(),
                (None, None) => 0,
            };
            let starts: Vec<usize> = lazy.built.as_ref().map_or_else(Vec::new, |built| {
                let on = built.discretisation();
                (0..on.fields.len()).map(|field| on.dofs_of(field).start).collect()
            });
            (lazy.form.point_form(dim), starts)
        });
        let form = form.map_err(|error| raised(py, error))?;
        let fields = form.fields.iter().enumerate();
        let start = |field: usize| mesh.get(field).copied().unwrap_or_default();
        Ok(fields.map(|(i, own)| (own.name.clone(), dimensions(own.shape), start(i))).collect())
    }

    /// Builds the system, if that has not been done.
    fn build(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |_| Ok(()))
    }

    /// Adds an essential condition with a function of points and the time, `values(x, t)`, whose result is a
    /// contiguous array.
    fn dirichlet(
        &self,
        py: Python<'_>,
        field: String,
        component: Option<usize>,
        normal: bool,
        on: Option<Vec<String>>,
        point: Option<[f64; 3]>,
        values: Py<PyAny>,
    ) -> PyResult<()> {
        self.check_field(py, &field)?;
        let trace = match (component, normal) {
            (Some(component), _) => Trace::Component(component),
            (None, true) => Trace::Normal,
            (None, false) => Trace::Whole,
        };
        let boundary = match (on, point) {
            (Some(tags), _) => {
                self.check_tags(py, &field, &tags)?;
                Boundary::Tags(tags)
            }
            (None, Some(point)) => Boundary::Vertex(point),
            (None, None) => Boundary::All,
        };
        let values = called(values);
        self.change(py, move |parts| parts.conditions.push((field, trace, boundary, values)))
    }

    /// Removes all conditions.
    fn clear_conditions(&self, py: Python<'_>) -> PyResult<()> {
        self.change(py, |parts| parts.conditions.clear())
    }

    /// Sets the mean of a field.
    fn mean(&self, py: Python<'_>, field: String, mean: Vec<f64>) -> PyResult<()> {
        self.check_field(py, &field)?;
        self.change(py, move |parts| parts.means.push((field, mean)))
    }

    /// Sets data with a function of points.
    fn data(&self, py: Python<'_>, name: String, values: Py<PyAny>) -> PyResult<()> {
        let values = called(values);
        self.change(py, move |parts| {
            parts.data.retain(|(own, _)| *own != name);
            parts.data.push((name, values));
        })
    }

    /// Sets data by rows of the mesh: one for each cell or each point, in the caller's order.
    fn data_rows(
        &self,
        py: Python<'_>,
        name: String,
        components: usize,
        values: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        reachable(py, &self.0)?;
        let mesh =
            py.detach(|| locked(&self.0).parts.as_ref().map(|parts| Arc::clone(&parts.mesh)));
        let arranged = mesh.and_then(|mesh| Mesh::arranged(&mesh, &values, components));
        let Some(arranged) = arranged else {
            let text = format!(
                "`{name}` has {} values, which are neither those of the cells nor those of the points of the mesh\n\
                 help: pass one row for each cell, one for each point, or a function of the position",
                values.as_array().len()
            );
            return Err(exception(py, "InvalidValue", (text,))?);
        };
        let values: Function = Arc::new(move |points, _| match points.len() * components {
            count if count == arranged.len() => Ok(arranged.clone()),
            count => {
                Err(format!("the data has {} values, but its space {count}", arranged.len()).into())
            }
        });
        self.change(py, move |parts| {
            parts.data.retain(|(own, _)| *own != name);
            parts.data.push((name, values));
        })
    }

    /// Replaces data by numbers, in the order of `data_points`, without building again.
    fn set_data(
        &self,
        py: Python<'_>,
        name: &str,
        values: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<()> {
        let values = values.as_slice()?.to_vec();
        self.with(py, |system| system.set_aux_values(name, &values))
    }

    fn data_points<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        points(py, &self.with(py, |system| system.aux_points(name))?)
    }

    fn data_values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let values = self.with(py, |system| system.aux_values(name).map(<[f64]>::to_vec))?;
        copied(py, &values, 1)
    }

    /// Replaces a parameter without building again.
    fn set_param(&self, py: Python<'_>, name: String, value: Vec<f64>) -> PyResult<()> {
        let (own, new) = (name.clone(), value.clone());
        self.with(py, move |system| system.set_param(&own, new))?;
        py.detach(|| {
            if let Some(parts) = &mut locked(&self.0).parts {
                parts.params.retain(|(known, _)| *known != name);
                parts.params.push((name, value));
            }
        });
        Ok(())
    }

    fn set_time(&self, py: Python<'_>, time: f64) -> PyResult<()> {
        self.with(py, |system| system.set_time(time))
    }

    #[getter]
    fn time(&self, py: Python<'_>) -> PyResult<f64> {
        self.with(py, |system| Ok(system.time()))
    }

    #[getter]
    fn dofs(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |system| Ok(system.dofs()))
    }

    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |system| Ok(system.notes().to_vec()))
    }

    #[getter]
    fn kernel_notes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |system| Ok(system.kernels().notes.clone()))
    }

    #[getter]
    fn kernels(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |system| Ok(origin(system.origin())))
    }

    /// Returns the position of each node of a field, without building the system.
    fn points<'py>(&self, py: Python<'py>, field: &str) -> PyResult<Bound<'py, PyAny>> {
        reachable(py, &self.0)?;
        let found = outside(py, || {
            let lazy = locked(&self.0);
            match &lazy.built {
                Some(built) => built.points(field),
                None => lazy.setup()?.points(field),
            }
        })?;
        points(py, &found.map_err(|error| raised(py, error))?)
    }

    fn constrained_dofs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let dofs = self.with(py, |system| Ok(system.constrained_dofs()))?;
        Ok(PyArray1::from_iter(py, dofs.into_iter().map(|dof| dof as i64)))
    }

    /// Returns zeros on the device of the system.
    fn vector(&self, py: Python<'_>) -> PyResult<Vector> {
        self.with(py, |system| Ok(Vector::new(system.vector())))
    }

    fn initial<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let u = self.with(py, |system| Ok(system.initial().to_vec()))?;
        copied(py, &u, 1)
    }

    /// Sets the constrained degrees of freedom to the values of their conditions.
    fn impose<'py>(&self, py: Python<'py>, u: State<'py>) -> PyResult<Bound<'py, PyAny>> {
        let given = u.given()?;
        let u = self.with(py, |system| {
            let mut u = given.on(system)?;
            system.impose(&mut u)?;
            Ok(u)
        })?;
        u_like(py, &u, &given)
    }

    fn residual<'py>(&self, py: Python<'py>, u: State<'py>) -> PyResult<Bound<'py, PyAny>> {
        let given = u.given()?;
        let r = self.with(py, |system| {
            let (u, mut r) = (given.on(system)?, system.vector());
            system.residual(&u, &mut r)?;
            Ok(r)
        })?;
        u_like(py, &r, &given)
    }

    fn linearise(&self, py: Python<'_>, u: State<'_>) -> PyResult<()> {
        let given = u.given()?;
        self.with(py, |system| {
            let u = given.on(system)?;
            system.linearise(&u)
        })
    }

    fn apply<'py>(&self, py: Python<'py>, w: State<'py>) -> PyResult<Bound<'py, PyAny>> {
        let given = w.given()?;
        let y = self.with(py, |system| {
            let (w, mut y) = (given.on(system)?, system.vector());
            system.apply(&w, &mut y)?;
            Ok(y)
        })?;
        u_like(py, &y, &given)
    }

    fn diagonal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let diagonal = self.with(py, |system| {
            let mut diagonal = system.vector();
            system.diagonal(&mut diagonal)?;
            Ok(diagonal.to_vec())
        })?;
        copied(py, &diagonal, 1)
    }

    /// Returns the Jacobian in CSR: starts of the rows, columns, entries.
    fn matrix<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f64>>)>
    {
        let matrix = self.with(py, |system| system.matrix())?;
        let starts = PyArray1::from_iter(py, matrix.starts.iter().map(|&start| start as i64));
        let columns = matrix.columns.iter().map(|&column| column.cast_signed());
        let columns = PyArray1::from_iter(py, columns);
        Ok((starts, columns, PyArray1::from_vec(py, matrix.values)))
    }

    /// Sets an additional right-hand side, or removes it.
    fn set_load(&self, py: Python<'_>, load: Option<State<'_>>) -> PyResult<()> {
        let given = load.map(|load| load.given()).transpose()?;
        self.with(py, |system| match &given {
            Some(given) => {
                let load = given.on(system)?;
                system.set_load(&load)
            }
            None => {
                system.clear_load();
                Ok(())
            }
        })
    }

    /// Solves from a state; `observe` gets the iterations and ends the solve by returning `False`.
    #[pyo3(signature = (u, solver, observe=None))]
    fn solve<'py>(
        &self,
        py: Python<'py>,
        u: State<'py>,
        solver: Option<String>,
        observe: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = u.given()?;
        self.build(py)?;
        let (own, start) = (Arc::clone(&self.0), given.clone());
        let work = move |reporter: &Reporter<_>| {
            let mut lazy = locked(&own);
            let system = lazy.built()?;
            let solver = solver.map(|text| system.solver(&text)).transpose()?;
            let mut u = start.on(system)?;
            let solved =
                system.solve_observed(&mut u, solver.as_ref(), |now| reporter.iteration(now));
            let failed = solved.map(|report| lazy.report = Some(report)).err();
            Ok::<_, Error>((u, failed))
        };
        let (solved, residuals) = watched(py, observe, work)?;
        let form = py.detach(|| locked(&self.0).form.clone());
        let (u, failed) = solved.map_err(|error| raised_by(py, error, Some(&form), &residuals))?;
        if let Some(error) = failed {
            let error = raised_by(py, error, Some(&form), &residuals);
            let value = error.value(py);
            let entries = u.to_vec();
            if value.hasattr("report")? && entries.iter().all(|entry| entry.is_finite()) {
                value.setattr("solution", self.parts_of(py, &entries)?)?;
            }
            return Err(error);
        }
        u_like(py, &u, &given)
    }

    /// The report of the last solve.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        reachable(py, &self.0)?;
        let report = py.detach(|| locked(&self.0).report.clone());
        report.map(|report| of_report(py, &report)).transpose()
    }

    /// Evaluates a report of the language.
    fn measure<'py>(
        &self,
        py: Python<'py>,
        u: State<'py>,
        text: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = u.given()?;
        let value = self.with(py, |system| {
            let u = given.on(system)?;
            system.measure(&u, text)
        })?;
        report(py, &value)
    }

    /// Returns the values or the gradients of a field at points.
    fn at<'py>(
        &self,
        py: Python<'py>,
        field: &str,
        u: State<'py>,
        places: Vec<[f64; 3]>,
        gradients: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.check_field(py, field)?;
        let given = u.given()?;
        let values = self.with(py, |system| {
            let u = given.on(system)?;
            match gradients {
                true => system.gradients_at(field, &u, &places),
                false => system.values_at(field, &u, &places),
            }
        })?;
        copied(py, &values, (values.len() / places.len().max(1)).max(1))
    }

    fn write(&self, py: Python<'_>, path: PathBuf, u: State<'_>) -> PyResult<()> {
        let given = u.given()?;
        self.with(py, |system| {
            let u = given.on(system)?;
            system.write_vtu(path, &u)
        })
    }
}

/// Returns a vector as its argument was given: an array, or a vector of the device.
fn u_like<'py>(
    py: Python<'py>,
    u: &weakform::Vector,
    given: &crate::vector::StateEntries,
) -> PyResult<Bound<'py, PyAny>> {
    match given {
        crate::vector::StateEntries::Array(_) => copied(py, &u.to_vec(), 1),
        crate::vector::StateEntries::Vector(_) => {
            Ok(Bound::new(py, Vector::new(u.clone()))?.into_any())
        }
    }
}

/// Returns the function of a Python callable `values(x, t)`.
fn called(values: Py<PyAny>) -> Function {
    Arc::new(move |places, time| {
        Python::attach(|py| {
            let places = points(py, places)?;
            let outer = IN_FUNCTION.replace(true);
            let values = values.bind(py).call1((places, time));
            IN_FUNCTION.set(outer);
            let values = values?;
            let values: PyReadonlyArray1<'_, f64> = values.extract()?;
            Ok(values.as_slice()?.to_vec())
        })
        .map_err(|error: PyErr| error.into())
    })
}

/// Returns the report of a solve as a dictionary.
pub(crate) fn of_report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    all.set_item("solver", report.solver)?;
    all.set_item("iterations", report.iterations)?;
    all.set_item("residuals", report.history.clone())?;
    all.set_item("target", report.target)?;
    all.set_item("seconds", report.seconds)?;
    all.set_item("notes", report.notes.clone())?;
    all.set_item("newton_steps", report.newton.len())?;
    Ok(all)
}
