//! Original numbering of cells and points: the order of data for the mesh.
//!
//! | mesh | order of its cells and points |
//! | --- | --- |
//! | from a file | that of the file; for Abaqus, ascending numbers |
//! | `box` | x fastest, then y, then z; the simplices of a square or cube are consecutive |
//! | another generator | that of the mesh and of its `.vtu` output |
//! | from a program | that of the input |

/// No index: a point that was added after the source was read.
pub const NOWHERE: u32 = u32::MAX;

/// Indices of cells and points in their source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceNumbering {
    /// The index of each cell; the parts of a split cell share one.
    pub cells: Vec<u32>,
    /// The number of elements of any dimension in the source.
    pub all_cells: usize,
    /// The index of each point; `u32::MAX` if it has none.
    pub points: Vec<u32>,
    /// The number of points in the source.
    pub all_points: usize,
}

impl SourceNumbering {
    /// Returns the identity.
    pub(super) fn given(n_cells: usize, n_points: usize) -> Self {
        Self {
            cells: (0..n_cells as u32).collect(),
            all_cells: n_cells,
            points: (0..n_points as u32).collect(),
            all_points: n_points,
        }
    }
}

/// For each cell or point of a mesh, its row of data; and the number of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct DataRows {
    /// The row of each; [`NOWHERE`] for none.
    pub of: Vec<u32>,
    /// The number of rows.
    pub count: usize,
}

impl DataRows {
    /// Returns the identity for `count` rows.
    pub fn own(count: usize) -> Self {
        Self { of: (0..count as u32).collect(), count }
    }
}
