//! Stepwise setup of a [`System`]: degree, parameters, boundary conditions, data.

use super::conditions::{ConditionRequest, Conditions};
use super::value::{Boundary, FunctionError, Value, ValueWriter, components, writing, writing_all};
use super::{Data, DataValues, FieldName, Params, System, TypedField};
use crate::error::index;
use crate::{Error, Form, Isa, Mesh, threads};
use fem_dsl::point::PointForm;
use fem_dsl::problem::{Problem, Quadrature, Trace};
use kernels_gen::generate::elements;
use kernels_gen::plan::Elements;
use runtime::device::Device;
use runtime::kernels::compile::Execution;
use runtime::problem::{
    Context, Platform, check_parameters, check_periodic_sides, check_room, data, discretise,
    relate_images,
};
use runtime::space::discretisation::{AuxValues, Discretisation};
use runtime::support::expression::Parameters;
use std::sync::Arc;

impl Form {
    /// Begins the setup of the form on a mesh.
    pub fn on(&self, mesh: Mesh) -> Setup {
        Setup::new(self.clone(), mesh)
    }
}

/// A form on a mesh, before numbering and compilation. The methods add to it; [`Setup::build`] creates the [`System`]
/// and reports errors.
#[must_use]
pub struct Setup {
    form: Form,
    mesh: Mesh,
    degree: usize,
    quadrature: Option<Quadrature>,
    time: f64,
    params: Vec<(String, Vec<f64>)>,
    conditions: Vec<ConditionRequest>,
    means: Vec<(String, Vec<f64>)>,
    aux: Vec<(String, ValueWriter)>,
    execution: Execution,
    isa: Option<Isa>,
    device: Option<Arc<dyn Device>>,
}

impl Setup {
    pub(crate) fn new(form: Form, mesh: Mesh) -> Self {
        Self {
            form,
            mesh,
            degree: 1,
            quadrature: None,
            time: 0.0,
            params: Vec::new(),
            conditions: Vec::new(),
            means: Vec::new(),
            aux: Vec::new(),
            execution: Execution::default(),
            isa: None,
            device: None,
        }
    }

    /// Sets the degree k; by default 1.
    pub fn degree(mut self, degree: usize) -> Self {
        self.degree = degree;
        self
    }

    /// Sets a quadrature other than the one that the language prescribes: a degree or [`Quadrature::Collocated`]. A
    /// quadrature with which the form loses rank is rejected; other remarks are among [`System::notes`].
    pub fn quadrature(mut self, quadrature: impl Into<Quadrature>) -> Self {
        self.quadrature = Some(quadrature.into());
        self
    }

    /// Sets the time t; by default 0.
    pub fn time(mut self, time: f64) -> Self {
        self.time = time;
        self
    }

    /// Sets the value of a parameter; by default that of the form.
    pub fn param<V: Value>(mut self, name: &str, value: V) -> Self {
        self.params.push((name.to_owned(), value.components().to_vec()));
        self
    }

    /// Sets the values of all parameters, in the struct that [`weak_form!`](crate::weak_form) generates for them.
    pub fn params(mut self, params: impl Params) -> Self {
        params.visit(&mut |name, value| self.params.push((name.to_owned(), value.to_vec())));
        self
    }

    /// Sets all auxiliary data, in the struct that [`weak_form!`](crate::weak_form) generates for it.
    pub fn data(mut self, data: impl Data) -> Self {
        data.visit(&mut |name, DataValues(value)| self.aux.push((name.to_owned(), value)));
        self
    }

    /// Adds an essential condition on a whole field. The later one takes precedence in common nodes. The value is
    /// evaluated in `build` and at each solve.
    ///
    /// ```
    /// use weakform::{ALL, mesh, weak_form};
    ///
    /// weak_form! { form flow { field u: vector; field p: scalar; f0[u] = u; f0[p] = p; f1[u] = grad(u); } }
    ///
    /// let setup = flow::form().on(mesh("box(dim: 2, cells: 2)")?);
    /// // By its name in the program, which is checked while that is compiled, or as text.
    /// let setup = setup.dirichlet(flow::field::u, "x0", |x| [x[1], 0.0]).dirichlet("p", ALL, |_| 0.0);
    /// assert_eq!(setup.build()?.dofs(), 27);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// ```compile_fail,E0277
    /// weakform::weak_form! { form flow { field u: vector; f0[u] = u; } }
    /// let setup = flow::form().on(weakform::mesh("box(dim: 2, cells: 2)")?);
    /// setup.dirichlet(flow::field::u, "x0", |x| x[1]);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn dirichlet<V: Value>(
        self,
        field: impl TypedField<V>,
        on: impl Into<Boundary>,
        value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static,
    ) -> Self {
        self.dirichlet_of(field, on, [], move |x, []| value(x))
    }

    /// Adds an essential condition on one component of a field.
    pub fn dirichlet_component(
        self,
        field: impl FieldName,
        component: usize,
        on: impl Into<Boundary>,
        value: impl Fn(&[f64; 3]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        self.dirichlet_component_of(field, component, on, [], move |x, []| value(x))
    }

    /// Adds an essential condition on the normal component u·n of a vector field with one component per direction; it
    /// is 0 on an impermeable wall. At edges between walls at an angle, of at least 40 degrees on straight cells and 20
    /// on curved ones, all of their conditions apply.
    ///
    /// ```
    /// use weakform::{ALL, mesh, weak_form};
    ///
    /// weak_form! { form still { field u: vector; f0[u] = u - [1, 0]; f1[u] = sym(grad(u)); } }
    ///
    /// let mut system = still::form()
    ///     .on(mesh("ball(dim: 2, refine: 2, order: 2)")?)
    ///     .dirichlet_normal(still::field::u, ALL, |_| 0.0)
    ///     .build()?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn dirichlet_normal(
        mut self,
        field: impl FieldName,
        on: impl Into<Boundary>,
        value: impl Fn(&[f64; 3]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let value = move |x: &[f64; 3], []: [f64; 0]| value(x);
        self.conditions.push(ConditionRequest::new(
            field.name(),
            Trace::Normal,
            on.into(),
            [],
            value,
        ));
        self
    }

    /// Sets the mean value of a field that is determined up to a constant, such as the pressure of an enclosed flow.
    ///
    /// ```
    /// use weakform::{mesh, weak_form};
    ///
    /// weak_form! { form neumann { field u: scalar; f0[u] = 1 / 2 - x[0]; f1[u] = grad(u); } }
    ///
    /// let square = mesh("box(dim: 2, cells: 4)")?;
    /// let mut system = neumann::form().on(square).mean(neumann::field::u, 3.0).build()?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// let mean = u.to_vec().iter().sum::<f64>() / 25.0;
    /// assert!((mean - 3.0).abs() < 1e-9);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn mean<V: Value>(mut self, field: impl TypedField<V>, value: V) -> Self {
        self.means.push((field.name().to_owned(), value.components().to_vec()));
        self
    }

    /// Adds an essential condition whose value depends on the named scalar parameters: it follows
    /// [`System::set_param`], and the load steps of `newton(steps: 12, load: angle)`.
    ///
    /// ```
    /// use weakform::{mesh, weak_form};
    ///
    /// weak_form! { form laplace { field u: scalar; param height = 1; f1[u] = grad(u); } }
    ///
    /// let mut system = laplace::form()
    ///     .on(mesh("box(dim: 2, cells: 2)")?)
    ///     .dirichlet_of("u", "x0", ["height"], |_, [height]| height)
    ///     .dirichlet("u", "x1", |_| 0.0)
    ///     .build()?;
    /// let mut u = system.initial();
    /// for height in [1.0, 2.0, 3.0] {
    ///     system.set_param("height", height)?;
    ///     system.solve(&mut u)?;
    ///     assert!(system.error_l2("u", &u, |x| height * (1.0 - x[0]))? < 1e-8);
    /// }
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn dirichlet_of<V: Value, const N: usize>(
        mut self,
        field: impl TypedField<V>,
        on: impl Into<Boundary>,
        params: [&str; N],
        value: impl Fn(&[f64; 3], [f64; N]) -> V + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push(ConditionRequest::new(
            field.name(),
            Trace::Whole,
            on.into(),
            params,
            value,
        ));
        self
    }

    /// Adds such a condition on one component of a field; see [`Setup::dirichlet_of`].
    pub fn dirichlet_component_of<const N: usize>(
        mut self,
        field: impl FieldName,
        component: usize,
        on: impl Into<Boundary>,
        params: [&str; N],
        value: impl Fn(&[f64; 3], [f64; N]) -> f64 + Send + Sync + 'static,
    ) -> Self {
        let trace = Trace::Component(component);
        self.conditions.push(ConditionRequest::new(field.name(), trace, on.into(), params, value));
        self
    }

    /// Sets auxiliary data as a function of position. It is interpolated at nodes; on cells it is evaluated at the
    /// image of the reference centre, and on points at each quadrature point.
    pub fn aux<V: Value>(
        mut self,
        name: &str,
        value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static,
    ) -> Self {
        self.aux.push((name.to_owned(), writing(name, value)));
        self
    }

    /// Adds an essential condition whose values come from one function of all nodes of the boundary and of the time t,
    /// which may fail: measurements, or functions of another language. [`Trace`] is the constrained part of the field.
    ///
    /// ```
    /// use weakform::{ALL, Form, Trace, mesh};
    ///
    /// let form = Form::parse("form f { field u: scalar; f1[u] = grad(u); }", "f")?;
    /// let setup = form.on(mesh("box(dim: 2, cells: 4)")?);
    /// let values = |points: &[[f64; 3]], _: f64| Ok(points.iter().map(|x| 2.0 * x[0] - x[1]).collect());
    /// let mut system = setup.dirichlet_values("u", Trace::Whole, ALL, values).build()?;
    /// let mut u = system.initial();
    /// system.solve(&mut u)?;
    /// assert!(system.error_l2("u", &u, |x| 2.0 * x[0] - x[1])? < 1e-9);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn dirichlet_values(
        mut self,
        field: impl FieldName,
        trace: Trace,
        on: impl Into<Boundary>,
        values: impl Fn(&[[f64; 3]], f64) -> Result<Vec<f64>, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        self.conditions.push(ConditionRequest::of_points(field.name(), trace, on.into(), values));
        self
    }

    /// Sets auxiliary data by one function of all points, which may fail; see [`Setup::aux`].
    pub fn aux_values(
        mut self,
        name: &str,
        values: impl Fn(&[[f64; 3]]) -> Result<Vec<f64>, FunctionError> + Send + Sync + 'static,
    ) -> Self {
        self.aux.push((name.to_owned(), writing_all(name, values)));
        self
    }

    /// Sets whether kernels are compiled or interpreted; by default they are interpreted only without a compiler.
    pub fn execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// Sets another instruction set than the most capable one of this CPU.
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// Sets the device of vectors and kernels, opened by [`device`](crate::device()); the CPU by default.
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.device = Some(device);
        self
    }

    /// Returns the position of each node of a field, without compiling kernels. [`System::points`] returns the same.
    ///
    /// # Errors
    ///
    /// There is no such field, or the form has no element on these cells.
    pub fn points(&self, field: impl FieldName) -> Result<Vec<[f64; 3]>, Error> {
        let form = self.form.point_form(self.mesh.dim())?;
        let names = form.fields.iter().map(|field| field.name.as_str());
        let at = index("field", field.name(), names)?;
        let (cell, order) = (self.mesh.cell(), self.mesh.order());
        let elements = elements(&form, cell, self.degree, order, self.quadrature)?;
        let on = discretise(&form, &elements, self.mesh.clone(), &Vec::<String>::new())?;
        let points = on.fields[at].space.points(&on.mesh, &on.partition);
        points.map_err(|error| Error::Run(error.into()).of_system())
    }

    /// Numbers the DoFs, compiles the kernels or finds them in the cache, and fills their tables.
    ///
    /// # Errors
    ///
    /// A name or value that does not fit the form, an unsupported element, or unsupported kernels.
    pub fn build(self) -> Result<System, Error> {
        threads::roomy(|| self.build_here()).map_err(Error::of_system)
    }

    fn build_here(self) -> Result<System, Error> {
        let form = self.form.point_form(self.mesh.dim())?;
        self.form.has_fields_alone(self.mesh.dim())?;
        let parameters = self.parameters(&form)?;
        let (cell, order) = (self.mesh.cell(), self.mesh.order());
        let elements = elements(&form, cell, self.degree, order, self.quadrature)?;
        check_room(&form, &elements, &self.mesh, None, self.device.as_deref())?;
        let tags = self.conditions.iter().filter_map(|condition| match &condition.boundary {
            Boundary::Tags(tags) => Some(tags),
            Boundary::All | Boundary::Vertex(_) => None,
        });
        let mut on = discretise(&form, &elements, self.mesh, tags.flatten())?;
        let conditions = Conditions::new(&form, self.conditions, self.means, &on)?;
        on.constrain(conditions.constraints(&form, &on, &parameters)?);
        let mut remarks = conditions.meetings(&on, &parameters)?;
        remarks.extend(relate_images(&form, &mut on)?);
        on.aux = aux(&form, &elements, &self.aux, &on)?;
        let mut target = self.form.target(self.execution);
        if let Some(isa) = self.isa {
            let here = target.isa;
            if !isa.runs_on(here) {
                return Err(Error::Isa { isa, here });
            }
            target.isa = isa;
        }
        let (degree, quadrature, time) = (self.degree, self.quadrature, self.time);
        let problem = Problem { degree, quadrature, time, ..Problem::of(form) };
        check_periodic_sides(&problem, &elements, &on.mesh)?;
        let context = Context {
            problem: Arc::new(problem),
            elements: Arc::new(elements),
            on: Arc::new(on),
            parameters,
            prescribed: Arc::new(conditions),
            platform: Platform::new(target, self.device),
            remarks,
        };
        System::of(self.form, context)
    }

    fn parameters(&self, form: &PointForm) -> Result<Parameters, Error> {
        let mut replaced = Vec::new();
        for (name, value) in &self.params {
            let at =
                index("param", name, form.own_params().iter().map(|param| param.name.as_str()))?;
            components(name, form.params[at].shape.components(), value)?;
            replaced.push((at, value.clone()));
        }
        let parameters = Parameters::new(&form.params, self.time, &replaced, self.degree);
        check_parameters(form, &parameters)?;
        Ok(parameters)
    }
}

/// Evaluates the auxiliary data of these names.
fn aux(
    form: &PointForm,
    elements: &Elements,
    given: &[(String, ValueWriter)],
    on: &Discretisation,
) -> Result<Vec<AuxValues>, Error> {
    let names = form.own_aux().iter().map(|aux| aux.name.as_str());
    for (name, _) in given {
        index("aux", name, names.clone())?;
    }
    data(form, elements, on, |at, points, _| {
        let aux = &form.aux[at];
        let own = given.iter().rev().find(|(name, _)| *name == aux.name);
        let count = aux.shape.components();
        // The history of a time integrator.
        if form.rates.iter().any(|rate| rate.aux == at) {
            return Ok(Some(vec![0.0; points.len() * count]));
        }
        let Some((_, write)) = own else { return Ok(None) };
        let mut values = vec![0.0; points.len() * count];
        write(points, &mut values)?;
        Ok(Some(values))
    })
}
