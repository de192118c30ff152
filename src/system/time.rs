//! Time integration of a [`System`]: [`System::begin`] → [`TimeIntegrator`], [`System::advance`] for a step.

use super::System;
use crate::{Error, Vector};
use fem_dsl::problem::stepping::check_step;
use fem_dsl::problem::{Scheme, SolverSettings};
use runtime::problem::{DataError, RunError, Trajectory, rate_data};
use runtime::solve::time::TimeState;

/// The state of a time integrator with its history.
pub struct TimeIntegrator {
    travel: Trajectory,
}

impl TimeIntegrator {
    /// Returns the current time.
    pub fn time(&self) -> f64 {
        self.travel.state().time
    }

    /// Returns the current state.
    pub fn u(&self) -> &Vector {
        &self.travel.state().u
    }

    /// Returns the first time derivative.
    pub fn rate(&self) -> &Vector {
        &self.travel.state().v
    }

    /// Returns the second time derivative, if the form has it.
    pub fn acceleration(&self) -> Option<&Vector> {
        self.travel.state().a.as_ref()
    }

    /// Returns whether [`Self::rate`] is the rate at the current time. At the start, fields without time derivatives
    /// leave it undetermined, and a θ-scheme then has the rate of the middle of its first step.
    pub fn rates_are_known(&self) -> bool {
        self.travel.rates_are_known()
    }

    /// Returns remarks on the initial state.
    pub fn notes(&self) -> &[String] {
        &self.travel.notes
    }
}

impl System {
    /// Returns the time t of the form, the conditions and the residual.
    pub fn time(&self) -> f64 {
        self.context.parameters.values[0]
    }

    /// Replaces the time and the values of conditions that depend on `t`, without compilation.
    ///
    /// # Errors
    ///
    /// A time or a condition that is not finite; nothing is replaced then.
    pub fn set_time(&mut self, time: f64) -> Result<(), Error> {
        if !time.is_finite() {
            let name = "t".to_owned();
            return Err(RunError::from(DataError::ParamNotFinite { name, value: time }).into());
        }
        let mut parameters = self.context.parameters.clone();
        parameters.values[0] = time;
        self.evaluate_conditions(&parameters)?;
        self.operator.set_params(&parameters.values).map_err(RunError::from)?;
        self.context.parameters = parameters;
        Ok(())
    }

    /// Sets the time derivatives of an order in residuals and solves outside of a scheme, ∂u/∂t = `shift` u + `past` or
    /// ∂²u/∂t² = `shift` u + `past` for all fields, for custom time integrators. [`System::begin`] and
    /// [`System::advance`] override them.
    ///
    /// ```
    /// use weakform::{mesh, weak_form};
    ///
    /// weak_form! { form decay { field u: scalar; f0[u] = dt(u) + u; } }
    ///
    /// let mut system = decay::form().on(mesh("box(dim: 2, cells: 1)")?).build()?;
    /// let (mut u, step) = (system.interpolate("u", |_| 1.0)?, 0.1);
    /// for _ in 0..10 {
    ///     // Backward Euler: (u − u_before) / step.
    ///     let mut past = system.vector();
    ///     past.axpy(-1.0 / step, &u);
    ///     system.set_rate(1, 1.0 / step, &past)?;
    ///     system.solve(&mut u)?;
    /// }
    /// assert!((u.to_vec()[0] - 1.1f64.powi(-10)).abs() < 1e-8);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The form has no derivative of this order, the shift is not finite, or the vector does not fit.
    pub fn set_rate(&mut self, order: usize, shift: f64, past: &Vector) -> Result<(), Error> {
        let mut rates = self.context.form().rates.iter().filter(|rate| rate.order == order);
        let param = rates.next().ok_or(Error::Steady { order })?.param;
        if !shift.is_finite() {
            let name = "shift".to_owned();
            return Err(RunError::from(DataError::ParamNotFinite { name, value: shift }).into());
        }
        self.fits(past)?;
        let data = rate_data(self.context.form(), &self.context.on, order, &past.to_vec());
        self.put_aux(data)?;
        let range = self.context.parameters.range(param);
        self.context.parameters.values[range].fill(shift);
        self.operator.set_params(&self.context.parameters.values).map_err(RunError::from)?;
        self.rates_given[order - 1] = true;
        Ok(())
    }

    /// Checks that all time derivatives that the form reads have values.
    pub(super) fn rates_are_given(&self) -> Result<(), Error> {
        let read = self.context.form().rates.iter().filter(|rate| rate.read);
        match read.map(|rate| rate.order).find(|order| !self.rates_given[order - 1]) {
            Some(order) => Err(Error::NoRate { order }),
            None => Ok(()),
        }
    }

    /// Removes the values of time derivatives, which a scheme then sets.
    fn forget_rates(&mut self) {
        self.rates_given = [false; 2];
        let problem = &self.context.problem;
        for rate in &problem.form.rates {
            let range = self.context.parameters.range(rate.param);
            self.context.parameters.values[range].fill(0.0);
        }
    }

    /// Starts at a time with a state, and with its first time derivative if the form has the second; by default that
    /// is 0. Constrained DoFs take the value of their conditions, and its time derivative.
    ///
    /// A form with `dt(u)` is solved step by step:
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
    /// A scheme that is unsuitable for the form or has a setting out of range, a vector that does not fit, or a
    /// singular mass matrix that a scheme needs to invert.
    pub fn begin(
        &mut self,
        scheme: Scheme,
        time: f64,
        u: &Vector,
        rate: Option<&Vector>,
    ) -> Result<TimeIntegrator, Error> {
        self.fits(u)?;
        rate.map_or(Ok(()), |rate| self.fits(rate))?;
        let mut start = self.vector();
        start.set(&u.to_vec());
        let mut v = self.vector();
        if let Some(rate) = rate {
            v.set(&rate.to_vec());
        }
        let second = self.context.form().rates.iter().any(|rate| rate.order == 2);
        let a = second.then(|| self.vector());
        self.forget_rates();
        self.context.parameters.values[0] = time;
        let state = TimeState { time, u: start, v, a };
        let (travel, on) = self.with_operator(|context, operator| {
            let mut travel = Trajectory::new(scheme, state, context, operator)?;
            let on = travel.settle(context, operator)?;
            Ok((travel, on))
        })?;
        self.context.on = on;
        Ok(TimeIntegrator { travel })
    }

    /// Advances by a step, with a solver of the language or the default one. Returns the error estimate of the step,
    /// relative to u, if the scheme provides one. Conditions that depend on `t`,
    /// [`Setup::dirichlet_of`](crate::Setup::dirichlet_of), apply at the times of the scheme, and so do their time
    /// derivatives, by differences within a step. Parameters and data may be replaced between steps.
    /// [`System::measure`] can use `dt(u)` after a step. A failed step leaves the motion unchanged.
    ///
    /// # Errors
    ///
    /// A length that is not positive and finite or below rounding, or a stage that cannot be solved.
    pub fn advance(
        &mut self,
        motion: &mut TimeIntegrator,
        step: f64,
        solver: Option<&SolverSettings>,
    ) -> Result<Option<f64>, Error> {
        self.forget_rates();
        check_step("step", step, motion.time()).map_err(RunError::from)?;
        self.fits(motion.u())?;
        self.checks(solver)?;
        let travel = &mut motion.travel;
        let (estimate, on) = self.with_operator(|context, operator| {
            let estimate = travel.step(step, context, operator, solver)?;
            Ok((estimate, travel.settle(context, operator)?))
        })?;
        self.context.on = on;
        self.context.parameters.values[0] = motion.time();
        Ok(estimate)
    }
}
