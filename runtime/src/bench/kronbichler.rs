//! Matrix-free products beside those with a sparse matrix, by degree: a [`Problem`] on a box and a [`Representation`] → [`Cost`].
//!
//! M. Kronbichler, K. Kormann (2012), A generic interface for parallel cell-based finite element operator application, sections 1
//! and 2: linear problems of one and of several components, and nonlinear ones, whose derivative changes with each of Newton's
//! steps and so does a matrix. Boxes, coefficients and states are our own. Of degree p in d dimensions a matrix has in the mean
//!
//! ```text
//! entries of a row        ((2 p + 1 + (p − 1) (p + 1)) / p)^d = (p + 2)^d, for each component that a test function sees
//! bytes of a row          12 an entry, and 4
//! faster without it       from degree 2 on, on hexahedra
//! ```

use super::product::{Machine, Product};
use super::{BenchError, Case, gauss_1};
use crate::kernels::representation::{Assembly, Representation};
use crate::mesh::Mesh;
use crate::mesh::generate::generate;
use fem_dsl::problem::Argument;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A problem of the suite in one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// Its form and rule; the name says the dimension.
    pub case: Case,
    /// The dimension.
    pub dim: usize,
    /// Components of the field.
    pub components: usize,
    /// Whether the derivative depends on the state.
    pub nonlinear: bool,
}

/// Equations 2 and 3 with a coefficient that varies.
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

/// The matrix that products are compared with: places of entries are found once.
pub const MATRIX: Representation = Representation::Assembled(Assembly::Pattern);

/// What the derivative costs in one representation.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Unknowns.
    pub dofs: usize,
    /// Seconds to find the places of entries, once.
    pub set_up: f64,
    /// Seconds at each new state: what is stored of it, or assembling the matrix.
    pub linearise: f64,
    /// Seconds of a product.
    pub product: f64,
    /// Bytes that are stored beside vectors.
    pub bytes: usize,
    /// Entries of the matrix.
    pub entries: usize,
    /// Operations of a product: of the kernels, or two an entry.
    pub flops: Option<f64>,
    /// The product with [`super::input`].
    pub result: Vec<f64>,
}

impl Cost {
    /// Unknowns a second.
    pub fn dofs_per_second(&self) -> f64 {
        self.dofs as f64 / self.product
    }

    /// Operations a second.
    pub fn flops_per_second(&self) -> Option<f64> {
        self.flops.map(|flops| flops / self.product)
    }

    /// Bytes an unknown.
    pub fn bytes_per_dof(&self) -> f64 {
        self.bytes as f64 / self.dofs as f64
    }

    /// Products in one step of Newton's method from which a matrix takes less time than this does without one, with what it
    /// takes to assemble it; none where a product with it is no faster.
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
    /// A deformed box of quadrilaterals or hexahedra with at least so many unknowns.
    ///
    /// # Errors
    ///
    /// More cells than indices can number.
    pub fn mesh(&self, degree: usize, dofs: usize) -> Result<Arc<Mesh>, BenchError> {
        let unknowns = |cells: usize| {
            self.components as f64 * ((degree * cells + 1) as f64).powi(self.dim as i32)
        };
        let cells = (1..).find(|&cells| unknowns(cells) >= dofs as f64).unwrap_or(1);
        let number = |name: &str, value: f64| (name.to_owned(), Argument::Number(value));
        let numbers = [("dim", self.dim as f64), ("cells", cells as f64), ("deform", 0.1)];
        let arguments: BTreeMap<_, _> =
            numbers.into_iter().map(|(name, value)| number(name, value)).collect();
        Ok(Arc::new(generate("box", &arguments)?))
    }

    /// Measures the derivative at a smooth state.
    ///
    /// # Errors
    ///
    /// No plan, too little memory, a compiler or a device that fails.
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

/// A state whose gradient is about 1: u = x₀ (1 − x₁) + x₂² / 2.
fn state(x: &[f64; 3]) -> f64 {
    x[0] * (1.0 - x[1]) + 0.5 * x[2] * x[2]
}

/// Entries of a matrix of degree p on many quadrilaterals or hexahedra: a vertex sees 2 p + 1 nodes in each direction, the p − 1
/// others of a cell p + 1.
pub fn entries(dim: usize, degree: usize, components: usize, dofs: f64) -> f64 {
    dofs * (degree as f64 + 2.0).powi(dim as i32) * components as f64
}
