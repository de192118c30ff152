//! Errors of meshes and their messages.

use super::Cell;
use crate::support::memory::InsufficientMemory;
use fem_dsl::source::shortened;
use thiserror::Error;

/// Error of the construction or query of a mesh.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum MeshError {
    /// More items than a 32-bit index can count.
    #[error("the mesh has {count} {what}, more than 32-bit indices can number")]
    TooLarge {
        /// The counted items.
        what: &'static str,
        /// Their number.
        count: usize,
    },
    /// Insufficient memory.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
    /// A mesh without cells.
    #[error("the mesh has no cells")]
    Empty,
    /// A region with terms of a field that lives in other cells.
    #[error(
        "{region} has terms of `{field}`, which lives on {cells}, and is not in these cells\n\
         help: name a part of these cells or of their boundary, or let `{field}` live there too"
    )]
    Elsewhere {
        /// The region.
        region: String,
        /// The field.
        field: String,
        /// Its cells.
        cells: String,
    },
    /// A kind of cell or an order that a mesh cannot have.
    #[error("a mesh of {cell} cells of order {order} is not supported; {expected}")]
    Unsupported {
        /// The kind of cell.
        cell: Cell,
        /// The geometry's order.
        order: usize,
        /// The supported cells and orders.
        expected: &'static str,
    },
    /// Connectivity whose length is not a multiple of the nodes of a cell.
    #[error("the connectivity has {found} entries, no multiple of the {per_cell} nodes of a cell")]
    Connectivity {
        /// The number of entries.
        found: usize,
        /// Nodes per cell.
        per_cell: usize,
    },
    /// A reference from a cell, facet or tag to an entity that does not exist.
    #[error("{place} refers to {what} {index}, but there are only {count}")]
    OutOfRange {
        /// The referring item.
        place: String,
        /// The kind of entity referred to.
        what: &'static str,
        /// Its number.
        index: u32,
        /// The number of such entities.
        count: usize,
    },
    /// A coordinate that is not finite, or a two-dimensional mesh out of its plane.
    #[error("point {point} at ({}) {problem}", coordinates(.at))]
    Point {
        /// The point's number.
        point: usize,
        /// Its coordinates.
        at: [f64; 3],
        /// The defect.
        problem: &'static str,
    },
    /// A cell that names one point twice.
    #[error("{cell} uses the point {point} twice")]
    Repeated {
        /// The cell.
        cell: CellName,
        /// The point.
        point: u32,
    },
    /// A cell whose Jacobian determinant changes sign or is zero.
    #[error(
        "{cell} is {}: its Jacobian determinant is {determinant:.3e} somewhere inside, \
         where {:.1e} would be usual for its size",
        match (.usual.is_finite() && .determinant.is_finite(), *.determinant < 0.0) {
            (false, _) => "too large for numbers to hold",
            (true, true) => "inverted in a part of it",
            (true, false) => "degenerate",
        },
        .usual
    )]
    Inverted {
        /// The cell.
        cell: CellName,
        /// The smallest determinant found.
        determinant: f64,
        /// The determinant of a cube of the cell's diameter.
        usual: f64,
    },
    /// A facet that belongs to three or more cells.
    #[error("a facet of {cell} belongs to {count} cells; at most two can meet in a facet")]
    Branching {
        /// One of the cells.
        cell: CellName,
        /// The number of cells that share the facet.
        count: u8,
    },
    /// Two cells on the same side of their shared facet.
    #[error(
        "{} and {} overlap: they lie on one side of the facet that they share, near ({})",
        .cells[0], .cells[1], coordinates(.at)
    )]
    Overlap {
        /// The cells.
        cells: Box<[CellName; 2]>,
        /// The mean of the facet's vertices.
        at: [f64; 3],
    },
    /// Two curved cells that share a facet's vertices but not its other nodes.
    #[error(
        "{} and {} share the vertices of a facet and not its other nodes, near ({}): they gape or overlap there",
        .cells[0], .cells[1], coordinates(.at)
    )]
    Gap {
        /// The cells.
        cells: Box<[CellName; 2]>,
        /// The mean of the facet's vertices.
        at: [f64; 3],
    },
    /// A node inside a facet of a cell that does not contain it.
    #[error(
        "{node} lies inside a facet of {cell}: nothing joins the cells there, and both sides count as boundary"
    )]
    Hanging {
        /// The node.
        node: Box<NodeName>,
        /// The cell.
        cell: CellName,
    },
    /// Two overlapping cells.
    #[error("{} and {} overlap: ({}) is inside of both", .cells[0], .cells[1], coordinates(.at))]
    Inside {
        /// The cells.
        cells: Box<[CellName; 2]>,
        /// A point inside both.
        at: [f64; 3],
    },
    /// An integral between cells that kernels do not compute yet.
    #[error(
        "an integral between cells (`on interior`) is not computed yet where {what}\n\
         help: take one process"
    )]
    Between {
        /// The reason.
        what: &'static str,
    },
    /// A boundary tag of an integral with facets between two cells.
    #[error(
        "{inner} of the {count} facets tagged \"{}\" lie inside the domain, the first near ({}): an integral over \
         them has two sides, and nothing says which",
        shortened(.tag), coordinates(.at)
    )]
    Inner {
        /// The tag.
        tag: String,
        /// The number of facets of that tag.
        count: usize,
        /// The number of those between two cells.
        inner: usize,
        /// The mean of the vertices of the first such facet.
        at: [f64; 3],
    },
    /// Tagged facets that belong to no cell.
    #[error(
        "{lost} of the {count} facets tagged \"{}\" belong to no cell; the first is near ({})",
        shortened(.tag), coordinates(.at)
    )]
    LostFacet {
        /// The tag.
        tag: String,
        /// The number of facets of that tag.
        count: usize,
        /// The number of those without a cell.
        lost: usize,
        /// The centre of the first one.
        at: [f64; 3],
    },
    /// A tag of curves or points in a place that needs facets.
    #[error(
        "\"{}\" tags curves or points of the mesh, which have no area and no normal: only an essential condition on values, \
         and `reaction`, can name it",
        shortened(.tag)
    )]
    NoSide {
        /// The tag.
        tag: String,
    },
    /// Unknown tags.
    #[error("{}", unknown_tags(.kind, .tags, .available))]
    UnknownTags {
        /// `boundary` or `cell`.
        kind: &'static str,
        /// Each unknown tag, with the most similar known one.
        tags: Vec<(String, Option<String>)>,
        /// All known tags.
        available: Vec<String>,
    },
}

/// Identification of a cell in messages.
#[derive(Clone, Debug, PartialEq)]
pub struct CellName {
    /// Its number: the source's own, or counted from 0 in input order.
    pub number: u64,
    /// True if `number` is the source's own number.
    pub labelled: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// The mean of its vertices.
    pub centre: [f64; 3],
}

/// Identification of a node in messages.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeName {
    /// The source's own number, if it has one.
    pub number: Option<u64>,
    /// Its coordinates.
    pub at: [f64; 3],
}

impl std::fmt::Display for NodeName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.number {
            Some(number) => write!(f, "node {number}")?,
            None => f.write_str("the node")?,
        }
        write!(f, " at ({})", coordinates(&self.at))
    }
}

impl std::fmt::Display for CellName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if self.labelled { "element" } else { "cell" };
        write!(f, "{word} {}", self.number)?;
        if !self.tags.is_empty() {
            let tags: Vec<_> = self.tags.iter().map(|tag| shortened(tag)).collect();
            write!(f, " of \"{}\"", tags.join("\", \""))?;
        }
        write!(f, " with centre ({})", coordinates(&self.centre))
    }
}

fn coordinates(point: &[f64; 3]) -> String {
    let shown = |x: f64| if x.abs() < 1e6 { format!("{x:.6}") } else { format!("{x:e}") };
    point.map(shown).join(", ")
}

fn unknown_tags(kind: &str, tags: &[(String, Option<String>)], available: &[String]) -> String {
    let plural = if tags.len() == 1 { "" } else { "s" };
    let each = tags.iter().map(|(tag, nearest)| {
        let (tag, nearest) = (shortened(tag), nearest.as_deref().map(shortened));
        match nearest {
            Some(nearest) if tags.len() == 1 => format!("\"{tag}\"; did you mean \"{nearest}\"?"),
            Some(nearest) => format!("\"{tag}\" (did you mean \"{nearest}\"?)"),
            None => format!("\"{tag}\""),
        }
    });
    let list: Vec<String> = each.collect();
    let has = match available {
        [] => "it has none at all".to_owned(),
        all => {
            let all: Vec<_> = all.iter().map(|tag| shortened(tag)).collect();
            format!("it has \"{}\"", all.join("\", \""))
        }
    };
    format!("the mesh has no {kind} tag{plural} {}; {has}", list.join(", "))
}
