//! What vectors are together: those of each process ⇄ one of the whole mesh, as one process has it. So a checkpoint does not
//! depend on how many processes left it.
//!
//! Each process makes the unknowns of the whole mesh for that, as it has made the mesh itself, and has each vector once as a whole.

use super::super::RunError;
use crate::processes::sharing::Sharing;
use crate::space::discretisation::Discretisation;
use std::sync::Arc;

/// Whole numbers up to this are exact as reals.
pub(super) const EXACT: u64 = 1 << 52;

/// The unknowns of all processes together, and what tells them apart from those of another mesh.
pub(super) struct Whole {
    /// Where those of this process are among them; nothing where it has all.
    own: Option<(Arc<Sharing>, Vec<usize>)>,
    /// How many there are.
    pub(super) size: usize,
    /// The mesh and its unknowns.
    pub(super) mesh: Known,
}

/// A mesh and its unknowns, as a checkpoint knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Of what each number of a vector means.
    pub(super) order: u64,
    /// Cells of the mesh.
    pub(super) cells: u64,
    /// Its vertices.
    pub(super) vertices: u64,
}

impl Known {
    fn of(on: &Discretisation) -> Self {
        let (cells, vertices) = (on.mesh.n_cells() as u64, on.mesh.n_vertices() as u64);
        Self { order: on.order_of_unknowns() % EXACT, cells, vertices }
    }
}

impl Whole {
    /// Of what this process has.
    ///
    /// # Errors
    ///
    /// The unknowns of the whole mesh cannot be numbered.
    pub(super) fn of(on: &Discretisation) -> Result<Self, RunError> {
        let (Some(whole), Some(sharing)) = (on.on_whole()?, on.sharing()) else {
            return Ok(Self { own: None, size: on.n_dofs(), mesh: Known::of(on) });
        };
        let own = on.places_in(&whole).map(|places| (sharing, places));
        Ok(Self { own, size: whole.n_dofs(), mesh: Known::of(&whole) })
    }

    /// A vector of the whole mesh, from those that all processes have of it.
    pub(super) fn gathered(&self, own: Vec<f64>) -> Vec<f64> {
        match &self.own {
            Some((sharing, places)) => sharing.gathered(&own, places, self.size),
            None => own,
        }
    }

    /// What this process has of a vector of the whole mesh.
    pub(super) fn part(&self, all: &[f64]) -> Vec<f64> {
        match &self.own {
            Some((_, places)) => places.iter().map(|&place| all[place]).collect(),
            None => all.to_vec(),
        }
    }
}
