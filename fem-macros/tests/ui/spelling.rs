extern crate self as weakform;
pub struct Form;

fem_macros::weak_form! {
    form poisson {
        field u: scalar;
        let kappa = 1 / (0.05 + 2 * dot(x, x));
        f1[u] = kapa * grad(u);
    }
}

fn main() {
    let _: Form = poisson::form();
}
