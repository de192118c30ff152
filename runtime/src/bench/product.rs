//! One operator on whatever mesh: a case, a degree and a [`Mesh`] → [`Product`], y = A x where it runs, whole or part by part.
//!
//! Unknowns on the whole surface are 0, those of hanging nodes are interpolated.

use super::device::median;
use super::{BenchError, Case, form_of, input, median_seconds};
use crate::compile::{Target, compile, compile_for_device, facts};
use crate::device::Device;
use crate::discretisation::Discretisation;
use crate::mesh::Mesh;
use crate::operator::{Operator, Part, Share};
use crate::solve::{LinearOperator, NonlinearSystem};
use crate::vector::{Precision, Vector};
use fem_dsl::point::PointForm;
use kernels_gen::choose::Wishes;
use kernels_gen::element::Rule;
use kernels_gen::plan::{Elements, Plan, Task};
use std::sync::Arc;
use std::time::Instant;

/// What computes.
#[derive(Clone, Debug)]
pub enum Machine {
    /// The processor.
    Processor(Target),
    /// A device with memory of its own, and what is forced there.
    Device(Arc<dyn Device>, Wishes),
}

/// An operator with a vector to multiply.
pub struct Product {
    operator: Operator,
    device: Option<Arc<dyn Device>>,
    plans: Vec<Plan>,
    x: Vector,
    y: Vector,
}

/// Calls before those that are timed.
const WARM: usize = 3;

impl Product {
    /// Compiles a case in double precision, for all of a mesh.
    ///
    /// # Errors
    ///
    /// No plan, too little memory, a compiler or a device that fails.
    pub fn new(
        case: &Case,
        degree: usize,
        mesh: &Arc<Mesh>,
        machine: &Machine,
    ) -> Result<Self, BenchError> {
        let form = form_of(case.name, case.form, mesh.dim())?;
        let rule = Rule::Tensor { cell: mesh.cell(), line: (case.rule)(degree) };
        let elements = Elements::new(&form, mesh.cell(), degree, rule)?;
        let on = Arc::new(held(mesh, &elements)?);
        let (mut operator, plans) = made(&form, &elements, on, machine, &[Task::Action])?;
        let state = operator.vector();
        operator.linearise(&state)?;
        let (mut x, y) = (operator.vector(), operator.vector());
        x.set(&input(operator.discretisation().n_dofs()));
        operator.finish()?;
        let device = match machine {
            Machine::Processor(_) => None,
            Machine::Device(device, _) => Some(Arc::clone(device)),
        };
        Ok(Self { operator, device, plans, x, y })
    }

    /// What it is of.
    pub fn discretisation(&self) -> &Discretisation {
        self.operator.discretisation()
    }

    /// The plan of the action for cells of the whole mesh, or for those without hanging nodes.
    pub fn plan(&self, hanging: bool) -> Option<&Plan> {
        let plans = || self.plans.iter().filter(|plan| plan.task == Task::Action);
        plans().find(|plan| plan.hanging == hanging)
    }

    /// How the cells of the action are batched.
    pub fn shares(&self) -> Vec<Share> {
        self.operator.shares(Task::Action)
    }

    /// Seconds of a product, the mean of so many one after another.
    ///
    /// # Errors
    ///
    /// A launch that fails.
    pub fn mean_seconds(&mut self, times: usize) -> Result<f64, BenchError> {
        let (operator, x, y) = (&self.operator, &self.x, &mut self.y);
        for _ in 0..WARM {
            operator.apply(x, y)?;
        }
        let Some(device) = &self.device else {
            let start = Instant::now();
            for _ in 0..times {
                operator.apply(x, y)?;
            }
            return Ok(start.elapsed().as_secs_f64() / times as f64);
        };
        let start = device.mark()?;
        for _ in 0..times {
            operator.apply(x, y)?;
        }
        let end = device.mark()?;
        device.synchronise()?;
        Ok(device.seconds(&start, &end)? / times as f64)
    }

    /// Seconds of what the kernels do for the cells of some parts, the median; nothing is counted that is done beside them.
    ///
    /// # Errors
    ///
    /// A launch that fails.
    pub fn seconds_of(&mut self, parts: &[Part]) -> Result<f64, BenchError> {
        Ok((self.seconds_with(parts)? - self.seconds_with(&[])?).max(0.0))
    }

    fn seconds_with(&mut self, parts: &[Part]) -> Result<f64, BenchError> {
        let (operator, x, y) = (&self.operator, &self.x, &mut self.y);
        match &self.device {
            Some(device) => median(&**device, WARM, || Ok(operator.apply_to(parts, x, y)?)),
            None => Ok(median_seconds(|| operator.apply_to(parts, x, y))?),
        }
    }

    /// y = A x for [`input`], and the sum of A x over the cells of each of some lists of parts.
    ///
    /// # Errors
    ///
    /// A launch that fails.
    pub fn results(&mut self, lists: &[&[Part]]) -> Result<[Vec<f64>; 2], BenchError> {
        self.operator.apply(&self.x, &mut self.y)?;
        let whole = self.y.to_vec();
        let mut sum = vec![0.0; whole.len()];
        for parts in lists {
            self.operator.apply_to(parts, &self.x, &mut self.y)?;
            sum.iter_mut().zip(self.y.to_vec()).for_each(|(sum, own)| *sum += own);
        }
        self.operator.finish()?;
        Ok([whole, sum])
    }
}

/// The unknowns of a mesh, 0 on its whole surface.
pub(super) fn held(mesh: &Arc<Mesh>, elements: &Elements) -> Result<Discretisation, BenchError> {
    let mut on = Discretisation::new(Arc::clone(mesh), &elements.spaces())?;
    let surface = on.mesh.surface();
    for field in &mut on.fields {
        let nodes = field.space.nodes_on(&surface);
        nodes.into_iter().for_each(|node| field.constraints.hold(node as usize));
    }
    Ok(on)
}

/// The operator of some tasks of a form where it runs, and the plans of its kernels.
pub(super) fn made(
    form: &PointForm,
    elements: &Elements,
    on: Arc<Discretisation>,
    machine: &Machine,
    tasks: &[Task],
) -> Result<(Operator, Vec<Plan>), BenchError> {
    let facts = facts(&on);
    let own = form.params.iter().flat_map(|param| param.value.clone());
    let params: Vec<f64> = [0.0].into_iter().chain(own).collect();
    Ok(match machine {
        Machine::Processor(target) => {
            let compiled = compile(form, elements, &facts, tasks, target)?;
            let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
            let operator = Operator::on_host(on, module, kernels, target.precision, &params, true)?;
            (operator, compiled.plans)
        }
        Machine::Device(device, wishes) => {
            let (device, precision) = (Arc::clone(device), Precision::F64);
            let compiled =
                compile_for_device(form, elements, &facts, tasks, device, precision, wishes)?;
            let compiled = Arc::new(compiled);
            let operator = Operator::on_device(on, Arc::clone(&compiled), &params, true)?;
            (operator, compiled.plans.clone())
        }
    })
}
