//! Unknown numbers of a problem: its form without them, and the forms of their equations.

use crate::point::{
    Graph, Input, Node, Part, PointForm, Region, Shape, number_forms, with_numbers_given,
};
use crate::problem::{Expression, Numbers, Problem, Report, ReportFormula};

/// Makes the numbers of a problem's form parameters of it, with their first values, and reports their values.
pub(super) fn separate(problem: &mut Problem, initial: &[(usize, Vec<f64>)]) {
    let Some(forms) = number_forms(&problem.form) else { return };
    problem.form = with_numbers_given(&problem.form);
    let own = problem.form.fields.len();
    for (field, value) in initial {
        problem.form.params[forms.first + field - own].value.clone_from(value);
    }
    let fields = 0..own;
    let free: Vec<usize> = fields.filter(|&field| is_free(problem, field)).collect();
    for &field in &free {
        let components = problem.form.fields[field].shape.components();
        problem.mean.push((field, vec![0.0; components]));
    }
    let values = forms.fields.iter().enumerate().map(|(number, field)| Report {
        name: field.name.clone(),
        value: ReportFormula::Value {
            value: value(forms.first + number, field.shape),
            of: Vec::new(),
        },
    });
    problem.reports.items.splice(0..0, values);
    problem.numbers = Some(Numbers { forms, free });
}

/// Returns whether a field is free up to a constant for given numbers: no condition, no rate and no term involves its
/// value.
fn is_free(problem: &Problem, field: usize) -> bool {
    let PointForm { fields, integrals, rates, .. } = &problem.form;
    let is_constrained = problem.dirichlet.iter().any(|condition| condition.field == field)
        || problem.mean.iter().any(|(of, _)| *of == field)
        || rates.iter().any(|rate| rate.field == field);
    let mut entries = integrals.iter().flat_map(|integral| {
        let jumps = matches!(integral.region, Region::Interior(_));
        integral.jacobian.iter().filter(move |_| !jumps)
    });
    let mut read = entries.clone().flat_map(|entry| [entry.test, entry.trial]);
    let has_terms = entries.any(|entry| entry.test.field == field);
    let has_value = read.any(|slot| slot.field == field && slot.part == Part::Value);
    !fields[field].space.is_piola() && !is_constrained && has_terms && !has_value
}

/// Returns the value of a parameter.
fn value(param: usize, shape: Shape) -> Expression {
    let mut graph = Graph::new();
    let components = 0..shape.components();
    let value = components
        .map(|component| graph.intern(Node::Input(Input::Param(param, component))))
        .collect();
    Expression { shape, graph, value, gradient: Vec::new(), rates: Default::default() }
}
