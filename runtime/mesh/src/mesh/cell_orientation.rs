//! Orientation of single cells: cells with negative Jacobian determinant get two axes exchanged.
//!
//! The vertex order of a source is a convention, and sources mix several. A cell is mirrored if its signed measure ∫
//! det J is negative; it is then renumbered, with its curved nodes. [`super::measure`] handles determinants that change
//! sign inside a cell.

use super::measure::{Gradients, rule};
use super::orient::{IDENTITY, Renumbering};
use super::shape::CellShape;
use crate::support::parallel::*;

/// Renumbers each cell with negative measure. Returns the number of these cells.
pub(super) fn turn_negative(shape: &CellShape, points: &[[f64; 3]], nodes: &mut [u32]) -> usize {
    let (at, weights) = match shape.element.degree() {
        1 => (vec![shape.cell.centre()], vec![1.0]),
        order => {
            let rule = rule(shape.cell, order);
            (rule.points(), rule.weights())
        }
    };
    let gradients = Gradients::new(shape, &at);
    let is_negative = |cell: &[u32]| {
        let corners = || cell.iter().map(|&node| points[node as usize]);
        let each = weights.iter().enumerate();
        each.map(|(q, weight)| weight * gradients.determinant(q, corners())).sum::<f64>() < 0.0
    };
    let cells = nodes.par_chunks_exact(shape.nodes).with_min_len(1024);
    let negative: Vec<bool> = cells.map(is_negative).listed();
    let count = negative.iter().filter(|negative| **negative).count();
    if count > 0 {
        let mirror = mirror(shape);
        let of = |cell: usize, _: &[u32]| if negative[cell] { mirror } else { IDENTITY };
        shape.renumber(nodes, of);
    }
    count
}

/// Returns the note on cells that were renumbered.
pub(super) fn note(count: usize, all: usize) -> Option<String> {
    let cells = if all == 1 { "cell" } else { "cells" };
    let were = if count == 1 { "was" } else { "were" };
    (count > 0).then(|| {
        format!("{count} of {all} {cells} listed the vertices in the opposite sense and {were} renumbered")
    })
}

/// Exchanges the first two axes, or reverses the only one.
fn mirror(shape: &CellShape) -> Renumbering {
    let mut mirror = IDENTITY;
    if shape.cell.dim() == 1 {
        mirror.swap(0, 1);
        return mirror;
    }
    mirror.swap(1, 2);
    if shape.cell.is_tensor() {
        mirror.swap(5, 6);
    }
    mirror
}
