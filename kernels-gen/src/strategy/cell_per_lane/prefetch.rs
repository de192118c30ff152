//! Prefetching of the tables of the next batch during the computation of this one.
//!
//! Tables are read once, in order; a cell needs far more data than the hardware prefetches. Of the vectors only those
//! of degree 1 are prefetched.

use crate::abi::{Argument, Indices, Owner, Role, coordinate_stride};
use crate::kir::{Cache, Index, Statement};
use crate::lower::geometry::position_of;
use crate::lower::lowering::Lowering;
use crate::plan::{Geometry, Target};
use fem_dsl::point::Side;
use std::ops::Range;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines of one table that are prefetched at once. For longer streams hardware prefetching suffices. On one core it
/// reaches 12.6 GB/s for elasticity's 72 values per point at degree 5, and 9.7 with explicit prefetches of each line.
const MOST: usize = 64;

/// The layout of a table.
enum TableLayout {
    /// Values per cell.
    Cell,
    /// Values per quadrature point.
    Points,
}

fn layout(s: &Lowering<'_>, argument: &Argument) -> Option<TableLayout> {
    if argument.written {
        return None;
    }
    match argument.role {
        Role::Geometry if s.facts.plan.geometry == Geometry::Stored => Some(TableLayout::Points),
        Role::AuxPoints(_) | Role::Stored => Some(TableLayout::Points),
        Role::Geometry
        | Role::Map(..)
        | Role::Lines(..)
        | Role::Rows(..)
        | Role::FirstAxis(_)
        | Role::Signs(_)
        | Role::AuxCells(_)
        | Role::Diameter => Some(TableLayout::Cell),
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
        | Role::Turns(_)
        | Role::Slots(..)
        | Role::Terms(_)
        | Role::Hanging
        | Role::Hang
        | Role::Active => None,
    }
}

/// Returns the entries of a table per cache line, each one element per lane.
fn entries_a_line(s: &Lowering<'_>, role: Role) -> usize {
    let bytes = match role {
        Role::Map(..) => 4,
        _ => s.facts.plan.precision.bytes(),
    };
    (LINE / (bytes * s.facts.plan.lanes)).max(1)
}

/// Returns whether the next batch follows in the arrays, and a processor fetches nothing else meanwhile. The caller of a
/// kernel of [`Indices::Batches`] may have the arrays of one batch only.
fn is_useful(s: &Lowering<'_>) -> bool {
    let plan = s.facts.plan;
    plan.target == Target::Vectors && plan.indices != Indices::Batches
}

/// Prefetches the tables of the next cells.
pub(super) fn cells(s: &mut Lowering<'_>) {
    if !is_useful(s) {
        return;
    }
    let batch = Index::from(s.b.batch());
    for argument in s.declared().to_vec() {
        let Some(TableLayout::Cell) = layout(s, &argument) else { continue };
        // In a block of batches the rest is read after all have been gathered.
        let ahead = match (argument.role, s.facts.plan.block) {
            (_, 1) => 1,
            (Role::Map(..), block) => block,
            _ => 0,
        };
        let next = batch.plus(ahead);
        let mut entries = argument.extent / s.facts.plan.lanes;
        let step = entries_a_line(s, argument.role);
        let start = next.times(entries);
        // The nodes of the inside come first.
        let both = s.facts.sides() == 1 || position_of(s, Side::Outside).is_some();
        if argument.role == Role::Geometry && !both {
            entries /= 2;
        }
        let id = s.arguments[&argument.role];
        let whole = std::iter::once(0..entries).collect();
        let geometry = argument.role == Role::Geometry;
        let read = if geometry { corners(s, both).unwrap_or(whole) } else { whole };
        for part in read {
            let lines = part.len().div_ceil(step).min(MOST);
            s.b.repeat("line", lines, lines <= 4, |b, line| {
                let at = start.plus(part.start);
                let at = &at + &line.times(step);
                b.statement(Statement::Prefetch(id, at, Cache::First));
            });
        }
    }
}

/// Returns the coordinates that a pair of affine hexahedra reads: of the facet's first three corners, and of the first one
/// opposite on each side (`facet/straight.rs`); `None` of other cells.
fn corners(s: &Lowering<'_>, both: bool) -> Option<Vec<Range<usize>>> {
    let inside = &s.facts.quantities[position_of(s, Side::Inside)?];
    let straight = inside.element.degree() == 1 && !inside.value && s.facts.form.dim == 3;
    let mut read = vec![0..9, 12..15];
    read.extend(both.then_some(24..30));
    (s.facts.sides() > 1 && s.facts.plan.affine && straight).then_some(read)
}

/// Prefetch distance in batches for the vectors of a field of degree 1.
const AHEAD: usize = 4;

/// Prefetches the entries of the vectors, and of the coordinates, at the last node of the cells some batches ahead. At
/// degree 1 earlier cells have not loaded that node, and a batch is too short to hide the latency; at higher degrees
/// there is no gain.
pub(super) fn nodes(s: &mut Lowering<'_>) {
    let map = Role::Map(Owner::Field(0), Indices::Nodes);
    let Some(&map) = s.arguments.get(&map) else { return };
    if s.facts.plan.target == Target::Threads || !s.facts.elements.at_corners() {
        return;
    }
    let entries = s.facts.elements.fields[0].count();
    for argument in s.declared().to_vec() {
        let scale = match argument.role {
            Role::State(0) | Role::Direction(0) | Role::Result(0) => s.facts.stored(0),
            Role::Coordinates => coordinate_stride(s.facts.form.dim),
            _ => continue,
        };
        let array = s.arguments[&argument.role];
        let (entry, batches) = (entries - 1, AHEAD);
        s.b.statement(Statement::PrefetchIndexed { array, map, entries, entry, scale, batches });
    }
}

/// Prefetches the values at `count` points of the next cells, from the point `first` on.
pub(super) fn points(s: &mut Lowering<'_>, first: &Index, count: usize) {
    if !is_useful(s) || s.facts.trial.is_some() {
        return;
    }
    let (next, points) = (Index::from(s.b.batch()).plus(1), s.facts.points());
    for argument in s.declared().to_vec() {
        let Some(TableLayout::Points) = layout(s, &argument) else { continue };
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
