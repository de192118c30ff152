//! Static condensation of degrees of freedom that are coupled among themselves only inside a cell.
//!
//! ```text
//! [A B; C D] [u; s] = [f; g]     S u = f − B D⁻¹ g,   S = A − B D⁻¹ C,   s = D⁻¹ (g − C u)
//! ```
//!
//! D has one block per cell, stored as LU factors. S is applied by two products with the Jacobian. One suffices if no
//! other equation contains s (B = 0): then S equals A. Vectors keep all entries; in the condensed system those of s are
//! 0, with identity rows.

use super::{LinearOperator, NonlinearSystem, OperatorError, Wrapper};
use crate::algebra::coupling::Coupling;
use crate::algebra::linear::{Multiply, SPARSE, WHOLE};
use crate::algebra::vector::{Vector, epsilon};
use crate::support::parallel::*;
use std::sync::Arc;

/// Pivot threshold of a singular block, relative to its largest entry,
const SINGULAR: f64 = 1e-12;
/// and in multiples of eps of the entries' precision.
const ROUNDING: f64 = 16.0;

/// Cell-local degrees of freedom and their coupling.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalDofs {
    /// Degrees of freedom of all cells, concatenated.
    pub dofs: Vec<u32>,
    /// Number per cell.
    pub of_cell: usize,
    /// Clusters of mutually coupled degrees of freedom, by local index in the cell.
    pub clusters: Vec<Vec<usize>>,
    /// Sets of local indices whose columns one product with the Jacobian yields: no row of a cell is coupled with two
    /// of a set.
    pub products: Vec<Vec<usize>>,
    /// True if other equations contain them: B is not 0.
    pub is_read: bool,
    /// True if S is symmetric.
    pub symmetric: bool,
}

impl LocalDofs {
    /// Gathers their entries from a vector, cell by cell.
    fn gather(&self, entries: &[f64]) -> Vec<f64> {
        self.dofs.iter().map(|&dof| entries[dof as usize]).collect()
    }

    /// Inverts D of a system's Jacobian; `None` if a block is singular on any process.
    pub(super) fn invert(
        &self,
        jacobian: &dyn LinearOperator,
        like: &Vector,
    ) -> Result<Option<BlockInverse>, OperatorError> {
        let cells = self.dofs.len() / self.of_cell.max(1);
        let (mut x, mut y) = (like.like(), like.like());
        let mut home = vec![(0, 0); self.of_cell];
        for (number, cluster) in self.clusters.iter().enumerate() {
            cluster.iter().enumerate().for_each(|(at, &place)| home[place] = (number, at));
        }
        let sizes: Vec<usize> = self.clusters.iter().map(Vec::len).collect();
        let squares: Vec<usize> = sizes.iter().map(|size| size * size).collect();
        let (starts, firsts) = (starts_of(&squares), starts_of(&sizes));
        let stride: usize = squares.iter().sum();
        let mut blocks = vec![0.0; cells * stride];
        for set in &self.products {
            let mut ones = vec![0.0; like.len()];
            for cell in self.dofs.chunks_exact(self.of_cell) {
                set.iter().for_each(|&place| ones[cell[place] as usize] = 1.0);
            }
            x.set(&ones);
            jacobian.apply(&x, &mut y)?;
            let y = self.gather(&y.to_vec());
            let each = blocks.chunks_exact_mut(stride.max(1)).zip(y.chunks_exact(self.of_cell));
            for (block, y) in each {
                for &place in set {
                    let (number, column) = home[place];
                    let (start, size) = (starts[number], sizes[number]);
                    for (row, &of) in self.clusters[number].iter().enumerate() {
                        // Other members of the set belong to other clusters.
                        block[start + row * size + column] = y[of];
                    }
                }
            }
        }
        let least = SINGULAR.max(ROUNDING * epsilon(like.precision()));
        let mut pivots = vec![0u32; cells * self.of_cell];
        let regular = blocks
            .par_chunks_exact_mut(stride.max(1))
            .zip(pivots.par_chunks_exact_mut(self.of_cell.max(1)))
            .map(|(block, pivots)| {
                (0..sizes.len()).all(|number| {
                    let (start, size) = (starts[number], sizes[number]);
                    let first = firsts[number];
                    factorise(
                        &mut block[start..start + size * size],
                        &mut pivots[first..first + size],
                        least,
                    )
                })
            })
            .listed();
        let is_singular = like.any(regular.contains(&false));
        let ones: Vec<f64> = {
            let mut ones = vec![1.0; like.len()];
            self.dofs.iter().for_each(|&dof| ones[dof as usize] = 0.0);
            ones
        };
        x.set(&ones);
        let inverse = BlockInverse { blocks, pivots, starts, firsts, stride, others: x };
        Ok((!is_singular).then_some(inverse))
    }
}

/// Returns the prefix sums of sizes.
fn starts_of(sizes: &[usize]) -> Vec<usize> {
    let next = |sum: &mut usize, size: &usize| Some(std::mem::replace(sum, *sum + size));
    sizes.iter().scan(0, next).collect()
}

/// D⁻¹, as the factors of its blocks.
pub(super) struct BlockInverse {
    blocks: Vec<f64>,
    pivots: Vec<u32>,
    /// Offsets of each cluster's factors and pivots within those of a cell.
    starts: Vec<usize>,
    firsts: Vec<usize>,
    stride: usize,
    /// Mask: 1 in all other degrees of freedom, 0 in those of D.
    others: Vector,
}

impl BlockInverse {
    /// Computes z = D⁻¹ r, and 0 in all other entries.
    fn apply(&self, local: &LocalDofs, r: &Vector, z: &mut Vector) {
        let own = local.gather(&r.to_vec());
        let mut solved = vec![0.0; own.len()];
        let of_cell = local.of_cell.max(1);
        solved
            .par_chunks_exact_mut(of_cell)
            .zip(own.par_chunks_exact(of_cell))
            .zip(self.blocks.par_chunks_exact(self.stride.max(1)))
            .zip(self.pivots.par_chunks_exact(of_cell))
            .each(|(((solved, own), block), pivots)| {
                for (number, cluster) in local.clusters.iter().enumerate() {
                    let (start, first, size) =
                        (self.starts[number], self.firsts[number], cluster.len());
                    let mut x: Vec<f64> = cluster.iter().map(|&place| own[place]).collect();
                    solve(&block[start..start + size * size], &pivots[first..first + size], &mut x);
                    cluster.iter().zip(x).for_each(|(&place, x)| solved[place] = x);
                }
            });
        let mut entries = vec![0.0; r.len()];
        local.dofs.iter().zip(solved).for_each(|(&dof, x)| entries[dof as usize] = x);
        z.set(&entries);
    }
}

/// Overwrites a row-major matrix by its factors L U and pivot rows. Returns false for a singular matrix: if a pivot is
/// below `least` times the largest entry.
fn factorise(a: &mut [f64], pivots: &mut [u32], least: f64) -> bool {
    let n = pivots.len();
    let largest = a.iter().fold(0.0f64, |most, entry| most.max(entry.abs()));
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs()));
        let pivot = pivot.unwrap_or(k);
        pivots[k] = pivot as u32;
        let size = a[pivot * n + k].abs();
        // False for NaN.
        let is_regular = size > least * largest;
        if !is_regular {
            return false;
        }
        if pivot != k {
            (0..n).for_each(|j| a.swap(k * n + j, pivot * n + j));
        }
        let (upper, lower) = a.split_at_mut((k + 1) * n);
        let row = &upper[k * n..];
        for other in lower.chunks_exact_mut(n) {
            other[k] /= row[k];
            let factor = other[k];
            for j in k + 1..n {
                other[j] -= factor * row[j];
            }
        }
    }
    true
}

/// Solves with such factors.
fn solve(factors: &[f64], pivots: &[u32], x: &mut [f64]) {
    let n = x.len();
    for (k, &pivot) in pivots.iter().enumerate() {
        x.swap(k, pivot as usize);
    }
    for i in 0..n {
        let sum: f64 = (0..i).map(|j| factors[i * n + j] * x[j]).sum();
        x[i] -= sum;
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| factors[i * n + j] * x[j]).sum();
        x[i] = (x[i] - sum) / factors[i * n + i];
    }
}

/// S, with identity rows for s.
struct SchurComplement<'a> {
    jacobian: &'a dyn LinearOperator,
    local: &'a LocalDofs,
    inverse: &'a BlockInverse,
    multiply: Multiply,
}

impl SchurComplement<'_> {
    /// Computes y −= B D⁻¹ r in all other rows.
    fn subtract_local(&self, r: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let (mut z, mut product) = (r.like(), r.like());
        self.inverse.apply(self.local, r, &mut z);
        (self.multiply)(self.jacobian, &z, &mut product)?;
        y.axpy(-1.0, &product);
        Ok(())
    }

    /// Computes y = S x.
    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        let others = &self.inverse.others;
        let mut own = x.clone();
        own.multiply(others);
        (self.multiply)(self.jacobian, &own, y)?;
        if self.local.is_read {
            let r = y.clone();
            self.subtract_local(&r, y)?;
        }
        y.multiply(others);
        y.axpy(1.0, x);
        y.axpy(-1.0, &own);
        Ok(())
    }
}

/// The condensed system at the last linearisation.
pub(super) struct CondensedSystem<'a> {
    system: &'a mut dyn NonlinearSystem,
    local: Arc<LocalDofs>,
    inverse: &'a BlockInverse,
}

impl<'a> CondensedSystem<'a> {
    pub(super) fn new(
        system: &'a mut dyn NonlinearSystem,
        local: Arc<LocalDofs>,
        inverse: &'a BlockInverse,
    ) -> Self {
        Self { system, local, inverse }
    }

    fn schur(&self, multiply: Multiply) -> SchurComplement<'_> {
        let jacobian = self.system.jacobian();
        SchurComplement { jacobian, local: &self.local, inverse: self.inverse, multiply }
    }

    /// Returns f − B D⁻¹ g, with 0 in the rows of s.
    pub(super) fn load(&self, rhs: &Vector) -> Result<Vector, OperatorError> {
        let mut load = rhs.clone();
        if self.local.is_read {
            self.schur(WHOLE).subtract_local(rhs, &mut load)?;
        }
        load.multiply(&self.inverse.others);
        Ok(load)
    }

    /// Adds s = D⁻¹ (g − C u) to a solution u.
    pub(super) fn complete(&self, rhs: &Vector, u: &mut Vector) -> Result<(), OperatorError> {
        u.multiply(&self.inverse.others);
        let (mut left, mut s) = (u.like(), u.like());
        self.system.jacobian().apply(u, &mut left)?;
        left.axpby(1.0, rhs, -1.0);
        self.inverse.apply(&self.local, &left, &mut s);
        u.axpy(1.0, &s);
        Ok(())
    }
}

impl LinearOperator for CondensedSystem<'_> {
    fn size(&self) -> usize {
        self.system.size()
    }

    fn apply(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.schur(WHOLE).apply(x, y)
    }

    /// Applies the sparse part of S: the vectors in the projections of A are 0 in s.
    fn apply_sparse(&self, x: &Vector, y: &mut Vector) -> Result<(), OperatorError> {
        self.schur(SPARSE).apply(x, y)
    }
}

impl Wrapper for CondensedSystem<'_> {
    fn inner(&self) -> &dyn NonlinearSystem {
        self.system
    }

    fn inner_mut(&mut self) -> &mut dyn NonlinearSystem {
        self.system
    }

    fn jacobian(&self) -> &dyn LinearOperator {
        self
    }

    /// Approximates the diagonal of S by that of A.
    fn diagonal(&self, diagonal: &mut Vector) -> Result<(), OperatorError> {
        self.system.diagonal(diagonal)?;
        diagonal.multiply(&self.inverse.others);
        let mut ones = diagonal.like();
        ones.fill(1.0);
        diagonal.axpy(1.0, &ones);
        diagonal.axpy(-1.0, &self.inverse.others);
        Ok(())
    }

    fn symmetric(&self) -> bool {
        self.local.symmetric
    }

    fn local(&self) -> Option<Arc<LocalDofs>> {
        None
    }

    fn coupling(&self) -> Option<Coupling> {
        self.system.coupling().map(|coupling| coupling.without(&self.local.dofs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_factorised_with_pivots() {
        let mut a = [0.0, 2.0, 1.0, 1.0, 1.0, 0.0, 4.0, 0.0, 3.0];
        let (whole, mut pivots) = (a, [0; 3]);
        assert!(factorise(&mut a, &mut pivots, SINGULAR));
        let mut x = [3.0, 2.0, 7.0];
        solve(&a, &pivots, &mut x);
        for (row, b) in whole.chunks_exact(3).zip([3.0, 2.0, 7.0]) {
            let sum: f64 = row.iter().zip(x).map(|(a, x)| a * x).sum();
            assert!((sum - b).abs() < 1e-14);
        }
        assert!(!factorise(&mut [1.0, 2.0, 2.0, 4.0], &mut [0; 2], SINGULAR));
    }
}
