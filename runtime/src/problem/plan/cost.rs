//! Cost model of factorisation, of iterations with the diagonal and of a multigrid hierarchy.
//!
//! To read the matrix off the operator takes a product with it a colour of its columns: (2p + 1)^d and a third more, for
//! each component. What its factors take is set by the largest separator, s unknowns of n that are all coupled once
//! the others are gone: s = n^(1/2) in two dimensions and n^(2/3) in three, about s³ operations a few times over.
//!
//! How many iterations CG needs nobody knows beforehand. Seconds of one core, factors and CG to 10⁻¹⁰, with iterations:
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
//! (Factors by a library compiled without its optimisations, which make it three times as fast.) On compact domains CG
//! is faster throughout; on slender ones, on layers and in nearly incompressible solids it takes thousands of iterations
//! where factors do not notice. So a linear problem is solved by factors first where nobody would notice these either.
//! Elsewhere they come after as many iterations as would have paid for them; in Newton's method, too, whose early steps
//! need few iterations, and new factors each.

use super::facts::{Facts, Size};
use crate::algebra::factor::AVAILABLE;
use crate::solve::Factors;
use crate::space::discretisation::Discretisation;
use crate::support::memory::Room;

/// Seconds that factors may take where nobody has asked for them.
const SECONDS: f64 = 0.25;
/// Seconds an unknown, for ordering, colours and the triangular solves;
const AN_UNKNOWN: f64 = 5e-6;
/// an operation;
const AN_OPERATION: f64 = 0.5e-9;
/// and an unknown in a product with the operator, compiled, on one core.
const A_PRODUCT: f64 = 1e-8;
/// The part of the factors' time after which iterations give way to them.
const SHARE: f64 = 2.0;
/// Iterations that are always tried first.
const LEAST: f64 = 1000.0;
/// Seconds that they may take for eigenvalues, which take many solves.
const MODES: f64 = 60.0;
/// Bytes that matrix and factors may take where nobody has asked for them,
const BYTES: f64 = 4e9;
/// and of the memory that there is this part: estimates may be too low, and what is refused in the middle is lost.
const PART: f64 = 0.5;
/// Bytes of an entry of the matrix: its pattern, its values, and their copies by rows and columns.
const AN_ENTRY: f64 = 40.0;
/// Terms of an affine constraint that make the matrix no denser than elements do.
const WIDE: usize = 100;
/// Unknowns up to which an indefinite matrix is factorised unasked: iterations serve it badly.
const INDEFINITE: usize = 50_000;

/// What factors take.
#[derive(Clone, Copy, Debug)]
struct Cost {
    seconds: f64,
    bytes: f64,
}

/// Of `n` unknowns in `components` for each node of elements of a degree in `dim` dimensions.
fn cost(dim: usize, n: f64, components: f64, degree: f64) -> Cost {
    let products = 4.0 / 3.0 * (2.0 * degree + 1.0).powi(dim as i32) * components;
    let nodes = (n / components).max(1.0);
    let separator = components * nodes.powf(1.0 - 1.0 / dim as f64);
    let (operations, entries) = match dim {
        2 => (10.0 * separator.powi(3), 4.0 * n * components * nodes.log2().max(1.0)),
        _ => (4.0 * separator.powi(3), 4.0 * separator.powi(2)),
    };
    let seconds = (AN_UNKNOWN + products * A_PRODUCT) * n + operations * AN_OPERATION;
    let coupled = components * (1.5 * degree + 1.0).powi(dim as i32);
    Cost { seconds, bytes: 16.0 * entries + AN_ENTRY * n * coupled }
}

/// Seconds of products beyond which the kernels of element matrices are worth being compiled.
const COMPILING: f64 = 1.0;

/// Whether the matrix is better assembled from element matrices than read off by products.
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

/// Iterations of CG by the diagonal for each unknown of a direction, to 10⁻⁸: 1.7 and 2.7 were counted on cubes at degrees 2 and 4,
/// 4.4 on deformed ones, 1.6 to 2.2 on squares.
const OF_A_DIRECTION: f64 = 2.5;
/// The same of MINRES where a field has no term with itself: 17 to 45 were counted for Stokes' equations on squares.
const OF_A_SADDLE: f64 = 20.0;
/// Seconds of an iteration for each unknown: of one core, and of a GPU.
const AN_ITERATION: [f64; 2] = [1.3e-8, 6e-11];
/// Seconds that levels take to be made, compiled kernels among them, and those for each unknown, of one core.
const LEVELS: f64 = 1.5;
const A_LEVEL: f64 = 1e-6;

/// Whether a multigrid hierarchy is worth being made for one solve.
pub(super) fn multigrid_pays(facts: &Facts) -> bool {
    let (n, cores) = (facts.size.unknowns, facts.resources.cores as f64);
    let each = an_iteration(facts.resources.has_device, cores);
    iterations(facts.size, facts.is_saddle) * each * n > making_levels(n, cores)
}

/// Iterations by the diagonal.
pub(super) fn iterations(Size { dim, unknowns, components, .. }: Size, saddle: bool) -> f64 {
    let of_a_direction = if saddle { OF_A_SADDLE } else { OF_A_DIRECTION };
    of_a_direction * (unknowns / components.max(1.0)).powf(1.0 / dim as f64)
}

/// Seconds of an iteration by the diagonal for each unknown.
pub(super) fn an_iteration(device: bool, cores: f64) -> f64 {
    if device { AN_ITERATION[1] } else { AN_ITERATION[0] / cores }
}

/// Seconds of making levels of so many unknowns.
pub(super) fn making_levels(unknowns: f64, cores: f64) -> f64 {
    LEVELS + A_LEVEL * unknowns / cores
}

/// Seconds of factors.
pub(super) fn seconds(Size { dim, unknowns, components, degree }: Size) -> f64 {
    cost(dim, unknowns, components, degree).seconds
}

/// The factorisation that a problem gets whose solver is not named.
pub(super) fn factorisation_unasked(facts: &Facts) -> Factors {
    // Each process has a part of the matrix.
    if facts.resources.is_distributed() { Factors::Never } else { factorisation(facts) }
}

/// The same of one process, which has the whole matrix.
pub(in crate::problem) fn factorisation(facts: &Facts) -> Factors {
    let Facts { size, is_linear, is_saddle, widest, room, .. } = *facts;
    let Size { dim, unknowns: n, components, degree } = size;
    let device = facts.resources.has_device;
    let cost = cost(dim, n, components, degree);
    let after = (SHARE * cost.seconds / (A_PRODUCT * n).max(A_PRODUCT)).max(LEAST);
    // All that an affine constraint reads is coupled with each other.
    if !AVAILABLE || widest > WIDE || cost.bytes > BYTES.min(PART * room) {
        Factors::Never
    } else if is_saddle && n <= INDEFINITE as f64 || cost.seconds <= SECONDS && is_linear && !device
    {
        Factors::First
    } else {
        Factors::After { iterations: if device { usize::MAX } else { after as usize } }
    }
}

/// Whether several processes factorise the whole matrix, each for itself, where no solver is named: iterations serve it
/// badly, and one process would.
pub(super) fn factorised_at_each(facts: &Facts) -> bool {
    let small = facts.size.unknowns <= INDEFINITE as f64;
    AVAILABLE && facts.is_saddle && facts.resources.is_distributed() && small
}

/// The factorisation of J + σ M for eigenvalues whose preconditioner is not named: first where it takes no longer than
/// iterations do, after iterations that fail where it fits into memory.
pub(in crate::problem) fn factorisation_for_modes(on: &Discretisation) -> Factors {
    if !AVAILABLE || on.mesh.cut().is_some() || on.affine.widest() > WIDE {
        return Factors::Never;
    }
    let Size { dim, unknowns, components, degree } = Size::of(on, &[]);
    let cost = cost(dim, unknowns, components, degree);
    let room = Room::now().map_or(f64::INFINITY, |room| PART * room.bytes);
    match cost.bytes > BYTES.min(room) {
        true => Factors::Never,
        false if cost.seconds <= MODES => Factors::First,
        false => Factors::After { iterations: 0 },
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
        // A million unknowns in the plane have room, but not in space.
        assert!(cost(2, 1e6, 1.0, 2.0).bytes < BYTES);
        assert!(cost(3, 1e6, 3.0, 2.0).bytes > BYTES);
    }
}
