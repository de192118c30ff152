//! Fields in Hcurl and Hdiv: η of solutions in the space is rounding error; η against the known error elsewhere.

use super::{estimated, of_solution, problem, solved};
use rayon::prelude::*;
use runtime::estimate::ErrorEstimate;
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::mesh::Mesh;
use runtime::problem::Solution;

/// Bound of η / ‖u‖ for solutions in the space: rounding of the solver's last residual, amplified by derivatives.
const ROUNDING: f64 = 1e-8;

/// A form in each space and dimension, and a solution of degree 1 and one of degree 2 or less.
const EXACT: [(&str, &str, [&str; 2]); 4] = [
    (
        "2",
        "field E: vector in Hcurl(k); f0[E] = 2 * E; f1[E] = 3 * curl(E);",
        ["E = [1 - 2 * x[1], 3 + x[1]]", "E = [x[0] * x[1] + x[1], x[0]^2 - x[1]]"],
    ),
    (
        "3",
        "field E: vector in Hcurl(k); f0[E] = 2 * E; f1[E] = 3 * curl(E);",
        ["E = [x[1], x[2] - x[1], 2]", "E = [x[1] * x[2], x[0]^2 + x[2], x[0] * x[2]]"],
    ),
    (
        "2",
        "field E: vector in Hdiv(k); f0[E] = 2 * E; f1[E] = 3 * div(E);",
        ["E = [1 - 2 * x[0], 3 + x[1]]", "E = [x[0] * x[1] + x[1], x[0] - x[1]^2]"],
    ),
    (
        "3",
        "field E: vector in Hdiv(k); f0[E] = 2 * E; f1[E] = 3 * div(E);",
        ["E = [x[0], x[2] - x[1], 2]", "E = [x[0] * x[2], x[0] * x[2] + x[1], x[2] * x[1]]"],
    ),
];

/// Solves on a mesh that is refined at some of its cells.
fn refined(text: &str, fine: impl Fn(&Mesh, usize) -> bool) -> (Solution, ErrorEstimate) {
    let (problem, mesh) = problem(text);
    let mut adaptive = AdaptiveMesh::new(mesh).expect("a mesh");
    let first = adaptive.mesh().expect("a mesh");
    let marked: Vec<bool> = (0..first.n_cells()).map(|cell| fine(&first, cell)).collect();
    adaptive.adapt(&first, &marked, &[]).expect("marks");
    let solution = solved(&problem, adaptive.mesh().expect("a mesh"));
    let estimate = of_solution(&problem, &solution);
    (solution, estimate)
}

fn cells(dim: &str) -> [&'static str; 2] {
    if dim == "2" { ["quad", "tri"] } else { ["hex", "tet"] }
}

#[test]
fn solutions_in_the_space_have_no_error() {
    let cases = EXACT.iter().flat_map(|case| cells(case.0).map(|cell| (case, cell)));
    let all: Vec<(String, f64)> = cases
        .collect::<Vec<_>>()
        .into_par_iter()
        .flat_map_iter(|(&(dim, form, solutions), cell)| {
            solutions.into_iter().zip(2..).map(move |(solution, degree)| {
                // Natural conditions on two sides, one of which has cells of different size.
                let text = format!(
                    "form f {{ {form} }} problem p solves f {{ mesh = box(dim: {dim}, cells: 2, cell: {cell});
                    degree = {degree}; manufactured {solution}; dirichlet E on \"x0\", \"y0\"; solver = direct; }}"
                );
                let (_, estimate) =
                    refined(&text, |mesh, cell| mesh.centre(cell).iter().sum::<f64>() > 1.4);
                (text, estimate.relative().expect("an energy"))
            })
        })
        .collect();
    assert_eq!(all.len(), 16);
    for (text, relative) in all {
        assert!(relative < ROUNDING, "{text}: {relative}");
    }
}

#[test]
fn the_estimate_is_near_the_error() {
    let known = [
        "E = [sin(2 * x[1]) + x[0]^2 * exp(x[1]), cos(3 * x[0]) * x[1]]",
        "E = [sin(2 * x[1]) + x[2], cos(x[0]) * exp(x[2]), x[0] * sin(x[1])]",
        "E = [sin(2 * x[0]) * x[1] + cos(2 * x[1]), cos(x[1]) * exp(x[0])]",
        "E = [sin(2 * x[0]) * x[1], cos(x[1]) * exp(x[2]) + x[0], x[2]^2 + sin(x[1])]",
    ];
    let cases = EXACT.iter().zip(known).flat_map(|(case, known)| {
        let count = |cell: &str| match cell {
            "quad" => 6,
            "tri" => 5,
            _ => 2,
        };
        cells(case.0).into_iter().flat_map(move |cell| {
            let degrees = 1..=if case.0 == "2" { 4 } else { 2 };
            degrees.map(move |degree| (case, known, cell, count(cell), degree))
        })
    });
    let cases: Vec<_> = cases.collect();
    let all: Vec<(String, f64)> = cases
        .into_par_iter()
        .map(|(&(dim, form, _), known, cell, count, degree)| {
            let form = form.replace("2 * E", "E").replace("3 * ", "");
            let text = format!(
                "form f {{ {form} }} problem p solves f {{ mesh = box(dim: {dim}, cells: {count}, cell: {cell});
                degree = {degree}; manufactured {known}; dirichlet E on \"x0\", \"y0\"; solver = direct; }}"
            );
            let (solution, estimate) = estimated(&text);
            (text, estimate.total.sqrt() / solution.errors[0].2)
        })
        .collect();
    for (text, ratio) in all {
        println!("{ratio:.3} {text}");
        assert!((0.5..2.0).contains(&ratio), "{text}: {ratio}");
    }
}
