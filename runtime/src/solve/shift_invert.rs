//! Smallest eigenvalues of A φ = λ B φ by shift and invert: block Lanczos with thick restarts (K. Wu and H. Simon,
//! "Thick-restart Lanczos method for large symmetric eigenvalue problems", SIAM J. Matrix Anal. Appl. 22 (2000)) for
//!
//! ```text
//! (A + σ B)⁻¹ B φ = θ φ,        λ = 1/θ − σ
//! ```
//!
//! in the inner product of B, with A + σ B positive definite, so that the largest θ are the smallest λ. B may be
//! semidefinite: the basis lies in the range of (A + σ B)⁻¹ B, where B is definite. A final product removes the
//! rounding error in B's null space (R. G. Grimes, J. G. Lewis and H. D. Simon, "A shifted block Lanczos algorithm for
//! solving sparse symmetric generalized eigenproblems", SIAM J. Matrix Anal. Appl. 15 (1994), section 5).
//!
//! A block finds an eigenvalue with at most as many copies as it has columns. Missed copies are searched for: after
//! convergence, the search continues from a random block orthogonal to the basis, and ends if that finds nothing
//! larger.

use super::{
    Continue, EigenModes, EigenSettings, LinearOperator, Observer, OperatorError, Outcome,
    Progress, Report,
};
use crate::algebra::factor::{FactorError, symmetric_eigen};
use crate::algebra::vector::multi_vector::{combine, products, symmetric_products};
use crate::algebra::vector::{Vector, epsilon};
use std::time::Instant;

/// Directions below this multiple of eps in the Gram matrix of normalised vectors are rounding error.
const ROUNDING: f64 = 100.0;
/// Components outside the basis below this multiple of eps, relative to the vector's length, are rounding error.
const DEPENDENT: f64 = 1e3;
/// Maximum basis size: twice the wanted vectors plus this number of blocks,
const BLOCKS: usize = 5;
/// and at least this number.
const BASIS: usize = 40;
/// Relative tolerance of θ for a confirmed eigenvalue.
const SAME: f64 = 1e-6;
/// Maximum number of searches for further eigenvalues from a random block.
const TRIALS: usize = 8;
/// Stopping tolerance relative to the requested tolerance of the modes.
const SAFETY: f64 = 0.1;
/// Backward errors below this multiple of eps are at the rounding-error level.
const BACKWARD: f64 = 1e3;
/// Largest residual at the rounding-error level with which eigenvalues are meaningful.
const USELESS: f64 = 1e-2;
/// Power iterations for a norm.
const POWER: usize = 6;

/// A pencil with its shift.
#[derive(Clone, Copy)]
pub struct ShiftedPencil<'a> {
    /// A, symmetric.
    pub a: &'a dyn LinearOperator,
    /// B, symmetric and positive semidefinite.
    pub b: &'a dyn LinearOperator,
    /// (A + σ B)⁻¹, positive definite.
    pub inverse: &'a dyn LinearOperator,
    /// σ.
    pub shift: f64,
}

/// A B-orthonormal basis V with its products B V, and Vᵀ B (A + σ B)⁻¹ B V of its leading vectors.
#[derive(Default)]
struct LanczosBasis {
    own: Vec<Vector>,
    b: Vec<Vector>,
    /// Columns of the projected operator, each with its first `i + 1` entries.
    projected: Vec<Vec<f64>>,
    /// Components of the last products in the following block: `[i * columns + j]`.
    next: Vec<f64>,
    /// Number of vectors in the last products.
    last: usize,
}

/// Component of a block outside a basis.
struct OrthogonalComponent {
    own: Vec<Vector>,
    b: Vec<Vector>,
    /// Inner products with the basis, `[i * columns + j]`.
    inside: Vec<f64>,
}

/// Eigenvalues of the projected operator, descending.
struct RitzPairs {
    values: Vec<f64>,
    /// Eigenvectors as columns, stored row by row.
    vectors: Vec<f64>,
    /// Residual estimate of each eigenpair.
    residuals: Vec<f64>,
}

impl RitzPairs {
    /// Returns the residuals relative to the eigenvalues.
    fn relative(&self) -> impl Iterator<Item = f64> + '_ {
        let pairs = self.values.iter().zip(&self.residuals);
        pairs.map(|(value, residual)| residual / value.abs().max(f64::MIN_POSITIVE))
    }
}

/// Result of a cycle.
struct CycleResult {
    ritz: RitzPairs,
    /// True if all wanted eigenpairs have converged.
    converged: bool,
    /// True if the basis spans the whole space.
    spans: bool,
}

/// A failed orthonormalisation.
enum OrthonormalisationError {
    /// B has a direction of negative curvature.
    Indefinite(f64),
    NotFinite,
    Operator(OperatorError),
}

impl From<OperatorError> for OrthonormalisationError {
    fn from(error: OperatorError) -> Self {
        Self::Operator(error)
    }
}

impl From<FactorError> for OrthonormalisationError {
    fn from(error: FactorError) -> Self {
        match error {
            FactorError::NotFinite => Self::NotFinite,
            error => Self::Operator(OperatorError::new(error.to_string())),
        }
    }
}

fn references(vectors: &[Vector]) -> Vec<&Vector> {
    vectors.iter().collect()
}

/// Computes linear combinations of vectors: `factors` has `columns` numbers per vector.
fn combined(from: &[&Vector], factors: &[f64], columns: usize) -> Vec<Vector> {
    let Some(first) = from.first() else { return Vec::new() };
    let mut out: Vec<Vector> = (0..columns).map(|_| first.like()).collect();
    combine(&mut out, from, factors);
    out
}

fn apply_all(
    operator: &dyn LinearOperator,
    vectors: &[Vector],
) -> Result<Vec<Vector>, OperatorError> {
    let product = |x: &Vector| {
        let mut y = x.like();
        operator.apply(x, &mut y).map(|()| y)
    };
    vectors.iter().map(product).collect()
}

impl LanczosBasis {
    /// Returns the number of vectors with known products.
    fn applied(&self) -> usize {
        self.projected.len()
    }

    /// Subtracts from each vector its component in the basis, and adds the inner products to `inside`.
    fn subtract(&self, w: &mut [Vector], inside: &mut [f64]) {
        if self.own.is_empty() || w.is_empty() {
            return;
        }
        let found = products(&references(&self.b), &references(w));
        let minus: Vec<f64> = found.iter().map(|product| -product).collect();
        let part = combined(&references(&self.own), &minus, w.len());
        w.iter_mut().zip(&part).for_each(|(w, part)| w.axpy(1.0, part));
        inside.iter_mut().zip(found).for_each(|(sum, found)| *sum += found);
    }

    /// Returns a B-orthonormal basis of the component of `w` outside this basis, without dependent directions.
    fn outside(
        &self,
        b: &dyn LinearOperator,
        mut w: Vec<Vector>,
    ) -> Result<OrthogonalComponent, OrthonormalisationError> {
        let columns = w.len();
        let mut inside = vec![0.0; self.own.len() * columns];
        for _ in 0..2 {
            self.subtract(&mut w, &mut inside);
        }
        let length = |j: usize| {
            let column = inside.iter().skip(j).step_by(columns);
            column.map(|entry| entry * entry).sum::<f64>()
        };
        let mut lengths: Vec<f64> = (0..columns).map(length).collect();
        let mut of_b = apply_all(b, &w)?;
        for pass in 0..2 {
            let Some(eps) = w.first().map(|first| epsilon(first.precision())) else { break };
            let basis = orthonormal(&w, &of_b, &lengths, eps)?;
            let k = basis.len() / w.len();
            w = combined(&references(&w), &basis, k);
            if pass == 0 {
                // Normalisation has amplified the rounding error in the basis.
                let mut ignored = vec![0.0; self.own.len() * k];
                self.subtract(&mut w, &mut ignored);
                of_b = apply_all(b, &w)?;
            } else {
                of_b = combined(&references(&of_b), &basis, k);
            }
            lengths = vec![0.0; k];
        }
        Ok(OrthogonalComponent { own: w, b: of_b, inside })
    }

    fn add(&mut self, block: OrthogonalComponent) {
        self.own.extend(block.own);
        self.b.extend(block.b);
    }

    /// Applies the operator to the block with unknown products, and adds the next block. Returns the number of
    /// products.
    fn expand(&mut self, of: ShiftedPencil<'_>) -> Result<usize, OrthonormalisationError> {
        let (start, n) = (self.applied(), self.own.len());
        let w = apply_all(of.inverse, &self.b[start..])?;
        let columns = w.len();
        let block = self.outside(of.b, w.clone())?;
        for j in 0..columns {
            let upper = (0..=start + j).map(|i| {
                let entry = block.inside[i * columns + j];
                if i < start {
                    return entry;
                }
                // Symmetrises the diagonal block.
                0.5 * (entry + block.inside[(start + j) * columns + i - start])
            });
            self.projected.push(upper.collect());
        }
        self.next = products(&references(&block.b), &references(&w));
        self.last = columns;
        debug_assert_eq!(self.applied(), n, "all products should be known");
        self.add(block);
        Ok(columns)
    }

    /// Computes eigenvalues and eigenvectors of the projected operator.
    fn ritz(&self) -> Result<RitzPairs, FactorError> {
        let m = self.applied();
        let mut entries = vec![0.0; m * m];
        for (j, column) in self.projected.iter().enumerate() {
            for (i, &entry) in column.iter().enumerate() {
                entries[i * m + j] = entry;
                entries[j * m + i] = entry;
            }
        }
        let (values, vectors) = symmetric_eigen(&entries, m)?;
        let turned: Vec<f64> =
            (0..m * m).map(|at| vectors[(at / m) * m + m - 1 - at % m]).collect();
        let (rows, first) = (self.next.len() / self.last.max(1), m - self.last);
        let residual = |j: usize| {
            let entry = |i: usize| -> f64 {
                let terms = (0..self.last)
                    .map(|l| self.next[i * self.last + l] * turned[(first + l) * m + j]);
                terms.sum()
            };
            (0..rows).map(|i| entry(i).powi(2)).sum::<f64>().sqrt()
        };
        let residuals = (0..m).map(residual).collect();
        let values = values.into_iter().rev().collect();
        Ok(RitzPairs { values, vectors: turned, residuals })
    }

    /// Keeps the leading Ritz vectors, and the block with unknown products.
    fn restart(&mut self, RitzPairs { values, vectors, .. }: &RitzPairs, keep: usize) {
        let m = self.applied();
        let factors: Vec<f64> =
            (0..m * keep).map(|at| vectors[(at / keep) * m + at % keep]).collect();
        for list in [&mut self.own, &mut self.b] {
            let rest = list.split_off(m);
            *list = combined(&references(list), &factors, keep);
            list.extend(rest);
        }
        self.projected = (0..keep)
            .map(|j| (0..=j).map(|i| if i == j { values[j] } else { 0.0 }).collect())
            .collect();
        (self.next, self.last) = (Vec::new(), 0);
    }

    /// Drops the block with unknown products.
    fn drop_block(&mut self) {
        let m = self.applied();
        self.own.truncate(m);
        self.b.truncate(m);
    }
}

/// Returns the factors of B-orthonormal combinations of vectors, `[i * columns + j]`; `lengths` are the squared lengths
/// of the subtracted components.
fn orthonormal(
    own: &[Vector],
    b: &[Vector],
    lengths: &[f64],
    eps: f64,
) -> Result<Vec<f64>, OrthonormalisationError> {
    let k = own.len();
    let gram = symmetric_products(&references(own), &references(b));
    if gram.iter().any(|entry| !entry.is_finite()) {
        return Err(OrthonormalisationError::NotFinite);
    }
    let scale = |j: usize| {
        let square = gram[j * k + j];
        let least = (DEPENDENT * eps).powi(2) * (lengths[j] + square);
        if square > least { square.sqrt().recip() } else { 0.0 }
    };
    let negative = |j: usize| gram[j * k + j] < -ROUNDING * eps * lengths[j];
    if let Some(j) = (0..k).find(|&j| negative(j)) {
        return Err(OrthonormalisationError::Indefinite(gram[j * k + j]));
    }
    let scale: Vec<f64> = (0..k).map(scale).collect();
    let scaled: Vec<f64> = (0..k * k).map(|at| scale[at / k] * gram[at] * scale[at % k]).collect();
    let (values, vectors) = symmetric_eigen(&scaled, k)?;
    let largest = values.last().copied().unwrap_or(0.0);
    if let Some(&least) = values.first().filter(|&&least| least < -1e-3 * largest) {
        return Err(OrthonormalisationError::Indefinite(least));
    }
    let kept: Vec<usize> =
        (0..k).filter(|&j| values[j] > ROUNDING * k as f64 * eps * largest).collect();
    let all = (0..k).flat_map(|i| kept.iter().map(move |&j| (i, j)));
    Ok(all.map(|(i, j)| scale[i] * vectors[i * k + j] / values[j].sqrt()).collect())
}

/// Returns a lower bound of ‖A‖, rarely far below it.
fn norm(a: &dyn LinearOperator, start: &Vector) -> Result<f64, OperatorError> {
    let (mut x, mut y, mut found) = (start.clone(), start.like(), 0.0f64);
    for _ in 0..POWER {
        let length = x.norm();
        if !(length > 0.0 && length.is_finite()) {
            break;
        }
        x.scale(1.0 / length);
        a.apply(&x, &mut y)?;
        found = found.max(y.norm());
        std::mem::swap(&mut x, &mut y);
    }
    Ok(found)
}

/// State of a search.
struct LanczosSearch<'a> {
    of: ShiftedPencil<'a>,
    basis: LanczosBasis,
    /// Vectors for random blocks.
    noise: Vec<Vector>,
    settings: EigenSettings,
    /// Lanczos residual of a converged vector, relative to θ.
    tolerance: f64,
    history: Vec<f64>,
    products: usize,
}

impl<'a> LanczosSearch<'a> {
    fn new(of: ShiftedPencil<'a>, noise: Vec<Vector>, settings: EigenSettings) -> Self {
        let eps = noise.first().map_or(f64::EPSILON, |first| epsilon(first.precision()));
        let tolerance = (SAFETY * settings.rtol).max(ROUNDING * eps);
        Self {
            of,
            basis: LanczosBasis::default(),
            noise,
            settings,
            tolerance,
            history: vec![1.0],
            products: 0,
        }
    }

    /// Returns the maximum basis size.
    fn full(&self) -> usize {
        (2 * self.settings.count + BLOCKS * self.noise.len()).max(BASIS)
    }

    /// Adds a random block and returns its number of columns.
    fn random(&mut self) -> Result<usize, OrthonormalisationError> {
        let b = apply_all(self.of.b, &self.noise)?;
        let start = apply_all(self.of.inverse, &b)?;
        self.products += start.len();
        let block = self.basis.outside(self.of.b, start)?;
        let columns = block.own.len();
        self.basis.add(block);
        Ok(columns)
    }

    /// Expands the basis until its leading vectors have converged or it is full; in a trial until it is full.
    fn cycle(
        &mut self,
        (full, trial): (usize, bool),
        observe: Observer<'_>,
    ) -> Result<Result<CycleResult, Outcome>, OrthonormalisationError> {
        let count = self.settings.count;
        let mut looked = 0;
        loop {
            if self.basis.own.len() == self.basis.applied() && self.random()? == 0 {
                // The basis spans the whole space.
                let ritz = self.basis.ritz()?;
                return Ok(Ok(CycleResult { ritz, converged: true, spans: true }));
            }
            self.products += self.basis.expand(self.of)?;
            let m = self.basis.applied();
            let ends = m >= full;
            if !ends && (trial || m < looked + looked / 8) {
                continue;
            }
            looked = m;
            let ritz = self.basis.ritz()?;
            let relative = ritz.relative().take(count);
            let mut worst = relative.fold(0.0, f64::max);
            // A basis smaller than the wanted number has no information about the rest.
            if m < count {
                worst = worst.max(1.0);
            }
            self.history.push(worst);
            let now = Progress {
                iteration: self.history.len(),
                residual: worst,
                target: self.settings.rtol,
            };
            if observe(now) == Continue::No {
                return Ok(Err(Outcome::Cancelled));
            }
            if !worst.is_finite() {
                return Ok(Err(Outcome::NotFinite));
            }
            let converged = worst <= self.tolerance;
            if converged || ends {
                return Ok(Ok(CycleResult { ritz, converged, spans: false }));
            }
            if self.history.len() >= self.settings.max_iterations {
                return Ok(Err(Outcome::IterationLimit));
            }
        }
    }

    /// Computes the largest θ with their vectors.
    fn run(
        &mut self,
        observe: Observer<'_>,
    ) -> Result<Result<Vec<f64>, Outcome>, OrthonormalisationError> {
        let (count, full) = (self.settings.count, self.full());
        let mut known: Option<Vec<f64>> = None;
        let mut trials = 0;
        if self.random()? == 0 {
            return Ok(Err(Outcome::Indefinite { curvature: 0.0 }));
        }
        loop {
            let trial = known.is_some();
            let CycleResult { ritz, converged, spans } = match self.cycle((full, trial), observe)? {
                Ok(cycle) => cycle,
                Err(outcome) => return Ok(Err(outcome)),
            };
            let wanted = count.min(ritz.values.len());
            if !converged {
                let keep = (wanted + (self.basis.applied() - wanted) / 3).max(1);
                self.basis.restart(&ritz, keep);
                continue;
            }
            let found = ritz.values[..wanted].to_vec();
            let is_same = |known: &Vec<f64>| {
                let pairs = || known.iter().zip(&found);
                pairs().all(|(known, found)| *found <= known * (1.0 + SAME))
            };
            self.basis.restart(&ritz, wanted);
            self.basis.drop_block();
            trials += 1;
            if spans || known.as_ref().is_some_and(is_same) || trials > TRIALS {
                return Ok(Ok(found));
            }
            known = Some(found);
        }
    }
}

/// Estimates the smallest and the largest of the `settings.count` smallest eigenvalues, and their errors, from one
/// basis; `None` after a failure.
///
/// # Errors
///
/// As for [`shift_invert`].
pub fn estimate(
    of: ShiftedPencil<'_>,
    start: Vec<Vector>,
    settings: EigenSettings,
) -> Result<Option<([f64; 2], f64)>, OperatorError> {
    let mut search = LanczosSearch::new(of, start, settings);
    let full = search.full();
    let mut first = || match search.random()? {
        0 => Ok(Err(Outcome::Indefinite { curvature: 0.0 })),
        _ => search.cycle((full, false), &mut |_| Continue::Yes),
    };
    match first() {
        Ok(Ok(CycleResult { ritz, .. })) => {
            let wanted = settings.count.min(ritz.values.len());
            let values: Vec<f64> =
                ritz.values[..wanted].iter().map(|theta| 1.0 / theta - of.shift).collect();
            let errors = ritz
                .relative()
                .zip(&values)
                .map(|(of_theta, value)| of_theta * (value + of.shift).abs());
            let error = errors.fold(0.0, f64::max);
            let ends = [values.first(), values.last()].map(Option::<&f64>::copied);
            Ok(match ends {
                [Some(first), Some(last)] => Some(([first, last], error)),
                _ => None,
            })
        }
        Ok(Err(_))
        | Err(OrthonormalisationError::Indefinite(_) | OrthonormalisationError::NotFinite) => {
            Ok(None)
        }
        Err(OrthonormalisationError::Operator(error)) => Err(error),
    }
}

/// Computes the smallest eigenvalues of A φ = λ B φ. `start` is a block of random vectors with 0 in constrained degrees
/// of freedom.
///
/// The residual of a mode is √(rᵀ(A + σ B)⁻¹r / φᵀ(A + σ B)φ) with r = A φ − λ B φ: there is an eigenvalue λ' for which
/// |λ' − λ| / (λ' + σ) is at most that.
///
/// # Errors
///
/// An operator that cannot be applied; a build without the feature `direct`. Numerical failures are the report's
/// outcome.
pub fn shift_invert(
    of: ShiftedPencil<'_>,
    start: Vec<Vector>,
    settings: EigenSettings,
    observe: Observer<'_>,
) -> Result<EigenModes, OperatorError> {
    let began = Instant::now();
    let mut search = LanczosSearch::new(of, start, settings);
    let found = match search.run(observe) {
        Ok(found) => found,
        Err(OrthonormalisationError::Indefinite(curvature)) => {
            Err(Outcome::Indefinite { curvature })
        }
        Err(OrthonormalisationError::NotFinite) => Err(Outcome::NotFinite),
        Err(OrthonormalisationError::Operator(error)) => return Err(error),
    };
    let LanczosSearch { basis, noise, mut history, mut products, .. } = search;
    let ended =
        |outcome, history| Report::ended("lanczos", began, settings.rtol, (outcome, history));
    let theta = match found {
        Ok(theta) => theta,
        Err(outcome) => {
            let report = ended(outcome, history);
            return Ok(EigenModes {
                values: vec![],
                vectors: vec![],
                residuals: vec![],
                products,
                report,
            });
        }
    };
    let eps = noise.first().map_or(f64::EPSILON, |first| epsilon(first.precision()));
    let (mut values, mut vectors, mut residuals) = (Vec::new(), Vec::new(), Vec::new());
    let mut backward = 0.0f64;
    let mut norms = None;
    for (theta, b) in theta.iter().zip(&basis.b) {
        // Final product, which is also a step of inverse iteration.
        let mut own = b.like();
        of.inverse.apply(b, &mut own)?;
        let mut of_b = own.like();
        of.b.apply(&own, &mut of_b)?;
        let scale = own.dot(&of_b).sqrt().recip();
        own.scale(scale);
        of_b.scale(scale);
        let value = 1.0 / theta - of.shift;
        let (mut r, mut z) = (own.like(), own.like());
        of.a.apply(&own, &mut r)?;
        r.axpy(-value, &of_b);
        of.inverse.apply(&r, &mut z)?;
        products += 2;
        let residual = (r.dot(&z).abs() * theta.abs()).sqrt();
        if residual > settings.rtol {
            let norms = match norms {
                Some(norms) => norms,
                None => *norms.insert((norm(of.a, &noise[0])?, norm(of.b, &noise[0])?)),
            };
            let size = (norms.0 + value.abs() * norms.1) * own.norm();
            backward = backward.max(r.norm() / size);
        }
        values.push(value);
        vectors.push(own);
        residuals.push(residual);
    }
    let worst = residuals.iter().copied().fold(0.0, f64::max);
    history.push(worst);
    let outcome = if worst <= settings.rtol {
        Outcome::Converged
    } else if backward > BACKWARD * eps {
        Outcome::Stagnated
    } else if worst <= USELESS {
        Outcome::Rounding
    } else {
        Outcome::BelowRounding
    };
    Ok(EigenModes { values, vectors, residuals, products, report: ended(outcome, history) })
}
