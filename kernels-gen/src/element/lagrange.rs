//! Lagrange elements: positions of the nodes, their owning sub-entities, and their order.
//!
//! ```text
//! tensor cells   continuous: Gauss-Lobatto points; discontinuous: Gauss points; lexicographic,
//!                x fastest
//! simplices      equispaced at degree 1 and 2, warp-and-blend above, so that every edge carries
//!                the Gauss-Lobatto points; vertices, then edge interiors, face interiors, the cell
//!                interior, each along its entity's vertices
//! ```
//!
//! Nodes are indexed by an integer lattice: nodal coordinate x ≈ lattice / degree. Numbering, orientation and
//! permutations to other programs' orders use only these integers.

mod warp;

use super::{Cell, ElementError, LinePoints};
use fem_dsl::point::Space;
use std::collections::BTreeMap;
use std::fmt;

/// The largest degree on tensor cells.
pub const MAX_TENSOR_DEGREE: usize = 20;
/// The largest degree on simplices.
pub const MAX_SIMPLEX_DEGREE: usize = 8;

/// A Lagrange element on a reference cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lagrange {
    cell: Cell,
    degree: usize,
    family: Family,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Family {
    Continuous,
    Discontinuous,
    Equispaced,
}

/// A node of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Node {
    /// Reference coordinates; components beyond the dimension are 0.
    pub point: [f64; 3],
    /// Lattice coordinates in the cell, each from 0 to the degree. On simplices the barycentric
    /// coordinate of vertex 0 is the degree less their sum.
    pub lattice: [usize; 3],
    /// The dimension of the sub-entity that owns the node.
    pub dim: usize,
    /// The index of the owning sub-entity among those of its dimension.
    pub entity: usize,
    /// Lattice coordinates in the owning entity along the axes that its vertices span, each at least 1 and from its
    /// first vertex. On simplices again without that vertex's own.
    pub position: [usize; 3],
    /// The index of the node within its entity; x fastest in `position`.
    pub index: usize,
}

impl Lagrange {
    /// Returns the continuous element (H1); its degree is at least 1.
    pub fn continuous(cell: Cell, degree: usize) -> Result<Self, ElementError> {
        Self::checked(cell, degree, 1, Family::Continuous)
    }

    /// Returns the discontinuous element (L2); every node belongs to the cell's interior.
    pub fn discontinuous(cell: Cell, degree: usize) -> Result<Self, ElementError> {
        Self::checked(cell, degree, 0, Family::Discontinuous)
    }

    /// Returns the element on equispaced nodes, in the order of the continuous one: the basis of Gmsh's and VTK's cells
    /// up to a permutation.
    pub fn equispaced(cell: Cell, degree: usize) -> Result<Self, ElementError> {
        Self::checked(cell, degree, 1, Family::Equispaced)
    }

    /// Returns the element of a space of the language at the compile-time degree k.
    pub fn in_space(cell: Cell, space: Space, k: usize) -> Result<Self, ElementError> {
        let degree = space.degree_at(k);
        match space {
            Space::H1(_) => Self::ranged(cell, degree, 1, Family::Continuous),
            Space::L2(_) => Self::ranged(cell, degree, 0, Family::Discontinuous),
            Space::Hcurl(_) | Space::Hdiv(_) | Space::Number => Err(ElementError::Space(space)),
        }
    }

    fn checked(
        cell: Cell,
        degree: usize,
        min: usize,
        family: Family,
    ) -> Result<Self, ElementError> {
        Self::ranged(cell, i64::try_from(degree).unwrap_or(i64::MAX), min, family)
    }

    fn ranged(cell: Cell, degree: i64, min: usize, family: Family) -> Result<Self, ElementError> {
        let max = if cell.is_tensor() { MAX_TENSOR_DEGREE } else { MAX_SIMPLEX_DEGREE };
        match usize::try_from(degree) {
            Ok(degree) if (min..=max).contains(&degree) => Ok(Self { cell, degree, family }),
            _ => Err(ElementError::Degree { cell, degree, min, max }),
        }
    }

    /// Returns the cell.
    pub const fn cell(self) -> Cell {
        self.cell
    }

    /// Returns the factor c of a penalty c/hn between its functions, hn the extent of the cell from a facet: with a factor
    /// of 1 and more before it SIPG is coercive.
    pub fn penalty_factor(self) -> f64 {
        let (p, dim) = (self.degree as f64, self.cell.dim() as f64);
        if self.cell.is_tensor() { (p + 1.0) * (p + 1.0) } else { (p + 1.0) * (p + dim) }
    }

    /// Returns the polynomial degree.
    pub const fn degree(self) -> usize {
        self.degree
    }

    /// Returns whether nodes on shared sub-entities are shared.
    pub const fn is_continuous(self) -> bool {
        !matches!(self.family, Family::Discontinuous)
    }

    /// Returns the nodes of each direction, on tensor cells.
    pub const fn line(self) -> Option<LinePoints> {
        if !self.cell.is_tensor() {
            return None;
        }
        Some(match self.family {
            Family::Continuous => LinePoints::GaussLobatto(self.degree + 1),
            Family::Discontinuous => LinePoints::Gauss(self.degree + 1),
            Family::Equispaced => LinePoints::Equispaced(self.degree + 1),
        })
    }

    /// Returns the number of nodes N_b.
    pub const fn count(self) -> usize {
        let n = self.degree + 1;
        match self.cell {
            Cell::Interval => n,
            Cell::Triangle => n * (n + 1) / 2,
            Cell::Quadrilateral => n * n,
            Cell::Tetrahedron => n * (n + 1) * (n + 2) / 6,
            Cell::Hexahedron => n * n * n,
        }
    }

    /// Returns the number of nodes that one sub-entity of dimension `dim` owns.
    pub fn entity_count(self, dim: usize) -> usize {
        match (self.is_continuous(), self.cell.entity_cell(dim)) {
            (false, _) if dim == self.cell.dim() => self.count(),
            (false, _) => 0,
            (true, None) => usize::from(dim == 0),
            (true, Some(_)) if dim > self.cell.dim() => 0,
            (true, Some(shape)) => interior_count(shape, self.degree),
        }
    }

    /// Returns the nodes, in the order that the module's documentation states.
    pub fn nodes(self) -> Vec<Node> {
        let mut nodes = if self.cell.is_tensor() { self.tensor() } else { self.simplex() };
        if !self.is_continuous() {
            for (index, node) in nodes.iter_mut().enumerate() {
                let (dim, position) = (self.cell.dim(), node.lattice);
                *node = Node { dim, entity: 0, position, index, ..*node };
            }
        }
        nodes
    }

    /// Returns the reference coordinates of the nodes.
    pub fn points(self) -> Vec<[f64; 3]> {
        self.nodes().into_iter().map(|node| node.point).collect()
    }

    /// Returns the number of the node at each lattice point.
    pub fn lattice(self) -> BTreeMap<[usize; 3], usize> {
        self.nodes().into_iter().enumerate().map(|(i, node)| (node.lattice, i)).collect()
    }

    /// Returns, for each node of the cell rotated so that a facet is ξ₀ = 0, the node of the original cell. On tensor
    /// cells the other axes keep their order; on simplices vertex 1 is exchanged with the vertex opposite the facet. The
    /// facet's coordinates are then those in an orientation ([`Cell::oriented`]): 0 leaves them.
    pub fn turned(self, facet: usize, orientation: u8) -> Vec<usize> {
        let own = self.lattice();
        let (dim, p) = (self.cell.dim(), self.degree);
        let oriented = |[first, s, t]: [usize; 3]| {
            let length = if self.cell.is_tensor() { p } else { p - first };
            let scale = length.max(1) as f64;
            let at = self.cell.oriented(orientation, [s, t].map(|x| x as f64 / scale));
            let [s, t] = at.map(|x| (x * scale).round() as usize);
            // A single node is everywhere.
            if length == 0 { [first, 0, 0] } else { [first, s, t] }
        };
        let place = |lattice: [usize; 3]| -> [usize; 3] {
            let lattice = oriented(lattice);
            if self.cell.is_tensor() {
                let (axis, far) = (facet / 2, facet % 2 == 1);
                let mut rest = lattice[1..dim].iter().copied();
                let mut turned = [0; 3];
                for (at, entry) in turned[..dim].iter_mut().enumerate() {
                    *entry = match (at == axis, far) {
                        (true, false) => lattice[0],
                        (true, true) => p - lattice[0],
                        (false, _) => rest.next().unwrap_or(0),
                    };
                }
                return turned;
            }
            let first = p - lattice.iter().sum::<usize>();
            let mut weights = [first, lattice[0], lattice[1], lattice[2]];
            weights.swap(1, facet);
            [weights[1], weights[2], weights[3]]
        };
        self.nodes().iter().map(|node| own[&place(node.lattice)]).collect()
    }

    fn tensor(self) -> Vec<Node> {
        let line = self.line().expect("a tensor cell should have nodes in each direction").points();
        let n = self.degree + 1;
        (0..self.count())
            .map(|i| {
                let mut lattice = [i % n, i / n % n, i / (n * n)];
                let mut point = lattice.map(|a| line[a]);
                for axis in self.cell.dim()..3 {
                    (lattice[axis], point[axis]) = (0, 0.0);
                }
                self.tensor_node(point, lattice)
            })
            .collect()
    }

    /// Finds the entity that owns a lattice point of a tensor cell.
    fn tensor_node(self, point: [f64; 3], lattice: [usize; 3]) -> Node {
        let (p, axes) = (self.degree, 0..self.cell.dim());
        let free: Vec<usize> = axes.clone().filter(|&a| 0 < lattice[a] && lattice[a] < p).collect();
        let corner: usize = axes.filter(|&a| p > 0 && lattice[a] == p).map(|a| 1 << a).sum();
        let far = corner + free.iter().map(|&a| 1 << a).sum::<usize>();
        let dim = free.len();
        let owns = |vertices: &&[usize]| vertices[0] == corner && vertices.last() == Some(&far);
        // Degree 0 is discontinuous, and its caller replaces the entity.
        let entity = self.cell.entities(dim).iter().position(owns).unwrap_or(0);
        let mut position = [0; 3];
        let mut index = 0;
        for (slot, &axis) in free.iter().enumerate().rev() {
            position[slot] = lattice[axis];
            index = index * (p - 1) + lattice[axis] - 1;
        }
        Node { point, lattice, dim, entity, position, index }
    }

    fn simplex(self) -> Vec<Node> {
        if self.degree == 0 {
            let point = self.cell.centre();
            let (lattice, dim) = ([0; 3], self.cell.dim());
            return vec![Node { point, lattice, dim, entity: 0, position: [0; 3], index: 0 }];
        }
        let mut nodes = Vec::with_capacity(self.count());
        for dim in 0..=self.cell.dim() {
            for (entity, vertices) in self.cell.entities(dim).iter().enumerate() {
                let interior = match self.cell.entity_cell(dim) {
                    Some(_) => simplex_interior(dim, self.degree),
                    None => vec![[0; 3]],
                };
                for (index, position) in interior.into_iter().enumerate() {
                    // Barycentric coordinates over the cell's vertices.
                    let mut weights = [0; 4];
                    weights[vertices[0]] = self.degree - position.iter().sum::<usize>();
                    for axis in 0..dim {
                        weights[vertices[axis + 1]] = position[axis];
                    }
                    let lattice = [weights[1], weights[2], weights[3]];
                    let point = self.simplex_point(weights);
                    nodes.push(Node { point, lattice, dim, entity, position, index });
                }
            }
        }
        nodes
    }

    fn simplex_point(self, weights: [usize; 4]) -> [f64; 3] {
        if self.family == Family::Equispaced || self.degree <= 2 {
            [weights[1], weights[2], weights[3]].map(|w| w as f64 / self.degree as f64)
        } else {
            warp::point(self.cell.dim(), self.degree, weights)
        }
    }
}

impl fmt::Display for Lagrange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = match self.family {
            Family::Continuous => "H1",
            Family::Discontinuous => "L2",
            Family::Equispaced => "equispaced",
        };
        write!(f, "{space}({}) on {}", self.degree, self.cell)
    }
}

/// Returns the number of lattice points inside an entity.
fn interior_count(shape: Cell, degree: usize) -> usize {
    let n = degree.saturating_sub(1);
    match shape {
        Cell::Interval => n,
        Cell::Triangle => n * n.saturating_sub(1) / 2,
        Cell::Quadrilateral => n * n,
        Cell::Tetrahedron => n * n.saturating_sub(1) * n.saturating_sub(2) / 6,
        Cell::Hexahedron => n * n * n,
    }
}

/// Returns the lattice points inside a simplex, x fastest, without the coordinate of its first vertex.
fn simplex_interior(dim: usize, degree: usize) -> Vec<[usize; 3]> {
    let range = |axis: usize| if axis < dim { 1..degree } else { 0..1 };
    let mut points = Vec::new();
    for c in range(2) {
        for b in range(1) {
            points.extend(range(0).map(|a| [a, b, c]).filter(|p| p.iter().sum::<usize>() < degree));
        }
    }
    points
}

/// Returns the lattice points inside an entity, in the order of [`Node::index`].
fn interior(shape: Cell, degree: usize) -> Vec<[usize; 3]> {
    if !shape.is_tensor() {
        return simplex_interior(shape.dim(), degree);
    }
    let range = |axis: usize| if axis < shape.dim() { 1..degree } else { 0..1 };
    let mut points = Vec::new();
    for c in range(2) {
        for b in range(1) {
            points.extend(range(0).map(|a| [a, b, c]));
        }
    }
    points
}

/// Returns, for each node inside an entity in local order ([`Node::index`]), its position in a global order common to
/// all cells around the entity. `vertices` are the distinct global indices of the entity's vertices, in local order.
///
/// The global order starts at the vertex with the smallest index; its first axis leads to the smallest neighbour, and
/// so on. Nodes of two cells coincide if their positions are equal.
pub fn entity_permutation(shape: Cell, degree: usize, vertices: &[usize]) -> Vec<usize> {
    assert_eq!(vertices.len(), shape.vertex_count(), "a {shape} should have all its vertices");
    let points = interior(shape, degree);
    let place: BTreeMap<[usize; 3], usize> =
        points.iter().enumerate().map(|(index, &point)| (point, index)).collect();
    let image = |point: &[usize; 3]| {
        if shape.is_tensor() {
            tensor_image(shape.dim(), degree, vertices, point)
        } else {
            simplex_image(shape.dim(), degree, vertices, point)
        }
    };
    points.iter().map(|point| place[&image(point)]).collect()
}

/// Returns lattice coordinates of a point of a tensor entity in the axes of the global order.
fn tensor_image(dim: usize, p: usize, vertices: &[usize], point: &[usize; 3]) -> [usize; 3] {
    let mut origin = 0;
    for vertex in 1..vertices.len() {
        if vertices[vertex] < vertices[origin] {
            origin = vertex;
        }
    }
    let mut axes: Vec<usize> = (0..dim).collect();
    axes.sort_by_key(|axis| vertices[origin ^ (1 << axis)]);
    let mut image = [0; 3];
    for (agreed, &axis) in axes.iter().enumerate() {
        image[agreed] = if origin >> axis & 1 == 1 { p - point[axis] } else { point[axis] };
    }
    image
}

/// Returns lattice coordinates of a point of a simplex with its vertices in ascending order.
fn simplex_image(dim: usize, p: usize, vertices: &[usize], point: &[usize; 3]) -> [usize; 3] {
    let weight = |vertex: usize| match vertex {
        0 => p - point.iter().sum::<usize>(),
        _ => point[vertex - 1],
    };
    let mut order: Vec<usize> = (0..=dim).collect();
    order.sort_by_key(|&vertex| vertices[vertex]);
    let mut image = [0; 3];
    for axis in 0..dim {
        image[axis] = weight(order[axis + 1]);
    }
    image
}

#[cfg(test)]
mod tests;
