//! User settings of multigrid levels, from the value of `preconditioner`: `multigrid(smoother: chebyshev, degree: 3)`,
//! `block(u: multigrid, p: mass)`.

use crate::solve::Smoother;
use fem_dsl::problem::Argument;
use std::collections::BTreeMap;

/// Default number of pre- and post-smoothing steps.
pub(crate) const STEPS: usize = 3;

/// Settings of a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Smoother.
    pub smoother: Smoother,
    /// Number of pre-smoothing steps, equal to that of post-smoothing steps.
    pub steps: usize,
    /// True for purely algebraic levels.
    pub of_matrix: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { smoother: Smoother::default(), steps: STEPS, of_matrix: false }
    }
}

impl Manner {
    /// Reads the settings of an argument.
    fn of(argument: &Argument) -> Self {
        let steps = match argument.setting("degree") {
            Some(Argument::Number(steps)) => *steps as usize,
            _ => STEPS,
        };
        let smoother = match argument.setting("smoother").and_then(Argument::word) {
            Some("jacobi") => Smoother::Jacobi,
            _ => Smoother::Chebyshev,
        };
        Self { smoother, steps, of_matrix: argument.word() == Some("algebraic") }
    }
}

/// Setting of one field of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfField {
    /// Multigrid levels.
    Levels(Manner),
    /// A mass matrix as the Schur complement.
    Mass,
}

/// Settings of all fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// Default of all fields.
    pub manner: Manner,
    /// Settings by field name.
    pub fields: BTreeMap<String, OfField>,
}

impl Asked {
    /// Reads the value of `preconditioner`.
    pub fn of(argument: &Argument) -> Self {
        let Argument::Made { name, arguments } = argument else {
            return Self { manner: Manner::of(argument), ..Self::default() };
        };
        if name != "block" {
            return Self { manner: Manner::of(argument), ..Self::default() };
        }
        let field = |(name, of): (&String, &Argument)| {
            let asked = match of.word() {
                Some("mass") => OfField::Mass,
                _ => OfField::Levels(Manner::of(of)),
            };
            (name.clone(), asked)
        };
        Self { fields: arguments.iter().map(field).collect(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, arguments: &[(&str, Argument)]) -> Argument {
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Argument::Made { name: name.to_owned(), arguments }
    }

    #[test]
    fn settings_are_those_that_are_written() {
        let word = |word: &str| Argument::Word(word.to_owned());
        assert_eq!(Asked::of(&word("multigrid")), Asked::default());
        let levels = made("multigrid", &[("degree", Argument::Number(5.0))]);
        assert_eq!(Asked::of(&levels).manner, Manner { steps: 5, ..Manner::default() });
        let jacobi = made("algebraic", &[("smoother", word("jacobi"))]);
        let manner = Manner { smoother: Smoother::Jacobi, of_matrix: true, ..Manner::default() };
        assert_eq!(Asked::of(&jacobi).manner, manner);
        let block = Asked::of(&made("block", &[("u", levels), ("p", word("mass"))]));
        assert_eq!(block.manner, Manner::default());
        assert_eq!(block.fields["p"], OfField::Mass);
        assert_eq!(block.fields["u"], OfField::Levels(Manner { steps: 5, ..Manner::default() }));
    }
}
