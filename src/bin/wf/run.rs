//! `wf run`: solve the problems of a file.

mod dry;
mod goal;
mod picture;
mod sweep;
mod table;
mod told;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fem_dsl::check::problem::Overrides;
use runtime::device::Device;
use runtime::output::{writable, write_text};
use runtime::run::{RunError, Solution, run_from};
use runtime::solve::Continue;
use serde_json::json;

use crate::arguments::{DeviceArguments, ProblemArguments, written_as};
use crate::blame::Blame;
use crate::console::Console;
use crate::problem::{chosen, compile, overrides, prepare, read, spare, with_threads};
use crate::report::{Failure, Report};
use goal::Goal;
use picture::PictureArguments;
use sweep::Sweep;
use table::{Table, line_files};
use told::{Files, text, value};

/// Solve the problems of a file, report on each, and write what ParaView opens.
///
/// A problem that fails does not keep those after it from being solved; the exit code is 1 then.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf run examples/poisson.wf
  wf run examples/poisson.wf --degree 4 --param f=2
  wf run examples/poisson.wf --param f=1,2,4 --report f.csv     a solve for each value, each from the one before
  wf run examples/poisson.wf --param f=1..10:5                  five values, both ends included
  wf run examples/poisson.wf --picture u.png --slice z=0      the solution inside, without ParaView
  wf run examples/traction.wf --picture bent.svg --warp 0.1   its boundary, deformed by a tenth of the displacement
  wf run examples/stokes.wf --problem channel --picture p.png --field p
  wf run examples/poisson.wf --mesh 'box(dim: 3, cells: 16)' --output box.vtu
  wf run examples/poisson.wf --json --no-output     one object a problem
  wf run - --output - < poisson.wf > poisson.vtu    from standard input to standard output
  wf run examples/poisson.wf --dry-run              what it takes, without solving
  wf run examples/poisson.wf --interpret      without a compiler
  wf run examples/poisson.wf --backend cuda   the whole solve on a GPU
  wf run examples/poisson.wf --backend cuda --scatter owner   the same bits at every run")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// The file for the solution, which is VTU: its name ends in `.vtu` or has no extension; `-` is standard output, and
    /// the report goes to standard error. NAME.vtu of the problem's name in the current folder without it. What a solve
    /// that stops short has reached goes to NAME.unconverged.vtu beside it.
    #[arg(long, short, value_name = "FILE", conflicts_with = "no_output")]
    pub(crate) output: Option<PathBuf>,

    /// Write no file.
    #[arg(long)]
    pub(crate) no_output: bool,

    /// A table of what the problem reports, as CSV: a row for each solve, a column for each number. `report NAME = line(…)`
    /// goes to PROBLEM-NAME.csv beside the solution instead.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) picture: PictureArguments,

    /// Solve nothing: say how many cells and unknowns there are, and what memory they take at least.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let wanted = arguments.problem.problem.as_deref();
    let all = overrides(&arguments.problem);
    let sweep = Sweep::of(&all)?;
    let mut aside = false;
    if arguments.output.is_some() {
        let goal = Goal::of(arguments, "", console)?;
        goal.try_out(&arguments.problem.file)?;
        aside = goal.is_standard_output();
        if aside && sweep.is_some() {
            return Err(Failure::usage(
                "`--output -` takes one solution, but a parameter has several values\nhelp: name a file",
            ));
        }
    }
    if let Some(path) = &arguments.report {
        spare(path, &arguments.problem.file)?;
        writable(path)?;
        written_as(path, &["csv"], "a table of reports")?;
    }
    arguments.picture.try_out(&arguments.problem.file)?;
    // Each value of a sweep with what the command line says then.
    let values: Vec<(Option<&str>, Overrides)> = match &sweep {
        None => vec![(None, all)],
        Some(sweep) => {
            let own = |value: &'_ String| sweep.overrides(&all, value);
            sweep.values.iter().map(|value| (Some(value.as_str()), own(value))).collect()
        }
    };
    let source = read(&arguments.problem.file)?;
    let program = compile(&source, wanted, &values[0].1, console)?;
    let names = chosen(&program, wanted)?;
    for (given, option) in [(&arguments.output, "--output"), (&arguments.report, "--report")] {
        if given.is_some() && names.len() > 1 {
            return Err(Failure::input(format!(
                "{option} names one file, but there are several problems\nhelp: choose one with --problem NAME"
            )));
        }
    }
    if arguments.picture.is_wanted() && names.len() > 1 {
        return Err(Failure::input(
            "--picture names one file, but there are several problems\nhelp: choose one with --problem NAME",
        ));
    }
    let device = arguments.device.open_for(&arguments.problem)?;
    let (mut report, common) = (Report::default(), console.take());
    for name in &names {
        let (mut table, mut start) = (Table::default(), None);
        for (number, (value, overrides)) in values.iter().enumerate() {
            let problem = Blame { program: &program, problem: name, overrides };
            let varied = sweep.as_ref().zip(*value);
            let varied = varied.map(|(sweep, value)| (number + 1, sweep.name.as_str(), value));
            let solve = Solve { arguments, which: problem, varied, device: &device, console };
            let done = with_threads(arguments.threads, || match arguments.dry_run {
                true => dry::estimated(problem, &arguments.problem.file),
                false => solve.one(&mut start, &mut table),
            });
            let done = done.flatten().map_err(|failure| match (names.len(), varied) {
                (1, None) => failure,
                (_, None) => failure.note(&format!("the problem `{name}` is not solved")),
                (_, Some((_, param, value))) => failure
                    .note(&format!("the problem `{name}` is not solved for {param} = {value}")),
            });
            let warnings = [common.clone(), console.take()].concat();
            report.add(("problem", name), done, warnings);
        }
        if let Some(path) = arguments.report.as_ref().filter(|_| table.len() > 0) {
            table.write(path)?;
        }
        if sweep.is_some() && table.len() > 0 {
            report.text.push_str(&table.text());
        }
    }
    report.aside = aside;
    Ok(report)
}

/// One solve.
struct Solve<'a> {
    arguments: &'a Arguments,
    which: Blame<'a>,
    /// The number, the parameter and its value where it has several.
    varied: Option<(usize, &'a str, &'a str)>,
    device: &'a Option<Arc<dyn Device>>,
    console: &'a Console,
}

impl Solve<'_> {
    /// Solves one problem from where the last solve ended, if there was one, and leaves its end there.
    fn one(&self, start: &mut Option<Vec<f64>>, table: &mut Table) -> Result<Report, Failure> {
        let Self { arguments, which, varied, device, console } = *self;
        let (name, file) = (which.problem, &arguments.problem.file);
        let goal = Goal::of(arguments, name, console)?.numbered(varied.map(|(number, ..)| number));
        goal.try_out(file)?;
        console.progress().say(format!("{name}: making the mesh"));
        let (problem, mesh) = prepare(which.program, name, file, which.overrides)?;
        let picture = arguments.picture.numbered(varied.map(|(number, ..)| number));
        picture.check(&problem, &mesh)?;
        which.warn(&problem, console);
        let mut target = arguments.problem.target();
        target.wishes.scatter = arguments.device.scatter;
        console.progress().say(format!("{name}: setting up {} cells and kernels", mesh.n_cells()));
        let mut observe = |now: runtime::solve::Progress| {
            let (iteration, residual, target) = (now.iteration, now.residual, now.target);
            console.progress().say(format!(
                "{name}: iteration {iteration}, residual {residual:.2e} of {target:.2e}"
            ));
            Continue::Yes
        };
        let earlier = start.as_deref();
        let solution = run_from(&problem, mesh, earlier, &target, device.clone(), &mut observe);
        let solution = solution.map_err(|error| match error {
            RunError::Unconverged { source, reached } => {
                goal.write_reached(which.run(&problem, *source), file, &problem, &reached)
            }
            error => which.run(&problem, error),
        })?;
        table.add(varied.map(|(_, param, value)| (param, value)), &solution.reports);
        console.progress().say(format!("{name}: writing the solution"));
        let written =
            goal.write(&problem, &solution).and_then(|()| self.write_lines(&goal, &solution));
        let drawn = picture.draw(&problem, &solution, console);
        // What was found is said, also where it cannot be written.
        let files = Files {
            output: goal.path().filter(|_| written.is_ok()),
            picture: picture.path().filter(|_| drawn.is_ok()),
            note: drawn.as_ref().ok().and_then(Option::as_deref),
        };
        let (mut text, mut value) =
            (text(&problem, &solution, files), value(&problem, &solution, files));
        if let Some((_, param, given)) = varied {
            text = text.replacen('\n', &format!(", {param} = {given}\n"), 1);
            value["sweep"] = json!({ param: given });
        }
        let report = Report::new(text, value);
        let result = written.and(drawn.map(drop));
        *start = Some(solution.u);
        match result {
            Ok(()) => Ok(report),
            Err(failure) => Err(failure.after(report)),
        }
    }

    /// Writes the lines that are reported, beside the solution.
    fn write_lines(&self, goal: &Goal, solution: &Solution) -> Result<(), Failure> {
        let Goal::File(path) = goal else { return Ok(()) };
        for (file, text) in line_files(&path.with_extension(""), &solution.reports) {
            spare(&file, &self.arguments.problem.file)?;
            write_text(&file, &text)?;
        }
        Ok(())
    }
}
