//! Affine constraints on a device: entries of vectors as sums over lists of other entries.
//!
//! ```text
//! y_i ← keep · y_i + Σ_k c_ik y_k + a · g_i
//! ```
//!
//! No written entry is in a list, so all lists are independent. A thread sums a short list. Long lists are split into
//! parts, each summed by a thread group, and one group sums the parts. The order of summation depends on the lists
//! only.

use super::{Arithmetic, MOST, THREADS, groups};
use crate::device::{Array, DeviceError, ElementKind, KernelArgument};

/// Largest length of a list for a single thread.
const SHORT: usize = 32;
/// Entries per part of a longer list.
const PART: usize = 1 << 13;

/// Lists of vector entries.
#[derive(Clone, Debug, Default)]
pub struct EntryLists {
    /// The entries that are sums.
    pub dofs: Vec<u32>,
    /// The start of each list, and the end of the last.
    pub starts: Vec<usize>,
    /// The entries of the lists; none is a sum.
    pub terms: Vec<u32>,
    /// c.
    pub factors: Vec<f64>,
    /// g.
    pub values: Vec<f64>,
}

/// Some of the lists on a device.
#[derive(Debug)]
struct ListTables {
    count: usize,
    dofs: Array,
    starts: Array,
    terms: Array,
    factors: Array,
    values: Array,
}

/// Long lists; `starts` refers to their parts.
#[derive(Debug)]
struct LongLists {
    lists: ListTables,
    parts: usize,
    /// The first part of each list, and the end of the last.
    first: Array,
    /// The sum of each part.
    partials: Array,
}

/// Lists on a device.
#[derive(Debug)]
pub struct DeviceLists {
    short: ListTables,
    long: LongLists,
    /// The length of vectors.
    len: usize,
}

impl EntryLists {
    /// Returns the selected lists in parts of at most `most` entries, and the start of the parts of each list.
    fn some(
        &self,
        arithmetic: &Arithmetic,
        which: impl Fn(usize) -> bool,
        most: usize,
    ) -> Result<(ListTables, Vec<u32>), DeviceError> {
        let (mut dofs, mut terms, mut factors, mut values) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut starts, mut first) = (vec![0], vec![0]);
        for sum in 0..self.dofs.len() {
            let range = self.starts[sum]..self.starts[sum + 1];
            if !which(range.len()) {
                continue;
            }
            dofs.push(self.dofs[sum]);
            values.push(self.values[sum]);
            let begin = terms.len();
            terms.extend_from_slice(&self.terms[range.clone()]);
            factors.extend_from_slice(&self.factors[range]);
            let ends = (begin + most..terms.len()).step_by(most).map(|end| end as u32);
            starts.extend(ends);
            starts.push(terms.len() as u32);
            first.push(starts.len() as u32 - 1);
        }
        let device = &arithmetic.device;
        let lists = ListTables {
            count: dofs.len(),
            dofs: device.upload(&dofs)?,
            starts: device.upload(&starts)?,
            terms: device.upload(&terms)?,
            factors: arithmetic.upload(&factors)?,
            values: arithmetic.upload(&values)?,
        };
        Ok((lists, first))
    }

    /// Checks that indices are below `len`, that no list contains a sum, and that table lengths match.
    fn are_sound(&self, len: usize) -> bool {
        let mut sums = vec![false; len];
        let known = |dof: &u32| (*dof as usize) < len;
        if !self.dofs.iter().chain(&self.terms).all(known) || self.terms.len() > u32::MAX as usize {
            return false;
        }
        self.dofs.iter().for_each(|&dof| sums[dof as usize] = true);
        let n = self.dofs.len();
        self.terms.iter().all(|&term| !sums[term as usize])
            && (self.values.len(), self.starts.len()) == (n, n + 1)
            && self.factors.len() == self.terms.len()
            && self.starts.is_sorted()
            && self.starts[n] == self.terms.len()
    }
}

impl DeviceLists {
    /// Uploads the lists for vectors of length `len`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for entries out of range and for lists that contain sums; a driver error.
    pub fn new(
        arithmetic: &Arithmetic,
        len: usize,
        lists: &EntryLists,
    ) -> Result<Self, DeviceError> {
        if !lists.are_sound(len) {
            return Err(DeviceError::Mismatch { operation: "list sums" });
        }
        let (short, _) = lists.some(arithmetic, |entries| entries <= SHORT, SHORT)?;
        let (long, first) = lists.some(arithmetic, |entries| entries > SHORT, PART)?;
        let parts = long.starts.len() - 1;
        let device = &arithmetic.device;
        let (first, partials) = (device.upload(&first)?, device.zeros(ElementKind::F64, parts)?);
        Ok(Self { short, long: LongLists { lists: long, parts, first, partials }, len })
    }

    /// Computes y_i = keep · y_i + Σ_k c_ik y_k + a · g_i.
    ///
    /// # Errors
    ///
    /// A vector of another length, or a driver error.
    pub fn sum(
        &self,
        arithmetic: &Arithmetic,
        keep: f64,
        a: f64,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        arithmetic.same("sum_at", &[y], self.len)?;
        let after = [KernelArgument::Real(keep), KernelArgument::Real(a)];
        let start =
            |name: &'static str, n: usize, groups: usize, arrays: &[&Array], after: &[_]| {
                let mut given = vec![
                    KernelArgument::Size(n as u64),
                    KernelArgument::Size((groups * THREADS) as u64),
                ];
                given.extend(arrays.iter().map(|array| KernelArgument::Array(array)));
                given.extend_from_slice(after);
                // SAFETY: these kernels of `TEXT` take n, the stride, and the arrays that `new` created together. Their
                // indices were compared with the vector length, and no written entry is in a list; the length and the
                // precision of y have just been checked.
                unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
            };
        let (short, LongLists { lists: long, parts, first, partials }) = (&self.short, &self.long);
        if short.count > 0 {
            let tables =
                [&short.dofs, &short.starts, &short.terms, &short.factors, &short.values, y];
            start("sum_at", short.count, groups(short.count), &tables, &after)?;
        }
        if long.count > 0 {
            let tables = [&long.starts, &long.terms, &long.factors, y, partials];
            start("sum_parts", *parts, MOST.min(*parts), &tables, &[])?;
            let tables = [&long.dofs, first, partials, &long.values, y];
            start("sum_whole", long.count, MOST.min(long.count), &tables, &after)?;
        }
        Ok(())
    }
}
