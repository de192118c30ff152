//! A form through time from a program: steps one after another, with whatever it does between them.

use super::super::plan::{SolvePlan, plan_solve};
use super::super::step::Unwatched;
use super::super::{RunError, System};
use super::Way;
use super::stages::{Memory, StageSettings, Staged};
use crate::operator::Operator;
use crate::solve::time::State;
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::{Scheme, SolverSettings};
use std::sync::Arc;

/// Lengths that are tried, from 1 on.
const LENGTHS: usize = 24;

/// Where a system is in time, and what its scheme and its solver remember.
pub struct Travel {
    way: Way,
    memory: Memory,
    /// Whether u̇ of the state is that of its time.
    known: bool,
    /// Whether the scheme gives it in the next step.
    gives: bool,
    /// What should be known of its beginning.
    pub notes: Vec<String>,
}

/// With a program's functions anything may follow t.
fn settings(plan: SolvePlan) -> StageSettings {
    StageSettings { plan, timed: [true, false], reported: true }
}

/// The length over which differences show best how fast conditions change where time begins, before a step says how long it is: the one
/// where a quarter of it changes them least.
fn scale(staged: &mut Staged<'_>, time: f64) -> Result<f64, RunError> {
    let (mut best, mut length, mut before) = ((f64::INFINITY, 1.0), 1.0, None);
    for _ in 0..LENGTHS {
        staged.length = length;
        let Some(mut now) = staged.held_rate(1, time)? else { break };
        let found = now.clone();
        if let Some(before) = before.replace(found) {
            now.axpy(-1.0, &before);
            let change = now.norm();
            if change < best.0 {
                best = (change, length);
            }
        }
        length /= 4.0;
    }
    Ok(best.1)
}

impl Travel {
    /// From a state of a system; its rates follow from the form where they can.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, a mass that cannot be inverted.
    pub fn new(
        scheme: Scheme,
        state: State,
        system: System<'_>,
        operator: &mut Operator,
    ) -> Result<Self, RunError> {
        scheme.check(&system.form.rates, system.form.fields.len())?;
        let settings = settings(plan_solve(&system.facts(operator.is_on_device()), None)?);
        let mut monitor = Unwatched;
        let mut staged = Staged::new(system, operator, settings, &mut monitor, Memory::default());
        let mut notes = Vec::new();
        let length = scale(&mut staged, state.time)?;
        let way = Way::begin(scheme, (state, length), &mut staged, &mut notes)?;
        let second = way.state().a.is_some();
        let known = second || !staged.is_algebraic();
        // A θ-scheme for first derivatives has it from those of two steps, or of one and of the beginning.
        let gives = known || !matches!(scheme, Scheme::Theta { .. });
        Ok(Self { way, memory: staged.into_memory(), known, gives, notes })
    }

    /// Whether u̇ of the state is that of its time.
    pub fn rates_are_known(&self) -> bool {
        self.known
    }

    /// The state that was reached.
    pub fn state(&self) -> &State {
        self.way.state()
    }

    /// A step of some length: what it adds to the error, relative to u, where that can be told. Where it fails, nothing has
    /// changed; an explicit scheme, whose solution has become infinite, does not go on.
    ///
    /// # Errors
    ///
    /// A stage that cannot be solved.
    pub fn step(
        &mut self,
        length: f64,
        system: System<'_>,
        operator: &mut Operator,
        named: Option<&SolverSettings>,
    ) -> Result<Option<f64>, RunError> {
        let plan = plan_solve(&system.facts(operator.is_on_device()), named)?;
        let mut monitor = Unwatched;
        let memory = std::mem::take(&mut self.memory);
        let mut staged = Staged::new(system, operator, settings(plan), &mut monitor, memory);
        let taken = self.way.step(length, &mut staged).and_then(|taken| {
            let estimate = taken.as_ref().and_then(|taken| taken.estimate);
            self.way.accept(taken, None);
            (self.known, self.gives) = (self.gives, true);
            self.way.confirm(&mut staged).map(|()| estimate)
        });
        self.memory = staged.into_memory();
        taken
    }

    /// Leaves an operator with t and the derivatives of the state, of which residuals are then, and gives a discretisation that
    /// has them as data, of which reports are.
    ///
    /// # Errors
    ///
    /// A device that fails, a condition without a value.
    pub fn settle(
        &mut self,
        system: System<'_>,
        operator: &mut Operator,
    ) -> Result<Arc<Discretisation>, RunError> {
        let plan = plan_solve(&system.facts(operator.is_on_device()), None)?;
        let mut monitor = Unwatched;
        let memory = std::mem::take(&mut self.memory);
        let mut staged = Staged::new(system, operator, settings(plan), &mut monitor, memory);
        let state = self.way.state();
        let done = staged.quiet(state).and_then(|()| Ok(staged.seen(state)?.0));
        self.memory = staged.into_memory();
        done
    }
}
