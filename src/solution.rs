//! A solved problem, and what can be asked of it.

use crate::error::index;
use crate::{Error, threads, write_vtu};
use fem_dsl::problem::Problem;
use runtime::kernels::compile::{Origin, Target};
use runtime::problem::{
    AssembledSystem, MatrixPencil, Mode, ReportValue, Seconds, Solution as Solved, Step, assembled,
    assembled_pencil, side_by_side,
};
use std::path::Path;

/// A solved problem.
pub struct Solution {
    problem: Problem,
    solved: Solved,
    steps: Vec<Step>,
}

impl Solution {
    pub(crate) fn new(problem: Problem, solved: Solved, steps: Vec<Step>) -> Self {
        Self { problem, solved, steps }
    }

    /// The figures of each step that led to it; of a problem without `adapt` there is one.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The nodal values of the unknowns: field after field, node after node, components interleaved.
    pub fn values(&self) -> &[f64] {
        &self.solved.u
    }

    /// The nodal values of a field, node after node, components interleaved; none where there is no such field.
    pub fn values_of(&self, field: &str) -> Option<&[f64]> {
        let range = self.solved.on.dofs_of(self.field(field)?);
        Some(&self.solved.u[range])
    }

    /// The place of each node of the first field.
    ///
    /// # Errors
    ///
    /// The mesh has no such geometry.
    pub fn points(&self) -> Result<Vec<[f64; 3]>, Error> {
        self.points_of_index(0)
    }

    /// The place of each node of a field.
    ///
    /// # Errors
    ///
    /// There is no such field, or the mesh has no such geometry.
    pub fn points_of(&self, field: &str) -> Result<Vec<[f64; 3]>, Error> {
        let names = self.problem.form.fields.iter().map(|known| known.name.as_str());
        self.points_of_index(index("field", field, names)?)
    }

    fn points_of_index(&self, field: usize) -> Result<Vec<[f64; 3]>, Error> {
        let on = &self.solved.on;
        let points = on.fields[field].space.points(&on.mesh, &on.partition);
        points.map_err(|error| Error::Run(error.into()))
    }

    fn field(&self, name: &str) -> Option<usize> {
        self.problem.form.fields.iter().position(|known| known.name == name)
    }

    /// The linear system J(u) x = J(u) u − R(u) at the solution u, which for a linear form is its own: matrix, right-hand
    /// side, and the point and the condition of each unknown. Kernels are compiled for the processor.
    ///
    /// # Errors
    ///
    /// Kernels that cannot be made, a matrix that has no room.
    pub fn assemble(&self) -> Result<AssembledSystem, Error> {
        let target = Target::native();
        let made = threads::roomy(|| assembled(&self.problem, &self.solved, &target));
        made.map_err(Error::Run)
    }

    /// The matrices of an eigenvalue problem, J φ = λ M φ.
    ///
    /// # Errors
    ///
    /// A problem without `eigen`, kernels that cannot be made, a matrix that has no room.
    pub fn assemble_pencil(&self) -> Result<MatrixPencil, Error> {
        let target = Target::native();
        let made = threads::roomy(|| assembled_pencil(&self.problem, &self.solved, &target));
        made.map_err(Error::Run)
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.solved.on.mesh.n_cells()
    }

    /// How many unknowns there are.
    pub fn dofs(&self) -> usize {
        self.solved.on.n_dofs()
    }

    /// Iterations of the solver.
    pub fn iterations(&self) -> usize {
        self.solved.report.iterations
    }

    /// ‖R(u)‖ over the free unknowns.
    pub fn residual(&self) -> f64 {
        self.solved.residual
    }

    /// The errors of a field in L2 and H1, where the problem has an `exact` solution.
    pub fn error(&self, field: &str) -> Option<(f64, f64)> {
        let index = self.field(field)?;
        let found = self.solved.errors.iter().find(|(of, ..)| *of == index);
        found.map(|&(_, l2, h1)| (l2, h1))
    }

    /// The energy, where the form has one.
    pub fn energy(&self) -> Option<f64> {
        self.solved.energy
    }

    /// What the problem reports under a name, as `report drag = …;`; none where it reports nothing of that name.
    pub fn report(&self, name: &str) -> Option<&ReportValue> {
        let found = self.solved.reports.iter().find(|report| report.name == name);
        found.map(|report| &report.value)
    }

    /// The smallest and the largest value of each component of a field at its nodes.
    pub fn range(&self, field: &str) -> Option<&[[f64; 2]]> {
        Some(&self.solved.ranges[self.field(field)?])
    }

    /// What should be known of it, its mesh and how it was come by: one sentence each.
    pub fn notes(&self) -> &[String] {
        &self.solved.notes
    }

    /// Seconds of each phase.
    pub fn seconds(&self) -> Seconds {
        self.solved.seconds
    }

    /// Where the kernels came from.
    pub fn origin(&self) -> Origin {
        self.solved.kernels.origin
    }

    /// Writes it for ParaView.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn write_vtu(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let (form, on, path) = (&self.problem.form, &self.solved.on, path.as_ref());
        if self.solved.modes.is_empty() {
            return Ok(write_vtu(path, form, on, &self.solved.u)?);
        }
        let (form, on, u) = side_by_side(form, on, &self.solved.modes);
        Ok(write_vtu(path, &form, &on, &u)?)
    }

    /// The eigenvalues with their modes, where the problem asks for some.
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

    /// Draws a field on the boundary of the body or on a plane through it, and writes PNG or SVG, as the file's name says.
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
    /// The file ends in neither `.png` nor `.svg` or cannot be written, or there is nothing to draw as the options say.
    #[cfg(feature = "pictures")]
    pub fn picture(
        &self,
        path: impl AsRef<Path>,
        options: &crate::picture::PictureOptions,
    ) -> Result<(), Error> {
        let (problem, on) = (&self.problem, &self.solved.on);
        let (path, u) = (path.as_ref(), &self.solved.u);
        crate::picture::write(path, &problem.name, &problem.form, on, u, options)?;
        Ok(())
    }

    /// Everything that the runtime knows of it.
    pub fn inner(&self) -> &Solved {
        &self.solved
    }
}

impl std::fmt::Debug for Solution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let report = &self.solved.report;
        f.debug_struct("Solution").field("dofs", &self.dofs()).field("report", report).finish()
    }
}
