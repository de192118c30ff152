//! `wf probe`: numbers that do not depend on any numbering, to compare a form with a paper or another code.

use clap::Args;

use crate::arguments::{Assignment, ProblemArguments};

/// Print R(u)·v, and with a direction w also vᵀJ(u)w, for expressions interpolated at the nodes.
///
/// The numbers do not depend on how cells or unknowns are numbered.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf probe examples/poisson.wf --at 'u=x[0]^2' --test 'u=x[1]'
  wf probe examples/poisson.wf --mesh 'box(dim: 2, cells: 4)' --degree 2 --at 'u=x[0]' --direction 'u=x[0]' --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    /// The state, for each field: --at 'u=x[0] * x[1]'.
    #[arg(long, value_name = "FIELD=EXPR", required = true)]
    pub(crate) at: Vec<Assignment>,

    /// The direction w of the derivative, for each field.
    #[arg(long, value_name = "FIELD=EXPR")]
    pub(crate) direction: Vec<Assignment>,

    /// The test function v, for each field; 1 in every component without it.
    #[arg(long, value_name = "FIELD=EXPR")]
    pub(crate) test: Vec<Assignment>,
}
