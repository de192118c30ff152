//! `wf run`: solve the problems of a file.

mod destination;
mod dry_run;
mod files;
mod picture;
mod plot;
mod profile;
mod solution_report;
mod steps;
mod sweep;
mod table;

use std::hash::{DefaultHasher, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Problem;
use runtime::device::Device;
use runtime::device::jit::search;
use runtime::files::input::numbers;
use runtime::files::output::{FileSeries, STEP, writable, write_text};
use runtime::problem::{
    AdaptivityError, Checkpoint, InterruptedRun, Platform, RunError, Solution, run_steps,
};
use runtime::processes::ProcessGroup;
use runtime::support::timers::{Profile, step};
use serde_json::json;

use crate::arguments::{
    DeviceArguments, OperatorArguments, ProblemArguments, no_stream, written_as,
};
use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::picture::possible;
use crate::problem::{chosen, compile, overrides, own_part, read, with_threads};
use crate::processes::{Processes, agree_on, together};
use crate::report::{Failure, Report};
use crate::summary::{WrittenFiles, profile_value, value};
use destination::Destination;
use picture::{PictureArguments, StepPictures};
use plot::ReportPlot;
use solution_report::text;
use steps::{StepLog, StepObserver};
use sweep::{Sweep, shown};
use table::{StepTable, line_files, line_text};

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
  wf run examples/poisson.wf --param f=1,2,4 -o 'f-{step}.vtu'  f-0.vtu, f-1.vtu, …, and f.pvd, which opens as a series
  wf run examples/poisson.wf --picture u.png --slice z=0      the solution inside, without ParaView
  wf run examples/traction.wf --picture bent.svg --warp 0.1   its boundary, deformed by a tenth of the displacement
  wf run examples/stokes.wf --problem channel --picture p.png --field p
  wf run examples/poisson.wf --mesh 'box(dim: 3, cells: 16)' --output box.vtu
  wf run examples/poisson.wf --json --no-output     one object a problem
  wf run examples/poisson.wf --profile              the seconds of each step
  wf run examples/wave.wf --checkpoint w.npy -o 'w-{step}.vtu'  in time, leaving a file from which it can go on:
  wf run examples/wave.wf --restart w.npy -o 'w-{step}.vtu'     to the same bits, and with the next numbers
  wf run - --output - < poisson.wf > poisson.vtu    from standard input to standard output
  wf run examples/poisson.wf --dry-run              what it takes, without solving
  wf run examples/poisson.wf --interpret      without a compiler
  wf run examples/poisson.wf --backend cuda   the whole solve on a GPU
  wf run examples/poisson.wf --backend cuda --scatter owner   the same bits at every run
  wf run examples/poisson.wf --operator assembled             with a sparse matrix, as other codes do
  mpirun -n 4 wf run examples/poisson.wf      four processes, each with cells of its own: a build with `--features mpi`")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// The file for the solution, which is VTU: its name ends in `.vtu` or has no extension; `-` is standard output, and
    /// the report goes to standard error. NAME.vtu of the problem's name in the current folder without it. `{step}` in the
    /// name stands for numbers from 0 on: a file for each adaptive step, or each value of a parameter that takes several, and
    /// beside them NAME.pvd, which ParaView opens as a series. Without it the last adaptive step is written, and values go to
    /// NAME-1.vtu, NAME-2.vtu and so on. What a solve that stops short has reached goes to NAME.unconverged.vtu.
    #[arg(long, short, value_name = "FILE", conflicts_with = "no_output")]
    pub(crate) output: Option<PathBuf>,

    /// Write no file.
    #[arg(long)]
    pub(crate) no_output: bool,

    /// A table of what the problem reports, as CSV: a row for each solve, a column for each number; of adaptive steps their
    /// cells, unknowns, estimates and errors, too. It is written anew behind each. `report cut = line(…)` goes to a file of its own
    /// instead, which the report names: beside the solution, u-cut.csv for u.vtu, or with --no-output beside the table.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Draw what the problem reports over time, adaptive steps or the values of a parameter: PNG or SVG, a chart for each number.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) plot: Option<PathBuf>,

    /// Through time, a file (.npy) from which the run can go on: written anew behind each time that is shown (`every` or `at` in
    /// `time`, all without them), whole or not at all. `{step}` in the name stands for the numbers that such a solution has: a
    /// file for each. Where a parameter takes several values, each has its own: NAME-1.npy, NAME-2.npy and so on.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) checkpoint: Option<PathBuf>,

    /// Go on from such a file, with the same problem, mesh, degree and scheme; `to` and what is shown may be others, and so may the
    /// number of processes. The solutions are, to the bit, those of the run that wrote it with as many. Files of `{step}` are numbered
    /// on where NAME.pvd has those before. Where a parameter takes several values, each goes on from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) restart: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) picture: PictureArguments,

    #[command(flatten)]
    pub(crate) operator: OperatorArguments,

    /// Print a table of the steps of each run: their wall-clock seconds, which add up to the total. `--json` always has them.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) profile: bool,

    /// Solve nothing: say how many cells and unknowns there are, what memory they take at least, what would solve, with which
    /// levels, and how long that takes, roughly.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Several GPUs of this machine by their numbers, each with a part of the mesh: `--backend cuda --devices 0,1`. Under `mpirun`
    /// the processes of a machine take one each without it, in turn. They write into each other's memory where they reach it, else they
    /// go by NCCL, else by an MPI that takes device pointers, else by way of the host; WF_MESSAGES=peers, nccl, mpi or host takes that one.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "device")]
    pub(crate) devices: Vec<String>,

    /// Threads to compute with; all cores without it, or the share of each of several processes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=weakform::MOST_THREADS as i64))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    let standard = arguments.output.as_deref().is_some_and(|path| path == Path::new("-"));
    let name = "name a file, or add --no-output";
    processes.reads(&arguments.problem.file)?;
    processes.alone_for(standard, "writes to standard output", name)?;
    let wanted = arguments.problem.problem.as_deref();
    let all = overrides(&arguments.problem);
    let sweep = Sweep::of(&all)?;
    files::named(arguments)?;
    let aside = try_out(arguments, sweep.is_some(), console)?;
    // Each value of a sweep with the command line's overrides for it.
    let values: Vec<(&[(String, String)], Overrides)> = match &sweep {
        None => vec![(&[], all)],
        Some(sweep) => {
            let rows = sweep.rows.iter().map(Vec::as_slice);
            rows.map(|row| (row, Sweep::overrides(&all, row))).collect()
        }
    };
    let source = processes.settle(read(&arguments.problem.file), console)?;
    processes.given(source.text())?;
    let program = compile(&source, wanted, &values[0].1, console)?;
    let names = chosen(&program, wanted)?;
    only_one(arguments, &names)?;
    if !arguments.dry_run {
        files::check(arguments, &program, &names, &values, processes.group().size())?;
    }
    let number = processes.number_of_host();
    let device = arguments.device.open_in(&arguments.problem, &arguments.devices, number);
    let device = processes.join(device, console)?;
    if device.is_none() && !arguments.problem.interpret && !arguments.dry_run {
        search();
    }
    let (mut report, common) = (Report::default(), console.take());
    for name in &names {
        let mut start = None;
        let mut log = StepLog {
            table: StepTable::of(sweep.as_ref().map_or(&[], |sweep| &sweep.rows)),
            series: arguments.output.as_deref().map(FileSeries::of).transpose()?.flatten(),
            pictures: StepPictures::default(),
            plot: ReportPlot::default(),
        };
        for (number, (row, overrides)) in values.iter().enumerate() {
            let problem = ErrorAttribution { program: &program, problem: name, overrides };
            let varied = sweep.as_ref().map(|_| (number + 1, *row));
            let solve = Solve {
                arguments,
                which: problem,
                varied,
                runs: arguments.problem.runs(values.len()),
                device: &device,
                group: processes.group(),
                console,
            };
            let count =
                dry_run::ProcessCount { all: processes.group().size(), here: processes.of_host() };
            let file = &arguments.problem.file;
            let done =
                with_threads(processes.threads(arguments.threads), || match arguments.dry_run {
                    true => dry_run::estimated(problem, file, device.as_deref(), count),
                    false => solve.one(&mut start, &mut log),
                });
            let done = processes.settle(done.flatten(), console).map_err(|failure| {
                match (names.len(), varied) {
                    (1, None) => failure,
                    (_, None) => failure.note(&format!("the problem `{name}` is not solved")),
                    (_, Some((_, row))) => failure
                        .note(&format!("the problem `{name}` is not solved for {}", shown(row))),
                }
            });
            let warnings = [common.clone(), console.take()].concat();
            report.add(("problem", name), done, warnings);
        }
        // Results already printed during the run are not repeated, unless much text was printed since.
        if values.len() > 1 || !console.is_one_terminal() {
            report.text.push_str(&log.table.text());
        }
        let drawn = drawings(arguments, name, log, processes.group().rank() == 0);
        let drawn = processes.settle(drawn, console);
        if let Err(failure) = drawn {
            return Err(failure.after(report));
        }
    }
    report.aside = aside;
    Ok(report)
}

/// Checks before the work that all requested files are writable, and returns whether the solution goes to standard
/// output.
fn try_out(arguments: &Arguments, several: bool, console: &Console) -> Result<bool, Failure> {
    let mut aside = false;
    let series = arguments.output.as_deref().map(FileSeries::of).transpose()?.flatten();
    if let Some(series) = series {
        Destination::File(series.file(0)).try_out()?;
        writable(&series.collection())?;
    } else if arguments.output.is_some() {
        let destination = Destination::of(arguments, "", console)?;
        destination.try_out()?;
        aside = destination.is_standard_output();
        if aside && several {
            return Err(Failure::usage(
                "`--output -` takes one solution, but a parameter has several values\nhelp: name a file",
            ));
        }
    }
    if let Some(path) = &arguments.report {
        one_file(path, "--report", "holds a row for each step")?;
        no_stream(path, "a table of reports goes to a file", "--report a.csv")?;
        writable(path)?;
        written_as(path, &["csv"], "a table of reports")?;
    }
    if let Some(path) = &arguments.checkpoint {
        no_stream(path, "a checkpoint goes to a file", "--checkpoint a.npy")?;
        let path = checkpoint_file(path, 0, several.then_some(1));
        writable(&path)?;
        written_as(&path, &["npy"], "a checkpoint")?;
    }
    arguments.picture.try_out()?;
    if let Some(path) = &arguments.plot {
        one_file(path, "--plot", "shows all steps")?;
        possible(path, "--plot")?;
    }
    Ok(aside)
}

/// Writes the animation and the charts of a problem's steps.
fn drawings(arguments: &Arguments, name: &str, log: StepLog, speaks: bool) -> Result<(), Failure> {
    if arguments.dry_run {
        return Ok(());
    }
    arguments.picture.finish(&log.pictures)?;
    match arguments.plot.as_deref().filter(|_| speaks) {
        Some(path) => log.plot.write(path, name),
        None => Ok(()),
    }
}

/// Returns the checkpoint file after a number of solutions; for one of several solves, `NAME-3.npy` for the third.
fn checkpoint_file(path: &Path, solutions: usize, solve: Option<usize>) -> PathBuf {
    let path = PathBuf::from(path.to_string_lossy().replace(STEP, &solutions.to_string()));
    solve.map_or_else(|| path.clone(), |solve| destination::numbered(&path, solve))
}

/// Returns a hash that identifies a checkpoint.
fn fingerprint(left: &Checkpoint) -> Vec<u8> {
    let mut hash = DefaultHasher::new();
    left.numbers().into_iter().for_each(|number| hash.write_u64(number.to_bits()));
    hash.finish().to_le_bytes().into()
}

/// Rejects a pattern with `{step}` for an output with a single file.
fn one_file(path: &Path, option: &str, what: &str) -> Result<(), Failure> {
    match path.to_string_lossy().contains(STEP) {
        true => Err(Failure::input(format!(
            "{option} names one file, which {what}\nhelp: leave `{STEP}` out; it is for --output"
        ))),
        false => Ok(()),
    }
}

/// Rejects options that name a single file if there are several problems.
fn only_one(arguments: &Arguments, names: &[String]) -> Result<(), Failure> {
    let options = [
        (arguments.output.is_some(), "--output"),
        (arguments.report.is_some(), "--report"),
        (arguments.checkpoint.is_some(), "--checkpoint"),
        (arguments.restart.is_some(), "--restart"),
        (arguments.picture.path().is_some(), "--picture"),
        (arguments.picture.animation().is_some(), "--animate"),
        (arguments.plot.is_some(), "--plot"),
    ];
    match options.into_iter().find(|(given, _)| *given && names.len() > 1) {
        Some((_, option)) => Err(Failure::input(format!(
            "{option} names one file, but there are several problems\nhelp: choose one with --problem NAME"
        ))),
        None => Ok(()),
    }
}

/// One solve.
struct Solve<'a> {
    arguments: &'a Arguments,
    which: ErrorAttribution<'a>,
    /// The index of the solve, and its values of the parameters with several.
    varied: Option<(usize, &'a [(String, String)])>,
    /// The number of solves with the same kernels.
    runs: usize,
    device: &'a Option<Arc<dyn Device>>,
    /// The processes that share the work.
    group: &'a Arc<dyn ProcessGroup>,
    console: &'a Console,
}

impl Solve<'_> {
    /// Solves one problem, starting from the end of the last solve if there was one, and stores its end there.
    fn one(&self, start: &mut Option<Vec<f64>>, log: &mut StepLog) -> Result<Report, Failure> {
        let Self { arguments, which, varied, runs, device, group, console } = *self;
        let number = varied.map(|(number, _)| number);
        let (name, file) = (which.problem, &arguments.problem.file);
        self.destination(log)?.try_out()?;
        console.progress().say(format!("{name}: making the mesh"));
        let profile = Profile::begin();
        let making_mesh = step("mesh");
        let mut begun = Instant::now();
        let (problem, mesh) = own_part(which, file, group)?;
        let picture = arguments.picture.numbered(number);
        picture.check(&problem, &mesh)?;
        which.warn(&problem, console);
        let mesh_seconds = begun.elapsed().as_secs_f64();
        drop(making_mesh);
        let mut target = arguments.problem.target();
        target.wishes.scatter = arguments.device.scatter;
        if let Some(how) = arguments.operator.representation(device.is_some())? {
            target = target.representing(how);
        }
        console.progress().say(format!("{name}: setting up {} cells and kernels", mesh.n_cells()));
        let restart = together(&**group, self.restart(&problem))?;
        let words = restart.as_ref().map_or_else(Vec::new, fingerprint);
        agree_on(&**group, "checkpoint", &words)?;
        // Output of earlier values of a parameter is kept.
        if let (Some(series), Some(left), None | Some(1)) = (&mut log.series, &restart, number) {
            series.resume(left.shown);
        }
        let (earlier, taken) = (start.as_deref(), Vec::new());
        let mut steps = StepObserver {
            solve: self,
            problem: &problem,
            log,
            taken,
            reported: Vec::new(),
            restart,
            failure: None,
        };
        let platform = Platform { runs, ..Platform::new(target, device.clone()) };
        let solution = run_steps(&problem, mesh, earlier, &platform, &mut steps);
        let StepObserver { taken, reported, failure, .. } = steps;
        if let Some(path) = &arguments.report {
            log.table.settle(path)?;
        }
        let destination = self.destination(log)?;
        let failed = |error| self.failure(&problem, &destination, log.series.is_some(), error);
        let mut solution = solution.map_err(failed)?;
        console.progress().say(format!("{name}: writing the solution"));
        let writing = step("write");
        begun = Instant::now();
        let written = match (failure, &log.series) {
            (Some(failure), _) => Err(failure),
            (None, Some(_)) => Ok(()),
            (None, None) => destination
                .write(&problem, &solution)
                .and_then(|()| self.write_lines(&destination, &solution)),
        };
        let last = log
            .series
            .as_ref()
            .map(|series| Destination::File(series.file(series.len().saturating_sub(1))));
        let lines = self.lines(last.as_ref().unwrap_or(&destination), &solution);
        let path = destination.path_of(&solution.context.on);
        let drawn = picture.draw(&problem, &solution, console);
        solution.seconds.mesh += mesh_seconds;
        solution.seconds.write += begun.elapsed().as_secs_f64();
        drop(writing);
        let profile = profile.end();
        // Results are reported even if they cannot be written.
        let collection = log.series.as_ref().map(FileSeries::collection);
        let files = WrittenFiles {
            output: collection.as_deref().or(path.as_deref()).filter(|_| written.is_ok()),
            picture: picture.path().filter(|_| drawn.is_ok()),
            lines: if written.is_ok() { &lines } else { &[] },
            note: drawn.as_ref().ok().and_then(Option::as_deref),
        };
        let (mut text, mut value) = (
            text(&problem, &solution, files),
            value(&problem, &solution, (&taken, &reported), files),
        );
        if arguments.profile {
            text.push_str(&profile::table(&profile));
        }
        value["profile"] = profile_value(&profile);
        if let Some((_, row)) = varied {
            text = text.replacen('\n', &format!(", {}\n", shown(row)), 1);
            value["sweep"] =
                row.iter().map(|(param, given)| (param.clone(), json!(given))).collect();
        }
        let report = Report::new(text, value);
        let result = written.and(drawn.map(drop));
        *start = Some(solution.u);
        match result {
            Ok(()) => Ok(report),
            Err(failure) => Err(failure.after(report)),
        }
    }

    /// Reports a failed solve, and writes the state that it reached or the solution of its last step; a series has the
    /// latter already.
    fn failure(
        &self,
        problem: &Problem,
        destination: &Destination,
        is_series: bool,
        error: RunError,
    ) -> Failure {
        let failed = |error| match error {
            RunError::Unconverged { source, reached } => {
                destination.write_reached(self.which.run(problem, *source), problem, &reached)
            }
            error => self.which.run(problem, error),
        };
        let InterruptedRun { step, source, last } = match error {
            RunError::Adaptivity(error) => match *error {
                AdaptivityError::Interrupted(interrupted) => *interrupted,
                error => return failed(error.into()),
            },
            error => return failed(error),
        };
        let failure = failed(source).note(&format!("this was step {step} of `adapt`"));
        match is_series {
            true => failure,
            false => destination.write_last(failure, problem, (step - 1, &last)),
        }
    }

    /// Returns the checkpoint from which the run continues.
    fn restart(&self, problem: &Problem) -> Result<Option<Checkpoint>, Failure> {
        let Arguments { checkpoint, restart, .. } = self.arguments;
        let given = [(checkpoint, "--checkpoint"), (restart, "--restart")];
        let given = given.iter().find(|(path, _)| path.is_some());
        if let (Some((_, option)), None) = (given, &problem.stepping) {
            return Err(Failure::input(format!(
                "{option} is for runs through time, and the problem `{}` has no `time`\nhelp: `aux` and `initial` take a state from a file, \
                 such as `initial u = file(\"u.vtu\");`",
                problem.name
            )));
        }
        let Some(path) = restart else { return Ok(None) };
        let failed = |error: String| Failure::input(format!("{}: {error}", path.display()));
        let numbers = numbers(path).map_err(|error| failed(error.to_string()))?;
        let found = Checkpoint::from_numbers(&numbers);
        found.map(Some).map_err(|error| failed(error.to_string()))
    }

    /// Returns whether this process writes the common results.
    fn speaks(&self) -> bool {
        self.group.rank() == 0
    }

    /// Returns the destination of the next solution.
    fn destination(&self, log: &StepLog) -> Result<Destination, Failure> {
        match &log.series {
            Some(series) => Ok(Destination::File(series.file(series.len()))),
            None => {
                let destination =
                    Destination::of(self.arguments, self.which.problem, self.console)?;
                Ok(destination.numbered(self.varied.map(|(number, ..)| number)))
            }
        }
    }

    /// Returns the line plots and their files: next to the solution, or next to the table if no solution is written.
    fn lines(&self, destination: &Destination, solution: &Solution) -> Vec<(String, PathBuf)> {
        let table = || {
            let number = self.varied.map(|(number, ..)| number);
            let path = self.arguments.report.clone()?;
            Some(number.map_or(path.clone(), |number| destination::numbered(&path, number)))
        };
        let beside = match destination {
            Destination::File(path) => Some(path.clone()),
            Destination::Nowhere | Destination::StandardOutput => table(),
        };
        // No files are created next to a device such as /dev/null.
        let beside = beside.filter(|path| path.is_file() || !path.exists());
        beside.map_or_else(Vec::new, |path| line_files(&path.with_extension(""), &solution.reports))
    }

    /// Writes the line plots.
    fn write_lines(&self, destination: &Destination, solution: &Solution) -> Result<(), Failure> {
        if !self.speaks() {
            return Ok(());
        }
        for (name, file) in self.lines(destination, solution) {
            let report = solution.reports.iter().find(|report| report.name == name);
            write_text(&file, &report.map_or_else(String::new, line_text))?;
        }
        Ok(())
    }
}
