//! The generators of the language: `box`, `interval`, `ball`, `shell`, `lshape`.
//!
//! All cells follow a space-filling curve. Quadrilaterals and hexahedra are consistently oriented: every edge and face
//! has one direction in all its cells.
//!
//! | generator | domain | tags |
//! | --- | --- | --- |
//! | `interval(cells, from, to)` | a line | `x0 x1` |
//! | `box(dim, cells, from, to, cell, deform)` | a box | `x0 x1 y0 y1 z0 z1` |
//! | `ball(dim, refine, order, cell)` | the unit ball about the origin | `surface` |
//! | `shell(dim, inner, outer, refine, order, cell)` | between two spheres | `inner`, `outer` |
//! | `lshape(dim, refine, cell)` | [−1, 1]^d without [0, 1]^d | `boundary` |

mod arguments;
mod blocks;
mod domain_map;
mod generator;
mod grid;
mod round;
mod simplices;

pub(crate) use domain_map::{ComputationalPoints, DomainMap};
pub(crate) use generator::Generator;

use super::source_order::DataRows;
use super::{Cell, EntityCounts, Mesh, MeshError};
use arguments::GeneratorArguments;
use fem_dsl::problem::Argument;
use std::collections::BTreeMap;
use thiserror::Error;

/// Error of a mesh generator.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// Unknown generator.
    #[error("unknown mesh generator `{name}`; {}the generators are `box`, `interval`, `ball`, `shell`, `lshape`",
        nearest_hint(.nearest))]
    UnknownGenerator {
        /// The name.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
    },
    /// Unknown argument.
    #[error("`{generator}` has no argument `{name}`; {}it takes {known}", nearest_hint(.nearest))]
    UnknownArgument {
        /// The generator.
        generator: &'static str,
        /// The argument.
        name: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All arguments of the generator.
        known: String,
    },
    /// A missing required argument.
    #[error("`{generator}` needs the argument `{name}`: {expected}")]
    Missing {
        /// The generator.
        generator: &'static str,
        /// The argument.
        name: &'static str,
        /// The expected value.
        expected: String,
    },
    /// An argument of the wrong kind or out of range.
    #[error("`{generator}`: `{name}` should be {expected}, but it is {found}")]
    Wrong {
        /// The generator.
        generator: &'static str,
        /// The argument.
        name: &'static str,
        /// The expected value.
        expected: String,
        /// The value found.
        found: String,
    },
    /// Arguments that give no valid mesh.
    #[error("`{generator}`: {error}")]
    Mesh {
        /// The generator.
        generator: &'static str,
        /// The cause.
        error: MeshError,
    },
}

fn nearest_hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!("did you mean `{name}`? ")).unwrap_or_default()
}

/// Generates a mesh from a generator's name and arguments.
pub fn generate(name: &str, arguments: &BTreeMap<String, Argument>) -> Result<Mesh, GenerateError> {
    let (name, arguments) = read(name, arguments)?;
    match name {
        "interval" | "box" => grid::generate(&arguments),
        name => round::generate(name, &arguments),
    }
}

/// Returns a mesh whose cells are `times` bisections coarser, at most [`halvings`], in an order along a space-filling
/// curve. [`Mesh::refined`] refines it in its computational domain.
pub(crate) fn coarse(
    name: &str,
    arguments: &BTreeMap<String, Argument>,
    times: usize,
) -> Result<Mesh, GenerateError> {
    match read(name, arguments)? {
        ("interval" | "box", arguments) => grid::coarse(&arguments, times),
        (name, arguments) => round::coarse(name, &arguments, times),
    }
}

/// Returns the centre of each cell in the computational domain.
fn centres(
    name: &str,
    arguments: &BTreeMap<String, Argument>,
) -> Result<Vec<[f64; 3]>, GenerateError> {
    match read(name, arguments)? {
        ("interval" | "box", arguments) => grid::centres(&arguments),
        (name, arguments) => round::centres(name, &arguments),
    }
}

/// Returns the number of uniform refinements that the mesh of a generator contains.
pub(crate) fn halvings(name: &str, arguments: &BTreeMap<String, Argument>) -> usize {
    let less = coarser(name, arguments);
    std::iter::successors(less, |arguments| coarser(name, arguments)).count()
}

/// Predicts the numbers of cells, faces, edges and vertices without building the mesh.
pub fn counts(
    name: &str,
    arguments: &BTreeMap<String, Argument>,
) -> Result<EntityCounts, GenerateError> {
    match read(name, arguments)? {
        ("interval" | "box", arguments) => grid::count(&arguments),
        (name, arguments) => round::count(name, &arguments),
    }
}

/// Returns the arguments of the mesh that one uniform refinement turns into this one, if known.
pub fn coarser(
    name: &str,
    arguments: &BTreeMap<String, Argument>,
) -> Option<BTreeMap<String, Argument>> {
    let counted = counts(name, arguments).ok()?;
    // Refined simplices of a coarser box are not the simplices of this one.
    if !counted.cell.is_tensor() {
        return None;
    }
    let key = if matches!(name, "interval" | "box") { "cells" } else { "refine" };
    let half = |n: f64| (n >= 2.0 && n % 2.0 == 0.0).then_some(n / 2.0);
    let coarser = match (key, arguments.get(key)?) {
        ("refine", Argument::Number(n)) if *n >= 1.0 => Argument::Number(n - 1.0),
        ("cells", Argument::Number(n)) => Argument::Number(half(*n)?),
        ("cells", Argument::Numbers(all)) => {
            Argument::Numbers(all.iter().map(|&n| half(n)).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    let mut own = arguments.clone();
    own.insert(key.to_owned(), coarser);
    Some(own)
}

/// Checks that 32-bit indices can number the entities of the mesh, without building it.
///
/// # Errors
///
/// The errors of [`generate`] that need no mesh.
pub fn check(name: &str, arguments: &BTreeMap<String, Argument>) -> Result<(), GenerateError> {
    match read(name, arguments)? {
        ("interval" | "box", arguments) => grid::check(&arguments),
        (name, arguments) => round::check(name, &arguments),
    }
}

/// Returns the row numbers of cell and point data on a box of `cells` lines, squares or cubes.
pub(super) fn grid_rows(cells: [usize; 3], cell: Cell) -> (DataRows, DataRows) {
    grid::rows(cells, cell)
}

/// The generators and their arguments.
const GENERATORS: [(&str, &[&str]); 5] = [
    ("interval", &["dim", "cells", "from", "to"]),
    ("box", &["dim", "cells", "from", "to", "cell", "deform"]),
    ("ball", &["dim", "refine", "order", "cell"]),
    ("shell", &["dim", "inner", "outer", "refine", "order", "cell"]),
    ("lshape", &["dim", "refine", "cell"]),
];

/// Looks up a generator and checks its argument names.
fn read<'a>(
    name: &str,
    arguments: &'a BTreeMap<String, Argument>,
) -> Result<(&'static str, GeneratorArguments<'a>), GenerateError> {
    match GENERATORS.into_iter().find(|(known, _)| *known == name) {
        Some((name, known)) => Ok((name, GeneratorArguments::new(name, known, arguments)?)),
        None => Err(GenerateError::UnknownGenerator {
            name: name.to_owned(),
            nearest: super::nearest_name(name, GENERATORS.iter().map(|(known, _)| *known)),
        }),
    }
}
