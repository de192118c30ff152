//! The levels built are the predicted levels.

use super::{Asked, Below, Problem};
use crate::kernels::compile::Target;
use crate::mesh::Counts;
use crate::problem::forecast::{Where, forecast};
use crate::problem::prescribed::OfProblem;
use crate::problem::testing::problem;
use fem_dsl::problem::{Argument, Solver};

/// Degrees of the levels of the only field on two cells, which have no useful coarser mesh.
fn made(degree: usize) -> Vec<usize> {
    let text = format!(
        "form f {{ field u: scalar; f1[u] = grad(u); }}
         problem p solves f {{ mesh = box(dim: 2, cells: [2, 1]); degree = {degree}; dirichlet u = 0; }}"
    );
    let (problem, setup) = problem(&text);
    let (target, asked) = (Target::native(), Asked::default());
    let prescribed =
        OfProblem { problem: &problem, elements: &setup.elements, files: &setup.files };
    let levels = Problem {
        form: &problem.form,
        elements: &setup.elements,
        on: &setup.on,
        parameters: &setup.parameters,
        prescribed: &prescribed,
        target: &target,
        device: None,
        asked: &asked,
    };
    let mut below = levels.below(&setup.on, &setup.elements).expect("a level");
    let mut degrees = vec![degree];
    while let Some(Below { elements, on, .. }) = below {
        degrees.push(elements.fields[0].degree());
        below = levels.below(&on, &elements).expect("a level");
    }
    // Prediction from counts alone, with multigrid requested.
    let counts = [Counts::of(&setup.on.mesh)];
    let arguments = [("preconditioner".to_owned(), Argument::Word("multigrid".to_owned()))];
    let cg = Solver { name: "cg".to_owned(), arguments: arguments.into() };
    let place = Where::Cores(1);
    let predicted = forecast(&problem.form, &setup.elements, &counts, Some(&cg), place);
    let predicted = predicted.expect("a prediction").levels;
    let predicted: Vec<usize> = predicted.iter().map(|level| level.degree).collect();
    assert_eq!(predicted, degrees, "degree {degree}");
    degrees
}

#[test]
fn a_dry_run_predicts_the_levels_that_are_made() {
    let all: Vec<Vec<usize>> = (1..=8).map(made).collect();
    assert_eq!(all[4], [5, 3, 2, 1]);
    assert_eq!(all[7], [8, 4, 2, 1]);
}
