//! Node sets: ownership, symmetry, order, and consistency between neighbours.

use super::*;
use fem_dsl::point::Degree;
use std::collections::BTreeSet;

const EPS: f64 = f64::EPSILON;

fn elements() -> Vec<Lagrange> {
    let mut all = Vec::new();
    for cell in Cell::ALL {
        let top = if cell.is_tensor() { 7 } else { MAX_SIMPLEX_DEGREE };
        for degree in 1..=top {
            all.extend(Lagrange::continuous(cell, degree));
            all.extend(Lagrange::equispaced(cell, degree));
        }
        for degree in 0..=top {
            all.extend(Lagrange::discontinuous(cell, degree));
        }
    }
    all
}

#[test]
fn turned_cells_have_their_facet_in_front() {
    for cell in Cell::ALL {
        for degree in 1..=4 {
            let element = Lagrange::continuous(cell, degree).expect("an element");
            let nodes = element.nodes();
            for (facet, vertices) in cell.facets().iter().enumerate() {
                let turned = element.turned(facet, 0);
                let (normal, corner) = (cell.facet_normal(facet), cell.vertex(vertices[0]));
                let height = |point: [f64; 3]| -> f64 {
                    (0..3).map(|c| normal[c] * (corner[c] - point[c])).sum()
                };
                let mut seen = vec![false; nodes.len()];
                for (node, &own) in nodes.iter().zip(&turned) {
                    assert!(!std::mem::replace(&mut seen[own], true), "{cell}{degree} {facet}");
                    // The distance from the facet is ξ₀, scaled on a slanted facet.
                    let scale = if facet == 0 && !cell.is_tensor() {
                        (cell.dim() as f64).sqrt()
                    } else {
                        1.0
                    };
                    let distance = height(nodes[own].point) * scale;
                    assert!((distance - node.point[0]).abs() < 1e-14, "{cell}{degree} {facet}");
                }
            }
        }
    }
}

#[test]
fn every_entity_owns_its_share() {
    for element in elements() {
        let nodes = element.nodes();
        assert_eq!(nodes.len(), element.count(), "{element}");
        assert_eq!(element.lattice().len(), nodes.len(), "{element}");
        for dim in 0..=element.cell().dim() {
            for entity in 0..element.cell().entities(dim).len() {
                let own: Vec<usize> = nodes
                    .iter()
                    .filter(|node| (node.dim, node.entity) == (dim, entity))
                    .map(|node| node.index)
                    .collect();
                assert_eq!(own, Vec::from_iter(0..element.entity_count(dim)), "{element} {dim}");
            }
        }
    }
}

#[test]
fn nodes_lie_on_the_entity_that_owns_them() {
    for element in elements().into_iter().filter(|e| e.is_continuous()) {
        let cell = element.cell();
        for node in element.nodes() {
            for (vertices, facet) in cell.facets().iter().zip(0..) {
                let normal = cell.facet_normal(facet);
                let origin = cell.vertex(vertices[0]);
                let depth: f64 = (0..3).map(|c| normal[c] * (node.point[c] - origin[c])).sum();
                let owner = cell.entities(node.dim)[node.entity];
                if owner.iter().all(|v| vertices.contains(v)) {
                    assert!(depth.abs() <= 2.0 * EPS, "{element} {node:?}");
                } else {
                    assert!(depth < -1.0e-3, "{element} {node:?}");
                }
            }
        }
    }
}

#[test]
fn every_edge_carries_the_gauss_lobatto_points() {
    for element in elements().into_iter().filter(|e| e.family == Family::Continuous) {
        let (cell, degree) = (element.cell(), element.degree());
        let line = LinePoints::GaussLobatto(degree + 1).points();
        for node in element.nodes().into_iter().filter(|node| node.dim == 1) {
            assert_eq!(node.position[0], node.index + 1);
            let place = [line[node.position[0]], 0.0, 0.0];
            let want = cell.entity_point(1, node.entity, place);
            for c in 0..3 {
                assert!((node.point[c] - want[c]).abs() <= EPS, "{element} {node:?}");
            }
        }
    }
}

#[test]
fn low_degrees_are_the_well_known_elements() {
    let points = |cell, degree| Lagrange::continuous(cell, degree).map(Lagrange::points);
    for cell in Cell::ALL {
        assert_eq!(points(cell, 1), Ok(cell.vertices()));
    }
    let middles = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.0], [0.5, 0.0, 0.0]];
    assert_eq!(points(Cell::Triangle, 2).expect("degree 2")[3..], middles);
    let centre = Lagrange::discontinuous(Cell::Tetrahedron, 0).map(Lagrange::points);
    assert_eq!(centre, Ok(vec![[0.25; 3]]));
    let cubic = points(Cell::Triangle, 3).expect("degree 3");
    for c in 0..2 {
        assert!((cubic[9][c] - 1.0 / 3.0).abs() <= EPS);
    }
}

#[test]
fn simplex_nodes_are_symmetric() {
    for element in elements().into_iter().filter(|e| !e.cell().is_tensor() && e.degree() > 0) {
        let (dim, degree) = (element.cell().dim(), element.degree());
        let (nodes, lattice) = (element.nodes(), element.lattice());
        // Two transpositions of barycentric coordinates generate enough: (0 1) and a cycle.
        let cycle: Vec<usize> = (0..=dim).map(|v| (v + 1) % (dim + 1)).collect();
        let swap: Vec<usize> = (0..=dim).map(|v| if v < 2 { 1 - v } else { v }).collect();
        for map in [cycle, swap] {
            for node in &nodes {
                let weight = |v: usize| match v {
                    0 => degree - node.lattice.iter().sum::<usize>(),
                    _ => node.lattice[v - 1],
                };
                let lambda = |v: usize| match v {
                    0 => 1.0 - node.point.iter().sum::<f64>(),
                    _ => node.point[v - 1],
                };
                let mut image = [0; 3];
                (1..=dim).for_each(|v| image[v - 1] = weight(map[v]));
                let image = &nodes[lattice[&image]];
                for v in 1..=dim {
                    let error = (image.point[v - 1] - lambda(map[v])).abs();
                    assert!(error <= 16.0 * EPS, "{element} {node:?}: {error}");
                }
            }
        }
    }
}

/// Returns all permutations of `n` items.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for k in 0..n {
        all = all
            .iter()
            .flat_map(|p: &Vec<usize>| {
                (0..=k).map(|at| {
                    let mut p = p.clone();
                    p.insert(at, k);
                    p
                })
            })
            .collect();
    }
    all
}

/// Two cells see one entity with permuted vertices; equal positions in the global order must be the same physical
/// point.
#[test]
fn neighbours_agree_on_shared_nodes() {
    let corners = [[0.1, 0.2], [1.3, 0.0], [0.2, 1.1], [1.4, 0.9]];
    for shape in [Cell::Interval, Cell::Triangle, Cell::Quadrilateral] {
        for degree in 2..=6 {
            let element = Lagrange::continuous(shape, degree).expect("a supported degree");
            let owned: Vec<Node> =
                element.nodes().into_iter().filter(|node| node.dim == shape.dim()).collect();
            let mut agreed: BTreeMap<usize, [f64; 2]> = BTreeMap::new();
            for order in permutations(shape.vertex_count()) {
                if shape == Cell::Quadrilateral && order[0] + order[3] != 3 {
                    continue; // not a symmetry of the square
                }
                let numbers: Vec<usize> = order.iter().map(|&v| [40, 17, 25, 99][v]).collect();
                let places = entity_permutation(shape, degree, &numbers);
                assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), owned.len());
                for node in &owned {
                    let want = physical(shape, &order, &corners, node.point);
                    let seen = *agreed.entry(places[node.index]).or_insert(want);
                    for c in 0..2 {
                        assert!((seen[c] - want[c]).abs() <= 16.0 * EPS, "{shape} {order:?}");
                    }
                }
            }
            assert_eq!(agreed.len(), owned.len());
        }
    }
}

/// Returns the physical point of a reference point of an entity whose local vertex i is corner `order[i]`.
fn physical(shape: Cell, order: &[usize], corners: &[[f64; 2]], point: [f64; 3]) -> [f64; 2] {
    let [x, y, _] = point;
    let weights: Vec<f64> = match shape {
        Cell::Interval => vec![1.0 - x, x],
        Cell::Triangle => vec![1.0 - x - y, x, y],
        _ => vec![(1.0 - x) * (1.0 - y), x * (1.0 - y), (1.0 - x) * y, x * y],
    };
    let sum = |c: usize| order.iter().zip(&weights).map(|(&v, w)| w * corners[v][c]).sum();
    [sum(0), sum(1)]
}

#[test]
fn impossible_degrees_are_refused() {
    assert!(Lagrange::continuous(Cell::Hexahedron, 0).is_err());
    let error = Lagrange::continuous(Cell::Triangle, 9).expect_err("degree 9");
    assert_eq!(
        error.to_string(),
        "no Lagrange element of degree 9 on tri: degrees 1 to 8 are there"
    );
    let pressure = Space::H1(Degree::Relative(-1));
    assert_eq!(
        Lagrange::in_space(Cell::Triangle, pressure, 3),
        Lagrange::continuous(Cell::Triangle, 2)
    );
    assert!(Lagrange::in_space(Cell::Triangle, pressure, 1).is_err());
    let error = Lagrange::in_space(Cell::Quadrilateral, Space::L2(Degree::Relative(-2)), 1);
    assert!(error.expect_err("degree -1").to_string().contains("degree -1 on quad"));
}
