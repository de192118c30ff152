//! `--plot`: errors over the cell size, both logarithmic; the expected slopes are dashed.

use std::path::Path;

use weakform::picture::{Axis, Chart, Scale, Series, write_charts};
use weakform::verify::Verification;

use crate::report::Failure;

/// The smallest error drawn.
const LEAST: f64 = 1e-16;

/// Draws a chart for each norm.
pub(super) fn draw(path: &Path, found: &[Verification]) -> Result<(), Failure> {
    let charts = [("L2", 0), ("H1", 1)].map(|(norm, index)| {
        let axis = |name: String| Axis { name, scale: Scale::Logarithmic };
        let (x, y) = (axis("size of cells".to_owned()), axis(format!("error in {norm}")));
        Chart { x, y, series: series(found, index), dashed: "expected order".to_owned() }
    });
    Ok(write_charts(path, "Errors over the size of cells", &charts)?)
}

/// Returns the errors of all fields and degrees in one norm.
fn series(found: &[Verification], norm: usize) -> Vec<Series> {
    let mut all = Vec::new();
    for verification in found {
        let several = found.len() > 1;
        for degree in &verification.degrees {
            let Ok(findings) = &degree.outcome else { continue };
            for (field, orders) in findings.orders.iter().enumerate() {
                let points = findings.levels.iter().map(|level| {
                    let errors = [level.errors[field].0, level.errors[field].1];
                    (level.size, errors[norm])
                });
                let points: Vec<(f64, f64)> =
                    points.filter(|(_, error)| *error > LEAST && error.is_finite()).collect();
                let name = &verification.fields[field];
                let mut name = format!("{name}, k = {}", degree.degree);
                if several {
                    let cell = verification.cell.name();
                    name = format!("{} ({cell}): {name}", verification.problem);
                }
                let slope = [orders.l2.expected, orders.h1.expected][norm];
                let dashed = expected(&points, slope);
                let is_plain = false;
                all.push(Series { name, points, is_plain, dashed, fits_dashed: false });
            }
        }
    }
    all.retain(|series| series.points.len() > 1);
    all
}

/// Returns a line from the finest error back with the expected slope.
fn expected(points: &[(f64, f64)], slope: f64) -> Vec<(f64, f64)> {
    let (Some(&(coarse, _)), Some(&(fine, error))) = (points.first(), points.last()) else {
        return Vec::new();
    };
    vec![(coarse, error * (coarse / fine).powf(slope)), (fine, error)]
}
