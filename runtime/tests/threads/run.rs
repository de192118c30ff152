//! Compiles many cases in parallel, runs them on a device, and reports the results.

use super::choices::Case;
use super::device::Running;
use super::draw::{Limits, cases, number};
use super::launch::{Agreement, companions};
use kernels_gen::dialect::GeneratedSource;
use kernels_gen::generate::generate_for_threads;
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Linearisation, Task};
use runtime::device::Device;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Prints at once to standard error, independent of the test harness's capture of standard output.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stderr(), $($text)*);
    };
}

/// Approximate size of the source of one compilation in bytes.
const SOURCE: usize = 400_000;

/// Stack size of the threads that compile and run kernels, in bytes.
const STACK: usize = 256 << 20;

/// Cases of one precision with their source.
struct Group {
    /// Index of the device that compiles the source.
    device: usize,
    cases: Vec<Case>,
    source: GeneratedSource,
}

/// Results of the cases of one kind.
#[derive(Default)]
struct Agreements {
    count: usize,
    /// The largest error, relative to its bound.
    worst: f64,
    /// Number of cases whose error bound exceeds every entry. It happens when terms cancel beyond single precision, at
    /// high degrees on curved cells.
    blunt: usize,
}

#[derive(Default)]
struct Tally {
    kernels: usize,
    kinds: BTreeMap<(String, &'static str), Agreements>,
    failures: Vec<String>,
}

/// Compares kernels of every kind with the reference and returns their number.
///
/// The cases are a covering array of all options and `WF_KERNELS` random ones from the seed `WF_SEED`.
/// Each source holds `together` kernels. Other processes test the cases for which `own` is false.
///
/// The first device runs the first case of each strategy, precision and cell, and the second device runs all others.
/// The second may be the first without its compiler's optimisation passes, as a test of the generated source itself.
pub(crate) fn compare(
    devices: [&dyn Device; 2],
    limits: &Limits,
    together: usize,
    own: impl Fn(usize) -> bool,
) -> usize {
    let started = Instant::now();
    let seed = number("WF_SEED").unwrap_or(1);
    let more = number("WF_KERNELS").unwrap_or(0) as usize;
    let (cases, refused) = cases(limits, seed, more);
    let forms = cases.len();
    let groups = groups(cases, devices[0], together, own);
    let kernels = groups.iter().map(|group| group.source.kernels.len()).sum();
    say!(
        "{}: {forms} forms from seed {seed} in {} sources, made in {:.1} s",
        devices[0].name(),
        groups.len(),
        started.elapsed().as_secs_f64()
    );
    let tally = run_all(&groups, devices);
    let seconds = started.elapsed().as_secs_f64();
    say!("{} kernels of {forms} forms were compiled and compared in {seconds:.0} s", tally.kernels);
    for ((strategy, precision), Agreements { count, worst, blunt }) in &tally.kinds {
        let worst = 100.0 * worst;
        say!(
            "  {strategy}, {precision}: {count} agree, the largest error is {worst:.2} % of what is \
             allowed; in {blunt} more is allowed than any entry is large"
        );
    }
    let mut kinds = BTreeMap::<String, usize>::new();
    for (reason, count) in refused {
        *kinds.entry(without_numbers(&reason)).or_default() += count;
    }
    for (reason, count) in &kinds {
        say!("  {count} combinations of choices are refused: {reason}");
    }
    let failures = &tally.failures;
    assert!(failures.is_empty(), "{} of {forms}:\n{}", failures.len(), failures.join("\n"));
    assert!(forms >= 100, "only {forms} forms");
    kernels
}

/// Returns a reason without its numbers, so that reasons of one kind are counted together.
fn without_numbers(reason: &str) -> String {
    let mut text = String::new();
    for character in reason.chars() {
        match (character.is_ascii_digit(), text.ends_with('#')) {
            (true, false) => text.push('#'),
            (true, true) => {}
            (false, _) => text.push(character),
        }
    }
    text
}

/// Generates the kernels of all `own` cases, `together` per source.
fn groups(
    cases: Vec<Case>,
    device: &dyn Device,
    together: usize,
    own: impl Fn(usize) -> bool,
) -> Vec<Group> {
    let mut done = Vec::new();
    let mut open: Vec<(Precision, Group)> = Vec::new();
    let mut met = BTreeSet::new();
    for (at, case) in cases.into_iter().enumerate() {
        let precision = case.plan.precision;
        let (strategy, cell) = (case.plan.strategy.to_string(), case.elements.cell.to_string());
        let number = usize::from(!met.insert((strategy, cell, precision == Precision::F32)));
        if !own(at) {
            continue;
        }
        let source = case.source(device);
        let at = open
            .iter()
            .position(|(of, group)| (*of, group.device) == (precision, number))
            .unwrap_or_else(|| {
                let source = GeneratedSource::empty(source.language);
                open.push((precision, Group { device: number, cases: Vec::new(), source }));
                open.len() - 1
            });
        let group = &mut open[at].1;
        group.source.append(source);
        group.cases.push(case);
        if group.source.text.len() > SOURCE || group.source.kernels.len() >= together {
            done.push(open.swap_remove(at).1);
        }
    }
    done.extend(open.into_iter().map(|(_, group)| group));
    done
}

/// Runs all groups, in parallel on all available processors.
fn run_all(groups: &[Group], devices: [&dyn Device; 2]) -> Tally {
    let tally = Mutex::new(Tally::default());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let work = || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(group) = groups.get(number) else { break };
                    let spent = run(group, devices[group.device], &tally);
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    say!("{done} of {} sources: number {number} {spent}", groups.len());
                }
            };
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    tally.into_inner().expect("no thread should have failed")
}

/// Compiles and compares the kernels of a group. Returns a description of their number and of the times.
fn run(group: &Group, device: &dyn Device, tally: &Mutex<Tally>) -> String {
    let started = Instant::now();
    let module = device.load(&group.source).map_err(|error| error.to_string());
    let compiled = started.elapsed().as_secs_f64();
    for (at, case) in group.cases.iter().enumerate() {
        let result = match &module {
            Ok(module) => case.compare(&Running { device, module }),
            // One copy is enough because the log may be long.
            Err(error) if at == 0 => Err(error.clone()),
            Err(_) => Err("its source was not compiled".to_owned()),
        };
        tally.lock().expect("no thread should have failed").add(case, result);
    }
    let kernels = group.source.kernels.len();
    tally.lock().expect("no thread should have failed").kernels += kernels;
    let compared = started.elapsed().as_secs_f64() - compiled;
    let size = group.source.text.len() / 1000;
    format!(
        "({kernels} kernels, {size} kB) compiled in {compiled:.1} s, compared in {compared:.1} s"
    )
}

impl Tally {
    fn add(&mut self, case: &Case, result: Result<Agreement, String>) {
        let single = case.plan.precision == Precision::F32;
        match result {
            Ok(Agreement { worst, seen }) => {
                let kind = (case.plan.strategy.to_string(), if single { "f32" } else { "f64" });
                let of = self.kinds.entry(kind).or_default();
                of.count += 1;
                of.worst = of.worst.max(worst);
                if seen == 0 {
                    of.blunt += 1;
                    if !single {
                        self.failures.push(format!("{}: too much is allowed", case.name()));
                    }
                }
            }
            Err(error) => {
                let failure = format!("{}: {error}", case.name());
                say!("{failure}");
                self.failures.push(failure);
            }
        }
    }
}

impl Case {
    /// Returns the source of the kernel and of the kernels whose results it reads.
    fn source(&self, device: &dyn Device) -> GeneratedSource {
        let mut plans = vec![self.plan.clone()];
        let stored = self.plan.linearisation == Linearisation::Stored;
        plans.extend(
            companions(&self.form, &self.elements, &self.plan, self.shape)
                .into_iter()
                .filter(|plan| plan.task != Task::Linearise || stored),
        );
        let source = generate_for_threads(&self.form, &self.elements, &plans, device.words());
        source.unwrap_or_else(|error| panic!("{}: {error}", self.name()))
    }
}
