//! Curves of a solution on a line: a field on a one-dimensional mesh → chains of points (x, value).
//!
//! Each cell is divided into parts, to resolve fields of high degree. Cells follow one another along the axis. A chain
//! ends where the next cell starts elsewhere or with another value, so that jumps stay visible.

use super::lattice::edge_points;
use super::{BasisTables, SurfaceError, View};

/// Largest difference between the values of two cells at their common end, relative to the largest value.
const EQUAL: f64 = 1e-9;

/// Returns the curves of a field on a line, with at most about `most` points. Displacements move points along the axis.
///
/// # Errors
///
/// A field does not match the mesh.
pub fn curves(view: &View<'_>, most: usize) -> Result<Vec<Vec<(f64, f64)>>, SurfaceError> {
    view.check()?;
    let n_cells = view.mesh.n_cells();
    let parts = view.parts(n_cells, most).min((most / n_cells.max(1)).max(1));
    let places: Vec<[f64; 3]> = edge_points(parts).into_iter().map(|s| [s, 0.0, 0.0]).collect();
    let tables = BasisTables::new(view, &places)?;
    let of_cell = |cell: usize| -> Vec<(f64, f64)> {
        let rows = (0..places.len()).map(|row| {
            let value = view.shown.value(view.quantity, cell, tables.shown_at(row));
            (view.place(cell, &tables, row)[0], value)
        });
        let mut all: Vec<(f64, f64)> = rows.collect();
        if all.first().map(|first| first.0) > all.last().map(|last| last.0) {
            all.reverse();
        }
        all
    };
    let mut cells: Vec<Vec<(f64, f64)>> = (0..n_cells).map(of_cell).collect();
    cells.sort_by(|a, b| a[0].0.total_cmp(&b[0].0));
    let finite = cells.iter().flatten().map(|point| point.1.abs()).filter(|v| v.is_finite());
    let (value, length) = (EQUAL * finite.fold(0.0, f64::max), |cell: &[(f64, f64)]| {
        EQUAL * (cell[cell.len() - 1].0 - cell[0].0).abs()
    });
    let mut chains: Vec<Vec<(f64, f64)>> = Vec::new();
    for cell in cells {
        let joins = |chain: &&mut Vec<(f64, f64)>| {
            let (end, start) = (chain[chain.len() - 1], cell[0]);
            (end.0 - start.0).abs() <= length(&cell) && (end.1 - start.1).abs() <= value
        };
        match chains.last_mut().filter(joins) {
            Some(chain) => chain.extend(&cell[1..]),
            None => chains.push(cell),
        }
    }
    Ok(chains)
}
