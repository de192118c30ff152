//! Expressions at points and integrands → a form whose additional fields are tested with them ([`Integrands`]).

use super::report_regions::tested;
use crate::form::{self, Form, Integral, Shape};
use crate::point::{self, Degree, Field, Region, Space};
use std::collections::BTreeMap;

/// Largest number of components of a field.
const MOST_COMPONENTS: usize = crate::check::declare::MOST_COMPONENTS;

/// Expressions that become the f0 of additional fields of `L2(0)`, one component per number.
#[derive(Default)]
pub(super) struct Integrands {
    /// The components of each region, in order.
    regions: Vec<(Region, BTreeMap<usize, form::ExprId>)>,
    count: usize,
}

impl Integrands {
    /// Adds the components of a value; returns the index of the first.
    pub(super) fn add(&mut self, form: &mut Form, region: Region, value: form::ExprId) -> usize {
        let first = self.count;
        let components = form.exprs.components(value);
        self.count += components.len();
        let at = self.regions.iter().position(|(known, _)| *known == region);
        let at = at.unwrap_or_else(|| {
            self.regions.push((region, BTreeMap::new()));
            self.regions.len() - 1
        });
        self.regions[at].1.extend((first..).zip(components));
        first
    }

    /// Returns the form, if anything was added.
    pub(super) fn into_form(mut self, mut form: Form, name: &str) -> Option<Form> {
        if self.count == 0 {
            return None;
        }
        form.name = format!("{}_{name}", form.name);
        form.source = format!("// {name} of a solution");
        let first = form.fields.len();
        let lengths = || (0..self.count).step_by(MOST_COMPONENTS);
        for start in lengths() {
            let shape = point::Shape::Vector((self.count - start).min(MOST_COMPONENTS));
            let name = format!("report{}", start / MOST_COMPONENTS);
            let space = Space::L2(Degree::Fixed(0));
            form.fields.push(Field { name, shape, space, cells: Vec::new() });
        }
        // Cells come first.
        self.regions.sort_by_key(|(region, _)| *region != Region::Cells);
        for (region, values) in std::mem::take(&mut self.regions) {
            let mut rows = Vec::new();
            for (number, start) in lengths().enumerate() {
                let end = (start + MOST_COMPONENTS).min(self.count);
                let zero = form.exprs.constant(0.0);
                let of = |at: usize| values.get(&at).copied().unwrap_or(zero);
                let components: Vec<form::ExprId> = (start..end).map(of).collect();
                if components.iter().all(|&value| form.exprs.is_zero(value)) {
                    continue;
                }
                let value = form.exprs.literal(Shape::vector(end - start), components).ok()?;
                rows.extend(tested(&mut form, &region, first + number, value)?);
            }
            form.integrals.push(Integral { region, rows, action: Vec::new(), energy: None });
        }
        Some(form)
    }
}
