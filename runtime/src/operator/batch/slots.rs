//! Slots of batches: partial sums of a batch's cells at each node, in shared memory ([`Slots`]), and batches limited by
//! the number of slots.
//!
//! The pairs (cell, local node) of a batch are ordered by cell, then by local node. The k-th pair of a node, from 0, is
//! term k mod V of the node's slot ⌊k / V⌋: a node with v pairs has ⌈v / V⌉ slots. Slots are sorted by the device's
//! node numbers: adjacent slots then have adjacent values, and adjacent cells access different banks of shared memory.

use super::{Batches, CONSTRAINED, dof};
use crate::device::cpu::Buffer;
use crate::mesh::partition::Partition;
use crate::space::Space;
use crate::space::constraint::Constraints;
use crate::support::parallel::*;
use kernels_gen::abi::Slots;

/// Device number of a node.
pub type NodeNumber<'a> = &'a (dyn Fn(u32) -> usize + Sync);

/// A batch without enough slots for one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cell has {nodes} nodes of field {field}, but a batch only {} slots of {} terms for them",
    .slots.count,
    .slots.terms
)]
pub struct SlotsError {
    /// The field.
    pub field: usize,
    /// Number of nodes of its cells.
    pub nodes: usize,
    /// Slots of a batch for this field.
    pub slots: Slots,
}

/// Position of a pair's contribution to its node.
#[derive(Clone, Copy, Debug, Default)]
struct SlotPosition {
    slot: u32,
    term: u32,
}

/// Position of a node's last pair in a batch.
#[derive(Clone, Copy, Debug, Default)]
struct LastPair {
    batch: u32,
    node: u32,
    place: SlotPosition,
}

/// Assigns the slots of consecutive batches.
#[derive(Clone, Debug)]
struct SlotNumbering {
    slots: Slots,
    /// Number of the batch, from 1.
    batch: u32,
    /// Number of slots used so far.
    used: usize,
    /// Hash table with at least twice as many entries as a batch has nodes; entries of other batches are free.
    seen: Vec<LastPair>,
}

impl SlotNumbering {
    fn new(slots: Slots) -> Self {
        let entries = (2 * slots.count).max(2).next_power_of_two();
        Self { slots, batch: 1, used: 0, seen: vec![LastPair::default(); entries] }
    }

    /// Starts the next batch.
    fn begin(&mut self) {
        (self.batch, self.used) = (self.batch + 1, 0);
    }

    /// Returns the position of the next pair; `None` if the batch has no slot left.
    fn pair(&mut self, node: u32) -> Option<SlotPosition> {
        let (mask, terms) = (self.seen.len() - 1, self.slots.terms as u32);
        // The upper half of the product depends on all bits of the node.
        let mut at = (u64::from(node).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        // Terminates: there are fewer nodes than entries.
        while self.seen[at].batch == self.batch && self.seen[at].node != node {
            at = (at + 1) & mask;
        }
        let seen = &mut self.seen[at];
        if seen.batch == self.batch && seen.place.term + 1 < terms {
            seen.place.term += 1;
            return Some(seen.place);
        }
        if self.used == self.slots.count {
            return None;
        }
        let place = SlotPosition { slot: self.used as u32, term: 0 };
        *seen = LastPair { batch: self.batch, node, place };
        self.used += 1;
        Some(place)
    }

    /// Adds the pairs of a cell; false if the batch has too few slots left, so that it must end.
    fn fits(&mut self, nodes: &[u32]) -> bool {
        nodes.iter().all(|&node| self.pair(node).is_some())
    }
}

impl Batches {
    /// Groups the cells selected by `keep` into batches of at most `lanes` cells, limited by the slots for the nodes of
    /// each field.
    ///
    /// # Errors
    ///
    /// Too few slots for one cell.
    pub fn in_slots(
        partition: &Partition,
        lanes: usize,
        fields: &[(&Space, Slots)],
        keep: impl Fn(usize) -> bool + Sync,
    ) -> Result<Self, SlotsError> {
        for (field, &(space, slots)) in fields.iter().enumerate() {
            let nodes = space.nodes_per_cell();
            if slots.count < nodes || slots.terms == 0 {
                return Err(SlotsError { field, nodes, slots });
            }
        }
        let parts = partition.parts().into_par_iter().map(|part| {
            let own = partition.cells_of(part);
            let cells = own.filter(|&cell| keep(cell)).map(|cell| cell as u32);
            let cells: Vec<u32> = cells.collect();
            let lengths = lengths(&cells, lanes, fields);
            (cells, lengths)
        });
        let mut batches = Self::none(lanes);
        for (cells, lengths) in parts.listed() {
            let (start, mut rest) = (batches.len(), &cells[..]);
            for length in lengths {
                let (own, others) = rest.split_at(length);
                batches.cells.extend_from_slice(own);
                batches.end_chunk();
                rest = others;
            }
            batches.parts.push(start..batches.len());
        }
        Ok(batches)
    }

    /// Returns the node of each slot, `[batch][slot]`, and [`CONSTRAINED`] for unused slots. The batches must come from
    /// [`Batches::in_slots`].
    ///
    /// # Panics
    ///
    /// Panics if the cells of a batch need more slots.
    pub fn slot_nodes(&self, space: &Space, slots: Slots, number: NodeNumber<'_>) -> Buffer<u32> {
        self.by_pairs(space, slots, number, slots.count, |row, nodes, _| {
            row.fill(CONSTRAINED);
            row[..nodes.len()].copy_from_slice(nodes);
        })
    }

    /// Returns the degrees of freedom of each slot, `[batch][component][slot]`, and [`CONSTRAINED`] for unused slots
    /// and constrained degrees of freedom.
    ///
    /// # Panics
    ///
    /// Panics if the cells of a batch need more slots.
    pub fn slot_dofs(
        &self,
        space: &Space,
        constraints: &Constraints,
        slots: Slots,
        number: NodeNumber<'_>,
    ) -> Buffer<u32> {
        let (count, components) = (slots.count, space.components());
        let nodes = self.slot_nodes(space, slots, number);
        let mut table = Buffer::zeroed(nodes.len() * components);
        if table.is_empty() {
            return table;
        }
        let batches = table.par_chunks_mut(count * components).zip(nodes.par_chunks(count));
        batches.with_min_len(64).each(|(table, nodes)| {
            for (component, row) in table.chunks_mut(count).enumerate() {
                for (entry, &node) in row.iter_mut().zip(nodes) {
                    *entry = match node {
                        CONSTRAINED => CONSTRAINED,
                        node => dof(constraints, node as usize * components + component),
                    };
                }
            }
        });
        table
    }

    /// Returns the position of each pair, `[batch][node][lane]`: term · [`Slots::stride`] + slot. Padding lanes repeat
    /// the last active one.
    ///
    /// # Panics
    ///
    /// Panics if the cells of a batch need more slots.
    pub fn terms(&self, space: &Space, slots: Slots, number: NodeNumber<'_>) -> Buffer<u32> {
        let (lanes, nodes) = (self.lanes, space.nodes_per_cell());
        self.by_pairs(space, slots, number, nodes * lanes, |table, _, pairs| {
            let active = pairs.len() / nodes;
            for (pair, place) in pairs.iter().enumerate() {
                let (lane, local) = (pair / nodes, pair % nodes);
                table[local * lanes + lane] = place.term * slots.stride() as u32 + place.slot;
            }
            for row in table.chunks_mut(lanes) {
                let last = row[active - 1];
                row[active..].fill(last);
            }
        })
    }

    /// Builds a table of `entries` per batch; `write` receives the nodes of the batch's slots and the positions of its
    /// pairs, lane by lane.
    fn by_pairs(
        &self,
        space: &Space,
        slots: Slots,
        number: NodeNumber<'_>,
        entries: usize,
        write: impl Fn(&mut [u32], &[u32], &[SlotPosition]) + Sync,
    ) -> Buffer<u32> {
        let mut table = Buffer::zeroed(self.len() * entries);
        if table.is_empty() {
            return table;
        }
        table.par_chunks_mut(entries).enumerate().with_min_len(64).each_with(
            || (SlotNumbering::new(slots), SortedSlots::default()),
            |(numbering, sorted), (batch, row)| {
                numbering.begin();
                sorted.clear();
                let cells = &self.cells[batch * self.lanes..][..self.active[batch] as usize];
                for &node in cells.iter().flat_map(|&cell| space.cell_nodes(cell as usize)) {
                    let place = numbering.pair(node);
                    sorted.push(node, place.expect("a batch with slots for its cells"));
                }
                sorted.sort(number);
                write(row, &sorted.nodes, &sorted.places);
            },
        );
        table
    }
}

/// Slots of a batch, sorted by the numbers of their nodes.
#[derive(Default)]
struct SortedSlots {
    /// Node of each slot.
    nodes: Vec<u32>,
    /// Position of each pair.
    places: Vec<SlotPosition>,
    /// Number of the node, and original slot.
    order: Vec<(usize, u32)>,
    /// New index of each slot.
    new: Vec<u32>,
}

impl SortedSlots {
    fn clear(&mut self) {
        self.nodes.clear();
        self.places.clear();
    }

    fn push(&mut self, node: u32, place: SlotPosition) {
        if place.slot as usize == self.nodes.len() {
            self.nodes.push(node);
        }
        self.places.push(place);
    }

    fn sort(&mut self, number: NodeNumber<'_>) {
        let Self { nodes, places, order, new } = self;
        let old = nodes.iter().zip(0..).map(|(&node, slot)| (number(node), slot));
        order.clear();
        order.extend(old);
        order.sort_unstable();
        new.resize(order.len(), 0);
        for (&(_, slot), to) in order.iter().zip(0..) {
            new[slot as usize] = to;
        }
        places.iter_mut().for_each(|place| place.slot = new[place.slot as usize]);
        let by_number: Vec<u32> = order.iter().map(|&(_, slot)| nodes[slot as usize]).collect();
        *nodes = by_number;
    }
}

/// Returns the number of cells in each batch: at most `lanes`, limited by the slots.
fn lengths(cells: &[u32], lanes: usize, fields: &[(&Space, Slots)]) -> Vec<usize> {
    let mut numberings: Vec<(&Space, SlotNumbering)> =
        fields.iter().map(|&(space, slots)| (space, SlotNumbering::new(slots))).collect();
    let mut fits = |cell: u32, restarts: bool| {
        numberings.iter_mut().all(|(space, numbering)| {
            if restarts {
                numbering.begin();
            }
            numbering.fits(space.cell_nodes(cell as usize))
        })
    };
    let (mut lengths, mut length) = (Vec::new(), 0);
    for &cell in cells {
        if length == lanes || !fits(cell, false) {
            lengths.push(length);
            length = 0;
            // One cell always fits.
            fits(cell, true);
        }
        length += 1;
    }
    lengths.extend((length > 0).then_some(length));
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Mesh;
    use crate::operator::batch::boxed;
    use kernels_gen::element::Lagrange;
    use std::collections::{BTreeMap, BTreeSet};

    const LANES: usize = 16;

    fn space(mesh: &Mesh, partition: &Partition, degree: usize, components: usize) -> Space {
        let element = Lagrange::continuous(mesh.cell(), degree).expect("an element");
        Space::new(mesh, partition, element, components).expect("a space")
    }

    /// Slots for `cells` cells without common nodes, and one more.
    fn slots(space: &Space, cells: usize, terms: usize) -> Slots {
        Slots { count: cells * space.nodes_per_cell() + 1, terms }
    }

    /// Checks the positions of a field's pairs against their nodes; adds 1 per pair to `sums`. Returns the maximum
    /// number of slots used by a batch.
    fn check(batches: &Batches, space: &Space, slots: Slots, sums: &mut [u32]) -> usize {
        let (lanes, nodes) = (batches.lanes(), space.nodes_per_cell());
        let number = |node: u32| node as usize ^ 5;
        let table = batches.slot_nodes(space, slots, &number);
        let terms = batches.terms(space, slots, &number);
        assert_eq!(table.len(), batches.len() * slots.count);
        assert_eq!(terms.len(), batches.len() * nodes * lanes);
        let mut most = 0;
        for (batch, table) in table.chunks(slots.count).enumerate() {
            let (active, mut taken) = (batches.active()[batch] as usize, BTreeSet::new());
            for lane in 0..lanes {
                let cell = batches.cells()[batch * lanes + lane] as usize;
                for (local, &node) in space.cell_nodes(cell).iter().enumerate() {
                    let row = &terms[(batch * nodes + local) * lanes..][..lanes];
                    if lane >= active {
                        assert_eq!(row[lane], row[active - 1]);
                        continue;
                    }
                    let (term, slot) =
                        (row[lane] as usize / slots.stride(), row[lane] as usize % slots.stride());
                    assert!(term < slots.terms && taken.insert((slot, term)));
                    assert_eq!(table[slot], node);
                    sums[table[slot] as usize] += 1;
                }
            }
            // Slots are filled from the first term on; unused ones come last.
            assert!(taken.iter().all(|&(s, term)| term == 0 || taken.contains(&(s, term - 1))));
            let used = taken.iter().map(|&(slot, _)| slot + 1).max().expect("a slot");
            assert!(
                table.iter().enumerate().all(|(s, &node)| (node == CONSTRAINED) == (s >= used))
            );
            most = most.max(used);
        }
        most
    }

    #[test]
    fn each_pair_has_a_place_of_its_own_with_its_node() {
        for (cell, dim, n) in
            [("tri", 2.0, 9.0), ("quad", 2.0, 11.0), ("tet", 3.0, 4.0), ("hex", 3.0, 5.0)]
        {
            let mesh = boxed(cell, dim, n);
            let partition = Partition::with_chunk_cells(&mesh, 50);
            let spaces = [space(&mesh, &partition, 2, 2), space(&mesh, &partition, 1, 1)];
            for (room, terms) in [([1, 1], 1), ([3, 2], 2), ([2, 5], 4), ([99, 99], 8)] {
                let of = |field: usize| slots(&spaces[field], room[field], terms);
                let fields = [(&spaces[0], of(0)), (&spaces[1], of(1))];
                for keep in [1, 3] {
                    let kept = |cell: &usize| cell.is_multiple_of(keep);
                    let batches = Batches::in_slots(&partition, LANES, &fields, |cell| kept(&cell))
                        .expect("room for a cell");
                    let chosen = (0..mesh.n_cells()).filter(kept);
                    let mut seen: Vec<usize> = Vec::new();
                    let mut full = 0;
                    for (cells, &active) in batches.cells().chunks(LANES).zip(batches.active()) {
                        seen.extend(cells[..active as usize].iter().map(|&cell| cell as usize));
                        full += usize::from(active as usize == LANES);
                    }
                    seen.sort_unstable();
                    assert_eq!(seen, chosen.clone().collect::<Vec<_>>());
                    assert_eq!(full == 0, room[0] < 5, "{cell}: {full} full batches");
                    for (space, slots) in fields {
                        let (mut sums, mut want) = (vec![0; space.n_nodes()], Vec::new());
                        want.clone_from(&sums);
                        for node in chosen.clone().flat_map(|cell| space.cell_nodes(cell)) {
                            want[*node as usize] += 1;
                        }
                        assert!(check(&batches, space, slots, &mut sums) <= slots.count);
                        assert_eq!(sums, want);
                    }
                }
            }
        }
    }

    #[test]
    fn a_batch_ends_only_where_the_next_cell_does_not_fit() {
        let mesh = boxed("tet", 3.0, 4.0);
        let partition = Partition::with_chunk_cells(&mesh, 1 << 16);
        let space = space(&mesh, &partition, 1, 1);
        let slots = slots(&space, 3, 4);
        let needed = |cells: &[u32]| {
            let mut counts = BTreeMap::new();
            for node in cells.iter().flat_map(|&cell| space.cell_nodes(cell as usize)) {
                *counts.entry(node).or_insert(0_usize) += 1;
            }
            counts.values().map(|count| count.div_ceil(slots.terms)).sum::<usize>()
        };
        let batches =
            Batches::in_slots(&partition, LANES, &[(&space, slots)], |_| true).expect("batches");
        let own: Vec<&[u32]> = batches
            .cells()
            .chunks(LANES)
            .zip(batches.active())
            .map(|(cells, &active)| &cells[..active as usize])
            .collect();
        assert!(own.iter().all(|cells| needed(cells) <= slots.count));
        for pair in own.windows(2) {
            let longer = [pair[0], &pair[1][..1]].concat();
            assert!(longer.len() > LANES || needed(&longer) > slots.count);
        }
    }

    #[test]
    fn slots_have_the_unknowns_of_their_nodes() {
        let mesh = boxed("hex", 3.0, 4.0);
        let partition = Partition::with_chunk_cells(&mesh, 50);
        let space = space(&mesh, &partition, 2, 3);
        let points = space.points(&mesh, &partition).expect("points");
        let mut constraints = Constraints::none(&space);
        let boundary = space.nodes_on(&mesh.boundary());
        constraints.fix(&boundary, Some(1), &points, |_, out| out[0] = 1.0).expect("finite");
        let slots = slots(&space, 4, 2);
        let batches =
            Batches::in_slots(&partition, LANES, &[(&space, slots)], |_| true).expect("batches");
        let nodes = batches.slot_nodes(&space, slots, &|node| node as usize);
        let dofs = batches.slot_dofs(&space, &constraints, slots, &|node| node as usize);
        assert_eq!(dofs.len(), 3 * nodes.len());
        let mut constrained = 0;
        for (at, &node) in nodes.iter().enumerate() {
            let (batch, slot) = (at / slots.count, at % slots.count);
            for component in 0..3 {
                let unknown = (node as usize).saturating_mul(3).saturating_add(component);
                let found = dofs[(batch * 3 + component) * slots.count + slot];
                if node == CONSTRAINED || constraints.is_constrained(unknown) {
                    constrained += usize::from(node != CONSTRAINED);
                    assert_eq!(found, CONSTRAINED);
                } else {
                    assert_eq!(found as usize, unknown);
                }
            }
        }
        assert!(constrained > 0);
    }

    #[test]
    fn a_cell_without_room_is_an_error() {
        let mesh = boxed("quad", 2.0, 3.0);
        let partition = Partition::with_chunk_cells(&mesh, 50);
        let (first, second) = (space(&mesh, &partition, 1, 1), space(&mesh, &partition, 2, 1));
        let (enough, few) = (slots(&first, 2, 2), Slots { count: 8, terms: 2 });
        let fields = [(&first, enough), (&second, few)];
        let error = Batches::in_slots(&partition, 4, &fields, |_| true).expect_err("no room");
        assert_eq!(error, SlotsError { field: 1, nodes: 9, slots: few });
        assert!(error.to_string().contains("9 nodes of field 1"), "{error}");
        let none = [(&first, Slots { terms: 0, ..enough })];
        assert!(Batches::in_slots(&partition, 4, &none, |_| true).is_err());
    }
}
