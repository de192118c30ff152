//! Host engine: kernels run over the chunks of a mesh, which are in execution order.
//!
//! ```text
//! for each chunk, after its earlier neighbours:  y = 0 in the DoFs it touches first
//!                                                batches without, then with constrained DoFs, then facets
//! then, in the rows of constrained DoFs:         y = x (action), 0 (residual), 1 (diagonal)
//! ```
//!
//! Interface sums are exchanged while the chunks without interface degrees of freedom run.
//!
//! Neighbouring chunks add to common degrees of freedom in an order that depends on the mesh only. Results are
//! therefore bitwise independent of the number of threads.

use super::blocks::{ArgumentValue, KernelBlocks, KernelPass, KernelRun, in_chunks, kept};
use super::engine::{AffineTreatment, ConstrainedRows, Engine, EngineArray, ObliqueTreatment};
use super::matrix::lists::SummationLists;
use super::matrix::{AssembledMatrix, CompressedRows as MatrixRows, StorageFormat, UnitEntries};
use super::tables::HostTable;
use super::{BuildError, CellClass, CellSubset, refused};
use super::{affine, oblique};
use crate::algebra::vector::{Precision, Real, Vector};
use crate::device::DeviceError;
use crate::device::acoo::ElementPositions;
use crate::device::cpu::{Argument, BatchWrites, Buffer, IndexArray, Launch, Module, Schedule};
use crate::operator::batch::Batches;
use crate::operator::matrix::acoo;
use crate::solve::OperatorError;
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use kernels_gen::abi::{IndirectAccess, Role, Slots, hanging};
use kernels_gen::plan::Task;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Minimum number of entries per task.
const LISTED: usize = 1 << 14;

/// Host engine.
pub(super) struct HostEngine {
    module: Arc<Module>,
    precision: Precision,
    /// Proven conflict-free schedule of chunks.
    schedule: Schedule,
    /// Constrained degrees of freedom.
    constrained: Vec<usize>,
    /// Their values.
    values: Vec<f64>,
    /// Oblique conditions.
    oblique: oblique::ObliqueConditions,
    /// Affine constraints, if there are any.
    affine: Option<affine::ConstraintRows>,
    /// Schedule of chunks that add to matrix entries.
    entries: Option<Schedule>,
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
        let schedule = Schedule::new(&on.partition, 0, Vec::new(), &[])?;
        let (constrained, values) = on.conditions().unzip();
        let oblique = oblique::ObliqueConditions(oblique::combinations(on, |dof| dof));
        let (affine, entries, fine) = (None, None, None);
        Ok(Self {
            module,
            precision,
            schedule,
            constrained,
            values,
            oblique,
            affine,
            entries,
            fine,
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
            ArgumentValue::Array(array) => array.here().map(HostTable::read),
            ArgumentValue::Unknowns(vector, field) => part(&run.blocks.on, vector, field),
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

    fn hold_in<T: Real>(
        &self,
        what: ObliqueTreatment<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let (own, y) = (&self.oblique, y.entries_mut::<T>().ok_or_else(wrong)?);
        match what {
            ObliqueTreatment::Homogeneous => own.hold(y, false),
            ObliqueTreatment::Values => own.hold(y, true),
            ObliqueTreatment::Even => own.even(y),
            ObliqueTreatment::Diagonal { diagonal, x } => {
                let d = diagonal.entries::<T>().ok_or_else(wrong)?;
                own.hold_as(y, d, x.entries::<T>().ok_or_else(wrong)?);
            }
        }
        Ok(())
    }

    fn close_in<T: Real>(
        &self,
        what: AffineTreatment<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let Some(sums) = &self.affine else { return Ok(()) };
        let y = y.entries_mut::<T>().ok_or_else(wrong)?;
        match what {
            AffineTreatment::Direction => affine::sum(&sums.direction, 0.0, 0.0, y),
            AffineTreatment::Values => affine::sum(sums.valued(), 0.0, 1.0, y),
            AffineTreatment::Transposed(rows) => {
                affine::sum(&sums.transposed, 1.0, 0.0, y);
                let given = sums.given.iter().map(|&unknown| unknown as usize);
                set_rows(given, rows, y)?;
            }
        }
        Ok(())
    }

    /// Runs kernels that add to the entries of a matrix.
    fn add_to<T: Real>(
        &self,
        runs: &[(KernelRun<'_>, &EngineArray)],
        entries: &mut [T],
    ) -> Result<(), OperatorError> {
        let Some(schedule) = &self.entries else { return Err(wrong()) };
        entries.par_iter_mut().with_min_len(1 << 16).each(|entry| *entry = T::from_f64(0.0));
        let all = 0..entries.len();
        let shared = schedule.lend(entries);
        let mut launches = Vec::with_capacity(runs.len());
        for &(run, places) in runs {
            let arguments = run.arguments(|wanted| match wanted.role {
                Role::Matrix => Some(shared.part(all.clone())),
                Role::Entries => places.here().map(HostTable::read),
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
        let entries = y.entries_mut::<T>().ok_or_else(wrong)?;
        let all = self.schedule.chunks();
        match sharing {
            None => self.run_chunks(pass, 0..all, entries)?,
            Some(sharing) => {
                let outer = pass.blocks.on.partition.outer();
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
        set_rows(self.constrained.iter().copied(), rows, entries)
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
            let Some(HostTable::U32(indices)) = table.and_then(EngineArray::here) else { continue };
            let parts = block.batches.parts();
            writes.push(BatchWrites { abi, map, array, indices, parts, first: 0 });
        }
        let partition = &blocks.on.partition;
        self.fine = Some(Schedule::new(partition, targets.len, Vec::new(), &writes)?);
        Ok(())
    }

    fn spread_to<T: Real>(
        &self,
        pass: KernelPass<'_>,
        fine: &mut Vector,
    ) -> Result<(), OperatorError> {
        let entries = fine.entries_mut::<T>().ok_or_else(wrong)?;
        let Some(schedule) = &self.fine else { return Err(wrong()) };
        let all = 0..entries.len();
        let shared = schedule.lend(entries);
        let written = |role: Role| (role == Role::Fine).then(|| shared.part(all.clone()));
        let launches =
            pass.runs().map(|run| self.bind(run, written)).collect::<Result<Vec<_>, _>>()?;
        schedule.run(&shared, &launches).map_err(refused)
    }
}

/// Sets some rows of a vector.
fn set_rows<T: Real>(
    which: impl Iterator<Item = usize>,
    rows: ConstrainedRows<'_>,
    y: &mut [T],
) -> Result<(), OperatorError> {
    match rows {
        ConstrainedRows::Zero => which.for_each(|i| y[i] = T::from_f64(0.0)),
        ConstrainedRows::One => which.for_each(|i| y[i] = T::from_f64(1.0)),
        ConstrainedRows::Identity(x) => {
            let x = x.entries::<T>().ok_or_else(wrong)?;
            which.for_each(|i| y[i] = x[i]);
        }
    }
    Ok(())
}

/// Minimum number of rows or entries of a matrix per task.
const GRAIN: usize = 1 << 10;

fn numbers(array: &EngineArray) -> Result<&[u32], OperatorError> {
    match array.here() {
        Some(HostTable::U32(indices)) => Ok(indices),
        _ => Err(wrong()),
    }
}

/// Concatenates all elements: appends the others to the first, and 1 for constrained degrees of freedom.
fn put_in_line<'a, T: Real>(
    elements: &ElementPositions,
    cells: &mut [T],
    others: &'a [(usize, EngineArray)],
    values: impl Fn(&'a HostTable) -> Option<&'a Buffer<T>>,
) -> Result<(), OperatorError> {
    for (first, own) in others {
        let own = own.here().and_then(&values).ok_or_else(wrong)?;
        cells[*first..first + own.len()].copy_from_slice(own);
    }
    let fixed = elements.works.last().map_or(0, |work| work.first);
    cells[fixed..].fill(T::from_f64(1.0));
    Ok(())
}

/// Computes entries as sums of stored elements.
fn sum_in<'a, T: Real>(
    stored: &[(&'a EngineArray, &'a SummationLists)],
    entries: &mut [T],
    values: impl Fn(&'a EngineArray) -> Option<&'a Buffer<T>>,
) -> Result<(), OperatorError> {
    let mut sources = Vec::new();
    for (array, lists) in stored {
        let (starts, elements) = (numbers(&lists.starts)?, numbers(&lists.elements)?);
        sources.push((values(array).ok_or_else(wrong)?, starts, elements));
    }
    entries.par_chunks_mut(GRAIN).enumerate().each(|(block, entries)| {
        for (i, entry) in entries.iter_mut().enumerate() {
            let place = block * GRAIN + i;
            let mut sum = T::from_f64(0.0);
            for (values, starts, elements) in &sources {
                let list = &elements[starts[place] as usize..starts[place + 1] as usize];
                list.iter().for_each(|&element| sum = sum + values[element as usize]);
            }
            *entry = sum;
        }
    });
    Ok(())
}

fn multiply_in<T: Real>(
    matrix: &MatrixRows,
    values: &[T],
    x: &Vector,
    y: &mut Vector,
) -> Result<(), OperatorError> {
    let (starts, columns) = (numbers(&matrix.starts)?, numbers(&matrix.columns)?);
    let x = x.entries::<T>().ok_or_else(wrong)?;
    let y = y.entries_mut::<T>().ok_or_else(wrong)?;
    y.par_chunks_mut(GRAIN).enumerate().each(|(block, y)| {
        for (i, y) in y.iter_mut().enumerate() {
            let row = block * GRAIN + i;
            let range = starts[row] as usize..starts[row + 1] as usize;
            *y = crate::algebra::csr::dot(&columns[range.clone()], &values[range], x);
        }
    });
    Ok(())
}

/// Returns the error of a vector of another precision or location.
fn wrong() -> OperatorError {
    OperatorError::new("wrong precision")
}

/// Returns a field's entries of a vector as a kernel argument.
fn part<'a>(on: &Discretisation, vector: &'a Vector, field: usize) -> Option<Argument<'a>> {
    entries(vector, on.dofs_of(field))
}

fn entries(vector: &Vector, range: Range<usize>) -> Option<Argument<'_>> {
    match vector.precision() {
        Precision::F64 => vector.entries::<f64>()?.get(range).map(Argument::read),
        Precision::F32 => vector.entries::<f32>()?.get(range).map(Argument::read),
    }
}

impl Engine for HostEngine {
    fn batches(
        &self,
        on: &Discretisation,
        class: (CellClass, usize, &[Slots]),
        parts: &[CellSubset],
    ) -> Result<Batches, BuildError> {
        // A SIMD batch does the work that any of its lanes needs: sort by hanging class. Device threads lose more
        // without neighbours.
        if let ((CellClass::Cells(CellSubset::Hanging, _), lanes, _), Some(words)) =
            (class, on.mesh.hanging())
        {
            let (keep, key) = (kept(on, class.0, parts), |cell: usize| hanging::class(words[cell]));
            return Ok(Batches::sorted(&on.partition, lanes, keep, key));
        }
        in_chunks(on, &on.partition, class, parts)
    }

    fn array(&self, table: HostTable) -> Result<EngineArray, DeviceError> {
        Ok(EngineArray::Host(table))
    }

    fn reals(&self, values: &[f64]) -> Result<EngineArray, DeviceError> {
        Ok(EngineArray::Host(HostTable::reals(values, self.precision)))
    }

    fn numbers<'a>(&self, array: &'a EngineArray) -> Result<Cow<'a, [f64]>, DeviceError> {
        array.here().and_then(HostTable::numbers).ok_or(DeviceError::Foreign)
    }

    fn integers<'a>(&self, array: &'a EngineArray) -> Result<Cow<'a, [u32]>, DeviceError> {
        numbers(array).map(Cow::Borrowed).map_err(|_| DeviceError::Foreign)
    }

    fn zeros(&self, len: usize) -> Result<EngineArray, DeviceError> {
        Ok(EngineArray::Host(HostTable::zeros(len, self.precision)))
    }

    fn overwrite(&self, array: &mut EngineArray, values: &[f64]) -> Result<(), DeviceError> {
        *array = self.reals(values)?;
        Ok(())
    }

    /// Proves that concurrent chunks add to different degrees of freedom.
    fn prepare(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError> {
        let (on, mut writes) = (&blocks.on, Vec::new());
        for (work, block) in blocks.works() {
            let abi = &work.abi;
            for (map, argument) in abi.arguments.iter().enumerate() {
                let table = block.array(argument.role, work.kernel.geometry);
                let Some(HostTable::U32(indices)) = table.and_then(EngineArray::here) else {
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
            let new = fields.map(|(field, of)| {
                let (start, new) = (on.dofs_of(field).start, of.space.new_dofs(chunk));
                start + new.start..start + new.end
            });
            new.collect()
        };
        let clears = chunks.map(new).collect();
        self.schedule = Schedule::new(&on.partition, on.n_dofs(), clears, &writes)?;
        self.prepare_fine(blocks)
    }

    fn store(&self, run: KernelRun<'_>, into: &mut EngineArray) -> Result<(), OperatorError> {
        let mut written = match into {
            EngineArray::Host(table) => Some(table.write()),
            EngineArray::Device(_) => None,
        };
        let mut launch = self.bind(run, |_| written.take())?;
        launch.run_apart(run.block.batches.parts()).map_err(refused)
    }

    fn sum(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        match self.precision {
            Precision::F64 => self.sum_of::<f64>(pass, rows, y),
            Precision::F32 => self.sum_of::<f32>(pass, rows, y),
        }
    }

    fn spread(&self, pass: KernelPass<'_>, fine: &mut Vector) -> Result<(), OperatorError> {
        match self.precision {
            Precision::F64 => self.spread_to::<f64>(pass, fine),
            Precision::F32 => self.spread_to::<f32>(pass, fine),
        }
    }

    fn indices(
        &self,
        indices: Vec<u32>,
        entries: usize,
        lanes: usize,
    ) -> Result<EngineArray, DeviceError> {
        let numbers = Buffer::from_slice(&indices);
        let alone = (entries, lanes) == (1, 1);
        let array = if alone {
            IndexArray::plain(numbers)
        } else {
            IndexArray::new(numbers, entries, lanes)
        };
        Ok(EngineArray::Host(HostTable::U32(array)))
    }

    /// Proves that concurrent chunks add to different entries.
    fn prepare_entries(
        &mut self,
        runs: &[(KernelRun<'_>, &EngineArray)],
        n: usize,
    ) -> Result<(), BuildError> {
        let mut writes = Vec::new();
        for (run, places) in runs {
            let abi = &run.work.abi;
            let at = |role: Role| abi.arguments.iter().position(|argument| argument.role == role);
            let (Some(map), Some(array)) = (at(Role::Entries), at(Role::Matrix)) else { continue };
            let Some(HostTable::U32(indices)) = places.here() else { continue };
            writes.push(BatchWrites {
                abi,
                map,
                array,
                indices,
                parts: run.block.batches.parts(),
                first: 0,
            });
        }
        let Some((run, _)) = runs.first() else { return Ok(()) };
        self.entries = Some(Schedule::new(&run.blocks.on.partition, n, Vec::new(), &writes)?);
        Ok(())
    }

    fn add_entries(
        &self,
        runs: &[(KernelRun<'_>, &EngineArray)],
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        match entries {
            EngineArray::Host(HostTable::F64(values)) => self.add_to(runs, values),
            EngineArray::Host(HostTable::F32(values)) => self.add_to(runs, values),
            _ => Err(wrong()),
        }
    }

    fn sum_entries(
        &self,
        stored: &[(&EngineArray, &SummationLists)],
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        match entries {
            EngineArray::Host(HostTable::F64(values)) => {
                sum_in(stored, values, |array| match array.here() {
                    Some(HostTable::F64(values)) => Some(values),
                    _ => None,
                })
            }
            EngineArray::Host(HostTable::F32(values)) => {
                sum_in(stored, values, |array| match array.here() {
                    Some(HostTable::F32(values)) => Some(values),
                    _ => None,
                })
            }
            _ => Err(wrong()),
        }
    }

    fn merge_elements(
        &self,
        elements: &ElementPositions,
        first: EngineArray,
        others: Vec<(usize, EngineArray)>,
        len: usize,
    ) -> Result<[EngineArray; 3], OperatorError> {
        let EngineArray::Host(mut cells) = first else { return Err(wrong()) };
        let (starts, columns, entries) = match &mut cells {
            HostTable::F64(cells) => {
                put_in_line(elements, cells, &others, |table| match table {
                    HostTable::F64(own) => Some(own),
                    _ => None,
                })?;
                let (starts, columns, entries) = acoo::merge(elements, cells, len);
                (starts, columns, HostTable::F64(Buffer::from_slice(&entries)))
            }
            HostTable::F32(cells) => {
                put_in_line(elements, cells, &others, |table| match table {
                    HostTable::F32(own) => Some(own),
                    _ => None,
                })?;
                let (starts, columns, entries) = acoo::merge(elements, cells, len);
                (starts, columns, HostTable::F32(Buffer::from_slice(&entries)))
            }
            HostTable::U32(_) => return Err(wrong()),
        };
        Ok([self.indices(starts, 1, 1)?, self.indices(columns, 1, 1)?, EngineArray::Host(entries)])
    }

    fn fixed(&self, which: Vec<u32>, _: usize) -> Result<UnitEntries, DeviceError> {
        Ok(UnitEntries::Host(which))
    }

    fn listed(&self, unknowns: Vec<u32>, _: usize) -> Result<UnitEntries, DeviceError> {
        Ok(UnitEntries::Host(unknowns))
    }

    fn take_listed(
        &self,
        which: &UnitEntries,
        x: &Vector,
        into: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        fn take<T: Real>(which: &[u32], x: &Vector, into: &mut [T]) -> Result<(), OperatorError> {
            let x = x.entries::<T>().ok_or_else(wrong)?;
            let chunks = into.par_chunks_mut(LISTED).zip(which.par_chunks(LISTED));
            chunks.each(|(into, which)| {
                into.iter_mut().zip(which).for_each(|(into, &at)| *into = x[at as usize]);
            });
            Ok(())
        }
        let UnitEntries::Host(which) = which else { return Err(wrong()) };
        match into {
            EngineArray::Host(HostTable::F64(into)) => take::<f64>(which, x, into),
            EngineArray::Host(HostTable::F32(into)) => take::<f32>(which, x, into),
            _ => Err(wrong()),
        }
    }

    fn set_entries(
        &self,
        which: &UnitEntries,
        value: f64,
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError> {
        let UnitEntries::Host(which) = which else { return Err(wrong()) };
        let which = which.iter().map(|&at| at as usize);
        match entries {
            EngineArray::Host(HostTable::F64(values)) => which.for_each(|at| values[at] = value),
            EngineArray::Host(HostTable::F32(values)) => {
                which.for_each(|at| values[at] = value as f32)
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn multiply(
        &self,
        matrix: &AssembledMatrix,
        x: &Vector,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let StorageFormat::Rows(rows) = &matrix.lies else { return Err(wrong()) };
        match rows.entries.here() {
            Some(HostTable::F64(values)) => multiply_in::<f64>(rows, values, x, y),
            Some(HostTable::F32(values)) => multiply_in::<f32>(rows, values, x, y),
            _ => Err(wrong()),
        }
    }

    fn is_oblique(&self) -> bool {
        !self.oblique.0.dofs.is_empty()
    }

    fn hold(&self, what: ObliqueTreatment<'_>, y: &mut Vector) -> Result<(), OperatorError> {
        match self.precision {
            Precision::F64 => self.hold_in::<f64>(what, y),
            Precision::F32 => self.hold_in::<f32>(what, y),
        }
    }

    fn constrain(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError> {
        self.affine = (!affine.is_empty()).then(|| affine::ConstraintRows::new(affine, |dof| dof));
        Ok(())
    }

    fn close(&self, what: AffineTreatment<'_>, y: &mut Vector) -> Result<(), OperatorError> {
        match self.precision {
            Precision::F64 => self.close_in::<f64>(what, y),
            Precision::F32 => self.close_in::<f32>(what, y),
        }
    }

    fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        let oblique = self.oblique.0.values.as_flattened_mut();
        if values.len() != self.values.len() + oblique.len() {
            return Err(DeviceError::Mismatch { operation: "set conditions" });
        }
        let (own, combined) = values.split_at(self.values.len());
        self.values.copy_from_slice(own);
        oblique.copy_from_slice(combined);
        Ok(())
    }

    fn impose(&self, u: &mut Vector) -> Result<(), OperatorError> {
        let conditions = self.constrained.iter().zip(&self.values);
        conditions.for_each(|(&unknown, &value)| u.set_entry(unknown, value));
        self.hold(ObliqueTreatment::Values, u)
    }

    fn module(&self) -> Option<&Module> {
        Some(&self.module)
    }
}
