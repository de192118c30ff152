//! Output: solutions as files of a format ([`Writer`]: VTU for ParaView and VTK), and as triangles for drawing
//! ([`surface`]); matrices and arrays as Matrix Market and NumPy files.
//!
//! A mesh with fields of any degree becomes one `.vtu` file of high-order Lagrange cells. Their degree is the largest
//! of the geometry and the fields. Both are interpolated to VTK's equispaced nodes, exactly up to degree
//! [`MAX_DEGREE`], the largest that VTK draws.
//!
//! Files have format version 1.0, which more programs read than later ones (meshio refuses 2.2). In it, Lagrange
//! hexahedra have the order before VTK 9, with two edges exchanged, which VTK converts when it reads. Sizes have 64 bits;
//! numbers are appended in raw little-endian form. The crate `vtkio` would add a C library.

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
use kernels_gen::element::{ElementError, Lagrange};
use std::io::Write;
use std::path::{Path, PathBuf};
use thiserror::Error;

pub use matrix::write_matrix;
pub use npy::{NpyNumber, write_npy};
pub use series::{FileSeries, STEP};

/// The largest degree of a VTK Lagrange cell; fields of higher degree are sampled at its nodes.
pub const MAX_DEGREE: usize = 10;

/// A field with values at points.
#[derive(Clone, Copy, Debug)]
pub struct PointField<'a> {
    /// The name in ParaView.
    pub name: &'a str,
    /// The shape of a value. Vectors of `dim` components and `dim` × `dim` matrices are padded to three dimensions.
    pub shape: Shape,
    /// The element.
    pub element: Lagrange,
    /// The field's nodes, `[cell][local node]`.
    pub nodes: &'a [u32],
    /// The values, node after node, components interleaved.
    pub values: &'a [f64],
}

/// A field with one value per cell.
#[derive(Clone, Copy, Debug)]
pub struct CellField<'a> {
    /// The name in ParaView.
    pub name: &'a str,
    /// The shape of a value, padded as for [`PointField`].
    pub shape: Shape,
    /// The values, cell after cell, components interleaved.
    pub values: &'a [f64],
}

/// A field whose coefficients are stored exactly.
#[derive(Clone, Copy, Debug)]
pub struct StateField<'a> {
    /// The name.
    pub name: &'a str,
    /// The space.
    pub space: &'a Space,
    /// The coefficients, node after node, components interleaved.
    pub values: &'a [f64],
}

/// Contents of an output file.
#[derive(Clone, Debug)]
pub struct Output<'a> {
    /// The mesh.
    pub mesh: &'a Mesh,
    /// Fields at the points.
    pub point_fields: Vec<PointField<'a>>,
    /// Fields on the cells.
    pub cell_fields: Vec<CellField<'a>>,
    /// Fields whose coefficients are stored in addition to their values at VTK's nodes.
    pub states: Vec<StateField<'a>>,
    /// The time of the fields.
    pub time: Option<f64>,
}

/// Error of an output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A file or folder that cannot be written.
    #[error("cannot write {path}: {error}; nothing was left behind\nhelp: {}", remedy(.error))]
    Write {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file with the extension of another format.
    #[error(
        "a solution is not written as `.{extension}`, only as `.{}`\nhelp: name the file {name}",
        extensions().join("`, `.")
    )]
    Format {
        /// The extension.
        extension: String,
        /// A name that is possible.
        name: String,
    },
    /// A name that is invalid for a series.
    #[error("{path} is no name for a series of files: {reason}")]
    Series {
        /// The path.
        path: String,
        /// The reason and the remedy.
        reason: &'static str,
    },
    /// A stream that cannot be written.
    #[error("cannot write the solution: {error}\nhelp: make room where it goes, or name a file")]
    Stream {
        /// The system's error.
        error: std::io::Error,
    },
    /// A field that does not match the mesh.
    #[error("the field \"{name}\" has {found} {what}, but the mesh needs {expected}")]
    Field {
        /// The field.
        name: String,
        /// The counted items.
        what: &'static str,
        /// Their number.
        found: usize,
        /// The expected number.
        expected: usize,
    },
    /// Cells without an element of a field's degree.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A field on another cell type.
    #[error("the field \"{name}\" is on {field} cells, but the mesh has {mesh} cells")]
    Cell {
        /// The field.
        name: String,
        /// The cell type of the field.
        field: &'static str,
        /// The cell type of the mesh.
        mesh: &'static str,
    },
}

/// Format of the file of a solution. A new one is a file of this folder, and a line in [`FORMATS`].
pub trait Writer: Sync {
    /// Returns the extension of its files.
    fn extension(&self) -> &'static str;

    /// Writes a file.
    ///
    /// # Errors
    ///
    /// A stream that cannot be written.
    fn write(&self, output: &Output<'_>, out: &mut dyn Write) -> std::io::Result<()>;

    /// Returns the extension of the file that lists the files of several processes.
    fn index_extension(&self) -> &'static str {
        "txt"
    }

    /// Returns the text of that file: the names, unless the format has its own.
    fn index(&self, _output: &Output<'_>, names: &[String]) -> String {
        names.iter().map(|name| format!("{name}\n")).collect()
    }
}

/// The formats of solutions; the first is that of names without an extension.
const FORMATS: [&dyn Writer; 1] = [&vtu::VtuWriter];

/// Returns the extensions of solutions, that of the default format first.
pub fn extensions() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.extension()).collect()
}

/// Returns the format of a file by the extension of its name.
pub fn format_of(path: &Path) -> &'static dyn Writer {
    let named = |format: &&dyn Writer| {
        path.extension().is_some_and(|own| own.eq_ignore_ascii_case(format.extension()))
    };
    FORMATS.into_iter().find(named).unwrap_or(FORMATS[0])
}

/// Returns the file of one of several processes.
pub fn piece_of(path: &Path, rank: usize, size: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = format_of(path).extension();
    path.with_file_name(format!("{stem}-{rank}-of-{size}.{extension}"))
}

/// Returns the file that lists those of several processes.
pub fn index_of(path: &Path) -> PathBuf {
    path.with_extension(format_of(path).index_extension())
}

/// Writes a VTU file atomically.
pub fn write_vtu(path: &Path, output: &Output<'_>) -> Result<(), OutputError> {
    write_file(path, &vtu::VtuWriter, output)
}

/// Writes a VTU file to a stream.
pub fn write_vtu_to(out: &mut dyn Write, output: &Output<'_>) -> Result<(), OutputError> {
    check(output)?;
    let written = vtu::VtuWriter.write(output, out).and_then(|()| out.flush());
    written.map_err(|error| OutputError::Stream { error })
}

/// Writes a solution in the [format](format_of) of its file, atomically. Several processes write a file each, and one
/// that [lists](index_of) them. Collective.
///
/// # Errors
///
/// A file cannot be written; the list is then not created. An extension of no format, which may be that of a source.
pub fn write(path: &Path, output: &Output<'_>) -> Result<(), OutputError> {
    let format = format_of(path);
    let streams = std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    if let Some(extension) = path.extension().filter(|_| !streams)
        && !extension.eq_ignore_ascii_case(format.extension())
    {
        let name = path.with_extension(format.extension()).display().to_string();
        return Err(OutputError::Format { extension: extension.display().to_string(), name });
    }
    let Some(cut) = output.mesh.cut() else { return write_file(path, format, output) };
    let (rank, size) = (cut.group().rank(), cut.group().size());
    let own = write_file(&piece_of(path, rank, size), format, output);
    let failed = any(&**cut.group(), own.is_err());
    own?;
    if failed || rank > 0 {
        return Ok(());
    }
    let name = |rank| {
        piece_of(path, rank, size).file_name().map(|name| name.to_string_lossy().into_owned())
    };
    let names: Vec<String> = (0..size).filter_map(name).collect();
    write_text(&index_of(path), &format.index(output, &names))
}

fn write_file(path: &Path, format: &dyn Writer, output: &Output<'_>) -> Result<(), OutputError> {
    check(output)?;
    atomic_file::write(path, |out| format.write(output, out)).map_err(|error| failed(path, error))
}

/// Writes a text file atomically.
pub fn write_text(path: &Path, text: &str) -> Result<(), OutputError> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file atomically.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), OutputError> {
    atomic_file::write(path, |out| out.write_all(bytes)).map_err(|error| failed(path, error))
}

/// Checks that a file can be written at `path`, without leaving a trace; useful before a long computation.
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
