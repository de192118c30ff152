//! Comparison of the kernels of every available instruction set, strategy and device with the reference.

use super::Settings;
use crate::Error;
use kernels_gen::choose::{PlanOverrides, own_geometry};
use kernels_gen::dialect::rust::Isa;
use kernels_gen::plan::Strategy;
use runtime::device::Device;
use runtime::device::jit::{Jit, JitError};
use runtime::kernels::compile::{CompileError, Execution, Target, facts};
use runtime::problem::{Context, Kernels, Platform, RunError, SetupError};
use runtime::processes::{ProcessGroup, Reduction};
use runtime::verify::VerificationProblem;
use runtime::verify::agreement::{ReferenceDistance, ReferenceResults};
use std::sync::Arc;

/// Strategies of GPU kernels; the plan chooses the number of cells per group.
const STRATEGIES: [Strategy; 4] = [
    Strategy::CellPerLane,
    Strategy::ThreadPerLine { cells: 0 },
    Strategy::ThreadPerDof,
    Strategy::ThreadTransposition { blocks: 0, batches: 0 },
];

/// Kernels in comparison with the reference.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelComparison {
    /// Name of the target: `cpu avx2`, `thread_per_line on opencl`.
    pub name: String,
    /// The result of the comparison.
    pub verdict: Verdict,
}

/// The result of comparing kernels.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// They were compared.
    Compared(ReferenceDistance),
    /// There are no such kernels for this form on these cells.
    Refused(String),
}

/// Kernels to be compared.
struct Candidate {
    name: String,
    platform: Platform,
    /// True if a compiler for them is optional.
    may_be_absent: bool,
}

/// Compares all available kernels. Several processes divide the comparisons, each on a whole mesh.
pub(super) fn compare(
    trial: &VerificationProblem,
    settings: &Settings,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<KernelComparison>, Error> {
    progress("the reference");
    let expected = trial.expected()?;
    let (group, candidates) = (&*settings.group, candidates(settings));
    let of = |number: usize| number % group.size();
    let (mut own, mut failed) = (Vec::new(), None);
    for (_, one) in candidates.iter().enumerate().filter(|(at, _)| of(*at) == group.rank()) {
        progress(&one.name);
        match compared(trial, &expected, one) {
            Ok(verdict) => own.push(verdict),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    let all = match (group.size(), failed) {
        (1, Some(error)) => return Err(error),
        (1, None) => own,
        (_, failed) => exchanged(group, own, failed, candidates.len())?,
    };
    let names = candidates.into_iter().map(|one| one.name);
    Ok(names.zip(all).map(|(name, verdict)| KernelComparison { name, verdict }).collect())
}

/// Combines the verdicts of all processes; returns the first error, if any process has one.
fn exchanged(
    group: &dyn ProcessGroup,
    own: Vec<Verdict>,
    failed: Option<Error>,
    count: usize,
) -> Result<Vec<Verdict>, Error> {
    let said = failed.iter().map(|error| format!("failed {error}"));
    let own = own.iter().map(written).chain(said);
    let own: Vec<String> = own.collect();
    // The separator occurs in no verdict.
    let all: Vec<String> = group
        .gather(own.join("\0").as_bytes())
        .iter()
        .map(|said| String::from_utf8_lossy(said).into_owned())
        .collect();
    let mut all: Vec<_> = all.iter().map(|said| said.split('\0')).collect();
    let size = group.size();
    let verdict = |at: usize| {
        let said = all[at % size].next().unwrap_or_default();
        read(said).map_err(|text| {
            let (rank, text) = (at % size, text.to_owned());
            Error::Run(RunError::Elsewhere { rank, size, text })
        })
    };
    let found = (0..count).map(verdict).collect();
    match (found, failed) {
        // The process with the error returns the original instead of its text.
        (Err(Error::Run(RunError::Elsewhere { rank, .. })), Some(error))
            if rank == group.rank() =>
        {
            Err(error)
        }
        (found, _) => found,
    }
}

/// Serialises a verdict for other processes, without loss.
fn written(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Compared(ReferenceDistance { worst: [a, b, c] }) => {
            format!("compared {} {} {}", a.to_bits(), b.to_bits(), c.to_bits())
        }
        Verdict::Refused(reason) => format!("refused {reason}"),
    }
}

/// Deserialises the verdict of another process, or its error.
fn read(said: &str) -> Result<Verdict, &str> {
    match said.split_once(' ').unwrap_or((said, "")) {
        ("compared", numbers) => {
            let mut numbers = numbers.split(' ').map(|bits| bits.parse().unwrap_or(u64::MAX));
            let mut next = || numbers.next().map_or(f64::NAN, f64::from_bits);
            Ok(Verdict::Compared(ReferenceDistance { worst: [next(), next(), next()] }))
        }
        ("refused", reason) => Ok(Verdict::Refused(reason.to_owned())),
        (_, error) => Err(error),
    }
}

/// Returns the kernels that are available in all processes, in a common order.
fn candidates(settings: &Settings) -> Vec<Candidate> {
    let mut all = Vec::new();
    let compiled = settings.execution != Execution::Interpreted
        && (Jit::global().compiler().is_ok() || settings.execution == Execution::Compiled);
    let native = Target::native();
    let mut common = [f64::from(u8::from(compiled)), f64::from(rank(native.isa))];
    settings.group.reduce(Reduction::Least, &mut common);
    let mut add = |name: String, target: Target, device: Option<&Arc<dyn Device>>| {
        let automatic = settings.execution == Execution::Automatic;
        let may_be_absent = automatic && target.execution == Execution::Compiled;
        let platform = Platform::new(target, device.cloned());
        all.push(Candidate { name, platform, may_be_absent });
    };
    if common[0] > 0.0 {
        for isa in [Isa::Portable, Isa::Avx2, Isa::Avx512] {
            if f64::from(rank(isa)) <= common[1] {
                let target = Target { isa, execution: Execution::Compiled, ..native };
                add(format!("cpu {isa}"), target, None);
            }
        }
    }
    let interpreted = Target { execution: Execution::Interpreted, ..native };
    add("cpu interpreted".to_owned(), interpreted, None);
    let arranged =
        |strategy| PlanOverrides { strategy: Some(strategy), ..PlanOverrides::default() };
    for strategy in STRATEGIES {
        let target = Target { wishes: arranged(strategy), ..interpreted };
        add(format!("{strategy} interpreted"), target, None);
    }
    for device in &settings.devices {
        for strategy in STRATEGIES {
            let target = Target { wishes: arranged(strategy), ..native };
            add(format!("{strategy} on {}", device.backend()), target, Some(device));
        }
    }
    all
}

/// Returns the rank of an instruction set: a CPU with one also has those of lower rank.
fn rank(isa: Isa) -> u8 {
    match isa {
        Isa::Portable => 0,
        Isa::Avx2 => 1,
        Isa::Avx512 => 2,
    }
}

fn compared(
    trial: &VerificationProblem,
    expected: &ReferenceResults,
    of: &Candidate,
) -> Result<Verdict, Error> {
    let compared = one(trial, expected, &of.platform);
    // The compiler does not work: as without one, kernels that need none are compared.
    if of.may_be_absent
        && let Err(Error::Run(RunError::Setup(error))) = &compared
        && let SetupError::Compile(CompileError::Jit(JitError::Compiler(error))) = &**error
    {
        return Ok(Verdict::Refused(error.to_string().replace("\nhelp: ", "; help: ")));
    }
    compared
}

fn one(
    trial: &VerificationProblem,
    expected: &ReferenceResults,
    platform: &Platform,
) -> Result<Verdict, Error> {
    let wished = platform.target.wishes.strategy;
    let mut compared = trial.compare(expected, platform);
    if wished.is_some()
        && let Err(RunError::Setup(error)) = &compared
        && matches!(**error, SetupError::Compile(CompileError::Plan(_)))
    {
        // Some geometry, such as corners, is supported by a thread per cell only; all strategies can read the mesh's
        // own geometry.
        let Context { elements, on, .. } = &trial.context;
        let (target, geometry) = (
            platform.target,
            Some(own_geometry(&trial.context.problem.form, elements, &facts(on))),
        );
        let wishes = PlanOverrides { geometry, ..target.wishes };
        compared = trial.compare(expected, &platform.with_target(Target { wishes, ..target }));
    }
    Ok(match compared {
        Ok((distance, kernels)) => match wished.filter(|&wished| !has(&kernels, wished)) {
            None => Verdict::Compared(distance),
            Some(_) => Verdict::Refused(
                "the plan takes another strategy for this form on these cells".to_owned(),
            ),
        },
        Err(RunError::Setup(error)) => match *error {
            SetupError::Plan(error) | SetupError::Compile(CompileError::Plan(error)) => {
                Verdict::Refused(error.to_string())
            }
            error => return Err(RunError::from(error).into()),
        },
        Err(error) => return Err(error.into()),
    })
}

/// Returns whether some kernel has the requested strategy; unsupported ones are replaced by others.
fn has(kernels: &Kernels, wished: Strategy) -> bool {
    let same = |of: Strategy| std::mem::discriminant(&of) == std::mem::discriminant(&wished);
    kernels.plans.iter().any(|plan| same(plan.strategy))
}
