//! Device engine: tables are built on the host, uploaded once, and stay in device memory.
//!
//! ```text
//! y = 0, or x in the rows of constrained DoFs (action); skipped inside cells if kernels store there
//! batches without, then with constrained DoFs, which add to all other rows; then facets
//! ```
//!
//! takes three launches, or two without conditions, and no host transfer. This holds for atomic summation. With
//! colouring, each class has one launch per colour. With owner summation, each class stores the contributions of its
//! cells, and another launch sums them ([`owners`]).

mod owners;

use super::blocks::{
    ArgumentValue, AssignedKernel, CellBlock, KernelBlocks, KernelPass, KernelRun, in_chunks, kept,
};
use super::engine::{AffineTreatment, ConstrainedRows, Engine, EngineArray, ObliqueTreatment};
use super::matrix::lists::SummationLists;
use super::matrix::{AssembledMatrix, StorageFormat, UnitEntries, VendorMatrix};
use super::table_cache::TableCache;
use super::tables::HostTable;
use super::{BuildError, CellClass, CellSubset, affine, oblique};
use crate::algebra::vector::{Precision, Vector};
use crate::device::acoo::{AcooAssembly, ElementPositions};
use crate::device::{
    self, Arithmetic, Device, DeviceCombinations, DeviceError, DeviceLists, EntrySelection, Kernel,
    Module, SharedEntries, VectorLayout, places,
};
use crate::kernels::compile::DeviceKernels;
use crate::mesh::partition::Partition;
use crate::operator::batch::Batches;
use crate::solve::OperatorError;
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::{Discretisation, Field};
use kernels_gen::abi::{Role, Slots};
use kernels_gen::dialect::GeneratedSource;
use kernels_gen::dialect::c::sum::{ALONE, NAME, UNKNOWNS, sum_of_cells, sum_of_cells_alone};
use kernels_gen::dialect::c::{Vocabulary, rows, slices};
use kernels_gen::plan::{Plan, Scatter, Strategy, Task};
use owners::OwnerSums;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Number of jointly numbered cells; on a device only full thread groups matter.
const CHUNK: usize = 1 << 16;

/// Selection of a kernel's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellSelection {
    /// All cells.
    All,
    /// Cells in parts adjacent to other processes.
    Outer,
    /// Other cells.
    Inner,
}

impl CellSelection {
    /// Returns the range of batches; the first `outer` parts are the outer ones.
    fn of(self, batches: &Batches, outer: usize) -> Range<usize> {
        let parts = batches.parts();
        let end = parts[..outer.min(parts.len())].last().map_or(0, |part| part.end);
        match self {
            Self::All => 0..batches.len(),
            Self::Outer => 0..end,
            Self::Inner => end..batches.len(),
        }
    }
}

/// A device with its kernels.
pub(super) struct DeviceEngine {
    arithmetic: Arc<Arithmetic>,
    compiled: Arc<DeviceKernels>,
    /// True if each class has one launch per colour.
    coloured: bool,
    partition: Arc<Partition>,
    n_dofs: usize,
    constrained: EntrySelection,
    /// Constrained degrees of freedom whose rows this process sets; `None` if it sets all.
    own_rows: Option<EntrySelection>,
    /// Oblique conditions.
    oblique: DeviceCombinations,
    /// Affine constraints, if there are any.
    affine: Option<DeviceAffineConstraints>,
    /// Owner summation, if kernels use it.
    owners: Option<OwnerSums>,
    /// Kernels of matrix sums and products, loaded on demand.
    sums: OnceLock<Module>,
    sums_alone: OnceLock<Module>,
    products: OnceLock<Module>,
    products_by_slices: OnceLock<Module>,
    /// Merges element entries into rows, if requested.
    acoo: Option<AcooAssembly>,
}

/// Affine constraints: see [`affine`].
struct DeviceAffineConstraints {
    direction: DeviceLists,
    fixed: Option<DeviceLists>,
    transposed: DeviceLists,
    unknowns: EntrySelection,
}

impl DeviceAffineConstraints {
    fn new(
        arithmetic: &Arithmetic,
        len: usize,
        sums: &affine::ConstraintRows,
    ) -> Result<Self, DeviceError> {
        let listed = |lists: &device::EntryLists| DeviceLists::new(arithmetic, len, lists);
        let unknowns = sums.given.iter().map(|&place| (place as usize, 0.0));
        Ok(Self {
            direction: listed(&sums.direction)?,
            fixed: sums.fixed.as_ref().map(listed).transpose()?,
            transposed: listed(&sums.transposed)?,
            unknowns: EntrySelection::new(arithmetic, len, unknowns)?,
        })
    }

    fn close(
        &self,
        on: &Arithmetic,
        what: AffineTreatment<'_>,
        y: &mut device::Array,
    ) -> Result<(), DeviceError> {
        match what {
            AffineTreatment::Direction => self.direction.sum(on, 0.0, 0.0, y),
            AffineTreatment::Values => {
                self.fixed.as_ref().unwrap_or(&self.direction).sum(on, 0.0, 1.0, y)
            }
            AffineTreatment::Transposed(rows) => {
                self.transposed.sum(on, 1.0, 0.0, y)?;
                match rows {
                    ConstrainedRows::Zero => self.unknowns.fill(on, y, 0.0),
                    ConstrainedRows::One => self.unknowns.fill(on, y, 1.0),
                    ConstrainedRows::Identity(x) => {
                        self.unknowns.copy(on, remote(x).ok_or(DeviceError::Foreign)?, y)
                    }
                }
            }
        }
    }
}

impl DeviceEngine {
    /// Creates the engine of the kernels loaded by a device.
    pub(super) fn new(
        on: &Discretisation,
        compiled: Arc<DeviceKernels>,
        table_cache: &mut TableCache,
    ) -> Result<Self, BuildError> {
        let (device, precision) = (Arc::clone(&compiled.device), compiled.precision);
        let stores_inside = |(_, loaded): (_, &Kernel)| loaded.abi().stores_inside;
        let fields = on.fields.iter().map(|own| (own.space.components(), own.space.n_dofs()));
        let tiled = compiled.plans.iter().any(|plan| plan.tiles);
        places(&fields.collect::<Vec<_>>(), tiled)?;
        let apart = compiled.kernels().any(stores_inside);
        let layout = layout(on, &compiled.plans, apart, table_cache);
        table_cache.keep_places(&on.fields, &layout);
        let arithmetic = table_cache.arithmetic(&device, precision, &layout)?;
        let constraints = on.conditions().map(|(dof, value)| (layout.place(dof), value));
        let constraints: Vec<(usize, f64)> = constraints.collect();
        let chunks = || Arc::new(Partition::for_device(&on.mesh, CHUNK));
        let partition = table_cache.partition.get_or_insert_with(chunks);
        let len = layout.len(on.n_dofs());
        let own_rows = on.sharing().map(|sharing| {
            let own = on.conditions().filter(|(dof, _)| !sharing.is_of_others(*dof));
            EntrySelection::new(
                &arithmetic,
                len,
                own.map(|(dof, value)| (layout.place(dof), value)),
            )
        });
        let oblique = oblique::combinations(on, |dof| layout.place(dof));
        Ok(Self {
            oblique: DeviceCombinations::new(&arithmetic, len, &oblique)?,
            own_rows: own_rows.transpose()?,
            constrained: EntrySelection::new(&arithmetic, len, constraints.into_iter())?,
            coloured: compiled.plans.iter().any(|plan| plan.scatter == Scatter::Coloured),
            partition: Arc::clone(partition),
            n_dofs: on.n_dofs(),
            affine: None,
            owners: None,
            sums: OnceLock::new(),
            sums_alone: OnceLock::new(),
            products: OnceLock::new(),
            products_by_slices: OnceLock::new(),
            acoo: None,
            arithmetic,
            compiled,
        })
    }

    fn device(&self) -> &dyn Device {
        &**self.arithmetic.device()
    }

    /// Runs a kernel on batches of its block, colour by colour if it adds; `own` returns the written arrays and the
    /// positions of matrix entries.
    fn launch<'a>(
        &'a self,
        run: KernelRun<'a>,
        own: &dyn Fn(Role) -> Option<&'a device::Array>,
        side: CellSelection,
    ) -> Result<(), OperatorError> {
        let arguments = run.arguments(|wanted| match run.read(wanted.role) {
            _ if wanted.written || wanted.role == Role::Entries => own(wanted.role),
            Some(ArgumentValue::Array(array)) => array.there(),
            // Indices contain the offset of the field.
            Some(ArgumentValue::Unknowns(vector, _) | ArgumentValue::WholeVector(vector)) => {
                remote(vector)
            }
            None => None,
        })?;
        let (work, batches) = (run.work, &run.block.batches);
        let added = |role: Role| matches!(role, Role::Result(_) | Role::Matrix);
        let adds = self.coloured && writes(work, added);
        let all = side.of(batches, self.partition.outer_parts());
        let ranges = if adds { batches.parts() } else { std::slice::from_ref(&all) };
        let loaded = self.compiled.kernel(work.number).ok_or(DeviceError::Foreign)?;
        for range in ranges {
            self.device().launch(loaded, range.clone(), &arguments)?;
        }
        Ok(())
    }

    fn written<'o>(
        &self,
        known: &'o OnceLock<Module>,
        source: impl FnOnce(&Vocabulary, Precision) -> GeneratedSource,
    ) -> Result<&'o Module, DeviceError> {
        if let Some(known) = known.get() {
            return Ok(known);
        }
        let (device, precision) = (self.device(), self.arithmetic.precision());
        let module = device.load(&source(device.words(), precision))?;
        Ok(known.get_or_init(|| module))
    }

    /// Adds the contributions of a kernel to a vector.
    fn add(
        &self,
        run: KernelRun<'_>,
        y: &device::Array,
        side: CellSelection,
    ) -> Result<(), OperatorError> {
        let stores = |role: Role| matches!(role, Role::CellResult(_));
        let owners = self.owners.as_ref().filter(|_| writes(run.work, stores));
        let Some(owners) = owners else { return self.launch(run, &|_| Some(y), side) };
        owners.add(self.device(), run.work.block, y, |numbers| {
            let own = |role: Role| match role {
                Role::CellResult(field) => numbers.get(field),
                _ => None,
            };
            self.launch(run, &own, CellSelection::All)
        })
    }

    /// Adds the contributions of all kernels of a pass. Kernels of different parts run concurrently, since the smaller
    /// ones would not fill a device. Facets follow, as they add to stored values.
    fn add_all(
        &self,
        pass: KernelPass<'_>,
        y: &device::Array,
        side: CellSelection,
    ) -> Result<(), OperatorError> {
        let of_facets = |run: &KernelRun<'_>| run.work.kernel.class.is_of_facets();
        let (facets, cells): (Vec<KernelRun<'_>>, Vec<KernelRun<'_>>) =
            pass.runs().partition(of_facets);
        let integral = |run: &KernelRun<'_>| run.work.kernel.class.integral();
        let one = cells.iter().all(|run| integral(run) == integral(&cells[0]));
        let add = |runs: &[KernelRun<'_>]| runs.iter().try_for_each(|&run| self.add(run, y, side));
        if cells.len() > 1 && one && !self.coloured && self.owners.is_none() {
            let lanes = |run: &KernelRun<'_>| run.block.batches.cells().len();
            let mut cells = cells;
            cells.sort_by_key(lanes);
            let (small, large) = cells.split_at(cells.len() - 1);
            let device = self.device();
            let done = device.beside(&mut || Ok(add(small)?), &mut || Ok(add(large)?));
            done.map_err(|error| OperatorError::new(error.to_string()))?;
        } else {
            add(&cells)?;
        }
        add(&facets)
    }

    /// Adds the contributions of all kernels to a vector with interface degrees of freedom. Interface sums are
    /// exchanged while the inner cells run. Colouring and owner summation exclude that, and nearby devices do not need
    /// it: their messages are faster than another launch.
    fn add_in_common(
        &self,
        pass: KernelPass<'_>,
        y: &device::Array,
        joint: &SharedEntries,
    ) -> Result<(), OperatorError> {
        let near = self.device().group().is_some_and(|devices| devices.is_near());
        let apart = !near && !self.coloured && self.owners.is_none();
        self.add_all(pass, y, if apart { CellSelection::Outer } else { CellSelection::All })?;
        let done = joint.exchange(&self.arithmetic, y, true, &mut || match apart {
            true => Ok(self.add_all(pass, y, CellSelection::Inner)?),
            false => Ok(()),
        });
        done.map_err(|error| OperatorError::new(error.to_string()))
    }

    /// Returns the first entry that the kernels of a pass add to; they store all earlier ones.
    fn added(&self, pass: KernelPass<'_>) -> Option<usize> {
        let mut works = pass.runs().map(|run| run.work);
        let stored = works.all(|work| work.kernel.class.is_of_facets() || work.abi.stores_inside);
        self.arithmetic.layout().entries_on_borders().filter(|_| stored && pass.is_whole())
    }
}

/// Returns the layout of an operator's vectors: that of earlier operators if possible, otherwise one adapted to the
/// threads of these plans; `apart` separates the entries that kernels store inside cells.
fn layout(
    on: &Discretisation,
    plans: &[Plan],
    apart: bool,
    table_cache: &TableCache,
) -> VectorLayout {
    // With several fields, components keep their tiles, whatever they had alone.
    let several = on.fields.len() > 1;
    let tiled = |field: &Field| plans.iter().any(|plan| plan.tiles) && field.space.components() > 1;
    let known = |field: &Field| {
        let known = table_cache.places(field);
        known.filter(|part| several || part.is_tiled() == tiled(field))
    };
    let own = |field: &Field| {
        let layout = known(field).map(VectorLayout::like);
        (layout.unwrap_or_else(|| layout_of(field, on, plans, apart)), field.space.n_dofs())
    };
    VectorLayout::joined(on.fields.iter().map(own))
}

fn layout_of(field: &Field, on: &Discretisation, plans: &[Plan], apart: bool) -> VectorLayout {
    let (space, components) = (&field.space, field.space.components());
    let tiled = plans.iter().any(|plan| plan.tiles);
    let layout =
        if tiled { VectorLayout::tiles(components) } else { VectorLayout::plain(components) };
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

/// Returns whether a kernel writes such an argument.
fn writes(work: &AssignedKernel, what: impl Fn(Role) -> bool) -> bool {
    work.abi.arguments.iter().any(|argument| argument.written && what(argument.role))
}

fn there(array: &EngineArray) -> Result<&device::Array, DeviceError> {
    array.there().ok_or(DeviceError::Foreign)
}

fn remote(vector: &Vector) -> Option<&device::Array> {
    vector.array().map(|(_, array)| array)
}

impl Engine for DeviceEngine {
    fn batches(
        &self,
        on: &Discretisation,
        (class, lanes, slots): (CellClass, usize, &[Slots]),
        parts: &[CellSubset],
    ) -> Result<Batches, BuildError> {
        let keep = kept(on, class, parts);
        Ok(match (class, self.coloured) {
            (CellClass::Facets(integral), true) => {
                Batches::facets_coloured(&on.mesh, lanes, on.facets_of(integral))
            }
            (_, true) => Batches::coloured(&on.mesh, lanes, keep),
            (_, false) => in_chunks(on, &self.partition, (class, lanes, slots), parts)?,
        })
    }

    fn array(&self, table: HostTable) -> Result<EngineArray, DeviceError> {
        let device = self.device();
        Ok(EngineArray::Device(match &table {
            HostTable::F64(buffer) => device.upload::<f64>(buffer)?,
            HostTable::F32(buffer) => device.upload::<f32>(buffer)?,
            HostTable::U32(buffer) => device.upload::<u32>(buffer)?,
        }))
    }

    fn reals(&self, values: &[f64]) -> Result<EngineArray, DeviceError> {
        Ok(EngineArray::Device(self.arithmetic.upload(values)?))
    }

    fn numbers<'a>(&self, array: &'a EngineArray) -> Result<Cow<'a, [f64]>, DeviceError> {
        let array = array.there().ok_or(DeviceError::Foreign)?;
        self.device().download(array).map(Cow::Owned)
    }

    fn integers<'a>(&self, array: &'a EngineArray) -> Result<Cow<'a, [u32]>, DeviceError> {
        let array = array.there().ok_or(DeviceError::Foreign)?;
        let numbers = self.device().download(array)?;
        Ok(numbers.into_iter().map(|number| number as u32).collect())
    }

    fn zeros(&self, len: usize) -> Result<EngineArray, DeviceError> {
        Ok(EngineArray::Device(self.arithmetic.zeros(len)?))
    }

    fn overwrite(&self, array: &mut EngineArray, values: &[f64]) -> Result<(), DeviceError> {
        match array {
            EngineArray::Device(array) => self.arithmetic.overwrite(array, 0, values),
            EngineArray::Host(_) => Err(DeviceError::Foreign),
        }
    }

    /// Builds the lists of owner summation, if kernels use it.
    fn prepare(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError> {
        let (layout, fields) = (self.arithmetic.layout(), &blocks.on.fields);
        let kernels = blocks.works().map(|(work, block)| (&work.abi, work.block, &*block.batches));
        self.owners = OwnerSums::new(self.device(), blocks.precision, layout, fields, kernels)?;
        Ok(())
    }

    fn store(&self, run: KernelRun<'_>, into: &mut EngineArray) -> Result<(), OperatorError> {
        let into = &*into;
        self.launch(run, &|_| into.there(), CellSelection::All)
    }

    fn sum(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let (arithmetic, constrained) = (&*self.arithmetic, &self.constrained);
        arithmetic.check()?;
        let joint = y.joint().cloned();
        let y = y.array_mut().ok_or(DeviceError::Foreign)?;
        let added = self.added(pass).map_or(y.len(), |added| added.max(constrained.end()));
        match rows {
            // Rows of several processes are summed.
            ConstrainedRows::Identity(x) => {
                let own = self.own_rows.as_ref().unwrap_or(constrained);
                own.begin(arithmetic, remote(x).ok_or(DeviceError::Foreign)?, y, added)?;
            }
            // By a kernel: the driver's fill may take twice as long (NVIDIA's OpenCL).
            ConstrainedRows::Zero | ConstrainedRows::One => arithmetic.clear(y, added)?,
        }
        match joint {
            Some(joint) => self.add_in_common(pass, y, &joint)?,
            None => self.add_all(pass, y, CellSelection::All)?,
        }
        if let ConstrainedRows::One = rows {
            constrained.fill(arithmetic, y, 1.0)?;
        }
        Ok(())
    }

    fn spread(&self, pass: KernelPass<'_>, fine: &mut Vector) -> Result<(), OperatorError> {
        self.arithmetic.check()?;
        let fine = fine.array().map(|(_, array)| array).ok_or(DeviceError::Foreign)?;
        pass.runs().try_for_each(|run| self.launch(run, &|_| Some(fine), CellSelection::All))
    }

    fn indices(&self, indices: Vec<u32>, _: usize, _: usize) -> Result<EngineArray, DeviceError> {
        Ok(EngineArray::Device(self.device().upload::<u32>(&indices)?))
    }

    fn add_entries(
        &self,
        runs: &[(KernelRun<'_>, &EngineArray)],
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        let EngineArray::Device(entries) = entries else { return Err(DeviceError::Foreign.into()) };
        self.arithmetic.check()?;
        self.device().clear(entries)?;
        let entries = &*entries;
        for (run, places) in runs {
            let own = |role: Role| match role {
                Role::Entries => places.there(),
                _ => Some(entries),
            };
            self.launch(*run, &own, CellSelection::All)?;
        }
        Ok(())
    }

    fn sum_entries(
        &self,
        stored: &[(&EngineArray, &SummationLists)],
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        let EngineArray::Device(entries) = entries else { return Err(DeviceError::Foreign.into()) };
        let device = self.device();
        let sums = self.written(&self.sums, sum_of_cells)?;
        let mut kernel = sums.kernel(NAME).map_err(DeviceError::from)?;
        let others = kernel;
        if !stored.is_empty() && entries.len().is_multiple_of(UNKNOWNS) {
            let alone = self.written(&self.sums_alone, sum_of_cells_alone)?;
            kernel = alone.kernel(ALONE).map_err(DeviceError::from)?;
        } else {
            device.clear(entries)?;
        }
        let groups = 0..entries.len().div_ceil(UNKNOWNS);
        for (stored, lists) in stored {
            let [starts, elements] = [there(&lists.starts)?, there(&lists.elements)?];
            device.launch(kernel, groups.clone(), &[starts, elements, there(stored)?, entries])?;
            kernel = others;
        }
        Ok(())
    }

    fn prepare_elements(
        &mut self,
        elements: &ElementPositions,
        len: usize,
    ) -> Result<(), DeviceError> {
        let (device, precision) = (self.arithmetic.device(), self.arithmetic.precision());
        let rows = len.next_multiple_of(rows::ROWS);
        self.acoo = Some(AcooAssembly::new(device, precision, elements, (len, rows))?);
        Ok(())
    }

    fn merge_elements(
        &self,
        elements: &ElementPositions,
        first: EngineArray,
        others: Vec<(usize, EngineArray)>,
        _: usize,
    ) -> Result<[EngineArray; 3], OperatorError> {
        let (Some(acoo), EngineArray::Device(mut cells)) = (&self.acoo, first) else {
            return Err(DeviceError::Foreign.into());
        };
        for (first, own) in &others {
            acoo.append(there(own)?, &mut cells, *first)?;
        }
        // The last entries are the diagonals of constrained degrees of freedom.
        acoo.ones(&mut cells, elements.works.last().map_or(0, |work| work.first))?;
        drop(others);
        let made = acoo.assemble(cells)?;
        Ok([made.starts, made.columns, made.entries].map(EngineArray::Device))
    }

    fn fixed(&self, which: Vec<u32>, n: usize) -> Result<UnitEntries, DeviceError> {
        Ok(UnitEntries::Device(EntrySelection::listed(&self.arithmetic, n, &which)?))
    }

    fn listed(&self, unknowns: Vec<u32>, len: usize) -> Result<UnitEntries, DeviceError> {
        let layout = self.arithmetic.layout();
        let places = unknowns.into_iter().map(|at| layout.place(at as usize) as u32);
        let places: Vec<u32> = places.collect();
        Ok(UnitEntries::Device(EntrySelection::listed(&self.arithmetic, layout.len(len), &places)?))
    }

    fn take_listed(
        &self,
        which: &UnitEntries,
        x: &Vector,
        into: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        let (UnitEntries::Device(which), EngineArray::Device(into)) = (which, into) else {
            return Err(DeviceError::Foreign.into());
        };
        let x = remote(x).ok_or(DeviceError::Foreign)?;
        Ok(which.read(&self.arithmetic, x, into)?)
    }

    fn set_entries(
        &self,
        which: &UnitEntries,
        value: f64,
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        let (UnitEntries::Device(which), EngineArray::Device(entries)) = (which, entries) else {
            return Err(DeviceError::Foreign.into());
        };
        Ok(which.fill(&self.arithmetic, entries, value)?)
    }

    fn vendor(
        &self,
        starts: &EngineArray,
        columns: &EngineArray,
        entries: &EngineArray,
        len: usize,
    ) -> Result<Option<VendorMatrix>, DeviceError> {
        let arrays = [there(starts)?, there(columns)?, there(entries)?];
        Ok(self.device().sparse_in_place(len, arrays)?.map(Mutex::new))
    }

    fn multiply(
        &self,
        matrix: &AssembledMatrix,
        x: &Vector,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.arithmetic.check()?;
        let y = y.array_mut().ok_or(DeviceError::Foreign)?;
        let x = remote(x).ok_or(DeviceError::Foreign)?;
        if let StorageFormat::Rows(rows) = &matrix.lies
            && let Some(vendor) = &rows.vendor
        {
            let vendor = vendor.lock().unwrap_or_else(PoisonError::into_inner);
            return Ok(vendor.apply(x, y)?);
        }
        // Padding entries have no row.
        if y.len() > self.n_dofs {
            self.arithmetic.clear(y, y.len())?;
        }
        let (module, name, own, of_group) = match &matrix.lies {
            StorageFormat::Rows(own) => {
                let module = self.written(&self.products, rows::rows_times_vector)?;
                (module, rows::NAME, [&own.starts, &own.columns, &own.entries], rows::ROWS)
            }
            StorageFormat::Slices(own) => {
                let module = self.written(&self.products_by_slices, slices::slices_times_vector)?;
                let arrays = [&own.starts, &own.columns, &own.entries];
                (module, slices::NAME, arrays, slices::SLICES)
            }
        };
        let [starts, columns, entries] = [there(own[0])?, there(own[1])?, there(own[2])?];
        let kernel = module.kernel(name).map_err(DeviceError::from)?;
        let groups = 0..(starts.len() - 1).div_ceil(of_group);
        Ok(self.device().launch(kernel, groups, &[starts, columns, entries, x, y])?)
    }

    fn is_oblique(&self) -> bool {
        !self.oblique.is_empty()
    }

    fn hold(&self, what: ObliqueTreatment<'_>, y: &mut Vector) -> Result<(), OperatorError> {
        let (arithmetic, own) = (&*self.arithmetic, &self.oblique);
        let y = y.array_mut().ok_or(DeviceError::Foreign)?;
        Ok(match what {
            ObliqueTreatment::Homogeneous => own.hold(arithmetic, y, false),
            ObliqueTreatment::Values => own.hold(arithmetic, y, true),
            ObliqueTreatment::Even => own.even(arithmetic, y),
            ObliqueTreatment::Diagonal { diagonal, x } => {
                let d = remote(diagonal).ok_or(DeviceError::Foreign)?;
                own.hold_as(arithmetic, d, remote(x).ok_or(DeviceError::Foreign)?, y)
            }
        }?)
    }

    fn constrain(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError> {
        self.affine = match affine.is_empty() {
            true => None,
            false => {
                let (layout, n) = (self.arithmetic.layout(), self.n_dofs);
                let sums = affine::ConstraintRows::new(affine, |dof| layout.place(dof));
                Some(DeviceAffineConstraints::new(&self.arithmetic, layout.len(n), &sums)?)
            }
        };
        Ok(())
    }

    fn close(&self, what: AffineTreatment<'_>, y: &mut Vector) -> Result<(), OperatorError> {
        let Some(affine) = &self.affine else { return Ok(()) };
        let y = y.array_mut().ok_or(DeviceError::Foreign)?;
        Ok(affine.close(&self.arithmetic, what, y)?)
    }

    fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        let count = values.len().saturating_sub(self.oblique.n_values());
        let (own, combined) = values.split_at(count);
        self.constrained.set(&self.arithmetic, own)?;
        self.oblique.set(&self.arithmetic, combined)
    }

    fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        let u = u.array_mut().ok_or(DeviceError::Foreign)?;
        self.constrained.put(&self.arithmetic, u)?;
        Ok(self.oblique.hold(&self.arithmetic, u, true)?)
    }

    fn streamed(&self, work: &AssignedKernel, block: &CellBlock) -> usize {
        let owners = self.owners.as_ref();
        owners.map_or(0, |owners| owners.bytes(work.block, &work.abi, &block.batches))
    }

    fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        Some(&self.arithmetic)
    }
}
