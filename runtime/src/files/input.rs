//! Data and states from files: an array of a `.vtu` or `.npy` file → values on cells, or at the nodes of a space.
//!
//! Values follow the order of the mesh file ([`crate::mesh::SourceNumbering`]). A `.vtu` also has the positions of
//! cells and points, which are compared with the mesh. This verifies the order, and also permits files of `wf run`,
//! whose cells have another order. Nodal values are interpolated. A state with stored coefficients ([`state`]) is
//! restored exactly.

pub(crate) mod cells;
mod error;
mod fit;
mod npy;
mod refine;
pub(crate) mod state;
pub mod system;

use crate::mesh::Mesh;
use crate::mesh::partition::Partition;
use crate::mesh::read::MeshFormat;
use crate::mesh::read::vtk::data::{Association, DataArray, VtuData, data};
use crate::mesh::source_order::DataRows;
use crate::space::Space;
use crate::support::input::{self, InputError};
pub use error::FileError;
use fem_dsl::point::Shape;
use fem_dsl::problem::FileArray;
use fem_dsl::source::{TableFolder, shortened};
use kernels_gen::element::Lagrange;
pub use npy::NpyError;
use npy::NpyTable;
use state::StoredField;
use std::path::Path;

/// Tolerance of positions, relative to the largest coordinate: files may have single precision.
const SINGLE: f64 = 1e-6;

/// Nodal values, and a note on their origin.
#[derive(Clone, Debug, PartialEq)]
pub struct NodalValues {
    /// Values node by node, with interleaved components.
    pub values: Vec<f64>,
    /// The conversion of the file's numbers, if any.
    pub note: Option<String>,
}

/// Request of an array for a mesh.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRequest<'a> {
    stored: &'a FileArray,
    /// The name of the array.
    name: &'a str,
    shape: Shape,
    mesh: &'a Mesh,
}

impl<'a> ArrayRequest<'a> {
    /// Requests data or a state with this name and shape; `own` is the default array name.
    pub fn new(stored: &'a FileArray, own: &'a str, shape: Shape, mesh: &'a Mesh) -> Self {
        Self { stored, name: stored.array.as_deref().unwrap_or(own), shape, mesh }
    }

    /// Reads the data from the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is damaged.
    pub fn read(self) -> Result<ParsedFile<'a>, FileError> {
        self.read_bytes(&bytes(&self.stored.path)?)
    }

    /// Reads the data from the bytes of the file.
    ///
    /// # Errors
    ///
    /// The file is damaged.
    pub fn read_bytes(self, bytes: &[u8]) -> Result<ParsedFile<'a>, FileError> {
        if npy::is_one(bytes) {
            return match &self.stored.array {
                Some(name) => Err(FileError::Named { name: name.clone() }),
                None => {
                    Ok(ParsedFile { wanted: self, contents: FileContents::Npy(npy::read(bytes)?) })
                }
            };
        }
        if MeshFormat::of(&self.stored.path, bytes) != Some(MeshFormat::Vtu) {
            return Err(FileError::Format);
        }
        let of_state = state::names(self.name);
        let wanted = |section: Association, name: &str| match section {
            Association::File => {
                name == state::mesh_name() || of_state.iter().any(|own| own == name)
            }
            Association::Points | Association::Cells => name == self.name,
        };
        Ok(ParsedFile { wanted: self, contents: FileContents::Vtu(data(bytes, wanted)?) })
    }
}

/// Contents of a file.
#[derive(Debug)]
enum FileContents {
    Npy(NpyTable),
    Vtu(VtuData),
}

/// A parsed file.
#[derive(Debug)]
pub struct ParsedFile<'a> {
    wanted: ArrayRequest<'a>,
    contents: FileContents,
}

impl ParsedFile<'_> {
    /// Returns the values on the cells of the mesh, in cell order.
    ///
    /// # Errors
    ///
    /// The file has no such values, or belongs to another mesh.
    pub fn on_cells(&self) -> Result<Vec<f64>, FileError> {
        self.wanted.on_cells(&self.contents)
    }

    /// Returns the values at the nodes of a space.
    ///
    /// # Errors
    ///
    /// The file has no such values, or belongs to another mesh.
    pub fn at_nodes(&self, space: &Space, partition: &Partition) -> Result<NodalValues, FileError> {
        let wanted = self.wanted;
        if let FileContents::Vtu(data) = &self.contents
            && let Some(state) = StoredField::of(data, wanted.name, wanted.mesh)?
        {
            return wanted.state(&state, space, partition);
        }
        let values = if space.element().degree() == 0 {
            fit::by_cell(space, &self.on_cells()?)
        } else {
            let (geometry, values) = wanted.at_points(&self.contents)?;
            fit::interpolated(geometry, wanted.mesh.nodes(), &values, space)
        };
        Ok(NodalValues { values, note: None })
    }
}

impl ArrayRequest<'_> {
    /// Returns the values on the cells of the mesh; values of its coarse mesh are inherited.
    fn on_cells(self, contents: &FileContents) -> Result<Vec<f64>, FileError> {
        let count = match contents {
            FileContents::Npy(table) => table.rows,
            FileContents::Vtu(data) => data.n_cells(),
        };
        if let Some(refined) = self.mesh.refined_from().filter(|_| count != self.mesh.n_cells()) {
            let coarse = ArrayRequest { mesh: &refined.coarse, ..self }.on_cells(contents)?;
            return Ok(refine::on_cells(refined, &coarse, self.shape.components()));
        }
        match contents {
            FileContents::Npy(table) => self.rows_of_cells(table),
            FileContents::Vtu(data) => self.array_of_cells(data),
        }
    }

    /// Returns the values at the geometry nodes of the mesh, and their element; values of its coarse mesh are
    /// interpolated.
    fn at_points(self, contents: &FileContents) -> Result<(Lagrange, Vec<f64>), FileError> {
        let count = match contents {
            FileContents::Npy(table) => table.rows,
            FileContents::Vtu(data) => data.points.len(),
        };
        if let Some(refined) = self.mesh.refined_from()
            && (count != self.mesh.points().len() || self.mesh.order() > 1)
        {
            let (from, values) =
                ArrayRequest { mesh: &refined.coarse, ..self }.at_points(contents)?;
            return Ok(refine::at_points(self.mesh, refined, (from, &values), self.shape));
        }
        let (rows, values) = match contents {
            FileContents::Npy(table) => self.rows_of_points(table)?,
            FileContents::Vtu(data) => self.array_of_points(data)?,
        };
        fit::at_points(self.mesh, &rows, &values, self.shape.components())
    }

    /// Returns a state of this mesh in the numbering of a space, interpolated if the elements differ.
    fn state(
        self,
        state: &StoredField,
        space: &Space,
        partition: &Partition,
    ) -> Result<NodalValues, FileError> {
        let (found, expected) = (state.components, space.components());
        if found != expected {
            return Err(FileError::Components { found, expected });
        }
        if state.element == space.nodal() {
            return Ok(NodalValues { values: state.numbered(space), note: None });
        }
        let [in_file, in_mesh] = [state.element, space.nodal()];
        if in_mesh.is_continuous() && !in_file.is_continuous() {
            let (name, degree) = (self.name.to_owned(), in_file.degree());
            return Err(FileError::Discontinuous { name, degree });
        }
        let of_file = Space::new(self.mesh, partition, in_file, expected)?;
        let values = fit::interpolated(in_file, of_file.nodes(), &state.numbered(&of_file), space);
        let [from, to] = [in_file, in_mesh].map(|element| element.degree());
        let how = if to >= from { "" } else { ", which leaves something out" };
        let note = format!("was of degree {from} and is interpolated to degree {to}{how}");
        Ok(NodalValues { values, note: Some(note) })
    }

    /// Returns the cell array of a `.vtu`, in the order of the mesh.
    fn array_of_cells(self, data: &VtuData) -> Result<Vec<f64>, FileError> {
        let count = data.n_cells();
        let (components, values) = self.array(data, Association::Cells, count)?;
        let (mesh, of_source) = (self.mesh, self.of_cells());
        let vertices = mesh.cell().vertex_count();
        let off = |rows: &DataRows| {
            // The parts of split cells have other centres.
            let cut = rows.count < rows.of.len();
            let places = rows.of.iter().enumerate().filter(|_| !cut);
            self.farthest(places.map(|(cell, &row)| {
                let in_file = data.centre(row as usize, vertices);
                (row as usize, in_file.unwrap_or([f64::NAN; 3]), mesh.centre(cell))
            }))
        };
        let rows = self.fitting("cells", count, of_source, mesh.n_cells(), off)?;
        Ok(fit::taken(&rows, &values, components))
    }

    /// Returns the point array of a `.vtu`: the row of each geometry node, and the values.
    fn array_of_points(self, data: &VtuData) -> Result<(DataRows, Vec<f64>), FileError> {
        let count = data.points.len();
        let (_, values) = self.array(data, Association::Points, count)?;
        let (mesh, of_source) = (self.mesh, vec![self.of_points()?]);
        let off = |rows: &DataRows| {
            let vertices = rows.of[..mesh.n_vertices()].iter().zip(mesh.points());
            self.farthest(vertices.filter_map(|(&row, &in_mesh)| {
                Some((row as usize, *data.points.get(row as usize)?, in_mesh))
            }))
        };
        // Higher-order nodes follow the vertices, in an order known only from the source.
        let own = if mesh.order() == 1 { mesh.points().len() } else { usize::MAX };
        Ok((self.fitting("nodes", count, of_source, own, off)?, values))
    }

    /// Returns the rows, in the order of the source or of the mesh, whose positions match the file; `off` gives the
    /// largest deviation.
    fn fitting(
        self,
        what: &'static str,
        count: usize,
        of_source: Vec<DataRows>,
        own: usize,
        off: impl Fn(&DataRows) -> Option<RowDeviation>,
    ) -> Result<DataRows, FileError> {
        let expected = of_source.iter().map(|rows| rows.count).collect();
        let own = (own == count).then(|| DataRows::own(count));
        let all = of_source.into_iter().chain(own).filter(|rows| rows.count == count);
        let mut best: Option<(f64, Option<RowDeviation>, DataRows)> = None;
        for rows in all {
            let farthest = off(&rows);
            let far = farthest.map_or(0.0, |(far, ..)| far);
            if best.as_ref().is_none_or(|(least, ..)| far < *least) {
                best = Some((far, farthest, rows));
            }
        }
        let (lower, upper) = self.mesh.bounding_box();
        let scale = lower.iter().chain(&upper).fold(0.0, |most: f64, x| most.max(x.abs()));
        match best {
            Some((far, _, rows)) if far <= SINGLE * scale => Ok(rows),
            Some((_, Some((_, number, in_file, in_mesh)), _)) => {
                Err(FileError::Elsewhere { what, number, in_file, in_mesh })
            }
            _ => Err(FileError::Count { what, found: count, expected }),
        }
    }

    /// Returns the row with the largest deviation, and its position in the file and in the mesh.
    fn farthest(
        self,
        places: impl Iterator<Item = (usize, [f64; 3], [f64; 3])>,
    ) -> Option<RowDeviation> {
        let far = |(row, in_file, in_mesh): (usize, [f64; 3], [f64; 3])| {
            let most = (0..self.mesh.dim()).map(|axis| (in_file[axis] - in_mesh[axis]).abs());
            // What is no number is as far as can be.
            let most = most.fold(0.0, |most: f64, x| if x <= most { most } else { x });
            (if most.is_nan() { f64::INFINITY } else { most }, row, in_file, in_mesh)
        };
        places.map(far).reduce(|most, next| if next.0 > most.0 { next } else { most })
    }

    fn of_cells(self) -> Vec<DataRows> {
        self.mesh.cell_rows()
    }

    fn of_points(self) -> Result<DataRows, FileError> {
        self.mesh.point_rows().ok_or(FileError::Unnumbered { order: self.mesh.order() })
    }

    /// Returns the rows of a `.npy` for the cells of the mesh.
    fn rows_of_cells(self, table: &NpyTable) -> Result<Vec<f64>, FileError> {
        let all = self.of_cells();
        let fits = all.iter().find(|rows| rows.count == table.rows);
        let rows = fits.ok_or_else(|| miscounted("cells", table.rows, &all))?;
        Ok(fit::taken(rows, &self.columns(table)?, self.shape.components()))
    }

    /// Returns the rows of a `.npy` for the nodes of the mesh.
    fn rows_of_points(self, table: &NpyTable) -> Result<(DataRows, Vec<f64>), FileError> {
        if self.mesh.refined_from().is_some() {
            return Err(FileError::Refined);
        }
        let rows = self.of_points()?;
        match rows.count == table.rows {
            true => Ok((rows, self.columns(table)?)),
            false => Err(miscounted("nodes", table.rows, &[rows])),
        }
    }

    fn columns(self, table: &NpyTable) -> Result<Vec<f64>, FileError> {
        fit::components(&table.values, table.columns, self.shape, self.mesh.dim())
    }

    /// Finds the array; returns its number of components and its `count` values.
    fn array(
        self,
        data: &VtuData,
        section: Association,
        count: usize,
    ) -> Result<(usize, Vec<f64>), FileError> {
        let Some(array) = data.array(section, self.name) else {
            let place = match section {
                Association::Cells => "on cells",
                _ => "at points",
            };
            return Err(FileError::NoArray {
                name: self.name.to_owned(),
                place,
                available: names(data),
            });
        };
        let damaged = || FileError::Damaged { array: self.name.to_owned() };
        let numbers = array.numbers.as_ref().ok_or_else(damaged)?;
        if array.components.checked_mul(count) != Some(numbers.count()) {
            return Err(damaged());
        }
        let values =
            fit::components(&numbers.to_reals(), array.components, self.shape, self.mesh.dim())?;
        Ok((self.shape.components(), values))
    }
}

/// Deviation of a row: distance, row number, position in the file, and position in the mesh.
type RowDeviation = (f64, usize, [f64; 3], [f64; 3]);

fn miscounted(what: &'static str, found: usize, expected: &[DataRows]) -> FileError {
    FileError::Count { what, found, expected: expected.iter().map(|rows| rows.count).collect() }
}

/// Returns the arrays of a file, formatted for messages.
fn names(data: &VtuData) -> Vec<String> {
    let shown = |array: &DataArray, place: &str| format!("\"{}\" {place}", shortened(&array.name));
    let of = |section, place| {
        let own = data.arrays.iter().filter(move |array| array.section == section);
        own.map(move |array| shown(array, place))
    };
    let fields = state::fields(data).map(|field| format!("the field \"{}\"", shortened(field)));
    fields
        .chain(of(Association::Points, "at points"))
        .chain(of(Association::Cells, "on cells"))
        .collect()
}

/// Returns the folder of a text's tables, with their reader.
pub fn tables_in(folder: &Path) -> TableFolder {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    TableFolder { path: folder.to_owned(), read }
}

/// Reads the numbers of a `.npy`, row by row.
///
/// # Errors
///
/// The file cannot be read, or has no double-precision numbers.
pub fn numbers(path: &Path) -> Result<Vec<f64>, FileError> {
    Ok(npy::read(&bytes(path)?)?.values)
}

/// Reads a file, if memory suffices for its bytes and the parsed contents.
fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let found = std::fs::metadata(path).map_err(FileError::Open)?;
    if !found.is_file() {
        return Err(FileError::NoFile);
    }
    input::read(path, 3.0, |_| true).map_err(|error| match error {
        InputError::Open(error) => FileError::Open(error),
        InputError::Memory(error) => error.into(),
    })
}
