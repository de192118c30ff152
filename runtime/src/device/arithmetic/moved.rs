//! Entries of one vector that go to places of another, on a device: y_j = x_i for pairs (i, j).

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, DeviceError, Given};

/// Pairs of places.
#[derive(Debug)]
pub struct Moved {
    from: Array,
    to: Array,
    /// The lengths of both vectors.
    lens: [usize; 2],
}

impl Moved {
    /// Between vectors of these lengths. No place of the second is named twice.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for places that such vectors do not have; a driver that fails.
    pub fn new(
        arithmetic: &Arithmetic,
        lens: [usize; 2],
        pairs: impl Iterator<Item = (usize, usize)>,
    ) -> Result<Self, DeviceError> {
        let (mut from, mut to) = (Vec::new(), Vec::new());
        let mut named = vec![false; lens[1]];
        for (i, j) in pairs {
            if i >= lens[0] || j >= lens[1] || std::mem::replace(&mut named[j], true) {
                return Err(DeviceError::Mismatch { operation: "list places" });
            }
            from.push(i as u32);
            to.push(j as u32);
        }
        let device = &arithmetic.device;
        Ok(Self { from: device.upload(&from)?, to: device.upload(&to)?, lens })
    }

    /// y_j = x_i.
    ///
    /// # Errors
    ///
    /// Vectors of other lengths, a driver that fails.
    pub fn apply(
        &self,
        arithmetic: &Arithmetic,
        x: &Array,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        arithmetic.same("take_at", &[x], self.lens[0])?;
        arithmetic.same("take_at", &[y], self.lens[1])?;
        let n = self.from.len();
        if n == 0 {
            return Ok(());
        }
        let groups = groups(n);
        let sizes = [Given::Size(n as u64), Given::Size((groups * THREADS) as u64)];
        let arrays = [&self.from, &self.to, x, &*y].map(Given::Array);
        let given: Vec<Given<'_>> = sizes.into_iter().chain(arrays).collect();
        // SAFETY: the kernel takes two lists of n places, made together above, and vectors of this precision that have all of them,
        // as has just been checked; no place is written twice.
        unsafe { arithmetic.device.start(arithmetic.kernel("take_at")?, groups, &given) }
    }
}
