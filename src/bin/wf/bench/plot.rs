//! `--plot`: rows of the suite → throughput over degree and over size.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use crate::report::Failure;

/// The plotted values of a row of the suite.
struct Row {
    problem: String,
    threads: u64,
    degree: f64,
    dofs: f64,
    rate: f64,
    csr: Option<f64>,
    /// Bytes per DoF.
    bytes: Option<f64>,
    csr_bytes: Option<f64>,
}

impl Row {
    fn new(value: &Value) -> Option<Self> {
        Some(Self {
            problem: value["problem"].as_str()?.to_owned(),
            threads: value["threads"].as_u64()?,
            degree: value["degree"].as_f64()?,
            dofs: value["dofs"].as_f64()?,
            rate: value["dofs_per_second"].as_f64()?,
            csr: value["csr_dofs_per_second"].as_f64(),
            bytes: value["bytes_per_dof"].as_f64(),
            csr_bytes: value["csr_bytes_per_dof"].as_f64(),
        })
    }
}

/// Draws the rows.
pub(super) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    Ok(write_charts(path, "Throughput of operators", &throughput(rows))?)
}

/// Returns throughput over degree, and over size if there are several.
pub(super) fn throughput(rows: &[Value]) -> Vec<Chart> {
    let rows: Vec<Row> = rows.iter().filter_map(Row::new).collect();
    let threads: BTreeSet<u64> = rows.iter().map(|row| row.threads).collect();
    let name = |row: &Row| match threads.len() {
        0 | 1 => row.problem.clone(),
        _ => format!("{}, {} threads", row.problem, row.threads),
    };
    let (degrees, sizes) = (over_degree(&rows, &name), over_size(&rows, &name));
    let mut charts = vec![chart("polynomial degree", Scale::Whole, degrees)];
    if !sizes.is_empty() {
        charts.push(chart("unknowns", Scale::Logarithmic, sizes));
    }
    charts
}

/// Returns memory per DoF over degree, independent of the threads; `None` if it is unknown.
pub(super) fn memory(rows: &[Value]) -> Option<Chart> {
    let stored = |row: Row| {
        let (rate, csr) = (row.bytes?, row.csr_bytes);
        (rate > 0.0).then_some(Row { rate, csr, ..row })
    };
    let rows: Vec<Row> = rows.iter().filter_map(Row::new).filter_map(stored).collect();
    let series = over_degree(&rows, &|row| row.problem.clone());
    let axis = |name: &str, scale| Axis { name: name.to_owned(), scale };
    let (x, y) = (axis("polynomial degree", Scale::Whole), axis("B/DoF", Scale::Logarithmic));
    (!series.is_empty()).then(|| Chart { x, y, series, dashed: "assembled matrix".to_owned() })
}

/// Returns a chart of lines over an axis, with throughput in a suitable unit.
fn chart(x: &str, scale: Scale, mut series: Vec<Series>) -> Chart {
    let all = |series: &Series| [&series.points[..], &series.dashed[..]].concat();
    let top = series.iter().flat_map(all).map(|point| point.1).fold(0.0, f64::max);
    let (unit, word) = if top >= 1e9 { (1e9, "GDoF/s") } else { (1e6, "MDoF/s") };
    for series in &mut series {
        series.points.iter_mut().chain(&mut series.dashed).for_each(|point| point.1 /= unit);
    }
    let axis = |name: &str, scale| Axis { name: name.to_owned(), scale };
    let (x, y) = (axis(x, scale), axis(word, Scale::FromZero));
    Chart { x, y, series, dashed: "assembled matrix".to_owned() }
}

/// Returns a line without points; the assembled matrix is dashed, and measured like its operator.
fn line(name: String) -> Series {
    Series { name, fits_dashed: true, ..Series::default() }
}

/// Returns throughput over degree, at the largest size of each.
fn over_degree(rows: &[Row], name: &dyn Fn(&Row) -> String) -> Vec<Series> {
    let mut best: BTreeMap<(String, u64), &Row> = BTreeMap::new();
    for row in rows {
        let known = best.entry((name(row), row.degree as u64)).or_insert(row);
        if row.dofs > known.dofs {
            *known = row;
        }
    }
    let mut series: Vec<Series> = Vec::new();
    for ((name, _), row) in best {
        if series.last().is_none_or(|last| last.name != name) {
            series.push(line(name));
        }
        let Some(last) = series.last_mut() else { continue };
        last.points.push((row.degree, row.rate));
        last.dashed.extend(row.csr.map(|csr| (row.degree, csr)));
    }
    series
}

/// Returns throughput over size, for lines with several sizes.
fn over_size(rows: &[Row], name: &dyn Fn(&Row) -> String) -> Vec<Series> {
    let mut all: BTreeMap<(String, u64), Series> = BTreeMap::new();
    for row in rows {
        let degree = row.degree as u64;
        let name = name(row);
        let own = format!("{name}, p = {degree}");
        let series = all.entry((name, degree)).or_insert_with(|| line(own));
        series.points.push((row.dofs, row.rate));
        series.dashed.extend(row.csr.map(|csr| (row.dofs, csr)));
    }
    let several = all.into_values().filter(|series| series.points.len() > 1);
    let mut several: Vec<Series> = several.collect();
    for series in &mut several {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.dashed.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    several
}
