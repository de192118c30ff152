//! Error estimates on mesh parts: the indicator of a cell does not depend on the distribution.

use super::{
    FORM, VECTORS, context, numbers, pairs, places, problem, random_forest, scattered, target,
    text, text_of, turned,
};
use fem_dsl::problem::Problem;
use runtime::estimate::{ErrorEstimate, EstimateError, Estimator};
use runtime::mesh::Mesh;
use runtime::problem::{Context, with_periodic_sides};
use runtime::processes::threads::each;
use std::sync::Arc;

/// Returns the estimate of a state that `u` defines on the discretisation.
fn estimated(
    problem: &Problem,
    mesh: Arc<Mesh>,
    u: impl Fn(&runtime::space::discretisation::Discretisation) -> Vec<f64>,
) -> Result<ErrorEstimate, EstimateError> {
    let Context { elements, on, parameters, .. } = context(problem, mesh);
    let params = &parameters.values;
    let made = Estimator::new(&problem.form, &elements, &on, params, &target(), None);
    made.expect("kernels").estimate(&u(&on))
}

/// Compares the squares of cells on random parts with those on the whole mesh.
#[track_caller]
fn compare(problem: &Problem, mesh: Mesh, processes: usize, seed: u64) {
    let whole = with_periodic_sides(problem, Arc::new(mesh)).expect("a mesh");
    let Context { on, .. } = context(problem, Arc::clone(&whole));
    let u = numbers(on.n_dofs(), 0.3);
    let known = estimated(problem, Arc::clone(&whole), |_| u.clone()).expect("an estimate");
    let largest = known.squares.iter().copied().fold(0.0, f64::max);
    assert!(largest > 0.0);
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-11 * b.abs();
    let parts = each(processes, |group| {
        let part = whole.part_by(scattered(whole.n_cells(), group.size(), seed), &group);
        let own = estimated(problem, Arc::clone(&part), |part| {
            places(part, &on).iter().map(|&at| u[at]).collect()
        });
        (part, own.expect("an estimate"))
    });
    let mut seen = 0;
    for (part, own) in &parts {
        let cells = part.cut().expect("a part").cells().expect("room");
        seen += cells.len();
        for (&cell, &square) in cells.iter().zip(&own.squares) {
            let off = (square - known.squares[cell as usize]).abs();
            assert!(off < 1e-11 * largest, "cell {cell}: {square}, off by {off:.1e}");
        }
        assert!(near(own.total, known.total) && near(own.energy, known.energy), "{own:?}");
        for (own, known) in own.fields.iter().zip(&known.fields) {
            assert_eq!(own.name, known.name);
            assert!(near(own.residual, known.residual), "{own:?}, not {known:?}");
            assert!(near(own.jumps, known.jumps), "{own:?}, not {known:?}");
            assert!(near(own.energy, known.energy), "{own:?}, not {known:?}");
        }
        assert_eq!(own.total.to_bits(), parts[0].1.total.to_bits());
    }
    assert_eq!(seen, whole.n_cells());
}

#[test]
fn estimates_of_parts_are_those_of_the_whole() {
    let meshes = [
        ("box(dim: 2, cells: 3, deform: 0.1)", 2, ["x1", "y0"], ""),
        ("box(dim: 2, cells: 3)", 3, ["x1", "x0"], "periodic \"y0\" = \"y1\";"),
        ("box(dim: 3, cells: 2)", 2, ["x1", "y0"], ""),
        ("\"meshes/plate_hole_quad9.msh\"", 2, ["right", "left"], ""),
    ];
    for (seed, (mesh, degree, tags, more)) in (0..).zip(meshes) {
        let (problem, mesh) = problem(&text(mesh, degree, tags, more));
        let mesh = match mesh.order() {
            1 => random_forest(periodic(&problem, mesh), seed),
            _ => mesh,
        };
        compare(&problem, mesh, 2 + seed as usize % 3, seed);
    }
}

#[test]
fn estimates_of_parts_with_vector_fields_are_those_of_the_whole() {
    let periodic_sides = "periodic \"y0\" = \"y1\";";
    for (seed, (mesh, degree, tags, more)) in (0..).zip([
        ("box(dim: 2, cells: 3, deform: 0.1)", 2, ["x1", "y0"], ""),
        ("box(dim: 2, cells: 3)", 2, ["x1", "x0"], periodic_sides),
        ("box(dim: 3, cells: 2)", 2, ["x1", "y0"], ""),
        ("box(dim: 2, cells: 3, cell: tri)", 2, ["x1", "y0"], ""),
        ("box(dim: 3, cells: 2, cell: tet)", 1, ["x1", "y0"], ""),
    ]) {
        let (problem, mesh) = problem(&text_of(VECTORS, mesh, degree, tags, more));
        let mesh = match mesh.cell().is_tensor() {
            true => random_forest(periodic(&problem, mesh), seed),
            false => mesh,
        };
        compare(&problem, mesh, 2 + seed as usize % 3, seed);
    }
}

fn periodic(problem: &Problem, mesh: Mesh) -> Mesh {
    let mesh = with_periodic_sides(problem, Arc::new(mesh)).expect("sides");
    Arc::unwrap_or_clone(mesh)
}

#[test]
fn estimates_of_parts_of_simplices_are_those_of_the_whole() {
    for (seed, (mesh, degree)) in (0..).zip([
        ("box(dim: 2, cells: 3, cell: tri, deform: 0.1)", 3),
        ("box(dim: 3, cells: 2, cell: tet)", 2),
    ]) {
        let (problem, mesh) = problem(&text(mesh, degree, ["x1", "y0"], ""));
        compare(&problem, mesh, 3, seed);
    }
}

#[test]
fn estimates_of_parts_with_terms_between_cells_are_those_of_the_whole() {
    let periodic_sides = "periodic \"y0\" = \"y1\";";
    for (seed, (mesh, degree, more)) in (0..).zip([
        ("box(dim: 2, cells: 3, deform: 0.1)", 2, ""),
        ("box(dim: 2, cells: 3)", 2, periodic_sides),
        ("box(dim: 3, cells: 2)", 1, ""),
        ("box(dim: 2, cells: 3, cell: tri)", 2, ""),
        ("box(dim: 3, cells: 2, cell: tet)", 2, ""),
    ]) {
        // Data that are not periodic would have the values of either cell.
        let text = pairs::text(mesh, degree, more).replace("a = 1 + x[0] * x[1]", "a = 1 + x[0]");
        let mut texts = vec![text];
        if more.is_empty() {
            // Some sides of turned cells have no name.
            texts.push(pairs::hanging(mesh, degree).replace("\"y1\"", "\"x1\""));
        }
        for text in texts {
            let (problem, mesh) = problem(&text);
            let mesh = match (mesh.cell().is_tensor(), mesh.dim()) {
                (true, 3) => random_forest(turned(&mesh), seed),
                (true, _) => random_forest(periodic(&problem, mesh), seed),
                (false, _) => mesh,
            };
            compare(&problem, mesh, 2 + seed as usize % 3, seed);
        }
    }
}

/// A NaN on one process is an error there; the estimate of the others reports it.
#[test]
fn a_process_without_an_estimate_is_noticed_by_all() {
    let text = text("box(dim: 2, cells: 4)", 2, ["x1", "y0"], "");
    assert!(text.contains("else { 1 }"), "{FORM}");
    let text = text.replace("else { 1 }", "else { 1 / (x[0] - x[0]) }");
    let (problem, mesh) = problem(&text);
    let whole = Arc::new(mesh);
    let found = each(2, |group| {
        let right = |cell: usize| u32::from(whole.centre(cell)[0] > 0.5);
        let part = whole.part_by((0..whole.n_cells()).map(right).collect(), &group);
        estimated(&problem, part, |on| numbers(on.n_dofs(), 0.3))
    });
    assert!(matches!(found[1], Err(EstimateError::NotFinite { .. })), "{:?}", found[1]);
    assert!(found[0].as_ref().is_ok_and(|own| !own.total.is_finite()), "{:?}", found[0]);
}
