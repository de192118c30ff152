//! A form on a mesh: [`Form`] + [`Mesh`] → [`Setup`] → [`System`], which evaluates R(u) and J(u)·δu and solves R(u)
//! = 0.

mod affine;
mod algebra;
mod conditions;
mod data;
mod functionals;
mod setup;
mod snapshot;
mod time;
mod typed;
mod value;

pub use functionals::Functional;
pub use setup::Setup;
pub use snapshot::{Snapshot, Steps};
pub use time::TimeIntegrator;
pub use typed::{Data, DataValues, FieldName, Function, Params, TypedField, at};
pub use value::{ALL, Boundary, Value};

use crate::error::index;
use crate::{Error, Form, Mesh, Vector, threads, write_vtu};
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::SolverSettings;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::kernels::compile::Origin;
use runtime::mesh::load;
use runtime::operator::Operator;
use runtime::problem::{
    Context, Kernels, RunError, check_fixed, check_parameters, check_unique, interpolant, solve,
    values,
};
use runtime::solve::{Continue, NonlinearSystem, Progress, Report, silent};
use runtime::space::constraint::Constraints;
use runtime::support::expression::Parameters;
use std::path::Path;
use std::sync::OnceLock;

/// Creates a mesh: with a generator of the language, or from a file of Gmsh, VTK, Abaqus or MFEM.
///
/// ```
/// let mesh = weakform::mesh("box(dim: 3, cells: [2, 2, 4], cell: hex)")?;
/// assert_eq!(mesh.n_cells(), 16);
/// # Ok::<(), weakform::Error>(())
/// ```
///
/// # Errors
///
/// The text names no generator or readable file, or its arguments are wrong.
pub fn mesh(text: &str) -> Result<Mesh, Error> {
    let source = Source::new(
        "mesh",
        "form any { field u: scalar; f0[u] = u; } problem any solves any { mesh = box(dim: 2, cells: 1); }",
    );
    let overrides =
        Overrides { mesh: Some(text.to_owned()), from_program: true, ..Overrides::default() };
    let (program, diagnostics) = compile(&source);
    let Some(program) = program else { return Err(Error::language(&source, diagnostics)) };
    let found = program.mesh("any", &overrides);
    let (mesh, _) = found.map_err(|found| Error::language(&source, found))?;
    Ok(load(&mesh, Path::new(""))?)
}

/// A form on a mesh, with boundary conditions, data and compiled kernels.
///
/// Constrained DoFs stay in the vectors: their rows of the residual are 0, and those of the Jacobian are the identity.
///
/// A vector of one system fits another with the same DoFs: the same spaces on the same mesh, for any form, conditions,
/// parameters and data. All others are rejected, and on a device those of any other system.
///
/// On a device ([`Setup::device`]) its vectors are in device memory. Operations on them stay there, except for sums;
/// [`Vector::to_vec`] and [`Vector::set`] transfer data.
pub struct System {
    /// The form of the source text.
    source: Form,
    context: Context,
    kernels: Kernels,
    notes: Vec<String>,
    operator: Operator,
    /// Values of the conditions at the last evaluation.
    constraints: Vec<Constraints>,
    /// The additional right-hand side, including its constrained rows.
    load: Option<Vec<f64>>,
    /// True for each order of time derivatives with values outside of a scheme.
    rates_given: [bool; 2],
}

impl System {
    /// Compiles the kernels of a context; `source` has the form's text.
    pub(crate) fn of(source: Form, context: Context) -> Result<Self, Error> {
        let (operator, kernels) = context.operator()?;
        let notes = [&context.elements.notes[..], &context.remarks, &kernels.notes].concat();
        let fields = context.on.fields.iter();
        let constraints = fields.map(|field| field.constraints.clone()).collect();
        let rates_given = [false; 2];
        Ok(Self { source, context, kernels, notes, operator, constraints, load: None, rates_given })
    }

    pub(crate) fn parts(&self) -> (&Form, &Context, &Operator, &Kernels) {
        (&self.source, &self.context, &self.operator, &self.kernels)
    }

    /// Returns the number of degrees of freedom.
    pub fn dofs(&self) -> usize {
        self.context.on.n_dofs()
    }

    /// Returns the mesh, with its cells in the internal order.
    pub fn mesh(&self) -> &Mesh {
        &self.context.on.mesh
    }

    /// Returns remarks on an explicit quadrature, and on kernels that are interpreted for lack of a compiler; they are
    /// also logged (`tracing`, level `warn`).
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the origin of the kernels.
    pub fn origin(&self) -> Origin {
        self.kernels.origin
    }

    /// Returns the position of each node of a field.
    ///
    /// # Errors
    ///
    /// There is no such field.
    pub fn points(&self, field: impl FieldName) -> Result<Vec<[f64; 3]>, Error> {
        let space = &self.context.on.fields[self.field(field.name())?].space;
        let points = space.points(&self.context.on.mesh, &self.context.on.partition);
        points.map_err(|error| Error::Run(error.into()))
    }

    /// Returns a zero vector, one entry per DoF: field by field, node by node, components interleaved.
    pub fn vector(&self) -> Vector {
        self.operator.vector()
    }

    /// Returns an initial state: zero with the values of the essential conditions.
    pub fn initial(&self) -> Vector {
        let mut entries = vec![0.0; self.dofs()];
        for (field, constraints) in self.constraints.iter().enumerate() {
            let own = &mut entries[self.context.on.dofs_of(field)];
            constraints.impose(own);
        }
        self.context.on.affine.impose(&mut entries);
        let mut u = self.vector();
        u.set(&entries);
        u
    }

    /// Returns the values of a field in a vector: node by node, components interleaved.
    ///
    /// # Errors
    ///
    /// There is no such field, or the vector does not fit.
    pub fn values(&self, field: impl FieldName, u: &Vector) -> Result<Vec<f64>, Error> {
        let range = self.context.on.dofs_of(self.field(field.name())?);
        self.fits(u)?;
        Ok(u.to_vec()[range].to_vec())
    }

    /// Returns the nodal interpolant of a function; other fields are 0.
    ///
    /// # Errors
    ///
    /// There is no such field, or it has another number of components.
    pub fn interpolate<V: Value>(
        &self,
        field: impl TypedField<V>,
        value: impl Fn(&[f64; 3]) -> V + Sync,
    ) -> Result<Vector, Error> {
        let field = field.name();
        let index = self.field(field)?;
        let space = &self.context.on.fields[index].space;
        let wrong = OnceLock::new();
        let found = {
            let write = value::checked(field, value, &wrong);
            match space.element().whitney() {
                None => space.interpolate(&self.points(field)?, write),
                Some(_) => {
                    let components = space.value_components();
                    let values = |points: &[[f64; 3]]| {
                        let mut values = vec![0.0; points.len() * components];
                        let rows = values.chunks_exact_mut(components).zip(points);
                        rows.for_each(|(row, x)| write(x, row));
                        values
                    };
                    interpolant(&self.context.on, index, values)
                        .map_err(|error| Error::Run(error.into()))?
                }
            }
        };
        wrong.into_inner().map_or(Ok(()), Err)?;
        let mut entries = vec![0.0; self.dofs()];
        entries[self.context.on.dofs_of(index)].copy_from_slice(&found);
        let mut u = self.vector();
        u.set(&entries);
        Ok(u)
    }

    /// Replaces the value of a parameter and of the conditions that depend on it, without compilation.
    ///
    /// # Errors
    ///
    /// There is no such parameter, it has another number of components, or it or a condition is not finite; nothing is
    /// replaced then.
    pub fn set_param<V: Value>(&mut self, name: &str, value: V) -> Result<(), Error> {
        let params = self.context.form().own_params();
        let index = index("param", name, params.iter().map(|param| param.name.as_str()))?;
        let components = params[index].shape.components();
        value::components(name, components, value.components())?;
        let mut parameters = self.context.parameters.clone();
        let range = parameters.range(index);
        parameters.values[range].copy_from_slice(value.components());
        self.replace(parameters)
    }

    /// Replaces the parameters and everything that depends on the changed ones; on an error nothing is replaced.
    fn replace(&mut self, parameters: Parameters) -> Result<(), Error> {
        check_parameters(self.context.form(), &parameters)?;
        let changes = |&param: &usize| {
            let range = parameters.range(param);
            parameters.values[range.clone()] != self.context.parameters.values[range]
        };
        let mut changed = (0..self.context.form().params.len()).filter(changes);
        if changed.any(|param| self.context.prescribed.conditions_depend_on(param)) {
            self.evaluate_conditions(&parameters)?;
        }
        self.operator.set_params(&parameters.values).map_err(RunError::from)?;
        self.context.parameters = parameters;
        Ok(())
    }

    /// Replaces the values of the conditions by those for other parameters.
    fn evaluate_conditions(&mut self, parameters: &Parameters) -> Result<(), Error> {
        let constraints = self.context.prescribed.conditions(&self.context.on, parameters)?;
        self.operator.set_conditions(&values(&constraints)).map_err(RunError::from)?;
        self.constraints = constraints;
        Ok(())
    }

    /// Evaluates conditions and data for the present parameters.
    pub(crate) fn evaluate_prescribed(&mut self) -> Result<(), Error> {
        let Context { on, prescribed, parameters, .. } = self.context.clone();
        self.evaluate_conditions(&parameters)?;
        self.put_aux(prescribed.aux(&on, &parameters)?.into_iter().enumerate())
    }

    /// Replaces the values of all parameters, in the struct that [`weak_form!`](crate::weak_form) generates for them.
    ///
    /// # Errors
    ///
    /// The struct belongs to another form or dimension, or a value or a condition is not finite; nothing is replaced
    /// then.
    pub fn set_params(&mut self, params: &impl Params) -> Result<(), Error> {
        let own = self.context.form().own_params();
        let mut parameters = self.context.parameters.clone();
        let mut done: Result<(), Error> = Ok(());
        params.visit(&mut |name, value| {
            let mut set = || {
                let index = index("param", name, own.iter().map(|param| param.name.as_str()))?;
                value::components(name, own[index].shape.components(), value)?;
                let range = parameters.range(index);
                parameters.values[range].copy_from_slice(value);
                Ok(())
            };
            if done.is_ok() {
                done = set();
            }
        });
        done?;
        self.replace(parameters)
    }

    /// Computes r = R(u), minus the additional right-hand side if there is one ([`System::set_load`]).
    ///
    /// # Errors
    ///
    /// A vector does not fit.
    pub fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), Error> {
        self.fits(u)?;
        self.fits(r)?;
        let operator = &self.operator;
        threads::roomy(|| operator.residual(u, r)).map_err(RunError::from)?;
        Ok(())
    }

    /// Linearises the Jacobian at the state `u`.
    ///
    /// # Errors
    ///
    /// The vector does not fit.
    pub fn linearise(&mut self, u: &Vector) -> Result<(), Error> {
        self.fits(u)?;
        let operator = &mut self.operator;
        threads::roomy(|| operator.linearise(u)).map_err(RunError::from)?;
        Ok(())
    }

    /// Computes y = J·x at the last linearisation.
    ///
    /// # Errors
    ///
    /// A vector does not fit, or there was no linearisation ([`Error::NotLinearised`]) and the Jacobian depends on the
    /// state.
    pub fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), Error> {
        self.fits(x)?;
        self.fits(y)?;
        self.is_linearised()?;
        let operator = &self.operator;
        threads::roomy(|| operator.jacobian().apply(x, y)).map_err(RunError::from)?;
        Ok(())
    }

    /// Computes the diagonal of J at the last linearisation.
    ///
    /// # Errors
    ///
    /// See [`System::apply`].
    pub fn diagonal(&self, diagonal: &mut Vector) -> Result<(), Error> {
        self.fits(diagonal)?;
        self.is_linearised()?;
        let operator = &self.operator;
        threads::roomy(|| operator.diagonal(diagonal)).map_err(RunError::from)?;
        Ok(())
    }

    /// Solves R(u) = 0 from the initial state `u`: a linear form by CG or GMRES, others by Newton's method. Constrained
    /// entries of `u` are replaced by their prescribed values.
    ///
    /// # Errors
    ///
    /// A field is not unique, the solve does not converge, or a form with `dt(u)` has no value for it
    /// ([`System::set_rate`]).
    pub fn solve(&mut self, u: &mut Vector) -> Result<Report, Error> {
        self.solve_with(u, None)
    }

    /// Reads a solver with its settings as the language writes it, and checks that it suits the form.
    ///
    /// ```
    /// use weakform::{Form, mesh};
    ///
    /// let form = Form::parse("form f { field u: scalar; f0[u] = -1; f1[u] = grad(u); }", "f")?;
    /// let system = form.on(mesh("box(dim: 2, cells: 4)")?).build()?;
    /// let cg = system.solver("cg(rtol: 1e-8)")?;
    /// assert_eq!(cg.to_string(), "cg(rtol: 1e-8)");
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Unknown names, values out of range, a solver that does not suit the form.
    pub fn solver(&self, text: &str) -> Result<SolverSettings, Error> {
        self.source.solver(self.context.form(), text)
    }

    /// Solves with the settings of a solver: see [`crate::solve`].
    ///
    /// # Errors
    ///
    /// As for [`System::solve`].
    pub fn solve_with(
        &mut self,
        u: &mut Vector,
        solver: Option<&SolverSettings>,
    ) -> Result<Report, Error> {
        self.solve_observed(u, solver, silent)
    }

    /// Solves like [`System::solve_with`]; `observe` is called for each iteration and may stop the solve.
    ///
    /// # Errors
    ///
    /// As for [`System::solve`].
    pub fn solve_observed(
        &mut self,
        u: &mut Vector,
        solver: Option<&SolverSettings>,
        mut observe: impl FnMut(Progress) -> Continue + Send,
    ) -> Result<Report, Error> {
        self.rates_are_given()?;
        self.fits(u)?;
        self.checks(solver)?;
        check_fixed(self.context.form(), &self.context.on, &self.context.parameters)
            .map_err(|error| Error::from(error).of_system())?;
        // The data of a condition's function may have changed.
        self.evaluate_conditions(&self.context.parameters.clone())?;
        self.with_operator(|context, operator| {
            let notes = check_unique(operator, context)?;
            let mut solved = solve(operator, context, u, solver, &mut observe);
            solved.iter_mut().for_each(|(report, _)| report.notes.extend(notes.iter().cloned()));
            // Device errors precede errors of the resulting numbers.
            operator.finish()?;
            // The next solve sets up its own multigrid hierarchy: conditions and data may have changed.
            operator.precondition_by(None);
            solved.and_then(|(report, _)| context.converged(operator, u, report))
        })
    }

    /// Checks the settings of a solver as if the language named it.
    fn checks(&self, solver: Option<&SolverSettings>) -> Result<(), Error> {
        solver.map_or(Ok(()), |solver| self.solver(&solver.to_string()).map(drop))
    }

    /// Calls a function with the context and the operator.
    fn with_operator<T: Send>(
        &mut self,
        act: impl FnOnce(&Context, &mut Operator) -> Result<T, RunError> + Send,
    ) -> Result<T, Error> {
        let (context, operator) = (&self.context, &mut self.operator);
        let done = threads::roomy(|| act(context, operator));
        done.map_err(|error| self.source.run_error(context.form().dim, error).of_system())
    }

    /// Writes `u` for ParaView.
    ///
    /// # Errors
    ///
    /// The vector does not fit, or the file cannot be written.
    pub fn write_vtu(&self, path: impl AsRef<Path>, u: &Vector) -> Result<(), Error> {
        self.fits(u)?;
        Ok(write_vtu(path.as_ref(), self.context.form(), &self.context.on, &u.to_vec())?)
    }

    /// Returns the equations R(u) = l, for custom solvers and loops.
    pub fn equations(&mut self) -> &mut dyn NonlinearSystem {
        &mut self.operator
    }

    /// Returns the kernels, with their plans and their location.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    fn is_linearised(&self) -> Result<(), Error> {
        if self.operator.awaits_linearisation() { Err(Error::NotLinearised) } else { Ok(()) }
    }

    /// Checks that a vector contains this system's DoFs.
    pub(crate) fn fits(&self, u: &Vector) -> Result<(), Error> {
        self.operator.fits(u).map_err(Error::Vector)
    }

    fn field(&self, name: &str) -> Result<usize, Error> {
        index("field", name, self.context.form().fields.iter().map(|field| field.name.as_str()))
    }
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (form, dofs) = (&self.context.form().name, self.dofs());
        f.debug_struct("System").field("form", form).field("dofs", &dofs).finish_non_exhaustive()
    }
}
