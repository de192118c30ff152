//! Grid transfer: prolongation to, and restriction from, a finer space whose DoFs are at the points of a cell.
//!
//! ```text
//! prolong    fine[targets[q]] += Σ_b φ_b(ξ_q) u_b
//! restrict   r_b              += Σ_q φ_b(ξ_q) fine[targets[q]]
//! ```
//!
//! The fields of components of vector-valued functions are measured along their open axes by integrals between neighbouring
//! points instead ([`factors`](super::factors::factors)).
//!
//! Exactly one of the cells that share a DoF of the finer space refers to it. No weights or atomics are therefore
//! needed, and one is the transpose of the other.

use super::facts::QuantitySource;
use super::lowering::{Evaluate, Lowering};
use super::stored::TestFactors;
use crate::abi::Role;
use crate::kir::{Index, IndirectIndex, Statement, Write};
use fem_dsl::point::Part;

/// Returns the index of a component at a point in the map of targets.
fn target(s: &Lowering<'_>, row: usize, point: &Index) -> Index {
    let (points, rows) = (s.facts.points(), s.facts.rows());
    let batch = Index::from(s.b.batch()).times(points * rows);
    (&batch + point).plus(row * points)
}

/// Adds the values of the field to the DoFs at a point.
pub(crate) fn prolong(s: &mut Lowering<'_>, point: &Index, evaluate: &mut Evaluate<'_>) {
    let (map, fine) = (s.arguments[&Role::Targets], s.arguments[&Role::Fine]);
    for row in 0..s.facts.rows() {
        let field = s.facts.field_of_row(row);
        let Some(quantity) = s.facts.quantity(QuantitySource::Direction(field)) else { return };
        let value = evaluate(s, quantity, row - s.facts.row(field, 0), Part::Value);
        let at = target(s, row, point);
        let to = IndirectIndex { map, at, scale: 1, offset: 0, masked: true };
        s.b.statement(Statement::Scatter { target: fine, to, value, write: Write::Alone });
    }
}

/// Returns the values of the DoFs at a point, for each component.
pub(crate) fn restrict(s: &mut Lowering<'_>, point: &Index) -> Vec<TestFactors> {
    let (map, fine) = (s.arguments[&Role::Targets], s.arguments[&Role::Fine]);
    let value = |s: &mut Lowering<'_>, row: usize| {
        let at = target(s, row, point);
        let value = Some(s.b.gather(fine, map, at, (1, 0), true));
        TestFactors { value, ..TestFactors::default() }
    };
    (0..s.facts.rows()).map(|row| value(s, row)).collect()
}
