//! Partitioning of cells: segments of the space-filling curve or recursive coordinate bisection, whichever has fewer
//! interface facets.
//!
//! Segments of the curve are as even as the weights allow, but have rough surfaces. Recursive bisection across a long
//! side (Berger and Bokhari, "A partitioning strategy for nonuniform problems on multiprocessors", IEEE Trans.
//! Computers C-36, 1987) gives smooth interfaces, above all on boxes. On other meshes a plane zigzags between the
//! cells, and [`super::fiduccia_mattheyses`] straightens it. On unstructured meshes the number of interface facets is
//! close to that of METIS (docs/design/scaling.md).

use super::fiduccia_mattheyses::{APART, CellBisection, FacetGraph};
use crate::mesh::{Mesh, Topology};
use crate::support::parallel::*;
use std::ops::Range;

/// Returns the process of each cell, in cell order; `weights` has one entry per cell.
pub(crate) fn deal(mesh: &Mesh, weights: &[u32], processes: usize) -> Vec<u32> {
    let mut along = vec![0u32; weights.len()];
    for (rank, piece) in pieces(weights, processes).into_iter().enumerate() {
        along[piece].fill(rank as u32);
    }
    if processes == 1 || weights.len() < processes {
        return along;
    }
    let mut halving = RecursiveBisection {
        centres: (0..mesh.n_cells()).map(|cell| mesh.plain_centre(cell)).collect(),
        weights,
        graph: FacetGraph::new(mesh.connectivity()),
        side: vec![APART; weights.len()],
        gains: vec![0; weights.len()],
        rank_of: vec![0; weights.len()],
        times: u64::from(processes.next_power_of_two().ilog2()),
    };
    let mut cells: Vec<u32> = (0..weights.len() as u32).collect();
    halving.halve(&mut cells, 0..processes);
    let between = |ranks: &[u32]| facets_between(mesh.connectivity(), ranks);
    if between(&halving.rank_of) < between(&along) { halving.rank_of } else { along }
}

/// Returns the number of facets between cells of different processes.
fn facets_between(topology: &Topology, rank_of: &[u32]) -> usize {
    let facets = topology.facets();
    let (mut first, mut between) = (vec![u32::MAX; facets.len()], 0);
    for (cell, &rank) in rank_of.iter().enumerate() {
        for &facet in facets.of_cell(cell) {
            match &mut first[facet as usize] {
                own if *own == u32::MAX => *own = rank,
                own => between += usize::from(*own != rank),
            }
        }
    }
    between
}

/// State of the recursive bisection.
struct RecursiveBisection<'a> {
    centres: Vec<[f64; 3]>,
    weights: &'a [u32],
    graph: FacetGraph,
    /// The half of each cell in the current bisection.
    side: Vec<u8>,
    gains: Vec<i32>,
    rank_of: Vec<u32>,
    /// The number of bisection levels.
    times: u64,
}

/// Sides of at least this length, relative to the longest, are candidates for a cut.
const LONG: f64 = 0.5;

impl RecursiveBisection<'_> {
    /// Distributes cells to `ranks`: the cells on one side of a plane to half of the ranks, the others to the rest.
    fn halve(&mut self, cells: &mut [u32], ranks: Range<usize>) {
        if ranks.len() == 1 {
            cells.iter().for_each(|&cell| self.rank_of[cell as usize] = ranks.start as u32);
            return;
        }
        let at = |cell: u32| self.centres[cell as usize];
        let length = |c: usize| {
            let places = cells.iter().map(|&cell| at(cell)[c]);
            let ends = (f64::MAX, f64::MIN);
            let (low, high) = places.fold(ends, |(low, high), x| (low.min(x), high.max(x)));
            high - low
        };
        let lengths = [0, 1, 2].map(length);
        let mut axes = [0, 1, 2];
        axes.sort_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
        let mut best: Option<(usize, Vec<u32>, usize)> = None;
        for first in 0..3 {
            if first > 0 && lengths[axes[first]] < LONG * lengths[axes[0]] {
                break;
            }
            let mut along = axes;
            along[..=first].rotate_right(1);
            let (between, end) = self.split(cells, along, ranks.len());
            if best.as_ref().is_none_or(|(least, ..)| between < *least) {
                best = Some((between, cells.to_vec(), end));
            }
            if between == 0 {
                break;
            }
        }
        let Some((_, sorted, end)) = best else { return };
        cells.copy_from_slice(&sorted);
        let middle = ranks.start + ranks.len() / 2;
        let (below, above) = cells.split_at_mut(end);
        self.halve(below, ranks.start..middle);
        self.halve(above, middle..ranks.end);
    }

    /// Splits cells for `count` processes, sorted along these axes. Returns the number of facets between the halves,
    /// and the size of the first half.
    fn split(&mut self, cells: &mut [u32], axes: [usize; 3], count: usize) -> (usize, usize) {
        let (centres, weights) = (&self.centres, self.weights);
        cells.par_sort_unstable_by(|&a, &b| {
            let (own, other) = (centres[a as usize], centres[b as usize]);
            let order = |&axis: &usize| own[axis].total_cmp(&other[axis]);
            axes.iter().map(order).find(|order| order.is_ne()).unwrap_or_else(|| a.cmp(&b))
        });
        let half = count / 2;
        let all: u64 = cells.iter().map(|&cell| u64::from(weights[cell as usize])).sum();
        let wanted = all * half as u64 / count as u64;
        // Each process needs a cell.
        let (mut end, mut sum, last) = (0, 0, cells.len() + half - count);
        while end < last && (end < half || sum < wanted) {
            sum += u64::from(weights[cells[end] as usize]);
            end += 1;
        }
        for (place, &cell) in cells.iter().enumerate() {
            self.side[cell as usize] = u8::from(place >= end);
        }
        let least = [half, count - half];
        let (graph, side, gains) = (&self.graph, &mut self.side[..], &mut self.gains[..]);
        let (times, processes) = (self.times, count as u64);
        CellBisection { graph, weights, side, wanted, all, least, times, processes, gains }
            .smooth(cells);
        let between = self.graph.between(cells, &self.side);
        cells.sort_by_key(|&cell| self.side[cell as usize]);
        let end = cells.partition_point(|&cell| self.side[cell as usize] == 0);
        cells.iter().for_each(|&cell| self.side[cell as usize] = APART);
        (between, end)
    }
}

/// Returns the cells of each of `parts` processes, by cell weight. Only with more processes than cells the last ones
/// are empty.
fn pieces(weights: &[u32], parts: usize) -> Vec<Range<usize>> {
    let all: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let (mut pieces, mut start, mut sum) = (Vec::with_capacity(parts), 0, 0u64);
    for part in 0..parts {
        let wanted = all * (part as u64 + 1) / parts as u64;
        let mut end = start;
        // The remaining processes need a cell each, too.
        let last = weights.len().saturating_sub(parts - 1 - part);
        let last = last.max(weights.len().min(start + 1));
        while end < last && (end == start || sum + u64::from(weights[end]) <= wanted) {
            sum += u64::from(weights[end]);
            end += 1;
        }
        pieces.push(start..end);
        start = end;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{Cell, load};
    use fem_dsl::problem::MeshSource;
    use std::path::Path;

    #[test]
    fn pieces_are_even_by_weight_and_none_is_empty() {
        assert_eq!(pieces(&[1; 10], 3), [0..3, 3..6, 6..10]);
        assert_eq!(pieces(&[2, 2, 1, 1, 1, 1], 2), [0..2, 2..6]);
        assert_eq!(pieces(&[9, 1, 1], 3), [0..1, 1..2, 2..3]);
        assert_eq!(pieces(&[1, 1, 9], 3), [0..1, 1..2, 2..3]);
        assert_eq!(pieces(&[1, 2], 4), [0..1, 1..2, 2..2, 2..2]);
    }

    /// Partitions a box mesh by recursive bisection.
    fn halved(cells: [usize; 3], weights: &[u32], processes: usize) -> (Vec<[f64; 3]>, Vec<u32>) {
        let count = cells.iter().product::<usize>();
        let place = |i: usize| [i % cells[0], i / cells[0] % cells[1], i / cells[0] / cells[1]];
        let centres: Vec<[f64; 3]> = (0..count).map(|i| place(i).map(|x| x as f64)).collect();
        let vertex = |[x, y, z]: [usize; 3]| (x + (cells[0] + 1) * (y + (cells[1] + 1) * z)) as u32;
        let corners = |i: usize| {
            let [x, y, z] = place(i);
            (0..8).map(move |v| vertex([x + (v & 1), y + (v >> 1 & 1), z + (v >> 2)]))
        };
        let vertices = (0..count).flat_map(corners).collect();
        let all = cells.iter().map(|n| n + 1).product();
        let topology = Topology::new(Cell::Hexahedron, all, vertices).expect("a topology");
        let mut halving = RecursiveBisection {
            centres: centres.clone(),
            weights,
            graph: FacetGraph::new(&topology),
            side: vec![APART; count],
            gains: vec![0; count],
            rank_of: vec![u32::MAX; count],
            times: u64::from(processes.next_power_of_two().ilog2()),
        };
        halving.halve(&mut (0..count as u32).collect::<Vec<u32>>(), 0..processes);
        (centres, halving.rank_of)
    }

    /// Parts are equal, and their interfaces are planes.
    #[test]
    fn boxes_are_halved() {
        let (centres, ranks) = halved([2, 3, 8], &[1; 48], 4);
        for (rank, centre) in ranks.iter().zip(&centres) {
            assert_eq!(f64::from(*rank), (centre[2] / 2.0).floor(), "{centre:?}");
        }
        // With three processes the first has a third; no process is empty.
        let (_, ranks) = halved([2, 3, 8], &[1; 48], 3);
        assert_eq!([0, 1, 2].map(|rank| ranks.iter().filter(|own| **own == rank).count()), [16; 3]);
        let (_, mut own) = halved([4, 1, 1], &[100, 1, 1, 1], 4);
        own.sort_unstable();
        assert_eq!(own, [0, 1, 2, 3]);
    }

    /// On unstructured meshes, smoothing leaves fewer facets than a plane, with the same balance.
    #[test]
    fn halves_of_files_are_made_straight() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../meshes");
        for (file, processes, plane) in [
            ("ball_hex_unstructured.msh", 2, 303),
            ("ball_hex_unstructured.msh", 8, 877),
            ("ball_hex_unstructured.msh", 32, 1859),
            ("bracket_tet.msh", 2, 84),
            ("bracket_tet.msh", 8, 425),
            ("bracket_tet.msh", 32, 1057),
            ("capacitor_tri.msh", 2, 59),
            ("capacitor_tri.msh", 8, 416),
            ("capacitor_tri.msh", 32, 811),
        ] {
            let mesh = load(&MeshSource::File(file.into()), Path::new(folder)).expect("a mesh");
            let ranks = deal(&mesh, &vec![1; mesh.n_cells()], processes);
            let between = facets_between(mesh.connectivity(), &ranks);
            let count = |rank: u32| ranks.iter().filter(|own| **own == rank).count();
            let most = (0..processes as u32).map(count).max().unwrap_or(0);
            let even = mesh.n_cells().div_ceil(processes);
            eprintln!(
                "{file}, {processes} parts: {between}, by planes {plane}; {most} cells, {even} if even"
            );
            assert!(10 * between < 9 * plane);
            // One per cent per bisection, and the indivisible rest.
            assert!(100 * most <= 101 * even + 500);
        }
    }
}
