//! Uniform refinement of meshes.
//!
//! Quadrilaterals and hexahedra are refined as a [`Forest`] with leaves of one level, simplices by red refinement
//! ([`super::red`]). Children inherit the map of their parent ([`super::descent`]), its tags and those of its facets.
//! Cells follow the order of their parents, in Morton order within each, and are gathered into chains as usual.

use super::children::ChildMaps;
use super::descent::Descent;
use super::lattice::CellLattice;
use super::nodes::{geometry, placed};
use super::red::Simplices;
use super::{Forest, ForestError};
use crate::mesh::order::chain_order;
use crate::mesh::periodic::PeriodicError;
use crate::mesh::refined::{Descendants, RefinedMesh};
use crate::mesh::{Cell, EntityCounts, LoadError, Mesh, MeshData, MeshError, Topology};
use kernels_gen::element::Lagrange;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Error of uniform refinement.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RefineError {
    /// A finer mesh that is invalid or too large.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// Periodic sides that do not match on the finer mesh.
    #[error(transparent)]
    Periodic(#[from] PeriodicError),
}

impl From<ForestError> for RefineError {
    fn from(error: ForestError) -> Self {
        let what = "cells";
        Self::Mesh(match error {
            ForestError::TooMany { count } => MeshError::TooLarge { what, count },
            ForestError::Simplices { cell } => MeshError::Unsupported {
                cell,
                order: 1,
                expected: "a forest is of interval, quad or hex cells",
            },
            ForestError::Mesh(error) => error,
            // Only reachable by index overflow: uniform refinement keeps balance.
            ForestError::TooFine { .. }
            | ForestError::Part
            | ForestError::Unbalanced { .. }
            | ForestError::Another { .. } => MeshError::TooLarge { what, count: usize::MAX },
        })
    }
}

/// Refines the mesh of a problem `times` times ([`Mesh::refined`]).
///
/// # Errors
///
/// [`LoadError::Refine`].
pub fn refined(mesh: Mesh, times: usize) -> Result<Mesh, LoadError> {
    let refused = |error: RefineError| LoadError::Refine { times, error: Box::new(error.into()) };
    mesh.refined(times).map_err(refused)
}

impl From<RefineError> for PeriodicError {
    fn from(error: RefineError) -> Self {
        match error {
            RefineError::Mesh(error) => Self::Mesh(error),
            RefineError::Periodic(error) => error,
        }
    }
}

impl Mesh {
    /// Refines each cell `times` times, into 2, 4 or 8 children: tensor cells by bisection of each axis, simplices by red
    /// refinement. Children inherit tags and the map of their parent. On generated balls and shells, new boundary nodes
    /// lie on the spheres. Periodic sides are kept. For a mesh part, each process refines its own cells (at least one);
    /// no process builds the whole fine mesh.
    ///
    /// # Errors
    ///
    /// An index overflow, insufficient memory, or a part of simplices with periodic sides or spheres.
    ///
    /// ```
    /// use fem_mesh::mesh::{Cell, CellOrdering, Mesh, MeshData};
    ///
    /// let parts = MeshData {
    ///     points: vec![[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
    ///     nodes: vec![0, 1, 2],
    ///     ..MeshData::default()
    /// };
    /// let mesh = Mesh::new(Cell::Triangle, 1, parts, CellOrdering::Sorted)?.refined(2)?;
    /// assert_eq!((mesh.n_cells(), mesh.n_vertices()), (16, 15));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn refined(self, times: usize) -> Result<Mesh, RefineError> {
        if times == 0 {
            return Ok(self);
        }
        let counts = EntityCounts::of(&self).refined(times);
        counts.check_indices()?;
        counts.check_room()?;
        let (is_part, sides) = (self.cut().is_some(), self.periodic_sides().to_vec());
        if is_part && self.cell().is_tensor() {
            return in_forest(self, times);
        }
        if is_part && !(sides.is_empty() && self.spheres().is_empty()) {
            return Err(PeriodicError::Part.into());
        }
        let (mut parts, descendants) = match self.cell().is_tensor() {
            true => tensor(&self, times)?,
            false => simplices(&self, times)?,
        };
        self.place(&mut parts.points);
        let each = 1 << (self.dim() * times);
        parts.cells = self.inherited_tags(descendants.iter().map(|&number| number as usize / each));
        let turned = turned(&self, times);
        let negative = self.mirrored();
        let is_negative = |&number: &u32| {
            let (parent, child) = (number as usize / each, number as usize % each);
            negative[parent] != turned.get(child).copied().unwrap_or(false)
        };
        let negative: Vec<bool> = descendants.iter().map(is_negative).collect();
        let cells = Descendants::Uniform { times, numbers: descendants };
        let refined = RefinedMesh { coarse: Arc::new(self), cells, seen: Vec::new() };
        let mut mesh = Mesh::of_descendants(parts, &negative, refined)?;
        if is_part {
            mesh.inherit_red(times);
        }
        if !sides.is_empty() {
            mesh.make_periodic(&sides)?;
        }
        Ok(mesh)
    }
}

/// Refines a mesh part of squares or cubes.
fn in_forest(mesh: Mesh, times: usize) -> Result<Mesh, RefineError> {
    let mesh = Arc::new(mesh);
    let mut forest = Forest::new(&mesh)?;
    for _ in 0..times {
        forest.refine(|_| true)?;
    }
    Ok(forest.mesh(&mesh)?)
}

/// Points, nodes and facets of the refined squares or cubes, and the descendant number of each cell.
fn tensor(mesh: &Mesh, times: usize) -> Result<(MeshData, Vec<u32>), RefineError> {
    let mut forest = Forest::new(mesh)?;
    for _ in 0..times {
        forest.refine(|_| true)?;
    }
    let element = geometry(mesh)?;
    let (n, order) = (1usize << times, mesh.order());
    let lattice = CellLattice::new(mesh.topology(), n * order);
    let local: Vec<[usize; 3]> = element.nodes().iter().map(|node| node.lattice).collect();
    let mut descent = Descent::new(mesh, element, &ChildMaps::new(mesh.cell()));
    let mut points = PointNumbering::default();
    let mut nodes = Vec::with_capacity(forest.n_leaves() * local.len());
    let layout = forest.coarse().layout;
    let mut path = vec![0; times];
    for &leaf in forest.leaves() {
        let corner =
            layout.corner(leaf).map(|at| (at >> (super::FINEST as usize - times)) as usize);
        for (depth, child) in path.iter_mut().enumerate() {
            let bit = times - 1 - depth;
            *child = (0..mesh.dim()).map(|axis| (corner[axis] >> bit & 1) << axis).sum();
        }
        let places = descent.nodes(leaf.tree(), &path);
        for (at, place) in local.iter().zip(places) {
            let at = [0, 1, 2].map(|axis| corner[axis] * order + at[axis]);
            let number = lattice.number(leaf.tree() as usize, at);
            nodes.push(points.number(number, *place));
        }
    }
    let facets = facets(mesh, &lattice, n, &points);
    let count = nodes.len() / local.len();
    let ordered = chained(mesh.cell(), &element, &mut nodes, count);
    Ok((MeshData { points: points.all, nodes, facets, ..MeshData::default() }, ordered))
}

/// Points by lattice number, in order of first touch.
#[derive(Default)]
struct PointNumbering {
    known: Vec<u32>,
    all: Vec<[f64; 3]>,
}

impl PointNumbering {
    fn number(&mut self, lattice: usize, at: [f64; 3]) -> u32 {
        if self.known.len() <= lattice {
            self.known.resize(lattice + 1, u32::MAX);
        }
        let number = &mut self.known[lattice];
        if *number == u32::MAX {
            *number = self.all.len() as u32;
            self.all.push(at);
        }
        *number
    }
}

/// Returns the nodes of a tensor cell at its vertices; vertex positions agree with the lattice.
fn corner_nodes(element: &Lagrange) -> Vec<usize> {
    let cell = element.cell();
    let node = |vertex: usize| {
        let at = cell.vertex(vertex).map(|x| x as usize * element.degree());
        element.nodes().iter().position(|node| node.lattice == at).unwrap_or(0)
    };
    (0..cell.vertex_count()).map(node).collect()
}

/// Gathers cells into chains, and returns their original numbers.
fn chained(cell: Cell, element: &Lagrange, nodes: &mut Vec<u32>, count: usize) -> Vec<u32> {
    let each = element.count();
    let corners = corner_nodes(element);
    let vertices: Vec<u32> =
        nodes.chunks_exact(each).flat_map(|cell| corners.iter().map(|&node| cell[node])).collect();
    let order = chain_order(cell, &vertices, (0..count as u32).collect());
    *nodes =
        order.iter().flat_map(|&cell| &nodes[cell as usize * each..][..each]).copied().collect();
    order
}

/// Returns the parts of tagged facets, by their vertices.
fn facets(
    mesh: &Mesh,
    lattice: &CellLattice<'_>,
    n: usize,
    points: &PointNumbering,
) -> BTreeMap<String, Vec<[u32; 4]>> {
    let (cell, order) = (mesh.cell(), mesh.order());
    let corners = cell.facet_cell().map_or(1, Cell::vertex_count);
    let mut all = BTreeMap::new();
    for (tag, tagged) in mesh.facet_tags() {
        let mut parts = Vec::with_capacity(tagged.len() * n.pow(cell.dim() as u32 - 1));
        for facet in tagged {
            let (axis, side) = (usize::from(facet.local) / 2, usize::from(facet.local) % 2);
            let others: Vec<usize> = (0..cell.dim()).filter(|&other| other != axis).collect();
            for part in 0..n.pow(others.len() as u32) {
                let mut vertices = [u32::MAX; 4];
                for (corner, vertex) in vertices.iter_mut().enumerate().take(corners) {
                    let mut at = [0; 3];
                    at[axis] = side * n * order;
                    for (place, &other) in others.iter().enumerate() {
                        let first = part / n.pow(place as u32) % n;
                        at[other] = (first + (corner >> place & 1)) * order;
                    }
                    *vertex = points.known[lattice.number(facet.cell as usize, at)];
                }
                parts.push(vertices);
            }
        }
        all.insert(tag.clone(), parts);
    }
    all
}

/// Points, nodes and facets of the refined simplices, and the descendant number of each cell.
fn simplices(mesh: &Mesh, times: usize) -> Result<(MeshData, Vec<u32>), RefineError> {
    let cell = mesh.cell();
    let of = |facet: &crate::mesh::Facet| {
        let all = mesh.vertices(facet.cell as usize);
        let mut vertices = [u32::MAX; 4];
        let local = cell.facets()[usize::from(facet.local)];
        vertices.iter_mut().zip(local).for_each(|(vertex, &v)| *vertex = all[v]);
        vertices.sort_unstable();
        vertices
    };
    let vertices = (0..mesh.n_cells()).flat_map(|cell| mesh.vertices(cell)).copied().collect();
    let facets = mesh.facet_tags().values().map(|tagged| tagged.iter().map(of).collect()).collect();
    let mut level = Simplices { cell, n_vertices: mesh.n_vertices(), vertices, facets };
    for _ in 0..times {
        level = level.divided()?;
    }
    let count = level.vertices.len() / cell.vertex_count();
    let topology = Topology::new(cell, level.n_vertices, level.vertices)?;
    let (children, each) = (1usize << cell.dim(), 1usize << (cell.dim() * times));
    let path = |number: usize, path: &mut Vec<usize>| {
        let digit = |depth: usize| number / children.pow((times - 1 - depth) as u32) % children;
        path.extend((0..times).map(digit));
        number / each
    };
    let (points, nodes) = placed(mesh, &ChildMaps::new(cell), &topology, path)?;
    let facets = mesh.facet_tags().keys().cloned().zip(level.facets).collect();
    let parts = MeshData { points, nodes, facets, ..MeshData::default() };
    Ok((parts, (0..count as u32).collect()))
}

/// Returns for each descendant of a cell whether its orientation is reversed; empty if none is.
fn turned(mesh: &Mesh, times: usize) -> Vec<bool> {
    let children = ChildMaps::new(mesh.cell());
    let own: Vec<bool> =
        (0..children.count()).map(|child| children.child(child).is_negative()).collect();
    if !own.contains(&true) {
        return Vec::new();
    }
    let mut all = vec![false];
    for _ in 0..times {
        all = all.iter().flat_map(|before| own.iter().map(move |own| before != own)).collect();
    }
    all
}
