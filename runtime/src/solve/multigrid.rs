//! Multigrid preconditioner: a V-cycle over levels, each with an operator, its diagonal and a transfer to the next
//! coarser level.
//!
//! ```text
//! smooth     x_k = x_{k−1} + d_k,   r_k = r_{k−1} − A d_k
//!            d_k = (2k − 3)/(2k + 1) d_{k−1} + (8k − 4)/((2k + 1) λ) D⁻¹ r_{k−1}
//! correct    r_c = Pᵀ r,   x += P C r_c
//! smooth
//! ```
//!
//! The smoother is the Chebyshev iteration of the fourth kind (Lottes 2023, "Optimal polynomial smoothers for multigrid
//! V-cycles", algorithm 1). It needs only the largest eigenvalue λ of D⁻¹A, no lower bound of the spectrum. From x = 0
//! its first step takes no product: k pre- and k post-smoothing steps take 2k products. The cycle is symmetric, and
//! positive definite unless λ is too small.
//!
//! For unsymmetric operators, λ is the largest |λ| found by power iteration. The cycle works while the symmetric part
//! dominates: for convection-diffusion on small cells, not for dominant convection.
//!
//! Levels may compute in single precision inside a double-precision solve: input and output are rounded. The input is
//! also scaled to about 1 by a power of two, since residuals may underflow single precision.

mod estimate;

use super::approximation::{Approximation, LevelFigures, MultigridStatistics, Smoother};
use super::{LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::linear::lend_applied;
use crate::algebra::vector::Vector;
use crate::device::{DeviceError, RepeatedWork};
use crate::support::timers::in_step;
pub(super) use estimate::largest;
use estimate::{exponent, largest_by_powers};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Safety factor of λ: estimates from few iterations may be too small, and a larger λ does no harm.
const RAISED: f64 = 1.2;

/// Reason of an unusable operator.
const INDEFINITE: &str = "the operator is not positive definite";
/// Reason of an operator with entries that lose digits, or underflow, in single precision.
const SMALL: &str = "the operator is too small for single precision, in which multigrid computes";
/// Binary exponent of the smallest normal number in single precision.
const LEAST: f64 = -126.0;
/// Largest binary exponent of the residual scaling.
const FARTHEST: f64 = 120.0;

/// Grid transfer between a level and the next coarser one.
pub trait GridTransfer: Send + Sync {
    /// Computes fine += P coarse.
    ///
    /// # Errors
    ///
    /// Vectors of other levels, a device failure.
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError>;

    /// Computes coarse = Pᵀ fine.
    ///
    /// # Errors
    ///
    /// As [`GridTransfer::prolong`].
    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError>;

    /// Injects a fine state into the coarser level, for operators that depend on one.
    ///
    /// # Errors
    ///
    /// As [`GridTransfer::prolong`].
    fn inject(&self, _fine: &Vector, _coarse: &mut Vector) -> Result<(), OperatorError> {
        Ok(())
    }
}

/// Coarse-grid solver: exact, or nearly so.
pub trait CoarseGridSolver: Send + Sync {
    /// Sets the state, if the matrix depends on one.
    ///
    /// # Errors
    ///
    /// A device failure; the inner error is the reason why it cannot solve there.
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError>;

    /// Sets the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError>;

    /// Computes x ≈ A⁻¹ b; symmetric and positive definite.
    ///
    /// # Errors
    ///
    /// A device failure.
    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError>;

    /// Returns whether [`Self::solve`] only enqueues device work, identical in each call and without synchronisation.
    fn replayable(&self) -> bool {
        false
    }

    /// Returns a short description.
    fn words(&self) -> String;
}

/// The operator of a level.
pub trait LevelOperator: NonlinearSystem + Send + Sync {
    /// Sets the parameters.
    ///
    /// # Errors
    ///
    /// A device failure.
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError>;
}

/// Operator of a smoothed level.
enum LevelSystem {
    /// A form at a state.
    Form(Box<dyn LevelOperator>),
    /// A matrix with known diagonal and λ.
    Matrix(Box<dyn LinearOperator + Send + Sync>),
}

impl LevelSystem {
    fn jacobian(&self) -> &dyn LinearOperator {
        match self {
            Self::Form(system) => system.jacobian(),
            Self::Matrix(matrix) => &**matrix,
        }
    }
}

/// A level with a smoother.
pub struct MultigridLevel {
    system: LevelSystem,
    transfer: Box<dyn GridTransfer>,
    /// D⁻¹.
    inverse: Vector,
    /// λ.
    largest: f64,
    /// Binary exponent of a typical entry of D if that is far from 1, otherwise 0.
    size: f64,
    /// Number of degrees of freedom over all processes.
    unknowns: usize,
    work: Mutex<WorkVectors>,
}

/// Work vectors of a level.
struct WorkVectors {
    b: Vector,
    x: Vector,
    r: Vector,
    d: Vector,
    q: Vector,
}

/// Number of cycles from which recording pays off. A recording costs as much as launching the kernels of a few cycles
/// one by one: a single solve gains nothing, a sequence of time steps does.
const WORTH_RECORDING: usize = 12;

/// Multigrid hierarchy, finest level first, as a preconditioner.
pub struct Multigrid {
    levels: Vec<MultigridLevel>,
    coarsest: Box<dyn CoarseGridSolver>,
    /// Right-hand side and solution of the coarsest level.
    bottom: Mutex<[Vector; 2]>,
    /// Number of degrees of freedom of the coarsest level over all processes.
    bottom_unknowns: usize,
    smoother: Smoother,
    /// Number of pre-smoothing steps, equal to that of post-smoothing steps.
    steps: usize,
    /// Number of applications of the finest operator so far.
    applications: AtomicUsize,
    /// Recording of the cycle, if allowed.
    repeated: Mutex<Option<RepeatedWork>>,
    /// Seconds of set-up, and of all linearisations.
    seconds: f64,
}

impl MultigridLevel {
    /// Creates a level from its operator and the transfer to the next one; `like` is any of its vectors.
    pub fn new(
        system: Box<dyn LevelOperator>,
        like: &Vector,
        transfer: Box<dyn GridTransfer>,
    ) -> Self {
        Self::with(LevelSystem::Form(system), transfer, like, (like.like(), 1.0))
    }

    /// Creates a level with a constant operator, D⁻¹ and λ.
    pub fn fixed(
        operator: Box<dyn LinearOperator + Send + Sync>,
        transfer: Box<dyn GridTransfer>,
        inverse: Vector,
        largest: f64,
    ) -> Self {
        let like = inverse.like();
        Self::with(LevelSystem::Matrix(operator), transfer, &like, (inverse, largest))
    }

    fn with(
        system: LevelSystem,
        transfer: Box<dyn GridTransfer>,
        like: &Vector,
        (inverse, largest): (Vector, f64),
    ) -> Self {
        let zeros = || like.like();
        let work = WorkVectors { b: zeros(), x: zeros(), r: zeros(), d: zeros(), q: zeros() };
        let unknowns = like.entries_in_all();
        Self { system, transfer, inverse, largest, size: 0.0, unknowns, work: Mutex::new(work) }
    }

    fn work(&self) -> MutexGuard<'_, WorkVectors> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Linearises at the state in x: computes the diagonal and λ. Returns false if the operator is found not to be
    /// positive definite.
    fn linearise(&mut self) -> Result<bool, OperatorError> {
        let LevelSystem::Form(system) = &mut self.system else { return Ok(true) };
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        system.linearise(&work.x)?;
        system.diagonal(&mut self.inverse)?;
        self.inverse.invert();
        let (WorkVectors { b, r, d, q, .. }, a) = (work, system.jacobian());
        self.size = exponent(&self.inverse, q);
        let found = match system.symmetric() {
            true => largest(a, &self.inverse, [b, r, d, q], system.null_space())?,
            false => largest_by_powers(a, &self.inverse, [r, q])?,
        };
        self.largest = RAISED * found.unwrap_or(1.0);
        Ok(found.is_some())
    }

    /// Pre-smooths from x = 0, and computes r = b − A x.
    fn pre_smooth(
        &self,
        work: &mut WorkVectors,
        (smoother, steps): (Smoother, usize),
    ) -> Result<(), OperatorError> {
        let (a, WorkVectors { b, x, r, d, q }) = (self.system.jacobian(), work);
        x.chebyshev_first(4.0 / (3.0 * self.largest), d, b, &self.inverse);
        for k in 2..=steps {
            a.apply(d, q)?;
            let from = (k == 2).then_some(&*b);
            x.chebyshev_step(smoother.factors(k, self.largest), d, r, from, q, &self.inverse);
        }
        a.apply(d, q)?;
        if steps == 1 {
            r.copy_from(b);
        }
        r.axpy(-1.0, q);
        Ok(())
    }

    /// Post-smooths from the current x; r is undefined afterwards.
    fn post_smooth(
        &self,
        work: &mut WorkVectors,
        (smoother, steps): (Smoother, usize),
    ) -> Result<(), OperatorError> {
        let (a, WorkVectors { b, x, r, d, q }) = (self.system.jacobian(), work);
        a.apply(x, q)?;
        let first = (0.0, 4.0 / (3.0 * self.largest));
        x.chebyshev_step(first, d, r, Some(b), q, &self.inverse);
        for k in 2..=steps {
            a.apply(d, q)?;
            x.chebyshev_step(smoother.factors(k, self.largest), d, r, None, q, &self.inverse);
        }
        Ok(())
    }
}

impl Multigrid {
    /// Creates a hierarchy from levels and a coarse-grid solver; `like` is any vector of the latter.
    pub fn new(
        levels: Vec<MultigridLevel>,
        coarsest: Box<dyn CoarseGridSolver>,
        like: &Vector,
        steps: usize,
    ) -> Self {
        let bottom = Mutex::new([like.like(), like.like()]);
        let applications = AtomicUsize::new(0);
        let (smoother, bottom_unknowns) = (Smoother::default(), like.entries_in_all());
        let (repeated, seconds) = (Mutex::new(None), 0.0);
        Self {
            levels,
            coarsest,
            bottom,
            bottom_unknowns,
            smoother,
            steps,
            applications,
            repeated,
            seconds,
        }
    }

    /// Allows recording of the cycle on a device.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { repeated: Mutex::new(Some(RepeatedWork::worth(WORTH_RECORDING))), ..self }
    }

    /// Sets the smoother.
    #[must_use]
    pub fn smoothed_by(self, smoother: Smoother) -> Self {
        Self { smoother, ..self }
    }

    /// Sets the seconds of set-up.
    #[must_use]
    pub fn made_in(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }

    /// Linearises all levels at the entries `part` of a state.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied; the inner error is the reason why it is unusable: an operator is not
    /// positive definite.
    pub fn linearise(
        &mut self,
        u: &Vector,
        part: Range<usize>,
    ) -> Result<Result<(), String>, OperatorError> {
        let start = Instant::now();
        self.forget_recording();
        let usable = self.take(u, part)?;
        self.seconds += start.elapsed().as_secs_f64();
        self.applications.fetch_add(estimate::ITERATIONS, Ordering::Relaxed);
        Ok(usable)
    }

    fn take(
        &mut self,
        u: &Vector,
        part: Range<usize>,
    ) -> Result<Result<(), String>, OperatorError> {
        self.at(0, |_, x| {
            x.take_part(1.0, u, part);
            Ok(())
        })?;
        let Self { levels, coarsest, bottom, .. } = self;
        let [_, bottom] = bottom.get_mut().unwrap_or_else(PoisonError::into_inner);
        for l in 0..levels.len() {
            let (before, after) = levels.split_at_mut(l + 1);
            let own = &mut before[l];
            let definite = in_step("eigenvalue bounds", || own.linearise())?;
            if !definite || own.size < LEAST {
                let why = if own.size < LEAST { SMALL } else { INDEFINITE };
                return Ok(Err(format!("on its level of {} unknowns {why}", own.unknowns)));
            }
            let state = &own.work().x;
            match after.first() {
                Some(next) => own.transfer.inject(state, &mut next.work().x)?,
                None => own.transfer.inject(state, bottom)?,
            }
        }
        in_step("coarse-grid matrix", || coarsest.linearise(bottom))
    }

    /// Returns the power of two that scales a norm to about 1. If D is far from 1 it scales to about √D, as A⁻¹ b is
    /// then about 1/√D.
    fn scale(&self, norm: f64) -> f64 {
        let half = self.levels.first().map_or(0.0, |level| (level.size / 2.0).round());
        scale(norm * (-half).exp2())
    }

    /// Drops the recording, which contains the numbers of another state.
    fn forget_recording(&mut self) {
        let own = self.repeated.get_mut().unwrap_or_else(PoisonError::into_inner);
        own.iter_mut().for_each(RepeatedWork::forget);
    }

    /// Returns whether a cycle only enqueues device work.
    pub(crate) fn replayable(&self) -> bool {
        let on_device = |level: &MultigridLevel| level.system.jacobian().replayable();
        self.levels.iter().all(on_device) && self.coarsest.replayable()
    }

    /// Runs one cycle from the finest level's right-hand side, replayed if possible.
    fn whole(&self) -> Result<(), OperatorError> {
        let mut own = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        let finest =
            self.levels.first().map(|level| level.work().b.array().map(|(own, _)| Arc::clone(own)));
        match (&mut *own, finest.flatten()) {
            (Some(own), Some(on)) if self.replayable() => own.run(&**on.device(), || self.cycle(0)),
            _ => self.cycle(0),
        }
    }

    /// Returns a vector of zeros of the finest level.
    pub(crate) fn zeros(&self) -> Vector {
        match self.levels.first() {
            Some(level) => level.inverse.like(),
            None => self.bottom.lock().unwrap_or_else(PoisonError::into_inner)[0].like(),
        }
    }

    fn levels(&self) -> Vec<LevelFigures> {
        let own = |level: &MultigridLevel| LevelFigures {
            unknowns: level.unknowns,
            largest: Some(level.largest),
        };
        let last = LevelFigures { unknowns: self.bottom_unknowns, largest: None };
        self.levels.iter().map(own).chain([last]).collect()
    }

    /// Computes y = A x with the operator of the finest level.
    pub(crate) fn finest(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        match self.levels.first() {
            Some(level) => level.system.jacobian().apply(x, y),
            None => Err(OperatorError::new("there are no levels")),
        }
    }

    /// Runs one cycle for the entries `part` of r and z; `norm` is ‖r‖.
    pub(crate) fn apply_part(
        &self,
        r: &Vector,
        z: &mut Vector,
        part: Range<usize>,
        norm: f64,
    ) -> Result<(), OperatorError> {
        self.lend_part(r, part.clone(), norm, &mut |factor, x| z.put_part(factor, x, part.clone()))
    }

    /// Does the same, and lends the result in the finest level's precision, with its factor.
    fn lend_part(
        &self,
        r: &Vector,
        part: Range<usize>,
        norm: f64,
        take: &mut dyn FnMut(f64, &Vector),
    ) -> Result<(), OperatorError> {
        let scale = self.scale(norm);
        self.at(0, |b, _| {
            b.take_part(scale, r, part);
            Ok(())
        })?;
        self.whole()?;
        if !self.levels.is_empty() {
            self.applications.fetch_add(2 * self.steps, Ordering::Relaxed);
        }
        self.at(0, |_, x| {
            take(1.0 / scale, x);
            Ok(())
        })
    }

    /// Computes an initial guess by nested iteration: x_l = P x_{l+1} + C (b_l − A P x_{l+1}) from the coarse-grid
    /// solver up to the second level, then x = P x_1. The right-hand sides b_{l+1} = Pᵀ b_l are those of Galerkin's
    /// method in the coarser spaces. The finest level's cycle is left to the subsequent iteration: the total cost is
    /// below one product there.
    fn nested(
        &self,
        b: &Vector,
        x: &mut Vector,
        part: Range<usize>,
        norm: f64,
    ) -> Result<bool, OperatorError> {
        if self.levels.is_empty() {
            return Ok(false);
        }
        let scale = self.scale(norm);
        self.at(0, |own, _| {
            own.take_part(scale, b, part.clone());
            Ok(())
        })?;
        for (l, level) in self.levels.iter().enumerate() {
            let own = level.work();
            self.at(l + 1, |b, _| level.transfer.restrict(&own.b, b))?;
        }
        self.at(self.levels.len(), |b, x| self.coarsest.solve(b, x))?;
        for (l, level) in self.levels.iter().enumerate().rev() {
            let mut work = level.work();
            let WorkVectors { b, x, q, .. } = &mut *work;
            x.fill(0.0);
            self.at(l + 1, |_, coarse| level.transfer.prolong(coarse, x))?;
            if l == 0 {
                break;
            }
            level.system.jacobian().apply(x, q)?;
            b.axpy(-1.0, q);
            let begun = x.clone();
            drop(work);
            self.cycle(l)?;
            level.work().x.axpy(1.0, &begun);
        }
        self.at(0, |_, own| {
            x.put_part(1.0 / scale, own, part);
            Ok(())
        })?;
        Ok(true)
    }

    /// Computes x ≈ A⁻¹ b on the levels from `l` on, in place.
    fn cycle(&self, l: usize) -> Result<(), OperatorError> {
        let Some(level) = self.levels.get(l) else {
            return self.at(l, |b, x| self.coarsest.solve(b, x));
        };
        let mut work = level.work();
        let own = &mut *work;
        let by = (self.smoother, self.steps);
        level.pre_smooth(own, by)?;
        self.at(l + 1, |b, _| level.transfer.restrict(&own.r, b))?;
        self.cycle(l + 1)?;
        self.at(l + 1, |_, x| level.transfer.prolong(x, &mut own.x))?;
        level.post_smooth(own, by)
    }

    /// Calls a function with right-hand side and solution of a level, the coarsest included.
    fn at(
        &self,
        l: usize,
        act: impl FnOnce(&mut Vector, &mut Vector) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        match self.levels.get(l) {
            Some(level) => {
                let WorkVectors { b, x, .. } = &mut *level.work();
                act(b, x)
            }
            None => {
                let [b, x] = &mut *self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
                act(b, x)
            }
        }
    }
}

/// Returns the power of two that scales a norm to about 1, within single precision.
fn scale(norm: f64) -> f64 {
    if norm > 0.0 && norm.is_finite() {
        (-norm.log2().round()).clamp(-FARTHEST, FARTHEST).exp2()
    } else {
        1.0
    }
}

impl Approximation for Multigrid {
    fn name(&self) -> &'static str {
        "multigrid"
    }

    fn take_state(
        &mut self,
        _system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        self.linearise(u, 0..u.len())
    }

    fn apply_inverse(
        &self,
        _j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.apply_part(r, z, 0..r.len(), r.norm())
    }

    fn lend_inverse(
        &self,
        _j: &dyn LinearOperator,
        (r, norm): (&Vector, f64),
        work: &mut Option<Vector>,
        take: &mut dyn FnMut(f64, &Vector),
    ) -> Result<(), OperatorError> {
        if r.array().is_some() {
            return lend_applied(r, work, take, |z| self.apply_part(r, z, 0..r.len(), norm));
        }
        self.lend_part(r, 0..r.len(), norm, take)
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.forget_recording();
        for level in &mut self.levels {
            match &mut level.system {
                LevelSystem::Form(system) => system.set_params(params)?,
                LevelSystem::Matrix(_) => {}
            }
        }
        self.coarsest.set_params(params)
    }

    fn start(&self, b: &Vector, x: &mut Vector) -> Result<bool, OperatorError> {
        self.nested(b, x, 0..b.len(), b.norm())
    }

    fn figures(&self) -> Vec<MultigridStatistics> {
        let applications = self.applications.load(Ordering::Relaxed);
        let (levels, coarsest) = (self.levels(), self.coarsest.words());
        let Self { smoother, steps, seconds, .. } = *self;
        let field = None;
        vec![MultigridStatistics {
            field,
            levels,
            coarsest,
            smoother,
            steps,
            applications,
            seconds,
        }]
    }
}

impl LinearOperator for Multigrid {
    fn size(&self) -> usize {
        match self.levels.first() {
            Some(level) => level.inverse.len(),
            None => self.bottom.lock().unwrap_or_else(PoisonError::into_inner)[0].len(),
        }
    }

    /// Runs one cycle.
    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        self.apply_part(r, z, 0..r.len(), r.norm())
    }
}

#[cfg(test)]
mod tests {
    use super::scale;

    #[test]
    fn scales_are_powers_of_two_that_single_precision_has() {
        for norm in [1.0, 3e-9, 7e20, 1e-300, 1e300] {
            let scale = scale(norm);
            assert_eq!(scale.log2().fract(), 0.0);
            assert!((scale as f32).is_normal() && (1.0 / scale as f32).is_normal());
            if (1e-30..1e30).contains(&norm) {
                assert!((0.7..1.5).contains(&(scale * norm)), "{scale} of {norm}");
            }
        }
        assert_eq!([0.0, f64::INFINITY, f64::NAN].map(scale), [1.0; 3]);
    }
}
