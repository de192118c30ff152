//! Cell kernels on a GPU: tables are made here, go to the device once, and stay.

use super::tables::{self, Key};
use super::{Array as Table, BuildError};
use crate::batch::Batches;
use crate::device::cuda::{Array, Cuda, CudaError, Module};
use crate::discretisation::Discretisation;
use crate::partition::Partition;
use fem_dsl::point::PointForm;
use kernels_gen::abi::Precision;
use kernels_gen::abi::{KernelAbi, Role};
use kernels_gen::dialect::cuda::CUDA;
use kernels_gen::generate::generate_for_threads;
use kernels_gen::plan::choose::{MeshFacts, Wishes, choose_for_threads};
use kernels_gen::plan::{Elements, Plan, PlanError, Task};
use std::collections::BTreeMap;

/// Why there is no operator on a GPU.
#[derive(Debug, thiserror::Error)]
pub enum CudaBuildError {
    /// No plan is possible.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The tables.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The device.
    #[error(transparent)]
    Cuda(#[from] CudaError),
}

/// The Jacobian's action of one field on a GPU, linear in its direction.
pub struct CudaOperator {
    device: Cuda,
    module: Module,
    abi: KernelAbi,
    plan: Plan,
    batches: usize,
    tables: BTreeMap<Role, Array>,
    n: usize,
    precision: Precision,
    /// Seconds for printing, compiling and loading the kernels.
    pub compile_seconds: f64,
}

/// Cells that are numbered together; on a GPU only full groups of threads matter.
const CHUNK: usize = 1 << 16;

impl CudaOperator {
    /// Compiles the kernel and moves its tables to the device.
    pub fn new(
        device: Cuda,
        on: &Discretisation,
        form: &PointForm,
        elements: &Elements,
        params: &[f64],
        precision: Precision,
        wishes: &Wishes,
    ) -> Result<Self, CudaBuildError> {
        let facts = MeshFacts { constrained: false, ..crate::compile::facts(on) };
        let plans = choose_for_threads(form, elements, &facts, &[Task::Action], precision, wishes)?;
        let plan = plans[0].clone();
        let start = std::time::Instant::now();
        let source = generate_for_threads(form, elements, &plans[..1], &CUDA)?;
        let module = device.load(&source)?;
        let compile_seconds = start.elapsed().as_secs_f64();
        let abi = source.kernels[0].clone();
        let partition = Partition::with_chunk_cells(&on.mesh, CHUNK);
        let batches = Batches::new(&partition, abi.lanes, |_| true);
        let mut tables = BTreeMap::new();
        for argument in &abi.arguments {
            let array = match argument.role {
                Role::Params => Some(upload(&device, &Table::reals(params, precision))?),
                role => match Key::of(role, plan.geometry) {
                    Some(key) => {
                        let made = tables::make(key, argument.extent, on, &batches, precision)?;
                        made.map(|table| upload(&device, &table)).transpose()?
                    }
                    None => None,
                },
            };
            if let Some(array) = array {
                tables.insert(argument.role, array);
            }
        }
        let (n, batches) = (on.n_dofs(), batches.len());
        Ok(Self { device, module, abi, plan, batches, tables, n, precision, compile_seconds })
    }

    /// The device.
    pub fn device(&self) -> &Cuda {
        &self.device
    }

    /// The plan of the kernel.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A vector of zeros on the device.
    pub fn vector(&self) -> Result<Array, CudaError> {
        self.device.zeros(self.n, self.precision)
    }

    /// Bytes of the tables that one pass streams.
    pub fn table_bytes(&self) -> usize {
        let bytes = |array: &Array| match array {
            Array::F64(_) => 8 * array.len(),
            Array::F32(_) | Array::U32(_) => 4 * array.len(),
        };
        self.tables.values().map(bytes).sum()
    }

    /// y = J x.
    pub fn apply(&self, x: &Array, y: &mut Array) -> Result<(), CudaError> {
        self.device.clear(y)?;
        let name = &self.abi.name;
        let kernel = self.module.kernel(name).ok_or_else(|| CudaError::Launch {
            kernel: name.clone(),
            what: "it is not in its module".to_owned(),
        })?;
        let missing = |role: Role| CudaError::Launch {
            kernel: name.clone(),
            what: format!("there is nothing for {role:?}"),
        };
        let arguments: Vec<&Array> = self
            .abi
            .arguments
            .iter()
            .map(|argument| match argument.role {
                Role::Direction(_) => Ok(x),
                Role::Result(_) => Ok(&*y),
                role => self.tables.get(&role).ok_or_else(|| missing(role)),
            })
            .collect::<Result<_, _>>()?;
        self.device.launch(&kernel, 0..self.batches, &arguments)
    }
}

fn upload(device: &Cuda, table: &Table) -> Result<Array, CudaError> {
    match table {
        Table::F64(buffer) => device.upload(buffer),
        Table::F32(buffer) => device.upload_f32(buffer),
        Table::U32(buffer) => device.upload_u32(buffer),
    }
}
