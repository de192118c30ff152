//! VTK cell types: kinds, point orders, and advice on unsupported types.
//!
//! Numbers and orders follow `vtkCellType.h` and the class documentation. Linear and quadratic cells list their points
//! as Lagrange cells of that degree. Serendipity cells omit the face and interior points, which are last. Files of VTK
//! 8 (XML below 2.1, legacy below 5.1) exchange the last two edges of Lagrange hexahedra (`vtkUpdateCellsV8toV9`).

use super::Conversion;
use crate::mesh::read::contents::{ElementKind, NodePermutation};
use crate::mesh::read::{FilePosition, ReadError};
use crate::mesh::{Cell, MeshError, vtk_order};

/// Error of an unsupported cell.
pub(super) enum CellError {
    /// An unsupported type.
    Type {
        what: &'static str,
        remedy: &'static str,
    },
    /// A wrong number of points.
    Points(&'static str),
    Mesh(MeshError),
}

const NO_PRISMS: &str = "save the mesh with tetrahedra alone or hexahedra alone: in ParaView, the filter Tetrahedralize \
     makes tetrahedra of all straight cells";
const ONE_KIND: &str =
    "cells are triangles, quadrilaterals, tetrahedra and hexahedra, straight or of one order";

impl CellError {
    pub(super) fn at(
        self,
        cell: usize,
        number: u64,
        points: usize,
        place: FilePosition,
    ) -> ReadError {
        match self {
            Self::Type { what, remedy } => {
                let what = format!(
                    "cell {cell} is {what} (type {number}), which is not there yet; {remedy}"
                );
                ReadError::Unsupported { place, what }
            }
            Self::Points(expected) => ReadError::Syntax {
                place,
                expected: format!("{expected} for cell {cell} of type {number}"),
                found: points.to_string(),
            },
            Self::Mesh(error) => error.into(),
        }
    }
}

/// Returns the conversion of a cell type with `points` points.
pub(super) fn found(
    number: u64,
    points: usize,
    old_hexahedra: bool,
) -> Result<Conversion, CellError> {
    use Cell::{Hexahedron, Interval, Quadrilateral, Tetrahedron, Triangle};
    let straight = |cell: Cell| ElementKind::Cell(cell, 1);
    let kind = match number {
        0..=2 => return Ok(Conversion::Ignored),
        4 => return Ok(Conversion::Lines),
        3 => straight(Interval),
        5 => straight(Triangle),
        // Polygons with three or four points are cells.
        7 if points == 3 => straight(Triangle),
        7 if points == 4 => straight(Quadrilateral),
        8 | 9 => straight(Quadrilateral),
        10 => straight(Tetrahedron),
        11 | 12 => straight(Hexahedron),
        21 => ElementKind::Cell(Interval, 2),
        22 => ElementKind::Cell(Triangle, 2),
        23 => ElementKind::Serendipity(Quadrilateral),
        24 => ElementKind::Cell(Tetrahedron, 2),
        25 => ElementKind::Serendipity(Hexahedron),
        28 => ElementKind::Cell(Quadrilateral, 2),
        29 => ElementKind::Cell(Hexahedron, 2),
        35 => ElementKind::Cell(Interval, 3),
        68 => lagrange(Interval, points)?,
        69 => lagrange(Triangle, points)?,
        70 => lagrange(Quadrilateral, points)?,
        71 => lagrange(Tetrahedron, points)?,
        72 => lagrange(Hexahedron, points)?,
        other => return Err(refused(other)),
    };
    if kind.nodes() != points {
        return Err(CellError::Points(match kind {
            ElementKind::Cell(Interval, _) => "as many points as a line has",
            _ => "as many points as the type has",
        }));
    }
    let old = old_hexahedra && number == 72;
    NodePermutation::new(kind, &lattice(number, kind, old))
        .map(Conversion::Element)
        .map_err(CellError::Mesh)
}

/// Returns whether a type is a Lagrange cell of any degree.
pub(super) fn is_lagrange(number: u64) -> bool {
    (68..=72).contains(&number)
}

/// Returns the kind of a Lagrange cell with `points` points.
fn lagrange(cell: Cell, points: usize) -> Result<ElementKind, CellError> {
    // Orders up to 20 are recognised; the layout rejects those that are too high.
    let orders = (1..=20).map(|order| ElementKind::Cell(cell, order));
    orders
        .into_iter()
        .find(|kind| kind.nodes() == points)
        .ok_or(CellError::Points("as many points as a cell of one order has"))
}

/// Returns the integer coordinates of the points in VTK's order.
fn lattice(number: u64, kind: ElementKind, old: bool) -> Vec<[usize; 3]> {
    let (cell, order) = match kind {
        ElementKind::Point => return vec![[0; 3]],
        ElementKind::Cell(cell, order) => (cell, order),
        ElementKind::Serendipity(cell) => (cell, 2),
    };
    // Pixels and voxels are ordered along the axes.
    if matches!(number, 8 | 11) {
        return (0..cell.vertex_count()).map(|v| [0, 1, 2].map(|axis| v >> axis & 1)).collect();
    }
    let mut nodes = vtk_order::lattice(cell, order);
    nodes.truncate(kind.nodes());
    if old {
        vtk_order::exchange_last_edges(&mut nodes, order);
    }
    nodes
}

fn refused(number: u64) -> CellError {
    let (what, remedy) = match number {
        13 | 26 | 31 | 32 | 65 | 73 => ("a prism", NO_PRISMS),
        14 | 27 | 37 | 66 | 74 => ("a pyramid", NO_PRISMS),
        6 => ("a strip of triangles", "in ParaView, the filter Triangulate makes triangles of it"),
        7 | 36 => ("a polygon", "in ParaView, the filter Triangulate makes triangles of it"),
        15 | 16 => ("a prism over a polygon", NO_PRISMS),
        41 | 42 => ("a polyhedron", NO_PRISMS),
        30 | 33 | 34 => (
            "a cell with points on some of its faces or sides",
            "save it with those of VTK's Lagrange cells",
        ),
        75..=81 => ("a Bézier cell", "save it with VTK's Lagrange cells"),
        _ => ("of an unknown type", ONE_KIND),
    };
    CellError::Type { what, remedy }
}
