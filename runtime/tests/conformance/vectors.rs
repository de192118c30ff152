//! Kernels of fields in Hcurl and Hdiv against the reference, which maps functions by formulas of its own: on cells of
//! every shape, some of them mirrored, and on their facets.

use super::facets::agree_on_facets;
use super::hanging::all_that_hangs;
use super::interpreter::Interpreted;
use super::launch::{Launcher, Shape};
use super::setting::Setting;
use super::{CELLS, rules};
use fem_dsl::point::PointForm;
use fem_dsl::source::Source;
use kernels_gen::abi::{Indices, Role};
use kernels_gen::choose::at_facets;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::kir::Precision;
use kernels_gen::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, Scatter, Strategy, Target, Task,
};

/// A field in each space beside a scalar one, with all their parts.
const CURL: &str = "form curls {
    field E: vector in Hcurl(k);
    field p: scalar;
    aux a: scalar;
    param s = 0.7;
    f0[E] = (1 + p^2) * E + a * grad(p) + s * inner(curl(E), curl(E)) * E;
    f1[E] = (2 + dot(E, E) + grad(p)[1]) * curl(E);
    f0[p] = p + inner(curl(E), curl(E));
    f1[p] = grad(p) - a * E;
    on boundary \"b\" { f0[E] = (1 + p) * E + inner(curl(E), curl(E)) * n; f1[E] = p * curl(E); f0[p] = dot(E, n); }
}";

const DIV: &str = "form divs {
    field u: vector in Hdiv(k);
    field p: scalar in L2(k - 1);
    aux a: scalar;
    param s = 0.7;
    f0[u] = (1 + p^2 + div(u)^2) * u + a * [x[1], s REST];
    f1[u] = a * div(u) - p + dot(u, u);
    f0[p] = div(u) + p^3;
    on boundary \"b\" { f0[u] = p * n + dot(u, n) * u; f1[u] = dot(u, n); f0[p] = div(u) * dot(u, n); }
}";

const BOTH: &str = "form mixed {
    field E: vector in Hcurl(k);
    field B: vector in Hdiv(k);
    f0[E] = E + div(B) * B;
    f1[E] = CURL;
    f0[B] = (1 + dot(E, E)) * B;
    f1[B] = dot(E, B) + 2 * div(B);
}";

/// Returns the forms at a dimension.
pub(super) fn forms(dim: usize) -> Vec<PointForm> {
    let form = |text: &str| {
        let text = text.replace("REST", if dim == 2 { "" } else { ", x[2]" });
        let text = text.replace("CURL", if dim == 2 { "curl(E) + B[0]" } else { "curl(E) + B" });
        let name = text.split_whitespace().nth(1).expect("a name").to_owned();
        let (program, found) = fem_dsl::program::compile(&Source::new("test", &text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form(&name, dim).expect("a form")
    };
    [CURL, DIV, BOTH].map(form).to_vec()
}

const TASKS: [Task; 3] = [Task::Residual, Task::Action, Task::Diagonal];

/// Mirrors every other cell.
pub(super) fn mirror(setting: &mut Setting) {
    let dim = setting.cell.dim();
    let stride = setting.geometry.count() * dim;
    for own in setting.coordinates.chunks_mut(stride).step_by(2) {
        own.chunks_mut(dim).for_each(|x| x.swap(0, 1));
    }
}

/// Removes the signs, for kernels without.
fn without_signs(setting: &mut Setting) {
    setting.fields.iter_mut().for_each(|field| field.numbering.reversed.clear());
    setting.aux.iter_mut().flatten().for_each(|own| own.reversed.clear());
}

/// Returns a plan with the choices of a turn; threads of a group have lines of points.
fn plan(target: Target, task: Task, shape: Shape, turn: usize, shared: bool) -> Plan {
    let mut plan = Plan::new(target, task, 4, Precision::F64, shape.direct());
    plan.lanes = [4, 8, 2][turn % 3];
    plan.even_odd = [EvenOdd::Always, EvenOdd::Never][turn / 3 % 2];
    plan.unroll = [0, 4, 64][turn / 2 % 3];
    plan.indices = [Indices::Nodes, Indices::Dofs][turn % 2];
    plan.signs = turn % 4 < 2;
    if task == Task::Action && turn / 2 % 2 == 1 {
        plan.linearisation = Linearisation::Stored;
    }
    if turn.is_multiple_of(5) {
        plan.precision = Precision::F32;
    }
    if shared && !plan.signs && turn.is_multiple_of(3) {
        plan.indices = Indices::Runs;
    }
    if target == Target::Threads {
        plan.indices = [Indices::Nodes, Indices::Dofs][turn % 2];
        plan.strategy = Strategy::ThreadPerLine { cells: 1 + turn % 3 };
        plan.lanes = 1;
        plan.scatter = [Scatter::Atomic, Scatter::Owner][turn / 4 % 2];
        plan.in_place = (turn / 2).is_multiple_of(2);
        plan.shared_bytes = 200 << 10;
    }
    plan
}

fn cells(target: Target, cell: Cell, degrees: &[usize], tasks: &[Task]) {
    let (mut ran, mut turn, mut hanging, mut worst) = (0, 0, 0, 0.0_f64);
    // Threads with lines have as many points as the map has nodes.
    let order = |degree: usize| if target == Target::Threads { degree.min(2) } else { 2 };
    for form in forms(cell.dim()) {
        for &degree in degrees {
            let shapes = shapes(cell, order(degree));
            for (shape, &task) in shapes.flat_map(|s| tasks.iter().map(move |t| (s, t))) {
                let all = rules(cell, degree, shape);
                turn += 1;
                let rule = all[turn % all.len()];
                let elements = Elements::new(&form, cell, degree, rule).expect("elements");
                let shared = cell.is_tensor() && elements.are_continuous();
                let mut plan = plan(target, task, shape, turn, shared);
                if target == Target::Vectors && cell.is_tensor() && turn % 3 == 1 {
                    (plan.hanging, plan.indices) = (true, Indices::Dofs);
                    hanging += 1;
                }
                let mut setting = Setting::new(&form, degree, rule, shape, plan.geometry, CELLS);
                mirror(&mut setting);
                if !plan.signs {
                    without_signs(&mut setting);
                }
                let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
                let threads = target == Target::Threads;
                let runner = Interpreted { form: &form, elements: &elements, threads };
                let name = format!("{} on {rule}, degree {degree}: {plan:?}", form.name);
                let agreement = launcher.compare(&plan, &runner);
                let agreement = agreement.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(agreement.seen > 0, "{name}: the bounds hide every entry");
                worst = worst.max(agreement.worst);
                ran += 1;
            }
        }
    }
    println!("{cell}: {ran} kernels, {:.0} % of the bound", 100.0 * worst);
    assert_eq!(ran, 3 * shapes(cell, 2).count() * tasks.len() * degrees.len());
    assert!(target == Target::Threads || !cell.is_tensor() || 4 * hanging > ran);
}

/// Returns the shapes of a cell, the last with a map of an order.
fn shapes(cell: Cell, order: usize) -> impl Iterator<Item = Shape> {
    let shapes = [Shape::Affine, Shape::Multilinear, Shape::Curved(order)].into_iter();
    shapes.filter(move |&shape| cell.is_tensor() || shape != Shape::Multilinear)
}

#[test]
fn vectors_on_quadrilaterals() {
    cells(Target::Vectors, Cell::Quadrilateral, &[1, 2, 3], &[Task::Residual, Task::Action]);
}

#[test]
fn vectors_on_hexahedra() {
    cells(Target::Vectors, Cell::Hexahedron, &[1, 2, 3], &[Task::Residual, Task::Action]);
}

#[test]
fn vectors_on_triangles() {
    cells(Target::Vectors, Cell::Triangle, &[1, 2, 3, 4], &[Task::Residual, Task::Action]);
}

#[test]
fn vectors_on_tetrahedra() {
    cells(Target::Vectors, Cell::Tetrahedron, &[1, 2, 3], &[Task::Residual, Task::Action]);
}

/// Threads that first own points, then degrees of freedom.
#[test]
fn vectors_of_simplices_by_groups_of_threads() {
    for (cell, degrees) in [(Cell::Triangle, 3), (Cell::Tetrahedron, 2)] {
        for (number, form) in forms(cell.dim()).into_iter().enumerate() {
            for (degree, task) in (1..=degrees).flat_map(|k| TASKS.map(|task| (k, task))) {
                let shape = [Shape::Affine, Shape::Curved(2)][(degree + number) % 2];
                let rule = default_rule(cell, degree, shape.order(), None);
                let elements = Elements::new(&form, cell, degree, rule).expect("elements");
                let plan = Plan {
                    strategy: Strategy::ThreadTransposition { blocks: 1, batches: 2 },
                    signs: (degree + number) % 3 > 0,
                    unroll: [0, 64][degree % 2],
                    shared_bytes: 1 << 20,
                    ..Plan::new(Target::Threads, task, 2, Precision::F64, shape.direct())
                };
                let mut setting = Setting::new(&form, degree, rule, shape, plan.geometry, CELLS);
                mirror(&mut setting);
                if !plan.signs {
                    without_signs(&mut setting);
                }
                let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
                let runner = Interpreted { form: &form, elements: &elements, threads: true };
                let name = format!("{} on {cell}, degree {degree}: {plan:?}", form.name);
                let agreement = launcher.compare(&plan, &runner);
                let agreement = agreement.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(agreement.seen > 0, "{name}: the bounds hide every entry");
            }
        }
    }
}

#[test]
fn diagonals_of_vectors() {
    cells(Target::Vectors, Cell::Triangle, &[1, 2, 3], &[Task::Diagonal]);
    cells(Target::Vectors, Cell::Tetrahedron, &[1, 2], &[Task::Diagonal]);
    cells(Target::Vectors, Cell::Quadrilateral, &[1, 2, 3], &[Task::Diagonal]);
    cells(Target::Vectors, Cell::Hexahedron, &[1, 2], &[Task::Diagonal]);
}

#[test]
fn vectors_by_lines() {
    cells(Target::Threads, Cell::Quadrilateral, &[1, 2, 3, 4], &TASKS);
    cells(Target::Threads, Cell::Hexahedron, &[1, 2], &TASKS);
    cells(Target::Threads, Cell::Hexahedron, &[3, 4], &[Task::Action]);
}

/// Of curl and values, and of div and values, a point has two symmetric matrices, or one and a number.
#[test]
fn coefficients_of_vectors_are_stored_once() {
    let curl = "form f { field u: vector in Hcurl(k); f0[u] = 2 * u; f1[u] = 3 * curl(u); }";
    let div = "form f { field u: vector in Hdiv(k); f0[u] = 2 * u; f1[u] = 3 * div(u); }";
    for (text, cell, numbers) in [
        (curl, Cell::Hexahedron, 12),
        (div, Cell::Hexahedron, 7),
        (curl, Cell::Quadrilateral, 4),
        (div, Cell::Quadrilateral, 4),
    ] {
        let (program, _) = fem_dsl::program::compile(&Source::new("test", text));
        let form = program.expect("a program").point_form("f", cell.dim()).expect("a form");
        let rule = default_rule(cell, 2, 1, None);
        let elements = Elements::new(&form, cell, 2, rule).expect("elements");
        let plan =
            Plan::new(Target::Vectors, Task::Linearise, 4, Precision::F64, Geometry::Vertices);
        let (_, abi) = kernels_gen::strategy::lower(&form, &elements, &plan).expect("a kernel");
        let stored = abi.arguments.iter().find(|argument| argument.role == Role::Stored);
        let extent = stored.expect("stored values").extent;
        assert_eq!(extent, numbers * rule.count() * 4, "{text} on {cell}");
    }
}

/// All hanging words on quadrilaterals, and many on hexahedra.
#[test]
fn vectors_of_cells_that_hang() {
    let how = (Target::Vectors, Strategy::CellPerLane, 4);
    for form in forms(2) {
        assert!(all_that_hangs(&form, Cell::Quadrilateral, &[how])[0] >= 8 * 6);
    }
    for form in forms(3).into_iter().take(2) {
        assert!(all_that_hangs(&form, Cell::Hexahedron, &[how])[0] >= 2 * 6);
    }
}

/// Terms on all facets of cells that are mirrored, see functions with either sign, and may hang.
#[test]
fn vectors_on_facets() {
    let cells = [
        (Cell::Quadrilateral, 3),
        (Cell::Hexahedron, 2),
        (Cell::Triangle, 3),
        (Cell::Tetrahedron, 2),
    ];
    for (cell, degrees) in cells {
        for mut form in forms(cell.dim()).into_iter().take(2) {
            // The facets alone: the reference takes the facets of each integral.
            form.integrals.retain(|integral| !integral.region.is_of_cells());
            let cases = (1..=degrees).flat_map(|k| TASKS.map(|task| (k, task)));
            let all = cases.flat_map(|case| [(case, false), (case, true)]);
            for ((degree, task), hanging) in all.filter(|of| cell.is_tensor() || !of.1) {
                let rule = default_rule(cell, degree, 1, None);
                let elements = Elements::new(&form, cell, degree, rule).expect("elements");
                let geometry = Geometry::Nodes(1);
                let shape = if cell.is_tensor() { Shape::Multilinear } else { Shape::Affine };
                let mut setting = Setting::new(&form, degree, rule, shape, geometry, CELLS);
                mirror(&mut setting);
                let launcher = Launcher { form: &form, elements: &elements, setting: &setting };
                let runner = Interpreted { form: &form, elements: &elements, threads: false };
                let plan = Plan {
                    indices: if hanging { Indices::Dofs } else { Indices::Nodes },
                    hanging,
                    signs: true,
                    ..Plan::new(Target::Vectors, task, 4, Precision::F64, geometry)
                };
                for plan in at_facets(plan, &elements, &form.integrals[0].region, None) {
                    agree_on_facets(&launcher, &plan, &runner);
                }
            }
        }
    }
}
