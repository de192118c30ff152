//! The Jacobian of an operator as element matrices or as a sparse matrix: [`Representation`].
//!
//! ```text
//! represent    what is known before any state: places of entries, lists of what is added up, room
//! linearise    kernels make the element matrices; stored (ebe-v1), added to their places (pattern, coloured), or stored and
//!              added up place by place (owner)
//! apply        y = Σ_c A_c x_c or y = A x, in the place of the matrix-free action
//! ```

use super::blocks::{Block, Inputs, Work};
use super::engine::{Array, Engine, Rows};
use super::{BuildError, Operator};
use crate::assembly::acoo;
use crate::assembly::sparsity::{NOWHERE, Sparsity};
use crate::assembly::{Assembly, Representation};
use crate::batch::Batches;
use crate::csr::Csr;
use crate::device::acoo::Elements;
use crate::device::{DeviceError, SparseMatrix};
use crate::memory::{Room, TooMuch};
use crate::solve::OperatorError;
use crate::vector::Vector;
use kernels_gen::abi::Role;
use kernels_gen::dialect::c::rows::ROWS;
use kernels_gen::dialect::c::sum::UNKNOWNS;
use kernels_gen::dialect::c::take::NUMBERS;
use kernels_gen::plan::cell_matrix::CellMatrix;
use kernels_gen::plan::{Scatter, Task};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Elements or places that are worth a thread.
const GRAIN: usize = 1 << 12;

/// Rows of a slice, whose entries lie side by side: the threads of a warp have cells side by side, which add to rows side by side.
const SLICE: usize = 32;

/// By how much slices may be larger than rows, since all rows of a slice are as long as its longest.
const PADDING: f64 = 1.5;

/// Entries in the order in which devices add them up.
///
/// ```text
/// place of entry k of row i = 32 · (lengths of the slices before) + 32 · k + i mod 32
/// ```
pub(super) struct Slices {
    /// Room for them.
    entries: Array,
    /// Where each entry of a row has its number.
    places: Array,
}

/// The place of each entry of compressed rows in slices, and how many places there are; nothing where too many of them would be
/// empty.
fn sliced(starts: &[usize]) -> Option<(Vec<u32>, usize)> {
    let rows = starts.len() - 1;
    let length = |row: usize| starts[row + 1] - starts[row];
    let longest = |slice: usize| (slice..rows.min(slice + SLICE)).map(length).max().unwrap_or(0);
    let mut firsts = Vec::with_capacity(rows.div_ceil(SLICE));
    let mut count = 0;
    for slice in (0..rows).step_by(SLICE) {
        firsts.push(count);
        count += SLICE * longest(slice);
    }
    if count as f64 > PADDING * starts[rows] as f64 || count >= NOWHERE as usize {
        return None;
    }
    let mut places = vec![NOWHERE; starts[rows]];
    let mut rest = &mut places[..];
    let mut slices = Vec::with_capacity(firsts.len());
    for (slice, first) in firsts.into_iter().enumerate() {
        let range = slice * SLICE..rows.min((slice + 1) * SLICE);
        let (own, behind) = rest.split_at_mut(starts[range.end] - starts[range.start]);
        slices.push((range, first, own));
        rest = behind;
    }
    slices.into_par_iter().with_min_len(64).for_each(|(range, first, own)| {
        let before = starts[range.start];
        for row in range {
            let part = &mut own[starts[row] - before..starts[row + 1] - before];
            let at = first + row % SLICE;
            part.iter_mut().enumerate().for_each(|(k, place)| *place = (at + SLICE * k) as u32);
        }
    });
    Some((places, count))
}

/// What each place of a matrix adds up of what the cells of a block have stored.
pub(super) struct Lists {
    /// Where the list of each place begins, and the end of the last; places that fill up a group of threads have none.
    pub(super) starts: Array,
    /// Elements of what is stored.
    pub(super) elements: Array,
}

impl Lists {
    /// The lists of `n` places, from the place of each element.
    fn new(engine: &dyn Engine, n: usize, places: &[u32]) -> Result<Self, DeviceError> {
        let each = || places.par_iter().with_min_len(GRAIN).enumerate();
        let each = || each().filter(|(_, place)| **place != NOWHERE);
        let numbers = |n: usize| (0..n).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        let counts = numbers(n.next_multiple_of(UNKNOWNS) + 1);
        each().for_each(|(_, &place)| {
            counts[place as usize + 1].fetch_add(1, Ordering::Relaxed);
        });
        let mut starts: Vec<u32> = counts.into_iter().map(AtomicU32::into_inner).collect();
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let next: Vec<AtomicU32> = starts.iter().map(|&start| AtomicU32::new(start)).collect();
        let elements = numbers(starts[n] as usize);
        each().for_each(|(element, &place)| {
            let at = next[place as usize].fetch_add(1, Ordering::Relaxed);
            elements[at as usize].store(element as u32, Ordering::Relaxed);
        });
        let mut elements: Vec<u32> = elements.into_iter().map(AtomicU32::into_inner).collect();
        // Whoever came first, lists are in the order of the elements.
        let mut lists = Vec::with_capacity(n.div_ceil(GRAIN));
        let mut rest = &mut elements[..];
        for first in (0..n).step_by(GRAIN) {
            let range = first..n.min(first + GRAIN);
            let length = (starts[range.end] - starts[range.start]) as usize;
            let (part, behind) = rest.split_at_mut(length);
            lists.push((range, part));
            rest = behind;
        }
        lists.into_par_iter().for_each(|(range, part)| {
            let before = starts[range.start];
            for place in range {
                let list = starts[place] - before..starts[place + 1] - before;
                part[list.start as usize..list.end as usize].sort_unstable();
            }
        });
        let array = |indices| engine.indices(indices, 1, 1);
        Ok(Self { starts: array(starts)?, elements: array(elements)? })
    }
}

/// How entries come to a matrix.
pub(super) enum Ways {
    /// For each kernel where its entries go.
    Places(BTreeMap<usize, Array>),
    /// For each kernel what places add up of what it stores.
    Sums(BTreeMap<usize, Lists>),
    /// The kernels in the order of what they store, and where each element of that goes.
    Merged(Vec<usize>, Elements),
}

/// A sparse matrix with how it is assembled.
pub(super) struct Matrix {
    ways: Ways,
    /// Where entries are added up, if not in their rows.
    slices: Option<Slices>,
    /// The entries on the diagonal of unknowns with essential conditions, where they are not among the elements.
    fixed: Vec<u32>,
    /// The length of vectors.
    len: usize,
    /// Where each row begins, and the end of the last.
    pub(super) starts: Array,
    /// The places of columns in vectors.
    pub(super) columns: Array,
    pub(super) entries: Array,
    /// What multiplies with it, where that is not our own kernel.
    pub(super) vendor: Option<Vendor>,
}

/// A matrix that the library of a device's vendor multiplies with.
pub(super) type Vendor = Mutex<Box<dyn SparseMatrix>>;

/// What a matrix has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatrixSize {
    /// Entries of all element matrices, with those of cells that fill up batches.
    pub elements: usize,
    /// Entries of the sparse matrix.
    pub entries: usize,
}

/// How an operator is applied where that is not matrix-free.
pub(super) enum Represented {
    /// By products with element matrices.
    Elements(Task),
    /// By a matrix.
    Matrix(Box<Matrix>),
}

impl Representation {
    /// The tasks beside residual and diagonal whose kernels it needs.
    pub fn tasks(self) -> &'static [Task] {
        match self {
            Self::MatrixFree => &[Task::Action],
            Self::Assembled(_) => &[Task::Matrix],
            Self::Stored => &[Task::Matrix, Task::StoredProduct],
            Self::Recomputed => &[Task::MatrixProduct],
        }
    }

    /// How its kernels bring element matrices to their places: [`kernels_gen::choose::Wishes::matrix`].
    pub fn scatter(self) -> Scatter {
        match self {
            Self::Assembled(Assembly::Pattern) => Scatter::Atomic,
            Self::Assembled(Assembly::Coloured) => Scatter::Coloured,
            _ => Scatter::Owner,
        }
    }
}

/// Whether a kernel stores element matrices, and does not add them to their places.
fn stores(work: &Work) -> bool {
    work.abi.arguments.iter().any(|argument| argument.role == Role::CellMatrix)
}

impl Operator {
    /// Has the Jacobian applied in another way, from the next linearisation on. The operator's kernels must be those of
    /// [`Representation::tasks`], and [`Representation::scatter`] what they were chosen for.
    ///
    /// # Errors
    ///
    /// Kernels that are missing; a matrix with more entries than 32-bit indices number; too little memory.
    pub fn represent(&mut self, how: Representation) -> Result<(), BuildError> {
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
                Some(Represented::Elements(product))
            }
            Representation::Assembled(assembly) => {
                self.wants(how.tasks())?;
                Some(Represented::Matrix(Box::new(self.matrix_of(assembly)?)))
            }
        };
        Ok(())
    }

    /// Bytes of a real number.
    fn real(&self) -> f64 {
        self.precision().bytes() as f64
    }

    /// Entries of all element matrices, those of cells that fill up batches too.
    fn stored_elements(&self) -> usize {
        let works = self.blocks.matrix_works();
        let entries = works.map(|(_, work, block)| {
            let own = work.kernel.matrix.as_ref().map_or(0, |matrix| matrix.entries);
            own * block.batches.lanes() * block.batches.len()
        });
        entries.sum()
    }

    /// Whether there is memory for so many bytes more.
    fn has_room(&self, what: &str, bytes: f64) -> Result<(), BuildError> {
        let n = self.blocks.on.n_dofs();
        let what = || format!("{what} of {n} unknowns");
        let Some(arithmetic) = self.arithmetic() else { return Ok(Room::check(what, bytes)?) };
        let free = arithmetic.device().free_bytes().filter(|&free| bytes > free);
        match free {
            None => Ok(()),
            Some(free) => {
                let room = Room { bytes: free, bound: "what the device has" };
                let remedy = "the matrix-free operator, fewer cells or a lower degree";
                Err(TooMuch { what: what(), bytes, room, remedy }.into())
            }
        }
    }

    fn wants(&self, tasks: &[Task]) -> Result<(), BuildError> {
        match tasks.iter().find(|&&task| !self.has(task)) {
            Some(task) => Err(BuildError::NoKernels { task: task.word() }),
            None => Ok(()),
        }
    }

    fn matrix_of(&mut self, assembly: Assembly) -> Result<Matrix, BuildError> {
        let (on, engine) = (&self.blocks.on, &*self.engine);
        let works: Vec<(usize, &Work, &Block)> = self.blocks.matrix_works().collect();
        let stored = works.iter().all(|(_, work, _)| stores(work));
        if stored == matches!(assembly, Assembly::Pattern | Assembly::Coloured) {
            return Err(BuildError::OtherAssembly { assembly });
        }
        let matrix = |work: &Work| work.kernel.matrix.clone().unwrap_or_default();
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
            // Elements with their links, and two numbers a row; how many entries are left, shows then.
            let bytes = elements as f64 * (self.real() + index) + 2.0 * index * len as f64;
            self.has_room("assembling the matrix", bytes)?;
            let mut order: Vec<usize> = (0..works.len()).collect();
            let stored = |i: usize| works[i].2.batches.len() * matrices[i].entries;
            order.sort_by_key(|&i| std::cmp::Reverse(stored(i)));
            let parts: Vec<_> = order.iter().map(|&i| parts[i]).collect();
            let elements = acoo::elements(on, &parts, place);
            let order = order.into_iter().map(|i| works[i].0).collect();
            let none = |length: usize| engine.indices(vec![0; length], 1, 1);
            let (starts, columns, entries) = (none(1)?, none(0)?, engine.zeros(0)?);
            self.engine.prepare_elements(&elements, len)?;
            let (ways, fixed) = (Ways::Merged(order, elements), Vec::new());
            let slices = None;
            return Ok(Matrix { ways, slices, fixed, len, starts, columns, entries, vendor: None });
        }
        let sparsity = Sparsity::new(on, &parts, len, place)
            .map_err(|entries| BuildError::TooManyEntries { entries })?;
        let n = sparsity.entries();
        let slices = layout.and_then(|_| sliced(&sparsity.starts));
        // How many numbers are added up.
        let sums = slices.as_ref().map_or(n, |(_, count)| *count);
        let stores = if stored { self.real() } else { 0.0 };
        let bytes = (elements as f64) * (index + stores)
            + n as f64 * (self.real() + 2.0 * index)
            + slices
                .as_ref()
                .map_or(0.0, |(_, count)| *count as f64 * self.real() + n as f64 * index)
            + len as f64 * index;
        self.has_room("the matrix and what assembles it", bytes)?;
        let places = works.iter().zip(&matrices).map(|(&(number, _, block), matrix)| {
            let mut places = sparsity.places(on, matrix, &block.batches);
            if let Some((own, _)) = &slices {
                let known = places.par_iter_mut().with_min_len(GRAIN);
                known
                    .filter(|place| **place != NOWHERE)
                    .for_each(|place| *place = own[*place as usize]);
            }
            (number, places, (matrix.entries, block.batches.lanes()))
        });
        let ways = if stored {
            let lists =
                places.map(|(number, places, _)| Ok((number, Lists::new(engine, sums, &places)?)));
            Ways::Sums(lists.collect::<Result<_, DeviceError>>()?)
        } else {
            let tables = places.map(|(number, places, (entries, lanes))| {
                Ok((number, engine.indices(places, entries, lanes)?))
            });
            Ways::Places(tables.collect::<Result<_, DeviceError>>()?)
        };
        let mut starts: Vec<u32> = sparsity.starts.iter().map(|&start| start as u32).collect();
        // A group of threads has rows of its own.
        starts.resize(len.next_multiple_of(ROWS) + 1, n as u32);
        let starts = engine.indices(starts, 1, 1)?;
        let slices = match slices {
            Some((mut places, count)) => {
                places.resize(n.next_multiple_of(NUMBERS), NOWHERE);
                let places = engine.indices(places, 1, 1)?;
                Some(Slices { entries: engine.zeros(count)?, places })
            }
            None => None,
        };
        let columns = engine.indices(sparsity.columns, 1, 1)?;
        let entries = engine.zeros(n)?;
        if let Ways::Places(places) = &ways {
            let runs = self.blocks.matrix_runs(None);
            let runs: Vec<_> =
                runs.filter_map(|(number, run)| Some((run, places.get(&number)?))).collect();
            self.engine.prepare_entries(&runs, sums)?;
        }
        let vendor = self.engine.vendor(&starts, &columns, &entries, len)?;
        let fixed = sparsity.fixed;
        Ok(Matrix { ways, slices, fixed, len, starts, columns, entries, vendor })
    }

    /// Makes the element matrices at the state of the linearisation, and what is made of them.
    pub(crate) fn assemble(&mut self) -> Result<(), OperatorError> {
        let Some(mut represented) = self.represented.take() else { return Ok(()) };
        let made = self.assemble_in(&mut represented);
        self.represented = Some(represented);
        made
    }

    fn assemble_in(&mut self, represented: &mut Represented) -> Result<(), OperatorError> {
        let (engine, state) = (&*self.engine, self.state.as_ref());
        match represented {
            Represented::Elements(Task::StoredProduct) => self.blocks.make_matrices(engine, state),
            Represented::Elements(_) => Ok(()),
            Represented::Matrix(matrix) => {
                let Matrix { ways, slices, fixed, len, starts, columns, entries, vendor } =
                    &mut **matrix;
                let sums = slices.as_mut().map_or(&mut *entries, |slices| &mut slices.entries);
                match ways {
                    Ways::Merged(order, elements) => {
                        let Some(&first) = order.first() else { return Ok(()) };
                        // What there was before makes room.
                        (*vendor, *entries) = (None, engine.zeros(0)?);
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
                        [*starts, *columns, *entries] = made;
                        *vendor = engine.vendor(starts, columns, entries, *len)?;
                    }
                    Ways::Places(places) => {
                        let runs = self.blocks.matrix_runs(state);
                        let runs: Vec<_> = runs
                            .filter_map(|(number, run)| Some((run, places.get(&number)?)))
                            .collect();
                        engine.add_entries(&runs, sums)?;
                    }
                    Ways::Sums(lists) => {
                        self.blocks.make_room_for_matrices(engine, None)?;
                        self.blocks.make_matrices(engine, state)?;
                        let stored = self.blocks.matrix_runs(state).filter_map(|(number, run)| {
                            Some((
                                run.block.array(Role::CellMatrix, run.work.kernel.geometry)?,
                                lists.get(&number)?,
                            ))
                        });
                        let stored: Vec<_> = stored.collect();
                        engine.sum_entries(&stored, sums)?;
                        drop(stored);
                        self.blocks.drop_matrices();
                    }
                }
                if let Some(Slices { entries: from, places }) = slices {
                    engine.take_entries(places, from, entries)?;
                }
                engine.set_entries(fixed, 1.0, entries)
            }
        }
    }

    /// y = J x in the way that was asked for; rows of constrained unknowns are those of x.
    pub(super) fn act(
        &self,
        x: &Vector,
        rows: Rows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        let inputs = Inputs { direction: Some(x), ..self.linearised() };
        match &self.represented {
            None => self.pass(Task::Action, inputs, rows, y),
            Some(Represented::Elements(task)) => self.pass(*task, inputs, rows, y),
            Some(Represented::Matrix(matrix)) => {
                self.fits(x)?;
                self.fits(y)?;
                self.engine.multiply(matrix, x, y)
            }
        }
    }

    /// What the matrix has, or the element matrices.
    pub fn matrix_size(&self) -> MatrixSize {
        let entries = match &self.represented {
            Some(Represented::Matrix(matrix)) => matrix.entries.len(),
            _ => 0,
        };
        MatrixSize { elements: self.stored_elements(), entries }
    }

    /// Whether unknowns have conditions in common, so that the matrix is not that of the element matrices alone.
    pub fn has_combinations(&self) -> bool {
        self.combined.is_some()
    }

    /// The assembled matrix at the last linearisation, where there is one: in the numbering of the discretisation, columns
    /// ascending.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn assembled(&self) -> Result<Option<Csr>, OperatorError> {
        let Some(Represented::Matrix(matrix)) = &self.represented else { return Ok(None) };
        let place = self.arithmetic().map(|arithmetic| arithmetic.layout());
        let place = |dof: usize| place.map_or(dof, |layout| layout.place(dof));
        let starts = self.engine.integers(&matrix.starts)?;
        let columns = self.engine.integers(&matrix.columns)?;
        let values = self.engine.numbers(&matrix.entries)?;
        let mut dofs = vec![NOWHERE; matrix.len];
        let n = self.blocks.on.n_dofs();
        (0..n).for_each(|dof| dofs[place(dof)] = dof as u32);
        let mut csr = Csr { starts: vec![0], columns: Vec::new(), values: Vec::new() };
        let mut row: Vec<(u32, f64)> = Vec::new();
        for dof in 0..n {
            let range = starts[place(dof)] as usize..starts[place(dof) + 1] as usize;
            row.clear();
            let own = columns[range.clone()].iter().map(|&column| dofs[column as usize]);
            row.extend(own.zip(values[range].iter().copied()));
            row.sort_unstable_by_key(|(column, _)| *column);
            csr.columns.extend(row.iter().map(|(column, _)| *column));
            csr.values.extend(row.iter().map(|(_, value)| *value));
            csr.starts.push(csr.columns.len());
        }
        Ok(Some(csr))
    }
}
