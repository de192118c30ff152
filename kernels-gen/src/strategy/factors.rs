//! The 1D factors of tensor-product elements, which all sum factorisations share.

use crate::element::{LinePoints, LineTable};
use crate::lower::contract::Matrix;

/// The factors of the tensor product for one element.
pub(super) struct Factors {
    pub(super) n: usize,
    /// B: q × n.
    pub(super) interpolate: Matrix,
}

/// The factors of the continuous Lagrange element of a degree.
pub(super) fn factors(line: LinePoints, degree: usize) -> Factors {
    let nodes = LinePoints::GaussLobatto(degree + 1);
    let table = LineTable::new(nodes, line);
    let interpolate = if nodes == line {
        Matrix::from_fn(degree + 1, degree + 1, |i, j| f64::from(u8::from(i == j)))
    } else {
        Matrix::from_fn(table.points, table.nodes, |q, i| table.value(q, i))
    };
    Factors { n: degree + 1, interpolate }
}
