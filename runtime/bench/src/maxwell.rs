//! Operators of H(curl) and H(div) on a deformed box of hexahedra, matrix-free, and solves with them.
//!
//! ```text
//! curl    curl curl E + E        Nédélec's elements of the first kind
//! div     −grad div u + u        Raviart and Thomas's elements
//! ```
//!
//! Products are without conditions. A solve has zero tangential, or normal, components on the whole boundary.

use super::product::{Machine, Product};
use super::{BenchError, Case, DEFORMATION, box_mesh, gauss_1};
use kernels_gen::plan::{Strategy, Task};
use runtime::kernels::representation::Representation;
use runtime::mesh::Mesh;
use std::sync::Arc;

/// A problem of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Form and rule of the products.
    pub case: Case,
    /// Fields, f0 and f1 of the solves.
    solved: &'static str,
    /// The field.
    field: &'static str,
}

/// The suite.
pub const PROBLEMS: [Problem; 2] = [
    Problem {
        case: Case {
            name: "curl",
            form: "form curls { field E: vector in Hcurl(k); f0[E] = E; f1[E] = curl(E); }",
            rule: gauss_1,
            least: 1,
        },
        solved: "field E: vector in Hcurl(k); \
             f0[E] = E - [sin(3 * x[1]), sin(3 * x[2]), x[0]]; f1[E] = curl(E);",
        field: "E",
    },
    Problem {
        case: Case {
            name: "div",
            form: "form divs { field u: vector in Hdiv(k); f0[u] = u; f1[u] = div(u); }",
            rule: gauss_1,
            least: 1,
        },
        solved: "field u: vector in Hdiv(k); \
             f0[u] = u - [sin(3 * x[1]), sin(3 * x[2]), x[0]]; f1[u] = div(u);",
        field: "u",
    },
];

/// Cost of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Number of degrees of freedom.
    pub dofs: usize,
    /// Seconds of an application.
    pub seconds: f64,
    /// Floating-point operations of an application.
    pub flops: f64,
    /// Bytes of the tables of the kernels.
    pub bytes: usize,
    /// The strategy of its kernel.
    pub strategy: Option<Strategy>,
}

impl Cost {
    /// Returns the degrees of freedom per second.
    pub fn dofs_per_second(&self) -> f64 {
        self.dofs as f64 / self.seconds
    }

    /// Returns the floating-point operations per degree of freedom.
    pub fn flops_per_dof(&self) -> f64 {
        self.flops / self.dofs as f64
    }

    /// Returns the bytes of tables per degree of freedom.
    pub fn bytes_per_dof(&self) -> f64 {
        self.bytes as f64 / self.dofs as f64
    }
}

/// Returns the cells along an edge of a box with at least `dofs` degrees of freedom: 3k³ for each cell. Up to a seventh
/// more make them a multiple of 8, 4 or 2, so that solves have coarser meshes.
fn cells(degree: usize, dofs: usize) -> usize {
    let enough = |&cells: &usize| 3.0 * ((degree * cells) as f64).powi(3) >= dofs as f64;
    let least = (1..).find(enough).unwrap_or(1);
    let is_near = |times: &usize| 7 * least.next_multiple_of(*times) <= 8 * least;
    least.next_multiple_of([8, 4, 2].into_iter().find(is_near).unwrap_or(1))
}

impl Problem {
    /// Builds a box of hexahedra with at least `dofs` degrees of freedom.
    ///
    /// # Errors
    ///
    /// More cells than indices can address.
    pub fn mesh(&self, degree: usize, dofs: usize) -> Result<Arc<Mesh>, BenchError> {
        box_mesh(3, cells(degree, dofs), DEFORMATION)
    }

    /// Measures the operator.
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
        let tasks = (how, how.tasks());
        let mut product = Product::of_tasks(&self.case, degree, mesh, tasks, machine)?;
        product.linearise()?;
        let seconds = product.seconds()?;
        Ok(Cost {
            dofs: product.discretisation().n_dofs(),
            seconds,
            flops: product.flops().unwrap_or(0.0),
            bytes: product.table_bytes(Task::Action),
            strategy: product.plan(false).map(|plan| plan.strategy),
        })
    }

    /// Returns the text of a problem with at least this many degrees of freedom, solved by CG to a relative tolerance.
    pub fn text(&self, degree: usize, dofs: usize, tolerance: f64) -> String {
        let (Self { solved, field, .. }, cells) = (self, cells(degree, dofs));
        format!(
            "form f {{ {solved} }}\n\
             problem p solves f {{ mesh = box(dim: 3, cells: {cells}, deform: {DEFORMATION}); \
             degree = {degree}; dirichlet {field} = [0, 0, 0] on all; \
             solver = cg(rtol: {tolerance:e}); }}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::PROBLEMS;
    use crate::product::Machine;
    use fem_dsl::program::compile;
    use fem_dsl::source::Source;
    use kernels_gen::plan::Strategy;
    use runtime::kernels::compile::{Execution, Target};

    #[test]
    fn operators_have_their_size_and_cost() {
        for problem in PROBLEMS {
            let mesh = problem.mesh(2, 500).expect("a mesh");
            let target = Target { execution: Execution::Interpreted, ..Target::native() };
            let cost = problem.cost(2, &mesh, &Machine::Processor(target)).expect("a cost");
            assert!(cost.dofs >= 500 && cost.dofs < 2000, "{}", cost.dofs);
            assert!(cost.flops_per_dof() > 50.0 && cost.bytes_per_dof() > 1.0, "{cost:?}");
            assert_eq!(cost.strategy, Some(Strategy::CellPerLane));
        }
    }

    #[test]
    fn solves_are_problems_of_the_language() {
        for problem in PROBLEMS {
            let text = problem.text(2, 1000, 1e-8);
            let (program, found) = compile(&Source::new("bench", &text));
            assert!(program.is_some(), "{found:?}");
        }
    }
}
