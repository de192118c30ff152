//! The kernels of every instruction set, strategy and device that there is, against the reference.

use super::Settings;
use crate::Error;
use kernels_gen::choose::{Wishes, own_geometry};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::plan::Strategy;
use runtime::compile::{CompileError, Execution, Target, facts};
use runtime::device::Device;
use runtime::jit::{Jit, JitError};
use runtime::run::{Kernels, RunError};
use runtime::verify::Trial;
use runtime::verify::agreement::{Distance, Expected};
use std::sync::Arc;

/// What GPUs' kernels may be arranged by; how many cells a group of threads has is left to the plan.
const STRATEGIES: [Strategy; 4] = [
    Strategy::CellPerLane,
    Strategy::ThreadPerLine { cells: 0 },
    Strategy::ThreadPerDof,
    Strategy::ThreadTransposition { blocks: 0, batches: 0 },
];

/// Kernels beside the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Who computes, in words: `cpu avx2`, `thread_per_line on opencl`.
    pub name: String,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of comparing kernels.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// They were compared.
    Compared(Distance),
    /// There are no such kernels for this form on these cells.
    Refused(String),
}

/// Compares everything there is.
pub(super) fn compare(
    trial: &Trial<'_>,
    settings: &Settings,
    told: &mut dyn FnMut(&str),
) -> Result<Vec<Compared>, Error> {
    told("the reference");
    let expected = trial.expected()?;
    let mut all = Vec::new();
    let compiled = settings.execution != Execution::Interpreted
        && (Jit::global().compiler().is_ok() || settings.execution == Execution::Compiled);
    let native = Target::native();
    if compiled {
        for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            if runs(isa, native.isa) {
                let name = format!("cpu {isa}");
                told(&name);
                let target = Target { isa, execution: Execution::Compiled, ..native };
                let compared =
                    match one(trial, &expected, name.clone(), &target, None) {
                        // It is of no use after all: what needs none is compared, as where there is none.
                        Err(Error::Run(RunError::Compile(CompileError::Jit(
                            JitError::Compiler(error),
                        )))) if settings.execution == Execution::Automatic => {
                            let reason = error.to_string().replace("\nhelp: ", "; help: ");
                            Compared { name, verdict: Verdict::Refused(reason) }
                        }
                        compared => compared?,
                    };
                all.push(compared);
            }
        }
    }
    let interpreted = Target { execution: Execution::Interpreted, ..native };
    told("cpu interpreted");
    let name = "cpu interpreted".to_owned();
    all.push(one(trial, &expected, name, &interpreted, None)?);
    for strategy in STRATEGIES {
        let wishes = Wishes { strategy: Some(strategy), ..Wishes::default() };
        let name = format!("{strategy} interpreted");
        told(&name);
        all.push(one(trial, &expected, name, &Target { wishes, ..interpreted }, None)?);
    }
    for device in &settings.devices {
        for strategy in STRATEGIES {
            let wishes = Wishes { strategy: Some(strategy), ..Wishes::default() };
            let name = format!("{strategy} on {}", device.backend());
            told(&name);
            let target = Target { wishes, ..native };
            all.push(one(trial, &expected, name, &target, Some(Arc::clone(device)))?);
        }
    }
    Ok(all)
}

/// Whether a processor with one instruction set has another.
fn runs(isa: Isa, here: Isa) -> bool {
    let rank = |isa| match isa {
        Isa::Portable => 0,
        Isa::Avx2 => 1,
        Isa::Avx512 => 2,
    };
    rank(isa) <= rank(here)
}

fn one(
    trial: &Trial<'_>,
    expected: &Expected,
    name: String,
    target: &Target,
    device: Option<Arc<dyn Device>>,
) -> Result<Compared, Error> {
    let wished = target.wishes.strategy;
    let compare = |target: &Target| trial.compare(expected, target, device.clone());
    let mut compared = compare(target);
    if let (Err(RunError::Compile(CompileError::Plan(_))), Some(_)) = (&compared, wished) {
        // What a thread a cell reads fast, such as corners, others cannot read; they all read the mesh's own geometry.
        let setup = &trial.setup;
        let geometry = own_geometry(&setup.elements, &facts(&setup.on));
        let wishes = Wishes { geometry: Some(geometry), ..target.wishes };
        compared = compare(&Target { wishes, ..*target });
    }
    let verdict = match compared {
        Ok((distance, kernels)) => match wished.filter(|&wished| !has(&kernels, wished)) {
            None => Verdict::Compared(distance),
            Some(_) => Verdict::Refused(
                "the plan takes another strategy for this form on these cells".to_owned(),
            ),
        },
        Err(RunError::Plan(error) | RunError::Compile(CompileError::Plan(error))) => {
            Verdict::Refused(error.to_string())
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Compared { name, verdict })
}

/// Whether some kernel is arranged as was wished; where none can be, others take its place.
fn has(kernels: &Kernels, wished: Strategy) -> bool {
    let same = |of: Strategy| std::mem::discriminant(&of) == std::mem::discriminant(&wished);
    kernels.plans.iter().any(|plan| same(plan.strategy))
}
