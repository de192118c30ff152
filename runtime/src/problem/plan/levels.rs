//! Levels of a multigrid hierarchy: rules that the hierarchy is made by and predicted by.

/// Degrees of freedom up to which a level of degree 1 is the coarsest; above, a coarser mesh is looked for.
pub(in crate::problem) const MULTIGRID_STOPS: usize = 1_000;

/// Degrees of freedom up to which the matrix of the coarsest level is factorised.
const FACTORISED: usize = 20_000;

/// The same of a symmetric matrix on a device, which multiplies with its inverse: a round trip to the host takes longer than
/// algebraic levels do.
pub(in crate::problem) const INVERTED: usize = 2_048;

/// The most degrees of freedom of a coarsest level that is factorised.
pub(in crate::problem) fn most_factorised(device: bool, symmetric: bool) -> usize {
    if device && symmetric { INVERTED } else { FACTORISED }
}

/// The degree of the level below one of this degree on the same mesh: half of it, rounded up.
pub(in crate::problem) fn halved(degree: usize) -> usize {
    degree.div_ceil(2)
}
