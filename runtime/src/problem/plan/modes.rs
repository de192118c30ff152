//! Plan of an eigenvalue solve: [`plan_modes`].

use super::{PreconditionerPlan, ProblemProperties, Requirement, cost};
use crate::solve::DirectFallback;
use fem_dsl::problem::{EigenPreconditioner, MultigridSettings, PreconditionerSettings};

/// Plan of an eigenvalue solve: LOBPCG, shift and invert, or the second after the first.
#[derive(Clone, Debug, PartialEq)]
pub struct ModesPlan {
    /// Shift and invert by factors of J + σ M: first, after iterations that fail, or never.
    pub factors: DirectFallback,
    /// The preconditioner of LOBPCG.
    pub preconditioner: PreconditionerPlan,
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
        let word = self.preconditioner.settings.word();
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
    let settings = match named {
        Some(EigenPreconditioner::None) => PreconditionerSettings::None,
        Some(EigenPreconditioner::Jacobi) => PreconditionerSettings::Jacobi,
        Some(EigenPreconditioner::Multigrid | EigenPreconditioner::Direct) | None => {
            PreconditionerSettings::Multigrid(MultigridSettings::default())
        }
    };
    let requirement = match named {
        Some(EigenPreconditioner::Direct) | None => Requirement::Preferred,
        Some(_) => Requirement::Required,
    };
    let preconditioner = PreconditionerPlan { settings, requirement };
    ModesPlan { factors, preconditioner }
}
