//! Asking for the tables of the next batch while this one is computed.
//!
//! Tables are read once, from front to back; what a cell needs is far more than the hardware fetches
//! ahead by itself. Vectors are not prefetched: their entries are close to those of this batch.

use super::setting::Setting;
use crate::abi::{Argument, Role};
use crate::kir::{Cache, Index, Statement};
use crate::plan::Geometry;

/// Bytes of a cache line.
const LINE: usize = 64;
/// So many lines of one table are asked for at once; beyond, the hardware has seen the stream.
const MOST: usize = 64;

/// How a table is laid out.
enum Layout {
    /// Its numbers belong to the cell.
    Cell,
    /// Its numbers belong to the quadrature points.
    Points,
}

fn layout(s: &Setting<'_>, argument: &Argument) -> Option<Layout> {
    if argument.written {
        return None;
    }
    match argument.role {
        Role::Geometry if s.plan.geometry == Geometry::Stored => Some(Layout::Points),
        Role::AuxPoints(_) | Role::Stored => Some(Layout::Points),
        Role::Geometry | Role::Map(..) | Role::AuxCells(_) | Role::Diameter => Some(Layout::Cell),
        Role::Params
        | Role::State(_)
        | Role::Direction(_)
        | Role::Result(_)
        | Role::AuxNodes(_)
        | Role::Active => None,
    }
}

/// Entries of a table in a cache line, each one element a lane.
fn entries_a_line(s: &Setting<'_>, role: Role) -> usize {
    let bytes = match role {
        Role::Map(..) => 4,
        _ => s.plan.precision.bytes(),
    };
    (LINE / (bytes * s.plan.lanes)).max(1)
}

/// Asks for the tables of the next cells.
pub(super) fn cells(s: &mut Setting<'_>) {
    if !s.plan.prefetch {
        return;
    }
    let next = Index::from(s.b.batch()).plus(1);
    for argument in s.declared().to_vec() {
        let Some(Layout::Cell) = layout(s, &argument) else { continue };
        let entries = argument.extent / s.plan.lanes;
        let step = entries_a_line(s, argument.role);
        let start = next.times(entries);
        let id = s.arguments[&argument.role];
        let lines = entries.div_ceil(step).min(MOST);
        s.b.repeat("line", lines, lines <= 4, |b, line| {
            let at = &start + &line.times(step);
            b.statement(Statement::Prefetch(id, at, Cache::First));
        });
    }
}

/// Asks for the numbers at `count` points of the next cells, from the point `first` on.
pub(super) fn points(s: &mut Setting<'_>, first: &Index, count: usize) {
    if !s.plan.prefetch {
        return;
    }
    let (next, points) = (Index::from(s.b.batch()).plus(1), s.points());
    for argument in s.declared().to_vec() {
        let Some(Layout::Points) = layout(s, &argument) else { continue };
        let entries = argument.extent / (s.plan.lanes * points);
        let step = entries_a_line(s, argument.role);
        let start = &next.times(points * entries) + &first.times(entries);
        let id = s.arguments[&argument.role];
        let lines = (count * entries).div_ceil(step);
        s.b.repeat("line", lines, lines <= 4, |b, line| {
            let at = &start + &line.times(step);
            b.statement(Statement::Prefetch(id, at, Cache::Second));
        });
    }
}
