//! `wf assemble`: the linear systems of a file's problems, for other codes.

use std::fs::create_dir_all;
use std::path::{Path, PathBuf};

use clap::Args;
use fem_dsl::problem::Problem;
use runtime::output::{OutputError, writable, write_matrix, write_npy};
use runtime::run::{Assembled, Monitor, Solution, Step, assembled, has_one_system, run_steps};
use runtime::solve::{Continue, Progress};
use serde_json::json;

use crate::arguments::ProblemArguments;
use crate::blame::Blame;
use crate::console::Console;
use crate::problem::{Meant, meant, prepare, with_threads};
use crate::report::{Failure, Report};

/// What is written, in this order.
const FILES: [&str; 5] =
    ["matrix.mtx", "rhs.npy", "solution.npy", "coordinates.npy", "constrained.npy"];

/// Assemble the linear system of a problem, and write it for other codes: Matrix Market and NumPy's arrays.
///
/// The problem is solved as by `wf run`. Then A x = b has A = J(u), the Jacobian at the solution u, and b = A u - R(u): of a
/// linear form its own system, of another one the last step of Newton's method. DIR gets `matrix.mtx` (of a symmetric
/// matrix the lower triangle), `rhs.npy` (b), `solution.npy` (u), `coordinates.npy` (the point of each unknown, a row each) and
/// `constrained.npy` (true where an essential condition gives the unknown: its row and column are those of the identity,
/// its value is in b). Unknowns are numbered field after field, node after node, components interleaved. Hanging nodes
/// of an adaptive mesh are no unknowns.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf assemble examples/poisson.wf -o poisson
  wf assemble examples/elasticity.wf --degree 1 -o stiffness --json
  wf assemble examples/stokes.wf --problem channel -o channel

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

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let Meant { program, names, overrides } = meant(&arguments.problem, console)?;
    let [name] = &names[..] else {
        let names = names.join(", ");
        return Err(Failure::input(format!(
            "--output names one folder, but there are several problems: {names}\n\
             help: choose one with --problem NAME"
        )));
    };
    try_out(&arguments.output)?;
    let which = Blame { program: &program, problem: name, overrides: &overrides };
    with_threads(arguments.threads, || one(arguments, which, console)).flatten()
}

/// Makes the folder, and looks whether files can be written there, before the work.
fn try_out(folder: &Path) -> Result<(), Failure> {
    create_dir_all(folder).map_err(|error| {
        let folder = folder.display();
        Failure::input(format!(
            "cannot make the folder {folder}: {error}\nhelp: name another one, or make it"
        ))
    })?;
    Ok(FILES.iter().try_for_each(|file| writable(&folder.join(file)))?)
}

/// Says what a solve is at.
struct Shown<'a> {
    name: &'a str,
    console: &'a Console,
}

impl Monitor for Shown<'_> {
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

fn one(arguments: &Arguments, which: Blame<'_>, console: &Console) -> Result<Report, Failure> {
    let (name, folder) = (which.problem, &arguments.output);
    let (problem, mesh) = prepare(which.program, name, &arguments.problem.file, which.overrides)?;
    which.warn(&problem, console);
    has_one_system(&problem).map_err(|error| which.run(&problem, error))?;
    let target = arguments.problem.target();
    let mut shown = Shown { name, console };
    let solution = run_steps(&problem, mesh, None, &target, None, &mut shown);
    let solution = solution.map_err(|error| which.run(&problem, error))?;
    console.progress().say(format!("{name}: assembling {} unknowns", solution.on.n_dofs()));
    let system =
        assembled(&problem, &solution, &target).map_err(|error| which.run(&problem, error))?;
    console.progress().say(format!("{name}: writing {} entries", system.matrix.values.len()));
    write(folder, &solution, &system)?;
    Ok(told(&problem, &solution, &system, folder))
}

fn write(folder: &Path, solution: &Solution, system: &Assembled) -> Result<(), OutputError> {
    let dim = solution.on.mesh.dim();
    let points = system.points.iter().flat_map(|point| point[..dim].iter().copied());
    let points: Vec<f64> = points.collect();
    let [matrix, rhs, unknowns, coordinates, constrained] = FILES.map(|file| folder.join(file));
    write_matrix(&matrix, &system.matrix, system.symmetric)?;
    write_npy(&rhs, &system.rhs, None)?;
    write_npy(&unknowns, &solution.u, None)?;
    write_npy(&coordinates, &points, Some(dim))?;
    write_npy(&constrained, &system.constrained, None)
}

/// What has been written.
fn told(problem: &Problem, solution: &Solution, system: &Assembled, folder: &Path) -> Report {
    let (n, entries) = (system.matrix.size(), system.matrix.values.len());
    let conditions = system.constrained.iter().filter(|given| **given).count();
    let kind = if system.symmetric { "symmetric" } else { "general" };
    let fields = problem.form.fields.iter().enumerate();
    let fields: Vec<(&str, std::ops::Range<usize>, usize)> = fields
        .map(|(number, field)| {
            (field.name.as_str(), solution.on.dofs_of(number), field.shape.components())
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
