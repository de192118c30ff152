//! Errors of schemes, steps and mass matrices.

use super::RunError;
use fem_dsl::problem::{SchemeError, SteppingError};

/// Error of time integration settings, or of a step.
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
        "steps of {length:.3e} are too long: `{scheme}` is stable up to {most:.3e} at t = {}\n\
         help: write `step: {:.1e}`, or take an implicit scheme",
        rounded(*time), 0.9 * most
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
    /// A time step that failed.
    #[error("at t = {time} no step of {length:.3e} can be taken: {source}")]
    Step {
        /// Time reached.
        time: f64,
        /// Length of the step.
        length: f64,
        /// Cause.
        source: Box<RunError>,
    },
}

/// Rounds a time to six digits.
fn rounded(time: f64) -> f64 {
    format!("{time:.5e}").parse().unwrap_or(time)
}
