//! Mesh files: from bytes to a [`Mesh`], for all formats.
//!
//! [`MeshFormat`] is detected from the first bytes, else from the file name. One reader per format (`gmsh`, `abaqus`;
//! `vtk` for both VTK formats) turns the bytes into `Contents`: nodes, and blocks of elements of one kind with their
//! tags. The remaining steps are common. `serendipity` adds the face nodes that quadratic serendipity elements lack.
//! `node_sets` finds the facets of named node sets. `convert` selects the cells and moves equispaced nodes to the
//! Lagrange nodes. Elements of the cells' dimension give cell tags, those of one dimension less boundary tags. `quads`
//! splits triangles among quadrilaterals into quadrilaterals; any other mixture is an error.
//!
//! | format | tags |
//! | --- | --- |
//! | Gmsh | the names of physical groups, or their numbers where they have none; of curves and points, too |
//! | VTK | the values of one array of cell data, as text (selected by `vtk::tags`) |
//! | MFEM | attributes of elements and boundary elements; names of attribute sets |
//! | Abaqus | element sets; surfaces; node sets (the facets that they contain, else edges and points) |
//!
//! The readers do not trust their input. They compare every count with the remaining bytes before they allocate memory;
//! every error states the position and the expected content.
//!
//! No external reader is used: `vtkio` depends on outdated parser releases and a C library, and its errors have no
//! positions. No crate reads the sets and surfaces of Abaqus.

mod abaqus;
mod contents;
mod convert;
mod cursor;
pub mod gmsh;
mod mfem;
mod node_map;
mod node_sets;
mod quads;
mod serendipity;
mod source_order;
pub mod vtk;

use super::{Mesh, MeshError};
use crate::support::input::{self, BEGINNING, InputError};
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// The supported file formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeshFormat {
    /// Gmsh 2.2 and 4.1.
    Gmsh,
    /// VTK's XML files of unstructured grids.
    Vtu,
    /// VTK's legacy files.
    Vtk,
    /// Abaqus's input files.
    Abaqus,
    /// MFEM's mesh files, versions 1.0 to 1.3.
    Mfem,
}

impl MeshFormat {
    /// All formats.
    pub const ALL: [Self; 5] = [Self::Gmsh, Self::Vtu, Self::Vtk, Self::Abaqus, Self::Mfem];

    /// Returns the file name extension of the format.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Gmsh => "msh",
            Self::Vtu => "vtu",
            Self::Vtk => "vtk",
            Self::Abaqus => "inp",
            Self::Mfem => "mesh",
        }
    }

    /// Detects the format from the bytes, else from the file name.
    pub fn of(path: &Path, bytes: &[u8]) -> Option<Self> {
        Self::seen(bytes).or_else(|| {
            let extension = path.extension()?.to_str()?.to_ascii_lowercase();
            Self::ALL.into_iter().find(|format| format.extension() == extension)
        })
    }

    /// Detects the format from the first bytes.
    fn seen(bytes: &[u8]) -> Option<Self> {
        let bytes = &bytes[..bytes.len().min(BEGINNING as usize)];
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes).trim_ascii_start();
        let has = |word: &[u8]| bytes.windows(word.len()).any(|found| found == word);
        if bytes.starts_with(b"$MeshFormat") {
            Some(Self::Gmsh)
        } else if bytes.starts_with(b"<VTKFile") || bytes.starts_with(b"<?xml") && has(b"<VTKFile")
        {
            Some(Self::Vtu)
        } else if bytes.starts_with(b"# vtk DataFile") {
            Some(Self::Vtk)
        } else if bytes.starts_with(b"**")
            || bytes.starts_with(b"*") && bytes.get(1).is_some_and(u8::is_ascii_alphabetic)
        {
            Some(Self::Abaqus)
        } else if bytes.starts_with(b"MFEM ") {
            Some(Self::Mfem)
        } else {
            None
        }
    }
}

impl fmt::Display for MeshFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gmsh => "Gmsh",
            Self::Vtu => "VTU",
            Self::Vtk => "VTK",
            Self::Abaqus => "Abaqus",
            Self::Mfem => "MFEM",
        })
    }
}

/// Position of an error in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePosition {
    /// A line of a text file, from 1.
    Line(usize),
    /// A byte of a binary file, from 0.
    Byte(usize),
}

impl fmt::Display for FilePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// Error of a mesh reader.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read the mesh file {path}: {error}")]
    Open {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file of no known format.
    #[error(
        "expected a mesh of Gmsh (.msh), VTK (.vtu, or legacy .vtk), Abaqus (.inp) or MFEM (.mesh), but neither the \
         file's first bytes nor its name are those of one"
    )]
    Format,
    /// A violation of the format.
    #[error("{place}: expected {expected}, found {found}")]
    Syntax {
        /// The position.
        place: FilePosition,
        /// The expected content.
        expected: String,
        /// The content found.
        found: String,
    },
    /// A count that exceeds the rest of the file.
    #[error(
        "{place}: {count} {what} are announced, but only {left} bytes are left; \
         the file is truncated or corrupt"
    )]
    Count {
        /// The position.
        place: FilePosition,
        /// The counted items.
        what: &'static str,
        /// The announced number.
        count: u64,
        /// The number of bytes left.
        left: usize,
    },
    /// A correct file with an unsupported feature.
    #[error("{place}: {what}")]
    Unsupported {
        /// The position.
        place: FilePosition,
        /// The unsupported feature, and the remedy.
        what: String,
    },
    /// A file without a required part.
    #[error("the file has no {0}")]
    Missing(String),
    /// A file without lines on the x axis, triangles, quadrilaterals, tetrahedra or hexahedra.
    #[error(
        "the file has no cells of dimension 2 or 3, and no lines on the x axis, only {found}{advice}"
    )]
    NoCells {
        /// The elements found.
        found: String,
        /// A hint at the cause, or the end of the sentence.
        advice: &'static str,
    },
    /// Several kinds of cells.
    #[error(
        "the mesh mixes {0}; a mesh must have one kind of cell of one order (recombine all cells or none)"
    )]
    Mixed(String),
    /// An element with an undefined node.
    #[error("element {element} uses node {node}, which the file does not define")]
    UnknownNode {
        /// The element's number.
        element: u64,
        /// The node's number.
        node: u64,
    },
    /// Two nodes with one number.
    #[error("{place}: node {node} is at ({}) here, and at ({}) before", shown(&.at[0]), shown(&.at[1]))]
    NodeTwice {
        /// The position of the second.
        place: FilePosition,
        /// The node's number.
        node: u64,
        /// The coordinates of the second and of the first.
        at: Box<[[f64; 3]; 2]>,
    },
    /// A file whose mesh is invalid.
    #[error(transparent)]
    Mesh(#[from] MeshError),
}

fn shown([x, y, z]: &[f64; 3]) -> String {
    format!("{x}, {y}, {z}")
}

/// Reads a mesh from a file.
///
/// # Errors
///
/// The file cannot be read, has no known format, or holds no valid mesh.
pub fn read(path: &Path) -> Result<Mesh, ReadError> {
    let bytes = bytes(path)?;
    parse(MeshFormat::of(path, &bytes).ok_or(ReadError::Format)?, &bytes)
}

/// Reads a mesh from the contents of a file.
///
/// # Errors
///
/// The file is broken or holds no valid mesh.
pub fn parse(format: MeshFormat, bytes: &[u8]) -> Result<Mesh, ReadError> {
    convert::convert(match format {
        MeshFormat::Gmsh => gmsh::contents(bytes)?,
        MeshFormat::Vtu => vtk::xml(bytes)?,
        MeshFormat::Vtk => vtk::legacy(bytes)?,
        MeshFormat::Abaqus => abaqus::contents(bytes)?,
        MeshFormat::Mfem => mfem::contents(bytes)?,
    })
}

/// Reads a file, if memory suffices for its bytes and about as much for the parsed contents.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let found = input::read(path, 2.0, |bytes| MeshFormat::seen(bytes).is_some());
    found.map_err(|error| match error {
        InputError::Open(error) => ReadError::Open { path: path.display().to_string(), error },
        InputError::Memory(error) => MeshError::Memory(error).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_seen_from_the_bytes_and_else_from_the_name() {
        let of = |name: &str, bytes: &[u8]| MeshFormat::of(Path::new(name), bytes);
        assert_eq!(of("a.mesh", b"$MeshFormat\n"), Some(MeshFormat::Gmsh));
        assert_eq!(of("a.msh", b"# vtk DataFile Version 3.0\n"), Some(MeshFormat::Vtk));
        assert_eq!(
            of("a", b"\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<VTKFile"),
            Some(MeshFormat::Vtu)
        );
        assert_eq!(of("a", b"** made by hand\n*NODE\n"), Some(MeshFormat::Abaqus));
        assert_eq!(of("a", b"\r\n*Heading\r\n"), Some(MeshFormat::Abaqus));
        assert_eq!(of("a", b"MFEM mesh v1.0\n"), Some(MeshFormat::Mfem));
        assert_eq!(of("a.VTU", b"solid"), Some(MeshFormat::Vtu));
        assert_eq!(of("a.stl", b"solid"), None);
        assert_eq!(of("a", b"* * *"), None);
    }
}
