//! Warnings at their tokens, of a facade that has another name: here this crate has what the macro needs of it.
extern crate self as wf;

pub use facade::*;

mod facade {
    pub struct Form;
    pub struct Problem;
    pub trait FieldName {
        fn name(&self) -> &str;
    }
    pub trait TypedField<V> {}
    pub trait Params {
        fn visit(&self, each: &mut dyn FnMut(&'static str, &[f64]));
    }
    pub trait Value {
        fn components(&self) -> &[f64];
    }
    impl Value for f64 {
        fn components(&self) -> &[f64] {
            std::slice::from_ref(self)
        }
    }
    impl Form {
        pub fn known_problem(&self, _: &str) -> Problem {
            Problem
        }
    }
    pub mod embedded {
        pub struct EmbeddedKernels;
        impl EmbeddedKernels {
            pub const fn new(_: &str, _: &str, _: &[u8]) -> Self {
                Self
            }
            pub fn form(&self) -> super::Form {
                super::Form
            }
        }
    }
}

fem_macros::weak_form! {
    #![crate = wf]

    form poisson {
        field u: scalar;
        param kappa = 1;
        param spare = 2;
        let unused = kappa;
        f0[u] = -1;
        f1[u] = grad(u);
    }

    problem square solves poisson {
        mesh = box(dim: 2, cells: 2);
        dirichlet u = 0 on "x0";
        dirichlet u = 1 on "x0";
    }
}

fn main() {
    let _ = poisson::form();
    let _ = poisson::problem::square();
}
