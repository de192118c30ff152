//! Forms with interior blocks: polynomials have no residual, and η is near the known error.

use super::{error, estimated, of_state, problem};
use crate::multigrid::adapted;
use runtime::problem::ReportValue;

const WAVE: &str = "sin(3 * x[0]) * exp(x[1])";
const WAVES: &str = "sin(2 * x[0]) * exp(x[1]) * cos(x[2] + 1)";

/// Interior penalty, with reports of τ jump(u)² between cells and on each side.
fn interior_penalty(mesh: &str, degree: usize, eta: f64, solution: &str) -> String {
    let count = if mesh.contains("dim: 2") { 4 } else { 6 };
    let sides = &["\"x0\"", "\"x1\"", "\"y0\"", "\"y1\"", "\"z0\"", "\"z1\""][..count];
    let report = |(number, side): (usize, &&str)| {
        format!("report r{number} = integral(eta * penalty(u) * (u - {solution})^2, on: {side});")
    };
    let reports: String = sides.iter().enumerate().map(report).collect();
    let sides = sides.join(", ");
    format!(
        "form f {{ field u: scalar in L2(k); f1[u] = grad(u); param eta = {eta};
            on interior {{ energy = eta * avg(penalty(u)) / 2 * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); }}
            on boundary {sides} {{
                let g = {solution}; energy = eta * penalty(u) / 2 * (u - g)^2 - dot(grad(u), n) * (u - g);
            }} }}
        problem p solves f {{ mesh = {mesh}; degree = {degree}; manufactured u = {solution};
            report jumps = integral(eta * avg(penalty(u)) * jump(u)^2, on: interior); {reports} }}"
    )
}

#[test]
fn polynomials_have_no_residual() {
    for (mesh, hangs) in [
        ("box(dim: 2, cells: 2, cell: tri)", false),
        ("box(dim: 3, cells: 2, cell: tet)", false),
        ("box(dim: 2, cells: 2)", true),
        ("box(dim: 3, cells: 2)", true),
    ] {
        for degree in 1..=3 {
            let power = |x: &[f64; 3]| (x[0] + 2.0 * x[1] - 3.0 * x[2]).powi(degree);
            let z = if mesh.contains("dim: 2") { "" } else { " - 3 * x[2]" };
            let solution = format!("(x[0] + 2 * x[1]{z})^{degree}");
            let (problem, own) = problem(&interior_penalty(mesh, degree as usize, 2.0, &solution));
            let own = if hangs { adapted(own) } else { own };
            let (on, estimate) = of_state(&problem, own, |_, x, u| u[0] = power(x));
            assert_eq!(on.mesh.hanging().is_some(), hangs);
            let estimate = estimate.expect("an estimate");
            let relative = estimate.relative().expect("an energy");
            assert!(relative < 1e-13, "{mesh}, degree {degree}: {relative:e}");
        }
    }
}

/// The energy norm of interior penalty: ‖∇e‖² + τ ‖jump(e)‖².
#[test]
fn the_estimate_is_near_the_error() {
    for (mesh, degrees) in [
        ("box(dim: 2, cells: 4)", 1..=4),
        ("box(dim: 2, cells: 8)", 1..=2),
        ("box(dim: 2, cells: 6, deform: 0.1)", 1..=3),
        ("box(dim: 2, cells: 5, cell: tri)", 1..=4),
        ("box(dim: 3, cells: 2)", 1..=2),
        ("box(dim: 3, cells: 1, cell: tet)", 1..=3),
    ] {
        let solution = if mesh.contains("dim: 2") { WAVE } else { WAVES };
        for degree in degrees {
            for (eta, most) in [(2.0, 1.5), (20.0, 4.5)] {
                let (solved, estimate) = estimated(&interior_penalty(mesh, degree, eta, solution));
                let jumps = solved.reports.iter().map(|report| match &report.value {
                    ReportValue::Value(_, values) => values[0],
                    ReportValue::Line(..) => panic!("a number"),
                });
                let error = (error(&solved, 0).powi(2) + jumps.sum::<f64>()).sqrt();
                let ratio = estimate.total.sqrt() / error;
                println!("{mesh}, degree {degree}, eta = {eta}: {ratio:.3}");
                assert!((0.8..most).contains(&ratio), "{mesh}, degree {degree}, {eta}: {ratio}");
            }
        }
    }
}

/// Fluxes between cells of constants, with a field that has no flux in cells.
#[test]
fn fields_without_a_flux_in_cells_have_jumps() {
    let (_, estimate) = estimated(
        "form f { field u: scalar in L2(0); f0[u] = u - x[0]; on interior { f0[jump(u)] = jump(u) / (2 * avg(hn)); } }
        problem p solves f { mesh = box(dim: 2, cells: 8); degree = 1; }",
    );
    assert!(estimate.fields[0].jumps > 0.0 && estimate.fields[0].residual > 0.0);
}

/// A load on an inner surface, on which the flux of a continuous field jumps.
#[test]
fn a_load_between_cells_is_a_jump_of_the_flux() {
    for cell in ["quad", "tri"] {
        let (problem, mesh) = problem(&format!(
            "form f {{ field u: scalar; f1[u] = grad(u);
                on interior {{ f0[u] = if abs(x[0] - 0.5) < 1e-9 {{ -1 }} else {{ 0 }}; }} }}
            problem p solves f {{ mesh = box(dim: 2, cells: 4, cell: {cell}); degree = 2; dirichlet u = 0 on \"x0\"; }}"
        ));
        let state = |_: usize, x: &[f64; 3], u: &mut [f64]| u[0] = x[0].min(0.5);
        let (_, estimate) = of_state(&problem, mesh, state);
        let estimate = estimate.expect("an estimate");
        assert!(estimate.total < 1e-24, "{cell}: {}", estimate.total);
    }
}
