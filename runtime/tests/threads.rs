//! Kernels for groups of threads against the reference, through the kir interpreter: threads run from
//! barrier to barrier, and whatever two of them touch at once is found. No compiler, no device.
//!
//! The cases are those of `opencl_kernels.rs`, and the same `WF_SEED` and `WF_WORK` choose others.

#[path = "threads/choices.rs"]
mod choices;
#[path = "compiled/cover.rs"]
mod cover;
#[path = "threads/draw.rs"]
mod draw;
#[path = "conformance/interpreter.rs"]
mod interpreter;
#[path = "conformance/launch.rs"]
mod launch;
#[path = "compiled/levels.rs"]
mod levels;
#[path = "conformance/setting.rs"]
mod setting;

use draw::{Limits, cases, number};
use interpreter::Interpreted;
use kernels_gen::abi::{Argument, Role};
use kernels_gen::kir::Precision;
use kernels_gen::plan::Scatter;
use kernels_gen::strategy::lower;
use std::collections::BTreeMap;

/// Random cases beside those that cover every pair of choices: many of these have fields or cells for which a thread
/// does a whole cell.
const MORE: usize = 100;

#[test]
fn interpreted_threads_agree_with_the_reference() {
    let limits = Limits { full: false, work: 1000 };
    let (mut cases, _) = cases(&limits, number("WF_SEED").unwrap_or(7), MORE);
    let (mut counts, mut several, mut by_lines) = (BTreeMap::new(), BTreeMap::new(), 0);
    for (number, case) in cases.iter_mut().enumerate() {
        let (form, elements) = (&case.form, &case.elements);
        let agreement = case.compare(&Interpreted { form, elements, threads: true });
        let agreement = agreement.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let seen = agreement.seen > 0 || case.plan.precision == Precision::F32;
        assert!(agreement.worst <= 1.0 && seen, "{}", case.name());
        // One launch after another, so that no colours are needed.
        if number % 4 == 0 && case.plan.scatter == Scatter::Atomic {
            case.plan.scatter = Scatter::Coloured;
            let (form, elements) = (&case.form, &case.elements);
            let agreement = case.compare(&Interpreted { form, elements, threads: true });
            let agreement = agreement.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
            assert!(agreement.worst <= 1.0, "{}", case.name());
        }
        *counts.entry(case.plan.strategy.to_string()).or_insert(0) += 1;
        let (_, abi) = lower(&case.form, &case.elements, &case.plan).expect("a kernel");
        let turned = |argument: &Argument| matches!(argument.role, Role::Lines(..));
        by_lines += usize::from(abi.arguments.iter().any(turned));
        if case.form.fields.len() > 1 {
            *several.entry(case.plan.strategy.to_string()).or_insert(0) += 1;
        }
    }
    assert!(counts.len() == 4 && counts.values().all(|&count| count >= 30), "{counts:?}");
    assert!(by_lines >= 10, "only {by_lines} with index arrays in the order of lines");
    assert!(several.len() == 4 && several.values().all(|&count| count >= 10), "{several:?}");
}
