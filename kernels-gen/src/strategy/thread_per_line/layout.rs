//! Shared-memory layout of the points of a group's cells, and the assignment of lines to threads.
//!
//! A row of shared-memory banks has 128 bytes. Consecutive threads (16 in double precision, 32 in single) are served at
//! once if their addresses differ modulo that row. Point (z, y, x) of a cell is at `cell · c + z · p + y · r + x`. The
//! strides r, p and c minimise the number of bank conflicts; lines that only access shared memory are assigned to
//! threads so that neighbours access different banks.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// A kernel's accesses along an axis in some of its phases.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Traffic {
    /// The axis of the rows.
    pub(super) axis: usize,
    /// The number of rows along each other axis.
    pub(super) extents: Vec<usize>,
    /// Shared-memory accesses per entry of a row.
    pub(super) accesses: usize,
    /// True if the rows may be assigned to the threads in any order.
    pub(super) distributed: bool,
}

/// The strides of a group's cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Points per direction.
    pub(super) q: usize,
    /// Cells per group.
    pub(super) cells: usize,
    /// The stride between points along each axis.
    pub(super) strides: Vec<usize>,
    /// The stride between cells.
    pub(super) cell: usize,
    /// Threads that are served at once.
    together: usize,
}

/// Lines along an axis in the order of their threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// The first point of each line.
    pub(super) starts: Vec<usize>,
    /// True if they are in the order of the cells and of the other axes.
    pub(super) in_order: bool,
}

/// Dimensions and points per direction, cells per group, bytes of a real.
type Shape = ((usize, usize), usize, usize);

/// Cache of layouts: the plans, checks and kernels of an operator request the same ones many times, and a search takes
/// up to a millisecond.
static FOUND: Mutex<BTreeMap<(Shape, Vec<Traffic>), Layout>> = Mutex::new(BTreeMap::new());

impl Layout {
    /// Returns the strides with the fewest turns in `dim` dimensions; `bytes` are those of a real.
    pub(super) fn new(
        shape: (usize, usize),
        cells: usize,
        bytes: usize,
        traffic: &[Traffic],
    ) -> Self {
        let key = ((shape, cells, bytes), traffic.to_vec());
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        found.entry(key).or_insert_with(|| Self::search(shape, cells, bytes, traffic)).clone()
    }

    /// Returns the strides that take the least space.
    pub(super) fn dense((dim, q): (usize, usize), cells: usize, bytes: usize) -> Self {
        let strides = (0..dim).map(|axis| q.pow(axis as u32)).collect();
        Self { q, cells, strides, cell: q.pow(dim as u32), together: 128 / bytes }
    }

    fn search((dim, q): (usize, usize), cells: usize, bytes: usize, traffic: &[Traffic]) -> Self {
        let together = 128 / bytes;
        let with = |strides: Vec<usize>, cell: usize| Self { q, cells, strides, cell, together };
        // Quantities with interpolation and derivatives pass through rows along all axes; the others need no special
        // treatment.
        let all = traffic.iter().any(|rows| rows.axis == 1 && rows.distributed);
        if dim == 3 && q <= 3 && cells > 1 && all {
            return Self::search_small(q, cells, together, traffic);
        }
        let least = with(vec![1; dim], 1).least_turns(traffic);
        let mut best: Option<(usize, Self)> = None;
        let mut consider = |layout: Self| {
            if best.as_ref().is_some_and(|(turns, _)| *turns == least) {
                return;
            }
            let turns = layout.turns(traffic);
            if best.as_ref().is_none_or(|(least, _)| turns < *least) {
                best = Some((turns, layout));
            }
        };
        for row in q..q + 3 {
            if dim == 2 {
                (0..together).for_each(|pad| consider(with(vec![1, row], q * row + pad)));
                continue;
            }
            for plane in q * row..q * row + together {
                consider(with(vec![1, row, plane], q * plane));
            }
        }
        let (turns, layout) = best.expect("some strides should have been considered");
        if dim == 2 || cells == 1 || turns == least {
            return layout;
        }
        let padded = (0..together).map(|pad| with(layout.strides.clone(), layout.cell + pad));
        padded.min_by_key(|layout| layout.turns(traffic)).unwrap_or(layout)
    }

    /// Searches the strides for small cells. Many of them share a group, so that their offsets matter more than those
    /// of their planes. Shared memory bounds the resident cells per multiprocessor: among similarly good layouts, the
    /// smallest is chosen. Gain over the other search, measured on an H200 with as many cells per group: elasticity of
    /// degree 2 4 %, with 14 instead of 8 cells 10 %, Stokes 17 %.
    fn search_small(q: usize, cells: usize, together: usize, traffic: &[Traffic]) -> Self {
        let planes = q * q..q * q + 8;
        let places = planes
            .flat_map(|plane| (q * plane..q * plane + together).map(move |cell| (plane, cell)));
        let layout = |(plane, cell)| Self { q, cells, strides: vec![1, q, plane], cell, together };
        let all: Vec<(usize, Self)> =
            places.map(layout).map(|layout| (layout.turns(traffic), layout)).collect();
        let least = all.iter().map(|(turns, _)| *turns).min().unwrap_or(0);
        let good = all.into_iter().filter(|(turns, _)| *turns <= least + least / 20);
        let (_, best) = good
            .min_by_key(|(turns, layout)| (layout.cell, *turns))
            .expect("some strides should have been considered");
        best
    }

    /// Returns the array length for one value per point.
    pub(super) fn length(&self) -> usize {
        self.cells * self.cell
    }

    /// Returns lines along `axis` through points whose other coordinates, from the first axis on, are below `extents`,
    /// in an order with few bank conflicts.
    pub(super) fn distribute(&self, axis: usize, extents: &[usize]) -> Lines {
        let ordered = self.lines(axis, extents);
        let distributed = distribute(&ordered, self.together);
        let in_order = self.count(&ordered) <= self.count(&distributed);
        Lines { starts: if in_order { ordered } else { distributed }, in_order }
    }

    fn lines(&self, axis: usize, extents: &[usize]) -> Vec<usize> {
        let other: Vec<usize> = (0..self.strides.len()).filter(|&other| other != axis).collect();
        let mut starts: Vec<usize> = (0..self.cells).map(|cell| cell * self.cell).collect();
        for (&other, &extent) in other.iter().zip(extents).rev() {
            let stride = self.strides[other];
            let along = |start: usize| (0..extent).map(move |at| start + at * stride);
            starts = starts.into_iter().flat_map(along).collect();
        }
        starts
    }

    /// Returns the turns of one access to each of these lines.
    fn count(&self, starts: &[usize]) -> usize {
        let most = |served: &[usize]| {
            let mut banks = [0_usize; 32];
            served.iter().for_each(|start| banks[start % self.together] += 1);
            banks.into_iter().max().unwrap_or(0)
        };
        starts.chunks(self.together).map(most).sum()
    }

    /// Returns the coordinates of the lines of a single cell along `axis`, one list for each other axis, in an order
    /// with few bank conflicts. `None` if the order of the axes is as good.
    pub(super) fn distributed_digits(
        &self,
        axis: usize,
        extents: &[usize],
    ) -> Option<Vec<Vec<usize>>> {
        let lines = self.distribute(axis, extents);
        if self.cells > 1 || lines.in_order {
            return None;
        }
        let other: Vec<usize> = (0..self.strides.len()).filter(|&other| other != axis).collect();
        let ordered = self.lines(axis, extents);
        let digit = |start: usize, other: usize| {
            let number = ordered.iter().position(|&line| line == start).unwrap_or(0);
            number / extents[..other].iter().product::<usize>() % extents[other]
        };
        let digits = |other: usize| lines.starts.iter().map(|&start| digit(start, other)).collect();
        Some((0..other.len()).map(digits).collect())
    }

    /// Returns the number of turns without bank conflicts.
    fn least_turns(&self, traffic: &[Traffic]) -> usize {
        let of = |traffic: &Traffic| {
            let lines = self.cells * traffic.extents.iter().product::<usize>();
            traffic.accesses * lines.div_ceil(self.together)
        };
        traffic.iter().map(of).sum()
    }

    fn turns(&self, traffic: &[Traffic]) -> usize {
        let of = |traffic: &Traffic| {
            let lines = self.lines(traffic.axis, &traffic.extents);
            let turns = self.count(&lines);
            let turns = match traffic.distributed {
                true => turns.min(self.count(&distribute(&lines, self.together))),
                false => turns,
            };
            traffic.accesses * turns
        };
        traffic.iter().map(of).sum()
    }
}

/// Orders lines so that those served at once are in different banks if possible: it takes one line at a time from the
/// fullest banks.
fn distribute(starts: &[usize], together: usize) -> Vec<usize> {
    let mut banks = vec![std::collections::VecDeque::new(); together];
    starts.iter().for_each(|&start| banks[start % together].push_back(start));
    let mut distributed = Vec::with_capacity(starts.len());
    while distributed.len() < starts.len() {
        let mut fullest: Vec<usize> = (0..together).collect();
        fullest.sort_by_key(|&bank| std::cmp::Reverse(banks[bank].len()));
        let room = together - distributed.len() % together;
        let taken = fullest.into_iter().filter_map(|bank| banks[bank].pop_front());
        distributed.extend(taken.take(room));
    }
    distributed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poisson(q: usize) -> Vec<Traffic> {
        let phase = |axis, accesses, distributed| Traffic {
            axis,
            extents: vec![q, q],
            accesses,
            distributed,
        };
        vec![phase(1, 4 * q, false), phase(0, 5 * q, true), phase(2, 6 * q, false)]
    }

    #[test]
    fn every_line_is_distributed_once() {
        for q in 3..=13 {
            for cells in [1, 3, 5] {
                let layout = Layout::new((3, q), cells, 8, &poisson(q));
                let lines = layout.distribute(0, &[q - 1, q]);
                let mut starts = lines.starts.clone();
                starts.sort_unstable();
                let mut wanted = layout.lines(0, &[q - 1, q]);
                wanted.sort_unstable();
                assert_eq!(starts, wanted);
                starts.dedup();
                assert_eq!(starts.len(), cells * q * (q - 1), "lines should not share points");
            }
        }
    }

    #[test]
    fn distributed_lines_meet_in_few_banks() {
        for q in 4..=9 {
            let layout = Layout::new((3, q), 4, 8, &poisson(q));
            let lines = layout.distribute(0, &[q, q]);
            let least = (4 * q * q).div_ceil(16);
            let turns = layout.count(&lines.starts);
            assert!(turns * 10 <= least * 13, "{q}: {turns} turns, {least} would be the least");
        }
    }

    #[test]
    fn digits_name_the_distributed_lines() {
        let mut seen = 0;
        for q in 4..=12 {
            let layout = Layout::new((3, q), 1, 8, &poisson(q));
            let Some(digits) = layout.distributed_digits(1, &[q, q]) else { continue };
            let starts = layout.distribute(1, &[q, q]).starts;
            for (at, start) in starts.iter().enumerate() {
                assert_eq!(digits[0][at] + digits[1][at] * layout.strides[2], *start);
            }
            seen += 1;
        }
        assert!(seen > 0, "some lines should be distributed");
    }

    #[test]
    fn points_of_a_cell_do_not_overlap() {
        for q in 2..=13 {
            for bytes in [4, 8] {
                let layout = Layout::new((3, q), 2, bytes, &poisson(q));
                let Layout { strides, cell, .. } = layout;
                assert!(strides[1] >= q && strides[2] >= q * strides[1] && cell >= q * strides[2]);
            }
        }
    }
}
