//! Quadrature rules on reference cells.
//!
//! ```text
//! tensor cells   products of an interval rule, the point with x fastest
//! simplices      to degree 30 (triangle) and 15 (tetrahedron): the rules of H. Xiao and
//!                Z. Gimbutas, "A numerical algorithm for the construction of efficient quadrature
//!                rules in two and higher dimensions", Computers and Mathematics with Applications
//!                59 (2010): positive weights, interior points
//!                above: collapsed Gauss-Jacobi products, (s, t (1 − s), r (1 − s)(1 − t))
//! ```

use super::line::gauss_jacobi;
use super::{Cell, Lagrange, LinePoints};
use quadraturerules::{Domain, QuadratureRule, single_integral_quadrature};
use std::fmt;

/// A quadrature rule on a reference cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// The same interval rule in each direction of a tensor cell.
    Tensor {
        /// An interval, a quadrilateral or a hexahedron.
        cell: Cell,
        /// The rule of each direction.
        line: LinePoints,
    },
    /// A rule on a simplex, exact to a total degree.
    Simplex {
        /// A triangle or a tetrahedron.
        cell: Cell,
        /// The total degree to which polynomials are integrated exactly.
        degree: usize,
    },
    /// The nodes of an element with weight 1: a point set, not an integration rule.
    Nodes(Lagrange),
}

/// Returns the rule that the language prescribes. With the largest degree k among the fields and geometry of order g,
/// tensor cells take k + 1 + ⌊g/2⌋ Gauss points per direction and simplices a rule exact to degree 2k + g − 1. An
/// explicit `quadrature` D means ⌊D/2⌋ + 1 Gauss points per direction, or a simplex rule exact to degree D.
pub fn default_rule(cell: Cell, k: usize, g: usize, quadrature: Option<usize>) -> Rule {
    if cell.is_tensor() {
        let points = quadrature.map_or(k + 1 + g / 2, |degree| degree / 2 + 1);
        Rule::Tensor { cell, line: LinePoints::Gauss(points) }
    } else {
        let degree = quadrature.unwrap_or(2 * k + g.saturating_sub(1));
        Rule::Simplex { cell, degree }
    }
}

impl Rule {
    /// Returns the cell.
    pub const fn cell(self) -> Cell {
        match self {
            Self::Tensor { cell, .. } | Self::Simplex { cell, .. } => cell,
            Self::Nodes(element) => element.cell(),
        }
    }

    /// Returns the rule of each direction, on tensor cells.
    pub const fn line(self) -> Option<LinePoints> {
        match self {
            Self::Tensor { line, .. } => Some(line),
            Self::Simplex { .. } | Self::Nodes(_) => None,
        }
    }

    /// Returns the number of points N_q.
    pub fn count(self) -> usize {
        match self {
            Self::Tensor { cell, line } => line.count().pow(cell.dim() as u32),
            Self::Simplex { .. } => self.points_and_weights().len(),
            Self::Nodes(element) => element.count(),
        }
    }

    /// Returns the points; coordinates beyond the dimension are 0.
    pub fn points(self) -> Vec<[f64; 3]> {
        self.points_and_weights().into_iter().map(|(point, _)| point).collect()
    }

    /// Returns the weights, all positive for Gauss, Gauss-Lobatto and simplex rules; they sum to the reference cell's
    /// measure.
    pub fn weights(self) -> Vec<f64> {
        self.points_and_weights().into_iter().map(|(_, weight)| weight).collect()
    }

    /// Returns points and weights on the facet ξ₀ = 0 of the cell: as many per direction on tensor cells, exact to the
    /// same degree on simplices.
    pub fn on_facet(self) -> Vec<([f64; 3], f64)> {
        let own = match self {
            Self::Tensor { cell, line } => tensor(cell.dim() - 1, line),
            Self::Simplex { cell: Cell::Tetrahedron, degree } => {
                Self::Simplex { cell: Cell::Triangle, degree }.points_and_weights()
            }
            Self::Simplex { degree, .. } => tensor(1, LinePoints::Gauss(degree / 2 + 1)),
            Self::Nodes(element) => return of_nodes(element, |[x, ..]| x == 0.0),
        };
        own.into_iter().map(|([y, z, _], weight)| ([0.0, y, z], weight)).collect()
    }

    /// Returns the points with their weights.
    pub fn points_and_weights(self) -> Vec<([f64; 3], f64)> {
        match self {
            Self::Tensor { cell, line } => tensor(cell.dim(), line),
            Self::Simplex { cell, degree } => {
                xiao_gimbutas(cell, degree).unwrap_or_else(|| collapsed(cell.dim(), degree))
            }
            Self::Nodes(element) => of_nodes(element, |_| true),
        }
    }
}

/// Returns the nodes of an element that satisfy `wanted`, with weight 1.
fn of_nodes(element: Lagrange, wanted: impl Fn([f64; 3]) -> bool) -> Vec<([f64; 3], f64)> {
    element.points().into_iter().filter(|&x| wanted(x)).map(|x| (x, 1.0)).collect()
}

/// Returns the product of one interval rule with itself, x fastest.
fn tensor(dim: usize, line: LinePoints) -> Vec<([f64; 3], f64)> {
    let (points, weights) = (line.points(), line.weights());
    let mut rule = vec![([0.0; 3], 1.0)];
    // The slowest direction is extended first, so that x ends up fastest.
    for axis in (0..dim).rev() {
        rule = rule
            .iter()
            .flat_map(|&(point, weight)| {
                points.iter().zip(&weights).map(move |(&x, &w)| {
                    let mut point = point;
                    point[axis] = x;
                    (point, weight * w)
                })
            })
            .collect();
    }
    rule
}

/// Returns the tabulated rule for a cell and degree, if it exists.
fn xiao_gimbutas(cell: Cell, degree: usize) -> Option<Vec<([f64; 3], f64)>> {
    let domain = match cell {
        Cell::Triangle => Domain::Triangle,
        Cell::Tetrahedron => Domain::Tetrahedron,
        Cell::Interval | Cell::Quadrilateral | Cell::Hexahedron => return None,
    };
    let (points, weights) =
        single_integral_quadrature(QuadratureRule::XiaoGimbutas, domain, degree.max(1)).ok()?;
    let dim = cell.dim();
    // Points are barycentric, weights relative to the cell's measure.
    let pair = |(barycentric, weight): (&[f64], &f64)| {
        let mut point = [0.0; 3];
        point[..dim].copy_from_slice(&barycentric[1..]);
        (point, weight * cell.volume())
    };
    Some(points.chunks(dim + 1).zip(&weights).map(pair).collect())
}

/// Returns the collapsed product of Gauss-Jacobi rules: direction i carries the weight (1 − s)^(dim−1−i).
fn collapsed(dim: usize, degree: usize) -> Vec<([f64; 3], f64)> {
    let n = degree / 2 + 1;
    let mut rule = vec![([0.0; 3], 1.0, 1.0)];
    for axis in 0..dim {
        let line = gauss_jacobi(n, dim - 1 - axis);
        rule = rule
            .iter()
            .flat_map(|&(point, weight, rest)| {
                line.iter().map(move |&(s, w)| {
                    let mut point: [f64; 3] = point;
                    point[axis] = s * rest;
                    (point, weight * w, rest * (1.0 - s))
                })
            })
            .collect();
    }
    rule.into_iter().map(|(point, weight, _)| (point, weight)).collect()
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Tensor { cell, line } => {
                write!(f, "{line} {}", line.count())?;
                for _ in 1..cell.dim() {
                    write!(f, " × {}", line.count())?;
                }
                write!(f, ", exact to degree {} in each direction", line.exact_degree())
            }
            Self::Simplex { cell, degree } => {
                let known = xiao_gimbutas(cell, degree).is_some();
                let name = if known { "Xiao-Gimbutas" } else { "collapsed Gauss-Jacobi" };
                let count = self.count();
                let s = if count == 1 { "" } else { "s" };
                write!(f, "{name}, {count} point{s}, exact to degree {degree}")
            }
            Self::Nodes(element) => {
                write!(f, "the {} nodes of degree {}", element.count(), element.degree())
            }
        }
    }
}

#[cfg(test)]
mod tests;
