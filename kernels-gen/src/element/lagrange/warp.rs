//! Warp-and-blend nodes on simplices: a lattice point → its position in the reference cell.
//!
//! T. Warburton, "An explicit construction of interpolation nodes on the simplex", Journal of Engineering Mathematics
//! 56 (2006). Equispaced points are moved along every edge direction by the one-dimensional displacement w(r) from
//! equispaced to Gauss-Lobatto points, blended into faces and the interior. With barycentric coordinates λ, an edge (a,
//! b) and the third vertex c of a face,
//!
//! ```text
//! δλ_b = −δλ_a = 4 λ_a λ_b · w(λ_b − λ_a) / (1 − (λ_b − λ_a)²) · (1 + (α λ_c)²)
//! ```
//!
//! and the faces of a tetrahedron are blended by Π λ_v / (λ_v + λ_o/2) · (1 + (α λ_o)²), o being the vertex opposite.
//! The values of α, one per degree, minimise the Lebesgue constant. Points of an edge are the Gauss-Lobatto points
//! themselves.

use crate::element::{LinePoints, LineTable};

/// α for triangles of degree 3, 4, …
const TRIANGLE: [f64; 6] = [1.4152, 0.1001, 0.2751, 0.9800, 1.0999, 1.2832];
/// α for tetrahedra of degree 3, 4, …
const TETRAHEDRON: [f64; 6] = [0.0, 0.1002, 1.1332, 1.5608, 1.3413, 1.2577];

/// Returns the reference coordinates of the lattice point with these barycentric weights; their sum is the degree, at
/// least 3.
pub(super) fn point(dim: usize, degree: usize, weights: [usize; 4]) -> [f64; 3] {
    let inside: Vec<usize> = (0..=dim).filter(|&v| weights[v] > 0).collect();
    let mut lambda = weights.map(|w| w as f64 / degree as f64);
    if inside.len() <= 2 {
        let line = LinePoints::GaussLobatto(degree + 1).points();
        lambda = weights.map(|w| line[w]);
    } else if dim == 2 {
        let shift = face(degree, TRIANGLE[degree - 3], [lambda[0], lambda[1], lambda[2]]);
        for v in 0..3 {
            lambda[v] += shift[v];
        }
    } else {
        let shift = interior(degree, TETRAHEDRON[degree - 3], lambda);
        for v in 0..4 {
            lambda[v] += shift[v];
        }
    }
    [lambda[1], lambda[2], lambda[3]]
}

/// Returns w(r) / (1 − r²) on the scale of [0, 1], for |r| < 1.
fn warp(degree: usize, r: f64) -> f64 {
    let equispaced = LinePoints::Equispaced(degree + 1);
    let table = LineTable::at(equispaced, &[0.5 + 0.5 * r]);
    let (from, to) = (equispaced.points(), LinePoints::GaussLobatto(degree + 1).points());
    let displacement: f64 = (1..degree).map(|i| table.value(0, i) * (to[i] - from[i])).sum();
    displacement / (1.0 - r * r)
}

/// Returns the displacement in a face, whose three coordinates need not sum to 1.
fn face(degree: usize, alpha: f64, lambda: [f64; 3]) -> [f64; 3] {
    let mut shift = [0.0; 3];
    for (a, b, c) in [(0, 1, 2), (0, 2, 1), (1, 2, 0)] {
        let blend = 4.0 * lambda[a] * lambda[b] * (1.0 + (alpha * lambda[c]) * (alpha * lambda[c]));
        let step = blend * warp(degree, lambda[b] - lambda[a]);
        shift[b] += step;
        shift[a] -= step;
    }
    shift
}

/// Returns the displacement inside a tetrahedron or one of its faces.
fn interior(degree: usize, alpha: f64, lambda: [f64; 4]) -> [f64; 4] {
    let mut shift = [0.0; 4];
    for [o, a, b, c] in [[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [3, 0, 1, 2]] {
        let half = 0.5 * lambda[o];
        let blend: f64 = [a, b, c].iter().map(|&v| lambda[v] / (lambda[v] + half)).product();
        let blend = blend * (1.0 + (alpha * lambda[o]) * (alpha * lambda[o]));
        let step = face(degree, alpha, [lambda[a], lambda[b], lambda[c]]);
        for (slot, v) in [a, b, c].into_iter().enumerate() {
            shift[v] += blend * step[slot];
        }
    }
    shift
}
