//! [`Engine`]: what differs between the processor and a device when an operator is applied.
//!
//! An engine says in which batches cells come, how an array is made and how kernels run over batches; which kernels, which
//! cells and which arguments is said in [`super::blocks`]. The processor goes through the mesh in the order of its chunks, a
//! device in that of its layout, kernel by kernel.

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

/// An array where its engine has it.
#[derive(Debug)]
pub(super) enum Array {
    /// In this machine's memory.
    Here(Table),
    /// In a device's.
    There(device::Array),
}

impl Array {
    /// The array, where it is in this machine's memory.
    pub(super) fn here(&self) -> Option<&Table> {
        match self {
            Self::Here(table) => Some(table),
            Self::There(_) => None,
        }
    }

    /// The array, where a device has it.
    pub(super) fn there(&self) -> Option<&device::Array> {
        match self {
            Self::There(array) => Some(array),
            Self::Here(_) => None,
        }
    }

    /// How many elements it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Here(table) => table.len(),
            Self::There(array) => array.len(),
        }
    }

    /// The bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Here(table) => table.bytes(),
            Self::There(array) => array.bytes(),
        }
    }
}

/// The rows of a result that belong to unknowns with essential conditions.
#[derive(Clone, Copy)]
pub(super) enum Rows<'a> {
    /// 0: of a residual.
    Zero,
    /// 1: of a diagonal.
    One,
    /// Those of the identity: of an action on this vector.
    Of(&'a Vector),
}

/// What becomes of a vector where combinations of components have conditions: see [`super::oblique`].
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
    /// The mean of what is left.
    Even,
}

/// What becomes of a vector where unknowns are given by others: see [`super::affine`].
#[derive(Clone, Copy)]
pub(super) enum Affine<'a> {
    /// C y.
    Direction,
    /// C y + g.
    Values,
    /// Cᵀ y, with these rows of what is given.
    Transposed(Rows<'a>),
}

/// What runs the kernels of an operator.
pub(super) trait Engine: Send + Sync {
    /// The batches of a class of cells or facets, `lanes` in each, with slots for the nodes of each field where there are
    /// any; `parts` says of which part each cell is.
    fn batches(
        &self,
        on: &Discretisation,
        class: (Class, usize, &[Slots]),
        parts: &[Part],
    ) -> Result<Batches, BuildError>;

    /// An array with these numbers.
    fn array(&self, table: Table) -> Result<Array, DeviceError>;

    /// An array of reals with these values.
    fn reals(&self, values: &[f64]) -> Result<Array, DeviceError>;

    /// The numbers of an array of reals, which are lent where they are in this machine's memory and in double precision.
    fn numbers<'a>(&self, array: &'a Array) -> Result<Cow<'a, [f64]>, DeviceError>;

    /// The numbers of an array of indices.
    fn integers<'a>(&self, array: &'a Array) -> Result<Cow<'a, [u32]>, DeviceError>;

    /// An array of zeros.
    fn zeros(&self, len: usize) -> Result<Array, DeviceError>;

    /// Other values for an array of reals.
    fn overwrite(&self, array: &mut Array, values: &[f64]) -> Result<(), DeviceError>;

    /// What it needs to know of all kernels and tables before the first pass.
    fn prepare(&mut self, blocks: &Blocks) -> Result<(), BuildError>;

    /// Runs a kernel that writes `into` at the quadrature points of its cells.
    fn store(&self, run: Run<'_>, into: &mut Array) -> Result<(), OperatorError>;

    /// y = the sum of what the kernels of a pass add up, at all processes that share y, with these rows of constrained unknowns.
    fn sum(&self, pass: Pass<'_>, rows: Rows<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Adds what the kernels of a pass have for the unknowns of a finer space.
    fn spread(&self, pass: Pass<'_>, fine: &mut Vector) -> Result<(), OperatorError>;

    /// An array of indices, `entries` of `lanes` each a batch; one of each where they are not of batches.
    fn indices(
        &self,
        indices: Vec<u32>,
        entries: usize,
        lanes: usize,
    ) -> Result<Array, DeviceError>;

    /// What it needs to know of kernels that add to the `n` entries of a matrix, each with where its entries go.
    fn prepare_entries(&mut self, runs: &[(Run<'_>, &Array)], n: usize) -> Result<(), BuildError> {
        let _ = (runs, n);
        Ok(())
    }

    /// The entries of a matrix ← what kernels add to them, each with where its entries go.
    fn add_entries(
        &self,
        runs: &[(Run<'_>, &Array)],
        entries: &mut Array,
    ) -> Result<(), OperatorError>;

    /// The entries of a matrix ← sums of what kernels have stored.
    fn sum_entries(
        &self,
        stored: &[(&Array, &Lists)],
        entries: &mut Array,
    ) -> Result<(), OperatorError>;

    /// What it needs to know of elements that it will be asked to merge, for vectors of length `len`.
    fn prepare_elements(&mut self, elements: &Elements, len: usize) -> Result<(), DeviceError> {
        let _ = (elements, len);
        Ok(())
    }

    /// Starts, columns and entries of the matrix with these elements: those of the first kernel that stored some, behind
    /// which there is room for all, and those of others.
    fn merge_elements(
        &self,
        elements: &Elements,
        first: Array,
        others: Vec<(usize, Array)>,
        len: usize,
    ) -> Result<[Array; 3], OperatorError>;

    /// Some entries among the `n` of a matrix, where they will be at hand in every assembly.
    fn fixed(&self, which: Vec<u32>, n: usize) -> Result<Fixed, DeviceError>;

    /// Some unknowns, where they will be at hand again and again.
    fn listed(&self, unknowns: Vec<u32>, len: usize) -> Result<Fixed, DeviceError>;

    /// The entries of a vector at some unknowns, one after another.
    fn take_listed(&self, which: &Fixed, x: &Vector, into: &mut Array)
    -> Result<(), OperatorError>;

    /// Gives some entries of a matrix a value.
    fn set_entries(
        &self,
        which: &Fixed,
        value: f64,
        entries: &mut Array,
    ) -> Result<(), OperatorError>;

    /// What multiplies with a matrix by the library of the device's vendor, where there is one.
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

    /// y = A x.
    fn multiply(&self, matrix: &Matrix, x: &Vector, y: &mut Vector) -> Result<(), OperatorError>;

    /// Whether combinations of components have conditions.
    fn is_oblique(&self) -> bool;

    /// Makes a vector what it is there.
    fn hold(&self, what: Oblique<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Takes affine constraints on the unknowns, in the place of those before.
    fn constrain(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError>;

    /// Makes a vector what it is with them.
    fn close(&self, what: Affine<'_>, y: &mut Vector) -> Result<(), OperatorError>;

    /// Replaces the values of the essential conditions, in the order of [`Discretisation::conditions`], then those of
    /// combinations of components, three a node.
    fn set_conditions(&mut self, values: &[f64]) -> Result<(), DeviceError>;

    /// Gives the constrained unknowns of a vector their values.
    fn impose(&self, u: &mut Vector) -> Result<(), OperatorError>;

    /// Bytes that a kernel streams beside its tables and the vectors.
    fn streamed(&self, work: &Work, block: &Block) -> usize {
        let _ = (work, block);
        0
    }

    /// What vectors need of the device, where it is one.
    fn arithmetic(&self) -> Option<&Arc<Arithmetic>> {
        None
    }

    /// The kernels, where they work on vectors in this machine's memory.
    fn module(&self) -> Option<&Module> {
        None
    }
}
