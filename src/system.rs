//! A form on a mesh: [`Form`](crate::Form) + [`Mesh`] → [`Setup`] → [`System`], which gives R(u), J(u)·δu and solves R(u) = 0.

mod setup;
mod typed;

pub(crate) use setup::index;
pub use setup::{ALL, Boundary, Setup, Value};
pub use typed::{Data, Function, Params, at};

use crate::{Error, Mesh, Vector, threads, write_vtu};
use fem_dsl::check::problem::Overrides;
use fem_dsl::point::PointForm;
use fem_dsl::problem::Solver;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::compile::Origin;
use runtime::discretisation::Discretisation;
use runtime::expression::Parameters;
use runtime::functional;
use runtime::mesh::load;
use runtime::run::{Kernels, Place, RunError, check_fixed, solve};
use runtime::solve::{NonlinearSystem, Report, silent};
use std::path::Path;
use std::sync::Arc;

/// Makes a mesh: a generator of the language, or a Gmsh file's path.
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
    let overrides = Overrides { mesh: Some(text.to_owned()), ..Overrides::default() };
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
/// On a device ([`Setup::device`]) its vectors live there: what is asked of them stays there, but for sums, and
/// [`Vector::to_vec`] and [`Vector::set`] cross the bus.
pub struct System {
    form: PointForm,
    on: Arc<Discretisation>,
    kernels: Kernels,
    place: Place,
    parameters: Parameters,
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

    /// Where the kernels came from.
    pub fn origin(&self) -> Origin {
        self.kernels.origin
    }

    /// The place of each node of a field.
    ///
    /// # Errors
    ///
    /// There is no such field.
    pub fn points(&self, field: &str) -> Result<Vec<[f64; 3]>, Error> {
        let space = &self.on.fields[self.field(field)?].space;
        let points = space.points(&self.on.mesh, &self.on.partition);
        points.map_err(|error| Error::Run(error.into()))
    }

    /// A vector of zeros, one entry an unknown: field after field, node after node, components interleaved.
    pub fn vector(&self) -> Vector {
        self.place.vector()
    }

    /// Zero with the values of the essential conditions: where a solve may begin.
    pub fn initial(&self) -> Vector {
        let mut entries = vec![0.0; self.dofs()];
        self.on.conditions().for_each(|(unknown, value)| entries[unknown] = value);
        let mut u = self.vector();
        u.set(&entries);
        u
    }

    /// The values of a field in a vector: node after node, components interleaved.
    ///
    /// # Errors
    ///
    /// There is no such field.
    pub fn values(&self, field: &str, u: &Vector) -> Result<Vec<f64>, Error> {
        let range = self.on.dofs_of(self.field(field)?);
        Ok(u.to_vec()[range].to_vec())
    }

    /// The nodal values of a function; other fields are 0.
    ///
    /// # Errors
    ///
    /// There is no such field, or it has another number of components.
    pub fn interpolate<V: Value>(
        &self,
        field: &str,
        value: impl Fn(&[f64; 3]) -> V + Sync,
    ) -> Result<Vector, Error> {
        let (index, points) = (self.field(field)?, self.points(field)?);
        let space = &self.on.fields[index].space;
        setup::fits(field, space.components(), &value, &points)?;
        let write = |x: &[f64; 3], row: &mut [f64]| row.copy_from_slice(value(x).components());
        let mut entries = vec![0.0; self.dofs()];
        entries[self.on.dofs_of(index)].copy_from_slice(&space.interpolate(&points, write));
        let mut u = self.vector();
        u.set(&entries);
        Ok(u)
    }

    /// Replaces the value of a parameter; nothing is compiled.
    ///
    /// # Errors
    ///
    /// There is no such parameter, it has another number of components, or the value is not finite.
    pub fn set_param<V: Value>(&mut self, name: &str, value: V) -> Result<(), Error> {
        let params = &self.form.params;
        let index = index("param", name, params.iter().map(|param| param.name.as_str()))?;
        let components = params[index].shape.components();
        setup::components(name, components, value.components())?;
        let before: usize = params[..index].iter().map(|param| param.shape.components()).sum();
        let entries = &mut self.parameters.values[1 + before..][..components];
        entries.copy_from_slice(value.components());
        runtime::run::check_parameters(&self.form, &self.parameters)?;
        self.place.set_params(&self.parameters.values).map_err(RunError::from)?;
        Ok(())
    }

    /// Replaces the values of all parameters, in the struct that [`weak_form!`](crate::weak_form) makes for them.
    ///
    /// # Errors
    ///
    /// They are those of another form or dimension, or a value is not finite.
    pub fn set_params(&mut self, params: &impl Params) -> Result<(), Error> {
        let mut done = Ok(());
        params.visit(&mut |name, value| {
            if done.is_ok() {
                done = self.set_param(name, value.to_vec());
            }
        });
        done
    }

    /// r = R(u).
    ///
    /// # Errors
    ///
    /// A vector does not fit.
    pub fn residual(&self, u: &Vector, r: &mut Vector) -> Result<(), Error> {
        let place = &self.place;
        threads::roomy(|| place.equations().residual(u, r)).map_err(RunError::from)?;
        Ok(())
    }

    /// Makes `u` the state at which the Jacobian is taken.
    ///
    /// # Errors
    ///
    /// The vector does not fit.
    pub fn linearise(&mut self, u: &Vector) -> Result<(), Error> {
        let place = &mut self.place;
        threads::roomy(|| place.system().linearise(u)).map_err(RunError::from)?;
        Ok(())
    }

    /// y = J·x at the last linearisation.
    ///
    /// # Errors
    ///
    /// A vector does not fit, or there was no linearisation and the form is not linear.
    pub fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), Error> {
        let place = &self.place;
        threads::roomy(|| place.equations().jacobian().apply(x, y)).map_err(RunError::from)?;
        Ok(())
    }

    /// The diagonal of J at the last linearisation.
    ///
    /// # Errors
    ///
    /// As for [`System::apply`].
    pub fn diagonal(&self, diagonal: &mut Vector) -> Result<(), Error> {
        let place = &self.place;
        threads::roomy(|| place.equations().diagonal(diagonal)).map_err(RunError::from)?;
        Ok(())
    }

    /// Solves R(u) = 0 from the state `u`: a linear form by CG or GMRES, another one by Newton's method.
    ///
    /// # Errors
    ///
    /// Nothing fixes a field, or the solve does not converge.
    pub fn solve(&mut self, u: &mut Vector) -> Result<Report, Error> {
        self.solve_with(u, None)
    }

    /// Solves with a solver of the language and its settings.
    ///
    /// # Errors
    ///
    /// As for [`System::solve`].
    pub fn solve_with(&mut self, u: &mut Vector, solver: Option<&Solver>) -> Result<Report, Error> {
        check_fixed(&self.form, &self.on)?;
        let place = &mut self.place;
        let system =
            runtime::run::System { form: &self.form, on: &self.on, parameters: &self.parameters };
        let solved = threads::roomy(|| {
            let solved = solve(place, system, u, solver, &mut silent);
            // What went wrong on a device comes before what it made of the numbers.
            place.finish()?;
            solved
        });
        Ok(solved?.0.converged().map_err(RunError::from)?)
    }

    /// ‖u − exact‖ in L2.
    ///
    /// # Errors
    ///
    /// There is no such field, or it has another number of components.
    pub fn error_l2<V: Value>(
        &self,
        field: &str,
        u: &Vector,
        exact: impl Fn(&[f64; 3]) -> V + Sync,
    ) -> Result<f64, Error> {
        let index = self.field(field)?;
        let components = self.on.fields[index].space.components();
        setup::fits(field, components, &exact, &self.on.mesh.points()[..1])?;
        let write = |x: &[f64; 3], row: &mut [f64]| row.copy_from_slice(exact(x).components());
        let error = functional::error_l2(&self.on, index, &u.to_vec(), write);
        error.map_err(|error| Error::Run(error.into()))
    }

    /// Writes `u` for ParaView.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write_vtu(&self, path: impl AsRef<Path>, u: &Vector) -> Result<(), Error> {
        Ok(write_vtu(path.as_ref(), &self.form, &self.on, &u.to_vec())?)
    }

    /// The equations themselves, for solvers and loops of one's own.
    pub fn equations(&mut self) -> &mut dyn NonlinearSystem {
        self.place.system()
    }

    /// The kernels: where they run, and the plans that led to them.
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
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
