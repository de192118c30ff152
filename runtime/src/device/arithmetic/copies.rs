//! Copies of entries between two vectors on a device: y_j = x_i for pairs (i, j).

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, DeviceError, KernelArgument};

/// Pairs of positions.
#[derive(Debug)]
pub struct EntryCopies {
    from: Array,
    to: Array,
    /// The lengths of both vectors.
    lens: [usize; 2],
}

impl EntryCopies {
    /// Uploads the pairs for vectors of these lengths. Target positions are distinct.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for positions out of range; a driver error.
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

    /// Sets y_j = x_i.
    ///
    /// # Errors
    ///
    /// Vectors of other lengths, or a driver error.
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
        let sizes =
            [KernelArgument::Size(n as u64), KernelArgument::Size((groups * THREADS) as u64)];
        let arrays = [&self.from, &self.to, x, &*y].map(KernelArgument::Array);
        let given: Vec<KernelArgument<'_>> = sizes.into_iter().chain(arrays).collect();
        // SAFETY: the kernel takes two lists of n positions, created together above, and vectors of this precision that
        // contain all of them (just checked); target positions are distinct.
        unsafe { arithmetic.device.start(arithmetic.kernel("take_at")?, groups, &given) }
    }
}
