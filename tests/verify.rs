//! `wf verify`: correct forms pass, on every kind of cell and in each notation, and incorrect ones are detected.

use std::path::Path;
use std::process::Command;

use fem_dsl::check::problem::Overrides;
use fem_dsl::program::{Program, compile_with};
use fem_dsl::source::Source;
use runtime::kernels::compile::Execution;
use serde_json::Value;
use weakform::Cell;
use weakform::verify::{Settings, Verdict, Verification, problems, verify};

fn program(text: &str) -> Program {
    let overrides = Overrides { tagged: true, ..Overrides::default() };
    let (program, found) = compile_with(&Source::new("forms", text), None, &overrides);
    assert!(found.iter().all(|found| !found.is_error()), "{found:?}");
    program.expect("a program")
}

/// Returns settings for small meshes that still show the orders, with interpreted kernels: compilers take longer than
/// these problems.
fn small(degrees: &[usize], cell: Option<Cell>) -> Settings {
    let (degrees, execution) = (degrees.to_vec(), Execution::Interpreted);
    Settings { degrees, cell, dofs: 1500, execution, ..Settings::default() }
}

fn verified(program: &Program, name: &str, settings: &Settings) -> Verification {
    let mut last = 0.0;
    let mut observe = |progress: weakform::verify::Progress| {
        assert!((last..=1.0).contains(&progress.done), "{progress:?} after {last}");
        last = progress.done;
    };
    let overrides = Overrides::default();
    let found = verify(program, name, &overrides, Path::new(""), settings, &mut observe);
    found.unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Asserts that forms without problems pass: each is verified on a box of these cells.
fn holds(text: &str, cell: Cell, degrees: &[usize], kernels: bool) {
    let (names, added) = problems(&program(text), Some(cell));
    assert!(!names.is_empty());
    let program = program(&format!("{text}\n{added}"));
    for name in &names {
        let settings = Settings { kernels, ..small(degrees, None) };
        let found = verified(&program, name, &settings);
        assert_eq!(found.failures(), Vec::<String>::new(), "{name}");
        assert_eq!((found.cell, found.picked), (cell, true));
        for degree in &found.degrees {
            let findings = degree.outcome.as_ref().expect("a degree that is possible");
            assert!(findings.levels.len() >= 3 && findings.taylor.is_some(), "{name}");
            assert_eq!(findings.orders.len(), found.fields.len());
            let compared = |verdict: &Verdict| matches!(verdict, Verdict::Compared(_));
            let count = findings.kernels.iter().filter(|one| compared(&one.verdict)).count();
            assert_eq!(count >= 3, kernels, "{name}: {:?}", findings.kernels);
        }
    }
}

#[test]
fn forms_of_all_ways_hold_on_quadrilaterals() {
    holds(
        "form pointwise { field u: scalar; aux q: scalar; f0[u] = q * u^3; f1[u] = (1 + u^2) * grad(u); }
         form weak {
             field u: vector; test v for u; aux mu: scalar on cells;
             residual = 2 * mu * inner(sym(grad(u)), sym(grad(v))) + div(u) * div(v);
         }
         form least {
             field u: vector; param mu = 1; param lambda = 10;
             let F = I + grad(u); let J = det(F);
             energy = mu / 2 * (inner(F, F) - dim - 2 * log(J)) + lambda / 2 * log(J)^2;
         }",
        Cell::Quadrilateral,
        &[1, 2],
        true,
    );
}

/// The same with compiled kernels, which are compared separately.
#[test]
fn compiled_kernels_hold() {
    let text = "form soil {
        field u: scalar; field q: vector in L2(k - 1); aux kappa: scalar on nodes in L2(k);
        f1[u] = -q; f0[u] = 1 + u^3; f0[q] = q / kappa - grad(u);
        on boundary \"y1\" { f0[u] = u^3; }
    }";
    let (names, added) = problems(&program(text), Some(Cell::Tetrahedron));
    let program = program(&format!("{text}\n{added}"));
    let settings = Settings { execution: Execution::default(), ..small(&[1], None) };
    let found = verified(&program, &names[0], &settings);
    assert_eq!(found.failures(), Vec::<String>::new());
    let findings = found.degrees[0].outcome.as_ref().expect("degree 1");
    let compared = |verdict: &Verdict| matches!(verdict, Verdict::Compared(_));
    assert!(findings.kernels.iter().filter(|one| compared(&one.verdict)).count() >= 3);
}

#[test]
fn forms_hold_on_simplices_and_hexahedra() {
    let text = "form wind { field u: scalar; param c = 2; f0[u] = c * grad(u)[0] + u; f1[u] = 0.2 * grad(u); }";
    holds(text, Cell::Triangle, &[1, 3], false);
    holds(text, Cell::Tetrahedron, &[2], true);
    holds(text, Cell::Hexahedron, &[2], false);
}

/// Discontinuous fields, at degree 1 including cellwise constant ones, for which only the order in L2 is meaningful.
#[test]
fn discontinuous_fields_hold() {
    let text = "
        form projection { field u: vector in L2(k); f0[u] = 2 * u - x; }
        form darcy {
            field u: scalar; field q: vector in L2(k - 1); aux kappa: scalar on nodes in L2(k);
            f1[u] = -q; f0[u] = 1; f0[q] = q / kappa - grad(u);
            on boundary \"y1\" { f0[u] = u^3; }
        }
        form reaction {
            field c: scalar in L2(k); field s: scalar;
            f0[c] = c^3 + c - s; f0[s] = s - c; f1[s] = grad(s);
        }";
    holds(text, Cell::Triangle, &[1, 2], true);
    holds(text, Cell::Quadrilateral, &[1, 3], true);
    holds(text, Cell::Tetrahedron, &[1], false);
    holds(text, Cell::Hexahedron, &[1, 2], false);
}

#[test]
fn several_fields_and_boundary_terms_hold() {
    let text = "
        form stokes {
            field u: vector in H1(k); field p: scalar in H1(k - 1); param nu = 1;
            f1[u] = nu * grad(u) - p * I; f0[p] = -div(u);
        }
        form pair {
            field a: scalar; field b: scalar;
            f0[a] = a * b; f1[a] = grad(a); f0[b] = a - b; f1[b] = (1 + a^2) * grad(b);
        }
        form radiation {
            field T: scalar; f1[T] = (1 + T) * grad(T);
            on boundary \"hot\" { f0[T] = 0.5 * (T^4 - 0.1) + n[0] * x[1]; }
            on boundary \"y0\" { test v for T; residual = 0.3 * T * v; }
        }";
    holds(text, Cell::Quadrilateral, &[2], false);
    holds(text, Cell::Triangle, &[2], false);
}

#[test]
fn a_part_of_the_boundary_may_be_free() {
    let program = program(
        "form f { field u: vector; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; }
         problem bar solves f {
             mesh = box(dim: 2, cells: 2, deform: 0.1); dirichlet u = [0, 0] on \"x0\"; dirichlet u[1] = 0 on \"y1\";
         }
         problem disc solves f { mesh = shell(dim: 2, inner: 1, outer: 2); dirichlet u = [0, 0] on \"inner\"; }",
    );
    for name in ["bar", "disc"] {
        let found = verified(&program, name, &Settings { kernels: false, ..small(&[1, 3], None) });
        assert_eq!(found.failures(), Vec::<String>::new(), "{name}");
    }
}

/// Verifies a flow whose pressure, and a field that, is determined up to a constant.
fn free_up_to_a_constant(name: &str, cell: Option<Cell>) {
    let program = program(
        "form stokes {
             field u: vector in H1(k); field p: scalar in H1(k - 1);
             f1[u] = grad(u) - p * I; f0[p] = -div(u);
         }
         form plain { field u: scalar; f1[u] = grad(u); }
         problem closed solves stokes {
             mesh = box(dim: 2, cells: 8); degree = 2; dirichlet u = [0, 0]; mean p = 0;
         }
         problem free solves plain { mesh = box(dim: 2, cells: 8, cell: tri); mean u = 3; }",
    );
    let settings = Settings { kernels: false, dofs: 600, ..small(&[2], cell) };
    let found = verified(&program, name, &settings);
    assert_eq!(found.failures(), Vec::<String>::new(), "{name}");
}

#[test]
fn fields_that_are_free_up_to_a_constant_hold() {
    free_up_to_a_constant("closed", None);
    free_up_to_a_constant("free", None);
}

#[test]
fn a_pressure_that_is_free_up_to_a_constant_holds_on_hexahedra() {
    free_up_to_a_constant("closed", Some(Cell::Hexahedron));
}

#[test]
fn a_solution_where_the_form_is_not_finite_is_not_taken() {
    // Defined between 0 and 1 only.
    let text = "form phase { field u: scalar; f0[u] = log(u) - log(1 - u); f1[u] = grad(u); }";
    holds(text, Cell::Quadrilateral, &[2], false);
    let never = "form never { field u: scalar; f0[u] = log(-1 - u^2); f1[u] = grad(u); }";
    let (names, added) = problems(&program(never), None);
    let program = program(&format!("{never}\n{added}"));
    let settings = small(&[1], None);
    let (overrides, folder) = (Overrides::default(), Path::new(""));
    let error = verify(&program, &names[0], &overrides, folder, &settings, &mut |_| {});
    let error = error.expect_err("nowhere finite").to_string();
    assert!(error.contains("--solution"), "{error}");
}

#[test]
fn meshes_are_refined_whatever_makes_them() {
    let program = program(
        "form f { field u: scalar; f1[u] = grad(u); }
         problem ball solves f { mesh = ball(dim: 2, refine: 4, order: 2); dirichlet u = 0; }
         problem ring solves f { mesh = shell(dim: 2, inner: 1, outer: 2, refine: 1); dirichlet u = 0; }
         problem corner solves f { mesh = lshape(dim: 2, cell: tri); dirichlet u = 1; }
         problem brick solves f { mesh = box(dim: 2, cells: [16, 4], to: [4, 1]); dirichlet u = 1; }",
    );
    for name in ["ball", "ring", "corner", "brick"] {
        let found = verified(&program, name, &Settings { kernels: false, ..small(&[2], None) });
        assert_eq!(found.failures(), Vec::<String>::new(), "{name}");
        let findings = found.degrees[0].outcome.as_ref().expect("degree 2");
        let cells: Vec<usize> = findings.levels.iter().map(|level| level.cells).collect();
        assert!(cells.windows(2).all(|pair| pair[1] == 4 * pair[0]), "{name}: {cells:?}");
        assert!(found.notes.is_empty());
    }
    let settings = Settings { cell: Some(Cell::Hexahedron), ..small(&[1], None) };
    let found = verified(&program, "corner", &settings);
    assert_eq!((found.cell, found.failures().len()), (Cell::Hexahedron, 0));
}

#[test]
fn what_does_not_hold_is_found() {
    let program = program(
        "form plain { field u: scalar; f1[u] = grad(u); }
         form switch { field u: scalar; f0[u] = if u > 1.3 { u } else { 0 }; f1[u] = grad(u); }
         form wave { field u: scalar; f0[u] = -50 * u; f1[u] = grad(u); }
         problem kink solves plain {
             mesh = box(dim: 2, cells: 2); manufactured u = abs(x[0] - 0.4) + x[1]^2; dirichlet u;
         }
         problem edge solves plain {
             mesh = box(dim: 2, cells: 2); manufactured u = (x[0]^2 + x[1]^2 + 0.0001)^0.25; dirichlet u;
         }
         problem jumps solves switch { mesh = box(dim: 2, cells: 2); dirichlet u = 0; }
         problem waves solves wave { mesh = box(dim: 2, cells: 2); dirichlet u = 0; solver = cg(); }",
    );
    let failures = |name: &str, degree: usize| {
        let settings = Settings { kernels: false, ..small(&[degree], None) };
        verified(&program, name, &settings).failures().join("\n")
    };
    // The source lacks the surface term on the kink: another problem is solved.
    let said = failures("kink", 1);
    assert!(said.contains("in L2, not 2") && said.contains("in H1, not 1"), "{said}");
    let said = failures("edge", 3);
    assert!(said.contains("in L2, not 4"), "{said}");
    let said = failures("jumps", 1);
    assert!(said.contains("Taylor") || said.contains("R(u + w)"), "{said}");
    let said = failures("waves", 2);
    assert!(said.contains("positive definite"), "{said}");
}

/// Newton's method stalls where a flux between cells amplifies jumps. It ends after a few steps, and says on which mesh.
#[test]
fn a_solve_that_stalls_ends() {
    let text = "form burgers {
        field u: scalar in L2(k); let b = [1, 0.5];
        f0[u] = u; f1[u] = -u^2 / 2 * b;
        on interior {
            let s = dot(b, n);
            f0[jump(u)] = s * avg(u^2) / 2 - max(abs(inside(u) * s), abs(outside(u) * s)) / 2 * jump(u);
        }
        on boundary \"x0\", \"x1\", \"y0\", \"y1\" { f0[u] = u^2 / 2 * dot(b, n); }
    }";
    let (names, added) = problems(&program(text), Some(Cell::Quadrilateral));
    let program = program(&format!("{text}\n{added}"));
    let found = verified(&program, &names[0], &Settings { kernels: false, ..small(&[1], None) });
    let said = found.failures().join("\n");
    assert!(said.contains("cells the solve fails: newton stagnated after 1"), "{said}");
}

/// Runs `wf verify`: returns its exit code, and its output.
fn wf(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("verify")
        .args(arguments)
        .output()
        .expect("wf should start");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_command_line_has_a_table_a_picture_and_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("errors.svg");
    let path = picture.to_str().expect("UTF-8");
    let common = ["examples/nonlinear.wf", "--degree", "2", "--dofs", "1500", "--interpret"];
    let (code, out, said) = wf(&[&common[..], &["--plot", path, "--no-kernels"]].concat());
    assert_eq!(code, Some(0), "{out}{said}");
    for part in
        ["expected", "Taylor remainder of order 2.", "boxes of quad cells", "all of it holds"]
    {
        assert!(out.contains(part), "no `{part}` in {out}");
    }
    let picture = std::fs::read_to_string(picture).expect("a picture");
    assert!(picture.contains("u, k = 2") && picture.contains("error in H1"));

    let (code, out, said) = wf(&[&common[..], &["--json", "--backend", "cpu"]].concat());
    assert_eq!(code, Some(0), "{said}");
    let value: Value = serde_json::from_str(out.trim()).expect("one line of JSON");
    assert_eq!((&value["holds"], &value["cell"]), (&Value::from(true), &Value::from("quad")));
    let degree = &value["degrees"][0];
    assert!(degree["orders"][0]["l2"]["observed"].as_f64().is_some_and(|order| order > 2.8));
    assert_eq!(degree["levels"].as_array().map(Vec::len), Some(3));
    assert!(degree["kernels"].as_array().is_some_and(|kernels| kernels.len() >= 5), "{degree}");
}

#[test]
fn the_exit_status_says_whether_it_holds() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("forms.wf");
    std::fs::write(&file, "form f { field u: scalar; f1[u] = grad(u); }").expect("a file");
    let file = file.to_str().expect("UTF-8");
    let common = [file, "--degree", "1", "--dofs", "400", "--interpret", "--no-kernels"];
    let run = |more: &[&str]| wf(&[&common[..], more].concat());
    let (code, out, said) = run(&["--cell", "tri", "--cell", "hex"]);
    assert_eq!(code, Some(0), "{out}{said}");
    assert!(out.contains("verify_f (f), tri cells") && out.contains("hex cells"), "{out}");
    let (code, out, said) = run(&["--solution", "u=abs(x[0] - 0.4)"]);
    assert_eq!(code, Some(1));
    assert!(out.contains("DOES NOT HOLD") && said.contains("`u` converges"), "{out}{said}");
    let (code, out, _) = run(&["--solution", "u=abs(x[0] - 0.4)", "--json"]);
    let first = out.lines().next().expect("a line");
    let value: Value = serde_json::from_str(first).expect("JSON");
    assert_eq!((code, &value["holds"]), (Some(1), &Value::from(false)));
    // Mistakes are underlined at their location.
    let (code, _, said) = run(&["--solution", "u=sin(y)"]);
    assert!(code == Some(1) && said.contains("--solution") && said.contains("E0201"), "{said}");
    let (code, _, said) = run(&["--solution", "v=1"]);
    assert!(code == Some(1) && said.contains("E0408"), "{said}");
    assert_eq!(run(&["--levels", "1"]).0, Some(2));
    let (code, out, _) = run(&["--interpret", "--degree", "5"]);
    assert_eq!(code, Some(2), "{out}");
}

#[test]
fn degrees_that_a_cell_does_not_have_are_left_out() {
    let text = "form f { field u: scalar; f1[u] = grad(u); }
        problem p solves f { mesh = box(dim: 2, cells: 2, cell: tri); dirichlet u = 0; }";
    let settings =
        Settings { execution: Execution::Interpreted, kernels: false, ..small(&[4, 5], None) };
    let found = verified(&program(text), "p", &settings);
    assert!(found.degrees[0].outcome.is_ok() && found.failures().is_empty());
    let reason = found.degrees[1].outcome.as_ref().expect_err("no degree 5 on triangles");
    assert!(reason.contains('5'), "{reason}");
    let settings = Settings { degrees: vec![5], ..settings };
    assert_eq!(verified(&program(text), "p", &settings).failures(), ["no degree is possible"]);
}

/// Blocks on every side leave no side for a condition.
#[test]
fn forms_with_boundary_blocks_all_around_are_verified() {
    let robin = "form p { field u: scalar; f0[u] = u; f1[u] = grad(u); \
                 on boundary \"x0\", \"x1\", \"y0\", \"y1\" { f0[u] = u; } }";
    holds(robin, Cell::Quadrilateral, &[1], false);
    let whole =
        format!("{robin} problem q solves p {{ mesh = box(dim: 2, cells: 2); degree = 1; }}");
    let found = verified(&program(&whole), "q", &small(&[1], None));
    assert_eq!(found.failures(), Vec::<String>::new());
}

/// Orders are meaningless if the source of a solution lacks the surface term of a jump.
#[test]
fn fluxes_that_jump_are_refused_and_not_said_to_fail() {
    let text = "form p { field u: scalar; let a = if x[0] < 0.5 { 1 } else { 3 }; f1[u] = a * grad(u); }\n\
                problem q solves p { mesh = box(dim: 2, cells: 2); degree = 1; dirichlet u = 0; }";
    let program = program(text);
    let settings = small(&[1], None);
    let found = verify(&program, "q", &Overrides::default(), Path::new(""), &settings, &mut |_| ());
    let error = found.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("the flux of `u` jumps inside the domain"), "{error}");
    assert!(error.contains("E0414") && error.contains("forms:1:"), "{error}");
}

#[test]
fn forms_with_time_derivatives_hold_at_an_instant_and_through_time() {
    let text = "form heat { field u: scalar; f0[u] = 2 * dt(u); f1[u] = grad(u); }\n\
                form wave { field u: scalar; f0[u] = dt(dt(u)) + 0.1 * dt(u); f1[u] = grad(u); }\n\
                form growth { field u: scalar; field w: scalar; f0[u] = dt(u) + u * w; f1[u] = grad(u); \
                f0[w] = w - u; f1[w] = 0.1 * grad(w); }";
    let (names, added) = problems(&program(text), Some(Cell::Quadrilateral));
    let program = program(&format!("{text}\n{added}"));
    let mut schemes = Vec::new();
    for name in &names {
        let found = verified(&program, name, &Settings { kernels: true, ..small(&[1], None) });
        assert_eq!(found.failures(), Vec::<String>::new(), "{name}");
        let findings = found.degrees[0].outcome.as_ref().expect("degree 1");
        for one in &findings.time {
            // Schemes with stages assert no order for a field without a time derivative.
            let seen = one.orders.iter().all(|order| order.observed.is_some());
            assert!(seen, "{name}: {one:?}");
        }
        schemes.push(findings.time.iter().map(|one| one.scheme.clone()).collect::<Vec<_>>());
    }
    let first = [
        "bdf(order: 1)",
        "bdf(order: 2)",
        "bdf(order: 3)",
        "theta(theta: 0.5)",
        "sdirk(stages: 2)",
    ];
    let second = ["newmark()", "generalised_alpha(rho: 0.8)"];
    assert_eq!(schemes, [first.to_vec(), [&first[..], &second[..]].concat(), first.to_vec()]);
}

/// Terms between cells: interior penalty with Nitsche's terms, and transport with upwind fluxes.
#[test]
fn terms_between_cells_hold() {
    let text = "
        form sipg {
            field u: scalar in L2(k); aux kappa: scalar; let q = kappa * grad(u); param eta = 2;
            f0[u] = u^3; f1[u] = q;
            on interior { energy = eta * avg(kappa * penalty(u)) / 2 * jump(u)^2 - dot(avg(q), n) * jump(u); }
            on boundary \"x0\", \"y1\" { energy = eta * kappa * penalty(u) / 2 * u^2 - dot(q, n) * u; }
        }
        form upwind {
            field c: vector in L2(k); let b = 1 + x[0];
            f0[c] = 2 * c; f1[c] = -outer(c, [b, 0.5]);
            on interior {
                let s = dot([1 + x[0], 0.5], n);
                f0[jump(c)] = s * avg(c) + abs(s) / 2 * jump(c);
            }
            on boundary \"x0\", \"x1\", \"y0\", \"y1\" { f0[c] = max(dot([1 + x[0], 0.5], n), 0) * c; }
        }";
    holds(text, Cell::Quadrilateral, &[1, 2], true);
    holds(text, Cell::Triangle, &[1, 2], true);
}

#[test]
fn parts_of_a_problem_that_are_not_verified_are_noted() {
    let program = program(
        "form bratu { field u: scalar; param lambda = 5; f0[u] = -lambda * exp(u); f1[u] = grad(u); }
         problem fuel solves bratu { mesh = box(dim: 2, cells: 4); dirichlet u = 0;
            solver = newton(path: arc_length, load: lambda, crossing: 2); }
         form plastic { field u: scalar; state p: vector on points = 0;
            let trial = 100 * (grad(u) - p);
            let q = norm(trial);
            let ratio = if q > 1 { (q - 1) / 110 / q } else { 0 };
            update p = p + ratio * trial;
            f1[u] = (1 - 100 * ratio) * trial; }
         problem bar solves plastic { mesh = box(dim: 2, cells: 4); dirichlet u = t * x[0];
            time = theta(theta: 1, to: 1, step: 0.1); }
         form block { field u: vector; f1[u] = 2 * sym(grad(u)) + tr(grad(u)) * I; f0[u] = [0, 1]; }
         problem resting solves block { mesh = box(dim: 2, cells: 4); dirichlet u[0] = 0 on \"x0\";
            bound u[1] >= 0 on \"y0\"; report force = multiplier(u)[1]; }",
    );
    for (name, note, orders) in [
        ("fuel", "the path by arc length is not verified", true),
        ("bar", "orders of convergence are not verified", false),
        ("resting", "", true),
    ] {
        let found = verified(&program, name, &Settings { kernels: false, ..small(&[1], None) });
        assert_eq!(found.failures(), Vec::<String>::new(), "{name}");
        let is_noted = note.is_empty() || found.notes.iter().any(|own| own.contains(note));
        assert!(is_noted, "{name}: {:?}", found.notes);
        let findings = found.degrees[0].outcome.as_ref().expect("a degree that is possible");
        assert_eq!(findings.levels.len() >= 3, orders, "{name}");
        assert!(findings.taylor.is_some() && findings.time.is_empty(), "{name}");
    }
}
