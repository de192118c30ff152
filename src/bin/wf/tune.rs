//! `wf tune`: measures the kernels that the cost model cannot distinguish, and stores the fastest.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use fem_bench::candidate::measure;
use kernels_gen::abi::Precision;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::choose::candidates::Candidate;
use kernels_gen::plan::{Scatter, Strategy, Target as Runs, Task};
use runtime::device::{self, Device};
use runtime::kernels::compile::{facts, tuning};
use runtime::kernels::rates::named;
use runtime::problem::Context;
use serde_json::{Value, json};

use crate::arguments::{DeviceArguments, ProblemArguments};
use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::plan::{PlanInput, find, with_wishes};
use crate::problem::{SelectedProblems, select_problems, with_threads};
use crate::report::{Failure, Report};

/// Candidates predicted to take up to this multiple of the best time are measured: the model's accuracy.
const DOUBT: f64 = 2.0;

/// Another kernel is stored if it is faster by this factor; smaller differences are noise.
const WORTH: f64 = 1.02;

/// Measure the kernels that the model of costs cannot tell apart, and remember the fastest.
///
/// The kernel of J(u)·w, which solvers apply most, is run as it is planned and in every other way that is predicted to take up to
/// twice as long as the best, then with other sizes. What is faster by 2 % and more is taken from then on, by `wf run` and by the
/// library, for this form on these elements on this machine. It lies in the folder of compiled kernels (`wf doctor` names it).
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf tune examples/poisson.wf                          on this processor
  wf tune examples/elasticity.wf --backend cuda --seconds 60
  wf tune examples/poisson.wf --forget                 what is planned is taken again")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// Seconds after which nothing more is measured.
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,

    /// Measure nothing, and forget what was remembered.
    #[arg(long)]
    pub(crate) forget: bool,

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let SelectedProblems { program, names, overrides } =
        select_problems(&arguments.problem, console)?;
    if arguments.problem.interpret {
        return Err(Failure::input(
            "interpreted kernels cannot be tuned\nhelp: leave --interpret out",
        ));
    }
    let device = arguments.device.open()?;
    let common = console.take();
    let mut report = Report::default();
    for name in &names {
        let which = ErrorAttribution { program: &program, problem: name, overrides: &overrides };
        let done =
            with_threads(arguments.threads, || one(arguments, which, device.as_ref(), console));
        report.add(("problem", name), done.flatten(), [common.clone(), console.take()].concat());
    }
    Ok(report)
}

/// A measured kernel.
struct Run {
    words: String,
    strategy: Strategy,
    wishes: PlanOverrides,
    predicted: Option<f64>,
    seconds: Result<f64, String>,
}

/// The kernel to tune.
struct Tuning<'a> {
    context: &'a Context,
    until: Instant,
}

impl Tuning<'_> {
    fn measure(&self, wishes: PlanOverrides) -> Result<f64, String> {
        measure(&with_wishes(self.context, wishes), Task::Action).map_err(|error| error.to_string())
    }

    fn late(&self) -> bool {
        Instant::now() >= self.until
    }
}

fn one(
    arguments: &Arguments,
    which: ErrorAttribution<'_>,
    device: Option<&Arc<dyn Device>>,
    console: &Console,
) -> Result<Report, Failure> {
    let name = which.problem;
    let given = (&arguments.problem, &arguments.device);
    let PlanInput { context, on, candidates: mut found } =
        find(which, given, Task::Action, device)?;
    let facts = facts(&context.on);
    let machine = device.map_or_else(named, |device| device.name());
    let of = (context.form(), &*context.elements, &facts);
    let keep = |wishes: Option<&PlanOverrides>| {
        tuning::keep(of, Task::Action, Precision::F64, &machine, wishes).map_err(Failure::input)
    };
    if arguments.forget {
        keep(None)?;
        let value = json!({ "problem": name, "machine": machine, "forgotten": true });
        return Ok(Report::new(format!("{name}: what is planned is taken again\n"), value));
    }
    // A stored choice would be measured as the planned one.
    tuning::set_aside(of, Task::Action, Precision::F64, &machine);
    // The planned kernel comes first, as the reference of all others.
    let planned = found.all.remove(found.chosen);
    let least = found.all.iter().map(|one| one.seconds).fold(planned.seconds, f64::min);
    let doubtful = found.all.into_iter().filter(|one| one.seconds <= DOUBT * least);
    let until = Instant::now() + std::time::Duration::from_secs(u64::from(arguments.seconds));
    let tuning = Tuning { context: &context, until };
    let cells = context.on.mesh.n_cells() as f64;
    let mut runs: Vec<Run> = Vec::new();
    for candidate in std::iter::once(planned).chain(doubtful) {
        if !runs.is_empty() && tuning.late() {
            break;
        }
        console.progress().say(format!("{name}: {}", described(&candidate)));
        runs.push(Run {
            words: described(&candidate),
            strategy: candidate.plan.strategy,
            wishes: candidate.overrides,
            predicted: Some(cells * candidate.seconds + on.machine.launch),
            seconds: tuning.measure(candidate.overrides),
        });
    }
    let fastest = |runs: &[Run]| {
        let times = runs.iter().enumerate();
        let times = times.filter_map(|(number, run)| Some((number, *run.seconds.as_ref().ok()?)));
        times.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(number, _)| number)
    };
    let Some(first) = fastest(&runs) else {
        let why = runs[0].seconds.as_ref().err().cloned().unwrap_or_default();
        return Err(Failure::input(why));
    };
    // Then sizes, one after another, starting from the fastest kernel.
    let (strategy, words) = (runs[first].strategy, runs[first].words.clone());
    let mut wishes = runs[first].wishes;
    for sizes in sizes(device.is_some(), strategy, wishes.scatter) {
        for wish in sizes.into_iter().map(|change| change(wishes)) {
            if tuning.late() {
                break;
            }
            let words = format!("{words}, {}", sized(&wish));
            console.progress().say(format!("{name}: {words}"));
            let seconds = tuning.measure(wish);
            runs.push(Run { words, strategy, wishes: wish, predicted: None, seconds });
        }
        wishes = fastest(&runs).map_or(wishes, |best| runs[best].wishes);
    }
    let best = fastest(&runs).unwrap_or(first);
    let seconds = |number: usize| runs[number].seconds.as_ref().ok().copied();
    // Again, alternating: the best of many may be a lucky measurement.
    let again = |run: &Run| tuning.measure(run.wishes).ok();
    let (planned, other) = match best {
        0 => (seconds(0), seconds(0)),
        _ => (again(&runs[0]).or(seconds(0)), again(&runs[best])),
    };
    let gain = match (planned, other) {
        (Some(planned), Some(other)) => planned / other,
        (None, Some(_)) => f64::INFINITY,
        _ => 1.0,
    };
    let taken = if best > 0 && gain >= WORTH { best } else { 0 };
    keep((taken > 0).then_some(&PlanOverrides { shared_bytes: None, ..runs[taken].wishes }))?;
    Ok(report(name, &machine, device, &runs, (taken, gain)))
}

/// Describes a candidate.
fn described(candidate: &Candidate) -> String {
    let plan = &candidate.plan;
    match plan.target {
        Runs::Vectors => format!("{}, block {}", candidate.geometry(), plan.block),
        Runs::Threads => format!("{}, {}, {}", plan.strategy, candidate.geometry(), plan.scatter),
    }
}

/// Describes the sizes in the overrides.
fn sized(wishes: &PlanOverrides) -> String {
    let number = |name: &str, value: Option<usize>| value.map(|value| format!("{name} {value}"));
    let yes = |name: &str, value: Option<bool>| value.map(|value| format!("{name} {value}"));
    let words = [
        number("lanes", wishes.lanes),
        number("block", wishes.block),
        number("cells", wishes.cells),
        number("residency", wishes.residency),
        yes("in order", wishes.in_order),
        yes("in place", wishes.in_place),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

type Change = Box<dyn Fn(PlanOverrides) -> PlanOverrides>;

/// Returns sizes to try, grouped by kind.
fn sizes(threads: bool, strategy: Strategy, scatter: Option<Scatter>) -> Vec<Vec<Change>> {
    let each =
        |numbers: &[usize], with: fn(PlanOverrides, usize) -> PlanOverrides| -> Vec<Change> {
            let change = |&number: &usize| Box::new(move |wishes| with(wishes, number)) as Change;
            numbers.iter().map(change).collect()
        };
    let both = |with: fn(PlanOverrides, bool) -> PlanOverrides| -> Vec<Change> {
        [false, true].map(|yes| Box::new(move |wishes| with(wishes, yes)) as Change).into()
    };
    if !threads {
        return vec![each(&[1, 2, 4], |all, n| PlanOverrides { block: Some(n), ..all })];
    }
    let mut all = vec![
        each(&[1, 2, 3, 4, 6, 8], |all, n| PlanOverrides { residency: Some(n), ..all }),
        both(|all, yes| PlanOverrides { in_order: Some(yes), ..all }),
    ];
    if let Strategy::ThreadPerLine { .. } = strategy {
        all.push(each(&[1, 2, 3, 4, 6, 8], |all, n| PlanOverrides { cells: Some(n), ..all }));
        all.push(both(|all, yes| PlanOverrides { in_place: Some(yes), ..all }));
    } else if scatter != Some(Scatter::Block) {
        all.push(each(&[64, 128, 256], |all, n| PlanOverrides { lanes: Some(n), ..all }));
    }
    all
}

/// Reports the measurements and the stored choice.
fn report(
    name: &str,
    machine: &str,
    device: Option<&Arc<dyn Device>>,
    runs: &[Run],
    (taken, gain): (usize, f64),
) -> Report {
    let micro = |seconds: f64| format!("{:.1}", 1e6 * seconds);
    let mut text = format!(
        "{name} on {machine}, J(u)·w in microseconds\n  {:<60} {:>10} {:>10}\n",
        "kernel", "predicted", "measured"
    );
    for (number, run) in runs.iter().enumerate() {
        let mark = if number == taken { '*' } else { ' ' };
        let predicted = run.predicted.map(micro).unwrap_or_default();
        let seconds = run.seconds.as_ref().map_or_else(|_| "refused".to_owned(), |s| micro(*s));
        let _ = writeln!(text, "{mark} {:<60} {predicted:>10} {seconds:>10}", run.words);
    }
    let said = match taken {
        0 => "what is planned stays: nothing is faster by 2 % and more".to_owned(),
        _ => format!("* is remembered: {gain:.3} times as fast as what is planned, the first"),
    };
    let _ = writeln!(text, "  {said}");
    let each = runs.iter().enumerate().map(|(number, run)| {
        let mut value: Value = json!({
            "kernel": run.words, "predicted_seconds": run.predicted, "taken": number == taken,
        });
        match &run.seconds {
            Ok(seconds) => value["seconds"] = json!(seconds),
            Err(error) => value["refused"] = json!(error),
        }
        value
    });
    let backend = device.map_or(device::Backend::Cpu, |device| device.backend());
    let value = json!({
        "problem": name,
        "machine": machine,
        "backend": backend.word(),
        "runs": each.collect::<Vec<_>>(),
        "remembered": taken > 0,
        "gain": if taken > 0 { gain } else { 1.0 },
    });
    Report::new(text, value)
}
