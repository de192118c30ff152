//! Fields in Hcurl and Hdiv around a corner: adaptive meshes have the rate of smooth solutions, uniform ones have not.

use super::{Step, Steps, compiled, rate, run};
use kernels_gen::element::{Element, Whitney, WhitneyFamily};
use rayon::prelude::*;
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::mesh::Mesh;
use runtime::problem::{Platform, run_steps};
use runtime::processes::threads::each;
use runtime::space::discretisation::Discretisation;
use std::convert::Infallible;
use std::sync::Arc;

/// The gradient of r^(2/3) cos(2φ/3), with φ from the corner's axis.
const SINGULAR: &str = "let a = atan2(x[0] - x[1], -x[0] - x[1]) / 3; \
     let g = 2 / 3 * dot(x, x)^(-1 / 6) / sqrt(2) * [sin(a) - cos(a), -sin(a) - cos(a)];";
const EXACT: &str = "2 / 3 * dot(x, x)^(-1 / 6) / sqrt(2) * \
     [sin(atan2(x[0] - x[1], -x[0] - x[1]) / 3) - cos(atan2(x[0] - x[1], -x[0] - x[1]) / 3), \
     -sin(atan2(x[0] - x[1], -x[0] - x[1]) / 3) - cos(atan2(x[0] - x[1], -x[0] - x[1]) / 3)]";
const PRESSURE: &str = "dot(x, x)^(1 / 3) * cos(2 / 3 * atan2(x[0] - x[1], -x[0] - x[1]))";

/// Returns the forms, and the part of their solution whose error has the estimate's norm.
fn problems(cell: &str, degree: usize, adapt: &str) -> [(String, fn(&Step) -> f64); 2] {
    let mesh = format!("mesh = lshape(dim: 2, refine: 1, cell: {cell}); degree = {degree};");
    let maxwell = format!(
        "form maxwell {{ field E: vector in Hcurl(k); {SINGULAR} f1[E] = curl(E); f0[E] = E - g; }} \
         problem p solves maxwell {{ {mesh} exact E = {EXACT}; dirichlet E; solver = direct; {adapt} }}"
    );
    let mixed = format!(
        "form mixed {{ field u: vector in Hdiv(k); field p: scalar in L2(k - 1); test v for u; test q for p; \
         residual = dot(u, v) + p * div(v) + div(u) * q; \
         on boundary \"boundary\" {{ residual = -({PRESSURE}) * dot(v, n); }} }} \
         problem p solves mixed {{ {mesh} exact u = {EXACT}; solver = direct; {adapt} }}"
    );
    [(maxwell, |step| step.errors[0].2), (mixed, |step| step.errors[0].1)]
}

#[test]
fn around_a_corner_errors_fall_as_for_smooth_solutions() {
    let cases = [("quad", 1, 6000, 4), ("quad", 2, 6000, 5), ("tri", 2, 6000, 6)];
    let cases: Vec<_> = cases
        .into_iter()
        .flat_map(|(cell, degree, most, last)| {
            let adapt = format!("adapt(steps: 60, fraction: 0.5, max_dofs: {most});");
            problems(cell, degree, &adapt).map(|(text, error)| (text, error, degree, last))
        })
        .collect();
    cases.into_par_iter().for_each(|(text, error, degree, last)| {
        let (solution, steps) = run(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let tail = &steps[steps.len() - last..];
        let errors = rate(tail, error);
        let estimates = rate(tail, |step| step.estimate.expect("an estimate"));
        let wanted = degree as f64 / 2.0;
        assert!((errors - wanted).abs() < 0.1, "errors fall with {errors}: {text}");
        assert!((estimates - wanted).abs() < 0.1, "estimates fall with {estimates}: {text}");
        // With as many unknowns, the error of the next uniform mesh is 2^(−2/3) times that of the last one.
        let [first, last] = [&steps[0], &steps[steps.len() - 1]];
        let uniform = error(first) * (first.dofs as f64 / last.dofs as f64).powf(1.0 / 3.0);
        assert!(error(last) < 0.5 * uniform, "{} and {uniform}: {text}", error(last));
        assert!(solution.errors[0].1 > 0.0);
    });
}

#[test]
fn several_processes_take_the_steps_of_one() {
    let cases = ["quad", "tri"].into_iter().flat_map(|cell| problems(cell, 2, "adapt(steps: 4);"));
    for (text, error) in cases {
        let (_, alone) = run(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let (problem, mesh) = compiled(&text);
        let mesh = Arc::new(mesh);
        let found = each(3, |group| {
            let mut steps = Steps::default();
            let part = Arc::clone(&mesh).part(&group);
            run_steps(&problem, part, None, &Platform::native(), &mut steps).expect("a solution");
            steps.0
        });
        for steps in found {
            assert_eq!(steps.len(), alone.len(), "{text}");
            for (own, known) in steps.iter().zip(&alone) {
                assert_eq!((own.cells, own.dofs), (known.cells, known.dofs), "{text}");
                let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * b;
                assert!(near(error(own), error(known)), "{own:?}, not {known:?}: {text}");
                let [a, b] = [own, known].map(|step| step.estimate.expect("an estimate"));
                assert!(near(a, b), "{a}, not {b}: {text}");
            }
        }
    }
}

/// A gradient, on a mesh with edges that hang on the boundary: the conditions have no curl.
#[test]
fn conditions_where_edges_hang_keep_the_curl() {
    let c = "cos(x[0] + 2 * x[1]) * exp(x[2])";
    let known = format!("[{c}, 2 * {c}, sin(x[0] + 2 * x[1]) * exp(x[2])]");
    for condition in ["dirichlet E;", "dirichlet E; dirichlet E = KNOWN on \"z1\";"] {
        let text = format!(
            "form maxwell {{ field E: vector in Hcurl(k); f1[E] = curl(E); f0[E] = E - {known}; }} \
             problem p solves maxwell {{ mesh = box(dim: 3, cells: 2); degree = 2; {} \
             exact E = {known}; solver = direct; adapt(steps: 1, fraction: 0.3); }}",
            condition.replace("KNOWN", &known)
        );
        let (solution, _) = run(&text).unwrap_or_else(|error| panic!("{error}"));
        let (_, values, all) = solution.errors[0];
        let curl = (all * all - values * values).sqrt();
        assert!(curl < 0.03 * values, "{curl} and {values}");
    }
}

#[test]
fn fields_go_from_mesh_to_mesh_exactly_where_spaces_have_them() {
    let families = [WhitneyFamily::Curl, WhitneyFamily::Div];
    let cells = [("quad", 2), ("hex", 3), ("tri", 2), ("tet", 3)];
    let cases: Vec<_> = cells.iter().flat_map(|cell| families.map(|of| (*cell, of))).collect();
    cases.into_par_iter().for_each(|((cell, dim), family)| {
        let mut adaptive = super::grown(cell, dim);
        let on = |mesh: Mesh| {
            let element = Whitney::new(mesh.cell(), 2, family).expect("an element");
            Discretisation::new(mesh, &[(Element::from(element), 1)]).expect("a discretisation")
        };
        let function = |x: &[f64; 3]| {
            let all = [1.0 + x[0] - 2.0 * x[1] + x[2], x[0] + 3.0 * x[1], x[2] - x[0] + 0.5];
            all.into_iter().take(dim)
        };
        let values = |on: &Discretisation| {
            let at = |points: &[[f64; 3]]| {
                Ok::<_, Infallible>(points.iter().flat_map(function).collect())
            };
            let found = on.fields[0].space.interpolate_vectors(&on.mesh, at);
            found.expect("a map").expect("numbers")
        };
        let compare = |from: &Discretisation, to: &Discretisation, name: &str| {
            let found = AdaptiveMesh::transfer(from, &values(from), to).expect("one forest");
            for (found, wanted) in found.iter().zip(values(to)) {
                assert!(
                    (found - wanted).abs() < 1e-13,
                    "{name} {cell} {family}: {found}, {wanted}"
                );
            }
        };
        let before = on(adaptive.mesh().expect("a mesh"));
        let n = before.mesh.n_cells();
        let refine: Vec<bool> = (0..n).map(|cell| cell % 3 == 0).collect();
        let coarsen: Vec<bool> = (0..n).map(|cell| cell % 3 != 0 || cell > n / 2).collect();
        let changed = adaptive.adapt(&before.mesh, &refine, &coarsen).expect("few cells");
        assert!(changed.refined > 0, "{cell}");
        let after = on(adaptive.mesh().expect("a mesh"));
        compare(&before, &after, "both");
        let all = vec![true; after.mesh.n_cells()];
        let changed = adaptive.adapt(&after.mesh, &[], &all).expect("fewer cells");
        assert!(changed.coarsened > 0, "{cell}");
        let coarser = on(adaptive.mesh().expect("a mesh"));
        compare(&after, &coarser, "coarser");
        // Divided cells have the same function.
        let u: Vec<f64> = (0..coarser.n_dofs()).map(|i| (0.7 * i as f64).sin()).collect();
        let fine = AdaptiveMesh::transfer(&coarser, &u, &after).expect("one forest");
        let back = AdaptiveMesh::transfer(&after, &fine, &coarser).expect("one forest");
        for (found, wanted) in back.iter().zip(&u) {
            assert!((found - wanted).abs() < 1e-12, "back {cell} {family}: {found}, {wanted}");
        }
    });
}
