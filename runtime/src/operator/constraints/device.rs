//! Constraints of device vectors.

use super::affine::ConstraintRows;
use super::{ConstrainedRows, PassResult, VectorConstraints, oblique};
use crate::algebra::vector::Vector;
use crate::device::{
    Arithmetic, Array, DeviceCombinations, DeviceError, DeviceLists, EntryLists, EntrySelection,
};
use crate::operator::memory::{device_array, device_array_mut};
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use std::sync::Arc;

/// Constraints of device vectors.
pub(in crate::operator) struct DeviceConstraints {
    arithmetic: Arc<Arithmetic>,
    /// Length of vectors, padding included.
    len: usize,
    /// Degrees of freedom with essential conditions, and their values.
    essential: EntrySelection,
    /// Their entries of a direction, during a pass.
    saved: Array,
    oblique: DeviceCombinations,
    /// Affine constraints, if there are any.
    affine: Option<DeviceRows>,
}

/// Affine constraints: [`ConstraintRows`] on a device.
struct DeviceRows {
    homogeneous: DeviceLists,
    inhomogeneous: Option<DeviceLists>,
    transposed: DeviceLists,
    dependent: EntrySelection,
}

impl DeviceRows {
    fn new(on: &Arithmetic, len: usize, rows: &ConstraintRows) -> Result<Self, DeviceError> {
        let lists = |lists: &EntryLists| DeviceLists::new(on, len, lists);
        let dependent = rows.dependent.iter().map(|&position| (position as usize, 0.0));
        Ok(Self {
            homogeneous: lists(&rows.homogeneous)?,
            inhomogeneous: rows.with_fixed.as_ref().map(lists).transpose()?,
            transposed: lists(&rows.transposed)?,
            dependent: EntrySelection::new(on, len, dependent)?,
        })
    }
}

impl DeviceConstraints {
    /// Creates the constraints of a discretisation, without affine ones.
    pub(in crate::operator) fn new(
        arithmetic: &Arc<Arithmetic>,
        on: &Discretisation,
    ) -> Result<Self, DeviceError> {
        let layout = arithmetic.layout();
        let len = layout.len(on.n_dofs());
        let placed = |(dof, value): (usize, f64)| (layout.place(dof), value);
        let essential = EntrySelection::new(arithmetic, len, on.conditions().map(placed))?;
        let oblique = oblique::combinations(on, |dof| layout.place(dof));
        Ok(Self {
            len,
            saved: arithmetic.zeros(essential.len())?,
            essential,
            oblique: DeviceCombinations::new(arithmetic, len, &oblique)?,
            affine: None,
            arithmetic: Arc::clone(arithmetic),
        })
    }

    /// Prepares a pass: sets the first `added` entries of the result to 0, and a direction in constrained degrees of
    /// freedom.
    pub(in crate::operator) fn begin(
        &self,
        direction: Option<&Vector>,
        y: &mut Array,
        added: Option<usize>,
    ) -> Result<(), DeviceError> {
        let added = added.unwrap_or(y.len());
        match direction.filter(|_| !self.essential.is_empty()) {
            Some(x) => {
                let x = (device_array(x)?, &self.saved);
                self.essential.set_aside(&self.arithmetic, x, y, added)
            }
            // By a kernel: the driver's fill may take twice as long (NVIDIA's OpenCL).
            None => self.arithmetic.clear(y, added),
        }
    }

    /// Completes a pass: sets the rows of essential conditions, and restores the direction. A direction other than that
    /// of identity rows is a work vector, which is not restored.
    pub(in crate::operator) fn complete(
        &self,
        rows: ConstrainedRows<'_>,
        direction: Option<&Vector>,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        let (on, own) = (&self.arithmetic, &self.essential);
        match rows {
            ConstrainedRows::Zero => own.fill(on, y, 0.0),
            ConstrainedRows::One => own.fill(on, y, 1.0),
            ConstrainedRows::Identity(x) => {
                let same = direction.is_some_and(|direction| std::ptr::eq(direction, x));
                let x = device_array(x)?;
                if same { own.put_back(on, (x, &self.saved), y) } else { own.copy(on, x, y) }
            }
        }
    }
}

impl VectorConstraints for DeviceConstraints {
    fn is_oblique(&self) -> bool {
        !self.oblique.is_empty()
    }

    fn set_affine(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError> {
        self.affine = match affine.is_empty() {
            true => None,
            false => {
                let layout = self.arithmetic.layout();
                let rows = ConstraintRows::new(affine, |dof| layout.place(dof));
                Some(DeviceRows::new(&self.arithmetic, self.len, &rows)?)
            }
        };
        Ok(())
    }

    fn set_values(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        let count = values.len().saturating_sub(self.oblique.n_values());
        let (own, combined) = values.split_at(count);
        self.essential.set(&self.arithmetic, own)?;
        self.oblique.set(&self.arithmetic, combined)
    }

    fn impose(&self, u: &mut Vector) -> Result<(), DeviceError> {
        let u = device_array_mut(u)?;
        self.essential.put(&self.arithmetic, u)?;
        self.oblique.project(&self.arithmetic, u, true)
    }

    fn distribute(&self, u: &mut Vector) -> Result<(), DeviceError> {
        let Some(rows) = &self.affine else { return Ok(()) };
        let lists = rows.inhomogeneous.as_ref().unwrap_or(&rows.homogeneous);
        lists.sum(&self.arithmetic, 0.0, 1.0, device_array_mut(u)?)
    }

    fn homogenise(&self, x: &mut Vector) -> Result<(), DeviceError> {
        let x = device_array_mut(x)?;
        self.oblique.project(&self.arithmetic, x, false)?;
        match &self.affine {
            Some(rows) => rows.homogeneous.sum(&self.arithmetic, 0.0, 0.0, x),
            None => Ok(()),
        }
    }

    fn condense(&self, of: PassResult<'_>, y: &mut Vector) -> Result<(), DeviceError> {
        let (on, y) = (&*self.arithmetic, device_array_mut(y)?);
        if let Some(rows) = &self.affine {
            rows.transposed.sum(on, 1.0, 0.0, y)?;
            match of {
                PassResult::Residual | PassResult::Functional => rows.dependent.fill(on, y, 0.0)?,
                PassResult::Action { x, .. } => rows.dependent.copy(on, device_array(x)?, y)?,
            }
        }
        match of {
            PassResult::Residual => self.oblique.project(on, y, false),
            PassResult::Action { x, diagonal: Some(d) } => {
                self.oblique.project_action(on, device_array(d)?, device_array(x)?, y)
            }
            PassResult::Functional | PassResult::Action { diagonal: None, .. } => Ok(()),
        }
    }

    fn average(&self, diagonal: &mut Vector) -> Result<(), DeviceError> {
        self.oblique.average(&self.arithmetic, device_array_mut(diagonal)?)
    }
}
