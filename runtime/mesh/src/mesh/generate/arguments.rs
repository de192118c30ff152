//! Reads a generator's named arguments: kinds, ranges, defaults and errors.

use super::GenerateError;
use crate::mesh::{Cell, MeshError, nearest_name};
use fem_dsl::problem::Argument;
use std::collections::BTreeMap;

/// The arguments of one generator call.
pub(super) struct GeneratorArguments<'a> {
    generator: &'static str,
    given: &'a BTreeMap<String, Argument>,
}

impl<'a> GeneratorArguments<'a> {
    /// Rejects arguments that are not in `known`.
    pub(super) fn new(
        generator: &'static str,
        known: &[&'static str],
        given: &'a BTreeMap<String, Argument>,
    ) -> Result<Self, GenerateError> {
        match given.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Self { generator, given }),
            Some(name) => Err(GenerateError::UnknownArgument {
                generator,
                name: name.clone(),
                nearest: nearest_name(name, known.iter().copied()),
                known: format!("`{}`", known.join("`, `")),
            }),
        }
    }

    /// Returns whether an argument is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// Returns the error of a wrong or missing argument.
    pub(super) fn wrong(&self, name: &'static str, expected: impl Into<String>) -> GenerateError {
        let (generator, expected) = (self.generator, expected.into());
        match self.given.get(name) {
            None => GenerateError::Missing { generator, name, expected },
            Some(argument) => {
                let found = match argument {
                    Argument::Number(x) => format!("{x}"),
                    Argument::Numbers(all) => format!("{all:?}"),
                    Argument::Word(word) | Argument::Call { name: word, .. } => {
                        format!("`{word}`")
                    }
                };
                GenerateError::Wrong { generator, name, expected, found }
            }
        }
    }

    /// Returns the error of an invalid mesh.
    pub(super) fn mesh(&self, error: MeshError) -> GenerateError {
        GenerateError::Mesh { generator: self.generator, error }
    }

    /// Reads a finite number.
    pub(super) fn number(&self, name: &'static str, default: f64) -> Result<f64, GenerateError> {
        match self.given.get(name) {
            None => Ok(default),
            Some(Argument::Number(x)) if x.is_finite() => Ok(*x),
            Some(_) => Err(self.wrong(name, "a finite number")),
        }
    }

    /// Reads an integer from `least` to `most`.
    pub(super) fn count(
        &self,
        name: &'static str,
        least: usize,
        most: usize,
        default: usize,
    ) -> Result<usize, GenerateError> {
        match self.given.get(name) {
            None => Ok(default),
            Some(Argument::Number(x)) => whole(*x)
                .filter(|n| (least..=most).contains(n))
                .ok_or_else(|| self.wrong(name, format!("a whole number from {least} to {most}"))),
            Some(_) => Err(self.wrong(name, format!("a whole number from {least} to {most}"))),
        }
    }

    /// Reads `dim` coordinates; the others are 0.
    pub(super) fn point(
        &self,
        name: &'static str,
        dim: usize,
        default: f64,
    ) -> Result<[f64; 3], GenerateError> {
        let mut point = [0.0; 3];
        match self.given.get(name) {
            None => point[..dim].fill(default),
            Some(Argument::Number(x)) if dim == 1 && x.is_finite() => point[0] = *x,
            Some(Argument::Numbers(all))
                if all.len() == dim && all.iter().all(|x| x.is_finite()) =>
            {
                point[..dim].copy_from_slice(all);
            }
            Some(_) if dim == 1 => return Err(self.wrong(name, "a finite number")),
            Some(_) => return Err(self.wrong(name, format!("{dim} finite numbers in brackets"))),
        }
        Ok(point)
    }

    /// Reads one integer for all directions, or one per direction.
    pub(super) fn counts(
        &self,
        name: &'static str,
        dim: usize,
        most: usize,
    ) -> Result<[usize; 3], GenerateError> {
        let expected = || format!("a whole number from 1 to {most}, or {dim} of them in brackets");
        let all = match self.given.get(name) {
            Some(Argument::Number(x)) => vec![*x; dim],
            Some(Argument::Numbers(all)) if all.len() == dim => all.clone(),
            _ => return Err(self.wrong(name, expected())),
        };
        let mut counts = [1; 3];
        for (count, x) in counts.iter_mut().zip(all) {
            *count = whole(x)
                .filter(|n| (1..=most).contains(n))
                .ok_or_else(|| self.wrong(name, expected()))?;
        }
        Ok(counts)
    }

    /// Reads the dimension and the cell, which must agree.
    pub(super) fn cell(&self, default_dim: usize) -> Result<Cell, GenerateError> {
        if self.generator == "interval" {
            return self.count("dim", 1, 1, 1).map(|_| Cell::Interval);
        }
        let dim = self.count("dim", 2, 3, default_dim)?;
        match self.given.get("cell") {
            None if dim == 2 => Ok(Cell::Quadrilateral),
            None => Ok(Cell::Hexahedron),
            Some(Argument::Word(word)) => match word.parse::<Cell>() {
                Ok(cell) if cell.dim() == dim || !self.has("dim") => Ok(cell),
                _ => Err(self.wrong("cell", cells_of(dim, self.has("dim")))),
            },
            Some(_) => Err(self.wrong("cell", cells_of(dim, self.has("dim")))),
        }
    }
}

fn cells_of(dim: usize, fixed: bool) -> &'static str {
    match (fixed, dim) {
        (true, 2) => "`tri` or `quad` in two dimensions",
        (true, _) => "`tet` or `hex` in three dimensions",
        _ => "`tri`, `quad`, `tet` or `hex`",
    }
}

fn whole(x: f64) -> Option<usize> {
    (x >= 0.0 && x.fract() == 0.0 && x < 1e15).then_some(x as usize)
}
