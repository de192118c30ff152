//! Untangling of curved cells: moves interior nodes until no cell is folded.
//!
//! A mesh generator that curves a coarse mesh moves the boundary nodes and may leave the others unchanged. Cells near a
//! strongly curved boundary then fold, although their vertices are correct. The boundary defines the domain, so only
//! geometry nodes that are neither vertices nor on a boundary facet move. Let d_q be det J(ξ_q) divided by the
//! determinant of the straight cell with the same vertices. The nodes minimise
//!
//! ```text
//! E = Σ_cells Σ_q max(0, τ − d_q)²
//! ```
//!
//! over the folded cells and all cells that share a movable node with them, by gradient descent with the step lengths
//! of Barzilai and Borwein (IMA J. Numer. Anal. 8, 1988). The gradient is ∂ det J/∂x_i = cof(J) ∇φ_i.
//!
//! A cell that is still folded afterwards is an error: no interior node can repair folded facets. det J = 0 at a vertex
//! is allowed, as in quarter-point elements. If both edges at a corner run backwards, det J is positive there and
//! negative only between the two cusps; such edges are sampled densely.

use super::measure::{self, Gradients, largest_distance};
use super::shape::CellShape;
use super::{MeshData, MeshError, Topology};
use crate::support::parallel::*;

/// Result of the untangling: numbers of folded cells and of moved nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UntanglingResult {
    pub(super) cells: usize,
    pub(super) nodes: usize,
}

/// τ: smaller determinants, relative to the straight cell's, are penalised.
const WANTED: f64 = 0.25;
/// A cell is accepted if all its relative determinants exceed this.
const ENOUGH: f64 = 0.02;
/// A cell is folded if a relative determinant is below minus this; coordinates may have single precision.
const FOLDED: f64 = 1e-6;
/// A cell that stays folded is an error below minus this. If two sides on a smooth curve meet in a corner of one cell,
/// interpolation takes its angle past 180° (by 3° on arcs of 45° of degree 2). Edges that run backwards have no such
/// allowance.
const WRONG: f64 = 0.05;
/// Smallest number of cells per thread.
const CELLS: usize = 256;
/// Sampling intervals of an edge that runs backwards.
const DENSE: usize = 64;
const MOST_STEPS: usize = 2000;
/// Number of steps in which E must fall by a tenth; otherwise the descent stops.
const PATIENCE: usize = 20;

/// Untangles folded curved cells.
///
/// # Errors
///
/// [`MeshError::Inverted`] of a cell that stays folded.
pub(super) fn unfold(
    shape: &CellShape,
    parts: &mut MeshData,
) -> Result<Option<UntanglingResult>, MeshError> {
    if shape.element.degree() == 1 {
        return Ok(None);
    }
    let samples = SamplePoints::new(shape);
    let n_cells = parts.nodes.len() / shape.nodes;
    let cells = || (0..n_cells).into_par_iter().with_min_len(CELLS);
    let is_folded = cells().map(|cell| samples.smallest(shape, parts, cell) < -FOLDED).listed();
    let folded: Vec<usize> = (0..n_cells).filter(|&cell| is_folded[cell]).collect();
    let mut done = None;
    if !folded.is_empty() {
        let (patch, unknowns) = patch(shape, parts, &folded)?;
        descend(shape, parts, &samples, &patch, &unknowns);
        // `patch` has no cells without free nodes.
        for &cell in folded.iter().chain(&patch) {
            let smallest = samples.smallest(shape, parts, cell);
            if smallest < -WRONG {
                let determinant = smallest * samples.straight(shape, parts, cell);
                return Err(inverted(shape, parts, cell, determinant));
            }
        }
        let moved = UntanglingResult { cells: folded.len(), nodes: unknowns.len() };
        done = (moved.nodes > 0).then_some(moved);
    }
    let edges = CellEdges::new(shape);
    let (samples, of_mesh) = (&samples, &*parts);
    let wrong = cells().first(|cell| {
        let straight = samples.straight(shape, of_mesh, cell);
        let least = edges.smallest(shape, of_mesh, cell);
        (least / straight < -FOLDED).then(|| inverted(shape, of_mesh, cell, least))
    });
    wrong.map_or(Ok(done), Err)
}

fn inverted(shape: &CellShape, parts: &MeshData, cell: usize, determinant: f64) -> MeshError {
    let vertices = shape.vertices(cell_nodes(shape, parts, cell));
    let diameter = largest_distance(vertices.map(|v| parts.points[v as usize]));
    let usual = diameter.powi(shape.cell.dim() as i32);
    MeshError::Inverted { cell: shape.name(parts, cell), determinant, usual }
}

/// Returns the movable nodes of folded cells, and all cells that contain one.
fn patch(
    shape: &CellShape,
    parts: &MeshData,
    folded: &[usize],
) -> Result<(Vec<usize>, Vec<u32>), MeshError> {
    let movable = movable(shape, parts)?;
    let mut free = vec![false; parts.points.len()];
    for &cell in folded {
        for &node in cell_nodes(shape, parts, cell) {
            free[node as usize] = movable[node as usize];
        }
    }
    let touched =
        |cell: &usize| cell_nodes(shape, parts, *cell).iter().any(|&node| free[node as usize]);
    let patch: Vec<usize> = (0..parts.nodes.len() / shape.nodes).filter(touched).collect();
    let unknowns: Vec<u32> =
        (0..parts.points.len() as u32).filter(|&node| free[node as usize]).collect();
    Ok((patch, unknowns))
}

fn cell_nodes<'a>(shape: &CellShape, parts: &'a MeshData, cell: usize) -> &'a [u32] {
    &parts.nodes[cell * shape.nodes..(cell + 1) * shape.nodes]
}

/// Marks the points that are neither vertices nor on the boundary.
fn movable(shape: &CellShape, parts: &MeshData) -> Result<Vec<bool>, MeshError> {
    let vertices = shape.all_vertices(&parts.nodes);
    let topology = Topology::new(shape.cell, parts.points.len(), vertices)?;
    let mut movable = vec![true; parts.points.len()];
    for (i, nodes) in parts.nodes.chunks_exact(shape.nodes).enumerate() {
        for vertex in shape.vertices(nodes) {
            movable[vertex as usize] = false;
        }
        for (local, &facet) in topology.facets().of_cell(i).iter().enumerate() {
            if topology.facets().n_cells(facet as usize) == 1 {
                for &node in &shape.facet_nodes[local] {
                    movable[nodes[node] as usize] = false;
                }
            }
        }
    }
    Ok(movable)
}

/// Sampling points of determinants: those of the check, and a lattice with the corners.
struct SamplePoints {
    gradients: Gradients,
    linear: Gradients,
}

impl SamplePoints {
    fn new(shape: &CellShape) -> SamplePoints {
        let degree = shape.element.degree();
        let mut points = measure::rule(shape.cell, degree).points();
        points.extend(shape.lattice_points(2 * degree));
        let linear = Gradients::of_vertices(shape, &[shape.cell.centre()]);
        SamplePoints { gradients: Gradients::new(shape, &points), linear }
    }

    /// Returns the determinant of the straight cell, at its centre.
    fn straight(&self, shape: &CellShape, parts: &MeshData, cell: usize) -> f64 {
        let vertices = shape.vertices(cell_nodes(shape, parts, cell));
        self.linear.determinant(0, vertices.map(|v| parts.points[v as usize]))
    }

    /// Returns the smallest determinant relative to the straight cell's.
    fn smallest(&self, shape: &CellShape, parts: &MeshData, cell: usize) -> f64 {
        let straight = self.straight(shape, parts, cell);
        let nodes = cell_nodes(shape, parts, cell);
        let all = (0..self.gradients.n_points()).map(|q| {
            self.gradients.determinant(q, nodes.iter().map(|&i| parts.points[i as usize]))
        });
        all.fold(f64::INFINITY, |least, d| least.min(d / straight))
    }
}

/// The edges of a cell, with the determinants along them.
struct CellEdges {
    /// The two vertices of each edge.
    ends: Vec<[usize; 2]>,
    /// Gradients at the vertices of the cell.
    vertices: Gradients,
    /// Gradients along each edge.
    along: Vec<Gradients>,
}

impl CellEdges {
    fn new(shape: &CellShape) -> CellEdges {
        let cell = shape.cell;
        let ends: Vec<[usize; 2]> =
            cell.entities(1).iter().map(|edge| [edge[0], edge[1]]).collect();
        let along = |&[a, b]: &[usize; 2]| {
            let (a, b) = (cell.vertex(a), cell.vertex(b));
            let at = |i: usize| {
                let t = i as f64 / DENSE as f64;
                [0, 1, 2].map(|c| (1.0 - t) * a[c] + t * b[c])
            };
            Gradients::new(shape, &(0..=DENSE).map(at).collect::<Vec<_>>())
        };
        let along = ends.iter().map(along).collect();
        CellEdges { ends, vertices: Gradients::new(shape, &cell.vertices()), along }
    }

    /// Returns the smallest relative determinant on edges that run backwards at an end.
    fn smallest(&self, shape: &CellShape, parts: &MeshData, cell: usize) -> f64 {
        let nodes = cell_nodes(shape, parts, cell);
        let points = || nodes.iter().map(|&i| parts.points[i as usize]);
        let mut least = f64::INFINITY;
        for (ends, along) in self.ends.iter().zip(&self.along) {
            let [a, b] = ends.map(|v| parts.points[nodes[shape.vertex_nodes[v]] as usize]);
            let [from, to] = ends.map(|v| shape.cell.vertex(v));
            let backwards = |&vertex: &usize| {
                let speed = |i: usize| -> f64 {
                    let basis = self.vertices.of(vertex, i);
                    (0..3).map(|c| basis[c] * (to[c] - from[c])).sum()
                };
                let tangent = points()
                    .enumerate()
                    .fold([0.0; 3], |sum, (i, x)| [0, 1, 2].map(|c| sum[c] + speed(i) * x[c]));
                (0..3).map(|c| tangent[c] * (b[c] - a[c])).sum::<f64>() < 0.0
            };
            if ends.iter().any(backwards) {
                for q in 0..along.n_points() {
                    least = least.min(along.determinant(q, points()));
                }
            }
        }
        least
    }
}

fn descend(
    shape: &CellShape,
    parts: &mut MeshData,
    samples: &SamplePoints,
    patch: &[usize],
    unknowns: &[u32],
) {
    let straight: Vec<f64> =
        patch.iter().map(|&cell| samples.straight(shape, parts, cell)).collect();
    // An inverted straight cell cannot be untangled.
    if straight.iter().any(|&d| d <= 0.0) {
        return;
    }
    let mut slot = vec![usize::MAX; parts.points.len()];
    for (i, &node) in unknowns.iter().enumerate() {
        slot[node as usize] = i;
    }
    let mut last: Option<(Vec<[f64; 3]>, Vec<[f64; 3]>)> = None;
    let mut hoped = f64::INFINITY;
    for round in 0..MOST_STEPS {
        let (least, energy, gradient) =
            slope(shape, parts, samples, patch, &straight, &slot, unknowns.len());
        if least > ENOUGH || gradient.iter().flatten().all(|&g| g == 0.0) {
            return;
        }
        if round % PATIENCE == 0 {
            // Stop if E has not fallen enough, or is not a number.
            if energy.is_nan() || energy > hoped {
                return;
            }
            hoped = 0.9 * energy;
        }
        let here: Vec<[f64; 3]> = unknowns.iter().map(|&n| parts.points[n as usize]).collect();
        let largest = gradient.iter().flatten().fold(0.0, |m: f64, g| m.max(g.abs()));
        // A step is at most a small fraction of the cell size.
        let reach = 0.02 * straight[0].abs().powf(1.0 / shape.cell.dim() as f64) / largest;
        let step =
            last.as_ref().map_or(reach, |(x, g)| barzilai(x, g, &here, &gradient).min(reach));
        for (i, &node) in unknowns.iter().enumerate() {
            for c in 0..3 {
                parts.points[node as usize][c] -= step * gradient[i][c];
            }
        }
        last = Some((here, gradient));
    }
}

/// Returns the Barzilai–Borwein step s·s / s·y, with s the last step and y the change of the gradient; unlimited for
/// s·y ≤ 0.
fn barzilai(x: &[[f64; 3]], g: &[[f64; 3]], here: &[[f64; 3]], now: &[[f64; 3]]) -> f64 {
    let (mut ss, mut sy) = (0.0, 0.0);
    for i in 0..x.len() {
        for c in 0..3 {
            let s = here[i][c] - x[i][c];
            ss += s * s;
            sy += s * (now[i][c] - g[i][c]);
        }
    }
    if sy > 0.0 { ss / sy } else { f64::INFINITY }
}

/// Returns the smallest relative determinant, E, and ∂E/∂x of the movable nodes.
fn slope(
    shape: &CellShape,
    parts: &MeshData,
    samples: &SamplePoints,
    patch: &[usize],
    straight: &[f64],
    slot: &[usize],
    n: usize,
) -> (f64, f64, Vec<[f64; 3]>) {
    let (mut least, mut energy) = (f64::INFINITY, 0.0);
    let mut gradient = vec![[0.0; 3]; n];
    for (&cell, &straight) in patch.iter().zip(straight) {
        let nodes = cell_nodes(shape, parts, cell);
        for q in 0..samples.gradients.n_points() {
            let points = nodes.iter().map(|&i| parts.points[i as usize]);
            let (determinant, cofactor) = samples.gradients.cofactor(q, points);
            let d = determinant / straight;
            least = least.min(d);
            if d >= WANTED {
                continue;
            }
            energy += (WANTED - d) * (WANTED - d);
            let factor = -2.0 * (WANTED - d) / straight;
            for (i, &node) in nodes.iter().enumerate() {
                if let Some(sum) = gradient.get_mut(slot[node as usize]) {
                    let basis = samples.gradients.of(q, i);
                    for c in 0..shape.cell.dim() {
                        let change: f64 = (0..3).map(|d| cofactor[c][d] * basis[d]).sum();
                        sum[c] += factor * change;
                    }
                }
            }
        }
    }
    (least, energy, gradient)
}
