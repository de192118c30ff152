//! `thread_per_line`: q^(d−1) threads of a GPU process a tensor cell, each one whole line per phase.
//!
//! With n nodes and q points per direction, in three dimensions, thread (i, j) of a cell first gathers column (x, y) =
//! (i, j); then the group's rows are distributed over its threads:
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
//! In two dimensions the rows along x replace those along y. If nodes and points coincide, the rows along y gather and
//! scatter, and the interpolations vanish. If no gradient is read or tested (a mass matrix), DoFs are gathered by rows
//! along y, and a column interpolates, evaluates and integrates in registers.
//!
//! Several fields, each in its own space, pass through the same phases together: each phase performs all available work
//! before its barrier, and its rows are distributed separately for each number of nodes. A quantity without gradients,
//! such as a pressure, is gathered like the DoFs of a mass matrix, independent of the other fields.
//!
//! For cells that do not fit into shared memory otherwise, or if it is faster (`Plan::in_place`), derivatives in x
//! overwrite values. Columns first read the values, with D in z, and add their results after Dᵀ in x. This saves a
//! third of the shared memory for two additional barriers.
//!
//! Pairs of cells have q^(d−1) threads, too (`pair`).
//!
//! All 1D matrices are literals; a thread reads and writes each entry of its line once per phase. The coefficients of a
//! multilinear map are stored in shared memory once per cell. Rows are distributed so that threads access different
//! banks (`layout`). For measurements, see the `thread_per_line` rows of `wf bench --backend cuda`.

mod column;
mod diagonal;
mod hanging;
mod layout;
mod pair;
mod phases;
mod rows;
mod shared_quantity;

use crate::abi::{Indices, KernelAbi, THREADS};
use crate::element::{LinePoints, LineTable};
use crate::kir::build::Builder;
use crate::kir::{Entries, Kernel, SharedId, TableId, VarId};
use crate::lower::contract::Matrix;
use crate::lower::facts::KernelFacts;
use crate::lower::lowering::Lowering;
use crate::plan::{Geometry, PlanError, Task};
use fem_dsl::point::Location;
use layout::Layout;
use rows::{NodalKey, NodalLine, PointRow, RowKey};
use shared_quantity::{ElementVector, SharedQuantity, declare, is_in_place, traffic};
use std::collections::BTreeMap;

/// Checks that this strategy supports a plan.
pub(crate) fn check(facts: &KernelFacts<'_>, cells: usize) -> Result<(), PlanError> {
    if facts.of_pairs() && facts.elements.are_vector_valued() {
        let text = "vector-valued functions have a thread for each pair of cells";
        return Err(PlanError::Unsupported(text.to_owned()));
    }
    if facts.of_pairs() {
        return pair::check(facts, cells);
    }
    let KernelFacts { form, elements, plan, .. } = *facts;
    let refuse = |text: String| Err(PlanError::Unsupported(text));
    if plan.hanging && plan.task == Task::Diagonal {
        return refuse("a thread a line has no diagonal of hanging nodes".to_owned());
    }
    let Some(line) = elements.rule.line().filter(|_| elements.cell.is_factorised()) else {
        return refuse("a thread a line works on quadrilaterals and hexahedra".to_owned());
    };
    if plan.lanes != 1 || plan.indices == Indices::Runs {
        return refuse("a thread a line takes cells one by one, and nodes or unknowns".to_owned());
    }
    if plan.geometry == Geometry::Corners {
        return refuse("a thread a line does not gather corners".to_owned());
    }
    let q = line.count();
    let nodal = form.aux.iter().zip(&elements.aux).filter_map(|(aux, element)| {
        matches!(aux.location, Location::Nodes(_)).then_some((*element)?.degree())
    });
    let fields = elements.fields.iter().map(|element| element.degree());
    let map = match plan.geometry {
        Geometry::Nodes(order) => Some(order),
        _ => None,
    };
    let mut degrees = fields.chain(nodal).chain(map);
    if degrees.any(|degree| degree + 1 > q) {
        return refuse("a thread a line needs as many points as nodes a direction".to_owned());
    }
    let threads = cells * q.pow(form.dim as u32 - 1);
    if threads > THREADS {
        return refuse(format!("{cells} cells a group would take {threads} threads"));
    }
    let mut setting = Lowering::new(facts);
    Group::new(&mut setting, cells);
    let bytes = setting.shared_bytes();
    if bytes > plan.shared_bytes {
        return refuse(format!("{cells} cells a group would take {bytes} bytes of shared memory"));
    }
    Ok(())
}

/// Generates the kernel.
pub(super) fn lower(facts: &KernelFacts<'_>, cells: usize) -> (Kernel, KernelAbi) {
    if facts.of_pairs() {
        return pair::lower(facts, cells);
    }
    let mut setting = Lowering::new(facts);
    let group = Group::new(&mut setting, cells);
    let declared = setting.shared_bytes();
    group.write(&mut setting);
    assert_eq!(declared, setting.shared_bytes(), "what is shared should be known at first");
    setting.finish()
}

/// Constant data of a kernel during its construction: a group of threads and its cells.
struct Group {
    dim: usize,
    layout: Layout,
    /// The cell in its group, the digits of the thread in its cell, the thread itself.
    cell: VarId,
    digits: Vec<VarId>,
    /// True if these digits are those of the thread index; columns of single cells may be permuted.
    in_order: bool,
    thread: VarId,
    /// The index of the thread in its cell, and the number of these threads.
    member: VarId,
    members: usize,
    derive: Matrix,
    line: LinePoints,
    points: TableId,
    weights: TableId,
    inputs: Vec<SharedQuantity>,
    /// The contributions to the tested fields; empty if values are stored at the points.
    results: Vec<ElementVector>,
    /// True if no gradient is read or tested.
    flat: bool,
    /// True if derivatives in x overwrite values, so that columns read the values before, and add theirs after.
    in_place: bool,
    /// Coefficients of the multilinear map, cell by cell.
    modes: Option<SharedId>,
    rows: BTreeMap<RowKey, PointRow>,
    /// Lines of nodes.
    nodal: BTreeMap<NodalKey, NodalLine>,
}

impl Group {
    fn new(s: &mut Lowering<'_>, cells: usize) -> Self {
        let line = s.facts.elements.rule.line().expect("the plan should have checked the rule");
        let (q, dim) = (line.count(), s.facts.form.dim);
        let members = q.pow(dim as u32 - 1);
        s.b.set_threads(cells * members, cells);
        let cell = s.b.thread_var("cell", members, cells);
        let thread = s.b.thread_var("t", 1, cells * members);
        let member = s.b.thread_var("m", 1, members);
        let table = LineTable::new(line, line);
        let derive = Matrix::from_fn(q, q, |a, b| table.derivative(a, b));
        let points = s.b.spread_table("points", Entries::Real(line.points()));
        let weights = s.b.spread_table("weights", Entries::Real(line.weights()));
        let flat = s.facts.is_flat();
        let in_place = is_in_place(s);
        let traffic = traffic(s, (dim, q), cells == 1);
        let bytes = s.facts.plan.precision.bytes();
        let layout = match in_place {
            // There is no space for padding.
            true => Layout::dense((dim, q), cells, bytes),
            false => Layout::new((dim, q), cells, bytes, &traffic),
        };
        let names = &["i", "j"][..dim - 1];
        let lists = layout.distributed_digits(dim - 1, &vec![q; dim - 1]);
        let in_order = lists.is_none();
        let digits = match lists {
            Some(lists) => listed(&mut s.b, names, lists, members),
            None => {
                let powers = [1, q].into_iter().zip(names);
                powers.map(|(divisor, name)| s.b.thread_var(name, divisor, q)).collect()
            }
        };
        let (inputs, results) = declare(s, line, layout.length());
        let modes = (s.facts.plan.geometry == Geometry::Vertices && s.facts.needs_geometry())
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
            results,
            flat,
            in_place,
            modes,
            rows,
            nodal: BTreeMap::new(),
        };
        group.distribute(&mut s.b);
        group
    }
}

/// Declares variables tabulated per thread, one for each list; threads beyond its end repeat the last entry.
fn listed(b: &mut Builder, names: &[&str], lists: Vec<Vec<usize>>, threads: usize) -> Vec<VarId> {
    let var = |(name, list): (&&str, Vec<usize>)| {
        let mut positions: Vec<u32> = list.into_iter().map(|at| at as u32).collect();
        positions.resize(threads, positions.last().copied().unwrap_or(0));
        b.listed_var(name, positions)
    };
    names.iter().zip(lists).map(var).collect()
}

/// Returns the coefficients per cell in shared memory: an even number, so that they can be read in pairs.
fn mode_stride(s: &Lowering<'_>) -> usize {
    (s.facts.geometry_numbers() - first_mode(s)).next_multiple_of(2)
}

/// Returns the first coefficient in use: the image of the origin is needed for coordinates only.
fn first_mode(s: &Lowering<'_>) -> usize {
    if s.facts.needs_x { 0 } else { s.facts.form.dim }
}
