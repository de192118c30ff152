//! `wf emit`: the result of any stage of the compiler, by default the generated source.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::program::Program;
use fem_dsl::source::{Source, Span, seen};
use kernels_gen::abi::ArgumentText;
use kernels_gen::plan::PlanError;
use runtime::files::output::{writable, write_text};
use serde_json::{Value, json};
use weakform::{
    Emission, Error, Export, Isa, KernelInterface, Language, Library, Precision, Quadrature,
    Scatter, Stage, Strategy, Task, emit_with_interfaces, export_program,
};

use crate::arguments::CellArgument;
use crate::console::{Console, Warning};
use crate::outputs::Files;
use crate::problem::{called, compile, read};
use crate::report::{Failure, Report};

/// Print the generated kernel, or what comes out of an earlier stage.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf emit examples/poisson.wf --target rust --cell hex --degree 2
  wf emit examples/poisson.wf --target gnu -o kernels.c       the same in C, for gcc or clang
  wf emit examples/poisson.wf --stage point --cell hex        the physics at a point, and its derivative
  wf emit examples/poisson.wf --task jacobian -o kernel.rs    one file, which rustc compiles alone

For a program with an assembly of its own, one header of C with functions for a batch of cells (docs/abi.md):
  wf emit examples/poisson.wf --target c --cell hex --degree 2 -o poisson.h  poisson_residual_cells, …_action_cells
  wf emit examples/poisson.wf --target c --driver -o driver.c                a program that includes poisson.h

For a program on PETSc or libCEED, one header of C with the physics at a point (docs/exports.md):
  wf emit examples/poisson.wf --target petsc --degree 2 -o poisson.h       f0, f1, g0 to g3, poisson_setup(PetscDS)
  wf emit examples/poisson.wf --target petsc --driver -o driver.c          a program that includes poisson.h and solves
  wf emit examples/poisson.wf --target libceed --dim 2 -o poisson.h        QFunctions with a table of their fields")]
pub(crate) struct Arguments {
    /// The file with the form; `-` is standard input.
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
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub(crate) degree: Option<u32>,

    /// The quadrature: tensor cells take D/2 + 1 Gauss points a direction, simplices a rule exact to degree D; `collocated`
    /// takes the nodes.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) quadrature: Option<Quadrature>,

    /// The task of the kernel; all of them without it.
    #[arg(long, value_enum)]
    pub(crate) task: Option<TaskArgument>,

    /// The instruction set: avx512, avx2 or portable; this machine's without it.
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<Isa>,

    /// The strategy of kernels for GPUs: cell_per_lane, thread_per_line, or thread_transposition with :BLOCKSxBATCHES
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<Strategy>,

    /// The scatter of kernels for GPUs: atomic, coloured, owner, or block, where the cells of a batch sum first.
    #[arg(long, value_name = "NAME")]
    pub(crate) scatter: Option<Scatter>,

    /// The precision of vectors and arithmetic.
    #[arg(long, value_enum, default_value_t = PrecisionArgument::F64)]
    pub(crate) precision: PrecisionArgument,

    /// The degree of the map of cells of a header in C, `--target c`: their nodes are its input; 1 without it.
    #[arg(long, value_name = "P", value_parser = clap::value_parser!(u32).range(1..=12))]
    pub(crate) order: Option<u32>,

    /// The dimension of a header for PETSc, libCEED or C: the largest in which the form is valid without it.
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=3))]
    pub(crate) dim: Option<u32>,

    /// The driver program instead of the header for PETSc, libCEED or C, which it includes as NAME.h.
    #[arg(long)]
    pub(crate) driver: bool,

    /// The file for the text; standard output for `-` and without it.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A language that kernels are printed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// Rust with SIMD, for the CPU.
    Rust,
    /// C with the vector types of GCC and Clang, for the CPU: kernels with index arrays, as of `rust`.
    Gnu,
    /// CUDA C++, for NVIDIA's GPUs.
    Cuda,
    /// OpenCL C 1.2.
    Opencl,
    /// A C header for PETSc: the pointwise functions of a PetscDS.
    Petsc,
    /// A C header for libCEED: QFunctions.
    Libceed,
    /// A C header for an assembly of your own: functions for a batch of cells, without index arrays.
    C,
}

impl Target {
    /// Returns the library for which a header is printed, if it is not the source of kernels.
    fn foreign_library(self) -> Option<Library> {
        match self {
            Self::Rust | Self::Gnu | Self::Cuda | Self::Opencl => None,
            Self::Petsc => Some(Library::Petsc),
            Self::Libceed => Some(Library::LibCeed),
            Self::C => Some(Library::C),
        }
    }

    /// Returns whether lanes are entries of vectors.
    fn has_vectors(self) -> bool {
        matches!(self, Self::Rust | Self::Gnu)
    }
}

/// Task of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TaskArgument {
    /// R(u).
    Residual,
    /// J(u)·δu.
    Jacobian,
    /// The diagonal of J(u).
    Diagonal,
}

impl From<TaskArgument> for Task {
    fn from(task: TaskArgument) -> Self {
        match task {
            TaskArgument::Residual => Self::Residual,
            TaskArgument::Jacobian => Self::Action,
            TaskArgument::Diagonal => Self::Diagonal,
        }
    }
}

/// A precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrecisionArgument {
    /// IEEE double.
    F64,
    /// IEEE single.
    F32,
}

impl From<PrecisionArgument> for Precision {
    fn from(precision: PrecisionArgument) -> Self {
        match precision {
            PrecisionArgument::F64 => Self::F64,
            PrecisionArgument::F32 => Self::F32,
        }
    }
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let output = arguments.output.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = output {
        let mut files = Files::of(&arguments.file);
        files.writes("the generated source", path, "`--output NAME`");
        files.check()?;
        writable(path)?;
    }
    let is_of_gpus = matches!(arguments.target, Target::Cuda | Target::Opencl);
    if arguments.scatter.is_some() && !is_of_gpus {
        return Err(Failure::input(
            "--scatter is for kernels of GPUs\nhelp: add `--target cuda` or `--target opencl`, or leave it out",
        ));
    }
    warn(arguments, console);
    let program = compile(&read(&arguments.file)?, None, &Overrides::default(), console)?;
    console.progress().say(format!("{}: generating", program.source().name()));
    let printed = match arguments.target.foreign_library() {
        None => emit_with_interfaces(&program, &emission(arguments)),
        Some(library) => {
            export_program(&program, &export(arguments, library)).map(|text| (text, Vec::new()))
        }
    };
    let (text, kernels) = printed.map_err(|error| refused(arguments, &program, &error))?;
    let Some(path) = output else {
        let mut value = json!({ "stage": arguments.stage.name(), "text": text });
        if arguments.stage == Stage::Print {
            value["kernels"] = kernels.iter().map(interface).collect();
        }
        return Ok(Report::new(text, value));
    };
    write_text(path, &text)?;
    let text = format!("{}\n", seen(&path.display().to_string()));
    Ok(Report::new(text, json!({ "output": called(path) })))
}

/// Returns the interface of a kernel, for other programs: see docs/abi.md.
fn interface((abi, arguments): &KernelInterface) -> Value {
    let argument = |argument: &ArgumentText| {
        json!({
            "name": argument.name,
            "type": argument.kind,
            "layout": argument.layout,
            "access": argument.access,
            "role": argument.role,
        })
    };
    json!({
        "name": abi.name,
        "lanes": abi.lanes,
        "threads": abi.threads,
        "batches_a_group": abi.group,
        "shared_bytes": abi.shared_bytes,
        "tables": abi.tables,
        "hash": format!("{:016x}", abi.hash),
        "arguments": arguments.iter().map(argument).collect::<Vec<_>>(),
    })
}

/// Warns about options without effect on the output.
fn warn(arguments: &Arguments, console: &Console) {
    let Arguments { target, stage, .. } = *arguments;
    if target.foreign_library().is_some() {
        warn_of_export(arguments, console);
        return;
    }
    let early = stage < Stage::Plan;
    let planned = "what depends on it begins with `--stage plan`";
    let idle = [
        ("--form", arguments.form.is_some() && stage == Stage::Parse, "the whole file is parsed"),
        ("--cell", arguments.cell.is_some() && stage == Stage::Parse, "the whole file is parsed"),
        ("--target", target != Target::Rust && early, planned),
        ("--degree", arguments.degree.is_some() && early, planned),
        ("--quadrature", arguments.quadrature.is_some() && early, planned),
        ("--task", arguments.task.is_some() && early, planned),
        ("--precision", arguments.precision != PrecisionArgument::F64 && early, planned),
        ("--isa", arguments.isa.is_some() && early, planned),
        ("--strategy", arguments.strategy.is_some() && early, planned),
        ("--scatter", arguments.scatter.is_some() && early, planned),
        (
            "--isa",
            arguments.isa.is_some() && !target.has_vectors(),
            "it is for `--target rust`, `--target gnu` and `--target c`",
        ),
        ("--dim", arguments.dim.is_some(), "the cells give it: `--cell`"),
        (
            "--driver",
            arguments.driver,
            "it is for `--target petsc`, `--target libceed` and `--target c`",
        ),
        ("--order", arguments.order.is_some(), "it is for `--target c`"),
        (
            "--strategy",
            arguments.strategy.is_some() && target.has_vectors() && !early,
            "it is for `--target cuda` and `--target opencl`",
        ),
    ];
    for (option, _, because) in idle.into_iter().filter(|(_, idle, _)| *idle) {
        console.warn(Warning::no_effect(option, because));
    }
}

/// Warns about options without effect on a header or its driver.
fn warn_of_export(arguments: &Arguments, console: &Console) {
    let driver = arguments.driver;
    let is_fixed = driver || arguments.target != Target::C;
    let idle = [
        ("--stage", arguments.stage != Stage::Print),
        ("--cell", is_fixed && arguments.cell.is_some()),
        ("--order", is_fixed && arguments.order.is_some()),
        ("--quadrature", is_fixed && arguments.quadrature.is_some()),
        ("--task", arguments.task.is_some()),
        ("--precision", is_fixed && arguments.precision != PrecisionArgument::F64),
        ("--isa", is_fixed && arguments.isa.is_some()),
        ("--strategy", arguments.strategy.is_some()),
        ("--degree", driver && arguments.degree.is_some()),
        (
            "--dim",
            driver && arguments.dim.is_some()
                || !is_fixed && arguments.cell.is_some() && arguments.dim.is_some(),
        ),
    ];
    for (option, _) in idle.into_iter().filter(|(_, idle)| *idle) {
        let because = match option {
            "--stage" => "a header has no stages",
            "--task" if arguments.target == Target::C => "a header has a function for each task",
            "--strategy" => "it is for `--target cuda` and `--target opencl`",
            "--dim" if !driver => "the cells give it: `--cell`",
            _ if driver => "the driver reads it from the header",
            _ => "the library chooses it, not the header",
        };
        console.warn(Warning::no_effect(option, because));
    }
}

/// Reports an error; for a quadrature, with the option.
fn refused(arguments: &Arguments, program: &Program, error: &Error) -> Failure {
    if let Error::WhichForm { known } = error
        && !known.is_empty()
    {
        let known = known.join(", ");
        return Failure::input(format!(
            "there are several forms: {known}\nhelp: name one of them with --form NAME"
        ));
    }
    let (Error::Plan(PlanError::Quadrature(unsuited)), Some(given)) = (error, arguments.quadrature)
    else {
        return Failure::library(error);
    };
    let said = Arc::new(Source::new("--quadrature", given.to_string()));
    let all = Span::new(0, said.text().len());
    let diagnostic = Diagnostic::new(Code::BadValue, unsuited.to_string())
        .label(all, unsuited.bound())
        .help(unsuited.remedy())
        .of_source(said);
    Failure::diagnostics(program.source(), &[diagnostic])
}

fn export(arguments: &Arguments, library: Library) -> Export {
    let mut export = Export::new(library);
    if let Some(name) = &arguments.form {
        export = export.form(name);
    }
    if let Some(dim) = arguments.dim {
        export = export.dim(dim as usize);
    }
    if let Some(degree) = arguments.degree {
        export = export.degree(degree as usize);
    }
    if let Some(cell) = arguments.cell.filter(|_| library == Library::C) {
        export = export.cell(cell.into());
    }
    if let Some(order) = arguments.order {
        export = export.order(order as usize);
    }
    if let Some(quadrature) = arguments.quadrature.filter(|_| library == Library::C) {
        export = export.quadrature(quadrature);
    }
    if let Some(isa) = arguments.isa {
        export = export.isa(isa);
    }
    export = export.precision(arguments.precision.into());
    if arguments.driver { export.driver() } else { export }
}

fn emission(arguments: &Arguments) -> Emission {
    let language = match arguments.target {
        Target::Rust | Target::Petsc | Target::Libceed | Target::C => Language::Rust,
        Target::Gnu => Language::C,
        Target::Cuda => Language::Cuda,
        Target::Opencl => Language::OpenCl,
    };
    let mut emission = Emission::default()
        .language(language)
        .precision(arguments.precision.into())
        .stage(arguments.stage);
    if let Some(name) = &arguments.form {
        emission = emission.form(name);
    }
    if let Some(cell) = arguments.cell {
        emission = emission.cell(cell.into());
    }
    if let Some(degree) = arguments.degree {
        emission = emission.degree(degree as usize);
    }
    if let Some(quadrature) = arguments.quadrature {
        emission = emission.quadrature(quadrature);
    }
    if let Some(task) = arguments.task {
        emission = emission.task(task.into());
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
