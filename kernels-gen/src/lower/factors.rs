//! The 1D factors of tensor-product elements, which all sum factorisations share.

use crate::element::{Element, LineBasis, LinePoints, LineTable};
use crate::lower::contract::Matrix;
use crate::plan::Task;

/// The factors of the tensor product for one element.
pub(crate) struct Factors {
    /// The functions along each axis; those beyond the dimension are of one function.
    pub(crate) lines: [LineBasis; 3],
    /// B along each axis: q × n.
    interpolate: [Matrix; 3],
    /// D: q × q, derivatives at the points from values at the points.
    pub(crate) derive: Matrix,
    /// True if dense tables evaluate and test the element instead.
    pub(crate) dense: bool,
    /// The axes along which functions are differentiated.
    pub(crate) derived: [bool; 3],
    /// True if B is the identity along all axes.
    pub(crate) is_collocated: bool,
}

impl Factors {
    /// Returns the number of functions along an axis.
    pub(crate) fn n(&self, axis: usize) -> usize {
        self.lines[axis].count()
    }

    /// Returns B along an axis.
    pub(crate) fn interpolate(&self, axis: usize) -> &Matrix {
        &self.interpolate[axis]
    }

    /// Returns the nodes of each direction of a Lagrange element.
    pub(crate) fn nodes(&self) -> LinePoints {
        match self.lines {
            [LineBasis::Nodal(nodes), other, _] if other.is_nodal_at(nodes) => nodes,
            _ => unreachable!("only Lagrange elements should be asked for their nodes"),
        }
    }
}

/// Returns the nodes of each direction of a Lagrange element on a tensor cell.
pub(crate) fn nodes_of(element: Element) -> LinePoints {
    element.line().expect("a tensor cell should have nodes in each direction")
}

/// Returns the factors of an element on a tensor cell, for the points of a line. Transfers measure a function along its
/// open axes by integrals between neighbouring points; the row of the last point, after which there is none, is 0.
pub(crate) fn factors(line: LinePoints, element: Element, task: Task) -> Factors {
    let lines = element.lines().expect("an element of a tensor cell should be a product");
    let interpolate = lines.map(|basis| {
        if let (LineBasis::Integral(_), true) = (basis, task.transfers()) {
            let (integrals, n) = (basis.integrals(line), basis.count());
            let at = |q: usize, i: usize| integrals.get(q * n + i).copied().unwrap_or(0.0);
            return Matrix::from_fn(line.count(), n, at);
        }
        if basis.is_nodal_at(line) {
            let n = basis.count();
            return Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)));
        }
        let table = basis.table(line);
        Matrix::from_fn(table.points, table.nodes, |q, i| table.value(q, i))
    });
    let degree = element.degree();
    // D is exact for fewer nodes than these.
    let dense = degree + 1 > line.count();
    let is_collocated = lines[..element.cell().dim()].iter().all(|own| own.is_nodal_at(line));
    let derived = [0, 1, 2].map(|axis| element.is_differentiated(0, axis));
    Factors { lines, interpolate, derive: derive(line, degree), derived, dense, is_collocated }
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
