//! `box` and `interval`: a grid of quadrilaterals or hexahedra, of the simplices that they split into, or of lines.
//!
//! Cells come brick by brick ([`crate::mesh::order::brick_order`]). With `deform: a` the point with relative
//! coordinates s moves by a·L·Π_i sin(π s_i) in each direction of length L (with the signs +, −, +): the boundary stays
//! where it is, and no cell that touches the interior stays affine. The map is injective for a up to 0.25; the
//! straight-edged cells of a coarse grid fold earlier.

use super::arguments::GeneratorArguments;
use super::blocks::along_curve;
use super::domain_map::{DomainMap, Grid};
use super::{GenerateError, simplices};
use crate::mesh::assemble::{Conformity, assemble};
use crate::mesh::measure::JacobianSign;
use crate::mesh::source_order::{DataRows, NOWHERE};
use crate::mesh::{
    Cell, CellOrdering, EntityCounts, Mesh, MeshData, MeshError, SourceOrder, counts, order,
};
use crate::support::parallel::*;

/// Minimum number of points or cells per task.
const GRAIN: usize = 1 << 12;

/// The largest number of cells per direction.
const MOST: usize = 1 << 20;

/// The largest `deform`; the map folds at 1/(1.155 π) = 0.2757.
const MOST_DEFORM: f64 = 0.25;

pub(super) fn generate(arguments: &GeneratorArguments<'_>) -> Result<Mesh, GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    let mut mesh = grid.mesh(cell).map_err(|error| match error {
        MeshError::Inverted { .. } | MeshError::Point { .. } => {
            grid.impossible(cell, error, arguments)
        }
        error => arguments.mesh(error),
    })?;
    grid.tag(&mut mesh);
    Ok(mesh)
}

/// Returns a grid that is `times` bisections coarser, along a space-filling curve, with its computational domain.
pub(super) fn coarse(
    arguments: &GeneratorArguments<'_>,
    times: usize,
) -> Result<Mesh, GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    let mut mesh = grid.coarse(cell, times).map_err(|error| arguments.mesh(error))?;
    mesh.place_by(DomainMap::Box(Box::new(grid.clone())));
    grid.tag(&mut mesh);
    Ok(mesh)
}

/// Returns the centre of each cell in the computational domain.
pub(super) fn centres(arguments: &GeneratorArguments<'_>) -> Result<Vec<[f64; 3]>, GenerateError> {
    let (grid, _) = Grid::new(arguments)?;
    let centre =
        |at: [u32; 3]| [0, 1, 2].map(|c| if c < grid.dim { f64::from(at[c]) + 0.5 } else { 0.0 });
    Ok(order::brick_order(grid.cells).into_iter().map(centre).collect())
}

/// Checks that 32-bit indices can number the entities of the grid.
pub(super) fn check(arguments: &GeneratorArguments<'_>) -> Result<(), GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    grid.check(cell).map(drop).map_err(|error| arguments.mesh(error))
}

/// Returns the numbers of entities of the grid.
pub(super) fn count(arguments: &GeneratorArguments<'_>) -> Result<EntityCounts, GenerateError> {
    let (grid, cell) = Grid::new(arguments)?;
    Ok(grid.counts(cell))
}

impl Grid {
    fn new(arguments: &GeneratorArguments<'_>) -> Result<(Self, Cell), GenerateError> {
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

    fn counts(&self, cell: Cell) -> EntityCounts {
        EntityCounts::split(cell, 1, counts::grid(self.dim, self.cells.map(|cells| cells as u64)))
    }

    /// Checks the size: 32 bits suffice for all numbers if they suffice for 8 indices per cell (tetrahedra: 24).
    /// Returns that count.
    fn check(&self, cell: Cell) -> Result<usize, MeshError> {
        let per_cell = if cell == Cell::Tetrahedron { 24 } else { 8 };
        let count = self.cells.iter().try_fold(per_cell, |n: usize, &c| n.checked_mul(c));
        let count = count.unwrap_or(usize::MAX);
        crate::mesh::index(count, "cell nodes").map(|_| count)
    }

    fn mesh(&self, cell: Cell) -> Result<Mesh, MeshError> {
        self.check(cell)?;
        self.counts(cell).check_room()?;
        let points = points(self.dim, self.cells, |at| self.point(at));
        let nodes = nodes(self.cells, cell);
        let parts = MeshData { points, nodes, ..MeshData::default() };
        let positive = JacobianSign::Positive;
        let mut mesh =
            assemble(cell, 1, parts, CellOrdering::Original, positive, Conformity::Conforming)?;
        mesh.order_of_source = SourceOrder::Grid(self.cells);
        Ok(mesh)
    }

    /// Returns the error of an invalid grid: coordinates overflow or coincide, or cells are folded or flat.
    fn impossible(
        &self,
        cell: Cell,
        error: MeshError,
        arguments: &GeneratorArguments<'_>,
    ) -> GenerateError {
        let name = if arguments.has("to") { "to" } else { "from" };
        let plain = Self { deform: 0.0, ..self.clone() };
        for axis in 0..self.dim {
            let at =
                |i: usize| plain.point([0, 1, 2].map(|c| if c == axis { i as f64 } else { 0.0 }));
            let line: Vec<f64> = (0..=self.cells[axis]).map(|i| at(i)[axis]).collect();
            let direction = ["x", "y", "z"][axis];
            if line.iter().any(|x| !x.is_finite()) {
                let expected = format!("nearer to `from`: coordinates overflow in {direction}");
                return arguments.wrong(name, expected);
            }
            if line.windows(2).any(|pair| pair[0] >= pair[1]) {
                let expected = format!(
                    "farther from `from` for so many cells: coordinates of neighbouring nodes coincide in {direction}"
                );
                return arguments.wrong(name, expected);
            }
        }
        match self.deform != 0.0 && plain.mesh(cell).is_ok() {
            true => self.folded(cell, arguments),
            false => arguments.mesh(error),
        }
    }

    /// Returns the error of folded cells, with the largest `deform` of the same sign that is valid.
    fn folded(&self, cell: Cell, arguments: &GeneratorArguments<'_>) -> GenerateError {
        let (mut least, mut most) = (0.0, self.deform.abs());
        for _ in 0..12 {
            let middle = (least + most) / 2.0;
            let grid = Self { deform: middle.copysign(self.deform), ..self.clone() };
            *(if grid.mesh(cell).is_ok() { &mut least } else { &mut most }) = middle;
        }
        let bound = (1e3 * least).floor() / 1e3;
        let range = match self.deform < 0.0 {
            true => format!("from -{bound} to 0"),
            false => format!("from 0 to {bound}"),
        };
        let expected = format!(
            "{range} for these cells: beyond that some fold, and more cells a direction bear more"
        );
        arguments.wrong("deform", expected)
    }

    /// Returns the grid after `times` coarsenings, in the computational domain.
    fn coarse(&self, cell: Cell, times: usize) -> Result<Mesh, MeshError> {
        let mut cells = self.cells;
        cells[..self.dim].iter_mut().for_each(|n| *n >>= times);
        let step = (1u64 << times) as f64;
        let points = points(self.dim, cells, |at| at.map(|x| x * step));
        let nodes = along_curve(cell, &points, &nodes(cells, cell));
        let parts = MeshData { points, nodes, ..MeshData::default() };
        assemble(
            cell,
            1,
            parts,
            CellOrdering::Original,
            JacobianSign::Positive,
            Conformity::Conforming,
        )
    }

    fn tag(&self, mesh: &mut Mesh) {
        let boundary = mesh.boundary();
        for axis in 0..self.dim {
            for (side, wall) in [self.from[axis], self.to[axis]].into_iter().enumerate() {
                let tag = format!("{}{side}", ["x", "y", "z"][axis]);
                mesh.tag_facets(&tag, &boundary, |facet| {
                    facet.iter().all(|point| point[axis] == wall)
                });
            }
        }
    }
}

/// Returns the points of a grid, x fastest, mapped from the lattice.
fn points(
    dim: usize,
    cells: [usize; 3],
    map: impl Fn([f64; 3]) -> [f64; 3] + Sync + Send,
) -> Vec<[f64; 3]> {
    let n = [0, 1, 2].map(|a| if a < dim { cells[a] + 1 } else { 1 });
    let place = |at: usize| [at % n[0], at / n[0] % n[1], at / (n[0] * n[1])];
    let all = (0..n.iter().product()).into_par_iter().with_min_len(GRAIN);
    all.map(|at| map(place(at).map(|x| x as f64))).collect()
}

/// Returns the vertices of the cells in brick order; points are numbered x fastest.
fn nodes(cells: [usize; 3], cell: Cell) -> Vec<u32> {
    let dim = cell.dim();
    let tensor = [Cell::Interval, Cell::Quadrilateral, Cell::Hexahedron][dim - 1];
    let each = tensor.vertex_count();
    let mut nodes = vec![0; cells.iter().product::<usize>() * each];
    let stride = [1, cells[0] + 1, (cells[0] + 1) * (cells[1] + 1)];
    let offset = |vertex: usize| (0..dim).map(|a| (vertex >> a & 1) * stride[a]).sum::<usize>();
    let offsets: Vec<usize> = (0..each).map(offset).collect();
    let places = order::brick_order(cells);
    let cells = nodes.par_chunks_mut(each).zip(places.par_iter()).with_min_len(GRAIN);
    cells.each(|(nodes, place)| {
        let first: usize = (0..3).map(|a| place[a] as usize * stride[a]).sum();
        let own = nodes.iter_mut().zip(&offsets);
        own.for_each(|(node, offset)| *node = (first + offset) as u32);
    });
    if cell.is_tensor() { nodes } else { simplices::split(tensor, &nodes) }
}

/// Returns the row numbers of cell and point data that is ordered x fastest, then y, then z.
pub(super) fn rows(cells: [usize; 3], cell: Cell) -> (DataRows, DataRows) {
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
    let of_cells = DataRows { count: of_cells.len(), of: of_cells };
    (of_cells, DataRows { of: of_points, count })
}
