//! Degrees of freedom of Whitney elements: counts, duality with the functions, orders in the frames of entities.

use super::*;
use crate::element::{Lagrange, tabulate_components, tabulate_turned};
use std::collections::BTreeSet;

fn all() -> impl Iterator<Item = Whitney> {
    Cell::ALL.into_iter().filter(|cell| cell.dim() > 1).flat_map(|cell| {
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
        let expected = match (element.family(), d, cell.is_tensor()) {
            (_, 2, true) => 2 * k * (k + 1),
            (WhitneyFamily::Curl, _, true) => 3 * k * (k + 1) * (k + 1),
            (WhitneyFamily::Div, _, true) => 3 * k * k * (k + 1),
            (_, 2, false) => k * (k + 2),
            (WhitneyFamily::Curl, _, false) => k * (k + 2) * (k + 3) / 2,
            (WhitneyFamily::Div, _, false) => k * (k + 1) * (k + 3) / 2,
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

/// The numbers of degrees of freedom that DefElement lists for Nédélec's elements of the first kind and those of Raviart
/// and Thomas.
#[test]
fn numbers_on_simplices_are_those_of_defelement() {
    let expected = [
        (Cell::Triangle, WhitneyFamily::Curl, [3, 8, 15, 24]),
        (Cell::Triangle, WhitneyFamily::Div, [3, 8, 15, 24]),
        (Cell::Tetrahedron, WhitneyFamily::Curl, [6, 20, 45, 84]),
        (Cell::Tetrahedron, WhitneyFamily::Div, [4, 15, 36, 70]),
    ];
    for (cell, family, counts) in expected {
        for (k, count) in (1..).zip(counts) {
            assert_eq!(Whitney::new(cell, k, family).expect("an element").count(), count);
        }
    }
}

/// Returns the monomials of a total degree at a point.
fn monomials(dim: usize, degree: usize, [x, y, z]: [f64; 3]) -> Vec<f64> {
    let powers = |c: usize| (0..=degree - c).map(move |b| (degree - b - c, b, c));
    let all = (0..=if dim == 3 { degree } else { 0 }).flat_map(powers);
    all.map(|(a, b, c)| x.powi(a as i32) * y.powi(b as i32) * z.powi(c as i32)).collect()
}

/// Returns the vector fields that span the space of an element on a simplex, as Nédélec defines it.
fn definition(element: Whitney, x: [f64; 3]) -> Vec<[f64; 3]> {
    let (dim, k) = (element.cell().dim(), element.degree());
    let unit = |a: usize, value: f64| [0, 1, 2].map(|c| if c == a { value } else { 0.0 });
    let full = (0..k).flat_map(|degree| monomials(dim, degree, x));
    let mut all: Vec<[f64; 3]> =
        full.flat_map(|value| (0..dim).map(move |a| unit(a, value))).collect();
    for value in monomials(dim, k - 1, x) {
        let [qx, qy, qz] = x.map(|x| value * x);
        match (element.family(), dim) {
            (WhitneyFamily::Div, _) => all.push([qx, qy, qz]),
            (WhitneyFamily::Curl, 2) => all.push([-qy, qx, 0.0]),
            (WhitneyFamily::Curl, _) => {
                all.extend([[0.0, qz, -qy], [-qz, 0.0, qx], [qy, -qx, 0.0]]);
            }
        }
    }
    all
}

/// The space contains all of its definition; the numbers of functions say that there is no more.
#[test]
fn functions_on_simplices_span_the_spaces_of_nedelec() {
    let points = [[0.1, 0.3, 0.2], [0.6, 0.1, 0.25], [0.2, 0.2, 0.5]];
    for element in all().filter(|element| !element.cell().is_tensor()) {
        let dim = element.cell().dim();
        let points = points.map(|[x, y, z]| if dim == 2 { [x, y, 0.0] } else { [x, y, z] });
        let functionals: Vec<Vec<f64>> = element
            .dofs()
            .iter()
            .map(|dof| {
                let mut values = Vec::new();
                for (point, weights) in element.functional(dof, element.degree() + 1) {
                    let fields = definition(element, point);
                    values.resize(fields.len(), 0.0);
                    for (sum, field) in values.iter_mut().zip(fields) {
                        *sum += (0..3).map(|a| weights[a] * field[a]).sum::<f64>();
                    }
                }
                values
            })
            .collect();
        let tables = tabulate_components(element, &points);
        for (q, &point) in points.iter().enumerate() {
            for (number, field) in definition(element, point).into_iter().enumerate() {
                for (a, table) in tables.iter().enumerate() {
                    let terms = functionals.iter().enumerate();
                    let value: f64 = terms.map(|(i, own)| own[number] * table.value(q, i)).sum();
                    assert!((value - field[a]).abs() < 1e-12, "{element}: field {number}, {a}");
                }
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
            let terms = element.functional(dof, element.degree() / 2 + 1);
            let points: Vec<[f64; 3]> = terms.iter().map(|&(point, _)| point).collect();
            let mut values = vec![0.0; dofs.len()];
            for (a, table) in tabulate_components(element, &points).iter().enumerate() {
                let own = &mut values[element.first(a)..];
                for (q, (_, weights)) in terms.iter().enumerate() {
                    for (i, value) in own.iter_mut().enumerate().take(table.nodes) {
                        *value += weights[a] * element.sign(a) * table.value(q, i);
                    }
                }
            }
            for (value, other) in values.into_iter().zip(&dofs) {
                let expected = f64::from(u8::from(other == dof));
                assert!((value - expected).abs() < 1e-12, "{element}: {dof:?}, {other:?}");
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
    let triangles: Vec<Vec<usize>> =
        [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]]
            .map(|order| order.to_vec())
            .to_vec();
    for element in all() {
        for dim in 1..element.cell().dim() {
            let mut orders = match (dim, element.cell().is_tensor()) {
                (1, _) => vec![vec![0, 1], vec![1, 0]],
                (_, true) => squares.clone(),
                (_, false) => triangles.clone(),
            };
            if element.needs_orientation(dim) {
                orders.retain(|order| order[0] == 0);
            }
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

/// Tables of a rotated simplex are dual to the functionals that it sees of the same entities.
#[test]
fn functions_of_rotated_simplices_are_those_of_the_simplex() {
    let is_small = |element: &Whitney| !element.cell().is_tensor() && element.count() < 40;
    for element in all().filter(is_small) {
        let (cell, dofs) = (element.cell(), element.dofs());
        let corners = Lagrange::continuous(cell, 1).expect("an element");
        for facet in 0..cell.facets().len() {
            // An exchange of vertices is its own inverse.
            let vertices = corners.turned(facet, 0).into_iter();
            let vertices: Vec<[f64; 3]> = vertices.map(|vertex| cell.vertex(vertex)).collect();
            let edge = |a: usize| [0, 1, 2].map(|c| vertices[a + 1][c] - vertices[0][c]);
            let across = [0.0, 0.0, 1.0];
            let edges = [edge(0), edge(1), if cell.dim() == 2 { across } else { edge(2) }];
            let cross = |u: [f64; 3], v: [f64; 3]| {
                let minor = |i: usize, j: usize| u[i] * v[j] - u[j] * v[i];
                [minor(1, 2), minor(2, 0), minor(0, 1)]
            };
            let directions = match element.family() {
                WhitneyFamily::Curl => edges,
                WhitneyFamily::Div => {
                    [0, 1, 2].map(|a| cross(edges[(a + 1) % 3], edges[(a + 2) % 3]))
                }
            };
            let place = |point: &[f64; 3]| {
                let along = |c: usize| (0..cell.dim()).map(|a| point[a] * edges[a][c]).sum::<f64>();
                [0, 1, 2].map(|c| vertices[0][c] + along(c))
            };
            let functionals: Vec<_> =
                dofs.iter().map(|dof| element.functional(dof, element.degree() / 2 + 1)).collect();
            let points: Vec<[f64; 3]> =
                functionals.iter().flatten().map(|(point, _)| place(point)).collect();
            let (tables, mut start) = (tabulate_turned(element, (facet, 0), &points), 0);
            for (dof, terms) in dofs.iter().zip(&functionals) {
                for (i, other) in dofs.iter().enumerate() {
                    let term = |(q, (_, weights)): (usize, &([f64; 3], [f64; 3]))| -> f64 {
                        let value = |b: usize| tables[b].value(start + q, i);
                        let of = |a: usize| -> f64 {
                            (0..cell.dim()).map(|b| directions[a][b] * value(b)).sum()
                        };
                        (0..cell.dim()).map(|a| weights[a] * of(a)).sum()
                    };
                    let value: f64 = terms.iter().enumerate().map(term).sum();
                    let expected = f64::from(u8::from(other == dof));
                    assert!((value - expected).abs() < 1e-11, "{element}, {facet}: {dof:?}");
                }
                start += terms.len();
            }
        }
    }
}

/// A polynomial by its terms: coefficients and powers.
type Polynomial = Vec<(f64, [i32; 3])>;

/// A function of Basix: the dimension and the midpoint of its entity, and its components.
struct ForeignFunction {
    dim: usize,
    middle: [f64; 3],
    components: Vec<Polynomial>,
}

impl ForeignFunction {
    fn at(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        let term = |&(c, [i, j, k]): &(f64, [i32; 3])| c * x.powi(i) * y.powi(j) * z.powi(k);
        [0, 1, 2].map(|a| self.components.get(a).map_or(0.0, |own| own.iter().map(term).sum()))
    }
}

/// Returns the elements of the table, with the numbers of functions that an entity of each dimension owns.
fn foreign() -> Vec<(Whitney, usize, Vec<usize>, Vec<ForeignFunction>)> {
    let mut all: Vec<(Whitney, usize, Vec<usize>, Vec<ForeignFunction>)> = Vec::new();
    for line in include_str!("basix.txt").lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |word: &&str| word.parse::<usize>().expect("a number");
        match words[0] {
            "#" => {}
            "element" => {
                let cell = Cell::ALL.into_iter().find(|cell| cell.to_string() == words[1]);
                let family =
                    if words[2] == "curl" { WhitneyFamily::Curl } else { WhitneyFamily::Div };
                let element = Whitney::new(cell.expect("a cell"), number(&words[3]) as i64, family);
                let counts = words[5..].iter().map(number).collect();
                all.push((element.expect("an element"), number(&words[4]), counts, Vec::new()));
            }
            "function" => {
                let mut middle = [0.0; 3];
                for (to, word) in middle.iter_mut().zip(&words[2..]) {
                    *to = word.parse().expect("a coordinate");
                }
                let own =
                    ForeignFunction { dim: number(&words[1]), middle, components: Vec::new() };
                all.last_mut().expect("an element").3.push(own);
            }
            _ => {
                let term = |word: &&str| {
                    let (coefficient, powers) = word.split_once('*').expect("a term");
                    let mut all = [0; 3];
                    for (to, digit) in all.iter_mut().zip(powers.bytes()) {
                        *to = i32::from(digit - b'0');
                    }
                    (coefficient.parse().expect("a coefficient"), all)
                };
                let function = all.last_mut().and_then(|own| own.3.last_mut());
                function.expect("a function").components.push(words.iter().map(term).collect());
            }
        }
    }
    all
}

/// Basix is another implementation. Its functions are combinations of ours, so that with equal numbers the spans are equal;
/// and those of an entity vanish in the degrees of freedom of all others of its dimension or below, so that entities own
/// the same functions up to a change of basis.
#[test]
fn spans_and_unknowns_of_entities_are_those_of_basix() {
    let points = [[0.1, 0.3, 0.2], [0.6, 0.1, 0.25], [0.2, 0.2, 0.5]];
    let all = foreign();
    assert_eq!(all.len(), 4 * 2 * 4);
    let mut compared = 0;
    for (element, count, counts, functions) in all {
        let cell = element.cell();
        assert_eq!(element.count(), count, "{element}");
        let own: Vec<usize> = (0..=cell.dim()).map(|dim| element.entity_count(dim)).collect();
        assert_eq!(own, counts, "{element}");
        let points = points.map(|[x, y, z]| if cell.dim() == 2 { [x, y, 0.0] } else { [x, y, z] });
        let (dofs, tables) = (element.dofs(), tabulate_components(element, &points));
        for function in &functions {
            let value = |dof: &WhitneyDof| -> f64 {
                let rule = element.functional(dof, element.degree() + 1);
                let term = |(point, weights): ([f64; 3], [f64; 3])| {
                    let value = function.at(point);
                    (0..3).map(|a| weights[a] * value[a]).sum::<f64>()
                };
                rule.into_iter().map(term).sum()
            };
            let values: Vec<f64> = dofs.iter().map(value).collect();
            let size = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            let middle = |dof: &WhitneyDof| {
                let vertices = cell.entities(dof.dim)[dof.entity];
                let sum = |a: usize| vertices.iter().map(|&v| cell.vertex(v)[a]).sum::<f64>();
                [0, 1, 2].map(|a| sum(a) / vertices.len() as f64)
            };
            for (dof, value) in dofs.iter().zip(&values) {
                let there = middle(dof);
                let is_own = dof.dim == function.dim
                    && (0..3).all(|a| (there[a] - function.middle[a]).abs() < 1e-4);
                let vanishes = dof.dim <= function.dim && !is_own;
                assert!(
                    !vanishes || value.abs() < 1e-10 * size,
                    "{element}: {:?} has {value} at {dof:?}",
                    function.middle
                );
            }
            for (q, &point) in points.iter().enumerate() {
                let expected = function.at(point);
                for (a, table) in tables.iter().enumerate() {
                    let first = if cell.is_tensor() { element.first(a) } else { 0 };
                    let terms = values[first..].iter().take(element.component_count(a)).enumerate();
                    let sum: f64 = terms.map(|(i, value)| value * table.value(q, i)).sum();
                    let found = element.sign(a) * sum;
                    assert!((found - expected[a]).abs() < 1e-10 * size, "{element}: {found}");
                }
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 71);
}
