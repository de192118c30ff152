//! Runs the chunks of a partition, on one thread or many, with the same result.

use crate::partition::Partition;
use rayon::Scope;
use std::sync::atomic::{AtomicU32, Ordering};

/// Calls `run` for each chunk, a chunk only after its neighbours that come before it in execution
/// order. On one thread that is execution order itself.
pub(super) fn execute(partition: &Partition, run: impl Fn(usize) + Sync) {
    let n = partition.chunks().len();
    if n <= 1 || rayon::current_num_threads() == 1 {
        (0..n).for_each(run);
        return;
    }
    let waiting: Vec<AtomicU32> =
        (0..n).map(|chunk| AtomicU32::new(partition.before(chunk).len() as u32)).collect();
    let state = State { partition, waiting: &waiting, run: &run };
    rayon::scope(|scope| {
        // The last task spawned is the first that this thread takes.
        for chunk in (0..n).rev().filter(|&chunk| partition.before(chunk).is_empty()) {
            scope.spawn(move |scope| state.visit(scope, chunk));
        }
    });
}

/// What all tasks share.
struct State<'s, F> {
    partition: &'s Partition,
    /// For each chunk how many neighbours it waits for.
    waiting: &'s [AtomicU32],
    run: &'s F,
}

impl<F> Clone for State<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for State<'_, F> {}

impl<'s, F: Fn(usize) + Sync> State<'s, F> {
    fn visit(self, scope: &Scope<'s>, chunk: usize) {
        (self.run)(chunk);
        for &next in self.partition.after(chunk).iter().rev() {
            // The last neighbour to finish sees what all of them wrote.
            if self.waiting[next as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                scope.spawn(move |scope| self.visit(scope, next as usize));
            }
        }
    }
}
