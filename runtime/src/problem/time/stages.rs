//! Solves of stages: sets t, s and the history terms r in an operator, updates conditions and data at t, then solves F
//! = 0.

use super::super::RunError;
use super::super::context::Context;
use super::super::plan::SolvePlan;
use super::super::solver::{LinearSolveSequence, solve_planned};
use super::super::step::Monitor;
use super::parameters_at;
use crate::algebra::vector::Vector;
use crate::operator::Operator;
use crate::solve::time::{Stage, StageSolver, TimeState};
use crate::solve::{
    Continue, LinearOperator as _, MultigridStatistics, Newton, NonlinearSystem, Outcome, Progress,
    Report,
};
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::expression::Parameters;
use fem_dsl::point::{Graph, Input, Node, PointForm, Rate, reachable};
use fem_dsl::problem::{Expression, Problem, ValueSource};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// Relative tolerance of equal s, for step lengths that differ by rounding.
const SAME: f64 = 1e-9;

/// Settings of the solves of stages.
#[derive(Clone)]
pub(super) struct StageSettings {
    /// The plan of a solve.
    pub(super) plan: SolvePlan,
    /// Flags of conditions, and of data, that depend on t.
    pub(super) timed: [bool; 2],
    /// True if reports are evaluated at states.
    pub(super) reported: bool,
}

impl StageSettings {
    /// The settings of a problem.
    pub(super) fn of(problem: &Problem, plan: SolvePlan) -> Self {
        let follows = |expression: &Expression| reads_time(&expression.graph);
        let conditions = problem.dirichlet.iter().any(|condition| follows(&condition.value));
        let data = problem.aux.iter().any(|data| match &data.value {
            ValueSource::Formula(formula) => follows(formula),
            ValueSource::File(_) | ValueSource::Solution(_) | ValueSource::Cells(_) => false,
        });
        // Each step replaces the states.
        let data = data || !problem.states.is_empty();
        Self { plan, timed: [conditions, data], reported: !problem.reports.items.is_empty() }
    }
}

/// Solver data reused between stages.
#[derive(Default)]
pub(super) struct StageMemory {
    again: Option<LinearSolveSequence>,
    newton: Option<Newton>,
    /// s of the current Jacobian; `None` before the first one, or if it depends on t or the state.
    made_for: Option<[f64; 2]>,
    /// Largest initial ‖R‖ of a solve; reference of the stopping criterion of stages that start closer to their
    /// solution.
    largest: f64,
    /// Total number of linear iterations.
    iterations: usize,
    /// Last ‖R‖.
    residual: f64,
    report: Option<Report>,
    notes: Vec<String>,
    figures: Vec<MultigridStatistics>,
}

impl StageMemory {
    /// Drops the solver data, which belongs to the settings that it was made with.
    pub(super) fn forget_solver(&mut self) {
        (self.again, self.newton, self.made_for) = (None, None, None);
    }
}

/// Values of all conditions and their first two time derivatives, in the order of [`super::super::solver::values`].
pub(super) struct ConditionValues(pub(super) [Vec<f64>; 3]);

/// Last evaluation of conditions, with its time and difference step.
pub(super) type LastConditions = Option<([f64; 2], Rc<ConditionValues>)>;

/// Stage solver.
pub(super) struct ProblemStages<'a> {
    context: &'a Context,
    pub(super) operator: &'a mut Operator,
    pub(super) settings: StageSettings,
    monitor: &'a mut dyn Monitor,
    parameters: Parameters,
    /// True if the Jacobian depends on s alone.
    steady: bool,
    /// Degrees of freedom of fields without time derivatives.
    algebraic: Vec<Range<usize>>,
    memory: StageMemory,
    cancelled: bool,
    /// Initial time; data may be undefined before it.
    pub(super) begins: f64,
    /// End time of the run; the system's time if unknown.
    pub(super) ends: f64,
    /// Step length, used for finite differences of unknown derivatives.
    pub(super) length: f64,
    /// Last evaluation of the conditions.
    pub(super) evaluated: LastConditions,
}

fn reads_time(graph: &Graph) -> bool {
    graph.nodes().iter().any(|node| *node == Node::Input(Input::Time))
}

impl<'a> ProblemStages<'a> {
    pub(super) fn new(
        context: &'a Context,
        operator: &'a mut Operator,
        settings: StageSettings,
        monitor: &'a mut dyn Monitor,
        memory: StageMemory,
    ) -> Self {
        let form = context.form();
        let coefficients = form.integrals.iter().any(|integral| {
            let roots: Vec<_> = integral.jacobian.iter().map(|entry| entry.value).collect();
            let mut read = reachable(&integral.graph, &roots).into_iter();
            read.any(|node| integral.graph.nodes()[node] == Node::Input(Input::Time))
        });
        let steady = context.is_linear() && !coefficients && !settings.timed[1];
        let has = |field: usize| form.rates.iter().any(|rate| rate.field == field);
        let fields = 0..form.fields.len();
        let algebraic =
            fields.filter(|&field| !has(field)).map(|field| context.on.dofs_of(field)).collect();
        let parameters = context.parameters.clone();
        let begins = parameters.values[0];
        Self {
            context,
            operator,
            settings,
            monitor,
            parameters,
            steady,
            algebraic,
            memory,
            cancelled: false,
            begins,
            ends: begins,
            length: 0.0,
            evaluated: None,
        }
    }

    /// Returns the solver data for reuse.
    pub(super) fn into_memory(self) -> StageMemory {
        self.memory
    }

    pub(super) fn context(&self) -> &'a Context {
        self.context
    }

    /// Returns whether reports are evaluated at states.
    pub(super) fn is_reported(&self) -> bool {
        self.settings.reported
    }

    /// Returns the total number of linear iterations.
    pub(super) fn iterations(&self) -> usize {
        self.memory.iterations
    }

    /// Returns the last ‖R‖.
    pub(super) fn last_residual(&self) -> f64 {
        self.memory.residual
    }

    pub(super) fn on(&self) -> &Arc<Discretisation> {
        &self.context.on
    }

    pub(super) fn monitor(&mut self) -> &mut dyn Monitor {
        self.monitor
    }

    pub(super) fn cancelled(&self) -> bool {
        self.cancelled
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.memory.notes
    }

    pub(super) fn figures(&self) -> Vec<MultigridStatistics> {
        self.memory.figures.clone()
    }

    pub(super) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    pub(super) fn parameters_mut(&mut self) -> &mut Parameters {
        &mut self.parameters
    }

    /// Returns the largest initial ‖R‖ of a solve.
    pub(super) fn largest(&self) -> f64 {
        self.memory.largest
    }

    pub(super) fn set_largest(&mut self, largest: f64) {
        self.memory.largest = largest;
    }

    /// Discards solver data of earlier solves: the next one depends on states only.
    pub(super) fn forget(&mut self) {
        let memory = &mut self.memory;
        (memory.again, memory.newton, memory.made_for) = (None, None, None);
        self.operator.precondition_by(None);
    }

    /// Returns whether data depends on t.
    pub(super) fn data_follows_time(&self) -> bool {
        self.settings.timed[1]
    }

    /// Returns whether the Jacobian depends on s alone.
    pub(super) fn is_steady(&self) -> bool {
        self.steady
    }

    /// Returns whether some field has no time derivative.
    pub(super) fn is_algebraic(&self) -> bool {
        !self.algebraic.is_empty() || self.operator.number_values().is_some()
    }

    /// Returns the report of the last solve.
    pub(super) fn report(&self) -> Report {
        self.memory.report.clone().unwrap_or_else(|| Report {
            solver: "explicit",
            outcome: Outcome::Converged,
            iterations: 0,
            history: vec![0.0],
            target: 0.0,
            seconds: 0.0,
            notes: Vec::new(),
            newton: Vec::new(),
        })
    }

    /// Sets the history terms of the scheme in the operator, 0 for `None`.
    fn set_rates(&mut self, rates: [Option<&Vector>; 2]) -> Result<(), RunError> {
        for rate in &self.context.form().rates {
            set_rate(self.operator, &self.context.on, rate, rates[rate.order - 1])?;
        }
        Ok(())
    }

    /// Sets time and s in the operator; keeps factors and levels if the Jacobian is unchanged, and returns whether it
    /// is.
    fn set_time(&mut self, time: f64, factors: [f64; 2]) -> Result<bool, RunError> {
        let near = |old: [f64; 2]| {
            old.iter().zip(&factors).all(|(old, new)| (old - new).abs() <= SAME * new.abs())
        };
        let same = self.steady && self.memory.made_for.is_some_and(near);
        parameters_at(self.context.form(), &mut self.parameters, time, factors);
        let kept = if same { self.operator.take_approximation() } else { None };
        self.operator.set_params(&self.parameters.values)?;
        if kept.is_some() {
            self.operator.precondition_by(kept);
        }
        self.memory.made_for = self.steady.then_some(factors);
        Ok(same)
    }

    /// Returns whether a device can replay F: no prescribed data depends on t.
    pub(super) fn is_repeatable(&self) -> bool {
        let follows = self.settings.timed != [false; 2] || self.operator.point_loads_follow_time();
        // Rates at hanging nodes are interpolated on the host.
        let hangs = self.context.on.fields.iter().any(|field| field.space.hangs());
        !follows && !hangs && self.operator.replayable()
    }

    /// Returns whether F itself depends on t.
    pub(super) fn follows_time(&self) -> bool {
        let mut integrals = self.context.form().integrals.iter();
        integrals.any(|integral| reads_time(&integral.graph))
            || self.operator.point_loads_follow_time()
    }

    /// Sets parameters, conditions, data and derivatives at a time in the operator.
    pub(super) fn arrive(
        &mut self,
        time: f64,
        rates: [Option<&Vector>; 2],
    ) -> Result<(), RunError> {
        self.set_time(time, [0.0; 2])?;
        self.prescribe(time)?;
        self.set_rates(rates)
    }

    /// Evaluates F into `r` at a state and the operator's time; imposes the conditions on the state.
    pub(super) fn residual_here(&mut self, u: &mut Vector, r: &mut Vector) -> Result<(), RunError> {
        self.operator.impose(u)?;
        Ok(self.operator.residual(u, r)?)
    }

    /// Evaluates F into `r` at a state and a time, with time derivatives of the state.
    pub(super) fn residual_at(
        &mut self,
        time: f64,
        u: &mut Vector,
        rates: [Option<&Vector>; 2],
        r: &mut Vector,
    ) -> Result<(), RunError> {
        self.arrive(time, rates)?;
        self.residual_here(u, r)
    }

    /// Leaves the operator with the derivatives of a state.
    pub(super) fn quiet(&mut self, state: &TimeState) -> Result<(), RunError> {
        self.arrive(state.time, [Some(&state.v), state.a.as_ref()])
    }

    /// Returns the context for evaluating reports of a state: with data, and derivatives if they are read, at its time.
    pub(super) fn seen(&self, state: &TimeState) -> Result<Context, RunError> {
        self.seen_with(state, self.settings.reported)
    }

    /// Returns the context for evaluating the form at a state: with data and derivatives at its time.
    pub(super) fn seen_with_rates(&self, state: &TimeState) -> Result<Context, RunError> {
        self.seen_with(state, true)
    }

    fn seen_with(&self, state: &TimeState, has_rates: bool) -> Result<Context, RunError> {
        let Context { on, prescribed, .. } = self.context;
        let mut parameters = self.parameters.clone();
        parameters_at(self.context.form(), &mut parameters, state.time, [0.0; 2]);
        if let Some((first, values)) = self.operator.number_values() {
            parameters.values[first..first + values.len()].copy_from_slice(values);
        }
        let rates = &self.context.form().rates;
        if !self.settings.timed[1] && (rates.is_empty() || !has_rates) {
            return Ok(self.context.with_parameters(parameters));
        }
        let mut own = Discretisation::clone(on);
        if self.settings.timed[1] {
            own.aux = prescribed.aux(on, &parameters)?;
        }
        for (order, values) in [(1, Some(&state.v)), (2, state.a.as_ref())] {
            let Some(values) = values else { continue };
            let data = rate_data(self.context.form(), &own, order, &values.to_vec());
            data.into_iter().for_each(|(index, values)| own.aux[index] = values);
        }
        Ok(Context { on: Arc::new(own), parameters, ..self.context.clone() })
    }

    /// Records the report of a solve.
    fn keep(&mut self, mut report: Report, linear: usize) {
        self.memory.iterations += linear;
        self.memory.largest =
            report.history.first().copied().unwrap_or(0.0).max(self.memory.largest);
        self.memory.residual = report.residual();
        for note in std::mem::take(&mut report.notes) {
            if !self.memory.notes.contains(&note) {
                self.memory.notes.push(note);
            }
        }
        self.memory.report = Some(report);
        self.memory.figures =
            self.operator.approximation().map(|own| own.figures()).unwrap_or_default();
    }
}

/// Sets the history term of a time derivative in an operator, 0 for `None`.
pub(super) fn set_rate(
    operator: &mut Operator,
    on: &Discretisation,
    rate: &Rate,
    values: Option<&Vector>,
) -> Result<(), RunError> {
    let place = (rate.aux, rate.field);
    if let Some(values) = values.filter(|_| on.fields[rate.field].space.hangs()) {
        let numbers = at_nodes(on, place, &values.to_vec());
        operator.set_values_at_nodes(rate.aux, &numbers)?;
        return Ok(());
    }
    let from = || unknowns_at_nodes(on, place);
    operator.set_at_nodes(rate.aux, values, &from)?;
    Ok(())
}

/// Converts time derivatives of an order to the auxiliary data that represents them in forms, with its index.
pub fn rate_data(
    form: &PointForm,
    on: &Discretisation,
    order: usize,
    values: &[f64],
) -> Vec<(usize, AuxValues)> {
    let rates = form.rates.iter().filter(|rate| rate.order == order);
    let data = rates.filter_map(|rate| match &on.aux[rate.aux] {
        AuxValues::Nodes(space, _) => {
            let numbers = at_nodes(on, (rate.aux, rate.field), values);
            Some((rate.aux, AuxValues::Nodes(Arc::clone(space), Arc::new(numbers))))
        }
        _ => None,
    });
    data.collect()
}

/// Evaluates a field at the nodes of auxiliary data on its space: a permutation of its degrees of freedom, and
/// interpolation at hanging nodes, where data has values of its own.
pub(crate) fn at_nodes(
    on: &Discretisation,
    (aux, field): (usize, usize),
    numbers: &[f64],
) -> Vec<f64> {
    let space = &on.fields[field].space;
    if !space.hangs() {
        let unknowns = unknowns_at_nodes(on, (aux, field)).into_iter();
        return unknowns.map(|at| numbers[at as usize]).collect();
    }
    let own = &numbers[on.dofs_of(field)];
    let AuxValues::Nodes(data, _) = &on.aux[aux] else { return own.to_vec() };
    let ((space, all), components) = (space.resolved(own), space.components());
    let mut values = vec![0.0; data.n_nodes() * components];
    for (to, node) in data.all_nodes().zip(space.all_nodes()) {
        let from = &all[node as usize * components..][..components];
        values[to as usize * components..][..components].copy_from_slice(from);
    }
    values
}

/// Returns the field's degree of freedom for each nodal value of auxiliary data on its space.
fn unknowns_at_nodes(on: &Discretisation, (aux, field): (usize, usize)) -> Vec<u32> {
    let first = on.dofs_of(field).start;
    let space = &on.fields[field].space;
    let (components, own) = (space.components(), space.n_dofs());
    let AuxValues::Nodes(data, _) = &on.aux[aux] else {
        return (first..first + own).map(|at| at as u32).collect();
    };
    let mut from = vec![0; data.n_nodes() * components];
    for (to, node) in data.all_nodes().zip(space.all_nodes()) {
        for component in 0..components {
            let at = first + node as usize * components + component;
            from[to as usize * components + component] = at as u32;
        }
    }
    from
}

impl StageSolver for ProblemStages<'_> {
    type Error = RunError;

    fn solve(&mut self, stage: &Stage<'_>, x: &mut Vector) -> Result<(), RunError> {
        let same = self.set_time(stage.time, stage.factors)?;
        self.prescribe(stage.time)?;
        match self.stage_rates(stage)? {
            Some(rates) => self.set_rates(rates.each_ref().map(Some))?,
            None => self.set_rates(stage.rates.map(Some))?,
        }
        let context = &self.context.with_parameters(self.parameters.clone());
        let has_numbers = self.operator.number_values().is_some();
        if self.settings.plan.newton.is_none() && !has_numbers {
            let mut again = match self.memory.again.take() {
                Some(again) => again,
                None => LinearSolveSequence::new(self.operator, context, x, &self.settings.plan)?,
            };
            let largest = self.memory.largest;
            let Self { operator, monitor, cancelled, .. } = self;
            let mut observe = |now: Progress| {
                let go = monitor.iteration(now);
                *cancelled |= go == Continue::No;
                go
            };
            let solved = again.solve(operator, context, x, (same, largest), &mut observe);
            self.memory.notes.extend(again.note.take());
            self.memory.again = Some(again);
            let report = solved.inspect_err(|_| self.memory.made_for = None)?;
            let iterations = report.iterations;
            self.keep(report, iterations);
            return Ok(());
        }
        let mut newton = self.memory.newton.take();
        let Self { operator, monitor, cancelled, settings, .. } = self;
        let plan = (&settings.plan, self.memory.largest);
        let mut observe = |now: Progress| {
            let go = monitor.iteration(now);
            *cancelled |= go == Continue::No;
            go
        };
        let solved = solve_planned(operator, context, x, plan, Some(&mut newton), &mut observe);
        self.memory.newton = newton;
        let (report, linear) = solved?;
        let report = report.converged()?;
        self.keep(report, linear);
        Ok(())
    }

    fn keep_algebraic(&self, from: &Vector, to: &mut Vector) {
        if self.algebraic.is_empty() {
            return;
        }
        let (from, mut all) = (from.to_vec(), to.to_vec());
        for range in &self.algebraic {
            all[range.clone()].copy_from_slice(&from[range.clone()]);
        }
        to.set(&all);
    }

    fn constrain(&mut self, state: &mut TimeState) -> Result<(), RunError> {
        self.hold_state(state)
    }
}
