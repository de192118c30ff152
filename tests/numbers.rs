//! Unknown numbers, `field c: scalar in R;`, against analytic solutions: a mean by a multiplier, a floating conductor, a
//! film over a given volume, and a flux that keeps a mean through time.

use weakform::{Error, Execution, Form, ReportValue, Solution, mesh};

/// Solves the problem `p` of a text with the interpreter.
fn run(text: &str) -> Result<Solution, Error> {
    let form = text.split_whitespace().nth(1).expect("a form");
    Form::parse(text, form)?.problem("p")?.execution(Execution::Interpreted).run()
}

#[track_caller]
fn solved(text: &str) -> Solution {
    run(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn number(solution: &Solution, name: &str) -> f64 {
    let report = solution.report(name).unwrap_or_else(|| panic!("no report `{name}`"));
    report.number().unwrap_or_else(|| panic!("`{name}` should be a number"))
}

#[track_caller]
fn close(found: f64, known: f64, tolerance: f64) {
    assert!((found - known).abs() <= tolerance, "{found} instead of {known}");
}

/// The source has the mean 1 and the condition of Neumann none, so that the multiplier is 1. The operator of `u` alone is
/// singular. All solvers find the same function, u = 3 + cos(πx) cos(πy).
#[test]
fn a_multiplier_fixes_a_mean_with_every_solver() {
    for solver in [
        "cg(preconditioner: multigrid)",
        "cg(preconditioner: jacobi)",
        "minres(preconditioner: none)",
        "direct",
        "gmres",
    ] {
        let text = format!(
            "form neumann {{
                field u: scalar; field c: scalar in R;
                f0[u] = c - 1 - 2 * pi^2 * cos(pi * x[0]) * cos(pi * x[1]);
                f1[u] = grad(u); f0[c] = u - 3;
            }}
            problem p solves neumann {{
                mesh = box(dim: 2, cells: 6); degree = 3;
                exact u = 3 + cos(pi * x[0]) * cos(pi * x[1]);
                report mean = integral(u); report twice = 2 * c; solver = {solver};
            }}"
        );
        let solution = solved(&text);
        close(number(&solution, "c"), 1.0, 1e-9);
        close(number(&solution, "twice"), 2.0, 2e-9);
        close(number(&solution, "mean"), 3.0, 1e-9);
        let (l2, _) = solution.error("u").expect("an error");
        assert!(l2 < 1e-4, "{solver}: {l2}");
    }
}

/// Corrections of rounding take further steps, for which the levels of multigrid stay.
#[test]
fn a_tolerance_below_rounding_is_said_with_what_is_reached() {
    let text = "form neumann {
            field u: scalar; field c: scalar in R;
            f0[u] = c - 2 * pi^2 * cos(pi * x[0]) * cos(pi * x[1]);
            f1[u] = grad(u); f0[c] = u - 3;
        }
        problem p solves neumann {
            mesh = box(dim: 2, cells: 6); degree = 3;
            solver = cg(preconditioner: multigrid, rtol: 1e-14);
        }";
    let error = run(text).expect_err("an error").to_string();
    assert!(error.contains("rounding leaves"), "{error}");
}

/// V = Q ln(b/a) / 2π between two cylinders.
#[test]
fn a_floating_conductor_takes_the_potential_of_its_charge() {
    let solution = solved(
        "form conductor {
            field u: scalar; field V: scalar in R; param Q = 3;
            energy = dot(grad(u), grad(u)) / 2;
            on boundary \"inner\" {
                energy = 10 * penalty(u) * (u - V)^2 - dot(grad(u), n) * (u - V) - Q / pi * V;
            }
        }
        problem p solves conductor {
            mesh = shell(dim: 2, inner: 0.5, outer: 1, refine: 1, order: 4); degree = 4;
            dirichlet u = 0 on \"outer\"; initial V = 7;
        }",
    );
    let known = 3.0 * 2.0_f64.ln() / (2.0 * std::f64::consts::PI);
    close(number(&solution, "V"), known, 1e-6 * known);
}

/// A film on a circle over a volume is a part of a sphere: for the height h the volume is πh (3 + h²)/6, and the pressure
/// 4h/(1 + h²). With `vector in R` two more numbers, which are 0, keep the centre of mass.
#[test]
fn the_pressure_under_a_film_keeps_its_volume() {
    let h: f64 = 0.5;
    let volume = std::f64::consts::PI * h * (3.0 + h * h) / 6.0;
    let text = format!(
        "form film {{
            field u: scalar; field pressure: scalar in R; field m: vector in R; param V = {volume};
            f0[u] = -pressure - dot(m, x);
            f1[u] = grad(u) / sqrt(1 + dot(grad(u), grad(u)));
            f0[pressure] = u - V / pi; f0[m] = u * x;
        }}
        problem p solves film {{
            mesh = ball(dim: 2, refine: 1, order: 4); degree = 4; dirichlet u = 0;
            report top = u([0, 0]); report volume = integral(u);
        }}"
    );
    let solution = solved(&text);
    close(number(&solution, "pressure"), 4.0 * h / (1.0 + h * h), 1e-5);
    close(number(&solution, "top"), h, 1e-5);
    // The area of the mesh differs from π.
    close(number(&solution, "volume"), volume, 1e-7);
    let Some(ReportValue::Value(_, moments)) = solution.report("m") else { panic!("no report") };
    assert!(moments.iter().all(|m| m.abs() < 1e-9), "{moments:?}");
}

/// u_t = Δu + 3 + c with a mean that stays 1: c = −3, and u = 1 + exp(−π² t) cos(πx) to second order.
#[test]
fn a_number_keeps_a_mean_through_time() {
    let error = |step: f64| {
        let solution = solved(&format!(
            "form heat {{
                field u: scalar; field c: scalar in R;
                f0[u] = dt(u) - 3 - c; f1[u] = grad(u); f0[c] = u - 1;
            }}
            problem p solves heat {{
                mesh = box(dim: 2, cells: [6, 2]); degree = 4;
                initial u = 1 + cos(pi * x[0]);
                exact u = 1 + exp(-pi^2 * t) * cos(pi * x[0]);
                time = bdf(order: 2, to: 0.1, step: {step});
                report mean = integral(u);
            }}"
        ));
        close(number(&solution, "c"), -3.0, 1e-7);
        close(number(&solution, "mean"), 1.0, 1e-9);
        solution.error("u").expect("an error").0
    };
    let (coarse, fine) = (error(0.01), error(0.005));
    assert!(coarse < 5e-3 && coarse / fine > 3.0, "{coarse}, {fine}");
}

#[test]
fn what_numbers_cannot_do_is_refused_with_a_remedy() {
    let refused = |items: &str, statements: &str, words: &[&str]| {
        let text = format!(
            "form f {{ field u: scalar; field c: scalar in R; f1[u] = grad(u); f0[c] = u; {items} }}
            problem p solves f {{ mesh = box(dim: 2, cells: 2); {statements} }}"
        );
        let Err(error) = run(&text) else { panic!("solved: {text}") };
        let said = error.to_string();
        assert!(words.iter().all(|word| said.contains(word)), "{said}\n{text}");
    };
    refused("f0[u] = dt(c);", "", &["no time derivative", "at each time"]);
    refused("f0[u] = c;", "dirichlet c = 0;", &["one number for the whole mesh", "initial c"]);
    refused("f0[u] = c;", "eigen = smallest(2);", &["no eigenvalues", "param c"]);
    let midpoint = "time = theta(theta: 0.5, to: 1, step: 0.1);";
    refused("f0[u] = dt(u) - c;", midpoint, &["end of a step", "bdf"]);
    // The number does not change its own row.
    refused("f0[u] = 1;", "dirichlet u = 0;", &["do not determine them", "a row that changes"]);
    let text =
        "form f { field u: scalar; field c: scalar in R; f0[u] = c; f1[u] = grad(u); f0[c] = u; }";
    let form = Form::parse(text, "f").expect("a form");
    let Err(error) = form.on(mesh("box(dim: 2, cells: 2)").expect("a mesh")).build() else {
        panic!("a system of fields alone")
    };
    assert!(error.to_string().contains("unknown number"), "{error}");
    let before = "form f { field c: scalar in R; field u: scalar; f1[u] = grad(u); f0[c] = u; }
        problem p solves f { mesh = box(dim: 2, cells: 2); }";
    let Err(error) = run(before) else { panic!("solved") };
    assert!(error.to_string().contains("after all fields"), "{error}");
}
