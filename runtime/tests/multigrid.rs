//! Multigrid: transfers reproduce polynomials and are mutual transposes, on all cell shapes, with hanging nodes, on
//! periodic and curved meshes. Iteration counts do not depend on the mesh size, and are compared with a table.

use super::devices;
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{Argument, Problem};
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use kernels_gen::abi::Precision;
use kernels_gen::element::Lagrange;
use runtime::algebra::vector::Vector;
use runtime::device::{Arithmetic, Device};
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::generate::generate;
use runtime::mesh::{CellOrdering, Mesh, MeshData, load};
use runtime::operator::TableCache;
use runtime::problem::multigrid::transfer::{KernelTransfer, StateInjection, TransferEnvironment};
use runtime::problem::{Platform, Solution, run};
use runtime::solve::Continue;
use runtime::space::discretisation::Discretisation;
use std::path::Path;
use std::sync::Arc;

fn made(name: &str, words: &[(&str, &str)], numbers: &[(&str, f64)]) -> Mesh {
    let words = words.iter().map(|&(key, word)| (key, Argument::Word(word.to_owned())));
    let numbers = numbers.iter().map(|&(key, value)| (key, Argument::Number(value)));
    let all = words.chain(numbers).map(|(key, value)| (key.to_owned(), value)).collect();
    generate(name, &all).expect("a mesh")
}

fn boxed(cell: &str, dim: f64, cells: f64, deform: f64) -> Mesh {
    made("box", &[("cell", cell)], &[("dim", dim), ("cells", cells), ("deform", deform)])
}

/// Refines cells near a corner, so that nodes hang.
pub(crate) fn adapted(mesh: Mesh) -> Mesh {
    let mut adaptive = AdaptiveMesh::new(mesh).expect("squares or cubes");
    for _ in 0..2 {
        let mesh = adaptive.mesh().expect("a mesh");
        let near = |cell: usize| {
            let corner = mesh.points()[mesh.vertices(cell)[0] as usize];
            corner.iter().map(|x| x * x).sum::<f64>() < 0.1
        };
        let marked: Vec<bool> = (0..mesh.n_cells()).map(near).collect();
        adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
    }
    adaptive.mesh().expect("a mesh")
}

/// Meshes with the degree from which linear functions are in the space.
fn meshes() -> Vec<(&'static str, Mesh, usize)> {
    vec![
        ("quadrilaterals", boxed("quad", 2.0, 5.0, 0.1), 1),
        ("triangles", boxed("tri", 2.0, 4.0, 0.1), 1),
        ("hexahedra", boxed("hex", 3.0, 3.0, 0.1), 1),
        ("tetrahedra", boxed("tet", 3.0, 2.0, 0.0), 1),
        ("a curved disc", made("ball", &[], &[("dim", 2.0), ("refine", 1.0), ("order", 2.0)]), 2),
        ("hanging quadrilaterals", adapted(boxed("quad", 2.0, 3.0, 0.1)), 1),
        ("hanging hexahedra", adapted(boxed("hex", 3.0, 2.0, 0.0)), 1),
    ]
}

fn discretised(mesh: &Arc<Mesh>, degree: usize, components: usize, held: bool) -> Discretisation {
    let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
    let mut on = Discretisation::new(Arc::clone(mesh), &[(element, components)]).expect("a space");
    if held {
        let field = &on.fields[0];
        let points = field.space.points(mesh, &on.partition).expect("points");
        let facets = mesh.facets_under(&["x0".to_owned()]).expect("a side");
        let nodes = field.space.nodes_on(&facets);
        let mut own = field.constraints.clone();
        let places: Vec<[f64; 3]> = nodes.iter().map(|&node| points[node as usize]).collect();
        own.fix_at(&nodes, None, &places, |_, values| values.fill(0.5)).expect("numbers");
        on.constrain(vec![own]);
    }
    on
}

fn place(execution: Execution, precision: Precision) -> TransferEnvironment {
    let target = Target { execution, precision, ..Target::native() };
    TransferEnvironment { platform: target.into(), table_cache: TableCache::default(), fine: None }
}

/// Returns a linear function with different slopes per component, at the nodes of a space.
fn linear(on: &Discretisation) -> Vec<f64> {
    let space = &on.fields[0].space;
    let points = space.points(&on.mesh, &on.partition).expect("points");
    let value = |x: &[f64; 3], c: usize| 1.0 + (c as f64 + 1.0) * x[0] - 0.5 * x[1] + 0.25 * x[2];
    let components = space.components();
    points.iter().flat_map(|x| (0..components).map(move |c| value(x, c))).collect()
}

fn random(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed) % 1009) as f64 / 1009.0 - 0.5).collect()
}

/// Checks that P reproduces linear functions, and that x · Pᵀ y = y · P x.
fn check(
    name: &str,
    coarse: &Discretisation,
    fine: &Discretisation,
    place: &TransferEnvironment,
    least: usize,
) {
    let between = KernelTransfer::degrees(coarse, fine, place).expect("kernels");
    check_between(name, &between, (coarse, fine), place, least);
}

fn check_between(
    name: &str,
    between: &KernelTransfer,
    (coarse, fine): (&Discretisation, &Discretisation),
    place: &TransferEnvironment,
    least: usize,
) {
    let precision = place.platform.target.precision;
    let vector = |n: usize| match &place.platform.device {
        None => Vector::zeros(n, precision),
        Some(device) => {
            let own = Arithmetic::new(Arc::clone(device), precision).expect("arithmetic");
            Vector::on_device(n, &own)
        }
    };
    let eps = runtime::algebra::vector::epsilon(precision);
    let (degree, mut y) = (coarse.fields[0].space.element().degree(), vector(fine.n_dofs()));
    let mut x = between.vector();
    if degree >= least && coarse.fields[0].constraints.is_empty() {
        x.set(&linear(coarse));
        between.prolong(&x, &mut y).expect("P");
        for (i, (found, wanted)) in y.to_vec().iter().zip(linear(fine)).enumerate() {
            let bound = 4.0 * eps * 1e2;
            assert!((found - wanted).abs() <= bound, "{name}: {found} is not {wanted} at {i}");
        }
    }
    let (mut a, b) = (random(coarse.n_dofs(), 3), random(fine.n_dofs(), 77));
    coarse.conditions().for_each(|(dof, _)| a[dof] = 0.0);
    x.set(&a);
    y.fill(0.0);
    between.prolong(&x, &mut y).expect("P");
    let prolonged = y.to_vec();
    y.set(&b);
    between.restrict(&y, &mut x).expect("P transposed");
    let restricted = x.to_vec();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (one, other) = (dot(&prolonged, &b), dot(&restricted, &a));
    let terms: f64 = prolonged.iter().zip(&b).map(|(x, y)| (x * y).abs()).sum();
    assert!(terms > 0.0 && (one - other).abs() <= 1e2 * eps * terms, "{name}: {one} and {other}");
    for (field, numbers) in [(&coarse.fields[0], &restricted), (&fine.fields[0], &prolonged)] {
        let held = field.constraints.iter().all(|(dof, _)| numbers[dof] == 0.0);
        assert!(held, "{name}: a constrained unknown is not left alone");
    }
}

#[test]
fn transfers_reproduce_linear_functions_and_are_transposes() {
    let mut number = 0;
    for (name, mesh, least) in meshes() {
        let mesh = Arc::new(mesh);
        let simplices = !mesh.cell().is_tensor();
        for (low, high) in [(1, 2), (2, 4), (1, 3), (3, 6)] {
            if high > 4 && (simplices || mesh.dim() == 3) {
                continue;
            }
            for components in [1, mesh.dim()] {
                number += 1;
                let held = number % 3 == 0 && mesh.facet_tags().contains_key("x0");
                let [coarse, fine] =
                    [low, high].map(|degree| discretised(&mesh, degree, components, held));
                let precision = if number % 4 == 0 { Precision::F32 } else { Precision::F64 };
                let place = place(Execution::Interpreted, precision);
                let name = format!("{name}, degree {low} to {high}, {components} components");
                check(&name, &coarse, &fine, &place, least);
            }
        }
    }
}

#[test]
fn transfers_from_coarser_meshes_do_so_too() {
    let refined = |mesh: Mesh| mesh.refined(1).expect("a finer mesh");
    let shell = [("dim", 3.0), ("refine", 1.0)];
    let mut periodic = boxed("quad", 2.0, 8.0, 0.0);
    periodic.make_periodic(&[["y0", "y1"]]).expect("sides");
    let meshes = [
        ("squares", boxed("quad", 2.0, 6.0, 0.0), true),
        ("cubes", boxed("hex", 3.0, 4.0, 0.0), true),
        ("refined triangles", refined(boxed("tri", 2.0, 3.0, 0.0)), true),
        ("refined tetrahedra", refined(boxed("tet", 3.0, 2.0, 0.0)), true),
        ("a disc", made("ball", &[("cell", "quad")], &[("dim", 2.0), ("refine", 2.0)]), false),
        ("a shell", made("shell", &[("cell", "hex")], &shell), false),
        ("a periodic box", periodic, false),
    ];
    for (number, (name, mesh, straight)) in meshes.into_iter().enumerate() {
        let mesh = Arc::new(mesh);
        let coarser = mesh.coarsened().unwrap_or_else(|error| panic!("{name}: {error}"));
        let components = if number % 2 == 0 { 1 } else { mesh.dim() };
        let held = number == 1;
        let fine = discretised(&mesh, 1, components, held);
        let coarse = discretised(&coarser.mesh, 1, components, held);
        let place = place(Execution::Interpreted, Precision::F64);
        let between = KernelTransfer::children(&coarse, &fine, &coarser, &place).expect("kernels");
        // In the other meshes children do not follow the map of their parents.
        let least = if straight { 1 } else { usize::MAX };
        check_between(name, &between, (&coarse, &fine), &place, least);
    }
}

/// Refines all cells, then those near a corner, twice.
fn graded(mesh: Mesh) -> Mesh {
    let mut adaptive = AdaptiveMesh::new(mesh).expect("squares or cubes");
    for step in 0..3 {
        let mesh = adaptive.mesh().expect("a mesh");
        let marked = |cell: usize| {
            let corner = mesh.points()[mesh.vertices(cell)[0] as usize];
            step == 0 || corner.iter().map(|x| x * x).sum::<f64>() < 0.3
        };
        let marked: Vec<bool> = (0..mesh.n_cells()).map(marked).collect();
        adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
    }
    adaptive.mesh().expect("a mesh")
}

#[test]
fn transfers_between_forests_do_so_too() {
    let mut periodic = boxed("quad", 2.0, 4.0, 0.0);
    periodic.make_periodic(&[["y0", "y1"]]).expect("sides");
    let disc = made("ball", &[("cell", "quad")], &[("dim", 2.0), ("refine", 1.0)]);
    let meshes = [
        ("squares", boxed("quad", 2.0, 4.0, 0.0), true),
        ("cubes", boxed("hex", 3.0, 2.0, 0.0), true),
        ("a disc", disc, false),
        ("a periodic box", periodic, false),
    ];
    for (number, (name, mesh, straight)) in meshes.into_iter().enumerate() {
        let mut fine = Arc::new(graded(mesh));
        let (mut levels, mut hanging) = (0, 0);
        while let Ok(coarser) = fine.coarsened() {
            let components = if number % 2 == 0 { 1 } else { fine.dim() };
            let held = levels % 2 == 1 && number < 2;
            let [own, other] =
                [&fine, &coarser.mesh].map(|mesh| discretised(mesh, 1, components, held));
            let place = place(Execution::Interpreted, Precision::F64);
            let between =
                KernelTransfer::children(&other, &own, &coarser, &place).expect("kernels");
            let least = if straight { 1 } else { usize::MAX };
            check_between(name, &between, (&other, &own), &place, least);
            // Values at vertices are those of the finer mesh.
            let StateInjection::Copied(taken) = StateInjection::at_vertices(&other, &own, &coarser)
            else {
                panic!("{name}: no vertices")
            };
            let [below, above] = [&other, &own].map(linear);
            // A linear function is not periodic.
            let taken = taken.from.iter().enumerate().filter(|_| !fine.is_periodic());
            for (at, &from) in taken {
                let (found, wanted) = (above[from as usize], below[at]);
                assert!((found - wanted).abs() <= 1e-14, "{name}: {found} is not {wanted}");
            }
            hanging += usize::from(coarser.mesh.hanging().is_some());
            (fine, levels) = (coarser.mesh, levels + 1);
        }
        assert!(levels > 2 && hanging > 0, "{name}: {levels} levels, {hanging} hang");
    }
}

/// Few cells of an initially fine mesh are refined: trees are joined, in any numbering.
#[test]
fn transfers_between_forests_of_joined_trees_do_so_too() {
    let mut random = 1u64;
    let mut turned = |mesh: Mesh| {
        let vertices = mesh.cell().vertex_count();
        let mut nodes = Vec::new();
        for cell in 0..mesh.n_cells() {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Rotations about one axis or another, which keep the orientation.
            let turn = |at: usize| match random >> 60 {
                0..8 => at,
                8..12 => [2, 0, 3, 1, 6, 4, 7, 5][at],
                _ => [3, 2, 1, 0, 7, 6, 5, 4][at],
            };
            nodes.extend((0..vertices).map(|at| mesh.vertices(cell)[turn(at)]));
        }
        let parts = MeshData { points: mesh.points().to_vec(), nodes, ..MeshData::default() };
        Mesh::new(mesh.cell(), 1, parts, CellOrdering::Original).expect("a mesh")
    };
    let meshes = [
        ("squares", boxed("quad", 2.0, 8.0, 0.0)),
        ("turned squares", turned(boxed("quad", 2.0, 8.0, 0.0))),
        ("turned cubes", turned(boxed("hex", 3.0, 4.0, 0.0))),
    ];
    for (name, mesh) in meshes {
        let trees = mesh.n_cells();
        let mut adaptive = AdaptiveMesh::new(mesh).expect("a forest");
        for _ in 0..3 {
            let mesh = adaptive.mesh().expect("a mesh");
            let at_corner = |cell: usize| {
                mesh.vertices(cell).iter().any(|&v| mesh.points()[v as usize] == [0.0; 3])
            };
            let marked: Vec<bool> = (0..mesh.n_cells()).map(at_corner).collect();
            adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
        }
        let mut fine = Arc::new(adaptive.mesh().expect("a mesh"));
        let mut counts = vec![fine.n_cells()];
        while let Ok(coarser) = fine.coarsened() {
            let [own, other] = [&fine, &coarser.mesh].map(|mesh| discretised(mesh, 1, 1, false));
            let place = place(Execution::Interpreted, Precision::F64);
            let between =
                KernelTransfer::children(&other, &own, &coarser, &place).expect("kernels");
            check_between(name, &between, (&other, &own), &place, 1);
            fine = coarser.mesh;
            counts.push(fine.n_cells());
        }
        assert!(counts[0] > trees && 2 * counts[1] < trees, "{name}: {counts:?}");
    }
}

#[test]
fn compiled_transfers_are_those_that_are_interpreted() {
    for (cell, dim, cells) in [("quad", 2.0, 9.0), ("hex", 3.0, 4.0), ("tet", 3.0, 3.0)] {
        let mesh = Arc::new(boxed(cell, dim, cells, 0.05));
        let components = if cell == "hex" { 3 } else { 1 };
        let [coarse, fine] = [1, 2].map(|degree| discretised(&mesh, degree, components, true));
        check(cell, &coarse, &fine, &place(Execution::Automatic, Precision::F64), 1);
    }
}

#[test]
fn transfers_on_devices_are_those_of_the_processor() {
    for device in devices::devices() {
        let meshes = [
            ("quadrilaterals", boxed("quad", 2.0, 7.0, 0.1), 1),
            ("hexahedra", boxed("hex", 3.0, 3.0, 0.1), 3),
            ("hanging hexahedra", adapted(boxed("hex", 3.0, 2.0, 0.0)), 1),
            ("triangles", boxed("tri", 2.0, 4.0, 0.1), 2),
        ];
        for (number, (name, mesh, components)) in meshes.into_iter().enumerate() {
            let mesh = Arc::new(mesh);
            let (low, high) = if number % 2 == 0 { (2, 4) } else { (1, 2) };
            let [coarse, fine] =
                [low, high].map(|degree| discretised(&mesh, degree, components, number == 1));
            let own = place(Execution::Automatic, Precision::F64);
            let platform = Platform::new(own.platform.target, Some(Arc::clone(&device)));
            let place = TransferEnvironment { platform, ..own };
            check(&format!("{name} on {}", device.name()), &coarse, &fine, &place, 1);
        }
    }
}

fn problem(text: &str) -> (Problem, Mesh) {
    let (program, found) = compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = load(&source, Path::new("")).expect("a mesh");
    let problem = program.problem("p", mesh.dim(), &Overrides::default());
    (problem.unwrap_or_else(|found| panic!("{found:?}\n{text}")), mesh)
}

fn solved(text: &str, device: Option<&Arc<dyn Device>>) -> Solution {
    let (problem, mesh) = problem(text);
    let platform = Platform::new(Target::native(), device.cloned());
    let solution = run(&problem, mesh, &platform, &mut |_| Continue::Yes);
    solution.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const POISSON: &str = "form f { field u: scalar; f0[u] = -1; f1[u] = (1 + x[0]^2) * grad(u); }";
const ELASTIC: &str =
    "form f { field u: vector; f0[u] = -x; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; }";
const PLAPLACE: &str =
    "form f { field u: scalar; f0[u] = -1; f1[u] = (0.01 + dot(grad(u), grad(u))) * grad(u); }";

fn text(form: &str, mesh: &str, degree: usize, solver: &str) -> String {
    let zero = if form.contains("vector") { "[0, 0]" } else { "0" };
    format!(
        "{form} problem p solves f {{ mesh = {mesh}; degree = {degree}; dirichlet u = {zero} on all; solver = {solver}; }}"
    )
}

/// The iterations to a tolerance of 1e-8 with multigrid and with Jacobi, compared with a table.
#[test]
fn iterations_are_those_of_a_table() {
    let table = [
        (POISSON, "box(dim: 2, cells: 16)", 2, 6),
        (POISSON, "box(dim: 2, cells: 16)", 4, 6),
        (POISSON, "box(dim: 2, cells: 24)", 4, 6),
        (POISSON, "box(dim: 2, cell: tri, cells: 8)", 4, 8),
        (POISSON, "box(dim: 3, cells: 6, deform: 0.05)", 4, 7),
        (POISSON, "box(dim: 2, cells: 96)", 1, 7),
        (POISSON, "ball(dim: 2, refine: 5)", 2, 8),
        (POISSON, "box(dim: 2, cells: 16); periodic \"y0\" = \"y1\"", 4, 7),
        (ELASTIC, "box(dim: 2, cells: 8)", 4, 9),
    ];
    for (form, mesh, degree, most) in table {
        let target = Target { execution: Execution::Interpreted, ..Target::native() };
        let by = |what| {
            let solver = format!("cg(preconditioner: {what}, rtol: 1e-8)");
            let (problem, mesh) = problem(&text(form, mesh, degree, &solver));
            let found = run(&problem, mesh, &target.into(), &mut |_| Continue::Yes);
            found.unwrap_or_else(|error| panic!("{error}"))
        };
        let (levels, jacobi) = (by("multigrid"), by("jacobi"));
        let found = levels.report.iterations;
        assert!(found <= most, "{mesh}, degree {degree}: {found} iterations, not {most}");
        assert!(3 * found <= jacobi.report.iterations, "{found} of {}", jacobi.report.iterations);
        assert_near(&levels, &jacobi);
    }
}

/// Meshes with N cells per direction, or N refinements, for three values of N.
const FAMILIES: [(&str, &str, [usize; 3]); 7] = [
    (POISSON, "box(dim: 2, cells: N)", [8, 16, 32]),
    (POISSON, "box(dim: 2, cell: tri, cells: N)", [4, 8, 16]),
    (POISSON, "ball(dim: 2, refine: N)", [2, 3, 4]),
    (ELASTIC, "box(dim: 2, cells: N)", [4, 8, 16]),
    (POISSON, "box(dim: 3, cells: N, deform: 0.05)", [2, 4, 8]),
    (POISSON, "box(dim: 3, cell: tet, cells: N)", [2, 4, 8]),
    (POISSON, "ball(dim: 3, refine: N)", [1, 2, 3]),
];

/// For any of these meshes and any degree up to eight: the largest number of iterations to 1e-8, a small number, and
/// the allowed increase for doubled cells per direction.
const BOUNDS: [usize; 3] = [14, 6, 2];

/// The same for tetrahedra; at degree 3 the counts grow from the smallest meshes on (7, 11, 12, and 17 at seven million
/// degrees of freedom).
const OF_TETRAHEDRA: [usize; 3] = [14, 7, 4];

/// Doubling the cells per direction hardly changes the iterations, and the solution agrees with that of other solvers.
/// A selection of meshes and degrees; all with `WF_FULL=1`.
#[test]
fn iterations_do_not_grow_with_the_mesh() {
    let full = std::env::var_os("WF_FULL").is_some();
    let chosen = |family: usize, degree: usize| full || degree == 4 && family < 2;
    for (family, (form, mesh, sizes)) in FAMILIES.into_iter().enumerate() {
        // Triangles and tetrahedra have degrees up to 4.
        let highest = if mesh.contains("cell: t") { 4 } else { 8 };
        let [most, few, more] = if mesh.contains("tet") { OF_TETRAHEDRA } else { BOUNDS };
        for degree in (1..=highest).filter(|&degree| chosen(family, degree)) {
            let mut before = None;
            for size in sizes.into_iter().take(if full { 3 } else { 2 }) {
                let mesh = mesh.replace('N', &size.to_string());
                let by = |solver: &str| solved(&text(form, &mesh, degree, solver), None);
                let levels = by("cg(preconditioner: multigrid, rtol: 1e-8)");
                let found = levels.report.iterations;
                assert!(found <= most, "{mesh}, degree {degree}: {found} iterations");
                // The smallest problems are solved by the coarse-grid solver.
                let enough = |before: usize| before.max(few) + more;
                let grown = before.replace(found).is_some_and(|before| found > enough(before));
                assert!(!grown, "{mesh}, degree {degree}: {found} iterations");
                assert_near(&levels, &by("cg(preconditioner: jacobi, rtol: 1e-10)"));
                if full {
                    eprintln!("{mesh}, degree {degree}: {found} iterations");
                }
            }
        }
    }
}

#[test]
fn a_nonlinear_form_has_levels_at_its_state() {
    let by = |what| {
        let solver = format!("newton(linear: cg, preconditioner: {what}, rtol: 1e-8)");
        solved(&text(PLAPLACE, "box(dim: 2, cells: 12)", 4, &solver), None)
    };
    let (levels, jacobi) = (by("multigrid"), by("jacobi"));
    let (few, many) = (levels.linear_iterations, jacobi.linear_iterations);
    assert!(3 * few <= many, "{few} of {many}");
    let apart = levels.u.iter().zip(&jacobi.u).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-6, "{apart}");
}

#[test]
fn a_solve_is_the_same_on_devices_and_twice() {
    let text =
        text(POISSON, "box(dim: 2, cells: 12)", 4, "cg(preconditioner: multigrid, rtol: 1e-8)");
    let [own, again] = [(); 2].map(|()| solved(&text, None));
    assert_eq!(own.u, again.u);
    for device in devices::devices() {
        let there = solved(&text, Some(&device));
        assert_eq!(there.report.iterations, own.report.iterations, "{}", device.name());
        let apart = there.u.iter().zip(&own.u).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-8, "{apart} on {}", device.name());
    }
}

/// A mesh without coarser meshes, with a coarse problem large enough for algebraic levels.
#[test]
fn meshes_that_have_no_coarser_ones_end_in_levels_of_matrices() {
    let zero = [("scalar", "0"), ("vector", "[0, 0]")];
    let forms = [POISSON, ELASTIC];
    for ((form, (_, zero)), (cells, most)) in
        forms.into_iter().zip(zero).zip([(151, 12), (107, 22)])
    {
        // Odd numbers of cells: no coarser mesh exists.
        let by = |what: &str| {
            let solver = format!("cg(preconditioner: {what}, rtol: 1e-8)");
            let text = format!(
                "{form} problem p solves f {{ mesh = box(dim: 2, cell: tri, cells: {cells}); degree = 2;
                 dirichlet u = {zero} on \"x0\"; solver = {solver}; }}"
            );
            solved(&text, None)
        };
        let levels = by("multigrid");
        let figures = levels.multigrid.first().expect("levels");
        assert_eq!(figures.levels.len(), 2);
        assert!(figures.coarsest.starts_with("smoothed aggregation"), "{}", figures.coarsest);
        let found = levels.report.iterations;
        assert!(found <= most, "{found} iterations, not {most}");
        if form == POISSON {
            let jacobi = by("jacobi");
            let many = jacobi.report.iterations;
            assert!(3 * found <= many, "{found} of {many}");
            assert_near(&levels, &jacobi);
        }
    }
}

fn assert_near(one: &Solution, other: &Solution) {
    let largest = other.u.iter().fold(0.0, |most: f64, u| most.max(u.abs()));
    let apart = one.u.iter().zip(&other.u).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1e-6 * largest, "{apart} of {largest}");
}

/// The cycle is effective if cells resolve the convection.
#[test]
fn forms_that_are_not_symmetric_have_levels_where_these_help() {
    let text = |solver: &str| {
        format!(
            "form f {{ field u: scalar; f0[u] = 10 * (grad(u)[0] + 0.5 * grad(u)[1]) - 1; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 16); degree = 4; dirichlet u = 0 on all; solver = {solver}; }}"
        )
    };
    for method in ["fgmres", "gmres", "bicgstab"] {
        let by =
            |what| solved(&text(&format!("{method}(preconditioner: {what}, rtol: 1e-8)")), None);
        let (levels, jacobi) = (by("multigrid"), by("jacobi"));
        assert_eq!(levels.report.solver, method);
        let (few, many) = (levels.report.iterations, jacobi.report.iterations);
        assert!(3 * few <= many && few <= 12, "{method}: {few} of {many}");
        assert_near(&levels, &jacobi);
    }
}

/// Tiny and huge units: residuals outside the range of single precision.
#[test]
fn units_do_not_matter() {
    for unit in [1e-30, 1e30] {
        let text = format!(
            "form f {{ field u: scalar; param unit = 1; f0[u] = -unit; f1[u] = (1 + x[0]^2) * grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 12); degree = 4; param unit = {unit:e}; dirichlet u = 0 on all;
             solver = cg(preconditioner: multigrid, rtol: 1e-10); }}"
        );
        let found = solved(&text, None);
        assert!(found.report.iterations <= 9, "{}: {} iterations", unit, found.report.iterations);
        assert!(found.report.notes.is_empty(), "{:?}", found.report.notes);
    }
}

/// Without benefit from multigrid, the solve continues without it and reports this.
#[test]
fn an_indefinite_form_goes_on_without_levels() {
    let text = |solver: &str| {
        format!(
            "form f {{ field u: scalar; f0[u] = -400 * u - 1; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 12); degree = 2; dirichlet u = 0 on all; solver = {solver}; }}"
        )
    };
    let found = solved(&text("minres(preconditioner: multigrid, rtol: 1e-8)"), None);
    let said = found.report.notes.join("; ");
    assert!(said.contains("multigrid") && found.multigrid.is_empty(), "{said}");
    let exact = solved(&text("direct"), None);
    assert_near(&found, &exact);
}

/// The Stokes equations: multigrid for the velocity, a mass matrix for the pressure, and mesh-independent iterations.
#[test]
fn saddle_points_have_levels_and_a_mass() {
    let text = |cells: usize, solver: &str| {
        format!(
            "form f {{ field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = 1;
             f0[u] = -[sin(7 * x[1]), cos(5 * x[0])]; f1[u] = nu * grad(u) - p * I; f0[p] = -div(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: {cells}); degree = 2; param nu = 0.01;
             dirichlet u = [x[1] * (1 - x[1]), 0] on \"x0\", \"y0\", \"y1\"; solver = {solver}; }}"
        )
    };
    let exact = solved(&text(24, "direct"), None);
    for (method, most) in [("minres", 60), ("fgmres", 30)] {
        let own = format!("{method}(preconditioner: multigrid, rtol: 1e-8)");
        let (small, found) = (solved(&text(12, &own), None), solved(&text(24, &own), None));
        let [few, many] = [&small, &found].map(|of| of.report.iterations);
        assert!(few.max(many) <= most, "{method}: {few} and {many} iterations, not {most}");
        assert_eq!(found.multigrid[0].field.as_deref(), Some("u"));
        assert_near(&found, &exact);
        assert!(found.report.notes.is_empty(), "{:?}", found.report.notes);
        if method == "fgmres" {
            for device in devices::devices() {
                let there = solved(&text(12, &own), Some(&device));
                assert!(there.report.iterations.abs_diff(few) <= 1, "{}", device.name());
                assert_near(&there, &small);
            }
        }
    }
}
