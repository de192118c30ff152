//! Values at points, their checks, and the parts of the boundary where they are prescribed.

use crate::Error;
use std::sync::OnceLock;

/// The value of a field, a parameter or data at a point: a number, or one for each component.
pub trait Value {
    /// Returns the components in order; those of a matrix row by row.
    fn components(&self) -> &[f64];
}

impl Value for f64 {
    fn components(&self) -> &[f64] {
        std::slice::from_ref(self)
    }
}

impl<const N: usize> Value for [f64; N] {
    fn components(&self) -> &[f64] {
        self
    }
}

impl<const N: usize, const M: usize> Value for [[f64; M]; N] {
    fn components(&self) -> &[f64] {
        self.as_flattened()
    }
}

impl Value for Vec<f64> {
    fn components(&self) -> &[f64] {
        self
    }
}

/// A part of the boundary.
#[derive(Clone, Debug, PartialEq)]
pub enum Boundary {
    /// Every facet of exactly one cell.
    All,
    /// The facets with one of these tags; the curves and points of a tag without facets.
    Tags(Vec<String>),
    /// The vertex nearest to a point.
    Vertex([f64; 3]),
}

/// The whole boundary.
pub const ALL: Boundary = Boundary::All;

impl From<&str> for Boundary {
    fn from(tag: &str) -> Self {
        Self::Tags(vec![tag.to_owned()])
    }
}

impl<const N: usize> From<[&str; N]> for Boundary {
    fn from(tags: [&str; N]) -> Self {
        Self::Tags(tags.map(str::to_owned).into())
    }
}

/// Writes the components at each of some points, one point after another, after checking their number.
pub(super) type ValueWriter =
    Box<dyn Fn(&[[f64; 3]], &mut [f64]) -> Result<(), Error> + Send + Sync>;

/// The error of a function of the caller.
pub(super) type FunctionError = Box<dyn std::error::Error + Send + Sync>;

/// Checks that a value has the expected number of components.
pub(super) fn components(name: &str, expected: usize, value: &[f64]) -> Result<(), Error> {
    let (name, found) = (name.to_owned(), value.len());
    if found == expected { Ok(()) } else { Err(Error::Components { name, expected, found }) }
}

/// Writes the values of a function, and records the first with a wrong number of components.
pub(super) fn checked<V: Value>(
    name: &str,
    value: impl Fn(&[f64; 3]) -> V + Sync,
    wrong: &OnceLock<Error>,
) -> impl Fn(&[f64; 3], &mut [f64]) + Sync {
    move |x, row| {
        let value = value(x);
        match components(name, row.len(), value.components()) {
            Ok(()) => row.copy_from_slice(value.components()),
            Err(error) => {
                row.fill(0.0);
                let _ = wrong.set(error);
            }
        }
    }
}

pub(super) fn writing<V: Value>(
    name: &str,
    value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static,
) -> ValueWriter {
    let name = name.to_owned();
    Box::new(move |points, rows| {
        let count = rows.len() / points.len().max(1);
        points.iter().zip(rows.chunks_mut(count.max(1))).try_for_each(|(x, row)| {
            let value = value(x);
            components(&name, row.len(), value.components())?;
            row.copy_from_slice(value.components());
            Ok(())
        })
    })
}

/// Returns the writer of a function of all points.
pub(super) fn writing_all(
    name: &str,
    values: impl Fn(&[[f64; 3]]) -> Result<Vec<f64>, FunctionError> + Send + Sync + 'static,
) -> ValueWriter {
    let name = name.to_owned();
    Box::new(move |points, rows| {
        let values = values(points).map_err(Error::Function)?;
        numbers(&name, rows.len(), &values)?;
        rows.copy_from_slice(&values);
        Ok(())
    })
}

/// Checks that there are as many values as expected.
pub(super) fn numbers(name: &str, expected: usize, values: &[f64]) -> Result<(), Error> {
    let (name, found) = (name.to_owned(), values.len());
    if found == expected { Ok(()) } else { Err(Error::Numbers { name, expected, found }) }
}
