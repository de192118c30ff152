//! `wf emit`: what comes out of any stage of the compiler, the generated source in the end.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::arguments::CellArgument;

/// Print the generated kernel, or what comes out of an earlier stage.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf emit examples/poisson.wf --target rust --cell hex --degree 2
  wf emit examples/poisson.wf --stage point --cell hex        the physics at a point, and its derivative
  wf emit examples/poisson.wf --task jacobian -o kernel.rs    one file, which rustc compiles alone")]
pub(crate) struct Arguments {
    /// The file with the form.
    pub(crate) file: PathBuf,

    /// The form; needed where the file has several.
    #[arg(long, value_name = "NAME")]
    pub(crate) form: Option<String>,

    /// The language of the source.
    #[arg(long, value_enum, default_value_t = Target::Rust)]
    pub(crate) target: Target,

    /// The stage whose result is printed.
    #[arg(long, value_enum, default_value_t = Stage::Print)]
    pub(crate) stage: Stage,

    /// The shape of the cells.
    #[arg(long, value_enum)]
    pub(crate) cell: Option<CellArgument>,

    /// The polynomial degree.
    #[arg(long, value_name = "K")]
    pub(crate) degree: Option<u32>,

    /// The quadrature: tensor cells take D/2 + 1 Gauss points a direction, simplices a rule exact to degree D.
    #[arg(long, value_name = "D")]
    pub(crate) quadrature: Option<u32>,

    /// What the kernel computes; all of them without it.
    #[arg(long, value_enum)]
    pub(crate) task: Option<TaskArgument>,

    /// Where the text goes; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A language that kernels are printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Rust with SIMD, for the CPU.
    Rust,
}

/// A stage of the compiler, named after its verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    /// The syntax tree.
    Parse,
    /// The form: names resolved, every expression with its shape.
    Check,
    /// The form with the pointwise action of its Jacobian.
    Differentiate,
    /// The same after algebra.
    Simplify,
    /// The scalar computation at one point.
    Point,
    /// What was chosen for this cell, degree and machine, with its counts.
    Plan,
    /// The kernel, as the strategy wrote it.
    Lower,
    /// The kernel, in what the target language has.
    Legalise,
    /// The source.
    Print,
}

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskArgument {
    /// R(u).
    Residual,
    /// J(u)·δu.
    Jacobian,
    /// The diagonal of J(u).
    Diagonal,
}
