//! Crossing facets: cells that overlap although neither contains a vertex or the centre of the other.
//!
//! The boundaries of two such cells cross in facets of exactly one cell. These facets are divided into straight pieces:
//! segments in two dimensions, triangles in three, several per curved or four-sided facet. A bounding-box tree finds
//! candidate pairs. Two facets cross if an edge of a piece of one passes through a piece of the other, with its ends on
//! both sides. Touching is no overlap: a pair counts only if a point lies deep inside both cells. Candidates for that
//! point are the centroid, and the midpoints, of the intersections of the two surfaces.

use super::super::tree::{BoundingBox, BoundingTree};
use super::super::{Facet, MeshError};
use super::{ConformityCheck, DEEP, Parametrisation, distance, nodes_of};
use crate::support::parallel::*;
use kernels_gen::element::tabulate;

/// Tolerance of a point on a piece, relative to the piece.
const ON_PIECE: f64 = 1e-6;

/// Distance from the box of a piece beyond which nothing meets the piece, relative to its size.
const BESIDE: f64 = 4.0 * ON_PIECE;

/// Returns the error for the first two cells whose facets cross.
pub(super) fn crossing(place: &ConformityCheck<'_>, boundary: &[Facet]) -> Option<MeshError> {
    let flats = FacetDivision::new(place);
    let points: Vec<Vec<[f64; 3]>> =
        boundary.par_iter().map(|&facet| flats.points(place, facet)).listed();
    let bounds: Vec<BoundingBox> =
        points.iter().map(|points| BoundingBox::of(points.iter().copied())).collect();
    let tree =
        BoundingTree::new(bounds.iter().copied().zip(0..).collect::<Vec<(BoundingBox, usize)>>());
    // Pieces outside the other facet's box are skipped: most pairs are neighbours, and few pieces remain.
    let near = |i: usize, other: usize| -> Vec<StraightPiece> {
        flats.pieces(&points[i]).filter(|piece| piece.bounds.meets(&bounds[other])).collect()
    };
    let found = (0..boundary.len()).into_par_iter().with_min_len(256).first(|i| {
        let mut at = None;
        let other = tree.find(&bounds[i], &mut |&j| {
            // Each pair once; facets of one cell do not cross.
            if j <= i || boundary[i].cell == boundary[j].cell || !cross(&near(i, j), &near(j, i)) {
                return false;
            }
            let cells = [i, j].map(|facet| boundary[facet].cell as usize);
            at = flats.common(place, cells);
            at.is_some()
        })?;
        Some((i, other, at?))
    });
    let (i, j, at) = found?;
    let cells = [i, j].map(|facet| place.shape.name(place.parts, boundary[facet].cell as usize));
    Some(MeshError::Inside { cells: Box::new(cells), at })
}

/// Returns whether an edge of a piece of one facet passes through a piece of the other, with both ends well beyond it.
fn cross(first: &[StraightPiece], second: &[StraightPiece]) -> bool {
    let through = |a: &StraightPiece, b: &StraightPiece| {
        a.edges().any(|[p, q]| {
            let depth = DEEP * distance(&p, &q).min(b.size());
            b.pierced(&p, &q).is_some_and(|(_, [from, to])| from.abs().min(to.abs()) > depth)
        })
    };
    let pairs = first.iter().flat_map(|a| second.iter().map(move |b| (a, b)));
    let mut pairs = pairs.filter(|(a, b)| a.bounds.meets(&b.bounds));
    pairs.any(|(a, b)| through(a, b) || through(b, a))
}

/// A straight piece of a facet: a segment or a triangle.
#[derive(Clone, Copy, Debug)]
struct StraightPiece {
    /// The corners; a segment repeats its second.
    corners: [[f64; 3]; 3],
    bounds: BoundingBox,
    dim: usize,
}

impl StraightPiece {
    fn edges(&self) -> impl Iterator<Item = [[f64; 3]; 2]> + '_ {
        let count = if self.dim == 1 { 1 } else { 3 };
        (0..count).map(|i| [self.corners[i], self.corners[(i + 1) % 3]])
    }

    fn size(&self) -> f64 {
        self.edges().map(|[p, q]| distance(&p, &q)).fold(0.0, f64::max)
    }

    /// Returns the unit normal, if the piece is not degenerate.
    fn normal(&self) -> Option<[f64; 3]> {
        let x = minus(&self.corners[1], &self.corners[0]);
        let y = match self.dim {
            1 => [0.0, 0.0, 1.0],
            _ => minus(&self.corners[2], &self.corners[0]),
        };
        let normal = cross_product(&x, &y);
        let length = dot(&normal, &normal).sqrt();
        (length > 0.0).then(|| normal.map(|n| n / length))
    }

    /// Returns the intersection of the segment pq with the piece, and the signed distances of p and q from its plane.
    fn pierced(&self, p: &[f64; 3], q: &[f64; 3]) -> Option<([f64; 3], [f64; 2])> {
        let normal = self.normal()?;
        let [from, to] = [p, q].map(|end| dot(&normal, &minus(end, &self.corners[0])));
        if from * to > 0.0 || from == to {
            return None;
        }
        let t = from / (from - to);
        let x = [0, 1, 2].map(|c| p[c] + t * (q[c] - p[c]));
        self.holds(&x, &normal).then_some((x, [from, to]))
    }

    /// Returns whether a point of the plane lies in the piece.
    fn holds(&self, x: &[f64; 3], normal: &[f64; 3]) -> bool {
        let [a, b, c] = &self.corners;
        if self.dim == 1 {
            let along = minus(b, a);
            let s = dot(&minus(x, a), &along) / dot(&along, &along);
            return (-ON_PIECE..=1.0 + ON_PIECE).contains(&s);
        }
        let area =
            |a: &[f64; 3], b: &[f64; 3]| dot(normal, &cross_product(&minus(a, x), &minus(b, x)));
        let all = dot(normal, &cross_product(&minus(b, a), &minus(c, a)));
        [area(a, b), area(b, c), area(c, a)].iter().all(|part| *part >= -ON_PIECE * all)
    }
}

/// Division of facets into pieces: a lattice on each, the same for all cells.
struct FacetDivision {
    dim: usize,
    /// For each local facet, the geometry's basis at its lattice points, `[point][node]`.
    tables: Vec<Vec<Vec<f64>>>,
    /// The corners of each piece, as lattice points.
    corners: Vec<[usize; 3]>,
}

impl FacetDivision {
    fn new(place: &ConformityCheck<'_>) -> Self {
        let (cell, element) = (place.shape.cell, place.shape.element);
        let (dim, steps) =
            (cell.dim() - 1, element.degree() * if element.degree() > 1 { 2 } else { 1 });
        let (lattice, corners) = lattice(dim, steps, cell.is_tensor());
        let tables = (0..cell.facets().len()).map(|local| {
            let frame = Parametrisation::of_facet(cell, local);
            let points: Vec<[f64; 3]> = lattice.iter().map(|s| frame.at(s)).collect();
            let table = tabulate(element, &points);
            let row = |q| (0..element.count()).map(|node| table.value(q, node)).collect();
            (0..points.len()).map(row).collect()
        });
        Self { dim, tables: tables.collect(), corners }
    }

    /// Returns the lattice points of a facet.
    fn points(&self, place: &ConformityCheck<'_>, facet: Facet) -> Vec<[f64; 3]> {
        let nodes = nodes_of(place.shape, place.parts, facet.cell as usize);
        let point = |row: &Vec<f64>| {
            row.iter().zip(nodes).fold([0.0; 3], |sum, (value, &node)| {
                let at = place.parts.points[node as usize];
                [0, 1, 2].map(|c| sum[c] + value * at[c])
            })
        };
        self.tables[usize::from(facet.local)].iter().map(point).collect()
    }

    /// Returns the pieces between the lattice points of a facet.
    fn pieces(&self, points: &[[f64; 3]]) -> impl Iterator<Item = StraightPiece> {
        self.corners.iter().map(|corners| {
            let corners = corners.map(|i| points[i]);
            StraightPiece { corners, bounds: BoundingBox::of(corners.into_iter()), dim: self.dim }
        })
    }

    /// Finds a point deep inside both cells.
    fn common(&self, place: &ConformityCheck<'_>, cells: [usize; 2]) -> Option<[f64; 3]> {
        let all = cells.map(|cell| {
            let facets =
                (0..self.tables.len()).map(|local| Facet { cell: cell as u32, local: local as u8 });
            let points = facets.map(|facet| self.points(place, facet));
            points
                .flat_map(|points| self.pieces(&points).collect::<Vec<_>>())
                .collect::<Vec<StraightPiece>>()
        });
        let mut meet = Vec::new();
        for [a, b] in [[&all[0], &all[1]], [&all[1], &all[0]]] {
            for [p, q] in a.iter().flat_map(StraightPiece::edges) {
                let edge = BoundingBox::of([p, q].into_iter());
                let near =
                    b.iter().filter(|piece| piece.bounds.grown(BESIDE * piece.size()).meets(&edge));
                meet.extend(near.filter_map(|piece| piece.pierced(&p, &q)).map(|(x, _)| x));
            }
        }
        for [own, other] in [cells, [cells[1], cells[0]]] {
            let vertices = place.topology.vertices(own).iter();
            let at = vertices.map(|&vertex| place.parts.points[vertex as usize]);
            meet.extend(at.filter(|x| depth(place, other, x) >= -ON_PIECE));
        }
        let count = meet.len() as f64;
        let sum = meet.iter().fold([0.0; 3], |sum, x| [0, 1, 2].map(|c| sum[c] + x[c]));
        let pairs =
            meet.iter().enumerate().flat_map(|(i, a)| meet[..i].iter().map(move |b| (a, b)));
        let middles = pairs.map(|(a, b)| [0, 1, 2].map(|c| (a[c] + b[c]) / 2.0));
        let mut points = std::iter::once(sum.map(|x| x / count)).chain(middles);
        points.find(|x| cells.iter().all(|&cell| depth(place, cell, x) > DEEP))
    }
}

/// Returns the depth of a point inside a cell, in reference coordinates; negative outside.
fn depth(place: &ConformityCheck<'_>, cell: usize, x: &[f64; 3]) -> f64 {
    let nodes = nodes_of(place.shape, place.parts, cell);
    let frame = Parametrisation::of_cell(place.shape.cell);
    place.nearest(nodes, &frame, x).map_or(f64::NEG_INFINITY, |(s, _)| frame.depth(&s))
}

/// Returns the lattice points of a facet with `steps` intervals per direction, and the corners of its pieces.
fn lattice(dim: usize, steps: usize, tensor: bool) -> (Vec<[f64; 3]>, Vec<[usize; 3]>) {
    let at = |i: usize| i as f64 / steps as f64;
    if dim == 1 {
        let points = (0..=steps).map(|i| [at(i), 0.0, 0.0]).collect();
        return (points, (0..steps).map(|i| [i, i + 1, i + 1]).collect());
    }
    let inside = |i: usize, j: usize| tensor || i + j <= steps;
    let n = steps + 1;
    let (mut points, mut number) = (Vec::new(), vec![usize::MAX; n * n]);
    for j in 0..n {
        for i in (0..n).filter(|&i| inside(i, j)) {
            number[j * n + i] = points.len();
            points.push([at(i), at(j), 0.0]);
        }
    }
    let corner = |i: usize, j: usize| number[j * n + i];
    let mut pieces = Vec::new();
    for (i, j) in (0..steps).flat_map(|j| (0..steps).map(move |i| (i, j))) {
        if inside(i + 1, j) && inside(i, j + 1) {
            pieces.push([corner(i, j), corner(i + 1, j), corner(i, j + 1)]);
        }
        if inside(i + 1, j + 1) {
            pieces.push([corner(i + 1, j + 1), corner(i, j + 1), corner(i + 1, j)]);
        }
    }
    (points, pieces)
}

fn minus(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|c| a[c] - b[c])
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    (0..3).map(|c| a[c] * b[c]).sum()
}

fn cross_product(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|c| a[(c + 1) % 3] * b[(c + 2) % 3] - a[(c + 2) % 3] * b[(c + 1) % 3])
}
