//! A 1D matrix applied to values in registers: the inner step of sum factorisation.
//!
//! ```text
//! out_i = Σ_j M_ij in_j
//! ```
//!
//! Interpolation and derivative matrices between point sets symmetric about the middle are
//! centro-symmetric, M_{m-1-i, n-1-j} = ±M_ij. With e_j = in_j + in_{n-1-j} and
//! o_j = in_j − in_{n-1-j} the product splits into two of half the size (Solomonoff 1992; Kopriva
//! 2009, section 3.5.3).

use crate::kir::ValueId;
use crate::kir::build::Builder;

/// A small dense matrix, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Number of outputs.
    pub rows: usize,
    /// Number of inputs.
    pub columns: usize,
    /// Entries.
    pub entries: Vec<f64>,
}

/// The symmetry of a matrix under reversal of its rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    Even,
    Odd,
    None,
}

impl Matrix {
    /// From rows.
    pub fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entries =
            (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))).map(|(i, j)| entry(i, j));
        Self { rows, columns, entries: entries.collect() }
    }

    /// M_ij.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.entries[i * self.columns + j]
    }

    /// The transposed matrix.
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.at(j, i))
    }

    /// Whether it is the identity.
    pub fn is_identity(&self) -> bool {
        self.rows == self.columns
            && (0..self.rows)
                .all(|i| (0..self.columns).all(|j| self.at(i, j) == f64::from(u8::from(i == j))))
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

/// Which products use the even-odd decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvenOdd {
    /// Wherever the matrix allows it.
    Always,
    /// Never.
    Never,
}

/// `Σ_j M_ij in_j`, added to `onto` where that is given.
pub fn contract(
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
    let symmetry = if matrix.columns < 2 || matrix.rows < 2 || even_odd == EvenOdd::Never {
        Symmetry::None
    } else {
        matrix.symmetry()
    };
    match symmetry {
        Symmetry::None => dense(b, matrix, input, onto),
        Symmetry::Even => decomposed(b, matrix, input, onto, 1.0),
        Symmetry::Odd => decomposed(b, matrix, input, onto, -1.0),
    }
}

/// Σ_j factor_j · value_j, added to `start` where that is given.
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

fn decomposed(
    b: &mut Builder,
    matrix: &Matrix,
    input: &[ValueId],
    onto: Option<&[ValueId]>,
    sign: f64,
) -> Vec<ValueId> {
    let (m, n) = (matrix.rows, matrix.columns);
    let half = n / 2;
    let mut even: Vec<ValueId> = (0..half).map(|j| b.add(input[j], input[n - 1 - j])).collect();
    let odd: Vec<ValueId> = (0..half).map(|j| b.sub(input[j], input[n - 1 - j])).collect();
    if n % 2 == 1 {
        even.push(input[half]);
    }
    let even_factor = |i: usize, j: usize| {
        if 2 * j + 1 == n {
            matrix.at(i, j)
        } else {
            0.5 * (matrix.at(i, j) + matrix.at(i, n - 1 - j))
        }
    };
    let odd_factor = |i: usize, j: usize| 0.5 * (matrix.at(i, j) - matrix.at(i, n - 1 - j));
    let zero = b.constant(0.0);
    let mut output = vec![zero; m];
    for i in 0..m.div_ceil(2) {
        let mirror = m - 1 - i;
        let evens = even.iter().enumerate().map(|(j, &e)| (even_factor(i, j), e));
        let a = sum(b, evens, None);
        let odds = odd.iter().enumerate().map(|(j, &o)| (odd_factor(i, j), o));
        let c = sum(b, odds, None);
        let (a, c) = (a.unwrap_or(zero), c.unwrap_or(zero));
        let plus = |b: &mut Builder, value: ValueId, at: usize| match onto {
            Some(onto) => b.add(onto[at], value),
            None => value,
        };
        let total = b.add(a, c);
        output[i] = plus(b, total, i);
        if mirror != i {
            let difference = if sign > 0.0 { b.sub(a, c) } else { b.sub(c, a) };
            output[mirror] = plus(b, difference, mirror);
        }
    }
    output
}
