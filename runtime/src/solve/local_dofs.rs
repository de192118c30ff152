//! Degrees of freedom that are coupled among themselves only inside a cell, and the inverse of their block D of the
//! Jacobian: LU factors, one block per cell.

use super::{LinearOperator, OperatorError};
use crate::algebra::sparse::Csr;
use crate::algebra::vector::{Vector, epsilon};
use crate::support::parallel::*;

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
    /// Sets of cells that are not coupled with each other, each with its own products and as many on all processes;
    /// empty if no cells are coupled.
    pub colours: Vec<Vec<u32>>,
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
        let all = [(0..cells as u32).collect()];
        let colours = if self.colours.is_empty() { &all[..] } else { &self.colours };
        for (set, colour) in
            self.products.iter().flat_map(|set| colours.iter().map(move |of| (set, of)))
        {
            let mut ones = vec![0.0; like.len()];
            for &cell in colour {
                let dofs = &self.dofs[cell as usize * self.of_cell..][..self.of_cell];
                set.iter().for_each(|&place| ones[dofs[place] as usize] = 1.0);
            }
            x.set(&ones);
            x.synchronise();
            jacobian.apply(&x, &mut y)?;
            let y = self.gather(&y.to_vec());
            for &cell in colour {
                let block = &mut blocks[cell as usize * stride..][..stride];
                let y = &y[cell as usize * self.of_cell..][..self.of_cell];
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
    pub(super) others: Vector,
}

impl BlockInverse {
    /// Computes z = D⁻¹ r, and 0 in all other entries.
    pub(super) fn apply(&self, local: &LocalDofs, r: &Vector, z: &mut Vector) {
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

    /// Returns D⁻¹ as a matrix for vectors of length `n`, without entries in all other rows.
    pub(super) fn matrix(&self, local: &LocalDofs, n: usize) -> Csr {
        let of_cell = local.of_cell.max(1);
        let mut place_of = vec![usize::MAX; n];
        local.dofs.iter().enumerate().for_each(|(place, &dof)| place_of[dof as usize] = place);
        let mut home = vec![(0, 0); local.of_cell];
        for (number, cluster) in local.clusters.iter().enumerate() {
            cluster.iter().enumerate().for_each(|(row, &place)| home[place] = (number, row));
        }
        // Row i of D⁻¹ solves Dᵀ x = e_i.
        Csr::by_rows((n, n), Vec::new, |dof, own: &mut Vec<(u32, f64)>, rows| {
            let Some(&place) = place_of.get(dof).filter(|place| **place != usize::MAX) else {
                return;
            };
            let (cell, (number, row)) = (place / of_cell, home[place % of_cell]);
            let (cluster, first) = (&local.clusters[number], self.firsts[number]);
            let size = cluster.len();
            let block = &self.blocks[cell * self.stride + self.starts[number]..][..size * size];
            let pivots = &self.pivots[cell * of_cell + first..][..size];
            let mut x = vec![0.0; size];
            x[row] = 1.0;
            solve_transposed(block, pivots, &mut x);
            let dofs = &local.dofs[cell * of_cell..][..of_cell];
            own.clear();
            own.extend(cluster.iter().map(|&place| dofs[place]).zip(x));
            own.sort_unstable_by_key(|(column, _)| *column);
            own.iter().for_each(|&(column, value)| rows.push(column, value));
        })
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

/// Solves with the transpose of the factorised matrix.
fn solve_transposed(factors: &[f64], pivots: &[u32], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        let sum: f64 = (0..i).map(|j| factors[j * n + i] * x[j]).sum();
        x[i] = (x[i] - sum) / factors[i * n + i];
    }
    for i in (0..n).rev() {
        let sum: f64 = (i + 1..n).map(|j| factors[j * n + i] * x[j]).sum();
        x[i] -= sum;
    }
    for (k, &pivot) in pivots.iter().enumerate().rev() {
        x.swap(k, pivot as usize);
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
        let mut x = [3.0, 2.0, 7.0];
        solve_transposed(&a, &pivots, &mut x);
        for (column, b) in [3.0, 2.0, 7.0].into_iter().enumerate() {
            let sum: f64 = (0..3).map(|row| whole[3 * row + column] * x[row]).sum();
            assert!((sum - b).abs() < 1e-14);
        }
        assert!(!factorise(&mut [1.0, 2.0, 2.0, 4.0], &mut [0; 2], SINGULAR));
    }
}
