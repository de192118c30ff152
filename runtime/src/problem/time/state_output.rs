//! Output of a state: errors, reports and ranges, as a [`Solution`].

use super::super::assess::{IntegrationBackend, assess};
use super::super::clock::{Clock, Phase};
use super::super::reports::{self, EvaluationState as Measured, ranges};
use super::super::step::{Monitor, Step};
use super::super::{Kernels, RunError, Solution};
use super::stages::ProblemStages;
use crate::device::Device;
use crate::kernels::compile::Target;
use crate::operator::TableCache;
use crate::solve::Continue;
use crate::solve::time::TimeState;
use fem_dsl::problem::Problem;
use kernels_gen::plan::Elements;
use std::sync::Arc;

/// Data for evaluating states.
#[derive(Clone, Copy)]
pub(super) struct StateOutput<'a> {
    pub(super) problem: &'a Problem,
    pub(super) elements: &'a Elements,
    pub(super) target: &'a Target,
    pub(super) device: Option<&'a Arc<dyn Device>>,
    pub(super) kernels: &'a Kernels,
}

impl StateOutput<'_> {
    /// Evaluates a state.
    pub(super) fn solution(
        &self,
        state: &TimeState,
        staged: &ProblemStages<'_>,
        clock: &mut Clock,
    ) -> Result<Solution, RunError> {
        let Self { problem, elements, target, device, kernels } = *self;
        let u = state.u.to_vec();
        let (on, parameters) = staged.seen(state)?;
        let of = Measured {
            form: &problem.form,
            on: &on,
            elements,
            parameters: &parameters,
            u: &u,
            vector: None,
            load: None,
        };
        let mut table_cache = TableCache::default();
        let (errors, _) =
            assess(problem, of, IntegrationBackend::new(target, device), &mut table_cache)?;
        let (found, notes) =
            reports::report(&problem.reports, of, target, device, &mut table_cache)?;
        clock.end(Phase::Measure);
        let ranges = (0..on.fields.len()).map(|field| ranges(&on, field, &u)).collect();
        Ok(Solution {
            on: Arc::clone(staged.on()),
            elements: elements.clone(),
            kernels: kernels.clone(),
            size: [staged.on().mesh.cells_in_all(), staged.on().dofs_in_all()],
            u,
            report: staged.report(),
            linear_iterations: staged.iterations(),
            multigrid: Vec::new(),
            residual: staged.last_residual(),
            modes: Vec::new(),
            errors,
            energy: None,
            reports: found,
            ranges,
            notes,
            seconds: clock.seconds(),
            throughput: 0.0,
        })
    }

    /// Passes a solution to the monitor.
    pub(super) fn tell(
        &self,
        solution: &Solution,
        time: f64,
        monitor: &mut dyn Monitor,
    ) -> Continue {
        monitor.step(&Step::at(time, solution), solution)
    }
}
