//! `choose`: what is known of the mesh and the machine → the plans of an operator's kernels.

pub mod candidates;
mod slots;
mod threads;
mod transposed;
mod tuning;

pub use threads::choose_for_threads;
pub use transposed::{cells_of_nodes, cells_of_points, per_dof, transposed};
use tuning::{Sizes, ZEN4};

use crate::abi::{Indices, Slots};
use crate::cost::{Machine, count};
use crate::dialect::rust::Isa;
use crate::kir::Precision;
use crate::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
};
use crate::strategy::check;
use fem_dsl::point::{PointForm, Slot};

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
    /// Whether nodes are the same as others elsewhere, so that a node is no corner.
    pub periodic: bool,
    /// Whether nodes of some cells hang.
    pub hanging: bool,
}

/// Cells with straight edges, any of which may be as they like, and without conditions.
impl Default for MeshFacts {
    fn default() -> Self {
        let [affine, runs, constrained, periodic, hanging] = [false; 5];
        Self { affine, order: 1, runs, constrained, periodic, hanging }
    }
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
    /// How results come to their vector on a GPU.
    pub scatter: Option<Scatter>,
    /// How element matrices come to a sparse matrix: stored by their cells ([`Scatter::Owner`], without a wish), or added to its
    /// entries.
    pub matrix: Option<Scatter>,
    /// The slots of a batch whose cells sum first, for each field.
    pub slots: Option<Slots>,
    /// On GPUs, whether vectors of several components are in tiles.
    pub tiles: Option<bool>,
    /// Batches that are gathered together.
    pub block: Option<usize>,
    /// Who does what on a GPU; a thread a line stands for any number of cells a group, and no blocks or
    /// batches of thread transposition for as many as do well.
    /// A kernel that the strategy cannot do, as a diagonal by a thread a node, has one thread a cell.
    pub strategy: Option<Strategy>,
    /// Cells of a group of threads that do lines.
    pub cells: Option<usize>,
    /// Groups of threads that a multiprocessor is to hold.
    pub residency: Option<usize>,
    /// Whether a GPU's assembler keeps about to the order of the text.
    pub in_order: Option<bool>,
    /// Whether threads with a line each put derivatives in the place of values.
    pub in_place: Option<bool>,
    /// Bytes that the threads of a group may share.
    pub shared_bytes: Option<usize>,
    /// The processor whose times are predicted; one of 2023 without it. Plans depend on the balance of its rates alone.
    pub machine: Option<Machine>,
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
/// where there are any, for the others, and for those with hanging nodes.
pub fn choose(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    isa: Isa,
    precision: Precision,
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let plans = region_by_region(form, tasks, |form, tasks, of_facets| {
        of_region(form, elements, facts, (tasks, of_facets), (isa, precision), wishes)
    })?;
    for plan in &plans {
        check(form, elements, plan)?;
    }
    Ok(plans)
}

/// The plans of all integrals of a form: those over cells are chosen one by one, each as if it were alone, since what does
/// best depends on what a kernel computes. `choose` takes a form with at most one of them, the tasks to be done for it, and
/// those for the form's integrals over facets.
fn region_by_region(
    form: &PointForm,
    tasks: &[Task],
    mut choose: impl FnMut(&PointForm, &[Task], &[Task]) -> Result<Vec<Plan>, PlanError>,
) -> Result<Vec<Plan>, PlanError> {
    let of_cells = |number: &usize| form.integrals[*number].region.is_of_cells();
    let regions: Vec<usize> = (0..form.integrals.len()).filter(of_cells).collect();
    if regions == [0] {
        return choose(form, tasks, tasks);
    }
    let mut plans = Vec::new();
    for number in regions {
        let alone = PointForm { integrals: vec![form.integrals[number].clone()], ..form.clone() };
        let own = choose(&alone, tasks, &[])?;
        plans.extend(own.into_iter().map(|plan| Plan { integral: number, ..plan }));
    }
    plans.extend(choose(form, &[], tasks)?);
    Ok(plans)
}

/// The plans of the one integral over cells that a form has, and of those over facets.
fn of_region(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    (tasks, of_facets): (&[Task], &[Task]),
    (isa, precision): (Isa, Precision),
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let own = own_geometry(elements, facts);
    let runs = facts.runs && elements.largest() >= ZEN4.runs && elements.are_continuous();
    let indices = if runs { Indices::Runs } else { Indices::Nodes };
    let block = ZEN4.block.at(&Sizes::new(form, elements));
    let base = |task: Task| Plan {
        lanes: wishes.lanes.unwrap_or(isa.widest(precision)),
        indices: if task.is_of_matrices() { Indices::Nodes } else { indices },
        scatter: if task == Task::Matrix {
            wishes.matrix.unwrap_or(Scatter::Owner)
        } else {
            Scatter::Atomic
        },
        even_odd: EvenOdd::Always,
        unroll: ZEN4.unroll,
        block: if task.is_of_matrices() {
            1
        } else {
            wishes.block.unwrap_or(if task.stores() { 1 } else { block })
        },
        ..Plan::new(Target::Vectors, task, 1, precision, wishes.geometry.unwrap_or(own))
    };
    let machine = wishes.machine.unwrap_or(ZEN4.machine);
    let share = |plan: &Plan| candidates::share(isa, plan);
    let mut plans = Vec::new();
    for &task in tasks {
        let mut plan = base(task);
        match task {
            // What is stored is computed from the mesh.
            _ if task.stores() && plan.geometry == Geometry::Stored => plan.geometry = own,
            Task::Action => {
                let mut candidates = action_candidates(&plan, wishes);
                candidates.extend(corners(&plan, elements, facts, wishes));
                plan = cheapest(form, elements, candidates, &machine, share)?;
            }
            Task::Residual | Task::Diagonal => {
                let mut candidates = vec![plan.clone()];
                candidates.extend(corners(&plan, elements, facts, wishes));
                plan = cheapest(form, elements, candidates, &machine, share)?;
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
    let hanging = facts.hanging.then(|| with_hanging_nodes(&plans, own));
    if facts.constrained {
        plans.extend(by_unknowns(&plans, own));
    }
    plans.extend(hanging.into_iter().flatten());
    plans.extend(over_facets(form, facts, of_facets, |task| Plan {
        lanes: base(task).lanes,
        scatter: base(task).scatter,
        ..Plan::new(Target::Vectors, task, 1, precision, own)
    }));
    Ok(plans)
}

/// The plans of the integrals over facets. Facets are few, so nothing is chosen: their cells' nodes are read, and
/// where any unknown is constrained all are addressed one by one.
fn over_facets(
    form: &PointForm,
    facts: &MeshFacts,
    tasks: &[Task],
    base: impl Fn(Task) -> Plan,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (number, integral) in form.integrals.iter().enumerate() {
        if integral.region.is_of_cells() {
            continue;
        }
        let own = |slot: Slot| (slot.field, slot.component);
        for &task in tasks {
            let wanted = match task {
                Task::Residual | Task::Flux => !integral.residual.is_empty(),
                Task::Action => !integral.action.is_empty(),
                Task::Diagonal => {
                    integral.jacobian.iter().any(|entry| own(entry.test) == own(entry.trial))
                }
                Task::Matrix | Task::StoredProduct | Task::MatrixProduct => {
                    !integral.jacobian.is_empty()
                }
                Task::Linearise | Task::Metric | Task::Prolong | Task::Restrict => false,
            };
            let indices = if facts.constrained { Indices::Dofs } else { Indices::Nodes };
            let geometry = Geometry::Nodes(facts.order);
            if wanted {
                let hanging = facts.hanging;
                plans.push(Plan { integral: number, indices, geometry, hanging, ..base(task) });
            }
        }
    }
    plans
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
    let straight = straight && !facts.periodic;
    let corners = Plan { geometry: Geometry::Corners, ..plan.clone() };
    let nodes = elements.at_corners() && plan.indices == Indices::Nodes;
    (straight && nodes && wishes.geometry.is_none() && wishes.linearisation.is_none())
        .then_some(corners)
}

/// The plans for cells with constrained unknowns, which are addressed one by one; they have no node to gather a
/// corner by.
fn by_unknowns(plans: &[Plan], own: Geometry) -> Vec<Plan> {
    // A flux writes to no unknown, and reads constrained ones as all others.
    plans.iter().filter(|plan| plan.task != Task::Flux).map(|plan| dof_by_dof(plan, own)).collect()
}

fn dof_by_dof(plan: &Plan, own: Geometry) -> Plan {
    let geometry = if plan.geometry == Geometry::Corners { own } else { plan.geometry };
    Plan { indices: Indices::Dofs, geometry, ..plan.clone() }
}

/// The plans for cells with hanging nodes, whose unknowns are addressed one by one too.
fn with_hanging_nodes(plans: &[Plan], own: Geometry) -> Vec<Plan> {
    let hanging = |plan: Plan| Plan {
        hanging: true,
        edges: false,
        block: 1,
        scatter: if plan.scatter == Scatter::Block { Scatter::Atomic } else { plan.scatter },
        slots: Vec::new(),
        ..plan
    };
    plans.iter().map(|plan| hanging(dof_by_dof(plan, own))).collect()
}

/// The candidate of least predicted time, `share` being that of the machine's widest vectors which a plan
/// uses; the first on a tie.
fn cheapest(
    form: &PointForm,
    elements: &Elements,
    candidates: Vec<Plan>,
    machine: &Machine,
    share: impl Fn(&Plan) -> f64,
) -> Result<Plan, PlanError> {
    let mut best: Option<(f64, Plan)> = None;
    for plan in candidates {
        let (kernel, abi) = crate::strategy::lower(form, elements, &plan)?;
        let cost = count(&kernel, &abi, elements);
        let time = cost.time(machine, share(&plan));
        if best.as_ref().is_none_or(|(least, _)| time < *least) {
            best = Some((time, plan));
        }
    }
    best.map(|(_, plan)| plan)
        .ok_or_else(|| PlanError::Unsupported("no plan fits this form".to_owned()))
}
