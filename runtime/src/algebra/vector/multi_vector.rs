//! Operations on several vectors that read each entry from memory once: inner products of two lists, and linear
//! combinations.
//!
//! Chunks of all vectors pass through the caches together, so that k × m products of n entries have the memory traffic
//! of k + m vectors. On a device a kernel takes one vector and several others.

use super::{Real, Vector, VectorData};
use crate::algebra::vector::Precision;
use crate::algebra::vector::device_entries::DeviceEntries;
use crate::support::parallel::*;
use std::ops::Range;

/// Number of entries per chunk: twenty vectors fit into a core's private cache. Sums are formed chunk by chunk, so it
/// affects results.
const CHUNK: usize = 1 << 11;

/// Computes x_i·y_j, at `[i * y.len() + j]`.
pub(crate) fn products(x: &[&Vector], y: &[&Vector]) -> Vec<f64> {
    let all: Vec<_> = (0..x.len()).flat_map(|i| (0..y.len()).map(move |j| (i, j))).collect();
    of_pairs(x, y, &all)
}

/// Computes x_i·y_j = x_j·y_i, at `[i * n + j]`, for n vectors each, e.g. vectors and their products with a symmetric
/// operator.
pub(crate) fn symmetric_products(x: &[&Vector], y: &[&Vector]) -> Vec<f64> {
    let n = x.len();
    assert_eq!(n, y.len(), "each vector should have its product");
    let upper: Vec<_> = (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).collect();
    let mut all = vec![0.0; n * n];
    for ((i, j), product) in upper.iter().zip(of_pairs(x, y, &upper)) {
        all[i * n + j] = product;
        all[j * n + i] = product;
    }
    all
}

/// Computes x_i·y_j of some pairs.
fn of_pairs(x: &[&Vector], y: &[&Vector], pairs: &[(usize, usize)]) -> Vec<f64> {
    let Some(first) = x.first().filter(|_| !pairs.is_empty()) else { return Vec::new() };
    if first.array().is_some() {
        return on_device(x, y, pairs);
    }
    match first.precision() {
        Precision::F64 => on_host::<f64>(x, y, pairs),
        Precision::F32 => on_host::<f32>(x, y, pairs),
    }
}

/// Returns the device entries of vectors.
fn remote<'a>(vectors: &[&'a Vector]) -> Vec<&'a DeviceEntries> {
    let entries = |vector: &&'a Vector| match &vector.data {
        VectorData::Remote(entries) => entries,
        _ => panic!("vectors should have one precision and place"),
    };
    vectors.iter().map(entries).collect()
}

/// Computes the products of each vector of the shorter list with those of the longer one.
fn on_device(x: &[&Vector], y: &[&Vector], pairs: &[(usize, usize)]) -> Vec<f64> {
    let turned = x.len() > y.len();
    let (few, many) = if turned { (remote(y), remote(x)) } else { (remote(x), remote(y)) };
    let mut all = vec![0.0; pairs.len()];
    for (own, vector) in few.iter().enumerate() {
        let pair = |&(i, j): &(usize, usize)| if turned { (j, i) } else { (i, j) };
        let places: Vec<usize> = (0..pairs.len()).filter(|&at| pair(&pairs[at]).0 == own).collect();
        let others: Vec<&DeviceEntries> =
            places.iter().map(|&at| many[pair(&pairs[at]).1]).collect();
        for (at, product) in places.into_iter().zip(vector.products(&others)) {
            all[at] = product;
        }
    }
    all
}

fn slices<'a, T: Real>(vectors: &[&'a Vector]) -> Vec<&'a [T]> {
    let entries = |vector: &&'a Vector| {
        vector.entries::<T>().expect("vectors should have one precision and place")
    };
    vectors.iter().map(entries).collect()
}

fn on_host<T: Real>(x: &[&Vector], y: &[&Vector], pairs: &[(usize, usize)]) -> Vec<f64> {
    let of = x[0];
    let others = of.others();
    let (x, y) = (slices::<T>(x), slices::<T>(y));
    let len = x[0].len();
    assert!(x.iter().chain(&y).all(|of| of.len() == len), "vectors should have one length");
    let of_chunk = |chunk: usize| -> Vec<f64> {
        let range: Range<usize> = chunk * CHUNK..len.min((chunk + 1) * CHUNK);
        let dot = |&(i, j): &(usize, usize)| super::blas::dot_in(x[i], y[j], range.clone(), others);
        pairs.iter().map(dot).collect()
    };
    let chunks: Vec<Vec<f64>> = (0..len.div_ceil(CHUNK)).into_par_iter().map(of_chunk).listed();
    let mut sums = vec![0.0; pairs.len()];
    for chunk in chunks {
        sums.iter_mut().zip(chunk).for_each(|(sum, part)| *sum += part);
    }
    of.sharing().iter().for_each(|sharing| sharing.total(&mut sums));
    sums
}

/// Computes out_j = Σ_i `factors[i * out.len() + j]` · from_i.
pub(crate) fn combine(out: &mut [Vector], from: &[&Vector], factors: &[f64]) {
    assert_eq!(factors.len(), out.len() * from.len(), "one factor should go with each pair");
    let Some(first) = out.first() else { return };
    if first.array().is_some() {
        let columns = out.len();
        for (j, out) in out.iter_mut().enumerate() {
            let own: Vec<f64> = factors.iter().skip(j).step_by(columns).copied().collect();
            out.add_combination(0.0, from, &own);
        }
        return;
    }
    match first.precision() {
        Precision::F64 => combine_on_host::<f64>(out, from, factors),
        Precision::F32 => combine_on_host::<f32>(out, from, factors),
    }
}

impl Vector {
    /// Sets self = a·self + Σ_i `factors[i]` · from_i; with a = 0 earlier entries of self have no effect.
    pub(crate) fn add_combination(&mut self, a: f64, from: &[&Self], factors: &[f64]) {
        assert_eq!(factors.len(), from.len(), "one factor should go with each vector");
        if let VectorData::Remote(own) = &mut self.data {
            return own.combination(a, &remote(from), factors);
        }
        match self.precision() {
            Precision::F64 => add_on_host::<f64>(self, a, from, factors),
            Precision::F32 => add_on_host::<f32>(self, a, from, factors),
        }
    }
}

fn add_on_host<T: Real>(out: &mut Vector, a: f64, from: &[&Vector], factors: &[f64]) {
    let from = slices::<T>(from);
    let out = out.entries_mut::<T>().expect("vectors should have one precision and place");
    out.par_chunks_mut(CHUNK).enumerate().each(|(chunk, part)| {
        add_to_chunk((chunk, part), a, &from, factors.iter().copied());
    });
}

/// Computes the entries of a chunk of a·out + Σ_i `factors[i]` · from_i.
fn add_to_chunk<T: Real>(
    (chunk, part): (usize, &mut [T]),
    a: f64,
    from: &[&[T]],
    factors: impl Iterator<Item = f64>,
) {
    if a == 0.0 {
        part.fill(T::from_f64(0.0));
    } else {
        let scale = T::from_f64(a);
        part.iter_mut().for_each(|entry| *entry = scale * *entry);
    }
    for (from, factor) in from.iter().zip(factors) {
        let (from, factor) = (&from[chunk * CHUNK..][..part.len()], T::from_f64(factor));
        part.iter_mut().zip(from).for_each(|(sum, &from)| *sum = *sum + factor * from);
    }
}

fn combine_on_host<T: Real>(out: &mut [Vector], from: &[&Vector], factors: &[f64]) {
    let (from, columns, len) = (slices::<T>(from), out.len(), out[0].len());
    let mut chunks: Vec<Vec<&mut [T]>> =
        (0..len.div_ceil(CHUNK)).map(|_| Vec::with_capacity(columns)).collect();
    for out in out {
        let entries = out.entries_mut::<T>().expect("vectors should have one precision and place");
        for (chunk, part) in chunks.iter_mut().zip(entries.chunks_mut(CHUNK)) {
            chunk.push(part);
        }
    }
    chunks.into_par_iter().enumerate().each(|(chunk, parts)| {
        for (j, part) in parts.into_iter().enumerate() {
            let own = factors.iter().skip(j).step_by(columns).copied();
            add_to_chunk((chunk, part), 0.0, &from, own);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::{combine, products, symmetric_products};
    use crate::algebra::vector::{Precision, Vector};

    fn vector(n: usize, seed: usize) -> Vector {
        let entries: Vec<f64> =
            (0..n).map(|i| ((i * 31 + seed * 17) % 101) as f64 - 50.0).collect();
        Vector::from_slice(&entries, Precision::F64)
    }

    #[test]
    fn several_at_once_are_each_by_itself() {
        for n in [1, 7, 5000] {
            let all: Vec<Vector> = (0..5).map(|seed| vector(n, seed)).collect();
            let (x, y): (Vec<&Vector>, Vec<&Vector>) =
                (all[..2].iter().collect(), all[2..].iter().collect());
            // Integers: sums are exact.
            let wanted: Vec<f64> = x.iter().flat_map(|x| y.iter().map(|y| x.dot(y))).collect();
            assert_eq!(products(&x, &y), wanted);
            assert_eq!(symmetric_products(&y, &y), products(&y, &y));
            let factors = [1.0, -2.0, 0.0, 3.0, 4.0, 0.5];
            let mut out = vec![vector(n, 9), vector(n, 10)];
            combine(&mut out, &y, &factors);
            for (j, out) in out.iter().enumerate() {
                let mut sum = out.like();
                for (i, y) in y.iter().enumerate() {
                    sum.axpy(factors[2 * i + j], y);
                }
                assert_eq!(out.to_vec(), sum.to_vec());
                let (mut added, mut wanted) = (vector(n, 11), vector(n, 11));
                wanted.scale(-2.0);
                wanted.axpy(1.0, &sum);
                let own: Vec<f64> = factors.iter().skip(j).step_by(2).copied().collect();
                added.add_combination(-2.0, &y, &own);
                assert_eq!(added.to_vec(), wanted.to_vec());
            }
        }
    }
}
