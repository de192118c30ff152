//! Prescribed data of a problem as functions of the parameters: values of essential conditions, and auxiliary data.
//! They are evaluated again when parameters change; the set of constrained degrees of freedom never changes.
//!
//! The caller, a problem of the language or a program, evaluates the functions at given points. This module determines
//! the points and stores the values.

mod conflicts;
pub(super) mod images;
mod means;
mod normals;
mod point_states;
mod regions;
pub(crate) mod supports;
mod traces;

use super::{DataError, FileData, RunError, together};
use crate::mesh::{Facet, Mesh};
use crate::operator::geometry::places;
use crate::space::Space;
use crate::space::constraint::{Constraints, NonFiniteValue};
use crate::space::discretisation::{AuxValues, CellValues, Discretisation, Field};
use crate::space::functionals::FacetFunctionals;
use crate::support::expression::{Parameters, evaluate};
use crate::support::timers::{in_step, step};
use fem_dsl::point::{Input, Location, Node, NodeId, PointForm};
use fem_dsl::problem::{
    Data, Dirichlet, Expression, Problem, Stepping, Support, Trace, ValueSource,
};
use kernels_gen::generate::elements;
use kernels_gen::plan::Elements;
use std::mem::discriminant;
use std::sync::Arc;

pub use conflicts::{ConditionConflict, meetings};
pub use means::FinerLevel;
pub use point_states::PointStates;
use regions::{by_region, cells_of};

/// Builds spaces on a mesh with the facets of a form, without conditions and data; `tags` are those that conditions
/// name.
///
/// # Errors
///
/// Tags that the mesh lacks, spaces that cannot be numbered.
pub fn discretise<'t>(
    form: &'t PointForm,
    elements: &Elements,
    mesh: impl Into<Arc<Mesh>>,
    tags: impl IntoIterator<Item = &'t String>,
) -> Result<Discretisation, RunError> {
    // Elements of deficient rank are checked on the mesh first.
    let notes = elements.notes.iter().filter(|_| elements.lost.is_none());
    notes.for_each(|note| tracing::warn!("{note}"));
    let mut on = Discretisation::new(mesh, &elements.spaces())?;
    on.expect_tags(form, tags)?;
    on.find_regions(form)?;
    on.find_images()?;
    Ok(on)
}

/// Support of an essential condition: the nodes of a field on part of the boundary.
pub struct ConditionSupport {
    field: usize,
    name: String,
    trace: Trace,
    support: Support,
    /// Facets of the support, ascending.
    facets: Vec<Facet>,
    /// Nodes, ascending.
    nodes: Vec<u32>,
    places: Vec<[f64; 3]>,
    /// Facet normals at each node, for a condition on the normal component.
    normals: Vec<Vec<[f64; 3]>>,
    /// The functionals of the degrees of freedom, of fields of H(curl) and H(div).
    functionals: Option<FacetFunctionals>,
}

impl ConditionSupport {
    /// Finds the support of a condition on a whole field, one component, or the normal component.
    ///
    /// # Errors
    ///
    /// Tags that the mesh lacks, a normal component on a support without facets, an element without points.
    pub fn new(
        form: &PointForm,
        on: &Discretisation,
        (field, trace): (usize, Trace),
        support: &Support,
    ) -> Result<Self, RunError> {
        let space = &on.fields[field].space;
        let name = form.fields[field].name.clone();
        if space.element().whitney().is_some() {
            return traces::of_facets(on, (field, name), trace, support);
        }
        let (mut facets, nodes) = supports::find(&on.mesh, space, support)?;
        let nodes = held_by_any(&on.mesh, space, nodes);
        let places = space.points_at(&on.mesh, &on.partition, &nodes)?;
        let normals = match trace {
            Trace::Normal => {
                supports::has_sides(&on.mesh, support)?;
                images::normals_at(on, field, &facets, &nodes)?
            }
            Trace::Whole | Trace::Component(_) | Trace::Tangential => Vec::new(),
        };
        facets.sort_unstable();
        let (support, functionals) = (support.clone(), None);
        Ok(Self { field, name, trace, support, facets, nodes, places, normals, functionals })
    }

    /// Returns the name of the field.
    pub fn field(&self) -> &str {
        &self.name
    }

    /// Returns the constrained quantity as written in the language.
    fn what(&self) -> String {
        match self.trace {
            Trace::Whole => self.name.clone(),
            Trace::Component(component) => format!("{}[{component}]", self.name),
            Trace::Normal => format!("dot({}, n)", self.name),
            Trace::Tangential => format!("cross(n, {})", self.name),
        }
    }

    /// Returns the support as written in the language.
    fn place(&self) -> String {
        match &self.support {
            Support::Boundary => "on all".to_owned(),
            Support::Tags(tags) => {
                let tags: Vec<String> = tags.iter().map(|tag| format!("\"{tag}\"")).collect();
                format!("on {}", tags.join(", "))
            }
            Support::Vertex(to) => format!("at {}", super::shown(to)),
        }
    }
}

/// Returns the nodes of this process on tagged facets, curves and points, with those that only other processes find
/// there.
///
/// # Errors
///
/// Tags that the mesh lacks.
pub(super) fn nodes_under(
    mesh: &Mesh,
    space: &Space,
    support: &Support,
) -> Result<Vec<u32>, RunError> {
    let (_, nodes) = supports::find(mesh, space, support)?;
    Ok(held_by_any(mesh, space, nodes))
}

/// Adds to some nodes of a space those found by other processes; ascending.
pub(super) fn held_by_any(mesh: &Mesh, space: &Space, nodes: Vec<u32>) -> Vec<u32> {
    let Some(cut) = mesh.cut() else { return nodes };
    let sharing = space.sharing(cut.group());
    let mut held = vec![0.0f64; space.n_nodes()];
    nodes.iter().for_each(|&node| held[node as usize] = 1.0);
    sharing.largest(&mut held);
    let nodes = held.iter().zip(0..).filter(|(held, _)| **held > 0.0);
    nodes.map(|(_, node)| node).collect()
}

/// Builds the conditions of each field. At a node of several conditions, the last one applies; conditions in different
/// directions combine ([`normals`]). `values` evaluates a condition, by index, at points: the components of the field,
/// or the single one, point by point. A condition on the normal component has one number, or a vector whose normal
/// component is used.
///
/// # Errors
///
/// A value that is not finite, and errors of `values`.
pub fn conditions<'h, E: From<RunError>>(
    on: &Discretisation,
    held: impl IntoIterator<Item = &'h ConditionSupport>,
    mut values: impl FnMut(usize, &[[f64; 3]]) -> Result<Vec<f64>, E>,
) -> Result<Vec<Constraints>, E> {
    let mut all: Vec<Constraints> = on.fields.iter().map(Field::without_conditions).collect();
    let mut stated = Vec::new();
    for (index, held) in held.into_iter().enumerate() {
        let ConditionSupport { field, name, trace, nodes, places, .. } = held;
        let values = held.of_values(values(index, held.points())?);
        stated.push((held, values));
        let (held, values) = &stated[index];
        let component = match trace {
            _ if held.functionals.is_some() => None,
            Trace::Whole | Trace::Tangential => None,
            Trace::Component(component) => Some(*component),
            Trace::Normal => {
                let bad = values.iter().position(|value| !value.is_finite());
                if let Some(at) = bad {
                    let point = places[at * places.len() / values.len()];
                    let source = NonFiniteValue { value: values[at], component: 0, point };
                    let field = held.name.clone();
                    let error = DataError::Condition { index, field, source };
                    return Err(RunError::from(error).into());
                }
                continue;
            }
        };
        let count = component.map_or(on.fields[*field].space.components(), |_| 1);
        let mut rows = values.chunks(count.max(1));
        let fixed = all[*field].fix_at(nodes, component, places, |_, row| {
            if let Some(values) = rows.next() {
                row.copy_from_slice(values);
            }
        });
        let error =
            |source| RunError::from(DataError::Condition { index, field: name.clone(), source });
        fixed.map_err(error)?;
    }
    for (field, all) in all.iter_mut().enumerate() {
        let is_own = |held: &ConditionSupport| held.field == field && held.functionals.is_none();
        let own = stated.iter().filter(|(held, _)| is_own(held));
        normals::hold(on.mesh.order(), &own.collect::<Vec<_>>(), all);
        images::release(&on.fields[field], all);
    }
    Ok(all)
}

/// Cell diameter at a point, by the point's index; NaN at nodes.
pub type CellDiameter<'a> = &'a (dyn Fn(usize) -> f64 + Sync);

/// Builds the auxiliary data of a form. `values` evaluates one, by index, at points, component by component within a
/// point; `None` if it has no value.
///
/// # Errors
///
/// Data without a value, a value that is not finite, and errors of `values`.
pub fn data<E: From<RunError>>(
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
    mut values: impl FnMut(usize, &[[f64; 3]], CellDiameter<'_>) -> Result<Option<Vec<f64>>, E>,
) -> Result<Vec<AuxValues>, E> {
    let mut one = |index| {
        datum(form, elements, on, index, |points, diameter| values(index, points, diameter))
    };
    (0..form.aux.len()).map(&mut one).collect()
}

/// Builds one auxiliary datum, by index.
///
/// # Errors
///
/// As [`data`].
pub fn datum<E: From<RunError>>(
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
    index: usize,
    mut values: impl FnMut(&[[f64; 3]], CellDiameter<'_>) -> Result<Option<Vec<f64>>, E>,
) -> Result<AuxValues, E> {
    let aux = &form.aux[index];
    let (space, points) = sites(index, form, elements, on)?;
    if let Some(space) = space.as_ref().filter(|space| space.element().whitney().is_some()) {
        let unknown = || RunError::from(DataError::NoAux { name: aux.name.clone() });
        let numbers = space.interpolate_vectors::<E>(&on.mesh, |points| {
            values(points, &|_| f64::NAN)?.ok_or_else(|| unknown().into())
        });
        let numbers = numbers.map_err(RunError::from)??;
        return Ok(AuxValues::at_nodes(space.clone(), numbers));
    }
    let each = if aux.location == Location::Points { elements.rule.count() } else { 1 };
    let diameter = |point: usize| match space {
        Some(_) => f64::NAN,
        None => on.mesh.diameter(point / each),
    };
    let Some(numbers) = values(&points, &diameter)? else {
        return Err(RunError::from(DataError::NoAux { name: aux.name.clone() }).into());
    };
    if let Some(at) = numbers.iter().position(|value| !value.is_finite()) {
        let point = points[at / aux.shape.components()];
        let (name, value) = (aux.name.clone(), numbers[at]);
        return Err(RunError::from(DataError::AuxNotFinite { name, value, point }).into());
    }
    let components = aux.shape.components();
    Ok(match (space, aux.location) {
        (Some(space), _) => at_nodes(on, space, numbers),
        (None, Location::Cells) => {
            let own = numbers.len();
            let mut numbers = numbers;
            if let Some((cut, beyond)) = on.beyond() {
                beyond.append(cut, components, &mut numbers);
            }
            AuxValues::Cells(CellValues::split(numbers, own))
        }
        (None, _) => AuxValues::at_points(numbers),
    })
}

/// Data at nodes, also at those of cells beyond a part if facets between cells read them.
fn at_nodes(on: &Discretisation, space: Space, numbers: Vec<f64>) -> AuxValues {
    // A caller may ask for the points alone.
    let is_whole = numbers.len() == space.n_dofs();
    let Some((cut, beyond)) = on.beyond().filter(|_| is_whole) else {
        return AuxValues::at_nodes(space, numbers);
    };
    // In the order of the cells, and back.
    let (components, reaching) = (space.components(), space.reaching(beyond));
    let of_node = |&node: &u32| &numbers[node as usize * components..][..components];
    let mut by_cell: Vec<f64> = space.nodes().iter().flat_map(of_node).copied().collect();
    beyond.append(cut, space.nodes_per_cell() * components, &mut by_cell);
    let mut all = numbers.clone();
    all.resize(reaching.n_dofs(), 0.0);
    for (node, values) in reaching.all_nodes().zip(by_cell.chunks_exact(components)) {
        all[node as usize * components..][..components].copy_from_slice(values);
    }
    AuxValues::at_nodes(reaching, all)
}

/// Returns the points of auxiliary data: the nodes of a space, the centre of each cell, or its quadrature points.
fn sites(
    index: usize,
    form: &PointForm,
    elements: &Elements,
    on: &Discretisation,
) -> Result<(Option<Space>, Vec<[f64; 3]>), RunError> {
    let aux = &form.aux[index];
    Ok(match aux.location {
        Location::Nodes(_) => {
            let element = elements.element_of_aux(index)?;
            let space = on.aux_space(element, aux.shape.components())?;
            let points = space.points(&on.mesh, &on.partition)?;
            (Some(space), points)
        }
        Location::Cells => (None, places(&on.mesh, &[on.mesh.cell().centre()])?),
        Location::Points => (None, places(&on.mesh, &elements.rule.points())?),
    })
}

/// Prescribed conditions and data.
pub trait PrescribedData: Send + Sync {
    /// Evaluates the conditions of each field for these parameter values.
    ///
    /// # Errors
    ///
    /// A value that is not finite.
    fn conditions(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, RunError>;

    /// Evaluates the auxiliary data for these parameter values.
    ///
    /// # Errors
    ///
    /// A value that is not finite.
    fn aux(&self, on: &Discretisation, parameters: &Parameters)
    -> Result<Vec<AuxValues>, RunError>;

    /// Returns whether the value of some condition depends on t.
    fn conditions_read_time(&self) -> bool;

    /// Returns whether the value of some condition depends on a parameter.
    fn conditions_depend_on(&self, param: usize) -> bool;

    /// Evaluates the conditions with their values, first and second time derivatives; `None` if derivatives are
    /// unknown.
    ///
    /// # Errors
    ///
    /// A value or derivative that is not finite.
    fn conditions_with_rates(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Option<[Vec<Constraints>; 3]>, RunError> {
        let _ = (on, parameters);
        Ok(None)
    }

    /// Returns whether some auxiliary data depends on a parameter.
    fn aux_depends_on(&self, param: usize) -> bool;

    /// Returns the states at points, if there can be any.
    fn point_states(&self) -> Option<&PointStates> {
        None
    }

    /// Rediscretises with another degree, or on another mesh of the same domain: elements, conditions and data; `None`
    /// if these are unknown there. Data without a formula is averaged from the level above, if there is one.
    ///
    /// # Errors
    ///
    /// Spaces that cannot be numbered, a value that is not finite.
    fn at(
        &self,
        form: &PointForm,
        mesh: Arc<Mesh>,
        degree: usize,
        parameters: &Parameters,
        above: Option<FinerLevel<'_>>,
    ) -> Result<Option<(Elements, Discretisation)>, RunError> {
        let _ = (form, mesh, degree, parameters, above);
        Ok(None)
    }
}

/// Prescribed data of a problem of the language.
#[derive(Clone)]
pub struct ProblemData {
    /// The problem.
    pub problem: Arc<Problem>,
    /// Elements of its form.
    pub elements: Arc<Elements>,
    /// Its data from files.
    pub files: Arc<FileData>,
    /// The current values of its states at points.
    pub states: Arc<PointStates>,
}

impl ProblemData {
    /// Returns the conditions on fields of a form, which may have a subset of the problem's fields, with each field's
    /// index there.
    fn dirichlet<'f>(
        &'f self,
        form: &'f PointForm,
    ) -> impl Iterator<Item = (&'f Dirichlet, usize)> {
        let problem = &self.problem;
        problem.dirichlet.iter().filter_map(move |condition| {
            let name = &problem.form.fields[condition.field].name;
            let field = form.fields.iter().position(|own| own.name == *name)?;
            Some((condition, field))
        })
    }

    /// Returns whether a field of a form is the potential of the field under a condition. Where that is given, it is 0:
    /// its derivative has no such trace.
    fn is_potential(&self, form: &PointForm, condition: &Dirichlet, field: usize) -> bool {
        let (own, other) =
            (self.problem.form.fields[condition.field].space, form.fields[field].space);
        own.is_piola() && discriminant(&own) != discriminant(&other)
    }

    /// Gives scalar potentials without a condition the mean 0: they are determined up to a constant.
    fn set_means_of_potentials(
        &self,
        form: &PointForm,
        on: &Discretisation,
        all: &mut [Constraints],
    ) {
        for (field, own) in form.fields.iter().enumerate() {
            let known = self.problem.form.fields.iter().find(|known| known.name == own.name);
            let is_potential = known.is_some_and(|known| known.space.is_piola());
            if !is_potential || own.space.is_piola() {
                continue;
            }
            if on.mesh.in_all(all[field].len()) == 0 {
                all[field].set_mean(vec![0.0]);
            }
        }
    }

    /// Evaluates auxiliary data, by index.
    fn datum(
        &self,
        index: usize,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<AuxValues, RunError> {
        let Problem { form, aux, .. } = &*self.problem;
        if let Some(values) = self.states.get(index) {
            return Ok(AuxValues::at_points(values));
        }
        datum(form, &self.elements, on, index, |points, diameter| {
            let own = aux.iter().enumerate().filter(|(_, data)| data.aux == index);
            let own: Vec<(usize, &Data)> = own.collect();
            let value = |(number, data): (usize, &Data)| match &data.value {
                ValueSource::Formula(formula) => at_points(formula, points, parameters, diameter),
                ValueSource::File(_) | ValueSource::Solution(_) | ValueSource::Cells(_) => {
                    self.files.of_data(number).to_vec()
                }
            };
            match &own[..] {
                [.., last] if last.1.tags.is_none() => Ok(Some(value(*last))),
                // History data of a time integrator starts at 0.
                [] if form.rates.iter().any(|rate| rate.aux == index) => {
                    Ok(Some(vec![0.0; points.len() * form.aux[index].shape.components()]))
                }
                [] => Ok(None),
                several => {
                    let cells = cells_of(index, form, &self.elements, on, points.len())?;
                    by_region(&form.aux[index].name, on, several, &cells, value).map(Some)
                }
            }
        })
    }

    /// Finds the supports of the conditions on the fields of a form.
    fn held(
        &self,
        form: &PointForm,
        on: &Discretisation,
    ) -> Result<Vec<ConditionSupport>, RunError> {
        let held = self.dirichlet(form).map(|(condition, field)| {
            let trace = match self.is_potential(form, condition, field) {
                true if form.fields[field].space.is_piola() => Trace::Tangential,
                true => Trace::Whole,
                false => condition.trace,
            };
            ConditionSupport::new(form, on, (field, trace), &condition.support)
        });
        held.collect()
    }

    /// Evaluates `N` parts of the condition formulas, selected by `of`.
    fn conditions_of<const N: usize>(
        &self,
        form: &PointForm,
        on: &Discretisation,
        parameters: &Parameters,
        of: impl Fn(&Expression, usize) -> &[NodeId],
    ) -> Result<[Vec<Constraints>; N], RunError> {
        let held = self.held(form, on)?;
        self.conditions_at(form, (on, &held), parameters, of)
    }

    fn conditions_at<const N: usize>(
        &self,
        form: &PointForm,
        (on, held): (&Discretisation, &[ConditionSupport]),
        parameters: &Parameters,
        of: impl Fn(&Expression, usize) -> &[NodeId],
    ) -> Result<[Vec<Constraints>; N], RunError> {
        let given: Vec<(&Dirichlet, usize)> = self.dirichlet(form).collect();
        let mut parts = std::array::from_fn(|_| Vec::new());
        for (part, all) in parts.iter_mut().enumerate() {
            *all = conditions(on, held, |index, places| {
                let (condition, field) = given[index];
                if self.is_potential(form, condition, field) {
                    let each = if form.fields[field].space.is_piola() { form.dim } else { 1 };
                    return Ok(vec![0.0; each * places.len()]);
                }
                let value = &condition.value;
                Ok::<_, RunError>(evaluate(value, of(value, part), places, parameters, |_| {
                    f64::NAN
                }))
            })?;
            for (field, mean) in &self.problem.mean {
                let name = &self.problem.form.fields[*field].name;
                if let Some(own) = form.fields.iter().position(|own| own.name == *name) {
                    all[own].set_mean(mean.clone());
                }
            }
            self.set_means_of_potentials(form, on, all);
        }
        Ok(parts)
    }

    /// Evaluates the initial conditions; returns notes on those that meet with different values, initially or later.
    ///
    /// # Errors
    ///
    /// A value that is not finite, tags that the mesh lacks.
    pub(super) fn first_conditions(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<(Vec<Constraints>, Vec<String>), RunError> {
        let form = &self.problem.form;
        let held = together(&on.mesh, self.held(form, on))?;
        let all = self.conditions_at(form, (on, &held), parameters, |value, _| &value.value);
        let [all] = together(&on.mesh, all)?;
        let mut found: Vec<ConditionConflict> = Vec::new();
        for time in self.times() {
            let mut then = parameters.clone();
            then.values[0] = time;
            let values = |index: usize, places: &[[f64; 3]]| {
                let value = &self.problem.dirichlet[index].value;
                Ok::<_, RunError>(at_points(value, places, &then, |_| f64::NAN))
            };
            let more = together(&on.mesh, meetings(on, &held.iter().collect::<Vec<_>>(), values))?;
            let known =
                |(pair, _): &ConditionConflict| found.iter().all(|(other, _)| other != pair);
            let more: Vec<ConditionConflict> = more.into_iter().filter(known).collect();
            found.extend(more);
        }
        Ok((all, found.into_iter().map(|(_, note)| note).collect()))
    }

    /// Returns the times at which conditions are compared.
    fn times(&self) -> Vec<f64> {
        let of = |own: &Stepping| [0.0, 0.382, 1.0].map(|s| own.from + s * (own.to - own.from));
        let depends = self.problem.dirichlet.iter().any(|condition| {
            let mut nodes = condition.value.graph.nodes().iter();
            nodes.any(|node| matches!(node, Node::Input(Input::Time)))
        });
        let stepping = self.problem.stepping.as_ref().filter(|_| depends);
        stepping.map_or_else(|| vec![self.problem.time], |own| of(own).into())
    }
}

impl PrescribedData for ProblemData {
    fn conditions(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, RunError> {
        let found = self.conditions_of(&self.problem.form, on, parameters, |value, _| &value.value);
        together(&on.mesh, found).map(|[conditions]| conditions)
    }

    fn conditions_read_time(&self) -> bool {
        let mut values = self.problem.dirichlet.iter().map(|condition| &condition.value.graph);
        values.any(|graph| graph.nodes().iter().any(|node| *node == Node::Input(Input::Time)))
    }

    fn conditions_depend_on(&self, param: usize) -> bool {
        self.problem.dirichlet.iter().any(|condition| reads(&condition.value, param))
    }

    fn conditions_with_rates(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Option<[Vec<Constraints>; 3]>, RunError> {
        let mut values = self.problem.dirichlet.iter().map(|condition| &condition.value);
        if values.any(|value| value.rates.iter().any(Vec::is_empty)) {
            return Ok(None);
        }
        let found =
            self.conditions_of(&self.problem.form, on, parameters, |value, part| match part {
                0 => &value.value,
                order => &value.rates[order - 1],
            });
        together(&on.mesh, found).map(Some)
    }

    fn aux(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<AuxValues>, RunError> {
        let datum = |index| together(&on.mesh, self.datum(index, on, parameters));
        (0..self.problem.form.aux.len()).map(datum).collect()
    }

    fn at(
        &self,
        form: &PointForm,
        mesh: Arc<Mesh>,
        degree: usize,
        parameters: &Parameters,
        above: Option<FinerLevel<'_>>,
    ) -> Result<Option<(Elements, Discretisation)>, RunError> {
        let problem = &self.problem;
        if above.is_none() && problem.aux.iter().any(|data| data.value.formula().is_none()) {
            return Ok(None);
        }
        let elements = Arc::new(elements(form, mesh.cell(), degree, mesh.order(), None)?);
        let tags = self.dirichlet(form).flat_map(|(condition, _)| condition.support.tags());
        let mut on = in_step("spaces", || discretise(form, &elements, mesh, tags))?;
        let constraining = step("conditions");
        let states = Arc::default();
        let own = Self { elements: Arc::clone(&elements), states, ..self.clone() };
        let mut parameters = parameters.clone();
        parameters.degree = degree;
        let found = own.conditions_of(form, &on, &parameters, |value, _| &value.value);
        let [conditions] = together(&on.mesh, found)?;
        on.constrain(conditions);
        drop(constraining);
        let is_state = |index| problem.states.iter().any(|state| state.aux == index);
        let from_file = |data: &Data, index| {
            data.aux == index && (data.value.formula().is_none() || is_state(index))
        };
        let datum = |index| match above {
            Some(above) if problem.aux.iter().any(|data| from_file(data, index)) => {
                above.datum(index, &problem.form, &elements, &on)
            }
            _ => together(&on.mesh, own.datum(index, &on, &parameters)),
        };
        on.aux = (0..problem.form.aux.len()).map(datum).collect::<Result<_, _>>()?;
        Ok(Some((Elements::clone(&elements), on)))
    }

    fn point_states(&self) -> Option<&PointStates> {
        Some(&self.states)
    }

    fn aux_depends_on(&self, param: usize) -> bool {
        let mut formulas = self.problem.aux.iter().filter_map(|data| data.value.formula());
        formulas.any(|formula| reads(formula, param))
    }
}

/// Returns whether an expression depends on a parameter.
fn reads(expression: &Expression, param: usize) -> bool {
    let mut nodes = expression.graph.nodes().iter();
    nodes.any(|node| matches!(node, Node::Input(Input::Param(of, _)) if *of == param))
}

fn at_points(
    expression: &Expression,
    points: &[[f64; 3]],
    parameters: &Parameters,
    diameter: impl Fn(usize) -> f64 + Sync,
) -> Vec<f64> {
    evaluate(expression, &expression.value, points, parameters, diameter)
}
