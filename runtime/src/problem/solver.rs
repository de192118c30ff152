//! Execution of a [`SolvePlan`]: an operator, its system and a start → the solution and a report.

mod along_path;
mod bounded;
mod numbers;
mod ramp;
mod redundant_direct;
mod sequence;
mod slow_convergence;

use super::collective_errors::agree_on_error;
use super::context::Context;
use super::local_dofs::local;
use super::mean::{Compatibility, check_constants, not_constant};
use super::not_finite::{NonFiniteOrigin, cause};
use super::plan::{
    LinearPlan, NewtonPlan, PreconditionerPlan, Requirement, SolvePlan, plan_linear,
};
use super::preconditioner::builder;
use super::reduced_integration::check_rank;
use super::singular::SingularMatrix;
use super::{ConvergenceError, IllPosedError, RunError};
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::problem::plan::HierarchySettings;
use crate::solve::{
    CgSettings, Continue, LinearOptions, LoadableSystem, Newton, NewtonOptions, NonlinearSystem,
    Outcome, Preconditioning, Progress, Report, SolveError, newton, newton_in_load_steps,
    solve_affine,
};
use crate::space::constraint::Constraints;
use crate::support::timers::{in_step, step};
use fem_dsl::point::{Coefficient, Input, Node, Part};
use fem_dsl::problem::{PreconditionerSettings, SolverSettings, UnstablePair, unstable};
use std::sync::Arc;

use ramp::{LoadQuantity, LoadedSystem, ParameterSweep};
pub(super) use redundant_direct::UNKNOWN_DATA;
pub(super) use sequence::LinearSolveSequence;

impl Context {
    /// Returns whether the residual is affine in u.
    pub fn is_linear(&self) -> bool {
        self.form().integrals.iter().all(|integral| integral.linear)
    }

    /// Makes an operator eliminate the cell-local fields.
    pub(crate) fn eliminate(&self, operator: &mut Operator) {
        if NonlinearSystem::local(operator).is_none() {
            operator.eliminate(local(self.form(), &self.on).map(Arc::new));
        }
    }

    /// The linear solver where none is named, with the diagonal as its preconditioner.
    pub(crate) fn default_linear(&self) -> LinearOptions {
        plan_linear(&self.properties(), None).with(Preconditioning::Jacobi)
    }

    /// Returns a pair of fields known to violate the inf-sup condition.
    pub fn unstable(&self) -> Option<UnstablePair> {
        unstable(self.form(), self.parameters.degree)
    }

    /// Returns the error of an outcome that names a field or degree of freedom.
    pub fn failed(&self, report: &Report) -> Option<RunError> {
        match report.outcome {
            Outcome::Singular { unknown, condition } => Some(self.singular(unknown, condition)),
            Outcome::Unsolved { field, .. } => {
                let field = Some(format!("`{}`", self.form().fields[field].name).into());
                let error = report.clone().converged().err()?;
                Some(SolveError { field, ..error }.into())
            }
            Outcome::Indefinite { .. } => {
                let field = Some(format!("penalty({})", self.penalised()?).into());
                let error = report.clone().converged().err()?;
                Some(SolveError { field, ..error }.into())
            }
            _ => None,
        }
    }

    /// Returns the name of a field whose `penalty` the form reads.
    fn penalised(&self) -> Option<&str> {
        let mut nodes = self.form().integrals.iter().flat_map(|integral| integral.graph.nodes());
        let field = nodes.find_map(|node| match node {
            Node::Input(Input::PenaltyFactor(field)) => Some(*field),
            _ => None,
        })?;
        Some(&self.form().fields[field].name)
    }

    /// Returns the error of a numerically singular matrix, with an estimate of its condition number.
    pub fn singular(&self, unknown: usize, condition: f64) -> RunError {
        if let Some(pair) = self.unstable() {
            return IllPosedError::Unstable(pair).into();
        }
        let (place, field, name) = self.named(unknown);
        let on = &self.on;
        let dofs = field.map_or(0..0, |field| on.dofs_of(field));
        let is_constrained = on.conditions().any(|(dof, _)| dofs.contains(&dof));
        let mut entries = self.form().integrals.iter().flat_map(|integral| &integral.jacobian);
        let value =
            |term: &Coefficient| Some(term.trial.field) == field && term.trial.part == Part::Value;
        let read = entries.any(value);
        let free = !is_constrained && !read;
        IllPosedError::Singular(SingularMatrix { place, name, condition, is_constrained, free })
            .into()
    }

    /// Returns the field of a degree of freedom with its component in words, the field's index, and its name.
    fn named(&self, unknown: usize) -> (String, Option<usize>, String) {
        let mut end = 0;
        for (number, (field, of)) in self.form().fields.iter().zip(&self.on.fields).enumerate() {
            let start = end;
            end += of.space.n_dofs();
            if unknown < end {
                let components = of.space.components();
                let component = (unknown - start) % components;
                let whole = format!("`{}`", field.name);
                let place = match components {
                    1 => whole,
                    _ => format!("component {component} of {whole}"),
                };
                return (place, Some(number), field.name.clone());
            }
        }
        (format!("unknown {unknown}"), None, String::from("u"))
    }
}

/// Solves R(u) = 0 from the state `u`, whose constrained entries may have any value, with the named solver or the one that
/// suits the form. Returns the report and the linear iterations in all.
///
/// # Errors
///
/// Settings that do not fit, a singular matrix, a load step that does not converge. The report says whether the solve as a
/// whole has converged.
pub fn solve(
    operator: &mut Operator,
    context: &Context,
    u: &mut Vector,
    named: Option<&SolverSettings>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let plan = context.plan(named)?;
    solve_planned(operator, context, u, (&plan, 0.0), None, observe)
}

/// Solves by a plan, where a residual of the size of `floor` times the relative tolerance is small enough. `kept` is the
/// state of Newton's method from solve to solve through time.
pub(crate) fn solve_planned(
    operator: &mut Operator,
    context: &Context,
    u: &mut Vector,
    (plan, floor): (&SolvePlan, f64),
    kept: Option<&mut Option<Newton>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    operator.impose(u)?;
    in_step("local fields", || context.eliminate(operator));
    if operator.number_values().is_some() {
        return numbers::solve(operator, context, u, (plan, floor), observe);
    }
    // In time integration the matrix also depends on the mass and the step size.
    let checking = step("compatibility");
    let balanced = context.balance(operator, u)?;
    let rank = if kept.is_none() { check_rank(operator, context, u)? } else { None };
    let compatibility = Compatibility::of(operator, context)?;
    drop(checking);
    let (mut report, iterations) = match &plan.newton {
        _ if !context.problem.bounds.is_empty() => {
            bounded::solve_bounded(operator, context, u, (plan, floor), observe)?
        }
        Some(newton) => {
            let by = (plan, newton, floor);
            solve_by_newton(operator, context, u, by, kept, observe)?
        }
        None => {
            let report = solve_linear(operator, context, u, (plan, floor), observe)?;
            let iterations = report.iterations;
            (report, iterations)
        }
    };
    if let Some(error) = context.failed(&report) {
        return Err(error);
    }
    if report.outcome == Outcome::NotFinite {
        return Err(not_finite(operator, context, u, &report));
    }
    report.notes.extend(balanced);
    report.notes.extend(rank);
    if let Some(error) = not_constant(operator, context, &report) {
        return Err(error);
    }
    if report.outcome.is_success() {
        let _checking = step("compatibility");
        if !context.is_linear() {
            check_constants(operator, context, u)?;
        }
        report.notes.extend(compatibility.settle(operator, context, u)?);
    }
    report.notes.extend(context.unstable().map(|pair| format!("{pair}; {}", pair.remedy())));
    if operator.is_on_device() && plan.reason.is_some() && report.solver == "direct" {
        report.notes.push("the matrix was factorised on the processor".to_owned());
    }
    Ok((report, iterations))
}

/// Returns the error of a solve that met a number that is not finite, with its cause.
fn not_finite(operator: &mut Operator, context: &Context, u: &Vector, report: &Report) -> RunError {
    let (solver, iterations) = (report.solver, report.iterations);
    let error = |cause| RunError::from(ConvergenceError::NotFinite { solver, iterations, cause });
    // Only one process may have found the point.
    let found = cause(context, operator, u).and_then(|cause| match cause {
        NonFiniteOrigin::Form(_) => Err(error(cause)),
        NonFiniteOrigin::Solver => Ok(()),
    });
    agree_on_error(&context.on.mesh, found).err().unwrap_or_else(|| error(NonFiniteOrigin::Solver))
}

impl SolvePlan {
    /// The stopping criterion of a linear solve, where a residual of the size of `floor` was large elsewhere.
    fn stop(&self, floor: f64) -> CgSettings {
        let Self { rtol, atol, max_iterations, strict, .. } = *self;
        CgSettings { rtol, atol: atol.max(rtol * floor), max_iterations, strict }
    }
}

fn solve_linear(
    operator: &mut Operator,
    context: &Context,
    u: &mut Vector,
    (plan, floor): (&SolvePlan, f64),
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Report, RunError> {
    let (preconditioning, note) = precondition(operator, context, &plan.linear)?;
    let linear = plan.linear.with(preconditioning);
    let mut report = solve_affine(operator, u, plan.stop(floor), linear, observe)?;
    report.notes.extend(note);
    let hierarchy = HierarchySettings::of(&plan.linear.preconditioner.settings);
    if preconditioning == Preconditioning::Approximation && hierarchy.is_some() {
        let kept = operator.approximation().is_some();
        report.notes.extend(slow_convergence::diagnose(context, u, &report, kept)?);
    }
    Ok(report)
}

/// Returns the settings of Newton's method of a plan.
fn newton_options(
    (plan, by, floor): (&SolvePlan, &NewtonPlan, f64),
    preconditioning: Preconditioning,
) -> NewtonOptions {
    let CgSettings { rtol, atol, max_iterations, strict } = plan.stop(floor);
    NewtonOptions {
        rtol,
        atol,
        max_iterations,
        max_inner: by.max_inner,
        linear: plan.linear.with(preconditioning),
        line_search: by.line_search,
        forcing: by.forcing,
        full_steps: by.full_steps,
        switches: plan.properties.has_switches,
        strict,
    }
}

fn solve_by_newton(
    operator: &mut Operator,
    context: &Context,
    u: &mut Vector,
    (plan, by, floor): (&SolvePlan, &NewtonPlan, f64),
    kept: Option<&mut Option<Newton>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let (preconditioning, note) = precondition(operator, context, &plan.linear)?;
    let newton_settings = newton_options((plan, by, floor), preconditioning);
    let inner = &mut |_| Continue::Yes;
    let steps = by.load_steps;
    let load = match by.load.as_deref() {
        None => LoadQuantity::Everything { boundary: operator.initial()? },
        Some(name) => {
            let found = context.form().params.iter().position(|param| param.name == name);
            let missing = || RunError::Setting(format!("there is no parameter `{name}` to load"));
            LoadQuantity::Param(found.ok_or_else(missing)?)
        }
    };
    if let Some(options) = by.arc_length {
        let LoadQuantity::Param(param) = load else {
            return Err(RunError::Setting("a path by arc length needs `load`".to_owned()));
        };
        let at = (operator, context);
        let mut report = along_path::solve(at, u, (param, options), newton_settings, observe)?;
        let iterations = report.iterations;
        report.notes.extend(note);
        return Ok((report, iterations));
    }
    // A linear form is solved at once: its solution does not depend on the load path. With load steps, each tangent
    // predictor would solve it, and no relative tolerance could be reached from there.
    let at_once = context.is_linear() && steps > 1;
    if steps == 1 || at_once {
        // Through time a shorter step helps.
        let may_sweep = kept.is_none() && by.may_sweep;
        let start = (may_sweep && !context.is_linear()).then(|| u.clone());
        let mut report = match kept {
            Some(kept) => {
                let kept = kept.get_or_insert_with(|| Newton::new(u, newton_settings.linear));
                kept.solve(operator, u, newton_settings, observe, inner)?
            }
            None => newton(operator, u, newton_settings, observe, inner)?,
        };
        if let Some(start) = start.filter(|_| report.outcome.may_sweep())
            && let Some(sweep) = ParameterSweep::of(operator, context, &start)?
        {
            let start = (start, report);
            let at = (&mut *operator, context, newton_settings);
            report = sweep.solve(at, start, u, observe)?;
        }
        let inner = report.inner_iterations();
        report.notes.extend(note);
        if at_once {
            let note = "the form is linear, and was solved at once: load steps change nothing";
            report.notes.push(note.to_owned());
        }
        return Ok((report, inner));
    }
    let mut ramp = LoadedSystem { operator, context, load, at: 1.0, failed: None };
    let solved = newton_in_load_steps(&mut ramp, u, steps, newton_settings, observe, inner);
    let cause = match &solved {
        Ok(solved) if solved.newton.outcome == Outcome::NotFinite => {
            let context = context.with_parameters(ramp.parameters());
            Some(not_finite(ramp.operator, &context, u, &solved.newton))
        }
        _ => None,
    };
    // Restores the full load, even after a failure.
    let failed = ramp.failed.take();
    let restored = ramp.set_load(1.0, &mut u.like());
    if let Some(error) = failed.or(cause) {
        return Err(error);
    }
    let solved = solved?;
    restored?;
    let inner = solved.newton.inner_iterations();
    let mut report = solved.newton;
    report.notes.extend(note);
    if !solved.halved.is_empty() {
        let halved: Vec<String> = solved.halved.iter().map(usize::to_string).collect();
        let (s, were) = if halved.len() == 1 { ("", "was") } else { ("s", "were") };
        let halved = halved.join(", ");
        report.notes.push(format!("load step{s} {halved} of {steps} {were} halved"));
    }
    let singular = matches!(report.outcome, Outcome::Singular { .. } | Outcome::Cancelled);
    if solved.solved == steps || singular {
        return Ok((report, inner));
    }
    match report.converged() {
        Ok(report) => Ok((report, inner)),
        Err(source) => {
            let step = solved.solved + 1;
            Err(ConvergenceError::LoadStep { step, steps, source }.into())
        }
    }
}

/// Concatenates the condition values in the order of [`crate::space::discretisation::Discretisation::conditions`], then
/// those of oblique conditions, three per node.
pub fn values(constraints: &[Constraints]) -> Vec<f64> {
    let own = constraints.iter().flat_map(|of| of.iter().map(|(_, value)| value));
    let oblique = constraints.iter().flat_map(|of| of.oblique()).flat_map(|oblique| oblique.value);
    own.chain(oblique).collect()
}

/// Makes the preconditioner of a plan, unless the operator has one of an earlier solve with the same data. Returns what
/// preconditions, and a note where that is not what was planned.
fn precondition(
    operator: &mut Operator,
    context: &Context,
    plan: &LinearPlan,
) -> Result<(Preconditioning, Option<String>), RunError> {
    let _setting_up = step("preconditioner");
    if context.factorise_at_each(operator, plan)? {
        return Ok((Preconditioning::Approximation, None));
    }
    let PreconditionerPlan { settings, requirement } = &plan.preconditioner;
    let Some(builder) = builder(settings, context.form()) else {
        let none = *settings == PreconditionerSettings::None;
        return Ok((if none { Preconditioning::None } else { Preconditioning::Jacobi }, None));
    };
    if operator.approximation().is_some() {
        return Ok((Preconditioning::Approximation, None));
    }
    let why = match (context.precondition(operator, &*builder), requirement) {
        (Ok(Ok(())), _) => return Ok((Preconditioning::Approximation, None)),
        (Ok(Err(why)), Requirement::Required) => {
            let help = "write `preconditioner: jacobi`, or leave it out";
            return Err(RunError::Setting(format!("{why}\nhelp: {help}")));
        }
        (Ok(Err(why)), Requirement::Preferred) => why,
        (Err(error), Requirement::Required) => return Err(error),
        // Other processes may not have the error.
        (Err(error), _) if context.on.mesh.cut().is_some() => return Err(error),
        (Err(error), Requirement::Preferred) => error.to_string(),
    };
    let why = why.lines().next().unwrap_or_default();
    let note = format!("no {}: {why}; Jacobi's preconditioner is used", settings.word());
    Ok((Preconditioning::Jacobi, Some(note)))
}
