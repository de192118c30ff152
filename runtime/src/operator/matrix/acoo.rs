//! Assembly without a pattern: row and column of each stored element, and merging into rows on the host. The device
//! version is [`crate::device::acoo`].

use super::sparsity::{each_somewhere, trace};
use crate::algebra::sparse::NOWHERE;
use crate::algebra::vector::Real;
use crate::device::acoo::{ElementPositions, StoredElements};
use crate::operator::batch::Batches;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use fem_dsl::point::Side;
use kernels_gen::plan::cell_matrix::CellMatrix;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Number of rows per task.
const ROWS: usize = 1024;

/// Minimum number of links per task.
const LINKS: usize = 1 << 12;

/// Returns the elements of some kernels' element matrices, kernel by kernel. The diagonal elements of constrained
/// degrees of freedom follow, on the process that owns them. Degree of freedom i has position `place(i)`.
pub(crate) fn elements(
    on: &Discretisation,
    works: &[(&CellMatrix, &Batches)],
    place: impl Fn(usize) -> usize,
) -> ElementPositions {
    let mut all = ElementPositions::default();
    let mut places: Vec<u32> = (0..on.n_dofs()).map(|dof| place(dof) as u32).collect();
    let fixed: Vec<u32> = on.counted_conditions().map(|dof| places[dof]).collect();
    on.conditions().for_each(|(dof, _)| places[dof] = NOWHERE);
    let components = |field: usize| on.fields[field].space.components();
    let own = |field: usize| on.fields[field].space.nodes_per_cell() * components(field);
    // Offset of each field in a cell.
    let firsts: Vec<usize> = (0..=on.fields.len()).map(|field| (0..field).map(own).sum()).collect();
    let of_cell = firsts[on.fields.len()];
    for (matrix, batches) in works {
        let (entries, lanes) = (matrix.entries, batches.lanes());
        let (dofs, table) = (all.dofs.len(), all.tables.len());
        let sides: Vec<Side> =
            Side::ALL.into_iter().filter(|&side| batches.on(side).is_some()).collect();
        // Rows of pairs of cells exist in those batches alone that write them, so that their columns are listed apart.
        let columns_from = if sides.len() > 1 { sides.len() * of_cell } else { 0 };
        let unknowns = columns_from + sides.len() * of_cell;
        all.works.push(StoredElements { first: all.count, entries, lanes, unknowns, dofs, table });
        all.count += batches.len() * entries * lanes;
        // Row, entry and column of each.
        let mut own: Vec<[u32; 3]> = Vec::with_capacity(entries);
        for pair in &matrix.pairs {
            let ((s, f, c), (r, g, d)) = (trace(on, pair.test), trace(on, pair.trial));
            for j in 0..pair.columns {
                for i in 0..pair.rows {
                    let at = pair.first + j * pair.rows + i;
                    let row =
                        s as usize * of_cell + firsts[f] + (pair.from[0] + i) * components(f) + c;
                    let column =
                        r as usize * of_cell + firsts[g] + (pair.from[1] + j) * components(g) + d;
                    own.push([row, at, columns_from + column].map(|number| number as u32));
                }
            }
        }
        own.sort_unstable();
        let start = |row: usize| own.partition_point(|own| (own[0] as usize) < row) as u32;
        all.tables.extend((0..=unknowns).map(start));
        all.tables.extend(own.iter().flat_map(|own| [own[1], own[2]]));
        all.dofs.resize(dofs + batches.len() * unknowns * lanes, NOWHERE);
        let spaces: Vec<_> = on.fields.iter().map(|field| &*field.space).collect();
        let turned: Vec<Vec<Vec<Vec<usize>>>> = sides
            .iter()
            .filter_map(|&side| batches.on(side))
            .map(|of| spaces.iter().map(|space| of.turns(space.element())).collect())
            .collect();
        let put = |batch: usize, own: &mut [u32]| {
            let mut nodes = Vec::new();
            for lane in 0..batches.active()[batch] as usize {
                let at = batch * lanes + lane;
                for (&side, turned) in sides.iter().zip(&turned) {
                    let of = batches.on(side).unwrap_or(batches);
                    let writes = batches.writes_side(batch, side);
                    for (number, space) in spaces.iter().enumerate() {
                        let (start, components) = (on.dofs_of(number).start, components(number));
                        of.nodes_of_lane(space, at, &turned[number], &mut nodes);
                        let first = side as usize * of_cell + firsts[number];
                        for (i, &node) in nodes.iter().enumerate() {
                            for c in 0..components {
                                let place = places[start + node as usize * components + c];
                                let unknown = first + i * components + c;
                                if writes {
                                    own[unknown * lanes + lane] = place;
                                }
                                own[(columns_from + unknown) * lanes + lane] = place;
                            }
                        }
                    }
                }
            }
        };
        let parts = all.dofs[dofs..].par_chunks_mut((unknowns * lanes).max(1)).enumerate();
        parts.with_min_len(16).each(|(batch, own)| put(batch, own));
    }
    let (dofs, table) = (all.dofs.len(), all.tables.len());
    all.works.push(StoredElements {
        first: all.count,
        entries: 1,
        lanes: 1,
        unknowns: 1,
        dofs,
        table,
    });
    all.tables.extend([0, 1, 0, 0]);
    all.count += fixed.len();
    all.dofs.extend(fixed);
    (all.of_row, all.columns) = longest_row(&all);
    all
}

/// Returns the maximum number of elements in a row, and the number of columns of one with so many.
fn longest_row(all: &ElementPositions) -> (usize, usize) {
    let last = |dofs: &[u32]| dofs.iter().copied().filter(|&row| row != NOWHERE).max();
    let rows = all.dofs.par_chunks(LINKS).map(last).merged(Option::max).flatten();
    let rows = rows.map_or(0, |row| row as usize + 1);
    let counts: Vec<AtomicU32> = (0..rows).into_par_iter().map(|_| AtomicU32::new(0)).listed();
    each_somewhere(&all.dofs, &|link, row| {
        let own = all.link(link).each().filter(|(column, _)| *column != NOWHERE).count();
        counts[row as usize].fetch_add(own as u32, Ordering::Relaxed);
    });
    let counts = counts.into_iter().map(AtomicU32::into_inner).enumerate();
    let Some((longest, elements)) = counts.max_by_key(|&(_, count)| count) else { return (0, 0) };
    let columns = Mutex::new(BTreeSet::new());
    each_somewhere(&all.dofs, &|link, row| {
        if row as usize == longest {
            let own = all.link(link).each().map(|(column, _)| column);
            columns.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        }
    });
    let mut columns = columns.into_inner().unwrap_or_else(PoisonError::into_inner);
    columns.remove(&NOWHERE);
    (elements as usize, columns.len())
}

/// Merges elements into starts, columns and entries of a matrix, with ascending columns; equal ones are summed in
/// element order.
pub(crate) fn merge<T: Real>(
    elements: &ElementPositions,
    values: &[T],
    rows: usize,
) -> (Vec<u32>, Vec<u32>, Vec<T>) {
    let links = RowLinks::new(elements, rows);
    let mut blocks: Vec<(Vec<u32>, Vec<u32>, Vec<T>)> = Vec::new();
    blocks.resize_with(rows.div_ceil(ROWS), Default::default);
    blocks.par_iter_mut().enumerate().each_with(
        || ColumnTable::new(elements.of_row),
        |table, (block, (lengths, columns, entries))| {
            for row in block * ROWS..rows.min((block + 1) * ROWS) {
                for &link in links.of(row) {
                    for (column, element) in elements.link(link as usize).each() {
                        if column != NOWHERE {
                            table.add(column, values[element]);
                        }
                    }
                }
                let before = columns.len();
                table.take(|column, value| {
                    columns.push(column);
                    entries.push(value);
                });
                lengths.push((columns.len() - before) as u32);
            }
        },
    );
    let mut starts = Vec::with_capacity(rows + 1);
    let mut end = 0;
    starts.push(0);
    for (lengths, ..) in &blocks {
        starts.extend(lengths.iter().map(|length| {
            end += length;
            end
        }));
    }
    let (mut columns, mut entries) = (vec![0; end as usize], vec![T::from_f64(0.0); end as usize]);
    let mut places = Vec::with_capacity(blocks.len());
    let (mut rest, mut behind) = (&mut columns[..], &mut entries[..]);
    for (_, own_columns, own_entries) in blocks {
        let (of_columns, later) = rest.split_at_mut(own_columns.len());
        let (of_entries, last) = behind.split_at_mut(own_entries.len());
        places.push((of_columns, own_columns, of_entries, own_entries));
        (rest, behind) = (later, last);
    }
    places.into_par_iter().each(|(of_columns, own_columns, of_entries, own_entries)| {
        of_columns.copy_from_slice(&own_columns);
        of_entries.copy_from_slice(&own_entries);
    });
    (starts, columns, entries)
}

/// Links of each row, ascending.
struct RowLinks {
    starts: Vec<u32>,
    links: Vec<u32>,
}

impl RowLinks {
    fn new(elements: &ElementPositions, rows: usize) -> Self {
        let zero = |_| AtomicU32::new(0);
        let counts: Vec<AtomicU32> = (0..rows).into_par_iter().map(zero).listed();
        each_somewhere(&elements.dofs, &|_, row| {
            counts[row as usize].fetch_add(1, Ordering::Relaxed);
        });
        let mut starts = Vec::with_capacity(rows + 1);
        let mut end = 0;
        starts.push(0);
        starts.extend(counts.iter().map(|count| {
            end += count.load(Ordering::Relaxed);
            end
        }));
        let links: Vec<AtomicU32> = (0..end as usize).into_par_iter().map(zero).listed();
        each_somewhere(&elements.dofs, &|link, row| {
            let left = counts[row as usize].fetch_sub(1, Ordering::Relaxed);
            let at = starts[row as usize + 1] - left;
            links[at as usize].store(link as u32, Ordering::Relaxed);
        });
        let mut links: Vec<u32> = links.into_iter().map(AtomicU32::into_inner).collect();
        // Sorting restores the element order after concurrent insertion.
        let mut parts = Vec::with_capacity(rows.div_ceil(ROWS));
        let mut rest = &mut links[..];
        for first in (0..rows).step_by(ROWS) {
            let range = first..rows.min(first + ROWS);
            let (part, behind) =
                rest.split_at_mut((starts[range.end] - starts[range.start]) as usize);
            parts.push((range, part));
            rest = behind;
        }
        parts.into_par_iter().each(|(range, part)| {
            let before = starts[range.start];
            for row in range {
                let [from, behind] = [row, row + 1].map(|row| (starts[row] - before) as usize);
                part[from..behind].sort_unstable();
            }
        });
        Self { starts, links }
    }

    fn of(&self, row: usize) -> &[u32] {
        &self.links[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

/// Columns of a row with their sums: a hash table with open addressing.
struct ColumnTable<T> {
    /// A column or [`NOWHERE`], and its sum.
    slots: Vec<(u32, T)>,
    shift: u32,
    /// Occupied slots, each with its column in the upper bits.
    taken: Vec<u64>,
}

impl<T: Real> ColumnTable<T> {
    /// Creates a table for rows of at most `elements` elements.
    fn new(elements: usize) -> Self {
        let slots = (2 * elements).next_power_of_two().max(16);
        let shift = 32 - slots.trailing_zeros();
        let slots = vec![(NOWHERE, T::from_f64(0.0)); slots];
        Self { slots, shift, taken: Vec::new() }
    }

    fn add(&mut self, column: u32, value: T) {
        let mut slot = (column.wrapping_mul(2_654_435_761) >> self.shift) as usize;
        loop {
            let (known, sum) = &mut self.slots[slot];
            if *known == column {
                *sum = *sum + value;
                return;
            }
            if *known == NOWHERE {
                self.slots[slot] = (column, value);
                self.taken.push(u64::from(column) << 32 | slot as u64);
                return;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Drains the table in ascending order of columns.
    fn take(&mut self, mut put: impl FnMut(u32, T)) {
        self.taken.sort_unstable();
        for &taken in &self.taken {
            let (column, sum) = self.slots[taken as u32 as usize];
            put(column, sum);
            self.slots[taken as u32 as usize].0 = NOWHERE;
        }
        self.taken.clear();
    }
}
