//! Rows of data for the cells and points of a mesh, by the order of its source.

use super::source_order::DataRows;
use super::{Mesh, SourceOrder, generate};

impl Mesh {
    /// Returns the rows of cell data, for each possible numbering: with and without elements of lower dimension.
    pub fn cell_rows(&self) -> Vec<DataRows> {
        match &self.order_of_source {
            SourceOrder::Native | SourceOrder::CoarseGrid(_) => {
                vec![DataRows::own(self.n_cells())]
            }
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
            SourceOrder::Native | SourceOrder::CoarseGrid(_) | SourceOrder::Refined(_) => {
                if self.order > 1 {
                    return None;
                }
                DataRows::own(self.points.len())
            }
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
