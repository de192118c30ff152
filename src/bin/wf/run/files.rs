//! All files of a run: its inputs, and its possible outputs for each problem and each value of a parameter.

use std::path::{Path, PathBuf};

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{Problem, ReportFormula};
use fem_dsl::program::Program;
use runtime::files::output::{FileSeries, index_of, piece_of};

use super::Arguments;
use super::destination::{is_standard_output, numbered, unconverged};
use super::picture::is_pattern;
use super::table::line_file;
use crate::outputs::Files;
use crate::report::Failure;

const OUTPUT: &str = "`--output NAME.vtu`, or add --no-output";
const REPORT: &str = "`--report NAME.csv`";
const CHECKPOINT: &str = "`--checkpoint NAME.npy`";
const PICTURE: &str = "`--picture NAME.png`";
const ANIMATION: &str = "`--animate NAME.png`";
const PLOT: &str = "`--plot NAME.svg`";

/// Rejects output names that are equal to each other or to the input file, before anything is read.
pub(super) fn named(arguments: &Arguments) -> Result<(), Failure> {
    let mut files = Files::of(&arguments.problem.file);
    let outputs = [
        ("the solution", arguments.output.as_deref(), OUTPUT),
        ("the table of reports", arguments.report.as_deref(), REPORT),
        ("the checkpoint", arguments.checkpoint.as_deref(), CHECKPOINT),
        ("the picture", arguments.picture.path(), PICTURE),
        ("the animation", arguments.picture.animation(), ANIMATION),
        ("the charts of reports", arguments.plot.as_deref(), PLOT),
    ];
    for (what, path, remedy) in outputs {
        if let Some(path) = path.filter(|path| !is_standard_output(path)) {
            files.writes(what, path, remedy);
        }
    }
    files.check()
}

/// Rejects a run that would overwrite one of its inputs, or write one file twice. Successive runs may use a single
/// checkpoint file, because each checkpoint is written completely after the previous one was read.
pub(super) fn check(
    arguments: &Arguments,
    program: &Program,
    names: &[String],
    values: &[(&[(String, String)], Overrides)],
    processes: usize,
) -> Result<(), Failure> {
    let solves: Vec<Option<usize>> = match values {
        [_] => vec![None],
        values => (1..=values.len()).map(Some).collect(),
    };
    let overrides = values.first().map(|(_, overrides)| overrides);
    let all = |checkpoint: Option<&Path>, restart: Option<&Path>| {
        let file = &arguments.problem.file;
        let mut files = Files::of(file);
        if let Some(path) = restart {
            files.reads("the checkpoint that it goes on from", path);
        }
        if let Some(path) = &arguments.report {
            files.writes("the table of reports", path, REPORT);
        }
        if let Some(path) = arguments.picture.animation() {
            files.writes("the animation", path, ANIMATION);
        }
        if let Some(path) = &arguments.plot {
            files.writes("the charts of reports", path, PLOT);
        }
        for (name, overrides) in names.iter().zip(overrides.iter().cycle()) {
            let lines = files.reads_problem(program, name, file, overrides).as_ref().map(lines);
            let lines = lines.unwrap_or_default();
            pictures(&mut files, arguments, (name, &solves), checkpoint);
            solutions(&mut files, arguments, (name, &solves), &lines, processes)?;
        }
        files.check()
    };
    all(arguments.checkpoint.as_deref(), None)?;
    match arguments.restart.as_deref() {
        Some(restart) => all(None, Some(restart)),
        None => Ok(()),
    }
}

/// Returns the names of the line plots that a problem reports.
fn lines(problem: &Problem) -> Vec<String> {
    let reports = problem.reports.items.iter();
    let own = reports.filter(|report| matches!(report.value, ReportFormula::Line { .. }));
    own.map(|report| report.name.clone()).collect()
}

/// Adds the pictures and the checkpoints of a problem.
fn pictures(
    files: &mut Files,
    arguments: &Arguments,
    (name, solves): (&str, &[Option<usize>]),
    checkpoint: Option<&Path>,
) {
    for (at, &solve) in solves.iter().enumerate() {
        let picture = arguments.picture.numbered(solve);
        // The pictures of steps are numbered through all solves.
        if let Some(path) = picture.path().filter(|path| at == 0 || !is_pattern(path)) {
            files.writes(of(name, solve, "the picture"), path, PICTURE);
        }
        if let Some(path) = checkpoint {
            let path = solve.map_or_else(|| path.to_owned(), |solve| numbered(path, solve));
            files.writes(of(name, solve, "the checkpoint"), path, CHECKPOINT);
        }
    }
}

/// Adds the solutions of a problem, and their accompanying files.
fn solutions(
    files: &mut Files,
    arguments: &Arguments,
    (name, solves): (&str, &[Option<usize>]),
    lines: &[String],
    processes: usize,
) -> Result<(), Failure> {
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.vtu")));
    if arguments.no_output || is_standard_output(&path) {
        if let Some(table) = &arguments.report {
            for &solve in solves {
                let beside = solve.map_or_else(|| table.clone(), |solve| numbered(table, solve));
                line_outputs(files, &beside, (name, solve), lines);
            }
        }
        return Ok(());
    }
    let series = FileSeries::of(&path)?;
    if let Some(series) = &series {
        files.writes("the collection of all steps", series.collection(), OUTPUT);
    }
    // All files of a series have one name with `{step}` in it.
    let solves = if series.is_some() { &[None][..] } else { solves };
    for &solve in solves {
        let path = solve.map_or_else(|| path.clone(), |solve| numbered(&path, solve));
        match processes {
            1 => files.writes(of(name, solve, "the solution"), &path, OUTPUT),
            _ => pieces(files, &path, processes),
        }
        files.writes(
            of(name, solve, "what a solve that fails has reached"),
            unconverged(&path),
            OUTPUT,
        );
        line_outputs(files, &path, (name, solve), lines);
    }
    Ok(())
}

/// Adds the files of the line plots of a solve: next to the solution, or to the table if no solution is written.
fn line_outputs(
    files: &mut Files,
    beside: &Path,
    (name, solve): (&str, Option<usize>),
    lines: &[String],
) {
    for line in lines {
        let own = line_file(&beside.with_extension(""), line);
        files.writes(of(name, solve, &format!("the line `{line}`")), own, OUTPUT);
    }
}

/// Adds the files of several processes.
fn pieces(files: &mut Files, path: &Path, processes: usize) {
    files.writes("the solution", index_of(path), OUTPUT);
    for rank in 0..processes {
        let own = piece_of(path, rank, processes);
        files.writes(format!("the piece of process {rank}"), own, OUTPUT);
    }
}

/// Returns the name of a problem's output in messages.
fn of(name: &str, solve: Option<usize>, what: &str) -> String {
    match solve {
        Some(solve) => format!("{what} of the problem `{name}`, solve {solve}"),
        None => format!("{what} of the problem `{name}`"),
    }
}
