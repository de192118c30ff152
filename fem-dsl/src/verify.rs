//! `verify`: errors for violated invariants between two stages.
//!
//! The invariants of [`Form`](crate::form::Form) and [`PointForm`](crate::point::PointForm) are documented with
//! [`verify_form`](crate::form::verify_form) and [`verify_point`](crate::point::verify_point). Debug builds verify
//! after each pass. A failure is a defect of the compiler, never of its input.

use thiserror::Error;

/// The compilation phase of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// After `check`.
    Checked,
    /// After `differentiate` and `simplify`.
    Differentiated,
}

/// A violated invariant: a defect of the compiler.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this is a defect of the compiler, please report it: {0}")]
pub struct VerifyError(pub String);

/// Returns an error with this message if `is_true` is false.
pub(crate) fn ensure(is_true: bool, message: impl FnOnce() -> String) -> Result<(), VerifyError> {
    if is_true { Ok(()) } else { Err(VerifyError(message())) }
}
