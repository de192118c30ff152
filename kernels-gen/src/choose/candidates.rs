//! Candidate plans of a kernel → their costs and predicted times.
//!
//! A candidate is requested by [`PlanOverrides`] and planned like any kernel, so that the comparison applies to the
//! kernels that run. For a form with several cell integrals, the first is examined.

use super::{MeshFacts, PlanOverrides, choose, choose_for_threads, own_geometry};
use crate::abi::registers;
use crate::cost::{Cost, Machine, Times, count};
use crate::dialect::rust::Isa;
use crate::kir::Precision;
use crate::plan::{
    Elements, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
};
use crate::strategy::lower;
use fem_dsl::point::PointForm;

/// The target of kernels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum KernelTarget {
    /// Vectors of a CPU.
    Vectors(Isa),
    /// Threads of a GPU.
    Threads,
}

/// A plan and its cost.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The overrides that request it.
    pub overrides: PlanOverrides,
    /// The plan.
    pub plan: Plan,
    /// Cost per cell.
    pub cost: Cost,
    /// Threads per group; 0 on CPUs.
    pub threads: usize,
    /// Register limit per thread; 0 on CPUs.
    pub registers: usize,
    /// Bytes of shared memory per group.
    pub shared_bytes: usize,
    /// Predicted seconds per cell, by part of the machine.
    pub times: Times,
    /// Predicted seconds per cell.
    pub seconds: f64,
    /// Lower bound of the seconds per cell for any kernel with these bytes and flops.
    pub floor: f64,
    /// The fraction of the widest vectors that it uses.
    pub share: f64,
}

impl Candidate {
    fn new(
        form: &PointForm,
        elements: &Elements,
        (overrides, plan): (PlanOverrides, Plan),
        aim: KernelTarget,
        machine: &Machine,
    ) -> Result<Self, PlanError> {
        let (kernel, abi) = lower(form, elements, &plan)?;
        let cost = count(&kernel, &abi, elements);
        let share = match aim {
            KernelTarget::Vectors(isa) => share(isa, &plan),
            KernelTarget::Threads => 1.0,
        };
        let numbers: usize = kernel.shared.iter().map(|array| array.length).sum();
        // With one cell per thread, the kernel's text describes one cell.
        let threads = match aim {
            KernelTarget::Vectors(_) => 0,
            KernelTarget::Threads if kernel.threads == 0 => plan.lanes,
            KernelTarget::Threads => kernel.threads,
        };
        let bounded = if threads == 0 { 0 } else { registers(threads, plan.residency) };
        Ok(Self {
            threads,
            registers: bounded,
            shared_bytes: numbers * kernel.precision.bytes(),
            times: cost.times(machine, share),
            seconds: cost.time(machine, share),
            floor: cost.floor(machine, share),
            overrides,
            plan,
            cost,
            share,
        })
    }

    /// Names the source of a cell's map or of the coefficients of its Jacobian.
    pub fn geometry(&self) -> String {
        match self.plan.linearisation {
            Linearisation::Stored => "coefficients".to_owned(),
            Linearisation::Recompute => self.plan.geometry.to_string(),
        }
    }
}

/// Returns the fraction of a CPU's widest vectors in double precision that a plan uses.
pub(super) fn share(isa: Isa, plan: &Plan) -> f64 {
    let share = plan.lanes as f64 / isa.widest(Precision::F64) as f64;
    share.max(1.0 / 8.0)
}

/// All candidates of one task.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// The candidates, in order of predicted time.
    pub all: Vec<Candidate>,
    /// The index of the default choice, without overrides.
    pub chosen: usize,
}

/// Returns the candidates of a task under `overrides`. Candidates that a strategy does not support are omitted.
///
/// # Errors
///
/// [`PlanError`] if not even the plan without further overrides is possible.
pub fn candidates(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    task: Task,
    (aim, precision): (KernelTarget, Precision),
    overrides: &PlanOverrides,
    machine: &Machine,
) -> Result<Candidates, PlanError> {
    let planned = |overrides: &PlanOverrides| -> Result<Plan, PlanError> {
        let plans = match aim {
            KernelTarget::Vectors(isa) => {
                choose(form, elements, facts, &[task], isa, precision, overrides)
            }
            KernelTarget::Threads => {
                choose_for_threads(form, elements, facts, &[task], precision, overrides)
            }
        }?;
        plans
            .into_iter()
            .find(|plan| plan.task == task)
            .ok_or_else(|| PlanError::Unsupported("nothing to compute".to_owned()))
    };
    let first = planned(overrides)?;
    let mut found: Vec<(PlanOverrides, Plan)> = vec![(*overrides, first.clone())];
    for wish in variants(form, elements, facts, aim, task, overrides) {
        // The fallback to another strategy is no candidate of this one.
        let asked = |plan: &Plan| {
            let same = wish.strategy.is_none_or(|asked| {
                std::mem::discriminant(&asked) == std::mem::discriminant(&plan.strategy)
            });
            let scatter = wish.scatter.is_none_or(|asked| asked == plan.scatter);
            same && (scatter || plan.target == Target::Vectors)
        };
        match planned(&wish) {
            Ok(plan) if asked(&plan) && found.iter().all(|(_, known)| *known != plan) => {
                found.push((wish, plan));
            }
            _ => {}
        }
    }
    let all = found.into_iter().map(|found| Candidate::new(form, elements, found, aim, machine));
    let mut all = all.collect::<Result<Vec<Candidate>, _>>()?;
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    let chosen = all.iter().position(|candidate| candidate.plan == first).unwrap_or(0);
    Ok(Candidates { all, chosen })
}

/// Returns the variants of `overrides`: every combination that it leaves open.
fn variants(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    aim: KernelTarget,
    task: Task,
    overrides: &PlanOverrides,
) -> Vec<PlanOverrides> {
    let own = own_geometry(form, elements, facts);
    let map = |geometry: Option<Geometry>, linearisation: Linearisation| PlanOverrides {
        geometry: overrides.geometry.or(geometry),
        linearisation: overrides.linearisation.or(Some(linearisation)),
        ..*overrides
    };
    let again = Linearisation::Recompute;
    let mut maps = vec![
        map(Some(own), again),
        map(Some(Geometry::Corners), again),
        map(Some(Geometry::Stored), again),
    ];
    if task == Task::Action {
        maps.push(map(None, Linearisation::Stored));
    }
    if let KernelTarget::Vectors(_) = aim {
        return maps;
    }
    let strategies = overrides.strategy.map_or_else(
        || {
            vec![
                Strategy::CellPerLane,
                Strategy::ThreadPerLine { cells: 0 },
                Strategy::ThreadPerDof,
                Strategy::ThreadTransposition { blocks: 0, batches: 0 },
            ]
        },
        |strategy| vec![strategy],
    );
    let scatters = match overrides.scatter {
        Some(scatter) => vec![scatter],
        None => vec![Scatter::Atomic, Scatter::Block],
    };
    let mut all = Vec::new();
    for wish in maps {
        for &strategy in &strategies {
            for &scatter in &scatters {
                all.push(PlanOverrides {
                    strategy: Some(strategy),
                    scatter: Some(scatter),
                    ..wish
                });
            }
        }
    }
    all
}

/// A change of the machine's balance after which another candidate is fastest.
#[derive(Clone, Debug)]
pub struct Change {
    /// The factor by which the ratio of bandwidth to arithmetic would have to change.
    pub factor: f64,
    /// The candidate that is then fastest.
    pub candidate: usize,
}

/// Returns the increase and the decrease of bandwidth, at constant arithmetic rate, at which another candidate becomes
/// fastest in the model, up to a factor of 16.
pub fn changes(candidates: &Candidates, machine: &Machine) -> Vec<Change> {
    let best = |factor: f64| {
        let machine = Machine { bandwidth: machine.bandwidth * factor, ..*machine };
        let times = candidates.all.iter().map(|one| one.cost.time(&machine, one.share));
        times.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(number, _)| number)
    };
    let own = best(1.0);
    let steps = |sign: f64| (1..=160).map(move |step| 16f64.powf(sign * f64::from(step) / 160.0));
    let first = |sign: f64| {
        let mut factors = steps(sign);
        let factor = factors.find(|&factor| best(factor) != own)?;
        Some(Change { factor, candidate: best(factor) })
    };
    [first(1.0), first(-1.0)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Cell;
    use crate::generate::elements;
    use fem_dsl::source::Source;

    fn poisson() -> PointForm {
        let text = "form f { field u: scalar; f1[u] = grad(u); }";
        let (program, _) = fem_dsl::program::compile(&Source::new("f", text));
        program.expect("a program").point_form("f", 3).expect("a form")
    }

    #[test]
    fn the_chosen_candidate_is_the_plan() {
        let form = poisson();
        for (cell, degree) in [(Cell::Hexahedron, 3), (Cell::Tetrahedron, 1)] {
            let elements = elements(&form, cell, degree, 1, None).expect("elements");
            for (aim, machine, least) in [
                (KernelTarget::Vectors(Isa::Avx512), Machine::SERVER_CORE, 2),
                (KernelTarget::Threads, Machine::H200, 4),
            ] {
                let (facts, overrides) = (MeshFacts::default(), PlanOverrides::default());
                let on = (aim, Precision::F64);
                let found =
                    candidates(&form, &elements, &facts, Task::Action, on, &overrides, &machine)
                        .expect("candidates");
                assert!(found.all.len() >= least, "{:?}", found.all.len());
                let sorted = found.all.windows(2).all(|two| two[0].seconds <= two[1].seconds);
                assert!(sorted && found.all.iter().all(|one| one.floor <= one.seconds));
                if let KernelTarget::Vectors(_) = aim {
                    // The CPU's plan is the one of least predicted time.
                    assert_eq!(found.chosen, 0);
                }
                for change in changes(&found, &machine) {
                    assert_ne!(change.candidate, 0);
                }
            }
        }
    }
}
