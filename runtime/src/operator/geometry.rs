//! Geometry of cells in the form that kernels read, and coordinates of reference points.
//!
//! Tables are `[batch][number][lane]` with the numbers described in [`kernels_gen::plan::Geometry`]; x(ξ) = Σ_i φ_i(ξ)
//! x_i.

use crate::algebra::vector::Real;
use crate::device::VectorLayout;
use crate::device::cpu::Buffer;
use crate::mesh::Mesh;
use crate::operator::batch::Batches;
use crate::space::Space;
use crate::support::parallel::*;
use kernels_gen::abi::{TILE, coordinate_stride};
use kernels_gen::element::{ElementError, Lagrange, tabulate};
use kernels_gen::plan::Geometry;

/// A geometry that a mesh does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mesh of order {order} cannot be given to a kernel as `{geometry}`: {reason}")]
pub struct GeometryError {
    /// Geometry that the kernel reads.
    pub geometry: String,
    /// Order of the mesh.
    pub order: usize,
    /// Reason.
    pub reason: &'static str,
}

/// Builds the geometry table of some batches, with the first `numbers` of each cell. `None` for [`Geometry::Stored`],
/// which a kernel computes.
pub fn table<T: Real>(
    mesh: &Mesh,
    batches: &Batches,
    geometry: Geometry,
    numbers: usize,
) -> Result<Option<Buffer<T>>, GeometryError> {
    let dim = mesh.dim();
    let fail =
        |reason| Err(GeometryError { geometry: geometry.to_string(), order: mesh.order(), reason });
    Ok(Some(match geometry {
        Geometry::Affine if !mesh.is_affine() => return fail("its cells are not affine"),
        Geometry::Affine => batches.table(numbers, |cell, row| affine(mesh, cell, row)),
        Geometry::Vertices if mesh.order() != 1 => {
            return fail("its cells are curved");
        }
        Geometry::Vertices if !mesh.cell().is_tensor() => {
            return fail("its cells are simplices");
        }
        Geometry::Vertices if batches.are_rotated() => rotated_modes(mesh, batches),
        Geometry::Vertices => batches.table(dim << dim, |cell, row| modes(mesh, cell, row)),
        Geometry::Corners => return fail("its corners are gathered, not tabulated"),
        Geometry::Nodes(order) if order != mesh.order() => return fail("the orders differ"),
        Geometry::Nodes(order) => {
            let Ok(element) = Lagrange::continuous(mesh.cell(), order) else {
                return fail("there is no such element");
            };
            batches.of_nodes(element, dim, |cell, row| {
                for (row, point) in row.chunks_mut(dim).zip(mesh.map_points(cell)) {
                    copy(&point, row);
                }
            })
        }
        Geometry::Stored => return Ok(None),
    }))
}

/// Rounds the leading coordinates of a point into `row`.
fn copy<T: Real>(point: &[f64; 3], row: &mut [T]) {
    for (entry, &x) in row.iter_mut().zip(point) {
        *entry = T::from_f64(x);
    }
}

/// Writes J_ij = ∂x_i/∂ξ_j row-major, then x_0 if there is space for it.
fn affine<T: Real>(mesh: &Mesh, cell: usize, row: &mut [T]) {
    let dim = mesh.dim();
    let vertices = mesh.vertices(cell);
    let at = |vertex: usize| mesh.points()[vertices[vertex] as usize];
    let origin = at(0);
    let (jacobian, place) = row.split_at_mut(dim * dim);
    copy(&origin, place);
    for j in 0..dim {
        let tip = at(if mesh.cell().is_tensor() { 1 << j } else { j + 1 });
        for i in 0..dim {
            jacobian[i * dim + j] = T::from_f64(tip[i] - origin[i]);
        }
    }
}

/// Writes component i of the coefficient of monomial m at `m · dim + i`.
fn modes<T: Real>(mesh: &Mesh, cell: usize, row: &mut [T]) {
    let mut modes = [[0.0; 3]; 8];
    let vertices = mesh.vertices(cell);
    for (mode, &vertex) in modes.iter_mut().zip(vertices) {
        *mode = mesh.points()[vertex as usize];
    }
    transform(mesh.dim(), &mut modes);
    for (row, mode) in row.chunks_mut(mesh.dim()).zip(&modes) {
        copy(mode, row);
    }
}

/// Computes Σ_{s ⊆ m} (−1)^|m∖s| x_s for each monomial m from the corners x.
fn transform(dim: usize, modes: &mut [[f64; 3]; 8]) {
    for axis in 0..dim {
        let bit = 1 << axis;
        for m in (0..1usize << dim).filter(|m| m & bit != 0) {
            let low = modes[m ^ bit];
            for (high, low) in modes[m].iter_mut().zip(low) {
                *high -= low;
            }
        }
    }
}

/// Builds the table of these coefficients for cells that are rotated for a facet.
fn rotated_modes<T: Real>(mesh: &Mesh, batches: &Batches) -> Buffer<T> {
    let (dim, lanes) = (mesh.dim(), batches.lanes());
    let Ok(element) = Lagrange::continuous(mesh.cell(), 1) else { return Buffer::zeroed(0) };
    let mut corners = batches.of_nodes(element, dim, |cell, row: &mut [f64]| {
        for (row, point) in row.chunks_mut(dim).zip(mesh.map_points(cell)) {
            copy(&point, row);
        }
    });
    corners.par_chunks_mut((dim << dim) * lanes).with_min_len(64).each(|batch| {
        for lane in 0..lanes {
            let place = |m: usize, i: usize| (m * dim + i) * lanes + lane;
            let mut modes = [[0.0; 3]; 8];
            for (m, mode) in modes[..1 << dim].iter_mut().enumerate() {
                mode[..dim].iter_mut().enumerate().for_each(|(i, x)| *x = batch[place(m, i)]);
            }
            transform(dim, &mut modes);
            for (m, mode) in modes[..1 << dim].iter().enumerate() {
                mode[..dim].iter().enumerate().for_each(|(i, &x)| batch[place(m, i)] = x);
            }
        }
    });
    corners.iter().map(|&x| T::from_f64(x)).collect()
}

/// Returns the nodes of a space of degree 1 with the places of the corners, of the cells with nodes there: those without
/// hanging nodes, of the mesh and beyond it.
fn corners<'a>(mesh: &'a Mesh, space: &'a Space) -> impl Iterator<Item = (usize, [f64; 3])> + 'a {
    let is_whole = |cell: &usize| mesh.hanging_word(*cell) == 0;
    let own = (0..mesh.n_cells()).filter(is_whole).flat_map(|cell| {
        let corners = mesh.vertices(cell).iter().map(|&vertex| mesh.points()[vertex as usize]);
        space.cell_nodes(cell).iter().zip(corners)
    });
    let beyond = space.cells_beyond().filter(move |(cell, _)| is_whole(cell));
    let beyond = beyond.flat_map(|(cell, nodes)| nodes.iter().zip(mesh.map_points(cell)));
    own.chain(beyond).map(|(&node, corner)| (node as usize, corner))
}

/// Returns the coordinates of the nodes of a space of degree 1, at the node's number times the stride.
pub fn coordinates<T: Real>(
    mesh: &Mesh,
    space: &Space,
    number: impl Fn(usize) -> usize,
) -> Buffer<T> {
    let dim = mesh.dim();
    let stride = coordinate_stride(dim);
    let mut coordinates = Buffer::zeroed(space.n_nodes() * stride);
    for (node, corner) in corners(mesh, space) {
        copy(&corner, &mut coordinates[number(node) * stride..][..dim]);
    }
    coordinates
}

/// Returns one coordinate of the nodes of a space of degree 1, at the node's number.
pub fn coordinates_along<T: Real>(
    mesh: &Mesh,
    space: &Space,
    axis: usize,
    number: impl Fn(usize) -> usize,
) -> Buffer<T> {
    let mut coordinates = Buffer::zeroed(space.n_nodes());
    for (node, corner) in corners(mesh, space) {
        coordinates[number(node)] = T::from_f64(corner[axis]);
    }
    coordinates
}

/// Returns the coordinates of the nodes of a space of degree 1 in the positions of a tiled vector; the space has at
/// least as many components as there are directions.
pub fn coordinates_in_tiles<T: Real>(
    mesh: &Mesh,
    space: &Space,
    layout: &VectorLayout,
) -> Buffer<T> {
    let dim = mesh.dim();
    let mut coordinates = Buffer::zeroed(layout.len(space.n_dofs()));
    for (node, corner) in corners(mesh, space) {
        let place = layout.field(0).index(node);
        for (i, &x) in corner[..dim].iter().enumerate() {
            coordinates[place + i * TILE] = T::from_f64(x);
        }
    }
    coordinates
}

/// Returns the cell diameters, `[batch][lane]`.
pub fn diameters<T: Real>(mesh: &Mesh, batches: &Batches) -> Buffer<T> {
    batches.table(1, |cell, row| row[0] = T::from_f64(mesh.diameter(cell)))
}

/// Returns the physical coordinates `[cell][point]` of some reference points.
pub fn places(mesh: &Mesh, points: &[[f64; 3]]) -> Result<Vec<[f64; 3]>, ElementError> {
    let element = Lagrange::continuous(mesh.cell(), mesh.order())?;
    let table = tabulate(element, points);
    let mut places = vec![[0.0; 3]; mesh.n_cells() * points.len()];
    if places.is_empty() {
        return Ok(places);
    }
    places.par_chunks_mut(points.len()).enumerate().with_min_len(64).each(|(cell, places)| {
        for (place, values) in places.iter_mut().zip(table.values.chunks(table.nodes)) {
            *place = mesh.place_of(cell, values);
        }
    });
    Ok(places)
}
