//! Original numbering of cells and points: the order of data for the mesh.
//!
//! | mesh | order of its cells and points |
//! | --- | --- |
//! | from a file | that of the file; for Abaqus, ascending numbers |
//! | `box` | x fastest, then y, then z; the simplices of a square or cube are consecutive |
//! | another generator | that of the mesh and of its `.vtu` output |
//! | from a program | that of the input |

use super::refined::RefinedMesh;
use super::{Mesh, generate};

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

/// Relation between the order of a mesh and that of its source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum SourceOrder {
    /// The mesh's own order.
    #[default]
    Native,
    /// A grid of squares or cubes.
    Grid([usize; 3]),
    Listed(Box<SourceNumbering>),
    /// The order of a coarser mesh that was refined.
    Refined(Box<RefinedMesh>),
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

impl Mesh {
    /// Returns the rows of cell data, for each possible numbering: with and without elements of lower dimension.
    pub fn cell_rows(&self) -> Vec<DataRows> {
        match &self.order_of_source {
            SourceOrder::Native => vec![DataRows::own(self.n_cells())],
            SourceOrder::Grid(cells) => vec![generate::grid_rows(*cells, self.cell).0],
            SourceOrder::Refined(refined) => refined.rows(),
            SourceOrder::Listed(places) => {
                let mut known = places.cells.clone();
                known.sort_unstable();
                known.dedup();
                let rank = |place: &u32| known.partition_point(|other| other < place) as u32;
                let of = places.cells.iter().map(rank).collect();
                let mut all = vec![DataRows { of, count: known.len() }];
                if places.all_cells != known.len() {
                    all.push(DataRows { of: places.cells.clone(), count: places.all_cells });
                }
                all
            }
        }
    }

    /// Returns the rows of point data at the geometry nodes; `None` if only the vertices have a known order.
    pub fn point_rows(&self) -> Option<DataRows> {
        Some(match &self.order_of_source {
            SourceOrder::Native | SourceOrder::Refined(_) if self.order > 1 => return None,
            SourceOrder::Native | SourceOrder::Refined(_) => DataRows::own(self.points.len()),
            SourceOrder::Grid(cells) => generate::grid_rows(*cells, self.cell).1,
            SourceOrder::Listed(places) => {
                DataRows { of: places.points.clone(), count: places.all_points }
            }
        })
    }

    /// Returns whether the source's geometry nodes are equispaced, as in files, instead of at Lagrange points.
    pub fn is_equispaced(&self) -> bool {
        self.equispaced
    }
}
