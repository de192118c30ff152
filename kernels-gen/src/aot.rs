//! Ahead-of-time kernels: (`PointForm`, settings) → every kernel that any mesh can request.
//!
//! A plan depends on a few properties of the mesh ([`MeshFacts`]); this module generates the kernels for all
//! combinations. At run time the same choices lead to the same kernels, which are found by their hash.

use crate::abi::KernelAbi;
use crate::choose::{MeshFacts, PlanOverrides, choose};
use crate::dialect::rust::Isa;
use crate::element::Cell;
use crate::generate::elements;
use crate::kir::{Kernel, Precision};
use crate::pass::for_vectors;
use crate::plan::{Elements, Plan, PlanError, Task};
use crate::strategy::lower;
use fem_dsl::point::PointForm;
use fem_dsl::problem::Quadrature;

/// A setting for which kernels are generated ahead of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// The cells.
    pub cell: Cell,
    /// The degree k of the form.
    pub degree: usize,
    /// The degree of the geometry.
    pub order: usize,
    /// The quadrature, if it is prescribed.
    pub quadrature: Option<Quadrature>,
}

/// The tasks of every operator.
pub const TASKS: [Task; 3] = [Task::Residual, Task::Action, Task::Diagonal];

/// A kernel, legalised, with its interface.
pub type LegalisedKernel = (Kernel, KernelAbi);

/// Generates all kernels of a setting for one instruction set, in double precision and without forced choices.
pub fn kernels(
    form: &PointForm,
    setting: Setting,
    isa: Isa,
) -> Result<Vec<LegalisedKernel>, PlanError> {
    let Setting { cell, degree, order, quadrature } = setting;
    let elements = elements(form, cell, degree, order, quadrature)?;
    let plans = plans(form, &elements, order, isa)?;
    let make = |plan: &Plan| {
        let (kernel, abi) = lower(form, &elements, plan)?;
        Ok((for_vectors(kernel)?, abi))
    };
    plans.iter().map(make).collect()
}

/// Returns the distinct plans that a mesh of this order can request.
pub fn plans(
    form: &PointForm,
    elements: &Elements,
    order: usize,
    isa: Isa,
) -> Result<Vec<Plan>, PlanError> {
    let mut all: Vec<Plan> = Vec::new();
    for facts in facts(elements.cell, order) {
        let overrides = PlanOverrides::default();
        for plan in choose(form, elements, &facts, &TASKS, isa, Precision::F64, &overrides)? {
            if !all.contains(&plan) {
                all.push(plan);
            }
        }
    }
    Ok(all)
}

/// Returns all possible properties of a mesh of this order.
fn facts(cell: Cell, order: usize) -> impl Iterator<Item = MeshFacts> {
    let straight_simplex = !cell.is_factorised() && order == 1;
    let affine = if straight_simplex { vec![true] } else { vec![true, false] };
    let runs = if cell.is_factorised() { vec![true, false] } else { vec![false] };
    affine.into_iter().flat_map(move |affine| {
        runs.clone().into_iter().flat_map(move |runs| {
            let facts = MeshFacts { affine, order, runs, ..MeshFacts::default() };
            [facts, MeshFacts { periodic: true, ..facts }]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{LinePoints, Rule};
    use std::collections::BTreeSet;

    fn form(dim: usize) -> PointForm {
        let text = "form a { field u: scalar; f0[u] = u^2 * x[0]; f1[u] = (1 + u^2) * grad(u); }";
        let source = fem_dsl::source::Source::new("a", text);
        let (program, _) = fem_dsl::program::compile(&source);
        program.expect("a right form").point_form("a", dim).expect("the form holds")
    }

    #[test]
    fn kernels_of_every_mesh_exist() {
        for (cell, degree, order) in [
            (Cell::Interval, 3, 1),
            (Cell::Quadrilateral, 1, 1),
            (Cell::Quadrilateral, 3, 2),
            (Cell::Triangle, 1, 1),
            (Cell::Triangle, 2, 2),
            (Cell::Hexahedron, 2, 1),
        ] {
            let form = form(cell.dim());
            let setting = Setting { cell, degree, order, quadrature: None };
            let isa = Isa::Avx2;
            let made = kernels(&form, setting, isa).expect("supported");
            let hashes: BTreeSet<u64> = made.iter().map(|(_, abi)| abi.hash).collect();
            assert_eq!(hashes.len(), made.len(), "each once");
            let elements = elements(&form, cell, degree, order, None).expect("supported");
            for bits in 0..8 {
                let [affine, runs, periodic] = [1, 2, 4].map(|bit| bits & bit != 0);
                let straight = !cell.is_factorised() && order == 1;
                if (straight && !affine) || (runs && !cell.is_factorised()) {
                    continue;
                }
                let facts = MeshFacts { affine, order, runs, periodic, ..MeshFacts::default() };
                let overrides = PlanOverrides::default();
                let plans =
                    choose(&form, &elements, &facts, &TASKS, isa, Precision::F64, &overrides);
                for plan in plans.expect("supported") {
                    let (_, abi) = lower(&form, &elements, &plan).expect("supported");
                    assert!(hashes.contains(&abi.hash), "{facts:?}: {}", abi.name);
                }
            }
        }
    }

    #[test]
    fn rules_of_one_size_have_hashes_of_their_own() {
        let form = form(2);
        let cell = Cell::Quadrilateral;
        let line = |line| Rule::Tensor { cell, line };
        let hash = |rule| {
            let elements = elements(&form, cell, 1, 1, None).expect("supported");
            let elements = Elements { rule, ..elements };
            let plans = plans(&form, &elements, 1, Isa::Portable).expect("supported");
            let abis = plans.iter().map(|plan| lower(&form, &elements, plan).expect("supported").1);
            abis.map(|abi| abi.hash).collect::<BTreeSet<u64>>()
        };
        let (gauss, lobatto) =
            (hash(line(LinePoints::Gauss(4))), hash(line(LinePoints::GaussLobatto(4))));
        assert!(gauss.is_disjoint(&lobatto));
    }
}
