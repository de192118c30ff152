//! Output after each step of a problem: its file and its row are written, its line is printed.

use crate::summary::reports_value;
use fem_dsl::point::Shape;
use fem_dsl::problem::Problem;
use runtime::files::output::{FileSeries, write_npy};
use runtime::problem::{Checkpoint, Monitor, ReportResult, ReportValue, Solution, Step, StepKind};
use runtime::solve::{Continue, Progress};
use serde_json::Value;

use super::destination::Destination;
use super::picture::StepPictures;
use super::plot::ReportPlot;
use super::table::{StepRow, StepTable};
use super::{Solve, checkpoint_file};
use crate::processes::together;
use crate::report::Failure;

/// Output of a problem's successive solves, for each value of a parameter.
pub(super) struct StepLog {
    /// A row for each step.
    pub(super) table: StepTable,
    /// The files of the steps, if each has its own.
    pub(super) series: Option<FileSeries>,
    /// The pictures of the steps, and the animation.
    pub(super) pictures: StepPictures,
    /// The charts of the reports.
    pub(super) plot: ReportPlot,
}

/// Observer of the steps of one solve.
pub(super) struct StepObserver<'a> {
    pub(super) solve: &'a Solve<'a>,
    pub(super) problem: &'a Problem,
    pub(super) log: &'a mut StepLog,
    /// Statistics of the steps so far.
    pub(super) taken: Vec<Step>,
    /// Reported values of each step, without line plots.
    pub(super) reported: Vec<Value>,
    /// The checkpoint from which it continues.
    pub(super) restart: Option<Checkpoint>,
    /// An output error; it ends the run.
    pub(super) failure: Option<Failure>,
}

impl Monitor for StepObserver<'_> {
    fn iteration(&mut self, now: Progress) -> Continue {
        let Progress { iteration, residual, target, .. } = now;
        let name = &self.problem.name;
        // Time steps have a separate display.
        if self.problem.stepping.is_some() {
            return Continue::Yes;
        }
        let which = match self.taken.len() {
            0 => name.clone(),
            step => format!("{name}, step {step}"),
        };
        self.solve.console.progress().say(format!(
            "{which}: iteration {iteration}, residual {residual:.2e} of {target:.2e}"
        ));
        Continue::Yes
    }

    fn time(&mut self, now: f64, end: f64) {
        let name = &self.problem.name;
        let whole = self.problem.stepping.as_ref().map_or(0.0, |own| end - own.from);
        let part = if whole > 0.0 { (1.0 - (end - now) / whole).clamp(0.0, 1.0) } else { 1.0 };
        self.solve.console.progress().say_part(format!("{name}: t = {now:.6} of {end}"), part);
    }

    fn step(&mut self, step: &Step, solution: &Solution) -> Continue {
        let taken = self.take(step, solution);
        // An output error of one process ends all.
        let Solve { arguments, .. } = self.solve;
        let draws = arguments.picture.draws_steps();
        let writes = self.log.series.is_some() || arguments.report.is_some() || draws;
        self.unless_failed(if writes { together(&**self.solve.group, taken) } else { taken })
    }

    fn restart(&mut self) -> Option<Checkpoint> {
        self.restart.take()
    }

    fn wants_checkpoints(&self) -> bool {
        self.solve.arguments.checkpoint.is_some()
    }

    fn checkpoint(&mut self, left: &Checkpoint) -> Continue {
        let Solve { arguments, varied, group, .. } = *self.solve;
        let path = arguments.checkpoint.as_deref().filter(|_| self.solve.speaks());
        let written = path.map_or(Ok(()), |path| {
            let solve = varied.map(|(number, _)| number);
            let path = checkpoint_file(path, left.shown.saturating_sub(1), solve);
            write_npy(&path, &left.numbers(), None)
        });
        self.unless_failed(together(&**group, written.map_err(Failure::from)))
    }
}

impl StepObserver<'_> {
    fn unless_failed(&mut self, done: Result<(), Failure>) -> Continue {
        match done {
            Ok(()) => Continue::Yes,
            Err(failure) => {
                self.failure = Some(failure);
                Continue::No
            }
        }
    }

    fn take(&mut self, step: &Step, solution: &Solution) -> Result<(), Failure> {
        let Solve { arguments, varied, console, .. } = *self.solve;
        let kind = match (step.kind, varied) {
            (StepKind::Solve, Some(_)) => StepKind::Sweep,
            (kind, _) => kind,
        };
        let step = Step { kind, ..step.clone() };
        let eigenvalues = solution.modes.iter().enumerate().map(|(number, mode)| ReportResult {
            name: format!("eigenvalue_{}", number + 1),
            value: ReportValue::Value(Shape::Scalar, vec![mode.value]),
        });
        let reports: Vec<ReportResult> =
            eigenvalues.chain(solution.reports.iter().cloned()).collect();
        let lines = self.log.table.add(&StepRow {
            varied: varied.map_or(&[], |(_, values)| values),
            number: self.taken.len(),
            step: &step,
            before: self.taken.last(),
            is_adaptive: self.problem.adapt.is_some(),
            fields: &self.problem.form.fields,
            reports: &reports,
        });
        self.log.plot.add(varied.map_or(&[], |(_, values)| values), &step, &reports);
        if self.solve.speaks() {
            lines.iter().for_each(|line| console.progress().line(line));
        }
        let values = reports.into_iter().filter(|of| matches!(of.value, ReportValue::Value(..)));
        self.reported.push(reports_value(&values.collect::<Vec<_>>()));
        self.taken.push(step);
        if let Some(series) = &mut self.log.series {
            console.progress().detail("writing the solution");
            let number = series.len();
            let destination = Destination::File(series.file(number));
            destination.write(self.problem, solution)?;
            self.solve.write_lines(&destination, solution)?;
            let time = self.taken.last().and_then(|step| step.time).unwrap_or(number as f64);
            match solution.context.on.mesh.cut() {
                None => series.add(time)?,
                Some(_) => {
                    series.add_in_pieces(time);
                    if self.solve.speaks() {
                        series.write()?;
                    }
                }
            }
        }
        let pictures = &mut self.log.pictures;
        arguments.picture.draw_step(pictures, self.problem, solution, console)?;
        match &arguments.report {
            Some(path) if self.solve.speaks() => self.log.table.write(path),
            _ => Ok(()),
        }
    }
}
