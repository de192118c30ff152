//! Strength of connection between the nodes of a block matrix (Vaněk, Mandel and Brezina 1996, section 5.1).
//!
//! ```text
//! i ~ j   if ‖A_ij‖ > θ √(‖A_ii‖ ‖A_jj‖)      in the Frobenius norm; |a_ij| > θ √(a_ii a_jj) for scalar nodes
//! ```

use crate::algebra::sparse::products::accumulate;
use crate::algebra::sparse::{Csr, RowBuilder};
use crate::support::parallel::*;

/// Degrees of freedom of nodes, numbered consecutively.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NodeDofs {
    /// Offset of each node's degrees of freedom, and the end of the last.
    pub(super) starts: Vec<u32>,
    /// Node of each degree of freedom.
    pub(super) of: Vec<u32>,
}

impl NodeDofs {
    /// Creates nodes with these numbers of degrees of freedom.
    pub(super) fn with(counts: impl Iterator<Item = usize>) -> Self {
        let (mut starts, mut of) = (vec![0], Vec::new());
        for (node, count) in counts.enumerate() {
            of.extend(std::iter::repeat_n(node as u32, count));
            starts.push(of.len() as u32);
        }
        Self { starts, of }
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the degrees of freedom of a node.
    pub(super) fn unknowns(&self, node: usize) -> std::ops::Range<usize> {
        self.starts[node] as usize..self.starts[node + 1] as usize
    }
}

/// Strengths of connection.
pub(super) struct StrengthGraph {
    /// ‖A_ij‖² / (‖A_ii‖ ‖A_jj‖) of each pair of different nodes.
    pub(super) relative: Csr,
    /// θ².
    pub(super) bound: f64,
}

impl StrengthGraph {
    /// Builds the graph of a matrix.
    pub(super) fn new(matrix: &Csr, nodes: &NodeDofs, theta: f64) -> Self {
        let n = nodes.len();
        let squares = accumulate(n, n, |node, row| {
            for (column, value) in nodes.unknowns(node).flat_map(|i| matrix.row(i)) {
                row.add(value * value, (&[nodes.of[column]], &[1.0]));
            }
        });
        let own = |node: usize| {
            let (columns, values) = squares.row_slices(node);
            columns.binary_search(&(node as u32)).map_or(0.0, |at| values[at])
        };
        let norms: Vec<f64> = (0..n).into_par_iter().map(|node| own(node).sqrt()).listed();
        let fill = |node: usize, _: &mut (), row: &mut RowBuilder| {
            let (columns, values) = squares.row_slices(node);
            for (&other, &value) in columns.iter().zip(values) {
                if other as usize != node && value > 0.0 {
                    row.push(other, value / (norms[node] * norms[other as usize]));
                }
            }
        };
        let relative = Csr::by_rows((n, n), || (), fill);
        Self { relative, bound: theta * theta }
    }

    /// Iterates over all neighbours of a node, with squared strengths.
    pub(super) fn around(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        self.relative.row(node)
    }

    /// Iterates over the strong neighbours of a node.
    pub(super) fn strong(&self, node: usize) -> impl Iterator<Item = (usize, f64)> {
        self.around(node).filter(|(_, square)| *square > self.bound)
    }
}
