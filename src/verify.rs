//! `verify`: a problem → whether its form does what it should, by numbers.
//!
//! ```text
//! problem, or only its form → manufactured solution → for each degree:
//!     refinement series → errors → observed orders, k + 1 in L2 and k in H1
//!     Jacobian against differences of the residual; its symmetry, its signs
//!     kernels of every instruction set, strategy and device against the reference
//! ```

mod kernels;
mod refine;
mod solution;

use crate::{Error, threads};
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{MeshSource, Problem, Solver};
use fem_dsl::program::{Program, fluxes};
use kernels_gen::element::Cell;
use refine::Series;
use runtime::compile::{CompileError, Execution, Target};
use runtime::device::Device;
use runtime::mesh::{Mesh, load};
use runtime::run::RunError;
use runtime::solve::Continue;
use runtime::verify::Trial;
use std::path::Path;
use std::sync::Arc;

pub use kernels::{Compared, Verdict};
pub use runtime::verify::jacobian::{Signs, Taylor};
pub use runtime::verify::series::Level;

/// How far an observed order may be below the expected one.
pub const TOLERANCE: f64 = 0.15;
/// An error below this part of the solution is rounding, and has no order.
const ROUNDING: f64 = 1e-11;
/// So many levels beyond those that were asked for, with at most so many times their unknowns.
const BEYOND: (usize, usize) = (2, 15);

/// What is verified, and how much of it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The degrees; 1 to 4 without any.
    pub degrees: Vec<usize>,
    /// Levels of the refinement series, at least 2.
    pub levels: usize,
    /// Unknowns that the finest level should not exceed.
    pub dofs: usize,
    /// The manufactured solution, field and text; the problem's without any, and one that is picked where it has none.
    pub solution: Vec<(String, String)>,
    /// Cells of a box that takes the place of the problem's mesh.
    pub cell: Option<Cell>,
    /// Whether kernels are compiled or interpreted.
    pub execution: Execution,
    /// Whether kernels are compared with the reference.
    pub kernels: bool,
    /// Devices whose kernels are compared too.
    pub devices: Vec<Arc<dyn Device>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            degrees: Vec::new(),
            levels: 3,
            dofs: 20_000,
            solution: Vec::new(),
            cell: None,
            execution: Execution::default(),
            kernels: true,
            devices: Vec::new(),
        }
    }
}

/// What is being done, for a progress bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// In words.
    pub what: String,
    /// The part that is done, from 0 to 1.
    pub done: f64,
}

/// What was found.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The problem.
    pub problem: String,
    /// Its form.
    pub form: String,
    /// The names of its fields.
    pub fields: Vec<String>,
    /// The cells.
    pub cell: Cell,
    /// The manufactured solution, field and text.
    pub solution: Vec<(String, String)>,
    /// Whether the solution was picked here.
    pub picked: bool,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// Each degree.
    pub degrees: Vec<Degree>,
}

/// A degree.
#[derive(Clone, Debug)]
pub struct Degree {
    /// k.
    pub degree: usize,
    /// What was found, or why this degree is not possible for the form on these cells.
    pub outcome: Result<Findings, String>,
}

/// What was found at one degree.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The refinement series, coarse to fine.
    pub levels: Vec<Level>,
    /// The orders of each field.
    pub orders: Vec<Orders>,
    /// The test of the Jacobian.
    pub taylor: Option<Taylor>,
    /// Symmetry and definiteness.
    pub signs: Option<Signs>,
    /// Whether the form is known to have a symmetric Jacobian.
    pub symmetric: bool,
    /// Whether the problem's solver relies on a positive definite one.
    pub definite: bool,
    /// Kernels against the reference.
    pub kernels: Vec<Compared>,
    /// What went wrong, so that something above is missing.
    pub error: Option<String>,
}

/// The orders of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Orders {
    /// In L2.
    pub l2: Order,
    /// In the seminorm of H1.
    pub h1: Order,
}

/// An order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// What theory says.
    pub expected: f64,
    /// That between the two finest levels that tell; none where the error is rounding.
    pub observed: Option<f64>,
}

impl Order {
    /// Whether the observed order is not below the expected one.
    pub fn holds(&self) -> bool {
        self.observed.is_none_or(|observed| observed >= self.expected - TOLERANCE)
    }
}

impl Findings {
    /// What does not hold, in words.
    pub fn failures(&self, fields: &[String]) -> Vec<String> {
        let mut failures: Vec<String> = self.error.iter().cloned().collect();
        for (orders, name) in self.orders.iter().zip(fields) {
            for (norm, order) in [("L2", orders.l2), ("H1", orders.h1)] {
                if let Some(observed) = order.observed.filter(|_| !order.holds()) {
                    let expected = order.expected;
                    failures.push(format!(
                        "`{name}` converges with order {observed:.2} in {norm}, not {expected}"
                    ));
                }
            }
        }
        if let Some(taylor) = self.taylor.as_ref().filter(|taylor| !taylor.holds()) {
            failures.push(match (taylor.linear, taylor.order) {
                (true, _) => "the form is linear, but R(u + w) − R(u) is not J w".to_owned(),
                (false, Some(order)) => {
                    format!("the Jacobian's Taylor remainder has order {order:.2}, not 2")
                }
                (false, None) => "the Jacobian's Taylor remainder has no order".to_owned(),
            });
        }
        if let Some(signs) = self.signs {
            if self.symmetric && !signs.symmetric() {
                failures.push(format!("v·Jw and w·Jv differ by {:.1e}", signs.defect));
            }
            if self.definite && signs.definite == Some(false) {
                failures.push(
                    "`cg` is named, but the Jacobian is not positive definite at the solution"
                        .to_owned(),
                );
            }
        }
        for compared in &self.kernels {
            if let Verdict::Compared(distance) = &compared.verdict
                && !distance.holds()
            {
                failures.push(format!("kernels differ from the reference: {}", compared.name));
            }
        }
        failures
    }
}

impl Verification {
    /// What does not hold, in words; empty where all does.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for Degree { degree, outcome } in &self.degrees {
            let Ok(findings) = outcome else { continue };
            let found = findings.failures(&self.fields);
            failures.extend(found.into_iter().map(|found| format!("degree {degree}: {found}")));
        }
        if self.degrees.iter().all(|degree| degree.outcome.is_err()) {
            failures.push("no degree is possible".to_owned());
        }
        failures
    }
}

/// Verifies a problem. `folder` is where its mesh's path starts.
///
/// # Errors
///
/// Mistakes in the problem or in what is said otherwise; a mesh that cannot be made. What does not hold is no error but
/// stands in the [`Verification`].
pub fn verify(
    program: &Program,
    problem: &str,
    overrides: &Overrides,
    folder: &Path,
    settings: &Settings,
    observe: &mut (dyn FnMut(Progress) + Send),
) -> Result<Verification, Error> {
    threads::roomy(|| {
        let mut verifier = Verifier::new(program, problem, overrides, folder, settings)?;
        let degrees = match settings.degrees.is_empty() {
            true => (1..=4).collect(),
            false => settings.degrees.clone(),
        };
        let (mut found, count) = (Vec::new(), degrees.len() as f64);
        for (number, degree) in degrees.into_iter().enumerate() {
            let mut told = |what: &str, part: f64| {
                let what = format!("{problem}: degree {degree}, {what}");
                observe(Progress { what, done: (number as f64 + part) / count });
            };
            found.push(Degree { degree, outcome: verifier.degree(degree, &mut told)? });
        }
        Ok(verifier.finished(found))
    })
}

/// Problems for the forms of a program that has none: names, and text to be appended to it. Their meshes are boxes of
/// `cell`, or of the first cells on which a form holds.
pub fn problems(program: &Program, cell: Option<Cell>) -> (Vec<String>, String) {
    let (mut names, mut text) = (Vec::new(), String::new());
    for checked in program.forms() {
        let cells = match cell {
            Some(cell) => vec![cell],
            None => vec![Cell::Quadrilateral, Cell::Hexahedron],
        };
        let found =
            cells.into_iter().find_map(|cell| Some((cell, checked.dimensions.form(cell.dim())?)));
        let Some((cell, form)) = found else { continue };
        let mut name = format!("verify_{}", form.name);
        while program.form(&name).is_some() {
            name.push('_');
        }
        text.push_str(&solution::problem(&name, form, cell));
        text.push('\n');
        names.push(name);
    }
    (names, text)
}

/// The state of verifying one problem.
struct Verifier<'a> {
    program: &'a Program,
    name: &'a str,
    overrides: Overrides,
    settings: &'a Settings,
    series: Series,
    fields: Vec<String>,
    solution: Vec<(String, String)>,
    /// Solutions that are tried one after another until the form is finite there; empty where it is given.
    candidates: Vec<Vec<(String, String)>>,
    notes: Vec<String>,
}

type Told<'a> = &'a mut dyn FnMut(&str, f64);

impl<'a> Verifier<'a> {
    fn new(
        program: &'a Program,
        name: &'a str,
        overrides: &Overrides,
        folder: &Path,
        settings: &'a Settings,
    ) -> Result<Self, Error> {
        let told = |found| Error::language(program.source(), found);
        let (source, dim) = program.mesh(name, overrides).map_err(told)?;
        // What is wrong with the problem itself is said before anything is changed.
        if let Some(dim) = dim {
            program.problem(name, dim, overrides).map_err(told)?;
        }
        let given = |source: &MeshSource| load(source, folder);
        let series = Series::new(source, settings.cell, given)?;
        let dim = series.cell().dim();
        program.problem(name, dim, overrides).map_err(told)?;
        let checked = program.form_of(name).map_err(told)?;
        let Some(form) = checked.dimensions.form(dim) else {
            let found = program.point_form(&checked.name, dim).err().unwrap_or_default();
            return Err(told(found));
        };
        let mut overrides = overrides.clone();
        for (field, has_flux) in form.fields.iter().zip(fluxes(form)) {
            match has_flux {
                // Without integrals over facets a flux must not leave through the boundary.
                true => overrides.dirichlet.push(field.name.clone()),
                false => {
                    overrides.dirichlet.extend(program.conditions(name, &field.name).map_err(told)?)
                }
            }
        }
        let own = program.manufactured(name, &overrides).map_err(told)?;
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
        // Mistakes in a solution from outside.
        program.problem(name, dim, &verifier.overrides).map_err(told)?;
        Ok(verifier)
    }

    fn set_solution(&mut self, solution: Vec<(String, String)>) {
        self.overrides.manufactured.clone_from(&solution);
        self.solution = solution;
    }

    fn finished(self, degrees: Vec<Degree>) -> Verification {
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

    /// The problem at a degree, with its manufactured solution.
    fn problem(&self, degree: usize) -> Result<Problem, Error> {
        let overrides = Overrides { degree: Some(degree.to_string()), ..self.overrides.clone() };
        let dim = self.series.cell().dim();
        let problem = self.program.problem(self.name, dim, &overrides);
        problem.map_err(|found| Error::language(self.program.source(), found))
    }

    /// All of one degree; the inner error says why it is not possible.
    fn degree(&mut self, degree: usize, told: Told<'_>) -> Result<Result<Findings, String>, Error> {
        told("preparing", 0.0);
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
        if let Err(error) = self.find(&problem, &mut findings, told) {
            findings.error = Some(error.to_string());
        }
        Ok(Ok(findings))
    }

    /// The problem with the first solution at which the form is finite.
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
            let problem = self.problem(degree)?;
            let mesh = self.series.mesh(1)?.clone();
            let target = Target { execution: self.settings.execution, ..Target::native() };
            let tried = Trial::new(&problem, mesh).and_then(|trial| {
                let (mut place, _) = trial.place(&target, None)?;
                trial.finite(&mut place)
            });
            match tried {
                Ok(true) => {
                    self.candidates = candidates;
                    return Ok(Ok(problem));
                }
                Ok(false)
                | Err(RunError::ExactNotFinite { .. } | RunError::AuxNotFinite { .. }) => {}
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

    /// Everything that is to be found.
    fn find(
        &mut self,
        problem: &Problem,
        findings: &mut Findings,
        told: Told<'_>,
    ) -> Result<(), Error> {
        let levels =
            self.series.levels(problem, self.settings.levels.max(2), self.settings.dofs)?;
        let (last, count) = (levels.end - 1, levels.len() as f64);
        for level in levels {
            let part = (level + 1 + self.settings.levels.max(2)).saturating_sub(last + 1) as f64;
            told(&format!("level {level}"), 0.7 * (part - 1.0) / count);
            self.level(problem, level, findings)?;
        }
        // Where coefficients vary on a small scale, coarse meshes do not show the order yet.
        for beyond in last + 1..=last + BEYOND.0 {
            let holds = |orders: &Orders| orders.l2.holds() && orders.h1.holds();
            if findings.orders.iter().all(holds)
                || self.series.dofs(problem, beyond)? > BEYOND.1 * self.settings.dofs
            {
                break;
            }
            told("a level beyond", 0.7);
            self.level(problem, beyond, findings)?;
        }
        told("the Jacobian", 0.8);
        let trial = Trial::new(problem, self.series.mesh(2.min(last))?.clone())?;
        let (mut place, _) = trial.place(&self.target(), None)?;
        findings.taylor = Some(trial.taylor(&mut place)?);
        findings.signs = Some(trial.signs(&mut place)?);
        place.finish().map_err(RunError::from)?;
        if self.settings.kernels {
            let small = if problem.degree <= 2 { 2 } else { 1 };
            let trial = Trial::new(problem, self.series.mesh(small)?.clone())?;
            findings.kernels = kernels::compare(&trial, self.settings, &mut |what| {
                told(what, 0.85);
            })?;
        }
        Ok(())
    }

    /// One more level of the series, and the orders up to it.
    fn level(
        &mut self,
        problem: &Problem,
        level: usize,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let mesh: Mesh = self.series.mesh(level)?.clone();
        let trial = Trial::new(problem, mesh)?;
        let (mut place, _) = trial.place(&self.target(), None)?;
        let found = trial.solve(&mut place, &mut |_| Continue::Yes);
        let cells = trial.setup.on.mesh.n_cells();
        let found = found.map_err(|error| {
            let text = format!("on {cells} cells the solve fails: {error}");
            Error::Run(RunError::Setting(text))
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
        let degrees = trial.setup.elements.fields.iter().enumerate();
        findings.orders = degrees
            .map(|(field, &degree)| Orders {
                l2: order(field, |errors| errors.0, degree as f64 + 1.0),
                h1: order(field, |errors| errors.1, degree as f64),
            })
            .collect();
        Ok(())
    }
}

/// Whether a degree is not possible for a form on these cells.
fn impossible(error: &RunError) -> bool {
    matches!(
        error,
        RunError::Plan(_) | RunError::Element(_) | RunError::Compile(CompileError::Plan(_))
    )
}

fn relies_on_definiteness(solver: &Solver) -> bool {
    let inner = solver.arguments.get("linear").and_then(fem_dsl::problem::Argument::word);
    inner.unwrap_or(&solver.name) == "cg"
}
