//! `eval`: what each stage's expressions are worth at a point, slowly and obviously.
//!
//! [`eval`] evaluates a scalar [`Graph`] at one point, [`Batch`] at many points at once, and
//! [`tensors`] a [`Form`](crate::form::Form). Together they say what the language means; every
//! later stage is compared with them. A truth value counts as 1 or 0.

mod batch;
mod tensor;

pub use batch::Batch;
pub use tensor::{Values, tensors};

use crate::arena::IndexVec;
use crate::arithmetic;
use crate::point::{Graph, Input, Node, NodeId};

/// The value of every node of `graph` at one point.
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
