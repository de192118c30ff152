//! Kernels whose degrees of freedom are stored batch by batch, without index arrays, against the reference: cells,
//! facets, vector-valued functions with signs, and element matrices.

use super::facets::agree_on_facets;
use super::forms;
use super::interpreter::Interpreted;
use super::launch::{Launcher, Shape};
use super::setting::Setting;
use super::vectors::{self, mirror};
use super::{CELLS, rules, shapes};
use fem_dsl::point::PointForm;
use kernels_gen::abi::{Indices, Role};
use kernels_gen::choose::at_facets;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
};

fn plan(task: Task, geometry: Geometry) -> Plan {
    Plan {
        indices: Indices::Batches,
        scatter: Scatter::Owner,
        ..Plan::new(Target::Vectors, task, 4, Precision::F64, geometry)
    }
}

/// Returns the form without integrals over facets: the reference evaluates all.
fn over_cells(mut form: PointForm) -> PointForm {
    form.integrals.retain(|integral| integral.region.is_of_cells());
    form
}

/// Returns the form without integrals over cells.
fn over_facets(mut form: PointForm) -> PointForm {
    form.integrals.retain(|integral| !integral.region.is_of_cells());
    form
}

/// Every form on every cell, with the other choices in turn.
#[test]
fn cells_of_batches() {
    let cells =
        [Cell::Interval, Cell::Triangle, Cell::Quadrilateral, Cell::Tetrahedron, Cell::Hexahedron];
    let tasks = [Task::Residual, Task::Action, Task::Diagonal, Task::Flux];
    let (mut turn, mut ran, mut signed) = (0, 0, 0);
    for cell in cells {
        let mut all = forms::all(cell.dim());
        if cell.dim() > 1 {
            all.extend(vectors::forms(cell.dim()).into_iter().map(over_cells));
        }
        for form in all {
            let vectors = form.fields.iter().any(|field| field.space.is_piola());
            for task in tasks.into_iter().filter(|&task| !(vectors && task == Task::Flux)) {
                turn += 1;
                let all = shapes(cell);
                let shape = all[turn % all.len()];
                let degree = 1 + turn / 2 % if cell == Cell::Hexahedron { 2 } else { 3 };
                let degree = if cell.is_tensor() { degree } else { degree.min(2) };
                let all = rules(cell, degree, shape);
                let rule = all[turn / 3 % all.len()];
                // A continuous field of degree k - 1 begins at k = 2.
                let least = Elements::new(&form, cell, degree, rule);
                let degree = if least.is_ok() { degree } else { 2 };
                let all = rules(cell, degree, shape);
                let rule = all[turn / 3 % all.len()];
                let elements = Elements::new(&form, cell, degree, rule).expect("elements");
                let mut plan = plan(task, Geometry::Nodes(shape.order()));
                plan.lanes = [4, 8, 2][turn % 3];
                plan.even_odd = [EvenOdd::Always, EvenOdd::Never][turn / 3 % 2];
                plan.unroll = [0, 4, 64][turn / 7 % 3];
                plan.block = [1, 3][turn / 5 % 2];
                if task == Task::Action && turn % 8 < 4 {
                    plan.linearisation = Linearisation::Stored;
                }
                if turn % 11 == 0 {
                    plan.precision = Precision::F32;
                }
                plan.signs = vectors;
                let geometry = plan.geometry;
                let mut setting = Setting::new(&form, degree, rule, shape, geometry, CELLS);
                if vectors {
                    mirror(&mut setting);
                    signed += 1;
                }
                let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
                let runner = Interpreted { form: &form, elements: &elements, threads: false };
                let name = format!("{} on {rule}: {plan:?}", form.name);
                let agreement = launcher.compare(&plan, &runner);
                let agreement = agreement.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(agreement.seen > 0, "{name}: the bounds hide every entry");
                let (_, abi) = kernels_gen::strategy::lower(&form, &elements, &plan).expect(&name);
                let is_map = |role: Role| matches!(role, Role::Map(..) | Role::Active);
                let map = abi.arguments.iter().find(|argument| is_map(argument.role));
                assert_eq!(map, None, "{name}");
                assert_eq!(abi.reaches, [], "{name}");
                ran += 1;
            }
        }
    }
    assert!(ran > 200 && signed == 4 * 3 * 3, "{ran} kernels, {signed} with signs");
}

/// All facets of cells, and those of forms with vector-valued functions with either sign.
#[test]
fn facets_of_batches() {
    let cells = [
        (Cell::Triangle, 2),
        (Cell::Quadrilateral, 3),
        (Cell::Tetrahedron, 2),
        (Cell::Hexahedron, 2),
    ];
    let mut signs = 0;
    for (cell, degree) in cells {
        let vectors = vectors::forms(cell.dim()).into_iter().take(2).map(over_facets);
        let all = [forms::on_boundary(cell.dim())].into_iter().chain(vectors);
        for (number, form) in all.enumerate() {
            let rule = default_rule(cell, degree, 1, None);
            let elements = Elements::new(&form, cell, degree, rule).expect("elements");
            let shape = if cell.is_tensor() { Shape::Multilinear } else { Shape::Affine };
            let geometry = Geometry::Nodes(1);
            let mut setting = Setting::new(&form, degree, rule, shape, geometry, CELLS);
            mirror(&mut setting);
            let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
            let runner = Interpreted { form: &form, elements: &elements, threads: false };
            let task = [Task::Residual, Task::Action, Task::Diagonal][(number + degree) % 3];
            let plan = Plan { signs: true, ..plan(task, geometry) };
            for plan in at_facets(plan, &elements, &form.integrals[0].region, None) {
                agree_on_facets(&launcher, &plan, &runner);
                let lowered = kernels_gen::strategy::lower(&form, &elements, &plan);
                let (_, abi) = lowered.expect("a kernel");
                let has_sign = |role: Role| matches!(role, Role::Signs(_));
                signs += usize::from(abi.arguments.iter().any(|argument| has_sign(argument.role)));
            }
        }
    }
    assert!(signs > 4);
}

/// Element matrices are those of kernels with index arrays, to the bit.
#[test]
fn matrices_of_batches() {
    for cell in [Cell::Triangle, Cell::Quadrilateral, Cell::Hexahedron] {
        for form in
            forms::mixed(cell.dim()).into_iter().chain([forms::nonlinear_diffusion(cell.dim())])
        {
            let (degree, geometry) = (2, Geometry::Nodes(1));
            let rule = default_rule(cell, degree, 1, None);
            let elements = Elements::new(&form, cell, degree, rule).expect("elements");
            let shape = if cell.is_tensor() { Shape::Multilinear } else { Shape::Affine };
            let setting = Setting::new(&form, degree, rule, shape, geometry, CELLS);
            let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
            let runner = Interpreted { form: &form, elements: &elements, threads: false };
            let own = plan(Task::Matrix, geometry);
            let nodes = Plan { indices: Indices::Nodes, ..own.clone() };
            let [own, nodes] =
                [own, nodes].map(|plan| launcher.launch(&plan, &runner).expect("a launch"));
            assert!(own.len() > CELLS && own.iter().any(|entry| entry.abs() > 0.1));
            assert_eq!(own, nodes, "{} on {cell}", form.name);
        }
    }
}

/// Plans of which batches are no part are refused, each with its reason.
#[test]
fn unsupported_plans_of_batches_are_refused() {
    let form = forms::poisson(2);
    let cell = Cell::Quadrilateral;
    let rule = default_rule(cell, 1, 1, None);
    let elements = Elements::new(&form, cell, 1, rule).expect("elements");
    let own = plan(Task::Action, Geometry::Nodes(1));
    let check = |plan: Plan| kernels_gen::strategy::check(&form, &elements, &plan);
    assert_eq!(check(own.clone()), Ok(()));
    let others = [
        (Plan { target: Target::Threads, ..own.clone() }, "lanes of vectors"),
        (
            Plan {
                target: Target::Threads,
                strategy: Strategy::ThreadPerLine { cells: 1 },
                ..own.clone()
            },
            "lanes of vectors",
        ),
        (Plan { scatter: Scatter::Atomic, ..own.clone() }, "a result of its own"),
        (Plan { hanging: true, ..own.clone() }, "without hanging nodes"),
        (Plan { geometry: Geometry::Corners, ..own.clone() }, "corners are gathered"),
        (Plan { task: Task::Prolong, ..own.clone() }, "the finer one"),
    ];
    for (plan, reason) in others {
        match check(plan) {
            Err(PlanError::Unsupported(text)) => assert!(text.contains(reason), "{text}"),
            other => panic!("{reason}: {other:?}"),
        }
    }
}
