//! The way from a problem, a mesh and a platform to what drivers solve.
//!
//! ```text
//! problem, mesh, platform → Context: elements, spaces, conditions, data → operator; SolvePlan
//! ```

use super::files::FileData;
use super::kernels::{Kernels, compile_for, compile_operator};
use super::memory::check_room;
use super::multigrid::HierarchyInput;
use super::numbers;
use super::plan::{HierarchySettings, ProblemProperties, SolvePlan, plan_solve, quickest};
use super::platform::Platform;
use super::prescribed::{self, PrescribedData, ProblemData, discretise};
use super::{DataError, RunError};
use super::{rotation, sources, vector_fields};
use crate::mesh::Mesh;
use crate::mesh::periodic::PeriodicError;
use crate::operator::{Operator, TableCache};
use crate::space::discretisation::Discretisation;
use crate::support::expression::Parameters;
use crate::support::timers::{in_step, step};
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, SolverSettings};
use kernels_gen::generate::elements;
use kernels_gen::plan::{Elements, Task};
use std::sync::Arc;

/// A problem on its mesh and platform: all that a solve needs. Cheap to clone; clones may differ in parameters.
#[derive(Clone)]
pub struct Context {
    /// The problem.
    pub problem: Arc<Problem>,
    /// Elements of the form.
    pub elements: Arc<Elements>,
    /// Spaces, conditions and auxiliary data.
    pub on: Arc<Discretisation>,
    /// Time and parameters.
    pub parameters: Parameters,
    /// Conditions and data, to be evaluated again for other parameters or meshes.
    pub prescribed: Arc<dyn PrescribedData>,
    /// Processor and device.
    pub platform: Platform,
    /// Remarks on conditions and data.
    pub remarks: Vec<String>,
}

impl Context {
    /// Builds elements, spaces, conditions and data of a problem.
    ///
    /// # Errors
    ///
    /// Errors of the problem on this mesh.
    pub fn new(
        problem: impl Into<Arc<Problem>>,
        mesh: impl Into<Arc<Mesh>>,
        platform: Platform,
    ) -> Result<Self, RunError> {
        let problem = problem.into();
        let mesh = with_periodic_sides(&problem, mesh.into())?;
        let elements = elements_on(&problem, &mesh)?;
        Self::with_elements(problem, mesh, elements, platform)
    }

    /// The same with the plan of its solve, if the memory suffices for both.
    ///
    /// # Errors
    ///
    /// Likewise; [`RunError::Memory`], a solver that does not fit the form.
    pub(super) fn planned(
        problem: &Arc<Problem>,
        mesh: Arc<Mesh>,
        platform: &Platform,
    ) -> Result<(Self, SolvePlan), RunError> {
        let (form, named) = (&problem.form, problem.solver.as_ref());
        let mesh = with_periodic_sides(problem, mesh)?;
        let elements = elements_on(problem, &mesh)?;
        in_step("memory model", || {
            check_room(form, &elements, &mesh, named, platform.device.as_deref())
        })?;
        let mut context =
            Self::with_elements(Arc::clone(problem), mesh, elements, platform.clone())?;
        let plan = context.plan(named)?;
        context.platform = quickest(platform, problem, &context.elements, &context.on, &plan);
        Ok((context, plan))
    }

    fn with_elements(
        problem: Arc<Problem>,
        mesh: Arc<Mesh>,
        elements: Elements,
        platform: Platform,
    ) -> Result<Self, RunError> {
        let (form, elements) = (&problem.form, Arc::new(elements));
        let parameters =
            Parameters::new(&form.params, problem.time, &problem.params, problem.degree);
        check_parameters(form, &parameters)?;
        vector_fields::check(&problem)?;
        rotation::check(&problem, &elements, &mesh)?;
        let tags = problem.dirichlet.iter().flat_map(|condition| condition.support.tags());
        let mut on = in_step("spaces", || discretise(form, &elements, mesh, tags))?;
        let fields: Vec<&str> = form.fields.iter().map(|field| field.name.as_str()).collect();
        let mut remarks = prescribed::supports::notes(&on.mesh, &problem.dirichlet, &fields);
        let files = Arc::new(FileData::read(&problem, &elements, &on)?);
        let prescribed = ProblemData {
            problem: Arc::clone(&problem),
            elements: Arc::clone(&elements),
            files,
            states: Arc::default(),
        };
        let constraining = step("conditions");
        let (conditions, meetings) = prescribed.first_conditions(&on, &parameters)?;
        on.constrain(conditions);
        remarks.extend(prescribed::images::relate(form, &mut on)?);
        drop(constraining);
        on.aux = in_step("data", || prescribed.aux(&on, &parameters))?;
        remarks.extend(meetings);
        let (on, prescribed) = (Arc::new(on), Arc::new(prescribed));
        Ok(Self { problem, elements, on, parameters, prescribed, platform, remarks })
    }

    /// Returns the form.
    pub fn form(&self) -> &PointForm {
        &self.problem.form
    }

    /// The same with other parameters; conditions and data stay as they are.
    pub fn with_parameters(&self, parameters: Parameters) -> Self {
        Self { parameters, ..self.clone() }
    }

    /// The properties by which a solve is planned.
    pub fn properties(&self) -> ProblemProperties {
        ProblemProperties::of(self.form(), &self.on, self.platform.device.is_some())
    }

    /// Plans a solve with the named solver, or the one that suits the form.
    ///
    /// # Errors
    ///
    /// A solver that does not fit the form.
    pub fn plan(&self, named: Option<&SolverSettings>) -> Result<SolvePlan, RunError> {
        plan_solve(&self.properties(), named)
    }

    /// Compiles the kernels of the form, and fills the operator's tables.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be compiled, tables that cannot be filled, a device failure.
    pub fn operator(&self) -> Result<(Operator, Kernels), RunError> {
        self.operator_with_numbers(&self.platform)
    }

    /// The same in the representation that a plan needs.
    pub(super) fn operator_for(&self, plan: &SolvePlan) -> Result<(Operator, Kernels), RunError> {
        let target = plan.represented(&self.platform.target, &self.on);
        self.operator_with_numbers(&self.platform.with_target(target))
    }

    /// The same on another machine, with the equations of unknown numbers.
    fn operator_with_numbers(&self, platform: &Platform) -> Result<(Operator, Kernels), RunError> {
        let (mut operator, kernels) = self.operator_on(platform)?;
        let of = (&*self.problem, &*self.elements);
        numbers::attach(&mut operator, of, &self.on, &self.parameters, platform)?;
        Ok((operator, kernels))
    }

    /// The same on another machine.
    ///
    /// # Errors
    ///
    /// As for [`Context::operator`].
    pub fn operator_on(&self, platform: &Platform) -> Result<(Operator, Kernels), RunError> {
        let params = &self.parameters.values;
        let (mut operator, kernels) =
            compile_operator(self.form(), &self.elements, &self.on, params, platform)?;
        operator.set_point_loads(sources::point_loads(&self.problem, &self.on, &self.parameters)?);
        Ok((operator, kernels))
    }

    /// Compiles only the kernels of some tasks.
    ///
    /// # Errors
    ///
    /// As for [`Context::operator`].
    pub fn operator_with(&self, tasks: &[Task]) -> Result<(Operator, Kernels), RunError> {
        let (form, params, tables) = (self.form(), &self.parameters.values, TableCache::default());
        compile_for(form, &self.elements, &self.on, params, tasks, &self.platform, tables)
    }

    /// Returns the parameters with unknown numbers as NaN: no coefficient that reads one is 0.
    pub(super) fn undetermined_parameters(&self) -> Parameters {
        let mut parameters = self.parameters.clone();
        if let Some(numbers) = &self.problem.numbers {
            let first = parameters.range(numbers.forms.first).start;
            parameters.values[first..first + numbers.forms.count()].fill(f64::NAN);
        }
        parameters
    }

    /// The same with the unknown numbers of an operator as parameters.
    pub(super) fn with_numbers_of(&self, operator: &Operator) -> Self {
        let Some((first, values)) = operator.number_values() else { return self.clone() };
        let mut parameters = self.parameters.clone();
        parameters.values[first..first + values.len()].copy_from_slice(values);
        self.with_parameters(parameters)
    }

    /// The input of multigrid hierarchies with these settings.
    pub(super) fn hierarchy<'a>(&'a self, settings: &'a HierarchySettings) -> HierarchyInput<'a> {
        HierarchyInput {
            form: self.form(),
            elements: &self.elements,
            on: &self.on,
            parameters: &self.parameters,
            prescribed: &*self.prescribed,
            platform: &self.platform,
            settings,
        }
    }

    /// Returns the remarks on the mesh, the elements and the conditions.
    pub fn notes(&self) -> Vec<String> {
        [self.on.mesh.notes(), &self.elements.notes, &self.remarks].concat()
    }
}

/// Identifies the periodic sides of the problem in the mesh.
///
/// # Errors
///
/// Sides that are not translations of each other.
pub fn with_periodic_sides(
    problem: &Problem,
    mut mesh: Arc<Mesh>,
) -> Result<Arc<Mesh>, PeriodicError> {
    if mesh.periodic_sides() != problem.periodic {
        Arc::make_mut(&mut mesh).make_periodic(&problem.periodic)?;
    }
    Ok(mesh)
}

fn elements_on(problem: &Problem, mesh: &Mesh) -> Result<Elements, RunError> {
    let Problem { form, degree, quadrature, .. } = problem;
    Ok(elements(form, mesh.cell(), *degree, mesh.order(), *quadrature)?)
}

/// Checks that every parameter is finite.
///
/// # Errors
///
/// [`DataError::ParamNotFinite`].
pub fn check_parameters(form: &PointForm, parameters: &Parameters) -> Result<(), RunError> {
    let names = std::iter::once("t".to_owned()).chain(
        form.params
            .iter()
            .flat_map(|param| std::iter::repeat_n(param.name.clone(), param.shape.components())),
    );
    for (name, &value) in names.zip(&parameters.values) {
        if !value.is_finite() {
            return Err(DataError::ParamNotFinite { name, value }.into());
        }
    }
    Ok(())
}
