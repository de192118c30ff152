//! Eigenvalues of small dense matrices.

use super::FactorError;
#[cfg(feature = "direct")]
use faer::{Mat, Side};

/// Computes the eigenvalues of a symmetric matrix, ascending, and its eigenvectors: the j-th at `[i * n + j]`. The
/// lower half of the n × n row-major entries is read.
///
/// # Errors
///
/// Entries that are not finite; a build without the feature `direct`.
#[cfg(feature = "direct")]
pub fn symmetric_eigen(entries: &[f64], n: usize) -> Result<(Vec<f64>, Vec<f64>), FactorError> {
    if entries.iter().any(|entry| !entry.is_finite()) {
        return Err(FactorError::NotFinite);
    }
    let matrix = Mat::from_fn(n, n, |i, j| entries[i * n + j]);
    let found = matrix.self_adjoint_eigen(Side::Lower).map_err(|_| FactorError::NotFinite)?;
    let (values, vectors) = (found.S().column_vector(), found.U());
    let values = (0..n).map(|i| values[i]).collect();
    Ok((values, (0..n * n).map(|at| vectors[(at / n, at % n)]).collect()))
}

/// Returns an error in this build.
#[cfg(not(feature = "direct"))]
pub fn symmetric_eigen(_: &[f64], _: usize) -> Result<(Vec<f64>, Vec<f64>), FactorError> {
    Err(FactorError::Absent)
}

#[cfg(all(test, feature = "direct"))]
mod tests {
    use super::symmetric_eigen;

    #[test]
    fn second_differences_have_their_eigenvalues() {
        let n = 12;
        let entry = |at: usize| match (at / n).abs_diff(at % n) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        };
        let matrix: Vec<f64> = (0..n * n).map(entry).collect();
        let (values, vectors) = symmetric_eigen(&matrix, n).expect("finite");
        for (k, value) in values.iter().enumerate() {
            let angle = std::f64::consts::PI * (k + 1) as f64 / (2 * (n + 1)) as f64;
            let known = 4.0 * angle.sin().powi(2);
            assert!((value - known).abs() <= 1e-14, "{value} is not {known}");
            for i in 0..n {
                let product: f64 = (0..n).map(|j| matrix[i * n + j] * vectors[j * n + k]).sum();
                assert!((product - value * vectors[i * n + k]).abs() <= 1e-14);
            }
        }
        assert!(symmetric_eigen(&[f64::NAN], 1).is_err());
    }
}
