//! What is known of a linear operator to all who apply one: [`LinearOperator`].

use crate::algebra::csr::Columns;
use crate::algebra::vector::{Product, Vector};

/// An operator that could not be applied (a kernel failed to launch, a device was lost).
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OperatorError {
    message: String,
}

impl OperatorError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// y = A x.
pub trait LinearOperator {
    /// The number of unknowns.
    fn size(&self) -> usize;

    /// y = A x. All of `y` is written.
    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError>;

    /// y = S x with the sparse part S of A = Q S Qᵀ, where A is one that is orthogonal to some vectors.
    ///
    /// # Errors
    ///
    /// As [`LinearOperator::apply`].
    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.apply(x, y)
    }

    /// Whether [`LinearOperator::apply`] does nothing but ask the vectors' device for work, the same at each call and
    /// without waiting. [`cg()`](crate::solve::cg()) then lets a device do many iterations in advance, a few more than
    /// are needed, and may have it repeat what one call has asked for.
    fn replayable(&self) -> bool {
        false
    }

    /// The matrix, where the operator has it; else it can be read off by products ([`crate::algebra::coupling`]).
    ///
    /// # Errors
    ///
    /// A device that fails.
    fn matrix(&self) -> Result<Option<Columns>, OperatorError> {
        Ok(None)
    }

    /// y = A x and x·y, for operators that can form the product on the way.
    fn apply_dot(&self, x: &Vector, y: &mut Vector) -> Result<Product, OperatorError> {
        self.apply(x, y)?;
        Ok(x.dot_later(y))
    }
}

/// Product with an operator, or with its sparse part.
pub(crate) type Multiply =
    fn(&dyn LinearOperator, &Vector, &mut Vector) -> Result<(), OperatorError>;

/// y = A x.
pub(crate) const WHOLE: Multiply = |a, x, y| a.apply(x, y);
/// y = S x: see [`LinearOperator::apply_sparse`].
pub(crate) const SPARSE: Multiply = |a, x, y| a.apply_sparse(x, y);
