//! What several subcommands do with a file: read it, compile it, make its problems' meshes.

use std::path::Path;

use fem_dsl::check::problem::Overrides;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::problem::Problem;
use fem_dsl::program::Program;
use fem_dsl::source::Source;
use runtime::mesh::{Mesh, load};

use crate::arguments::{Assignment, ProblemArguments};
use crate::report::Failure;

/// Stack of the threads that run kernels: private arrays of high degrees take megabytes.
const STACK: usize = 64 << 20;

/// Runs `work` with `threads` threads, or as many as there are cores.
pub(crate) fn with_threads<T: Send>(
    threads: Option<u16>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.map_or(0, usize::from))
        .stack_size(STACK)
        .build()?;
    Ok(pool.install(work))
}

/// Reads a file and compiles it, with text appended.
pub(crate) fn compile(file: &Path, appended: &str) -> Result<Program, Failure> {
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::input(format!("cannot read {}: {error}", file.display())))?;
    let mut source = Source::from_bytes(file.display().to_string(), &bytes);
    if !appended.is_empty() && source.defect().is_none() {
        source = Source::new(source.name(), format!("{}\n{appended}\n", source.text()));
    }
    let (program, diagnostics) = fem_dsl::program::compile(&source);
    let errors: Vec<Diagnostic> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    match program {
        Some(program) if errors.iter().all(|error| error.code.id().starts_with("E09")) => {
            Ok(program)
        }
        _ => Err(Failure::diagnostics(&source, &errors)),
    }
}

/// The command line's replacements.
pub(crate) fn overrides(arguments: &ProblemArguments) -> Overrides {
    let pairs = |list: &[Assignment]| -> Vec<(String, String)> {
        list.iter().map(|item| (item.name.clone(), item.value.clone())).collect()
    };
    Overrides {
        mesh: arguments.mesh.clone(),
        degree: arguments.degree.map(|degree| degree.to_string()),
        quadrature: arguments.quadrature.map(|degree| degree.to_string()),
        params: pairs(&arguments.param),
        aux: pairs(&arguments.aux),
        ..Overrides::default()
    }
}

/// The names of the problems that are meant.
pub(crate) fn chosen(program: &Program, name: Option<&str>) -> Result<Vec<String>, Failure> {
    let names: Vec<String> = program.problems().map(|head| head.name.to_owned()).collect();
    match name {
        Some(name) => Ok(vec![name.to_owned()]),
        None if names.is_empty() => Err(Failure::input(format!(
            "{} has no problem to solve\nhelp: add `problem NAME solves FORM {{ mesh = …; }}`",
            program.source().name()
        ))),
        None => Ok(names),
    }
}

/// Makes the mesh of a problem and checks the problem on it.
pub(crate) fn prepare(
    program: &Program,
    name: &str,
    file: &Path,
    overrides: &Overrides,
) -> Result<(Problem, Mesh), Failure> {
    let told = |found: Vec<Diagnostic>| Failure::diagnostics(program.source(), &found);
    let (source, dim) = program.mesh(name, overrides).map_err(told)?;
    // What is wrong with the problem itself is said before a mesh is read.
    if let Some(dim) = dim {
        program.problem(name, dim, overrides).map_err(told)?;
    }
    let folder = match (&overrides.mesh, file.parent()) {
        (None, Some(folder)) => folder,
        _ => Path::new(""),
    };
    let mesh = load(&source, folder)?;
    let problem = program.problem(name, mesh.dim(), overrides).map_err(told)?;
    Ok((problem, mesh))
}
