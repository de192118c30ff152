//! Degrees of freedom of Whitney elements on simplices: moments on edges, faces and the cell.
//!
//! With ψ_i the Lagrange functions of symmetric points of an entity of dimension m, its edges t_a = v_a − v_0 from the
//! first vertex, and integrals over its reference simplex,
//!
//! ```text
//! H(curl)   ∫ û · t_a ψ_i    a = 1, …, m, ψ_i of degree k − m
//! H(div)    ∫ û · ν ψ_i      on facets, ψ_i of degree k − 1; ν = t_1 × t_2, in the plane t_1 rotated by a quarter turn
//!           ∫ û_a ψ_i        in the cell, a = 1, …, d, ψ_i of degree k − 2
//! ```
//!
//! (J.-C. Nédélec, "Mixed finite elements in R³", Numer. Math. 35 (1980).) Both û · t_a and û · ν are those of the
//! physical function and the physical entity. A permutation of the vertices therefore permutes the moments of edges, and
//! those of H(div) on faces, but for a sign.

use super::{Whitney, WhitneyDof, WhitneyFamily};
use crate::element::simplex::SimplexBasis;
use crate::element::{Cell, Lagrange, LinePoints, LineTable, Rule};

/// The moments on an entity of one dimension.
struct Moments {
    /// The number of directions.
    directions: usize,
    /// The element of the weights.
    weights: Lagrange,
}

/// Returns the moments on entities of dimension `dim`, if there are any.
fn moments(element: Whitney, dim: usize) -> Option<Moments> {
    let (d, shape) = (element.cell.dim(), element.cell.entity_cell(dim)?);
    let (lowered, directions) = match element.family {
        WhitneyFamily::Curl => (dim, dim),
        WhitneyFamily::Div if dim == d => (2, d),
        WhitneyFamily::Div if dim + 1 == d => (1, 1),
        WhitneyFamily::Div => return None,
    };
    let degree = element.degree.checked_sub(lowered)?;
    let weights = Lagrange::discontinuous(shape, degree).expect("weights should have an element");
    (dim <= d).then_some(Moments { directions, weights })
}

/// Returns the number of moments on an entity of dimension `dim`.
pub(super) fn entity_count(element: Whitney, dim: usize) -> usize {
    moments(element, dim).map_or(0, |own| own.directions * own.weights.count())
}

/// Returns the number of moments of the cell.
pub(super) fn count(element: Whitney) -> usize {
    let dims = 1..=element.cell.dim();
    dims.map(|dim| element.cell.entities(dim).len() * entity_count(element, dim)).sum()
}

/// Returns whether the directions of an entity of dimension `dim` depend on which of its vertices is the first.
pub(super) fn are_mixed(element: Whitney, dim: usize) -> bool {
    moments(element, dim).is_some_and(|own| own.directions > 1)
}

/// Returns the moments of the cell, by entity: edges, faces, the cell.
pub(super) fn dofs(element: Whitney) -> Vec<WhitneyDof> {
    let mut dofs = Vec::with_capacity(count(element));
    for dim in 1..=element.cell.dim() {
        let Some(own) = moments(element, dim) else { continue };
        let nodes = own.weights.nodes();
        for entity in 0..element.cell.entities(dim).len() {
            let all = (0..own.directions)
                .flat_map(|component| nodes.iter().map(move |node| (component, node.lattice)));
            dofs.extend(all.enumerate().map(|(index, (component, lattice))| WhitneyDof {
                component,
                lattice,
                dim,
                entity,
                index,
            }));
        }
    }
    dofs
}

/// Returns, for each moment of an entity in a cell's order, its index in the entity's own order and whether its sign is
/// reversed; see [`Whitney::entity_permutation`].
pub(super) fn permutation(element: Whitney, dim: usize, vertices: &[usize]) -> Vec<(usize, bool)> {
    let Some(own) = moments(element, dim) else { return Vec::new() };
    assert!(
        own.directions == 1 || vertices[0] == 0,
        "directions should start at one vertex in both frames"
    );
    let (n, degree, places) = (own.weights.count(), own.weights.degree(), own.weights.lattice());
    let inversions = (0..=dim).flat_map(|a| (a + 1..=dim).map(move |b| (a, b)));
    let is_odd = inversions.filter(|&(a, b)| vertices[a] > vertices[b]).count() % 2 == 1;
    let reversed = match element.family {
        WhitneyFamily::Curl if dim > 1 => false,
        WhitneyFamily::Curl | WhitneyFamily::Div => is_odd,
    };
    let place = |lattice: [usize; 3]| {
        let mut image = [0; 4];
        image[vertices[0]] = degree - lattice.iter().sum::<usize>();
        for axis in 0..dim {
            image[vertices[axis + 1]] = lattice[axis];
        }
        places[&[image[1], image[2], image[3]]]
    };
    let nodes = own.weights.nodes();
    let of_direction = |a: usize| {
        let to = if own.directions == 1 { 0 } else { vertices[a + 1] - 1 };
        nodes.iter().map(move |node| (to, node.lattice))
    };
    let all = (0..own.directions).flat_map(of_direction);
    all.map(|(to, lattice)| (to * n + place(lattice), reversed)).collect()
}

/// Returns points and weights of a moment; see [`Whitney::functional`].
pub(super) fn functional(
    element: Whitney,
    dof: &WhitneyDof,
    count: usize,
) -> Vec<([f64; 3], [f64; 3])> {
    let own = moments(element, dof.dim).expect("a degree of freedom should have a moment");
    let direction = direction(element, dof);
    let rule = rule(own.weights.cell(), 2 * count - 1 + own.weights.degree());
    let node = dof.index % own.weights.count();
    let points: Vec<[f64; 3]> = rule.iter().map(|&(point, _)| point).collect();
    let weights = weight_function(own.weights, node, &points);
    let term = |(&(point, factor), weight): (&([f64; 3], f64), f64)| {
        let at = element.cell.entity_point(dof.dim, dof.entity, point);
        (at, direction.map(|x| factor * weight * x))
    };
    rule.iter().zip(weights).map(term).collect()
}

/// Returns the direction of a moment in the reference cell.
fn direction(element: Whitney, dof: &WhitneyDof) -> [f64; 3] {
    let cell = element.cell;
    let vertices = cell.entities(dof.dim)[dof.entity];
    let edge = |a: usize| {
        let (from, to) = (cell.vertex(vertices[0]), cell.vertex(vertices[a + 1]));
        [0, 1, 2].map(|c| to[c] - from[c])
    };
    match element.family {
        WhitneyFamily::Curl => edge(dof.component),
        WhitneyFamily::Div if dof.dim == cell.dim() => edge(dof.component),
        WhitneyFamily::Div if dof.dim == 1 => {
            let [x, y, _] = edge(0);
            [-y, x, 0.0]
        }
        WhitneyFamily::Div => {
            let (u, v) = (edge(0), edge(1));
            let minor = |i: usize, j: usize| u[i] * v[j] - u[j] * v[i];
            [minor(1, 2), minor(2, 0), minor(0, 1)]
        }
    }
}

/// Returns a rule on a reference simplex that is exact to a total degree.
fn rule(cell: Cell, degree: usize) -> Vec<([f64; 3], f64)> {
    match cell {
        Cell::Interval => Rule::Tensor { cell, line: LinePoints::Gauss(degree / 2 + 1) },
        _ => Rule::Simplex { cell, degree },
    }
    .points_and_weights()
}

/// Returns the values of a weight's Lagrange function at points.
fn weight_function(element: Lagrange, node: usize, points: &[[f64; 3]]) -> Vec<f64> {
    match element.line() {
        Some(nodes) => {
            let at: Vec<f64> = points.iter().map(|point| point[0]).collect();
            let table = LineTable::at(nodes, &at);
            (0..at.len()).map(|q| table.value(q, node)).collect()
        }
        None => {
            let (dim, nodes) = (element.cell().dim(), element.points());
            let basis = SimplexBasis::new(dim, element.degree(), &nodes);
            points.iter().map(|&point| basis.evaluate(point)[node].0).collect()
        }
    }
}
