//! The solver of a problem: the one that it names with its settings, or one that fits the form.
//!
//! Left out, a linear form with a symmetric Jacobian is solved by CG, which leaves it to GMRES where it meets negative
//! curvature; another linear form by GMRES; a nonlinear one by Newton's method with these. A form in which a field has
//! no term with itself (a pressure) is indefinite, and Jacobi's preconditioner serves it badly: it is solved by the
//! factors of its matrix, or by MINRES or GMRES where it is large.

use super::{Place, RunError};
use crate::coupling::Coupling;
use crate::discretisation::Discretisation;
use crate::expression::Parameters;
use crate::solve::{
    CgSettings, Continue, InnerSolver, Linear, LinearOperator, Loaded, NewtonSettings,
    NonlinearSystem, OperatorError, Outcome, Progress, Report, newton, newton_in_load_steps,
    solve_affine,
};
use crate::vector::Vector;
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Argument, Solver};
use std::ops::Range;

/// A GMRES cycle of a linear problem; in Newton's method cycles are shorter.
const RESTART: usize = 100;

/// Unknowns up to which an indefinite matrix is factorised unasked.
const FACTORISED: usize = 50_000;

/// What is solved.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The form.
    pub form: &'a PointForm,
    /// What it is discretised on.
    pub on: &'a Discretisation,
    /// Time and parameters.
    pub parameters: &'a Parameters,
}

impl System<'_> {
    /// Whether the residual is affine in u.
    pub fn is_linear(&self) -> bool {
        self.form.integrals.iter().all(|integral| integral.linear)
    }

    fn symmetric(&self) -> bool {
        self.form.integrals.iter().all(|integral| integral.symmetric)
    }

    /// Whether some field has no term with itself.
    fn saddle(&self) -> bool {
        let coefficients = || self.form.integrals.iter().flat_map(|integral| &integral.jacobian);
        (0..self.form.fields.len()).any(|field| {
            !coefficients().any(|entry| entry.test.field == field && entry.trial.field == field)
        })
    }

    /// The linear solver where none is named.
    fn fitting(&self) -> InnerSolver {
        match (self.saddle(), self.on.n_dofs() <= FACTORISED, self.symmetric()) {
            (false, ..) => InnerSolver::Automatic,
            (true, true, _) => InnerSolver::Direct,
            (true, false, true) => InnerSolver::Minres,
            (true, false, false) => InnerSolver::Gmres,
        }
    }

    /// The error that nothing fixes an unknown.
    pub fn singular(&self, unknown: usize) -> RunError {
        let (field, name) = self.named(unknown);
        RunError::Singular { field, name }
    }

    /// The field of an unknown, and its component where it has several; and the field alone.
    fn named(&self, unknown: usize) -> (String, String) {
        let mut end = 0;
        for (field, of) in self.form.fields.iter().zip(&self.on.fields) {
            let start = end;
            end += of.space.n_dofs();
            if unknown < end {
                let components = of.space.components();
                let component = (unknown - start) % components;
                let whole = format!("`{}`", field.name);
                return match components {
                    1 => (whole, field.name.clone()),
                    _ => (format!("component {component} of {whole}"), field.name.clone()),
                };
            }
        }
        (format!("unknown {unknown}"), String::from("u"))
    }
}

/// A linear solver that hardly ever fails: the one where none is named, but factors for an unsymmetric matrix that is
/// not too large.
pub fn suits(system: System<'_>) -> InnerSolver {
    match system.fitting() {
        InnerSolver::Automatic if !system.symmetric() && system.on.n_dofs() <= FACTORISED => {
            InnerSolver::Direct
        }
        fitting => fitting,
    }
}

/// Solves R(u) = 0 from the state `u`, with the solver that was named or the one that suits the form:
/// the report, and the linear iterations in all.
///
/// # Errors
///
/// Settings that do not fit, a singular matrix, a load step that does not converge. Whether the solve as a whole has
/// converged stands in the report.
pub fn solve(
    place: &mut Place,
    system: System<'_>,
    u: &mut Vector,
    named: Option<&Solver>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let settings = Settings { named };
    let name = named.map_or("", |solver| solver.name.as_str());
    let (report, iterations) = match (name, system.is_linear()) {
        ("newton", _) | ("", false) => solve_by_newton(place, system, u, settings, observe)?,
        (name, true) => {
            let report = solve_linear(place, system, u, name, settings, observe)?;
            let iterations = report.iterations;
            (report, iterations)
        }
        (name, false) => {
            return Err(RunError::Setting(format!(
                "`{name}` solves linear forms, and this one is nonlinear\nhelp: use `solver = newton(…);`"
            )));
        }
    };
    if let Outcome::Singular { unknown } = report.outcome {
        return Err(system.singular(unknown));
    }
    Ok((report, iterations))
}

fn solve_linear(
    place: &mut Place,
    system: System<'_>,
    u: &mut Vector,
    name: &str,
    settings: Settings<'_>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Report, RunError> {
    let solver = InnerSolver::named(name).unwrap_or_else(|| system.fitting());
    let defaults = CgSettings::default();
    let stop = CgSettings {
        rtol: settings.number("rtol", defaults.rtol)?,
        atol: settings.number("atol", defaults.atol)?,
        max_iterations: settings.count("max_iterations", defaults.max_iterations)?,
    };
    let restart = settings.count("restart", RESTART)?;
    let linear = Linear { solver, restart, jacobi: settings.jacobi()? };
    Ok(solve_affine(place.system(), u, stop, linear, observe)?)
}

fn solve_by_newton(
    place: &mut Place,
    system: System<'_>,
    u: &mut Vector,
    settings: Settings<'_>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let defaults = NewtonSettings::default();
    let named = settings.word("linear")?.and_then(InnerSolver::named);
    let solver = named.unwrap_or_else(|| system.fitting());
    let restart = settings.count("restart", defaults.linear.restart)?;
    let newton_settings = NewtonSettings {
        rtol: settings.number("rtol", defaults.rtol)?,
        atol: settings.number("atol", defaults.atol)?,
        max_iterations: settings.count("max_iterations", defaults.max_iterations)?,
        max_inner: settings.count("max_inner", defaults.max_inner)?,
        linear: Linear { solver, restart, jacobi: settings.jacobi()? },
        line_search: settings.word("line_search")? != Some("none"),
        ..defaults
    };
    let inner = &mut |_| Continue::Yes;
    let steps = settings.count("steps", 1)?;
    if steps == 1 {
        let report = newton(place.system(), u, newton_settings, observe, inner)?;
        let inner = report.inner_iterations();
        return Ok((report.report, inner));
    }
    let boundary = place.initial()?;
    let params = system.parameters.values.clone();
    let grown = match settings.word("load")? {
        None => 0..0,
        Some(name) => {
            let found = system.form.params.iter().position(|param| param.name == name);
            let missing = || RunError::Setting(format!("there is no parameter `{name}` to load"));
            system.parameters.range(found.ok_or_else(missing)?)
        }
    };
    let mut ramp = Ramp { place, params, grown };
    let solved =
        newton_in_load_steps(&mut ramp, u, &boundary, steps, newton_settings, observe, inner)?;
    let inner = solved.newton.inner_iterations();
    let report = solved.newton.report;
    let singular = matches!(report.outcome, Outcome::Singular { .. } | Outcome::Cancelled);
    if solved.solved == steps || singular {
        return Ok((report, inner));
    }
    match report.converged() {
        Ok(report) => Ok((report, inner)),
        Err(source) => Err(RunError::LoadStep { step: solved.solved + 1, steps, source }),
    }
}

/// A form whose parameter grows with the load.
struct Ramp<'a> {
    place: &'a mut Place,
    /// Time and parameters at full load.
    params: Vec<f64>,
    /// Those that grow.
    grown: Range<usize>,
}

impl Loaded for Ramp<'_> {
    fn set_load(&mut self, s: f64) -> Result<(), OperatorError> {
        if self.grown.is_empty() {
            return Ok(());
        }
        let mut params = self.params.clone();
        params[self.grown.clone()].iter_mut().for_each(|value| *value *= s);
        let set = self.place.set_params(&params);
        set.map_err(|error| OperatorError::new(error.to_string()))
    }
}

impl NonlinearSystem for Ramp<'_> {
    fn size(&self) -> usize {
        self.place.equations().size()
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.place.equations().residual(u, r)
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.place.system().linearise(u)
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self.place.equations().jacobian()
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.place.equations().diagonal(diagonal)
    }

    fn symmetric(&self) -> bool {
        self.place.equations().symmetric()
    }

    fn coupling(&self) -> Option<Coupling> {
        self.place.equations().coupling()
    }
}

/// The settings of a solver, each with a default.
#[derive(Clone, Copy)]
struct Settings<'a> {
    named: Option<&'a Solver>,
}

impl<'a> Settings<'a> {
    fn find(self, key: &str) -> Option<&'a Argument> {
        self.named.and_then(|solver| solver.arguments.get(key))
    }

    fn number(self, key: &str, default: f64) -> Result<f64, RunError> {
        match self.find(key) {
            None => Ok(default),
            Some(Argument::Number(value)) => Ok(*value),
            Some(_) => Err(RunError::Setting(format!("the setting `{key}` should be a number"))),
        }
    }

    fn count(self, key: &str, default: usize) -> Result<usize, RunError> {
        Ok(self.number(key, default as f64)? as usize)
    }

    fn word(self, key: &str) -> Result<Option<&'a str>, RunError> {
        match self.find(key) {
            None => Ok(None),
            Some(Argument::Word(word)) => Ok(Some(word)),
            Some(_) => Err(RunError::Setting(format!("the setting `{key}` should be a word"))),
        }
    }

    fn jacobi(self) -> Result<bool, RunError> {
        Ok(self.word("preconditioner")? != Some("none"))
    }
}
