//! The way from a checked program to a problem and the part of its mesh on this process.

use crate::mesh::initial::{InitialMesh, PartError, begin_together};
use crate::mesh::{LoadError, Mesh};
use crate::processes::ProcessGroup;
use fem_dsl::check::problem::Overrides;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::problem::{MeshSource, Problem};
use fem_dsl::program::Program;
use std::path::Path;
use std::sync::Arc;

/// Error of the preparation of a problem.
#[derive(Debug)]
pub enum PrepareError {
    /// Mistakes in the text or its overrides.
    Language(Vec<Diagnostic>),
    /// A mesh that cannot be generated or read.
    Mesh(LoadError),
    /// A mesh that cannot be distributed or refined, with its problem.
    Part(Box<(Problem, PartError)>),
}

/// Creates a problem of a program, and its mesh by `make` from the source and a folder. Paths in the text start from
/// `folder`, that of an overriding mesh from the current folder.
///
/// # Errors
///
/// Mistakes in the text, errors of `make`.
pub fn prepare_with<M>(
    program: &Program,
    name: &str,
    overrides: &Overrides,
    folder: &Path,
    make: impl FnOnce(&MeshSource, &Path) -> Result<M, LoadError>,
    dim_of: impl FnOnce(&M) -> usize,
) -> Result<(Problem, M), PrepareError> {
    let (source, dim) = program.mesh(name, overrides).map_err(PrepareError::Language)?;
    // Errors of the problem itself are reported before a mesh is read.
    if let Some(dim) = dim {
        program.problem(name, dim, overrides).map_err(PrepareError::Language)?;
    }
    let base = if overrides.mesh.is_none() { folder } else { Path::new("") };
    let mesh = make(&source, base).map_err(PrepareError::Mesh)?;
    let problem = program.problem(name, dim_of(&mesh), overrides);
    let mut problem = problem.map_err(PrepareError::Language)?;
    problem.start_paths_at(folder);
    Ok((problem, mesh))
}

/// Creates a problem, and the part of its refined mesh for this process: the whole mesh for a single one.
///
/// # Errors
///
/// Mistakes in the text, a mesh that cannot be made.
pub fn prepare(
    program: &Program,
    name: &str,
    overrides: &Overrides,
    folder: &Path,
    group: &Arc<dyn ProcessGroup>,
) -> Result<(Problem, Arc<Mesh>), PrepareError> {
    let make = |source: &MeshSource, base: &Path| begin_together(source, base, &**group);
    let (problem, mesh) = prepare_with(program, name, overrides, folder, make, InitialMesh::dim)?;
    match mesh.part(problem.refine, &problem.periodic, group) {
        Ok(part) => Ok((problem, part)),
        Err(error) => Err(PrepareError::Part(Box::new((problem, error)))),
    }
}
