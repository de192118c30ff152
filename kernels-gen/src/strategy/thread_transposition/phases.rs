//! The phases of the kernel up to the transposition: load, evaluate.

use super::hanging::HangingNodes;
use super::layout::{Digits, Layout};
use super::sums::Sums;
use crate::kir::{Index, SharedId, ValueId};
use crate::lower::ends::tested_parts;
use crate::lower::facts::{KernelFacts, Quantity};
use crate::lower::lowering::{Lowering, repeat};
use crate::lower::point::{PointValues, at_point, pulled_blocks};
use crate::lower::restrict::NodalLocation;
use crate::lower::slots;
use crate::lower::stored::TestFactors;
use crate::lower::tables::{TableReader, Tables};
use crate::plan::{Geometry, Task};
use fem_dsl::point::Part;
use std::ops::Range;

/// A quantity with nodal values: `[component][node][cell]` in shared memory.
struct SharedQuantity {
    /// `None` if a slot of the batch contains the values.
    shared: Option<SharedId>,
    tables: Tables,
    /// The hanging-node constraints, if its nodes may hang.
    hanging: Option<HangingNodes>,
}

/// The tested values at the points.
pub(super) struct Tests {
    /// `[number][point][cell]` in shared memory; `None` if a thread adds them directly to the slots of the batch's
    /// nodes.
    pub(super) shared: Option<SharedId>,
    /// The component, among those of all fields, and the part of each value; empty for the coefficients of the
    /// diagonal.
    pub(super) numbers: Vec<(usize, Part)>,
    pub(super) results: Vec<ElementVector>,
}

/// The contributions to a field.
pub(super) struct ElementVector {
    pub(super) field: usize,
    /// Its components among those of all fields.
    pub(super) rows: Range<usize>,
    pub(super) tables: Tables,
    /// The hanging-node constraints, if its nodes may hang.
    pub(super) hanging: Option<HangingNodes>,
}

/// Constant data of a kernel during its construction.
pub(super) struct Transposition {
    pub(super) layout: Layout,
    batches: usize,
    inputs: Vec<SharedQuantity>,
    /// J⁻¹ and |det J|, and if x is needed the origin and J: `[number][cell]` in shared memory.
    pub(super) map: Option<SharedId>,
    pub(super) tests: Option<Tests>,
}

/// Returns whether a cell has no sum over points: it has one point, and its nodes have slots, whose threads sum over
/// cells.
fn one_point(facts: &KernelFacts<'_>) -> bool {
    let tests = matches!(facts.plan.task, Task::Residual | Task::Action);
    tests && facts.points() == 1 && facts.sums_first()
}

/// Returns the values per point that are stored for the integration.
fn tested_numbers(facts: &KernelFacts<'_>) -> usize {
    if one_point(facts) {
        return 0;
    }
    let numbers = match facts.plan.task {
        Task::Residual | Task::Action | Task::Restrict => tested_parts(facts).len(),
        Task::Diagonal => facts.blocks.numbers,
        Task::Linearise
        | Task::Metric
        | Task::Flux
        | Task::Matrix
        | Task::StoredProduct
        | Task::MatrixProduct
        | Task::Prolong => return 0,
    };
    numbers.max(1)
}

/// Returns the values of a cell's map that one thread computes once; 0 if each point's thread computes them.
fn map_numbers(facts: &KernelFacts<'_>) -> usize {
    let dim = facts.form.dim;
    let constant = matches!(facts.plan.geometry, Geometry::Affine | Geometry::Corners);
    match constant && facts.needs_geometry() && facts.points() > 1 {
        true if facts.needs_x => 1 + dim * dim + dim + dim * dim,
        true => 1 + dim * dim,
        false => 0,
    }
}

/// Returns the values per cell in shared memory.
pub(super) fn numbers_of_cell(facts: &KernelFacts<'_>) -> usize {
    let nodal = |quantity: &Quantity| {
        let arrays = if facts.hangs(quantity.source, quantity.element) { 2 } else { 1 };
        arrays * quantity.stored * quantity.element.count()
    };
    let own = facts.quantities.iter().filter(|quantity| facts.slotted(quantity.source).is_none());
    let inputs: usize = own.map(nodal).sum();
    let hanging = facts.results().into_iter().filter(|&field| facts.result_hangs(field));
    let back: usize = hanging
        .map(|field| 2 * facts.components(field) * facts.elements.fields[field].count())
        .sum();
    inputs + back + map_numbers(facts) + tested_numbers(facts) * facts.points()
}

impl Transposition {
    pub(super) fn new(s: &mut Lowering<'_>, layout: Layout, batches: usize) -> Self {
        let cells = layout.cells;
        let mut inputs = Vec::new();
        for quantity in &s.facts.quantities {
            let tables = Tables::new(s, &quantity.name, quantity.element, TableReader::Point);
            let length = quantity.stored * tables.nodes * cells;
            let own = s.facts.slotted(quantity.source).is_none();
            let shared = own.then(|| s.b.shared(&format!("{}_s", quantity.name), length));
            let hangs = shared.filter(|_| s.facts.hangs(quantity.source, quantity.element));
            let hanging = hangs.map(|first| {
                let arrays = [first, s.b.shared(&format!("{}_t", quantity.name), length)];
                let of = ("node", quantity.components, quantity.element);
                HangingNodes::new(s, &layout, of, arrays, false)
            });
            inputs.push(SharedQuantity { shared, tables, hanging });
        }
        let numbers = map_numbers(s.facts);
        let map = (numbers > 0).then(|| s.b.shared("map_s", numbers * cells));
        let length = tested_numbers(s.facts) * s.facts.points() * cells;
        let tests = s.facts.has_result().then(|| {
            let results = s.facts.results().into_iter().map(|field| {
                let (name, element) =
                    (s.facts.form.fields[field].name.clone(), s.facts.elements.fields[field]);
                let tables = Tables::new(s, &name, element, TableReader::Node);
                let rows = s.facts.rows_of(field);
                let hanging = s.facts.result_hangs(field).then(|| {
                    let (r, length) = (s.facts.of_field("r", field), rows.len() * tables.nodes);
                    let array = |word: &str| s.b.shared(&format!("{r}_{word}"), length * cells);
                    let arrays = ["s", "t"].map(array);
                    HangingNodes::new(s, &layout, ("basis", rows.len(), element), arrays, true)
                });
                ElementVector { field, rows, tables, hanging }
            });
            let results = results.collect();
            let shared = (length > 0).then(|| s.b.shared("tested_s", length));
            let numbers = tested_parts(s.facts);
            Tests { shared, numbers, results }
        });
        Self { layout, batches, inputs, map, tests }
    }

    pub(super) fn write(&self, s: &mut Lowering<'_>) {
        let ahead = self.ahead(s);
        slots::fill(s);
        self.load(s);
        self.maps(s);
        if self.inputs.iter().any(|held| held.shared.is_some()) || self.map.is_some() {
            s.b.barrier();
        }
        let hanging: Vec<&HangingNodes> =
            self.inputs.iter().filter_map(|held| held.hanging.as_ref()).collect();
        self.resolve(s, &hanging);
        self.evaluate(s, ahead);
        if self.tests.as_ref().is_some_and(|tests| tests.shared.is_some()) {
            s.b.comment("the transposition");
            s.b.barrier();
            self.integrate(s);
        }
        slots::empty(s);
        let shares = self.map.is_some() || self.tests.is_some() || !self.inputs.is_empty();
        if shares && self.batches > 1 {
            s.b.comment("the next batch must not overtake this one");
            s.b.barrier();
        }
    }

    /// Loads the data of a thread's cell before its nodes, if it evaluates a point of only one cell; returns true if
    /// so.
    fn ahead(&self, s: &mut Lowering<'_>) -> bool {
        let digits = Digits::new(&mut s.b, "point", &self.layout, self.layout.points);
        let one = digits.one_cell().filter(|_| s.facts.sums_first() && self.map.is_none());
        let Some(cell) = one else { return false };
        s.b.at_cell(cell);
        slots::ahead(s);
        true
    }

    /// Returns the position of entry `at` of a cell.
    pub(super) fn place(&self, at: &Index, cell: &Index) -> Index {
        &at.times(self.layout.cells) + cell
    }

    /// Loads nodal values into shared memory.
    fn load(&self, s: &mut Lowering<'_>) {
        for (quantity, held) in s.facts.quantities.iter().zip(&self.inputs) {
            let Some(shared) = held.shared else { continue };
            s.b.comment(&format!("load {}", quantity.name));
            let digits = Digits::new(&mut s.b, "node", &self.layout, held.tables.nodes);
            let nodal = NodalLocation::of(s, quantity);
            digits.each_cell(s, &mut |s, cell| {
                digits.each_item(s, held.tables.nodes, &mut |s, node| {
                    let entry = &Index::from(s.b.batch()).times(held.tables.nodes) + &node;
                    for c in 0..quantity.stored {
                        let value = nodal.gather(&mut s.b, &entry, c);
                        let at = self.place(&held.tables.place(&node, c), cell);
                        s.b.store_shared(shared, at, value);
                    }
                });
            });
        }
    }

    /// Evaluates the point function and stores its results.
    fn evaluate(&self, s: &mut Lowering<'_>, ahead: bool) {
        s.b.comment("evaluate");
        let digits = Digits::new(&mut s.b, "point", &self.layout, self.layout.points);
        let point = digits.item();
        let still = s.hoisted.clone();
        digits.each_cell(s, &mut |s, cell| {
            s.hoisted = still.clone();
            s.hoist();
            if !ahead {
                slots::load_terms(s);
            }
            let values = self.interpolate(s, &point, cell);
            let at = self.geometry(s, &values, &point, cell);
            let mut evaluate = |_: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
                values[quantity].get(c, part)
            };
            if s.facts.plan.task == Task::Diagonal {
                let blocks = &s.facts.blocks;
                let pulled = pulled_blocks(s, &at, &point, &mut evaluate);
                for (number, &value) in blocks.values(&pulled).iter().enumerate() {
                    self.keep(s, number, &point, cell, value);
                }
                return;
            }
            let tested = at_point(s, &at, &point, &mut evaluate);
            if one_point(s.facts) {
                self.leave(s, &tested);
            } else {
                self.keep_tested(s, &tested, &point, cell);
            }
        });
        s.hoisted = still;
    }

    fn keep(&self, s: &mut Lowering<'_>, number: usize, q: &Index, cell: &Index, value: ValueId) {
        let Some(shared) = self.tests.as_ref().and_then(|tests| tests.shared) else { return };
        let at = self.place(&q.plus(number * self.layout.points), cell);
        s.b.store_shared(shared, at, value);
    }

    fn keep_tested(
        &self,
        s: &mut Lowering<'_>,
        tested: &[TestFactors],
        point: &Index,
        cell: &Index,
    ) {
        let Some(tests) = &self.tests else { return };
        let zero = s.b.constant(0.0);
        for (number, &(row, part)) in tests.numbers.iter().enumerate() {
            let value = tested[row].part(part);
            self.keep(s, number, point, cell, value.unwrap_or(zero));
        }
    }

    /// Computes values and reference gradients of all quantities at a point.
    fn interpolate(&self, s: &mut Lowering<'_>, point: &Index, cell: &Index) -> Vec<PointValues> {
        let quantities = &s.facts.quantities;
        let pairs = quantities.iter().zip(&self.inputs);
        pairs.map(|(quantity, held)| self.interpolate_one(s, quantity, held, point, cell)).collect()
    }

    fn interpolate_one(
        &self,
        s: &mut Lowering<'_>,
        quantity: &Quantity,
        held: &SharedQuantity,
        point: &Index,
        cell: &Index,
    ) -> PointValues {
        let (dim, nodes) = (s.facts.form.dim, held.tables.nodes);
        let constant = quantity.gradient && held.tables.are_linear();
        let mut parts = Vec::new();
        if quantity.value {
            parts.push(Part::Value);
        }
        if quantity.gradient && !constant {
            parts.extend((0..dim).map(Part::Derivative));
        }
        let mut found =
            PointValues { parts: parts.clone(), values: Vec::new(), slopes: Vec::new() };
        for c in (0..quantity.components).filter(|_| constant) {
            let value = |s: &mut Lowering<'_>, node: usize| {
                self.nodal_value(s, (quantity, held), &Index::from(node), c, cell)
            };
            found.slopes.extend(held.tables.constant_gradient(s, c, value));
        }
        if parts.is_empty() {
            return found;
        }
        let unroll = s.facts.plan.unroll >= nodes;
        let mut sums = Sums::new(s, &quantity.name, quantity.components * parts.len(), unroll);
        let each = |s: &mut Lowering<'_>, node: Index| {
            let mut factors: Vec<ValueId> = Vec::new();
            for c in 0..quantity.components {
                if c == 0 || held.tables.are_vectors() {
                    let of = |&part: &Part| held.tables.basis(s, (c, part), &node, point);
                    factors = parts.iter().map(of).collect();
                }
                let value = self.nodal_value(s, (quantity, held), &node, c, cell);
                for (i, &factor) in factors.iter().enumerate() {
                    sums.add(s, c * parts.len() + i, factor, value);
                }
            }
        };
        repeat(s, "b", nodes, unroll, each);
        found.values = sums.take(s);
        found
    }

    /// Loads component c of a quantity at a node of a cell.
    fn nodal_value(
        &self,
        s: &mut Lowering<'_>,
        (quantity, held): (&Quantity, &SharedQuantity),
        node: &Index,
        c: usize,
        cell: &Index,
    ) -> ValueId {
        let nodes = held.tables.nodes;
        if let Some(shared) = held.hanging.as_ref().map(HangingNodes::resolved).or(held.shared) {
            let at = self.place(&held.tables.place(node, c), cell);
            return s.b.load_shared(shared, at);
        }
        let nodal = NodalLocation::of(s, quantity);
        let entry = &Index::from(s.b.batch()).times(nodes) + node;
        nodal.gather(&mut s.b, &entry, c.min(quantity.stored - 1))
    }
}
