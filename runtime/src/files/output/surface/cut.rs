//! Intersection of a body with a plane: marching tetrahedra over the parts of each cell.
//!
//! With d(x) = n·x − c, each tetrahedron with corners on both sides is cut along a triangle or a quadrilateral. Its
//! corners are the zeros of d along the edges, found on the cell's map x(ξ) by the Illinois variant of regula falsi (M.
//! Dowell and P. Jarratt, BIT 11, 1971). They lie on the plane also in curved cells; the field is evaluated there by
//! its own basis. Points on the plane count as above it, consistently for all cells, so that a plane along cell faces
//! shows each face once.

use super::lattice::SolidLattice;
use super::{BasisTables, SurfaceError, Triangles, View, add_normals, cross};
use crate::files::output::sample::InterpolationRows;
use crate::mesh::Mesh;
use crate::support::parallel::*;
use kernels_gen::element::{ElementError, Lagrange};
use std::collections::{BTreeMap, HashMap};

/// The plane n·x = c.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// The unit vector n.
    pub normal: [f64; 3],
    /// The offset c.
    pub offset: f64,
}

/// Cells per group with common evaluation.
const CELLS: usize = 32;
/// Approximate number of triangles per cell with one part.
const PER_CELL: usize = 8;
/// Distances below this, relative to the body's size, are 0.
const NOTHING: f64 = 1e-10;
/// Iteration limit for a zero; straight edges need none.
const STEPS: usize = 40;

impl Plane {
    /// Returns the signed distance d(x) = n·x − c.
    pub fn distance(&self, x: [f64; 3]) -> f64 {
        (0..3).map(|c| self.normal[c] * x[c]).sum::<f64>() - self.offset
    }

    fn turned(self) -> Self {
        Self { normal: self.normal.map(|n| -n), offset: -self.offset }
    }
}

/// Returns the intersection of a plane with the undisplaced body, in at most about `most` triangles. Empty without
/// intersection, and for plane meshes.
///
/// # Errors
///
/// A field does not match the mesh.
pub fn cut(view: &View<'_>, plane: Plane, most: usize) -> Result<Triangles, SurfaceError> {
    view.check()?;
    if view.mesh.dim() != 3 {
        return Ok(Triangles::default());
    }
    let found = cut_once(view, plane, most)?;
    // A body above a plane through its boundary is below the reversed plane.
    match found.corners.is_empty() {
        true => Ok(cut_once(view, plane.turned(), most)?),
        false => Ok(found),
    }
}

fn cut_once(view: &View<'_>, plane: Plane, most: usize) -> Result<Triangles, ElementError> {
    let cells = met(view.mesh, plane);
    let per_cell = if view.mesh.cell().is_tensor() { PER_CELL } else { PER_CELL / 4 };
    let parts = view.parts(cells.len() * per_cell, most);
    let solid = SolidLattice::new(view.mesh.cell(), parts);
    let geometry = Lagrange::continuous(view.mesh.cell(), view.mesh.order())?;
    let knife = PlaneCutter {
        view,
        plane,
        nothing: NOTHING * size(view.mesh),
        geometry,
        places: InterpolationRows::new(geometry, &solid.points),
        solid,
    };
    let pieces = cells.par_chunks(CELLS).map(|cells| knife.cut(cells)).listed();
    let mut all = Triangles::default();
    for piece in pieces {
        let piece = piece?;
        let start = all.points.len() as u32;
        all.corners.extend(piece.corners.iter().map(|corners| corners.map(|c| start + c)));
        all.points.extend(piece.points);
        all.normals.extend(piece.normals);
        all.values.extend(piece.values);
        all.edges.extend(piece.edges);
    }
    Ok(all)
}

/// Returns the cells that a plane may intersect. A straight cell lies between its nodes; a curved one may extend beyond
/// them.
fn met(mesh: &Mesh, plane: Plane) -> Vec<usize> {
    let meets = |cell: usize| {
        let nodes = mesh.cell_nodes(cell).iter();
        let (low, high) = nodes
            .map(|&node| plane.distance(mesh.points()[node as usize]))
            .fold((f64::MAX, f64::MIN), |(low, high), d| (low.min(d), high.max(d)));
        let beyond = if mesh.order() == 1 { 0.01 } else { 1.0 } * (high - low);
        low - beyond <= 0.0 && 0.0 <= high + beyond
    };
    let all = (0..mesh.n_cells()).into_par_iter().map(|cell| meets(cell).then_some(cell)).listed();
    all.into_iter().flatten().collect()
}

/// Returns the largest coordinate difference of a point from the first point.
fn size(mesh: &Mesh) -> f64 {
    let Some(first) = mesh.points().first() else { return 0.0 };
    let far = |point: &[f64; 3]| (0..3).map(|c| (point[c] - first[c]).abs()).fold(0.0, f64::max);
    mesh.points().iter().map(far).fold(0.0, f64::max)
}

/// Common data for cutting cells.
struct PlaneCutter<'a> {
    view: &'a View<'a>,
    plane: Plane,
    nothing: f64,
    geometry: Lagrange,
    places: InterpolationRows,
    solid: SolidLattice,
}

/// A zero of d along an edge of a part, from below to above.
struct ZeroPoint {
    cell: usize,
    ends: [[f64; 3]; 2],
    distances: [f64; 2],
    at: [f64; 3],
    /// The end replaced last.
    moved: Option<usize>,
}

/// Cut of a group of cells, in terms of zeros.
#[derive(Default)]
struct CutPieces {
    zeros: Vec<ZeroPoint>,
    corners: Vec<[u32; 3]>,
    /// The cut lines of each facet of a cell, by their ends.
    edges: BTreeMap<(usize, u32), Vec<[u32; 2]>>,
}

impl PlaneCutter<'_> {
    /// Cuts a group of cells.
    fn cut(&self, cells: &[usize]) -> Result<Triangles, ElementError> {
        let mut pieces = CutPieces::default();
        cells.iter().for_each(|&cell| self.cut_cell(cell, &mut pieces));
        let CutPieces { mut zeros, mut corners, edges } = pieces;
        self.settle(&mut zeros);
        let points: Vec<[f64; 3]> = zeros.iter().map(|zero| zero.at).collect();
        let tables = BasisTables::new(self.view, &points)?;
        let mut found = Triangles::with_points(points.len());
        for (row, zero) in zeros.iter().enumerate() {
            found.points[row] = self.view.place(zero.cell, &tables, row);
            let shown = self.view.shown;
            found.values[row] = shown.value(self.view.quantity, zero.cell, tables.shown_at(row));
        }
        // Parts of a cell have either orientation.
        let place = |row: u32| {
            let row = row as usize;
            self.view.undisplaced(zeros[row].cell, tables.geometry.of(row))
        };
        for corners in &mut corners {
            let normal = cross(corners.map(place));
            if (0..3).map(|c| normal[c] * self.plane.normal[c]).sum::<f64>() < 0.0 {
                corners.swap(0, 1);
            }
        }
        match self.view.warp {
            None => found.normals.fill(self.plane.normal),
            Some(_) => add_normals(&found.points, &corners, &mut found.normals),
        }
        let place = |end: u32| found.points[end as usize];
        let chained = edges.values().flat_map(|pieces| chains(pieces));
        found.edges = chained.map(|chain| chain.into_iter().map(place).collect()).collect();
        found.corners = corners;
        Ok(found)
    }

    /// Collects triangles and edges of a cell's parts, in terms of zeros computed later.
    fn cut_cell(&self, cell: usize, pieces: &mut CutPieces) {
        let distance = |row: usize| {
            let d = self.plane.distance(self.view.undisplaced(cell, self.places.of(row)));
            if d.abs() <= self.nothing { 0.0 } else { d }
        };
        let distances: Vec<f64> = (0..self.solid.points.len()).map(distance).collect();
        let owned = self.owned_facets(cell);
        let mut known = HashMap::new();
        for corners in &self.solid.tetrahedra {
            let is_above = |&corner: &u32| distances[corner as usize] >= 0.0;
            let (above, below): (Vec<u32>, Vec<u32>) = corners.iter().copied().partition(is_above);
            let mut zero = |b: u32, a: u32| {
                let ends = [b, a].map(|end| distances[end as usize]);
                // A corner on the plane is the zero of all edges that end there.
                let key = if ends[1] == 0.0 { (a, a) } else { (b, a) };
                *known.entry(key).or_insert_with(|| {
                    pieces.zeros.push(self.zero(cell, [b, a], ends));
                    pieces.zeros.len() as u32 - 1
                })
            };
            let on = |corners: [u32; 3]| {
                let facets = corners.map(|corner| self.solid.facets[corner as usize]);
                let on = facets[0] & facets[1] & facets[2] & owned;
                (on != 0).then(|| on.trailing_zeros())
            };
            // The sides of the cut in cyclic order, each with the face of the tetrahedron that contains it.
            let (ring, faces) = match (&below[..], &above[..]) {
                (&[b], &[p, q, r]) => (
                    vec![zero(b, p), zero(b, q), zero(b, r)],
                    vec![[b, p, q], [b, q, r], [b, r, p]],
                ),
                (&[p, q, r], &[a]) => (
                    vec![zero(p, a), zero(q, a), zero(r, a)],
                    vec![[a, p, q], [a, q, r], [a, r, p]],
                ),
                (&[b, c], &[p, q]) => (
                    vec![zero(b, p), zero(b, q), zero(c, q), zero(c, p)],
                    vec![[b, p, q], [q, b, c], [c, p, q], [p, b, c]],
                ),
                _ => continue,
            };
            for side in 0..ring.len() {
                let ends = [ring[side], ring[(side + 1) % ring.len()]];
                let facet = on(faces[side]).filter(|_| ends[0] != ends[1]);
                if let Some(facet) = facet {
                    pieces.edges.entry((cell, facet)).or_default().push(ends);
                }
            }
            let halves = (1..ring.len() - 1).map(|last| [ring[0], ring[last], ring[last + 1]]);
            let proper = |c: &[u32; 3]| c[0] != c[1] && c[1] != c[2] && c[2] != c[0];
            pieces.corners.extend(halves.filter(proper));
        }
    }

    /// Returns the facets whose first cell is this one, as a bit set: their cut lines are drawn by it.
    fn owned_facets(&self, cell: usize) -> u8 {
        let faces = self.view.mesh.topology().faces();
        let of_cell = faces.of_cell(cell).iter().enumerate();
        let owned = of_cell.filter(|(_, face)| faces.first_cell(**face as usize).0 == cell);
        owned.map(|(local, _)| 1 << local).sum()
    }

    /// Returns the zero of the linear interpolant between the ends.
    fn zero(&self, cell: usize, ends: [u32; 2], distances: [f64; 2]) -> ZeroPoint {
        let ends = ends.map(|end| self.solid.points[end as usize]);
        ZeroPoint { cell, ends, distances, at: between(ends, distances), moved: None }
    }

    /// Moves points along their edges to the plane.
    fn settle(&self, zeros: &mut [ZeroPoint]) {
        let mut open: Vec<usize> = (0..zeros.len()).collect();
        for _ in 0..STEPS {
            let points: Vec<[f64; 3]> = open.iter().map(|&zero| zeros[zero].at).collect();
            let rows = InterpolationRows::new(self.geometry, &points);
            let mut row = 0;
            open.retain(|&number| {
                let zero = &mut zeros[number];
                let x = self.view.undisplaced(zero.cell, rows.of(row));
                row += 1;
                let distance = self.plane.distance(x);
                let far = distance.abs() > self.nothing;
                if far {
                    zero.step(distance);
                }
                far
            });
            if open.is_empty() {
                break;
            }
        }
    }
}

impl ZeroPoint {
    /// Replaces the end on the point's side. If that end moves twice, the other value is halved, so that it moves as
    /// well.
    fn step(&mut self, distance: f64) {
        let (own, other) = if distance < 0.0 { (0, 1) } else { (1, 0) };
        self.ends[own] = self.at;
        self.distances[own] = distance;
        if self.moved.replace(own) == Some(own) {
            self.distances[other] *= 0.5;
        }
        self.at = between(self.ends, self.distances);
    }
}

/// Returns the zero of a linear function with d₀ < 0 ≤ d₁ at two points.
fn between(ends: [[f64; 3]; 2], [below, above]: [f64; 2]) -> [f64; 3] {
    let t = below / (below - above);
    [0, 1, 2].map(|c| ends[0][c] + t * (ends[1][c] - ends[0][c]))
}

/// Joins line segments at common ends.
fn chains(pieces: &[[u32; 2]]) -> Vec<Vec<u32>> {
    let mut open: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (piece, ends) in pieces.iter().enumerate() {
        ends.iter().for_each(|&end| open.entry(end).or_default().push(piece));
    }
    // First from open ends, then around closed curves.
    let tips = open.iter().filter(|(_, pieces)| pieces.len() == 1).map(|(&end, _)| end);
    let starts: Vec<u32> = tips.chain(open.keys().copied()).collect();
    let mut used = vec![false; pieces.len()];
    let mut chains = Vec::new();
    for start in starts {
        let mut chain = vec![start];
        let mut at = start;
        while let Some(&piece) = open[&at].iter().find(|&&piece| !used[piece]) {
            used[piece] = true;
            let [first, second] = pieces[piece];
            at = if first == at { second } else { first };
            chain.push(at);
        }
        chains.extend((chain.len() > 1).then_some(chain));
    }
    chains
}
