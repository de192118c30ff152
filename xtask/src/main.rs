//! Developer tasks: `cargo xtask ci`, `cargo xtask validate`.

fn main() {}
