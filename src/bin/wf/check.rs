//! `wf check`: all errors of files, without compiling anything.

use std::path::PathBuf;

use clap::Args;

/// Report all errors of files; say for which dimensions each form is good.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf check examples/poisson.wf
  wf check examples/*.wf --json")]
pub(crate) struct Arguments {
    /// The files.
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}
