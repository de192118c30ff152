//! Solutions in the space, and known residuals: η is at rounding-error level, or a known number.

use super::{estimated, of_state, problem};
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::assert_close;
use runtime::estimate::EstimateError;
use runtime::mesh::{CellOrdering, Mesh, MeshData};
use runtime::reference::BoundedValue;

/// Bound of η / ‖u‖ for solutions in the space: rounding of the solver's last residual, amplified by derivatives.
const ROUNDING: f64 = 1e-8;

#[test]
fn solutions_in_the_space_have_no_error() {
    let mut seen = 0;
    for (mesh, degrees, solution) in [
        ("box(dim: 2, cells: 3, cell: quad)", 1..=4, "POLYNOMIAL"),
        ("box(dim: 2, cells: 3, cell: tri, deform: 0.1)", 1..=4, "POLYNOMIAL"),
        ("box(dim: 3, cells: 2, cell: hex)", 1..=3, "POLYNOMIAL"),
        ("box(dim: 3, cells: 2, cell: tet, deform: 0.1)", 1..=3, "POLYNOMIAL"),
        // The pull-back of a constant gradient is a polynomial that the quadrature points resolve.
        ("box(dim: 2, cells: 3, cell: quad, deform: 0.1)", 1..=3, "x[0] - 2 * x[1]"),
        ("box(dim: 3, cells: 2, cell: hex, deform: 0.1)", 2..=3, "x[0] - 2 * x[1] + x[2]"),
        ("ball(dim: 2, refine: 1, order: 2)", 2..=3, "x[0] - 2 * x[1]"),
        ("ball(dim: 2, refine: 1, order: 2, cell: tri)", 2..=3, "x[0] - 2 * x[1]"),
    ] {
        for degree in degrees {
            let polynomial = format!("(x[0] + 0.5 * x[1] - 0.3)^{degree}");
            let solution = solution.replace("POLYNOMIAL", &polynomial);
            // Natural conditions on one side, from `manufactured`.
            let sides = if mesh.starts_with("box") { "\"x0\", \"y0\", \"y1\"" } else { "all" };
            let more = if mesh.contains("dim: 3") { ", \"z0\", \"z1\"" } else { "" };
            let text = format!(
                "form f {{ field u: scalar; f1[u] = 3 * grad(u); }} problem p solves f {{ mesh = {mesh};
                degree = {degree}; manufactured u = {solution}; dirichlet u on {sides}{more};
                solver = cg(rtol: 1e-14); }}"
            );
            let (_, estimate) = estimated(&text);
            let relative = estimate.relative().expect("an energy");
            assert!(relative < ROUNDING, "{mesh}, degree {degree}: {relative}");
            seen += 1;
        }
    }
    assert_eq!(seen, 23);
}

#[test]
fn several_fields_that_are_exact_have_no_error() {
    let (_, estimate) = estimated(
        "form stokes { field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = 0.7;
            f1[u] = nu * grad(u) - p * I; f0[p] = -div(u); }
        problem p solves stokes { mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u on all; mean p = 0;
            manufactured u = [x[1]^2, x[0]^2]; manufactured p = x[0] - 0.5; }",
    );
    let relative = estimate.relative().expect("an energy");
    assert!(relative < ROUNDING, "{relative}");
}

/// For u = x, σ · n is 1 on one side; an integral over that side reduces it.
#[test]
fn what_is_left_on_the_boundary_counts() {
    for (mesh, cells) in [
        ("box(dim: 2, cells: 3, cell: quad)", 3),
        ("box(dim: 2, cells: 3, cell: tri)", 3),
        ("box(dim: 3, cells: 2, cell: hex)", 4),
        ("box(dim: 3, cells: 2, cell: tet)", 8),
    ] {
        let mut squares = Vec::new();
        for source in ["0", "0.25", "1"] {
            let text = format!(
                "form f {{ field u: scalar; f1[u] = grad(u); on boundary \"x1\" {{ f0[u] = -{source}; }}
                on boundary \"x1\", \"y1\" {{ param none = 0; f0[u] = none * u; }} }}
                problem p solves f {{ mesh = {mesh}; degree = 2; dirichlet u = 0 on \"x0\"; }}"
            );
            let (problem, mesh) = problem(&text);
            let (on, estimate) = of_state(&problem, mesh, |_, x, u| u[0] = x[0]);
            let estimate = estimate.expect("an estimate");
            let beside = |cell: &usize| {
                let vertices = on.mesh.vertices(*cell).iter();
                let on_side = vertices.filter(|&&v| on.mesh.points()[v as usize][0] > 1.0 - 1e-9);
                on_side.count() >= on.mesh.dim()
            };
            let marked = (0..on.mesh.n_cells()).filter(|&cell| estimate.squares[cell] > 1e-12);
            let marked: Vec<usize> = marked.collect();
            let wanted: Vec<usize> = (0..on.mesh.n_cells()).filter(beside).collect();
            assert_eq!(wanted.len(), cells);
            if source != "1" {
                assert_eq!(marked, wanted);
            }
            squares.push(estimate.total);
        }
        // (1 − s)² of the first.
        assert!(squares[0] > 0.0 && (squares[1] / squares[0] - 0.5625).abs() < 1e-9, "{squares:?}");
        assert!(squares[2] < 1e-20 * squares[0], "{squares:?}");
    }
}

/// Returns a square rotated by 30°, with its sides tagged.
fn turned_square() -> Mesh {
    let n = 3u32;
    let mut parts = MeshData::default();
    let (sin, cos) = 30.0f64.to_radians().sin_cos();
    for j in 0..=n {
        for i in 0..=n {
            let [x, y] = [i, j].map(|at| f64::from(at) / f64::from(n));
            parts.points.push([cos * x - sin * y, sin * x + cos * y, 0.0]);
        }
    }
    for (j, i) in (0..n).flat_map(|j| (0..n).map(move |i| (j, i))) {
        let first = j * (n + 1) + i;
        parts.nodes.extend([first, first + 1, first + n + 1, first + n + 2]);
    }
    let mut mesh = Mesh::new(runtime::mesh::Cell::Quadrilateral, 1, parts, CellOrdering::Sorted)
        .expect("a mesh");
    let along = move |x: &[f64; 3]| [cos * x[0] + sin * x[1], cos * x[1] - sin * x[0]];
    mesh.tag_boundary("wall", |all| all.iter().all(|x| along(x)[1].abs() < 1e-9));
    mesh.tag_boundary("others", |all| !all.iter().all(|x| along(x)[1].abs() < 1e-9));
    mesh
}

/// On slip walls, normal forces are balanced by the constraint; only tangential ones contribute.
#[test]
fn walls_hold_what_is_normal_to_them() {
    let (sin, cos) = 30.0f64.to_radians().sin_cos();
    // In the wall's frame, ∂u/∂y is `across` and `along`, and u is 0 at the wall.
    let total = |condition: &str, along: f64, across: f64| {
        let text = format!(
            "form f {{ field u: vector; f1[u] = grad(u); }} problem p solves f {{ mesh = \"square.msh\";
            degree = 2; dirichlet u = [0, 0] on \"others\"; {condition} }}"
        );
        let (program, found) = compile(&Source::new("t", text.as_str()));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let problem = program.problem("p", 2, &Overrides::default()).expect("a problem");
        let (_, estimate) = of_state(&problem, turned_square(), |_, x, u| {
            let y = cos * x[1] - sin * x[0];
            let own = [along * y, across * y];
            u.copy_from_slice(&[cos * own[0] - sin * own[1], sin * own[0] + cos * own[1]]);
        });
        estimate.expect("an estimate").total
    };
    let free = total("dirichlet u = [0, 0] on \"others\";", 1.0, 0.0);
    assert!(free > 0.01);
    let both = total("dirichlet u = [0, 0] on \"others\";", 1.0, 2.0);
    // η² has the unit of the energy: equal for each alone.
    assert!((both - 5.0 * free).abs() < 1e-9, "{free} {both}");
    let slip = "dirichlet dot(u, n) = 0 on \"wall\";";
    assert!((total(slip, 1.0, 0.0) - free).abs() < 1e-9);
    assert!((total(slip, 1.0, 2.0) - free).abs() < 1e-9);
    assert!(total(slip, 0.0, 2.0) < 1e-20);
    assert!(total("dirichlet u = [0, 0] on \"wall\";", 1.0, 2.0) < 1e-20);
}

/// Periodic sides have jumps and no boundary residual.
#[test]
fn periodic_sides_are_inner_facets() {
    let text = |sides: &str| {
        format!(
            "form f {{ field u: scalar; f1[u] = grad(u); }} problem p solves f {{ mesh = box(dim: 2, cells: 4);
            degree = 2; dirichlet u = 0 on \"y0\", \"y1\"; {sides} }}"
        )
    };
    let wave = |_: usize, x: &[f64; 3], u: &mut [f64]| u[0] = x[1] * x[1] + x[0] * (1.0 - x[0]);
    let total = |sides: &str| {
        let (problem, mesh) = problem(&text(sides));
        let (_, estimate) = of_state(&problem, mesh, wave);
        estimate.expect("an estimate").fields[0].jumps
    };
    let [apart, joined] = ["", "periodic \"x0\" = \"x1\";"].map(total);
    // Separately each side has (∂u/∂n)² = 1, with weight 2; identified, ∂u/∂x jumps by 2: both cells of a facet have
    // half of 4.
    assert!(apart > 0.0 && (joined - apart).abs() < 1e-12 * apart, "{apart} {joined}");
    let smooth = |_: usize, x: &[f64; 3], u: &mut [f64]| u[0] = x[1] * x[1] + 3.0 * x[0];
    let (problem, mesh) = problem(&text("periodic \"x0\" = \"x1\";"));
    // x is not periodic; its nodal interpolant jumps in one column of cells only.
    let (on, estimate) = of_state(&problem, mesh, smooth);
    let estimate = estimate.expect("an estimate");
    let marked: Vec<f64> = (0..on.mesh.n_cells())
        .filter(|&cell| estimate.squares[cell] > 1e-3 * estimate.total)
        .map(|cell| on.mesh.centre(cell)[0])
        .collect();
    assert!(!marked.is_empty() && marked.iter().all(|&x| !(0.4..0.6).contains(&x)), "{marked:?}");
}

#[test]
fn what_is_not_finite_is_named() {
    let text = "form f { field v: scalar; field u: scalar; f1[v] = grad(v); f1[u] = grad(u); f0[u] = log(u); }
        problem p solves f { mesh = box(dim: 2, cells: 3); degree = 1; dirichlet u = 1 on all; dirichlet v = 0 on all; }";
    let (problem, mesh) = problem(text);
    let (on, estimate) = of_state(&problem, mesh, |_, x, u| {
        u[0] = if x[0] > 0.9 && x[1] > 0.9 { -1.0 } else { 1.0 };
    });
    let error = estimate.expect_err("no number");
    let EstimateError::NotFinite { field, cell, .. } = &error else { panic!("{error}") };
    let centre = on.mesh.centre(*cell);
    assert_eq!(field, "u");
    assert!(centre[0] > 0.6 && centre[1] > 0.6, "{centre:?}");
    assert!(error.to_string().contains("`u`"), "{error}");
}

/// A state with zero energy has a zero share of it, and its source still counts.
#[test]
fn nothing_has_no_energy() {
    let text = "form f { field u: scalar; f1[u] = 2 * grad(u); f0[u] = -1; }
        problem p solves f { mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u = 0 on all; }";
    let (problem, mesh) = problem(text);
    let (_, estimate) = of_state(&problem, mesh, |_, _, u| u[0] = 0.0);
    let estimate = estimate.expect("an estimate");
    assert_eq!((estimate.energy, estimate.relative()), (0.0, None));
    // ‖f‖² / κ with h = 1/3 and 2 p (p + 1) (2p + 1) = 60.
    assert!((estimate.total - 1.0 / (2.0 * 9.0 * 60.0)).abs() < 1e-12, "{}", estimate.total);
}

/// Several integrals over a cell add up like one form with a position-dependent coefficient.
#[test]
fn integrals_over_parts_of_the_cells_add_up() {
    let total = |form: &str, more: &str| {
        let text = format!(
            "form f {{ field u: scalar; {form} }} problem p solves f {{ mesh = \"square.msh\"; degree = 2;
            dirichlet u = 0 on \"x0\"; {more} }}"
        );
        let (program, found) = compile(&Source::new("t", text.as_str()));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let other = program.problem("p", 2, &Overrides::default()).expect("a problem");
        let (_, mut mesh) = problem(
            "form f { field u: scalar; f0[u] = u; } problem p solves f { mesh = box(dim: 2, cells: 4); degree = 1; }",
        );
        assert_eq!(mesh.tag_cells("part", |x| x[0] > 0.5), 8);
        let wave = |_: usize, x: &[f64; 3], u: &mut [f64]| u[0] = (3.0 * x[0] + x[1]).sin();
        of_state(&other, mesh, wave).1.expect("an estimate")
    };
    let parts = total(
        "f1[u] = grad(u); f0[u] = -1; on cells \"part\" { f1[u] = 2 * grad(u); f0[u] = 5 * u; }",
        "",
    );
    let whole = total(
        "aux a: scalar on cells; f1[u] = (1 + 2 * a) * grad(u); f0[u] = 5 * a * u - 1;",
        "aux a = if x[0] > 0.5 { 1 } else { 0 };",
    );
    let close =
        |a: f64, b: f64| assert_close!(a, BoundedValue::with_scale(b, 100.0 * b), f64::EPSILON);
    close(parts.energy, whole.energy);
    assert!(parts.squares.iter().all(|square| *square > 0.0));
    parts.squares.iter().zip(&whole.squares).for_each(|(a, b)| close(*a, *b));
}

/// Cells of a discontinuous field are not coupled: the whole flux through facets is residual.
#[test]
fn discontinuous_fields_have_an_end_at_every_facet() {
    let text = "form f { field u: scalar in L2(k); f1[u] = grad(u); f0[u] = u; }
        problem p solves f { mesh = box(dim: 2, cells: 3); degree = 2; }";
    let (problem, mesh) = problem(text);
    let (_, estimate) = of_state(&problem, mesh, |_, x, u| u[0] = x[0]);
    let estimate = estimate.expect("an estimate");
    // Two facets of each cell, of length h = 1/3, with 1² each: 2 h / 8 (2p + 1).
    let want = 9.0 * 2.0 * 2.0 / (9.0 * 40.0);
    let jumps = estimate.fields[0].jumps;
    assert_close!(jumps, BoundedValue::with_scale(want, 100.0 * want), f64::EPSILON);
}
