//! `box`: a grid of quadrilaterals or hexahedra, or of the simplices that they split into.
//!
//! Cells come brick by brick ([`crate::mesh::order::brick_order`]). With `deform: a` the point
//! with relative coordinates s moves by a·L·Π_i sin(π s_i) in each direction of length L (with
//! the signs +, −, +): the boundary stays where it is, and no cell that touches the interior
//! stays affine. The map is one to one for a up to 0.25; the simplices of a coarse grid fold earlier,
//! which is reported as an inverted cell.

use super::arguments::Arguments;
use super::{GenerateError, simplices};
use crate::mesh::assemble::{Joined, Sign, assemble};
use crate::mesh::places::{NOWHERE, Order, Rows};
use crate::mesh::{Arrange, Cell, Counts, Mesh, MeshError, Parts, counts, order};
use std::f64::consts::PI;

/// The largest number of cells a direction.
const MOST: usize = 1 << 20;

/// The largest `deform`; 1/(1.155 π) = 0.2757 is where the map would fold.
const MOST_DEFORM: f64 = 0.25;

pub(super) fn generate(arguments: &Arguments<'_>) -> Result<Mesh, GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    let mut mesh = grid.mesh(cell).map_err(|error| arguments.mesh(error))?;
    for axis in 0..grid.dim {
        for (side, wall) in [grid.from[axis], grid.to[axis]].into_iter().enumerate() {
            let tag = format!("{}{side}", ["x", "y", "z"][axis]);
            mesh.tag_boundary(&tag, |facet| facet.iter().all(|point| point[axis] == wall));
        }
    }
    Ok(mesh)
}

/// Whether indices can number what the grid has.
pub(super) fn check(arguments: &Arguments<'_>) -> Result<(), GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    grid.check(cell).map(drop).map_err(|error| arguments.mesh(error))
}

/// What the grid has how many times.
pub(super) fn count(arguments: &Arguments<'_>) -> Result<Counts, GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    Ok(grid.counts(cell))
}

struct Grid {
    dim: usize,
    cells: [usize; 3],
    from: [f64; 3],
    to: [f64; 3],
    deform: f64,
}

impl Grid {
    fn new(arguments: &Arguments<'_>) -> Result<(Self, Cell), GenerateError> {
        let cell = arguments.cell(3)?;
        let dim = cell.dim();
        let cells = arguments.counts("cells", dim, MOST)?;
        let from = arguments.point("from", dim, 0.0)?;
        let to = arguments.point("to", dim, 1.0)?;
        if (0..dim).any(|c| to[c] <= from[c]) {
            let name = if arguments.has("to") { "to" } else { "from" };
            return Err(
                arguments.wrong(name, "such that `from` is less than `to` in each direction")
            );
        }
        let deform = arguments.number("deform", 0.0)?;
        if deform.abs() > MOST_DEFORM {
            return Err(arguments.wrong("deform", format!("from -{MOST_DEFORM} to {MOST_DEFORM}")));
        }
        Ok((Self { dim, cells, from, to, deform }, cell))
    }

    fn counts(&self, cell: Cell) -> Counts {
        Counts::split(cell, 1, counts::grid(self.dim, self.cells.map(|cells| cells as u64)))
    }

    /// Everything fits 32 bits if eight indices for each of the cells do: so many.
    fn check(&self, cell: Cell) -> Result<usize, MeshError> {
        let per_cell = if cell == Cell::Tetrahedron { 24 } else { 8 };
        let count = self.cells.iter().try_fold(per_cell, |n: usize, &c| n.checked_mul(c));
        let count = count.unwrap_or(usize::MAX);
        crate::mesh::index(count, "cell nodes").map(|_| count)
    }

    fn mesh(&self, cell: Cell) -> Result<Mesh, MeshError> {
        self.check(cell)?;
        self.counts(cell).check_room()?;
        let (points, nodes) = (self.points(), nodes(self.cells, cell));
        let parts = Parts { points, nodes, ..Parts::default() };
        let positive = Sign::Positive;
        let mut mesh = assemble(cell, 1, parts, Arrange::AsGiven, positive, Joined::Facets)?;
        mesh.order_of_source = Order::Grid(self.cells);
        Ok(mesh)
    }

    fn points(&self) -> Vec<[f64; 3]> {
        let n = [0, 1, 2].map(|a| if a < self.dim { self.cells[a] + 1 } else { 1 });
        let mut points = Vec::with_capacity(n[0] * n[1] * n[2]);
        for k in 0..n[2] {
            for j in 0..n[1] {
                for i in 0..n[0] {
                    points.push(self.point([i, j, k]));
                }
            }
        }
        points
    }

    fn point(&self, place: [usize; 3]) -> [f64; 3] {
        let mut point = [0.0; 3];
        let mut bump = self.deform;
        for a in 0..self.dim {
            let n = self.cells[a];
            let s = place[a] as f64 / n as f64;
            // Walls are exactly where they were asked for.
            point[a] = match place[a] {
                0 => self.from[a],
                i if i == n => self.to[a],
                _ => self.from[a] + s * (self.to[a] - self.from[a]),
            };
            bump *= if place[a] == 0 || place[a] == n { 0.0 } else { (PI * s).sin() };
        }
        if bump != 0.0 {
            for a in 0..self.dim {
                let sign = if a == 1 { -1.0 } else { 1.0 };
                point[a] += sign * bump * (self.to[a] - self.from[a]);
            }
        }
        point
    }
}

/// The vertices of the cells, brick by brick, in points that go along x first.
fn nodes(cells: [usize; 3], cell: Cell) -> Vec<u32> {
    let dim = cell.dim();
    let tensor = if dim == 2 { Cell::Quadrilateral } else { Cell::Hexahedron };
    let mut nodes = Vec::with_capacity(cells.iter().product::<usize>() * tensor.vertex_count());
    let stride = [1, cells[0] + 1, (cells[0] + 1) * (cells[1] + 1)];
    for place in order::brick_order(cells) {
        let first: usize = (0..3).map(|a| place[a] as usize * stride[a]).sum();
        for vertex in 0..tensor.vertex_count() {
            let offset: usize = (0..dim).map(|a| (vertex >> a & 1) * stride[a]).sum();
            nodes.push((first + offset) as u32);
        }
    }
    if cell.is_tensor() { nodes } else { simplices::split(tensor, &nodes) }
}

/// The rows of data that goes along x first, then y, then z, on the cells and at the points of the mesh.
pub(super) fn rows(cells: [usize; 3], cell: Cell) -> (Rows, Rows) {
    let splits = match cell {
        Cell::Triangle => 2,
        Cell::Tetrahedron => 6,
        _ => 1,
    };
    let row = |at: [u32; 3]| {
        let [x, y, z] = at.map(|x| x as usize);
        ((z * cells[1] + y) * cells[0] + x) * splits
    };
    let of_cells = order::brick_order(cells).into_iter().flat_map(|at| row(at)..row(at) + splits);
    let of_cells: Vec<u32> = of_cells.map(|row| row as u32).collect();
    // Points are numbered by first touch.
    let nodes = nodes(cells, cell);
    let count: usize = (0..cell.dim()).map(|axis| cells[axis] + 1).product();
    let mut seen = vec![NOWHERE; count];
    let mut of_points = Vec::with_capacity(count);
    for node in nodes {
        if std::mem::replace(&mut seen[node as usize], 0) == NOWHERE {
            of_points.push(node);
        }
    }
    let of_cells = Rows { count: of_cells.len(), of: of_cells };
    (of_cells, Rows { of: of_points, count })
}
