//! Data arrays of an XML file (`.vtu`): bytes → [`VtuData`], with the values of requested arrays.

use super::numbers::ArrayValues;
use super::xml::{self, is_array};
use crate::mesh::read::ReadError;

/// Association of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Association {
    /// One tuple per point.
    Points,
    /// One tuple per cell.
    Cells,
    /// Field data of the whole file.
    File,
}

impl Association {
    const ALL: [(Self, &'static str); 3] =
        [(Self::File, "FieldData"), (Self::Points, "PointData"), (Self::Cells, "CellData")];
}

/// An array.
#[derive(Debug)]
pub struct DataArray {
    /// Its association.
    pub section: Association,
    /// Its name.
    pub name: String,
    /// The number of components of a tuple.
    pub components: usize,
    /// The values, if requested.
    pub numbers: Option<ArrayValues>,
}

/// Points, cells and arrays of a file.
#[derive(Debug)]
pub struct VtuData {
    /// Coordinates of the points.
    pub points: Vec<[f64; 3]>,
    connectivity: Vec<u64>,
    /// The end of each cell in `connectivity`.
    ends: Vec<u64>,
    /// All arrays.
    pub arrays: Vec<DataArray>,
}

impl VtuData {
    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.ends.len()
    }

    /// Returns the mean of a cell's first `vertices` points: its centre.
    pub fn centre(&self, cell: usize, vertices: usize) -> Option<[f64; 3]> {
        let start = if cell == 0 { 0 } else { *self.ends.get(cell - 1)? as usize };
        let own = self.connectivity.get(start..*self.ends.get(cell)? as usize)?;
        let mut sum = [0.0; 3];
        for &point in own.get(..vertices)? {
            let point = self.points.get(usize::try_from(point).ok()?)?;
            (0..3).for_each(|axis| sum[axis] += point[axis]);
        }
        Some(sum.map(|x| x / vertices as f64))
    }

    /// Finds an array by association and name.
    pub fn array(&self, section: Association, name: &str) -> Option<&DataArray> {
        self.arrays.iter().find(|array| array.section == section && array.name == name)
    }
}

/// Reads a file, with the values of the arrays that `wanted` selects.
pub fn data(
    bytes: &[u8],
    wanted: impl Fn(Association, &str) -> bool,
) -> Result<VtuData, ReadError> {
    xml::with(bytes, |reader, root| {
        let whole = reader.expect(root, "UnstructuredGrid")?;
        let piece = reader.only_piece(root)?;
        let grid = reader.piece(piece)?;
        let mut arrays = Vec::new();
        for (section, element) in Association::ALL {
            let parent = if section == Association::File { whole } else { piece };
            let Some(parent) = reader.child(parent, element) else { continue };
            for node in parent.children().filter(|node| is_array(*node)) {
                let name = node.attribute("Name").unwrap_or_default().to_owned();
                let components = node.attribute("NumberOfComponents").and_then(|n| n.parse().ok());
                let numbers = wanted(section, &name).then(|| reader.array(node)).transpose()?;
                arrays.push(DataArray {
                    section,
                    name,
                    components: components.unwrap_or(1),
                    numbers,
                });
            }
        }
        let (points, connectivity, ends) = (grid.points, grid.connectivity, grid.ends);
        Ok(VtuData { points, connectivity, ends, arrays })
    })
}
