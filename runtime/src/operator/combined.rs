//! Operators whose unknowns have conditions in common: on combinations of components ([`super::oblique`]), and on any
//! unknowns ([`super::affine`]). Kernels do not know of them; vectors are made what they are to be before and behind.

use super::engine::{Affine, Oblique, Rows};
use super::{Operator, affine};
use crate::algebra::coupling::Coupling;
use crate::algebra::vector::Vector;
use crate::device::DeviceError;
use crate::solve::{LinearOperator, OperatorError};
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use kernels_gen::plan::Task;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What an operator keeps where combinations of components have conditions ([`super::oblique`]), or unknowns are given by others
/// ([`super::affine`]).
pub(super) struct Combined {
    pub(super) is_oblique: bool,
    pub(super) is_affine: bool,
    /// D of the former at the last linearisation.
    pub(super) diagonal: Option<Vector>,
    /// A vector that fulfils them.
    pub(super) held: Mutex<Vector>,
    /// The columns that the diagonal takes with the latter.
    pub(super) columns: OnceLock<Coupling>,
}

/// An operator without its affine constraints.
pub(super) struct WithoutAffine<'a>(pub(super) &'a Operator);

impl LinearOperator for WithoutAffine<'_> {
    fn size(&self) -> usize {
        self.0.n()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.0.act(x, Rows::Of(x), y)
    }
}

impl Operator {
    pub(super) fn combine(&self) -> Option<Combined> {
        let (is_oblique, is_affine) = (self.engine.is_oblique(), !self.blocks.on.affine.is_empty());
        (is_oblique || is_affine).then(|| Combined {
            is_oblique,
            is_affine,
            diagonal: is_oblique.then(|| self.vector()),
            held: Mutex::new(self.vector()),
            columns: OnceLock::new(),
        })
    }

    /// Takes affine constraints in the place of those before. Unknowns that are given stay in vectors; what they have there
    /// in a state or a direction is not read. Gives the discretisation with them.
    ///
    /// # Errors
    ///
    /// A device that fails.
    pub fn constrain(
        &mut self,
        affine: AffineConstraints,
    ) -> Result<Arc<Discretisation>, DeviceError> {
        self.engine.constrain(&affine)?;
        let affine = Arc::new(affine);
        self.blocks.on = Arc::new(Discretisation { affine, ..(*self.blocks.on).clone() });
        self.combined = self.combine();
        self.constants = self.find_constants();
        Ok(Arc::clone(&self.blocks.on))
    }

    /// The vector that fulfils what combinations of unknowns are to fulfil, from one that does not; `values` says whether it
    /// is a state, and not a direction.
    pub(super) fn held<'a>(
        &self,
        combined: &'a Combined,
        x: &Vector,
        values: bool,
    ) -> Result<MutexGuard<'a, Vector>, OperatorError> {
        self.fits(x)?;
        let mut held = combined.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.copy_from(x);
        if combined.is_oblique && !values {
            self.engine.hold(Oblique::Nothing, &mut held)?;
        }
        if combined.is_affine {
            let what = if values { Affine::Values } else { Affine::Direction };
            self.engine.close(what, &mut held)?;
        }
        Ok(held)
    }

    /// The diagonal with all that combinations of unknowns make of it.
    pub(super) fn closed_diagonal(
        &self,
        combined: &Combined,
        diagonal: &mut Vector,
    ) -> Result<(), OperatorError> {
        self.pass(Task::Diagonal, self.linearised(), Rows::One, diagonal)?;
        if combined.is_affine {
            let on = &self.blocks.on;
            let columns = combined.columns.get_or_init(|| affine::columns(on, self.symmetric));
            let columns = columns.matrix(&WithoutAffine(self), diagonal)?;
            let mut entries = diagonal.to_vec();
            affine::close_diagonal(&on.affine, &columns, self.symmetric, &mut entries);
            diagonal.set(&entries);
        }
        if combined.is_oblique {
            self.engine.hold(Oblique::Even, diagonal)?;
        }
        Ok(())
    }

    /// Gives the constrained unknowns of a rate these values, in the order of [`Self::set_conditions`]; they replace those of the
    /// conditions. Unknowns that others give follow, without the constants of their constraints.
    ///
    /// # Errors
    ///
    /// A device that fails, a vector of another place.
    pub fn impose_rate(&mut self, values: &[f64], rate: &mut Vector) -> Result<(), OperatorError> {
        self.fits(rate)?;
        self.engine.set_conditions(values)?;
        self.engine.impose(rate)?;
        if !self.blocks.on.affine.is_empty() {
            let mut constants = rate.like();
            self.engine.close(Affine::Values, &mut constants)?;
            self.engine.close(Affine::Values, rate)?;
            rate.axpy(-1.0, &constants);
        }
        rate.agree();
        Ok(())
    }
}
