//! Affine constraints on the DoFs of a [`System`]: u_i = Σ_j c_ij u_j + g_i.

use super::{FieldName, System};
use crate::Error;
use runtime::operator::functional::weights;
use runtime::problem::{RunError, image_constraints};
use runtime::space::constraint::affine::{AffineConstraint, AffineConstraints, AffineError};
use std::collections::HashSet;

impl System {
    /// Returns the index of a DoF in vectors, and in [`AffineConstraint`]: that of a component of a field at a node, in
    /// the order of [`System::points`].
    ///
    /// # Errors
    ///
    /// There is no such field, node or component.
    pub fn unknown(
        &self,
        field: impl FieldName,
        node: usize,
        component: usize,
    ) -> Result<usize, Error> {
        let name = field.name();
        let field = self.field(name)?;
        let space = &self.context.on.fields[field].space;
        let (nodes, components) = (space.n_nodes(), space.components());
        if node >= nodes || component >= components {
            return Err(Error::NoUnknown {
                field: name.to_owned(),
                node,
                component,
                nodes,
                components,
            });
        }
        Ok(self.context.on.dofs_of(field).start + node * components + component)
    }

    /// Returns the mean-value constraint of a component of a field, (1/|Ω|) ∫ u dx = `mean`: an equation in all of its
    /// DoFs, solved for one. Start a solve near this mean (`interpolate`). If all other DoFs are far from it, the
    /// eliminated one compensates for all, and tolerances relative to the residual are meaningless.
    ///
    /// # Errors
    ///
    /// There is no such field or component, or it has a condition everywhere.
    pub fn mean(
        &self,
        field: impl FieldName,
        component: usize,
        mean: f64,
    ) -> Result<AffineConstraint, Error> {
        let name = field.name();
        let own = self.field(name)?;
        let first = self.unknown(name, 0, component)?;
        let step = self.context.on.fields[own].space.components();
        let weights = weights(&self.context.on, own).map_err(|error| Error::Run(error.into()))?;
        let volume: f64 = weights.iter().sum();
        let terms = weights.iter().enumerate().map(|(node, &weight)| (first + node * step, weight));
        let terms: Vec<(usize, f64)> = terms.collect();
        self.equation(&terms, mean * volume)
    }

    /// Returns the constraint equivalent to Σ_j a_j u_j = b, with `terms` (j, a_j). It eliminates the DoF with the
    /// largest |a_j| among those without an essential condition.
    ///
    /// # Errors
    ///
    /// No DoF of it is free.
    pub fn equation(&self, terms: &[(usize, f64)], b: f64) -> Result<AffineConstraint, Error> {
        let fixed: HashSet<usize> =
            self.context.on.conditions().map(|(unknown, _)| unknown).collect();
        let row = AffineConstraint::of_equation(terms, b, |unknown| !fixed.contains(&unknown));
        row.ok_or(Error::NothingFree)
    }

    /// Replaces the affine constraints; an empty list removes them. Those of periodic sides stay. Each determines one DoF from others, which may be
    /// constrained themselves. Nothing is compiled: the constraints are applied outside the kernels.
    ///
    /// A constrained DoF stays in vectors. Its row of the residual is 0, and that of the Jacobian is the identity.
    /// States and directions are read with the value that the constraint yields, which [`System::solve`] also stores.
    ///
    /// ```
    /// use weakform::{AffineConstraint, mesh, weak_form};
    ///
    /// weak_form! {
    ///     form heat { field u: scalar; f0[u] = -x[0]; f1[u] = grad(u); }
    /// }
    ///
    /// let setup = heat::form().on(mesh("box(dim: 2, cells: [8, 1])")?).degree(2);
    /// let mut system = setup.dirichlet(heat::field::u, ["x0"], |x| 1.0 + x[1]).build()?;
    /// // What leaves at the right side is twice what enters at the left one, whatever that is.
    /// let points = system.points(heat::field::u)?;
    /// let at = |point: [f64; 3]| points.iter().position(|other| *other == point).expect("a node");
    /// let right = points.iter().filter(|point| point[0] == 1.0);
    /// let rows = right.map(|&[_, y, _]| {
    ///     AffineConstraint::new(at([1.0, y, 0.0])).plus(2.0, at([0.0, y, 0.0]))
    /// });
    /// system.constrain(&rows.collect::<Vec<_>>())?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// assert!((u.to_vec()[at([1.0, 0.5, 0.0])] - 3.0).abs() < 1e-12);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// An unknown DoF, or one that has two constraints or an essential condition; cyclic constraints, with their
    /// positions. The previous constraints then stay in effect.
    pub fn constrain(&mut self, constraints: &[AffineConstraint]) -> Result<(), Error> {
        for constraint in constraints {
            if self.is_oblique(constraint.unknown) {
                return Err(AffineError::Fixed { place: self.place(constraint.unknown) }.into());
            }
        }
        let conditions = self.context.on.conditions().map(|(unknown, _)| unknown);
        let place = |unknown: usize| self.place(unknown);
        // Those of periodic sides stay.
        let (mut all, _) = image_constraints(self.context.form(), &self.context.on);
        all.extend_from_slice(constraints);
        let closed = AffineConstraints::close(self.dofs(), &all, conditions, place)?;
        self.context.on = self.operator.constrain(closed).map_err(RunError::from)?;
        Ok(())
    }

    /// Returns whether a combination of the components at a DoF's node is constrained. Other constraints may refer to
    /// such a DoF.
    fn is_oblique(&self, unknown: usize) -> bool {
        self.context.on.unknown(unknown).is_some_and(|(field, node, _)| {
            let oblique = self.context.on.fields[field].constraints.oblique();
            oblique.iter().any(|own| own.node as usize == node)
        })
    }

    /// Returns the name of a DoF for messages.
    fn place(&self, unknown: usize) -> String {
        let Some((field, node, component)) = self.context.on.unknown(unknown) else {
            return format!("unknown {unknown}");
        };
        let own = &self.context.form().fields[field];
        let component = match own.shape.components() {
            1 => String::new(),
            _ => format!("[{component}]"),
        };
        let points = self.points(own.name.as_str()).unwrap_or_default();
        let at = points.get(node).map(|point| {
            let coordinates: Vec<String> =
                point[..self.context.on.mesh.dim()].iter().map(f64::to_string).collect();
            format!(" at ({})", coordinates.join(", "))
        });
        format!("{}{component}{}", own.name, at.unwrap_or_default())
    }
}
