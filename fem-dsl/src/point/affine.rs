//! Residuals that are affine in the state.
//!
//! The derivative alone is not sufficient: that of `if u < 1 { 2 } else { 0.5 }` is 0, although the value jumps at u
//! = 1. A residual is affine if its derivative does not depend on the state and no condition in it does.

use super::{Coefficient, Graph, Input, Node, NodeId, Slot, Unary, reachable};
use crate::arena::IndexVec;

/// Returns whether a residual with this derivative is affine in the state.
pub(crate) fn is_affine(
    graph: &Graph,
    residual: &[(Slot, NodeId)],
    jacobian: &[Coefficient],
) -> bool {
    let mut depends = IndexVec::<NodeId, bool>::new();
    for node in graph.nodes() {
        let own = matches!(node, Node::Input(Input::State(_)));
        let value = own || node.operands().any(|operand| depends[operand]);
        depends.push(value);
    }
    let switches = |node: NodeId| match graph.nodes()[node] {
        Node::Select(condition, ..) | Node::Unary(Unary::Sign, condition) => depends[condition],
        _ => false,
    };
    let roots: Vec<NodeId> = residual.iter().map(|(_, node)| *node).collect();
    jacobian.iter().all(|entry| !depends[entry.value])
        && !reachable(graph, &roots).into_iter().any(switches)
}

#[cfg(test)]
mod tests {
    use crate::program::compile;
    use crate::source::Source;

    fn is_linear(rows: &str) -> bool {
        let text = format!("form f {{ field u: scalar; param a = 2; {rows} }}");
        let (program, found) = compile(&Source::new("test", &text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let form = program.point_form("f", 2).expect("a form");
        form.integrals.iter().all(|integral| integral.linear)
    }

    #[test]
    fn linear_means_affine() {
        assert!(is_linear("f0[u] = u - a;"));
        assert!(is_linear("f0[u] = u - (if x[0] < 1 { 2 } else { 0.5 });"));
        assert!(is_linear("f0[u] = u - sign(x[0] - a);"));
        // Derivatives that do not depend on u, and values that jump with it.
        assert!(!is_linear("f0[u] = u - (if u < 1 { 2 } else { 0.5 });"));
        assert!(!is_linear("f0[u] = u; f1[u] = grad(u) + sign(u - a) * x;"));
        assert!(!is_linear("energy = u^2 / 2 + (if u > a { 3 * u } else { u });"));
        assert!(!is_linear("f0[u] = u^2;"));
    }
}
