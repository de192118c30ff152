//! Polynomial forms and functions on boxes of affine cells.

use super::polynomial::{Polynomial, constant, gradients, x};
use super::{CELLS, Probed, assert_by_hand, number};

/// Every kind of term that a linear scalar form has: f0 and f1 with u and ∇u, and coefficients in x and params.
const LINEAR: &str = "form linear {
    field u: scalar;
    param c = 3;
    param b: vector = if dim == 3 { [1, -2, 0.5] } else { [1, -2] };
    f0[u] = c * u + dot(b, grad(u)) - x[1];
    f1[u] = (1 + x[0]) * grad(u) + u * b;
}";

/// Returns f0 v + f1·∇v of `linear`, for the state (with the source) or the direction (without).
fn linear(dim: usize, u: &Polynomial, v: &Polynomial, source: f64) -> Polynomial {
    let b = [1.0, -2.0, 0.5];
    let along = |p: &Polynomial| {
        (0..dim).fold(Polynomial::default(), |sum, i| sum + p.derivative(i).times(b[i]))
    };
    let f0 = u.times(3.0) + along(u) + x(1).times(-source);
    f0 * v + (constant(1.0) + x(0)) * gradients(u, v, dim) + along(v) * u
}

fn probe_linear(text: &str, dim: usize, cell: &str, degree: u32, more: &[&str]) {
    let form = Probed::new(text);
    let [u, w, v] = [1, 2, 3].map(|seed| Polynomial::full(dim, degree, seed));
    let arguments = [
        format!("--mesh=box(dim: {dim}, cells: 2, cell: {cell})"),
        format!("--degree={degree}"),
        format!("--at=u={u}"),
        format!("--direction=u={w}"),
        format!("--test=u={v}"),
    ];
    let more: Vec<String> = more.iter().map(ToString::to_string).collect();
    let found = form.probe(&[arguments.to_vec(), more].concat());
    let what = format!("{cell} of degree {degree}");
    let residual = linear(dim, &u, &v, 1.0).integral(dim);
    assert_by_hand(number(&found, "residual"), residual, &what);
    assert_by_hand(number(&found, "jacobian"), linear(dim, &w, &v, 0.0).integral(dim), &what);
}

/// Polynomials of the full degree of the space, with the standard quadrature.
#[test]
fn linear_forms_on_every_cell_and_degree() {
    for (dim, cell) in CELLS {
        let text = LINEAR.replace(
            "if dim == 3 { [1, -2, 0.5] } else { [1, -2] }",
            if dim == 3 { "[1, -2, 0.5]" } else { "[1, -2]" },
        );
        for degree in 1..=4 {
            probe_linear(&text, dim, cell, degree, &["--interpret"]);
        }
        probe_linear(&text, dim, cell, 3, &[]);
    }
}

/// (u³, (1 + u²)∇u) and its automatic derivative, 3u²w, (1 + u²)∇w + 2uw∇u.
#[test]
fn nonlinear_forms_and_their_derivatives() {
    let form = Probed::new(
        "form nonlinear { field u: scalar; f0[u] = u^3; f1[u] = (1 + u^2) * grad(u); }",
    );
    for (dim, cell) in CELLS {
        for degree in 1..=2 {
            let [u, w, v] = [4, 5, 6].map(|seed| Polynomial::full(dim, degree, seed));
            let square = u.clone() * &u;
            let conductivity = constant(1.0) + &square;
            let residual = square.clone() * &u * &v + conductivity.clone() * gradients(&u, &v, dim);
            let jacobian = (square * &w * &v).times(3.0)
                + conductivity * gradients(&w, &v, dim)
                + (u.clone() * &w * gradients(&u, &v, dim)).times(2.0);
            let found = form.probe(&[
                format!("--mesh=box(dim: {dim}, cells: 2, cell: {cell})"),
                format!("--degree={degree}"),
                format!("--quadrature={}", 4 * degree),
                format!("--at=u={u}"),
                format!("--direction=u={w}"),
                format!("--test=u={v}"),
            ]);
            let what = format!("{cell} of degree {degree}");
            assert_by_hand(number(&found, "residual"), residual.integral(dim), &what);
            assert_by_hand(number(&found, "jacobian"), jacobian.integral(dim), &what);
        }
    }
}

/// ∫ 2µ ε(u):ε(v) + λ div u div v on vectors, component by component.
#[test]
fn vectors_and_their_symmetric_gradients() {
    let form = Probed::new(
        "form elasticity { field u: vector; param lambda = 2; param mu = 0.75;
         let eps = sym(grad(u)); f1[u] = lambda * tr(eps) * I + 2 * mu * eps; }",
    );
    for (dim, cell) in CELLS {
        let vector = |seed: u32| -> Vec<Polynomial> {
            (0..dim as u32).map(|i| Polynomial::full(dim, 2, seed + 7 * i)).collect()
        };
        let (u, v) = (vector(1), vector(2));
        let sum = |of: &dyn Fn(usize, usize) -> Polynomial| {
            (0..dim * dim).fold(Polynomial::default(), |sum, ij| sum + of(ij / dim, ij % dim))
        };
        let strains = sum(&|i, j| {
            (u[i].derivative(j) + u[j].derivative(i)) * (v[i].derivative(j) + v[j].derivative(i))
        });
        let divergences = sum(&|i, j| u[i].derivative(i) * v[j].derivative(j));
        let hand = strains.times(0.5 * 0.75) + divergences.times(2.0);
        let list = |components: &[Polynomial]| {
            let texts: Vec<String> = components.iter().map(ToString::to_string).collect();
            format!("[{}]", texts.join(", "))
        };
        let found = form.probe(&[
            format!("--mesh=box(dim: {dim}, cells: 2, cell: {cell})"),
            "--degree=2".to_owned(),
            "--interpret".to_owned(),
            format!("--at=u={}", list(&u)),
            format!("--direction=u={}", list(&u)),
            format!("--test=u={}", list(&v)),
        ]);
        // The form is linear: R(u)·v and v·J u are one number.
        for key in ["residual", "jacobian"] {
            assert_by_hand(number(&found, key), hand.integral(dim), cell);
        }
    }
}
