extern crate self as weakform;
pub struct Form;

macro_rules! source {
    ($value:expr) => {
        fem_macros::weak_form! {
            form a {
                field u: scalar;
                let b = 2 * ;
                f0[u] = $value + missing;
                f1[u] = u + (grad(u));
            }
        }
    };
}

source!(1 + other);

fn main() {
    let _: Form = a::form();
}
