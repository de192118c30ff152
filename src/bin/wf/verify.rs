//! `wf verify`: numerical verification of forms.

mod plot;
mod table;

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::Program;
use runtime::device::{self, Device};
use runtime::kernels::compile::Execution;
use weakform::verify::{Settings, Verification, problems, verify};
use weakform::{Cell, Quadrature};

use crate::arguments::{Assignment, Backend, CellArgument, Degrees, ProblemArguments};
use crate::console::{Console, Warning};
use crate::outputs::Files;
use crate::picture;
use crate::problem::{appended, chosen, compile, overrides, read, with_threads};
use crate::processes::Processes;
use crate::report::{Failure, Report};

/// Verify forms: errors that fall as they should, Jacobians that are derivatives, kernels that agree.
///
/// A manufactured solution, that of the problem or one that is picked, is approximated on meshes that are refined again
/// and again. The observed orders stand beside the expected ones, k + 1 in L2 and k in H1, of which they may fall short
/// by 0.15. The Jacobian is compared with differences of the residual, and looked at for symmetry and negative curvature. The
/// kernels of every instruction set, strategy and device are compared with a plain evaluation of the form. A file
/// without problems has each of its forms verified on a box. The exit status is 1 where something does not hold.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf verify examples/poisson.wf
  wf verify examples/poisson.wf --degree 1..6 --levels 4 --dofs 200000
  wf verify examples/elasticity.wf --cell tet --degree 2
  wf verify form.wf --solution 'u=sin(x[0]) * exp(x[1])' --plot errors.svg
  wf verify form.wf --backend opencl --json
  wf verify form.wf --interpret      without a compiler
  mpirun -n 4 wf verify examples/poisson.wf --dofs 500000     four processes: a build with `--features mpi`")]
pub(crate) struct Arguments {
    /// The file with forms and problems; `-` is standard input.
    pub(crate) file: PathBuf,

    /// Only the problem of this name; a file's problems are taken in order without it.
    #[arg(long, value_name = "NAME")]
    pub(crate) problem: Option<String>,

    /// The degrees: one, or several as 1..4.
    #[arg(long, value_name = "K", default_value = "1..4")]
    pub(crate) degree: Degrees,

    /// Levels of refinement.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(2..=10))]
    pub(crate) levels: u8,

    /// Unknowns that the finest level should not exceed. Where an order is not reached, up to three levels more are taken,
    /// of at most 15 times as many unknowns; where it nearly is, 200 times.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) dofs: usize,

    /// The solution, for each field: --solution 'u=sin(x[0])'. The problem's without it, or one that is picked.
    #[arg(long, value_name = "FIELD=EXPR")]
    pub(crate) solution: Vec<Assignment>,

    /// Boxes of these cells in the place of the problem's mesh. May be repeated.
    #[arg(long, value_enum, value_name = "CELL")]
    pub(crate) cell: Vec<CellArgument>,

    /// Another mesh, a generator in quotes: 'box(dim: 3, cells: 1)'.
    #[arg(long, value_name = "MESH")]
    pub(crate) mesh: Option<String>,

    /// Another quadrature: tensor cells take D/2 + 1 Gauss points a direction, simplices a rule exact to degree D; `collocated`
    /// takes the nodes.
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    pub(crate) quadrature: Option<Quadrature>,

    /// The value of a parameter. May be repeated.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) param: Vec<Assignment>,

    /// The value of auxiliary data, as an expression in x. May be repeated.
    #[arg(long, value_name = "NAME=EXPR")]
    pub(crate) aux: Vec<Assignment>,

    /// A backend that is compared with the processor, if it is available; without it all of this build. May be repeated.
    #[arg(long, value_enum, value_name = "BACKEND")]
    pub(crate) backend: Vec<Backend>,

    /// Do not compare kernels.
    #[arg(long)]
    pub(crate) no_kernels: bool,

    /// Interpret the kernels instead of compiling them: slower, and right.
    #[arg(long)]
    pub(crate) interpret: bool,

    /// Draw the errors over the size of cells; the file is PNG or SVG, as its name says.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
}

impl Arguments {
    /// Returns the overrides of the problems.
    fn overrides(&self) -> Overrides {
        let overrides = overrides(&ProblemArguments {
            file: self.file.clone(),
            problem: self.problem.clone(),
            mesh: self.mesh.clone(),
            refine: None,
            degree: None,
            quadrature: self.quadrature,
            solver: None,
            param: self.param.clone(),
            aux: self.aux.clone(),
            interpret: self.interpret,
            compile: false,
        });
        Overrides { tagged: true, ..overrides }
    }

    fn settings(
        &self,
        cell: Option<Cell>,
        devices: &[Arc<dyn Device>],
        processes: &Processes,
    ) -> Settings {
        let pairs = self.solution.iter().map(|said| (said.name.clone(), said.value.clone()));
        let degrees = self.degree.first..=self.degree.last;
        let execution = if self.interpret { Execution::Interpreted } else { Execution::Automatic };
        Settings {
            degrees: degrees.map(|degree| degree as usize).collect(),
            levels: usize::from(self.levels),
            dofs: self.dofs,
            solution: pairs.collect(),
            cell,
            execution,
            kernels: !self.no_kernels,
            devices: devices.to_vec(),
            group: Arc::clone(processes.group()),
        }
    }

    /// Returns the devices of the process with this number on its host; those that are named must exist.
    fn devices(&self, number: usize) -> Result<Vec<Arc<dyn Device>>, Failure> {
        let mut found = Vec::new();
        if self.no_kernels {
            return Ok(found);
        }
        for backend in [Backend::Cuda, Backend::OpenCl] {
            let named = self.backend.contains(&backend);
            if !named && !self.backend.is_empty() {
                continue;
            }
            match device::open(backend.into(), backend.own(number).as_deref()) {
                Ok(device) => found.push(device),
                Err(error) if named => return Err(Failure::input(error.to_string())),
                Err(error) => tracing::info!("{error}"),
            }
        }
        Ok(found)
    }
}

/// Returns the file's program with the selected problems, or with one per form if it has none.
fn program(
    arguments: &Arguments,
    overrides: &Overrides,
    processes: &Processes,
    console: &Console,
) -> Result<(Program, Vec<String>), Failure> {
    let wanted = arguments.problem.as_deref();
    let source = processes.settle(read(&arguments.file), console)?;
    processes.given(source.text())?;
    let program = compile(&source, wanted, overrides, console)?;
    if wanted.is_some() || program.problems().next().is_some() {
        let names = chosen(&program, wanted)?;
        return Ok((program, names));
    }
    let cell = arguments.cell.first().map(|&cell| Cell::from(cell));
    let (names, text) = problems(&program, cell);
    if names.is_empty() {
        return Err(Failure::input(format!(
            "{} has no form that can be verified\nhelp: add `form NAME {{ field u: scalar; … }}`",
            program.source().name()
        )));
    }
    Ok((compile(&appended(&source, &text), None, overrides, console)?, names))
}

pub(crate) fn execute(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    processes.reads(&arguments.file)?;
    if let Some(path) = &arguments.plot {
        picture::possible(path, "--plot")?;
    }
    warn(arguments, console);
    let overrides = arguments.overrides();
    let (program, names) = program(arguments, &overrides, processes, console)?;
    if let Some(path) = &arguments.plot {
        let mut files = Files::of(&arguments.file);
        for head in program.problems() {
            files.reads_problem(&program, head.name, &arguments.file, &overrides);
        }
        files.writes("the plot", path, "`--plot NAME.svg`");
        files.check()?;
    }
    let devices = arguments.devices(processes.number_of_host());
    let devices = processes.settle(devices, console)?;
    let kinds: Vec<String> = devices.iter().map(|own| own.backend().to_string()).collect();
    processes.agree_on("kind of device", kinds.join(" ").as_bytes())?;
    let cells: Vec<Option<Cell>> = match arguments.cell.is_empty() {
        true => vec![None],
        false => arguments.cell.iter().map(|&cell| Some(cell.into())).collect(),
    };
    let folder = match (&overrides.mesh, arguments.file.parent()) {
        (None, Some(folder)) => folder.to_owned(),
        _ => PathBuf::new(),
    };
    let (mut all, mut report, common) = (Vec::new(), Report::default(), console.take());
    for name in &names {
        for &cell in &cells {
            let settings = arguments.settings(cell, &devices, processes);
            let found = with_threads(processes.threads(None), || {
                verify(&program, name, &overrides, &folder, &settings, &mut |progress| {
                    console.progress().say_part(progress.what, progress.done);
                })
            })?;
            let found = found.map_err(|error| Failure::library(&error));
            let done = processes.settle(found, console).and_then(|found| {
                let done = verified(&found, processes.group().size());
                all.push(found);
                done
            });
            report.add(("problem", name), done, [common.clone(), console.take()].concat());
        }
    }
    if let Some(path) = arguments.plot.as_ref().filter(|_| processes.speaks()) {
        if let Err(failure) = plot::draw(path, &all) {
            return Err(failure.after(report));
        }
        report.drawn(path);
    }
    Ok(report)
}

/// Warns about options without effect.
fn warn(arguments: &Arguments, console: &Console) {
    if arguments.no_kernels && !arguments.backend.is_empty() {
        let because = "with --no-kernels none are compared";
        console.warn(Warning::no_effect("--backend", because));
    }
    if arguments.mesh.is_some() && !arguments.cell.is_empty() {
        console.warn(Warning::no_effect("--mesh", "--cell puts boxes in its place"));
    }
}

/// Reports a verification by a number of processes, and its failures.
fn verified(found: &Verification, processes: usize) -> Result<Report, Failure> {
    let (text, value) = (table::text(found, processes), table::value(found, processes));
    let said = said(found);
    if said.is_empty() {
        return Ok(Report::new(text, value));
    }
    let mut report = Report::default();
    report.text = text;
    Err(Failure::input(said.join("\n")).with(value).after(report))
}

/// Returns the failures, each with its problem.
fn said(found: &Verification) -> Vec<String> {
    let failures = found.failures().into_iter();
    failures.map(|failure| format!("`{}`, {failure}", found.problem)).collect()
}
