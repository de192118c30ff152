//! Matrices without a pattern: which row and which column each element of stored element matrices has, and rows of them on
//! the processor. What a device does is in [`crate::device::acoo`].

use super::sparsity::{NOWHERE, owner};
use crate::batch::Batches;
use crate::device::acoo::{Elements, Work};
use crate::discretisation::Discretisation;
use crate::vector::Real;
use kernels_gen::plan::cell_matrix::CellMatrix;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// Rows that one thread takes at a time.
const ROWS: usize = 1024;

/// The elements of some kernels' element matrices, kernel after kernel, and those on the diagonal of unknowns with essential
/// conditions, which have no others; unknown i has the place `place(i)`.
pub(crate) fn elements(
    on: &Discretisation,
    works: &[(&CellMatrix, &Batches)],
    place: impl Fn(usize) -> usize,
) -> Elements {
    let mut all = Elements::default();
    let mut places: Vec<u32> = (0..on.n_dofs()).map(|dof| place(dof) as u32).collect();
    let fixed: Vec<u32> = on.conditions().map(|(dof, _)| places[dof]).collect();
    on.conditions().for_each(|(dof, _)| places[dof] = NOWHERE);
    let components = |field: usize| on.fields[field].space.components();
    let own = |field: usize| on.fields[field].space.nodes_per_cell() * components(field);
    // Where the unknowns of each field begin in a cell.
    let firsts: Vec<usize> = (0..=on.fields.len()).map(|field| (0..field).map(own).sum()).collect();
    let unknowns = firsts[on.fields.len()];
    for (matrix, batches) in works {
        let (entries, lanes) = (matrix.entries, batches.lanes());
        let (dofs, table) = (all.dofs.len(), all.tables.len());
        all.works.push(Work { first: all.count, entries, lanes, unknowns, dofs, table });
        all.count += batches.len() * entries * lanes;
        let (mut rows, mut columns) = (vec![0; entries], vec![0; entries]);
        for pair in &matrix.pairs {
            let ((f, c), (g, d)) = (owner(on, pair.test), owner(on, pair.trial));
            for j in 0..pair.columns {
                for i in 0..pair.rows {
                    let at = pair.first + j * pair.rows + i;
                    rows[at] = (firsts[f] + i * components(f) + c) as u32;
                    columns[at] = (firsts[g] + j * components(g) + d) as u32;
                }
            }
        }
        all.tables.extend(rows);
        all.tables.extend(columns);
        all.dofs.resize(dofs + batches.len() * unknowns * lanes, NOWHERE);
        for (number, field) in on.fields.iter().enumerate() {
            let (start, components) = (on.dofs_of(number).start, components(number));
            for (lane, nodes) in batches.each_cell(&field.space) {
                let (batch, lane) = (lane / lanes, lane % lanes);
                for (node, &global) in nodes.iter().enumerate() {
                    for c in 0..components {
                        let local = firsts[number] + node * components + c;
                        all.dofs[dofs + (batch * unknowns + local) * lanes + lane] =
                            places[start + global as usize * components + c];
                    }
                }
            }
        }
    }
    let (dofs, table) = (all.dofs.len(), all.tables.len());
    all.works.push(Work { first: all.count, entries: 1, lanes: 1, unknowns: 1, dofs, table });
    all.tables.extend([0, 0]);
    all.count += fixed.len();
    all.dofs.extend(fixed);
    all
}

/// Starts, columns and entries of the matrix with these elements: sorted by columns, and equal ones added up in the order of
/// the elements.
pub(crate) fn merge<T: Real>(
    elements: &Elements,
    values: &[T],
    rows: usize,
) -> (Vec<u32>, Vec<u32>, Vec<T>) {
    let there = |element: usize| {
        let work = elements.work(element);
        let place = [false, true].map(|column| elements.place(work, element - work.first, column));
        place.iter().all(|&place| place != NOWHERE).then_some(place)
    };
    let count = || (0..elements.count).into_par_iter().with_min_len(ROWS);
    let counts: Vec<AtomicU32> = (0..=rows).map(|_| AtomicU32::new(0)).collect();
    count().for_each(|element| {
        if let Some([row, _]) = there(element) {
            counts[row as usize + 1].fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut starts: Vec<u32> = counts.into_iter().map(AtomicU32::into_inner).collect();
    for row in 0..rows {
        starts[row + 1] += starts[row];
    }
    let next: Vec<AtomicU32> = starts.iter().map(|&start| AtomicU32::new(start)).collect();
    let lists: Vec<AtomicU32> = (0..starts[rows]).map(|_| AtomicU32::new(0)).collect();
    count().for_each(|element| {
        if let Some([row, _]) = there(element) {
            let at = next[row as usize].fetch_add(1, Ordering::Relaxed);
            lists[at as usize].store(element as u32, Ordering::Relaxed);
        }
    });
    let rows_of = |block: usize| {
        let (mut lengths, mut columns, mut entries) = (Vec::new(), Vec::<u32>::new(), Vec::new());
        let mut list: Vec<(u32, u32)> = Vec::new();
        for row in block * ROWS..rows.min((block + 1) * ROWS) {
            list.clear();
            let own = &lists[starts[row] as usize..starts[row + 1] as usize];
            list.extend(own.iter().filter_map(|element| {
                let element = element.load(Ordering::Relaxed);
                there(element as usize).map(|[_, column]| (column, element))
            }));
            list.sort_unstable();
            let before = columns.len();
            for &(column, element) in &list {
                let value = values[element as usize];
                let known = columns.len() > before && columns.last() == Some(&column);
                match entries.last_mut().filter(|_| known) {
                    Some(entry) => *entry = *entry + value,
                    None => {
                        columns.push(column);
                        entries.push(value);
                    }
                }
            }
            lengths.push((columns.len() - before) as u32);
        }
        (lengths, columns, entries)
    };
    let blocks: Vec<_> = (0..rows.div_ceil(ROWS)).into_par_iter().map(rows_of).collect();
    let (mut starts, mut columns, mut entries) = (vec![0], Vec::new(), Vec::new());
    for (lengths, own_columns, own_entries) in blocks {
        let mut end = columns.len() as u32;
        starts.extend(lengths.into_iter().map(|length: u32| {
            end += length;
            end
        }));
        columns.extend(own_columns);
        entries.extend(own_entries);
    }
    (starts, columns, entries)
}
