//! Ljungkvist's benchmark: Poisson with a variable coefficient on balls, and the paper's data of its own meshes.
//!
//! ```text
//! −div(κ grad u),   κ = 1 / (0.05 + 2 |x|²),   u = 0 on the sphere,   p + 1 Gauss points
//! ```
//!
//! K. Ljungkvist (2017), Matrix-free finite-element computations on graphics processors with adaptively refined
//! unstructured meshes, section 5 and tables 1 and 2. A product is the mean of [`PRODUCTS`].

use super::kronbichler::entries;
use super::{Case, gauss_1};

/// The problem.
pub const CASE: Case = Case {
    name: "ljungkvist",
    form: "form ljungkvist { field u: scalar; let kappa = 1 / (0.05 + 2 * dot(x, x)); \
           f1[u] = kappa * grad(u); }",
    rule: gauss_1,
    least: 1,
};

/// Number of products timed together.
pub const PRODUCTS: usize = 100;

/// A row of the tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperRow {
    /// The dimension.
    pub dim: usize,
    /// p.
    pub degree: usize,
    /// Maximum number of refinements of the ball's 5 or 7 cells.
    pub level: usize,
    /// Numbers of cells and degrees of freedom of the uniform mesh.
    pub uniform: [u64; 2],
    /// Numbers of cells and degrees of freedom of the adaptive mesh, hanging nodes included.
    pub adaptive: [u64; 2],
    /// Percentage of hanging nodes.
    pub hanging: f64,
    /// Cells per thread group.
    pub block: usize,
}

const fn line(
    [dim, degree, level, block]: [usize; 4],
    uniform: [u64; 2],
    adaptive: [u64; 2],
    hanging: f64,
) -> PaperRow {
    PaperRow { dim, degree, level, uniform, adaptive, hanging, block }
}

/// Largest meshes of each dimension and degree.
pub const TABLE: [PaperRow; 8] = [
    line([2, 1, 11, 32], [20_971_520, 20_975_617], [18_271_217, 18_572_584], 3.23),
    line([2, 2, 10, 8], [5_242_880, 20_975_617], [4_847_393, 19_992_109], 4.51),
    line([2, 3, 10, 4], [5_242_880, 47_192_065], [4_847_393, 44_680_720], 3.37),
    line([2, 4, 9, 4], [1_310_720, 20_975_617], [1_350_302, 22_356_367], 4.70),
    line([3, 1, 6, 8], [1_835_008, 1_847_617], [1_223_845, 1_522_469], 38.3),
    line([3, 2, 6, 2], [1_835_008, 14_729_857], [1_223_845, 11_564_225], 25.4),
    line([3, 3, 5, 1], [229_376, 6_221_281], [180_964, 5_784_259], 24.8),
    line([3, 4, 5, 1], [229_376, 14_729_857], [180_964, 13_205_632], 19.6),
];

/// Returns the speed-up of the matrix-free product over cuSPARSE on the largest meshes: minimum and maximum over the
/// degrees reported together. `None` for degree 1, where it is slower, and for unreported cases (section 5, figures 4
/// to 7).
pub fn speedup(dim: usize, degree: usize, adaptive: bool) -> Option<[f64; 2]> {
    match (dim, degree, adaptive) {
        (2, 2, false) => Some([1.03, 1.03]),
        (2, 3 | 4, false) => Some([2.3, 3.4]),
        (2, 3 | 4, true) => Some([2.0, 2.6]),
        (3, 2..=4, false) => Some([2.0, 8.2]),
        (3, 2..=4, true) => Some([1.34, 4.6]),
        _ => None,
    }
}

/// Returns the numbers that the paper stores per cell: inverse Jacobian, determinant and coefficient at each point
/// (section 2.1).
///
/// ```text
/// (d² + 2) (p + 1)^d
/// ```
pub fn stored(dim: usize, degree: usize) -> usize {
    (dim * dim + 2) * (degree + 1).pow(dim as u32)
}

/// Returns the number of entries of a cell's matrix, (p + 1)^(2 d) (section 2.1).
pub fn element_matrix(dim: usize, degree: usize) -> usize {
    (degree + 1).pow(2 * dim as u32)
}

/// Returns the ratio of the vectors x and y to the data stored at points, for large meshes (section 4).
///
/// ```text
/// 2 p^d / ((d² + 2) (p + 1)^d)
/// ```
pub fn vectors(dim: usize, degree: usize) -> f64 {
    2.0 * degree.pow(dim as u32) as f64 / stored(dim, degree) as f64
}

/// Returns the memory traffic of a matrix-free product in bytes per degree of freedom, for large meshes: data stored at
/// points, DoF indices, x read and y written.
///
/// ```text
/// (8 (d² + 2) + 4) (p + 1)^d / p^d + 16
/// ```
pub fn free_bytes(dim: usize, degree: usize) -> f64 {
    let indices = 4 * (degree + 1).pow(dim as u32);
    (8 * stored(dim, degree) + indices) as f64 / degree.pow(dim as u32) as f64 + 16.0
}

/// Returns the memory traffic of a product with a matrix in compressed rows: 12 (p + 2)^d + 4 + 16.
pub fn matrix_bytes(dim: usize, degree: usize) -> f64 {
    12.0 * entries(dim, degree, 1, 1.0) + 20.0
}

impl PaperRow {
    /// Returns the row of a dimension and degree; degrees beyond the table use its last.
    pub fn of(dim: usize, degree: usize) -> Option<&'static Self> {
        let mut lines = TABLE.iter().filter(|line| line.dim == dim);
        lines.clone().find(|line| line.degree == degree).or_else(|| lines.next_back())
    }

    /// Returns the number of initial uniform refinements of the adaptive mesh. Refined near the shells, it is about as
    /// large as the uniform mesh of `level`.
    pub fn base(dim: usize, level: usize) -> usize {
        level.saturating_sub(4 - dim)
    }
}
