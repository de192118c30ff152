//! Constraints of host vectors.

use super::affine::{self, ConstraintRows};
use super::oblique::{self, ObliqueConditions};
use super::{ConstrainedRows, PassResult, VectorConstraints};
use crate::algebra::vector::{Precision, Real, Vector};
use crate::device::DeviceError;
use crate::space::constraint::affine::AffineConstraints;
use crate::space::discretisation::Discretisation;
use std::ops::Range;

/// Constraints of host vectors.
pub(in crate::operator) struct HostConstraints {
    /// Degrees of freedom with essential conditions, in runs.
    dofs: Vec<Range<usize>>,
    /// Their values.
    values: Vec<f64>,
    oblique: ObliqueConditions,
    /// Affine constraints, if there are any.
    affine: Option<ConstraintRows>,
}

impl HostConstraints {
    /// Creates the constraints of a discretisation, without affine ones.
    pub(in crate::operator) fn new(on: &Discretisation) -> Self {
        let (mut dofs, mut values) = (Vec::<Range<usize>>::new(), Vec::new());
        for (dof, value) in on.conditions() {
            match dofs.last_mut() {
                Some(run) if run.end == dof => run.end += 1,
                _ => dofs.push(dof..dof + 1),
            }
            values.push(value);
        }
        let oblique = ObliqueConditions(oblique::combinations(on, |dof| dof));
        Self { dofs, values, oblique, affine: None }
    }

    /// Sets the rows of essential conditions.
    pub(in crate::operator) fn set_rows<T: Real>(
        &self,
        rows: ConstrainedRows<'_>,
        y: &mut [T],
    ) -> Result<(), DeviceError> {
        set_rows(self.dofs.iter().cloned(), rows, y)
    }

    /// Returns a copy of a direction with 0 in the constrained degrees of freedom; `None` if it is 0 there, as
    /// residuals, corrections and what Krylov methods form of them are.
    pub(in crate::operator) fn freed(&self, x: &Vector) -> Option<Vector> {
        let zero = match x.precision() {
            Precision::F64 => self.is_zero::<f64>(x),
            Precision::F32 => self.is_zero::<f32>(x),
        };
        (!zero).then(|| {
            let mut free = x.clone();
            self.dofs.iter().cloned().flatten().for_each(|dof| free.set_entry(dof, 0.0));
            free
        })
    }

    fn is_zero<T: Real>(&self, x: &Vector) -> bool {
        let zero = T::from_f64(0.0);
        let is_zero = |run: &Range<usize>, x: &[T]| x[run.clone()].iter().all(|x| *x == zero);
        x.entries::<T>().is_none_or(|x| self.dofs.iter().all(|run| is_zero(run, x)))
    }

    fn distribute_in<T: Real>(&self, u: &mut Vector) -> Result<(), DeviceError> {
        let Some(rows) = &self.affine else { return Ok(()) };
        affine::sum(rows.inhomogeneous(), 0.0, 1.0, entries_mut::<T>(u)?);
        Ok(())
    }

    fn homogenise_in<T: Real>(&self, x: &mut Vector) -> Result<(), DeviceError> {
        let x = entries_mut::<T>(x)?;
        self.oblique.project(x, false);
        if let Some(rows) = &self.affine {
            affine::sum(&rows.homogeneous, 0.0, 0.0, x);
        }
        Ok(())
    }

    fn condense_in<T: Real>(&self, of: PassResult<'_>, y: &mut Vector) -> Result<(), DeviceError> {
        let y = entries_mut::<T>(y)?;
        if let Some(own) = &self.affine {
            affine::sum(&own.transposed, 1.0, 0.0, y);
            let rows = match of {
                PassResult::Residual | PassResult::Functional => ConstrainedRows::Zero,
                PassResult::Action { x, .. } => ConstrainedRows::Identity(x),
            };
            let dependent = own.dependent.iter().map(|&dof| dof as usize);
            set_rows(dependent.map(|dof| dof..dof + 1), rows, y)?;
        }
        match of {
            PassResult::Residual => self.oblique.project(y, false),
            PassResult::Action { x, diagonal: Some(d) } => {
                self.oblique.project_action(y, entries::<T>(d)?, entries::<T>(x)?);
            }
            PassResult::Functional | PassResult::Action { diagonal: None, .. } => {}
        }
        Ok(())
    }
}

/// Sets some rows of a vector.
fn set_rows<T: Real>(
    dofs: impl Iterator<Item = Range<usize>>,
    rows: ConstrainedRows<'_>,
    y: &mut [T],
) -> Result<(), DeviceError> {
    match rows {
        ConstrainedRows::Zero => dofs.for_each(|run| y[run].fill(T::from_f64(0.0))),
        ConstrainedRows::One => dofs.for_each(|run| y[run].fill(T::from_f64(1.0))),
        ConstrainedRows::Identity(x) => {
            let x = entries::<T>(x)?;
            dofs.for_each(|run| y[run.clone()].copy_from_slice(&x[run]));
        }
    }
    Ok(())
}

fn entries<T: Real>(x: &Vector) -> Result<&[T], DeviceError> {
    x.entries::<T>().ok_or(DeviceError::Foreign)
}

fn entries_mut<T: Real>(y: &mut Vector) -> Result<&mut [T], DeviceError> {
    y.entries_mut::<T>().ok_or(DeviceError::Foreign)
}

impl VectorConstraints for HostConstraints {
    fn is_oblique(&self) -> bool {
        !self.oblique.0.dofs.is_empty()
    }

    fn set_affine(&mut self, affine: &AffineConstraints) -> Result<(), DeviceError> {
        self.affine = (!affine.is_empty()).then(|| ConstraintRows::new(affine, |dof| dof));
        Ok(())
    }

    fn set_values(&mut self, values: &[f64]) -> Result<(), DeviceError> {
        let oblique = self.oblique.0.values.as_flattened_mut();
        if values.len() != self.values.len() + oblique.len() {
            return Err(DeviceError::Mismatch { operation: "set conditions" });
        }
        let (own, combined) = values.split_at(self.values.len());
        self.values.copy_from_slice(own);
        oblique.copy_from_slice(combined);
        Ok(())
    }

    fn impose(&self, u: &mut Vector) -> Result<(), DeviceError> {
        let dofs = self.dofs.iter().cloned().flatten();
        dofs.zip(&self.values).for_each(|(dof, &value)| u.set_entry(dof, value));
        match u.precision() {
            Precision::F64 => self.oblique.project(entries_mut::<f64>(u)?, true),
            Precision::F32 => self.oblique.project(entries_mut::<f32>(u)?, true),
        }
        Ok(())
    }

    fn distribute(&self, u: &mut Vector) -> Result<(), DeviceError> {
        match u.precision() {
            Precision::F64 => self.distribute_in::<f64>(u),
            Precision::F32 => self.distribute_in::<f32>(u),
        }
    }

    fn homogenise(&self, x: &mut Vector) -> Result<(), DeviceError> {
        match x.precision() {
            Precision::F64 => self.homogenise_in::<f64>(x),
            Precision::F32 => self.homogenise_in::<f32>(x),
        }
    }

    fn condense(&self, of: PassResult<'_>, y: &mut Vector) -> Result<(), DeviceError> {
        match y.precision() {
            Precision::F64 => self.condense_in::<f64>(of, y),
            Precision::F32 => self.condense_in::<f32>(of, y),
        }
    }

    fn average(&self, diagonal: &mut Vector) -> Result<(), DeviceError> {
        match diagonal.precision() {
            Precision::F64 => self.oblique.average(entries_mut::<f64>(diagonal)?),
            Precision::F32 => self.oblique.average(entries_mut::<f32>(diagonal)?),
        }
        Ok(())
    }
}
