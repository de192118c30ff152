//! The nodes of a batch in shared memory, for reads of cells and for sums over the cells of a batch
//! ([`Scatter::Block`](crate::plan::Scatter::Block)).
//!
//! ```text
//! fill     slot ← values of its node, for each quantity that is an unknown, and the corners' coordinates;  sums ← 0
//! ── barrier; cells take u from the slots of their nodes, and store contributions in their own terms
//! ── barrier
//! empty    r[node of the slot] += Σ_k sums[k][slot]: one addition to memory for up to so many cells
//! ```
//!
//! A cell addresses its node by `term · stride + slot` ([`Role::Terms`]), both for reading and writing; only the slot
//! refers to the DoF ([`Role::Slots`]). Each DoF of a batch is therefore read from memory once, and cells never wait
//! for each other.

use super::facts::{KernelFacts, QuantitySource};
use super::geometry::load_affine;
use super::lowering::{Lowering, SlotTerms};
use crate::abi::{self, Indices, Role, TILE, coordinate_stride};
use crate::kir::build::Builder;
use crate::kir::{
    ArgumentId, Condition, Index, Integer, SharedId, Statement, ValueId, VarId, Write,
};
use crate::plan::{Geometry, PlanError, Strategy};

/// The location of the nodes of one field in an array of slots.
#[derive(Clone, Copy)]
pub(crate) struct SlotLocation {
    shared: SharedId,
    terms: SlotTerms,
    slots: abi::Slots,
}

impl SlotLocation {
    /// Loads component `c` from the slot of a node; `node` is numbered through all batches.
    pub(crate) fn load(self, b: &mut Builder, node: &Index, c: usize) -> ValueId {
        let term = self.term(b, node);
        let slot = b.integer("slot", Integer::Rest(term, self.slots.stride()));
        b.load_shared(self.shared, Index::from(slot).plus(c * self.slots.count))
    }

    /// Stores a cell's contribution to component `c` of a node in its term of the slot.
    pub(crate) fn store(self, b: &mut Builder, node: &Index, c: usize, value: ValueId) {
        let at = Index::from(self.term(b, node)).plus(c * sums_of(self.slots));
        b.open_when();
        b.store_shared(self.shared, at, value);
        b.close_when(vec![Condition::Active]);
    }

    fn term(self, b: &mut Builder, node: &Index) -> VarId {
        match self.terms {
            SlotTerms::Node(term) => term,
            SlotTerms::Cell(terms) => {
                let mut own = node.clone();
                own.terms.retain(|&(var, _)| var != b.batch());
                b.integer("term", Integer::Entry(terms, own))
            }
        }
    }
}

/// The elements of a vector for the slots of a shared array: slot s is for `map[at + s] · scale + offset`, or empty if
/// the map is `u32::MAX`.
struct SlotElements {
    map: ArgumentId,
    at: Index,
    scale: usize,
    /// The offset, and the first slot of these elements in the shared array.
    parts: Vec<(usize, usize)>,
}

impl SlotElements {
    /// Returns the index of the element of slot `s`.
    fn of(&self, b: &mut Builder, slot: &Index) -> VarId {
        b.integer("of", Integer::Element(self.map, &self.at + slot))
    }

    /// Reads the elements, and 0 for empty slots.
    fn gather(&self, b: &mut Builder, source: ArgumentId, shared: SharedId, count: usize) {
        b.distribute(count, &mut |b, slot, mine| {
            let of = self.of(b, slot);
            b.open_when();
            for &(offset, first) in &self.parts {
                let value = b.load_at(source, of, (self.scale, offset), true);
                b.store_shared(shared, slot.plus(first), value);
            }
            b.close_when(mine);
        });
    }

    /// Sums the terms of each slot, and adds the sum to its element.
    fn scatter(&self, b: &mut Builder, target: ArgumentId, shared: SharedId, slots: abi::Slots) {
        let (scale, write) = (self.scale, Write::LaneSerial);
        b.distribute(slots.count, &mut |b, slot, mut conditions| {
            let var = self.of(b, slot);
            conditions.push(Condition::Something(var));
            b.open_when();
            for &(offset, first) in &self.parts {
                let zero = b.constant(0.0);
                let value = (0..slots.terms).fold(zero, |sum, term| {
                    let term_value =
                        b.load_shared(shared, slot.plus(first + term * slots.stride()));
                    b.add(sum, term_value)
                });
                b.statement(Statement::StoreAt { target, var, scale, offset, value, write });
            }
            b.close_when(conditions);
        });
    }
}

impl Lowering<'_> {
    /// Returns the location of the values, or of the sums, of a field's role.
    pub(crate) fn in_slots(&self, role: Role, field: usize) -> Option<SlotLocation> {
        let shared = *self.slots.get(&role)?;
        let terms = *self.terms.get(&field)?;
        Some(SlotLocation { shared, terms, slots: self.facts.plan.slots[field] })
    }
}

/// Returns the bytes of shared memory of a batch's slots.
pub(crate) fn bytes(facts: &KernelFacts<'_>) -> usize {
    if !facts.sums_first() {
        return 0;
    }
    let slots = &facts.plan.slots;
    let read = facts.quantities.iter().filter_map(|quantity| {
        let field = facts.slotted(quantity.source)?;
        Some(quantity.components * slots[field].count)
    });
    let results = facts.results().into_iter();
    let summed = results.map(|field| facts.components(field) * sums_of(slots[field]));
    let corners = facts.has_corners().then(|| facts.form.dim * slots[0].count);
    // Each array begins at an even offset.
    let lengths = read.chain(summed).chain(corners);
    lengths.map(|length| length.next_multiple_of(2)).sum::<usize>() * facts.plan.precision.bytes()
}

/// Returns the entries that sum one component.
fn sums_of(slots: abi::Slots) -> usize {
    slots.stride() * slots.terms
}

/// Loads the terms and slots of the nodes of the current cell.
pub(crate) fn load_terms(s: &mut Lowering<'_>) {
    for field in 0..s.facts.form.fields.len() {
        let Some(&map) = s.arguments.get(&Role::Terms(field)) else { continue };
        let nodes = s.facts.elements.fields[field].count();
        let at = Index::from(s.b.batch()).times(nodes);
        let terms = s.b.integers(&s.facts.of_field("terms", field), nodes);
        for node in 0..nodes {
            let term = s.b.load_index("term", map, &at.plus(node));
            s.b.statement(Statement::StoreInteger(terms, Index::from(node), term));
        }
        s.terms.insert(field, SlotTerms::Cell(terms));
    }
}

/// Loads the same for one node, which is numbered through all batches.
pub(crate) fn load_term(s: &mut Lowering<'_>, field: usize, node: &Index) {
    let Some(&map) = s.arguments.get(&Role::Terms(field)) else { return };
    let term = s.b.load_index("term", map, node);
    s.terms.insert(field, SlotTerms::Node(term));
}

/// Loads the data of the current cell before its nodes, so that it arrives before the barrier.
pub(crate) fn ahead(s: &mut Lowering<'_>) {
    if !s.facts.sums_first() {
        return;
    }
    load_terms(s);
    if s.facts.plan.geometry == Geometry::Affine && s.facts.needs_geometry() {
        s.affine = Some(load_affine(s));
    }
}

/// Loads the values of the batch's nodes, and clears the sums of their cells.
pub(crate) fn fill(s: &mut Lowering<'_>) {
    if !s.facts.sums_first() {
        return;
    }
    s.b.comment("the nodes of the batch");
    for quantity in &s.facts.quantities {
        let Some(field) = s.facts.slotted(quantity.source) else { continue };
        let (role, components) = (s.facts.role_of(quantity.source), quantity.components);
        let count = s.facts.plan.slots[field].count;
        let shared = s.b.shared(&format!("{}_slots", quantity.name), components * count);
        let (source, indices) = (s.arguments[&role], s.facts.indices_of(quantity.source));
        for elements in elements_of(s, (field, indices), components, count) {
            elements.gather(&mut s.b, source, shared, count);
        }
        s.slots.insert(role, shared);
    }
    if s.facts.has_corners() {
        corners(s);
    }
    for field in s.facts.results() {
        let length = s.facts.components(field) * sums_of(s.facts.plan.slots[field]);
        let name = s.facts.of_field("sums", field);
        let (shared, zero) = (s.b.shared(&name, length), s.b.constant(0.0));
        s.b.distribute(length, &mut |b, entry, mine| {
            b.open_when();
            b.store_shared(shared, entry.clone(), zero);
            b.close_when(mine);
        });
        s.slots.insert(Role::Result(field), shared);
    }
    s.b.barrier();
}

/// Loads the coordinates of the corners.
fn corners(s: &mut Lowering<'_>) {
    let (dim, by_node, count) = (s.facts.form.dim, s.facts.by_node(), s.facts.plan.slots[0].count);
    let shared = s.b.shared("corner_slots", dim * count);
    let map = s.arguments[&Role::Slots(0, by_node)];
    let at = Index::from(s.b.batch()).times(count);
    let elements = |scale: usize, parts: Vec<(usize, usize)>| {
        let at = at.clone();
        SlotElements { map, at, scale, parts }
    };
    if let Some(&source) = s.arguments.get(&Role::Coordinates) {
        let (scale, step) =
            if s.facts.plan.tiles { (1, TILE) } else { (coordinate_stride(dim), 1) };
        let parts = (0..dim).map(|i| (i * step, i * count)).collect();
        elements(scale, parts).gather(&mut s.b, source, shared, count);
    } else {
        for i in 0..dim {
            let source = s.arguments[&Role::Axis(i)];
            elements(1, vec![(0, i * count)]).gather(&mut s.b, source, shared, count);
        }
    }
    s.slots.insert(Role::Coordinates, shared);
}

/// Sums the contributions of the batch's cells, and adds the sums to the results.
pub(crate) fn empty(s: &mut Lowering<'_>) {
    if !s.facts.sums_first() {
        return;
    }
    s.b.comment("the sums of the batch");
    s.b.barrier();
    for field in s.facts.results() {
        let (target, shared) = (s.arguments[&Role::Result(field)], s.slots[&Role::Result(field)]);
        let (components, slots) = (s.facts.components(field), s.facts.plan.slots[field]);
        let indices = s.facts.indices_of(QuantitySource::Direction(field));
        for elements in elements_of(s, (field, indices), components, sums_of(slots)) {
            elements.scatter(&mut s.b, target, shared, slots);
        }
    }
}

/// Returns the elements of a field's slots, whose components are `stride` apart in a shared array. They come all at once if a
/// slot is a node, and component by component if it is a DoF.
fn elements_of(
    s: &Lowering<'_>,
    (field, indices): (usize, Indices),
    components: usize,
    stride: usize,
) -> Vec<SlotElements> {
    let count = s.facts.plan.slots[field].count;
    let map = s.arguments[&Role::Slots(field, indices)];
    let batch = Index::from(s.b.batch());
    if indices == Indices::Dofs {
        let one = |c: usize| {
            let at = batch.times(components * count).plus(c * count);
            SlotElements { map, at, scale: 1, parts: vec![(0, c * stride)] }
        };
        return (0..components).map(one).collect();
    }
    let (scale, step) = if indices == Indices::Tiles { (1, TILE) } else { (components, 1) };
    let parts = (0..components).map(|c| (c * step, c * stride)).collect();
    vec![SlotElements { map, at: batch.times(count), scale, parts }]
}

/// Checks the requirements of summing first in a batch.
pub(crate) fn check(facts: &KernelFacts<'_>) -> Result<(), PlanError> {
    let (elements, plan) = (facts.elements, facts.plan);
    let unsupported = |text: String| Err(PlanError::Unsupported(text));
    let by_cells =
        matches!(plan.strategy, Strategy::CellPerLane | Strategy::ThreadTransposition { .. });
    if !by_cells {
        return unsupported(format!("a batch of {} has no slots for its nodes", plan.strategy));
    }
    if matches!(plan.indices, Indices::Runs | Indices::Cells) {
        return unsupported("slots are of nodes or unknowns, not of runs".to_owned());
    }
    let mut fields = elements.fields.iter().zip(&plan.slots);
    let enough = fields.all(|(element, slots)| slots.terms > 0 && slots.count >= element.count());
    if plan.slots.len() != elements.fields.len() || !enough {
        return unsupported("a batch needs slots for the nodes of one cell at least".to_owned());
    }
    let bytes = bytes(facts);
    if bytes > plan.shared_bytes {
        return unsupported(format!("a batch's slots would take {bytes} bytes of shared memory"));
    }
    Ok(())
}
