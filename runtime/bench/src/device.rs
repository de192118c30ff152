//! Bake-off problems on a device, timed by the device clock; with several processes, each with a device, by the host
//! clock from a common start to the last end.

use super::{
    BenchError, BenchRow, Case, UncompiledCase, alone, describe, input, input_of, scaling, set_up,
};
use kernels_gen::choose::PlanOverrides;
use kernels_gen::cost::Machine as Cores;
use kernels_gen::plan::{Plan, Task};
use runtime::algebra::vector::{Precision, Vector};
use runtime::device::{Device, DeviceError, ElementKind};
use runtime::kernels::compile::{DeviceKernels, Origin, compile_for_device, facts};
use runtime::kernels::rates::Rates;
use runtime::operator::Operator;
use runtime::operator::assemble::Csr;
use runtime::processes::ProcessGroup;
use runtime::solve::{LinearOperator, NonlinearSystem};
use std::sync::Arc;

/// A case on a device.
pub struct DeviceCase {
    operator: Operator,
    compiled: Arc<DeviceKernels>,
    x: Vector,
    y: Vector,
    row: BenchRow,
}

/// Sets up a case with at least `dofs` degrees of freedom.
pub fn prepare(
    device: &Arc<dyn Device>,
    case: &Case,
    degree: usize,
    dofs: usize,
    precision: Precision,
    wishes: &PlanOverrides,
) -> Result<DeviceCase, BenchError> {
    prepare_part(device, case, degree, dofs, (precision, wishes), &alone())
}

/// Sets up this process's subdomain of a case with at least `dofs` degrees of freedom. Collective.
pub fn prepare_part(
    device: &Arc<dyn Device>,
    case: &Case,
    degree: usize,
    dofs: usize,
    (precision, wishes): (Precision, &PlanOverrides),
    group: &Arc<dyn ProcessGroup>,
) -> Result<DeviceCase, BenchError> {
    let UncompiledCase { form, elements, on, params } = set_up(case, degree, dofs, group)?;
    let (facts, tasks) = (facts(&on), [Task::Action]);
    let device = Arc::clone(device);
    let compiled = compile_for_device(&form, &elements, &facts, &tasks, device, precision, wishes)?;
    let compiled = Arc::new(compiled);
    let mut operator = Operator::on_device(on.clone(), compiled.clone(), &params, true)?;
    let state = operator.vector();
    operator.linearise(&state)?;
    let bytes = operator.table_bytes(Task::Action);
    let row = describe(case, &form, &elements, &compiled.plans, &on, bytes)?;
    let (x, y) = (input_of(&operator), operator.vector());
    operator.finish()?;
    Ok(DeviceCase { operator, compiled, x, y, row })
}

impl DeviceCase {
    /// Returns y = A x for [`input`], on the host.
    pub fn result(&mut self) -> Result<Vec<f64>, BenchError> {
        self.operator.apply(&self.x, &mut self.y)?;
        let y = self.y.to_vec();
        self.operator.finish()?;
        Ok(y)
    }

    /// Returns the number of degrees of freedom.
    pub fn dofs(&self) -> usize {
        self.row.dofs
    }

    /// Returns the plan of the action.
    pub fn plan(&self) -> &Plan {
        &self.compiled.plans[0]
    }

    /// Returns the seconds of planning, printing, compiling and loading the kernels.
    pub fn compile_seconds(&self) -> f64 {
        self.compiled.seconds
    }

    /// Returns whether the kernels came from the compilation cache.
    pub fn compiled_before(&self) -> bool {
        self.compiled.origin == Origin::Cache
    }

    /// Returns the number of kernels.
    pub fn n_kernels(&self) -> usize {
        self.compiled.plans.len()
    }

    /// Measures the median time, including the clearing of y.
    pub fn measure(&mut self, rates: &Rates) -> Result<BenchRow, BenchError> {
        let (operator, x, y) = (&self.operator, &self.x, &mut self.y);
        let seconds = match self.row.processes {
            1 => median(&*self.compiled.device, 3, || Ok(operator.apply(x, y)?))?,
            _ => scaling::median(operator, x, &mut || operator.apply(x, y))?,
        };
        Ok(self.row.clone().timed(seconds, rates, &Cores::H200, 1.0))
    }
}

/// Returns the median time of the product with an assembled matrix by the vendor's library, if there is one.
pub fn csr_seconds(device: &dyn Device, matrix: &Csr) -> Result<Option<f64>, BenchError> {
    let Some(sparse) = device.sparse(&matrix.starts, &matrix.columns, &matrix.values)? else {
        return Ok(None);
    };
    let n = matrix.starts.len() - 1;
    let (x, mut y) = (device.upload(&input(n))?, device.zeros(ElementKind::F64, n)?);
    Ok(Some(median(device, 3, || Ok(sparse.apply(&x, &mut y)?))?))
}

/// Returns the median time of some work by the device clock, after `warm` calls.
pub(super) fn median(
    device: &dyn Device,
    warm: usize,
    work: impl FnMut() -> Result<(), BenchError>,
) -> Result<f64, BenchError> {
    runtime::kernels::rates::device::median(device, warm, work)
}

impl From<DeviceError> for BenchError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error.to_string())
    }
}
