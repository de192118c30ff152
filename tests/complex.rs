//! Complex fields, from text to solutions: orders, and the balance of power.

use weakform::{Execution, Form, Solution};

/// Waves that come in through the sides of the unit square, with losses on its right, and their balance of power: that
/// of the discrete solution, which is its own test function.
fn waves(cells: usize, eps: &str) -> String {
    let out = |tag: &str, normal: &str| {
        format!("w * integral(abs(u)^2 + ({normal} - 1) * re(enters * conj(u)), on: \"{tag}\")")
    };
    let [left, right, lower, upper] =
        [out("x0", "-d[0]"), out("x1", "d[0]"), out("y0", "-d[1]"), out("y1", "d[1]")];
    format!(
        "form waves {{
            field u: complex scalar;
            param w = 8;
            aux eps: complex scalar on cells;
            test v for u;
            let d = [0.8, 0.6];
            let enters = exp(i * w * dot(d, x));
            residual = inner(grad(u), grad(v)) - w^2 * eps * u * conj(v);
            on boundary \"x0\", \"x1\", \"y0\", \"y1\" {{
                residual = -i * w * (u + (dot(d, n) - 1) * enters) * conj(v);
            }}
        }}
        problem p solves waves {{
            mesh = box(dim: 2, cells: {cells});
            degree = 3;
            quadrature = 14;
            aux eps = {eps};
            exact u = exp(i * w * (0.8 * x[0] + 0.6 * x[1]));
            report lost = w^2 * integral(im(eps) * abs(u)^2);
            report left = {left} + {right} + {lower} + {upper};
        }}"
    )
}

#[track_caller]
fn solved(text: &str) -> Solution {
    let form = Form::parse(text, "waves").expect("a form");
    let problem = form.problem("p").expect("a problem").execution(Execution::Interpreted);
    problem.run().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn a_plane_wave_passes_with_the_order_of_its_degree() {
    let errors = [4, 8].map(|cells| {
        let solution = solved(&waves(cells, "1"));
        ["u_re", "u_im"].map(|part| solution.error(part).expect("known errors").0)
    });
    for part in 0..2 {
        let order = (errors[0][part] / errors[1][part]).log2();
        assert!(errors[1][part] < 1e-3 && order > 3.7, "{order}: {errors:?}");
    }
}

#[test]
fn what_is_lost_does_not_leave() {
    let solution = solved(&waves(6, "if x[0] > 0.5 { 2 + 0.3 * i } else { 1 }"));
    let [lost, left] = ["lost", "left"]
        .map(|name| solution.report(name).and_then(|found| found.number()).expect("a number"));
    assert!(lost > 1.0 && (lost + left).abs() < 1e-10 * lost, "{lost} {left}");
}
