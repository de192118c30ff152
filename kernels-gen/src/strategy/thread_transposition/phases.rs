//! The phases of the kernel: load, evaluate, integrate.

use super::layout::{Digits, Layout};
use crate::abi::{Indices, Role};
use crate::element::tabulate;
use crate::kir::{Entries, Index, LocalId, SharedId, Statement, TableId, ValueId};
use crate::lower::geometry::{
    AtPoint, cofactors, multilinear_layer, multilinear_point, multilinear_row,
};
use crate::lower::stored::{Tested, act};
use crate::plan::{Geometry, Task};
use crate::strategy::cell_per_lane::setting::{Quantity, Setting, Source, element, node_count};
use crate::strategy::cell_per_lane::tensor::{
    CellGeometry, affine_point, cell_geometry, gather_corners,
};
use crate::strategy::cell_per_lane::{at_point, map_of, pulled_blocks, stored_geometry};
use fem_dsl::point::Part;

/// The tables of an element at the points.
struct Tables {
    nodes: usize,
    value: TableId,
    derivatives: Vec<TableId>,
    /// The derivatives at any point, `[axis][node]`, where they are the same at all.
    constant: Option<Vec<Vec<f64>>>,
}

/// Which digit of a thread's number a table is read by: the point, and entries are `[node][point]`, or
/// the node, and they are `[point][node]`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Point,
    Node,
}

impl Tables {
    fn new(s: &mut Setting<'_>, name: &str, degree: usize, by: By) -> Self {
        let element = element(s.elements, degree);
        let points = s.elements.rule.points();
        let (tabulation, nodes) = (tabulate(element, &points), element.count());
        let all = points.len();
        let flat = |entry: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
            let pairs = (0..all * nodes).map(|i| match by {
                By::Point => (i % all, i / all),
                By::Node => (i / nodes, i % nodes),
            });
            pairs.map(|(q, b)| entry(q, b)).collect()
        };
        let same = degree == 1 && !s.elements.cell.is_tensor();
        let axes = 0..s.form.dim;
        let constant = same.then(|| {
            let of = |a: usize| (0..nodes).map(|b| tabulation.gradient(0, b)[a]).collect();
            axes.clone().map(of).collect::<Vec<Vec<f64>>>()
        });
        let suffix = if by == By::Point { "" } else { "_t" };
        let values = Entries::Real(flat(&|q, b| tabulation.value(q, b)));
        let value = s.b.spread_table(&format!("{name}_values{suffix}"), values);
        let derivatives = axes.map(|a| {
            let entries = match &constant {
                Some(constant) => constant[a].clone(),
                None => flat(&|q, b| tabulation.gradient(q, b)[a]),
            };
            s.b.spread_table(&format!("{name}_d{a}{suffix}"), Entries::Real(entries))
        });
        let derivatives = derivatives.collect();
        Self { nodes, value, derivatives, constant }
    }

    /// The factor of a node at a point.
    fn load(&self, s: &mut Setting<'_>, part: Part, at: &Index) -> ValueId {
        match part {
            Part::Value => s.b.load_table(self.value, at.clone()),
            Part::Derivative(a) => s.b.load_table(self.derivatives[a], at.clone()),
        }
    }
}

/// A quantity with nodal values: `[component][node][cell]` in shared memory.
struct Held {
    shared: SharedId,
    tables: Tables,
}

/// What is tested at the points: `[number][point][cell]` in shared memory.
struct Tests {
    shared: SharedId,
    /// Numbers a component: a value, a gradient, or both; or all coefficients of the diagonal.
    parts: Vec<Part>,
    tables: Tables,
}

/// Everything that stays the same through a kernel.
pub(super) struct Transposition {
    layout: Layout,
    batches: usize,
    inputs: Vec<Held>,
    /// J⁻¹ and |det J|, and where x is needed the origin and J: `[number][cell]` in shared memory.
    map: Option<SharedId>,
    tests: Option<Tests>,
}

/// Numbers of the map of a cell that are computed once, by one thread; 0 where each point's does it.
fn map_numbers(s: &Setting<'_>) -> usize {
    let dim = s.form.dim;
    let constant = matches!(s.plan.geometry, Geometry::Affine | Geometry::Corners);
    match constant && s.needs_geometry() && s.points() > 1 {
        true if s.needs_x => 1 + dim * dim + dim + dim * dim,
        true => 1 + dim * dim,
        false => 0,
    }
}

/// What a component is tested against.
fn parts(s: &Setting<'_>) -> Vec<Part> {
    let tested: Vec<(bool, bool)> = (0..s.components(0)).map(|c| s.tested(c)).collect();
    let mut parts = Vec::new();
    if tested.iter().any(|tested| tested.0) {
        parts.push(Part::Value);
    }
    if tested.iter().any(|tested| tested.1) {
        parts.extend((0..s.form.dim).map(Part::Derivative));
    }
    parts
}

/// Numbers a point that wait for the integration.
fn tested_numbers(s: &Setting<'_>) -> usize {
    match s.plan.task {
        Task::Residual | Task::Action => s.components(0) * parts(s).len(),
        Task::Diagonal => s.blocks.numbers,
        Task::Linearise | Task::Metric => 0,
    }
}

/// Numbers of a cell in shared memory.
pub(super) fn numbers_of_cell(s: &mut Setting<'_>) -> usize {
    let nodal = |quantity: &Quantity| quantity.components * node_count(s.elements, quantity.degree);
    let inputs: usize = s.quantities.iter().map(nodal).sum();
    inputs + map_numbers(s) + tested_numbers(s) * s.points()
}

fn barrier(s: &mut Setting<'_>) {
    s.b.statement(Statement::Barrier);
}

impl Transposition {
    pub(super) fn new(s: &mut Setting<'_>, layout: Layout, batches: usize) -> Self {
        let cells = layout.cells;
        let mut inputs = Vec::new();
        for quantity in s.quantities.clone() {
            let tables = Tables::new(s, &quantity.name, quantity.degree, By::Point);
            let length = quantity.components * tables.nodes * cells;
            let shared = s.b.shared(&format!("{}_s", quantity.name), length);
            inputs.push(Held { shared, tables });
        }
        let numbers = map_numbers(s);
        let map = (numbers > 0).then(|| s.b.shared("map_s", numbers * cells));
        let numbers = tested_numbers(s) * s.points();
        let tests = (numbers > 0).then(|| {
            let (name, degree) = (s.form.fields[0].name.clone(), s.elements.fields[0]);
            let tables = Tables::new(s, &name, degree, By::Node);
            Tests { shared: s.b.shared("tested_s", numbers * cells), parts: parts(s), tables }
        });
        Self { layout, batches, inputs, map, tests }
    }

    pub(super) fn write(&self, s: &mut Setting<'_>) {
        self.load(s);
        self.maps(s);
        if !self.inputs.is_empty() || self.map.is_some() {
            barrier(s);
        }
        self.evaluate(s);
        if self.tests.is_some() {
            s.b.comment("the transposition");
            barrier(s);
            self.integrate(s);
        }
        let shares = self.map.is_some() || self.tests.is_some() || !self.inputs.is_empty();
        if shares && self.batches > 1 {
            s.b.comment("the next batch must not overtake this one");
            barrier(s);
        }
    }

    /// Entry `at` of a cell.
    fn place(&self, at: &Index, cell: &Index) -> Index {
        &at.times(self.layout.cells) + cell
    }

    /// Nodal values to shared memory.
    fn load(&self, s: &mut Setting<'_>) {
        for (quantity, held) in s.quantities.clone().iter().zip(&self.inputs) {
            s.b.comment(&format!("load {}", quantity.name));
            let digits = Digits::new(&mut s.b, "node", &self.layout, held.tables.nodes);
            digits.each_cell(s, &mut |s, cell| {
                digits.each_item(s, held.tables.nodes, &mut |s, node| {
                    for c in 0..quantity.components {
                        let value = self.gather(s, quantity, held.tables.nodes, &node, c);
                        let at = self.place(&node.plus(c * held.tables.nodes), cell);
                        s.b.statement(Statement::StoreShared(held.shared, at, value));
                    }
                });
            });
        }
    }

    fn gather(
        &self,
        s: &mut Setting<'_>,
        quantity: &Quantity,
        nodes: usize,
        node: &Index,
        c: usize,
    ) -> ValueId {
        let batch = Index::from(s.b.batch());
        let components = quantity.components;
        let entry = &batch.times(nodes * components) + &node.times(components).plus(c);
        if quantity.source == Source::Position {
            return s.b.load_lanes(s.arguments[&Role::Geometry], entry);
        }
        let source = s.arguments[&quantity.source.role()];
        match map_of(s, quantity) {
            (map, Indices::Dofs) => s.b.gather(source, map, entry, (1, 0), true),
            (map, _) => {
                let at = &batch.times(nodes) + node;
                s.b.gather(source, map, at, (components, c), false)
            }
        }
    }

    /// The maps of affine cells to shared memory, one thread a cell.
    fn maps(&self, s: &mut Setting<'_>) {
        let Some(shared) = self.map else { return };
        s.b.comment("the map of each cell");
        let digits = Digits::new(&mut s.b, "of", &self.layout, 1);
        digits.each_cell(s, &mut |s, cell| {
            gather_corners(s);
            let CellGeometry::Constant { k, det, origin, jacobian } = cell_geometry(s) else {
                unreachable!("an affine cell should be constant")
            };
            let mut numbers = vec![det];
            numbers.extend(k.iter().flatten());
            if s.needs_x {
                numbers.extend(&origin);
                numbers.extend(jacobian.iter().flatten());
            }
            for (i, number) in numbers.into_iter().enumerate() {
                let at = self.place(&Index::from(i), cell);
                s.b.statement(Statement::StoreShared(shared, at, number));
            }
        });
    }

    /// The point function, and what comes of it.
    fn evaluate(&self, s: &mut Setting<'_>) {
        s.b.comment("evaluate");
        let digits = Digits::new(&mut s.b, "point", &self.layout, self.layout.points);
        let point = digits.item();
        let still = s.hoisted.clone();
        digits.each_cell(s, &mut |s, cell| {
            s.hoisted = still.clone();
            s.hoist();
            let values = self.interpolate(s, &point, cell);
            let at = self.geometry(s, &values, &point, cell);
            let mut evaluate = |_: &mut Setting<'_>, quantity: usize, c: usize, part: Part| {
                values[quantity].get(c, part)
            };
            if s.plan.task == Task::Diagonal {
                let blocks = s.blocks.clone();
                let pulled = pulled_blocks(s, &at, &point, &mut evaluate);
                for (pulled, (block, first)) in pulled.iter().zip(&blocks.blocks) {
                    for (i, &number) in blocks.numbers_of(block, pulled).iter().enumerate() {
                        self.keep(s, first + i, &point, cell, number);
                    }
                }
                return;
            }
            let tested = at_point(s, &at, &point, &mut evaluate);
            self.keep_tested(s, &tested, &point, cell);
        });
        s.hoisted = still;
    }

    fn keep(&self, s: &mut Setting<'_>, number: usize, q: &Index, cell: &Index, value: ValueId) {
        let Some(tests) = &self.tests else { return };
        let at = self.place(&q.plus(number * self.layout.points), cell);
        s.b.statement(Statement::StoreShared(tests.shared, at, value));
    }

    fn keep_tested(&self, s: &mut Setting<'_>, tested: &[Tested], point: &Index, cell: &Index) {
        let Some(tests) = &self.tests else { return };
        let zero = s.b.constant(0.0);
        for (c, tested) in tested.iter().enumerate() {
            for (i, part) in tests.parts.iter().enumerate() {
                let value = match part {
                    Part::Value => tested.value,
                    Part::Derivative(a) => tested.gradient.get(*a).copied(),
                };
                let number = c * tests.parts.len() + i;
                self.keep(s, number, point, cell, value.unwrap_or(zero));
            }
        }
    }

    /// Values and reference gradients of all quantities at a point.
    fn interpolate(&self, s: &mut Setting<'_>, point: &Index, cell: &Index) -> Vec<Interpolated> {
        let quantities = s.quantities.clone();
        let pairs = quantities.iter().zip(&self.inputs);
        pairs.map(|(quantity, held)| self.interpolate_one(s, quantity, held, point, cell)).collect()
    }

    fn interpolate_one(
        &self,
        s: &mut Setting<'_>,
        quantity: &Quantity,
        held: &Held,
        point: &Index,
        cell: &Index,
    ) -> Interpolated {
        let (dim, nodes) = (s.form.dim, held.tables.nodes);
        let constant = held.tables.constant.as_ref().filter(|_| quantity.gradient);
        let mut parts = Vec::new();
        if quantity.value {
            parts.push(Part::Value);
        }
        if quantity.gradient && constant.is_none() {
            parts.extend((0..dim).map(Part::Derivative));
        }
        let mut found =
            Interpolated { parts: parts.clone(), values: Vec::new(), slopes: Vec::new() };
        if let Some(constant) = constant {
            for c in 0..quantity.components {
                found.slopes.push(self.constant_gradient(s, held, constant, c, cell));
            }
        }
        if parts.is_empty() {
            return found;
        }
        let unroll = s.plan.unroll >= nodes;
        let mut sums = Sums::new(s, &quantity.name, quantity.components * parts.len(), unroll);
        let each = |s: &mut Setting<'_>, node: Index| {
            let at = &node.times(self.layout.points) + point;
            let factors: Vec<ValueId> =
                parts.iter().map(|&part| held.tables.load(s, part, &at)).collect();
            for c in 0..quantity.components {
                let at = self.place(&node.plus(c * nodes), cell);
                let value = s.b.load_shared(held.shared, at);
                for (i, &factor) in factors.iter().enumerate() {
                    sums.add(s, c * parts.len() + i, factor, value);
                }
            }
        };
        repeat(s, "b", nodes, unroll, each);
        found.values = sums.take(s);
        found
    }

    fn constant_gradient(
        &self,
        s: &mut Setting<'_>,
        held: &Held,
        constant: &[Vec<f64>],
        c: usize,
        cell: &Index,
    ) -> Vec<ValueId> {
        let nodes = held.tables.nodes;
        let values: Vec<ValueId> = (0..nodes)
            .map(|node| {
                let at = self.place(&Index::from(c * nodes + node), cell);
                s.b.load_shared(held.shared, at)
            })
            .collect();
        let zero = s.b.constant(0.0);
        let gradient = constant.iter().map(|factors| {
            factors.iter().zip(&values).fold(zero, |sum, (&factor, &value)| {
                let factor = s.b.constant(factor);
                s.b.fma(factor, value, sum)
            })
        });
        gradient.collect()
    }

    /// The geometry at a point.
    fn geometry(
        &self,
        s: &mut Setting<'_>,
        values: &[Interpolated],
        point: &Index,
        cell: &Index,
    ) -> AtPoint {
        if !s.needs_geometry() {
            let weight = s.b.constant(0.0);
            return AtPoint { k: Vec::new(), det: None, weight, x: Vec::new() };
        }
        if s.plan.geometry == Geometry::Stored {
            return stored_geometry(s, point);
        }
        let weights = s.b.spread_table("weights", Entries::Real(s.elements.rule.weights()));
        let weight = s.b.load_table(weights, point.clone());
        match s.plan.geometry {
            Geometry::Vertices => multilinear(s, point, weight),
            Geometry::Nodes(_) => isoparametric(s, values, weight),
            _ => self.affine(s, point, cell, weight),
        }
    }

    fn affine(&self, s: &mut Setting<'_>, point: &Index, cell: &Index, weight: ValueId) -> AtPoint {
        let dim = s.form.dim;
        let (k, det, origin, jacobian) = match self.map {
            None => {
                gather_corners(s);
                let CellGeometry::Constant { k, det, origin, jacobian } = cell_geometry(s) else {
                    unreachable!("an affine cell should be constant")
                };
                (k, det, origin, jacobian)
            }
            Some(shared) => {
                let mut next = 0;
                let mut load = || {
                    next += 1;
                    s.b.load_shared(shared, self.place(&Index::from(next - 1), cell))
                };
                let det = load();
                let mut matrix =
                    || (0..dim).map(|_| (0..dim).map(|_| load()).collect()).collect::<Vec<_>>();
                let k = matrix();
                if s.needs_x {
                    let origin = (0..dim).map(|_| load()).collect();
                    let matrix = (0..dim).map(|_| (0..dim).map(|_| load()).collect()).collect();
                    (k, det, origin, matrix)
                } else {
                    (k, det, Vec::new(), Vec::new())
                }
            }
        };
        let weight = s.b.mul(weight, det);
        let x = if s.needs_x {
            let at = reference_point(s, point);
            affine_point(s, &origin, &jacobian, &at)
        } else {
            Vec::new()
        };
        AtPoint { k, det: None, weight, x }
    }

    /// Basis functions against what the points have left.
    fn integrate(&self, s: &mut Setting<'_>) {
        let Some(tests) = &self.tests else { return };
        let (components, nodes) = (s.components(0), tests.tables.nodes);
        s.b.comment("integrate");
        let digits = Digits::new(&mut s.b, "basis", &self.layout, nodes);
        let node = digits.item();
        let indices = s.plan.indices;
        let target = s.arguments[&Role::Result(0)];
        let map = s.arguments[&Role::Map(Source::Direction(0).owner(), indices)];
        digits.each_cell(s, &mut |s, cell| {
            let sums = match s.plan.task {
                Task::Diagonal => self.diagonal(s, tests, &node, cell),
                _ => self.tested(s, tests, &node, cell),
            };
            let batch = Index::from(s.b.batch());
            s.b.open_when();
            for (c, sum) in sums.into_iter().enumerate() {
                if indices == Indices::Dofs {
                    let entry = node.times(components).plus(c);
                    let at = &batch.times(nodes * components) + &entry;
                    s.b.scatter(target, map, at, (1, 0), true, sum);
                } else {
                    let at = &batch.times(nodes) + &node;
                    s.b.scatter(target, map, at, (components, c), false, sum);
                }
            }
            s.b.close_when_written();
        });
    }

    /// What component by component waits at a point.
    fn waiting(&self, s: &mut Setting<'_>, number: usize, q: &Index, cell: &Index) -> ValueId {
        let shared = self.tests.as_ref().expect("something should be tested").shared;
        let at = self.place(&q.plus(number * self.layout.points), cell);
        s.b.load_shared(shared, at)
    }

    /// Σ_q B f0 + D f1, component by component.
    fn tested(
        &self,
        s: &mut Setting<'_>,
        tests: &Tests,
        node: &Index,
        cell: &Index,
    ) -> Vec<ValueId> {
        let (components, points) = (s.components(0), self.layout.points);
        let (parts, count) = (&tests.parts, tests.parts.len());
        // A derivative that is the same at all points is taken of the sum over the points.
        let constant = tests.tables.constant.is_some();
        let each_part = |part: Part| constant && part != Part::Value;
        let slots = if constant { count } else { 1 };
        let unroll = s.plan.unroll >= points;
        let mut sums = Sums::new(s, "r", components * slots, unroll);
        let one = s.b.constant(1.0);
        repeat(s, "q", points, unroll, |s, q| {
            let at = &q.times(tests.tables.nodes) + node;
            for (i, &part) in parts.iter().enumerate() {
                let factor = if each_part(part) { one } else { tests.tables.load(s, part, &at) };
                for c in 0..components {
                    let value = self.waiting(s, c * count + i, &q, cell);
                    let slot = if constant { c * count + i } else { c };
                    sums.add(s, slot, factor, value);
                }
            }
        });
        let sums = sums.take(s);
        if !constant {
            return sums;
        }
        let mut results = Vec::new();
        for c in 0..components {
            let mut result = s.b.constant(0.0);
            for (i, &part) in parts.iter().enumerate() {
                let sum = sums[c * count + i];
                let factor = if each_part(part) { tests.tables.load(s, part, node) } else { one };
                result = s.b.fma(factor, sum, result);
            }
            results.push(result);
        }
        results
    }

    /// Σ_q of each coefficient times φ_b φ_b and its derivatives.
    fn diagonal(
        &self,
        s: &mut Setting<'_>,
        tests: &Tests,
        node: &Index,
        cell: &Index,
    ) -> Vec<ValueId> {
        let (components, points, dim) = (s.components(0), self.layout.points, s.form.dim);
        let blocks = s.blocks.clone();
        let unroll = s.plan.unroll >= points;
        let mut sums = Sums::new(s, "r", components, unroll);
        let one = s.b.constant(1.0);
        repeat(s, "q", points, unroll, |s, q| {
            let at = &q.times(tests.tables.nodes) + node;
            let derivative = if tests.tables.constant.is_some() { node } else { &at };
            let value = tests.tables.load(s, Part::Value, &at);
            let gradient: Vec<ValueId> =
                (0..dim).map(|a| tests.tables.load(s, Part::Derivative(a), derivative)).collect();
            for &(component, _, block) in &blocks.pairs {
                let (block, first) = &blocks.blocks[block];
                let numbers: Vec<ValueId> =
                    (0..block.numbers(dim)).map(|i| self.waiting(s, first + i, &q, cell)).collect();
                let mut next = numbers.into_iter();
                let pulled =
                    blocks.from_numbers(block, || next.next().expect("numbers should suffice"));
                let mut tested = Tested::default();
                act(&mut s.b, &pulled, Some(value), &gradient, &mut tested);
                let mut sum = s.b.constant(0.0);
                if let Some(flux) = tested.value {
                    sum = s.b.fma(value, flux, sum);
                }
                for (&g, &flux) in gradient.iter().zip(&tested.gradient) {
                    sum = s.b.fma(g, flux, sum);
                }
                sums.add(s, component, one, sum);
            }
        });
        sums.take(s)
    }
}

/// What a quantity is at a point.
struct Interpolated {
    /// The parts of a component, in the order of `values`.
    parts: Vec<Part>,
    /// `[component][part]`
    values: Vec<ValueId>,
    /// `[component][axis]`, where derivatives are the same at all points.
    slopes: Vec<Vec<ValueId>>,
}

impl Interpolated {
    fn get(&self, c: usize, part: Part) -> ValueId {
        if let (Part::Derivative(a), Some(slopes)) = (part, self.slopes.get(c)) {
            return slopes[a];
        }
        let at = self.parts.iter().position(|&known| known == part);
        self.values[c * self.parts.len() + at.expect("the part should have been asked for")]
    }
}

/// Sums that a loop adds to: values where it is written out, else entries of a private array.
struct Sums {
    local: Option<LocalId>,
    values: Vec<ValueId>,
}

impl Sums {
    fn new(s: &mut Setting<'_>, name: &str, count: usize, written_out: bool) -> Self {
        let zero = s.b.constant(0.0);
        let local = (!written_out).then(|| s.b.local(&format!("{name}_sums"), count));
        if let Some(local) = local {
            (0..count).for_each(|i| s.b.store(local, Index::from(i), zero));
        }
        Self { local, values: vec![zero; count] }
    }

    fn add(&mut self, s: &mut Setting<'_>, slot: usize, factor: ValueId, value: ValueId) {
        let Some(local) = self.local else {
            self.values[slot] = s.b.fma(factor, value, self.values[slot]);
            return;
        };
        let sum = s.b.load(local, Index::from(slot));
        let sum = s.b.fma(factor, value, sum);
        s.b.store(local, Index::from(slot), sum);
    }

    fn take(self, s: &mut Setting<'_>) -> Vec<ValueId> {
        match self.local {
            None => self.values,
            Some(local) => {
                (0..self.values.len()).map(|i| s.b.load(local, Index::from(i))).collect()
            }
        }
    }
}

/// Runs `body` for 0 … extent − 1, as a loop or written out.
fn repeat(
    s: &mut Setting<'_>,
    name: &str,
    extent: usize,
    unroll: bool,
    mut body: impl FnMut(&mut Setting<'_>, Index),
) {
    if unroll {
        (0..extent).for_each(|number| body(s, Index::from(number)));
        return;
    }
    let var = s.b.open_loop(name);
    body(s, Index::from(var));
    s.b.close_loop(var, extent);
}

/// Reference coordinates of the thread's point.
fn reference_point(s: &mut Setting<'_>, point: &Index) -> Vec<ValueId> {
    let points = s.elements.rule.points();
    (0..s.form.dim)
        .map(|axis| {
            let entries = points.iter().map(|p| p[axis]).collect();
            let name = ["xi", "eta", "zeta"][axis];
            let table = s.b.spread_table(name, Entries::Real(entries));
            s.b.load_table(table, point.clone())
        })
        .collect()
}

/// A cell with straight edges, from the coefficients of its map.
fn multilinear(s: &mut Setting<'_>, point: &Index, weight: ValueId) -> AtPoint {
    let dim = s.form.dim;
    let at = reference_point(s, point);
    let base = Index::from(s.b.batch()).times(s.geometry_numbers());
    let argument = s.arguments[&Role::Geometry];
    let layer = multilinear_layer(&mut s.b, dim, at.get(2).copied(), |b, mode, i| {
        b.load_lanes(argument, base.plus(mode * dim + i))
    });
    let needs_x = s.needs_x;
    let row = multilinear_row(&mut s.b, &layer, at[1], 0, needs_x);
    multilinear_point(&mut s.b, &row, at[0], weight)
}

/// A curved cell, from the derivatives of its map.
fn isoparametric(s: &mut Setting<'_>, values: &[Interpolated], weight: ValueId) -> AtPoint {
    let dim = s.form.dim;
    let position = s.quantity(Source::Position).expect("geometry should be evaluated");
    let of = |i: usize, part: Part| values[position].get(i, part);
    let column = |a: usize| (0..dim).map(|i| of(i, Part::Derivative(a))).collect::<Vec<_>>();
    let columns: Vec<Vec<ValueId>> = (0..dim).map(column).collect();
    let x = if s.needs_x { (0..dim).map(|i| of(i, Part::Value)).collect() } else { Vec::new() };
    let (k, det) = cofactors(&mut s.b, &columns);
    AtPoint { k, det: Some(det), weight, x }
}
