//! Facet integrals on cells with all hanging words, in the interpreter. Cells are rotated such that the facet is ξ₀ =
//! 0; the reference uses them unrotated.

use super::interpreter::Interpreted;
use super::launch::{Launcher, Runner, Shape};
use super::setting::{Setting, words};
use fem_dsl::point::PointForm;
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Elements, Geometry, Plan, Target, Task};

/// Compares integrals over the facets of all cells that are a plan's own, or over all facets, with the reference.
pub(crate) fn agree_on_facets(launcher: &Launcher<'_>, plan: &Plan, runner: &impl Runner) {
    let Launcher { form, elements, setting } = launcher;
    let sides = 0..elements.cell.facets().len();
    let is_own = |facet: &usize| plan.facet.is_none_or(|at| usize::from(at) == *facet);
    let own: Vec<(usize, usize)> = (0..setting.cells)
        .flat_map(|cell| sides.clone().filter(is_own).map(move |facet| (cell, facet)))
        .collect();
    let turns: Vec<_> = own.iter().map(|&(cell, facet)| (cell, facet, 0)).collect();
    let turned = &setting.turned(elements, &turns);
    let got = Launcher { setting: turned, ..*launcher }.launch(plan, runner);
    let agreement = got.and_then(|got| launcher.agreement(plan, got, Some(&own)));
    let name = format!("{} on {}, degree {}: {plan:?}", form.name, elements.cell, elements.degree);
    let agreement = agreement.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(agreement.seen > 0, "{name}: the bounds hide every entry");
}

/// Compares integrals over all facets of cells with all hanging words, in mixed batches, with the reference.
pub(crate) fn facets_that_hang(form: &PointForm, cell: Cell, target: Target) {
    for degree in 1..=if cell == Cell::Quadrilateral { 4 } else { 2 } {
        let rule = default_rule(cell, degree, 1, None);
        let elements = Elements::new(form, cell, degree, rule).expect("elements");
        let (geometry, words) = (Geometry::Nodes(1), words(cell.dim()));
        let mut setting =
            Setting::new(form, degree, rule, Shape::Multilinear, geometry, words.len());
        setting.hanging = words;
        let launcher = Launcher { form, elements: &elements, setting: &setting };
        let runner = Interpreted { form, elements: &elements, threads: target == Target::Threads };
        for task in [Task::Residual, Task::Action, Task::Diagonal] {
            let plan = Plan {
                hanging: true,
                indices: Indices::Dofs,
                ..Plan::new(target, task, 8, Precision::F64, geometry)
            };
            agree_on_facets(&launcher, &plan, &runner);
        }
    }
}
