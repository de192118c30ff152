//! Discontinuous Galerkin operators on a deformed or affine box of hexahedra, without conditions: terms of cells and of
//! facets between them, matrix-free.
//!
//! ```text
//! sipg        symmetric interior penalty of −Δu           action
//! advection   upwind fluxes of ċ + ∇·(b c)                action
//! euler       Rusanov's flux of the Euler equations       residual, as in a stage of an explicit scheme
//! ```
//!
//! Rates count the degrees of freedom of all components.

use super::product::{Machine, Product};
use super::{BenchError, Case, DEFORMATION, box_mesh, gauss_1};
use kernels_gen::plan::Task;
use runtime::kernels::representation::Representation;
use runtime::mesh::Mesh;
use std::sync::Arc;

/// A problem of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Form and rule; the name contains the mesh.
    pub case: Case,
    /// Number of components of the field.
    pub components: usize,
    /// The measured task.
    pub task: Task,
    /// True for a box of equal cubes.
    pub affine: bool,
}

const SIPG: &str = "form sipg { field u: scalar in L2(k); param eta = 2; f1[u] = grad(u); \
     on interior { energy = eta * avg(penalty(u)) / 2 * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); } }";

const ADVECTION: &str = "form advection { field c: scalar in L2(k); let b = [1, 0.5, 0.25]; \
     f1[c] = -c * b; \
     on interior { f0[jump(c)] = dot(b, n) * avg(c) + abs(dot(b, n)) / 2 * jump(c); } }";

/// Density, momentum and energy.
const EULER: &str = "form euler { field w: vector(5) in L2(k); param gamma = 1.4; \
     fn velocity(s) = [s[1], s[2], s[3]] / s[0]; \
     fn pressure(s) = (gamma - 1) * (s[4] - s[0] * dot(velocity(s), velocity(s)) / 2); \
     fn row(s, i) = s[1 + i] * velocity(s); \
     fn flux(s) = [[s[1], s[2], s[3]], row(s, 0) + pressure(s) * [1, 0, 0], \
         row(s, 1) + pressure(s) * [0, 1, 0], row(s, 2) + pressure(s) * [0, 0, 1], \
         (s[4] + pressure(s)) * velocity(s)]; \
     f1[w] = -flux(w); \
     on interior { \
         fn speed(s) = abs(dot(velocity(s), n)) + sqrt(gamma * pressure(s) / s[0]); \
         f0[jump(w)] = avg(flux(w)) * n + max(speed(inside(w)), speed(outside(w))) / 2 * jump(w); \
     } }";

const fn problem(
    name: &'static str,
    form: &'static str,
    components: usize,
    task: Task,
    affine: bool,
) -> Problem {
    Problem { case: Case { name, form, rule: gauss_1, least: 1 }, components, task, affine }
}

/// The suite.
pub const PROBLEMS: [Problem; 6] = [
    problem("sipg", SIPG, 1, Task::Action, false),
    problem("sipg-affine", SIPG, 1, Task::Action, true),
    problem("advection", ADVECTION, 1, Task::Action, false),
    problem("advection-affine", ADVECTION, 1, Task::Action, true),
    problem("euler", EULER, 5, Task::Residual, false),
    problem("euler-affine", EULER, 5, Task::Residual, true),
];

/// Cost of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Number of degrees of freedom of all components.
    pub dofs: usize,
    /// Seconds of an application.
    pub seconds: f64,
    /// Bytes of the tables of the kernels.
    pub bytes: usize,
    /// Its result.
    pub result: Vec<f64>,
}

impl Cost {
    /// Returns the degrees of freedom per second.
    pub fn dofs_per_second(&self) -> f64 {
        self.dofs as f64 / self.seconds
    }

    /// Returns the bytes of tables per degree of freedom.
    pub fn bytes_per_dof(&self) -> f64 {
        self.bytes as f64 / self.dofs as f64
    }
}

impl Problem {
    /// Builds a box of hexahedra with at least `dofs` degrees of freedom.
    ///
    /// # Errors
    ///
    /// More cells than indices can address.
    pub fn mesh(&self, degree: usize, dofs: usize) -> Result<Arc<Mesh>, BenchError> {
        let unknowns = |cells: usize| self.components as f64 * ((degree + 1) * cells).pow(3) as f64;
        let cells = (1..).find(|&cells| unknowns(cells) >= dofs as f64).unwrap_or(1);
        let deform = if self.affine { 0.0 } else { DEFORMATION };
        box_mesh(3, cells, deform)
    }

    /// Measures the operator at a smooth state.
    ///
    /// # Errors
    ///
    /// No plan, insufficient memory, a compiler or device failure.
    pub fn cost(
        &self,
        degree: usize,
        mesh: &Arc<Mesh>,
        machine: &Machine,
    ) -> Result<Cost, BenchError> {
        let how = Representation::MatrixFree;
        let mut product =
            Product::of_tasks(&self.case, degree, mesh, (how, &[self.task]), machine)?;
        product.set_components(state)?;
        let (seconds, result) = match self.task {
            Task::Residual => (product.residual_seconds()?, product.residual()?),
            _ => {
                product.linearise()?;
                (product.seconds()?, product.result()?)
            }
        };
        let bytes = product.table_bytes(self.task);
        Ok(Cost { dofs: result.len(), seconds, bytes, result })
    }
}

/// Sets a smooth flow of pressure 1: density, momentum and energy, or their first components.
fn state(x: &[f64; 3], own: &mut [f64]) {
    let density = 1.0 + 0.1 * (x[0] + 2.0 * x[1] - x[2]).sin();
    let velocity = [0.5, 0.2 * x[0], -0.1 * x[1]];
    let square: f64 = velocity.iter().map(|v| v * v).sum();
    let momentum = velocity.map(|v| density * v);
    let all = [density, momentum[0], momentum[1], momentum[2], 2.5 + density * square / 2.0];
    own.iter_mut().zip(all).for_each(|(own, value)| *own = value);
}

#[cfg(test)]
mod tests {
    use super::{PROBLEMS, Problem};
    use crate::product::Machine;
    use runtime::kernels::compile::{Execution, Target};

    fn named(name: &str) -> Problem {
        PROBLEMS.into_iter().find(|problem| problem.case.name == name).expect("a problem")
    }

    /// Rows of all cells cancel between cells: the sum of a residual is that of the boundary, which has no terms.
    #[test]
    fn operators_conserve_and_meshes_have_their_size() {
        for name in
            ["sipg", "sipg-affine", "advection", "advection-affine", "euler", "euler-affine"]
        {
            let problem = named(name);
            let mesh = problem.mesh(2, 400).expect("a mesh");
            assert_eq!(mesh.is_affine(), problem.affine, "{name}");
            let target = Target { execution: Execution::Interpreted, ..Target::native() };
            let cost = problem.cost(2, &mesh, &Machine::Processor(target)).expect("a cost");
            assert!(cost.dofs >= 400 && cost.dofs == mesh.n_cells() * 27 * problem.components);
            assert!(cost.dofs_per_second() > 0.0 && cost.bytes_per_dof() > 0.0, "{name}");
            for component in 0..problem.components {
                let own = || cost.result.iter().skip(component).step_by(problem.components);
                let (sum, scale) = (own().sum::<f64>(), own().map(|x| x.abs()).sum::<f64>());
                assert!(
                    scale > 0.0 && sum.abs() < 1e-12 * scale,
                    "{name} {component}: {sum} {scale}"
                );
            }
        }
    }
}
