//! Gmsh files: format 2 and 4.1, text and binary, straight and curved cells, physical names.
//!
//! From a file to a [`Mesh`] in three steps: `cursor` reads numbers from text or binary alike and
//! knows the place for messages; `version2` and `version4` turn the sections into plain lists
//! (`Contents`); `convert` picks the cells, moves Gmsh's equispaced nodes to ours and gives the tags
//! their names. Physical groups of the cells' dimension become cell tags, those one dimension
//! below become boundary tags; a group without a name is called by its number. Triangles among
//! quadrilaterals are cut into quadrilaterals (`quads`); any other mixture is refused.
//!
//! A file is never trusted: every count is compared with the bytes that are left before anything is
//! allocated, and every error says where it was found and what was expected there.
//!
//! The format is described in Gmsh's reference manual, chapter "Gmsh mesh file formats".

mod convert;
mod cursor;
mod kinds;
mod quads;
mod version2;
mod version4;

use super::{Mesh, MeshError};
use crate::memory::{Bytes, Room};
use cursor::Cursor;
use kinds::Kind;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use thiserror::Error;

/// The most bytes that are taken from what is no file on a disk and may have no end.
const MOST_STREAMED: u64 = 16 << 30;

/// As many of them show whether they can be a mesh.
const BEGINNING: u64 = 1 << 12;

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

/// Why a Gmsh file cannot be read.
#[derive(Debug, Error)]
pub enum GmshError {
    /// The file cannot be opened or read.
    #[error("cannot read the mesh file {path}: {error}")]
    Open {
        /// The file.
        path: String,
        /// What the system says.
        error: io::Error,
    },
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
    /// A file without a section that is needed.
    #[error("the file has no ${0} section")]
    Missing(&'static str),
    /// A file without triangles, quadrilaterals, tetrahedra or hexahedra.
    #[error(
        "the file has no cells of dimension 2 or 3, only {0}; was the mesh made with `gmsh -2` or `-3`, \
             and do physical groups cover the domain? One dimension is not there yet: a strip of quadrilaterals, one \
             cell wide and without conditions along it, takes its place"
    )]
    NoCells(String),
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

/// Reads a mesh from a Gmsh file.
pub fn read(path: &Path) -> Result<Mesh, GmshError> {
    let open = |error| GmshError::Open { path: path.display().to_string(), error };
    let length = std::fs::metadata(path).map_err(open)?.len() as f64;
    // The file, and about as much again for what it says.
    Room::check(|| format!("reading a file of {}", Bytes(length)), 2.0 * length)
        .map_err(MeshError::Memory)?;
    let bytes = bytes(path).map_err(open)?;
    parse(&bytes)
}

/// The bytes of a file, or of a stream that has an end.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() {
        // What does not fit into memory is an error then, because the size is known.
        drop(file);
        return std::fs::read(path);
    }
    stream(file, MOST_STREAMED)
}

/// What comes out of a stream: all, or its beginning where it does not begin as a mesh.
fn stream(mut from: impl io::Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.by_ref().take(BEGINNING).read_to_end(&mut bytes)?;
    if bytes.trim_ascii_start().starts_with(b"$MeshFormat") {
        from.take(most).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > most {
        let text = format!("it gives more than {} GiB; save it to a file", most >> 30);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Reads a mesh from the contents of a Gmsh file.
pub fn parse(bytes: &[u8]) -> Result<Mesh, GmshError> {
    convert::convert(contents(bytes)?)
}

/// What a file says, before anything is made of it.
#[derive(Debug, Default)]
struct Contents {
    /// Physical names by dimension and number.
    names: BTreeMap<(u8, i64), String>,
    /// Physical groups by dimension and entity (format 4).
    entities: BTreeMap<(u8, i64), Vec<i64>>,
    /// The numbers of the nodes.
    node_numbers: Vec<u64>,
    /// Their coordinates.
    points: Vec<[f64; 3]>,
    /// Where the numbers stand.
    node_marks: Vec<usize>,
    blocks: Vec<Block>,
    /// Whether an element in several groups is written several times (format 2).
    repeats: bool,
}

/// Elements of one kind in one entity.
#[derive(Debug)]
struct Block {
    kind: Kind,
    entity: i64,
    /// The physical groups, where the elements name them themselves (format 2).
    groups: Vec<i64>,
    /// The numbers of the elements.
    numbers: Vec<u64>,
    /// The numbers of their nodes, in Gmsh's order.
    nodes: Vec<u64>,
}

fn contents(bytes: &[u8]) -> Result<Contents, GmshError> {
    let mut cursor = Cursor::new(bytes);
    let version = header(&mut cursor)?;
    let mut contents = Contents { repeats: version == Version::Two, ..Contents::default() };
    let (mut nodes, mut elements) = (false, false);
    while let Some(section) = cursor.section()? {
        match (section.as_str(), version) {
            ("PhysicalNames", _) => names(&mut cursor, &mut contents)?,
            ("Entities", Version::Four) => version4::entities(&mut cursor, &mut contents)?,
            ("PartitionedEntities", Version::Four) => {
                let what = "partitioned meshes are not supported; save the mesh without partitions";
                return Err(cursor.unsupported(cursor.mark(), what));
            }
            ("ParametricNodes", Version::Two) => {
                let what = "parametric nodes of format 2 are not supported; save as format 4.1";
                return Err(cursor.unsupported(cursor.mark(), what));
            }
            ("Nodes", Version::Two) => version2::nodes(&mut cursor, &mut contents)?,
            ("Nodes", Version::Four) => version4::nodes(&mut cursor, &mut contents)?,
            ("Elements", Version::Two) => version2::elements(&mut cursor, &mut contents)?,
            ("Elements", Version::Four) => version4::elements(&mut cursor, &mut contents)?,
            _ => {
                cursor.skip_section(&section)?;
                continue;
            }
        }
        nodes |= section == "Nodes";
        elements |= section == "Elements";
        cursor.end_section(&section)?;
    }
    match (nodes, elements) {
        (false, _) => Err(GmshError::Missing("Nodes")),
        (_, false) => Err(GmshError::Missing("Elements")),
        _ => {
            once(&cursor, &mut contents)?;
            Ok(contents)
        }
    }
}

/// No node may be in two places.
fn once(cursor: &Cursor<'_>, contents: &mut Contents) -> Result<(), GmshError> {
    let marks = std::mem::take(&mut contents.node_marks);
    let numbers = &contents.node_numbers;
    let ascends = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    if ascends {
        return Ok(());
    }
    let mut order: Vec<u32> = (0..).zip(numbers).map(|(place, _)| place).collect();
    order.sort_by_key(|&place| numbers[place as usize]);
    let differ = |pair: &&[u32]| {
        let [first, second] = [pair[0] as usize, pair[1] as usize];
        numbers[first] == numbers[second] && contents.points[first] != contents.points[second]
    };
    // The first in the file.
    let twice = order.windows(2).filter(differ).min_by_key(|pair| pair[1]);
    let Some([first, second]) = twice.map(|pair| [pair[0] as usize, pair[1] as usize]) else {
        return Ok(());
    };
    Err(GmshError::NodeTwice {
        place: cursor.place(marks[second]),
        node: numbers[second],
        at: Box::new([contents.points[second], contents.points[first]]),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Two,
    Four,
}

/// Reads `$MeshFormat` and sets the cursor to text or binary and to the file's byte order.
fn header(cursor: &mut Cursor<'_>) -> Result<Version, GmshError> {
    match cursor.section()? {
        Some(name) if name == "MeshFormat" => {}
        other => {
            let expected = "$MeshFormat at the beginning of a Gmsh file";
            let found = other.map_or("an empty file".to_owned(), |name| format!("${name}"));
            return Err(cursor.syntax(0, expected, &found));
        }
    }
    let mark = cursor.mark();
    let version = match cursor.word()?.as_str() {
        "2" | "2.0" | "2.1" | "2.2" => Version::Two,
        "4.1" => Version::Four,
        other => {
            let what = format!(
                "Gmsh format {other} is not supported, only 2.2 and 4.1 are; \
                 `gmsh FILE -save -format msh41` converts it"
            );
            return Err(cursor.unsupported(mark, what));
        }
    };
    let mark = cursor.mark();
    let binary = match cursor.word()?.as_str() {
        "0" => false,
        "1" => true,
        other => {
            let expected = "the file type 0 (text) or 1 (binary)";
            return Err(cursor.syntax(mark, expected, &format!("`{other}`")));
        }
    };
    let mark = cursor.mark();
    let size = match (cursor.word()?.as_str(), version) {
        ("8", _) => 8,
        ("4", Version::Four) => 4,
        (other, _) => {
            return Err(cursor.syntax(mark, "the data size 8", &format!("`{other}`")));
        }
    };
    if binary {
        cursor.binary(size)?;
    }
    cursor.end_section("MeshFormat")?;
    Ok(version)
}

/// Reads `$PhysicalNames`, which is text in every file.
fn names(cursor: &mut Cursor<'_>, contents: &mut Contents) -> Result<(), GmshError> {
    let count = cursor.text_count("physical names", 7)?;
    for _ in 0..count {
        let (dim, number, name) = cursor.physical_name()?;
        contents.names.insert((dim, number), name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_without_an_end_are_not_read_for_ever() {
        let zeros = stream(io::repeat(0), u64::MAX).expect("no mesh");
        assert_eq!(zeros.len() as u64, BEGINNING);
        assert!(matches!(parse(&zeros), Err(GmshError::Syntax { .. })));
        let mesh = || io::Cursor::new("$MeshFormat").chain(io::repeat(b' '));
        let error = stream(mesh(), 1 << 20).expect_err("too much");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(stream(mesh().take(1 << 16), 1 << 20).expect("an end").len(), 1 << 16);
    }
}
