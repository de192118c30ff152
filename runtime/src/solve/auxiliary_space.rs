//! Preconditioner of one field of H(curl) or H(div): the sum of two hierarchies.
//!
//! ```text
//! z = V(A + σM) r + G V(Gᵀ A G) Gᵀ r
//! ```
//!
//! A = α curl·curl + β, with V a multigrid cycle and G the discrete derivative of the potential. Smoothing by the diagonal
//! serves what is no derivative of a potential; there σM, which gives the others a size, changes little:
//!
//! ```text
//! σ = min α / L² ≈ min_i (A_ii / K_ii) / L²
//! ```
//!
//! with the diagonal of K = curl·curl and the extent L of the mesh. Iterations hardly depend on σ. The form of the
//! potential has the operator Gᵀ A G, so that no product of matrices is needed. Where β may be 0 in a part of the mesh,
//! the form of a scalar potential has the added term σ grad·grad with σ = 10⁻³ min β: rows of insulators are not 0, and
//! the potential of a conductor inside of one is determined. (R. Hiptmair and J. Xu, "Nodal auxiliary
//! space preconditioning in H(curl) and H(div) spaces", SIAM J. Numer. Anal. 45 (2007): the same with a smoother in the
//! place of the first cycle.)

use super::approximation::{Approximation, MultigridStatistics};
use super::multigrid::{GridTransfer, LevelOperator, Multigrid};
use super::{LinearOperator, NonlinearSystem, OperatorError};
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Factor by which σ may differ from its value at the last state.
const NEAR: f64 = 4.0;

/// The hierarchy of a form with a multiple of the mass, whose factor is the last parameter.
pub struct ShiftedLevels {
    levels: Multigrid,
    /// The diagonal of K, in vectors of the solve.
    unit: Vector,
    /// The ratio of σ to min A_ii / K_ii.
    scale: f64,
    /// The form's parameters, without σ.
    params: Vec<f64>,
    /// σ.
    shift: f64,
}

impl ShiftedLevels {
    /// Creates the hierarchy of A + σM from its levels, the diagonal of K, the ratio of σ to min A_ii / K_ii and the
    /// parameters of A.
    pub fn new(levels: Multigrid, unit: Vector, scale: f64, params: Vec<f64>) -> Self {
        Self { levels, unit, scale, params, shift: 0.0 }
    }

    /// Sets σ by the diagonal of A.
    fn shift_by(&mut self, diagonal: &Vector) -> Result<(), DeviceError> {
        let (of_a, of_k) = (diagonal.to_vec(), self.unit.to_vec());
        let ratios = of_a.into_iter().zip(of_k).filter(|(_, k)| *k > 0.0).map(|(a, k)| a / k);
        let positive = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0);
        let least = -diagonal.largest(-positive.fold(f64::INFINITY, f64::min));
        let shift = if least.is_finite() { least * self.scale } else { self.scale };
        if self.shift < shift / NEAR || self.shift > shift * NEAR {
            self.shift = shift;
            return self.set_params(None);
        }
        Ok(())
    }

    fn set_params(&mut self, params: Option<&[f64]>) -> Result<(), DeviceError> {
        if let Some(params) = params {
            self.params = params.to_vec();
        }
        let all: Vec<f64> = self.params.iter().copied().chain([self.shift]).collect();
        self.levels.set_params(&all)
    }
}

/// Levels of a potential.
pub enum PotentialLevels {
    /// Of a scalar potential, whose form is definite.
    Definite(Box<Multigrid>),
    /// Of another potential, with the operator that has the diagonal of its form.
    Shifted(Box<ShiftedLevels>, Box<dyn LevelOperator>),
}

impl PotentialLevels {
    fn levels(&self) -> &Multigrid {
        match self {
            Self::Definite(levels) => levels,
            Self::Shifted(levels, _) => &levels.levels,
        }
    }
}

/// The potential with its derivative.
pub struct Potential {
    /// Its levels.
    pub levels: PotentialLevels,
    /// G, from the potential to the field.
    pub derivative: Box<dyn GridTransfer>,
    /// Gᵀ r and the potential's correction, in the precision of the solve.
    work: Mutex<[Vector; 2]>,
}

impl Potential {
    /// Creates it with work vectors like `like`.
    pub fn new(levels: PotentialLevels, derivative: Box<dyn GridTransfer>, like: &Vector) -> Self {
        Self { levels, derivative, work: Mutex::new([like.like(), like.like()]) }
    }

    fn take_state(&mut self) -> Result<Result<(), String>, OperatorError> {
        // The form is linear: its derivative is the same at all states.
        let [x, diagonal] = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        x.fill(0.0);
        let all = 0..x.len();
        match &mut self.levels {
            PotentialLevels::Definite(levels) => levels.linearise(x, all),
            PotentialLevels::Shifted(levels, system) => {
                system.linearise(x)?;
                system.diagonal(diagonal)?;
                levels.shift_by(diagonal)?;
                levels.levels.linearise(x, all)
            }
        }
    }

    /// Computes z += G V Gᵀ r.
    fn add_correction(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        let [b, x] = &mut *self.work.lock().unwrap_or_else(PoisonError::into_inner);
        self.derivative.restrict(r, b)?;
        self.levels.levels().apply_part(b, x, 0..b.len(), b.norm())?;
        self.derivative.prolong(x, z)
    }
}

/// The sum of the field's own hierarchy and the one of its potential.
pub struct AuxiliarySpace {
    /// Name of the field.
    name: String,
    own: ShiftedLevels,
    /// `None` where the potential has no term.
    potential: Option<Potential>,
}

impl AuxiliarySpace {
    /// Creates the sum for a field of this name.
    pub fn new(name: String, own: ShiftedLevels, potential: Option<Potential>) -> Self {
        Self { name, own, potential }
    }

    /// Computes z ≈ A⁻¹ r.
    fn apply(&self, r: &Vector, z: &mut Vector) -> Result<(), OperatorError> {
        self.own.levels.apply_part(r, z, 0..r.len(), r.norm())?;
        match &self.potential {
            Some(potential) => potential.add_correction(r, z),
            None => Ok(()),
        }
    }
}

impl Approximation for AuxiliarySpace {
    fn name(&self) -> &'static str {
        "multigrid"
    }

    fn take_state(
        &mut self,
        system: &dyn NonlinearSystem,
        u: &Vector,
    ) -> Result<Result<(), String>, OperatorError> {
        let mut diagonal = u.like();
        system.diagonal(&mut diagonal)?;
        self.own.shift_by(&diagonal)?;
        if let Err(why) = self.own.levels.linearise(u, 0..u.len())? {
            return Ok(Err(why));
        }
        let Some(potential) = &mut self.potential else { return Ok(Ok(())) };
        let taken = potential.take_state()?;
        Ok(taken.map_err(|why| format!("of the potential of `{}` {why}", self.name)))
    }

    fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.own.set_params(Some(params))?;
        match self.potential.as_mut().map(|own| &mut own.levels) {
            None => Ok(()),
            Some(PotentialLevels::Definite(levels)) => levels.set_params(params),
            Some(PotentialLevels::Shifted(levels, system)) => {
                system.set_params(params)?;
                levels.set_params(Some(params))
            }
        }
    }

    fn apply_inverse(
        &self,
        _j: &dyn LinearOperator,
        r: &Vector,
        z: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.apply(r, z)
    }

    fn figures(&self) -> Vec<MultigridStatistics> {
        let named = |levels: &Multigrid, name: String| {
            let figures = levels.figures().into_iter();
            figures.map(move |own| MultigridStatistics { field: Some(name.clone()), ..own })
        };
        let own = named(&self.own.levels, self.name.clone());
        let of_potential = self.potential.iter().flat_map(|potential| {
            named(potential.levels.levels(), format!("potential of {}", self.name))
        });
        own.chain(of_potential).collect()
    }
}

/// The sum of hierarchies for the block of a field among several.
pub struct AuxiliaryBlock {
    sum: AuxiliarySpace,
    /// The operator of the block, which has its diagonal.
    system: Box<dyn LevelOperator>,
    /// r and z of the field, in the precision of the solve.
    work: Mutex<[Vector; 2]>,
}

impl AuxiliaryBlock {
    /// Creates the block from its sum and its operator; `like` is one of the operator's vectors.
    pub fn new(sum: AuxiliarySpace, system: Box<dyn LevelOperator>, like: &Vector) -> Self {
        Self { sum, system, work: Mutex::new([like.like(), like.like()]) }
    }

    /// Linearises the block at the entries `part` of u; the inner error is the reason why the block is unsuited.
    pub(super) fn linearise(
        &mut self,
        u: &Vector,
        part: Range<usize>,
    ) -> Result<Result<(), String>, OperatorError> {
        let [own, _] = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        own.take_part(1.0, u, part);
        self.system.linearise(own)?;
        self.sum.take_state(&*self.system, own)
    }

    pub(super) fn set_params(&mut self, params: &[f64]) -> Result<(), DeviceError> {
        self.system.set_params(params)?;
        self.sum.set_params(params)
    }

    /// Computes the entries `part` of z from those of r.
    pub(super) fn apply_part(
        &self,
        r: &Vector,
        z: &mut Vector,
        part: Range<usize>,
    ) -> Result<(), OperatorError> {
        let [b, x] = &mut *self.work.lock().unwrap_or_else(PoisonError::into_inner);
        b.take_part(1.0, r, part.clone());
        self.sum.apply(b, x)?;
        z.put_part(1.0, x, part);
        Ok(())
    }

    pub(super) fn figures(&self) -> Vec<MultigridStatistics> {
        self.sum.figures()
    }
}
