//! Inequalities of a problem at the nodes of its fields: `bound u >= EXPR;` → bounded degrees of freedom, and their
//! multipliers.
//!
//! ```text
//! u_i ≥ ψ_i,   λ_i = R_i(u) ≥ 0,   λ_i (u_i − ψ_i) = 0        likewise u_i ≤ ψ_i with λ_i ≤ 0
//! ```
//!
//! A degree of freedom at its bound has exactly the value of the bound, so that the active set follows from a state.
//! The multiplier is a force per node; its density is λ_i / ∫ φ_i over the cells or the facets of the bound.

use super::evaluation_state::EvaluationState;
use super::kernels::{SharedResources, residual_of};
use super::platform::Platform;
use super::prescribed::nodes_under;
use super::{DataError, RunError, together};
use crate::algebra::vector::{Vector, epsilon};
use crate::operator::TableCache;
use crate::processes::Reduction;
use crate::solve::{NonlinearSystem, OperatorError};
use crate::space::constraint::Constraints;
use crate::space::discretisation::{AuxValues, Discretisation};
use crate::support::expression::{Parameters, evaluate};
use fem_dsl::point::{
    Aux, Degree, Graph, Integral, Location, Node, Number, Part, PointForm, Region, Side, Slot,
    Space,
};
use fem_dsl::problem::{Bound, BoundSide, Problem, Support};
use std::collections::BTreeMap;

/// Distance of a value from its bound, in units of rounding, up to which it lies at it.
const AT: f64 = 4.0;
/// Part of the largest ∫ φ_i below which one counts as 0.
const NO_WEIGHT: f64 = 1e-12;

/// A bounded degree of freedom.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoundedDof {
    /// Its index.
    pub(super) dof: usize,
    /// The largest lower bound; −∞ without one.
    pub(super) lower: f64,
    /// The smallest upper bound; ∞ without one.
    pub(super) upper: f64,
    /// The bound that measures its multiplier, by index.
    bound: usize,
}

/// The bounded degrees of freedom of a problem on a mesh.
pub(super) struct Bounds {
    /// Ascending; without those that have an essential condition.
    pub(super) dofs: Vec<BoundedDof>,
}

impl Bounds {
    /// Evaluates bounds at the nodes of a discretisation.
    ///
    /// # Errors
    ///
    /// A bound that is not finite, a lower bound above an upper one, tags that the mesh lacks.
    pub(super) fn new(
        bounds: &[Bound],
        (form, on): (&PointForm, &Discretisation),
        parameters: &Parameters,
    ) -> Result<Self, RunError> {
        let mut all: BTreeMap<usize, BoundedDof> = BTreeMap::new();
        for (index, bound) in bounds.iter().enumerate() {
            let field = &on.fields[bound.field];
            let (space, constraints) = (&field.space, &field.constraints);
            let nodes: Vec<u32> = match &bound.tags {
                None => (0..space.n_nodes() as u32).collect(),
                Some(tags) => nodes_under(&on.mesh, space, &Support::Tags(tags.clone()))?,
            };
            let places = space.points_at(&on.mesh, &on.partition, &nodes)?;
            let value = &bound.value;
            let values = evaluate(value, &value.value, &places, parameters, |_| f64::NAN);
            let name = || form.fields[bound.field].name.clone();
            let bad = values.iter().position(|value| !value.is_finite());
            let finite = bad.map_or(Ok(()), |at| {
                let (value, point) = (values[at], places[at]);
                Err(DataError::BoundNotFinite { name: name(), value, point }.into())
            });
            together(&on.mesh, finite)?;
            let is_bounded = |node: u32| nodes.binary_search(&node).is_ok();
            let oblique = constraints.oblique().iter().filter(|of| is_bounded(of.node)).count();
            if on.mesh.in_all(oblique) > 0 {
                return Err(RunError::Setting(format!(
                    "`{0}` has a bound and a condition `dot({0}, n)` at one node\n\
                     help: give the components of `{0}` in the condition, or take another part of the boundary",
                    name()
                )));
            }
            let start = on.dofs_of(bound.field).start;
            for (&node, &value) in nodes.iter().zip(&values) {
                let own = node as usize * space.components() + bound.component;
                let dof = start + own;
                if constraints.is_constrained(own) || on.affine.row_of(dof).is_some() {
                    continue;
                }
                let none = (f64::NEG_INFINITY, f64::INFINITY);
                let free = BoundedDof { dof, lower: none.0, upper: none.1, bound: index };
                let own = all.entry(dof).or_insert(free);
                match bound.side {
                    BoundSide::Above => own.lower = own.lower.max(value),
                    BoundSide::Below => own.upper = own.upper.min(value),
                }
            }
        }
        let dofs: Vec<BoundedDof> = all.into_values().collect();
        let crossed = dofs.iter().find(|own| own.lower > own.upper).map_or(Ok(()), |own| {
            let name = form.fields[bounds[own.bound].field].name.clone();
            Err(DataError::BoundsCross { name, lower: own.lower, upper: own.upper }.into())
        });
        together(&on.mesh, crossed)?;
        Ok(Self { dofs })
    }

    /// Returns a discretisation with conditions on all bounded degrees of freedom: contact may be all that supports a
    /// body.
    pub(super) fn held(&self, on: &Discretisation) -> Result<Discretisation, RunError> {
        let mut held = on.clone();
        let mut all: Vec<Constraints> =
            on.fields.iter().map(|field| field.constraints.clone()).collect();
        for own in &self.dofs {
            let Some((field, node, component)) = on.unknown(own.dof) else { continue };
            let node = [node as u32];
            let held = all[field].fix_at(&node, Some(component), &[[0.0; 3]], |_, _| {});
            held.map_err(|error| OperatorError::new(error.to_string()))?;
        }
        held.constrain(all);
        Ok(held)
    }

    /// Returns the degrees of freedom at their bounds.
    pub(super) fn active(&self, u: &Vector) -> Vec<&BoundedDof> {
        let (values, unit) = (u.to_vec(), AT * epsilon(u.precision()));
        self.active_of(&values, unit)
    }

    fn active_of(&self, u: &[f64], unit: f64) -> Vec<&BoundedDof> {
        let at = |value: f64, bound: f64| (value - bound).abs() <= unit * bound.abs();
        let is_active = |own: &&BoundedDof| at(u[own.dof], own.lower) || at(u[own.dof], own.upper);
        self.dofs.iter().filter(is_active).collect()
    }
}

/// Returns ‖R(u)‖ without the rows of degrees of freedom at their bounds.
///
/// # Errors
///
/// As for [`Bounds::new`].
pub(super) fn free_residual(
    problem: &Problem,
    on: &Discretisation,
    parameters: &Parameters,
    u: &Vector,
    r: &mut Vector,
) -> Result<f64, RunError> {
    if !problem.bounds.is_empty() {
        let bounds = Bounds::new(&problem.bounds, (&problem.form, on), parameters)?;
        let mut rows = r.to_vec();
        bounds.active(u).into_iter().for_each(|own| rows[own.dof] = 0.0);
        r.set(&rows);
    }
    Ok(r.norm())
}

/// Returns the multiplier of each degree of freedom at a bound, 0 elsewhere, from R(u) without conditions.
///
/// # Errors
///
/// As for [`Bounds::new`].
pub(super) fn multiplier(of: EvaluationState<'_>, residual: &[f64]) -> Result<Vec<f64>, RunError> {
    let bounds = Bounds::new(of.bounds, (of.form, of.on), of.parameters)?;
    let mut all = vec![0.0; of.on.n_dofs()];
    let single = of.vector.map_or(f64::EPSILON, |vector| epsilon(vector.precision()));
    for own in bounds.active_of(of.u, AT * single) {
        all[own.dof] = residual[own.dof];
    }
    Ok(all)
}

/// Returns the name of the output that is the multiplier of a field.
fn output_name(field: &str) -> String {
    format!("multiplier_{field}")
}

/// Returns the outputs of multipliers of a problem as data, without values.
pub(super) fn outputs(problem: &Problem) -> impl Iterator<Item = Aux> {
    let form = &problem.form;
    let has_bound = |field: usize| problem.bounds.iter().any(|bound| bound.field == field);
    let fields = (0..form.fields.len()).filter(move |&field| has_bound(field));
    fields.map(move |field| {
        let own = &form.fields[field];
        let location = Location::Nodes(own.space);
        Aux { name: output_name(&own.name), shape: own.shape, location }
    })
}

/// Evaluates the densities of the multipliers, field by field.
///
/// # Errors
///
/// Kernels that cannot be compiled; elements whose functions have integrals without a sign.
pub(super) fn densities(
    problem: &Problem,
    of: EvaluationState<'_>,
    platform: &Platform,
    tables: &mut TableCache,
) -> Result<Vec<(Aux, AuxValues)>, RunError> {
    if problem.bounds.is_empty() {
        return Ok(Vec::new());
    }
    let forces = multiplier(of, &residual(of.form, of, platform, tables)?)?;
    let bounds = Bounds::new(of.bounds, (of.form, of.on), of.parameters)?;
    let mut densities = vec![0.0; forces.len()];
    let mut signless = vec![false; forces.len()];
    for index in 0..of.bounds.len() {
        let weights = residual(&weight_form(of.form, &of.bounds[index]), of, platform, tables)?;
        let mut largest = [weights.iter().fold(0.0_f64, |most, weight| most.max(*weight))];
        of.on.mesh.reduce_in_all(Reduction::Largest, &mut largest);
        for own in bounds.dofs.iter().filter(|own| own.bound == index) {
            let weight = weights[own.dof];
            signless[own.dof] = weight <= NO_WEIGHT * largest[0];
            if !signless[own.dof] {
                densities[own.dof] = forces[own.dof] / weight;
            }
        }
    }
    fill_signless(of, &bounds, &signless, &mut densities);
    let field = |(index, mut aux): (usize, Aux)| {
        let space = of.on.fields[index].space.as_ref().clone();
        let values = densities[of.on.dofs_of(index)].to_vec();
        let degree = Degree::Fixed(space.element().degree());
        aux.location = Location::Nodes(Space::H1(degree));
        let (space, values) = {
            let (space, values) = space.resolved(&values);
            (space.into_owned(), values.into_owned())
        };
        (aux, AuxValues::at_nodes(space, values))
    };
    let bounded = (0..of.form.fields.len())
        .filter(|&field| of.bounds.iter().any(|bound| bound.field == field));
    Ok(bounded.zip(outputs(problem)).map(field).collect())
}

/// Gives active degrees of freedom whose functions have no positive integral, as those of vertices of quadratic
/// triangles, the mean density of the others in their cells.
fn fill_signless(
    of: EvaluationState<'_>,
    bounds: &Bounds,
    signless: &[bool],
    densities: &mut [f64],
) {
    if of.on.mesh.in_all(signless.iter().filter(|own| **own).count()) == 0 {
        return;
    }
    let n = densities.len();
    let mut is_bounded = vec![false; n];
    bounds.dofs.iter().for_each(|own| is_bounded[own.dof] = true);
    let (mut sums, mut counts) = (vec![0.0; n], vec![0.0; n]);
    for (index, field) in of.on.fields.iter().enumerate() {
        let (space, start) = (&field.space, of.on.dofs_of(index).start);
        for (cell, component) in (0..of.on.mesh.n_cells())
            .flat_map(|cell| (0..space.components()).map(move |c| (cell, c)))
        {
            let dof = |node: &u32| start + *node as usize * space.components() + component;
            let own: Vec<usize> = space.cell_nodes(cell).iter().map(dof).collect();
            let known: Vec<f64> = own
                .iter()
                .filter(|dof| is_bounded[**dof] && !signless[**dof])
                .map(|dof| densities[*dof])
                .collect();
            for dof in own.into_iter().filter(|dof| signless[*dof] && !known.is_empty()) {
                sums[dof] += known.iter().sum::<f64>() / known.len() as f64;
                counts[dof] += 1.0;
            }
        }
    }
    if let Some(sharing) = of.on.sharing() {
        sharing.sum(&mut sums);
        sharing.sum(&mut counts);
    }
    for own in bounds.active_of(of.u, AT * f64::from(f32::EPSILON)) {
        if signless[own.dof] && counts[own.dof] > 0.0 {
            densities[own.dof] = sums[own.dof] / counts[own.dof];
        }
    }
}

/// Returns the form whose residual is ∫ φ_i over the region of a bound, in the rows of its component.
fn weight_form(form: &PointForm, bound: &Bound) -> PointForm {
    let mut graph = Graph::new();
    let one = graph.intern(Node::Constant(Number::new(1.0)));
    let slot = Slot {
        field: bound.field,
        side: Side::Inside,
        component: bound.component,
        part: Part::Value,
    };
    let region = bound.tags.clone().map_or(Region::Cells, Region::Facets);
    let integral = Integral::of_residual(region, graph, vec![(slot, one)]);
    PointForm { integrals: vec![integral], ..form.clone() }
}

/// Returns the residual of a form at a state, without conditions.
fn residual(
    form: &PointForm,
    of: EvaluationState<'_>,
    platform: &Platform,
    tables: &mut TableCache,
) -> Result<Vec<f64>, RunError> {
    let shared = SharedResources { platform, table_cache: tables };
    let on = of.on.with_fields(form, &[])?;
    let operator = residual_of(form, of.elements, on, &of.parameters.values, shared)?;
    let operator = operator.of_first(of.on.fields.len());
    let (state, mut r) = (of.vector_for(&operator), operator.zeros());
    operator.residual(&state, &mut r)?;
    operator.finish()?;
    Ok(r.to_vec())
}
