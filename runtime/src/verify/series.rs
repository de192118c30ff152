//! One level of a refinement series: solve, and measure the error.
//!
//! The solve starts at the solution interpolated at the nodes. What is left to solve for is of the size of the error
//! itself, and a moderate tolerance, relative to that, leaves an algebraic error far below it.

use super::Trial;
use crate::compile::Target;
use crate::functional::{errors, mean, set_mean};
use crate::operator::Operator;
use crate::run::{Balance, OfProblem, RunError, Setup, System, suits};
use crate::solve::{
    CgSettings, Continue, Factors, InnerSolver, Linear, NewtonSettings, NonlinearSystem, Outcome,
    Progress, Report, newton, solve_affine,
};
use crate::vector::Vector;
use std::time::Instant;

/// The tolerance relative to R at the interpolated solution.
const RTOL: f64 = 1e-8;
/// The part of ‖|D| u‖, with the diagonal D of J, that is rounding.
const ROUNDING: f64 = 1e-14;
/// Iterations of a linear solver.
const ITERATIONS: usize = 20_000;

/// What was found on one mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Cells of the mesh.
    pub cells: usize,
    /// The size of cells, that of the mesh being 1: n^(−1/dim) for n of them.
    pub size: f64,
    /// Unknowns.
    pub dofs: usize,
    /// The error of each field, in L2 and in the seminorm of H1.
    pub errors: Vec<(f64, f64)>,
    /// The solver.
    pub solver: &'static str,
    /// Its iterations; for Newton's method its steps.
    pub iterations: usize,
    /// Seconds of the solve.
    pub seconds: f64,
}

impl Trial<'_> {
    /// Solves the problem from its interpolated solution; `target` is that of `operator`.
    ///
    /// # Errors
    ///
    /// A solve that fails.
    pub fn solve(
        &self,
        operator: &mut Operator,
        target: &Target,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Level, RunError> {
        let start = Instant::now();
        let mut u = self.state(operator);
        let Setup { elements, on, parameters, files } = &self.setup;
        if let Some(balance) = Balance::new(self.problem, elements, on, &parameters.values, target)?
        {
            balance.put(operator);
        }
        let prescribed = OfProblem { problem: self.problem, elements, files };
        let (form, prescribed) = (&self.problem.form, &prescribed);
        let system = System { form, on, parameters, prescribed, rule: elements.rule, levels: None };
        let atol = self.rounding(operator, &u)?;
        let linear = self.linear(system, operator);
        let report = if system.is_linear() {
            let max_iterations = ITERATIONS;
            let stop = CgSettings { rtol: RTOL, atol, max_iterations, strict: false };
            solve_affine(operator, &mut u, stop, linear, observe)?
        } else {
            let settings = NewtonSettings {
                rtol: RTOL,
                atol,
                max_inner: ITERATIONS,
                linear,
                ..NewtonSettings::default()
            };
            let inner = &mut |_| Continue::Yes;
            newton(operator, &mut u, settings, observe, inner)?.report
        };
        operator.finish()?;
        let report = converged(report, system)?;
        let mut u = u.to_vec();
        self.settle(&mut u)?;
        let mut found = vec![(0.0, 0.0); on.fields.len()];
        for (field, exact) in &self.problem.exact {
            found[*field] = errors(on, *field, &u, exact, &self.setup.parameters)?;
        }
        Ok(Level {
            cells: on.mesh.n_cells(),
            size: (on.mesh.n_cells() as f64).powf(-1.0 / on.mesh.dim() as f64),
            dofs: on.n_dofs(),
            errors: found,
            solver: report.solver,
            iterations: report.iterations,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Gives each field that is known up to a constant the mean of the known solution.
    fn settle(&self, u: &mut [f64]) -> Result<(), RunError> {
        let on = &self.setup.on;
        for (field, _) in &self.problem.mean {
            set_mean(on, *field, u, &mean(on, *field, &self.known)?)?;
        }
        Ok(())
    }

    /// The linear solver: the one that is named, or one that surely solves.
    fn linear(&self, system: System<'_>, operator: &Operator) -> Linear {
        let named = self.problem.solver.as_ref().and_then(|solver| {
            let inner = solver.arguments.get("linear");
            let inner = inner.and_then(fem_dsl::problem::Argument::word);
            InnerSolver::named(inner.unwrap_or(&solver.name))
        });
        let suits = suits(system, operator);
        named.map_or(suits, |solver| Linear { solver, factors: Factors::Never, ..suits })
    }

    /// The norm of R(u) that rounding alone may leave.
    fn rounding(&self, operator: &mut Operator, u: &Vector) -> Result<f64, RunError> {
        let mut d = u.like();
        operator.linearise(u)?;
        operator.diagonal(&mut d)?;
        d.multiply(u);
        Ok(ROUNDING * d.norm())
    }

    /// The size of each field of the solution: its largest value.
    pub fn sizes(&self) -> Vec<f64> {
        let on = &self.setup.on;
        let largest = |field: usize| {
            let values = &self.known[on.dofs_of(field)];
            values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
        };
        (0..on.fields.len()).map(largest).collect()
    }
}

fn converged(report: Report, system: System<'_>) -> Result<Report, RunError> {
    if let Outcome::Singular { unknown, condition } = report.outcome {
        return Err(system.singular(unknown, condition));
    }
    Ok(report.converged()?)
}
