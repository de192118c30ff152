//! Operators: compiled kernels with their tables, run over the chunks of a mesh.
//!
//! From a [`Discretisation`] and a [`Module`] to [`CellOperator`], which is a [`NonlinearSystem`] and,
//! at its last linearisation, a [`LinearOperator`]. One pass over the mesh is
//!
//! ```text
//! for each chunk, after its earlier neighbours:  y = 0 in the unknowns it touches first
//!                                                batches without, then with constrained unknowns
//! then, in the rows of constrained unknowns:     y = x (action), 0 (residual), 1 (diagonal)
//! ```
//!
//! Neighbouring chunks add to shared unknowns in an order that the mesh alone fixes, so the result
//! is the same bit for bit on any number of threads.

pub mod device;
mod element;
mod tables;
#[cfg(test)]
mod tests;

use crate::batch::{Batches, SlotsError, constrained_cells};
use crate::coupling::Coupling;
use crate::device::cpu::{
    Argument, Kernel, Launch, LaunchError, Module, Schedule, Unordered, Writes,
};
use crate::device::{DeviceError, Layout, TooManyPlaces};
use crate::discretisation::{AuxValues, Discretisation};
use crate::geometry::GeometryError;
use crate::partition::Partition;
use crate::solve::{LinearOperator, NonlinearSystem, OperatorError};
use crate::vector::{Precision, Vector};
use kernels_gen::abi::{Reach, Role, Slots};
use kernels_gen::plan::{Geometry, Task};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tables::{Array, Key, Tables};

/// Which cells a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Cells without constrained unknowns.
    Free,
    /// Cells with constrained unknowns, addressed unknown by unknown.
    Constrained,
    /// All cells: such a kernel makes the other two of its task needless.
    All,
    /// The facets of one of the form's integrals, of whatever cells.
    Facets(usize),
}

impl Class {
    /// Whether it is of facets.
    pub fn is_of_facets(self) -> bool {
        matches!(self, Self::Facets(_))
    }

    /// Whether a cell is of the class; `constrained` says which have constrained unknowns.
    fn has(self, cell: usize, constrained: &[bool]) -> bool {
        match self {
            Self::Free => !constrained[cell],
            Self::Constrained => constrained[cell],
            Self::All => true,
            Self::Facets(_) => false,
        }
    }
}

/// The batches of a class in the chunks of a partition, with slots for the nodes of each field where there are any.
fn batches(
    on: &Discretisation,
    partition: &Partition,
    (class, lanes, slots): (Class, usize, &[Slots]),
    constrained: &[bool],
) -> Result<Batches, BuildError> {
    let keep = |cell: usize| class.has(cell, constrained);
    Ok(match class {
        Class::Facets(integral) => Batches::of_facets(partition, lanes, on.facets_of(integral)),
        _ if slots.is_empty() => Batches::new(partition, lanes, keep),
        _ => {
            let fields = on.fields.iter().map(|field| &field.space);
            let fields: Vec<_> = fields.zip(slots.iter().copied()).collect();
            Batches::in_slots(partition, lanes, &fields, keep)?
        }
    })
}

/// A kernel of the module and what it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct CellKernel {
    /// What it computes.
    pub task: Task,
    /// For which cells.
    pub class: Class,
    /// Its symbol.
    pub name: String,
    /// The geometry it takes.
    pub geometry: Geometry,
}

/// Why an operator cannot be made.
#[derive(Debug, thiserror::Error)]
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
    /// What is stored could not be computed.
    #[error(transparent)]
    Operator(#[from] OperatorError),
    /// A device.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// Cells of one class in batches of one width, with their tables.
struct Group {
    batches: Batches,
    tables: Tables,
    /// What [`Task::Linearise`] stores.
    stored: Option<Array>,
}

/// Groups are shared by kernels of one class and width, whose batches have the same slots: of kernels for groups of threads,
/// which are interpreted, they may have some.
type GroupKey = (Class, usize, Vec<Slots>);

/// What one pass reads.
#[derive(Clone, Copy)]
struct Inputs<'a> {
    state: Option<&'a Vector>,
    direction: Option<&'a Vector>,
}

/// The sum of a form's cell integrals.
pub struct CellOperator {
    on: Arc<Discretisation>,
    /// That of its unknowns.
    numbering: u64,
    module: Arc<Module>,
    precision: Precision,
    symmetric: bool,
    kernels: BTreeMap<(Task, Class), CellKernel>,
    groups: BTreeMap<GroupKey, Group>,
    /// Time and parameters.
    params: Array,
    /// Auxiliary data at nodes.
    aux: BTreeMap<usize, Array>,
    /// Which chunks run at once, and a proof that they may.
    schedule: Schedule,
    /// The constrained unknowns with their values.
    conditions: Vec<(usize, f64)>,
    /// The state of the last linearisation.
    state: Option<Vector>,
}

impl CellOperator {
    /// Gathers what the kernels read. `params` are the time and the parameters' components;
    /// `symmetric` says whether the Jacobian is symmetric.
    pub fn new(
        on: Arc<Discretisation>,
        module: Arc<Module>,
        kernels: &[CellKernel],
        precision: Precision,
        params: &[f64],
        symmetric: bool,
    ) -> Result<Self, BuildError> {
        let mut operator = Self {
            precision,
            symmetric,
            kernels: kernels.iter().map(|k| ((k.task, k.class), k.clone())).collect(),
            groups: BTreeMap::new(),
            params: Array::reals(params, precision),
            aux: BTreeMap::new(),
            schedule: Schedule::new(&on.partition, 0, Vec::new(), &[])?,
            conditions: on.conditions().collect(),
            numbering: on.numbering(),
            state: None,
            on,
            module,
        };
        for (index, aux) in operator.on.aux.iter().enumerate() {
            if let AuxValues::Nodes(_, values) = aux {
                operator.aux.insert(index, Array::reals(values, precision));
            }
        }
        operator.make_groups()?;
        for kernel in kernels {
            operator.make_tables(kernel)?;
        }
        for kernel in kernels {
            operator.make_metric(kernel)?;
        }
        operator.schedule = operator.make_schedule()?;
        Ok(operator)
    }

    /// The discretisation.
    pub fn discretisation(&self) -> &Discretisation {
        &self.on
    }

    /// The precision of its vectors.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// A vector of zeros of this operator's length and precision.
    pub fn vector(&self) -> Vector {
        Vector::zeros(self.on.n_dofs(), self.precision).numbered(self.numbering)
    }

    /// Replaces the time and the parameters.
    pub fn set_params(&mut self, params: &[f64]) {
        self.params = Array::reals(params, self.precision);
    }

    /// Replaces the values of the essential conditions, in the order of [`Discretisation::conditions`].
    ///
    /// # Errors
    ///
    /// Another number of values.
    pub fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        if values.len() != self.conditions.len() {
            return Err(DeviceError::Mismatch { operation: "set conditions" });
        }
        self.conditions.iter_mut().zip(values).for_each(|(own, value)| own.1 = *value);
        Ok(())
    }

    /// Gives the constrained unknowns of a vector their values.
    ///
    /// # Errors
    ///
    /// A vector of another place.
    pub fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        self.conditions.iter().for_each(|&(unknown, value)| u.set_entry(unknown, value));
        Ok(())
    }

    /// Replaces the auxiliary data by others of the same kinds and lengths.
    ///
    /// # Errors
    ///
    /// Data of another kind or length.
    pub fn set_aux(&mut self, values: &[AuxValues]) -> Result<(), BuildError> {
        for (index, values) in values.iter().enumerate() {
            if let AuxValues::Nodes(_, values) = values {
                self.aux.insert(index, Array::reals(values, self.precision));
            }
        }
        for kernel in self.kernels.values().cloned().collect::<Vec<_>>() {
            let (key, arguments) =
                (self.group_key(&kernel), self.kernel(&kernel)?.abi().arguments.clone());
            let Some(group) = self.groups.get_mut(&key) else { continue };
            for argument in arguments {
                let Some(key) = Key::of(argument.role, kernel.geometry) else { continue };
                let (on, batches, extent) = (&self.on, &group.batches, argument.extent);
                if let Some(table) =
                    tables::of_aux(key, extent, on, values, batches, self.precision)?
                {
                    group.tables.insert(key, table);
                }
            }
        }
        Ok(())
    }

    /// Bytes that one pass of a task streams beside its vectors: tables and stored numbers.
    pub fn table_bytes(&self, task: Task) -> usize {
        let mut bytes = 0;
        for kernel in self.kernels_of(task) {
            let (Ok(loaded), Some(group)) =
                (self.module.kernel(&kernel.name), self.groups.get(&self.group_key(kernel)))
            else {
                continue;
            };
            for argument in &loaded.abi().arguments {
                let table = match argument.role {
                    Role::Stored => group.stored.as_ref(),
                    role => Key::of(role, kernel.geometry).and_then(|key| group.tables.get(&key)),
                };
                bytes += table.map_or(0, Array::bytes);
            }
        }
        bytes
    }

    /// Whether there are kernels for a task.
    pub fn has(&self, task: Task) -> bool {
        self.kernels_of(task).next().is_some()
    }

    /// The kernels that a pass of a task runs.
    fn kernels_of(&self, task: Task) -> impl Iterator<Item = &CellKernel> {
        let all = self.kernels.get(&(task, Class::All));
        let parts = [Class::Free, Class::Constrained].map(|class| self.kernels.get(&(task, class)));
        let parts = parts.into_iter().flatten().filter(move |_| all.is_none());
        let facets = self
            .kernels
            .values()
            .filter(move |kernel| kernel.task == task && matches!(kernel.class, Class::Facets(_)));
        all.into_iter().chain(parts).chain(facets)
    }

    fn kernel(&self, kernel: &CellKernel) -> Result<Kernel<'_>, LaunchError> {
        self.module.kernel(&kernel.name)
    }

    fn group_key(&self, kernel: &CellKernel) -> GroupKey {
        match self.kernel(kernel) {
            Ok(found) => (kernel.class, found.abi().lanes, found.abi().slots.clone()),
            Err(_) => (kernel.class, 1, Vec::new()),
        }
    }

    /// One group for each class, width and slots.
    fn make_groups(&mut self) -> Result<(), BuildError> {
        let constrained = constrained_cells(self.on.mesh.n_cells(), &self.on.constrained());
        for kernel in self.kernels.values() {
            let abi = self.module.kernel(&kernel.name)?.abi();
            if abi.precision != self.precision {
                return Err(BuildError::Precision {
                    kernel: kernel.name.clone(),
                    precision: crate::vector::name(self.precision),
                });
            }
            let key = (kernel.class, abi.lanes, abi.slots.clone());
            if self.groups.contains_key(&key) {
                continue;
            }
            let wanted = (kernel.class, abi.lanes, &abi.slots[..]);
            let batches = batches(&self.on, &self.on.partition, wanted, &constrained)?;
            self.groups.insert(key, Group { batches, tables: Tables::new(), stored: None });
        }
        Ok(())
    }

    /// The tables that a kernel's ABI names.
    fn make_tables(&mut self, kernel: &CellKernel) -> Result<(), BuildError> {
        let key = self.group_key(kernel);
        let abi = self.kernel(kernel)?.abi();
        let (arguments, slots) = (abi.arguments.clone(), abi.slots.clone());
        let Some(group) = self.groups.get_mut(&key) else { return Ok(()) };
        for argument in arguments {
            if argument.role == Role::Stored && kernel.task == Task::Linearise {
                let len = argument.extent * group.batches.len();
                group.stored = Some(Array::zeros(len, self.precision));
            }
            let Some(key) = Key::of(argument.role, kernel.geometry) else { continue };
            if group.tables.contains_key(&key) {
                continue;
            }
            let extent = argument.extent;
            let (on, batches, layout) = (&self.on, &group.batches, &Layout::plain(1));
            let made = tables::make(key, extent, on, batches, self.precision, layout, &slots)?;
            if let Some(table) = made {
                group.tables.insert(key, table);
            }
        }
        Ok(())
    }

    /// Proves that chunks which do not wait for each other add to different unknowns.
    fn make_schedule(&self) -> Result<Schedule, BuildError> {
        let mut writes = Vec::new();
        for kernel in self.kernels.values() {
            let (abi, group) = (self.kernel(kernel)?.abi(), &self.groups[&self.group_key(kernel)]);
            for (map, argument) in abi.arguments.iter().enumerate() {
                let table = Key::of(argument.role, kernel.geometry);
                let table = table.and_then(|key| group.tables.get(&key));
                let Some(Array::U32(indices)) = table else { continue };
                for (array, written) in abi.arguments.iter().enumerate() {
                    let indexed = |reach: &Reach| (reach.map, reach.array) == (map, array);
                    let Role::Result(field) = written.role else { continue };
                    if abi.reaches.iter().any(indexed) {
                        let (first, parts) = (self.on.dofs_of(field).start, group.batches.parts());
                        writes.push(Writes { abi, map, array, indices, parts, first });
                    }
                }
            }
        }
        let chunks = 0..self.on.partition.chunks().len();
        let new = |chunk: usize| {
            let fields = self.on.fields.iter().enumerate();
            let new = fields.map(|(field, of)| {
                let (start, new) = (self.on.dofs_of(field).start, of.space.new_dofs(chunk));
                start + new.start..start + new.end
            });
            new.collect()
        };
        let clears = chunks.map(new).collect();
        Ok(Schedule::new(&self.on.partition, self.size(), clears, &writes)?)
    }

    /// Computes the geometry at the quadrature points where a kernel reads it.
    fn make_metric(&mut self, reader: &CellKernel) -> Result<(), BuildError> {
        let key = self.group_key(reader);
        let arguments = &self.kernel(reader)?.abi().arguments;
        let Some(stored) = tables::computed(reader.geometry, arguments) else { return Ok(()) };
        if self.groups.get(&key).is_none_or(|group| group.tables.contains_key(&stored)) {
            return Ok(());
        }
        let metric = self
            .kernels
            .values()
            .find(|kernel| kernel.task == Task::Metric && self.group_key(kernel) == key);
        let Some(metric) = metric.cloned() else {
            return Err(BuildError::NoMetric { kernel: reader.name.clone() });
        };
        let table = self.store(&metric, Inputs { state: None, direction: None }, None)?;
        if let Some(group) = self.groups.get_mut(&key) {
            group.tables.insert(stored, table);
        }
        Ok(())
    }

    /// Runs a kernel that stores numbers at the quadrature points, into `into` or a new array.
    fn store(
        &self,
        kernel: &CellKernel,
        inputs: Inputs<'_>,
        into: Option<Array>,
    ) -> Result<Array, OperatorError> {
        let group = &self.groups[&self.group_key(kernel)];
        let loaded = self.kernel(kernel).map_err(launch)?;
        let stored = loaded.abi().arguments.iter().find(|argument| argument.role == Role::Stored);
        let len = stored.map_or(0, |argument| argument.extent) * group.batches.len();
        let mut array = into.unwrap_or_else(|| Array::zeros(len, self.precision));
        let mut written = Some(array.write());
        let mut pass = self.bind(kernel, inputs, |_| written.take())?;
        pass.run_apart(group.batches.parts()).map_err(launch)?;
        drop(pass);
        Ok(array)
    }

    /// Ties a kernel to its arguments; `written` gives what it writes.
    fn bind<'a>(
        &'a self,
        kernel: &'a CellKernel,
        inputs: Inputs<'a>,
        mut written: impl FnMut(Role) -> Option<Argument<'a>>,
    ) -> Result<Launch<'a>, OperatorError> {
        let loaded = self.kernel(kernel).map_err(launch)?;
        let group = &self.groups[&self.group_key(kernel)];
        let mut argument = |role: Role, writes: bool| {
            let found = match role {
                _ if writes => written(role),
                Role::Params => Some(self.params.read()),
                Role::State(field) => inputs.state.and_then(|u| self.part(u, field)),
                Role::Direction(field) => inputs.direction.and_then(|u| self.part(u, field)),
                Role::AuxNodes(aux) => self.aux.get(&aux).map(Array::read),
                Role::Stored => group.stored.as_ref().map(Array::read),
                role => Key::of(role, kernel.geometry)
                    .and_then(|key| group.tables.get(&key))
                    .map(Array::read),
            };
            let name = &kernel.name;
            found.ok_or_else(|| OperatorError::new(format!("`{name}` lacks its argument {role:?}")))
        };
        let arguments = loaded.abi().arguments.iter();
        let arguments: Vec<Argument<'a>> = arguments
            .map(|wanted| argument(wanted.role, wanted.written))
            .collect::<Result<_, _>>()?;
        let bound = loaded.bind(arguments).map_err(launch)?;
        if bound.batches() < group.batches.len() {
            let name = &kernel.name;
            return Err(OperatorError::new(format!("the tables of `{name}` are too short")));
        }
        Ok(bound)
    }

    /// A field's unknowns in a vector, for a kernel that reads them.
    fn part<'a>(&self, vector: &'a Vector, field: usize) -> Option<Argument<'a>> {
        let range = self.on.dofs_of(field);
        match vector.precision() {
            Precision::F64 => vector.entries::<f64>()?.get(range).map(Argument::read),
            Precision::F32 => vector.entries::<f32>()?.get(range).map(Argument::read),
        }
    }

    /// y = the sum of a task's kernels over all cells; rows of constrained unknowns are 0.
    fn pass(&self, task: Task, inputs: Inputs<'_>, y: &mut Vector) -> Result<(), OperatorError> {
        self.fits(y)?;
        for vector in [inputs.state, inputs.direction].into_iter().flatten() {
            self.fits(vector)?;
        }
        match self.precision {
            Precision::F64 => self.typed_pass::<f64>(task, inputs, y),
            Precision::F32 => self.typed_pass::<f32>(task, inputs, y),
        }
    }

    fn typed_pass<T: crate::vector::Real>(
        &self,
        task: Task,
        inputs: Inputs<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let entries = y.entries_mut::<T>().ok_or_else(|| OperatorError::new("wrong precision"))?;
        let shared = self.schedule.lend(entries);
        let mut launches = Vec::with_capacity(2);
        let mut cells = 0;
        for kernel in self.kernels_of(task) {
            let batches = &self.groups[&self.group_key(kernel)].batches;
            if !matches!(kernel.class, Class::Facets(_)) {
                cells += batches.active().iter().map(|&active| active as usize).sum::<usize>();
            }
            let written = |role: Role| match role {
                Role::Result(field) => Some(shared.part(self.on.dofs_of(field))),
                _ => None,
            };
            launches.push(self.bind(kernel, inputs, written)?);
        }
        if cells != self.on.mesh.n_cells() {
            let word = task.word();
            let missing = self.on.mesh.n_cells() - cells;
            return Err(OperatorError::new(format!("no {word} kernel for {missing} of the cells")));
        }
        self.schedule.run(&shared, &launches).map_err(launch)
    }

    /// Whether a vector belongs to this operator.
    pub(crate) fn fits(&self, vector: &Vector) -> Result<(), OperatorError> {
        let here = vector.array().is_none();
        if here && vector.len() == self.size() && vector.precision() == self.precision {
            return numbered_alike(vector, self.numbering);
        }
        Err(OperatorError::new(format!(
            "a vector of {} entries in {}{} does not fit an operator of {} unknowns in {}",
            vector.len(),
            crate::vector::name(vector.precision()),
            if here { "" } else { " on a device" },
            self.size(),
            crate::vector::name(self.precision),
        )))
    }

    fn linearised(&self) -> Inputs<'_> {
        Inputs { state: self.state.as_ref(), direction: None }
    }

    fn size(&self) -> usize {
        self.on.n_dofs()
    }
}

/// Whether the entries of a vector are those of these unknowns, as far as that is known.
fn numbered_alike(vector: &Vector, numbering: u64) -> Result<(), OperatorError> {
    match vector.numbering() {
        Some(other) if other != numbering => Err(OperatorError::new(
            "a vector of a system on another mesh or in other spaces does not fit: its entries belong to other nodes\n\
             help: take one that this system makes, by `vector`, `initial` or `interpolate`",
        )),
        _ => Ok(()),
    }
}

fn launch(error: LaunchError) -> OperatorError {
    OperatorError::new(error.to_string())
}

impl LinearOperator for CellOperator {
    fn size(&self) -> usize {
        Self::size(self)
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let inputs = Inputs { direction: Some(x), ..self.linearised() };
        self.pass(Task::Action, inputs, y)?;
        self.on.identity(x, y);
        Ok(())
    }
}

impl NonlinearSystem for CellOperator {
    fn size(&self) -> usize {
        Self::size(self)
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.pass(Task::Residual, Inputs { state: Some(u), direction: None }, r)?;
        self.on.fill_conditions(r, 0.0);
        Ok(())
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        match &mut self.state {
            Some(state) => state.copy_from(u),
            None => self.state = Some(u.clone()),
        }
        let kernels: Vec<CellKernel> = self.kernels_of(Task::Linearise).cloned().collect();
        for kernel in kernels {
            let key = self.group_key(&kernel);
            let into = self.groups.get_mut(&key).and_then(|group| group.stored.take());
            let stored = self.store(&kernel, self.linearised(), into)?;
            if let Some(group) = self.groups.get_mut(&key) {
                group.stored = Some(stored);
            }
        }
        Ok(())
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.pass(Task::Diagonal, self.linearised(), diagonal)?;
        self.on.fill_conditions(diagonal, 1.0);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        self.symmetric
    }

    fn fields(&self) -> Vec<Range<usize>> {
        self.on.ranges()
    }

    fn coupling(&self) -> Option<Coupling> {
        // Their rows and columns are numbered by 32-bit indices.
        (self.on.n_dofs() < u32::MAX as usize).then(|| Coupling::new(&self.on))
    }
}
