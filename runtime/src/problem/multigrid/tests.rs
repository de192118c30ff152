//! The levels built are the predicted levels, and their kernels those that are asked for in advance.

use super::coarser_levels::CoarserLevel;
use crate::device::jit::Jit;
use crate::mesh::EntityCounts;
use crate::problem::Context;
use crate::problem::plan::{
    HierarchySettings, ProblemProperties, SolveResources, plan_solve, predict,
};
use crate::problem::testing::problem;
use fem_dsl::problem::{
    LinearSettings, Method, MultigridSettings, PreconditionerSettings, SolverSettings,
};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

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

/// Messages of the current thread.
#[derive(Clone, Default)]
struct Messages(Arc<Mutex<Vec<String>>>);

impl Visit for Messages {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.lock().expect("messages").push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Messages {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the numbers of modules that the preconditioner of a problem compiles and finds after all are compiled in advance.
/// `NEW` in the text becomes a coefficient that no module of an earlier run has.
fn modules_after_prefetch(text: &str) -> Option<(usize, usize)> {
    if Jit::global().compiler().is_err() || Jit::global().cache().is_err() {
        return None;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_nanos();
    let new = (now % 1_000_000_007) as f64 * 1e-6;
    let context = problem(&text.replace("NEW", &new.to_string()));
    let plan = context.plan(context.problem.solver.as_ref()).expect("a plan");
    context.prefetch(&plan).finish();
    let messages = Messages::default();
    tracing::subscriber::with_default(messages.clone(), || {
        let (operator, _) = context.operator_for(&plan).expect("an operator");
        let settings = HierarchySettings::default();
        let made = context.hierarchy(&settings).approximation(&operator).expect("kernels");
        assert!(made.is_ok());
    });
    let messages = messages.0.lock().expect("messages");
    let count = |start: &str| messages.iter().filter(|text| text.starts_with(start)).count();
    Some((count("compiled "), count("found ")))
}

#[test]
fn kernels_of_levels_are_asked_for_in_advance() {
    let found = modules_after_prefetch(
        "form f { field u: scalar; f0[u] = -1; f1[u] = (1 + NEW * u^2) * grad(u); }
         problem p solves f { mesh = box(dim: 2, cells: 64); degree = 3; dirichlet u = 0 on all;
                               solver = newton(preconditioner: multigrid); }",
    );
    // The operator; degrees 3, 2 and 1 and two coarser meshes; four transfers of corrections and two of states.
    assert!(found.is_none_or(|found| found == (0, 1 + 5 + 6 + 1)), "{found:?}");
}

#[test]
fn kernels_of_blocks_are_asked_for_in_advance() {
    let found = modules_after_prefetch(
        "form stokes { field u: vector in H1(k); field p: scalar in H1(k - 1); f0[u] = [NEW * u[1], 0];
                       f1[u] = grad(u) - p * I; f0[p] = -div(u); }
         problem p solves stokes { mesh = box(dim: 2, cells: 64); degree = 2; dirichlet u = [x[1], 0] on all;
                                   mean p = 0; solver = gmres(preconditioner: multigrid); }",
    );
    // The operator and the mass; degrees 2 and 1 and two coarser meshes with three transfers; the coarse-grid solver.
    assert!(found.is_none_or(|found| found == (0, 2 + 4 + 3 + 1)), "{found:?}");
}
