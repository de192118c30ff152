//! Preconditioners of the language: their words, settings and text, [`PreconditionerSettings`].

use super::Argument;
use super::keyword::{ArgumentKind, KeywordCall, KeywordSettings, PLAIN};
use std::fmt;

/// The preconditioner of one field of several.
const BLOCK: ArgumentKind =
    ArgumentKind::Call(&[("multigrid", LEVELS), ("algebraic", LEVELS), ("mass", PLAIN)]);
/// Settings of multigrid.
const LEVELS: KeywordSettings = KeywordSettings::These(&[
    ("smoother", ArgumentKind::Word(&["chebyshev", "jacobi"])),
    ("degree", ArgumentKind::Whole(1, 20)),
]);

/// Smoother of a multigrid cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smoother {
    /// Chebyshev's polynomial in the operator scaled by its diagonal.
    #[default]
    Chebyshev,
    /// Damped Jacobi steps.
    Jacobi,
}

impl Smoother {
    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            Self::Chebyshev => "chebyshev",
            Self::Jacobi => "jacobi",
        }
    }
}

/// Settings of a multigrid hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MultigridSettings {
    /// True if all levels are aggregated from the matrix, instead of discretised.
    pub is_algebraic: bool,
    /// The smoother.
    pub smoother: Option<Smoother>,
    /// The degree of the smoother's polynomial: its steps before and after a correction.
    pub degree: Option<usize>,
}

/// Preconditioner of one field of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSettings {
    /// A multigrid hierarchy.
    Multigrid(MultigridSettings),
    /// A mass matrix in place of a Schur complement.
    Mass,
}

/// Preconditioner of a Krylov method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreconditionerSettings {
    /// None.
    None,
    /// The diagonal.
    Jacobi,
    /// The blocks of the cells, for discontinuous fields.
    BlockJacobi,
    /// A multigrid hierarchy; of several fields, one a field.
    Multigrid(MultigridSettings),
    /// Settings by field; fields left out get the default of their kind.
    Block(Vec<(String, BlockSettings)>),
}

impl PreconditionerSettings {
    /// The preconditioners with their settings.
    pub(crate) const ARGUMENT: ArgumentKind = ArgumentKind::Call(&[
        ("multigrid", LEVELS),
        ("algebraic", LEVELS),
        ("block", KeywordSettings::EachField(&BLOCK)),
        ("block_jacobi", PLAIN),
        ("jacobi", PLAIN),
        ("none", PLAIN),
    ]);

    /// The word of the language.
    pub fn word(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::BlockJacobi => "block_jacobi",
            Self::Multigrid(settings) if settings.is_algebraic => "algebraic",
            Self::Multigrid(_) => "multigrid",
            Self::Block(_) => "block",
        }
    }

    /// Returns whether it scales entries at most.
    pub fn is_diagonal(&self) -> bool {
        matches!(self, Self::None | Self::Jacobi)
    }

    /// Reads an argument of the kind [`Self::ARGUMENT`].
    pub(crate) fn read(value: &Argument) -> Self {
        match value.word() {
            Some("none") => Self::None,
            Some("jacobi") => Self::Jacobi,
            Some("block_jacobi") => Self::BlockJacobi,
            Some("block") => {
                let fields = match value {
                    Argument::Call { arguments, .. } => arguments.iter().collect(),
                    _ => Vec::new(),
                };
                let field = |(name, of): (&String, &Argument)| {
                    let settings = match of.word() {
                        Some("mass") => BlockSettings::Mass,
                        _ => BlockSettings::Multigrid(levels(of)),
                    };
                    (name.clone(), settings)
                };
                Self::Block(fields.into_iter().map(field).collect())
            }
            _ => Self::Multigrid(levels(value)),
        }
    }
}

/// Reads the settings of multigrid.
fn levels(value: &Argument) -> MultigridSettings {
    MultigridSettings {
        is_algebraic: value.word() == Some("algebraic"),
        smoother: value.setting("smoother").and_then(Argument::word).map(|word| match word {
            "jacobi" => Smoother::Jacobi,
            _ => Smoother::Chebyshev,
        }),
        degree: match value.setting("degree") {
            Some(Argument::Number(degree)) => Some(*degree as usize),
            _ => None,
        },
    }
}

impl fmt::Display for MultigridSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        KeywordCall::new(if self.is_algebraic { "algebraic" } else { "multigrid" })
            .with("smoother", self.smoother.map(Smoother::word))
            .with("degree", self.degree)
            .fmt(f)
    }
}

impl fmt::Display for PreconditionerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Multigrid(settings) => settings.fmt(f),
            Self::Block(fields) => fields
                .iter()
                .fold(KeywordCall::new(self.word()), |made, (field, of)| match of {
                    BlockSettings::Multigrid(settings) => made.with(field, Some(settings)),
                    BlockSettings::Mass => made.with(field, Some("mass")),
                })
                .fmt(f),
            Self::None | Self::Jacobi | Self::BlockJacobi => f.write_str(self.word()),
        }
    }
}
