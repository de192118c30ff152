//! Weights of polynomials through values at some times, and combinations of vectors.

use crate::algebra::vector::Vector;

/// Computes Σ cᵢ xᵢ.
pub(super) fn combined(terms: &[(f64, &Vector)]) -> Vector {
    let mut terms = terms.iter();
    let Some((c, x)) = terms.next() else { unreachable!("combinations have terms") };
    let mut sum = (*x).clone();
    sum.scale(*c);
    terms.for_each(|(c, x)| sum.axpy(*c, x));
    sum
}

/// Returns the derivatives of the Lagrange polynomials of some times, at the first of them.
pub(super) fn differences(times: &[f64]) -> Vec<f64> {
    let at = times[0];
    let weight = |j: usize| {
        let others = || times.iter().enumerate().filter(move |(i, _)| *i != j);
        let terms = others().map(|(i, ti)| {
            let rest = others().filter(|(k, _)| *k != i);
            let product: f64 = rest.map(|(_, tk)| (at - tk) / (times[j] - tk)).product();
            product / (times[j] - ti)
        });
        terms.sum()
    };
    (0..times.len()).map(weight).collect()
}

/// Returns the finite-difference weights of a derivative of this order at one of some times.
pub fn derivative(order: usize, times: &[f64], at: usize) -> Vec<f64> {
    // Row i holds the first derivative at time i.
    let row = |i: usize| -> Vec<f64> {
        let mut turned = times.to_vec();
        turned.swap(0, i);
        let mut weights = differences(&turned);
        weights.swap(0, i);
        weights
    };
    let mut weights = row(at);
    for _ in 1..order {
        let rows: Vec<Vec<f64>> = (0..times.len()).map(row).collect();
        let sum = |j: usize| weights.iter().zip(&rows).map(|(w, row)| w * row[j]).sum();
        weights = (0..times.len()).map(sum).collect();
    }
    weights
}

/// Evaluates the Lagrange polynomials of some times.
pub(super) fn lagrange(at: f64, times: &[f64]) -> Vec<f64> {
    let weight = |j: usize| {
        let others = times.iter().enumerate().filter(|(i, _)| *i != j);
        others.map(|(_, t)| (at - t) / (times[j] - t)).product()
    };
    (0..times.len()).map(weight).collect()
}
