//! Distributed creation of a problem's mesh: a small initial mesh on all processes → a part per process → local
//! refinement.
//!
//! The initial mesh is a generator's coarse mesh, or that of a file, refined just enough to give each process some
//! cells. Each process then refines its own part ([`crate::mesh::distributed`]). Generated meshes are refined in the
//! computational domain, so that points coincide with those of the generator.

use crate::mesh::distributed::{LEAST, TooFewCells};
use crate::mesh::generate::{self, Generator};
use crate::mesh::periodic::{PeriodicError, PeriodicSides};
use crate::mesh::refine::forest::refined;
use crate::mesh::{EntityCounts, LoadError, Mesh, bytes_of, load, of_bytes};
use crate::processes::ProcessGroup;
use fem_dsl::problem::MeshSource;
use std::path::Path;
use std::sync::Arc;

/// The largest file that is sent to other processes, in bytes.
const LONGEST: usize = 1 << 30;

/// The initial mesh on all processes, before distribution.
pub struct InitialMesh {
    mesh: Mesh,
    /// The generator, and the number of refinements from the initial mesh to the requested one.
    by: Option<(Generator, usize)>,
}

/// Error of the creation of a mesh part.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// Fewer cells than processes ([`InitialMesh::ranks`]).
    #[error(transparent)]
    Few(#[from] TooFewCells),
    /// The mesh cannot be read or generated.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Sides that cannot be identified.
    #[error(transparent)]
    Periodic(#[from] PeriodicError),
}

/// Reads or generates the initial mesh for `processes` processes, like [`load`] for one.
///
/// # Errors
///
/// The file or the generator is invalid.
pub fn begin(source: &MeshSource, base: &Path, processes: usize) -> Result<InitialMesh, LoadError> {
    let whole = || Ok(InitialMesh { mesh: load(source, base)?, by: None });
    let MeshSource::Generator { name, arguments } = source else { return whole() };
    if processes == 1 {
        return whole();
    }
    let counts = generate::counts(name, arguments)?;
    let enough =
        |times: &usize| counts.cells() >> (counts.cell.dim() * times) >= (LEAST * processes) as u64;
    let times = (1..=generate::halvings(name, arguments)).rev().find(enough);
    let Some(times) = times else { return whole() };
    let mesh = generate::coarse(name, arguments, times)?;
    let generator = Generator { name: name.clone(), arguments: arguments.clone() };
    Ok(InitialMesh { mesh, by: Some((generator, times)) })
}

/// Like [`begin`], collectively: the first process reads a file and sends it to the others.
///
/// # Errors
///
/// The file or the generator is invalid.
pub fn begin_together(
    source: &MeshSource,
    base: &Path,
    group: &dyn ProcessGroup,
) -> Result<InitialMesh, LoadError> {
    match source {
        MeshSource::File(file) if group.size() > 1 => {
            let path = base.join(file);
            Ok(InitialMesh { mesh: of_bytes(&path, &sent(&path, group)?)?, by: None })
        }
        _ => begin(source, base, group.size()),
    }
}

/// Broadcasts the file that the first process reads. If it is unreadable or too long, each process reads it.
fn sent(path: &Path, group: &dyn ProcessGroup) -> Result<Vec<u8>, LoadError> {
    let own = (group.rank() == 0).then(|| bytes_of(path)).transpose();
    let read = own.as_ref().ok().and_then(Option::as_deref);
    // A leading byte distinguishes an empty file from none.
    let message = read.filter(|bytes| bytes.len() <= LONGEST).map(|bytes| [&[1], bytes].concat());
    let first = group.gather(&message.unwrap_or_default()).into_iter().next();
    match (own?, first.as_deref().and_then(<[u8]>::split_first)) {
        (Some(own), _) => Ok(own),
        (None, Some((_, bytes))) => Ok(bytes.to_vec()),
        (None, None) => bytes_of(path),
    }
}

/// Returns the number of cells of the initial mesh on each process. `meshes` lists successively coarser meshes; the
/// coarsest with enough cells for all processes is chosen.
pub fn made_by_all(meshes: &[EntityCounts], processes: usize) -> u64 {
    let cells = || meshes.iter().map(EntityCounts::cells);
    let enough = cells().rfind(|&cells| cells >= (LEAST * processes) as u64);
    enough.or_else(|| cells().next()).unwrap_or(0)
}

impl InitialMesh {
    /// Returns the dimension of the mesh.
    pub fn dim(&self) -> usize {
        self.mesh.dim()
    }

    /// Returns the part of this process, after `times` refinements and with these periodic sides.
    ///
    /// # Errors
    ///
    /// Sides that are not periodic; more cells than fit into indices or memory.
    pub fn part(
        self,
        times: usize,
        periodic: &[PeriodicSides],
        group: &Arc<dyn ProcessGroup>,
    ) -> Result<Arc<Mesh>, PartError> {
        let before = self.before(times, periodic, group.size());
        let mut part = dealt_out(self.mesh, before, periodic)?.part(group);
        if let Some((generator, halved)) = self.by {
            let mut own = refined(Arc::unwrap_or_clone(part), halved)?;
            own.be_made_by(generator);
            part = Arc::new(own);
        }
        match times - before {
            0 => Ok(part),
            times => Ok(Arc::new(refined(Arc::unwrap_or_clone(part), times)?)),
        }
    }

    /// Returns the number of refinements before distribution.
    fn before(&self, times: usize, periodic: &[PeriodicSides], processes: usize) -> usize {
        match &self.by {
            Some(_) => 0,
            None => self.mesh.divided_before(times, processes, !periodic.is_empty()),
        }
    }

    /// Returns the rank of each cell, in the cell order of the whole mesh: that of [`load`], refined.
    ///
    /// # Errors
    ///
    /// There are more processes than cells; and those of [`Self::part`].
    pub fn ranks(
        self,
        times: usize,
        periodic: &[PeriodicSides],
        processes: usize,
    ) -> Result<Vec<u32>, PartError> {
        let before = self.before(times, periodic, processes);
        let dealt = dealt_out(self.mesh, before, periodic)?;
        let mut ranks = dealt.ranks(processes)?.to_vec();
        let mut mesh = dealt;
        if let Some((generator, halved)) = self.by {
            let each = 1usize << (mesh.dim() * halved);
            let all = 0..(mesh.n_cells() * each) as u32;
            let cells = generator.cells(&mesh, halved, all).map_err(PeriodicError::Mesh)?;
            let mut of = vec![0; cells.len()];
            for (number, cell) in cells.into_iter().enumerate() {
                of[cell as usize] = ranks[number / each];
            }
            (ranks, mesh) = (of, Arc::new(generator.mesh().map_err(PeriodicError::Mesh)?));
        }
        if times == before {
            return Ok(ranks);
        }
        let fine = mesh.divided_on(times - before)?;
        let (cell_of, each) = (mesh.by_descendants(), 1u32 << (mesh.dim() * (times - before)));
        let rank = |&number: &u32| ranks[cell_of[(number / each) as usize] as usize];
        Ok(fine.descendants().iter().map(rank).collect())
    }
}

/// Returns the mesh to distribute: `times` refinements, with these periodic sides.
fn dealt_out(mesh: Mesh, times: usize, periodic: &[PeriodicSides]) -> Result<Arc<Mesh>, PartError> {
    let mut whole = refined(mesh, times)?;
    if whole.periodic_sides() != periodic {
        whole.make_periodic(periodic)?;
    }
    Ok(Arc::new(whole))
}
