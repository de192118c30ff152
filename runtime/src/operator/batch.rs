//! Batches: W cells that a SIMD kernel treats at once, and the tables that the kernel reads.
//!
//! From a [`Partition`], a choice of cells and W to [`Batches`]: chunk by chunk in execution order
//! the chosen cells in groups of W, the last group of a chunk (or of chunks that are numbered together) padded by repeating its last cell.
//! Every table is `[batch][entry][lane]`. Cells with constrained unknowns form [`Batches`] of their
//! own ([`Batches::split`]), because they are addressed unknown by unknown. Instead of chunks there can
//! be colours ([`Batches::coloured`]), and a batch can end early, when there is no more room for the nodes of its cells
//! ([`Batches::in_slots`]). A lane can also be a facet of a cell ([`Batches::of_facets`]): its cell's nodes then
//! come in the order of a cell that is turned.

mod colours;
mod slots;

use crate::device::cpu::{Buffer, Plain};
use crate::mesh::partition::{Chunk, Partition};
use crate::mesh::{Facet, Mesh};
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::support::parallel::*;
use kernels_gen::element::Lagrange;
pub use slots::{Number, SlotsError};
use std::ops::Range;

/// Marks a constrained unknown in [`Batches::dofs`].
pub const CONSTRAINED: u32 = u32::MAX;

/// Cells in groups of W.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    lanes: usize,
    cells: Vec<u32>,
    active: Vec<u32>,
    /// The facet of each lane's cell, where facets are integrated over; otherwise nothing.
    locals: Vec<u8>,
    /// The batches of each part of a partition, or colour.
    parts: Vec<Range<usize>>,
}

impl Batches {
    /// Groups the cells that `keep` chooses in batches of `lanes` cells.
    pub fn new(partition: &Partition, lanes: usize, keep: impl Fn(usize) -> bool) -> Self {
        let parts = partition.parts().into_iter();
        Self::of_parts(lanes, parts.map(|part| partition.cells_of(part).filter(|&cell| keep(cell))))
    }

    /// The same, where cells of a chunk come in the order of a key.
    pub fn sorted(
        partition: &Partition,
        lanes: usize,
        keep: impl Fn(usize) -> bool,
        key: impl Fn(usize) -> u32,
    ) -> Self {
        let chunks = partition.parts().into_iter().map(|part| {
            let own = partition.cells_of(part);
            let mut cells: Vec<usize> = own.filter(|&cell| keep(cell)).collect();
            cells.sort_by_key(|&cell| key(cell));
            cells.into_iter()
        });
        Self::of_parts(lanes, chunks)
    }

    /// Groups the cells that `keep` chooses in batches of cells of one colour, colour after colour: no two
    /// cells of a colour share an unknown.
    pub fn coloured(mesh: &Mesh, lanes: usize, keep: impl Fn(usize) -> bool) -> Self {
        let colours = colours::colours(mesh, (0..mesh.n_cells()).filter(|&cell| keep(cell)));
        let cells = |colour: Vec<u32>| colour.into_iter().map(|cell| cell as usize);
        Self::of_parts(lanes, colours.into_iter().map(cells))
    }

    /// Batches of which each has cells of one part.
    fn of_parts(lanes: usize, parts: impl Iterator<Item = impl Iterator<Item = usize>>) -> Self {
        let facets = |part: Vec<usize>| part.into_iter().map(|cell| (cell as u32, None));
        Self::of_lanes(lanes, parts.map(|part| facets(part.collect())))
    }

    /// Batches of facets, each turned to be ξ₀ = 0 of its cell, in the chunks of their cells; `facets` are in the order
    /// of the cells.
    pub fn of_facets(partition: &Partition, lanes: usize, facets: &[Facet]) -> Self {
        let at = |cell: usize| facets.partition_point(|facet| (facet.cell as usize) < cell);
        let of_chunk = |chunk: &Chunk| &facets[at(chunk.cells.start)..at(chunk.cells.end)];
        let parts = partition.parts().into_iter();
        let chunks = parts.map(|part| partition.chunks()[part].iter().flat_map(of_chunk));
        let lane = |facet: &Facet| (facet.cell, Some(facet.local));
        Self::of_lanes(lanes, chunks.map(|facets| facets.map(lane)))
    }

    /// The same in parts of which no two facets share an unknown.
    pub fn facets_coloured(mesh: &Mesh, lanes: usize, facets: &[Facet]) -> Self {
        let mut cells: Vec<usize> = facets.iter().map(|facet| facet.cell as usize).collect();
        cells.dedup();
        let most = mesh.cell().facets().len();
        let mut parts = Vec::new();
        for colour in colours::colours(mesh, cells.into_iter()) {
            // The facets of a cell share its unknowns.
            for number in 0..most {
                let of = |&cell: &u32| {
                    let first = facets.partition_point(|facet| facet.cell < cell);
                    facets.get(first + number).filter(|facet| facet.cell == cell)
                };
                let part: Vec<&Facet> = colour.iter().filter_map(of).collect();
                parts.push(part);
            }
        }
        parts.retain(|part| !part.is_empty());
        let lane = |facet: &Facet| (facet.cell, Some(facet.local));
        Self::of_lanes(lanes, parts.into_iter().map(|part| part.into_iter().map(lane)))
    }

    /// Batches of which each has cells, or facets of cells, of one part.
    fn of_lanes(
        lanes: usize,
        parts: impl Iterator<Item = impl Iterator<Item = (u32, Option<u8>)>>,
    ) -> Self {
        let mut batches = Self::none(lanes);
        for part in parts {
            let start = batches.len();
            for (cell, local) in part {
                batches.cells.push(cell);
                batches.locals.extend(local);
                if batches.open() == lanes {
                    batches.close();
                }
            }
            batches.close();
            batches.parts.push(start..batches.len());
        }
        batches
    }

    /// Groups cells, or facets of them, as they come; parts have so many batches each.
    pub(crate) fn listed(
        lanes: usize,
        each: usize,
        cells: impl Iterator<Item = (u32, Option<u8>)>,
    ) -> Self {
        let all = Self::of_lanes(lanes, std::iter::once(cells));
        let starts = (0..all.len()).step_by(each.max(1));
        let parts = starts.map(|start| start..(start + each.max(1)).min(all.len())).collect();
        Self { parts, ..all }
    }

    /// No batches yet.
    pub(crate) fn none(lanes: usize) -> Self {
        assert!(lanes > 0, "a batch has at least one cell");
        let (cells, active, locals) = (Vec::new(), Vec::new(), Vec::new());
        Self { lanes, cells, active, locals, parts: Vec::new() }
    }

    /// Cells behind the last batch.
    fn open(&self) -> usize {
        self.cells.len() - self.len() * self.lanes
    }

    /// Makes a batch of the cells behind the last one, if any: at most W, of which the last is repeated.
    fn close(&mut self) {
        let (open, end) = (self.open(), (self.len() + 1) * self.lanes);
        if open == 0 {
            return;
        }
        self.active.push(open as u32);
        if let Some(&last) = self.cells.last() {
            self.cells.resize(end, last);
        }
        if let Some(&last) = self.locals.last() {
            self.locals.resize(end, last);
        }
    }

    /// The batches of cells without and with constrained unknowns. Each space goes with its
    /// constraints.
    pub fn split(
        partition: &Partition,
        lanes: usize,
        fields: &[(&Space, &Constraints)],
    ) -> (Self, Self) {
        let n_cells = partition.chunks().iter().map(|chunk| chunk.cells.len()).sum();
        let constrained = constrained_cells(n_cells, fields);
        (
            Self::new(partition, lanes, |cell| !constrained[cell]),
            Self::new(partition, lanes, |cell| constrained[cell]),
        )
    }

    /// Cells a batch, W.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The number of batches.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// Whether there are no batches.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// The cell of each lane, `[batch][lane]`.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// The facet of a lane's cell, where lanes are facets.
    pub fn local(&self, lane: usize) -> Option<u8> {
        self.locals.get(lane).copied()
    }

    /// How many lanes of each batch are cells of their own.
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// The batches of a chunk.
    pub fn of_chunk(&self, chunk: usize) -> Range<usize> {
        self.parts[chunk].clone()
    }

    /// The batches of each part of a partition, or of each colour.
    pub fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// A table `[batch][entry][lane]` with `entries` entries a cell, which `row` writes.
    pub fn table<T: Plain>(
        &self,
        entries: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Buffer<T> {
        self.rows(entries, |lane, buffer| row(self.cells[lane] as usize, buffer))
    }

    /// The same with `each` entries for each node of an element, in the order of the nodes of cells that are turned as
    /// their facets say; `row` writes them in the cell's own.
    pub fn of_nodes<T: Plain>(
        &self,
        element: Lagrange,
        each: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Buffer<T> {
        let entries = element.count() * each;
        if self.locals.is_empty() {
            return self.table(entries, row);
        }
        let turns = self.turns(element);
        self.rows(entries, |lane, buffer| {
            let mut own = vec![T::default(); entries];
            row(self.cells[lane] as usize, &mut own);
            let turn = &turns[self.locals[lane] as usize];
            for (to, &node) in buffer.chunks_mut(each).zip(turn) {
                to.copy_from_slice(&own[node * each..][..each]);
            }
        })
    }

    /// For each facet of a cell, the nodes of cells that are turned so.
    pub(crate) fn turns(&self, element: Lagrange) -> Vec<Vec<usize>> {
        (0..element.cell().facets().len()).map(|facet| element.turned(facet)).collect()
    }

    /// For each lane of its own, the lane's place and the nodes of its cell in the order of its table.
    pub fn each_cell<'a>(
        &'a self,
        space: &'a Space,
    ) -> impl Iterator<Item = (usize, Vec<u32>)> + 'a {
        let turns = if self.locals.is_empty() { Vec::new() } else { self.turns(space.element()) };
        let lanes = self.active.iter().enumerate().flat_map(|(batch, &active)| {
            let first = batch * self.lanes;
            first..first + active as usize
        });
        lanes.map(move |lane| {
            let own = space.cell_nodes(self.cells[lane] as usize);
            let nodes = match self.locals.get(lane) {
                Some(&local) => turns[local as usize].iter().map(|&node| own[node]).collect(),
                None => own.to_vec(),
            };
            (lane, nodes)
        })
    }

    /// A table `[batch][entry][lane]`; `row` is asked for each place of a lane.
    fn rows<T: Plain>(&self, entries: usize, row: impl Fn(usize, &mut [T]) + Sync) -> Buffer<T> {
        let lanes = self.lanes;
        let mut table = Buffer::zeroed(self.len() * entries * lanes);
        if table.is_empty() {
            return table;
        }
        table.par_chunks_mut(entries * lanes).enumerate().with_min_len(64).each_with(
            || vec![T::default(); entries],
            |buffer, (number, batch)| {
                for lane in 0..lanes {
                    row(number * lanes + lane, buffer);
                    for (entry, &value) in buffer.iter().enumerate() {
                        batch[entry * lanes + lane] = value;
                    }
                }
            },
        );
        table
    }

    /// The nodes of each cell, `[batch][node][lane]`.
    pub fn nodes(&self, space: &Space) -> Buffer<u32> {
        let row = |cell: usize, row: &mut [u32]| row.copy_from_slice(space.cell_nodes(cell));
        self.of_nodes(space.element(), 1, row)
    }

    /// The first unknown of each entity of each cell, `[batch][entity][lane]`; see [`Space::runs`].
    pub fn runs(&self, space: &Space) -> Option<Buffer<u32>> {
        let runs = space.runs()?;
        let entities = 3usize.pow(space.element().cell().dim() as u32);
        let components = space.components() as u32;
        Some(self.table(entities, |cell, row| {
            let starts = &runs[cell * entities..(cell + 1) * entities];
            for (entry, &start) in row.iter_mut().zip(starts) {
                *entry = start * components;
            }
        }))
    }

    /// The unknowns of each cell, `[batch][node · components + component][lane]`, where constrained
    /// ones are [`CONSTRAINED`].
    pub fn dofs(&self, space: &Space, constraints: &Constraints) -> Buffer<u32> {
        let components = space.components();
        self.of_nodes(space.element(), components, |cell, row| {
            for (row, &node) in row.chunks_mut(components).zip(space.cell_nodes(cell)) {
                for (component, entry) in row.iter_mut().enumerate() {
                    *entry = dof(constraints, node as usize * components + component);
                }
            }
        })
    }
}

/// An unknown as index arrays have it.
fn dof(constraints: &Constraints, dof: usize) -> u32 {
    if constraints.is_constrained(dof) { CONSTRAINED } else { dof as u32 }
}

/// For each cell whether it has a constrained unknown.
pub fn constrained_cells(n_cells: usize, fields: &[(&Space, &Constraints)]) -> Vec<bool> {
    let touched = |cell: usize| {
        fields.iter().any(|(space, constraints)| {
            !constraints.is_empty() && constraints.touch(space.cell_nodes(cell))
        })
    };
    (0..n_cells).into_par_iter().with_min_len(1024).map(touched).listed()
}

/// A box of so many cells along each direction, for tests.
#[cfg(test)]
fn boxed(cell: &str, dim: f64, cells: f64) -> Mesh {
    use fem_dsl::problem::Argument;
    let numbers = [("dim", dim), ("cells", cells)];
    let mut arguments: std::collections::BTreeMap<_, _> =
        numbers.map(|(name, value)| (name.to_owned(), Argument::Number(value))).into();
    arguments.insert("cell".to_owned(), Argument::Word(cell.to_owned()));
    crate::mesh::generate::generate("box", &arguments).expect("a box")
}
