//! Assembled matrix of an operator with oblique conditions or affine constraints, computed from the unconstrained
//! matrix of its element matrices.
//!
//! ```text
//! T  = C P                          preprocessing of vectors
//! A' = Tᵀ A T + N D + G             with P = I − N, and G the identity in dependent rows
//! ```
//!
//! A' is the matrix that [`super::Operator`] applies: P, N and D are defined in [`super::oblique`], C in
//! [`super::affine`]. T is the identity except in affected rows; the sparse products run on the host. With several
//! processes, each has A of its own cells. The owner of a degree of freedom adds N D + G, so that the matrices of all
//! processes sum to A'.

use super::Operator;
use super::oblique;
use crate::algebra::csr::Csr;
use crate::device::{CombinationTables, NONE};
use crate::solve::OperatorError;
use std::collections::BTreeMap;

impl Operator {
    /// Converts the sum of the element matrices to the matrix that this operator applies.
    ///
    /// # Errors
    ///
    /// A product with more columns than 32-bit indices can address.
    pub(crate) fn closed(&self, matrix: Csr) -> Result<Csr, OperatorError> {
        let Some(combined) = &self.combined else { return Ok(matrix) };
        let on = &self.blocks.on;
        let (n, nodes) = (on.n_dofs(), oblique::combinations(on, |dof| dof));
        let held = held(n, &nodes);
        let affine = &on.affine;
        let row = |i: usize, row: &mut Vec<(u32, f64)>| match affine.row_of(i) {
            Some(given) => {
                for &(read, factor) in affine.terms().of(given) {
                    row.extend(held.row(read as usize).map(|(j, p)| (j as u32, factor * p)));
                }
            }
            None => row.extend(held.row(i).map(|(j, p)| (j as u32, p))),
        };
        let taken = rows(n, row);
        let columns = product(&matrix, &taken);
        drop(matrix);
        let own = product(&transposed(&taken), &columns);
        let mut more: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let sharing = on.sharing();
        let counts = |dof: u32| sharing.as_ref().is_none_or(|all| !all.is_of_others(dof as usize));
        affine.unknowns().iter().filter(|&&given| counts(given)).for_each(|&given| {
            more.insert((given, given), 1.0);
        });
        if let Some(diagonal) = &combined.diagonal {
            let d = diagonal.to_vec();
            for (dofs, given) in nodes.dofs.iter().zip(&nodes.given) {
                let own = |dof: u32| dof != NONE && counts(dof);
                for (&i, row) in dofs.iter().zip(given).filter(|(dof, _)| own(**dof)) {
                    for (&j, value) in dofs.iter().zip(row).filter(|(dof, _)| **dof != NONE) {
                        *more.entry((i, j)).or_insert(0.0) += value * d[j as usize];
                    }
                }
            }
        }
        let row = |i: usize, row: &mut Vec<(u32, f64)>| {
            row.extend(own.row(i).map(|(j, value)| (j as u32, value)));
            let i = i as u32;
            row.extend(more.range((i, 0)..=(i, u32::MAX)).map(|(&(_, j), &value)| (j, value)));
        };
        let mut closed = rows(n, row);
        closed.drop_zeros();
        Ok(closed)
    }
}

/// Returns P.
fn held(n: usize, nodes: &CombinationTables) -> Csr {
    let mut of_dof: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (node, dofs) in nodes.dofs.iter().enumerate() {
        for (c, &dof) in dofs.iter().enumerate().filter(|(_, dof)| **dof != NONE) {
            of_dof.insert(dof, (node, c));
        }
    }
    rows(n, |i, row| {
        row.push((i as u32, 1.0));
        if let Some(&(node, c)) = of_dof.get(&(i as u32)) {
            let all = nodes.dofs[node].iter().zip(&nodes.given[node][c]);
            row.extend(all.filter(|(dof, _)| **dof != NONE).map(|(&dof, given)| (dof, -given)));
        }
    })
}

/// Builds a matrix from its rows; duplicate columns are summed in order.
fn rows(n: usize, of: impl Fn(usize, &mut Vec<(u32, f64)>) + Sync) -> Csr {
    Csr::by_rows(n, Vec::new, |i, row, rows| {
        row.clear();
        of(i, row);
        row.sort_by_key(|(column, _)| *column);
        for same in row.chunk_by(|a, b| a.0 == b.0) {
            rows.push(same[0].0, same.iter().map(|(_, value)| value).sum());
        }
    })
}

/// Computes A B.
fn product(a: &Csr, b: &Csr) -> Csr {
    rows(a.size(), |i, row| {
        for (k, value) in a.row(i) {
            row.extend(b.row(k).map(|(j, other)| (j as u32, value * other)));
        }
    })
}

fn transposed(matrix: &Csr) -> Csr {
    let columns = matrix.by_columns();
    Csr { starts: columns.starts, columns: columns.rows, values: columns.values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_dense_matrices() {
        let a = Csr { starts: vec![0, 2, 3], columns: vec![0, 1, 1], values: vec![1.0, 2.0, 3.0] };
        let b = Csr { starts: vec![0, 1, 3], columns: vec![1, 0, 1], values: vec![4.0, 5.0, -2.0] };
        let found = product(&a, &b);
        assert_eq!((found.starts, found.columns), (vec![0, 2, 4], vec![0, 1, 0, 1]));
        assert_eq!(found.values, [10.0, 0.0, 15.0, -6.0]);
        assert_eq!(transposed(&a).values, [1.0, 2.0, 3.0]);
        assert_eq!(transposed(&a).columns, [0, 0, 1]);
    }
}
