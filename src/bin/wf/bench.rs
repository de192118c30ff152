//! `wf bench`: measured speed beside what the machine allows.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};
use kernels_gen::plan::{Geometry, Linearisation};
use runtime::bench::machine::{Rates, measure as measure_rates};
use runtime::bench::{BenchError, CASES, Case, Row, csr_seconds, measure, prepare};
use runtime::compile::Target;
use serde_json::{Value, json};

use crate::arguments::Degrees;
use crate::problem::with_threads;
use crate::report::{Failure, Report};

/// Entries up to which a matrix is assembled: beyond, it takes more than 12 GB to make.
const CSR_ENTRIES: f64 = 5e8;

/// Degrees up to which the assembled matrix is measured beside the operator.
const CSR_DEGREE: usize = 4;

/// Time y = A·x beside an assembled matrix, the machine's copy bandwidth and its arithmetic.
#[derive(Args)]
#[command(after_help = "\
Examples:
  wf bench --suite bp --backend cpu --degree 1..8 --threads 1
  wf bench --problem BP5 --problem poisson-gauss --degree 4 --json      one object a line")]
pub(crate) struct Arguments {
    /// The set of problems.
    #[arg(long, value_enum, default_value_t = Suite::Bp)]
    pub(crate) suite: Suite,

    /// What computes.
    #[arg(long, value_enum, default_value_t = Backend::Cpu)]
    pub(crate) backend: Backend,

    /// Only these problems of the suite: BP1 to BP6, poisson-gauss, elasticity. May be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) problem: Vec<String>,

    /// One polynomial degree, or a range with both ends: 1..8.
    #[arg(long, value_name = "K|K..L", default_value = "1..8")]
    pub(crate) degree: Degrees,

    /// Threads to compute with; one, then all cores without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,

    /// The least number of unknowns.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) dofs: u64,

    /// Cells a batch: 8 or 4 with AVX-512 in double precision; the widest without it.
    #[arg(long, value_name = "W")]
    pub(crate) lanes: Option<usize>,

    /// How the kernels come to the map of a cell; the one with the least predicted time without it
    #[arg(long, value_name = "NAME")]
    pub(crate) geometry: Option<Given>,

    /// Batches that are gathered before they are computed; chosen by size without it
    #[arg(long, value_name = "N")]
    pub(crate) block: Option<usize>,

    /// Cells of a group of threads; by degree without it
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "N")]
    pub(crate) cells: Option<usize>,

    /// Groups of threads that a processor is to hold, which bounds their registers
    #[cfg(feature = "cuda")]
    #[arg(long, value_name = "N")]
    pub(crate) residency: Option<usize>,

    /// Leave the assembled matrix out.
    #[arg(long)]
    pub(crate) no_csr: bool,
}

/// A set of problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Suite {
    /// The bake-off problems of CEED on a deformed box of hexahedra, Poisson with Gauss points, and elasticity.
    Bp,
}

/// What computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// Generated Rust with SIMD.
    Cpu,
    /// CUDA, on the first GPU.
    #[cfg(feature = "cuda")]
    Cuda,
}

pub(crate) fn execute(arguments: &Arguments) -> Result<Report, Failure> {
    let Suite::Bp = arguments.suite;
    let cases = cases(&arguments.problem)?;
    #[cfg(feature = "cuda")]
    if arguments.backend == Backend::Cuda {
        let (text, json) = cuda::suite(arguments, &cases)?;
        return Ok(Report { text, json });
    }
    let threads: Vec<u16> = match arguments.threads {
        Some(threads) => vec![threads],
        None => vec![1, std::thread::available_parallelism().map_or(1, |n| n.get() as u16)],
    };
    let mut report = Report { text: String::new(), json: Vec::new() };
    for threads in threads {
        let rows = with_threads(Some(threads), || suite(arguments, &cases))??;
        report.text.push_str(&rows.0);
        report.json.extend(rows.1);
    }
    Ok(report)
}

fn cases(names: &[String]) -> Result<Vec<Case>, Failure> {
    if names.is_empty() {
        return Ok(CASES.to_vec());
    }
    let find = |name: &String| {
        let found = CASES.iter().find(|case| case.name.eq_ignore_ascii_case(name));
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            Failure::input(format!(
                "no problem `{name}` in the suite; there are {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

fn suite(arguments: &Arguments, cases: &[Case]) -> Result<(String, Vec<Value>), Failure> {
    let rates = measure_rates()?;
    let mut text = format!(
        "{} threads: copy {:.1} GB/s, multiply-adds {:.1} GFLOP/s\n{:<14} {:>2} {:>9} {:>5}  {:<13} {:>8} {:>8} {:>7} {:>7} {:>6} {:>8} {:>6}\n",
        rayon::current_num_threads(),
        rates.copy / 1e9,
        rates.flops / 1e9,
        "problem",
        "p",
        "unknowns",
        "lanes",
        "geometry",
        "MDoF/s",
        "GFLOP/s",
        "B/DoF",
        "F/DoF",
        "floor",
        "CSR",
        "ratio",
    );
    let mut values = Vec::new();
    for case in cases {
        for degree in arguments.degree.first..=arguments.degree.last {
            if std::io::stderr().is_terminal() {
                eprint!("\r{} degree {degree} …   ", case.name);
            }
            let row = row(arguments, case, degree as usize, &rates)?;
            text.push_str(&line(&row));
            values.push(value(&row));
        }
    }
    if std::io::stderr().is_terminal() {
        eprint!("\r                         \r");
    }
    Ok((text, values))
}

/// Where a kernel's geometry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Given {
    /// Eight coefficients a cell
    Vertices,
    /// The coordinates of the corners, gathered; degree 1 only
    Corners,
    /// Weight and inverse Jacobian at each quadrature point
    Stored,
    /// The coefficients of the Jacobian at each quadrature point
    Coefficients,
}

fn row(
    arguments: &Arguments,
    case: &Case,
    degree: usize,
    rates: &Rates,
) -> Result<Row, BenchError> {
    let mut target = Target::native();
    target.wishes.lanes = arguments.lanes;
    target.wishes.block = arguments.block;
    match arguments.geometry {
        Some(Given::Vertices) => target.wishes.geometry = Some(Geometry::Vertices),
        Some(Given::Corners) => target.wishes.geometry = Some(Geometry::Corners),
        Some(Given::Stored) => target.wishes.geometry = Some(Geometry::Stored),
        Some(Given::Coefficients) => {
            target.wishes.linearisation = Some(Linearisation::Stored);
        }
        None => {}
    }
    if arguments.geometry.is_some_and(|given| given != Given::Coefficients) {
        target.wishes.linearisation = Some(Linearisation::Recompute);
    }
    let prepared = prepare(case, degree, arguments.dofs as usize, &target)?;
    let mut row = measure(case, &prepared, rates)?;
    if degree <= CSR_DEGREE && !arguments.no_csr && entries(&row) <= CSR_ENTRIES {
        row.csr_seconds = Some(csr_seconds(&prepared)?);
    }
    Ok(row)
}

/// The suite on a GPU.
#[cfg(feature = "cuda")]
mod cuda {
    use super::{Arguments, CASES, Failure, line, value};
    use kernels_gen::plan::choose::Wishes;
    use runtime::bench::cuda::{input, prepare, rates};
    use runtime::bench::{BenchError, Case, prepare as prepare_host};
    use runtime::compile::{Execution, Target};
    use runtime::device::cuda::Cuda;
    use runtime::solve::LinearOperator;
    use runtime::vector::{Precision, Vector};
    use serde_json::{Value, json};

    /// Unknowns of the problem on which results are compared with the interpreter's.
    const CHECK: usize = 3000;

    pub(super) fn suite(
        arguments: &Arguments,
        cases: &[Case],
    ) -> Result<(String, Vec<Value>), Failure> {
        assert!(!CASES.is_empty());
        let device = Cuda::new(0).map_err(BenchError::from)?;
        let measured = rates(&device).map_err(BenchError::from)?;
        let mut text = format!(
            "{} ({}): copy {:.0} GB/s, multiply-adds {:.1} TFLOP/s\n",
            device.name(),
            device.arch(),
            measured.copy / 1e9,
            measured.flops / 1e12
        );
        let mut values = Vec::new();
        for case in cases {
            for degree in arguments.degree.first..=arguments.degree.last {
                let degree = degree as usize;
                let wishes = Wishes {
                    cells: arguments.cells,
                    residency: arguments.residency,
                    ..Wishes::default()
                };
                let error = check(case, degree, &wishes)?;
                let device = Cuda::new(0).map_err(BenchError::from)?;
                let dofs = arguments.dofs as usize;
                let mut prepared = prepare(device, case, degree, dofs, Precision::F64, &wishes)?;
                let row = prepared.measure(&measured)?;
                let shown = line(&row);
                text.push_str(&format!("{}  error {error:.1e}\n", shown.trim_end()));
                eprintln!("{}  error {error:.1e}", shown.trim_end());
                let mut value = value(&row);
                value["backend"] = json!("cuda");
                value["scatter"] = json!("atomic");
                value["error"] = json!(error);
                value["compile_seconds"] = json!(prepared.operator.compile_seconds);
                values.push(value);
            }
        }
        Ok((text, values))
    }

    /// The largest difference from the interpreted kernels of the CPU, relative to the largest entry.
    fn check(case: &Case, degree: usize, wishes: &Wishes) -> Result<f64, BenchError> {
        let device = Cuda::new(0)?;
        let mut prepared = prepare(device, case, degree, CHECK, Precision::F64, wishes)?;
        let found = prepared.result()?;
        let mut target = Target::native();
        target.execution = Execution::Interpreted;
        let host = prepare_host(case, degree, CHECK, &target)?;
        let x = Vector::from_slice(&input(found.len()), Precision::F64);
        let mut y = host.operator.vector();
        LinearOperator::apply(&host.operator, &x, &mut y)?;
        let wanted = y.to_vec();
        let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
        let worst = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        Ok(worst / most)
    }
}

/// Entries of the assembled matrix on hexahedra: in each direction a vertex sees 2p + 1 nodes, the
/// p − 1 others of a cell p + 1.
fn entries(row: &Row) -> f64 {
    let p = row.degree as f64;
    let along = (2.0 * p + 1.0 + (p - 1.0) * (p + 1.0)) / p;
    row.dofs as f64 * along.powi(3) * row.components as f64
}

fn line(row: &Row) -> String {
    let mega = |rate: f64| rate / 1e6;
    let csr = row.csr_dofs_per_second();
    format!(
        "{:<14} {:>2} {:>9} {:>5}  {:<13} {:>8.1} {:>8.1} {:>7.0} {:>7.0} {:>5.0}% {:>8} {:>6}\n",
        row.problem,
        row.degree,
        row.dofs,
        row.lanes,
        row.geometry,
        mega(row.dofs_per_second()),
        row.flops_per_second() / 1e9,
        row.bytes_per_dof,
        row.flops_per_dof,
        100.0 * row.floor_fraction,
        csr.map_or_else(String::new, |csr| format!("{:.1}", mega(csr))),
        csr.map_or_else(String::new, |csr| format!("{:.2}", row.dofs_per_second() / csr)),
    )
}

fn value(row: &Row) -> Value {
    json!({
        "suite": "bp",
        "problem": row.problem,
        "cell": "hexahedron",
        "degree": row.degree,
        "quadrature": row.quadrature,
        "components": row.components,
        "backend": "cpu",
        "strategy": "cell_per_lane",
        "lanes": row.lanes,
        "geometry": row.geometry,
        "scatter": "coloured",
        "precision": "f64",
        "threads": row.threads,
        "dofs": row.dofs,
        "dofs_per_second": row.dofs_per_second(),
        "bytes_per_dof": row.bytes_per_dof,
        "flops_per_dof": row.flops_per_dof,
        "operations_per_dof": row.operations_per_dof,
        "floor_fraction": row.floor_fraction,
        "csr_dofs_per_second": row.csr_dofs_per_second(),
    })
}
