//! Operations on several vectors that read each entry from memory once: inner products of a vector with others, and
//! linear combinations.

use super::sums::tree_sum;
use super::{Arithmetic, SharedEntries, THREADS, groups, groups_of};
use crate::device::array::bytes_mut;
use crate::device::{Array, DeviceError, KernelArgument};
use std::fmt::Write as _;
use std::sync::{Arc, PoisonError};

/// Number of other vectors per kernel.
pub(super) const MANY: usize = 8;

/// The names of the kernels, without prefix.
pub(super) const NAMES: [&str; 3] = ["products", "products_at", "combination"];

/// Returns the kernels, in C.
pub(super) fn kernels(prefix: &str) -> String {
    let each = |text: &dyn Fn(usize) -> String| (0..MANY).map(text).collect::<String>();
    let vectors = each(&|k| format!(", $GLOBAL const T* x{k}"));
    let zeros = each(&|k| format!("    double sum{k} = 0;\n"));
    let guard = |k: usize| if k == 0 { String::new() } else { format!("if (count > {k}) ") };
    let add =
        |at: &str| each(&|k| format!("        {}sum{k} += own * (double)x{k}[{at}];\n", guard(k)));
    let store = each(&|k| {
        format!(
            "    if (count > {k}) {{\n        sums[thread] = sum{k};\n        SUM_UP(sums, thread);\n        \
             if (thread == 0) partials[{k} * (stride / $THREADS) + $GROUP] = sums[0];\n        $BARRIER;\n    }}\n"
        )
    });
    let head = "const $SIZE n, const $SIZE stride";
    let tail = "$GLOBAL double* $RESTRICT partials, const $SIZE count";
    let mut text = String::new();
    let _ = write!(
        text,
        "\n/// y . x of up to {MANY} vectors x\n\
         $KERNEL {prefix}products({head}, $GLOBAL const T* y{vectors}, {tail})\n{{\n    \
         $SHARED double sums[$THREADS];\n    const int thread = $THREAD;\n{zeros}    EACH(i) {{\n        \
         const double own = (double)y[i];\n{}    }}\n{store}}}\n",
        add("i"),
    );
    let _ = write!(
        text,
        "\n/// The same over the entries that `dofs` lists\n\
         $KERNEL {prefix}products_at({head}, $GLOBAL const uint32* $RESTRICT dofs, $GLOBAL const T* y{vectors}, {tail})\n{{\n    \
         $SHARED double sums[$THREADS];\n    const int thread = $THREAD;\n{zeros}    EACH(i) {{\n        \
         const uint32 dof = dofs[i];\n        const double own = (double)y[dof];\n{}    }}\n{store}}}\n",
        add("dof"),
    );
    let factors = each(&|k| format!(", const double f{k}"));
    let terms = each(&|k| format!("        {}sum = sum + (T)f{k} * x{k}[i];\n", guard(k)));
    let _ = write!(
        text,
        "\n/// y = a y + the sum of f x of up to {MANY} vectors x\n\
         $KERNEL {prefix}combination({head}, $GLOBAL T* $RESTRICT y{vectors}, const double a{factors}, const $SIZE count)\n{{\n    \
         EACH(i) {{\n        T sum = a == 0 ? (T)0 : (T)a * y[i];\n{terms}        y[i] = sum;\n    }}\n}}\n"
    );
    text
}

impl Arithmetic {
    /// Returns y·x of several vectors, with shared entries over all processes; waits for earlier work.
    ///
    /// # Errors
    ///
    /// Arrays that do not match, or a driver error.
    pub fn products(
        &self,
        y: &Array,
        x: &[&Array],
        shared: Option<&Arc<SharedEntries>>,
    ) -> Result<Vec<f64>, DeviceError> {
        let (n, mut started) = (y.len(), Vec::new());
        for x in x.chunks(MANY) {
            let vectors = filled([y; MANY], x);
            self.same("products", &[&[y], &vectors[..]].concat(), n)?;
            let (all, count) = (self.room()?, KernelArgument::Size(x.len() as u64));
            let sums = |sums| [KernelArgument::Array(sums), count];
            let arrays = std::iter::once(y).chain(vectors).map(KernelArgument::Array);
            let arrays: Vec<_> = arrays.collect();
            let own = groups_of(n, shared);
            let head = |n: usize, groups: usize| {
                [n, groups * THREADS].map(|size| KernelArgument::Size(size as u64))
            };
            let arguments = [&head(n, own)[..], &arrays, &sums(&all)].concat();
            // SAFETY: the kernel takes n, the stride, y and MANY vectors of this length and precision (just checked), room
            // for MANY sums of the largest number of groups, and the number of vectors.
            unsafe { self.device.start(self.kernel("products")?, own, &arguments)? };
            let mut less_others = None;
            if let Some(others) = shared.map(|shared| shared.others()).filter(|of| !of.is_empty()) {
                let (less, of) = (self.room()?, groups(others.len()));
                let list = [KernelArgument::Array(others)];
                let arguments =
                    [&head(others.len(), of)[..], &list, &arrays, &sums(&less)].concat();
                // SAFETY: in addition, the listed entries are below the length of vectors that have these shared entries.
                unsafe { self.device.start(self.kernel("products_at")?, of, &arguments)? };
                less_others = Some((less, of));
            }
            started.push((x.len(), (all, own), less_others));
        }
        let mut found = Vec::with_capacity(x.len());
        for (count, all, less) in started {
            let mut sums = self.take(count, all)?;
            if let Some(less) = less {
                let less = self.take(count, less)?;
                sums.iter_mut().zip(less).for_each(|(sum, less)| *sum -= less);
            }
            found.extend(sums);
        }
        if let Some(shared) = shared {
            shared.reduce(&mut found);
        }
        Ok(found)
    }

    /// Reads the sums of groups, and keeps their array for later sums.
    fn take(&self, count: usize, (sums, groups): (Array, usize)) -> Result<Vec<f64>, DeviceError> {
        let mut partials = vec![0.0; count * groups];
        self.device.read(&sums, 0, bytes_mut(&mut partials))?;
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).push(sums);
        Ok(partials.chunks(groups).map(tree_sum).collect())
    }

    /// Computes y = a y + Σ f x of several vectors.
    ///
    /// # Errors
    ///
    /// Arrays that do not match, or a driver error.
    pub fn combination(
        &self,
        y: &mut Array,
        a: f64,
        x: &[&Array],
        factors: &[f64],
    ) -> Result<(), DeviceError> {
        let n = y.len();
        let parts = x.chunks(MANY).zip(factors.chunks(MANY));
        for (number, (x, factors)) in parts.enumerate() {
            let vectors = filled([x[0]; MANY], x);
            let a = if number == 0 { a } else { 1.0 };
            let mut after = vec![KernelArgument::Real(a)];
            after.extend(filled([0.0; MANY], factors).map(KernelArgument::Real));
            after.push(KernelArgument::Size(x.len() as u64));
            self.run("combination", n, &[&[&*y], &vectors[..]].concat(), &after)?;
        }
        if x.is_empty() && a != 1.0 {
            self.compute("scale", [y], [], &[a])?;
        }
        Ok(())
    }
}

/// Replaces the first elements.
fn filled<T: Copy>(mut all: [T; MANY], by: &[T]) -> [T; MANY] {
    all[..by.len()].copy_from_slice(by);
    all
}
