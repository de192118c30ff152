//! `wf assemble`: the linear systems of a file's problems, for other codes. With several processes each assembles its
//! own cells, and the first writes the sum.

use std::fs::create_dir_all;
use std::path::{Path, PathBuf};

use clap::Args;
use fem_dsl::problem::Problem;
use runtime::files::output::{OutputError, writable, write_matrix, write_npy};
use runtime::problem::{
    AssembledSystem, MatrixPencil, Monitor, Platform, Solution, Step, assembled, assembled_pencil,
    has_matrices, run_steps,
};
use runtime::solve::{Continue, Progress};
use serde_json::json;

use crate::arguments::{ProblemArguments, no_stream};
use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::outputs::Files;
use crate::problem::{chosen, compile, overrides, own_part, read, with_threads};
use crate::processes::Processes;
use crate::report::{Failure, Report};

/// The files of a linear system.
const FILES: [&str; 5] =
    ["matrix.mtx", "rhs.npy", "solution.npy", "coordinates.npy", "constrained.npy"];
/// The files of an eigenvalue problem.
const PENCIL: [&str; 6] = [
    "stiffness.mtx",
    "mass.mtx",
    "eigenvalues.npy",
    "modes.npy",
    "coordinates.npy",
    "constrained.npy",
];

/// Assemble the linear system of a problem, and write it for other codes: Matrix Market and NumPy's arrays.
///
/// The problem is solved as by `wf run`. Then A x = b has A = J(u), the Jacobian at the solution u, and b = A u - R(u): of a
/// linear form its own system, of another one the last step of Newton's method. DIR gets `matrix.mtx` (of a symmetric
/// matrix the lower triangle), `rhs.npy` (b), `solution.npy` (u), `coordinates.npy` (the point of each unknown, a row each) and
/// `constrained.npy` (true where an essential condition gives the unknown: its row and column are those of the identity,
/// its value is in b). Unknowns are numbered field after field, node after node, components interleaved. Hanging nodes
/// of an adaptive mesh are no unknowns.
///
/// Of a problem with `eigen` DIR gets the matrices of J φ = λ M φ instead, `stiffness.mtx` and `mass.mtx`, of both the lower triangle, with
/// `eigenvalues.npy` and `modes.npy`, a row for each. In rows and columns of unknowns with a condition J is the identity and M is 0, so
/// that they have no eigenvalue.
///
/// Under `mpirun` each process solves and assembles on cells of its own, and the first adds up what all have and writes what one process
/// would: the same numbers of unknowns, and values that differ by rounding, so that an entry whose terms cancel may be there or not. The whole
/// matrix must have room at the first process, some 40 bytes an entry.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf assemble examples/poisson.wf -o poisson
  wf assemble examples/elasticity.wf --degree 1 -o stiffness --json
  wf assemble examples/stokes.wf --problem channel -o channel
  mpirun -n 4 wf assemble examples/poisson.wf -o poisson      four processes, the same files: a build with `--features mpi`

In Python:
  A = scipy.io.mmread('poisson/matrix.mtx').tocsr()
  b, u = numpy.load('poisson/rhs.npy'), numpy.load('poisson/solution.npy')
  x = scipy.sparse.linalg.spsolve(A, b)")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    /// The folder for the files; it is made where there is none.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// Threads to compute with; all cores without it, or the share of each of several processes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=weakform::MOST_THREADS as i64))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    let (file, wanted) = (&arguments.problem.file, arguments.problem.problem.as_deref());
    processes.reads(file)?;
    let overrides = overrides(&arguments.problem);
    let source = processes.settle(read(file), console)?;
    processes.given(source.text())?;
    let program = compile(&source, wanted, &overrides, console)?;
    let names = chosen(&program, wanted)?;
    let [name] = &names[..] else {
        let names = names.join(", ");
        return Err(Failure::input(format!(
            "--output names one folder, but there are several problems: {names}\n\
             help: choose one with --problem NAME"
        )));
    };
    let remedy = "--output a";
    no_stream(&arguments.output, "the files of a system go to a folder", remedy)?;
    let mut files = Files::of(file);
    let problem = files.reads_problem(&program, name, file, &overrides);
    let written = match problem.is_some_and(|problem| problem.eigen.is_some()) {
        true => &PENCIL[..],
        false => &FILES,
    };
    for own in written {
        files.writes("a part of the system", arguments.output.join(own), "`--output DIR`");
    }
    files.check()?;
    let folder = if processes.speaks() { try_out(&arguments.output, written) } else { Ok(()) };
    processes.settle(folder, console)?;
    let which = ErrorAttribution { program: &program, problem: name, overrides: &overrides };
    let threads = processes.threads(arguments.threads);
    with_threads(threads, || one(arguments, which, processes, console)).flatten()
}

/// Creates the folder, and checks before the solve that files can be written there.
fn try_out(folder: &Path, files: &[&str]) -> Result<(), Failure> {
    create_dir_all(folder).map_err(|error| {
        let folder = folder.display();
        Failure::input(format!(
            "cannot make the folder {folder}: {error}\nhelp: name another one, or make it"
        ))
    })?;
    Ok(files.iter().try_for_each(|file| writable(&folder.join(file)))?)
}

/// Reports the progress of a solve.
struct SolveProgress<'a> {
    name: &'a str,
    console: &'a Console,
}

impl Monitor for SolveProgress<'_> {
    fn iteration(&mut self, now: Progress) -> Continue {
        let Progress { iteration, residual, target, .. } = now;
        let name = self.name;
        self.console
            .progress()
            .say(format!("{name}: iteration {iteration}, residual {residual:.2e} of {target:.2e}"));
        Continue::Yes
    }

    fn step(&mut self, _: &Step, _: &Solution) -> Continue {
        Continue::Yes
    }
}

fn one(
    arguments: &Arguments,
    which: ErrorAttribution<'_>,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    let (name, folder) = (which.problem, &arguments.output);
    let (problem, mesh) = own_part(which, &arguments.problem.file, processes.group())?;
    which.warn(&problem, console);
    has_matrices(&problem).map_err(|error| which.run(&problem, error))?;
    let target = arguments.problem.target();
    let mut shown = SolveProgress { name, console };
    let solution = run_steps(&problem, mesh, None, &Platform::from(target), &mut shown);
    let solution = solution.map_err(|error| which.run(&problem, error))?;
    console.progress().say(format!("{name}: assembling {} unknowns", solution.size[1]));
    if problem.eigen.is_some() {
        return pencil(arguments, which, (&problem, &solution), processes, console);
    }
    let own = assembled(&solution, &target);
    let all = own.and_then(|own| own.of_all(&solution));
    // The other processes contribute to the files of the first.
    let Some(system) = all.map_err(|error| which.run(&problem, error))? else {
        return Ok(Report::default());
    };
    console.progress().say(format!("{name}: writing {} entries", system.matrix.values.len()));
    write(folder, solution.context.on.mesh.dim(), &system)?;
    Ok(report(&problem, &system, folder, processes.group().size()))
}

/// Assembles and writes the matrices of a solved eigenvalue problem.
fn pencil(
    arguments: &Arguments,
    which: ErrorAttribution<'_>,
    (problem, solution): (&Problem, &Solution),
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    let (folder, target) = (&arguments.output, arguments.problem.target());
    let own = assembled_pencil(solution, &target);
    let all = own.and_then(|own| own.of_all(solution));
    let Some(pencil) = all.map_err(|error| which.run(problem, error))? else {
        return Ok(Report::default());
    };
    let entries = pencil.stiffness.values.len() + pencil.mass.values.len();
    console.progress().say(format!("{}: writing {entries} entries", problem.name));
    let dim = solution.context.on.mesh.dim();
    let points: Vec<f64> =
        pencil.points.iter().flat_map(|point| point[..dim].iter().copied()).collect();
    let [stiffness, mass, values, modes, coordinates, constrained] =
        PENCIL.map(|file| folder.join(file));
    write_matrix(&stiffness, &pencil.stiffness, true)?;
    write_matrix(&mass, &pencil.mass, true)?;
    write_npy(&values, &pencil.values, None)?;
    write_npy(&modes, &pencil.modes, Some(pencil.constrained.len()))?;
    write_npy(&coordinates, &points, Some(dim))?;
    write_npy(&constrained, &pencil.constrained, None)?;
    Ok(told_of_pencil(problem, &pencil, folder, processes.group().size()))
}

/// Returns the report on an eigenvalue problem.
fn told_of_pencil(
    problem: &Problem,
    pencil: &MatrixPencil,
    folder: &Path,
    processes: usize,
) -> Report {
    let n = pencil.constrained.len();
    let entries = [&pencil.stiffness, &pencil.mass].map(|matrix| matrix.values.len());
    let conditions = pencil.constrained.iter().filter(|given| **given).count();
    let (name, form, shown) = (&problem.name, &problem.form.name, folder.display().to_string());
    let text = format!(
        "{name} ({form})\n  stiffness   {n} × {n}, {} entries\n  mass        {n} × {n}, {} entries\n  \
         conditions  {conditions} unknowns\n  folder      {shown}: {}\n",
        entries[0],
        entries[1],
        PENCIL.join(", ")
    );
    let value = json!({
        "problem": name,
        "form": form,
        "processes": processes,
        "unknowns": n,
        "entries": entries,
        "eigenvalues": pencil.values,
        "constrained": conditions,
        "folder": shown,
        "files": PENCIL,
    });
    Report::new(text, value)
}

fn write(folder: &Path, dim: usize, system: &AssembledSystem) -> Result<(), OutputError> {
    let points = system.points.iter().flat_map(|point| point[..dim].iter().copied());
    let points: Vec<f64> = points.collect();
    let [matrix, rhs, unknowns, coordinates, constrained] = FILES.map(|file| folder.join(file));
    write_matrix(&matrix, &system.matrix, system.symmetric)?;
    write_npy(&rhs, &system.rhs, None)?;
    write_npy(&unknowns, &system.solution, None)?;
    write_npy(&coordinates, &points, Some(dim))?;
    write_npy(&constrained, &system.constrained, None)
}

/// Returns the report on the result of this many processes.
fn report(problem: &Problem, system: &AssembledSystem, folder: &Path, processes: usize) -> Report {
    let (n, entries) = (system.matrix.size(), system.matrix.values.len());
    let conditions = system.constrained.iter().filter(|given| **given).count();
    let kind = if system.symmetric { "symmetric" } else { "general" };
    let fields = problem.form.fields.iter().enumerate();
    let fields: Vec<(&str, std::ops::Range<usize>, usize)> = fields
        .map(|(number, field)| {
            (field.name.as_str(), system.fields[number].clone(), field.shape.components())
        })
        .collect();
    let mut text = format!(
        "{} ({})\n  matrix      {n} × {n}, {entries} entries, {kind}\n  conditions  {conditions} unknowns\n",
        problem.name, problem.form.name
    );
    for (name, range, components) in &fields {
        let parts = match components {
            1 => String::new(),
            parts => format!(", {parts} components a node"),
        };
        text.push_str(&format!("  {name:<10}  {} to {}{parts}\n", range.start, range.end - 1));
    }
    if processes > 1 {
        text.push_str(&format!("  processes   {processes}, each with a part of the mesh\n"));
    }
    text.push_str(&format!("  folder      {}: {}\n", folder.display(), FILES.join(", ")));
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, range, components)| {
            json!({ "name": name, "first": range.start, "unknowns": range.len(), "components": components })
        })
        .collect();
    let value = json!({
        "problem": problem.name,
        "form": problem.form.name,
        "processes": processes,
        "unknowns": n,
        "entries": entries,
        "symmetric": system.symmetric,
        "constrained": conditions,
        "fields": fields,
        "folder": folder.display().to_string(),
        "files": FILES,
    });
    Report::new(text, value)
}
