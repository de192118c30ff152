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
//! Levels may compute in single precision inside of a solve in double precision: what goes in and comes out is rounded.

mod estimate;

use super::{LinearOperator, NonlinearSystem, OperatorError};
use crate::device::DeviceError;
use crate::vector::Vector;
use estimate::largest;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What λ is raised by: estimates of few iterations have been seen to miss it, and more than it does no harm.
const RAISED: f64 = 1.2;

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

    /// As [`LinearOperator::replayable`].
    fn replayable(&self) -> bool {
        false
    }
}

/// What ends the levels: it solves at once, or nearly so.
pub trait Coarsest: Send + Sync {
    /// Takes a state, where its matrix depends on one; says whether it can solve there.
    ///
    /// # Errors
    ///
    /// A device that fails.
    fn linearise(&mut self, u: &Vector) -> Result<bool, OperatorError>;

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

    /// As [`LinearOperator::replayable`].
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

/// A level that is smoothed on.
pub struct Level {
    system: Box<dyn Smoothed>,
    transfer: Box<dyn Transfer>,
    /// D⁻¹.
    inverse: Vector,
    /// λ.
    largest: f64,
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

/// Levels, the finest first, as a preconditioner.
pub struct Multigrid {
    levels: Vec<Level>,
    coarsest: Box<dyn Coarsest>,
    /// Right-hand side and solution of the coarsest level.
    bottom: Mutex<(Vector, Vector)>,
    /// Steps of the smoother before, and as many behind.
    steps: usize,
    /// Applications of the finest operator so far.
    applications: AtomicUsize,
    /// Seconds of making the levels, and of all states that they took.
    seconds: f64,
}

/// What is known of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// The levels, the finest first.
    pub levels: Vec<LevelFigures>,
    /// What ends them, in a few words.
    pub coarsest: String,
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
        let zeros = || like.like();
        let work = Work { b: zeros(), x: zeros(), r: zeros(), d: zeros(), q: zeros() };
        Self { system, transfer, inverse: zeros(), largest: 1.0, work: Mutex::new(work) }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the state that is in x: the diagonal and λ. Says whether the operator is positive definite, as far as is seen.
    fn linearise(&mut self) -> Result<bool, OperatorError> {
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.system.linearise(&work.x)?;
        self.system.diagonal(&mut self.inverse)?;
        self.inverse.invert();
        let Work { b, r, d, q, .. } = work;
        let found = largest(self.system.jacobian(), &self.inverse, [b, r, d, q])?;
        self.largest = RAISED * found.unwrap_or(1.0);
        Ok(found.is_some())
    }

    /// Steps of the smoother from x = 0, and r = b − A x.
    fn before(&self, work: &mut Work, steps: usize) -> Result<(), OperatorError> {
        let (a, Work { b, x, r, d, q }) = (self.system.jacobian(), work);
        x.chebyshev_first(4.0 / (3.0 * self.largest), d, b, &self.inverse);
        for k in 2..=steps {
            a.apply(d, q)?;
            let from = (k == 2).then_some(&*b);
            x.chebyshev(self.factors(k), d, r, from, q, &self.inverse);
        }
        a.apply(d, q)?;
        if steps == 1 {
            r.copy_from(b);
        }
        r.axpy(-1.0, q);
        Ok(())
    }

    /// The same from an x that is there, of which r is left unknown.
    fn behind(&self, work: &mut Work, steps: usize) -> Result<(), OperatorError> {
        let (a, Work { b, x, r, d, q }) = (self.system.jacobian(), work);
        a.apply(x, q)?;
        let first = (0.0, 4.0 / (3.0 * self.largest));
        x.chebyshev(first, d, r, Some(b), q, &self.inverse);
        for k in 2..=steps {
            a.apply(d, q)?;
            x.chebyshev(self.factors(k), d, r, None, q, &self.inverse);
        }
        Ok(())
    }

    /// What the k-th step, from the second on, has of the one before and of D⁻¹r.
    fn factors(&self, k: usize) -> (f64, f64) {
        let (k, next) = (k as f64, (2 * k + 1) as f64);
        ((2.0 * k - 3.0) / next, (8.0 * k - 4.0) / (next * self.largest))
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
        let bottom = Mutex::new((like.like(), like.like()));
        let applications = AtomicUsize::new(0);
        Self { levels, coarsest, bottom, steps, applications, seconds: 0.0 }
    }

    /// The same where making the levels has taken so long.
    #[must_use]
    pub fn made_in(self, seconds: f64) -> Self {
        Self { seconds, ..self }
    }

    /// Takes a state on all levels. Says whether it can be used there: all operators are positive definite, as far as is
    /// seen.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    pub fn linearise(&mut self, u: &Vector) -> Result<bool, OperatorError> {
        let start = Instant::now();
        let usable = self.take(u)?;
        self.seconds += start.elapsed().as_secs_f64();
        self.applications.fetch_add(estimate::ITERATIONS, Ordering::Relaxed);
        Ok(usable)
    }

    fn take(&mut self, u: &Vector) -> Result<bool, OperatorError> {
        let Self { levels, coarsest, bottom, .. } = self;
        let bottom = &mut bottom.get_mut().unwrap_or_else(PoisonError::into_inner).1;
        if let Some(first) = levels.first() {
            first.work().x.convert_from(u);
        } else {
            bottom.convert_from(u);
        }
        for l in 0..levels.len() {
            let (before, after) = levels.split_at_mut(l + 1);
            let own = &mut before[l];
            let usable = own.linearise()?;
            if !usable {
                return Ok(false);
            }
            let state = &own.work().x;
            match after.first() {
                Some(next) => own.transfer.inject(state, &mut next.work().x)?,
                None => own.transfer.inject(state, bottom)?,
            }
        }
        coarsest.linearise(bottom)
    }

    /// Takes other parameters on all levels.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.levels.iter_mut().try_for_each(|level| level.system.set_params(params))?;
        self.coarsest.set_params(params)
    }

    /// What is known of them.
    pub fn figures(&self) -> Figures {
        let applications = self.applications.load(Ordering::Relaxed);
        let (levels, coarsest) = (self.levels(), self.coarsest.words());
        Figures { levels, coarsest, steps: self.steps, applications, seconds: self.seconds }
    }

    fn levels(&self) -> Vec<LevelFigures> {
        let own = |level: &Level| LevelFigures {
            unknowns: level.inverse.len(),
            largest: Some(level.largest),
        };
        let bottom = self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
        let last = LevelFigures { unknowns: bottom.0.len(), largest: None };
        self.levels.iter().map(own).chain([last]).collect()
    }

    /// x ≈ A⁻¹ b on the levels from one on, both in its vectors.
    fn cycle(&self, l: usize) -> Result<(), OperatorError> {
        let Some(level) = self.levels.get(l) else {
            let mut bottom = self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
            let (b, x) = &mut *bottom;
            return self.coarsest.solve(b, x);
        };
        let mut work = level.work();
        let own = &mut *work;
        level.before(own, self.steps)?;
        self.below(l, |b, _| level.transfer.restrict(&own.r, b))?;
        self.cycle(l + 1)?;
        self.below(l, |_, x| level.transfer.prolong(x, &mut own.x))?;
        level.behind(own, self.steps)
    }

    /// Does something with right-hand side and solution of the level below one.
    fn below(
        &self,
        l: usize,
        act: impl FnOnce(&mut Vector, &mut Vector) -> Result<(), OperatorError>,
    ) -> Result<(), OperatorError> {
        match self.levels.get(l + 1) {
            Some(next) => {
                let Work { b, x, .. } = &mut *next.work();
                act(b, x)
            }
            None => {
                let (b, x) = &mut *self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
                act(b, x)
            }
        }
    }
}

impl LinearOperator for Multigrid {
    fn size(&self) -> usize {
        self.levels().first().map_or(0, |level| level.unknowns)
    }

    /// One cycle.
    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        match self.levels.first() {
            Some(first) => {
                first.work().b.convert_from(r);
                self.cycle(0)?;
                z.convert_from(&first.work().x);
                self.applications.fetch_add(2 * self.steps, Ordering::Relaxed);
            }
            None => {
                let mut bottom = self.bottom.lock().unwrap_or_else(PoisonError::into_inner);
                let (b, x) = &mut *bottom;
                b.convert_from(r);
                self.coarsest.solve(b, x)?;
                z.convert_from(x);
            }
        }
        Ok(())
    }

    fn replayable(&self) -> bool {
        let own =
            |level: &Level| level.transfer.replayable() && level.system.jacobian().replayable();
        self.levels.iter().all(own) && self.coarsest.replayable()
    }
}
