//! `choose`: what is known of the mesh and the machine → the plans of an operator's kernels.

mod transposed;

use super::{Elements, Geometry, Linearisation, Plan, PlanError, Strategy, Task};
use super::{is_derivative, reads};
use crate::abi::{Indices, SHARED_BYTES};
use crate::cost::{Machine, count};
use crate::dialect::rust::Isa;
use crate::element::{Cell, LinePoints};
use crate::kir::Precision;
use crate::lower::contract::EvenOdd;
use crate::strategy::thread_per_line;
use fem_dsl::point::{Input, Part, PointForm, Slot};

/// What a plan needs to know of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshFacts {
    /// Whether every cell is affine.
    pub affine: bool,
    /// The degree of the geometry.
    pub order: usize,
    /// Whether every cell sees its entities in their own orientation, so that unknowns come in
    /// runs.
    pub runs: bool,
    /// Whether some cells have constrained unknowns.
    pub constrained: bool,
}

/// What may be forced; everything else is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wishes {
    /// Cells a batch.
    pub lanes: Option<usize>,
    /// Geometry of every kernel that reads the mesh.
    pub geometry: Option<Geometry>,
    /// The u-dependent part of the action.
    pub linearisation: Option<Linearisation>,
    /// Addressing of cells without constraints.
    pub indices: Option<Indices>,
    /// The even-odd decomposition.
    pub even_odd: Option<EvenOdd>,
    /// Whether to prefetch.
    pub prefetch: Option<bool>,
    /// Loops over at most this many entries are written out.
    pub unroll: Option<usize>,
    /// Batches that are gathered together.
    pub block: Option<usize>,
    /// Who does what on a GPU; a thread a line stands for any number of cells a group, and no blocks or
    /// batches of thread transposition for as many as do well.
    /// A kernel that the strategy cannot do, as a diagonal by a thread a node, has one thread a cell.
    pub strategy: Option<Strategy>,
    /// Cells of a group of threads that do lines.
    pub cells: Option<usize>,
    /// Groups of threads that a processor is to hold.
    pub residency: Option<usize>,
    /// Bytes that the threads of a group may share.
    pub shared_bytes: Option<usize>,
}

/// The geometry that the mesh itself gives, on the fly.
pub fn own_geometry(elements: &Elements, facts: &MeshFacts) -> Geometry {
    match (facts.affine, facts.order, elements.cell.is_tensor()) {
        (true, _, _) | (_, 1, false) => Geometry::Affine,
        (_, 1, true) => Geometry::Vertices,
        (_, order, _) => Geometry::Nodes(order),
    }
}

/// The plans of the kernels that do `tasks`: first for cells without constrained unknowns, then,
/// where there are any, for the others.
pub fn choose(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    isa: Isa,
    precision: Precision,
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let own = own_geometry(elements, facts);
    let largest = elements.fields.iter().copied().max().unwrap_or(1);
    let indices = wishes.indices.unwrap_or(if facts.runs && largest >= 3 {
        Indices::Runs
    } else {
        Indices::Nodes
    });
    let base = |task: Task| Plan {
        lanes: wishes.lanes.unwrap_or(isa.widest(precision)),
        indices,
        even_odd: wishes.even_odd.unwrap_or(EvenOdd::Always),
        prefetch: wishes.prefetch.unwrap_or(true),
        unroll: wishes.unroll.unwrap_or(8),
        block: wishes.block.unwrap_or_else(|| block(form, elements, task)),
        ..Plan::new(task, 1, precision, wishes.geometry.unwrap_or(own))
    };
    let mut plans = Vec::new();
    for &task in tasks {
        let mut plan = base(task);
        match task {
            // What is stored is computed from the mesh.
            Task::Linearise | Task::Metric if plan.geometry == Geometry::Stored => {
                plan.geometry = own;
            }
            Task::Action => {
                let mut candidates = action_candidates(&plan, wishes);
                candidates.extend(corners(&plan, elements, facts, wishes));
                plan = cheapest(form, elements, candidates, isa)?;
            }
            Task::Residual | Task::Diagonal => {
                let mut candidates = vec![plan.clone()];
                candidates.extend(corners(&plan, elements, facts, wishes));
                plan = cheapest(form, elements, candidates, isa)?;
            }
            _ => {}
        }
        plans.push(plan);
    }
    let action = plans.iter().find(|plan| plan.task == Task::Action).cloned();
    if action.is_some_and(|plan| plan.linearisation == Linearisation::Stored)
        && !tasks.contains(&Task::Linearise)
    {
        plans.push(Plan { geometry: own, ..base(Task::Linearise) });
    }
    if plans.iter().any(|plan| plan.geometry == Geometry::Stored && reads_geometry(plan)) {
        plans.push(Plan { geometry: own, ..base(Task::Metric) });
    }
    if facts.constrained {
        let constrained: Vec<Plan> = plans
            .iter()
            .map(|plan| {
                // Constrained unknowns have no node to gather a corner by.
                let geometry = if plan.geometry == Geometry::Corners { own } else { plan.geometry };
                Plan { indices: Indices::Dofs, geometry, ..plan.clone() }
            })
            .collect();
        plans.extend(constrained);
    }
    for plan in &plans {
        plan.check(form, elements)?;
    }
    Ok(plans)
}

/// How many batches to gather before they are computed. Measured: vectors on elements of degree 1
/// gain a fifth, everything else loses, for a block of batches takes more of the first cache.
fn block(form: &PointForm, elements: &Elements, task: Task) -> usize {
    let stores = matches!(task, Task::Linearise | Task::Metric);
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    if stores || components < 2 || elements.fields.iter().any(|&degree| degree > 1) { 1 } else { 4 }
}

/// Groups of threads with a cell each that a processor is to hold: what a cell of degree 1 needs in
/// registers leaves room for four with one component on few points, for three where all points of a
/// hexahedron only take values, and for two else. Measured on an H200: with three, a mass matrix on 27
/// points does 12.8 billion unknowns a second, with two 10.
fn cell_residency(form: &PointForm, elements: &Elements) -> usize {
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    match (elements.fields.iter().max(), components) {
        (Some(1), 1) if elements.rule.count() <= 8 => 4,
        (Some(1), 1)
            if elements.cell == Cell::Hexahedron && elements.rule.count() == 27 && flat(form) =>
        {
            3
        }
        (Some(1), _) => 2,
        _ => 1,
    }
}

/// Whether no gradient is read or tested, as in a mass matrix.
fn flat(form: &PointForm) -> bool {
    form.integrals.iter().all(|integral| {
        let tested = integral.residual.iter().all(|(slot, _)| slot.part == Part::Value);
        let gradient = |slot: Slot| is_derivative(slot.part);
        tested
            && !reads(integral, |input| match input {
                Input::State(slot) | Input::Direction(slot) | Input::Aux(slot) => gradient(slot),
                _ => false,
            })
    })
}

/// The plan with a thread a line, where that is possible and has more than a few lines a cell.
fn lines(form: &PointForm, elements: &Elements, plan: &Plan, wishes: &Wishes) -> Option<Plan> {
    let q = elements.rule.line().map(LinePoints::count)?;
    let degree = elements.fields.iter().copied().max().unwrap_or(1);
    // What is symmetric about the middle pays from six points on.
    let even_odd = if q >= 6 { EvenOdd::Always } else { EvenOdd::Never };
    let even_odd = wishes.even_odd.unwrap_or(even_odd);
    let line = |cells: usize| {
        let strategy = Strategy::ThreadPerLine { cells };
        let plan = Plan { strategy, lanes: 1, even_odd, ..plan.clone() };
        let residency = || thread_per_line::residency(form, elements, &plan, cells);
        Plan { residency: wishes.residency.unwrap_or_else(residency), ..plan }
    };
    // Two nodes a direction fill too few lines; with three, registers hold a scalar cell.
    let scalar = form.fields.iter().all(|field| field.shape.components() == 1);
    let many = degree >= 2 && q >= if form.dim == 3 && scalar { 4 } else { 3 };
    // As many cells a group as the shared memory holds that every device has; if not even one, then
    // one in as much as this device has.
    let most = wishes.cells.unwrap_or_else(|| thread_per_line::cells(elements));
    let usual = plan.shared_bytes.min(SHARED_BYTES);
    let usual = |cells: usize| Plan { shared_bytes: usual, ..line(cells) };
    let mut plans = (1..=most).rev().map(usual).chain([line(1)]);
    plans.find(|plan| many && plan.check(form, elements).is_ok())
}

/// Up to how many entries loops are written out where a thread does a cell, so that arrays become registers. A large
/// cell, or a diagonal of degree 3 and more, needs so many that none of it would stay there, and written out it
/// compiles for minutes: it is computed in loops.
fn unrolled(form: &PointForm, elements: &Elements, task: Task) -> usize {
    let components: usize = form.fields.iter().map(|field| field.shape.components()).sum();
    let largest = elements.fields.iter().copied().max().unwrap_or(1);
    let diagonal = task == Task::Diagonal && elements.cell.is_tensor() && largest >= 3;
    if diagonal || elements.rule.count() * components > 128 { 8 } else { 1 << 16 }
}

/// Threads of a group where one thread does one cell.
pub const THREADS: usize = 128;

/// The plans where one thread of a GPU does one cell: everything on the fly, nodes one by one.
pub fn choose_for_threads(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    precision: Precision,
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let own = own_geometry(elements, facts);
    let mut plans = Vec::new();
    for &task in tasks {
        let geometry = wishes.geometry.unwrap_or(own);
        let plan = Plan {
            unroll: unrolled(form, elements, task),
            residency: wishes.residency.unwrap_or_else(|| cell_residency(form, elements)),
            shared_bytes: wishes.shared_bytes.unwrap_or(SHARED_BYTES),
            even_odd: wishes.even_odd.unwrap_or(EvenOdd::Always),
            ..Plan::new(task, wishes.lanes.unwrap_or(THREADS), precision, geometry)
        };
        let cell = corners(&plan, elements, facts, wishes).unwrap_or_else(|| plan.clone());
        let line = lines(form, elements, &plan, wishes);
        let wanted = wishes.strategy.is_none_or(|strategy| strategy != Strategy::CellPerLane);
        plans.push(line.filter(|_| wanted).unwrap_or(cell));
    }
    if facts.constrained {
        let constrained: Vec<Plan> = plans
            .iter()
            .map(|plan| {
                let geometry = if plan.geometry == Geometry::Corners { own } else { plan.geometry };
                Plan { indices: Indices::Dofs, geometry, ..plan.clone() }
            })
            .collect();
        plans.extend(constrained);
    }
    let plans = transposed::transpose(form, elements, plans, wishes)?;
    for plan in &plans {
        plan.check(form, elements)?;
    }
    Ok(plans)
}

fn reads_geometry(plan: &Plan) -> bool {
    plan.task != Task::Action || plan.linearisation == Linearisation::Recompute
}

fn action_candidates(plan: &Plan, wishes: &Wishes) -> Vec<Plan> {
    let stored = Plan { linearisation: Linearisation::Stored, ..plan.clone() };
    let metric = Plan { geometry: Geometry::Stored, ..plan.clone() };
    match (wishes.linearisation, wishes.geometry) {
        (Some(Linearisation::Stored), _) => vec![stored],
        (Some(Linearisation::Recompute), Some(_)) => vec![plan.clone()],
        (Some(Linearisation::Recompute), None) => vec![plan.clone(), metric],
        (None, Some(_)) => vec![plan.clone(), stored],
        (None, None) => vec![plan.clone(), stored, metric],
    }
}

/// The same plan with the corners gathered, where that is possible.
fn corners(plan: &Plan, elements: &Elements, facts: &MeshFacts, wishes: &Wishes) -> Option<Plan> {
    let straight = facts.order == 1 && (!facts.affine || !elements.cell.is_tensor());
    let corners = Plan { geometry: Geometry::Corners, ..plan.clone() };
    let nodes = elements.fields.first() == Some(&1) && plan.indices == Indices::Nodes;
    (straight && nodes && wishes.geometry.is_none() && wishes.linearisation.is_none())
        .then_some(corners)
}

/// The candidate of least predicted time; the first on a tie.
fn cheapest(
    form: &PointForm,
    elements: &Elements,
    candidates: Vec<Plan>,
    isa: Isa,
) -> Result<Plan, PlanError> {
    let machine = Machine::default();
    let components = form.fields.iter().map(|field| field.shape.components()).sum();
    let mut best: Option<(f64, Plan)> = None;
    for plan in candidates {
        let (kernel, abi) = crate::strategy::lower(form, elements, &plan)?;
        let share = plan.lanes as f64 / isa.widest(Precision::F64) as f64;
        let cost = count(&kernel, &abi, elements, components);
        let time = cost.time(&machine, share.max(1.0 / 8.0));
        if best.as_ref().is_none_or(|(least, _)| time < *least) {
            best = Some((time, plan));
        }
    }
    best.map(|(_, plan)| plan)
        .ok_or_else(|| PlanError::Unsupported("no plan fits this form".to_owned()))
}
