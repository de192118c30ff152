//! The suite `scaling`: a partitioned box with one subdomain per process, in comparison with one process → rows, a
//! table and a picture of efficiencies.
//!
//! Processes are threads of this program, each with its share of the cores or its own device, or those that `mpirun`
//! has started. The first measures alone while the others sleep, then all together. Efficiency is the number of DoFs
//! processed per second, divided by that of one process times the number of processes.

use std::path::Path;
use std::sync::Arc;

use fem_bench::scaling::{ProductTimes, product};
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::{MeshSource, Problem};
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::kernels::compile::Target;
use runtime::mesh::Mesh;
use runtime::mesh::initial::begin;
use runtime::problem::{Context, Platform, RunError, Solution, run};
use runtime::processes::{ProcessGroup, Reduction};
use runtime::solve::Continue;
use serde_json::{Value, json};
use weakform::picture::{Axis, Chart, Scale, Series, write_charts};

use super::{Arguments, Degrees};
use crate::arguments::{Backend, ProblemArguments};
use crate::console::Console;
use crate::problem::with_threads;
use crate::processes::Processes;
use crate::report::{Failure, Report};

/// Cells along an edge of the box for the warm-up.
const FIRST: usize = 4;

/// Number of multigrid solves, of which the median is reported: the first of each size prepares devices and messages.
const SOLVES: usize = 3;

/// The reductions of the residual with the diagonal preconditioner and with multigrid.
const TOLERANCES: [&str; 2] = ["1e-6", "1e-8"];

/// A box of cubes with one longer edge.
#[derive(Clone, Copy)]
struct Size {
    cells: usize,
    times: usize,
    degree: usize,
}

impl Size {
    /// Returns the size with this approximate number of DoFs per process.
    fn of(unknowns: usize, degree: usize, times: usize) -> Self {
        let cells = (unknowns as f64).cbrt() / degree as f64;
        // Multiples of eight have coarser levels.
        let cells = if cells > 12.0 { 8 * (cells / 8.0).round() as usize } else { cells as usize };
        Self { cells: cells.max(2), times, degree }
    }

    fn problem(
        self,
        preconditioner: &str,
        tolerance: &str,
    ) -> Result<(Problem, MeshSource), Failure> {
        let Self { cells, times, degree } = self;
        let text = format!(
            "form f {{ field u: scalar; f0[u] = -1; f1[u] = grad(u); }}
             problem p solves f {{ mesh = box(dim: 3, cells: [{cells}, {cells}, {}], to: [1, 1, {times}]);
                 degree = {degree}; dirichlet u = 0;
                 solver = cg(preconditioner: {preconditioner}, rtol: {tolerance}); }}",
            cells * times
        );
        let (program, found) = compile(&Source::new("bench", &text));
        let program = program.ok_or_else(|| Failure::input(format!("{found:?}")))?;
        let failed = |found| Failure::input(format!("{found:?}"));
        let (source, _) = program.mesh("p", &Overrides::default()).map_err(failed)?;
        Ok((program.problem("p", 3, &Overrides::default()).map_err(failed)?, source))
    }
}

/// Measurements for a number of processes.
#[derive(Clone, Default)]
struct ProcessMeasurement {
    unknowns: usize,
    product: ProductTimes,
    /// Iterations with the diagonal preconditioner, and seconds of one.
    diagonal: (usize, f64),
    /// Iterations with multigrid, and seconds of a solve without the setup.
    levels: (usize, f64),
}

impl ProcessMeasurement {
    /// Returns DoFs per second: of products, of iterations with the diagonal, of multigrid solves.
    fn rates(&self) -> [f64; 3] {
        [self.product.seconds, self.diagonal.1, self.levels.1].map(|own| self.unknowns as f64 / own)
    }
}

/// The resources of one process.
struct Member<'a> {
    group: &'a Arc<dyn ProcessGroup>,
    device: Option<Arc<dyn Device>>,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::input(error.to_string())
}

impl Member<'_> {
    fn platform(&self) -> Platform {
        Platform::new(Target::native(), self.device.clone())
    }

    fn part(&self, source: &MeshSource) -> Result<Arc<Mesh>, Failure> {
        let begun = begin(source, Path::new(""), self.group.size()).map_err(failed)?;
        begun.part(0, &[], self.group).map_err(failed)
    }

    fn solved(&self, problem: &Problem, part: &Arc<Mesh>) -> Result<Solution, Failure> {
        let done = run(problem, Arc::clone(part), &self.platform(), &mut |_| Continue::Yes);
        done.map_err(|error: RunError| failed(error))
    }

    fn measured(
        &self,
        source: &MeshSource,
        [by_diagonal, by_levels]: [&Problem; 2],
    ) -> Result<ProcessMeasurement, Failure> {
        let part = self.part(source)?;
        let context = Context::new(by_diagonal.clone(), Arc::clone(&part), self.platform());
        let mut operator = context.and_then(|context| context.operator()).map_err(failed)?.0;
        let product = product(&mut operator).map_err(failed)?;
        drop(operator);
        let diagonal = self.solved(by_diagonal, &part)?;
        let (iterations, seconds) = (diagonal.linear_iterations, diagonal.seconds.solve);
        drop(diagonal);
        let mut levels = Vec::with_capacity(SOLVES);
        let mut unknowns = 0;
        for _ in 0..SOLVES {
            let own = self.solved(by_levels, &part)?;
            let made = own.multigrid.iter().map(|own| own.seconds).sum();
            // A process that has finished its multigrid setup waits for the others, which is not part of the solve.
            let mut seconds = [own.seconds.solve, made];
            self.group.reduce(Reduction::Largest, &mut seconds);
            unknowns = own.size[1];
            levels.push((own.linear_iterations, seconds[0] - seconds[1]));
        }
        tracing::debug!("solves by levels: {levels:?}");
        levels.sort_by(|a, b| a.1.total_cmp(&b.1));
        Ok(ProcessMeasurement {
            unknowns,
            product,
            diagonal: (iterations, seconds / iterations.max(1) as f64),
            levels: levels[SOLVES / 2],
        })
    }
}

/// Measures with a number of processes: threads of this program, all that were started, or only the first of these. The
/// first process has the same results as the others except for seconds, of which its own count; sleeping processes have
/// none.
fn together(
    arguments: &Arguments,
    processes: &Processes,
    count: usize,
    size: Size,
    console: &Console,
) -> Result<ProcessMeasurement, Failure> {
    let problems = |size: Size| {
        let (diagonal, source) = size.problem("jacobi", TOLERANCES[0])?;
        let (levels, _) = Size { cells: FIRST, ..size }.problem("multigrid", TOLERANCES[1])?;
        Ok::<_, Failure>((source, [diagonal, levels]))
    };
    let threads = threads(arguments, processes, count);
    let (first, own) = (problems(Size { cells: FIRST, ..size })?, problems(size)?);
    let one = |processes: &Processes| {
        let group = processes.group();
        let (problem, number) = (ProblemArguments::default(), processes.number_of_host());
        let device = arguments.device.open_in(&problem, &arguments.devices, number);
        let member = Member { group, device: processes.join(device, console)? };
        let found = with_threads(Some(threads), || {
            member.measured(&first.0, first.1.each_ref())?;
            member.measured(&own.0, own.1.each_ref())
        });
        processes.settle(found.flatten(), console)
    };
    if !processes.are_several() {
        let all = Processes::in_threads(count, one);
        return all.into_iter().next().unwrap_or_else(|| Ok(ProcessMeasurement::default()));
    }
    if count > 1 {
        return one(processes);
    }
    let own = match processes.speaks() {
        true => one(&Processes::alone()),
        false => Ok(ProcessMeasurement::default()),
    };
    // The others sleep in this call.
    processes.settle(own, console)
}

/// Returns the threads per process: independent of their number on CPUs, so that several processes have several times
/// the threads of one.
fn threads(arguments: &Arguments, processes: &Processes, count: usize) -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = match (arguments.device.backend, processes.are_several()) {
        (Backend::Cpu, true) => cores / processes.of_host(),
        (Backend::Cpu, false) => cores / counts(arguments, processes).last().copied().unwrap_or(1),
        (_, true) => cores / count.min(processes.of_host()),
        (_, false) => cores / count,
    };
    arguments.threads.unwrap_or_else(|| u16::try_from(share.max(1)).unwrap_or(u16::MAX))
}

/// Returns 1, 2, 4, … up to the largest number, which comes last; for started processes one and all.
fn counts(arguments: &Arguments, processes: &Processes) -> Vec<usize> {
    if processes.are_several() {
        return vec![1, processes.group().size()];
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let own = match arguments.device.backend {
        Backend::Cpu => cores,
        _ => arguments.devices.len().max(1),
    };
    let most = arguments.processes.map_or(own, usize::from);
    let powers = std::iter::successors(Some(1), |count| Some(2 * count));
    powers.take_while(|&count| count < most).chain([most]).collect()
}

pub(super) fn suite(
    arguments: &Arguments,
    processes: &Processes,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    report.text.push_str(&format!(
        "Poisson on a box, {}: as many unknowns for each of several processes as for one (weak), and in all (strong).\n\
         product: y = A x; alone: without what processes tell each other; messages: that by itself, of so many bytes; hidden: how much\n\
         of it is done beside cells; iteration: of CG by the diagonal to {}; solve: by levels to {}, without making them.\n\
         Efficiency, after each, is the rate over that of one process times their number\n\
         scaling  p processes  unknowns |  product    alone messages      sent hidden  eff. | iteration  eff. | its   solve  eff.\n",
        match arguments.device.backend {
            Backend::Cpu => "this processor".to_owned(),
            backend => runtime::device::Backend::from(backend).to_string(),
        },
        TOLERANCES[0],
        TOLERANCES[1],
    ));
    let counts = counts(arguments, processes);
    let degrees = arguments.degree.unwrap_or(Degrees { first: 3, last: 4 });
    for degree in degrees.first as usize..=degrees.last as usize {
        for dofs in arguments.sizes().each() {
            let mut one = None;
            for (kind, weak) in [("weak", true), ("strong", false)] {
                for &count in &counts {
                    let size = Size::of(dofs, degree, if weak { count } else { 1 });
                    console.progress().say(format!("{kind}, degree {degree}: {count} processes"));
                    let found = match (count, &one) {
                        (1, Some(known)) => ProcessMeasurement::clone(known),
                        _ => together(arguments, processes, count, size, console)?,
                    };
                    let first = one.get_or_insert_with(|| found.clone());
                    let row = Row { kind, degree, count, found, first };
                    report.row(&row.line(), console);
                    report.json.push(row.value(arguments));
                }
            }
        }
    }
    Ok(())
}

/// The measurements for a number of processes, with those for one.
struct Row<'a> {
    kind: &'static str,
    degree: usize,
    count: usize,
    found: ProcessMeasurement,
    first: &'a ProcessMeasurement,
}

impl Row<'_> {
    /// Returns the efficiencies of products, iterations and solves.
    fn efficiencies(&self) -> [f64; 3] {
        let (own, one) = (self.found.rates(), self.first.rates());
        [0, 1, 2].map(|of| own[of] / (one[of] * self.count as f64))
    }

    fn line(&self) -> String {
        let Self { kind, degree, count, found, .. } = self;
        let ProcessMeasurement { unknowns, product, diagonal, levels } = found;
        let [of_product, of_iteration, of_solve] = self.efficiencies().map(|own| 100.0 * own);
        let hidden = product.hidden();
        let hidden = hidden.map_or_else(|| "-".to_owned(), |part| format!("{:.0}%", 100.0 * part));
        format!(
            "{kind:<7} {degree:>2} {count:>9} {unknowns:>9} | {:>8} {:>8} {:>8} {:>9} {hidden:>6} {of_product:>4.0}% | {:>9} {of_iteration:>4.0}% | {:>3} {:>7} {of_solve:>4.0}%\n",
            time(product.seconds),
            time(product.alone),
            time(product.messages),
            runtime::support::memory::Bytes(product.bytes).to_string(),
            time(diagonal.1),
            levels.0,
            time(levels.1),
        )
    }

    fn value(&self, arguments: &Arguments) -> Value {
        let ProcessMeasurement { unknowns, product, diagonal, levels } = &self.found;
        let [of_product, of_iteration, of_solve] = self.efficiencies();
        json!({
            "suite": "scaling",
            "problem": self.kind,
            "degree": self.degree,
            "backend": runtime::device::Backend::from(arguments.device.backend).word(),
            "processes": self.count,
            "dofs": unknowns,
            "product_seconds": product.seconds,
            "alone_seconds": product.alone,
            "message_seconds": product.messages,
            "bytes_sent": product.bytes,
            "hidden": product.hidden(),
            "product_efficiency": of_product,
            "iteration_seconds": diagonal.1,
            "iterations": diagonal.0,
            "iteration_efficiency": of_iteration,
            "solve_seconds": levels.1,
            "solve_iterations": levels.0,
            "solve_efficiency": of_solve,
        })
    }
}

/// Formats seconds in a suitable unit.
fn time(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1e-3 => format!("{:.1} us", 1e6 * seconds),
        seconds if seconds < 1.0 => format!("{:.2} ms", 1e3 * seconds),
        seconds => format!("{seconds:.3} s"),
    }
}

/// Draws efficiencies over processes.
pub(super) fn draw(path: &Path, rows: &[Value]) -> Result<(), Failure> {
    let mut charts = Vec::new();
    for kind in ["weak", "strong"] {
        let mut series: Vec<Series> = Vec::new();
        for row in rows.iter().filter(|row| row["problem"] == kind) {
            for (key, word) in [
                ("product_efficiency", "product"),
                ("iteration_efficiency", "iteration of CG"),
                ("solve_efficiency", "solve by levels"),
            ] {
                let (Some(x), Some(y), Some(degree)) =
                    (row["processes"].as_f64(), row[key].as_f64(), row["degree"].as_f64())
                else {
                    continue;
                };
                let dofs = if kind == "weak" { "" } else { ", in all" };
                let name = format!("{word}, p = {degree}{dofs}");
                match series.iter_mut().find(|own| own.name == name) {
                    Some(own) => own.points.push((x, y)),
                    None => series.push(Series { name, points: vec![(x, y)], ..Series::default() }),
                }
            }
        }
        let axis = |name: &str, scale| Axis { name: name.to_owned(), scale };
        let x = axis(&format!("processes, {kind} scaling"), Scale::Whole);
        let y = axis("efficiency", Scale::FromZero);
        charts.push(Chart { x, y, series, dashed: String::new() });
    }
    Ok(write_charts(path, "Several processes beside one", &charts)?)
}
