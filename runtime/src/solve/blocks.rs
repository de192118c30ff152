//! Block-diagonal preconditioner of several fields.
//!
//! ```text
//! z_u ≈ J_uu⁻¹ r_u                 a multigrid cycle, or the sum of two, for each field with a diagonal block
//! z_p ≈ S⁻¹ r_p,  S = mass         a few Chebyshev steps, for the fields without one
//! ```
//!
//! Methods that allow an unsymmetric preconditioner use the blocks above the diagonal as well,
//!
//! ```text
//! z_p ≈ −S⁻¹ r_p,   z_u ≈ J_uu⁻¹ (r_u − J_up z_p)
//! ```
//!
//! With J = [A Bᵀ; B 0] and S = B A⁻¹ Bᵀ, the eigenvalues of the preconditioned operator are 1 and (1 ± √5)/2 (Murphy,
//! Golub and Wathen 2000). MINRES then needs a few iterations. With approximations of A⁻¹ and S⁻¹ the eigenvalues are
//! close to these, and the iteration count is independent of the mesh. Both blocks are symmetric and positive definite
//! if the form's are.

use super::approximation::{Approximation, MultigridStatistics};
use super::auxiliary_space::AuxiliaryBlock;
use super::multigrid::{LevelOperator, Multigrid, largest};
use super::{LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::support::timers::in_step;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Error reduction of the Chebyshev steps for a mass: below it, the iteration count of the Stokes equations on a cube
/// does not fall further.
const LEFT: f64 = 0.1;
/// Safety factor of the largest eigenvalue.
const RAISED: f64 = 1.1;

/// Approximate inverse of a diagonal block.
pub enum FieldInverse {
    /// A multigrid hierarchy.
    Levels(Box<Multigrid>),
    /// The sum of two, of a field in H(curl) or H(div).
    Sum(Box<AuxiliaryBlock>),
}

impl FieldInverse {
    fn linearise(
        &mut self,
        u: &Vector,
        part: Range<usize>,
    ) -> Result<Result<(), String>, OperatorError> {
        match self {
            Self::Levels(levels) => levels.linearise(u, part),
            Self::Sum(sum) => sum.linearise(u, part),
        }
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        match self {
            Self::Levels(levels) => levels.set_params(params),
            Self::Sum(sum) => sum.set_params(params),
        }
    }

    /// Computes the entries `part` of z; `norm` is the norm of all entries of r.
    fn apply_part(
        &self,
        r: &Vector,
        z: &mut Vector,
        part: Range<usize>,
        norm: f64,
    ) -> Result<(), OperatorError> {
        match self {
            Self::Levels(levels) => levels.apply_part(r, z, part, norm),
            Self::Sum(sum) => sum.apply_part(r, z, part),
        }
    }

    fn figures(&self, name: &str) -> Vec<MultigridStatistics> {
        match self {
            Self::Levels(levels) => {
                let figures = levels.figures().into_iter();
                figures
                    .map(|own| MultigridStatistics { field: Some(name.to_owned()), ..own })
                    .collect()
            }
            Self::Sum(sum) => sum.figures(),
        }
    }
}

/// Multigrid of one field, or of several with the same block.
pub struct FieldBlock {
    /// The name of the first.
    pub name: String,
    /// Ranges of their degrees of freedom.
    pub parts: Vec<Range<usize>>,
    /// The inverse of the block.
    pub inverse: FieldInverse,
}

/// Mass matrix of a field without a diagonal block, on vectors of this field or of all fields; its other rows are 0.
pub struct SchurMass {
    system: Box<dyn LevelOperator>,
    /// Range of the field's degrees of freedom.
    part: Range<usize>,
    /// D⁻¹; 0 in rows outside the mass.
    inverse: Vector,
    /// Bounds of the eigenvalues of D⁻¹ S.
    range: [f64; 2],
    /// Ratio of the smaller bound to the larger one.
    spread: f64,
    /// Number of Chebyshev steps.
    steps: usize,
    work: Mutex<WorkVectors>,
}

/// Returns the number of Chebyshev steps that reduce the error to [`LEFT`], from the bound 2 ((√κ − 1) / (√κ + 1))ⁿ.
fn steps(condition: f64) -> usize {
    let root = condition.max(1.0).sqrt();
    let rate = (root - 1.0) / (root + 1.0);
    if rate > 0.0 { ((LEFT / 2.0).ln() / rate.ln()).ceil().max(1.0) as usize } else { 1 }
}

/// Work vectors, in the layout of the mass operator.
struct WorkVectors {
    b: Vector,
    x: Vector,
    r: Vector,
    d: Vector,
    q: Vector,
}

impl SchurMass {
    /// Creates the solver of an operator that is 0 outside the mass of the field `part`; `like` is any of its vectors, and
    /// `condition` bounds the condition number of D⁻¹ S.
    pub fn new(
        system: Box<dyn LevelOperator>,
        like: &Vector,
        part: Range<usize>,
        condition: f64,
    ) -> Self {
        let zeros = || like.like();
        let work = WorkVectors { b: zeros(), x: zeros(), r: zeros(), d: zeros(), q: zeros() };
        let work = Mutex::new(work);
        let (inverse, range, spread) = (zeros(), [1.0; 2], 1.0 / condition.max(1.0));
        Self { system, part, inverse, range, spread, steps: steps(condition), work }
    }

    /// Returns whether its vectors have the entries of its field only.
    fn is_of_field(&self) -> bool {
        self.inverse.len() == self.part.len()
    }

    fn take_state(&mut self, u: &Vector) -> Result<bool, OperatorError> {
        let own = self.is_of_field();
        let WorkVectors { b, x, r, d, q } =
            self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        match own {
            true => x.take_part(1.0, u, self.part.clone()),
            false => x.convert_from(u),
        }
        self.system.linearise(x)?;
        self.system.diagonal(&mut self.inverse)?;
        self.inverse.invert();
        let found = largest(self.system.jacobian(), &self.inverse, [b, r, d, q], None)?;
        let most = RAISED * found.unwrap_or(1.0);
        self.range = [self.spread * most, most];
        Ok(found.is_some())
    }

    /// Computes z_p ≈ a S⁻¹ r_p; other rows of z are unchanged.
    fn solve(&self, a: f64, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let WorkVectors { b, x, r: left, d, q } = &mut *work;
        match self.is_of_field() {
            true => b.take_part(1.0, r, self.part.clone()),
            false => b.convert_from(r),
        }
        let [least, most] = self.range;
        let (middle, half) = (0.5 * (most + least), 0.5 * (most - least));
        x.chebyshev_first(1.0 / middle, d, b, &self.inverse);
        let sigma = middle / half;
        let mut rho = 1.0 / sigma;
        for step in 1..self.steps {
            self.system.jacobian().apply(d, q)?;
            let next = 1.0 / (2.0 * sigma - rho);
            let factors = (next * rho, 2.0 * next / half);
            let from = (step == 1).then_some(&*b);
            x.chebyshev_step(factors, d, left, from, q, &self.inverse);
            rho = next;
        }
        match self.is_of_field() {
            true => z.put_part(a, x, self.part.clone()),
            false => {
                let mut own = z.like();
                own.convert_from(x);
                z.axpy(a, &own.restricted_to(self.part.clone()));
            }
        }
        Ok(())
    }
}

/// Block preconditioner of all fields.
pub struct BlockPreconditioner {
    blocks: Vec<FieldBlock>,
    masses: Vec<SchurMass>,
    /// Work vector of the upper-triangular update; allocated on first use.
    work: Mutex<Option<Vector>>,
}

impl BlockPreconditioner {
    /// Creates the preconditioner from blocks and masses.
    pub fn new(blocks: Vec<FieldBlock>, masses: Vec<SchurMass>) -> Self {
        Self { blocks, masses, work: Mutex::default() }
    }

    /// Computes a z_p in the rows of masses, and 0 in others.
    fn masses(&self, a: f64, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        z.fill(0.0);
        self.masses.iter().try_for_each(|mass| mass.solve(a, r, z))
    }

    /// Computes z_u in the rows of blocks.
    fn blocks(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let norm = r.norm();
        self.blocks.iter().try_for_each(|block| {
            let mut parts = block.parts.iter();
            parts.try_for_each(|part| block.inverse.apply_part(r, z, part.clone(), norm))
        })
    }
}

impl Approximation for BlockPreconditioner {
    fn name(&self) -> &'static str {
        "multigrid"
    }

    fn take_state(
        &mut self,
        _system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        for FieldBlock { name, parts, inverse } in &mut self.blocks {
            if let Err(why) = inverse.linearise(u, parts[0].clone())? {
                return Ok(Err(format!("of `{name}` {why}")));
            }
        }
        for mass in &mut self.masses {
            if !in_step("eigenvalue bounds", || mass.take_state(u))? {
                return Ok(Err(
                    "the mass of Schur's complement is not positive definite".to_owned()
                ));
            }
        }
        Ok(Ok(()))
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.blocks.iter_mut().try_for_each(|block| block.inverse.set_params(params))?;
        self.masses.iter_mut().try_for_each(|mass| mass.system.set_params(params))
    }

    fn apply_inverse(
        &self,
        _j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.masses(1.0, r, z)?;
        self.blocks(r, z)
    }

    fn apply_unsymmetric_inverse(
        &self,
        j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        if self.masses.is_empty() {
            return self.apply_inverse(j, r, z);
        }
        self.masses(-1.0, r, z)?;
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let left = work.get_or_insert_with(|| r.like());
        j.apply(z, left)?;
        left.axpby(1.0, r, -1.0);
        self.blocks(left, z)
    }

    fn figures(&self) -> Vec<MultigridStatistics> {
        self.blocks.iter().flat_map(|block| block.inverse.figures(&block.name)).collect()
    }
}
