//! A 1D matrix applied to values in registers: the inner step of sum factorisation.
//!
//! ```text
//! out_i = Σ_j M_ij in_j
//! ```
//!
//! Interpolation and derivative matrices between point sets symmetric about the middle are centro-symmetric, M_{m-1-i,
//! n-1-j} = ±M_ij. With e_j = in_j + in_{n-1-j} and o_j = in_j − in_{n-1-j} the product splits into two of half the
//! size (Solomonoff 1992; Kopriva 2009, section 3.5.3).

use crate::kir::ValueId;
use crate::kir::build::Builder;
use crate::plan::EvenOdd;

/// A small dense matrix, row-major.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Matrix {
    /// Number of outputs.
    pub(crate) rows: usize,
    /// Number of inputs.
    pub(crate) columns: usize,
    /// Entries.
    pub(crate) entries: Vec<f64>,
}

/// The symmetry of a matrix under reversal of its rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    Even,
    Odd,
    None,
}

impl Matrix {
    /// Creates a matrix from its entries.
    pub(crate) fn from_fn(
        rows: usize,
        columns: usize,
        entry: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let entries =
            (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| entry(i, j));
        Self { rows, columns, entries: entries.collect() }
    }

    /// Returns M_ij.
    pub(crate) fn at(&self, i: usize, j: usize) -> f64 {
        self.entries[i * self.columns + j]
    }

    /// Returns the transposed matrix.
    pub(crate) fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// Returns whether it is the identity.
    pub(crate) fn is_identity(&self) -> bool {
        self.rows == self.columns
            && (0..self.rows)
                .all(|i| (0..self.columns).all(|j| self.at(i, j) == f64::from(u8::from(i == j))))
    }

    /// Returns whether all rows are equal.
    fn has_one_row(&self) -> bool {
        (1..self.rows).all(|i| (0..self.columns).all(|j| self.at(i, j) == self.at(0, j)))
    }

    /// Returns whether both of two rows interpolate between two values, with factors that add up to 1. For three rows
    /// even and odd parts take as many operations and fewer registers.
    fn is_linear(&self) -> bool {
        let one = |i: usize| (self.at(i, 0) + self.at(i, 1) - 1.0).abs() <= f64::EPSILON;
        self.columns == 2 && self.rows == 2 && (0..self.rows).all(one)
    }

    fn symmetry(&self) -> Symmetry {
        let holds = |sign: f64| {
            (0..self.rows).all(|i| {
                (0..self.columns).all(|j| {
                    self.at(self.rows - 1 - i, self.columns - 1 - j) == sign * self.at(i, j)
                })
            })
        };
        if holds(1.0) {
            Symmetry::Even
        } else if holds(-1.0) {
            Symmetry::Odd
        } else {
            Symmetry::None
        }
    }
}

/// Computes `Σ_j M_ij in_j`, added to `onto` if present.
pub(crate) fn contract(
    b: &mut Builder,
    matrix: &Matrix,
    input: &[ValueId],
    onto: Option<&[ValueId]>,
    even_odd: EvenOdd,
) -> Vec<ValueId> {
    assert_eq!(matrix.columns, input.len(), "a product should fit");
    if matrix.is_identity() {
        return match onto {
            None => input.to_vec(),
            Some(onto) => input.iter().zip(onto).map(|(&a, &c)| b.add(a, c)).collect(),
        };
    }
    if matrix.rows > 1 && matrix.has_one_row() {
        let one = one_row(b, matrix, input);
        return match onto {
            None => vec![one; matrix.rows],
            Some(onto) => onto.iter().map(|&value| b.add(value, one)).collect(),
        };
    }
    if matrix.columns > 1 && matrix.transposed().has_one_row() {
        let (first, rest) = input.split_first().expect("a product should have a factor");
        let total = rest.iter().fold(*first, |total, &value| b.add(total, value));
        let column = Matrix::from_fn(matrix.rows, 1, |i, _| matrix.at(i, 0));
        return dense(b, &column, &[total], onto);
    }
    if onto.is_none() && matrix.is_linear() {
        return along(b, matrix, input);
    }
    match sign(matrix, even_odd) {
        None => dense(b, matrix, input, onto),
        Some(sign) => {
            let halves = split(b, input);
            let output = halves.times(b, matrix, sign, None);
            output.join(b, matrix.rows, onto)
        }
    }
}

/// Computes in_0 + t_i (in_1 − in_0) with t_i = M_i1, from the nearer of both: one operation per row.
fn along(b: &mut Builder, matrix: &Matrix, input: &[ValueId]) -> Vec<ValueId> {
    let way = b.sub(input[1], input[0]);
    let place = |b: &mut Builder, i: usize| {
        let (from, t) = (matrix.at(i, 0), matrix.at(i, 1));
        if t <= from {
            let t = b.constant(t);
            b.fma(t, way, input[0])
        } else {
            let from = b.constant(from);
            b.fma_neg(from, way, input[1])
        }
    };
    (0..matrix.rows).map(|i| place(b, i)).collect()
}

/// Computes the values B in and their derivatives D B in. Between the two products, even and odd parts stay separate.
pub(crate) fn interpolate_and_derive(
    b: &mut Builder,
    interpolate: &Matrix,
    derive: &Matrix,
    input: &[ValueId],
    even_odd: EvenOdd,
) -> (Vec<ValueId>, Vec<ValueId>) {
    if input.len() == 2 && derive.rows > 1 && derive.has_one_row() {
        // The slope of a linear function, from its values at two nodes.
        let values = contract(b, interpolate, input, None, even_odd);
        let way = b.sub(input[1], input[0]);
        let slope = match inverse_distance(interpolate, derive) {
            1.0 => way,
            scale => {
                let scale = b.constant(scale);
                b.mul(scale, way)
            }
        };
        return (values, vec![slope; derive.rows]);
    }
    let signs = (sign(interpolate, even_odd), sign(derive, even_odd));
    let (Some(first), Some(second)) = signs else {
        let values = contract(b, interpolate, input, None, even_odd);
        let derivatives = contract(b, derive, &values, None, even_odd);
        return (values, derivatives);
    };
    let halves = split(b, input);
    let halves = halves.times(b, interpolate, first, None);
    let values = halves.join(b, interpolate.rows, None);
    let derivatives = halves.times(b, derive, second, None).join(b, derive.rows, None);
    (values, derivatives)
}

/// Returns 1 / (b − a) for a linear function that is interpolated from its values at a and b, and differentiated by D.
fn inverse_distance(interpolate: &Matrix, derive: &Matrix) -> f64 {
    let last = interpolate.rows - 1;
    let way = interpolate.at(last, 1) - interpolate.at(0, 1);
    let scale = way * derive.at(0, derive.columns - 1);
    // The ends of the interval, up to rounding.
    if (scale - 1.0).abs() < 1e-12 { 1.0 } else { scale }
}

/// Computes Bᵀ (values + Dᵀ flux), the transpose of [`interpolate_and_derive`]; `derive` and `interpolate` are Dᵀ and
/// Bᵀ.
pub(crate) fn derive_and_integrate(
    b: &mut Builder,
    derive: &Matrix,
    interpolate: &Matrix,
    flux: &[ValueId],
    values: &[ValueId],
    even_odd: EvenOdd,
) -> Vec<ValueId> {
    if interpolate.rows == 2 && derive.columns > 1 && derive.transposed().has_one_row() {
        let values = contract(b, interpolate, values, None, even_odd);
        let scale = inverse_distance(&interpolate.transposed(), &derive.transposed());
        let ends = Matrix::from_fn(2, flux.len(), |i, _| if i == 0 { -scale } else { scale });
        return contract(b, &ends, flux, Some(&values), even_odd);
    }
    let signs = (sign(derive, even_odd), sign(interpolate, even_odd));
    let (Some(first), Some(second)) = signs else {
        let sum = contract(b, derive, flux, Some(values), even_odd);
        return contract(b, interpolate, &sum, None, even_odd);
    };
    let values = split(b, values);
    let sum = split(b, flux).times(b, derive, first, Some(&values));
    sum.times(b, interpolate, second, None).join(b, interpolate.rows, None)
}

/// Returns the sign of the symmetry of a matrix, if its product is computed by halves.
fn sign(matrix: &Matrix, even_odd: EvenOdd) -> Option<f64> {
    let small = matrix.columns < 2 || matrix.rows < 2;
    if small || even_odd == EvenOdd::Never || matrix.is_identity() {
        return None;
    }
    match matrix.symmetry() {
        Symmetry::Even => Some(1.0),
        Symmetry::Odd => Some(-1.0),
        Symmetry::None => None,
    }
}

/// Even and odd parts of values: v_i = s (e_i + o_i) and v_{n-1-i} = s (e_i − o_i), with s = ½ if `doubled`, else 1.
/// The middle one of an odd number is the last of the even part, unscaled.
struct Halves {
    even: Vec<ValueId>,
    odd: Vec<ValueId>,
    doubled: bool,
}

fn split(b: &mut Builder, values: &[ValueId]) -> Halves {
    let (n, half) = (values.len(), values.len() / 2);
    let mut even: Vec<ValueId> = (0..half).map(|j| b.add(values[j], values[n - 1 - j])).collect();
    let odd = (0..half).map(|j| b.sub(values[j], values[n - 1 - j])).collect();
    if n % 2 == 1 {
        even.push(values[half]);
    }
    Halves { even, odd, doubled: true }
}

impl Halves {
    /// Computes the product with a matrix of the given symmetry, added to `onto`.
    fn times(&self, b: &mut Builder, matrix: &Matrix, sign: f64, onto: Option<&Self>) -> Self {
        let (m, n) = (matrix.rows, matrix.columns);
        let scale = if self.doubled { 0.5 } else { 1.0 };
        let even_factor = |i: usize, j: usize| {
            let mirror = n - 1 - j;
            if j == mirror {
                matrix.at(i, j)
            } else {
                scale * (matrix.at(i, j) + matrix.at(i, mirror))
            }
        };
        let odd_factor = |i: usize, j: usize| scale * (matrix.at(i, j) - matrix.at(i, n - 1 - j));
        let start = |b: &mut Builder, onto: Option<(bool, ValueId)>| match onto {
            Some((true, value)) => {
                let half = b.constant(0.5);
                Some(b.mul(half, value))
            }
            Some((false, value)) => Some(value),
            None => None,
        };
        let zero = b.constant(0.0);
        let (mut even, mut odd) = (Vec::new(), Vec::new());
        for i in 0..m.div_ceil(2) {
            let middle = 2 * i + 1 == m;
            let evens = |b: &mut Builder, start| {
                let terms = self.even.iter().enumerate().map(|(j, &e)| (even_factor(i, j), e));
                sum(b, terms, start).unwrap_or(zero)
            };
            let odds = |b: &mut Builder, start| {
                let terms = self.odd.iter().enumerate().map(|(j, &o)| (odd_factor(i, j), o));
                sum(b, terms, start).unwrap_or(zero)
            };
            let onto_even = onto.map(|onto| (onto.doubled && !middle, onto.even[i]));
            let onto_even = start(b, onto_even);
            even.push(if sign > 0.0 { evens(b, onto_even) } else { odds(b, onto_even) });
            if !middle {
                let onto_odd = start(b, onto.map(|onto| (onto.doubled, onto.odd[i])));
                odd.push(if sign > 0.0 { odds(b, onto_odd) } else { evens(b, onto_odd) });
            }
        }
        Self { even, odd, doubled: false }
    }

    /// Returns the values, added to `onto`.
    fn join(&self, b: &mut Builder, count: usize, onto: Option<&[ValueId]>) -> Vec<ValueId> {
        assert!(!self.doubled, "only products should be put together");
        let mut values = vec![self.even[0]; count];
        for (i, &even) in self.even.iter().enumerate() {
            let Some(&odd) = self.odd.get(i) else {
                values[i] = even;
                continue;
            };
            values[i] = b.add(even, odd);
            values[count - 1 - i] = b.sub(even, odd);
        }
        match onto {
            Some(onto) => values.iter().zip(onto).map(|(&v, &o)| b.add(o, v)).collect(),
            None => values,
        }
    }
}

/// Computes Σ_j factor_j · value_j, added to `start` if present.
fn sum(
    b: &mut Builder,
    terms: impl Iterator<Item = (f64, ValueId)>,
    start: Option<ValueId>,
) -> Option<ValueId> {
    let mut total = start;
    for (factor, value) in terms {
        if factor == 0.0 {
            continue;
        }
        let constant = b.constant(factor);
        total = Some(match total {
            None => b.mul(constant, value),
            Some(so_far) => b.fma(constant, value, so_far),
        });
    }
    total
}

/// Computes the product with the first row; as one difference, if possible.
fn one_row(b: &mut Builder, matrix: &Matrix, input: &[ValueId]) -> ValueId {
    let row = &matrix.entries[..matrix.columns];
    let (first, last) = (row[0], row[matrix.columns - 1]);
    let ends_alone = row.iter().filter(|&&entry| entry != 0.0).count() == 2;
    if first == -last && first != 0.0 && ends_alone {
        let difference = b.sub(input[matrix.columns - 1], input[0]);
        let scale = b.constant(last);
        return b.mul(scale, difference);
    }
    let terms = row.iter().copied().zip(input.iter().copied());
    sum(b, terms, None).unwrap_or_else(|| b.constant(0.0))
}

fn dense(
    b: &mut Builder,
    matrix: &Matrix,
    input: &[ValueId],
    onto: Option<&[ValueId]>,
) -> Vec<ValueId> {
    (0..matrix.rows)
        .map(|i| {
            let terms = input.iter().enumerate().map(|(j, &value)| (matrix.at(i, j), value));
            let total = sum(b, terms, onto.map(|onto| onto[i]));
            total.unwrap_or_else(|| b.constant(0.0))
        })
        .collect()
}
