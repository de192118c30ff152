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
#[path = "conformance/launch.rs"]
mod launch;
#[path = "compiled/levels.rs"]
mod levels;
#[path = "conformance/setting.rs"]
mod setting;

use choices::Case;
use draw::{Limits, cases, number};
use kernels_gen::abi::KernelAbi;
use kernels_gen::kir::Precision;
use kernels_gen::kir::interpret::{Array, Interpreter};
use kernels_gen::pass::legalise::legalise_for_threads;
use kernels_gen::plan::Plan;
use launch::{Data, Runner};
use std::collections::BTreeMap;

/// Interprets the kernels of a case.
struct Interpreted<'a>(&'a Case);

impl Runner for Interpreted<'_> {
    fn run(
        &self,
        plan: &Plan,
        abi: &KernelAbi,
        batches: usize,
        data: &mut [Data],
    ) -> Result<(), String> {
        let lowered = kernels_gen::strategy::lower(&self.0.form, &self.0.elements, plan);
        let (kernel, _) = lowered.map_err(|error| error.to_string())?;
        let kernel = legalise_for_threads(kernel);
        let interpreter = Interpreter::new(kernel).map_err(|error| error.to_string())?;
        let pairs = data.iter_mut().zip(&abi.arguments);
        let arrays: Vec<Array<'_>> = pairs
            .map(|(data, argument)| match (data, argument.written) {
                (Data::U32(values), _) => Array::U32(values),
                (Data::F64(values), false) => Array::F64(values),
                (Data::F64(values), true) => Array::from(&mut values[..]),
                (Data::F32(values), false) => Array::F32(values),
                (Data::F32(values), true) => Array::from(&mut values[..]),
            })
            .collect();
        let run = interpreter.run(0..batches, &arrays);
        run.map_err(|fault| format!("{fault}\n{}", interpreter.kernel()))
    }
}

#[test]
fn interpreted_threads_agree_with_the_reference() {
    let limits = Limits { full: false, work: 1000 };
    let (cases, _) = cases(&limits, number("WF_SEED").unwrap_or(7), 0);
    let mut counts = BTreeMap::new();
    for case in &cases {
        let agreement = case.compare(&Interpreted(case));
        let agreement = agreement.unwrap_or_else(|error| panic!("{}: {error}", case.name()));
        let seen = agreement.seen > 0 || case.plan.precision == Precision::F32;
        assert!(agreement.worst <= 1.0 && seen, "{}", case.name());
        *counts.entry(case.plan.strategy.to_string()).or_insert(0) += 1;
    }
    assert!(counts.len() == 4 && counts.values().all(|&count| count >= 40), "{counts:?}");
}
