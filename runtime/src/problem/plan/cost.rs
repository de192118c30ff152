//! Cost model of factorisation, of iterations with the diagonal and of a multigrid hierarchy.
//!
//! Reading the matrix off the operator takes one product per column colour: 4/3 (2p + 1)^d per component. The cost of
//! the factors follows from the largest separator: s of n degrees of freedom, all coupled after elimination of the
//! others. s = n^(1/2) in two dimensions and n^(2/3) in three; the factorisation takes a few times s³ operations.
//!
//! The iteration count of CG cannot be predicted. Seconds on one core, factors and CG to 10⁻¹⁰, with iterations:
//!
//! ```text
//!                                    unknowns   factors   CG
//! Poisson, square, degree 2             4,225      0.20   0.03    110
//! Poisson, square, degree 2            16,641      1.33   0.15    224
//! Poisson, square, degree 8            16,641      1.11   0.21    374
//! Poisson, square, degree 2            66,049      2.50   0.85    450
//! elasticity, square, degree 2         33,282      1.26   0.77   1044
//! elasticity, beam 10 × 1, degree 2     5,474      0.37   0.11    707, then rounding
//! elasticity, beam 10 × 1, degree 4    21,186      2.23   0.90   1983, then rounding
//! Poisson, cube, degree 2               4,913      0.36   0.06     31
//! Poisson, cube, degree 2              35,937      4.18   0.35     63
//! ```
//!
//! (Factors by a library compiled without optimisation, which makes it three times as fast.) On compact domains CG is
//! always faster. On slender domains, layers and nearly incompressible solids it takes thousands of iterations, which
//! do not affect factors. Linear problems are therefore factorised first if the factors take negligible time. Otherwise
//! factors follow after as many iterations as would have paid for them. The same holds in Newton's method, whose early
//! steps need few iterations and new factors each.

use super::properties::{ProblemProperties, SystemSize};
use crate::algebra::factor::AVAILABLE;
use crate::solve::DirectFallback;
use crate::space::discretisation::Discretisation;

/// Seconds allowed for factors if no solver is named.
const SECONDS: f64 = 0.25;
/// Model: seconds per degree of freedom for ordering, colouring and triangular solves;
const AN_UNKNOWN: f64 = 5e-6;
/// per floating-point operation;
const AN_OPERATION: f64 = 0.5e-9;
/// and per degree of freedom in a compiled operator application, on one core.
const A_PRODUCT: f64 = 1e-8;
/// Ratio of iteration time to factorisation time at which the solver switches to factors.
const SHARE: f64 = 2.0;
/// Minimum number of iterations before the switch.
const LEAST: f64 = 1000.0;
/// Seconds allowed for factors of eigenvalue problems, which need many solves.
const MODES: f64 = 60.0;
/// Bytes allowed for matrix and factors if no solver is named,
const BYTES: f64 = 4e9;
/// and their largest share of the memory budget: estimates may be too low, and a failure during factorisation wastes
/// the work.
const PART: f64 = 0.5;
/// Bytes per matrix entry: pattern, values, and their copies by rows and columns.
const AN_ENTRY: f64 = 40.0;
/// Length of an affine constraint up to which the matrix stays as sparse as elements make it.
const WIDE: usize = 100;
/// Number of degrees of freedom up to which an indefinite matrix is factorised by default: iterative methods converge
/// slowly for it.
const INDEFINITE: usize = 50_000;

/// Predicted cost of matrix and factors.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    bytes: f64,
}

/// Returns the number of products that read the matrix off the operator.
pub(super) fn products_of_a_matrix(size: SystemSize) -> f64 {
    4.0 / 3.0 * (2.0 * size.degree + 1.0).powi(size.dim as i32) * size.components
}

/// Predicts the cost for `n` degrees of freedom with `components` per node, elements of a degree, and `dim` dimensions.
fn cost(dim: usize, n: f64, components: f64, degree: f64) -> Cost {
    let products = products_of_a_matrix(SystemSize { dim, unknowns: n, components, degree });
    let nodes = (n / components).max(1.0);
    let separator = components * nodes.powf(1.0 - 1.0 / dim as f64);
    let (operations, entries) = match dim {
        // A band.
        1 => (2.0 * n * (components * degree).powi(2), 2.0 * n * components * degree),
        2 => (10.0 * separator.powi(3), 4.0 * n * components * nodes.log2().max(1.0)),
        _ => (4.0 * separator.powi(3), 4.0 * separator.powi(2)),
    };
    let seconds = (AN_UNKNOWN + products * A_PRODUCT) * n + operations * AN_OPERATION;
    let coupled = components * (1.5 * degree + 1.0).powi(dim as i32);
    Cost { seconds, bytes: 16.0 * entries + AN_ENTRY * n * coupled }
}

/// Seconds of products from which compiling element-matrix kernels pays off.
const COMPILING: f64 = 1.0;

/// Returns whether the matrix is assembled from element matrices faster than it is read off by products.
pub(in crate::problem) fn worth_matrices(on: &Discretisation) -> bool {
    let dim = on.mesh.dim();
    let seconds = on.fields.iter().map(|field| {
        let (space, n) = (&field.space, on.n_dofs() as f64);
        let degree = space.element().degree() as f64;
        4.0 / 3.0
            * (2.0 * degree + 1.0).powi(dim as i32)
            * space.components() as f64
            * n
            * A_PRODUCT
    });
    seconds.sum::<f64>() > COMPILING
}

/// Iterations of Jacobi-preconditioned CG to 10⁻⁸, per degree of freedom along one direction. Measured on cubes: 1.7
/// and 2.7 at degrees 2 and 4, 4.4 deformed; on squares 1.6 to 2.2.
const OF_A_DIRECTION: f64 = 2.5;
/// The same for MINRES on saddle points; measured 17 to 45 for the Stokes equations on squares.
const OF_A_SADDLE: f64 = 20.0;
/// The same for CG in H(curl) and H(div): measured 22, 25 and 38 for curl·curl + 1 on cubes at degrees 2, 3 and 4, 35 for
/// div·div + 1 at degree 2; on squares 15 and 26 at degrees 2 and 4.
const OF_A_VECTOR: f64 = 22.0;
/// Seconds of an iteration per degree of freedom: on one core, and on a GPU.
const AN_ITERATION: [f64; 2] = [1.3e-8, 6e-11];
/// Seconds of multigrid set-up without kernel compilation, and per degree of freedom on one core. Measured on cubes at
/// degrees 2 and 4: 0.6 and 1.1 µs.
const LEVELS: f64 = 0.05;
const A_LEVEL: f64 = 1e-6;
/// Iterations with the diagonal that take as long as all cycles of a solve; measured on cubes: 42 and 50.
const CYCLES: f64 = 50.0;
/// Iterations of restarted GMRES that count for one of CG, at least: a plastic pipe with 2,176 DoFs takes 5,126 for a step of
/// Newton's method, 62 times those predicted, and 40 with levels. Less leaves small systems to factors.
const OF_RESTARTS: f64 = 4.0;

/// Returns whether a multigrid hierarchy saves more time in one solve than its setup takes. Compilation does not count:
/// the choice does not depend on the cache of kernels.
pub(super) fn multigrid_pays(properties: &ProblemProperties) -> bool {
    let (n, cores) = (properties.size.unknowns, properties.resources.cores as f64);
    let each = an_iteration(properties.resources.has_device, cores);
    let restarted = properties.is_diffusive && !properties.is_symmetric;
    let saved = iterations(properties) * if restarted { OF_RESTARTS } else { 1.0 } - CYCLES;
    saved * each * n > making_levels(n, cores)
}

/// Predicts the iterations with the diagonal preconditioner.
pub(super) fn iterations(properties: &ProblemProperties) -> f64 {
    let SystemSize { dim, unknowns, components, .. } = properties.size;
    let of_a_direction = match properties {
        ProblemProperties { is_saddle: true, .. } => OF_A_SADDLE,
        ProblemProperties { has_vector_functions: true, .. } => OF_A_VECTOR,
        _ => OF_A_DIRECTION,
    };
    of_a_direction * (unknowns / components.max(1.0)).powf(1.0 / dim as f64)
}

/// Predicts the seconds of such an iteration per degree of freedom.
pub(super) fn an_iteration(device: bool, cores: f64) -> f64 {
    if device { AN_ITERATION[1] } else { AN_ITERATION[0] / cores }
}

/// Predicts the seconds of multigrid set-up without kernel compilation.
pub(super) fn making_levels(unknowns: f64, cores: f64) -> f64 {
    LEVELS + A_LEVEL * unknowns / cores
}

/// Predicts the seconds of a factorisation.
pub(super) fn seconds(SystemSize { dim, unknowns, components, degree }: SystemSize) -> f64 {
    cost(dim, unknowns, components, degree).seconds
}

/// The factorisation that a problem gets whose solver is not named.
pub(super) fn factorisation_unasked(properties: &ProblemProperties) -> DirectFallback {
    // Each process has a part of the matrix. A singular one has no factors.
    if properties.resources.is_distributed() || properties.has_vector_kernel {
        DirectFallback::Never
    } else {
        factorisation(properties)
    }
}

/// The same of one process, which has the whole matrix.
pub(in crate::problem) fn factorisation(properties: &ProblemProperties) -> DirectFallback {
    let ProblemProperties { size, is_linear, is_saddle, widest, room, .. } = *properties;
    let SystemSize { dim, unknowns: n, components, degree } = size;
    let device = properties.resources.has_device;
    let cost = cost(dim, n, components, degree);
    let after = (SHARE * cost.seconds / (A_PRODUCT * n).max(A_PRODUCT)).max(LEAST);
    // All that an affine constraint reads is coupled with each other.
    if !AVAILABLE || widest > WIDE || cost.bytes > BYTES.min(PART * room) {
        DirectFallback::Never
    } else if is_saddle && n <= INDEFINITE as f64 || cost.seconds <= SECONDS && is_linear && !device
    {
        DirectFallback::First
    } else {
        DirectFallback::After { iterations: if device { usize::MAX } else { after as usize } }
    }
}

/// Returns whether several processes factorise the whole matrix redundantly where no solver is named: iterations serve it
/// badly, and one process would.
pub(super) fn factorised_at_each(properties: &ProblemProperties) -> bool {
    let small = properties.size.unknowns <= INDEFINITE as f64;
    AVAILABLE && properties.is_saddle && properties.resources.is_distributed() && small
}

/// The factorisation of J + σ M for eigenvalues whose preconditioner is not named: first where it takes no longer than
/// iterations do, after iterations that fail where it fits into memory.
pub(super) fn factorisation_for_modes(properties: &ProblemProperties) -> DirectFallback {
    let ProblemProperties { size, widest, resources, room, .. } = *properties;
    let is_possible = AVAILABLE && !resources.is_distributed() && widest <= WIDE;
    // Factors find the eigenvalues 0 of a kernel first.
    if !is_possible || properties.has_vector_kernel {
        return DirectFallback::Never;
    }
    let SystemSize { dim, unknowns, components, degree } = size;
    let cost = cost(dim, unknowns, components, degree);
    match cost.bytes > BYTES.min(PART * room) {
        true => DirectFallback::Never,
        false if cost.seconds <= MODES => DirectFallback::First,
        false => DirectFallback::After { iterations: 0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_systems_are_factorised_and_large_ones_iterated() {
        let seconds = |dim, n, components, degree| cost(dim, n, components, degree).seconds;
        // The beam and the square, but not the cube of the same size.
        assert!(seconds(2, 5_474.0, 2.0, 2.0) < SECONDS);
        assert!(seconds(2, 16_641.0, 1.0, 8.0) < SECONDS);
        assert!(seconds(3, 2_000.0, 1.0, 2.0) < SECONDS);
        assert!(seconds(3, 16_641.0, 3.0, 2.0) > SECONDS);
        assert!(seconds(2, 1e5, 1.0, 1.0) > SECONDS);
        // A million degrees of freedom fit into memory in 2D, but not in 3D.
        assert!(cost(2, 1e6, 1.0, 2.0).bytes < BYTES);
        assert!(cost(3, 1e6, 3.0, 2.0).bytes > BYTES);
    }
}
