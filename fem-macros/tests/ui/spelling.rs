fn main() {
    let _ = fem_macros::weak_form! {
        form poisson {
            field u: scalar;
            let kappa = 1 / (0.05 + 2 * dot(x, x));
            f1[u] = kapa * grad(u);
        }
    };
}
