//! How levels are asked to be: the settings of a preconditioner, `multigrid(smoother: chebyshev, degree: 3)`,
//! `block(u: multigrid, p: mass)` → [`Asked`].

use crate::solve::Smoother;
use fem_dsl::problem::Argument;
use std::collections::BTreeMap;

/// Steps of the smoother before and behind a correction, where nothing is asked for.
pub(crate) const STEPS: usize = 3;

/// How levels are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// What smooths.
    pub smoother: Smoother,
    /// Its steps before a correction, and as many behind.
    pub steps: usize,
    /// Whether they are of the matrix alone, from the finest one on.
    pub of_matrix: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { smoother: Smoother::default(), steps: STEPS, of_matrix: false }
    }
}

impl Manner {
    /// What a word with its settings asks for.
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

/// What is asked for one field of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfField {
    /// Levels.
    Levels(Manner),
    /// A mass that stands for Schur's complement.
    Mass,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// For all fields for which nothing else is.
    pub manner: Manner,
    /// For a field by its name.
    pub fields: BTreeMap<String, OfField>,
}

impl Asked {
    /// What the value of `preconditioner` asks for.
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
