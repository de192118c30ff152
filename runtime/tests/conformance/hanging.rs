//! Every word of what may hang, in batches that mix them, by the interpreter.

use super::interpreter::Interpreted;
use super::launch::{Launcher, Shape};
use super::setting::{Setting, words};
use fem_dsl::point::PointForm;
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Elements, Geometry, Plan, Strategy, Target, Task};
use kernels_gen::strategy::check;
use std::ops::RangeInclusive;

/// Degrees up to the largest, where all is run.
pub(crate) fn degrees(cell: Cell) -> RangeInclusive<usize> {
    let full = std::env::var_os("WF_FULL").is_some();
    if full || cell == Cell::Quadrilateral { 1..=8 } else { 1..=2 }
}

/// Compares each task and precision at these degrees with the reference; what a plan refuses is left out. How many ran.
pub(crate) fn all_that_hangs(
    form: &PointForm,
    cell: Cell,
    (target, strategy, lanes): (Target, Strategy, usize),
) -> usize {
    let (shape, geometry, mut ran) = (Shape::Multilinear, Geometry::Vertices, 0);
    for degree in degrees(cell) {
        let rule = default_rule(cell, degree, 1, None);
        let elements = Elements::new(form, cell, degree, rule).expect("elements");
        let words = words(cell.dim());
        let mut setting = Setting::new(form, degree, rule, shape, geometry, words.len());
        setting.hanging = words;
        let launcher = Launcher { form, elements: &elements, setting: &setting };
        let runner = Interpreted { form, elements: &elements, threads: target == Target::Threads };
        for task in [Task::Residual, Task::Action, Task::Diagonal] {
            for precision in [Precision::F64, Precision::F32] {
                let plan = Plan {
                    strategy,
                    hanging: true,
                    indices: Indices::Dofs,
                    ..Plan::new(target, task, lanes, precision, geometry)
                };
                if check(form, &elements, &plan).is_err() {
                    continue;
                }
                let agreement = launcher.compare(&plan, &runner);
                let agreement =
                    agreement.unwrap_or_else(|error| panic!("{cell} {degree} {plan:?}: {error}"));
                assert!(agreement.seen > 0, "{cell} {plan:?}: the bounds hide every entry");
                ran += 1;
            }
        }
    }
    ran
}
