//! Errors of the library facade.

use crate::render::{Style, render};
use fem_dsl::diagnostic::{Diagnostic, nearest};
use fem_dsl::problem::NullSpaceKind;
use fem_dsl::source::Source;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::export::ExportError;
use kernels_gen::plan::PlanError;
use runtime::files::output::OutputError;
use runtime::mesh::LoadError;
use runtime::problem::{ConvergenceError, DataError, IllPosedError, RunError};
use runtime::solve::OperatorError;
use runtime::space::constraint::affine::AffineError;
use std::fmt;

/// An error of the library. Its debug text is its message, so that `main` may return it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Errors in text of the language, each with its location.
    #[error("{}", render(source_text, diagnostics, Style::Plain).trim_end())]
    Language {
        /// The text.
        source_text: Source,
        /// The mistakes.
        diagnostics: Vec<Diagnostic>,
    },
    /// A file of the language that cannot be read.
    #[error("cannot read {}: {error}\nhelp: name a `.wf` file that you may read", .path.display())]
    Unreadable {
        /// The file.
        path: std::path::PathBuf,
        /// The cause.
        error: std::io::Error,
    },
    /// The mesh cannot be generated or read.
    #[error(transparent)]
    Mesh(#[from] LoadError),
    /// A function of the caller that failed.
    #[error(transparent)]
    Function(Box<dyn std::error::Error + Send + Sync>),
    /// The problem cannot be set up or solved.
    #[error(transparent)]
    Run(RunError),
    /// A form on a mesh, a [`System`](crate::System), cannot be set up or solved: a [`RunError`] with remedies of this
    /// library instead of the language's.
    #[error("{}", of_system(.0, CallLanguage::Rust))]
    System(Box<RunError>),
    /// The mesh cannot be shared by the processes.
    #[error("{0}")]
    Processes(String),
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A picture cannot be drawn or written.
    #[cfg(feature = "pictures")]
    #[error(transparent)]
    Picture(#[from] crate::picture::PictureError),
    /// Unsupported kernels.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A term without a counterpart in another library.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A name that the form or the program does not have.
    #[error("{}", unknown(what, name, known))]
    Unknown {
        /// The kind of the name.
        what: &'static str,
        /// The name.
        name: String,
        /// The available names.
        known: Vec<String>,
    },
    /// Kernels for another CPU.
    #[error("kernels for {isa} do not run here: this processor has {here}")]
    Isa {
        /// The requested instruction set.
        isa: Isa,
        /// The most capable set of this CPU.
        here: Isa,
    },
    /// Several forms, or none, without a name.
    #[error("{}", which(known))]
    WhichForm {
        /// The available forms.
        known: Vec<String>,
    },
    /// A condition on a field that has no DoFs on the boundary.
    #[error(
        "`{field}` is discontinuous: it has no unknowns on the boundary that a condition could fix\n\
         help: write a term over the boundary in the form, or let the field live in H1"
    )]
    Discontinuous {
        /// The field.
        field: String,
    },
    /// A condition on a part of the boundary that has no facets.
    #[error(
        "the condition on `{field}` names no tag, and constrains nothing\nhelp: name tags of the mesh, or take `weakform::ALL`"
    )]
    NoBoundary {
        /// The field.
        field: String,
    },
    /// A product with a Jacobian without a linearisation state.
    #[error(
        "the Jacobian depends on the state, and was taken at none\nhelp: call `linearise(&u)` before `apply` and `diagonal`"
    )]
    NotLinearised,
    /// Meshes between which no function can be transferred.
    #[error(
        "the systems are not on meshes of one hierarchy, or their fields have other elements\n\
         help: take both meshes from one `AdaptiveMesh`, and the same form and degree"
    )]
    NoTransfer,
    /// A vector of another system, or of another length.
    #[error(transparent)]
    Vector(OperatorError),
    /// A time outside of an interval.
    #[error("{time} is no time between {from} and {to}")]
    NotBetween {
        /// The time.
        time: f64,
        /// Start of the interval.
        from: f64,
        /// End of the interval.
        to: f64,
    },
    /// A time that is not finite.
    #[error("steps to the time {time}, which is no number\nhelp: name a finite time")]
    NoTime {
        /// The time.
        time: f64,
    },
    /// A mean value of a field that boundary conditions, or a time derivative, determine already.
    #[error(
        "`{field}` has a condition or a time derivative, so its mean follows\n\
         help: leave `mean` of `{field}` out"
    )]
    MeanOfFixed {
        /// The field.
        field: String,
    },
    /// A wrong number of values.
    #[error("`{name}` takes {expected} numbers, but there are {found}")]
    Numbers {
        /// The name of the item.
        name: String,
        /// The expected number of values.
        expected: usize,
        /// The number of values found.
        found: usize,
    },
    /// A right-hand side with an entry that is not finite.
    #[error("the load has an entry {value}\nhelp: its entries must be finite numbers")]
    LoadNotFinite {
        /// The entry.
        value: f64,
    },
    /// A point without a value.
    #[error("{point:?} lies outside of the mesh\nhelp: name a point inside of it")]
    Outside {
        /// The point.
        point: [f64; 3],
    },
    /// A node or a component that a field does not have.
    #[error(
        "`{field}` has no component {component} at node {node}\n\
         help: it has {nodes} nodes with {components} {}, both counted from 0",
        if *.components == 1 { "component" } else { "components" }
    )]
    NoUnknown {
        /// The field.
        field: String,
        /// The node.
        node: usize,
        /// The component.
        component: usize,
        /// Its number of nodes.
        nodes: usize,
        /// Components per node.
        components: usize,
    },
    /// Invalid affine constraints.
    #[error(transparent)]
    Affine(#[from] AffineError),
    /// A solve of a form whose time derivatives have no values.
    #[error(
        "the form has `{}`, which nothing gives outside of a scheme\n\
         help: go through time, `System::begin` and `System::advance`, or say what it is, `System::set_rate`",
        if *.order == 1 { "dt(u)" } else { "dt(dt(u))" }
    )]
    NoRate {
        /// The order of the derivative.
        order: usize,
    },
    /// A time derivative that the form does not have.
    #[error("the form has no time derivative of order {order}\nhelp: leave `set_rate` out")]
    Steady {
        /// The order of the derivative.
        order: usize,
    },
    /// An equation without free DoFs: all have an essential condition.
    #[error(
        "no unknown of the equation is free: all have an essential condition, or there are none\n\
         help: leave out the equation, or a condition"
    )]
    NothingFree,
    /// A value with the wrong number of components.
    #[error("`{name}` has {expected} components, but its value has {found}")]
    Components {
        /// The name of the item.
        name: String,
        /// Its components.
        expected: usize,
        /// Components of the value.
        found: usize,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The language of the calls that remedies name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallLanguage {
    /// This library.
    Rust,
    /// The Python package.
    Python,
}

impl Error {
    /// Returns the message with remedies as calls in a language; as text it has those in Rust.
    pub fn message_in(&self, calls: CallLanguage) -> String {
        match self {
            Self::System(error) => of_system(error, calls),
            other => other.to_string(),
        }
    }

    pub(crate) fn language(source: &Source, diagnostics: Vec<Diagnostic>) -> Self {
        Self::Language { source_text: source.clone(), diagnostics }
    }

    /// Converts the error to one of a system, rather than of a problem of the language.
    pub(crate) fn of_system(self) -> Self {
        match self {
            Self::Run(error) => Self::System(Box::new(error)),
            other => other,
        }
    }

    pub(crate) fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known = known.into_iter().map(str::to_owned).collect();
        Self::Unknown { what, name: name.to_owned(), known }
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Data(DataError::Prescribed(error)) => match error.downcast::<Self>() {
                Ok(own) => *own,
                Err(error) => Self::Run(DataError::Prescribed(error).into()),
            },
            error => Self::Run(error),
        }
    }
}

/// Returns the position of a name among the known ones.
pub(crate) fn index<'a>(
    what: &'static str,
    name: &str,
    mut known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, Error> {
    let all = known.clone();
    known.position(|known| known == name).ok_or_else(|| Error::unknown(what, name, all))
}

/// Returns the message of a system, with remedies as calls.
fn of_system(error: &RunError, calls: CallLanguage) -> String {
    use CallLanguage::{Python, Rust};
    let fixed = |field: &str| {
        let (values, before) = match calls {
            Rust => ("ALL, |_| 0.0", ", before `build`"),
            Python => ("0.0", ""),
        };
        format!(
            "add a condition, `.dirichlet(\"{field}\", {values})`, or a mean, `.mean(\"{field}\", 0.0)`{before}, \
             or give the form a term that fixes it"
        )
    };
    let help = match error {
        RunError::Data(DataError::NoAux { name }) => match calls {
            Rust => {
                format!(
                    "give it before `build`, `.aux(\"{name}\", |x| …)`, or all data by `.data(…)`"
                )
            }
            Python => format!("give it to `on`, `data={{\"{name}\": …}}`"),
        },
        RunError::IllPosed(IllPosedError::Unfixed(unfixed)) => match unfixed.null_space {
            NullSpaceKind::Constant => fixed(&unfixed.field),
            NullSpaceKind::Part { .. } => format!(
                "let a condition, `.dirichlet(\"{}\", …)`, reach each part, or mesh the parts as one: nodes that lie in one place \
                 and are not merged join nothing",
                unfixed.field
            ),
            NullSpaceKind::Motion(ref motion) => {
                let (field, component, vertex) = (&unfixed.field, motion.component, motion.vertex);
                let call = match calls {
                    Rust => format!(
                        "dirichlet_component(\"{field}\", {component}, Boundary::Vertex({vertex:?}), |_| 0.0)"
                    ),
                    Python => {
                        format!("dirichlet(\"{field}\", 0.0, component={component}, at={vertex:?})")
                    }
                };
                format!("add a component at a vertex that this rigid motion moves most, `.{call}`")
            }
            _ => return error.to_string(),
        },
        RunError::IllPosed(IllPosedError::Singular(singular)) if singular.free => {
            fixed(&singular.name)
        }
        RunError::Convergence(ConvergenceError::LoadStep { steps, .. }) => {
            let steps = 2 * steps;
            let argument = match calls {
                Rust => format!(
                    "`(\"steps\".to_owned(), Argument::Number({steps}.0))` among the arguments of the solver"
                ),
                Python => format!("`solver=\"newton(steps: {steps})\"`"),
            };
            format!("take more of them: {argument}")
        }
        _ => return error.to_string(),
    };
    let text = error.to_string();
    let said = text.split("\nhelp: ").next().unwrap_or_default();
    format!("{said}\nhelp: {help}")
}

fn unknown(what: &str, name: &str, known: &[String]) -> String {
    let help = match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("there are {}", known.join(", ")),
    };
    format!("there is no {what} `{name}`\nhelp: {help}")
}

fn which(known: &[String]) -> String {
    match known {
        [] => "there is no form".to_owned(),
        _ => format!(
            "there are several forms: {}\nhelp: name one of them, by `Emission::form`",
            known.join(", ")
        ),
    }
}
