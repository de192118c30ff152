//! The 1D factors of tensor-product elements, which all sum factorisations share.

use crate::element::{Lagrange, LinePoints, LineTable};
use crate::lower::contract::Matrix;

/// The factors of the tensor product for one element.
pub(crate) struct Factors {
    pub(crate) n: usize,
    pub(crate) nodes: LinePoints,
    /// B: q × n.
    pub(crate) interpolate: Matrix,
    /// D: q × q, derivatives at the points from values at the points.
    pub(crate) derive: Matrix,
    /// True if dense tables evaluate and test the element instead.
    pub(crate) dense: bool,
}

/// Returns the nodes of each direction of an element on a tensor cell.
pub(crate) fn nodes_of(element: Lagrange) -> LinePoints {
    element.line().expect("a tensor cell should have nodes in each direction")
}

/// Returns the factors of an element on a tensor cell, for the points of a line.
pub(crate) fn factors(line: LinePoints, element: Lagrange) -> Factors {
    let (nodes, degree) = (nodes_of(element), element.degree());
    let table = LineTable::new(nodes, line);
    let interpolate = if nodes == line {
        Matrix::from_fn(degree + 1, degree + 1, |i, j| f64::from(u8::from(i == j)))
    } else {
        Matrix::from_fn(table.points, table.nodes, |q, i| table.value(q, i))
    };
    // D is exact for fewer nodes than these.
    let dense = degree + 1 > line.count();
    Factors { n: degree + 1, nodes, interpolate, derive: derive(line, degree), dense }
}

/// Returns D for an element of a degree. A linear function has one slope, determined by two points.
fn derive(line: LinePoints, degree: usize) -> Matrix {
    let (q, points) = (line.count(), line.points());
    if degree == 1 && q > 1 {
        let scale = 1.0 / (points[q - 1] - points[0]);
        return Matrix::from_fn(q, q, |_, j| match j {
            0 => -scale,
            _ if j == q - 1 => scale,
            _ => 0.0,
        });
    }
    let table = LineTable::new(line, line);
    Matrix::from_fn(q, q, |i, j| table.derivative(i, j))
}
