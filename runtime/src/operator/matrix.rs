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

pub(super) mod acoo;
pub(super) mod lists;
pub(super) mod slices;
mod sparsity;

use super::blocks::{AssignedKernel, CellBlock, PassInputs};
use super::engine::{self, EngineArray};
use super::{BuildError, Operator};
use crate::algebra::csr::{self, Csr};
use crate::algebra::vector::Vector;
use crate::device::acoo::ElementPositions;
use crate::device::{DeviceError, EntrySelection, SparseMatrix};
use crate::kernels::representation::{Assembly, Representation};
use crate::operator::batch::Batches;
use crate::solve::OperatorError;
use crate::support::memory::{InsufficientMemory, MemoryBudget};
use kernels_gen::abi::Role;
use kernels_gen::dialect::c::rows::ROWS;
use kernels_gen::dialect::c::slices::SLICE;
use kernels_gen::plan::Task;
use kernels_gen::plan::cell_matrix::CellMatrix;
use lists::SummationLists;
use slices::{SlicePositions, SlicedMatrix};
use sparsity::{NOWHERE, Sparsity};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Assembly algorithm.
pub(super) enum AssemblyTables {
    /// Positions of the entries of each kernel.
    Positions(BTreeMap<usize, EngineArray>),
    /// Summation lists of each kernel's stored elements.
    Sums(BTreeMap<usize, SummationLists>),
    /// Kernels in storage order, and the position of each of their elements.
    Merged(Vec<usize>, ElementPositions),
}

/// A sparse matrix with its assembly algorithm.
pub(super) struct AssembledMatrix {
    ways: AssemblyTables,
    /// Diagonal entries of constrained degrees of freedom, if they are not among the elements.
    fixed: Option<UnitEntries>,
    /// Length of vectors.
    len: usize,
    /// Number of entries.
    count: usize,
    pub(super) lies: StorageFormat,
}

/// Entries that are 1 in every assembly.
pub(super) enum UnitEntries {
    Host(Vec<u32>),
    Device(EntrySelection),
}

/// Storage format of a matrix.
pub(super) enum StorageFormat {
    /// Compressed sparse rows.
    Rows(CompressedRows),
    /// Slices of rows, for adjacent device threads on adjacent rows.
    Slices(SlicedMatrix),
}

/// A matrix in compressed sparse rows.
pub(super) struct CompressedRows {
    /// Offset of each row, and the end of the last.
    pub(super) starts: EngineArray,
    /// Positions of columns in vectors.
    pub(super) columns: EngineArray,
    pub(super) entries: EngineArray,
    /// Vendor library handle, if it multiplies.
    pub(super) vendor: Option<VendorMatrix>,
}

impl StorageFormat {
    /// Returns the entries.
    fn entries_mut(&mut self) -> &mut EngineArray {
        match self {
            Self::Rows(rows) => &mut rows.entries,
            Self::Slices(slices) => &mut slices.entries,
        }
    }
}

/// A matrix handle of the vendor's library.
pub(super) type VendorMatrix = Mutex<Box<dyn SparseMatrix>>;

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
                self.wants(how.tasks())?;
                if how == Representation::Stored {
                    let bytes = self.stored_elements() as f64 * self.real();
                    self.has_room("the element matrices", bytes)?;
                    self.blocks.make_room_for_matrices(&*self.engine, None)?;
                }
                Some(JacobianStorage::Elements(product))
            }
            Representation::Assembled(assembly) => {
                self.wants(how.tasks())?;
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
    fn has_room(&self, what: &str, bytes: f64) -> Result<(), BuildError> {
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

    fn wants(&self, tasks: &[Task]) -> Result<(), BuildError> {
        match tasks.iter().find(|&&task| !self.has(task)) {
            Some(task) => Err(BuildError::NoKernels { task: task.word() }),
            None => Ok(()),
        }
    }

    fn matrix_of(&mut self, assembly: Assembly) -> Result<AssembledMatrix, BuildError> {
        let (on, engine) = (&self.blocks.on, &*self.engine);
        let works: Vec<(usize, &AssignedKernel, &CellBlock)> = self.blocks.matrix_works().collect();
        let stored = works.iter().all(|(_, work, _)| stores(work));
        if stored == matches!(assembly, Assembly::Pattern | Assembly::Coloured) {
            return Err(BuildError::OtherAssembly { assembly });
        }
        let matrix = |work: &AssignedKernel| work.kernel.matrix.clone().unwrap_or_default();
        let matrices: Vec<CellMatrix> = works.iter().map(|(_, work, _)| matrix(work)).collect();
        let batches = works.iter().map(|(_, _, block)| &*block.batches);
        let parts: Vec<(&CellMatrix, &Batches)> = matrices.iter().zip(batches).collect();
        let layout = self.arithmetic().map(|arithmetic| arithmetic.layout());
        let len = layout.map_or(on.n_dofs(), |layout| layout.len(on.n_dofs()));
        let place = |dof: usize| layout.map_or(dof, |layout| layout.place(dof));
        let elements = self.stored_elements();
        if elements >= NOWHERE as usize {
            return Err(BuildError::TooManyNumbers { numbers: elements });
        }
        let index = 4.0;
        if assembly == Assembly::Acoo {
            let mut order: Vec<usize> = (0..works.len()).collect();
            let stored = |i: usize| works[i].2.batches.len() * matrices[i].entries;
            order.sort_by_key(|&i| std::cmp::Reverse(stored(i)));
            let parts: Vec<_> = order.iter().map(|&i| parts[i]).collect();
            let elements = acoo::elements(on, &parts, place);
            // Elements, one link and row index per element-matrix row, and two numbers per matrix row; the number of
            // entries is not yet known.
            let real = self.precision().bytes();
            let tables = elements.on_devices().bytes(len, real);
            let bytes = elements.count * real + 4 * (2 * elements.dofs.len() + 2 * len) + tables;
            self.has_room("assembling the matrix", bytes as f64)?;
            let order = order.into_iter().map(|i| works[i].0).collect();
            let none = |length: usize| engine.indices(vec![0; length], 1, 1);
            let (starts, columns, entries) = (none(1)?, none(0)?, engine.zeros(0)?);
            let lies =
                StorageFormat::Rows(CompressedRows { starts, columns, entries, vendor: None });
            self.engine.prepare_elements(&elements, len)?;
            let ways = AssemblyTables::Merged(order, elements);
            return Ok(AssembledMatrix { ways, fixed: None, len, count: 0, lies });
        }
        let mut sparsity = Sparsity::new(on, &parts, len, place)
            .map_err(|entries| BuildError::TooManyEntries { entries })?;
        let n = sparsity.entries();
        let slices = layout.and_then(|_| SlicePositions::new(&sparsity.starts));
        if let Some(sliced) = &slices {
            sparsity.lie(on, SLICE as u32, |dof| sliced.place(place(dof), 0));
        }
        // Number of summed entries.
        let sums = slices.as_ref().map_or(n, |sliced| sliced.count);
        let stores = if stored { self.real() } else { 0.0 };
        // Offsets of the summation lists, for each kernel.
        let lists = if stored { index * (works.len() * (sums + 1)) as f64 } else { 0.0 };
        let indices = match &slices {
            Some(sliced) => sliced.index_bytes() as f64,
            None => index * (n + len + 1) as f64,
        };
        let fixed = sparsity.fixed(on);
        let given = fixed.len() as f64 * index;
        let own = sums as f64 * self.real() + indices + lists + given;
        self.has_room(
            "the matrix and what assembles it",
            elements as f64 * (index + stores) + own,
        )?;
        let places = works.iter().zip(&matrices).map(|(&(number, _, block), matrix)| {
            let places = sparsity.places(on, matrix, &block.batches);
            (number, places, (matrix.entries, block.batches.lanes()))
        });
        let ways = if stored {
            let lists = places.map(|(number, places, _)| {
                Ok((number, SummationLists::new(engine, sums, &places)?))
            });
            AssemblyTables::Sums(lists.collect::<Result<_, DeviceError>>()?)
        } else {
            let tables = places.map(|(number, places, (entries, lanes))| {
                Ok((number, engine.indices(places, entries, lanes)?))
            });
            AssemblyTables::Positions(tables.collect::<Result<_, DeviceError>>()?)
        };
        let fixed = Some(engine.fixed(fixed, sums)?);
        let lies = match slices {
            Some(sliced) => {
                let columns = sliced.columns(&sparsity.starts, &sparsity.columns);
                StorageFormat::Slices(SlicedMatrix {
                    starts: engine.indices(sliced.starts(), 1, 1)?,
                    columns: engine.indices(columns, 1, 1)?,
                    entries: engine.zeros(sums)?,
                })
            }
            None => {
                let mut starts: Vec<u32> =
                    sparsity.starts.iter().map(|&start| start as u32).collect();
                // Padding: a group of threads processes `ROWS` rows.
                starts.resize(len.next_multiple_of(ROWS) + 1, n as u32);
                let starts = engine.indices(starts, 1, 1)?;
                let columns = engine.indices(sparsity.columns, 1, 1)?;
                let entries = engine.zeros(n)?;
                let vendor = engine.vendor(&starts, &columns, &entries, len)?;
                StorageFormat::Rows(CompressedRows { starts, columns, entries, vendor })
            }
        };
        if let AssemblyTables::Positions(places) = &ways {
            let runs = self.blocks.matrix_runs(None);
            let runs: Vec<_> =
                runs.filter_map(|(number, run)| Some((run, places.get(&number)?))).collect();
            self.engine.prepare_entries(&runs, sums)?;
        } else {
            self.blocks.make_room_for_matrices(&*self.engine, None)?;
        }
        Ok(AssembledMatrix { ways, fixed, len, count: n, lies })
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
        match represented {
            JacobianStorage::Elements(Task::StoredProduct) => {
                self.blocks.make_matrices(engine, state)
            }
            JacobianStorage::Elements(_) => Ok(()),
            JacobianStorage::Matrix(matrix) => {
                let AssembledMatrix { ways, fixed, len, count, lies } = &mut **matrix;
                match ways {
                    AssemblyTables::Merged(order, elements) => {
                        let Some(&first) = order.first() else { return Ok(()) };
                        // Frees the old matrix first.
                        let none = engine.indices(vec![0], 1, 1)?;
                        let columns = engine.indices(Vec::new(), 1, 1)?;
                        let entries = engine.zeros(0)?;
                        *lies = StorageFormat::Rows(CompressedRows {
                            starts: none,
                            columns,
                            entries,
                            vendor: None,
                        });
                        let room = Some((first, elements.count));
                        self.blocks.make_room_for_matrices(engine, room)?;
                        self.blocks.make_matrices(engine, state)?;
                        let Some(cells) = self.blocks.take_matrices(first) else { return Ok(()) };
                        let others = order.iter().zip(&elements.works).skip(1);
                        let others = others.filter_map(|(&number, work)| {
                            Some((work.first, self.blocks.take_matrices(number)?))
                        });
                        let others = others.collect();
                        let made = engine.merge_elements(elements, cells, others, *len)?;
                        let [starts, columns, entries] = made;
                        let vendor = engine.vendor(&starts, &columns, &entries, *len)?;
                        *count = entries.len();
                        *lies = StorageFormat::Rows(CompressedRows {
                            starts,
                            columns,
                            entries,
                            vendor,
                        });
                    }
                    AssemblyTables::Positions(places) => {
                        let runs = self.blocks.matrix_runs(state);
                        let runs: Vec<_> = runs
                            .filter_map(|(number, run)| Some((run, places.get(&number)?)))
                            .collect();
                        engine.add_entries(&runs, lies.entries_mut())?;
                    }
                    AssemblyTables::Sums(lists) => {
                        self.blocks.make_matrices(engine, state)?;
                        let stored = self.blocks.matrix_runs(state).filter_map(|(number, run)| {
                            Some((
                                run.block.array(Role::CellMatrix, run.work.kernel.geometry)?,
                                lists.get(&number)?,
                            ))
                        });
                        let stored: Vec<_> = stored.collect();
                        engine.sum_entries(&stored, lies.entries_mut())?;
                    }
                }
                match fixed {
                    Some(fixed) => engine.set_entries(fixed, 1.0, lies.entries_mut()),
                    None => Ok(()),
                }
            }
        }
    }

    /// Computes y = J x in the current representation; rows of constrained degrees of freedom are those of x.
    pub(super) fn act(
        &self,
        x: &Vector,
        rows: engine::ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let inputs = PassInputs { direction: Some(x), ..self.linearised() };
        match &self.represented {
            None => self.pass(Task::Action, inputs, rows, y),
            Some(JacobianStorage::Elements(task)) => self.pass(*task, inputs, rows, y),
            Some(JacobianStorage::Matrix(matrix)) => {
                self.fits(x)?;
                self.fits(y)?;
                self.engine.multiply(matrix, x, y)?;
                // Sums the contributions of all processes to interface rows.
                y.add_up();
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
        let place = self.arithmetic().map(|arithmetic| arithmetic.layout());
        let place = |dof: usize| place.map_or(dof, |layout| layout.place(dof));
        let (starts, columns, values) = match &matrix.lies {
            StorageFormat::Rows(CompressedRows { starts, columns, entries, .. })
            | StorageFormat::Slices(SlicedMatrix { starts, columns, entries }) => (
                self.engine.integers(starts)?,
                self.engine.integers(columns)?,
                self.engine.numbers(entries)?,
            ),
        };
        let mut dofs = vec![NOWHERE; matrix.len];
        let n = self.blocks.on.n_dofs();
        (0..n).for_each(|dof| dofs[place(dof)] = dof as u32);
        let fill = |dof: usize, row: &mut Vec<(u32, f64)>, rows: &mut csr::RowBuilder| {
            let own = place(dof);
            row.clear();
            match &matrix.lies {
                StorageFormat::Rows(_) => {
                    let range = starts[own] as usize..starts[own + 1] as usize;
                    let columns = columns[range.clone()].iter().copied();
                    row.extend(columns.zip(values[range].iter().copied()));
                }
                StorageFormat::Slices(_) => {
                    row.extend(slices::row(&starts, &columns, &values, own))
                }
            }
            row.iter_mut().for_each(|(column, _)| *column = dofs[*column as usize]);
            row.sort_unstable_by_key(|(column, _)| *column);
            row.iter().for_each(|&(column, value)| rows.push(column, value));
        };
        self.closed(Csr::by_rows(n, Vec::new, fill)).map(Some)
    }
}
