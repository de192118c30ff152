//! `--plot`: rows of the suite → throughput over degree and over size, as SVG.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plotters::prelude::*;
use serde_json::Value;

use crate::picture::{Area, Drawn, save};
use crate::report::Failure;

/// Width of the picture and height of each panel.
const PANEL: (u32, u32) = (1080, 480);
/// Width of the names beside a panel.
const NAMES: u32 = 180;

/// A row of the suite, as far as it is drawn.
struct Row {
    problem: String,
    threads: u64,
    degree: f64,
    dofs: f64,
    rate: f64,
    csr: Option<f64>,
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
        })
    }
}

/// A line with its name.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    /// The assembled matrix is dashed, in the colour of its operator.
    matrix: Vec<(f64, f64)>,
}

/// Draws the rows.
pub(super) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let rows: Vec<Row> = rows.iter().filter_map(Row::new).collect();
    let threads: BTreeSet<u64> = rows.iter().map(|row| row.threads).collect();
    let name = |row: &Row| match threads.len() {
        0 | 1 => row.problem.clone(),
        _ => format!("{}, {} threads", row.problem, row.threads),
    };
    let (degrees, sizes) = (over_degree(&rows, &name), over_size(&rows, &name));
    let panels = if sizes.is_empty() { 1 } else { 2 };
    save(path, (PANEL.0, panels * PANEL.1), |whole| {
        let areas = whole.split_evenly((panels as usize, 1));
        over(&areas[0], "polynomial degree", false, &degrees)?;
        names(&areas[0], &degrees)?;
        if let Some(area) = areas.get(1) {
            over(area, "unknowns", true, &sizes)?;
            names(area, &sizes)?;
        }
        Ok(())
    })
}

/// Throughput over degree, at the largest size of each.
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
            series.push(Series { name, points: Vec::new(), matrix: Vec::new() });
        }
        let Some(last) = series.last_mut() else { continue };
        last.points.push((row.degree, row.rate));
        last.matrix.extend(row.csr.map(|csr| (row.degree, csr)));
    }
    series
}

/// Throughput over size, for what has several.
fn over_size(rows: &[Row], name: &dyn Fn(&Row) -> String) -> Vec<Series> {
    let mut all: BTreeMap<(String, u64), Series> = BTreeMap::new();
    for row in rows {
        let degree = row.degree as u64;
        let name = name(row);
        let own = format!("{name}, p = {degree}");
        let empty = || Series { name: own, points: Vec::new(), matrix: Vec::new() };
        let series = all.entry((name, degree)).or_insert_with(empty);
        series.points.push((row.dofs, row.rate));
        series.matrix.extend(row.csr.map(|csr| (row.dofs, csr)));
    }
    let several = all.into_values().filter(|series| series.points.len() > 1);
    let mut several: Vec<Series> = several.collect();
    for series in &mut several {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.matrix.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    several
}

fn colour(number: usize) -> RGBAColor {
    Palette99::pick(number).to_rgba()
}

/// The names of lines, beside a panel.
fn names(area: &Area<'_>, series: &[Series]) -> Drawn {
    let x = (PANEL.0 - NAMES) as i32 + 12;
    for (number, series) in series.iter().enumerate() {
        let y = 24 + 18 * number as i32;
        let line = vec![(x, y), (x + 18, y)];
        area.draw(&PathElement::new(line, colour(number).stroke_width(2)))?;
        let name = series.name.clone();
        area.draw(&Text::new(name, (x + 24, y - 6), ("sans-serif", 12).into_font()))?;
    }
    Ok(())
}

/// A panel: lines over an axis, from zero up.
fn over(area: &Area<'_>, axis: &str, logarithmic: bool, series: &[Series]) -> Drawn {
    let points = series.iter().flat_map(|series| &series.points);
    let all = || points.clone().chain(series.iter().flat_map(|series| &series.matrix));
    let top = all().map(|point| point.1).fold(0.0, f64::max);
    let (unit, word) = if top >= 1e9 { (1e9, "GDoF/s") } else { (1e6, "MDoF/s") };
    let matrix = series.iter().any(|series| !series.matrix.is_empty());
    let word = if matrix { format!("{word} (dashed: assembled)") } else { word.to_owned() };
    let left = points.clone().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let right = points.clone().map(|point| point.0).fold(0.0, f64::max);
    let mut builder = ChartBuilder::on(area);
    builder.margin(16).margin_right(NAMES).x_label_area_size(44).y_label_area_size(64);
    let height = 0.0..1.08 * top / unit;
    if logarithmic {
        let mut chart = builder.build_cartesian_2d((left..right).log_scale(), height)?;
        let mut mesh = chart.configure_mesh();
        let size = |size: &f64| format!("{size:.0e}");
        mesh.x_desc(axis).y_desc(word).x_label_formatter(&size).light_line_style(WHITE).draw()?;
        lines(&mut chart, series, unit)
    } else {
        let mut chart = builder.build_cartesian_2d(left - 0.25..right + 0.25, height)?;
        let mut mesh = chart.configure_mesh();
        let degree = |degree: &f64| match degree.fract() {
            0.0 => format!("{degree:.0}"),
            _ => String::new(),
        };
        let count = (right - left) as usize + 2;
        mesh.x_desc(axis).y_desc(word).x_label_formatter(&degree).x_labels(count);
        mesh.light_line_style(WHITE).draw()?;
        lines(&mut chart, series, unit)
    }
}

fn lines<'a, X: Ranged<ValueType = f64>, Y: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    series: &[Series],
    unit: f64,
) -> Drawn {
    for (number, Series { points, matrix, .. }) in series.iter().enumerate() {
        let colour = colour(number);
        let scaled = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|&(x, y)| (x, y / unit)).collect()
        };
        let line = LineSeries::new(scaled(points), colour.stroke_width(2)).point_size(3);
        chart.draw_series(line)?;
        if !matrix.is_empty() {
            let dashed = DashedLineSeries::new(scaled(matrix), 6, 4, colour.stroke_width(1));
            chart.draw_series(dashed)?;
        }
    }
    Ok(())
}
