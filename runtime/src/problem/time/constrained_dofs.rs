//! Constrained degrees of freedom in time integration: condition values and their first two time derivatives, in states
//! and stages.
//!
//! ```text
//! u_c = g(t)    u̇_c = g'(t)    ü_c = g''(t)        so that r₁ = g' − s₁ g and r₂ = g'' − s₂ g there
//! ```
//!
//! The scheme's own formulas would compute u̇_c and ü_c by differences of g, whose errors Newmark's method carries on
//! undamped. Derivatives are those of the condition's formula, or finite differences over a step for functions of a
//! program.

use super::super::RunError;
use super::super::context::Context;
use super::super::solver::values;
use super::super::structural_null_space::in_any;
use super::stages::{ConditionValues, ProblemStages};
use crate::algebra::vector::Vector;
use crate::solve::time::{Stage, TimeState, derivative};
use crate::space::constraint::Constraints;
use std::rc::Rc;

/// Relative tolerance of equal rates.
const SAME: f64 = 1e-9;

impl ProblemStages<'_> {
    /// Sets conditions and data at a time.
    pub(super) fn prescribe(&mut self, time: f64) -> Result<(), RunError> {
        let Context { on, prescribed, .. } = self.context();
        let [conditions, data] = self.settings.timed;
        if conditions {
            match self.moving(time)? {
                Some(moving) => self.operator.set_conditions(&moving.0[0])?,
                None => self.operator.set_conditions(&values(&self.conditions_at(time)?))?,
            }
        }
        if data {
            let mut parameters = self.parameters().clone();
            parameters.values[0] = time;
            self.operator.set_aux(&prescribed.aux(on, &parameters)?)?;
        }
        Ok(())
    }

    fn conditions_at(&self, time: f64) -> Result<Vec<Constraints>, RunError> {
        let mut parameters = self.parameters().clone();
        parameters.values[0] = time;
        self.context().prescribed.conditions(self.on(), &parameters)
    }

    /// Returns the condition values with derivatives at a time; `None` if no value depends on t, or nothing is
    /// constrained.
    fn moving(&mut self, time: f64) -> Result<Option<Rc<ConditionValues>>, RunError> {
        let Context { on, prescribed, .. } = self.context();
        if !prescribed.conditions_read_time() {
            return Ok(None);
        }
        let at = [time, self.length];
        if let Some((known, moving)) = &self.evaluated
            && *known == at
        {
            return Ok(Some(Rc::clone(moving)));
        }
        // Collective: all processes evaluate if any has conditions.
        let oblique = on.fields.iter().any(|field| !field.constraints.oblique().is_empty());
        let mut are = [on.conditions().next().is_some() || oblique];
        in_any(&on.mesh, &mut are);
        if !are[0] {
            return Ok(None);
        }
        let mut parameters = self.parameters().clone();
        parameters.values[0] = time;
        let moving = match prescribed.conditions_with_rates(on, &parameters)? {
            Some(all) => ConditionValues(all.map(|of| values(&of))),
            None => self.by_differences(time, values(&prescribed.conditions(on, &parameters)?))?,
        };
        let moving = Rc::new(moving);
        self.evaluated = Some((at, Rc::clone(&moving)));
        Ok(Some(moving))
    }

    /// Approximates the derivatives by finite differences with five times around `time`, or from it onwards at the
    /// initial time.
    fn by_differences(&self, time: f64, own: Vec<f64>) -> Result<ConditionValues, RunError> {
        // Conditions may be undefined before the initial time.
        let at = if time - self.length >= self.begins { 2 } else { 0 };
        let part = |i: usize| 0.5 * self.length * (i as f64 - at as f64);
        let times: Vec<f64> = (0..5).map(|i| time + part(i)).collect();
        let weights = [1, 2].map(|order| derivative(order, &times, at));
        let mut rates = [vec![0.0; own.len()], vec![0.0; own.len()]];
        for (number, &t) in times.iter().enumerate() {
            let there = if number == at { own.clone() } else { values(&self.conditions_at(t)?) };
            for (rates, weights) in rates.iter_mut().zip(&weights) {
                rates.iter_mut().zip(&there).for_each(|(rate, g)| *rate += weights[number] * g);
            }
        }
        let [first, second] = rates;
        Ok(ConditionValues([own, first, second]))
    }

    /// Sets the constrained DoFs of a rate of some order from their conditions at a time. Afterwards the operator has
    /// the conditions of that time.
    pub(super) fn hold_rate(
        &mut self,
        order: usize,
        time: f64,
        rate: &mut Vector,
    ) -> Result<(), RunError> {
        let moving = match self.moving(time)? {
            Some(moving) => moving,
            None => {
                let own = values(&self.conditions_at(time)?);
                let still = vec![0.0; own.len()];
                Rc::new(ConditionValues([own, still.clone(), still]))
            }
        };
        self.operator.impose_rate(&moving.0[order], rate)?;
        Ok(self.operator.set_conditions(&moving.0[0])?)
    }

    /// Returns the constrained DoFs of a rate in a vector that is 0 elsewhere; `None` if no condition depends on t.
    pub(super) fn held_rate(
        &mut self,
        order: usize,
        time: f64,
    ) -> Result<Option<Vector>, RunError> {
        let Some(moving) = self.moving(time)? else { return Ok(None) };
        let mut rate = self.operator.vector();
        self.operator.impose_rate(&moving.0[order], &mut rate)?;
        self.operator.set_conditions(&moving.0[0])?;
        Ok(Some(rate))
    }

    /// Sets the constrained DoFs of the initial state; adds a note if their velocity differs from the given one.
    pub(super) fn start(
        &mut self,
        state: &mut TimeState,
        notes: &mut Vec<String>,
    ) -> Result<(), RunError> {
        self.prescribe(state.time)?;
        self.operator.impose(&mut state.u)?;
        let given = state.v.to_vec();
        self.hold_rate(1, state.time, &mut state.v)?;
        let held = state.v.to_vec();
        let largest = state.v.largest(given.iter().fold(0.0, |most: f64, v| most.max(v.abs())));
        let differs = |(given, held): (&f64, &f64)| {
            *given != 0.0 && (given - held).abs() > SAME * largest.max(held.abs())
        };
        let count = given.iter().zip(&held).filter(|pair| differs(*pair)).count();
        let count = self.on().mesh.in_all(count);
        if count > 0 {
            notes.push(format!(
                "the initial `dt` differs from the time derivative of the conditions in {count} unknowns, where that holds"
            ));
        }
        Ok(())
    }

    /// Sets the constrained DoFs of a state at its time; does nothing for constant conditions.
    pub(super) fn hold_state(&mut self, state: &mut TimeState) -> Result<(), RunError> {
        let Some(moving) = self.moving(state.time)? else { return Ok(()) };
        let ConditionValues([own, first, second]) = &*moving;
        self.operator.impose_rate(first, &mut state.v)?;
        if let Some(a) = &mut state.a {
            self.operator.impose_rate(second, a)?;
        }
        self.operator.set_conditions(own)?;
        Ok(self.operator.impose(&mut state.u)?)
    }

    /// Sets the constrained DoFs of a state of another mesh, and those of its derivatives, from their conditions at its time.
    pub(super) fn constrain_on_new_mesh(&mut self, state: &mut TimeState) -> Result<(), RunError> {
        if let Some(a) = &mut state.a {
            self.hold_rate(2, state.time, a)?;
        }
        self.hold_rate(1, state.time, &mut state.v)?;
        Ok(self.operator.impose(&mut state.u)?)
    }

    /// Returns the history terms of a stage, with constrained DoFs from the derivatives of their conditions.
    pub(super) fn stage_rates(
        &mut self,
        stage: &Stage<'_>,
    ) -> Result<Option<[Vector; 2]>, RunError> {
        let Some(moving) = self.moving(stage.time)? else { return Ok(None) };
        let [own, rates @ ..] = &moving.0;
        let mut held = stage.rates.map(Vector::clone);
        for ((held, rate), s) in held.iter_mut().zip(rates).zip(stage.factors) {
            let left: Vec<f64> = rate.iter().zip(own).map(|(rate, g)| rate - s * g).collect();
            self.operator.impose_rate(&left, held)?;
        }
        self.operator.set_conditions(own)?;
        Ok(Some(held))
    }
}
