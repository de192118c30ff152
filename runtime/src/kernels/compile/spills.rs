//! Alternative plans for kernels with register spills, as reported by a device.
//!
//! First the assembler keeps the order of the text. Then kernels with one line per thread are planned with fewer groups
//! per multiprocessor. Choices in the plan or in the wishes are never changed.

use kernels_gen::abi::registers;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::plan::{Plan, Strategy, Task};

/// Acceptable spill bytes per thread: twenty spilled doubles cost less than the thread groups for which they make room
/// (BP3 at degree 5 on an H200); more cost more.
const SPILLS: usize = 192;

/// Spill bytes beyond which the order of the text is tried. With at most half the bytes, line kernels gain 2 to 6 %
/// (BP3 and Poisson with Gauss points on 7 points, on an H200); with about as many, they lose up to 10 %. Several
/// thread groups with one cell per thread gain with every byte: three Laplacians of degree 1 on 8 points gain 8 % with
/// 160 instead of 224 bytes.
const MANY: usize = 96;

/// Progress for a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpillAttempt {
    /// The original plan.
    Original,
    /// The order of the text; the original plan spilled this number of bytes.
    TextOrder(usize),
    /// All alternatives.
    Exhausted,
}

/// Progress for the plans of an operator.
pub(super) struct SpillAttempts {
    tried: Vec<SpillAttempt>,
    /// True if the order may be changed.
    order: bool,
    /// True if the number of groups may be changed.
    groups: bool,
}

impl SpillAttempts {
    /// Starts with plans that are not compiled yet.
    pub(super) fn new(plans: &[Plan], wishes: &PlanOverrides) -> Self {
        let (order, groups) = (wishes.in_order.is_none(), wishes.residency.is_none());
        Self { tried: vec![SpillAttempt::Original; plans.len()], order, groups }
    }

    /// Changes the plans of kernels, given their threads per group and spill bytes; returns whether any changed.
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
                SpillAttempt::Exhausted => continue,
                SpillAttempt::Original if self.order && !plan.in_order && spilt > MANY => {
                    plan.in_order = true;
                    *tried = SpillAttempt::TextOrder(spilt);
                    changed = true;
                    continue;
                }
                SpillAttempt::Original => (spilt, false),
                SpillAttempt::TextOrder(free) => {
                    let most = if by_lines { free / 2 } else { free - 1 };
                    plan.in_order = spilt <= most;
                    (if plan.in_order { spilt } else { free }, true)
                }
            };
            *tried = SpillAttempt::Exhausted;
            // Fewer groups, as long as this gives more registers.
            let more =
                |groups: &usize| registers(threads, *groups) > registers(threads, plan.residency);
            let fewer = (1..plan.residency).rev().find(more);
            if let Some(fewer) = fewer.filter(|_| by_lines && self.groups && left > SPILLS) {
                plan.residency = fewer;
                plan.in_order &= !tried_order;
                *tried = SpillAttempt::Original;
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

    /// Returns the final residency and order, for groups of 128 threads with given spill bytes.
    fn settled(
        from: Plan,
        wishes: &PlanOverrides,
        spilt: impl Fn(usize, bool) -> usize,
    ) -> (usize, bool) {
        let mut plans = vec![from];
        let mut spills = SpillAttempts::new(&plans, wishes);
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
        let named = PlanOverrides { residency: Some(6), ..PlanOverrides::default() };
        // Neither order helps above four groups.
        let spilt = |residency: usize, _: bool| if residency > 4 { SPILLS + 8 } else { SPILLS };
        assert_eq!(settled(from(6), &PlanOverrides::default(), spilt), (4, false));
        assert_eq!(settled(from(6), &named, spilt), (6, false));
        // With two groups a thread has the largest number of registers.
        assert_eq!(settled(from(6), &PlanOverrides::default(), |_, _| 1000), (2, false));
        assert_eq!(settled(from(1), &PlanOverrides::default(), |_, _| 1000), (1, false));
        assert_eq!(
            settled(plan(Task::Diagonal, LINES, 6), &PlanOverrides::default(), spilt),
            (6, false)
        );
        let cells = |groups: usize| plan(Task::Action, Strategy::CellPerLane, groups);
        assert_eq!(settled(cells(6), &PlanOverrides::default(), spilt), (6, false));
    }

    #[test]
    fn the_order_of_the_text_is_kept_where_it_spills_less() {
        let from = || plan(Task::Residual, LINES, 3);
        let order =
            |bytes: usize| move |_: usize, in_order: bool| if in_order { bytes } else { 160 };
        assert_eq!(settled(from(), &PlanOverrides::default(), order(64)), (3, true));
        assert_eq!(settled(from(), &PlanOverrides::default(), order(80)), (3, true));
        assert_eq!(settled(from(), &PlanOverrides::default(), order(88)), (3, false));
        assert_eq!(
            settled(from(), &PlanOverrides::default(), |_, order| if order { 0 } else { MANY }),
            (3, false)
        );
        let cells = |groups: usize| plan(Task::Action, Strategy::CellPerLane, groups);
        assert_eq!(settled(cells(3), &PlanOverrides::default(), order(152)), (3, true));
        assert_eq!(settled(cells(1), &PlanOverrides::default(), order(152)), (1, false));
        // A planned or requested order is kept.
        let planned = || Plan { in_order: true, ..from() };
        assert_eq!(settled(planned(), &PlanOverrides::default(), order(88)), (3, true));
        assert_eq!(settled(planned(), &PlanOverrides::default(), order(SPILLS + 8)), (2, true));
        let asked = PlanOverrides { in_order: Some(false), ..PlanOverrides::default() };
        assert_eq!(settled(from(), &asked, order(0)), (3, false));
    }
}
