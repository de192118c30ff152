//! Where the cells and points of a mesh stood before they were sorted: the numbering in which data for them comes.
//!
//! | mesh | order of its cells and points |
//! | --- | --- |
//! | from a file | that of the file; of Abaqus that of their numbers |
//! | `box` | along x first, then y, then z; the simplices of a square or cube follow one another |
//! | another generator | that of the mesh itself, and of the `.vtu` that is written of it |
//! | made by a program | that in which it was given |

use super::refined::Refined;
use super::{Mesh, generate};

/// No place: a point that was made after the source was read.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// The places of cells and points in their source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// That of each cell; several have one where a cell was cut.
    pub cells: Vec<u32>,
    /// How many elements of any dimension the source has.
    pub all_cells: usize,
    /// That of each point; `u32::MAX` where it has none.
    pub points: Vec<u32>,
    /// How many points the source has.
    pub all_points: usize,
}

impl Places {
    /// Everything stands where it is.
    pub(super) fn given(n_cells: usize, n_points: usize) -> Self {
        Self {
            cells: (0..n_cells as u32).collect(),
            all_cells: n_cells,
            points: (0..n_points as u32).collect(),
            all_points: n_points,
        }
    }
}

/// What is known of the places of a mesh.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Order {
    /// They are those of the mesh.
    #[default]
    Own,
    /// A grid of so many squares or cubes.
    Grid([usize; 3]),
    Listed(Box<Places>),
    /// That of a coarser mesh, of which it was refined.
    Refined(Box<Refined>),
}

/// For each cell or point of a mesh a row of data: which, and how many rows there are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    /// The row of each; [`NOWHERE`] for none.
    pub(crate) of: Vec<u32>,
    pub(crate) count: usize,
}

impl Rows {
    /// Those of `count` things in their own order.
    pub(crate) fn own(count: usize) -> Self {
        Self { of: (0..count as u32).collect(), count }
    }
}

impl Mesh {
    /// The rows of data on cells, in each of the ways in which these are counted: with the elements of lower dimension
    /// among them, and without.
    pub(crate) fn cell_rows(&self) -> Vec<Rows> {
        match &self.order_of_source {
            Order::Own => vec![Rows::own(self.n_cells())],
            Order::Grid(cells) => vec![generate::grid_rows(*cells, self.cell).0],
            Order::Refined(refined) => refined.rows(),
            Order::Listed(places) => {
                let mut known = places.cells.clone();
                known.sort_unstable();
                known.dedup();
                let rank = |place: &u32| known.partition_point(|other| other < place) as u32;
                let of = places.cells.iter().map(rank).collect();
                let mut all = vec![Rows { of, count: known.len() }];
                if places.all_cells != known.len() {
                    all.push(Rows { of: places.cells.clone(), count: places.all_cells });
                }
                all
            }
        }
    }

    /// The rows of data at the geometry nodes; none where only the vertices have an order that shows.
    pub(crate) fn point_rows(&self) -> Option<Rows> {
        Some(match &self.order_of_source {
            Order::Own | Order::Refined(_) if self.order > 1 => return None,
            Order::Own | Order::Refined(_) => Rows::own(self.points.len()),
            Order::Grid(cells) => generate::grid_rows(*cells, self.cell).1,
            Order::Listed(places) => Rows { of: places.points.clone(), count: places.all_points },
        })
    }

    /// Whether the geometry nodes of its source are equispaced, as those of files are, and not where ours are.
    pub(crate) fn is_equispaced(&self) -> bool {
        self.equispaced
    }
}
