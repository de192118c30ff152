//! Which process has which cells: by pieces of the curve along which cells come, or by halves of the space that they fill, whichever has
//! fewer facets between processes.
//!
//! A piece of a curve is as even as weights allow on any mesh, but its surface is that of a crumpled thing. Halves across the longest
//! side, again and again (Berger and Bokhari, "A partitioning strategy for nonuniform problems on multiprocessors", IEEE Trans. Computers
//! C-36, 1987), are smooth, best of all on boxes.

use crate::mesh::{Mesh, Topology};
use std::ops::Range;

/// The process of each cell, in the order of the cells, by their weights.
pub(crate) fn deal(mesh: &Mesh, weights: &[u32], processes: usize) -> Vec<u32> {
    let mut along = vec![0u32; weights.len()];
    for (rank, piece) in pieces(weights, processes).into_iter().enumerate() {
        along[piece].fill(rank as u32);
    }
    if processes == 1 || weights.len() < processes {
        return along;
    }
    let centres: Vec<[f64; 3]> = (0..mesh.n_cells()).map(|cell| mesh.plain_centre(cell)).collect();
    let mut halved = vec![0u32; weights.len()];
    let mut cells: Vec<u32> = (0..weights.len() as u32).collect();
    halve(&mut cells, &centres, weights, 0..processes, &mut halved);
    let between = |ranks: &[u32]| facets_between(mesh.connectivity(), ranks);
    if between(&halved) < between(&along) { halved } else { along }
}

/// Facets with cells of two processes.
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

/// Gives cells to processes: those on one side of a plane to half of these, the others to the rest.
fn halve(
    cells: &mut [u32],
    centres: &[[f64; 3]],
    weights: &[u32],
    ranks: Range<usize>,
    rank_of: &mut [u32],
) {
    if ranks.len() == 1 {
        cells.iter().for_each(|&cell| rank_of[cell as usize] = ranks.start as u32);
        return;
    }
    let at = |cell: u32| centres[cell as usize];
    let side = |c: usize| {
        let places = cells.iter().map(|&cell| at(cell)[c]);
        let (low, high) =
            places.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)));
        high - low
    };
    let mut axes = [0, 1, 2];
    let sides = axes.map(side);
    axes.sort_by(|&a, &b| sides[b].total_cmp(&sides[a]));
    cells.sort_by(|&a, &b| {
        let (a, b) = (at(a), at(b));
        let order = |&axis: &usize| a[axis].total_cmp(&b[axis]);
        axes.iter().map(order).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    let (half, count) = (ranks.len() / 2, ranks.len());
    let all: u64 = cells.iter().map(|&cell| u64::from(weights[cell as usize])).sum();
    let wanted = all * half as u64 / count as u64;
    // Each process needs a cell.
    let (mut end, mut sum, last) = (0, 0, cells.len() + half - count);
    while end < last && (end < half || sum < wanted) {
        sum += u64::from(weights[cells[end] as usize]);
        end += 1;
    }
    let middle = ranks.start + half;
    let (below, above) = cells.split_at_mut(end);
    halve(below, centres, weights, ranks.start..middle, rank_of);
    halve(above, centres, weights, middle..ranks.end, rank_of);
}

/// The cells of each of `parts` processes, by the weight of each cell; none is without a cell but the last ones of more processes than
/// cells.
fn pieces(weights: &[u32], parts: usize) -> Vec<Range<usize>> {
    let all: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let (mut pieces, mut start, mut sum) = (Vec::with_capacity(parts), 0, 0u64);
    for part in 0..parts {
        let wanted = all * (part as u64 + 1) / parts as u64;
        let mut end = start;
        // Those behind need a cell each, too.
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

    #[test]
    fn pieces_are_even_by_weight_and_none_is_empty() {
        assert_eq!(pieces(&[1; 10], 3), [0..3, 3..6, 6..10]);
        assert_eq!(pieces(&[2, 2, 1, 1, 1, 1], 2), [0..2, 2..6]);
        assert_eq!(pieces(&[9, 1, 1], 3), [0..1, 1..2, 2..3]);
        assert_eq!(pieces(&[1, 1, 9], 3), [0..1, 1..2, 2..3]);
        assert_eq!(pieces(&[1, 2], 4), [0..1, 1..2, 2..2, 2..2]);
    }
    /// Each process has as much as any other, and what lies between them is a plane.
    #[test]
    fn boxes_are_halved() {
        let centres: Vec<[f64; 3]> =
            (0..2 * 3 * 8).map(|i| [i % 2, i / 2 % 3, i / 6].map(|x| x as f64)).collect();
        let mut ranks = vec![u32::MAX; centres.len()];
        let mut cells: Vec<u32> = (0..centres.len() as u32).collect();
        halve(&mut cells, &centres, &[1; 48], 0..4, &mut ranks);
        for (rank, centre) in ranks.iter().zip(&centres) {
            assert_eq!(f64::from(*rank), (centre[2] / 2.0).floor(), "{centre:?}");
        }
        // Of three processes the first has a third, and none is without a cell.
        let mut cells: Vec<u32> = (0..48).collect();
        halve(&mut cells, &centres, &[1; 48], 0..3, &mut ranks);
        assert_eq!([0, 1, 2].map(|rank| ranks.iter().filter(|own| **own == rank).count()), [16; 3]);
        let heavy: Vec<u32> = (0..4).map(|cell| if cell == 0 { 100 } else { 1 }).collect();
        halve(&mut [0, 1, 2, 3], &centres, &heavy, 0..4, &mut ranks);
        let mut own = ranks[..4].to_vec();
        own.sort_unstable();
        assert_eq!(own, [0, 1, 2, 3]);
    }
}
