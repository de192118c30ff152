//! Restarted GMRES (Saad and Schultz 1986) with right preconditioning, for any regular operator; and FGMRES (Saad
//! 1993), which allows a preconditioner that varies between iterations.
//!
//! The method minimises ‖b − A M⁻¹ y‖ over the Krylov space K(A M⁻¹, r): the reported residual norm is the true one for
//! every preconditioner. FGMRES stores z_k = M_k⁻¹ v_k for each basis vector v_k, and x += Σ y_k z_k; GMRES applies M⁻¹
//! to Σ y_k v_k.
//!
//! Classical Gram-Schmidt orthogonalises the basis, with a second pass after cancellation. A pass reads each vector
//! twice, for all products and for the combination, and synchronises a device once. Givens rotations keep the Hessenberg
//! matrix triangular.
//!
//! Operators that are linear in complex numbers ([`LinearOperator::complex_pairs`]) have the complex Krylov space, of the
//! vectors v_k and i v_k, with complex coefficients. The spectrum of a real system [A −B; B A] has the conjugates of all
//! eigenvalues of A + iB, which a real polynomial must make small as well.

use super::ranges::at_least_one;
use super::stopping::{self, StoppingCriterion};
use super::{
    CgSettings, Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner,
    Progress, Report, alike, residual,
};
use crate::algebra::vector::multi_vector::products;
use crate::algebra::vector::{ComplexPairs, Vector, epsilon};
use num_complex::Complex64;

/// Stopping criterion: ‖b − A x‖ ≤ max(rtol·‖b‖, atol).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmresSettings {
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Maximum number of iterations over all cycles.
    pub max_iterations: usize,
    /// Iterations per cycle.
    pub restart: usize,
    /// See [`CgSettings::strict`].
    pub strict: bool,
}

impl Default for GmresSettings {
    fn default() -> Self {
        Self { rtol: 1e-10, atol: 0.0, max_iterations: 10_000, restart: 50, strict: false }
    }
}

/// Square of a vector's length from which products of its entries underflow.
const LEAST: f64 = 1e-200;
/// Maximum number of orthogonalisation passes: two suffice unless the vector vanishes.
const PASSES: usize = 3;
/// Reduction of a vector's length by orthogonalisation below which cancellation requires another pass. A smaller bound
/// saves passes but loses the basis: with 0.1, errors grow tenfold an iteration.
const CANCELLED: f64 = 0.7;

/// Solves A x = b from the given `x`.
///
/// # Errors
///
/// The operator or the preconditioner cannot be applied; invalid settings.
pub fn gmres(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: GmresSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    run("gmres", a, b, x, (preconditioner, false), settings, observe)
}

/// Solves A x = b with a preconditioner that may vary between iterations: one in another precision, or an iterative
/// one. It stores an additional vector per iteration of a cycle.
///
/// # Errors
///
/// As [`gmres()`].
pub fn fgmres(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: GmresSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    run("fgmres", a, b, x, (preconditioner, true), settings, observe)
}

fn run(
    solver: &'static str,
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    (preconditioner, flexible): (Preconditioner<'_>, bool),
    settings: GmresSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    let GmresSettings { rtol, atol, max_iterations, restart, strict } = settings;
    at_least_one("restart", restart)?;
    let stop = CgSettings { rtol, atol, max_iterations, strict };
    alike(b, &preconditioner.vectors().into_iter().chain([&*x]).collect::<Vec<_>>())?;
    let complex = match a.complex_pairs() {
        // GMRES applies the preconditioner to i v_k, too.
        Some(pairs) if flexible || is_complex_linear(preconditioner, b, pairs)? => Some(pairs),
        _ => None,
    };
    stopping::solve(solver, b, x, stop, observe, |b, x, criterion, observe, history| {
        let (basis, flexible) = (Vec::new(), flexible.then(Vec::new));
        let spaces = CycleVectors { basis, flexible, complex };
        cycles(a, b, x, (preconditioner, spaces), settings, criterion, observe, history)
    })
}

/// Largest difference of M⁻¹ i r and i M⁻¹ r, relative to their size, of a complex-linear preconditioner.
const LINEAR: f64 = 1e-3;

/// Returns whether a preconditioner is complex-linear, by one vector.
fn is_complex_linear(
    preconditioner: Preconditioner<'_>,
    r: &Vector,
    pairs: &ComplexPairs,
) -> Result<bool, OperatorError> {
    let (mut z, mut rotated, mut other) = (r.like(), r.like(), r.like());
    preconditioner.apply(r, &mut z)?;
    pairs.rotate(r, &mut rotated);
    preconditioner.apply(&rotated, &mut other)?;
    pairs.rotate(&z, &mut rotated);
    other.axpy(-1.0, &rotated);
    Ok(other.norm() <= LINEAR * z.norm())
}

/// Vectors of a cycle.
struct CycleVectors<'a> {
    /// v_k.
    basis: Vec<Vector>,
    /// z_k, for FGMRES.
    flexible: Option<Vec<Vector>>,
    /// Real and imaginary parts, for complex coefficients.
    complex: Option<&'a ComplexPairs>,
}

impl CycleVectors<'_> {
    /// Ensures storage for v_k, like some vector.
    fn basis_to(&mut self, k: usize, like: &Vector) {
        if self.basis.len() == k {
            self.basis.push(like.like());
        }
    }

    /// Computes v_{k+1} = A M⁻¹ v_k; M⁻¹ v_k is stored, or left in `work`.
    fn extend(
        &mut self,
        k: usize,
        a: &dyn LinearOperator,
        preconditioner: Preconditioner<'_>,
        work: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.basis_to(k + 1, work);
        let (known, next) = self.basis.split_at_mut(k + 1);
        let z = match &mut self.flexible {
            None => work,
            Some(kept) => {
                if kept.len() == k {
                    kept.push(work.like());
                }
                &mut kept[k]
            }
        };
        preconditioner.apply(&known[k], z)?;
        a.apply(z, &mut next[0])
    }

    /// Computes x += M⁻¹ Σ y_k v_k, or Σ y_k z_k.
    fn update(
        &self,
        x: &mut Vector,
        y: &[Complex64],
        preconditioner: Preconditioner<'_>,
        work: &mut Vector,
    ) -> Result<(), OperatorError> {
        if let Some(kept) = &self.flexible {
            add_combination(self.complex, x, 1.0, &kept[..y.len()], y);
            return Ok(());
        }
        let mut sum = work.like();
        add_combination(self.complex, &mut sum, 0.0, &self.basis[..y.len()], y);
        preconditioner.apply(&sum, work)?;
        x.axpy(1.0, work);
        Ok(())
    }
}

/// Computes x = a x + Σ y_k v_k with complex coefficients.
fn add_combination(
    complex: Option<&ComplexPairs>,
    x: &mut Vector,
    a: f64,
    from: &[Vector],
    y: &[Complex64],
) {
    let from: Vec<&Vector> = from.iter().collect();
    let parts = |part: fn(&Complex64) -> f64| y.iter().map(part).collect::<Vec<f64>>();
    x.add_combination(a, &from, &parts(|y| y.re));
    if let Some(pairs) = complex {
        let (mut sum, mut rotated) = (x.like(), x.like());
        sum.add_combination(0.0, &from, &parts(|y| y.im));
        pairs.rotate(&sum, &mut rotated);
        x.axpy(1.0, &rotated);
    }
}

fn cycles(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    (preconditioner, mut spaces): (Preconditioner<'_>, CycleVectors<'_>),
    settings: GmresSettings,
    criterion: StoppingCriterion,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let mut work = b.like();
    let mut last = f64::INFINITY;
    loop {
        let norm = residual(a, b, x, &mut work)?;
        let claimed = history.last().is_some_and(|&norm| norm <= criterion.claim());
        match history.last_mut() {
            Some(end) => *end = norm,
            None => history.push(norm),
        }
        if !norm.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if norm <= criterion.asked {
            return Ok(Outcome::Converged);
        }
        // A cycle without reduction would repeat forever.
        let in_vain = norm > last * (1.0 - 1e-6);
        if (claimed || in_vain)
            && let Some(outcome) = criterion.claimed(a, x, norm, last)?
        {
            return Ok(outcome);
        }
        if history.len() > settings.max_iterations {
            return Ok(Outcome::IterationLimit);
        }
        last = norm;
        let mut triangle = HessenbergMatrix::new(norm);
        let mut ended = None;
        spaces.basis_to(0, &work);
        spaces.basis[0].add_combination(0.0, &[&work], &[1.0 / norm]);
        while triangle.columns() < settings.restart && ended.is_none() {
            let k = triangle.columns();
            spaces.extend(k, a, preconditioner, &mut work)?;
            let (known, next) = spaces.basis.split_at_mut(k + 1);
            let column = orthogonalise(spaces.complex, known, &mut next[0]);
            let left = triangle.push(column);
            history.push(left);
            if !left.is_finite() {
                return Ok(Outcome::NotFinite);
            }
            let progress =
                Progress { iteration: history.len() - 1, residual: left, target: criterion.asked };
            if observe(progress) == Continue::No {
                ended = Some(Outcome::Cancelled);
            } else if left <= criterion.claim() || history.len() > settings.max_iterations {
                break;
            }
            if triangle.broke_down() {
                break;
            }
        }
        spaces.update(x, &triangle.solve(), preconditioner, &mut work)?;
        if let Some(outcome) = ended {
            return Ok(outcome);
        }
    }
}

/// Orthogonalises `next` against the orthonormal `basis` and normalises it; returns the coefficients, the length last.
///
/// A pass takes the products h with the basis and with itself at once. ‖next − V h‖² = ‖next‖² − ‖h‖² then gives the
/// length without another product, and this difference has full precision unless another pass is necessary anyway.
///
/// A complex product is v · w + i (i v) · w, and (i v) · w = −v · (i w).
fn orthogonalise(
    complex: Option<&ComplexPairs>,
    basis: &[Vector],
    next: &mut Vector,
) -> Vec<Complex64> {
    let mut column = vec![Complex64::ZERO; basis.len() + 1];
    let (mut first, mut unit) = (f64::NAN, 1.0);
    let mut rotated = complex.map(|_| next.like());
    for pass in 1..=PASSES {
        let mut sums_of = |own: &Vector| -> (Vec<Complex64>, f64) {
            let all: Vec<&Vector> = basis.iter().chain([own]).collect();
            let (Some(pairs), Some(rotated)) = (complex, &mut rotated) else {
                let mut sums = products(&[own], &all);
                let square = sums.pop().unwrap_or(0.0);
                return (sums.into_iter().map(Complex64::from).collect(), square);
            };
            pairs.rotate(own, rotated);
            let sums = products(&[own, rotated], &all);
            let (re, im) = sums.split_at(all.len());
            let entries = re.iter().zip(im).take(basis.len());
            let square = re.last().copied().unwrap_or(0.0);
            (entries.map(|(&re, &im)| Complex64::new(re, -im)).collect(), square)
        };
        let (mut sums, mut square) = sums_of(next);
        if pass == 1 && !(LEAST..LEAST.recip()).contains(&square) {
            let norm = next.norm();
            if norm > 0.0 && norm.is_finite() {
                unit = norm;
                next.scale(1.0 / norm);
                (sums, square) = sums_of(next);
            }
        }
        if pass == 1 {
            first = square;
        } else if square <= first * epsilon(next.precision()).powi(2) {
            next.fill(0.0);
            break;
        }
        column.iter_mut().zip(&sums).for_each(|(entry, product)| *entry += product);
        let left = square - sums.iter().map(Complex64::norm_sqr).sum::<f64>();
        let kept = left > CANCELLED * CANCELLED * square;
        let length = if kept { left.sqrt() } else { 1.0 };
        let factors: Vec<Complex64> = sums.iter().map(|product| -product / length).collect();
        add_combination(complex, next, 1.0 / length, basis, &factors);
        if kept {
            column[basis.len()] = length.into();
            break;
        }
        if pass == PASSES {
            let length = next.norm();
            if length <= first.sqrt() * epsilon(next.precision()) {
                next.fill(0.0);
            } else {
                next.scale(1.0 / length);
                column[basis.len()] = length.into();
            }
        }
    }
    column.iter_mut().for_each(|entry| *entry *= unit);
    column
}

/// The Hessenberg matrix, kept triangular by rotations, and the rotated right-hand side.
struct HessenbergMatrix {
    columns: Vec<Vec<Complex64>>,
    /// Cosines and sines; cosines are complex.
    rotations: Vec<(Complex64, f64)>,
    rhs: Vec<Complex64>,
    broke_down: bool,
}

impl HessenbergMatrix {
    fn new(norm: f64) -> Self {
        Self {
            columns: Vec::new(),
            rotations: Vec::new(),
            rhs: vec![norm.into()],
            broke_down: false,
        }
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns whether the Krylov space is exhausted.
    fn broke_down(&self) -> bool {
        self.broke_down
    }

    /// Adds a column of the Hessenberg matrix and returns the new residual norm.
    fn push(&mut self, mut column: Vec<Complex64>) -> f64 {
        let k = self.columns.len();
        self.broke_down = column[k + 1].re == 0.0;
        for (i, &(c, s)) in self.rotations.iter().enumerate() {
            let (a, b) = (column[i], column[i + 1]);
            column[i] = c.conj() * a + b * s;
            column[i + 1] = c * b - a * s;
        }
        let length = column[k].norm().hypot(column[k + 1].re);
        let (c, s) = match length {
            0.0 => (Complex64::ONE, 0.0),
            _ => (column[k] / length, column[k + 1].re / length),
        };
        column[k] = length.into();
        column.truncate(k + 1);
        let last = self.rhs[k];
        self.rhs[k] = c.conj() * last;
        self.rhs.push(-last * s);
        self.rotations.push((c, s));
        self.columns.push(column);
        self.rhs[k + 1].norm()
    }

    /// Returns the coefficients of the minimiser; a zero pivot (a singular operator) contributes nothing.
    fn solve(&self) -> Vec<Complex64> {
        let n = self.columns.len();
        let mut y = self.rhs[..n].to_vec();
        for k in (0..n).rev() {
            let pivot = self.columns[k][k].re;
            y[k] = if pivot == 0.0 { Complex64::ZERO } else { y[k] / pivot };
            for i in 0..k {
                let term = self.columns[k][i] * y[k];
                y[i] -= term;
            }
        }
        y
    }
}
