//! Preparation of an operator's [`KernelBlocks`] by its engine: batches, tables, and data that kernels store.

use super::batch::Batches;
use super::blocks::{AssignedKernel, CellBlock, KernelBlocks, KernelRun, NodalEntries, PassInputs};
use super::engine::Engine;
use super::memory::{Memory, MemoryArray};
use super::table_cache::{TableCache, TableKey};
use super::tables::{self, TableKind};
use super::{BuildError, CellClass, CellKernel};
use crate::algebra::vector::{Precision, Vector};
use crate::device::{DeviceError, VectorLayout};
use crate::solve::OperatorError;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::timers::in_step;
use kernels_gen::abi::{self, KernelAbi, Role};
use kernels_gen::plan::Task;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::sync::Arc;

/// Uploads the nodal auxiliary data.
fn at_nodes(
    memory: &dyn Memory,
    values: &[AuxValues],
    table_cache: &mut TableCache,
) -> Result<BTreeMap<usize, Arc<MemoryArray>>, DeviceError> {
    let at_nodes = values.iter().enumerate().filter_map(|(index, values)| match values {
        AuxValues::Nodes(_, values) => Some((index, values)),
        AuxValues::Cells(_) | AuxValues::Points(_) => None,
    });
    at_nodes
        .map(|(index, values)| Ok((index, table_cache.data(values, |v| memory.reals(v))?)))
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
        let memory = engine.memory();
        let (params, aux) = (memory.reals(params)?, at_nodes(memory, &on.aux, &mut table_cache)?);
        let mut all = Self {
            on,
            precision,
            works: Vec::new(),
            blocks: Vec::new(),
            fluxes: Vec::new(),
            params,
            aux,
            nodal_entries: BTreeMap::new(),
            table_cache,
            made: 0,
        };
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
            let block = all.block_of(engine, kernel.class, &abi)?;
            all.works.push(AssignedKernel { kernel, abi, number, block });
        }
        all.works.sort_by_key(|work| work.kernel.class);
        (0..all.works.len()).try_for_each(|work| all.make_tables(memory, work))?;
        (0..all.works.len()).try_for_each(|work| all.make_metric(engine, work))?;
        Ok(all)
    }

    /// Finds or creates the block of a kernel: one per class, width and slots.
    fn block_of(
        &mut self,
        engine: &dyn Engine,
        class: CellClass,
        abi: &KernelAbi,
    ) -> Result<usize, BuildError> {
        // Facet kernels do not combine the facets of a batch.
        let slots = if class.is_of_facets() { &[][..] } else { &abi.slots };
        let same = |block: &CellBlock| {
            (block.class, block.batches.lanes(), &block.slots[..]) == (class, abi.lanes, slots)
        };
        if let Some(known) = self.blocks.iter().position(same) {
            return Ok(known);
        }
        let batches = in_step("batches", || engine.batches(&self.on, (class, abi.lanes, slots)))?;
        let cells = match class {
            CellClass::Facets(_) | CellClass::FacetsAt(..) | CellClass::HangingFacets(..) => 0,
            CellClass::Cells(..) => batches.active().iter().map(|&active| active as usize).sum(),
        };
        let (rack, batches) = self.table_cache.rack(batches, slots);
        let slots = slots.to_vec();
        self.blocks.push(CellBlock { slots, cells, ..CellBlock::of(class, batches, rack) });
        Ok(self.blocks.len() - 1)
    }

    /// Builds the tables that a kernel's ABI lists.
    fn make_tables(&mut self, memory: &dyn Memory, work: usize) -> Result<(), BuildError> {
        let (on, precision, work) = (&self.on, self.precision, &self.works[work]);
        let table_cache = Some(&mut self.table_cache);
        self.made += self.blocks[work.block].fill(memory, on, precision, work, table_cache)?;
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
        let mut table = engine.memory().zeros(len)?;
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
        memory: &dyn Memory,
        aux: usize,
        x: Option<&Vector>,
        from: impl FnOnce() -> Vec<u32>,
    ) -> Result<(), OperatorError> {
        let len = self.on.n_dofs();
        let entries = match self.nodal_entries.entry(aux) {
            Entry::Occupied(occupied) => occupied.into_mut(),
            Entry::Vacant(vacant) => {
                let dofs = from();
                let count = dofs.len();
                let list = memory.list_dofs(dofs, len)?;
                vacant.insert(NodalEntries { list, count, zero: false })
            }
        };
        if x.is_none() && entries.zero {
            return Ok(());
        }
        // Arrays shared with other operators are not overwritten.
        let mut own = match self.aux.remove(&aux).map(Arc::try_unwrap) {
            Some(Ok(own)) if own.len() == entries.count && x.is_some() => own,
            _ => memory.zeros(entries.count)?,
        };
        if let Some(x) = x {
            memory.gather(&entries.list, x, &mut own)?;
        }
        entries.zero = x.is_none();
        self.aux.insert(aux, Arc::new(own));
        Ok(())
    }

    /// Replaces nodal data by values.
    pub(super) fn set_values_at_nodes(
        &mut self,
        memory: &dyn Memory,
        aux: usize,
        values: &[f64],
    ) -> Result<(), OperatorError> {
        self.aux.insert(aux, Arc::new(memory.reals(values)?));
        if let Some(entries) = self.nodal_entries.get_mut(&aux) {
            entries.zero = false;
        }
        Ok(())
    }

    /// Replaces the auxiliary data.
    pub(super) fn set_aux(
        &mut self,
        memory: &dyn Memory,
        values: &[AuxValues],
    ) -> Result<(), BuildError> {
        self.table_cache.forget_data();
        self.aux.extend(at_nodes(memory, values, &mut self.table_cache)?);
        // All data is new, including zeroed data.
        self.nodal_entries.values_mut().for_each(|entries| entries.zero = false);
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
                    block.tables.insert(key, Arc::new(memory.array(table)?));
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
            engine.streamed(work, block) + arrays.map(MemoryArray::bytes).sum::<usize>()
        });
        bytes.sum()
    }

    /// Runs a kernel of [`Task::Flux`] at a state on some batches; returns its output.
    pub(super) fn flux(
        &self,
        engine: &dyn Engine,
        work: &AssignedKernel,
        batches: Batches,
        state: &Vector,
    ) -> Result<(Arc<Batches>, MemoryArray), BuildError> {
        let mut block = CellBlock::of(work.kernel.class, Arc::new(batches), usize::MAX);
        block.fill(engine.memory(), &self.on, self.precision, work, None)?;
        let mut arguments = work.abi.arguments.iter();
        let stored = arguments.find(|argument| argument.role == Role::Stored);
        let len = stored.map_or(0, |stored| stored.extent * block.batches.len());
        let mut stored = engine.memory().zeros(len)?;
        let inputs = PassInputs { state: Some(state), ..PassInputs::default() };
        engine.store(KernelRun { work, block: &block, blocks: self, inputs }, &mut stored)?;
        Ok((block.batches, stored))
    }

    /// Allocates the element matrices; for the kernel `others.0` a total of `others.1` numbers, so that those of other
    /// kernels fit as well.
    pub(super) fn allocate_matrices(
        &mut self,
        memory: &dyn Memory,
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
                block.matrices = Some(memory.zeros(all)?);
            }
        }
        Ok(())
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
}

impl CellBlock {
    /// Builds the tables that a kernel's ABI lists, except cached ones, and returns their number.
    fn fill(
        &mut self,
        memory: &dyn Memory,
        on: &Discretisation,
        precision: Precision,
        work: &AssignedKernel,
        mut table_cache: Option<&mut TableCache>,
    ) -> Result<usize, BuildError> {
        let mut count = 0;
        let plain = VectorLayout::plain(1);
        let layout = memory.arithmetic().map_or(&plain, |arithmetic| arithmetic.layout());
        for argument in &work.abi.arguments {
            if argument.role == Role::Stored && work.kernel.task == Task::Linearise {
                self.stored = Some(memory.zeros(argument.extent * self.batches.len())?);
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
            let making = if key.is_of_indices() { "indices" } else { "geometry" };
            if let Some(rows) = tables::rows_of(key, extent, on, batches, layout)? {
                let table = Arc::new(in_step(making, || memory.index_table(&rows))?);
                if let Some((table_cache, of)) = table_cache.as_mut().zip(of) {
                    table_cache.keep_table(self.rack, of, &table);
                }
                self.tables.insert(key, table);
                count += 1;
                continue;
            }
            let made = in_step(making, || {
                tables::make(key, extent, on, batches, precision, layout, slots)
            })?;
            if let Some(table) = made {
                let table = Arc::new(in_step("upload", || memory.array(table))?);
                if let Some((table_cache, of)) = table_cache.as_mut().zip(of) {
                    table_cache.keep_table(self.rack, of, &table);
                }
                self.tables.insert(key, table);
                count += 1;
            }
        }
        Ok(count)
    }
}
