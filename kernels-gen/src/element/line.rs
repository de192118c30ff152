//! Point families on the interval and their Lagrange tables: the factors of every tensor product.
//!
//! Points and weights are on [0, 1]; tables contain B\[q\]\[i\] = ℓ_i(x_q) and the derivatives B'\[q\]\[i\] = ℓ_i'(x_q)
//! and B''.
//! Everything is computed with about 32 digits on [−1, 1], where the families are exactly antisymmetric, and rounded
//! once. Between two symmetric families tables are centro-symmetric bit for bit,
//!
//! ```text
//! B[Q−1−q][n−1−i] = B[q][i]        B'[Q−1−q][n−1−i] = −B'[q][i]        B''[Q−1−q][n−1−i] = B''[q][i]
//! ```
//!
//! as the even-odd decomposition of the kernels requires. With the barycentric weights w_i = 1 / Π_{j≠i} (x_i − x_j),
//! ℓ_i(x) = w_i Π_{j≠i} (x − x_j) (J.-P. Berrut and L. N. Trefethen, "Barycentric Lagrange interpolation", SIAM Review
//! 46 (2004)); the product form has no special case at a node and its derivative follows by the product rule.

use super::double::DoubleDouble;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Cache of computed results: arithmetic with 32 digits costs more than printing a kernel.
type LineCache<K, V> = Mutex<BTreeMap<K, V>>;

/// Returns the cached value of a function that depends on `key` alone.
fn once<K: Ord, V: Clone>(known: &LineCache<K, V>, key: K, compute: impl FnOnce() -> V) -> V {
    let lock = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = lock().get(&key) {
        return value.clone();
    }
    let value = compute();
    lock().insert(key, value.clone());
    value
}

/// A family of points on [0, 1], ascending and symmetric about 1/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LinePoints {
    /// The n Gauss points, exact to degree 2n − 1; n ≥ 1.
    Gauss(usize),
    /// The n Gauss-Lobatto points with both ends, exact to degree 2n − 3; n ≥ 2.
    GaussLobatto(usize),
    /// n points at equal distances with both ends; n ≥ 2.
    Equispaced(usize),
    /// The n Gauss-Lobatto points of each half, 2n − 1 in all: the nodes of both children of an interval; n ≥ 2.
    Halves(usize),
}

impl LinePoints {
    /// Returns the number of points.
    pub const fn count(self) -> usize {
        match self {
            Self::Gauss(n) | Self::GaussLobatto(n) | Self::Equispaced(n) => n,
            Self::Halves(n) => 2 * n - 1,
        }
    }

    /// Returns the points in [0, 1], ascending.
    pub fn points(self) -> Vec<f64> {
        let half = DoubleDouble::from(0.5);
        self.reference().iter().map(|&x| (half + half * x).round()).collect()
    }

    /// Returns the interpolatory weights on [0, 1]; they sum to 1.
    pub fn weights(self) -> Vec<f64> {
        static KNOWN: LineCache<LinePoints, Vec<f64>> = Mutex::new(BTreeMap::new());
        once(&KNOWN, self, || self.compute_weights())
    }

    fn compute_weights(self) -> Vec<f64> {
        let n = self.count();
        let points = self.reference();
        let mut weights: Vec<f64> = match self {
            Self::Gauss(n) => points.iter().map(|&x| gauss_weight(n, 0, x).round()).collect(),
            Self::GaussLobatto(n) => {
                let m = n - 1;
                let weight = |&x: &DoubleDouble| {
                    let p = legendre(m, x).0;
                    (DoubleDouble::ONE / (DoubleDouble::from(m * n) * p * p)).round()
                };
                points.iter().map(weight).collect()
            }
            Self::Equispaced(n) => {
                // The Lagrange polynomials are integrated with a Gauss rule that is exact for them.
                let rule = Self::Gauss(n / 2 + 1);
                let table = LineTable::new(self, rule);
                let outer = rule.weights();
                (0..n)
                    .map(|i| (0..outer.len()).map(|q| outer[q] * table.value(q, i)).sum())
                    .collect()
            }
            Self::Halves(half) => {
                let own = Self::GaussLobatto(half).weights();
                let mut weights = vec![0.0; n];
                for (i, weight) in own.iter().enumerate() {
                    weights[i] += weight / 2.0;
                    weights[half - 1 + i] += weight / 2.0;
                }
                weights
            }
        };
        for q in 0..n / 2 {
            weights[n - 1 - q] = weights[q];
        }
        weights
    }

    /// Returns the degree to which the weights integrate polynomials exactly.
    pub const fn exact_degree(self) -> usize {
        match self {
            Self::Gauss(n) => 2 * n - 1,
            Self::GaussLobatto(n) => 2 * n - 3,
            Self::Equispaced(n) => n - 1 + n % 2,
            Self::Halves(n) => 2 * n - 3,
        }
    }

    /// Returns the points on [−1, 1], exactly antisymmetric.
    fn reference(self) -> Vec<DoubleDouble> {
        static KNOWN: LineCache<LinePoints, Vec<DoubleDouble>> = Mutex::new(BTreeMap::new());
        once(&KNOWN, self, || self.compute_reference())
    }

    fn compute_reference(self) -> Vec<DoubleDouble> {
        let n = self.count();
        let mut points = match self {
            Self::Gauss(n) => {
                assert!(n >= 1, "a Gauss rule should have a point");
                gauss_jacobi_points(n, 0)
            }
            Self::GaussLobatto(n) => {
                assert!(n >= 2, "a Gauss-Lobatto rule should have both ends");
                (0..n).map(|i| lobatto_point(n, i)).collect()
            }
            Self::Equispaced(n) => {
                assert!(n >= 2, "equispaced points should have both ends");
                let step = DoubleDouble::from(2usize) / DoubleDouble::from(n - 1);
                (0..n).map(|i| step * DoubleDouble::from(i) - DoubleDouble::ONE).collect()
            }
            Self::Halves(half) => {
                let (own, by) = (Self::GaussLobatto(half).reference(), DoubleDouble::from(0.5));
                let left = own.iter().map(|&x| by * (x - DoubleDouble::ONE));
                let right = own.iter().skip(1).map(|&x| by * (x + DoubleDouble::ONE));
                left.chain(right).collect()
            }
        };
        for i in 0..n / 2 {
            points[n - 1 - i] = -points[i];
        }
        if n % 2 == 1 {
            points[n / 2] = DoubleDouble::ZERO;
        }
        points
    }
}

impl fmt::Display for LinePoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gauss(_) => f.write_str("Gauss"),
            Self::GaussLobatto(_) => f.write_str("Gauss-Lobatto"),
            Self::Equispaced(_) => f.write_str("equispaced"),
            Self::Halves(_) => f.write_str("Gauss-Lobatto of halves"),
        }
    }
}

/// Returns P_n(x) and P_{n−1}(x), for n ≥ 1.
fn legendre(n: usize, x: DoubleDouble) -> (DoubleDouble, DoubleDouble) {
    let (mut previous, mut current) = (DoubleDouble::ONE, x);
    for m in 1..n {
        let next = (DoubleDouble::from(2 * m + 1) * x * current - DoubleDouble::from(m) * previous)
            / DoubleDouble::from(m + 1);
        (previous, current) = (current, next);
    }
    (current, previous)
}

/// Returns the i-th of n Gauss-Lobatto points on [−1, 1]: Newton's method on (1 − x²) P'_{n−1}.
fn lobatto_point(n: usize, i: usize) -> DoubleDouble {
    if i == 0 || i == n - 1 {
        return if i == 0 { -DoubleDouble::ONE } else { DoubleDouble::ONE };
    }
    let angle = std::f64::consts::PI * i as f64 / (n - 1) as f64;
    let mut x = DoubleDouble::from(-libm::cos(angle));
    for _ in 0..50 {
        let (p, previous) = legendre(n - 1, x);
        let step = (x * p - previous) / (DoubleDouble::from(n) * p);
        x = x - step;
        if step.round().abs() < 1.0e-28 {
            break;
        }
    }
    x
}

/// Returns the Jacobi polynomial P_n^{(a, 0)}(x) and its derivative, by the three-term recurrence.
fn jacobi(n: usize, a: usize, x: DoubleDouble) -> (DoubleDouble, DoubleDouble) {
    let half = DoubleDouble::from(0.5);
    let slope = DoubleDouble::from(a + 2) * half;
    let mut previous = (DoubleDouble::ONE, DoubleDouble::ZERO);
    if n == 0 {
        return previous;
    }
    let mut current = (slope * x + DoubleDouble::from(a) * half, slope);
    for m in 1..n {
        let s = 2 * m + a;
        let scale = DoubleDouble::from(2 * (m + 1) * (m + a + 1) * s);
        let linear = DoubleDouble::from((s + 1) * (s + 2) * s) / scale;
        let constant = DoubleDouble::from((s + 1) * a * a) / scale;
        let back = DoubleDouble::from(2 * (m + a) * m * (s + 2)) / scale;
        let factor = linear * x + constant;
        let value = factor * current.0 - back * previous.0;
        let derivative = linear * current.0 + factor * current.1 - back * previous.1;
        (previous, current) = (current, (value, derivative));
    }
    current
}

/// Returns the zeros of P_n^{(a, 0)} in ascending order, by Newton's method with deflation of the zeros found.
fn gauss_jacobi_points(n: usize, a: usize) -> Vec<DoubleDouble> {
    let mut zeros: Vec<DoubleDouble> = Vec::with_capacity(n);
    for k in 0..n {
        let angle = std::f64::consts::PI * (2 * k + 1) as f64 / (2 * n) as f64;
        let mut x = DoubleDouble::from(-libm::cos(angle));
        if let Some(&last) = zeros.last() {
            x = (x + last) * DoubleDouble::from(0.5);
        }
        for _ in 0..100 {
            let (value, derivative) = jacobi(n, a, x);
            let found = zeros
                .iter()
                .fold(DoubleDouble::ZERO, |sum, &zero| sum + DoubleDouble::ONE / (x - zero));
            let step = value / (derivative - found * value);
            x = x - step;
            if step.round().abs() < 1.0e-29 {
                break;
            }
        }
        zeros.push(x);
    }
    zeros
}

/// Returns the weight of the zero x of P_n^{(a, 0)} for ∫_0^1 (1 − s)^a f(s) ds, s = (1 + x)/2.
fn gauss_weight(n: usize, a: usize, x: DoubleDouble) -> DoubleDouble {
    let slope = jacobi(n, a, x).1;
    DoubleDouble::ONE / ((DoubleDouble::ONE - x * x) * slope * slope)
}

/// Returns points and weights of n-point Gauss-Jacobi quadrature for ∫_0^1 (1 − s)^a f(s) ds.
pub(super) fn gauss_jacobi(n: usize, a: usize) -> Vec<(f64, f64)> {
    let half = DoubleDouble::from(0.5);
    gauss_jacobi_points(n, a)
        .into_iter()
        .map(|x| ((half + half * x).round(), gauss_weight(n, a, x).round()))
        .collect()
}

/// The Lagrange polynomials of a point family and their derivatives at other points of [0, 1].
#[derive(Clone, Debug, PartialEq)]
pub struct LineTable {
    /// Number of points Q.
    pub points: usize,
    /// Number of nodes n.
    pub nodes: usize,
    /// ℓ_i(x_q) at `[q * nodes + i]`.
    pub values: Vec<f64>,
    /// ℓ_i'(x_q) at `[q * nodes + i]`.
    pub derivatives: Vec<f64>,
    /// ℓ_i''(x_q) at `[q * nodes + i]`.
    pub seconds: Vec<f64>,
}

impl LineTable {
    /// Returns the table from the family `nodes` to the family `points`, centro-symmetric bit for bit. With
    /// `nodes == points` the derivatives are the collocation derivative D.
    pub fn new(nodes: LinePoints, points: LinePoints) -> Self {
        static KNOWN: LineCache<(LinePoints, LinePoints), LineTable> = Mutex::new(BTreeMap::new());
        once(&KNOWN, (nodes, points), || {
            let mut table = Self::at_reference(&nodes.reference(), &points.reference());
            table.mirror();
            table
        })
    }

    /// Returns the table from the family `nodes` to any points. A point within rounding of a node is taken as the node.
    pub fn at(nodes: LinePoints, points: &[f64]) -> Self {
        let reference = nodes.reference();
        let snapped: Vec<DoubleDouble> = points
            .iter()
            .map(|&point| {
                let x = DoubleDouble::from(2.0 * point) - DoubleDouble::ONE;
                let near = |&&node: &&DoubleDouble| (x - node).round().abs() < 4.0 * f64::EPSILON;
                reference.iter().find(near).copied().unwrap_or(x)
            })
            .collect();
        Self::at_reference(&reference, &snapped)
    }

    /// Returns ℓ_i(x_q).
    pub fn value(&self, q: usize, i: usize) -> f64 {
        self.values[q * self.nodes + i]
    }

    /// Returns ℓ_i'(x_q).
    pub fn derivative(&self, q: usize, i: usize) -> f64 {
        self.derivatives[q * self.nodes + i]
    }

    /// Returns ℓ_i(x_q) or a derivative of it, by its order.
    pub fn entry(&self, order: usize, q: usize, i: usize) -> f64 {
        let entries = match order {
            0 => &self.values,
            1 => &self.derivatives,
            _ => &self.seconds,
        };
        entries[q * self.nodes + i]
    }

    /// Returns the table on [−1, 1], its derivatives scaled to [0, 1].
    fn at_reference(nodes: &[DoubleDouble], points: &[DoubleDouble]) -> Self {
        let n = nodes.len();
        let mut values = Vec::with_capacity(points.len() * n);
        let mut derivatives = Vec::with_capacity(points.len() * n);
        let mut seconds = Vec::with_capacity(points.len() * n);
        for &x in points {
            for i in 0..n {
                let (mut value, mut derivative) = (DoubleDouble::ONE, DoubleDouble::ZERO);
                let mut second = DoubleDouble::ZERO;
                for j in (0..n).filter(|&j| j != i) {
                    let scale = DoubleDouble::ONE / (nodes[i] - nodes[j]);
                    let factor = (x - nodes[j]) * scale;
                    second = second * factor + (derivative + derivative) * scale;
                    derivative = derivative * factor + value * scale;
                    value = value * factor;
                }
                values.push(value.round_or_zero());
                derivatives.push(2.0 * derivative.round_or_zero());
                seconds.push(4.0 * second.round_or_zero());
            }
        }
        Self { points: points.len(), nodes: n, values, derivatives, seconds }
    }

    /// Copies the first half of the entries onto the second, point-reflected.
    pub(super) fn mirror(&mut self) {
        let entries = self.values.len();
        for entry in 0..entries / 2 {
            self.values[entries - 1 - entry] = self.values[entry];
            self.derivatives[entries - 1 - entry] = -self.derivatives[entry];
            self.seconds[entries - 1 - entry] = self.seconds[entry];
        }
        if entries % 2 == 1 {
            self.derivatives[entries / 2] = 0.0;
        }
    }
}

#[cfg(test)]
mod tests;
