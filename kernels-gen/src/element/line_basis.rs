//! Bases on the interval: the factors of tensor-product elements along an axis.

use super::{LinePoints, LineTable};

/// A basis on [0, 1].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineBasis {
    /// The Lagrange polynomials ℓ_i of n points.
    Nodal(LinePoints),
    /// The n − 1 polynomials of degree n − 2 whose integrals between neighbouring points x_i and x_{i+1} are 0 or 1:
    ///
    /// ```text
    /// e_i = −Σ_{j ≤ i} ℓ_j'        ∫ e_i over [x_j, x_{j+1}] = δ_ij
    /// ```
    ///
    /// (M. Gerritsma, "Edge functions for spectral element methods", 2011.) The derivative of Σ u_i ℓ_i is
    /// Σ (u_{i+1} − u_i) e_i.
    Integral(LinePoints),
}

impl LineBasis {
    /// Returns the number of functions.
    pub const fn count(self) -> usize {
        match self {
            Self::Nodal(points) => points.count(),
            Self::Integral(points) => points.count() - 1,
        }
    }

    /// Returns whether it is that of the Lagrange polynomials of these points.
    pub fn is_nodal_at(self, points: LinePoints) -> bool {
        self == Self::Nodal(points)
    }

    /// Returns the values and derivatives of the functions at a family of points, centro-symmetric bit for bit.
    pub fn table(self, points: LinePoints) -> LineTable {
        match self {
            Self::Nodal(nodes) => LineTable::new(nodes, points),
            Self::Integral(nodes) => LineTable::new(nodes, points).of_integrals(true),
        }
    }

    /// Returns the functions on the lower or upper half of the interval in the same basis: row-major, one row per function
    /// of the half. These are the weights of a child's hanging line, of values at points or of integrals.
    pub fn of_parent(self, up: bool) -> Vec<f64> {
        let (points, shift) = (self.points(), if up { 0.5 } else { 0.0 });
        let near = |value: f64| if value.abs() < 1e-15 { 0.0 } else { value };
        let half: Vec<f64> = points.points().iter().map(|xi| shift + xi / 2.0).collect();
        let values = LineTable::at(points, &half).values.into_iter().map(near);
        let (n, values) = (points.count(), values.collect::<Vec<f64>>());
        if self.is_closed() {
            return values;
        }
        let step = |i: usize, l: usize| values[(i + 1) * n + l] - values[i * n + l];
        let entry = |i: usize, j: usize| near(-(0..=j).map(|l| step(i, l)).sum::<f64>());
        (0..n - 1).flat_map(|i| (0..n - 1).map(move |j| (i, j))).map(|(i, j)| entry(i, j)).collect()
    }

    /// Returns the points.
    pub const fn points(self) -> LinePoints {
        match self {
            Self::Nodal(points) | Self::Integral(points) => points,
        }
    }

    /// Returns whether its last and first functions are those of the ends of the interval.
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Nodal(_))
    }

    /// Returns the integrals of the functions between neighbouring points, `[interval][function]`. They are exact:
    /// functions are of degree n − 2 at most.
    pub fn integrals(self, points: LinePoints) -> Vec<f64> {
        let (at, gauss) = (points.points(), LinePoints::Gauss(self.count().max(1)));
        let (inner, weights) = (gauss.points(), gauss.weights());
        let of_interval = |ends: &[f64]| -> Vec<f64> {
            let length = ends[1] - ends[0];
            let inside: Vec<f64> = inner.iter().map(|x| ends[0] + length * x).collect();
            let table = self.table_at(&inside);
            let of_function = |i: usize| {
                (0..weights.len()).map(|q| length * weights[q] * table.value(q, i)).sum()
            };
            (0..self.count()).map(of_function).collect()
        };
        at.windows(2).flat_map(of_interval).collect()
    }

    /// Returns the values and derivatives of the functions at any points.
    pub fn table_at(self, points: &[f64]) -> LineTable {
        match self {
            Self::Nodal(nodes) => LineTable::at(nodes, points),
            Self::Integral(nodes) => LineTable::at(nodes, points).of_integrals(false),
        }
    }
}

impl From<LinePoints> for LineBasis {
    fn from(points: LinePoints) -> Self {
        Self::Nodal(points)
    }
}

impl LineTable {
    /// Returns the table of the functions of integrals from that of the Lagrange polynomials. Third derivatives of these
    /// are unknown, so that there are no second ones. `is_symmetric`: the points are.
    fn of_integrals(&self, is_symmetric: bool) -> Self {
        let n = self.nodes - 1;
        let sum = |entries: &[f64], q: usize, i: usize| -> f64 {
            // The shorter sum: all derivatives together are 0.
            let row = &entries[q * self.nodes..(q + 1) * self.nodes];
            match 2 * i < n {
                true => -row[..=i].iter().sum::<f64>(),
                false => row[i + 1..].iter().rev().sum::<f64>(),
            }
        };
        let all = || (0..self.points).flat_map(|q| (0..n).map(move |i| (q, i)));
        let mut table = Self {
            points: self.points,
            nodes: n,
            values: all().map(|(q, i)| sum(&self.derivatives, q, i)).collect(),
            derivatives: all().map(|(q, i)| sum(&self.seconds, q, i)).collect(),
            seconds: vec![f64::NAN; self.points * n],
        };
        if is_symmetric {
            table.mirror();
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrals_between_neighbouring_points_are_0_or_1() {
        for n in 2..=9 {
            let nodes = LinePoints::GaussLobatto(n);
            let (x, gauss) = (nodes.points(), LinePoints::Gauss(n));
            let (at, weights) = (gauss.points(), gauss.weights());
            for interval in 0..n - 1 {
                let length = x[interval + 1] - x[interval];
                let points: Vec<f64> = at.iter().map(|s| x[interval] + length * s).collect();
                let table = LineBasis::Integral(nodes).table_at(&points);
                for i in 0..n - 1 {
                    let integral: f64 =
                        (0..n).map(|q| length * weights[q] * table.value(q, i)).sum();
                    let expected = f64::from(u8::from(i == interval));
                    assert!((integral - expected).abs() < 1e-13, "n = {n}, {i} on {interval}");
                }
            }
        }
    }

    #[test]
    fn integrals_over_a_half_are_those_of_the_parent() {
        for n in 2..=8 {
            let (basis, nodes) = (LineBasis::Integral(LinePoints::GaussLobatto(n)), n - 1);
            for up in [false, true] {
                let (of_half, shift) = (basis.of_parent(up), if up { 0.5 } else { 0.0 });
                let at: Vec<f64> = (0..5).map(|i| 0.1 + 0.2 * f64::from(i)).collect();
                let parents: Vec<f64> = at.iter().map(|x| shift + x / 2.0).collect();
                let (own, parent) = (basis.table_at(&at), basis.table_at(&parents));
                for (q, j) in (0..at.len()).flat_map(|q| (0..nodes).map(move |j| (q, j))) {
                    let sum: f64 =
                        (0..nodes).map(|i| of_half[i * nodes + j] * own.value(q, i)).sum();
                    assert!((sum - parent.value(q, j) / 2.0).abs() < 1e-12, "{n} {up} {q} {j}");
                }
            }
        }
    }

    #[test]
    fn tables_are_symmetric_and_derivatives_are_those_of_values() {
        for n in 2..=8 {
            let (basis, q) = (LineBasis::Integral(LinePoints::GaussLobatto(n)), n);
            let table = basis.table(LinePoints::Gauss(q));
            assert_eq!((table.nodes, basis.count()), (n - 1, n - 1));
            let points = LinePoints::Gauss(q).points();
            let step = 1e-6;
            let moved =
                |by: f64| basis.table_at(&points.iter().map(|x| x + by).collect::<Vec<f64>>());
            let (up, down) = (moved(step), moved(-step));
            for (at, i) in (0..q).flat_map(|at| (0..n - 1).map(move |i| (at, i))) {
                let (other, mirrored) = (q - 1 - at, n - 2 - i);
                assert_eq!(table.value(at, i), table.value(other, mirrored));
                assert_eq!(table.derivative(at, i), -table.derivative(other, mirrored));
                let slope = (up.value(at, i) - down.value(at, i)) / (2.0 * step);
                assert!((slope - table.derivative(at, i)).abs() < 1e-5 * (1.0 + slope.abs()));
            }
        }
    }
}
