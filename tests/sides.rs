//! Conditions that are not on components: periodic sides, and impermeable walls.

use std::fmt::Write as _;
use std::path::Path;
use weakform::{Error, Execution, Form, Solution};

type Place = [f64; 3];

/// Returns a box of n × n × n hexahedra, with corners moved by `to`, and a tag for each side: x0 to z1.
fn boxed(n: usize, to: impl Fn(Place) -> Place) -> String {
    let side = n + 1;
    let number = |i: usize, j: usize, k: usize| (k * side + j) * side + i + 1;
    let mut text = String::from("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n7\n");
    for (tag, name) in ["x0", "x1", "y0", "y1", "z0", "z1"].iter().enumerate() {
        let _ = writeln!(text, "2 {} \"{name}\"", tag + 1);
    }
    text += "3 7 \"body\"\n$EndPhysicalNames\n$Nodes\n";
    let _ = writeln!(text, "{}", side.pow(3));
    for k in 0..side {
        for j in 0..side {
            for i in 0..side {
                let [x, y, z] = to([i, j, k].map(|index| index as f64 / n as f64));
                let _ = writeln!(text, "{} {x:?} {y:?} {z:?}", number(i, j, k));
            }
        }
    }
    let mut elements = Vec::new();
    for a in 0..n {
        for b in 0..n {
            let corners = [(0, 0), (1, 0), (1, 1), (0, 1)].map(|(s, t)| (a + s, b + t));
            for (tag, at) in [(1, 0), (2, n)] {
                elements.push((3, tag, corners.map(|(j, k)| number(at, j, k)).to_vec()));
            }
            for (tag, at) in [(3, 0), (4, n)] {
                elements.push((3, tag, corners.map(|(i, k)| number(i, at, k)).to_vec()));
            }
            for (tag, at) in [(5, 0), (6, n)] {
                elements.push((3, tag, corners.map(|(i, j)| number(i, j, at)).to_vec()));
            }
        }
    }
    for k in 0..n {
        for j in 0..n {
            for i in 0..n {
                let plane = |k: usize| {
                    [
                        number(i, j, k),
                        number(i + 1, j, k),
                        number(i + 1, j + 1, k),
                        number(i, j + 1, k),
                    ]
                };
                elements.push((5, 7, [plane(k), plane(k + 1)].concat()));
            }
        }
    }
    let _ = writeln!(text, "$EndNodes\n$Elements\n{}", elements.len());
    for (number, (kind, tag, nodes)) in elements.iter().enumerate() {
        let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "{} {kind} 2 {tag} {tag} {}", number + 1, nodes.join(" "));
    }
    text + "$EndElements\n"
}

/// Applies a rotation about an axis that is none of the box.
fn turned(x: Place) -> Place {
    let ((s, c), (t, d)) = (0.6_f64.sin_cos(), 0.35_f64.sin_cos());
    let [a, b, z] = [c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]];
    [a, d * b - t * z, t * b + d * z]
}

fn run(folder: &Path, form: &str, problem: &str) -> Result<Solution, Error> {
    let text = format!("form f {{ {form} }} problem p solves f {{ {problem} }}");
    let form = Form::parse(&text, "f")?;
    form.problem("p")?.folder(folder).execution(Execution::Interpreted).run()
}

fn solved(form: &str, problem: &str) -> Solution {
    run(Path::new("."), form, problem).unwrap_or_else(|error| panic!("{error}\n{problem}"))
}

fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(|figure| figure.number()).expect("a number")
}

fn error(form: &str, problem: &str) -> f64 {
    solved(form, problem).error("u").expect("a known solution").0
}

const POISSON: &str = "field u: scalar; aux f: scalar on points; f0[u] = u - f; f1[u] = grad(u);";

/// −Δu + u = f with waves along the axes.
fn waves(mesh: &str, degree: usize, sides: &str, wave: &str, factor: &str) -> String {
    format!(
        "mesh = {mesh}; degree = {degree}; {sides} exact u = {wave}; aux f = (1 + {factor}) * {wave};
         solver = cg(rtol: 1e-12); report span = integral(u);"
    )
}

#[test]
fn periodic_sides_are_the_same_in_one_two_and_three_directions() {
    let [x, y, z] = ["x", "y", "z"].map(|axis| format!("periodic \"{axis}0\" = \"{axis}1\";"));
    let (two, three) = (format!("{x}{y}"), format!("{z}{y}{x}"));
    let plane = "sin(2 * pi * x[0]) * cos(2 * pi * x[1])";
    let space = "sin(2 * pi * x[0]) * cos(2 * pi * x[1]) * sin(2 * pi * (x[2] + 0.1))";
    let wall = "sin(2 * pi * x[0]) * x[1]";
    for (mesh, degree, sides, wave, factor, unknowns, within) in [
        ("box(dim: 2, cells: [1, 2])", 10, &two, plane, "8 * pi^2", 200, 1e-4),
        ("box(dim: 2, cells: 3)", 6, &two, plane, "8 * pi^2", 324, 1e-4),
        ("box(dim: 2, cells: 4, cell: tri)", 4, &two, plane, "8 * pi^2", 256, 3e-3),
        ("box(dim: 3, cells: [1, 2, 3], cell: hex)", 6, &three, space, "12 * pi^2", 1296, 5e-3),
        ("box(dim: 3, cells: 3, cell: tet)", 3, &three, space, "12 * pi^2", 729, 3e-2),
    ] {
        let solution = solved(POISSON, &waves(mesh, degree, sides, wave, factor));
        assert_eq!(solution.dofs(), unknowns, "{mesh}");
        let error = solution.error("u").expect("a known solution").0;
        assert!(error < within, "{mesh}: {error}");
        assert!(number(&solution, "span").abs() < 1e-4, "{mesh}");
    }
    // The boundary is the remaining part.
    let held = format!("{x} dirichlet u;");
    let solution = solved(POISSON, &waves("box(dim: 2, cells: 4)", 6, &held, wall, "4 * pi^2"));
    assert!(solution.error("u").expect("a known solution").0 < 1e-5);
    assert_eq!(solution.dofs(), 24 * 25);
}

#[test]
fn a_cell_that_meets_itself_is_as_good_as_two() {
    // A load that does not depend on y, on one cell or on four across.
    let problem = |cells: usize| {
        format!(
            "mesh = box(dim: 2, cells: [4, {cells}]); degree = 3; periodic \"y0\" = \"y1\"; dirichlet u on \"x0\", \"x1\";
             exact u = x[0]^2; aux f = x[0]^2 - 2; report middle = u([0.4, 0.3]);"
        )
    };
    for cells in [1, 4] {
        let solution = solved(POISSON, &problem(cells));
        assert!((number(&solution, "middle") - 0.16).abs() < 1e-11);
        assert!(solution.error("u").expect("a known solution").0 < 1e-11);
    }
}

#[test]
fn sides_that_are_no_translations_are_refused_with_a_facet() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |mesh: &str, sides: &str| {
        let problem = format!("mesh = {mesh}; {sides} aux f = 1;");
        run(folder.path(), POISSON, &problem).expect_err("refused").to_string()
    };
    let square = "box(dim: 2, cells: 2)";
    let found = said(square, "periodic \"x0\" = \"y1\";");
    assert!(found.contains("has no partner on \"y1\""), "{found}");
    assert!(found.contains("translations of each other"), "{found}");
    let found = said("box(dim: 2, cells: [2, 3])", "periodic \"x0\" = \"y1\";");
    assert!(found.contains("\"x0\" has 3 facets, \"y1\" 2: mesh both sides alike"), "{found}");
    let found = said(square, "periodic \"x0\" = \"x1\"; dirichlet u = 0 on \"x1\";");
    assert!(found.contains("\"x1\" is periodic, and no end of the domain"), "{found}");
    let found = said(square, "periodic \"x0\" = \"x1\"; periodic \"x1\" = \"y0\";");
    assert!(found.contains("this side has a partner already"), "{found}");
    // Tags that share facets.
    let text = boxed(2, |x| x).replace("2 2 \"x1\"", "2 2 \"x0\"");
    std::fs::write(folder.path().join("box.msh"), text).expect("written");
    let found = said("\"box.msh\"", "periodic \"x0\" = \"y0\";");
    assert!(found.contains("no partner"), "{found}");
}

/// Elasticity of a body pressed from above between walls.
const BODY: &str = "field u: vector; param p: vector = [0, 0, -1];
    f1[u] = 2 * sym(grad(u)) + 1.5 * tr(grad(u)) * I;
    f0[u] = 2 * dot(u, u) * u - 0.1 * p;
    on boundary \"z1\" { f0[u] = -0.2 * p; }";

#[test]
fn a_turned_body_between_walls_does_as_one_along_the_axes() {
    let folder = tempfile::tempdir().expect("a folder");
    let pressed = |x: Place| [x[0] * (1.0 + 0.2 * x[2]), x[1], x[2] * (1.2 - 0.1 * x[1])];
    std::fs::write(folder.path().join("axes.msh"), boxed(3, pressed)).expect("written");
    std::fs::write(folder.path().join("turned.msh"), boxed(3, |x| turned(pressed(x))))
        .expect("written");
    let p = turned([0.3, -0.2, -1.0]);
    let problem = |mesh: &str, p: Place, solver: &str| {
        format!(
            "mesh = \"{mesh}.msh\"; degree = 2; param p = {p:?}; solver = {solver};
             dirichlet dot(u, n) = 0 on \"y0\", \"z0\"; dirichlet dot(u, n) = -0.02 on \"x0\";
             report size = l2(u); report pressed = dot(integral(u, on: \"z1\"), {p:?});
             report through = integral(dot(u, n), on: \"y0\"); report push = dot(reaction(u), {p:?});"
        )
    };
    let solve = |mesh: &str, p: Place, solver: &str| {
        run(folder.path(), BODY, &problem(mesh, p, solver))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    let linear = "newton(linear: direct, rtol: 1e-12)";
    let wanted = solve("axes", [0.3, -0.2, -1.0], linear);
    for solver in [
        linear,
        "newton(linear: cg, rtol: 1e-12)",
        "newton(linear: gmres, rtol: 1e-12)",
        "newton(linear: minres, rtol: 1e-12, atol: 1e-13, steps: 2)",
        "newton(rtol: 1e-12, atol: 1e-13, steps: 2, load: p)",
    ] {
        let found = solve("turned", p, solver);
        for name in ["size", "pressed", "push"] {
            let (found, wanted) = (number(&found, name), number(&wanted, name));
            assert!(
                (found - wanted).abs() < 1e-9 * wanted.abs(),
                "{solver}, {name}: {found} for {wanted}"
            );
        }
        assert!(number(&found, "through").abs() < 1e-12, "{solver}");
    }
}

/// Slip along a wall: u·n = 0, and the traction s along it.
const SLIP: &str = "field u: vector; aux f: vector on points; aux s: vector on nodes in H1(3);
    f0[u] = u - f; f1[u] = 2 * sym(grad(u));
    on boundary \"surface\" { f0[u] = -s; }";

/// Returns a rotation with speed r² in the plane, or in each plane across the axis.
fn spin(mesh: &str, degree: usize, dim: usize) -> String {
    let (around, squared, laplacian) = match dim {
        2 => ("[-x[1], x[0]]", "(x[0]^2 + x[1]^2)", 8),
        _ => ("[-x[1], x[0], 0]", "(x[0]^2 + x[1]^2 + x[2]^2)", 10),
    };
    format!(
        "mesh = {mesh}; degree = {degree}; dirichlet dot(u, n) on \"surface\"; solver = cg(rtol: 1e-10);
         exact u = {around} * {squared}; aux f = {around} * ({squared} - {laplacian}); aux s = 2 * {around};"
    )
}

/// A linear flow through all sides, and one around a curved wall, on simplices of both orientations.
#[test]
fn a_normal_component_points_outwards_on_simplices() {
    let form = "field u: vector; f1[u] = grad(u);";
    for (dim, cell, exact) in [
        (2, "tri", ["x[0] + 2 * x[1]", "x[1] - x[0]", ""]),
        (3, "tet", ["x[0] + 2 * x[1]", "x[1] - x[2]", "x[2] - 3 * x[0]"]),
    ] {
        let exact = &exact[..dim];
        for degree in [1, 2, 3] {
            let sides = exact.iter().zip(["x", "y", "z"]).map(|(u, axis)| {
                format!(
                    "dirichlet dot(u, n) = -({u}) on \"{axis}0\"; dirichlet dot(u, n) = {u} on \"{axis}1\";"
                )
            });
            let sides: String = sides.collect();
            let all = exact.join(", ");
            let found = error(
                form,
                &format!(
                    "mesh = box(dim: {dim}, cell: {cell}, cells: 2); degree = {degree}; manufactured u = [{all}]; {sides}
                     solver = direct();"
                ),
            );
            assert!(found < 1e-12, "{cell}, degree {degree}: {found}");
        }
    }
    // A folded wall has one normal at each node, not two opposite ones.
    let errors = [2, 3].map(|refine| {
        error(SLIP, &spin(&format!("ball(dim: 2, cell: tri, refine: {refine}, order: 2)"), 2, 2))
    });
    let rate = (errors[0] / errors[1]).log2();
    assert!(rate > 2.5, "{errors:?}");
}

#[test]
fn slip_along_curved_walls_converges() {
    for (dim, degree, order, refine, rate) in [
        (2, 2, 2, 2, 3.0),
        (2, 4, 4, 1, 5.0),
        (2, 1, 1, 2, 1.8),
        (3, 2, 2, 1, 2.3),
        (3, 1, 1, 2, 1.7),
    ] {
        let errors = [refine, refine + 1].map(|refine| {
            let mesh = format!("ball(dim: {dim}, refine: {refine}, order: {order})");
            error(SLIP, &spin(&mesh, degree, dim))
        });
        let found = (errors[0] / errors[1]).log2();
        assert!(found > rate, "{dim}D, degree {degree}: {errors:?}, rate {found:.2}");
    }
}

#[test]
fn what_a_wall_leaves_free_is_told() {
    // The rotation of a disc with a slip condition is free.
    let form = "field u: vector; f1[u] = 2 * sym(grad(u)); f0[u] = [0, 0];";
    let disc = "mesh = ball(dim: 2, refine: 2); dirichlet dot(u, n) = 0;";
    let found = run(Path::new("."), form, disc).expect_err("free to turn").to_string();
    assert!(found.contains("turn"), "{found}");
    for (text, wanted) in [
        ("dirichlet dot(u, x) = 0;", "its product with `n`"),
        ("dirichlet dot(u, n) = [1, 0];", "is a scalar, but this is"),
    ] {
        let problem = format!("mesh = ball(dim: 2, refine: 1); {text}");
        let found = run(Path::new("."), form, &problem).expect_err("wrong").to_string();
        assert!(found.contains(wanted), "{found}");
    }
    let scalar = "mesh = box(dim: 2, cells: 2); aux f = 1; dirichlet dot(u, n) = 0;";
    let found = run(Path::new("."), POISSON, scalar).expect_err("no normal").to_string();
    assert!(found.contains("`u` has no normal component"), "{found}");
}
