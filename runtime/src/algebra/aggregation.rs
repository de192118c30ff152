//! Algebraic multigrid by smoothed aggregation: a symmetric positive definite matrix and its near-null vectors → [`Aggregation`], a
//! V-cycle that approximates A⁻¹ (Vaněk, Mandel and Brezina 1996, "Algebraic multigrid by smoothed aggregation for second and
//! fourth order elliptic problems").
//!
//! ```text
//! strong connections → aggregates of nodes → T, orthonormal near-null vectors on each → P = (I − ω/λ D⁻¹A) T → Pᵀ A P → …
//! ```
//!
//! until few unknowns are left, whose matrix is factorised. A row without entries beside its diagonal, as that of an unknown
//! with an essential condition is, belongs to no aggregate. What is made and what a cycle gives does not depend on the number of threads.

mod aggregates;
mod check;
mod cycle;
mod dense;
mod modes;
mod prolongator;
mod sparse;
mod spectrum;
mod strength;
mod tentative;

pub use check::AggregationError;
pub use dense::Dense;
pub use modes::{constants, rigid_body_modes};
pub use sparse::Rectangular;

use crate::algebra::csr::Csr;
use crate::algebra::linear::{LinearOperator, OperatorError};
use crate::algebra::vector::Vector;
use crate::support::laps::Laps;
use crate::support::parallel::*;
use cycle::Work;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use strength::{Graph, Nodes};
use tentative::Tentative;

/// A level with more than this of the unknowns of the one above is none.
const STALLED: f64 = 0.8;
/// Where connections that aggregates follow are weaker, the matrix is nearly its diagonal.
const WEAKEST: f64 = 1e-3;

/// How levels are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// θ of the finest level: how strong connections are that aggregates follow.
    pub strength: f64,
    /// What θ is multiplied by from level to level.
    pub weaker: f64,
    /// Steps of the smoother before a correction, and as many behind it.
    pub steps: usize,
    /// The most unknowns that are factorised.
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

/// A level that is smoothed on.
#[derive(Clone, Debug)]
pub struct Level {
    /// A.
    pub matrix: Csr,
    /// P, from the next coarser level.
    pub prolongator: Rectangular,
    /// Pᵀ.
    pub restrictor: Rectangular,
    /// D⁻¹.
    pub inverse: Vec<f64>,
    /// λ, which the eigenvalues of D⁻¹A hardly exceed.
    pub largest: f64,
}

/// What ends the levels.
#[derive(Clone, Debug)]
pub enum Bottom {
    /// Factors.
    Dense(Dense),
    /// Twice the steps of the smoother, where no connection is strong enough to make fewer unknowns of many: the matrix is nearly
    /// its diagonal.
    Smoothed {
        /// A.
        matrix: Csr,
        /// D⁻¹.
        inverse: Vec<f64>,
        /// λ.
        largest: f64,
    },
}

/// What is known of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Unknowns and entries of each level's matrix, the finest first and the coarsest with them.
    pub levels: Vec<(usize, usize)>,
    /// Bytes of matrices, transfers, factors and vectors.
    pub bytes: usize,
    /// Seconds that making them took.
    pub seconds: f64,
}

impl Figures {
    /// The entries of all levels over those of the finest.
    pub fn operator_complexity(&self) -> f64 {
        self.of_first(|level| level.1)
    }

    /// The unknowns of all levels over those of the finest.
    pub fn grid_complexity(&self) -> f64 {
        self.of_first(|level| level.0)
    }

    fn of_first(&self, of: impl Fn(&(usize, usize)) -> usize) -> f64 {
        let first = self.levels.first().map_or(1, &of).max(1);
        self.levels.iter().map(of).sum::<usize>() as f64 / first as f64
    }
}

/// Levels of matrices as a preconditioner, symmetric and positive definite.
pub struct Aggregation {
    levels: Vec<Level>,
    bottom: Bottom,
    steps: usize,
    figures: Figures,
    work: Mutex<Vec<Work>>,
}

impl Aggregation {
    /// Levels of a matrix whose nodes have `blocks` unknowns each, one after another. The near-null vectors are what A should
    /// nearly take to 0: [`constants`] for diffusion, [`rigid_body_modes`] for elasticity.
    ///
    /// # Errors
    ///
    /// The matrix is not symmetric or its diagonal not positive, it has numbers that are not finite, vectors or settings do not
    /// go with it.
    pub fn new(
        matrix: Csr,
        blocks: usize,
        near_null: &[Vec<f64>],
        settings: &Settings,
    ) -> Result<Self, AggregationError> {
        let start = Instant::now();
        settings.check()?;
        check::check(&matrix, blocks, near_null)?;
        let nodes = Nodes::with(std::iter::repeat_n(blocks, matrix.size() / blocks));
        let (levels, last) = descend(matrix, nodes, near_null.to_vec(), settings)?;
        let mut sizes: Vec<(usize, usize)> =
            levels.iter().map(|level| (level.matrix.size(), level.matrix.values.len())).collect();
        sizes.push((last.size(), last.values.len()));
        let bottom = Bottom::of(last, settings);
        let work: Vec<Work> = sizes.iter().map(|level| Work::new(level.0)).collect();
        let bytes = levels.iter().map(Level::bytes).sum::<usize>()
            + bottom.bytes()
            + work.iter().map(Work::bytes).sum::<usize>();
        let figures = Figures { levels: sizes, bytes, seconds: start.elapsed().as_secs_f64() };
        Ok(Self { levels, bottom, steps: settings.steps, figures, work: Mutex::new(work) })
    }

    /// x = M b, a V-cycle from x = 0.
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

    /// y = A x.
    ///
    /// # Errors
    ///
    /// A matrix so small that its factors are all that is left of it.
    pub fn product(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let matrix = match (self.levels.first(), &self.bottom) {
            (Some(level), _) => &level.matrix,
            (None, Bottom::Smoothed { matrix, .. }) => matrix,
            (None, Bottom::Dense(_)) => return Err(OperatorError::new("there are no levels")),
        };
        let mut product = vec![0.0; matrix.size()];
        matrix.apply(&x.to_vec(), &mut product);
        y.set(&product);
        Ok(())
    }

    /// The levels that are smoothed on, the finest first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// What ends them.
    pub fn bottom(&self) -> &Bottom {
        &self.bottom
    }

    /// Steps of the smoother before a correction, and as many behind it.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Sizes and costs.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }
}

/// Levels, and the matrix that is left.
fn descend(
    matrix: Csr,
    nodes: Nodes,
    near_null: Vec<Vec<f64>>,
    settings: &Settings,
) -> Result<(Vec<Level>, Csr), AggregationError> {
    let mut levels = Vec::new();
    let (mut matrix, mut nodes, mut near_null) = (matrix, nodes, near_null);
    let mut theta = settings.strength;
    while matrix.size() > settings.coarsest {
        let mut laps = Laps::new("a level of a matrix");
        let Some((graph, coarse)) = coarsened(&matrix, &nodes, &near_null, &mut theta) else {
            break;
        };
        laps.tell("aggregates");
        let inverse = inverse_diagonal(&matrix);
        let largest = spectrum::largest(&matrix, &inverse);
        laps.tell("the largest eigenvalue");
        let scalar = nodes.len() == matrix.size() && near_null.len() == 1;
        let filter = scalar.then(|| (&graph, near_null[0].as_slice()));
        let prolongator =
            prolongator::smoothed(&matrix, &coarse.prolongator, (&inverse, largest), filter);
        let restrictor = prolongator.transposed()?;
        laps.tell("transfers");
        let next = sparse::galerkin(&restrictor, &matrix, &prolongator);
        laps.tell("the coarser matrix");
        levels.push(Level { matrix, prolongator, restrictor, inverse, largest });
        (matrix, nodes, near_null) = (next, coarse.nodes, coarse.near_null);
        theta *= settings.weaker;
    }
    Ok((levels, matrix))
}

/// Aggregates by connections stronger than θ, or by weaker ones where those make too few unknowns of it; θ is what was taken.
fn coarsened(
    matrix: &Csr,
    nodes: &Nodes,
    near_null: &[Vec<f64>],
    theta: &mut f64,
) -> Option<(Graph, Tentative)> {
    let free = free(matrix);
    let there: Vec<bool> =
        (0..nodes.len()).map(|node| nodes.unknowns(node).any(|i| free[i])).collect();
    let mut graph = Graph::new(matrix, nodes, *theta);
    loop {
        let (of, count) = aggregates::aggregate(&graph, &there);
        let few = |width: usize| width > 0 && width as f64 <= STALLED * matrix.size() as f64;
        // Each aggregate has one unknown at least, and no more than there are vectors.
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

/// Which unknowns a matrix couples to others.
fn free(matrix: &Csr) -> Vec<bool> {
    let coupled = |i: usize| matrix.row(i).any(|(j, value)| j != i && value != 0.0);
    (0..matrix.size()).into_par_iter().map(coupled).listed()
}

/// D⁻¹; 0 where a coarse matrix has nothing, which takes near-null vectors that depend on each other.
fn inverse_diagonal(matrix: &Csr) -> Vec<f64> {
    let inverse = |i: usize| match check::entry(matrix, i, i) {
        value if value > 0.0 => 1.0 / value,
        _ => 0.0,
    };
    (0..matrix.size()).into_par_iter().map(inverse).listed()
}

impl Level {
    fn bytes(&self) -> usize {
        sparse::bytes(self.matrix.starts.len(), self.matrix.values.len())
            + self.prolongator.bytes()
            + self.restrictor.bytes()
            + self.inverse.len() * size_of::<f64>()
    }
}

impl Bottom {
    fn of(matrix: Csr, settings: &Settings) -> Self {
        if matrix.size() <= settings.coarsest {
            return Self::Dense(Dense::new(&matrix));
        }
        let inverse = inverse_diagonal(&matrix);
        let largest = spectrum::largest(&matrix, &inverse);
        Self::Smoothed { matrix, inverse, largest }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Dense(factors) => factors.bytes(),
            Self::Smoothed { matrix, inverse, .. } => {
                sparse::bytes(matrix.starts.len(), matrix.values.len())
                    + inverse.len() * size_of::<f64>()
            }
        }
    }
}

impl LinearOperator for Aggregation {
    fn size(&self) -> usize {
        self.figures.levels[0].0
    }

    /// Vectors of any precision and place; those that are not in double precision here are copied.
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
