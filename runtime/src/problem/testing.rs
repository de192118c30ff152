//! Test problems from source text.

use super::{Context, Platform};
use crate::mesh::load;
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use std::path::Path;

/// Compiles the problem `p` of a text and loads its mesh.
pub(super) fn problem(text: &str) -> Context {
    let (program, found) = compile(&Source::new("test", text));
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = load(&source, Path::new("")).expect("a mesh");
    let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("a problem");
    Context::new(problem, mesh, Platform::native()).expect("a problem")
}
