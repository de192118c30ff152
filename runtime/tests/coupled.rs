//! Matrices probed from an operator agree with it, including essential boundary conditions; their pattern is minimal,
//! and the number of products small.

use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::load;
use runtime::problem::Context;
use runtime::solve::{LinearOperator, NonlinearSystem};
use std::path::Path;

const FORMS: &str = "
    form heat { field u: scalar; f0[u] = u^3; f1[u] = (1 + u^2) * grad(u); }
    form solid {
        field u: vector;
        let eps = sym(grad(u));
        f1[u] = tr(eps) * I + 2 * eps;
    }
    problem quads solves heat {
        mesh = ball(dim: 2, refine: 1); degree = 3; dirichlet u = 1 on all;
    }
    problem tris solves heat {
        mesh = box(dim: 2, cells: 3, cell: tri); degree = 2; dirichlet u = x[0] on \"y0\";
    }
    problem hexes solves solid {
        mesh = box(dim: 3, cells: [2, 2, 3], deform: 0.1); degree = 2; dirichlet u[1] = 0 on \"z1\";
    }
    problem tets solves solid { mesh = box(dim: 3, cells: 2, cell: tet); degree = 1; }
";

/// Checks the largest row length and the number of products, which depends on the greedy colouring.
fn check(name: &str, dim: usize) {
    let source = Source::new("forms", FORMS);
    let (program, diagnostics) = compile(&source);
    let program = program.unwrap_or_else(|| panic!("{diagnostics:?}"));
    let overrides = Overrides::default();
    let problem = program.problem(name, dim, &overrides).expect("a right problem");
    let (source, _) = program.mesh(name, &overrides).expect("a mesh");
    let mesh = load(&source, Path::new("")).expect("a mesh");
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    let context = Context::new(problem, mesh, target.into()).expect("a context");
    let (mut operator, _) = context.operator().expect("an operator");
    let mut u = operator.vector();
    let n = u.len();
    u.set(&(0..n).map(|i| (0.3 * i as f64).cos()).collect::<Vec<_>>());
    operator.linearise(&u).expect("a state");
    let coupling = operator.coupling().expect("a coupling");
    let operator: &dyn LinearOperator = operator.jacobian();
    let matrix = coupling.matrix(operator, &u).expect("a matrix");

    let mut x = u.like();
    let entries: Vec<f64> = (0..n).map(|i| (1.7 * i as f64).sin()).collect();
    x.set(&entries);
    let mut y = u.like();
    operator.apply(&x, &mut y).expect("an action");
    let mut product = vec![0.0; n];
    for (j, x) in entries.iter().enumerate() {
        matrix.column(j).for_each(|(i, value)| product[i] += value * x);
    }
    let largest = y.to_vec().iter().fold(0.0, |most: f64, y| most.max(y.abs()));
    for (i, (a, b)) in product.iter().zip(y.to_vec()).enumerate() {
        assert!((a - b).abs() < 1e-13 * largest, "{name}, row {i}: {a} and {b}");
    }
    // A constrained degree of freedom has only its diagonal entry in its row and column.
    for (fixed, _) in context.on.fields[0].constraints.iter() {
        assert_eq!(matrix.column(fixed).collect::<Vec<_>>(), [(fixed, 1.0)]);
    }
    let mut counts = vec![0usize; n];
    (0..n).flat_map(|j| matrix.column(j)).for_each(|(i, _)| counts[i] += 1);
    let widest = counts.iter().copied().max().unwrap_or(0);
    assert!(coupling.products() >= widest, "{name}: a row needs a product an entry");
    assert!(coupling.products() < n, "{name}: {} products of {n}", coupling.products());
    assert!(coupling.entries() <= n * coupling.products(), "{name}");
}

#[test]
fn the_matrix_is_the_operator() {
    check("quads", 2);
    check("tris", 2);
    check("hexes", 3);
    check("tets", 3);
}
