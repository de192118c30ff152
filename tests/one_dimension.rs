//! Meshes of one dimension, and sources at points: orders of convergence, eigenvalues, waves, layers, transport
//! between cells, beams, files, pictures.

use std::f64::consts::PI;

use serde_json::Value;

use crate::time::{refused, solved_with, wf};

const FORMS: &str = "
form laplace { field u: scalar; f0[u] = -pi^2 * sin(pi * x[0]); f1[u] = grad(u); }
form free { field u: scalar; f1[u] = grad(u); }
form transport {
    field c: scalar in L2(k);
    param a = 1;
    f0[c] = dt(c);
    f1[c] = [-a * c];
    on interior { f0[jump(c)] = a * n[0] * avg(c) + abs(a * n[0]) / 2 * jump(c); }
}
form sipg {
    field u: scalar in L2(k);
    param eta = 2;
    f0[u] = -pi^2 * sin(pi * x[0]);
    f1[u] = grad(u);
    on interior {
        energy = eta * avg(penalty(u)) / 2 * jump(u)^2 - dot(avg(grad(u)), n) * jump(u);
    }
    on boundary \"x0\", \"x1\" { energy = eta * penalty(u) / 2 * u^2 - dot(grad(u), n) * u; }
}
form beam {
    field w: scalar in H1(k);
    param eta = 2;
    let H = grad(grad(w));
    energy = inner(H, H) / 2;
    on interior {
        let kink = dot(jump(grad(w)), n);
        energy = eta * avg(penalty(w)) / 2 * kink^2 - dot(avg(H) * n, n) * kink;
    }
    on boundary \"x0\" {
        let slope = dot(grad(w), n);
        energy = eta * penalty(w) / 2 * slope^2 - dot(H * n, n) * slope;
    }
}
form wave { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
form pipe { field u: complex scalar; f0[u] = -4 * u; f1[u] = grad(u); on boundary \"x1\" { f0[u] = -2 * i * u; } }
form rod { field u: vector; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; on boundary \"x1\" { f0[u] = -3 * n; } }
";

/// Solves a problem for a form of these.
#[track_caller]
fn solved(form: &str, problem: &str, arguments: &[&str]) -> Value {
    let text = format!("{FORMS} problem p solves {form} {{ {problem} }}");
    solved_with(&text, arguments)
}

#[track_caller]
fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} should be a number in {value}"))
}

/// Returns a report: a number, or a vector of one.
#[track_caller]
fn report(value: &Value, name: &str) -> f64 {
    let found = &value["reports"][name];
    let number = found.as_f64().or_else(|| found[0].as_f64());
    number.unwrap_or_else(|| panic!("{name} should be a number in {value}"))
}

/// Continuous elements and those of interior penalty, interpreted and compiled, converge by degree + 1.
#[test]
fn errors_decrease_by_the_order_of_the_element() {
    for (form, ends, arguments) in [
        ("laplace", "dirichlet u = 0 on all;", &["--interpret"][..]),
        ("laplace", "dirichlet u = 0 on \"x0\", \"x1\";", &[]),
        ("sipg", "", &["--interpret"]),
    ] {
        for degree in [1, 2, 3] {
            let error = |cells: usize| {
                let problem = format!(
                    "mesh = interval(cells: {cells}); degree = {degree}; {ends} exact u = sin(pi * x[0]);"
                );
                number(&solved(form, &problem, arguments), "error_l2")
            };
            let order = (error(8) / error(16)).log2();
            assert!((order - f64::from(degree + 1)).abs() < 0.15, "{form} {degree}: {order}");
        }
    }
}

/// The eigenvalues of −u″ are k² π².
#[test]
fn a_string_has_its_frequencies() {
    let problem =
        "mesh = interval(cells: 10); degree = 5; dirichlet u = 0 on all; eigen = smallest(3);";
    let found = solved("free", problem, &["--interpret"]);
    let values = found["eigenvalues"].as_array().expect("eigenvalues");
    assert_eq!(values.len(), 3);
    for (k, value) in values.iter().enumerate() {
        let exact = (PI * (k + 1) as f64).powi(2);
        let value = value["value"].as_f64().or(value.as_f64()).expect("a number");
        assert!((value / exact - 1.0).abs() < 1e-8, "{value}, not {exact}");
    }
}

#[test]
fn waves_are_transported_and_reflected() {
    let problem = "mesh = interval(cells: 20); degree = 2; periodic \"x0\" = \"x1\";
        initial c = sin(2 * pi * x[0]); time = rk(order: 3, to: 1, step: 0.005, every: 1);
        exact c = sin(2 * pi * (x[0] - t)); report mass = integral(c);";
    let found = solved("transport", problem, &[]);
    assert!(number(&found, "error_l2") < 2e-4, "{found}");
    assert!(report(&found, "mass").abs() < 1e-12, "{found}");
    let problem = "mesh = interval(cells: 8); degree = 3; dirichlet u = 0 on all;
        initial u = sin(pi * x[0]); time = newmark(to: 1, step: 0.02, every: 1);
        exact u = sin(pi * x[0]) * cos(pi * t);";
    assert!(number(&solved("wave", problem, &["--interpret"]), "error_l2") < 2e-3);
    let problem = "mesh = interval(cells: 16); degree = 4; dirichlet u = 1 on \"x0\"; exact u = exp(2 * i * x[0]);";
    let found = solved("pipe", problem, &["--interpret"]);
    let errors = found["errors"].as_array().expect("errors of both parts");
    assert!(errors.len() == 2 && errors.iter().all(|error| number(error, "l2") < 1e-8), "{found}");
}

/// The ends of a line are facets with the normals −1 and 1; x may begin anywhere.
#[test]
fn a_rod_is_pulled_by_its_end() {
    let problem = "mesh = interval(cells: 4, from: 1, to: 3); dirichlet u = [0] on \"x0\";
        report tip = u([3]); report push = reaction(u, on: \"x0\"); report ends = integral(n[0] * x[0], on: \"x0\");";
    let found = solved("rod", problem, &["--interpret"]);
    assert!((report(&found, "tip") - 2.0).abs() < 1e-9, "{found}");
    assert!((report(&found, "push") + 3.0).abs() < 1e-9, "{found}");
    assert!((report(&found, "ends") + 1.0).abs() < 1e-12, "{found}");
}

/// A cantilever under a load at its tip bends by 1/3; under one at a, by a² (3 − a)/6.
#[test]
fn beams_bend_under_loads_at_points() {
    for (a, cells) in [(1.0, 4), (0.5, 4)] {
        let problem = format!(
            "mesh = interval(cells: {cells}); degree = 3; dirichlet w = 0 on \"x0\";
             source w = 1 at {a}; report tip = w([1]);"
        );
        let tip = report(&solved("beam", &problem, &["--interpret"]), "tip");
        let exact = a * a * (3.0 - a) / 6.0;
        assert!((tip / exact - 1.0).abs() < 1e-8, "{tip}, not {exact}");
    }
}

/// The solution of −Δu = 2 δ(a) − δ(b)/2 has exact moments with 1 and x, which the elements contain: its flux, and its
/// integral over the side where x has the normal derivative 1.
#[test]
fn sources_at_points_are_delta_functions() {
    let problem = "mesh = box(dim: 2, cells: [7, 5], cell: tri, deform: 0.1); degree = 3; dirichlet u = 0 on \"x0\";
        source u = 2 at [0.37, 0.61]; source u = -0.5 at [0.9, 0.2];
        report flux = reaction(u, on: \"x0\"); report side = integral(u, on: \"x1\");";
    let found = solved("free", problem, &["--interpret"]);
    assert!((report(&found, "flux") + 1.5).abs() < 1e-9, "{found}");
    assert!((report(&found, "side") - (2.0 * 0.37 - 0.5 * 0.9)).abs() < 1e-9, "{found}");
    let said = refused(&format!(
        "{FORMS} problem p solves free {{ mesh = interval(cells: 3); dirichlet u = 0 on all; source u = 1 at 2; }}"
    ));
    assert!(said.contains("outside") || said.contains("in no cell"), "{said}");
}

/// Lines of Gmsh, of order 2, with tags of points and regions of curves.
#[test]
fn lines_of_files_have_regions_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let mesh = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n4\n0 1 \"left\"\n0 2 \"right\"\n1 3 \"soft\"\n\
        1 4 \"hard\"\n$EndPhysicalNames\n$Nodes\n5\n1 0 0 0\n2 1 0 0\n3 3 0 0\n4 0.5 0 0\n5 2 0 0\n$EndNodes\n\
        $Elements\n4\n1 15 2 1 1 1\n2 15 2 2 2 3\n3 8 2 3 1 1 2 4\n4 8 2 4 2 2 3 5\n$EndElements\n";
    std::fs::write(folder.path().join("rod.msh"), mesh).expect("a mesh");
    let text = "form rod { field u: scalar; aux a: scalar on cells; f1[u] = a * grad(u); }
        problem p solves rod { mesh = \"rod.msh\"; aux a = 1 on \"soft\"; aux a = 2 on \"hard\";
        dirichlet u = 0 on \"left\"; dirichlet u = 4 on \"right\"; report middle = u([1]); }";
    let drawn = ["--interpret", "--json", "-o", "rod.vtu", "--picture", "rod.svg"];
    let output = wf(folder.path(), text, &drawn);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!((report(&found, "middle") - 2.0).abs() < 1e-12, "{found}");
    let vtu = std::fs::read(folder.path().join("rod.vtu")).expect("a solution");
    assert!(String::from_utf8_lossy(&vtu).contains("NumberOfCells=\"2\""));
    let svg = std::fs::read_to_string(folder.path().join("rod.svg")).expect("a picture");
    assert!(svg.contains("polyline") || svg.contains("<path"), "{svg}");
}

#[test]
fn elements_that_lines_do_not_have_are_refused() {
    let text = "form f { field u: vector in Hcurl(k); f0[u] = u; }
        problem p solves f { mesh = interval(cells: 3); }";
    let said = refused(text);
    assert!(said.contains("a line has `H1(k)` and `L2(k)`"), "{said}");
}
