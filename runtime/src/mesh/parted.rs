//! The part of a problem's mesh that a process has: from what is said of the mesh → a mesh that all processes make, small where that can
//! be → a part of it → that part as fine as it should be.
//!
//! What all make is what a generator begins with, or what a file has, with no more refinement than gives each process some cells. From
//! there each divides its own ([`crate::mesh::cut`]); of a generator in its plain world, so that points come to lie where the generator has
//! them.

use crate::mesh::cut::{LEAST, TooFewCells};
use crate::mesh::generate::{self, Generator};
use crate::mesh::periodic::{Pair, PeriodicError};
use crate::mesh::refine::forest::refined;
use crate::mesh::{Counts, LoadError, Mesh, bytes_of, load, of_bytes};
use crate::processes::Group;
use fem_dsl::problem::MeshSource;
use std::path::Path;
use std::sync::Arc;

/// The longest file that is sent to other processes, in bytes.
const LONGEST: usize = 1 << 30;

/// What all processes have of a problem's mesh before parts of it are dealt out.
pub struct Begun {
    mesh: Mesh,
    /// A generator, and how often its mesh is divided before it is the one that was asked for.
    by: Option<(Generator, usize)>,
}

/// Why a process has no part of a mesh.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// There are not enough cells to foretell anything ([`Begun::ranks`]).
    #[error(transparent)]
    Few(#[from] TooFewCells),
    /// The mesh cannot be had.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its sides are not periodic.
    #[error(transparent)]
    Periodic(#[from] PeriodicError),
}

/// Reads or generates what so many processes need of the mesh that a problem asks for, as [`load`] does for one.
///
/// # Errors
///
/// A file or a generator that is wrong.
pub fn begin(source: &MeshSource, base: &Path, processes: usize) -> Result<Begun, LoadError> {
    let whole = || Ok(Begun { mesh: load(source, base)?, by: None });
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
    Ok(Begun { mesh, by: Some((generator, times)) })
}

/// The same by all of some processes: a file is read by the first, which sends it to the others.
///
/// # Errors
///
/// A file or a generator that is wrong.
pub fn begin_together(
    source: &MeshSource,
    base: &Path,
    group: &dyn Group,
) -> Result<Begun, LoadError> {
    match source {
        MeshSource::File(file) if group.size() > 1 => {
            let path = base.join(file);
            Ok(Begun { mesh: of_bytes(&path, &sent(&path, group)?)?, by: None })
        }
        _ => begin(source, base, group.size()),
    }
}

/// What a file holds that the first process has read. What it cannot read, or is too long for a message, each reads for itself.
fn sent(path: &Path, group: &dyn Group) -> Result<Vec<u8>, LoadError> {
    let own = (group.rank() == 0).then(|| bytes_of(path)).transpose();
    let read = own.as_ref().ok().and_then(Option::as_deref);
    // A byte more tells a file without any from none.
    let message = read.filter(|bytes| bytes.len() <= LONGEST).map(|bytes| [&[1], bytes].concat());
    let first = group.gather(&message.unwrap_or_default()).into_iter().next();
    match (own?, first.as_deref().and_then(<[u8]>::split_first)) {
        (Some(own), _) => Ok(own),
        (None, Some((_, bytes))) => Ok(bytes.to_vec()),
        (None, None) => bytes_of(path),
    }
}

/// Cells of the mesh that each of so many processes makes before parts are dealt out, of meshes each of which is the one before with its
/// cells not divided: the coarsest that has some for all.
pub fn made_by_all(meshes: &[Counts], processes: usize) -> u64 {
    let cells = || meshes.iter().map(Counts::cells);
    let enough = cells().rfind(|&cells| cells >= (LEAST * processes) as u64);
    enough.or_else(|| cells().next()).unwrap_or(0)
}

impl Begun {
    /// The dimension of the mesh.
    pub fn dim(&self) -> usize {
        self.mesh.dim()
    }

    /// The cells that this process has of the mesh with each of its cells divided so many times and with these periodic sides.
    ///
    /// # Errors
    ///
    /// Sides that are not periodic, more cells than indices can number or memory hold.
    pub fn part(
        self,
        times: usize,
        periodic: &[Pair],
        group: &Arc<dyn Group>,
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

    /// How often cells are divided before parts are dealt out.
    fn before(&self, times: usize, periodic: &[Pair], processes: usize) -> usize {
        match &self.by {
            Some(_) => 0,
            None => self.mesh.divided_before(times, processes, !periodic.is_empty()),
        }
    }

    /// Which of so many processes has each cell of that mesh, in the order of its cells as one process has it: that of
    /// [`load`], refined.
    ///
    /// # Errors
    ///
    /// More processes than cells; those of [`Self::part`].
    pub fn ranks(
        self,
        times: usize,
        periodic: &[Pair],
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

/// What parts are of: a mesh with each of its cells divided so many times, and with these periodic sides.
fn dealt_out(mesh: Mesh, times: usize, periodic: &[Pair]) -> Result<Arc<Mesh>, PartError> {
    let mut whole = refined(mesh, times)?;
    if whole.periodic_sides() != periodic {
        whole.make_periodic(periodic)?;
    }
    Ok(Arc::new(whole))
}
