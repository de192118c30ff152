//! Kernels of an operator with their cells and input tables ([`KernelBlocks`]).
//!
//! A block contains the cells of one class in batches of one width, with the tables that its kernels read. A
//! [`KernelRun`] is a kernel over its block; a [`KernelPass`] is a set of runs that sum into one vector.

use super::engine::{Engine, EngineArray};
use super::matrix::UnitEntries;
use super::table_cache::{TableCache, TableKey};
use super::tables::{self, TableKind};
use super::{BuildError, CellClass, CellKernel, CellSubset};
use crate::algebra::vector::{Precision, Vector};
use crate::device::{DeviceError, VectorLayout};
use crate::mesh::partition::Partition;
use crate::operator::batch::{Batches, constrained_cells};
use crate::solve::OperatorError;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::parallel::*;
use kernels_gen::abi::{self, KernelAbi, Role, Slots};
use kernels_gen::plan::{Geometry, Task};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

/// Cells of one class in batches of one width, with their tables.
pub(super) struct CellBlock {
    class: CellClass,
    /// Slots of a batch for each field, for kernels of thread groups; empty otherwise.
    slots: Vec<Slots>,
    pub(super) batches: Arc<Batches>,
    /// Index of its tables in the shared cache.
    rack: usize,
    /// Number of cells; 0 for facets.
    cells: usize,
    tables: BTreeMap<TableKind, Arc<EngineArray>>,
    /// Output of [`Task::Linearise`].
    stored: Option<EngineArray>,
    /// Output of [`Task::Matrix`].
    matrices: Option<EngineArray>,
}

/// A kernel assigned to a block.
pub(super) struct AssignedKernel {
    pub(super) kernel: CellKernel,
    pub(super) abi: KernelAbi,
    /// Index among the kernels of the engine.
    pub(super) number: usize,
    /// Index of its block.
    pub(super) block: usize,
}

/// Input vectors of a pass.
#[derive(Clone, Copy, Default)]
pub(super) struct PassInputs<'a> {
    pub(super) state: Option<&'a Vector>,
    pub(super) direction: Option<&'a Vector>,
    /// Vector of a finer space.
    pub(super) fine: Option<&'a Vector>,
}

/// Kernels of an operator with all their inputs except vectors.
pub(super) struct KernelBlocks {
    pub(super) on: Arc<Discretisation>,
    pub(super) precision: Precision,
    /// In summation order: cells without constrained degrees of freedom, other cells, facets.
    works: Vec<AssignedKernel>,
    blocks: Vec<CellBlock>,
    /// Kernels of [`Task::Flux`], which process ranges of cells ([`super::fluxes`]); their blocks are empty.
    fluxes: Vec<AssignedKernel>,
    /// Time and parameters.
    pub(super) params: EngineArray,
    /// Nodal auxiliary data.
    aux: BTreeMap<usize, Arc<EngineArray>>,
    /// Nodal data copied from vectors.
    taken: BTreeMap<usize, NodalEntries>,
    /// Table cache shared with other operators.
    pub(super) table_cache: TableCache,
    /// Number of tables built.
    pub(super) made: usize,
}

/// Entries of vectors that become nodal data.
struct NodalEntries {
    which: UnitEntries,
    count: usize,
    /// True if the data is currently 0.
    zero: bool,
}

/// Value of a read argument.
pub(super) enum ArgumentValue<'a> {
    /// An array of the operator.
    Array(&'a EngineArray),
    /// The degrees of freedom of a field.
    Unknowns(&'a Vector, usize),
    /// A whole vector.
    WholeVector(&'a Vector),
}

/// A kernel over its block, with its inputs.
#[derive(Clone, Copy)]
pub(super) struct KernelRun<'a> {
    pub(super) work: &'a AssignedKernel,
    pub(super) block: &'a CellBlock,
    pub(super) blocks: &'a KernelBlocks,
    inputs: PassInputs<'a>,
}

/// Kernels that sum into one vector.
#[derive(Clone, Copy)]
pub(super) struct KernelPass<'a> {
    pub(super) blocks: &'a KernelBlocks,
    task: Task,
    inputs: PassInputs<'a>,
    /// Restriction to some parts of the cells.
    parts: Option<&'a [CellSubset]>,
}

/// Returns the batches of a class in the chunks of a partition, with slots for the nodes of each field if there are
/// any.
pub(super) fn in_chunks(
    on: &Discretisation,
    partition: &Partition,
    (class, lanes, slots): (CellClass, usize, &[Slots]),
    parts: &[CellSubset],
) -> Result<Batches, BuildError> {
    let keep = kept(on, class, parts);
    Ok(match class {
        CellClass::Facets(integral) => Batches::of_facets(partition, lanes, on.facets_of(integral)),
        CellClass::Cells(..) if slots.is_empty() => Batches::new(partition, lanes, keep),
        CellClass::Cells(..) => {
            let fields = on.fields.iter().map(|field| &*field.space);
            let fields: Vec<_> = fields.zip(slots.iter().copied()).collect();
            Batches::in_slots(partition, lanes, &fields, keep)?
        }
    })
}

/// Returns the part of each cell.
fn parts_of_cells(on: &Discretisation) -> Vec<CellSubset> {
    let constrained = constrained_cells(on.mesh.n_cells(), &on.constrained());
    let free =
        |constrained: bool| if constrained { CellSubset::Constrained } else { CellSubset::Free };
    match on.mesh.hanging() {
        None => constrained.into_iter().map(free).collect(),
        Some(words) => {
            let part = |(&word, constrained)| match word {
                0 => free(constrained),
                _ => CellSubset::Hanging,
            };
            words.par_iter().zip(constrained).map(part).listed()
        }
    }
}

/// Returns the predicate of the cells of a class.
pub(super) fn kept<'a>(
    on: &Discretisation,
    class: CellClass,
    parts: &'a [CellSubset],
) -> impl Fn(usize) -> bool + use<'a> {
    let (part, region) = match class {
        CellClass::Cells(part, integral) => (Some(part), on.cells_of(integral)),
        CellClass::Facets(_) => (None, None),
    };
    let inside = region.map(|cells| {
        let mut inside = vec![false; on.mesh.n_cells()];
        cells.iter().for_each(|&cell| inside[cell as usize] = true);
        inside
    });
    move |cell| {
        part.is_some_and(|part| part.has(cell, parts))
            && inside.as_ref().is_none_or(|inside| inside[cell])
    }
}

/// Returns whether kernels add contributions of several cells to one degree of freedom, so that the order of cells
/// matters.
fn shares(on: &Discretisation, kernels: &[(CellKernel, KernelAbi)]) -> bool {
    let shared = |role: Role| match role {
        Role::Result(field) | Role::CellResult(field) => {
            on.fields.get(field).is_none_or(|field| field.space.element().is_continuous())
        }
        _ => false,
    };
    kernels.iter().any(|(_, abi)| abi.arguments.iter().any(|argument| shared(argument.role)))
}

/// Uploads the nodal auxiliary data.
fn at_nodes(
    engine: &dyn Engine,
    values: &[AuxValues],
    table_cache: &mut TableCache,
) -> Result<BTreeMap<usize, Arc<EngineArray>>, DeviceError> {
    let at_nodes = values.iter().enumerate().filter_map(|(index, values)| match values {
        AuxValues::Nodes(_, values) => Some((index, values)),
        AuxValues::Cells(_) | AuxValues::Points(_) => None,
    });
    at_nodes
        .map(|(index, values)| Ok((index, table_cache.data(values, |v| engine.reals(v))?)))
        .collect()
}

impl KernelBlocks {
    /// Builds the tables for an engine's kernels, given in the engine's order.
    pub(super) fn new(
        engine: &dyn Engine,
        on: Arc<Discretisation>,
        kernels: Vec<(CellKernel, KernelAbi)>,
        precision: Precision,
        params: &[f64],
        mut table_cache: TableCache,
    ) -> Result<Self, BuildError> {
        let parts: Arc<[CellSubset]> = parts_of_cells(&on).into();
        table_cache.keep_parts(&parts);
        let parted = !parts.contains(&CellSubset::Constrained) && !shares(&on, &kernels);
        let (params, aux) = (engine.reals(params)?, at_nodes(engine, &on.aux, &mut table_cache)?);
        let (works, blocks, fluxes) = (Vec::new(), Vec::new(), Vec::new());
        let taken = BTreeMap::new();
        let mut all =
            Self { on, precision, works, blocks, fluxes, params, aux, taken, table_cache, made: 0 };
        let of_all = kernels.iter().filter_map(|(kernel, _)| match kernel.class {
            CellClass::Cells(CellSubset::All, integral) => Some((kernel.task, integral)),
            _ => None,
        });
        let of_all: Vec<(Task, usize)> = of_all.collect();
        for (number, (kernel, abi)) in kernels.into_iter().enumerate() {
            if abi.precision != precision {
                let precision = crate::algebra::vector::name(precision);
                return Err(BuildError::Precision { kernel: kernel.name, precision });
            }
            if kernel.task == Task::Flux {
                let block = all.blocks.len();
                let none = Arc::new(Batches::none(abi.lanes));
                all.blocks.push(CellBlock::of(kernel.class, none, usize::MAX));
                all.fluxes.push(AssignedKernel { kernel, abi, number, block });
                continue;
            }
            if let CellClass::Cells(CellSubset::Free | CellSubset::Constrained, integral) =
                kernel.class
                && of_all.contains(&(kernel.task, integral))
            {
                continue;
            }
            let own = || (vec![kernel.class], Arc::clone(&parts));
            let known = all.table_cache.parted(kernel.class).filter(|_| parted);
            let (classes, parts) = known.unwrap_or_else(own);
            for class in classes {
                let block = all.block_of(engine, class, &abi, &parts)?;
                let (kernel, abi) = (kernel.clone(), abi.clone());
                all.works.push(AssignedKernel { kernel, abi, number, block });
            }
        }
        all.works.sort_by_key(|work| work.kernel.class);
        (0..all.works.len()).try_for_each(|work| all.make_tables(engine, work))?;
        (0..all.works.len()).try_for_each(|work| all.make_metric(engine, work))?;
        Ok(all)
    }

    /// Finds or creates the block of a kernel: one per class, width and slots.
    fn block_of(
        &mut self,
        engine: &dyn Engine,
        class: CellClass,
        abi: &KernelAbi,
        parts: &[CellSubset],
    ) -> Result<usize, BuildError> {
        // Facet kernels do not combine the facets of a batch.
        let slots = if class.is_of_facets() { &[][..] } else { &abi.slots };
        let same = |block: &CellBlock| {
            (block.class, block.batches.lanes(), &block.slots[..]) == (class, abi.lanes, slots)
        };
        if let Some(known) = self.blocks.iter().position(same) {
            return Ok(known);
        }
        let batches = engine.batches(&self.on, (class, abi.lanes, slots), parts)?;
        let cells = match class {
            CellClass::Facets(_) => 0,
            _ => batches.active().iter().map(|&active| active as usize).sum(),
        };
        let (rack, batches) = self.table_cache.rack(batches, slots);
        let slots = slots.to_vec();
        self.blocks.push(CellBlock { slots, cells, ..CellBlock::of(class, batches, rack) });
        Ok(self.blocks.len() - 1)
    }

    /// Builds the tables that a kernel's ABI lists.
    fn make_tables(&mut self, engine: &dyn Engine, work: usize) -> Result<(), BuildError> {
        let (on, precision, work) = (&self.on, self.precision, &self.works[work]);
        let table_cache = Some(&mut self.table_cache);
        self.made += self.blocks[work.block].fill(engine, on, precision, work, table_cache)?;
        Ok(())
    }

    /// Computes the geometry at quadrature points, if a kernel reads it.
    fn make_metric(&mut self, engine: &dyn Engine, reader: usize) -> Result<(), BuildError> {
        let AssignedKernel { kernel, abi, block, .. } = &self.works[reader];
        let Some(stored) = tables::computed(kernel.geometry, &abi.arguments) else { return Ok(()) };
        let block = *block;
        if self.blocks[block].tables.contains_key(&stored) {
            return Ok(());
        }
        let metric = self.works_of(Task::Metric).find(|work| work.block == block);
        let Some(metric) = metric else {
            return Err(BuildError::NoMetric { kernel: kernel.name.clone() });
        };
        let mut arguments = metric.abi.arguments.iter();
        let extent = arguments.find(|argument| argument.role == Role::Stored);
        let len = extent.map_or(0, |argument| argument.extent) * self.blocks[block].batches.len();
        let mut table = engine.zeros(len)?;
        engine.store(self.run(metric, PassInputs::default()), &mut table)?;
        self.blocks[block].tables.insert(stored, Arc::new(table));
        Ok(())
    }

    /// Computes the stored data of actions at a state.
    pub(super) fn linearise(
        &mut self,
        engine: &dyn Engine,
        state: &Vector,
    ) -> Result<(), OperatorError> {
        for work in 0..self.works.len() {
            let AssignedKernel { kernel, block, .. } = &self.works[work];
            let block = *block;
            if kernel.task != Task::Linearise {
                continue;
            }
            let Some(mut stored) = self.blocks[block].stored.take() else { continue };
            let inputs = PassInputs { state: Some(state), ..PassInputs::default() };
            let done = engine.store(self.run(&self.works[work], inputs), &mut stored);
            self.blocks[block].stored = Some(stored);
            done?;
        }
        Ok(())
    }

    /// Replaces nodal data by entries of a vector, or by 0; `from` returns their degrees of freedom and is called once.
    pub(super) fn set_at_nodes(
        &mut self,
        engine: &dyn Engine,
        aux: usize,
        x: Option<&Vector>,
        from: impl FnOnce() -> Vec<u32>,
    ) -> Result<(), OperatorError> {
        let len = self.on.n_dofs();
        let taken = match self.taken.entry(aux) {
            Entry::Occupied(taken) => taken.into_mut(),
            Entry::Vacant(vacant) => {
                let unknowns = from();
                let count = unknowns.len();
                let which = engine.listed(unknowns, len)?;
                vacant.insert(NodalEntries { which, count, zero: false })
            }
        };
        if x.is_none() && taken.zero {
            return Ok(());
        }
        // Arrays shared with other operators are not overwritten.
        let mut own = match self.aux.remove(&aux).map(Arc::try_unwrap) {
            Some(Ok(own)) if own.len() == taken.count && x.is_some() => own,
            _ => engine.zeros(taken.count)?,
        };
        if let Some(x) = x {
            engine.take_listed(&taken.which, x, &mut own)?;
        }
        taken.zero = x.is_none();
        self.aux.insert(aux, Arc::new(own));
        Ok(())
    }

    /// Replaces the auxiliary data.
    pub(super) fn set_aux(
        &mut self,
        engine: &dyn Engine,
        values: &[AuxValues],
    ) -> Result<(), BuildError> {
        self.table_cache.forget_data();
        self.aux.extend(at_nodes(engine, values, &mut self.table_cache)?);
        // All data is new, including zeroed data.
        self.taken.values_mut().for_each(|taken| taken.zero = false);
        let mut done = BTreeSet::new();
        for work in &self.works {
            let block = &mut self.blocks[work.block];
            for argument in &work.abi.arguments {
                let Some(key) = TableKind::of(argument.role, work.kernel.geometry) else {
                    continue;
                };
                if !done.insert((work.block, key)) {
                    continue;
                }
                let (on, batches, extent) = (&self.on, &block.batches, argument.extent);
                let made = tables::of_aux(key, extent, on, values, batches, self.precision)?;
                if let Some(table) = made {
                    block.tables.insert(key, Arc::new(engine.array(table)?));
                }
            }
        }
        Ok(())
    }

    /// Returns the bytes that one pass of a task streams in addition to vectors.
    pub(super) fn bytes(&self, engine: &dyn Engine, task: Task) -> usize {
        let bytes = self.works_of(task).map(|work| {
            let block = &self.blocks[work.block];
            let array = |argument: &abi::Argument| block.array(argument.role, work.kernel.geometry);
            let arrays = work.abi.arguments.iter().filter_map(array);
            engine.streamed(work, block) + arrays.map(EngineArray::bytes).sum::<usize>()
        });
        bytes.sum()
    }

    /// Iterates over all kernels with their blocks.
    pub(super) fn works(&self) -> impl Iterator<Item = (&AssignedKernel, &CellBlock)> {
        self.works.iter().map(|work| (work, &self.blocks[work.block]))
    }

    /// Returns the kernels of [`Task::Flux`].
    pub(super) fn fluxes(&self) -> &[AssignedKernel] {
        &self.fluxes
    }

    /// Runs a kernel of [`Task::Flux`] at a state on some batches; returns its output.
    pub(super) fn flux(
        &self,
        engine: &dyn Engine,
        work: &AssignedKernel,
        batches: Batches,
        state: &Vector,
    ) -> Result<(Arc<Batches>, EngineArray), BuildError> {
        let mut block = CellBlock::of(work.kernel.class, Arc::new(batches), usize::MAX);
        block.fill(engine, &self.on, self.precision, work, None)?;
        let mut arguments = work.abi.arguments.iter();
        let stored = arguments.find(|argument| argument.role == Role::Stored);
        let len = stored.map_or(0, |stored| stored.extent * block.batches.len());
        let mut stored = engine.zeros(len)?;
        let inputs = PassInputs { state: Some(state), ..PassInputs::default() };
        engine.store(KernelRun { work, block: &block, blocks: self, inputs }, &mut stored)?;
        Ok((block.batches, stored))
    }

    /// Iterates over the kernels of a task.
    fn works_of(&self, task: Task) -> impl Iterator<Item = &AssignedKernel> {
        self.works.iter().filter(move |work| work.kernel.task == task)
    }

    /// Iterates over the kernels of element matrices, with index and block.
    pub(super) fn matrix_works(
        &self,
    ) -> impl Iterator<Item = (usize, &AssignedKernel, &CellBlock)> {
        let works = self.works.iter().enumerate();
        let works = works.filter(|(_, work)| work.kernel.task == Task::Matrix);
        works.map(|(number, work)| (number, work, &self.blocks[work.block]))
    }

    /// Iterates over their runs at a state.
    pub(super) fn matrix_runs<'a>(
        &'a self,
        state: Option<&'a Vector>,
    ) -> impl Iterator<Item = (usize, KernelRun<'a>)> {
        let inputs = PassInputs { state, ..PassInputs::default() };
        self.matrix_works().map(move |(number, work, _)| (number, self.run(work, inputs)))
    }

    /// Allocates the element matrices; for the kernel `others.0` a total of `others.1` numbers, so that those of other
    /// kernels fit as well.
    pub(super) fn make_room_for_matrices(
        &mut self,
        engine: &dyn Engine,
        others: Option<(usize, usize)>,
    ) -> Result<(), DeviceError> {
        for (number, work) in self.works.iter().enumerate() {
            if work.kernel.task != Task::Matrix {
                continue;
            }
            let stored = work.abi.arguments.iter().find(|own| own.role == Role::CellMatrix);
            let block = &mut self.blocks[work.block];
            if let (Some(stored), None) = (stored, &block.matrices) {
                let own = stored.extent * block.batches.len();
                let all = others.filter(|(first, _)| *first == number).map_or(own, |(_, all)| all);
                block.matrices = Some(engine.zeros(all)?);
            }
        }
        Ok(())
    }

    /// Takes the element matrices of a kernel.
    pub(super) fn take_matrices(&mut self, work: usize) -> Option<EngineArray> {
        self.blocks[self.works[work].block].matrices.take()
    }

    /// Computes the element matrices at a state.
    pub(super) fn make_matrices(
        &mut self,
        engine: &dyn Engine,
        state: Option<&Vector>,
    ) -> Result<(), OperatorError> {
        for work in 0..self.works.len() {
            let AssignedKernel { kernel, block, .. } = &self.works[work];
            let block = *block;
            if kernel.task != Task::Matrix {
                continue;
            }
            let Some(mut matrices) = self.blocks[block].matrices.take() else { continue };
            let inputs = PassInputs { state, ..PassInputs::default() };
            let done = engine.store(self.run(&self.works[work], inputs), &mut matrices);
            self.blocks[block].matrices = Some(matrices);
            done?;
        }
        Ok(())
    }

    /// Frees the element matrices.
    pub(super) fn drop_matrices(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.matrices = None);
    }

    /// Returns a kernel over its block.
    fn run<'a>(&'a self, work: &'a AssignedKernel, inputs: PassInputs<'a>) -> KernelRun<'a> {
        KernelRun { work, block: &self.blocks[work.block], blocks: self, inputs }
    }

    /// Returns all kernels of a task as a pass.
    pub(super) fn pass<'a>(&'a self, task: Task, inputs: PassInputs<'a>) -> KernelPass<'a> {
        KernelPass { blocks: self, task, inputs, parts: None }
    }
}

impl CellBlock {
    /// Creates a block without tables, with its index in the shared cache.
    fn of(class: CellClass, batches: Arc<Batches>, rack: usize) -> Self {
        let (slots, tables) = (Vec::new(), BTreeMap::new());
        Self { class, slots, batches, rack, cells: 0, tables, stored: None, matrices: None }
    }

    /// Builds the tables that a kernel's ABI lists, except cached ones, and returns their number.
    fn fill(
        &mut self,
        engine: &dyn Engine,
        on: &Discretisation,
        precision: Precision,
        work: &AssignedKernel,
        mut table_cache: Option<&mut TableCache>,
    ) -> Result<usize, BuildError> {
        let mut count = 0;
        let plain = VectorLayout::plain(1);
        let layout = engine.arithmetic().map_or(&plain, |arithmetic| arithmetic.layout());
        for argument in &work.abi.arguments {
            if argument.role == Role::Stored && work.kernel.task == Task::Linearise {
                self.stored = Some(engine.zeros(argument.extent * self.batches.len())?);
            }
            let Some(key) = TableKind::of(argument.role, work.kernel.geometry) else { continue };
            if self.tables.contains_key(&key) {
                continue;
            }
            let (extent, batches, slots) = (argument.extent, &self.batches, &self.slots);
            let of = table_cache.as_ref().and_then(|_| TableKey::new(key, extent, on, layout));
            let known = table_cache.as_ref().zip(of.as_ref());
            if let Some(known) =
                known.and_then(|(table_cache, of)| table_cache.table(self.rack, of))
            {
                self.tables.insert(key, known);
                continue;
            }
            let made = tables::make(key, extent, on, batches, precision, layout, slots)?;
            if let Some(table) = made {
                let table = Arc::new(engine.array(table)?);
                if let Some((table_cache, of)) = table_cache.as_mut().zip(of) {
                    table_cache.keep_table(self.rack, of, &table);
                }
                self.tables.insert(key, table);
                count += 1;
            }
        }
        Ok(count)
    }

    /// Returns a table, or data stored at quadrature points.
    pub(super) fn array(&self, role: Role, geometry: Geometry) -> Option<&EngineArray> {
        match role {
            Role::Stored => self.stored.as_ref(),
            Role::CellMatrix => self.matrices.as_ref(),
            role => self.tables.get(&TableKind::of(role, geometry)?).map(|table| &**table),
        }
    }
}

impl<'a> KernelPass<'a> {
    /// Iterates over its runs in summation order.
    pub(super) fn runs(self) -> impl Iterator<Item = KernelRun<'a>> {
        let works = self.blocks.works_of(self.task).filter(move |work| self.takes(work));
        works.map(move |work| self.blocks.run(work, self.inputs))
    }

    /// Restricts the pass to the cells of some parts.
    pub(super) fn of(self, parts: &'a [CellSubset]) -> Self {
        Self { parts: Some(parts), ..self }
    }

    /// Returns whether it covers all cells and facets.
    pub(super) fn is_whole(self) -> bool {
        self.parts.is_none()
    }

    fn takes(self, work: &AssignedKernel) -> bool {
        self.parts.is_none_or(|parts| match work.kernel.class {
            CellClass::Cells(part, _) => parts.contains(&part),
            CellClass::Facets(_) => false,
        })
    }

    /// Returns the number of cells without a kernel.
    pub(super) fn missing(self) -> usize {
        let (on, mut found) = (&self.blocks.on, BTreeMap::new());
        let mut any = false;
        for run in self.runs() {
            any = true;
            if let CellClass::Cells(_, integral) = run.work.kernel.class {
                *found.entry(integral).or_insert(0) += run.block.cells;
            }
        }
        let all = on.mesh.n_cells();
        let wanted = |integral| on.cells_of(integral).map_or(all, <[u32]>::len);
        let missing = |(integral, cells): (usize, usize)| wanted(integral).abs_diff(cells);
        if any { found.into_iter().map(missing).sum() } else { all }
    }
}

impl<'a> KernelRun<'a> {
    /// Returns the input of the kernel in a role.
    pub(super) fn read(self, role: Role) -> Option<ArgumentValue<'a>> {
        Some(match role {
            Role::State(field) => ArgumentValue::Unknowns(self.inputs.state?, field),
            Role::Direction(field) => ArgumentValue::Unknowns(self.inputs.direction?, field),
            Role::Fine => ArgumentValue::WholeVector(self.inputs.fine?),
            Role::Params => ArgumentValue::Array(&self.blocks.params),
            Role::AuxNodes(aux) => ArgumentValue::Array(self.blocks.aux.get(&aux)?),
            role => ArgumentValue::Array(self.block.array(role, self.work.kernel.geometry)?),
        })
    }

    /// Collects the arguments of the kernel's interface, except built-in constants.
    pub(super) fn arguments<T>(
        self,
        mut argument: impl FnMut(&abi::Argument) -> Option<T>,
    ) -> Result<Vec<T>, OperatorError> {
        let AssignedKernel { kernel, abi, .. } = self.work;
        let wanted = abi.arguments.iter().filter(|wanted| wanted.role != Role::Tables);
        let lacks = |role| format!("`{}` lacks its argument {role:?}", kernel.name);
        wanted
            .map(|wanted| argument(wanted).ok_or_else(|| OperatorError::new(lacks(wanted.role))))
            .collect()
    }
}
