//! The driver program: the same text for every form, but for the calls of the functions.

use super::{function_name, prefixes, roles, tasks};
use crate::abi::Role;
use crate::plan::Task;
use fem_dsl::point::PointForm;
use std::fmt::Write;

/// Returns the driver program of a form.
pub(in crate::export) fn driver(form: &PointForm) -> String {
    let template = include_str!("../c.c");
    let text = template.replace("$CALLS", calls(form).trim_end()).replace("$NAME", &form.name);
    let count = |count: usize| count.max(1).to_string();
    let text = text.replace("$FIELDS", &count(form.fields.len()));
    text.replace("$DATA", &count(form.aux.len()))
}

/// Returns a case for each function of each part.
fn calls(form: &PointForm) -> String {
    let mut text = String::new();
    for (part, (integral, prefix)) in form.integrals.iter().zip(prefixes(form)).enumerate() {
        for task in tasks(integral) {
            let facet = (!integral.region.is_of_cells()).then(|| "b->facet".to_owned());
            let values = roles(form, task).into_iter().map(|role| match role {
                Role::Geometry => "b->x".to_owned(),
                Role::Diameter => "b->diameter".to_owned(),
                Role::Params => "params".to_owned(),
                Role::AuxNodes(i) | Role::AuxCells(i) | Role::AuxPoints(i) => {
                    format!("b->data[{i}]")
                }
                Role::State(i) => format!("b->state[{i}]"),
                Role::Direction(i) => format!("b->direction[{i}]"),
                Role::CellResult(i) => format!("b->result[{i}]"),
                _ => "b->matrix".to_owned(),
            });
            let values: Vec<String> = facet.into_iter().chain(values).collect();
            let kind = match task {
                Task::Residual => "RESIDUAL",
                Task::Action => "ACTION",
                Task::Diagonal => "DIAGONAL",
                _ => "MATRIX",
            };
            let function = function_name(&prefix, integral, task);
            let _ = writeln!(
                text,
                "    case 4 * {part} + {kind}:\n      {function}({});\n      return 1;",
                values.join(", ")
            );
        }
    }
    text
}
