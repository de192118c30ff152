//! The work of `verify`: one problem, degree after degree.

use super::refine::Series;
use super::{
    Degree, Findings, Order, Orders, Settings, Verification, kernels, may_go_on, solution, time,
};
use crate::Error;
use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::point::{Field, Input, Node, Part, Space};
use fem_dsl::problem::{Bound, MeshSource, Method, Problem, SolverSettings, Stepping};
use fem_dsl::program::Program;
use kernels_gen::plan::PlanError;
use runtime::kernels::compile::{CompileError, Target};
use runtime::mesh::{Mesh, load};
use runtime::problem::{DataError, IllPosedError, RunError, SetupError};
use runtime::processes::any;
use runtime::solve::Continue;
use runtime::verify::{RATE, VerificationProblem};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Fraction of the solution below which an error is a rounding error without an order.
const ROUNDING: f64 = 1e-11;
/// Number of additional levels, and the limits of their DoFs as multiples of the requested number: in general, and if
/// all orders are nearly reached.
const BEYOND: (usize, [usize; 2]) = (3, [15, 200]);

/// The largest s of ∂u/∂t = s u + r that is tried before a failed solve is reported.
const MOST_RATE: f64 = 1e3;

/// Returns the conditions of a problem, without their values.
fn conditions(
    program: &Program,
    problem: &str,
    fields: &[Field],
) -> Result<Vec<String>, Vec<Diagnostic>> {
    let mut all = Vec::new();
    for field in fields {
        all.extend(program.conditions(problem, &field.name)?);
    }
    // A manufactured solution is not periodic: periodic sides get its values as conditions.
    let (sides, means) = (program.periodic_sides(problem)?, program.means(problem)?);
    if let Some(sides) = sides.filter(|_| !all.is_empty()) {
        let held =
            |field: &&Field| matches!(field.space, Space::H1(_)) && !means.contains(&field.name);
        let on_sides = |field: &Field| format!("{} on {sides}", field.name);
        all.extend(fields.iter().filter(held).map(on_sides));
    }
    Ok(all)
}

/// Returns conditions in the place of a problem's bounds on parts of the boundary: a manufactured solution has its values
/// there.
fn bounded(problem: &Problem) -> Vec<String> {
    let condition = |bound: &Bound| {
        let tags = bound.tags.as_ref()?.iter().map(|tag| format!("\"{tag}\""));
        let field = &problem.form.fields[bound.field];
        let component = match field.shape.components() {
            1 => String::new(),
            _ => format!("[{}]", bound.component),
        };
        Some(format!("{}{component} on {}", field.name, tags.collect::<Vec<_>>().join(", ")))
    };
    problem.bounds.iter().filter_map(condition).collect()
}

/// The state of the verification of one problem.
pub(super) struct Verifier<'a> {
    program: &'a Program,
    name: &'a str,
    overrides: Overrides,
    settings: &'a Settings,
    series: Series,
    fields: Vec<String>,
    solution: Vec<(String, String)>,
    /// Solutions that are tried in turn until the form is finite; empty for a prescribed solution.
    candidates: Vec<Vec<(String, String)>>,
    /// True if orders in time were measured: they depend on a scheme rather than on the degree, so that once is enough.
    timed: bool,
    /// s of ∂u/∂t = s u + r at an instant.
    rate: f64,
    notes: Vec<String>,
}

type ProgressCallback<'a> = &'a mut dyn FnMut(&str, f64);

impl<'a> Verifier<'a> {
    pub(super) fn new(
        program: &'a Program,
        name: &'a str,
        overrides: &Overrides,
        folder: &Path,
        settings: &'a Settings,
    ) -> Result<Self, Error> {
        let rejected = |found| Error::language(program.source(), found);
        let (source, dim) = program.mesh(name, overrides).map_err(rejected)?;
        // Errors of the problem itself are reported before anything is changed; its degree is changed anyway.
        let check = |dim: usize, overrides: &Overrides| match program.problem(name, dim, overrides)
        {
            Err(found) if !found.iter().all(is_degree) => Err(rejected(found)),
            _ => Ok(()),
        };
        if let Some(dim) = dim {
            check(dim, overrides)?;
        }
        let given = |source: &MeshSource| load(source, folder);
        let mut series = Series::new(source, settings.cell, given)?;
        let dim = series.cell().dim();
        if !series.is_substitute() {
            check(dim, overrides)?;
        }
        let checked = program.form_of(name).map_err(rejected)?;
        let Some(form) = checked.dimensions.form(dim) else {
            let found = program.point_form(&checked.name, dim).err().unwrap_or_default();
            return Err(rejected(found));
        };
        series.set_tags(form);
        let mut overrides = Overrides { ends: true, ..overrides.clone() };
        let own = match series.is_substitute() {
            true => Vec::new(),
            false => {
                let mut own = conditions(program, name, &form.fields).map_err(rejected)?;
                if let Ok(problem) = program.problem(name, dim, &overrides) {
                    own.extend(bounded(&problem));
                }
                own
            }
        };
        let means = program.means(name).map_err(rejected)?;
        overrides.dirichlet = match own.is_empty() && (means.is_empty() || series.is_substitute()) {
            true => series.conditions(form, &means),
            false => own,
        };
        let own = program.manufactured(name, &overrides).map_err(rejected)?;
        let mut verifier = Self {
            program,
            name,
            overrides,
            settings,
            notes: series.note().into_iter().collect(),
            series,
            fields: form.fields.iter().map(|field| field.name.clone()).collect(),
            solution: Vec::new(),
            candidates: Vec::new(),
            timed: false,
            rate: RATE,
        };
        if !settings.solution.is_empty() {
            verifier.set_solution(settings.solution.clone());
        } else if own.is_empty() {
            verifier.candidates =
                solution::candidates(&form.fields, verifier.series.mesh(0)?.bounding_box(), dim);
            let first = verifier.candidates.first().cloned().unwrap_or_default();
            verifier.set_solution(first);
        } else {
            verifier.solution = own;
        }
        // Mistakes in a user's solution.
        check(dim, &verifier.overrides)?;
        Ok(verifier)
    }

    fn set_solution(&mut self, solution: Vec<(String, String)>) {
        self.overrides.manufactured.clone_from(&solution);
        self.solution = solution;
    }

    pub(super) fn finished(self, degrees: Vec<Degree>) -> Verification {
        let form = self.program.form_of(self.name).map_or("", |form| form.name.as_str());
        Verification {
            problem: self.name.to_owned(),
            form: form.to_owned(),
            fields: self.fields,
            cell: self.series.cell(),
            picked: !self.candidates.is_empty(),
            solution: self.solution,
            notes: self.notes,
            degrees,
        }
    }

    fn target(&self) -> Target {
        Target { execution: self.settings.execution, ..Target::native() }
    }

    /// Returns the subdomain of a level's mesh for this process and a problem.
    fn part(&mut self, level: usize, problem: &Problem) -> Result<Arc<Mesh>, Error> {
        self.series.part(level, problem, &self.settings.group)
    }

    /// Returns whether the verification can continue after an error.
    fn may_go_on(&self, error: &Error) -> bool {
        may_go_on(error, self.settings.group.size() > 1)
    }

    /// Returns the problem at a degree, with its manufactured solution; the inner error is the reason why the degree is
    /// not possible.
    fn problem(&self, degree: usize) -> Result<Result<Problem, String>, Error> {
        let overrides = Overrides { degree: Some(degree.to_string()), ..self.overrides.clone() };
        let dim = self.series.cell().dim();
        match self.program.problem(self.name, dim, &overrides) {
            Ok(problem) => Ok(Ok(without_path(problem))),
            Err(found) if found.iter().all(is_degree) => {
                Ok(Err(found.first().map_or_else(String::new, |found| found.message.clone())))
            }
            Err(found) => Err(Error::language(self.program.source(), found)),
        }
    }

    /// Verifies one degree; the inner error is the reason why it is not possible.
    pub(super) fn degree(
        &mut self,
        degree: usize,
        progress: ProgressCallback<'_>,
    ) -> Result<Result<Findings, String>, Error> {
        progress("preparing", 0.0);
        let problem = match self.pick(degree)? {
            Ok(problem) => problem,
            Err(reason) => return Ok(Err(reason)),
        };
        let integrals = &problem.form.integrals;
        let mut findings = Findings {
            symmetric: integrals.iter().all(|integral| integral.symmetric),
            definite: problem.solver.as_ref().is_some_and(relies_on_definiteness),
            ..Findings::default()
        };
        self.note_limits(&problem);
        match self.find(&problem, &mut findings, progress) {
            Err(error) if !self.may_go_on(&error) => return Err(error),
            found => findings.error = found.err().map(|error| error.to_string()),
        }
        Ok(Ok(findings))
    }

    /// Returns the problem with the first solution for which the form is finite.
    fn pick(&mut self, degree: usize) -> Result<Result<Problem, String>, Error> {
        let mut candidates = std::mem::take(&mut self.candidates);
        let tried = candidates.len().max(1);
        for attempt in 0..tried {
            if attempt > 0 {
                candidates.rotate_left(1);
            }
            if let Some(candidate) = candidates.first() {
                self.set_solution(candidate.clone());
            }
            let problem = match self.problem(degree)? {
                Ok(problem) => problem,
                Err(reason) => {
                    self.candidates = candidates;
                    return Ok(Err(reason));
                }
            };
            let mesh = self.part(1, &problem)?;
            let target = self.target();
            let tried =
                VerificationProblem::new(&problem, mesh, self.rate, &target).and_then(|trial| {
                    let context = &trial.context;
                    let new = context.elements.notes.iter().chain(&context.remarks);
                    let new = new.filter(|note| !self.notes.contains(note));
                    let new: Vec<String> = new.cloned().collect();
                    self.notes.extend(new);
                    let (mut operator, _) = trial.context.operator()?;
                    trial.finite(&mut operator)
                });
            match tried {
                Ok(true) => {
                    self.candidates = candidates;
                    return Ok(Ok(problem));
                }
                Ok(false) => {}
                Err(error) if error.is_of_data() => {
                    let lost = matches!(
                        error,
                        RunError::Data(
                            DataError::ExactNotFinite { .. } | DataError::AuxNotFinite { .. }
                        )
                    );
                    // Other processes only know that it happened.
                    if !any(&*self.settings.group, lost) && candidates.is_empty() {
                        return Err(error.into());
                    }
                }
                Err(error) if impossible(&error) => {
                    self.candidates = candidates;
                    return Ok(Err(error.to_string()));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let whose = if candidates.is_empty() { "this solution" } else { "the solutions tried" };
        let message = format!(
            "R(u), J(u) or the source is not finite at {whose}\n\
             help: give a solution at which the form is smooth, `manufactured u = …;` or --solution"
        );
        Err(Error::Run(RunError::Setting(message)))
    }

    /// Returns whether a generated solution would lie beyond the states of a nonlinear form, as far in the plastic range.
    fn is_beyond_history(&self, problem: &Problem) -> bool {
        let is_linear = problem.form.integrals.iter().all(|integral| integral.linear);
        !problem.states.is_empty() && !is_linear && !self.candidates.is_empty()
    }

    /// Notes the parts of a problem that are not verified.
    fn note_limits(&mut self, problem: &Problem) {
        let mut limits = Vec::new();
        if self.is_beyond_history(problem) {
            limits.push(
                "orders of convergence are not verified: a generated solution lies far beyond the states at the start; \
                 give one, `manufactured u = …;` or --solution",
            );
        }
        if problem.stepping.is_some() && !problem.states.is_empty() {
            limits.push(
                "orders in time are not verified: states at points change when a step has converged, by the update of \
                 the form",
            );
        }
        if has_path(&self.program.problem(self.name, self.series.cell().dim(), &self.overrides)) {
            limits.push(
                "the path by arc length is not verified: the manufactured solution is that of the full load, from \
                 which Newton's method starts",
            );
        }
        for limit in limits {
            if self.notes.iter().all(|note| note != limit) {
                self.notes.push(limit.to_owned());
            }
        }
    }

    /// Collects all findings.
    fn find(
        &mut self,
        problem: &Problem,
        findings: &mut Findings,
        progress: ProgressCallback<'_>,
    ) -> Result<(), Error> {
        let wanted = self.settings.levels.max(2);
        let Range { start, end } = self.series.levels(problem, wanted, self.settings.dofs)?;
        if self.is_beyond_history(problem) {
            return self.operators(problem, start..end, findings, progress);
        }
        // A time step that is too long for a nonlinear form prevents convergence from 0.
        while let Err(error) = self.levels(problem, wanted, start..end, findings, progress) {
            if problem.form.rates.is_empty() || self.rate > MOST_RATE || !self.may_go_on(&error) {
                return Err(error);
            }
            self.rate *= 10.0;
            findings.levels.clear();
            findings.orders.clear();
        }
        self.operators(problem, start..end, findings, progress)
    }

    /// Verifies the Jacobian, the orders in time and the kernels.
    fn operators(
        &mut self,
        problem: &Problem,
        Range { start, end }: Range<usize>,
        findings: &mut Findings,
        progress: ProgressCallback<'_>,
    ) -> Result<(), Error> {
        progress("the Jacobian", 0.8);
        let trial = VerificationProblem::new(
            problem,
            self.part(2.min(end - 1), problem)?,
            self.rate,
            &self.target(),
        )?;
        let (mut operator, _) = trial.context.operator()?;
        findings.taylor = Some(trial.taylor(&mut operator)?);
        findings.signs = Some(trial.signs(&mut operator)?);
        operator.finish().map_err(RunError::from)?;
        if problem.stepping.is_some() && problem.states.is_empty() && !self.timed {
            let mesh = self.part(start, problem)?;
            let moving = |part: f64| self.moving(problem, part);
            findings.time = time::orders(&moving, &mesh, &self.target(), &mut |scheme| {
                progress(scheme, 0.82);
            })?;
            self.timed = true;
        }
        if self.settings.kernels {
            let small = if problem.degree <= 2 { 2 } else { 1 };
            // Small enough for each process to have the whole mesh.
            let mesh = Arc::clone(self.series.mesh(small)?);
            let trial = VerificationProblem::new(problem, mesh, self.rate, &self.target())?;
            findings.kernels = kernels::compare(&trial, self.settings, &mut |what| {
                progress(what, 0.85);
            })?;
        }
        Ok(())
    }

    /// Solves the levels of the series, and computes their orders.
    fn levels(
        &mut self,
        problem: &Problem,
        wanted: usize,
        Range { start, end }: Range<usize>,
        findings: &mut Findings,
        progress: ProgressCallback<'_>,
    ) -> Result<(), Error> {
        // With coefficients that vary on a small scale, coarse meshes do not show the asymptotic order; for coupled
        // fields, they may not be solvable.
        for level in start..end + BEYOND.0 {
            let holds = |orders: &Orders| orders.l2.holds() && orders.h1.holds();
            let done = findings.levels.len() >= wanted && findings.orders.iter().all(holds);
            let near = |orders: &Orders| orders.l2.is_near() && orders.h1.is_near();
            let times = BEYOND.1[usize::from(findings.orders.iter().all(near))];
            let large =
                level >= end && self.series.dofs(problem, level)? > times * self.settings.dofs;
            if done || large {
                break;
            }
            let part = (findings.levels.len() as f64 / (wanted + BEYOND.0) as f64).min(1.0);
            progress(&format!("level {level}"), 0.75 * part);
            match self.level(problem, level, findings) {
                Err(Error::Run(RunError::IllPosed(IllPosedError::Singular(_))))
                    if findings.levels.is_empty() && level + 1 < end + BEYOND.0 => {}
                found => found?,
            }
        }
        Ok(())
    }

    /// Returns the problem on a fraction of a few of its steps, with a time-dependent solution: its own, or one with
    /// waves in time.
    fn moving(&self, problem: &Problem, part: f64) -> Result<Problem, Error> {
        let Some(Stepping { from, to, step, .. }) = problem.stepping else {
            return Ok(problem.clone());
        };
        let step = step.unwrap_or((to - from) / 200.0);
        let long = (to - from).min(time::STEPS as f64 * step) * part;
        let shorter = |mut problem: Problem| {
            if let Some(stepping) = &mut problem.stepping {
                stepping.to = from + long;
            }
            problem
        };
        let follows = |node: &Node| *node == Node::Input(Input::Time);
        if problem.exact.iter().any(|(_, exact)| exact.graph.nodes().iter().any(follows)) {
            return Ok(shorter(problem.clone()));
        }
        let fast = 2.0 / long;
        let waving = |(field, text): &(String, String)| {
            (field.clone(), format!("({text}) * (1 + 0.3 * sin({fast:?} * (t - {from:?}) + 0.4))"))
        };
        let mut overrides =
            Overrides { degree: Some(problem.degree.to_string()), ..self.overrides.clone() };
        overrides.manufactured = self.solution.iter().map(waving).collect();
        let dim = self.series.cell().dim();
        let rejected = |found| Error::language(self.program.source(), found);
        self.program.problem(self.name, dim, &overrides).map(shorter).map_err(rejected)
    }

    /// Solves one more level of the series, and computes the orders up to it.
    fn level(
        &mut self,
        problem: &Problem,
        level: usize,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let (part, target) = (self.part(level, problem)?, self.target());
        let trial = VerificationProblem::new(problem, part, self.rate, &target)?;
        let (mut operator, _) = trial.context.operator()?;
        let found = trial.solve(&mut operator, &mut |_| Continue::Yes);
        let cells = trial.context.on.mesh.cells_in_all();
        let found = found.map_err(|error| match error {
            RunError::IllPosed(IllPosedError::Singular(_)) => error,
            error if self.settings.group.size() > 1 && !error.is_of_all() => error,
            error => RunError::Setting(format!("on {cells} cells the solve fails: {error}")),
        })?;
        findings.levels.push(found);
        let sizes = trial.sizes();
        let order = |field: usize, of: fn(&(f64, f64)) -> f64, expected: f64| {
            let mut observed = None;
            for pair in findings.levels.windows(2) {
                let [coarse, fine] = pair else { continue };
                let (before, after) = (of(&coarse.errors[field]), of(&fine.errors[field]));
                if after > ROUNDING * sizes[field].max(f64::MIN_POSITIVE) || after.is_nan() {
                    observed = Some((before / after).ln() / (coarse.size / fine.size).ln());
                }
            }
            Order { expected, observed }
        };
        let degrees = trial.context.elements.fields.iter().enumerate();
        let form = &trial.context.problem.form;
        let second = |field: usize| {
            let mut rows = form.integrals.iter().flat_map(|integral| &integral.residual);
            rows.any(|(slot, _)| slot.field == field && slot.part.order() == 2)
        };
        // Of fourth order, by duality: twice the order of second derivatives.
        let is_vector = |field: usize| form.fields[field].space.is_piola();
        // Gradients in cells of Hcurl and Hdiv are of order k − 1, and so are other fields.
        let gradients = form.integrals.iter().any(|integral| {
            let mut slots = integral.residual.iter().map(|(slot, _)| slot);
            let is_gradient = |part: Part| matches!(part, Part::Derivative(_));
            slots.any(|slot| is_vector(slot.field) && is_gradient(slot.part))
        });
        let less = |field: usize| f64::from(u8::from(gradients && !is_vector(field)));
        let order_of_values = |field: usize, degree: usize| match second(field) {
            _ if is_vector(field) => degree as f64,
            true => (degree + 1).min(2 * degree.saturating_sub(1)) as f64,
            false => degree as f64 + 1.0,
        };
        findings.orders = degrees
            .map(|(field, element)| Orders {
                l2: order(
                    field,
                    |errors| errors.0,
                    order_of_values(field, element.degree()) - less(field),
                ),
                h1: order(field, |errors| errors.1, element.degree() as f64 - less(field)),
                norm: if is_vector(field) { form.fields[field].space.family() } else { "H1" },
            })
            .collect();
        Ok(())
    }
}

/// Returns whether a diagnostic is about an impossible degree of a form.
fn is_degree(found: &Diagnostic) -> bool {
    found.code == Code::BadDegree
}

/// Returns whether a degree is not possible for a form on these cells. A requested quadrature is independent of the
/// degree.
fn impossible(error: &RunError) -> bool {
    use SetupError::{Compile, Element, Plan};
    let RunError::Setup(error) = error else { return false };
    match **error {
        Plan(PlanError::Quadrature(_)) => false,
        Plan(_) | Element(_) | Compile(CompileError::Plan(_)) => true,
        _ => false,
    }
}

/// Returns whether the solver of a problem follows a path by arc length.
fn has_path(problem: &Result<Problem, Vec<Diagnostic>>) -> bool {
    let solver = problem.as_ref().ok().and_then(|problem| problem.solver.as_ref());
    matches!(solver, Some(SolverSettings::Newton(own)) if own.path.is_some())
}

/// Removes the path by arc length: the manufactured source is that of the full load.
fn without_path(mut problem: Problem) -> Problem {
    if let Some(SolverSettings::Newton(own)) = &mut problem.solver
        && own.path.is_some()
    {
        (own.steps, own.load, own.path, own.crossing) = (None, None, None, None);
    }
    problem
}

fn relies_on_definiteness(solver: &SolverSettings) -> bool {
    solver.method() == Some(Method::Cg)
}
