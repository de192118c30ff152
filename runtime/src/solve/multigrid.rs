//! Multigrid: a V-cycle over levels, each with an operator, its diagonal and a transfer to the next one → an approximation of A⁻¹.
//!
//! ```text
//! smooth     x_k = x_{k−1} + d_k,   r_k = r_{k−1} − A d_k
//!            d_k = (2k − 3)/(2k + 1) d_{k−1} + (8k − 4)/((2k + 1) λ) D⁻¹ r_{k−1}
//! correct    r_c = Pᵀ r,   x += P C r_c
//! smooth
//! ```
//!
//! The smoother is the Chebyshev iteration of the fourth kind (Lottes 2023, "Optimal polynomial smoothers for multigrid
//! V-cycles", algorithm 1), which needs no lower end of the spectrum of D⁻¹A, only its largest eigenvalue λ. From x = 0 its first step takes no
//! product: k steps before and k behind are 2k products. The cycle is symmetric, and positive where λ is not too small.
//!
//! Where the operator is not symmetric λ is the largest |λ| that powers of D⁻¹A show, and the cycle serves as long as the symmetric part
//! dominates: so it does in convection with diffusion where cells are small, and not where convection wins.
//!
//! Levels may compute in single precision inside of a solve in double precision: what goes in and comes out is rounded. What
//! goes in is also brought near 1, by a power of two, since residuals may be smaller than single precision has numbers.

mod estimate;

use super::{LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::vector::Vector;
use crate::device::{DeviceError, Repeated};
pub(super) use estimate::largest;
use estimate::{exponent, largest_by_powers};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What λ is raised by: estimates of few iterations have been seen to miss it, and more than it does no harm.
const RAISED: f64 = 1.2;

/// What an operator is that has no place among levels.
const INDEFINITE: &str = "the operator is not positive definite";
/// The same of one whose entries single precision rounds to few digits, or to 0.
const SMALL: &str = "the operator is too small for single precision, in which multigrid computes";
/// The exponent of two of the least number of single precision that has all digits.
const LEAST: f64 = -126.0;
/// The exponent of two up to which residuals are scaled.
const FARTHEST: f64 = 120.0;

/// Between vectors of a level and those of the next coarser one.
pub trait Transfer: Send + Sync {
    /// fine += P coarse.
    ///
    /// # Errors
    ///
    /// Vectors of others, a device that fails.
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError>;

    /// coarse = Pᵀ fine.
    ///
    /// # Errors
    ///
    /// As [`Transfer::prolong`].
    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError>;

    /// Gives a coarser state what a finer one has, where operators depend on one.
    ///
    /// # Errors
    ///
    /// As [`Transfer::prolong`].
    fn inject(&self, _fine: &Vector, _coarse: &mut Vector) -> Result<(), OperatorError> {
        Ok(())
    }
}

/// What ends the levels: it solves at once, or nearly so.
pub trait Coarsest: Send + Sync {
    /// Takes a state, where its matrix depends on one.
    ///
    /// # Errors
    ///
    /// A device that fails; within, why it cannot solve there.
    fn linearise(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError>;

    /// Takes other parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError>;

    /// x ≈ A⁻¹ b, symmetric and positive definite.
    ///
    /// # Errors
    ///
    /// A device that fails.
    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError>;

    /// Whether [`Self::solve`] does nothing but ask a device for work, the same at each call and without waiting.
    fn replayable(&self) -> bool {
        false
    }

    /// What it is, in a few words.
    fn words(&self) -> String;
}

/// The operator of a level.
pub trait Smoothed: NonlinearSystem + Send + Sync {
    /// Takes other parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError>;
}

/// What is smoothed on.
enum System {
    /// Of a form, at a state.
    Form(Box<dyn Smoothed>),
    /// A matrix whose diagonal and λ are known.
    Matrix(Box<dyn LinearOperator + Send + Sync>),
}

impl System {
    fn jacobian(&self) -> &dyn LinearOperator {
        match self {
            Self::Form(system) => system.jacobian(),
            Self::Matrix(matrix) => &**matrix,
        }
    }
}

/// A level that is smoothed on.
pub struct Level {
    system: System,
    transfer: Box<dyn Transfer>,
    /// D⁻¹.
    inverse: Vector,
    /// λ.
    largest: f64,
    /// The exponent of two of a typical entry of D where that is far from 1, else 0.
    size: f64,
    /// Unknowns, of all processes.
    unknowns: usize,
    work: Mutex<Work>,
}

/// The vectors of a level.
struct Work {
    b: Vector,
    x: Vector,
    r: Vector,
    d: Vector,
    q: Vector,
}

/// What smooths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smoother {
    /// The Chebyshev iteration of the fourth kind.
    #[default]
    Chebyshev,
    /// Jacobi's, damped by 4/(3λ): for comparison.
    Jacobi,
}

impl Smoother {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chebyshev => "chebyshev",
            Self::Jacobi => "jacobi",
        }
    }

    /// What the k-th step, from the second on, has of the one before and of D⁻¹r.
    fn factors(self, k: usize, largest: f64) -> (f64, f64) {
        match self {
            Self::Chebyshev => {
                let (k, next) = (k as f64, (2 * k + 1) as f64);
                ((2.0 * k - 3.0) / next, (8.0 * k - 4.0) / (next * largest))
            }
            Self::Jacobi => (0.0, 4.0 / (3.0 * largest)),
        }
    }
}

/// Cycles from which on one is recorded: it takes about as long as a few cycles' kernels take to be started one by one, so that a solve by
/// itself gains nothing, and the steps through time that follow do.
const WORTH_RECORDING: usize = 12;

/// Levels, the finest first, as a preconditioner.
pub struct Multigrid {
    levels: Vec<Level>,
    coarsest: Box<dyn Coarsest>,
    /// Right-hand side and solution of the coarsest level.
    bottom: Mutex<[Vector; 2]>,
    /// Its unknowns, of all processes.
    bottom_unknowns: usize,
    smoother: Smoother,
    /// Steps of the smoother before, and as many behind.
    steps: usize,
    /// Applications of the finest operator so far.
    applications: AtomicUsize,
    /// Cycles, where they may be recorded.
    repeated: Mutex<Option<Repeated>>,
    /// Seconds of making the levels, and of all states that they took.
    seconds: f64,
}

/// What approximates J⁻¹, and is made anew where a state or parameters change.
pub trait Approximation: LinearOperator + Send + Sync {
    /// Takes a state.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied; within, why it cannot be used there.
    fn take_state(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError>;

    /// Takes other parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError>;

    /// z ≈ J⁻¹ r where J can be applied too and the approximation need not be symmetric.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    fn apply_beside(
        &self,
        _j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.apply(r, z)
    }

    /// x ≈ J⁻¹ b to begin with, from what coarser levels make of b; whether it has any, else x stays as it is.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    fn start(&self, _b: &Vector, _x: &mut Vector) -> Result<bool, OperatorError> {
        Ok(false)
    }

    /// What is known of it, for each field by itself where there are several.
    fn figures(&self) -> Vec<Figures>;
}

/// What is known of levels.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// The field that they are for, where there are several.
    pub field: Option<String>,
    /// The levels, the finest first.
    pub levels: Vec<LevelFigures>,
    /// What ends them, in a few words.
    pub coarsest: String,
    /// What smooths.
    pub smoother: Smoother,
    /// Steps of the smoother before, and as many behind.
    pub steps: usize,
    /// Applications of the finest level's operator in all cycles, and in estimates of its largest eigenvalue.
    pub applications: usize,
    /// Seconds of making the levels, and of all states that they took.
    pub seconds: f64,
}

/// What is known of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelFigures {
    /// Unknowns.
    pub unknowns: usize,
    /// λ, of all but the coarsest.
    pub largest: Option<f64>,
}

impl Level {
    /// A level with its operator and the way to the next one; `like` is any vector of it.
    pub fn new(system: Box<dyn Smoothed>, like: &Vector, transfer: Box<dyn Transfer>) -> Self {
        Self::with(System::Form(system), transfer, like, (like.like(), 1.0))
    }

    /// A level whose operator depends on nothing, with D⁻¹ and λ.
    pub fn fixed(
        operator: Box<dyn LinearOperator + Send + Sync>,
        transfer: Box<dyn Transfer>,
        inverse: Vector,
        largest: f64,
    ) -> Self {
        let like = inverse.like();
        Self::with(System::Matrix(operator), transfer, &like, (inverse, largest))
    }

    fn with(
        system: System,
        transfer: Box<dyn Transfer>,
        like: &Vector,
        (inverse, largest): (Vector, f64),
    ) -> Self {
        let zeros = || like.like();
        let work = Work { b: zeros(), x: zeros(), r: zeros(), d: zeros(), q: zeros() };
        let unknowns = like.entries_in_all();
        Self { system, transfer, inverse, largest, size: 0.0, unknowns, work: Mutex::new(work) }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the state that is in x: the diagonal and λ. Says whether the operator is positive definite, as far as is seen.
    fn linearise(&mut self) -> Result<bool, OperatorError> {
        let System::Form(system) = &mut self.system else { return Ok(true) };
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        system.linearise(&work.x)?;
        system.diagonal(&mut self.inverse)?;
        self.inverse.invert();
        let (Work { b, r, d, q, .. }, a) = (work, system.jacobian());
        self.size = exponent(&self.inverse, q);
        let found = match system.symmetric() {
            true => largest(a, &self.inverse, [b, r, d, q], system.null_space())?,
            false => largest_by_powers(a, &self.inverse, [r, q])?,
        };
        self.largest = RAISED * found.unwrap_or(1.0);
        Ok(found.is_some())
    }

    /// Steps of the smoother from x = 0, and r = b − A x.
    fn before(
        &self,
        work: &mut Work,
        (smoother, steps): (Smoother, usize),
    ) -> Result<(), OperatorError> {
        let (a, Work { b, x, r, d, q }) = (self.system.jacobian(), work);
        x.chebyshev_first(4.0 / (3.0 * self.largest), d, b, &self.inverse);
        for k in 2..=steps {
            a.apply(d, q)?;
            let from = (k == 2).then_some(&*b);
            x.chebyshev(smoother.factors(k, self.largest), d, r, from, q, &self.inverse);
        }
        a.apply(d, q)?;
        if steps == 1 {
            r.copy_from(b);
        }
        r.axpy(-1.0, q);
        Ok(())
    }

    /// The same from an x that is there, of which r is left unknown.
    fn behind(
        &self,
        work: &mut Work,
        (smoother, steps): (Smoother, usize),
    ) -> Result<(), OperatorError> {
        let (a, Work { b, x, r, d, q }) = (self.system.jacobian(), work);
        a.apply(x, q)?;
        let first = (0.0, 4.0 / (3.0 * self.largest));
        x.chebyshev(first, d, r, Some(b), q, &self.inverse);
        for k in 2..=steps {
            a.apply(d, q)?;
            x.chebyshev(smoother.factors(k, self.largest), d, r, None, q, &self.inverse);
        }
        Ok(())
    }
}

impl Multigrid {
    /// Of levels that follow one another and what is below them; `like` is any vector of that.
    pub fn new(
        levels: Vec<Level>,
        coarsest: Box<dyn Coarsest>,
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

    /// The same, whose cycle may be recorded where a device does all of it.
    #[must_use]
    pub fn recorded(self) -> Self {
        Self { repeated: Mutex::new(Some(Repeated::worth(WORTH_RECORDING))), ..self }
    }

    /// The same with another smoother.
    #[must_use]
    pub fn smoothed_by(self, smoother: Smoother) -> Self {
        Self { smoother, ..self }
    }

    /// The same where making the levels has taken so long.
    #[must_use]
    pub fn made_in(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }

    /// Takes a state on all levels, of which the unknowns are a part.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied; within, why it cannot be used there: an operator is not positive definite.
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
            let definite = own.linearise()?;
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
        coarsest.linearise(bottom)
    }

    /// The power of two that brings a norm near 1, or near √D where D is far from 1: A⁻¹ b is near 1/√D then.
    fn scale(&self, norm: f64) -> f64 {
        let half = self.levels.first().map_or(0.0, |level| (level.size / 2.0).round());
        scale(norm * (-half).exp2())
    }

    /// What was recorded has the numbers of another state.
    fn forget_recording(&mut self) {
        let own = self.repeated.get_mut().unwrap_or_else(PoisonError::into_inner);
        own.iter_mut().for_each(Repeated::forget);
    }

    /// Whether a cycle does nothing but ask a device for work.
    pub(crate) fn replayable(&self) -> bool {
        let on_device = |level: &Level| level.system.jacobian().replayable();
        self.levels.iter().all(on_device) && self.coarsest.replayable()
    }

    /// One cycle from the finest level's right-hand side, as it was recorded where it was.
    fn whole(&self) -> Result<(), OperatorError> {
        let mut own = self.repeated.lock().unwrap_or_else(PoisonError::into_inner);
        let finest =
            self.levels.first().map(|level| level.work().b.array().map(|(own, _)| Arc::clone(own)));
        match (&mut *own, finest.flatten()) {
            (Some(own), Some(on)) if self.replayable() => own.run(&**on.device(), || self.cycle(0)),
            _ => self.cycle(0),
        }
    }

    fn levels(&self) -> Vec<LevelFigures> {
        let own =
            |level: &Level| LevelFigures { unknowns: level.unknowns, largest: Some(level.largest) };
        let last = LevelFigures { unknowns: self.bottom_unknowns, largest: None };
        self.levels.iter().map(own).chain([last]).collect()
    }

    /// y = A x with the operator of the finest level.
    pub(crate) fn finest(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        match self.levels.first() {
            Some(level) => level.system.jacobian().apply(x, y),
            None => Err(OperatorError::new("there are no levels")),
        }
    }

    /// One cycle for the unknowns that are a part of r, whose norm is known, and of z.
    pub(crate) fn apply_part(
        &self,
        r: &Vector,
        z: &mut Vector,
        part: Range<usize>,
        norm: f64,
    ) -> Result<(), OperatorError> {
        let scale = self.scale(norm);
        self.at(0, |b, _| {
            b.take_part(scale, r, part.clone());
            Ok(())
        })?;
        self.whole()?;
        if !self.levels.is_empty() {
            self.applications.fetch_add(2 * self.steps, Ordering::Relaxed);
        }
        self.at(0, |_, x| {
            z.put_part(1.0 / scale, x, part);
            Ok(())
        })
    }

    /// Nested iteration: x_l = P x_{l+1} + C (b_l − A P x_{l+1}) from the coarsest level, which solves, to the second one, and
    /// x = P x_1. The right-hand sides are b_{l+1} = Pᵀ b_l, those of Galerkin's method in the coarser spaces. The finest
    /// level's cycle is left to the iteration that begins here, so that nothing of this costs as much as one product there.
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
            let Work { b, x, q, .. } = &mut *work;
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

    /// x ≈ A⁻¹ b on the levels from one on, both in its vectors.
    fn cycle(&self, l: usize) -> Result<(), OperatorError> {
        let Some(level) = self.levels.get(l) else {
            return self.at(l, |b, x| self.coarsest.solve(b, x));
        };
        let mut work = level.work();
        let own = &mut *work;
        let by = (self.smoother, self.steps);
        level.before(own, by)?;
        self.at(l + 1, |b, _| level.transfer.restrict(&own.r, b))?;
        self.cycle(l + 1)?;
        self.at(l + 1, |_, x| level.transfer.prolong(x, &mut own.x))?;
        level.behind(own, by)
    }

    /// Does something with right-hand side and solution of a level, of the coarsest too.
    fn at(
        &self,
        l: usize,
        act: impl FnOnce(&mut Vector, &mut Vector) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        match self.levels.get(l) {
            Some(level) => {
                let Work { b, x, .. } = &mut *level.work();
                act(b, x)
            }
            None => {
                let [b, x] = &mut *self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
                act(b, x)
            }
        }
    }
}

/// The power of two that brings a norm near 1, as far as single precision goes.
fn scale(norm: f64) -> f64 {
    if norm > 0.0 && norm.is_finite() {
        (-norm.log2().round()).clamp(-FARTHEST, FARTHEST).exp2()
    } else {
        1.0
    }
}

impl Approximation for Multigrid {
    fn take_state(&mut self, u: &Vector) -> Result<Result<(), String>, OperatorError> {
        self.linearise(u, 0..u.len())
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.forget_recording();
        for level in &mut self.levels {
            match &mut level.system {
                System::Form(system) => system.set_params(params)?,
                System::Matrix(_) => {}
            }
        }
        self.coarsest.set_params(params)
    }

    fn start(&self, b: &Vector, x: &mut Vector) -> Result<bool, OperatorError> {
        self.nested(b, x, 0..b.len(), b.norm())
    }

    fn figures(&self) -> Vec<Figures> {
        let applications = self.applications.load(Ordering::Relaxed);
        let (levels, coarsest) = (self.levels(), self.coarsest.words());
        let Self { smoother, steps, seconds, .. } = *self;
        let field = None;
        vec![Figures { field, levels, coarsest, smoother, steps, applications, seconds }]
    }
}

impl LinearOperator for Multigrid {
    fn size(&self) -> usize {
        match self.levels.first() {
            Some(level) => level.inverse.len(),
            None => self.bottom.lock().unwrap_or_else(PoisonError::into_inner)[0].len(),
        }
    }

    /// One cycle.
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
