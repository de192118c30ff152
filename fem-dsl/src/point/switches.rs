//! A form → its functions that switch with the solution: `max`, `min`, `if`, `abs`, `sign`.

use super::{Binary, Input, Node, NodeId, PointForm, Unary, reachable};
use std::collections::BTreeSet;

/// Returns the functions of a residual whose value or derivative jumps at some state, in the notation of the language.
pub fn switches(form: &PointForm) -> Vec<&'static str> {
    let mut found = BTreeSet::new();
    for of in &form.integrals {
        let depends = of.depends_on(|input| matches!(input, Input::State(_)));
        let roots: Vec<NodeId> = of.residual.iter().map(|(_, node)| *node).collect();
        for id in reachable(&of.graph, &roots) {
            let node = of.graph.nodes()[id];
            if node.operands().any(|operand| depends[operand]) {
                found.extend(switch(node));
            }
        }
    }
    found.into_iter().collect()
}

/// Returns the first parameter that multiplies a function that switches with the solution, such as the stiffness of a
/// contact.
pub fn factor_of_switches(form: &PointForm) -> Option<usize> {
    form.integrals.iter().find_map(|of| {
        let nodes = of.graph.nodes();
        let depends = of.depends_on(|input| matches!(input, Input::State(_)));
        let roots: Vec<NodeId> = of.residual.iter().map(|(_, node)| *node).collect();
        let mut switched = BTreeSet::new();
        reachable(&of.graph, &roots).into_iter().find_map(|id| {
            let node = nodes[id];
            let own = switch(node).is_some() && node.operands().any(|operand| depends[operand]);
            if own || node.operands().any(|operand| switched.contains(&operand)) {
                switched.insert(id);
            }
            let Node::Binary(Binary::Mul, a, b) = node else { return None };
            let factor = match (switched.contains(&a), switched.contains(&b)) {
                (true, false) => b,
                (false, true) => a,
                _ => return None,
            };
            reachable(&of.graph, &[factor]).into_iter().find_map(|id| match nodes[id] {
                Node::Input(Input::Param(param, 0)) => Some(param),
                _ => None,
            })
        })
    })
}

fn switch(node: Node) -> Option<&'static str> {
    match node {
        Node::Binary(Binary::Max, ..) => Some("max"),
        Node::Binary(Binary::Min, ..) => Some("min"),
        Node::Unary(Unary::Abs, _) => Some("abs"),
        Node::Unary(Unary::Sign, _) => Some("sign"),
        Node::Compare(..) => Some("if"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{factor_of_switches, switches};
    use crate::point::PointForm;
    use crate::program::compile;
    use crate::source::Source;

    fn form(f0: &str) -> PointForm {
        let text = format!(
            "form f {{ field u: scalar; param a = 2; param c = 3; f0[u] = a * u + {f0}; f1[u] = grad(u); }}"
        );
        let (program, found) = compile(&Source::new("test", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        program.point_form("f", 2).expect("a form")
    }

    fn of(f0: &str) -> Vec<&'static str> {
        switches(&form(f0))
    }

    #[test]
    fn switches_of_the_solution_are_found() {
        assert_eq!(of("max(u, 0) + min(u, 1)"), ["max", "min"]);
        assert_eq!(of("if u < 1 { u } else { 1 }"), ["if"]);
        assert_eq!(of("abs(u) + u * sign(u - 1)"), ["abs", "sign"]);
        let stiffness = form("c * max(-0.1 - u, 0) * x[0]");
        assert_eq!(factor_of_switches(&stiffness), Some(1));
        assert_eq!(factor_of_switches(&form("c * u^3")), None);
        assert!(of("u^3 * max(x[0], 0.5) - if x[1] < 0.5 { 1 } else { 2 }").is_empty());
    }
}
