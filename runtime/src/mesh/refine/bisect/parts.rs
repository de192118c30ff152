//! What the parts of a child are in its parent: the vertices of a child → where its edges and faces come from.

use super::rule::{MIDDLE, local, vertices};
use crate::mesh::Cell;

/// An edge of a child. It is turned where the child's own order of both vertices is against that of what it comes from:
/// the parent's order of both vertices, from vertex 0 to vertex 1, or away from the middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum EdgeOf {
    /// An edge of the parent.
    Whole { edge: usize, turned: bool },
    /// The half of the parent's edge 01 that the child has.
    Half { turned: bool },
    /// The edge from the middle to a vertex of the parent.
    Spoke { to: usize, turned: bool },
}

/// A face of a child.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FaceOf {
    /// A face of the parent.
    Whole(usize),
    /// The part that the child has of a face of the parent which is halved.
    Half(usize),
    /// The face between both children.
    Between,
}

/// The parts of a child.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// Which end of the parent's edge 01 the child has.
    pub(super) end: usize,
    pub(super) vertices: &'static [usize],
    pub(super) edges: Vec<EdgeOf>,
    /// In three dimensions.
    pub(super) faces: Vec<FaceOf>,
}

/// Those of all children that there are.
pub(super) fn parts(cell: Cell) -> Vec<Parts> {
    let of = |own: &&'static [usize]| {
        let end = usize::from(!own.contains(&0));
        let edge = |edge: &&[usize]| match [own[edge[0]], own[edge[1]]] {
            [MIDDLE, to] if to == end => EdgeOf::Half { turned: end == 0 },
            [from, MIDDLE] if from == end => EdgeOf::Half { turned: end == 1 },
            [MIDDLE, to] => EdgeOf::Spoke { to, turned: false },
            [to, MIDDLE] => EdgeOf::Spoke { to, turned: true },
            [a, b] => EdgeOf::Whole { edge: local(cell, &[a, b]), turned: a > b },
        };
        let face = |opposite: &usize| match *opposite {
            // Face i lies opposite vertex i.
            MIDDLE => FaceOf::Whole(1 - end),
            other if other == end => FaceOf::Between,
            other => FaceOf::Half(other),
        };
        Parts {
            end,
            vertices: own,
            edges: cell.entities(1).iter().map(edge).collect(),
            faces: if cell.dim() == 3 { own.iter().map(face).collect() } else { Vec::new() },
        }
    };
    vertices(cell).iter().map(of).collect()
}
