//! `verify`: how a stage says that what crosses a border is not as it should be.
//!
//! What holds for every [`Form`](crate::form::Form) and [`PointForm`](crate::point::PointForm) stands with
//! [`verify_form`](crate::form::verify_form) and [`verify_point`](crate::point::verify_point). Debug builds verify after
//! each pass. A failure is a defect of the compiler, never of its input.

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

/// An error with this message where something does not hold.
pub(crate) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), VerifyError> {
    if holds { Ok(()) } else { Err(VerifyError(message())) }
}
