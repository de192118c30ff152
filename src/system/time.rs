//! A [`System`] through time: [`System::begin`] → [`Motion`], [`System::advance`] a step.

use super::System;
use crate::{Error, Vector};
use fem_dsl::problem::{Scheme, Solver};
use runtime::run::{RunError, Travel};
use runtime::time::State;

/// Where a system is in time, and what its scheme remembers of the way there.
pub struct Motion {
    travel: Travel,
}

impl Motion {
    /// The time that was reached.
    pub fn time(&self) -> f64 {
        self.travel.state().time
    }

    /// The unknowns there.
    pub fn u(&self) -> &Vector {
        &self.travel.state().u
    }

    /// Their first time derivative.
    pub fn rate(&self) -> &Vector {
        &self.travel.state().v
    }

    /// The second, where the form has it.
    pub fn acceleration(&self) -> Option<&Vector> {
        self.travel.state().a.as_ref()
    }

    /// Whether [`Self::rate`] is that of the time itself: θ-schemes for first derivatives have that of the middle of a step, and
    /// where fields without time derivatives begin, nothing gives it.
    pub fn rates_are_known(&self) -> bool {
        self.travel.rates_are_known()
    }

    /// What should be known of its beginning.
    pub fn notes(&self) -> &[String] {
        &self.travel.notes
    }
}

impl System {
    /// Begins at a time with a state, and with its first time derivative where the form has the second; without it that is 0.
    ///
    /// A form with `dt(u)` is solved for a step at a time:
    ///
    /// ```
    /// use weakform::{ALL, Scheme, mesh, weak_form};
    ///
    /// weak_form! { form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); } }
    ///
    /// let square = mesh("box(dim: 2, cells: 4)")?;
    /// let setup = heat::form().on(square).degree(2).dirichlet_of(heat::field::u, ALL, ["t"], |x, [t]| x[0] * t);
    /// let mut system = setup.build()?;
    /// let mut motion = system.begin(Scheme::Bdf { order: 2 }, 0.0, &system.vector(), None)?;
    /// while motion.time() < 0.99 {
    ///     system.advance(&mut motion, 0.1, None)?;
    /// }
    /// let most = motion.u().to_vec().into_iter().fold(0.0, f64::max);
    /// assert!((most - 1.0).abs() < 1e-9);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A vector that does not fit, a mass that cannot be inverted where a scheme needs what follows from it.
    pub fn begin(
        &mut self,
        scheme: Scheme,
        time: f64,
        u: &Vector,
        rate: Option<&Vector>,
    ) -> Result<Motion, Error> {
        self.fits(u)?;
        rate.map_or(Ok(()), |rate| self.fits(rate))?;
        let mut start = self.vector();
        start.set(&u.to_vec());
        let mut v = self.vector();
        if let Some(rate) = rate {
            v.set(&rate.to_vec());
        }
        let second = self.form.rates.iter().any(|rate| rate.order == 2);
        let a = second.then(|| self.vector());
        self.parameters.values[0] = time;
        let state = State { time, u: start, v, a };
        let (travel, on) = self.with_operator(|system, operator| {
            let mut travel = Travel::new(scheme, state, system, operator)?;
            let on = travel.settle(system, operator)?;
            Ok((travel, on))
        })?;
        self.on = on;
        Ok(Motion { travel })
    }

    /// Goes on by a step of some length, with a solver of the language or the one that suits the form: what the step adds to the error,
    /// relative to u, where the scheme can tell. Conditions that read `t`, [`Setup::dirichlet_of`](crate::Setup::dirichlet_of), hold at the times of
    /// the scheme; parameters and data may be replaced between steps. [`System::measure`] knows `dt(u)` behind a step. Where a step fails, the motion is where it was.
    ///
    /// # Errors
    ///
    /// A length that is not positive and finite, a stage that cannot be solved.
    pub fn advance(
        &mut self,
        motion: &mut Motion,
        step: f64,
        solver: Option<&Solver>,
    ) -> Result<Option<f64>, Error> {
        if !(step > 0.0 && step.is_finite()) {
            let message = format!("a step of length {step}; time goes forwards, by finite steps");
            return Err(RunError::Setting(message).into());
        }
        self.fits(motion.u())?;
        self.checks(solver)?;
        let travel = &mut motion.travel;
        let (estimate, on) = self.with_operator(|system, operator| {
            let estimate = travel.step(step, system, operator, solver)?;
            Ok((estimate, travel.settle(system, operator)?))
        })?;
        self.on = on;
        self.parameters.values[0] = motion.time();
        Ok(estimate)
    }
}
