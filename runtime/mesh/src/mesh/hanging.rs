//! Meshes with hanging nodes: the hanging entities of each cell, and the boundary.
//!
//! A face or edge of a cell hangs if its neighbour has the parent's whole face or edge. The cell's geometry nodes lie
//! on it. Its degrees of freedom there are those of the parent's entity ([`Mesh::connectivity`]), from which the cell's
//! own values are interpolated ([`kernels_gen::abi::hanging`]).

use super::periodic::PeriodicSides;
use super::{Facet, Mesh, Topology};
use kernels_gen::abi::hanging::{corner, others, side};

/// Data of a mesh with hanging nodes or with periodic sides.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HangingEntities {
    /// The hanging word of each cell; `None` if nothing hangs in any part of the mesh.
    pub(crate) words: Option<Vec<u32>>,
    /// The facets on the boundary, including periodic ones, in cell order.
    pub(crate) surface: Vec<Facet>,
}

impl Mesh {
    /// Sets the hanging entities, and the connectivity of the degrees of freedom.
    pub(crate) fn hang(
        &mut self,
        hanging: HangingEntities,
        connectivity: Topology,
        periodic: &[PeriodicSides],
    ) {
        self.periodic = periodic.to_vec();
        self.joined = Some(Box::new(connectivity));
        self.hanging = Some(hanging);
    }

    /// Returns the hanging word of each cell ([`kernels_gen::abi::hanging::word`]); `None` if nothing hangs in any part
    /// of the mesh.
    pub fn hanging(&self) -> Option<&[u32]> {
        self.hanging.as_ref()?.words.as_deref()
    }

    /// Returns all facets of the geometric boundary, including those of periodic sides.
    pub fn surface(&self) -> Vec<Facet> {
        match &self.hanging {
            Some(hanging) => hanging.surface.clone(),
            None => self.topology.boundary(),
        }
    }

    /// Returns whether a facet lies on the geometric boundary.
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
