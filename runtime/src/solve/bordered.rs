//! Systems with unknown numbers: fields u and numbers c with R(u, c) = 0 and g(u, c) = 0, by Newton's method with block
//! elimination.
//!
//! ```text
//! [ A  B ] [ δu ]     [ R ]       A X = B,  A x = −R
//! [ C  D ] [ δc ] = − [ g ]       (D − C X) δc = −g − C x,   δu = x − X δc
//! ```
//!
//! Each solve is one with A alone, by the solver and the preconditioner of any form; the Schur complement is small and
//! dense. A may map the constants e of some fields to 0, which the numbers determine: A e = 0 and eᵀ A = 0. Their
//! multiples α are unknowns next to δc then, and A is solved orthogonally to e:
//!
//! ```text
//! [ D − C X   C e ] [ δc ]   [ −g − C x ]
//! [ eᵀ B      0   ] [ α  ] = [ −eᵀ R    ]     δu = x − X δc + e α
//! ```
//!
//! (W. Govaerts, "Numerical Methods for Bifurcations of Dynamical Equilibria" (2000), chapter 3.)

use super::convergence::noise;
use super::linear_solver::{LinearOptions, LinearSolver};
use super::scale::norms;
use super::stopping::FAR;
use super::{
    CgSettings, Continue, NewtonStep, NonlinearSystem, Observer, OperatorError, Outcome, Progress,
    Report, Wrapper,
};
use crate::algebra::vector::{Vector, epsilon};
use std::time::Instant;

/// Share of the tolerance that the linear solves may use.
const SHARE: f64 = 0.1;
/// Fraction of the predicted decrease that a step must reach.
const SUFFICIENT: f64 = 1e-4;
/// Smallest λ.
const SMALLEST_STEP: f64 = 1e-8;
/// Multiple of the rounding error up to which a row of a number counts as solved.
const ROUNDING: f64 = 1e3;
/// Smallest pivot of the Schur complement, relative to the row.
const PIVOT: f64 = 1e-13;

/// The derivatives next to A.
pub struct Border {
    /// The columns of B = ∂R/∂c.
    pub columns: Vec<Vector>,
    /// The rows of C = ∂g/∂u.
    pub rows: Vec<Vector>,
    /// D = ∂g/∂c, row by row.
    pub corner: Vec<f64>,
}

/// A system with unknown numbers. Its methods as a [`NonlinearSystem`] are those at the current numbers.
pub trait BorderedSystem: NonlinearSystem {
    /// Returns the system at the current numbers.
    fn fields_alone(&mut self) -> &mut dyn NonlinearSystem;

    /// Returns the current numbers.
    fn numbers(&self) -> Vec<f64>;

    /// Sets the numbers.
    fn set_numbers(&mut self, numbers: &[f64]) -> Result<(), OperatorError>;

    /// Computes r = R(u), and returns g.
    fn both_residuals(&mut self, u: &Vector, r: &mut Vector) -> Result<Vec<f64>, OperatorError>;

    /// Computes the border at u.
    fn border(&mut self, u: &Vector) -> Result<Border, OperatorError>;

    /// Returns whether R and g are affine in u and c together.
    fn is_affine(&self) -> bool;

    /// Returns the constants e that the numbers determine.
    fn free_constants(&self) -> Vec<Vector>;

    /// Makes a right-hand side orthogonal to all constants of A's null space.
    fn make_consistent(&self, r: &mut Vector) -> Result<(), OperatorError>;

    /// Computes the dependent degrees of freedom of a solution.
    fn settle(&self, u: &mut Vector) -> Result<(), OperatorError>;
}

/// Settings of [`solve_bordered`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BorderedSettings {
    /// Relative and absolute tolerance of R; g has the same relative tolerance.
    pub stop: CgSettings,
    /// Maximum number of steps.
    pub max_steps: usize,
    /// Maximum number of iterations of each linear solve.
    pub max_inner: usize,
    /// Linear solver.
    pub linear: LinearOptions,
    /// True for a line search.
    pub line_search: bool,
}

/// The system at one linearisation, which further solves share.
struct FrozenSystem<'a> {
    inner: &'a mut dyn NonlinearSystem,
    fresh: bool,
}

impl Wrapper for FrozenSystem<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.inner
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.inner
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        if self.fresh { self.inner.linearise(u) } else { Ok(()) }
    }

    fn same_jacobian(&self) -> bool {
        !self.fresh || self.inner.same_jacobian()
    }
}

/// The border with A⁻¹ B.
struct Elimination {
    border: Border,
    /// The columns of X.
    x: Vec<Vector>,
    free: Vec<Vector>,
}

/// Sizes to which residuals are compared: the largest terms so far.
struct ResidualScales {
    r: f64,
    g: Vec<f64>,
}

impl ResidualScales {
    /// Raises the sizes of the rows to those of their terms.
    fn see(&mut self, border: &Border, u: &Vector, numbers: &[f64]) {
        let (size, count) = (u.norm(), numbers.len());
        for (row, scale) in self.g.iter_mut().enumerate() {
            let of_numbers = numbers.iter().zip(&border.corner[row * count..]);
            let of_numbers = of_numbers.map(|(c, d)| (c * d).abs());
            let largest = of_numbers.fold(border.rows[row].norm() * size, f64::max);
            *scale = scale.max(largest);
        }
    }

    /// Returns the largest relative residual.
    fn merit(&self, r: f64, g: &[f64]) -> f64 {
        let ratio = |value: f64, scale: f64| if value == 0.0 { 0.0 } else { value.abs() / scale };
        let all = g.iter().zip(&self.g).map(|(g, scale)| ratio(*g, *scale));
        all.fold(ratio(r, self.r), f64::max)
    }
}

/// State between steps.
struct BorderedState {
    settings: BorderedSettings,
    solver: LinearSolver,
    r: Vector,
    g: Vec<f64>,
    scales: ResidualScales,
    elimination: Option<Elimination>,
    steps: Vec<NewtonStep>,
    history: Vec<f64>,
    notes: Vec<String>,
    name: &'static str,
}

/// Solves from u and the current numbers; u satisfies the essential conditions.
///
/// # Errors
///
/// A failed operator application, equations of numbers that are singular.
pub fn solve_bordered(
    system: &mut dyn BorderedSystem,
    u: &mut Vector,
    settings: BorderedSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    settings.stop.check()?;
    let start = Instant::now();
    let mut r = u.like();
    let g = system.both_residuals(u, &mut r)?;
    let norm = r.norm();
    let scales = ResidualScales { r: norm, g: g.iter().map(|g| g.abs()).collect() };
    let solver = LinearSolver::new(u, settings.linear);
    let mut state = BorderedState {
        settings,
        solver,
        r,
        g,
        scales,
        elimination: None,
        steps: Vec::new(),
        history: vec![norm],
        notes: Vec::new(),
        name: "none",
    };
    let outcome = loop {
        if let Some(outcome) = state.finished(system, u)? {
            break outcome;
        }
        if let Some(outcome) = state.step(system, u, &mut *observe)? {
            break outcome;
        }
        let (iteration, residual) = (state.steps.len(), state.r.norm());
        let progress = Progress { iteration, residual, target: state.target() };
        if !system.is_affine() && observe(progress) == Continue::No {
            break Outcome::Cancelled;
        }
    };
    system.settle(u)?;
    let (target, affine) = (state.target(), system.is_affine());
    let inner: usize = state.steps.iter().map(|step| step.inner_iterations).sum();
    let mut report = Report {
        solver: if affine { state.name } else { "newton" },
        outcome,
        iterations: if affine { inner } else { state.steps.len() },
        history: state.history,
        target,
        seconds: start.elapsed().as_secs_f64(),
        notes: state.notes,
        newton: if affine { Vec::new() } else { state.steps },
    };
    report.note_rounding();
    Ok(report)
}

impl BorderedState {
    fn target(&self) -> f64 {
        let CgSettings { rtol, atol, .. } = self.settings.stop;
        (rtol * self.scales.r).max(atol)
    }

    /// Returns the outcome if no other step follows.
    fn finished(
        &self,
        system: &dyn BorderedSystem,
        u: &Vector,
    ) -> Result<Option<Outcome>, OperatorError> {
        let (norm, CgSettings { rtol, strict, .. }) = (self.r.norm(), self.settings.stop);
        if !norm.is_finite() || self.g.iter().any(|g| !g.is_finite()) {
            return Ok(Some(Outcome::NotFinite));
        }
        let smallest = ROUNDING * epsilon(u.precision());
        let rows = self.g.iter().zip(&self.scales.g);
        let solved = |rtol: f64| rows.clone().all(|(g, scale)| g.abs() <= rtol * scale);
        // The first step shows the sizes of the terms.
        if self.steps.is_empty() {
            let is_zero = norm == 0.0 && self.g.iter().all(|&g| g == 0.0);
            return Ok(is_zero.then_some(Outcome::Converged));
        }
        if norm <= self.target() && solved(rtol.max(smallest)) {
            return Ok(Some(Outcome::Converged));
        }
        let falls = match self.history[..] {
            [.., before, last] => last < 0.5 * before,
            _ => true,
        };
        if !falls
            && solved(rtol.max(smallest))
            && norm <= FAR * noise(as_system(system), u, &self.r)?.norm()
        {
            let outcome = if strict { Outcome::BelowRounding } else { Outcome::Rounding };
            return Ok(Some(outcome));
        }
        let limit = self.steps.len() >= self.settings.max_steps;
        let end = if system.is_affine() { Outcome::Stagnated } else { Outcome::IterationLimit };
        Ok(limit.then_some(end))
    }

    /// Takes a step; returns the outcome if it ends the solve.
    fn step(
        &mut self,
        system: &mut dyn BorderedSystem,
        u: &mut Vector,
        observe: Observer<'_>,
    ) -> Result<Option<Outcome>, OperatorError> {
        let (before, mut inner) = (self.r.norm(), 0);
        let of_fields = norms(&system.fields(), &self.r);
        if self.elimination.is_none() || !system.is_affine() {
            match self.eliminate(system, u, &mut inner, &mut *observe)? {
                Ok(made) => self.elimination = Some(made),
                Err(outcome) => return Ok(Some(outcome)),
            }
        }
        let mut rhs = self.r.clone();
        rhs.scale(-1.0);
        system.make_consistent(&mut rhs)?;
        let size = rhs.norm();
        let rtol = if size > 0.0 { SHARE * self.target() / size } else { 0.5 };
        let mut frozen = FrozenSystem { inner: system.fields_alone(), fresh: false };
        let report = self.solve(&mut frozen, u, &rhs, (rtol, before), observe)?;
        inner += report.iterations;
        let is_hard = !report.outcome.is_success() && report.outcome != Outcome::IterationLimit;
        if is_hard {
            return Ok(Some(report.outcome));
        }
        let Some(elimination) = &self.elimination else { return Ok(None) };
        let mut delta = self.solver.delta.clone();
        let change = elimination.numbers(&self.r, &self.g, &delta)?;
        let count = self.g.len();
        let mut of_numbers = u.like();
        for (column, (x, c)) in
            elimination.border.columns.iter().zip(elimination.x.iter().zip(&change))
        {
            delta.axpy(-c, x);
            of_numbers.axpy(*c, column);
        }
        for (ones, alpha) in elimination.free.iter().zip(&change[count..]) {
            delta.axpy(*alpha, ones);
        }
        self.scales.r = self.scales.r.max(of_numbers.norm());
        let (damping, backtracks) = self.search(system, u, &delta, &change[..count])?;
        let forcing = rtol;
        self.steps.push(NewtonStep {
            residual: before,
            fields: of_fields,
            forcing,
            solver: report.solver,
            inner_iterations: inner,
            inner_outcome: report.outcome,
            damping,
            backtracks,
        });
        self.name = report.solver;
        self.history.push(self.r.norm());
        Ok((damping == 0.0).then_some(Outcome::LineSearchFailed))
    }

    /// Linearises at u, and solves A X = B.
    fn eliminate(
        &mut self,
        system: &mut dyn BorderedSystem,
        u: &Vector,
        inner: &mut usize,
        observe: Observer<'_>,
    ) -> Result<Result<Elimination, Outcome>, OperatorError> {
        let border = system.border(u)?;
        let mut x = Vec::new();
        for (number, column) in border.columns.iter().enumerate() {
            let mut rhs = column.clone();
            system.make_consistent(&mut rhs)?;
            let mut frozen = FrozenSystem { inner: system.fields_alone(), fresh: number == 0 };
            let rtol = SHARE * self.settings.stop.rtol;
            let size = (rtol, column.norm());
            let report = self.solve(&mut frozen, u, &rhs, size, &mut *observe)?;
            *inner += report.iterations;
            if !report.outcome.is_success() && report.outcome != Outcome::IterationLimit {
                return Ok(Err(report.outcome));
            }
            x.push(self.solver.delta.clone());
        }
        Ok(Ok(Elimination { border, x, free: system.free_constants() }))
    }

    /// Solves A δ = `rhs` with a relative tolerance. The right-hand side is what a projection left of a vector of some
    /// `size`, perhaps no more than its rounding error.
    fn solve(
        &mut self,
        system: &mut FrozenSystem<'_>,
        u: &Vector,
        rhs: &Vector,
        (rtol, size): (f64, f64),
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        let rtol = rtol.clamp(epsilon(u.precision()), 0.5);
        let max_iterations = self.settings.max_inner;
        let atol = ROUNDING * epsilon(u.precision()) * size;
        let settings = CgSettings { rtol, atol, max_iterations, ..CgSettings::default() };
        let mut report = self.solver.solve(system, u, rhs, settings, observe)?;
        for note in std::mem::take(&mut report.notes) {
            // Rounding matters in the residual of the whole system alone.
            if report.outcome != Outcome::Rounding && !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(report)
    }

    /// Moves by λ δ with the largest λ ≤ 1 that reduces the residuals; returns λ, 0 if there is none, and the number of
    /// reductions.
    fn search(
        &mut self,
        system: &mut dyn BorderedSystem,
        u: &mut Vector,
        delta: &Vector,
        change: &[f64],
    ) -> Result<(f64, usize), OperatorError> {
        let (start, numbers) = (u.clone(), system.numbers());
        let (mut lambda, mut backtracks) = (1.0, 0);
        let norm = self.r.norm();
        loop {
            u.copy_from(&start);
            u.axpy(lambda, delta);
            let moved: Vec<f64> =
                numbers.iter().zip(change).map(|(c, change)| c + lambda * change).collect();
            system.set_numbers(&moved)?;
            let (before, after) = (self.g.clone(), system.both_residuals(u, &mut self.r)?);
            self.g = after;
            if let Some(elimination) = &self.elimination {
                self.scales.see(&elimination.border, u, &moved);
            }
            let merit = self.scales.merit(self.r.norm(), &self.g);
            let reference = self.scales.merit(norm, &before);
            let is_enough = merit <= (1.0 - SUFFICIENT * lambda) * reference;
            let is_small = merit <= self.settings.stop.rtol;
            if is_enough || is_small || system.is_affine() || !self.settings.line_search {
                return Ok((lambda, backtracks));
            }
            if lambda <= SMALLEST_STEP {
                // A useless step at the rounding-error level is none.
                let rounding = noise(as_system(system), &start, &self.r)?.norm();
                return Ok((if norm <= FAR * rounding { lambda } else { 0.0 }, backtracks));
            }
            self.g = before;
            lambda *= 0.5;
            backtracks += 1;
        }
    }
}

fn as_system(system: &dyn BorderedSystem) -> &dyn NonlinearSystem {
    system
}

impl Elimination {
    /// Returns the step of the numbers, then the multiples of the constants, for A x = −R.
    fn numbers(&self, r: &Vector, g: &[f64], x: &Vector) -> Result<Vec<f64>, OperatorError> {
        let Self { border, x: columns, free } = self;
        let (count, all) = (g.len(), g.len() + free.len());
        let mut matrix = vec![0.0; all * all];
        let mut rhs = Vec::with_capacity(all);
        for (row, c) in border.rows.iter().enumerate() {
            let own = &mut matrix[row * all..(row + 1) * all];
            for (column, (entry, of_column)) in own.iter_mut().zip(columns).enumerate() {
                *entry = border.corner[row * count + column] - c.dot(of_column);
            }
            for (entry, ones) in own[count..].iter_mut().zip(free) {
                *entry = c.dot(ones);
            }
            rhs.push(-g[row] - c.dot(x));
        }
        for (row, ones) in free.iter().enumerate() {
            let own = &mut matrix[(count + row) * all..(count + row + 1) * all];
            for (entry, column) in own.iter_mut().zip(&border.columns) {
                *entry = ones.dot(column);
            }
            rhs.push(-ones.dot(r));
        }
        solve_dense(matrix, rhs).ok_or_else(|| OperatorError::new(SINGULAR))
    }
}

/// Error of a singular Schur complement.
const SINGULAR: &str = "the equations of the unknown numbers do not determine them: their Schur complement is singular\n\
     help: give each number a row that changes with it or with a field that it changes, and each field without a \
     condition a number that fixes its constant";

/// Solves a small dense system by Gaussian elimination with row pivoting of scaled rows; `None` if it is singular.
fn solve_dense(mut matrix: Vec<f64>, mut rhs: Vec<f64>) -> Option<Vec<f64>> {
    let n = rhs.len();
    for (row, rhs) in matrix.chunks_mut(n).zip(&mut rhs) {
        let size = row.iter().fold(0.0, |most: f64, entry| most.max(entry.abs()));
        if size == 0.0 || !size.is_finite() {
            return None;
        }
        row.iter_mut().for_each(|entry| *entry /= size);
        *rhs /= size;
    }
    let mut order: Vec<usize> = (0..n).collect();
    for column in 0..n {
        let largest = |&a: &usize, &b: &usize| {
            let [a, b] = [a, b].map(|row| matrix[order[row] * n + column].abs());
            a.total_cmp(&b)
        };
        let pivot = (column..n).max_by(largest)?;
        order.swap(column, pivot);
        let own = order[column];
        let value = matrix[own * n + column];
        if value.abs() <= PIVOT {
            return None;
        }
        for &row in &order[column + 1..] {
            let factor = matrix[row * n + column] / value;
            for at in column..n {
                matrix[row * n + at] -= factor * matrix[own * n + at];
            }
            rhs[row] -= factor * rhs[own];
        }
    }
    let mut solution = vec![0.0; n];
    for column in (0..n).rev() {
        let own = order[column];
        let known: f64 = (column + 1..n).map(|at| matrix[own * n + at] * solution[at]).sum();
        solution[column] = (rhs[own] - known) / matrix[own * n + column];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::solve_dense;

    #[test]
    fn small_systems_are_solved_with_pivots_and_singular_ones_found() {
        let found = solve_dense(vec![0.0, 2.0, 1e9, 1e9], vec![4.0, 3e9]).expect("regular");
        assert_eq!(found, [1.0, 2.0]);
        assert_eq!(solve_dense(vec![1.0, 2.0, 2.0, 4.0], vec![1.0, 2.0]), None);
        assert_eq!(solve_dense(vec![0.0], vec![1.0]), None);
    }
}
