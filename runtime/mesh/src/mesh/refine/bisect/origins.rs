//! Origin of a child's edges and faces in its parent, from the child's vertices.

use super::rule::{MIDDLE, local, vertices};
use crate::mesh::Cell;

/// Origin of an edge of a child. `turned`: the child orders its vertices against the origin. The order of the origin is
/// that of the parent (vertex 0 to vertex 1), or away from the midpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EdgeOrigin {
    /// An edge of the parent.
    Whole { edge: usize, turned: bool },
    /// The child's half of the parent's edge 01.
    Half { turned: bool },
    /// The edge from the midpoint to a vertex of the parent.
    Spoke { to: usize, turned: bool },
}

/// Origin of a face of a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FaceOrigin {
    /// A face of the parent.
    Whole(usize),
    /// The child's half of a split face of the parent.
    Half(usize),
    /// The face between the children.
    Interior,
}

/// Origin of the entities of a child.
#[derive(Clone, Debug)]
pub(super) struct ChildOrigins {
    /// The child's end of the parent's edge 01.
    pub(super) end: usize,
    pub(super) vertices: &'static [usize],
    pub(super) edges: Vec<EdgeOrigin>,
    /// The faces, in three dimensions.
    pub(super) faces: Vec<FaceOrigin>,
}

/// Returns the tables of all kinds of children.
pub(super) fn parts(cell: Cell) -> Vec<ChildOrigins> {
    let of = |own: &&'static [usize]| {
        let end = usize::from(!own.contains(&0));
        let edge = |edge: &&[usize]| match [own[edge[0]], own[edge[1]]] {
            [MIDDLE, to] if to == end => EdgeOrigin::Half { turned: end == 0 },
            [from, MIDDLE] if from == end => EdgeOrigin::Half { turned: end == 1 },
            [MIDDLE, to] => EdgeOrigin::Spoke { to, turned: false },
            [to, MIDDLE] => EdgeOrigin::Spoke { to, turned: true },
            [a, b] => EdgeOrigin::Whole { edge: local(cell, &[a, b]), turned: a > b },
        };
        let face = |opposite: &usize| match *opposite {
            // Face i is opposite vertex i.
            MIDDLE => FaceOrigin::Whole(1 - end),
            other if other == end => FaceOrigin::Interior,
            other => FaceOrigin::Half(other),
        };
        ChildOrigins {
            end,
            vertices: own,
            edges: cell.entities(1).iter().map(edge).collect(),
            faces: if cell.dim() == 3 { own.iter().map(face).collect() } else { Vec::new() },
        }
    };
    vertices(cell).iter().map(of).collect()
}
