//! Element matrices by the action kernels.
//!
//! The vectors have separate degrees of freedom for every cell. One action on the j-th unit vector of all cells of a
//! chunk then gives the j-th columns of their element matrices. A chunk's data stays in cache.

use super::blocks::{ArgumentValue, KernelRun, PassInputs};
use super::tables::HostTable;
use super::{Operator, refused};
use crate::device::cpu::{Argument, Buffer, IndexArray, Module};
use crate::operator::geometry;
use crate::solve::OperatorError;
use kernels_gen::abi::{Indices, KernelAbi, Owner, Role, coordinate_stride};
use kernels_gen::element::Element;
use kernels_gen::plan::Task;
use std::collections::BTreeMap;
use std::ops::Range;

/// Degrees of freedom of a field, separate for each cell.
struct CellwiseField {
    /// Number per cell.
    n: usize,
    /// Index of the first one among those of all fields.
    first: usize,
    /// Index arrays of the kernel.
    maps: BTreeMap<Indices, HostTable>,
    /// Degree of freedom at each position of the kernel's index arrays.
    order: Vec<usize>,
    state: Option<Buffer<f64>>,
    x: Buffer<f64>,
    y: Buffer<f64>,
}

/// A kernel with its inputs and outputs.
struct CellwiseKernel<'o> {
    module: &'o Module,
    run: KernelRun<'o>,
    parts: Vec<CellwiseField>,
    coordinates: Option<Buffer<f64>>,
}

impl Operator {
    /// Calls `each` with consecutive ranges of cells and their element matrices: entry (i, j) of the c-th cell of the
    /// range is `matrices[(c · n + j) · n + i]`, with local index `node · components + component`, field by field.
    /// Essential conditions are not applied.
    ///
    /// The operator must be in double precision and on the host.
    pub fn element_matrices(
        &self,
        mut each: impl FnMut(Range<usize>, &[f64]),
    ) -> Result<(), OperatorError> {
        let why = "element matrices are made of kernels that run on the processor";
        let module = self.module.as_deref().ok_or_else(|| OperatorError::new(why))?;
        let runs = self.blocks.pass(Task::Action, PassInputs::default()).runs();
        let kernels = runs.map(|run| self.cellwise(module, run));
        let mut kernels: Vec<CellwiseKernel<'_>> = kernels.collect::<Result<_, _>>()?;
        let fields = self.blocks.on.fields.iter();
        let n: usize =
            fields.map(|field| field.space.nodes_per_cell() * field.space.components()).sum();
        let mut matrices = Vec::new();
        for (number, chunk) in self.blocks.on.partition.chunks().iter().enumerate() {
            matrices.clear();
            matrices.resize(chunk.cells.len() * n * n, 0.0);
            for cellwise in &mut kernels {
                self.columns(cellwise, number, n, &mut matrices)?;
            }
            each(chunk.cells.clone(), &matrices);
        }
        Ok(())
    }

    /// Computes the columns of a chunk's element matrices, for the cells of one kernel.
    fn columns(
        &self,
        cellwise: &mut CellwiseKernel<'_>,
        number: usize,
        n: usize,
        matrices: &mut [f64],
    ) -> Result<(), OperatorError> {
        let cells = self.blocks.on.partition.chunks()[number].cells.clone();
        let batches = &cellwise.run.block.batches;
        let mut own: Vec<usize> = batches
            .of_chunk(number)
            .flat_map(|batch| {
                let lanes = &batches.cells()[batch * batches.lanes()..];
                lanes[..batches.active()[batch] as usize].iter().map(|&cell| cell as usize)
            })
            .collect();
        // Facets of one cell share its matrix.
        own.dedup();
        for trial in 0..cellwise.parts.len() {
            for place in 0..cellwise.parts[trial].n {
                for part in &mut cellwise.parts {
                    part.y[cells.start * part.n..cells.end * part.n].fill(0.0);
                }
                cellwise.parts[trial].unit(&cells, place, 1.0);
                cellwise.act(number)?;
                cellwise.parts[trial].unit(&cells, place, 0.0);
                let column = cellwise.parts[trial].first + cellwise.parts[trial].order[place];
                for &cell in &own {
                    let matrix = &mut matrices[(cell - cells.start) * n * n..][..n * n];
                    for part in &cellwise.parts {
                        let from = &part.y[cell * part.n..][..part.n];
                        for (&i, &value) in part.order.iter().zip(from) {
                            matrix[column * n + part.first + i] += value;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Prepares a kernel with cell-separate vectors.
    fn cellwise<'o>(
        &'o self,
        module: &'o Module,
        run: KernelRun<'o>,
    ) -> Result<CellwiseKernel<'o>, OperatorError> {
        let mut parts: Vec<CellwiseField> = Vec::new();
        for field in 0..self.blocks.on.fields.len() {
            let first = parts.last().map_or(0, |part| part.first + part.n);
            parts.push(self.own_unknowns(run, field, first)?);
        }
        // Vertices are gathered by the same map.
        Ok(CellwiseKernel { module, run, parts, coordinates: self.cell_by_cell(&run.work.abi) })
    }

    fn own_unknowns(
        &self,
        run: KernelRun<'_>,
        field: usize,
        first: usize,
    ) -> Result<CellwiseField, OperatorError> {
        let batches = &run.block.batches;
        let space = &self.blocks.on.fields[field].space;
        let (nodes, components) = (space.nodes_per_cell(), space.components());
        let n = nodes * components;
        let numbers = n * self.blocks.on.mesh.n_cells();
        if numbers >= u32::MAX as usize {
            return Err(OperatorError::new(format!(
                "the cells' own unknowns are {numbers}, more than 32-bit indices can number"
            )));
        }
        let in_order = |entries: usize| {
            batches.of_nodes(space.element(), entries / nodes, |cell, row| {
                row.iter_mut().enumerate().for_each(|(i, to)| *to = (cell * entries + i) as u32);
            })
        };
        let (mut maps, mut order): (_, Vec<usize>) = (BTreeMap::new(), (0..n).collect());
        for argument in &run.work.abi.arguments {
            let Role::Map(Owner::Field(of), indices) = argument.role else { continue };
            let map = match indices {
                _ if of != field => continue,
                Indices::Nodes => in_order(nodes),
                Indices::Dofs => in_order(n),
                Indices::Runs => {
                    let (starts, places) = run_order(space.element());
                    let spread = |node: usize| (0..components).map(move |c| node * components + c);
                    order = places.into_iter().flat_map(spread).collect();
                    batches.table(starts.len(), |cell, row| {
                        for (to, start) in row.iter_mut().zip(&starts) {
                            *to = ((cell * nodes + start) * components) as u32;
                        }
                    })
                }
                Indices::Cells => batches.table(1, |cell, row| row[0] = (cell * n) as u32),
                Indices::Tiles | Indices::Batches => {
                    let why = "element matrices need vectors that are not in tiles";
                    return Err(OperatorError::new(why));
                }
            };
            let lanes = batches.lanes();
            let map = IndexArray::new(map, argument.extent / lanes, lanes);
            maps.insert(indices, HostTable::U32(map));
        }
        let cells = self.blocks.on.mesh.n_cells();
        let zeros = || Buffer::<f64>::zeroed(cells * n + 64);
        let given = self.state.as_ref().and_then(|state| state.entries::<f64>());
        let state = given.and_then(|state| state.get(self.blocks.on.dofs_of(field))).map(|state| {
            let mut own = zeros();
            for (cell, own) in own.chunks_exact_mut(n).take(cells).enumerate() {
                let global = space.cell_nodes(cell);
                for (to, &i) in own.iter_mut().zip(&order) {
                    *to = state[global[i / components] as usize * components + i % components];
                }
            }
            own
        });
        Ok(CellwiseField { n, first, maps, order, state, x: zeros(), y: zeros() })
    }

    /// Returns the vertex coordinates, separate for each cell; `None` if the kernel does not gather them.
    fn cell_by_cell(&self, abi: &KernelAbi) -> Option<Buffer<f64>> {
        abi.arguments.iter().find(|argument| argument.role == Role::Coordinates)?;
        let space = &self.blocks.on.fields[0].space;
        let stride = coordinate_stride(self.blocks.on.mesh.dim());
        let shared = geometry::coordinates::<f64>(&self.blocks.on.mesh, space, |node| node);
        let entry = |i: usize| shared[space.nodes()[i / stride] as usize * stride + i % stride];
        Some(Buffer::from_fn(space.nodes().len() * stride, entry))
    }
}

impl CellwiseKernel<'_> {
    /// Applies the kernel to the vectors of all cells of a chunk.
    fn act(&mut self, chunk: usize) -> Result<(), OperatorError> {
        let Self { module, run, parts, coordinates } = self;
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for CellwiseField { x, y, maps, state, .. } in parts {
            read.push((&*x, &*maps, state.as_ref()));
            written.push(Some(Argument::write(y)));
        }
        let arguments = run.arguments(|wanted| match wanted.role {
            Role::Direction(field) => Some(Argument::read(read.get(field)?.0)),
            Role::State(field) => read.get(field)?.2.map(|state| Argument::read(state)),
            Role::Result(field) => written.get_mut(field)?.take(),
            Role::Map(Owner::Field(field), indices) => {
                read.get(field)?.1.get(&indices).map(HostTable::read)
            }
            Role::Coordinates => coordinates.as_ref().map(|x| Argument::read(x)),
            role => match run.read(role)? {
                ArgumentValue::Array(array) => array.host().map(HostTable::read),
                ArgumentValue::FieldDofs(..) | ArgumentValue::WholeVector(_) => None,
            },
        })?;
        let loaded = module.kernel(&run.work.kernel.name).map_err(refused)?;
        let mut bound = loaded.bind(arguments).map_err(refused)?;
        bound.run(run.block.batches.of_chunk(chunk)).map_err(refused)
    }
}

impl CellwiseField {
    /// Sets one local entry of each cell.
    fn unit(&mut self, cells: &Range<usize>, place: usize, value: f64) {
        let unknowns = &mut self.x[cells.start * self.n..cells.end * self.n];
        unknowns.chunks_exact_mut(self.n).for_each(|cell| cell[place] = value);
    }
}

/// Returns the first position of each run of a cell whose nodes are in the order of runs, and the node at each position.
fn run_order(element: Element) -> (Vec<usize>, Vec<usize>) {
    let (mut starts, mut order) = (Vec::new(), Vec::new());
    for run in element.runs() {
        starts.push(order.len());
        order.extend(run);
    }
    (starts, order)
}
