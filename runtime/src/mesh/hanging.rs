//! Meshes with hanging nodes: what hangs of each cell, and what is their surface.
//!
//! A cell whose face or edge hangs is a child whose parent's face or edge is whole on the other side. Its own geometry
//! nodes lie on it, and its unknowns there are those of its parent's entity ([`Mesh::connectivity`]), from which its own
//! are interpolated ([`kernels_gen::abi::hanging`]).

use super::periodic::Pair;
use super::{Facet, Mesh, Topology};
use kernels_gen::abi::hanging::{corner, others, side};

/// What a mesh has where cells of two levels meet, or where its sides are periodic.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hanging {
    /// The word of each cell; none where nothing hangs, of a part of a mesh anywhere.
    pub(crate) words: Option<Vec<u32>>,
    /// The facets on the boundary, in the order of the cells, periodic ones too.
    pub(crate) surface: Vec<Facet>,
}

impl Mesh {
    /// Says what hangs, and how unknowns see the entities of the cells.
    pub(crate) fn hang(&mut self, hanging: Hanging, connectivity: Topology, periodic: &[Pair]) {
        self.periodic = periodic.to_vec();
        self.joined = Some(Box::new(connectivity));
        self.hanging = Some(hanging);
    }

    /// What hangs of each cell, as [`kernels_gen::abi::hanging::word`] has it; none where nothing hangs anywhere, in other parts of a mesh
    /// neither.
    pub fn hanging(&self) -> Option<&[u32]> {
        self.hanging.as_ref()?.words.as_deref()
    }

    /// All facets of the surface of the body, those of periodic sides too.
    pub fn surface(&self) -> Vec<Facet> {
        match &self.hanging {
            Some(hanging) => hanging.surface.clone(),
            None => self.topology.boundary(),
        }
    }

    /// Whether a facet is one of the surface.
    pub(crate) fn is_outer(&self, facet: Facet) -> bool {
        match &self.hanging {
            Some(hanging) => hanging.surface.binary_search(&facet).is_ok(),
            None => self.topology.facets().n_cells(self.topology.facet_entity(facet) as usize) == 1,
        }
    }
}

/// Of what lies at these ends of the axes of a cell, or between them, the bits of a word of which any says that it hangs.
pub fn bits(ends: [Option<usize>; 3], dim: usize) -> u32 {
    (0..dim).fold(0, |bits, axis| {
        let mut across = others(axis, dim).map(|other| ends[other]);
        let first = across.next().flatten();
        bits | match (first, across.next()) {
            (Some(a), Some(Some(b))) => 1 << corner(axis, a, b),
            (Some(a), _) => 1 << side(axis, 0, a),
            (None, Some(Some(b))) => 1 << side(axis, 1, b),
            (None, _) => 0,
        }
    })
}
