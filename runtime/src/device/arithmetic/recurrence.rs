//! Conjugate gradient iterations on a device, with all scalars in device memory.
//!
//! ```text
//! α = r·z / p·Ap;  x += α p;  r −= α Ap;  β = (r·z)' / r·z;  p = z + β p
//! ```
//!
//! Iterations stop changing x and r if p·Ap or r·z is not positive, if a number is not finite, or if r·r has reached
//! its target. Any number of iterations can therefore be enqueued in advance. A ring buffer stores the results of the
//! last [`CgRecurrence::MOST`] iterations; the host reads it at any time.

use super::{Arithmetic, SharedEntries, SumSelection, SumValues, groups, groups_of};
use crate::device::array::{bytes, bytes_mut};
use crate::device::{Array, DeviceError, KernelArgument};
use std::sync::{Arc, PoisonError};

/// Scalars before the ring: r·z, the stop flag, the number of iterations, and the target of r·r.
const SCALARS: usize = 4;
/// Scalars per iteration in the ring: p·Ap, r·r, r·z.
const KEPT: usize = 3;

/// Origin of the next search direction.
#[derive(Clone, Copy, Debug)]
pub enum SearchDirection<'a> {
    /// z = r.
    Residual(&'a Array),
    /// z = D⁻¹r, from r and D⁻¹.
    Scaled(&'a Array, &'a Array),
    /// A preconditioned residual z, already passed to [`CgRecurrence::weigh`].
    Preconditioned(&'a Array),
}

/// The scalars of the method on a device, and its vector operations.
#[derive(Debug)]
pub struct CgRecurrence {
    arithmetic: Arc<Arithmetic>,
    /// The group sums of p·Ap, later of r·z if z is the result of an operator.
    products: Option<Array>,
    /// The group sums of r·r and r·D⁻¹r.
    sums: Option<Array>,
    /// Scalars from the direction update for the step, and the ring.
    state: Option<Array>,
    /// Scalars from the step for the direction update.
    found: Option<Array>,
    /// The number of iterations read by the host.
    known: usize,
    /// The entries shared with other processes.
    shared: Option<Arc<SharedEntries>>,
}

impl Drop for CgRecurrence {
    fn drop(&mut self) {
        let mut spare = self.arithmetic.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let arrays = [&mut self.products, &mut self.sums, &mut self.state, &mut self.found];
        spare.extend(arrays.into_iter().filter_map(Option::take));
    }
}

/// Returns the largest s with √s ≤ `target`, so that the device can compare squares with the same result as norms on
/// the host.
fn largest_square(target: f64) -> f64 {
    if target < 0.0 {
        return -1.0;
    }
    let mut square = target * target;
    while square.sqrt() > target {
        square = square.next_down();
    }
    while square.next_up().sqrt() <= target && square < f64::MAX {
        square = square.next_up();
    }
    square
}

impl CgRecurrence {
    /// The capacity of the ring: the largest number of iterations between two reads.
    pub const MOST: usize = 64;

    /// Allocates the scalars. `shared` are shared entries, if the devices of the processes are connected.
    ///
    /// # Errors
    ///
    /// Those of [`Device::zeros`](crate::device::Device::zeros).
    pub fn new(
        arithmetic: &Arc<Arithmetic>,
        shared: Option<&Arc<SharedEntries>>,
    ) -> Result<Self, DeviceError> {
        let mut made = Self {
            arithmetic: Arc::clone(arithmetic),
            products: None,
            sums: None,
            state: None,
            found: None,
            known: 0,
            shared: shared.cloned(),
        };
        for array in [&mut made.products, &mut made.sums, &mut made.state, &mut made.found] {
            *array = Some(arithmetic.room()?);
        }
        Ok(made)
    }

    /// Restarts with r·z; the target is ‖r‖ ≤ `target`.
    ///
    /// # Errors
    ///
    /// For this and all following functions: arrays that do not match, or a driver error.
    pub fn start(&mut self, rz: f64, target: f64) -> Result<(), DeviceError> {
        self.known = 0;
        let scalars: [f64; SCALARS] = [rz, 0.0, 0.0, largest_square(target)];
        let state = self.state.as_mut().ok_or(DeviceError::Foreign)?;
        self.arithmetic.device.write(state, 0, bytes(&scalars))
    }

    /// Computes p·q with q = A p.
    pub fn product(&self, p: &Array, q: &Array) -> Result<(), DeviceError> {
        let products = given(&self.products)?;
        self.arithmetic.run_by("inner_product", self.sized(p.len()), &[p, q], &[products])?;
        self.settle(&self.products, SumSelection::First, [p, q, q])
    }

    /// Reduces group sums over all processes.
    fn settle(
        &self,
        sums: &Option<Array>,
        wanted: SumSelection,
        of: [&Array; 3],
    ) -> Result<(), DeviceError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        shared.settle(&self.arithmetic, sums.as_ref().ok_or(DeviceError::Foreign)?, wanted, of)
    }

    /// Returns the number of entries, and the number of thread groups of a sum over them.
    fn sized(&self, n: usize) -> (usize, usize) {
        (n, groups_of(n, self.shared.as_ref()))
    }

    /// Updates x = x + α p, r = r − α q, r·r and r·D⁻¹r, unless stopped.
    pub fn step(
        &self,
        p: &Array,
        q: &Array,
        d: Option<&Array>,
        x: &mut Array,
        r: &mut Array,
    ) -> Result<(), DeviceError> {
        let size = self.sized(p.len());
        let others = [
            given(&self.products)?,
            given(&self.sums)?,
            given(&self.state)?,
            given(&self.found)?,
            KernelArgument::Size(size.1 as u64),
        ];
        match d {
            Some(d) => {
                self.arithmetic.run_by("batch_step", size, &[p, q, d, x, r], &others)?;
                self.settle(&self.sums, SumSelection::Both, [r, r, d])
            }
            None => {
                self.arithmetic.run_by("batch_step_plain", size, &[p, q, x, r], &others)?;
                self.settle(&self.sums, SumSelection::First, [r, r, r])
            }
        }
    }

    /// Computes r·z for the result z of a preconditioner.
    pub fn weigh(&self, r: &Array, z: &Array) -> Result<(), DeviceError> {
        self.product(r, z)
    }

    /// Updates p = z + β p, unless stopped, and ends the iteration.
    pub fn advance(&self, toward: SearchDirection<'_>, p: &mut Array) -> Result<(), DeviceError> {
        let n = p.len();
        let known = self.sized(n).1 as u64;
        let (weights, second) = match toward {
            SearchDirection::Residual(_) => (&self.sums, 0),
            SearchDirection::Scaled(..) => (&self.sums, known),
            SearchDirection::Preconditioned(_) => (&self.products, 0),
        };
        let others = [
            given(&self.sums)?,
            given(weights)?,
            given(&self.found)?,
            given(&self.state)?,
            KernelArgument::Size(known),
            KernelArgument::Size(second),
        ];
        // Scalars are updated even if a process has no entries.
        let advance = |name: &'static str, arrays: &[&Array]| {
            self.arithmetic.run_by(name, (n, groups(n)), arrays, &others)
        };
        match toward {
            SearchDirection::Scaled(r, d) => advance("batch_advance", &[r, d, p]),
            SearchDirection::Residual(z) | SearchDirection::Preconditioned(z) => {
                advance("batch_advance_plain", &[z, p])
            }
        }
    }

    /// Waits for earlier work and returns the results of the iterations since the last read, r·r and r·z. Stopped
    /// iterations have none.
    pub fn read(&mut self) -> Result<Vec<SumValues>, DeviceError> {
        let mut state = [0.0; SCALARS + KEPT * Self::MOST];
        let from = self.state.as_ref().ok_or(DeviceError::Foreign)?;
        self.arithmetic.device.read(from, 0, bytes_mut(&mut state))?;
        let (scalars, ring) = state.split_at(SCALARS);
        let new = self.known..scalars[2] as usize;
        self.known = new.end;
        let found = new.map(|iteration| {
            let kept = &ring[iteration % Self::MOST * KEPT..][..KEPT];
            SumValues { curvature: kept[0], first: kept[1], second: kept[2] }
        });
        Ok(found.collect())
    }
}

fn given(array: &Option<Array>) -> Result<KernelArgument<'_>, DeviceError> {
    array.as_ref().map(KernelArgument::Array).ok_or(DeviceError::Foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_compared_as_norms_are() {
        for target in [0.0, 1e-200, 5e-324, 1e-160, 1e-12, 0.1, 1.0 / 3.0, 1.0, 7.3, 1e150, 1e200] {
            let square = largest_square(target);
            assert!(square.sqrt() <= target, "{target:e}");
            assert!(square == f64::MAX || square.next_up().sqrt() > target, "{target:e}");
        }
        assert!(largest_square(-1.0) < 0.0, "no norm is negative");
        assert!(largest_square(f64::NAN).is_nan());
    }
}
