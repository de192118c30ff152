//! `wf run`, `wf verify`, `wf probe`, `wf assemble` and `wf bench` on several processes agree with a single one:
//! `mpirun` starts the built program.

mod assembled;
mod measured;
mod poles;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Linear and nonlinear problems, of one field and of several, scalars and vectors, with periodic sides, data, and
/// reports of all kinds. The cells are quadrilaterals, triangles, hexahedra and tetrahedra.
const PROBLEMS: &str = include_str!("processes/problems.wf");

/// Returns whether an MPI is available; `WF_REQUIRE=mpi` makes its absence a failure.
fn is_there() -> bool {
    let found = Command::new("mpirun").arg("--version").output();
    let there = cfg!(feature = "mpi") && found.is_ok_and(|output| output.status.success());
    let required = std::env::var("WF_REQUIRE").unwrap_or_default();
    assert!(there || !required.split([' ', ',']).any(|word| word == "mpi"), "MPI is required");
    if !there {
        eprintln!("there is no MPI, or no feature `mpi`: nothing is compared");
    }
    there
}

/// Returns `wf` on several processes.
fn mpirun(processes: usize) -> Command {
    let mut mpirun = Command::new("mpirun");
    // Any user, and more processes than cores.
    for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] {
        mpirun.env(variable, "1");
    }
    mpirun.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    mpirun.env("OMPI_MCA_mpi_yield_when_idle", "1");
    mpirun.args(["-n", &processes.to_string(), env!("CARGO_BIN_EXE_wf")]);
    mpirun
}

/// Starts `wf` on several processes.
fn start(processes: usize, folder: &Path, arguments: &[&str]) -> Output {
    let mut command = match processes {
        1 if !arguments.contains(&":") => Command::new(env!("CARGO_BIN_EXE_wf")),
        _ => mpirun(processes),
    };
    command.args(arguments).current_dir(folder).env("WF_CACHE_DIR", crate::suites::cache());
    command.output().expect("the program should start")
}

/// Returns the results of all problems that should have a solution.
fn run(processes: usize, folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let all = [&["run"], arguments, &["--interpret", "--threads", "1", "--json"]].concat();
    let output = start(processes, folder, &all);
    let said = String::from_utf8_lossy(&output.stderr);
    let text = String::from_utf8_lossy(&output.stdout);
    let all = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
    let (unsolved, solved): (Vec<Value>, Vec<Value>) =
        all.partition(|found: &Value| found.get("error").is_some());
    let loose = |found: &Value| found["problem"] == "loose";
    assert!(unsolved.iter().all(loose), "{processes} processes: {text}\n{said}");
    let message = "nothing fixes `u`: its solution is known up to a constant";
    assert!(unsolved.iter().all(|found| found["error"].to_string().contains(message)), "{text}");
    assert_eq!(unsolved.len(), usize::from(solved.len() > 1), "{text}");
    solved
}

/// Returns whether two values agree up to solver errors: `tolerance`, relative to the larger or to `scale`.
fn alike(found: &Value, known: &Value, scale: f64, tolerance: f64) -> bool {
    match (found, known) {
        (Value::Number(found), Value::Number(known)) => {
            let [a, b] = [found, known].map(|number| number.as_f64().unwrap_or(f64::NAN));
            (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(scale)
        }
        (Value::Array(found), Value::Array(known)) => {
            let pairs = || found.iter().zip(known);
            found.len() == known.len() && pairs().all(|(a, b)| alike(a, b, scale, tolerance))
        }
        (Value::Object(found), Value::Object(known)) => known.iter().all(|(key, known)| {
            found.get(key).is_some_and(|found| alike(found, known, scale, tolerance))
        }),
        (found, known) => found == known,
    }
}

#[test]
fn several_processes_find_what_one_finds() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    let alone = run(1, folder.path(), &["problems.wf", "--no-output"]);
    assert!(alone.len() > 10);
    same(4, &run(4, folder.path(), &["problems.wf", "--no-output"]), &alone);
    let one = run(3, folder.path(), &["problems.wf", "--no-output", "--problem", "levels"]);
    let known: Vec<Value> =
        alone.into_iter().filter(|known| known["problem"] == "levels").collect();
    same(3, &one, &known);
}

#[test]
fn an_mpi_that_has_started_knows_whether_it_takes_device_pointers() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = mpirun(1);
    command.args(["doctor", "--json"]).env("WF_CACHE_DIR", folder.path().join("cache"));
    let output = command.output().expect("the program should start");
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text).expect("an object");
    assert!(report["mpi"]["device_pointers"].is_boolean(), "{}", report["mpi"]);
}

/// Problems with terms between cells, some of which are over the cut.
const BETWEEN: &str = include_str!("processes/between.wf");

#[test]
fn facets_between_processes_are_those_of_one_process() {
    if !is_there() {
        return;
    }
    let folder = with("between.wf", BETWEEN);
    let alone = run(1, folder.path(), &["between.wf", "--no-output"]);
    assert_eq!(alone.len(), 11);
    same(4, &run(4, folder.path(), &["between.wf", "--no-output"]), &alone);
    // Files hold the data of the cells of each process.
    run(3, folder.path(), &["between.wf", "--problem", "levels", "-o", "levels.vtu"]);
}

/// Problems on meshes with hanging nodes, with multigrid hierarchies.
const ADAPTED: &str = include_str!("processes/adapted.wf");

#[test]
fn levels_of_meshes_with_hanging_nodes_are_those_of_one_process() {
    if !is_there() {
        return;
    }
    let folder = with("adapted.wf", ADAPTED);
    let alone = run(1, folder.path(), &["adapted.wf", "--no-output"]);
    let corner = ["adapted.wf", "--no-output", "--problem", "corner"];
    for (processes, arguments, known) in [(2, &corner[..2], &alone[..]), (3, &corner, &alone[..1])]
    {
        let found = run(processes, folder.path(), arguments);
        same(processes, &found, known);
        for (found, known) in found.iter().zip(known) {
            assert_eq!(found["notes"], known["notes"], "{}", known["problem"]);
            // Of each field.
            let levels = |of: &Value| match &of["multigrid"] {
                Value::Array(all) => all.iter().map(unknowns).collect(),
                own => vec![unknowns(own)],
            };
            assert!(levels(known).iter().all(|levels| levels.len() > 1), "{known}");
            assert_eq!(levels(found), levels(known), "{}", known["problem"]);
            // λ is estimated with different random numbers in each process.
            let [own, known] = [found, known].map(|of| of["linear_iterations"].as_u64());
            let [own, known] = [own, known].map(|count| count.expect("a count"));
            let near = own.abs_diff(known) <= 1 + known / 10;
            assert!(near, "{}: {own}, not {known}", found["problem"]);
        }
    }
}

/// Returns the number of DoFs of each level.
fn unknowns(multigrid: &Value) -> Vec<u64> {
    let levels = multigrid["levels"].as_array().expect("levels").iter();
    levels.map(|level| level["unknowns"].as_u64().expect("a count")).collect()
}

/// Problems on meshes of one to three cells.
const FEW: &str = include_str!("processes/few.wf");

#[test]
fn processes_without_cells_find_what_the_others_find() {
    if !is_there() {
        return;
    }
    let folder = with("few.wf", FEW);
    let alone = run(1, folder.path(), &["few.wf", "--no-output"]);
    assert_eq!(alone.len(), 5);
    let found = run(4, folder.path(), &["few.wf", "--no-output"]);
    same(4, &found, &alone);
    let note = "3 of 4 processes have no cell: the mesh has 1";
    assert!(found[0]["notes"].to_string().contains(note), "{}", found[0]);
}

/// The first process draws the gathered solution, including data, as a single process would; the memory requirement is
/// reported before.
#[test]
fn one_process_draws_what_all_have_found() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    let draws = |processes: usize, file: &str| {
        let periodic = ["problems.wf", "--problem", "periodic", "--no-output", "--field", "a"];
        let small = ["--picture-size", "200x200", "--picture", file];
        run(processes, folder.path(), &[&periodic[..], &small].concat());
        std::fs::read(folder.path().join(file)).expect("a picture")
    };
    assert!(draws(1, "one.png") == draws(3, "three.png"));
    let estimated = |processes: usize| {
        let found =
            run(processes, folder.path(), &["problems.wf", "--problem", "levels", "--dry-run"]);
        let [each, all] = ["bytes", "bytes_in_all"].map(|key| found[0][key].as_f64());
        assert_eq!((&found[0]["processes"], &found[0]["dofs"]), (&processes.into(), &1089.into()));
        (each.expect("bytes"), all.expect("bytes"))
    };
    let (alone, three) = (estimated(1), estimated(3));
    assert!(alone.0 == alone.1 && three.0 < alone.0 && three.1 > alone.1, "{alone:?}, {three:?}");
}

/// Means of the cells at a node include those of other processes, also where nodes hang.
#[test]
fn outputs_of_several_processes_are_those_of_one() {
    if !is_there() {
        return;
    }
    let text = "form f { field u: scalar; f1[u] = grad(u); f0[u] = -exp(x[0] + 2 * x[1]); }\n\
                problem p solves f { mesh = lshape(dim: 2, refine: 2); degree = 2; dirichlet u = 0;\n\
                adapt(steps: 2); output slope = grad(u); output mean = grad(u)[0] on cells; }";
    let folder = with("a.wf", text);
    for field in ["slope", "mean"] {
        let draws = |processes: usize, file: &str| {
            let options = ["a.wf", "--no-output", "--picture-size", "200x200", "--field", field];
            run(processes, folder.path(), &[&options[..], &["--picture", file]].concat());
            std::fs::read(folder.path().join(file)).expect("a picture")
        };
        assert!(draws(1, "one.png") == draws(3, "three.png"), "{field}");
    }
}

/// Levels of a partitioned mesh are those that a dry run of as many processes predicts.
#[test]
fn several_processes_make_the_predicted_levels() {
    if is_there() {
        crate::levels::assert_predicted(1..=8, |folder, arguments| {
            let found = run(2, folder, arguments);
            found.into_iter().next().expect("a problem")
        });
    }
}

/// Asserts that several processes have the results of one.
#[track_caller]
fn same(processes: usize, found: &[Value], alone: &[Value]) {
    assert_eq!(found.len(), alone.len());
    let numbers = ["cells", "dofs", "energy", "error_l2", "error_h1", "fields", "reports"];
    for (found, known) in found.iter().zip(alone) {
        assert_eq!(found["processes"], processes);
        for key in numbers.iter().chain(&["problem", "eigenvalues"]) {
            // It is solved to a relative residual of 1e-10 or 1e-8, in units of about 1.
            assert!(
                alike(&found[key], &known[key], 1e-3, 1e-6),
                "{key} of {}: {processes} processes found {}, one {}",
                known["problem"],
                found[key],
                known[key]
            );
        }
    }
}

/// Returns a folder with the problems.
fn with_problems() -> tempfile::TempDir {
    with("problems.wf", PROBLEMS)
}

/// Returns a folder with one file.
fn with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), text).expect("a file");
    folder
}

/// A problem that takes data and its initial state from the file of another.
const AGAIN: &str =
    "form again { field u: scalar; aux a: scalar; f0[u] = (1 + a^2) * u - 1; f1[u] = grad(u); }
    problem again solves again {
        mesh = box(dim: 2, cells: 16);
        degree = 2;
        aux a = file(\"levels.vtu\", \"u\");
        initial u = file(\"levels.vtu\", \"u\");
        dirichlet u = 0 on \"x0\";
    }";

#[test]
fn data_from_a_file_of_one_process_is_dealt_out() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    write("again.wf", AGAIN);
    run(1, folder.path(), &["problems.wf", "--problem", "levels", "-o", "levels.vtu"]);
    let alone = run(1, folder.path(), &["again.wf", "--no-output"]);
    same(3, &run(3, folder.path(), &["again.wf", "--no-output"]), &alone);
}

#[test]
fn a_run_is_repeated_to_the_bit_and_writes_a_file_a_process() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    let arguments = ["problems.wf", "--problem", "ball", "-o", "ball.vtu"];
    let bytes = || {
        let found = run(3, folder.path(), &arguments);
        assert_eq!(found[0]["output"], "ball.pvtu");
        let piece = |rank: usize| folder.path().join(format!("ball-{rank}-of-3.vtu"));
        [0, 1, 2].map(|rank| std::fs::read(piece(rank)).expect("a piece"))
    };
    assert!(bytes() == bytes());
    let text = std::fs::read_to_string(folder.path().join("ball.pvtu")).expect("all pieces");
    assert_eq!(text.matches("<Piece Source=\"ball-").count(), 3);
    let tree = ["<PPoints>", "<PPointData>", "Name=\"u\"", "</PUnstructuredGrid>"];
    assert!(tree.iter().all(|part| text.contains(part)), "{text}");
}

/// Heat with periodic sides, whose conductivity depends on the temperature.
const HEAT: &str =
    "form heat { field u: scalar; f0[u] = dt(u) - x[0]; f1[u] = (1 + u^2) * grad(u); }
    problem heat solves heat {
        mesh = box(dim: 2, cells: [4, 3]);
        degree = 2;
        periodic \"y0\" = \"y1\";
        dirichlet u = sin(3 * t) on \"x0\";
        time = bdf(order: 2, to: 0.2, step: 0.05);
        report size = l2(u);
    }";

/// A vector potential, whose degrees of freedom have signs that depend on the cells of a process.
const EDDY: &str = "form eddy { field A: vector in Hcurl(k); f0[A] = dt(A); f1[A] = curl(A); }
    problem eddy solves eddy {
        mesh = box(dim: 3, cells: 2, deform: 0.1);
        degree = 2;
        initial A = [sin(pi * x[1]), x[2], x[0] * x[1]];
        dirichlet cross(n, A) = [0, 0, 0] on \"x0\";
        time = bdf(order: 2, to: 0.2, step: 0.05);
        report size = integral(dot(A, A) + dot(curl(A), curl(A)));
    }";

/// A checkpoint is common to all processes: the same number of processes continues bit for bit, another one up to
/// rounding.
#[test]
fn a_run_goes_on_as_other_processes() {
    if is_there() {
        [HEAT, EDDY].into_iter().for_each(goes_on_as_other_processes);
    }
}

fn goes_on_as_other_processes(form: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("heat.wf"), form).expect("a file");
    let bytes = |file: &str| std::fs::read(folder.path().join(file)).expect("a file");
    let go = |processes: usize, more: &[&str]| {
        let found = run(processes, folder.path(), &[&["heat.wf"], more].concat());
        (bytes("h-4.npy"), found)
    };
    let left = ["--checkpoint", "h-{step}.npy"];
    let whole = [&["-o", "h-{step}.vtu"], &left[..]].concat();
    let (_, alone) = go(1, &whole);
    let (last, _) = go(3, &whole);
    let (piece, series) = (bytes("h-4-2-of-3.vtu"), bytes("h.pvd"));
    let from = [&["--restart", "h-2.npy"], &whole[..]].concat();
    let (again, found) = go(3, &from);
    assert!(again == last && piece == bytes("h-4-2-of-3.vtu") && series == bytes("h.pvd"));
    same(3, &found, &alone);
    let from = [&["--restart", "h-2.npy", "--no-output"], &left[..]].concat();
    for processes in [2, 1] {
        same(processes, &go(processes, &from).1, &alone);
    }
    // Those of one process were written last.
    same(2, &go(2, &["--restart", "h-3.npy", "--no-output"]).1, &alone);
}

/// Problems for verification and probes.
const VERIFIED: &str = include_str!("processes/verified.wf");

/// All output of one process about a form, except for solvers and times.
#[test]
fn several_processes_verify_and_probe_as_one() {
    if !is_there() {
        return;
    }
    let folder = with("verified.wf", VERIFIED);
    let all = |processes: usize, code: i32, arguments: &[&str]| {
        let output =
            start(processes, folder.path(), &[arguments, &["--interpret", "--json"]].concat());
        let (text, said) = (String::from_utf8_lossy(&output.stdout), output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}\n{}", String::from_utf8_lossy(&said));
        let objects = text.lines().map(|line| serde_json::from_str(line).expect("an object"));
        let objects: Vec<Value> = objects.collect();
        let is_of = |found: &Value| found["error"].is_string() || found["processes"] == processes;
        assert!(objects.iter().all(is_of), "{text}");
        // Subdomain matrices are not factorised, whereas one process factorises.
        assert_eq!(
            text.contains("\"fgmres\""),
            arguments[0] == "verify" && processes > 1,
            "{text}"
        );
        objects.into_iter().map(told).collect::<Vec<Value>>()
    };
    let small = ["--degree", "1", "--levels", "2", "--dofs", "60", "--backend", "cpu"];
    let verify = [&["verify", "verified.wf"], &small[..]].concat();
    let [alone, found] = [1, 2].map(|processes| all(processes, 1, &verify));
    assert_eq!(found.len(), 5);
    for (found, known) in found.iter().zip(&alone) {
        assert!(alike(found, known, 1e-9, 1e-5), "two processes found {found}, one {known}");
        let kernels = |of: &Value| of["degrees"][0]["kernels"].clone();
        assert_eq!(kernels(found), kernels(known));
    }
    let holds: Vec<Option<bool>> = found.iter().map(|found| found["holds"].as_bool()).collect();
    assert_eq!(holds, [Some(true), Some(true), Some(true), Some(false), None]);

    let at = ["--at", "u=[x[0]^2, x[1]]", "--at", "p=x[0]", "--test", "u=[x[0] * x[1], x[1]^3]"];
    let more =
        ["--test", "p=exp(x[0])", "--direction", "p=x[1]^2", "--mesh", "box(dim: 2, cells: 5)"];
    let probe = [&["probe", "verified.wf", "--problem", "closed"], &at[..], &more].concat();
    let [alone, found] = [1, 3].map(|processes| all(processes, 0, &probe).swap_remove(0));
    assert!(alone["residual"].is_f64() && alone["jacobian"].is_f64(), "{alone}");
    assert!(alike(&found, &alone, 1.0, 1e-13), "three processes found {found}, one {alone}");
    assert_eq!((&found["cells"], &found["dofs"]), (&25.into(), &278.into()));
}

/// Returns the findings, without data that depends on the execution.
fn told(mut found: Value) -> Value {
    found["processes"] = Value::Null;
    for degree in found["degrees"].as_array_mut().into_iter().flatten() {
        // Of random directions, which differ between processes.
        degree["jacobian"]["symmetry_defect"] = Value::Null;
        for level in degree["levels"].as_array_mut().into_iter().flatten() {
            ["solver", "iterations", "seconds"].iter().for_each(|key| level[key] = Value::Null);
        }
    }
    found
}

/// An error is reported once, and ends all processes.
#[test]
fn errors_are_said_once() {
    if !is_there() {
        return;
    }
    let folder = with_problems();
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    let fails = |processes: usize, arguments: &[&str], message: &str, code: i32| {
        let output = start(processes, folder.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.matches(message).count(), 1, "{said}");
        assert_eq!(output.status.code(), Some(code), "{said}");
    };
    let run = ["run", "problems.wf", "--interpret", "--threads", "1", "--no-output", "--problem"];
    let of = |more: &[&'static str]| [&run[..], more].concat();
    fails(2, &of(&["none"]), "none", 1);
    // The arguments of a second process, with another file.
    write("other.wf", &format!("{PROBLEMS}\n"));
    let other =
        ["--interpret", "--no-output", ":", "-n", "1", env!("CARGO_BIN_EXE_wf"), "run", "other.wf"];
    let both = [&["run", "problems.wf"], &other[..], &["--interpret", "--no-output"]].concat();
    fails(1, &both, "process 1 of 2 was given another file, build or command line", 1);
    let only = "only `wf assemble`, `wf bench`, `wf probe`, `wf run` and `wf verify` are for several processes";
    fails(2, &["check", "problems.wf"], only, 2);
    fails(2, &["verify", "-"], "only one process reads from standard input", 2);
}
