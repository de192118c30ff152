//! Data and states from files: an array of a `.vtu` or a `.npy` → values on the cells of a mesh, or at the nodes of a space.
//!
//! Values stand in the order that the mesh has in its own file ([`crate::mesh::Places`]). A `.vtu` says where its cells and
//! points are, too: those are compared with the mesh, so that the order is known to be right, and so that a file which
//! `wf run` has written, whose cells are in another order, is read as well. What stands at nodes is interpolated from
//! them; a state that was written with its coefficients ([`state`]) has them again, to the bit.

mod error;
mod fit;
mod npy;
pub(crate) mod state;

use crate::memory::{Bytes, Room};
use crate::mesh::Mesh;
use crate::mesh::places::Rows;
use crate::mesh::read::Format;
use crate::mesh::read::vtk::data::{Array, Data, Section, data};
use crate::partition::Partition;
use crate::space::Space;
pub use error::FileError;
use fem_dsl::point::Shape;
use fem_dsl::problem::Stored;
use fem_dsl::source::shortened;
pub use npy::NpyError;
use npy::Table;
use state::State;
use std::path::Path;

/// Values at nodes, and how they came about where that is worth a note.
#[derive(Clone, Debug, PartialEq)]
pub struct AtNodes {
    /// Node by node, components interleaved.
    pub values: Vec<f64>,
    /// What was done to the numbers of the file.
    pub note: Option<String>,
}

/// An array of a file that is wanted for a mesh.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    stored: &'a Stored,
    /// Its name.
    name: &'a str,
    shape: Shape,
    mesh: &'a Mesh,
}

impl<'a> Wanted<'a> {
    /// Data or a state for something of this name and shape: an array without a name is called like that.
    pub fn new(stored: &'a Stored, own: &'a str, shape: Shape, mesh: &'a Mesh) -> Self {
        Self { stored, name: stored.array.as_deref().unwrap_or(own), shape, mesh }
    }

    /// Reads the file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn read(self) -> Result<Found<'a>, FileError> {
        self.read_bytes(&bytes(&self.stored.path)?)
    }

    /// Reads what is in the file.
    ///
    /// # Errors
    ///
    /// It is damaged.
    pub fn read_bytes(self, bytes: &[u8]) -> Result<Found<'a>, FileError> {
        if npy::is_one(bytes) {
            return match &self.stored.array {
                Some(name) => Err(FileError::Named { name: name.clone() }),
                None => Ok(Found { wanted: self, contents: Contents::Npy(npy::read(bytes)?) }),
            };
        }
        if Format::of(&self.stored.path, bytes) != Some(Format::Vtu) {
            return Err(FileError::Format);
        }
        let of_state = state::names(self.name);
        let wanted = |section: Section, name: &str| match section {
            Section::File => name == state::mesh_name() || of_state.iter().any(|own| own == name),
            Section::Points | Section::Cells => name == self.name,
        };
        Ok(Found { wanted: self, contents: Contents::Vtu(data(bytes, wanted)?) })
    }
}

/// What a file holds.
#[derive(Debug)]
enum Contents {
    Npy(Table),
    Vtu(Data),
}

/// A file that was read.
#[derive(Debug)]
pub struct Found<'a> {
    wanted: Wanted<'a>,
    contents: Contents,
}

impl Found<'_> {
    /// The values on the cells of the mesh, cell by cell.
    ///
    /// # Errors
    ///
    /// There are none in the file, or it is of another mesh.
    pub fn on_cells(&self) -> Result<Vec<f64>, FileError> {
        match &self.contents {
            Contents::Npy(table) => self.wanted.rows_of_cells(table),
            Contents::Vtu(data) => self.wanted.array_of_cells(data),
        }
    }

    /// The values at the nodes of a space, node by node.
    ///
    /// # Errors
    ///
    /// There are none in the file, or it is of another mesh.
    pub fn at_nodes(&self, space: &Space, partition: &Partition) -> Result<AtNodes, FileError> {
        let wanted = self.wanted;
        if let Contents::Vtu(data) = &self.contents
            && let Some(state) = State::of(data, wanted.name, wanted.mesh)?
        {
            return wanted.state(&state, space, partition);
        }
        let values = if space.element().degree() == 0 {
            fit::by_cell(space, &self.on_cells()?)
        } else {
            let (rows, values) = match &self.contents {
                Contents::Npy(table) => wanted.rows_of_points(table)?,
                Contents::Vtu(data) => wanted.array_of_points(data)?,
            };
            fit::at_nodes(wanted.mesh, &rows, &values, space)?
        };
        Ok(AtNodes { values, note: None })
    }
}

impl Wanted<'_> {
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

    /// The rows of a `.npy` at the nodes of the mesh.
    fn rows_of_points(self, table: &Table) -> Result<(Rows, Vec<f64>), FileError> {
        let rows = self.of_points()?;
        match rows.count == table.rows {
            true => Ok((rows, self.columns(table)?)),
            false => Err(self.misplaced("nodes", table.rows, None, &[rows])),
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
