//! `verify`: what holds for every [`Form`] and [`PointForm`] that crosses a border.
//!
//! Of a `Form`:
//!
//! 1. dim is 2 or 3; shapes of fields, aux and params have 1 to 64 components an index; a
//!    parameter has as many finite values as components, and a default of its shape that rests on
//!    parameters and constants only;
//! 2. every operand precedes its expression; every expression has the type that the builder gives
//!    to its operation; every terminal exists and has the shape that the form gives it;
//! 3. the cells' integral, if any, comes first, and only facets' expressions use the normal;
//! 4. rows are ordered by field, one a field, none of them empty or zero; f0 has the shape of the
//!    field, f1 that of its gradient; an energy is a scalar;
//! 5. no row contains a test function; only the action contains directions;
//! 6. before `differentiate` there is no action; after it, what the action holds is linear and
//!    homogeneous in the direction.
//!
//! Of a `PointForm`:
//!
//! 1. every operand precedes its node; truth values stand only where they are asked for, numbers
//!    everywhere else; every constant is finite;
//! 2. every input exists: slots of fields and aux (derivatives of aux on nodes only), components
//!    of params and coordinates, the normal on facets only;
//! 3. the residual and the Jacobian do not depend on directions, the energy neither; slots are
//!    sorted, unique and exist; nothing in a list is a constant zero;
//! 4. `symmetric` and `linear` are what they say; names belong to nodes that are computed.
//!
//! Debug builds verify after each pass. A failure is a defect of the compiler, never of its input.

mod form;
mod point;

pub use form::verify_form;
pub use point::verify_point;

use crate::form::Form;
use crate::point::PointForm;
use thiserror::Error;

/// Where a form is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// After `check`.
    Checked,
    /// After `differentiate` and `simplify`.
    Differentiated,
}

/// An invariant that does not hold: a defect of the compiler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this is a defect of the compiler, please report it: {0}")]
pub struct VerifyError(pub String);

/// Verifies in debug builds.
///
/// # Panics
///
/// Where an invariant does not hold.
pub(crate) fn expect_form(form: &Form, phase: Phase) {
    if cfg!(debug_assertions)
        && let Err(error) = verify_form(form, phase)
    {
        panic!("{error}\n{form}");
    }
}

/// Verifies in debug builds.
///
/// # Panics
///
/// Where an invariant does not hold.
pub(crate) fn expect_point(form: &PointForm) {
    if cfg!(debug_assertions)
        && let Err(error) = verify_point(form)
    {
        panic!("{error}\n{form:#?}");
    }
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), VerifyError> {
    if holds { Ok(()) } else { Err(VerifyError(message())) }
}
