//! Inequalities: `bound u >= EXPR;` by an active set, against exact solutions, a penalty and the balance of forces.

use crate::outputs::{refused, solution};
use runtime::problem::ReportValue;
use weakform::{Execution, Solution};

weakform::weak_form! {
    form string { field u: scalar; f0[u] = 5; f1[u] = grad(u); }

    problem floor solves string {
        mesh = box(dim: 2, cells: [10, 1]);
        dirichlet u = 0 on "x0", "x1";
        bound u >= -0.1;
        report force = multiplier(u);
    }
}

#[track_caller]
fn report(solution: &Solution, name: &str) -> Vec<f64> {
    match solution.report(name) {
        Some(ReportValue::Value(_, values)) => values.clone(),
        other => panic!("{name}: {other:?}"),
    }
}

/// A string that is pushed down on a floor at −0.1: between the ends and the contact u = 5 a² / 2 … with the load 5 the
/// contact begins at a = 0.2, a node, and finite elements of degree 1 are exact at nodes. The floor carries 3 of 5. The
/// same is true of an upper bound, with both signs reversed.
#[test]
fn a_string_on_a_floor_is_exact_at_nodes() {
    for (load, bound) in [("5", "u >= -0.1"), ("-5", "u <= 0.1")] {
        for solver in ["direct", "cg", "newton(linear: minres)", "gmres"] {
            let solution = solution(&format!(
                "form f {{ field u: scalar; f0[u] = {load}; f1[u] = grad(u); }}
                 problem p solves f {{
                    mesh = box(dim: 2, cells: [10, 1]); dirichlet u = 0 on \"x0\", \"x1\";
                    bound {bound}; solver = {solver};
                    report force = multiplier(u); report side = multiplier(u, on: \"y0\");
                    report near = u([0.1, 0.5]);
                 }}"
            ));
            let sign = load.parse::<f64>().expect("a number").signum();
            let found = ["force", "side", "near"].map(|name| report(&solution, name)[0] * sign);
            let expected = [3.0, 1.5, -0.075];
            let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-8);
            assert!(close, "{bound}, {solver}: {found:?}");
            let density = solution.output("multiplier_u").expect("a multiplier").values.numbers();
            let middle = density.iter().filter(|value| (**value * sign - 5.0).abs() < 1e-7).count();
            assert_eq!(middle, 2 * 5, "{bound}, {solver}: {density:?}");
        }
    }
}

/// On fine meshes a set that starts without a contact would lose a layer of cells each time, 800 on each side here.
#[test]
fn fine_meshes_start_from_coarser_ones() {
    for (mesh, near) in
        [("interval(cells: 4000)", "0.1"), ("box(dim: 2, cells: [160, 40])", "0.1, 0.5")]
    {
        let solution = solution(&format!(
            "form f {{ field u: scalar; f0[u] = 5; f1[u] = grad(u); }}
             problem p solves f {{
                mesh = {mesh}; dirichlet u = 0 on \"x0\", \"x1\"; bound u >= -0.1; solver = direct;
                report force = multiplier(u); report near = u([{near}]);
             }}"
        ));
        let [force, near] = ["force", "near"].map(|name| report(&solution, name)[0]);
        assert!(
            (force - 3.0).abs() < 1e-7 && (near + 0.075).abs() < 1e-7,
            "{mesh}: {force}, {near}"
        );
        let sets = solution.notes().iter().find_map(|note| {
            note.strip_prefix("bounds: ")?.split_once(" active set")?.0.parse::<usize>().ok()
        });
        assert!(sets.is_some_and(|sets| sets <= 4), "{mesh}: {:?}", solution.notes());
    }
}

/// The tutorial step-41 of deal.II, a membrane on stairs: its output has 5,399 degrees of freedom at their bound.
#[test]
fn a_membrane_on_stairs_lies_where_deal_ii_finds_it() {
    let solution = solution(
        "form f { field u: scalar; f0[u] = 10; f1[u] = grad(u); }
         problem p solves f {
            mesh = box(dim: 2, from: [-1, -1], to: [1, 1], cells: 128); dirichlet u = 0;
            bound u >= if x[0] < 0 { if x[0] < -0.5 { -0.2 } else { -0.4 } }
                       else { if x[0] < 0.5 { -0.6 } else { -0.8 } };
         }",
    );
    let notes = solution.notes();
    assert!(notes.iter().any(|note| note.contains("5399 of 16129")), "{notes:?}");
}

#[test]
fn the_macro_reads_bounds() {
    let problem = string::form().problem("floor").expect("a problem");
    let solution = problem.execution(Execution::Interpreted).run().expect("a solution");
    assert!((report(&solution, "force")[0] - 3.0).abs() < 1e-8);
}

/// A block is pressed on a plane across a gap: its strain is uniform, and so is the pressure E / (1 − ν²) · 0.006. On
/// cells of degree 2 the functions of some vertices have the integral 0.
#[test]
fn a_block_on_a_plane_has_a_uniform_pressure() {
    let pressure = 0.006 * 1000.0 / (1.0 - 0.3 * 0.3);
    for (cell, degree, size) in [
        ("quad", 1, "[1.5, 1]"),
        ("tri", 2, "[1.5, 1]"),
        ("tet", 2, "[1, 1, 1]"),
        ("hex", 2, "[1, 1, 1]"),
    ] {
        let is_flat = matches!(cell, "quad" | "tri");
        let (last, held, area) = match is_flat {
            true => (1, "dirichlet u[0] = 0 on \"x0\";", 1.5),
            // Plane strain: no displacement along y.
            false => {
                (2, "dirichlet u[0] = 0 on \"x0\"; dirichlet u[1] = 0 on \"y0\", \"y1\";", 1.0)
            }
        };
        let axis = if is_flat { "y" } else { "z" };
        let solution = solution(&format!(
            "form f {{
                field u: vector; param E = 1000; param nu = 0.3; let eps = sym(grad(u));
                f1[u] = E / (1 + nu) * (eps + nu / (1 - 2 * nu) * tr(eps) * I);
             }}
             problem p solves f {{
                mesh = box(cells: 2, to: {size}, cell: {cell}); degree = {degree}; {held}
                dirichlet u[{last}] = -0.01 on \"{axis}1\";
                bound u[{last}] >= -0.004 on \"{axis}0\";
                report force = multiplier(u); report top = reaction(u, on: \"{axis}1\");
             }}"
        ));
        let [force, top] = ["force", "top"].map(|name| report(&solution, name)[last]);
        assert!((force / (pressure * area) - 1.0).abs() < 1e-9, "{cell}: {force}");
        assert!((force + top).abs() < 1e-9 * force, "{cell}: {force} {top}");
        assert!(solution.residual() < 1e-9, "{cell}: {}", solution.residual());
        let output = solution.output("multiplier_u").expect("a multiplier").values.numbers();
        let density = output.chunks(last + 1).map(|own| own[last]);
        let loaded: Vec<f64> = density.filter(|own| own.abs() > 1e-6 * pressure).collect();
        let even = loaded.iter().all(|own| (own / pressure - 1.0).abs() < 1e-9);
        assert!(loaded.len() >= 3 && even, "{cell}: {loaded:?}");
    }
}

/// A nonlinear membrane between a floor and a ceiling, against a stiff penalty in the place of both.
#[test]
fn a_nonlinear_form_agrees_with_a_penalty() {
    let text = |more: &str, bounds: &str| {
        format!(
            "form f {{ field u: scalar; let load = 40 * sin(2 * pi * x[0]);
                f0[u] = u^3 - load{more}; f1[u] = (1 + u^2) * grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 12); dirichlet u = 0; {bounds}
                quadrature = collocated; report whole = integral(u^2); report most = maximum(u); }}"
        )
    };
    let exact = solution(&text("", "bound u >= -0.2; bound u <= 0.1;"));
    let penalty = " + 1e7 * (max(u - 0.1, 0) + min(u + 0.2, 0))";
    let near = solution(&text(penalty, ""));
    let [own, other] = [&exact, &near].map(|solution| report(solution, "whole")[0]);
    assert!((own / other - 1.0).abs() < 1e-4, "{own} {other}");
    let [[least, most]] = exact.range("u").expect("a field") else { panic!("a number") };
    assert_eq!([*least, *most], [-0.2, 0.1]);
    assert!(exact.notes().iter().any(|note| note.starts_with("bounds: ")), "{:?}", exact.notes());
}

/// Refusals of bounds without a meaning or a method name a way out.
#[test]
fn bounds_that_cannot_be_kept_are_refused() {
    let text = |field: &str, items: &str| {
        format!(
            "form f {{ field u: {field}; f0[u] = {}; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 2, cells: 2); {items} }}",
            if field.starts_with("vector") { "0 * u" } else { "1" }
        )
    };
    let cases = [
        ("vector", "dirichlet u = [0, 0]; bound u >= 0;", "write `bound u[0] >= …;`"),
        ("vector", "dirichlet u = [0, 0]; bound dot(u, n) >= 0 on \"x0\";", "one component"),
        ("scalar in L2(k)", "bound u >= 0;", "bound a field in `H1(k)`"),
        ("scalar", "dirichlet u = 0; bound u >= 0 on all;", "name the parts"),
        ("scalar", "mean u = 0; bound u >= 0;", "give a condition at a vertex"),
        ("scalar", "dirichlet u = 0; bound u >= 0; eigen = smallest(1);", "leave the bounds out"),
        ("scalar", "bound u >= 0; manufactured u = x[0];", "the solution by `exact`"),
        (
            "scalar",
            "dirichlet u = 0; bound u >= 0; solver = newton(steps: 3);",
            "--param load=1..10:5",
        ),
        ("scalar", "dirichlet u = 0; report a = multiplier(u);", "write `bound u >= …;`"),
        ("scalar", "dirichlet u = 0; bound u >= 1 / (x[0] - 0.5);", "the bound of `u` is inf"),
        ("scalar", "dirichlet u = 0; bound u >= 1; bound u <= 0;", "keep the lower bound below"),
    ];
    for (field, items, expected) in cases {
        let message = refused(&text(field, items));
        assert!(message.contains(expected), "{items}: {message}");
    }
}
