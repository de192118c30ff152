//! How many slots a batch gets for its nodes, where its cells sum first: cells of a batch → [`Slots`] of each field.

use super::{THREADS, Wishes};
use crate::abi::{SHARED_BYTES, Slots};
use crate::element::Lagrange;
use crate::plan::{Elements, Plan, Scatter, Strategy};
use crate::strategy::bytes_of_slots;
use fem_dsl::point::PointForm;

/// Cells that follow one another along the first direction of a grid, and along the second: the bricks in which meshes
/// are numbered.
const BRICK: [usize; 2] = [32, 4];

/// Threads of a group below which nothing is summed first.
const FEWEST: usize = 32;

/// Whether the cells of a batch are to sum first: where that is wished for, and on triangles and tetrahedra, many of which
/// share a node. Measured on an H200, in billions of unknowns a second with and without, Laplacians and elasticity: on
/// triangles of degrees 1 to 3 37, 49 and 57 against 28, 27 and 31, and 49, 56 and 61 against 30, 29 and 32, of degree 4 38
/// against 33; on tetrahedra of degrees 1 to 3 9.1, 21.6 and 12.6 against 5.1, 10.2 and 11.5, and 13.9, 25.2 and 5.0 against
/// 6.0, 11.1 and 5.1. A hexahedron of degree 1 finds most of its neighbours' nodes in the nearest cache, and adds along
/// edges: 21.9 against 23.6 with three components, 12.5 against 18.2 with one.
pub(super) fn sums_first(elements: &Elements, wishes: &Wishes) -> bool {
    let components: usize = elements.components.iter().sum();
    let simplex = !elements.cell.is_tensor();
    let pays = match (elements.cell.dim(), elements.largest()) {
        (2, _) => simplex,
        (_, 3) => simplex && components == 1,
        (_, degree) => simplex && degree < 3,
    };
    let shares = elements.fields.iter().any(|element| element.is_continuous());
    wishes.scatter.map_or(pays && shares, |scatter| scatter == Scatter::Block)
}

/// The plan for threads with a cell each that sum first, where that is wanted: in groups of as many as there is room for.
pub(super) fn summing(form: &PointForm, elements: &Elements, plan: Plan, wishes: &Wishes) -> Plan {
    if plan.strategy != Strategy::CellPerLane || !sums_first(elements, wishes) {
        return plan;
    }
    // Triangles of degree 1 with 256 and 128 threads a group: 37.3 and 32.2 billion unknowns a second; of degree 2
    // with 256, 128 and 64 44.0, 51.7 and 48.8; tetrahedra of degrees 1 and 2 with 128 and 64 9.0, 20.2 and 6.5, 21.6.
    let most = match (elements.cell.dim(), elements.largest()) {
        (2, 1) => 256,
        (2, _) | (_, 1) => 128,
        _ => 64,
    };
    let with = |lanes: usize| {
        // The registers of a thread are those that it has in a group of the usual size.
        let residency = (plan.residency * THREADS / lanes.max(THREADS)).max(1);
        let residency = wishes.residency.unwrap_or(residency);
        let scatter = Scatter::Block;
        let plan = Plan { scatter, edges: false, lanes, residency, ..plan.clone() };
        with_slots(plan, elements, wishes)
    };
    let lanes = wishes.lanes.map_or_else(|| vec![most, most / 2, most / 4], |lanes| vec![lanes]);
    let plans: Vec<Plan> = lanes.into_iter().filter(|&n| n >= FEWEST).map(with).collect();
    // What every device has leaves room for several groups; beyond it is for what was asked for.
    let fits = |bytes: usize| {
        plans
            .iter()
            .find(|plan| bytes_of_slots(form, elements, plan) <= plan.shared_bytes.min(bytes))
    };
    let beyond = || wishes.scatter.and_then(|_| fits(usize::MAX));
    match (fits(SHARED_BYTES).or_else(beyond), plans.last()) {
        (Some(fitting), _) => fitting.clone(),
        // What was asked for and does not fit is said to be so.
        (None, Some(last)) if wishes.scatter.is_some() => last.clone(),
        _ => plan,
    }
}

/// The plan with the slots that its batches need, where its cells sum first.
pub(super) fn with_slots(plan: Plan, elements: &Elements, wishes: &Wishes) -> Plan {
    if plan.scatter != Scatter::Block {
        return plan;
    }
    let own = |element: &Lagrange| wishes.slots.unwrap_or_else(|| slots(*element, plan.lanes));
    let slots = elements.fields.iter().map(own).collect();
    Plan { slots, ..plan }
}

/// Slots for `cells` cells that follow one another in a grid's bricks. A batch for which they do not suffice, as where
/// cells come in another order, has fewer cells.
fn slots(element: Lagrange, cells: usize) -> Slots {
    let cell = element.cell();
    let (terms, boxes) = match (cell.is_tensor(), cell.dim()) {
        (true, _) => (4, cells),
        (false, 2) => (4, cells.div_ceil(2)),
        (false, _) => (6, cells.div_ceil(6)),
    };
    let pairs = cells * element.count();
    if !element.is_continuous() {
        return Slots { count: pairs.next_multiple_of(32), terms: 1 };
    }
    let along = boxes.clamp(1, BRICK[0]);
    let rows = boxes.div_ceil(along);
    let across = if cell.dim() == 2 { rows } else { rows.min(BRICK[1]) };
    let layers = if cell.dim() == 2 { 0 } else { rows.div_ceil(across) };
    let nodes: usize = [along, across, layers].iter().map(|n| n * element.degree() + 1).product();
    // Nodes with more cells than a slot has terms have several.
    let more = pairs.saturating_sub(nodes) / (2 * terms);
    Slots { count: (nodes + more).min(pairs).next_multiple_of(32), terms }
}
