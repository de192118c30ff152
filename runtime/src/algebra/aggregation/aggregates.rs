//! Aggregation of nodes along a graph of strong connections (Vaněk, Mandel and Brezina 1996, algorithm 5.1).
//!
//! 1. A node without a strong neighbour in an aggregate forms one with all its strong neighbours.
//! 2. A remaining node joins the existing aggregate of its strongest neighbour. A node without strong neighbours joins
//!    that of the strongest weak one, so that constants have no gaps at coefficient jumps.
//! 3. The rest forms aggregates with its remaining strong neighbours.

use super::strength::StrengthGraph;

/// Marks nodes outside all aggregates.
pub(super) const NONE: u32 = u32::MAX;

/// Returns the aggregate of each node, and the number of aggregates; nodes that are not `free` have [`NONE`].
pub(super) fn aggregate(graph: &StrengthGraph, free: &[bool]) -> (Vec<u32>, usize) {
    let mut of = vec![NONE; free.len()];
    let mut count = 0;
    let nodes = || (0..free.len()).filter(|&node| free[node]);
    for node in nodes() {
        let mut around = graph.strong(node).peekable();
        if of[node] != NONE || around.peek().is_none() || around.any(|(at, _)| of[at] != NONE) {
            continue;
        }
        of[node] = count;
        graph.strong(node).filter(|(at, _)| free[*at]).for_each(|(at, _)| of[at] = count);
        count += 1;
    }
    let first = of.clone();
    for node in nodes().filter(|&node| first[node] == NONE) {
        let grouped = graph.around(node).filter(|(at, _)| first[*at] != NONE);
        // Ties go to the first.
        let best = grouped.fold(None, |best: Option<(usize, f64)>, next| match best {
            Some(best) if best.1 >= next.1 => Some(best),
            _ => Some(next),
        });
        let alone = || graph.strong(node).next().is_none();
        if let Some((at, square)) = best
            && (square > graph.bound || alone())
        {
            of[node] = first[at];
        }
    }
    for node in nodes() {
        if of[node] != NONE {
            continue;
        }
        of[node] = count;
        for (at, _) in graph.strong(node) {
            if of[at] == NONE && free[at] {
                of[at] = count;
            }
        }
        count += 1;
    }
    (of, count as usize)
}
