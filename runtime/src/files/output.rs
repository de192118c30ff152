//! Output: solutions as VTU files that ParaView and VTK read, and as triangles that can be drawn ([`surface`]); matrices and
//! arrays as files of Matrix Market and NumPy.
//!
//! From a mesh with fields of any degree to one `.vtu` file of high-order Lagrange cells. The cells'
//! degree is the largest among the geometry and the fields; geometry and fields are
//! interpolated to VTK's equispaced nodes, exactly as long as that degree is at most
//! [`MAX_DEGREE`], the largest that VTK draws.
//!
//! The XML is written here and not by the crate `vtkio`, because that always declares version 1.0 of
//! the format: VTK then takes the nodes of Lagrange hexahedra to be in the order that it used
//! before version 9 and exchanges two edges. Hexahedra are written in version 2.2, everything else in
//! 1.0, which more programs read. Sizes have 64 bits; numbers are appended in raw little-endian
//! form.

mod matrix;
mod npy;
mod sample;
mod series;
pub mod surface;
mod vtu;

use crate::mesh::Mesh;
use crate::processes::any;
use crate::space::Space;
use crate::support::atomic_file;
use fem_dsl::point::Shape;
use kernels_gen::element::Lagrange;
use std::io::Write;
use std::path::Path;
use thiserror::Error;

pub use matrix::write_matrix;
pub use npy::{Number, write_npy};
pub use series::{STEP, Series};

/// The largest degree of a VTK Lagrange cell; fields of higher degree are sampled at its nodes.
pub const MAX_DEGREE: usize = 10;

/// A field to be written at the points.
#[derive(Clone, Copy, Debug)]
pub struct PointField<'a> {
    /// The name that ParaView shows.
    pub name: &'a str,
    /// The shape of a value. Vectors of `dim` components and matrices of `dim` × `dim` are padded
    /// to three dimensions.
    pub shape: Shape,
    /// The element.
    pub element: Lagrange,
    /// The field's nodes, `[cell][local node]`.
    pub nodes: &'a [u32],
    /// The values, node after node, components interleaved.
    pub values: &'a [f64],
}

/// A field with one value a cell.
#[derive(Clone, Copy, Debug)]
pub struct CellField<'a> {
    /// The name that ParaView shows.
    pub name: &'a str,
    /// The shape of a value, padded as for [`PointField`].
    pub shape: Shape,
    /// The values, cell after cell, components interleaved.
    pub values: &'a [f64],
}

/// A field that is to be read back, to the bit, from its coefficients.
#[derive(Clone, Copy, Debug)]
pub struct StateField<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its space.
    pub space: &'a Space,
    /// The coefficients, node after node, components interleaved.
    pub values: &'a [f64],
}

/// Everything that goes into one file.
#[derive(Clone, Debug)]
pub struct Output<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// Fields at the points.
    pub point_fields: Vec<PointField<'a>>,
    /// Fields on the cells.
    pub cell_fields: Vec<CellField<'a>>,
    /// Fields whose coefficients are kept, beside their values at VTK's nodes.
    pub states: Vec<StateField<'a>>,
    /// The time that the fields belong to.
    pub time: Option<f64>,
}

/// Why a file is not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The file or its folder cannot be written.
    #[error("cannot write {path}: {error}; nothing was left behind\nhelp: {}", remedy(.error))]
    Write {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A name for a series that cannot be one.
    #[error("{path} is no name for a series of files: {reason}")]
    Series {
        /// The path.
        path: String,
        /// Why not, and the remedy.
        reason: &'static str,
    },
    /// What should take the bytes does not.
    #[error("cannot write the solution: {error}\nhelp: make room where it goes, or name a file")]
    Stream {
        /// What the system says.
        error: std::io::Error,
    },
    /// A field that does not fit the mesh.
    #[error("the field \"{name}\" has {found} {what}, but the mesh needs {expected}")]
    Field {
        /// The field.
        name: String,
        /// What is counted.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// A field on another kind of cell.
    #[error("the field \"{name}\" is on {field} cells, but the mesh has {mesh} cells")]
    Cell {
        /// The field.
        name: String,
        /// The field's kind of cell.
        field: &'static str,
        /// The mesh's.
        mesh: &'static str,
    },
}

/// Writes a VTU file, whole or not at all.
pub fn write_vtu(path: &Path, output: &Output<'_>) -> Result<(), OutputError> {
    check(output)?;
    let file = vtu::File::new(output);
    atomic_file::write(path, |out| file.write(out)).map_err(|error| failed(path, error))
}

/// Writes the VTU file of each process, and one with the extension `.pvtu` that names them all. All processes call it.
///
/// # Errors
///
/// A file that cannot be written: the one that names them is not there then, if it was not before.
pub fn write_vtu_in_pieces(path: &Path, output: &Output<'_>) -> Result<(), OutputError> {
    let Some(cut) = output.mesh.cut() else { return write_vtu(path, output) };
    let (rank, size) = (cut.group().rank(), cut.group().size());
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let piece = |rank: usize| format!("{stem}-{rank}-of-{size}.vtu");
    let own = write_vtu(&path.with_file_name(piece(rank)), output);
    let failed = any(&**cut.group(), own.is_err());
    own?;
    if failed || rank > 0 {
        return Ok(());
    }
    let pieces: Vec<String> = (0..size).map(piece).collect();
    write_text(&path.with_extension("pvtu"), &vtu::File::new(output).in_pieces(&pieces))
}

/// Writes the bytes of a VTU file to whatever takes them.
pub fn write_vtu_to(out: &mut dyn Write, output: &Output<'_>) -> Result<(), OutputError> {
    check(output)?;
    let written = vtu::File::new(output).write(out).and_then(|()| out.flush());
    written.map_err(|error| OutputError::Stream { error })
}

/// Writes text, whole or not at all.
pub fn write_text(path: &Path, text: &str) -> Result<(), OutputError> {
    write_bytes(path, text.as_bytes())
}

/// Writes bytes, whole or not at all.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    atomic_file::write(path, |out| out.write_all(bytes)).map_err(|error| failed(path, error))
}

/// Whether a file could be written at `path`, tried without leaving anything there: worth asking
/// before hours of work.
pub fn writable(path: &Path) -> Result<(), OutputError> {
    atomic_file::probe(path).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: std::io::Error) -> OutputError {
    OutputError::Write { path: path.display().to_string(), error }
}

fn remedy(error: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{
        FileTooLarge, NotADirectory, NotFound, PermissionDenied, StorageFull,
    };
    match error.kind() {
        NotFound | NotADirectory => "make its folder, or name another file",
        PermissionDenied => "name a file that you may write, in a folder that you may write to",
        StorageFull => "make room on that disk, or name a file on another",
        FileTooLarge => {
            "raise how large files may be (`ulimit -f`), or take a file system that holds larger ones"
        }
        _ => "name another file",
    }
}

fn check(output: &Output<'_>) -> Result<(), OutputError> {
    output.point_fields.iter().try_for_each(|field| check_points(output.mesh, field))?;
    output.cell_fields.iter().try_for_each(|field| check_cells(output.mesh, field))?;
    for StateField { name, space, values } in &output.states {
        let cells = output.mesh.n_cells() * space.nodes_per_cell();
        if space.nodes().len() != cells {
            return wrong(name, "cell nodes", space.nodes().len(), cells);
        }
        if values.len() != space.n_dofs() {
            return wrong(name, "coefficients", values.len(), space.n_dofs());
        }
    }
    Ok(())
}

fn check_points(mesh: &Mesh, field: &PointField<'_>) -> Result<(), OutputError> {
    let cell = field.element.cell();
    if cell != mesh.cell() {
        return Err(OutputError::Cell {
            name: field.name.to_owned(),
            field: cell.name(),
            mesh: mesh.cell().name(),
        });
    }
    let expected = mesh.n_cells() * field.element.count();
    if field.nodes.len() != expected {
        return wrong(field.name, "cell nodes", field.nodes.len(), expected);
    }
    let largest = field.nodes.iter().copied().max().map_or(0, |n| n as usize + 1);
    let needed = largest * field.shape.components();
    match field.values.len() < needed {
        true => wrong(field.name, "values", field.values.len(), needed),
        false => Ok(()),
    }
}

fn check_cells(mesh: &Mesh, field: &CellField<'_>) -> Result<(), OutputError> {
    let expected = mesh.n_cells() * field.shape.components();
    match field.values.len() == expected {
        true => Ok(()),
        false => wrong(field.name, "values", field.values.len(), expected),
    }
}

fn wrong(name: &str, what: &'static str, found: usize, expected: usize) -> Result<(), OutputError> {
    Err(OutputError::Field { name: name.to_owned(), what, found, expected })
}
