//! Kernels of many plans: all strategies, tasks, kinds of cells and precisions, before and after the passes of their
//! target.

use crate::choose::{MeshFacts, PlanOverrides, choose, choose_for_threads};
use crate::dialect::rust::Isa;
use crate::element::Cell;
use crate::generate::elements;
use crate::kir::{Kernel, Precision};
use crate::pass::{for_threads, for_vectors};
use crate::plan::{Elements, Geometry, Linearisation, Plan, Scatter, Strategy, Target, Task};
use crate::strategy::lower;
use fem_dsl::point::PointForm;
use fem_dsl::source::Source;
use std::collections::BTreeSet;

const NONLINEAR: &str =
    "form f { field u: scalar; f0[u] = u^3 + sin(x[0]); f1[u] = (1 + u^2) * grad(u); }";
const ELASTIC: &str = "form f { field u: vector; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; }";
const MASS: &str = "form mass { field u: scalar; f0[u] = u; }";
const STOKES: &str = "form f { field u: vector; field p: scalar in H1(k-1);
    f1[u] = grad(u) - p * I; f0[p] = div(u); }";
const BOUNDARY: &str = "form f { field u: scalar; aux kappa: scalar on cells; param c = 3.5;
    f1[u] = kappa * grad(u);
    on boundary \"wall\" { f0[u] = c * max(u, 0) + if u > 1 { u^4 } else { exp(-u) }; } }";
const DATA: &str = "form f { field u: scalar; aux w: scalar on nodes in H1(1);
    f0[u] = w * sqrt(abs(u) + 1); f1[u] = w * grad(u); }";

/// Forms, cells and degrees.
const SETTINGS: [(&str, Cell, usize); 11] = [
    (NONLINEAR, Cell::Quadrilateral, 3),
    (NONLINEAR, Cell::Tetrahedron, 2),
    (ELASTIC, Cell::Hexahedron, 1),
    (ELASTIC, Cell::Triangle, 2),
    (MASS, Cell::Quadrilateral, 2),
    (MASS, Cell::Hexahedron, 2),
    (MASS, Cell::Triangle, 1),
    (STOKES, Cell::Triangle, 2),
    (BOUNDARY, Cell::Triangle, 1),
    (BOUNDARY, Cell::Hexahedron, 1),
    (DATA, Cell::Quadrilateral, 1),
];

/// A plan, and its kernels: as lowered, and after the passes of the target.
pub(crate) struct Case {
    pub(crate) plan: Plan,
    pub(crate) kernels: Vec<Kernel>,
}

/// The properties by which plans are selected: one plan of each kind.
type Kind = (Task, String, Precision, Cell, Scatter, bool, bool);

fn kind(cell: Cell, plan: &Plan) -> Kind {
    let strategy = format!("{:?} {}", plan.target, plan.strategy);
    let boundary = plan.integral > 0;
    (plan.task, strategy, plan.precision, cell, plan.scatter, plan.hanging, boundary)
}

fn form(text: &str, dim: usize) -> PointForm {
    let (program, found) = fem_dsl::program::compile(&Source::new("f", text));
    let program = program.unwrap_or_else(|| panic!("{text}: {found:?}"));
    program.point_form(&program.forms()[0].name, dim).expect("a form")
}

/// The plans for a processor and for threads of a GPU; combinations that are not supported are left out.
fn plans(form: &PointForm, elements: &Elements) -> Vec<Plan> {
    let tensor = elements.cell.is_tensor();
    let plain = MeshFacts { affine: !tensor, ..MeshFacts::default() };
    let rich = MeshFacts { runs: tensor, hanging: tensor, ..plain };
    let strategies = [
        Strategy::CellPerLane,
        Strategy::ThreadPerLine { cells: 2 },
        Strategy::ThreadPerDof,
        Strategy::ThreadTransposition { blocks: 1, batches: 2 },
    ];
    let stored = PlanOverrides {
        geometry: Some(Geometry::Stored),
        linearisation: Some(Linearisation::Stored),
        ..PlanOverrides::default()
    };
    let mut found = Vec::new();
    // Transfers are planned for a field alone.
    let alone = form.name == "mass";
    for task in Task::ALL.into_iter().filter(|task| alone || !task.transfers()) {
        let settings = [
            (plain, Precision::F64, [Scatter::Atomic, Scatter::Block]),
            (rich, Precision::F32, [Scatter::Coloured, Scatter::Owner]),
        ];
        for (facts, precision, scatters) in settings {
            let tasks = [task];
            let isa = if precision == Precision::F64 { Isa::Avx512 } else { Isa::Avx2 };
            for wishes in [PlanOverrides::default(), stored] {
                let plans = choose(form, elements, &facts, &tasks, isa, precision, &wishes);
                found.extend(plans.unwrap_or_default());
            }
            for strategy in strategies {
                for scatter in scatters {
                    let (strategy, scatter) = (Some(strategy), Some(scatter));
                    let wishes = PlanOverrides { strategy, scatter, ..PlanOverrides::default() };
                    let plans =
                        choose_for_threads(form, elements, &facts, &tasks, precision, &wishes);
                    found.extend(plans.unwrap_or_default());
                }
            }
        }
    }
    found
}

/// Calls a function with the kernels of one plan of each kind.
pub(crate) fn for_each(mut each: impl FnMut(&Case)) {
    let mut seen = BTreeSet::new();
    for (text, cell, degree) in SETTINGS {
        let form = form(text, cell.dim());
        let elements = elements(&form, cell, degree, 1, None).expect("elements");
        for plan in plans(&form, &elements) {
            if !seen.insert(kind(cell, &plan)) {
                continue;
            }
            let Ok((kernel, _)) = lower(&form, &elements, &plan) else { continue };
            let mut kernels = vec![kernel.clone()];
            if plan.target == Target::Threads {
                for others in [true, false] {
                    let mut last = [kernel.clone()];
                    for_threads(&mut last, others).expect("a sound kernel");
                    kernels.extend(last);
                }
            } else {
                kernels.push(for_vectors(kernel).expect("a sound kernel"));
            }
            kernels.dedup();
            each(&Case { plan, kernels });
        }
    }
}
