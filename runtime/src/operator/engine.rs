//! [`Engine`]: the target-dependent part of operators.
//!
//! An engine determines batches, allocates arrays and runs kernels over batches; [`super::blocks`] selects kernels,
//! cells and arguments. The host traverses the chunks of the mesh, a device its layout, kernel by kernel.

use super::blocks::{AssignedKernel, CellBlock, KernelBlocks, KernelPass, KernelRun};
use super::matrix::lists::SummationLists;
use super::matrix::{AssembledMatrix, UnitEntries, VendorMatrix};
use super::tables::HostTable;
use super::{BuildError, CellClass, CellSubset};
use crate::algebra::vector::Vector;
use crate::device::acoo::ElementPositions;
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
pub(super) enum EngineArray {
    /// In host memory.
    Host(HostTable),
    /// In device memory.
    Device(device::Array),
}

impl EngineArray {
    /// Returns the array if it is in host memory.
    pub(super) fn here(&self) -> Option<&HostTable> {
        match self {
            Self::Host(table) => Some(table),
            Self::Device(_) => None,
        }
    }

    /// Returns the array if it is in device memory.
    pub(super) fn there(&self) -> Option<&device::Array> {
        match self {
            Self::Device(array) => Some(array),
            Self::Host(_) => None,
        }
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Host(table) => table.len(),
            Self::Device(array) => array.len(),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Host(table) => table.bytes(),
            Self::Device(array) => array.bytes(),
        }
    }
}

/// Values of a result in the rows of constrained degrees of freedom.
#[derive(Clone, Copy)]
pub(super) enum ConstrainedRows<'a> {
    /// 0, for residuals.
    Zero,
    /// 1, for diagonals.
    One,
    /// Identity rows, for an action on this vector.
    Identity(&'a Vector),
}

/// Treatment of oblique conditions: see [`super::oblique`].
#[derive(Clone, Copy)]
pub(super) enum ObliqueTreatment<'a> {
    /// P y.
    Homogeneous,
    /// P y + g.
    Values,
    /// P y + D N x.
    Diagonal {
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
pub(super) enum AffineTreatment<'a> {
    /// C y.
    Direction,
    /// C y + g.
    Values,
    /// Cᵀ y, with these values in dependent rows.
    Transposed(ConstrainedRows<'a>),
}

/// Target of an operator: host or device.
pub(super) trait Engine: Send + Sync {
    /// Returns the batches of a class of cells or facets, with `lanes` each and slots for the nodes of each field if
    /// there are any; `parts` is the part of each cell.
    fn batches(
        &self,
        on: &Discretisation,
        class: (CellClass, usize, &[Slots]),
        parts: &[CellSubset],
    ) -> Result<Batches, BuildError>;

    /// Creates an array from a table.
    fn array(&self, table: HostTable) -> Result<EngineArray, DeviceError>;

    /// Creates an array of reals.
    fn reals(&self, values: &[f64]) -> Result<EngineArray, DeviceError>;

    /// Returns the numbers of an array of reals; borrowed from host memory in double precision.
    fn numbers<'a>(&self, array: &'a EngineArray) -> Result<Cow<'a, [f64]>, DeviceError>;

    /// Returns the numbers of an array of indices.
    fn integers<'a>(&self, array: &'a EngineArray) -> Result<Cow<'a, [u32]>, DeviceError>;

    /// Creates an array of zeros.
    fn zeros(&self, len: usize) -> Result<EngineArray, DeviceError>;

    /// Overwrites an array of reals.
    fn overwrite(&self, array: &mut EngineArray, values: &[f64]) -> Result<(), DeviceError>;

    /// Prepares the engine for all kernels and tables before the first pass.
    fn prepare(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError>;

    /// Runs a kernel that writes `into` at the quadrature points of its cells.
    fn store(&self, run: KernelRun<'_>, into: &mut EngineArray) -> Result<(), OperatorError>;

    /// Computes y as the sum of the kernels of a pass over all processes, with the given rows of constrained degrees of
    /// freedom.
    fn sum(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError>;

    /// Adds the results of a pass to a vector of a finer space.
    fn spread(&self, pass: KernelPass<'_>, fine: &mut Vector) -> Result<(), OperatorError>;

    /// Creates an array of indices with `entries` · `lanes` per batch; both are 1 for arrays without batches.
    fn indices(
        &self,
        indices: Vec<u32>,
        entries: usize,
        lanes: usize,
    ) -> Result<EngineArray, DeviceError>;

    /// Prepares kernels that add to the `n` entries of a matrix; each comes with the positions of its entries.
    fn prepare_entries(
        &mut self,
        runs: &[(KernelRun<'_>, &EngineArray)],
        n: usize,
    ) -> Result<(), BuildError> {
        let _ = (runs, n);
        Ok(())
    }

    /// Computes the entries of a matrix from kernels that add to them; each comes with the positions of its entries.
    fn add_entries(
        &self,
        runs: &[(KernelRun<'_>, &EngineArray)],
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError>;

    /// Computes the entries of a matrix as sums of stored element entries.
    fn sum_entries(
        &self,
        stored: &[(&EngineArray, &SummationLists)],
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError>;

    /// Prepares the merge of elements, for vectors of length `len`.
    fn prepare_elements(
        &mut self,
        elements: &ElementPositions,
        len: usize,
    ) -> Result<(), DeviceError> {
        let _ = (elements, len);
        Ok(())
    }

    /// Merges elements into starts, columns and entries of a matrix: `first` holds those of the first kernel with
    /// capacity for all, `others` those of the others.
    fn merge_elements(
        &self,
        elements: &ElementPositions,
        first: EngineArray,
        others: Vec<(usize, EngineArray)>,
        len: usize,
    ) -> Result<[EngineArray; 3], OperatorError>;

    /// Creates a list of matrix entries (of `n`) for repeated use.
    fn fixed(&self, which: Vec<u32>, n: usize) -> Result<UnitEntries, DeviceError>;

    /// Creates a list of degrees of freedom for repeated use.
    fn listed(&self, unknowns: Vec<u32>, len: usize) -> Result<UnitEntries, DeviceError>;

    /// Gathers the listed entries of a vector.
    fn take_listed(
        &self,
        which: &UnitEntries,
        x: &Vector,
        into: &mut EngineArray,
    ) -> Result<(), OperatorError>;

    /// Sets the listed entries of a matrix to a value.
    fn set_entries(
        &self,
        which: &UnitEntries,
        value: f64,
        entries: &mut EngineArray,
    ) -> Result<(), OperatorError>;

    /// Creates a matrix handle of the vendor's library, if there is one.
    fn vendor(
        &self,
        starts: &EngineArray,
        columns: &EngineArray,
        entries: &EngineArray,
        len: usize,
    ) -> Result<Option<VendorMatrix>, DeviceError> {
        let _ = (starts, columns, entries, len);
        Ok(None)
    }

    /// Computes y = A x.
    fn multiply(
        &self,
        matrix: &AssembledMatrix,
        x: &Vector,
        y: &mut Vector,
    ) -> Result<(), OperatorError>;

    /// Returns whether there are oblique conditions.
    fn is_oblique(&self) -> bool;

    /// Applies oblique conditions to a vector.
    fn hold(&self, what: ObliqueTreatment<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Replaces the affine constraints.
    fn constrain(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError>;

    /// Applies affine constraints to a vector.
    fn close(&self, what: AffineTreatment<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Sets the values of the essential conditions, in the order of [`Discretisation::conditions`], then those of
    /// oblique conditions, three per node.
    fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError>;

    /// Sets the constrained degrees of freedom of a vector.
    fn impose(&self, u: &mut Vector) -> Result<(), OperatorError>;

    /// Returns the bytes that a kernel streams in addition to tables and vectors.
    fn streamed(&self, work: &AssignedKernel, block: &CellBlock) -> usize {
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
