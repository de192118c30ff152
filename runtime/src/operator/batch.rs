//! Batches: W cells that a SIMD kernel processes at once, and the tables that it reads.
//!
//! [`Batches`] contain the selected cells of a [`Partition`], chunk by chunk in execution order, in groups of W. The
//! last group of a chunk (or of jointly numbered chunks) is padded by repeating its last cell. Every table is
//! `[batch][entry][lane]`. Colours can replace chunks ([`Batches::coloured`]), and a batch can end
//! early if its cells' nodes exceed the available slots ([`Batches::in_slots`]). A lane can also be a facet of a cell
//! ([`Batches::of_facets`]): the nodes then have the order of the rotated cell. Or a lane is a pair of cells at a facet
//! ([`Batches::of_pairs`]), of which these batches have the inside and [`Batches::outside`] the other one.

mod colours;
mod pairs;
mod slots;

use crate::algebra::vector::Real;
use crate::device::cpu::{Buffer, PlainNumber};
use crate::mesh::partition::{Chunk, Partition};
use crate::mesh::{Facet, Mesh};
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::support::parallel::*;
use kernels_gen::element::Element;
pub use slots::{NodeNumber, SlotsError};
use std::ops::Range;

/// Marks a constrained degree of freedom in [`Batches::dofs`].
pub const CONSTRAINED: u32 = u32::MAX;

/// Minimum number of table entries per task.
const GRAIN: usize = 1 << 13;

/// Cells in groups of W.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    lanes: usize,
    cells: Vec<u32>,
    active: Vec<u32>,
    /// Local facet of each lane, for facet integrals; otherwise empty.
    locals: Vec<u8>,
    /// Orientation of each lane's facet ([`kernels_gen::element::Cell::oriented`]); empty if it is 0 for all.
    orientations: Vec<u8>,
    /// Batches of each part of a partition, or of each colour.
    parts: Vec<Range<usize>>,
    /// The other cell of each lane, for pairs of cells.
    outside: Option<Box<Batches>>,
    /// The sides that each batch of pairs writes (bits).
    writes: Vec<u32>,
}

impl Batches {
    /// Groups the cells selected by `keep` into batches of `lanes` cells.
    pub fn new(partition: &Partition, lanes: usize, keep: impl Fn(usize) -> bool) -> Self {
        let parts = partition.parts().into_iter();
        Self::of_parts(lanes, parts.map(|part| partition.cells_of(part).filter(|&cell| keep(cell))))
    }

    /// Groups the cells selected by `keep` into batches, with the cells of a chunk sorted by a key.
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

    /// Groups the cells selected by `keep` into batches by colour: no two cells of a colour share a degree of freedom.
    pub fn coloured(mesh: &Mesh, lanes: usize, keep: impl Fn(usize) -> bool) -> Self {
        let colours = colours::colours(mesh, (0..mesh.n_cells()).filter(|&cell| keep(cell)));
        let cells = |colour: Vec<u32>| colour.into_iter().map(|cell| cell as usize);
        Self::of_parts(lanes, colours.into_iter().map(cells))
    }

    /// Creates batches that do not cross parts.
    fn of_parts(lanes: usize, parts: impl Iterator<Item = impl Iterator<Item = usize>>) -> Self {
        let facets = |part: Vec<usize>| part.into_iter().map(|cell| (cell as u32, None));
        Self::of_lanes(lanes, parts.map(|part| facets(part.collect())))
    }

    /// Creates batches of facets, each rotated to ξ₀ = 0 of its cell, by the chunks of their cells; `facets` must be
    /// sorted by cell.
    pub fn of_facets(partition: &Partition, lanes: usize, facets: &[Facet]) -> Self {
        let at = |cell: usize| facets.partition_point(|facet| (facet.cell as usize) < cell);
        let of_chunk = |chunk: &Chunk| &facets[at(chunk.cells.start)..at(chunk.cells.end)];
        let parts = partition.parts().into_iter();
        let chunks = parts.map(|part| partition.chunks()[part].iter().flat_map(of_chunk));
        let lane = |facet: &Facet| (facet.cell, Some(facet.local));
        Self::of_lanes(lanes, chunks.map(|facets| facets.map(lane)))
    }

    /// Creates batches of facets by parts without shared degrees of freedom between facets.
    pub fn facets_coloured(mesh: &Mesh, lanes: usize, facets: &[Facet]) -> Self {
        let mut cells: Vec<usize> = facets.iter().map(|facet| facet.cell as usize).collect();
        cells.dedup();
        let most = mesh.cell().facets().len();
        let mut parts = Vec::new();
        for colour in colours::colours(mesh, cells.into_iter()) {
            // Facets of one cell share its degrees of freedom.
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

    /// Creates batches of cells, or facets of cells, that do not cross parts.
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
                    batches.end_chunk();
                }
            }
            batches.end_chunk();
            batches.parts.push(start..batches.len());
        }
        batches
    }

    /// Groups cells, or facets, in the given order; each part has `each` batches.
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

    /// Creates an empty list of batches.
    pub(crate) fn none(lanes: usize) -> Self {
        assert!(lanes > 0, "a batch has at least one cell");
        Self {
            lanes,
            cells: Vec::new(),
            active: Vec::new(),
            locals: Vec::new(),
            orientations: Vec::new(),
            parts: Vec::new(),
            outside: None,
            writes: Vec::new(),
        }
    }

    /// Returns the number of cells after the last complete batch.
    fn open(&self) -> usize {
        self.cells.len() - self.len() * self.lanes
    }

    /// Completes a batch from these cells, if there are any, and pads it to W by repeating the last one.
    fn end_chunk(&mut self) {
        let (open, end) = (self.open(), (self.len() + 1) * self.lanes);
        if open == 0 {
            return;
        }
        self.active.push(open as u32);
        if let Some(&last) = self.cells.last() {
            self.cells.resize(end, last);
        }
        for own in [&mut self.locals, &mut self.orientations] {
            if let Some(&last) = own.last() {
                own.resize(end, last);
            }
        }
    }

    /// Returns the number of cells per batch, W.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns the number of batches.
    pub fn len(&self) -> usize {
        self.active.len()
    }

    /// Returns whether there are no batches.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    /// Returns the cell of each lane, `[batch][lane]`.
    pub fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// Returns the local facet of a lane, for batches of facets.
    pub fn local(&self, lane: usize) -> Option<u8> {
        self.locals.get(lane).copied()
    }

    /// Returns whether cells are rotated for a facet.
    pub(super) fn are_rotated(&self) -> bool {
        !self.locals.is_empty()
    }

    /// Returns the orientation of a lane's facet.
    pub(crate) fn orientation(&self, lane: usize) -> u8 {
        self.orientations.get(lane).copied().unwrap_or(0)
    }

    /// Returns the number of lanes of each batch that are not padding.
    pub fn active(&self) -> &[u32] {
        &self.active
    }

    /// Returns the batches of a chunk.
    pub fn of_chunk(&self, chunk: usize) -> Range<usize> {
        self.parts[chunk].clone()
    }

    /// Returns the batches of each part of a partition, or of each colour.
    pub fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// Builds a table `[batch][entry][lane]` with `entries` entries per cell, written by `row`.
    pub fn table<T: PlainNumber>(
        &self,
        entries: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Buffer<T> {
        self.rows(entries, |lane, buffer| row(self.cells[lane] as usize, buffer))
    }

    /// Builds a table with `each` entries per node of an element, in the node order of rotated cells; `row` writes them
    /// in the cell's own order.
    pub fn of_nodes<T: PlainNumber>(
        &self,
        element: impl Into<Element>,
        each: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Buffer<T> {
        let element = element.into();
        let entries = element.count() * each;
        if self.locals.is_empty() {
            return self.table(entries, row);
        }
        let turns = self.turns(element);
        self.rows(entries, |lane, buffer| {
            let mut own = vec![T::default(); entries];
            row(self.cells[lane] as usize, &mut own);
            let turn = &turns[self.turn(lane, element).unwrap_or(0)];
            for (to, &node) in buffer.chunks_mut(each).zip(turn) {
                to.copy_from_slice(&own[node * each..][..each]);
            }
        })
    }

    /// Returns the rows of the nodes of each cell, renumbered by `number`; `places` are their places in a row.
    pub(super) fn node_rows<'a>(
        &'a self,
        space: &'a Space,
        places: Vec<usize>,
        number: impl Fn(u32) -> u32 + Sync + 'a,
    ) -> IndexRows<'a> {
        let turns = if self.locals.is_empty() { Vec::new() } else { self.turns(space.element()) };
        let row = move |lane: usize, row: &mut [u32]| {
            let own = space.cell_nodes(self.cells[lane] as usize);
            match self.turn(lane, space.element()) {
                None => {
                    let nodes = places.iter().zip(own);
                    nodes.for_each(|(&place, &node)| row[place] = number(node));
                }
                Some(turn) => {
                    let nodes = places.iter().zip(&turns[turn]);
                    nodes.for_each(|(&place, &node)| row[place] = number(own[node]));
                }
            }
        };
        IndexRows { batches: self, entries: space.nodes_per_cell(), row: Box::new(row) }
    }

    /// Returns rows of `entries` indices per cell, written by `row`.
    pub(super) fn cell_rows<'a>(
        &'a self,
        entries: usize,
        row: impl Fn(usize, &mut [u32]) + Sync + 'a,
    ) -> IndexRows<'a> {
        let row = Box::new(move |lane: usize, own: &mut [u32]| row(self.cells[lane] as usize, own));
        IndexRows { batches: self, entries, row }
    }

    /// Returns the node order of a cell rotated for each of its facets, in each orientation that lanes have.
    pub(crate) fn turns(&self, element: impl Into<Element>) -> Vec<Vec<usize>> {
        let element = element.into();
        let last = self.orientations.iter().max().copied().unwrap_or(0);
        let facets = 0..element.cell().facets().len();
        let turned =
            |orientation: u8| facets.clone().map(move |facet| element.turned(facet, orientation));
        (0..=last).flat_map(turned).collect()
    }

    /// Returns the signs of the degrees of freedom of each cell, 1 or −1, `[batch][node][lane]`.
    pub(super) fn signs<T: Real>(&self, space: &Space) -> Buffer<T> {
        let element = space.element();
        let last = self.orientations.iter().max().copied().unwrap_or(0);
        let facets = 0..element.cell().facets().len();
        let signs = |orientation: u8| {
            facets.clone().map(move |facet| element.turned_signs(facet, orientation))
        };
        let turned: Vec<Vec<bool>> = (0..=last).flat_map(signs).collect();
        let turns = if self.locals.is_empty() { Vec::new() } else { self.turns(element) };
        let [plus, minus] = [1.0, -1.0].map(T::from_f64);
        self.rows(space.nodes_per_cell(), |lane, row: &mut [T]| {
            let own = space.cell_signs(self.cells[lane] as usize);
            let of_cell = |node: usize| own.get(node).copied().unwrap_or(false);
            let turn = self.turn(lane, element);
            for (place, entry) in row.iter_mut().enumerate() {
                let reversed = match turn {
                    None => of_cell(place),
                    Some(turn) => {
                        let by_turn = turned[turn].get(place).copied().unwrap_or(false);
                        by_turn ^ of_cell(turns[turn][place])
                    }
                };
                *entry = if reversed { minus } else { plus };
            }
        })
    }

    /// Returns the index of a lane's node order among [`Batches::turns`], for batches of facets.
    fn turn(&self, lane: usize, element: impl Into<Element>) -> Option<usize> {
        let element = element.into();
        let local = usize::from(self.local(lane)?);
        let orientation = usize::from(self.orientation(lane));
        Some(orientation * element.cell().facets().len() + local)
    }

    /// Writes the nodes of a lane's cell in table order; `turns` are those of the space's element.
    pub(super) fn nodes_of_lane(
        &self,
        space: &Space,
        lane: usize,
        turns: &[Vec<usize>],
        nodes: &mut Vec<u32>,
    ) {
        let own = space.cell_nodes(self.cells[lane] as usize);
        nodes.clear();
        match self.turn(lane, space.element()) {
            Some(turn) => nodes.extend(turns[turn].iter().map(|&node| own[node])),
            None => nodes.extend_from_slice(own),
        }
    }

    /// Iterates over the lanes that are not padding: the lane, and the nodes of its cell in table order.
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
            let nodes = match self.turn(lane, space.element()) {
                Some(turn) => turns[turn].iter().map(|&node| own[node]).collect(),
                None => own.to_vec(),
            };
            (lane, nodes)
        })
    }

    /// Builds a table `[batch][entry][lane]`; `row` is called for each lane.
    fn rows<T: PlainNumber>(
        &self,
        entries: usize,
        row: impl Fn(usize, &mut [T]) + Sync,
    ) -> Buffer<T> {
        let mut table = Buffer::zeroed(self.len() * entries * self.lanes);
        self.write_rows(0, entries, &row, &mut table);
        table
    }

    /// Writes rows of whole batches from batch `first` on.
    fn write_rows<T: PlainNumber>(
        &self,
        first: usize,
        entries: usize,
        row: &(impl Fn(usize, &mut [T]) + Sync + ?Sized),
        table: &mut [T],
    ) {
        let lanes = self.lanes;
        if table.is_empty() {
            return;
        }
        let batches = table.par_chunks_mut(entries * lanes).enumerate();
        batches.with_min_len(GRAIN.div_ceil(entries * lanes)).each_with(
            || vec![T::default(); entries],
            |buffer, (number, batch)| {
                for lane in 0..lanes {
                    row((first + number) * lanes + lane, buffer);
                    for (entry, &value) in buffer.iter().enumerate() {
                        batch[entry * lanes + lane] = value;
                    }
                }
            },
        );
    }

    /// Returns the nodes of each cell, `[batch][node][lane]`.
    pub fn nodes(&self, space: &Space) -> Buffer<u32> {
        let row = |cell: usize, row: &mut [u32]| row.copy_from_slice(space.cell_nodes(cell));
        self.of_nodes(space.element(), 1, row)
    }

    /// Returns the first degree of freedom of each entity of each cell, `[batch][entity][lane]`; see [`Space::runs`]; 0 for those without nodes.
    pub fn runs(&self, space: &Space) -> Option<Buffer<u32>> {
        let (runs, components) = (space.runs()?, space.components() as u32);
        Some(self.table(runs.len(), |cell, row| {
            let nodes = space.cell_nodes(cell);
            for (entry, first) in row.iter_mut().zip(runs) {
                *entry = first.map_or(0, |local| nodes[local as usize] * components);
            }
        }))
    }

    /// Returns the first degree of freedom of each cell, `[batch][lane]`; `None` if those of a cell are not contiguous.
    pub fn starts(&self, space: &Space) -> Option<Buffer<u32>> {
        let contiguous = |&cell: &u32| {
            let nodes = space.cell_nodes(cell as usize);
            nodes.windows(2).all(|pair| pair[0] + 1 == pair[1])
        };
        let first = |cell: usize, row: &mut [u32]| {
            row[0] = space.cell_nodes(cell)[0] * space.components() as u32;
        };
        self.cells.iter().all(contiguous).then(|| self.table(1, first))
    }

    /// Returns the degrees of freedom of each cell, `[batch][node · components + component][lane]`; constrained ones
    /// are [`CONSTRAINED`].
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

/// Rows of an index table `[batch][entry][lane]`, computed on demand.
pub(super) struct IndexRows<'a> {
    batches: &'a Batches,
    /// Entries per cell.
    entries: usize,
    /// Writes the row of a lane.
    row: Box<dyn Fn(usize, &mut [u32]) + Sync + 'a>,
}

impl IndexRows<'_> {
    /// Returns the number of indices of a batch.
    pub(super) fn extent(&self) -> usize {
        self.entries * self.batches.lanes
    }

    /// Returns the number of lanes.
    pub(super) fn lanes(&self) -> usize {
        self.batches.lanes
    }

    /// Returns the length of the table.
    pub(super) fn len(&self) -> usize {
        self.batches.len() * self.extent()
    }

    /// Writes whole batches from batch `first` on.
    pub(super) fn write(&self, first: usize, table: &mut [u32]) {
        self.batches.write_rows(first, self.entries, &*self.row, table);
    }
}

/// Returns the index of a degree of freedom in index arrays.
fn dof(constraints: &Constraints, dof: usize) -> u32 {
    if constraints.is_constrained(dof) { CONSTRAINED } else { dof as u32 }
}

/// Creates a box of cells for tests, with a number of cells along each direction.
#[cfg(test)]
fn boxed(cell: &str, dim: f64, cells: f64) -> Mesh {
    use fem_dsl::problem::Argument;
    let numbers = [("dim", dim), ("cells", cells)];
    let mut arguments: std::collections::BTreeMap<_, _> =
        numbers.map(|(name, value)| (name.to_owned(), Argument::Number(value))).into();
    arguments.insert("cell".to_owned(), Argument::Word(cell.to_owned()));
    crate::mesh::generate::generate("box", &arguments).expect("a box")
}
