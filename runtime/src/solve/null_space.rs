//! Null space of a singular, consistent system: the constants e of fields that are free up to a constant.
//!
//! ```text
//! J e = 0,   eᵀ J = 0,   eᵀ R(u) = 0        project   x ← x − e (e·x)/(e·e)
//! ```
//!
//! All rows of such a system are solved. A matrix to be factorised is pinned, J + α e_i e_iᵀ, at a degree of freedom i
//! of the field. For eᵀ b = 0 the i-th entry of its solution is 0, and the solution solves J x = b.

use crate::algebra::sparse::{Csc, Csr};
use crate::algebra::vector::Vector;

/// Degrees of freedom of a constant: an arithmetic progression without some members.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantEntries {
    /// First degree of freedom.
    pub first: usize,
    /// End of the field's degrees of freedom.
    pub end: usize,
    /// Number of components of the field.
    pub step: usize,
    /// Dependent degrees of freedom, ascending; excluded.
    pub without: Vec<u32>,
}

impl ConstantEntries {
    /// Iterates over the degrees of freedom, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        let given = |unknown: &usize| self.without.binary_search(&(*unknown as u32)).is_ok();
        (self.first..self.end).step_by(self.step).filter(move |unknown| !given(unknown))
    }

    /// Returns the indicator vector, like another vector.
    fn ones(&self, like: &Vector) -> Vector {
        let Self { first, end, step, ref without } = *self;
        let mut ones = like.like();
        if !without.is_empty() {
            let mut entries = vec![0.0; like.len()];
            self.iter().for_each(|unknown| entries[unknown] = 1.0);
            ones.set(&entries);
            return ones;
        }
        ones.fill(1.0);
        // The field has as many nodes as its component.
        let start = end - (end - first).div_ceil(step) * step;
        let weights: Vec<f64> =
            (0..step).map(|component| f64::from(u8::from(component == first - start))).collect();
        ones = ones.restricted_to(start..end);
        ones.weigh(start..end, &weights);
        ones
    }
}

/// A constant of a component of a field.
pub struct Constant {
    /// Its degrees of freedom.
    pub entries: ConstantEntries,
    /// Its indicator vector.
    pub ones: Vector,
    /// e·e.
    square: f64,
}

/// Constants in the null space of an operator whose range is orthogonal to them.
pub struct NullSpace {
    constants: Vec<Constant>,
}

impl NullSpace {
    /// Creates the null space of constants with these degrees of freedom, for vectors like one.
    pub fn new(entries: Vec<ConstantEntries>, like: &Vector) -> Self {
        let constant = |entries: ConstantEntries| {
            let ones = entries.ones(like);
            let square = ones.dot(&ones);
            Constant { entries, ones, square }
        };
        Self { constants: entries.into_iter().map(constant).collect() }
    }

    /// Creates the same null space for other vectors of the same degrees of freedom.
    pub fn like(&self, like: &Vector) -> Self {
        Self::new(self.constants.iter().map(|own| own.entries.clone()).collect(), like)
    }

    /// Returns the constants.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// Projects a vector onto the orthogonal complement of the constants.
    pub fn project(&self, x: &mut Vector) {
        for Constant { ones, square, .. } in &self.constants {
            if *square > 0.0 {
                x.axpy(-x.dot(ones) / square, ones);
            }
        }
    }

    /// Projects the entries of one process.
    pub fn project_entries(&self, x: &mut [f64]) {
        for Constant { entries, .. } in &self.constants {
            let (count, sum) =
                entries.iter().fold((0.0, 0.0), |(count, sum), at| (count + 1.0, sum + x[at]));
            if count > 0.0 {
                entries.iter().for_each(|at| x[at] -= sum / count);
            }
        }
    }

    /// Returns one degree of freedom of each constant.
    pub fn pins(&self) -> Vec<usize> {
        self.constants.iter().filter_map(|own| own.entries.iter().next()).collect()
    }
}

/// Returns α of a pin: the largest magnitude of its column's entries `values`.
fn pin(values: impl Iterator<Item = f64>) -> f64 {
    let largest = values.fold(0.0, |most: f64, value| most.max(value.abs()));
    if largest > 0.0 { largest } else { 1.0 }
}

/// Returns J + α e_i e_iᵀ for some i.
pub fn pinned(matrix: Csc, pins: &[usize]) -> Csc {
    if pins.is_empty() {
        return matrix;
    }
    let mut own = Csc { starts: vec![0], rows: Vec::new(), values: Vec::new() };
    for j in 0..matrix.starts.len() - 1 {
        let alpha = pins.contains(&j).then(|| pin(matrix.column(j).map(|(_, value)| value)));
        let mut left = alpha;
        for (i, value) in matrix.column(j) {
            if i > j
                && let Some(alpha) = left.take()
            {
                own.rows.push(j as u32);
                own.values.push(alpha);
            }
            let more = if i == j { left.take().unwrap_or(0.0) } else { 0.0 };
            own.rows.push(i as u32);
            own.values.push(value + more);
        }
        if let Some(alpha) = left {
            own.rows.push(j as u32);
            own.values.push(alpha);
        }
        own.starts.push(own.rows.len());
    }
    own
}

/// Returns J + α e_i e_iᵀ for a matrix by rows, and α of each pin.
pub fn pinned_rows(matrix: &Csr, pins: &[usize]) -> (Csr, Vec<f64>) {
    let alphas = pins.iter().map(|&i| pin(matrix.row(i).map(|(_, value)| value))).collect();
    let Csr { starts, columns, values, .. } = matrix;
    let columns = Csc { starts: starts.clone(), rows: columns.clone(), values: values.clone() };
    let Csc { starts, rows, values } = pinned(columns, pins);
    (Csr::square(starts, rows, values), alphas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::vector::Precision;

    #[test]
    fn projections_are_orthogonal_to_constants() {
        let entries = ConstantEntries { first: 2, end: 8, step: 2, without: vec![4] };
        assert_eq!(entries.iter().collect::<Vec<_>>(), [2, 6]);
        let mut x = Vector::from_slice(&[1.0, 1.0, 5.0, 1.0, 1.0, 1.0, 1.0, 1.0], Precision::F64);
        let null = NullSpace::new(vec![entries], &x);
        let mut numbers = x.to_vec();
        null.project(&mut x);
        null.project_entries(&mut numbers);
        assert_eq!(x.to_vec(), [1.0, 1.0, 2.0, 1.0, 1.0, 1.0, -2.0, 1.0]);
        assert_eq!(numbers, x.to_vec());
        assert_eq!(null.pins(), [2]);
    }

    #[test]
    fn pins_are_on_the_diagonal() {
        let matrix = Csc {
            starts: vec![0, 1, 2, 4],
            rows: vec![1, 0, 0, 2],
            values: vec![3.0, 4.0, 5.0, 6.0],
        };
        let made = pinned(matrix, &[0, 1, 2]);
        assert_eq!(made.starts, [0, 2, 4, 6]);
        assert_eq!(made.rows, [0, 1, 0, 1, 0, 2]);
        assert_eq!(made.values, [3.0, 3.0, 4.0, 4.0, 5.0, 12.0]);
    }
}
