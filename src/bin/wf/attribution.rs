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
use runtime::problem::{FileStatement, NonFiniteOrigin, PrepareError, RunError};

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

    /// Reports a problem that cannot be set up or solved.
    pub(crate) fn run(&self, problem: &Problem, error: RunError) -> Failure {
        let text = error.to_string();
        match error {
            RunError::Mesh(MeshError::UnknownTags { kind, available, .. })
            | RunError::Periodic(PeriodicError::Mesh(MeshError::UnknownTags {
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
            RunError::Mesh(MeshError::Inner { tag, .. }) => {
                let diagnostic = Diagnostic::new(Code::BadMesh, text).help(
                    "integrate over facets of the boundary; over those inside, a report takes what is the same from both sides (values of fields in `H1`, no gradient and no `n`), and `dirichlet` holds there",
                );
                let remark = "facets between two cells";
                let found = self.program.form_tag(self.problem, &tag, diagnostic, remark);
                Failure::diagnostics(self.program.source(), &[found])
            }
            RunError::Mesh(MeshError::NoSide { tag }) => {
                let diagnostic = Diagnostic::new(Code::BadMesh, text).help(
                    "name sides here; curves and points take `dirichlet u = VALUE on \"tag\";`",
                );
                let remark = "curves or points";
                let found = self.program.form_tag(self.problem, &tag, diagnostic, remark);
                Failure::diagnostics(self.program.source(), &[found])
            }
            // A whole mesh that does not fit into the memory of one process.
            RunError::Periodic(PeriodicError::Mesh(
                MeshError::TooLarge { .. } | MeshError::Memory(_),
            )) => Failure::input(text),
            RunError::Periodic(error) => {
                let diagnostic = Diagnostic::new(Code::BadMesh, error.to_string());
                let tag = error.tag().unwrap_or_default();
                self.at(ErrorOrigin::Periodic(tag), diagnostic.help(error.remedy()), "this side")
            }
            RunError::Unfixed(unfixed) => {
                let found = self.program.undetermined_field(self.problem, &unfixed);
                Failure::diagnostics(self.program.source(), &[found])
            }
            RunError::NotFinite { cause: NonFiniteOrigin::Form(spot), .. } => {
                let at = (problem.form.name.as_str(), problem.form.dim);
                let (place, help) =
                    (spot.to_string(), NonFiniteOrigin::Form(spot.clone()).remedy());
                let read = (&spot.region, &spot.given);
                match self.program.not_finite(at, read, &place, help) {
                    Some(found) => Failure::diagnostics(self.program.source(), &[found]),
                    None => Failure::input(format!("`{}`: {text}", self.problem)),
                }
            }
            RunError::Degenerate(degenerate) => {
                let diagnostic = Diagnostic::new(Code::DegenerateStart, degenerate.to_string())
                    .help(degenerate.remedy());
                self.at(
                    ErrorOrigin::Initial(&degenerate.field),
                    diagnostic,
                    "the solve starts here",
                )
            }
            RunError::Unstable(pair) => {
                let found = self.program.unstable(self.problem, &pair);
                Failure::diagnostics(self.program.source(), &[found])
            }
            RunError::Condition { index, field, source } => {
                let [x, y, z] = source.point;
                let message =
                    format!("the condition on `{field}` is {} at ({x}, {y}, {z})", source.value);
                let diagnostic = Diagnostic::new(Code::NotFinite, message)
                    .help("choose a value that is finite on all of this boundary");
                self.at(ErrorOrigin::Dirichlet(index), diagnostic, "not a number everywhere")
            }
            RunError::AuxNotFinite { name, .. } => {
                let diagnostic = Diagnostic::new(Code::NotFinite, text)
                    .help("choose a value that is finite on all of the mesh");
                self.at(ErrorOrigin::Aux(&name), diagnostic, "not a number everywhere")
            }
            RunError::InitialNotFinite { name, .. } => {
                let diagnostic = Diagnostic::new(Code::NotFinite, text)
                    .help("choose a start that is finite on all of the mesh");
                self.at(ErrorOrigin::Initial(&name), diagnostic, "not a number everywhere")
            }
            RunError::File { taker, name, path, source } => {
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
            RunError::ExactNotFinite { field, .. } => {
                let diagnostic = Diagnostic::new(Code::NotFinite, text)
                    .help("give a solution that is finite on all of the mesh, or leave it out");
                self.at(ErrorOrigin::Exact(&field), diagnostic, "not a number everywhere")
            }
            RunError::ParamNotFinite { name, value } => {
                let message = format!("the parameter `{name}` is {value}");
                let diagnostic = Diagnostic::new(Code::NotFinite, message)
                    .help("a parameter is a finite number");
                self.at(ErrorOrigin::Param(&name), diagnostic, "not a number")
            }
            RunError::Plan(PlanError::Degree { .. }) => {
                let diagnostic = Diagnostic::new(Code::BadDegree, text);
                let remark = format!("the degree is {}", problem.degree);
                self.at(ErrorOrigin::Degree, diagnostic, &remark)
            }
            RunError::Plan(PlanError::Quadrature(unsuited)) => {
                let diagnostic =
                    Diagnostic::new(Code::BadValue, unsuited.to_string()).help(unsuited.remedy());
                self.at(ErrorOrigin::Quadrature, diagnostic, &unsuited.bound())
            }
            // The process with the error reports its source.
            RunError::Elsewhere { text, .. } => Failure::heard(text),
            other => Failure::input(format!("`{}`: {other}", self.problem)),
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
                Some(MeshFormat::Abaqus) => "mend the file there, or save it again",
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
