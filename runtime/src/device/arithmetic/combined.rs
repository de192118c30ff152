//! Nodes where combinations of components have conditions, N u = g, on a device.

use super::{Arithmetic, THREADS, groups};
use crate::device::{Array, DeviceError, Given};

/// Entries a node.
pub const WIDTH: usize = 3;

/// In the place of an entry that a node does not have.
pub const NONE: u32 = u32::MAX;

/// The tables of such nodes.
#[derive(Clone, Debug, Default)]
pub struct Combinations {
    /// The places of the node's entries in a vector.
    pub dofs: Vec<[u32; WIDTH]>,
    /// N, symmetric with N² = N.
    pub given: Vec<[[f64; WIDTH]; WIDTH]>,
    /// g.
    pub values: Vec<[f64; WIDTH]>,
    /// P_cc / Σ P_cc with P = I − N.
    pub weights: Vec<[f64; WIDTH]>,
}

/// Such nodes, on a device.
#[derive(Debug)]
pub struct Combined {
    nodes: usize,
    dofs: Array,
    given: Array,
    values: Array,
    weights: Array,
    /// The length of vectors.
    len: usize,
}

impl Combined {
    /// Those of vectors of length `len`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for entries that such vectors do not have; a driver that fails.
    pub fn new(
        arithmetic: &Arithmetic,
        len: usize,
        of: &Combinations,
    ) -> Result<Self, DeviceError> {
        let dofs = of.dofs.as_flattened();
        if dofs.iter().any(|&dof| dof != NONE && dof as usize >= len) {
            return Err(DeviceError::Mismatch { operation: "list combinations" });
        }
        Ok(Self {
            nodes: of.dofs.len(),
            dofs: arithmetic.device.upload(dofs)?,
            given: arithmetic.upload(of.given.as_flattened().as_flattened())?,
            values: arithmetic.upload(of.values.as_flattened())?,
            weights: arithmetic.upload(of.weights.as_flattened())?,
            len,
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// How many values there are.
    pub fn n_values(&self) -> usize {
        self.nodes * WIDTH
    }

    /// Replaces the values.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Mismatch`] for another number of values; a driver that fails.
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
        after: &[Given<'_>],
    ) -> Result<(), DeviceError> {
        arithmetic.same(name, vectors, self.len)?;
        if self.nodes == 0 {
            return Ok(());
        }
        let groups = groups(self.nodes);
        let mut given =
            vec![Given::Size(self.nodes as u64), Given::Size((groups * THREADS) as u64)];
        given.push(Given::Array(&self.dofs));
        given.extend(tables.iter().chain(vectors).map(|array| Given::Array(array)));
        given.extend(after);
        // SAFETY: these kernels of `TEXT` take n nodes, the places of three entries of each, which `new` has compared with
        // the length of vectors, tables of as many nodes in this precision, made together there, and vectors of that
        // length, as has just been checked.
        unsafe { arithmetic.device.start(arithmetic.kernel(name)?, groups, &given) }
    }

    /// y ← P y, and + the values where these are wanted.
    ///
    /// # Errors
    ///
    /// For this and all that follows: vectors of another length, a driver that fails.
    pub fn hold(
        &self,
        arithmetic: &Arithmetic,
        y: &mut Array,
        values: bool,
    ) -> Result<(), DeviceError> {
        let a = Given::Real(if values { 1.0 } else { 0.0 });
        self.run(arithmetic, "hold_at", &[&self.given, &self.values], &[y], &[a])
    }

    /// y ← P y + N (d x).
    pub fn hold_as(
        &self,
        arithmetic: &Arithmetic,
        d: &Array,
        x: &Array,
        y: &mut Array,
    ) -> Result<(), DeviceError> {
        self.run(arithmetic, "hold_as", &[&self.given], &[y, d, x], &[])
    }

    /// The mean of a node's entries in what conditions leave, in each of them.
    pub fn even(&self, arithmetic: &Arithmetic, y: &mut Array) -> Result<(), DeviceError> {
        self.run(arithmetic, "even_at", &[&self.weights], &[y], &[])
    }
}
