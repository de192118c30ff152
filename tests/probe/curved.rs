//! Mass terms on curved cells, against integrals over the boundary.

use std::path::{Path, PathBuf};

use super::boundary::{Boundary, gauss};
use super::polynomial::{Polynomial, constant};
use super::{Probed, assert_by_hand, number};

fn mesh(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

const PI: f64 = std::f64::consts::PI;

/// Curved meshes, their dimension, and the measure of the approximated shape, if there is a formula.
const MESHES: [(&str, usize, Option<f64>); 6] = [
    ("meshes/plate_hole_quad9.msh", 2, Some(2.0 - 0.04 * PI)),
    ("runtime/tests/meshes/disc_tri_o3.msh", 2, Some(PI)),
    ("runtime/tests/meshes/disc_quad_o3.msh", 2, Some(PI)),
    ("meshes/elbow_hex27.msh", 3, Some(0.75 * PI)),
    ("meshes/bracket_tet10.msh", 3, None),
    ("runtime/tests/meshes/cylinder_tet_o3.msh", 3, Some(PI)),
];

/// Each boundary is closed and encloses its shape, and the reference rule is correct.
#[test]
fn the_hand_itself() {
    for (name, dim, measure) in MESHES {
        let boundary = Boundary::read(&mesh(name));
        assert!(boundary.flux(|_| 1.0).abs() < 1e-13, "{name} has an open boundary");
        assert!(boundary.flux(|x| x[1] * x[1] + x[dim - 1]).abs() < 1e-12, "{name}");
        let found = boundary.integral(&constant(1.0));
        assert!(found > 1.0, "{name}: {found}");
        let near = |measure: f64| (found - measure).abs() < 1e-3 * measure;
        assert!(measure.is_none_or(near), "{name}: {found}, {measure:?}");
    }
    let degree_31: f64 = gauss(16).iter().map(|(t, w)| w * t.powi(31)).sum();
    assert!((degree_31 - 1.0 / 32.0).abs() < 1e-15);
}

/// Compares ∫ (a u + u³) v and its derivative ∫ (a + 3u²) w v: the mesh, degree k of the space, degree of the
/// functions, and an exact quadrature.
fn mass_terms(cases: &[(&str, u32, u32, u32)]) {
    let form = Probed::new("form mass { field u: scalar; param a = 2; f0[u] = a * u + u^3; }");
    for &(name, degree, functions, quadrature) in cases {
        let path = mesh(name);
        let boundary = Boundary::read(&path);
        let (_, dim, _) = MESHES.into_iter().find(|(other, ..)| *other == name).expect("a mesh");
        let [u, w, v] = [1, 2, 3].map(|seed| Polynomial::full(dim, functions, seed).times(0.25));
        let found = form.probe(&[
            format!("--mesh={}", path.display()),
            format!("--degree={degree}"),
            format!("--quadrature={quadrature}"),
            format!("--at=u={u}"),
            format!("--direction=u={w}"),
            format!("--test=u={v}"),
        ]);
        let square = u.clone() * &u;
        let residual = boundary.integral(&((constant(2.0) + &square) * &u * &v));
        let jacobian = boundary.integral(&((constant(2.0) + square.times(3.0)) * &w * &v));
        let what = format!("{name} of degree {degree}");
        assert_by_hand(number(&found, "residual"), residual, &what);
        assert_by_hand(number(&found, "jacobian"), jacobian, &what);
    }
}

#[test]
fn mass_terms_in_the_plane() {
    mass_terms(&[
        ("meshes/plate_hole_quad9.msh", 2, 1, 11),
        ("meshes/plate_hole_quad9.msh", 4, 2, 19),
        ("runtime/tests/meshes/disc_tri_o3.msh", 3, 1, 16),
        ("runtime/tests/meshes/disc_quad_o3.msh", 3, 1, 17),
    ]);
}

#[test]
fn mass_terms_on_curved_hexahedra() {
    mass_terms(&[("meshes/elbow_hex27.msh", 2, 1, 13), ("meshes/elbow_hex27.msh", 4, 2, 21)]);
}

#[test]
fn mass_terms_on_curved_tetrahedra() {
    mass_terms(&[
        ("meshes/bracket_tet10.msh", 2, 1, 11),
        ("meshes/bracket_tet10.msh", 4, 2, 19),
        ("runtime/tests/meshes/cylinder_tet_o3.msh", 3, 1, 18),
    ]);
}
