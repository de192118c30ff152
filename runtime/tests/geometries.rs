//! Operators do not depend on the geometry data of their kernels, nor on the number of batches gathered together.

use fem_dsl::problem::Argument;
use fem_dsl::program::compile as compile_form;
use fem_dsl::source::Source;
use kernels_gen::element::{Lagrange, default_rule};
use kernels_gen::plan::{Elements, Geometry, Task};
use runtime::algebra::vector::Vector;
use runtime::kernels::compile::{Execution, Target, compile, facts};
use runtime::mesh::generate::generate;
use runtime::mesh::{Mesh, gmsh};
use runtime::operator::Operator;
use runtime::solve::{LinearOperator, NonlinearSystem};
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const SCALAR: &str = "form f { field u: scalar; f0[u] = u^3 + x[0]; f1[u] = (1 + u^2) * grad(u); }";
const VECTOR: &str =
    "form f { field u: vector; f0[u] = u; f1[u] = sym(grad(u)) + tr(grad(u)) * I; }";

fn number(value: f64) -> Argument {
    Argument::Number(value)
}

fn meshes() -> Vec<Mesh> {
    let boxed = |dim: f64, cells: f64| {
        let arguments = [("dim", dim), ("cells", cells), ("deform", 0.1)];
        let arguments: BTreeMap<_, _> =
            arguments.iter().map(|&(name, value)| (name.to_owned(), number(value))).collect();
        generate("box", &arguments).expect("a box")
    };
    let file = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../meshes").join(name);
        gmsh::read(&path).expect("a mesh")
    };
    vec![boxed(2.0, 7.0), boxed(3.0, 5.0), file("bracket_tet.msh")]
}

/// Returns the residual R(u) and the action J(u) w for fixed u and w, with the requested kernels.
fn results(
    form: &str,
    mesh: &Mesh,
    (geometry, block): (Option<Geometry>, usize),
    execution: Execution,
) -> [Vec<f64>; 2] {
    let (program, diagnostics) = compile_form(&Source::new("form.wf", form));
    assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:?}");
    let program = program.expect("a form");
    let form = program.point_form("f", mesh.dim()).expect("a point form");
    let cell = mesh.cell();
    let elements = Elements::new(&form, cell, 1, default_rule(cell, 1, 1, None)).expect("elements");
    let element = Lagrange::continuous(cell, 1).expect("an element");
    let components = form.fields[0].shape.components();
    let on = Discretisation::new(mesh.clone(), &[(element, components)]).expect("a space");
    let on = Arc::new(on);
    let mut target = Target { execution, ..Target::native() };
    target.wishes.geometry = geometry;
    target.wishes.block = Some(block);
    let tasks = [Task::Residual, Task::Action];
    let compiled = compile(&form, &elements, &facts(&on), &tasks, &target).expect("kernels");
    let kernels = &compiled.kernels;
    let mut operator =
        Operator::on_host(on, compiled.module.clone(), kernels, target.precision, &[0.0], false)
            .expect("an operator");
    let n = LinearOperator::size(&operator);
    let values = |seed: usize| -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + seed) % 1009) as f64 / 1009.0 - 0.5).collect()
    };
    let state = Vector::from_slice(&values(1), target.precision);
    let direction = Vector::from_slice(&values(500), target.precision);
    let (mut residual, mut action) = (operator.vector(), operator.vector());
    NonlinearSystem::residual(&operator, &state, &mut residual).expect("R");
    operator.linearise(&state).expect("J");
    operator.apply(&direction, &mut action).expect("J w");
    [residual, action].map(|vector| vector.to_vec())
}

#[test]
fn gathered_corners_and_blocks_change_nothing() {
    for (number, mesh) in meshes().into_iter().enumerate() {
        for (turn, form) in [SCALAR, VECTOR].into_iter().enumerate() {
            let wanted = results(form, &mesh, (None, 1), Execution::Interpreted);
            // Those of the scalar form are compiled, where a compiler exists.
            let how = [Execution::Automatic, Execution::Interpreted][turn];
            let ways = [(Some(Geometry::Corners), 1), (Some(Geometry::Corners), 4), (None, 3)];
            // Each variant once per mesh and form, not for all pairs.
            let own = ways
                .into_iter()
                .enumerate()
                .filter(|(way, _)| (way + number + turn).is_multiple_of(2));
            for (_, (geometry, block)) in own {
                let got = results(form, &mesh, (geometry, block), how);
                for (got, wanted) in got.iter().zip(&wanted) {
                    let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
                    let bound = 200.0 * f64::EPSILON * most;
                    let worst = got.iter().zip(wanted).map(|(a, b)| (a - b).abs());
                    let worst = worst.fold(0.0, f64::max);
                    let cell = mesh.cell();
                    assert!(
                        worst <= bound && most > 0.0,
                        "{cell}, {geometry:?}, {block} batches: {worst:e} of {most:e}"
                    );
                }
            }
        }
    }
}
