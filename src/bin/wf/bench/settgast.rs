//! The suite `settgast`: low-order operators on hexahedra in all representations → rows, and the tables and figures of
//! Settgast and others (2023).

mod figures;
mod model;
mod tables;

use std::sync::Arc;

use fem_bench::low_order::{
    ITERATIONS, Iterations, OperatorVariant, PROBLEMS, Passes, ProductCosts, TimedPass,
    TimedSystem, grid,
};
use fem_bench::{BenchError, CASES, Case};
use runtime::device::Device;
use runtime::kernels::compile::CompileError;
use runtime::kernels::rates::device::rates as device_rates;
use runtime::kernels::rates::{Rates, measure as measure_rates};
use runtime::mesh::Mesh;
use serde_json::{Value, json};

use super::{Arguments, CSR_ENTRIES, Sizes, machine, named, named_in};
use crate::console::Console;
use crate::report::{Failure, Report};
use model::of_case;

pub(super) use figures::draw;

/// Sizes without `--dofs`.
const SIZES: Sizes = Sizes { first: 1e4, last: 1e6 };

/// One representation on one mesh.
struct Row {
    problem: &'static str,
    cells: usize,
    dofs: usize,
    way: OperatorVariant,
    found: Result<RepresentationMeasurement, String>,
}

/// Its measurements.
struct RepresentationMeasurement {
    counted: ProductCosts,
    /// Seconds per product.
    seconds: f64,
    /// The largest difference from the product of the first representation, relative to the largest entry.
    difference: f64,
    /// Iterations: with all variants of vector passes for the first available representation; for the others with those
    /// of our solver.
    iterations: Vec<(Passes, Iterations)>,
}

/// The vector passes on one mesh.
struct Vectors {
    problem: &'static str,
    dofs: usize,
    passes: Vec<TimedPass>,
}

/// All measurements.
struct SuiteMeasurements {
    rates: Rates,
    rows: Vec<Row>,
    vectors: Vec<Vectors>,
}

impl Row {
    /// Returns the cells in each direction.
    fn side(&self) -> usize {
        (self.cells as f64).cbrt().round() as usize
    }

    /// Returns the DoFs per second of a product.
    fn rate(&self) -> Option<f64> {
        Some(self.dofs as f64 / self.found.as_ref().ok()?.seconds)
    }

    /// Returns the timing of an iteration.
    fn iteration(&self, passes: Passes) -> Option<&Iterations> {
        let mut all = self.found.as_ref().ok()?.iterations.iter();
        all.find(|(of, _)| *of == passes).map(|(_, iterations)| iterations)
    }

    /// Returns the DoFs per second of an iteration.
    fn iteration_rate(&self, passes: Passes) -> Option<f64> {
        self.iteration(passes).map(|iterations| self.dofs as f64 / iterations.seconds)
    }
}

impl SuiteMeasurements {
    /// Returns the rows of a problem at a size.
    fn at(&self, problem: &str, dofs: usize) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.problem == problem && row.dofs == dofs)
    }

    fn row(&self, problem: &str, dofs: usize, way: OperatorVariant) -> Option<&Row> {
        self.at(problem, dofs).find(|row| row.way == way)
    }

    /// Returns the measured sizes of a problem.
    fn sizes(&self, problem: &str) -> Vec<usize> {
        let own = self.rows.iter().filter(|row| row.problem == problem);
        let mut sizes: Vec<usize> = own.map(|row| row.dofs).collect();
        sizes.dedup();
        sizes
    }

    /// Returns the measured problems, each with its largest size.
    fn largest(&self) -> Vec<(&'static str, usize)> {
        let with = |problem: &'static str| Some((problem, self.sizes(problem).into_iter().max()?));
        PROBLEMS.into_iter().filter_map(with).collect()
    }

    /// Returns the best of a family by some rate.
    fn best(
        &self,
        problem: &str,
        dofs: usize,
        family: &str,
        rate: impl Fn(&Row) -> Option<f64>,
    ) -> Option<f64> {
        let own = self.at(problem, dofs).filter(|row| row.way.family() == family);
        own.filter_map(rate).max_by(f64::total_cmp)
    }
}

pub(super) fn suite(
    arguments: &Arguments,
    device: Option<&Arc<dyn Device>>,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    let known = CASES.map(|case| PROBLEMS.contains(&case.name).then_some(case));
    let known: Vec<Case> = known.into_iter().flatten().collect();
    let cases = named_in(&arguments.problem, &known, |case| case.name)?;
    console.progress().say("measuring this machine");
    let rates = match device {
        Some(device) => device_rates(&**device)?,
        None => measure_rates()?,
    };
    let (name, threads) = (named(device), rayon::current_num_threads());
    report.text.push_str(&format!(
        "{name}, {threads} threads of the processor: copy {:.1} GB/s, multiply-adds {:.1} GFLOP/s\n",
        rates.copy / 1e9,
        rates.flops / 1e9
    ));
    report.json.extend(model::values());
    report.text.push_str(&model::text(&rates));
    let mut measured = SuiteMeasurements { rates, rows: Vec::new(), vectors: Vec::new() };
    let done = rows_of(arguments, &cases, device, console, &mut measured, report);
    report.text.push_str(&tables::text(&measured));
    done
}

/// Measures all sizes, and keeps the measurements made before a failure.
fn rows_of(
    arguments: &Arguments,
    cases: &[Case],
    device: Option<&Arc<dyn Device>>,
    console: &Console,
    measured: &mut SuiteMeasurements,
    report: &mut Report,
) -> Result<(), Failure> {
    for case in cases {
        for dofs in arguments.dofs.unwrap_or(SIZES).each() {
            console.progress().say(format!("{}, {dofs} unknowns: a mesh", case.name));
            let mesh = grid(case, dofs)?;
            let from = measured.rows.len();
            let done = ways((arguments, case, &mesh), device, console, measured, report);
            let rows = &measured.rows[from..];
            report.json.extend(rows.iter().map(|row| value(row, rows, &measured.rates, device)));
            let own = |vectors: &&Vectors| {
                rows.first()
                    .is_some_and(|row| (row.problem, row.dofs) == (vectors.problem, vectors.dofs))
            };
            if let Some(vectors) = measured.vectors.last().filter(own) {
                report.json.extend(passes(vectors, &measured.rates, device));
            }
            done?;
        }
    }
    Ok(())
}

/// Measures all representations on one mesh.
fn ways(
    (arguments, case, mesh): (&Arguments, &Case, &Arc<Mesh>),
    device: Option<&Arc<dyn Device>>,
    console: &Console,
    measured: &mut SuiteMeasurements,
    report: &mut Report,
) -> Result<(), Failure> {
    let problem = of_case(case.name);
    let (cells, dofs) = (mesh.n_cells(), problem.components * mesh.n_vertices());
    let machine = machine(arguments, device);
    let mut first: Option<Vec<f64>> = None;
    for way in OperatorVariant::ALL {
        if way == OperatorVariant::Assembled && arguments.no_csr {
            continue;
        }
        console.progress().say(format!("{}, {dofs} unknowns, {way}", case.name));
        let entries = model::entries(problem, dofs);
        let made = match way {
            OperatorVariant::Assembled if entries > CSR_ENTRIES => {
                Ok(Err(format!("a matrix of more than {CSR_ENTRIES:.0e} entries")))
            }
            _ => refusable(TimedSystem::new(case, mesh, way, &machine)),
        }?;
        let found = match made {
            Err(reason) => Err(reason),
            Ok(mut system) => {
                let alone = first.is_none();
                if alone {
                    let passes = system.passes()?;
                    measured.vectors.push(Vectors { problem: case.name, dofs, passes });
                }
                let wanted = first.get_or_insert_with(|| system.result());
                Ok(found(&mut system, wanted, alone)?)
            }
        };
        let row = Row { problem: case.name, cells, dofs, way, found };
        report.row(&format!("{}\n", tables::line(&row)), console);
        measured.rows.push(row);
    }
    Ok(())
}

/// Treats a missing kernel or insufficient memory as a row of the tables rather than a failure.
fn refusable(
    made: Result<TimedSystem, BenchError>,
) -> Result<Result<TimedSystem, String>, BenchError> {
    match made {
        Err(BenchError::Compile(CompileError::Plan(reason))) => Ok(Err(reason.to_string())),
        Err(BenchError::Build(reason)) => Ok(Err(reason.to_string())),
        made => made.map(Ok),
    }
}

fn found(
    system: &mut TimedSystem,
    wanted: &[f64],
    all: bool,
) -> Result<RepresentationMeasurement, BenchError> {
    let most = wanted.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    let pairs = system.result().into_iter().zip(wanted);
    let difference = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / most;
    let seconds = system.product_seconds()?;
    let mut iterations = Vec::new();
    for passes in Passes::ALL {
        if all || passes == Passes::Fused {
            iterations.push((passes, system.iterate(passes, ITERATIONS)?));
        }
    }
    Ok(RepresentationMeasurement { counted: system.counted(), seconds, difference, iterations })
}

/// Returns the values common to all rows.
fn common(kind: &str, problem: &str, dofs: usize, device: Option<&Arc<dyn Device>>) -> Value {
    json!({
        "suite": "settgast",
        "row": kind,
        "problem": problem,
        "components": of_case(problem).components,
        "cell": "hexahedron",
        "degree": 1,
        "backend": device.map_or("cpu", |device| device.backend().word()),
        "device": device.map(|device| device.name()),
        "threads": rayon::current_num_threads(),
        "precision": "f64",
        "dofs": dofs,
    })
}

fn value(row: &Row, beside: &[Row], rates: &Rates, device: Option<&Arc<dyn Device>>) -> Value {
    let mut value = common("operator", row.problem, row.dofs, device);
    value["cells"] = json!(row.cells);
    value["way"] = json!(row.way.to_string());
    value["family"] = json!(row.way.family());
    let found = match &row.found {
        Ok(found) => found,
        Err(reason) => {
            value["refused"] = json!(reason);
            return value;
        }
    };
    let RepresentationMeasurement { counted, seconds, difference, .. } = found;
    let each = |all: f64| all / row.cells as f64;
    let assembled =
        beside.iter().find(|other| other.way == OperatorVariant::Assembled).and_then(Row::rate);
    value["seconds"] = json!(seconds);
    value["dofs_per_second"] = json!(row.rate());
    value["bytes_per_cell"] = json!(each(counted.bytes));
    value["flops_per_cell"] = json!(each(counted.flops));
    value["entries"] = json!(counted.entries);
    value["copy"] = json!(rates.copy);
    value["multiply_adds"] = json!(rates.flops);
    value["bytes_per_second"] = json!(counted.bytes / seconds);
    value["copy_fraction"] = json!(counted.bytes / seconds / rates.copy);
    value["flops_per_second"] = json!(counted.flops / seconds);
    value["flop_fraction"] = json!(counted.flops / seconds / rates.flops);
    value["over_assembled"] = json!(row.rate().zip(assembled).map(|(own, other)| own / other));
    value["difference"] = json!(difference);
    for (passes, word) in Passes::ALL.into_iter().zip(["separate", "table_4", "fused"]) {
        if let Some(iterations) = row.iteration(passes) {
            value[format!("cg_{word}_seconds")] = json!(iterations.seconds);
            value[format!("cg_{word}_dofs_per_second")] = json!(row.iteration_rate(passes));
        }
    }
    if let Some(iterations) = row.iteration(Passes::Fused) {
        value["cg_iterations"] = json!(iterations.count);
        value["cg_residual"] = json!(iterations.residual);
        value["operator_share"] = json!(seconds / iterations.seconds);
    }
    value
}

fn passes<'a>(
    vectors: &'a Vectors,
    rates: &'a Rates,
    device: Option<&'a Arc<dyn Device>>,
) -> impl Iterator<Item = Value> {
    vectors.passes.iter().map(move |pass| {
        let mut value = common("pass", vectors.problem, vectors.dofs, device);
        let bytes = (8 * pass.numbers * vectors.dofs) as f64;
        value["pass"] = json!(pass.name);
        value["of_table_4"] = json!(pass.of_table);
        value["bytes"] = json!(bytes);
        value["seconds"] = json!(pass.seconds);
        value["bytes_per_second"] = json!(bytes / pass.seconds);
        value["copy_fraction"] = json!(bytes / pass.seconds / rates.copy);
        value
    })
}
