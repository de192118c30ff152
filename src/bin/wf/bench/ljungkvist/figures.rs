//! `--plot` of the suite `ljungkvist`: rows → figures 4 to 7, solid for uniform and dashed for adaptive meshes.

use std::path::Path;

use serde_json::Value;
use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use crate::report::Failure;

/// The plotted values of a mesh at a degree.
#[derive(Clone, Copy)]
struct Point {
    dim: u64,
    degree: u64,
    adaptive: bool,
    dofs: f64,
    /// Million DoFs per second.
    rate: f64,
    /// The same with a sparse matrix.
    matrix: Option<f64>,
}

impl Point {
    fn new(row: &Value) -> Option<Self> {
        Some(Self {
            dim: row["dim"].as_u64()?,
            degree: row["degree"].as_u64()?,
            adaptive: row["mesh"].as_str()? == "adaptive",
            dofs: row["dofs_with_hanging"].as_f64()?,
            rate: row["dofs_with_hanging_per_second"].as_f64()? / 1e6,
            matrix: row["csr_dofs_with_hanging_per_second"].as_f64().map(|rate| rate / 1e6),
        })
    }
}

/// Draws the rows.
pub(in crate::bench) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let points: Vec<Point> = rows.iter().filter_map(Point::new).collect();
    let mut charts = Vec::new();
    for dim in [2, 3] {
        let own: Vec<Point> = points.iter().copied().filter(|point| point.dim == dim).collect();
        let mut degrees: Vec<u64> = own.iter().map(|point| point.degree).collect();
        degrees.sort_unstable();
        degrees.dedup();
        let series = degrees.into_iter().map(|degree| {
            let own = own.iter().filter(|point| point.degree == degree);
            let points = own.map(|point| (point.adaptive, (point.dofs, point.rate)));
            series(format!("p = {degree}"), points.collect())
        });
        charts.push(chart(format!("unknowns in {dim}D"), Scale::Logarithmic, series.collect()));
    }
    let all = &points[..];
    let free = [2, 3].map(|dim| {
        let of = |point: &&Point| point.dim == dim && is_largest(point, &points);
        let points = points.iter().filter(of);
        let points = points.map(|point| (point.adaptive, (point.degree as f64, point.rate)));
        series(format!("{dim}D"), points.collect())
    });
    // As in figures 6 and 7, the matrix has its own bars.
    let matrices = [2, 3].map(|dim| {
        let points = points.iter().filter(|point| point.dim == dim);
        let points = points.filter(|point| is_largest_matrix(point, all));
        let points =
            points.filter_map(|point| Some((point.adaptive, (point.degree as f64, point.matrix?))));
        series(format!("{dim}D, matrix"), points.collect())
    });
    let mut all: Vec<Series> = free.into_iter().chain(matrices).collect();
    all.retain(|series| !(series.points.is_empty() && series.dashed.is_empty()));
    charts.push(chart("polynomial degree".to_owned(), Scale::Whole, all));
    charts.retain(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    Ok(write_charts(path, "Poisson on balls", &charts)?)
}

/// Returns whether no larger mesh of its kind was measured at its degree.
fn is_largest(point: &Point, points: &[Point]) -> bool {
    let kind = |point: &Point| (point.dim, point.degree, point.adaptive);
    points.iter().all(|other| kind(other) != kind(point) || other.dofs <= point.dofs)
}

/// Returns whether no larger matrix of its kind was assembled at its degree.
fn is_largest_matrix(point: &Point, points: &[Point]) -> bool {
    let made = points.iter().filter(|other| other.matrix.is_some()).copied();
    point.matrix.is_some() && is_largest(point, &made.collect::<Vec<_>>())
}

/// Returns a solid line for uniform meshes, dashed for adaptive ones.
fn series(name: String, all: Vec<(bool, (f64, f64))>) -> Series {
    let of = |adaptive: bool| {
        let own = all.iter().filter(|(of, _)| *of == adaptive).map(|(_, at)| *at);
        let mut own: Vec<(f64, f64)> = own.collect();
        own.sort_by(|a, b| a.0.total_cmp(&b.0));
        own
    };
    let (points, dashed, is_plain) = (of(false), of(true), false);
    Series { name, points, is_plain, dashed, fits_dashed: true }
}

fn chart(x: String, scale: Scale, series: Vec<Series>) -> Chart {
    let axis = |name: String, scale| Axis { name, scale };
    let y = axis("MDoF/s".to_owned(), Scale::FromZero);
    Chart { x: axis(x, scale), y, series, dashed: "adaptive".to_owned() }
}
