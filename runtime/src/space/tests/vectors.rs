//! Elements of H(curl) and H(div): continuity, interpolation, traces and discrete derivatives on meshes whose cells see
//! their entities in every orientation.

use super::{key, straight, turned};
use crate::mesh::partition::Partition;
use crate::mesh::{CellOrdering, Facet, Mesh, MeshData};
use crate::processes::threads::each;
use crate::space::Space;
use crate::space::derivative::DiscreteDerivative;
use crate::space::discretisation::Discretisation;
use crate::space::evaluate::{Evaluator, MapTable, cellwise, cross, dot};
use crate::space::functionals::{FacetFunctionals, GivenTrace};
use fem_dsl::testing::Random;
use kernels_gen::element::{Cell, Element, Lagrange, Whitney, WhitneyFamily, tabulate};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rounding errors of sums over the functions of a cell of degree 3 at most.
const ROUNDING: f64 = 1e-11;

const FAMILIES: [WhitneyFamily; 2] = [WhitneyFamily::Curl, WhitneyFamily::Div];

fn whitney(cell: Cell, degree: usize, family: WhitneyFamily) -> Whitney {
    Whitney::new(cell, degree as i64, family).expect("an element")
}

fn space(mesh: &Mesh, element: impl Into<Element>) -> Space {
    let partition = Partition::with_chunk_cells(mesh, 5);
    Space::new(mesh, &partition, element, 1).expect("a space")
}

/// Returns the cells of a mesh under a map of its points.
fn mapped(mesh: &Mesh, order: CellOrdering, map: impl Fn([f64; 3]) -> [f64; 3]) -> Mesh {
    let points = mesh.points().iter().map(|&x| map(x)).collect();
    let parts = MeshData { points, nodes: mesh.nodes().to_vec(), ..MeshData::default() };
    Mesh::new(mesh.cell(), mesh.order(), parts, order).expect("a valid mesh")
}

fn sheared(dim: usize, [x, y, z]: [f64; 3]) -> [f64; 3] {
    match dim {
        2 => [1.3 * x + 0.4 * y, 0.2 * x + 0.7 * y, 0.0],
        _ => [1.3 * x + 0.4 * y - 0.3 * z, 0.2 * x + 0.7 * y + 0.1 * z, 0.3 * y + 0.9 * z],
    }
}

/// Cells, and how many there are along a side.
const SIZES: [(Cell, usize); 4] =
    [(Cell::Triangle, 4), (Cell::Quadrilateral, 4), (Cell::Tetrahedron, 2), (Cell::Hexahedron, 2)];

fn meshes() -> Vec<Mesh> {
    let mut all = Vec::new();
    for (cell, n) in SIZES {
        for seed in 0..2 {
            let mesh = turned(cell, n, seed);
            assert_eq!(mesh.topology().is_oriented(), !cell.is_tensor(), "cells should disagree");
            all.push(mapped(&mesh, CellOrdering::Original, |x| sheared(cell.dim(), x)));
            all.push(mesh);
        }
    }
    all
}

/// Returns a closed ring of hexahedra whose cross-section turns by quarters of a turn: sheets of cells meet themselves
/// with other axes (1) or the opposite direction (2), as on a Möbius strip.
fn ring(quarters: usize) -> Mesh {
    let (n, square) = (8, [0, 1, 3, 2]);
    let corner = |slice: usize, v: usize| {
        let angle = std::f64::consts::TAU * slice as f64 / n as f64;
        // Corners counted around the square.
        let place = square.iter().position(|&own| own == v).unwrap_or(0) as f64;
        let twist = (place + 0.5) * std::f64::consts::FRAC_PI_2 + angle * quarters as f64 / 4.0;
        let radius = 3.0 + 0.5 * twist.cos();
        [radius * angle.cos(), radius * angle.sin(), 0.5 * twist.sin()]
    };
    let points = (0..n).flat_map(|slice| (0..4).map(move |v| corner(slice, v))).collect();
    let number = |slice: usize, v: usize| -> u32 {
        let place = square.iter().position(|&own| own == v).unwrap_or(0);
        let turned = if slice == n { square[(place + quarters) % 4] } else { v };
        (slice % n * 4 + turned) as u32
    };
    let cells = (0..n).flat_map(|slice| (0..8).map(move |v| number(slice + v / 4, v % 4)));
    let parts = MeshData { points, nodes: cells.collect(), ..MeshData::default() };
    let mesh = Mesh::new(Cell::Hexahedron, 1, parts, CellOrdering::Sorted).expect("a valid mesh");
    assert!(!mesh.topology().is_oriented(), "a sheet should meet itself");
    mesh
}

/// Returns pairs of tetrahedra that list their common face in each pair of orders.
fn patches() -> Vec<Mesh> {
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let all = orders.iter().flat_map(|one| orders.iter().map(move |other| (one, other)));
    let patch = |(number, (one, other)): (usize, (&[usize; 3], &[usize; 3]))| {
        let face = [[0.0, 0.1, 0.0], [1.0, 0.0, 0.2], [0.2, 0.9, 0.1]];
        let tips = [[0.3, 0.2, 0.8], [0.4, 0.3, -0.7]];
        // The numbers of the points decide the frames.
        let rank = |point: usize| (point * [1, 2, 3, 4][number % 4] + number) % 5;
        let mut points = vec![[0.0; 3]; 5];
        face.iter().chain(&tips).enumerate().for_each(|(i, &x)| points[rank(i)] = x);
        let cell = |order: &[usize; 3], tip: usize| {
            let [a, b, c] = order.map(|vertex| rank(vertex) as u32);
            [a, b, rank(tip) as u32, c]
        };
        let nodes = [cell(one, 3), cell(other, 4)].concat();
        let parts = MeshData { points, nodes, ..MeshData::default() };
        Mesh::new(Cell::Tetrahedron, 1, parts, CellOrdering::Original).expect("a valid mesh")
    };
    all.enumerate().map(patch).collect()
}

#[test]
fn runs_follow_one_another_in_every_cell() {
    for (cell, mesh) in
        [Cell::Quadrilateral, Cell::Hexahedron].map(|cell| (cell, straight(cell, 3)))
    {
        for (family, degree) in FAMILIES.iter().flat_map(|&own| (1..=4).map(move |k| (own, k))) {
            let element = Element::Whitney(whitney(cell, degree, family));
            let space = space(&mesh, element);
            let (first, runs) = (space.runs().expect("an oriented mesh has runs"), element.runs());
            assert_eq!(first.len(), runs.len());
            assert_eq!(runs.iter().map(Vec::len).sum::<usize>(), element.count());
            for (own, run) in (0..mesh.n_cells())
                .flat_map(|c| runs.iter().map(move |run| (c, run)))
                .map(|(c, run)| (space.cell_nodes(c), run))
            {
                let found = run.windows(2).all(|pair| own[pair[0]] + 1 == own[pair[1]]);
                assert!(found, "{element}: {run:?}");
            }
        }
        let turned = turned(cell, 3, 1);
        let element = whitney(cell, 2, WhitneyFamily::Curl);
        assert!(space(&turned, element).runs().is_none());
    }
}

pub(super) fn random(count: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed);
    (0..count).map(|_| random.unit() - 0.5).collect()
}

/// Returns the points of a facet of the reference cell, symmetric under all its maps.
pub(super) fn facet_points(cell: Cell, facet: usize) -> Vec<[f64; 3]> {
    let (line, dim) = ([0.2, 0.5, 0.8], cell.dim());
    if cell == Cell::Tetrahedron {
        let own = [[0.2, 0.2], [0.2, 0.6], [0.6, 0.2], [0.1, 0.3], [0.3, 0.1], [0.1, 0.6]];
        let others = [[0.6, 0.1], [0.3, 0.6], [0.6, 0.3]];
        let all = own.into_iter().chain(others);
        return all.map(|[s, t]| cell.entity_point(2, facet, [s, t, 0.0])).collect();
    }
    let count = 3usize.pow(dim as u32 - 1);
    let point = |i: usize| {
        let own = if dim == 3 { [line[i % 3], line[i / 3], 0.0] } else { [line[i], 0.0, 0.0] };
        cell.entity_point(dim - 1, facet, own)
    };
    (0..count).map(point).collect()
}

#[test]
fn counts_are_those_of_the_table() {
    for mesh in meshes() {
        let (topology, dim) = (mesh.topology(), mesh.dim());
        let (edges, faces, cells) =
            (topology.edges().len(), topology.faces().len(), mesh.n_cells());
        for (k, family) in (1..=3).flat_map(|k| FAMILIES.map(|family| (k, family))) {
            let of = space(&mesh, whitney(mesh.cell(), k, family));
            let (expected, local) = match (family, dim) {
                (_, 2) if !mesh.cell().is_tensor() => {
                    (k * edges + k * (k - 1) * cells, k * (k + 2))
                }
                (WhitneyFamily::Curl, _) if !mesh.cell().is_tensor() => (
                    k * edges + k * (k - 1) * faces + k * (k - 1) * (k.max(2) - 2) / 2 * cells,
                    k * (k + 2) * (k + 3) / 2,
                ),
                (WhitneyFamily::Div, _) if !mesh.cell().is_tensor() => (
                    k * (k + 1) / 2 * faces + k * (k + 1) * (k - 1) / 2 * cells,
                    k * (k + 1) * (k + 3) / 2,
                ),
                (WhitneyFamily::Curl, 2) => (k * edges + 2 * k * (k - 1) * cells, 2 * k * (k + 1)),
                (WhitneyFamily::Div, 2) => (k * edges + 2 * k * (k - 1) * cells, 2 * k * (k + 1)),
                (WhitneyFamily::Curl, _) => (
                    k * edges + 2 * k * (k - 1) * faces + 3 * k * (k - 1) * (k - 1) * cells,
                    3 * k * (k + 1) * (k + 1),
                ),
                (WhitneyFamily::Div, _) => {
                    (k * k * faces + 3 * k * k * (k - 1) * cells, 3 * k * k * (k + 1))
                }
            };
            assert_eq!((of.n_dofs(), of.nodes_per_cell()), (expected, local), "{family}({k})");
        }
    }
}

/// Returns the tangential trace n × u, in the plane along the third axis, or the normal one.
pub(super) fn trace(family: WhitneyFamily, u: &[f64], n: &[f64; 3]) -> [f64; 3] {
    let mut vector = [0.0; 3];
    vector[..u.len()].copy_from_slice(u);
    match family {
        WhitneyFamily::Curl => cross(n, &vector),
        WhitneyFamily::Div => [dot(n, &vector), 0.0, 0.0],
    }
}

#[test]
fn traces_of_both_cells_of_a_facet_agree() {
    let rings = [1, 2].map(ring);
    for mesh in meshes().into_iter().chain(rings).chain(patches()) {
        let (cell, dim) = (mesh.cell(), mesh.dim());
        for (k, family) in (1..=3).flat_map(|k| FAMILIES.map(|family| (k, family))) {
            let space = space(&mesh, whitney(cell, k, family));
            let u = random(space.n_dofs(), 5);
            // Of each point the trace from its first cell, with that cell's normal.
            let mut known: BTreeMap<[i64; 3], ([f64; 3], [f64; 3])> = BTreeMap::new();
            let mut pairs = 0;
            for facet in 0..cell.facets().len() {
                let points = facet_points(cell, facet);
                let evaluator = Evaluator::new(&mesh, &space, &points).expect("tables");
                let map = MapTable::new(&mesh, &points).expect("a map");
                for own in 0..mesh.n_cells() {
                    let values = evaluator.values(own, &u);
                    for (q, value) in values.chunks_exact(dim).enumerate() {
                        let at = map.at(&mesh, own, q);
                        let n = at.normal(cell, facet);
                        let Some((m, other)) = known.get(&key(&at.point)) else {
                            known.insert(key(&at.point), (n, trace(family, value, &n)));
                            continue;
                        };
                        pairs += 1;
                        assert!((dot(&n, m) + 1.0).abs() < 1e-12, "opposite normals");
                        let own = trace(family, value, m);
                        let scale = value.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
                        for (a, b) in own.iter().zip(other) {
                            assert!((a - b).abs() < ROUNDING * scale, "{family}({k}): {a} and {b}");
                        }
                    }
                }
            }
            assert!(pairs > 0, "two cells should share a facet");
            let facets = mesh.n_cells() * cell.facets().len() - mesh.boundary().len();
            assert_eq!(pairs, facets / 2 * facet_points(cell, 0).len(), "points in two cells");
        }
    }
}

/// Returns a polynomial vector field of a degree along each axis, its curl (of one component in the plane) and its
/// divergence.
fn polynomial(dim: usize, degree: i32, x: &[f64; 3]) -> (Vec<f64>, Vec<f64>, f64) {
    let coefficient = |c: usize, a: usize| 0.4 + 0.3 * c as f64 - 0.5 * a as f64 + (c * a) as f64;
    let of = |c: usize| (0..dim).map(|a| coefficient(c, a) * x[a].powi(degree)).sum::<f64>();
    let slope = |c: usize, a: usize| match degree {
        0 => 0.0,
        _ => coefficient(c, a) * f64::from(degree) * x[a].powi(degree - 1),
    };
    let curl = |(a, b): (usize, usize)| slope(b, a) - slope(a, b);
    let pairs = if dim == 2 { vec![(0, 1)] } else { vec![(1, 2), (2, 0), (0, 1)] };
    let div = (0..dim).map(|a| slope(a, a)).sum();
    ((0..dim).map(of).collect(), pairs.into_iter().map(curl).collect(), div)
}

fn interpolant(mesh: &Mesh, space: &Space, f: impl Fn(&[f64; 3]) -> Vec<f64>) -> Vec<f64> {
    let values = |points: &[[f64; 3]]| Ok::<_, ()>(points.iter().flat_map(&f).collect());
    space.interpolate_vectors(mesh, values).expect("a map").expect("values")
}

fn assert_near(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let scale = want.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() < ROUNDING * scale, "{what}: {a} for {b}");
    }
}

/// Interior points of a reference cell.
const INSIDE: [[f64; 3]; 3] = [[0.1, 0.3, 0.7], [0.5, 0.9, 0.2], [0.8, 0.4, 0.6]];

#[test]
fn polynomials_are_reproduced_on_sheared_and_mirrored_cells() {
    let mut mirrored = 0;
    for (cell, order) in Cell::ALL
        .into_iter()
        .filter(|cell| cell.dim() > 1)
        .flat_map(|cell| [(cell, CellOrdering::Original), (cell, CellOrdering::Sorted)])
    {
        // The points are moved by less than half a cell: back to the grid, for affine cells.
        let (dim, n) = (cell.dim(), 3);
        let mesh = mapped(&turned(cell, n, 1), order, |x| {
            sheared(dim, x.map(|x| (x * n as f64).round() / n as f64))
        });
        mirrored += mesh.mirrored().into_iter().filter(|&mirrored| mirrored).count();
        let points = INSIDE.map(|x| if dim == 2 { [x[0], x[1], 0.0] } else { x });
        for (k, family) in (1..=3).flat_map(|k| FAMILIES.map(|family| (k, family))) {
            let space = space(&mesh, whitney(cell, k, family));
            let f = |x: &[f64; 3]| polynomial(dim, k as i32 - 1, x);
            let u = interpolant(&mesh, &space, |x| f(x).0);
            let evaluator = Evaluator::new(&mesh, &space, &points).expect("tables");
            let map = MapTable::new(&mesh, &points).expect("a map");
            for own in 0..mesh.n_cells() {
                let at: Vec<[f64; 3]> =
                    (0..points.len()).map(|q| map.at(&mesh, own, q).point).collect();
                let values: Vec<f64> = at.iter().flat_map(|x| f(x).0).collect();
                assert_near(&evaluator.values(own, &u), &values, &format!("{family}({k})"));
                let derivatives: Vec<f64> = at
                    .iter()
                    .flat_map(|x| match family {
                        WhitneyFamily::Curl => f(x).1,
                        WhitneyFamily::Div => vec![f(x).2],
                    })
                    .collect();
                let found = evaluator.exterior(own, &u);
                assert_near(&found, &derivatives, &format!("d {family}({k})"));
            }
        }
    }
    assert!(mirrored > 0, "some cells should be mirrored");
}

#[test]
fn cellwise_fields_have_the_values_of_polynomials() {
    for (cell, family) in Cell::ALL
        .into_iter()
        .filter(|cell| cell.dim() > 1)
        .flat_map(|cell| FAMILIES.map(|family| (cell, family)))
    {
        let (dim, n, k) = (cell.dim(), 3, 2);
        let mesh = mapped(&turned(cell, n, 1), CellOrdering::Original, |x| {
            sheared(dim, x.map(|x| (x * n as f64).round() / n as f64))
        });
        let space = space(&mesh, whitney(cell, k, family));
        let f = |x: &[f64; 3]| polynomial(dim, k as i32 - 1, x);
        let u = interpolant(&mesh, &space, |x| f(x).0);
        let [field, derivative] = cellwise(&mesh, &space, &u).expect("an element");
        let map = MapTable::new(&mesh, &field.element.points()).expect("a map");
        let places =
            (0..mesh.n_cells()).flat_map(|cell| (0..map.n_points()).map(move |q| (cell, q)));
        let places: Vec<[f64; 3]> = places.map(|(cell, q)| map.at(&mesh, cell, q).point).collect();
        assert!(field.nodes.iter().map(|&node| node as usize).eq(0..places.len()));
        assert_eq!(field.components, dim);
        let values: Vec<f64> = places.iter().flat_map(|x| f(x).0).collect();
        assert_near(&field.values, &values, "values");
        let derivatives = places.iter().flat_map(|x| match family {
            WhitneyFamily::Curl => f(x).1,
            WhitneyFamily::Div => vec![f(x).2],
        });
        assert_near(&derivative.values, &derivatives.collect::<Vec<f64>>(), "derivatives");
    }
}

#[test]
fn interpolation_commutes_with_curl_and_divergence() {
    for mesh in meshes() {
        let (cell, dim) = (mesh.cell(), mesh.dim());
        let points = INSIDE.map(|x| if dim == 2 { [x[0], x[1], 0.0] } else { x });
        for k in 1..=3 {
            let degree = k as i32;
            if dim == 3 {
                let of_curl = space(&mesh, whitney(cell, k, WhitneyFamily::Curl));
                let of_div = space(&mesh, whitney(cell, k, WhitneyFamily::Div));
                let e = interpolant(&mesh, &of_curl, |x| polynomial(3, degree, x).0);
                let b = interpolant(&mesh, &of_div, |x| polynomial(3, degree, x).1);
                let curl = Evaluator::new(&mesh, &of_curl, &points).expect("tables");
                let flux = Evaluator::new(&mesh, &of_div, &points).expect("tables");
                for own in 0..mesh.n_cells() {
                    let (curl, flux, div) =
                        (curl.exterior(own, &e), flux.values(own, &b), flux.exterior(own, &b));
                    assert_near(&curl, &flux, "curl");
                    assert_near(&div, &[0.0; 3], "div curl");
                }
            }
            // The gradient of φ = Σ_a (a + 1) x_a^(k+1) and, in the plane, its rotation.
            let gradient = |x: &[f64; 3]| -> Vec<f64> {
                let slope = |a: usize| (a + 1) as f64 * f64::from(degree + 1) * x[a].powi(degree);
                (0..dim).map(slope).collect()
            };
            let of_curl = space(&mesh, whitney(cell, k, WhitneyFamily::Curl));
            let e = interpolant(&mesh, &of_curl, gradient);
            let curl = Evaluator::new(&mesh, &of_curl, &points).expect("tables");
            let count = if dim == 2 { 3 } else { 9 };
            for own in 0..mesh.n_cells() {
                assert_near(&curl.exterior(own, &e), &vec![0.0; count], "curl grad");
            }
            if dim == 2 {
                let of_div = space(&mesh, whitney(cell, k, WhitneyFamily::Div));
                let b = interpolant(&mesh, &of_div, |x| {
                    let own = gradient(x);
                    vec![own[1], -own[0]]
                });
                let flux = Evaluator::new(&mesh, &of_div, &points).expect("tables");
                for own in 0..mesh.n_cells() {
                    assert_near(&flux.exterior(own, &b), &[0.0; 3], "div rot");
                }
            }
        }
    }
}

#[test]
fn given_traces_are_those_of_the_field() {
    for mesh in meshes() {
        let (cell, dim) = (mesh.cell(), mesh.dim());
        let boundary = mesh.boundary();
        let map: Vec<MapTable> = (0..cell.facets().len())
            .map(|facet| MapTable::new(&mesh, &facet_points(cell, facet)[..1]).expect("a map"))
            .collect();
        let normal = |facet: &Facet| {
            let local = usize::from(facet.local);
            map[local].at(&mesh, facet.cell as usize, 0).normal(cell, local)
        };
        for (k, family) in (1..=3).flat_map(|k| FAMILIES.map(|family| (k, family))) {
            let space = space(&mesh, whitney(cell, k, family));
            let f = |x: &[f64; 3]| polynomial(dim, 2, x).0;
            let u = interpolant(&mesh, &space, f);
            // The facets of a plane have one normal, away from which the trace is exact.
            let n = normal(&boundary[0]);
            let plane: Vec<Facet> =
                boundary.iter().filter(|own| dot(&normal(own), &n) > 0.999_999).copied().collect();
            assert!(plane.len() > 1);
            let given = match family {
                WhitneyFamily::Curl => GivenTrace::Tangential,
                WhitneyFamily::Div => GivenTrace::Normal,
            };
            for given in [GivenTrace::Field, given] {
                let own = FacetFunctionals::new(&mesh, &space, &plane, given).expect("a map");
                assert_eq!(own.nodes, space.nodes_on(&plane), "{family}({k})");
                let value = |x: &[f64; 3]| match (given, dim) {
                    (GivenTrace::Field, _) => f(x),
                    (GivenTrace::Tangential, 2) => vec![trace(family, &f(x), &n)[2]],
                    (GivenTrace::Tangential, _) => trace(family, &f(x), &n).to_vec(),
                    (GivenTrace::Normal, _) => vec![trace(family, &f(x), &n)[0]],
                };
                let values: Vec<f64> = own.points.iter().flat_map(value).collect();
                let want: Vec<f64> = own.nodes.iter().map(|&node| u[node as usize]).collect();
                assert_near(&own.of_values(&values), &want, &format!("{family}({k}), {given:?}"));
            }
        }
    }
}

/// An exterior derivative of reference functions: for each functional of the target, its values of the functions of the
/// source. All are integers.
fn incidence(from: Element, to: Target) -> Vec<Vec<i64>> {
    let dim = from.cell().dim();
    let functional = to.functionals(from.degree());
    let of = |terms: &Vec<(usize, [f64; 3], f64)>| -> Vec<i64> {
        let mut row = vec![0.0; from.count()];
        for (component, point, weight) in terms {
            let mut add = |part: Element, first: usize, axis: usize, factor: f64| {
                let table = tabulate(part, &[*point]);
                for i in 0..table.nodes {
                    row[first + i] += weight * factor * table.gradient(0, i)[axis];
                }
            };
            match from {
                Element::Whitney(own) => {
                    let part = |a: usize| (Element::Component(own, a), own.first(a), own.sign(a));
                    let mut add_part = |a: usize, axis: usize, factor: f64| {
                        let (part, first, sign) = part(a);
                        add(part, first, axis, factor * sign);
                    };
                    match (own.family(), dim) {
                        (WhitneyFamily::Div, _) => (0..dim).for_each(|a| add_part(a, a, 1.0)),
                        (WhitneyFamily::Curl, 2) => {
                            add_part(1, 0, 1.0);
                            add_part(0, 1, -1.0);
                        }
                        (WhitneyFamily::Curl, _) => {
                            let (a, b) = ((component + 1) % 3, (component + 2) % 3);
                            add_part(b, a, 1.0);
                            add_part(a, b, -1.0);
                        }
                    }
                }
                _ => add(from, 0, *component, 1.0),
            }
        }
        let whole: Vec<f64> = row.iter().map(|x| x.round()).collect();
        for (a, b) in row.iter().zip(&whole) {
            assert!((a - b).abs() < 1e-10 && b.abs() <= 1.0, "{a} is no incidence");
        }
        whole.into_iter().map(|x| x as i64).collect()
    };
    functional.iter().map(of).collect()
}

/// The degrees of freedom of the derivative.
#[derive(Clone, Copy)]
enum Target {
    Whitney(Whitney),
    /// Integrals over the cells between the points of degree k.
    Cells(Cell),
}

impl Target {
    /// Returns component, point and weight of the terms of each functional.
    fn functionals(self, degree: usize) -> Vec<Vec<(usize, [f64; 3], f64)>> {
        match self {
            Self::Whitney(own) => {
                let of = own.dofs().into_iter().map(|dof| {
                    let terms = own.functional(&dof, degree + 1).into_iter();
                    let own = |(point, weights): ([f64; 3], [f64; 3])| {
                        (dof.component, point, weights[dof.component])
                    };
                    terms.map(own).collect()
                });
                of.collect()
            }
            Self::Cells(cell) => {
                // The product of the open axes of fluxes and of a last one: that of a component of H(curl).
                let (dim, k) = (cell.dim(), degree);
                let line = whitney(Cell::Quadrilateral, k, WhitneyFamily::Curl);
                let intervals: Vec<Vec<(f64, f64)>> = line.dofs()[..k]
                    .iter()
                    .map(|dof| {
                        let terms = line.functional(dof, degree + 1).into_iter();
                        terms.map(|(point, weights)| (point[0], weights[0])).collect()
                    })
                    .collect();
                (0..k.pow(dim as u32))
                    .map(|i| {
                        let mut terms = vec![(0, [0.0; 3], 1.0)];
                        for axis in 0..dim {
                            let own = &intervals[i / k.pow(axis as u32) % k];
                            terms = terms
                                .iter()
                                .flat_map(|&(c, point, weight)| {
                                    own.iter().map(move |&(x, w)| {
                                        let mut point: [f64; 3] = point;
                                        point[axis] = x;
                                        (c, point, weight * w)
                                    })
                                })
                                .collect();
                        }
                        terms
                    })
                    .collect()
            }
        }
    }
}

/// Applies an incidence matrix cell by cell; cells must agree on shared degrees of freedom.
fn applied(mesh: &Mesh, matrix: &[Vec<i64>], from: &Space, u: &[i64], to: &Space) -> Vec<i64> {
    let mut result: Vec<Option<i64>> = vec![None; to.n_dofs()];
    for cell in 0..mesh.n_cells() {
        for (i, (row, &node)) in matrix.iter().zip(to.cell_nodes(cell)).enumerate() {
            let sign =
                |signs: &[bool], at: usize| if signs.get(at) == Some(&true) { -1 } else { 1 };
            let terms = row.iter().zip(from.cell_nodes(cell)).enumerate();
            let sum: i64 = terms
                .map(|(j, (factor, &own))| {
                    factor * sign(from.cell_signs(cell), j) * u[own as usize]
                })
                .sum();
            let value = sign(to.cell_signs(cell), i) * sum;
            let known = result[node as usize].get_or_insert(value);
            assert_eq!(*known, value, "cells should agree");
        }
    }
    result.into_iter().map(|value| value.expect("a degree of freedom has a cell")).collect()
}

#[test]
fn discrete_derivatives_are_incidences_and_form_a_complex() {
    for mesh in meshes().into_iter().filter(|mesh| mesh.cell().is_tensor()) {
        let cell = mesh.cell();
        for k in 1..=3 {
            let nodes = Lagrange::continuous(cell, k).expect("an element");
            let [curl, div] = FAMILIES.map(|family| whitney(cell, k, family));
            let of_nodes = space(&mesh, nodes);
            let [of_curl, of_div] = [curl, div].map(|own| space(&mesh, own));
            let integers = |count: usize, seed: u64| -> Vec<i64> {
                random(count, seed).into_iter().map(|x| (200.0 * x) as i64).collect()
            };
            let grad = incidence(nodes.into(), Target::Whitney(curl));
            let e = applied(&mesh, &grad, &of_nodes, &integers(of_nodes.n_dofs(), 3), &of_curl);
            assert!(e.iter().any(|&x| x != 0));
            let stored = |from: &Space, to: &Space, u: &[i64]| -> Vec<i64> {
                let matrix = DiscreteDerivative::new(from, to).expect("a derivative");
                let row = |row: usize| -> f64 {
                    matrix.row(row).map(|(column, entry)| entry * u[column as usize] as f64).sum()
                };
                (0..matrix.n_rows()).map(|i| row(i) as i64).collect()
            };
            assert_eq!(stored(&of_nodes, &of_curl, &integers(of_nodes.n_dofs(), 3)), e);
            let product = |matrix: &[Vec<i64>], space: &Space, u: &[i64], cell: usize| {
                let signs = space.cell_signs(cell);
                let own: Vec<i64> = space
                    .cell_nodes(cell)
                    .iter()
                    .enumerate()
                    .map(|(j, &node)| {
                        if signs.get(j) == Some(&true) {
                            -u[node as usize]
                        } else {
                            u[node as usize]
                        }
                    })
                    .collect();
                let row = |row: &Vec<i64>| row.iter().zip(&own).map(|(a, b)| a * b).sum::<i64>();
                matrix.iter().map(row).collect::<Vec<i64>>()
            };
            let cells = Target::Cells(cell);
            if mesh.dim() == 2 {
                let rot = incidence(curl.into(), cells);
                let flux = stored(&of_nodes, &of_div, &integers(of_nodes.n_dofs(), 3));
                let divergence = incidence(div.into(), cells);
                for own in 0..mesh.n_cells() {
                    assert!(product(&rot, &of_curl, &e, own).iter().all(|&x| x == 0));
                    assert!(product(&divergence, &of_div, &flux, own).iter().all(|&x| x == 0));
                }
                continue;
            }
            let rot = incidence(curl.into(), Target::Whitney(div));
            assert!(applied(&mesh, &rot, &of_curl, &e, &of_div).iter().all(|&x| x == 0));
            let a = integers(of_curl.n_dofs(), 7);
            let b = applied(&mesh, &rot, &of_curl, &a, &of_div);
            assert!(b.iter().any(|&x| x != 0));
            assert_eq!(stored(&of_curl, &of_div, &a), b);
            let divergence = incidence(div.into(), cells);
            for own in 0..mesh.n_cells() {
                assert!(product(&divergence, &of_div, &b, own).iter().all(|&x| x == 0));
            }
        }
    }
}

#[test]
fn processes_agree_on_order_and_signs() {
    for (cell, n) in SIZES.map(|(cell, n)| (cell, n.max(3))) {
        let whole = Arc::new(turned(cell, n, 2));
        let dim = cell.dim();
        let side = |mesh: &Mesh| -> Vec<Facet> {
            let lies = |facet: &Facet| {
                let vertices = cell.facets()[usize::from(facet.local)];
                let own = mesh.vertices(facet.cell as usize);
                vertices.iter().all(|&v| mesh.points()[own[v] as usize][0] < 1e-9)
            };
            mesh.boundary().into_iter().filter(lies).collect()
        };
        for (k, family) in (1..=3).flat_map(|k| FAMILIES.map(|family| (k, family))) {
            let fields = [(whitney(cell, k, family), 1)];
            let all = Discretisation::new(Arc::clone(&whole), &fields).expect("spaces");
            let f = |x: &[f64; 3]| polynomial(dim, 2, x).0;
            let u = interpolant(&whole, &all.fields[0].space, f);
            let on_side = all.fields[0].space.nodes_on(&side(&whole));
            let (given, n) = match family {
                WhitneyFamily::Curl => (GivenTrace::Tangential, [-1.0, 0.0, 0.0]),
                WhitneyFamily::Div => (GivenTrace::Normal, [-1.0, 0.0, 0.0]),
            };
            let found = each(3, |group| {
                let mesh = Arc::clone(&whole).part(&group);
                let on = Discretisation::new(Arc::clone(&mesh), &fields).expect("spaces");
                let (space, places) =
                    (&on.fields[0].space, on.places_in(&all).expect("a part of a mesh"));
                let of_whole: Vec<f64> = places.iter().map(|&place| u[place]).collect();
                assert_near(&interpolant(&mesh, space, f), &of_whole, &format!("{family}({k})"));
                let own = FacetFunctionals::new(&mesh, space, &side(&mesh), given);
                let own = own.expect("a map");
                let value = |x: &[f64; 3]| match (given, dim) {
                    (GivenTrace::Tangential, 2) => vec![trace(family, &f(x), &n)[2]],
                    (GivenTrace::Tangential, _) => trace(family, &f(x), &n).to_vec(),
                    _ => vec![trace(family, &f(x), &n)[0]],
                };
                let values: Vec<f64> = own.points.iter().flat_map(value).collect();
                let want: Vec<f64> =
                    own.nodes.iter().map(|&node| of_whole[node as usize]).collect();
                assert_near(&own.of_values(&values), &want, &format!("{family}({k}), {given:?}"));
                let held = (0..space.n_nodes())
                    .filter(|&node| on_side.binary_search(&(places[node] as u32)).is_ok());
                assert!(own.nodes.iter().map(|&node| node as usize).eq(held));
                own.nodes.len()
            });
            assert!(found.iter().sum::<usize>() >= on_side.len());
        }
    }
}
