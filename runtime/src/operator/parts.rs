//! The cells of an operator part by part, for measurements: how they are batched, and the product with some of them.

use super::blocks::{Block, Inputs, Work};
use super::engine::Rows;
use super::{Class, Operator, Part};
use crate::algebra::vector::Vector;
use crate::solve::OperatorError;
use kernels_gen::abi::Role;
use kernels_gen::plan::Task;
use std::ops::Range;

/// The cells or facets of one class, as they are batched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which.
    pub class: Class,
    /// How many each chunk has; on devices each colour, where they are coloured.
    pub sizes: Vec<usize>,
}

impl Share {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// Whether these are cells of one of some parts.
    pub fn is_of(&self, parts: &[Part]) -> bool {
        matches!(self.class, Class::Cells(part, _) if parts.contains(&part))
    }
}

impl Operator {
    /// What the kernels of a task run over, in the order in which they add.
    pub fn shares(&self, task: Task) -> Vec<Share> {
        let works = self.blocks.works().filter(|(work, _)| work.kernel.task == task);
        let share = |(work, block): (&Work, &Block)| {
            let active = block.batches.active();
            let size = |part: &Range<usize>| active[part.clone()].iter().map(|&n| n as usize).sum();
            let sizes = block.batches.parts().iter().map(size).collect();
            Share { class: work.kernel.class, sizes }
        };
        works.map(share).collect()
    }

    /// y = A x with the cells of these parts alone: no others, and no facets. Rows of constrained unknowns are those of the
    /// identity, as ever, and conditions on combinations of components are left out. With no part it is what is done
    /// beside the kernels.
    ///
    /// # Errors
    ///
    /// As those of a product.
    pub fn apply_to(
        &self,
        parts: &[Part],
        x: &Vector,
        y: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.fits(x)?;
        self.fits(y)?;
        let inputs = Inputs { direction: Some(x), ..self.linearised() };
        let pass = self.blocks.pass(Task::Action, inputs).of(parts);
        self.engine.sum(pass, Rows::Of(x), y)
    }

    /// Whether a product with the Jacobian reads what only a linearisation makes, and there was none.
    pub fn awaits_linearisation(&self) -> bool {
        let products = [Task::Action, Task::Diagonal];
        let mut works =
            self.blocks.works().filter(|(work, _)| products.contains(&work.kernel.task));
        let reads = |work: &Work| {
            let mut roles = work.abi.arguments.iter().map(|argument| argument.role);
            roles.any(|role| matches!(role, Role::State(_) | Role::Stored))
        };
        self.state.is_none() && works.any(|(work, _)| reads(work))
    }
}
