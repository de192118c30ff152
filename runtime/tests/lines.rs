//! One thread per line, interpreted with threads, barriers and race detection, agrees with the CPU kernels.

use fem_dsl::problem::Argument;
use fem_dsl::program::compile as compile_form;
use fem_dsl::source::Source;
use kernels_gen::element::{Cell, LinePoints, Rule};
use kernels_gen::plan::{Elements, Scatter, Strategy, Task};
use runtime::algebra::vector::Vector;
use runtime::kernels::compile::{Execution, Target, compile, facts};
use runtime::mesh::Mesh;
use runtime::mesh::generate::generate;
use runtime::operator::Operator;
use runtime::solve::{LinearOperator, NonlinearSystem};
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeMap;
use std::sync::Arc;

const FORMS: [&str; 6] = [
    "form f { field u: scalar; f0[u] = u; }",
    "form f { field u: scalar; f1[u] = grad(u); }",
    "form f { field u: scalar; param a = 2; f0[u] = u^3 + x[0] - a; f1[u] = (1 + u^2) * grad(u); }",
    "form f { field u: vector; f0[u] = 3 * u; f1[u] = sym(grad(u)) + tr(grad(u)) * I; }",
    "form f {
        field u: vector in H1(k);
        field p: scalar in H1(k - 1);
        param nu = 0.8;
        f0[u] = grad(u) * u;
        f1[u] = nu * grad(u) - p * I;
        f0[p] = -div(u);
    }",
    "form f {
        field q: vector(2) in H1(1);
        field s: scalar in H1(k);
        f0[q] = [s, q[0] * q[1]];
        f0[s] = s^3 + dot(q, q);
        f1[s] = (1 + q[0]^2) * grad(s);
    }",
];

fn mesh(name: &str, arguments: &[(&str, f64)]) -> Mesh {
    let number = |&(name, value): &(&str, f64)| (name.to_owned(), Argument::Number(value));
    let arguments: BTreeMap<_, _> = arguments.iter().map(number).collect();
    generate(name, &arguments).expect("a mesh")
}

/// Returns affine, multilinear and curved cells.
fn meshes() -> [Mesh; 3] {
    let boxed = |deform| mesh("box", &[("dim", 3.0), ("cells", 2.0), ("deform", deform)]);
    let ball = mesh("ball", &[("dim", 3.0), ("refine", 0.0), ("order", 2.0)]);
    [boxed(0.0), boxed(0.1), ball]
}

/// Returns the residual R(u), the action J(u) w and the diagonal of J(u) for fixed u and w, and the strategies of the
/// kernels.
fn results(
    form: &str,
    mesh: &Mesh,
    degree: usize,
    line: LinePoints,
    threads: bool,
) -> (Vec<Strategy>, [Vec<f64>; 3]) {
    let (program, diagnostics) = compile_form(&Source::new("form.wf", form));
    assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:?}");
    let form = program.expect("a form").point_form("f", 3).expect("a point form");
    let cell = Cell::Hexahedron;
    let elements =
        Elements::new(&form, cell, degree, Rule::Tensor { cell, line }).expect("elements");
    let on = Discretisation::new(mesh.clone(), &elements.spaces()).expect("spaces");
    let on = Arc::new(on);
    let mut target = Target::native();
    target.execution = Execution::Interpreted;
    target.wishes.strategy = threads.then_some(Strategy::ThreadPerLine { cells: 1 });
    // The shared memory of a thread group on a large device.
    target.wishes.shared_bytes = threads.then_some(200 << 10);
    // A choice for devices, without effect here.
    target.wishes.scatter = threads.then_some(Scatter::Owner);
    let tasks = [Task::Residual, Task::Action, Task::Diagonal];
    let compiled = compile(&form, &elements, &facts(&on), &tasks, &target).expect("kernels");
    let mut params = vec![0.0];
    params.extend(form.params.iter().flat_map(|param| param.value.clone()));
    let kernels = &compiled.kernels;
    let mut operator =
        Operator::on_host(on, compiled.module.clone(), kernels, target.precision, &params, false)
            .expect("an operator");
    let n = LinearOperator::size(&operator);
    let values = |seed: usize| -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + seed) % 1009) as f64 / 1009.0 - 0.5).collect()
    };
    let state = Vector::from_slice(&values(1), target.precision);
    let direction = Vector::from_slice(&values(500), target.precision);
    let [mut residual, mut action, mut diagonal] = [(); 3].map(|()| operator.vector());
    NonlinearSystem::residual(&operator, &state, &mut residual).expect("R");
    operator.linearise(&state).expect("J");
    operator.apply(&direction, &mut action).expect("J w");
    NonlinearSystem::diagonal(&operator, &mut diagonal).expect("the diagonal");
    let strategies = compiled.plans.iter().map(|plan| plan.strategy).collect();
    (strategies, [residual, action, diagonal].map(|vector| vector.to_vec()))
}

#[test]
fn a_thread_a_line_gives_what_a_cell_a_lane_gives() {
    let (mut seen, mut all) = (0, 0);
    for (number, mesh) in meshes().into_iter().enumerate() {
        for degree in [2, 3, 4, 6] {
            let lines = [
                LinePoints::Gauss(degree + 1),
                LinePoints::Gauss(degree + 2),
                LinePoints::GaussLobatto(degree + 1),
            ];
            for (which, line) in lines.into_iter().enumerate() {
                for (turn, form) in FORMS.into_iter().enumerate() {
                    // Long lines are slow: each form once per mesh and line, not for all pairs.
                    if degree > 3 && (number + turn) % lines.len() != which {
                        continue;
                    }
                    let (_, wanted) = results(form, &mesh, degree, line, false);
                    let (strategies, got) = results(form, &mesh, degree, line, true);
                    let line_of = |s: &&Strategy| matches!(s, Strategy::ThreadPerLine { .. });
                    seen += strategies.iter().filter(line_of).count();
                    all += strategies.len();
                    for (got, wanted) in got.iter().zip(&wanted) {
                        let most = wanted.iter().fold(0.0, |m: f64, value| m.max(value.abs()));
                        let worst = got.iter().zip(wanted).map(|(a, b)| (a - b).abs());
                        let worst = worst.fold(0.0, f64::max);
                        assert!(
                            worst <= 200.0 * f64::EPSILON * most && most > 0.0,
                            "degree {degree}, {line}, {form}: {worst:e} of {most:e}"
                        );
                    }
                }
            }
        }
    }
    // Collocated nodes, list-based scatter, and long lines.
    for form in [FORMS[0], FORMS[2]] {
        let [_, mesh, _] = meshes();
        let [(_, wanted), (_, got)] = [false, true]
            .map(|threads| results(form, &mesh, 7, LinePoints::GaussLobatto(8), threads));
        for (got, wanted) in got.iter().flatten().zip(wanted.iter().flatten()) {
            assert!((got - wanted).abs() <= 1e-13, "{form}: {got:e} is not {wanted:e}");
        }
    }
    assert!(all > 3 * (3 + 3 + 1 + 1) * 6 * 3, "on curved cells something should be stored: {all}");
    assert_eq!(seen, all, "kernels by lines, as was wished");
}
