//! Kernels of an operator with their cells and input tables ([`KernelBlocks`]).
//!
//! A block contains the cells of one class in batches of one width, with the tables that its kernels read. A
//! [`KernelRun`] is a kernel over its block; a [`KernelPass`] is a set of runs that sum into one vector.

use super::batch::Batches;
use super::memory::{EntryList, MemoryArray};
use super::table_cache::TableCache;
use super::tables::TableKind;
use super::{BuildError, CellClass, CellKernel, CellSubset};
use crate::algebra::vector::{Precision, Vector};
use crate::mesh::Facet;
use crate::mesh::pairs::CellPair;
use crate::mesh::partition::Partition;
use crate::solve::OperatorError;
use crate::space::discretisation::Discretisation;
use kernels_gen::abi::{self, KernelAbi, Role, Slots};
use kernels_gen::plan::{Geometry, Task, turns};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Cells of one class in batches of one width, with their tables.
pub(super) struct CellBlock {
    pub(super) class: CellClass,
    /// Slots of a batch for each field, for kernels of thread groups; empty otherwise.
    pub(super) slots: Vec<Slots>,
    pub(super) batches: Arc<Batches>,
    /// Index of its tables in the shared cache.
    pub(super) rack: usize,
    /// Number of cells; 0 for facets.
    pub(super) cells: usize,
    pub(super) tables: BTreeMap<TableKind, Arc<MemoryArray>>,
    /// Output of [`Task::Linearise`].
    pub(super) stored: Option<MemoryArray>,
    /// Output of [`Task::Matrix`].
    pub(super) matrices: Option<MemoryArray>,
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
    /// In summation order: cells without hanging nodes, other cells, facets.
    pub(super) works: Vec<AssignedKernel>,
    pub(super) blocks: Vec<CellBlock>,
    /// Kernels of [`Task::Flux`], which process ranges of cells ([`super::fluxes`]); their blocks are empty.
    pub(super) fluxes: Vec<AssignedKernel>,
    /// Time and parameters.
    pub(super) params: MemoryArray,
    /// Nodal auxiliary data.
    pub(super) aux: BTreeMap<usize, Arc<MemoryArray>>,
    /// Nodal data copied from vectors.
    pub(super) nodal_entries: BTreeMap<usize, NodalEntries>,
    /// Table cache shared with other operators.
    pub(super) table_cache: TableCache,
    /// Number of tables built.
    pub(super) made: usize,
}

/// Entries of vectors that become nodal data.
pub(super) struct NodalEntries {
    pub(super) list: EntryList,
    pub(super) count: usize,
    /// True if the data is currently 0.
    pub(super) zero: bool,
}

/// Value of a read argument.
pub(super) enum ArgumentValue<'a> {
    /// An array of the operator.
    Array(&'a MemoryArray),
    /// The degrees of freedom of a field.
    FieldDofs(&'a Vector, usize),
    /// A whole vector.
    WholeVector(&'a Vector),
}

/// A kernel over its block, with its inputs.
#[derive(Clone, Copy)]
pub(super) struct KernelRun<'a> {
    pub(super) work: &'a AssignedKernel,
    pub(super) block: &'a CellBlock,
    pub(super) blocks: &'a KernelBlocks,
    pub(super) inputs: PassInputs<'a>,
}

/// Kernels that sum into one vector.
#[derive(Clone, Copy)]
pub(super) struct KernelPass<'a> {
    pub(super) blocks: &'a KernelBlocks,
    task: Task,
    pub(super) inputs: PassInputs<'a>,
    /// Restriction to some parts of the cells.
    parts: Option<&'a [CellSubset]>,
}

/// Returns the batches of a class in the chunks of a partition, with slots for the nodes of each field if there are
/// any.
pub(super) fn in_chunks(
    on: &Discretisation,
    partition: &Partition,
    (class, lanes, slots): (CellClass, usize, &[Slots]),
) -> Result<Batches, BuildError> {
    let keep = kept(on, class);
    Ok(match class {
        CellClass::Facets(integral) | CellClass::HangingFacets(_, integral) => {
            match pairs_of(on, class) {
                Some(pairs) => {
                    Batches::of_pairs(partition, lanes, &pairs, disjoint_pairs(on).as_deref())
                }
                None => Batches::of_facets(partition, lanes, on.facets_of(integral)),
            }
        }
        CellClass::FacetsAt(number, integral) => match pairs_of(on, class) {
            Some(pairs) => Batches::of_pairs(partition, lanes, &pairs, None),
            None => Batches::of_facets(partition, lanes, &facets_at(on, number, integral)),
        },
        CellClass::Cells(..) if slots.is_empty() => Batches::new(partition, lanes, keep),
        CellClass::Cells(..) => {
            let fields = on.fields.iter().map(|field| &*field.space);
            let fields: Vec<_> = fields.zip(slots.iter().copied()).collect();
            Batches::in_slots(partition, lanes, &fields, keep)?
        }
    })
}

/// Returns the facets of an integral that are one facet of their cell.
pub(super) fn facets_at(on: &Discretisation, number: u16, integral: usize) -> Vec<Facet> {
    let facets = on.facets_of(integral).iter();
    facets.filter(|facet| u16::from(facet.local) == number).copied().collect()
}

/// Returns the pairs of cells of a class; `None` if it has single cells.
pub(super) fn pairs_of(on: &Discretisation, class: CellClass) -> Option<Vec<&CellPair>> {
    let pairs = on.pairs_of(class.integral()).filter(|_| class.is_of_facets())?;
    let cell = on.mesh.cell();
    let is_at = |pair: &CellPair| match class {
        CellClass::FacetsAt(number, _) => {
            let facets = pair.sides.map(|side| side.local);
            turns::of_pair(cell, facets, pair.orientations) == number
        }
        _ => true,
    };
    let own = |pair: &&CellPair| pair.larger == class.larger() && is_at(pair);
    Some(pairs.iter().filter(own).collect())
}

/// Returns all pairs of the form, if its cells share no degrees of freedom.
fn disjoint_pairs(on: &Discretisation) -> Option<Vec<&CellPair>> {
    let shared = on.fields.iter().any(|field| field.space.element().is_continuous());
    (!shared).then(|| on.pairs.iter().flatten().flatten().collect())
}

/// Returns the predicate of the cells of a class.
pub(super) fn kept(on: &Discretisation, class: CellClass) -> impl Fn(usize) -> bool + use<'_> {
    let (part, region) = match class {
        CellClass::Cells(part, integral) => (Some(part), on.cells_of(integral)),
        CellClass::Facets(_) | CellClass::FacetsAt(..) | CellClass::HangingFacets(..) => {
            (None, None)
        }
    };
    let inside = region.map(|cells| {
        let mut inside = vec![false; on.mesh.n_cells()];
        cells.iter().for_each(|&cell| inside[cell as usize] = true);
        inside
    });
    let words = on.mesh.hanging();
    move |cell| {
        part.is_some_and(|part| part.has(cell, words))
            && inside.as_ref().is_none_or(|inside| inside[cell])
    }
}

impl KernelBlocks {
    /// Iterates over all kernels with their blocks.
    pub(super) fn works(&self) -> impl Iterator<Item = (&AssignedKernel, &CellBlock)> {
        self.works.iter().map(|work| (work, &self.blocks[work.block]))
    }

    /// Returns the kernels of [`Task::Flux`].
    pub(super) fn fluxes(&self) -> &[AssignedKernel] {
        &self.fluxes
    }

    /// Iterates over the kernels of a task.
    pub(super) fn works_of(&self, task: Task) -> impl Iterator<Item = &AssignedKernel> {
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

    /// Takes the element matrices of a kernel.
    pub(super) fn take_matrices(&mut self, work: usize) -> Option<MemoryArray> {
        self.blocks[self.works[work].block].matrices.take()
    }

    /// Frees the element matrices.
    pub(super) fn drop_matrices(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.matrices = None);
    }

    /// Returns a kernel over its block.
    pub(super) fn run<'a>(
        &'a self,
        work: &'a AssignedKernel,
        inputs: PassInputs<'a>,
    ) -> KernelRun<'a> {
        KernelRun { work, block: &self.blocks[work.block], blocks: self, inputs }
    }

    /// Returns all kernels of a task as a pass.
    pub(super) fn pass<'a>(&'a self, task: Task, inputs: PassInputs<'a>) -> KernelPass<'a> {
        KernelPass { blocks: self, task, inputs, parts: None }
    }
}

impl CellBlock {
    /// Creates a block without tables, with its index in the shared cache.
    pub(super) fn of(class: CellClass, batches: Arc<Batches>, rack: usize) -> Self {
        let (slots, tables) = (Vec::new(), BTreeMap::new());
        Self { class, slots, batches, rack, cells: 0, tables, stored: None, matrices: None }
    }

    /// Returns a table, or data stored at quadrature points.
    pub(super) fn array(&self, role: Role, geometry: Geometry) -> Option<&MemoryArray> {
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

    /// Replaces the direction.
    pub(super) fn along(self, direction: &'a Vector) -> Self {
        let inputs = PassInputs { direction: Some(direction), ..self.inputs };
        Self { inputs, ..self }
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
            CellClass::Facets(_) | CellClass::FacetsAt(..) | CellClass::HangingFacets(..) => false,
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
            Role::State(field) => ArgumentValue::FieldDofs(self.inputs.state?, field),
            Role::Direction(field) => ArgumentValue::FieldDofs(self.inputs.direction?, field),
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
