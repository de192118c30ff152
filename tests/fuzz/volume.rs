//! The volume of a mesh from its facets, for comparison with the volume of its cells:
//!
//! ```text
//! ∫ 1 dx = 1/d ∮ x · n ds
//! ```
//!
//! over the facets of each cell, and over the facets of one cell only. In the second sum, facets between two cells
//! cancel only if they lie on both sides and coincide, so that it detects overlaps and gaps. Facets are sampled at
//! Gauss points and differentiated as polynomials: of the program's geometry only points are used.

use std::collections::HashMap;

use runtime::mesh::{Cell, Mesh};
use runtime::operator::geometry::places;

/// Tolerated rounding error relative to the terms.
const ROUNDING: f64 = 1e-9;

/// Asserts that the volume agrees with the facets, as long as numbers are finite.
pub(crate) fn assert_volume(mesh: &Mesh) {
    let Ok(facets) = Facets::new(mesh) else { return };
    let all = mesh.cell().facets().len();
    let (mut cells, mut outside, mut terms) = (0.0, 0.0, 0.0);
    let mut counts: HashMap<Vec<u32>, usize> = HashMap::new();
    let key = |cell: usize, facet: usize| {
        let vertices = mesh.cell().facets()[facet].iter().map(|&v| mesh.vertices(cell)[v]);
        let mut vertices: Vec<u32> = vertices.collect();
        vertices.sort_unstable();
        vertices
    };
    for cell in 0..mesh.n_cells() {
        (0..all).for_each(|facet| *counts.entry(key(cell, facet)).or_default() += 1);
    }
    for cell in 0..mesh.n_cells() {
        // About its own corner: next to a node far away, a cell of usual size has no digits left.
        let corner = mesh.points()[mesh.vertices(cell)[0] as usize];
        let volume: f64 = (0..all).map(|facet| facets.flux(mesh, cell, facet, corner)).sum();
        cells += volume.abs();
        for facet in 0..all {
            let flux = facets.flux(mesh, cell, facet, facets.middle);
            terms += flux.abs();
            if counts[&key(cell, facet)] == 1 {
                outside += flux * volume.signum();
            }
        }
    }
    let size = mesh.size();
    if !(size.is_finite() && terms.is_finite()) {
        return;
    }
    for sum in [cells, outside] {
        let near = (sum - size).abs() <= ROUNDING * terms;
        assert!(near, "{size} is measured, {cells} by cells and {outside} by the boundary");
    }
}

/// The images of points on all facets of all cells.
struct Facets {
    rule: Rule,
    /// `[cell][facet][point]`.
    images: Vec<[f64; 3]>,
    /// Points per facet.
    points: usize,
    /// The middle of the mesh.
    middle: [f64; 3],
}

impl Facets {
    fn new(mesh: &Mesh) -> Result<Self, String> {
        let (cell, dim) = (mesh.cell(), mesh.dim());
        // x · n ds has three factors of the geometry's degree, and one more for squares collapsed to triangles.
        let rule = Rule::new((3 * mesh.order() + 1).div_ceil(2) + 1);
        let n = rule.at.len();
        let points = n.pow(dim as u32 - 1);
        let mut at = Vec::new();
        for facet in cell.facets() {
            let corner = |v: usize| cell.vertex(facet[v]);
            for point in 0..points {
                let (s, t) = (rule.at[point % n], rule.at[point / n % n]);
                let weights = match (dim, facet.len()) {
                    (2, _) => vec![1.0 - s, s],
                    (_, 4) => vec![(1.0 - s) * (1.0 - t), s * (1.0 - t), (1.0 - s) * t, s * t],
                    _ => vec![1.0 - s, s * (1.0 - t), s * t],
                };
                let sum =
                    |c: usize| weights.iter().enumerate().map(|(v, w)| w * corner(v)[c]).sum();
                at.push([0, 1, 2].map(sum));
            }
        }
        let (lower, upper) = mesh.bounding_box();
        let middle = [0, 1, 2].map(|c| lower[c] / 2.0 + upper[c] / 2.0);
        let images = places(mesh, &at).map_err(|error| error.to_string())?;
        Ok(Self { rule, images, points, middle })
    }

    /// Computes 1/d ∮ x · n ds over a facet, with x from `origin`, and n outward in the reference cell and oriented like
    /// the cell.
    fn flux(&self, mesh: &Mesh, cell: usize, facet: usize, origin: [f64; 3]) -> f64 {
        let dim = mesh.dim();
        let all = mesh.cell().facets().len();
        let images = &self.images[(cell * all + facet) * self.points..][..self.points];
        let x: Vec<_> = images.iter().map(|x| [0, 1, 2].map(|c| x[c] - origin[c])).collect();
        let n = self.rule.at.len();
        let mut sum = 0.0;
        for (point, at) in x.iter().enumerate() {
            let (i, j) = (point % n, point / n);
            let along = |step: usize, from: usize, row: usize| {
                [0, 1, 2].map(|c| {
                    (0..n).map(|m| self.rule.slope(row, m) * x[from + m * step][c]).sum::<f64>()
                })
            };
            let s = along(1, j * n, i);
            let (t, weight) = match dim {
                2 => ([0.0, 0.0, 1.0], self.rule.weights[i]),
                _ => (along(n, i, j), self.rule.weights[i] * self.rule.weights[j]),
            };
            let normal = [0, 1, 2].map(|c| {
                let (a, b) = ((c + 1) % 3, (c + 2) % 3);
                s[a] * t[b] - s[b] * t[a]
            });
            sum += weight * (0..3).map(|c| at[c] * normal[c]).sum::<f64>();
        }
        sum / dim as f64 * outward(mesh.cell(), facet)
    }
}

/// Returns 1 if the order of a facet's vertices is positive about its outward normal in the reference cell, else −1.
fn outward(cell: Cell, facet: usize) -> f64 {
    let vertices: Vec<[f64; 3]> = cell.facets()[facet].iter().map(|&v| cell.vertex(v)).collect();
    let from = |to: [f64; 3]| [0, 1, 2].map(|c| to[c] - vertices[0][c]);
    let s = from(vertices[1]);
    let t = if cell.dim() == 3 { from(vertices[2]) } else { [0.0, 0.0, 1.0] };
    let inward = from(cell.centre());
    let triple: f64 = (0..3)
        .map(|c| {
            let (a, b) = ((c + 1) % 3, (c + 2) % 3);
            inward[c] * (s[a] * t[b] - s[b] * t[a])
        })
        .sum();
    -triple.signum()
}

/// A Gauss rule on (0, 1).
struct Rule {
    at: Vec<f64>,
    weights: Vec<f64>,
}

impl Rule {
    fn new(n: usize) -> Self {
        let (mut at, mut weights) = (Vec::new(), Vec::new());
        for i in 0..n {
            // Newton's method on Legendre's polynomial.
            let mut x = -(std::f64::consts::PI * (i as f64 + 0.75) / (n as f64 + 0.5)).cos();
            let mut slope = 1.0;
            for _ in 0..100 {
                let (mut before, mut value) = (1.0, x);
                for k in 2..=n {
                    let k = k as f64;
                    (before, value) =
                        (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
                }
                slope = n as f64 * (before - x * value) / (1.0 - x * x);
                x -= value / slope;
            }
            at.push((1.0 + x) / 2.0);
            weights.push(1.0 / ((1.0 - x * x) * slope * slope));
        }
        Self { at, weights }
    }

    /// Returns the derivative at point `row` of the polynomial that is 1 at point `of` and 0 at all others.
    fn slope(&self, row: usize, of: usize) -> f64 {
        let x = &self.at;
        let others = |a: usize, b: usize| (0..x.len()).filter(move |&m| m != a && m != b);
        if row == of {
            return others(of, of).map(|m| 1.0 / (x[of] - x[m])).sum();
        }
        let above: f64 = others(row, of).map(|m| x[row] - x[m]).product();
        let below: f64 = others(of, of).map(|m| x[of] - x[m]).product();
        above / below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_by_facets() {
        for text in [
            "box(dim: 2, cells: 3, deform: 0.2)",
            "box(dim: 2, cells: 3, cell: tri)",
            "box(dim: 3, cells: 2, deform: 0.1)",
            "box(dim: 3, cells: 2, cell: tet)",
            "ball(dim: 2, refine: 1, order: 3)",
            "ball(dim: 3, refine: 1, order: 2)",
            "ball(dim: 3, refine: 1, cell: tet, order: 2)",
        ] {
            let mesh = weakform::mesh(text).expect("a mesh");
            assert!(Facets::new(&mesh).is_ok(), "{text}");
            assert_volume(&mesh);
        }
    }
}
