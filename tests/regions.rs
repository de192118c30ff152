//! Forms and data that differ from region to region of a mesh.

use std::path::Path;
use weakform::{Execution, Form, Solution};

/// Returns a grid of n × n squares over the unit square: cells with y < 1/2 are "soft", the others "hard", with
/// "middle" between them; optionally all are divided into triangles.
pub(crate) fn layers(n: usize, triangles: bool) -> String {
    bent_layers(n, triangles, 0.0)
}

/// Returns the same with nodes that are moved by up to `bend`, except across the boundary and the middle.
pub(crate) fn bent_layers(n: usize, triangles: bool, bend: f64) -> String {
    let side = n + 1;
    let mut text = String::from(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n7\n1 1 \"left\"\n1 2 \"right\"\n1 3 \"bottom\"\n1 4 \"top\"\n1 7 \"middle\"\n\
         2 5 \"soft\"\n2 6 \"hard\"\n$EndPhysicalNames\n$Nodes\n",
    );
    text += &format!("{}\n", side * side);
    for i in 0..side * side {
        let (x, y) = ((i % side) as f64 / n as f64, (i / side) as f64 / n as f64);
        let (across, along) = (x * (1.0 - x) * (1.0 + y), y * (1.0 - y) * (1.0 - 2.0 * y));
        let (x, y) = (x + 4.0 * bend * across, y + 16.0 * bend * along * (x - 0.3));
        text += &format!("{} {x} {y} 0\n", i + 1);
    }
    let node = |i: usize, j: usize| j * side + i + 1;
    let mut elements = Vec::new();
    for k in 0..n {
        for (tag, a, b) in [
            (1, node(0, k), node(0, k + 1)),
            (2, node(n, k), node(n, k + 1)),
            (3, node(k, 0), node(k + 1, 0)),
            (4, node(k, n), node(k + 1, n)),
            (7, node(k, n / 2), node(k + 1, n / 2)),
        ] {
            elements.push(format!("1 2 {tag} {tag} {a} {b}"));
        }
    }
    for (i, j) in (0..n).flat_map(|j| (0..n).map(move |i| (i, j))) {
        let tag = if 2 * j < n { 5 } else { 6 };
        let [a, b, c, d] = [node(i, j), node(i + 1, j), node(i + 1, j + 1), node(i, j + 1)];
        if triangles {
            elements.push(format!("2 2 {tag} {tag} {a} {b} {c}"));
            elements.push(format!("2 2 {tag} {tag} {a} {c} {d}"));
        } else {
            elements.push(format!("3 2 {tag} {tag} {a} {b} {c} {d}"));
        }
    }
    text += &format!("$EndNodes\n$Elements\n{}\n", elements.len());
    for (number, element) in elements.iter().enumerate() {
        text += &format!("{} {element}\n", number + 1);
    }
    text + "$EndElements\n"
}

fn run(folder: &Path, text: &str, execution: Execution) -> Result<Solution, weakform::Error> {
    let form = Form::parse(text, "heat")?;
    form.problem("plate")?.folder(folder).execution(execution).run()
}

fn number(solution: &Solution, name: &str) -> f64 {
    solution.report(name).and_then(|figure| figure.number()).expect("a number")
}

/// A conductivity by region, in three notations.
const FORMS: [(&str, &str); 4] = [
    (
        "param k1 = 1; param k2 = 10;
      on cells \"soft\" { f1[u] = k1 * grad(u); }
      on cells \"hard\" { let flux = k2 * grad(u); f1[u] = flux; }",
        "",
    ),
    (
        "param k1 = 1; param k2 = 10;
      f1[u] = k1 * grad(u);
      on cells \"hard\" { energy = (k2 - k1) / 2 * dot(grad(u), grad(u)); }",
        "",
    ),
    (
        "aux kappa: scalar on cells; f1[u] = kappa * grad(u);",
        "aux kappa = 1 on \"soft\"; aux kappa = 10 on \"hard\";",
    ),
    (
        "aux kappa: scalar on nodes in L2(1); f1[u] = kappa * grad(u);",
        "aux kappa = 1; aux kappa = 10 on \"hard\";",
    ),
];

fn problem(form: &str, data: &str, conditions: &str, reports: &str) -> String {
    format!(
        "form heat {{ field u: scalar; {form} }}
         problem plate solves heat {{
             mesh = \"layers.msh\";
             degree = 3;
             {data}
             {conditions}
             {reports}
         }}"
    )
}

/// For layers of conductivities 1 and 10 and thickness 1/2 the flux of a difference of 1 is 1 / (1/2 + 1/20).
#[test]
fn the_flux_through_two_layers_is_that_of_their_resistances() {
    let folder = tempfile::tempdir().expect("a folder");
    for triangles in [false, true] {
        std::fs::write(folder.path().join("layers.msh"), layers(4, triangles)).expect("a mesh");
        for (form, data) in FORMS {
            let ways = [
                (Execution::Interpreted, "cg(rtol: 1e-13)"),
                (Execution::Interpreted, "direct"),
                (Execution::Compiled, "direct"),
            ];
            // The compiled text is the same on both meshes except for the cell.
            for (execution, solver) in ways.into_iter().take(if triangles { 2 } else { 3 }) {
                let conditions = format!(
                    "dirichlet u = 0 on \"bottom\"; dirichlet u = 1 on \"top\"; solver = {solver};"
                );
                let reports = "report flux = reaction(u, on: \"top\");
                        report between = u([0.3, 0.5]);
                        report share = integral(1, on: \"hard\");
                        report drop = integral(grad(u)[1], on: \"soft\");";
                let text = problem(form, data, &conditions, reports);
                let solution =
                    run(folder.path(), &text, execution).unwrap_or_else(|error| panic!("{error}"));
                let known = 1.0 / 0.55;
                for (name, known) in [
                    ("flux", known),
                    ("between", 0.5 * known),
                    ("share", 0.5),
                    ("drop", 0.5 * known),
                ] {
                    let found = number(&solution, name);
                    assert!(
                        (found - known).abs() < 1e-9,
                        "{name} {found} for {known}: {form} {solver}"
                    );
                }
            }
        }
    }
}

/// Returns the solution for u = 0 at the sides and the bottom and 4 x (1 − x) at the top, by separation of variables:
/// with s_n = nπ, c_n = 32 / s_n³ for odd n,
///
/// u = Σ c_n sin(s_n x) · a_n sinh(s_n y) below y = 1/2, and b_n sinh(s_n (y − 1/2)) + d_n cosh(s_n (y − 1/2)) above
/// it,
///
/// where a_n sinh(s_n/2) = d_n and k₁ a_n cosh(s_n/2) = k₂ b_n.
fn series(x: f64, y: f64, [k1, k2]: [f64; 2]) -> f64 {
    let term = |n: u32| {
        let s = f64::from(n) * std::f64::consts::PI;
        let (sinh, cosh) = ((s / 2.0).sinh(), (s / 2.0).cosh());
        let (b, d) = (k1 / k2 * cosh, sinh);
        let top = b * sinh + d * cosh;
        let value = match y < 0.5 {
            true => (s * y).sinh(),
            false => b * (s * (y - 0.5)).sinh() + d * (s * (y - 0.5)).cosh(),
        };
        32.0 / s.powi(3) * (s * x).sin() * value / top
    };
    (1..200).step_by(2).map(term).sum()
}

#[test]
fn a_plate_of_two_materials_has_the_temperatures_of_its_series() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("layers.msh"), layers(8, false)).expect("a mesh");
    let conditions = "dirichlet u = 4 * x[0] * (1 - x[0]) on \"top\";
        dirichlet u = 0 on \"left\", \"right\", \"bottom\";";
    let places = [[0.5, 0.25], [0.3, 0.5], [0.5, 0.75], [0.8, 0.9]];
    let reports: String = places
        .iter()
        .enumerate()
        .map(|(i, [x, y])| format!("report u{i} = u([{x}, {y}]);"))
        .collect();
    for (form, data) in FORMS {
        let text = problem(form, data, conditions, &reports);
        let solution = run(folder.path(), &text, Execution::Automatic).expect("a solution");
        for (i, [x, y]) in places.into_iter().enumerate() {
            let (found, known) = (number(&solution, &format!("u{i}")), series(x, y, [1.0, 10.0]));
            assert!((found - known).abs() < 2e-5, "{found} for {known} at ({x}, {y})");
        }
    }
}

#[test]
fn what_a_region_lacks_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("layers.msh"), layers(2, false)).expect("a mesh");
    let condition = "dirichlet u = 0 on \"bottom\";";
    for (form, data, said) in [
        (FORMS[2].0, "aux kappa = 1 on \"soft\";", "no value on \"hard\""),
        (FORMS[2].0, "aux kappa = 1 on \"sort\"; aux kappa = 1 on \"hard\";", "sort"),
        ("on cells \"hart\" { f1[u] = grad(u); } f1[u] = grad(u);", "", "hart"),
        ("on cells \"hard\" { f1[u] = grad(u); }", "", "no term of the form determines `u`"),
    ] {
        let text = problem(form, data, condition, "");
        let error = run(folder.path(), &text, Execution::Interpreted).expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
    }
    for (form, data, said) in [
        (
            "aux kappa: scalar; f1[u] = kappa * grad(u);",
            "aux kappa = 1 on \"soft\";",
            "cannot jump",
        ),
        (
            "f1[u] = grad(u); on cells \"hard\" { f0[u] = dot(n, grad(u)); }",
            "",
            "`n` is the normal",
        ),
    ] {
        let text = problem(form, data, condition, "");
        let error = run(folder.path(), &text, Execution::Interpreted).expect_err(said).to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// The matrix of a symmetric form with overlapping regions and some constrained DoFs is symmetric; and J w = R(w) −
/// R(0).
#[test]
fn the_jacobian_of_regions_is_symmetric_and_that_of_their_residual() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("layers.msh");
    std::fs::write(&path, layers(4, false)).expect("a mesh");
    let regions = "form heat { field u: scalar; f0[u] = u - 1; f1[u] = grad(u);
        on cells \"hard\" { f1[u] = 9 * grad(u); } on cells \"soft\", \"hard\" { f0[u] = x[0] * u; }
        on boundary \"left\" { f0[u] = 3 * u; } }";
    for degree in [1, 2, 3, 5] {
        let mesh = weakform::mesh(path.to_str().expect("UTF-8")).expect("a mesh");
        let setup = Form::parse(regions, "heat").expect("a form").on(mesh).degree(degree);
        let setup = setup.dirichlet("u", "top", |_| 0.0).execution(Execution::Interpreted);
        let mut system = setup.build().expect("a system");
        let held = |x: &[f64; 3]| x[1] == 1.0;
        let noise = |a: f64| {
            move |x: &[f64; 3]| if held(x) { 0.0 } else { (a * x[0] + 777.0 * x[1]).sin() }
        };
        let [v, w] = [91.0, 37.0].map(|a| system.interpolate("u", noise(a)).expect("a vector"));
        let zero = system.vector();
        let [mut at_zero, mut at_w] = [system.vector(), system.vector()];
        let [mut of_v, mut of_w] = [system.vector(), system.vector()];
        system.residual(&zero, &mut at_zero).expect("a residual");
        system.residual(&w, &mut at_w).expect("a residual");
        system.linearise(&zero).expect("a state");
        system.apply(&v, &mut of_v).expect("a product");
        system.apply(&w, &mut of_w).expect("a product");
        let (one, other) = (w.dot(&of_v), v.dot(&of_w));
        assert!(
            (one - other).abs() < 1e-12 * w.norm() * of_v.norm(),
            "{one} {other}, degree {degree}"
        );
        let rows = at_w.to_vec().into_iter().zip(at_zero.to_vec()).map(|(w, zero)| w - zero);
        for (i, (wanted, found)) in rows.zip(of_w.to_vec()).enumerate() {
            assert!(
                (wanted - found).abs() < 1e-11,
                "row {i}: {found} for {wanted}, degree {degree}"
            );
        }
    }
}

/// Plates in contact: the heat flows through a resistance between them, the temperature jumps there.
#[test]
fn integrals_between_cells_are_those_of_contact() {
    let folder = tempfile::tempdir().expect("a folder");
    for (triangles, execution) in
        [(false, Execution::Compiled), (true, Execution::Compiled), (false, Execution::Interpreted)]
    {
        std::fs::write(folder.path().join("mesh.msh"), layers(4, triangles)).expect("a file");
        // T = a y below and 1 − a (1 − y) above; a = (1 − a) / R, in opposite directions.
        let text = "form heat { field T: scalar in L2(k); aux m: scalar on cells; param R = 3; param eta = 4;
                 f1[T] = grad(T);
                 on interior {
                     let bulk = avg(penalty(T)) * eta * jump(T) - dot(avg(grad(T)), n);
                     f0[jump(T)] = if inside(m) == outside(m) { bulk } else { jump(T) / R };
                     f1[avg(T)] = if inside(m) == outside(m) { -jump(T) * n } else { 0 * n };
                 }
                 on boundary \"top\", \"bottom\" {
                     f0[T] = eta * penalty(T) * (T - x[1]) - dot(grad(T), n); f1[T] = -(T - x[1]) * n;
                 } }
             problem plate solves heat { mesh = \"mesh.msh\"; degree = 1; aux m = 0 on \"soft\"; aux m = 1 on \"hard\";
                 solver = direct;
                 report flux = integral(abs(jump(T)) / 3, on: interior);
                 report jumps = integral(jump(T), on: interior from \"hard\" to \"soft\");
                 report back = integral(jump(T), on: interior from \"soft\" to \"hard\");
                 report slope = integral(dot(inside(grad(T)), n), on: interior from \"soft\" to \"hard\");
                 report square = integral(jump(T)^2, on: interior \"middle\");
                 report length = integral(1, on: interior \"middle\");
                 report all = integral(1, on: interior); }";
        let solution =
            run(folder.path(), text, execution).unwrap_or_else(|error| panic!("{error}"));
        // a (1 + R) = 1.
        let a = 0.25;
        let all = if triangles { 6.0 + 16.0 * 0.125_f64.sqrt() } else { 6.0 };
        for (name, known) in [
            ("flux", a),
            ("jumps", 3.0 * a),
            ("back", -3.0 * a),
            ("slope", a),
            ("square", 9.0 * a * a),
            ("length", 1.0),
            ("all", all),
        ] {
            let found = number(&solution, name);
            assert!(
                (found - known).abs() < 1e-10,
                "{name}, triangles {triangles}: {found} {known}"
            );
        }
    }
    let text = "form f { field u: scalar in L2(k); f0[u] = u; }
         problem p solves f { mesh = \"mesh.msh\"; report r = integral(avg(u), on: interior \"nowhere\"); }";
    let form = Form::parse(text, "f").expect("a form");
    let found = form.problem("p").expect("a problem").folder(folder.path()).run();
    let Err(error) = found else { panic!("the tag is unknown") };
    assert!(error.to_string().contains("nowhere"), "{error}");
}

/// Terms between tagged cells and under the tag of their facets, with exact solutions that are linear in each region.
#[test]
fn terms_under_tags_of_inner_facets_have_exact_solutions() {
    let folder = tempfile::tempdir().expect("a folder");
    // The fluxes within both bodies, and Nitsche's conditions 0 below and 1 above.
    let within = "let bulk = 4 * avg(penalty(T)) * jump(T) - dot(avg(grad(T)), n);";
    let bodies = format!(
        "field T: scalar in L2(k); param R = 3; f1[T] = grad(T);
         on interior from \"soft\" to \"soft\" {{ {within} f0[jump(T)] = bulk; f1[avg(T)] = -jump(T) * n; }}
         on interior from \"hard\" to \"hard\" {{ {} f0[jump(T)] = hulk; f1[avg(T)] = -jump(T) * n; }}
         on boundary \"top\", \"bottom\" {{ let g = if x[1] > 0.5 {{ 1 }} else {{ 0 }};
             f0[T] = 4 * penalty(T) * (T - g) - dot(grad(T), n); f1[T] = -(T - g) * n; }}",
        within.replace("bulk", "hulk")
    );
    // The heat q that enters the upper body: T = −q y below, and 1 + q (1 − y) above.
    let heat =
        |q: f64| format!("if x[1] < 0.5 {{ {} * x[1] }} else {{ 1 + {q} * (1 - x[1]) }}", -q);
    let source = |region: &str, row: &str| {
        format!(
            "field T: scalar; param below = 2; param above = 3;
             on cells \"soft\" {{ f1[T] = below * grad(T); }} on cells \"hard\" {{ f1[T] = above * grad(T); }}
             on interior {region} {{ {row} }}"
        )
    };
    // Of the heat 10 that enters in the middle, 4 leaves below and 6 above.
    let tent = "if x[1] < 0.5 { 2 * x[1] } else { 2 * (1 - x[1]) }".to_owned();
    let cases = [
        // q = (T_soft − T_hard) / 3.
        (
            format!("{bodies} on interior \"middle\" {{ f0[jump(T)] = jump(T) / R; }}"),
            heat(-0.25),
            "",
        ),
        // q = (T_soft − 2 T_hard) / 3: the sides of a partition.
        (
            format!(
                "{bodies} on interior from \"soft\" to \"hard\" {{ let q = (inside(T) - 2 * outside(T)) / R; f0[jump(T)] = q; }}"
            ),
            heat(-4.0 / 9.0),
            "",
        ),
        (
            format!(
                "{bodies} on interior from \"hard\" to \"soft\" {{ let q = (outside(T) - 2 * inside(T)) / R; f0[jump(T)] = -q; }}"
            ),
            heat(-4.0 / 9.0),
            "",
        ),
        (
            source("\"middle\"", "f0[T] = -10;"),
            tent.clone(),
            "dirichlet T = 0 on \"top\", \"bottom\";",
        ),
        (
            source("from \"soft\" to \"hard\"", "f0[T] = -10 * n[1];"),
            tent.clone(),
            "dirichlet T = 0 on \"top\", \"bottom\";",
        ),
        (
            source("from \"hard\" to \"soft\"", "f0[T] = 10 * n[1] + T - 1;"),
            tent,
            "dirichlet T = 0 on \"top\", \"bottom\";",
        ),
    ];
    for triangles in [false, true] {
        let layers = bent_layers(4, triangles, 0.05);
        std::fs::write(folder.path().join("mesh.msh"), layers).expect("a file");
        for (form, exact, conditions) in &cases {
            let text = format!(
                "form heat {{ {form} }} problem plate solves heat {{ mesh = \"mesh.msh\"; degree = 1; {conditions}
                     solver = direct; exact T = {exact}; }}"
            );
            let solution = run(folder.path(), &text, Execution::Interpreted);
            let solution = solution.unwrap_or_else(|error| panic!("{error}\n{text}"));
            let (error, slope) = solution.error("T").expect("known errors");
            assert!(
                error < 1e-12 && slope < 1e-11,
                "{error} {slope}, triangles {triangles}: {text}"
            );
        }
    }
}

#[test]
fn integrals_between_cells_are_the_same_on_devices() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("case.wf");
    // More points than are interpreted.
    let text = "form f { field u: scalar in L2(k); f0[u] = u - sin(3 * x[0]) * x[1]; }
         problem p solves f { mesh = box(dim: 2, cells: 120); degree = 1; solver = cg(rtol: 1e-12);
             report mean = integral(avg(u), on: interior); report square = integral(jump(u)^2, on: interior); }";
    std::fs::write(&file, text).expect("a file");
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_wf"))
            .args(["run", "--no-output", "--json"])
            .args(arguments)
            .arg(&file)
            .output()
            .expect("wf should start");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        ["mean", "square"].map(|name| value["reports"][name].as_f64().expect("a number"))
    };
    let wanted = run(&[]);
    assert!(wanted.iter().all(|x| *x > 1e-12), "{wanted:?}");
    for device in super::devices::devices() {
        let found = run(&["--backend", device.backend().word(), "--device", &device.name()]);
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-8 * wanted, "{found} {wanted}");
        }
    }
}

/// A channel flow, driven by a force, on an elastic layer. The wall has the shear stress G / 4 and the pressure p, so that
/// the layer is sheared by (G / 4) / μ and compressed by p / (λ + 2 μ).
#[test]
fn an_elastic_layer_carries_the_traction_of_a_flow() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "form heat {
        field u: vector on \"hard\"; field p: scalar in H1(k - 1) on \"hard\"; field d: vector on \"soft\";
        param nu = 0.5; param G = 4; param mu = 2; param lambda = 1; param pressure = 3;
        let flow = [G / (2 * nu) * (x[1] - 0.5) * (1 - x[1]), 0];
        let layer = x[1] * [G / (4 * mu), -pressure / (lambda + 2 * mu)];
        let stress = 2 * nu * sym(grad(u)) - p * I;
        f1[u] = stress; f0[p] = div(u);
        on cells \"hard\" { f0[u] = [-G, 0]; }
        f1[d] = 2 * mu * sym(grad(d)) + lambda * div(d) * I;
        on interior from \"hard\" to \"soft\" { f0[d] = inside(stress) * n; }
     }
     problem plate solves heat {
        mesh = \"layers.msh\"; degree = 2;
        dirichlet u = [G / (2 * nu) * (x[1] - 0.5) * (1 - x[1]), 0] on \"left\", \"right\", \"top\", \"middle\";
        dirichlet p = pressure at [1, 1];
        dirichlet d = x[1] * [G / (4 * mu), -pressure / (lambda + 2 * mu)] on \"left\", \"right\", \"bottom\";
        report fluid = l2(u - flow) + l2(p - pressure);
        report solid = l2(d - layer);
        report size = l2(d);
     }";
    for triangles in [false, true] {
        std::fs::write(folder.path().join("layers.msh"), layers(4, triangles)).expect("a file");
        let solution = run(folder.path(), text, Execution::Interpreted);
        let solution = solution.unwrap_or_else(|error| panic!("{error}"));
        let [fluid, solid, size] = ["fluid", "solid", "size"].map(|name| number(&solution, name));
        assert!(fluid < 1e-9 && solid < 1e-9 && size > 0.1, "{fluid} {solid} {size}");
    }
}
