//! Block-structured meshes: every block is a grid, all mapped by one function.
//!
//! Blocks are (multi)linear cells in a computational domain of cubes, which a map takes to the physical domain. Blocks
//! are oriented consistently first, so that grids on shared edges and faces coincide index by index. A point's number
//! follows from the vertex, edge or face of the block that contains it, as for degrees of freedom. Higher-order
//! geometry nodes are numbered in the same way on the refined cells. The map gives their positions, so that curved
//! cells follow it.

use super::simplices;
use crate::mesh::assemble::{Conformity, assemble};
use crate::mesh::measure::JacobianSign;
use crate::mesh::measure::mean;
use crate::mesh::shape::vertex_function;
use crate::mesh::{
    Cell, CellOrdering, EntityCounts, Mesh, MeshData, MeshError, Topology, counts, index, order,
    orient,
};
use kernels_gen::element::Lagrange;
use std::collections::BTreeSet;

/// Straight cells in the computational domain.
pub(super) struct Blocks {
    pub(super) cell: Cell,
    pub(super) points: Vec<[f64; 3]>,
    pub(super) nodes: Vec<u32>,
}

/// Refinement of the blocks.
#[derive(Clone, Copy)]
pub(super) struct Refinement {
    /// The number of bisections of every block.
    pub(super) refine: usize,
    /// The order of the geometry.
    pub(super) order: usize,
    /// The kind of cell.
    pub(super) cell: Cell,
}

impl Refinement {
    /// Returns the numbers of entities after refinement of blocks with this topology.
    fn counts(self, blocks: &Topology) -> EntityCounts {
        let corners = (0..blocks.n_cells()).flat_map(|block| blocks.vertices(block));
        let vertices = corners.collect::<BTreeSet<_>>().len();
        let count = [vertices, blocks.edges().len(), blocks.faces().len(), 0];
        let mut entities = count.map(|count| count as u64);
        entities[blocks.cell().dim()] = blocks.n_cells() as u64;
        EntityCounts::split(self.cell, self.order, counts::cut(entities, 1 << self.refine))
    }
}

/// The order of the cells.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum CellOrder {
    /// Block by block, brick by brick.
    Bricks,
    /// Along one space-filling curve, which gives contiguous subdomains a small surface.
    Curve,
}

impl Blocks {
    /// Refines and maps the blocks.
    pub(super) fn mesh(
        self,
        refined: Refinement,
        map: impl Fn([f64; 3]) -> [f64; 3],
        along: CellOrder,
    ) -> Result<Mesh, MeshError> {
        let mut world = self.oriented()?.halved(refined)?;
        if along == CellOrder::Curve {
            world.nodes = along_curve(world.cell, &world.points, &world.nodes);
        }
        if !refined.cell.is_tensor() {
            world.nodes = simplices::split(world.cell, &world.nodes);
            world.cell = refined.cell;
            // Ascending, so that edges and faces have one direction in all their cells.
            let n = refined.cell.vertex_count();
            world.nodes.chunks_exact_mut(n).for_each(<[u32]>::sort_unstable);
        }
        let negative = world.negative();
        if refined.order > 1 {
            world = world.elevated(refined.order)?;
        }
        let points = world.points.into_iter().map(map).collect();
        let parts = MeshData { points, nodes: world.nodes, ..MeshData::default() };
        assemble(
            refined.cell,
            refined.order,
            parts,
            CellOrdering::Original,
            JacobianSign::Negative(&negative),
            Conformity::Conforming,
        )
    }

    /// Returns the centre of each refined cell in the computational domain.
    pub(super) fn centres(self, refined: Refinement) -> Result<Vec<[f64; 3]>, MeshError> {
        let world = self.oriented()?.halved(refined)?;
        let cells = world.nodes.chunks_exact(world.cell.vertex_count());
        Ok(cells.map(|cell| mean(&world.points, cell)).collect())
    }

    /// Returns the numbers of entities of the refined blocks.
    pub(super) fn counts(&self, refined: Refinement) -> Result<EntityCounts, MeshError> {
        let topology = Topology::new(self.cell, self.points.len(), self.nodes.clone())?;
        Ok(refined.counts(&topology))
    }

    /// Checks that 32-bit indices can number the nodes of the finished mesh. Six simplices per cell are assumed, so
    /// that all later counts fit.
    pub(super) fn check(&self, refined: Refinement) -> Result<(), MeshError> {
        let (dim, n) = (self.cell.dim() as u32, 1usize << refined.refine);
        let nodes_per_cell = (refined.order + 1).pow(dim);
        let splits = if refined.cell.is_tensor() { 1 } else { 6 };
        let blocks = self.nodes.len() / self.cell.vertex_count();
        index(blocks * n.pow(dim) * nodes_per_cell * splits, "cell nodes").map(drop)
    }

    fn oriented(mut self) -> Result<Blocks, MeshError> {
        if let Some(all) = orient::orient(self.cell, self.points.len(), &self.nodes)? {
            for (block, renumbering) in
                self.nodes.chunks_exact_mut(self.cell.vertex_count()).zip(all)
            {
                let old = block.to_vec();
                for (new, from) in block.iter_mut().zip(renumbering) {
                    *new = old[from as usize];
                }
            }
        }
        Ok(self)
    }

    /// Splits every block into 2^refine cells per direction, in brick order.
    fn halved(&self, refined: Refinement) -> Result<Blocks, MeshError> {
        let (dim, n) = (self.cell.dim(), 1usize << refined.refine);
        let topology = Topology::new(self.cell, self.points.len(), self.nodes.clone())?;
        self.check(refined)?;
        refined.counts(&topology).check_room()?;

        let numbering = PointNumbering::new(&topology, |d| (n - 1).pow(d as u32));
        let corners = SubEntityTable::new(self.cell);
        let mut points = vec![[0.0; 3]; numbering.total];
        let mut nodes = Vec::new();
        let side = |a: usize| if a < dim { n } else { 1 };
        let cells = order::brick_order([side(0), side(1), side(2)]);
        for block in 0..topology.n_cells() {
            for cell in &cells {
                for vertex in 0..self.cell.vertex_count() {
                    let place = [0, 1, 2].map(|a| cell[a] as usize + (vertex >> a & 1));
                    let (d, entity, within) = corners.locate(place, n);
                    let number = numbering.number(&topology, block, d, entity, within);
                    let at = place.map(|i| i as f64 / n as f64);
                    points[number] = self.point(block, at);
                    nodes.push(number as u32);
                }
            }
        }
        Ok(Blocks { cell: self.cell, points, nodes })
    }

    /// Returns the same cells with geometry nodes of a higher degree.
    fn elevated(&self, degree: usize) -> Result<Blocks, MeshError> {
        let expected = "orders are 1 to 12, on simplices 1 to 8";
        let element = Lagrange::continuous(self.cell, degree)
            .map_err(|_| MeshError::Unsupported { cell: self.cell, order: degree, expected })?;
        let topology = Topology::new(self.cell, self.points.len(), self.nodes.clone())?;
        let numbering = PointNumbering::new(&topology, |d| element.entity_count(d));
        let lagrange_nodes = element.nodes();
        let mut points = vec![[0.0; 3]; numbering.total];
        let mut nodes = Vec::with_capacity(topology.n_cells() * lagrange_nodes.len());
        for cell in 0..topology.n_cells() {
            for node in &lagrange_nodes {
                let number = numbering.number(&topology, cell, node.dim, node.entity, node.index);
                points[number] = self.point(cell, node.point);
                nodes.push(number as u32);
            }
        }
        Ok(Blocks { cell: self.cell, points, nodes })
    }

    /// Marks cells whose vertex order gives a negative Jacobian determinant. Cells in the computational domain are far
    /// from degenerate, and maps keep the sign.
    fn negative(&self) -> Vec<bool> {
        let dim = self.cell.dim();
        let tip = |a: usize| if self.cell.is_tensor() { 1 << a } else { a + 1 };
        self.nodes
            .chunks_exact(self.cell.vertex_count())
            .map(|cell| {
                let point = |v: usize| self.points[cell[v] as usize];
                let side = |a: usize| [0, 1, 2].map(|c| point(tip(a))[c] - point(0)[c]);
                let (x, y) = (side(0), side(1));
                let z = if dim == 3 { side(2) } else { [0.0, 0.0, 1.0] };
                x[0] * (y[1] * z[2] - y[2] * z[1])
                    + x[1] * (y[2] * z[0] - y[0] * z[2])
                    + x[2] * (y[0] * z[1] - y[1] * z[0])
                    < 0.0
            })
            .collect()
    }

    /// Returns the point of a block at given reference coordinates.
    fn point(&self, block: usize, at: [f64; 3]) -> [f64; 3] {
        let n = self.cell.vertex_count();
        let mut point = [0.0; 3];
        for (v, &vertex) in self.nodes[block * n..(block + 1) * n].iter().enumerate() {
            let weight = vertex_function(self.cell, v, at);
            for c in 0..3 {
                point[c] += weight * self.points[vertex as usize][c];
            }
        }
        point
    }
}

/// Returns the vertices of the cells, reordered along the Hilbert curve through the cell centres.
pub(super) fn along_curve(cell: Cell, points: &[[f64; 3]], nodes: &[u32]) -> Vec<u32> {
    let each = cell.vertex_count();
    let middles: Vec<[f64; 3]> = nodes.chunks_exact(each).map(|cell| mean(points, cell)).collect();
    let order = order::hilbert_order(cell.dim(), &middles).into_iter();
    order.flat_map(|cell| &nodes[cell as usize * each..][..each]).copied().collect()
}

/// Numbering of points that belong to vertices, edges, faces and cells.
struct PointNumbering {
    /// The first number of each dimension's entities.
    start: [usize; 4],
    /// Points per entity of each dimension.
    each: [usize; 4],
    total: usize,
}

impl PointNumbering {
    fn new(topology: &Topology, each: impl Fn(usize) -> usize) -> PointNumbering {
        let dim = topology.cell().dim();
        let mut count = [topology.n_vertices(), topology.edges().len(), topology.faces().len(), 0];
        count[dim] = topology.n_cells();
        let mut numbering = PointNumbering { start: [0; 4], each: [1; 4], total: 0 };
        for d in 0..=dim {
            numbering.each[d] = if d == 0 { 1 } else { each(d) };
            numbering.start[d] = numbering.total;
            numbering.total += count[d] * numbering.each[d];
        }
        numbering
    }

    fn number(
        &self,
        topology: &Topology,
        cell: usize,
        dim: usize,
        local: usize,
        within: usize,
    ) -> usize {
        let entity = match dim {
            0 => topology.vertices(cell)[local] as usize,
            1 => topology.edges().of_cell(cell)[local] as usize,
            2 if topology.cell().dim() == 3 => topology.faces().of_cell(cell)[local] as usize,
            _ => cell,
        };
        self.start[dim] + entity * self.each[dim] + within
    }
}

/// Table of the sub-entities of a tensor cell that contain its lattice points.
struct SubEntityTable {
    dim: usize,
    /// Dimension and number of the sub-entity, for each choice of 0, 1 or interior per axis.
    table: Vec<(usize, usize)>,
}

impl SubEntityTable {
    fn new(cell: Cell) -> SubEntityTable {
        let mut table = vec![(0, 0); 3usize.pow(cell.dim() as u32)];
        for dim in 0..=cell.dim() {
            for (number, vertices) in cell.entities(dim).iter().enumerate() {
                let spanned = vertices.iter().fold(0, |bits, v| bits | (v ^ vertices[0]));
                let slot = (0..cell.dim()).rev().fold(0, |slot, a| {
                    3 * slot + if spanned >> a & 1 == 1 { 2 } else { vertices[0] >> a & 1 }
                });
                table[slot] = (dim, number);
            }
        }
        SubEntityTable { dim: cell.dim(), table }
    }

    /// Returns the dimension and number of the sub-entity, and the point's number inside it, x fastest.
    fn locate(&self, place: [usize; 3], n: usize) -> (usize, usize, usize) {
        let (mut slot, mut within) = (0, 0);
        for a in (0..self.dim).rev() {
            slot = 3 * slot
                + match place[a] {
                    0 => 0,
                    i if i == n => 1,
                    i => {
                        within = within * (n - 1) + i - 1;
                        2
                    }
                };
        }
        let (dim, number) = self.table[slot];
        (dim, number, within)
    }
}
