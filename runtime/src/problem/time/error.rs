//! What can be wrong with a scheme, its steps and its mass.

use super::super::RunError;
use fem_dsl::problem::{SchemeError, SteppingError};

/// Why a problem cannot go through time like this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// A scheme that does not serve the form, or has a setting that it does not take.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Scheme(#[from] SchemeError),
    /// Times or steps that no run can take.
    #[error("{}\nhelp: {}", .0, .0.remedy())]
    Stepping(#[from] SteppingError),
    /// A step of an explicit scheme that is longer than it is stable.
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
        /// The length of the step.
        length: f64,
        /// The longest that is stable.
        most: f64,
    },
    /// A mass that cannot be lumped.
    #[error(
        "`mass: lumped` cannot stand for this mass, {how}\n\
         help: write `mass: consistent`, or `quadrature = collocated;` with a mass of each component alone"
    )]
    Lumped {
        /// Why.
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
