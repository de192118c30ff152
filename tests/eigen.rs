//! Eigenvalue problems: known eigenvalues, with every preconditioner, of constrained and free bodies, with the L2
//! product and with masses of the file. Messages if there are no eigenvalues.

use std::f64::consts::PI;

use weakform::{Form, Solution};

fn modes(text: &str, form: &str, problem: &str) -> Result<Solution, String> {
    let form = Form::parse(text, form).map_err(|error| error.to_string())?;
    let problem = form.problem(problem).map_err(|error| error.to_string())?;
    problem.run().map_err(|error| error.to_string())
}

fn values(solution: &Solution) -> Vec<f64> {
    solution.modes().iter().map(|mode| mode.value).collect()
}

/// Asserts that the eigenvalues agree with known ones to a relative error, or to an absolute one if these are 0.
fn agree(found: &[f64], known: &[f64], error: f64, what: &str) {
    assert_eq!(found.len(), known.len(), "{what}: {found:?}");
    for (found, known) in found.iter().zip(known) {
        let bound = error * if *known == 0.0 { 1.0 } else { *known };
        assert!((found - known).abs() <= bound, "{what}: {found} is not {known}");
    }
}

const LAPLACE: &str = "
    form laplace { field u: scalar; f1[u] = grad(u); }
    form heavy { field u: scalar; param rho = 2; aux c: scalar on cells; f0[u] = rho * c * u; }
    problem square solves laplace {
        mesh = box(dim: 2, cells: 6); degree = 4; dirichlet u = 0; eigen = smallest(6, ARGUMENTS);
    }
    problem free solves laplace { mesh = box(dim: 3, cells: 5, cell: CELL); degree = 2; eigen = smallest(4, ARGUMENTS); }
    problem torus solves laplace {
        mesh = box(dim: 2, cells: 6); degree = 4; periodic \"x0\" = \"x1\"; periodic \"y0\" = \"y1\"; eigen = smallest(6, ARGUMENTS);
    }
    problem heavier solves laplace {
        mesh = box(dim: 2, cells: 6); degree = 4; dirichlet u = 0; eigen = smallest(2); mass = heavy;
        param rho = 8; aux c = 0.5; report middle = u([0.5, 0.5]);
    }
    problem few solves laplace { mesh = box(dim: 2, cells: 3); degree = 1; dirichlet u = 0; eigen = smallest(9); }
    problem nothing solves laplace { mesh = box(dim: 2, cells: 1); degree = 1; dirichlet u = 0; eigen = smallest(9); }
    problem lifted solves laplace { mesh = box(dim: 2, cells: 3); degree = 1; dirichlet u = 1; eigen = smallest(1); }
    problem cut solves laplace {
        mesh = box(dim: 2, cells: 16); degree = 2; dirichlet u = 0;
        eigen = smallest(3, max_iterations: 2, preconditioner: jacobi);
    }";

fn laplace(problem: &str, arguments: &str, cell: &str) -> Result<Solution, String> {
    let text = LAPLACE.replace("ARGUMENTS", arguments).replace("CELL", cell);
    modes(&text, "laplace", problem)
}

#[test]
fn a_membrane_has_its_eigenvalues_with_every_preconditioner() {
    let known = [2.0, 5.0, 5.0, 8.0, 10.0, 10.0].map(|of| of * PI * PI);
    for preconditioner in ["direct", "multigrid", "jacobi", "none"] {
        let arguments = format!("rtol: 1e-9, preconditioner: {preconditioner}");
        let found = laplace("square", &arguments, "hex").expect("modes");
        // Discretisation error; the solver's error is the square of the residual.
        agree(&values(&found), &known, 1e-5, preconditioner);
        let iterations = found.iterations();
        let most = if matches!(preconditioner, "direct" | "multigrid") { 30 } else { 250 };
        assert!((3..=most).contains(&iterations), "{preconditioner}: {iterations}");
        assert!(found.modes().iter().all(|mode| mode.residual <= 1e-9));
    }
}

#[test]
fn modes_are_orthonormal_and_point_up() {
    let found = laplace("square", "rtol: 1e-9", "hex").expect("modes");
    let on = &found.inner().context.on;
    let form = Form::parse("form mass { field u: scalar; f0[u] = u; }", "mass").expect("a form");
    let mesh = runtime::mesh::Mesh::clone(&on.mesh);
    let system = form.on(mesh).degree(4).build().expect("a system");
    let n = on.n_dofs();
    for (i, one) in found.modes().iter().enumerate() {
        let most = one.u.iter().fold(0.0, |most: f64, entry| most.max(entry.abs()));
        let top = one.u.iter().copied().fold(f64::MIN, f64::max);
        assert!(top >= most * (1.0 - 1e-5), "{top} of {most}");
        let mut vector = system.vector();
        vector.set(&one.u);
        let mut product = vector.like();
        system.apply(&vector, &mut product).expect("a product");
        let product = product.to_vec();
        for (j, other) in found.modes().iter().enumerate() {
            let sum: f64 = (0..n).map(|k| product[k] * other.u[k]).sum();
            let known = f64::from(u8::from(i == j));
            assert!((sum - known).abs() < 1e-10, "{i}, {j}: {sum}");
        }
    }
}

#[test]
fn what_nothing_holds_moves_without_energy() {
    let known = [0.0, PI * PI, PI * PI, PI * PI];
    for (preconditioner, cell) in [("multigrid", "hex"), ("multigrid", "tet"), ("direct", "hex")] {
        let arguments = format!("preconditioner: {preconditioner}");
        let found = laplace("free", &arguments, cell).expect("modes");
        agree(&values(&found), &known, 1e-3, &format!("{preconditioner} on {cell}"));
        // The whole body moves in phase.
        let first = &found.modes()[0].ranges[0][0];
        assert!((first[1] - first[0]).abs() < 1e-5, "{first:?}");
    }
    let known = [0.0, 4.0, 4.0, 4.0, 4.0, 8.0].map(|of| of * PI * PI);
    agree(
        &values(&laplace("torus", "preconditioner: jacobi", "hex").expect("modes")),
        &known,
        1e-5,
        "torus",
    );
    let body = "
        form elasticity { field u: vector; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; }
        problem body solves elasticity {
            mesh = box(dim: 2, cells: [8, 2], to: [4, 1]); degree = 3; eigen = smallest(5);
        }";
    let found = values(&modes(body, "elasticity", "body").expect("modes"));
    // Two translations and a rotation, then bending: about 0.1.
    assert!(found[..3].iter().all(|value| value.abs() < 1e-7), "{found:?}");
    assert!(found[3] > 0.05 && found[3] < found[4], "{found:?}");
}

#[test]
fn a_form_of_the_file_is_the_mass() {
    let found = laplace("heavier", "", "hex").expect("modes");
    // ρ c = 4 everywhere.
    let known = [2.0, 5.0].map(|of| of * PI * PI / 4.0);
    agree(&values(&found), &known, 1e-5, "heavier");
    // φ² has the integral 1/4, and so does the square of sin · sin.
    let middle = found.modes()[0].reports[0].value.number().expect("a number");
    assert!((middle - 1.0).abs() < 1e-5, "{middle}");
    let pair = "
        form pair { field a: scalar; field b: scalar in H1(k + 1); f1[a] = grad(a); f1[b] = 3 * grad(b); }
        form masses { field b: scalar in H1(k + 1); field a: scalar; f0[a] = 4 * a; f0[b] = b; }
        problem square solves pair {
            mesh = box(dim: 2, cells: 6); degree = 3; dirichlet a = 0; dirichlet b = 0; eigen = smallest(5); mass = masses;
        }";
    let found = values(&modes(pair, "pair", "square").expect("modes"));
    let known = [2.0 / 4.0, 5.0 / 4.0, 5.0 / 4.0, 8.0 / 4.0, 10.0 / 4.0].map(|of| of * PI * PI);
    agree(&found, &known, 1e-3, "pair");
}

#[test]
fn what_cannot_be_found_is_said() {
    let found = laplace("few", "", "hex").expect("modes");
    assert_eq!(found.modes().len(), 4);
    let notes = found.notes().join("\n");
    assert!(notes.contains("there are no 9 modes, but 4 free unknowns"), "{notes}");
    for (problem, said) in [
        ("nothing", "none is free to move"),
        ("lifted", "modes are 0 where there are conditions"),
        ("cut", "lobpcg did not converge in 2 iterations"),
    ] {
        let error = laplace(problem, "", "hex").expect_err("no modes");
        assert!(error.contains(said), "{problem}: {error}");
    }
    let negative = "
        form plain { field u: scalar; f1[u] = grad(u); }
        form negative { field u: scalar; f0[u] = (x[0] - 0.5) * u; }
        form nothing { field u: scalar; param c = 0; f0[u] = c * u; }
        form stokes { field u: vector; field p: scalar in H1(k - 1); f1[u] = grad(u) - p * I; f0[p] = -div(u); }
        problem bad solves plain { mesh = box(dim: 2, cells: 8); dirichlet u = 0; eigen = smallest(2); mass = negative; }
        problem zero solves plain { mesh = box(dim: 2, cells: 8); dirichlet u = 0; eigen = smallest(2); mass = nothing; }
        problem saddle solves stokes { mesh = box(dim: 2, cells: 4); degree = 2; dirichlet u = [0, 0]; eigen = smallest(2); }";
    for problem in ["bad", "zero"] {
        let error = modes(negative, "plain", problem).expect_err("no mass");
        assert!(error.contains("the mass of `plain` is not positive definite"), "{error}");
    }
    let error = modes(negative, "stokes", "saddle").expect_err("a saddle point");
    assert!(error.contains("is a saddle point"), "{error}");
}

const BODIES: &str = "
    form plane {
        field u: vector; param E = 200e9; param nu = 0.3;
        let mu = E / (2 * (1 + nu)); let lambda = E * nu / (1 - nu^2); let eps = sym(grad(u));
        f1[u] = 2 * mu * eps + lambda * tr(eps) * I;
    }
    form otherwise {
        field u: vector; param E = 200e9; param nu = 0.3;
        let c = E / (1 - nu^2); let eps = sym(grad(u));
        f1[u] = c * ((1 - nu) * eps + nu * tr(eps) * I);
    }
    form solid {
        field u: vector; param E = 200e9; param nu = 0.3;
        let mu = E / (2 * (1 + nu)); let lambda = E * nu / ((1 + nu) * (1 - 2 * nu)); let eps = sym(grad(u));
        f1[u] = 2 * mu * eps + lambda * tr(eps) * I;
    }
    form inertia { field u: vector; param rho = 8000; f0[u] = rho * u; }
    problem cantilever solves plane {
        mesh = box(dim: 2, cells: [20, 1], to: [1, 0.01]); degree = 4; dirichlet u = [0, 0] on \"x0\";
        eigen = smallest(3); mass = inertia;
    }
    problem again solves otherwise {
        mesh = box(dim: 2, cells: [20, 1], to: [1, 0.01]); degree = 4; dirichlet u = [0, 0] on \"x0\";
        eigen = smallest(3); mass = inertia;
    }
    problem plate solves solid {
        mesh = box(dim: 3, cells: [4, 4, 1], to: [10, 10, 0.05]); degree = 3; eigen = smallest(11); mass = inertia;
    }";

/// `eigen` failed for slender and thin bodies.
#[test]
fn slender_and_thin_bodies_have_modes() {
    // By shift-and-invert of another code.
    let known = [2577.1167, 101119.207, 791603.208];
    for (form, problem) in [("plane", "cantilever"), ("otherwise", "again")] {
        let found = modes(BODIES, form, problem).expect("modes");
        agree(&values(&found), &known, 1e-6, problem);
        assert!(found.modes().iter().all(|mode| mode.residual < 1e-6), "{problem}");
    }
    // NAFEMS FV12, the free plate: closed-form solution of thin plates.
    let found = modes(BODIES, "solid", "plate").expect("modes");
    let hertz: Vec<f64> =
        values(&found).iter().map(|value| value.max(0.0).sqrt() / (2.0 * PI)).collect();
    assert!(hertz[..6].iter().all(|hertz| *hertz < 1e-2), "{hertz:?}");
    agree(&hertz[6..], &[1.622, 2.360, 2.922, 4.233, 4.233], 0.03, "plate");
}

const PART: &str = "
    form laplace { field u: scalar; f1[u] = grad(u); }
    form half { field u: scalar; f0[u] = (if x[0] < 0.5 { 1 } else { 0 }) * u; }
    problem coarse solves laplace {
        mesh = box(dim: 2, cells: [2, 1], to: [1, 0.1]); degree = 4; dirichlet u = 0 on \"x0\"; eigen = smallest(2); mass = half;
    }
    problem fine solves laplace {
        mesh = box(dim: 2, cells: [16, 2], to: [1, 0.1]); degree = 4; dirichlet u = 0 on \"x0\"; eigen = smallest(3); mass = half;
    }
    problem refused solves laplace {
        mesh = box(dim: 2, cells: [16, 2], to: [1, 0.1]); degree = 4; dirichlet u = 0 on \"x0\";
        eigen = smallest(3, preconditioner: jacobi); mass = half;
    }
    problem more solves laplace {
        mesh = box(dim: 2, cells: [2, 1]); degree = 1; dirichlet u = 0 on \"x0\"; eigen = smallest(4); mass = half;
    }";

/// A mass that vanishes in a part of the domain gave eigenvalues of ±1e47: the part without mass is condensed, and
/// rejected by name if that is impossible.
#[test]
fn a_mass_that_is_0_in_a_part_is_condensed() {
    // The part without mass follows the end of the other one.
    let known = [1.0, 9.0, 25.0].map(|of| of * PI * PI);
    for (problem, count, error) in [("coarse", 2, 1e-2), ("fine", 3, 1e-6)] {
        let found = modes(PART, "laplace", problem).expect("modes");
        agree(&values(&found), &known[..count], error, problem);
    }
    let error = modes(PART, "laplace", "refused").expect_err("no mass there");
    assert!(error.contains("the mass of `laplace` is 0 at (0.5"), "{error}");
    assert!(error.contains("preconditioner: direct"), "{error}");
    let found = modes(PART, "laplace", "more").expect("modes");
    assert_eq!(values(&found).len(), 2);
    let notes = found.notes().join("\n");
    assert!(notes.contains("there are no 4 modes, but 2: of 4 free unknowns"), "{notes}");
}

/// For any requested number, a threefold eigenvalue is found with its multiplicity.
#[test]
fn no_copy_of_an_eigenvalue_is_missed() {
    let text = "
        form laplace { field u: scalar; f1[u] = grad(u); }
        problem cube solves laplace { mesh = box(dim: 3, cells: 3); degree = 2; dirichlet u = 0; eigen = smallest(COUNT); }";
    let known = [3.0, 6.0, 6.0, 6.0, 9.0, 9.0, 9.0, 11.0, 11.0, 11.0].map(|of| of * PI * PI);
    for count in [2, 3, 4, 7, 10] {
        let text = text.replace("COUNT", &count.to_string());
        let found = modes(&text, "laplace", "cube").expect("modes");
        agree(&values(&found), &known[..count], 0.05, "cube");
    }
}

/// Modes at the initial state: 3 u² with u = 2 everywhere.
#[test]
fn a_nonlinear_form_has_modes_at_its_start() {
    let text = "
        form hard { field u: scalar; f1[u] = 5 * grad(u); f0[u] = u^3; }
        problem square solves hard { mesh = box(dim: 2, cells: 6); degree = 4; initial u = 2; eigen = smallest(3); }";
    let found = values(&modes(text, "hard", "square").expect("modes"));
    let known = [12.0, 12.0 + 5.0 * PI * PI, 12.0 + 5.0 * PI * PI];
    agree(&found, &known, 1e-5, "hard");
}

/// A series of parameters must start at the problem's initial state, not at the first mode of the previous solve.
#[test]
fn a_series_has_modes_at_the_start_of_the_problem() {
    use std::process::Command;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hard.wf");
    let text = "
        form hard { field u: scalar; param c = 5; f1[u] = c * grad(u); f0[u] = u^3; }
        problem square solves hard { mesh = box(dim: 2, cells: 2); degree = 2; initial u = 2; eigen = smallest(1); }";
    std::fs::write(&file, text).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
    let arguments = ["run", "--json", "--interpret", "--no-output", "--param", "c=5,10"];
    let output = command.args(arguments).arg(&file).output().expect("wf should start");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let first = lines.iter().filter_map(|line| line["eigenvalues"][0].as_f64());
    let first: Vec<f64> = first.collect();
    agree(&first, &[12.0, 12.0], 1e-8, "series");
}

/// A dry run names the solver of the modes, and its preconditioner.
#[test]
fn a_dry_run_predicts_the_solver_of_modes() {
    use std::process::Command;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("square.wf");
    let run = |named: &str, last: &str| -> serde_json::Value {
        let text = format!(
            "form laplace {{ field u: scalar; f1[u] = grad(u); }}
            problem square solves laplace {{ mesh = box(dim: 2, cells: 4); degree = 2; dirichlet u = 0; eigen = smallest(2{named}); }}"
        );
        std::fs::write(&file, text).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        let output = command.args(["run", "--json", "--interpret", last]).arg(&file).output();
        let output = output.expect("wf should start");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    for named in ["", "direct", "multigrid", "jacobi", "none"] {
        let argument = match named {
            "" => String::new(),
            word => format!(", preconditioner: {word}"),
        };
        let (plan, made) = (run(&argument, "--dry-run"), run(&argument, "--no-output"));
        assert_eq!(plan["plan"]["solver"], made["solver"], "{named}");
        let lobpcg = plan["plan"]["solver"] == "lobpcg";
        if lobpcg && !named.is_empty() {
            assert_eq!(plan["plan"]["preconditioner"], named);
        }
        assert!(lobpcg || matches!(named, "" | "direct"), "{named}: {plan}");
    }
}

#[test]
fn devices_find_the_same() {
    use std::process::Command;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("square.wf");
    let text = LAPLACE.replace("ARGUMENTS", "rtol: 1e-9").replace("CELL", "hex");
    std::fs::write(&file, text).expect("a file");
    let run = |backend: &str| -> Option<Vec<f64>> {
        let output = Command::new(env!("CARGO_BIN_EXE_wf"))
            .args(["run", "--json", "--problem", "square", "--backend", backend, "--output"])
            .arg(folder.path().join("square.vtu"))
            .arg(&file)
            .output()
            .expect("wf should start");
        if !output.status.success() {
            let said = [&output.stdout[..], &output.stderr[..]].concat();
            let said = String::from_utf8_lossy(&said).into_owned();
            let required = std::env::var("WF_REQUIRE").unwrap_or_default();
            assert!(!required.contains(backend) && backend != "cpu", "{said}");
            eprintln!("skipped: {said}");
            return None;
        }
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let modes = found["modes"].as_array().expect("modes");
        let values = found["eigenvalues"].as_array().expect("eigenvalues");
        assert_eq!((values.len(), modes.len()), (6, 6));
        let first = modes[0]["frequency"].as_f64().expect("a frequency");
        assert!((first - 0.5_f64.sqrt()).abs() < 1e-6, "{first}");
        Some(values.iter().map(|value| value.as_f64().expect("a number")).collect())
    };
    let Some(known) = run("cpu") else { return };
    let written = std::fs::read(folder.path().join("square.vtu")).expect("a file");
    for name in ["u_1", "u_6"] {
        let array = format!("Name=\"{name}\"");
        assert!(written.windows(array.len()).any(|at| at == array.as_bytes()), "{name}");
    }
    if let Some(found) = run("opencl") {
        agree(&found, &known, 1e-11, "opencl");
    }
}

#[test]
fn eigenvalues_stand_in_the_table_and_a_form_of_modes_is_verified() {
    use std::process::Command;
    let folder = tempfile::tempdir().expect("a folder");
    let (file, table) = (folder.path().join("a.wf"), folder.path().join("a.csv"));
    let text = "
        form laplace { field u: scalar; param c = 1; f1[u] = c * grad(u); }
        form heavy { field u: scalar; param rho = 2; f0[u] = rho * u; }
        problem square solves laplace {
            mesh = box(dim: 2, cells: 4); degree = 3; dirichlet u = 0; eigen = smallest(2); mass = heavy; param rho = 2;
            report square = integral(u^2);
        }";
    std::fs::write(&file, text).expect("a file");
    let wf = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wf"));
        let output = command.args(arguments).arg(&file).output().expect("wf should start");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        String::from_utf8(output.stdout).expect("text")
    };
    let report = table.to_str().expect("a path");
    let text = wf(&["run", "--no-output", "--param", "rho=2,4", "--report", report]);
    assert!(text.contains("√λ / 2π") && text.contains("square = 5.0"), "{text}");
    let rows = std::fs::read_to_string(&table).expect("a table");
    let rows: Vec<Vec<&str>> = rows.lines().map(|row| row.split(',').collect()).collect();
    assert_eq!(rows[0], ["rho", "eigenvalue_1", "eigenvalue_2", "square"]);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().expect("a number");
    assert!((number(1, 1) / number(2, 1) - 2.0).abs() < 1e-12, "{rows:?}");
    assert!((number(2, 3) - 0.25).abs() < 1e-9, "{rows:?}");
    let text = wf(&["verify", "--dofs", "400", "--interpret", "--no-kernels"]);
    assert!(text.contains("all of it holds"), "{text}");
}

/// Multigrid levels compute in single precision. A factor of the form scales eigenvalues, and changes neither digits
/// nor iterations.
#[test]
fn a_factor_of_the_form_does_not_change_what_levels_find() {
    let found = |factor: &str| {
        let text = format!(
            "form p {{ field u: scalar; f1[u] = {factor} * grad(u); }}
             problem q solves p {{
                 mesh = box(dim: 2, cells: 8); degree = 4; dirichlet u = 0; eigen = smallest(3, preconditioner: multigrid);
             }}"
        );
        let solved = modes(&text, "p", "q").unwrap_or_else(|error| panic!("{factor}: {error}"));
        let iterations = solved.inner().report.iterations;
        let size: f64 = factor.parse().expect("a number");
        let values: Vec<f64> = values(&solved).into_iter().map(|value| value / size).collect();
        agree(&values, &[2.0, 5.0, 5.0].map(|of| of * PI * PI), 1e-8, factor);
        (iterations, solved.inner().notes.join("\n"))
    };
    let (usual, _) = found("1");
    for factor in ["1e-38", "1e-30", "1e13", "1e30", "1e37"] {
        let (iterations, notes) = found(factor);
        assert!(iterations <= usual + 1, "{factor}: {iterations} for {usual} iterations");
        assert!(!notes.contains("no multigrid"), "{factor}: {notes}");
    }
    // Single precision cannot represent numbers of this size, or only with few digits.
    for factor in ["1e-44", "1e-40"] {
        let (_, notes) = found(factor);
        assert!(notes.contains("no multigrid") && notes.contains("single precision"), "{notes}");
    }
}
