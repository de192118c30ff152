//! Selection of thread transposition (threads first own points, then basis functions) or of a thread per node: plans →
//! the same with these strategies.

use super::PlanOverrides;
use super::slots::{sums_first, with_slots};
use super::tuning::{HOPPER, Sizes};
use crate::abi::SHARED_BYTES;
use crate::lower::facts::KernelFacts;
use crate::plan::components::{is_bent, with_components};
use crate::plan::{Elements, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Task};
use crate::strategy::check;
use crate::strategy::thread_transposition::{Layout, bytes_of_cell};
use fem_dsl::point::PointForm;

/// Returns the plans with thread transposition, on request or if it is fastest. They share one number of cells per
/// batch, since they read the same tables of a mesh.
pub(super) fn transpose(
    form: &PointForm,
    elements: &Elements,
    plans: Vec<Plan>,
    overrides: &PlanOverrides,
) -> Result<Vec<Plan>, PlanError> {
    let (most, batches, forced) = match overrides.strategy {
        Some(Strategy::ThreadTransposition { blocks, batches }) => (blocks, batches, true),
        Some(Strategy::ThreadPerDof) => return with_nodes(form, elements, plans, overrides),
        Some(_) => return Ok(plans),
        None => (0, 0, false),
    };
    let batches = if batches == 0 { HOPPER.batches } else { batches };
    if !forced && !HOPPER.transposes.at(&Sizes::new(form, elements)) {
        return Ok(plans);
    }
    // Cells with hanging nodes keep their strategy.
    let (hanging, plans): (Vec<Plan>, Vec<Plan>) = plans.into_iter().partition(|plan| plan.hanging);
    // The plans of one variant, with each candidate number of cells per batch.
    let with = |blocks: usize, room: usize, first: bool| -> Vec<Vec<Plan>> {
        let plans: Vec<Plan> = plans.iter().map(|plan| own(within(plan, room), first)).collect();
        let best = || cells_of_points(form, elements, &plans, blocks);
        let numbers = overrides.lanes.map_or_else(|| numbers_of_cells(best(), first), |n| vec![n]);
        // The register bound of a thread per cell does not apply to these.
        let residency = overrides.residency.unwrap_or(1);
        let one = |plan: &Plan, cells: usize| {
            let plan = with_slots(transposed(plan, blocks, batches, cells), elements, overrides);
            Plan { residency, in_order: overrides.in_order.unwrap_or(false), ..plan }
        };
        let all = |cells: usize| plans.iter().map(|plan| one(plan, cells)).collect();
        numbers.into_iter().map(all).collect()
    };
    let possible = |plans: &[Plan]| plans.iter().try_for_each(|plan| check(form, elements, plan));
    // The requested number of blocks, or the most that fit.
    let numbers = if most > 0 { most..=most } else { 1..=blocks(form, elements) };
    let usual = numbers.clone().rev().map(|blocks| (blocks, SHARED_BYTES));
    let candidates: Vec<(usize, usize)> = usual.chain([(*numbers.start(), usize::MAX)]).collect();
    let first = sums_first(form, elements, overrides) && !elements.are_vector_valued();
    let mut refused = None;
    // If cells sum first: the best number of such cells, or else the most that fit. If none fit and it was not
    // requested, they do not sum first.
    for first in if first && overrides.scatter.is_none() { vec![true, false] } else { vec![first] }
    {
        for &(blocks, room) in &candidates {
            for candidate in with(blocks, room, first) {
                match possible(&candidate) {
                    Ok(()) => return Ok([candidate, hanging].concat()),
                    Err(error) => refused = Some(error),
                }
            }
        }
    }
    match refused.filter(|_| forced) {
        Some(error) => Err(error),
        None => Ok([plans, hanging].concat()),
    }
}

/// Returns the plan with at most `room` bytes of shared memory. The shared memory of every device leaves space for
/// several groups per multiprocessor; more is for cells that do not fit into less.
fn within(plan: &Plan, room: usize) -> Plan {
    Plan { shared_bytes: plan.shared_bytes.min(room), ..plan.clone() }
}

/// Returns the plan with its scatter algorithm for threads that first own points, which may differ from that of a
/// thread per cell.
fn own(plan: Plan, sums_first: bool) -> Plan {
    let atomic = matches!(plan.scatter, Scatter::Atomic | Scatter::Block);
    let scatter = match plan.scatter {
        _ if atomic && sums_first => Scatter::Block,
        Scatter::Block => Scatter::Atomic,
        other => other,
    };
    Plan { scatter, slots: Vec::new(), ..plan }
}

/// Returns candidate numbers of cells per batch, the best first. These are as many as keep threads busy (also when they
/// sum first, if these perform well), then fewer, because slots take shared memory.
fn numbers_of_cells(best: usize, first: bool) -> Vec<usize> {
    if !first {
        return vec![best];
    }
    let most = HOPPER.cells_summing;
    let more = [most, most / 2, most / 4].map(|least| best * least.div_ceil(best));
    let fewer = [1, 2, 4, 8].map(|part| best.div_ceil(part));
    more.into_iter().chain(fewer).collect()
}

/// Returns whether a plan reads values that another kernel has stored at the points.
fn reads_stored(plan: &Plan) -> bool {
    plan.geometry == Geometry::Stored || plan.linearisation == Linearisation::Stored
}

/// Returns the plans with a thread per node, if possible. Kernels that store their input use the same batches.
fn with_nodes(
    form: &PointForm,
    elements: &Elements,
    plans: Vec<Plan>,
    overrides: &PlanOverrides,
) -> Result<Vec<Plan>, PlanError> {
    let with = |plan: &Plan, cells: usize| {
        let residency = overrides.residency.unwrap_or(1);
        let in_order = overrides.in_order.unwrap_or(false);
        let plan = Plan { residency, in_order, ..per_dof(plan, cells) };
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
    let cells = cells_of_nodes(form, elements, &able);
    let cells = overrides.lanes.unwrap_or(cells);
    let one = |plan: Plan| match (with(&plan, cells), plan.task) {
        (Ok(able), _) => able,
        (Err(_), Task::Linearise | Task::Metric) => Plan { lanes: cells, ..plan },
        (Err(_), _) if reads_stored(&plan) => Plan { lanes: cells, ..plan },
        (Err(_), _) => plan,
    };
    Ok(plans.into_iter().map(one).collect())
}

/// Returns the cells for a group of about 128 threads, limited by shared memory.
pub fn cells_of_nodes(form: &PointForm, elements: &Elements, plans: &[Plan]) -> usize {
    let threads = elements.rule.count().max(1);
    let fits = |cells: usize| {
        let mut plans = plans.iter().map(|plan| per_dof(plan, cells));
        plans.all(|plan| check(form, elements, &plan).is_ok())
    };
    let most = (128 / threads).max(1);
    (1..=most).rev().find(|&cells| fits(cells)).unwrap_or(1)
}

/// Returns the same plan with a thread per node, for groups of `cells` cells.
pub fn per_dof(plan: &Plan, cells: usize) -> Plan {
    let strategy = Strategy::ThreadPerDof;
    Plan { strategy, lanes: cells, block: 1, ..plan.clone() }
}

/// Returns the blocks per batch for groups of about 128 threads.
fn blocks(form: &PointForm, elements: &Elements) -> usize {
    let one = Layout::block(form, elements);
    (128 / one).max(1)
}

/// Returns the best number of cells per batch for `blocks` blocks of threads. It is the number that keeps all threads
/// busy, limited by shared memory (without slots). The kernels of `plans` read data stored by one another, so that
/// their batches agree.
pub fn cells_of_points(
    form: &PointForm,
    elements: &Elements,
    plans: &[Plan],
    blocks: usize,
) -> usize {
    let room = |plan: &Plan| {
        let (form, elements) =
            with_components(form, elements, (plan.integral, is_bent(elements.cell, plan)));
        plan.shared_bytes / bytes_of_cell(&KernelFacts::new(&form, &elements, plan)).max(1)
    };
    let most = plans.iter().map(room).min().unwrap_or(1);
    Layout::new(form, elements, blocks, 1).best_cells(most.max(1))
}

/// Returns the same plan with threads that first own points, then basis functions.
pub fn transposed(plan: &Plan, blocks: usize, batches: usize, cells: usize) -> Plan {
    let strategy = Strategy::ThreadTransposition { blocks, batches };
    Plan { strategy, lanes: cells, block: 1, ..plan.clone() }
}
