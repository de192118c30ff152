//! Viscous flows in Hdiv, with gradients in each cell and interior penalty of the tangential jumps.

use super::vector_fields::solved;
use runtime::problem::{ReportValue, Solution};

/// Returns Stokes' form with a force that is a gradient, and a problem on a box.
fn stokes(
    (cell, dim): (&str, usize),
    k: usize,
    (cells, deform): (usize, f64),
    items: &str,
) -> String {
    let sides =
        ["\"x0\", \"x1\", \"y0\", \"y1\"", "\"x0\", \"x1\", \"y0\", \"y1\", \"z0\", \"z1\""];
    let force = ["[2 * x[0] * x[1], x[0]^2]", "[2 * x[0] * x[1], x[0]^2 + x[2], x[1]]"];
    let (sides, force) = (sides[dim - 2], force[dim - 2]);
    format!(
        "form f {{ field u: vector in Hdiv(k); field p: scalar in L2(k - 1); test v for u; test q for p;
           param load = 0; param eta = 4;
           residual = inner(grad(u), grad(v)) - p * div(v) - div(u) * q - load * dot({force}, v);
           on interior {{ let slip = tangential(jump(u));
             residual = eta * avg(penalty(u)) * dot(slip, jump(v)) - dot(avg(grad(u)) * n, tangential(jump(v)))
               - dot(slip, avg(grad(v)) * n); }}
           on boundary {sides} {{ let slide = tangential(u);
             residual = eta * penalty(u) * dot(slide, v) - dot(grad(u) * n, tangential(v)) - dot(slide, grad(v) * n); }} }}
         problem p solves f {{ mesh = box(dim: {dim}, cells: {cells}, cell: {cell}, deform: {deform}); degree = {k};
           mean p = 0; report sources = integral(div(u)^2); report size = integral(dot(u, u)); {items} }}"
    )
}

fn run(text: &str, size: usize) -> Vec<Solution> {
    solved(text, size).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn reported(solution: &Solution, number: usize) -> f64 {
    match &solution.reports[number].value {
        ReportValue::Value(_, values) => values[0],
        other => panic!("a number should be reported: {other:?}"),
    }
}

/// A force that a pressure balances moves nothing, on deformed cells and in processes.
#[test]
fn gradients_move_nothing() {
    let cases = [
        (("quad", 2), 2, 3, 1),
        (("tri", 2), 1, 3, 3),
        (("hex", 3), 1, 2, 2),
        (("tet", 3), 1, 1, 1),
    ];
    for (cell, k, cells, size) in cases {
        let load = "param load = 1000; dirichlet dot(u, n) = 0 on all;";
        for solution in run(&stokes(cell, k, (cells, 0.1), load), size) {
            let moved = reported(&solution, 1).sqrt();
            assert!(moved < 1e-9, "{cell:?}, {size} processes: {moved:e}");
        }
    }
}

/// Velocities converge with order k, their gradients with k − 1, and have no divergence; processes agree.
#[test]
fn flows_have_the_order_of_the_degree() {
    let exact = "[cos(x[1]) * sin(x[0]), -cos(x[0]) * sin(x[1])]";
    let error = format!("grad(u) - grad({exact})");
    let items = format!(
        "manufactured u = {exact}; manufactured p = sin(x[0] + x[1]); dirichlet u;
         report slopes = integral(inner({error}, {error}));"
    );
    for (cell, k) in [(("quad", 2), 2), (("tri", 2), 2)] {
        let errors = |cells: usize, size: usize| {
            let solution = run(&stokes(cell, k, (cells, 0.05), &items), size).remove(0);
            let sources = reported(&solution, 0).sqrt();
            assert!(sources < 1e-9, "{cell:?}, k = {k}: {sources:e}");
            [solution.errors[0].1, reported(&solution, 2).sqrt()]
        };
        let [before, after] = [3, 6].map(|cells| errors(cells, 1));
        for (number, (coarse, fine)) in before.into_iter().zip(after).enumerate() {
            let order = (coarse / fine).log2();
            assert!(order > (k - number) as f64 - 0.4, "{cell:?}, k = {k}: {order} from {coarse}");
        }
        let apart = errors(3, 2)[0] - before[0];
        assert!(apart.abs() < 1e-8 * before[0], "{cell:?}, k = {k}: {apart:e}");
    }
}
