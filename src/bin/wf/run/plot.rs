//! `wf run --plot`: reported numbers over time, adaptive steps or the values of a parameter, a chart each.

use std::path::Path;

use runtime::problem::{ReportResult, ReportValue, Step, StepKind};
use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use super::sweep::shown;
use super::table::components;
use crate::report::Failure;

/// Charts of a problem's reports.
#[derive(Debug, Default)]
pub(super) struct ReportPlot {
    /// The name of the horizontal axis, with its scale.
    x: Option<(String, Scale)>,
    /// For each number its name, and the points of each solve.
    charts: Vec<(String, Vec<Series>)>,
}

impl ReportPlot {
    /// Adds a step of a solve with these values of parameters.
    pub(super) fn add(&mut self, row: &[(String, String)], step: &Step, reports: &[ReportResult]) {
        let (x, place, own) = abscissa(row, step, self.steps());
        self.x.get_or_insert(x);
        let estimate = step.estimate.map(|value| ("estimate".to_owned(), value));
        let numbers = reports.iter().flat_map(|report| match &report.value {
            ReportValue::Value(shape, values) => {
                components(&report.name, *shape).into_iter().zip(values.iter().copied()).collect()
            }
            _ => Vec::new(),
        });
        for (name, value) in estimate.into_iter().chain(numbers) {
            let at = self.charts.iter().position(|(known, _)| *known == name);
            let at = at.unwrap_or_else(|| {
                self.charts.push((name, Vec::new()));
                self.charts.len() - 1
            });
            let series = &mut self.charts[at].1;
            let one = series.iter().position(|series| series.name == own);
            let one = one.unwrap_or_else(|| {
                series.push(Series { name: own.clone(), ..Series::default() });
                series.len() - 1
            });
            series[one].points.push((place, value));
        }
    }

    /// Returns the number of points of the longest line.
    fn steps(&self) -> usize {
        let series = self.charts.iter().flat_map(|(_, series)| series);
        series.map(|series| series.points.len()).max().unwrap_or(0)
    }

    /// Writes the charts of a problem.
    ///
    /// # Errors
    ///
    /// Nothing that changes, a file that cannot be written.
    pub(super) fn write(self, path: &Path, problem: &str) -> Result<(), Failure> {
        let steps = self.steps();
        let Some((name, scale)) = self.x.filter(|_| steps > 1) else {
            return Err(Failure::input(format!(
                "--plot draws reports over time, adaptive steps or values of a parameter, and `{problem}` has one of each\n\
                 help: add `time = …;` or `adapt(…);` to the problem, with `report NAME = EXPR;`, or several values, `--param a=1..2:10`"
            )));
        };
        // Many points have no marks.
        let is_plain = steps > MARKED;
        let chart = |(of, series): (String, Vec<Series>)| Chart {
            x: Axis { name: name.clone(), scale },
            y: Axis { name: of, scale: Scale::Linear },
            series: series.into_iter().map(|own| Series { is_plain, ..own }).collect(),
            dashed: String::new(),
        };
        let charts: Vec<Chart> = self.charts.into_iter().map(chart).collect();
        Ok(write_charts(path, problem, &charts)?)
    }
}

/// Number of points up to which each has a mark.
const MARKED: usize = 60;

/// Returns the horizontal axis, a step's place on it, and the name of its line.
fn abscissa(
    row: &[(String, String)],
    step: &Step,
    before: usize,
) -> ((String, Scale), f64, String) {
    if let Some(time) = step.time {
        return (("t".to_owned(), Scale::Linear), time, shown(row));
    }
    if step.kind == StepKind::Adapt {
        return (("unknowns".to_owned(), Scale::Logarithmic), step.dofs as f64, shown(row));
    }
    match row.split_last() {
        // A parameter with other values than numbers has their order.
        Some(((name, value), others)) => {
            let place = value.parse().unwrap_or(before as f64);
            ((name.clone(), Scale::Linear), place, shown(others))
        }
        None => (("solve".to_owned(), Scale::Whole), before as f64, String::new()),
    }
}
