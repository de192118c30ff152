//! `wf bench`: measured performance in comparison with the limits of the machine.

mod afem;
mod bake_off;
mod compare;
mod cylinder;
mod device;
mod dg;
mod kronbichler;
mod ljungkvist;
mod maxwell;
mod multigrid;
mod plot;
mod rows;
mod scaling;
mod scatter;
mod settgast;
mod transposition;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use fem_bench::product::Machine;
use kernels_gen::abi::Slots;
use kernels_gen::choose::PlanOverrides;
use kernels_gen::cost::Cost;
use kernels_gen::plan::{Geometry, Linearisation, Scatter, Strategy};
use runtime::device::Device;
use runtime::kernels::compile::Target;
use serde_json::{Value, json};

use crate::arguments::{Backend, Degrees, DeviceArguments, ProblemArguments, Sizes};
use crate::console::{Console, Warning};
use crate::outputs::Files;
use crate::picture;
use crate::problem::with_threads;
use crate::processes::Processes;
use crate::report::{Failure, Report};

/// Largest number of entries of an assembled matrix: beyond, assembly takes more than 12 GB.
const CSR_ENTRIES: f64 = 5e8;

/// Largest degree at which the assembled matrix is measured in addition to the operator.
const CSR_DEGREE: usize = 4;

/// Time y = A·x beside an assembled matrix, the machine's copy bandwidth and its arithmetic.
///
/// Under `mpirun` the suites bp and scaling measure what all processes do together, each on a part of the box: unknowns and rates are of
/// all, seconds those of the one that takes longest, from where all begin to where all have ended.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf bench --suite bp --backend cpu --degree 1..8 --threads 1
  wf bench --problem BP5 --problem poisson-gauss --degree 4 --json      one object a line
  wf bench --problem BP3 --degree 2..4 --dofs 1e4..1e7 --plot bp3.svg   over degree and over size
  wf bench --suite ljungkvist --dofs 1e5                  adaptive meshes beside uniform ones
  wf bench --suite kronbichler --dofs 1e6 --degree 1..4   with and without a matrix, nonlinear problems too
  wf bench --json > old.json; wf bench --compare old.json            how much faster it has become
  wf bench --suite dg --problem sipg --degree 3..7        terms between cells too: interior penalty, advection, Euler
  wf bench --suite maxwell --degree 1..4 --threads 1      products and solves in H(curl) and H(div)
  wf bench --suite scatter --backend cuda                 ways of adding results up
  wf bench --suite afem --dofs 1e6                        ways of assembling a matrix, and element by element
  wf bench --suite settgast --dofs 1e4..1e7 --plot s.svg  low order: matrix-free, partial assembly, matrix; iterations
  wf bench --suite scaling --backend cuda --devices 0,1 --dofs 2e7 --degree 3..4   two GPUs beside one
  mpirun -n 2 wf bench --suite bp --degree 2..4           products on a part of the box each: a build with `--features mpi`
  mpirun -n 2 wf bench --suite scaling                    these processes beside the first of them alone
  wf bench --suite multigrid --problem cube --degree 2..8 --dofs 1e6   whole solves by levels, beside the diagonal")]
pub(crate) struct Arguments {
    /// The set of problems.
    #[arg(long, value_enum, default_value_t = Suite::Bp)]
    pub(crate) suite: Suite,

    #[command(flatten)]
    pub(crate) device: DeviceArguments,

    /// Only these problems of the suite: BP1 to BP6, poisson-gauss, elasticity, stokes; of settgast BP5, BP6, elasticity; of
    /// kronbichler laplacian-2d, elasticity-2d, minimal-surface-2d, and the same in 3d; of multigrid square, cube, deformed, ball,
    /// elasticity, tetrahedra, unrefined, stokes; of dg sipg, advection, euler, and the same with -affine; of maxwell curl, div.
    /// May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) problem: Vec<String>,

    /// One polynomial degree, or a range with both ends: 1..8.
    /// 1..8 without it; the suites on balls, ljungkvist and scatter, and maxwell take 1..4, dg, kronbichler and multigrid
    /// 1..6, cylinder 3..4.
    #[arg(long, value_name = "K|K..L")]
    pub(crate) degree: Option<Degrees>,

    /// Of the suite scaling: how many processes there are at most, of which 1, 2, 4, … are tried; as many as there are processors, or as
    /// --devices names, without it. They are threads of this program; under `mpirun` there are those that it starts, and one alone.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) processes: Option<u16>,

    /// Of the suite scaling: GPUs by their numbers, one for each process: `--backend cuda --devices 0,1`. Under `mpirun`, of bp too, the
    /// processes of a machine take one each without it, in turn.
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "device")]
    pub(crate) devices: Vec<String>,

    /// Threads to compute with; one, then all cores without it, or the share of each of several processes. On devices: those of the
    /// processor, which set up.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=weakform::MOST_THREADS as i64))]
    pub(crate) threads: Option<u16>,

    /// The least number of unknowns, or a range with both ends, of which two a decade are taken: 1e4..3e7; 1e6 without it.
    /// The suites on balls take uniform meshes that have no more, and adaptive ones as deep; ljungkvist those of the paper,
    /// as far as they fit, without it; settgast 1e4..1e6.
    #[arg(long, value_name = "N|N..M")]
    pub(crate) dofs: Option<Sizes>,

    /// Draw throughput over degree, and over size where there are several, beside the assembled matrix; the file is PNG or
    /// SVG, as its name says.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,

    /// Cells a batch: 8 or 4 with AVX-512 in double precision; the widest without it. On devices: threads a group where
    /// each does a cell.
    #[arg(long, value_name = "W", value_parser = above_zero)]
    pub(crate) lanes: Option<usize>,

    /// The source of a cell's geometry; without it the one with the least predicted time
    #[arg(long, value_name = "NAME")]
    pub(crate) geometry: Option<GeometryArgument>,

    /// On the CPU: batches that are gathered before they are computed; chosen by size without it
    #[arg(long, value_name = "N")]
    pub(crate) block: Option<usize>,

    /// On devices: cells of a group of threads; by degree without it
    #[arg(long, value_name = "N")]
    pub(crate) cells: Option<usize>,

    /// On devices, with `--scatter block`: the slots of a batch for the nodes of each field, and the cells that one adds
    /// up, as 256x4; by the cells of a batch without it
    #[arg(long, value_name = "SLOTSxCELLS", value_parser = slots)]
    pub(crate) slots: Option<Slots>,

    /// On devices: whether threads with a line each put derivatives in the place of values; where that is faster, and where
    /// nothing else fits, without it
    #[arg(long, value_name = "true|false")]
    pub(crate) in_place: Option<bool>,

    /// On devices: groups of threads that a multiprocessor is to hold, which bounds their registers
    #[arg(long, value_name = "N")]
    pub(crate) residency: Option<usize>,

    /// On devices: whether the assembler keeps about to the order of the source, which takes fewer registers; chosen
    /// without it
    #[arg(long, value_name = "true|false")]
    pub(crate) in_order: Option<bool>,

    /// On devices: cell_per_lane, thread_per_line, or thread_transposition with :BLOCKSxBATCHES
    #[arg(long, value_name = "NAME")]
    pub(crate) strategy: Option<Strategy>,

    /// Leave the assembled matrix out.
    #[arg(long)]
    pub(crate) no_csr: bool,

    /// Of the suite maxwell: leave the solves out
    #[arg(long)]
    pub(crate) no_solve: bool,

    /// Show each row's throughput over that of an earlier run of the same suite, whose output with --json the file holds.
    #[arg(long, value_name = "OLD.json")]
    pub(crate) compare: Option<PathBuf>,
}

impl Arguments {
    /// Returns the degrees of the suites on boxes.
    fn degrees(&self) -> Degrees {
        self.degree.unwrap_or(Degrees { first: 1, last: 8 })
    }

    /// Returns the sizes of the suites on boxes.
    fn sizes(&self) -> Sizes {
        self.dofs.unwrap_or(Sizes { first: 1e6, last: 1e6 })
    }

    /// Returns each degree, from 1 to `last` if none is asked for, with each size.
    fn degrees_and_sizes(&self, last: u32) -> impl Iterator<Item = (usize, usize)> {
        let degrees = self.degree.unwrap_or(Degrees { first: 1, last });
        let degrees = degrees.first as usize..=degrees.last as usize;
        let sizes = self.sizes().each();
        degrees.flat_map(move |degree| sizes.clone().into_iter().map(move |dofs| (degree, dofs)))
    }
}

/// Returns the name of the device or CPU for a heading.
fn named(device: Option<&Arc<dyn Device>>) -> String {
    device.map_or_else(|| "this processor".to_owned(), |device| device.name())
}

/// Returns the problems of a suite with these names, or all without names.
fn named_in<T: Copy>(
    names: &[String],
    all: &[T],
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<T>, Failure> {
    if names.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |wanted: &String| {
        let found = all.iter().find(|own| name(own).eq_ignore_ascii_case(wanted));
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(&name).collect();
            Failure::input(format!(
                "no problem `{wanted}` in the suite; there are {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

/// Returns the device or CPU and the overrides for its kernels.
fn machine(arguments: &Arguments, device: Option<&Arc<dyn Device>>) -> Machine {
    let wishes = wishes(arguments);
    match device {
        Some(device) => Machine::Device(Arc::clone(device), wishes),
        None => Machine::Processor(Target { wishes, ..Target::native() }),
    }
}

/// A set of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// The bake-off problems of CEED on a deformed box of hexahedra, Poisson with Gauss points, elasticity, and
    /// Stokes with Taylor and Hood's elements, from degree 2 on.
    Bp,
    /// Poisson and elasticity of degree 1 on triangles and tetrahedra by thread transposition: blocks a batch and
    /// batches one after another. On devices.
    Transposition,
    /// Poisson with a varying coefficient on uniform and adaptive balls: the tables and figures of Ljungkvist (2017), and
    /// what a cell with hanging nodes costs. Unknowns are those of the paper, with those of hanging nodes.
    Ljungkvist,
    /// The same problem by each way of adding results up, with the number and balance of colours.
    Scatter,
    /// Laplacian, elasticity and minimal surfaces matrix-free and as sparse matrices: products, what a new state costs, and
    /// memory, by degree (the comparison of Kronbichler and Kormann, 2012).
    Kronbichler,
    /// Discontinuous Galerkin operators with their terms between cells, on deformed and affine hexahedra: interior penalty, upwind
    /// advection, and a stage of the Euler equations with Rusanov's flux.
    Dg,
    /// Poisson on boxes of all cells: each way of assembling its matrix, and products with it, with element matrices and
    /// without any (A-FEM's comparison).
    Afem,
    /// Laplacians and elasticity of degree 1 on hexahedra, matrix-free, by partial assembly and by a matrix, alone and in iterations
    /// of the conjugate gradient method: the tables and figures of Settgast and others (2023).
    Settgast,
    /// Operators of H(curl) and H(div), curl curl + 1 and −grad div + 1, matrix-free on a deformed box, and solves with them.
    Maxwell,
    /// Whole solves of Poisson, elasticity and Stokes by the levels of multigrid, beside those by the diagonal, over degree and size.
    Multigrid,
    /// Poisson on a box in as many parts as there are processors or devices, and on one: products, iterations of CG and solves by levels,
    /// with as many unknowns for each as for one (weak), and with as many in all (strong).
    Scaling,
    /// The vortices behind a cylinder at Re = 100 (Schäfer and Turek 1996, problem 2D-2): Strouhal number, drag, lift and what a step
    /// costs, by degree and length of the steps.
    Cylinder,
}

pub(crate) fn execute(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    of_several(arguments, processes)?;
    let Some(path) = &arguments.compare else { return measured(arguments, processes, console) };
    let mut files = Files::default();
    files.reads("the earlier run that it is compared with", path);
    if let Some(plot) = &arguments.plot {
        files.writes("the plot", plot, "`--plot NAME.svg`");
    }
    files.check()?;
    let old = compare::PreviousRun::read(path, arguments.suite)?;
    match measured(arguments, processes, console) {
        Ok(report) => Ok(old.beside(report)),
        Err(failure) => Err(failure.with_done(|report| old.beside(report))),
    }
}

/// Rejects options that several processes do not support together.
fn of_several(arguments: &Arguments, processes: &Processes) -> Result<(), Failure> {
    processes.given("")?;
    let suite = arguments.suite.to_possible_value();
    let suite = suite.map_or_else(String::new, |value| value.get_name().to_owned());
    let apart = !matches!(arguments.suite, Suite::Bp | Suite::Scaling);
    processes.alone_for(
        apart,
        &format!("measures the suite `{suite}`"),
        "ask for --suite bp or --suite scaling, or start one process",
    )?;
    let help = "leave --processes out: there are those that `mpirun` has started";
    processes.alone_for(arguments.processes.is_some(), "tries several numbers of them", help)
}

fn measured(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    warn(arguments, console);
    if arguments.suite == Suite::Transposition {
        let Some(device) = arguments.device.open()? else {
            return Err(Failure::input(
                "thread transposition is for devices\nhelp: add `--backend cuda` or `--backend opencl`",
            ));
        };
        if matches!(arguments.device.scatter, Some(Scatter::Coloured | Scatter::Owner)) {
            return Err(Failure::input(
                "the suite `transposition` adds atomically, cell by cell or batch by batch\nhelp: leave --scatter out, or ask for atomic or block",
            ));
        }
        let mut report = Report::default();
        let done = with_threads(arguments.threads, || {
            transposition::suite(arguments, &device, &mut report, console)
        });
        return kept(report, done);
    }
    if let Some(path) = &arguments.plot {
        picture::possible(path, "--plot")?;
    }
    let has_matrix = matches!(
        arguments.suite,
        Suite::Bp | Suite::Settgast | Suite::Kronbichler | Suite::Ljungkvist
    );
    if cfg!(debug_assertions) && has_matrix && !arguments.no_csr {
        console.warn(Warning::new(
            "this program was built without optimisation, and so was the product with the assembled matrix\n\
             help: cargo run --release -- bench …",
        ));
    }
    if arguments.suite == Suite::Kronbichler {
        return kronbichler::suite(arguments, console);
    }
    if arguments.suite == Suite::Dg {
        return dg::suite(arguments, console);
    }
    if arguments.suite == Suite::Maxwell {
        return maxwell::suite(arguments, console);
    }
    if arguments.suite != Suite::Bp {
        return others(arguments, processes, console);
    }
    let mut report = bake_off::bake_off(arguments, processes, console)?;
    if let Some(path) = arguments.plot.as_ref().filter(|_| processes.speaks()) {
        if let Err(failure) = plot::draw(path, &report.json) {
            return Err(failure.after(report));
        }
        report.drawn(path);
    }
    Ok(report)
}

/// Runs the suites with their own tables.
fn others(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Report, Failure> {
    // Each of its processes has a device.
    let device = match arguments.suite {
        Suite::Scaling => None,
        _ => arguments.device.open()?,
    };
    let mut report = Report::default();
    let done = with_threads(processes.threads(arguments.threads), || match arguments.suite {
        Suite::Afem => afem::suite(arguments, device.as_ref(), &mut report, console),
        Suite::Scatter => scatter::suite(arguments, device.as_ref(), &mut report, console),
        Suite::Settgast => settgast::suite(arguments, device.as_ref(), &mut report, console),
        Suite::Multigrid => multigrid::suite(arguments, device.as_ref(), &mut report, console),
        Suite::Cylinder => cylinder::suite(arguments, device.as_ref(), &mut report, console),
        Suite::Scaling => scaling::suite(arguments, processes, &mut report, console),
        _ => ljungkvist::suite(arguments, device.as_ref(), &mut report, console),
    });
    let mut report = kept(report, done)?;
    let draw = match arguments.suite {
        Suite::Ljungkvist => ljungkvist::draw,
        Suite::Settgast => settgast::draw,
        Suite::Multigrid => multigrid::draw,
        Suite::Cylinder => cylinder::draw,
        Suite::Scaling => scaling::draw,
        _ => return Ok(report),
    };
    if let Some(path) = arguments.plot.as_ref().filter(|_| processes.speaks()) {
        if let Err(failure) = draw(path, &report.json) {
            return Err(failure.after(report));
        }
        report.drawn(path);
    }
    Ok(report)
}

/// Warns about options without effect.
fn warn(arguments: &Arguments, console: &Console) {
    let transposition = arguments.suite == Suite::Transposition;
    let dg = arguments.suite == Suite::Dg;
    let maxwell = arguments.suite == Suite::Maxwell;
    let scatter = arguments.suite == Suite::Scatter;
    let scatter = scatter || arguments.suite == Suite::Afem;
    let balls = scatter || arguments.suite == Suite::Ljungkvist;
    let settgast = arguments.suite == Suite::Settgast;
    let device = arguments.device.backend != Backend::Cpu;
    let block = arguments.device.scatter == Some(Scatter::Block);
    let (on_devices, on_the_cpu) = ("it is for devices", "it is for the processor");
    let own = "the suite `transposition` has its own";
    let given = |option: &Option<usize>| option.is_some();
    let idle = [
        ("--cells", given(&arguments.cells) && !device, on_devices),
        ("--slots", arguments.slots.is_some() && !device, on_devices),
        ("--slots", arguments.slots.is_some() && device && !block, "it is for `--scatter block`"),
        ("--in-place", arguments.in_place.is_some() && !device, on_devices),
        ("--residency", given(&arguments.residency) && !device, on_devices),
        ("--in-order", arguments.in_order.is_some() && !device, on_devices),
        ("--strategy", arguments.strategy.is_some() && !device, on_devices),
        ("--strategy", arguments.strategy.is_some() && transposition, own),
        ("--block", given(&arguments.block) && device, on_the_cpu),
        (
            "--plot",
            arguments.plot.is_some() && (transposition || scatter),
            "this suite is not drawn",
        ),
        (
            "--no-csr",
            arguments.no_csr && (transposition || dg || maxwell),
            "this suite has no matrix",
        ),
        ("--no-csr", arguments.no_csr && scatter, "this suite takes all ways"),
        ("--no-solve", arguments.no_solve && !maxwell, "this suite has none, or nothing else"),
        ("--problem", !arguments.problem.is_empty() && balls, "this suite has one problem"),
        ("--scatter", arguments.device.scatter.is_some() && scatter, "this suite takes all ways"),
        ("--degree", arguments.degree.is_some() && settgast, "this suite is of degree 1"),
        ("--geometry", arguments.geometry.is_some() && settgast, "this suite takes all ways"),
    ];
    for (option, _, because) in idle.into_iter().filter(|(_, idle, _)| *idle) {
        console.warn(Warning::no_effect(option, because));
    }
}

/// Returns the device of this process; `None` for the CPU.
fn own_device(
    arguments: &Arguments,
    processes: &Processes,
    console: &Console,
) -> Result<Option<Arc<dyn Device>>, Failure> {
    if !processes.are_several() {
        return arguments.device.open();
    }
    let (problem, number) = (ProblemArguments::default(), processes.number_of_host());
    processes.join(arguments.device.open_in(&problem, &arguments.devices, number), console)
}

/// Keeps the measurements made before a failure.
fn kept<E: Into<Failure>>(
    report: Report,
    done: Result<Result<(), Failure>, E>,
) -> Result<Report, Failure> {
    match done.map_err(Into::into).flatten() {
        Ok(()) => Ok(report),
        Err(failure) => Err(failure.after(report)),
    }
}

/// Measures with one thread and with all, or on a device, and draws the charts that are asked for.
fn of_pools(
    arguments: &Arguments,
    draw: impl Fn(&Path, &[Value]) -> Result<(), Failure>,
    mut rows: impl FnMut(Option<&Arc<dyn Device>>, &mut Report) -> Result<(), Failure> + Send,
) -> Result<Report, Failure> {
    let device = arguments.device.open()?;
    let all = std::thread::available_parallelism().map_or(1, |n| n.get() as u16);
    let threads = match (arguments.threads, &device) {
        (Some(threads), _) => vec![Some(threads)],
        (None, Some(_)) => vec![None],
        (None, None) if all == 1 => vec![Some(1)],
        (None, None) => vec![Some(1), Some(all)],
    };
    let mut report = Report::default();
    for threads in threads {
        let done = with_threads(threads, || rows(device.as_ref(), &mut report));
        report = kept(report, done)?;
    }
    let Some(path) = &arguments.plot else { return Ok(report) };
    match draw(path, &report.json) {
        Ok(()) => {
            report.drawn(path);
            Ok(report)
        }
        Err(failure) => Err(failure.after(report)),
    }
}

/// Source of a kernel's geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum GeometryArgument {
    /// Eight coefficients a cell
    Vertices,
    /// The coordinates of the corners, gathered; degree 1 only
    Corners,
    /// The Jacobian of the cell; on triangles and tetrahedra
    Affine,
    /// Weight and inverse Jacobian at each quadrature point
    Stored,
    /// The coefficients of the Jacobian at each quadrature point
    Coefficients,
}

/// Parses a nonzero number.
fn above_zero(text: &str) -> Result<usize, String> {
    text.parse::<usize>()
        .ok()
        .filter(|&n| n > 0)
        .ok_or_else(|| format!("`{text}` is no number from 1 on"))
}

/// Largest accepted number of slots per batch and of cells per slot: far more than fit into shared memory.
const MOST_SLOTS: usize = 1 << 16;

/// Parses slots and the cells of each.
fn slots(text: &str) -> Result<Slots, String> {
    let numbers = text.split_once('x').and_then(|(count, terms)| {
        let (count, terms): (usize, usize) = (count.parse().ok()?, terms.parse().ok()?);
        let some = 1..=MOST_SLOTS;
        (some.contains(&count) && some.contains(&terms)).then_some(Slots { count, terms })
    });
    numbers.ok_or_else(|| format!("`{text}` is no SLOTSxCELLS, as 256x4 is"))
}

/// Returns the overrides that the arguments request for the kernels.
fn wishes(arguments: &Arguments) -> PlanOverrides {
    let geometry = match arguments.geometry {
        Some(GeometryArgument::Vertices) => Some(Geometry::Vertices),
        Some(GeometryArgument::Corners) => Some(Geometry::Corners),
        Some(GeometryArgument::Affine) => Some(Geometry::Affine),
        Some(GeometryArgument::Stored) => Some(Geometry::Stored),
        Some(GeometryArgument::Coefficients) | None => None,
    };
    let linearisation = arguments.geometry.map(|given| match given {
        GeometryArgument::Coefficients => Linearisation::Stored,
        _ => Linearisation::Recompute,
    });
    PlanOverrides {
        geometry,
        linearisation,
        lanes: arguments.lanes,
        block: arguments.block,
        cells: arguments.cells,
        residency: arguments.residency,
        in_order: arguments.in_order,
        in_place: arguments.in_place,
        slots: arguments.slots,
        strategy: arguments.strategy,
        scatter: arguments.device.scatter,
        ..PlanOverrides::default()
    }
}

/// Returns the counted cost per cell.
pub(crate) fn cost(cost: &Cost) -> Value {
    let Cost { arithmetic, indexed, private_accesses, shared_accesses, bytes, issued, .. } = cost;
    json!({
        "flops": cost.flops(),
        "fused": arithmetic.fused,
        "plain": arithmetic.plain,
        "chosen": arithmetic.chosen,
        "divisions": arithmetic.divisions,
        "functions": arithmetic.functions,
        "gathered": indexed.gathered,
        "gathered_in_runs": indexed.gathered_in_runs,
        "added": indexed.added,
        "added_in_runs": indexed.added_in_runs,
        "private_accesses": private_accesses,
        "shared_accesses": shared_accesses,
        "issued_arithmetic": issued.arithmetic,
        "issued_shared_accesses": issued.shared,
        "issued_indexed": issued.indexed,
        "bytes": bytes.total(),
        "bytes_of_vectors": bytes.vectors,
        "bytes_of_geometry": bytes.geometry,
        "bytes_stored": bytes.stored,
        "bytes_of_data": bytes.data,
        "bytes_of_indices": bytes.indices,
    })
}
