//! Pairs of tensor cells: q^(d−1) threads for a pair, one for each point of its facet.
//!
//! Cells are rotated so that the facet is ξ₀ = 0. The nodes of the planes ξ₀ = const are the points of the facet, so that
//! nothing is interpolated in them. With the nodes u_i of a line along ξ₀, thread (y, z) has on each side
//!
//! ```text
//! gather       nodes in the order of memory, to shared memory
//! line         face = Σ_i φ_i(0) u_i     slope = Σ_i φ_i'(0) u_i     face to shared memory
//! in plane     lines of the facet: D
//! point        the point function; its fluxes in the plane to shared memory
//! in plane     lines of the facet: Dᵀ
//! line         φ_i(0) (value + Dᵀ fluxes) + φ_i'(0) flux₀ for all i, to shared memory
//! scatter      nodes in the order of memory
//! ```
//!
//! Nodes that follow one another in memory do so along the cell's own first axis, which each side of a pair has elsewhere
//! ([`Role::FirstAxis`]): consecutive threads take them, and exchange them through shared memory. If only the first node
//! of a line has a value on the facet, threads read and write it directly.
//!
//! Lines of all fields, sides and directions in the plane are distributed over the threads of a group. The coefficients
//! of the multilinear maps are in shared memory. Both cells have the same edges on the facet, so that the outside has a
//! column of its Jacobian of its own.

mod layout;
mod map;

use crate::abi::{Indices, KernelAbi, Role, THREADS};
use crate::element::{LinePoints, LineTable};
use crate::kir::{Condition, Index, Kernel, SharedId, ValueId, VarId};
use crate::lower::contract::{Matrix, contract};
use crate::lower::facet_line::{FacetLine, times, weighted};
use crate::lower::facts::{KernelFacts, Quantity, QuantitySource};
use crate::lower::lowering::Lowering;
use crate::lower::point::at_point;
use crate::lower::restrict::NodalLocation;
use crate::lower::stored::TestFactors;
use crate::plan::{Geometry, PlanError, Scatter, Task};
use fem_dsl::point::Part;
use layout::{Layout, PlaneLines, Round};
use map::map_numbers;

/// Numbers of a group in shared memory for lines that are exchanged, unless they are of two components.
const EXCHANGED: usize = 3000;

/// Checks that this strategy supports a plan for pairs.
pub(super) fn check(facts: &KernelFacts<'_>, cells: usize) -> Result<(), PlanError> {
    let KernelFacts { elements, plan, .. } = *facts;
    let refuse = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    let Some(points) = elements.rule.line().filter(|_| elements.cell.is_factorised()) else {
        return refuse("threads share pairs of quadrilaterals and hexahedra");
    };
    if !matches!(plan.task, Task::Residual | Task::Action) {
        return refuse("threads that share a pair of cells compute residuals and products");
    }
    if plan.lanes != 1 || plan.indices != Indices::Nodes {
        return refuse("threads that share pairs take them one by one, by nodes");
    }
    let maps = matches!(plan.geometry, Geometry::Vertices | Geometry::Nodes(_));
    if !maps || plan.larger.is_some() {
        return refuse("threads share pairs of cells of one size, whose maps are given by nodes");
    }
    let fields = facts.written_rows();
    let fields = fields.iter().map(|(field, _)| elements.fields[*field]);
    let read = facts.quantities.iter().filter(|quantity| !quantity.source.is_position());
    let mut all = read.map(|quantity| quantity.element).chain(fields);
    if all.any(|element| !FacetLine::new(points, element, false).values.is_identity()) {
        return refuse("threads that share a pair need nodes at the quadrature points");
    }
    if facts.anything_hangs() {
        return refuse("threads that share a pair have no hanging nodes");
    }
    let mut setting = Lowering::new(facts);
    let pairs = Pairs::new(&mut setting, cells, points);
    let (threads, bytes) = (cells * pairs.members, setting.shared_bytes());
    if threads > THREADS || bytes > plan.shared_bytes {
        let text = format!("{cells} pairs a group would take {threads} threads, {bytes} bytes");
        return Err(PlanError::Unsupported(text));
    }
    Ok(())
}

/// Generates the kernel.
pub(super) fn lower(facts: &KernelFacts<'_>, cells: usize) -> (Kernel, KernelAbi) {
    let mut s = Lowering::new(facts);
    let points = facts.elements.rule.line().expect("the plan should have checked the rule");
    Pairs::new(&mut s, cells, points).write(&mut s);
    s.finish()
}

/// A group of threads and its pairs.
struct Pairs {
    dim: usize,
    q: usize,
    points: LinePoints,
    /// The pair in its group, the point of the thread on its facet, and the coordinates of the point: the first, and the
    /// other one if there is one.
    pair: VarId,
    point: VarId,
    digits: [VarId; 2],
    /// Threads of a pair: points of its facet.
    members: usize,
    shared: SharedId,
    layout: Layout,
    /// The places of the maps among the shared numbers of a pair, and of the lines that are exchanged.
    maps: usize,
    exchanged: usize,
    /// The number of components whose lines are exchanged at once.
    together: usize,
    /// Quantities with derivatives in the plane of the facet.
    curved: Vec<PlaneValues>,
    /// Results that are tested with gradients.
    tested: Vec<PlaneValues>,
    derive: Matrix,
    /// Lines of the facets: as gathered, and as tested.
    lines: [Vec<Round>; 2],
}

/// Values on a facet in shared memory: of a quantity, or of a result.
struct PlaneValues {
    /// Its index among quantities, or its field.
    of: usize,
    components: usize,
    /// The first plane of values.
    face: usize,
    /// The first plane of derivatives, by components, then by axes in the plane.
    derived: usize,
}

/// Values of a quantity at the point of a thread, component by component.
struct Trace {
    face: Vec<ValueId>,
    slope: Vec<ValueId>,
}

impl Pairs {
    fn new(s: &mut Lowering<'_>, cells: usize, points: LinePoints) -> Self {
        let (dim, q) = (s.facts.form.dim, points.count());
        let members = q.pow(dim as u32 - 1);
        s.b.set_threads(cells * members, cells);
        let pair = s.b.thread_var("pair", members, cells);
        let point = s.b.thread_var("point", 1, members);
        let digits = [s.b.thread_var("y", 1, q), s.b.thread_var("z", q, members / q)];
        let (mut curved, mut planes): (Vec<PlaneValues>, usize) = (Vec::new(), 0);
        for (of, quantity) in s.facts.quantities.iter().enumerate() {
            if quantity.gradient && !quantity.source.is_position() {
                let components = quantity.components;
                curved.push(PlaneValues { of, components, face: planes, derived: 0 });
                planes += components;
            }
        }
        // Fluxes of tests overwrite derivatives.
        let derived = planes;
        for values in &mut curved {
            values.derived = planes;
            planes += values.components * (dim - 1);
        }
        let (mut tested, mut next) = (Vec::new(), derived);
        for (of, rows) in s.facts.written_rows() {
            if rows.clone().any(|row| s.facts.tested(row).1) {
                let components = rows.len();
                tested.push(PlaneValues { of, components, face: next, derived: next });
                next += components * (dim - 1);
            }
        }
        let planes = planes.max(next);
        let lines = |values: &[PlaneValues], in_place: bool| -> Vec<PlaneLines> {
            let of = |values: &PlaneValues| {
                let (components, face, derived) = (values.components, values.face, values.derived);
                (0..dim - 1).flat_map(move |axis| {
                    (0..components).map(move |c| {
                        let to = derived + c * (dim - 1) + axis;
                        PlaneLines { from: if in_place { to } else { face + c }, to, axis }
                    })
                })
            };
            values.iter().flat_map(of).collect()
        };
        let lines = [lines(&curved, false), lines(&tested, true)];
        let banks = 128 / s.facts.plan.precision.bytes();
        // With this distance neither lines nor their nodes share banks.
        let node = (members..).find(|node| node % banks == q % banks).unwrap_or(members);
        let exchanged = exchanged_components(s);
        let together = exchanged.min((EXCHANGED / (q * node * cells)).max(2));
        let maps = map_numbers(s);
        let before = |row: usize| planes * row * (members / q) + maps + together * q * node;
        let layout = Layout::new((q, members, cells), node, banks, &lines, before);
        let shared = s.b.shared("facets", (cells * layout.pair).max(1));
        let table = LineTable::new(points, points);
        let derive = Matrix::from_fn(q, q, |a, b| table.derivative(a, b));
        let lines = lines.map(|lines| layout.rounds((q, members, cells), &lines, &mut s.b));
        let maps = planes * layout.plane;
        let exchanged = maps + map_numbers(s);
        Self {
            dim,
            q,
            points,
            pair,
            point,
            digits,
            members,
            shared,
            layout,
            maps,
            exchanged,
            together,
            curved,
            tested,
            derive,
            lines,
        }
    }

    fn write(&self, s: &mut Lowering<'_>) {
        s.gathered();
        self.stage_maps(s);
        let traces = self.gather(s);
        if !self.curved.is_empty() || map_numbers(s) > 0 {
            s.b.barrier();
        }
        if !self.curved.is_empty() {
            s.b.comment("differentiate in the plane");
            self.along(s, &self.lines[0], &self.derive);
            s.b.barrier();
        }
        s.b.comment("points");
        let at = self.geometry(s);
        let point = Index::from(self.point);
        let tested = at_point(s, &at, &point, &mut |s, quantity, c, part| {
            let trace = &traces[quantity];
            match part {
                Part::Value => trace.face[c],
                Part::Derivative(0) => trace.slope[c],
                Part::Second(..) => {
                    unreachable!("second derivatives have one lane or thread a cell")
                }
                Part::Exterior(_) => unreachable!("the pull-back replaces exterior derivatives"),
                Part::Derivative(axis) => {
                    let planes = self.curved.iter().find(|values| values.of == quantity);
                    let planes = planes.expect("a gradient should be evaluated where it is read");
                    s.b.load_shared(self.shared, self.derived(planes, c, axis))
                }
            }
        });
        for values in &self.tested {
            let rows = s.facts.rows_of(values.of);
            for (c, tested) in tested[rows].iter().enumerate() {
                for axis in 1..self.dim {
                    let flux = tested.gradient.get(axis).copied();
                    let flux = flux.unwrap_or_else(|| s.b.constant(0.0));
                    s.b.store_shared(self.shared, self.derived(values, c, axis), flux);
                }
            }
        }
        if !self.tested.is_empty() {
            s.b.barrier();
            s.b.comment("integrate in the plane");
            self.along(s, &self.lines[1], &self.derive.transposed());
            s.b.barrier();
        }
        self.scatter(s, &tested);
    }

    /// Returns the place of a number of the thread's pair in shared memory.
    fn place(&self, number: usize) -> Index {
        Index::from(self.pair).times(self.layout.pair).plus(number)
    }

    /// Returns the place of the thread's point in a plane.
    fn in_plane(&self, plane: usize) -> Index {
        let [y, z] = self.digits;
        let row = &Index::from(y) + &Index::from(z).times(self.layout.row);
        &self.place(plane * self.layout.plane) + &row
    }

    /// Returns the place of the derivative along an axis of the plane, 1 or 2, at the point of the thread.
    fn derived(&self, values: &PlaneValues, component: usize, axis: usize) -> Index {
        self.in_plane(values.derived + component * (self.dim - 1) + axis - 1)
    }

    /// Gathers the thread's line of each quantity, with lines of several components exchanged at once.
    fn gather(&self, s: &mut Lowering<'_>) -> Vec<Trace> {
        let quantities = s.facts.quantities.clone();
        let none = |_: &Quantity| Trace { face: Vec::new(), slope: Vec::new() };
        let mut traces: Vec<Trace> = quantities.iter().map(none).collect();
        let mut exchanged = Vec::new();
        for (index, quantity) in quantities.iter().enumerate() {
            if quantity.source.is_position() {
                continue;
            }
            if s.facts.by_rows(quantity.source) {
                exchanged.extend((0..quantity.components).map(|c| (index, c)));
                continue;
            }
            s.b.comment(&format!("gather {}", quantity.name));
            let line = FacetLine::new(self.points, quantity.element, false);
            let nodal = NodalLocation::of(s, quantity);
            let by_lines = s.facts.slowest_axis(quantity.source).is_some();
            let nodes = self.own_nodes(s, line.n, by_lines);
            for c in 0..quantity.components {
                let values: Vec<ValueId> = nodes[..reach(quantity, &line)]
                    .iter()
                    .map(|node| nodal.gather(&mut s.b, node, c))
                    .collect();
                self.evaluate(s, (index, c), &line, &values, &mut traces[index]);
            }
        }
        for (round, some) in exchanged.chunks(self.together.max(1)).enumerate() {
            if round > 0 {
                s.b.barrier();
            }
            // All are loaded before any is stored.
            let loaded: Vec<Vec<ValueId>> = some
                .iter()
                .map(|&(index, c)| {
                    let quantity = &quantities[index];
                    s.b.comment(&format!("gather {}", quantity.name));
                    let nodal = NodalLocation::of(s, quantity);
                    let nodes = self.row(s, nodal);
                    nodes.into_iter().map(|node| nodal.gather_at(&mut s.b, node, c)).collect()
                })
                .collect();
            for (place, (&(index, _), values)) in some.iter().zip(&loaded).enumerate() {
                self.each_order(s, quantities[index].source, None, |s, places| {
                    for (&value, at) in values.iter().zip(places) {
                        s.b.store_shared(self.shared, &self.exchange(place) + at, value);
                    }
                });
            }
            s.b.barrier();
            for (place, &(index, c)) in some.iter().enumerate() {
                let line = FacetLine::new(self.points, quantities[index].element, false);
                let values = self.own_line(place);
                let values: Vec<ValueId> =
                    values.into_iter().map(|at| s.b.load_shared(self.shared, at)).collect();
                self.evaluate(s, (index, c), &line, &values, &mut traces[index]);
            }
        }
        traces
    }

    /// Evaluates a component of a quantity at the thread's point from its line of nodes.
    fn evaluate(
        &self,
        s: &mut Lowering<'_>,
        (index, c): (usize, usize),
        line: &FacetLine,
        values: &[ValueId],
        trace: &mut Trace,
    ) {
        let face = weighted(&mut s.b, &line.ends, values);
        trace.face.push(face);
        if let Some(planes) = self.curved.iter().find(|values| values.of == index) {
            trace.slope.push(weighted(&mut s.b, &line.slopes, values));
            s.b.store_shared(self.shared, self.in_plane(planes.face + c), face);
        }
    }

    /// Returns the nodes of the thread's line, in the order of an index array or of a cell's own nodes.
    fn own_nodes(&self, s: &Lowering<'_>, n: usize, by_lines: bool) -> Vec<Index> {
        let cell = Index::from(s.b.batch()).times(n * self.members);
        let point = Index::from(self.point);
        let (start, step) = match by_lines {
            true => (&cell + &point, self.members),
            false => (&cell + &point.times(n), 1),
        };
        (0..n).map(|i| start.plus(i * step)).collect()
    }

    /// Loads the indices of the nodes that the thread accesses in the order of memory.
    fn row(&self, s: &mut Lowering<'_>, nodal: NodalLocation) -> Vec<VarId> {
        let nodes = self.own_nodes(s, self.q, true).into_iter();
        let index = |node: Index| nodal.index(&mut s.b, &node);
        nodes.map(index).collect::<Option<_>>().expect("rows should be addressed by nodes")
    }

    /// Returns the beginning of the lines that are exchanged `place`-th.
    fn exchange(&self, place: usize) -> Index {
        self.place(self.exchanged + place * self.q * self.layout.node)
    }

    /// Returns the places of the thread's line among those that are exchanged.
    fn own_line(&self, place: usize) -> Vec<Index> {
        let start = &self.exchange(place) + &Index::from(self.point);
        (0..self.q).map(|i| start.plus(i * self.layout.node)).collect()
    }

    /// Runs `body` with the places, in the lines that are exchanged, of the nodes of a trace that the thread accesses in
    /// the order of memory: for each axis that may be the first one of the cell itself, in threads with a condition.
    fn each_order(
        &self,
        s: &mut Lowering<'_>,
        source: QuantitySource,
        only: Option<Condition>,
        body: impl Fn(&mut Lowering<'_>, &[Index]),
    ) {
        let (n, node) = (self.q, self.layout.node);
        let argument = s.arguments[&Role::FirstAxis(s.facts.side_of(source))];
        let batch = Index::from(s.b.batch());
        let axis = s.b.load_index("axis", argument, &batch);
        let [y, z] = self.digits.map(Index::from);
        for first in 0..self.dim {
            let start = match first {
                0 => &y.times(node) + &z,
                1 => Index::from(self.point),
                _ => &y.times(n) + &z,
            };
            let step = if first == 0 { self.members / n } else { node };
            let places: Vec<Index> = (0..n).map(|i| start.plus(i * step)).collect();
            s.b.open_when();
            body(s, &places);
            let conditions = [Some(Condition::Equals(axis, first as u32)), only.clone()];
            s.b.close_when(conditions.into_iter().flatten().collect());
        }
    }

    /// Applies a matrix along lines of the facets.
    fn along(&self, s: &mut Lowering<'_>, rounds: &[Round], matrix: &Matrix) {
        let even_odd = s.facts.plan.even_odd;
        for round in rounds {
            s.b.open_when();
            let entry =
                |start: VarId, at: usize| &Index::from(start) + &Index::from(round.step).times(at);
            let line: Vec<ValueId> =
                (0..self.q).map(|at| s.b.load_shared(self.shared, entry(round.from, at))).collect();
            let line = contract(&mut s.b, matrix, &line, None, even_odd);
            for (at, &value) in line.iter().enumerate() {
                s.b.store_shared(self.shared, entry(round.to, at), value);
            }
            let member = s.b.member();
            let all = round.count == s.b.members();
            let conditions = (!all).then_some(Condition::Below(member, round.count));
            s.b.close_when(conditions.into_iter().collect());
        }
    }

    /// Adds the results of the thread's point to its line of nodes, with lines of several components exchanged at once.
    fn scatter(&self, s: &mut Lowering<'_>, tested: &[TestFactors]) {
        let stores = s.facts.plan.scatter == Scatter::Owner;
        // These entries have the order of the rotated cell.
        let in_order = stores || s.facts.plan.one_sided;
        let mut exchanged = Vec::new();
        for (field, rows) in s.facts.written_rows() {
            if !in_order && s.facts.by_rows(QuantitySource::Direction(field)) {
                exchanged.extend(rows.enumerate().map(|(c, row)| (field, c, row)));
                continue;
            }
            s.comment_on("scatter", field);
            let nodal = NodalLocation::result(s, field);
            let nodes = self.own_nodes(s, self.q, !in_order);
            for (c, row) in rows.enumerate() {
                let line = self.results(s, (field, c), &tested[row], stores);
                for (node, &value) in nodes.iter().zip(&line) {
                    nodal.scatter(&mut s.b, node, c, value);
                }
            }
        }
        for (round, some) in exchanged.chunks(self.together.max(1)).enumerate() {
            if round > 0 {
                s.b.barrier();
            }
            for (place, &(field, c, row)) in some.iter().enumerate() {
                let line = self.results(s, (field, c), &tested[row], true);
                for (at, &value) in self.own_line(place).into_iter().zip(&line) {
                    s.b.store_shared(self.shared, at, value);
                }
            }
            s.b.barrier();
            for (place, &(field, c, _)) in some.iter().enumerate() {
                s.comment_on("scatter", field);
                let nodal = NodalLocation::result(s, field);
                let nodes = self.row(s, nodal);
                let active = Some(Condition::Active);
                self.each_order(s, QuantitySource::Direction(field), active, |s, places| {
                    for (&node, at) in nodes.iter().zip(places) {
                        let value = s.b.load_shared(self.shared, &self.exchange(place) + at);
                        nodal.scatter_at(&mut s.b, node, c, value);
                    }
                });
            }
        }
    }

    /// Returns the results of a component on the thread's line: of all its nodes, or of those with a value on the facet.
    fn results(
        &self,
        s: &mut Lowering<'_>,
        (field, c): (usize, usize),
        tested: &TestFactors,
        all: bool,
    ) -> Vec<ValueId> {
        let line = FacetLine::new(self.points, s.facts.elements.fields[field], false);
        let planes = self.tested.iter().find(|values| values.of == field);
        let mut face = tested.value;
        for axis in 1..self.dim {
            let Some(planes) = planes.filter(|_| !tested.gradient.is_empty()) else { break };
            let flux = s.b.load_shared(self.shared, self.derived(planes, c, axis));
            face = Some(face.map_or(flux, |face| s.b.add(face, flux)));
        }
        let slope = tested.gradient.first().copied();
        let reach = if slope.is_some() || all { line.n } else { line.reach() };
        let of = |i: usize| {
            let value = match face.filter(|_| line.ends[i] != 0.0) {
                Some(face) => times(&mut s.b, line.ends[i], face),
                None => s.b.constant(0.0),
            };
            let Some(slope) = slope else { return value };
            let factor = s.b.constant(line.slopes[i]);
            s.b.fma(factor, slope, value)
        };
        (0..reach).map(of).collect()
    }
}

/// Returns the number of nodes of a line with a part in a quantity.
fn reach(quantity: &Quantity, line: &FacetLine) -> usize {
    if quantity.gradient { line.n } else { line.reach() }
}

/// Returns the number of components whose lines of nodes the threads exchange: of inputs, or of results.
fn exchanged_components(s: &Lowering<'_>) -> usize {
    let facts = s.facts;
    let inputs = facts.quantities.iter().filter(|quantity| facts.by_rows(quantity.source));
    let results = facts.written_rows().into_iter();
    let results = results.filter(|(field, _)| facts.by_rows(QuantitySource::Direction(*field)));
    let inputs: usize = inputs.map(|quantity| quantity.components).sum();
    inputs.max(results.map(|(_, rows)| rows.len()).sum())
}
