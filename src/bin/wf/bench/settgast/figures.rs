//! `--plot` of the suite `settgast`: rows → figures 1, 3 to 6 and 8 in one chart per problem, figure 7 in another, and
//! the roofline of 2 and 9.

use std::path::Path;

use serde_json::Value;
use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use crate::report::Failure;

/// The passes of an iteration: the key of a row, and the name of the line.
const PASSES: [(&str, &str); 3] = [
    ("cg_fused_dofs_per_second", "fused"),
    ("cg_table_4_dofs_per_second", "table 4"),
    ("cg_separate_dofs_per_second", "separate"),
];

/// Draws the rows.
pub(in crate::bench) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let rows: Vec<&Value> = rows.iter().filter(|row| row["row"] == "operator").collect();
    let problems = different(&rows, "problem");
    let mut charts = Vec::new();
    for problem in &problems {
        let own: Vec<&Value> =
            rows.iter().copied().filter(|row| row["problem"] == **problem).collect();
        charts.push(sizes(problem, &own));
        charts.push(passes(problem, &own));
    }
    charts.push(roof(&problems, &rows));
    charts.retain(|chart| chart.series.iter().any(|series| !series.points.is_empty()));
    Ok(write_charts(path, "Low-order operators", &charts)?)
}

/// Returns the distinct texts of a key, in the order of the rows.
fn different<'a>(rows: &[&'a Value], key: &str) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for word in rows.iter().filter_map(|row| row[key].as_str()) {
        if !all.contains(&word) {
            all.push(word);
        }
    }
    all
}

/// Returns a value over size, in millions, for the rows that have it.
fn over_size<'a>(rows: impl Iterator<Item = &'a Value>, key: &str) -> Vec<(f64, f64)> {
    rows.filter_map(|row| Some((row["dofs"].as_f64()?, row[key].as_f64()? / 1e6))).collect()
}

fn chart(x: String, y: &str, series: Vec<Series>, dashed: &str) -> Chart {
    let axis = |name: String, scale| Axis { name, scale };
    let (x, y) = (axis(x, Scale::Logarithmic), axis(y.to_owned(), Scale::FromZero));
    Chart { x, y, series, dashed: dashed.to_owned() }
}

/// Draws products over size for each representation, and dashed their iterations.
fn sizes(problem: &str, rows: &[&Value]) -> Chart {
    let series = different(rows, "way").into_iter().map(|way| {
        let own = || rows.iter().copied().filter(|row| row["way"] == way);
        Series {
            name: way.to_owned(),
            points: over_size(own(), "dofs_per_second"),
            dashed: over_size(own(), "cg_fused_dofs_per_second"),
            is_plain: false,
            fits_dashed: true,
        }
    });
    chart(format!("unknowns of {problem}"), "MDoF/s", series.collect(), "an iteration")
}

/// Draws iterations over size by their vector passes, for the representation that has all.
fn passes(problem: &str, rows: &[&Value]) -> Chart {
    let own = || rows.iter().copied().filter(|row| row["cg_separate_seconds"].is_number());
    let series = PASSES.map(|(key, name)| Series {
        name: name.to_owned(),
        points: over_size(own(), key),
        ..Series::default()
    });
    chart(format!("unknowns of {problem}, iterations by their passes"), "MDoF/s", series.into(), "")
}

/// Draws operations per second over operations per byte on the largest meshes, below the limits of copy bandwidth and
/// multiply-adds.
fn roof(problems: &[&str], rows: &[&Value]) -> Chart {
    let mut series = Vec::new();
    let mut all: Vec<(f64, f64)> = Vec::new();
    for problem in problems {
        let own = || rows.iter().filter(|row| row["problem"] == **problem);
        let most = own().filter_map(|row| row["dofs"].as_u64()).max();
        let points = own().filter(|row| row["dofs"].as_u64() == most).filter_map(|row| {
            let number = |key: &str| row[key].as_f64();
            let (work, stream) = (number("flops_per_second")?, number("bytes_per_second")?);
            let allowed = number("multiply_adds")?.min(number("copy")? * work / stream);
            all.push((work / stream, allowed / 1e9));
            Some((work / stream, work / 1e9))
        });
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.push(Series { name: (*problem).to_owned(), points, ..Series::default() });
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    series.push(Series { name: "the roof".to_owned(), points: all, ..Series::default() });
    let mut chart = chart("operations a byte".to_owned(), "GFLOP/s", series, "");
    chart.y.scale = Scale::Logarithmic;
    chart
}
