//! Vectors as complex ones: pairs of fields that are real and imaginary parts, [`ComplexPairs`].

use super::{Vector, VectorData, blas};
use std::ops::Range;

/// The fields of a vector in pairs, the degrees of freedom of the real and of the imaginary part. All entries are in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComplexPairs(Vec<[Range<usize>; 2]>);

impl ComplexPairs {
    /// Creates the pairs; `None` if there are none, or parts of different length.
    pub fn new(pairs: Vec<[Range<usize>; 2]>) -> Option<Self> {
        let are_equal = pairs.iter().all(|[re, im]| re.len() == im.len());
        (are_equal && !pairs.is_empty()).then_some(Self(pairs))
    }

    /// Returns the pairs.
    pub fn pairs(&self) -> &[[Range<usize>; 2]] {
        &self.0
    }

    /// Computes y = i x.
    pub fn rotate(&self, x: &Vector, y: &mut Vector) {
        for [re, im] in &self.0 {
            y.copy_part(-1.0, x, im.clone(), re.clone());
            y.copy_part(1.0, x, re.clone(), im.clone());
        }
    }
}

impl Vector {
    /// Sets the entries `to` to a times those of `from` of a vector in the same place.
    fn copy_part(&mut self, a: f64, x: &Self, from: Range<usize>, to: Range<usize>) {
        let all = self.len;
        match (&mut self.data, &x.data) {
            (VectorData::Single(y), VectorData::Single(x)) => {
                blas::convert(&mut y[to], &x[from], |x| a as f32 * x);
            }
            (VectorData::Double(y), VectorData::Double(x)) => {
                blas::convert(&mut y[to], &x[from], |x| a * x);
            }
            (VectorData::Remote(y), VectorData::Remote(x)) => {
                y.copy_part(a, x, (&from, &to), all);
            }
            _ => unreachable!("vectors that are alike lie in one place"),
        }
    }
}
