//! All hanging words, in mixed batches, in the interpreter.

use super::interpreter::Interpreted;
use super::launch::{Launcher, Shape};
use super::setting::{Setting, words};
use fem_dsl::point::PointForm;
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Elements, Geometry, Plan, Strategy, Target, Task};
use kernels_gen::strategy::check;
use rayon::prelude::*;
use std::ops::RangeInclusive;

/// Returns the degrees; up to the largest in full runs.
pub(crate) fn degrees(cell: Cell) -> RangeInclusive<usize> {
    let full = std::env::var_os("WF_FULL").is_some();
    if full || cell == Cell::Quadrilateral { 1..=8 } else { 1..=2 }
}

/// Kernel target and strategy, with the number of lanes.
pub(crate) type Way = (Target, Strategy, usize);

/// Cells per job: several batches with different words.
const CELLS: usize = 24;

/// Compares each task and precision with the reference, which is evaluated once for all strategies. Jobs run in
/// parallel, longest first. Returns the number of kernels run per strategy; rejected plans are skipped.
pub(crate) fn all_that_hangs(form: &PointForm, cell: Cell, ways: &[Way]) -> Vec<usize> {
    let geometry = Geometry::Vertices;
    let of_degree = |degree: usize| {
        let rule = default_rule(cell, degree, 1, None);
        let elements = Elements::new(form, cell, degree, rule).expect("elements");
        let all = words(cell.dim());
        let settings = all.chunks(CELLS).map(|words| {
            let shape = Shape::Multilinear;
            let mut setting = Setting::new(form, degree, rule, shape, geometry, words.len());
            setting.hanging = words.to_vec();
            setting
        });
        let settings: Vec<Setting> = settings.collect();
        (elements, settings)
    };
    let all: Vec<(Elements, Vec<Setting>)> = degrees(cell).rev().map(of_degree).collect();
    let signs = all.iter().any(|(elements, _)| elements.are_vector_valued());
    let plan = |&(target, strategy, lanes): &Way, task: Task, precision: Precision| Plan {
        strategy,
        hanging: true,
        signs,
        indices: Indices::Dofs,
        ..Plan::new(target, task, lanes, precision, geometry)
    };
    let mut jobs = Vec::new();
    let mut ran = vec![0; ways.len()];
    for (elements, settings) in &all {
        for task in [Task::Diagonal, Task::Residual, Task::Action] {
            let mut plans = Vec::new();
            for (way, ran) in ways.iter().zip(&mut ran) {
                let both = [Precision::F64, Precision::F32];
                let both = both.map(|precision| plan(way, task, precision));
                let both = both.into_iter().filter(|plan| check(form, elements, plan).is_ok());
                let before = plans.len();
                plans.extend(both);
                *ran += plans.len() - before;
            }
            jobs.extend(settings.iter().map(|setting| (elements, setting, plans.clone())));
        }
    }
    jobs.into_par_iter().with_max_len(1).for_each(|(elements, setting, plans)| {
        let launcher = Launcher { form, elements, setting };
        let Some(first) = plans.first() else { return };
        let want = launcher.wanted(first, None);
        for plan in &plans {
            let threads = plan.target == Target::Threads;
            let runner = Interpreted { form, elements, threads };
            let got = launcher.launch(plan, &runner);
            let agreement = got.and_then(|got| launcher.agreement_with(plan, got, &want));
            let agreement = agreement.unwrap_or_else(|error| panic!("{cell} {plan:?}: {error}"));
            assert!(agreement.seen > 0, "{cell} {plan:?}: the bounds hide every entry");
        }
    });
    ran
}
