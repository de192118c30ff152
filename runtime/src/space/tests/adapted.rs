//! Meshes of leaves: functions of continuous spaces are single-valued on all common points of cells.

use super::super::Space;
use crate::mesh::Mesh;
use crate::mesh::refine::forest::Forest;
use crate::space::derivative::DiscreteDerivative;
use crate::space::discretisation::Discretisation;
use crate::space::evaluate::{Evaluator, MapTable, cross, dot};
use kernels_gen::element::{Element, Lagrange, Whitney, WhitneyFamily, tabulate};
use samples::{Random, grow, meshes};
use std::collections::BTreeMap;
use std::sync::Arc;

#[path = "../../../mesh/src/mesh/refine/forest/tests/samples.rs"]
mod samples;

/// Returns a balanced forest over a mesh, refined at random.
fn grown(mesh: &Mesh, random: &mut Random) -> Forest {
    let mut forest = Forest::new(mesh).expect("a forest");
    grow(&mut forest, random, 2);
    forest.balance().expect("few leaves");
    forest
}

/// Returns the slightly enlarged bounding box of the corners of each cell.
fn boxes(mesh: &Mesh) -> Vec<[[f64; 2]; 3]> {
    let of = |cell: usize| {
        let mut own = [[f64::INFINITY, f64::NEG_INFINITY]; 3];
        for &vertex in mesh.vertices(cell) {
            for (own, x) in own.iter_mut().zip(mesh.points()[vertex as usize]) {
                *own = [own[0].min(x - 1e-6), own[1].max(x + 1e-6)];
            }
        }
        own
    };
    (0..mesh.n_cells()).map(of).collect()
}

/// Returns the reference coordinates of a point in a cell, if it lies there; straight cells lie in the box of their
/// corners.
fn inverse(mesh: &Mesh, cell: usize, bounds: &[[f64; 2]; 3], x: [f64; 3]) -> Option<[f64; 3]> {
    let dim = mesh.dim();
    if (0..dim).any(|c| x[c] < bounds[c][0] || x[c] > bounds[c][1]) {
        return None;
    }
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let mut xi = [0.5, 0.5, if dim == 3 { 0.5 } else { 0.0 }];
    for _ in 0..12 {
        let table = tabulate(geometry, &[xi]);
        let mut rest = x;
        let mut jacobian = [[0.0; 3], [0.0; 3], [0.0, 0.0, 1.0]];
        for (local, &node) in mesh.cell_nodes(cell).iter().enumerate() {
            let at = mesh.points()[node as usize];
            for c in 0..dim {
                rest[c] -= table.value(0, local) * at[c];
                for (a, d) in table.gradient(0, local).iter().enumerate() {
                    jacobian[c][a] += d * at[c];
                }
            }
        }
        let cross = |a: [f64; 3], b: [f64; 3]| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        };
        let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let column = |a: usize| [jacobian[0][a], jacobian[1][a], jacobian[2][a]];
        let columns = [column(0), column(1), column(2)];
        let det = dot(columns[0], cross(columns[1], columns[2]));
        for a in 0..dim {
            let others = cross(columns[(a + 1) % 3], columns[(a + 2) % 3]);
            xi[a] += (dot(others, rest) / det).clamp(-0.5, 0.5);
        }
    }
    let inside = (0..dim).all(|a| (-1e-9..1.0 + 1e-9).contains(&xi[a]));
    inside.then_some(xi)
}

/// Returns the value of a finite-element function at a point of a cell.
fn value(space: &Space, values: &[f64], cell: usize, xi: [f64; 3]) -> f64 {
    let table = tabulate(space.element(), &[xi]);
    let nodes = space.cell_nodes(cell).iter().enumerate();
    nodes.map(|(local, &node)| table.value(0, local) * values[node as usize]).sum()
}

/// Checks that all cells at a point agree on the value there.
fn is_continuous(mesh: &Mesh, periods: [f64; 3], degree: usize, random: &mut Random) -> usize {
    let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
    let on = Discretisation::new(mesh.clone(), &[(element, 1)]).expect("a discretisation");
    let space = &on.fields[0].space;
    let u: Vec<f64> =
        (0..space.n_dofs()).map(|_| random.below(1000) as f64 / 500.0 - 1.0).collect();
    let (space, values) = space.resolved(&u);
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let table = tabulate(geometry, &element.points());
    let (mut compared, boxes) = (0, boxes(mesh));
    for cell in 0..mesh.n_cells() {
        for (local, &node) in space.cell_nodes(cell).iter().enumerate() {
            let own = &table.values[local * geometry.count()..][..geometry.count()];
            let x = mesh.place_of(cell, own);
            let (own, mut places) = (values[node as usize], vec![x]);
            for c in (0..3).filter(|&c| periods[c] > 0.0) {
                let moved = |by: f64| {
                    places.iter().map(move |x| {
                        let mut x = *x;
                        x[c] += by;
                        x
                    })
                };
                let more: Vec<_> = moved(periods[c]).chain(moved(-periods[c])).collect();
                places.extend(more);
            }
            for (other, bounds) in boxes.iter().enumerate().filter(|&(other, _)| other != cell) {
                for &x in &places {
                    let Some(xi) = inverse(mesh, other, bounds, x) else { continue };
                    let there = value(&space, &values, other, xi);
                    assert!(
                        (own - there).abs() < 1e-8,
                        "degree {degree} at {x:?} of cells {cell} and {other}: {own} and {there}"
                    );
                    compared += 1;
                }
            }
        }
    }
    compared
}

#[test]
fn functions_are_continuous_over_hanging_faces_and_edges() {
    let mut random = Random(7);
    for (number, (coarse, periods)) in meshes(&mut random).into_iter().enumerate() {
        let forest = grown(&coarse, &mut random);
        let coarse = Arc::new(coarse);
        let mesh = forest.mesh(&coarse).expect("a mesh");
        assert_eq!(mesh.n_cells(), forest.n_leaves());
        assert!(mesh.hanging().is_some(), "mesh {number}");
        for degree in 1..=if mesh.dim() == 2 { 4 } else { 2 } {
            let compared = is_continuous(&mesh, periods, degree, &mut random);
            assert!(compared > mesh.n_cells());
        }
    }
}

/// Checks that n × u or u · n agree at points of facets, where cells meet. Returns the number of comparisons.
fn traces_agree(mesh: &Mesh, periods: [f64; 3], element: Whitney, random: &mut Random) -> usize {
    let on = Discretisation::new(mesh.clone(), &[(element, 1)]).expect("a discretisation");
    let space = &on.fields[0].space;
    let u: Vec<f64> =
        (0..space.n_dofs()).map(|_| random.below(1000) as f64 / 500.0 - 1.0).collect();
    let (space, values) = space.resolved(&u);
    let (mut compared, boxes, dim) = (0, boxes(mesh), mesh.dim());
    let trace = |u: &[f64], n: &[f64; 3]| {
        let u = [u[0], u[1], u.get(2).copied().unwrap_or(0.0)];
        match element.family() {
            WhitneyFamily::Curl => cross(n, &u),
            WhitneyFamily::Div => [dot(n, &u), 0.0, 0.0],
        }
    };
    let at = |cell: usize, xi: [f64; 3]| {
        Evaluator::new(mesh, &space, &[xi]).expect("tables").values(cell, &values)
    };
    for facet in 0..mesh.cell().facets().len() {
        // No point on the edge of a smaller cell.
        let xi = mesh.cell().entity_point(dim - 1, facet, [0.3, 0.8, 0.0]);
        let map = MapTable::new(mesh, &[xi]).expect("a map");
        for cell in 0..mesh.n_cells() {
            let (place, own) = (map.at(mesh, cell, 0), at(cell, xi));
            let n = place.normal(mesh.cell(), facet);
            for (other, bounds) in boxes.iter().enumerate() {
                for c in 0..4 {
                    for by in [-1.0, 1.0] {
                        let mut x = place.point;
                        if c < 3 && periods[c] > 0.0 {
                            x[c] += by * periods[c];
                        } else if c < 3 || by < 0.0 || other == cell {
                            continue;
                        }
                        let Some(xi) = inverse(mesh, other, bounds, x) else { continue };
                        let there = at(other, xi);
                        let both = [trace(&own, &n), trace(&there, &n)];
                        let size = own.iter().chain(&there).fold(1.0_f64, |a, b| a.max(b.abs()));
                        for (a, b) in both[0].iter().zip(&both[1]) {
                            assert!(
                                (a - b).abs() < 1e-8 * size,
                                "{element} at {x:?} of cells {cell} and {other}: {a} and {b}"
                            );
                        }
                        compared += 1;
                    }
                }
            }
        }
    }
    compared
}

/// Checks that a constant is its own interpolant, in all cells.
fn constants_are_kept(mesh: &Mesh, element: Whitney) {
    let on = Discretisation::new(mesh.clone(), &[(element, 1)]).expect("a discretisation");
    let constant = &[0.7, -0.4, 1.1][..mesh.dim()];
    let values = |points: &[[f64; 3]]| Ok::<_, ()>(constant.repeat(points.len()));
    let u = on.fields[0].space.interpolate_vectors(mesh, values).expect("tables").expect("values");
    let (space, u) = on.fields[0].space.resolved(&u);
    let points = [[0.3, 0.6, 0.2], [0.9, 0.1, 0.7]];
    let evaluator = Evaluator::new(mesh, &space, &points).expect("tables");
    for cell in 0..mesh.n_cells() {
        for (i, value) in evaluator.values(cell, &u).into_iter().enumerate() {
            let wanted = constant[i % mesh.dim()];
            assert!((value - wanted).abs() < 1e-10, "{element}, cell {cell}: {value}, {wanted}");
        }
    }
}

/// Derivatives of random potentials have none themselves, in any cell.
fn exterior_derivatives_of_potentials_vanish(mesh: &Mesh, degree: usize, random: &mut Random) {
    let of = |family| Whitney::new(mesh.cell(), degree as i64, family).expect("an element");
    let nodal = Lagrange::continuous(mesh.cell(), degree).expect("an element");
    let (curl, div) = (of(WhitneyFamily::Curl), of(WhitneyFamily::Div));
    let mut pairs: Vec<(Element, Whitney)> = vec![(nodal.into(), curl)];
    pairs.push(if mesh.dim() == 2 { (nodal.into(), div) } else { (curl.into(), div) });
    for (potential, element) in pairs {
        let fields: [(Element, usize); 2] = [(potential, 1), (element.into(), 1)];
        let on = Discretisation::new(mesh.clone(), &fields).expect("a discretisation");
        let [of_potential, space] = [0, 1].map(|field| &on.fields[field].space);
        let phi: Vec<f64> =
            (0..of_potential.n_dofs()).map(|_| random.below(1000) as f64 / 500.0 - 1.0).collect();
        let derivative = DiscreteDerivative::new(of_potential, space).expect("a derivative");
        let of_row = |row: usize| -> f64 {
            derivative.row(row).map(|(column, entry)| entry * phi[column as usize]).sum()
        };
        let u: Vec<f64> = (0..derivative.n_rows()).map(of_row).collect();
        let (space, u) = space.resolved(&u);
        let points = [[0.2, 0.7, 0.4], [0.9, 0.1, 0.6]];
        let evaluator = Evaluator::new(mesh, &space, &points).expect("tables");
        for cell in 0..mesh.n_cells() {
            let size = evaluator.values(cell, &u).iter().fold(1.0_f64, |a, b| a.max(b.abs()));
            for value in evaluator.exterior(cell, &u) {
                assert!(value.abs() < 1e-8 * size, "{element}, cell {cell}: {value} of {size}");
            }
        }
    }
}

#[test]
fn traces_agree_over_hanging_faces_and_edges() {
    let mut random = Random(11);
    for (number, (coarse, periods)) in meshes(&mut random).into_iter().enumerate() {
        let forest = grown(&coarse, &mut random);
        let mesh = forest.mesh(&Arc::new(coarse)).expect("a mesh");
        assert!(mesh.hanging().is_some(), "mesh {number}");
        for family in [WhitneyFamily::Curl, WhitneyFamily::Div] {
            for degree in 1..=if mesh.dim() == 2 { 4 } else { 2 } {
                let element = Whitney::new(mesh.cell(), degree, family).expect("an element");
                if family == WhitneyFamily::Curl {
                    exterior_derivatives_of_potentials_vanish(&mesh, degree as usize, &mut random);
                }
                let compared = traces_agree(&mesh, periods, element, &mut random);
                assert!(compared > mesh.n_cells(), "mesh {number}: {compared}");
                // Fluxes of a constant through cells with straight edges have degree 1.
                if mesh.order() == 1 && (degree > 1 || family == WhitneyFamily::Curl) {
                    constants_are_kept(&mesh, element);
                }
            }
        }
    }
}

/// Coordinates are functions of the geometry's space, also on curved cells.
#[test]
fn coordinates_are_functions_of_the_space() {
    let mut random = Random(8);
    for (number, (coarse, periods)) in meshes(&mut random).into_iter().enumerate() {
        if periods != [0.0; 3] {
            continue;
        }
        let forest = grown(&coarse, &mut random);
        let mesh = forest.mesh(&Arc::new(coarse)).expect("a mesh");
        for degree in 1..=3 {
            nodes_are_where_they_are(&mesh, degree, &format!("mesh {number}"));
        }
    }
}

fn nodes_are_where_they_are(mesh: &Mesh, degree: usize, name: &str) {
    let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
    let on = Discretisation::new(mesh.clone(), &[(element, 3)]).expect("a discretisation");
    let space = &on.fields[0].space;
    let points = space.points(mesh, &on.partition).expect("points");
    let u: Vec<f64> = points.iter().flatten().copied().collect();
    let (space, values) = space.resolved(&u);
    let geometry = Lagrange::continuous(mesh.cell(), mesh.order()).expect("an element");
    let table = tabulate(geometry, &element.points());
    let size = mesh.points().iter().flatten().fold(0.0_f64, |most, x| most.max(x.abs()));
    for cell in 0..mesh.n_cells() {
        for (local, &node) in space.cell_nodes(cell).iter().enumerate() {
            let own = &table.values[local * geometry.count()..][..geometry.count()];
            let x = mesh.place_of(cell, own);
            for c in 0..3 {
                let there = values[node as usize * 3 + c];
                assert!((x[c] - there).abs() < 1e-12 * size, "{name}: {x:?}, cell {cell}, {there}");
            }
        }
    }
}

/// Balls and shells, whose boundary nodes lie on spheres unless they hang, and curved meshes from files.
#[test]
fn curved_cells_meet_without_cracks() {
    use fem_dsl::problem::Argument;
    let mut random = Random(9);
    for (name, dim, order) in [("ball", 2, 2), ("ball", 3, 2), ("shell", 3, 3), ("ball", 3, 4)] {
        let word = if dim == 2 { "quad" } else { "hex" };
        let arguments = BTreeMap::from([
            ("dim".to_owned(), Argument::Number(dim as f64)),
            ("order".to_owned(), Argument::Number(order as f64)),
            ("cell".to_owned(), Argument::Word(word.to_owned())),
        ]);
        let coarse = crate::mesh::generate::generate(name, &arguments).expect("a mesh");
        let mesh = grown(&coarse, &mut random).mesh(&Arc::new(coarse)).expect("a mesh");
        for degree in order..=order + 1 {
            nodes_are_where_they_are(&mesh, degree, &format!("{name} of order {order}"));
        }
    }
}
