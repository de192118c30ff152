//! Finite elements on reference cells: cells, points and rules, Lagrange bases and their tables.
//!
//! ```text
//! Cell ── Element (Lagrange, Whitney) ──┐
//!    └─── Rule (points) ────────────────┴─tabulate→ Tabulation (values, gradients)
//! ```
//!
//! Elements and rules are small descriptors that can be compared and hashed. Nodes, points and tables are computed from
//! them on request and are bitwise reproducible on every machine. Tensor cells are products of [`LinePoints`], whose
//! [`LineTable`]s the sum-factorised kernels use.

pub mod cell;
mod double;
mod error;
pub mod family;
pub mod lagrange;
pub mod line;
pub mod line_basis;
pub mod quadrature;
mod simplex;
pub mod tabulate;
pub mod whitney;

pub use cell::Cell;
pub use error::ElementError;
pub use family::Element;
pub use lagrange::{Lagrange, Node, entity_permutation};
pub use line::{LinePoints, LineTable};
pub use line_basis::LineBasis;
pub use quadrature::{Rule, default_rule};
pub use tabulate::{
    Tabulation, interpolation, tabulate, tabulate_components, tabulate_rule, tabulate_seconds,
    tabulate_turned,
};
pub use whitney::{Whitney, WhitneyDof, WhitneyFamily};
