//! Asking for the tables of the next batch while this one is computed.
//!
//! Tables are read once, from front to back; what a cell needs is far more than the hardware fetches
//! ahead by itself. Of the vectors only those of degree 1 are prefetched.

use crate::abi::{Argument, Indices, Owner, Role, coordinate_stride};
use crate::kir::{Cache, Index, Statement};
use crate::lower::lowering::Lowering;
use crate::plan::{Geometry, Target};

/// Bytes of a cache line.
const LINE: usize = 64;
/// So many lines of one table are asked for at once; beyond, the hardware has seen the stream: on one core it brings 12.6 GB/s of
/// elasticity's 72 numbers a point at degree 5 by itself, and 9.7 where each line is asked for.
const MOST: usize = 64;

/// How a table is laid out.
enum Layout {
    /// Its numbers belong to the cell.
    Cell,
    /// Its numbers belong to the quadrature points.
    Points,
}

fn layout(s: &Lowering<'_>, argument: &Argument) -> Option<Layout> {
    if argument.written {
        return None;
    }
    match argument.role {
        Role::Geometry if s.facts.plan.geometry == Geometry::Stored => Some(Layout::Points),
        Role::AuxPoints(_) | Role::Stored => Some(Layout::Points),
        Role::Geometry | Role::Map(..) | Role::Lines(..) | Role::AuxCells(_) | Role::Diameter => {
            Some(Layout::Cell)
        }
        Role::Params
        | Role::Tables
        | Role::State(_)
        | Role::Direction(_)
        | Role::Result(_)
        | Role::CellResult(_)
        | Role::CellMatrix
        | Role::Matrix
        | Role::Entries
        | Role::Fine
        | Role::Targets
        | Role::AuxNodes(_)
        | Role::Coordinates
        | Role::Axis(_)
        | Role::Starts
        | Role::Places
        | Role::Slots(..)
        | Role::Terms(_)
        | Role::Hanging
        | Role::Hang
        | Role::Active => None,
    }
}

/// Entries of a table in a cache line, each one element a lane.
fn entries_a_line(s: &Lowering<'_>, role: Role) -> usize {
    let bytes = match role {
        Role::Map(..) => 4,
        _ => s.facts.plan.precision.bytes(),
    };
    (LINE / (bytes * s.facts.plan.lanes)).max(1)
}

/// Asks for the tables of the next cells.
pub(super) fn cells(s: &mut Lowering<'_>) {
    if s.facts.plan.target == Target::Threads {
        return;
    }
    let batch = Index::from(s.b.batch());
    for argument in s.declared().to_vec() {
        let Some(Layout::Cell) = layout(s, &argument) else { continue };
        // In a block of batches the rest is read after all have been gathered.
        let ahead = match (argument.role, s.facts.plan.block) {
            (_, 1) => 1,
            (Role::Map(..), block) => block,
            _ => 0,
        };
        let next = batch.plus(ahead);
        let entries = argument.extent / s.facts.plan.lanes;
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

/// So many batches ahead the vectors of a field of degree 1 are asked for.
const AHEAD: usize = 4;

/// Asks for the entries of the vectors, and of the coordinates, at the last node of the cells some
/// batches ahead. At degree 1 that is the node that earlier cells have not brought, and a batch is
/// so little work that waiting for it shows; at higher degrees nothing is gained.
pub(super) fn nodes(s: &mut Lowering<'_>) {
    let map = Role::Map(Owner::Field(0), Indices::Nodes);
    let Some(&map) = s.arguments.get(&map) else { return };
    if s.facts.plan.target == Target::Threads || !s.facts.elements.at_corners() {
        return;
    }
    let entries = s.facts.elements.fields[0].count();
    for argument in s.declared().to_vec() {
        let scale = match argument.role {
            Role::State(0) | Role::Direction(0) | Role::Result(0) => s.facts.components(0),
            Role::Coordinates => coordinate_stride(s.facts.form.dim),
            _ => continue,
        };
        let array = s.arguments[&argument.role];
        let (entry, batches) = (entries - 1, AHEAD);
        s.b.statement(Statement::PrefetchIndexed { array, map, entries, entry, scale, batches });
    }
}

/// Asks for the numbers at `count` points of the next cells, from the point `first` on.
pub(super) fn points(s: &mut Lowering<'_>, first: &Index, count: usize) {
    if s.facts.plan.target == Target::Threads || s.facts.trial.is_some() {
        return;
    }
    let (next, points) = (Index::from(s.b.batch()).plus(1), s.facts.points());
    for argument in s.declared().to_vec() {
        let Some(Layout::Points) = layout(s, &argument) else { continue };
        let entries = argument.extent / (s.facts.plan.lanes * points);
        let step = entries_a_line(s, argument.role);
        let start = &next.times(points * entries) + &first.times(entries);
        let id = s.arguments[&argument.role];
        let lines = (count * entries).div_ceil(step);
        if lines > MOST {
            continue;
        }
        s.b.repeat("line", lines, lines <= 4, |b, line| {
            let at = &start + &line.times(step);
            b.statement(Statement::Prefetch(id, at, Cache::Second));
        });
    }
}
