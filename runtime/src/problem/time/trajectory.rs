//! Time integration controlled by a program, step by step.

use super::super::plan::SolvePlan;
use super::super::step::NullMonitor;
use super::super::{Context, RunError};
use super::Integrator;
use super::stages::{ProblemStages, StageMemory, StageSettings};
use crate::operator::Operator;
use crate::solve::time::{TimeState, time_scheme};
use crate::space::discretisation::Discretisation;
use fem_dsl::problem::{Scheme, SolverSettings};
use std::sync::Arc;

/// Number of trial lengths, from 1 downwards.
const LENGTHS: usize = 24;

/// A trajectory: state, scheme history and solver data.
pub struct Trajectory {
    way: Integrator,
    memory: StageMemory,
    /// Solver settings of the last step, and their plan.
    planned: (Option<SolverSettings>, SolvePlan),
    /// True if u̇ of the state belongs to its time.
    known: bool,
    /// True if u̇ is known after the next step.
    gives: bool,
    /// Notes on the initial state.
    pub notes: Vec<String>,
}

/// With a program's functions anything may follow t.
fn settings(plan: SolvePlan) -> StageSettings {
    StageSettings { plan, timed: [true, false], reported: true }
}

/// Returns the difference length for initial rates of conditions: the one whose quarter changes the rates least.
fn scale(staged: &mut ProblemStages<'_>, time: f64) -> Result<f64, RunError> {
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

impl Trajectory {
    /// Starts from a state of a system; computes its initial rates from the form if possible.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a mass that cannot be inverted.
    pub fn new(
        scheme: Scheme,
        state: TimeState,
        context: &Context,
        operator: &mut Operator,
    ) -> Result<Self, RunError> {
        scheme.check(&context.form().rates, context.form().fields.len(), false)?;
        let plan = context.plan(None)?;
        let (planned, settings) = ((None, plan.clone()), settings(plan));
        let mut monitor = NullMonitor;
        let mut staged =
            ProblemStages::new(context, operator, settings, &mut monitor, StageMemory::default());
        let mut notes = Vec::new();
        let length = scale(&mut staged, state.time)?;
        let way = Integrator::begin(scheme, (state, length), &mut staged, &mut notes)?;
        let second = way.state().a.is_some();
        let known = second || !staged.is_algebraic();
        // A θ-scheme for first derivatives obtains u̇ from two steps, or from one and the initial rate.
        let gives = known
            || time_scheme::<RunError>(scheme).is_none_or(|scheme| scheme.gives_rates_at_end());
        Ok(Self { way, memory: staged.into_memory(), planned, known, gives, notes })
    }

    /// Returns whether u̇ of the state belongs to its time.
    pub fn rates_are_known(&self) -> bool {
        self.known
    }

    /// Returns the current state.
    pub fn state(&self) -> &TimeState {
        self.way.state()
    }

    /// Takes a step; returns its error estimate relative to u, if there is one. A failed step leaves the state
    /// unchanged; an explicit scheme with an infinite solution cannot continue.
    ///
    /// # Errors
    ///
    /// A stage that cannot be solved.
    pub fn step(
        &mut self,
        length: f64,
        context: &Context,
        operator: &mut Operator,
        named: Option<&SolverSettings>,
    ) -> Result<Option<f64>, RunError> {
        if self.planned.0.as_ref() != named {
            let plan = context.plan(named)?;
            self.planned = (named.cloned(), plan);
            self.memory.forget_solver();
            operator.precondition_by(None);
        }
        let plan = self.planned.1.clone();
        let mut monitor = NullMonitor;
        let memory = std::mem::take(&mut self.memory);
        let mut staged =
            ProblemStages::new(context, operator, settings(plan), &mut monitor, memory);
        let taken = self.way.step(length, &mut staged).and_then(|taken| {
            let estimate = taken.as_ref().and_then(|taken| taken.estimate);
            self.way.accept(taken, None);
            (self.known, self.gives) = (self.gives, true);
            self.way.confirm(&mut staged).map(|()| estimate)
        });
        self.memory = staged.into_memory();
        taken
    }

    /// Sets t and the derivatives of the state in an operator, for residuals, and returns a discretisation with these
    /// as data, for reports.
    ///
    /// # Errors
    ///
    /// A device failure, a condition without a value.
    pub fn settle(
        &mut self,
        context: &Context,
        operator: &mut Operator,
    ) -> Result<Arc<Discretisation>, RunError> {
        let plan = self.planned.1.clone();
        let mut monitor = NullMonitor;
        let memory = std::mem::take(&mut self.memory);
        let mut staged =
            ProblemStages::new(context, operator, settings(plan), &mut monitor, memory);
        let state = self.way.state();
        let done = staged.quiet(state).and_then(|()| Ok(staged.seen(state)?.on));
        self.memory = staged.into_memory();
        done
    }
}
