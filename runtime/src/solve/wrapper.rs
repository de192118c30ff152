//! Systems that override some methods of another one; the remaining methods are forwarded here only.

use super::{
    Approximation, FieldDofs, LinearOperator, LocalDofs, NonlinearSystem, NullSpace, OperatorError,
};
use crate::algebra::coupling::Coupling;
use crate::algebra::vector::Vector;
use std::sync::Arc;

/// A [`NonlinearSystem`] that forwards to another one, except for overridden methods.
pub(crate) trait Wrapper {
    /// Returns the inner system.
    fn inner(&self) -> &dyn NonlinearSystem;

    /// Returns the inner system mutably.
    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem;

    /// See [`NonlinearSystem::residual`].
    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        self.inner().residual(u, r)
    }

    /// See [`NonlinearSystem::linearise`].
    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        self.inner_mut().linearise(u)
    }

    /// See [`NonlinearSystem::complete`].
    fn complete(&self, u: &mut Vector) -> Result<(), OperatorError> {
        self.inner().complete(u)
    }

    /// See [`NonlinearSystem::jacobian`].
    fn jacobian(&self) -> &dyn LinearOperator {
        self.inner().jacobian()
    }

    /// See [`NonlinearSystem::same_jacobian`].
    fn same_jacobian(&self) -> bool {
        self.inner().same_jacobian()
    }

    /// See [`NonlinearSystem::diagonal`].
    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.inner().diagonal(diagonal)
    }

    /// See [`NonlinearSystem::precondition`].
    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        self.inner_mut().precondition()
    }

    /// See [`NonlinearSystem::symmetric`].
    fn symmetric(&self) -> bool {
        self.inner().symmetric()
    }

    /// See [`NonlinearSystem::local`].
    fn local(&self) -> Option<Arc<LocalDofs>> {
        self.inner().local()
    }

    /// See [`NonlinearSystem::coupling`].
    fn coupling(&self) -> Option<Coupling> {
        self.inner().coupling()
    }
}

impl<T: Wrapper> NonlinearSystem for T {
    fn size(&self) -> usize {
        self.inner().size()
    }

    fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), OperatorError> {
        Wrapper::residual(self, u, r)
    }

    fn linearise(&mut self, u: &Vector) -> Result<(), OperatorError> {
        Wrapper::linearise(self, u)
    }

    fn complete(&self, u: &mut Vector) -> Result<(), OperatorError> {
        Wrapper::complete(self, u)
    }

    fn null_space(&self) -> Option<&NullSpace> {
        self.inner().null_space()
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        Wrapper::jacobian(self)
    }

    fn same_jacobian(&self) -> bool {
        Wrapper::same_jacobian(self)
    }

    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        Wrapper::diagonal(self, diagonal)
    }

    fn precondition(&mut self) -> Result<Result<(), String>, OperatorError> {
        Wrapper::precondition(self)
    }

    fn preconditioner(&self) -> Option<&dyn Approximation> {
        self.inner().preconditioner()
    }

    fn forget_preconditioner(&mut self) {
        self.inner_mut().forget_preconditioner();
    }

    fn symmetric(&self) -> bool {
        Wrapper::symmetric(self)
    }

    fn fields(&self) -> Vec<FieldDofs> {
        self.inner().fields()
    }

    fn local(&self) -> Option<Arc<LocalDofs>> {
        Wrapper::local(self)
    }

    fn coupling(&self) -> Option<Coupling> {
        Wrapper::coupling(self)
    }
}
