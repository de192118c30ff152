//! One level of a refinement series: solve, and measure the error.
//!
//! The solve starts at the solution interpolated at the nodes. What is left to solve for is of the size of the error
//! itself, and a moderate tolerance, relative to that, leaves an algebraic error far below it.

use super::Trial;
use crate::algebra::vector::Vector;
use crate::kernels::compile::Target;
use crate::operator::Operator;
use crate::operator::functional::{errors, mean, measuring_rule, set_mean};
use crate::problem::{Levels, OfProblem, RunError, Setup, System, check_rank};
use crate::processes::Reduce;
use crate::solve::{
    CgSettings, Continue, Factors, InnerSolver, Linear, NewtonSettings, NonlinearSystem, Progress,
    Report, newton, solve_affine,
};
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
        let prescribed = OfProblem { problem: self.problem, elements, files };
        let (form, prescribed) = (&self.problem.form, &prescribed);
        let levels = Some(Levels { elements, target, device: None });
        let system = System { form, on, parameters, prescribed, rule: elements.rule, levels };
        let atol = self.rounding(operator, &u)?;
        let report = self.solved(operator, system, &mut u, atol, observe)?;
        operator.finish()?;
        let report = converged(report, system)?;
        let mut u = u.to_vec();
        self.settle(&mut u)?;
        let mut found = vec![(0.0, 0.0); on.fields.len()];
        for (field, exact) in &self.problem.exact {
            let rule = measuring_rule(on, elements.rule);
            found[*field] = errors(on, (*field, rule), &u, exact, &self.setup.parameters)?;
        }
        Ok(Level {
            cells: on.mesh.cells_in_all(),
            size: (on.mesh.cells_in_all() as f64).powf(-1.0 / on.mesh.dim() as f64),
            dofs: on.dofs_in_all(),
            errors: found,
            solver: report.solver,
            iterations: report.iterations,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Solves from a state by the linear solver that is named, or by one that surely solves. Several processes, which have the matrix
    /// in parts, factorise the whole of it where one would: first, or where iterations do not get there.
    fn solved(
        &self,
        operator: &mut Operator,
        system: System<'_>,
        u: &mut Vector,
        atol: f64,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        system.eliminate(operator);
        check_rank(operator, system, u)?;
        let named = self.named();
        let apart = self.setup.on.mesh.cut().is_some();
        let factors = match named {
            None => system.factors_of_one(),
            Some(InnerSolver::Direct) if apart => Factors::First,
            Some(_) => Factors::Never,
        };
        let suits = system.default_linear(operator);
        let by = |solver| Linear { solver, factors: Factors::Never, ..suits };
        let named = named.filter(|named| *named != InnerSolver::Direct || !apart);
        let linear = named.map_or(suits, by);
        if factors == Factors::First
            && let Some(linear) = system.by_factors(operator, u)?
        {
            return self.once(operator, u, (linear, ITERATIONS, atol), observe);
        }
        let Factors::After { iterations } = factors else {
            return self.once(operator, u, (linear, ITERATIONS, atol), observe);
        };
        let start = u.clone();
        let most = iterations.min(ITERATIONS);
        let report = self.once(operator, u, (linear, most, atol), observe)?;
        if report.outcome.is_success() {
            return Ok(report);
        }
        u.copy_from(&start);
        match system.by_factors(operator, u)? {
            Some(linear) => self.once(operator, u, (linear, ITERATIONS, atol), observe),
            None => Ok(report),
        }
    }

    /// Solves from a state by one linear solver, in so many iterations each time, to the tolerance or a residual of this size.
    fn once(
        &self,
        operator: &mut Operator,
        u: &mut Vector,
        (linear, iterations, atol): (Linear, usize, f64),
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        let mut integrals = self.problem.form.integrals.iter();
        if integrals.all(|integral| integral.linear) {
            let max_iterations = iterations;
            let stop = CgSettings { rtol: RTOL, atol, max_iterations, strict: false };
            return Ok(solve_affine(operator, u, stop, linear, observe)?);
        }
        let defaults = NewtonSettings::default();
        let settings =
            NewtonSettings { rtol: RTOL, atol, max_inner: ITERATIONS, linear, ..defaults };
        // Where there is something better, one linear solve without end is enough.
        let inner = &mut |progress: Progress| match progress.iteration < iterations {
            true => Continue::Yes,
            false if iterations == ITERATIONS => Continue::Yes,
            false => Continue::No,
        };
        Ok(newton(operator, u, settings, observe, inner)?)
    }

    /// Gives each field that is known up to a constant the mean of the known solution.
    fn settle(&self, u: &mut [f64]) -> Result<(), RunError> {
        let on = &self.setup.on;
        for (field, _) in &self.problem.mean {
            set_mean(on, *field, u, &mean(on, *field, &self.known)?)?;
        }
        Ok(())
    }

    /// The linear solver that is named.
    fn named(&self) -> Option<InnerSolver> {
        self.problem.solver.as_ref()?.method().map(InnerSolver::from)
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
        let mut all: Vec<f64> = (0..on.fields.len()).map(largest).collect();
        on.mesh.reduce_in_all(Reduce::Largest, &mut all);
        all
    }
}

fn converged(report: Report, system: System<'_>) -> Result<Report, RunError> {
    if let Some(error) = system.failed(&report) {
        return Err(error);
    }
    Ok(report.converged()?)
}
