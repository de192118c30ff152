//! Facet integrals on cells with all hanging words, in the interpreter. Cells are rotated such that the facet is ξ₀ =
//! 0; the reference uses them unrotated.

use super::interpreter::Interpreted;
use super::launch::{Launcher, Shape};
use super::setting::{Setting, words};
use fem_dsl::point::PointForm;
use kernels_gen::abi::Indices;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{Elements, Geometry, Plan, Target, Task};

/// Compares integrals over all facets of cells with all hanging words, in mixed batches, with the reference.
pub(crate) fn facets_that_hang(form: &PointForm, cell: Cell, target: Target) {
    for degree in 1..=if cell == Cell::Quadrilateral { 4 } else { 2 } {
        let rule = default_rule(cell, degree, 1, None);
        let elements = Elements::new(form, cell, degree, rule).expect("elements");
        let (geometry, words) = (Geometry::Nodes(1), words(cell.dim()));
        let mut setting =
            Setting::new(form, degree, rule, Shape::Multilinear, geometry, words.len());
        setting.hanging = words;
        let count = cell.facets().len();
        let facets: Vec<(usize, usize)> = (0..setting.cells)
            .flat_map(|cell| (0..count).map(move |facet| (cell, facet)))
            .collect();
        let launcher = Launcher { form, elements: &elements, setting: &setting };
        let runner = Interpreted { form, elements: &elements, threads: target == Target::Threads };
        for task in [Task::Residual, Task::Action, Task::Diagonal] {
            let plan = Plan {
                hanging: true,
                indices: Indices::Dofs,
                ..Plan::new(target, task, 8, Precision::F64, geometry)
            };
            let turns: Vec<_> = facets.iter().map(|&(cell, facet)| (cell, facet, 0)).collect();
            let turned = &setting.turned(&elements, &turns);
            let got = Launcher { setting: turned, ..launcher }.launch(&plan, &runner);
            let agreement = got.and_then(|got| launcher.agreement(&plan, got, Some(&facets)));
            let agreement =
                agreement.unwrap_or_else(|error| panic!("{cell} {degree} {plan:?}: {error}"));
            assert!(agreement.seen > 0, "{cell} {plan:?}: the bounds hide every entry");
        }
    }
}
