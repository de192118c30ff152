//! Unfolding of curved cells: nodes inside the domain moved until no cell folds over.
//!
//! A mesh generator that curves a coarse mesh moves the nodes on the boundary and may leave
//! the others where they were; cells beside a strongly curved boundary then fold over, although
//! their vertices are in order. The boundary says what the domain is, so that only
//! geometry nodes that are no vertices and on no boundary facet move. With d_q = det J(ξ_q) over
//! the determinant of the straight cell with the same vertices, they go downhill on
//!
//! ```text
//! E = Σ_cells Σ_q max(0, τ − d_q)²
//! ```
//!
//! over the folded cells and all that share a movable node with them, by gradient descent with
//! the step lengths of Barzilai and Borwein (IMA J. Numer. Anal. 8, 1988). The gradient is
//! ∂ det J/∂x_i = cof(J) ∇φ_i.
//!
//! A cell that is still folded afterwards is an error: its facets fold, which no node inside the domain
//! mends. det J = 0 at a vertex is none, as in quarter-point elements. Where both edges of a corner run
//! backwards, det J is positive there and negative only between the two cusps, so that such edges are
//! sampled densely.

use super::measure::{self, Gradients, largest_distance};
use super::shape::Shape;
use super::{MeshError, Parts, Topology};
use crate::support::parallel::*;

/// What was done to a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfolded {
    pub(super) cells: usize,
    pub(super) nodes: usize,
}

/// τ: determinants below this part of the straight cell's are pushed up.
const WANTED: f64 = 0.25;
/// A cell is good enough if all are above this part.
const ENOUGH: f64 = 0.02;
/// A cell is folded where one is below −1 times this part; coordinates may have single precision.
const FOLDED: f64 = 1e-6;
/// A cell that stays folded is an error below −1 times this part: where two sides on a smooth curve meet in a corner of one cell,
/// interpolation takes its angle past 180° (by 3° on arcs of 45° of degree 2). Edges that run backwards have no such allowance.
const WRONG: f64 = 0.05;
/// Cells that a thread takes at a time, at least.
const CELLS: usize = 256;
/// Intervals at whose ends an edge that runs backwards is sampled.
const DENSE: usize = 64;
const MOST_STEPS: usize = 2000;
/// After so many steps E must have fallen by a tenth, or there is no way down.
const PATIENCE: usize = 20;

/// Unfolds curved cells where that is needed.
///
/// # Errors
///
/// [`MeshError::Inverted`] of a cell that stays folded.
pub(super) fn unfold(shape: &Shape, parts: &mut Parts) -> Result<Option<Unfolded>, MeshError> {
    if shape.element.degree() == 1 {
        return Ok(None);
    }
    let samples = Samples::new(shape);
    let n_cells = parts.nodes.len() / shape.nodes;
    let cells = || (0..n_cells).into_par_iter().with_min_len(CELLS);
    let is_folded = cells().map(|cell| samples.smallest(shape, parts, cell) < -FOLDED).listed();
    let folded: Vec<usize> = (0..n_cells).filter(|&cell| is_folded[cell]).collect();
    let mut done = None;
    if !folded.is_empty() {
        let (patch, unknowns) = patch(shape, parts, &folded)?;
        descend(shape, parts, &samples, &patch, &unknowns);
        // Cells without free nodes are not in the patch.
        for &cell in folded.iter().chain(&patch) {
            let smallest = samples.smallest(shape, parts, cell);
            if smallest < -WRONG {
                let determinant = smallest * samples.straight(shape, parts, cell);
                return Err(inverted(shape, parts, cell, determinant));
            }
        }
        let moved = Unfolded { cells: folded.len(), nodes: unknowns.len() };
        done = (moved.nodes > 0).then_some(moved);
    }
    let edges = Edges::new(shape);
    let (samples, of_mesh) = (&samples, &*parts);
    let wrong = cells().first(|cell| {
        let straight = samples.straight(shape, of_mesh, cell);
        let least = edges.smallest(shape, of_mesh, cell);
        (least / straight < -FOLDED).then(|| inverted(shape, of_mesh, cell, least))
    });
    wrong.map_or(Ok(done), Err)
}

fn inverted(shape: &Shape, parts: &Parts, cell: usize, determinant: f64) -> MeshError {
    let vertices = shape.vertices(cell_nodes(shape, parts, cell));
    let diameter = largest_distance(vertices.map(|v| parts.points[v as usize]));
    let usual = diameter.powi(shape.cell.dim() as i32);
    MeshError::Inverted { cell: shape.name(parts, cell), determinant, usual }
}

/// The nodes of folded cells that may move, and all cells that have one.
fn patch(
    shape: &Shape,
    parts: &Parts,
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

fn cell_nodes<'a>(shape: &Shape, parts: &'a Parts, cell: usize) -> &'a [u32] {
    &parts.nodes[cell * shape.nodes..(cell + 1) * shape.nodes]
}

/// Which points are neither vertices nor on the boundary.
fn movable(shape: &Shape, parts: &Parts) -> Result<Vec<bool>, MeshError> {
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

/// Where determinants are looked at: the check's own points and a lattice with the corners.
struct Samples {
    gradients: Gradients,
    linear: Gradients,
}

impl Samples {
    fn new(shape: &Shape) -> Samples {
        let degree = shape.element.degree();
        let mut points = measure::rule(shape.cell, degree).points();
        points.extend(shape.lattice_points(2 * degree));
        let linear = Gradients::of_vertices(shape, &[shape.cell.centre()]);
        Samples { gradients: Gradients::new(shape, &points), linear }
    }

    /// The determinant of the straight cell, at its centre.
    fn straight(&self, shape: &Shape, parts: &Parts, cell: usize) -> f64 {
        let vertices = shape.vertices(cell_nodes(shape, parts, cell));
        self.linear.determinant(0, vertices.map(|v| parts.points[v as usize]))
    }

    /// The smallest determinant over the straight cell's.
    fn smallest(&self, shape: &Shape, parts: &Parts, cell: usize) -> f64 {
        let straight = self.straight(shape, parts, cell);
        let nodes = cell_nodes(shape, parts, cell);
        let all = (0..self.gradients.len()).map(|q| {
            self.gradients.determinant(q, nodes.iter().map(|&i| parts.points[i as usize]))
        });
        all.fold(f64::INFINITY, |least, d| least.min(d / straight))
    }
}

/// The edges of a cell, with the determinants along them.
struct Edges {
    /// Of each edge its two vertices.
    ends: Vec<[usize; 2]>,
    /// At the vertices of the cell.
    vertices: Gradients,
    /// Along each edge.
    along: Vec<Gradients>,
}

impl Edges {
    fn new(shape: &Shape) -> Edges {
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
        Edges { ends, vertices: Gradients::new(shape, &cell.vertices()), along }
    }

    /// The smallest determinant on edges that run backwards at one of their ends.
    fn smallest(&self, shape: &Shape, parts: &Parts, cell: usize) -> f64 {
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
                for q in 0..along.len() {
                    least = least.min(along.determinant(q, points()));
                }
            }
        }
        least
    }
}

fn descend(shape: &Shape, parts: &mut Parts, samples: &Samples, patch: &[usize], unknowns: &[u32]) {
    let straight: Vec<f64> =
        patch.iter().map(|&cell| samples.straight(shape, parts, cell)).collect();
    // A reversed straight cell cannot be unfolded.
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
            // Nor is there one from places beyond all bounds.
            if energy.is_nan() || energy > hoped {
                return;
            }
            hoped = 0.9 * energy;
        }
        let here: Vec<[f64; 3]> = unknowns.iter().map(|&n| parts.points[n as usize]).collect();
        let largest = gradient.iter().flatten().fold(0.0, |m: f64, g| m.max(g.abs()));
        // Never further than a small part of the patch's cells at once.
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

/// s·s / s·y with s the last step and y the change of the gradient; without limit where the
/// slope does not rise along the step.
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

/// The smallest determinant over the straight cell's, E, and ∂E/∂x of the unknown nodes.
fn slope(
    shape: &Shape,
    parts: &Parts,
    samples: &Samples,
    patch: &[usize],
    straight: &[f64],
    slot: &[usize],
    n: usize,
) -> (f64, f64, Vec<[f64; 3]>) {
    let (mut least, mut energy) = (f64::INFINITY, 0.0);
    let mut gradient = vec![[0.0; 3]; n];
    for (&cell, &straight) in patch.iter().zip(straight) {
        let nodes = cell_nodes(shape, parts, cell);
        for q in 0..samples.gradients.len() {
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
