//! The smoothed prolongator: A, T and the strong connections → P (Vaněk, Mandel and Brezina 1996, section 3).
//!
//! ```text
//! P = (I − ω/λ D⁻¹ A_F) T,   ω = 4/3,   λ the largest eigenvalue of D⁻¹A
//! ```
//!
//! A_F is A without the connections that are not strong. Where nodes have one unknown and there is one near-null vector b,
//! a_ij b_j / b_i of what is left out goes to the diagonal, so that A_F b = A b; there P keeps to the direction in which errors are smooth,
//! and coarse matrices stay sparse. Elsewhere A_F = A.

use super::sparse::{Rectangular, by_rows};
use super::strength::Graph;
use crate::algebra::csr::Csr;

/// ω.
const OMEGA: f64 = 4.0 / 3.0;

/// P; `filter` has the graph and b where weak connections are left out.
pub(super) fn smoothed(
    matrix: &Csr,
    t: &Rectangular,
    (inverse, largest): (&[f64], f64),
    filter: Option<(&Graph, &[f64])>,
) -> Rectangular {
    by_rows(t.rows(), t.width, |i, row| {
        let scale = -OMEGA / largest * inverse[i];
        row.add(1.0, t.row(i));
        let Some((graph, b)) = filter else {
            matrix.row(i).for_each(|(j, value)| row.add(scale * value, t.row(j)));
            return;
        };
        let mut strong = graph.strong(i).map(|(at, _)| at).peekable();
        let mut diagonal = 0.0;
        for (j, value) in matrix.row(i) {
            while strong.next_if(|&at| at < j).is_some() {}
            if j == i {
                diagonal += value;
            } else if strong.peek() == Some(&j) {
                row.add(scale * value, t.row(j));
            } else if b[i] != 0.0 {
                diagonal += value * b[j] / b[i];
            }
        }
        row.add(scale * diagonal, t.row(i));
    })
}
