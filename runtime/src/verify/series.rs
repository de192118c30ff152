//! One level of a refinement series: solve, and measure the error.
//!
//! The solve starts from the nodal interpolant of the solution. The remaining correction has the size of the
//! discretisation error, so that a moderate tolerance relative to it gives an algebraic error far below.

use super::VerificationProblem;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::operator::functional::{errors, mean, measuring_rule};
use crate::problem::{Context, Requirement, RunError, SolvePlan, solve_planned};
use crate::processes::Reduction;
use crate::solve::{Continue, DirectFallback, InnerSolver, NonlinearSystem, Outcome, Progress};
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::PreconditionerSettings;
use kernels_gen::element::ElementError;
use std::time::Instant;

/// Tolerance relative to R at the interpolated solution.
const RTOL: f64 = 1e-8;
/// Rounding-error level of R, relative to ‖|D| u‖ with the diagonal D of J.
const ROUNDING: f64 = 1e-14;
/// Maximum number of linear iterations.
const ITERATIONS: usize = 20_000;
/// Number of steps in which Newton's method should halve the residual: it starts near the solution. More than its full
/// steps without a line search.
const STALLED: usize = 10;

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
        let plan = self.plan(atol)?;
        context.eliminate(operator);
        if plan.linear.factors_at_each == Some(Requirement::Preferred) {
            context.factorise_whole(operator, &u)?;
        }
        let (mut norms, mut has_stalled) = (Vec::new(), false);
        let mut observe = |progress: Progress| {
            norms.push(progress.residual);
            let before = norms.iter().rev().nth(STALLED).filter(|_| plan.newton.is_some());
            has_stalled = before.is_some_and(|before| progress.residual > 0.5 * before);
            if has_stalled { Continue::No } else { observe(progress) }
        };
        let (mut report, _) =
            solve_planned(operator, context, &mut u, (&plan, 0.0), None, &mut observe)?;
        operator.finish()?;
        if has_stalled && report.outcome == Outcome::Cancelled {
            report.outcome = Outcome::Stagnated;
        }
        let report = report.converged()?;
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

    /// Plans the solve as a run does. With several processes and no named solver, each factorises the whole matrix where
    /// one process would do so, or where J is not symmetric and its factors fit.
    fn plan(&self, atol: f64) -> Result<SolvePlan, RunError> {
        let context = &self.context;
        let named = context.problem.solver.as_ref();
        let mut plan = SolvePlan { rtol: RTOL, atol, strict: false, ..context.plan(named)? };
        let linear = &mut plan.linear;
        // The past of a stage is known on this mesh only.
        if !context.form().rates.is_empty() {
            linear.preconditioner.settings = PreconditionerSettings::Jacobi;
        }
        let factorised = match context.factors_of_one() {
            DirectFallback::First => true,
            DirectFallback::After { .. } => !plan.properties.is_symmetric,
            DirectFallback::Never => false,
        };
        if factorised && named.is_none() {
            (linear.solver, linear.factors) = (InnerSolver::Fgmres, DirectFallback::Never);
            linear.factors_at_each = Some(Requirement::Preferred);
        }
        match &mut plan.newton {
            None => plan.max_iterations = ITERATIONS,
            Some(newton) => (newton.max_inner, newton.load_steps) = (ITERATIONS, 1),
        }
        Ok(plan)
    }

    /// Sets the mean of each field with a mean-value constraint to that of the known solution.
    fn settle(&self, u: &mut [f64]) -> Result<(), RunError> {
        let on = &self.context.on;
        for (field, _) in &self.context.problem.mean {
            set_mean(on, *field, u, &mean(on, *field, &self.known)?)?;
        }
        Ok(())
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

/// Shifts each component of a field to a given mean.
fn set_mean(
    on: &Discretisation,
    field: usize,
    u: &mut [f64],
    wanted: &[f64],
) -> Result<(), ElementError> {
    let found = mean(on, field, u)?;
    for node in u[on.dofs_of(field)].chunks_mut(found.len()) {
        for ((entry, found), wanted) in node.iter_mut().zip(&found).zip(wanted) {
            *entry += wanted - found;
        }
    }
    Ok(())
}
