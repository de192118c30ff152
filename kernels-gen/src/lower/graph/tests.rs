//! Sums of products.

use super::*;
use crate::kir::{Op, Precision};
use fem_dsl::point::Input;

/// Returns Σ pᵢ pᵢ₊₁ of `count` terms, all products before all sums, and the outputs: the sum and the first product.
fn long_sum(count: usize) -> (Graph, [NodeId; 2]) {
    let mut graph = Graph::new();
    let params: Vec<NodeId> =
        (0..=count).map(|i| graph.intern(Node::Input(Input::Param(i, 0)))).collect();
    let pairs = params.windows(2);
    let products: Vec<NodeId> =
        pairs.map(|pair| graph.intern(Node::Binary(Binary::Mul, pair[0], pair[1]))).collect();
    let sum = products
        .iter()
        .copied()
        .reduce(|sum, product| graph.intern(Node::Binary(Binary::Add, sum, product)));
    (graph, [sum.expect("a sum"), products[0]])
}

fn lowered(graph: &Graph, outputs: &[NodeId]) -> Vec<Op> {
    let mut builder = Builder::new("sum", Precision::F64, 4);
    let argument = builder.argument("params", crate::kir::Element::Real, false);
    LoweredValues::new(graph).lower(&mut builder, graph, outputs, None, |builder, input| {
        let Input::Param(i, _) = input else { unreachable!("there are only parameters") };
        builder.load_uniform(argument, crate::kir::Index::from(i))
    });
    builder.finish().values.iter().map(|value| value.op.clone()).collect()
}

/// The cost per node is constant: a search for every product among all nodes takes minutes for the sixty thousand nodes
/// of this sum.
#[test]
fn a_long_sum_of_products_is_a_chain_of_fused_ones() {
    let count = 60_000;
    let (graph, [sum, first]) = long_sum(count);
    let ops = lowered(&graph, &[sum]);
    let of = |wanted: fn(&Op) -> bool| ops.iter().filter(|op| wanted(op)).count();
    assert_eq!(of(|op| matches!(op, Op::Fma(..))), count - 1);
    assert_eq!(of(|op| matches!(op, Op::Binary(Binary::Mul, ..))), 1);
    // A product that is an output exists separately.
    let ops = lowered(&graph, &[sum, first]);
    assert!(ops.len() >= count);
}
