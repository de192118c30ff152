//! [`Engine`]: passes of kernels over the cells of a mesh, on the host or a device.
//!
//! An engine determines batches and runs kernels over them; [`super::blocks`] selects kernels, cells and arguments. The
//! host traverses the chunks of the mesh, a device its layout, kernel by kernel. Arrays live in the engine's
//! [`Memory`]; its [`VectorConstraints`] process vectors around the kernels.

use super::blocks::{AssignedKernel, CellBlock, KernelBlocks, KernelPass, KernelRun};
use super::constraints::{ConstrainedRows, VectorConstraints};
use super::memory::{Memory, MemoryArray};
use super::{BuildError, CellClass};
use crate::algebra::vector::Vector;
use crate::device::cpu::Schedule;
use crate::operator::batch::Batches;
use crate::solve::OperatorError;
use crate::space::discretisation::Discretisation;
use kernels_gen::abi::Slots;

/// Target of an operator: host or device.
pub(super) trait Engine: Send + Sync {
    /// Returns the memory of its arrays.
    fn memory(&self) -> &dyn Memory;

    /// Returns the constraints of its vectors.
    fn constraints(&self) -> &dyn VectorConstraints;

    /// Returns the constraints of its vectors, to be changed.
    fn constraints_mut(&mut self) -> &mut dyn VectorConstraints;

    /// Returns the batches of a class of cells or facets, with `lanes` each and slots for the nodes of each field if
    /// there are any.
    fn batches(
        &self,
        on: &Discretisation,
        class: (CellClass, usize, &[Slots]),
    ) -> Result<Batches, BuildError>;

    /// Prepares the engine for all kernels and tables before the first pass.
    fn prepare(&mut self, blocks: &KernelBlocks) -> Result<(), BuildError>;

    /// Runs a kernel that writes `into` at the quadrature points of its cells.
    fn store(&self, run: KernelRun<'_>, into: &mut MemoryArray) -> Result<(), OperatorError>;

    /// Computes y as the sum of the kernels of a pass over all processes, with the given rows of constrained degrees of
    /// freedom.
    fn sum(
        &self,
        pass: KernelPass<'_>,
        rows: ConstrainedRows<'_>,
        y: &mut Vector,
    ) -> Result<(), OperatorError>;

    /// Adds the results of a pass to a vector of a finer space.
    fn prolong(&self, pass: KernelPass<'_>, fine: &mut Vector) -> Result<(), OperatorError>;

    /// Computes the entries of a matrix from kernels that add to them; each comes with the positions of its entries.
    /// `schedule` orders the chunks of a host.
    fn add_entries(
        &self,
        runs: &[(KernelRun<'_>, &MemoryArray)],
        schedule: Option<&Schedule>,
        entries: &mut MemoryArray,
    ) -> Result<(), OperatorError>;

    /// Returns the bytes that a kernel streams in addition to tables and vectors.
    fn streamed(&self, work: &AssignedKernel, block: &CellBlock) -> usize {
        let _ = (work, block);
        0
    }
}
