//! Entries of vectors that are sums over lists of other entries, on a device.
//!
//! ```text
//! y_i ← keep · y_i + Σ_k c_ik y_k + a · g_i
//! ```
//!
//! No entry that is written is in a list, so that all can be done at once. A list of some entries is added up by a thread.
//! A longer one is cut into parts, each of which a group adds up; a group adds up the parts of a list. Sums are taken in
//! one order that the lists alone fix.

use super::{Arithmetic, MOST, THREADS, groups};
use crate::device::{Array, DeviceError, Given, Kind};

/// Entries of a list that a thread adds up.
const SHORT: usize = 32;
/// Entries of a part of a longer one.
const PART: usize = 1 << 13;

/// Lists, in the places of a vector.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// The entries that are sums.
    pub dofs: Vec<u32>,
    /// Where the list of each begins, and the end of the last.
    pub starts: Vec<usize>,
    /// Entries of the lists; none is a sum.
    pub terms: Vec<u32>,
    /// c.
    pub factors: Vec<f64>,
    /// g.
    pub values: Vec<f64>,
}

/// Some of the lists on a device.
#[derive(Debug)]
struct Tables {
    count: usize,
    dofs: Array,
    starts: Array,
    terms: Array,
    factors: Array,
    values: Array,
}

/// Long lists: `starts` are those of their parts.
#[derive(Debug)]
struct Long {
    lists: Tables,
    parts: usize,
    /// The first part of each list, and the end of the last.
    first: Array,
    /// A sum for each part.
    partials: Array,
}

/// Lists on a device.
#[derive(Debug)]
pub struct Listed {
    short: Tables,
    long: Long,
    /// The length of vectors.
    len: usize,
}

impl Lists {
    /// The lists of some of the sums, in parts of at most so many entries; and where the parts of each list begin.
    fn some(
        &self,
        arithmetic: &Arithmetic,
        which: impl Fn(usize) -> bool,
        most: usize,
    ) -> Result<(Tables, Vec<u32>), DeviceError> {
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
        let lists = Tables {
            count: dofs.len(),
            dofs: device.upload(&dofs)?,
            starts: device.upload(&starts)?,
            terms: device.upload(&terms)?,
            factors: arithmetic.upload(&factors)?,
            values: arithmetic.upload(&values)?,
        };
        Ok((lists, first))
    }

    /// Whether indices are below `len`, no entry of a list is a sum, and tables have the lengths that go together.
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

impl Listed {
    /// The sums of vectors of length `len`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for entries that such vectors do not have, and lists with sums among their entries; a
    /// driver that fails.
    pub fn new(arithmetic: &Arithmetic, len: usize, lists: &Lists) -> Result<Self, DeviceError> {
        if !lists.are_sound(len) {
            return Err(DeviceError::Mismatch { operation: "list sums" });
        }
        let (short, _) = lists.some(arithmetic, |entries| entries <= SHORT, SHORT)?;
        let (long, first) = lists.some(arithmetic, |entries| entries > SHORT, PART)?;
        let parts = long.starts.len() - 1;
        let device = &arithmetic.device;
        let (first, partials) = (device.upload(&first)?, device.zeros(Kind::F64, parts)?);
        Ok(Self { short, long: Long { lists: long, parts, first, partials }, len })
    }

    /// y_i = keep · y_i + Σ_k c_ik y_k + a · g_i.
    ///
    /// # Errors
    ///
    /// A vector of another length, a driver that fails.
    pub fn sum(
        &self,
        arithmetic: &Arithmetic,
        keep: f64,
        a: f64,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        arithmetic.same("sum_at", &[y], self.len)?;
        let after = [Given::Real(keep), Given::Real(a)];
        let start =
            |name: &'static str, n: usize, groups: usize, arrays: &[&Array], after: &[_]| {
                let mut given = vec![Given::Size(n as u64), Given::Size((groups * THREADS) as u64)];
                given.extend(arrays.iter().map(|array| Given::Array(array)));
                given.extend_from_slice(after);
                // SAFETY: these kernels of `TEXT` take n, the stride, and the arrays that `new` has made together of lists
                // whose indices it has compared with the length of vectors, and which no entry that is written is in; the
                // length and the precision of y have just been checked.
                unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
            };
        let (short, Long { lists: long, parts, first, partials }) = (&self.short, &self.long);
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
