//! Gather and scatter of one component at one node, for any addressing of the DoFs.
//!
//! Runs of DoFs move many at once and are implemented by the strategy that stores them
//! (`cell_per_lane/tensor/transfer.rs`).

use super::facts::{Quantity, QuantitySource};
use super::lowering::Lowering;
use super::slots::SlotLocation;
use crate::abi::{Indices, Owner, Role, TILE};
use crate::kir::build::Builder;
use crate::kir::{ArgumentId, Index, IndirectIndex, Statement, ValueId, VarId, Write};
use crate::plan::{Scatter, Task};

/// The location of the nodal values of a quantity, or of the result.
#[derive(Clone, Copy)]
pub(crate) struct NodalLocation {
    /// The vector; coordinates of curved cells, and all quantities with [`Indices::Batches`], are stored cell by cell
    /// and need no map.
    array: ArgumentId,
    /// The index array and its kind of indices.
    map: Option<(ArgumentId, Indices)>,
    components: usize,
    /// The write mode of the result.
    write: Write,
    /// The location in the slots of the batch, if any.
    slots: Option<SlotLocation>,
    /// The first of a cell's nodes, and the number of all.
    span: (usize, usize),
    /// The signs of the degrees of freedom of a cell, if they have any.
    signs: Option<ArgumentId>,
}

impl NodalLocation {
    /// Returns the location of a gathered quantity.
    pub(crate) fn of(s: &Lowering<'_>, quantity: &Quantity) -> Self {
        let role = s.facts.role_of(quantity.source);
        let slots = s.facts.slotted(quantity.source).and_then(|field| s.in_slots(role, field));
        let in_batches = s.facts.plan.indices == Indices::Batches;
        let by_map = !quantity.source.is_position() && slots.is_none() && !in_batches;
        let map = by_map.then(|| map_of(s, quantity.source));
        let (array, components) = (s.arguments[&role], quantity.stored);
        let span = s.facts.span_of(quantity.source);
        let signs = signs_of(s, quantity.source);
        Self { array, map, components, write: Write::Exclusive, slots, span, signs }
    }

    /// Returns the location of the result of a field.
    pub(crate) fn result(s: &Lowering<'_>, field: usize) -> Self {
        let (components, own) = (s.facts.stored(field), QuantitySource::Direction(field));
        let result = Role::Result(s.facts.field_of(field));
        let written = |indices: Indices| {
            let index = s.facts.elements.origins[field].index;
            let map = s.arguments.get(&Role::Map(Owner::Result(index), indices));
            map.map(|&map| (map, indices))
        };
        let added = || {
            let of_pairs = written(Indices::Dofs).or_else(|| written(Indices::Cells));
            of_pairs.unwrap_or_else(|| map_of(s, own))
        };
        let (role, map, write) = match s.facts.plan.scatter {
            Scatter::Atomic => (result, Some(added()), Write::LaneSerial),
            Scatter::Coloured => (result, Some(added()), Write::Alone),
            Scatter::Owner => {
                let role = Role::CellResult(s.facts.elements.origins[field].index);
                (role, None, Write::Exclusive)
            }
            Scatter::Block => {
                // They have their own terms.
                let map = (!s.facts.sums_first()).then(added);
                (result, map, Write::LaneSerial)
            }
        };
        let slots = s.in_slots(role, field);
        // Of a diagonal, test and trial function have one sign.
        let signed = s.facts.plan.task != Task::Diagonal;
        let signs = signed.then(|| signs_of(s, own)).flatten();
        let span = s.facts.span_of(own);
        Self { array: s.arguments[&role], map, components, write, slots, span, signs }
    }

    /// Returns the number through all batches of a node of the cell.
    pub(crate) fn node(self, b: &Builder, node: &Index) -> Index {
        let (first, total) = self.span;
        &Index::from(b.batch()).times(total).plus(first) + node
    }

    /// Gathers component `c` of a node, which is numbered through all batches.
    pub(crate) fn gather(self, b: &mut Builder, node: &Index, c: usize) -> ValueId {
        let value = self.gather_unsigned(b, node, c);
        self.signed(b, node, value)
    }

    /// Applies the sign of a node.
    fn signed(self, b: &mut Builder, node: &Index, value: ValueId) -> ValueId {
        match self.signs {
            None => value,
            Some(signs) => {
                let sign = b.load_lanes(signs, node.clone());
                b.mul(sign, value)
            }
        }
    }

    fn gather_unsigned(self, b: &mut Builder, node: &Index, c: usize) -> ValueId {
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

    /// Returns scale and offset: component c of a node is at its index times the first plus the second.
    fn place(self, indices: Indices, c: usize) -> (usize, usize) {
        if indices == Indices::Tiles { (1, c * TILE) } else { (self.components, c) }
    }

    /// Loads the index of a node, which is numbered through all batches; `None` if nodes are not addressed by an index
    /// each.
    pub(crate) fn index(self, b: &mut Builder, node: &Index) -> Option<VarId> {
        let (map, indices) = self.map?;
        let by_node = matches!(indices, Indices::Nodes | Indices::Tiles);
        by_node.then(|| b.load_index("node", map, node))
    }

    /// Gathers component `c` of the node with a loaded index.
    pub(crate) fn gather_at(self, b: &mut Builder, node: VarId, c: usize) -> ValueId {
        let indices = self.map.map_or(Indices::Nodes, |(_, indices)| indices);
        b.load_at(self.array, node, self.place(indices, c), false)
    }

    /// Adds to component `c` of the node with a loaded index.
    pub(crate) fn scatter_at(self, b: &mut Builder, var: VarId, c: usize, value: ValueId) {
        let indices = self.map.map_or(Indices::Nodes, |(_, indices)| indices);
        let ((scale, offset), target) = (self.place(indices, c), self.array);
        let write = self.write;
        b.statement(Statement::StoreAt { target, var, scale, offset, value, write });
    }

    /// Returns the write mode for nodes shared with other cells.
    pub(crate) fn write(self) -> Write {
        self.write
    }

    /// Returns the same for nodes that are inside the cell if a variable of the threads is 0.
    pub(crate) fn inside(self, border: VarId) -> Self {
        Self { write: Write::Inside(border), ..self }
    }

    /// Adds to component `c` of a node, or stores the cell's contribution.
    pub(crate) fn scatter(self, b: &mut Builder, node: &Index, c: usize, value: ValueId) {
        let value = self.signed(b, node, value);
        let unknown = node.times(self.components).plus(c);
        let (target, write) = (self.array, self.write);
        if let Some(slots) = self.slots {
            return slots.store(b, node, c, value);
        }
        let to = match self.map {
            None => return b.store_lanes(target, unknown, value),
            Some((map, Indices::Dofs)) => {
                IndirectIndex { map, at: unknown, scale: 1, offset: 0, masked: true }
            }
            Some((map, indices)) => {
                let (scale, offset) = self.place(indices, c);
                IndirectIndex { map, at: node.clone(), scale, offset, masked: false }
            }
        };
        b.statement(Statement::Scatter { target, to, value, write });
    }

    /// Returns whether concurrent additions to a node are possible, and its index addresses all components.
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

    /// Returns the vector and the starts of its cells, if it is addressed by cells.
    pub(crate) fn cells(self) -> Option<(ArgumentId, ArgumentId)> {
        match self.map {
            Some((map, Indices::Cells)) => Some((self.array, map)),
            _ => None,
        }
    }

    /// Returns the vector and the starts of its runs, if it is addressed in runs.
    pub(crate) fn runs(self) -> Option<(ArgumentId, ArgumentId)> {
        match self.map {
            Some((map, Indices::Runs)) => Some((self.array, map)),
            _ => None,
        }
    }
}

/// The signs of the degrees of freedom of a component.
#[derive(Clone, Copy)]
pub(crate) struct DofSigns {
    array: ArgumentId,
    span: (usize, usize),
}

impl DofSigns {
    /// Returns the signs of a field, if it has any.
    pub(crate) fn of(s: &Lowering<'_>, field: usize) -> Option<Self> {
        let own = QuantitySource::Direction(field);
        let span = s.facts.span_of(own);
        signs_of(s, own).map(|array| Self { array, span })
    }

    /// Applies the sign of a node of the cell.
    pub(crate) fn apply(self, b: &mut Builder, node: &Index, value: ValueId) -> ValueId {
        let (first, total) = self.span;
        let at = &Index::from(b.batch()).times(total).plus(first) + node;
        let sign = b.load_lanes(self.array, at);
        b.mul(sign, value)
    }
}

/// The location of the entries of an element matrix.
#[derive(Clone, Copy)]
pub(crate) struct MatrixEntries {
    array: ArgumentId,
    /// The index array, unless entries are stored cell by cell.
    map: Option<ArgumentId>,
    /// Entries per cell.
    entries: usize,
    write: Write,
}

impl MatrixEntries {
    /// Returns the location for a kernel with this scatter algorithm.
    pub(crate) fn new(s: &Lowering<'_>, entries: usize, scatter: Scatter) -> Self {
        let (role, write) = match scatter {
            Scatter::Owner => (Role::CellMatrix, Write::Exclusive),
            Scatter::Coloured => (Role::Matrix, Write::Alone),
            Scatter::Atomic | Scatter::Block => (Role::Matrix, Write::LaneSerial),
        };
        let map = s.arguments.get(&Role::Entries).copied();
        Self { array: s.arguments[&role], map, entries, write }
    }

    /// Adds to an entry, or stores the cell's contribution.
    pub(crate) fn put(self, b: &mut Builder, entry: &Index, value: ValueId) {
        let at = &Index::from(b.batch()).times(self.entries) + entry;
        let (target, write) = (self.array, self.write);
        let Some(map) = self.map else { return b.store_lanes(target, at, value) };
        let to = IndirectIndex { map, at, scale: 1, offset: 0, masked: true };
        b.statement(Statement::Scatter { target, to, value, write });
    }
}

fn signs_of(s: &Lowering<'_>, source: QuantitySource) -> Option<ArgumentId> {
    let own = s.facts.has_signs(source).then(|| s.facts.owner_of(source));
    own.map(|owner| s.arguments[&Role::Signs(owner)])
}

/// Returns the index array of a source and its kind of indices.
fn map_of(s: &Lowering<'_>, source: QuantitySource) -> (ArgumentId, Indices) {
    (s.arguments[&s.facts.map_of(source)], s.facts.indices_of(source))
}
