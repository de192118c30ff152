//! `thread_per_line`: q^(d−1) threads of a GPU work on a tensor cell, each on one whole line a phase.
//!
//! With n nodes and q points a direction, in three dimensions, thread (i, j) of a cell first gathers
//! column (x, y) = (i, j), then the group's rows are dealt among its threads:
//!
//! ```text
//! gather   columns: n nodes, B in z, to shared memory
//! x, y     rows along x: B;  rows along y: B, and D at once
//! x        rows along x: D
//! column   (i, j): D in z in registers, the point function at q points, Dᵀ in z
//! x, y     the way back: Dᵀ, then Bᵀ
//! scatter  columns: Bᵀ in z, atomic additions
//! ```
//!
//! In two dimensions the rows along x do what those along y do here. Where nodes and points coincide,
//! gathering and scattering are done by the rows along y, and the interpolations vanish. Where no
//! gradient is read or tested (a mass matrix), unknowns are gathered by rows along y, and a column
//! interpolates, evaluates and integrates without leaving its registers.
//!
//! All 1D matrices are literals; a thread reads and writes each entry of its line once a phase. The
//! coefficients of a multilinear map go to shared memory once a cell. Rows are dealt so that threads
//! fall into different banks (`layout`). The measurements behind this: the `thread_per_line` rows of
//! `wf bench --backend cuda`.

mod column;
mod diagonal;
mod layout;
mod phases;

use super::factors::{Factors, factors};
use super::setting::{Setting, Source};
use crate::abi::{Indices, KernelAbi, THREADS};
use crate::element::{LinePoints, LineTable};
use crate::kir::build::Builder;
use crate::kir::{Entries, Index, Kernel, SharedId, Statement, TableId, ValueId, VarId};
use crate::lower::contract::Matrix;
use crate::plan::{self, Elements, Geometry, Plan, PlanError, Task};
use fem_dsl::point::{Location, PointForm};
use layout::{Layout, Traffic};
use std::collections::BTreeMap;

/// Cells of a group that do well: groups of 64 to 130 threads, or 245.
pub fn cells(form: &PointForm, elements: &Elements) -> usize {
    let q = elements.rule.line().map_or(1, LinePoints::count);
    let collocated = elements.collocated(elements.fields[0]);
    match (elements.cell.dim(), q) {
        (2, _) => (128 / q).max(1),
        (_, 0..=3) => 8,
        (_, 4) if plan::is_flat(form) => 6,
        (_, 4) => 4,
        (_, 5) => 5,
        (_, 7) if !collocated => 5,
        (_, 6 | 7) => 3,
        _ => 1,
    }
}

/// Groups that a processor is to hold. A thread needs about 64 registers where there are no gradients,
/// 80 up to 6 points a direction, more above, and 2 for each point of its column and each further
/// component, of the field or of a curved map. A processor has four parts of 16384 registers, which take whole warps.
pub fn residency(form: &PointForm, elements: &Elements, plan: &Plan, cells: usize) -> usize {
    let q = elements.rule.line().map_or(1, LinePoints::count);
    let setting = Setting::new(form, elements, plan);
    let one = match (setting.is_flat(), elements.collocated(elements.fields[0]), q) {
        (true, _, 4) => 56,
        (true, _, _) => 64,
        (false, false, 9) => 88,
        (false, true, 7) | (false, _, 8..) => 96,
        (false, _, _) => 80,
    };
    let position = setting.quantity(Source::Position).map_or(0, |_| form.dim);
    let wanted = match plan.task {
        // Its coefficients wait in registers.
        Task::Diagonal => 168,
        _ => (one + 2 * q * (setting.components(0) - 1 + position)).min(168),
    };
    let warps = (cells * q.pow(form.dim as u32 - 1)).div_ceil(32);
    let registers = |groups: usize| 16384 / (32 * (groups * warps).div_ceil(4)) / 8 * 8;
    (1..=32).rev().find(|&groups| registers(groups) >= wanted).unwrap_or(1)
}

/// Whether this strategy can do a plan.
pub(crate) fn check(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    cells: usize,
) -> Result<(), PlanError> {
    let refuse = |text: String| Err(PlanError::Unsupported(text));
    let Some(line) = elements.rule.line().filter(|_| elements.cell.is_tensor()) else {
        return refuse("a thread a line works on quadrilaterals and hexahedra".to_owned());
    };
    if plan.lanes != 1 || plan.indices == Indices::Runs {
        return refuse("a thread a line takes cells one by one, and nodes or unknowns".to_owned());
    }
    if plan.geometry == Geometry::Corners {
        return refuse("a thread a line does not gather corners".to_owned());
    }
    let q = line.count();
    let nodal =
        form.aux.iter().zip(&elements.aux).filter_map(|(aux, degree)| {
            matches!(aux.location, Location::Nodes(_)).then_some(*degree)
        });
    let fields = elements.fields.iter().map(|&degree| Some(degree));
    let map = match plan.geometry {
        Geometry::Nodes(order) => Some(order),
        _ => None,
    };
    let mut degrees = fields.chain(nodal).chain([map]);
    if degrees.any(|degree| degree.is_some_and(|degree| degree + 1 > q)) {
        return refuse("a thread a line needs as many points as nodes a direction".to_owned());
    }
    let threads = cells * q.pow(form.dim as u32 - 1);
    if threads > THREADS {
        return refuse(format!("{cells} cells a group would take {threads} threads"));
    }
    let mut setting = Setting::new(form, elements, plan);
    Group::new(&mut setting, cells);
    let bytes = setting.shared_bytes();
    if bytes > plan.shared_bytes {
        return refuse(format!("{cells} cells a group would take {bytes} bytes of shared memory"));
    }
    Ok(())
}

/// Writes the kernel.
pub(super) fn lower(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
    cells: usize,
) -> (Kernel, KernelAbi) {
    let mut setting = Setting::new(form, elements, plan);
    let group = Group::new(&mut setting, cells);
    let declared = setting.shared_bytes();
    group.write(&mut setting);
    debug_assert_eq!(declared, setting.shared_bytes(), "what is shared should be known at first");
    setting.finish()
}

/// A quantity, or the result, in shared memory.
struct Held {
    factors: Factors,
    components: usize,
    /// Values.
    value: SharedId,
    /// Derivatives along all axes but the last.
    slopes: Option<Vec<SharedId>>,
}

impl Held {
    fn identity(&self) -> bool {
        self.factors.interpolate.is_identity()
    }
}

/// A row of points that a thread takes in a phase.
#[derive(Clone)]
struct Row {
    /// Its first point.
    start: Index,
    /// From a point to the next.
    stride: usize,
    /// The number of the thread, where only the threads below a bound have a row.
    below: Option<(VarId, usize)>,
}

/// A line of nodes that a thread gathers or scatters.
#[derive(Clone)]
struct NodalLine {
    row: Row,
    /// The variable of its cell's batch.
    batch: VarId,
    /// Its coordinates along the other axes.
    digits: Vec<VarId>,
}

/// Everything that stays the same through a kernel: a group of threads and its cells.
struct Group {
    dim: usize,
    layout: Layout,
    /// The cell in its group, the digits of the thread in its cell, the thread itself.
    cell: VarId,
    digits: Vec<VarId>,
    /// Whether these digits are those of the thread's number; columns of single cells may be dealt.
    in_order: bool,
    thread: VarId,
    /// The number of the thread in its cell, and how many there are.
    member: VarId,
    members: usize,
    derive: Matrix,
    line: LinePoints,
    points: TableId,
    weights: TableId,
    inputs: Vec<Held>,
    /// What is added to the result; none where numbers are stored at the points.
    result: Option<Held>,
    /// Whether no gradient is read or tested.
    flat: bool,
    /// Coefficients of the multilinear map, cell by cell.
    modes: Option<SharedId>,
    /// Rows along an axis with the first other axis bounded.
    rows: BTreeMap<(usize, usize), Row>,
    /// Lines of nodes, by the nodes a direction.
    nodal: BTreeMap<usize, NodalLine>,
}

impl Group {
    fn new(s: &mut Setting<'_>, cells: usize) -> Self {
        let line = s.elements.rule.line().expect("the plan should have checked the rule");
        let (q, dim) = (line.count(), s.form.dim);
        let members = q.pow(dim as u32 - 1);
        s.b.set_threads(cells * members, cells);
        let cell = s.b.thread_var("cell", members, cells);
        let thread = s.b.thread_var("t", 1, cells * members);
        let member = s.b.thread_var("m", 1, members);
        let table = LineTable::new(line, line);
        let derive = Matrix::from_fn(q, q, |a, b| table.derivative(a, b));
        let points = s.b.spread_table("points", Entries::Real(line.points()));
        let weights = s.b.spread_table("weights", Entries::Real(line.weights()));
        let flat = s.is_flat();
        let factors_of_result = factors(line, s.elements.fields[0]);
        let collocated = factors_of_result.interpolate.is_identity();
        let traffic = traffic(dim, (factors_of_result.n, q), cells == 1, (flat, collocated));
        let layout = Layout::new((dim, q), cells, s.plan.precision.bytes(), &traffic);
        let names = &["i", "j"][..dim - 1];
        let lists = layout.deal_digits(dim - 1, &vec![q; dim - 1]);
        let in_order = lists.is_none();
        let digits = match lists {
            Some(lists) => listed(&mut s.b, names, lists, members),
            None => {
                let powers = [1, q].into_iter().zip(names);
                powers.map(|(divisor, name)| s.b.thread_var(name, divisor, q)).collect()
            }
        };
        let length = |components: usize| components * layout.length();
        let axes = &["x", "y"][..dim - 1];
        let mut inputs = Vec::new();
        for quantity in s.quantities.clone() {
            let length = length(quantity.components);
            let name = &quantity.name;
            let value = s.b.shared(&format!("{name}_s"), length);
            let along = |axis: &&str| s.b.shared(&format!("{name}_{axis}"), length);
            let slopes = quantity.gradient.then(|| axes.iter().map(along).collect());
            let factors = factors(line, quantity.degree);
            inputs.push(Held { factors, components: quantity.components, value, slopes });
        }
        let length = length(s.components(0));
        let result = s.has_result().then(|| held_result(s, &inputs, factors_of_result, length));
        let modes = (s.plan.geometry.is_multilinear() && s.needs_geometry())
            .then(|| s.b.shared("modes", cells * mode_stride(s)));
        let rows = BTreeMap::new();
        let mut group = Self {
            dim,
            layout,
            cell,
            digits,
            in_order,
            thread,
            member,
            members,
            derive,
            line,
            points,
            weights,
            inputs,
            result,
            flat,
            modes,
            rows,
            nodal: BTreeMap::new(),
        };
        group.deal(&mut s.b);
        group
    }

    /// The axis along which unknowns are gathered where they are not interpolated, and derivatives
    /// are taken right after the interpolation: the one before the last.
    fn turn(&self) -> usize {
        self.dim - 2
    }

    /// Declares the rows of all phases.
    fn deal(&mut self, b: &mut Builder) {
        let (q, cube) = (self.layout.q, self.dim == 3);
        let all = || self.inputs.iter().chain(&self.result);
        let mut wanted = std::collections::BTreeSet::new();
        for held in all().filter(|held| !held.identity()) {
            wanted.extend(cube.then_some((0, held.factors.n)));
            wanted.extend((!self.flat).then_some((self.turn(), q)));
        }
        wanted.extend((cube && all().any(|held| held.slopes.is_some())).then_some((0, q)));
        for (axis, bound) in wanted {
            let mut extents = vec![q; self.dim - 1];
            if cube && axis == 0 {
                // Of the axes y and z, the one that has not been interpolated yet is bounded.
                extents[usize::from(self.flat)] = bound;
            }
            let lines = self.layout.deal(axis, &extents);
            let row = self.row_of(b, axis, &extents, &lines);
            self.rows.insert((axis, bound), row);
        }
        // The first threads of the group take the lines of nodes of all its cells.
        let counts: BTreeMap<usize, bool> =
            all().map(|held| (held.factors.n, held.identity())).collect();
        for (n, identity) in counts {
            let line = self.nodal_line(b, self.line_axis(identity), n);
            self.nodal.insert(n, line);
        }
    }

    /// The axis of the lines of nodes that the first threads of a group take.
    fn line_axis(&self, identity: bool) -> usize {
        if self.flat || identity { self.turn() } else { self.dim - 1 }
    }

    /// The same of the nodes of a quantity, or of the result.
    fn nodal_axis(&self, held: &Held) -> usize {
        self.line_axis(held.identity())
    }

    fn nodal_line(&self, b: &mut Builder, axis: usize, n: usize) -> NodalLine {
        let (extents, lines) = (vec![n; self.dim - 1], n.pow(self.dim as u32 - 1));
        let single = self.layout.cells == 1;
        let (start, digits) = if n == self.layout.q && self.in_order {
            (self.own(axis), self.digits.clone())
        } else {
            self.digits_of(b, axis, &extents)
        };
        let count = self.layout.cells * lines;
        let below = (lines < self.members).then_some((self.thread, count));
        let whole = single || lines == self.members;
        let batch = if whole { b.batch() } else { b.batch_var("batch_of", lines) };
        let row = Row { start, stride: self.layout.strides[axis], below };
        NodalLine { row, batch, digits }
    }

    fn row_of(
        &self,
        b: &mut Builder,
        axis: usize,
        extents: &[usize],
        lines: &layout::Lines,
    ) -> Row {
        let threads = self.layout.cells * self.members;
        let (stride, count) = (self.layout.strides[axis], lines.starts.len());
        let below = (count < threads).then_some((self.thread, count));
        if lines.in_order {
            // Dealt columns are in another order than these lines.
            let own = count == threads && self.in_order;
            let start = if own { self.own(axis) } else { self.digits_of(b, axis, extents).0 };
            return Row { start, stride, below };
        }
        let mut starts: Vec<u32> = lines.starts.iter().map(|&start| start as u32).collect();
        starts.resize(threads, starts.last().copied().unwrap_or(0));
        let start = b.listed_var("row", starts);
        Row { start: Index::from(start), stride, below }
    }

    /// The first point of the thread's own line along an axis.
    fn own(&self, axis: usize) -> Index {
        &Index::from(self.cell).times(self.layout.cell) + &self.through(axis, &self.digits)
    }

    /// The first point of the line along an axis that has these coordinates on the others, in its cell.
    fn through(&self, axis: usize, digits: &[VarId]) -> Index {
        let other = (0..self.dim).filter(|&other| other != axis);
        other.zip(digits).fold(Index::default(), |start, (other, &digit)| {
            &start + &Index::from(digit).times(self.layout.strides[other])
        })
    }

    /// The first point of the line whose number among all with these extents is the thread's, and
    /// the digits of that number but the cell.
    fn digits_of(&self, b: &mut Builder, axis: usize, extents: &[usize]) -> (Index, Vec<VarId>) {
        let other = (0..self.dim).filter(|&other| other != axis);
        let (mut start, mut divisor) = (Index::default(), 1);
        let mut digits = Vec::new();
        for (other, &extent) in other.zip(extents) {
            let digit = b.thread_var("k", divisor, extent);
            digits.push(digit);
            start = &start + &Index::from(digit).times(self.layout.strides[other]);
            divisor *= extent;
        }
        let cell = b.thread_var("k", divisor, self.layout.cells);
        (&start + &Index::from(cell).times(self.layout.cell), digits)
    }

    /// Runs `body` in the threads that have a row of [`Group::rows`].
    fn in_rows(
        &self,
        s: &mut Setting<'_>,
        key: (usize, usize),
        body: impl FnOnce(&mut Setting<'_>, &Row),
    ) {
        self.in_row(s, &self.rows[&key], body);
    }

    /// Runs `body` in the threads that have this row.
    fn in_row(&self, s: &mut Setting<'_>, row: &Row, body: impl FnOnce(&mut Setting<'_>, &Row)) {
        match row.below {
            None => body(s, row),
            Some(below) => {
                s.b.open_when();
                body(s, row);
                s.b.close_when(vec![below]);
            }
        }
    }

    /// The thread's own line along an axis.
    fn own_row(&self, axis: usize) -> Row {
        Row { start: self.own(axis), stride: self.layout.strides[axis], below: None }
    }

    /// Entry `at` of a row of a component.
    fn place(&self, row: &Row, component: usize, at: usize) -> Index {
        row.start.plus(at * row.stride + component * self.layout.length())
    }

    /// The first `count` entries of a row.
    fn load(
        &self,
        b: &mut Builder,
        array: SharedId,
        row: &Row,
        component: usize,
        count: usize,
    ) -> Vec<ValueId> {
        (0..count).map(|at| b.load_shared(array, self.place(row, component, at))).collect()
    }

    fn store(
        &self,
        b: &mut Builder,
        array: SharedId,
        row: &Row,
        component: usize,
        values: &[ValueId],
    ) {
        for (at, &value) in values.iter().enumerate() {
            b.statement(Statement::StoreShared(array, self.place(row, component, at), value));
        }
    }
}

/// Where the result lies, `length` numbers an array: in the arrays of the direction or the state, whose lines a
/// thread has read before it writes.
fn held_result(s: &mut Setting<'_>, inputs: &[Held], factors: Factors, length: usize) -> Held {
    let components = s.components(0);
    let tested = (0..components).any(|component| s.tested(component).1);
    let own = [Source::Direction(0), Source::State(0)];
    let own = own.iter().find_map(|&source| s.quantity(source));
    let value = match own {
        Some(own) => inputs[own].value,
        None => s.b.shared("r_s", length),
    };
    let axes = &["x", "y"][..s.form.dim - 1];
    let slopes = tested.then(|| match own.and_then(|own| inputs[own].slopes.clone()) {
        Some(known) => known,
        None => axes.iter().map(|axis| s.b.shared(&format!("r_{axis}"), length)).collect(),
    });
    Held { factors, components, value, slopes }
}

/// Variables that are listed for each thread, one for each list; threads beyond repeat the last.
fn listed(b: &mut Builder, names: &[&str], lists: Vec<Vec<usize>>, threads: usize) -> Vec<VarId> {
    let var = |(name, list): (&&str, Vec<usize>)| {
        let mut positions: Vec<u32> = list.into_iter().map(|at| at as u32).collect();
        positions.resize(threads, positions.last().copied().unwrap_or(0));
        b.listed_var(name, positions)
    };
    names.iter().zip(lists).map(var).collect()
}

/// What the phases do to shared memory, with n nodes and q points a direction; columns may be dealt
/// where a group has a `single` cell, but not lines of nodes, whose neighbours are neighbours in memory.
fn traffic(
    dim: usize,
    (n, q): (usize, usize),
    single: bool,
    (flat, collocated): (bool, bool),
) -> Vec<Traffic> {
    let rows = |axis: usize, extents: &[usize], accesses: usize, dealt: bool| Traffic {
        axis,
        extents: extents[..dim - 1].to_vec(),
        accesses,
        dealt,
    };
    match (dim, flat, collocated) {
        (2, true, _) => vec![rows(0, &[n], 2 * q, false), rows(1, &[q], 2 * n, single)],
        (2, false, true) => vec![rows(0, &[q], 4 * q, false), rows(1, &[q], 4 * q, single)],
        (2, false, false) => vec![
            rows(1, &[n], 2 * q, false),
            rows(0, &[q], 2 * n + 4 * q, true),
            rows(1, &[q], 4 * q, single),
        ],
        (_, true, _) => vec![
            rows(1, &[n, n], 2 * q, false),
            rows(0, &[q, n], 2 * (n + q), true),
            rows(2, &[q, q], 2 * n, single),
        ],
        (_, false, true) => vec![
            rows(1, &[q, q], 4 * q, false),
            rows(0, &[q, q], 5 * q, true),
            rows(2, &[q, q], 6 * q, single),
        ],
        (_, false, false) => vec![
            rows(2, &[n, n], 2 * q, false),
            rows(0, &[n, q], 2 * (n + q), true),
            rows(1, &[q, q], 2 * n + 4 * q, true),
            rows(0, &[q, q], 5 * q, true),
            rows(2, &[q, q], 6 * q, single),
        ],
    }
}

/// Coefficients a cell in shared memory: an even number, so that two can be read at once.
fn mode_stride(s: &Setting<'_>) -> usize {
    (s.geometry_numbers() - first_mode(s)).next_multiple_of(2)
}

/// The image of the origin is needed for coordinates only.
fn first_mode(s: &Setting<'_>) -> usize {
    if s.needs_x { 0 } else { s.form.dim }
}

fn barrier(s: &mut Setting<'_>) {
    s.b.statement(Statement::Barrier);
}
