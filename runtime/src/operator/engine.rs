//! [`Engine`]: the target-dependent part of operators.
//!
//! An engine determines batches, allocates arrays and runs kernels over batches; [`super::blocks`] selects kernels,
//! cells and arguments. The host traverses the chunks of the mesh, a device its layout, kernel by kernel.

use super::blocks::{Block, Blocks, Pass, Run, Work};
use super::matrix::lists::Lists;
use super::matrix::{Fixed, Matrix, Vendor};
use super::tables::Table;
use super::{BuildError, Class, Part};
use crate::algebra::vector::Vector;
use crate::device::acoo::Elements;
use crate::device::cpu::Module;
use crate::device::{self, Arithmetic, DeviceError};
use crate::operator::batch::Batches;
use crate::solve::OperatorError;
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use kernels_gen::abi::Slots;
use std::borrow::Cow;
use std::sync::Arc;

/// An array in host or device memory.
#[derive(Debug)]
pub(super) enum Array {
    /// In host memory.
    Here(Table),
    /// In device memory.
    There(device::Array),
}

impl Array {
    /// Returns the array if it is in host memory.
    pub(super) fn here(&self) -> Option<&Table> {
        match self {
            Self::Here(table) => Some(table),
            Self::There(_) => None,
        }
    }

    /// Returns the array if it is in device memory.
    pub(super) fn there(&self) -> Option<&device::Array> {
        match self {
            Self::There(array) => Some(array),
            Self::Here(_) => None,
        }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Here(table) => table.len(),
            Self::There(array) => array.len(),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Here(table) => table.bytes(),
            Self::There(array) => array.bytes(),
        }
    }
}

/// Values of a result in the rows of constrained degrees of freedom.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// 0, for residuals.
    Zero,
    /// 1, for diagonals.
    One,
    /// Identity rows, for an action on this vector.
    Of(&'a Vector),
}

/// Treatment of oblique conditions: see [`super::oblique`].
#[derive(Clone, Copy)]
pub(super) enum Oblique<'a> {
    /// P y.
    Nothing,
    /// P y + g.
    Values,
    /// P y + D N x.
    As {
        /// D.
        diagonal: &'a Vector,
        /// x.
        x: &'a Vector,
    },
    /// The mean over the unconstrained directions.
    Even,
}

/// Treatment of affine constraints: see [`super::affine`].
#[derive(Clone, Copy)]
pub(super) enum Affine<'a> {
    /// C y.
    Direction,
    /// C y + g.
    Values,
    /// Cᵀ y, with these values in dependent rows.
    Transposed(Rows<'a>),
}

/// Target of an operator: host or device.
pub(super) trait Engine: Send + Sync {
    /// Returns the batches of a class of cells or facets, with `lanes` each and slots for the nodes of each field if
    /// there are any; `parts` is the part of each cell.
    fn batches(
        &self,
        on: &Discretisation,
        class: (Class, usize, &[Slots]),
        parts: &[Part],
    ) -> Result<Batches, BuildError>;

    /// Creates an array from a table.
    fn array(&self, table: Table) -> Result<Array, DeviceError>;

    /// Creates an array of reals.
    fn reals(&self, values: &[f64]) -> Result<Array, DeviceError>;

    /// Returns the numbers of an array of reals; borrowed from host memory in double precision.
    fn numbers<'a>(&self, array: &'a Array) -> Result<Cow<'a, [f64]>, DeviceError>;

    /// Returns the numbers of an array of indices.
    fn integers<'a>(&self, array: &'a Array) -> Result<Cow<'a, [u32]>, DeviceError>;

    /// Creates an array of zeros.
    fn zeros(&self, len: usize) -> Result<Array, DeviceError>;

    /// Overwrites an array of reals.
    fn overwrite(&self, array: &mut Array, values: &[f64]) -> Result<(), DeviceError>;

    /// Prepares the engine for all kernels and tables before the first pass.
    fn prepare(&mut self, blocks: &Blocks) -> Result<(), BuildError>;

    /// Runs a kernel that writes `into` at the quadrature points of its cells.
    fn store(&self, run: Run<'_>, into: &mut Array) -> Result<(), OperatorError>;

    /// Computes y as the sum of the kernels of a pass over all processes, with the given rows of constrained degrees of
    /// freedom.
    fn sum(&self, pass: Pass<'_>, rows: Rows<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Adds the results of a pass to a vector of a finer space.
    fn spread(&self, pass: Pass<'_>, fine: &mut Vector) -> Result<(), OperatorError>;

    /// Creates an array of indices with `entries` · `lanes` per batch; both are 1 for arrays without batches.
    fn indices(
        &self,
        indices: Vec<u32>,
        entries: usize,
        lanes: usize,
    ) -> Result<Array, DeviceError>;

    /// Prepares kernels that add to the `n` entries of a matrix; each comes with the positions of its entries.
    fn prepare_entries(&mut self, runs: &[(Run<'_>, &Array)], n: usize) -> Result<(), BuildError> {
        let _ = (runs, n);
        Ok(())
    }

    /// Computes the entries of a matrix from kernels that add to them; each comes with the positions of its entries.
    fn add_entries(
        &self,
        runs: &[(Run<'_>, &Array)],
        entries: &mut Array,
    ) -> Result<(), OperatorError>;

    /// Computes the entries of a matrix as sums of stored element entries.
    fn sum_entries(
        &self,
        stored: &[(&Array, &Lists)],
        entries: &mut Array,
    ) -> Result<(), OperatorError>;

    /// Prepares the merge of elements, for vectors of length `len`.
    fn prepare_elements(&mut self, elements: &Elements, len: usize) -> Result<(), DeviceError> {
        let _ = (elements, len);
        Ok(())
    }

    /// Merges elements into starts, columns and entries of a matrix: `first` holds those of the first kernel with
    /// capacity for all, `others` those of the others.
    fn merge_elements(
        &self,
        elements: &Elements,
        first: Array,
        others: Vec<(usize, Array)>,
        len: usize,
    ) -> Result<[Array; 3], OperatorError>;

    /// Creates a list of matrix entries (of `n`) for repeated use.
    fn fixed(&self, which: Vec<u32>, n: usize) -> Result<Fixed, DeviceError>;

    /// Creates a list of degrees of freedom for repeated use.
    fn listed(&self, unknowns: Vec<u32>, len: usize) -> Result<Fixed, DeviceError>;

    /// Gathers the listed entries of a vector.
    fn take_listed(&self, which: &Fixed, x: &Vector, into: &mut Array)
    -> Result<(), OperatorError>;

    /// Sets the listed entries of a matrix to a value.
    fn set_entries(
        &self,
        which: &Fixed,
        value: f64,
        entries: &mut Array,
    ) -> Result<(), OperatorError>;

    /// Creates a matrix handle of the vendor's library, if there is one.
    fn vendor(
        &self,
        starts: &Array,
        columns: &Array,
        entries: &Array,
        len: usize,
    ) -> Result<Option<Vendor>, DeviceError> {
        let _ = (starts, columns, entries, len);
        Ok(None)
    }

    /// Computes y = A x.
    fn multiply(&self, matrix: &Matrix, x: &Vector, y: &mut Vector) -> Result<(), OperatorError>;

    /// Returns whether there are oblique conditions.
    fn is_oblique(&self) -> bool;

    /// Applies oblique conditions to a vector.
    fn hold(&self, what: Oblique<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Replaces the affine constraints.
    fn constrain(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError>;

    /// Applies affine constraints to a vector.
    fn close(&self, what: Affine<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Sets the values of the essential conditions, in the order of [`Discretisation::conditions`], then those of
    /// oblique conditions, three per node.
    fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError>;

    /// Sets the constrained degrees of freedom of a vector.
    fn impose(&self, u: &mut Vector) -> Result<(), OperatorError>;

    /// Returns the bytes that a kernel streams in addition to tables and vectors.
    fn streamed(&self, work: &Work, block: &Block) -> usize {
        let _ = (work, block);
        0
    }

    /// Returns the vector arithmetic of a device.
    fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        None
    }

    /// Returns the module of host kernels.
    fn module(&self) -> Option<&Module> {
        None
    }
}
