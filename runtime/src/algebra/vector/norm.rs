//! Norms without underflow or overflow of squares: all square roots of sums of squares are computed here.

use std::convert::Infallible;

/// Sums of squares below this (2^−900) may have lost squares below 2^−1022.
const SMALL_SQUARE: f64 = 1.183_052_186_166_774_7e-271;

/// Returns the powers of two by which numbers with the sum of squares `sum` are rescaled; empty if the sum is accurate.
pub(crate) fn powers(sum: f64) -> &'static [i32] {
    // The smallest number times 2^1000 is 2^−74, the largest times 2^−600 is 2^424.
    match sum {
        f64::INFINITY => &[-600],
        sum if sum < SMALL_SQUARE => &[500, 1000],
        _ => &[],
    }
}

/// Returns √(Σ x²) from `sum` = Σ x²; if squares underflow or overflow, from Σ (f x)² with factors f that are powers of
/// two.
///
/// # Errors
///
/// Errors of `scaled`.
pub(crate) fn root_of_squares<E>(
    sum: f64,
    mut scaled: impl FnMut(f64) -> Result<f64, E>,
) -> Result<f64, E> {
    let mut root = sum.sqrt();
    for &power in powers(sum) {
        let sum = scaled(2f64.powi(power))?;
        root = sum.sqrt() * 2f64.powi(-power);
        if powers(sum).is_empty() {
            break;
        }
    }
    Ok(root)
}

/// Returns √(Σ x²) of numbers in host memory.
pub(crate) fn norm(numbers: impl Iterator<Item = f64> + Clone) -> f64 {
    let squares = |factor: f64| -> f64 { numbers.clone().map(|x| (factor * x).powi(2)).sum() };
    let scaled = |factor: f64| Ok::<_, Infallible>(squares(factor));
    root_of_squares(squares(1.0), scaled).unwrap_or_else(|never| match never {})
}

#[cfg(test)]
mod tests {
    use super::norm;

    #[test]
    fn norms_of_extreme_numbers_are_right() {
        for size in [0.0, 5e-324, 1e-300, 1e-160, 1e-140, 1.0, 1e150, 1e300] {
            let found = norm([3.0 * size, 4.0 * size].into_iter());
            let expected = 5.0 * size;
            assert!((found - expected).abs() <= 1e-15 * expected, "{found:e}, not {expected:e}");
        }
        assert!(norm([f64::NAN, 1.0].into_iter()).is_nan());
        assert_eq!(norm([f64::INFINITY, 1.0].into_iter()), f64::INFINITY);
        assert_eq!(norm(std::iter::empty()), 0.0);
    }
}
