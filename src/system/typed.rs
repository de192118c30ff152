//! Values that are checked while the program is compiled: what [`weak_form!`](crate::weak_form) makes structs for.

use super::{Setup, Value};

/// The parameters of a form, as a struct that [`weak_form!`](crate::weak_form) makes for it: `poisson::Params`.
pub trait Params {
    /// Calls `each` with the name and the components of each parameter.
    fn visit(&self, each: &mut dyn FnMut(&'static str, &[f64]));
}

/// The auxiliary data of a form, as a struct that [`weak_form!`](crate::weak_form) makes for it: `poisson::Aux`.
pub trait Data {
    /// Adds all of it to a setup.
    fn add(self, setup: Setup) -> Setup;
}

/// What is kept of a function of the place.
type Boxed<V> = Box<dyn Fn(&[f64; 3]) -> V + Send + Sync>;

/// A function of the place: [`at`] makes one.
pub struct Function<V>(Boxed<V>);

impl<V: Value> Function<V> {
    /// The function itself.
    pub fn into_inner(self) -> Boxed<V> {
        self.0
    }
}

impl<V> std::fmt::Debug for Function<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a function of the place")
    }
}

/// Auxiliary data as a function of the place, for the struct of a form's data:
/// `Aux { kappa: at(|x| 1.0 + x[0]) }`.
pub fn at<V: Value>(value: impl Fn(&[f64; 3]) -> V + Send + Sync + 'static) -> Function<V> {
    Function(Box::new(value))
}
