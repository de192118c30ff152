//! Plan selection: properties of the mesh and the machine → the plans of an operator's kernels.

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
use crate::plan::turns::FacetPairs;
use crate::plan::{
    Elements, EvenOdd, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
    needs_bends, turns,
};
use crate::strategy::check;
use fem_dsl::point::{Integral, InteriorFacets, PointForm, Region, Side, Slot};

/// Properties of a mesh that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshFacts {
    /// True if every cell is affine.
    pub affine: bool,
    /// The degree of the geometry.
    pub order: usize,
    /// True if every cell sees its entities in their own orientation, so that DoFs come in runs.
    pub runs: bool,
    /// True if some cell sees an entity in another orientation, so that DoFs of vector-valued functions have signs.
    pub signs: bool,
    /// True if periodic identification makes nodes differ from mesh vertices.
    pub periodic: bool,
    /// True if some cells have hanging nodes.
    pub hanging: bool,
    /// The facets of pairs of simplices; `None` for all that cells with sorted vertices may have.
    pub pairs: Option<FacetPairs>,
}

/// A mesh of straight-edged cells of arbitrary shape, without boundary conditions.
impl Default for MeshFacts {
    fn default() -> Self {
        let [affine, runs, signs, periodic, hanging] = [false; 5];
        Self { affine, order: 1, runs, signs, periodic, hanging, pairs: None }
    }
}

/// Overrides of the selection; everything that is `None` is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlanOverrides {
    /// Cells per batch.
    pub lanes: Option<usize>,
    /// Geometry of every kernel that reads the mesh.
    pub geometry: Option<Geometry>,
    /// The u-dependent part of the action.
    pub linearisation: Option<Linearisation>,
    /// Scatter algorithm for results on a GPU.
    pub scatter: Option<Scatter>,
    /// Assembly algorithm for element matrices: stored per cell ([`Scatter::Owner`], the default), or added to the
    /// entries of the sparse matrix.
    pub matrix: Option<Scatter>,
    /// The slots for each field in batches whose cells sum first.
    pub slots: Option<Slots>,
    /// On GPUs, tiled storage of vectors of several components.
    pub tiles: Option<bool>,
    /// Batches per block; a block is gathered as a whole.
    pub block: Option<usize>,
    /// The strategy on a GPU. A thread per line stands for any number of cells per group; zero blocks or batches of
    /// thread transposition are replaced by the best number. A kernel that the strategy does not support, such as a
    /// diagonal by a thread per node, has one thread per cell.
    pub strategy: Option<Strategy>,
    /// Cells per group, for a thread per line.
    pub cells: Option<usize>,
    /// Resident groups per multiprocessor.
    pub residency: Option<usize>,
    /// Order of the source: true if a GPU's assembler roughly keeps it.
    pub in_order: Option<bool>,
    /// Reuse of arrays by a thread per line: true if derivatives overwrite values.
    pub in_place: Option<bool>,
    /// Bytes of shared memory per group.
    pub shared_bytes: Option<usize>,
    /// The processor of the cost model; by default one of 2023. Plans depend only on the ratio of its rates.
    pub machine: Option<Machine>,
}

/// Returns the geometry computed on the fly from the mesh. Second derivatives need those of the map.
pub fn own_geometry(form: &PointForm, elements: &Elements, facts: &MeshFacts) -> Geometry {
    let second = needs_bends(form);
    match (facts.affine, facts.order, elements.cell.is_factorised()) {
        (true, _, _) | (_, 1, false) => Geometry::Affine,
        (_, 1, true) if !second => Geometry::Vertices,
        (_, order, _) => Geometry::Nodes(order),
    }
}

/// Returns the plans of the kernels for `tasks`. Those for cells without hanging nodes come first; then, if there are
/// any, those for cells with them.
pub fn choose(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    isa: Isa,
    precision: Precision,
    overrides: &PlanOverrides,
) -> Result<Vec<Plan>, PlanError> {
    let indices = own_indices(form, elements, facts);
    let plans = region_by_region(form, tasks, |form, tasks, of_facets| {
        let tasks = (tasks, of_facets);
        of_region(form, elements, (facts, indices), tasks, (isa, precision), overrides)
    })?;
    for plan in &plans {
        check(form, elements, plan)?;
    }
    Ok(plans)
}

/// Returns the plans of all integrals of a form. Integrals over cells are planned one at a time, because the best plan
/// depends on what a kernel computes. `choose` takes a form with at most one of them, the tasks for it, and the tasks
/// for the form's facet integrals.
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

/// Returns the addressing of DoFs: whole cells with terms between discontinuous fields, runs of entities where all
/// fields are continuous.
fn own_indices(form: &PointForm, elements: &Elements, facts: &MeshFacts) -> Indices {
    let between = form.integrals.iter().any(|integral| integral.region.is_interior());
    let runs = facts.runs && elements.largest() >= ZEN4.runs && elements.are_continuous();
    let runs = runs && !facts.signs && elements.cell.is_factorised();
    match () {
        () if runs => Indices::Runs,
        () if elements.are_vector_valued() => Indices::Nodes,
        () if between && elements.cell.is_factorised() && !elements.are_continuous() => {
            Indices::Cells
        }
        () => Indices::Nodes,
    }
}

/// Returns the plans of the form's single cell integral and of its facet integrals.
fn of_region(
    form: &PointForm,
    elements: &Elements,
    (facts, indices): (&MeshFacts, Indices),
    (tasks, of_facets): (&[Task], &[Task]),
    (isa, precision): (Isa, Precision),
    overrides: &PlanOverrides,
) -> Result<Vec<Plan>, PlanError> {
    let own = own_geometry(form, elements, facts);
    let block = ZEN4.block.at(&Sizes::new(form, elements));
    let base = |task: Task| Plan {
        lanes: overrides.lanes.unwrap_or(isa.widest(precision)),
        indices: if task.is_of_matrices() { Indices::Nodes } else { indices },
        scatter: if task == Task::Matrix {
            overrides.matrix.unwrap_or(Scatter::Owner)
        } else {
            Scatter::Atomic
        },
        even_odd: EvenOdd::Always,
        signs: facts.signs,
        unroll: ZEN4.unroll,
        block: if task.is_of_matrices() {
            1
        } else {
            overrides.block.unwrap_or(if task.stores() { 1 } else { block })
        },
        ..Plan::new(Target::Vectors, task, 1, precision, overrides.geometry.unwrap_or(own))
    };
    let machine = overrides.machine.unwrap_or(ZEN4.machine);
    let share = |plan: &Plan| candidates::share(isa, plan);
    let mut plans = Vec::new();
    for &task in tasks {
        let mut plan = base(task);
        match task {
            // Stored data is computed from the mesh.
            _ if task.stores() && plan.geometry == Geometry::Stored => plan.geometry = own,
            Task::Action => {
                let mut candidates = action_candidates(&plan, overrides);
                candidates.extend(corners(&plan, elements, facts, overrides));
                let candidates = supported(form, elements, candidates);
                plan = cheapest(form, elements, candidates, &machine, share)?;
            }
            Task::Residual | Task::Diagonal => {
                let mut candidates = vec![plan.clone()];
                candidates.extend(corners(&plan, elements, facts, overrides));
                let candidates = supported(form, elements, candidates);
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
    plans.extend(hanging.into_iter().flatten());
    plans.extend(over_facets(form, elements, facts, of_facets, |task| Plan {
        lanes: base(task).lanes,
        indices: base(task).indices,
        scatter: base(task).scatter,
        signs: facts.signs,
        ..Plan::new(Target::Vectors, task, 1, precision, own)
    }));
    Ok(plans)
}

/// Returns the plans of the facet integrals. Facets are few, so the plan is fixed: the nodes of their cells are read.
fn over_facets(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    tasks: &[Task],
    base: impl Fn(Task) -> Plan,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    for (number, integral) in form.integrals.iter().enumerate() {
        if integral.region.is_of_cells() {
            continue;
        }
        for &task in tasks {
            let wanted = has_terms(integral, |field| is_vector_valued(elements, field), task);
            let base = base(task);
            let cells = integral.region.is_interior() && base.indices == Indices::Cells;
            let indices = if cells { Indices::Cells } else { Indices::Nodes };
            let geometry = Geometry::Nodes(facts.order);
            if wanted {
                let hanging = facts.hanging;
                let affine = facts.affine && integral.region.is_interior();
                let plan = Plan { integral: number, indices, geometry, hanging, affine, ..base };
                let larger = larger(&integral.region).iter().filter(|_| hanging);
                plans.extend(larger.map(|&side| Plan { larger: Some(side), ..plan.clone() }));
                plans.extend(at_facets(plan, elements, &integral.region, facts.pairs));
            }
        }
    }
    plans
}

/// Returns whether the shape functions of a field are vectors.
fn is_vector_valued(elements: &Elements, field: usize) -> bool {
    elements.fields[field].whitney().is_some()
}

/// Returns whether an integral has terms for a task. All components of a field that `is_vector_valued` share its degrees of
/// freedom, and so their diagonal.
pub(crate) fn has_terms(
    integral: &Integral,
    is_vector_valued: impl Fn(usize) -> bool,
    task: Task,
) -> bool {
    let own = |slot: Slot| match is_vector_valued(slot.field) {
        true => (slot.field, 0),
        false => (slot.field, slot.component),
    };
    match task {
        Task::Residual | Task::Flux => !integral.residual.is_empty(),
        Task::Action => !integral.action.is_empty(),
        Task::Diagonal => integral.jacobian.iter().any(|entry| own(entry.test) == own(entry.trial)),
        Task::Matrix | Task::StoredProduct | Task::MatrixProduct => !integral.jacobian.is_empty(),
        Task::Linearise | Task::Metric | Task::Prolong | Task::Restrict => false,
    }
}

/// The tasks of [`choose_for_batches`].
pub(crate) const BATCH_TASKS: [Task; 4] =
    [Task::Residual, Task::Action, Task::Diagonal, Task::Matrix];

/// Returns the plans of residual, action, diagonal and element matrices of all integrals over cells and over facets, for
/// callers that store degrees of freedom batch by batch ([`Indices::Batches`]) and give the nodes of the cells' maps, which
/// are of degree `order`.
///
/// # Errors
///
/// The first unsupported plan.
pub fn choose_for_batches(
    form: &PointForm,
    elements: &Elements,
    order: usize,
    isa: Isa,
    precision: Precision,
) -> Result<Vec<Plan>, PlanError> {
    let mut plans = Vec::new();
    for (number, integral) in form.integrals.iter().enumerate() {
        for task in BATCH_TASKS {
            if !has_terms(integral, |field| is_vector_valued(elements, field), task) {
                continue;
            }
            let (lanes, geometry) = (isa.widest(precision), Geometry::Nodes(order));
            let own = Plan::new(Target::Vectors, task, lanes, precision, geometry);
            let plan = Plan {
                integral: number,
                indices: Indices::Batches,
                scatter: Scatter::Owner,
                signs: elements.are_vector_valued(),
                unroll: if integral.region.is_of_cells() { ZEN4.unroll } else { own.unroll },
                ..own
            };
            plans.extend(at_facets(plan, elements, &integral.region, None));
        }
    }
    plans.iter().try_for_each(|plan| check(form, elements, plan))?;
    Ok(plans)
}

/// Returns the plans of the facets of a cell, or of a pair of cells, in the place of one for all; see [`Plan::facet`].
/// `pairs` are those that occur, if they are known.
pub fn at_facets(
    plan: Plan,
    elements: &Elements,
    region: &Region,
    pairs: Option<FacetPairs>,
) -> Vec<Plan> {
    let cell = elements.cell;
    if !elements.are_vector_valued() || cell.is_tensor() {
        return vec![plan];
    }
    let numbers = match (region.is_interior(), pairs) {
        (true, Some(pairs)) => pairs.numbers(),
        (true, None) => turns::sorted_pairs(cell),
        (false, _) => (0..cell.facets().len() as u16).collect(),
    };
    numbers.into_iter().map(|facet| Plan { facet: Some(facet), ..plan.clone() }).collect()
}

/// Returns the sides on which a cell may be larger than the other one. The smaller one is the inside, unless the region
/// names the sides.
fn larger(region: &Region) -> &'static [Side] {
    match region {
        Region::Interior(InteriorFacets::Between(_)) => &Side::ALL,
        Region::Interior(_) => &[Side::Outside],
        Region::Cells | Region::CellsUnder(_) | Region::Facets(_) => &[],
    }
}

/// Returns the candidates that the form supports, or all if there is none.
fn supported(form: &PointForm, elements: &Elements, candidates: Vec<Plan>) -> Vec<Plan> {
    let fits = |plan: &Plan| check(form, elements, plan).is_ok();
    match candidates.iter().any(fits) {
        true => candidates.into_iter().filter(fits).collect(),
        false => candidates,
    }
}

fn reads_geometry(plan: &Plan) -> bool {
    plan.task != Task::Action || plan.linearisation == Linearisation::Recompute
}

fn action_candidates(plan: &Plan, overrides: &PlanOverrides) -> Vec<Plan> {
    let stored = Plan { linearisation: Linearisation::Stored, ..plan.clone() };
    let metric = Plan { geometry: Geometry::Stored, ..plan.clone() };
    match (overrides.linearisation, overrides.geometry) {
        (Some(Linearisation::Stored), _) => vec![stored],
        (Some(Linearisation::Recompute), Some(_)) => vec![plan.clone()],
        (Some(Linearisation::Recompute), None) => vec![plan.clone(), metric],
        (None, Some(_)) => vec![plan.clone(), stored],
        (None, None) => vec![plan.clone(), stored, metric],
    }
}

/// Returns the same plan with gathered corners, if that is possible.
fn corners(
    plan: &Plan,
    elements: &Elements,
    facts: &MeshFacts,
    overrides: &PlanOverrides,
) -> Option<Plan> {
    let straight = facts.order == 1
        && (!facts.affine || !elements.cell.is_tensor())
        && elements.cell.dim() > 1;
    let straight = straight && !facts.periodic;
    let corners = Plan { geometry: Geometry::Corners, ..plan.clone() };
    let nodes = elements.at_corners() && plan.indices == Indices::Nodes;
    (straight && nodes && overrides.geometry.is_none() && overrides.linearisation.is_none())
        .then_some(corners)
}

/// Returns the plans for cells with hanging nodes, whose DoFs are addressed individually. No node index is available
/// for the corners.
fn with_hanging_nodes(plans: &[Plan], own: Geometry) -> Vec<Plan> {
    let hanging = |plan: &Plan| Plan {
        indices: Indices::Dofs,
        geometry: if plan.geometry == Geometry::Corners { own } else { plan.geometry },
        hanging: true,
        edges: false,
        block: 1,
        scatter: if plan.scatter == Scatter::Block { Scatter::Atomic } else { plan.scatter },
        slots: Vec::new(),
        ..plan.clone()
    };
    plans.iter().map(hanging).collect()
}

/// Returns the candidate of least predicted time, the first on a tie. `share` is the fraction of the machine's widest
/// vectors that a plan uses.
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
