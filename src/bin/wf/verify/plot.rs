//! `--plot`: errors over the size of cells, both logarithmic, as SVG; dashed the slopes that are expected.

use std::path::Path;

use plotters::coord::combinators::IntoLogRange as _;
use plotters::prelude::*;
use weakform::verify::Verification;

use crate::picture::{Area, Drawn, save};
use crate::report::Failure;

/// Width and height of each panel.
const PANEL: (u32, u32) = (1080, 460);
/// Width of the names beside a panel.
const NAMES: u32 = 260;
/// Errors below this are not drawn.
const LEAST: f64 = 1e-16;

/// A line with its name and the slope that it should have.
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
    slope: f64,
}

/// Draws a panel for each norm.
pub(super) fn draw(path: &Path, found: &[Verification]) -> Result<(), Failure> {
    let panels = [("L2", 0), ("H1", 1)].map(|(norm, index)| (norm, series(found, index)));
    save(path, (PANEL.0, 2 * PANEL.1), |whole| {
        for (area, (norm, series)) in whole.split_evenly((2, 1)).iter().zip(&panels) {
            panel(area, norm, series)?;
        }
        Ok(())
    })
}

/// The errors of all fields and degrees in one norm.
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
                all.push(Series { name, points, slope });
            }
        }
    }
    all.retain(|series| series.points.len() > 1);
    all
}

fn panel(area: &Area<'_>, norm: &str, all: &[Series]) -> Drawn {
    let points = || all.iter().flat_map(|series| &series.points);
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let low = points().map(of).fold(f64::INFINITY, f64::min);
        (low, points().map(of).fold(0.0, f64::max))
    };
    let ((left, right), (bottom, top)) = (ends(|point| point.0), ends(|point| point.1));
    if points().next().is_none() {
        let font = ("sans-serif", 14).into_font();
        area.draw(&Text::new(format!("{norm}: no errors to draw"), (40, 40), font))?;
        return Ok(());
    }
    let mut builder = ChartBuilder::on(area);
    builder.margin(16).margin_right(NAMES).x_label_area_size(44).y_label_area_size(72);
    let (x, y) = ((0.9 * left..1.1 * right).log_scale(), (0.5 * bottom..2.0 * top).log_scale());
    let mut chart = builder.build_cartesian_2d(x, y)?;
    let mut mesh = chart.configure_mesh();
    let number = |value: &f64| format!("{value:.0e}");
    let size = |value: &f64| format!("{value:.2}");
    mesh.x_desc("size of cells").y_desc(format!("error in {norm} (dashed: expected)"));
    mesh.x_label_formatter(&size).y_label_formatter(&number).light_line_style(WHITE).draw()?;
    for (number, series) in all.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let line = LineSeries::new(series.points.clone(), colour.stroke_width(2)).point_size(3);
        chart.draw_series(line)?;
        // From the finest error back with the expected slope.
        let (Some(&(fine, error)), Some(&(coarse, _))) =
            (series.points.last(), series.points.first())
        else {
            continue;
        };
        let before = error * (coarse / fine).powf(series.slope);
        let ideal = vec![(coarse, before.min(2.0 * top)), (fine, error)];
        chart.draw_series(DashedLineSeries::new(ideal, 5, 4, colour.stroke_width(1)))?;
        let (x, y) = ((PANEL.0 - NAMES) as i32 + 12, 24 + 18 * number as i32);
        area.draw(&PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2)))?;
        let font = ("sans-serif", 12).into_font();
        area.draw(&Text::new(series.name.clone(), (x + 24, y - 6), font))?;
    }
    Ok(())
}
