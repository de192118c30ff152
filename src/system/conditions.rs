//! The essential conditions of a [`System`](super::System): functions of position and of parameters → nodal values,
//! reevaluated on request.

use super::value::{Boundary, FunctionError, Value, components, numbers};
use crate::Error;
use crate::error::index;
use fem_dsl::point::{PointForm, Shape};
use fem_dsl::problem::{Support, Trace};
use kernels_gen::generate::elements;
use kernels_gen::plan::Elements;
use runtime::mesh::Mesh;
use runtime::problem::{
    ConditionSupport, DataError, FinerLevel, PrescribedData, RunError, conditions, discretise,
    meetings,
};
use runtime::space::constraint::Constraints;
use runtime::space::discretisation::{AuxValues, Discretisation};
use runtime::support::expression::Parameters;
use std::sync::Arc;

/// Writes the components at each of some points, after checking their number; the second argument contains the
/// parameters.
type ConditionWriter =
    Box<dyn Fn(&[[f64; 3]], &[f64], &mut [f64]) -> Result<(), Error> + Send + Sync>;

/// A requested condition.
pub(super) struct ConditionRequest {
    field: String,
    trace: Trace,
    pub(super) boundary: Boundary,
    params: Vec<String>,
    value: ConditionWriter,
}

impl ConditionRequest {
    pub(super) fn new<V: Value, const N: usize>(
        field: &str,
        trace: Trace,
        boundary: Boundary,
        params: [&str; N],
        value: impl Fn(&[f64; 3], [f64; N]) -> V + Send + Sync + 'static,
    ) -> Self {
        let name = field.to_owned();
        let write = move |points: &[[f64; 3]], given: &[f64], rows: &mut [f64]| {
            let mut params = [0.0; N];
            params.iter_mut().zip(given).for_each(|(to, from)| *to = *from);
            let count = rows.len() / points.len().max(1);
            points.iter().zip(rows.chunks_mut(count.max(1))).try_for_each(|(x, row)| {
                let value = value(x, params);
                components(&name, row.len(), value.components())?;
                row.copy_from_slice(value.components());
                Ok(())
            })
        };
        Self {
            field: field.to_owned(),
            trace,
            boundary,
            params: params.map(str::to_owned).into(),
            value: Box::new(write),
        }
    }

    /// Requests a condition whose values come from one function of all points and of the time.
    pub(super) fn of_points(
        field: &str,
        trace: Trace,
        boundary: Boundary,
        values: impl Fn(&[[f64; 3]], f64) -> Result<Vec<f64>, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        let name = field.to_owned();
        let write = move |points: &[[f64; 3]], given: &[f64], rows: &mut [f64]| {
            let values = values(points, given[0]).map_err(Error::Function)?;
            numbers(&name, rows.len(), &values)?;
            rows.copy_from_slice(&values);
            Ok(())
        };
        let (field, params) = (field.to_owned(), vec!["t".to_owned()]);
        Self { field, trace, boundary, params, value: Box::new(write) }
    }
}

/// A condition on a mesh.
struct Condition {
    /// The field, and the constrained trace.
    of: (usize, Trace),
    support: Support,
    held: ConditionSupport,
    /// Values per node.
    count: usize,
    params: Vec<usize>,
    value: ConditionWriter,
}

/// The conditions of a system, in order, and the mean values of fields determined up to a constant.
pub(super) struct Conditions {
    essential: Vec<Condition>,
    means: Vec<(String, Vec<f64>)>,
}

impl Conditions {
    pub(super) fn new(
        form: &PointForm,
        wanted: Vec<ConditionRequest>,
        means: Vec<(String, Vec<f64>)>,
        on: &Discretisation,
    ) -> Result<Self, Error> {
        for (name, mean) in &means {
            let field = index("field", name, form.fields.iter().map(|field| field.name.as_str()))?;
            components(name, form.fields[field].shape.components(), mean)?;
            let dated = form.rates.iter().any(|rate| rate.field == field);
            if dated || wanted.iter().any(|own| own.field == *name) {
                return Err(Error::MeanOfFixed { field: name.clone() });
            }
            if let Some(&value) = mean.iter().find(|value| !value.is_finite()) {
                let name = format!("mean of {name}");
                let error = RunError::from(DataError::ParamNotFinite { name, value });
                return Err(error.into());
            }
        }
        let made = wanted.into_iter().map(|wanted| Condition::new(form, wanted, on));
        Ok(Self { essential: made.collect::<Result<_, _>>()?, means })
    }

    /// Sets the mean values of a form's fields.
    fn set_means(&self, form: &PointForm, all: &mut [Constraints]) {
        for (field, own) in form.fields.iter().zip(all) {
            let mean = self.means.iter().rev().find(|(name, _)| *name == field.name);
            mean.iter().for_each(|(_, mean)| own.set_mean(mean.clone()));
        }
    }

    /// Returns whether some condition depends on a parameter, or on the time.
    fn depend_on(&self, param: usize) -> bool {
        self.essential.iter().any(|condition| condition.params.contains(&param))
    }

    /// Returns the conditions of each field for these parameters.
    fn evaluate(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, Error> {
        let held = self.essential.iter().map(|condition| &condition.held);
        Self::valued(on, held, &self.essential.iter().collect::<Vec<_>>(), parameters)
    }

    /// Returns remarks on conditions that meet with different values.
    pub(super) fn meetings(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<String>, Error> {
        let held: Vec<&ConditionSupport> =
            self.essential.iter().map(|condition| &condition.held).collect();
        let values =
            |index: usize, places: &[[f64; 3]]| self.essential[index].values(places, parameters);
        let found = meetings(on, &held, values)?;
        Ok(found.into_iter().map(|(_, note)| note).collect())
    }

    /// Returns the essential conditions and the means of each field.
    pub(super) fn constraints(
        &self,
        form: &PointForm,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, Error> {
        let mut all = self.evaluate(on, parameters)?;
        self.set_means(form, &mut all);
        Ok(all)
    }

    /// Returns the same for some conditions, possibly on other nodes.
    fn valued<'h>(
        on: &Discretisation,
        held: impl Iterator<Item = &'h ConditionSupport>,
        own: &[&Condition],
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, Error> {
        conditions(on, held, |index, places| own[index].values(places, parameters))
    }
}

impl Condition {
    fn new(form: &PointForm, wanted: ConditionRequest, on: &Discretisation) -> Result<Self, Error> {
        let ConditionRequest { field: name, trace, boundary, params, value } = wanted;
        let field = index("field", &name, form.fields.iter().map(|field| field.name.as_str()))?;
        let shape = form.fields[field].shape;
        let count = shape.components();
        match trace {
            Trace::Component(component) if component >= count => {
                let known: Vec<String> = (0..count).map(|i| i.to_string()).collect();
                let (name, known) = (component.to_string(), known.iter().map(String::as_str));
                return Err(Error::unknown("component", &name, known));
            }
            Trace::Normal if shape != Shape::Vector(form.dim) => {
                return Err(Error::Components { name, expected: form.dim, found: count });
            }
            Trace::Whole | Trace::Component(_) | Trace::Normal | Trace::Tangential => {}
        }
        if !on.fields[field].space.element().is_continuous() {
            return Err(Error::Discontinuous { field: name });
        }
        let support = boundary.into();
        if support == Support::Tags(Vec::new()) {
            return Err(Error::NoBoundary { field: name });
        }
        let of = (field, trace);
        let held = ConditionSupport::new(form, on, of, &support)?;
        let count = if trace == Trace::Whole { count } else { 1 };
        let params = params.iter().map(|param| number(form, param)).collect::<Result<_, _>>()?;
        Ok(Self { of, support, held, count, params, value })
    }

    /// Returns the values at some points.
    fn values(&self, places: &[[f64; 3]], parameters: &Parameters) -> Result<Vec<f64>, Error> {
        let Self { count, params, value, .. } = self;
        let params = params.iter().map(|&param| match param {
            TIME => parameters.values[0],
            param => parameters.values[parameters.range(param)][0],
        });
        let (given, mut rows): (Vec<f64>, _) = (params.collect(), vec![0.0; places.len() * count]);
        value(places, &given, &mut rows)?;
        Ok(rows)
    }
}

impl From<Boundary> for Support {
    fn from(boundary: Boundary) -> Self {
        match boundary {
            Boundary::All => Self::Boundary,
            Boundary::Tags(tags) => Self::Tags(tags),
            Boundary::Vertex(point) => Self::Vertex(point),
        }
    }
}

/// The time, instead of the index of a parameter.
const TIME: usize = usize::MAX;

/// Returns the index of a scalar parameter.
fn number(form: &PointForm, name: &str) -> Result<usize, Error> {
    if name == "t" {
        return Ok(TIME);
    }
    let at = index("param", name, form.own_params().iter().map(|param| param.name.as_str()))?;
    match form.params[at].shape {
        Shape::Scalar => Ok(at),
        shape => {
            Err(Error::Components { name: name.to_owned(), expected: shape.components(), found: 1 })
        }
    }
}

fn to_run_error(error: Error) -> RunError {
    match error {
        Error::Run(error) => error,
        Error::System(error) => *error,
        other => DataError::Prescribed(Box::new(other)).into(),
    }
}

impl PrescribedData for Conditions {
    fn conditions(
        &self,
        on: &Discretisation,
        parameters: &Parameters,
    ) -> Result<Vec<Constraints>, RunError> {
        self.evaluate(on, parameters).map_err(to_run_error)
    }

    fn at(
        &self,
        form: &PointForm,
        mesh: Arc<Mesh>,
        degree: usize,
        parameters: &Parameters,
        above: Option<FinerLevel<'_>>,
    ) -> Result<Option<(Elements, Discretisation)>, RunError> {
        // Data was defined on the system's own mesh, and may have been replaced since.
        let data = above.map_or(form.aux.len(), |above| above.on.aux.len());
        if above.is_none() && data > 0 {
            return Ok(None);
        }
        let elements = elements(form, mesh.cell(), degree, mesh.order(), None)?;
        // The form may have only some of the system's fields.
        let there =
            |own: &Condition| form.fields.iter().position(|field| field.name == own.held.field());
        let own: Vec<&Condition> =
            self.essential.iter().filter(|own| there(own).is_some()).collect();
        let named = own.iter().flat_map(|own| own.support.tags());
        let mut on = discretise(form, &elements, mesh, named)?;
        let held = own.iter().map(|own| {
            let of = (there(own).unwrap_or(own.of.0), own.of.1);
            ConditionSupport::new(form, &on, of, &own.support)
        });
        let held: Vec<ConditionSupport> = held.collect::<Result<_, _>>()?;
        let mut conditions =
            Self::valued(&on, held.iter(), &own, parameters).map_err(to_run_error)?;
        self.set_means(form, &mut conditions);
        on.constrain(conditions);
        if let Some(above) = above {
            let datum = |index| above.datum(index, form, &elements, &on);
            on.aux = (0..data).map(datum).collect::<Result<_, _>>()?;
        }
        Ok(Some((elements, on)))
    }

    fn aux(&self, on: &Discretisation, _: &Parameters) -> Result<Vec<AuxValues>, RunError> {
        Ok(on.aux.clone())
    }

    fn conditions_read_time(&self) -> bool {
        self.depend_on(TIME)
    }

    fn conditions_depend_on(&self, param: usize) -> bool {
        self.depend_on(param)
    }

    fn aux_depends_on(&self, _: usize) -> bool {
        false
    }
}
