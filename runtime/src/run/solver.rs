//! The solver of a problem: the one that it names with its settings, or one that fits the form.

use super::RunError;
use crate::solve::{
    CgSettings, Continue, InnerSolver, Linear, NewtonSettings, NonlinearSystem, Progress, Report,
    newton, solve_affine,
};
use crate::vector::Vector;
use fem_dsl::problem::{Argument, Solver};

/// A GMRES cycle of a linear problem; in Newton's method cycles are shorter.
const RESTART: usize = 100;

/// Solves R(u) = 0 from the state `u`, with the solver that was named or the one that suits the form:
/// the report, and the linear iterations in all.
pub fn solve(
    operator: &mut dyn NonlinearSystem,
    u: &mut Vector,
    named: Option<&Solver>,
    linear: bool,
    symmetric: bool,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let settings = Settings { named };
    let rtol = settings.number("rtol", 1e-10)?;
    let atol = settings.number("atol", 0.0)?;
    let jacobi = settings.word("preconditioner")? != Some("none");
    match (named.map_or("", |solver| solver.name.as_str()), linear) {
        ("" | "cg" | "gmres", true) => {
            let name = named.map_or("cg", |solver| solver.name.as_str());
            let defaults = CgSettings::default();
            let max_iterations = settings.count("max_iterations", defaults.max_iterations)?;
            let restart = settings.count("restart", RESTART)?;
            let solver = match (name, symmetric) {
                ("cg", true) => InnerSolver::Cg,
                _ => InnerSolver::Gmres,
            };
            let stop = CgSettings { rtol, atol, max_iterations };
            let linear = Linear { solver, restart, jacobi };
            let report = solve_affine(operator, u, stop, linear, observe)?;
            let iterations = report.iterations;
            Ok((report, iterations))
        }
        (name @ ("cg" | "gmres"), false) => Err(RunError::Setting(format!(
            "`{name}` solves linear forms, and this one is nonlinear\nhelp: use `solver = newton(…);`"
        ))),
        _ => {
            let defaults = NewtonSettings::default();
            let solver = match settings.word("linear")? {
                Some("cg") => InnerSolver::Cg,
                Some("gmres") => InnerSolver::Gmres,
                _ => InnerSolver::Automatic,
            };
            let restart = settings.count("restart", defaults.linear.restart)?;
            let settings = NewtonSettings {
                rtol,
                atol,
                max_iterations: settings.count("max_iterations", defaults.max_iterations)?,
                max_inner: settings.count("max_inner", defaults.max_inner)?,
                linear: Linear { solver, restart, jacobi },
                line_search: settings.word("line_search")? != Some("none"),
                ..defaults
            };
            let report = newton(operator, u, settings, observe, &mut |_| Continue::Yes)?;
            let inner = report.inner_iterations();
            Ok((report.report, inner))
        }
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
}
