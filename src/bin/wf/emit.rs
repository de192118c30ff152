//! `wf emit`: what comes out of any stage of the compiler, the generated source in the end.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fem_dsl::check::problem::Overrides;
use runtime::output::{writable, write_text};
use serde_json::json;
use weakform::{Emission, Isa, Language, Precision, Scatter, Stage, Strategy, Task, emit_program};

use crate::arguments::CellArgument;
use crate::problem::{compile, spare};
use crate::report::{Failure, Report};

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

    /// The stage whose result is printed: parse, check, differentiate, simplify, point, plan, lower, legalise or print.
    #[arg(long, value_name = "STAGE", default_value_t = Stage::Print)]
    pub(crate) stage: Stage,

    /// The shape of the cells.
    #[arg(long, value_enum)]
    pub(crate) cell: Option<CellArgument>,

    /// The polynomial degree; 2 without it.
    #[arg(long, value_name = "K")]
    pub(crate) degree: Option<u32>,

    /// The quadrature: tensor cells take D/2 + 1 Gauss points a direction, simplices a rule exact to degree D.
    #[arg(long, value_name = "D")]
    pub(crate) quadrature: Option<u32>,

    /// What the kernel computes; all of them without it.
    #[arg(long, value_enum)]
    pub(crate) task: Option<TaskArgument>,

    /// The instruction set: avx512, avx2 or portable; this machine's without it.
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<Isa>,

    /// Who does what in kernels for GPUs: cell_per_lane, thread_per_line, or thread_transposition with :BLOCKSxBATCHES
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<Strategy>,

    /// How kernels for GPUs write their results: atomic, coloured, owner, or block, where the cells of a batch sum first.
    #[arg(long, value_name = "NAME")]
    pub(crate) scatter: Option<Scatter>,

    /// The precision of vectors and arithmetic.
    #[arg(long, value_enum, default_value_t = PrecisionArgument::F64)]
    pub(crate) precision: PrecisionArgument,

    /// Where the text goes; standard output without it.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A language that kernels are printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Rust with SIMD, for the CPU.
    Rust,
    /// CUDA C++, for NVIDIA's GPUs.
    Cuda,
    /// OpenCL C 1.2.
    Opencl,
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

/// A precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionArgument {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    if let Some(path) = &arguments.output {
        spare(path, &arguments.file)?;
        writable(path)?;
    }
    if arguments.scatter.is_some() && arguments.target == Target::Rust {
        return Err(Failure::input(
            "--scatter is for kernels of GPUs\nhelp: add `--target cuda` or `--target opencl`, or leave it out",
        ));
    }
    let program = compile(&arguments.file, "", None, &Overrides::default())?;
    let text =
        emit_program(&program, &emission(arguments)).map_err(|error| Failure::library(&error))?;
    let Some(path) = &arguments.output else {
        let value = json!({ "stage": arguments.stage.name(), "text": text });
        return Ok(Report::new(text, value));
    };
    write_text(path, &text)?;
    let text = format!("{}\n", path.display());
    Ok(Report::new(text, json!({ "output": path })))
}

fn emission(arguments: &Arguments) -> Emission {
    let language = match arguments.target {
        Target::Rust => Language::Rust,
        Target::Cuda => Language::Cuda,
        Target::Opencl => Language::OpenCl,
    };
    let precision = match arguments.precision {
        PrecisionArgument::F64 => Precision::F64,
        PrecisionArgument::F32 => Precision::F32,
    };
    let mut emission =
        Emission::default().language(language).precision(precision).stage(arguments.stage);
    if let Some(name) = &arguments.form {
        emission = emission.form(name);
    }
    if let Some(cell) = arguments.cell {
        emission = emission.cell(cell.into());
    }
    if let Some(degree) = arguments.degree {
        emission = emission.degree(degree as usize);
    }
    if let Some(degree) = arguments.quadrature {
        emission = emission.quadrature(degree as usize);
    }
    if let Some(task) = arguments.task {
        emission = emission.task(match task {
            TaskArgument::Residual => Task::Residual,
            TaskArgument::Jacobian => Task::Action,
            TaskArgument::Diagonal => Task::Diagonal,
        });
    }
    if let Some(strategy) = arguments.strategy {
        emission = emission.strategy(strategy);
    }
    if let Some(scatter) = arguments.scatter {
        emission = emission.scatter(scatter);
    }
    match arguments.isa {
        Some(isa) => emission.isa(isa),
        None => emission,
    }
}
