//! Errors after the check of a file, attributed to the responsible statement: an error of the runtime, and the program
//! with the command line's overrides → [`Failure`].

use std::io::ErrorKind;

use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::{Diagnostic, Severity};
use fem_dsl::problem::{Problem, unstable};
use fem_dsl::program::{ErrorOrigin, Program};
use kernels_gen::plan::PlanError;
use runtime::files::input::FileError;
use runtime::mesh::initial::PartError;
use runtime::mesh::periodic::PeriodicError;
use runtime::mesh::read::{MeshFormat, ReadError};
use runtime::mesh::{LoadError, MeshError};
use runtime::problem::{
    ConvergenceError, DataError, FileStatement, IllPosedError, NonFiniteOrigin, PrepareError,
    RunError, SetupError,
};

use crate::console::Console;
use crate::report::Failure;

/// A problem of a program with the command line's overrides.
#[derive(Clone, Copy)]
pub(crate) struct ErrorAttribution<'a> {
    pub(crate) program: &'a Program,
    pub(crate) problem: &'a str,
    pub(crate) overrides: &'a Overrides,
}

impl ErrorAttribution<'_> {
    fn at(&self, item: ErrorOrigin<'_>, diagnostic: Diagnostic, remark: &str) -> Failure {
        let found = self.program.attribute(self.problem, self.overrides, item, diagnostic, remark);
        Failure::diagnostics(self.program.source(), &[found])
    }

    /// Reports a mesh that cannot be obtained.
    pub(crate) fn mesh(&self, error: &LoadError) -> Failure {
        let mut diagnostic = Diagnostic::new(Code::BadMesh, error.to_string());
        let (remark, help) = match error {
            LoadError::Open(ReadError::Open { error, .. }) => {
                ("this file", self.how_to_open(error))
            }
            LoadError::Open(_) => ("this file", ""),
            LoadError::File { error, format, .. } => ("this file", how_to_mend(error, *format)),
            LoadError::Refine { error, .. } if is_folded(error) => (
                "so often",
                "new nodes of the boundary move too far for cells so coarse: begin with finer ones",
            ),
            LoadError::Refine { .. } => ("so often", ""),
            _ => ("this mesh", ""),
        };
        if !help.is_empty() {
            diagnostic = diagnostic.help(help);
        }
        let item = match error {
            LoadError::Refine { .. } => ErrorOrigin::Refine,
            _ => ErrorOrigin::Mesh,
        };
        self.at(item, diagnostic, remark)
    }

    fn how_to_open(&self, error: &std::io::Error) -> &'static str {
        match (error.kind(), &self.overrides.mesh) {
            (ErrorKind::NotFound, None) => "the path starts from the folder of the `.wf` file",
            (ErrorKind::NotFound, Some(_)) => "the path of --mesh starts from the current folder",
            _ => "name a mesh file that you may read",
        }
    }

    /// Reports known problems before the solve.
    pub(crate) fn warn(&self, problem: &Problem, console: &Console) {
        let Some(pair) = unstable(&problem.form, problem.degree) else { return };
        let found = self.program.unstable(self.problem, &pair);
        let found = Diagnostic { severity: Severity::Warning, ..found };
        console.warn_of(self.program.source(), vec![found]);
    }

    /// Reports a problem that cannot be prepared.
    pub(crate) fn prepare(&self, error: PrepareError) -> Failure {
        match error {
            PrepareError::Language(found) => Failure::diagnostics(self.program.source(), &found),
            PrepareError::Mesh(error) => self.mesh(&error),
            PrepareError::Part(of) => {
                let (problem, error) = *of;
                self.part(&problem, error)
            }
        }
    }

    /// Reports a mesh that cannot be partitioned.
    pub(crate) fn part(&self, problem: &Problem, error: PartError) -> Failure {
        match error {
            PartError::Few(error) => Failure::input(error.to_string()),
            PartError::Load(error) => self.mesh(&error),
            PartError::Periodic(error) => self.run(problem, error.into()),
        }
    }

    /// Reports diagnostics of the program.
    fn found(&self, found: Diagnostic) -> Failure {
        Failure::diagnostics(self.program.source(), &[found])
    }

    /// Reports an error without a statement.
    fn unattributed(&self, text: &str) -> Failure {
        Failure::input(format!("`{}`: {text}", self.problem))
    }

    /// Reports a problem that cannot be set up or solved.
    pub(crate) fn run(&self, problem: &Problem, error: RunError) -> Failure {
        let text = error.to_string();
        match error {
            RunError::Setup(error) => self.setup(problem, *error, text),
            RunError::Data(error) => self.data(error, text),
            RunError::IllPosed(IllPosedError::Unfixed(unfixed)) => {
                self.found(self.program.undetermined_field(self.problem, &unfixed))
            }
            RunError::IllPosed(IllPosedError::Unstable(pair)) => {
                // `warn` has said the rest.
                let mut found = self.program.unstable(self.problem, &pair);
                let (field, partner) = (&pair.field, &pair.partner);
                found.message = format!(
                    "the matrix is singular: the spaces of `{field}` and `{partner}` are not inf-sup stable"
                );
                found.labels.truncate(1);
                self.found(found)
            }
            RunError::Convergence(error) => self.convergence(problem, error, &text),
            // The process with the error reports its source.
            RunError::Elsewhere { text, .. } => Failure::heard(text),
            _ => self.unattributed(&text),
        }
    }

    /// Reports a mesh, an element or a kernel that cannot be made.
    fn setup(&self, problem: &Problem, error: SetupError, text: String) -> Failure {
        match error {
            SetupError::Mesh(MeshError::UnknownTags { kind, available, .. })
            | SetupError::Periodic(PeriodicError::Mesh(MeshError::UnknownTags {
                kind,
                available,
                ..
            })) => {
                let found = match kind {
                    "cell" => {
                        self.program.unknown_cell_tags(self.problem, self.overrides, &available)
                    }
                    _ => self.program.unknown_tags(self.problem, self.overrides, &available),
                };
                match found.is_empty() {
                    // A report contains the name.
                    true => Failure::input(text),
                    false => Failure::diagnostics(self.program.source(), &found),
                }
            }
            SetupError::Mesh(MeshError::Inner { tag, .. }) => {
                let diagnostic = Diagnostic::new(Code::BadMesh, text).help(
                    "integrate over facets of the boundary; over those inside, a report takes what is the same from both sides (values of fields in `H1`, no gradient and no `n`), and `dirichlet` holds there",
                );
                let remark = "facets between two cells";
                self.found(self.program.form_tag(self.problem, &tag, diagnostic, remark))
            }
            SetupError::Mesh(MeshError::NoSide { tag }) => {
                let diagnostic = Diagnostic::new(Code::BadMesh, text).help(
                    "name sides here; curves and points take `dirichlet u = VALUE on \"tag\";`",
                );
                let remark = "curves or points";
                self.found(self.program.form_tag(self.problem, &tag, diagnostic, remark))
            }
            // A whole mesh that does not fit into the memory of one process.
            SetupError::Periodic(PeriodicError::Mesh(
                MeshError::TooLarge { .. } | MeshError::Memory(_),
            )) => Failure::input(text),
            SetupError::Periodic(error) => {
                let diagnostic = Diagnostic::new(Code::BadMesh, error.to_string());
                let tag = error.tag().unwrap_or_default();
                self.at(ErrorOrigin::Periodic(tag), diagnostic.help(error.remedy()), "this side")
            }
            SetupError::Plan(PlanError::Degree { .. }) => {
                let diagnostic = Diagnostic::new(Code::BadDegree, text);
                let remark = format!("the degree is {}", problem.degree);
                self.at(ErrorOrigin::Degree, diagnostic, &remark)
            }
            SetupError::Plan(PlanError::Quadrature(unsuited)) => {
                let diagnostic =
                    Diagnostic::new(Code::BadValue, unsuited.to_string()).help(unsuited.remedy());
                self.at(ErrorOrigin::Quadrature, diagnostic, &unsuited.bound())
            }
            _ => self.unattributed(&text),
        }
    }

    /// Reports a condition, a datum or a parameter without a usable value.
    fn data(&self, error: DataError, text: String) -> Failure {
        let not_finite = |item: ErrorOrigin<'_>, message: String, help: &str| {
            let diagnostic = Diagnostic::new(Code::NotFinite, message).help(help);
            self.at(item, diagnostic, "not a number everywhere")
        };
        match error {
            DataError::Condition { index, field, source } => {
                let [x, y, z] = source.point;
                let message =
                    format!("the condition on `{field}` is {} at ({x}, {y}, {z})", source.value);
                let help = "choose a value that is finite on all of this boundary";
                not_finite(ErrorOrigin::Dirichlet(index), message, help)
            }
            DataError::AuxNotFinite { name, .. } => {
                let help = "choose a value that is finite on all of the mesh";
                not_finite(ErrorOrigin::Aux(&name), text, help)
            }
            DataError::InitialNotFinite { name, .. } => {
                let help = "choose a start that is finite on all of the mesh";
                not_finite(ErrorOrigin::Initial(&name), text, help)
            }
            DataError::ExactNotFinite { field, .. } => {
                let help = "give a solution that is finite on all of the mesh, or leave it out";
                not_finite(ErrorOrigin::Exact(&field), text, help)
            }
            DataError::ParamNotFinite { name, value } => {
                let message = format!("the parameter `{name}` is {value}");
                let diagnostic = Diagnostic::new(Code::NotFinite, message)
                    .help("a parameter is a finite number");
                self.at(ErrorOrigin::Param(&name), diagnostic, "not a number")
            }
            DataError::File { taker, name, path, source } => {
                let said = source.to_string();
                let mut parts = said.split("\nhelp: ");
                let message = format!("{}: {}", path.display(), parts.next().unwrap_or_default());
                let missing = matches!(*source, FileError::Open(ref error) if error.kind() == ErrorKind::NotFound);
                let missing = missing.then_some(
                    "the path starts from the folder of the `.wf` file, that of `--aux` from the current folder",
                );
                let diagnostic =
                    Diagnostic::new(Code::BadFile, message).help_if(parts.next().or(missing));
                let item = match taker {
                    FileStatement::Data(number) => ErrorOrigin::Data(number),
                    FileStatement::Initial => ErrorOrigin::Initial(&name),
                };
                self.at(item, diagnostic, "this file")
            }
            _ => self.unattributed(&text),
        }
    }

    /// Reports a solve without a solution.
    fn convergence(&self, problem: &Problem, error: ConvergenceError, text: &str) -> Failure {
        match error {
            ConvergenceError::NotFinite { cause: NonFiniteOrigin::Form(spot), .. } => {
                let at = (problem.form.name.as_str(), problem.form.dim);
                let (place, help) =
                    (spot.to_string(), NonFiniteOrigin::Form(spot.clone()).remedy());
                let read = (&spot.region, &spot.given);
                match self.program.not_finite(at, read, &place, help) {
                    Some(found) => self.found(found),
                    None => self.unattributed(text),
                }
            }
            ConvergenceError::Degenerate(degenerate) => {
                let diagnostic = Diagnostic::new(Code::DegenerateStart, degenerate.to_string())
                    .help(degenerate.remedy());
                let item = ErrorOrigin::Initial(&degenerate.field);
                self.at(item, diagnostic, "the solve starts here")
            }
            _ => self.unattributed(text),
        }
    }
}

/// Returns whether a refined cell is inverted.
fn is_folded(error: &PeriodicError) -> bool {
    matches!(error, PeriodicError::Mesh(MeshError::Inverted { .. }))
}

fn how_to_mend(error: &ReadError, format: Option<MeshFormat>) -> &'static str {
    match error {
        ReadError::Syntax { .. } | ReadError::Count { .. } | ReadError::UnknownNode { .. } => {
            match format {
                Some(MeshFormat::Gmsh) | None => {
                    "the file is damaged or no Gmsh mesh: save it again, in format 4.1 or 2.2"
                }
                Some(MeshFormat::Vtu) => "the file is damaged or no VTU mesh: save it again",
                Some(MeshFormat::Vtk) => "the file is damaged or no legacy VTK mesh: save it again",
                Some(MeshFormat::Abaqus | MeshFormat::Mfem) => {
                    "mend the file there, or save it again"
                }
            }
        }
        ReadError::Format => {
            "Gmsh reads more formats, and saves its own: `gmsh FILE -save -o part.msh`"
        }
        ReadError::NodeTwice { .. } => {
            "give each node a number of its own, and save the mesh again"
        }
        ReadError::Missing(_) => "save the mesh again: the file is not whole",
        ReadError::Mesh(MeshError::Inverted { .. }) => {
            "mend the mesh there: a reversed or collapsed cell, or a curved side that folds over"
        }
        ReadError::Mesh(MeshError::Hanging { .. }) => {
            "make the mesh conforming: join the parts before meshing (`Coherence;` or `BooleanFragments` in Gmsh), so that \
             cells meet in whole facets"
        }
        ReadError::Mesh(
            MeshError::Overlap { .. }
            | MeshError::Inside { .. }
            | MeshError::Gap { .. }
            | MeshError::Branching { .. },
        ) => "mend the mesh there: cells meet in whole facets, two in each and on its two sides",
        // These messages contain their own help.
        _ => "",
    }
}
