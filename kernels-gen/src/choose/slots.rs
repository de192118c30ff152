//! Slot counts for batches whose cells sum first: cells of a batch → [`Slots`] of each field.

use super::PlanOverrides;
use super::tuning::{HOPPER, Sizes};
use crate::abi::{SHARED_BYTES, Slots};
use crate::element::Element;
use crate::lower::facts::KernelFacts;
use crate::lower::slots::bytes;
use crate::plan::{Elements, Plan, Scatter, Strategy};
use fem_dsl::point::PointForm;

/// Consecutive cells along the first and second direction of a grid: the bricks in which meshes are numbered.
const BRICK: [usize; 2] = [32, 4];

/// Returns whether the cells of a batch sum first: on request, or if it pays.
pub(super) fn sums_first(form: &PointForm, elements: &Elements, overrides: &PlanOverrides) -> bool {
    let shares = elements.fields.iter().any(|element| element.is_continuous());
    let pays = || HOPPER.sums_first.at(&Sizes::new(form, elements)) && shares;
    overrides.scatter.map_or_else(pays, |scatter| scatter == Scatter::Block)
}

/// Returns the plan for one cell per thread with summation first, if requested, with the largest group that fits into
/// shared memory.
pub(super) fn summing(
    form: &PointForm,
    elements: &Elements,
    plan: Plan,
    overrides: &PlanOverrides,
) -> Plan {
    if plan.strategy != Strategy::CellPerLane || !sums_first(form, elements, overrides) {
        return plan;
    }
    let (gpu, most) = (&HOPPER, HOPPER.summing.at(&Sizes::new(form, elements)));
    let with = |lanes: usize| {
        // The registers per thread are those of a group of the usual size.
        let residency = (plan.residency * gpu.threads / lanes.max(gpu.threads)).max(1);
        let residency = overrides.residency.unwrap_or(residency);
        let scatter = Scatter::Block;
        let plan = Plan { scatter, edges: false, lanes, residency, ..plan.clone() };
        with_slots(plan, elements, overrides)
    };
    let lanes = overrides.lanes.map_or_else(|| vec![most, most / 2, most / 4], |lanes| vec![lanes]);
    let plans: Vec<Plan> =
        lanes.into_iter().filter(|&n| n >= gpu.fewest_summing).map(with).collect();
    // The shared memory of every device suffices for several groups; more is used on request only.
    let fits = |most: usize| {
        plans.iter().find(|plan| {
            bytes(&KernelFacts::new(form, elements, plan)) <= plan.shared_bytes.min(most)
        })
    };
    let beyond = || overrides.scatter.and_then(|_| fits(usize::MAX));
    match (fits(SHARED_BYTES).or_else(beyond), plans.last()) {
        (Some(fitting), _) => fitting.clone(),
        // A request that does not fit is reported as such.
        (None, Some(last)) if overrides.scatter.is_some() => last.clone(),
        _ => plan,
    }
}

/// Returns the plan with the slots that its batches need, if its cells sum first.
pub(super) fn with_slots(plan: Plan, elements: &Elements, overrides: &PlanOverrides) -> Plan {
    if plan.scatter != Scatter::Block {
        return plan;
    }
    let own = |element: &Element| overrides.slots.unwrap_or_else(|| slots(*element, plan.lanes));
    let slots = elements.fields.iter().map(own).collect();
    Plan { slots, ..plan }
}

/// Returns the slots for `cells` consecutive cells in a grid's bricks. If they do not suffice, for instance with
/// another cell order, a batch has fewer cells.
fn slots(element: Element, cells: usize) -> Slots {
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
    let [along, across, layers] = match cell.dim() {
        1 => [cells, 0, 0],
        _ => [along, across, layers],
    };
    let nodes: usize = [along, across, layers].iter().map(|n| n * element.degree() + 1).product();
    // Nodes with more cells than a slot has terms take several slots.
    let more = pairs.saturating_sub(nodes) / (2 * terms);
    Slots { count: (nodes + more).min(pairs).next_multiple_of(32), terms }
}
