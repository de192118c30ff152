//! Continuation by arc length: R(u; s) = 0 along a path of states and load factors, beyond the folds where s turns
//! (Keller 1977).
//!
//! ```text
//! tangent:    J t = −R_s,  τ = ± (t, 1) / √(w ‖t‖² + 1),  w = 1 / ‖t‖² at the start
//! prediction: (u, s) + h τ
//! correction: J a = −R,  J b = −R_s,  δs from w τ_u·δu + τ_s δs = 0 with δu = a + δs b
//! fold:       τ_s changes its sign; a secant method in h finds the place
//! ```

use super::linear_solver::LinearSolver;
use super::{
    CgSettings, Continue, LoadableSystem, NewtonOptions, NonlinearSystem, Observer, OperatorError,
    Outcome, Progress, Report, Wrapper, newton, silent,
};
use crate::algebra::vector::Vector;
use crate::support::progress::doing;

/// Difference of load factors for R_s.
const EPSILON: f64 = 1e-5;
/// Relative tolerance of linear solves: corrections and tangents are as exact as these.
const EXACT: f64 = 1e-9;
/// Maximum number of corrections of a step, and the number from which steps do not grow.
const CORRECTIONS: usize = 8;
const EASY: usize = 3;
/// Ratio of residual norms from which a correction diverges.
const DIVERGES: f64 = 100.0;
/// Factor of a step after an easy one, and its largest length relative to the first.
const GROWTH: f64 = 1.5;
const LONGEST: f64 = 4.0;
/// Smallest length of a step relative to the first.
const SHORTEST: f64 = 1e-4;
/// Maximum number of points of a path, relative to the steps that the load alone would take.
const POINTS: usize = 20;
/// Maximum number of secant steps to a fold, and the relative change of s that ends them.
const SECANTS: usize = 12;
const FOLDED: f64 = 1e-10;

/// Settings of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArcLengthOptions {
    /// Inverse of the first step in s.
    pub steps: usize,
    /// Number of the passage through s = 1 that is the solution: 1 on the branch that starts at 0.
    pub crossing: usize,
}

/// Report of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct ArcLengthReport {
    /// Report of the last solve, at s = 1, with the corrections of all steps as iterations.
    pub newton: Report,
    /// Number of points of the path.
    pub points: usize,
    /// Load factors of the folds.
    pub folds: Vec<f64>,
    /// True if the path has passed s = 1 often enough.
    pub arrived: bool,
    /// Least and largest load factor of the path.
    pub range: [f64; 2],
}

/// A point of the path with its tangent.
struct Point {
    u: Vector,
    s: f64,
    /// τ_u and τ_s.
    tangent: Vector,
    rate: f64,
    /// Number of corrections that led to it.
    corrections: usize,
}

/// The continuation between two points.
struct Continuation<'a> {
    system: &'a mut dyn LoadableSystem,
    direction: LinearSolver,
    settings: NewtonOptions,
    /// w.
    weight: f64,
    /// Requested residual norm.
    target: f64,
    boundary: Vector,
    /// R and R_s.
    r: Vector,
    rate: Vector,
    iterations: usize,
}

/// Follows the path from s = 0 to a passage through s = 1. On entry `u` is a guess at s = 0.
///
/// # Errors
///
/// The system cannot be applied.
pub fn newton_by_arc_length(
    system: &mut dyn LoadableSystem,
    u: &mut Vector,
    options: ArcLengthOptions,
    settings: NewtonOptions,
    observe: Observer<'_>,
) -> Result<ArcLengthReport, OperatorError> {
    let mut boundary = u.like();
    system.set_load(0.0, &mut boundary)?;
    let first = newton(system, u, settings, observe, &mut silent)?;
    let (mut folds, mut range, mut points) = (Vec::new(), [0.0_f64, 0.0], 0);
    if !first.outcome.is_success() {
        return Ok(ArcLengthReport { newton: first, points, folds, arrived: false, range });
    }
    let direction = LinearSolver::new(u, settings.linear);
    let (r, rate) = (u.like(), u.like());
    let (weight, target, iterations) = (1.0, 0.0, first.iterations);
    let mut path =
        Continuation { system, direction, settings, weight, target, boundary, r, rate, iterations };
    let mut at = path.begin(u)?;
    let start = at.rate.recip() / options.steps.max(1) as f64;
    let (mut length, mut passed) = (start, 0);
    while points < POINTS * options.steps.max(1) {
        let _said = doing(format!("arc length, point {}: load factor {:.4}", points + 1, at.s));
        let Some(next) = path.correct(&at, length)? else {
            length *= 0.5;
            if length < SHORTEST * start {
                break;
            }
            continue;
        };
        points += 1;
        tracing::info!(
            "arc length {points}: load factor {:.6}, step {length:.3e}, {} corrections",
            next.s,
            next.corrections
        );
        let now =
            Progress { iteration: path.iterations, residual: path.r.norm(), target: path.target };
        if observe(now) == Continue::No {
            let newton =
                Report { outcome: Outcome::Cancelled, iterations: path.iterations, ..first };
            u.copy_from(&next.u);
            return Ok(ArcLengthReport { newton, points, folds, arrived: false, range });
        }
        if next.rate * at.rate < 0.0 {
            folds.push(path.fold(&at, (length, &next))?);
        }
        range = [range[0].min(next.s), range[1].max(next.s)];
        if (at.s - 1.0) * (next.s - 1.0) <= 0.0 && at.s != 1.0 {
            passed += 1;
            if passed == options.crossing {
                let share = (1.0 - at.s) / (next.s - at.s);
                u.copy_from(&at.u);
                u.axpby(share, &next.u, 1.0 - share);
                return path.end(u, (points, folds, range), observe);
            }
        }
        if next.corrections <= EASY {
            length = (GROWTH * length).min(LONGEST * start);
        }
        at = next;
        if at.s < -1.0 {
            break;
        }
    }
    u.copy_from(&at.u);
    let mut boundary = u.like();
    path.system.set_load(1.0, &mut boundary)?;
    let newton = Report { iterations: path.iterations, ..first };
    Ok(ArcLengthReport { newton, points, folds, arrived: false, range })
}

/// A system whose Jacobian is that of the last solve.
struct SameJacobian<'a>(&'a mut dyn NonlinearSystem);

impl Wrapper for SameJacobian<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.0
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.0
    }

    fn same_jacobian(&self) -> bool {
        true
    }
}

impl Continuation<'_> {
    /// Computes R and R_s at a point.
    fn evaluate(&mut self, u: &Vector, s: f64) -> Result<(), OperatorError> {
        self.system.set_load(s - EPSILON, &mut self.boundary)?;
        self.system.residual(u, &mut self.r)?;
        self.system.set_load(s + EPSILON, &mut self.boundary)?;
        self.system.residual(u, &mut self.rate)?;
        self.rate.axpby(-0.5 / EPSILON, &self.r, 0.5 / EPSILON);
        self.system.set_load(s, &mut self.boundary)?;
        self.system.residual(u, &mut self.r)
    }

    /// Solves J(u) δ = −R_s, or after that J(u) δ = −R with the same factors.
    fn solve(&mut self, u: &Vector, of_rate: bool) -> Result<Option<Vector>, OperatorError> {
        let mut b = if of_rate { self.rate.clone() } else { self.r.clone() };
        let system: &mut dyn NonlinearSystem = self.system;
        let mut same = SameJacobian(system);
        let system: &mut dyn NonlinearSystem = if of_rate { same.0 } else { &mut same };
        b.scale(-1.0);
        let linear = CgSettings {
            rtol: EXACT,
            max_iterations: self.settings.max_inner,
            ..CgSettings::default()
        };
        let report = self.direction.solve(system, u, &b, linear, &mut silent)?;
        let delta = self.direction.delta.clone();
        Ok((report.outcome.is_success() && delta.norm().is_finite()).then_some(delta))
    }

    /// Returns the solution at s = 0 with its tangent, and sets the weight and the target.
    fn begin(&mut self, u: &Vector) -> Result<Point, OperatorError> {
        self.evaluate(u, 0.0)?;
        self.target = (self.settings.rtol * self.rate.norm()).max(self.settings.atol);
        let Some(mut tangent) = self.solve(u, true)? else {
            return Err(OperatorError::new(
                "the path has no tangent at load 0: the Jacobian is singular there",
            ));
        };
        let norm = tangent.norm();
        self.weight = if norm > 0.0 { norm.powi(-2) } else { 1.0 };
        let rate = (self.weight * norm * norm + 1.0).sqrt().recip();
        tangent.scale(rate);
        Ok(Point { u: u.clone(), s: 0.0, tangent, rate, corrections: 0 })
    }

    /// Takes a step of some length from a point; `None` if the corrections do not converge.
    fn correct(&mut self, from: &Point, length: f64) -> Result<Option<Point>, OperatorError> {
        let (mut u, mut s) = (from.u.clone(), from.s + length * from.rate);
        u.axpy(length, &from.tangent);
        let (predicted, at) = (u.clone(), s);
        let mut before = f64::INFINITY;
        for corrections in 0..=CORRECTIONS {
            self.evaluate(&u, s)?;
            let norm = self.r.norm();
            if !norm.is_finite() || norm > DIVERGES * before {
                return Ok(None);
            }
            let Some(mut b) = self.solve(&u, true)? else { return Ok(None) };
            if norm <= self.target {
                let mut rate = (self.weight * b.dot(&b) + 1.0).sqrt().recip();
                if self.weight * b.dot(&from.tangent) + from.rate < 0.0 {
                    rate = -rate;
                }
                b.scale(rate);
                return Ok(Some(Point { u, s, tangent: b, rate, corrections }));
            }
            let Some(a) = self.solve(&u, false)? else { return Ok(None) };
            let mut moved = u.clone();
            moved.axpy(-1.0, &predicted);
            let w = self.weight;
            let gap = w * from.tangent.dot(&moved) + from.rate * (s - at);
            let step = -(gap + w * from.tangent.dot(&a)) / (from.rate + w * from.tangent.dot(&b));
            if !step.is_finite() {
                return Ok(None);
            }
            u.axpy(1.0, &a);
            u.axpy(step, &b);
            s += step;
            (before, self.iterations) = (norm, self.iterations + 1);
        }
        Ok(None)
    }

    /// Returns the load factor of the fold between two points, by a secant method for τ_s = 0 that keeps a bracket.
    fn fold(&mut self, from: &Point, (length, next): (f64, &Point)) -> Result<f64, OperatorError> {
        let (mut low, mut high) = ((0.0, from.rate), (length, next.rate));
        let mut best = if from.rate.abs() < next.rate.abs() { from.s } else { next.s };
        for _ in 0..SECANTS {
            let h = low.0 - low.1 * (high.0 - low.0) / (high.1 - low.1);
            let Some(found) = self.correct(from, h)? else { break };
            let change = (found.s - best).abs();
            best = found.s;
            if change <= FOLDED * best.abs() {
                break;
            }
            // The end that stays counts half, so that the other one moves, too.
            if found.rate * low.1 > 0.0 {
                (low, high.1) = ((h, found.rate), 0.5 * high.1);
            } else {
                (high, low.1) = ((h, found.rate), 0.5 * low.1);
            }
        }
        Ok(best)
    }

    /// Solves at s = 1 from a guess.
    fn end(
        mut self,
        u: &mut Vector,
        (points, folds, range): (usize, Vec<f64>, [f64; 2]),
        observe: Observer<'_>,
    ) -> Result<ArcLengthReport, OperatorError> {
        self.system.set_load(1.0, &mut self.boundary)?;
        let atol = self.target;
        let settings = NewtonOptions { atol, ..self.settings };
        let mut report = newton(self.system, u, settings, observe, &mut silent)?;
        report.iterations += self.iterations;
        Ok(ArcLengthReport { newton: report, points, folds, arrived: true, range })
    }
}
