//! Jacobian of an operator as element matrices or as a sparse matrix: [`Representation`].
//!
//! ```text
//! represent    symbolic phase: positions of entries, summation lists, allocation
//! linearise    kernels compute the element matrices; stored (ebe-v1), added to their positions (pattern, coloured),
//!              or stored and summed per entry (owner)
//! apply        y = Σ_c A_c x_c or y = A x, in place of the matrix-free action
//! ```
//!
//! With several processes, each has the matrix of its own cells; interface rows are summed after the product, like cell
//! contributions.

mod acoo;
mod device;
mod host;
mod kernels;
mod lists;
mod sparsity;
mod stored;

use super::blocks::{AssignedKernel, KernelRun, PassInputs};
use super::constraints::ConstrainedRows;
use super::memory::{EntryList, Memory, MemoryArray};
use super::{BuildError, Operator};
use crate::algebra::sparse::{Csr, NOWHERE, RowBuilder, Slices, row_in_slices};
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::device::acoo::ElementPositions;
use crate::device::cpu::{BatchWrites, Schedule};
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::batch::Batches;
use crate::solve::{LinearOperator, OperatorError};
use crate::support::memory::{InsufficientMemory, MemoryBudget};
use kernels::MatrixKernels;
use kernels_gen::abi::Role;
use kernels_gen::dialect::c::rows::ROWS;
use kernels_gen::dialect::c::slices::SLICE;
use kernels_gen::plan::Task;
use kernels_gen::plan::cell_matrix::CellMatrix;
use lists::SummationLists;
use sparsity::Sparsity;
use std::collections::BTreeMap;
use std::sync::Arc;
use stored::{EntryOrder, StoredMatrix};

/// Bytes of an index.
const INDEX: f64 = 4.0;

/// Assembly algorithm.
enum AssemblyTables {
    /// Positions of the entries of each kernel, and the schedule of a host's chunks that add to them.
    Positions(BTreeMap<usize, MemoryArray>, Option<Schedule>),
    /// Summation lists of each kernel's stored elements.
    Sums(BTreeMap<usize, SummationLists>),
    /// Kernels in storage order, and the position of each of their elements.
    Merged(Vec<usize>, ElementPositions),
}

/// A sparse matrix with its assembly algorithm. On a subdomain, products are the contribution of this process.
pub(super) struct AssembledMatrix {
    assembly: AssemblyTables,
    /// Diagonal entries of constrained degrees of freedom, if they are not among the elements.
    fixed: Option<EntryList>,
    /// Length of vectors, padding included.
    len: usize,
    /// Number of entries.
    count: usize,
    stored: StoredMatrix,
    kernels: Box<dyn MatrixKernels>,
}

impl LinearOperator for AssembledMatrix {
    fn size(&self) -> usize {
        self.stored.n_dofs
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        Ok(self.kernels.multiply(&self.stored, x, y)?)
    }
}

/// Returns the computations for a memory.
fn kernels_of(memory: &dyn Memory) -> Box<dyn MatrixKernels> {
    match memory.arithmetic() {
        None => Box::new(host::HostMatrixKernels),
        Some(arithmetic) => Box::new(device::DeviceMatrixKernels::new(Arc::clone(arithmetic))),
    }
}

/// A kernel of element matrices.
struct ElementKernel<'a> {
    /// Index among the kernels of the operator.
    number: usize,
    matrix: CellMatrix,
    batches: &'a Batches,
}

/// Size of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatrixSize {
    /// Number of entries in all element matrices, padding included.
    pub elements: usize,
    /// Number of entries in the sparse matrix.
    pub entries: usize,
}

/// Representation of the Jacobian, if it is not matrix-free.
pub(super) enum JacobianStorage {
    /// Element matrices.
    Elements(Task),
    /// A sparse matrix.
    Matrix(Box<AssembledMatrix>),
}

/// Returns whether a kernel stores element matrices instead of adding them.
fn stores(work: &AssignedKernel) -> bool {
    work.abi.arguments.iter().any(|argument| argument.role == Role::CellMatrix)
}

impl Operator {
    /// Changes the representation of the Jacobian from the next linearisation on. The operator's kernels must be those
    /// of [`Representation::tasks`], compiled for [`Representation::scatter`].
    ///
    /// # Errors
    ///
    /// Missing kernels; more entries than 32-bit indices can address; insufficient memory.
    pub fn represent(&mut self, how: Representation) -> Result<(), BuildError> {
        // Frees the old representation first.
        self.represented = None;
        self.blocks.drop_matrices();
        self.represented = match how {
            Representation::MatrixFree => None,
            Representation::Stored | Representation::Recomputed => {
                let product = match how {
                    Representation::Stored => Task::StoredProduct,
                    _ => Task::MatrixProduct,
                };
                self.require(how.tasks())?;
                if how == Representation::Stored {
                    let bytes = self.stored_elements() as f64 * self.real();
                    self.check_memory("the element matrices", bytes)?;
                    self.blocks.allocate_matrices(self.engine.memory(), None)?;
                }
                Some(JacobianStorage::Elements(product))
            }
            Representation::Assembled(assembly) => {
                self.require(how.tasks())?;
                Some(JacobianStorage::Matrix(Box::new(self.matrix_of(assembly)?)))
            }
        };
        Ok(())
    }

    /// Returns the bytes of a real.
    fn real(&self) -> f64 {
        self.precision().bytes() as f64
    }

    /// Returns the number of entries in all element matrices, padding included.
    fn stored_elements(&self) -> usize {
        let works = self.blocks.matrix_works();
        let entries = works.map(|(_, work, block)| {
            let own = work.kernel.matrix.as_ref().map_or(0, |matrix| matrix.entries);
            own * block.batches.lanes() * block.batches.len()
        });
        entries.sum()
    }

    /// Checks that some bytes fit into the memory budget.
    fn check_memory(&self, what: &str, bytes: f64) -> Result<(), BuildError> {
        let n = self.blocks.on.n_dofs();
        let what = || format!("{what} of {n} unknowns");
        let Some(arithmetic) = self.arithmetic() else {
            return Ok(MemoryBudget::check(what, bytes)?);
        };
        let free = arithmetic.device().free_bytes().filter(|&free| bytes > free);
        match free {
            None => Ok(()),
            Some(free) => {
                let room = MemoryBudget { bytes: free, bound: "what the device has" };
                let remedy = "the matrix-free operator, fewer cells or a lower degree";
                Err(InsufficientMemory { what: what(), bytes, room, remedy }.into())
            }
        }
    }

    fn require(&self, tasks: &[Task]) -> Result<(), BuildError> {
        match tasks.iter().find(|&&task| !self.has(task)) {
            Some(task) => Err(BuildError::NoKernels { task: task.word() }),
            None => Ok(()),
        }
    }

    fn matrix_of(&mut self, assembly: Assembly) -> Result<AssembledMatrix, BuildError> {
        let stored = self.blocks.matrix_works().all(|(_, work, _)| stores(work));
        if stored == matches!(assembly, Assembly::Pattern | Assembly::Coloured) {
            return Err(BuildError::OtherAssembly { assembly });
        }
        let elements = self.stored_elements();
        if elements >= NOWHERE as usize {
            return Err(BuildError::TooManyNumbers { numbers: elements });
        }
        if assembly == Assembly::Acoo {
            return self.merged_matrix();
        }
        let matrix = self.matrix_with_pattern(stored)?;
        if stored {
            self.blocks.allocate_matrices(self.engine.memory(), None)?;
        }
        Ok(matrix)
    }

    fn element_kernels(&self) -> Vec<ElementKernel<'_>> {
        let works = self.blocks.matrix_works();
        works
            .map(|(number, work, block)| {
                let matrix = work.kernel.matrix.clone().unwrap_or_default();
                ElementKernel { number, matrix, batches: &block.batches }
            })
            .collect()
    }

    /// Returns the length of vectors, padding included.
    fn vector_len(&self) -> usize {
        let n = self.n();
        self.arithmetic().map_or(n, |arithmetic| arithmetic.layout().len(n))
    }

    /// Returns the position of a degree of freedom in vectors.
    fn positions(&self) -> impl Fn(usize) -> usize + Sync + '_ {
        let layout = self.arithmetic().map(|arithmetic| arithmetic.layout());
        move |dof| layout.map_or(dof, |layout| layout.place(dof))
    }

    /// Prepares a matrix that is merged from stored elements, without a pattern.
    fn merged_matrix(&self) -> Result<AssembledMatrix, BuildError> {
        let (memory, len, mut kernels) =
            (self.engine.memory(), self.vector_len(), self.element_kernels());
        let stored = |kernel: &ElementKernel<'_>| kernel.batches.len() * kernel.matrix.entries;
        kernels.sort_by_key(|kernel| std::cmp::Reverse(stored(kernel)));
        let parts: Vec<_> = kernels.iter().map(|kernel| (&kernel.matrix, kernel.batches)).collect();
        let elements = acoo::elements(&self.blocks.on, &parts, self.positions());
        // Elements, one link and row index per element-matrix row, and two numbers per matrix row; the number of
        // entries is not yet known.
        let real = self.precision().bytes();
        let tables = elements.on_devices().bytes(len, real);
        let bytes = elements.count * real + 4 * (2 * elements.dofs.len() + 2 * len) + tables;
        self.check_memory("assembling the matrix", bytes as f64)?;
        let order = kernels.iter().map(|kernel| kernel.number).collect();
        let mut kernels = kernels_of(memory);
        kernels.prepare_merge(&elements, len)?;
        let stored = StoredMatrix::empty(memory, self.n())?;
        let assembly = AssemblyTables::Merged(order, elements);
        Ok(AssembledMatrix { assembly, fixed: None, len, count: 0, stored, kernels })
    }

    /// Prepares a matrix with a pattern, summed from stored elements if `stored` is true.
    fn matrix_with_pattern(&self, stored: bool) -> Result<AssembledMatrix, BuildError> {
        let (on, memory, kernels) = (&self.blocks.on, self.engine.memory(), self.element_kernels());
        let parts: Vec<_> = kernels.iter().map(|kernel| (&kernel.matrix, kernel.batches)).collect();
        let (len, position) = (self.vector_len(), self.positions());
        let mut sparsity = Sparsity::new(on, &parts, len, &position)
            .map_err(|entries| BuildError::TooManyEntries { entries })?;
        let count = sparsity.entries();
        let slices = self.arithmetic().and_then(|_| Slices::new(&sparsity.starts));
        if let Some(slices) = &slices {
            sparsity.move_rows(on, SLICE as u32, |dof| slices.place(position(dof), 0));
        }
        // Number of entries, padding included.
        let entries = slices.as_ref().map_or(count, |slices| slices.count);
        let fixed = sparsity.fixed(on);
        let indices = match &slices {
            Some(slices) => slices.index_bytes() as f64,
            None => INDEX * (count + len + 1) as f64,
        };
        // Elements, and the offsets of the summation lists, for each kernel.
        let (element, lists) = match stored {
            true => (self.real(), INDEX * (kernels.len() * (entries + 1)) as f64),
            false => (0.0, 0.0),
        };
        let own = entries as f64 * self.real() + indices + lists + fixed.len() as f64 * INDEX;
        let elements = self.stored_elements() as f64 * (INDEX + element);
        self.check_memory("the matrix and what assembles it", elements + own)?;
        let positions =
            |kernel: &ElementKernel<'_>| sparsity.places(on, &kernel.matrix, kernel.batches);
        let assembly = if stored {
            let lists = |kernel| SummationLists::new(memory, entries, &positions(kernel));
            let all = kernels.iter().map(|kernel| Ok((kernel.number, lists(kernel)?)));
            AssemblyTables::Sums(all.collect::<Result<_, DeviceError>>()?)
        } else {
            let table = |kernel: &ElementKernel<'_>| {
                let (own, lanes) = (kernel.matrix.entries, kernel.batches.lanes());
                memory.indices(positions(kernel), own, lanes)
            };
            let all = kernels.iter().map(|kernel| Ok((kernel.number, table(kernel)?)));
            let all = all.collect::<Result<_, DeviceError>>()?;
            let schedule = self.schedule_entries(&all, entries)?;
            AssemblyTables::Positions(all, schedule)
        };
        let fixed = Some(memory.list(fixed, entries)?);
        let kernels = kernels_of(memory);
        let stored = self.allocate(&*kernels, sparsity, slices)?;
        Ok(AssembledMatrix { assembly, fixed, len, count, stored, kernels })
    }

    /// Allocates a matrix with a pattern.
    fn allocate(
        &self,
        kernels: &dyn MatrixKernels,
        sparsity: Sparsity,
        slices: Option<Slices>,
    ) -> Result<StoredMatrix, BuildError> {
        let (memory, n_dofs, len) = (self.engine.memory(), self.n(), self.vector_len());
        if let Some(slices) = slices {
            let columns = slices.columns(&sparsity.starts, &sparsity.columns);
            return Ok(StoredMatrix {
                order: EntryOrder::Slices,
                n_dofs,
                entries: memory.zeros(slices.count)?,
                columns: memory.indices(columns, 1, 1)?,
                starts: memory.indices(slices.into_starts(), 1, 1)?,
                vendor: None,
            });
        }
        let count = sparsity.entries();
        let mut starts: Vec<u32> = sparsity.starts.iter().map(|&start| start as u32).collect();
        // Padding: a group of threads processes `ROWS` rows.
        starts.resize(len.next_multiple_of(ROWS) + 1, count as u32);
        let starts = memory.indices(starts, 1, 1)?;
        let columns = memory.indices(sparsity.columns, 1, 1)?;
        let entries = memory.zeros(count)?;
        let vendor = kernels.vendor([&starts, &columns, &entries], len)?;
        Ok(StoredMatrix { order: EntryOrder::Rows, n_dofs, starts, columns, entries, vendor })
    }

    /// Proves that concurrent chunks of the host add to different entries of a matrix with `n` entries.
    fn schedule_entries(
        &self,
        positions: &BTreeMap<usize, MemoryArray>,
        n: usize,
    ) -> Result<Option<Schedule>, BuildError> {
        if self.is_on_device() {
            return Ok(None);
        }
        let mut writes = Vec::new();
        for (number, work, block) in self.blocks.matrix_works() {
            let abi = &work.abi;
            let at = |role: Role| abi.arguments.iter().position(|argument| argument.role == role);
            let (Some(map), Some(array)) = (at(Role::Entries), at(Role::Matrix)) else { continue };
            let Some(positions) = positions.get(&number) else { continue };
            let (indices, parts) = (positions.host_indices()?, block.batches.parts());
            writes.push(BatchWrites { abi, map, array, indices, parts, first: 0 });
        }
        Ok(Some(Schedule::new(&self.blocks.on.partition, n, Vec::new(), &writes)?))
    }

    /// Computes the element matrices at the linearisation state, and assembles them.
    pub fn assemble(&mut self) -> Result<(), OperatorError> {
        let Some(mut represented) = self.represented.take() else { return Ok(()) };
        let made = self.assemble_in(&mut represented);
        self.represented = Some(represented);
        made
    }

    fn assemble_in(&mut self, represented: &mut JacobianStorage) -> Result<(), OperatorError> {
        let (engine, state) = (&*self.engine, self.state.as_ref());
        let matrix = match represented {
            JacobianStorage::Elements(Task::StoredProduct) => {
                return self.blocks.make_matrices(engine, state);
            }
            JacobianStorage::Elements(_) => return Ok(()),
            JacobianStorage::Matrix(matrix) => &mut **matrix,
        };
        match &matrix.assembly {
            AssemblyTables::Merged(..) => return self.merge(matrix),
            AssemblyTables::Positions(positions, schedule) => {
                let runs: Vec<(KernelRun<'_>, &MemoryArray)> = self
                    .blocks
                    .matrix_runs(state)
                    .filter_map(|(number, run)| Some((run, positions.get(&number)?)))
                    .collect();
                engine.add_entries(&runs, schedule.as_ref(), &mut matrix.stored.entries)?;
            }
            AssemblyTables::Sums(lists) => {
                self.blocks.make_matrices(engine, state)?;
                let stored = self.blocks.matrix_runs(state).filter_map(|(number, run)| {
                    let elements = run.block.array(Role::CellMatrix, run.work.kernel.geometry)?;
                    Some((elements, lists.get(&number)?))
                });
                let stored: Vec<_> = stored.collect();
                matrix.kernels.sum(&stored, &mut matrix.stored.entries)?;
            }
        }
        if let Some(fixed) = &matrix.fixed {
            engine.memory().fill_listed(fixed, 1.0, &mut matrix.stored.entries)?;
        }
        Ok(())
    }

    /// Merges the elements at the linearisation state into a matrix.
    fn merge(&mut self, matrix: &mut AssembledMatrix) -> Result<(), OperatorError> {
        let AssembledMatrix { assembly, len, count, stored, kernels, .. } = matrix;
        let AssemblyTables::Merged(order, elements) = assembly else { return Ok(()) };
        let Some(&first) = order.first() else { return Ok(()) };
        let (engine, memory) = (&*self.engine, self.engine.memory());
        // Frees the old matrix first.
        *stored = StoredMatrix::empty(memory, stored.n_dofs)?;
        self.blocks.allocate_matrices(memory, Some((first, elements.count)))?;
        self.blocks.make_matrices(engine, self.state.as_ref())?;
        let Some(cells) = self.blocks.take_matrices(first) else { return Ok(()) };
        let others = order.iter().zip(&elements.works).skip(1);
        let others = others
            .filter_map(|(&number, work)| Some((work.first, self.blocks.take_matrices(number)?)));
        let [starts, columns, entries] = kernels.merge(elements, cells, others.collect(), *len)?;
        stored.vendor = kernels.vendor([&starts, &columns, &entries], *len)?;
        *count = entries.len();
        (stored.starts, stored.columns, stored.entries) = (starts, columns, entries);
        Ok(())
    }

    /// Computes y = J x in the current representation; rows of constrained degrees of freedom are those of x.
    pub(super) fn act(
        &self,
        x: &Vector,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let inputs = PassInputs { direction: Some(x), ..self.linearised() };
        match &self.represented {
            None => self.pass(Task::Action, inputs, rows, y),
            Some(JacobianStorage::Elements(task)) => self.pass(*task, inputs, rows, y),
            Some(JacobianStorage::Matrix(matrix)) => {
                self.fits(x)?;
                self.fits(y)?;
                matrix.apply(x, y)?;
                // Sums the contributions of all processes to interface rows.
                y.sum_shared();
                Ok(())
            }
        }
    }

    /// Returns the size of the matrix, or of the element matrices.
    pub fn matrix_size(&self) -> MatrixSize {
        let entries = match &self.represented {
            Some(JacobianStorage::Matrix(matrix)) => matrix.count,
            _ => 0,
        };
        MatrixSize { elements: self.stored_elements(), entries }
    }

    /// Returns the assembled matrix at the last linearisation, if there is one, in the discretisation's numbering with
    /// ascending columns. It contains everything that the operator applies: oblique conditions, and affine constraints
    /// with identity rows for dependent degrees of freedom.
    ///
    /// # Errors
    ///
    /// A device failure.
    pub fn assembled(&self) -> Result<Option<Csr>, OperatorError> {
        let Some(JacobianStorage::Matrix(matrix)) = &self.represented else { return Ok(None) };
        let (position, memory, stored) = (self.positions(), self.engine.memory(), &matrix.stored);
        let (starts, columns, values) = (
            memory.read_indices(&stored.starts)?,
            memory.read_indices(&stored.columns)?,
            memory.read_reals(&stored.entries)?,
        );
        let mut dofs = vec![NOWHERE; matrix.len];
        let n = self.n();
        (0..n).for_each(|dof| dofs[position(dof)] = dof as u32);
        let fill = |dof: usize, row: &mut Vec<(u32, f64)>, rows: &mut RowBuilder| {
            let own = position(dof);
            row.clear();
            match stored.order {
                EntryOrder::Rows => {
                    let range = starts[own] as usize..starts[own + 1] as usize;
                    let columns = columns[range.clone()].iter().copied();
                    row.extend(columns.zip(values[range].iter().copied()));
                }
                EntryOrder::Slices => row.extend(row_in_slices(&starts, &columns, &values, own)),
            }
            row.iter_mut().for_each(|(column, _)| *column = dofs[*column as usize]);
            row.sort_unstable_by_key(|(column, _)| *column);
            row.iter().for_each(|&(column, value)| rows.push(column, value));
        };
        self.condensed(Csr::by_rows((n, n), Vec::new, fill)).map(Some)
    }
}
