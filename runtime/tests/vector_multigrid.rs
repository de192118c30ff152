//! Multigrid in H(curl) and H(div): transfers include the coarse space in the fine one and commute with derivatives;
//! iterations do not depend on the mesh, the degree and the coefficients, and are compared with a table.

use super::devices::devices;
use super::multigrid::adapted;
use super::vector_fields::{solved, solved_on};
use fem_dsl::problem::Argument;
use kernels_gen::abi::Precision;
use kernels_gen::element::{Element, Lagrange, Whitney, WhitneyFamily};
use runtime::algebra::vector::Vector;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::generate::generate;
use runtime::mesh::{CoarsenedMesh, Mesh};
use runtime::operator::TableCache;
use runtime::problem::multigrid::transfer::{KernelTransfer, TransferEnvironment};
use runtime::problem::{Platform, ReportValue, Solution};
use runtime::space::derivative::DiscreteDerivative;
use runtime::space::discretisation::Discretisation;
use runtime::space::inclusion::Inclusion;
use std::convert::Infallible;
use std::f64::consts::PI;
use std::sync::Arc;

const FAMILIES: [WhitneyFamily; 2] = [WhitneyFamily::Curl, WhitneyFamily::Div];

fn boxed(dim: f64, cells: f64) -> Mesh {
    let numbers = [("dim", dim), ("cells", cells)];
    let numbers = numbers.map(|(key, value)| (key.to_owned(), Argument::Number(value)));
    generate("box", &numbers.into()).expect("a mesh")
}

fn discretised(mesh: &Arc<Mesh>, element: impl Into<Element>) -> Discretisation {
    Discretisation::new(Arc::clone(mesh), &[(element.into(), 1)]).expect("a space")
}

fn whitney(mesh: &Arc<Mesh>, degree: usize, family: WhitneyFamily) -> Discretisation {
    discretised(mesh, Whitney::new(mesh.cell(), degree as i64, family).expect("an element"))
}

fn place() -> TransferEnvironment {
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    TransferEnvironment { platform: target.into(), table_cache: TableCache::default(), fine: None }
}

/// Returns the interpolant of a field whose components are polynomials of a degree along each axis, on simplices of that
/// degree in sum.
fn interpolant(on: &Discretisation, degree: i32) -> Vec<f64> {
    let dim = on.mesh.dim();
    let f = |points: &[[f64; 3]]| -> Result<Vec<f64>, Infallible> {
        let value = |x: &[f64; 3], c: usize| {
            let [x, y, z] = x.map(|x| 0.3 + x);
            let first = if on.mesh.cell().is_tensor() { x * y } else { x + y };
            (c as f64 + 1.0) * first.powi(degree) + z.powi(degree) + 0.25
        };
        Ok(points.iter().flat_map(|x| (0..dim).map(move |c| value(x, c))).collect())
    };
    let found = on.fields[0].space.interpolate_vectors(&on.mesh, f).expect("a map");
    found.unwrap_or_else(|never| match never {})
}

fn random(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed) % 1009) as f64 / 1009.0 - 0.5).collect()
}

fn near(name: &str, found: &[f64], expected: &[f64]) {
    let scale = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    assert!(scale > 0.0);
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs();
        assert!(off < 1e-13 * scale, "{name}: {found} instead of {expected} at {i}");
    }
}

fn prolonged(between: &KernelTransfer, x: &[f64], n: usize) -> Vec<f64> {
    let (mut coarse, mut fine) = (between.vector(), Vector::zeros(n, Precision::F64));
    coarse.set(x);
    between.prolong(&coarse, &mut fine).expect("P");
    fine.to_vec()
}

/// Checks that P maps interpolants to interpolants, and that x · Pᵀ y = y · P x.
fn check(name: &str, between: &KernelTransfer, [coarse, fine]: [&Discretisation; 2]) {
    let degree = coarse.fields[0].space.element().degree() as i32 - 1;
    let found = prolonged(between, &interpolant(coarse, degree), fine.n_dofs());
    if degree > 0 {
        near(name, &found, &interpolant(fine, degree));
    }
    let (x, y) = (random(coarse.n_dofs(), 3), random(fine.n_dofs(), 77));
    let of_x = prolonged(between, &x, fine.n_dofs());
    let (mut restricted, mut of_y) = (between.vector(), Vector::zeros(y.len(), Precision::F64));
    of_y.set(&y);
    between.restrict(&of_y, &mut restricted).expect("P transposed");
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    near(name, &[dot(&restricted.to_vec(), &x)], &[dot(&of_x, &y)]);
}

/// Returns the derivative of a potential.
fn derivative([from, to]: [&Discretisation; 2], x: &[f64]) -> Vec<f64> {
    let matrix = DiscreteDerivative::new(&from.fields[0].space, &to.fields[0].space);
    let matrix = matrix.expect("a derivative");
    let row = |row| matrix.row(row).map(|(column, entry)| entry * x[column as usize]).sum();
    (0..matrix.n_rows()).map(row).collect()
}

/// The spaces of a complex, with the potential before the field.
fn complex(mesh: &Arc<Mesh>, degree: usize) -> Vec<[Discretisation; 2]> {
    let nodal =
        || discretised(mesh, Lagrange::continuous(mesh.cell(), degree).expect("an element"));
    let [curl, div] = FAMILIES.map(|family| whitney(mesh, degree, family));
    match mesh.dim() {
        2 => vec![[nodal(), curl], [nodal(), div]],
        _ => vec![[nodal(), curl.clone()], [curl, div]],
    }
}

#[test]
fn transfers_between_degrees_are_inclusions_and_commute_with_derivatives() {
    for (dim, cells) in [(2.0, 3.0), (3.0, 2.0)] {
        let mesh = Arc::new(boxed(dim, cells));
        for (low, high) in [(1, 2), (2, 3), (2, 4)] {
            let (coarse, fine) = (complex(&mesh, low), complex(&mesh, high));
            for ([from, to], [fine_from, fine_to]) in coarse.iter().zip(&fine) {
                let name = format!("{}, degree {low} to {high}", to.fields[0].space.element());
                let between = |coarse, fine| {
                    KernelTransfer::degrees(coarse, fine, &place()).expect("kernels")
                };
                let (of_potential, own) = (between(from, fine_from), between(to, fine_to));
                check(&name, &own, [to, fine_to]);
                let x = random(from.n_dofs(), 5);
                let first = prolonged(&own, &derivative([from, to], &x), fine_to.n_dofs());
                let last = prolonged(&of_potential, &x, fine_from.n_dofs());
                near(&name, &first, &derivative([fine_from, fine_to], &last));
            }
        }
    }
}

#[test]
fn transfers_from_coarser_meshes_are_so_too() {
    for (dim, cells) in [(2.0, 4.0), (3.0, 4.0)] {
        let mesh = Arc::new(boxed(dim, cells));
        let coarser = mesh.coarsened().expect("a coarser mesh");
        let (coarse, fine) = (complex(&coarser.mesh, 1), complex(&mesh, 1));
        for ([from, to], [fine_from, fine_to]) in coarse.iter().zip(&fine) {
            let name = format!("{} on a coarser mesh", to.fields[0].space.element());
            let between = |coarse, fine| {
                KernelTransfer::children(coarse, fine, &coarser, &place()).expect("kernels")
            };
            let (of_potential, own) = (between(from, fine_from), between(to, fine_to));
            check(&name, &own, [to, fine_to]);
            near(
                &name,
                &prolonged(&own, &interpolant(to, 0), fine_to.n_dofs()),
                &interpolant(fine_to, 0),
            );
            let x = random(from.n_dofs(), 5);
            let first = prolonged(&own, &derivative([from, to], &x), fine_to.n_dofs());
            let last = prolonged(&of_potential, &x, fine_from.n_dofs());
            near(&name, &first, &derivative([fine_from, fine_to], &last));
        }
    }
}

/// Returns a product with an inclusion.
fn included(
    [coarse, fine]: [&Discretisation; 2],
    coarser: Option<&CoarsenedMesh>,
    x: &[f64],
) -> Vec<f64> {
    let [from, to] = [coarse, fine].map(|on| &*on.fields[0].space);
    let inclusion = Inclusion::new(from, to, coarser).expect("spaces of one family");
    let entry = |(column, entry): (u32, f64)| entry * x[column as usize];
    (0..to.n_dofs()).map(|row| inclusion.row(row).into_iter().map(entry).sum()).collect()
}

/// On simplices, and on the mixture of sizes and frames of an adapted mesh, inclusions are matrices.
#[test]
fn inclusions_are_exact_and_commute_with_derivatives() {
    let meshes = [("tri", 2.0), ("tet", 3.0)].map(|(cell, dim)| simplices(cell, dim));
    let hanging = adapted(boxed(2.0, 4.0));
    for mesh in meshes.into_iter().chain([hanging]) {
        let mesh = Arc::new(mesh);
        let coarser = mesh.coarsened().expect("a coarser mesh");
        let on_mesh = |low| (complex(&mesh, low), complex(&mesh, low + 1), None);
        let on_coarser = (complex(&coarser.mesh, 1), complex(&mesh, 1), Some(&coarser));
        for (coarse, fine, coarser) in [on_mesh(1), on_mesh(2), on_coarser] {
            for ([from, to], [fine_from, fine_to]) in coarse.iter().zip(&fine) {
                let (spaces, element) = ([to, fine_to], to.fields[0].space.element());
                let name = format!("{element} in {}", fine_to.fields[0].space.element());
                let degree = element.degree() as i32 - 1;
                let found = included(spaces, coarser, &interpolant(to, degree));
                if degree > 0 || coarser.is_some() {
                    near(&name, &found, &interpolant(fine_to, degree));
                }
                let x = random(from.n_dofs(), 5);
                let first = included(spaces, coarser, &derivative([from, to], &x));
                let last = match from.fields[0].space.element().whitney() {
                    Some(_) => included([from, fine_from], coarser, &x),
                    None => {
                        let between = match coarser {
                            None => KernelTransfer::degrees(from, fine_from, &place()),
                            Some(coarser) => {
                                KernelTransfer::children(from, fine_from, coarser, &place())
                            }
                        };
                        prolonged(&between.expect("kernels"), &x, fine_from.n_dofs())
                    }
                };
                near(&name, &first, &derivative([fine_from, fine_to], &last));
            }
        }
    }
}

/// Meshes that have coarser ones.
fn simplices(cell: &str, dim: f64) -> Mesh {
    let numbers = [("dim", dim), ("cells", 2.0)];
    let numbers = numbers.map(|(key, value)| (key.to_owned(), Argument::Number(value)));
    let cell = ("cell".to_owned(), Argument::Word(cell.to_owned()));
    let mesh = generate("box", &numbers.into_iter().chain([cell]).collect()).expect("a mesh");
    mesh.refined(1).expect("few cells")
}

#[test]
fn simplices_take_few_iterations() {
    for (form, (dim, _)) in FORMS.into_iter().enumerate() {
        let (degree, mesh) = match dim {
            2 => (2, "box(dim: 2, cells: 4, cell: tri); refine = 2"),
            _ => (1, "box(dim: 3, cells: 2, cell: tet); refine = 1"),
        };
        for beta in ["1e-4", "1", "1e4"] {
            let text = problem(form, degree, 1, beta, "dirichlet u = 0 * x on all;");
            let text = text.replace(&format!("box(dim: {dim}, cells: 1, deform: 0.1)"), mesh);
            let found = iterations(&text, 1)[0];
            println!("form {form}, {mesh}, degree {degree}, {beta}: {found}");
            assert!((3..=25).contains(&found), "form {form}, degree {degree}, {beta}: {found}");
        }
    }
}

/// A form in each space, with a load that is no derivative.
const FORMS: [(usize, &str); 4] = [
    (
        2,
        "field u: vector in Hcurl(k); f1[u] = curl(u); f0[u] = BETA * u - [cos(5 * x[1]) + x[0], x[0] * x[1]];",
    ),
    (
        2,
        "field u: vector in Hdiv(k); f1[u] = div(u); f0[u] = BETA * u - [cos(5 * x[1]) + x[0], x[0] * x[1]];",
    ),
    (
        3,
        "field u: vector in Hcurl(k); f1[u] = curl(u); f0[u] = BETA * u - [cos(5 * x[1]) + x[0], x[0] * x[1], x[1]^2];",
    ),
    (
        3,
        "field u: vector in Hdiv(k); f1[u] = div(u); f0[u] = BETA * u - [cos(5 * x[1]) + x[0], x[0] * x[1], x[1]^2];",
    ),
];

fn problem(form: usize, degree: usize, cells: usize, beta: &str, conditions: &str) -> String {
    let (dim, text) = FORMS[form];
    format!(
        "form f {{ {} }} problem p solves f {{ mesh = box(dim: {dim}, cells: {cells}, deform: 0.1);
         degree = {degree}; {conditions} solver = cg(rtol: 1e-8, preconditioner: multigrid); }}",
        text.replace("BETA", beta)
    )
}

fn iterations(text: &str, size: usize) -> Vec<usize> {
    let found = solved(text, size).unwrap_or_else(|error| panic!("{error}"));
    found
        .into_iter()
        .map(|solution| {
            let report = &solution.report;
            assert_eq!(report.solver, "cg", "{:?}", report.notes);
            assert!(!solution.multigrid.is_empty(), "{:?}", report.notes);
            report.iterations
        })
        .collect()
}

/// Smaller β make the gradients of the solution so large that their rounding is above 1e-8.
#[test]
fn iterations_depend_on_neither_degree_nor_coefficients() {
    for (form, (dim, _)) in FORMS.into_iter().enumerate() {
        let all: &[(usize, usize)] =
            if dim == 2 { &[(1, 16), (2, 8), (3, 8)] } else { &[(1, 8), (2, 4)] };
        for &(degree, cells) in all {
            for beta in ["1e-4", "1", "1e4"] {
                let text = problem(form, degree, cells, beta, "dirichlet u = 0 * x on all;");
                let found = iterations(&text, 1)[0];
                println!("form {form}, degree {degree}, {cells} cells, {beta}: {found}");
                assert!((3..=16).contains(&found), "form {form}, degree {degree}, {beta}: {found}");
            }
        }
    }
}

/// Potentials without a condition are determined up to a constant.
#[test]
fn natural_conditions_take_as_many_iterations() {
    for form in 0..FORMS.len() {
        let cells = if FORMS[form].0 == 2 { 16 } else { 8 };
        let found = iterations(&problem(form, 1, cells, "1", ""), 1)[0];
        assert!((3..=16).contains(&found), "form {form}: {found}");
    }
}

#[test]
fn processes_take_as_many_iterations() {
    for form in 0..FORMS.len() {
        let (degree, cells) = if FORMS[form].0 == 2 { (2, 8) } else { (1, 8) };
        let text = problem(form, degree, cells, "1e-2", "dirichlet u = 0 * x on all;");
        let alone = iterations(&text, 1)[0];
        for found in iterations(&text, 2) {
            assert!(found.abs_diff(alone) <= 1, "form {form}: {found} instead of {alone}");
        }
    }
}

#[test]
fn devices_take_as_many_iterations() {
    for device in devices() {
        for form in [0, 3] {
            let (degree, cells) = if FORMS[form].0 == 2 { (2, 8) } else { (1, 4) };
            let text = problem(form, degree, cells, "1e-2", "dirichlet u = 0 * x on all;");
            let alone = iterations(&text, 1)[0];
            let platform = Platform::new(Target::native(), Some(Arc::clone(&device)));
            let found = solved_on(&platform, &text, 1).unwrap_or_else(|error| panic!("{error}"));
            let report = &found[0].report;
            assert_eq!(report.solver, "cg", "{:?}", report.notes);
            let apart = report.iterations.abs_diff(alone);
            assert!(apart <= 1, "form {form}: {} instead of {alone}", report.iterations);
        }
    }
}

/// The levels of a nonlinear form are at the state of the step.
#[test]
fn steps_of_newton_are_solved_by_levels() {
    let solve = |solver: &str| {
        let text = format!(
            "form f {{ field A: vector in Hcurl(k); f1[A] = (1 + 0.1 * curl(A)^2) * curl(A);
                f0[A] = 0.01 * A - 20 * [cos(5 * x[1]), x[0] * x[1]]; }}
             problem p solves f {{ mesh = box(dim: 2, cells: 8, deform: 0.1); degree = 2; dirichlet A = [0, 0] on all;
                solver = {solver}; report e = integral(curl(A)^2); }}"
        );
        solved(&text, 1).unwrap_or_else(|error| panic!("{error}")).remove(0)
    };
    let [levels, direct] =
        ["newton(linear: cg, preconditioner: multigrid)", "newton(linear: direct)"].map(solve);
    assert!(!levels.multigrid.is_empty(), "{:?}", levels.report.notes);
    assert!(levels.report.newton.len() > 2, "the form should be nonlinear");
    for step in &levels.report.newton {
        assert!(step.inner_iterations <= 20, "{:?}", levels.report.newton);
    }
    let value = |solution: &Solution| match &solution.reports[0].value {
        ReportValue::Value(_, values) => values[0],
        other => panic!("a number should be reported: {other:?}"),
    };
    let (found, expected) = (value(&levels), value(&direct));
    assert!((found - expected).abs() < 1e-8 * expected, "{found} instead of {expected}");
}

/// Without a term of values gradients are the kernel, and a load is freed of them.
#[test]
fn loads_lose_their_gradients() {
    let solve = |load: &str, deform: f64| {
        let text = format!(
            "form f {{ field A: vector in Hcurl(k); f1[A] = curl(A); f0[A] = -{load}; }}
             problem p solves f {{ mesh = box(dim: 2, cells: 8, deform: {deform}); degree = 2; dirichlet A = [0, 0] on all;
                solver = cg(rtol: 1e-9, preconditioner: multigrid); report e = integral(curl(A)^2); }}"
        );
        let solution = solved(&text, 1).unwrap_or_else(|error| panic!("{error}")).remove(0);
        assert!(solution.report.iterations <= 12, "{}", solution.report.iterations);
        solution
    };
    let load = "[sin(3 * x[1]), 0]";
    // The gradient of g = x (1 − x) y (1 − y), which is in the space of potentials.
    let gradient = "[(1 - 2 * x[0]) * x[1] * (1 - x[1]), (1 - 2 * x[1]) * x[0] * (1 - x[0])]";
    let alone = solve(load, 0.0);
    let with_gradient = solve(&format!("({load} + 7 * {gradient})"), 0.0);
    let deformed = solve(&format!("({load} + 7 * {gradient})"), 0.1);
    let is_noted = |solution: &Solution| {
        solution.report.notes.iter().any(|note| note.contains("has a part of gradients"))
    };
    assert!(!is_noted(&alone) && is_noted(&with_gradient) && is_noted(&deformed));
    let value = |solution: &Solution| match &solution.reports[0].value {
        ReportValue::Value(_, values) => values[0],
        other => panic!("a number should be reported: {other:?}"),
    };
    let [found, expected, deformed] = [&with_gradient, &alone, &deformed].map(value);
    assert!((found - expected).abs() < 1e-8 * expected, "{found} instead of {expected}");
    assert!((deformed - expected).abs() < 1e-2 * expected, "{deformed} instead of {expected}");
}

fn eigenvalues(mesh: &str, degree: usize, count: usize, condition: &str) -> Vec<f64> {
    let text = format!(
        "form cavity {{ field E: vector in Hcurl(k); f1[E] = curl(E); }}
         problem p solves cavity {{ mesh = {mesh}; degree = {degree}; {condition} eigen = smallest({count}); }}"
    );
    let found = solved(&text, 1).unwrap_or_else(|error| panic!("{error}")).remove(0);
    found.modes.iter().map(|mode| mode.value).collect()
}

fn are_close(found: &[f64], known: &[f64], error: f64) {
    assert_eq!(found.len(), known.len());
    for (found, known) in found.iter().zip(known) {
        assert!((found - known).abs() < error * known, "{found} instead of {known}");
    }
}

/// n × E = 0: π² (m² + n²), and no 0.
#[test]
fn a_square_cavity_has_its_eigenvalues() {
    let square = PI * PI;
    let known = [1.0, 1.0, 2.0, 4.0, 4.0, 5.0, 5.0, 8.0].map(|of| of * square);
    let wall = "dirichlet cross(n, E) = 0 on all;";
    let [coarse, fine] =
        [3, 6].map(|cells| eigenvalues(&format!("box(dim: 2, cells: {cells})"), 2, 8, wall));
    are_close(&fine, &known, 3e-3);
    are_close(&eigenvalues("box(dim: 2, cells: 6, deform: 0.1)", 2, 8, wall), &known, 1e-2);
    let error = |found: &[f64]| (found[2] - known[2]).abs();
    let order = (error(&coarse) / error(&fine)).log2();
    assert!((order - 4.0).abs() < 0.5, "order {order}");
}

#[test]
fn a_cube_has_its_eigenvalues() {
    let known = [2.0, 2.0, 2.0, 3.0, 3.0].map(|of| of * PI * PI);
    let wall = "dirichlet cross(n, E) = [0, 0, 0] on all;";
    are_close(&eigenvalues("box(dim: 3, cells: 2)", 3, 5, wall), &known, 2e-3);
}
