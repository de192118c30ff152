//! A solved problem and its results.

use crate::error::index;
use crate::{Error, Form, System, Vector, threads, write_solution, write_vtu, write_vtu_to};
use fem_dsl::problem::Problem;
use runtime::kernels::compile::{Origin, Target};
use runtime::problem::{
    AssembledSystem, DerivedField, MatrixPencil, Mode, ReportResult, ReportValue, Seconds,
    Solution as Solved, Step, assembled, assembled_pencil, side_by_side, solution_of, with_derived,
};
use runtime::solve::Report;
use runtime::space::discretisation::Discretisation;
use std::path::Path;

/// A solved problem.
pub struct Solution {
    form: Form,
    solved: Solved,
    steps: Vec<Step>,
    reported: Vec<Vec<ReportResult>>,
}

impl Solution {
    pub(crate) fn new(
        form: Form,
        solved: Solved,
        steps: Vec<Step>,
        reported: Vec<Vec<ReportResult>>,
    ) -> Self {
        Self { form, solved, steps, reported }
    }

    /// Returns the system of the problem on the last mesh, with its conditions and data, and the solution as its vector;
    /// behind a run through time all are those of its end.
    /// [`System::solution`] leads back.
    ///
    /// ```
    /// weakform::weak_form! {
    ///     form poisson { field u: scalar; param kappa = 1; f0[u] = -1; f1[u] = kappa * grad(u); }
    ///
    ///     problem square solves poisson {
    ///         mesh = box(dim: 2, cells: 4);
    ///         dirichlet u = 0;
    ///     }
    /// }
    ///
    /// let solution = poisson::problem::square().run()?;
    /// let (mut system, mut u) = solution.system()?;
    /// system.set_param("kappa", 2.0)?;
    /// let report = system.solve(&mut u)?;
    /// let half = system.solution(&u, report)?;
    /// assert!((half.energy().expect("an energy") / solution.energy().expect("an energy") - 0.5).abs() < 1e-9);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Unsupported kernels, a device failure.
    pub fn system(&self) -> Result<(System, Vector), Error> {
        let context = self.solved.context.clone();
        let mut system = threads::roomy(|| System::of(self.form.clone(), context))?;
        if self.problem().stepping.is_some() {
            system.evaluate_prescribed()?;
        }
        let mut u = system.vector();
        u.set(&self.solved.u);
        Ok((system, u))
    }

    fn problem(&self) -> &Problem {
        &self.solved.context.problem
    }

    fn on(&self) -> &Discretisation {
        &self.solved.context.on
    }

    /// Returns the statistics of each step that led to it; a problem without `adapt` has one.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Returns the reports of each step, without line plots; the eigenvalues of an eigenvalue problem come first.
    pub fn step_reports(&self) -> &[Vec<ReportResult>] {
        &self.reported
    }

    /// Returns the form that it solves.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Returns the nodal values: field by field, node by node, components interleaved.
    pub fn values(&self) -> &[f64] {
        &self.solved.u
    }

    /// Returns the nodal values of a field, node by node, components interleaved; `None` for an unknown field.
    pub fn values_of(&self, field: &str) -> Option<&[f64]> {
        let range = self.on().dofs_of(self.field(field)?);
        Some(&self.solved.u[range])
    }

    /// Returns the position of each node of the first field.
    ///
    /// # Errors
    ///
    /// The mesh has no such geometry.
    pub fn points(&self) -> Result<Vec<[f64; 3]>, Error> {
        self.points_of_index(0)
    }

    /// Returns the position of each node of a field.
    ///
    /// # Errors
    ///
    /// There is no such field, or the mesh has no such geometry.
    pub fn points_of(&self, field: &str) -> Result<Vec<[f64; 3]>, Error> {
        let names = self.problem().form.fields.iter().map(|known| known.name.as_str());
        self.points_of_index(index("field", field, names)?)
    }

    fn points_of_index(&self, field: usize) -> Result<Vec<[f64; 3]>, Error> {
        let on = self.on();
        let points = on.fields[field].space.points(&on.mesh, &on.partition);
        points.map_err(|error| Error::Run(error.into()))
    }

    fn field(&self, name: &str) -> Option<usize> {
        self.problem().form.fields.iter().position(|known| known.name == name)
    }

    /// Assembles the linear system J(u) x = J(u) u − R(u) at the solution u, which for a linear form is its own:
    /// matrix, right-hand side, and the position and condition of each DoF. Kernels are compiled for the CPU.
    ///
    /// # Errors
    ///
    /// Unsupported kernels, or insufficient memory for the matrix.
    pub fn assemble(&self) -> Result<AssembledSystem, Error> {
        let target = Target::native();
        let made = threads::roomy(|| assembled(&self.solved, &target));
        made.map_err(Error::Run)
    }

    /// Assembles the matrices of an eigenvalue problem, J φ = λ M φ.
    ///
    /// # Errors
    ///
    /// A problem without `eigen`, unsupported kernels, or insufficient memory for a matrix.
    pub fn assemble_pencil(&self) -> Result<MatrixPencil, Error> {
        let target = Target::native();
        let made = threads::roomy(|| assembled_pencil(&self.solved, &target));
        made.map_err(Error::Run)
    }

    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.on().mesh.n_cells()
    }

    /// Returns the number of degrees of freedom on the cells where their fields live.
    pub fn dofs(&self) -> usize {
        self.on().n_dofs() - self.on().outside().count()
    }

    /// Returns the iterations of the solver.
    pub fn iterations(&self) -> usize {
        self.solved.report.iterations
    }

    /// Returns ‖R(u)‖ over the free DoFs.
    pub fn residual(&self) -> f64 {
        self.solved.residual
    }

    /// Returns the errors of a field in L2 and H1, if the problem has an `exact` solution.
    pub fn error(&self, field: &str) -> Option<(f64, f64)> {
        let index = self.field(field)?;
        let found = self.solved.errors.iter().find(|(of, ..)| *of == index);
        found.map(|&(_, l2, h1)| (l2, h1))
    }

    /// Returns the energy, if the form has one.
    pub fn energy(&self) -> Option<f64> {
        self.solved.energy
    }

    /// Returns the result of a report by its name, as in `report drag = …;`; `None` for an unknown name.
    pub fn report(&self, name: &str) -> Option<&ReportValue> {
        let found = self.solved.reports.iter().find(|report| report.name == name);
        found.map(|report| &report.value)
    }

    /// Returns the smallest and the largest value of each component of a field at its nodes.
    pub fn range(&self, field: &str) -> Option<&[[f64; 2]]> {
        Some(&self.solved.ranges[self.field(field)?])
    }

    /// Returns remarks on the solution, its mesh and the solve: one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.solved.notes
    }

    /// Returns the seconds of each phase.
    pub fn seconds(&self) -> Seconds {
        self.solved.seconds
    }

    /// Returns the origin of the kernels.
    pub fn origin(&self) -> Origin {
        self.solved.kernels.origin
    }

    /// Returns an output of the problem, `output NAME = EXPR;`, by its name; of an eigenvalue problem, that of the first
    /// mode.
    pub fn output(&self, name: &str) -> Option<&DerivedField> {
        self.solved.derived.iter().find(|field| field.name == name)
    }

    /// Writes it in the format of the extension: `.vtu`, as `wf run --output` has.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or the extension has no format.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let (form, on, path) = (&self.problem().form, self.on(), path.as_ref());
        if self.solved.modes.is_empty() {
            let (form, on) = with_derived(form, on, &self.solved.derived);
            return Ok(write_solution(path, &form, &on, &self.solved.u)?);
        }
        let (form, on, u) = side_by_side(form, on, &self.solved.modes);
        Ok(write_solution(path, &form, &on, &u)?)
    }

    /// Returns the contents of its VTU file.
    ///
    /// # Errors
    ///
    /// A field that VTU cannot represent.
    pub fn to_vtu(&self) -> Result<Vec<u8>, Error> {
        let (form, on) = (&self.problem().form, self.on());
        let mut bytes = Vec::new();
        if self.solved.modes.is_empty() {
            let (form, on) = with_derived(form, on, &self.solved.derived);
            write_vtu_to(&mut bytes, &form, &on, &self.solved.u)?;
        } else {
            let (form, on, u) = side_by_side(form, on, &self.solved.modes);
            write_vtu_to(&mut bytes, &form, &on, &u)?;
        }
        Ok(bytes)
    }

    /// Writes it for ParaView.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write_vtu(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let (form, on, path) = (&self.problem().form, self.on(), path.as_ref());
        if self.solved.modes.is_empty() {
            let (form, on) = with_derived(form, on, &self.solved.derived);
            return Ok(write_vtu(path, &form, &on, &self.solved.u)?);
        }
        let (form, on, u) = side_by_side(form, on, &self.solved.modes);
        Ok(write_vtu(path, &form, &on, &u)?)
    }

    /// Returns the eigenvalues with their modes, if the problem has any.
    ///
    /// ```
    /// weakform::weak_form! {
    ///     form laplace { field u: scalar; f1[u] = grad(u); }
    ///
    ///     problem membrane solves laplace {
    ///         mesh = box(dim: 2, cells: 4); degree = 4;
    ///         dirichlet u = 0;
    ///         eigen = smallest(2);
    ///     }
    /// }
    ///
    /// let modes = laplace::problem::membrane().run()?;
    /// let [first, second] = modes.modes() else { panic!("two modes") };
    /// let known = std::f64::consts::PI.powi(2);
    /// assert!((first.value / (2.0 * known) - 1.0).abs() < 1e-5);
    /// assert!((second.value / (5.0 * known) - 1.0).abs() < 1e-3);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    pub fn modes(&self) -> &[Mode] {
        &self.solved.modes
    }

    /// Draws a field on the boundary of the body or on a plane through it, and writes PNG or SVG according to the
    /// extension.
    ///
    /// ```
    /// use weakform::picture::PictureOptions;
    ///
    /// weakform::weak_form! {
    ///     form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
    ///
    ///     problem cube solves poisson {
    ///         mesh = box(dim: 3, cells: 2);
    ///         dirichlet u = 0 on all;
    ///     }
    /// }
    ///
    /// # let folder = std::env::temp_dir().join(format!("weakform-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder).expect("a folder");
    /// let solution = poisson::problem::cube().run()?;
    /// let slice = Some("z=0.5".parse().expect("a plane"));
    /// let options = PictureOptions { slice, size: Some((400, 300)), ..Default::default() };
    /// solution.picture(folder.join("u.png"), &options)?;
    /// # std::fs::remove_dir_all(&folder).expect("the folder");
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The extension is neither `.png` nor `.svg`, the file cannot be written, or the options select nothing to draw.
    #[cfg(feature = "pictures")]
    pub fn picture(
        &self,
        path: impl AsRef<Path>,
        options: &crate::picture::PictureOptions,
    ) -> Result<(), Error> {
        let problem = self.problem();
        let (form, on) = with_derived(&problem.form, self.on(), &self.solved.derived);
        let (path, u) = (path.as_ref(), &self.solved.u);
        crate::picture::write(path, &problem.name, &form, &on, u, options)?;
        Ok(())
    }

    /// Returns the solution as the runtime represents it.
    pub fn inner(&self) -> &Solved {
        &self.solved
    }
}

impl System {
    /// Measures `u` as a [`Solution`] of the problem, with errors, energy, reports and pictures; `report` is that of its
    /// solve. [`Solution::system`] leads back. Without a problem of the language there are no errors and reports.
    ///
    /// ```
    /// use weakform::{ALL, mesh, weak_form};
    ///
    /// weak_form! { form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); } }
    ///
    /// let mut system = poisson::form().on(mesh("box(dim: 2, cells: 4)")?).dirichlet("u", ALL, |_| 0.0).build()?;
    /// let mut u = system.initial();
    /// let report = system.solve(&mut u)?;
    /// let solution = system.solution(&u, report)?;
    /// assert!(solution.residual() < 1e-8 && solution.energy().expect("an energy") < 0.0);
    /// # Ok::<(), weakform::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The vector does not fit; an error or a report that cannot be evaluated.
    pub fn solution(&self, u: &Vector, report: Report) -> Result<Solution, Error> {
        self.fits(u)?;
        let (form, context, operator, kernels) = self.parts();
        let found = threads::roomy(|| solution_of(context, (operator, kernels), u, report))?;
        Ok(Solution::new(form.clone(), found, Vec::new(), Vec::new()))
    }
}

impl std::fmt::Debug for Solution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let report = &self.solved.report;
        f.debug_struct("Solution").field("dofs", &self.dofs()).field("report", report).finish()
    }
}
