//! Host engine: kernels run over the chunks of a mesh, which are in execution order.
//!
//! ```text
//! for each chunk, after its earlier neighbours:  y = 0 in the DoFs it touches first
//!                                                batches without, then with hanging nodes, then facets
//! then, in the rows of constrained DoFs:         y = x (action), 0 (residual), 1 (diagonal)
//! ```
//!
//! Interface sums are exchanged while the chunks without interface degrees of freedom run.
//!
//! Neighbouring chunks add to common degrees of freedom in an order that depends on the mesh only. Results are
//! therefore bitwise independent of the number of threads.

use super::blocks::{ArgumentValue, KernelBlocks, KernelPass, KernelRun, in_chunks, kept};
use super::constraints::{ConstrainedRows, HostConstraints, VectorConstraints};
use super::engine::Engine;
use super::memory::{HostMemory, Memory, MemoryArray};
use super::tables::HostTable;
use super::{BuildError, CellClass, CellSubset, refused};
use crate::algebra::vector::{Precision, Real, Vector};
use crate::device::DeviceError;
use crate::device::cpu::{Argument, BatchWrites, Launch, Module, Schedule};
use crate::operator::batch::Batches;
use crate::solve::OperatorError;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use kernels_gen::abi::{IndirectAccess, Role, Slots, hanging};
use kernels_gen::plan::Task;
use std::ops::Range;
use std::sync::Arc;

/// Host engine.
pub(super) struct HostEngine {
    module: Arc<Module>,
    memory: HostMemory,
    constraints: HostConstraints,
    /// Proven conflict-free schedule of chunks.
    schedule: Schedule,
    /// Schedule of chunks that add to a finer space.
    fine: Option<Schedule>,
}

impl HostEngine {
    /// Creates the engine of a module's kernels.
    pub(super) fn new(
        on: &Discretisation,
        module: Arc<Module>,
        precision: Precision,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            module,
            memory: HostMemory(precision),
            constraints: HostConstraints::new(on),
            schedule: Schedule::new(&on.partition, 0, Vec::new(), &[])?,
            fine: None,
        })
    }

    /// Binds a kernel to its arguments; `written` returns the written ones.
    fn bind<'a>(
        &'a self,
        run: KernelRun<'a>,
        mut written: impl FnMut(Role) -> Option<Argument<'a>>,
    ) -> Result<Launch<'a>, OperatorError> {
        let arguments = run.arguments(|wanted| match wanted.written {
            true => written(wanted.role),
            false => self.read(run, wanted.role),
        })?;
        self.bind_to(run, arguments)
    }

    /// Returns the input of a kernel in a role.
    fn read<'a>(&self, run: KernelRun<'a>, role: Role) -> Option<Argument<'a>> {
        match run.read(role)? {
            ArgumentValue::Array(array) => array.host().map(HostTable::read),
            ArgumentValue::FieldDofs(vector, field) => field_entries(&run.blocks.on, vector, field),
            ArgumentValue::WholeVector(vector) => entries(vector, 0..vector.len()),
        }
    }

    fn bind_to<'a>(
        &'a self,
        run: KernelRun<'a>,
        arguments: Vec<Argument<'a>>,
    ) -> Result<Launch<'a>, OperatorError> {
        let name = &run.work.kernel.name;
        let loaded = self.module.kernel(name).map_err(refused)?;
        let bound = loaded.bind(arguments).map_err(refused)?;
        if bound.batches() < run.block.batches.len() {
            return Err(OperatorError::new(format!("the tables of `{name}` are too short")));
        }
        Ok(bound)
    }

    /// Runs kernels that add to the entries of a matrix.
    fn add_to<T: Real>(
        &self,
        runs: &[(KernelRun<'_>, &MemoryArray)],
        schedule: &Schedule,
        entries: &mut [T],
    ) -> Result<(), OperatorError> {
        entries.par_iter_mut().with_min_len(1 << 16).each(|entry| *entry = T::from_f64(0.0));
        let all = 0..entries.len();
        let shared = schedule.lend(entries);
        let mut launches = Vec::with_capacity(runs.len());
        for &(run, positions) in runs {
            let arguments = run.arguments(|wanted| match wanted.role {
                Role::Matrix => Some(shared.part(all.clone())),
                Role::Entries => positions.host().map(HostTable::read),
                _ => self.read(run, wanted.role),
            })?;
            launches.push(self.bind_to(run, arguments)?);
        }
        schedule.run(&shared, &launches).map_err(refused)
    }

    fn sum_of<T: Real>(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let sharing = y.sharing().cloned();
        let entries = y.entries_mut::<T>().ok_or(DeviceError::Foreign)?;
        let all = self.schedule.chunks();
        match sharing {
            None => self.run_chunks(pass, 0..all, entries)?,
            Some(sharing) => {
                let outer = pass.blocks.on.outer_chunks();
                self.run_chunks(pass, 0..outer, entries)?;
                let mut parcels = sharing.parcels(entries);
                let mut done = Ok(());
                sharing.group().exchange(&mut parcels, &mut || {
                    done = self.run_chunks(pass, outer..all, entries);
                });
                done?;
                sharing.add(&parcels, entries);
            }
        }
        Ok(self.constraints.set_rows(rows, entries)?)
    }

    /// Runs the kernels of a pass in some chunks.
    fn run_chunks<T: Real>(
        &self,
        pass: KernelPass<'_>,
        chunks: Range<usize>,
        entries: &mut [T],
    ) -> Result<(), OperatorError> {
        let shared = self.schedule.lend(entries);
        let mut launches = Vec::with_capacity(2);
        for run in pass.runs() {
            let written = |role: Role| match role {
                Role::Result(field) => Some(shared.part(pass.blocks.on.dofs_of(field))),
                _ => None,
            };
            launches.push(self.bind(run, written)?);
        }
        self.schedule.run_some(chunks, &shared, &launches).map_err(refused)
    }
}

impl HostEngine {
    /// Proves the schedule for vectors of a finer space.
    fn prepare_fine(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError> {
        let Some(targets) = &blocks.on.targets else { return Ok(()) };
        let mut writes = Vec::new();
        for (work, block) in blocks.works().filter(|(work, _)| work.kernel.task == Task::Prolong) {
            let abi = &work.abi;
            let at = |role: Role| abi.arguments.iter().position(|argument| argument.role == role);
            let (Some(map), Some(array)) = (at(Role::Targets), at(Role::Fine)) else { continue };
            let table = block.array(Role::Targets, work.kernel.geometry);
            let Some(HostTable::U32(indices)) = table.and_then(MemoryArray::host) else { continue };
            let parts = block.batches.parts();
            writes.push(BatchWrites { abi, map, array, indices, parts, first: 0 });
        }
        let partition = &blocks.on.partition;
        self.fine = Some(Schedule::new(partition, targets.len, Vec::new(), &writes)?);
        Ok(())
    }

    fn prolong_to<T: Real>(
        &self,
        pass: KernelPass<'_>,
        fine: &mut Vector,
    ) -> Result<(), OperatorError> {
        let entries = fine.entries_mut::<T>().ok_or(DeviceError::Foreign)?;
        let Some(schedule) = &self.fine else { return Err(DeviceError::Foreign.into()) };
        let all = 0..entries.len();
        let shared = schedule.lend(entries);
        let written = |role: Role| (role == Role::Fine).then(|| shared.part(all.clone()));
        let launches =
            pass.runs().map(|run| self.bind(run, written)).collect::<Result<Vec<_>, _>>()?;
        schedule.run(&shared, &launches).map_err(refused)
    }
}

/// Returns a field's entries of a vector as a kernel argument.
fn field_entries<'a>(
    on: &Discretisation,
    vector: &'a Vector,
    field: usize,
) -> Option<Argument<'a>> {
    entries(vector, on.dofs_of(field))
}

fn entries(vector: &Vector, range: Range<usize>) -> Option<Argument<'_>> {
    match vector.precision() {
        Precision::F64 => vector.entries::<f64>()?.get(range).map(Argument::read),
        Precision::F32 => vector.entries::<f32>()?.get(range).map(Argument::read),
    }
}

impl Engine for HostEngine {
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
        class: (CellClass, usize, &[Slots]),
    ) -> Result<Batches, BuildError> {
        // A SIMD batch does the work that any of its lanes needs: sort by hanging class. Device threads lose more
        // without neighbours.
        if let ((CellClass::Cells(CellSubset::Hanging, _), lanes, _), Some(words)) =
            (class, on.mesh.hanging())
        {
            let (keep, key) = (kept(on, class.0), |cell: usize| hanging::class(words[cell]));
            return Ok(Batches::sorted(&on.partition, lanes, keep, key));
        }
        in_chunks(on, &on.partition, class)
    }

    /// Proves that concurrent chunks add to different degrees of freedom.
    fn prepare(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError> {
        let (on, mut writes) = (&blocks.on, Vec::new());
        for (work, block) in blocks.works() {
            let abi = &work.abi;
            for (map, argument) in abi.arguments.iter().enumerate() {
                let table = block.array(argument.role, work.kernel.geometry);
                let Some(HostTable::U32(indices)) = table.and_then(MemoryArray::host) else {
                    continue;
                };
                for (array, written) in abi.arguments.iter().enumerate() {
                    let indexed = |reach: &IndirectAccess| (reach.map, reach.array) == (map, array);
                    let Role::Result(field) = written.role else { continue };
                    if abi.reaches.iter().any(indexed) {
                        let (first, parts) = (on.dofs_of(field).start, block.batches.parts());
                        writes.push(BatchWrites { abi, map, array, indices, parts, first });
                    }
                }
            }
        }
        let chunks = 0..on.partition.chunks().len();
        let new = |chunk: usize| {
            let fields = on.fields.iter().enumerate();
            let new = fields.flat_map(|(field, of)| {
                let (start, own) = (on.dofs_of(field).start, of.space.new_dofs(chunk));
                let all = std::iter::once(own).chain(of.space.dofs_beyond(&on.partition, chunk));
                all.map(move |new| start + new.start..start + new.end)
            });
            new.collect()
        };
        let clears = chunks.map(new).collect();
        self.schedule = Schedule::new(&on.partition, on.n_dofs(), clears, &writes)?;
        self.prepare_fine(blocks)
    }

    fn store(&self, run: KernelRun<'_>, into: &mut MemoryArray) -> Result<(), OperatorError> {
        let mut written = match into {
            MemoryArray::Host(table) => Some(table.write()),
            MemoryArray::Device(_) => None,
        };
        let mut launch = self.bind(run, |_| written.take())?;
        launch.run_disjoint(run.block.batches.parts()).map_err(refused)
    }

    fn sum(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let free = pass.inputs.direction.and_then(|x| self.constraints.freed(x));
        let pass = free.as_ref().map_or(pass, |free| pass.along(free));
        match self.memory.0 {
            Precision::F64 => self.sum_of::<f64>(pass, rows, y),
            Precision::F32 => self.sum_of::<f32>(pass, rows, y),
        }
    }

    fn prolong(&self, pass: KernelPass<'_>, fine: &mut Vector) -> Result<(), OperatorError> {
        match self.memory.0 {
            Precision::F64 => self.prolong_to::<f64>(pass, fine),
            Precision::F32 => self.prolong_to::<f32>(pass, fine),
        }
    }

    fn add_entries(
        &self,
        runs: &[(KernelRun<'_>, &MemoryArray)],
        schedule: Option<&Schedule>,
        entries: &mut MemoryArray,
    ) -> Result<(), OperatorError> {
        match (schedule, entries) {
            (Some(schedule), MemoryArray::Host(HostTable::F64(entries))) => {
                self.add_to(runs, schedule, entries)
            }
            (Some(schedule), MemoryArray::Host(HostTable::F32(entries))) => {
                self.add_to(runs, schedule, entries)
            }
            _ => Err(DeviceError::Foreign.into()),
        }
    }
}
