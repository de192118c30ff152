//! Tests of surfaces and cuts: areas, points on the plane, values of polynomials, unique edges.

use super::*;
use crate::assert_close;
use crate::mesh::generate::generate;
use crate::reference::BoundedValue;
use fem_dsl::point::Shape;
use fem_dsl::problem::Argument;
use kernels_gen::element::interpolation;
use std::collections::BTreeMap;

/// A limit large enough that cells are divided.
const MANY: usize = 20_000;

fn mesh(name: &str, numbers: &[(&str, f64)], cell: &str) -> Mesh {
    let numbers = numbers.iter().map(|&(n, x)| (n.to_owned(), Argument::Number(x)));
    let mut arguments: BTreeMap<String, Argument> = numbers.collect();
    arguments.insert("cell".to_owned(), Argument::Word(cell.to_owned()));
    generate(name, &arguments).expect("a mesh")
}

/// A discontinuous field: each cell has its own nodes, with values of a function.
struct Sampled {
    element: Lagrange,
    nodes: Vec<u32>,
    values: Vec<f64>,
    shape: Shape,
}

impl Sampled {
    fn new(mesh: &Mesh, degree: usize, shape: Shape, f: impl Fn([f64; 3]) -> Vec<f64>) -> Self {
        let element = Lagrange::discontinuous(mesh.cell(), degree).expect("an element");
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
        let table = interpolation(geometry, &element.points());
        let rows = |cell| {
            let place = move |row| mesh.place_of(cell, row);
            table.chunks_exact(geometry.count()).map(place).map(&f).collect::<Vec<_>>().concat()
        };
        let values = (0..mesh.n_cells()).flat_map(rows).collect();
        let nodes = (0..(mesh.n_cells() * element.count()) as u32).collect();
        Self { element, nodes, values, shape }
    }

    fn field(&self) -> PointField<'_> {
        let Self { element, nodes, values, shape } = self;
        PointField { name: "u", shape: *shape, element: *element, nodes, values }
    }
}

fn view<'a>(mesh: &'a Mesh, sampled: &'a Sampled) -> View<'a> {
    let shown = ShownField::Points(sampled.field());
    View { mesh, shown, quantity: Quantity::Magnitude, warp: None }
}

fn polynomial(x: [f64; 3]) -> f64 {
    1.0 + x[0] - 2.0 * x[1] * x[2] + x[0] * x[1]
}

/// Each sum rounds once per triangle.
fn assert_area(triangles: &Triangles, area: f64) {
    let scale = area * triangles.corners.len() as f64;
    assert_close!(triangles.area(), BoundedValue::with_scale(area, scale), f64::EPSILON);
}

/// Values of order one, as sums of a hundred terms.
fn assert_values(triangles: &Triangles, exact: impl Fn([f64; 3]) -> f64) {
    assert!(!triangles.values.is_empty());
    for (&x, &value) in triangles.points.iter().zip(&triangles.values) {
        assert_close!(value, BoundedValue::with_scale(exact(x), 1e3), f64::EPSILON, "at {x:?}");
    }
}

fn length(triangles: &Triangles) -> f64 {
    let length = |ends: &[[f64; 3]]| norm([0, 1, 2].map(|c| ends[1][c] - ends[0][c]));
    triangles.edges.iter().map(|chain| chain.windows(2).map(length).sum::<f64>()).sum()
}

#[test]
fn the_outside_has_the_area_of_the_boundary_and_the_values_of_the_field() {
    for (cell, dim, area, edges) in [
        ("hex", 3.0, 6.0, 48),
        ("tet", 3.0, 6.0, 72),
        ("quad", 2.0, 1.0, 12),
        ("tri", 2.0, 1.0, 16),
    ] {
        let mesh = mesh("box", &[("cells", 2.0), ("dim", dim)], cell);
        let sampled = Sampled::new(&mesh, 2, Shape::Scalar, |x| vec![polynomial(x)]);
        let all = outside(&view(&mesh, &sampled), MANY).expect("triangles");
        assert_area(&all, area);
        assert_values(&all, polynomial);
        assert_eq!(all.edges.len(), edges, "{cell}");
        let few = outside(&view(&mesh, &sampled), 1).expect("triangles");
        assert!(few.corners.len() < all.corners.len());
        assert_area(&few, area);
    }
}

#[test]
fn curved_cells_are_followed() {
    for (name, arguments, cell) in [
        ("ball", &[("refine", 0.0), ("order", 3.0)][..], "tet"),
        ("ball", &[("refine", 0.0), ("order", 2.0), ("dim", 2.0)], "tri"),
        ("ball", &[("refine", 0.0), ("order", 2.0)], "hex"),
    ] {
        let mesh = mesh(name, arguments, cell);
        let degree = 2 * mesh.order();
        let sampled = Sampled::new(&mesh, degree, Shape::Scalar, |x| vec![polynomial(x)]);
        let all = outside(&view(&mesh, &sampled), MANY).expect("triangles");
        assert_values(&all, polynomial);
        assert!(all.edges.iter().all(|edge| edge.len() > 2));
        if mesh.dim() == 3 {
            // The normals of a ball are radial.
            for (x, n) in all.points.iter().zip(&all.normals) {
                let along = (0..3).map(|c| x[c] * n[c]).sum::<f64>().abs();
                assert!(along > 0.95, "{along}");
            }
            let plane = Plane { normal: [0.0, 0.6, 0.8], offset: 0.1 };
            let found = cut(&view(&mesh, &sampled), plane, MANY).expect("triangles");
            assert_values(&found, polynomial);
            for &x in &found.points {
                assert!(plane.distance(x).abs() <= 4.0 * NEAR, "{x:?}");
            }
        }
    }
}

/// Tolerance of points on the plane, in a body of size 2.
const NEAR: f64 = 2e-10;

#[test]
fn a_slice_of_a_box_has_its_area_wherever_the_cells_are() {
    for (cell, cells) in [("hex", 2.0), ("hex", 3.0), ("tet", 2.0), ("tet", 3.0)] {
        let mesh = mesh("box", &[("cells", cells), ("dim", 3.0)], cell);
        let sampled = Sampled::new(&mesh, 2, Shape::Scalar, |x| vec![polynomial(x)]);
        for axis in 0..3 {
            for offset in [0.0, 0.3, 0.5, 1.0] {
                let mut normal = [0.0; 3];
                normal[axis] = 1.0;
                let plane = Plane { normal, offset };
                let found = cut(&view(&mesh, &sampled), plane, MANY).expect("triangles");
                assert_area(&found, 1.0);
                assert_values(&found, polynomial);
                if cell == "hex" {
                    let chains = found.edges.len();
                    let (found, all) = (length(&found), 2.0 * (cells + 1.0));
                    let scale = all * 1e3;
                    assert_eq!(chains, 2 * cells as usize * (cells as usize + 1), "{offset}");
                    assert_close!(found, BoundedValue::with_scale(all, scale), f64::EPSILON);
                }
            }
        }
        let beside = Plane { normal: [1.0, 0.0, 0.0], offset: 1.5 };
        assert!(cut(&view(&mesh, &sampled), beside, MANY).expect("nothing").corners.is_empty());
    }
}

#[test]
fn a_deformation_moves_points_and_no_values() {
    let mesh = mesh("box", &[("cells", 2.0), ("dim", 3.0)], "hex");
    let sampled = Sampled::new(&mesh, 1, Shape::Scalar, |x| vec![x[0]]);
    let stretch = Sampled::new(&mesh, 1, Shape::Vector(3), |x| vec![0.1 * x[0], 0.0, 0.0]);
    let warp = Some(Warp { field: stretch.field(), factor: 10.0 });
    let view = View { warp, ..view(&mesh, &sampled) };
    assert_area(&outside(&view, MANY).expect("triangles"), 10.0);
    let plane = Plane { normal: [0.0, 0.0, 1.0], offset: 0.25 };
    let found = cut(&view, plane, MANY).expect("triangles");
    assert_area(&found, 2.0);
    assert_values(&found, |x| x[0] / 2.0);
    assert!(found.corners.iter().flatten().all(|&c| found.normals[c as usize][2] > 0.99));
}

#[test]
fn quantities_are_components_or_magnitudes_and_cells_have_their_own_value() {
    let mesh = mesh("box", &[("cells", 2.0), ("dim", 2.0)], "tri");
    let of = |x: [f64; 3]| vec![3.0 * x[0], 4.0 * x[0]];
    let sampled = Sampled::new(&mesh, 1, Shape::Vector(2), of);
    let by = |quantity| {
        let view = View { quantity, ..view(&mesh, &sampled) };
        outside(&view, MANY).expect("triangles")
    };
    assert_values(&by(Quantity::Magnitude), |x| 5.0 * x[0]);
    assert_values(&by(Quantity::Component(1)), |x| 4.0 * x[0]);
    assert!(by(Quantity::Component(2)).values.iter().all(|value| value.is_nan()));
    let values: Vec<f64> = (0..mesh.n_cells()).map(|cell| cell as f64).collect();
    let shown = ShownField::Cells(CellField { name: "c", shape: Shape::Scalar, values: &values });
    let view = View { mesh: &mesh, shown, quantity: Quantity::Magnitude, warp: None };
    let all = outside(&view, MANY).expect("triangles");
    for corners in &all.corners {
        let [a, b, c] = corners.map(|corner| all.values[corner as usize]);
        assert!(a == b && b == c);
    }
    let short =
        ShownField::Cells(CellField { name: "c", shape: Shape::Scalar, values: &values[1..] });
    assert!(outside(&View { shown: short, ..view }, MANY).is_err());
}
