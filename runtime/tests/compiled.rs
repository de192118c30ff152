//! Compiled kernels against the reference: random forms on a covering array of all choices.
//!
//! Choices are cells and degrees, rules, cell shapes, stored geometry and coefficients, tasks, precisions, instruction
//! sets, vector widths, index types, generator settings and kinds of forms. Every supported pair of choices occurs in
//! at least one kernel, each with its own random form, in total at least [`FORMS`]. A form with every function of the
//! language runs for every task, precision and instruction set. With `WF_FULL=1` degrees go up to the largest, and
//! every combination of cell, degree, shape, storage, task and precision runs.
//!
//! A third of them, all with `WF_FULL=1`, are compiled by a C compiler, too: `WF_CC`, or `cc`.
//! The kernels in C give the results of those in Rust without a tolerance.
//!
//! Instruction sets that this machine lacks are skipped and reported. `WF_REQUIRE=avx512,avx2` makes that a failure, as
//! `WF_REQUIRE=rust` does for a missing `rustc`, and `WF_REQUIRE=cc` for a missing C compiler. `WF_SEED` selects other forms; `WF_PART=2/5` compiles the second fifth
//! of them.

#[path = "compiled/build.rs"]
mod build;
#[path = "compiled/choices.rs"]
mod choices;
#[path = "compiled/cover.rs"]
pub(crate) mod cover;
#[path = "compiled/levels.rs"]
pub(crate) mod levels;

use super::conformance::{between, launch, setting};
use build::{Both, Group, groups};
use choices::{Case, Choices};
use cover::{Factors, Random};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::kir::Precision;
use kernels_gen::plan::Target;
use runtime::device::cpu::{Machine, Simd};
use runtime::device::jit::{Environment, Jit};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A lower bound of the number of forms that cover all pairs.
const FORMS: usize = 120;

/// Number of kernels between cells for each instruction set.
const BETWEEN: usize = 6;

/// Minimal number of concurrent compilers: one may wait for the disk.
const JOBS: usize = 2;

/// Stack size of threads that run kernels: private arrays of high degrees take megabytes.
const STACK: usize = 256 << 20;

/// Results of the cases of one precision.
#[derive(Default)]
struct Agreements {
    count: usize,
    /// The largest error relative to the tolerance.
    worst: f64,
    /// The number of cases whose tolerance exceeds all entries: single precision cannot resolve the cancellation of
    /// terms at high degrees on curved cells.
    blunt: usize,
}

/// Results of all cases.
#[derive(Default)]
struct Tally {
    kernels: usize,
    kernels_in_c: usize,
    by_precision: BTreeMap<&'static str, Agreements>,
    by_isa: BTreeMap<Isa, usize>,
    failures: Vec<String>,
}

/// Prints immediately, bypassing the output capture of the test harness.
macro_rules! say {
    ($($text:tt)*) => {
        let _ = writeln!(std::io::stderr(), $($text)*);
    };
}

/// Returns whether `WF_REQUIRE` names a backend.
fn required(backend: &str) -> bool {
    let list = std::env::var("WF_REQUIRE").unwrap_or_default();
    list.split([',', ' ']).any(|name| name == backend)
}

/// Returns the instruction sets of this machine.
fn instruction_sets() -> Vec<Isa> {
    let here: &[Isa] = match Machine::detect().simd {
        Simd::Avx512 => &[Isa::Avx512, Isa::Avx2, Isa::Portable],
        Simd::Avx2Fma => &[Isa::Avx2, Isa::Portable],
        Simd::Sse2 | Simd::Neon | Simd::Scalar => &[Isa::Portable],
    };
    for isa in [Isa::Avx512, Isa::Avx2, Isa::Portable] {
        if !here.contains(&isa) {
            assert!(!required(&isa.to_string()), "this machine has no {isa}");
            say!("this machine has no {isa}: its kernels are left out");
        }
    }
    here.to_vec()
}

/// Returns the compiler of kernels, or a C compiler, with a cache in the build folder: unchanged kernels are not
/// recompiled.
fn jit(cc: Option<OsString>) -> Jit {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
    let own = Environment::from_process();
    let cc = cc.map(|cc| ("WF_CC", own.cc.as_ref().map_or(cc, |(_, cc)| cc.clone())));
    Jit::new(Environment { cache_dir: Some(cache), cc, ..own })
}

/// Returns a compiler of kernels in C, if there is one.
fn c_jit() -> Option<Jit> {
    let jit = jit(Some("cc".into()));
    if let Err(error) = jit.compiler() {
        assert!(!required("cc"), "{error}");
        say!("kernels in C are not checked: {error}");
        return None;
    }
    Some(jit)
}

/// Returns the part selected by `WF_PART`, `K/N`: the K-th of N equal parts of the cases, in order; all without it.
fn part(mut cases: Vec<Case>) -> Vec<Case> {
    let Some(asked) = std::env::var_os("WF_PART") else { return cases };
    let numbers = asked.to_str().and_then(|text| text.split_once('/'));
    let numbers = numbers.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    let (k, n): (usize, usize) =
        numbers.unwrap_or_else(|| panic!("WF_PART should be K/N: {asked:?}"));
    assert!(1 <= k && k <= n, "there is no part {k} of {n}");
    let all = cases.len();
    let at = |k: usize| all * k / n;
    say!("part {k} of {n}: the forms from {} to {}", at(k - 1), at(k));
    cases.drain(at(k - 1)..at(k)).collect()
}

/// Returns the cases, and the number of rejected combinations by reason.
fn cases(full: bool, seed: u64) -> (Vec<Case>, BTreeMap<String, usize>) {
    let choices = Choices::new(full, instruction_sets());
    let mut random = Random(seed);
    let levels = choices.levels();
    let product: &[usize] = if full { &Choices::PRODUCT } else { &[] };
    let reasons = |row: &[usize]| choices.reasons(row);
    let cost = |row: &[usize]| choices.cost(row);
    let factors = Factors { levels: &levels, product, reasons: &reasons, cost: &cost };
    let cover = factors.cover(&mut random);
    let mut numbers = seed..;
    let mut cases: Vec<Case> =
        cover.rows.iter().zip(&mut numbers).map(|(row, seed)| choices.case(row, seed)).collect();
    let rows = choices.small_product(&mut random);
    cases.extend(rows.iter().zip(&mut numbers).map(|(row, seed)| choices.functions(row, seed)));
    for (number, isa) in (0..).zip(instruction_sets()) {
        let lanes = |precision| isa.widest(precision);
        let count = if full { 10 * BETWEEN } else { BETWEEN };
        let first = seed + number * count as u64;
        let drawn = between::draw(Target::Vectors, lanes, first, count).into_iter();
        cases.extend(drawn.map(|drawn| Case::between(drawn, isa)));
    }
    (cases, cover.refused)
}

fn run(group: &Group, (jit, c_jit): (&Jit, Option<&Jit>), tally: &Mutex<Tally>) {
    let module = group.compile(jit);
    let in_c =
        c_jit.filter(|_| group.kernels_in_c() > 0).map(|jit| group.compile_c(jit)).transpose();
    for case in &group.cases {
        let result = match (&module, &in_c) {
            (Ok(rust), Ok(c)) => case.compare(&Both { rust, c: c.as_ref() }),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        };
        let mut tally = tally.lock().expect("no thread should have failed");
        *tally.by_isa.entry(case.isa).or_default() += 1;
        match result {
            Ok(agreement) => {
                let single = case.plan.precision == Precision::F32;
                let of = tally.by_precision.entry(if single { "f32" } else { "f64" }).or_default();
                of.count += 1;
                of.worst = of.worst.max(agreement.worst);
                if agreement.seen == 0 {
                    of.blunt += 1;
                    if !single {
                        tally.failures.push(format!("{}: too much is allowed", case.name()));
                    }
                }
            }
            Err(error) => tally.failures.push(format!("{}: {error}", case.name())),
        }
    }
    let mut tally = tally.lock().expect("no thread should have failed");
    tally.kernels += group.kernels();
    tally.kernels_in_c += group.kernels_in_c();
}

/// Runs all groups, a few at a time.
fn run_all(groups: &[Group], jits: (&Jit, Option<&Jit>)) -> Tally {
    let tally = Mutex::new(Tally::default());
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let started = Instant::now();
    let jobs = std::thread::available_parallelism().map_or(JOBS, |cores| cores.get().max(JOBS));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let work = || {
                while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                    run(group, jits, &tally);
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(50) {
                        let failures =
                            tally.lock().expect("no thread should have failed").failures.len();
                        let seconds = started.elapsed().as_secs_f64();
                        say!(
                            "{done} of {} compiles, {failures} failures, {seconds:.0} s",
                            groups.len()
                        );
                    }
                }
            };
            let thread = std::thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, work).expect("a thread");
        }
    });
    tally.into_inner().expect("no thread should have failed")
}

#[test]
fn compiled_kernels_agree_with_the_reference() {
    let jit = jit(None);
    if let Err(error) = jit.compiler() {
        assert!(!required("rust"), "{error}");
        say!("compiled kernels are not checked: {error}");
        return;
    }
    let started = Instant::now();
    let full = std::env::var_os("WF_FULL").is_some();
    let seed = std::env::var("WF_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let (cases, refused) = cases(full, seed);
    assert!(cases.len() >= FORMS);
    let cases = part(cases);
    let forms = cases.len();
    let c_jit = c_jit();
    let groups = groups(cases, full, c_jit.is_some());
    say!(
        "{forms} forms from seed {seed} in {} compiles, made in {:.1} s",
        groups.len(),
        started.elapsed().as_secs_f64()
    );
    let tally = run_all(&groups, (&jit, c_jit.as_ref()));
    let seconds = started.elapsed().as_secs_f64();
    say!("{} kernels of {forms} forms were compiled and compared in {seconds:.0} s", tally.kernels);
    say!("  {} of them in C, with the same bits", tally.kernels_in_c);
    assert!(c_jit.is_none() || tally.kernels_in_c > 0);
    for (isa, count) in &tally.by_isa {
        say!("  {isa}: {count} forms");
    }
    for (precision, Agreements { count, worst, blunt }) in &tally.by_precision {
        let worst = 100.0 * worst;
        say!("  {precision}: {count} agree, the largest error is {worst:.2} % of what is allowed");
        say!("  {precision}: in {blunt} of these more is allowed than any entry is large");
    }
    for (reason, count) in &refused {
        say!("  {count} combinations of choices are refused: {reason}");
    }
    let failures = &tally.failures;
    assert!(failures.is_empty(), "{} of {forms}:\n{}", failures.len(), failures.join("\n"));
}
