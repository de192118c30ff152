//! Which cell a point lies in, and where: a mesh and points x → cells and reference points ξ with x(ξ) = x.
//!
//! Boxes around cells lie in the bins of a regular grid, about one cell a bin. In each cell whose box has the point
//! Newton's iteration inverts the map:
//!
//! ```text
//! ξ ← ξ + J(ξ)⁻¹ (x − x(ξ)),        from the centre of the reference cell
//! ```
//!
//! Curved cells leave the hull of their nodes by some part of their size, so that boxes are wider by as much.

use super::{Cell, Mesh};
use kernels_gen::element::{ElementError, Lagrange, tabulate};

/// How far outside of the reference cell a point may be and still count as inside: rounding, on the sides of cells.
const INSIDE: f64 = 1e-9;

/// So far outside of the reference cell, the nearest point of the cell is taken: a point of a curved boundary lies
/// outside of cells that only approximate it, by a fifth of a cell where 16 sides make a circle.
const NEAR: f64 = 0.3;

/// The most steps of Newton's iteration.
const STEPS: usize = 30;

/// Where a point lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located {
    /// The cell; the first of several that share the point.
    pub cell: usize,
    /// The reference point.
    pub xi: [f64; 3],
    /// How far the place of ξ is from the point: 0, but for rounding, inside of the mesh.
    pub distance: f64,
}

/// The cells of a mesh by their places.
pub struct Locator<'a> {
    mesh: &'a Mesh,
    geometry: Lagrange,
    low: [f64; 3],
    width: [f64; 3],
    bins: [usize; 3],
    /// Where the cells of each bin begin in `cells`.
    starts: Vec<u32>,
    cells: Vec<u32>,
}

impl<'a> Locator<'a> {
    /// Sorts the cells of a mesh into bins.
    ///
    /// # Errors
    ///
    /// The mesh has no such geometry.
    pub fn new(mesh: &'a Mesh) -> Result<Self, ElementError> {
        let geometry = Lagrange::continuous(mesh.cell(), mesh.order())?;
        let dim = mesh.dim();
        let (mut low, mut high) = mesh.bounding_box();
        for axis in 0..dim {
            let more = 0.1 * (high[axis] - low[axis]).max(f64::MIN_POSITIVE);
            low[axis] -= more;
            high[axis] += more;
        }
        let volume: f64 = (0..dim).map(|axis| high[axis] - low[axis]).product();
        let side = (volume / mesh.n_cells().max(1) as f64).powf(1.0 / dim as f64);
        let (mut bins, mut width) = ([1; 3], [f64::INFINITY; 3]);
        for axis in 0..dim {
            let extent = high[axis] - low[axis];
            bins[axis] = ((extent / side).ceil() as usize).clamp(1, 1 << 12);
            width[axis] = extent / bins[axis] as f64;
        }
        let mut locator =
            Self { mesh, geometry, low, width, bins, starts: Vec::new(), cells: Vec::new() };
        let boxes: Vec<[[usize; 3]; 2]> =
            (0..mesh.n_cells()).map(|cell| locator.bins_of(cell)).collect();
        let mut counts = vec![0_u32; bins.iter().product::<usize>() + 1];
        for of in &boxes {
            locator.each(of, |bin| counts[bin + 1] += 1);
        }
        for bin in 1..counts.len() {
            counts[bin] += counts[bin - 1];
        }
        let mut next = counts.clone();
        let mut cells = vec![0; counts.last().map_or(0, |&all| all as usize)];
        for (cell, of) in boxes.iter().enumerate() {
            locator.each(of, |bin| {
                cells[next[bin] as usize] = cell as u32;
                next[bin] += 1;
            });
        }
        (locator.starts, locator.cells) = (counts, cells);
        Ok(locator)
    }

    fn each(&self, [from, to]: &[[usize; 3]; 2], mut visit: impl FnMut(usize)) {
        for k in from[2]..=to[2] {
            for j in from[1]..=to[1] {
                for i in from[0]..=to[0] {
                    visit((k * self.bins[1] + j) * self.bins[0] + i);
                }
            }
        }
    }

    /// The bin of a point along each axis.
    fn bin(&self, x: &[f64; 3]) -> [usize; 3] {
        let mut bin = [0; 3];
        for axis in 0..self.mesh.dim() {
            let at = (x[axis] - self.low[axis]) / self.width[axis];
            bin[axis] = (at.max(0.0) as usize).min(self.bins[axis] - 1);
        }
        bin
    }

    /// The bins of a box around a cell.
    fn bins_of(&self, cell: usize) -> [[usize; 3]; 2] {
        let [mut low, mut high] = [[f64::INFINITY; 3], [f64::NEG_INFINITY; 3]];
        for &node in self.mesh.cell_nodes(cell) {
            let x = self.mesh.points()[node as usize];
            for axis in 0..3 {
                low[axis] = low[axis].min(x[axis]);
                high[axis] = high[axis].max(x[axis]);
            }
        }
        let size = (0..3).map(|axis| high[axis] - low[axis]).fold(0.0, f64::max);
        for axis in 0..3 {
            low[axis] -= 0.2 * size;
            high[axis] += 0.2 * size;
        }
        [self.bin(&low), self.bin(&high)]
    }

    /// Where a point lies: inside of a cell, or next to one; none where it is far from all.
    pub fn find(&self, x: &[f64; 3]) -> Option<Located> {
        let [i, j, k] = self.bin(x);
        let bin = (k * self.bins[1] + j) * self.bins[0] + i;
        let cells = self.starts[bin] as usize..self.starts[bin + 1] as usize;
        let mut best: Option<(f64, Located)> = None;
        for &cell in &self.cells[cells] {
            let Some(xi) = self.invert(cell as usize, x) else { continue };
            let inside = nearest(self.mesh.cell(), xi);
            let outside = distance(&xi, &inside);
            if outside > NEAR {
                continue;
            }
            let at = if outside <= INSIDE { xi } else { inside };
            let (place, _) = self.map(cell as usize, &at);
            let found = Located { cell: cell as usize, xi: at, distance: distance(&place, x) };
            if outside <= INSIDE {
                return Some(found);
            }
            if best.is_none_or(|(_, best)| found.distance < best.distance) {
                best = Some((outside, found));
            }
        }
        best.map(|(_, found)| found)
    }

    /// x(ξ) and ∂x_i/∂ξ_a.
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

    /// ξ with x(ξ) = x, where Newton's iteration finds one near the cell.
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
            // A step over more than a cell leads nowhere on curved ones.
            let factor = if size > 1.0 { 1.0 / size } else { 1.0 };
            (0..dim).for_each(|a| xi[a] += factor * step[a]);
            if xi[..dim].iter().any(|a| !(-2.0..=3.0).contains(a)) {
                return None;
            }
            if size < 1e-10 {
                // It converges quadratically: one more would change nothing.
                return Some(xi);
            }
        }
        None
    }
}

/// J⁻¹ r by elimination with pivots.
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

/// The nearest point of the reference cell, or one near it.
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
