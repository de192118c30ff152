//! Unsupported plans of integrals over facets, and of integrals with second derivatives.

use super::components::with_gradients;
use super::{
    Elements, Geometry, Linearisation, Plan, PlanError, Scatter, Strategy, Target, Task, reads,
};
use crate::abi::Indices;
use fem_dsl::point::{Input, Integral, Location, PointForm, Slot};

/// Checks that the kernel of a plan for pairs of cells, or for batches without index arrays, can be generated.
pub(super) fn has_kernel(plan: &Plan, integral: &Integral) -> Result<(), PlanError> {
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    batches(plan, integral)?;
    if !integral.region.is_interior() {
        return match plan.larger {
            None => Ok(()),
            Some(_) => unsupported("only pairs of cells have a larger one"),
        };
    }
    match plan.task {
        Task::Residual
        | Task::Action
        | Task::Diagonal
        | Task::Matrix
        | Task::StoredProduct
        | Task::MatrixProduct
        | Task::Flux => Ok(()),
        _ => unsupported("nothing is stored or transferred for pairs of cells"),
    }
}

/// Checks the restrictions of degrees of freedom that are stored batch by batch.
fn batches(plan: &Plan, integral: &Integral) -> Result<(), PlanError> {
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    if plan.indices != Indices::Batches {
        return Ok(());
    }
    if plan.target != Target::Vectors || plan.strategy != Strategy::CellPerLane {
        return unsupported("degrees of freedom batch by batch are for lanes of vectors");
    }
    if plan.scatter != Scatter::Owner {
        return unsupported("without an index array each cell has a result of its own");
    }
    if plan.hanging {
        return unsupported(
            "degrees of freedom batch by batch are those of cells without hanging nodes",
        );
    }
    if integral.region.is_interior() {
        return unsupported("pairs of cells share the degrees of freedom of a vector");
    }
    if plan.task.transfers() {
        return unsupported("transfers between spaces need the indices of the finer one");
    }
    Ok(())
}

/// Checks the restrictions of facet integrals.
pub(super) fn facets(plan: &Plan, form: &PointForm, integral: &Integral) -> Result<(), PlanError> {
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    // Threads that share a pair have a strategy of their own.
    let lines = matches!(plan.strategy, Strategy::ThreadPerLine { .. });
    let share = lines && integral.region.is_interior();
    if plan.strategy != Strategy::CellPerLane && !share {
        return unsupported("facets have a thread each");
    }
    if !matches!(plan.geometry, Geometry::Nodes(_)) && !share {
        return unsupported("facets have the map of their cell from its nodes");
    }
    if matches!(plan.task, Task::Linearise | Task::Metric)
        || plan.linearisation == Linearisation::Stored
    {
        return unsupported("nothing that is read again is stored at the points of facets");
    }
    if plan.scatter == Scatter::Block {
        return unsupported("facets add to their nodes one by one");
    }
    let turned = plan.indices == Indices::Cells && !integral.region.is_interior();
    if plan.indices == Indices::Runs || turned {
        return unsupported("facets turn their cells, whose unknowns do not come in runs then");
    }
    let at_points = |input: Input| match input {
        Input::Aux(slot) => form.aux[slot.field].location == Location::Points,
        _ => false,
    };
    if reads(integral, at_points) {
        return unsupported("data at the points of cells has no values on facets");
    }
    Ok(())
}

/// Checks the restrictions of integrals with second derivatives.
pub(super) fn second_derivatives(
    plan: &Plan,
    form: &PointForm,
    integral: &Integral,
    elements: &Elements,
) -> Result<(), PlanError> {
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    if plan.strategy != Strategy::CellPerLane {
        return unsupported("second derivatives are evaluated by one lane or thread a cell");
    }
    match plan.geometry {
        Geometry::Affine | Geometry::Nodes(_) => {}
        Geometry::Corners if !elements.cell.is_factorised() => {}
        _ => return unsupported("second derivatives need those of the map, from its nodes"),
    }
    let is_second = |slot: Slot| slot.part.order() == 2;
    let continuous = |slot: Slot| is_second(slot) && form.fields[slot.field].space.is_continuous();
    let mut slots = integral.residual.iter().chain(&integral.action).map(|(slot, _)| *slot);
    let mut columns = integral.jacobian.iter().map(|entry| entry.trial);
    if plan.hanging && (slots.any(continuous) || columns.any(continuous)) {
        return unsupported(
            "second derivatives of continuous fields need a mesh without hanging nodes",
        );
    }
    match plan.task {
        Task::Flux => unsupported(
            "errors of forms with second derivatives are not estimated yet: leave `adapt` out",
        ),
        _ => Ok(()),
    }
}

/// Checks the restrictions of integrals with gradients of fields of H(curl) and H(div).
pub(super) fn gradients(
    plan: &Plan,
    integral: &Integral,
    elements: &Elements,
) -> Result<(), PlanError> {
    let unsupported = |text: &str| Err(PlanError::Unsupported(text.to_owned()));
    if !elements.fields.iter().any(|element| element.has_gradient()) {
        return Ok(());
    }
    if plan.strategy != Strategy::CellPerLane {
        return unsupported(
            "gradients in `Hcurl` and `Hdiv` are evaluated by one lane or thread a cell",
        );
    }
    let bends = reads(integral, |input| matches!(input, Input::Bend(..)));
    match plan.geometry {
        Geometry::Nodes(_) => {}
        _ if !bends => {}
        _ => {
            return unsupported(
                "gradients in `Hcurl` and `Hdiv` need second derivatives of the map, from its nodes",
            );
        }
    }
    match plan.task {
        Task::Flux => unsupported(
            "errors of forms with gradients in `Hcurl` and `Hdiv` are not estimated yet: leave `adapt` out",
        ),
        _ => Ok(()),
    }
}

/// Returns whether integrals of a form read second derivatives of the map of a cell that is not affine: with second
/// derivatives of functions, and gradients of fields of H(curl) and H(div).
pub fn needs_bends(form: &PointForm) -> bool {
    (0..form.integrals.len()).any(|integral| {
        has_second(&form.integrals[integral]) || !with_gradients(form, integral).is_empty()
    })
}

/// Returns whether an integral reads or tests second derivatives.
pub fn has_second(integral: &Integral) -> bool {
    let is_second = |slot: Slot| slot.part.order() == 2;
    integral.residual.iter().chain(&integral.action).any(|(slot, _)| is_second(*slot))
        || integral.jacobian.iter().any(|entry| is_second(entry.test) || is_second(entry.trial))
        || reads(integral, |input| match input {
            Input::State(slot) | Input::Direction(slot) => is_second(slot),
            _ => false,
        })
}
