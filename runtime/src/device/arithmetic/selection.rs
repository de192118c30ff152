//! Operations on selected vector entries, such as those with essential boundary conditions.

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, DeviceError, KernelArgument};

/// A list of vector entries on a device.
#[derive(Debug)]
pub struct EntrySelection {
    dofs: Array,
    values: Array,
    /// A bit per vector entry, for [`EntrySelection::begin`].
    mask: Option<Array>,
    /// The length of vectors.
    len: usize,
    /// An upper bound of all entries.
    end: usize,
}

impl EntrySelection {
    /// Uploads the entries of vectors of length `len`, with a value for each.
    ///
    /// # Errors
    ///
    /// Those of [`Device::zeros`](super::super::Device::zeros); [`DeviceError::Mismatch`] for entries out of range.
    pub fn new(
        arithmetic: &Arithmetic,
        len: usize,
        entries: impl Iterator<Item = (usize, f64)>,
    ) -> Result<Self, DeviceError> {
        let (dofs, values): (Vec<u32>, Vec<f64>) =
            entries.map(|(dof, value)| (dof as u32, value)).unzip();
        let end = dofs.iter().max().map_or(0, |&last| last as usize + 1);
        let mut mask = vec![0_u32; len.div_ceil(32)];
        for &dof in &dofs {
            let word = mask.get_mut(dof as usize / 32).filter(|_| (dof as usize) < len);
            let word = word.ok_or(DeviceError::Mismatch { operation: "list entries" })?;
            *word |= 1 << (dof % 32);
        }
        let device = &arithmetic.device;
        let (mask, values) = (device.upload(&mask)?, arithmetic.upload(&values)?);
        Ok(Self { dofs: device.upload(&dofs)?, values, mask: Some(mask), len, end })
    }

    /// Uploads the entries of vectors of length `len`, without values and without support for
    /// [`EntrySelection::begin`]: 4 bytes each.
    ///
    /// # Errors
    ///
    /// Those of [`EntrySelection::new`].
    pub fn listed(arithmetic: &Arithmetic, len: usize, which: &[u32]) -> Result<Self, DeviceError> {
        let end = which.iter().max().map_or(0, |&last| last as usize + 1);
        if end > len {
            return Err(DeviceError::Mismatch { operation: "list entries" });
        }
        let dofs = arithmetic.device.upload(which)?;
        Ok(Self { dofs, values: arithmetic.upload(&[])?, mask: None, len, end })
    }

    /// Replaces the values.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for another number of values; a driver error.
    pub fn set(&mut self, arithmetic: &Arithmetic, values: &[f64]) -> Result<(), DeviceError> {
        if values.len() != self.dofs.len() {
            return Err(DeviceError::Mismatch { operation: "set conditions" });
        }
        if values.is_empty() { Ok(()) } else { arithmetic.overwrite(&mut self.values, 0, values) }
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.dofs.is_empty()
    }

    fn run(
        &self,
        arithmetic: &Arithmetic,
        name: &'static str,
        values: Option<&Array>,
        y: &Array,
        after: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        let n = self.dofs.len();
        arithmetic.same(name, &[y], self.len)?;
        arithmetic.same(name, values.as_slice(), n)?;
        if n == 0 {
            return Ok(());
        }
        let groups = groups(n);
        let mut given =
            vec![KernelArgument::Size(n as u64), KernelArgument::Size((groups * THREADS) as u64)];
        given.push(KernelArgument::Array(&self.dofs));
        given.extend(values.into_iter().chain([y]).map(KernelArgument::Array));
        given.extend(after);
        // SAFETY: these kernels of `TEXT` take a list of n positions and n values, created together above, and a vector
        // of this precision (just checked) that contains all positions. Further arguments are numbers or arrays checked
        // by the callers: for `copy` another such vector, for `read` n numbers.
        unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
    }

    /// Sets y_i = a for these entries.
    ///
    /// # Errors
    ///
    /// For this and all following functions: vectors of another length, or a driver error.
    pub fn fill(&self, arithmetic: &Arithmetic, y: &mut Array, a: f64) -> Result<(), DeviceError> {
        self.run(arithmetic, "fill_at", None, y, &[KernelArgument::Real(a)])
    }

    /// Sets y_k to the k-th of these entries of x.
    pub fn read(
        &self,
        arithmetic: &Arithmetic,
        x: &Array,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        arithmetic.same("get_at", &[y], self.dofs.len())?;
        arithmetic.same("get_at", &[x], self.len)?;
        self.run(arithmetic, "get_at", None, x, &[KernelArgument::Array(y)])
    }

    /// Sets y_i = x_i for these entries only.
    pub fn copy(
        &self,
        arithmetic: &Arithmetic,
        x: &Array,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        arithmetic.same("copy_at", &[y], self.len)?;
        self.run(arithmetic, "copy_at", None, x, &[KernelArgument::Array(y)])
    }

    /// Sets y_i to the stored value for these entries.
    pub fn put(&self, arithmetic: &Arithmetic, y: &mut Array) -> Result<(), DeviceError> {
        self.run(arithmetic, "put_at", Some(&self.values), y, &[])
    }

    /// Returns an upper bound of all entries.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Sets y_i = x_i for these entries and 0 for all others, among the first `n`.
    pub fn begin(
        &self,
        arithmetic: &Arithmetic,
        x: &Array,
        y: &mut Array,
        n: usize,
    ) -> Result<(), DeviceError> {
        arithmetic.same("begin", &[x, y], self.len)?;
        if self.is_empty() {
            return arithmetic.clear(y, n);
        }
        let Some(mask) = &self.mask else {
            return Err(DeviceError::Mismatch { operation: "begin" });
        };
        // The mask has a bit for each of the `len` entries with which x and y were compared above.
        arithmetic.run_first("begin", n.min(self.len), &[x, y], &[KernelArgument::Array(mask)])
    }
}
