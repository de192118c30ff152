//! Cells that meet at facets, found by the places of vertices: coordinates → [`CellPair`]s.
//!
//! Two facets meet if the vertices of one lie at those of the other, or at those of one of its halves or quarters, as
//! they are or after the translation of a periodic side. The vertices then give the map from the facet of the inside to
//! the reference coordinates of the outside. Neither numbers of facets nor orientations are used.
//!
//! The inside is the cell with the smaller facet; of two equal ones it is the first, by cell and facet. In the reversed
//! pair it is the other one. The points are those of the smaller facet in both.

#[cfg(test)]
mod tests;

use fem_dsl::point::Side;
use kernels_gen::element::{Cell, Lagrange, Rule, tabulate};
use std::ops::Range;

/// A facet as its cell and its number in the cell.
type CellFacet = (usize, usize);

/// The largest distance of vertices at one place, relative to the shortest edge of a cell.
const TOLERANCE: f64 = 1e-4;

/// Cells with their geometry.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// The element of the geometry.
    pub geometry: Lagrange,
    /// The number of each node of the geometry: `[cell][node]`.
    pub nodes: &'a [u32],
    /// Coordinates of the geometry's nodes: `[cell][node][axis]`.
    pub coordinates: &'a [f64],
    /// Facets of pairs of periodic sides.
    pub periodic: &'a [[Vec<CellFacet>; 2]],
}

/// Two cells at a facet: the inside, whose normal is that of the facet, and the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellPair {
    /// Cells and their facets, the inside first.
    pub sides: [CellFacet; 2],
    /// The side on whose facet the points of the rule lie: the smaller one.
    points: Side,
    /// Vertices of this facet in reference coordinates of the other cell, in halves.
    images: Corners,
}

/// Points of a reference cell with coordinates in halves; as many as a facet has vertices.
type Corners = [[u8; 3]; 4];

impl CellPair {
    /// Returns the pair with the sides exchanged.
    pub fn reversed(&self, cell: Cell) -> Self {
        let [inside, outside] = self.sides;
        let sides = [outside, inside];
        let facets = cell.facets();
        // The vertices of the outside's facet in the inside, if the facets are equal.
        let mut images = Corners::default();
        let mut is_whole = true;
        for (image, &vertex) in images.iter_mut().zip(facets[outside.1]) {
            let wanted = halves(cell.vertex(vertex));
            let own = self.images.iter().take(facets[inside.1].len()).position(|&at| at == wanted);
            match own {
                Some(own) => *image = halves(cell.vertex(facets[inside.1][own])),
                None => is_whole = false,
            }
        }
        match is_whole {
            true => Self { sides, points: Side::Inside, images },
            false => Self { sides, points: self.points.other(), images: self.images },
        }
    }

    /// Returns the side on whose facet the points of the rule lie.
    pub(super) fn points(&self) -> Side {
        self.points
    }

    /// Returns where these points lie in the other cell.
    pub(super) fn placement(&self) -> Placement {
        let [(_, inside), (_, outside)] = self.sides;
        let (from, to) = match self.points {
            Side::Inside => (inside, outside),
            Side::Outside => (outside, inside),
        };
        Placement { from, to, images: self.images }
    }
}

/// The position of a facet of one cell in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Placement {
    from: usize,
    to: usize,
    images: Corners,
}

impl Placement {
    /// Returns the facet with the points.
    pub(super) fn from(&self) -> usize {
        self.from
    }

    /// Returns the origin of the facet in the other cell, and its edges along the directions of the facet.
    fn frame(&self, cell: Cell) -> [[f64; 3]; 3] {
        let [origin, first, second, _] =
            self.images.map(|corner| corner.map(|x| f64::from(x) / 2.0));
        let edge = |end: [f64; 3]| [0, 1, 2].map(|axis| end[axis] - origin[axis]);
        [origin, edge(first), if cell.dim() == 3 { edge(second) } else { [0.0; 3] }]
    }

    /// Converts a point of the facet, in reference coordinates, to those of the other cell.
    pub(super) fn image(&self, rule: Rule, point: [f64; 3]) -> [f64; 3] {
        let cell = rule.cell();
        let vertices = cell.facets()[self.from];
        let weights = [1.0 - point.iter().sum::<f64>(), point[0], point[1], point[2]];
        let mut free = (0..3).filter(|axis| *axis != self.from / 2).map(|axis| point[axis]);
        let along: [f64; 2] = match cell.is_tensor() {
            true => [(); 2].map(|()| free.next().unwrap_or(0.0)),
            false => [1, 2].map(|i| vertices.get(i).map_or(0.0, |&vertex| weights[vertex])),
        };
        let [origin, first, second] = self.frame(cell);
        let own = rule.line().map(|line| line.points()).unwrap_or_default();
        [0, 1, 2].map(|axis| {
            let x = origin[axis] + along[0] * first[axis] + along[1] * second[axis];
            // A reversed axis has the same points, up to the rounding of 1 − s.
            own.iter().copied().find(|s| (s - x).abs() < 4.0 * f64::EPSILON).unwrap_or(x)
        })
    }

    /// Returns how the points lie along an axis of the other cell, a tensor cell.
    pub(super) fn along(&self, cell: Cell, axis: usize) -> FacetAxis {
        let [origin, edges @ ..] = self.frame(cell);
        match edges.iter().position(|edge| edge[axis] != 0.0) {
            None => FacetAxis::Across { end: self.to % 2 },
            Some(direction) => {
                FacetAxis::Along { direction, from: origin[axis], step: edges[direction][axis] }
            }
        }
    }
}

/// Places of the points of a facet along an axis of a tensor cell.
pub(super) enum FacetAxis {
    /// All at one end of the interval.
    Across {
        /// 0 or 1.
        end: usize,
    },
    /// At from + step s, with s the coordinate of the rule's points in a direction of the facet.
    Along { direction: usize, from: f64, step: f64 },
}

/// A facet, or a part of it that may be the facet of a smaller cell.
struct Piece {
    facet: CellFacet,
    is_whole: bool,
    /// Numbers of the facet's vertices.
    numbers: Vec<u32>,
    /// Vertices of the piece in halves of reference coordinates, and where they lie.
    corners: Vec<([u8; 3], [f64; 3])>,
    /// The largest distance of another vertex at the same place.
    tolerance: f64,
    /// The order of pieces: a combination of the coordinates of the middle.
    key: f64,
}

/// Finds all pairs of cells that meet at a facet, in the order of their insides.
pub fn find_pairs(cells: &Cells) -> Vec<CellPair> {
    let mut pieces = pieces(cells);
    pieces.sort_by(|a, b| a.key.total_cmp(&b.key));
    let mut pairs = Vec::new();
    for inside in pieces.iter().filter(|piece| piece.is_whole) {
        for outside in near(&pieces, inside, [0.0; 3]) {
            let is_first = !outside.is_whole || inside.facet < outside.facet;
            let is_shared = |number: &u32| outside.numbers.contains(number);
            let meet = match outside.is_whole {
                true => inside.numbers.iter().all(is_shared),
                false => inside.numbers.iter().any(is_shared),
            };
            if is_first && meet && inside.facet.0 != outside.facet.0 {
                pairs.extend(inside.met(outside, [0.0; 3]));
            }
        }
    }
    for sides in cells.periodic {
        let [low, high] = [0, 1].map(|side| middle(&pieces, &sides[side]));
        for (from, to, sign) in [(0, 1, 1.0), (1, 0, -1.0)] {
            let shift = [0, 1, 2].map(|axis| sign * (high[axis] - low[axis]));
            let own = |piece: &&Piece| piece.is_whole && sides[from].contains(&piece.facet);
            for inside in pieces.iter().filter(own) {
                for outside in near(&pieces, inside, shift) {
                    let is_first = !outside.is_whole || inside.facet < outside.facet;
                    if is_first && sides[to].contains(&outside.facet) {
                        pairs.extend(inside.met(outside, shift));
                    }
                }
            }
        }
    }
    pairs.sort_by_key(|pair| pair.sides);
    pairs
}

/// Returns the centre of the bounding box of some facets.
fn middle(pieces: &[Piece], facets: &[CellFacet]) -> [f64; 3] {
    let own = pieces.iter().filter(|piece| piece.is_whole && facets.contains(&piece.facet));
    let points: Vec<[f64; 3]> =
        own.flat_map(|piece| piece.corners.iter().map(|&(_, place)| place)).collect();
    [0, 1, 2].map(|axis| {
        let along = || points.iter().map(|point| point[axis]);
        (along().fold(f64::INFINITY, f64::min) + along().fold(f64::NEG_INFINITY, f64::max)) / 2.0
    })
}

/// Returns the key of a place.
fn key([x, y, z]: [f64; 3]) -> f64 {
    0.6 * x + 0.31 * y + 0.23 * z
}

/// Returns the pieces whose key is that of a piece after a translation, up to its tolerance.
fn near<'p>(pieces: &'p [Piece], piece: &Piece, shift: [f64; 3]) -> &'p [Piece] {
    let (wanted, reach) = (piece.key + key(shift), 2.0 * piece.tolerance);
    let at = |limit: f64| pieces.partition_point(|piece| piece.key < limit);
    let range: Range<usize> = at(wanted - reach)..at(wanted + reach);
    &pieces[range]
}

impl Piece {
    /// Returns the pair of this facet's cell as the inside with the cell of a piece, if all vertices of both coincide
    /// after a translation.
    fn met(&self, outside: &Self, shift: [f64; 3]) -> Option<CellPair> {
        let mut images = Corners::default();
        for (image, (_, place)) in images.iter_mut().zip(&self.corners) {
            let wanted = [0, 1, 2].map(|axis| place[axis] + shift[axis]);
            let is_there = |at: &[f64; 3]| distance(&wanted, at) <= self.tolerance;
            *image = outside.corners.iter().find(|(_, at)| is_there(at))?.0;
        }
        Some(CellPair { sides: [self.facet, outside.facet], points: Side::Inside, images })
    }
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

/// Converts the coordinates of a vertex to halves.
fn halves(point: [f64; 3]) -> [u8; 3] {
    point.map(|x| (2.0 * x) as u8)
}

/// Returns the vertices of the pieces of a facet in halves of reference coordinates: of all of it, then of its halves
/// along all axes of a tensor cell.
fn parts(cell: Cell, facet: usize) -> Vec<Vec<[u8; 3]>> {
    let whole: Vec<[u8; 3]> =
        cell.facets()[facet].iter().map(|&vertex| halves(cell.vertex(vertex))).collect();
    let mut parts = vec![whole.clone()];
    if cell.is_factorised() {
        // A part is the image of the facet under the contraction to one of its vertices.
        for vertex in whole.clone() {
            let contracted =
                |corner: &[u8; 3]| [0, 1, 2].map(|axis| corner[axis] / 2 + vertex[axis] / 2);
            parts.push(whole.iter().map(contracted).collect());
        }
    }
    parts
}

/// Returns the pieces of all facets.
fn pieces(cells: &Cells) -> Vec<Piece> {
    let (geometry, cell) = (cells.geometry, cells.geometry.cell());
    let (count, dim) = (geometry.count(), cell.dim());
    let parts: Vec<Vec<Vec<[u8; 3]>>> =
        (0..cell.facets().len()).map(|facet| parts(cell, facet)).collect();
    let points = parts.iter().flatten().flatten();
    let points: Vec<[f64; 3]> = points.map(|point| point.map(|x| f64::from(x) / 2.0)).collect();
    let table = tabulate(geometry, &points);
    let vertices: Vec<usize> = vertex_nodes(geometry);
    let mut all = Vec::new();
    for (number, nodes) in cells.coordinates.chunks(count * dim).enumerate() {
        let at = |i: usize, axis: usize| if axis < dim { nodes[i * dim + axis] } else { 0.0 };
        let place = |q: usize| {
            [0, 1, 2].map(|axis| (0..count).map(|i| table.value(q, i) * at(i, axis)).sum::<f64>())
        };
        let ends: Vec<[f64; 3]> =
            vertices.iter().map(|&i| [0, 1, 2].map(|axis| at(i, axis))).collect();
        let edges = cell.entities(1).iter().map(|edge| distance(&ends[edge[0]], &ends[edge[1]]));
        let tolerance = TOLERANCE * edges.fold(f64::INFINITY, f64::min);
        let mut next = 0..;
        for (facet, parts) in parts.iter().enumerate() {
            let own = cell.facets()[facet].iter().map(|&vertex| vertices[vertex]);
            let numbers: Vec<u32> = own.map(|node| cells.nodes[number * count + node]).collect();
            for (part, corners) in parts.iter().enumerate() {
                let corners: Vec<([u8; 3], [f64; 3])> = corners
                    .iter()
                    .map(|&corner| (corner, place(next.next().unwrap_or(0))))
                    .collect();
                let mean = |axis: usize| {
                    corners.iter().map(|(_, at)| at[axis]).sum::<f64>() / corners.len() as f64
                };
                let key = key([0, 1, 2].map(mean));
                let (facet, numbers) = ((number, facet), numbers.clone());
                all.push(Piece { facet, is_whole: part == 0, numbers, corners, tolerance, key });
            }
        }
    }
    all
}

/// Returns the nodes of an element at the vertices of its cell.
fn vertex_nodes(element: Lagrange) -> Vec<usize> {
    let (cell, points) = (element.cell(), element.points());
    let at = |vertex: [f64; 3]| points.iter().position(|point| *point == vertex);
    cell.vertices().into_iter().map(|vertex| at(vertex).expect("a node at each vertex")).collect()
}
