//! A form on a mesh: [`Form`] + [`Mesh`] → [`Setup`] → [`System`], which gives R(u), J(u)·δu and solves R(u) = 0.

mod affine;
mod conditions;
mod data;
mod measured;
mod setup;
mod snapshot;
mod time;
mod typed;

pub use setup::{ALL, Boundary, Setup, Value};
pub use snapshot::{Snapshot, Steps};
pub use time::Motion;
pub use typed::{Data, FieldName, FieldOf, Function, Params, Written, at};

use crate::error::index;
use crate::{Error, Form, Mesh, Vector, threads, write_vtu};
use conditions::Conditions;
use fem_dsl::check::problem::Overrides;
use fem_dsl::point::PointForm;
use fem_dsl::problem::SolverSettings;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use kernels_gen::plan::Elements;
use runtime::device::Device;
use runtime::kernels::compile::{Origin, Target};
use runtime::mesh::load;
use runtime::operator::Operator;
use runtime::problem::{
    Kernels, MultigridInput, RunError, check_fixed, check_unique, solve, values,
};
use runtime::solve::{NonlinearSystem, Report, silent};
use runtime::space::constraint::Constraints;
use runtime::space::discretisation::Discretisation;
use runtime::support::expression::Parameters;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Makes a mesh: a generator of the language, or the path of a file of Gmsh, VTK or Abaqus.
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

/// A form on a mesh, with conditions, data and compiled kernels.
///
/// Unknowns with an essential condition stay in the vectors: their rows of the residual are 0, and the Jacobian is
/// the identity there.
///
/// A vector of one system fits another whose unknowns are the same: the same spaces on the same mesh, whatever form,
/// conditions, parameters and data there are. Any other, and on a device that of any other system, is refused.
///
/// On a device ([`Setup::device`]) its vectors live there: what is asked of them stays there, but for sums, and
/// [`Vector::to_vec`] and [`Vector::set`] cross the bus.
pub struct System {
    /// The form as it is written.
    source: Form,
    form: PointForm,
    on: Arc<Discretisation>,
    elements: Elements,
    /// For what kernels are compiled, and where they run.
    target: Target,
    device: Option<Arc<dyn Device>>,
    kernels: Kernels,
    notes: Vec<String>,
    operator: Operator,
    parameters: Parameters,
    conditions: Conditions,
    /// Their values, as they were last asked for.
    constraints: Vec<Constraints>,
    /// The right-hand side that was given, also in rows with conditions.
    load: Option<Vec<f64>>,
    /// Of which orders the time derivatives were given, outside of a scheme.
    rates_given: [bool; 2],
}

impl System {
    /// How many unknowns there are.
    pub fn dofs(&self) -> usize {
        self.on.n_dofs()
    }

    /// The mesh, with its cells in the order of this program.
    pub fn mesh(&self) -> &Mesh {
        &self.on.mesh
    }

    /// What should be known of a quadrature that was asked for, and of kernels that are interpreted because there is no compiler; it
    /// goes to the log (`tracing`, level `warn`), too.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Where the kernels came from.
    pub fn origin(&self) -> Origin {
        self.kernels.origin
    }

    /// The place of each node of a field.
    ///
    /// # Errors
    ///
    /// There is no such field.
    pub fn points(&self, field: impl FieldName) -> Result<Vec<[f64; 3]>, Error> {
        let space = &self.on.fields[self.field(field.name())?].space;
        let points = space.points(&self.on.mesh, &self.on.partition);
        points.map_err(|error| Error::Run(error.into()))
    }

    /// A vector of zeros, one entry an unknown: field after field, node after node, components interleaved.
    pub fn vector(&self) -> Vector {
        self.operator.vector()
    }

    /// Zero with the values of the essential conditions: where a solve may begin.
    pub fn initial(&self) -> Vector {
        let mut entries = vec![0.0; self.dofs()];
        for (field, constraints) in self.constraints.iter().enumerate() {
            let own = &mut entries[self.on.dofs_of(field)];
            constraints.impose(own);
        }
        self.on.affine.impose(&mut entries);
        let mut u = self.vector();
        u.set(&entries);
        u
    }

    /// The values of a field in a vector: node after node, components interleaved.
    ///
    /// # Errors
    ///
    /// There is no such field, or the vector does not fit.
    pub fn values(&self, field: impl FieldName, u: &Vector) -> Result<Vec<f64>, Error> {
        let range = self.on.dofs_of(self.field(field.name())?);
        self.fits(u)?;
        Ok(u.to_vec()[range].to_vec())
    }

    /// The nodal values of a function; other fields are 0.
    ///
    /// # Errors
    ///
    /// There is no such field, or it has another number of components.
    pub fn interpolate<V: Value>(
        &self,
        field: impl FieldOf<V>,
        value: impl Fn(&[f64; 3]) -> V + Sync,
    ) -> Result<Vector, Error> {
        let field = field.name();
        let (index, points) = (self.field(field)?, self.points(field)?);
        let space = &self.on.fields[index].space;
        let wrong = OnceLock::new();
        let found = space.interpolate(&points, setup::checked(field, value, &wrong));
        wrong.into_inner().map_or(Ok(()), Err)?;
        let mut entries = vec![0.0; self.dofs()];
        entries[self.on.dofs_of(index)].copy_from_slice(&found);
        let mut u = self.vector();
        u.set(&entries);
        Ok(u)
    }

    /// Replaces the value of a parameter, and with it those of conditions that depend on it; nothing is compiled.
    ///
    /// # Errors
    ///
    /// There is no such parameter, it has another number of components, or it or a condition is not finite; then
    /// nothing is replaced.
    pub fn set_param<V: Value>(&mut self, name: &str, value: V) -> Result<(), Error> {
        let params = self.form.own_params();
        let index = index("param", name, params.iter().map(|param| param.name.as_str()))?;
        let components = params[index].shape.components();
        setup::components(name, components, value.components())?;
        let mut parameters = self.parameters.clone();
        let range = parameters.range(index);
        parameters.values[range].copy_from_slice(value.components());
        self.replace(parameters)
    }

    /// Replaces the parameters, and what depends on those that change; or nothing, if that cannot be.
    fn replace(&mut self, parameters: Parameters) -> Result<(), Error> {
        runtime::problem::check_parameters(&self.form, &parameters)?;
        let changes = |&param: &usize| {
            let range = parameters.range(param);
            parameters.values[range.clone()] != self.parameters.values[range]
        };
        let mut changed = (0..self.form.params.len()).filter(changes);
        if changed.any(|param| self.conditions.depend_on(param)) {
            let constraints = self.conditions.evaluate(&self.on, &parameters)?;
            self.set_conditions(constraints)?;
        }
        self.operator.set_params(&parameters.values).map_err(RunError::from)?;
        self.parameters = parameters;
        Ok(())
    }

    fn set_conditions(&mut self, constraints: Vec<Constraints>) -> Result<(), Error> {
        self.operator.set_conditions(&values(&constraints)).map_err(RunError::from)?;
        self.constraints = constraints;
        Ok(())
    }

    /// Replaces the values of all parameters, in the struct that [`weak_form!`](crate::weak_form) makes for them.
    ///
    /// # Errors
    ///
    /// They are those of another form or dimension, or a value or a condition is not finite; then nothing is replaced.
    pub fn set_params(&mut self, params: &impl Params) -> Result<(), Error> {
        let own = self.form.own_params();
        let mut parameters = self.parameters.clone();
        let mut done: Result<(), Error> = Ok(());
        params.visit(&mut |name, value| {
            let mut set = || {
                let index = index("param", name, own.iter().map(|param| param.name.as_str()))?;
                setup::components(name, own[index].shape.components(), value)?;
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

    /// r = R(u), less the right-hand side where one was given ([`System::set_load`]).
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

    /// Makes `u` the state at which the Jacobian is taken.
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

    /// y = J·x at the last linearisation.
    ///
    /// # Errors
    ///
    /// A vector does not fit, or there was no linearisation ([`Error::NotLinearised`]) and the Jacobian depends on the state.
    pub fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), Error> {
        self.fits(x)?;
        self.fits(y)?;
        self.is_linearised()?;
        let operator = &self.operator;
        threads::roomy(|| operator.jacobian().apply(x, y)).map_err(RunError::from)?;
        Ok(())
    }

    /// The diagonal of J at the last linearisation.
    ///
    /// # Errors
    ///
    /// As for [`System::apply`].
    pub fn diagonal(&self, diagonal: &mut Vector) -> Result<(), Error> {
        self.fits(diagonal)?;
        self.is_linearised()?;
        let operator = &self.operator;
        threads::roomy(|| operator.diagonal(diagonal)).map_err(RunError::from)?;
        Ok(())
    }

    /// Solves R(u) = 0 from the state `u`: a linear form by CG or GMRES, another one by Newton's method. What `u` has in
    /// unknowns with conditions does not matter: they take the values of these.
    ///
    /// # Errors
    ///
    /// Nothing fixes a field, or the solve does not converge; of a form with `dt(u)`, where nothing says what that is
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
        self.source.solver(&self.form, text)
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
        self.rates_are_given()?;
        self.fits(u)?;
        self.checks(solver)?;
        check_fixed(&self.form, &self.on, &self.parameters)
            .map_err(|error| Error::from(error).of_system())?;
        // What a condition's function reads may have changed.
        self.set_conditions(self.conditions.evaluate(&self.on, &self.parameters)?)?;
        self.with_operator(|system, operator| {
            let notes = check_unique(operator, system)?;
            let mut solved = solve(operator, system, u, solver, &mut silent);
            solved.iter_mut().for_each(|(report, _)| report.notes.extend(notes.iter().cloned()));
            // What went wrong on a device comes before what it made of the numbers.
            operator.finish()?;
            // The next solve makes levels of its own: conditions and data may have changed.
            operator.precondition_by(None);
            solved.and_then(|(report, _)| system.converged(operator, u, report))
        })
    }

    /// Checks the settings of a solver as if the language named it.
    fn checks(&self, solver: Option<&SolverSettings>) -> Result<(), Error> {
        solver.map_or(Ok(()), |solver| self.solver(&solver.to_string()).map(drop))
    }

    /// Does something with the operator and what it is of.
    fn with_operator<T: Send>(
        &mut self,
        act: impl FnOnce(runtime::problem::DiscreteProblem<'_>, &mut Operator) -> Result<T, RunError>
        + Send,
    ) -> Result<T, Error> {
        let system = runtime::problem::DiscreteProblem {
            form: &self.form,
            on: &self.on,
            parameters: &self.parameters,
            prescribed: &self.conditions,
            rule: self.elements.rule,
            levels: Some(MultigridInput {
                elements: &self.elements,
                target: &self.target,
                device: self.device.as_ref(),
            }),
        };
        let operator = &mut self.operator;
        let done = threads::roomy(|| act(system, operator));
        done.map_err(|error| self.source.told(self.form.dim, error).of_system())
    }

    /// Writes `u` for ParaView.
    ///
    /// # Errors
    ///
    /// The vector does not fit, or the file cannot be written.
    pub fn write_vtu(&self, path: impl AsRef<Path>, u: &Vector) -> Result<(), Error> {
        self.fits(u)?;
        Ok(write_vtu(path.as_ref(), &self.form, &self.on, &u.to_vec())?)
    }

    /// The equations R(u) = l themselves, for solvers and loops of one's own.
    pub fn equations(&mut self) -> &mut dyn NonlinearSystem {
        &mut self.operator
    }

    /// The kernels: where they run, and the plans that led to them.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    fn is_linearised(&self) -> Result<(), Error> {
        if self.operator.awaits_linearisation() { Err(Error::NotLinearised) } else { Ok(()) }
    }

    /// Whether a vector is one of this system's unknowns.
    fn fits(&self, u: &Vector) -> Result<(), Error> {
        self.operator.fits(u).map_err(Error::Vector)
    }

    fn field(&self, name: &str) -> Result<usize, Error> {
        index("field", name, self.form.fields.iter().map(|field| field.name.as_str()))
    }
}

impl std::fmt::Debug for System {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (form, dofs) = (&self.form.name, self.dofs());
        f.debug_struct("System").field("form", form).field("dofs", &dofs).finish_non_exhaustive()
    }
}
