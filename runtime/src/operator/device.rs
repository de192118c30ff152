//! Cell kernels on a device: tables are made here, go there once, and stay.
//!
//! From a [`Discretisation`] and kernels that a device has loaded to [`DeviceOperator`], which is what `CellOperator`
//! is on the CPU. One pass over the mesh is
//!
//! ```text
//! y = 0, or x in the rows of constrained unknowns (action); not inside of cells, where kernels store
//! batches without, then with constrained unknowns, which add to all other rows; then facets
//! ```
//!
//! in three launches, or two without conditions; nothing crosses the bus. So it is where cells add atomically. Coloured,
//! the cells of one colour after those of another, each class has as many launches as it has colours; and where
//! unknowns have owners, each class stores what its cells contribute, and a further launch adds that up ([`owners`]).

mod owners;

use super::tables::{self, Key};
use super::{Array as Table, BuildError, CellKernel, Class};
use crate::batch::{Batches, constrained_cells};
use crate::compile::CompiledForDevice;
use crate::coupling::Coupling;
use crate::device::{Arithmetic, Array, Device, DeviceError, Kernel, Kind, Layout, Places, places};
use crate::discretisation::{AuxValues, Discretisation, Field};
use crate::partition::Partition;
use crate::solve::{LinearOperator, NonlinearSystem, OperatorError};
use crate::vector::Vector;
use kernels_gen::abi::{Role, Slots};
use kernels_gen::plan::{Plan, Scatter, Strategy, Task};
use owners::Owners;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Cells that are numbered together; on a device only full groups of threads matter.
const CHUNK: usize = 1 << 16;

/// Cells of one class in batches of one width, with their tables.
struct Group {
    batches: Batches,
    cells: usize,
    tables: BTreeMap<Key, Array>,
    /// What [`Task::Linearise`] stores.
    stored: Option<Array>,
}

/// Groups are shared by kernels of one class and width, whose batches have the same slots.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    class: Class,
    lanes: usize,
    /// The slots of a batch for each field, where it has any.
    slots: Vec<Slots>,
}

/// What one pass reads.
#[derive(Clone, Copy, Default)]
struct Inputs<'a> {
    state: Option<&'a Vector>,
    direction: Option<&'a Vector>,
}

/// The sum of a form's cell integrals, on a device.
pub struct DeviceOperator {
    on: Arc<Discretisation>,
    /// That of its unknowns.
    numbering: u64,
    arithmetic: Arc<Arithmetic>,
    compiled: Arc<CompiledForDevice>,
    symmetric: bool,
    groups: BTreeMap<GroupKey, Group>,
    /// Time and parameters.
    params: Array,
    /// Auxiliary data at nodes.
    aux: BTreeMap<usize, Array>,
    constrained: Places,
    /// Where kernels leave it to the owners of unknowns to add up.
    owners: Option<Owners<GroupKey>>,
    /// The state of the last linearisation.
    state: Option<Vector>,
}

impl DeviceOperator {
    /// Moves what the kernels read to their device. `params` are the time and the parameters' components;
    /// `symmetric` says whether the Jacobian is symmetric.
    ///
    /// # Errors
    ///
    /// Tables that cannot be made, a device that fails.
    pub fn new(
        on: Arc<Discretisation>,
        compiled: Arc<CompiledForDevice>,
        params: &[f64],
        symmetric: bool,
    ) -> Result<Self, BuildError> {
        let (device, precision) = (Arc::clone(&compiled.device), compiled.precision);
        let stores_inside = |(_, loaded): (_, &Kernel)| loaded.abi().stores_inside;
        let fields = on.fields.iter().map(|own| (own.space.components(), own.space.n_dofs()));
        let tiled = compiled.plans.iter().any(|plan| plan.tiles);
        places(&fields.collect::<Vec<_>>(), tiled)?;
        let layout = layout(&on, &compiled.plans, compiled.kernels().any(stores_inside));
        let arithmetic = Arithmetic::with_layout(device, precision, layout.clone())?;
        let mut aux = BTreeMap::new();
        for (index, values) in on.aux.iter().enumerate() {
            if let AuxValues::Nodes(_, values) = values {
                aux.insert(index, arithmetic.upload(values)?);
            }
        }
        let constraints = on.conditions().map(|(dof, value)| (layout.place(dof), value));
        let constraints: Vec<(usize, f64)> = constraints.collect();
        let len = layout.len(on.n_dofs());
        let mut operator = Self {
            params: arithmetic.upload(params)?,
            constrained: Places::new(&arithmetic, len, constraints.into_iter())?,
            groups: BTreeMap::new(),
            owners: None,
            state: None,
            numbering: on.numbering(),
            on,
            arithmetic,
            compiled,
            symmetric,
            aux,
        };
        operator.make_groups()?;
        operator.owners = operator.make_owners()?;
        for (kernel, loaded) in operator.compiled.clone().kernels() {
            operator.make_tables(kernel, loaded)?;
        }
        for (kernel, loaded) in operator.compiled.clone().kernels() {
            operator.make_metric(kernel, loaded)?;
        }
        Ok(operator)
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &**self.arithmetic.device()
    }

    /// What vectors need of the device.
    pub fn arithmetic(&self) -> &Arc<Arithmetic> {
        &self.arithmetic
    }

    /// The kernels and their plans.
    pub fn compiled(&self) -> &Arc<CompiledForDevice> {
        &self.compiled
    }

    /// The discretisation.
    pub fn discretisation(&self) -> &Discretisation {
        &self.on
    }

    /// A vector of zeros on the device.
    pub fn vector(&self) -> Vector {
        Vector::on_device(self.on.n_dofs(), &self.arithmetic).numbered(self.numbering)
    }

    /// Replaces the time and the parameters.
    ///
    /// # Errors
    ///
    /// A device that fails; another number of parameters.
    pub fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.arithmetic.overwrite(&mut self.params, 0, params)
    }

    /// Replaces the values of the essential conditions, in the order of [`Discretisation::conditions`].
    ///
    /// # Errors
    ///
    /// A device that fails; another number of values.
    pub fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        self.constrained.set(&self.arithmetic, values)
    }

    /// Gives the constrained unknowns of a vector their values.
    ///
    /// # Errors
    ///
    /// A device that fails, a vector of another place.
    pub fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        let y = u.array_mut().ok_or(DeviceError::Foreign)?;
        Ok(self.constrained.put(&self.arithmetic, y)?)
    }

    /// Replaces the auxiliary data by others of the same kinds and lengths.
    ///
    /// # Errors
    ///
    /// Data of another kind or length, a device that fails.
    pub fn set_aux(&mut self, values: &[AuxValues]) -> Result<(), BuildError> {
        for (index, values) in values.iter().enumerate() {
            if let AuxValues::Nodes(_, values) = values {
                self.aux.insert(index, self.arithmetic.upload(values)?);
            }
        }
        for (kernel, loaded) in self.compiled.clone().kernels() {
            let Some(group) = self.groups.get_mut(&group_key(kernel, loaded)) else { continue };
            for argument in &loaded.abi().arguments {
                let Some(key) = Key::of(argument.role, kernel.geometry) else { continue };
                let (on, batches, extent) = (&self.on, &group.batches, argument.extent);
                let precision = self.compiled.precision;
                if let Some(table) = tables::of_aux(key, extent, on, values, batches, precision)? {
                    group.tables.insert(key, upload(&**self.arithmetic.device(), &table)?);
                }
            }
        }
        Ok(())
    }

    /// Waits for all work.
    ///
    /// # Errors
    ///
    /// What went wrong with it, or before.
    pub fn finish(&self) -> Result<(), DeviceError> {
        self.arithmetic.check()?;
        self.device().synchronise()
    }

    /// Bytes that one pass of a task streams beside its vectors: tables and stored numbers.
    pub fn table_bytes(&self, task: Task) -> usize {
        let mut bytes = 0;
        for (kernel, loaded) in self.kernels_of(task) {
            let key = group_key(kernel, loaded);
            let Some(group) = self.groups.get(&key) else { continue };
            if let Some(owners) = &self.owners {
                bytes += owners.bytes(&key, loaded.abi(), &group.batches);
            }
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

    /// The kernels that a pass of a task runs.
    fn kernels_of(&self, task: Task) -> impl Iterator<Item = (&CellKernel, &Kernel)> {
        self.compiled.kernels().filter(move |(kernel, _)| kernel.task == task)
    }

    /// Whether a class is one launch for each colour of its cells.
    fn coloured(&self) -> bool {
        self.compiled.plans.iter().any(|plan| plan.scatter == Scatter::Coloured)
    }

    /// One group for each class, width and slots.
    fn make_groups(&mut self) -> Result<(), BuildError> {
        let (coloured, mesh) = (self.coloured(), &self.on.mesh);
        let partition = Partition::with_chunk_cells(mesh, CHUNK);
        let constrained = constrained_cells(mesh.n_cells(), &self.on.constrained());
        for (kernel, loaded) in self.compiled.kernels() {
            let key = group_key(kernel, loaded);
            if self.groups.contains_key(&key) {
                continue;
            }
            let keep = |cell: usize| kernel.class.has(cell, &constrained);
            let batches = match (kernel.class, coloured) {
                (Class::Facets(integral), true) => {
                    Batches::facets_coloured(mesh, key.lanes, self.on.facets_of(integral))
                }
                (_, true) => Batches::coloured(mesh, key.lanes, keep),
                (class, false) => {
                    let wanted = (class, key.lanes, &key.slots[..]);
                    super::batches(&self.on, &partition, wanted, &constrained)?
                }
            };
            let cells = match kernel.class {
                Class::Facets(_) => 0,
                _ => batches.active().iter().map(|&active| active as usize).sum(),
            };
            let group = Group { batches, cells, tables: BTreeMap::new(), stored: None };
            self.groups.insert(key, group);
        }
        Ok(())
    }

    /// What the owners of unknowns need, where there are any.
    fn make_owners(&self) -> Result<Option<Owners<GroupKey>>, BuildError> {
        let kernels = self.compiled.kernels().map(|(kernel, loaded)| {
            let key = group_key(kernel, loaded);
            let batches = &self.groups[&key].batches;
            (loaded.abi(), key, batches)
        });
        let (layout, fields) = (self.arithmetic.layout(), &self.on.fields);
        Owners::new(self.device(), self.compiled.precision, layout, fields, kernels)
    }

    /// The tables that a kernel's ABI names.
    fn make_tables(&mut self, kernel: &CellKernel, loaded: &Kernel) -> Result<(), BuildError> {
        let group_key = group_key(kernel, loaded);
        let precision = self.compiled.precision;
        let GroupKey { slots, .. } = &group_key;
        let Some(group) = self.groups.get_mut(&group_key) else { return Ok(()) };
        let device = self.arithmetic.device();
        for argument in &loaded.abi().arguments {
            if argument.role == Role::Stored && kernel.task == Task::Linearise {
                let len = argument.extent * group.batches.len();
                group.stored = Some(device.zeros(precision.into(), len)?);
            }
            let Some(key) = Key::of(argument.role, kernel.geometry) else { continue };
            if group.tables.contains_key(&key) {
                continue;
            }
            let (extent, layout) = (argument.extent, self.arithmetic.layout());
            let (on, batches) = (&self.on, &group.batches);
            let made = tables::make(key, extent, on, batches, precision, layout, slots)?;
            if let Some(table) = made {
                group.tables.insert(key, upload(&**device, &table)?);
            }
        }
        Ok(())
    }

    /// Computes the geometry at the quadrature points where a kernel reads it.
    fn make_metric(&mut self, reader: &CellKernel, loaded: &Kernel) -> Result<(), BuildError> {
        let key = group_key(reader, loaded);
        let arguments = &loaded.abi().arguments;
        let Some(stored) = tables::computed(reader.geometry, arguments) else { return Ok(()) };
        if self.groups.get(&key).is_none_or(|group| group.tables.contains_key(&stored)) {
            return Ok(());
        }
        let compiled = self.compiled.clone();
        let metric = compiled.kernels().find(|(kernel, loaded)| {
            kernel.task == Task::Metric && group_key(kernel, loaded) == key
        });
        let Some((kernel, loaded)) = metric else {
            return Err(BuildError::NoMetric { kernel: reader.name.clone() });
        };
        let extent = loaded.abi().arguments.iter().find(|argument| argument.role == Role::Stored);
        let len = extent.map_or(0, |argument| argument.extent) * self.groups[&key].batches.len();
        let table = self.device().zeros(Kind::from(compiled.precision), len)?;
        self.launch(kernel, loaded, Inputs::default(), &|_| Some(&table))?;
        if let Some(group) = self.groups.get_mut(&key) {
            group.tables.insert(stored, table);
        }
        Ok(())
    }

    /// Runs a kernel on all batches of its class; `written` is what it writes. What adds to a vector goes colour by
    /// colour, if so.
    fn launch<'a>(
        &'a self,
        kernel: &CellKernel,
        loaded: &Kernel,
        inputs: Inputs<'a>,
        written: &dyn Fn(Role) -> Option<&'a Array>,
    ) -> Result<(), OperatorError> {
        let group = &self.groups[&group_key(kernel, loaded)];
        let argument = |role: Role, writes: bool| {
            let found = match role {
                _ if writes => written(role),
                Role::Params => Some(&self.params),
                // Indices say where a field begins.
                Role::State(_) => inputs.state.and_then(array),
                Role::Direction(_) => inputs.direction.and_then(array),
                Role::AuxNodes(aux) => self.aux.get(&aux),
                Role::Stored => group.stored.as_ref(),
                role => Key::of(role, kernel.geometry).and_then(|key| group.tables.get(&key)),
            };
            let name = &kernel.name;
            found.ok_or_else(|| OperatorError::new(format!("`{name}` lacks its argument {role:?}")))
        };
        let arguments = loaded.abi().arguments.iter();
        let arguments: Vec<&Array> = arguments
            .filter(|wanted| wanted.role != Role::Tables)
            .map(|wanted| argument(wanted.role, wanted.written))
            .collect::<Result<_, _>>()?;
        let adds = writes(loaded, |role| matches!(role, Role::Result(_))) && self.coloured();
        let all = 0..group.batches.len();
        let ranges = if adds { group.batches.parts() } else { std::slice::from_ref(&all) };
        for range in ranges {
            self.device().launch(loaded, range.clone(), &arguments)?;
        }
        Ok(())
    }

    /// Adds what a kernel computes for all cells of its class to a vector.
    fn add(
        &self,
        kernel: &CellKernel,
        loaded: &Kernel,
        inputs: Inputs<'_>,
        y: &Array,
    ) -> Result<(), OperatorError> {
        let stores = |role: Role| matches!(role, Role::CellResult(_));
        let owners = self.owners.as_ref().filter(|_| writes(loaded, stores));
        let Some(owners) = owners else {
            return self.launch(kernel, loaded, inputs, &|_| Some(y));
        };
        owners.add(self.device(), &group_key(kernel, loaded), y, |numbers| {
            self.launch(kernel, loaded, inputs, &|role| match role {
                Role::CellResult(field) => numbers.get(field),
                _ => None,
            })
        })
    }

    /// y = the sum of a task's kernels over all cells; rows of constrained unknowns are those of the direction, or 0.
    fn pass(&self, task: Task, inputs: Inputs<'_>, y: &mut Vector) -> Result<(), OperatorError> {
        self.arithmetic.check()?;
        for vector in [inputs.state, inputs.direction, Some(&*y)].into_iter().flatten() {
            self.fits(vector)?;
        }
        let y = y.array_mut().ok_or(DeviceError::Foreign)?;
        let added = self.added(task).map_or(y.len(), |added| added.max(self.constrained.end()));
        match inputs.direction.and_then(array) {
            Some(x) => self.constrained.begin(&self.arithmetic, x, y, added)?,
            // By a kernel: the fill of a driver may take twice as long (NVIDIA's OpenCL).
            None => self.arithmetic.clear(y, added)?,
        }
        let mut cells = 0;
        // Facets add to what cells may have stored.
        for facets in [false, true] {
            let kernels = self.kernels_of(task);
            for (kernel, loaded) in
                kernels.filter(|(kernel, _)| kernel.class.is_of_facets() == facets)
            {
                self.add(kernel, loaded, inputs, y)?;
                cells += self.groups[&group_key(kernel, loaded)].cells;
            }
        }
        if cells != self.on.mesh.n_cells() {
            let word = task.word();
            let missing = self.on.mesh.n_cells() - cells;
            return Err(OperatorError::new(format!("no {word} kernel for {missing} of the cells")));
        }
        Ok(())
    }

    /// The entries from the first on to which the kernels of a task add, where they store all others.
    fn added(&self, task: Task) -> Option<usize> {
        let mut kernels = self.kernels_of(task).filter(|(kernel, _)| !kernel.class.is_of_facets());
        let stored = kernels.all(|(_, loaded)| loaded.abi().stores_inside);
        self.arithmetic.layout().entries_on_borders().filter(|_| stored)
    }

    /// Whether a vector belongs to this operator.
    pub(crate) fn fits(&self, vector: &Vector) -> Result<(), OperatorError> {
        let here = vector.array().is_some_and(|(on, _)| Arc::ptr_eq(on, &self.arithmetic));
        if here && vector.len() == self.on.n_dofs() {
            return super::numbered_alike(vector, self.numbering);
        }
        let place = if here { "there" } else { "of another system, or elsewhere," };
        Err(OperatorError::new(format!(
            "a vector of {} entries {place} does not fit an operator of {} unknowns on {}",
            vector.len(),
            self.on.n_dofs(),
            self.device().name(),
        )))
    }

    fn linearised(&self) -> Inputs<'_> {
        Inputs { state: self.state.as_ref(), direction: None }
    }
}

/// Where the unknowns of an operator lie: beside each other where threads do that take them, in kernels of these plans,
/// and `apart` what kernels store inside of cells.
fn layout(on: &Discretisation, plans: &[Plan], apart: bool) -> Layout {
    let fields = on.fields.iter();
    Layout::joined(fields.map(|field| (layout_of(field, on, plans, apart), field.space.n_dofs())))
}

fn layout_of(field: &Field, on: &Discretisation, plans: &[Plan], apart: bool) -> Layout {
    let (space, components) = (&field.space, field.space.components());
    let tiled = plans.iter().any(|plan| plan.tiles);
    let layout = if tiled { Layout::tiles(components) } else { Layout::plain(components) };
    let action = plans.iter().find(|plan| plan.task == Task::Action).or(plans.first());
    if !on.mesh.cell().is_tensor() {
        return layout;
    }
    let line = space.element().degree() + 1;
    match action.map(|plan| plan.strategy) {
        Some(Strategy::CellPerLane) => layout.in_strips(space, 1),
        Some(Strategy::ThreadPerLine { .. }) if apart => layout.in_strips_apart(space, line),
        Some(Strategy::ThreadPerLine { .. } | Strategy::ThreadPerDof) => {
            layout.in_strips(space, line)
        }
        Some(Strategy::ThreadTransposition { .. }) | None => layout,
    }
}

fn group_key(kernel: &CellKernel, loaded: &Kernel) -> GroupKey {
    // Facets of a batch do not sum before anything goes to memory.
    let slots = match kernel.class {
        Class::Facets(_) => Vec::new(),
        _ => loaded.abi().slots.clone(),
    };
    GroupKey { class: kernel.class, lanes: loaded.abi().lanes, slots }
}

/// Whether this is what a kernel writes.
fn writes(kernel: &Kernel, what: impl Fn(Role) -> bool) -> bool {
    kernel.abi().arguments.iter().any(|argument| argument.written && what(argument.role))
}

fn array(vector: &Vector) -> Option<&Array> {
    vector.array().map(|(_, array)| array)
}

fn upload(device: &dyn Device, table: &Table) -> Result<Array, DeviceError> {
    match table {
        Table::F64(buffer) => device.upload::<f64>(buffer),
        Table::F32(buffer) => device.upload::<f32>(buffer),
        Table::U32(buffer) => device.upload::<u32>(buffer),
    }
}

impl From<DeviceError> for OperatorError {
    fn from(error: DeviceError) -> Self {
        Self::new(error.to_string())
    }
}

impl LinearOperator for DeviceOperator {
    fn size(&self) -> usize {
        self.on.n_dofs()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.pass(Task::Action, Inputs { direction: Some(x), ..self.linearised() }, y)
    }

    fn replayable(&self) -> bool {
        true
    }
}

impl NonlinearSystem for DeviceOperator {
    fn size(&self) -> usize {
        self.on.n_dofs()
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.pass(Task::Residual, Inputs { state: Some(u), direction: None }, r)
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.fits(u)?;
        match &mut self.state {
            Some(state) => state.copy_from(u),
            None => self.state = Some(u.clone()),
        }
        let compiled = self.compiled.clone();
        for (kernel, loaded) in compiled.kernels() {
            let key = group_key(kernel, loaded);
            if kernel.task != Task::Linearise {
                continue;
            }
            let stored = self.groups.get_mut(&key).and_then(|group| group.stored.take());
            let Some(stored) = stored else { continue };
            self.launch(kernel, loaded, self.linearised(), &|_| Some(&stored))?;
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
        let diagonal = diagonal.array_mut().ok_or(DeviceError::Foreign)?;
        Ok(self.constrained.fill(&self.arithmetic, diagonal, 1.0)?)
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
