//! Matrix-free and assembled operators: kernels with their tables, run over the cells of a mesh.
//!
//! A [`Discretisation`] and kernels give an [`Operator`], which is a [`NonlinearSystem`] and, at its last
//! linearisation, a [`LinearOperator`]. Target-independent code is here and in [`blocks`]; an [`Engine`] runs kernels
//! over batches: the host ([`host`]), or a device with its own memory ([`device`]).

pub mod assemble;
pub mod batch;
mod blocks;
mod combinations;
mod compatibility;
mod constants;
mod constrained_matrix;
mod constraints;
mod device;
mod element;
mod engine;
mod fluxes;
pub mod functional;
pub mod geometry;
mod host;
mod matrix;
mod memory;
mod numbers;
mod parts;
pub mod point_loads;
mod preparation;
mod random;
mod table_cache;
mod tables;
#[cfg(test)]
mod tests;
mod transfer;

use crate::algebra::coupling::Coupling;
use crate::algebra::sparse::Csc;
use crate::algebra::vector::{ComplexPairs, Precision, Vector};
use crate::device::cpu::{LaunchError, Module, UnorderedChunks};
use crate::device::{Arithmetic, DeviceError, LayoutOverflow};
use crate::kernels::compile::DeviceKernels;
use crate::kernels::representation::Assembly;
use crate::operator::batch::SlotsError;
use crate::operator::geometry::GeometryError;
use crate::processes::interface_exchange::InterfaceExchange;
use crate::solve::{
    Approximation, FieldDofs, LinearOperator, LocalDofs, NonlinearSystem, NullSpace, OperatorError,
};
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::memory::InsufficientMemory;
use blocks::{KernelBlocks, PassInputs};
use combinations::{CombinedConditions, UnconstrainedOperator, VectorKind};
use constants::Constants;
use constraints::{ConstrainedRows, PassResult};
use engine::Engine;
use kernels_gen::abi::KernelAbi;
use kernels_gen::plan::Task;
use matrix::JacobianStorage;
use std::sync::{Arc, OnceLock};

pub use crate::kernels::purpose::{CellClass, CellKernel, CellSubset};
pub use fluxes::FluxSelection;
pub use matrix::MatrixSize;
pub(crate) use numbers::{CellIntegrals, NumberEquations};
pub use parts::ClassSizes;
pub use table_cache::TableCache;

/// Error of building an operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The module lacks a kernel.
    #[error(transparent)]
    Kernel(#[from] LaunchError),
    /// A mesh without the geometry data that a kernel reads.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A kernel that reads a field outside the discretisation.
    #[error("a kernel reads field {field}, which the discretisation does not have")]
    Field {
        /// The field.
        field: usize,
    },
    /// Auxiliary data that is missing or of another kind.
    #[error("auxiliary data {aux} should be given as {expected}")]
    Aux {
        /// Index of the data.
        aux: usize,
        /// Kind that the kernel reads.
        expected: &'static str,
    },
    /// Auxiliary data of the wrong length.
    #[error("auxiliary data {aux} should have {expected} numbers, not {found}")]
    AuxLength {
        /// Index of the data.
        aux: usize,
        /// Length that the kernels read.
        expected: usize,
        /// Actual length.
        found: usize,
    },
    /// A kernel that reads runs, on a mesh with inconsistent entity orientations between cells.
    #[error("the kernels take runs of unknowns, but the mesh's cells do not agree on orientations")]
    NoRuns,
    /// A kernel that reads slots which its ABI does not describe.
    #[error("a kernel reads slots of field {field}, but there are none for it")]
    NoSlots {
        /// The field.
        field: usize,
    },
    /// A transfer kernel without the indices of the finer space.
    #[error(
        "a kernel moves numbers to a finer space, but the discretisation does not say where that has its unknowns"
    )]
    NoTargets,
    /// A batch with too few slots for a cell.
    #[error(transparent)]
    Slots(#[from] SlotsError),
    /// More stored numbers than 32-bit indices can address.
    #[error(
        "the cells would store {numbers} numbers for the owners of unknowns, more than the {} that 32-bit \
         indices can number; let cells add atomically, or coloured",
        u32::MAX
    )]
    TooManyNumbers {
        /// Number of stored numbers.
        numbers: usize,
    },
    /// More degrees of freedom than one vector can hold.
    #[error(transparent)]
    Places(#[from] LayoutOverflow),
    /// A kernel of another precision.
    #[error("the kernel `{kernel}` computes in another precision than the operator's {precision}")]
    Precision {
        /// The kernel.
        kernel: String,
        /// The operator's precision.
        precision: &'static str,
    },
    /// A kernel that reads stored geometry which no kernel of its class computes.
    #[error("no kernel computes the stored geometry that `{kernel}` reads")]
    NoMetric {
        /// Kernel that reads it.
        kernel: String,
    },
    /// A potential write conflict between threads.
    #[error(transparent)]
    Unordered(#[from] UnorderedChunks),
    /// A representation of the Jacobian without kernels.
    #[error(
        "the operator has no kernels for `{task}`: compile it for the tasks of the representation that is asked for"
    )]
    NoKernels {
        /// The task.
        task: &'static str,
    },
    /// Element-matrix kernels compiled for another assembly algorithm.
    #[error(
        "the kernels of element matrices were not chosen for the assembly `{assembly}`: wish for its scatter when they are"
    )]
    OtherAssembly {
        /// Requested algorithm.
        assembly: Assembly,
    },
    /// A matrix that is too large.
    #[error(
        "the matrix has {entries} entries, more than the {} that 32-bit indices can number; apply the operator \
         matrix-free, or element by element",
        u32::MAX - 1
    )]
    TooManyEntries {
        /// Number of entries.
        entries: usize,
    },
    /// Memory demand beyond the memory budget.
    #[error(transparent)]
    Memory(#[from] InsufficientMemory),
    /// Stored data that could not be computed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device failure.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Length of an affine constraint up to which the matrix can be assembled.
const WIDEST: usize = 10_000;

/// R(u) − l = 0: R is the sum of a form's integrals, l an optional load.
pub struct Operator {
    /// Approximation of J⁻¹, if there is one.
    approximation: Option<Box<dyn Approximation>>,
    blocks: KernelBlocks,
    engine: Box<dyn Engine>,
    /// Host kernels.
    module: Option<Arc<Module>>,
    symmetric: bool,
    /// Hash of the DoF numbering, computed on demand.
    numbering: OnceLock<u64>,
    /// Number of leading fields that form a complete state, if kernels read no others.
    first: Option<usize>,
    /// The state of the last linearisation.
    state: Option<Vector>,
    /// Load, subtracted from R(u).
    load: Option<Vector>,
    /// Sources at points, whose load is subtracted, too.
    points: Option<point_loads::LoadedPoints>,
    /// Data of conditions on combinations of degrees of freedom.
    combined: Option<CombinedConditions>,
    /// Constants up to which fields are free.
    constants: Option<Constants>,
    /// Representation of the Jacobian; `None` if it is matrix-free.
    represented: Option<JacobianStorage>,
    /// Interface degrees of freedom, with several processes.
    sharing: Option<Arc<InterfaceExchange>>,
    /// Cell-local degrees of freedom to eliminate before a linear solve.
    local: Option<Arc<LocalDofs>>,
    /// Real and imaginary parts, if J is complex-linear.
    complex: Option<ComplexPairs>,
    /// Unknown numbers, if any.
    numbers: Option<Box<NumberEquations>>,
}

impl Operator {
    /// Builds an operator of a module's kernels on the host. `params` are the time and the components of the
    /// parameters; `symmetric` states that the Jacobian is symmetric.
    ///
    /// # Errors
    ///
    /// Tables that cannot be built, kernels with write conflicts.
    pub fn on_host(
        on: Arc<Discretisation>,
        module: Arc<Module>,
        kernels: &[CellKernel],
        precision: Precision,
        params: &[f64],
        symmetric: bool,
    ) -> Result<Self, BuildError> {
        let table_cache = TableCache::default();
        Self::on_host_with(on, module, kernels, precision, params, symmetric, table_cache)
    }

    /// Builds a host operator with shared tables of other operators on the same mesh.
    pub(crate) fn on_host_with(
        on: Arc<Discretisation>,
        module: Arc<Module>,
        kernels: &[CellKernel],
        precision: Precision,
        params: &[f64],
        symmetric: bool,
        table_cache: TableCache,
    ) -> Result<Self, BuildError> {
        let table_cache = table_cache.suiting(&on.mesh, precision, None);
        let engine = Box::new(host::HostEngine::new(&on, Arc::clone(&module), precision)?);
        let abi = |kernel: &CellKernel| Ok((kernel.clone(), module.abi(&kernel.name)?.clone()));
        let kernels = kernels.iter().map(abi).collect::<Result<_, LaunchError>>()?;
        let own = Self::new(engine, on, kernels, precision, params, symmetric, table_cache)?;
        Ok(Self { module: Some(module), ..own })
    }

    /// Builds an operator of a device's kernels; copies its tables to the device.
    ///
    /// # Errors
    ///
    /// Tables that cannot be built, a device failure.
    pub fn on_device(
        on: Arc<Discretisation>,
        compiled: Arc<DeviceKernels>,
        params: &[f64],
        symmetric: bool,
    ) -> Result<Self, BuildError> {
        Self::on_device_with(on, compiled, params, symmetric, TableCache::default())
    }

    /// Builds a device operator with shared tables of other operators on the same mesh.
    pub(crate) fn on_device_with(
        on: Arc<Discretisation>,
        compiled: Arc<DeviceKernels>,
        params: &[f64],
        symmetric: bool,
        table_cache: TableCache,
    ) -> Result<Self, BuildError> {
        let mut table_cache =
            table_cache.suiting(&on.mesh, compiled.precision, Some(&compiled.device));
        let kernels = compiled.kernels();
        let kernels = kernels.map(|(kernel, loaded)| (kernel.clone(), loaded.abi().clone()));
        let (kernels, precision) = (kernels.collect(), compiled.precision);
        let engine = Box::new(device::DeviceEngine::new(&on, compiled, &mut table_cache)?);
        Self::new(engine, on, kernels, precision, params, symmetric, table_cache)
    }

    fn new(
        mut engine: Box<dyn Engine>,
        on: Arc<Discretisation>,
        kernels: Vec<(CellKernel, KernelAbi)>,
        precision: Precision,
        params: &[f64],
        symmetric: bool,
        table_cache: TableCache,
    ) -> Result<Self, BuildError> {
        let blocks = KernelBlocks::new(&*engine, on, kernels, precision, params, table_cache)?;
        engine.prepare(&blocks)?;
        let (numbering, first, sharing) = (OnceLock::new(), None, blocks.on.sharing());
        let (state, load, combined, represented) = (None, None, None, None);
        let mut own = Self {
            approximation: None,
            blocks,
            engine,
            module: None,
            symmetric,
            numbering,
            first,
            state,
            load,
            points: None,
            combined,
            constants: None,
            represented,
            sharing,
            local: None,
            complex: None,
            numbers: None,
        };
        let affine = Arc::clone(&own.blocks.on.affine);
        own.engine.constraints_mut().set_affine(&affine)?;
        own.combined = own.combine();
        own.constants = own.find_constants();
        Ok(own)
    }

    /// Returns the discretisation.
    pub fn discretisation(&self) -> &Discretisation {
        &self.blocks.on
    }

    /// Returns the precision of its vectors.
    pub fn precision(&self) -> Precision {
        self.blocks.precision
    }

    /// Returns the vector arithmetic of its device; `None` on the host.
    pub fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        self.engine.memory().arithmetic()
    }

    /// Returns whether its vectors live on a device with its own memory.
    pub fn is_on_device(&self) -> bool {
        self.arithmetic().is_some()
    }

    /// Returns the tables that operators on the same mesh can share.
    pub fn table_cache(&self) -> TableCache {
        self.blocks.table_cache.clone()
    }

    /// Returns the number of tables built for this operator, without shared ones.
    pub fn tables_made(&self) -> usize {
        self.blocks.made
    }

    /// Returns a zero vector of this operator's length, precision and location.
    pub fn vector(&self) -> Vector {
        self.zeros().numbered(self.numbering())
    }

    /// Returns a zero vector without the numbering hash, which visits the whole mesh.
    pub(crate) fn zeros(&self) -> Vector {
        let zeros = match self.arithmetic() {
            Some(arithmetic) => Vector::on_device(self.n(), arithmetic),
            None => Vector::zeros(self.n(), self.precision()),
        };
        match &self.sharing {
            Some(sharing) => zeros.shared(Arc::clone(sharing)),
            None => zeros,
        }
    }

    fn numbering(&self) -> u64 {
        *self.numbering.get_or_init(|| self.blocks.on.numbering())
    }

    /// Accepts other operators' vectors of the leading fields as states: kernels read no other fields.
    pub(crate) fn of_first(self, fields: usize) -> Self {
        Self { first: Some(fields), ..self }
    }

    /// Returns whether a vector of another operator, of the leading fields only, can be used as a state. The caller
    /// guarantees the same mesh and spaces.
    pub(crate) fn reads(&self, state: &Vector) -> bool {
        let Some(first) = self.first else { return false };
        let other = state.array().map(|(arithmetic, _)| arithmetic);
        let alike = match (other, self.arithmetic()) {
            (Some(other), Some(own)) => {
                Arc::ptr_eq(other.device(), own.device()) && own.layout().begins_as(other.layout())
            }
            (other, own) => other.is_none() && own.is_none(),
        };
        let fields = self.blocks.on.fields.iter().take(first);
        let len: usize = fields.map(|field| field.space.n_dofs()).sum();
        alike && state.precision() == self.precision() && state.len() == len
    }

    /// Sets the time and the parameters; unknown numbers keep their values.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        let with_numbers = match &mut self.numbers {
            Some(numbers) => Some(numbers.with_params(params)?),
            None => None,
        };
        let params = with_numbers.as_deref().unwrap_or(params);
        if let Some(approximation) = &mut self.approximation {
            approximation.set_params(params)?;
        }
        self.points.iter_mut().for_each(|points| points.set_params(params));
        self.engine.memory().overwrite(&mut self.blocks.params, params)
    }

    /// Sets the real and imaginary parts of a complex-linear J.
    pub(crate) fn set_complex_pairs(&mut self, pairs: Option<ComplexPairs>) {
        self.complex = pairs;
    }

    /// Eliminates cell-local degrees of freedom before linear solves.
    pub(crate) fn eliminate(&mut self, local: Option<Arc<LocalDofs>>) {
        self.local = local;
    }

    /// Sets or removes the approximation of J⁻¹, used from the next linearisation.
    pub fn precondition_by(&mut self, approximation: Option<Box<dyn Approximation>>) {
        self.approximation = approximation;
    }

    /// Takes the approximation of J⁻¹ away, so that a change of parameters does not affect it.
    pub(crate) fn take_approximation(&mut self) -> Option<Box<dyn Approximation>> {
        self.approximation.take()
    }

    /// Returns the approximation of J⁻¹.
    pub fn approximation(&self) -> Option<&dyn Approximation> {
        self.approximation.as_deref()
    }

    /// Sets the values of the essential conditions, in the order of [`crate::problem::values`].
    ///
    /// # Errors
    ///
    /// A device failure; a wrong number of values.
    pub fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        if let Some(border) = self.numbers.as_mut().and_then(|own| own.border.as_mut()) {
            border.set_conditions(values)?;
        }
        self.engine.constraints_mut().set_values(values)
    }

    /// Returns 0 with the values of the essential conditions.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub fn initial(&self) -> Result<Vector, OperatorError> {
        let mut u = self.vector();
        self.impose(&mut u)?;
        self.finish()?;
        Ok(u)
    }

    /// Sets the constrained degrees of freedom of a vector.
    ///
    /// # Errors
    ///
    /// A device failure, a vector of another device.
    pub fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        self.engine.constraints().impose(u)?;
        self.engine.constraints().distribute(u)?;
        // Values computed on different processes may differ by rounding.
        u.synchronise();
        Ok(())
    }

    /// Replaces the auxiliary data by data of the same kinds and lengths.
    ///
    /// # Errors
    ///
    /// Data of another kind or length, a device failure.
    pub fn set_aux(&mut self, values: &[AuxValues]) -> Result<(), BuildError> {
        // The levels have their own data.
        self.approximation = None;
        if let Some(numbers) = &mut self.numbers {
            numbers.operators().try_for_each(|own| own.set_aux(values))?;
        }
        self.blocks.set_aux(self.engine.memory(), values)
    }

    /// Waits for all pending work.
    ///
    /// # Errors
    ///
    /// The failure of this or earlier work.
    pub fn finish(&self) -> Result<(), DeviceError> {
        self.arithmetic().map_or(Ok(()), |arithmetic| {
            arithmetic.check()?;
            arithmetic.device().synchronise()
        })
    }

    /// Returns the bytes that one pass of a task streams in addition to vectors: tables and stored numbers.
    pub fn table_bytes(&self, task: Task) -> usize {
        self.blocks.bytes(&*self.engine, task)
    }

    /// Returns whether there are kernels for a task.
    pub fn has(&self, task: Task) -> bool {
        self.blocks.pass(task, PassInputs::default()).runs().next().is_some()
    }

    /// Computes y as the sum of a task's kernels over all cells, with the given rows of constrained degrees of freedom.
    fn pass(
        &self,
        task: Task,
        inputs: PassInputs<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let state = inputs.state.filter(|state| !self.reads(state));
        for vector in [Some(&*y), state, inputs.direction].into_iter().flatten() {
            self.fits(vector)?;
        }
        let pass = self.blocks.pass(task, inputs);
        match pass.missing() {
            0 => self.engine.sum(pass, rows, y),
            missing => {
                let word = task.word();
                Err(OperatorError::new(format!("no {word} kernel for {missing} of the cells")))
            }
        }
    }

    fn n(&self) -> usize {
        self.blocks.on.n_dofs()
    }

    fn linearised(&self) -> PassInputs<'_> {
        PassInputs { state: self.state.as_ref(), ..PassInputs::default() }
    }
}

fn refused(error: LaunchError) -> OperatorError {
    OperatorError::new(error.to_string())
}

impl From<DeviceError> for OperatorError {
    fn from(error: DeviceError) -> Self {
        Self::new(error.to_string())
    }
}

impl LinearOperator for Operator {
    fn size(&self) -> usize {
        self.n()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        match self.has_inexact_constants() {
            true => self.apply_balanced(x, y),
            false => self.apply_sparse(x, y),
        }
    }

    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let Some(combined) = &self.combined else {
            return UnconstrainedOperator(self).apply(x, y);
        };
        let direction = self.constrained_copy(combined, x, VectorKind::Direction)?;
        self.act(&direction, ConstrainedRows::Identity(x), y)?;
        let action = PassResult::Action { x, diagonal: combined.diagonal.as_ref() };
        Ok(self.engine.constraints().condense(action, y)?)
    }

    fn complex_pairs(&self) -> Option<&ComplexPairs> {
        self.complex.as_ref()
    }

    fn replayable(&self) -> bool {
        let on_devices =
            |on: &Arc<Arithmetic>| self.sharing.is_none() || on.device().group().is_some();
        self.arithmetic().is_some_and(on_devices) && !self.has_inexact_constants()
    }

    fn matrix(&self) -> Result<Option<Csc>, OperatorError> {
        // A subdomain matrix is not that of the system.
        let whole = self.sharing.is_none().then(|| self.assembled()).transpose()?.flatten();
        Ok(whole.map(|matrix| matrix.by_columns()))
    }
}

impl NonlinearSystem for Operator {
    fn size(&self) -> usize {
        self.n()
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.raw_residual(u, r)?;
        self.balance(r)
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        match &mut self.state {
            Some(state) => state.copy_from(u),
            None => self.state = Some(u.clone()),
        }
        if let Some(state) = &mut self.state {
            self.engine.constraints().distribute(state)?;
            self.blocks.linearise(&*self.engine, state)?;
        }
        self.assemble()?;
        let Some(mut combined) = self.combined.take() else { return Ok(()) };
        let mut diagonal = combined.diagonal.take();
        let made = diagonal.iter_mut().try_for_each(|own| self.condensed_diagonal(&combined, own));
        combined.diagonal = diagonal;
        self.combined = Some(combined);
        made
    }

    fn complete(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        self.engine.constraints().distribute(u)?;
        self.set_means(&[], u)
    }

    fn null_space(&self) -> Option<&NullSpace> {
        self.constants.as_ref().map(|own| &own.null)
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        let Some(combined) = &self.combined else {
            return self.pass(Task::Diagonal, self.linearised(), ConstrainedRows::One, diagonal);
        };
        match &combined.diagonal {
            None => self.condensed_diagonal(combined, diagonal),
            Some(own) => {
                self.fits(diagonal)?;
                diagonal.copy_from(own);
                Ok(())
            }
        }
    }

    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        let mut approximation = self.approximation.take();
        let made = match (&mut approximation, &self.state) {
            (Some(approximation), Some(state)) => approximation.take_state(self, state),
            _ => Ok(Err("the system has no levels".to_owned())),
        };
        self.approximation = approximation;
        made
    }

    fn preconditioner(&self) -> Option<&dyn Approximation> {
        self.approximation.as_deref()
    }

    fn forget_preconditioner(&mut self) {
        self.approximation = None;
    }

    fn symmetric(&self) -> bool {
        self.symmetric
    }

    fn fields(&self) -> Vec<FieldDofs> {
        let on = &self.blocks.on;
        let of = |n| FieldDofs { dofs: on.dofs_of(n), components: on.fields[n].space.components() };
        (0..on.fields.len()).map(of).collect()
    }

    fn local(&self) -> Option<Arc<LocalDofs>> {
        self.local.clone()
    }

    fn coupling(&self) -> Option<Coupling> {
        // Matrix indices have 32 bits, and an affine constraint couples all its degrees of freedom.
        let sparse = self.n() < u32::MAX as usize && self.blocks.on.affine.widest() <= WIDEST;
        sparse.then(|| Coupling::new(&self.blocks.on))
    }
}
