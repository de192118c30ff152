//! `thread_per_dof`: each thread processes one node, or one point, of a quadrilateral or hexahedron.
//!
//! K. Ljungkvist, "Matrix-free finite-element computations on graphics processors with adaptively refined unstructured
//! meshes" (2017). With n nodes and q ≥ n points per direction, q^d threads per cell and several cells per group,
//! thread (i, j, k) of a cell performs
//!
//! ```text
//! load          node (i, j, k)
//! interpolate   one direction after another: Σ_a B[i][a] u[a, j, k], …
//! evaluate      Σ_a D[i][a] u[a, j, k] in every direction, the point function
//! test          f0 + Σ_a D[a][i] f1[a, j, k] + …, all directions at once
//! integrate     one direction after another: Σ_a B[a][i] r[a, j, k], …;  the last one is added
//! ```
//!
//! with a barrier between one line and the next and between directions, which alternate between two arrays. The cell is
//! the fastest digit of the thread index, and arrays have the cell last. If nodes and points coincide, the
//! interpolations vanish. A diagonal integrates coefficients instead (`diagonal`), and data at the points is stored by
//! their threads. Several fields with different nodes share the barriers.

mod diagonal;
mod hanging;

use crate::abi::{Indices, KernelAbi, THREADS};
use crate::element::{Element, LinePoints, LineTable};
use crate::kir::{Condition, Entries, Index, Kernel, SharedId, TableId, ValueId, VarId};
use crate::lower::ends::tested_parts;
use crate::lower::factors::nodes_of;
use crate::lower::facts::{KernelFacts, Quantity};
use crate::lower::geometry::{affine_map, geometry_at, position};
use crate::lower::lowering::Lowering;
use crate::lower::point::{PointValues, at_point};
use crate::lower::restrict::NodalLocation;
use crate::lower::stored::TestFactors;
use crate::plan::{Geometry, PlanError, Task};
use diagonal::Diagonal;
use fem_dsl::point::Part;
use hanging::HangingNodes;
use std::ops::Range;

/// Checks that this strategy supports a plan.
pub(crate) fn check(facts: &KernelFacts<'_>) -> Result<(), PlanError> {
    let (elements, plan) = (facts.elements, facts.plan);
    let refuse = |text: String| Err(PlanError::Unsupported(text));
    if plan.hanging && plan.task == Task::Diagonal {
        return refuse("a thread a node has no diagonal of hanging nodes".to_owned());
    }
    let Some(line) = elements.rule.line().filter(|_| elements.cell.is_factorised()) else {
        return refuse("a thread a node works on quadrilaterals and hexahedra".to_owned());
    };
    if plan.indices == Indices::Runs || plan.lanes == 0 {
        return refuse("a thread a node addresses nodes or unknowns, and some cells".to_owned());
    }
    if plan.geometry == Geometry::Corners {
        return refuse("a thread a node does not gather corners".to_owned());
    }
    let q = line.count();
    let elements_read = facts.quantities.iter().map(|quantity| quantity.element);
    let mut all = elements_read.chain(elements.fields.iter().copied());
    if all.any(|element| element.degree() + 1 > q) {
        return refuse("a thread a node needs as many points as nodes a direction".to_owned());
    }
    let threads = plan.lanes * elements.rule.count();
    let mut setting = Lowering::new(facts);
    Dofs::new(&mut setting);
    let bytes = setting.shared_bytes();
    if threads > THREADS || bytes > plan.shared_bytes {
        let cells = plan.lanes;
        return refuse(format!(
            "{cells} cells a group would take {bytes} bytes of shared memory and {threads} threads"
        ));
    }
    Ok(())
}

/// Generates the kernel.
pub(super) fn lower(facts: &KernelFacts<'_>) -> (Kernel, KernelAbi) {
    let (elements, plan) = (facts.elements, facts.plan);
    let mut setting = Lowering::new(facts);
    setting.b.set_threads(plan.lanes * elements.rule.count(), 1);
    setting.b.set_cells(plan.lanes);
    let dofs = Dofs::new(&mut setting);
    let declared = setting.shared_bytes();
    dofs.write(&mut setting);
    assert_eq!(declared, setting.shared_bytes(), "what is shared should be known at first");
    setting.finish()
}

/// A quantity in shared memory between nodes and points, or the result on its way back.
struct SharedQuantity {
    components: usize,
    /// Nodes per direction.
    n: usize,
    /// `[component][z][y][x][cell]`, read and written alternately.
    arrays: [SharedId; 2],
    /// B\[i\]\[a\] at `a · q + i`, and its transpose at `a · n + i`; `None` if nodes are points.
    interpolate: Option<[TableId; 2]>,
    /// The hanging-node constraints, if its nodes may hang.
    hanging: Option<HangingNodes>,
    /// Steps before those of the interpolation.
    before: usize,
}

impl SharedQuantity {
    /// Returns the array after this many steps of the interpolation.
    fn after(&self, steps: usize) -> SharedId {
        self.arrays[(self.before + steps) % 2]
    }

    /// Prepares for hanging nodes, which need a second array.
    fn may_hang(
        &mut self,
        s: &mut Lowering<'_>,
        name: &str,
        (element, line): (Element, LinePoints),
        volume: usize,
        back: bool,
    ) {
        if self.interpolate.is_none() {
            self.arrays[1] = s.b.shared(&format!("{name}_t"), self.components * volume);
        }
        self.hanging = Some(HangingNodes::new(s, nodes_of(element), line.count(), back));
    }

    /// Returns the array that a step reads, and the one that it writes.
    fn turn(&self, step: usize) -> [SharedId; 2] {
        [self.arrays[step % 2], self.arrays[(step + 1) % 2]]
    }
}

/// Constant data of a kernel during its construction.
struct Dofs {
    dim: usize,
    q: usize,
    cells: usize,
    cell: Index,
    /// x, y, z.
    digits: Vec<VarId>,
    inputs: Vec<SharedQuantity>,
    /// D\[i\]\[a\] at `a · q + i`, and D\[a\]\[i\].
    derive: [TableId; 2],
    end: PointResults,
}

/// The contributions to a field.
struct ElementVector {
    field: usize,
    /// Its components among those of all fields.
    rows: Range<usize>,
    shared: SharedQuantity,
}

/// The tested values at the points: `[number][point][cell]`.
struct TestValues {
    shared: SharedId,
    /// The component, among those of all fields, and the part of each value.
    numbers: Vec<(usize, Part)>,
}

/// The results at the points.
enum PointResults {
    ElementVectors(TestValues, Vec<ElementVector>),
    Diagonal(Diagonal),
    /// Values are stored at the points.
    Stored,
}

impl Dofs {
    fn new(s: &mut Lowering<'_>) -> Self {
        let line = s.facts.elements.rule.line().expect("the plan should have checked the rule");
        let (dim, q, cells) = (s.facts.form.dim, line.count(), s.facts.plan.lanes);
        let cell = Index::from(s.b.thread_var("cell", 1, cells));
        let digit = |s: &mut Lowering<'_>, axis: usize| {
            s.b.thread_var(["x", "y", "z"][axis], cells * q.pow(axis as u32), q)
        };
        let digits: Vec<VarId> = (0..dim).map(|axis| digit(s, axis)).collect();
        let own = LineTable::new(line, line);
        let square = |entry: &dyn Fn(usize, usize) -> f64| {
            Entries::Real((0..q * q).map(|at| entry(at % q, at / q)).collect())
        };
        let derive = [
            s.b.spread_table("derive", square(&|i, a| own.derivative(i, a))),
            s.b.spread_table("derive_t", square(&|i, a| own.derivative(a, i))),
        ];
        let volume = q.pow(dim as u32) * cells;
        let quantities = &s.facts.quantities;
        let inputs = quantities.iter().map(|quantity| {
            let mut own =
                declare(s, &quantity.name, quantity.components, quantity.element, line, volume);
            if s.facts.hangs(quantity.source, quantity.element) {
                own.before = dim;
                own.may_hang(s, &quantity.name, (quantity.element, line), volume, false);
            }
            own
        });
        let inputs = inputs.collect();
        let end = match s.facts.plan.task {
            Task::Residual | Task::Action | Task::Restrict => tested(s, line, volume),
            Task::Diagonal => PointResults::Diagonal(Diagonal::new(s, volume)),
            Task::Linearise
            | Task::Metric
            | Task::Flux
            | Task::Matrix
            | Task::StoredProduct
            | Task::MatrixProduct
            | Task::Prolong => PointResults::Stored,
        };
        Self { dim, q, cells, cell, digits, inputs, derive, end }
    }

    /// Returns entry (x, y, z) of a component, with the thread's own digits except for the given one.
    fn place(&self, component: usize, other: Option<(usize, usize)>) -> Index {
        let mut at = Index::from(component);
        for axis in (0..self.dim).rev() {
            let digit = match other {
                Some((along, entry)) if along == axis => Index::from(entry),
                _ => Index::from(self.digits[axis]),
            };
            at = &at.times(self.q) + &digit;
        }
        &at.times(self.cells) + &self.cell
    }

    /// Returns the index of node or point (x, y, z) of `count` per direction.
    fn number(&self, count: usize) -> Index {
        let digits = self.digits.iter().rev();
        digits.fold(Index::default(), |at, &digit| &at.times(count) + &Index::from(digit))
    }

    /// Runs `body` in the threads whose digits are below `bounds`.
    fn when(
        &self,
        s: &mut Lowering<'_>,
        bounds: &[usize],
        body: &mut dyn FnMut(&mut Lowering<'_>),
    ) {
        s.b.at_cell(self.cell.clone());
        let pairs = self.digits.iter().copied().zip(bounds.iter().copied());
        let below = pairs.filter(|(_, bound)| *bound < self.q);
        s.b.open_when();
        body(s);
        s.b.close_when(below.map(|(digit, bound)| Condition::Below(digit, bound)).collect());
    }

    fn store(&self, s: &mut Lowering<'_>, array: SharedId, component: usize, value: ValueId) {
        let place = self.place(component, None);
        s.b.store_shared(array, place, value);
    }

    /// Computes Σ_a table[a · stride + own] array[… a …] + onto.
    fn contract(
        &self,
        s: &mut Lowering<'_>,
        (table, stride, count): (TableId, usize, usize),
        (array, component): (SharedId, usize),
        axis: usize,
        onto: ValueId,
    ) -> ValueId {
        let own = Index::from(self.digits[axis]);
        (0..count).fold(onto, |sum, a| {
            let factor = s.b.load_table(table, own.plus(a * stride));
            let value = s.b.load_shared(array, self.place(component, Some((axis, a))));
            s.b.fma(factor, value, sum)
        })
    }

    fn write(&self, s: &mut Lowering<'_>) {
        if !self.inputs.is_empty() {
            self.load(s);
            s.b.barrier();
            self.resolve(s);
            self.interpolate(s);
        }
        self.evaluate(s);
    }

    fn load(&self, s: &mut Lowering<'_>) {
        for (quantity, shared) in s.facts.quantities.iter().zip(&self.inputs) {
            s.b.comment(&format!("load {}", quantity.name));
            self.when(s, &vec![shared.n; self.dim], &mut |s| {
                for c in 0..shared.components {
                    let value = self.gather(s, quantity, shared.n, c);
                    self.store(s, shared.arrays[0], c, value);
                }
            });
        }
    }

    fn gather(&self, s: &mut Lowering<'_>, quantity: &Quantity, n: usize, c: usize) -> ValueId {
        let nodes = Index::from(s.b.batch()).times(n.pow(self.dim as u32));
        let nodal = NodalLocation::of(s, quantity);
        nodal.gather(&mut s.b, &(&nodes + &self.number(n)), c)
    }

    /// Applies B, one direction after another.
    fn interpolate(&self, s: &mut Lowering<'_>) {
        if self.inputs.iter().all(|shared| shared.interpolate.is_none()) {
            return;
        }
        for axis in 0..self.dim {
            s.b.comment(&format!("interpolate in {}", ["x", "y", "z"][axis]));
            for shared in &self.inputs {
                let Some([table, _]) = shared.interpolate else { continue };
                let bounds: Vec<usize> = (0..self.dim)
                    .map(|other| if other > axis { shared.n } else { self.q })
                    .collect();
                self.when(s, &bounds, &mut |s| {
                    for c in 0..shared.components {
                        let (zero, from) = (s.b.constant(0.0), (shared.after(axis), c));
                        let sum = self.contract(s, (table, self.q, shared.n), from, axis, zero);
                        self.store(s, shared.after(axis + 1), c, sum);
                    }
                });
            }
            s.b.barrier();
        }
    }

    /// Returns the array with a quantity's values at the points.
    fn at_points(&self, shared: &SharedQuantity) -> SharedId {
        shared.after(self.steps(shared))
    }

    fn evaluate(&self, s: &mut Lowering<'_>) {
        s.b.comment("evaluate");
        s.b.at_cell(self.cell.clone());
        s.hoist();
        let point = self.number(self.q);
        let mut values = Vec::new();
        for (quantity, shared) in s.facts.quantities.iter().zip(&self.inputs) {
            values.push(self.interpolated(s, quantity, shared));
        }
        let at = geometry_at(s, &point, affine_map, |s, i, part| {
            let x = position(s);
            values[x].get(i, part)
        });
        let mut evaluate = |_: &mut Lowering<'_>, quantity: usize, c: usize, part: Part| {
            values[quantity].get(c, part)
        };
        if let PointResults::Diagonal(diagonal) = &self.end {
            let known = diagonal.at_point(s, &at, &point, &mut evaluate);
            return self.integrate_diagonal(s, diagonal, &known);
        }
        let tested = at_point(s, &at, &point, &mut evaluate);
        if let PointResults::ElementVectors(kept, results) = &self.end {
            self.keep(s, kept, &tested);
            s.b.barrier();
            self.integrate(s, kept, results);
        }
    }

    fn interpolated(
        &self,
        s: &mut Lowering<'_>,
        quantity: &Quantity,
        shared: &SharedQuantity,
    ) -> PointValues {
        let value = quantity.value.then_some(Part::Value);
        let axes = if quantity.gradient { 0..self.dim } else { 0..0 };
        let parts: Vec<Part> = value.into_iter().chain(axes.map(Part::Derivative)).collect();
        let array = self.at_points(shared);
        let (mut values, zero) = (Vec::new(), s.b.constant(0.0));
        for c in 0..shared.components {
            for &part in &parts {
                values.push(match part {
                    Part::Value => s.b.load_shared(array, self.place(c, None)),
                    Part::Derivative(axis) => {
                        let matrix = (self.derive[0], self.q, self.q);
                        self.contract(s, matrix, (array, c), axis, zero)
                    }
                    Part::Second(..) => {
                        unreachable!("second derivatives have one lane or thread a cell")
                    }
                    Part::Exterior(_) => {
                        unreachable!("the pull-back replaces exterior derivatives")
                    }
                });
            }
        }
        PointValues { parts, values, slopes: Vec::new() }
    }

    fn keep(&self, s: &mut Lowering<'_>, kept: &TestValues, tested: &[TestFactors]) {
        let zero = s.b.constant(0.0);
        for (number, &(row, part)) in kept.numbers.iter().enumerate() {
            let value = tested[row].part(part);
            self.store(s, kept.shared, number, value.unwrap_or(zero));
        }
    }

    /// Applies Dᵀ in all directions at once, then Bᵀ in one after another.
    fn integrate(&self, s: &mut Lowering<'_>, kept: &TestValues, results: &[ElementVector]) {
        s.b.comment("test");
        s.b.at_cell(self.cell.clone());
        for ElementVector { field, rows, shared } in results {
            let sums: Vec<ValueId> = rows.clone().map(|row| self.tested(s, kept, row)).collect();
            if shared.interpolate.is_none() && shared.hanging.is_none() {
                self.scatter(s, (*field, shared.n), &sums);
                continue;
            }
            for (c, &sum) in sums.iter().enumerate() {
                self.store(s, shared.after(0), c, sum);
            }
        }
        let moved = results.iter().any(|result| result.shared.interpolate.is_some());
        for step in 0..if moved { self.dim } else { 0 } {
            s.b.barrier();
            s.b.comment(&format!("integrate in {}", ["x", "y", "z"][step]));
            for ElementVector { field, shared, .. } in results {
                let Some([_, table]) = shared.interpolate else { continue };
                self.when(s, &self.nodes_up_to(step, shared.n), &mut |s| {
                    let mut sums = Vec::new();
                    for c in 0..shared.components {
                        let (zero, from) = (s.b.constant(0.0), (shared.after(step), c));
                        sums.push(self.contract(s, (table, shared.n, self.q), from, step, zero));
                    }
                    if step + 1 == self.dim && shared.hanging.is_none() {
                        self.scatter(s, (*field, shared.n), &sums);
                        return;
                    }
                    for (c, &sum) in sums.iter().enumerate() {
                        self.store(s, shared.after(step + 1), c, sum);
                    }
                });
            }
        }
        self.scatter_hanging(s, results);
    }

    /// Computes f0 + Σ_axis Dᵀ f1 of a component, given by its row, at the thread's point.
    fn tested(&self, s: &mut Lowering<'_>, kept: &TestValues, row: usize) -> ValueId {
        let mut sum = s.b.constant(0.0);
        for (number, &(own, part)) in kept.numbers.iter().enumerate() {
            if own != row {
                continue;
            }
            sum = match part {
                Part::Value => {
                    let value = s.b.load_shared(kept.shared, self.place(number, None));
                    s.b.add(value, sum)
                }
                Part::Derivative(axis) => {
                    let matrix = (self.derive[1], self.q, self.q);
                    self.contract(s, matrix, (kept.shared, number), axis, sum)
                }
                Part::Second(..) => {
                    unreachable!("second derivatives have one lane or thread a cell")
                }
                Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
            };
        }
        sum
    }

    /// Returns the bounds of threads with nodes, `n` per direction, in the directions up to `step`, and points in the
    /// others.
    fn nodes_up_to(&self, step: usize, n: usize) -> Vec<usize> {
        (0..self.dim).map(|other| if other > step { self.q } else { n }).collect()
    }

    /// Adds to the components of a field at the thread's node of `n` per direction.
    fn scatter(&self, s: &mut Lowering<'_>, (field, n): (usize, usize), sums: &[ValueId]) {
        let nodes = Index::from(s.b.batch()).times(n.pow(self.dim as u32));
        let (node, nodal) = (&nodes + &self.number(n), NodalLocation::result(s, field));
        s.b.open_when();
        for (c, &sum) in sums.iter().enumerate() {
            nodal.scatter(&mut s.b, &node, c, sum);
        }
        s.b.close_when_written();
    }
}

/// Declares the tested values in shared memory, and the results.
fn tested(s: &mut Lowering<'_>, line: LinePoints, volume: usize) -> PointResults {
    let numbers = tested_parts(s.facts);
    let shared = s.b.shared("tested_s", numbers.len().max(1) * volume);
    let results = s.facts.results().into_iter().map(|field| {
        let (name, rows) = (s.facts.of_field("r", field), s.facts.rows_of(field));
        let element = s.facts.elements.fields[field];
        let mut shared = declare(s, &name, rows.len(), element, line, volume);
        if s.facts.result_hangs(field) {
            shared.may_hang(s, &name, (element, line), volume, true);
        }
        ElementVector { field, rows, shared }
    });
    let results = results.collect();
    PointResults::ElementVectors(TestValues { shared, numbers }, results)
}

/// Declares a quantity of an element in shared memory.
fn declare(
    s: &mut Lowering<'_>,
    name: &str,
    components: usize,
    element: Element,
    line: LinePoints,
    volume: usize,
) -> SharedQuantity {
    let nodes = nodes_of(element);
    let (n, q) = (nodes.count(), line.count());
    let moved = nodes != line;
    let first = s.b.shared(&format!("{name}_s"), components * volume);
    // Without interpolation, one array is enough.
    let second = if moved { s.b.shared(&format!("{name}_t"), components * volume) } else { first };
    let interpolate = moved.then(|| {
        let table = LineTable::new(nodes, line);
        let there = (0..n * q).map(|at| table.value(at % q, at / q)).collect();
        let back = (0..n * q).map(|at| table.value(at / n, at % n)).collect();
        let there = s.b.spread_table(&format!("basis_{n}"), Entries::Real(there));
        [there, s.b.spread_table(&format!("basis_{n}_t"), Entries::Real(back))]
    });
    SharedQuantity { components, n, arrays: [first, second], interpolate, hanging: None, before: 0 }
}
