//! Preconditioner of mixed forms of diffusion: a flux u in H(div) and a pressure p in L2.
//!
//! ```text
//! J = [A Bᵀ; B 0]      z_u = diag(A)⁻¹ r_u      z_p = S⁻¹ r_p,   S = B diag(A)⁻¹ Bᵀ
//! ```
//!
//! Degrees of freedom of u are fluxes through the faces of the Gauss-Lobatto grid in each cell. In the basis of p that is
//! dual to integrals over the boxes of that grid, B is c times the incidence matrix C of boxes and faces, and
//! C diag(A)⁻¹ Cᵀ has an entry for each pair of neighbouring boxes: 5 or 7 a row at every degree, whatever the map of the
//! cells. Smoothed aggregation approximates its inverse (W. Pazner, T. Kolev, P. Vassilevski, "Matrix-free high-performance
//! saddle-point solvers for high-order problems in H(div)", 2023, section 4). With the values of p at nodes,
//!
//! ```text
//! S = c² G C diag(A)⁻¹ Cᵀ Gᵀ      G_im = ∫ ℓ_i e_m, cell by cell
//! ```
//!
//! With several processes each has its own boxes: S without the entries between them.

use super::{Approximation, LinearOperator, Multigrid, NonlinearSystem, OperatorError};
use crate::algebra::aggregation::{Aggregation, Settings, constants};
use crate::algebra::sparse::Csr;
use crate::algebra::sparse::products::product;
use crate::algebra::vector::Vector;
use crate::solve::block_jacobi::{MatrixCopy, RemoteMatrix};
use crate::support::timers::in_step;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Copies to the device of a vector; `None` for vectors on the host, or without memory for the copy.
#[derive(Clone, Copy)]
pub struct DeviceCopies {
    /// Copies a matrix.
    pub matrix: MatrixCopy,
    /// Copies levels.
    pub levels: fn(&Aggregation, &Vector) -> Result<Option<Multigrid>, OperatorError>,
    /// Returns a zero vector of a length, in its own order.
    pub zeros: fn(usize, &Vector) -> Result<Option<Vector>, OperatorError>,
}

/// The divergence of fluxes.
pub struct DiscreteDivergence {
    /// The degrees of freedom of the flux.
    pub flux: Range<usize>,
    /// Those of the pressure.
    pub pressure: Range<usize>,
    /// C, with a row for each box and a column for each flux.
    pub incidence: Csr,
    /// G⁻¹, with a row for each box and a column for each value of the pressure.
    pub change: Csr,
    /// G⁻ᵀ.
    pub back: Csr,
    /// c.
    pub factor: f64,
    /// True for given fluxes.
    pub is_given: Vec<bool>,
    /// True if the Jacobian is the same at all states.
    pub is_linear: bool,
}

/// The preconditioner, which needs a state.
pub struct MixedPreconditioner {
    divergence: DiscreteDivergence,
    copies: DeviceCopies,
    at: Option<LinearisedBlocks>,
}

/// The approximation at a state.
struct LinearisedBlocks {
    /// diag(A)⁻¹, and 0 for the pressure.
    inverse: Vector,
    schur: SchurInverse,
    work: Mutex<WorkVectors>,
}

/// Vectors of the pressure, by nodes and by boxes, and one of all fields.
struct WorkVectors {
    of_nodes: Vector,
    of_boxes: Vector,
    solution: Vector,
    all: Option<Vector>,
}

/// The approximation of (C diag(A)⁻¹ Cᵀ)⁻¹.
enum SchurInverse {
    /// On processors.
    Host(Box<Aggregation>),
    /// On a device, with G⁻¹ and G⁻ᵀ.
    Device { levels: Box<Multigrid>, change: RemoteMatrix, back: RemoteMatrix },
}

impl MixedPreconditioner {
    /// Creates the preconditioner; `copies` copy matrices and levels to a device.
    pub fn new(divergence: DiscreteDivergence, copies: DeviceCopies) -> Self {
        Self { divergence, copies, at: None }
    }

    /// Computes a S⁻¹ r_p in the rows of the pressure; others are unchanged.
    fn pressure(
        &self,
        at: &LinearisedBlocks,
        a: f64,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        let DiscreteDivergence { pressure, change, back, factor, .. } = &self.divergence;
        let mut work = at.work.lock().unwrap_or_else(PoisonError::into_inner);
        let WorkVectors { of_nodes, of_boxes, solution, .. } = &mut *work;
        match &at.schur {
            SchurInverse::Host(levels) => {
                let (mut boxes, mut nodes) = (vec![0.0; pressure.len()], r.part(pressure.clone()));
                change.apply(&nodes, &mut boxes);
                levels.apply(&boxes, &mut nodes)?;
                back.apply(&nodes, &mut boxes);
                of_nodes.set(&boxes);
            }
            SchurInverse::Device { levels, change, back } => {
                of_nodes.take_part(1.0, r, pressure.clone());
                change.apply(of_nodes, of_boxes)?;
                levels.apply_part(of_boxes, solution, 0..pressure.len(), 1.0)?;
                back.apply(solution, of_nodes)?;
            }
        }
        z.put_part(a / (factor * factor), of_nodes, pressure.clone());
        Ok(())
    }

    fn at(&self) -> Result<&LinearisedBlocks, OperatorError> {
        self.at.as_ref().ok_or_else(|| OperatorError::new("the preconditioner needs a state"))
    }

    /// Builds C D⁻¹ Cᵀ for the inverse of a diagonal.
    fn schur(&self, inverse: &[f64]) -> Csr {
        let incidence = &self.divergence.incidence;
        let mut scaled = incidence.clone();
        for (value, &column) in scaled.values.iter_mut().zip(&incidence.columns) {
            *value *= inverse[column as usize];
        }
        let mut schur = product(&scaled, &incidence.transposed());
        // With all fluxes through the boundary given, a constant has none: one entry gives it a size.
        let is_free = |i: usize| {
            let (mut sum, mut size) = (0.0, 0.0_f64);
            schur.row(i).for_each(|(_, value)| (sum, size) = (sum + value, size + value.abs()));
            sum.abs() <= 1e-12 * size
        };
        if (0..schur.size()).all(is_free) && schur.size() > 0 {
            let (columns, _) = schur.row_slices(0);
            if let Some(place) = columns.iter().position(|&column| column == 0) {
                schur.values[place] *= 2.0;
            }
        }
        schur
    }
}

impl Approximation for MixedPreconditioner {
    fn name(&self) -> &'static str {
        "diagonal and aggregation"
    }

    fn take_state(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        if self.divergence.is_linear && self.at.is_some() {
            return Ok(Ok(()));
        }
        let mut inverse = u.like();
        system.diagonal(&mut inverse)?;
        let mut numbers = vec![0.0; u.len()];
        let flux = self.divergence.flux.clone();
        let mut is_positive = true;
        for (own, d) in numbers[flux.clone()].iter_mut().zip(inverse.part(flux.clone())) {
            is_positive &= d > 0.0 && d.is_finite();
            *own = 1.0 / d;
        }
        if u.any(!is_positive) {
            return Ok(Err("the mass of the flux is not positive definite".to_owned()));
        }
        inverse.set(&numbers);
        let mut of_free = numbers[flux].to_vec();
        let given = self.divergence.is_given.iter();
        of_free.iter_mut().zip(given).filter(|(_, given)| **given).for_each(|(d, _)| *d = 0.0);
        let schur = in_step("Schur complement", || self.schur(&of_free));
        let near_null = constants(schur.size(), 1, &vec![false; schur.size()]);
        let build = || Aggregation::new(schur, 1, &near_null, &Settings::default());
        let levels = match in_step("aggregation", build) {
            Ok(levels) => levels,
            Err(error) => return Ok(Err(format!("of Schur's complement {error}"))),
        };
        let count = self.divergence.pressure.len();
        let like = (self.copies.zeros)(count, u)?;
        let like = like.unwrap_or_else(|| Vector::zeros(count, u.precision()));
        let DiscreteDivergence { change, back, .. } = &self.divergence;
        let there = [(self.copies.matrix)(change, &like)?, (self.copies.matrix)(back, &like)?];
        let schur = match (there, (self.copies.levels)(&levels, &like)?) {
            ([Some(change), Some(back)], Some(levels)) => {
                SchurInverse::Device { levels: Box::new(levels), change, back }
            }
            _ => SchurInverse::Host(Box::new(levels)),
        };
        let [of_nodes, of_boxes, solution] = [like.like(), like.like(), like];
        let work = Mutex::new(WorkVectors { of_nodes, of_boxes, solution, all: None });
        self.at = Some(LinearisedBlocks { inverse, schur, work });
        Ok(Ok(()))
    }

    fn apply_inverse(
        &self,
        _: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        let at = self.at()?;
        z.product_of(r, &at.inverse);
        self.pressure(at, 1.0, r, z)
    }

    fn apply_unsymmetric_inverse(
        &self,
        j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        let at = self.at()?;
        z.fill(0.0);
        self.pressure(at, -1.0, r, z)?;
        let mut work = at.work.lock().unwrap_or_else(PoisonError::into_inner);
        let left = work.all.get_or_insert_with(|| r.like());
        j.apply(z, left)?;
        left.axpby(1.0, r, -1.0);
        left.multiply(&at.inverse);
        z.axpy(1.0, left);
        Ok(())
    }
}
