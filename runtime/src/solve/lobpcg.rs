//! Smallest eigenvalues of A φ = λ B φ by LOBPCG (A. V. Knyazev, "Toward the optimal preconditioned eigensolver", SIAM
//! J. Sci. Comput. 23 (2001)): the Rayleigh-Ritz method in the span of the block X, its preconditioned residuals W, and
//! the last directions P.
//!
//! ```text
//! R = A X − B X Λ,   W = T R made B-orthogonal to X,   S = [X W P]
//! (Sᵀ A S) C = (Sᵀ B S) C Λ,   X ← S C,   P ← [W P] C
//! ```
//!
//! Robustness: S is orthonormalised by the eigenvectors of its scaled Gram matrix, without the directions in which that
//! is numerically singular (A. Stathopoulos and K. Wu, "A block orthogonalization procedure with constant
//! synchronization requirements", SIAM J. Sci. Comput. 23 (2002)). A few guard vectors converge with the wanted ones.
//! Converged vectors stay in X, but get no new directions (A. V. Knyazev et al., "Block locally optimal preconditioned
//! eigenvalue xolvers", SIAM J. Sci. Comput. 29 (2007), section 2.3).

use super::{
    Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner, Progress, Report,
};
use crate::algebra::factor::{FactorError, symmetric_eigen};
use crate::algebra::vector::multi_vector::{combine, products, symmetric_products};
use crate::algebra::vector::{Vector, epsilon};
use std::time::Instant;

/// Fraction of the block's largest eigenvalue that replaces smaller ones in relative residuals: a motion without energy
/// has the eigenvalue 0.
const PART: f64 = 1e-3;
/// Iterations in which the residual must fall by a tenth, or the Ritz values by a thousandth.
const PATIENCE: usize = 40;
/// Largest relative residual at the rounding-error level with which modes are meaningful.
const USELESS: f64 = 1e-4;
/// Backward errors below this multiple of eps are at the rounding-error level.
const BACKWARD: f64 = 1e3;
/// Interval of iterations after which products with A and B are recomputed.
const AFRESH: usize = 8;
/// Steps below this multiple of eps, relative to a mode's length, are rounding error.
const NOISE: f64 = 1e4;
/// Directions below this multiple of eps in the Gram matrix of normalised vectors are rounding error.
const ROUNDING: f64 = 100.0;

/// Settings of an eigenvalue solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EigenSettings {
    /// Number of smallest eigenvalues.
    pub count: usize,
    /// Relative residual of each mode. [`shift_invert`](super::shift_invert()) measures it in the norm of (A + σ B)⁻¹.
    /// [`lobpcg()`] uses the norm of the preconditioner, √(rᵀ T r / max(|λ|, λₘ/1000)) with φᵀ B φ = 1 and the largest
    /// λₘ of the block; with a diagonal or no preconditioner it is ‖r‖ / (max(|λ|, λₘ/1000) ‖B φ‖).
    pub rtol: f64,
    /// Maximum number of iterations.
    pub max_iterations: usize,
}

/// Eigenpairs.
#[derive(Debug)]
pub struct EigenModes {
    /// Eigenvalues, ascending.
    pub values: Vec<f64>,
    /// Modes, B-orthonormal.
    pub vectors: Vec<Vector>,
    /// Relative residual of each mode.
    pub residuals: Vec<f64>,
    /// Number of vectors preconditioned and multiplied by A, without those of the start.
    pub products: usize,
    /// Report; its history contains the largest relative residual.
    pub report: Report,
}

/// Vectors with their products with A and B.
#[derive(Default)]
struct VectorBlock {
    own: Vec<Vector>,
    a: Vec<Vector>,
    b: Vec<Vector>,
}

impl VectorBlock {
    fn new(
        a: &dyn LinearOperator,
        b: &dyn LinearOperator,
        own: Vec<Vector>,
    ) -> Result<Self, OperatorError> {
        let applied = |operator: &dyn LinearOperator| {
            let of = |x: &Vector| {
                let mut y = x.like();
                operator.apply(x, &mut y).map(|()| y)
            };
            own.iter().map(of).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self { a: applied(a)?, b: applied(b)?, own })
    }

    /// Adds another block, vector by vector.
    fn add(&mut self, other: &Self) {
        let pairs = |own: &mut Vec<Vector>, other: &[Vector]| {
            own.iter_mut().zip(other).for_each(|(own, other)| own.axpy(1.0, other));
        };
        pairs(&mut self.own, &other.own);
        pairs(&mut self.a, &other.a);
        pairs(&mut self.b, &other.b);
    }

    /// Removes all vectors but some.
    fn keep(&mut self, which: &[usize]) {
        for list in [&mut self.own, &mut self.a, &mut self.b] {
            let mut number = 0..;
            list.retain(|_| number.next().is_some_and(|number| which.contains(&number)));
        }
    }

    /// Computes linear combinations of the vectors of several blocks: `factors` has `columns` numbers per vector.
    fn combined(parts: &[&Self], factors: &[f64], columns: usize) -> Self {
        let of = |list: fn(&Self) -> &[Vector]| -> Vec<Vector> {
            let from: Vec<&Vector> = parts.iter().flat_map(|part| list(part)).collect();
            let Some(first) = from.first().filter(|_| columns > 0) else { return Vec::new() };
            let mut out: Vec<Vector> = (0..columns).map(|_| first.like()).collect();
            combine(&mut out, &from, factors);
            out
        };
        Self { own: of(|part| &part.own), a: of(|part| &part.a), b: of(|part| &part.b) }
    }
}

/// Ritz values and vectors, at most as many as requested; vectors are the columns, `[i * columns + j]`.
struct RitzPairs {
    values: Vec<f64>,
    vectors: Vec<f64>,
    columns: usize,
}

/// Applies the Rayleigh-Ritz method to the span of some blocks; the inner error is the curvature of a direction with
/// negative curvature in B.
fn ritz(parts: &[&VectorBlock], most: usize) -> Result<Result<RitzPairs, f64>, FactorError> {
    let all = |list: fn(&VectorBlock) -> &[Vector]| -> Vec<&Vector> {
        parts.iter().flat_map(|part| list(part)).collect()
    };
    let (own, a, b) = (all(|part| &part.own), all(|part| &part.a), all(|part| &part.b));
    let (k, eps) = (own.len(), own.first().map_or(0.0, |first| epsilon(first.precision())));
    let (of_a, of_b) = (symmetric_products(&own, &a), symmetric_products(&own, &b));
    let scale: Vec<f64> = (0..k).map(|i| of_b[i * k + i]).collect();
    if let Some(&curvature) = scale.iter().find(|&&scale| scale < 0.0) {
        return Ok(Err(curvature));
    }
    let scale: Vec<f64> = scale
        .into_iter()
        .map(|square| if square > 0.0 { square.sqrt().recip() } else { 0.0 })
        .collect();
    let scaled = |of: &[f64]| -> Vec<f64> {
        let entry = |at: usize| {
            let (i, j) = (at / k, at % k);
            scale[i] * scale[j] * of[i * k + j]
        };
        (0..k * k).map(entry).collect()
    };
    let (of_a, of_b) = (scaled(&of_a), scaled(&of_b));
    let (gram, basis) = symmetric_eigen(&of_b, k)?;
    let largest = gram.last().copied().unwrap_or(0.0);
    if let Some(&curvature) = gram.first().filter(|&&least| least < -1e-3 * largest) {
        return Ok(Err(curvature));
    }
    let bound = ROUNDING * k as f64 * eps * largest;
    let kept: Vec<usize> = (0..k).filter(|&j| gram[j] > bound).collect();
    let n = kept.len();
    if n == 0 {
        return Ok(Err(0.0));
    }
    // Columns of an orthonormal basis.
    let basis: Vec<f64> = (0..k)
        .flat_map(|i| kept.iter().map(move |&j| (i, j)))
        .map(|(i, j)| basis[i * k + j] / gram[j].sqrt())
        .collect();
    let mut half = vec![0.0; k * n];
    for i in 0..k {
        for l in 0..k {
            let entry = of_a[i * k + l];
            for j in 0..n {
                half[i * n + j] += entry * basis[l * n + j];
            }
        }
    }
    let mut projected = vec![0.0; n * n];
    for l in 0..k {
        for i in 0..n {
            for j in 0..n {
                projected[i * n + j] += basis[l * n + i] * half[l * n + j];
            }
        }
    }
    let (values, inner) = symmetric_eigen(&projected, n)?;
    let columns = most.min(n);
    let mut vectors = vec![0.0; k * columns];
    for i in 0..k {
        for l in 0..n {
            for j in 0..columns {
                vectors[i * columns + j] += scale[i] * basis[i * n + l] * inner[l * n + j];
            }
        }
    }
    Ok(Ok(RitzPairs { values: values[..columns].to_vec(), vectors, columns }))
}

/// Residuals of a block.
struct BlockResiduals {
    /// T (A X − B X Λ).
    directions: Vec<Vector>,
    /// Relative residual of each vector, in the norm of T if T approximates A⁻¹.
    relative: Vec<f64>,
    /// Largest backward error, ‖r‖ / (‖A‖ ‖φ‖ + |λ| ‖B‖ ‖φ‖).
    backward: f64,
}

/// Computes the residuals of B-normalised vectors; `norms` are those of A and B.
fn residuals(
    x: &VectorBlock,
    values: &[f64],
    preconditioner: Preconditioner<'_>,
    norms: [f64; 2],
) -> Result<BlockResiduals, OperatorError> {
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let (mut directions, mut relative, mut backward) = (Vec::new(), Vec::new(), 0.0f64);
    for (((own, a), b), &value) in x.own.iter().zip(&x.a).zip(&x.b).zip(values) {
        let mut r = a.clone();
        r.axpy(-value, b);
        let (mut z, norm) = (r.like(), r.norm());
        preconditioner.apply(&r, &mut z)?;
        let least = value.abs().max(PART * largest);
        relative.push(match (norm, preconditioner) {
            (0.0, _) => 0.0,
            (_, Preconditioner::Operator(_)) => (r.dot(&z).abs() / least).sqrt(),
            (norm, _) => norm / (least * b.norm()),
        });
        backward = backward.max(norm / ((norms[0] + value.abs() * norms[1]) * own.norm()));
        directions.push(z);
    }
    Ok(BlockResiduals { directions, relative, backward })
}

/// Estimates ‖A‖ by ‖A x‖ / ‖x‖ of random vectors.
fn norm_of(products: &[Vector], vectors: &[Vector]) -> f64 {
    let ratios = products.iter().zip(vectors).map(|(product, own)| product.norm() / own.norm());
    ratios.fold(0.0, f64::max)
}

/// Applies [`ritz`] with its failures as outcomes.
fn span(
    parts: &[&VectorBlock],
    columns: usize,
) -> Result<Result<RitzPairs, Outcome>, OperatorError> {
    match ritz(parts, columns) {
        Ok(Ok(found)) => Ok(Ok(found)),
        Ok(Err(curvature)) => Ok(Err(Outcome::Indefinite { curvature })),
        Err(FactorError::NotFinite) => Ok(Err(Outcome::NotFinite)),
        Err(error) => Err(OperatorError::new(error.to_string())),
    }
}

/// Detection of stagnation, by the residual and the sum of the Ritz values.
struct StagnationCheck {
    best: f64,
    lowest: f64,
    since: usize,
}

impl StagnationCheck {
    /// Returns whether neither has fallen for [`PATIENCE`] iterations. The sum decreases monotonically, even while
    /// residuals do not fall yet.
    fn stagnates(&mut self, worst: f64, sum: f64) -> bool {
        let Self { best, lowest, since } = self;
        if worst < 0.9 * *best || sum < *lowest - 1e-3 * lowest.abs() {
            (*best, *lowest, *since) = (worst.min(*best), sum.min(*lowest), 0);
            return false;
        }
        *since += 1;
        *since > PATIENCE
    }
}

/// Replaces X by the Ritz vectors in the span of [X W P]; returns the new directions P of the `open` vectors.
fn advance(
    x: &mut VectorBlock,
    [w, p]: [&VectorBlock; 2],
    found: &RitzPairs,
    open: Vec<usize>,
) -> VectorBlock {
    let width = found.columns;
    // First [W P] C for all columns, then X C plus that: the directions are a part of the step.
    let (of_x, rest) = found.vectors.split_at(x.own.len() * width);
    let mut steps = VectorBlock::combined(&[w, p], rest, width);
    *x = VectorBlock::combined(&[x], of_x, width);
    x.add(&steps);
    // Updated products of rounding-error steps are meaningless.
    let least = (NOISE * epsilon(x.own[0].precision())).powi(2);
    let squares: Vec<f64> = steps.own.iter().zip(&steps.b).map(|(own, b)| own.dot(b)).collect();
    let kept = open.into_iter().filter(|&j| j < width && squares[j] > least);
    steps.keep(&kept.collect::<Vec<_>>());
    steps
}

/// Computes the smallest eigenvalues of A φ = λ B φ from a block of at least as many vectors, with 0 in constrained
/// degrees of freedom. A is symmetric, B symmetric and positive definite, and the preconditioner approximates A⁻¹,
/// symmetric and positive definite as well.
///
/// ```text
/// each iteration: a product with A and B and a preconditioner for each vector that has not converged, and the memory
/// traffic of about thirty vectors for each vector of the block
/// ```
///
/// # Errors
///
/// An operator that cannot be applied; a build without the feature `direct`. Numerical failures are the report's
/// outcome.
pub fn lobpcg(
    a: &dyn LinearOperator,
    b: &dyn LinearOperator,
    preconditioner: Preconditioner<'_>,
    start: Vec<Vector>,
    settings: EigenSettings,
    observe: Observer<'_>,
) -> Result<EigenModes, OperatorError> {
    let began = Instant::now();
    let EigenSettings { count, rtol, max_iterations } = settings;
    let columns = start.len();
    let mut x = VectorBlock::new(a, b, start)?;
    let norms = [norm_of(&x.a, &x.own), norm_of(&x.b, &x.own)];
    let (mut p, mut values) = (VectorBlock::default(), Vec::new());
    let (mut history, mut products) = (Vec::new(), 0);
    let mut check = StagnationCheck { best: f64::INFINITY, lowest: f64::MAX, since: 0 };
    let (mut exact, mut relative) = (true, Vec::new());
    let mut outcome = match span(&[&x], columns)? {
        Ok(found) => {
            x = VectorBlock::combined(&[&x], &found.vectors, found.columns);
            values = found.values;
            None
        }
        Err(outcome) => Some(outcome),
    };
    let wanted = count.min(values.len());
    while outcome.is_none() {
        let found = residuals(&x, &values, preconditioner, norms)?;
        let (directions, backward) = (found.directions, found.backward);
        relative = found.relative;
        products += directions.len();
        let worst = relative[..wanted].iter().copied().fold(0.0, f64::max);
        history.push(worst);
        if !relative.iter().all(|of| of.is_finite()) {
            outcome = Some(Outcome::NotFinite);
            break;
        }
        let iteration = history.len() - 1;
        let now = Progress { iteration, residual: worst, target: rtol };
        if iteration > 0 && observe(now) == Continue::No {
            outcome = Some(Outcome::Cancelled);
            break;
        }
        if worst <= rtol {
            if exact {
                outcome = Some(Outcome::Converged);
                break;
            }
            // Updated products have drifted: repeat with recomputed ones.
            x = VectorBlock::new(a, b, std::mem::take(&mut x.own))?;
            history.pop();
            exact = true;
            continue;
        }
        if check.stagnates(worst, values.iter().sum()) {
            let is_rounding =
                worst <= USELESS || backward <= BACKWARD * epsilon(x.own[0].precision());
            outcome = Some(if is_rounding { Outcome::Rounding } else { Outcome::Stagnated });
            break;
        }
        if iteration == max_iterations {
            outcome = Some(Outcome::IterationLimit);
            break;
        }
        // Directions of unconverged vectors.
        let open: Vec<usize> = (0..relative.len()).filter(|&j| relative[j] > 0.1 * rtol).collect();
        let directions = directions.into_iter().enumerate();
        let w = directions.filter(|(j, _)| open.contains(j)).map(|(_, z)| z).collect();
        if iteration % AFRESH == AFRESH - 1 {
            x = VectorBlock::new(a, b, std::mem::take(&mut x.own))?;
            p = VectorBlock::new(a, b, std::mem::take(&mut p.own))?;
        }
        // Twice: the preconditioner of a nearly singular operator amplifies directions already in X.
        let w = VectorBlock::new(a, b, orthogonal(&x, orthogonal(&x, w)))?;
        let found = match span(&[&x, &w, &p], columns)? {
            Ok(found) => found,
            Err(failed) => {
                outcome = Some(failed);
                break;
            }
        };
        p = advance(&mut x, [&w, &p], &found, open);
        (values, exact) = (found.values, false);
    }
    let outcome = outcome.unwrap_or(Outcome::Stagnated);
    if history.is_empty() {
        history.push(f64::INFINITY);
    }
    values.truncate(wanted);
    relative.truncate(wanted);
    let mut vectors = x.own;
    vectors.truncate(wanted);
    let report = Report::ended("lobpcg", began, rtol, (outcome, history));
    Ok(EigenModes { values, vectors, residuals: relative, products, report })
}

/// Computes W − X (B X)ᵀ W.
fn orthogonal(x: &VectorBlock, w: Vec<Vector>) -> Vec<Vector> {
    let (columns, of_x) = (w.len(), x.own.len());
    let from: Vec<&Vector> = x.own.iter().chain(&w).collect();
    let inside = products(&x.b.iter().collect::<Vec<_>>(), &from[of_x..]);
    let own = (0..columns * columns).map(|at| f64::from(u8::from(at / columns == at % columns)));
    let factors: Vec<f64> = inside.into_iter().map(|product| -product).chain(own).collect();
    let mut out: Vec<Vector> = w.iter().map(Vector::like).collect();
    combine(&mut out, &from, &factors);
    out
}
