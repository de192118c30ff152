//! Sums over vectors that a device forms while the host goes on: those of groups, which are added up where they are read.

use super::{Arithmetic, Joint, THREADS};
use crate::device::interface::bytes_mut;
use crate::device::{Array, DeviceError};
use std::sync::{Arc, PoisonError};

/// Adds up the sums of the groups in the order in which a group of the device would.
fn add_up(partials: &[f64]) -> f64 {
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

/// Sums that may still be on their way.
#[derive(Debug)]
pub struct Sums {
    pub(super) arithmetic: Arc<Arithmetic>,
    pub(super) partials: Option<Array>,
    pub(super) groups: usize,
    pub(super) count: usize,
    pub(super) curvature: bool,
    /// What makes them those of all processes.
    pub(super) joint: Option<Arc<Joint>>,
}

impl Drop for Sums {
    fn drop(&mut self) {
        if let Some(partials) = self.partials.take() {
            let mut spare = self.arithmetic.spare.lock().unwrap_or_else(PoisonError::into_inner);
            spare.push(partials);
        }
    }
}

impl Sums {
    pub(super) fn partials(&self) -> Result<&Array, DeviceError> {
        self.partials.as_ref().ok_or(DeviceError::Foreign)
    }

    /// The sums, when all work before is done.
    ///
    /// # Errors
    ///
    /// A driver that fails, also at work that was asked for before.
    pub fn values(&self) -> Result<Summed, DeviceError> {
        let mut partials = vec![0.0; self.count * self.groups + usize::from(self.curvature)];
        self.arithmetic.device.read(self.partials()?, 0, bytes_mut(&mut partials))?;
        let sum = |at: usize| add_up(&partials[at * self.groups..][..self.groups]);
        let mut sums: Vec<f64> = (0..self.count).map(sum).collect();
        if let Some(joint) = &self.joint {
            joint.total(&self.arithmetic, &mut sums);
        }
        let first = sums[0];
        Ok(Summed {
            first,
            second: if self.count == 2 { sums[1] } else { first },
            curvature: if self.curvature { partials[self.count * self.groups] } else { 0.0 },
        })
    }
}

/// What [`Sums`] come to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summed {
    /// The only sum, or the first.
    pub first: f64,
    /// The second sum of kernels that form two; of others the first.
    pub second: f64,
    /// p·q, as [`Arithmetic::conjugate`] has found it.
    pub curvature: f64,
}
