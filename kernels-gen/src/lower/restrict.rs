//! Gather and scatter of one component at one node, however the unknowns are addressed.
//!
//! Runs of unknowns move many at once and belong to the strategy that has a place for them
//! (`cell_per_lane/tensor/transfer.rs`).

use super::facts::{Quantity, Source};
use super::lowering::Lowering;
use super::slots::Place;
use crate::abi::{Indices, Role, TILE};
use crate::kir::build::Builder;
use crate::kir::{ArgumentId, Index, Indexed, Statement, ValueId, VarId, Write};
use crate::plan::Scatter;

/// Where the nodal values of a quantity, or of the result, lie.
#[derive(Clone, Copy)]
pub(crate) struct Nodal {
    /// The vector; the coordinates of curved cells lie cell by cell and need no map.
    array: ArgumentId,
    /// The index array, and what it holds.
    map: Option<(ArgumentId, Indices)>,
    components: usize,
    /// How the result is written.
    write: Write,
    /// Where the batch has it, if it does.
    slots: Option<Place>,
}

impl Nodal {
    /// Of a quantity that is gathered.
    pub(crate) fn of(s: &Lowering<'_>, quantity: &Quantity) -> Self {
        let role = quantity.source.role();
        let slots = s.facts.slotted(quantity.source).and_then(|field| s.in_slots(role, field));
        let by_map = quantity.source != Source::Position && slots.is_none();
        let map = by_map.then(|| map_of(s, quantity.source));
        let (array, components) = (s.arguments[&role], quantity.components);
        Self { array, map, components, write: Write::Exclusive, slots }
    }

    /// Of the result of a field.
    pub(crate) fn result(s: &Lowering<'_>, field: usize) -> Self {
        let (components, own) = (s.facts.components(field), Source::Direction(field));
        let (role, map, write) = match s.facts.plan.scatter {
            Scatter::Atomic => (Role::Result(field), Some(map_of(s, own)), Write::LaneSerial),
            Scatter::Coloured => (Role::Result(field), Some(map_of(s, own)), Write::Alone),
            Scatter::Owner => (Role::CellResult(field), None, Write::Exclusive),
            Scatter::Block => {
                // They have terms of their own.
                let map = (!s.facts.sums_first()).then(|| map_of(s, own));
                (Role::Result(field), map, Write::LaneSerial)
            }
        };
        let slots = s.in_slots(role, field);
        Self { array: s.arguments[&role], map, components, write, slots }
    }

    /// Component `c` of a node, whose number goes through the nodes of all batches.
    pub(crate) fn gather(self, b: &mut Builder, node: &Index, c: usize) -> ValueId {
        let unknown = || node.times(self.components).plus(c);
        if let Some(slots) = self.slots {
            return slots.load(b, node, c);
        }
        match self.map {
            None => b.load_lanes(self.array, unknown()),
            Some((map, Indices::Dofs)) => b.gather(self.array, map, unknown(), (1, 0), true),
            Some((map, indices)) => {
                b.gather(self.array, map, node.clone(), self.place(indices, c), false)
            }
        }
    }

    /// Component c of the node of a number lies at the number times the first plus the second.
    fn place(self, indices: Indices, c: usize) -> (usize, usize) {
        if indices == Indices::Tiles { (1, c * TILE) } else { (self.components, c) }
    }

    /// How the result is written where others may write to the same node.
    pub(crate) fn write(self) -> Write {
        self.write
    }

    /// The same for nodes that are inside the cell where a variable of the threads is 0.
    pub(crate) fn inside(self, border: VarId) -> Self {
        Self { write: Write::Inside(border), ..self }
    }

    /// Adds to component `c` of a node, or stores what the cell has for it.
    pub(crate) fn scatter(self, b: &mut Builder, node: &Index, c: usize, value: ValueId) {
        let unknown = node.times(self.components).plus(c);
        let (target, write) = (self.array, self.write);
        if let Some(slots) = self.slots {
            return slots.store(b, node, c, value);
        }
        let to = match self.map {
            None => return b.store_lanes(target, unknown, value),
            Some((map, Indices::Dofs)) => {
                Indexed { map, at: unknown, scale: 1, offset: 0, masked: true }
            }
            Some((map, indices)) => {
                let (scale, offset) = self.place(indices, c);
                Indexed { map, at: node.clone(), scale, offset, masked: false }
            }
        };
        b.statement(Statement::Scatter { target, to, value, write });
    }

    /// Whether many may add to a node at once, and all components of a node are found by its number.
    pub(crate) fn adds_by_node(self) -> bool {
        let by_node = matches!(self.map, Some((_, Indices::Nodes | Indices::Tiles)));
        by_node && self.write == Write::LaneSerial
    }

    /// Adds to the nodes at both ends of an edge; `values` are those of each component.
    pub(crate) fn scatter_edge(self, b: &mut Builder, at: [Index; 2], values: Vec<[ValueId; 2]>) {
        let Some((map, indices)) = self.map else { return };
        let values = values.into_iter().enumerate();
        let values = values.map(|(c, ends)| (self.place(indices, c).1, ends)).collect();
        let (target, scale) = (self.array, self.place(indices, 0).0);
        b.statement(Statement::ScatterEdge { target, map, at, scale, values });
    }

    /// The vector and the starts of its runs, where that is how it is addressed.
    pub(crate) fn runs(self) -> Option<(ArgumentId, ArgumentId)> {
        match self.map {
            Some((map, Indices::Runs)) => Some((self.array, map)),
            _ => None,
        }
    }
}

/// Where the entries of an element matrix go.
#[derive(Clone, Copy)]
pub(crate) struct MatrixEntries {
    array: ArgumentId,
    /// Where it is not cell by cell.
    map: Option<ArgumentId>,
    /// Entries of a cell.
    entries: usize,
    write: Write,
}

impl MatrixEntries {
    /// Those of a kernel with this plan's scatter.
    pub(crate) fn new(s: &Lowering<'_>, entries: usize, scatter: Scatter) -> Self {
        let (role, write) = match scatter {
            Scatter::Owner => (Role::CellMatrix, Write::Exclusive),
            Scatter::Coloured => (Role::Matrix, Write::Alone),
            Scatter::Atomic | Scatter::Block => (Role::Matrix, Write::LaneSerial),
        };
        let map = s.arguments.get(&Role::Entries).copied();
        Self { array: s.arguments[&role], map, entries, write }
    }

    /// Adds to an entry, or stores what the cell has for it.
    pub(crate) fn put(self, b: &mut Builder, entry: &Index, value: ValueId) {
        let at = &Index::from(b.batch()).times(self.entries) + entry;
        let (target, write) = (self.array, self.write);
        let Some(map) = self.map else { return b.store_lanes(target, at, value) };
        let to = Indexed { map, at, scale: 1, offset: 0, masked: true };
        b.statement(Statement::Scatter { target, to, value, write });
    }
}

/// The index array through which a source is addressed, and what it holds.
fn map_of(s: &Lowering<'_>, source: Source) -> (ArgumentId, Indices) {
    (s.arguments[&s.facts.map_of(source)], s.facts.indices_of(source))
}
