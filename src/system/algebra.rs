//! Linear algebra of a [`System`] for solvers of your own: its Jacobian as an operator and as a matrix, its constrained
//! degrees of freedom, and transfer to another mesh.

use super::System;
use crate::{Csr, Error, Vector, threads};
use runtime::estimate::adapt::AdaptiveMesh;
use runtime::estimate::{ErrorEstimate, Estimator};
use runtime::problem::{Context, RunError};
use runtime::solve::{LinearOperator, NonlinearSystem};
use runtime::space::discretisation::Discretisation;

impl System {
    /// Returns the Jacobian at the last linearisation, matrix-free.
    ///
    /// ```
    /// use weakform::solve::{CgSettings, Preconditioner, cg};
    /// use weakform::{Form, mesh};
    ///
    /// let form = Form::parse("form f { field u: scalar; f0[u] = -1; f1[u] = grad(u); }", "f")?;
    /// let mut system = form.on(mesh("box(dim: 2, cells: 4)")?).dirichlet("u", weakform::ALL, |_| 0.0).build()?;
    /// let (u, mut b, mut x) = (system.initial(), system.vector(), system.vector());
    /// system.linearise(&u)?;
    /// system.residual(&u, &mut b)?;
    /// b.scale(-1.0);
    /// let report = cg(system.jacobian()?, &b, &mut x, Preconditioner::Identity, CgSettings::default(), &mut |_| {
    ///     weakform::Continue::Yes
    /// });
    /// assert!(report.is_ok_and(|report| report.outcome.is_success()));
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There was no linearisation ([`Error::NotLinearised`]), and the Jacobian depends on the state.
    pub fn jacobian(&self) -> Result<&dyn LinearOperator, Error> {
        self.is_linearised()?;
        Ok(self.operator.jacobian())
    }

    /// Assembles the Jacobian at the last linearisation from element matrices. Rows and columns of constrained degrees of
    /// freedom are those of the identity.
    ///
    /// ```
    /// use weakform::{Form, mesh};
    ///
    /// let form = Form::parse("form f { field u: scalar; f1[u] = grad(u); }", "f")?;
    /// let mut system = form.on(mesh("box(dim: 2, cells: 2)")?).dirichlet("u", weakform::ALL, |_| 0.0).build()?;
    /// system.linearise(&system.initial())?;
    /// let matrix = system.matrix()?;
    /// // One node is free: ∫ |∇φ|² = 8/3 on four squares.
    /// let free = (0..system.dofs()).find(|row| !system.constrained_dofs().contains(row)).expect("a free node");
    /// assert_eq!(matrix.size(), 9);
    /// let diagonal = matrix.row(free).find(|(column, _)| *column == free).expect("a diagonal").1;
    /// assert!((diagonal - 8.0 / 3.0).abs() < 1e-14);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As for [`System::jacobian`]; the matrix exceeds the memory budget.
    pub fn matrix(&self) -> Result<Csr, Error> {
        self.is_linearised()?;
        let operator = &self.operator;
        Ok(threads::roomy(|| Csr::of(operator)).map_err(RunError::from)?)
    }

    /// Returns the degrees of freedom with an essential condition, ascending.
    pub fn constrained_dofs(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.context.on.conditions().map(|(dof, _)| dof).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Sets the constrained degrees of freedom of `u` to the values of their conditions.
    ///
    /// # Errors
    ///
    /// The vector does not fit.
    pub fn impose(&self, u: &mut Vector) -> Result<(), Error> {
        self.fits(u)?;
        Ok(self.operator.impose(u).map_err(RunError::from)?)
    }

    /// Returns the discretisation: mesh, spaces, constraints and data.
    pub fn discretisation(&self) -> &Discretisation {
        &self.context.on
    }

    /// Transfers `u` to the system of a mesh that was refined or coarsened from the same coarse mesh: at each node of the
    /// new mesh the value that the function has there.
    ///
    /// ```
    /// use weakform::adapt::AdaptiveMesh;
    /// use weakform::meshes::Mesh;
    /// use weakform::Form;
    ///
    /// let form = Form::parse("form f { field u: scalar; f1[u] = grad(u); }", "f")?;
    /// let mut adaptive = AdaptiveMesh::new(Mesh::cube(2).cells(2).build()?)?;
    /// let old = form.on(adaptive.mesh()?).build()?;
    /// adaptive.adapt(old.mesh(), &[true, false, false, false], &[])?;
    /// let new = form.on(adaptive.mesh()?).build()?;
    /// let u = old.interpolate("u", |x| x[0] - 2.0 * x[1])?;
    /// let moved = old.transfer(&u, &new)?;
    /// assert!(new.error_l2("u", &moved, |x| x[0] - 2.0 * x[1])? < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// A vector that does not fit; meshes that are not refined from one, or fields of different elements
    /// ([`Error::NoTransfer`]).
    pub fn transfer(&self, u: &Vector, to: &Self) -> Result<Vector, Error> {
        self.fits(u)?;
        let moved = AdaptiveMesh::transfer(&self.context.on, &u.to_vec(), &to.context.on)
            .ok_or(Error::NoTransfer)?;
        let mut u = to.vector();
        u.set(&moved);
        Ok(u)
    }

    /// Estimates the error of a solution cell by cell, from residuals in cells and jumps across facets, relative to its energy:
    /// see [`crate::adapt`].
    ///
    /// # Errors
    ///
    /// A vector that does not fit, kernels that cannot be compiled, indicators that are not finite.
    pub fn estimate(&self, u: &Vector) -> Result<ErrorEstimate, Error> {
        self.fits(u)?;
        let (Context { elements, on, parameters, platform, .. }, numbers) =
            (&self.context, u.to_vec());
        let (form, params, target) = (self.context.form(), &parameters.values, &platform.target);
        let found = threads::roomy(|| {
            Estimator::new(form, elements, on, params, target, platform.device.as_ref())?
                .estimate(&numbers)
        });
        Ok(found.map_err(RunError::from)?)
    }
}
