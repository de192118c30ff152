//! Aggregation multigrid on a device: copies an [`Aggregation`] built on the host into a [`Multigrid`] whose operators
//! and transfers are sparse products on the device.
//!
//! Rows of the finest matrix follow the device layout, those of coarser ones the order of aggregates. The coarsest
//! level multiplies by its dense inverse: a cycle transfers nothing to the host.

use crate::algebra::aggregation::{self, Aggregation, CoarsestSolver};
use crate::algebra::sparse::{Csr, RowBuilder};
use crate::algebra::vector::Vector;
use crate::device::{Arithmetic, Array, DeviceError, Module, NONE, VectorLayout};
use crate::solve::{
    CoarseGridSolver, GridTransfer, LinearOperator, Multigrid, MultigridLevel, OperatorError,
};
use crate::support::parallel::*;
use kernels_gen::dialect::c::rows::{
    NAME, NAME_OF_ADDED, ROWS, rows_times_vector, rows_times_vector_added,
};
use std::sync::Arc;

/// Kernels of sparse products.
struct SparseKernels {
    arithmetic: Arc<Arithmetic>,
    plain: Module,
    added: Module,
}

impl SparseKernels {
    fn new(arithmetic: &Arc<Arithmetic>) -> Result<Arc<Self>, DeviceError> {
        let (device, precision) = (arithmetic.device(), arithmetic.precision());
        let words = device.words();
        let plain = device.load(&rows_times_vector(words, precision))?;
        let added = device.load(&rows_times_vector_added(words, precision))?;
        Ok(Arc::new(Self { arithmetic: Arc::clone(arithmetic), plain, added }))
    }
}

/// Returns A, P and Pᵀ of a level.
fn matrices_of(level: &aggregation::AggregationLevel) -> [&Csr; 3] {
    [&level.matrix, &level.prolongator, &level.restrictor]
}

/// Returns the bytes that a matrix takes on a device.
fn bytes_on_device(matrix: &Csr, real: usize) -> usize {
    4 * matrix.starts.len() + (4 + real) * matrix.columns.len()
}

/// A sparse matrix on a device.
struct DeviceMatrix {
    products: Arc<SparseKernels>,
    starts: Array,
    columns: Array,
    values: Array,
    /// True if some rows are empty: products do not write these.
    gaps: bool,
    rows: usize,
}

impl DeviceMatrix {
    /// Uploads a matrix with rows and columns in given layouts, or in their own order.
    fn new(
        products: &Arc<SparseKernels>,
        matrix: &Csr,
        (rows, columns): (Option<&VectorLayout>, Option<&VectorLayout>),
    ) -> Result<Self, DeviceError> {
        let n = matrix.size();
        let places = rows.map_or(n, |layout| layout.len(n));
        let mut order = vec![NONE; places];
        (0..n).for_each(|row| order[rows.map_or(row, |layout| layout.place(row))] = row as u32);
        let lies = |column: u32| match columns {
            Some(layout) => layout.place(column as usize) as u32,
            None => column,
        };
        let fill = |place: usize, _: &mut (), own: &mut RowBuilder| {
            if order[place] != NONE {
                let row = order[place] as usize;
                let (columns, values) = matrix.row_slices(row);
                let entries = columns.iter().zip(values);
                entries.for_each(|(&column, &value)| own.push(lies(column), value));
            }
        };
        let placed = Csr::by_rows((places, matrix.width), || (), fill);
        let Csr { starts, columns, values, .. } = placed;
        let mut starts: Vec<u32> = starts.into_iter().map(|start| start as u32).collect();
        let gaps = starts.windows(2).any(|ends| ends[0] == ends[1]);
        // Padding: a group of threads processes `ROWS` rows.
        starts.resize(places.next_multiple_of(ROWS) + 1, columns.len() as u32);
        let (arithmetic, products) = (&products.arithmetic, Arc::clone(products));
        let device = arithmetic.device();
        let (starts, columns) = (device.upload(&starts)?, device.upload(&columns)?);
        let values = arithmetic.upload(&values)?;
        Ok(Self { products, starts, columns, values, gaps, rows: n })
    }

    /// Computes y = A x, or y += A x.
    fn times(&self, x: &Vector, y: &mut Vector, added: bool) -> Result<(), OperatorError> {
        let SparseKernels { arithmetic, plain, added: adding } = &*self.products;
        arithmetic.check()?;
        let (_, x) = x.array().ok_or(DeviceError::Foreign)?;
        let y = y.array_mut().ok_or(DeviceError::Foreign)?;
        if self.gaps && !added {
            arithmetic.clear(y, y.len())?;
        }
        let kernel = match added {
            true => adding.kernel(NAME_OF_ADDED),
            false => plain.kernel(NAME),
        };
        let kernel = kernel.map_err(DeviceError::from)?;
        let groups = 0..(self.starts.len() - 1) / ROWS;
        let arguments = [&self.starts, &self.columns, &self.values, x, y];
        Ok(arithmetic.device().launch(kernel, groups, &arguments)?)
    }
}

impl LinearOperator for DeviceMatrix {
    fn size(&self) -> usize {
        self.rows
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.times(x, y, false)
    }

    fn replayable(&self) -> bool {
        true
    }
}

/// P and Pᵀ.
struct MatrixTransfer {
    prolongator: DeviceMatrix,
    restrictor: DeviceMatrix,
}

impl GridTransfer for MatrixTransfer {
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        self.prolongator.times(coarse, fine, true)
    }

    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        self.restrictor.times(fine, coarse, false)?;
        coarse.sum_shared();
        Ok(())
    }
}

/// P and Pᵀ on the host.
struct HostTransfer {
    prolongator: Csr,
    restrictor: Csr,
}

/// Rows of a product in single precision that one thread computes.
const CHUNK: usize = 1 << 10;

/// Computes y = A x, or y += A x.
fn times(a: &Csr, x: &Vector, y: &mut Vector, added: bool) {
    if let (Some(x), Some(y)) = (x.entries::<f64>(), y.entries_mut::<f64>()) {
        return if added { a.add_product(x, y) } else { a.apply(x, y) };
    }
    if let (Some(x), Some(y)) = (x.entries::<f32>(), y.entries_mut::<f32>()) {
        return y.par_chunks_mut(CHUNK).enumerate().each(|(chunk, y)| {
            for (i, y) in y.iter_mut().enumerate() {
                let terms = a.row(chunk * CHUNK + i);
                let sum: f64 = terms.map(|(column, value)| value * f64::from(x[column])).sum();
                *y = if added { *y + sum as f32 } else { sum as f32 };
            }
        });
    }
    let (x, mut own) = (x.to_vec(), y.to_vec());
    if added {
        a.add_product(&x, &mut own)
    } else {
        a.apply(&x, &mut own)
    }
    y.set(&own);
}

impl GridTransfer for HostTransfer {
    fn prolong(&self, coarse: &Vector, fine: &mut Vector) -> Result<(), OperatorError> {
        times(&self.prolongator, coarse, fine, true);
        Ok(())
    }

    fn restrict(&self, fine: &Vector, coarse: &mut Vector) -> Result<(), OperatorError> {
        times(&self.restrictor, fine, coarse, false);
        coarse.sum_shared();
        Ok(())
    }
}

/// Returns the transfer by P and Pᵀ between vectors like `fine` and `coarse`, in their place. Each process has the rows
/// of its own degrees of freedom of P, and in Pᵀ the entries of those that it owns.
pub(super) fn transfer_between(
    prolongator: Csr,
    restrictor: Csr,
    fine: &Vector,
    coarse: &Vector,
) -> Result<Box<dyn GridTransfer>, OperatorError> {
    let (Some((of_fine, _)), Some((of_coarse, _))) = (fine.array(), coarse.array()) else {
        return Ok(Box::new(HostTransfer { prolongator, restrictor }));
    };
    let plain = Arithmetic::new(Arc::clone(of_fine.device()), of_fine.precision())?;
    let products = SparseKernels::new(&plain)?;
    let (rows, columns) = (Some(of_fine.layout()), Some(of_coarse.layout()));
    let prolongator = DeviceMatrix::new(&products, &prolongator, (rows, columns))?;
    let restrictor = DeviceMatrix::new(&products, &restrictor, (columns, rows))?;
    Ok(Box::new(MatrixTransfer { prolongator, restrictor }))
}

/// Coarse-grid solver by the explicit inverse.
struct ExplicitInverse(DeviceMatrix);

impl CoarseGridSolver for ExplicitInverse {
    fn linearise(&mut self, _: &Vector) -> Result<Result<(), String>, OperatorError> {
        Ok(Ok(()))
    }

    fn set_params(&mut self, _: &[f64]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn solve(&self, b: &Vector, x: &mut Vector) -> Result<(), OperatorError> {
        self.0.times(b, x, false)
    }

    fn replayable(&self) -> bool {
        true
    }

    fn words(&self) -> String {
        format!("the inverse of {} unknowns", self.0.rows)
    }
}

/// Computes the inverse of a matrix of size n as dense rows on a device, from its solver.
fn inverse(
    products: &Arc<SparseKernels>,
    n: usize,
    layout: Option<&VectorLayout>,
    solve: &(dyn Fn(&mut [f64]) + Sync),
) -> Result<DeviceMatrix, DeviceError> {
    let column = |j: usize| {
        let mut x = vec![0.0; n];
        x[j] = 1.0;
        solve(&mut x);
        x
    };
    let columns: Vec<Vec<f64>> = (0..n).into_par_iter().map(column).listed();
    let values: Vec<f64> = (0..n).flat_map(|i| columns.iter().map(move |own| own[i])).collect();
    let starts: Vec<usize> = (0..=n).map(|i| i * n).collect();
    let columns: Vec<u32> = (0..n).flat_map(|_| 0..n as u32).collect();
    DeviceMatrix::new(products, &Csr::square(starts, columns, values), (layout, layout))
}

/// Computes the inverse in the layout of a device vector; `None` for a host vector.
pub fn inverse_on_device(
    like: &Vector,
    solve: &(dyn Fn(&mut [f64]) + Sync),
) -> Result<Option<Box<dyn LinearOperator + Send + Sync>>, OperatorError> {
    let Some((arithmetic, _)) = like.array() else { return Ok(None) };
    let plain = Arithmetic::new(Arc::clone(arithmetic.device()), arithmetic.precision())?;
    let products = SparseKernels::new(&plain)?;
    let made = inverse(&products, like.len(), Some(arithmetic.layout()), solve)?;
    Ok(Some(Box::new(made)))
}

/// Returns a vector of `n` zeros on the device of another, in its own order; `None` for a host vector.
pub fn zeros_on_device(n: usize, like: &Vector) -> Result<Option<Vector>, OperatorError> {
    let Some((arithmetic, _)) = like.array() else { return Ok(None) };
    let plain = Arithmetic::new(Arc::clone(arithmetic.device()), arithmetic.precision())?;
    Ok(Some(Vector::on_device(n, &plain)))
}

/// Copies a matrix to the device of a vector, in its precision and layout. `None` for a host vector, or insufficient
/// device memory.
pub fn matrix_on_device(
    matrix: &Csr,
    like: &Vector,
) -> Result<Option<Box<dyn LinearOperator + Send + Sync>>, OperatorError> {
    let Some((arithmetic, _)) = like.array() else { return Ok(None) };
    let (device, layout) = (arithmetic.device(), Some(arithmetic.layout()));
    let bytes = bytes_on_device(matrix, arithmetic.precision().bytes());
    let room = device.free_bytes().is_none_or(|free| free > bytes as f64);
    if !room || u32::try_from(matrix.columns.len()).is_err() {
        return Ok(None);
    }
    let plain = Arithmetic::new(Arc::clone(device), arithmetic.precision())?;
    let made = DeviceMatrix::new(&SparseKernels::new(&plain)?, matrix, (layout, layout))?;
    Ok(Some(Box::new(made)))
}

/// Copies levels to the device of a vector, in its precision and layout. `None` for a host vector, levels without a
/// dense coarsest factorisation, or insufficient device memory.
pub fn on_device(made: &Aggregation, like: &Vector) -> Result<Option<Multigrid>, OperatorError> {
    let (Some((arithmetic, _)), CoarsestSolver::Dense(factors)) = (like.array(), made.bottom())
    else {
        return Ok(None);
    };
    let real = arithmetic.precision().bytes();
    let all: Vec<[&Csr; 3]> = made.levels().iter().map(matrices_of).collect();
    let each = || all.iter().flatten();
    let bytes: usize = each().map(|own| bytes_on_device(own, real)).sum();
    let room = arithmetic.device().free_bytes().is_none_or(|free| free > bytes as f64);
    if !room || each().any(|own| u32::try_from(own.columns.len()).is_err()) {
        return Ok(None);
    }
    let plain = Arithmetic::new(Arc::clone(arithmetic.device()), arithmetic.precision())?;
    let (mut own, products) = (Some(arithmetic.layout()), SparseKernels::new(&plain)?);
    let mut at = like.like();
    let mut levels = Vec::new();
    for (level, &[a, p, r]) in made.levels().iter().zip(&all) {
        let matrix = DeviceMatrix::new(&products, a, (own, own))?;
        let prolongator = DeviceMatrix::new(&products, p, (own, None))?;
        let restrictor = DeviceMatrix::new(&products, r, (None, own))?;
        at.set(&level.inverse);
        let next = Vector::on_device(level.prolongator.width, &plain);
        let inverse = std::mem::replace(&mut at, next);
        let between = Box::new(MatrixTransfer { prolongator, restrictor });
        levels.push(MultigridLevel::fixed(Box::new(matrix), between, inverse, level.largest));
        own = None;
    }
    let by_factors = |x: &mut [f64]| factors.solve(x);
    let left = Box::new(ExplicitInverse(inverse(&products, factors.size(), None, &by_factors)?));
    Ok(Some(Multigrid::new(levels, left, &at, made.steps())))
}
