//! Algebraic multigrid by smoothed aggregation (Vaněk, Mandel and Brezina 1996, "Algebraic multigrid by smoothed
//! aggregation for second and fourth order elliptic problems"). From a symmetric positive definite matrix and its
//! near-null vectors it builds a V-cycle that approximates A⁻¹ ([`Aggregation`]).
//!
//! ```text
//! strong connections → aggregates of nodes → T, orthonormal near-null vectors on each → P = (I − ω/λ D⁻¹A) T → Pᵀ A P → …
//! ```
//!
//! Coarsening ends with a small matrix, which is factorised. A row without off-diagonal entries, such as that of a
//! constrained degree of freedom, belongs to no aggregate. Hierarchy and cycle are independent of the number of
//! threads.

mod aggregates;
mod check;
mod cycle;
mod dense;
mod modes;
mod prolongator;
mod spectrum;
mod strength;
mod tentative;

pub use check::AggregationError;
pub use dense::DenseFactors;
pub use modes::{constants, rigid_body_modes};

use crate::algebra::linear::{LinearOperator, OperatorError};
use crate::algebra::sparse::Csr;
use crate::algebra::sparse::products::product;
use crate::algebra::vector::Vector;
use crate::support::parallel::*;
use crate::support::timers::{in_step, step};
use cycle::WorkVectors;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use strength::{NodeDofs, StrengthGraph};
use tentative::TentativeProlongator;

/// Largest accepted ratio of coarse to fine size.
const STALLED: f64 = 0.8;
/// Strength threshold below which the matrix is nearly diagonal.
const WEAKEST: f64 = 1e-3;

/// Settings of a hierarchy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Strength threshold θ of the finest level.
    pub strength: f64,
    /// Factor of θ from level to level.
    pub weaker: f64,
    /// Number of pre-smoothing steps, equal to that of post-smoothing steps.
    pub steps: usize,
    /// Maximum size of the factorised matrix.
    pub coarsest: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { strength: 0.08, weaker: 0.5, steps: 3, coarsest: 600 }
    }
}

impl Settings {
    fn check(&self) -> Result<(), AggregationError> {
        let good = [
            ("strength", (0.0..1.0).contains(&self.strength)),
            ("weaker", (0.0..=1.0).contains(&self.weaker)),
            ("steps", self.steps > 0),
            ("coarsest", (1..=10_000).contains(&self.coarsest)),
        ];
        match good.iter().find(|(_, good)| !good) {
            Some(&(setting, _)) => Err(AggregationError::Setting { setting }),
            None => Ok(()),
        }
    }
}

/// A level with a smoother.
#[derive(Clone, Debug)]
pub struct AggregationLevel {
    /// A.
    pub matrix: Csr,
    /// P, from the next coarser level.
    pub prolongator: Csr,
    /// Pᵀ.
    pub restrictor: Csr,
    /// D⁻¹.
    pub inverse: Vec<f64>,
    /// λ, an approximate upper bound of the eigenvalues of D⁻¹A.
    pub largest: f64,
}

/// Coarse-grid solver.
#[derive(Clone, Debug)]
pub enum CoarsestSolver {
    /// A dense factorisation.
    Dense(DenseFactors),
    /// Twice the smoothing steps, if no connections are strong enough for further coarsening: the matrix is nearly
    /// diagonal.
    Smoothed {
        /// A.
        matrix: Csr,
        /// D⁻¹.
        inverse: Vec<f64>,
        /// λ.
        largest: f64,
    },
}

/// Statistics of a hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregationStatistics {
    /// Size and number of entries of each level's matrix, finest first, coarsest included.
    pub levels: Vec<(usize, usize)>,
    /// Bytes of matrices, transfers, factors and vectors.
    pub bytes: usize,
    /// Set-up time in seconds.
    pub seconds: f64,
}

impl AggregationStatistics {
    /// Returns the operator complexity: the entries of all levels relative to the finest.
    pub fn operator_complexity(&self) -> f64 {
        self.of_first(|level| level.1)
    }

    /// Returns the grid complexity: the sizes of all levels relative to the finest.
    pub fn grid_complexity(&self) -> f64 {
        self.of_first(|level| level.0)
    }

    fn of_first(&self, of: impl Fn(&(usize, usize)) -> usize) -> f64 {
        let first = self.levels.first().map_or(1, &of).max(1);
        self.levels.iter().map(of).sum::<usize>() as f64 / first as f64
    }
}

/// Aggregation multigrid as a symmetric positive definite preconditioner.
pub struct Aggregation {
    levels: Vec<AggregationLevel>,
    bottom: CoarsestSolver,
    steps: usize,
    figures: AggregationStatistics,
    work: Mutex<Vec<WorkVectors>>,
}

impl Aggregation {
    /// Builds the hierarchy of a matrix with `blocks` consecutive degrees of freedom per node. Near-null vectors are
    /// nearly in the kernel of A: [`constants`] for diffusion, [`rigid_body_modes`] for elasticity.
    ///
    /// # Errors
    ///
    /// An unsymmetric matrix, a diagonal that is not positive, entries that are not finite, vectors or settings that do
    /// not fit.
    pub fn new(
        matrix: Csr,
        blocks: usize,
        near_null: &[Vec<f64>],
        settings: &Settings,
    ) -> Result<Self, AggregationError> {
        let start = Instant::now();
        settings.check()?;
        check::check(&matrix, blocks, near_null)?;
        let nodes = NodeDofs::with(std::iter::repeat_n(blocks, matrix.size() / blocks));
        let (levels, last) = descend(matrix, nodes, near_null.to_vec(), settings)?;
        let mut sizes: Vec<(usize, usize)> =
            levels.iter().map(|level| (level.matrix.size(), level.matrix.values.len())).collect();
        sizes.push((last.size(), last.values.len()));
        let bottom = CoarsestSolver::of(last, settings);
        let work: Vec<WorkVectors> = sizes.iter().map(|level| WorkVectors::new(level.0)).collect();
        let bytes = levels.iter().map(AggregationLevel::bytes).sum::<usize>()
            + bottom.bytes()
            + work.iter().map(WorkVectors::bytes).sum::<usize>();
        let figures =
            AggregationStatistics { levels: sizes, bytes, seconds: start.elapsed().as_secs_f64() };
        Ok(Self { levels, bottom, steps: settings.steps, figures, work: Mutex::new(work) })
    }

    /// Applies a V-cycle: x = M b, from x = 0.
    ///
    /// # Errors
    ///
    /// Vectors of another length.
    pub fn apply(&self, b: &[f64], x: &mut [f64]) -> Result<(), OperatorError> {
        let n = self.figures.levels[0].0;
        if b.len() != n || x.len() != n {
            let (b, x) = (b.len(), x.len());
            let message = format!("levels of {n} unknowns take no vectors of {b} and {x}");
            return Err(OperatorError::new(message));
        }
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        cycle::cycle(self, &mut work, b, x);
        Ok(())
    }

    /// Computes y = A x.
    ///
    /// # Errors
    ///
    /// A matrix of which only the factors are stored.
    pub fn product(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let matrix = match (self.levels.first(), &self.bottom) {
            (Some(level), _) => &level.matrix,
            (None, CoarsestSolver::Smoothed { matrix, .. }) => matrix,
            (None, CoarsestSolver::Dense(_)) => {
                return Err(OperatorError::new("there are no levels"));
            }
        };
        let mut product = vec![0.0; matrix.size()];
        matrix.apply(&x.to_vec(), &mut product);
        y.set(&product);
        Ok(())
    }

    /// Returns the smoothed levels, finest first.
    pub fn levels(&self) -> &[AggregationLevel] {
        &self.levels
    }

    /// Returns the coarse-grid solver.
    pub fn bottom(&self) -> &CoarsestSolver {
        &self.bottom
    }

    /// Returns the number of pre-smoothing steps, equal to that of post-smoothing steps.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Returns the statistics.
    pub fn figures(&self) -> &AggregationStatistics {
        &self.figures
    }
}

/// Builds the levels; returns the coarsest matrix as well.
fn descend(
    matrix: Csr,
    nodes: NodeDofs,
    near_null: Vec<Vec<f64>>,
    settings: &Settings,
) -> Result<(Vec<AggregationLevel>, Csr), AggregationError> {
    let mut levels = Vec::new();
    let (mut matrix, mut nodes, mut near_null) = (matrix, nodes, near_null);
    let mut theta = settings.strength;
    while matrix.size() > settings.coarsest {
        let coarser = || coarsened(&matrix, &nodes, &near_null, &mut theta);
        let Some((graph, coarse)) = in_step("aggregates", coarser) else { break };
        let inverse = inverse_diagonal(&matrix);
        let largest = in_step("eigenvalue bounds", || spectrum::largest(&matrix, &inverse));
        let linking = step("transfers");
        let scalar = nodes.len() == matrix.size() && near_null.len() == 1;
        let filter = scalar.then(|| (&graph, near_null[0].as_slice()));
        let prolongator =
            prolongator::smoothed(&matrix, &coarse.prolongator, (&inverse, largest), filter);
        let restrictor = {
            check::narrow(prolongator.size())?;
            prolongator.transposed()
        };
        drop(linking);
        let product_of = || product(&restrictor, &product(&matrix, &prolongator));
        let next = in_step("coarser matrix", product_of);
        levels.push(AggregationLevel { matrix, prolongator, restrictor, inverse, largest });
        (matrix, nodes, near_null) = (next, coarse.nodes, coarse.near_null);
        theta *= settings.weaker;
    }
    Ok((levels, matrix))
}

/// Aggregates along connections stronger than θ, which is lowered while coarsening is too slow. On return θ is the
/// threshold used.
fn coarsened(
    matrix: &Csr,
    nodes: &NodeDofs,
    near_null: &[Vec<f64>],
    theta: &mut f64,
) -> Option<(StrengthGraph, TentativeProlongator)> {
    let free = free(matrix);
    let present: Vec<bool> =
        (0..nodes.len()).map(|node| nodes.unknowns(node).any(|i| free[i])).collect();
    let mut graph = StrengthGraph::new(matrix, nodes, *theta);
    loop {
        let (of, count) = aggregates::aggregate(&graph, &present);
        let few = |width: usize| width > 0 && width as f64 <= STALLED * matrix.size() as f64;
        // Each aggregate yields at least one DoF, and at most one per near-null vector.
        if few(count) {
            let coarse = tentative::tentative(nodes, (&of, count), &free, near_null);
            if few(coarse.prolongator.width) {
                return Some((graph, coarse));
            }
        }
        if *theta < WEAKEST {
            return None;
        }
        *theta *= 0.5;
        graph.bound = *theta * *theta;
    }
}

/// Returns the mask of rows with off-diagonal entries.
fn free(matrix: &Csr) -> Vec<bool> {
    let coupled = |i: usize| matrix.row(i).any(|(j, value)| j != i && value != 0.0);
    (0..matrix.size()).into_par_iter().map(coupled).listed()
}

/// Returns D⁻¹; 0 for empty coarse rows, which linearly dependent near-null vectors cause.
fn inverse_diagonal(matrix: &Csr) -> Vec<f64> {
    let inverse = |i: usize| match check::entry(matrix, i, i) {
        value if value > 0.0 => 1.0 / value,
        _ => 0.0,
    };
    (0..matrix.size()).into_par_iter().map(inverse).listed()
}

impl AggregationLevel {
    fn bytes(&self) -> usize {
        self.matrix.bytes()
            + self.prolongator.bytes()
            + self.restrictor.bytes()
            + self.inverse.len() * size_of::<f64>()
    }
}

impl CoarsestSolver {
    fn of(matrix: Csr, settings: &Settings) -> Self {
        if matrix.size() <= settings.coarsest {
            return Self::Dense(DenseFactors::new(&matrix));
        }
        let inverse = inverse_diagonal(&matrix);
        let largest = spectrum::largest(&matrix, &inverse);
        Self::Smoothed { matrix, inverse, largest }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Dense(factors) => factors.bytes(),
            Self::Smoothed { matrix, inverse, .. } => {
                matrix.bytes() + inverse.len() * size_of::<f64>()
            }
        }
    }
}

impl LinearOperator for Aggregation {
    fn size(&self) -> usize {
        self.figures.levels[0].0
    }

    /// Applies the cycle to vectors of any precision and location; all but host vectors in double precision are copied.
    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        if let (Some(b), Some(x)) = (x.entries::<f64>(), y.entries_mut::<f64>()) {
            return Self::apply(self, b, x);
        }
        let (b, mut z) = (x.to_vec(), vec![0.0; y.len()]);
        Self::apply(self, &b, &mut z)?;
        y.set(&z);
        Ok(())
    }
}
