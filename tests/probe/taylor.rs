//! The Jacobian is the derivative of the residual: R(u + hw)·v − R(u)·v − h v·J(u)w falls as h².

use super::{Probed, number};

/// No part of it is a polynomial in u.
const FORM: &str = "form p {
    field u: scalar;
    aux a: scalar on points;
    let s = sqrt(1 + dot(grad(u), grad(u)));
    f0[u] = exp(u) / (2 + sin(u)) - a * log(s) * dot(grad(u), x);
    f1[u] = (a + atan(u)) / s * grad(u) + (if x[0] > 0.5 { u^3 } else { cosh(u) }) * x;
}";

fn orders(mesh: &str, degree: u32) {
    let form = Probed::new(FORM);
    let (u, w) = ("0.3 + x[0] * x[1] - 0.2 * x[1]^2", "sin(2 * x[0]) - x[1]");
    let probe = |at: &str| {
        form.probe(&[
            format!("--mesh={mesh}"),
            format!("--degree={degree}"),
            "--aux=a=1 + x[0]^2".to_owned(),
            format!("--at=u={at}"),
            format!("--direction=u={w}"),
            "--test=u=1 + x[0] - x[1]^2".to_owned(),
        ])
    };
    let start = probe(u);
    let (residual, slope) = (number(&start, "residual"), number(&start, "jacobian"));
    let remainders: Vec<f64> = (3..8)
        .map(|i| {
            let h = 0.5_f64.powi(i);
            let moved = number(&probe(&format!("{u} + {h} * ({w})")), "residual");
            (moved - residual - h * slope).abs()
        })
        .collect();
    for pair in remainders.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((order - 2.0).abs() < 0.15, "{mesh}: order {order}, {remainders:?}");
    }
    assert!(remainders[4] > 1e-12 * residual.abs(), "{mesh}: nothing but rounding is left");
}

#[test]
fn on_deformed_hexahedra() {
    orders("box(dim: 3, cells: 2, deform: 0.15)", 2);
}

#[test]
fn on_triangles() {
    orders("box(dim: 2, cells: 3, cell: tri)", 3);
}

#[test]
fn on_curved_quadrilaterals() {
    let path = format!("{}/meshes/plate_hole_quad9.msh", env!("CARGO_MANIFEST_DIR"));
    orders(&path, 2);
}

#[test]
fn on_tetrahedra() {
    orders("box(dim: 3, cells: 1, cell: tet)", 2);
}
