//! Data and states from files: an array of a `.vtu` or a `.npy` → values on the cells of a mesh, or at the nodes of a space.
//!
//! Values stand in the order that the mesh has in its own file ([`crate::mesh::Places`]). A `.vtu` says where its cells and
//! points are, too: those are compared with the mesh, so that the order is known to be right, and so that a file which
//! `wf run` has written, whose cells are in another order, is read as well. What stands at nodes is interpolated from
//! them; a state that was written with its coefficients ([`state`]) has them again, to the bit.

mod fit;
mod npy;
pub(crate) mod state;

use crate::memory::{Bytes, Room, TooMuch};
use crate::mesh::Mesh;
use crate::mesh::places::Rows;
use crate::mesh::read::vtk::data::{Array, Data, Section, data};
use crate::mesh::read::{Format, ReadError};
use crate::partition::Partition;
use crate::space::{Space, SpaceError};
use fem_dsl::point::Shape;
use fem_dsl::problem::Stored;
use fem_dsl::source::shortened;
pub use npy::NpyError;
use npy::Table;
use state::State;
use std::path::Path;
use thiserror::Error;

/// Why a file gives no values.
#[derive(Debug, Error)]
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
    #[error("it has {found} components a value, but {expected} are needed")]
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
    let counts: Vec<String> = counts.iter().map(usize::to_string).collect();
    counts.join(" (with elements of lower dimension ") + if counts.len() > 1 { ")" } else { "" }
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

/// What a file holds.
enum Contents {
    Npy(Table),
    Vtu(Data),
}

/// Values at nodes, and how they came about where that is worth a note.
pub(crate) struct AtNodes {
    pub(crate) values: Vec<f64>,
    pub(crate) note: Option<String>,
}

/// An array of a file that is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    stored: &'a Stored,
    /// Its name.
    name: &'a str,
    shape: Shape,
    mesh: &'a Mesh,
}

impl<'a> Wanted<'a> {
    /// Data or a state for something of this name and shape: an array without a name is called like that.
    pub(crate) fn new(stored: &'a Stored, own: &'a str, shape: Shape, mesh: &'a Mesh) -> Self {
        Self { stored, name: stored.array.as_deref().unwrap_or(own), shape, mesh }
    }

    /// The values on the cells of the mesh, cell by cell.
    pub(crate) fn on_cells(self) -> Result<Vec<f64>, FileError> {
        match self.open()? {
            Contents::Npy(table) => self.rows_of_cells(&table),
            Contents::Vtu(data) => self.array_of_cells(&data),
        }
    }

    /// The values at the nodes of a space, node by node.
    pub(crate) fn at_nodes(
        self,
        space: &Space,
        partition: &Partition,
    ) -> Result<AtNodes, FileError> {
        let by_cell = space.element().degree() == 0;
        let values = match self.open()? {
            Contents::Npy(table) if by_cell => fit::by_cell(space, &self.rows_of_cells(&table)?),
            Contents::Npy(table) => {
                let rows = self.rows("nodes", table.rows, self.of_points()?)?;
                fit::at_nodes(self.mesh, &rows, &self.columns(&table)?, space)?
            }
            Contents::Vtu(data) => {
                if let Some(state) = State::of(&data, self.name, self.mesh)? {
                    return self.state(&state, space, partition);
                }
                match by_cell {
                    true => fit::by_cell(space, &self.array_of_cells(&data)?),
                    false => {
                        let (rows, values) = self.array_of_points(&data)?;
                        fit::at_nodes(self.mesh, &rows, &values, space)?
                    }
                }
            }
        };
        Ok(AtNodes { values, note: None })
    }

    fn open(self) -> Result<Contents, FileError> {
        let bytes = bytes(&self.stored.path)?;
        if npy::is_one(&bytes) {
            return match &self.stored.array {
                Some(name) => Err(FileError::Named { name: name.clone() }),
                None => Ok(Contents::Npy(npy::read(&bytes)?)),
            };
        }
        if Format::of(&self.stored.path, &bytes) != Some(Format::Vtu) {
            return Err(FileError::Format);
        }
        let of_state = state::names(self.name);
        let wanted = |section: Section, name: &str| match section {
            Section::File => name == state::mesh_name() || of_state.iter().any(|own| own == name),
            Section::Points | Section::Cells => name == self.name,
        };
        Ok(Contents::Vtu(data(&bytes, wanted)?))
    }

    /// A state on this mesh in the numbering of a space, interpolated where that is another.
    fn state(
        self,
        state: &State,
        space: &Space,
        partition: &Partition,
    ) -> Result<AtNodes, FileError> {
        let (found, expected) = (state.components, space.components());
        if found != expected {
            return Err(FileError::Components { found, expected });
        }
        if state.element == space.element() {
            return Ok(AtNodes { values: state.numbered(space), note: None });
        }
        let [there, here] = [state.element, space.element()];
        if here.is_continuous() && !there.is_continuous() {
            let (name, degree) = (self.name.to_owned(), there.degree());
            return Err(FileError::Discontinuous { name, degree });
        }
        let of_file = Space::new(self.mesh, partition, there, expected)?;
        let values = fit::interpolated(there, of_file.nodes(), &state.numbered(&of_file), space);
        let [from, to] = [there, here].map(|element| element.degree());
        let how = if to >= from { "" } else { ", which leaves something out" };
        let note = format!("was of degree {from} and is interpolated to degree {to}{how}");
        Ok(AtNodes { values, note: Some(note) })
    }

    /// The array of a `.vtu` on the cells of the mesh.
    fn array_of_cells(self, data: &Data) -> Result<Vec<f64>, FileError> {
        let (components, values) = self.array(data, Section::Cells, data.n_cells())?;
        let (count, vertices) = (data.n_cells(), self.mesh.cell().vertex_count());
        let there = |cell: usize| data.centre(cell, vertices).unwrap_or([f64::NAN; 3]);
        let mut wrong = None;
        for rows in self.candidates(count, self.of_cells(), self.mesh.n_cells()) {
            let places = rows.of.iter().enumerate();
            let mut places = places
                .map(|(cell, &row)| (row as usize, there(row as usize), self.mesh.centre(cell)));
            // The pieces of a cell that was cut are elsewhere.
            let cut = rows.count < rows.of.len();
            match places.find(|(_, there, here)| !cut && !self.is_same(there, here)) {
                None => return Ok(fit::taken(&rows, &values, components)),
                Some(first) => wrong = wrong.or(Some(first)),
            }
        }
        Err(self.misplaced("cells", count, wrong, &self.of_cells()))
    }

    /// The array of a `.vtu` at its points: which is that of each geometry node, and the values.
    fn array_of_points(self, data: &Data) -> Result<(Rows, Vec<f64>), FileError> {
        let (_, values) = self.array(data, Section::Points, data.points.len())?;
        let (count, own) = (data.points.len(), self.of_points());
        let straight = self.mesh.order() == 1;
        let numbered = own.as_ref().map_or_else(|_| Vec::new(), |rows| vec![rows.clone()]);
        let most = if straight { self.mesh.points().len() } else { usize::MAX };
        let mut wrong = None;
        for rows in self.candidates(count, numbered.clone(), most) {
            let vertices = rows.of[..self.mesh.n_vertices()].iter().zip(self.mesh.points());
            let vertices = vertices.filter_map(|(&row, &here)| {
                Some((row as usize, *data.points.get(row as usize)?, here))
            });
            match { vertices }.find(|(_, there, here)| !self.is_same(there, here)) {
                None => return Ok((rows, values)),
                Some(first) => wrong = wrong.or(Some(first)),
            }
        }
        own?;
        Err(self.misplaced("nodes", count, wrong, &numbered))
    }

    /// The rows of which there are `count`, those of the mesh's source first, then its own.
    fn candidates(self, count: usize, of_source: Vec<Rows>, own: usize) -> Vec<Rows> {
        let own = (own == count).then(|| Rows::own(count));
        of_source.into_iter().chain(own).filter(|rows| rows.count == count).collect()
    }

    fn misplaced(
        self,
        what: &'static str,
        found: usize,
        wrong: Option<(usize, [f64; 3], [f64; 3])>,
        expected: &[Rows],
    ) -> FileError {
        match wrong {
            Some((number, there, here)) => FileError::Elsewhere { what, number, there, here },
            None => {
                let expected = expected.iter().map(|rows| rows.count).collect();
                FileError::Count { what, found, expected }
            }
        }
    }

    /// Whether two points are one, as far as single precision tells.
    fn is_same(self, a: &[f64; 3], b: &[f64; 3]) -> bool {
        let (lower, upper) = self.mesh.bounding_box();
        let dim = self.mesh.dim();
        let scale =
            (0..dim).map(|axis| lower[axis].abs().max(upper[axis].abs())).fold(0.0, f64::max);
        (0..dim).all(|axis| (a[axis] - b[axis]).abs() <= 1e-6 * scale)
    }

    fn of_cells(self) -> Vec<Rows> {
        self.mesh.cell_rows()
    }

    fn of_points(self) -> Result<Rows, FileError> {
        self.mesh.point_rows().ok_or(FileError::Unnumbered { order: self.mesh.order() })
    }

    /// The rows of a `.npy` on the cells of the mesh.
    fn rows_of_cells(self, table: &Table) -> Result<Vec<f64>, FileError> {
        let all = self.of_cells();
        let fits = all.iter().find(|rows| rows.count == table.rows);
        let rows = fits.ok_or_else(|| self.misplaced("cells", table.rows, None, &all))?;
        Ok(fit::taken(rows, &self.columns(table)?, self.shape.components()))
    }

    fn rows(self, what: &'static str, found: usize, rows: Rows) -> Result<Rows, FileError> {
        match rows.count == found {
            true => Ok(rows),
            false => Err(self.misplaced(what, found, None, &[rows])),
        }
    }

    fn columns(self, table: &Table) -> Result<Vec<f64>, FileError> {
        fit::components(&table.values, table.columns, self.shape, self.mesh.dim())
    }

    /// The array of this name: its components as they are needed, and its values for so many things.
    fn array(
        self,
        data: &Data,
        section: Section,
        count: usize,
    ) -> Result<(usize, Vec<f64>), FileError> {
        let Some(array) = data.array(section, self.name) else {
            let place = match section {
                Section::Cells => "on cells",
                _ => "at points",
            };
            return Err(FileError::NoArray {
                name: self.name.to_owned(),
                place,
                there: names(data),
            });
        };
        let damaged = || FileError::Damaged { array: self.name.to_owned() };
        let numbers = array.numbers.as_ref().ok_or_else(damaged)?;
        if array.components.checked_mul(count) != Some(numbers.len()) {
            return Err(damaged());
        }
        let values =
            fit::components(&numbers.to_reals(), array.components, self.shape, self.mesh.dim())?;
        Ok((self.shape.components(), values))
    }
}

/// The arrays of a file, as messages name them.
fn names(data: &Data) -> Vec<String> {
    let shown = |array: &Array, place: &str| format!("\"{}\" {place}", shortened(&array.name));
    let of = |section, place| {
        let own = data.arrays.iter().filter(move |array| array.section == section);
        own.map(move |array| shown(array, place))
    };
    let fields = state::fields(data).map(|field| format!("the field \"{}\"", shortened(field)));
    fields.chain(of(Section::Points, "at points")).chain(of(Section::Cells, "on cells")).collect()
}

/// The bytes of a file, if there is room for them and about as much again for what they say.
fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let found = std::fs::metadata(path).map_err(FileError::Open)?;
    if !found.is_file() {
        return Err(FileError::NoFile);
    }
    let length = found.len() as f64;
    Room::check(|| format!("reading a file of {}", Bytes(length)), 3.0 * length)?;
    std::fs::read(path).map_err(FileError::Open)
}
