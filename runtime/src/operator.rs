//! Operators: kernels with their tables, run over the cells of a mesh.
//!
//! From a [`Discretisation`] and kernels to [`Operator`], which is a [`NonlinearSystem`] and, at its last linearisation, a
//! [`LinearOperator`]. What is said once for all machines stands here and in [`blocks`]; an [`Engine`] runs kernels over
//! batches: the processor ([`host`]), or a device with memory of its own ([`device`]).

mod affine;
pub mod assemble;
pub mod batch;
mod blocks;
mod closed;
mod combined;
mod constants;
mod device;
mod element;
mod engine;
mod fits;
mod fluxes;
pub mod functional;
pub mod geometry;
mod host;
mod matrix;
mod oblique;
mod parts;
mod random;
mod shelf;
mod tables;
#[cfg(test)]
mod tests;
mod transfer;

use crate::algebra::coupling::{Columns, Coupling};
use crate::algebra::vector::{Precision, Vector};
use crate::device::cpu::{LaunchError, Module, Unordered};
use crate::device::{Arithmetic, DeviceError, TooManyPlaces};
use crate::kernels::compile::CompiledForDevice;
use crate::kernels::representation::Assembly;
use crate::operator::batch::SlotsError;
use crate::operator::geometry::GeometryError;
use crate::processes::sharing::Sharing;
use crate::solve::{
    Approximation, FieldDofs, LinearOperator, Local, NonlinearSystem, NullSpace, OperatorError,
};
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::memory::TooMuch;
use blocks::{Blocks, Inputs};
use combined::{Combined, WithoutAffine};
use constants::Constants;
use engine::{Affine, Engine, Oblique, Rows};
use kernels_gen::abi::KernelAbi;
use kernels_gen::plan::Task;
use matrix::Represented;
use std::sync::{Arc, OnceLock};

pub use crate::kernels::purpose::{CellKernel, Class, Part};
pub use fluxes::Asked;
pub use matrix::MatrixSize;
pub use parts::Share;
pub use shelf::Shelf;

/// Why an operator cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The module lacks a kernel.
    #[error(transparent)]
    Kernel(#[from] LaunchError),
    /// The mesh cannot give the geometry that a kernel takes.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A kernel asks for a field that there is not.
    #[error("a kernel reads field {field}, which the discretisation does not have")]
    Field {
        /// The field.
        field: usize,
    },
    /// Auxiliary data is missing or of another kind.
    #[error("auxiliary data {aux} should be given as {expected}")]
    Aux {
        /// Its number.
        aux: usize,
        /// What the kernel takes.
        expected: &'static str,
    },
    /// Auxiliary data of another length.
    #[error("auxiliary data {aux} should have {expected} numbers, not {found}")]
    AuxLength {
        /// Its number.
        aux: usize,
        /// How many the kernels take.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A kernel takes runs, but some cell sees an entity in another frame than its neighbour does.
    #[error("the kernels take runs of unknowns, but the mesh's cells do not agree on orientations")]
    NoRuns,
    /// A kernel sums what the cells of a batch have for a node, but its ABI does not say how.
    #[error("a kernel reads slots of field {field}, but there are none for it")]
    NoSlots {
        /// The field.
        field: usize,
    },
    /// A kernel between two spaces, of which the finer one is not given.
    #[error(
        "a kernel moves numbers to a finer space, but the discretisation does not say where that has its unknowns"
    )]
    NoTargets,
    /// The batches of a kernel have too few slots.
    #[error(transparent)]
    Slots(#[from] SlotsError),
    /// Cells would store more numbers than 32-bit indices can number.
    #[error(
        "the cells would store {numbers} numbers for the owners of unknowns, more than the {} that 32-bit \
         indices can number; let cells add atomically, or coloured",
        u32::MAX
    )]
    TooManyNumbers {
        /// How many.
        numbers: usize,
    },
    /// The fields are too many for one vector.
    #[error(transparent)]
    Places(#[from] TooManyPlaces),
    /// A kernel of another precision.
    #[error("the kernel `{kernel}` computes in another precision than the operator's {precision}")]
    Precision {
        /// The kernel.
        kernel: String,
        /// The operator's precision.
        precision: &'static str,
    },
    /// A kernel reads stored geometry, but none of its class computes it.
    #[error("no kernel computes the stored geometry that `{kernel}` reads")]
    NoMetric {
        /// The kernel that reads it.
        kernel: String,
    },
    /// Threads would write to one place at once.
    #[error(transparent)]
    Unordered(#[from] Unordered),
    /// A way to apply the Jacobian for which there are no kernels.
    #[error(
        "the operator has no kernels for `{task}`: compile it for the tasks of the representation that is asked for"
    )]
    NoKernels {
        /// The task.
        task: &'static str,
    },
    /// Kernels that bring element matrices to their places in another way.
    #[error(
        "the kernels of element matrices were not chosen for the assembly `{assembly}`: wish for its scatter when they are"
    )]
    OtherAssembly {
        /// What was asked for.
        assembly: Assembly,
    },
    /// A matrix that is too large.
    #[error(
        "the matrix has {entries} entries, more than the {} that 32-bit indices can number; apply the operator \
         matrix-free, or element by element",
        u32::MAX - 1
    )]
    TooManyEntries {
        /// How many.
        entries: usize,
    },
    /// More than this machine has memory for.
    #[error(transparent)]
    Memory(#[from] TooMuch),
    /// What is stored could not be computed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Terms of an affine constraint with which the matrix still has room.
const WIDEST: usize = 10_000;

/// R(u) − l = 0: R is the sum of a form's integrals, l a load, if there is one.
pub struct Operator {
    /// What approximates J⁻¹, if anything does.
    approximation: Option<Box<dyn Approximation>>,
    blocks: Blocks,
    engine: Box<dyn Engine>,
    symmetric: bool,
    /// That of its unknowns, when it has been asked for.
    numbering: OnceLock<u64>,
    /// The first fields, whose unknowns alone may be a state, where others are not read.
    first: Option<usize>,
    /// The state of the last linearisation.
    state: Option<Vector>,
    /// What is taken from R(u).
    load: Option<Vector>,
    /// What is kept for conditions on combinations of unknowns, if there are any.
    combined: Option<Combined>,
    /// The constants up to which fields are free, if there are any.
    constants: Option<Constants>,
    /// How the Jacobian is applied, where that is not matrix-free.
    represented: Option<Represented>,
    /// Which unknowns other processes have too, where there are others.
    sharing: Option<Arc<Sharing>>,
    /// Unknowns that are eliminated before a linear solve.
    local: Option<Arc<Local>>,
}

impl Operator {
    /// Gathers what the kernels of a module read, which run on the processor. `params` are the time and the parameters'
    /// components; `symmetric` says whether the Jacobian is symmetric.
    ///
    /// # Errors
    ///
    /// Tables that cannot be made, kernels that would write to one place at once.
    pub fn on_host(
        on: Arc<Discretisation>,
        module: Arc<Module>,
        kernels: &[CellKernel],
        precision: Precision,
        params: &[f64],
        symmetric: bool,
    ) -> Result<Self, BuildError> {
        let shelf = Shelf::default();
        Self::on_host_with(on, module, kernels, precision, params, symmetric, shelf)
    }

    /// The same with what can be taken from others on the same mesh.
    pub(crate) fn on_host_with(
        on: Arc<Discretisation>,
        module: Arc<Module>,
        kernels: &[CellKernel],
        precision: Precision,
        params: &[f64],
        symmetric: bool,
        shelf: Shelf,
    ) -> Result<Self, BuildError> {
        let shelf = shelf.suiting(&on.mesh, precision, None);
        let engine = Box::new(host::Host::new(&on, Arc::clone(&module), precision)?);
        let abi =
            |kernel: &CellKernel| Ok((kernel.clone(), module.kernel(&kernel.name)?.abi().clone()));
        let kernels = kernels.iter().map(abi).collect::<Result<_, LaunchError>>()?;
        Self::new(engine, on, kernels, precision, params, symmetric, shelf)
    }

    /// Moves what the kernels of a device read to it.
    ///
    /// # Errors
    ///
    /// Tables that cannot be made, a device that fails.
    pub fn on_device(
        on: Arc<Discretisation>,
        compiled: Arc<CompiledForDevice>,
        params: &[f64],
        symmetric: bool,
    ) -> Result<Self, BuildError> {
        Self::on_device_with(on, compiled, params, symmetric, Shelf::default())
    }

    /// The same with what can be taken from others on the same mesh.
    pub(crate) fn on_device_with(
        on: Arc<Discretisation>,
        compiled: Arc<CompiledForDevice>,
        params: &[f64],
        symmetric: bool,
        shelf: Shelf,
    ) -> Result<Self, BuildError> {
        let mut shelf = shelf.suiting(&on.mesh, compiled.precision, Some(&compiled.device));
        let kernels = compiled.kernels();
        let kernels = kernels.map(|(kernel, loaded)| (kernel.clone(), loaded.abi().clone()));
        let (kernels, precision) = (kernels.collect(), compiled.precision);
        let engine = Box::new(device::OnDevice::new(&on, compiled, &mut shelf)?);
        Self::new(engine, on, kernels, precision, params, symmetric, shelf)
    }

    fn new(
        mut engine: Box<dyn Engine>,
        on: Arc<Discretisation>,
        kernels: Vec<(CellKernel, KernelAbi)>,
        precision: Precision,
        params: &[f64],
        symmetric: bool,
        shelf: Shelf,
    ) -> Result<Self, BuildError> {
        let blocks = Blocks::new(&*engine, on, kernels, precision, params, shelf)?;
        engine.prepare(&blocks)?;
        let (numbering, first, sharing) = (OnceLock::new(), None, blocks.on.sharing());
        let (state, load, combined, represented) = (None, None, None, None);
        let mut own = Self {
            approximation: None,
            blocks,
            engine,
            symmetric,
            numbering,
            first,
            state,
            load,
            combined,
            constants: None,
            represented,
            sharing,
            local: None,
        };
        let affine = Arc::clone(&own.blocks.on.affine);
        own.engine.constrain(&affine)?;
        own.combined = own.combine();
        own.constants = own.find_constants();
        Ok(own)
    }

    /// The discretisation.
    pub fn discretisation(&self) -> &Discretisation {
        &self.blocks.on
    }

    /// The precision of its vectors.
    pub fn precision(&self) -> Precision {
        self.blocks.precision
    }

    /// What its vectors need of the device that they live on; none on the processor.
    pub fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        self.engine.arithmetic()
    }

    /// Whether its vectors live on a device with memory of its own.
    pub fn is_on_device(&self) -> bool {
        self.arithmetic().is_some()
    }

    /// What operators on the same mesh can take from this one, so that it is not made twice.
    pub fn shelf(&self) -> Shelf {
        self.blocks.shelf.clone()
    }

    /// The tables that were made for this operator, and not taken from another.
    pub fn tables_made(&self) -> usize {
        self.blocks.made
    }

    /// A vector of zeros of this operator's length and precision, in its place.
    pub fn vector(&self) -> Vector {
        self.zeros().numbered(self.numbering())
    }

    /// The same without the number of its unknowns, which takes a look at the whole mesh.
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

    /// The same for states that may be other operators' vectors of the first fields alone: kernels read no others.
    pub(crate) fn of_first(self, fields: usize) -> Self {
        Self { first: Some(fields), ..self }
    }

    /// Whether a vector of another operator, of the first fields alone, can be a state as it is. Whose it is on this mesh,
    /// the caller knows.
    pub(crate) fn reads(&self, state: &Vector) -> bool {
        let Some(first) = self.first else { return false };
        let there = state.array().map(|(arithmetic, _)| arithmetic);
        let alike = match (there, self.arithmetic()) {
            (Some(there), Some(own)) => {
                Arc::ptr_eq(there.device(), own.device()) && own.layout().begins_as(there.layout())
            }
            (there, own) => there.is_none() && own.is_none(),
        };
        let fields = self.blocks.on.fields.iter().take(first);
        let len: usize = fields.map(|field| field.space.n_dofs()).sum();
        alike && state.precision() == self.precision() && state.len() == len
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        if let Some(approximation) = &mut self.approximation {
            approximation.set_params(params)?;
        }
        self.engine.overwrite(&mut self.blocks.params, params)
    }

    /// Has unknowns that are coupled inside cells only eliminated before linear solves.
    pub(crate) fn eliminate(&mut self, local: Option<Arc<Local>>) {
        self.local = local;
    }

    /// Has something approximate J⁻¹ from the next linearisation on, or nothing.
    pub fn precondition_by(&mut self, approximation: Option<Box<dyn Approximation>>) {
        self.approximation = approximation;
    }

    /// Takes away what approximates J⁻¹, so that other parameters do not change it.
    pub(crate) fn take_approximation(&mut self) -> Option<Box<dyn Approximation>> {
        self.approximation.take()
    }

    /// Replaces data at nodes on which what approximates J⁻¹ does not depend, by its number: by entries of a vector of this
    /// operator, where it lies, or by 0. `from` says which unknowns they are, and is asked once.
    ///
    /// # Errors
    ///
    /// A device that fails, a vector of another place.
    pub(crate) fn set_at_nodes(
        &mut self,
        aux: usize,
        x: Option<&Vector>,
        from: impl FnOnce() -> Vec<u32>,
    ) -> Result<(), OperatorError> {
        self.blocks.set_at_nodes(&*self.engine, aux, x, from)
    }

    /// What approximates J⁻¹.
    pub fn approximation(&self) -> Option<&dyn Approximation> {
        self.approximation.as_deref()
    }

    /// Replaces the values of the essential conditions, as [`crate::problem::values`] lists them.
    ///
    /// # Errors
    ///
    /// A device that fails; another number of values.
    pub fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        self.engine.set_conditions(values)
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
    /// A device that fails, a vector of another place.
    pub fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        self.engine.impose(u)?;
        self.engine.close(Affine::Values, u)?;
        // What each has computed at a node may differ by rounding.
        u.agree();
        Ok(())
    }

    /// Replaces the auxiliary data by others of the same kinds and lengths.
    ///
    /// # Errors
    ///
    /// Data of another kind or length, a device that fails.
    pub fn set_aux(&mut self, values: &[AuxValues]) -> Result<(), BuildError> {
        // The levels have data of their own.
        self.approximation = None;
        self.blocks.set_aux(&*self.engine, values)
    }

    /// Waits for all work.
    ///
    /// # Errors
    ///
    /// What went wrong with it, or before.
    pub fn finish(&self) -> Result<(), DeviceError> {
        self.arithmetic().map_or(Ok(()), |arithmetic| {
            arithmetic.check()?;
            arithmetic.device().synchronise()
        })
    }

    /// Bytes that one pass of a task streams beside its vectors: tables and stored numbers.
    pub fn table_bytes(&self, task: Task) -> usize {
        self.blocks.bytes(&*self.engine, task)
    }

    /// Whether there are kernels for a task.
    pub fn has(&self, task: Task) -> bool {
        self.blocks.pass(task, Inputs::default()).runs().next().is_some()
    }

    /// y = the sum of a task's kernels over all cells, with these rows of constrained unknowns.
    fn pass(
        &self,
        task: Task,
        inputs: Inputs<'_>,
        rows: Rows<'_>,
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

    fn linearised(&self) -> Inputs<'_> {
        Inputs { state: self.state.as_ref(), ..Inputs::default() }
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
            return WithoutAffine(self).apply(x, y);
        };
        let held = self.held(combined, x, false)?;
        self.act(&held, Rows::Of(x), y)?;
        if combined.is_affine {
            self.engine.close(Affine::Transposed(Rows::Of(x)), y)?;
        }
        match &combined.diagonal {
            Some(diagonal) => self.engine.hold(Oblique::As { diagonal, x }, y),
            None => Ok(()),
        }
    }

    fn replayable(&self) -> bool {
        let on_devices =
            |on: &Arc<Arithmetic>| self.sharing.is_none() || on.device().group().is_some();
        self.arithmetic().is_some_and(on_devices) && !self.has_inexact_constants()
    }

    fn matrix(&self) -> Result<Option<Columns>, OperatorError> {
        // Of a part it is not that of the system.
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
            self.engine.close(Affine::Values, state)?;
            self.blocks.linearise(&*self.engine, state)?;
        }
        self.assemble()?;
        let Some(mut combined) = self.combined.take() else { return Ok(()) };
        let mut diagonal = combined.diagonal.take();
        let made = diagonal.iter_mut().try_for_each(|own| self.closed_diagonal(&combined, own));
        combined.diagonal = diagonal;
        self.combined = Some(combined);
        made
    }

    fn complete(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        self.engine.close(Affine::Values, u)?;
        self.set_means(u)
    }

    fn null_space(&self) -> Option<&NullSpace> {
        self.constants.as_ref().map(|own| &own.null)
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        let Some(combined) = &self.combined else {
            return self.pass(Task::Diagonal, self.linearised(), Rows::One, diagonal);
        };
        match &combined.diagonal {
            None => self.closed_diagonal(combined, diagonal),
            Some(own) => {
                self.fits(diagonal)?;
                diagonal.copy_from(own);
                Ok(())
            }
        }
    }

    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        match (&mut self.approximation, &self.state) {
            (Some(approximation), Some(state)) => approximation.take_state(state),
            _ => Ok(Err("the system has no levels".to_owned())),
        }
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

    fn local(&self) -> Option<Arc<Local>> {
        self.local.clone()
    }

    fn coupling(&self) -> Option<Coupling> {
        // Their rows and columns are numbered by 32-bit indices, and all that a constraint reads is coupled.
        let sparse = self.n() < u32::MAX as usize && self.blocks.on.affine.widest() <= WIDEST;
        sparse.then(|| Coupling::new(&self.blocks.on))
    }
}
