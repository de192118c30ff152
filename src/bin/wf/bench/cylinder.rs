//! The suite `cylinder`: the vortex street of a cylinder, `examples/vortices.wf`, over the whole time interval → its
//! Strouhal number, the largest drag and lift, and the cost of a step (Schäfer and Turek 1996, problem 2D-2).
//!
//! ```text
//! St = D f / U,    f from the times at which the lift passes its mean upwards, of the last half of all time
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Stepping;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::kernels::compile::Target;
use runtime::mesh::{Mesh, gmsh};
use runtime::problem::{Monitor, Platform, Solution, Step, run_steps};
use runtime::solve::{Continue, Progress};
use serde_json::{Value, json};
use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use super::{Arguments, Degrees, named};
use crate::console::Console;
use crate::report::{Failure, Report};

const TEXT: &str = include_str!("../../../../examples/vortices.wf");
const MESH: &[u8] = include_bytes!("../../../../meshes/cylinder_quad9.msh");
/// D / U.
const TIME: f64 = 0.1;
/// The time from which drag is drawn.
const START: f64 = 0.1;
/// The step sizes.
const STEPS: [f64; 2] = [0.01, 0.005];

/// The results of one run.
struct Row {
    degree: usize,
    step: f64,
    dofs: usize,
    times: Vec<f64>,
    drag: Vec<f64>,
    lift: Vec<f64>,
    seconds: f64,
}

/// Records drag and lift at all times.
struct ForceRecorder<'a> {
    console: &'a Console,
    shown: String,
    times: Vec<f64>,
    drag: Vec<f64>,
    lift: Vec<f64>,
}

impl Monitor for ForceRecorder<'_> {
    fn iteration(&mut self, _: Progress) -> Continue {
        Continue::Yes
    }

    fn step(&mut self, step: &Step, solution: &Solution) -> Continue {
        let Some(time) = step.time else { return Continue::Yes };
        let of = |name: &str| {
            let mut reports = solution.reports.iter();
            reports.find(|report| report.name == name).and_then(|report| report.value.number())
        };
        if let (Some(drag), Some(lift)) = (of("drag"), of("lift")) {
            self.times.push(time);
            self.drag.push(drag);
            self.lift.push(lift);
        }
        self.console.progress().say(format!("{}, t = {time:.2}", self.shown));
        Continue::Yes
    }
}

pub(super) fn suite(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::input(error.to_string());
    let mesh = Arc::new(gmsh::parse(MESH).map_err(|error| failed(&error))?);
    let threads = rayon::current_num_threads();
    report.text.push_str(&format!(
        "{}, {threads} threads of the processor: a cylinder in a channel at Re = 100 (examples/vortices.wf)\n\
         known: St 0.295 to 0.305, drag 3.22 to 3.24, lift 0.99 to 1.01\n\
         p  unknowns    step  steps |      St    drag    lift | seconds  a step\n",
        named(device)
    ));
    let degrees = arguments.degree.unwrap_or(Degrees { first: 3, last: 4 });
    for degree in degrees.first.max(2) as usize..=degrees.last as usize {
        for step in STEPS {
            let row = row(&mesh, (degree, step), device, console)?;
            report.row(&line(&row), console);
            report.json.push(value(&row, device));
        }
    }
    Ok(())
}

fn row(
    mesh: &Arc<Mesh>,
    (degree, step): (usize, f64),
    device: Option<&Arc<dyn Device>>,
    console: &Console,
) -> Result<Row, Failure> {
    let (program, found) = compile(&Source::new("vortices", TEXT));
    let program = program.ok_or_else(|| Failure::input(format!("{found:?}")))?;
    let wanted = Overrides { degree: Some(degree.to_string()), ..Overrides::default() };
    let problem = program.problem("vortices", mesh.dim(), &wanted);
    let mut problem = problem.map_err(|found| Failure::input(format!("{found:?}")))?;
    problem.stepping =
        problem.stepping.map(|own| Stepping { step: Some(step), tolerance: None, ..own });
    let shown = format!("degree {degree}, steps of {step}");
    let mut taken =
        ForceRecorder { console, shown, times: Vec::new(), drag: Vec::new(), lift: Vec::new() };
    let begun = Instant::now();
    let platform = Platform::new(Target::native(), device.cloned());
    let done = run_steps(&problem, Arc::clone(mesh), None, &platform, &mut taken);
    let solution = done.map_err(|error| Failure::input(error.to_string()))?;
    let seconds = begun.elapsed().as_secs_f64();
    let ForceRecorder { times, drag, lift, .. } = taken;
    Ok(Row { degree, step, dofs: solution.context.on.n_dofs(), times, drag, lift, seconds })
}

impl Row {
    /// Returns the values of the second half of the time interval.
    fn last<'a>(&self, values: &'a [f64]) -> &'a [f64] {
        let all = self.times.last().copied().unwrap_or(0.0);
        &values[self.times.partition_point(|&time| time < all / 2.0)..]
    }

    fn largest(&self, values: &[f64]) -> f64 {
        self.last(values).iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    fn strouhal(&self) -> Option<f64> {
        period(self.last(&self.times), self.last(&self.lift)).map(|period| TIME / period)
    }
}

/// Returns the period of sampled values, from their upward crossings of the mean.
fn period(times: &[f64], values: &[f64]) -> Option<f64> {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let pairs = times.windows(2).zip(values.windows(2));
    let passed = pairs.filter(|(_, own)| own[0] < mean && own[1] >= mean);
    let at = passed.map(|(t, own)| t[0] + (t[1] - t[0]) * (mean - own[0]) / (own[1] - own[0]));
    let at: Vec<f64> = at.collect();
    match at[..] {
        [first, .., last] => Some((last - first) / (at.len() - 1) as f64),
        _ => None,
    }
}

fn line(row: &Row) -> String {
    let Row { degree, step, dofs, seconds, .. } = row;
    let steps = row.times.len().saturating_sub(1);
    let (drag, lift) = (row.largest(&row.drag), row.largest(&row.lift));
    let strouhal = row.strouhal().map_or_else(|| "none".to_owned(), |found| format!("{found:.4}"));
    format!(
        "{degree:>2} {dofs:>9} {step:>7} {steps:>6} | {strouhal:>7} {drag:>7.4} {lift:>7.4} | {seconds:>7.1} {:>7.4}\n",
        seconds / steps.max(1) as f64
    )
}

fn value(row: &Row, device: Option<&Arc<dyn Device>>) -> Value {
    json!({
        "suite": "cylinder",
        "degree": row.degree,
        "step": row.step,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "dofs": row.dofs,
        "steps": row.times.len().saturating_sub(1),
        "strouhal": row.strouhal(),
        "largest_drag": row.largest(&row.drag),
        "largest_lift": row.largest(&row.lift),
        "seconds": row.seconds,
        "times": row.times,
        "drag": row.drag,
        "lift": row.lift,
    })
}

/// Draws the drag over time.
pub(super) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let numbers = |value: &Value| -> Vec<f64> {
        value.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let line = |row: &Value| {
        let points = numbers(&row["times"]).into_iter().zip(numbers(&row["drag"]));
        // The transient after the start is far out of range.
        let points = points.filter(|(time, _)| *time > START).collect();
        let name = format!("degree {}, steps of {}", row["degree"], row["step"]);
        Series { name, dashed: points, fits_dashed: true, ..Series::default() }
    };
    let axis = |name: &str| Axis { name: name.to_owned(), scale: Scale::FromZero };
    let (x, y, series) = (axis("t"), axis("drag"), rows.iter().map(line).collect());
    let chart = Chart { x, y, series, dashed: "drag".to_owned() };
    Ok(write_charts(path, "Vortices behind a cylinder", &[chart])?)
}

#[cfg(test)]
mod tests {
    use super::period;

    #[test]
    fn a_period_is_that_of_a_sine() {
        let times: Vec<f64> = (0..300).map(|i| f64::from(i) * 0.01).collect();
        let values: Vec<f64> =
            times.iter().map(|t| 0.3 + (std::f64::consts::TAU * t / 0.7 + 1.0).sin()).collect();
        let found = period(&times, &values).expect("three periods");
        assert!((found - 0.7).abs() < 1e-3, "{found}");
        assert_eq!(period(&times[..10], &values[..10]), None);
    }
}
