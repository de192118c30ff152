//! Plan of an eigenvalue solve: [`plan_modes`].

use super::{ProblemProperties, Requirement, cost};
use crate::solve::DirectFallback;
use fem_dsl::problem::EigenPreconditioner;

/// Preconditioner of LOBPCG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModesPreconditioner {
    /// None.
    None,
    /// The diagonal.
    Jacobi,
    /// Multigrid: required if the problem names it; else the diagonal serves if it cannot be made.
    Multigrid(Requirement),
}

/// Plan of an eigenvalue solve: LOBPCG, shift and invert, or the second after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModesPlan {
    /// Shift and invert by factors of J + σ M: first, after iterations that fail, or never.
    pub factors: DirectFallback,
    /// The preconditioner of LOBPCG.
    pub preconditioner: ModesPreconditioner,
}

impl ModesPlan {
    /// The name of the first solver: `lanczos` with shift and invert, or `lobpcg`.
    pub fn solver(&self) -> &'static str {
        match self.factors {
            DirectFallback::First => "lanczos",
            DirectFallback::Never | DirectFallback::After { .. } => "lobpcg",
        }
    }

    /// The word of the language for the preconditioner of LOBPCG, if that comes first.
    pub fn preconditioner(&self) -> Option<&'static str> {
        let word = match self.preconditioner {
            ModesPreconditioner::None => "none",
            ModesPreconditioner::Jacobi => "jacobi",
            ModesPreconditioner::Multigrid(_) => "multigrid",
        };
        (self.factors != DirectFallback::First).then_some(word)
    }
}

/// Plans an eigenvalue solve, with the preconditioner that the problem names or the one that suits it. The properties are
/// those of the whole system: no field is eliminated.
pub fn plan_modes(properties: &ProblemProperties, named: Option<EigenPreconditioner>) -> ModesPlan {
    let factors = match named {
        Some(EigenPreconditioner::Direct) => DirectFallback::First,
        Some(_) => DirectFallback::Never,
        None => cost::factorisation_for_modes(properties),
    };
    let preconditioner = match named {
        Some(EigenPreconditioner::None) => ModesPreconditioner::None,
        Some(EigenPreconditioner::Jacobi) => ModesPreconditioner::Jacobi,
        Some(EigenPreconditioner::Multigrid) => {
            ModesPreconditioner::Multigrid(Requirement::Required)
        }
        Some(EigenPreconditioner::Direct) | None => {
            ModesPreconditioner::Multigrid(Requirement::Preferred)
        }
    };
    ModesPlan { factors, preconditioner }
}
