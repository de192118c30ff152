//! Norms as integrals: the components of a value → the integrand of its square.
//!
//! ```text
//! ∫ Σ_c (s v_c)² dx
//! ```
//!
//! s is an additional parameter after the form's own; it scales squares that would underflow or overflow. The products
//! are formed from the complete components, so that no pass sees a square of their constants.

use super::{sum, with_scale};
use crate::point::{Binary, Input, Node, NodeId, Part, PointForm, Side, Slot};
use std::ops::Range;

/// Replaces components of the additional fields of a form with `own` fields by their squares. The first component of
/// each range becomes the sum of the squares, and the others 0.
pub(crate) fn norms(form: PointForm, own: usize, ranges: &[Range<usize>]) -> PointForm {
    if ranges.is_empty() {
        return form;
    }
    let integrals = form.integrals.clone();
    let scale = Input::Param(form.params.len(), 0);
    let mut made = PointForm { name: form.name.clone(), ..with_scale(&form, "norms") };
    let number = |slot: Slot| form.row(slot.field, slot.component) - form.row(own, 0);
    let slot = |number: usize| {
        let row = form.row(own, 0) + number;
        let field = (own..form.fields.len()).rev().find(|&field| form.row(field, 0) <= row);
        field.map(|field| Slot {
            field,
            side: Side::Inside,
            component: row - form.row(field, 0),
            part: Part::Value,
        })
    };
    for mut integral in integrals {
        if integral.region.is_of_cells() {
            for range in ranges {
                let (squared, kept): (Vec<_>, Vec<_>) =
                    integral.residual.iter().partition(|(slot, _)| range.contains(&number(*slot)));
                let graph = &mut integral.graph;
                let scale = graph.intern(Node::Input(scale));
                let squares = squared.into_iter().map(|(_, value): (Slot, NodeId)| {
                    let scaled = graph.intern(Node::Binary(Binary::Mul, scale, value));
                    graph.intern(Node::Binary(Binary::Mul, scaled, scaled))
                });
                let squares: Vec<NodeId> = squares.collect();
                let whole = sum(graph, &squares).and_then(|sum| Some((slot(range.start)?, sum)));
                integral.residual = kept.into_iter().chain(whole).collect();
                integral.residual.sort_unstable_by_key(|(slot, _)| *slot);
            }
        }
        made.integrals.push(integral);
    }
    made
}
