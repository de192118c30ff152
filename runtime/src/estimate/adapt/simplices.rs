//! Transfer of solutions between meshes of a bisection: nodal interpolation on the new mesh.

use crate::mesh::refine::bisect::{AffineMap, BisectionTransfer, CellSource};
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use kernels_gen::element::tabulate;

/// Tolerance of points on the boundary of a cell.
const NOTHING: f64 = 1e-12;

/// Interpolates the degrees of freedom `u` on `from` at the nodes of `to`; `None` if the meshes do not belong to one
/// bisection, or elements differ.
pub(super) fn transfer(from: &Discretisation, u: &[f64], to: &Discretisation) -> Option<Vec<f64>> {
    let cells = BisectionTransfer::new(&from.mesh, &to.mesh).ok()?;
    if from.fields.len() != to.fields.len() {
        return None;
    }
    let mut all = Vec::with_capacity(to.n_dofs());
    for (number, (old, new)) in from.fields.iter().zip(&to.fields).enumerate() {
        let (old, new) = (&*old.space, &*new.space);
        if (old.element(), old.components()) != (new.element(), new.components()) {
            return None;
        }
        all.extend(field(&cells, (old, &u[from.dofs_of(number)]), new));
    }
    Some(all)
}

/// Interpolates a field.
fn field(cells: &BisectionTransfer, (old, values): (&Space, &[f64]), new: &Space) -> Vec<f64> {
    let (components, points) = (new.components(), new.nodal().points());
    let of_cell = |cell: usize| {
        let mut own = vec![0.0; points.len() * components];
        match cells.source(cell) {
            CellSource::Contained { cell: within, place } => {
                let places: Vec<[f64; 3]> = points.iter().map(|point| place.at(point)).collect();
                let nodes: Vec<usize> = (0..points.len()).collect();
                evaluate(old, values, within, (&nodes, &places), &mut own);
            }
            CellSource::Union { cells: parts } => {
                for part in parts {
                    let map = cells.part(cell, part);
                    let places =
                        points.iter().map(|point| back(&map, point, old.element().cell().dim()));
                    let inside = places.enumerate().filter(|(_, at)| is_inside(at));
                    let (nodes, places): (Vec<usize>, Vec<[f64; 3]>) = inside.unzip();
                    evaluate(old, values, part, (&nodes, &places), &mut own);
                }
            }
        }
        own
    };
    let n_cells = cells.n_cells();
    let own: Vec<Vec<f64>> = (0..n_cells).into_par_iter().with_min_len(64).map(of_cell).listed();
    let mut all = vec![0.0; new.n_dofs()];
    for (cell, own) in own.iter().enumerate() {
        for (row, &node) in own.chunks_exact(components).zip(new.cell_nodes(cell)) {
            all[node as usize * components..][..components].copy_from_slice(row);
        }
    }
    all
}

/// Evaluates a cell's function at some points, which are nodes of another cell.
fn evaluate(
    space: &Space,
    values: &[f64],
    cell: usize,
    (nodes, places): (&[usize], &[[f64; 3]]),
    into: &mut [f64],
) {
    let (components, table) = (space.components(), tabulate(space.element(), places));
    for (row, &node) in nodes.iter().enumerate() {
        for c in 0..components {
            let terms = space.cell_nodes(cell).iter().enumerate();
            let value = |(local, &node): (usize, &u32)| {
                table.value(row, local) * values[node as usize * components + c]
            };
            into[node * components + c] = terms.map(value).sum();
        }
    }
}

/// Returns ξ with o + A ξ = x.
fn back(map: &AffineMap, x: &[f64; 3], dim: usize) -> [f64; 3] {
    let (origin, mut axes) = (map.origin(), map.axes());
    if dim == 2 {
        axes[2] = [0.0, 0.0, 1.0];
    }
    let cross = |a: [f64; 3], b: [f64; 3]| {
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    };
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let rest = [0, 1, 2].map(|c| x[c] - origin[c]);
    let det = dot(axes[0], cross(axes[1], axes[2]));
    [0, 1, 2].map(|a| dot(rest, cross(axes[(a + 1) % 3], axes[(a + 2) % 3])) / det)
}

fn is_inside(xi: &[f64; 3]) -> bool {
    xi.iter().all(|&s| s > -NOTHING) && xi.iter().sum::<f64>() < 1.0 + NOTHING
}
