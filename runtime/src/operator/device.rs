//! Device engine: tables are built on the host, uploaded once, and stay in device memory.
//!
//! ```text
//! y = 0, skipped inside cells if kernels store there; x is set aside in constrained DoFs, and 0 there (action)
//! cells without, then with hanging nodes, then facets
//! rows of constrained DoFs: x, which is put back (action), 0 (residual), 1 (diagonal)
//! ```
//!
//! takes three launches, or two without conditions, and no host transfer. This holds for atomic summation. With
//! colouring, each class has one launch per colour. With owner summation, each class stores the contributions of its
//! cells, and another launch sums them ([`owners`]).

mod owners;

use super::blocks::{
    ArgumentValue, AssignedKernel, CellBlock, KernelBlocks, KernelPass, KernelRun, facets_at,
    in_chunks, kept, pairs_of,
};
use super::constraints::{ConstrainedRows, DeviceConstraints, VectorConstraints};
use super::engine::Engine;
use super::memory::{DeviceMemory, Memory, MemoryArray, device_array, device_array_mut};
use super::table_cache::TableCache;
use super::{BuildError, CellClass};
use crate::algebra::vector::Vector;
use crate::device::cpu::Schedule;
use crate::device::{
    self, Arithmetic, Device, DeviceError, Kernel, SharedEntries, VectorLayout, places,
};
use crate::kernels::compile::DeviceKernels;
use crate::mesh::partition::Partition;
use crate::operator::batch::Batches;
use crate::solve::OperatorError;
use crate::space::discretisation::{Discretisation, Field};
use crate::support::timers::in_step;
use kernels_gen::abi::{Role, Slots};
use kernels_gen::plan::{Plan, Scatter, Strategy, Task};
use owners::OwnerSums;
use std::ops::Range;
use std::sync::Arc;

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
    memory: DeviceMemory,
    constraints: DeviceConstraints,
    compiled: Arc<DeviceKernels>,
    /// True if each class has one launch per colour.
    coloured: bool,
    partition: Arc<Partition>,
    /// Owner summation, if kernels use it.
    owners: Option<OwnerSums>,
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
        let separate = compiled.kernels().any(stores_inside);
        let layout = in_step("layout", || layout(on, &compiled.plans, separate, table_cache));
        table_cache.keep_places(&on.fields, &layout);
        let arithmetic = table_cache.arithmetic(&device, precision, &layout)?;
        let chunks = || Arc::new(Partition::for_device(&on.mesh, CHUNK));
        let partition = table_cache.partition.get_or_insert_with(|| in_step("chunks", chunks));
        Ok(Self {
            constraints: in_step("constraints", || DeviceConstraints::new(&arithmetic, on))?,
            memory: DeviceMemory(arithmetic),
            coloured: compiled.plans.iter().any(|plan| plan.scatter == Scatter::Coloured),
            partition: Arc::clone(partition),
            owners: None,
            compiled,
        })
    }

    fn arithmetic(&self) -> &Arc<Arithmetic> {
        &self.memory.0
    }

    fn device(&self) -> &dyn Device {
        &**self.arithmetic().device()
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
            Some(ArgumentValue::Array(array)) => array.device().ok(),
            // Indices contain the offset of the field.
            Some(ArgumentValue::FieldDofs(vector, _) | ArgumentValue::WholeVector(vector)) => {
                device_array(vector).ok()
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

    /// Adds the contributions of all kernels of a pass. Kernels for cells with and without hanging nodes run
    /// concurrently, since the smaller ones would not fill a device. Facets follow, as they add to stored values.
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
            let done = device.overlap(&mut || Ok(add(small)?), &mut || Ok(add(large)?));
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
        shared: &SharedEntries,
    ) -> Result<(), OperatorError> {
        let near = self.device().group().is_some_and(|devices| devices.is_near());
        // Pairs of cells add to what all cells have stored.
        let has_pairs = pass.runs().any(|run| run.block.batches.outside().is_some());
        let inner = !has_pairs && !pass.blocks.on.joins_beyond();
        let overlaps = !near && !self.coloured && self.owners.is_none() && inner;
        self.add_all(pass, y, if overlaps { CellSelection::Outer } else { CellSelection::All })?;
        let done = shared.exchange(self.arithmetic(), y, true, &mut || match overlaps {
            true => Ok(self.add_all(pass, y, CellSelection::Inner)?),
            false => Ok(()),
        });
        done.map_err(|error| OperatorError::new(error.to_string()))
    }

    /// Returns the first entry that the kernels of a pass add to; they store all earlier ones.
    fn added(&self, pass: KernelPass<'_>) -> Option<usize> {
        let mut works = pass.runs().map(|run| run.work);
        let stored = works.all(|work| work.kernel.class.is_of_facets() || work.abi.stores_inside);
        self.arithmetic().layout().entries_on_borders().filter(|_| stored && pass.is_whole())
    }
}

/// Returns the layout of an operator's vectors: that of earlier operators if possible, otherwise one adapted to the
/// threads of these plans; `separate` separates the entries that kernels store inside cells.
fn layout(
    on: &Discretisation,
    plans: &[Plan],
    separate: bool,
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
        (layout.unwrap_or_else(|| layout_of(field, on, plans, separate)), field.space.n_dofs())
    };
    VectorLayout::joined(on.fields.iter().map(own))
}

fn layout_of(field: &Field, on: &Discretisation, plans: &[Plan], separate: bool) -> VectorLayout {
    let (space, components) = (&field.space, field.space.components());
    let tiled = plans.iter().any(|plan| plan.tiles);
    let layout =
        if tiled { VectorLayout::tiles(components) } else { VectorLayout::plain(components) };
    let action = plans.iter().find(|plan| plan.task == Task::Action).or(plans.first());
    if !on.mesh.cell().is_tensor() {
        return layout;
    }
    // Threads that share a pair of cells read the nodes of each cell one after another.
    let shares = |plan: &Plan| {
        let of_pairs = on.pairs.get(plan.integral).is_some_and(Option::is_some);
        of_pairs && matches!(plan.strategy, Strategy::ThreadPerLine { .. })
    };
    if !space.element().is_continuous() && plans.iter().any(shares) {
        return layout;
    }
    let line = space.element().degree() + 1;
    match action.map(|plan| plan.strategy) {
        Some(Strategy::CellPerLane) => layout.in_strips(space, 1),
        Some(Strategy::ThreadPerLine { .. }) if separate => layout.in_separate_strips(space, line),
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

impl Engine for DeviceEngine {
    fn memory(&self) -> &dyn Memory {
        &self.memory
    }

    fn constraints(&self) -> &dyn VectorConstraints {
        &self.constraints
    }

    fn constraints_mut(&mut self) -> &mut dyn VectorConstraints {
        &mut self.constraints
    }

    fn batches(
        &self,
        on: &Discretisation,
        (class, lanes, slots): (CellClass, usize, &[Slots]),
    ) -> Result<Batches, BuildError> {
        let keep = kept(on, class);
        if let Some(pairs) = pairs_of(on, class) {
            return Ok(match self.coloured {
                true => Batches::pairs_coloured(on, lanes, &pairs),
                false => Batches::pairs_once(lanes, &pairs),
            });
        }
        Ok(match (class, self.coloured) {
            (CellClass::Facets(integral), true) => {
                Batches::facets_coloured(&on.mesh, lanes, on.facets_of(integral))
            }
            (CellClass::FacetsAt(local, integral), true) => {
                Batches::facets_coloured(&on.mesh, lanes, &facets_at(on, local, integral))
            }
            (_, true) => Batches::coloured(&on.mesh, lanes, keep),
            (_, false) => in_chunks(on, &self.partition, (class, lanes, slots))?,
        })
    }

    /// Builds the lists of owner summation, if kernels use it.
    fn prepare(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError> {
        let (layout, fields) = (self.arithmetic().layout(), &blocks.on.fields);
        let kernels = blocks.works().map(|(work, block)| (&work.abi, work.block, &*block.batches));
        self.owners = OwnerSums::new(self.device(), blocks.precision, layout, fields, kernels)?;
        Ok(())
    }

    fn store(&self, run: KernelRun<'_>, into: &mut MemoryArray) -> Result<(), OperatorError> {
        let into = &*into;
        self.launch(run, &|_| into.device().ok(), CellSelection::All)
    }

    fn sum(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.arithmetic().check()?;
        let shared = y.shared_entries().cloned();
        let y = device_array_mut(y)?;
        self.constraints.begin(pass.inputs.direction, y, self.added(pass))?;
        match shared {
            Some(shared) => self.add_in_common(pass, y, &shared)?,
            None => self.add_all(pass, y, CellSelection::All)?,
        }
        Ok(self.constraints.complete(rows, pass.inputs.direction, y)?)
    }

    fn prolong(&self, pass: KernelPass<'_>, fine: &mut Vector) -> Result<(), OperatorError> {
        self.arithmetic().check()?;
        let fine = device_array(fine)?;
        pass.runs().try_for_each(|run| self.launch(run, &|_| Some(fine), CellSelection::All))
    }

    fn add_entries(
        &self,
        runs: &[(KernelRun<'_>, &MemoryArray)],
        _: Option<&Schedule>,
        entries: &mut MemoryArray,
    ) -> Result<(), OperatorError> {
        let entries = entries.device_mut()?;
        self.arithmetic().check()?;
        self.device().clear(entries)?;
        let entries = &*entries;
        for (run, positions) in runs {
            let own = |role: Role| match role {
                Role::Entries => positions.device().ok(),
                _ => Some(entries),
            };
            self.launch(*run, &own, CellSelection::All)?;
        }
        Ok(())
    }

    fn streamed(&self, work: &AssignedKernel, block: &CellBlock) -> usize {
        let owners = self.owners.as_ref();
        owners.map_or(0, |owners| owners.bytes(work.block, &work.abi, &block.batches))
    }
}
