//! Affine constraints u = C u + g (dependent degrees of freedom): pre- and post-processing of vectors around the
//! kernels, which are unaware of them.
//!
//! ```text
//! residual    Cᵀ R(C u + g), 0 in dependent rows      impose    u ← C u + g
//! action      Cᵀ A C x, and x in dependent rows       diagonal  see below
//! ```
//!
//! The diagonal also contains off-diagonal entries of A: with the rows i that depend on a degree of freedom j,
//!
//! ```text
//! (Cᵀ A C)_jj = A_jj + Σ_i c_ij (A_ij + A_ji) + Σ_ik c_ij c_kj A_ik
//! ```
//!
//! These entries lie in the columns of dependent DoFs, except A_ij. For symmetric A they equal A_ji; otherwise they lie
//! in the columns of those j that share a cell with i. The columns are read off by products with 0/1 vectors, many at
//! once ([`Coupling`]).

use crate::algebra::coupling::Coupling;
use crate::algebra::sparse::Csc;
use crate::algebra::vector::Real;
use crate::device::EntryLists;
use crate::space::constraint::affine::{AffineConstraints, TermLists};
use crate::space::discretisation::Discretisation;
use crate::support::parallel::*;

/// Minimum number of terms per task.
const GRAIN: usize = 1 << 12;

/// Sparse rows of affine constraints.
pub(super) struct ConstraintRows {
    /// C for increments: constrained degrees of freedom are 0 there.
    pub(super) homogeneous: EntryLists,
    /// C and g, with the values of constrained degrees of freedom; `None` if no constraint depends on one.
    pub(super) with_fixed: Option<EntryLists>,
    /// Cᵀ.
    pub(super) transposed: EntryLists,
    /// Dependent degrees of freedom.
    pub(super) dependent: Vec<u32>,
}

impl ConstraintRows {
    /// Creates the rows of a discretisation; `place` maps degrees of freedom to positions in a vector.
    pub(super) fn new(affine: &AffineConstraints, place: impl Fn(usize) -> usize) -> Self {
        let placed = |dofs: &[u32]| dofs.iter().map(|&dof| place(dof as usize) as u32).collect();
        let dependent: Vec<u32> = placed(affine.unknowns());
        let lists = |dofs: Vec<u32>, terms: &[&TermLists], values: Vec<f64>| {
            let mut lists = EntryLists { dofs, starts: vec![0], values, ..EntryLists::default() };
            for row in 0..lists.dofs.len() {
                for &(term, factor) in terms.iter().flat_map(|terms| terms.of(row)) {
                    lists.terms.push(place(term as usize) as u32);
                    lists.factors.push(factor);
                }
                lists.starts.push(lists.terms.len());
            }
            lists
        };
        let (read, rows) = affine.transposed();
        let values = affine.values().to_vec();
        let with_fixed = (!affine.fixed().entries.is_empty())
            .then(|| lists(dependent.clone(), &[affine.terms(), affine.fixed()], values.clone()));
        let none = vec![0.0; read.len()];
        Self {
            homogeneous: lists(dependent.clone(), &[affine.terms()], values),
            with_fixed,
            transposed: lists(placed(&read), &[&rows], none),
            dependent,
        }
    }

    /// Returns C and g.
    pub(super) fn inhomogeneous(&self) -> &EntryLists {
        self.with_fixed.as_ref().unwrap_or(&self.homogeneous)
    }
}

/// Computes y_i ← keep · y_i + Σ_k c_ik y_k + a · g_i.
pub(super) fn sum<T: Real>(lists: &EntryLists, keep: f64, a: f64, y: &mut [T]) {
    let entry = |dof: u32| -> f64 { y[dof as usize].into() };
    let of = |sum: usize| {
        let range = lists.starts[sum]..lists.starts[sum + 1];
        let (terms, factors) = (&lists.terms[range.clone()], &lists.factors[range]);
        let part = |(terms, factors): (&[u32], &[f64])| -> f64 {
            terms.iter().zip(factors).map(|(&term, factor)| factor * entry(term)).sum()
        };
        // Parts of equal length make sums independent of the number of threads.
        let listed: f64 = if terms.len() <= GRAIN {
            part((terms, factors))
        } else {
            let parts = terms.par_chunks(GRAIN).zip(factors.par_chunks(GRAIN));
            parts.map(part).listed().iter().sum()
        };
        keep * entry(lists.dofs[sum]) + listed + a * lists.values[sum]
    };
    let sums: Vec<f64> = (0..lists.dofs.len()).into_par_iter().with_min_len(GRAIN).map(of).listed();
    lists.dofs.iter().zip(sums).for_each(|(&dof, sum)| y[dof as usize] = T::from_f64(sum));
}

/// Returns the pattern of the columns needed for the diagonal.
pub(in crate::operator) fn columns(on: &Discretisation, symmetric: bool) -> Coupling {
    let affine = &on.affine;
    let mut wanted = vec![false; on.n_dofs()];
    affine.unknowns().iter().for_each(|&unknown| wanted[unknown as usize] = true);
    if symmetric {
        return Coupling::of_columns(on, &wanted);
    }
    let dependent = Coupling::of_columns(on, &wanted);
    for (row, &unknown) in affine.unknowns().iter().enumerate() {
        let coupled = dependent.coupled_with(unknown as usize);
        let read = affine.terms().of(row).iter().map(|(term, _)| *term);
        read.filter(|term| coupled.binary_search(term).is_ok())
            .for_each(|term| wanted[term as usize] = true);
    }
    Coupling::of_columns(on, &wanted)
}

/// Turns the diagonal of A into that of Cᵀ A C, with 1 in dependent rows; `columns` are those of [`columns`].
pub(in crate::operator) fn condense_diagonal(
    affine: &AffineConstraints,
    columns: &Csc,
    symmetric: bool,
    diagonal: &mut [f64],
) {
    for (row, &unknown) in affine.unknowns().iter().enumerate() {
        let own = affine.terms().of(row);
        let factor = |unknown: u32| {
            own.binary_search_by_key(&unknown, |(term, _)| *term).ok().map(|at| own[at].1)
        };
        for (other, entry) in columns.column(unknown as usize) {
            if let Some(row) = affine.row_of(other) {
                for &(read, c) in affine.terms().of(row) {
                    if let Some(own) = factor(read) {
                        diagonal[read as usize] += c * own * entry;
                    }
                }
            } else if let Some(c) = factor(other as u32) {
                diagonal[other] += if symmetric { 2.0 * c * entry } else { c * entry };
            }
        }
        if symmetric {
            continue;
        }
        for &(read, c) in own {
            let mut entries = columns.column(read as usize);
            if let Some((_, entry)) = entries.find(|(row, _)| *row == unknown as usize) {
                diagonal[read as usize] += c * entry;
            }
        }
    }
    affine.unknowns().iter().for_each(|&unknown| diagonal[unknown as usize] = 1.0);
}
