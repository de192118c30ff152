//! `thread_transposition`: the threads of a group first own quadrature points, then basis functions.
//!
//! M. G. Knepley, K. Rupp, A. R. Terrel, "Finite element integration with quadrature on the GPU" (2016). A group of N_t
//! = LCM(N_b, N_q) · N_comp · N_bl threads processes a batch of cells, and N_cb batches one after another:
//!
//! ```text
//! load        thread (cell, node): unknowns and nodal data to shared memory;  thread (cell): J⁻¹ and det J
//! ── barrier
//! evaluate    thread (cell, point): u, ∇u, the point function; what is tested to shared memory
//! ── barrier, the transposition
//! integrate   thread (cell, node): Σ_q B f0 + D f1 without a reduction; atomic additions
//! ```
//!
//! In each phase a thread processes several cells in series. The cell is the fastest digit of the thread index and
//! arrays have the cell last, so that neighbours read consecutive entries: of DoFs in shared memory, and of index
//! arrays, geometry and stored data in global memory. Tables differ between the threads of a warp; they are in a memory
//! whose cache serves several addresses at once.
//!
//! One thread owns all components of a point or a node, so that no field is evaluated twice. A batch has as many cells
//! as keep all threads busy in both phases, or as fit into shared memory. Cells that pad the last batch are computed and
//! not written: no cell is left to the CPU.
//!
//! If the cells of a batch sum first, its nodal values are in slots (`slots`). Points and corners read them without the
//! first phase, and terms of slots collect the integrals. Such batches have more cells, or fewer if slots leave no
//! space. A cell with one point has nothing to sum: the point's thread tests it with each basis function, and threads
//! that own basis functions of the batch sum over cells.

mod geometry;
mod hanging;
mod integrate;
mod layout;
mod phases;
mod resolve;
mod sums;

use crate::abi::{Indices, KernelAbi, THREADS};
use crate::kir::Kernel;
use crate::lower::facts::KernelFacts;
use crate::lower::lowering::Lowering;
use crate::lower::slots;
use crate::plan::{Geometry, PlanError, Task};
pub use layout::Layout;
use phases::Transposition;

/// Returns the bytes of shared memory per cell.
pub(crate) fn bytes_of_cell(facts: &KernelFacts<'_>) -> usize {
    phases::numbers_of_cell(facts) * facts.plan.precision.bytes()
}

/// Checks that this strategy supports a plan.
pub(crate) fn check(
    facts: &KernelFacts<'_>,
    blocks: usize,
    batches: usize,
) -> Result<(), PlanError> {
    let KernelFacts { form, elements, plan, .. } = *facts;
    let refuse = |text: String| Err(PlanError::Unsupported(text));
    if blocks == 0 || batches == 0 || plan.lanes == 0 {
        return refuse("a group of threads needs a block, a batch and a cell".to_owned());
    }
    if plan.hanging && (plan.task == Task::Diagonal || facts.sums_first()) {
        let what = "diagonal of hanging nodes, and does not sum them first";
        return refuse(format!("thread transposition has no {what}"));
    }
    if plan.indices == Indices::Runs {
        return refuse("thread transposition addresses nodes or unknowns, not runs".to_owned());
    }
    if plan.geometry == Geometry::Corners && elements.cell.is_tensor() {
        return refuse("thread transposition gathers the corners of simplices only".to_owned());
    }
    let threads = Layout::new(form, elements, blocks, plan.lanes).threads;
    if threads > THREADS {
        return refuse(format!(
            "{blocks} blocks of thread transposition would take {threads} threads"
        ));
    }
    let own = plan.lanes * bytes_of_cell(facts);
    let bytes = own + slots::bytes(facts);
    if bytes > plan.shared_bytes {
        let cells = plan.lanes;
        return refuse(format!("{cells} cells a batch would take {bytes} bytes of shared memory"));
    }
    Ok(())
}

/// Generates the kernel.
pub(super) fn lower(facts: &KernelFacts<'_>, blocks: usize, batches: usize) -> (Kernel, KernelAbi) {
    let KernelFacts { form, elements, plan, .. } = *facts;
    let mut setting = Lowering::new(facts);
    let layout = Layout::new(form, elements, blocks, plan.lanes);
    setting.b.set_threads(layout.threads, 1);
    setting.b.set_series(batches);
    setting.b.set_cells(layout.cells);
    Transposition::new(&mut setting, layout, batches).write(&mut setting);
    setting.finish()
}
