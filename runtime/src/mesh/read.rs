//! Mesh files: from bytes to a [`Mesh`], whichever program wrote them.
//!
//! [`Format`] is seen from the first bytes, else from the name. A reader a format (`gmsh`, `vtk` for
//! both formats of VTK, `abaqus`) turns the bytes into `Contents`: nodes, and blocks of elements of one
//! kind with their tags. The rest is common: `serendipity` completes quadratic elements without nodes on
//! their faces, `node_sets` finds the facets whose nodes have a name, `convert` picks the cells and moves
//! equispaced nodes to ours. Elements of the cells' dimension give cell tags, those one dimension below
//! boundary tags. Triangles among quadrilaterals are cut into quadrilaterals (`quads`); any other
//! mixture is refused.
//!
//! | format | tags |
//! | --- | --- |
//! | Gmsh | the names of physical groups, or their numbers where they have none; of curves and points, too |
//! | VTK | the values of one array of cell data, as text (`vtk::tags` says of which) |
//! | Abaqus | element sets; surfaces; node sets, on facets all of whose vertices they have, else on edges and points |
//!
//! A file is never trusted: every count is compared with the bytes that are left before anything is
//! allocated, and every error says where it was found and what was expected there.
//!
//! These readers are our own. The crate `vtkio` rests on releases of its parsers from years ago and on a
//! library in C, and has no places in its errors; none for Abaqus reads sets and surfaces.

mod abaqus;
mod contents;
mod convert;
mod cursor;
pub mod gmsh;
mod node_sets;
mod places;
mod quads;
mod serendipity;
pub(crate) mod vtk;

use super::{Mesh, MeshError};
use crate::support::input::{self, BEGINNING, InputError};
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Gmsh 2.2 and 4.1.
    Gmsh,
    /// VTK's XML files of unstructured grids.
    Vtu,
    /// VTK's legacy files.
    Vtk,
    /// Abaqus's input files.
    Abaqus,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Gmsh, Self::Vtu, Self::Vtk, Self::Abaqus];

    /// How names of such files end.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Gmsh => "msh",
            Self::Vtu => "vtu",
            Self::Vtk => "vtk",
            Self::Abaqus => "inp",
        }
    }

    /// What the bytes are, else what the name says that they are.
    pub fn of(path: &Path, bytes: &[u8]) -> Option<Self> {
        Self::seen(bytes).or_else(|| {
            let extension = path.extension()?.to_str()?.to_ascii_lowercase();
            Self::ALL.into_iter().find(|format| format.extension() == extension)
        })
    }

    /// What the bytes are by how they begin.
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
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gmsh => "Gmsh",
            Self::Vtu => "VTU",
            Self::Vtk => "VTK",
            Self::Abaqus => "Abaqus",
        })
    }
}

/// Where in a file something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text file, from 1.
    Line(usize),
    /// A byte of a binary file, from 0.
    Byte(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Byte(byte) => write!(f, "byte {byte}"),
        }
    }
}

/// Why a mesh file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("cannot read the mesh file {path}: {error}")]
    Open {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// A file of no known format.
    #[error(
        "expected a mesh of Gmsh (.msh), VTK (.vtu, or legacy .vtk) or Abaqus (.inp), but neither the file's first bytes \
         nor its name are those of one"
    )]
    Format,
    /// Something else than the format prescribes.
    #[error("{place}: expected {expected}, found {found}")]
    Syntax {
        /// Where.
        place: Place,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A count that the rest of the file cannot hold.
    #[error(
        "{place}: {count} {what} are announced, but only {left} bytes are left; \
         the file is truncated or corrupt"
    )]
    Count {
        /// Where.
        place: Place,
        /// What is counted.
        what: &'static str,
        /// How many there should be.
        count: u64,
        /// How many bytes are left.
        left: usize,
    },
    /// A correct file of a sort that is not supported.
    #[error("{place}: {what}")]
    Unsupported {
        /// Where.
        place: Place,
        /// What is not supported, and the remedy.
        what: String,
    },
    /// A file without a part that is needed.
    #[error("the file has no {0}")]
    Missing(String),
    /// A file without triangles, quadrilaterals, tetrahedra or hexahedra.
    #[error(
        "the file has no cells of dimension 2 or 3, only {found}{advice} One dimension is not there yet: a strip of \
         quadrilaterals, one cell wide and without conditions along it, takes its place"
    )]
    NoCells {
        /// What it has.
        found: String,
        /// How that may have come about, or the end of the sentence.
        advice: &'static str,
    },
    /// Several kinds of cells.
    #[error(
        "the mesh mixes {0}; a mesh must have one kind of cell of one order (recombine all cells or none)"
    )]
    Mixed(String),
    /// An element that uses a node that is not there.
    #[error("element {element} uses node {node}, which the file does not define")]
    UnknownNode {
        /// The element's number.
        element: u64,
        /// The node's number.
        node: u64,
    },
    /// Two nodes of one number.
    #[error("{place}: node {node} is at ({}) here, and at ({}) before", shown(&.at[0]), shown(&.at[1]))]
    NodeTwice {
        /// Where the second is.
        place: Place,
        /// The node's number.
        node: u64,
        /// Its coordinates there, and those of the first.
        at: Box<[[f64; 3]; 2]>,
    },
    /// A mesh that is read but makes no sense.
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
/// The file cannot be read, is of no known format, broken, or no mesh that can be used.
pub fn read(path: &Path) -> Result<Mesh, ReadError> {
    let bytes = bytes(path)?;
    parse(Format::of(path, &bytes).ok_or(ReadError::Format)?, &bytes)
}

/// Reads a mesh from the contents of a file.
///
/// # Errors
///
/// The file is broken, or no mesh that can be used.
pub fn parse(format: Format, bytes: &[u8]) -> Result<Mesh, ReadError> {
    convert::convert(match format {
        Format::Gmsh => gmsh::contents(bytes)?,
        Format::Vtu => vtk::xml(bytes)?,
        Format::Vtk => vtk::legacy(bytes)?,
        Format::Abaqus => abaqus::contents(bytes)?,
    })
}

/// The bytes of a file, if there is room for them and about as much again for what they say.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let found = input::read(path, 2.0, |bytes| Format::seen(bytes).is_some());
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
        let of = |name: &str, bytes: &[u8]| Format::of(Path::new(name), bytes);
        assert_eq!(of("a.mesh", b"$MeshFormat\n"), Some(Format::Gmsh));
        assert_eq!(of("a.msh", b"# vtk DataFile Version 3.0\n"), Some(Format::Vtk));
        assert_eq!(of("a", b"\xEF\xBB\xBF<?xml version=\"1.0\"?>\n<VTKFile"), Some(Format::Vtu));
        assert_eq!(of("a", b"** made by hand\n*NODE\n"), Some(Format::Abaqus));
        assert_eq!(of("a", b"\r\n*Heading\r\n"), Some(Format::Abaqus));
        assert_eq!(of("a.VTU", b"solid"), Some(Format::Vtu));
        assert_eq!(of("a.stl", b"solid"), None);
        assert_eq!(of("a", b"* * *"), None);
    }
}
