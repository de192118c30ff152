//! Where a problem is solved: on the processor, or on a device with memory of its own. Both give an operator, and
//! from there on nobody asks which.

use super::{RunError, Setup};
use crate::compile::{Origin, Target, compile, compile_for_device, facts};
use crate::coupling::Coupling;
use crate::device::{Backend, Device, DeviceError};
use crate::discretisation::{AuxValues, Discretisation};
use crate::operator::{BuildError, Operator};
use crate::solve::{LinearOperator, NonlinearSystem, OperatorError};
use crate::vector::Vector;
use fem_dsl::point::PointForm;
use kernels_gen::ahead::TASKS;
use kernels_gen::plan::{Elements, Plan, Scatter, Task};
use std::ops::Range;
use std::sync::Arc;

/// The kernels that solved a problem.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// What ran them.
    pub backend: Backend,
    /// The device's name, where it has memory of its own.
    pub device: Option<String>,
    /// `compiled` or `interpreted`.
    pub word: &'static str,
    /// Where they came from.
    pub origin: Origin,
    /// Their plans.
    pub plans: Vec<Plan>,
    /// Seconds for planning, printing, compiling and loading them.
    pub seconds: f64,
}

impl Kernels {
    /// How results come to their vector; the processor colours its chunks of cells.
    pub fn scatter(&self) -> Scatter {
        let plan = self.device.as_ref().and(self.plans.first());
        plan.map_or(Scatter::Coloured, |plan| plan.scatter)
    }
}

/// R(u) − l = 0 for an operator's R and a load l, if there is one.
pub struct Place {
    operator: Operator,
    load: Option<Vector>,
}

impl NonlinearSystem for Place {
    fn size(&self) -> usize {
        NonlinearSystem::size(&self.operator)
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.operator.residual(u, r)?;
        if let Some(load) = &self.load {
            r.axpy(-1.0, load);
        }
        Ok(())
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.operator.linearise(u)
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self.operator.jacobian()
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.operator.diagonal(diagonal)
    }

    fn symmetric(&self) -> bool {
        self.operator.symmetric()
    }

    fn fields(&self) -> Vec<Range<usize>> {
        self.operator.fields()
    }

    fn coupling(&self) -> Option<Coupling> {
        self.operator.coupling()
    }
}

impl Place {
    /// Compiles a form's kernels for the processor, or for a device, and fills their tables.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, tables that cannot be filled, a device that fails.
    pub fn new(
        form: &PointForm,
        elements: &Elements,
        on: &Arc<Discretisation>,
        params: &[f64],
        target: &Target,
        device: Option<Arc<dyn Device>>,
    ) -> Result<(Self, Kernels), RunError> {
        Self::of(form, elements, on, params, &TASKS, target, device)
    }

    /// The same for a problem that is set up, with no more kernels than some tasks take.
    ///
    /// # Errors
    ///
    /// As [`Place::new`].
    pub fn with_tasks(
        form: &PointForm,
        setup: &Setup,
        tasks: &[Task],
        target: &Target,
        device: Option<Arc<dyn Device>>,
    ) -> Result<(Self, Kernels), RunError> {
        let params = &setup.parameters.values;
        Self::of(form, &setup.elements, &setup.on, params, tasks, target, device)
    }

    fn of(
        form: &PointForm,
        elements: &Elements,
        on: &Arc<Discretisation>,
        params: &[f64],
        tasks: &[Task],
        target: &Target,
        device: Option<Arc<dyn Device>>,
    ) -> Result<(Self, Kernels), RunError> {
        let symmetric = form.integrals.iter().all(|integral| integral.symmetric);
        let (facts, precision) = (facts(on), target.precision);
        let Some(device) = device else {
            let compiled = compile(form, elements, &facts, tasks, target)?;
            let (module, purposes) = (compiled.module.clone(), &compiled.kernels);
            let operator =
                Operator::on_host(on.clone(), module, purposes, precision, params, symmetric)?;
            let kernels = Kernels {
                backend: Backend::Cpu,
                device: None,
                word: compiled.word(),
                origin: compiled.origin,
                plans: compiled.plans,
                seconds: compiled.seconds,
            };
            return Ok((Self { operator, load: None }, kernels));
        };
        let (backend, name) = (device.backend(), device.name());
        let wishes = &target.wishes;
        let compiled =
            compile_for_device(form, elements, &facts, tasks, device, precision, wishes)?;
        let compiled = Arc::new(compiled);
        let operator = Operator::on_device(on.clone(), compiled.clone(), params, symmetric)?;
        let kernels = Kernels {
            backend,
            device: Some(name),
            word: "compiled",
            origin: compiled.origin,
            plans: compiled.plans.clone(),
            seconds: compiled.seconds,
        };
        Ok((Self { operator, load: None }, kernels))
    }

    /// The system of equations.
    pub fn equations(&self) -> &dyn NonlinearSystem {
        self
    }

    /// The system of equations, to be linearised.
    pub fn system(&mut self) -> &mut dyn NonlinearSystem {
        self
    }

    /// Whether it is a device with memory of its own.
    pub fn is_device(&self) -> bool {
        self.operator.arithmetic().is_some()
    }

    /// A vector of zeros.
    pub fn vector(&self) -> Vector {
        self.operator.vector()
    }

    /// Makes the equations R(u) − l = 0, with `load` having an entry for each unknown.
    pub fn set_load(&mut self, load: &[f64]) {
        let mut own = self.vector();
        own.set(load);
        self.load = Some(own);
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.operator.set_params(params)
    }

    /// Zero with the values of the essential conditions.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn initial(&self) -> Result<Vector, OperatorError> {
        let mut u = self.vector();
        self.impose(&mut u)?;
        self.finish()?;
        Ok(u)
    }

    /// Gives the constrained unknowns of a vector their values.
    ///
    /// # Errors
    ///
    /// A vector of another system, a device that fails.
    pub fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.operator.impose(u)
    }

    /// Replaces the values of the essential conditions, in the order of [`Discretisation::conditions`].
    ///
    /// # Errors
    ///
    /// Another number of values, a device that fails.
    pub fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        self.operator.set_conditions(values)
    }

    /// Replaces the auxiliary data by others of the same kinds and lengths.
    ///
    /// # Errors
    ///
    /// Data of another kind or length, a device that fails.
    pub fn set_aux(&mut self, values: &[AuxValues]) -> Result<(), BuildError> {
        self.operator.set_aux(values)
    }

    /// Whether a vector belongs here.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn fits(&self, vector: &Vector) -> Result<(), OperatorError> {
        self.operator.fits(vector)
    }

    /// Waits for all work, and says what went wrong with it.
    ///
    /// # Errors
    ///
    /// What went wrong.
    pub fn finish(&self) -> Result<(), DeviceError> {
        self.operator.finish()
    }
}
