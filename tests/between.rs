//! Integrals over facets between cells, from text to solutions: orders, exactness, conservation, ways of assembly.

mod operators;
mod orders;
mod penalty;

use weakform::{Form, Solution};

/// Solves the problem `case` of a form, both given by their items.
fn solved(form: &str, problem: &str) -> Solution {
    let text = format!("form f {{ {form} }} problem case solves f {{ {problem} }}");
    let form = Form::parse(&text, "f").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let case = form.problem("case").unwrap_or_else(|error| panic!("{error}\n{text}"));
    case.run().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The symmetric interior penalty method for −Δu with u given on the whole boundary by its product of sines.
fn sipg(dim: usize) -> (String, String) {
    let sines: Vec<String> = (0..dim).map(|i| format!("sin(pi * x[{i}])")).collect();
    let (exact, sides) = (sines.join(" * "), ["x0", "x1", "y0", "y1", "z0", "z1"]);
    let sides: Vec<String> = sides[..2 * dim].iter().map(|side| format!("\"{side}\"")).collect();
    let form = format!(
        "field u: scalar in L2(k); param eta = 2; \
         f0[u] = -{dim} * pi^2 * {exact}; f1[u] = grad(u); \
         on interior {{ energy = eta * avg(penalty(u)) / 2 * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); }} \
         on boundary {} {{ energy = eta * penalty(u) / 2 * u^2 - dot(grad(u), n) * u; }}",
        sides.join(", ")
    );
    (form, exact)
}

#[test]
fn interior_penalty_converges_with_its_order_on_all_cells() {
    for (cell, dim, degree, sizes) in [
        ("quad", 2, 1, [8, 16]),
        ("quad", 2, 2, [6, 12]),
        ("tri", 2, 2, [6, 12]),
        ("hex", 3, 2, [3, 6]),
        ("tet", 3, 2, [2, 4]),
    ] {
        let (form, exact) = sipg(dim);
        let errors = sizes.map(|cells| {
            let problem = format!(
                "mesh = box(dim: {dim}, cells: {cells}, cell: {cell}); degree = {degree}; \
                 solver = cg(rtol: 1e-10, max_iterations: 2000); exact u = {exact};"
            );
            solved(&form, &problem).error("u").expect("known errors")
        });
        let order = |coarse: f64, fine: f64| (coarse / fine).log2();
        let (l2, h1) = (order(errors[0].0, errors[1].0), order(errors[0].1, errors[1].1));
        let p = f64::from(degree);
        assert!(l2 > p + 0.75 && h1 > p - 0.25, "{cell} {degree}: {l2} {h1} {errors:?}");
    }
}

/// ∫ ∇φ · F + φ div F over cells is the integral of φ F · n over their facets, whose terms cancel it.
#[test]
fn integration_by_parts_leaves_nothing() {
    for (cell, dim) in [("quad", 2), ("tri", 2), ("hex", 3), ("tet", 3)] {
        let (flux, divergence) = match dim {
            2 => ("[x[0] * x[1], x[1]^2 - x[0]]", "3 * x[1]"),
            _ => ("[x[0] * x[2], x[1]^2 - x[0], x[0] * x[1] + x[2]]", "x[2] + 2 * x[1] + 1"),
        };
        let sides = ["x0", "x1", "y0", "y1", "z0", "z1"];
        let sides: Vec<String> =
            sides[..2 * dim].iter().map(|side| format!("\"{side}\"")).collect();
        let form = format!(
            "field u: scalar in L2(k); let F = {flux}; f0[u] = u - 1 + {divergence}; f1[u] = F; \
             on interior {{ f0[jump(u)] = -dot(F, n); }} \
             on boundary {} {{ f0[u] = -dot(F, n); }}",
            sides.join(", ")
        );
        let deform = if cell == "tri" || cell == "tet" { "" } else { ", deform: 0.1" };
        let problem = format!(
            "mesh = box(dim: {dim}, cells: 3, cell: {cell}{deform}); degree = 2; \
             solver = direct; exact u = 1;"
        );
        let (error, _) = solved(&form, &problem).error("u").expect("known errors");
        assert!(error < 1e-12, "{cell}: {error}");
    }
}

/// Linear functions with their own values on the boundary are solutions to rounding, on cells of all orientations.
#[test]
fn polynomials_of_the_space_are_reproduced() {
    let form = "field u: scalar in L2(k); param eta = 2; aux g: scalar; f1[u] = grad(u); \
         on interior { energy = eta * avg(penalty(u)) / 2 * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); } \
         on boundary \"x0\", \"x1\", \"y0\", \"y1\", \"z0\", \"z1\" { f0[u] = eta * penalty(u) * (u - g) - dot(grad(u), n); f1[u] = -(u - g) * n; }";
    for cell in ["hex", "tet"] {
        let problem = format!(
            "mesh = box(dim: 3, cells: 3, cell: {cell}); degree = 1; aux g = 1 + x[0] - 2 * x[1] + x[2] / 2; \
             solver = cg(rtol: 1e-13, max_iterations: 2000); exact u = 1 + x[0] - 2 * x[1] + x[2] / 2;"
        );
        let (l2, h1) = solved(form, &problem).error("u").expect("known errors");
        assert!(l2 < 1e-11 && h1 < 1e-10, "{cell}: {l2} {h1}");
    }
}

/// Upwind fluxes around a periodic square carry a bump: its integral stays, and its square falls.
#[test]
fn upwind_fluxes_conserve() {
    let form = "field c: scalar in L2(k); let b = [1, 0.5]; f0[c] = dt(c); f1[c] = -c * b; \
         on interior { f0[jump(c)] = dot(b, n) * avg(c) + abs(dot(b, n)) / 2 * jump(c); }";
    let after = |steps: i32| {
        let problem = format!(
            "mesh = box(dim: 2, cells: 8); degree = 2; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\"; \
             time = rk(order: 4, to: {}, step: 5e-3); initial c = exp(-40 * ((x[0] - 0.5)^2 + (x[1] - 0.5)^2)); \
             report mass = integral(c); report square = integral(c^2);",
            f64::from(steps) * 5e-3
        );
        let solution = solved(form, &problem);
        ["mass", "square"]
            .map(|name| solution.report(name).and_then(|own| own.number()).expect("a number"))
    };
    let ([mass, square], [later, less]) = (after(1), after(200));
    assert!((mass - later).abs() < 1e-13 && mass > 0.05, "{mass} {later}");
    assert!(less < square && less > 0.8 * square, "{square} {less}");
}

/// A form that reads data in cells, normals, extents and diameters of both sides; not symmetric.
const MIXED: &str = "field u: vector in L2(k); field p: scalar in H1(k); aux kappa: scalar on cells; \
     f0[u] = u - [1, x[0]]; f1[u] = kappa * grad(u); f0[p] = p; f1[p] = grad(p) - u; \
     on interior { \
         let w = outside(kappa) / (inside(kappa) + outside(kappa)); \
         f0[jump(u)] = avg(penalty(u)) * jump(u) - w * inside(kappa) * inside(grad(u)) * n - (1 - w) * outside(kappa) * outside(grad(u)) * n; \
         f1[avg(u)] = outer(avg(h) * jump(u), n) / avg(hn); \
         f0[p] = dot(jump(u), n); \
     }";

const OF_MIXED: &str = "mesh = box(dim: 2, cells: 4, deform: 0.1); degree = 2; aux kappa = if x[0] < 0.5 { 1 } else { 10 }; \
     report a = integral(dot(u, u)); report b = integral(p^2);";

#[test]
fn ways_of_assembly_agree() {
    let reports = |solver: &str| {
        let solution = solved(MIXED, &format!("{OF_MIXED} solver = {solver};"));
        ["a", "b"].map(|name| solution.report(name).and_then(|own| own.number()).expect("a number"))
    };
    let wanted = reports("direct");
    assert!(wanted.iter().all(|x| *x > 1e-6), "{wanted:?}");
    let found = reports("gmres(rtol: 1e-9, restart: 100)");
    for (found, wanted) in found.iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-6 * wanted, "{found} {wanted}");
    }
}

/// Runs a file with arguments and returns the JSON of its solution without times.
fn run(arguments: &[&str]) -> Vec<f64> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("case.wf");
    let text = format!(
        "form f {{ {MIXED} }} problem case solves f {{ {OF_MIXED} solver = gmres(rtol: 1e-9, restart: 100); }}"
    );
    std::fs::write(&file, text).expect("a file");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_wf"))
        .args(["run", "--no-output", "--json"])
        .args(arguments)
        .arg(&file)
        .output()
        .expect("wf should start");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    let value: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("one object of JSON");
    ["a", "b"].map(|name| value["reports"][name].as_f64().expect("a number")).into()
}

/// Kernels are compiled for two of them: those of the others are interpreted.
#[test]
fn matrices_are_those_of_the_products() {
    let wanted = run(&[]);
    let agrees = |arguments: &[&str]| {
        for (found, wanted) in run(arguments).iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-6 * wanted, "{arguments:?}: {found} {wanted}");
        }
    };
    for (assembly, kernels) in [
        ("pattern", &[][..]),
        ("acoo", &[]),
        ("owner", &["--interpret"]),
        ("coloured", &["--interpret"]),
    ] {
        agrees(&[&["--operator", "assembled", "--assembly", assembly], kernels].concat());
    }
    for operator in ["ebe-v1", "ebe-v2"] {
        agrees(&["--operator", operator, "--interpret"]);
    }
    for threads in ["1", "2", "3"] {
        assert_eq!(run(&["--threads", threads]), wanted, "{threads} threads");
    }
}

#[test]
fn devices_agree_for_every_scatter() {
    let wanted = run(&[]);
    for device in super::devices::devices() {
        let on = ["--backend", device.backend().word(), "--device", &device.name()];
        for scatter in ["atomic", "coloured", "owner"] {
            let arguments = [&on[..], &["--scatter", scatter]].concat();
            let found = run(&arguments);
            // Additions in a fixed order repeat to the bit.
            assert!(scatter == "atomic" || run(&arguments) == found, "{scatter}");
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!((found - wanted).abs() < 1e-6 * wanted, "{scatter}: {found} {wanted}");
            }
        }
    }
}
