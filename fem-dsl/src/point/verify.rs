//! Invariants of every [`PointForm`] between two stages:
//!
//! 1. every operand precedes its node; truth values are operands of logical operations only, numbers
//!    of all others; every constant is finite;
//! 2. every input exists: slots of fields and aux (derivatives of aux on nodes only), components
//!    of params and coordinates, the normal and extents on facets only, outsides between cells only, and
//!    there not of continuous values;
//! 3. neither the residual nor the Jacobian nor the energy depends on directions; slots are
//!    sorted, unique and exist; no list contains a constant zero;
//! 4. `symmetric` and `linear` are correct; names belong to computed nodes.

use super::{
    Coefficient, Input, Integral, Node, NodeId, Part, PointForm, Shape, Side, Slot, Space,
    is_affine,
};
use crate::arena::IndexVec;
use crate::verify::{VerifyError, ensure};
use std::collections::BTreeMap;

/// Verifies a form at one point.
///
/// # Errors
///
/// The first violated invariant.
pub fn verify_point(form: &PointForm) -> Result<(), VerifyError> {
    ensure(matches!(form.dim, 1..=3), || format!("dimension {}", form.dim))?;
    form.integrals.iter().try_for_each(|integral| of_integral(form, integral))
}

/// Verifies in debug builds.
///
/// # Panics
///
/// Panics on a violated invariant.
pub(crate) fn expect_point(form: &PointForm) {
    if cfg!(debug_assertions)
        && let Err(error) = verify_point(form)
    {
        panic!("{error}\n{form:#?}");
    }
}

fn of_integral(form: &PointForm, integral: &Integral) -> Result<(), VerifyError> {
    nodes(form, integral)?;
    let depends = integral.depends_on_direction();
    let lists = [("residual", &integral.residual, false), ("action", &integral.action, true)];
    for (name, list, directions) in lists {
        let sorted = list.windows(2).all(|pair| pair[0].0 < pair[1].0);
        ensure(sorted, || format!("the {name} is sorted by slot"))?;
        for &(slot, node) in list {
            ensure(exists(form, integral, slot), || format!("{slot:?} in the {name}"))?;
            ensure(!is_zero(integral, node), || format!("zero at {slot:?} of the {name}"))?;
            ensure(depends[node] == directions, || format!("δu at {slot:?} of the {name}"))?;
        }
    }
    let keys: Vec<(Slot, Slot)> = integral.jacobian.iter().map(|c| (c.test, c.trial)).collect();
    ensure(keys.windows(2).all(|pair| pair[0] < pair[1]), || "the Jacobian is sorted".to_owned())?;
    for Coefficient { test, trial, value } in &integral.jacobian {
        let fits = exists(form, integral, *test)
            && exists(form, integral, *trial)
            && !is_zero(integral, *value);
        ensure(fits && !depends[*value], || format!("Jacobian entry {test:?}, {trial:?}"))?;
    }
    if let Some(energy) = integral.energy {
        ensure(!depends[energy], || "δu in the energy".to_owned())?;
    }
    flags(integral)?;
    for (&node, name) in &integral.names {
        let computed = integral
            .graph
            .nodes()
            .get(node)
            .is_some_and(|node| !matches!(node, Node::Constant(_) | Node::Input(_)));
        ensure(computed, || format!("the name {name}"))?;
    }
    Ok(())
}

fn is_zero(integral: &Integral, node: NodeId) -> bool {
    matches!(integral.graph.nodes()[node], Node::Constant(number) if number.get() == 0.0)
}

fn flags(integral: &Integral) -> Result<(), VerifyError> {
    let linear = is_affine(&integral.graph, &integral.residual, &integral.jacobian);
    ensure(linear == integral.linear, || "the flag `linear`".to_owned())?;
    let entries: BTreeMap<(Slot, Slot), NodeId> =
        integral.jacobian.iter().map(|c| ((c.test, c.trial), c.value)).collect();
    let symmetric = entries.iter().all(|(&(a, b), value)| entries.get(&(b, a)) == Some(value));
    ensure(symmetric == integral.symmetric, || "the flag `symmetric`".to_owned())
}

fn nodes(form: &PointForm, integral: &Integral) -> Result<(), VerifyError> {
    let mut truth: IndexVec<NodeId, bool> = IndexVec::new();
    for (id, node) in integral.graph.nodes().iter_enumerated() {
        ensure(node.operands().all(|operand| operand < id), || format!("{id} before its operand"))?;
        let numbers = |all: &[NodeId]| all.iter().all(|&a| !truth[a]);
        let truths = |all: &[NodeId]| all.iter().all(|&a| truth[a]);
        let (is_truth, fits) = match *node {
            Node::Constant(number) => (false, number.get().is_finite()),
            Node::Input(input) => (false, available(form, integral, input)),
            Node::Unary(_, a) | Node::Powi(a, _) => (false, numbers(&[a])),
            Node::Binary(_, a, b) => (false, numbers(&[a, b])),
            Node::Compare(_, a, b) => (true, numbers(&[a, b])),
            Node::And(a, b) | Node::Or(a, b) => (true, truths(&[a, b])),
            Node::Not(a) => (true, truths(&[a])),
            Node::Select(c, a, b) => (false, truths(&[c]) && numbers(&[a, b])),
        };
        ensure(fits, || format!("{id} = {node:?}"))?;
        truth.push(is_truth);
    }
    Ok(())
}

/// Returns whether values of a shape in a space, if they are functions, have a slot.
fn inside(dim: usize, shape: Shape, space: Option<Space>, slot: Slot) -> bool {
    let piola = space.is_some_and(Space::is_piola);
    let part = match slot.part {
        Part::Value => true,
        Part::Derivative(j) => j < dim,
        Part::Second(i, j) => i <= j && j < dim && !piola,
        Part::Exterior(i) => {
            slot.component == 0 && space.is_some_and(|space| i < space.exterior_components(dim))
        }
    };
    part && slot.component < shape.components()
}

/// Returns whether a region has cells on a side: only facets between cells have an outside.
fn has_side(integral: &Integral, side: Side) -> bool {
    side == Side::Inside || integral.region.is_interior()
}

/// Returns whether a region has a slot of a space: continuous values have one side.
fn has_slot(integral: &Integral, space: Option<Space>, slot: Slot) -> bool {
    let one = slot.part == Part::Value && space.is_some_and(Space::is_continuous);
    has_side(integral, slot.side) && !(one && slot.side == Side::Outside)
}

fn exists(form: &PointForm, integral: &Integral, slot: Slot) -> bool {
    form.fields.get(slot.field).is_some_and(|field| {
        let space = Some(field.space);
        inside(form.dim, field.shape, space, slot) && has_slot(integral, space, slot)
    })
}

fn available(form: &PointForm, integral: &Integral, input: Input) -> bool {
    match input {
        Input::State(slot) | Input::Direction(slot) => exists(form, integral, slot),
        Input::Aux(slot) => form.aux.get(slot.field).is_some_and(|aux| {
            let derivative = slot.part != Part::Value;
            let space = aux.location.space();
            inside(form.dim, aux.shape, space, slot)
                && has_slot(integral, space, slot)
                && (!derivative || space.is_some())
                && slot.part.order() < 2
        }),
        Input::Param(i, component) => {
            form.params.get(i).is_some_and(|param| component < param.shape.components())
        }
        Input::Coordinate(j) => j < form.dim,
        Input::Normal(j) => j < form.dim && !integral.region.is_of_cells(),
        Input::Extent(side) => !integral.region.is_of_cells() && has_side(integral, side),
        Input::Diameter(side) => has_side(integral, side),
        Input::PenaltyFactor(field) => field < form.fields.len() && !integral.region.is_of_cells(),
        Input::Time | Input::Degree => true,
        Input::Inverse(side, a, i) | Input::Tangent(side, a, i) => {
            a < form.dim && i < form.dim && has_side(integral, side)
        }
        Input::Bend(side, a, b, i) => {
            a <= b && b < form.dim && i < form.dim && has_side(integral, side)
        }
        Input::Density(side) => has_side(integral, side),
    }
}
