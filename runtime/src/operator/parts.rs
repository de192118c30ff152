//! Parts of an operator's cells, for benchmarks: their batches, and products restricted to them.

use super::blocks::{AssignedKernel, CellBlock, PassInputs};
use super::constraints::ConstrainedRows;
use super::{CellClass, CellSubset, Operator};
use crate::algebra::vector::Vector;
use crate::solve::OperatorError;
use kernels_gen::abi::Role;
use kernels_gen::plan::Task;
use std::ops::Range;

/// Cells or facets of one class, as batched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSizes {
    /// Class of cells.
    pub class: CellClass,
    /// Number in each chunk; on devices with colouring, in each colour.
    pub sizes: Vec<usize>,
}

impl ClassSizes {
    /// Returns the total number.
    pub fn count(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Returns whether these are cells of one of some parts.
    pub fn is_of(&self, parts: &[CellSubset]) -> bool {
        matches!(self.class, CellClass::Cells(part, _) if parts.contains(&part))
    }
}

impl Operator {
    /// Returns the cells and facets of a task's kernels, in summation order.
    pub fn shares(&self, task: Task) -> Vec<ClassSizes> {
        let works = self.blocks.works().filter(|(work, _)| work.kernel.task == task);
        let share = |(work, block): (&AssignedKernel, &CellBlock)| {
            let active = block.batches.active();
            let size = |part: &Range<usize>| active[part.clone()].iter().map(|&n| n as usize).sum();
            let sizes = block.batches.parts().iter().map(size).collect();
            ClassSizes { class: work.kernel.class, sizes }
        };
        works.map(share).collect()
    }

    /// Computes y = A x restricted to the cells of some parts, without facets and oblique conditions. Rows of
    /// constrained degrees of freedom are the identity. Without parts, only the work outside the kernels remains.
    ///
    /// # Errors
    ///
    /// As for a product.
    pub fn apply_to(
        &self,
        parts: &[CellSubset],
        x: &Vector,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.fits(x)?;
        self.fits(y)?;
        let inputs = PassInputs { direction: Some(x), ..self.linearised() };
        let pass = self.blocks.pass(Task::Action, inputs).of(parts);
        self.engine.sum(pass, ConstrainedRows::Identity(x), y)
    }

    /// Returns whether a product with the Jacobian requires a linearisation that has not happened yet.
    pub fn awaits_linearisation(&self) -> bool {
        let products = [Task::Action, Task::Diagonal];
        let mut works =
            self.blocks.works().filter(|(work, _)| products.contains(&work.kernel.task));
        let reads = |work: &AssignedKernel| {
            let mut roles = work.abi.arguments.iter().map(|argument| argument.role);
            roles.any(|role| matches!(role, Role::State(_) | Role::Stored))
        };
        self.state.is_none() && works.any(|(work, _)| reads(work))
    }
}
