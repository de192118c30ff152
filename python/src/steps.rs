//! Time steps of a system.

use crate::errors::{raised, raised_by};
use crate::memory::views::copied;
use crate::settings::wrong;
use crate::system::{Lazy, System, locked, reachable};
use crate::vector::State;
use crate::watch::{outside, watched};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use weakform::{Error, Formula, Mass, Scheme, TimeIntegrator};

/// A system on its way through time.
#[pyclass(frozen, module = "weakform._native")]
pub(crate) struct Steps {
    system: Arc<Mutex<Lazy>>,
    integrator: Arc<Mutex<TimeIntegrator>>,
}

#[pymethods]
impl Steps {
    /// Starts at a time with a state, and with its rate for a form of second order.
    #[new]
    #[pyo3(signature = (system, scheme, settings, time, u, rate=None))]
    fn new(
        py: Python<'_>,
        system: &System,
        scheme: &str,
        settings: Vec<(String, String)>,
        time: f64,
        u: State<'_>,
        rate: Option<State<'_>>,
    ) -> PyResult<Self> {
        let scheme = of_words(py, scheme, &settings)?;
        let (u, rate) = (u.given()?, rate.map(|rate| rate.given()).transpose()?);
        let integrator = system.with(py, |system| {
            let u = u.on(system)?;
            let rate = rate.map(|rate| rate.on(system)).transpose()?;
            system.begin(scheme, time, &u, rate.as_ref())
        })?;
        let integrator = Arc::new(Mutex::new(integrator));
        Ok(Self { system: Arc::clone(&system.0), integrator })
    }

    /// Advances by a step, and returns the error estimate of the scheme, if it has one.
    fn advance(&self, py: Python<'_>, step: f64, solver: Option<String>) -> PyResult<Option<f64>> {
        reachable(py, &self.system)?;
        let (own, integrator) = (Arc::clone(&self.system), Arc::clone(&self.integrator));
        let work = move |_: &crate::watch::Reporter<_>| {
            let mut lazy = locked(&own);
            let system = lazy.built()?;
            let solver = solver.map(|text| system.solver(&text)).transpose()?;
            let mut integrator = integrator.lock().unwrap_or_else(PoisonError::into_inner);
            system.advance(&mut integrator, step, solver.as_ref())
        };
        let (estimate, residuals) = watched(py, None, work)?;
        estimate.map_err(|error: Error| raised_by(py, error, None, &residuals))
    }

    #[getter]
    fn time(&self, py: Python<'_>) -> PyResult<f64> {
        reachable(py, &self.system)?;
        let read = || self.integrator.lock().unwrap_or_else(PoisonError::into_inner).time();
        Ok(py.detach(read))
    }

    /// The state.
    #[getter]
    fn u<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        reachable(py, &self.system)?;
        let read = || self.integrator.lock().unwrap_or_else(PoisonError::into_inner).u().to_vec();
        copied(py, &outside(py, read)?, 1)
    }

    /// The rate of the state, if the scheme has it at this time.
    #[getter]
    fn rate<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        reachable(py, &self.system)?;
        let read = || {
            let integrator = self.integrator.lock().unwrap_or_else(PoisonError::into_inner);
            integrator.rates_are_known().then(|| integrator.rate().to_vec())
        };
        outside(py, read)?.map(|rate| copied(py, &rate, 1)).transpose()
    }

    /// Evaluates a report of the language at the present state.
    fn measure<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        reachable(py, &self.system)?;
        let value = outside(py, || {
            let mut lazy = locked(&self.system);
            let integrator = self.integrator.lock().unwrap_or_else(PoisonError::into_inner);
            lazy.built()?.measure(integrator.u(), text)
        })?;
        crate::values::report(py, &value.map_err(|error| raised(py, error))?)
    }
}

/// Returns a scheme by its word and settings.
fn of_words(py: Python<'_>, word: &str, settings: &[(String, String)]) -> PyResult<Scheme> {
    let find = |name: &str| settings.iter().find(|(own, _)| own == name).map(|(_, value)| value);
    let number = |name: &str, default: f64| -> PyResult<f64> {
        let Some(value) = find(name) else { return Ok(default) };
        value.parse().or_else(|_| Err(wrong(py, name, value, "a number")?))
    };
    let whole = |name: &str, default: f64| Ok::<_, PyErr>(number(name, default)? as usize);
    let mass = match find("mass").map(String::as_str) {
        None | Some("consistent") => Mass::Consistent,
        Some("lumped") => Mass::Lumped,
        Some(other) => return Err(wrong(py, "mass", other, "consistent or lumped")?),
    };
    Ok(match word {
        "theta" => Scheme::Theta { theta: number("theta", 0.5)? },
        "bdf" => Scheme::Bdf { order: whole("order", 2.0)? },
        "sdirk" => Scheme::Sdirk { stages: whole("stages", 2.0)? },
        "rk" => {
            let (formula, order) = match find("formula").map(String::as_str) {
                None | Some("classical") => (Formula::Classical, 4.0),
                Some("ssp") => (Formula::Ssp, 3.0),
                Some(other) => return Err(wrong(py, "formula", other, "classical or ssp")?),
            };
            Scheme::RungeKutta { order: whole("order", order)?, formula, mass }
        }
        "newmark" => Scheme::Newmark { beta: number("beta", 0.25)?, gamma: number("gamma", 0.5)? },
        "generalised_alpha" => Scheme::GeneralisedAlpha { rho: number("rho", 0.8)? },
        "leapfrog" => Scheme::Leapfrog { mass },
        _ => {
            let valid = "theta, bdf, sdirk, rk, newmark, generalised_alpha or leapfrog";
            return Err(wrong(py, "scheme", word, valid)?);
        }
    })
}
