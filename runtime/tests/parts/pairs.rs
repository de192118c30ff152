//! Facets between cells over the cut: one process integrates each, with the other's cell as unknowns.

use super::{Cutting, compare_parts, problem, target, turned, with_hanging_nodes};
use runtime::device::Device;
use runtime::mesh::Mesh;
use runtime::problem::{ReportValue, run};
use runtime::processes::ProcessGroup;
use runtime::processes::threads::each;
use runtime::solve::Continue;
use std::sync::Arc;

/// A form with data of each kind, sizes of both cells, gradients and a function of two states.
const FORM: &str = "form between {
        field u: vector(2) in L2(k);
        field p: scalar in L2(k - 1);
        aux a: scalar on nodes in H1(k);
        aux b: scalar on nodes in L2(k);
        aux m: scalar on cells;
        f0[u] = a * u - [x[0], 1];
        f1[u] = m * grad(u);
        f0[p] = p + u[0];
        on interior {
            let w = outside(m) / (inside(m) + outside(m));
            let flux = w * inside(m) * inside(grad(u)) * n + (1 - w) * outside(m) * outside(grad(u)) * n;
            f0[jump(u)] = avg(penalty(u) + h) * jump(u) + a * max(inside(u[0]), outside(u[0])) * jump(u) - flux;
            f1[avg(u)] = outer(avg(hn) * jump(u), n);
            f0[jump(p)] = avg(b * p) * n[0] + jump(p) * avg(u[1]);
        }
        on boundary SIDES { f0[u] = penalty(u) * u; }
    }
    problem p solves between {
        mesh = MESH;
        degree = DEGREE;
        aux a = 1 + x[0] * x[1];
        aux b = x[1] - x[0];
        aux m = 1 + x[0]^2;
        MORE
    }";

/// A form with continuous fields between cells, conditions on one of them, and a discontinuous one.
const CONTINUOUS: &str = "form joined {
        field u: vector(2) in H1(k);
        field q: scalar in H1(k + 1);
        field p: scalar in L2(k - 1);
        aux a: scalar on nodes in H1(k);
        aux m: scalar on cells;
        f0[u] = a * u - [x[0], 1];
        f1[u] = m * grad(u);
        f0[q] = q^2 - u[1];
        f1[q] = grad(q);
        f0[p] = p + u[0];
        on interior {
            let w = outside(m) / (inside(m) + outside(m));
            let slope = max(dot(inside(grad(u[0])), n), -dot(outside(grad(u[0])), n));
            f1[jump(u)] = (avg(hn)^2 * (1 + a^2) + slope) * jump(grad(u));
            f1[jump(q)] = w * (1 - w) * jump(grad(q)) + avg(hn) * avg(grad(grad(q))) * n;
            f1[avg(q)] = jump(p) * n;
            f0[q] = jump(p)^2;
            f0[jump(p)] = a * n[0] + jump(p) * q + dot(avg(grad(u[1])), n);
        }
        on boundary SIDES { f0[q] = q; }
    }
    problem p solves joined {
        mesh = MESH;
        degree = DEGREE;
        aux a = 1 + x[0];
        aux m = 1 + x[0]^2;
        dirichlet u = [x[1], sin(x[0])] on \"y0\";
        dirichlet q = 1 + x[0]^2 on \"y1\";
        MORE
    }";

/// Returns the problem of a mesh with continuous fields.
pub(super) fn continuous(mesh: &str, degree: usize, more: &str) -> String {
    text_of(CONTINUOUS, mesh, degree, more)
}

/// Returns the same without second derivatives, which exclude hanging nodes.
pub(super) fn hanging(mesh: &str, degree: usize) -> String {
    let text = continuous(mesh, degree, "");
    assert!(text.contains(SECOND));
    text.replace(SECOND, "")
}

/// A term with second derivatives.
const SECOND: &str = " + avg(hn) * avg(grad(grad(q))) * n";

/// Returns the problem of a mesh with discontinuous fields.
pub(super) fn text(mesh: &str, degree: usize, more: &str) -> String {
    text_of(FORM, mesh, degree, more)
}

/// Returns the problem of a form on a mesh.
fn text_of(form: &str, mesh: &str, degree: usize, more: &str) -> String {
    let flat = mesh.contains("dim: 2");
    let sides = if flat { "\"x0\", \"x1\"" } else { "\"x1\", \"y0\"" };
    let text = form.replace("MESH", mesh).replace("DEGREE", &degree.to_string());
    text.replace("SIDES", sides).replace("MORE", more)
}

/// Compares parts of a mesh that `make` changes with the whole, on a device if one is given.
#[track_caller]
fn compare(
    device: Option<&Arc<dyn Device>>,
    text: &str,
    make: impl Fn(Mesh) -> Mesh,
    sizes: &[usize],
) {
    let (problem, mesh) = problem(text);
    let even = |whole: &Arc<Mesh>, group: &Arc<dyn ProcessGroup>| Arc::clone(whole).part(group);
    let even: Cutting<'_> = &even;
    compare_parts(device, &problem, make(mesh), sizes, even, None);
}

#[test]
fn facets_on_the_cut_are_integrated_once() {
    for (cell, dim, degree) in [("quad", 2, 2), ("tri", 2, 2), ("hex", 3, 1), ("tet", 3, 1)] {
        let mesh = format!("box(dim: {dim}, cells: 3, cell: {cell}, deform: 0.1)");
        compare(None, &text(&mesh, degree, ""), |mesh| mesh, &[2, 3, 4]);
    }
}

#[test]
fn periodic_and_turned_facets_may_lie_on_the_cut() {
    let sides = "periodic \"y0\" = \"y1\";";
    compare(None, &text("box(dim: 2, cells: [4, 3])", 2, sides), |mesh| mesh, &[2, 4]);
    compare(None, &text("box(dim: 3, cells: 2)", 1, ""), |mesh| turned(&mesh), &[2, 3]);
}

#[test]
fn hanging_facets_may_lie_on_the_cut() {
    let mesh = "box(dim: 2, cells: 3, deform: 0.1)";
    compare(None, &text(mesh, 2, ""), with_hanging_nodes, &[2, 3, 4]);
    compare(None, &text("box(dim: 3, cells: 2)", 1, ""), with_hanging_nodes, &[2, 3]);
}

#[test]
fn continuous_fields_have_the_nodes_of_cells_over_the_cut() {
    for (cell, dim, degree) in [("quad", 2, 2), ("tri", 2, 2), ("hex", 3, 1), ("tet", 3, 1)] {
        let mesh = format!("box(dim: {dim}, cells: 3, cell: {cell}, deform: 0.1)");
        compare(None, &continuous(&mesh, degree, ""), |mesh| mesh, &[2, 3, 4]);
    }
    // Chunks of 16 cells, some of which meet beyond the part only.
    let mesh = "box(dim: 2, cells: 16, deform: 0.1)";
    compare(None, &continuous(mesh, 1, ""), |mesh| mesh, &[2, 3]);
}

#[test]
fn continuous_fields_over_periodic_turned_and_hanging_facets_are_those_of_one_process() {
    let text = continuous("box(dim: 2, cells: [4, 3])", 2, "SIDES");
    let text = text.replace("y0", "x0").replace("y1", "x1");
    let text = text.replace("SIDES", "periodic \"y0\" = \"y1\";");
    compare(None, &text, |mesh| mesh, &[2, 4]);
    // Some sides of turned cells have no name.
    let text = continuous("box(dim: 3, cells: 2)", 1, "").replace("y1", "x1");
    compare(None, &text, |mesh| turned(&mesh), &[2, 3]);
    let mesh = "box(dim: 2, cells: 3, deform: 0.1)";
    compare(None, &hanging(mesh, 2), with_hanging_nodes, &[2, 3, 4]);
    compare(None, &hanging("box(dim: 3, cells: 2)", 1), with_hanging_nodes, &[2, 3]);
}

#[test]
fn devices_integrate_facets_on_the_cut() {
    for device in super::super::devices::devices() {
        let device = Some(&device);
        let mesh = "box(dim: 2, cells: 3, deform: 0.1)";
        for text in [text(mesh, 2, ""), hanging(mesh, 2)] {
            compare(device, &text, with_hanging_nodes, &[3]);
        }
        let mesh = "box(dim: 3, cells: 2, cell: tet)";
        for text in [text(mesh, 1, ""), continuous(mesh, 1, "")] {
            compare(device, &text, |mesh| mesh, &[2]);
        }
    }
}

/// Block Jacobi has the same blocks on parts: GMRES takes as many iterations.
#[test]
fn blocks_of_cells_are_those_of_one_process() {
    for (mesh, make) in [
        ("box(dim: 2, cells: 6, deform: 0.1)", (|mesh| mesh) as fn(Mesh) -> Mesh),
        ("box(dim: 2, cells: 3)", with_hanging_nodes),
        ("box(dim: 3, cells: 2, cell: tet)", |mesh| mesh),
    ] {
        let dim = if mesh.contains("dim: 2") { 2 } else { 3 };
        let (b, sides) = if dim == 2 { ("[2, 1]", "") } else { ("[2, 1, 0.5]", ", \"z1\"") };
        let text = format!(
            "form f {{ field u: scalar in L2(k); let b = {b}; f1[u] = -u * b; f0[u] = 0.1 * u - 1;
             on interior {{ f0[jump(u)] = dot(b, n) * avg(u) + abs(dot(b, n)) / 2 * jump(u); }}
             on boundary \"x1\", \"y1\"{sides} {{ f0[u] = dot(b, n) * u; }} }}
             problem p solves f {{ mesh = {mesh}; degree = 2;
             solver = gmres(rtol: 1e-10, preconditioner: block_jacobi); report amount = integral(u); }}"
        );
        let (problem, mesh) = problem(&text);
        let whole = Arc::new(make(mesh));
        let solved = |mesh: Arc<Mesh>| {
            let solution = run(&problem, mesh, &target().into(), &mut |_| Continue::Yes);
            let solution = solution.expect("a solution");
            let ReportValue::Value(_, amount) = &solution.reports[0].value else {
                panic!("a number")
            };
            (solution.linear_iterations, amount[0])
        };
        let (iterations, amount) = solved(Arc::clone(&whole));
        for size in 2..=4 {
            let parts = each(size, |group| solved(Arc::clone(&whole).part(&group)));
            for (own, found) in parts {
                assert!(own.abs_diff(iterations) <= 1, "{own}, not {iterations}");
                assert!((found - amount).abs() < 1e-9 * amount, "{found}, not {amount}");
            }
        }
    }
}
