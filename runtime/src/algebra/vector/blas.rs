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

/// Computes y_i = f(y_i).
pub(super) fn map<T: Real>(y: &mut [T], f: impl Fn(T) -> T + Sync) {
    let run = |y: &mut [T]| y.iter_mut().for_each(|y| *y = f(*y));
    if sequential(y.len()) {
        run(y);
    } else {
        y.par_chunks_mut(CHUNK).each(run);
    }
}

/// Computes y_i = f(y_i) in double precision.
pub(super) fn map_f64<T: Real>(y: &mut [T], f: impl Fn(f64) -> f64 + Sync) {
    map(y, |y| T::from_f64(f(y.into())));
}

/// Computes y_i = f(y_i, x_i).
pub(super) fn map2<T: Real>(y: &mut [T], x: &[T], f: impl Fn(T, T) -> T + Sync) {
    assert_eq!(y.len(), x.len(), "vectors should have one length");
    let run = |(y, x): (&mut [T], &[T])| {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = f(*y, x));
    };
    if sequential(y.len()) {
        run((y, x));
    } else {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).each(run);
    }
}

/// Computes y_i = f(y_i, x_i, z_i).
fn map3<T: Real>(y: &mut [T], x: &[T], z: &[T], f: impl Fn(T, T, T) -> T + Sync) {
    assert!(y.len() == x.len() && y.len() == z.len(), "vectors should have one length");
    let run = |((y, x), z): ((&mut [T], &[T]), &[T])| {
        y.iter_mut().zip(x).zip(z).for_each(|((y, &x), &z)| *y = f(*y, x, z));
    };
    if sequential(y.len()) {
        run(((y, x), z));
    } else {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).zip(z.par_chunks(CHUNK)).each(run);
    }
}

/// Computes y = a·y.
pub(super) fn scale<T: Real>(y: &mut [T], a: T) {
    map(y, |y| y * a);
}

/// Computes y = y + a·x.
pub(super) fn axpy<T: Real>(y: &mut [T], x: &[T], a: T) {
    map2(y, x, |y, x| y + a * x);
}

/// Computes y = a·x + b·y.
pub(super) fn axpby<T: Real>(y: &mut [T], x: &[T], a: T, b: T) {
    map2(y, x, |y, x| a * x + b * y);
}

/// Computes p_i = d_i r_i + β p_i.
pub(super) fn advance<T: Real>(p: &mut [T], r: &[T], d: &[T], beta: T) {
    map3(p, r, d, |p, r, d| d * r + beta * p);
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

/// Takes the Chebyshev step of one chunk; `residual` computes r_i, before subtraction of q_i, from the old one.
#[inline(always)]
fn chebyshev_chunk<T: Real>(
    [x, d, r]: [&mut [T]; 3],
    [q, m]: [&[T]; 2],
    (keep, add): (T, T),
    residual: impl Fn(usize, T) -> T,
) {
    let n = x.len();
    let (d, r, q, m) = (&mut d[..n], &mut r[..n], &q[..n], &m[..n]);
    for i in 0..n {
        let left = residual(i, r[i]) - q[i];
        let step = keep * d[i] + add * m[i] * left;
        r[i] = left;
        d[i] = step;
        x[i] = x[i] + step;
    }
}

/// Calls `run` on the chunks of three written vectors, with the offset of each chunk.
fn three<T: Real>([x, d, r]: [&mut [T]; 3], run: impl Fn(usize, [&mut [T]; 3]) + Sync) {
    let n = x.len();
    assert!(d.len() == n && r.len() == n, "vectors should have one length");
    if sequential(n) {
        let chunks = x.chunks_mut(CHUNK).zip(d.chunks_mut(CHUNK)).zip(r.chunks_mut(CHUNK));
        chunks.enumerate().for_each(|(chunk, ((x, d), r))| run(chunk * CHUNK, [x, d, r]));
    } else {
        let chunks = x.par_chunks_mut(CHUNK).zip(d.par_chunks_mut(CHUNK));
        let chunks = chunks.zip(r.par_chunks_mut(CHUNK)).enumerate();
        chunks.each(|(chunk, ((x, d), r))| run(chunk * CHUNK, [x, d, r]));
    }
}

/// Computes r_i −= q_i, d_i = `keep` d_i + `add` m_i r_i, x_i += d_i.
pub(super) fn chebyshev<T: Real>(written: [&mut [T]; 3], [q, m]: [&[T]; 2], keep: T, add: T) {
    three(written, |start, written| {
        let range = start..start + written[0].len();
        chebyshev_chunk(written, [&q[range.clone()], &m[range]], (keep, add), |_, r| r);
    });
}

/// Computes r_i = b_i − q_i, d_i = `keep` d_i + `add` m_i r_i, x_i += d_i.
pub(super) fn chebyshev_from<T: Real>(
    written: [&mut [T]; 3],
    [b, q, m]: [&[T]; 3],
    keep: T,
    add: T,
) {
    three(written, |start, written| {
        let range = start..start + written[0].len();
        let b = &b[range.clone()];
        chebyshev_chunk(written, [&q[range.clone()], &m[range]], (keep, add), |i, _| b[i]);
    });
}

/// Calls `run` on the chunks of two written vectors, with the offset of each chunk.
fn two<T: Real>([x, d]: [&mut [T]; 2], run: impl Fn(usize, [&mut [T]; 2]) + Sync) {
    assert!(x.len() == d.len(), "vectors should have one length");
    if sequential(x.len()) {
        let chunks = x.chunks_mut(CHUNK).zip(d.chunks_mut(CHUNK)).enumerate();
        chunks.for_each(|(chunk, (x, d))| run(chunk * CHUNK, [x, d]));
    } else {
        let chunks = x.par_chunks_mut(CHUNK).zip(d.par_chunks_mut(CHUNK)).enumerate();
        chunks.each(|(chunk, (x, d))| run(chunk * CHUNK, [x, d]));
    }
}

/// Computes v_i += c a_i, next_i = u_i + `length` v_i.
pub(super) fn drift<T: Real>(
    written: [&mut [T]; 2],
    u: &[T],
    a: impl Fn(usize) -> T + Sync,
    length: T,
    c: T,
) {
    assert!(u.len() == written[0].len(), "vectors should have one length");
    two(written, |start, [next, v]| {
        let u = &u[start..start + next.len()];
        for (i, ((next, v), &u)) in next.iter_mut().zip(v).zip(u).enumerate() {
            *v = *v + c * a(start + i);
            *next = u + length * *v;
        }
    });
}

/// Computes a_i = −m_i r_i, v_i += c a_i.
pub(super) fn kick<T: Real>(written: [&mut [T]; 2], [r, m]: [&[T]; 2], c: T) {
    let n = written[0].len();
    assert!(r.len() == n && m.len() == n, "vectors should have one length");
    two(written, |start, [v, a]| {
        let range = start..start + v.len();
        for (((v, a), &r), &m) in v.iter_mut().zip(a).zip(&r[range.clone()]).zip(&m[range]) {
            *a = T::from_f64(0.0) - m * r;
            *v = *v + c * *a;
        }
    });
}

/// Computes d_i = `add` m_i r_i, x_i = d_i.
pub(super) fn chebyshev_first<T: Real>(written: [&mut [T]; 2], [r, m]: [&[T]; 2], add: T) {
    let n = written[0].len();
    assert!(r.len() == n && m.len() == n, "vectors should have one length");
    two(written, |start, [x, d]| {
        let range = start..start + x.len();
        for (((x, d), &r), &m) in x.iter_mut().zip(d).zip(&r[range.clone()]).zip(&m[range]) {
            let step = add * m * r;
            *d = step;
            *x = step;
        }
    });
}

/// Sums `f(chunk)` over chunks, in order.
fn reduce(len: usize, f: impl Fn(Range<usize>) -> f64 + Sync) -> f64 {
    let range = |chunk: usize| chunk * CHUNK..len.min((chunk + 1) * CHUNK);
    let chunks = len.div_ceil(CHUNK);
    if sequential(len) {
        (0..chunks).map(|chunk| f(range(chunk))).sum()
    } else {
        let mut sums = vec![0.0; chunks];
        (0..chunks).into_par_iter().map(|chunk| f(range(chunk))).put(&mut sums);
        sums.into_iter().sum()
    }
}

/// Sums `f` over the parts of a range outside `others`, which are ascending.
pub(super) fn apart(
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

/// Computes Σ f(i) for i < len in `LANES` partial sums.
#[inline(always)]
fn lane_sum(len: usize, f: impl Fn(usize) -> f64) -> f64 {
    let mut sums = [0.0; LANES];
    let full = len / LANES * LANES;
    for start in (0..full).step_by(LANES) {
        for (lane, sum) in sums.iter_mut().enumerate() {
            *sum += f(start + lane);
        }
    }
    for i in full..len {
        sums[i - full] += f(i);
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
    }
    sums[0]
}

pub(super) fn dot_chunk<T: Real>(x: &[T], y: &[T]) -> f64 {
    let y = &y[..x.len()];
    lane_sum(x.len(), |i| x[i].into() * y[i].into())
}

/// Computes x·y without entries counted by other processes.
pub(super) fn dot<T: Real>(x: &[T], y: &[T], others: &[Range<usize>]) -> f64 {
    assert_eq!(x.len(), y.len(), "vectors should have one length");
    reduce(x.len(), |range| dot_apart(x, y, range, others))
}

/// Computes Σ x_i y_i over a range, without entries counted by other processes.
pub(super) fn dot_apart<T: Real>(
    x: &[T],
    y: &[T],
    range: Range<usize>,
    others: &[Range<usize>],
) -> f64 {
    apart(others, range, |range| dot_chunk(&x[range.clone()], &y[range]))
}

/// Computes Σ d_i r_i² without entries counted by other processes.
pub(super) fn weighted_square<T: Real>(r: &[T], d: &[T], others: &[Range<usize>]) -> f64 {
    assert_eq!(r.len(), d.len(), "vectors should have one length");
    let weighted = |range: Range<usize>| weighted_chunk(&r[range.clone()], &d[range]);
    reduce(r.len(), |range| apart(others, range, weighted))
}

fn weighted_chunk<T: Real>(r: &[T], d: &[T]) -> f64 {
    let d = &d[..r.len()];
    lane_sum(r.len(), |i| {
        let r: f64 = r[i].into();
        r * r * d[i].into()
    })
}

/// Shifts a range of entries to the offset of a chunk.
fn within(range: Range<usize>, start: usize) -> Range<usize> {
    range.start - start..range.end - start
}

/// Computes y = y + a·x and returns y·y without entries counted by other processes.
pub(super) fn axpy_dot<T: Real>(y: &mut [T], x: &[T], a: T, others: &[Range<usize>]) -> f64 {
    assert_eq!(y.len(), x.len(), "vectors should have one length");
    let run = |(chunk, (y, x)): (usize, (&mut [T], &[T]))| {
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = *y + a * x);
        let start = chunk * CHUNK;
        apart(others, start..start + y.len(), |range| {
            let own = &y[within(range, start)];
            dot_chunk(own, own)
        })
    };
    if sequential(y.len()) {
        y.chunks_mut(CHUNK).zip(x.chunks(CHUNK)).enumerate().map(run).sum()
    } else {
        let chunks = y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).enumerate();
        let mut sums = vec![0.0; chunks.len()];
        chunks.map(run).put(&mut sums);
        sums.into_iter().sum()
    }
}

/// Updates one chunk in place: x += α p, r −= α q. Chunks are small, so that the following sums find r in the
/// first-level cache.
#[inline(always)]
fn step_chunk<T: Real>(x: &mut [T], r: &mut [T], p: &[T], q: &[T], alpha: T) {
    x.iter_mut().zip(p).for_each(|(x, &p)| *x = *x + alpha * p);
    r.iter_mut().zip(q).for_each(|(r, &q)| *r = *r - alpha * q);
}

/// Computes x += α p, r −= α q; returns r·r and Σ d_i r_i², both without entries counted by other processes.
pub(super) fn step<T: Real>(
    x: &mut [T],
    r: &mut [T],
    p: &[T],
    q: &[T],
    d: &[T],
    alpha: T,
    others: &[Range<usize>],
) -> (f64, f64) {
    let n = x.len();
    assert!(
        r.len() == n && p.len() == n && q.len() == n && d.len() == n,
        "vectors should have one length"
    );
    let run = |(chunk, (x, r)): (usize, (&mut [T], &mut [T]))| {
        let start = chunk * CHUNK;
        let range = start..start + x.len();
        step_chunk(x, r, &p[range.clone()], &q[range.clone()], alpha);
        let square = apart(others, range.clone(), |own| {
            let r = &r[within(own, start)];
            dot_chunk(r, r)
        });
        let weighted =
            apart(others, range, |own| weighted_chunk(&r[within(own.clone(), start)], &d[own]));
        (square, weighted)
    };
    let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
    if sequential(n) {
        x.chunks_mut(CHUNK).zip(r.chunks_mut(CHUNK)).enumerate().map(run).fold((0.0, 0.0), add)
    } else {
        let chunks = x.par_chunks_mut(CHUNK).zip(r.par_chunks_mut(CHUNK)).enumerate();
        let mut sums = vec![(0.0, 0.0); chunks.len()];
        chunks.map(run).put(&mut sums);
        sums.into_iter().fold((0.0, 0.0), add)
    }
}

/// Computes x += α p, r −= α q; returns r·r without entries counted by other processes.
pub(super) fn step_plain<T: Real>(
    x: &mut [T],
    r: &mut [T],
    p: &[T],
    q: &[T],
    alpha: T,
    others: &[Range<usize>],
) -> f64 {
    let n = x.len();
    assert!(r.len() == n && p.len() == n && q.len() == n, "vectors should have one length");
    let run = |(chunk, (x, r)): (usize, (&mut [T], &mut [T]))| {
        let start = chunk * CHUNK;
        let range = start..start + x.len();
        step_chunk(x, r, &p[range.clone()], &q[range.clone()], alpha);
        apart(others, range, |own| {
            let r = &r[within(own, start)];
            dot_chunk(r, r)
        })
    };
    if sequential(n) {
        x.chunks_mut(CHUNK).zip(r.chunks_mut(CHUNK)).enumerate().map(run).sum()
    } else {
        let chunks = x.par_chunks_mut(CHUNK).zip(r.par_chunks_mut(CHUNK)).enumerate();
        let mut sums = vec![0.0; chunks.len()];
        chunks.map(run).put(&mut sums);
        sums.into_iter().sum()
    }
}
