//! The levels built are the predicted levels.

use super::CoarserLevel;
use crate::mesh::EntityCounts;
use crate::problem::Context;
use crate::problem::plan::HierarchySettings;
use crate::problem::plan::{ProblemProperties, SolveResources, plan_solve, predict};
use crate::problem::testing::problem;
use fem_dsl::problem::{
    LinearSettings, Method, MultigridSettings, PreconditionerSettings, SolverSettings,
};

/// Degrees of the levels of the only field on two cells, which have no useful coarser mesh.
fn made(degree: usize) -> Vec<usize> {
    let text = format!(
        "form f {{ field u: scalar; f1[u] = grad(u); }}
         problem p solves f {{ mesh = box(dim: 2, cells: [2, 1]); degree = {degree}; dirichlet u = 0; }}"
    );
    let context = problem(&text);
    let (form, Context { on, elements, .. }) = (context.form(), &context);
    let settings = HierarchySettings::default();
    let levels = context.hierarchy(&settings);
    let mut below = levels.below(on, elements).expect("a level");
    let mut degrees = vec![degree];
    while let Some(CoarserLevel { elements, on, .. }) = below {
        degrees.push(elements.fields[0].degree());
        below = levels.below(&on, &elements).expect("a level");
    }
    // Prediction from counts alone, with multigrid requested.
    let counts = [EntityCounts::of(&on.mesh)];
    let multigrid = PreconditionerSettings::Multigrid(MultigridSettings::default());
    let cg = LinearSettings { preconditioner: Some(multigrid), ..LinearSettings::new(Method::Cg) };
    let cg = SolverSettings::from(cg);
    let properties =
        ProblemProperties::counted(form, elements, &counts[0], SolveResources::cores(1));
    let plan = plan_solve(&properties, Some(&cg)).expect("a plan");
    let made = ProblemProperties {
        resources: properties.resources,
        room: properties.room,
        ..context.properties()
    };
    assert_eq!(properties, made, "properties of counts are those of the discretisation");
    let predicted = predict(&plan, form, elements, &counts);
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
