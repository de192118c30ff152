//! Projection onto the complement of the derivatives of potentials: the kernel of a form of an exterior derivative alone.
//!
//! ```text
//! load    l = M G (Gᵀ M G)⁻¹ Gᵀ r           Gᵀ (r − l) = 0: the part of a load that no field balances
//! field   x ← x − G (Gᵀ M G)⁻¹ Gᵀ M x       Gᵀ M x = 0: the part without energy
//! ```
//!
//! G is the discrete derivative of the potential and M a mass. Gᵀ M G is the form of the potential for the mass, solved
//! by CG with a hierarchy of its own.

use super::RunError;
use super::context::Context;
use super::kernels::compile_for;
use super::multigrid::HierarchyInput;
use super::multigrid::auxiliary_space::derivative_between;
use super::plan::HierarchySettings;
use super::vector_fields::has_kernel;
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::{Operator, TableCache};
use crate::solve::{
    ApproximateInverse, CgSettings, GridTransfer, LinearOperator, NonlinearSystem, OperatorError,
    Preconditioner, cg, silent,
};
use fem_dsl::point::{IdentityOf, PointForm, Space, identity, potential};
use kernels_gen::plan::Task;

/// Relative tolerance of the solves for the potential. Less accurate projections let LOBPCG converge to the kernel.
const TOLERANCE: f64 = 1e-10;

/// Size of Gᵀ r relative to r, in multiples of eps, up to which it is rounding.
const ROUNDING: f64 = 1e3;

/// The same from which a note is printed.
const NOTED: f64 = 1e-6;

/// Iterations of these solves.
const ITERATIONS: usize = 1000;

/// The projection of a field's vectors and loads.
pub(super) struct KernelProjection {
    mass: Operator,
    /// Gᵀ M G.
    potential: Operator,
    derivative: Box<dyn GridTransfer>,
    /// Zeros like the vectors of the potential.
    zeros: Vector,
}

impl KernelProjection {
    /// Builds the projection for the mass of a form of the only field; `None` if its mass has no potential, or data is not
    /// known for it.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, a device failure.
    pub(super) fn new(
        context: &Context,
        mass: &PointForm,
        operator: &Operator,
    ) -> Result<Option<Self>, RunError> {
        let settings = HierarchySettings::default();
        let whole = context.hierarchy(&settings);
        let Some(form) = potential(mass) else { return Ok(None) };
        let Some((elements, on)) = whole.potential_on(&form)? else { return Ok(None) };
        let (tasks, platform) = ([Task::Action, Task::Diagonal], &context.platform);
        let params = &context.parameters.values;
        let of_mass = whole.restricted(mass, context.on.fields.clone())?;
        let tables = operator.table_cache();
        let (mut mass, _) =
            compile_for(mass, &context.elements, &of_mass, params, &tasks, platform, tables)?;
        mass.linearise(&mass.zeros())?;
        let none = TableCache::default();
        let (mut potential, _) =
            compile_for(&form, &elements, &on, params, &tasks, platform, none)?;
        potential.linearise(&potential.zeros())?;
        let own = HierarchyInput { form: &form, elements: &elements, on: &on, ..whole };
        if let Ok(levels) = own.approximation(&potential)? {
            potential.precondition_by(Some(levels));
            if NonlinearSystem::precondition(&mut potential)?.is_err() {
                potential.precondition_by(None);
            }
        }
        let zeros = potential.zeros();
        let derivative = derivative_between(&on, &context.on, &zeros, &operator.zeros())?;
        Ok(derivative.map(|derivative| Self { mass, potential, derivative, zeros }))
    }

    /// Solves Gᵀ M G φ = b.
    fn solve(&self, b: &Vector) -> Result<Vector, OperatorError> {
        let (mut diagonal, mut phi) = (self.zeros.like(), self.zeros.like());
        let jacobian = self.potential.jacobian();
        let levels = NonlinearSystem::preconditioner(&self.potential);
        let levels = levels.map(|approximation| ApproximateInverse {
            approximation,
            jacobian,
            symmetric: true,
        });
        let preconditioner = match &levels {
            Some(levels) => Preconditioner::Operator(levels),
            None => {
                self.potential.diagonal(&mut diagonal)?;
                diagonal.invert();
                Preconditioner::Jacobi(&diagonal)
            }
        };
        let settings =
            CgSettings { rtol: TOLERANCE, atol: 0.0, max_iterations: ITERATIONS, strict: false };
        cg(jacobian, b, &mut phi, preconditioner, settings, &mut silent)?;
        Ok(phi)
    }

    /// Returns l of a load r, and ‖Gᵀ r‖ / ‖r‖.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    pub(super) fn load(&self, r: &Vector) -> Result<(Vector, f64), OperatorError> {
        let (mut b, mut of_field, mut load) = (self.zeros.like(), r.like(), r.like());
        self.derivative.restrict(r, &mut b)?;
        let part = b.norm() / r.norm().max(f64::MIN_POSITIVE);
        let phi = self.solve(&b)?;
        self.derivative.prolong(&phi, &mut of_field)?;
        self.mass.jacobian().apply(&of_field, &mut load)?;
        Ok((load, part))
    }

    /// Removes from x its part in the kernel.
    ///
    /// # Errors
    ///
    /// An operator that cannot be applied.
    pub(super) fn project(&self, x: &mut Vector) -> Result<(), OperatorError> {
        let (mut product, mut b) = (x.like(), self.zeros.like());
        self.mass.jacobian().apply(x, &mut product)?;
        self.derivative.restrict(&product, &mut b)?;
        let mut phi = self.solve(&b)?;
        phi.scale(-1.0);
        self.derivative.prolong(&phi, x)
    }
}

impl Context {
    /// Removes from the load of a linear form what no field balances: the part of derivatives of potentials, if these are
    /// the kernel of its operator. Returns a note where that is more than rounding.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, an operator that cannot be applied.
    pub(super) fn balance(
        &self,
        operator: &mut Operator,
        u: &Vector,
    ) -> Result<Option<String>, RunError> {
        let form = self.form();
        let (Some(0), [field], true) = (has_kernel(form), &form.fields[..], self.is_linear())
        else {
            return Ok(None);
        };
        let mut r = u.like();
        operator.raw_residual(u, &mut r)?;
        let mass = identity(form, IdentityOf::Values);
        let Some(projection) = KernelProjection::new(self, &mass, operator)? else {
            return Ok(None);
        };
        let (load, part) = projection.load(&r)?;
        if part <= ROUNDING * epsilon(u.precision()) {
            return Ok(None);
        }
        operator.add_load(&load);
        let (name, part_of) = (&field.name, potential_name(field.space, form.dim));
        Ok((part > NOTED).then(|| {
            format!(
                "the right-hand side of `{name}` has a part of {part_of} ({part:.1e}, relative), which no `{name}` balances: it \
                 was left out"
            )
        }))
    }
}

/// Returns the derivatives of potentials of a space, in words.
fn potential_name(space: Space, dim: usize) -> &'static str {
    match (space, dim) {
        (Space::Hcurl(_), _) => "gradients",
        (_, 2) => "rotated gradients",
        _ => "curls",
    }
}

/// A preconditioner whose results have no part in the kernel.
pub(super) struct ProjectedPreconditioner<'a> {
    pub(super) inner: Preconditioner<'a>,
    pub(super) projection: &'a KernelProjection,
}

impl LinearOperator for ProjectedPreconditioner<'_> {
    fn size(&self) -> usize {
        self.projection.mass.jacobian().size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.inner.apply(x, y)?;
        self.projection.project(y)
    }
}
