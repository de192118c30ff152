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

fn main() {
    let _ = source!(1 + other);
}
