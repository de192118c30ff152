//! Facet frames, polynomials at points, and jumps compared with direct evaluation on both sides.

mod direct;

use super::points::PointOperations;
use crate::assert_close;
use crate::mesh::pairs::{FacetConnectivity, FacetPair, FacetSide};
use crate::mesh::views::{FacetViews, reference_normal};
use crate::mesh::{Cell, CellOrdering, Mesh, MeshData, Topology, generate};
use crate::reference::BoundedValue;
use fem_dsl::problem::Argument;
use fem_dsl::testing::Random;
use kernels_gen::abi::hanging::word;
use kernels_gen::element::{Lagrange, LinePoints, Rule, tabulate};
use std::collections::BTreeMap;

/// Creates a box with a number of cells along each axis, longest along the first.
pub(super) fn boxed(cell: Cell, cells: usize) -> Mesh {
    let corner = [1.5, 1.0, 0.8][..cell.dim()].to_vec();
    let arguments = BTreeMap::from([
        ("dim".to_owned(), Argument::Number(cell.dim() as f64)),
        ("cells".to_owned(), Argument::Number(cells as f64)),
        ("cell".to_owned(), Argument::Word(cell.name().to_owned())),
        ("to".to_owned(), Argument::Numbers(corner)),
    ]);
    generate::generate("box", &arguments).expect("a box")
}

/// Rotates each tensor cell of a mesh randomly.
pub(super) fn turned(mesh: &Mesh, random: &mut Random) -> Mesh {
    let (dim, n) = (mesh.dim(), mesh.cell().vertex_count());
    let mut nodes = Vec::new();
    for cell in 0..mesh.n_cells() {
        let own = mesh.cell_nodes(cell);
        // An even number of reflections and axis swaps is a rotation.
        let (mut flips, swap) = (random.below(n), random.below(2));
        let odd = (flips.count_ones() as usize + swap) % 2 == 1;
        flips ^= usize::from(odd);
        let place = |vertex: usize| {
            let bits = if swap == 1 && dim > 1 {
                vertex & !3 | (vertex & 1) << 1 | vertex >> 1 & 1
            } else {
                vertex
            };
            own[bits ^ flips]
        };
        nodes.extend((0..n).map(place));
    }
    let parts = MeshData { points: mesh.points().to_vec(), nodes, ..MeshData::default() };
    Mesh::new(mesh.cell(), 1, parts, CellOrdering::Original).expect("a mesh")
}

fn rule(cell: Cell, degree: usize) -> Rule {
    match cell.is_tensor() {
        true => Rule::Tensor { cell, line: LinePoints::Gauss(degree + 1) },
        false => Rule::Simplex { cell, degree: 2 * degree },
    }
}

/// Coordinates of the points of a side's facet.
fn places(mesh: &Mesh, side: FacetSide, view: u8, views: &FacetViews) -> Vec<[f64; 3]> {
    let rule = rule(mesh.cell(), 3).on_facet();
    let points = views.points(usize::from(side.local), view, &rule);
    let element = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let table = tabulate(element, &points);
    let rows = table.values.chunks(table.nodes);
    rows.map(|values| mesh.place_of(side.cell as usize, values)).collect()
}

#[test]
fn both_sides_of_a_facet_have_its_points_in_one_order() {
    let mut random = Random(2);
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let mut mesh = boxed(cell, 3);
        if cell.is_tensor() {
            mesh = turned(&mesh, &mut random);
        }
        mesh.tag_boundary("left", |all| all.iter().all(|x| x[0] == 0.0));
        mesh.tag_boundary("right", |all| all.iter().all(|x| x[0] == 1.5));
        let mut joined = mesh.clone();
        joined.make_periodic(&[["left".to_owned(), "right".to_owned()]]).expect("sides");
        let views = FacetViews::new(cell);
        for mesh in [mesh, joined] {
            let faces = FacetConnectivity::new(&mesh, &views);
            let locals = cell.facets().len();
            let mut seen = std::collections::BTreeSet::new();
            for FacetPair { sides, child } in &faces.pairs {
                assert_eq!(*child, None);
                let [a, b] = sides.map(|side| {
                    let view = faces.views[side.cell as usize * locals + usize::from(side.local)];
                    seen.insert(view);
                    places(&mesh, side, view, &views)
                });
                let shift = |c: usize| a[0][c] - b[0][c];
                for (a, b) in a.iter().zip(&b) {
                    for c in 0..3 {
                        let want = BoundedValue::with_scale(b[c] + shift(c), 4.0);
                        assert_close!(a[c], want, f64::EPSILON, "{cell}");
                    }
                }
            }
            assert!(
                !cell.is_tensor() || seen.len() == 1 << (2 * cell.dim() - 3),
                "{cell}: {seen:?}"
            );
            let all = mesh.n_cells() * locals;
            assert_eq!(2 * faces.pairs.len() + faces.boundary.len(), all);
        }
    }
}

#[test]
fn children_of_a_facet_lie_where_their_numbers_say() {
    for cell in [Cell::Quadrilateral, Cell::Hexahedron] {
        let (views, halves) = (FacetViews::new(cell), 1 << (cell.dim() - 1));
        let line = [0.1, 0.7];
        let frame = |at: usize| {
            let y = if cell.dim() == 3 { line[at / 2] } else { 0.0 };
            ([0.0, line[at % 2], y], 1.0)
        };
        let points: Vec<([f64; 3], f64)> = (0..4).map(frame).collect();
        for view in 0..views.turned() {
            for own in 0..halves {
                let child = views.child(view, own);
                // The child's view, shifted into its half, equals the parent's view of that half of the frame.
                let moved: Vec<([f64; 3], f64)> = points
                    .iter()
                    .map(|&([_, s, t], w)| {
                        let half = |x: f64, bit: u8| (x + f64::from(child >> bit & 1)) / 2.0;
                        let t = if cell.dim() == 3 { half(t, 1) } else { 0.0 };
                        ([0.0, half(s, 0), t], w)
                    })
                    .collect();
                let (seen, parent) =
                    (views.points(0, view, &points), views.points(0, view, &moved));
                for (seen, parent) in seen.iter().zip(&parent) {
                    for axis in 1..cell.dim() {
                        let bit = (own >> (axis - 1) & 1) as f64;
                        let want = BoundedValue::new((seen[axis] + bit) / 2.0);
                        assert_close!(parent[axis], want, f64::EPSILON, "{cell} {view} {own}");
                    }
                }
            }
        }
    }
}

/// Two small squares next to a large one; all share its right edge.
#[test]
fn children_are_paired_with_the_cell_beside_their_parent() {
    let vertices = vec![0, 1, 2, 3, 1, 4, 3, 5, 1, 6, 3, 7];
    let topology = Topology::new(Cell::Quadrilateral, 8, vertices).expect("a topology");
    let hangs = |child: usize| word(child, [true, false, false], [false; 3], 2);
    let words = [0, hangs(0), hangs(2)];
    let faces =
        FacetConnectivity::of(&topology, Some(&words), &[], &FacetViews::new(Cell::Quadrilateral));
    let coarse = FacetSide { cell: 0, local: 1 };
    let pair = |cell: u32, child: u8| {
        let sides = [FacetSide { cell, local: 0 }, coarse];
        FacetPair { sides, child: Some(child) }
    };
    assert_eq!(faces.pairs, [pair(1, 0), pair(2, 1)]);
    // The upper edge of the lower child and the lower edge of the upper child are not connected here.
    assert_eq!(faces.boundary.len(), 3 + 2 * 3);
}

/// Polynomials x^a y^b z^c with their derivatives.
fn power(x: &[f64; 3], powers: [usize; 3], derived: Option<usize>) -> f64 {
    (0..3)
        .map(|axis| match (powers[axis], derived == Some(axis)) {
            (n, false) => x[axis].powi(n as i32),
            (0, true) => 0.0,
            (n, true) => n as f64 * x[axis].powi(n as i32 - 1),
        })
        .product()
}

#[test]
fn polynomials_at_the_points_are_differentiated_and_go_through_facets() {
    let mut random = Random(4);
    for cell in Cell::ALL {
        let (views, dim) = (FacetViews::new(cell), cell.dim());
        for degree in 1..=4 {
            let rule = rule(cell, degree);
            let points = PointOperations::new(rule, &views);
            let powers = |random: &mut Random| loop {
                let all =
                    [0, 1, 2].map(|axis| if axis < dim { random.below(degree + 1) } else { 0 });
                if cell.is_tensor() || all.iter().sum::<usize>() <= degree {
                    return all;
                }
            };
            let own: Vec<[usize; 3]> = (0..dim).map(|_| powers(&mut random)).collect();
            let flux: Vec<f64> = own
                .iter()
                .flat_map(|&of| rule.points().into_iter().map(move |x| power(&x, of, None)))
                .collect();
            let mut rest = vec![1.0; points.count];
            points.less_divergence(&flux, &mut rest);
            // Derivatives amplify rounding by the square of the degree.
            let scale = (100 * degree * degree) as f64;
            for (rest, x) in rest.iter().zip(rule.points()) {
                let terms = own.iter().enumerate().map(|(a, &of)| power(&x, of, Some(a)));
                let want = BoundedValue::with_scale(1.0 - terms.sum::<f64>(), scale);
                assert_close!(*rest, want, f64::EPSILON, "{cell} {degree}");
            }
            for local in 0..cell.facets().len() {
                let normal = reference_normal(cell, local);
                for view in 0..views.count() {
                    let mut found = vec![f64::NAN; points.on_facet];
                    points.through(local, view as u8, &flux, &mut found);
                    let places = views.points(local, view as u8, &rule.on_facet());
                    for (found, x) in found.iter().zip(places) {
                        let terms = own.iter().enumerate();
                        let want = terms.map(|(a, &of)| normal[a] * power(&x, of, None)).sum();
                        let want = BoundedValue::with_scale(want, scale);
                        assert_close!(*found, want, f64::EPSILON, "{cell} {degree}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_counts_of_a_residual_is_its_projection() {
    for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
        let (views, dim) = (FacetViews::new(cell), cell.dim());
        for degree in 1..=3 {
            let rule = rule(cell, degree + 2);
            let (points, weights) = (PointOperations::new(rule, &views), rule.weights());
            let part = points.part(rule, degree).expect("a part");
            let whole = |powers: [usize; 3]| {
                rule.points().iter().map(|x| power(x, powers, None)).collect::<Vec<f64>>()
            };
            let all = (0..(degree + 1).pow(3)).map(|at| {
                let n = degree + 1;
                [at % n, at / n % n, at / n / n]
            });
            let within = |p: &[usize; 3]| cell.is_tensor() || p.iter().sum::<usize>() <= degree;
            let all: Vec<[usize; 3]> =
                all.filter(|p| within(p) && (dim == 3 || p[2] == 0)).collect();
            // The projection of a rough function preserves its inner products with polynomials of the degree.
            let rough = whole([degree + 2, 1, 0]);
            let mut kept = rough.clone();
            part.take(dim, &mut kept);
            for &powers in &all {
                let own = whole(powers);
                let mut same = own.clone();
                part.take(dim, &mut same);
                for (own, same) in own.iter().zip(&same) {
                    assert_close!(
                        *same,
                        BoundedValue::with_scale(*own, 100.0),
                        f64::EPSILON,
                        "{cell}"
                    );
                }
                let dot = |a: &[f64]| -> f64 {
                    a.iter().zip(&own).zip(&weights).map(|((a, b), w)| a * b * w).sum()
                };
                let want = BoundedValue::with_scale(dot(&rough), 100.0);
                assert_close!(dot(&kept), want, f64::EPSILON, "{cell}");
            }
            assert!(kept.iter().zip(&rough).any(|(a, b)| (a - b).abs() > 1e-3));
        }
        let rule = rule(cell, 2);
        let part = PointOperations::new(rule, &views).part(rule, 2);
        assert_eq!(part.is_none(), cell.is_tensor(), "points of degree 2 hold no more");
    }
}
