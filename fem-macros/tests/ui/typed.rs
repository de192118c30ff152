//! Names and shapes of parameters and data; what the facade has is stood in for.
extern crate self as weakform;

pub struct Form;
pub struct DataValues;
pub struct Function<V>(pub V);

pub trait Value {
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

pub trait Params {
    fn visit(&self, each: &mut dyn FnMut(&'static str, &[f64]));
}

pub trait Data {
    fn visit(self, each: &mut dyn FnMut(&'static str, DataValues));
}

pub trait FieldName {
    fn name(&self) -> &str;
}

pub trait TypedField<V>: FieldName {}

impl<V> Function<V> {
    pub fn written(self, _: &str) -> DataValues {
        DataValues
    }
}

fn condition<V>(_: impl TypedField<V>, _: V) {}

pub mod embedded {
    pub struct Linked;
    pub struct EmbeddedKernels;

    impl EmbeddedKernels {
        pub const fn new(_: &'static str, _: &'static str, _: &'static [Linked]) -> Self {
            Self
        }

        pub fn form(&self) -> super::Form {
            super::Form
        }
    }
}

fem_macros::weak_form! {
    form flow {
        field u: scalar;
        param nu = 0.1;
        param g: vector = x_ * [0, 1];
        param x_ = 2;
        param wind: tensor = nu * I;
        aux kappa: scalar on cells;
        aux b: vector;
        f0[u] = dot(g, grad(u)) + dot(b, x);
        f1[u] = kappa * wind * grad(u);
    }
}

fn main() {
    let _ = flow::form();
    let right = flow::Params { nu: 0.2, ..Default::default() };
    let _: ([f64; 2], [[f64; 2]; 2]) = (right.g, right.wind);
    let _ = flow::Params { nu: [0.2], ..right };
    let _ = flow::Params { gravity: 9.81, ..right };
    let _ = flow::Params { g: [0.0, 0.0, -9.81], ..right };
    let _ = flow::Aux { kappa: Function(1.0), b: Function(2.0) };
    let _ = flow::Aux { kappa: Function(1.0) };
    condition(flow::field::u, 1.0);
    condition(flow::field::u, [1.0, 2.0]);
    condition(flow::field::w, flow::param::nu.len() + flow::aux::b.len());
}
