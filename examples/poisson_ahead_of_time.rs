//! The Poisson problem of `poisson_jit` with kernels compiled together with the program: no compiler is needed at run
//! time, and the program selects the kernels of the CPU's most capable instruction set.
//!
//! ```text
//! −∇·(κ∇u) = f,   κ = 1 + x_0,   u = sin(πx_0) sin(πx_1) sin(πx_2)
//! ```
//!
//! `cargo run --release --example poisson_ahead_of_time`; kernels of a degree other than 2, given as an argument, are
//! compiled at run time.

use weakform::{Error, weak_form};

weak_form! {
    #![ahead_of_time(hex(2))]

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

    problem unit_box solves poisson {
        mesh = box(dim: 3, cells: 16, cell: hex);
        degree = 2;
        dirichlet u on all;
        exact u = sin(pi * x[0]) * sin(pi * x[1]) * sin(pi * x[2]);
    }
}

fn main() -> Result<(), Error> {
    let degree = std::env::args().nth(1).and_then(|degree| degree.parse().ok()).unwrap_or(2);
    for cells in [4, 8, 16] {
        let mesh = format!("box(dim: 3, cells: {cells}, cell: hex)");
        let solution = poisson::problem::unit_box().mesh(mesh).degree(degree).run()?;
        let (error, _) = solution.error("u").unwrap_or((f64::NAN, f64::NAN));
        println!(
            "{cells}³ cells, {} unknowns, {:?}: {} iterations, error {error:.3e}",
            solution.dofs(),
            solution.origin(),
            solution.iterations()
        );
    }
    Ok(())
}
