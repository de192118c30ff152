//! Errors of data and state files; messages give the content found and the content required.

use super::NpyError;
use crate::mesh::read::ReadError;
use crate::space::SpaceError;
use crate::support::memory::InsufficientMemory;
use fem_dsl::source::shortened;
use thiserror::Error;

/// Error of a data or state file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// A file that cannot be opened or read.
    #[error("it cannot be read: {0}")]
    Open(std::io::Error),
    /// A folder, a pipe or a device.
    #[error("it is no file\nhelp: save the data to a file")]
    NoFile,
    /// Insufficient memory.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
    /// An unknown format.
    #[error(
        "it is neither a `.vtu` of VTK nor a `.npy` of NumPy\nhelp: ParaView saves data as `.vtu`, `numpy.save` as `.npy`"
    )]
    Format,
    /// A damaged `.vtu`.
    #[error(transparent)]
    Vtu(#[from] ReadError),
    /// A damaged `.npy`.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// A name for an unnamed array.
    #[error("a `.npy` file holds one array, which has no name\nhelp: leave \"{}\" out", shortened(.name))]
    Named {
        /// The name.
        name: String,
    },
    /// No array with this name and association.
    #[error("it has no array \"{}\" {place}; {}", shortened(.name), listed(.available))]
    NoArray {
        /// The name.
        name: String,
        /// The expected association.
        place: &'static str,
        /// All arrays of the file.
        available: Vec<String>,
    },
    /// A wrong number of components.
    #[error("a value has {found} components there, but {expected} here")]
    Components {
        /// The number in the array.
        found: usize,
        /// The required number.
        expected: usize,
    },
    /// A wrong number of values.
    #[error("it has values for {found} {what}, but the mesh has {}", either(.expected))]
    Count {
        /// The kind of values: cells or nodes.
        what: &'static str,
        /// The number in the file.
        found: usize,
        /// The numbers in the mesh, one per numbering.
        expected: Vec<usize>,
    },
    /// Cells or nodes with other positions.
    #[error(
        "it is of another mesh with as many {what}: number {number} is at {} there, and at {} here\n\
         help: values stand in the order in which the mesh file has its {what}",
        shown(.in_file), shown(.in_mesh)
    )]
    Elsewhere {
        /// The kind of values: cells or nodes.
        what: &'static str,
        /// The index, from 0.
        number: usize,
        /// The position in the file.
        in_file: [f64; 3],
        /// The position in the mesh.
        in_mesh: [f64; 3],
    },
    /// A mesh with nodes that its file does not have.
    #[error(
        "the mesh has nodes that its file lacks (they complete cells, or cut them), for which there is no value\n\
         help: give this data on cells"
    )]
    AddedNodes,
    /// A generated mesh without node numbers.
    #[error(
        "a generated mesh of order {order} has no numbering of its nodes\nhelp: give this data on cells, or take `order: 1`"
    )]
    Unnumbered {
        /// The geometry order.
        order: usize,
    },
    /// Rows for the nodes of a refined mesh, whose order is internal.
    #[error(
        "the nodes of a refined mesh have no order that the rows of a `.npy` could follow\n\
         help: give this data on cells, or as an array of a `.vtu` of that mesh, or read a mesh that needs no `refine`"
    )]
    Refined,
    /// A state of another mesh.
    #[error("it was written on {}", other_mesh(.counts))]
    OtherMesh {
        /// Cells, vertices and geometry order, in the file and of the mesh.
        counts: [[i64; 3]; 2],
    },
    /// A state of another version.
    #[error(
        "its coefficients are of version {found}, and this program reads version {known}\nhelp: solve again"
    )]
    Version {
        /// The version of the file.
        found: i64,
        /// The supported version.
        known: i64,
    },
    /// A state with inconsistent numbers.
    #[error("its array \"{}\" is damaged", shortened(.array))]
    Damaged {
        /// The array.
        array: String,
    },
    /// A discontinuous state for a continuous field.
    #[error(
        "\"{}\" is discontinuous there (degree {degree}), and has no one value at a node between cells\n\
         help: let the field live in `L2({degree})` here too", shortened(.name)
    )]
    Discontinuous {
        /// The name.
        name: String,
        /// The degree.
        degree: usize,
    },
    /// A space that cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

fn listed(names: &[String]) -> String {
    /// Number of arrays in a message.
    const MOST: usize = 20;
    match names.len() {
        0 => "it has none at all".to_owned(),
        n if n > MOST => format!("it has {}, and {} more", names[..MOST].join(", "), n - MOST),
        _ => format!("it has {}", names.join(", ")),
    }
}

fn either(counts: &[usize]) -> String {
    match counts {
        [] => "other".to_owned(),
        [own] => own.to_string(),
        [own, all, ..] => format!("{own}, and its file {all} elements of all dimensions"),
    }
}

fn shown([x, y, z]: &[f64; 3]) -> String {
    format!("({x}, {y}, {z})")
}

fn other_mesh([in_file, in_mesh]: &[[i64; 3]; 2]) -> String {
    if in_file == in_mesh {
        return format!(
            "another mesh of as many cells ({}) and vertices ({})\nhelp: solve on the mesh of the file",
            in_mesh[0], in_mesh[1]
        );
    }
    let say = |[cells, vertices, order]: &[i64; 3]| {
        format!("{cells} cells and {vertices} vertices, of order {order}")
    };
    format!(
        "another mesh: {} there, {} here\nhelp: solve on the mesh of the file",
        say(in_file),
        say(in_mesh)
    )
}
