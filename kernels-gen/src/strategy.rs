//! `lower`: (`PointForm`, `Elements`, `Plan`) → `kir::Kernel` + `KernelAbi`, one file a strategy.
//!
//! What strategies share: `setting` (what a kernel reads, evaluates and writes), `nodal` (gather and
//! scatter), `slots` (the nodes of a batch, where its cells sum first), `geometry` (the map of a cell), `point` (the point function), `factors` (1D tables), `diagonal`.

pub mod cell_per_lane;
mod diagonal;
mod factors;
mod geometry;
mod nodal;
mod point;
mod setting;
mod slots;
pub mod thread_per_dof;
pub mod thread_per_line;
pub mod thread_transposition;

use crate::abi::reach::reaches;
use crate::abi::{KernelAbi, hash};
use crate::kir::Kernel;
use crate::kir::verify::VerifyError;
use crate::pass::simplify;
use crate::plan::{Elements, Plan, PlanError, Scatter, Strategy};
use fem_dsl::point::PointForm;

/// Bytes of shared memory that the slots of a batch take; nothing where cells do not sum first.
pub(crate) fn bytes_of_slots(form: &PointForm, elements: &Elements, plan: &Plan) -> usize {
    slots::numbers(&setting::Setting::new(form, elements, plan)) * plan.precision.bytes()
}

/// Whether a plan is supported for the form: its choices go together, and its strategy can do them.
pub fn check(form: &PointForm, elements: &Elements, plan: &Plan) -> Result<(), PlanError> {
    plan.check(form, elements)?;
    if plan.scatter == Scatter::Block {
        slots::check(form, elements, plan)?;
    }
    match plan.strategy {
        Strategy::CellPerLane => Ok(()),
        Strategy::ThreadPerLine { cells } => thread_per_line::check(form, elements, plan, cells),
        Strategy::ThreadPerDof => thread_per_dof::check(form, elements, plan),
        Strategy::ThreadTransposition { blocks, batches } => {
            thread_transposition::check(form, elements, plan, blocks, batches)
        }
    }
}

/// Writes the kernel of a plan.
pub fn lower(
    form: &PointForm,
    elements: &Elements,
    plan: &Plan,
) -> Result<(Kernel, KernelAbi), PlanError> {
    check(form, elements, plan)?;
    let (kernel, mut abi) = match plan.strategy {
        Strategy::CellPerLane => cell_per_lane::lower(form, elements, plan),
        Strategy::ThreadPerLine { cells } => thread_per_line::lower(form, elements, plan, cells),
        Strategy::ThreadPerDof => thread_per_dof::lower(form, elements, plan),
        Strategy::ThreadTransposition { blocks, batches } => {
            thread_transposition::lower(form, elements, plan, blocks, batches)
        }
    };
    let kernel = simplify(kernel)?;
    abi.hash = hash(&kernel.to_string());
    let what = reaches(&kernel, &abi.arguments);
    abi.reaches = what.map_err(|what| VerifyError { kernel: kernel.name.clone(), what })?;
    Ok((kernel, abi))
}
