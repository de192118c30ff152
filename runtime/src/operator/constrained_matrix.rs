//! Assembled matrix of an operator with oblique conditions or affine constraints, computed from the unconstrained
//! matrix of its element matrices.
//!
//! ```text
//! T  = C P                          preprocessing of vectors
//! A' = Tᵀ A T + N D + G             with P = I − N, and G the identity in dependent rows
//! ```
//!
//! A' is the matrix that [`super::Operator`] applies: P, N and D are defined in [`oblique`], C in
//! [`super::constraints::affine`]. T is the identity except in affected rows; the sparse products run on the host. With several
//! processes, each has A of its own cells. The owner of a degree of freedom adds N D + G, so that the matrices of all
//! processes sum to A'.

use super::Operator;
use super::constraints::oblique;
use crate::algebra::sparse::Csr;
use crate::algebra::sparse::products::product;
use crate::device::{CombinationTables, NONE};
use crate::solve::OperatorError;
use std::collections::BTreeMap;

impl Operator {
    /// Converts the sum of the element matrices to the matrix that this operator applies.
    ///
    /// # Errors
    ///
    /// A product with more columns than 32-bit indices can address.
    pub(crate) fn condensed(&self, matrix: Csr) -> Result<Csr, OperatorError> {
        let Some(combined) = &self.combined else { return Ok(matrix) };
        let on = &self.blocks.on;
        let (n, nodes) = (on.n_dofs(), oblique::combinations(on, |dof| dof));
        let projection = projection(n, &nodes);
        let affine = &on.affine;
        let row = |i: usize, row: &mut Vec<(u32, f64)>| match affine.row_of(i) {
            Some(given) => {
                for &(read, factor) in affine.terms().of(given) {
                    row.extend(projection.row(read as usize).map(|(j, p)| (j as u32, factor * p)));
                }
            }
            None => row.extend(projection.row(i).map(|(j, p)| (j as u32, p))),
        };
        let taken = rows(n, row);
        let columns = product(&matrix, &taken);
        drop(matrix);
        let own = product(&taken.transposed(), &columns);
        let mut more: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        let sharing = on.sharing();
        let counts = |dof: u32| sharing.as_ref().is_none_or(|all| !all.is_of_others(dof as usize));
        affine.unknowns().iter().filter(|&&given| counts(given)).for_each(|&given| {
            more.insert((given, given), 1.0);
        });
        if let Some(diagonal) = &combined.diagonal {
            let d = diagonal.to_vec();
            for (dofs, given) in nodes.dofs.iter().zip(&nodes.normals) {
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
        let mut condensed = rows(n, row);
        condensed.drop_zeros();
        Ok(condensed)
    }
}

/// Returns P.
fn projection(n: usize, nodes: &CombinationTables) -> Csr {
    let mut of_dof: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (node, dofs) in nodes.dofs.iter().enumerate() {
        for (c, &dof) in dofs.iter().enumerate().filter(|(_, dof)| **dof != NONE) {
            of_dof.insert(dof, (node, c));
        }
    }
    rows(n, |i, row| {
        row.push((i as u32, 1.0));
        if let Some(&(node, c)) = of_dof.get(&(i as u32)) {
            let all = nodes.dofs[node].iter().zip(&nodes.normals[node][c]);
            row.extend(all.filter(|(dof, _)| **dof != NONE).map(|(&dof, given)| (dof, -given)));
        }
    })
}

/// Builds a matrix from its rows; duplicate columns are summed in order.
fn rows(n: usize, of: impl Fn(usize, &mut Vec<(u32, f64)>) + Sync) -> Csr {
    Csr::by_rows((n, n), Vec::new, |i, row, rows| {
        row.clear();
        of(i, row);
        row.sort_by_key(|(column, _)| *column);
        for same in row.chunk_by(|a, b| a.0 == b.0) {
            rows.push(same[0].0, same.iter().map(|(_, value)| value).sum());
        }
    })
}
