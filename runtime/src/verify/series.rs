//! One level of a refinement series: solve, and measure the error.
//!
//! The solve starts from the nodal interpolant of the solution. The remaining correction has the size of the
//! discretisation error, so that a moderate tolerance relative to it gives an algebraic error far below.

use super::VerificationProblem;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::operator::functional::{errors, mean, measuring_rule, set_mean};
use crate::problem::{Context, RunError, check_rank};
use crate::processes::Reduction;
use crate::solve::{
    CgSettings, Continue, DirectFallback, InnerSolver, LinearOptions, NewtonOptions,
    NonlinearSystem, Progress, Report, newton, solve_affine,
};
use std::time::Instant;

/// Tolerance relative to R at the interpolated solution.
const RTOL: f64 = 1e-8;
/// Rounding-error level of R, relative to ‖|D| u‖ with the diagonal D of J.
const ROUNDING: f64 = 1e-14;
/// Maximum number of linear iterations.
const ITERATIONS: usize = 20_000;

/// Results on one mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelResult {
    /// Number of cells.
    pub cells: usize,
    /// Cell size relative to the mesh: n^(−1/dim) for n cells.
    pub size: f64,
    /// Number of degrees of freedom.
    pub dofs: usize,
    /// Error of each field, in L2 and in the H1 seminorm.
    pub errors: Vec<(f64, f64)>,
    /// Name of the solver.
    pub solver: &'static str,
    /// Number of iterations; of steps for Newton's method.
    pub iterations: usize,
    /// Seconds of the solve.
    pub seconds: f64,
}

impl VerificationProblem {
    /// Solves the problem from its interpolated solution.
    ///
    /// # Errors
    ///
    /// A solve that fails.
    pub fn solve(
        &self,
        operator: &mut Operator,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<LevelResult, RunError> {
        let start = Instant::now();
        let mut u = self.state(operator);
        let context = &self.context;
        let Context { elements, on, .. } = context;
        let atol = self.rounding(operator, &u)?;
        let report = self.solved(operator, context, &mut u, atol, observe)?;
        operator.finish()?;
        let report = converged(report, context)?;
        let mut u = u.to_vec();
        self.settle(&mut u)?;
        let mut found = vec![(0.0, 0.0); on.fields.len()];
        for (field, exact) in &self.context.problem.exact {
            let rule = measuring_rule(on, elements.rule);
            found[*field] = errors(on, (*field, rule), &u, exact, &self.context.parameters)?;
        }
        Ok(LevelResult {
            cells: on.mesh.cells_in_all(),
            size: (on.mesh.cells_in_all() as f64).powf(-1.0 / on.mesh.dim() as f64),
            dofs: on.dofs_in_all(),
            errors: found,
            solver: report.solver,
            iterations: report.iterations,
            seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Solves from a state with the named linear solver, or a robust default. With several processes, the whole matrix
    /// is factorised redundantly if a serial run would factorise it: first, or after failed iterations.
    fn solved(
        &self,
        operator: &mut Operator,
        context: &Context,
        u: &mut Vector,
        atol: f64,
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        context.eliminate(operator);
        check_rank(operator, context, u)?;
        let named = self.named();
        let apart = self.context.on.mesh.cut().is_some();
        let factors = match named {
            None => context.factors_of_one(),
            Some(InnerSolver::Direct) if apart => DirectFallback::First,
            Some(_) => DirectFallback::Never,
        };
        let suits = context.default_linear();
        let by = |solver| LinearOptions { solver, factors: DirectFallback::Never, ..suits };
        let named = named.filter(|named| *named != InnerSolver::Direct || !apart);
        let linear = named.map_or(suits, by);
        if factors == DirectFallback::First
            && let Some(linear) = context.by_factors(operator, u)?
        {
            return self.once(operator, u, (linear, ITERATIONS, atol), observe);
        }
        let DirectFallback::After { iterations } = factors else {
            return self.once(operator, u, (linear, ITERATIONS, atol), observe);
        };
        let start = u.clone();
        let most = iterations.min(ITERATIONS);
        let report = self.once(operator, u, (linear, most, atol), observe)?;
        if report.outcome.is_success() {
            return Ok(report);
        }
        u.copy_from(&start);
        match context.by_factors(operator, u)? {
            Some(linear) => self.once(operator, u, (linear, ITERATIONS, atol), observe),
            None => Ok(report),
        }
    }

    /// Solves from a state with one linear solver, a maximum number of iterations, and a relative or absolute
    /// tolerance.
    fn once(
        &self,
        operator: &mut Operator,
        u: &mut Vector,
        (linear, iterations, atol): (LinearOptions, usize, f64),
        observe: &mut dyn FnMut(Progress) -> Continue,
    ) -> Result<Report, RunError> {
        let mut integrals = self.context.form().integrals.iter();
        if integrals.all(|integral| integral.linear) {
            let max_iterations = iterations;
            let stop = CgSettings { rtol: RTOL, atol, max_iterations, strict: false };
            return Ok(solve_affine(operator, u, stop, linear, observe)?);
        }
        let defaults = NewtonOptions::default();
        let settings =
            NewtonOptions { rtol: RTOL, atol, max_inner: ITERATIONS, linear, ..defaults };
        // With a better solver as fallback, one linear solve at the limit is enough.
        let inner = &mut |progress: Progress| match progress.iteration < iterations {
            true => Continue::Yes,
            false if iterations == ITERATIONS => Continue::Yes,
            false => Continue::No,
        };
        Ok(newton(operator, u, settings, observe, inner)?)
    }

    /// Sets the mean of each field with a mean-value constraint to that of the known solution.
    fn settle(&self, u: &mut [f64]) -> Result<(), RunError> {
        let on = &self.context.on;
        for (field, _) in &self.context.problem.mean {
            set_mean(on, *field, u, &mean(on, *field, &self.known)?)?;
        }
        Ok(())
    }

    /// Returns the named linear solver.
    fn named(&self) -> Option<InnerSolver> {
        self.context.problem.solver.as_ref()?.method().map(InnerSolver::from)
    }

    /// Estimates the norm of R(u) at the rounding-error level.
    fn rounding(&self, operator: &mut Operator, u: &Vector) -> Result<f64, RunError> {
        let mut d = u.like();
        operator.linearise(u)?;
        operator.diagonal(&mut d)?;
        d.multiply(u);
        Ok(ROUNDING * d.norm())
    }

    /// Returns the largest value of each field of the solution.
    pub fn sizes(&self) -> Vec<f64> {
        let on = &self.context.on;
        let largest = |field: usize| {
            let values = &self.known[on.dofs_of(field)];
            values.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
        };
        let mut all: Vec<f64> = (0..on.fields.len()).map(largest).collect();
        on.mesh.reduce_in_all(Reduction::Largest, &mut all);
        all
    }
}

fn converged(report: Report, context: &Context) -> Result<Report, RunError> {
    if let Some(error) = context.failed(&report) {
        return Err(error);
    }
    Ok(report.converged()?)
}
