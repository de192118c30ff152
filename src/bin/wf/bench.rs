//! `wf bench`: measured speed beside what the machine allows.

use clap::{Args, ValueEnum};

use crate::arguments::Degrees;

/// Time y = A·x beside an assembled matrix, the machine's copy bandwidth and its arithmetic.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf bench --suite bp --backend cpu --degree 1..8 --threads 1
  wf bench --problem BP5 --problem poisson-gauss --degree 4 --json      one object a line")]
pub(crate) struct Arguments {
    /// The set of problems.
    #[arg(long, value_enum, default_value_t = Suite::Bp)]
    pub(crate) suite: Suite,

    /// What computes.
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    pub(crate) backend: Backend,

    /// Only these problems of the suite: BP1 to BP6, poisson-gauss, elasticity. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) problem: Vec<String>,

    /// One polynomial degree, or a range with both ends: 1..8.
    #[arg(long, value_name = "K|K..L", default_value = "1..8")]
    pub(crate) degree: Degrees,

    /// Threads to compute with; one, then all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    /// The least number of unknowns.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) dofs: u64,
}

/// A set of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// The bake-off problems of CEED on a deformed box of hexahedra, Poisson with Gauss points, and elasticity.
    Bp,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// Generated Rust with SIMD.
    Cpu,
}
