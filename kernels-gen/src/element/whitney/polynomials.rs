//! The functions of Whitney elements on simplices, dual to the moments.
//!
//! With the orthogonal polynomials p_m of degree at most k − 1, q those of degree k − 1 alone, and x from vertex 0, the
//! space is spanned by
//!
//! ```text
//! H(curl)   p_m e_a    and    q (−y, x) in the plane;  x × q e_a in space, of e_z those q without a factor in z
//! H(div)    p_m e_a    and    q x
//! ```
//!
//! (J.-C. Nédélec, "Mixed finite elements in R³", Numer. Math. 35 (1980), definitions 2 and 3). In space x × z q' e_z is
//! x × q' (z e_z − x) = −x × q' (x e_x + y e_y): it adds nothing. Coefficients are the inverse of the matrix of moments,
//! computed with 32 digits.

use super::{Whitney, WhitneyFamily};
use crate::element::double::DoubleDouble;
use crate::element::simplex::{Dual, degrees, inverse, orthogonal};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The size below which an entry of a table is a rounding error of the rules of moments.
const ROUNDING: f64 = 1e-15;

/// The functions of an element on a simplex in terms of a spanning set.
pub(in crate::element) struct WhitneyBasis {
    element: Whitney,
    /// Coefficient of spanning function m in function i at `[m][i]`.
    coefficients: Vec<Vec<DoubleDouble>>,
}

/// The bases that were asked for: each takes an inverse.
static KNOWN: Mutex<BTreeMap<Whitney, Arc<WhitneyBasis>>> = Mutex::new(BTreeMap::new());

impl WhitneyBasis {
    /// Returns the basis of an element, computed once.
    pub(in crate::element) fn of(element: Whitney) -> Arc<Self> {
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(&element).cloned();
        found.unwrap_or_else(|| {
            let own = Arc::new(Self::new(element));
            known().insert(element, Arc::clone(&own));
            own
        })
    }

    /// Computes the basis dual to the element's moments.
    fn new(element: Whitney) -> Self {
        let mut known: BTreeMap<[u64; 3], Vec<[Dual; 3]>> = BTreeMap::new();
        let mut row = |dof| {
            let mut row = Vec::new();
            for (point, weights) in element.functional(dof, element.degree / 2 + 1) {
                let spanning = known
                    .entry(point.map(f64::to_bits))
                    .or_insert_with(|| spanning(element, point));
                row.resize(spanning.len(), DoubleDouble::ZERO);
                for (sum, function) in row.iter_mut().zip(spanning) {
                    for (weight, part) in weights.into_iter().zip(function) {
                        *sum += DoubleDouble::from(weight) * part.value;
                    }
                }
            }
            row
        };
        let matrix = element.dofs().iter().map(&mut row).collect();
        Self { element, coefficients: inverse(matrix) }
    }

    /// Returns value and gradient of each component of each function at a point.
    pub(in crate::element) fn evaluate(&self, point: [f64; 3]) -> Vec<[(f64, [f64; 3]); 3]> {
        let spanning = spanning(self.element, point);
        let near = |x: DoubleDouble| if x.round().abs() < ROUNDING { 0.0 } else { x.round() };
        let function = |i: usize| {
            [0, 1, 2].map(|a| {
                let mut sum = Dual::ZERO;
                for (function, row) in spanning.iter().zip(&self.coefficients) {
                    sum.value += function[a].value * row[i];
                    for c in 0..3 {
                        sum.gradient[c] += function[a].gradient[c] * row[i];
                    }
                }
                (near(sum.value), sum.gradient.map(near))
            })
        };
        (0..self.coefficients.len()).map(function).collect()
    }
}

/// Returns the spanning functions at a point, component by component.
fn spanning(element: Whitney, point: [f64; 3]) -> Vec<[Dual; 3]> {
    let (dim, degree) = (element.cell.dim(), element.degree - 1);
    let (scalars, degrees) = (orthogonal(dim, degree, point), degrees(dim, degree));
    let x = [0, 1, 2].map(|axis| Dual::coordinate(axis, point[axis]));
    let minus = |dual: Dual| Dual::ZERO.minus(dual);
    let mut all = Vec::new();
    for (&scalar, powers) in scalars.iter().zip(&degrees) {
        for a in 0..dim {
            let mut function = [Dual::ZERO; 3];
            function[a] = scalar;
            all.push(function);
        }
        if powers.iter().sum::<usize>() < degree {
            continue;
        }
        let [qx, qy, qz] = x.map(|x| scalar.times(x));
        match (element.family, dim) {
            (WhitneyFamily::Div, 2) => all.push([qx, qy, Dual::ZERO]),
            (WhitneyFamily::Div, _) => all.push([qx, qy, qz]),
            (WhitneyFamily::Curl, 2) => all.push([minus(qy), qx, Dual::ZERO]),
            (WhitneyFamily::Curl, _) => {
                all.push([Dual::ZERO, qz, minus(qy)]);
                all.push([minus(qz), Dual::ZERO, qx]);
                if powers[2] == 0 {
                    all.push([qy, minus(qx), Dual::ZERO]);
                }
            }
        }
    }
    all
}
