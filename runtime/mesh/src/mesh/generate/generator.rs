//! Meshes of generators as a whole, and the cells of a refined subdomain in them.

use super::GenerateError;
use crate::mesh::shape::vertex_function;
use crate::mesh::{Mesh, MeshError};
use fem_dsl::problem::Argument;
use std::collections::{BTreeMap, HashMap};

/// A generator of the language, by name and arguments.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Generator {
    pub(crate) name: String,
    pub(crate) arguments: BTreeMap<String, Argument>,
}

impl Generator {
    /// Generates the mesh.
    pub(crate) fn mesh(&self) -> Result<Mesh, MeshError> {
        super::generate(&self.name, &self.arguments).map_err(failed)
    }

    /// Finds the cells of the generated mesh that coincide with descendants of cells of a coarser mesh. Descendants of
    /// one cell are numbered consecutively. Cell centres in the computational domain identify cells.
    pub(crate) fn cells(
        &self,
        coarse: &Mesh,
        times: usize,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<Vec<u32>, MeshError> {
        let bits = |at: [f64; 3]| at.map(|x| (x + 0.0).to_bits());
        let centres = super::centres(&self.name, &self.arguments).map_err(failed)?;
        let known: HashMap<[u64; 3], u32> = centres.into_iter().map(bits).zip(0..).collect();
        let (cell, points) = (coarse.cell(), coarse.plain_points());
        let (dim, size) = (cell.dim(), 0.5f64.powi(times as i32));
        let each = 1 << (dim * times);
        let found = numbers.map(|number| {
            // Morton order, the coarsest bisection first.
            let way = number as usize % each;
            let bit = |level: usize, axis: usize| way >> (dim * level + axis) & 1;
            let place = |axis| (0..times).map(|level| bit(level, axis) << level).sum::<usize>();
            let at = [0, 1, 2].map(|c| if c < dim { size * (place(c) as f64 + 0.5) } else { 0.0 });
            let mut centre = [0.0; 3];
            for (v, &vertex) in coarse.vertices(number as usize / each).iter().enumerate() {
                let weight = vertex_function(cell, v, at);
                (0..3).for_each(|c| centre[c] += weight * points[vertex as usize][c]);
            }
            known.get(&bits(centre)).copied()
        });
        let found: Option<Vec<u32>> = found.collect();
        found.ok_or(MeshError::Empty)
    }
}

/// Returns the error of a mesh whose subdomains could be generated.
fn failed(error: GenerateError) -> MeshError {
    match error {
        GenerateError::Mesh { error, .. } => error,
        _ => MeshError::Empty,
    }
}
