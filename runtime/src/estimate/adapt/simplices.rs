//! Transfer of solutions between meshes of a bisection: nodal interpolation on the new mesh, the projection of
//! discontinuous functions where cells merge, or the functionals of fields in H(curl) and H(div).
//!
//! With ξ = o + T η the place of a cell in an old one, functions of the reference cells are related by
//!
//! ```text
//! H(curl)   û(η) = Tᵀ û(ξ)          H(div)   û(η) = det T · T⁻¹ û(ξ)
//! ```

use super::projection::SimplexProjection;
use crate::mesh::refine::bisect::{AffineMap, BisectionTransfer, CellSource};
use crate::space::Space;
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;
use kernels_gen::element::{Whitney, WhitneyFamily, tabulate, tabulate_components};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
        let values = &u[from.dofs_of(number)];
        all.extend(match new.element().whitney() {
            None => field(&cells, (old, values), new),
            Some(element) => vectors(&cells, element, (old, values), new),
        });
    }
    Some(all)
}

/// Interpolates a field.
fn field(cells: &BisectionTransfer, (old, values): (&Space, &[f64]), new: &Space) -> Vec<f64> {
    let (components, points) = (new.components(), new.nodal().points());
    let is_projected = !new.element().is_continuous();
    let projection = is_projected.then(|| SimplexProjection::new(new.element()));
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
                    if let Some(projection) = &projection {
                        project(old, values, part, &projection.of_part(&map), &mut own);
                        continue;
                    }
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

/// Adds the projection of a part's function, with the weights of its nodes in those of the cell.
fn project(old: &Space, values: &[f64], part: usize, weights: &[f64], into: &mut [f64]) {
    let (components, nodes) = (old.components(), old.cell_nodes(part));
    for (into, row) in into.chunks_exact_mut(components).zip(weights.chunks_exact(nodes.len())) {
        for (c, into) in into.iter_mut().enumerate() {
            let read = nodes.iter().map(|&node| values[node as usize * components + c]);
            *into += row.iter().zip(read).map(|(weight, u)| weight * u).sum::<f64>();
        }
    }
}

/// Interpolates a field in H(curl) or H(div).
fn vectors(
    cells: &BisectionTransfer,
    element: Whitney,
    (old, values): (&Space, &[f64]),
    new: &Space,
) -> Vec<f64> {
    let weights = VectorWeights::new(element);
    let of_cell = |cell: usize| {
        let (parts, maps): (Vec<usize>, Vec<AffineMap>) = match cells.source(cell) {
            CellSource::Contained { cell: within, place } => (vec![within], vec![place]),
            CellSource::Union { cells: parts } => {
                parts.map(|part| (part, cells.part(cell, part))).unzip()
            }
        };
        let (is_part, mut own) = (parts.len() > 1, vec![0.0; element.count()]);
        for (&part, matrix) in parts.iter().zip(weights.of(&maps, is_part).iter()) {
            let signs = old.cell_signs(part);
            let read = |(local, &node): (usize, &u32)| {
                let value = values[node as usize];
                if signs.get(local) == Some(&true) { -value } else { value }
            };
            let read: Vec<f64> = old.cell_nodes(part).iter().enumerate().map(read).collect();
            for (value, row) in own.iter_mut().zip(matrix.chunks_exact(read.len())) {
                *value += row.iter().zip(&read).map(|(weight, u)| weight * u).sum::<f64>();
            }
        }
        own
    };
    let n_cells = cells.n_cells();
    let own: Vec<Vec<f64>> = (0..n_cells).into_par_iter().with_min_len(64).map(of_cell).listed();
    let mut all = vec![0.0; new.n_dofs()];
    for (cell, own) in own.iter().enumerate() {
        let signs = new.cell_signs(cell);
        for (local, (value, &node)) in own.iter().zip(new.cell_nodes(cell)).enumerate() {
            all[node as usize] = if signs.get(local) == Some(&true) { -value } else { *value };
        }
    }
    all
}

/// Weights of the degrees of freedom of old cells in those of a new one. Cells of a bisection have few different places in
/// each other.
struct VectorWeights {
    element: Whitney,
    /// The points of the functionals of all degrees of freedom, their weights, and the first point of each.
    points: Vec<[f64; 3]>,
    weights: Vec<[f64; 3]>,
    starts: Vec<usize>,
    known: Mutex<BTreeMap<Vec<u64>, Arc<Vec<Vec<f64>>>>>,
}

impl VectorWeights {
    fn new(element: Whitney) -> Self {
        let (mut points, mut weights, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for dof in element.dofs() {
            // Old cells may meet within an entity, where the function is piecewise polynomial.
            let rule = element.functional(&dof, element.degree() + 2);
            points.extend(rule.iter().map(|(point, _)| *point));
            weights.extend(rule.iter().map(|(_, weight)| *weight));
            starts.push(points.len());
        }
        Self { element, points, weights, starts, known: Mutex::default() }
    }

    /// Returns the weights of each old cell, `[new][old]`, from the map of the new cell into the old one, or from the maps
    /// of old parts into the new cell.
    fn of(&self, maps: &[AffineMap], is_part: bool) -> Arc<Vec<Vec<f64>>> {
        let numbers =
            maps.iter().flat_map(|map| [vec![map.origin()], map.axes().to_vec()].concat());
        let mut key: Vec<u64> = numbers.flatten().map(f64::to_bits).collect();
        key.push(u64::from(is_part));
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&key) {
            return Arc::clone(found);
        }
        let mut is_free = vec![true; self.points.len()];
        let matrices = maps.iter().map(|map| self.matrix(map, is_part, &mut is_free)).collect();
        Arc::clone(known().entry(key).or_insert(Arc::new(matrices)))
    }

    /// Computes the weights of an old cell, at the points that no other has taken.
    fn matrix(&self, map: &AffineMap, is_part: bool, is_free: &mut [bool]) -> Vec<f64> {
        let (dim, count) = (self.element.cell().dim(), self.element.count());
        let place = |point: &[f64; 3]| if is_part { back(map, point, dim) } else { map.at(point) };
        let columns = tangents(map, dim);
        let pulled =
            pull_back(self.element.family(), if is_part { inverse(&columns) } else { columns });
        let mut matrix = vec![0.0; count * count];
        let mut own: Vec<(usize, usize, [f64; 3])> = Vec::new();
        for (row, range) in self.starts.windows(2).enumerate() {
            for at in range[0]..range[1] {
                let at_old = place(&self.points[at]);
                if is_free[at] && (!is_part || is_inside(&at_old)) {
                    is_free[at] = false;
                    own.push((row, at, at_old));
                }
            }
        }
        let places: Vec<[f64; 3]> = own.iter().map(|(.., place)| *place).collect();
        let tables = tabulate_components(self.element, &places);
        for (q, &(row, at, _)) in own.iter().enumerate() {
            for (i, entry) in matrix[row * count..][..count].iter_mut().enumerate() {
                let value = [0, 1, 2].map(|a| tables.get(a).map_or(0.0, |table| table.value(q, i)));
                *entry += (0..3).map(|a| self.weights[at][a] * dot(pulled[a], value)).sum::<f64>();
            }
        }
        matrix
    }
}

/// Returns the rows of Tᵀ, or of det T · T⁻¹, from the columns of T = ∂ξ/∂η.
fn pull_back(family: WhitneyFamily, tangents: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    match family {
        WhitneyFamily::Curl => tangents,
        WhitneyFamily::Div => {
            [0, 1, 2].map(|a| cross(tangents[(a + 1) % 3], tangents[(a + 2) % 3]))
        }
    }
}

/// Returns the columns of a map's matrix; in the plane the third one is the unit vector across it.
fn tangents(map: &AffineMap, dim: usize) -> [[f64; 3]; 3] {
    let [s, t, across] = map.axes();
    [s, t, if dim == 2 { [0.0, 0.0, 1.0] } else { across }]
}

/// Returns the columns of the inverse of a matrix from its columns.
fn inverse(columns: &[[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let rows = [0, 1, 2].map(|a| cross(columns[(a + 1) % 3], columns[(a + 2) % 3]));
    let det = dot(columns[0], rows[0]);
    [0, 1, 2].map(|c| [0, 1, 2].map(|a| rows[a][c] / det))
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
    let (origin, axes) = (map.origin(), tangents(map, dim));
    let rest = [0, 1, 2].map(|c| x[c] - origin[c]);
    let det = dot(axes[0], cross(axes[1], axes[2]));
    [0, 1, 2].map(|a| dot(rest, cross(axes[(a + 1) % 3], axes[(a + 2) % 3])) / det)
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn is_inside(xi: &[f64; 3]) -> bool {
    xi.iter().all(|&s| s > -NOTHING) && xi.iter().sum::<f64>() < 1.0 + NOTHING
}
