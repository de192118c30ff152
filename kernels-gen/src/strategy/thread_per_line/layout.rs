//! Where the points of a group's cells lie in shared memory, and which thread takes which line.
//!
//! Shared memory has 128 bytes in a row of banks; threads that stand together (16 in double
//! precision, 32 in single) are served at once where their addresses differ modulo that row. Point
//! (z, y, x) of a cell lies at `cell · c + z · p + y · r + x`. The strides r, p and c are those that
//! need the fewest turns at the banks; lines that only touch shared memory are dealt to the threads
//! so that neighbours fall into different banks.

/// What a kernel does along an axis, in accesses a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// Accesses by lines in the order of the threads.
    pub(super) in_order: usize,
    /// Accesses by lines that may be dealt.
    pub(super) dealt: usize,
}

/// The strides of a group's cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Points a direction.
    pub(super) q: usize,
    /// Cells of the group.
    pub(super) cells: usize,
    /// From a point to the next along each axis.
    pub(super) strides: Vec<usize>,
    /// From a cell to the next.
    pub(super) cell: usize,
    /// Threads that are served at once.
    together: usize,
}

/// Lines along an axis in the order of the threads that take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lines {
    /// The first point of each line.
    pub(super) starts: Vec<usize>,
    /// Whether they are in the order of the cells and of the other axes.
    pub(super) in_order: bool,
}

impl Layout {
    /// The strides with the fewest turns. `bytes` are those of a number; `traffic` has an entry an
    /// axis.
    pub(super) fn new(q: usize, cells: usize, bytes: usize, traffic: &[Traffic]) -> Self {
        let together = 128 / bytes;
        let with = |strides: Vec<usize>, cell: usize| Self { q, cells, strides, cell, together };
        let mut best: Option<(usize, Self)> = None;
        let mut consider = |layout: Self| {
            let turns = layout.turns(traffic);
            if best.as_ref().is_none_or(|(least, _)| turns < *least) {
                best = Some((turns, layout));
            }
        };
        for row in q..q + 3 {
            if traffic.len() == 2 {
                (0..together).for_each(|pad| consider(with(vec![1, row], q * row + pad)));
                continue;
            }
            for plane in q * row..q * row + together {
                consider(with(vec![1, row, plane], q * plane));
            }
        }
        let (_, layout) = best.expect("some strides should have been considered");
        if traffic.len() == 2 || cells == 1 {
            return layout;
        }
        let padded = (0..together).map(|pad| with(layout.strides.clone(), layout.cell + pad));
        padded.min_by_key(|layout| layout.turns(traffic)).unwrap_or(layout)
    }

    /// Numbers for one value a point.
    pub(super) fn length(&self) -> usize {
        self.cells * self.cell
    }

    /// Lines along `axis` through points whose other coordinates, from the first axis on, are below
    /// `extents`, in the order of the threads that do well to take them.
    pub(super) fn deal(&self, axis: usize, extents: &[usize]) -> Lines {
        let ordered = self.lines(axis, extents);
        let dealt = deal(&ordered, self.together);
        let in_order = self.count(&ordered) <= self.count(&dealt);
        Lines { starts: if in_order { ordered } else { dealt }, in_order }
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

    /// Turns that one access to each of these lines takes.
    fn count(&self, starts: &[usize]) -> usize {
        let most = |served: &[usize]| {
            let mut banks = vec![0; self.together];
            served.iter().for_each(|start| banks[start % self.together] += 1);
            banks.into_iter().max().unwrap_or(0)
        };
        starts.chunks(self.together).map(most).sum()
    }

    fn turns(&self, traffic: &[Traffic]) -> usize {
        let extents = vec![self.q; traffic.len() - 1];
        let along = |(axis, traffic): (usize, &Traffic)| {
            let lines = self.lines(axis, &extents);
            let dealt = match traffic.dealt {
                0 => 0,
                times => times * self.count(&deal(&lines, self.together)),
            };
            traffic.in_order * self.count(&lines) + dealt
        };
        traffic.iter().enumerate().map(along).sum()
    }
}

/// The same lines, so ordered that those which are served at once fall into different banks where
/// that is possible: each time one from the fullest banks.
fn deal(starts: &[usize], together: usize) -> Vec<usize> {
    let mut banks = vec![std::collections::VecDeque::new(); together];
    starts.iter().for_each(|&start| banks[start % together].push_back(start));
    let mut dealt = Vec::with_capacity(starts.len());
    while dealt.len() < starts.len() {
        let mut fullest: Vec<usize> = (0..together).collect();
        fullest.sort_by_key(|&bank| std::cmp::Reverse(banks[bank].len()));
        let room = together - dealt.len() % together;
        let taken = fullest.into_iter().filter_map(|bank| banks[bank].pop_front());
        dealt.extend(taken.take(room));
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    const POISSON: [Traffic; 3] = [
        Traffic { in_order: 0, dealt: 5 },
        Traffic { in_order: 4, dealt: 0 },
        Traffic { in_order: 6, dealt: 0 },
    ];

    #[test]
    fn every_line_is_dealt_once() {
        for q in 3..=13 {
            for cells in [1, 3, 5] {
                let layout = Layout::new(q, cells, 8, &POISSON);
                let lines = layout.deal(0, &[q - 1, q]);
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
    fn dealt_lines_meet_in_few_banks() {
        for q in 4..=9 {
            let layout = Layout::new(q, 4, 8, &POISSON);
            let lines = layout.deal(0, &[q, q]);
            let least = (4 * q * q).div_ceil(16);
            let turns = layout.count(&lines.starts);
            assert!(turns * 10 <= least * 13, "{q}: {turns} turns, {least} would be the least");
        }
    }

    #[test]
    fn points_of_a_cell_do_not_overlap() {
        for q in 2..=13 {
            for bytes in [4, 8] {
                let Layout { strides, cell, .. } = Layout::new(q, 2, bytes, &POISSON);
                assert!(strides[1] >= q && strides[2] >= q * strides[1] && cell >= q * strides[2]);
            }
        }
    }
}
