//! Matrix-free products compared with sparse matrices by degree, for a [`Problem`] on a box and a [`Representation`].
//!
//! M. Kronbichler, K. Kormann (2012), A generic interface for parallel cell-based finite element operator application,
//! sections 1 and 2: linear problems with one and several components, and nonlinear ones, whose derivative, and thus
//! the matrix, changes with each Newton step. Boxes, coefficients and states are our own. At degree p in d dimensions a
//! matrix has on average
//!
//! ```text
//! entries per row         ((2 p + 1 + (p − 1) (p + 1)) / p)^d = (p + 2)^d, for each coupled component
//! bytes per row           12 per entry, and 4
//! faster without it       from degree 2, on hexahedra
//! ```

use super::product::{Machine, Product};
use super::{BenchError, Case, DEFORMATION, box_mesh, gauss_1};
use runtime::kernels::representation::{Assembly, Representation};
use runtime::mesh::Mesh;
use std::sync::Arc;

/// A problem of the suite in a fixed dimension.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Form and rule; the name contains the dimension.
    pub case: Case,
    /// The dimension.
    pub dim: usize,
    /// Number of components of the field.
    pub components: usize,
    /// True if the derivative depends on the state.
    pub nonlinear: bool,
}

/// Equations 2 and 3 with a variable coefficient.
const LAPLACIAN: &str =
    "form laplacian { field u: scalar; let kappa = 1 + dot(x, x); f1[u] = kappa * grad(u); }";

const ELASTICITY: &str = "form elasticity { field u: vector; let eps = sym(grad(u)); \
     f1[u] = tr(eps) * I + 2 * eps; }";

/// −div(∇u / √(1 + |∇u|²)) = 0.
const MINIMAL_SURFACE: &str = "form minimal_surface { field u: scalar; \
     f1[u] = grad(u) / sqrt(1 + dot(grad(u), grad(u))); }";

const fn problem(
    name: &'static str,
    form: &'static str,
    [dim, components]: [usize; 2],
    nonlinear: bool,
) -> Problem {
    Problem { case: Case { name, form, rule: gauss_1, least: 1 }, dim, components, nonlinear }
}

/// The suite.
pub const PROBLEMS: [Problem; 6] = [
    problem("laplacian-2d", LAPLACIAN, [2, 1], false),
    problem("elasticity-2d", ELASTICITY, [2, 2], false),
    problem("minimal-surface-2d", MINIMAL_SURFACE, [2, 1], true),
    problem("laplacian-3d", LAPLACIAN, [3, 1], false),
    problem("elasticity-3d", ELASTICITY, [3, 3], false),
    problem("minimal-surface-3d", MINIMAL_SURFACE, [3, 1], true),
];

/// Representation of the reference matrix: with a precomputed pattern.
pub const MATRIX: Representation = Representation::Assembled(Assembly::Pattern);

/// Cost of the derivative in one representation.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Number of degrees of freedom.
    pub dofs: usize,
    /// Seconds of the symbolic phase, once.
    pub set_up: f64,
    /// Seconds at each new state: of stored data, or of assembly.
    pub linearise: f64,
    /// Seconds of a product.
    pub product: f64,
    /// Bytes stored in addition to vectors.
    pub bytes: usize,
    /// Number of matrix entries.
    pub entries: usize,
    /// Operations of a product: of the kernels, or two per entry.
    pub flops: Option<f64>,
    /// Product with [`super::input`].
    pub result: Vec<f64>,
}

impl Cost {
    /// Returns the degrees of freedom per second.
    pub fn dofs_per_second(&self) -> f64 {
        self.dofs as f64 / self.product
    }

    /// Returns the operations per second.
    pub fn flops_per_second(&self) -> Option<f64> {
        self.flops.map(|flops| flops / self.product)
    }

    /// Returns the bytes per degree of freedom.
    pub fn bytes_per_dof(&self) -> f64 {
        self.bytes as f64 / self.dofs as f64
    }

    /// Returns the number of products per Newton step from which a matrix, including its assembly, is faster; `None` if
    /// a product with it is not faster.
    ///
    /// ```text
    /// (assembly − linearise) / (product without − product with)
    /// ```
    pub fn products_to_pay(&self, matrix: &Self) -> Option<f64> {
        let gain = self.product - matrix.product;
        (gain > 0.0).then(|| ((matrix.linearise - self.linearise) / gain).max(0.0))
    }
}

impl Problem {
    /// Builds a deformed box of quadrilaterals or hexahedra with at least `dofs` degrees of freedom.
    ///
    /// # Errors
    ///
    /// More cells than indices can address.
    pub fn mesh(&self, degree: usize, dofs: usize) -> Result<Arc<Mesh>, BenchError> {
        let unknowns = |cells: usize| {
            self.components as f64 * ((degree * cells + 1) as f64).powi(self.dim as i32)
        };
        let cells = (1..).find(|&cells| unknowns(cells) >= dofs as f64).unwrap_or(1);
        box_mesh(self.dim, cells, DEFORMATION)
    }

    /// Measures the derivative at a smooth state.
    ///
    /// # Errors
    ///
    /// No plan, insufficient memory, a compiler or device failure.
    pub fn cost(
        &self,
        degree: usize,
        mesh: &Arc<Mesh>,
        how: Representation,
        machine: &Machine,
    ) -> Result<Cost, BenchError> {
        let mut product = Product::of(&self.case, degree, mesh, how, machine)?;
        product.set_state(state)?;
        let linearise = product.linearise_seconds()?;
        let seconds = product.seconds()?;
        let result = product.result()?;
        let entries = product.entries();
        let flops = match how {
            Representation::Assembled(_) => Some(2.0 * entries as f64),
            _ => product.flops(),
        };
        Ok(Cost {
            dofs: result.len(),
            set_up: product.set_up_seconds(),
            linearise,
            product: seconds,
            bytes: product.bytes(),
            entries,
            flops,
            result,
        })
    }
}

/// Returns a state with a gradient of about 1: u = x₀ (1 − x₁) + x₂² / 2.
fn state(x: &[f64; 3]) -> f64 {
    x[0] * (1.0 - x[1]) + 0.5 * x[2] * x[2]
}

/// Returns the number of matrix entries at degree p on many quadrilaterals or hexahedra: a vertex is coupled with 2 p +
/// 1 nodes in each direction, the p − 1 other nodes of a cell with p + 1.
pub fn entries(dim: usize, degree: usize, components: usize, dofs: f64) -> f64 {
    dofs * (degree as f64 + 2.0).powi(dim as i32) * components as f64
}
