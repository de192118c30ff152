//! Largest eigenvalue of a symmetric tridiagonal matrix, as from Lanczos' method, by bisection.

/// Returns the largest eigenvalue; `off_diagonal` contains the off-diagonal entries, and may have an additional one.
///
/// It is below x if and only if all pivots of T − x are negative (Golub and Van Loan 2013, section 8.4).
pub(crate) fn largest_of(diagonal: &[f64], off_diagonal: &[f64]) -> f64 {
    let side = |i: usize| if i + 1 < diagonal.len() { off_diagonal[i].abs() } else { 0.0 };
    let radius = |i: usize| side(i) + if i > 0 { side(i - 1) } else { 0.0 };
    let bounds = diagonal.iter().enumerate();
    let mut above = bounds.map(|(i, d)| d + radius(i)).fold(f64::NEG_INFINITY, f64::max);
    let mut below = diagonal.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // True if all eigenvalues are smaller: all pivots of T − x are negative.
    let is_above = |x: f64| {
        let mut pivot = diagonal[0] - x;
        for i in 1..diagonal.len() {
            if pivot >= 0.0 {
                return false;
            }
            pivot = diagonal[i] - x - off_diagonal[i - 1] * off_diagonal[i - 1] / pivot;
        }
        pivot < 0.0
    };
    for _ in 0..60 {
        let middle = 0.5 * (below + above);
        if is_above(middle) { above = middle } else { below = middle }
    }
    above
}

#[cfg(test)]
mod tests {
    use super::largest_of;

    #[test]
    fn the_largest_eigenvalue_of_a_chain_is_known() {
        // 2 and −1: 2 − 2 cos(k π / (n + 1)).
        let n = 9;
        let (diagonal, off_diagonal) = (vec![2.0; n], vec![-1.0; n - 1]);
        let exact = 2.0 + 2.0 * (std::f64::consts::PI / (n + 1) as f64).cos();
        assert!((largest_of(&diagonal, &off_diagonal) - exact).abs() < 1e-14);
        assert!((largest_of(&[3.0], &[]) - 3.0).abs() < 1e-14);
    }
}
