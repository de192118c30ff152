//! Supports of essential conditions other than sides: curves and points named in a mesh, and the vertex nearest to a
//! point.

use std::fmt::Write as _;
use std::path::Path;
use weakform::{Error, Execution, Form, ReportValue, Solution};

/// Returns a cube of 2 × 2 × 2 hexahedra: the curve "edge" along x, the point "corner" at (1, 1, 1), the side "bottom".
/// An isolated point also has a tag.
fn cube() -> String {
    let number = |i: usize, j: usize, k: usize| (k * 3 + j) * 3 + i + 1;
    let mut text = String::from(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n5\n0 1 \"corner\"\n1 2 \"edge\"\n2 3 \"bottom\"\n\
         3 4 \"body\"\n0 5 \"centre\"\n$EndPhysicalNames\n$Nodes\n28\n",
    );
    for i in 0..27 {
        let [x, y, z] = [i % 3, i / 3 % 3, i / 9].map(|i| i as f64 / 2.0);
        let _ = writeln!(text, "{} {x} {y} {z}", i + 1);
    }
    text += "28 9 9 9\n$EndNodes\n$Elements\n16\n1 15 2 1 1 27\n2 15 2 5 2 28\n";
    for i in 0..2 {
        let _ = writeln!(text, "{} 1 2 2 1 {} {}", i + 3, number(i, 0, 0), number(i + 1, 0, 0));
    }
    let corners = [[0, 0], [1, 0], [1, 1], [0, 1]];
    for i in 0..4 {
        let nodes = corners.map(|[a, b]| number(i % 2 + a, i / 2 + b, 0).to_string());
        let _ = writeln!(text, "{} 3 2 3 1 {}", i + 5, nodes.join(" "));
    }
    for i in 0..8 {
        let plane = |k: usize| corners.map(|[a, b]| number(i % 2 + a, i / 2 % 2 + b, i / 4 + k));
        let nodes = [plane(0), plane(1)].concat().iter().map(usize::to_string).collect::<Vec<_>>();
        let _ = writeln!(text, "{} 5 2 4 1 {}", i + 9, nodes.join(" "));
    }
    text + "$EndElements\n"
}

const FORM: &str = "field u: scalar; f0[u] = u;";

fn run(form: &str, problem: &str) -> Result<Solution, Error> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("cube.msh"), cube()).expect("a file");
    solve(folder.path(), form, problem)
}

fn solve(folder: &Path, form: &str, problem: &str) -> Result<Solution, Error> {
    let text = format!("form f {{ {form} }} problem p solves f {{ {problem} }}");
    let form = Form::parse(&text, "f")?;
    form.problem("p")?.folder(folder).execution(Execution::Interpreted).run()
}

/// Asserts that exactly the nodes in a set have their values.
fn has(solution: &Solution, holds: impl Fn([f64; 3]) -> bool, value: impl Fn([f64; 3]) -> f64) {
    let (points, values) = (solution.points().expect("points"), solution.values());
    let mut count = 0;
    for (&x, u) in points.iter().zip(values) {
        let is = (u - value(x)).abs() < 1e-12;
        assert_eq!(is, holds(x), "{x:?}: {u}");
        count += usize::from(is);
    }
    assert!(count > 0);
}

/// NAFEMS LE10 constrains a plate along the middle of a side.
#[test]
fn conditions_hold_on_physical_curves_of_a_mesh_in_space() {
    for (refine, degree) in [(0, 1), (0, 3), (1, 2)] {
        let problem = format!(
            "mesh = \"cube.msh\"; refine = {refine}; degree = {degree}; dirichlet u = 7 + x[0] on \"edge\";"
        );
        let solution = run(FORM, &problem).unwrap_or_else(|error| panic!("{error}"));
        has(&solution, |x| x[1].abs() + x[2].abs() < 1e-9, |x| 7.0 + x[0]);
        let notes = solution.notes().join("; ");
        assert!(notes.contains("no edge or vertex of any cell, some of \"centre\""), "{notes}");
    }
}

#[test]
fn conditions_hold_at_physical_points() {
    let problem = "mesh = \"cube.msh\"; refine = 1; degree = 2; dirichlet u = 7 on \"corner\";";
    let solution = run(FORM, problem).unwrap_or_else(|error| panic!("{error}"));
    has(&solution, |x| x.iter().all(|x| (x - 1.0).abs() < 1e-9), |_| 7.0);
    // Neither an isolated point nor an unknown name is a tag.
    let error = run(FORM, "mesh = \"cube.msh\"; dirichlet u = 7 on \"centre\";").err();
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("\"centre\"") && said.contains("\"corner\""), "{said}");
}

#[test]
fn curves_have_no_area_and_no_normal() {
    let with = "field u: scalar; f0[u] = u; on boundary \"edge\" { f0[u] = 1; }";
    let vector = "field u: vector; f0[u] = u;";
    let cases = [
        (with, "mesh = \"cube.msh\";"),
        (vector, "mesh = \"cube.msh\"; dirichlet dot(u, n) = 0 on \"edge\";"),
    ];
    for (form, problem) in cases {
        let said = run(form, problem).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("\"edge\" tags curves or points"), "{said}");
    }
}

#[test]
fn a_condition_holds_at_the_vertex_next_to_a_place() {
    let problem = |at: &str| format!("mesh = \"cube.msh\"; degree = 2; dirichlet u = 7 at {at};");
    let solution =
        run(FORM, &problem("[0.52, 0.48, 0.5]")).unwrap_or_else(|error| panic!("{error}"));
    has(&solution, |x| x.iter().all(|x| (x - 0.5).abs() < 1e-9), |_| 7.0);
    let notes = solution.notes().join("; ");
    for words in ["`u` at [0.52, 0.48, 0.5]", "the nearest vertex, [0.5, 0.5, 0.5], 2.828e-2 away"]
    {
        assert!(notes.contains(words), "{notes}");
    }
    let exact = run(FORM, &problem("[0.5, 0.5, 0.5]")).unwrap_or_else(|error| panic!("{error}"));
    assert!(!exact.notes().join("; ").contains("nearest vertex"), "{:?}", exact.notes());
    // The pressure of an enclosed flow is determined up to a constant.
    let neumann = "field u: scalar; f0[u] = x[0] - 0.5; f1[u] = grad(u);";
    let flat = "mesh = box(dim: 2, cells: 4); degree = 2; dirichlet u = 1 at [0, 0]; report low = u([0, 0]);";
    let solution = solve(Path::new("."), neumann, flat).unwrap_or_else(|error| panic!("{error}"));
    let low = solution.report("low").and_then(ReportValue::number).expect("a number");
    assert!((low - 1.0).abs() < 1e-12, "{low:?}");
}

/// A thick elliptic plate with an elliptic hole under pressure (NAFEMS LE10). The published σ_yy at D = (2, 0, 0.6) is
/// −5.38 MPa.
#[test]
fn nafems_le10_is_held_along_a_curve() {
    let form = "field u: vector; param E = 210e3; param nu = 0.3; param pressure = 1;
        let lambda = E * nu / ((1 + nu) * (1 - 2 * nu)); let mu = E / (2 * (1 + nu));
        let eps = sym(grad(u)); let sigma = lambda * tr(eps) * I + 2 * mu * eps;
        f1[u] = sigma; on boundary \"top\" { f0[u] = pressure * n; }";
    let problem = "mesh = \"elliptic_plate_hex27.msh\"; degree = 2;
        dirichlet u[1] = 0 on \"DC\"; dirichlet u[0] = 0 on \"AB\", \"BC\"; dirichlet u[1] = 0 on \"BC\";
        dirichlet u[2] = 0 on \"mid\";
        report stress = line(sigma[1, 1], from: [2, 0, 0.6], to: [3.25, 0, 0.6], points: 2);
        report held = reaction(u, on: \"mid\"); report area = integral(1, on: \"top\");";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("meshes");
    let solution = solve(&folder, form, problem).unwrap_or_else(|error| panic!("{error}"));
    let Some(ReportValue::Line(_, points)) = solution.report("stress") else { panic!("a line") };
    let stress = points[0].1[0];
    assert!((stress + 5.38).abs() < 0.3, "{stress}");
    // The curve bears the whole load.
    let Some(ReportValue::Value(_, held)) = solution.report("held") else { panic!("a vector") };
    let area = solution.report("area").and_then(ReportValue::number).expect("a number");
    assert!((held[2] - area).abs() < 1e-6, "{held:?} {area}");
}
