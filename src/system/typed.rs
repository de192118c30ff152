//! Values and names that are checked while the program is compiled: what [`weak_form!`](crate::weak_form) makes items for.

use super::Value;
use super::setup::{Write, writing};

/// The parameters of a form, as a struct that [`weak_form!`](crate::weak_form) makes for it: `poisson::Params`.
pub trait Params {
    /// Calls `each` with the name and the components of each parameter.
    fn visit(&self, each: &mut dyn FnMut(&'static str, &[f64]));
}

/// The auxiliary data of a form, as a struct that [`weak_form!`](crate::weak_form) makes for it: `poisson::Aux`.
pub trait Data {
    /// Calls `each` with the name and the values of each.
    fn visit(self, each: &mut dyn FnMut(&'static str, Written));
}

/// The name of a field: text, or what [`weak_form!`](crate::weak_form) makes for it, `poisson::field::u`, of which a wrong
/// one does not compile.
pub trait FieldName {
    /// The name.
    fn name(&self) -> &str;
}

/// The name of a field whose values have this type. Text is that of any; its values are counted when the program runs.
pub trait FieldOf<V>: FieldName {}

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

impl<V: Value> FieldOf<V> for &str {}

impl<V: Value> FieldOf<V> for &String {}

/// What is kept of a function of the place.
type Boxed<V> = Box<dyn Fn(&[f64; 3]) -> V + Send + Sync>;

/// A function of the place: [`at`] makes one.
pub struct Function<V>(Boxed<V>);

impl<V: Value + 'static> Function<V> {
    /// The function, as values of the data of this name.
    pub fn written(self, name: &str) -> Written {
        Written(writing(name, self.0))
    }
}

impl<V> std::fmt::Debug for Function<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function of the place")
    }
}

/// Values of auxiliary data, whatever their type: [`Function::written`] makes them.
pub struct Written(pub(super) Write);

impl std::fmt::Debug for Written {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("values of auxiliary data")
    }
}

/// Auxiliary data as a function of the place, for the struct of a form's data:
/// `Aux { kappa: at(|x| 1.0 + x[0]) }`.
pub fn at<V: Value>(value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static) -> Function<V> {
    Function(Box::new(value))
}
