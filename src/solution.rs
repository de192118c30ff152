//! A solved problem, and what can be asked of it.

use crate::{Error, write_vtu};
use fem_dsl::problem::Problem;
use runtime::compile::Origin;
use runtime::run::{Seconds, Solution as Solved};
use std::path::Path;

/// A solved problem.
pub struct Solution {
    problem: Problem,
    solved: Solved,
}

impl Solution {
    pub(crate) fn new(problem: Problem, solved: Solved) -> Self {
        Self { problem, solved }
    }

    /// The nodal values of the unknowns, node after node, components interleaved.
    pub fn values(&self) -> &[f64] {
        &self.solved.u
    }

    /// The place of each node.
    ///
    /// # Errors
    ///
    /// The mesh has no such geometry.
    pub fn points(&self) -> Result<Vec<[f64; 3]>, Error> {
        let on = &self.solved.on;
        let points = on.fields[0].space.points(&on.mesh, &on.partition);
        points.map_err(|error| Error::Run(error.into()))
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
        let index = self.problem.form.fields.iter().position(|known| known.name == field)?;
        let found = self.solved.errors.iter().find(|(of, ..)| *of == index);
        found.map(|&(_, l2, h1)| (l2, h1))
    }

    /// The energy, where the form has one.
    pub fn energy(&self) -> Option<f64> {
        self.solved.energy
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
        let (form, on) = (&self.problem.form, &self.solved.on);
        Ok(write_vtu(path.as_ref(), form, on, &self.solved.u)?)
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
