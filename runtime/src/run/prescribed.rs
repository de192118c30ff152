//! What is prescribed beside the form, as functions of the parameters: the values of essential conditions, and auxiliary
//! data. Where parameters change they are evaluated anew; which unknowns have conditions never changes.

use super::RunError;
use crate::constraint::Constraints;
use crate::discretisation::{AuxValues, Discretisation};
use crate::expression::{Parameters, evaluate};
use crate::geometry::places;
use fem_dsl::point::{Input, Location, Node};
use fem_dsl::problem::{Dirichlet, Expression, Problem};
use kernels_gen::plan::Elements;

/// What is prescribed beside a form.
pub trait Prescribed: Sync {
    /// The conditions of each field where the parameters have these values.
    ///
    /// # Errors
    ///
    /// A value that is no number.
    fn conditions(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, RunError>;

    /// The auxiliary data where the parameters have these values.
    ///
    /// # Errors
    ///
    /// A value that is no number.
    fn aux(&self, on: &Discretisation, parameters: &Parameters)
    -> Result<Vec<AuxValues>, RunError>;

    /// Whether some auxiliary data depends on a parameter.
    fn aux_depends_on(&self, param: usize) -> bool;
}

/// What a problem prescribes.
#[derive(Clone, Copy)]
pub struct OfProblem<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// The elements of its form.
    pub elements: &'a Elements,
}

impl Prescribed for OfProblem<'_> {
    fn conditions(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, RunError> {
        let problem = self.problem;
        let mut all: Vec<Constraints> =
            on.fields.iter().map(|field| Constraints::none(&field.space)).collect();
        let nothing = |_: usize| f64::NAN;
        for (index, condition) in problem.dirichlet.iter().enumerate() {
            let Dirichlet { field, component, value, tags } = condition;
            let space = &on.fields[*field].space;
            let points = space.points(&on.mesh, &on.partition)?;
            let facets = match tags {
                None => on.mesh.boundary(),
                Some(tags) => on.mesh.facets_under(tags)?,
            };
            let nodes = space.nodes_on(&facets);
            let places: Vec<[f64; 3]> = nodes.iter().map(|&node| points[node as usize]).collect();
            let values = evaluate(value, &value.value, &places, parameters, nothing);
            let mut next = values.chunks(value.value.len().max(1));
            let fixed = all[*field].fix_at(&nodes, *component, &places, |_, row| {
                if let Some(values) = next.next() {
                    row.copy_from_slice(values);
                }
            });
            let name = || problem.form.fields[*field].name.clone();
            fixed.map_err(|source| RunError::Condition { index, field: name(), source })?;
        }
        super::mean::hold(problem, &mut all);
        Ok(all)
    }

    fn aux(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<AuxValues>, RunError> {
        let (problem, elements) = (self.problem, self.elements);
        let mut all = Vec::new();
        for (index, aux) in problem.form.aux.iter().enumerate() {
            let given = problem.aux.iter().rev().find(|(at, _)| *at == index);
            let Some((_, expression)) = given else {
                return Err(RunError::NoAux { name: aux.name.clone() });
            };
            let (values, points) = match aux.location {
                Location::Nodes(_) => {
                    let element = elements.element_of_aux(index)?;
                    let space = on.aux_space(element, aux.shape.components())?;
                    let points = space.points(&on.mesh, &on.partition)?;
                    let values = at_points(expression, &points, parameters, |_| f64::NAN);
                    (AuxValues::Nodes(space, values), points)
                }
                Location::Cells => {
                    let points = places(&on.mesh, &[on.mesh.cell().centre()])?;
                    let diameter = |cell: usize| on.mesh.diameter(cell);
                    (AuxValues::Cells(at_points(expression, &points, parameters, diameter)), points)
                }
                Location::Points => {
                    let rule = elements.rule.points();
                    let points = places(&on.mesh, &rule)?;
                    let diameter = |point: usize| on.mesh.diameter(point / rule.len());
                    let values = at_points(expression, &points, parameters, diameter);
                    (AuxValues::Points(values), points)
                }
            };
            let numbers = values.numbers();
            if let Some(at) = numbers.iter().position(|value| !value.is_finite()) {
                let point = points[at / aux.shape.components()];
                let name = aux.name.clone();
                return Err(RunError::AuxNotFinite { name, value: numbers[at], point });
            }
            all.push(values);
        }
        Ok(all)
    }

    fn aux_depends_on(&self, param: usize) -> bool {
        let depends = |expression: &Expression| {
            let mut nodes = expression.graph.nodes().iter();
            nodes.any(|node| matches!(node, Node::Input(Input::Param(of, _)) if *of == param))
        };
        self.problem.aux.iter().any(|(_, expression)| depends(expression))
    }
}

fn at_points(
    expression: &Expression,
    points: &[[f64; 3]],
    parameters: &Parameters,
    diameter: impl Fn(usize) -> f64 + Sync,
) -> Vec<f64> {
    evaluate(expression, &expression.value, points, parameters, diameter)
}
