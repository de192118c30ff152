//! One operator on any mesh: [`Product`] times y = A x for a case, a degree and a [`Mesh`], whole or restricted to
//! parts, matrix-free or in another [`Representation`].
//!
//! Boundary values are 0; hanging nodes are interpolated.

use super::device::median;
use super::{BenchError, Case, form_of, input, median_seconds};
use fem_dsl::point::PointForm;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::cost::count;
use kernels_gen::element::Rule;
use kernels_gen::plan::{Elements, Plan, Task};
use kernels_gen::strategy::lower;
use runtime::algebra::vector::{Precision, Vector};
use runtime::device::Device;
use runtime::kernels::compile::{Target, compile, compile_for_device, facts};
use runtime::kernels::representation::Representation;
use runtime::mesh::Mesh;
use runtime::operator::{CellSubset, ClassSizes, Operator};
use runtime::solve::{LinearOperator, NonlinearSystem};
use runtime::space::discretisation::Discretisation;
use std::sync::Arc;
use std::time::Instant;

/// Execution target.
#[derive(Clone, Debug)]
pub enum Machine {
    /// The host.
    Processor(Target),
    /// A device with its own memory, and kernel wishes.
    Device(Arc<dyn Device>, PlanOverrides),
}

/// An operator with an input vector.
pub struct Product {
    operator: Operator,
    device: Option<Arc<dyn Device>>,
    plans: Vec<Plan>,
    how: Representation,
    set_up: f64,
    flops: Option<f64>,
    state: Vector,
    x: Vector,
    y: Vector,
}

/// Bytes of a matrix index.
const INDEX: usize = 4;

/// Number of warm-up calls.
const WARM: usize = 3;

impl Product {
    /// Compiles a case in double precision, matrix-free, for all of a mesh.
    ///
    /// # Errors
    ///
    /// No plan, insufficient memory, a compiler or device failure.
    pub fn new(
        case: &Case,
        degree: usize,
        mesh: &Arc<Mesh>,
        machine: &Machine,
    ) -> Result<Self, BenchError> {
        let mut product = Self::of(case, degree, mesh, Representation::MatrixFree, machine)?;
        product.linearise()?;
        Ok(product)
    }

    /// Compiles a case in any representation, without a state: a product requires [`linearise`](Self::linearise) first.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of(
        case: &Case,
        degree: usize,
        mesh: &Arc<Mesh>,
        how: Representation,
        machine: &Machine,
    ) -> Result<Self, BenchError> {
        Self::of_tasks(case, degree, mesh, (how, how.tasks()), machine)
    }

    /// Compiles some tasks of a case in any representation.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub(crate) fn of_tasks(
        case: &Case,
        degree: usize,
        mesh: &Arc<Mesh>,
        (how, tasks): (Representation, &[Task]),
        machine: &Machine,
    ) -> Result<Self, BenchError> {
        let form = form_of(case.name, case.form, mesh.dim())?;
        let rule = Rule::Tensor { cell: mesh.cell(), line: (case.rule)(degree) };
        let elements = Elements::new(&form, mesh.cell(), degree, rule)?;
        let mut on = held(mesh, &elements)?;
        on.find_regions(&form)?;
        let on = Arc::new(on);
        let (mut operator, plans) = made(&form, &elements, on, (how, tasks), machine)?;
        operator.finish()?;
        let start = Instant::now();
        operator.represent(how)?;
        operator.finish()?;
        let set_up = start.elapsed().as_secs_f64();
        let flops = flops(&form, &elements, &plans, mesh)?;
        let state = operator.vector();
        let (mut x, y) = (operator.vector(), operator.vector());
        // As in a solve, a direction is 0 in constrained degrees of freedom.
        let on = operator.discretisation();
        let mut entries = input(on.n_dofs());
        on.conditions().for_each(|(dof, _)| entries[dof] = 0.0);
        x.set(&entries);
        operator.finish()?;
        let device = match machine {
            Machine::Processor(_) => None,
            Machine::Device(device, _) => Some(Arc::clone(device)),
        };
        Ok(Self { operator, device, plans, how, set_up, flops, state, x, y })
    }

    /// Sets the state from a function at each node, equal for all components of each field.
    ///
    /// # Errors
    ///
    /// No element of the mesh's order.
    pub fn set_state(
        &mut self,
        values: impl Fn(&[f64; 3]) -> f64 + Sync,
    ) -> Result<(), BenchError> {
        self.set_components(|point, own| own.fill(values(point)))
    }

    /// Sets the state from a function that writes the components of a field at a node.
    ///
    /// # Errors
    ///
    /// As for [`set_state`](Self::set_state).
    pub(crate) fn set_components(
        &mut self,
        values: impl Fn(&[f64; 3], &mut [f64]) + Sync,
    ) -> Result<(), BenchError> {
        let on = self.operator.discretisation();
        let mut all = Vec::with_capacity(on.n_dofs());
        for field in &on.fields {
            let points = field.space.points(&on.mesh, &on.partition)?;
            all.extend(field.space.interpolate(&points, &values));
        }
        self.state.set(&all);
        Ok(())
    }

    /// Linearises at the state: computes stored data, including the matrix.
    ///
    /// # Errors
    ///
    /// Insufficient memory, a failed launch.
    pub fn linearise(&mut self) -> Result<(), BenchError> {
        self.operator.linearise(&self.state)?;
        Ok(self.operator.finish()?)
    }

    /// Returns the median seconds of a linearisation.
    ///
    /// # Errors
    ///
    /// As for [`linearise`](Self::linearise).
    pub fn linearise_seconds(&mut self) -> Result<f64, BenchError> {
        let (operator, state) = (&mut self.operator, &self.state);
        match &self.device {
            Some(device) => median(&**device, WARM, || Ok(operator.linearise(state)?)),
            None => Ok(median_seconds(|| operator.linearise(state))?),
        }
    }

    /// Returns the seconds of the matrix's symbolic phase, once.
    pub fn set_up_seconds(&self) -> f64 {
        self.set_up
    }

    /// Returns the bytes stored for a product in addition to its vectors: tables of the kernels, or the matrix.
    ///
    /// ```text
    /// (8 + 4) entries + 4 (rows + 1)
    /// ```
    pub fn bytes(&self) -> usize {
        match self.how {
            Representation::MatrixFree => self.operator.table_bytes(Task::Action),
            Representation::Recomputed => self.operator.table_bytes(Task::MatrixProduct),
            Representation::Stored => 8 * self.operator.matrix_size().elements,
            Representation::Assembled(_) => {
                let rows = self.operator.discretisation().n_dofs();
                (8 + INDEX) * self.entries() + INDEX * (rows + 1)
            }
        }
    }

    /// Returns the number of entries of the sparse matrix.
    pub fn entries(&self) -> usize {
        self.operator.matrix_size().entries
    }

    /// Returns the floating-point operations of a matrix-free product, counted in its kernels; `None` with hanging
    /// nodes.
    pub fn flops(&self) -> Option<f64> {
        self.flops
    }

    /// Returns its discretisation.
    pub fn discretisation(&self) -> &Discretisation {
        self.operator.discretisation()
    }

    /// Returns the plan of the action on cells of the whole mesh, or on those without hanging nodes.
    pub fn plan(&self, hanging: bool) -> Option<&Plan> {
        let plans = || self.plans.iter().filter(|plan| plan.task == Task::Action);
        plans().find(|plan| plan.hanging == hanging)
    }

    /// Returns the batches of the action's cells.
    pub fn shares(&self) -> Vec<ClassSizes> {
        self.operator.shares(Task::Action)
    }

    /// Returns the mean seconds of consecutive products.
    ///
    /// # Errors
    ///
    /// A failed launch.
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

    /// Returns the median seconds of the kernels for the cells of some parts, without the work outside kernels.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn seconds_of(&mut self, parts: &[CellSubset]) -> Result<f64, BenchError> {
        Ok((self.seconds_with(parts)? - self.seconds_with(&[])?).max(0.0))
    }

    fn seconds_with(&mut self, parts: &[CellSubset]) -> Result<f64, BenchError> {
        let (operator, x, y) = (&self.operator, &self.x, &mut self.y);
        match &self.device {
            Some(device) => median(&**device, WARM, || Ok(operator.apply_to(parts, x, y)?)),
            None => Ok(median_seconds(|| operator.apply_to(parts, x, y))?),
        }
    }

    /// Returns the median seconds of a product.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn seconds(&mut self) -> Result<f64, BenchError> {
        let (operator, x, y) = (&self.operator, &self.x, &mut self.y);
        match &self.device {
            Some(device) => median(&**device, WARM, || Ok(operator.apply(x, y)?)),
            None => Ok(median_seconds(|| operator.apply(x, y))?),
        }
    }

    /// Returns the median seconds of the residual at the state.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub(crate) fn residual_seconds(&mut self) -> Result<f64, BenchError> {
        let (operator, state, y) = (&self.operator, &self.state, &mut self.y);
        match &self.device {
            Some(device) => median(&**device, WARM, || Ok(operator.residual(state, y)?)),
            None => Ok(median_seconds(|| operator.residual(state, y))?),
        }
    }

    /// Returns the residual at the state.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub(crate) fn residual(&mut self) -> Result<Vec<f64>, BenchError> {
        self.operator.residual(&self.state, &mut self.y)?;
        let y = self.y.to_vec();
        self.operator.finish()?;
        Ok(y)
    }

    /// Returns the bytes of the tables of a task's kernels.
    pub(crate) fn table_bytes(&self, task: Task) -> usize {
        self.operator.table_bytes(task)
    }

    /// Returns y = A x for [`input`].
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn result(&mut self) -> Result<Vec<f64>, BenchError> {
        self.operator.apply(&self.x, &mut self.y)?;
        let y = self.y.to_vec();
        self.operator.finish()?;
        Ok(y)
    }

    /// Returns y = A x for [`input`], and the sum of A x restricted to each of some lists of parts.
    ///
    /// # Errors
    ///
    /// A failed launch.
    pub fn results(&mut self, lists: &[&[CellSubset]]) -> Result<[Vec<f64>; 2], BenchError> {
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

/// Returns the discretisation of a mesh with zero boundary values.
pub(super) fn held(mesh: &Arc<Mesh>, elements: &Elements) -> Result<Discretisation, BenchError> {
    let mut on = Discretisation::new(Arc::clone(mesh), &elements.spaces())?;
    let surface = on.mesh.surface();
    for field in &mut on.fields {
        let nodes = field.space.nodes_on(&surface);
        nodes.into_iter().for_each(|node| field.constraints.hold(node as usize));
    }
    Ok(on)
}

/// Returns the operations of all cells, counted without conditions; `None` with hanging nodes.
fn flops(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    mesh: &Mesh,
) -> Result<Option<f64>, BenchError> {
    let plan = plans.iter().find(|plan| plan.task == Task::Action);
    let Some(plan) = plan.filter(|_| mesh.hanging().is_none()) else { return Ok(None) };
    let (kernel, abi) = lower(form, elements, plan)?;
    Ok(Some(count(&kernel, &abi, elements).flops() * mesh.n_cells() as f64))
}

/// Builds the operator of some tasks of a form on its target, and returns the plans of its kernels.
pub(super) fn made(
    form: &PointForm,
    elements: &Elements,
    on: Arc<Discretisation>,
    (how, tasks): (Representation, &[Task]),
    machine: &Machine,
) -> Result<(Operator, Vec<Plan>), BenchError> {
    let facts = facts(&on);
    let own = form.params.iter().flat_map(|param| param.value.clone());
    let params: Vec<f64> = [0.0].into_iter().chain(own).collect();
    let matrix = Some(how.scatter());
    Ok(match machine {
        Machine::Processor(target) => {
            let target = Target { wishes: PlanOverrides { matrix, ..target.wishes }, ..*target };
            let compiled = compile(form, elements, &facts, tasks, &target)?;
            let (module, kernels) = (compiled.module.clone(), &compiled.kernels);
            let operator = Operator::on_host(on, module, kernels, target.precision, &params, true)?;
            (operator, compiled.plans)
        }
        Machine::Device(device, wishes) => {
            let (device, precision) = (Arc::clone(device), Precision::F64);
            let wishes = PlanOverrides { matrix, ..*wishes };
            let compiled =
                compile_for_device(form, elements, &facts, tasks, device, precision, &wishes)?;
            let compiled = Arc::new(compiled);
            let operator = Operator::on_device(on, Arc::clone(&compiled), &params, true)?;
            (operator, compiled.plans.clone())
        }
    })
}
