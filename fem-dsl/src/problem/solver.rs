//! Solver settings of a problem, typed: [`SolverSettings`]. Settings left out are chosen when the solve is planned.

use super::keyword::KeywordCall;
use super::preconditioner::PreconditionerSettings;
use std::fmt;

/// Method of a linear solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Conjugate gradients.
    Cg,
    /// Minimal residuals, for symmetric matrices.
    Minres,
    /// Restarted generalised minimal residuals.
    Gmres,
    /// GMRES with a preconditioner that may change from iteration to iteration.
    Fgmres,
    /// Stabilised biconjugate gradients.
    Bicgstab,
    /// Factorisation of the matrix.
    Direct,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 6] =
        [Self::Cg, Self::Minres, Self::Gmres, Self::Fgmres, Self::Bicgstab, Self::Direct];

    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::Cg => "cg",
            Self::Minres => "minres",
            Self::Gmres => "gmres",
            Self::Fgmres => "fgmres",
            Self::Bicgstab => "bicgstab",
            Self::Direct => "direct",
        }
    }

    /// The method of a word of the language.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.word() == word)
    }
}

/// Settings of one linear solve.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSettings {
    /// The method.
    pub method: Method,
    /// The relative tolerance.
    pub rtol: Option<f64>,
    /// The absolute tolerance.
    pub atol: Option<f64>,
    /// The largest number of iterations.
    pub max_iterations: Option<usize>,
    /// The length of a cycle of GMRES or FGMRES.
    pub restart: Option<usize>,
    /// The preconditioner.
    pub preconditioner: Option<PreconditionerSettings>,
}

impl LinearSettings {
    /// A method whose settings are all left out.
    pub fn new(method: Method) -> Self {
        Self {
            method,
            rtol: None,
            atol: None,
            max_iterations: None,
            restart: None,
            preconditioner: None,
        }
    }
}

/// Forcing terms of Newton's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forcing {
    /// Eisenstat and Walker's second choice.
    EisenstatWalker,
    /// Linear systems that are solved to rounding.
    Exact,
}

impl Forcing {
    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::EisenstatWalker => "eisenstat_walker",
            Self::Exact => "exact",
        }
    }
}

/// Line search of Newton's method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSearch {
    /// Backtracking.
    Backtracking,
    /// Full steps.
    None,
}

impl LineSearch {
    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::Backtracking => "backtracking",
            Self::None => "none",
        }
    }
}

/// Path of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadPath {
    /// By arc length, beyond the folds where the load turns.
    ArcLength,
}

impl LoadPath {
    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::ArcLength => "arc_length",
        }
    }
}

/// Settings of Newton's method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewtonSettings {
    /// The relative tolerance.
    pub rtol: Option<f64>,
    /// The absolute tolerance.
    pub atol: Option<f64>,
    /// The largest number of steps.
    pub max_iterations: Option<usize>,
    /// The largest number of linear iterations in a step.
    pub max_inner: Option<usize>,
    /// The method of the linear solves.
    pub linear: Option<Method>,
    /// The forcing terms.
    pub forcing: Option<Forcing>,
    /// The line search.
    pub line_search: Option<LineSearch>,
    /// The preconditioner of the linear solves.
    pub preconditioner: Option<PreconditionerSettings>,
    /// The length of a cycle of GMRES or FGMRES.
    pub restart: Option<usize>,
    /// The number of load steps.
    pub steps: Option<usize>,
    /// The parameter that grows with the load; boundary values grow without one.
    pub load: Option<String>,
    /// The path of the load, if it is not a straight one.
    pub path: Option<LoadPath>,
    /// Number of the passage of a path through the full load.
    pub crossing: Option<usize>,
}

/// Solver of a problem with its settings. [`fmt::Display`] writes it as the language has it.
///
/// ```
/// use fem_dsl::problem::{LinearSettings, Method, SolverSettings};
///
/// let cg = LinearSettings { rtol: Some(1e-8), ..LinearSettings::new(Method::Cg) };
/// assert_eq!(SolverSettings::from(cg).to_string(), "cg(rtol: 1e-8)");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum SolverSettings {
    /// One linear solve.
    Linear(LinearSettings),
    /// Newton's method.
    Newton(NewtonSettings),
}

impl From<LinearSettings> for SolverSettings {
    fn from(settings: LinearSettings) -> Self {
        Self::Linear(settings)
    }
}

impl From<NewtonSettings> for SolverSettings {
    fn from(settings: NewtonSettings) -> Self {
        Self::Newton(settings)
    }
}

impl SolverSettings {
    /// The word of the language.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Linear(settings) => settings.method.word(),
            Self::Newton(_) => "newton",
        }
    }

    /// The method of linear solves, where it is named.
    pub fn method(&self) -> Option<Method> {
        match self {
            Self::Linear(settings) => Some(settings.method),
            Self::Newton(settings) => settings.linear,
        }
    }

    /// The length of a cycle of GMRES or FGMRES.
    pub fn restart(&self) -> Option<usize> {
        match self {
            Self::Linear(settings) => settings.restart,
            Self::Newton(settings) => settings.restart,
        }
    }

    /// The preconditioner, where it is named.
    pub fn preconditioner(&self) -> Option<&PreconditionerSettings> {
        match self {
            Self::Linear(settings) => settings.preconditioner.as_ref(),
            Self::Newton(settings) => settings.preconditioner.as_ref(),
        }
    }

    /// The relative and the absolute tolerance.
    pub fn tolerances(&self) -> [Option<f64>; 2] {
        match self {
            Self::Linear(settings) => [settings.rtol, settings.atol],
            Self::Newton(settings) => [settings.rtol, settings.atol],
        }
    }

    /// The largest number of iterations, of Newton's method of steps.
    pub fn max_iterations(&self) -> Option<usize> {
        match self {
            Self::Linear(settings) => settings.max_iterations,
            Self::Newton(settings) => settings.max_iterations,
        }
    }
}

impl fmt::Display for SolverSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [rtol, atol] = self.tolerances();
        let made = KeywordCall::new(self.word())
            .number("rtol", rtol)
            .number("atol", atol)
            .with("max_iterations", self.max_iterations());
        let made = match self {
            Self::Linear(_) => made,
            Self::Newton(settings) => made
                .with("max_inner", settings.max_inner)
                .with("linear", settings.linear.map(Method::word))
                .with("forcing", settings.forcing.map(Forcing::word))
                .with("line_search", settings.line_search.map(LineSearch::word))
                .with("steps", settings.steps)
                .with("load", settings.load.as_ref())
                .with("path", settings.path.map(LoadPath::word))
                .with("crossing", settings.crossing),
        };
        made.with("restart", self.restart()).with("preconditioner", self.preconditioner()).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{BlockSettings, MultigridSettings};

    #[test]
    fn settings_are_written_as_the_language_has_them() {
        let levels = MultigridSettings { degree: Some(4), ..MultigridSettings::default() };
        let fields = vec![
            ("u".to_owned(), BlockSettings::Multigrid(levels)),
            ("p".to_owned(), BlockSettings::Mass),
        ];
        let preconditioner = Some(PreconditionerSettings::Block(fields));
        let fgmres = LinearSettings {
            rtol: Some(1e-8),
            restart: Some(50),
            preconditioner,
            ..LinearSettings::new(Method::Fgmres)
        };
        assert_eq!(
            SolverSettings::from(fgmres).to_string(),
            "fgmres(rtol: 1e-8, restart: 50, preconditioner: block(u: multigrid(degree: 4), p: mass))"
        );
        assert_eq!(SolverSettings::from(LinearSettings::new(Method::Direct)).to_string(), "direct");
        let newton = NewtonSettings {
            linear: Some(Method::Direct),
            forcing: Some(Forcing::Exact),
            steps: Some(3),
            load: Some("f".to_owned()),
            ..NewtonSettings::default()
        };
        assert_eq!(
            SolverSettings::from(newton).to_string(),
            "newton(linear: direct, forcing: exact, steps: 3, load: f)"
        );
    }
}
