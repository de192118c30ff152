//! Nodes in aggregates: a graph of strong connections → an aggregate for each node (Vaněk, Mandel and Brezina 1996, algorithm 5.1).
//!
//! 1. A node with no strong neighbour in an aggregate makes one with all of them.
//! 2. What is left joins the aggregate, of those so far, of its strongest neighbour; a node without strong neighbours that of the
//!    strongest weak one, so that constants have no holes where coefficients jump.
//! 3. What is left then makes aggregates with the strong neighbours that are left.

use super::strength::Graph;

/// No aggregate.
pub(super) const NONE: u32 = u32::MAX;

/// The aggregate of each node and how many there are; nodes that are not `free` have [`NONE`].
pub(super) fn aggregate(graph: &Graph, free: &[bool]) -> (Vec<u32>, usize) {
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
        let there = graph.around(node).filter(|(at, _)| first[*at] != NONE);
        // Of equally strong ones the first.
        let best = there.fold(None, |best: Option<(usize, f64)>, next| match best {
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
