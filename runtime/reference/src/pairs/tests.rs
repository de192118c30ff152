//! Pairs of cells of small meshes: their number, and the places of points from both sides.

use super::*;
use crate::BoundedValue;
use crate::table::BasisTable;
use fem_dsl::point::Part;
use kernels_gen::element::default_rule;

/// A mesh of the reference crate: numbers and places of the vertices of cells.
struct Mesh {
    geometry: Lagrange,
    nodes: Vec<u32>,
    coordinates: Vec<f64>,
}

impl Mesh {
    /// Creates cells with the images of their corners under a map; corners at one place have one number.
    fn new(cell: Cell, cells: &[Vec<[f64; 3]>], place: impl Fn([f64; 3]) -> [f64; 3]) -> Self {
        let mut known: Vec<[f64; 3]> = Vec::new();
        let mut nodes = Vec::new();
        for corner in cells.iter().flatten() {
            let number = known.iter().position(|at| at == corner).unwrap_or_else(|| {
                known.push(*corner);
                known.len() - 1
            });
            nodes.push(number as u32);
        }
        let dim = cell.dim();
        let coordinates =
            cells.iter().flatten().flat_map(|&corner| place(corner)[..dim].to_vec()).collect();
        let geometry = Lagrange::continuous(cell, 1).expect("order 1");
        Self { geometry, nodes, coordinates }
    }

    fn cells<'a>(&'a self, periodic: &'a [[Vec<CellFacet>; 2]]) -> Cells<'a> {
        let Self { geometry, nodes, coordinates } = self;
        Cells { geometry: *geometry, nodes, coordinates, periodic }
    }

    /// Asserts that the points of each pair are at the same places in both cells, up to a translation of each pair.
    fn assert_same_places(&self, pairs: &[CellPair]) {
        let (cell, count) = (self.geometry.cell(), self.geometry.count());
        let rule = default_rule(cell, 2, 1, None);
        let (inner, own) = (rule.on_facet().len(), |facet| {
            BasisTable::on_facet(self.geometry, rule, facet, false)
        });
        for pair in pairs {
            let [inside, outside] = pair.sides;
            let tables = Side::ALL.map(|side| match side == pair.points() {
                true => own(pair.sides[side as usize].1),
                false => BasisTable::across(self.geometry, rule, &pair.placement(), false),
            });
            let place = |side: usize, q: usize, axis: usize| -> f64 {
                let number = pair.sides[side].0;
                let value = |i: usize| {
                    let x = self.coordinates[(number * count + i) * cell.dim() + axis];
                    tables[side].entry(q, i, Part::Value) * BoundedValue::new(x)
                };
                (0..count).map(value).sum::<BoundedValue>().value
            };
            for axis in 0..cell.dim() {
                let shift = |q: usize| place(0, q, axis) - place(1, q, axis);
                for q in 0..inner {
                    let wanted = if outside.0 == inside.0 { shift(0) } else { 0.0 };
                    assert!((shift(q) - wanted).abs() < 1e-14, "{cell} {pair:?}");
                }
            }
        }
    }
}

/// Returns the corners of a tensor cell from its origin and its edges.
fn boxed(cell: Cell, origin: [f64; 3], size: f64) -> Vec<[f64; 3]> {
    let corner = |vertex: [f64; 3]| [0, 1, 2].map(|axis| origin[axis] + size * vertex[axis]);
    cell.vertices()
        .into_iter()
        .map(corner)
        .map(|[x, y, z]| match cell.dim() {
            2 => [x, y, 0.0],
            _ => [x, y, z],
        })
        .collect()
}

/// Returns the orders of the vertices of a cell that are its symmetries.
fn symmetries(cell: Cell) -> Vec<Vec<usize>> {
    let dim = cell.dim();
    let orders: &[&[usize]] = match dim {
        2 => &[&[0, 1], &[1, 0]],
        _ => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
    };
    if !cell.is_tensor() {
        let all: Vec<usize> = (0..=dim).collect();
        let swapped = |a: usize, b: usize| {
            let mut order = all.clone();
            order.swap(a, b);
            order
        };
        return (0..=dim)
            .flat_map(|a| (0..=a).map(move |b| (a, b)))
            .map(|(a, b)| swapped(a, b))
            .collect();
    }
    let of = |order: &[usize], flips: usize| {
        let vertex = |v: usize| {
            (0..dim).map(|axis| (v >> order[axis] & 1 ^ flips >> axis & 1) << axis).sum::<usize>()
        };
        (0..1 << dim).map(vertex).collect()
    };
    orders.iter().flat_map(|order| (0..1 << dim).map(move |flips| of(order, flips))).collect()
}

/// A smooth map without symmetries.
fn bent([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.1 * y - 0.05 * z + 0.04 * x * y, y - 0.07 * x + 0.03 * z, z + 0.02 * x - 0.06 * y]
}

#[test]
fn two_cells_meet_in_all_orientations() {
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let dim = cell.dim();
        let first: Vec<[f64; 3]> = cell
            .vertices()
            .into_iter()
            .map(|[x, y, z]| match dim {
                2 => [x, y, 0.0],
                _ => [x, y, z],
            })
            .collect();
        let second: Vec<[f64; 3]> = match cell.is_tensor() {
            true => boxed(cell, [1.0, 0.0, 0.0], 1.0),
            // The mirror image of the first, on the other side of its facet 1.
            false => first.iter().map(|[x, y, z]| [-x, *y, *z]).collect(),
        };
        for order in symmetries(cell) {
            let turned: Vec<[f64; 3]> = order.iter().map(|&vertex| second[vertex]).collect();
            let mesh = Mesh::new(cell, &[first.clone(), turned], bent);
            let pairs = find_pairs(&mesh.cells(&[]));
            assert_eq!(pairs.len(), 1, "{cell} {order:?}");
            assert_eq!(pairs[0].sides.map(|side| side.0), [0, 1]);
            mesh.assert_same_places(&pairs);
            let back = pairs[0].reversed(cell);
            assert_eq!(back.sides.map(|side| side.0), [1, 0]);
            assert_eq!(back.points(), Side::Inside);
            assert_eq!(back.reversed(cell), pairs[0]);
            mesh.assert_same_places(&[back]);
        }
    }
}

#[test]
fn small_cells_hang_on_a_facet_in_all_orientations() {
    for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
        let dim = cell.dim();
        let coarse = boxed(cell, [0.0; 3], 1.0);
        for order in symmetries(cell) {
            let turned: Vec<[f64; 3]> = order.iter().map(|&vertex| coarse[vertex]).collect();
            let origin = |child: usize| {
                [
                    1.0,
                    (child & 1) as f64 / 2.0,
                    if dim == 3 { (child >> 1) as f64 / 2.0 } else { 0.0 },
                ]
            };
            let children = (0..1 << (dim - 1)).map(|child| boxed(cell, origin(child), 0.5));
            let cells: Vec<Vec<[f64; 3]>> = [turned].into_iter().chain(children).collect();
            // Children have the places of the parent's map, which is multilinear.
            let mesh = Mesh::new(cell, &cells, bent);
            let pairs = find_pairs(&mesh.cells(&[]));
            let hanging: Vec<&CellPair> =
                pairs.iter().filter(|pair| pair.sides[1].0 == 0).collect();
            assert_eq!(hanging.len(), 1 << (dim - 1), "{cell} {order:?}");
            assert_eq!(pairs.len(), if dim == 2 { 3 } else { 8 });
            mesh.assert_same_places(&pairs);
            for pair in hanging {
                let back = pair.reversed(cell);
                assert_eq!((pair.points(), back.points()), (Side::Inside, Side::Outside));
                assert_eq!(back.reversed(cell), *pair);
                mesh.assert_same_places(&[back]);
            }
        }
    }
}

#[test]
fn a_periodic_cell_meets_itself() {
    for (cell, dim) in [(Cell::Quadrilateral, 2), (Cell::Hexahedron, 3)] {
        let mesh = Mesh::new(cell, &[boxed(cell, [0.0; 3], 1.0)], |[x, y, z]| [x, y + 0.2 * x, z]);
        let periodic: Vec<[Vec<CellFacet>; 2]> =
            (0..dim).map(|axis| [0, 1].map(|end| vec![(0, 2 * axis + end)])).collect();
        let pairs = find_pairs(&mesh.cells(&periodic));
        assert_eq!(pairs.len(), dim);
        for (axis, pair) in pairs.iter().enumerate() {
            assert_eq!(pair.sides, [(0, 2 * axis), (0, 2 * axis + 1)]);
        }
        mesh.assert_same_places(&pairs);
        assert_eq!(find_pairs(&mesh.cells(&[])), []);
    }
}

#[test]
fn cells_with_different_vertices_do_not_meet() {
    let cell = Cell::Quadrilateral;
    let cells = [boxed(cell, [0.0; 3], 1.0), boxed(cell, [1.0, 0.0, 0.0], 1.0)];
    let mut mesh = Mesh::new(cell, &cells, |x| x);
    assert_eq!(find_pairs(&mesh.cells(&[])).len(), 1);
    // A slit: vertices at one place with different numbers.
    mesh.nodes[4] = 10;
    assert_eq!(find_pairs(&mesh.cells(&[])), []);
}

/// A linear function has the same trace from both sides, in every basis, and its gradient too.
#[test]
fn traces_of_a_linear_function_agree() {
    for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
        let rule = default_rule(cell, 2, 1, None);
        let parts = parts(cell, 3).into_iter();
        for images in parts {
            let mut corners = Corners::default();
            corners[..images.len()].copy_from_slice(&images);
            let placement = Placement { from: 0, to: 3, images: corners };
            let element = Lagrange::discontinuous(cell, 2).expect("degree 2");
            let table = BasisTable::across(element, rule, &placement, false);
            let points = element.points();
            let linear = |[x, y, z]: [f64; 3]| 1.0 + 2.0 * x - 3.0 * y + 0.5 * z;
            let nodal: Vec<f64> = points.iter().map(|&point| linear(point)).collect();
            let sum = |q: usize, part: Part| -> BoundedValue {
                let term = |(i, &u)| table.entry(q, i, part) * BoundedValue::new(u);
                nodal.iter().enumerate().map(term).sum()
            };
            for (q, (point, _)) in rule.on_facet().into_iter().enumerate() {
                // The inside's facet 0 has the same directions as ξ₀ = 0.
                let at = placement.image(rule, point);
                assert_eq!(at[1], 1.0);
                crate::assert_close!(linear(at), sum(q, Part::Value), f64::EPSILON, "{cell} {q}");
                for (axis, slope) in [2.0, -3.0, 0.5].into_iter().enumerate().take(cell.dim()) {
                    crate::assert_close!(
                        slope,
                        sum(q, Part::Derivative(axis)),
                        f64::EPSILON,
                        "{cell} {q} {axis}"
                    );
                }
            }
        }
    }
}
