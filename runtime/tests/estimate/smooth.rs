//! Solutions outside the space: η against the known error.

use super::{error, estimated, of_solution, problem, solved};

const WAVE: &str = "sin(3 * x[0]) * exp(x[1])";
/// Zero on the unit circle: boundary interpolation of other values is no residual.
const HAT: &str = "(1 - dot(x, x)) * exp(2 * x[0])";
const WAVES: &str = "sin(2 * x[0]) * exp(x[1]) * cos(x[2] + 1)";

fn poisson(mesh: &str, degree: usize, solution: &str, more: &str) -> String {
    format!(
        "form f {{ field u: scalar; f1[u] = grad(u); }} problem p solves f {{ mesh = {mesh}; degree = {degree};
        manufactured u = {solution}; dirichlet u on all; {more} }}"
    )
}

#[test]
fn the_estimate_is_near_the_error() {
    let mut worst = [f64::INFINITY, 0.0];
    for (mesh, degrees, solution) in [
        ("box(dim: 2, cells: 6, cell: quad)", 1..=6, WAVE),
        ("box(dim: 2, cells: 6, cell: quad, deform: 0.1)", 1..=4, WAVE),
        ("box(dim: 2, cells: 5, cell: tri)", 1..=4, WAVE),
        ("ball(dim: 2, refine: 2, order: 2)", 1..=3, HAT),
        ("ball(dim: 2, refine: 2, order: 2, cell: tri)", 1..=3, HAT),
        ("ball(dim: 3, refine: 1, order: 2)", 1..=2, HAT),
        ("box(dim: 3, cells: 3, cell: hex)", 1..=3, WAVES),
        ("box(dim: 3, cells: 2, cell: hex, deform: 0.1)", 1..=3, WAVES),
        ("box(dim: 3, cells: 2, cell: tet)", 1..=3, WAVES),
    ] {
        for degree in degrees {
            let (solved, estimate) = estimated(&poisson(mesh, degree, solution, ""));
            let ratio = estimate.total.sqrt() / error(&solved, 0);
            println!("{mesh}, degree {degree}: {ratio:.3}");
            worst = [worst[0].min(ratio), worst[1].max(ratio)];
            assert!((0.5..2.0).contains(&ratio), "{mesh}, degree {degree}: {ratio}");
            let relative = estimate.relative().expect("an energy");
            assert_eq!(relative, (estimate.total / estimate.energy).sqrt());
            let whole: f64 = estimate.squares.iter().sum();
            assert!((whole - estimate.total).abs() <= 1e-12 * whole);
        }
    }
    println!("between {:.3} and {:.3} of the error", worst[0], worst[1]);
}

/// η decreases like the error, and localises it at a layer.
#[test]
fn the_estimate_finds_a_layer() {
    let text = poisson("box(dim: 2, cells: 8)", 2, "exp(-20 * x[0])", "");
    let (solution, estimate) = estimated(&text);
    let mesh = &solution.context.on.mesh;
    let within = (0..mesh.n_cells()).filter(|&cell| mesh.centre(cell)[0] < 0.125);
    let within: f64 = within.map(|cell| estimate.squares[cell]).sum();
    assert!(within > 0.95 * estimate.total, "{within} of {}", estimate.total);
}

/// Coefficients cancel in η / ‖u‖, also if they jump between cells.
#[test]
fn the_estimate_has_the_units_of_the_energy() {
    let text = |kappa: &str| {
        format!(
            "form f {{ field u: scalar; param kappa = {kappa}; f1[u] = kappa * grad(u); f0[u] = -kappa * exp(x[0]); }}
            problem p solves f {{ mesh = box(dim: 2, cells: 5); degree = 2; dirichlet u = 0 on \"x0\"; }}"
        )
    };
    let (_, one) = estimated(&text("1"));
    for kappa in ["1e-6", "3", "1e7", "-2"] {
        let (_, other) = estimated(&text(kappa));
        let [a, b] = [&one, &other].map(|of| of.relative().expect("an energy"));
        assert!((a - b).abs() <= 1e-6 * a, "{a} {b} with {kappa}");
        let factor: f64 = kappa.parse().expect("a number");
        assert!((other.total / (one.total * factor.abs()) - 1.0).abs() < 1e-6);
    }
    // Layers across which κ ∂u/∂x is continuous: u has a kink where κ jumps.
    for contrast in ["1", "1e3", "1e-5"] {
        let (solution, estimate) = estimated(&format!(
            "form f {{ field u: scalar; aux kappa: scalar on cells; f1[u] = kappa * grad(u);
                f0[u] = -sin(3 * x[0]); }}
            problem p solves f {{ mesh = box(dim: 2, cells: 8); degree = 2; dirichlet u = 0 on \"x0\";
                aux kappa = if x[0] > 0.5 {{ {contrast} }} else {{ 1 }};
                exact u = if x[0] > 0.5 {{ (sin(3 * x[0]) / 9 - x[0] * cos(3) / 3 - sin(1.5) / 9 + cos(3) / 6) / {contrast}
                    + sin(1.5) / 9 - cos(3) / 6 }} else {{ sin(3 * x[0]) / 9 - x[0] * cos(3) / 3 }}; }}"
        ));
        // The energy of the error from energies, ‖u‖² − ‖u_h‖², with homogeneous boundary values.
        let flux = |x: f64| (3.0 * x).cos() / 3.0 - 3.0f64.cos() / 3.0;
        let n = 20_000;
        let factor: f64 = contrast.parse().expect("a number");
        let exact: f64 = (0..n)
            .map(|i| {
                let x = (f64::from(i) + 0.5) / f64::from(n);
                flux(x).powi(2) / if x > 0.5 { factor } else { 1.0 } / f64::from(n)
            })
            .sum();
        let error = (exact - estimate.energy).sqrt();
        let ratio = estimate.total.sqrt() / error;
        assert!((0.6..1.6).contains(&ratio), "{ratio} with {contrast}: {:?}", solution.errors);
    }
}

#[test]
fn several_fields_have_one_estimate() {
    let text = |cells: usize, nu: &str| {
        format!(
            "form stokes {{ field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = {nu};
                f1[u] = nu * grad(u) - p * I; f0[p] = -div(u); }}
            problem p solves stokes {{ mesh = box(dim: 2, cells: {cells}); degree = 2; dirichlet u on all; mean p = 0;
                manufactured u = [sin(2 * x[1]) * exp(x[0]), 0.5 * cos(2 * x[1]) * exp(x[0])];
                manufactured p = nu * (sin(3 * x[0]) - (1 - cos(3)) / 3); }}"
        )
    };
    let mut last = None;
    for (cells, nu) in [(4, "1"), (8, "1"), (8, "1e-3")] {
        let (solution, estimate) = estimated(&text(cells, nu));
        let nu: f64 = nu.parse().expect("a number");
        let of_p = solution.errors[1].1;
        let error = (nu * error(&solution, 0).powi(2) + of_p * of_p / nu).sqrt();
        let ratio = estimate.total.sqrt() / error;
        assert!((0.5..2.5).contains(&ratio), "{cells} {nu}: {ratio}");
        let names: Vec<&str> = estimate.fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["u", "p"]);
        assert!(estimate.fields.iter().all(|field| field.residual > 0.0));
        assert_eq!(estimate.fields[1].jumps, 0.0);
        let relative = estimate.relative().expect("an energy");
        if let Some(last) = last.filter(|_| nu == 1.0) {
            assert!(relative < 0.3 * last, "{relative} after {last}");
        }
        last = Some(relative);
    }
}

#[test]
fn elasticity_and_nonlinear_forms_are_estimated() {
    // u is the curl of sin² πx sin² πy, so it vanishes on the boundary and is divergence-free: ‖u‖² = ∫ |∇u|² = 2 π⁴
    // for any λ, and the error has ‖u‖² − ‖u_h‖².
    let elastic = "form f { field u: vector; param lambda = LAMBDA; let eps = sym(grad(u)); f1[u] = lambda * tr(eps) * I + 2 * eps; }
        problem p solves f { mesh = box(dim: 2, cells: 8); degree = 2; dirichlet u on all;
            manufactured u = [pi * sin(pi * x[0])^2 * sin(2 * pi * x[1]), -pi * sin(2 * pi * x[0]) * sin(pi * x[1])^2]; }";
    for lambda in ["0", "1", "1000"] {
        let (_, estimate) = estimated(&elastic.replace("LAMBDA", lambda));
        let error = (2.0 * std::f64::consts::PI.powi(4) - estimate.energy).sqrt();
        let ratio = estimate.total.sqrt() / error;
        println!("lambda = {lambda}: {ratio:.3}");
        // For larger λ, more of the residual comes from the divergence that the space cannot avoid.
        assert!((0.5..5.0).contains(&ratio), "{lambda}: {ratio}");
    }
    let text = |cells: usize| {
        format!(
            "form f {{ field u: scalar; f1[u] = (1 + u^2) * grad(u); f0[u] = u^3; }}
            problem p solves f {{ mesh = box(dim: 2, cells: {cells}, cell: tri); degree = 2; dirichlet u on all;
                manufactured u = {WAVE}; }}"
        )
    };
    let mut ratios = Vec::new();
    for cells in [4, 8] {
        let (solution, estimate) = estimated(&text(cells));
        ratios.push(estimate.total.sqrt() / error(&solution, 0));
    }
    // The energy of the Jacobian has the coefficient 1 + u² between 1 and 8.4.
    assert!(ratios.iter().all(|ratio| (0.8..3.0).contains(ratio)), "{ratios:?}");
    assert!((ratios[0] / ratios[1] - 1.0).abs() < 0.2, "{ratios:?}");
}

/// At Fichera's corner the source of r^(1/2) has an infinite norm: its contribution must not grow with the number of
/// quadrature points.
#[test]
fn a_singular_source_counts_as_its_moments_do() {
    let at_corner = |quadrature: usize| {
        let text = poisson(
            "lshape(dim: 3, refine: 1)",
            2,
            "dot(x, x)^(1 / 4)",
            &format!("quadrature = {quadrature};"),
        );
        let (problem, mesh) = problem(&text);
        let solution = solved(&problem, mesh);
        let estimate = of_solution(&problem, &solution);
        let mesh = &solution.context.on.mesh;
        let corner = |cell: &usize| {
            mesh.vertices(*cell)
                .iter()
                .any(|&vertex| mesh.points()[vertex as usize].iter().all(|x| x.abs() < 1e-12))
        };
        let own: Vec<f64> =
            (0..mesh.n_cells()).filter(corner).map(|cell| estimate.squares[cell]).collect();
        assert_eq!(own.len(), 7);
        (own.iter().sum::<f64>().sqrt(), estimate.total.sqrt(), error(&solution, 0))
    };
    let found = [4, 8, 14].map(at_corner);
    println!("{found:?}");
    for (corner, total, error) in found {
        assert!((0.3..3.0).contains(&(total / error)), "{found:?}");
        assert!((corner / found[0].0 - 1.0).abs() < 0.5, "{found:?}");
    }
    // From five to eight points per direction the result is converged.
    assert!((found[2].0 / found[1].0 - 1.0).abs() < 0.1, "{found:?}");
}
