//! `wf emit`: what comes out of any stage of the compiler, the generated source in the end.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fem_dsl::differentiate::differentiate;
use fem_dsl::form::Form;
use fem_dsl::point::point;
use fem_dsl::program::{CheckedForm, Program};
use fem_dsl::simplify::simplify;
use kernels_gen::dialect::rust::Isa;
use kernels_gen::element::{Cell, default_rule};
use kernels_gen::generate::generate;
use kernels_gen::pass::legalise::legalise;
use kernels_gen::plan::choose::{MeshFacts, Wishes, choose};
use kernels_gen::plan::{Elements, Plan, Task};
use kernels_gen::strategy::lower;
use runtime::compile::Target as Native;
use serde_json::json;

use crate::arguments::CellArgument;
use crate::problem::compile;
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

    /// The instruction set: avx512, avx2 or portable; this machine's without it.
    #[arg(long, value_name = "ISA")]
    pub(crate) isa: Option<Isa>,

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

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let Target::Rust = arguments.target;
    let program = compile(&arguments.file, "")?;
    let (text, value) = match arguments.stage {
        Stage::Parse => {
            let text = format!("{:#?}\n", program.file());
            (text.clone(), json!({ "stage": "parse", "text": text }))
        }
        stage => {
            let checked = find(&program, arguments.form.as_deref())?;
            stage_text(arguments, &program, checked, stage)?
        }
    };
    let Some(path) = &arguments.output else { return Ok(Report::new(text, value)) };
    std::fs::write(path, &text)
        .map_err(|error| Failure::input(format!("cannot write {}: {error}", path.display())))?;
    let text = format!("{}\n", path.display());
    Ok(Report::new(text, json!({ "output": path })))
}

fn find<'a>(program: &'a Program, name: Option<&str>) -> Result<&'a CheckedForm, Failure> {
    let names: Vec<&str> = program.forms().iter().map(|form| form.name.as_str()).collect();
    match (name, program.forms()) {
        (Some(name), _) => program.form(name).ok_or_else(|| {
            Failure::input(format!("there is no form `{name}`; there are {}", names.join(", ")))
        }),
        (None, [form]) => Ok(form),
        (None, []) => Err(Failure::input("the file has no form")),
        (None, _) => Err(Failure::input(format!(
            "the file has several forms: {}\nhelp: choose one with --form NAME",
            names.join(", ")
        ))),
    }
}

fn stage_text(
    arguments: &Arguments,
    program: &Program,
    checked: &CheckedForm,
    stage: Stage,
) -> Result<(String, serde_json::Value), Failure> {
    let cell = cell(arguments, checked)?;
    let told = |found: Vec<_>| Failure::diagnostics(program.source(), &found);
    let form: &Form = match checked.dimensions.form(cell.dim()) {
        Some(form) => form,
        None => {
            return program
                .point_form(&checked.name, cell.dim())
                .map_err(told)
                .map(|_| (String::new(), json!({})));
        }
    };
    let shown = |text: String, name: &str| {
        let value = json!({ "stage": name, "text": text });
        (text, value)
    };
    Ok(match stage {
        Stage::Parse | Stage::Check => shown(form.to_string(), "check"),
        Stage::Differentiate => shown(differentiate(form).to_string(), "differentiate"),
        Stage::Simplify => shown(simplify(&differentiate(form)).to_string(), "simplify"),
        Stage::Point => shown(point(&simplify(&differentiate(form))).to_string(), "point"),
        Stage::Plan | Stage::Lower | Stage::Legalise | Stage::Print => {
            let form = program.point_form(&checked.name, cell.dim()).map_err(told)?;
            let degree = arguments.degree.unwrap_or(2) as usize;
            let provisional = default_rule(cell, 1, 1, None);
            let degrees = Elements::new(&form, cell, degree, provisional)?;
            let largest = degrees.fields.iter().copied().max().unwrap_or(1);
            let quadrature = arguments.quadrature.map(|degree| degree as usize);
            let rule = default_rule(cell, largest, 1, quadrature);
            let elements = Elements { rule, ..degrees };
            let native = Native::native();
            let isa = arguments.isa.unwrap_or(native.isa);
            let plans = plans(arguments, &form, &elements, isa, &native)?;
            match stage {
                Stage::Plan => {
                    shown(plans.iter().map(|plan| format!("{plan:#?}\n")).collect(), "plan")
                }
                Stage::Lower | Stage::Legalise => {
                    let mut text = String::new();
                    for plan in &plans {
                        let (kernel, _) = lower(&form, &elements, plan)?;
                        let kernel = if stage == Stage::Lower { kernel } else { legalise(kernel) };
                        text.push_str(&kernel.to_string());
                    }
                    shown(text, if stage == Stage::Lower { "lower" } else { "legalise" })
                }
                _ => shown(generate(&form, &elements, &plans, isa)?.text, "print"),
            }
        }
    })
}

fn cell(arguments: &Arguments, checked: &CheckedForm) -> Result<Cell, Failure> {
    Ok(match arguments.cell {
        Some(CellArgument::Quad) => Cell::Quadrilateral,
        Some(CellArgument::Tri) => Cell::Triangle,
        Some(CellArgument::Hex) => Cell::Hexahedron,
        Some(CellArgument::Tet) => Cell::Tetrahedron,
        None if checked.dimensions.form(3).is_some() => Cell::Hexahedron,
        None => Cell::Quadrilateral,
    })
}

fn plans(
    arguments: &Arguments,
    form: &fem_dsl::point::PointForm,
    elements: &Elements,
    isa: Isa,
    native: &Native,
) -> Result<Vec<Plan>, Failure> {
    let facts = MeshFacts {
        affine: !elements.cell.is_tensor(),
        order: 1,
        runs: elements.cell.is_tensor(),
        constrained: false,
    };
    let tasks = match arguments.task {
        None => vec![Task::Residual, Task::Action, Task::Diagonal],
        Some(TaskArgument::Residual) => vec![Task::Residual],
        Some(TaskArgument::Jacobian) => vec![Task::Action],
        Some(TaskArgument::Diagonal) => vec![Task::Diagonal],
    };
    let wishes = Wishes::default();
    Ok(choose(form, elements, &facts, &tasks, isa, native.precision, &wishes)?)
}
