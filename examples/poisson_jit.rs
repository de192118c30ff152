//! Poisson on a box from Rust: the form in `weak_form!`, its kernels compiled while the program runs.
//!
//! ```text
//! −∇·(κ∇u) = f,   κ = 1 + x_0,   u = sin(πx_0) sin(πx_1) sin(πx_2)
//! ```
//!
//! `cargo run --release --example poisson_jit`

use std::f64::consts::PI;
use weakform::{ALL, Error, mesh, weak_form};

weak_form! {
    /// −∇·(κ∇u) = f with κ = 1 + x_0.
    form poisson {
        field u: scalar;
        let s = sin(pi * x[0]) * sin(pi * x[1]) * sin(pi * x[2]);
        let c = cos(pi * x[0]) * sin(pi * x[1]) * sin(pi * x[2]);
        let kappa = 1 + x[0];
        let f = 3 * pi^2 * kappa * s - pi * c;

        f0[u] = -f;
        f1[u] = kappa * grad(u);
    }
}

fn exact(x: &[f64; 3]) -> f64 {
    x.iter().map(|x| (PI * x).sin()).product()
}

fn main() -> Result<(), Error> {
    for cells in [4, 8, 16] {
        let mut system = poisson::form()
            .on(mesh(&format!("box(dim: 3, cells: {cells}, cell: hex)"))?)
            .degree(2)
            .dirichlet("u", ALL, exact)
            .build()?;
        let mut u = system.initial();
        let report = system.solve(&mut u)?;
        let error = system.error_l2("u", &u, exact)?;
        println!(
            "{cells}³ cells, {} unknowns, {:?}: {} in {} iterations, error {error:.3e}",
            system.dofs(),
            system.origin(),
            report.solver,
            report.iterations
        );
    }
    Ok(())
}
