//! Conversion of array rows to values on cells and at nodes.

use super::FileError;
use crate::mesh::Mesh;
use crate::mesh::source_order::{DataRows, NOWHERE};
use crate::space::Space;
use fem_dsl::point::Shape;
use kernels_gen::element::{Lagrange, interpolation};

/// Smaller deviations of weights from 0 or 1 are rounding errors.
const NOTHING: f64 = 1e-14;

/// Selects the required components. VTK pads plane vectors to three components; zero third components are dropped.
pub(super) fn components(
    values: &[f64],
    found: usize,
    shape: Shape,
    dim: usize,
) -> Result<Vec<f64>, FileError> {
    let expected = shape.components();
    if found == expected {
        return Ok(values.to_vec());
    }
    let kept: &[usize] = match (shape, found) {
        (Shape::Vector(1), 3) | (Shape::Matrix(1, 1), 9) if dim == 1 => &[0],
        (Shape::Vector(2), 3) if dim == 2 => &[0, 1],
        (Shape::Matrix(2, 2), 9) if dim == 2 => &[0, 1, 3, 4],
        _ => return Err(FileError::Components { found, expected }),
    };
    let mut all = Vec::with_capacity(values.len() / found * expected);
    for value in values.chunks_exact(found) {
        if (0..found).any(|at| value[at] != 0.0 && !kept.contains(&at)) {
            return Err(FileError::Components { found, expected });
        }
        all.extend(kept.iter().map(|&at| value[at]));
    }
    Ok(all)
}

/// Returns the rows in the order of the mesh.
pub(super) fn taken(rows: &DataRows, values: &[f64], components: usize) -> Vec<f64> {
    let own = |&row: &u32| &values[row as usize * components..][..components];
    rows.of.iter().flat_map(own).copied().collect()
}

/// Returns the cell values as coefficients of a space of degree 0.
pub(super) fn by_cell(space: &Space, values: &[f64]) -> Vec<f64> {
    let components = space.components();
    let mut all = vec![0.0; space.n_dofs()];
    for (value, &node) in values.chunks_exact(components).zip(space.nodes()) {
        all[node as usize * components..][..components].copy_from_slice(value);
    }
    all
}

/// Values at the geometry nodes of a mesh, by rows, and their element.
pub(super) fn at_points(
    mesh: &Mesh,
    rows: &DataRows,
    values: &[f64],
    components: usize,
) -> Result<(Lagrange, Vec<f64>), FileError> {
    let own = match rows.of.contains(&NOWHERE) {
        true => completed(mesh, rows, values, components).ok_or(FileError::AddedNodes)?,
        false => taken(rows, values, components),
    };
    let equispaced = mesh.is_equispaced() && mesh.order() > 2;
    let make = if equispaced { Lagrange::equispaced } else { Lagrange::continuous };
    let unnumbered = |_| FileError::Unnumbered { order: mesh.order() };
    Ok((make(mesh.cell(), mesh.order()).map_err(unnumbered)?, own))
}

/// Completes nodal values of serendipity cells at face and interior nodes. There the functions of vertices are −1/4,
/// those of edges 1/2 at a face centre and 1/4 at the centre of a hexahedron. `None` if other nodes have no row either.
fn completed(mesh: &Mesh, rows: &DataRows, values: &[f64], components: usize) -> Option<Vec<f64>> {
    if mesh.order() != 2 || !mesh.cell().is_tensor() {
        return None;
    }
    let geometry = Lagrange::continuous(mesh.cell(), 2).ok()?;
    let lattice: Vec<[usize; 3]> = geometry.nodes().iter().map(|node| node.lattice).collect();
    let middles = |node: &[usize; 3]| node.iter().filter(|&&x| x == 1).count();
    let mut all = vec![0.0; rows.of.len() * components];
    for nodes in mesh.nodes().chunks_exact(mesh.nodes_per_cell()) {
        for (at, &node) in lattice.iter().zip(nodes) {
            let row = |node: u32| {
                let row = rows.of[node as usize];
                (row != NOWHERE).then(|| &values[row as usize * components..][..components])
            };
            let out = &mut all[node as usize * components..][..components];
            if let Some(own) = row(node) {
                out.copy_from_slice(own);
                continue;
            }
            out.fill(0.0);
            let near = lattice.iter().zip(nodes).filter(|(other, _)| {
                middles(other) < 2 && (0..3).all(|c| at[c] == 1 || other[c] == at[c])
            });
            for (other, &node) in near {
                let weight = match (middles(other), middles(at)) {
                    (0, _) => -0.25,
                    (_, 2) => 0.5,
                    _ => 0.25,
                };
                let value = row(node)?;
                out.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }
    Some(all)
}

/// Interpolates a function of one element, with connectivity `nodes` (`[cell][local node]`), at the nodes of a space.
pub(super) fn interpolated(from: Lagrange, nodes: &[u32], values: &[f64], to: &Space) -> Vec<f64> {
    let components = to.components();
    let rounded = |weight: f64| if (weight - 1.0).abs() < NOTHING { 1.0 } else { weight };
    let table: Vec<f64> =
        interpolation(from, &to.nodal().points()).into_iter().map(rounded).collect();
    let mut all = vec![0.0; to.n_dofs()];
    let mut done = vec![false; to.n_nodes()];
    let cells = nodes.chunks_exact(from.count()).zip(to.nodes().chunks_exact(to.nodes_per_cell()));
    for (theirs, ours) in cells {
        for (weights, &node) in table.chunks_exact(from.count()).zip(ours) {
            if std::mem::replace(&mut done[node as usize], true) {
                continue;
            }
            let out = &mut all[node as usize * components..][..components];
            for (&weight, &node) in weights.iter().zip(theirs).filter(|(w, _)| w.abs() > NOTHING) {
                let value = &values[node as usize * components..][..components];
                out.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
            }
        }
    }
    all
}
