//! The suite on a device with separate memory, or on one device per process.

use std::fmt;
use std::sync::Arc;

use fem_bench::device::{csr_seconds, prepare, prepare_part};
use fem_bench::{BenchError, Case, input, prepare as prepare_host};
use kernels_gen::choose::PlanOverrides;
use runtime::algebra::vector::{Precision, Vector};
use runtime::device::Device;
use runtime::kernels::compile::{Execution, Target};
use runtime::kernels::rates::device::rates;
use runtime::operator::assemble::Csr;
use runtime::processes::Reduction;
use runtime::solve::LinearOperator;
use serde_json::json;

use super::Arguments;
use super::rows::{degrees, has_csr, line, say, several, value};
use crate::console::Console;
use crate::processes::Processes;
use crate::report::{Failure, Report};

/// DoFs of the problem on which results are compared with the interpreter's.
const CHECK: usize = 3000;

pub(super) fn suite(
    arguments: &Arguments,
    device: &Arc<dyn Device>,
    cases: &[Case],
    processes: &Processes,
    report: &mut Report,
    console: &Console,
) -> Result<(), Failure> {
    console.progress().say("measuring the device");
    let group = processes.group();
    // All processes are timed concurrently.
    group.meet(None);
    let measured = rates(&**device)?.of_all(&**group);
    report.text.push_str(&format!(
        "{}{device:?}: copy {:.0} GB/s, multiply-adds {:.1} GFLOP/s\n",
        several(processes),
        measured.copy / 1e9,
        measured.flops / 1e9
    ));
    let wishes = super::wishes(arguments);
    for case in cases {
        let (degrees, note) = degrees(case, &arguments.degrees());
        report.text.extend(note);
        for degree in degrees {
            say(console, case, degree, CHECK);
            // Each process has the whole of such a small problem.
            let (error, compiled) = check(device, case, degree, &wishes)?;
            let mut error = [error];
            group.reduce(Reduction::Largest, &mut error);
            let [error] = error;
            for dofs in arguments.sizes().each() {
                say(console, case, degree, dofs);
                let how = (Precision::F64, &wishes);
                let mut prepared = prepare_part(device, case, degree, dofs, how, group)?;
                let mut row = prepared.measure(&measured)?;
                // The vendor's library supports one device.
                if !processes.are_several() && has_csr(arguments, &row) {
                    // Its numbering is that of the host: the same entries in another order.
                    let host = prepare_host(case, degree, dofs, &Target::native())?;
                    let matrix = Csr::assemble(&host.operator).map_err(BenchError::from)?;
                    row.csr_seconds = csr_seconds(&**device, &matrix)?;
                }
                let shown = line(&row);
                let loaded = prepared.compile_seconds();
                let shown = format!(
                    "{}  error {error:.1e}  {compiled}, then {:.1} ms",
                    shown.trim_end(),
                    1e3 * loaded
                );
                report.row(&format!("{shown}\n"), console);
                let mut value = value(&row);
                value["backend"] = json!(device.backend().word());
                value["device"] = json!(device.name());
                value["strategy"] = json!(prepared.plan().strategy.to_string());
                value["scatter"] = json!(prepared.plan().scatter.to_string());
                value["error"] = json!(error);
                value["compile_seconds"] = json!(compiled.seconds);
                value["compiled_before"] = json!(compiled.cached);
                value["load_seconds"] = json!(loaded);
                value["kernels"] = json!(compiled.kernels);
                report.json.push(value);
            }
        }
    }
    Ok(())
}

/// Compile time of kernels at their first use.
struct CompileTime {
    kernels: usize,
    seconds: f64,
    /// True if they were compiled before this program started.
    cached: bool,
}

impl fmt::Display for CompileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.cached { "loaded" } else { "compiled" };
        let (count, plural) = (self.kernels, if self.kernels == 1 { "" } else { "s" });
        write!(f, "{count} kernel{plural} {word} in {:.0} ms", 1e3 * self.seconds)
    }
}

/// Returns the largest difference from the interpreted kernels of the CPU, relative to the largest entry.
fn check(
    device: &Arc<dyn Device>,
    case: &Case,
    degree: usize,
    wishes: &PlanOverrides,
) -> Result<(f64, CompileTime), BenchError> {
    let mut prepared = prepare(device, case, degree, CHECK, Precision::F64, wishes)?;
    let compiled = CompileTime {
        kernels: prepared.n_kernels(),
        seconds: prepared.compile_seconds(),
        cached: prepared.compiled_before(),
    };
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
    Ok((worst / most, compiled))
}
