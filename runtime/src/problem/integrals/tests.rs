//! Functionals reuse the tables of the solve and of earlier functionals; results are the same as without reuse.

use super::*;
use crate::kernels::compile::{Execution, Target};
use crate::operator::TableCache;
use crate::problem::Context;
use crate::problem::testing::problem;
use fem_dsl::measures;
use kernels_gen::plan::Task;

const TEXT: &str =
    "form f { field u: scalar; aux a: scalar on nodes; f0[u] = a * u - x[0]; f1[u] = grad(u); }
problem p solves f { mesh = box(dim: 3, cells: 4, deform: 0.1); degree = 2; aux a = 1 + x[0];
    dirichlet u on \"x0\"; exact u = sin(x[0] + 2 * x[1]);
    report sum = integral(u); report side = integral(u * n[0], on: \"x1\"); }";

/// Returns the integrals of a form, the number of tables built for it, and whether it borrowed the solve's vector.
fn integrated(
    form: &PointForm,
    of: EvaluationState<'_>,
    table_cache: &mut TableCache,
) -> (Vec<f64>, usize, bool) {
    let platform = Target { execution: Execution::Interpreted, ..Target::native() }.into();
    let EvaluationState { elements, parameters, .. } = of;
    let elements = Elements::new(form, elements.cell, elements.degree, elements.rule);
    let mut params = parameters.values.clone();
    params.resize(1 + form.params.len(), 1.0);
    let beside = SharedResources { platform: &platform, table_cache };
    let integrals = Integrals::new(form, &elements.expect("elements"), of, &params, beside);
    let mut integrals = integrals.expect("kernels");
    let numbers = integrals.evaluate().expect("numbers");
    let borrowed = matches!(integrals.state, Cow::Borrowed(_));
    (numbers, integrals.kernels.operator().tables_made(), borrowed)
}

#[test]
fn tables_are_made_once() {
    let platform = Target { execution: Execution::Interpreted, ..Target::native() }.into();
    let context = Context { platform, ..problem(TEXT) };
    let (operator, _) = context.operator_with(&[Task::Residual]).expect("an operator");
    let problem = &context.problem;
    let mut vector = operator.vector();
    let u: Vec<f64> = (0..vector.len()).map(|i| (i as f64 * 12.9898).sin()).collect();
    vector.set(&u);
    let alone = EvaluationState::of(&context, &u);
    let beside = EvaluationState { vector: Some(&vector), ..alone };
    let energy = measures::energy(&problem.form).expect("an energy");
    let errors = measures::errors(&problem.form, &problem.exact);
    let integrals = problem.reports.integrals.clone().expect("integrals");
    // The cells need new indices of the additional field; facets need everything.
    let wanted = [(&energy, 1), (&errors, 1), (&energy, 1), (&integrals, 1 + 4)];
    let mut table_cache = operator.table_cache();
    for (form, wanted) in wanted {
        let (numbers, made, borrowed) = integrated(form, beside, &mut table_cache);
        let (same, all, copied) = integrated(form, alone, &mut TableCache::default());
        assert_eq!(made, wanted, "{} of {all}", form.name);
        assert_eq!(numbers, same, "{}", form.name);
        assert!(borrowed && !copied, "{}", form.name);
    }
}
