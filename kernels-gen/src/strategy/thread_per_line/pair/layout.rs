//! The layout of a pair's numbers in shared memory, and the lines in the plane of facets that threads process.

use crate::kir::VarId;
use crate::kir::build::Builder;

/// The layout of a pair's numbers in shared memory.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    /// Between rows of a plane of the facet.
    pub(super) row: usize,
    /// Between planes of the facet.
    pub(super) plane: usize,
    /// Between the nodes of lines along ξ₀ that are exchanged.
    pub(super) node: usize,
    /// Between pairs.
    pub(super) pair: usize,
}

/// A line in the plane of the facet of each thread: its beginning, the distance of its entries, and the beginning of its
/// result.
pub(super) struct Round {
    pub(super) from: VarId,
    pub(super) step: VarId,
    pub(super) to: VarId,
    /// The number of threads with a line.
    pub(super) count: usize,
}

/// A line of a pair: the planes of its values and of its result, and its axis.
#[derive(Clone, Copy)]
pub(super) struct PlaneLines {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) axis: usize,
}

impl Layout {
    /// Returns the layout with the fewest conflicts of lines and points for banks of shared memory. `before` returns the
    /// numbers of a pair by the distance of rows.
    pub(super) fn new(
        (q, members, cells): (usize, usize, usize),
        node: usize,
        banks: usize,
        lines: &[Vec<PlaneLines>; 2],
        before: impl Fn(usize) -> usize,
    ) -> Self {
        let mut best: Option<(usize, Self)> = None;
        for row in q..q + 3 {
            for pad in 0..banks {
                let (plane, pair) = (row * (members / q), before(row) + pad);
                let layout = Self { row, plane, node, pair };
                let turns = layout.turns((q, members, cells), banks, lines);
                if best.as_ref().is_none_or(|(least, _)| turns < *least) {
                    best = Some((turns, layout));
                }
            }
        }
        best.expect("some layout should have been considered").1
    }

    /// Counts how often threads that are served together wait for a bank.
    fn turns(
        &self,
        (q, members, cells): (usize, usize, usize),
        banks: usize,
        lines: &[Vec<PlaneLines>; 2],
    ) -> usize {
        let turns = |places: &[usize]| -> usize {
            let of = |some: &[usize]| {
                let mut counts = vec![0; banks];
                some.iter().for_each(|place| counts[place % banks] += 1);
                counts.into_iter().max().unwrap_or(0)
            };
            places.chunks(banks).map(of).sum()
        };
        let threads = 0..cells * members;
        let in_pair = |thread: usize| (thread / members * self.pair, thread % members);
        let point = |thread: usize| {
            let (pair, point) = in_pair(thread);
            pair + point % q + point / q * self.row
        };
        let across = |thread: usize| {
            let (pair, point) = in_pair(thread);
            pair + point % q * self.node + point / q
        };
        let own = |thread: usize| in_pair(thread).0 + in_pair(thread).1;
        let mut sum = 0;
        for places in [&point as &dyn Fn(usize) -> usize, &across, &own] {
            sum += q * turns(&threads.clone().map(places).collect::<Vec<_>>());
        }
        for lines in lines {
            let all = self.places((q, members, cells), lines);
            for at in 0..q {
                let entry = |start: usize| {
                    all.iter().map(|line| line[start] + at * line[1]).collect::<Vec<_>>()
                };
                sum += turns(&entry(0)) + turns(&entry(2));
            }
        }
        sum
    }

    /// Returns the beginning of each line of a group of pairs, the distance of its entries, and the beginning of its
    /// result.
    fn places(
        &self,
        (q, members, cells): (usize, usize, usize),
        lines: &[PlaneLines],
    ) -> Vec<[usize; 3]> {
        let count = members / q;
        let mut places = Vec::new();
        for line in lines {
            let (step, next) = if line.axis == 0 { (1, self.row) } else { (self.row, 1) };
            for pair in 0..cells {
                for number in 0..count {
                    let start =
                        |plane: usize| pair * self.pair + plane * self.plane + number * next;
                    places.push([start(line.from), step, start(line.to)]);
                }
            }
        }
        places
    }

    /// Distributes the lines over the threads of a group.
    pub(super) fn rounds(
        &self,
        (q, members, cells): (usize, usize, usize),
        lines: &[PlaneLines],
        b: &mut Builder,
    ) -> Vec<Round> {
        let threads = cells * members;
        let all = self.places((q, members, cells), lines);
        let round = |lines: &[[usize; 3]]| {
            let last = lines.last().copied().unwrap_or_default();
            let mut var = |name: &str, entry: usize| {
                let of = |thread: usize| lines.get(thread).unwrap_or(&last)[entry] as u32;
                b.listed_var(name, (0..threads).map(of).collect())
            };
            let (from, step, to) = (var("from", 0), var("step", 1), var("to", 2));
            Round { from, step, to, count: lines.len() }
        };
        all.chunks(threads).map(round).collect()
    }
}
