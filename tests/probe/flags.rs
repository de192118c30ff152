//! Options of `wf probe`: parameters, data, quadrature, and the sources of mesh and degree.

use super::polynomial::{Polynomial, x};
use super::{CELLS, Probed, assert_by_hand, number};

const BOX: &str = "--mesh=box(dim: 2, cells: 4)";

#[test]
fn parameters_are_replaced_with_what_follows_from_them() {
    let form = Probed::new(
        "form p { field u: scalar; param a = 1; param b = 2 * a; param c: vector = [a, b];
         f0[u] = b * u + dot(c, x); }",
    );
    let probe = |more: &[&str]| {
        let basic = [BOX, "--degree=1", "--interpret", "--at=u=1"];
        number(&form.probe(&[&basic[..], more].concat()), "residual")
    };
    // b + (c₀ + c₁)/2
    assert_by_hand(probe(&[]), 2.0 + 1.5, "defaults");
    assert_by_hand(probe(&["--param=a=2"]), 4.0 + 3.0, "a");
    assert_by_hand(probe(&["--param=a=2", "--param=b=-1"]), -1.0 + 0.5, "a and b");
    assert_by_hand(probe(&["--param=c=[pi, 0]", "--param=a=0"]), 0.5 * std::f64::consts::PI, "c");
}

/// Nodal data is in the space and has a gradient; data at points equals its expression; on a cell it is the value at
/// the centre.
#[test]
fn data_at_nodes_points_and_cells() {
    let form = Probed::new(
        "form p { field u: scalar; aux m: scalar; aux q: scalar on points; aux c: scalar on cells;
         f0[u] = m * u + q * u + dot(grad(m), x) + c; }",
    );
    for (dim, cell) in CELLS {
        let [u, v, n] = [1, 2, 3].map(|seed| Polynomial::full(dim, 2, seed));
        let cells = 3.0;
        let found = form.probe(&[
            format!("--mesh=box(dim: {dim}, cells: {cells}, cell: {cell})"),
            "--degree=2".to_owned(),
            "--quadrature=6".to_owned(),
            "--interpret".to_owned(),
            format!("--aux=m={n}"),
            "--aux=q=sin(x[0])".to_owned(),
            "--aux=c=0".to_owned(),
            format!("--at=u={u}"),
            format!("--test=u={v}"),
        ]);
        let flow = (0..dim).fold(Polynomial::default(), |sum, i| sum + n.derivative(i) * x(i));
        let hand = (n * &u + flow) * &v;
        // ∫ sin(x) u v is not polynomial: a second probe without the other terms is subtracted.
        let only = form.probe(&[
            format!("--mesh=box(dim: {dim}, cells: {cells}, cell: {cell})"),
            "--degree=2".to_owned(),
            "--quadrature=6".to_owned(),
            "--interpret".to_owned(),
            "--aux=m=0".to_owned(),
            "--aux=q=sin(x[0])".to_owned(),
            "--aux=c=0".to_owned(),
            format!("--at=u={u}"),
            format!("--test=u={v}"),
        ]);
        let difference = number(&found, "residual") - number(&only, "residual");
        assert_by_hand(difference, hand.integral(dim), cell);
    }
    // Σ_cells c(centre) ∫ x over the cell, in n columns: Σ h c² = 1/3 − h²/12.
    for (dim, cell) in [(2, "quad"), (3, "hex")] {
        let found = form.probe(&[
            format!("--mesh=box(dim: {dim}, cells: 5, cell: {cell})"),
            "--degree=1".to_owned(),
            "--interpret".to_owned(),
            "--aux=m=0".to_owned(),
            "--aux=q=x[1]^3".to_owned(),
            "--aux=c=x[0]".to_owned(),
            "--at=u=1".to_owned(),
            "--test=u=x[0]".to_owned(),
        ]);
        // Data at points is not interpolated: ∫ y³ x, although the space has degree 1.
        let hand = 1.0 / 3.0 - 0.04 / 12.0 + 0.25 * 0.5;
        assert_by_hand(number(&found, "residual"), hand, cell);
    }
}

/// With two points per direction, D = 2 or 3, degree 4 is not exact; with three it is.
#[test]
fn quadrature_is_what_was_asked_for() {
    let form = Probed::new("form p { field u: scalar; f0[u] = u^3; }");
    let probe = |quadrature: u32| {
        let quadrature = format!("--quadrature={quadrature}");
        let rest = ["--degree=1", "--at=u=x[0]", "--test=u=x[0]"];
        number(&form.probe(&[&[BOX, quadrature.as_str()], &rest[..]].concat()), "residual")
    };
    let h = 0.25_f64;
    let sum = |points: &[f64]| -> f64 {
        let columns = (0..4).flat_map(|i| points.iter().map(move |t| (f64::from(i) + t) * h));
        columns.map(|x| x.powi(4) * h / points.len() as f64).sum()
    };
    let root = 0.5 / 3.0_f64.sqrt();
    for quadrature in [2, 3] {
        assert_by_hand(probe(quadrature), sum(&[0.5 - root, 0.5 + root]), "two points");
    }
    assert_by_hand(probe(4), 0.2, "three points");
    // The rule of triangles by its degree: ∫ over the square of two triangles.
    let form = Probed::new("form p { field u: scalar; f0[u] = u; }");
    let triangles = ["--mesh=box(dim: 2, cells: 1, cell: tri)", "--degree=2", "--quadrature=4"];
    let rest = ["--at=u=x[0]^2", "--test=u=x[0] * x[1]"];
    assert_by_hand(
        number(&form.probe(&[&triangles[..], &rest].concat()), "residual"),
        0.125,
        "tri",
    );
}

/// Mesh and degree come from the problem unless options override them; conditions and mean-value constraints are
/// ignored; without --test, v is 1 in every component.
#[test]
fn what_is_left_out_comes_from_the_problem() {
    let form = Probed::new(
        "form p { field u: vector(2); param a = 1; aux b: scalar; f0[u] = a * b * u; }
         problem first solves p { mesh = box(dim: 2, cells: [3, 2], to: [3, 2]); degree = 2;
             param a = 2; aux b = x[0]; dirichlet u = [0, 0]; }
         problem second solves p { mesh = box(dim: 3, cells: 1, cell: tet); degree = 1; aux b = 1; mean u = [0, 0]; }",
    );
    let at = ["--interpret", "--at=u=[1, x[1]]"];
    let first = form.probe(&at);
    // 2 ∫ x (1 + y) over [0, 3] × [0, 2]: 2 · 4.5 · 4.
    assert_by_hand(number(&first, "residual"), 36.0, "first");
    assert_eq!((first["cells"].as_u64(), first["dofs"].as_u64()), (Some(6), Some(2 * 7 * 5)));
    assert!(first.get("jacobian").is_none(), "{first}");
    let second = form.probe(&[&at[..], &["--problem=second"]].concat());
    assert_by_hand(number(&second, "residual"), 1.5, "second");
    let more = ["--mesh=box(dim: 2, cells: 1)", "--degree=3", "--aux=b=x[0] + x[1]", "--param=a=1"];
    let changed = form.probe(&[&at[..], &more].concat());
    // ∫ (x + y)(1 + y) = 1 + 1/4 + 1/3
    assert_by_hand(number(&changed, "residual"), 1.0 + 0.25 + 1.0 / 3.0, "changed");
    assert_eq!((changed["cells"].as_u64(), changed["dofs"].as_u64()), (Some(1), Some(32)));
    let tested = form.probe(&[&at[..], &["--test=u=[0, 1]"]].concat());
    // 2 ∫ x y over [0, 3] × [0, 2]
    assert_by_hand(number(&tested, "residual"), 2.0 * 4.5 * 2.0, "tested");
}

/// A field on a part of the mesh has no value elsewhere, and its action no ones there: ∫ 3 x over [0, 1]².
#[test]
fn fields_on_a_part_of_the_mesh_end_there() {
    let form = Probed::new(
        "form p { field u: scalar on \"left\"; f0[u] = 3 * x[0] * u; }
         problem p solves p { mesh = \"two.msh\"; degree = 1; }",
    );
    let squares = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n2 1 \"left\"\n2 2 \"right\"\n$EndPhysicalNames\n\
        $Nodes\n6\n1 0 0 0\n2 1 0 0\n3 2 0 0\n4 0 1 0\n5 1 1 0\n6 2 1 0\n$EndNodes\n\
        $Elements\n2\n1 3 2 2 2 2 3 6 5\n2 3 2 1 1 1 2 5 4\n$EndElements\n";
    std::fs::write(form.folder.path().join("two.msh"), squares).expect("a mesh");
    let found = form.probe(&["--interpret", "--at=u=1", "--direction=u=1"]);
    assert_by_hand(number(&found, "residual"), 1.5, "residual");
    assert_by_hand(number(&found, "jacobian"), 1.5, "jacobian");
}
