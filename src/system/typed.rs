//! Values and names that are checked at compile time, for which [`weak_form!`](crate::weak_form) generates items.

use super::Value;
use super::value::{ValueWriter, writing};

/// The parameters of a form: implemented by the struct that [`weak_form!`](crate::weak_form) generates,
/// `poisson::Params`.
pub trait Params {
    /// Calls `each` with the name and the components of each parameter.
    fn visit(&self, each: &mut dyn FnMut(&'static str, &[f64]));
}

/// The auxiliary data of a form: implemented by the struct that [`weak_form!`](crate::weak_form) generates,
/// `poisson::Aux`.
pub trait Data {
    /// Calls `each` with the name and the values of each.
    fn visit(self, each: &mut dyn FnMut(&'static str, DataValues));
}

/// The name of a field: text, or the type that [`weak_form!`](crate::weak_form) generates, `poisson::field::u`; a wrong
/// type name does not compile.
pub trait FieldName {
    /// Returns the name.
    fn name(&self) -> &str;
}

/// The name of a field whose values have this type. Text fits any field; the components of its values are counted at
/// run time.
pub trait TypedField<V>: FieldName {}

impl FieldName for &str {
    fn name(&self) -> &str {
        self
    }
}

impl FieldName for &String {
    fn name(&self) -> &str {
        self
    }
}

impl<V: Value> TypedField<V> for &str {}

impl<V: Value> TypedField<V> for &String {}

/// A boxed function of position.
type PositionFunction<V> = Box<dyn Fn(&[f64; 3]) -> V + Send + Sync>;

/// A function of position, created by [`at`].
pub struct Function<V>(PositionFunction<V>);

impl<V: Value + 'static> Function<V> {
    /// Returns the function as values of the data of this name.
    pub fn written(self, name: &str) -> DataValues {
        DataValues(writing(name, self.0))
    }
}

impl<V> std::fmt::Debug for Function<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function of the place")
    }
}

/// Values of auxiliary data of any type, created by [`Function::written`].
pub struct DataValues(pub(super) ValueWriter);

impl std::fmt::Debug for DataValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("values of auxiliary data")
    }
}

/// Returns auxiliary data as a function of position, for the struct of a form's data:
/// `Aux { kappa: at(|x| 1.0 + x[0]) }`.
pub fn at<V: Value>(value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static) -> Function<V> {
    Function(Box::new(value))
}
