//! Cost of a view of a `PointForm` at one point, in arithmetic operations.

use super::traverse::reachable;
use super::{Binary, Graph, Node, NodeId, Unary};
use std::fmt;

/// Scalar operations by kind. Signs count as additions; comparisons, logic and selections as
/// choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationCount {
    /// Additions, subtractions and changes of sign.
    pub additions: usize,
    /// Multiplications.
    pub multiplications: usize,
    /// Divisions.
    pub divisions: usize,
    /// Square roots.
    pub roots: usize,
    /// Other functions and general powers.
    pub functions: usize,
    /// Comparisons, logic, selections, |a|, sign, min and max.
    pub choices: usize,
}

impl OperationCount {
    /// Returns the sum of all kinds.
    pub fn total(self) -> usize {
        self.additions
            + self.multiplications
            + self.divisions
            + self.roots
            + self.functions
            + self.choices
    }

    /// Returns the sum weighted by the cost relative to an addition on current CPUs.
    pub fn weight(self) -> usize {
        self.additions
            + self.multiplications
            + self.choices
            + 8 * (self.divisions + self.roots)
            + 20 * self.functions
    }
}

impl fmt::Display for OperationCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { additions, multiplications, divisions, roots, functions, choices } = self;
        write!(f, "{additions} +, {multiplications} ×, {divisions} ÷, {roots} √, ")?;
        write!(f, "{functions} functions, {choices} choices")
    }
}

/// Counts the operations on which `roots` depend, each once.
pub fn operation_count(graph: &Graph, roots: &[NodeId]) -> OperationCount {
    let mut count = OperationCount::default();
    for id in reachable(graph, roots) {
        let kind = match graph.nodes()[id] {
            Node::Constant(_) | Node::Input(_) => continue,
            Node::Unary(Unary::Neg, _) | Node::Binary(Binary::Add | Binary::Sub, ..) => {
                &mut count.additions
            }
            Node::Binary(Binary::Mul, ..) => &mut count.multiplications,
            Node::Powi(_, n) => {
                let n = n.unsigned_abs();
                let squares = n.checked_ilog2().unwrap_or(0) + n.count_ones().saturating_sub(1);
                count.multiplications += squares as usize;
                continue;
            }
            Node::Binary(Binary::Div, ..) => &mut count.divisions,
            Node::Unary(Unary::Sqrt, _) => &mut count.roots,
            Node::Unary(Unary::Abs | Unary::Sign, _)
            | Node::Binary(Binary::Min | Binary::Max, ..)
            | Node::Compare(..)
            | Node::And(..)
            | Node::Or(..)
            | Node::Not(_)
            | Node::Select(..) => &mut count.choices,
            Node::Unary(..) | Node::Binary(Binary::Pow | Binary::Atan2, ..) => &mut count.functions,
        };
        *kind += 1;
    }
    count
}
