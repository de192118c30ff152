//! Host loops of the vector operations: chunks of fixed length, distributed to threads, or one plain loop for a single
//! thread.

use super::Real;
use crate::support::parallel::*;
use std::ops::Range;

/// Number of entries per chunk; sums are formed chunk by chunk, so it affects results.
const CHUNK: usize = 1 << 14;
/// Number of partial sums in a chunk, enough to saturate the adders of any processor.
const LANES: usize = 16;

fn sequential(len: usize) -> bool {
    len <= CHUNK || rayon::current_num_threads() == 1
}

/// Computes y_i = f(x_i).
pub(super) fn convert<T: Real, U: Real>(y: &mut [T], x: &[U], f: impl Fn(U) -> T + Sync) {
    let run = |(y, x): (&mut [T], &[U])| y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(x));
    if sequential(y.len()) {
        run((y, x));
    } else {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).each(run);
    }
}

/// Sums `f` over the parts of a range outside `others`, which are ascending.
pub(super) fn without_others(
    others: &[Range<usize>],
    range: Range<usize>,
    mut f: impl FnMut(Range<usize>) -> f64,
) -> f64 {
    let first = others.partition_point(|other| other.end <= range.start);
    let (mut sum, mut from) = (0.0, range.start);
    for other in others[first..].iter().take_while(|other| other.start < range.end) {
        if from < other.start {
            sum += f(from..other.start);
        }
        from = other.end;
    }
    if from < range.end {
        sum += f(from..range.end);
    }
    sum
}

/// Sums terms of a range in `LANES` partial sums; `add` adds those from a start on to a sum each.
#[inline(always)]
pub(super) fn lane_sum(range: Range<usize>, add: impl Fn(usize, &mut [f64])) -> f64 {
    let mut sums = [0.0; LANES];
    let full = range.len() / LANES * LANES;
    for start in (range.start..range.start + full).step_by(LANES) {
        add(start, &mut sums);
    }
    add(range.start + full, &mut sums[..range.len() - full]);
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sums[0]
}

/// Computes Σ x_i y_i over a range, without entries counted by other processes.
pub(super) fn dot_in<T: Real>(
    x: &[T],
    y: &[T],
    range: Range<usize>,
    others: &[Range<usize>],
) -> f64 {
    without_others(others, range, |range| {
        lane_sum(range, |start, sums| {
            let (x, y) = (&x[start..start + sums.len()], &y[start..start + sums.len()]);
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += x[i].into() * y[i].into();
            }
        })
    })
}

/// Shifts a range of entries to the offset of a chunk.
pub(super) fn within(range: Range<usize>, start: usize) -> Range<usize> {
    range.start - start..range.end - start
}

/// Multiplies interleaved components by weights.
pub(super) fn weigh<T: Real>(entries: &mut [T], weights: &[f64]) {
    let nodes = entries.par_chunks_mut(weights.len().max(1)).with_min_len(1 << 12);
    nodes.each(|node| {
        let own = node.iter_mut().zip(weights);
        own.for_each(|(entry, weight)| *entry = T::from_f64(weight * (*entry).into()));
    });
}

/// Calls `run` for the chunks of `n` entries with those of the written vectors, and adds up its sums in order.
pub(super) fn run_chunks<T: Real, const W: usize, const S: usize>(
    n: usize,
    mut written: [&mut [T]; W],
    run: impl Fn(Range<usize>, [&mut [T]; W]) -> [f64; S] + Sync,
) -> [f64; S] {
    assert!(written.iter().all(|own| own.len() == n), "vectors should have one length");
    let mut chunks = (0..n).step_by(CHUNK).map(|start| {
        let range = start..n.min(start + CHUNK);
        let own = written.each_mut().map(|rest| {
            let (own, after) = std::mem::take(rest).split_at_mut(range.len());
            *rest = after;
            own
        });
        (range, own)
    });
    let mut total = [0.0; S];
    let mut add = |sums: [f64; S]| total.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
    if sequential(n) {
        chunks.for_each(|(range, own)| add(run(range, own)));
    } else {
        let chunks: Vec<_> = chunks.by_ref().collect();
        let mut sums = vec![[0.0; S]; chunks.len()];
        chunks.into_par_iter().map(|(range, own)| run(range, own)).put(&mut sums);
        sums.into_iter().for_each(add);
    }
    total
}
