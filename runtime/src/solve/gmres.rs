//! Restarted GMRES (Saad and Schultz) with right preconditioning, for any regular operator.
//!
//! Minimises ‖b − A M⁻¹ y‖ over the Krylov space K(A M⁻¹, r), so that the residual norm that it
//! reports is the true one whatever the preconditioner. The basis is made orthogonal by modified
//! Gram-Schmidt with a second pass where the first one cancelled; Givens rotations keep the
//! Hessenberg matrix triangular.

use super::goal::{self, Goal};
use super::ranges::at_least_one;
use super::{
    CgSettings, Continue, LinearOperator, Observer, OperatorError, Outcome, Preconditioner,
    Progress, Report, alike, residual,
};
use crate::vector::{Vector, epsilon};

/// When to stop: ‖b − A x‖ ≤ max(rtol·‖b‖, atol).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GmresSettings {
    /// Relative tolerance.
    pub rtol: f64,
    /// Absolute tolerance.
    pub atol: f64,
    /// Limit of iterations, counted over all cycles.
    pub max_iterations: usize,
    /// Iterations a cycle.
    pub restart: usize,
    /// See [`CgSettings::strict`].
    pub strict: bool,
}

impl Default for GmresSettings {
    fn default() -> Self {
        Self { rtol: 1e-10, atol: 0.0, max_iterations: 10_000, restart: 50, strict: false }
    }
}

/// Solves A x = b from the given `x`.
pub fn gmres(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: GmresSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    let GmresSettings { rtol, atol, max_iterations, restart, strict } = settings;
    at_least_one("restart", restart)?;
    let stop = CgSettings { rtol, atol, max_iterations, strict };
    alike(b, &preconditioner.vectors().into_iter().chain([&*x]).collect::<Vec<_>>())?;
    goal::solve("gmres", b, x, stop, observe, |b, x, goal, observe, history| {
        cycles(a, b, x, preconditioner, settings, goal, observe, history)
    })
}

fn cycles(
    a: &dyn LinearOperator,
    b: &Vector,
    x: &mut Vector,
    preconditioner: Preconditioner<'_>,
    settings: GmresSettings,
    goal: Goal,
    observe: Observer<'_>,
    history: &mut Vec<f64>,
) -> Result<Outcome, OperatorError> {
    let mut work = b.like();
    let mut basis: Vec<Vector> = Vec::new();
    let mut last = f64::INFINITY;
    loop {
        let norm = residual(a, b, x, &mut work)?;
        let claimed = history.last().is_some_and(|&norm| norm <= goal.claim());
        match history.last_mut() {
            Some(end) => *end = norm,
            None => history.push(norm),
        }
        if !norm.is_finite() {
            return Ok(Outcome::NotFinite);
        }
        if norm <= goal.asked {
            return Ok(Outcome::Converged);
        }
        // A cycle that takes nothing off is repeated by all that follow.
        let in_vain = norm > last * (1.0 - 1e-6);
        if (claimed || in_vain)
            && let Some(outcome) = goal.claimed(a, x, norm, last)?
        {
            return Ok(outcome);
        }
        if history.len() > settings.max_iterations {
            return Ok(Outcome::IterationLimit);
        }
        last = norm;
        let mut triangle = Triangle::new(norm);
        let mut ended = None;
        if basis.is_empty() {
            basis.push(work.like());
        }
        basis[0].copy_from(&work);
        basis[0].scale(1.0 / norm);
        while triangle.columns() < settings.restart && ended.is_none() {
            let k = triangle.columns();
            if basis.len() == k + 1 {
                basis.push(work.like());
            }
            preconditioner.apply(&basis[k], &mut work)?;
            let (known, next) = basis.split_at_mut(k + 1);
            a.apply(&work, &mut next[0])?;
            let column = orthogonalise(known, &mut next[0]);
            let left = triangle.push(column);
            history.push(left);
            if !left.is_finite() {
                return Ok(Outcome::NotFinite);
            }
            let progress =
                Progress { iteration: history.len() - 1, residual: left, target: goal.asked };
            if observe(progress) == Continue::No {
                ended = Some(Outcome::Cancelled);
            } else if left <= goal.claim() || history.len() > settings.max_iterations {
                break;
            }
            if triangle.broke_down() {
                break;
            }
        }
        update(x, &basis, &triangle.solve(), preconditioner, &mut work)?;
        if let Some(outcome) = ended {
            return Ok(outcome);
        }
    }
}

/// x += M⁻¹ Σ y_k v_k.
fn update(
    x: &mut Vector,
    basis: &[Vector],
    y: &[f64],
    preconditioner: Preconditioner<'_>,
    work: &mut Vector,
) -> Result<(), OperatorError> {
    let mut sum = work.like();
    for (vector, &factor) in basis.iter().zip(y) {
        sum.axpy(factor, vector);
    }
    preconditioner.apply(&sum, work)?;
    x.axpy(1.0, work);
    Ok(())
}

/// Makes `next` orthogonal to `basis` and of length 1; gives its coefficients, the length last.
fn orthogonalise(basis: &[Vector], next: &mut Vector) -> Vec<f64> {
    let before = next.norm();
    let mut column = vec![0.0; basis.len() + 1];
    let mut length = before;
    for _ in 0..2 {
        for (entry, vector) in column.iter_mut().zip(basis) {
            let product = next.dot(vector);
            next.axpy(-product, vector);
            *entry += product;
        }
        length = next.norm();
        if length > 0.1 * before {
            break;
        }
    }
    if length <= before * epsilon(next.precision()) {
        length = 0.0;
        next.fill(0.0);
    } else {
        next.scale(1.0 / length);
    }
    column[basis.len()] = length;
    column
}

/// The Hessenberg matrix, kept triangular by rotations, and the rotated right-hand side.
struct Triangle {
    columns: Vec<Vec<f64>>,
    rotations: Vec<(f64, f64)>,
    rhs: Vec<f64>,
    broke_down: bool,
}

impl Triangle {
    fn new(norm: f64) -> Self {
        Self { columns: Vec::new(), rotations: Vec::new(), rhs: vec![norm], broke_down: false }
    }

    fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Whether the Krylov space is exhausted.
    fn broke_down(&self) -> bool {
        self.broke_down
    }

    /// Adds a column of the Hessenberg matrix; gives the new residual norm.
    fn push(&mut self, mut column: Vec<f64>) -> f64 {
        let k = self.columns.len();
        self.broke_down = column[k + 1] == 0.0;
        for (i, &(c, s)) in self.rotations.iter().enumerate() {
            let (a, b) = (column[i], column[i + 1]);
            column[i] = c * a + s * b;
            column[i + 1] = c * b - s * a;
        }
        let length = column[k].hypot(column[k + 1]);
        let (c, s) =
            if length == 0.0 { (1.0, 0.0) } else { (column[k] / length, column[k + 1] / length) };
        column[k] = length;
        column.truncate(k + 1);
        let last = self.rhs[k];
        self.rhs[k] = c * last;
        self.rhs.push(-s * last);
        self.rotations.push((c, s));
        self.columns.push(column);
        self.rhs[k + 1].abs()
    }

    /// The coefficients of the minimiser; a zero pivot (a singular operator) contributes nothing.
    fn solve(&self) -> Vec<f64> {
        let n = self.columns.len();
        let mut y = self.rhs[..n].to_vec();
        for k in (0..n).rev() {
            let pivot = self.columns[k][k];
            y[k] = if pivot == 0.0 { 0.0 } else { y[k] / pivot };
            for i in 0..k {
                y[i] -= self.columns[k][i] * y[k];
            }
        }
        y
    }
}
