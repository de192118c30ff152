//! Point location: a mesh and points x → cells and reference points ξ with x(ξ) = x.
//!
//! A bounding-box tree finds the candidate cells. In each of them Newton's method inverts the map:
//!
//! ```text
//! ξ ← ξ + J(ξ)⁻¹ (x − x(ξ)),        from the centre of the reference cell
//! ```
//!
//! A curved cell extends beyond its nodes by a fraction of their range; the boxes are wider by that. Points outside all
//! cells are outside the mesh, except near a boundary that cells only approximate: curved cells, and straight ones of a
//! ball or shell.

use super::tree::{BoundingBox, BoundingTree};
use super::{Cell, Mesh};
use kernels_gen::element::{ElementError, Lagrange, tabulate};

/// Largest distance from the reference cell of a point inside: rounding on cell boundaries.
const INSIDE: f64 = 1e-9;

/// Largest distance from the reference cell for cells that approximate a curved boundary: a fifth of a cell if 16
/// straight sides form a circle.
const NEAR_SPHERE: f64 = 0.3;

/// The same distance for cells of higher order.
const NEAR_CURVED: f64 = 0.05;

/// Iteration limit of Newton's method.
const STEPS: usize = 30;

/// A located point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocatedPoint {
    /// The cell; the first of several that contain the point.
    pub cell: usize,
    /// The reference point.
    pub xi: [f64; 3],
    /// The distance of x(ξ) from the point: 0, up to rounding, inside the mesh.
    pub distance: f64,
}

/// Search structure over the cells of a mesh.
pub struct Locator<'a> {
    mesh: &'a Mesh,
    geometry: Lagrange,
    /// The tolerance outside of the reference cell.
    near: f64,
    tree: BoundingTree<u32>,
}

impl<'a> Locator<'a> {
    /// Builds the bounding-box tree of the cells.
    ///
    /// # Errors
    ///
    /// The geometry has no element.
    pub fn new(mesh: &'a Mesh) -> Result<Self, ElementError> {
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order())?;
        let near = match (mesh.spheres().is_empty(), mesh.order()) {
            (false, _) => NEAR_SPHERE,
            (true, 1) => 0.0,
            (true, _) => NEAR_CURVED,
        };
        let leaves = if mesh.order() > 1 { 0.2 } else { INSIDE };
        let bounds = |cell: usize| {
            let nodes = mesh.cell_nodes(cell).iter();
            let own = BoundingBox::of(nodes.map(|&node| mesh.points()[node as usize]));
            let range = [0, 1, 2].map(|c| own.upper[c] - own.lower[c]);
            let size = range.iter().copied().fold(0.0, f64::max);
            let margin = range.map(|range| leaves * range + near.max(INSIDE) * size);
            BoundingBox {
                lower: [0, 1, 2].map(|c| own.lower[c] - margin[c]),
                upper: [0, 1, 2].map(|c| own.upper[c] + margin[c]),
            }
        };
        let cells = (0..mesh.n_cells()).map(|cell| (bounds(cell), cell as u32)).collect();
        Ok(Self { mesh, geometry, near, tree: BoundingTree::new(cells) })
    }

    /// Finds the cell of a point; `None` outside the mesh and not near a curved boundary.
    pub fn find(&self, x: &[f64; 3]) -> Option<LocatedPoint> {
        self.find_among(x, |_| true)
    }

    /// Finds the cell of a point among those that `is_in` selects; `None` outside of them.
    pub fn find_among(&self, x: &[f64; 3], is_in: impl Fn(usize) -> bool) -> Option<LocatedPoint> {
        let mut inside: Option<LocatedPoint> = None;
        let mut beside: Option<LocatedPoint> = None;
        self.tree.find(&BoundingBox { lower: *x, upper: *x }, &mut |&cell| {
            let cell = cell as usize;
            if !is_in(cell) {
                return false;
            }
            let Some(xi) = self.invert(cell, x) else { return false };
            let nearest = nearest(self.mesh.cell(), xi);
            let outside = distance(&xi, &nearest);
            if outside > self.near.max(INSIDE) {
                return false;
            }
            let is_inside = outside <= INSIDE;
            let at = if is_inside { xi } else { nearest };
            let (place, _) = self.map(cell, &at);
            let found = LocatedPoint { cell, xi: at, distance: distance(&place, x) };
            let comes_first = |known: &LocatedPoint| match is_inside {
                true => cell < known.cell,
                false => (found.distance, cell) < (known.distance, known.cell),
            };
            let best = if is_inside { &mut inside } else { &mut beside };
            if best.as_ref().is_none_or(comes_first) {
                *best = Some(found);
            }
            false
        });
        inside.or(beside)
    }

    /// Returns x(ξ) and ∂x_i/∂ξ_a.
    fn map(&self, cell: usize, xi: &[f64; 3]) -> ([f64; 3], [[f64; 3]; 3]) {
        let table = tabulate(self.geometry, &[*xi]);
        let (mut x, mut j) = ([0.0; 3], [[0.0; 3]; 3]);
        for (local, &node) in self.mesh.cell_nodes(cell).iter().enumerate() {
            let point = self.mesh.points()[node as usize];
            for i in 0..3 {
                x[i] += table.value(0, local) * point[i];
                for (a, d) in table.gradient(0, local).iter().enumerate() {
                    j[i][a] += d * point[i];
                }
            }
        }
        (x, j)
    }

    /// Solves x(ξ) = x by Newton's method; `None` if it does not converge near the cell.
    fn invert(&self, cell: usize, x: &[f64; 3]) -> Option<[f64; 3]> {
        let dim = self.mesh.dim();
        let mut xi = self.mesh.cell().centre();
        for _ in 0..STEPS {
            let (place, j) = self.map(cell, &xi);
            let mut rest = [0.0; 3];
            (0..dim).for_each(|i| rest[i] = x[i] - place[i]);
            let step = solved(dim, j, rest)?;
            let size = step.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
            if !size.is_finite() {
                return None;
            }
            // Steps of more than a cell mislead on curved cells.
            let factor = if size > 1.0 { 1.0 / size } else { 1.0 };
            (0..dim).for_each(|a| xi[a] += factor * step[a]);
            if xi[..dim].iter().any(|a| !(-2.0..=3.0).contains(a)) {
                return None;
            }
            if size < 1e-10 {
                // Convergence is quadratic: a further step changes nothing.
                return Some(xi);
            }
        }
        None
    }
}

/// Solves J s = r by elimination with pivoting.
fn solved(dim: usize, mut j: [[f64; 3]; 3], mut r: [f64; 3]) -> Option<[f64; 3]> {
    for column in 0..dim {
        let pivot =
            (column..dim).max_by(|&a, &b| j[a][column].abs().total_cmp(&j[b][column].abs()))?;
        if j[pivot][column] == 0.0 {
            return None;
        }
        j.swap(column, pivot);
        r.swap(column, pivot);
        for row in column + 1..dim {
            let factor = j[row][column] / j[column][column];
            for k in column..dim {
                j[row][k] -= factor * j[column][k];
            }
            r[row] -= factor * r[column];
        }
    }
    for row in (0..dim).rev() {
        let known: f64 = (row + 1..dim).map(|k| j[row][k] * r[k]).sum();
        r[row] = (r[row] - known) / j[row][row];
    }
    Some(r)
}

/// Returns a nearest point of the reference cell, approximately.
fn nearest(cell: Cell, xi: [f64; 3]) -> [f64; 3] {
    let mut inside = xi.map(|a| a.clamp(0.0, 1.0));
    if !cell.is_tensor() {
        let sum: f64 = inside.iter().sum();
        if sum > 1.0 {
            inside = inside.map(|a| a / sum);
        }
    }
    inside
}

fn distance(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::generate::generate;
    use fem_dsl::problem::Argument;

    fn found_again(name: &str, arguments: &[(&str, Argument)]) {
        let arguments = arguments.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let mesh = generate(name, &arguments.collect()).expect("a mesh");
        let locator = Locator::new(&mesh).expect("a geometry");
        let cell = mesh.cell();
        let share = if cell.is_tensor() { 0.9 } else { 0.3 };
        for number in 0..mesh.n_cells() {
            let xi = [0.3, 0.7, 0.5].map(|a| share * a);
            let xi = if cell.dim() == 2 { [xi[0], xi[1], 0.0] } else { xi };
            let (x, _) = locator.map(number, &xi);
            let found = locator.find(&x).expect("inside");
            assert_eq!(found.cell, number);
            assert!(distance(&found.xi, &xi) < 1e-9, "{found:?}");
        }
        let (low, high) = mesh.bounding_box();
        let far = [2.0 * high[0] - low[0] + 1.0, high[1], high[2]];
        assert!(locator.find(&far).is_none(), "{name}");
    }

    #[test]
    fn points_of_cells_are_found_again() {
        let word = |word: &str| Argument::Word(word.to_owned());
        let number = Argument::Number;
        found_again(
            "ball",
            &[("dim", number(3.0)), ("refine", number(1.0)), ("order", number(3.0))],
        );
        found_again(
            "ball",
            &[("dim", number(2.0)), ("refine", number(2.0)), ("order", number(2.0))],
        );
        found_again("box", &[("dim", number(2.0)), ("cells", number(5.0)), ("cell", word("tri"))]);
        found_again("box", &[("dim", number(3.0)), ("cells", number(3.0)), ("cell", word("tet"))]);
        found_again(
            "box",
            &[("dim", number(3.0)), ("cells", number(3.0)), ("deform", number(0.1))],
        );
    }

    /// Regression: a point 0.3 cells outside of straight cells was found.
    #[test]
    fn a_point_outside_of_straight_cells_is_outside() {
        let arguments = [("dim", 2.0), ("cells", 4.0)];
        let argument = |(name, value): (&str, f64)| (name.to_owned(), Argument::Number(value));
        let mesh = generate("box", &arguments.into_iter().map(argument).collect()).expect("a mesh");
        let locator = Locator::new(&mesh).expect("a geometry");
        assert!(locator.find(&[1.0, 0.3, 0.0]).is_some());
        assert!(locator.find(&[1.0 + 1e-6, 0.3, 0.0]).is_none());
        assert!(locator.find(&[1.07, 0.3, 0.0]).is_none());
    }

    /// Ten thousand cells of 1 × 1e-4. Bins as wide as cells took 13 GB for a million of them.
    #[test]
    fn flat_cells_are_found_in_a_few_boxes() {
        let cells = 10_000;
        let points: Vec<[f64; 3]> = (0..2 * (cells + 1))
            .map(|i| [f64::from(i % 2), f64::from(i / 2) * 1e-4, 0.0])
            .collect();
        let nodes = (0..cells as u32).flat_map(|i| 2 * i..2 * i + 4).collect();
        let parts = crate::mesh::MeshData { points, nodes, ..Default::default() };
        let arrange = crate::mesh::CellOrdering::Original;
        let mesh = Mesh::new(Cell::Quadrilateral, 1, parts, arrange).expect("a mesh");
        let locator = Locator::new(&mesh).expect("a geometry");
        let (mut visited, at) = (0, [0.5, 0.12345, 0.0]);
        locator.tree.find(&BoundingBox { lower: at, upper: at }, &mut |_| {
            visited += 1;
            false
        });
        assert!(visited < 10, "{visited}");
        assert_eq!(locator.find(&at).map(|found| found.cell), Some(1234));
    }

    #[test]
    fn a_point_beside_a_curved_boundary_is_taken_to_the_nearest_cell() {
        let argument = |(name, value): (&str, f64)| (name.to_owned(), Argument::Number(value));
        let arguments = [("dim", 2.0), ("refine", 2.0)].map(argument);
        let mesh = generate("ball", &arguments.into_iter().collect()).expect("a mesh");
        let locator = Locator::new(&mesh).expect("a geometry");
        for step in 0..100 {
            let angle = f64::from(step) * 0.0628;
            let found = locator.find(&[angle.cos(), angle.sin(), 0.0]).expect("near the boundary");
            assert!(found.distance < 0.02, "{found:?}");
        }
    }
}
