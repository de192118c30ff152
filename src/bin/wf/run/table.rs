//! Table of a problem's steps, one row each: [`StepRow`] → lines of text, and CSV.
//!
//! A row contains the value of a parameter that takes several, the statistics of a step if the mesh changes, and the
//! reported values. Column widths are fixed, so that lines can be printed immediately. Numbers of the CSV read back bit
//! for bit. Line plots go to separate files.

use fem_dsl::point::{Field, Shape};
use runtime::files::output::write_text;
use runtime::problem::{ReportResult, ReportValue, Step, StepKind};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::report::Failure;

/// Characters of a number with seven digits.
const WIDE: usize = 14;

/// The data of a row.
pub(super) struct StepRow<'a> {
    /// The parameters with several values, and these values.
    pub(super) varied: &'a [(String, String)],
    /// The index of the step in its solve.
    pub(super) number: usize,
    pub(super) step: &'a Step,
    /// The previous step of the same solve.
    pub(super) before: Option<&'a Step>,
    /// True if the mesh changes from step to step.
    pub(super) is_adaptive: bool,
    pub(super) fields: &'a [Field],
    pub(super) reports: &'a [ReportResult],
}

/// A field of a row, in the printed table and in the CSV: a heading and a value each.
struct TableCell {
    shown: Option<(String, String, usize)>,
    csv: Option<(String, String)>,
}

/// Rows, and their printed lines.
#[derive(Debug, Default)]
pub(super) struct StepTable {
    csv: String,
    lines: Vec<String>,
    /// Minimal width of the first column.
    first: usize,
    /// The file and the number of bytes written.
    file: Option<(File, usize)>,
}

impl StepTable {
    /// Creates a table with the values of the first parameter of these rows in its first column.
    pub(super) fn of(rows: &[Vec<(String, String)>]) -> Self {
        let values = rows.iter().filter_map(|row| row.first());
        let width = values.map(|(_, value)| shorter(value).chars().count()).max();
        Self { first: width.unwrap_or(0), ..Self::default() }
    }

    /// Adds a row, and returns its printed lines: the first with the headings, and none for a problem that is solved
    /// once.
    pub(super) fn add(&mut self, row: &StepRow<'_>) -> &[String] {
        let cells = cells(row);
        let csv = |of: fn(&(String, String)) -> &String| {
            let fields = cells.iter().filter_map(|cell| cell.csv.as_ref());
            let fields: Vec<String> = fields.map(|field| quoted(of(field))).collect();
            format!("{}\n", fields.join(","))
        };
        if self.csv.is_empty() {
            self.csv = csv(|(head, _)| head);
        }
        self.csv.push_str(&csv(|(_, value)| value));
        let from = self.lines.len();
        if row.step.kind == StepKind::Solve {
            return &self.lines[from..];
        }
        let shown: Vec<_> = cells.iter().filter_map(|cell| cell.shown.as_ref()).collect();
        let line = |of: fn(&(String, String, usize)) -> &String| {
            let cells = shown.iter().enumerate().map(|(i, cell)| {
                let least = if i == 0 { self.first } else { 0 };
                let width = cell.2.max(cell.0.chars().count()).max(least);
                format!("{:>width$}", of(cell))
            });
            format!("  {}", cells.collect::<Vec<_>>().join("  "))
        };
        let head = (from == 0).then(|| line(|(head, ..)| head));
        let body = line(|(_, value, _)| value);
        self.lines.extend(head);
        self.lines.push(body);
        &self.lines[from..]
    }

    /// Writes the rows that the file lacks: first all at once, later rows with one call each. An interrupted run thus
    /// leaves complete rows.
    pub(super) fn write(&mut self, path: &Path) -> Result<(), Failure> {
        let failed = |error| cannot_add(path, &error);
        let (mut file, from) = match self.file.take() {
            Some(known) => known,
            None => {
                write_text(path, &self.csv)?;
                let file = OpenOptions::new().append(true).open(path).map_err(failed)?;
                (file, self.csv.len())
            }
        };
        file.write_all(&self.csv.as_bytes()[from..]).map_err(failed)?;
        self.file = Some((file, self.csv.len()));
        Ok(())
    }

    /// Synchronises the file with the disk.
    pub(super) fn settle(&self, path: &Path) -> Result<(), Failure> {
        let settled = self.file.as_ref().map_or(Ok(()), |(file, _)| {
            // A device such as /dev/null cannot be synchronised.
            if file.metadata()?.is_file() { file.sync_all() } else { Ok(()) }
        });
        settled.map_err(|error| cannot_add(path, &error))
    }

    /// Returns the printed table, in columns.
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

fn cannot_add(path: &Path, error: &std::io::Error) -> Failure {
    let path = path.display();
    Failure::input(format!(
        "cannot add rows to {path}: {error}\nhelp: make room where it is, or name another file"
    ))
}

fn cells(row: &StepRow<'_>) -> Vec<TableCell> {
    let mut cells = Vec::new();
    for (name, value) in row.varied {
        cells.push(TableCell {
            shown: Some((name.to_owned(), shorter(value), 0)),
            csv: Some((name.to_owned(), value.to_owned())),
        });
    }
    if row.step.kind == StepKind::Adapt {
        cells.extend(figures(row));
    }
    if let Some(time) = row.step.time {
        cells.extend(at(row, time));
        if row.is_adaptive {
            cells.extend(size(row.step));
        }
    }
    for report in row.reports {
        let ReportValue::Value(shape, values) = &report.value else { continue };
        for (name, value) in components(&report.name, *shape).into_iter().zip(values) {
            cells.push(TableCell {
                shown: Some((name.clone(), format!("{value:.6e}"), WIDE)),
                csv: Some((name, written(*value))),
            });
        }
    }
    cells
}

/// Returns a reported number for the CSV; a missing value is empty.
fn written(value: f64) -> String {
    if value.is_nan() { String::new() } else { format!("{value:?}") }
}

/// Returns a time, and the errors at this time.
fn at(row: &StepRow<'_>, time: f64) -> Vec<TableCell> {
    let own = TableCell {
        shown: Some(("t".to_owned(), format!("{time:.6}"), 12)),
        csv: Some(("t".to_owned(), format!("{time:?}"))),
    };
    let errors = row.step.errors.iter().flat_map(|(field, l2, h1)| {
        let of = match row.step.errors.len() {
            1 => String::new(),
            _ => format!(" {}", row.fields[*field].name),
        };
        [("L2", "l2", l2), ("H1", "h1", h1)].map(|(head, name, error)| TableCell {
            shown: Some((format!("{head} error{of}"), format!("{error:.3e}"), 10)),
            csv: Some((format!("error_{name}{of}"), format!("{error:?}"))),
        })
    });
    std::iter::once(own).chain(errors).collect()
}

/// Returns the size of the mesh of a step.
fn size(step: &Step) -> [TableCell; 2] {
    let counted = |shown: &str, csv: &str, count: usize, width| TableCell {
        shown: Some((shown.to_owned(), count.to_string(), width)),
        csv: Some((csv.to_owned(), count.to_string())),
    };
    [counted("cells", "cells", step.cells, 9), counted("unknowns", "dofs", step.dofs, 10)]
}

/// Returns the statistics of a step. Unknown values are empty, so that all rows have the same columns.
fn figures(row: &StepRow<'_>) -> Vec<TableCell> {
    let Step { estimate, errors, seconds, .. } = row.step;
    let cell = |shown: (&str, String, usize), csv: (&str, String)| TableCell {
        shown: Some((shown.0.to_owned(), shown.1, shown.2)),
        csv: Some((csv.0.to_owned(), csv.1)),
    };
    let exact = estimate.map_or_else(String::new, |value| format!("{value:?}"));
    let short = estimate.map_or_else(String::new, |value| format!("{value:.3e}"));
    let number = row.number.to_string();
    let mut found = vec![cell(("step", number.clone(), 4), ("step", number))];
    found.extend(size(row.step));
    found.push(cell(("η/‖u‖", short, 10), ("estimate", exact)));
    for (field, l2, h1) in errors {
        let of = match errors.len() {
            1 => String::new(),
            _ => format!(" {}", row.fields[*field].name),
        };
        let error = (format!("error_l2{of}"), format!("{l2:?}"));
        found.push(TableCell { shown: None, csv: Some(error) });
        let family = row.fields[*field].space.family();
        let norm = if family == "L2" { "H1" } else { family };
        let (head, shown) = (format!("{norm} error{of}"), format!("{h1:.3e}"));
        found.push(cell((&head, shown, 10), (&format!("error_h1{of}"), format!("{h1:?}"))));
    }
    let rate = row.before.and_then(|before| row.step.rate(before));
    let rate = rate.map_or_else(String::new, |rate| format!("{rate:.2}"));
    found.push(TableCell { shown: Some(("rate".to_owned(), rate, 5)), csv: None });
    found.push(cell(("seconds", format!("{seconds:.3}"), 9), ("seconds", format!("{seconds:?}"))));
    found
}

/// Returns a number with seven digits, other text unchanged.
fn shorter(text: &str) -> String {
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |value| format!("{value:.6e}"))
}

/// Returns a field of a row, quoted if it contains a comma.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// Returns the columns of a value.
pub(super) fn components(name: &str, shape: Shape) -> Vec<String> {
    match shape {
        Shape::Scalar => vec![name.to_owned()],
        Shape::Vector(n) => (0..n).map(|i| format!("{name}[{i}]")).collect(),
        Shape::Matrix(rows, columns) => {
            let entries = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
            entries.map(|(i, j)| format!("{name}[{i},{j}]")).collect()
        }
    }
}

/// Returns the line plots of a solve, each with its file: `u-cut.csv` for `u.vtu`.
pub(super) fn line_files(stem: &Path, reports: &[ReportResult]) -> Vec<(String, PathBuf)> {
    let is_line = |report: &&ReportResult| matches!(report.value, ReportValue::Line(..));
    let file = |report: &ReportResult| (report.name.clone(), line_file(stem, &report.name));
    reports.iter().filter(is_line).map(file).collect()
}

/// Returns a line plot as CSV; empty for other reports.
pub(super) fn line_text(report: &ReportResult) -> String {
    let ReportValue::Line(shape, points) = &report.value else { return String::new() };
    let mut text = String::from("x,y,z,");
    let columns = components("value", *shape);
    text.push_str(&columns.iter().map(|head| quoted(head)).collect::<Vec<_>>().join(","));
    text.push('\n');
    for (x, values) in points {
        let numbers = x.iter().chain(values).map(|value| written(*value));
        text.push_str(&numbers.collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

/// Returns the file of the line plot of this name.
pub(super) fn line_file(stem: &Path, name: &str) -> PathBuf {
    let own = stem.file_name().map_or_else(String::new, |own| own.to_string_lossy().into());
    stem.with_file_name(format!("{own}-{name}.csv"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fem_dsl::point::{Degree, Space};

    fn step(kind: StepKind, dofs: usize, h1: &[f64]) -> Step {
        let errors = h1.iter().enumerate().map(|(field, &h1)| (field, h1 / 8.0, h1)).collect();
        Step { kind, cells: dofs / 4, dofs, estimate: Some(0.25), errors, time: None, seconds: 0.5 }
    }

    /// Returns the table of some steps of a form with fields u and p, which reports a number and a matrix of one row.
    fn table(steps: &[Step], varied: Option<(&str, &[&str])>) -> StepTable {
        let named = |name: &str| Field {
            name: name.to_owned(),
            shape: Shape::Scalar,
            space: Space::H1(Degree::Relative(0)),
            cells: Vec::new(),
        };
        let report = |name: &str, shape, values: &[f64]| ReportResult {
            name: name.to_owned(),
            value: ReportValue::Value(shape, values.to_vec()),
        };
        let reports =
            [report("top", Shape::Scalar, &[0.1]), report("m", Shape::Matrix(1, 2), &[1.0, -2.0])];
        let own = |(name, values): (&str, &[&str])| -> Vec<Vec<(String, String)>> {
            values.iter().map(|&value| vec![(name.to_owned(), value.to_owned())]).collect()
        };
        let rows = varied.map_or(Vec::new(), own);
        let mut table = StepTable::of(&rows);
        for (number, step) in steps.iter().enumerate() {
            let lines = table.add(&StepRow {
                varied: rows.get(number).map_or(&[], Vec::as_slice),
                number,
                step,
                before: number.checked_sub(1).map(|before| &steps[before]),
                is_adaptive: step.kind == StepKind::Adapt || step.time.is_some(),
                fields: &[named("u"), named("p")],
                reports: &reports,
            });
            let expected = match (step.kind, number) {
                (StepKind::Solve, _) => 0,
                (_, 0) => 2,
                _ => 1,
            };
            assert_eq!(lines.len(), expected);
        }
        table
    }

    /// Returns the columns of all lines, which have equal width.
    fn columns(table: &StepTable) -> Vec<Vec<String>> {
        let widths = table.lines.iter().map(|line| line.chars().count());
        assert!(widths.clone().all(|width| Some(width) == widths.clone().next()), "{table:?}");
        let parts = |line: &String| -> Vec<String> {
            let parts = line.split("  ").map(str::trim).filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        table.lines.iter().map(parts).collect()
    }

    #[test]
    fn adaptive_steps_have_figures_and_rates() {
        let taken = [step(StepKind::Adapt, 100, &[0.5]), step(StepKind::Adapt, 400, &[0.25])];
        let table = table(&taken, None);
        assert_eq!(
            table.csv,
            "step,cells,dofs,estimate,error_l2,error_h1,seconds,top,\"m[0,0]\",\"m[0,1]\"\n\
             0,25,100,0.25,0.0625,0.5,0.5,0.1,1.0,-2.0\n\
             1,100,400,0.25,0.03125,0.25,0.5,0.1,1.0,-2.0\n"
        );
        let shown = columns(&table);
        let heads = ["step", "cells", "unknowns", "η/‖u‖", "H1 error", "rate", "seconds"];
        assert_eq!(shown[0], [&heads[..], &["top", "m[0,0]", "m[0,1]"]].concat());
        let figures = ["1", "100", "400", "2.500e-1", "2.500e-1", "0.50", "0.500"];
        let reports = ["1.000000e-1", "1.000000e0", "-2.000000e0"];
        assert_eq!(shown[2], [&figures[..], &reports].concat());
        assert_eq!(shown[1].len() + 1, shown[0].len(), "the first step has no rate");
    }

    #[test]
    fn times_have_the_size_of_their_mesh() {
        let taken = [(0.0, 100), (0.5, 400)].map(|(time, dofs)| {
            let time = Some(time);
            Step { time, ..step(StepKind::Time, dofs, &[0.5]) }
        });
        let table = table(&taken, None);
        assert!(
            table.csv.starts_with("t,error_l2,error_h1,cells,dofs,top,")
                && table.csv.contains("\n0.5,0.0625,0.5,100,400,0.1,"),
            "{}",
            table.csv
        );
    }

    #[test]
    fn several_fields_have_an_error_each() {
        let table = table(&[step(StepKind::Adapt, 100, &[0.5, 2.0])], Some(("load", &["[1, 2]"])));
        let heads =
            "load,step,cells,dofs,estimate,error_l2 u,error_h1 u,error_l2 p,error_h1 p,seconds,";
        assert!(table.csv.starts_with(heads), "{}", table.csv);
        assert!(table.csv.contains("\n\"[1, 2]\",0,25,100,"), "{}", table.csv);
        assert!(table.lines[0].contains("H1 error u  H1 error p"), "{table:?}");
    }

    #[test]
    fn values_of_a_parameter_have_what_is_reported() {
        let taken = [(); 2].map(|()| step(StepKind::Sweep, 100, &[0.5]));
        let table = table(&taken, Some(("load", &["1", "longer than a number"])));
        assert!(table.csv.starts_with("load,top,\"m[0,0]\",\"m[0,1]\"\n1,0.1,"), "{}", table.csv);
        assert_eq!(columns(&table)[1][0], "1.000000e0");
    }

    #[test]
    fn one_solve_is_a_row_but_no_line() {
        let table = table(&[step(StepKind::Solve, 100, &[])], None);
        assert_eq!(table.csv, "top,\"m[0,0]\",\"m[0,1]\"\n0.1,1.0,-2.0\n");
        assert_eq!(table.text(), "");
    }

    /// Each of 16,000 rows is written once: the contents of the file stay.
    #[test]
    fn rows_are_added_to_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.csv");
        std::fs::write(&path, "of an earlier run, and longer than what comes\n").expect("a file");
        let mut rows = table(&[step(StepKind::Solve, 100, &[])], None);
        rows.write(&path).expect("the first row");
        let read = || std::fs::read_to_string(&path).expect("a table");
        assert_eq!(read(), rows.csv);
        // Rewriting the whole file would lose this.
        std::fs::write(&path, format!("{}mark\n", rows.csv)).expect("a file");
        rows.csv.push_str("0.2,2.0,-4.0\n");
        rows.write(&path).expect("the second row");
        rows.settle(&path).expect("it is on the disk");
        assert!(read().ends_with("mark\n0.2,2.0,-4.0\n"), "{}", read());
    }
}
