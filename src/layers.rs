//! The crates below, and those of their types that occur in this crate's signatures, for advanced use: the language,
//! the kernel generator, and the runtime.
//!
//! Their interfaces change more often than that of `weakform`.

pub use fem_dsl::check::problem::Overrides;
pub use fem_dsl::diagnostic::Diagnostic;
pub use fem_dsl::point::PointForm;
pub use fem_dsl::program::Program;
pub use fem_dsl::source::Source;
pub use kernels_gen::abi::{ArgumentText, KernelAbi};
pub use kernels_gen::plan::PlanError;
pub use runtime::files::output::OutputError;
pub use runtime::mesh::LoadError;
pub use runtime::problem::Solution as Solved;
pub use runtime::space::discretisation::Discretisation;
pub use {fem_dsl, kernels_gen, runtime};
