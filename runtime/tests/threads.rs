//! Compares kernels for thread groups with the reference, through the kernel IR interpreter.
//! The interpreter runs each thread from barrier to barrier and reports data races. The tests need no compiler or
//! device.
//!
//! The cases are those of `opencl_kernels.rs`, and `WF_SEED` and `WF_WORK` select others in the same way.

#[path = "threads/choices.rs"]
pub(crate) mod choices;
#[path = "threads/draw.rs"]
pub(crate) mod draw;

use super::compiled::{cover, levels};
use super::conformance::{between, hanging, interpreter, launch, setting};
use choices::Case;
use draw::{Limits, cases, number};
use interpreter::Interpreted;
use kernels_gen::abi::{Argument, Role};
use kernels_gen::element::Cell;
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Scatter, Strategy, Target};
use kernels_gen::strategy::lower;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Number of random cases in addition to the covering array of all pairs of options. Many have fields or cells for
/// which one thread computes a whole cell.
const MORE: usize = 100;

/// Statistics of the tested cases.
#[derive(Default)]
struct Seen {
    counts: BTreeMap<String, usize>,
    /// Counts of the cases with several fields.
    several: BTreeMap<String, usize>,
    /// Counts of the cases with hanging nodes.
    hanging: BTreeMap<String, usize>,
    by_lines: usize,
}

impl Seen {
    fn run(&mut self, number: usize, case: &mut Case) {
        let (form, elements) = (&case.form, &case.elements);
        let agreement = case.compare(&Interpreted { form, elements, threads: true });
        let agreement = agreement.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let seen = agreement.seen > 0 || case.plan.precision == Precision::F32;
        assert!(agreement.worst <= 1.0 && seen, "{}", case.name());
        // The interpreter runs launches one after another, so coloured scatter needs no colours.
        if number.is_multiple_of(4) && case.plan.scatter == Scatter::Atomic {
            case.plan.scatter = Scatter::Coloured;
            let (form, elements) = (&case.form, &case.elements);
            let agreement = case.compare(&Interpreted { form, elements, threads: true });
            let agreement = agreement.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
            assert!(agreement.worst <= 1.0, "{}", case.name());
        }
        *self.counts.entry(case.plan.strategy.to_string()).or_default() += 1;
        let (_, abi) = lower(&case.form, &case.elements, &case.plan).expect("a kernel");
        let turned = |argument: &Argument| matches!(argument.role, Role::Lines(..));
        self.by_lines += usize::from(abi.arguments.iter().any(turned));
        if case.plan.hanging {
            *self.hanging.entry(case.plan.strategy.to_string()).or_default() += 1;
        }
        if case.form.fields.len() > 1 {
            *self.several.entry(case.plan.strategy.to_string()).or_default() += 1;
        }
    }
}

#[test]
fn interpreted_threads_agree_with_the_reference() {
    let limits = Limits { full: false, work: 1000 };
    let (cases, _) = cases(&limits, number("WF_SEED").unwrap_or(7), MORE);
    let (seen, cases) = (Mutex::new(Seen::default()), Mutex::new(cases.into_iter().enumerate()));
    let work = || {
        let next = || cases.lock().expect("no thread should have failed").next();
        let mut own = Seen::default();
        while let Some((number, mut case)) = next() {
            own.run(number, &mut case);
        }
        let mut all = seen.lock().expect("no thread should have failed");
        all.by_lines += own.by_lines;
        own.counts.into_iter().for_each(|(of, n)| *all.counts.entry(of).or_default() += n);
        own.hanging.into_iter().for_each(|(of, n)| *all.hanging.entry(of).or_default() += n);
        own.several.into_iter().for_each(|(of, n)| *all.several.entry(of).or_default() += n);
    };
    std::thread::scope(|scope| {
        let others = std::thread::available_parallelism().map_or(0, |all| all.get() - 1);
        (0..others).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let Seen { counts, several, hanging, by_lines } =
        seen.into_inner().expect("no thread has failed");
    assert!(counts.len() == 4 && counts.values().all(|&count| count >= 30), "{counts:?}");
    assert!(hanging.len() == 4 && hanging.values().all(|&count| count >= 10), "{hanging:?}");
    assert!(by_lines >= 10, "only {by_lines} with index arrays in the order of lines");
    assert!(several.len() == 4 && several.values().all(|&count| count >= 10), "{several:?}");
}

/// Tests every hanging-node configuration with each strategy.
fn all_that_hangs(cell: Cell) {
    let text = "form f { field u: scalar; f0[u] = u^3; f1[u] = (1 + u^2) * grad(u); }";
    let form = levels::form(text, "f", cell.dim());
    let cells = if cell == Cell::Hexahedron { 2 } else { 3 };
    let ways = [
        (Strategy::CellPerLane, 8),
        (Strategy::ThreadPerLine { cells: 1 }, 1),
        (Strategy::ThreadPerLine { cells }, 1),
        (Strategy::ThreadPerDof, 2),
        (Strategy::ThreadTransposition { blocks: 1, batches: 2 }, 2),
    ];
    let ways = ways.map(|(strategy, lanes)| (Target::Threads, strategy, lanes));
    let ran = hanging::all_that_hangs(&form, cell, &ways);
    for ((_, strategy, _), ran) in ways.iter().zip(ran) {
        let tasks = if *strategy == Strategy::CellPerLane { 3 } else { 2 };
        assert!(ran >= 2 * 2 * tasks, "{cell} {strategy}: {ran}");
    }
}

#[test]
fn all_that_hangs_of_quadrilaterals() {
    all_that_hangs(Cell::Quadrilateral);
}

#[test]
fn all_that_hangs_of_hexahedra() {
    all_that_hangs(Cell::Hexahedron);
}
