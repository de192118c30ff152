//! Indices of a mesh's elements and points in its file; data for the file uses this order.

use super::contents::{Contents, ElementOrder};
use crate::mesh::source_order::{NOWHERE, SourceNumbering};

/// The elements of one dimension that become cells.
pub(super) struct CellElements<'a> {
    contents: &'a Contents,
    /// For each block of this dimension, the number of elements before it.
    starts: Vec<u64>,
    all: usize,
    /// The index of each cell, or its number if cells are sorted by number.
    cells: Vec<u64>,
}

impl<'a> CellElements<'a> {
    pub(super) fn new(contents: &'a Contents, dim: usize) -> Self {
        let (mut starts, mut all) = (Vec::new(), 0);
        for block in contents.blocks.iter().filter(|block| !block.numbers.is_empty()) {
            if block.kind.dim() == dim {
                starts.push(all as u64);
            }
            all += block.numbers.len();
        }
        Self { contents, starts, all, cells: Vec::new() }
    }

    /// Records that element `i` of a block, with this number, became `cells` cells.
    pub(super) fn push(&mut self, block: usize, i: usize, number: u64, cells: usize) {
        let place = match self.contents.order {
            ElementOrder::Blocks => self.starts[block] + i as u64,
            ElementOrder::Numbers(_) | ElementOrder::Ascending => number,
        };
        self.cells.extend(std::iter::repeat_n(place, cells));
    }

    /// Returns all indices. `points` gives the file's point of each mesh point; those from `n_points` on are new and
    /// have none.
    pub(super) fn places(
        self,
        points: impl Iterator<Item = Option<u32>>,
        n_points: usize,
    ) -> SourceNumbering {
        let own = points.map(|point| point.filter(|&point| (point as usize) < n_points));
        let (mut cells, mut all_cells) = (self.cells, self.all);
        let mut ranks = None;
        match self.contents.order {
            ElementOrder::Blocks => {}
            ElementOrder::Numbers(count) => all_cells = count,
            ElementOrder::Ascending => {
                cells = ranked(&cells);
                all_cells = cells.iter().max().map_or(0, |&most| most as usize + 1);
                ranks = Some(ranked(&self.contents.node_numbers[..n_points]));
            }
        }
        let rank = |point: u32| ranks.as_ref().map_or(point, |ranks| ranks[point as usize] as u32);
        SourceNumbering {
            cells: cells.into_iter().map(|place| place as u32).collect(),
            all_cells,
            points: own.map(|point| point.map_or(NOWHERE, rank)).collect(),
            all_points: n_points,
        }
    }
}

/// Returns the rank of each number among all of them.
fn ranked(numbers: &[u64]) -> Vec<u64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    numbers.iter().map(|number| sorted.partition_point(|other| other < number) as u64).collect()
}
