//! Common operations of subcommands on a file: reading, compiling, and creating the meshes of its problems.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{MeshSource, Problem};
use fem_dsl::program::{Program, compile_with};
use fem_dsl::source::{MAX_BYTES, Source};
use runtime::files::input::tables_in;
use runtime::mesh::initial::{InitialMesh, begin};
use runtime::mesh::refine::forest::refined;
use runtime::mesh::{LoadError, Mesh, load};
use runtime::problem::{prepare, prepare_with};
use runtime::processes::ProcessGroup;

use crate::arguments::{Assignment, ProblemArguments};
use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::report::Failure;

/// Stack size of the threads that run kernels: private arrays of high degrees take megabytes.
const STACK: usize = 64 << 20;

/// Memory of a thread in addition to its stack.
const SPARE: usize = 1 << 20;

/// The name of standard input in messages.
const STDIN: &str = "<stdin>";

/// Runs `work` with `threads` threads; by default with as many as there are cores, or as can be started.
pub(crate) fn with_threads<T: Send>(
    threads: Option<u16>,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = threads.map_or(cores, usize::from);
    let mut count = wanted;
    loop {
        let error = match start(count) {
            Ok(pool) => {
                // Each thread allocates its arena before the remaining memory is examined.
                pool.broadcast(|_| drop(std::hint::black_box(Vec::<u8>::with_capacity(1))));
                return Ok(pool.install(work));
            }
            Err(error) => error,
        };
        let plural = if count == 1 { "" } else { "s" };
        let what = format!(
            "cannot start {count} thread{plural} with {} MiB of stack each: {error}",
            STACK >> 20
        );
        let room = "raise what the system allows: processes (`ulimit -u`, or `pids.max` of the control group) and \
                    address space (`ulimit -v`)";
        if threads.is_none() && count > 1 {
            count /= 2;
            tracing::warn!("{what}; fewer are tried\nhelp: {room}");
            continue;
        }
        let fewer = match (threads, wanted > cores) {
            (None, _) => String::new(),
            (Some(_), true) => format!("take fewer, `--threads {cores}`, or "),
            (Some(_), false) => "take fewer, `--threads 1`, or ".to_owned(),
        };
        return Err(Failure::input(format!("{what}\nhelp: {fewer}{room}")));
    }
}

/// Starts threads, if all of them fit into memory: a thread that starts without available memory would abort the
/// program.
fn start(count: usize) -> Result<rayon::ThreadPool, String> {
    let room = |_| {
        let mut stack: Vec<u8> = Vec::new();
        stack.try_reserve_exact(STACK + SPARE).map(|()| std::hint::black_box(stack))
    };
    let rooms: Result<Vec<_>, _> = (0..=count).map(room).collect();
    rooms.map(drop).map_err(|_| "there is not enough memory".to_owned())?;
    let builder = rayon::ThreadPoolBuilder::new().num_threads(count).stack_size(STACK);
    builder.build().map_err(|error| error.to_string())
}

/// Returns the name of a file in messages.
pub(crate) fn called(file: &Path) -> String {
    if file == Path::new("-") { STDIN.to_owned() } else { file.display().to_string() }
}

/// Reads a file, or standard input for `-`.
pub(crate) fn read(file: &Path) -> Result<Source, Failure> {
    if file == Path::new("-") {
        let bytes = bounded(std::io::stdin().lock()).map_err(|error| {
            Failure::input(format!(
                "cannot read {STDIN}: {error}\nhelp: give it a text, as in `wf check - < a.wf`"
            ))
        })?;
        return Ok(
            Source::from_bytes(called(file), &bytes).in_folder(Some(tables_in(Path::new("."))))
        );
    }
    let bytes = File::open(file).and_then(bounded).map_err(|error| {
        let help = match error.kind() {
            std::io::ErrorKind::NotFound => "name a `.wf` file that is there",
            _ => "name a `.wf` file that you may read",
        };
        Failure::input(format!("cannot read {}: {error}\nhelp: {help}", file.display()))
    })?;
    let folder = tables_in(file.parent().unwrap_or(Path::new(".")));
    Ok(Source::from_bytes(called(file), &bytes).in_folder(Some(folder)))
}

/// Reads the whole input, or slightly more than the size limit: some files have no end.
fn bounded(input: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // A byte order mark does not count.
    let enough = MAX_BYTES as u64 + 4;
    input.take(enough).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Compiles a text, with some of its problems, or one, overridden. Prints warnings.
pub(crate) fn compile(
    source: &Source,
    changed: Option<&str>,
    overrides: &Overrides,
    console: &Console,
) -> Result<Program, Failure> {
    let (program, diagnostics) = compile_with(source, changed, overrides);
    let errors = console.warn_of(source, diagnostics);
    match program {
        Some(program) if errors.iter().all(|error| error.code.id().starts_with("E09")) => {
            Ok(program)
        }
        _ => Err(Failure::diagnostics(source, &errors)),
    }
}

/// Returns a text with an appended line.
pub(crate) fn appended(source: &Source, text: &str) -> Source {
    let made = Source::new(source.name(), format!("{}\n{text}\n", source.text()));
    made.in_folder(source.folder().cloned())
}

/// Returns the command line's overrides.
pub(crate) fn overrides(arguments: &ProblemArguments) -> Overrides {
    let pairs = |list: &[Assignment]| -> Vec<(String, String)> {
        list.iter().map(|item| (item.name.clone(), item.value.clone())).collect()
    };
    Overrides {
        mesh: arguments.mesh.clone(),
        refine: arguments.refine.map(|times| times.to_string()),
        degree: arguments.degree.map(|degree| degree.to_string()),
        quadrature: arguments.quadrature.map(|quadrature| quadrature.to_string()),
        solver: arguments.solver.clone(),
        params: pairs(&arguments.param),
        aux: pairs(&arguments.aux),
        ..Overrides::default()
    }
}

/// Returns the names of the selected problems.
pub(crate) fn chosen(program: &Program, name: Option<&str>) -> Result<Vec<String>, Failure> {
    let own = program.problems().filter(|head| !program.is_stage(head.name));
    let names: Vec<String> = own.map(|head| head.name.to_owned()).collect();
    match name {
        Some(name) => Ok(vec![name.to_owned()]),
        None if names.is_empty() => Err(Failure::input(format!(
            "{} has no problem to solve\nhelp: add `problem NAME solves FORM {{ mesh = …; }}`",
            program.source().name()
        ))),
        None => Ok(names),
    }
}

/// A file's program, and the selected problems.
pub(crate) struct SelectedProblems {
    pub(crate) program: Program,
    pub(crate) names: Vec<String>,
    pub(crate) overrides: Overrides,
}

/// Reads and compiles the selected file.
pub(crate) fn select_problems(
    arguments: &ProblemArguments,
    console: &Console,
) -> Result<SelectedProblems, Failure> {
    let (wanted, overrides) = (arguments.problem.as_deref(), overrides(arguments));
    let program = compile(&read(&arguments.file)?, wanted, &overrides, console)?;
    let names = chosen(&program, wanted)?;
    Ok(SelectedProblems { program, names, overrides })
}

/// Creates the mesh of a problem, with its refinement, and checks the problem on it.
pub(crate) fn prepare_whole(
    program: &Program,
    name: &str,
    file: &Path,
    overrides: &Overrides,
) -> Result<(Problem, Mesh), Failure> {
    let (problem, mesh) = coarse(program, name, file, overrides)?;
    let attribution = ErrorAttribution { program, problem: name, overrides };
    let mesh = refined(mesh, problem.refine).map_err(|error| attribution.mesh(&error))?;
    Ok((problem, mesh))
}

/// Creates the same with the mesh before refinement.
pub(crate) fn coarse(
    program: &Program,
    name: &str,
    file: &Path,
    overrides: &Overrides,
) -> Result<(Problem, Mesh), Failure> {
    read_with(program, name, file, overrides, load, Mesh::dim)
}

/// Creates the same with the mesh data that all of several processes need, before refinement.
pub(crate) fn begun(
    program: &Program,
    name: &str,
    file: &Path,
    overrides: &Overrides,
    processes: usize,
) -> Result<(Problem, InitialMesh), Failure> {
    let make = |source: &MeshSource, folder: &Path| begin(source, folder, processes);
    read_with(program, name, file, overrides, make, InitialMesh::dim)
}

/// Creates a problem with data derived from its mesh.
fn read_with<M>(
    program: &Program,
    name: &str,
    file: &Path,
    overrides: &Overrides,
    make: impl FnOnce(&MeshSource, &Path) -> Result<M, LoadError>,
    dim_of: impl FnOnce(&M) -> usize,
) -> Result<(Problem, M), Failure> {
    let which = ErrorAttribution { program, problem: name, overrides };
    prepare_with(program, name, overrides, folder_of(file), make, dim_of)
        .map_err(|error| which.prepare(error))
}

/// Creates a problem, and the subdomain of its mesh for this process: the whole mesh for a single one.
pub(crate) fn own_part(
    which: ErrorAttribution<'_>,
    file: &Path,
    group: &Arc<dyn ProcessGroup>,
) -> Result<(Problem, Arc<Mesh>), Failure> {
    let ErrorAttribution { program, problem, overrides } = which;
    prepare(program, problem, overrides, folder_of(file), group)
        .map_err(|error| which.prepare(error))
}

/// Returns the folder from which paths of a file start.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}
