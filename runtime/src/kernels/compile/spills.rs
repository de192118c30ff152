//! What spills → other plans: a device says how many bytes of a thread its compiler found no registers for.
//!
//! First the order of the text is tried, then, for threads with a line each, fewer groups a multiprocessor. What the plan, or
//! whoever asked for it, has named stays as it is.

use kernels_gen::abi::registers;
use kernels_gen::choose::Wishes;
use kernels_gen::plan::{Plan, Strategy, Task};

/// Bytes that a thread may keep in memory for want of registers: twenty spilt doubles cost less than the groups of
/// threads that they make room for (BP3 at degree 5 on an H200), more cost more.
const SPILLS: usize = 192;

/// Beyond so many bytes it is tried whether the order of the text takes fewer registers. Where it takes half the bytes
/// and less, kernels by lines gain 2 to 6 % (BP3 and Poisson with Gauss points on 7 points, on an H200); where it takes
/// about as many, they lose up to 10 %. Several groups of threads with a cell each gain with every byte: three Laplacians
/// of degree 1 on 8 points 8 % with 160 bytes instead of 224.
const MANY: usize = 96;

/// What has been tried of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    /// What was planned.
    Planned,
    /// Besides, the order of the text; so many bytes were spilt without.
    InOrder(usize),
    /// All that is worth it.
    Enough,
}

/// What has been tried of the plans of an operator.
pub(super) struct Spills {
    tried: Vec<Tried>,
    /// Whether the order may be chosen here.
    order: bool,
    /// Whether the number of groups may.
    groups: bool,
}

impl Spills {
    /// Of plans that have not been compiled.
    pub(super) fn new(plans: &[Plan], wishes: &Wishes) -> Self {
        let (order, groups) = (wishes.in_order.is_none(), wishes.residency.is_none());
        Self { tried: vec![Tried::Planned; plans.len()], order, groups }
    }

    /// Makes other plans for kernels with so many threads a group that spill so many bytes; whether there are any.
    pub(super) fn less(&mut self, plans: &mut [Plan], kernels: &[(usize, usize)]) -> bool {
        let mut changed = false;
        for ((plan, tried), &(threads, spilt)) in plans.iter_mut().zip(&mut self.tried).zip(kernels)
        {
            let before = (plan.in_order, plan.residency);
            let by_lines = matches!(plan.strategy, Strategy::ThreadPerLine { .. });
            let by_cells = plan.strategy == Strategy::CellPerLane && plan.residency > 1;
            if !(by_lines || by_cells) || !matches!(plan.task, Task::Residual | Task::Action) {
                continue;
            }
            let (left, tried_order) = match *tried {
                Tried::Enough => continue,
                Tried::Planned if self.order && !plan.in_order && spilt > MANY => {
                    plan.in_order = true;
                    *tried = Tried::InOrder(spilt);
                    changed = true;
                    continue;
                }
                Tried::Planned => (spilt, false),
                Tried::InOrder(free) => {
                    let most = if by_lines { free / 2 } else { free - 1 };
                    plan.in_order = spilt <= most;
                    (if plan.in_order { spilt } else { free }, true)
                }
            };
            *tried = Tried::Enough;
            // Fewer groups, as far as they have more registers.
            let more =
                |groups: &usize| registers(threads, *groups) > registers(threads, plan.residency);
            let fewer = (1..plan.residency).rev().find(more);
            if let Some(fewer) = fewer.filter(|_| by_lines && self.groups && left > SPILLS) {
                plan.residency = fewer;
                plan.in_order &= !tried_order;
                *tried = Tried::Planned;
            }
            changed |= before != (plan.in_order, plan.residency);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::vector::Precision;
    use kernels_gen::plan::{Geometry, Target};

    const LINES: Strategy = Strategy::ThreadPerLine { cells: 3 };

    fn plan(task: Task, strategy: Strategy, residency: usize) -> Plan {
        let plan = Plan::new(Target::Threads, task, 1, Precision::F64, Geometry::Vertices);
        Plan { strategy, residency, ..plan }
    }

    /// What is planned in the end for groups of 128 threads that spill so many bytes with this residency and order.
    fn settled(from: Plan, wishes: &Wishes, spilt: impl Fn(usize, bool) -> usize) -> (usize, bool) {
        let mut plans = vec![from];
        let mut spills = Spills::new(&plans, wishes);
        for _ in 0..100 {
            let now = [(128, spilt(plans[0].residency, plans[0].in_order))];
            if !spills.less(&mut plans, &now) {
                return (plans[0].residency, plans[0].in_order);
            }
        }
        panic!("it should settle");
    }

    #[test]
    fn lines_that_spill_are_planned_with_fewer_groups() {
        let from = |residency| plan(Task::Action, LINES, residency);
        let named = Wishes { residency: Some(6), ..Wishes::default() };
        // Neither order helps above four groups.
        let spilt = |residency: usize, _: bool| if residency > 4 { SPILLS + 8 } else { SPILLS };
        assert_eq!(settled(from(6), &Wishes::default(), spilt), (4, false));
        assert_eq!(settled(from(6), &named, spilt), (6, false));
        // With two groups a thread has all the registers that there are.
        assert_eq!(settled(from(6), &Wishes::default(), |_, _| 1000), (2, false));
        assert_eq!(settled(from(1), &Wishes::default(), |_, _| 1000), (1, false));
        assert_eq!(settled(plan(Task::Diagonal, LINES, 6), &Wishes::default(), spilt), (6, false));
        let cells = |groups: usize| plan(Task::Action, Strategy::CellPerLane, groups);
        assert_eq!(settled(cells(6), &Wishes::default(), spilt), (6, false));
    }

    #[test]
    fn the_order_of_the_text_is_kept_where_it_spills_less() {
        let from = || plan(Task::Residual, LINES, 3);
        let order =
            |bytes: usize| move |_: usize, in_order: bool| if in_order { bytes } else { 160 };
        assert_eq!(settled(from(), &Wishes::default(), order(64)), (3, true));
        assert_eq!(settled(from(), &Wishes::default(), order(80)), (3, true));
        assert_eq!(settled(from(), &Wishes::default(), order(88)), (3, false));
        assert_eq!(
            settled(from(), &Wishes::default(), |_, order| if order { 0 } else { MANY }),
            (3, false)
        );
        let cells = |groups: usize| plan(Task::Action, Strategy::CellPerLane, groups);
        assert_eq!(settled(cells(3), &Wishes::default(), order(152)), (3, true));
        assert_eq!(settled(cells(1), &Wishes::default(), order(152)), (1, false));
        // Planned or asked for, it stays.
        let planned = || Plan { in_order: true, ..from() };
        assert_eq!(settled(planned(), &Wishes::default(), order(88)), (3, true));
        assert_eq!(settled(planned(), &Wishes::default(), order(SPILLS + 8)), (2, true));
        let asked = Wishes { in_order: Some(false), ..Wishes::default() };
        assert_eq!(settled(from(), &asked, order(0)), (3, false));
    }
}
