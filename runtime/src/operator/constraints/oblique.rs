//! Oblique conditions N u = g on combinations of a node's components: pre- and post-processing of vectors around the
//! kernels, which are unaware of them.
//!
//! ```text
//! residual    P R(u)                   impose    u ← P u + g
//! action      P A P x + D N x          diagonal  D = Σ_c P_cc |A_cc| / Σ_c P_cc in all components of the node
//! ```
//!
//! with P = I − N. D is a multiple of the identity at a node and commutes with P, so that the Jacobi method preserves
//! the unconstrained directions. It also scales the rows of N like adjacent rows, as factorisations require.

use crate::algebra::vector::Real;
use crate::device::{CombinationTables, NONE, WIDTH};
use crate::space::discretisation::Discretisation;

/// Oblique conditions of host vectors.
pub(super) struct ObliqueConditions(pub(super) CombinationTables);

/// Collects the oblique conditions of a discretisation; `place` maps degrees of freedom to positions in a vector.
/// Individually constrained ones are excluded.
pub(in crate::operator) fn combinations(
    on: &Discretisation,
    place: impl Fn(usize) -> usize,
) -> CombinationTables {
    let mut tables = CombinationTables::default();
    for (number, field) in on.fields.iter().enumerate() {
        let (start, components) = (on.dofs_of(number).start, field.space.components());
        for own in field.constraints.oblique() {
            let first = own.node as usize * components;
            let free = |c: usize| c < components && !field.constraints.is_constrained(first + c);
            let dof = |c: usize| if free(c) { place(start + first + c) as u32 } else { NONE };
            let left = |c: usize| if free(c) { 1.0 - own.normals[c][c] } else { 0.0 };
            let sum: f64 = (0..WIDTH).map(left).sum();
            tables.dofs.push(std::array::from_fn(dof));
            tables.normals.push(own.normals);
            tables.values.push(own.value);
            tables.weights.push(std::array::from_fn(|c| left(c) / sum));
        }
    }
    tables
}

impl ObliqueConditions {
    /// Computes y ← P y, plus g if `values` is true.
    pub(super) fn project<T: Real>(&self, y: &mut [T], values: bool) {
        for ((dofs, normals), value) in self.0.dofs.iter().zip(&self.0.normals).zip(&self.0.values)
        {
            let own = at(y, dofs);
            let left = std::array::from_fn(|c| own[c] - if values { value[c] } else { 0.0 });
            take(y, dofs, normals, left);
        }
    }

    /// Computes y ← P y + N (d x).
    pub(super) fn project_action<T: Real>(&self, y: &mut [T], d: &[T], x: &[T]) {
        for (dofs, normals) in self.0.dofs.iter().zip(&self.0.normals) {
            let (own, d, x) = (at(y, dofs), at(d, dofs), at(x, dofs));
            take(y, dofs, normals, std::array::from_fn(|c| own[c] - d[c] * x[c]));
        }
    }

    /// Replaces the entries of a node by their mean over the unconstrained directions.
    pub(super) fn average<T: Real>(&self, y: &mut [T]) {
        for (dofs, weights) in self.0.dofs.iter().zip(&self.0.weights) {
            let own = at(y, dofs);
            let mean: f64 = own.iter().zip(weights).map(|(y, weight)| weight * y.abs()).sum();
            let mean = if mean > 0.0 { mean } else { 1.0 };
            let places = dofs.iter().filter(|&&dof| dof != NONE);
            places.for_each(|&dof| y[dof as usize] = T::from_f64(mean));
        }
    }
}

/// Returns the entries of a node, 0 for missing ones.
fn at<T: Real>(y: &[T], dofs: &[u32; WIDTH]) -> [f64; WIDTH] {
    dofs.map(|dof| if dof == NONE { 0.0 } else { y[dof as usize].into() })
}

/// Computes y ← y − N z at a node.
fn take<T: Real>(
    y: &mut [T],
    dofs: &[u32; WIDTH],
    normals: &[[f64; WIDTH]; WIDTH],
    z: [f64; WIDTH],
) {
    for (&dof, row) in dofs.iter().zip(normals).filter(|(dof, _)| **dof != NONE) {
        let part: f64 = row.iter().zip(&z).map(|(n, z)| n * z).sum();
        let own: f64 = y[dof as usize].into();
        y[dof as usize] = T::from_f64(own - part);
    }
}
