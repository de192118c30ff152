//! The plans that a kernel may have → what each costs, and what it is predicted to take.
//!
//! A candidate is asked for by [`Wishes`], and planned as any kernel is: what is compared here is what would run. Of a form with
//! several integrals over cells it is the first that is looked at.

use super::{MeshFacts, Wishes, choose, choose_for_threads, own_geometry};
use crate::abi::registers;
use crate::cost::{Cost, Machine, Times, count};
use crate::dialect::rust::Isa;
use crate::kir::Precision;
use crate::plan::{
    Elements, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task,
};
use crate::strategy::lower;
use fem_dsl::point::PointForm;

/// What kernels are planned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// A processor's vectors.
    Vectors(Isa),
    /// A GPU's threads.
    Threads,
}

/// A plan with what it costs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What asks for it.
    pub wishes: Wishes,
    /// The plan.
    pub plan: Plan,
    /// What a cell costs.
    pub cost: Cost,
    /// Threads of a group; 0 on processors.
    pub threads: usize,
    /// Registers that a thread may have at most; 0 on processors.
    pub registers: usize,
    /// Bytes that the threads of a group share.
    pub shared_bytes: usize,
    /// Predicted seconds of a cell, part by part.
    pub times: Times,
    /// Predicted seconds of a cell.
    pub seconds: f64,
    /// Seconds of a cell that no kernel with these bytes and flops can go below.
    pub floor: f64,
    /// The share of the widest vectors that it uses.
    pub share: f64,
}

impl Candidate {
    fn new(
        form: &PointForm,
        elements: &Elements,
        (wishes, plan): (Wishes, Plan),
        aim: Aim,
        machine: &Machine,
    ) -> Result<Self, PlanError> {
        let (kernel, abi) = lower(form, elements, &plan)?;
        let cost = count(&kernel, &abi, elements);
        let share = match aim {
            Aim::Vectors(isa) => share(isa, &plan),
            Aim::Threads => 1.0,
        };
        let numbers: usize = kernel.shared.iter().map(|array| array.length).sum();
        // Where each has a cell, the kernel's text is of one.
        let threads = match aim {
            Aim::Vectors(_) => 0,
            Aim::Threads if kernel.threads == 0 => plan.lanes,
            Aim::Threads => kernel.threads,
        };
        let bounded = if threads == 0 { 0 } else { registers(threads, plan.residency) };
        Ok(Self {
            threads,
            registers: bounded,
            shared_bytes: numbers * kernel.precision.bytes(),
            times: cost.times(machine, share),
            seconds: cost.time(machine, share),
            floor: cost.floor(machine, share),
            wishes,
            plan,
            cost,
            share,
        })
    }

    /// Where the map of a cell, or the coefficients of its Jacobian, come from, in words.
    pub fn geometry(&self) -> String {
        match self.plan.linearisation {
            Linearisation::Stored => "coefficients".to_owned(),
            Linearisation::Recompute => self.plan.geometry.to_string(),
        }
    }
}

/// The share of a processor's widest vectors in double precision that a plan uses.
pub(super) fn share(isa: Isa, plan: &Plan) -> f64 {
    let share = plan.lanes as f64 / isa.widest(Precision::F64) as f64;
    share.max(1.0 / 8.0)
}

/// All candidates of one task.
#[derive(Clone, Debug)]
pub struct Candidates {
    /// The least predicted time first.
    pub all: Vec<Candidate>,
    /// The one that is taken where nothing is forced.
    pub chosen: usize,
}

/// The candidates of a task, `wishes` being what is forced of all of them. What a strategy cannot do is left out.
///
/// # Errors
///
/// [`PlanError`] if not even the one without further wishes is possible.
pub fn candidates(
    form: &PointForm,
    elements: &Elements,
    facts: &MeshFacts,
    task: Task,
    (aim, precision): (Aim, Precision),
    wishes: &Wishes,
    machine: &Machine,
) -> Result<Candidates, PlanError> {
    let planned = |wishes: &Wishes| -> Result<Plan, PlanError> {
        let plans = match aim {
            Aim::Vectors(isa) => choose(form, elements, facts, &[task], isa, precision, wishes),
            Aim::Threads => choose_for_threads(form, elements, facts, &[task], precision, wishes),
        }?;
        plans
            .into_iter()
            .find(|plan| plan.task == task)
            .ok_or_else(|| PlanError::Unsupported("nothing to compute".to_owned()))
    };
    let first = planned(wishes)?;
    let mut found: Vec<(Wishes, Plan)> = vec![(*wishes, first.clone())];
    for wish in variants(elements, facts, aim, task, wishes) {
        // What another strategy does in its place is no candidate of this one.
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

/// What may be asked for beside what is forced.
fn variants(
    elements: &Elements,
    facts: &MeshFacts,
    aim: Aim,
    task: Task,
    wishes: &Wishes,
) -> Vec<Wishes> {
    let own = own_geometry(elements, facts);
    let map = |geometry: Option<Geometry>, linearisation: Linearisation| Wishes {
        geometry: wishes.geometry.or(geometry),
        linearisation: wishes.linearisation.or(Some(linearisation)),
        ..*wishes
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
    if let Aim::Vectors(_) = aim {
        return maps;
    }
    let strategies = wishes.strategy.map_or_else(
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
    let scatters = match wishes.scatter {
        Some(scatter) => vec![scatter],
        None => vec![Scatter::Atomic, Scatter::Block],
    };
    let mut all = Vec::new();
    for wish in maps {
        for &strategy in &strategies {
            for &scatter in &scatters {
                all.push(Wishes { strategy: Some(strategy), scatter: Some(scatter), ..wish });
            }
        }
    }
    all
}

/// A change of a machine with which another candidate takes least.
#[derive(Clone, Debug)]
pub struct Change {
    /// By how much the balance of its bandwidth and its arithmetic would have to change.
    pub factor: f64,
    /// Which takes least then.
    pub candidate: usize,
}

/// By how much more, and by how much less bandwidth for the same arithmetic another candidate than the first is predicted to take
/// least, up to a factor of 16.
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
    fn what_is_chosen_is_what_is_planned() {
        let form = poisson();
        for (cell, degree) in [(Cell::Hexahedron, 3), (Cell::Tetrahedron, 1)] {
            let elements = elements(&form, cell, degree, 1, None).expect("elements");
            for (aim, machine, least) in [
                (Aim::Vectors(Isa::Avx512), Machine::SERVER_CORE, 2),
                (Aim::Threads, Machine::H200, 4),
            ] {
                let (facts, wishes) = (MeshFacts::default(), Wishes::default());
                let on = (aim, Precision::F64);
                let found =
                    candidates(&form, &elements, &facts, Task::Action, on, &wishes, &machine)
                        .expect("candidates");
                assert!(found.all.len() >= least, "{:?}", found.all.len());
                let sorted = found.all.windows(2).all(|two| two[0].seconds <= two[1].seconds);
                assert!(sorted && found.all.iter().all(|one| one.floor <= one.seconds));
                if let Aim::Vectors(_) = aim {
                    // The processor's plan is the one of least predicted time.
                    assert_eq!(found.chosen, 0);
                }
                for change in changes(&found, &machine) {
                    assert_ne!(change.candidate, 0);
                }
            }
        }
    }
}
