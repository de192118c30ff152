//! Element matrices through the kernels themselves.
//!
//! With a vector that has every cell's unknowns for itself, one action on the j-th unit vector of a
//! chunk's cells at once gives the j-th column of their element matrices. Chunk by chunk all of it
//! stays in cache.

use super::{Array, CellOperator, Class, Key, launch};
use crate::device::cpu::{Argument, Buffer, Shared};
use crate::geometry;
use crate::solve::OperatorError;
use kernels_gen::abi::{Indices, KernelAbi, Owner, Role, coordinate_stride};
use kernels_gen::plan::Task;
use std::ops::Range;

impl CellOperator {
    /// Calls `each` with ranges of cells that together are all, and their element matrices: entry
    /// (i, j) of the c-th cell of the range is `matrices[(c · n + j) · n + i]`, local unknowns being
    /// `node · components + component`.
    ///
    /// For operators in double precision without essential conditions.
    pub fn element_matrices(
        &self,
        mut each: impl FnMut(Range<usize>, &[f64]),
    ) -> Result<(), OperatorError> {
        let missing = || OperatorError::new("element matrices need one kernel for all cells");
        let kernel = self.kernels.get(&(Task::Action, Class::All)).ok_or_else(missing)?;
        let loaded = self.kernel(kernel).map_err(launch)?;
        let group = &self.groups[&self.group_key(kernel)];
        let space = &self.on.fields[0].space;
        let (nodes, components) = (space.nodes_per_cell(), space.components());
        let n = nodes * components;
        let indices = loaded.abi().arguments.iter().find_map(|argument| match argument.role {
            Role::Map(_, indices) => Some(indices),
            _ => None,
        });
        let indices = indices.ok_or_else(missing)?;
        // order[i]: the local unknown at place i of a cell's own unknowns.
        let (map, order) = match indices {
            Indices::Nodes => {
                let map = group.batches.table(nodes, |cell, row| {
                    row.iter_mut().enumerate().for_each(|(i, to)| *to = (cell * nodes + i) as u32);
                });
                (map, (0..n).collect())
            }
            Indices::Runs => {
                let (starts, order) = run_order(space.element().degree() + 1, self.on.mesh.dim());
                let map = group.batches.table(starts.len(), |cell, row| {
                    for (to, start) in row.iter_mut().zip(&starts) {
                        *to = ((cell * nodes + start) * components) as u32;
                    }
                });
                let spread = |node: usize| (0..components).map(move |c| node * components + c);
                (map, order.into_iter().flat_map(spread).collect::<Vec<usize>>())
            }
            Indices::Dofs | Indices::Tiles => return Err(missing()),
        };
        let map = Array::U32(map);
        // Corners are gathered by the same map.
        let coordinates = self.cell_by_cell(loaded.abi());
        let mut x = Buffer::<f64>::zeroed(self.on.mesh.n_cells() * n + 64);
        let mut y = Buffer::<f64>::zeroed(self.on.mesh.n_cells() * n + 64);
        let mut matrices = Vec::new();
        for (number, chunk) in self.on.partition.chunks().iter().enumerate() {
            let unknowns = chunk.cells.start * n..chunk.cells.end * n;
            matrices.clear();
            matrices.resize(chunk.cells.len() * n * n, 0.0);
            for (place, &j) in order.iter().enumerate() {
                x[unknowns.clone()].chunks_exact_mut(n).for_each(|cell| cell[place] = 1.0);
                y[unknowns.clone()].fill(0.0);
                let shared = Shared::new(&mut y);
                let arguments = loaded.abi().arguments.iter().map(|argument| match argument.role {
                    Role::Direction(_) => Some(Argument::read(&x)),
                    Role::Result(_) => Some(shared.argument()),
                    Role::Map(Owner::Field(_), _) => Some(map.read()),
                    Role::Coordinates => coordinates.as_deref().map(Argument::read),
                    Role::Params => Some(self.params.read()),
                    Role::Stored => group.stored.as_ref().map(Array::read),
                    role => Key::of(role, kernel.geometry)
                        .and_then(|key| group.tables.get(&key))
                        .map(Array::read),
                });
                let arguments: Option<Vec<Argument<'_>>> = arguments.collect();
                let bound = loaded.bind(&arguments.ok_or_else(missing)?).map_err(launch)?;
                bound.run(group.batches.of_chunk(number));
                drop(bound);
                x[unknowns.clone()].chunks_exact_mut(n).for_each(|cell| cell[place] = 0.0);
                let matrices = matrices.chunks_exact_mut(n * n);
                for (matrix, from) in matrices.zip(y[unknowns.clone()].chunks_exact(n)) {
                    for (&i, &value) in order.iter().zip(from) {
                        matrix[j * n + i] = value;
                    }
                }
            }
            each(chunk.cells.clone(), &matrices);
        }
        Ok(())
    }
}

impl CellOperator {
    /// The coordinates of the vertices, for each cell by itself; none where the kernel gathers none.
    fn cell_by_cell(&self, abi: &KernelAbi) -> Option<Buffer<f64>> {
        abi.arguments.iter().find(|argument| argument.role == Role::Coordinates)?;
        let space = &self.on.fields[0].space;
        let stride = coordinate_stride(self.on.mesh.dim());
        let shared = geometry::coordinates::<f64>(&self.on.mesh, space, |node| node);
        let entry = |i: usize| shared[space.nodes()[i / stride] as usize * stride + i % stride];
        Some(Buffer::from_fn(space.nodes().len() * stride, entry))
    }
}

/// The first place of each of the 3^dim entities of a tensor cell whose nodes follow one another
/// entity by entity, and the node at each place.
fn run_order(n: usize, dim: usize) -> (Vec<usize>, Vec<usize>) {
    let span = |part: usize| match part {
        0 => 0..1,
        1 => 1..n - 1,
        _ => n - 1..n,
    };
    let (mut starts, mut order) = (Vec::new(), Vec::new());
    for entity in 0..3usize.pow(dim as u32) {
        starts.push(order.len());
        let layers = if dim == 3 { span(entity / 9) } else { 0..1 };
        for k in layers {
            for j in span(entity / 3 % 3) {
                order.extend(span(entity % 3).map(|i| (k * n + j) * n + i));
            }
        }
    }
    (starts, order)
}
