//! `lower`: (`PointForm`, `Elements`, `Plan`) → `kir::Kernel` + `KernelAbi`, one file per strategy.
//!
//! A strategy defines the storage of a cell's data, its distribution over threads, and the barriers. The operations are
//! those of [`lower`](mod@crate::lower).

pub mod cell_per_lane;
pub mod thread_per_dof;
pub mod thread_per_line;
pub mod thread_transposition;

use crate::abi::access::indirect_accesses;
use crate::abi::{KernelAbi, hash};
use crate::kir::Kernel;
use crate::kir::verify::VerifyError;
use crate::lower::facts::KernelFacts;
use crate::lower::slots;
use crate::pass::simplify;
use crate::plan::traces::with_traces;
use crate::plan::{Elements, Plan, PlanError, Scatter, Strategy};
use fem_dsl::point::PointForm;

/// Checks that a plan is supported for the form: its choices are compatible, and its strategy implements them.
pub fn check(form: &PointForm, elements: &Elements, plan: &Plan) -> Result<(), PlanError> {
    let (form, elements) = with_traces(form, elements, plan);
    checked(&form, &elements, plan).map(drop)
}

/// Returns the properties of a kernel that its strategy supports.
fn checked<'a>(
    form: &'a PointForm,
    elements: &'a Elements,
    plan: &'a Plan,
) -> Result<KernelFacts<'a>, PlanError> {
    plan.check(form, elements)?;
    let facts = KernelFacts::new(form, elements, plan);
    if plan.scatter == Scatter::Block {
        slots::check(&facts)?;
    }
    match plan.strategy {
        Strategy::CellPerLane => {}
        Strategy::ThreadPerLine { cells } => thread_per_line::check(&facts, cells)?,
        Strategy::ThreadPerDof => thread_per_dof::check(&facts)?,
        Strategy::ThreadTransposition { blocks, batches } => {
            thread_transposition::check(&facts, blocks, batches)?;
        }
    }
    Ok(facts)
}

/// Generates the kernel of a plan.
pub fn lower(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
) -> Result<(Kernel, KernelAbi), PlanError> {
    let (form, elements) = with_traces(form, elements, plan);
    let facts = checked(&form, &elements, plan)?;
    let (kernel, mut abi) = match plan.strategy {
        Strategy::CellPerLane => cell_per_lane::lower(&facts),
        Strategy::ThreadPerLine { cells } => thread_per_line::lower(&facts, cells),
        Strategy::ThreadPerDof => thread_per_dof::lower(&facts),
        Strategy::ThreadTransposition { blocks, batches } => {
            thread_transposition::lower(&facts, blocks, batches)
        }
    };
    let kernel = simplify(kernel)?;
    abi.hash = hash(&kernel.fingerprint());
    let reaches = indirect_accesses(&kernel, &abi.arguments);
    abi.reaches =
        reaches.map_err(|violation| VerifyError { kernel: kernel.name.clone(), violation })?;
    Ok((kernel, abi))
}
