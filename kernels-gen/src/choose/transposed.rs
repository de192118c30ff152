//! Whether a GPU's threads first own points and then basis functions, or a node each: plans → the same
//! with these strategies.

use super::Wishes;
use super::slots::{sums_first, with_slots};
use crate::abi::SHARED_BYTES;
use crate::element::Cell;
use crate::plan::{Elements, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Task};
use crate::strategy::check;
use crate::strategy::thread_per_dof;
use crate::strategy::thread_transposition::{blocks, cells, transposed};
use fem_dsl::point::PointForm;

/// Batches that a group of threads does one after another. Their number matters little (Knepley, Rupp
/// and Terrel, table 2), and one leaves the most groups to hide each other's waiting.
const BATCHES: usize = 1;

/// Cells of a batch from which on they do well to sum first, several for each thread if need be. Measured on an H200, Poisson
/// on triangles with 96 threads: 30.7 billion unknowns a second with 192 cells, 24.2 with 96; on tetrahedra with 64 threads
/// 6.6 with 128 cells, 5.2 with 64.
const SUMMING: usize = 128;

/// The plans with thread transposition, where that is wished for or does best: on tetrahedra of degree 4
/// and up, of which one thread cannot hold enough. They share one number of cells a batch, since they read the
/// same tables of a mesh. Measured on an H200, in billions of unknowns a second, by threads with a cell each
/// and by transposition: the Laplacian on tetrahedra of degrees 2 to 4 9.5, 7.9 and 1.4 against 5.7, 2.2 and
/// 1.8, of three components 9.7, 1.7 and 0.6 against 3.1, 1.7 and 1.2, Stokes of degrees 2 and 3 9.1 and 1.9
/// against 2.8 and 1.6; on triangles of degrees 2 to 4 26 to 31 against 10 to 24.
pub(super) fn transpose(
    form: &PointForm,
    elements: &Elements,
    plans: Vec<Plan>,
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let (most, batches, forced) = match wishes.strategy {
        Some(Strategy::ThreadTransposition { blocks, batches }) => (blocks, batches, true),
        Some(Strategy::ThreadPerDof) => return per_dof(form, elements, plans, wishes),
        Some(_) => return Ok(plans),
        None => (0, 0, false),
    };
    let batches = if batches == 0 { BATCHES } else { batches };
    let degree = elements.largest();
    if !forced && (elements.cell != Cell::Tetrahedron || degree < 4) {
        return Ok(plans);
    }
    // The plans of one way, with each number of cells a batch that is worth a try.
    let with = |blocks: usize, room: usize, first: bool| -> Vec<Vec<Plan>> {
        let plans: Vec<Plan> = plans.iter().map(|plan| own(within(plan, room), first)).collect();
        let best = || cells(form, elements, &plans, blocks);
        let numbers = wishes.lanes.map_or_else(|| numbers_of_cells(best(), first), |n| vec![n]);
        // What bounds the registers of a thread with a cell says nothing of these.
        let residency = wishes.residency.unwrap_or(1);
        let one = |plan: &Plan, cells: usize| {
            let plan = with_slots(transposed(plan, blocks, batches, cells), elements, wishes);
            Plan { residency, in_order: wishes.in_order.unwrap_or(false), ..plan }
        };
        let all = |cells: usize| plans.iter().map(|plan| one(plan, cells)).collect();
        numbers.into_iter().map(all).collect()
    };
    let possible = |plans: &[Plan]| plans.iter().try_for_each(|plan| check(form, elements, plan));
    // As many blocks as were asked for, or the most that there is room for.
    let numbers = if most > 0 { most..=most } else { 1..=blocks(form, elements) };
    let usual = numbers.clone().rev().map(|blocks| (blocks, SHARED_BYTES));
    let candidates: Vec<(usize, usize)> = usual.chain([(*numbers.start(), usize::MAX)]).collect();
    let first = sums_first(elements, wishes);
    let mut refused = None;
    // Where cells sum first, as many of them as do well so, or else as there is room for; and if there is none, and
    // nobody asked for it, they do not sum first.
    for first in if first && wishes.scatter.is_none() { vec![true, false] } else { vec![first] } {
        for &(blocks, room) in &candidates {
            for candidate in with(blocks, room, first) {
                match possible(&candidate) {
                    Ok(()) => return Ok(candidate),
                    Err(error) => refused = Some(error),
                }
            }
        }
    }
    match refused.filter(|_| forced) {
        Some(error) => Err(error),
        None => Ok(plans),
    }
}

/// The plan with shared memory of at most `room` bytes: what every device has leaves space for several
/// groups on a processor, and what one device has beyond is for cells that fit in no less.
fn within(plan: &Plan, room: usize) -> Plan {
    Plan { shared_bytes: plan.shared_bytes.min(room), ..plan.clone() }
}

/// The plan with the scatter that it has if threads first own points: what cells with a thread each have may differ.
fn own(plan: Plan, sums_first: bool) -> Plan {
    let atomic = matches!(plan.scatter, Scatter::Atomic | Scatter::Block);
    let scatter = match plan.scatter {
        _ if atomic && sums_first => Scatter::Block,
        Scatter::Block => Scatter::Atomic,
        other => other,
    };
    Plan { scatter, slots: Vec::new(), ..plan }
}

/// Numbers of cells a batch, the best first: as many as keep threads busy, or where they sum first as many of these as do that
/// well, and then fewer, for slots take room.
fn numbers_of_cells(best: usize, first: bool) -> Vec<usize> {
    if !first {
        return vec![best];
    }
    let more = [SUMMING, SUMMING / 2, SUMMING / 4].map(|least| best * least.div_ceil(best));
    let fewer = [1, 2, 4, 8].map(|part| best.div_ceil(part));
    more.into_iter().chain(fewer).collect()
}

/// Whether a plan reads what another has stored at the points.
fn reads_stored(plan: &Plan) -> bool {
    plan.geometry == Geometry::Stored || plan.linearisation == Linearisation::Stored
}

/// The plans with a thread a node where that is possible. What is stored for them has their batches.
fn per_dof(
    form: &PointForm,
    elements: &Elements,
    plans: Vec<Plan>,
    wishes: &Wishes,
) -> Result<Vec<Plan>, PlanError> {
    let with = |plan: &Plan, cells: usize| {
        let residency = wishes.residency.unwrap_or(1);
        let in_order = wishes.in_order.unwrap_or(false);
        let plan = Plan { residency, in_order, ..thread_per_dof::per_dof(plan, cells) };
        let usual = within(&plan, SHARED_BYTES);
        let able = check(form, elements, &usual).map(|()| usual);
        able.or_else(|_| check(form, elements, &plan).map(|()| plan))
    };
    let able: Vec<Plan> = plans.iter().filter_map(|plan| with(plan, 1).ok()).collect();
    if able.is_empty()
        && let Some(refused) = plans.iter().find_map(|plan| with(plan, 1).err())
    {
        return Err(refused);
    }
    let cells = thread_per_dof::cells(form, elements, &able);
    let cells = wishes.lanes.unwrap_or(cells);
    let one = |plan: Plan| match (with(&plan, cells), plan.task) {
        (Ok(able), _) => able,
        (Err(_), Task::Linearise | Task::Metric) => Plan { lanes: cells, ..plan },
        (Err(_), _) if reads_stored(&plan) => Plan { lanes: cells, ..plan },
        (Err(_), _) => plan,
    };
    Ok(plans.into_iter().map(one).collect())
}
