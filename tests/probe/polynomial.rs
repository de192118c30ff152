//! Polynomials in x with exact integrals over the unit box: the reference for `wf probe`.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::ops::{Add, Mul};

/// Σ c x^a y^b z^c, by exponents.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Polynomial {
    terms: BTreeMap<[u32; 3], f64>,
}

/// Returns a constant.
pub(crate) fn constant(c: f64) -> Polynomial {
    Polynomial { terms: BTreeMap::from([([0; 3], c)]) }
}

/// Returns the coordinate x_i.
pub(crate) fn x(i: usize) -> Polynomial {
    let mut exponents = [0; 3];
    exponents[i] = 1;
    Polynomial { terms: BTreeMap::from([(exponents, 1.0)]) }
}

impl Polynomial {
    /// Returns all monomials of at most this degree in `dim` coordinates, with distinct coefficients of both signs for
    /// all monomials and seeds.
    pub(crate) fn full(dim: usize, degree: u32, seed: u32) -> Self {
        let mut terms = BTreeMap::new();
        for a in 0..=degree {
            for b in 0..=degree - a {
                for c in 0..=if dim == 3 { degree - a - b } else { 0 } {
                    let number = f64::from((7 * a + 11 * b + 13 * c + 5 * seed + 3) % 17) - 8.0;
                    terms.insert([a, b, c], (number + 0.5) / 8.0);
                }
            }
        }
        Self { terms }
    }

    pub(crate) fn times(&self, c: f64) -> Self {
        Self { terms: self.terms.iter().map(|(&e, &value)| (e, c * value)).collect() }
    }

    /// Computes ∂/∂x_i.
    pub(crate) fn derivative(&self, i: usize) -> Self {
        let mut terms = BTreeMap::new();
        for (&(mut exponents), &value) in &self.terms {
            if exponents[i] > 0 {
                let power = f64::from(exponents[i]);
                exponents[i] -= 1;
                *terms.entry(exponents).or_insert(0.0) += power * value;
            }
        }
        Self { terms }
    }

    /// Returns the integral from 0 to x_0.
    pub(crate) fn primitive(&self) -> Self {
        let of =
            |(&[a, b, c], &value): (&[u32; 3], &f64)| ([a + 1, b, c], value / f64::from(a + 1));
        Self { terms: self.terms.iter().map(of).collect() }
    }

    /// Computes ∫ over the unit box of `dim` dimensions.
    pub(crate) fn integral(&self, dim: usize) -> f64 {
        let of = |exponents: &[u32; 3]| {
            exponents[..dim].iter().map(|&e| 1.0 / f64::from(e + 1)).product::<f64>()
        };
        self.terms.iter().map(|(exponents, value)| value * of(exponents)).sum()
    }

    /// Returns its value.
    pub(crate) fn at(&self, point: [f64; 3]) -> f64 {
        let [x, y, z] = point;
        let of = |e: &[u32; 3]| x.powi(e[0] as i32) * y.powi(e[1] as i32) * z.powi(e[2] as i32);
        self.terms.iter().map(|(exponents, value)| value * of(exponents)).sum()
    }
}

/// Computes ∇a · ∇b.
pub(crate) fn gradients(a: &Polynomial, b: &Polynomial, dim: usize) -> Polynomial {
    (0..dim).fold(Polynomial::default(), |sum, i| sum + a.derivative(i) * b.derivative(i))
}

impl<T: Into<Polynomial>> Add<T> for Polynomial {
    type Output = Self;

    fn add(mut self, other: T) -> Self {
        for (exponents, value) in other.into().terms {
            *self.terms.entry(exponents).or_insert(0.0) += value;
        }
        self
    }
}

impl<T: Into<Polynomial>> Mul<T> for Polynomial {
    type Output = Self;

    fn mul(self, other: T) -> Self {
        let other = other.into();
        let mut terms = BTreeMap::new();
        for (a, left) in &self.terms {
            for (b, right) in &other.terms {
                let sum = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
                *terms.entry(sum).or_insert(0.0) += left * right;
            }
        }
        Self { terms }
    }
}

impl From<&Polynomial> for Polynomial {
    fn from(other: &Polynomial) -> Self {
        other.clone()
    }
}

/// Notation of the language.
impl Display for Polynomial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        for (place, (exponents, value)) in self.terms.iter().enumerate() {
            write!(f, "{}{value:?}", if place > 0 { " + " } else { "" })?;
            for (i, &e) in exponents.iter().enumerate().filter(|(_, e)| **e > 0) {
                write!(f, " * x[{i}]^{e}")?;
            }
        }
        Ok(())
    }
}
