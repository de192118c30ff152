//! Interpreted kernels in the same operators as compiled ones: each task, in both precisions, with and without
//! constraints, in parallel.

use fem_dsl::point::{Location, PointForm};
use fem_dsl::problem::Argument;
use fem_dsl::source::Source;
use kernels_gen::element::{Lagrange, default_rule};
use kernels_gen::plan::{Elements, Geometry, Linearisation, Task};
use runtime::algebra::vector::{Precision, Vector};
use runtime::kernels::compile::{Execution, InterpretationReason, Target, compile, facts};
use runtime::mesh::generate::generate;
use runtime::operator::Operator;
use runtime::solve::{LinearOperator as _, NonlinearSystem as _};
use runtime::space::discretisation::{AuxValues, Discretisation};
use std::collections::BTreeMap;
use std::sync::Arc;

const FORM: &str = "form flow {
    field u: vector;
    aux kappa: scalar on cells;
    aux a: scalar on nodes;
    param f = 2;
    f0[u] = f * u / (2 + cos(a)) - grad(a);
    f1[u] = kappa * (1 + dot(u, u)) * grad(u) + (if x[0] < 0.5 { h } else { 1 }) * sym(grad(u));
}";

const DEGREE: usize = 2;

fn form() -> PointForm {
    let (program, found) = fem_dsl::program::compile(&Source::new("flow", FORM));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    program.point_form("flow", 2).expect("a form in two dimensions")
}

fn discretisation(form: &PointForm, constrained: bool) -> Discretisation {
    let number = |value: f64| Argument::Number(value);
    let arguments = BTreeMap::from([
        ("dim".to_owned(), number(2.0)),
        ("cells".to_owned(), number(7.0)),
        ("deform".to_owned(), number(0.1)),
    ]);
    let mesh = generate("box", &arguments).expect("a box");
    let element = Lagrange::continuous(mesh.cell(), DEGREE).expect("an element");
    let mut on = Discretisation::new(mesh, &[(element, 2)]).expect("a discretisation");
    let wave = |i: usize| 1.0 + 0.5 * (i as f64 * 0.7).sin();
    let aux = form.aux.iter().map(|aux| match aux.location {
        Location::Nodes(_) => {
            let space = on.aux_space(element, 1).expect("a space");
            let values = (0..space.n_dofs()).map(wave).collect();
            AuxValues::at_nodes(space, values)
        }
        _ => AuxValues::on_cells((0..on.mesh.n_cells()).map(wave).collect()),
    });
    on.aux = aux.collect();
    if constrained {
        let space = &on.fields[0].space;
        let points = space.points(&on.mesh, &on.partition).expect("points");
        let nodes = space.nodes_on(&on.mesh.boundary());
        let zero = |_: &[f64; 3], row: &mut [f64]| row.fill(0.0);
        on.fields[0].constraints.fix(&nodes, None, &points, zero).expect("finite values");
    }
    on
}

/// Returns the residual, the action and the diagonal at a state, and the execution mode as a word.
fn results(
    form: &PointForm,
    on: &Arc<Discretisation>,
    target: &Target,
) -> (Option<InterpretationReason>, [Vec<f64>; 3]) {
    let rule = default_rule(on.mesh.cell(), DEGREE, 1, None);
    let elements = Elements::new(form, on.mesh.cell(), DEGREE, rule).expect("elements");
    let tasks = [Task::Residual, Task::Action, Task::Diagonal];
    let compiled = compile(form, &elements, &facts(on), &tasks, target).expect("kernels");
    let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
    let params = [0.0, 2.0];
    let mut operator =
        Operator::on_host(on.clone(), module, kernels, target.precision, &params, false)
            .expect("an operator");
    let fill = |mut vector: Vector, factor: f64| {
        let values: Vec<f64> = (0..vector.len()).map(|i| (i as f64 * factor).cos()).collect();
        vector.set(&values);
        vector
    };
    let (u, w) = (fill(operator.vector(), 0.3), fill(operator.vector(), 0.9));
    let mut r = operator.vector();
    let mut all = [const { Vec::new() }; 3];
    operator.residual(&u, &mut r).expect("a residual");
    all[0] = r.to_vec();
    operator.linearise(&u).expect("a linearisation");
    operator.apply(&w, &mut r).expect("an action");
    all[1] = r.to_vec();
    operator.diagonal(&mut r).expect("a diagonal");
    all[2] = r.to_vec();
    (compiled.interpreted, all)
}

#[test]
fn interpreted_operators_agree_with_compiled_ones() {
    let form = form();
    for precision in [Precision::F64, Precision::F32] {
        for stored in [false, true] {
            // Constraints with both precisions, and with both linearisations.
            let constrained = stored == (precision == Precision::F64);
            let on = Arc::new(discretisation(&form, constrained));
            let mut target = Target { precision, ..Target::native() };
            if stored {
                target.wishes.linearisation = Some(Linearisation::Stored);
                target.wishes.geometry = Some(Geometry::Stored);
            }
            let go = |execution| results(&form, &on, &Target { execution, ..target });
            let (none, want) = go(Execution::Compiled);
            let (why, got) = go(Execution::Interpreted);
            assert_eq!((none, why), (None, Some(InterpretationReason::Requested)));
            let epsilon = runtime::algebra::vector::epsilon(precision);
            for (task, (got, want)) in
                ["residual", "action", "diagonal"].iter().zip(got.iter().zip(&want))
            {
                // Each entry is a sum of terms about as large as the largest entries.
                let scale = want.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
                let worst = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                assert!(
                    scale > 1e-3 && worst <= 64.0 * epsilon * scale,
                    "{task}: {worst} of {scale}"
                );
            }
        }
    }
}

#[test]
fn interpreted_operators_repeat_themselves_on_any_number_of_threads() {
    let form = form();
    let on = Arc::new(discretisation(&form, true));
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| results(&form, &on, &target).1)
    };
    assert_eq!(with(1), with(3));
}
