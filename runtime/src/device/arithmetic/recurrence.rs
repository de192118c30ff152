//! Iterations of the conjugate gradient method that follow one another on a device: their scalars stay there.
//!
//! ```text
//! α = r·z / p·Ap;  x += α p;  r −= α Ap;  β = (r·z)' / r·z;  p = z + β p
//! ```
//!
//! Where p·Ap is not positive, r·z is not, a number is not finite or r·r has reached what is asked for, the iterations
//! that follow stand still: x and r stay as they are. So any number of them can be asked for in advance. What each of
//! the last [`Recurrence::MOST`] has found lies in a ring that the host reads when it likes.

use super::{Arithmetic, Joint, Summed, Wanted, groups, groups_of};
use crate::device::interface::{bytes, bytes_mut};
use crate::device::{Array, DeviceError, Given};
use std::sync::{Arc, PoisonError};

/// Scalars before the ring: r·z, whether to stand still, iterations done, the r·r to stop at.
const SCALARS: usize = 4;
/// What is kept of an iteration: p·Ap, r·r, r·z.
const KEPT: usize = 3;

/// Where the next direction comes from.
#[derive(Clone, Copy, Debug)]
pub enum Toward<'a> {
    /// z = r.
    Residual(&'a Array),
    /// z = D⁻¹r, from r and D⁻¹.
    Scaled(&'a Array, &'a Array),
    /// z itself, which [`Recurrence::weigh`] has seen.
    Preconditioned(&'a Array),
}

/// The scalars of the method on a device, and its operations on vectors.
#[derive(Debug)]
pub struct Recurrence {
    arithmetic: Arc<Arithmetic>,
    /// The groups' sums of p·Ap, later of r·z where z comes from an operator.
    products: Option<Array>,
    /// The groups' sums of r·r, and of r·D⁻¹r.
    sums: Option<Array>,
    /// What the next direction leaves for the step, and the ring.
    state: Option<Array>,
    /// What the step leaves for the next direction.
    found: Option<Array>,
    /// Iterations that the host knows.
    known: usize,
    /// The entries that other processes have too.
    joint: Option<Arc<Joint>>,
}

impl Drop for Recurrence {
    fn drop(&mut self) {
        let mut spare = self.arithmetic.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let arrays = [&mut self.products, &mut self.sums, &mut self.state, &mut self.found];
        spare.extend(arrays.into_iter().filter_map(Option::take));
    }
}

/// The largest s with √s ≤ `target`, so that the device compares squares as the host compares norms.
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

impl Recurrence {
    /// Iterations that the ring holds: no more may be asked for without reading.
    pub const MOST: usize = 64;

    /// Room for the scalars; vectors may have entries in common with those of other processes, whose devices this one reaches.
    ///
    /// # Errors
    ///
    /// As [`Device::zeros`](crate::device::Device::zeros).
    pub fn new(
        arithmetic: &Arc<Arithmetic>,
        joint: Option<&Arc<Joint>>,
    ) -> Result<Self, DeviceError> {
        let mut made = Self {
            arithmetic: Arc::clone(arithmetic),
            products: None,
            sums: None,
            state: None,
            found: None,
            known: 0,
            joint: joint.cloned(),
        };
        for array in [&mut made.products, &mut made.sums, &mut made.state, &mut made.found] {
            *array = Some(arithmetic.room()?);
        }
        Ok(made)
    }

    /// Begins anew with r·z; ‖r‖ ≤ `target` is what is asked for.
    ///
    /// # Errors
    ///
    /// For this and all that follows: arrays that do not go together, a driver that fails.
    pub fn start(&mut self, rz: f64, target: f64) -> Result<(), DeviceError> {
        self.known = 0;
        let scalars: [f64; SCALARS] = [rz, 0.0, 0.0, largest_square(target)];
        let state = self.state.as_mut().ok_or(DeviceError::Foreign)?;
        self.arithmetic.device.write(state, 0, bytes(&scalars))
    }

    /// p·q, where q = A p.
    pub fn product(&self, p: &Array, q: &Array) -> Result<(), DeviceError> {
        let products = given(&self.products)?;
        self.arithmetic.run_by("dot", self.sized(p.len()), &[p, q], &[products])?;
        self.settle(&self.products, Wanted::First, [p, q, q])
    }

    /// Makes sums of groups those of all processes.
    fn settle(
        &self,
        sums: &Option<Array>,
        wanted: Wanted,
        of: [&Array; 3],
    ) -> Result<(), DeviceError> {
        let Some(joint) = &self.joint else { return Ok(()) };
        joint.settle(&self.arithmetic, sums.as_ref().ok_or(DeviceError::Foreign)?, wanted, of)
    }

    /// A number of entries, and how many groups form a sum over them.
    fn sized(&self, n: usize) -> (usize, usize) {
        (n, groups_of(n, self.joint.as_ref()))
    }

    /// x = x + α p, r = r − α q, and the new r·r and r·D⁻¹r, unless iterations stand still.
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
            Given::Size(size.1 as u64),
        ];
        match d {
            Some(d) => {
                self.arithmetic.run_by("batch_step", size, &[p, q, d, x, r], &others)?;
                self.settle(&self.sums, Wanted::Both, [r, r, d])
            }
            None => {
                self.arithmetic.run_by("batch_step_plain", size, &[p, q, x, r], &others)?;
                self.settle(&self.sums, Wanted::First, [r, r, r])
            }
        }
    }

    /// r·z for a z that an operator has made of r.
    pub fn weigh(&self, r: &Array, z: &Array) -> Result<(), DeviceError> {
        self.product(r, z)
    }

    /// p = z + β p, unless iterations stand still or do so from now on; ends the iteration.
    pub fn advance(&self, toward: Toward<'_>, p: &mut Array) -> Result<(), DeviceError> {
        let n = p.len();
        let known = self.sized(n).1 as u64;
        let (weights, second) = match toward {
            Toward::Residual(_) => (&self.sums, 0),
            Toward::Scaled(..) => (&self.sums, known),
            Toward::Preconditioned(_) => (&self.products, 0),
        };
        let others = [
            given(&self.sums)?,
            given(weights)?,
            given(&self.found)?,
            given(&self.state)?,
            Given::Size(known),
            Given::Size(second),
        ];
        // Scalars go on where a process has no entries, too.
        let advance = |name: &'static str, arrays: &[&Array]| {
            self.arithmetic.run_by(name, (n, groups(n)), arrays, &others)
        };
        match toward {
            Toward::Scaled(r, d) => advance("batch_advance", &[r, d, p]),
            Toward::Residual(z) | Toward::Preconditioned(z) => {
                advance("batch_advance_plain", &[z, p])
            }
        }
    }

    /// What the iterations since the last reading have found, when all work before is done: r·r first, r·z second.
    /// There is none of those that stood still.
    pub fn read(&mut self) -> Result<Vec<Summed>, DeviceError> {
        let mut state = [0.0; SCALARS + KEPT * Self::MOST];
        let from = self.state.as_ref().ok_or(DeviceError::Foreign)?;
        self.arithmetic.device.read(from, 0, bytes_mut(&mut state))?;
        let (scalars, ring) = state.split_at(SCALARS);
        let new = self.known..scalars[2] as usize;
        self.known = new.end;
        let found = new.map(|iteration| {
            let kept = &ring[iteration % Self::MOST * KEPT..][..KEPT];
            Summed { curvature: kept[0], first: kept[1], second: kept[2] }
        });
        Ok(found.collect())
    }
}

fn given(array: &Option<Array>) -> Result<Given<'_>, DeviceError> {
    array.as_ref().map(Given::Array).ok_or(DeviceError::Foreign)
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
