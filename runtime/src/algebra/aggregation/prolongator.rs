//! Smoothed prolongator P from A, T and the strong connections (Vaněk, Mandel and Brezina 1996, section 3).
//!
//! ```text
//! P = (I − ω/λ D⁻¹ A_F) T,   ω = 4/3,   λ the largest eigenvalue of D⁻¹A
//! ```
//!
//! A_F is A without weak connections. For scalar nodes and one near-null vector b, dropped entries a_ij b_j / b_i are
//! lumped to the diagonal, so that A_F b = A b. P then follows the direction of smooth errors, and coarse matrices
//! remain sparse. Otherwise A_F = A.

use super::strength::StrengthGraph;
use crate::algebra::sparse::Csr;
use crate::algebra::sparse::products::accumulate;

/// ω.
const OMEGA: f64 = 4.0 / 3.0;

/// Computes P; `filter` contains the graph and b if weak connections are dropped.
pub(super) fn smoothed(
    matrix: &Csr,
    t: &Csr,
    (inverse, largest): (&[f64], f64),
    filter: Option<(&StrengthGraph, &[f64])>,
) -> Csr {
    accumulate(t.size(), t.width, |i, row| {
        let scale = -OMEGA / largest * inverse[i];
        row.add(1.0, t.row_slices(i));
        let Some((graph, b)) = filter else {
            matrix.row(i).for_each(|(j, value)| row.add(scale * value, t.row_slices(j)));
            return;
        };
        let mut strong = graph.strong(i).map(|(at, _)| at).peekable();
        let mut diagonal = 0.0;
        for (j, value) in matrix.row(i) {
            while strong.next_if(|&at| at < j).is_some() {}
            if j == i {
                diagonal += value;
            } else if strong.peek() == Some(&j) {
                row.add(scale * value, t.row_slices(j));
            } else if b[i] != 0.0 {
                diagonal += value * b[j] / b[i];
            }
        }
        row.add(scale * diagonal, t.row_slices(i));
    })
}
