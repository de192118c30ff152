//! Operations on selected vector entries, such as those with essential boundary conditions.

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, DeviceError, KernelArgument};

/// A list of vector entries on a device.
#[derive(Debug)]
pub struct EntrySelection {
    dofs: Array,
    values: Array,
    /// The length of vectors.
    len: usize,
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
        Ok(Self { values: arithmetic.upload(&values)?, ..Self::listed(arithmetic, len, &dofs)? })
    }

    /// Uploads the entries of vectors of length `len`, without values: 4 bytes each.
    ///
    /// # Errors
    ///
    /// Those of [`EntrySelection::new`].
    pub fn listed(arithmetic: &Arithmetic, len: usize, which: &[u32]) -> Result<Self, DeviceError> {
        if which.iter().any(|&dof| dof as usize >= len) {
            return Err(DeviceError::Mismatch { operation: "list entries" });
        }
        let dofs = arithmetic.device.upload(which)?;
        Ok(Self { dofs, values: arithmetic.upload(&[])?, len })
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

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.dofs.len()
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

    /// Sets y_i = 0 in the first `cleared` entries, and x_i = 0 for these entries, whose values `saved` receives. The
    /// device restores x by [`EntrySelection::put_back`] before it runs anything else that reads x.
    pub fn set_aside(
        &self,
        arithmetic: &Arithmetic,
        (x, saved): (&Array, &Array),
        y: &mut Array,
        cleared: usize,
    ) -> Result<(), DeviceError> {
        arithmetic.same("set_aside", &[x, y], self.len)?;
        arithmetic.same("set_aside", &[saved], self.len())?;
        let (cleared, count) = (cleared.min(self.len), self.len());
        let sizes = [cleared, count].map(|size| KernelArgument::Size(size as u64));
        let [saved, dofs] = [saved, &self.dofs].map(KernelArgument::Array);
        // x and y have `len` entries, which contain all listed ones; `saved` has one for each of the list.
        let others = [saved, dofs, sizes[0], sizes[1]];
        arithmetic.run_first("set_aside", cleared.max(count), &[x, y], &others)
    }

    /// Sets x_i and y_i to the saved values for these entries.
    pub fn put_back(
        &self,
        arithmetic: &Arithmetic,
        (x, saved): (&Array, &Array),
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        arithmetic.same("put_back", &[x], self.len)?;
        self.run(arithmetic, "put_back", Some(saved), y, &[KernelArgument::Array(x)])
    }
}
