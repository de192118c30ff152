//! End of a solve: its [`Outcome`], and the [`SolveError`] of one without a solution.

use std::fmt;

/// Reason why a solver stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The residual is below the tolerance.
    Converged,
    /// The limit of iterations was reached.
    IterationLimit,
    /// The residual is at the rounding-error level, above the tolerance: the solution is as accurate as the precision
    /// allows.
    Rounding,
    /// The residual is at the rounding-error level, but the tolerance is mandatory ([`CgSettings::strict`](super::CgSettings::strict)) or the
    /// solution is useless.
    BelowRounding,
    /// The residual stagnates: the problem is singular, or too hard for the solver.
    Stagnated,
    /// A divisor of the method vanished, again after a restart.
    BrokeDown,
    /// A direction with pᵀAp ≤ 0, or rᵀM⁻¹r ≤ 0: the operator or the preconditioner is not positive
    /// definite.
    Indefinite {
        /// pᵀAp (or rᵀM⁻¹r).
        curvature: f64,
    },
    /// The matrix is singular to working precision.
    Singular {
        /// Degree of freedom in which the null vector is largest.
        unknown: usize,
        /// Estimate of the condition number.
        condition: f64,
    },
    /// A number that is not finite appeared.
    NotFinite,
    /// The right-hand side or the solution overflows the precision.
    Overflow,
    /// The right-hand side or the solution underflows the precision.
    Underflow,
    /// The residual grew beyond bounds.
    Diverged,
    /// No step along the search direction reduces the residual.
    LineSearchFailed,
    /// The equations of a field are not solved relative to their own scale, which is far from those of the others.
    Unsolved {
        /// Index of the field.
        field: usize,
        /// The ratio of the scales.
        ratio: f64,
    },
    /// The caller asked to stop.
    Cancelled,
}

impl Outcome {
    /// Returns whether the solve has a solution.
    pub fn is_success(self) -> bool {
        matches!(self, Self::Converged | Self::Rounding)
    }

    /// Returns whether a nonlinear solve may succeed from a closer initial state.
    pub(crate) fn may_sweep(self) -> bool {
        matches!(self, Self::IterationLimit | Self::Stagnated | Self::LineSearchFailed)
    }

    /// Returns whether another linear solver may succeed.
    pub(super) fn is_hard(self) -> bool {
        match self {
            Self::IterationLimit
            | Self::Stagnated
            | Self::BrokeDown
            | Self::BelowRounding
            | Self::Indefinite { .. } => true,
            Self::Converged
            | Self::Rounding
            | Self::Singular { .. }
            | Self::NotFinite
            | Self::Overflow
            | Self::Underflow
            | Self::Diverged
            | Self::LineSearchFailed
            | Self::Unsolved { .. }
            | Self::Cancelled => false,
        }
    }
}

/// A solve without a solution.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SolveError {
    /// The solver.
    pub solver: &'static str,
    /// Reason why it stopped.
    pub outcome: Outcome,
    /// Number of iterations.
    pub iterations: usize,
    /// The last residual norm.
    pub residual: f64,
    /// Requested norm.
    pub target: f64,
    /// The field of [`Outcome::Unsolved`] in words, where its name is known, or the penalty of an
    /// [`Outcome::Indefinite`].
    pub field: Option<Box<str>>,
}

impl std::error::Error for SolveError {}

impl fmt::Display for SolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { solver, outcome, iterations, residual, target, field } = self;
        match *outcome {
            Outcome::Converged | Outcome::Rounding => {
                write!(f, "{solver} converged in {iterations} iterations")
            }
            Outcome::IterationLimit => write!(
                f,
                "{solver} did not converge in {iterations} iterations: the residual is {residual:.3e}, {target:.3e} was \
                 asked for"
            ),
            Outcome::Stagnated => write!(
                f,
                "{solver} stagnated after {iterations} iterations at a residual of {residual:.3e}, {target:.3e} was asked \
                 for: the problem may be singular (too few essential conditions)"
            ),
            Outcome::BrokeDown => write!(
                f,
                "{solver} broke down after {iterations} iterations at a residual of {residual:.3e}, {target:.3e} was \
                 asked for: a product that it divides by is 0\n\
                 help: use `gmres`, which cannot break down"
            ),
            Outcome::BelowRounding => write!(
                f,
                "{solver} cannot reach a residual of {target:.3e}: rounding leaves {residual:.3e}\n\
                 help: raise the tolerance, or leave it out and have what rounding allows; where that is too little, \
                 compute with other units or a mesh without extreme cells"
            ),
            Outcome::Indefinite { curvature } => {
                write!(
                    f,
                    "{solver} found a direction of curvature {curvature:.3e} in iteration {iterations}: the operator is \
                     not positive definite"
                )?;
                match field {
                    Some(penalty) => write!(
                        f,
                        "\nhelp: raise the factor of `{penalty}`, to 2 times the coefficient of the flux at least, or \
                         check the signs of the form"
                    ),
                    None => f.write_str("; use minres or gmres, or check the signs of the form"),
                }
            }
            Outcome::Singular { unknown, .. } => write!(
                f,
                "{solver}: the matrix is singular to working precision, most at unknown {unknown}: fix the field there \
                 with an essential condition, or its mean, where the equations leave it free, or take other units"
            ),
            Outcome::Unsolved { field: number, ratio } => {
                let unnamed = format!("field {}", number + 1);
                let field = field.as_deref().unwrap_or(&unnamed);
                write!(
                    f,
                    "{solver} has not solved the equations of {field}: their scale and that of another field differ by a \
                     factor of {ratio:.0e}\n\
                     help: multiply the equations of one field by a factor, take units in which the coefficients are near \
                     1, or another solver"
                )
            }
            Outcome::NotFinite => write!(
                f,
                "{solver} met a number that is not finite in iteration {iterations}: check the form for a division by \
                 zero, a logarithm or a root of a negative number"
            ),
            Outcome::Overflow => write!(
                f,
                "{solver}: the solution or its load overflows, its entries exceed the range of the precision\n\
                 help: choose units in which they are smaller"
            ),
            Outcome::Underflow => write!(
                f,
                "{solver}: the solution or its load underflows, its numbers are too small to keep their digits\n\
                 help: choose units in which they are larger"
            ),
            Outcome::Diverged => write!(
                f,
                "{solver} diverged: the residual is {residual:.3e} after {iterations} iterations"
            ),
            Outcome::LineSearchFailed => write!(
                f,
                "{solver}: no step reduces the residual of {residual:.3e} after {iterations} iterations ({target:.3e} was \
                 asked for); start closer to the solution, take load steps, or raise the tolerance"
            ),
            Outcome::Cancelled => write!(f, "{solver} was stopped after {iterations} iterations"),
        }
    }
}
