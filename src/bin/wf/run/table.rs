//! What problems report as CSV: a row for each solve, a column for each number; and the lines of a report, each in a file
//! of its own. Numbers are written so that they are read back to the bit.

use fem_dsl::point::Shape;
use runtime::output::write_text;
use runtime::run::{Figure, Outcome};
use std::path::{Path, PathBuf};

use crate::report::Failure;

/// Rows of reports.
#[derive(Debug, Default)]
pub(super) struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Adds what a solve reports, behind what tells it from the others.
    pub(super) fn add(&mut self, first: Option<(&str, &str)>, reports: &[Outcome]) {
        let (mut names, mut row) = (Vec::new(), Vec::new());
        if let Some((name, value)) = first {
            names.push(name.to_owned());
            row.push(field(value));
        }
        for report in reports {
            let Figure::Value(shape, values) = &report.value else { continue };
            names.extend(components(&report.name, *shape));
            row.extend(values.iter().map(|value| format!("{value:?}")));
        }
        self.columns = names;
        self.rows.push(row);
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    fn csv(&self) -> String {
        let line = |fields: &[String]| format!("{}\n", fields.join(","));
        line(&self.columns) + &self.rows.iter().map(|row| line(row)).collect::<String>()
    }

    /// Writes it, whole or not at all.
    pub(super) fn write(&self, path: &Path) -> Result<(), Failure> {
        Ok(write_text(path, &self.csv())?)
    }

    /// As a person reads it: in columns.
    pub(super) fn text(&self) -> String {
        let short = |text: &String| match text.parse::<f64>() {
            Ok(value) => format!("{value:.6e}"),
            Err(_) => text.clone(),
        };
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(short).collect()).collect();
        let width = |at: usize| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([self.columns[at].chars().count()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |row: &[String]| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            format!("  {}\n", cells.collect::<Vec<_>>().join("  "))
        };
        line(&self.columns) + &rows.iter().map(|row| line(row)).collect::<String>()
    }
}

/// A field of a row: in quotes where it has a comma.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

/// The columns of a value.
fn components(name: &str, shape: Shape) -> Vec<String> {
    match shape {
        Shape::Scalar => vec![name.to_owned()],
        Shape::Vector(n) => (0..n).map(|i| format!("{name}[{i}]")).collect(),
        Shape::Matrix(rows, columns) => {
            let entries = (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j)));
            entries.map(|(i, j)| field(&format!("{name}[{i},{j}]"))).collect()
        }
    }
}

/// The files of the lines that a solve reports: `PROBLEM-cut.csv`, beside the solution.
pub(super) fn line_files(stem: &Path, reports: &[Outcome]) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for report in reports {
        let Figure::Line(shape, points) = &report.value else { continue };
        let mut text = String::from("x,y,z,");
        text.push_str(&components("value", *shape).join(","));
        text.push('\n');
        for (x, values) in points {
            let numbers = x.iter().chain(values).map(|value| format!("{value:?}"));
            text.push_str(&numbers.collect::<Vec<_>>().join(","));
            text.push('\n');
        }
        let name = stem.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        files.push((stem.with_file_name(format!("{name}-{}.csv", report.name)), text));
    }
    files
}
