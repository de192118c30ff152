//! Measured optimal choices (`wf tune`): a task on elements and a machine → the wishes for its plan.
//!
//! All of them are in one text in the folder of compiled kernels, one line each. It is read once, so without tuning
//! there is no search.

use crate::device::jit::Jit;
use crate::kernels::rates::{named, stored_rates};
use fem_dsl::point::PointForm;
use kernels_gen::abi::Precision;
use kernels_gen::choose::{MeshFacts, PlanOverrides};
use kernels_gen::cost::Machine;
use kernels_gen::plan::{Elements, Geometry, Linearisation, Plan, PlanError, Scatter, Task};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{LazyLock, RwLock};

/// The cache key of the text.
const TEXT: &str = "tuned kernels";

/// Tuned wishes by [`key`].
static TUNED: LazyLock<RwLock<BTreeMap<String, PlanOverrides>>> = LazyLock::new(|| {
    let text = Jit::global().cache().ok().and_then(|cache| cache.recall(TEXT));
    let lines = text.as_deref().unwrap_or_default().lines().filter_map(|line| {
        let (key, words) = line.split_once(' ')?;
        Some((key.to_owned(), read(words)?))
    });
    RwLock::new(lines.collect())
});

/// Returns the hash of a task of a form on elements, a mesh type and a machine.
fn key(
    (form, elements, facts): (&PointForm, &Elements, &MeshFacts),
    task: Task,
    precision: Precision,
    machine: &str,
) -> String {
    let text = format!("{form:?} {elements:?} {facts:?} {task:?} {precision:?} {machine}");
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// Returns the tuned wishes.
pub fn wishes(
    of: (&PointForm, &Elements, &MeshFacts),
    task: Task,
    precision: Precision,
    machine: &str,
) -> Option<PlanOverrides> {
    let tuned = TUNED.read().ok()?;
    if tuned.is_empty() {
        return None;
    }
    tuned.get(&key(of, task, precision, machine)).copied()
}

/// Ignores the tuned wishes in this process until the next `keep`; they remain stored.
pub fn set_aside(
    of: (&PointForm, &Elements, &MeshFacts),
    task: Task,
    precision: Precision,
    machine: &str,
) {
    if let Ok(mut tuned) = TUNED.write() {
        tuned.remove(&key(of, task, precision, machine));
    }
}

/// Stores the fastest choice, or that it is the default plan.
///
/// # Errors
///
/// A message if there is no usable folder.
pub fn keep(
    of: (&PointForm, &Elements, &MeshFacts),
    task: Task,
    precision: Precision,
    machine: &str,
    wishes: Option<&PlanOverrides>,
) -> Result<(), String> {
    let cache = Jit::global().cache().map_err(ToString::to_string)?;
    let mut tuned = TUNED.write().map_err(|error| error.to_string())?;
    let key = key(of, task, precision, machine);
    match wishes {
        Some(wishes) => tuned.insert(key, *wishes),
        None => tuned.remove(&key),
    };
    let text: String = tuned.iter().fold(String::new(), |mut text, (key, wishes)| {
        let _ = writeln!(text, "{key} {}", written(wishes));
        text
    });
    cache.remember(TEXT, &text);
    match cache.recall(TEXT) {
        Some(kept) if kept == text => Ok(()),
        _ => Err(format!("nothing can be kept in {}", cache.folder().display())),
    }
}

/// Returns the plans of all tasks, tuned ones unchanged, the others by `choose`.
pub(super) fn planned(
    of: (&PointForm, &Elements, &MeshFacts),
    tasks: &[Task],
    (precision, machine): (Precision, &str),
    wishes: &PlanOverrides,
    choose: impl Fn(&[Task], &PlanOverrides) -> Result<Vec<Plan>, PlanError>,
) -> Result<Vec<Plan>, PlanError> {
    let (mut rest, mut plans) = (Vec::new(), Vec::new());
    for &task in tasks {
        match free(wishes).then(|| self::wishes(of, task, precision, machine)).flatten() {
            Some(tuned) => {
                let PlanOverrides { matrix, shared_bytes, machine, .. } = *wishes;
                plans.extend(choose(
                    &[task],
                    &PlanOverrides { matrix, shared_bytes, machine, ..tuned },
                )?);
            }
            None => rest.push(task),
        }
    }
    if plans.is_empty() {
        return choose(tasks, wishes);
    }
    if !rest.is_empty() {
        for plan in choose(&rest, wishes)? {
            // Common point data is stored once.
            if !plans.contains(&plan) {
                plans.push(plan);
            }
        }
    }
    Ok(plans)
}

/// Returns whether no forced choice must agree among kernels or was requested by the user.
fn free(wishes: &PlanOverrides) -> bool {
    let PlanOverrides { matrix, shared_bytes, machine, .. } = *wishes;
    *wishes == PlanOverrides { matrix, shared_bytes, machine, ..PlanOverrides::default() }
        && matrix != Some(Scatter::Coloured)
}

/// Returns the wishes as words `NAME=VALUE`.
fn written(wishes: &PlanOverrides) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut word = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("{name}={value}")));
    };
    word(
        "geometry",
        wishes.geometry.map(|geometry| match geometry {
            Geometry::Nodes(order) => format!("nodes{order}"),
            other => other.to_string(),
        }),
    );
    word(
        "coefficients",
        wishes.linearisation.map(|linearisation| match linearisation {
            Linearisation::Recompute => "recomputed".to_owned(),
            Linearisation::Stored => "stored".to_owned(),
        }),
    );
    word("strategy", wishes.strategy.map(|strategy| strategy.to_string()));
    word("scatter", wishes.scatter.map(|scatter| scatter.to_string()));
    word("lanes", wishes.lanes.map(|number| number.to_string()));
    word("block", wishes.block.map(|number| number.to_string()));
    word("cells", wishes.cells.map(|number| number.to_string()));
    word("residency", wishes.residency.map(|number| number.to_string()));
    word("in_order", wishes.in_order.map(|yes| yes.to_string()));
    word("in_place", wishes.in_place.map(|yes| yes.to_string()));
    words.join(" ")
}

/// Parses the output of [`written`].
fn read(text: &str) -> Option<PlanOverrides> {
    let mut wishes = PlanOverrides::default();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let (name, value) = word.split_once('=')?;
        let number = || value.parse::<usize>().ok();
        match name {
            "geometry" => {
                wishes.geometry = Some(match value {
                    "affine" => Geometry::Affine,
                    "vertices" => Geometry::Vertices,
                    "corners" => Geometry::Corners,
                    "stored" => Geometry::Stored,
                    other => Geometry::Nodes(other.strip_prefix("nodes")?.parse().ok()?),
                });
            }
            "coefficients" => {
                wishes.linearisation = Some(match value {
                    "recomputed" => Linearisation::Recompute,
                    "stored" => Linearisation::Stored,
                    _ => return None,
                });
            }
            "strategy" => wishes.strategy = Some(value.parse().ok()?),
            "scatter" => wishes.scatter = Some(value.parse().ok()?),
            "lanes" => wishes.lanes = Some(number()?),
            "block" => wishes.block = Some(number()?),
            "cells" => wishes.cells = Some(number()?),
            "residency" => wishes.residency = Some(number()?),
            "in_order" => wishes.in_order = Some(value.parse().ok()?),
            "in_place" => wishes.in_place = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    Some(wishes)
}

/// Returns the cost model of this processor with the current number of threads, if measured.
pub(super) fn measured() -> Option<Machine> {
    let threads = rayon::current_num_threads();
    let rates = stored_rates::rates(&named(), threads)?;
    Some(rates.machine(&Machine::SERVER_CORE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels_gen::plan::Strategy;

    #[test]
    fn what_is_written_is_read() {
        let full = PlanOverrides {
            geometry: Some(Geometry::Nodes(2)),
            linearisation: Some(Linearisation::Stored),
            strategy: Some(Strategy::ThreadPerLine { cells: 1 }),
            scatter: Some(Scatter::Block),
            lanes: Some(8),
            block: Some(2),
            cells: Some(3),
            residency: Some(4),
            in_order: Some(true),
            in_place: Some(false),
            ..PlanOverrides::default()
        };
        for wishes in [full, PlanOverrides::default()] {
            assert_eq!(read(&written(&wishes)), Some(wishes));
        }
        assert_eq!(read("colour=red"), None);
    }

    #[test]
    fn what_was_tuned_is_planned_and_nothing_else() {
        use kernels_gen::choose::choose;
        use kernels_gen::dialect::rust::Isa;
        let text = "form tuned { field u: scalar; f1[u] = (1 + u^2) * grad(u); }";
        let source = fem_dsl::source::Source::new("tuned.wf", text);
        let (program, _) = fem_dsl::program::compile(&source);
        let form = program.expect("a program").point_form("tuned", 3).expect("a form");
        let cell = kernels_gen::element::Cell::Hexahedron;
        let elements = kernels_gen::generate::elements(&form, cell, 2, 1, None).expect("elements");
        let (facts, machine) = (MeshFacts::default(), "a machine that there is not");
        let of = (&form, &elements, &facts);
        let planned = |wishes: &PlanOverrides| {
            let (isa, precision) = (Isa::Avx2, Precision::F64);
            let tasks = [Task::Residual, Task::Action];
            planned(of, &tasks, (precision, machine), wishes, |tasks, wishes| {
                choose(&form, &elements, &facts, tasks, isa, precision, wishes)
            })
            .expect("plans")
        };
        let free = PlanOverrides::default();
        let usual = planned(&free);
        let stored = PlanOverrides {
            geometry: Some(Geometry::Stored),
            linearisation: Some(Linearisation::Recompute),
            ..free
        };
        let keep = |wishes| keep(of, Task::Action, Precision::F64, machine, wishes);
        keep(Some(&stored)).expect("a cache");
        let tuned = planned(&free);
        let of_task = |plans: &[Plan], task: Task| {
            plans.iter().find(|plan| plan.task == task).cloned().expect("a plan")
        };
        assert_eq!(of_task(&tuned, Task::Action).geometry, Geometry::Stored);
        assert!(tuned.iter().any(|plan| plan.task == Task::Metric));
        assert_eq!(of_task(&tuned, Task::Residual), of_task(&usual, Task::Residual));
        // Requests of the user take precedence.
        let asked = PlanOverrides { geometry: Some(Geometry::Vertices), ..free };
        assert_eq!(of_task(&planned(&asked), Task::Action).geometry, Geometry::Vertices);
        keep(None).expect("a cache");
        assert_eq!(planned(&free), usual);
    }
}
