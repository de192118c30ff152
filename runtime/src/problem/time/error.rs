//! Errors of schemes, step sizes and mass matrices.

use super::super::RunError;
use fem_dsl::problem::{SchemeError, SteppingError};

/// Error of time integration settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// A scheme that does not suit the form, or has an unknown setting.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Scheme(#[from] SchemeError),
    /// Invalid times or step sizes.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Stepping(#[from] SteppingError),
    /// A step beyond the stability limit of an explicit scheme.
    #[error(
        "steps of {length:.3e} are too long: `{scheme}` is stable up to {most:.3e} at t = {time}\n\
         help: write `step: {:.1e}`, or take an implicit scheme",
        0.9 * most
    )]
    Unstable {
        /// The scheme.
        scheme: &'static str,
        /// The time.
        time: f64,
        /// Length of the step.
        length: f64,
        /// Longest stable step.
        most: f64,
    },
    /// A mass that cannot be lumped.
    #[error(
        "`mass: lumped` cannot stand for this mass, {how}\n\
         help: write `mass: consistent`, or `quadrature = collocated;` with a mass of each component alone"
    )]
    Lumped {
        /// Reason.
        how: String,
    },
}

impl From<SchemeError> for RunError {
    fn from(error: SchemeError) -> Self {
        Self::Time(error.into())
    }
}

impl From<SteppingError> for RunError {
    fn from(error: SteppingError) -> Self {
        Self::Time(error.into())
    }
}
