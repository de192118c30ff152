//! Why a file gives no data and no state: each message says what there is, and what was needed.

use super::NpyError;
use crate::mesh::read::ReadError;
use crate::space::SpaceError;
use crate::support::memory::TooMuch;
use fem_dsl::source::shortened;
use thiserror::Error;

/// Why a file gives no values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be opened or read.
    #[error("it cannot be read: {0}")]
    Open(std::io::Error),
    /// A folder, a pipe, a device.
    #[error("it is no file\nhelp: save the data to a file")]
    NoFile,
    /// More than there is memory for.
    #[error(transparent)]
    Memory(#[from] TooMuch),
    /// Neither of the formats.
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
    /// A name for what has none.
    #[error("a `.npy` file holds one array, which has no name\nhelp: leave \"{}\" out", shortened(.name))]
    Named {
        /// The name.
        name: String,
    },
    /// No such array where it should be.
    #[error("it has no array \"{}\" {place}; {}", shortened(.name), listed(.there))]
    NoArray {
        /// Its name.
        name: String,
        /// Where it should be.
        place: &'static str,
        /// All arrays that there are.
        there: Vec<String>,
    },
    /// Another number of components.
    #[error("a value has {found} components there, but {expected} here")]
    Components {
        /// Those of the array.
        found: usize,
        /// Those of the data.
        expected: usize,
    },
    /// Another number of values.
    #[error("it has values for {found} {what}, but the mesh has {}", either(.expected))]
    Count {
        /// Cells or nodes.
        what: &'static str,
        /// How many there are in the file.
        found: usize,
        /// How many there are in the mesh, in each way of counting.
        expected: Vec<usize>,
    },
    /// Cells or nodes in other places.
    #[error(
        "it is of another mesh with as many {what}: number {number} is at {} there, and at {} here\n\
         help: values stand in the order in which the mesh file has its {what}",
        shown(.there), shown(.here)
    )]
    Elsewhere {
        /// Cells or nodes.
        what: &'static str,
        /// Which, from 0.
        number: usize,
        /// Where it is in the file.
        there: [f64; 3],
        /// Where it is in the mesh.
        here: [f64; 3],
    },
    /// A mesh with nodes that its file did not have.
    #[error(
        "the mesh has nodes that its file lacks (they complete cells, or cut them), for which there is no value\n\
         help: give this data on cells"
    )]
    AddedNodes,
    /// A generated mesh whose nodes have no numbers.
    #[error(
        "a generated mesh of order {order} has no numbering of its nodes\nhelp: give this data on cells, or take `order: 1`"
    )]
    Unnumbered {
        /// Its order.
        order: usize,
    },
    /// Rows for the nodes of a refined mesh, whose order nothing outside of this program knows.
    #[error(
        "the nodes of a refined mesh have no order that the rows of a `.npy` could follow\n\
         help: give this data on cells, or as an array of a `.vtu` of that mesh, or read a mesh that needs no `refine`"
    )]
    Refined,
    /// A state on another mesh.
    #[error("it was written on {}", other_mesh(.counts))]
    OtherMesh {
        /// Cells, vertices and order of the geometry there, and here.
        counts: [[i64; 3]; 2],
    },
    /// A state of another version of the library.
    #[error(
        "its coefficients are of version {found}, and this program reads version {known}\nhelp: solve again"
    )]
    Version {
        /// What the file says.
        found: i64,
        /// What is read.
        known: i64,
    },
    /// A state whose numbers do not go together.
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
        /// Its name.
        name: String,
        /// Its degree.
        degree: usize,
    },
    /// A space that cannot be numbered.
    #[error(transparent)]
    Space(#[from] SpaceError),
}

fn listed(names: &[String]) -> String {
    /// As many are named.
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

fn other_mesh([there, here]: &[[i64; 3]; 2]) -> String {
    if there == here {
        return format!(
            "another mesh of as many cells ({}) and vertices ({})\nhelp: solve on the mesh of the file",
            here[0], here[1]
        );
    }
    let say = |[cells, vertices, order]: &[i64; 3]| {
        format!("{cells} cells and {vertices} vertices, of order {order}")
    };
    format!(
        "another mesh: {} there, {} here\nhelp: solve on the mesh of the file",
        say(there),
        say(here)
    )
}
