//! `wf tune`: what the model cannot tell apart is measured, and the fastest is remembered.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use fem_dsl::problem::Problem;
use kernels_gen::abi::Precision;
use kernels_gen::choose::Wishes;
use kernels_gen::choose::candidates::{Candidate, candidates};
use kernels_gen::plan::{Scatter, Strategy, Target as Runs, Task};
use runtime::bench::candidate::measure;
use runtime::compile::{Target, facts, tuned};
use runtime::device::{self, Device};
use runtime::rates::named;
use runtime::run::{RunError, Setup, set_up};
use serde_json::{Value, json};

use crate::arguments::{DeviceArguments, ProblemArguments};
use crate::blame::Blame;
use crate::console::Console;
use crate::plan::{aim, predicted};
use crate::problem::{chosen, compile, overrides, prepare, read, with_threads};
use crate::report::{Failure, Report};

/// Candidates that are predicted to take up to so many times as long as the best are measured: the model is not better.
const DOUBT: f64 = 2.0;

/// Another kernel is remembered where it is faster by this factor: less is noise.
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
    let wanted = arguments.problem.problem.as_deref();
    let overrides = overrides(&arguments.problem);
    let source = read(&arguments.problem.file)?;
    let program = compile(&source, wanted, &overrides, console)?;
    let names = chosen(&program, wanted)?;
    if arguments.problem.interpret {
        return Err(Failure::input(
            "what is interpreted cannot be tuned\nhelp: leave --interpret out",
        ));
    }
    let device = arguments.device.open()?;
    let common = console.take();
    let mut report = Report::default();
    for name in &names {
        let which = Blame { program: &program, problem: name, overrides: &overrides };
        let done =
            with_threads(arguments.threads, || one(arguments, which, device.as_ref(), console));
        report.add(("problem", name), done.flatten(), [common.clone(), console.take()].concat());
    }
    Ok(report)
}

/// A kernel that was run.
struct Run {
    words: String,
    wishes: Wishes,
    predicted: Option<f64>,
    seconds: Result<f64, String>,
}

/// What is tuned.
struct Tuning<'a> {
    problem: &'a Problem,
    setup: &'a Setup,
    target: Target,
    device: Option<&'a Arc<dyn Device>>,
    until: Instant,
}

impl Tuning<'_> {
    fn measure(&self, wishes: Wishes) -> Result<f64, String> {
        let target = Target { wishes, ..self.target };
        let run = measure(&self.problem.form, self.setup, Task::Action, &target, self.device);
        run.map(|run| run.seconds).map_err(|error| error.to_string())
    }

    fn late(&self) -> bool {
        Instant::now() >= self.until
    }
}

fn one(
    arguments: &Arguments,
    which: Blame<'_>,
    device: Option<&Arc<dyn Device>>,
    console: &Console,
) -> Result<Report, Failure> {
    let name = which.problem;
    let (problem, mesh) = prepare(which.program, name, &arguments.problem.file, which.overrides)?;
    let refused = |error: RunError| which.run(&problem, error);
    let setup = set_up(&problem, mesh).map_err(refused)?;
    let (backend, target) = (arguments.device.backend, arguments.problem.target());
    let (facts, on) = (facts(&setup.on), predicted(backend, device));
    let machine = device.map_or_else(named, |device| device.name());
    let of = (&problem.form, &setup.elements, &facts);
    let keep = |wishes: Option<&Wishes>| {
        tuned::keep(of, Task::Action, Precision::F64, &machine, wishes).map_err(Failure::input)
    };
    // What was remembered would be measured as what is planned.
    keep(None)?;
    if arguments.forget {
        let value = json!({ "problem": name, "machine": machine, "forgotten": true });
        return Ok(Report::new(format!("{name}: what is planned is taken again\n"), value));
    }
    let wishes = Wishes {
        scatter: arguments.device.scatter,
        shared_bytes: device.map(|device| device.shared_bytes()),
        ..Wishes::default()
    };
    let aim = (aim(backend, &target), Precision::F64);
    let found =
        candidates(&problem.form, &setup.elements, &facts, Task::Action, aim, &wishes, &on.machine);
    let mut found = found.map_err(|error| refused(error.into()))?;
    // What is planned comes first: all others are measured against it.
    let planned = found.all.remove(found.chosen);
    let least = found.all.iter().map(|one| one.seconds).fold(planned.seconds, f64::min);
    let doubtful = found.all.into_iter().filter(|one| one.seconds <= DOUBT * least);
    let until = Instant::now() + std::time::Duration::from_secs(u64::from(arguments.seconds));
    let tuning = Tuning { problem: &problem, setup: &setup, target, device, until };
    let cells = setup.on.mesh.n_cells() as f64;
    let mut runs: Vec<Run> = Vec::new();
    for candidate in std::iter::once(planned).chain(doubtful) {
        if !runs.is_empty() && tuning.late() {
            break;
        }
        console.progress().say(format!("{name}: {}", described(&candidate)));
        runs.push(Run {
            words: described(&candidate),
            wishes: candidate.wishes,
            predicted: Some(cells * candidate.seconds + on.machine.launch),
            seconds: tuning.measure(candidate.wishes),
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
    // Then sizes, one after another, from the fastest on.
    let threads = device.is_some();
    let (mut wishes, mut words) = (runs[first].wishes, runs[first].words.clone());
    for (what, sizes) in sizes(threads, &wishes) {
        for wish in sizes.into_iter().map(|change| change(wishes)) {
            if tuning.late() {
                break;
            }
            console.progress().say(format!("{name}: {words}, {what}"));
            let own = format!("{words}, {}", sized(&wish));
            let (predicted, seconds) = (None, tuning.measure(wish));
            runs.push(Run { words: own, wishes: wish, predicted, seconds });
        }
        if let Some(best) = fastest(&runs) {
            (wishes, words) = (runs[best].wishes, runs[best].words.clone());
        }
    }
    let best = fastest(&runs).unwrap_or(first);
    let seconds = |number: usize| runs[number].seconds.as_ref().ok().copied();
    // Once more, side by side: the best of many has been lucky, too.
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
    keep((taken > 0).then_some(&Wishes { shared_bytes: None, ..runs[taken].wishes }))?;
    Ok(told(name, &machine, device, &runs, (taken, gain)))
}

/// What a candidate is, in words.
fn described(candidate: &Candidate) -> String {
    let plan = &candidate.plan;
    match plan.target {
        Runs::Vectors => format!("{}, block {}", candidate.geometry(), plan.block),
        Runs::Threads => format!("{}, {}, {}", plan.strategy, candidate.geometry(), plan.scatter),
    }
}

/// The sizes that wishes name.
fn sized(wishes: &Wishes) -> String {
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

type Change = Box<dyn Fn(Wishes) -> Wishes>;

/// Sizes that are tried, and what they are of.
fn sizes(threads: bool, wishes: &Wishes) -> Vec<(&'static str, Vec<Change>)> {
    let each = |numbers: &[usize], with: fn(Wishes, usize) -> Wishes| -> Vec<Change> {
        let change = |&number: &usize| Box::new(move |wishes| with(wishes, number)) as Change;
        numbers.iter().map(change).collect()
    };
    let both = |with: fn(Wishes, bool) -> Wishes| -> Vec<Change> {
        [false, true].map(|yes| Box::new(move |wishes| with(wishes, yes)) as Change).into()
    };
    if !threads {
        let block = each(&[1, 2, 4], |all, n| Wishes { block: Some(n), ..all });
        return vec![("block", block)];
    }
    let residency = each(&[1, 2, 3, 4, 6, 8], |all, n| Wishes { residency: Some(n), ..all });
    let in_order = both(|all, yes| Wishes { in_order: Some(yes), ..all });
    let lines = matches!(wishes.strategy, None | Some(Strategy::ThreadPerLine { .. }));
    let lanes = each(&[64, 128, 256], |all, n| Wishes { lanes: Some(n), ..all });
    let cells = each(&[1, 2, 3, 4, 6, 8], |all, n| Wishes { cells: Some(n), ..all });
    let in_place = both(|all, yes| Wishes { in_place: Some(yes), ..all });
    let mut all = vec![("registers", residency), ("order", in_order)];
    if lines {
        all.extend([("cells", cells), ("derivatives", in_place)]);
    }
    if wishes.scatter != Some(Scatter::Block) && !lines {
        all.push(("threads", lanes));
    }
    all
}

/// What was measured, and what is taken from now on.
fn told(
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
