//! The point function: a `PointForm`'s scalar graph as kernel IR.

use crate::kir::ValueId;
use crate::kir::build::Builder;
use fem_dsl::arena::IndexVec;
use fem_dsl::point::{Binary, Graph, Input, Node, NodeId, Unary};

/// Values of the graph nodes lowered so far.
#[derive(Clone)]
pub(crate) struct LoweredValues {
    values: IndexVec<NodeId, Option<ValueId>>,
}

impl LoweredValues {
    /// Creates an empty map.
    pub(crate) fn new(graph: &Graph) -> Self {
        Self { values: graph.nodes().iter().map(|_| None).collect() }
    }

    /// Returns the value of a lowered node.
    pub(crate) fn get(&self, node: NodeId) -> Option<ValueId> {
        self.values[node]
    }

    /// Lowers the nodes that `outputs` need; `supply` provides the inputs. With `only`, nodes for which it is false are
    /// skipped (parts that do not depend on the point are lowered first, outside loops).
    pub(crate) fn lower<H: AsMut<Builder>>(
        &mut self,
        host: &mut H,
        graph: &Graph,
        outputs: &[NodeId],
        only: Option<&IndexVec<NodeId, bool>>,
        mut supply: impl FnMut(&mut H, Input) -> ValueId,
    ) {
        let needed = needed(graph, outputs);
        let uses = use_counts(graph, &needed);
        let fused = match only {
            None => fused_elsewhere(graph, &needed, &uses, outputs),
            Some(_) => IndexVec::new(),
        };
        for (id, node) in graph.nodes().iter_enumerated() {
            if !needed[id] || self.values[id].is_some() || only.is_some_and(|only| !only[id]) {
                continue;
            }
            if fused.get(id).is_some_and(|fused| *fused) {
                continue;
            }
            let value = match *node {
                Node::Input(input) => supply(host, input),
                node => self.operation(host.as_mut(), graph, node, &uses),
            };
            self.values[id] = Some(value);
        }
    }

    fn at(&mut self, b: &mut Builder, graph: &Graph, id: NodeId) -> ValueId {
        if let Some(value) = self.values[id] {
            return value;
        }
        // Only a product for a fused multiply-add can be missing, and its operands exist.
        let Node::Binary(Binary::Mul, x, y) = graph.nodes()[id] else {
            unreachable!("operands should be lowered before their node")
        };
        let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
        let value = b.mul(x, y);
        self.values[id] = Some(value);
        value
    }

    /// Returns the factors of a product that is used once and not lowered: it becomes part of a fused multiply-add.
    fn product(
        &self,
        graph: &Graph,
        id: NodeId,
        uses: &IndexVec<NodeId, u32>,
    ) -> Option<(ValueId, ValueId)> {
        if self.values[id].is_some() || uses[id] != 1 {
            return None;
        }
        match graph.nodes()[id] {
            Node::Binary(Binary::Mul, x, y) => Some((self.values[x]?, self.values[y]?)),
            _ => None,
        }
    }

    fn operation(
        &mut self,
        b: &mut Builder,
        graph: &Graph,
        node: Node,
        uses: &IndexVec<NodeId, u32>,
    ) -> ValueId {
        match node {
            Node::Constant(number) => b.constant(number.get()),
            Node::Input(_) => unreachable!("inputs should be supplied"),
            Node::Unary(function, x) => {
                let x = self.at(b, graph, x);
                b.unary(function, x)
            }
            Node::Binary(Binary::Add, x, y) => {
                if let Some((p, q)) = self.product(graph, y, uses) {
                    let x = self.at(b, graph, x);
                    b.fma(p, q, x)
                } else if let Some((p, q)) = self.product(graph, x, uses) {
                    let y = self.at(b, graph, y);
                    b.fma(p, q, y)
                } else {
                    let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                    b.add(x, y)
                }
            }
            Node::Binary(Binary::Sub, x, y) => {
                if let Some((p, q)) = self.product(graph, y, uses) {
                    let x = self.at(b, graph, x);
                    b.fma_neg(p, q, x)
                } else if let Some((p, q)) = self.product(graph, x, uses) {
                    let y = self.at(b, graph, y);
                    let minus = b.unary(Unary::Neg, y);
                    b.fma(p, q, minus)
                } else {
                    let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                    b.sub(x, y)
                }
            }
            Node::Binary(function, x, y) => {
                let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                b.binary(function, x, y)
            }
            Node::Powi(x, exponent) => {
                let x = self.at(b, graph, x);
                b.powi(x, exponent)
            }
            Node::Compare(comparison, x, y) => {
                let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                b.compare(comparison, x, y)
            }
            Node::And(x, y) => {
                let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                b.and(x, y)
            }
            Node::Or(x, y) => {
                let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                b.or(x, y)
            }
            Node::Not(x) => {
                let x = self.at(b, graph, x);
                b.not(x)
            }
            Node::Select(c, x, y) => {
                let c = self.at(b, graph, c);
                let (x, y) = (self.at(b, graph, x), self.at(b, graph, y));
                b.select(c, x, y)
            }
        }
    }
}

/// Returns the nodes that the outputs need.
pub(crate) fn needed(graph: &Graph, outputs: &[NodeId]) -> IndexVec<NodeId, bool> {
    let mut needed: IndexVec<NodeId, bool> = graph.nodes().iter().map(|_| false).collect();
    for &output in outputs {
        needed[output] = true;
    }
    for id in graph.nodes().ids().rev() {
        if needed[id] {
            for operand in graph.nodes()[id].operands() {
                needed[operand] = true;
            }
        }
    }
    needed
}

fn use_counts(graph: &Graph, needed: &IndexVec<NodeId, bool>) -> IndexVec<NodeId, u32> {
    let mut uses: IndexVec<NodeId, u32> = graph.nodes().iter().map(|_| 0).collect();
    for (id, node) in graph.nodes().iter_enumerated() {
        if needed[id] {
            for operand in node.operands() {
                uses[operand] += 1;
            }
        }
    }
    uses
}

/// Returns the products whose single use is a sum that absorbs them in a fused multiply-add.
fn fused_elsewhere(
    graph: &Graph,
    needed: &IndexVec<NodeId, bool>,
    uses: &IndexVec<NodeId, u32>,
    outputs: &[NodeId],
) -> IndexVec<NodeId, bool> {
    let mut fused: IndexVec<NodeId, bool> = graph.nodes().iter().map(|_| false).collect();
    for (user, node) in graph.nodes().iter_enumerated() {
        if let Node::Binary(Binary::Add | Binary::Sub, x, y) = *node
            && needed[user]
        {
            for part in [x, y] {
                let product = matches!(graph.nodes()[part], Node::Binary(Binary::Mul, ..));
                fused[part] |= product && uses[part] == 1;
            }
        }
    }
    for &output in outputs {
        fused[output] = false;
    }
    fused
}

#[cfg(test)]
mod tests;
