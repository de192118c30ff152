//! Stages: problems on one mesh that are solved in turn, again and again, each with the latest solutions of the others
//! as data. Projection methods and staggered schemes are made of them, and fixed-point iterations.
//!
//! ```text
//! for n = 1, 2, …   t = n Δt    for each stage: data from the latest solutions → solve
//!                               max over stages ‖uⁿ − uⁿ⁻¹‖ / ‖uⁿ‖ ≤ until → end
//! ```
//!
//! Operators, factors and levels are kept. A Jacobian that reads none of the data that changes is linearised once.

use super::clock::{Clock, Phase};
use super::context::Context;
use super::measure::{State, measure, throughput};
use super::plan::SolvePlan;
use super::platform::Platform;
use super::solver::{LinearSolveSequence, solve_planned};
use super::steady::{StartState, begin};
use super::step::{Monitor, Step, StepKind};
use super::{
    ConvergenceError, DataError, FileStatement, Kernels, RunError, Solution, check_fixed,
    check_unique, values,
};
use crate::algebra::vector::Vector;
use crate::files::input::cells::{at_nodes, cell_field, on_cells};
use crate::mesh::Mesh;
use crate::operator::Operator;
use crate::solve::{Newton, Outcome, Report, SolveError};
use crate::space::discretisation::AuxValues;
use crate::support::progress::doing;
use fem_dsl::point::{Input, Integral, reachable};
use fem_dsl::problem::{CellField, Problem, Stages, ValueSource};
use kernels_gen::element::Lagrange;
use std::sync::Arc;

/// A datum of a stage that is a field of another one.
struct TakenField {
    /// Index of the auxiliary data.
    aux: usize,
    /// The stage and its field.
    stage: usize,
    field: usize,
}

/// A stage with its operator and its latest solution.
struct RunningStage {
    context: Context,
    plan: SolvePlan,
    operator: Operator,
    kernels: Kernels,
    u: Vector,
    /// The same on the host.
    entries: Vec<f64>,
    taken: Vec<TakenField>,
    data: Vec<AuxValues>,
    /// True if the Jacobian depends on neither data that changes, nor the time, nor the state.
    is_steady: bool,
    again: Option<LinearSolveSequence>,
    newton: Option<Newton>,
    /// Largest initial residual.
    largest: f64,
    report: Option<Report>,
    iterations: usize,
    notes: Vec<String>,
}

/// Solves the stages of a problem in turn, itself the last of them, and returns its last solution.
///
/// # Errors
///
/// Errors of a stage, a fixed point that is not reached.
pub(super) fn run_stages(
    problem: &Arc<Problem>,
    stages: &Stages,
    mesh: Arc<Mesh>,
    platform: &Platform,
    monitor: &mut dyn Monitor,
) -> Result<Solution, RunError> {
    let mut clock = Clock::start();
    let all: Vec<&Arc<Problem>> = stages.before.iter().chain([problem]).collect();
    let setting_up = doing("setting up the stages");
    let mut running = Vec::new();
    for problem in &all {
        running.push(RunningStage::new(problem, &all, &mesh, platform)?);
    }
    drop(setting_up);
    clock.end(Phase::SetUp);
    let (mut change, mut steps) = (f64::INFINITY, 0);
    while steps < stages.steps && stages.until.is_none_or(|until| change > until) {
        steps += 1;
        let time = stages.step.map(|step| problem.time + steps as f64 * step);
        change = 0.0;
        for at in 0..running.len() {
            let before = running[at].entries.clone();
            let fields = running[at].fields(&running)?;
            let stage = &mut running[at];
            stage.take(fields, time)?;
            stage.solve(monitor)?;
            change = f64::max(change, stage.change(&before));
        }
        if let Some(time) = time {
            monitor.time(time, problem.time + stages.steps as f64 * stages.step.unwrap_or(0.0));
        }
    }
    clock.end(Phase::Solve);
    let ended = stages.until.is_none_or(|until| change <= until);
    let Some(mut last) = running.pop() else {
        return Err(RunError::Setting("there are no stages".to_owned()));
    };
    if !ended {
        let residual = change;
        let (outcome, target) = (Outcome::IterationLimit, stages.until.unwrap_or(0.0));
        let error = SolveError {
            solver: "stages",
            outcome,
            iterations: steps,
            residual,
            target,
            field: None,
        };
        return Err(ConvergenceError::from(error).into());
    }
    let plural = if steps == 1 { "" } else { "s" };
    last.notes.push(format!(
        "{steps} step{plural} of the stages, the last with a change of {change:.1e}"
    ));
    let solution = last.solution(&mut clock)?;
    monitor.step(&Step::of(StepKind::Solve, &solution), &solution);
    Ok(solution)
}

impl RunningStage {
    fn new(
        problem: &Arc<Problem>,
        all: &[&Arc<Problem>],
        mesh: &Arc<Mesh>,
        platform: &Platform,
    ) -> Result<Self, RunError> {
        let mut own = Problem::clone(problem);
        let mut taken = Vec::new();
        for data in &mut own.aux {
            let ValueSource::Solution(from) = &data.value else { continue };
            let Some(stage) = all.iter().position(|other| other.name == from.problem) else {
                continue;
            };
            let fields = &all[stage].form.fields;
            let field = fields.iter().position(|own| own.name == from.field);
            let Some(field) = field else { continue };
            taken.push(TakenField { aux: data.aux, stage, field });
            let components = fields[field].shape.components();
            data.value = ValueSource::Cells(Arc::new(zero(mesh, components, &from.field)));
        }
        let (context, plan) = Context::planned(&Arc::new(own), Arc::clone(mesh), platform)?;
        check_fixed(context.form(), &context.on, &context.undetermined_parameters())?;
        let (mut operator, kernels) = context.operator_for(&plan)?;
        let mut notes = [context.notes(), kernels.notes.clone()].concat();
        notes.extend(check_unique(&mut operator, &context)?);
        let (u, said) = begin(&context, StartState::Problem, &operator)?;
        notes.extend(said);
        let is_taken = |aux: usize| taken.iter().any(|own| own.aux == aux);
        let is_steady = context.is_linear()
            && !context.form().integrals.iter().any(|own| follows(own, is_taken));
        let (entries, data) = (u.to_vec(), context.on.aux.clone());
        Ok(Self {
            context,
            plan,
            operator,
            kernels,
            u,
            entries,
            taken,
            data,
            is_steady,
            again: None,
            newton: None,
            largest: 0.0,
            report: None,
            iterations: 0,
            notes,
        })
    }

    /// Returns the data of this stage from the latest solutions.
    fn fields(&self, all: &[Self]) -> Result<Vec<(usize, AuxValues)>, RunError> {
        let mut fields = Vec::new();
        for taken in &self.taken {
            let from = &all[taken.stage];
            let on = &from.context.on;
            let name = self.context.form().aux[taken.aux].name.clone();
            let dofs = &from.entries[on.dofs_of(taken.field)];
            let field = cell_field(&on.fields[taken.field].space, dofs, name.clone());
            let mesh = &self.context.on.mesh;
            let made = match &self.data[taken.aux] {
                AuxValues::Nodes(space, _) => at_nodes(&field, mesh, space)
                    .map(|values| AuxValues::Nodes(Arc::clone(space), Arc::new(values))),
                _ => on_cells(&field, mesh, &self.context.on.partition).map(AuxValues::on_cells),
            };
            let made = made.map_err(|source| DataError::File {
                taker: FileStatement::Data(taken.aux),
                name,
                path: format!("{} of {}", taken.field, from.context.problem.name).into(),
                source: Box::new(source),
            })?;
            fields.push((taken.aux, made));
        }
        Ok(fields)
    }

    /// Gives the operator data, and a time.
    fn take(&mut self, fields: Vec<(usize, AuxValues)>, time: Option<f64>) -> Result<(), RunError> {
        let kept = if self.is_steady { self.operator.take_approximation() } else { None };
        if !fields.is_empty() {
            fields.into_iter().for_each(|(aux, values)| self.data[aux] = values);
            self.operator.set_aux(&self.data)?;
            if !self.is_steady {
                // Levels are built from the data of the context.
                let mut on = (*self.context.on).clone();
                on.aux.clone_from(&self.data);
                self.context.on = Arc::new(on);
            }
        }
        if let Some(time) = time {
            let Context { on, prescribed, parameters, .. } = &mut self.context;
            parameters.values[0] = time;
            self.operator.set_params(&parameters.values)?;
            if prescribed.conditions_read_time() {
                let conditions = prescribed.conditions(on, parameters)?;
                self.operator.set_conditions(&values(&conditions))?;
            }
        }
        if kept.is_some() {
            self.operator.precondition_by(kept);
        }
        Ok(())
    }

    /// Solves with the current data, from the latest solution.
    fn solve(&mut self, monitor: &mut dyn Monitor) -> Result<(), RunError> {
        let Self { context, plan, operator, u, again, newton, largest, .. } = self;
        let mut observe = |now| monitor.iteration(now);
        let (report, linear) = if plan.newton.is_none() && operator.number_values().is_none() {
            let same = self.is_steady && again.is_some();
            let mut sequence = match again.take() {
                Some(sequence) => sequence,
                None => LinearSolveSequence::new(operator, context, u, plan)?,
            };
            let report = sequence.solve(operator, context, u, (same, *largest), &mut observe)?;
            self.notes.extend(sequence.note.take());
            *again = Some(sequence);
            let iterations = report.iterations;
            (report, iterations)
        } else {
            let plan = (&*plan, *largest);
            solve_planned(operator, context, u, plan, Some(newton), &mut observe)?
        };
        let mut report = report.converged()?;
        operator.finish()?;
        *largest = report.history.first().copied().unwrap_or(0.0).max(*largest);
        for note in std::mem::take(&mut report.notes) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self.iterations += linear;
        self.entries = self.u.to_vec();
        self.report = Some(report);
        Ok(())
    }

    /// Returns the relative change from an earlier solution.
    fn change(&self, before: &[f64]) -> f64 {
        let mut earlier = self.u.like();
        earlier.set(before);
        let size = self.u.norm();
        earlier.axpy(-1.0, &self.u);
        let change = earlier.norm();
        if change == 0.0 { 0.0 } else { change / size }
    }

    /// Measures the latest solution.
    fn solution(mut self, clock: &mut Clock) -> Result<Solution, RunError> {
        let multigrid = self.operator.approximation().map(|own| own.figures()).unwrap_or_default();
        self.operator.precondition_by(None);
        let mut r = self.u.like();
        let throughput = throughput(&self.operator, &self.u, &mut r)?;
        let mut on = (*self.context.on).clone();
        on.aux = self.data;
        let context = Context { on: Arc::new(on), ..self.context.with_numbers_of(&self.operator) };
        let Some(report) = self.report else {
            return Err(RunError::Setting("the stages take no step".to_owned()));
        };
        let state = State {
            kernels: self.kernels,
            u: self.entries,
            report,
            linear_iterations: self.iterations,
            multigrid,
            residual: r.norm(),
            throughput,
            notes: self.notes,
        };
        let tables = self.operator.table_cache();
        let mut solution = measure(&context, &context, state, Some(&self.u), tables)?;
        clock.end(Phase::Measure);
        solution.seconds = clock.seconds();
        Ok(solution)
    }
}

/// Returns whether the Jacobian of an integral depends on the time or on data that changes.
fn follows(integral: &Integral, changes: impl Fn(usize) -> bool) -> bool {
    let roots: Vec<_> = integral.jacobian.iter().map(|entry| entry.value).collect();
    reachable(&integral.graph, &roots).into_iter().any(|node| match integral.graph.nodes()[node] {
        fem_dsl::point::Node::Input(Input::Time) => true,
        fem_dsl::point::Node::Input(Input::Aux(slot)) => changes(slot.field),
        _ => false,
    })
}

/// Returns the field 0, which stands for a solution that is still unknown.
fn zero(mesh: &Mesh, components: usize, name: &str) -> CellField {
    let count = Lagrange::continuous(mesh.cell(), 1).map_or(0, Lagrange::count);
    CellField {
        origin: name.to_owned(),
        continuous: true,
        degree: 1,
        components,
        values: vec![0.0; mesh.n_cells() * count * components],
    }
}
