//! Interface of linear operators: [`LinearOperator`].

use crate::algebra::sparse::Csc;
use crate::algebra::vector::{ComplexPairs, ScalarProduct, Vector};

/// An operator application that failed (a kernel launch failed, a device was lost).
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct OperatorError {
    message: String,
}

impl OperatorError {
    /// Creates an error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// A linear operator A.
pub trait LinearOperator {
    /// Returns the number of degrees of freedom.
    fn size(&self) -> usize;

    /// Computes y = A x. All of `y` is overwritten.
    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError>;

    /// Computes y = S x with the sparse part S of A = Q S Qᵀ, for operators with projections Q.
    ///
    /// # Errors
    ///
    /// As for [`LinearOperator::apply`].
    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.apply(x, y)
    }

    /// Returns whether [`LinearOperator::apply`] only enqueues device work, identical in each call and without
    /// synchronisation. [`cg()`](crate::solve::cg()) then lets a device run many iterations ahead, a few more than
    /// needed, and may replay a recording of one call.
    fn replayable(&self) -> bool {
        false
    }

    /// Returns the pairs of fields as whose complex vectors the operator is linear: A (i x) = i A x.
    fn complex_pairs(&self) -> Option<&ComplexPairs> {
        None
    }

    /// Returns the matrix if the operator has one; otherwise it can be read off by products
    /// ([`crate::algebra::coupling`]).
    ///
    /// # Errors
    ///
    /// A device failure.
    fn matrix(&self) -> Result<Option<Csc>, OperatorError> {
        Ok(None)
    }

    /// Computes y = A x and x·y, for operators that can fuse the product.
    fn apply_dot(&self, x: &Vector, y: &mut Vector) -> Result<ScalarProduct, OperatorError> {
        self.apply(x, y)?;
        Ok(x.dot_later(y))
    }

    /// Computes y = A x for ‖x‖ = `norm`, and lends it to `take` as a multiple of a vector, which may have another
    /// precision. An operator without its own result has it in `work`.
    ///
    /// # Errors
    ///
    /// As for [`LinearOperator::apply`].
    fn apply_lending(
        &self,
        x: &Vector,
        _norm: f64,
        work: &mut Option<Vector>,
        take: &mut dyn FnMut(f64, &Vector),
    ) -> Result<(), OperatorError> {
        lend_applied(x, work, take, |y| self.apply(x, y))
    }
}

/// Lends the result of `apply` in `work`, a vector like `x`.
pub(crate) fn lend_applied(
    x: &Vector,
    work: &mut Option<Vector>,
    take: &mut dyn FnMut(f64, &Vector),
    apply: impl FnOnce(&mut Vector) -> Result<(), OperatorError>,
) -> Result<(), OperatorError> {
    let y = work.get_or_insert_with(|| x.like());
    apply(y)?;
    take(1.0, y);
    Ok(())
}

/// Application of an operator, or of its sparse part.
pub(crate) type Multiply =
    fn(&dyn LinearOperator, &Vector, &mut Vector) -> Result<(), OperatorError>;

/// y = A x.
pub(crate) const WHOLE: Multiply = |a, x, y| a.apply(x, y);
/// y = S x: see [`LinearOperator::apply_sparse`].
pub(crate) const SPARSE: Multiply = |a, x, y| a.apply_sparse(x, y);
