//! The suite on a device with memory of its own.

use std::sync::Arc;

use kernels_gen::plan::choose::Wishes;
use runtime::assemble::Csr;
use runtime::bench::device::{csr_seconds, prepare, rates};
use runtime::bench::{BenchError, Case, input, prepare as prepare_host};
use runtime::compile::{Execution, Target};
use runtime::device::Device;
use runtime::solve::LinearOperator;
use runtime::vector::{Precision, Vector};
use serde_json::{Value, json};

use super::{Arguments, line, value};
use crate::report::Failure;

/// Unknowns of the problem on which results are compared with the interpreter's.
const CHECK: usize = 3000;

pub(super) fn suite(
    arguments: &Arguments,
    device: &Arc<dyn Device>,
    cases: &[Case],
) -> Result<(String, Vec<Value>), Failure> {
    let measured = rates(&**device)?;
    let mut text = format!(
        "{device:?}: copy {:.0} GB/s, multiply-adds {:.1} GFLOP/s\n",
        measured.copy / 1e9,
        measured.flops / 1e9
    );
    let mut values = Vec::new();
    let wishes = super::wishes(arguments);
    for case in cases {
        for degree in arguments.degree.first..=arguments.degree.last {
            let degree = degree as usize;
            let error = check(device, case, degree, &wishes)?;
            for dofs in arguments.dofs.each() {
                let mut prepared = prepare(device, case, degree, dofs, Precision::F64, &wishes)?;
                let mut row = prepared.measure(&measured)?;
                if super::has_csr(arguments, &row) {
                    // Its numbering is the host's own: the same entries in another order.
                    let host = prepare_host(case, degree, dofs, &Target::native())?;
                    let matrix = Csr::assemble(&host.operator).map_err(BenchError::from)?;
                    row.csr_seconds = csr_seconds(&**device, &matrix)?;
                }
                let shown = line(&row);
                text.push_str(&format!("{}  error {error:.1e}\n", shown.trim_end()));
                eprintln!("{}  error {error:.1e}", shown.trim_end());
                let mut value = value(&row);
                value["backend"] = json!(device.backend().word());
                value["device"] = json!(device.name());
                value["strategy"] = json!(prepared.plan().strategy.to_string());
                value["scatter"] = json!(prepared.plan().scatter.to_string());
                value["error"] = json!(error);
                value["compile_seconds"] = json!(prepared.compile_seconds());
                values.push(value);
            }
        }
    }
    Ok((text, values))
}

/// The largest difference from the interpreted kernels of the CPU, relative to the largest entry.
fn check(
    device: &Arc<dyn Device>,
    case: &Case,
    degree: usize,
    wishes: &Wishes,
) -> Result<f64, BenchError> {
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
