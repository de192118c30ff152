//! Direct evaluation of a scalar [`Graph`], simple rather than fast: at one point, or in a [`Batch`] of many.

mod batch;

pub use batch::Batch;

use super::{Graph, Input, Node, NodeId};
use crate::arena::IndexVec;
use crate::arithmetic;

/// Returns the value of every node of `graph` at one point.
pub fn eval(graph: &Graph, mut input: impl FnMut(Input) -> f64) -> IndexVec<NodeId, f64> {
    let mut values: IndexVec<NodeId, f64> = IndexVec::new();
    let truth = |value: bool| f64::from(u8::from(value));
    for node in graph.nodes() {
        let value = match *node {
            Node::Constant(number) => number.get(),
            Node::Input(which) => input(which),
            Node::Unary(function, a) => arithmetic::unary(function, values[a]),
            Node::Binary(function, a, b) => arithmetic::binary(function, values[a], values[b]),
            Node::Powi(a, n) => arithmetic::powi(values[a], n),
            Node::Compare(comparison, a, b) => {
                truth(arithmetic::compare(comparison, values[a], values[b]))
            }
            Node::And(a, b) => truth(values[a] != 0.0 && values[b] != 0.0),
            Node::Or(a, b) => truth(values[a] != 0.0 || values[b] != 0.0),
            Node::Not(a) => truth(values[a] == 0.0),
            Node::Select(condition, a, b) => {
                if values[condition] == 0.0 {
                    values[b]
                } else {
                    values[a]
                }
            }
        };
        values.push(value);
    }
    values
}
