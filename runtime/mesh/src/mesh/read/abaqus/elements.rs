//! Abaqus element types: kinds, node orders and face numbers.
//!
//! A type name consists of a family, which determines the dimension, a number of nodes, and letters without effect on
//! the mesh. C3D20RH is a hexahedron with 20 nodes (Abaqus Elements Guide, "Element index"). Vertices and edge
//! midpoints are ordered as in VTK. Of 27 nodes, the interior one precedes those of the faces; of the three nodes of a
//! line, the middle one is second. CalculiX uses the same names.

use crate::mesh::read::contents::ElementKind;
use crate::mesh::{Cell, vtk_order};

/// Meaning of an element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ElementType {
    Kind(ElementKind),
    /// Not part of a mesh: masses, springs and so on.
    Ignored,
}

/// Name prefixes of solid families.
const SOLIDS: [&str; 10] =
    ["C3D", "DC3D", "DCC3D", "AC3D", "FC3D", "EMC3D", "Q3D", "SC", "CSS", "GK3D"];
/// Name prefixes of plane and surface families.
const SURFACES: [&str; 22] = [
    "CPS", "CPE", "CPEG", "CAX", "CGAX", "DC2D", "DCC2D", "DCAX", "DCCAX", "AC2D", "ACAX", "EMC2D",
    "S", "STRI", "DS", "M3D", "SFM3D", "R3D", "F3D", "WARP2D", "QCAX", "GKPS",
];
/// Name prefixes of lines, followed by the number of nodes.
const LINES: [&str; 8] = ["T2D", "T3D", "R2D", "AC1D", "DC1D", "DCC1D", "F2D", "GK2D"];
/// Name prefixes of lines, followed by their order; 3 for cubic beams with two nodes.
const BEAMS: [&str; 10] =
    ["B2", "B3", "PIPE2", "PIPE3", "ELBOW3", "SAX", "MAX", "RAX", "DSAX", "SFMAX"];
/// Name prefixes of types that are not part of a mesh.
const NOTHING: [&str; 13] = [
    "MASS", "ROTARYI", "HEATCAP", "SPRING", "DASHPOT", "CONN", "JOINT", "GAP", "DCOUP", "DGAP",
    "ITS", "RB", "PSI",
];

/// Returns the meaning of an element type, or advice.
pub(super) fn of(name: &str) -> Result<ElementType, String> {
    let name = name.to_ascii_uppercase();
    if NOTHING.iter().any(|start| name.starts_with(start)) {
        return Ok(ElementType::Ignored);
    }
    let kind = match name.as_str() {
        "STRI65" => Some(ElementKind::Cell(Cell::Triangle, 2)),
        "FRAME2D" | "FRAME3D" => Some(ElementKind::Cell(Cell::Interval, 1)),
        _ => nodes(&name, &SOLIDS)
            .map(solid)
            .or_else(|| nodes(&name, &SURFACES).map(surface))
            .or_else(|| nodes(&name, &LINES).map(line))
            .or_else(|| nodes(&name, &BEAMS).map(|order| line(if order == 2 { 3 } else { 2 })))
            .unwrap_or(None),
    };
    kind.map(ElementType::Kind).ok_or_else(|| refused(&name))
}

/// Returns the number after the longest matching prefix.
fn nodes(name: &str, families: &[&str]) -> Option<usize> {
    let digits = |rest: &str| {
        let end = rest.bytes().take_while(u8::is_ascii_digit).count();
        rest[..end].parse().ok()
    };
    families.iter().filter_map(|family| digits(name.strip_prefix(family)?)).next()
}

fn solid(nodes: usize) -> Option<ElementKind> {
    Some(match nodes {
        4 => ElementKind::Cell(Cell::Tetrahedron, 1),
        8 => ElementKind::Cell(Cell::Hexahedron, 1),
        10 => ElementKind::Cell(Cell::Tetrahedron, 2),
        20 => ElementKind::Serendipity(Cell::Hexahedron),
        27 => ElementKind::Cell(Cell::Hexahedron, 2),
        _ => return None,
    })
}

fn surface(nodes: usize) -> Option<ElementKind> {
    Some(match nodes {
        3 => ElementKind::Cell(Cell::Triangle, 1),
        4 => ElementKind::Cell(Cell::Quadrilateral, 1),
        6 => ElementKind::Cell(Cell::Triangle, 2),
        8 => ElementKind::Serendipity(Cell::Quadrilateral),
        9 => ElementKind::Cell(Cell::Quadrilateral, 2),
        _ => return None,
    })
}

fn line(nodes: usize) -> Option<ElementKind> {
    (2..=3).contains(&nodes).then(|| ElementKind::Cell(Cell::Interval, nodes - 1))
}

fn refused(name: &str) -> String {
    let (what, remedy) = match nodes(name, &SOLIDS) {
        Some(6 | 15 | 18) => ("a prism", "mesh the part with tetrahedra alone or hexahedra alone"),
        Some(5 | 13 | 14) => {
            ("a pyramid", "mesh the part with tetrahedra alone or hexahedra alone")
        }
        _ => (
            "unknown",
            "cells are triangles, quadrilaterals, tetrahedra and hexahedra, straight or quadratic: mesh the part with one \
             kind of these, and leave out other elements",
        ),
    };
    format!("({what}) are not there yet; {remedy}")
}

/// Returns the integer coordinates of the nodes in Abaqus's order.
pub(super) fn lattice(kind: ElementKind) -> Vec<[usize; 3]> {
    let (cell, order) = match kind {
        ElementKind::Point => return vec![[0; 3]],
        ElementKind::Cell(cell, order) => (cell, order),
        ElementKind::Serendipity(cell) => (cell, 2),
    };
    if cell == Cell::Interval {
        // The midpoint of a line is second.
        return (0..=order).map(|x| [x, 0, 0]).collect();
    }
    let mut nodes = vtk_order::lattice(cell, order);
    nodes.truncate(kind.nodes());
    if kind == ElementKind::Cell(Cell::Hexahedron, 2) {
        nodes.truncate(20);
        nodes.push([1, 1, 1]);
        // Centres of faces 1 to 6.
        nodes.extend([[1, 1, 0], [1, 1, 2], [1, 0, 1], [2, 1, 1], [1, 2, 1], [0, 1, 1]]);
    }
    nodes
}

/// Part of the boundary of an element.
#[derive(Debug, PartialEq)]
pub(super) enum Face {
    /// A face, by the indices of its vertices among the nodes.
    Vertices(&'static [usize]),
    /// The element itself: one side of a shell.
    Whole,
}

const TETRAHEDRON: [&[usize]; 4] = [&[0, 1, 2], &[0, 3, 1], &[1, 3, 2], &[2, 3, 0]];
const HEXAHEDRON: [&[usize]; 6] =
    [&[0, 1, 2, 3], &[4, 7, 6, 5], &[0, 4, 5, 1], &[1, 5, 6, 2], &[2, 6, 7, 3], &[3, 7, 4, 0]];
const TRIANGLE: [&[usize]; 3] = [&[0, 1], &[1, 2], &[2, 0]];
const QUADRILATERAL: [&[usize]; 4] = [&[0, 1], &[1, 2], &[2, 3], &[3, 0]];

/// Returns the face of a cell with a label such as S1, E2 or SPOS.
pub(super) fn face(cell: Cell, label: &str) -> Option<Face> {
    let label = label.to_ascii_uppercase();
    if matches!(label.as_str(), "SPOS" | "SNEG") {
        return (cell.dim() == 2).then_some(Face::Whole);
    }
    let number: usize = label.strip_prefix(['S', 'E'])?.parse().ok()?;
    let faces: &[&[usize]] = match cell {
        Cell::Interval => return None,
        Cell::Triangle => &TRIANGLE,
        Cell::Quadrilateral => &QUADRILATERAL,
        Cell::Tetrahedron => &TETRAHEDRON,
        Cell::Hexahedron => &HEXAHEDRON,
    };
    faces.get(number.checked_sub(1)?).map(|vertices| Face::Vertices(vertices))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_family_and_number_of_nodes() {
        let kind = |name: &str| match of(name) {
            Ok(ElementType::Kind(kind)) => kind.to_string(),
            Ok(ElementType::Ignored) => "nothing".to_owned(),
            Err(error) => error,
        };
        for (names, expected) in [
            (&["C3D4", "C3D4H", "DC3D4", "AC3D4"][..], "tet of order 1"),
            (&["C3D10", "C3D10M", "C3D10HS", "DC3D10"], "tet of order 2"),
            (&["C3D8", "c3d8r", "C3D8RHT", "SC8R", "DC3D8"], "hex of order 1"),
            (&["C3D20", "C3D20RH", "AC3D20"], "hex of 20 nodes"),
            (&["C3D27", "C3D27R"], "hex of order 2"),
            (
                &["CPS3", "CPE3", "CPEG3", "CAX3", "S3", "S3R", "R3D3", "STRI3", "M3D3"],
                "tri of order 1",
            ),
            (&["CPS6M", "CPE6", "STRI65", "DC2D6", "S6"], "tri of order 2"),
            (&["CPS4R", "CPE4RHT", "S4", "S4R5", "SFM3D4R", "WARP2D4", "R3D4"], "quad of order 1"),
            (&["CPS8", "CPE8R", "CAX8", "S8R5", "DS8"], "quad of 8 nodes"),
            (&["S9R5", "M3D9R"], "quad of order 2"),
            (
                &["T2D2", "T3D2H", "R2D2", "B21", "B23", "B31H", "SAX1", "FRAME3D"],
                "line of order 1",
            ),
            (&["T3D3", "B22", "B32OS", "PIPE22", "SAX2"], "line of order 2"),
            (&["MASS", "SPRINGA", "CONN3D2", "DASHPOT2"], "nothing"),
        ] {
            for name in names {
                assert_eq!(kind(name), expected, "{name}");
            }
        }
        assert!(kind("C3D15").starts_with("(a prism)") && kind("C3D5").starts_with("(a pyramid)"));
        assert!(kind("U1").starts_with("(unknown)") && kind("COH3D8").starts_with("(unknown)"));
    }

    /// Each element face is a facet of the cell, and vice versa.
    #[test]
    fn faces_are_facets() {
        for cell in Cell::ALL.into_iter().filter(|cell| cell.dim() > 1) {
            let corners = vtk_order::lattice(cell, 1);
            let own = |v: usize| cell.vertex(v).map(|x| x as usize);
            let mut facets: Vec<Vec<[usize; 3]>> =
                cell.facets().iter().map(|facet| facet.iter().map(|&v| own(v)).collect()).collect();
            facets.iter_mut().for_each(|facet| facet.sort_unstable());
            for number in 1..=facets.len() {
                let Some(Face::Vertices(face)) = face(cell, &format!("S{number}")) else {
                    panic!("{cell} S{number}")
                };
                let mut vertices: Vec<_> = face.iter().map(|&v| corners[v]).collect();
                vertices.sort_unstable();
                let place = facets.iter().position(|facet| *facet == vertices);
                facets.swap_remove(place.unwrap_or_else(|| panic!("{cell} S{number}")));
            }
            assert!(facets.is_empty() && face(cell, "S7").is_none() && face(cell, "S0").is_none());
        }
    }
}
