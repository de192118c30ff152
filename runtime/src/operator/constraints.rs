//! Constraints of an operator's vectors ([`VectorConstraints`]): pre- and post-processing around the kernels, which are
//! unaware of them.
//!
//! ```text
//! u_i = g_i             essential conditions of single degrees of freedom
//! N u = g,  P = I − N   oblique conditions on the components of a node: [`oblique`]
//! u = C u + g           affine constraints of dependent degrees of freedom: [`affine`]
//! ```
//!
//! Kernels gather a direction from all degrees of freedom of a cell and add to all its rows. A pass therefore takes
//! directions as 0 in degrees of freedom with essential conditions, whatever they contain ([`HostConstraints::freed`],
//! [`DeviceConstraints::begin`]), and sets the rows of these degrees of freedom afterwards ([`ConstrainedRows`]).
//!
//! | verb | vector | computes |
//! | --- | --- | --- |
//! | impose | state | essential and oblique values |
//! | distribute | state | C u + g |
//! | homogenise | direction | C P x |
//! | condense | residual | P Cᵀ r, and 0 in dependent rows |
//! | condense | functional | Cᵀ w, and 0 in dependent rows |
//! | condense | action | P Cᵀ y + D N x, and x in dependent rows |

pub(super) mod affine;
mod device;
mod host;
pub(super) mod oblique;

pub(super) use device::DeviceConstraints;
pub(super) use host::HostConstraints;

use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::space::constraint::affine::AffineConstraints;

/// Values of a result in the rows of constrained degrees of freedom.
#[derive(Clone, Copy)]
pub(super) enum ConstrainedRows<'a> {
    /// 0, for residuals.
    Zero,
    /// 1, for diagonals.
    One,
    /// Identity rows, for an action on this vector.
    Identity(&'a Vector),
}

/// Result of a pass, to be condensed.
#[derive(Clone, Copy)]
pub(super) enum PassResult<'a> {
    /// A residual.
    Residual,
    /// A functional, to which oblique conditions do not apply.
    Functional,
    /// The action on `x`.
    Action {
        /// x.
        x: &'a Vector,
        /// D; required with oblique conditions.
        diagonal: Option<&'a Vector>,
    },
}

/// Constraints of the vectors in one memory.
pub(super) trait VectorConstraints {
    /// Returns whether there are oblique conditions.
    fn is_oblique(&self) -> bool;

    /// Replaces the affine constraints.
    fn set_affine(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError>;

    /// Sets the values of the essential conditions, in the order of
    /// [`conditions`](crate::space::discretisation::Discretisation::conditions), then those of oblique conditions,
    /// three per node.
    fn set_values(&mut self, values: &[f64]) -> Result<(), DeviceError>;

    /// Sets the degrees of freedom with essential or oblique conditions to their values.
    fn impose(&self, u: &mut Vector) -> Result<(), DeviceError>;

    /// Computes u ← C u + g.
    fn distribute(&self, u: &mut Vector) -> Result<(), DeviceError>;

    /// Computes x ← C P x.
    fn homogenise(&self, x: &mut Vector) -> Result<(), DeviceError>;

    /// Condenses the result of a pass.
    fn condense(&self, of: PassResult<'_>, y: &mut Vector) -> Result<(), DeviceError>;

    /// Replaces the diagonal at nodes with oblique conditions by D.
    fn average(&self, diagonal: &mut Vector) -> Result<(), DeviceError>;
}
