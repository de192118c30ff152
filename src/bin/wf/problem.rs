//! What several subcommands do with a file: read it, compile it, make its problems' meshes.

use std::path::Path;

use fem_dsl::check::problem::Overrides;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::problem::Problem;
use fem_dsl::program::{Program, compile_with};
use fem_dsl::source::Source;
use runtime::mesh::{Mesh, load};

use crate::arguments::{Assignment, ProblemArguments};
use crate::blame::Blame;
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

/// Reads a file.
pub(crate) fn read(file: &Path) -> Result<Source, Failure> {
    let bytes = std::fs::read(file).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "name a `.wf` file that is there",
            _ => "name a `.wf` file that you may read",
        };
        Failure::input(format!("cannot read {}: {error}\nhelp: {help}", file.display()))
    })?;
    Ok(Source::from_bytes(file.display().to_string(), &bytes))
}

/// Reads a file and compiles it, with text appended and some of its problems, or one, changed.
pub(crate) fn compile(
    file: &Path,
    appended: &str,
    changed: Option<&str>,
    overrides: &Overrides,
) -> Result<Program, Failure> {
    let mut source = read(file)?;
    if !appended.is_empty() && source.defect().is_none() {
        source = Source::new(source.name(), format!("{}\n{appended}\n", source.text()));
    }
    let (program, diagnostics) = compile_with(&source, changed, overrides);
    let errors: Vec<Diagnostic> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
    match program {
        Some(program) if errors.iter().all(|error| error.code.id().starts_with("E09")) => {
            Ok(program)
        }
        _ => Err(Failure::diagnostics(&source, &errors)),
    }
}

/// An output never replaces the file that it is made of.
pub(crate) fn spare(output: &Path, file: &Path) -> Result<(), Failure> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if real(output).is_some() && real(output) == real(file) {
        return Err(Failure::input(format!(
            "the output {} would replace the file that it is made of\nhelp: name another file",
            output.display()
        )));
    }
    Ok(())
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
    let blame = Blame { program, problem: name, overrides };
    let mesh = load(&source, folder).map_err(|error| blame.mesh(&error))?;
    let problem = program.problem(name, mesh.dim(), overrides).map_err(told)?;
    Ok((problem, mesh))
}
