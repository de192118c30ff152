//! Measures of a mesh: cell diameters, bounding box, volume, affinity, and the check for inverted cells.
//!
//! The Jacobian is J_cj = ∂x_c/∂ξ_j = Σ_i x_i,c ∂φ_i/∂ξ_j. A cell passes if det J is positive at the points of a Gauss
//! rule that is exact for det J. On straight quadrilaterals and hexahedra it must also be nonnegative at the vertices,
//! where det J of a bilinear quadrilateral is smallest. [`super::untangle`] samples curved cells on their facets, too.

use super::shape::CellShape;
use super::{Cell, Mesh, MeshData, MeshError};
use crate::support::parallel::*;
use kernels_gen::element::{Lagrange, Rule, default_rule, tabulate};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Expected sign of the Jacobian determinants.
#[derive(Clone, Copy, Debug)]
pub enum JacobianSign<'a> {
    /// Positive in all cells.
    Positive,
    /// Negative in the marked cells.
    Negative(&'a [bool]),
}

/// ∂φ_i/∂ξ at some points of the reference cell.
pub struct Gradients {
    dim: usize,
    /// `[point][node]`.
    at: Vec<Vec<[f64; 3]>>,
}

impl Gradients {
    /// Gradients of the geometry's basis.
    pub(super) fn new(shape: &CellShape, points: &[[f64; 3]]) -> Gradients {
        Gradients::of_element(shape.element, points)
    }

    /// Gradients of the (multi)linear basis of the vertices.
    pub(super) fn of_vertices(shape: &CellShape, points: &[[f64; 3]]) -> Gradients {
        // INVARIANT: every cell of a mesh has an element of degree 1 with vertices in order.
        let linear = Lagrange::continuous(shape.cell, 1).unwrap_or(shape.element);
        Gradients::of_element(linear, points)
    }

    /// Gradients of any basis.
    pub fn of_element(element: Lagrange, points: &[[f64; 3]]) -> Gradients {
        let table = tabulate(element, points);
        let padded = |gradient: &[f64]| {
            let mut all = [0.0; 3];
            all[..gradient.len()].copy_from_slice(gradient);
            all
        };
        let at = (0..points.len())
            .map(|q| (0..element.count()).map(|i| padded(table.gradient(q, i))).collect())
            .collect();
        Gradients { dim: element.cell().dim(), at }
    }

    /// Returns the number of points.
    pub fn n_points(&self) -> usize {
        self.at.len()
    }

    /// Returns the gradient of a basis function at a point.
    pub(super) fn of(&self, q: usize, node: usize) -> [f64; 3] {
        self.at[q][node]
    }

    pub(super) fn determinant(&self, q: usize, nodes: impl Iterator<Item = [f64; 3]>) -> f64 {
        self.cofactor(q, nodes).0
    }

    /// Returns det J and cof J at a point; J of further axes is the identity.
    pub fn cofactor(
        &self,
        q: usize,
        nodes: impl Iterator<Item = [f64; 3]>,
    ) -> (f64, [[f64; 3]; 3]) {
        // Loops over axes are unrolled: they dominate the time of unoptimised builds. Derivatives along
        // further axes are 0.
        let [mut of_x, mut of_y, mut of_z] = [[0.0; 3]; 3];
        let add = |row: &mut [f64; 3], x: f64, gradient: &[f64; 3]| {
            row[0] += x * gradient[0];
            row[1] += x * gradient[1];
            row[2] += x * gradient[2];
        };
        for (x, gradient) in nodes.zip(&self.at[q]) {
            add(&mut of_x, x[0], gradient);
            add(&mut of_y, x[1], gradient);
            add(&mut of_z, x[2], gradient);
        }
        let [up, out] = [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let j = match self.dim {
            1 => [of_x, up, out],
            2 => [of_x, of_y, out],
            _ => [of_x, of_y, of_z],
        };
        let minor = |c: usize, d: usize| {
            let (c1, c2, d1, d2) = ((c + 1) % 3, (c + 2) % 3, (d + 1) % 3, (d + 2) % 3);
            j[c1][d1] * j[c2][d2] - j[c1][d2] * j[c2][d1]
        };
        let cofactor = [0, 1, 2].map(|c| [0, 1, 2].map(|d| minor(c, d)));
        let [of_x, [a, b, c]] = [j[0], cofactor[0]];
        (of_x[0] * a + of_x[1] * b + of_x[2] * c, cofactor)
    }
}

/// Returns a rule that is exact for det J on tensor cells.
pub(super) fn rule(cell: Cell, order: usize) -> Rule {
    default_rule(cell, order, 1, Some(cell.dim() * order))
}

/// Cells per task.
const CHUNK: usize = 4096;

/// Affinity of all cells, computed at most once. Equality of meshes ignores it.
#[derive(Clone, Debug, Default)]
pub(super) struct Affinity(OnceLock<bool>);

impl Affinity {
    /// Creates a known value.
    pub(super) fn known(all: bool) -> Self {
        Self(OnceLock::from(all))
    }
}

impl PartialEq for Affinity {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The affine map through some vertices of a cell, with which its other nodes are compared.
struct AffineMap<'a> {
    shape: &'a CellShape,
    /// The node of vertex 0, and its neighbour along each axis.
    origin: usize,
    tips: [usize; 3],
    /// Pairs of vertices, of which one pair of an affine cell has the largest distance.
    diagonals: Vec<[usize; 2]>,
}

impl<'a> AffineMap<'a> {
    fn new(shape: &'a CellShape) -> Self {
        let (cell, nodes) = (shape.cell, &shape.vertex_nodes);
        let tip = |axis: usize| match (axis < cell.dim(), cell.is_tensor()) {
            (true, true) => nodes[1 << axis],
            (true, false) => nodes[axis + 1],
            (false, _) => nodes[0],
        };
        let count = nodes.len();
        let diagonals = match cell.is_tensor() {
            true => (0..count / 2).map(|v| [nodes[v], nodes[count - 1 - v]]).collect(),
            false => (0..count).flat_map(|v| (0..v).map(move |w| [nodes[v], nodes[w]])).collect(),
        };
        Self { shape, origin: nodes[0], tips: [0, 1, 2].map(tip), diagonals }
    }

    /// Returns the largest distance between two vertices of an affine cell with these nodes.
    fn diameter(&self, x: &[[f64; 3]]) -> f64 {
        let square = |&[v, w]: &[usize; 2]| {
            (0..3).map(|c| (x[v][c] - x[w][c]) * (x[v][c] - x[w][c])).sum::<f64>()
        };
        self.diagonals.iter().map(square).fold(0.0, f64::max).sqrt()
    }

    /// Returns the error of a cell's coordinates by rounding.
    fn rounding(&self, x: &[[f64; 3]], diameter: f64) -> f64 {
        ROUNDING * x[self.origin].iter().fold(diameter, |size, x| size.max(x.abs()))
    }

    /// Returns whether all nodes of a cell are images under the map, up to an error.
    fn holds(&self, x: &[[f64; 3]], error: f64) -> bool {
        let origin = x[self.origin];
        let edges = self.tips.map(|tip| [0, 1, 2].map(|c| x[tip][c] - origin[c]));
        x.iter().zip(&self.shape.coordinates).all(|(x, s)| {
            (0..3).all(|c| {
                let affine =
                    origin[c] + s[0] * edges[0][c] + s[1] * edges[1][c] + s[2] * edges[2][c];
                (affine - x[c]).abs() <= error
            })
        })
    }

    /// Returns det J.
    fn determinant(&self, x: &[[f64; 3]]) -> f64 {
        let [a, b, c] = self.tips.map(|tip| [0, 1, 2].map(|k| x[tip][k] - x[self.origin][k]));
        let z = a[0] * b[1] - a[1] * b[0];
        match self.shape.cell.dim() {
            1 => return a[0],
            2 => return z,
            _ => {}
        }
        (a[1] * b[2] - a[2] * b[1]) * c[0] + (a[2] * b[0] - a[0] * b[2]) * c[1] + z * c[2]
    }
}

/// Returns an error for the first inverted or degenerate cell; else whether all cells are affine. An affine cell is
/// judged by its one determinant, if this is so large that errors of its coordinates cannot change the sign elsewhere.
pub(super) fn check_cells(
    shape: &CellShape,
    parts: &MeshData,
    sign: JacobianSign<'_>,
) -> Result<Affinity, MeshError> {
    let inside = rule(shape.cell, shape.element.degree()).points();
    let inner = Gradients::new(shape, &inside);
    let straight = shape.cell.is_tensor() && shape.element.degree() == 1;
    let corners = if straight { shape.cell.vertices() } else { Vec::new() };
    let corner = Gradients::new(shape, &corners);
    let flip = |cell: usize| match sign {
        JacobianSign::Negative(cells) if cells[cell] => -1.0,
        _ => 1.0,
    };
    let smallest = |cell: usize, x: &[[f64; 3]]| -> (f64, f64) {
        let vertices = shape.vertex_nodes.iter().map(|&node| x[node]);
        let scale = largest_distance(vertices).powi(shape.cell.dim() as i32);
        let at = |g: &Gradients, q| flip(cell) * g.determinant(q, x.iter().copied());
        let least = |g: &Gradients| (0..g.n_points()).map(|q| at(g, q)).fold(f64::INFINITY, lesser);
        // A corner may be flat (an angle of 180°) but not folded.
        let folded = Some(least(&corner)).filter(|&det| det < -FLAT * scale);
        (lesser(least(&inner), folded.unwrap_or(f64::INFINITY)), scale)
    };
    // A NaN counts as bad.
    let good = |determinant: f64, scale: f64| determinant > FLAT * scale && determinant.is_finite();
    let (map, all) = (AffineMap::new(shape), AtomicBool::new(true));
    let bad = parts.nodes.par_chunks(CHUNK * shape.nodes).enumerate().first(|(chunk, cells)| {
        let (mut x, mut affine) = (vec![[0.0; 3]; shape.nodes], true);
        let found = cells.chunks_exact(shape.nodes).enumerate().find_map(|(i, nodes)| {
            let cell = chunk * CHUNK + i;
            x.iter_mut().zip(nodes).for_each(|(x, &node)| *x = parts.points[node as usize]);
            let diameter = map.diameter(&x);
            let error = map.rounding(&x, diameter);
            let is_affine = map.holds(&x, error);
            affine &= is_affine;
            let least = FEW * error * diameter.powi(shape.cell.dim() as i32 - 1);
            let determinant = flip(cell) * map.determinant(&x);
            if is_affine && determinant > least && determinant.is_finite() {
                return None;
            }
            let (determinant, scale) = smallest(cell, &x);
            (!good(determinant, scale)).then_some((cell, determinant, scale))
        });
        if !affine {
            all.store(false, Relaxed);
        }
        found
    });
    match bad {
        None => Ok(Affinity::known(all.into_inner())),
        Some((cell, determinant, usual)) => {
            Err(MeshError::Inverted { cell: shape.name(parts, cell), determinant, usual })
        }
    }
}

/// Returns the lesser of two numbers; NaN if `a` is NaN.
fn lesser(a: f64, b: f64) -> f64 {
    if a.is_nan() || a < b { a } else { b }
}

/// A determinant below this, relative to the diameter's power, counts as 0.
const FLAT: f64 = 1e-13;

/// Bound of the change of det J by an error of the coordinates, in units of the error and d − 1 diameters: three columns
/// of J, and sums of |∂φ/∂ξ| up to the highest order.
const FEW: f64 = 1e4;

/// Returns the largest distance between two of at most eight points.
pub fn largest_distance(points: impl Iterator<Item = [f64; 3]>) -> f64 {
    let mut known = [[0.0; 3]; 8];
    let mut largest = 0.0f64;
    for (i, point) in points.enumerate() {
        known[i] = point;
        for other in &known[..i] {
            let square: f64 = (0..3).map(|c| (point[c] - other[c]).powi(2)).sum();
            largest = largest.max(square);
        }
    }
    largest.sqrt()
}

/// Returns the mean of the selected points.
pub(super) fn mean(all: &[[f64; 3]], points: &[u32]) -> [f64; 3] {
    let sum = |c: usize| points.iter().map(|&point| all[point as usize][c]).sum::<f64>();
    [0, 1, 2].map(|c| sum(c) / points.len() as f64)
}

impl Mesh {
    /// Returns the diameter h of a cell of the mesh.
    pub(super) fn own_diameter(&self, cell: usize) -> f64 {
        largest_distance(self.vertices(cell).iter().map(|&v| self.points[v as usize]))
    }

    /// Returns the diameter h of a cell whose map has these nodes.
    pub(super) fn diameter_of(&self, points: &[[f64; 3]]) -> f64 {
        let element = Lagrange::continuous(self.cell, self.order).ok();
        let nodes = element.map_or_else(Vec::new, Lagrange::nodes);
        let vertices = points.iter().zip(nodes).filter(|(_, node)| node.dim == 0);
        largest_distance(vertices.map(|(point, _)| *point))
    }

    /// Returns the mean of a cell's vertices.
    pub fn centre(&self, cell: usize) -> [f64; 3] {
        mean(&self.points, self.vertices(cell))
    }

    /// Returns the bounding box of all geometry nodes: lower and upper corner.
    pub fn bounding_box(&self) -> ([f64; 3], [f64; 3]) {
        let mut corners = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for point in &self.points {
            for c in 0..3 {
                corners.0[c] = corners.0[c].min(point[c]);
                corners.1[c] = corners.1[c].max(point[c]);
            }
        }
        corners
    }

    /// Returns whether every cell is an affine image of the reference cell, up to rounding.
    pub fn is_affine(&self) -> bool {
        *self.affine.0.get_or_init(|| {
            let Ok(shape) = CellShape::new(self.cell, self.order) else { return false };
            let map = AffineMap::new(&shape);
            self.nodes.par_chunks(CHUNK * shape.nodes).holds(|cells| {
                let mut x = vec![[0.0; 3]; shape.nodes];
                cells.chunks_exact(shape.nodes).all(|nodes| {
                    x.iter_mut().zip(nodes).for_each(|(x, &node)| *x = self.points[node as usize]);
                    map.holds(&x, map.rounding(&x, map.diameter(&x)))
                })
            })
        })
    }

    /// Returns for each cell whether its numbering mirrors it, so that its Jacobian determinant is negative.
    pub fn mirrored(&self) -> Vec<bool> {
        self.mirrored_of(0..self.n_cells())
    }

    /// [`mirrored`](Self::mirrored) for some cells.
    pub(crate) fn mirrored_of(&self, cells: impl Iterator<Item = usize>) -> Vec<bool> {
        let Ok(shape) = CellShape::new(self.cell, self.order) else { return Vec::new() };
        let gradients = Gradients::of_vertices(&shape, &[self.cell.centre()]);
        // Maps of generators keep the sign, but may fold large cells.
        let all = self.plain_points();
        let points = |v: &[u32]| v.iter().map(|&v| all[v as usize]).collect::<Vec<_>>();
        cells
            .map(|c| gradients.determinant(0, points(self.vertices(c)).into_iter()) < 0.0)
            .collect()
    }

    /// Returns the area or volume of the mesh, ∫ |det J|.
    pub fn size(&self) -> f64 {
        let Ok(shape) = CellShape::new(self.cell, self.order) else { return f64::NAN };
        let rule = rule(self.cell, self.order);
        let (at, weights) = (rule.points(), rule.weights());
        let gradients = Gradients::new(&shape, &at);
        // Chunks are summed in order: the result does not depend on the number of threads.
        let chunks: Vec<f64> = self
            .nodes
            .par_chunks(CHUNK * self.nodes_per_cell)
            .map(|cells| {
                cells
                    .chunks_exact(self.nodes_per_cell)
                    .map(|nodes| {
                        let points = || nodes.iter().map(|&i| self.points[i as usize]);
                        weights
                            .iter()
                            .enumerate()
                            .map(|(q, w)| w * gradients.determinant(q, points()).abs())
                            .sum::<f64>()
                    })
                    .sum::<f64>()
            })
            .listed();
        chunks.iter().sum()
    }
}

/// Rounding error allowed in [`Mesh::is_affine`], relative to the coordinates: a few last bits, as computed or printed
/// with 16 digits.
const ROUNDING: f64 = 64.0 * f64::EPSILON;
