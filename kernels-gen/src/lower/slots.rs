//! The nodes of a batch in memory that its threads share: what cells read of them, and where they sum first
//! ([`Scatter::Block`](crate::plan::Scatter::Block)).
//!
//! ```text
//! fill     slot ← values of its node, for each quantity that is an unknown, and the corners' coordinates;  sums ← 0
//! ── barrier; cells take u from the slots of their nodes, and put what they have for them in terms of their own
//! ── barrier
//! empty    r[node of the slot] += Σ_k sums[k][slot]: one addition to memory for up to so many cells
//! ```
//!
//! A cell names a node of its own by `term · stride + slot` ([`Role::Terms`]), which is both where it reads and where it
//! writes; which unknown it is for the slot alone knows ([`Role::Slots`]). So each unknown of a batch is read from memory
//! once, and no two cells ever wait for each other.

use super::facts::{Facts, Source};
use super::geometry::load_affine;
use super::lowering::Lowering;
use crate::abi::{self, Indices, Role, TILE, coordinate_stride};
use crate::kir::build::Builder;
use crate::kir::{Index, SharedId, Slots, Statement, TermsId, ValueId, Write};
use crate::plan::{Geometry, PlanError, Strategy};

/// Where the nodes of one field lie in an array of slots.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    shared: SharedId,
    terms: Terms,
    slots: abi::Slots,
}

/// The terms that a thread or lane has at hand: of all nodes of its cell, or of one.
#[derive(Clone, Copy)]
pub(crate) enum Terms {
    Cell(TermsId),
    Node(TermsId),
}

impl Terms {
    /// Where those of a node are; `node` goes through the nodes of all batches.
    fn entry(self, b: &Builder, node: &Index) -> (TermsId, Index) {
        match self {
            Self::Node(terms) => (terms, Index::default()),
            Self::Cell(terms) => {
                let mut own = node.clone();
                own.terms.retain(|&(var, _)| var != b.batch());
                (terms, own)
            }
        }
    }
}

impl Place {
    /// What the slot of a node holds of component `c`; `node` goes through the nodes of all batches.
    pub(crate) fn load(self, b: &mut Builder, node: &Index, c: usize) -> ValueId {
        let entry = self.terms.entry(b, node);
        b.load_slot((self.shared, c * self.slots.count), entry, self.slots.stride())
    }

    /// Puts what a cell has for component `c` of a node in its term of the slot.
    pub(crate) fn store(self, b: &mut Builder, node: &Index, c: usize, value: ValueId) {
        let first = c * sums_of(self.slots);
        let (shared, (terms, entry)) = (self.shared, self.terms.entry(b, node));
        b.statement(Statement::StoreTerm { shared, terms, entry, first, value });
    }
}

impl Lowering<'_> {
    /// Where the values of a role of a field are, or what is summed for it.
    pub(crate) fn in_slots(&self, role: Role, field: usize) -> Option<Place> {
        let shared = *self.slots.get(&role)?;
        let terms = *self.terms.get(&field)?;
        Some(Place { shared, terms, slots: self.facts.plan.slots[field] })
    }
}

/// Bytes of shared memory that the slots of a batch take.
pub(crate) fn bytes(facts: &Facts<'_>) -> usize {
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
    // Each array begins at an even place.
    let lengths = read.chain(summed).chain(corners);
    lengths.map(|length| length.next_multiple_of(2)).sum::<usize>() * facts.plan.precision.bytes()
}

/// Entries that sum one component.
fn sums_of(slots: abi::Slots) -> usize {
    slots.stride() * slots.terms
}

/// Reads which terms of which slots the nodes of the cell that is meant have.
pub(crate) fn hold_terms(s: &mut Lowering<'_>) {
    for field in 0..s.facts.form.fields.len() {
        let Some(&map) = s.arguments.get(&Role::Terms(field)) else { continue };
        let nodes = s.facts.elements.fields[field].count();
        let at = Index::from(s.b.batch()).times(nodes);
        let name = s.facts.of_field("terms", field);
        let terms = s.b.load_terms(&name, map, at, nodes);
        s.terms.insert(field, Terms::Cell(terms));
    }
}

/// The same of one node, whose number goes through the nodes of all batches.
pub(crate) fn hold_term(s: &mut Lowering<'_>, field: usize, node: &Index) {
    let Some(&map) = s.arguments.get(&Role::Terms(field)) else { return };
    let name = s.facts.of_field("term", field);
    let terms = s.b.load_terms(&name, map, node.clone(), 1);
    s.terms.insert(field, Terms::Node(terms));
}

/// Reads what is known of the cell that is meant before its nodes are, so that nobody waits for it behind a barrier.
pub(crate) fn ahead(s: &mut Lowering<'_>) {
    if !s.facts.sums_first() {
        return;
    }
    hold_terms(s);
    if s.facts.plan.geometry == Geometry::Affine && s.facts.needs_geometry() {
        s.affine = Some(load_affine(s));
    }
}

/// Reads what the batch's nodes have, and clears where their cells are to sum.
pub(crate) fn fill(s: &mut Lowering<'_>) {
    if !s.facts.sums_first() {
        return;
    }
    s.b.comment("the nodes of the batch");
    for quantity in &s.facts.quantities {
        let Some(field) = s.facts.slotted(quantity.source) else { continue };
        let (role, components) = (quantity.source.role(), quantity.components);
        let length = components * s.facts.plan.slots[field].count;
        let shared = s.b.shared(&format!("{}_slots", quantity.name), length);
        let source = s.arguments[&role];
        let (indices, apart) =
            (s.facts.indices_of(quantity.source), s.facts.plan.slots[field].count);
        for slots in slots_of(s, (field, indices), shared, components, apart) {
            s.b.statement(Statement::GatherSlots { source, slots });
        }
        s.slots.insert(role, shared);
    }
    if s.facts.has_corners() {
        corners(s);
    }
    for field in s.facts.results() {
        let length = s.facts.components(field) * sums_of(s.facts.plan.slots[field]);
        let name = s.facts.of_field("sums", field);
        let shared = s.b.shared(&name, length);
        s.b.statement(Statement::Clear { shared, length });
        s.slots.insert(Role::Result(field), shared);
    }
    s.b.statement(Statement::Barrier);
}

/// The coordinates of the corners.
fn corners(s: &mut Lowering<'_>) {
    let (dim, by_node, own) = (s.facts.form.dim, s.facts.by_node(), s.facts.plan.slots[0]);
    let (count, stride) = (own.count, own.stride());
    let shared = s.b.shared("corner_slots", dim * count);
    let map = s.arguments[&Role::Slots(0, by_node)];
    let at = Index::from(s.b.batch()).times(count);
    let slots = |scale: usize, parts: Vec<(usize, usize)>| {
        let at = at.clone();
        Slots { shared, map, at, count, stride, scale, parts }
    };
    if let Some(&source) = s.arguments.get(&Role::Coordinates) {
        let (scale, step) =
            if s.facts.plan.tiles { (1, TILE) } else { (coordinate_stride(dim), 1) };
        let parts = (0..dim).map(|i| (i * step, i * count)).collect();
        s.b.statement(Statement::GatherSlots { source, slots: slots(scale, parts) });
    } else {
        for i in 0..dim {
            let source = s.arguments[&Role::Axis(i)];
            let slots = slots(1, vec![(0, i * count)]);
            s.b.statement(Statement::GatherSlots { source, slots });
        }
    }
    s.slots.insert(Role::Coordinates, shared);
}

/// Adds up what the cells of the batch have left, and adds the sums to the results.
pub(crate) fn empty(s: &mut Lowering<'_>) {
    if !s.facts.sums_first() {
        return;
    }
    s.b.comment("the sums of the batch");
    s.b.statement(Statement::Barrier);
    for field in s.facts.results() {
        let (target, shared) = (s.arguments[&Role::Result(field)], s.slots[&Role::Result(field)]);
        let (components, terms) = (s.facts.components(field), s.facts.plan.slots[field].terms);
        let indices = s.facts.indices_of(Source::Direction(field));
        let apart = sums_of(s.facts.plan.slots[field]);
        for slots in slots_of(s, (field, indices), shared, components, apart) {
            let write = Write::LaneSerial;
            s.b.statement(Statement::ScatterSlots { target, slots, terms, write });
        }
    }
}

/// The slots of a field's components, which lie `apart` from each other in a shared array: all in one where a slot is one
/// node's, one for each where it is one unknown's.
fn slots_of(
    s: &Lowering<'_>,
    (field, indices): (usize, Indices),
    shared: SharedId,
    components: usize,
    apart: usize,
) -> Vec<Slots> {
    let (count, stride) = (s.facts.plan.slots[field].count, s.facts.plan.slots[field].stride());
    let map = s.arguments[&Role::Slots(field, indices)];
    let batch = Index::from(s.b.batch());
    let first = |c: usize| c * apart;
    if indices == Indices::Dofs {
        let one = |c: usize| {
            let at = batch.times(components * count).plus(c * count);
            Slots { shared, map, at, count, stride, scale: 1, parts: vec![(0, first(c))] }
        };
        return (0..components).map(one).collect();
    }
    let (scale, step) = if indices == Indices::Tiles { (1, TILE) } else { (components, 1) };
    let parts = (0..components).map(|c| (c * step, first(c))).collect();
    vec![Slots { shared, map, at: batch.times(count), count, stride, scale, parts }]
}

/// What holds where the cells of a batch sum first.
pub(crate) fn check(facts: &Facts<'_>) -> Result<(), PlanError> {
    let (elements, plan) = (facts.elements, facts.plan);
    let unsupported = |text: String| Err(PlanError::Unsupported(text));
    let by_cells =
        matches!(plan.strategy, Strategy::CellPerLane | Strategy::ThreadTransposition { .. });
    if !by_cells {
        return unsupported(format!("a batch of {} has no slots for its nodes", plan.strategy));
    }
    if plan.indices == Indices::Runs {
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
