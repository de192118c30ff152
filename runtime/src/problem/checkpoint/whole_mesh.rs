//! Conversion between the vectors of all processes and one of the whole mesh in serial numbering. It makes checkpoints
//! independent of the number of processes.
//!
//! Each process numbers the whole mesh, and temporarily holds whole vectors.

use super::super::RunError;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::space::discretisation::Discretisation;
use std::sync::Arc;

/// Bound of integers that are stored exactly as reals.
pub(super) const EXACT: u64 = 1 << 52;

/// Map to the degrees of freedom of the whole mesh, with their identity.
pub(in crate::problem) struct WholeMeshMap {
    /// Whole index of each local degree of freedom; `None` if this process has all.
    own: Option<(Arc<InterfaceExchange>, Vec<usize>)>,
    /// Whole index of each local cell, and the number of cells of the whole mesh; `None` if this process has all.
    cells: Option<(InterfaceExchange, Vec<u32>, usize)>,
    /// Number of degrees of freedom of the whole mesh.
    pub(in crate::problem) size: usize,
    /// Identity of the mesh and its degrees of freedom.
    pub(in crate::problem) mesh: MeshIdentity,
}

/// Identity of a mesh and its degrees of freedom in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::problem) struct MeshIdentity {
    /// Hash of the order of degrees of freedom.
    pub(super) order: u64,
    /// Number of cells.
    pub(super) cells: u64,
    /// Number of vertices.
    pub(super) vertices: u64,
}

impl MeshIdentity {
    fn of(on: &Discretisation) -> Self {
        let (cells, vertices) = (on.mesh.n_cells() as u64, on.mesh.n_vertices() as u64);
        Self { order: on.order_of_unknowns() % EXACT, cells, vertices }
    }
}

impl WholeMeshMap {
    /// Builds the map of this process.
    ///
    /// # Errors
    ///
    /// Degrees of freedom of the whole mesh that cannot be numbered.
    pub(in crate::problem) fn of(on: &Discretisation) -> Result<Self, RunError> {
        let (Some(whole), Some(sharing)) = (on.on_whole()?, on.sharing()) else {
            let (size, mesh) = (on.n_dofs(), MeshIdentity::of(on));
            return Ok(Self { own: None, cells: None, size, mesh });
        };
        let own = on.places_in(&whole).map(|places| (sharing, places));
        let cells = on.mesh.cut().and_then(|cut| {
            let alone = InterfaceExchange::new(Arc::clone(cut.group()), std::iter::empty());
            Some((alone, cut.cells().ok()?.to_vec(), whole.mesh.n_cells()))
        });
        Ok(Self { own, cells, size: whole.n_dofs(), mesh: MeshIdentity::of(&whole) })
    }

    /// Gathers a vector of the whole mesh from all processes.
    pub(in crate::problem) fn gathered(&self, own: Vec<f64>) -> Vec<f64> {
        match &self.own {
            Some((sharing, places)) => sharing.gathered(&own, places, self.size),
            None => own,
        }
    }

    /// Gathers values of cells, each with as many numbers, from all processes.
    pub(in crate::problem) fn gathered_cells(&self, own: Vec<f64>, each: usize) -> Vec<f64> {
        let Some((sharing, cells, whole)) = &self.cells else { return own };
        let places =
            cells.iter().flat_map(|&cell| (0..each).map(move |i| cell as usize * each + i));
        sharing.gathered(&own, &places.collect::<Vec<_>>(), whole * each)
    }

    /// Extracts the values of the cells of this process.
    pub(in crate::problem) fn part_of_cells(&self, all: &[f64], each: usize) -> Vec<f64> {
        let Some((_, cells, _)) = &self.cells else { return all.to_vec() };
        cells.iter().flat_map(|&cell| &all[cell as usize * each..][..each]).copied().collect()
    }

    /// Extracts the entries of this process from a whole vector.
    pub(in crate::problem) fn part(&self, all: &[f64]) -> Vec<f64> {
        match &self.own {
            Some((_, places)) => places.iter().map(|&place| all[place]).collect(),
            None => all.to_vec(),
        }
    }
}
