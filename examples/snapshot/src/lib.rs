//! A user's crate, with a form and a test that detects changes of its kernel (`tests/snapshots.rs`).
//!
//! With `[dev-dependencies] insta`, the test takes three lines. `cargo insta review`, or
//! `INSTA_UPDATE=always cargo test`, accepts a change.

weakform::weak_form! {
    /// Diffusion with a saturating reaction.
    form diffusion {
        field u: scalar;
        param rate = 0.5;
        f0[u] = rate * u / (1 + u^2);
        f1[u] = grad(u);
    }
}
