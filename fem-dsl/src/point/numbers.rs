//! Forms with unknown numbers ([`Space::Number`]) → forms without them, from which a solver builds
//! the bordered system:
//!
//! ```text
//! [ A  B ] [ δu ]     [ R ]        A = ∂R/∂u    columns B = ∂R/∂c
//! [ C  D ] [ δc ] = − [ g ]        rows C = ∂g/∂u          D = ∂g/∂c
//! ```
//!
//! with the residual R of the other fields and the rows g of the numbers c. Numbers become parameters, so that kernels,
//! strategies and multigrid levels of A are those of any form. g and D are integrals, one entry per cell, and B and C are
//! residuals weighted by selectors.

use super::block::{mapped, moved, of_rows};
use super::scalars::Scalars;
use super::verify::expect_point;
use super::{
    Coefficient, Degree, Field, Input, Integral, NodeId, Param, Part, PointForm, Shape, Side, Slot,
    Space,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Unknown numbers of a form.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberForms {
    /// The numbers, as fields.
    pub fields: Vec<Field>,
    /// Index of the first of them among the parameters of the form without them; the others follow.
    pub first: usize,
    /// The rows g, then ∂g/∂c row by row: components of a last field in `L2(0)`, after the other fields.
    pub integrals: PointForm,
    /// The columns of B, then the rows of C, as the residual of the other fields. Each is multiplied by a component of a
    /// last parameter.
    pub border: PointForm,
    /// True if all equations are affine in fields and numbers together.
    pub linear: bool,
}

impl NumberForms {
    /// Returns the number of scalar unknowns.
    pub fn count(&self) -> usize {
        self.fields.iter().map(|field| field.shape.components()).sum()
    }
}

/// Returns the fields of a form that are unknown numbers: the last ones.
pub fn number_fields(form: &PointForm) -> Range<usize> {
    let is_number = |field: &Field| field.space.is_number();
    let first = form.fields.iter().position(is_number).unwrap_or(form.fields.len());
    let count = form.fields[first..].iter().take_while(|field| is_number(field)).count();
    first..first + count
}

/// Returns a form whose unknown numbers are parameters, after all others, without their rows.
pub fn with_numbers_given(form: &PointForm) -> PointForm {
    let numbers = number_fields(form);
    if numbers.is_empty() {
        return form.clone();
    }
    let is_own = |slot: Slot| !numbers.contains(&slot.field);
    let renumbered = |slot: Slot| Slot { field: without(&numbers, slot.field), ..slot };
    let mut made = PointForm { integrals: Vec::new(), ..form.clone() };
    made.fields.drain(numbers.clone());
    made.params.extend(params(&form.fields[numbers.clone()]));
    for integral in &form.integrals {
        let rows = |list: &[(Slot, NodeId)]| -> Vec<(Slot, NodeId)> {
            let own = list.iter().filter(|(slot, _)| is_own(*slot));
            own.map(|&(slot, node)| (renumbered(slot), node)).collect()
        };
        let entries = integral.jacobian.iter().filter(|own| is_own(own.test) && is_own(own.trial));
        let entries = entries.map(|own| Coefficient {
            test: renumbered(own.test),
            trial: renumbered(own.trial),
            ..*own
        });
        let lists = (rows(&integral.residual), rows(&integral.action), entries.collect());
        let own = mapped(integral, lists, |scalars, input| {
            given(scalars, input, &numbers, form.params.len())
        });
        if !own.residual.is_empty() || !own.jacobian.is_empty() {
            made.integrals.push(own);
        }
    }
    expect_point(&made);
    made
}

/// Returns the forms of the numbers' border; `None` without numbers.
pub fn number_forms(form: &PointForm) -> Option<NumberForms> {
    let numbers = number_fields(form);
    if numbers.is_empty() {
        return None;
    }
    let fields = form.fields[numbers.clone()].to_vec();
    let count: usize = fields.iter().map(|field| field.shape.components()).sum();
    let linear = form.integrals.iter().all(|integral| integral.linear);
    let first = form.params.len();
    let mut base = PointForm { integrals: Vec::new(), ..form.clone() };
    base.fields.drain(numbers.clone());
    base.params.extend(params(&fields));
    let layout = NumberLayout { form, numbers, count };
    let mut integrals = PointForm { name: format!("{}_numbers", form.name), ..base.clone() };
    let (shape, space) = (Shape::Vector(count + count * count), Space::L2(Degree::Fixed(0)));
    integrals.fields.push(Field {
        name: form.unused_name("rows"),
        shape,
        space,
        cells: Vec::new(),
    });
    let mut border = PointForm { name: format!("{}_border", form.name), ..base };
    let (name, shape) = (form.unused_name("selector"), Shape::Vector(2 * count));
    border.params.push(Param { name, shape, value: vec![0.0; 2 * count] });
    for integral in &form.integrals {
        integrals.integrals.extend(layout.rows(integral));
        border.integrals.extend(layout.border(integral));
    }
    expect_point(&integrals);
    expect_point(&border);
    Some(NumberForms { fields, first, integrals, border, linear })
}

/// Returns the index of a field among those without the numbers.
fn without(numbers: &Range<usize>, field: usize) -> usize {
    if field < numbers.end { field } else { field - numbers.len() }
}

fn params(numbers: &[Field]) -> impl Iterator<Item = Param> {
    numbers.iter().map(|field| Param {
        name: field.name.clone(),
        shape: field.shape,
        value: vec![0.0; field.shape.components()],
    })
}

/// Returns an input with the numbers as parameters from `first` on. Derivatives of numbers are 0.
fn given(scalars: &mut Scalars, input: Input, numbers: &Range<usize>, first: usize) -> NodeId {
    let renumbered = |slot: Slot| Slot { field: without(numbers, slot.field), ..slot };
    match input {
        Input::State(slot) if numbers.contains(&slot.field) => match slot.part {
            Part::Value => {
                let param = first + slot.field - numbers.start;
                scalars.input(Input::Param(param, slot.component))
            }
            _ => scalars.constant(0.0),
        },
        Input::Direction(slot) if numbers.contains(&slot.field) => scalars.constant(0.0),
        Input::State(slot) => scalars.input(Input::State(renumbered(slot))),
        Input::Direction(slot) => scalars.input(Input::Direction(renumbered(slot))),
        // A constant has degree 0.
        Input::PenaltyFactor(field) if numbers.contains(&field) => scalars.constant(1.0),
        Input::PenaltyFactor(field) => scalars.input(Input::PenaltyFactor(without(numbers, field))),
        other => scalars.input(other),
    }
}

/// Positions of the numbers.
struct NumberLayout<'a> {
    form: &'a PointForm,
    numbers: Range<usize>,
    count: usize,
}

impl NumberLayout<'_> {
    /// Returns the number of a slot; `None` for another field, or for a derivative, which is 0.
    fn number(&self, slot: Slot) -> Option<usize> {
        if !self.numbers.contains(&slot.field) || slot.part != Part::Value {
            return None;
        }
        let before = &self.form.fields[self.numbers.start..slot.field];
        let before: usize = before.iter().map(|field| field.shape.components()).sum();
        Some(before + slot.component)
    }

    fn is_other(&self, slot: Slot) -> bool {
        !self.numbers.contains(&slot.field)
    }

    /// Copies nodes of an integral with the numbers as parameters.
    fn copied(&self, scalars: &mut Scalars, from: &Integral, nodes: &[NodeId]) -> Vec<NodeId> {
        let first = self.form.params.len();
        moved(scalars, &from.graph, nodes, |scalars, input| {
            given(scalars, input, &self.numbers, first)
        })
    }

    /// Returns the rows g and their derivative by the numbers as components of the additional field.
    fn rows(&self, from: &Integral) -> Option<Integral> {
        let field = self.form.fields.len() - self.numbers.len();
        let slot = |component| Slot { field, side: Side::Inside, component, part: Part::Value };
        let rows =
            from.residual.iter().filter_map(|&(test, node)| Some((self.number(test)?, node)));
        let entries = from.jacobian.iter().filter_map(|own| {
            let (row, column) = (self.number(own.test)?, self.number(own.trial)?);
            Some((self.count + row * self.count + column, own.value))
        });
        let all: Vec<(usize, NodeId)> = rows.chain(entries).collect();
        self.integral(from, all.into_iter().map(|(component, node)| (slot(component), None, node)))
    }

    /// Returns the weighted columns of B and rows of C.
    fn border(&self, from: &Integral) -> Option<Integral> {
        let entries = from.jacobian.iter().filter_map(|own| {
            let (test, trial) = (self.number(own.test), self.number(own.trial));
            match (test, trial) {
                (None, Some(column)) if self.is_other(own.test) => {
                    Some((own.test, Some(column), own.value))
                }
                (Some(row), None) if self.is_other(own.trial) => {
                    Some((own.trial, Some(self.count + row), own.value))
                }
                _ => None,
            }
        });
        let all: Vec<(Slot, Option<usize>, NodeId)> = entries.collect();
        self.integral(from, all.into_iter())
    }

    /// Returns an integral with the sum of nodes in each row, weighted by a selector if there is one.
    fn integral(
        &self,
        from: &Integral,
        entries: impl Iterator<Item = (Slot, Option<usize>, NodeId)>,
    ) -> Option<Integral> {
        let entries: Vec<(Slot, Option<usize>, NodeId)> = entries.collect();
        let nodes: Vec<NodeId> = entries.iter().map(|entry| entry.2).collect();
        let mut scalars = Scalars::default();
        let copies = self.copied(&mut scalars, from, &nodes);
        let selector = self.form.params.len() + self.numbers.len();
        let mut residual: BTreeMap<Slot, NodeId> = BTreeMap::new();
        for ((slot, weight, _), value) in entries.into_iter().zip(copies) {
            let slot = Slot { field: without(&self.numbers, slot.field), ..slot };
            let value = match weight {
                Some(component) => {
                    let weight = scalars.input(Input::Param(selector, component));
                    scalars.mul(weight, value)
                }
                None => value,
            };
            let sum = match residual.get(&slot) {
                Some(&before) => scalars.add(before, value),
                None => value,
            };
            residual.insert(slot, sum);
        }
        residual.retain(|_, node| !scalars.is_zero(*node));
        if residual.is_empty() {
            return None;
        }
        Some(of_rows(from, &scalars, [residual, BTreeMap::new()], BTreeMap::new()))
    }
}
