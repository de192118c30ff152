//! Batches of pairs of cells at a facet.
//!
//! A part of a partition has each pair with both cells in it. A pair between two parts is in the one that is executed
//! later, which writes both cells, if cells share no degrees of freedom and all parts that write one of them are ordered.
//! Otherwise it is in both, with the same inside, so that both compute the same numbers, and each writes its own cell. The
//! partition assigns cells beyond the mesh to its chunks.
//! Batches of a part have pairs of which it writes both cells, the inside, or the outside.

use super::{Batches, CONSTRAINED, IndexRows};
use crate::device::cpu::Buffer;
use crate::mesh::pairs::CellPair;
use crate::mesh::partition::Partition;
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::ParallelSliceMut;
use fem_dsl::point::Side;
use kernels_gen::element::{Cell, Lagrange};

/// Cells whose nodes are numbered together on devices.
const STRIP: u32 = 32;

/// Bits of the sides that a batch writes: both, the inside, the outside.
const WRITES: [u32; 3] = [3, 1, 2];

/// The parts of cells and of their neighbours.
struct PairParts<'a> {
    partition: &'a Partition,
    /// The part of each cell.
    of_cell: Vec<usize>,
    /// The cells with a neighbour in another part, and that part, ascending; `None` if cells share degrees of freedom.
    others: Option<Vec<(u32, usize)>>,
}

impl<'a> PairParts<'a> {
    fn new(partition: &'a Partition, disjoint: Option<&[&CellPair]>) -> Self {
        let parts = partition.parts();
        let n_cells = partition.chunks().iter().map(|chunk| chunk.cells.end).max().unwrap_or(0);
        let mut of_cell = vec![0; n_cells];
        for (part, chunks) in parts.iter().enumerate() {
            partition.cells_of(chunks.clone()).for_each(|cell| of_cell[cell] = part);
        }
        let part = |&chunk: &usize| parts.partition_point(|chunks| chunks.end <= chunk);
        of_cell.extend(partition.chunks_beyond().iter().map(part));
        let others = disjoint.map(|pairs| {
            let sides = pairs.iter().flat_map(|pair| {
                let [own, other] = pair.sides.map(|side| side.cell);
                [(own, of_cell[other as usize]), (other, of_cell[own as usize])]
            });
            let mut others: Vec<_> =
                sides.filter(|&(cell, part)| of_cell[cell as usize] != part).collect();
            others.sort_unstable();
            others.dedup();
            others
        });
        Self { partition, of_cell, others }
    }

    /// Returns the part that writes both cells of a pair: of two parts the later one, if it is ordered with all others
    /// that may write the cell of the earlier one; `None` if each writes its own cell.
    fn writer(&self, pair: &CellPair) -> Option<usize> {
        let [inside, outside] = pair.sides.map(|side| self.of_cell[side.cell as usize]);
        if inside == outside {
            return Some(inside);
        }
        let (others, outer) = (self.others.as_ref()?, self.partition.outer());
        let (first, last) = (inside.min(outside), inside.max(outside));
        let cell = pair.sides[usize::from(outside == first)].cell;
        let from = others.partition_point(|&(other, _)| other < cell);
        let mut writers =
            others[from..].iter().take_while(|(other, _)| *other == cell).map(|&(_, part)| part);
        // Results of outer parts are sent before the inner ones run.
        let is_sent = first < outer && last >= outer;
        let ordered = |a: usize, b: usize| a == b || self.partition.is_before(a.min(b), a.max(b));
        let all = writers.all(|part| part < first || ordered(part, last));
        (!is_sent && ordered(first, last) && all).then_some(last)
    }
}

impl Batches {
    /// Creates batches of pairs; the cells are rotated so that the facet is ξ₀ = 0, and the outside's facet has the
    /// coordinates of the inside's. `disjoint` are all pairs of the form, if cells share no degrees of freedom.
    pub fn of_pairs(
        partition: &Partition,
        lanes: usize,
        pairs: &[&CellPair],
        disjoint: Option<&[&CellPair]>,
    ) -> Self {
        let parts = PairParts::new(partition, disjoint);
        // Pairs of each part, by the sides that it writes.
        let mut own: Vec<[Vec<&CellPair>; 3]> = vec![Default::default(); partition.parts().len()];
        for &pair in pairs {
            let Some(writer) = parts.writer(pair) else {
                let [inside, outside] = pair.sides.map(|side| parts.of_cell[side.cell as usize]);
                own[inside][1].push(pair);
                own[outside][2].push(pair);
                continue;
            };
            own[writer][0].push(pair);
        }
        // All pairs of a batch are rotated alike.
        own.iter_mut().flatten().for_each(|group| group.sort_by_key(|pair| rotations(pair)));
        let groups = own.iter().map(|groups| {
            let alike = |group| <[&CellPair]>::chunk_by(group, |a, b| rotations(a) == rotations(b));
            let written = groups.iter().zip(WRITES);
            written.flat_map(move |(group, writes)| alike(group).map(move |pairs| (pairs, writes)))
        });
        Self::of_groups(lanes, groups)
    }

    /// Creates one part with batches of all pairs, which write both cells. Of a strip of cells, pairs at the same facet
    /// follow one another: threads with neighbouring cells access neighbouring nodes.
    pub fn pairs_once(lanes: usize, pairs: &[&CellPair]) -> Self {
        let mut pairs = pairs.to_vec();
        pairs.par_sort_by_key(|pair| {
            let [own, other] = pair.sides;
            (own.cell / STRIP, own.local, other.local, pair.orientations, own.cell)
        });
        Self::of_groups(lanes, [[(&pairs[..], WRITES[0])]].into_iter())
    }

    /// Sorts pairs such that those that are rotated alike follow one another, and creates batches in this order, at most
    /// `each` to a part. All pairs of a batch are rotated alike.
    pub(crate) fn pairs_listed(lanes: usize, each: usize, pairs: &mut [&CellPair]) -> Self {
        pairs.sort_by_key(|pair| rotations(pair));
        let alike = <[&CellPair]>::chunk_by(pairs, |a, b| rotations(a) == rotations(b));
        let parts = alike.flat_map(|group| group.chunks(lanes * each.max(1)));
        Self::of_groups(lanes, parts.map(|own| [(own, WRITES[0])]))
    }

    /// Creates parts without shared degrees of freedom between their pairs, whose batches write both cells.
    pub fn pairs_coloured(on: &Discretisation, lanes: usize, pairs: &[&CellPair]) -> Self {
        // Cells with common degrees of freedom have a common vertex, or a common node of any continuous field. Cells
        // beyond a part have no vertices.
        let connectivity = on.mesh.connectivity();
        let mut spaces = on.fields.iter().map(|field| &*field.space);
        let joined = spaces.find(|space| space.joins_beyond());
        let (own, beyond) = (on.mesh.n_cells(), on.partition.chunks_beyond().len());
        let numbers: Vec<u32> = (connectivity.n_vertices() as u32..).take(beyond).collect();
        let places_of = |cell: usize| match joined {
            Some(space) => space.cell_nodes(cell),
            None if cell < own => connectivity.vertices(cell),
            None => &numbers[cell - own..=cell - own],
        };
        let places = joined.map_or(connectivity.n_vertices() + beyond, |space| space.n_nodes());
        // The last colour with a cell at the place.
        let mut last = vec![u32::MAX; places];
        let (mut left, mut colours): (Vec<&CellPair>, Vec<Vec<&CellPair>>) =
            (pairs.to_vec(), Vec::new());
        while !left.is_empty() {
            let (colour, mut chosen) = (colours.len() as u32, Vec::new());
            left.retain(|pair| {
                let cells = pair.sides.iter().map(|side| side.cell as usize);
                let places = || cells.clone().flat_map(places_of);
                let taken = places().any(|&place| last[place as usize] == colour);
                if !taken {
                    places().for_each(|&place| last[place as usize] = colour);
                    chosen.push(*pair);
                }
                taken
            });
            colours.push(chosen);
        }
        Self::of_groups(lanes, colours.iter().map(|colour| [(&colour[..], WRITES[0])]))
    }

    /// Creates batches of the groups of each part, with the sides that they write.
    fn of_groups<'a>(
        lanes: usize,
        parts: impl Iterator<Item = impl IntoIterator<Item = (&'a [&'a CellPair], u32)>>,
    ) -> Self {
        let (mut all, mut outside) = (Self::none(lanes), Self::none(lanes));
        for groups in parts {
            let start = all.len();
            for (group, writes) in groups {
                for pair in group {
                    all.push(pair, 0);
                    outside.push(pair, 1);
                }
                all.end_chunk();
                outside.end_chunk();
                all.writes.resize(all.len(), writes);
            }
            all.parts.push(start..all.len());
        }
        outside.parts.clone_from(&all.parts);
        all.outside = Some(Box::new(outside));
        all
    }

    /// Appends a cell of a pair.
    fn push(&mut self, pair: &CellPair, side: usize) {
        self.cells.push(pair.sides[side].cell);
        self.locals.push(pair.sides[side].local);
        self.orientations.push(pair.orientations[side]);
        if self.open() == self.lanes {
            self.end_chunk();
        }
    }

    /// Returns the same batches with the outside of each pair in the place of its inside; `None` unless lanes are pairs.
    pub fn outside(&self) -> Option<&Self> {
        self.outside.as_deref()
    }

    /// Returns the batches of the cells on a side.
    pub(crate) fn on(&self, side: Side) -> Option<&Self> {
        match side {
            Side::Inside => Some(self),
            Side::Outside => self.outside(),
        }
    }

    /// Returns the degrees of freedom of the cells on a side, like [`Batches::dofs`], for those batches that write it;
    /// all others are [`CONSTRAINED`].
    pub(crate) fn written_dofs(
        &self,
        side: Side,
        space: &Space,
        constraints: &Constraints,
    ) -> Option<Buffer<u32>> {
        let mut dofs = self.on(side)?.dofs(space, constraints);
        let extent = dofs.len() / self.len().max(1);
        for (batch, writes) in dofs.chunks_mut(extent.max(1)).zip(&self.writes) {
            if writes >> side as u32 & 1 == 0 {
                batch.fill(CONSTRAINED);
            }
        }
        Some(dofs)
    }

    /// Returns the axis of the rotated cell of each lane that is the first axis of the cell itself.
    pub(crate) fn first_axes(&self, cell: Cell) -> Buffer<u32> {
        let axes = self.axes(cell);
        let Ok(element) = Lagrange::continuous(cell, 1) else { return Buffer::zeroed(0) };
        let of = |lane: usize| axes.get(self.turn(lane, element)?).map(|&axis| axis as u32);
        (0..self.cells.len()).map(|lane| of(lane).unwrap_or(0)).collect()
    }

    /// Returns the first axis of a cell in its rotated copies ([`Batches::turns`]).
    fn axes(&self, cell: Cell) -> Vec<usize> {
        let Ok(corners) = Lagrange::continuous(cell, 1) else { return Vec::new() };
        let first = |turn: Vec<usize>| {
            let follows = |&axis: &usize| turn[1 << axis].abs_diff(turn[0]) == 1;
            (0..cell.dim()).find(follows).unwrap_or(0)
        };
        self.turns(corners).into_iter().map(first).collect()
    }

    /// Returns the rows of the nodes of each rotated cell, renumbered by `number`; the first axis of the cell itself
    /// varies fastest, as [`kernels_gen::abi::Role::Rows`] describes.
    pub(in crate::operator) fn rows_along_first_axes<'a>(
        &'a self,
        space: &'a Space,
        number: impl Fn(u32) -> u32 + Sync + 'a,
    ) -> IndexRows<'a> {
        let element = space.element();
        let (cell, n) = (element.cell(), element.degree() + 1);
        let (turns, axes) = (self.turns(element), self.axes(cell));
        let plane = n.pow(cell.dim() as u32 - 1);
        let row = move |lane: usize, row: &mut [u32]| {
            let Some(turn) = self.turn(lane, element) else { return };
            let own = space.cell_nodes(self.cells[lane] as usize);
            for (place, &node) in turns[turn].iter().enumerate() {
                let (i, a) = (place % n, place / n);
                let entry = match axes[turn] {
                    0 => place,
                    1 => plane * i + a,
                    _ => plane * i + a % n * n + a / n,
                };
                row[entry] = number(own[node]);
            }
        };
        IndexRows { batches: self, entries: space.nodes_per_cell(), row: Box::new(row) }
    }

    /// Returns the first degrees of freedom of the cells on a side, like [`Batches::starts`], for those batches that
    /// write it; all others are [`CONSTRAINED`].
    pub(crate) fn written_cells(&self, side: Side, space: &Space) -> Option<Buffer<u32>> {
        let mut starts = self.on(side)?.starts(space)?;
        for (batch, starts) in starts.chunks_mut(self.lanes).enumerate() {
            if !self.writes_side(batch, side) {
                starts.fill(CONSTRAINED);
            }
        }
        Some(starts)
    }

    /// Returns the entries of a cell's degrees of freedom in arrays `[component][node]` of the rotated cell,
    /// `[batch][node · components + component]`. All lanes of a batch are rotated alike.
    pub(crate) fn places(&self, space: &Space) -> Buffer<u32> {
        let (nodes, components) = (space.nodes_per_cell(), space.components());
        let turns = self.turns(space.element());
        let mut places = Buffer::zeroed(self.len() * nodes * components);
        for (batch, row) in places.chunks_mut((nodes * components).max(1)).enumerate() {
            let turn = self.turn(batch * self.lanes, space.element()).unwrap_or(0);
            for (place, &node) in turns[turn].iter().enumerate() {
                for component in 0..components {
                    row[node * components + component] = (component * nodes + place) as u32;
                }
            }
        }
        places
    }

    /// Returns whether a batch writes the cells on a side: batches of cells or facets always write theirs.
    pub(crate) fn writes_side(&self, batch: usize, side: Side) -> bool {
        self.writes.get(batch).is_none_or(|writes| writes >> side as u32 & 1 == 1)
    }

    /// Returns the sides that each batch of pairs writes: bit 0 for the inside, bit 1 for the outside.
    pub fn writes(&self) -> &[u32] {
        &self.writes
    }
}

/// Returns what determines the rotations of both cells of a pair.
fn rotations(pair: &CellPair) -> ([u8; 2], [u8; 2]) {
    (pair.sides.map(|side| side.local), pair.orientations)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::pairs::cell_pairs;
    use crate::operator::batch::boxed;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn both_cells_of_a_pair_are_written_once_and_share_the_nodes_of_their_facet() {
        for (cell, dim, cells) in
            [("quad", 2.0, 9.0), ("tri", 2.0, 7.0), ("hex", 3.0, 6.0), ("tet", 3.0, 4.0)]
        {
            let mesh = boxed(cell, dim, cells);
            let pairs = cell_pairs(&mesh);
            let element = Lagrange::continuous(mesh.cell(), 3).expect("an element");
            let front: Vec<usize> = (0..)
                .zip(element.nodes())
                .filter(|(_, node)| node.lattice[0] == 0)
                .map(|(i, _)| i)
                .collect();
            let all: Vec<&CellPair> = pairs.iter().collect();
            let mut once_each = 0;
            for (chunk, disjoint) in [(8, None), (8, Some(&all[..])), (1 << 20, None)] {
                let partition = Partition::with_chunk_cells(&mesh, chunk);
                let space = Space::new(&mesh, &partition, element, 1).expect("a space");
                let batches = Batches::of_pairs(&partition, 4, &all, disjoint);
                let mut writers = vec![BTreeSet::new(); mesh.n_cells()];
                let outside = batches.outside().expect("pairs");
                let nodes = [&batches, outside].map(|side| side.nodes(&space));
                let mut written = BTreeMap::<(u32, u8), usize>::new();
                for (part, range) in batches.parts().iter().enumerate() {
                    let chunks = partition.parts()[part].clone();
                    partition.cells_of(chunks.clone()).for_each(|cell| {
                        writers[cell].insert(part);
                    });
                    for batch in range.clone() {
                        for lane in 0..batches.active()[batch] as usize {
                            let at = 4 * batch + lane;
                            for (bit, side) in [&batches, outside].into_iter().enumerate() {
                                if batches.writes()[batch] >> bit & 1 == 1 {
                                    let local = side.local(at).expect("a facet");
                                    writers[side.cells()[at] as usize].insert(part);
                                    *written.entry((side.cells()[at], local)).or_default() += 1;
                                }
                            }
                            let count = element.count();
                            for &node in &front {
                                let [own, other] = [0, 1]
                                    .map(|side| nodes[side][(batch * count + node) * 4 + lane]);
                                assert_eq!(own, other, "{cell}: node {node} of {at}");
                            }
                        }
                    }
                }
                let sides = pairs.iter().flat_map(|pair| pair.sides);
                assert_eq!(written.len(), 2 * pairs.len(), "{cell}");
                for side in sides {
                    assert_eq!(written.get(&(side.cell, side.local)), Some(&1), "{cell}");
                }
                // Parts clear their own cells first.
                let part_of = |cell: usize| {
                    let has =
                        |part: &usize| partition.cells_of(*part..part + 1).any(|own| own == cell);
                    (0..partition.parts().len()).find(has)
                };
                for (own, parts) in writers.iter().enumerate() {
                    assert_eq!(parts.first().copied(), part_of(own), "{cell}");
                    assert!(disjoint.is_some() || parts.len() == 1, "{cell}");
                    let parts: Vec<usize> = parts.iter().copied().collect();
                    let ordered = parts.windows(2).all(|two| partition.is_before(two[0], two[1]));
                    assert!(ordered, "{cell}: {parts:?}");
                }
                let lanes: usize = batches.active().iter().map(|&active| active as usize).sum();
                let least = if disjoint.is_some() || batches.parts().len() == 1 { 0 } else { 1 };
                assert!(lanes >= pairs.len() + least, "{cell}");
                assert!(disjoint.is_none() || lanes < once_each, "{cell}: {lanes}");
                once_each = lanes;
            }
        }
    }

    #[test]
    fn whole_cells_and_their_places_are_the_degrees_of_freedom() {
        for (cell, dim, cells) in [("quad", 2.0, 5.0), ("hex", 3.0, 4.0)] {
            let mesh = boxed(cell, dim, cells);
            let pairs = cell_pairs(&mesh);
            let all: Vec<&CellPair> = pairs.iter().collect();
            let element = Lagrange::discontinuous(mesh.cell(), 2).expect("an element");
            let (n, lanes, components) = (element.count(), 4, 2);
            let partition = Partition::with_chunk_cells(&mesh, 16);
            let space = Space::new(&mesh, &partition, element, components).expect("a space");
            let constraints = Constraints::none(&space);
            let batches = Batches::of_pairs(&partition, lanes, &all, None);
            for side in Side::ALL {
                let own = batches.on(side).expect("pairs");
                let starts = own.starts(&space).expect("contiguous");
                let (dofs, places) = (own.dofs(&space, &constraints), own.places(&space));
                let written = batches.written_cells(side, &space).expect("contiguous");
                for at in 0..own.cells().len() {
                    let (batch, lane) = (at / lanes, at % lanes);
                    let writes = batches.writes_side(batch, side);
                    let start = if writes { starts[at] } else { CONSTRAINED };
                    assert_eq!(written[at], start, "{cell} {side:?}");
                    for i in 0..n * components {
                        let place = places[batch * n * components + i] as usize;
                        let (component, node) = (place / n, place % n);
                        let entry = (batch * n + node) * components + component;
                        let dof = dofs[entry * lanes + lane];
                        assert_eq!(starts[at] + i as u32, dof, "{cell} {side:?} {at} {i}");
                    }
                }
            }
        }
    }
}
