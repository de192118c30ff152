//! Check of conformity: nodes inside facets of other cells, and overlapping cells.
//!
//! A node of one cell inside a facet of another slits the domain: both sides count as boundary. If cells overlap
//! without a common facet, integrals count a part of the domain twice. Both show at facets of exactly one cell. The
//! vertices of these facets and the centres of their cells form a bounding-box tree ([`BoundingTree`]). Each such facet
//! queries the vertices in its bounding box, and each cell all points. The Gauss–Newton method then searches the
//! candidate on the (curved) facet or cell. It minimises ‖x(o + A s) − p‖ over s, where o + A s parametrises the facet
//! or cell in reference coordinates. Only points found in this way count. Cells that overlap without a vertex or centre
//! inside each other have crossing facets: [`crossing`].

mod crossing;

use super::error::NodeName;
use super::shape::{CellShape, vertex_function};
use super::tree::{BoundingBox, BoundingTree};
use super::{Facet, MeshData, MeshError, Topology};
use crate::support::parallel::*;
use kernels_gen::element::{Cell, tabulate};

/// Points with this relative depth inside a cell belong to no other cell.
const DEEP: f64 = 1e-3;
/// Relative distance below which a node coincides with a facet's vertex.
const AT_VERTEX: f64 = 1e-3;
/// Largest distance of a point from its cell, relative to the cell.
const FOUND: f64 = 1e-9;
/// Iteration limit of the Gauss–Newton method, which takes a few steps, and the size of its last step.
const STEPS: usize = 20;
const SETTLED: f64 = 1e-12;
/// Distance outside of a reference cell at which the search ends.
const FAR: f64 = 4.0;
/// Largest protrusion of a curved cell from the straight one.
const BULGE: f64 = 0.2;

/// Returns an error for the first node inside a facet of another cell, or for the first pair of overlapping cells.
/// Nodes closer than `tolerance` coincide.
pub(super) fn check_apart(
    shape: &CellShape,
    parts: &MeshData,
    topology: &Topology,
    tolerance: f64,
) -> Result<(), MeshError> {
    let boundary = topology.boundary();
    let marks = marks(shape, parts, topology, &boundary).into_iter();
    let tree = BoundingTree::new(
        marks.map(|mark| (BoundingBox::of([mark.at].into_iter()), mark)).collect(),
    );
    let place = ConformityCheck { shape, parts, topology, tree: &tree };
    // Points have no inside, and cross nothing.
    let facets = if shape.cell.dim() > 1 { &boundary[..] } else { &[] };
    let hanging = facets.par_iter().first(|&facet| place.hanging(facet, tolerance));
    if let Some(error) = hanging {
        return Err(error);
    }
    let cells = (0..topology.n_cells()).into_par_iter().with_min_len(256);
    let overlapping = cells.first(|cell| place.overlapping(cell));
    overlapping.or_else(|| crossing::crossing(&place, facets)).map_or(Ok(()), Err)
}

/// A point of a cell.
#[derive(Clone, Copy, Debug)]
struct SamplePoint {
    at: [f64; 3],
    cell: u32,
    /// The vertex; `None` for the cell's centre.
    vertex: Option<u32>,
}

/// Returns the vertices of some facets, without duplicates, and the centres of their cells.
fn marks(
    shape: &CellShape,
    parts: &MeshData,
    topology: &Topology,
    facets: &[Facet],
) -> Vec<SamplePoint> {
    let mut seen = vec![false; topology.n_vertices()];
    let mut marks = Vec::new();
    let centre = tabulate(shape.element, &[shape.cell.centre()]);
    let mut last = None;
    for &Facet { cell, local } in facets {
        let vertices = topology.vertices(cell as usize);
        for &v in shape.cell.facets()[local as usize] {
            let vertex = vertices[v];
            if !std::mem::replace(&mut seen[vertex as usize], true) {
                let at = parts.points[vertex as usize];
                marks.push(SamplePoint { at, cell, vertex: Some(vertex) });
            }
        }
        if last.replace(cell) != Some(cell) {
            let nodes = nodes_of(shape, parts, cell as usize).iter().enumerate();
            let at = nodes.fold([0.0; 3], |sum, (i, &node)| {
                let point = parts.points[node as usize];
                [0, 1, 2].map(|c| sum[c] + centre.value(0, i) * point[c])
            });
            marks.push(SamplePoint { at, cell, vertex: None });
        }
    }
    marks
}

fn nodes_of<'a>(shape: &CellShape, parts: &'a MeshData, cell: usize) -> &'a [u32] {
    &parts.nodes[cell * shape.nodes..(cell + 1) * shape.nodes]
}

/// A mesh and its query points.
struct ConformityCheck<'a> {
    shape: &'a CellShape,
    parts: &'a MeshData,
    topology: &'a Topology,
    tree: &'a BoundingTree<SamplePoint>,
}

impl ConformityCheck<'_> {
    /// Finds a vertex inside a facet of another cell.
    fn hanging(&self, facet: Facet, tolerance: f64) -> Option<MeshError> {
        let (cell, local) = (facet.cell as usize, facet.local as usize);
        let nodes = nodes_of(self.shape, self.parts, cell);
        let own = self.shape.cell.facets()[local].iter().map(|&v| self.topology.vertices(cell)[v]);
        let own: Vec<u32> = own.collect();
        let points = || own.iter().map(|&vertex| self.parts.points[vertex as usize]);
        let size = points().flat_map(|a| points().map(move |b| distance(&a, &b)));
        let size = size.fold(0.0, f64::max);
        let on_facet = self.shape.facet_nodes[local].iter().map(|&node| nodes[node]);
        // A curved facet may extend slightly beyond its nodes.
        let margin = tolerance + if self.shape.element.degree() > 1 { 0.1 * size } else { 0.0 };
        let bounds = BoundingBox::of(on_facet.map(|node| self.parts.points[node as usize]));
        let frame = Parametrisation::of_facet(self.shape.cell, local);
        let mark = self.tree.find(&bounds.grown(margin), &mut |mark| {
            let foreign = mark.vertex.is_some_and(|vertex| !own.contains(&vertex));
            if !foreign || points().any(|point| distance(&point, &mark.at) <= AT_VERTEX * size) {
                return false;
            }
            let found = self.nearest(nodes, &frame, &mark.at);
            found.is_some_and(|(s, far)| far <= tolerance && frame.depth(&s) * size > -tolerance)
        })?;
        let labels = &self.parts.point_labels;
        let number = mark.vertex.and_then(|vertex| labels.get(vertex as usize)).copied();
        Some(MeshError::Hanging {
            node: Box::new(NodeName { number, at: mark.at }),
            cell: self.shape.name(self.parts, cell),
        })
    }

    /// Finds a point of another cell deep inside this one.
    fn overlapping(&self, cell: usize) -> Option<MeshError> {
        let nodes = nodes_of(self.shape, self.parts, cell);
        let points = || nodes.iter().map(|&node| self.parts.points[node as usize]);
        let bounds = BoundingBox::of(points());
        let size = distance(&bounds.lower, &bounds.upper);
        let own = self.topology.vertices(cell);
        let frame = Parametrisation::of_cell(self.shape.cell);
        let mark = self.tree.find(&bounds, &mut |mark| {
            let mine = match mark.vertex {
                Some(vertex) => own.contains(&vertex),
                None => mark.cell as usize == cell,
            };
            if mine {
                return false;
            }
            let found = self.nearest(nodes, &frame, &mark.at);
            found.is_some_and(|(s, far)| far <= FOUND * size && frame.depth(&s) > DEEP)
        })?;
        let cells = [mark.cell as usize, cell].map(|cell| self.shape.name(self.parts, cell));
        Some(MeshError::Inside { cells: Box::new(cells), at: mark.at })
    }

    /// Returns the parameters and the distance of the facet's or cell's nearest point. For curved cells the search
    /// starts from the solution on the straight cell with the same vertices.
    fn nearest(
        &self,
        nodes: &[u32],
        frame: &Parametrisation,
        p: &[f64; 3],
    ) -> Option<([f64; 3], f64)> {
        let straight = descend(frame, frame.centre(), p, |at| self.straight(nodes, at));
        if self.shape.element.degree() == 1 {
            return straight;
        }
        let (s, _) = straight.filter(|(s, _)| frame.depth(s) > -BULGE)?;
        descend(frame, s, p, |at| self.curved(nodes, at))
    }

    /// Returns x(ξ) and ∂x/∂ξ of the straight cell.
    fn straight(&self, nodes: &[u32], at: [f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
        let cell = self.shape.cell;
        // (Multi)linear along each axis: the derivative is the difference of the end values.
        let difference = |vertex: usize, axis: usize| {
            let end = |x: f64| {
                let mut end = at;
                end[axis] = x;
                vertex_function(cell, vertex, end)
            };
            if axis < cell.dim() { end(1.0) - end(0.0) } else { 0.0 }
        };
        let vertices = self.shape.vertices(nodes).enumerate();
        self.map(vertices.map(|(vertex, node)| {
            let gradient = [0, 1, 2].map(|axis| difference(vertex, axis));
            (node, vertex_function(cell, vertex, at), gradient)
        }))
    }

    /// Returns x(ξ) and ∂x/∂ξ of the curved cell.
    fn curved(&self, nodes: &[u32], at: [f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
        let table = tabulate(self.shape.element, &[at]);
        self.map(nodes.iter().enumerate().map(|(i, &node)| {
            let mut gradient = [0.0; 3];
            gradient[..self.shape.cell.dim()].copy_from_slice(table.gradient(0, i));
            (node, table.value(0, i), gradient)
        }))
    }

    fn map(&self, basis: impl Iterator<Item = (u32, f64, [f64; 3])>) -> ([f64; 3], [[f64; 3]; 3]) {
        let (mut x, mut jacobian) = ([0.0; 3], [[0.0; 3]; 3]);
        for (node, value, gradient) in basis {
            let point = self.parts.points[node as usize];
            for c in 0..3 {
                x[c] += value * point[c];
                (0..3).for_each(|d| jacobian[c][d] += point[c] * gradient[d]);
            }
        }
        (x, jacobian)
    }
}

/// Minimises ‖x(o + A s) − p‖ from an initial s. Returns s and the distance, or `None` without convergence.
fn descend(
    frame: &Parametrisation,
    mut s: [f64; 3],
    p: &[f64; 3],
    map: impl Fn([f64; 3]) -> ([f64; 3], [[f64; 3]; 3]),
) -> Option<([f64; 3], f64)> {
    for _ in 0..STEPS {
        let (x, jacobian) = map(frame.at(&s));
        let residual = [0, 1, 2].map(|c| p[c] - x[c]);
        let along =
            |c: usize, d: usize| -> f64 { (0..3).map(|e| jacobian[c][e] * frame.axes[d][e]).sum() };
        let tangents = [0, 1, 2].map(|c| [0, 1, 2].map(|d| along(c, d)));
        let step = least_squares(&tangents, &residual, frame.dim)?;
        (0..3).for_each(|d| s[d] += step[d]);
        if s.iter().any(|s| s.is_nan() || s.abs() > FAR) {
            return None;
        }
        if step.iter().all(|step| step.abs() <= SETTLED) {
            return Some((s, distance(&residual, &[0.0; 3])));
        }
    }
    None
}

/// Parametrisation o + A s of a reference cell or of one of its facets.
struct Parametrisation {
    dim: usize,
    is_simplex: bool,
    origin: [f64; 3],
    axes: [[f64; 3]; 3],
}

impl Parametrisation {
    fn of_cell(cell: Cell) -> Self {
        let mut axes = [[0.0; 3]; 3];
        (0..cell.dim()).for_each(|axis| axes[axis][axis] = 1.0);
        Self { dim: cell.dim(), is_simplex: !cell.is_tensor(), origin: [0.0; 3], axes }
    }

    fn of_facet(cell: Cell, local: usize) -> Self {
        let (vertices, dim) = (cell.facets()[local], cell.dim() - 1);
        let origin = cell.vertex(vertices[0]);
        let mut axes = [[0.0; 3]; 3];
        // Vertices are in lexicographic order.
        for (axis, &vertex) in axes.iter_mut().zip(&vertices[1..=dim]) {
            let tip = cell.vertex(vertex);
            *axis = [0, 1, 2].map(|c| tip[c] - origin[c]);
        }
        Self { dim, is_simplex: !cell.is_tensor(), origin, axes }
    }

    fn centre(&self) -> [f64; 3] {
        let middle = if self.is_simplex { 1.0 / (self.dim + 1) as f64 } else { 0.5 };
        [0, 1, 2].map(|d| if d < self.dim { middle } else { 0.0 })
    }

    fn at(&self, s: &[f64; 3]) -> [f64; 3] {
        [0, 1, 2]
            .map(|c| self.origin[c] + (0..self.dim).map(|d| s[d] * self.axes[d][c]).sum::<f64>())
    }

    /// Returns the depth of a point inside; negative outside.
    fn depth(&self, s: &[f64; 3]) -> f64 {
        let s = &s[..self.dim];
        let least = s.iter().copied().fold(f64::INFINITY, f64::min);
        if self.is_simplex {
            least.min(1.0 - s.iter().sum::<f64>())
        } else {
            s.iter().fold(least, |least, s| least.min(1.0 - s))
        }
    }
}

/// Solves the least-squares problem min ‖T d − r‖ with the first `columns` columns of T.
fn least_squares(t: &[[f64; 3]; 3], r: &[f64; 3], columns: usize) -> Option<[f64; 3]> {
    let product = |i: usize, j: usize| (0..3).map(|c| t[c][i] * t[c][j]).sum::<f64>();
    let mut a = [0, 1, 2].map(|i| [0, 1, 2].map(|j| product(i, j)));
    let mut b = [0, 1, 2].map(|i| (0..3).map(|c| t[c][i] * r[c]).sum::<f64>());
    for i in columns..3 {
        a[i] = [0.0; 3];
        (0..3).for_each(|j| a[j][i] = 0.0);
        a[i][i] = 1.0;
        b[i] = 0.0;
    }
    // TᵀT is positive definite: no pivoting.
    for i in 0..3 {
        if a[i][i].is_nan() || a[i][i] <= 0.0 {
            return None;
        }
        for j in i + 1..3 {
            let factor = a[j][i] / a[i][i];
            (i..3).for_each(|k| a[j][k] -= factor * a[i][k]);
            b[j] -= factor * b[i];
        }
    }
    for i in (0..3).rev() {
        let known: f64 = (i + 1..3).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    Some(b)
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|c| (a[c] - b[c]).powi(2)).sum::<f64>().sqrt()
}
