//! Solver selection and configuration: the named solver with its settings, or a default chosen for the form.
//!
//! By default, a linear problem is factorised if that is cheap (`factors`). Otherwise it uses CG for a symmetric
//! Jacobian, GMRES for any other, and factors if these fail. A nonlinear problem uses Newton's method with the same
//! linear solvers. A form with a field that has no diagonal block (a pressure) is indefinite, and the Jacobi
//! preconditioner is inefficient. It is factorised, or solved by MINRES or GMRES if it is large. On a device, iterative
//! methods come first, because they run there.

mod again;
mod apart;
mod ramp;
mod slow;

use super::factors::{self, Facts};
use super::local::local;
use super::mean::{Compatibility, check_constants, not_constant};
use super::multigrid::{Asked, Problem, Unsuited};
use super::not_finite::{Cause, cause};
use super::reduced::check_rank;
use super::several::told;
use super::singular::Singular;
use super::{Prescribed, RunError};
use crate::algebra::factor::{AVAILABLE, FactorError};
use crate::algebra::vector::Vector;
use crate::device::Device;
use crate::kernels::compile::Target;
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::Operator;
use crate::solve::{
    CgSettings, Continue, Factors, Forcing, InnerSolver, Linear, Loaded, Newton, NewtonSettings,
    NonlinearSystem, Outcome, Preconditioning, Progress, Report, SolveError, newton,
    newton_in_load_steps, solve_affine,
};
use crate::space::constraint::Constraints;
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use fem_dsl::point::{Coefficient, Part, PointForm, eliminated, is_symmetric_without, switches};
use fem_dsl::problem::{Argument, Solver, UnstablePair, unstable};
use kernels_gen::element::Rule;
use kernels_gen::plan::Elements;
use std::fmt::Display;
use std::sync::Arc;

pub(super) use again::Again;
pub(super) use apart::UNKNOWN_DATA;
use ramp::{Load, Ramp, Sweep};

/// GMRES restart length of a linear problem; Newton's method uses a shorter one.
const RESTART: usize = 100;

/// η of exact Newton steps.
const EXACT: f64 = 1e-10;

/// Consecutive full steps of a form with switches: an active set settles within as many.
const FULL_STEPS: usize = 20;

/// The nonlinear system to solve.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The form.
    pub form: &'a PointForm,
    /// Its discretisation.
    pub on: &'a Arc<Discretisation>,
    /// Time and parameters.
    pub parameters: &'a Parameters,
    /// Prescribed conditions and data.
    pub prescribed: &'a dyn Prescribed,
    /// Quadrature rule.
    pub rule: Rule,
    /// Input of multigrid levels, if they can be built.
    pub levels: Option<Levels<'a>>,
}

/// Input of multigrid levels that the system does not contain.
#[derive(Clone, Copy)]
pub struct Levels<'a> {
    /// Elements of the finest level.
    pub elements: &'a Elements,
    /// Target of the kernels.
    pub target: &'a Target,
    /// The device; `None` for the host.
    pub device: Option<&'a Arc<dyn Device>>,
}

/// Returns whether some field has no diagonal block.
pub(super) fn is_saddle(form: &PointForm) -> bool {
    let coefficients = || form.integrals.iter().flat_map(|integral| &integral.jacobian);
    (0..form.fields.len()).any(|field| {
        !coefficients().any(|entry| entry.test.field == field && entry.trial.field == field)
    })
}

impl System<'_> {
    /// Returns whether the residual is affine in u.
    pub fn is_linear(&self) -> bool {
        self.form.integrals.iter().all(|integral| integral.linear)
    }

    /// Returns whether the Jacobian is symmetric after elimination of cell-local degrees of freedom.
    fn symmetric(&self) -> bool {
        is_symmetric_without(self.form, &eliminated(self.form))
    }

    /// Makes an operator eliminate the cell-local fields.
    pub(crate) fn eliminate(&self, operator: &mut Operator) {
        if NonlinearSystem::local(operator).is_none() {
            operator.eliminate(local(self.form, self.on).map(Arc::new));
        }
    }

    /// Returns whether the form switches with the solution, e.g. for contact.
    fn has_switches(&self) -> bool {
        !switches(self.form).is_empty()
    }

    /// Preconditions an operator by multigrid; the inner error gives the reason if that is impossible.
    pub(super) fn make_levels(
        &self,
        operator: &mut Operator,
        asked: &Asked,
    ) -> Result<Result<(), Unsuited>, RunError> {
        let Some(Levels { elements, target, device }) = self.levels else {
            return Ok(Err(Unsuited::Data));
        };
        let Self { form, on, parameters, prescribed, .. } = *self;
        let problem = Problem { form, elements, on, parameters, prescribed, target, device, asked };
        Ok(problem.approximation(operator)?.map(|made| operator.precondition_by(Some(made))))
    }

    /// Selects the default linear solver for host or device, and its use of factors.
    fn fitting(&self, device: bool) -> (InnerSolver, Factors) {
        let facts = Facts { linear: self.is_linear(), saddle: is_saddle(self.form), device };
        let factors = factors::unasked(self.on, &eliminated(self.form), facts);
        // Neither factors nor block multigrid need be positive definite.
        let own = self.on.mesh.cut().is_some()
            && facts.saddle
            && (factors::at_each(self.on, true) || !self.symmetric());
        if own {
            return (InnerSolver::Fgmres, factors);
        }
        let indefinite = facts.saddle && factors != Factors::First;
        (if indefinite { InnerSolver::Indefinite } else { InnerSolver::Automatic }, factors)
    }

    /// Returns a pair of fields known to violate the inf-sup condition.
    pub fn unstable(&self) -> Option<UnstablePair> {
        unstable(self.form, self.parameters.degree)
    }

    /// Returns the error of an outcome that names a field or degree of freedom.
    pub fn failed(&self, report: &Report) -> Option<RunError> {
        match report.outcome {
            Outcome::Singular { unknown, condition } => Some(self.singular(unknown, condition)),
            Outcome::Unsolved { field, ratio } => {
                let (solver, field) =
                    (report.solver, format!("`{}`", self.form.fields[field].name));
                Some(SolveError::Unsolved { solver, field, ratio }.into())
            }
            _ => None,
        }
    }

    /// Returns the error of a numerically singular matrix, with an estimate of its condition number.
    pub fn singular(&self, unknown: usize, condition: f64) -> RunError {
        if let Some(pair) = self.unstable() {
            return RunError::Unstable(pair);
        }
        let (place, field, name) = self.named(unknown);
        let on = self.on;
        let dofs = field.map_or(0..0, |field| on.dofs_of(field));
        let held = on.conditions().any(|(dof, _)| dofs.contains(&dof));
        let mut entries = self.form.integrals.iter().flat_map(|integral| &integral.jacobian);
        let value =
            |term: &Coefficient| Some(term.trial.field) == field && term.trial.part == Part::Value;
        let read = entries.any(value);
        RunError::Singular(Singular { place, name, condition, held, free: !held && !read })
    }

    /// Returns the field of a degree of freedom with its component in words, the field's index, and its name.
    fn named(&self, unknown: usize) -> (String, Option<usize>, String) {
        let mut end = 0;
        for (number, (field, of)) in self.form.fields.iter().zip(&self.on.fields).enumerate() {
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

/// Returns the kernel target: element matrices if a direct solver is named and reading the matrix off products would be
/// slow.
pub(super) fn represented(
    target: &Target,
    on: &Discretisation,
    named: Option<&Solver>,
    on_a_device: bool,
) -> Target {
    let settings = Settings { named, floor: 0.0 };
    let direct = settings.is_direct().unwrap_or(false) && on.affine.is_empty();
    if target.representation.is_none() && direct && factors::worth_matrices(on) {
        return target.representing(Representation::Assembled(Assembly::fitting(on_a_device)));
    }
    *target
}

/// Selects the default linear solver.
pub fn suits(system: System<'_>, operator: &Operator) -> Linear {
    let (solver, factors) = system.fitting(operator.is_on_device());
    Linear { solver, restart: RESTART, preconditioning: Preconditioning::Jacobi, factors }
}

/// Solves R(u) = 0 from the state `u`, whose constrained degrees of freedom are overwritten, with the named or the
/// default solver. Returns the report and the total number of linear iterations.
///
/// # Errors
///
/// Invalid settings, a singular matrix, a load step that does not converge. Convergence of the solve as a whole is part
/// of the report.
pub fn solve(
    operator: &mut Operator,
    system: System<'_>,
    u: &mut Vector,
    named: Option<&Solver>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    solve_above(operator, system, u, (named, 0.0), None, observe)
}

/// Solves R(u) = 0 with an absolute tolerance of at least rtol · `floor`. `kept` carries the state of Newton's method
/// from one solve to the next.
pub(super) fn solve_above(
    operator: &mut Operator,
    system: System<'_>,
    u: &mut Vector,
    (named, floor): (Option<&Solver>, f64),
    kept: Option<&mut Option<Newton>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let settings = Settings { named, floor };
    settings.available()?;
    operator.impose(u)?;
    system.eliminate(operator);
    // In time integration the matrix also depends on the mass and the step size.
    let rank = if kept.is_none() { check_rank(operator, system, u)? } else { None };
    let compatibility = Compatibility::of(operator, system)?;
    let name = named.map_or("", |solver| solver.name.as_str());
    let (mut report, iterations) = match (name, system.is_linear()) {
        ("newton", _) | ("", false) => {
            solve_by_newton(operator, system, u, settings, kept, observe)?
        }
        (name, true) => {
            let report = solve_linear(operator, system, u, name, settings, observe)?;
            let iterations = report.iterations;
            (report, iterations)
        }
        (name, false) => {
            return Err(RunError::Setting(format!(
                "`{name}` solves linear forms, and this one is nonlinear\nhelp: use `solver = newton(…);`"
            )));
        }
    };
    if let Some(error) = system.failed(&report) {
        return Err(error);
    }
    if report.outcome == Outcome::NotFinite {
        return Err(not_finite(operator, system, u, &report));
    }
    report.notes.extend(rank);
    if let Some(error) = not_constant(operator, system, &report) {
        return Err(error);
    }
    if report.outcome.is_success() {
        if !system.is_linear() {
            check_constants(operator, system, u)?;
        }
        report.notes.extend(compatibility.settle(operator, system, u)?);
    }
    report.notes.extend(system.unstable().map(|pair| format!("{pair}; {}", pair.remedy())));
    if operator.is_on_device() && name.is_empty() && report.solver == "direct" {
        report.notes.push("the matrix was factorised on the processor".to_owned());
    }
    Ok((report, iterations))
}

/// Returns the error of a solve that met a number that is not finite, with its cause.
fn not_finite(
    operator: &mut Operator,
    system: System<'_>,
    u: &Vector,
    report: &Report,
) -> RunError {
    let (solver, iterations) = (report.solver, report.iterations);
    let error = |cause| RunError::NotFinite { solver, iterations, cause };
    // Only one process may have found the point.
    let found = cause(system, operator, u).and_then(|cause| match cause {
        Cause::Form(_) => Err(error(cause)),
        Cause::Solver => Ok(()),
    });
    told(&system.on.mesh, found).err().unwrap_or_else(|| error(Cause::Solver))
}

/// Selects linear solver, stopping criterion and a note.
fn linear(
    operator: &mut Operator,
    system: System<'_>,
    name: &str,
    settings: Settings<'_>,
) -> Result<(Linear, CgSettings, Option<String>), RunError> {
    let (solver, factors) = settings.solver(name, system, operator);
    let defaults = CgSettings::default();
    let (rtol, atol) = settings.tolerances(defaults.rtol)?;
    let stop = CgSettings {
        rtol,
        atol,
        max_iterations: settings.count("max_iterations", defaults.max_iterations)?,
        strict: settings.strict()?,
    };
    let restart = settings.count("restart", RESTART)?;
    let (preconditioning, note) = settings.preconditioning(system, operator)?;
    Ok((Linear { solver, restart, preconditioning, factors }, stop, note))
}

fn solve_linear(
    operator: &mut Operator,
    system: System<'_>,
    u: &mut Vector,
    name: &str,
    settings: Settings<'_>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Report, RunError> {
    let (linear, stop, note) = linear(operator, system, name, settings)?;
    let levels = linear.preconditioning == Preconditioning::Multigrid;
    let mut report = solve_affine(operator, u, stop, linear, observe)?;
    report.notes.extend(note);
    if levels {
        let kept = operator.approximation().is_some();
        report.notes.extend(slow::told(system, &u.to_vec(), &report, kept)?);
    }
    Ok(report)
}

fn solve_by_newton(
    operator: &mut Operator,
    system: System<'_>,
    u: &mut Vector,
    settings: Settings<'_>,
    kept: Option<&mut Option<Newton>>,
    observe: &mut dyn FnMut(Progress) -> Continue,
) -> Result<(Report, usize), RunError> {
    let defaults = NewtonSettings::default();
    let named = settings.word("linear")?.unwrap_or("automatic");
    let (solver, mut factors) = settings.solver(named, system, operator);
    // Inner solves limited by the user have not failed.
    if settings.find("max_inner").is_some() && factors != Factors::First {
        factors = Factors::Never;
    }
    let restart = settings.count("restart", defaults.linear.restart)?;
    let (preconditioning, note) = settings.preconditioning(system, operator)?;
    let (rtol, atol) = settings.tolerances(defaults.rtol)?;
    let newton_settings = NewtonSettings {
        rtol,
        atol,
        max_iterations: settings.count("max_iterations", defaults.max_iterations)?,
        max_inner: settings.count("max_inner", defaults.max_inner)?,
        linear: Linear { solver, restart, preconditioning, factors },
        line_search: settings.word("line_search")? != Some("none"),
        forcing: match settings.word("forcing")? {
            Some("exact") => Forcing::Fixed(EXACT),
            None if system.is_linear() => Forcing::Target,
            _ => defaults.forcing,
        },
        full_steps: if system.has_switches() { FULL_STEPS } else { defaults.full_steps },
        switches: system.has_switches(),
        strict: settings.strict()?,
    };
    let inner = &mut |_| Continue::Yes;
    let steps = settings.count("steps", 1)?;
    let load = match settings.word("load")? {
        None => Load::Everything { boundary: operator.initial()? },
        Some(name) => {
            let found = system.form.params.iter().position(|param| param.name == name);
            let missing = || RunError::Setting(format!("there is no parameter `{name}` to load"));
            Load::Param(found.ok_or_else(missing)?)
        }
    };
    // A linear form is solved at once: its solution does not depend on the load path. With load steps, each tangent
    // predictor would solve it, and no relative tolerance could be reached from there.
    let at_once = system.is_linear() && steps > 1;
    if steps == 1 || at_once {
        // In time integration a shorter step is the remedy.
        let may_sweep = kept.is_none() && settings.find("max_iterations").is_none();
        let start = (may_sweep && !system.is_linear()).then(|| u.clone());
        let mut report = match kept {
            Some(kept) => {
                let kept = kept.get_or_insert_with(|| Newton::new(u, newton_settings.linear));
                kept.solve(operator, u, newton_settings, observe, inner)?
            }
            None => newton(operator, u, newton_settings, observe, inner)?,
        };
        if let Some(start) = start.filter(|_| report.outcome.may_sweep())
            && let Some(sweep) = Sweep::of(operator, system, &start)?
        {
            let start = (start, report);
            let at = (&mut *operator, system, newton_settings);
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
    let mut ramp = Ramp { operator, system, load, at: 1.0, failed: None };
    let solved = newton_in_load_steps(&mut ramp, u, steps, newton_settings, observe, inner);
    let cause = match &solved {
        Ok(solved) if solved.newton.outcome == Outcome::NotFinite => {
            let parameters = ramp.parameters();
            let system = System { parameters: &parameters, ..system };
            Some(not_finite(ramp.operator, system, u, &solved.newton))
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
        Err(source) => Err(RunError::LoadStep { step: solved.solved + 1, steps, source }),
    }
}

/// Concatenates the condition values in the order of [`Discretisation::conditions`], then those of oblique conditions,
/// three per node.
pub fn values(constraints: &[Constraints]) -> Vec<f64> {
    let own = constraints.iter().flat_map(|of| of.iter().map(|(_, value)| value));
    let oblique = constraints.iter().flat_map(|of| of.oblique()).flat_map(|oblique| oblique.value);
    own.chain(oblique).collect()
}

/// The settings of a solver, each with a default.
#[derive(Clone, Copy)]
struct Settings<'a> {
    named: Option<&'a Solver>,
    /// Reference residual norm of earlier solves.
    floor: f64,
}

impl<'a> Settings<'a> {
    /// Returns whether a direct solver is requested.
    fn is_direct(self) -> Result<bool, RunError> {
        let name = self.named.map(|solver| solver.name.as_str());
        Ok(name == Some("direct") || self.word("linear")? == Some("direct"))
    }

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

    /// Returns the relative and the absolute tolerance.
    fn tolerances(self, default: f64) -> Result<(f64, f64), RunError> {
        let rtol = self.number("rtol", default)?;
        Ok((rtol, self.number("atol", 0.0)?.max(rtol * self.floor)))
    }

    fn count(self, key: &str, default: usize) -> Result<usize, RunError> {
        let value = self.number(key, default as f64)?;
        match value.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&value) {
            true => Ok(value as usize),
            false => Err(RunError::Setting(format!(
                "the setting `{key}` is {value}\nhelp: it should be a whole number from 1 on"
            ))),
        }
    }

    /// Returns whether the requested tolerance is mandatory; the default tolerance is relaxed to the rounding-error
    /// level.
    fn strict(self) -> Result<bool, RunError> {
        let (rtol, atol) = (self.number("rtol", 0.0)?, self.number("atol", 0.0)?);
        Ok(self.find("rtol").is_some() && (rtol > 0.0 || atol > 0.0))
    }

    /// Rejects the direct solver in builds without it.
    fn available(self) -> Result<(), RunError> {
        let direct = self.is_direct()?;
        match direct && !AVAILABLE {
            true => Err(RunError::Setting(format!(
                "{}, or use another solver than `direct`",
                FactorError::Absent
            ))),
            false => Ok(()),
        }
    }

    /// Returns the named or the default linear solver, and its use of factors.
    fn solver(self, name: &str, system: System<'_>, operator: &Operator) -> (InnerSolver, Factors) {
        let named = match InnerSolver::named(name) {
            // With several processes, a redundant factorisation replaces the distributed matrix's factors.
            Some(InnerSolver::Direct) if system.on.mesh.cut().is_some() => {
                Some((InnerSolver::Fgmres, Factors::Never))
            }
            named => named.map(|solver| (solver, Factors::Never)),
        };
        named.unwrap_or_else(|| system.fitting(operator.is_on_device()))
    }

    fn word(self, key: &str) -> Result<Option<&'a str>, RunError> {
        match self.find(key) {
            None => Ok(None),
            Some(Argument::Word(word) | Argument::Made { name: word, .. }) => Ok(Some(word)),
            Some(_) => Err(RunError::Setting(format!("the setting `{key}` should be a word"))),
        }
    }

    /// Returns whether multigrid is used by default: for CG, if diagonal preconditioning would take longer than the
    /// set-up of levels.
    fn may_have_levels(self, system: System<'_>, operator: &Operator) -> bool {
        let name = |key| self.named.is_none_or(|_| matches!(self.word(key), Ok(None)));
        let solver = self.named.map_or("", |solver| solver.name.as_str());
        let tried = match solver {
            "" | "cg" => true,
            "newton" => name("linear") || matches!(self.word("linear"), Ok(Some("cg"))),
            _ => false,
        };
        let (_, factors) = system.fitting(operator.is_on_device());
        // Saddle points without redundant factors: the diagonal is inefficient.
        if system.on.mesh.cut().is_some() && is_saddle(system.form) {
            return matches!(solver, "" | "newton") && name("linear");
        }
        tried
            && system.symmetric()
            && factors != Factors::First
            && factors::worth_levels(
                system.on,
                &eliminated(system.form),
                is_saddle(system.form),
                operator.is_on_device(),
            )
    }

    /// Selects the preconditioner with a note; builds multigrid levels if needed.
    fn preconditioning(
        self,
        system: System<'_>,
        operator: &mut Operator,
    ) -> Result<(Preconditioning, Option<String>), RunError> {
        let refused = |why: &dyn Display| {
            RunError::Setting(format!(
                "{why}\nhelp: write `preconditioner: jacobi`, or leave it out"
            ))
        };
        if let Some(made) = self.factors_at_each(system, operator)? {
            return Ok((made, None));
        }
        match self.word("preconditioner")? {
            Some("none") => Ok((Preconditioning::None, None)),
            // A direct solver does not iterate.
            Some("multigrid" | "algebraic" | "block") if self.is_direct()? => {
                Ok((Preconditioning::Jacobi, None))
            }
            Some("multigrid" | "algebraic" | "block") => {
                // Levels of an earlier solve with the same data are reused.
                if operator.approximation().is_some() {
                    return Ok((Preconditioning::Multigrid, None));
                }
                let asked = self.find("preconditioner").map(Asked::of).unwrap_or_default();
                let made = system.make_levels(operator, &asked)?;
                made.map_err(|unsuited| refused(&unsuited))?;
                Ok((Preconditioning::Multigrid, None))
            }
            // Default levels are optional: the solve continues without them.
            None if operator.approximation().is_some() => Ok((Preconditioning::Multigrid, None)),
            None if self.may_have_levels(system, operator) => {
                let why = match system.make_levels(operator, &Asked::default()) {
                    Ok(Ok(())) => return Ok((Preconditioning::Multigrid, None)),
                    Ok(Err(unsuited)) => unsuited.to_string(),
                    // Other processes may not have the error.
                    Err(error) if system.on.mesh.cut().is_some() => return Err(error),
                    Err(error) => error.to_string(),
                };
                let why = why.lines().next().unwrap_or_default();
                let note = format!("no multigrid: {why}; the diagonal preconditions");
                Ok((Preconditioning::Jacobi, Some(note)))
            }
            _ => Ok((Preconditioning::Jacobi, None)),
        }
    }
}
