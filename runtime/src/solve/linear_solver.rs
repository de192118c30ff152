//! Linear solver dispatch for a Newton step or a linear problem: J(u) δ = −R(u), with solver fallbacks.

use super::cg::{WorkVectors, cg_with};
use super::condensation::CondensedSystem;
use super::direct::DirectSolver;
use super::local_dofs::BlockInverse;
use super::scale::BalanceWeights;
use super::{
    ApproximateInverse, Approximation, CgSettings, GmresSettings, LinearOperator, NonlinearSystem,
    NullSpace, Observer, OperatorError, Outcome, Preconditioner, Report, bicgstab, fgmres, gmres,
    minres,
};
use crate::algebra::vector::Vector;
use crate::support::random::random_signs;
use crate::support::timers::{in_step, step};

/// Number of random sign vectors in [`positive_inverse`].
const SAMPLES: usize = 8;

/// A linear solver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InnerSolver {
    /// [`cg`](super::cg()) for symmetric J, [`gmres()`] otherwise and after the first direction of negative curvature;
    /// [`DirectSolver`] before or after these, as [`LinearOptions::factors`] allows.
    #[default]
    Automatic,
    /// For indefinite systems: [`fgmres()`] if the system has its own preconditioner, otherwise [`minres()`] for
    /// symmetric J and [`gmres()`] for unsymmetric J; [`DirectSolver`] as above.
    Indefinite,
    /// Always [`cg`](super::cg()).
    Cg,
    /// Always [`minres()`].
    Minres,
    /// Always [`gmres()`].
    Gmres,
    /// Always [`fgmres()`].
    Fgmres,
    /// Always [`bicgstab()`].
    Bicgstab,
    /// Always [`DirectSolver`].
    Direct,
}

impl InnerSolver {
    /// The Krylov method that iterates with a symmetric Jacobian or another one, preconditioned by multigrid or the diagonal.
    pub fn iterating(self, symmetric: bool, multigrid: bool) -> Self {
        match (self, symmetric, multigrid) {
            (Self::Automatic, true, _) => Self::Cg,
            (Self::Automatic, false, true) | (Self::Indefinite, _, true) => Self::Fgmres,
            (Self::Indefinite, true, false) => Self::Minres,
            (Self::Automatic | Self::Indefinite, false, false) => Self::Gmres,
            (named, ..) => named,
        }
    }

    /// The word of the language; `automatic` where the system decides.
    pub fn word(self) -> &'static str {
        match self {
            Self::Automatic | Self::Indefinite => "automatic",
            Self::Cg => "cg",
            Self::Minres => "minres",
            Self::Gmres => "gmres",
            Self::Fgmres => "fgmres",
            Self::Bicgstab => "bicgstab",
            Self::Direct => "direct",
        }
    }
}

/// Use of a direct solver by [`InnerSolver::Automatic`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectFallback {
    /// Never.
    #[default]
    Never,
    /// After iterations have failed, or reached a limit.
    After {
        /// Iteration limit.
        iterations: usize,
    },
    /// Before any iteration.
    First,
}

/// Preconditioner selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preconditioning {
    /// Nothing.
    None,
    /// The diagonal.
    #[default]
    Jacobi,
    /// The system's own preconditioner, [`NonlinearSystem::precondition`]; the diagonal if there is none or it does not
    /// help.
    Approximation,
}

/// Options of a linear solve, as a plan has chosen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearOptions {
    /// The solver.
    pub solver: InnerSolver,
    /// Restart length of GMRES.
    pub restart: usize,
    /// Preconditioner.
    pub preconditioning: Preconditioning,
    /// Use of a direct solver as a fallback.
    pub factors: DirectFallback,
}

impl Default for LinearOptions {
    fn default() -> Self {
        let (solver, preconditioning) = (InnerSolver::default(), Preconditioning::default());
        Self { solver, restart: 50, preconditioning, factors: DirectFallback::Never }
    }
}

/// Reason for replacing an approximation of J⁻¹ by the diagonal, with its name.
enum ApproximationFailure {
    /// The solve with it failed.
    Failed(&'static str, Report),
    /// It is unavailable.
    Unavailable(&'static str, String),
}

/// Linear solver of Newton steps.
pub(super) struct LinearSolver {
    /// δ.
    pub(super) delta: Vector,
    /// Residual of an affine system, between solves.
    pub(super) residual: Option<Vector>,
    /// Work vectors of CG, once a solve has taken them.
    work: Option<WorkVectors>,
    /// D⁻¹, once a solve has taken it as a preconditioner.
    inverse: Option<Vector>,
    linear: LinearOptions,
    direct: Option<DirectSolver>,
    /// D⁻¹ of the condensed degrees of freedom, for the last Jacobian.
    inverse_of_local: Option<BlockInverse>,
    /// True if factors of one Jacobian are reused for nearby ones.
    keeps: bool,
    /// Digits per iteration gained with an approximation of its own Jacobian; set while it is reused for later Jacobians.
    gained: Option<f64>,
    /// Weights that balance the equations of all fields; they define the norm of the stopping criterion.
    pub(super) balance: Option<BalanceWeights>,
}

/// Fraction of the digits gained with a fresh approximation below which a reused one is rebuilt: multigrid levels cost as
/// much as two of about six iterations.
const AS_GOOD: f64 = 0.7;

/// Returns the number of digits gained.
fn gained_digits(report: &Report) -> f64 {
    let ends = report.history.first().zip(report.history.last());
    ends.map_or(0.0, |(first, last)| (first / last).log10())
}

/// Returns the mean number of digits gained per iteration.
fn gained(report: &Report) -> f64 {
    match report.iterations {
        _ if report.history.is_empty() => 0.0,
        0 => f64::INFINITY,
        iterations => gained_digits(report) / iterations as f64,
    }
}

impl LinearSolver {
    pub(super) fn new(u: &Vector, linear: LinearOptions) -> Self {
        Self {
            delta: u.like(),
            residual: None,
            work: None,
            inverse: None,
            linear,
            direct: None,
            inverse_of_local: None,
            keeps: false,
            gained: None,
            balance: None,
        }
    }

    /// Creates a solver for sequences of nearby systems, which reuses the factors of a Jacobian.
    pub(super) fn keeping(u: &Vector, linear: LinearOptions) -> Self {
        Self { keeps: true, ..Self::new(u, linear) }
    }

    /// Prefers a direct solver over iterations, if it is allowed at all, once linear solves must be exact.
    pub(super) fn exactly(&mut self, exact: bool) {
        if exact && matches!(self.linear.factors, DirectFallback::After { .. }) {
            self.linear.factors = DirectFallback::First;
        }
    }

    /// Returns the restart length of GMRES.
    pub(super) fn restart(&self) -> usize {
        self.linear.restart
    }

    /// Solves J(u) δ = `rhs`, from δ = 0.
    pub(super) fn solve(
        &mut self,
        system: &mut dyn NonlinearSystem,
        u: &Vector,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        system.linearise(u)?;
        let Some(local) = system.local() else {
            return self.solve_linearised(system, rhs, settings, observe);
        };
        let before = self.inverse_of_local.take();
        let was_condensed = before.is_some();
        let kept = before.filter(|_| system.same_jacobian());
        let inverse = match kept {
            Some(kept) => Some(kept),
            None => local.invert(system.jacobian(), rhs)?,
        };
        let Some(inverse) = inverse else {
            if was_condensed {
                // Its pattern is that of the condensed matrix.
                self.direct = None;
            }
            return self.solve_linearised(system, rhs, settings, observe);
        };
        let mut condensed = CondensedSystem::new(system, local, &inverse);
        let load = condensed.load(rhs)?;
        let report = self.solve_linearised(&mut condensed, &load, settings, observe)?;
        condensed.complete(rhs, &mut self.delta)?;
        self.inverse_of_local = Some(inverse);
        Ok(report)
    }

    /// Solves J δ = `rhs` at the last linearisation, with δ orthogonal to the null space.
    fn solve_linearised(
        &mut self,
        system: &mut dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        let report = self.solve_rows(system, rhs, settings, observe)?;
        system.null_space().iter().for_each(|null| null.project(&mut self.delta));
        Ok(report)
    }

    /// Solves J δ = `rhs`, up to the null space.
    fn solve_rows(
        &mut self,
        system: &mut dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        match (self.linear.solver, self.linear.factors) {
            (InnerSolver::Direct, _) => self.by_factors(system, rhs, settings, observe),
            (InnerSolver::Automatic | InnerSolver::Indefinite, DirectFallback::First) => {
                let tried = self.by_factors(system, rhs, settings, &mut *observe);
                let Err(error) = tried else { return tried };
                // The factors exceed the memory budget. An operator failure will occur again.
                self.linear.factors = DirectFallback::Never;
                let mut report = self.iterate(system, rhs, settings, observe)?;
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default();
                report.notes.push(format!(
                    "no factorisation: {reason}; {} was used instead",
                    report.solver
                ));
                Ok(report)
            }
            (
                InnerSolver::Automatic | InnerSolver::Indefinite,
                DirectFallback::After { iterations },
            ) => {
                let max_iterations = settings.max_iterations.min(iterations);
                let few = CgSettings { max_iterations, ..settings };
                let tried = self.iterate(system, rhs, few, &mut *observe)?;
                if !tried.outcome.is_hard() {
                    return Ok(tried);
                }
                let reached = self.delta.clone();
                let factors = self.by_factors(system, rhs, settings, &mut *observe);
                match factors {
                    Ok(mut report) if !report.outcome.is_hard() => {
                        // Later steps start with the solver that succeeded.
                        self.linear.factors = DirectFallback::First;
                        report.note_failure(&tried, None);
                        Ok(report)
                    }
                    // Neither succeeded, and the iterations had their full number.
                    _ if max_iterations == settings.max_iterations => {
                        self.delta = reached;
                        Ok(tried)
                    }
                    _ => {
                        self.linear.factors = DirectFallback::Never;
                        self.iterate(system, rhs, settings, observe)
                    }
                }
            }
            _ => self.iterate(system, rhs, settings, observe),
        }
    }

    /// Solves the same system iteratively at the last u, after a direct solver found J(u) singular.
    pub(super) fn solve_singular(
        &mut self,
        system: &mut dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Option<Report>, OperatorError> {
        let LinearOptions { solver, factors, .. } = self.linear;
        if !matches!(solver, InnerSolver::Automatic | InnerSolver::Indefinite) {
            return Ok(None);
        }
        self.linear.factors = DirectFallback::Never;
        let report = self.iterate(system, rhs, settings, observe)?;
        self.linear.factors = factors;
        Ok(Some(report))
    }

    fn by_factors(
        &mut self,
        system: &dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        let _factorising = step("direct solver");
        let direct = match &mut self.direct {
            Some(direct) => direct,
            None => {
                let missing = || OperatorError::new(NO_MATRIX);
                let coupling = system.coupling().ok_or_else(missing)?;
                let pins = system.null_space().map_or_else(Vec::new, NullSpace::pins);
                self.direct.insert(DirectSolver::new(coupling).pinned(pins))
            }
        };
        let delta = &mut self.delta;
        if !system.same_jacobian() {
            if self.keeps {
                let near =
                    direct.solve_near(system.jacobian(), rhs, delta, settings, &mut *observe);
                if let Some(report) = near? {
                    return Ok(report);
                }
            }
            direct.forget();
        }
        let symmetric = system.symmetric();
        direct.solve(system.jacobian(), rhs, delta, symmetric, settings, observe)
    }

    /// Solves with the system's own preconditioner if requested; falls back to the diagonal.
    fn iterate(
        &mut self,
        system: &mut dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        if self.linear.preconditioning != Preconditioning::Approximation {
            return self.by_diagonal(system, rhs, settings, observe);
        }
        let tried = self.by_approximation(system, rhs, settings, &mut *observe)?;
        let failure = match tried {
            Ok(report) => return Ok(report),
            Err(failure) => failure,
        };
        // Later steps start with the preconditioner that succeeded.
        self.linear.preconditioning = Preconditioning::Jacobi;
        system.forget_preconditioner();
        let mut report = self.by_diagonal(system, rhs, settings, observe)?;
        match failure {
            ApproximationFailure::Failed(name, tried) => report.note_failure(&tried, Some(name)),
            ApproximationFailure::Unavailable(name, why) => {
                report.notes.push(format!("no {name}: {why}; Jacobi's preconditioner is used"));
            }
        }
        Ok(report)
    }

    /// Solves with the system's own preconditioner: by CG for symmetric J if no solver is named, otherwise by FGMRES.
    /// The inner error gives the reason of a failure.
    fn by_approximation(
        &mut self,
        system: &mut dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Result<Report, ApproximationFailure>, OperatorError> {
        let fresh = self.gained.take();
        let Some(fresh) = fresh else {
            let name = system.preconditioner().map_or("multigrid", Approximation::name);
            if let Err(why) = in_step("preconditioner at the state", || system.precondition())? {
                return Ok(Err(ApproximationFailure::Unavailable(name, why)));
            }
            let made = self.with_approximation(system, rhs, settings, observe)?;
            self.gained = made.as_ref().ok().map(gained).filter(|digits| digits.is_finite());
            return Ok(made);
        };
        let kept = self.with_approximation(system, rhs, settings, &mut *observe)?;
        match kept {
            Ok(report) => {
                // A solve that starts within its tolerance gives no information.
                let good = gained(&report) >= AS_GOOD * fresh || report.iterations == 0;
                self.gained = good.then_some(fresh);
                Ok(Ok(report))
            }
            // Its reuse may be the reason: rebuild it.
            Err(_) => self.by_approximation(system, rhs, settings, observe),
        }
    }

    /// Returns a vector like `u` of undefined entries; work vectors of a solve that is over serve as such.
    pub(super) fn take_spare(&mut self, u: &Vector) -> Vector {
        self.work.as_mut().map_or_else(|| u.like(), WorkVectors::take_spare)
    }

    /// Takes it back before the next solve.
    pub(super) fn put_spare(&mut self, spare: Vector) {
        if let Some(work) = &mut self.work {
            work.put_spare(spare);
        }
    }

    /// Treats an existing approximation and weights as those of another system.
    pub(super) fn begin(&mut self) {
        (self.gained, self.balance) = (None, None);
    }

    /// Returns the norm of the stopping criterion.
    pub(super) fn norm(&self, r: &Vector) -> f64 {
        self.balance.as_ref().map_or_else(|| r.norm(), |balance| balance.norm(r))
    }

    /// Solves with the current approximation.
    fn with_approximation(
        &mut self,
        system: &dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Result<Report, ApproximationFailure>, OperatorError> {
        let solver = self.linear.solver.iterating(system.symmetric(), true);
        let Some(approximation) = system.preconditioner() else {
            let why = "the system has no levels".to_owned();
            return Ok(Err(ApproximationFailure::Unavailable("multigrid", why)));
        };
        self.delta.fill(0.0);
        let jacobian = system.jacobian();
        let symmetric = matches!(solver, InnerSolver::Cg | InnerSolver::Minres);
        let inverse = ApproximateInverse { approximation, jacobian, symmetric };
        let own = Preconditioner::Operator(&inverse);
        let (delta, work) = (&mut self.delta, &mut self.work);
        let balance = self.balance.as_ref();
        if solver == InnerSolver::Cg {
            approximation.start(rhs, delta)?;
        }
        let method = (solver, self.linear.restart);
        let report = krylov(balance, work, method, jacobian, rhs, delta, own, settings, observe)?;
        // What rounding leaves of a solution, it leaves with any preconditioner.
        let at_rounding = report.outcome == Outcome::BelowRounding && gained_digits(&report) >= 4.0;
        Ok(match report.outcome {
            _ if at_rounding => Ok(report),
            Outcome::Stagnated
            | Outcome::BrokeDown
            | Outcome::BelowRounding
            | Outcome::Indefinite { .. }
            | Outcome::NotFinite => Err(ApproximationFailure::Failed(approximation.name(), report)),
            // The diagonal would need more iterations.
            _ => Ok(report),
        })
    }

    fn by_diagonal(
        &mut self,
        system: &dyn NonlinearSystem,
        rhs: &Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        let mut inverse = self.inverse.take().unwrap_or_else(|| self.delta.like());
        let solved = self.with_diagonal(system, rhs, &mut inverse, settings, observe);
        self.inverse = Some(inverse);
        solved
    }

    /// Solves with the diagonal as preconditioner, in the vector `inverse`.
    fn with_diagonal(
        &mut self,
        system: &dyn NonlinearSystem,
        rhs: &Vector,
        inverse: &mut Vector,
        settings: CgSettings,
        observe: Observer<'_>,
    ) -> Result<Report, OperatorError> {
        let linear = self.linear;
        if linear.preconditioning != Preconditioning::None {
            system.diagonal(inverse)?;
        }
        self.delta.fill(0.0);
        let jacobian = system.jacobian();
        let tries_cg = match self.linear.solver {
            InnerSolver::Automatic => system.symmetric(),
            solver => solver == InnerSolver::Cg,
        };
        let mut tried = None;
        if tries_cg {
            inverse.invert();
            let own = preconditioner(inverse, linear);
            let (method, balance) = ((InnerSolver::Cg, linear.restart), self.balance.as_ref());
            let (delta, work) = (&mut self.delta, &mut self.work);
            let report =
                krylov(balance, work, method, jacobian, rhs, delta, own, settings, &mut *observe)?;
            let indefinite = matches!(report.outcome, Outcome::Indefinite { .. });
            let factors = self.linear.factors != DirectFallback::Never;
            if self.linear.solver == InnerSolver::Cg || !indefinite || factors {
                return Ok(report);
            }
            // Later steps start with the solver that succeeded.
            self.linear.solver = InnerSolver::Gmres;
            self.delta.fill(0.0);
            if linear.preconditioning != Preconditioning::None {
                system.diagonal(inverse)?;
            }
            tried = Some(report);
        }
        if linear.preconditioning != Preconditioning::None {
            positive_inverse(jacobian, inverse)?;
        }
        let (delta, jacobi) = (&mut self.delta, preconditioner(inverse, self.linear));
        let work = &mut self.work;
        let solver = match self.linear.solver {
            InnerSolver::Automatic => InnerSolver::Gmres,
            solver => solver.iterating(system.symmetric(), false),
        };
        let (method, balance) = ((solver, self.linear.restart), self.balance.as_ref());
        let mut report =
            krylov(balance, work, method, jacobian, rhs, delta, jacobi, settings, observe)?;
        tried.iter().for_each(|tried| report.note_failure(tried, None));
        Ok(report)
    }
}

/// Calls the Krylov method of a solver; for [`InnerSolver::Automatic`] it is GMRES, which suits every system. A balance
/// defines a weighted norm in which the equations of all fields have equal size.
fn krylov(
    balance: Option<&BalanceWeights>,
    work: &mut Option<WorkVectors>,
    (solver, restart): (InnerSolver, usize),
    jacobian: &dyn LinearOperator,
    rhs: &Vector,
    delta: &mut Vector,
    own: Preconditioner<'_>,
    settings: CgSettings,
    observe: Observer<'_>,
) -> Result<Report, OperatorError> {
    if let Some(balance) = balance {
        let (operator, inverse) = (balance.operator(jacobian), balance.preconditioner(own));
        let (rhs, mut x) = (balance.of(rhs), balance.inverse_of(delta));
        let (method, own) = ((solver, restart), Preconditioner::Operator(&inverse));
        let settings = CgSettings { atol: settings.atol / balance.lift, ..settings };
        let report = krylov(None, work, method, &operator, &rhs, &mut x, own, settings, observe)?;
        *delta = balance.of(&x);
        return Ok(report);
    }
    let _iterating = step("Krylov method");
    let CgSettings { rtol, atol, max_iterations, strict } = settings;
    let cycles = GmresSettings { rtol, atol, max_iterations, restart, strict };
    match solver {
        InnerSolver::Cg => cg_with(work, jacobian, rhs, delta, own, settings, observe),
        InnerSolver::Minres => minres(jacobian, rhs, delta, own, settings, observe),
        InnerSolver::Bicgstab => bicgstab(jacobian, rhs, delta, own, settings, observe),
        InnerSolver::Fgmres => fgmres(jacobian, rhs, delta, own, cycles, observe),
        InnerSolver::Automatic
        | InnerSolver::Indefinite
        | InnerSolver::Gmres
        | InnerSolver::Direct => gmres(jacobian, rhs, delta, own, cycles, observe),
    }
}

fn preconditioner(inverse: &Vector, linear: LinearOptions) -> Preconditioner<'_> {
    match linear.preconditioning {
        Preconditioning::None => Preconditioner::Identity,
        _ => Preconditioner::Jacobi(inverse),
    }
}

/// Error of an operator without [`NonlinearSystem::coupling`].
const NO_MATRIX: &str = "the matrix of this operator is too dense, or too large, to be assembled\n\
                         help: use an iterative solver";

/// Turns the diagonal D of J into a preconditioner of an indefinite J: 1/|D_ii|. In rows with D_ii = 0, as for a
/// pressure, it is 1/S_ii with the Schur complement S = J D⁻¹ J, up to sign.
///
/// S is not formed: for random sign vectors z, the mean of (S z)_i² is Σ_j S_ij², which S_ii² dominates.
fn positive_inverse(jacobian: &dyn LinearOperator, d: &mut Vector) -> Result<(), OperatorError> {
    let diagonal = d.to_vec();
    d.invert();
    let missing: Vec<usize> = (0..diagonal.len()).filter(|&i| diagonal[i] == 0.0).collect();
    if !d.any(!missing.is_empty()) {
        d.make_positive();
        return Ok(());
    }
    let (mut z, mut y) = (d.like(), d.like());
    let mut squares = vec![0.0; missing.len()];
    let mut random = random_signs();
    for _ in 0..SAMPLES {
        let mut entries = vec![0.0; diagonal.len()];
        for &i in &missing {
            entries[i] = random.next().unwrap_or(1.0);
        }
        z.set(&entries);
        z.synchronise();
        jacobian.apply(&z, &mut y)?;
        y.multiply(d);
        jacobian.apply(&y, &mut z)?;
        let product = z.to_vec();
        squares.iter_mut().zip(&missing).for_each(|(square, &i)| *square += product[i].powi(2));
    }
    d.make_positive();
    let mut entries = d.to_vec();
    for (square, &i) in squares.iter().zip(&missing) {
        let size = (square / SAMPLES as f64).sqrt();
        if size > 0.0 && size.is_finite() {
            entries[i] = 1.0 / size;
        }
    }
    d.set(&entries);
    Ok(())
}
