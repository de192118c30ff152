//! Evaluation of a scalar graph at many points at once: one row of values per node.

use crate::arena::{Id, IndexVec};
use crate::arithmetic;
use crate::point::{Binary, Graph, Input, Node, NodeId, Unary};

/// Evaluates the nodes of a graph on which some roots depend, at many points.
///
/// ```
/// # use fem_dsl::{eval::Batch, point::{Binary, Graph, Input, Node}};
/// let mut graph = Graph::new();
/// let x = graph.intern(Node::Input(Input::Coordinate(0)));
/// let square = graph.intern(Node::Binary(Binary::Mul, x, x));
/// let mut batch = Batch::new(&graph, &[square]);
/// batch.run(3, |_, row| row.copy_from_slice(&[1.0, 2.0, 3.0]));
/// assert_eq!(batch.values(square), [1.0, 4.0, 9.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    graph: &'a Graph,
    order: Vec<NodeId>,
    rows: IndexVec<NodeId, usize>,
    values: Vec<f64>,
    points: usize,
}

impl<'a> Batch<'a> {
    /// Creates a batch for the nodes on which `roots` depend.
    pub fn new(graph: &'a Graph, roots: &[NodeId]) -> Self {
        let mut used: IndexVec<NodeId, bool> = graph.nodes().iter().map(|_| false).collect();
        for &root in roots {
            used[root] = true;
        }
        for (id, node) in graph.nodes().iter_enumerated().rev() {
            if used[id] {
                node.operands().for_each(|operand| used[operand] = true);
            }
        }
        let order: Vec<NodeId> = graph.nodes().ids().filter(|&id| used[id]).collect();
        let mut rows: IndexVec<NodeId, usize> = graph.nodes().iter().map(|_| usize::MAX).collect();
        for (row, &id) in order.iter().enumerate() {
            rows[id] = row;
        }
        Self { graph, order, rows, values: Vec::new(), points: 0 }
    }

    /// Evaluates at `points` points; `fill` writes an input's values at the points.
    pub fn run(&mut self, points: usize, mut fill: impl FnMut(Input, &mut [f64])) {
        self.points = points;
        self.values.resize(self.order.len() * points, 0.0);
        for (row, &id) in self.order.iter().enumerate() {
            let (done, rest) = self.values.split_at_mut(row * points);
            let operand = |id: NodeId| &done[self.rows[id] * points..][..points];
            let out = &mut rest[..points];
            match self.graph.nodes()[id] {
                Node::Input(input) => fill(input, out),
                node => operation(node, operand, out),
            }
        }
    }

    /// Returns the values of a node, one per point.
    ///
    /// # Panics
    ///
    /// Panics if no root depends on the node.
    pub fn values(&self, id: NodeId) -> &[f64] {
        let row = self.rows[id];
        assert!(row != usize::MAX, "node {} should be one on which a root rests", id.index());
        &self.values[row * self.points..][..self.points]
    }
}

fn truth(value: bool) -> f64 {
    f64::from(u8::from(value))
}

fn operation<'v>(node: Node, operand: impl Fn(NodeId) -> &'v [f64], out: &mut [f64]) {
    let one = |a: NodeId, out: &mut [f64], f: &dyn Fn(f64) -> f64| {
        out.iter_mut().zip(operand(a)).for_each(|(out, &a)| *out = f(a));
    };
    // The most common operations have their own loops, which vectorise.
    macro_rules! two {
        ($a:expr, $b:expr, $f:expr) => {
            for ((out, &a), &b) in out.iter_mut().zip(operand($a)).zip(operand($b)) {
                *out = $f(a, b);
            }
        };
    }
    match node {
        Node::Constant(number) => out.fill(number.get()),
        Node::Input(_) => unreachable!("inputs are filled by the caller"),
        Node::Unary(Unary::Neg, a) => one(a, out, &|a| -a),
        Node::Unary(function, a) => one(a, out, &|a| arithmetic::unary(function, a)),
        Node::Binary(Binary::Add, a, b) => two!(a, b, |a, b| a + b),
        Node::Binary(Binary::Sub, a, b) => two!(a, b, |a, b| a - b),
        Node::Binary(Binary::Mul, a, b) => two!(a, b, |a, b| a * b),
        Node::Binary(Binary::Div, a, b) => two!(a, b, |a, b| a / b),
        Node::Binary(function, a, b) => two!(a, b, |a, b| arithmetic::binary(function, a, b)),
        Node::Powi(a, n) => one(a, out, &|a| arithmetic::powi(a, n)),
        Node::Compare(c, a, b) => two!(a, b, |a, b| truth(arithmetic::compare(c, a, b))),
        Node::And(a, b) => two!(a, b, |a: f64, b: f64| truth(a != 0.0 && b != 0.0)),
        Node::Or(a, b) => two!(a, b, |a: f64, b: f64| truth(a != 0.0 || b != 0.0)),
        Node::Not(a) => one(a, out, &|a| truth(a == 0.0)),
        Node::Select(condition, a, b) => {
            let rows = operand(condition).iter().zip(operand(a)).zip(operand(b));
            for (out, ((&condition, &a), &b)) in out.iter_mut().zip(rows) {
                *out = if condition == 0.0 { b } else { a };
            }
        }
    }
}
