//! Mesh parts on several processes (as threads): operators, conditions and counts agree with the whole mesh up to
//! rounding, with equal bits at shared degrees of freedom.

mod adapted;
mod estimates;
mod lines;
mod pairs;
mod transfers;

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Problem;
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::kernels::compile::{Execution, Target};
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::initial::begin;
use runtime::mesh::refine::forest::{Forest, refined};
use runtime::mesh::{CellOrdering, Mesh, MeshData};
use runtime::operator::Operator;
use runtime::problem::scaling::ProcessShare;
use runtime::problem::{Context, Platform, with_periodic_sides};
use runtime::processes::ProcessGroup;
use runtime::processes::threads::each;
use runtime::solve::NonlinearSystem as _;
use runtime::space::discretisation::Discretisation;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// A form with two fields, data, a term on a part of the boundary and conditions on another.
const FORM: &str = "form flow {
        field u: vector;
        field p: scalar in H1(k - 1);
        aux a: scalar;
        f0[u] = a * grad(u) * u + (if x[0] < 0.5 { h } else { 1 }) * u;
        f1[u] = (1 + dot(u, u)) * grad(u) - p * I;
        f0[p] = -div(u) + p^2;
        on boundary \"TAG\" { f0[u] = u + n; }
    }
    problem p solves flow {
        mesh = MESH;
        degree = DEGREE;
        aux a = 1 + x[0] * x[1];
        dirichlet u = [x[1], VALUE] on \"HELD\";
        MORE
    }";

/// Fields of vector-valued functions, with a nonlinear term and integrals over the boundary.
const VECTORS: &str = "form flow {
        field E: vector in Hcurl(k);
        field u: vector in Hdiv(k);
        f0[E] = (if x[0] < 0.5 { h } else { 1 }) * E + u;
        f1[E] = (1 + dot(E, E)) * curl(E);
        f0[u] = 2 * u + x[1] * E;
        f1[u] = (1 + x[0]) * div(u);
        on boundary \"TAG\" { f0[E] = x[1] * tangential(E); f0[u] = x[0] * n; }
    }
    problem p solves flow {
        mesh = MESH;
        degree = DEGREE;
        dirichlet E = [x[1], VALUE] on \"HELD\";
        dirichlet dot(u, n) = x[0] on \"HELD\";
        MORE
    }";

fn problem(text: &str) -> (Problem, Mesh) {
    let (program, found) = fem_dsl::program::compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = runtime::mesh::load(&source, Path::new("..")).expect("a mesh");
    let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("a problem");
    let mesh = refined(mesh, problem.refine).expect("a finer mesh");
    (problem, mesh)
}

/// Returns a target without compiler.
fn target() -> Target {
    Target { execution: Execution::Interpreted, ..Target::native() }
}

/// Sets up a problem on a mesh.
fn context(problem: &Problem, mesh: impl Into<Arc<Mesh>>) -> Context {
    Context::new(problem.clone(), mesh, Platform::from(target())).expect("a problem")
}

/// Returns the operator of a problem on a mesh, on the CPU or on a device.
fn operator(
    problem: &Problem,
    mesh: Arc<Mesh>,
    device: Option<Arc<dyn Device>>,
) -> (Operator, Arc<Discretisation>) {
    represented(problem, mesh, device, Representation::MatrixFree)
}

/// Returns the same with a given representation of the Jacobian.
fn represented(
    problem: &Problem,
    mesh: Arc<Mesh>,
    device: Option<Arc<dyn Device>>,
    how: Representation,
) -> (Operator, Arc<Discretisation>) {
    let target = target().representing(how);
    let context = Context { platform: Platform::new(target, device), ..context(problem, mesh) };
    let (operator, _) = context.operator().expect("an operator");
    (operator, context.on)
}

/// Returns a residual, a product and a diagonal at some state and direction, and the constrained zero vector.
fn found(operator: &mut Operator, u: &[f64], x: &[f64]) -> [Vec<f64>; 4] {
    let (mut state, mut direction) = (operator.vector(), operator.vector());
    state.set(u);
    direction.set(x);
    let (mut r, mut y, mut d) = (state.like(), state.like(), state.like());
    operator.residual(&state, &mut r).expect("a residual");
    operator.linearise(&state).expect("a state");
    operator.jacobian().apply(&direction, &mut y).expect("a product");
    operator.diagonal(&mut d).expect("a diagonal");
    let initial = operator.initial().expect("conditions");
    [r, y, d, initial].map(|vector| vector.to_vec())
}

fn numbers(n: usize, seed: f64) -> Vec<f64> {
    (0..n).map(|i| (i as f64 * 0.7 + seed).sin()).collect()
}

/// Returns the index of each degree of freedom of a part on the whole mesh.
fn places(part: &Discretisation, whole: &Discretisation) -> Vec<usize> {
    let mut places = vec![usize::MAX; part.n_dofs()];
    let cells = part.mesh.cut().expect("a part").cells().expect("room");
    for (number, (own, all)) in part.fields.iter().zip(&whole.fields).enumerate() {
        let (from, to, count) =
            (part.dofs_of(number).start, whole.dofs_of(number).start, own.space.components());
        for (here, &there) in cells.iter().enumerate() {
            let nodes = own.space.cell_nodes(here).iter();
            for (&here, &there) in nodes.zip(all.space.cell_nodes(there as usize)) {
                for c in 0..count {
                    places[from + here as usize * count + c] = to + there as usize * count + c;
                }
            }
        }
    }
    if part.fields.iter().any(|field| field.space.reaches_beyond()) {
        // The places of unknowns beyond the part are those of the process of their cell.
        let mut numbers: Vec<f64> = places.iter().map(|&at| at as f64).collect();
        part.sharing().expect("a part").synchronise(&mut numbers);
        places = numbers.into_iter().map(|at| at as usize).collect();
    }
    places
}

/// Asserts that the cells of a part coincide with those of the whole mesh.
#[track_caller]
fn expect_places(part: &Mesh, whole: &Mesh) {
    let Some(cut) = part.cut() else { return };
    for (here, &there) in cut.cells().expect("room").iter().enumerate() {
        let nodes = part.cell_nodes(here).iter().zip(whole.cell_nodes(there as usize));
        for (&here, &there) in nodes {
            let (at, expected) = (part.points()[here as usize], whole.points()[there as usize]);
            let off = (0..3).map(|c| (at[c] - expected[c]).abs()).fold(0.0, f64::max);
            assert!(off < 1e-12, "{at:?}, not {expected:?}");
        }
    }
}

/// Returns the statistics of a part and its interface.
fn share(part: &Discretisation, rank: u32) -> ProcessShare {
    let (mut share, mut outer) = (ProcessShare::default(), vec![false; part.mesh.n_cells()]);
    (share.cells, share.unknowns) = (part.mesh.n_cells(), part.n_dofs());
    let mut neighbours: BTreeSet<u32> = BTreeSet::new();
    for field in &part.fields {
        let mut is_shared = vec![false; field.space.n_nodes()];
        for shared in field.space.shared_nodes() {
            let numbers = shared.nodes.len() * field.space.components();
            share.shared += numbers;
            share.sent += numbers * (shared.ranks.len() - 1);
            shared.nodes.clone().for_each(|node| is_shared[node as usize] = true);
            neighbours.extend(shared.ranks.iter().copied().filter(|other| *other != rank));
        }
        for (cell, outer) in outer.iter_mut().enumerate() {
            let mut nodes = field.space.cell_nodes(cell).iter();
            *outer |= nodes.any(|&node| is_shared[node as usize]);
        }
    }
    share.outer = outer.into_iter().filter(|outer| *outer).count();
    share.neighbours = neighbours.len();
    share
}

#[track_caller]
fn compare(problem: &Problem, mesh: Mesh, sizes: &[usize]) {
    compare_on(None, problem, mesh, sizes);
}

/// Compares parts on the CPU, or on one device each, with the whole mesh on the CPU.
#[track_caller]
fn compare_on(device: Option<&Arc<dyn Device>>, problem: &Problem, mesh: Mesh, sizes: &[usize]) {
    let even = |whole: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| Arc::clone(whole).part(group);
    compare_parts(device, problem, mesh, sizes, &even, Some(&evenly));
}

/// Creates the part of a process.
type Cutting<'a> = &'a (dyn Fn(&Arc<Mesh>, &Arc<dyn ProcessGroup>) -> Arc<Mesh> + Sync);

/// Predicts the rank of each cell.
type Foretold<'a> = &'a dyn Fn(&Arc<Mesh>, usize) -> Option<Vec<u32>>;

/// Returns the ranks of an even distribution; `None` with too few cells.
fn evenly(whole: &Arc<Mesh>, processes: usize) -> Option<Vec<u32>> {
    whole.ranks(processes).ok().map(|ranks| ranks.to_vec())
}

/// Does the same for parts created in some way, with predicted counts if given.
#[track_caller]
fn compare_parts(
    device: Option<&Arc<dyn Device>>,
    problem: &Problem,
    mesh: Mesh,
    sizes: &[usize],
    cutting: Cutting<'_>,
    foretold: Option<Foretold<'_>>,
) {
    let whole = with_periodic_sides(problem, Arc::new(mesh)).expect("a mesh");
    let (mut all, on) = operator(problem, Arc::clone(&whole), None);
    let (u, x) = (numbers(on.n_dofs(), 0.1), numbers(on.n_dofs(), 0.4));
    let known = found(&mut all, &u, &x);
    let scales = known.each_ref().map(|all| all.iter().fold(1.0, |most: f64, a| most.max(a.abs())));
    for &size in sizes {
        let parts = each(size, |group| {
            let part = cutting(&whole, &group);
            expect_places(&part, &whole);
            let (mut own, part) = operator(problem, part, device.cloned());
            let places = places(&part, &on);
            let of = |all: &[f64]| -> Vec<f64> { places.iter().map(|&at| all[at]).collect() };
            let here = found(&mut own, &of(&u), &of(&x));
            let boundary = part.mesh.in_all(part.mesh.boundary().len());
            let mut product = own.vector();
            product.set(&of(&x));
            let square = product.dot(&product);
            let counts = [part.mesh.cells_in_all(), part.dofs_in_all(), boundary];
            (places, here, counts, square, share(&part, group.rank() as u32))
        });
        let shares: Vec<ProcessShare> = parts.iter().map(|part| part.4).collect();
        match foretold.map(|foretold| foretold(&whole, size)) {
            None => {}
            Some(None) => assert!(whole.n_cells() < size, "{size} parts"),
            Some(Some(ranks)) => {
                let foretold = runtime::problem::scaling::shares(&on, &ranks, size);
                assert_eq!(foretold, shares, "{size} parts");
            }
        }
        let mut seen: Vec<[Option<u64>; 4]> = vec![[None; 4]; on.n_dofs()];
        for (places, here, counts, square, _) in &parts {
            let boundary = whole.boundary().len();
            assert_eq!(*counts, [whole.n_cells(), on.n_dofs(), boundary], "{size} parts");
            let expected: f64 = x.iter().map(|x| x * x).sum();
            assert!((square - expected).abs() < 1e-12 * expected, "{square}, not {expected}");
            for (which, (here, known)) in here.iter().zip(&known).enumerate() {
                for (&value, &at) in here.iter().zip(places) {
                    let off = (value - known[at]).abs();
                    assert!(
                        off < 1e-12 * scales[which],
                        "{size} parts, {which}, unknown {at}: {off}"
                    );
                    let bits = *seen[at][which].get_or_insert(value.to_bits());
                    assert_eq!(bits, value.to_bits(), "{size} parts, {which}, unknown {at}");
                }
            }
        }
        assert!(seen.iter().all(|all| all.iter().all(Option::is_some)), "an unknown is nowhere");
    }
}

/// Returns the text of a problem.
fn text(mesh: &str, degree: usize, tags: [&str; 2], more: &str) -> String {
    text_of(FORM, mesh, degree, tags, more)
}

fn text_of(form: &str, mesh: &str, degree: usize, [tag, held]: [&str; 2], more: &str) -> String {
    let flat = mesh.contains("dim: 2") || mesh.contains("_quad");
    let text = form.replace("MESH", mesh).replace("DEGREE", &degree.to_string());
    let text = text.replace("TAG", tag).replace("HELD", held).replace("MORE", more);
    text.replace("VALUE", if flat { "1" } else { "1, x[0]" })
}

#[test]
fn parts_of_boxes_add_up_to_the_whole() {
    for (cell, dim, degree) in [("quad", 2, 3), ("tri", 2, 4), ("hex", 3, 2), ("tet", 3, 3)] {
        let mesh = format!("box(dim: {dim}, cells: 3, cell: {cell}, deform: 0.1)");
        let (problem, mesh) = problem(&text(&mesh, degree, ["x1", "y0"], ""));
        compare(&problem, mesh, &[2, 3, 5]);
    }
}

/// With more processes than cells, the last ones have none and take part in all sums.
#[test]
fn a_part_may_have_one_cell_or_none() {
    for (mesh, more) in [
        ("box(dim: 2, cells: 1)", ""),
        ("box(dim: 2, cells: 1, cell: tri)", ""),
        ("box(dim: 3, cells: [1, 1, 3])", "periodic \"z0\" = \"z1\";"),
    ] {
        let (problem, mesh) = problem(&text(mesh, 2, ["x1", "y0"], more));
        compare(&problem, mesh, &[2, 3, 5]);
    }
}

#[test]
fn periodic_sides_are_joined_over_the_cut() {
    for (mesh, more) in [
        ("box(dim: 2, cells: [4, 3], cell: tri)", "periodic \"x0\" = \"x1\";"),
        // One cell between both sides, and corners of two pairs.
        ("box(dim: 3, cells: [1, 3, 4])", "periodic \"x0\" = \"x1\"; periodic \"z0\" = \"z1\";"),
    ] {
        let (problem, mesh) = problem(&text(mesh, 3, ["y1", "y0"], more));
        compare(&problem, mesh, &[2, 3, 5]);
    }
}

#[test]
fn curved_surfaces_are_cut() {
    let (problem, mesh) = problem(&text("ball(dim: 3, refine: 1)", 3, ["surface", "surface"], ""));
    compare(&problem, mesh, &[2, 3, 5]);
}

#[test]
fn parts_of_files_add_up_to_the_whole() {
    let file = |name: &str| format!("\"meshes/{name}.msh\"");
    for (name, degree, tags, more) in [
        ("plate_hole_quad9", 3, ["right", "left"], ""),
        // Distributed by coarser cells.
        ("plate_hole_quad", 2, ["right", "left"], "refine = 1;"),
        ("elbow_hex27", 2, ["outlet", "inlet"], ""),
        ("bracket_tet10", 3, ["load", "fixed"], ""),
    ] {
        let (problem, mesh) = problem(&text(&file(name), degree, tags, more));
        compare(&problem, mesh, &[4]);
    }
}

/// Returns the same cubes, each in another rotation.
fn turned(mesh: &Mesh) -> Mesh {
    let mut parts = MeshData { points: mesh.points().to_vec(), ..MeshData::default() };
    for cell in 0..mesh.n_cells() {
        let own = mesh.cell_nodes(cell);
        let node = |local: usize| {
            let (mut x, mut y, mut z) = (local & 1, local >> 1 & 1, local >> 2);
            (0..cell % 4).for_each(|_| (x, y) = (y, 1 - x));
            (0..cell / 4 % 3).for_each(|_| (x, y, z) = (y, z, x));
            own[x + 2 * y + 4 * z]
        };
        parts.nodes.extend((0..8).map(node));
    }
    let mut turned =
        Mesh::new(mesh.cell(), 1, parts, CellOrdering::Original).expect("the same mesh");
    turned.tag_boundary("x1", |vertices| vertices.iter().all(|x| x[0] > 0.999));
    turned.tag_boundary("y0", |vertices| vertices.iter().all(|x| x[1] < 0.001));
    turned
}

#[test]
fn cells_that_do_not_agree_on_orientations_do_so_over_the_cut() {
    let (problem, mesh) = problem(&text("box(dim: 3, cells: 3)", 4, ["x1", "y0"], ""));
    let mesh = turned(&mesh);
    assert!(!mesh.topology().is_oriented());
    compare(&problem, mesh, &[2, 3, 5]);
}

#[test]
fn hanging_nodes_may_lie_on_the_cut() {
    for (mesh, degree) in [("box(dim: 2, cells: 3)", 3), ("box(dim: 3, cells: 2)", 2)] {
        let (problem, coarse) = problem(&text(mesh, degree, ["x1", "y0"], ""));
        compare(&problem, with_hanging_nodes(coarse), &[2, 3, 5]);
    }
}

/// Each process refines its own cells; the result equals its part of the whole refined mesh.
#[test]
fn parts_that_are_refined_add_up_to_the_whole() {
    let file = |name: &str| format!("\"meshes/{name}.msh\"");
    let (plain, sides) = ("", "periodic \"x0\" = \"x1\"; periodic \"z0\" = \"z1\";");
    for (mesh, times, degree, tags, more) in [
        ("box(dim: 2, cells: 3, deform: 0.1)".to_owned(), 2, 4, ["x1", "y0"], plain),
        ("box(dim: 2, cells: 3, cell: tri)".to_owned(), 2, 4, ["x1", "y0"], plain),
        ("box(dim: 3, cells: [1, 3, 2])".to_owned(), 1, 3, ["y1", "y0"], sides),
        ("box(dim: 3, cells: 2, cell: tet)".to_owned(), 1, 4, ["x1", "y0"], plain),
        ("ball(dim: 3, refine: 0, order: 2)".to_owned(), 1, 3, ["surface", "surface"], plain),
        (file("plate_hole_quad9"), 1, 3, ["right", "left"], plain),
    ] {
        let (problem, base) = problem(&text(&mesh, degree, tags, more));
        compare_refined(&problem, base, &[times]);
    }
}

/// The same for individually rotated cubes.
#[test]
fn turned_cells_are_refined_in_parts() {
    let (problem, base) = problem(&text("box(dim: 3, cells: 2)", 4, ["x1", "y0"], ""));
    let base = turned(&base);
    assert!(!base.topology().is_oriented());
    compare_refined(&problem, base, &[1]);
    // Cells of a small part may agree by chance.
    let (problem, base) =
        self::problem(&text("box(dim: 3, cells: [1, 1, 3])", 3, ["x1", "y0"], ""));
    compare_refined(&problem, turned(&base), &[1, 1]);
}

/// Compares parts refined in several steps.
#[track_caller]
fn compare_refined(problem: &Problem, base: Mesh, steps: &[usize]) {
    let base = with_periodic_sides(problem, Arc::new(base)).expect("a mesh");
    let whole = Mesh::clone(&base).refined(steps.iter().sum()).expect("a finer mesh");
    let finer = |_: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| {
        let part = Arc::unwrap_or_clone(Arc::clone(&base).part(group));
        let finer = |part: Mesh, &times: &usize| part.refined(times).expect("a finer part");
        Arc::new(steps.iter().fold(part, finer))
    };
    compare_parts(None, problem, whole.clone(), &[2, 3], &finer, None);
    for part in each(2, |group| finer(&base, &group)) {
        // The whole mesh, built on demand, equals that of one process.
        let cut = part.cut().expect("a part");
        assert_eq!(**cut.whole().expect("room"), whole);
    }
}

/// Generated meshes, in parts that processes start with and refine.
#[test]
fn parts_that_are_generated_add_up_to_the_whole() {
    // The condition does not depend on z.
    let sides = "refine = 1; periodic \"z0\" = \"z1\";";
    for (mesh, degree, tags, more) in [
        (
            "box(dim: 2, cells: [12, 20], deform: 0.1, from: [-1, 2], to: [3, 4])",
            2,
            ["x1", "y0"],
            "",
        ),
        ("box(dim: 3, cells: [6, 4, 2])", 2, ["y1", "y0"], sides),
        ("ball(dim: 3, refine: 1, order: 2)", 2, ["surface", "surface"], ""),
        ("shell(dim: 2, refine: 2, order: 3)", 3, ["outer", "inner"], "refine = 1;"),
        ("lshape(dim: 2, refine: 3)", 2, ["boundary", "boundary"], ""),
        ("ball(dim: 3, refine: 0, cell: tet)", 2, ["surface", "surface"], "refine = 1;"),
        ("\"meshes/plate_hole_quad.msh\"", 2, ["right", "left"], "refine = 1;"),
    ] {
        eprintln!("{mesh} {more}");
        let text = text(mesh, degree, tags, more);
        let (problem, whole) = problem(&text);
        let (program, _) = fem_dsl::program::compile(&Source::new("test", &text));
        let source = program.expect("a text").mesh("p", &Overrides::default()).expect("a mesh").0;
        let (times, periodic) = (problem.refine, &problem.periodic);
        let begun = |size| begin(&source, Path::new(".."), size).expect("a mesh");
        let part = |_: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| {
            begun(group.size()).part(times, periodic, group).expect("a part")
        };
        let ranks = |_: &Arc<Mesh>, size: usize| {
            Some(begun(size).ranks(times, periodic, size).expect("cells"))
        };
        compare_parts(None, &problem, whole, &[2, 3], &part, Some(&ranks));
    }
}

/// Refines some cells, and some of their children.
fn with_hanging_nodes(coarse: Mesh) -> Mesh {
    let mut forest = Forest::new(&coarse).expect("a forest");
    for times in 0..2 {
        forest.refine(|leaf| (leaf * 7 + times) % 5 == 0).expect("few leaves");
        forest.balance().expect("few leaves");
    }
    let mesh = forest.mesh(&Arc::new(coarse)).expect("a mesh of leaves");
    assert!(mesh.hanging().is_some());
    mesh
}

/// Returns pseudo-random numbers from a seed.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    }
}

/// Returns a forest with randomly refined cells, some several times.
fn random_forest(coarse: Mesh, seed: u64) -> Mesh {
    let mut forest = Forest::new(&coarse).expect("a forest");
    let mut draw = random(seed);
    for _ in 0..2 {
        let marked: Vec<bool> = (0..forest.n_leaves()).map(|_| draw(4) == 0).collect();
        forest.refine(|leaf| marked[leaf]).expect("few leaves");
        forest.balance().expect("few leaves");
    }
    forest.mesh(&Arc::new(coarse)).expect("a mesh of leaves")
}

/// Returns random ranks of cells, one by one or in segments; each process has a cell.
fn scattered(cells: usize, processes: usize, seed: u64) -> Vec<u32> {
    let mut draw = random(seed);
    let piece = 1 + seed as usize % 3 * 4;
    let mut ranks = Vec::with_capacity(cells);
    while ranks.len() < cells {
        let (rank, count) = (draw(processes) as u32, 1 + draw(piece));
        ranks.extend(std::iter::repeat_n(rank, count.min(cells - ranks.len())));
    }
    (0..processes as u32).for_each(|rank| ranks[rank as usize * (cells / processes)] = rank);
    ranks
}

#[test]
fn parts_of_any_cells_add_up_to_the_whole() {
    for seed in 0..6 {
        let by_chance = |whole: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| {
            whole.part_by(scattered(whole.n_cells(), group.size(), seed), group)
        };
        let (mesh, degree, tags) = match seed {
            0 | 1 => ("box(dim: 2, cells: 3)", 3, ["x1", "y0"]),
            2 | 3 => ("box(dim: 3, cells: 2)", 2, ["x1", "y0"]),
            4 => ("\"meshes/plate_hole_quad9.msh\"", 3, ["right", "left"]),
            _ => ("\"meshes/bracket_tet10.msh\"", 2, ["load", "fixed"]),
        };
        let (problem, mut mesh) = problem(&text(mesh, degree, tags, ""));
        if seed < 4 {
            mesh = random_forest(mesh, seed);
        }
        compare_parts(None, &problem, mesh, &[2 + seed as usize % 3], &by_chance, None);
    }
}

/// Each process has a matrix of its own cells; their products add up to that of the whole matrix.
#[test]
fn matrices_of_parts_add_up_to_the_whole() {
    let assembled = Assembly::ALL.map(Representation::Assembled);
    let by_elements = [Representation::Stored, Representation::Recomputed];
    let all = [&assembled[..], &by_elements].concat();
    for (mesh, degree) in
        [("box(dim: 2, cells: 4, deform: 0.1)", 3), ("box(dim: 3, cells: 2, cell: tet)", 2)]
    {
        expect_products(None, &text(mesh, degree, ["x1", "y0"], ""), &all);
    }
}

/// Rows and columns of cells over the cut are those of their degrees of freedom here.
#[test]
fn matrices_of_parts_have_the_terms_between_cells() {
    let all = Assembly::ALL.map(Representation::Assembled);
    let mesh = "box(dim: 2, cells: 4, deform: 0.1)";
    for text in [pairs::text(mesh, 2, ""), pairs::continuous(mesh, 2, "")] {
        expect_products(None, &text, &all);
    }
}

#[test]
fn matrices_of_parts_on_devices_add_up_to_the_whole() {
    for device in super::devices::devices() {
        let all = [Assembly::Pattern, Assembly::Acoo].map(Representation::Assembled);
        let mesh = "box(dim: 2, cells: 4)";
        expect_products(Some(&device), &text(mesh, 2, ["x1", "y0"], ""), &all);
        expect_products(Some(&device), &pairs::continuous(mesh, 1, ""), &all);
    }
}

#[track_caller]
fn expect_products(device: Option<&Arc<dyn Device>>, text: &str, all_ways: &[Representation]) {
    let (problem, mesh) = problem(text);
    let whole = Arc::new(mesh);
    let product = |operator: &mut Operator, u: &[f64], x: &[f64]| {
        let (mut state, mut direction) = (operator.vector(), operator.vector());
        state.set(u);
        direction.set(x);
        let mut y = state.like();
        operator.linearise(&state).expect("a state");
        operator.jacobian().apply(&direction, &mut y).expect("a product");
        y.to_vec()
    };
    let (mut all, on) = operator(&problem, Arc::clone(&whole), None);
    let (u, x) = (numbers(on.n_dofs(), 0.1), numbers(on.n_dofs(), 0.4));
    let known = product(&mut all, &u, &x);
    let scale = known.iter().fold(1.0, |most: f64, y| most.max(y.abs()));
    for &how in all_ways {
        let parts = each(3, |group| {
            let part = Arc::clone(&whole).part(&group);
            let (mut own, part) = represented(&problem, part, device.cloned(), how);
            let places = places(&part, &on);
            let of = |all: &[f64]| -> Vec<f64> { places.iter().map(|&at| all[at]).collect() };
            (product(&mut own, &of(&u), &of(&x)), places)
        });
        let mut seen = vec![None; on.n_dofs()];
        for (&value, &at) in parts.iter().flat_map(|(found, places)| found.iter().zip(places)) {
            let off = (value - known[at]).abs();
            assert!(off < 1e-12 * scale, "{how:?}, unknown {at}: {value}, not {}", known[at]);
            let bits = *seen[at].get_or_insert(value.to_bits());
            assert_eq!(bits, value.to_bits(), "{how:?}, unknown {at}");
        }
        assert!(seen.iter().all(Option::is_some), "an unknown is nowhere");
    }
}

#[test]
fn parts_on_devices_add_up_to_the_whole() {
    const TEXT: &str = "form f {
            field u: scalar;
            f0[u] = u^3;
            f1[u] = (1 + u^2) * grad(u);
            on boundary \"x1\" { f0[u] = u; }
        }
        problem p solves f {
            mesh = box(dim: 2, cells: 24, deform: 0.1);
            degree = 2;
            dirichlet u = x[1] on \"y0\";
        }";
    for device in super::devices::devices() {
        let (problem, mesh) = problem(TEXT);
        compare_on(Some(&device), &problem, with_hanging_nodes(mesh), &[3]);
    }
}
