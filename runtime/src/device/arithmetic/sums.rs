//! Asynchronous sums over vectors: group sums on the device, added up on reading.

use super::{Arithmetic, SharedEntries, THREADS};
use crate::device::array::bytes_mut;
use crate::device::{Array, DeviceError};
use std::sync::{Arc, PoisonError};

/// Adds the group sums in the same order as a thread group of the device.
pub(super) fn tree_sum(partials: &[f64]) -> f64 {
    let mut sums = [0.0; THREADS];
    for (k, partial) in partials.iter().enumerate() {
        sums[k % THREADS] += partial;
    }
    let mut width = THREADS / 2;
    while width > 0 {
        for thread in 0..width {
            sums[thread] += sums[thread + width];
        }
        width /= 2;
    }
    sums[0]
}

/// Sums that may still be in progress.
#[derive(Debug)]
pub struct PendingSums {
    pub(super) arithmetic: Arc<Arithmetic>,
    pub(super) partials: Option<Array>,
    pub(super) groups: usize,
    pub(super) count: usize,
    pub(super) curvature: bool,
    /// The reduction over all processes.
    pub(super) shared: Option<Arc<SharedEntries>>,
}

impl Drop for PendingSums {
    fn drop(&mut self) {
        if let Some(partials) = self.partials.take() {
            let mut spare = self.arithmetic.spare.lock().unwrap_or_else(PoisonError::into_inner);
            spare.push(partials);
        }
    }
}

impl PendingSums {
    pub(super) fn partials(&self) -> Result<&Array, DeviceError> {
        self.partials.as_ref().ok_or(DeviceError::Foreign)
    }

    /// Waits for earlier work and returns the sums.
    ///
    /// # Errors
    ///
    /// A driver error, also of earlier work.
    pub fn values(&self) -> Result<SumValues, DeviceError> {
        let mut partials = vec![0.0; self.count * self.groups + usize::from(self.curvature)];
        self.arithmetic.device.read(self.partials()?, 0, bytes_mut(&mut partials))?;
        let sum = |at: usize| tree_sum(&partials[at * self.groups..][..self.groups]);
        let mut sums: Vec<f64> = (0..self.count).map(sum).collect();
        if let Some(shared) = &self.shared {
            shared.total(&self.arithmetic, &mut sums);
        }
        let first = sums[0];
        Ok(SumValues {
            first,
            second: if self.count == 2 { sums[1] } else { first },
            curvature: if self.curvature { partials[self.count * self.groups] } else { 0.0 },
        })
    }
}

/// Values of [`PendingSums`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SumValues {
    /// The first or only sum.
    pub first: f64,
    /// The second sum, if the kernel forms two; otherwise the first.
    pub second: f64,
    /// The product p·q, computed by [`Arithmetic::conjugate`].
    pub curvature: f64,
}
