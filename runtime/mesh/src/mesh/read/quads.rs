//! Splits plane meshes of quadrilaterals and triangles into quadrilaterals only.
//!
//! Recombination often leaves a few triangles. Every quadrilateral is split into four cells and every triangle into
//! three, at the edge midpoints and the centre, so that neighbours still match. A child is a bilinear part of its
//! parent's reference cell. On it, the parent's map of degree g has degree g in each direction, so that children of
//! order g keep the curved geometry exactly.

use super::ReadError;
use super::contents::Contents;
use super::node_map::{DuplicateCells, NodeMap};
use super::source_order::CellElements;
use crate::mesh::cell_orientation;
use crate::mesh::shape::{CellShape, vertex_function};
use crate::mesh::{Cell, MeshData};
use kernels_gen::element::{Lagrange, interpolation};
use std::collections::HashMap;

/// The entity that contains a new point.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum PointCarrier {
    Vertex(u32),
    /// An edge, by its vertices (smaller first), and the position along it.
    Edge(u32, u32, usize),
    /// Inside a parent: on the line from a local edge's midpoint to the centre.
    Spoke(usize, usize, usize),
    /// Inside a parent: inside a child.
    Piece(usize, usize, usize),
}

/// Returns the quadrilaterals of all blocks of triangles and quadrilaterals of one order.
pub(super) fn quadrilaterals(
    contents: &Contents,
    numbers: &NodeMap,
    n_points: usize,
    order: usize,
) -> Result<MeshData, ReadError> {
    let mut elements = CellElements::new(contents, 2);
    let mut cutter = Splitter::new(contents, order)?;
    let mut seen = DuplicateCells::new(contents.repeats);
    let mut turned = 0;
    for (at, block) in contents.blocks_of(2).enumerate() {
        let which = usize::from(block.kind.vertices()?.len() == 4);
        let parent = ParentTables::new([Cell::Triangle, Cell::Quadrilateral][which], order)?;
        let mut nodes = Vec::with_capacity(block.nodes.len());
        for (number, cell) in block.elements() {
            for &node in cell {
                nodes.push(numbers.index(number, node)?);
            }
        }
        turned += cell_orientation::turn_negative(&parent.shape, &contents.points, &mut nodes);
        let mut members = Vec::new();
        let cells = block.numbers.iter().zip(nodes.chunks_exact(parent.shape.nodes));
        for (i, (&number, cell)) in cells.enumerate() {
            let first = (cutter.parts.labels.len()) as u32;
            let pieces = parent.shape.vertex_nodes.len() as u32;
            match seen.before(cell, first) {
                Some(known) => members.extend(known..known + pieces),
                None => {
                    cutter.cut(&parent, number, cell);
                    elements.push(at, i, number, pieces as usize);
                    members.extend(first..first + pieces);
                }
            }
        }
        for tag in &block.tags {
            cutter.parts.cells.entry(tag.clone()).or_default().extend(&members);
        }
    }
    cutter.facets(contents, numbers)?;
    let all = contents.blocks_of(2).map(|block| block.numbers.len()).sum();
    cutter.parts.notes.extend(cell_orientation::note(turned, all));
    cutter.points(contents, numbers);
    let mut points = vec![None; cutter.parts.points.len()];
    for (on, &point) in &cutter.known {
        if let PointCarrier::Vertex(vertex) = on {
            points[point as usize] = Some(*vertex);
        }
    }
    cutter.parts.places = Some(elements.places(points.into_iter(), n_points));
    Ok(cutter.parts)
}

/// Tables for all parents of one kind.
struct ParentTables {
    shape: CellShape,
    /// The local vertices in cyclic order.
    around: &'static [usize],
    /// For each child, the interpolation matrix from the parent's nodes: one row per node.
    matrices: Vec<Vec<f64>>,
}

impl ParentTables {
    fn new(cell: Cell, order: usize) -> Result<ParentTables, ReadError> {
        let shape = CellShape::new(cell, order)?;
        let piece = CellShape::new(Cell::Quadrilateral, order)?;
        let around: &[usize] = if cell == Cell::Triangle { &[0, 1, 2] } else { &[0, 1, 3, 2] };
        // The file's nodes are equispaced.
        let theirs = Lagrange::equispaced(cell, order).unwrap_or(shape.element);
        let matrices = (0..around.len())
            .map(|i| {
                let corners = corners(cell, around, i);
                let points: Vec<[f64; 3]> = piece
                    .coordinates
                    .iter()
                    .map(|&at| {
                        [0, 1, 2].map(|c| {
                            (0..4).map(|v| vertex_function(piece.cell, v, at) * corners[v][c]).sum()
                        })
                    })
                    .collect();
                interpolation(theirs, &points)
            })
            .collect();
        Ok(ParentTables { shape, around, matrices })
    }
}

/// Returns the corners of the child at the i-th vertex, lexicographic: the vertex, the midpoints of the next and the
/// previous edge, the centre.
fn corners(cell: Cell, around: &[usize], i: usize) -> [[f64; 3]; 4] {
    let n = around.len();
    let vertex = |i: usize| cell.vertex(around[i % n]);
    let middle = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|c| (a[c] + b[c]) / 2.0);
    let here = vertex(i);
    [here, middle(here, vertex(i + 1)), middle(here, vertex(i + n - 1)), cell.centre()]
}

struct Splitter<'a> {
    points: &'a [[f64; 3]],
    order: usize,
    known: HashMap<PointCarrier, u32>,
    parts: MeshData,
    parents: usize,
}

impl<'a> Splitter<'a> {
    fn new(contents: &'a Contents, order: usize) -> Result<Self, ReadError> {
        let parts = MeshData::default();
        Ok(Splitter { points: &contents.points, order, known: HashMap::new(), parts, parents: 0 })
    }

    fn cut(&mut self, parent: &ParentTables, label: u64, nodes: &[u32]) {
        let n = parent.around.len();
        let vertex = |i: usize| nodes[parent.shape.vertex_nodes[parent.around[i % n]]];
        let g = self.order;
        for (i, matrix) in parent.matrices.iter().enumerate() {
            for (place, row) in matrix.chunks_exact(nodes.len()).enumerate() {
                let (a, b) = (place % (g + 1), place / (g + 1));
                let (next, last) = (i, (i + n - 1) % n);
                let on = match (a, b) {
                    (0, 0) => PointCarrier::Vertex(vertex(i)),
                    (a, 0) => edge(vertex(i), vertex(i + 1), a, g),
                    (0, b) => edge(vertex(i), vertex(i + n - 1), b, g),
                    // The centre ends every spoke.
                    (a, b) if a == g && b == g => PointCarrier::Spoke(self.parents, 0, g),
                    (a, b) if a == g => PointCarrier::Spoke(self.parents, next, b),
                    (a, b) if b == g => PointCarrier::Spoke(self.parents, last, a),
                    _ => PointCarrier::Piece(self.parents, i, place),
                };
                let points = self.points;
                let position = || match on {
                    PointCarrier::Vertex(v) => points[v as usize],
                    _ => [0, 1, 2].map(|c| {
                        row.iter().zip(nodes).map(|(w, &p)| w * points[p as usize][c]).sum()
                    }),
                };
                let number = number(&mut self.known, &mut self.parts.points, on, position);
                self.parts.nodes.push(number);
            }
            self.parts.labels.push(label);
        }
        self.parents += 1;
    }

    /// Tags the points that are vertices of cells.
    fn points(&mut self, contents: &Contents, numbers: &NodeMap) {
        for block in contents.blocks_of(0) {
            for (element, nodes) in block.elements() {
                let point = numbers.index(element, nodes[0]).ok();
                let Some(&point) = point.and_then(|p| self.known.get(&PointCarrier::Vertex(p)))
                else {
                    continue;
                };
                for tag in &block.tags {
                    self.parts.vertices.entry(tag.clone()).or_default().push(point);
                }
            }
        }
    }

    /// Splits every tagged edge into two.
    fn facets(&mut self, contents: &Contents, numbers: &NodeMap) -> Result<(), ReadError> {
        for block in contents.blocks_of(1).filter(|block| !block.tags.is_empty()) {
            let vertices = block.kind.vertices()?;
            let mut facets = Vec::new();
            for (element, nodes) in block.elements() {
                let index = |v: usize| numbers.index(element, nodes[vertices[v]]);
                let ends = [index(0)?, index(1)?];
                let at = ends.map(|p| self.points[p as usize]);
                let middle = edge(ends[0], ends[1], self.order, self.order);
                let between = || [0, 1, 2].map(|c| (at[0][c] + at[1][c]) / 2.0);
                // Edges without cells get new points here, and are reported as lost later.
                let middle = number(&mut self.known, &mut self.parts.points, middle, between);
                for (end, place) in ends.into_iter().zip(at) {
                    let end = number(
                        &mut self.known,
                        &mut self.parts.points,
                        PointCarrier::Vertex(end),
                        || place,
                    );
                    facets.push([end, middle, u32::MAX, u32::MAX]);
                }
            }
            for tag in &block.tags {
                self.parts.facets.entry(tag.clone()).or_default().extend(&facets);
            }
        }
        Ok(())
    }
}

/// Returns a point on the edge from a to b, at position `place` of 2g from a.
fn edge(a: u32, b: u32, place: usize, g: usize) -> PointCarrier {
    if a < b { PointCarrier::Edge(a, b, place) } else { PointCarrier::Edge(b, a, 2 * g - place) }
}

fn number(
    known: &mut HashMap<PointCarrier, u32>,
    points: &mut Vec<[f64; 3]>,
    on: PointCarrier,
    position: impl FnOnce() -> [f64; 3],
) -> u32 {
    *known.entry(on).or_insert_with(|| {
        points.push(position());
        points.len() as u32 - 1
    })
}
