//! Degrees of freedom of Whitney elements: counts, duality with the functions, orders in the frames of entities.

use super::*;
use crate::element::Element;
use crate::element::tabulate;
use std::collections::BTreeSet;

fn all() -> impl Iterator<Item = Whitney> {
    [Cell::Quadrilateral, Cell::Hexahedron].into_iter().flat_map(|cell| {
        (1..=4).flat_map(move |k| {
            [WhitneyFamily::Curl, WhitneyFamily::Div]
                .map(|family| Whitney::new(cell, k, family).expect("an element"))
        })
    })
}

#[test]
fn entities_own_as_many_degrees_of_freedom_as_they_should() {
    for element in all() {
        let (k, d, cell) = (element.degree(), element.cell().dim(), element.cell());
        let expected = match (element.family(), d) {
            (_, 2) => 2 * k * (k + 1),
            (WhitneyFamily::Curl, _) => 3 * k * (k + 1) * (k + 1),
            (WhitneyFamily::Div, _) => 3 * k * k * (k + 1),
        };
        assert_eq!(element.count(), expected, "{element}");
        let dofs = element.dofs();
        assert_eq!(dofs.len(), expected);
        for dim in 0..=d {
            for entity in 0..cell.entities(dim).len() {
                let own = dofs.iter().filter(|dof| (dof.dim, dof.entity) == (dim, entity));
                let indices: BTreeSet<usize> = own.map(|dof| dof.index).collect();
                let all: BTreeSet<usize> = (0..element.entity_count(dim)).collect();
                assert_eq!(indices, all, "{element}, entity {entity} of dimension {dim}");
            }
        }
    }
}

/// Functionals are 1 for their own function and 0 for all others.
#[test]
fn functionals_are_dual_to_the_functions() {
    for element in all().filter(|element| element.count() < 200) {
        let dofs = element.dofs();
        for dof in &dofs {
            let terms = element.functional(dof, element.degree() + 1);
            let points: Vec<[f64; 3]> = terms.iter().map(|&(point, _)| point).collect();
            let component = dof.component;
            let table = tabulate(Element::Component(element, component), &points);
            let (first, sign) = (element.first(component), element.sign(component));
            for i in 0..table.nodes {
                let terms = terms.iter().enumerate();
                let value: f64 =
                    terms.map(|(q, &(_, weight))| weight * sign * table.value(q, i)).sum();
                let expected = f64::from(u8::from(dofs[first + i] == *dof));
                assert!((value - expected).abs() < 1e-12, "{element}: {dof:?}, {i}");
            }
        }
    }
}

/// The orders of an entity in the frames that two cells see are those that the vertices have.
#[test]
fn orders_in_an_entity_compose_like_the_permutations_of_its_vertices() {
    let squares: Vec<Vec<usize>> = (0..8)
        .map(|orientation: usize| {
            (0..4)
                .map(|vertex: usize| {
                    let (a, b) = (vertex & 1, vertex >> 1);
                    let (s, t) = if orientation & 1 == 1 { (b, a) } else { (a, b) };
                    (s ^ (orientation >> 1 & 1)) | (t ^ (orientation >> 2 & 1)) << 1
                })
                .collect()
        })
        .collect();
    for element in all() {
        for dim in 1..element.cell().dim() {
            let orders = if dim == 1 { vec![vec![0, 1], vec![1, 0]] } else { squares.clone() };
            for first in &orders {
                for second in &orders {
                    let both: Vec<usize> = first.iter().map(|&vertex| second[vertex]).collect();
                    let [a, b, c] =
                        [first, second, &both].map(|order| element.entity_permutation(dim, order));
                    let composed: Vec<(usize, bool)> =
                        a.iter().map(|&(index, sign)| (b[index].0, sign ^ b[index].1)).collect();
                    assert_eq!(composed, c, "{element}, {first:?}, {second:?}");
                }
            }
        }
    }
}
