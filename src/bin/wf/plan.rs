//! `wf plan`: the candidate kernels of a problem with their predicted times, and the reason for the choice.

mod processes;
mod roofline;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fem_bench::candidate::measure;
use fem_dsl::problem::Problem;
use kernels_gen::abi::Precision;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::choose::candidates::{
    Candidate, Candidates, Change, KernelTarget, candidates, changes,
};
use kernels_gen::cost::Machine;
use kernels_gen::plan::Task;
use runtime::device::Device;
use runtime::kernels::compile::{Target, facts};
use runtime::kernels::rates::named;
use runtime::kernels::rates::stored_rates;
use runtime::problem::{self, Context, RunError};

use crate::arguments::{Backend, DeviceArguments, ProblemArguments};
use crate::attribution::ErrorAttribution;
use crate::console::Console;
use crate::emit::TaskArgument;
use crate::outputs::Files;
use crate::picture;
use crate::problem::{SelectedProblems, begun, prepare_whole, select_problems, with_threads};
use crate::report::{Failure, Report};

/// Show the kernels that a problem may have: what each is predicted to take, what bounds it, and which one is taken.
///
/// Times are of one application to all cells. They are predicted from the bytes and operations that are counted in a kernel's
/// text, and from what the machine does of either in a second: what `wf doctor --calibrate` has measured here, or else what a
/// machine of the same kind did. The floor is what no kernel with these bytes and flops can go below.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf plan examples/poisson.wf                                   the candidates for this processor
  wf plan examples/poisson.wf --backend cuda --degree 4         those for a GPU, which need not be there
  wf plan examples/poisson.wf --measure --roofline poisson.svg  each is run, and drawn under the roofs of the machine
  wf plan examples/elasticity.wf --task residual --json
  wf plan examples/poisson.wf --refine 3 --threads 1 --processes 2,64,1024 --unknowns 1e8,1e10   on paper, before a cluster is asked for")]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) problem: ProblemArguments,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// The task of the kernel.
    #[arg(long, value_enum, default_value_t = TaskArgument::Jacobian)]
    pub(crate) task: TaskArgument,

    /// Run every candidate, and show its time beside the predicted one.
    #[arg(long)]
    pub(crate) measure: bool,

    /// Draw the candidates under the roofs of the machine, flops a second over flops a byte; the file is PNG or SVG, as its name
    /// says.
    #[arg(long, value_name = "FILE")]
    pub(crate) roofline: Option<PathBuf>,

    /// Threads to compute with; all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    #[command(flatten)]
    processes: processes::ProcessArguments,
}

/// The machine of the cost model.
pub(crate) struct ModelledMachine {
    /// Its name.
    pub(crate) name: String,
    /// True if it is the executing machine, and was measured.
    pub(crate) measured: bool,
    /// Its rates.
    pub(crate) machine: Machine,
}

/// A problem's candidates.
pub(crate) struct ProblemCandidates<'a> {
    pub(crate) name: &'a str,
    pub(crate) context: &'a Context,
    pub(crate) task: Task,
    pub(crate) backend: Backend,
    pub(crate) on: &'a ModelledMachine,
    pub(crate) candidates: &'a Candidates,
    pub(crate) changes: &'a [Change],
    /// Seconds of each candidate, or the reason why it did not run.
    pub(crate) measured: &'a [Option<Result<f64, String>>],
}

impl ProblemCandidates<'_> {
    /// Returns predicted seconds for all cells.
    pub(crate) fn seconds(&self, candidate: &Candidate) -> f64 {
        self.cells() * candidate.seconds + self.on.machine.launch
    }

    pub(crate) fn cells(&self) -> f64 {
        self.context.on.mesh.n_cells() as f64
    }
}

pub(crate) fn execute(arguments: &Arguments, console: &Console) -> Result<Report, Failure> {
    let SelectedProblems { program, names, overrides } =
        select_problems(&arguments.problem, console)?;
    if let Some(path) = &arguments.roofline {
        picture::possible(path, "--roofline")?;
        if names.len() > 1 {
            return Err(Failure::input(format!(
                "--roofline names one file, but there are several problems: {}\n\
                 help: choose one with --problem NAME",
                names.join(", ")
            )));
        }
        let mut files = Files::of(&arguments.problem.file);
        for name in &names {
            files.reads_problem(&program, name, &arguments.problem.file, &overrides);
        }
        files.writes("the picture of roofs", path, "`--roofline NAME.svg`");
        files.check()?;
    }
    // Without execution no device is needed, unless one is named.
    let device = match arguments.device.open() {
        Err(_) if !arguments.measure && arguments.device.device.is_none() => None,
        other => other?,
    };
    let common = console.take();
    let mut report = Report::default();
    for name in &names {
        let which = ErrorAttribution { program: &program, problem: name, overrides: &overrides };
        let done =
            with_threads(arguments.threads, || one(arguments, which, device.as_ref(), console));
        report.add(("problem", name), done.flatten(), [common.clone(), console.take()].concat());
    }
    Ok(report)
}

/// Returns the machine of the cost model: the executing one, if it was measured, else one of its kind.
fn predicted(backend: Backend, device: Option<&Arc<dyn Device>>) -> ModelledMachine {
    let threads = rayon::current_num_threads();
    let (name, threads, like) = match (backend, device) {
        (Backend::Cpu, _) => (named(), threads, Machine::SERVER_CORE.of_cores(threads)),
        (_, Some(device)) => (device.name(), 0, Machine::H200),
        (_, None) => ("an H200".to_owned(), 0, Machine::H200),
    };
    match stored_rates::rates(&name, threads) {
        Some(rates) => ModelledMachine { name, measured: true, machine: rates.machine(&like) },
        None => ModelledMachine { name, measured: false, machine: like },
    }
}

/// A problem with its setup and the candidate kernels of a task.
pub(crate) struct PlanInput {
    pub(crate) context: Context,
    pub(crate) on: ModelledMachine,
    pub(crate) candidates: Candidates,
}

/// Sets up a problem, and finds its candidates.
pub(crate) fn find(
    which: ErrorAttribution<'_>,
    (given, place): (&ProblemArguments, &DeviceArguments),
    task: Task,
    device: Option<&Arc<dyn Device>>,
) -> Result<PlanInput, Failure> {
    let (problem, mesh) =
        prepare_whole(which.program, which.problem, &given.file, which.overrides)?;
    let refused = |error: RunError| which.run(&problem, error);
    let (on, target) = (predicted(place.backend, device), given.target());
    let platform = problem::Platform::new(target, device.cloned());
    let context = Context::new(problem.clone(), mesh, platform).map_err(refused)?;
    let wishes = PlanOverrides {
        scatter: place.scatter,
        shared_bytes: device.map(|device| device.shared_bytes()),
        ..PlanOverrides::default()
    };
    let aim = match place.backend {
        Backend::Cpu => KernelTarget::Vectors(target.isa),
        Backend::Cuda | Backend::OpenCl => KernelTarget::Threads,
    };
    let candidates = candidates(
        context.form(),
        &context.elements,
        &facts(&context.on),
        task,
        (aim, Precision::F64),
        &wishes,
        &on.machine,
    );
    let candidates = candidates.map_err(|error| refused(error.into()))?;
    Ok(PlanInput { context, on, candidates })
}

/// Returns the context with other kernels.
pub(crate) fn with_wishes(context: &Context, wishes: PlanOverrides) -> Context {
    let platform = &context.platform;
    let platform = platform.with_target(Target { wishes, ..platform.target });
    Context { platform, ..context.clone() }
}

/// Returns the rank of each cell of a problem's mesh for a number of processes.
fn ranks(
    which: ErrorAttribution<'_>,
    file: &Path,
    problem: &Problem,
    processes: usize,
) -> Result<Vec<u32>, Failure> {
    let (program, name) = (which.program, which.problem);
    let (_, mesh) = begun(program, name, file, which.overrides, processes)?;
    let ranks = mesh.ranks(problem.refine, &problem.periodic, processes);
    ranks.map_err(|error| which.part(problem, error))
}

fn one(
    arguments: &Arguments,
    which: ErrorAttribution<'_>,
    device: Option<&Arc<dyn Device>>,
    console: &Console,
) -> Result<Report, Failure> {
    let (name, task) = (which.problem, arguments.task.into());
    let given = (&arguments.problem, &arguments.device);
    let PlanInput { context, on, candidates: found } = find(which, given, task, device)?;
    let mut measured = vec![None; found.all.len()];
    if arguments.measure {
        for (number, candidate) in found.all.iter().enumerate() {
            let what = format!("{name}: running candidate {} of {}", number + 1, found.all.len());
            console.progress().say(what);
            let run = measure(&with_wishes(&context, candidate.overrides), task);
            measured[number] = Some(run.map_err(|error| error.to_string()));
        }
    }
    let planned = ProblemCandidates {
        name,
        context: &context,
        task,
        backend: arguments.device.backend,
        on: &on,
        changes: &changes(&found, &on.machine),
        candidates: &found,
        measured: &measured,
    };
    let (mut text, mut value) = (table::text(&planned), table::value(&planned));
    let ranks = |count| ranks(which, &arguments.problem.file, &context.problem, count);
    if let Some((paper, rows)) = processes::paper(&arguments.processes, &planned, ranks)? {
        text.push_str(&paper);
        value["processes"] = rows;
    }
    let mut report = Report::new(text, value);
    if let Some(path) = &arguments.roofline {
        if let Err(failure) = roofline::draw(path, &planned) {
            return Err(failure.after(report));
        }
        report.drawn(path);
    }
    Ok(report)
}
