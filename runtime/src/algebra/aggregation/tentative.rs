//! Tentative prolongator T with orthonormal columns, and B_c with T B_c = B, from aggregates and near-null vectors B
//! (Vaněk, Mandel and Brezina 1996, algorithm 3.1).
//!
//! ```text
//! B restricted to an aggregate = Q R,   Q a block of T, R rows of B_c
//! ```
//!
//! by the Gram-Schmidt method with two projections each. Dependent vectors, such as rotations in an aggregate of one
//! node, yield no column.

use super::aggregates::NONE;
use super::strength::NodeDofs;
use crate::algebra::sparse::{Csr, RowBuilder};
use crate::support::parallel::*;

/// Length of an independent vector after projection, relative to that before.
const INDEPENDENT: f64 = 1e-8;

/// T, with the data of the coarse level.
pub(super) struct TentativeProlongator {
    pub(super) prolongator: Csr,
    /// Coarse degrees of freedom: each aggregate is a node.
    pub(super) nodes: NodeDofs,
    /// Near-null vectors of the coarse level.
    pub(super) near_null: Vec<Vec<f64>>,
}

/// Q by columns, and R by columns with as many rows.
struct QrFactors {
    q: Vec<Vec<f64>>,
    r: Vec<Vec<f64>>,
}

/// Builds T; `of` is the aggregate of each node, `free` the mask of aggregated degrees of freedom.
pub(super) fn tentative(
    nodes: &NodeDofs,
    (of, count): (&[u32], usize),
    free: &[bool],
    near_null: &[Vec<f64>],
) -> TentativeProlongator {
    let members = members(nodes, (of, count), free);
    let factors: Vec<QrFactors> =
        members.par_iter().map(|unknowns| factorise(unknowns, near_null)).listed();
    let coarse = NodeDofs::with(factors.iter().map(|factors| factors.q.len()));
    let mut rows = vec![(NONE, 0u32); free.len()];
    for (aggregate, unknowns) in members.iter().enumerate() {
        for (at, &unknown) in unknowns.iter().enumerate() {
            rows[unknown as usize] = (aggregate as u32, at as u32);
        }
    }
    let fill = |i: usize, _: &mut (), row: &mut RowBuilder| {
        let (aggregate, at) = rows[i];
        if aggregate != NONE {
            let first = coarse.starts[aggregate as usize];
            for (column, q) in (first..).zip(&factors[aggregate as usize].q) {
                row.push(column, q[at as usize]);
            }
        }
    };
    let of_coarse = |vector: usize| {
        factors.iter().flat_map(|factors| factors.r[vector].iter().copied()).collect()
    };
    let near_null = (0..near_null.len()).map(of_coarse).collect();
    let prolongator = Csr::by_rows((rows.len(), coarse.of.len()), || (), fill);
    TentativeProlongator { prolongator, nodes: coarse, near_null }
}

/// Returns the degrees of freedom of each aggregate.
fn members(nodes: &NodeDofs, (of, count): (&[u32], usize), free: &[bool]) -> Vec<Vec<u32>> {
    let mut members = vec![Vec::new(); count];
    for (node, &aggregate) in of.iter().enumerate() {
        if aggregate != NONE {
            let unknowns = nodes.unknowns(node).filter(|&unknown| free[unknown]);
            members[aggregate as usize].extend(unknowns.map(|unknown| unknown as u32));
        }
    }
    members
}

fn factorise(unknowns: &[u32], near_null: &[Vec<f64>]) -> QrFactors {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut q: Vec<Vec<f64>> = Vec::new();
    let mut r: Vec<Vec<f64>> = Vec::new();
    for vector in near_null {
        let mut left: Vec<f64> = unknowns.iter().map(|&i| vector[i as usize]).collect();
        let before = dot(&left, &left).sqrt();
        let mut column = vec![0.0; q.len()];
        for _ in 0..2 {
            for (q, part) in q.iter().zip(&mut column) {
                let along = dot(q, &left);
                *part += along;
                left.iter_mut().zip(q).for_each(|(left, q)| *left -= along * q);
            }
        }
        let norm = dot(&left, &left).sqrt();
        if norm > INDEPENDENT * before && q.len() < unknowns.len() {
            left.iter_mut().for_each(|left| *left /= norm);
            column.push(norm);
            q.push(left);
        }
        r.push(column);
    }
    r.iter_mut().for_each(|column| column.resize(q.len(), 0.0));
    QrFactors { q, r }
}
