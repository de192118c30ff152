//! `ahead`: (`PointForm`, settings) → every kernel that a mesh can ask for, before there is a mesh.
//!
//! What a plan needs to know of a mesh are a few facts ([`MeshFacts`]); here kernels are made for all
//! of them. At run time the same choices lead to the same kernels, which are found by their hash.

use crate::abi::KernelAbi;
use crate::dialect::rust::Isa;
use crate::element::Cell;
use crate::generate::elements;
use crate::kir::{Kernel, Precision};
use crate::pass::legalise::legalise;
use crate::plan::choose::{MeshFacts, Wishes, choose};
use crate::plan::{Elements, Plan, PlanError, Task};
use crate::strategy::lower;
use fem_dsl::point::PointForm;

/// What kernels are made for ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// The cells.
    pub cell: Cell,
    /// The degree k of the form.
    pub degree: usize,
    /// The degree of the geometry.
    pub order: usize,
    /// The quadrature degree D, where it is set.
    pub quadrature: Option<usize>,
}

/// The tasks of every operator.
pub const TASKS: [Task; 3] = [Task::Residual, Task::Action, Task::Diagonal];

/// A kernel, legalised, with its interface.
pub type Made = (Kernel, KernelAbi);

/// All kernels of a setting for one instruction set, in double precision and with nothing forced.
pub fn kernels(form: &PointForm, setting: Setting, isa: Isa) -> Result<Vec<Made>, PlanError> {
    let Setting { cell, degree, order, quadrature } = setting;
    let elements = elements(form, cell, degree, order, quadrature)?;
    let plans = plans(form, &elements, order, isa)?;
    let make = |plan: &Plan| {
        let (kernel, abi) = lower(form, &elements, plan)?;
        Ok((legalise(kernel), abi))
    };
    plans.iter().map(make).collect()
}

/// The plans that a mesh of this order can ask for, each once.
pub fn plans(
    form: &PointForm,
    elements: &Elements,
    order: usize,
    isa: Isa,
) -> Result<Vec<Plan>, PlanError> {
    let mut all: Vec<Plan> = Vec::new();
    for facts in facts(elements.cell, order) {
        let wishes = Wishes::default();
        for plan in choose(form, elements, &facts, &TASKS, isa, Precision::F64, &wishes)? {
            if !all.contains(&plan) {
                all.push(plan);
            }
        }
    }
    Ok(all)
}

/// All that can be true of a mesh of this order. The kernels of a mesh without constrained unknowns
/// are among those of one with them.
fn facts(cell: Cell, order: usize) -> impl Iterator<Item = MeshFacts> {
    let straight_simplex = !cell.is_tensor() && order == 1;
    let affine = if straight_simplex { vec![true] } else { vec![true, false] };
    let runs = if cell.is_tensor() { vec![true, false] } else { vec![false] };
    affine.into_iter().flat_map(move |affine| {
        runs.clone().into_iter().map(move |runs| MeshFacts {
            affine,
            order,
            runs,
            constrained: true,
        })
    })
}
