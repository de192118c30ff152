//! The examples solved on devices, in comparison with the CPU's solutions: the same iterations to the same tolerance.

use super::devices;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use devices::devices;
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::kernels::compile::Target;
use runtime::mesh::load;
use runtime::problem::{
    self, Context, EvaluationState, NullMonitor, Platform, ReportCache, ReportResult, ReportValue,
    Solution, report, run_steps,
};
use runtime::solve::Continue;
use serde_json::Value;

/// A file, its problem, and its overrides: a mesh, a degree, a solver's text instead of the example's end.
struct Case {
    file: &'static str,
    problem: &'static str,
    mesh: Option<&'static str>,
    degree: Option<&'static str>,
    solver: &'static str,
}

/// The default on devices, and on CPUs only if a factorisation would take too long.
const CG: &str = "solver = cg();";

const CASES: [Case; 11] = [
    case("poisson.wf", "ball", Some("ball(dim: 3, refine: 2)"), Some("1"), CG),
    case("poisson.wf", "ball", Some("ball(dim: 3, refine: 2, order: 2)"), Some("2"), CG),
    case("poisson.wf", "ball", Some("ball(dim: 3, refine: 1)"), Some("3"), CG),
    case("poisson.wf", "ball", Some("ball(dim: 3, refine: 1)"), Some("4"), CG),
    case(
        "poisson.wf",
        "ball",
        Some("ball(dim: 3, refine: 2)"),
        Some("1"),
        "solver = gmres(restart: 20);",
    ),
    case("poisson.wf", "ball", Some("ball(dim: 2, refine: 2)"), Some("3"), "solver = minres();"),
    case("poisson.wf", "ball", Some("ball(dim: 2, refine: 2)"), Some("3"), "solver = direct();"),
    case("nonlinear.wf", "plate", None, None, "solver = newton(steps: 3, linear: direct);"),
    case("elasticity.wf", "bracket", None, None, CG),
    case("elasticity.wf", "bracket_curved", None, None, CG),
    case("nonlinear.wf", "plate", None, None, "solver = newton(linear: gmres);"),
];

const fn case(
    file: &'static str,
    problem: &'static str,
    mesh: Option<&'static str>,
    degree: Option<&'static str>,
    solver: &'static str,
) -> Case {
    Case { file, problem, mesh, degree, solver }
}

fn solve(case: &Case, device: Option<Arc<dyn Device>>) -> Solution {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut text = std::fs::read_to_string(folder.join(case.file)).expect("an example");
    if !case.solver.is_empty() {
        let end = text.rfind('}').expect("a problem");
        text.insert_str(end, &format!("    {}\n", case.solver));
    }
    let (program, diagnostics) = compile(&Source::new(case.file, text));
    assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:?}");
    let program = program.expect("a program");
    let overrides = Overrides {
        mesh: case.mesh.map(str::to_owned),
        degree: case.degree.map(str::to_owned),
        ..Overrides::default()
    };
    let (mesh, _) = program.mesh(case.problem, &overrides).expect("a mesh");
    let mesh = load(&mesh, &folder).expect("a mesh");
    let problem = program.problem(case.problem, mesh.dim(), &overrides).expect("a problem");
    let platform = Platform::new(Target::native(), device);
    let solution = problem::run(&problem, mesh, &platform, &mut |_| Continue::Yes);
    solution.unwrap_or_else(|error| panic!("{} of {}: {error}", case.problem, case.file))
}

#[test]
fn solutions_are_the_processors() {
    let devices = devices();
    if devices.is_empty() {
        return;
    }
    for case in &CASES {
        let wanted = solve(case, None);
        for device in &devices {
            let found = solve(case, Some(Arc::clone(device)));
            let name = format!("{} of {} on {device:?}", case.problem, case.file);
            assert_eq!(found.kernels.device.as_deref(), Some(device.name().as_str()), "{name}");
            assert_eq!(found.report.solver, wanted.report.solver, "{name}");
            // Different rounding may change the number of iterations by one.
            let (a, b) = (found.linear_iterations as f64, wanted.linear_iterations as f64);
            assert!((a - b).abs() <= 2.0 + 0.05 * b, "{name}: {a} and {b} iterations");
            let largest = wanted.u.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            let worst = found.u.iter().zip(&wanted.u).map(|(a, b)| (a - b).abs());
            let worst = worst.fold(0.0, f64::max);
            // The solvers' tolerance is 1e-10 of the residual.
            assert!(worst < 1e-8 * largest && largest > 0.0, "{name}: {worst:e} of {largest}");
            for ((_, l2, _), (_, wanted, _)) in found.errors.iter().zip(&wanted.errors) {
                assert!((l2 - wanted).abs() < 1e-8 * largest, "{name}: {l2:e} and {wanted:e}");
            }
            if let (Some(energy), Some(wanted)) = (found.energy, wanted.energy) {
                assert!((energy - wanted).abs() < 1e-8 * wanted.abs(), "{name}: {energy}");
            }
        }
    }
}

/// Time-dependent problems: by an explicit scheme with a diagonal mass matrix and one that is not, by a multistep
/// scheme, with second derivatives, and with a stored factorisation. Two have identical steps, which are recorded on
/// devices that support it.
const THROUGH_TIME: [&str; 6] = [
    "form wave { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
     problem p solves wave { mesh = box(dim: 3, cells: 3, deform: 0.1); degree = 3; quadrature = collocated;
     initial u = exp(-4 * dot(x, x)); dirichlet u = sin(t) on \"x0\"; time = leapfrog(to: 0.2, step: 0.01, at: [0.1, 0.2]);
     report size = l2(u); report speed = l2(dt(u)); }",
    "form string { field u: scalar; f0[u] = dt(dt(u)); f1[u] = grad(u); }
     problem p solves string { mesh = box(dim: 2, cells: 3); degree = 3; quadrature = collocated;
     initial u = x[0] * (1 - x[0]); dirichlet u = 0 on \"x0\", \"x1\"; time = leapfrog(to: 0.9, step: 0.01, at: [0.45, 0.9]);
     report size = l2(u); report speed = l2(dt(u)); }",
    "form decay { field u: scalar; f0[u] = dt(u) + u^3; f1[u] = 0.01 * grad(u); }
     problem p solves decay { mesh = box(dim: 2, cells: 3); degree = 2; quadrature = collocated; initial u = 1 + x[0];
     dirichlet u = 1 on \"x0\"; time = rk(order: 4, to: 0.5, step: 0.01, at: [0.21, 0.5]); report size = l2(u); report speed = l2(dt(u)); }",
    "form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }
     problem p solves heat { mesh = box(cell: tri, dim: 2, cells: 4); degree = 2; initial u = x[0];
     dirichlet u = t on \"x0\"; time = rk(order: 3, mass: consistent, to: 0.004, step: 0.0005); report size = l2(u); }",
    "form shaken { field u: vector; f0[u] = dt(dt(u)) + 0.1 * dt(u); f1[u] = sym(grad(u)); }
     problem p solves shaken { mesh = box(dim: 2, cells: 4); degree = 2; initial dt(u) = [0, x[0]];
     dirichlet u = 0 * x on \"x0\"; solver = cg(rtol: 1e-12); time = generalised_alpha(to: 0.5, step: 0.05);
     report size = l2(u); report speed = l2(dt(u)); }",
    "form swirl { field u: vector in H1(k); field p: scalar in H1(k - 1);
     f0[u] = dt(u) + grad(u) * u; f1[u] = 0.01 * grad(u) - p * I; f0[p] = -div(u); }
     problem p solves swirl { mesh = box(dim: 2, cells: 4); degree = 2; dirichlet u = [sin(3 * t), 0] on \"y1\";
     dirichlet u = [0, 0] on \"y0\", \"x0\"; solver = newton(linear: direct, rtol: 1e-12);
     time = bdf(order: 2, to: 0.5, step: 0.05); report size = l2(u); report pressure = integral(p); }",
];

#[test]
fn steps_through_time_are_those_of_the_processor() {
    for text in THROUGH_TIME {
        let (program, found) = compile(&Source::new("time", text));
        let program = program.unwrap_or_else(|| panic!("{found:?}"));
        let (mesh, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
        let mesh = Arc::new(load(&mesh, Path::new("")).expect("a mesh"));
        let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("a problem");
        let numbers = |device: Option<Arc<dyn Device>>| -> Vec<f64> {
            let (mesh, platform) = (Arc::clone(&mesh), Platform::new(Target::native(), device));
            let done = run_steps(&problem, mesh, None, &platform, &mut NullMonitor);
            let solution = done.unwrap_or_else(|error| panic!("{error}\n{text}"));
            solution.reports.iter().filter_map(|report| report.value.number()).collect()
        };
        let wanted = numbers(None);
        for device in devices() {
            let found = numbers(Some(Arc::clone(&device)));
            assert_eq!(found.len(), wanted.len());
            for (found, wanted) in found.iter().zip(&wanted) {
                let near = (found - wanted).abs() < 1e-8 * wanted.abs() && *wanted != 0.0;
                assert!(near, "{device:?}: {found} is not {wanted}\n{text}");
            }
        }
    }
}

const MEASURED: &str = "form f { field u: scalar; aux a: scalar on nodes; f0[u] = a * u; f1[u] = grad(u); }
problem p solves f { mesh = box(dim: 3, cells: 4, deform: 0.1); degree = 3; aux a = 1 + x[0]; dirichlet u = 0 on \"x0\";
    report size = integral(a * u^2); report up = integral(x[0] * u); report held = reaction(u, on: \"x0\"); }";

/// Functionals read the vector of the solve, with its tables and numbering, or another one of the same entries.
#[test]
fn what_is_measured_takes_tables_from_the_solve() {
    let (program, _) = compile(&Source::new("measured", MEASURED));
    let program = program.expect("a program");
    let (mesh, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
    let mesh = load(&mesh, Path::new("")).expect("a mesh");
    let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("a problem");
    let context = Context::new(problem, mesh, Platform::native()).expect("a problem");
    let u: Vec<f64> = (0..context.on.n_dofs()).map(|i| 1.0 + (i as f64 * 12.9898).sin()).collect();
    let alone = EvaluationState::of(&context, &u);
    let numbers =
        |of: EvaluationState<'_>, device: Option<&Arc<dyn Device>>, cache: &mut ReportCache| {
            let platform = Platform::new(Target::native(), device.cloned());
            let found = report(&context.problem.reports, of, &platform, cache);
            let (found, _) = found.unwrap_or_else(|error| panic!("{device:?}: {error}"));
            let number = |found: &ReportResult| match &found.value {
                ReportValue::Value(_, values) => values[0],
                ReportValue::Line(..) => f64::NAN,
            };
            found.iter().map(number).collect::<Vec<f64>>()
        };
    let wanted = numbers(alone, None, &mut ReportCache::default());
    for device in devices() {
        let platform = Platform::new(Target::native(), Some(device.clone()));
        let (operator, _) = context.operator_on(&platform).expect("an operator");
        let (mut vector, mut cache) = (operator.vector(), ReportCache::new(operator.table_cache()));
        vector.set(&u);
        let beside = EvaluationState { vector: Some(&vector), ..alone };
        let first = numbers(beside, Some(&device), &mut cache);
        let tables = cache.tables.tables();
        let again = numbers(beside, Some(&device), &mut cache);
        // Kernels are kept with their tables.
        assert_eq!(cache.tables.tables(), tables, "{device:?}");
        let other = numbers(alone, Some(&device), &mut ReportCache::default());
        for found in [first, again, other] {
            for (found, wanted) in found.iter().zip(&wanted) {
                assert!(
                    (found - wanted).abs() < 1e-12 * wanted.abs().max(1.0),
                    "{device:?}: {found}"
                );
            }
        }
    }
}

/// Runs `wf run` on an example.
fn wf(arguments: &[&str]) -> (bool, String, String) {
    run(&[&["run", "examples/nonlinear.wf", "--no-output"], arguments].concat())
}

/// Runs `wf`: returns whether it succeeded, and its output.
fn run(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_wf"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .output()
        .expect("wf should start");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn devices_make_the_predicted_levels() {
    for device in devices() {
        // OpenCL on processors takes long to compile.
        let degrees =
            if device.backend().word() == "opencl" { vec![2, 5] } else { (1..=8).collect() };
        crate::levels::assert_predicted(degrees, |folder, arguments| {
            let file = folder.join(arguments[0]);
            let (backend, file) = (device.backend().word(), file.to_str().expect("UTF-8"));
            let own = ["--backend", backend, "--device", &device.name(), "--json"];
            let (success, out, errors) = run(&[&["run", file], &arguments[1..], &own].concat());
            assert!(success, "{errors}");
            serde_json::from_str(&out).expect("JSON")
        });
    }
}

#[test]
fn the_command_line_names_the_backend_and_the_device() {
    for device in devices() {
        let backend = device.backend().word();
        let (success, out, errors) = wf(&["--backend", backend, "--json"]);
        assert!(success, "{errors}");
        let value: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(value["backend"], backend);
        assert_eq!(value["device"], device.name().as_str());
        assert_eq!(value["solver"], "newton");
        let name = device.name();
        let (success, out, errors) =
            wf(&["--backend", backend, "--device", &name[name.len() / 2..]]);
        assert!(success && out.contains(&format!("{backend} ({name})")), "{out}{errors}");
        assert!(out.contains("scatter atomic"), "{out}");
        let (success, _, errors) = wf(&["--backend", backend, "--device", "no such device"]);
        assert!(!success && errors.contains("no such device"), "{errors}");
        assert!(errors.contains("help: "), "{errors}");
    }
}

#[test]
fn without_atomic_additions_every_run_gives_the_same_numbers() {
    for device in devices() {
        let backend = device.backend().word();
        for scatter in ["coloured", "owner"] {
            let run = || {
                let (success, out, errors) =
                    wf(&["--backend", backend, "--scatter", scatter, "--json"]);
                assert!(success, "{errors}");
                let value: Value = serde_json::from_str(&out).expect("JSON");
                assert_eq!(value["scatter"], scatter);
                ["residual", "linear_iterations", "error_l2", "energy"]
                    .map(|key| value[key].clone())
            };
            let found = run();
            assert!(found[0].is_f64() && found[1].is_u64(), "{found:?}");
            assert_eq!(found, run(), "{scatter} on {device:?}");
        }
    }
}

/// Equal to the CPU, for every scatter algorithm, and with the residual's kernels only.
#[test]
fn probes_run_on_devices() {
    let state = ["probe", "examples/nonlinear.wf", "--mesh", "box(dim: 2, cells: 3)", "--json"];
    let state = [&state[..], &["--degree", "2", "--at", "u=x[0] * x[1]"]].concat();
    let both = [&state[..], &["--test", "u=1 + x[1]", "--direction", "u=x[0]^2"]].concat();
    let probe = |arguments: &[&str], more: &[&str]| {
        let (success, out, errors) = run(&[arguments, more].concat());
        assert!(success, "{out}{errors}");
        serde_json::from_str::<Value>(&out).expect("JSON")
    };
    let [wanted, first] = [&both, &state].map(|asked| probe(asked, &["--interpret"]));
    assert_eq!((&wanted["backend"], &wanted["device"]), (&"cpu".into(), &Value::Null));
    let near = |found: &Value, wanted: &Value, key: &str| {
        let [found, wanted] = [found, wanted].map(|value| value[key].as_f64().expect("a number"));
        assert!((found - wanted).abs() <= 1e-12 * wanted.abs(), "{key}: {found:e}, {wanted:e}");
    };
    for device in devices() {
        let on = ["--backend", device.backend().word(), "--device", &device.name()];
        for scatter in ["atomic", "coloured", "owner"] {
            let found = probe(&both, &[&on[..], &["--scatter", scatter]].concat());
            assert_eq!(found["device"], device.name().as_str(), "{found}");
            assert_eq!(found["scatter"], scatter, "{found}");
            near(&found, &wanted, "residual");
            near(&found, &wanted, "jacobian");
        }
        near(&probe(&state, &on), &first, "residual");
        let (success, _, errors) = run(&[&state[..], &on, &["--interpret"]].concat());
        assert!(!success && errors.is_empty(), "{errors}");
    }
}

#[test]
fn the_bench_heeds_the_wish_for_a_geometry() {
    for device in devices() {
        let backend = device.backend().word();
        for geometry in ["vertices", "stored", "coefficients"] {
            let suite = ["bench", "--problem", "BP3", "--degree", "2", "--dofs", "1e3", "--no-csr"];
            let wishes = ["--backend", backend, "--geometry", geometry, "--json"];
            let (success, out, errors) = run(&[&suite[..], &wishes].concat());
            assert!(success, "{errors}");
            let row: Value = serde_json::from_str(&out).expect("JSON");
            assert_eq!(row["geometry"], geometry);
            let error = row["error"].as_f64().expect("an error");
            assert!(error < 1e-14, "{geometry} on {device:?}: {error:e}");
        }
    }
}

#[test]
fn low_order_operators_are_measured_on_devices() {
    for device in devices() {
        let suite = ["bench", "--suite", "settgast", "--problem", "BP5", "--dofs", "1e3", "--json"];
        let backend = device.backend().word();
        let (success, out, errors) = run(&[&suite[..], &["--backend", backend]].concat());
        assert!(success, "{errors}");
        let rows: Vec<Value> =
            out.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
        let operators = rows.iter().filter(|row| row["row"] == "operator");
        let operators: Vec<&Value> = operators.collect();
        assert_eq!(operators.len(), 5);
        for row in operators {
            assert_eq!((&row["backend"], &row["dofs"]), (&backend.into(), &1000.into()), "{row}");
            assert!(row["refused"].is_null(), "{row}");
            assert!(row["difference"].as_f64().is_some_and(|number| number < 1e-13), "{row}");
            for key in ["seconds", "cg_fused_seconds", "cg_iterations"] {
                assert!(row[key].as_f64().is_some_and(|number| number > 0.0), "{key}: {row}");
            }
        }
    }
}
