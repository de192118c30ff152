//! Conditions on combinations of a node's components, N u = g, on a device.

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, DeviceError, KernelArgument};

/// Entries per node.
pub const WIDTH: usize = 3;

/// Placeholder for an entry that a node does not have.
pub const NONE: u32 = u32::MAX;

/// Tables of the nodes with such conditions.
#[derive(Clone, Debug, Default)]
pub struct CombinationTables {
    /// The entries of each node in a vector.
    pub dofs: Vec<[u32; WIDTH]>,
    /// N, symmetric with N² = N.
    pub normals: Vec<[[f64; WIDTH]; WIDTH]>,
    /// g.
    pub values: Vec<[f64; WIDTH]>,
    /// P_cc / Σ P_cc with P = I − N.
    pub weights: Vec<[f64; WIDTH]>,
}

/// These tables on a device.
#[derive(Debug)]
pub struct DeviceCombinations {
    nodes: usize,
    dofs: Array,
    normals: Array,
    values: Array,
    weights: Array,
    /// The length of vectors.
    len: usize,
}

impl DeviceCombinations {
    /// Uploads the tables for vectors of length `len`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for entries out of range; a driver error.
    pub fn new(
        arithmetic: &Arithmetic,
        len: usize,
        of: &CombinationTables,
    ) -> Result<Self, DeviceError> {
        let dofs = of.dofs.as_flattened();
        if dofs.iter().any(|&dof| dof != NONE && dof as usize >= len) {
            return Err(DeviceError::Mismatch { operation: "list combinations" });
        }
        Ok(Self {
            nodes: of.dofs.len(),
            dofs: arithmetic.device.upload(dofs)?,
            normals: arithmetic.upload(of.normals.as_flattened().as_flattened())?,
            values: arithmetic.upload(of.values.as_flattened())?,
            weights: arithmetic.upload(of.weights.as_flattened())?,
            len,
        })
    }

    /// Returns whether there are no such nodes.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Returns the number of values.
    pub fn n_values(&self) -> usize {
        self.nodes * WIDTH
    }

    /// Replaces the values.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for another number of values; a driver error.
    pub fn set(&mut self, arithmetic: &Arithmetic, values: &[f64]) -> Result<(), DeviceError> {
        if values.len() != self.n_values() {
            return Err(DeviceError::Mismatch { operation: "set conditions" });
        }
        if values.is_empty() { Ok(()) } else { arithmetic.overwrite(&mut self.values, 0, values) }
    }

    fn run(
        &self,
        arithmetic: &Arithmetic,
        name: &'static str,
        tables: &[&Array],
        vectors: &[&Array],
        after: &[KernelArgument<'_>],
    ) -> Result<(), DeviceError> {
        arithmetic.same(name, vectors, self.len)?;
        if self.nodes == 0 {
            return Ok(());
        }
        let groups = groups(self.nodes);
        let mut given = vec![
            KernelArgument::Size(self.nodes as u64),
            KernelArgument::Size((groups * THREADS) as u64),
        ];
        given.push(KernelArgument::Array(&self.dofs));
        given.extend(tables.iter().chain(vectors).map(|array| KernelArgument::Array(array)));
        given.extend(after);
        // SAFETY: these kernels of `TEXT` take n nodes, three entries each, which `new` compared with the vector
        // length, tables for as many nodes in this precision, created there, and vectors of that length, just checked.
        unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
    }

    /// Computes y ← P y, plus the values if `values` is true.
    ///
    /// # Errors
    ///
    /// For this and all following functions: vectors of another length, or a driver error.
    pub fn project(
        &self,
        arithmetic: &Arithmetic,
        y: &mut Array,
        values: bool,
    ) -> Result<(), DeviceError> {
        let a = KernelArgument::Real(if values { 1.0 } else { 0.0 });
        self.run(arithmetic, "project_at", &[&self.normals, &self.values], &[y], &[a])
    }

    /// Computes y ← P y + N (d x).
    pub fn project_action(
        &self,
        arithmetic: &Arithmetic,
        d: &Array,
        x: &Array,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        self.run(arithmetic, "project_action_at", &[&self.normals], &[y, d, x], &[])
    }

    /// Sets all entries of a node to Σ_c w_c |y_c|, or to 1 if this is not positive.
    pub fn average(&self, arithmetic: &Arithmetic, y: &mut Array) -> Result<(), DeviceError> {
        self.run(arithmetic, "average_at", &[&self.weights], &[y], &[])
    }
}
