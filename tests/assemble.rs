//! Linear systems of solved problems: against the operator, read back from files, and solved by other codes.

use std::path::Path;
use std::process::Command;
use weakform::{Csr, Error, Execution, Form};

/// Problems that each have a feature that a matrix must represent.
pub(crate) const PROBLEMS: &str = "
form poisson { field u: scalar; param f = 1; f0[u] = -f; f1[u] = (1 + x[0]) * grad(u); }
form transport { field u: scalar; f0[u] = grad(u)[0] - 1; f1[u] = 0.1 * grad(u); on boundary \"x1\" { f0[u] = u; } }
form nonlinear { field u: scalar; f0[u] = u^3 - 1; f1[u] = (1 + u^2) * grad(u); }
form elastic { field u: vector; f0[u] = 0.1 * u - [0, 1]; f1[u] = 2 * sym(grad(u)) + div(u) * I; }
form stokes { field u: vector in H1(k); field p: scalar in H1(k - 1); f1[u] = grad(u) - p * I; f0[p] = -div(u); }
form jumps {
    field u: scalar in L2(k); f0[u] = -1; f1[u] = grad(u);
    on interior { energy = avg(penalty(u)) * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); }
    on boundary \"x0\", \"y1\" { energy = penalty(u) * u^2 - dot(grad(u), n) * u; }
}
problem jumping solves jumps { mesh = box(dim: 2, cells: 3, cell: tri); degree = 2; }
problem triangles solves poisson { mesh = box(dim: 2, cells: 4, cell: tri); degree = 3; dirichlet u = x[1]; }
problem hanging solves poisson {
    mesh = lshape(dim: 2, refine: 1); degree = 2; dirichlet u = 0; adapt(steps: 2, fraction: 0.4);
}
problem carried solves transport { mesh = box(dim: 2, cells: 4, deform: 0.1); degree = 2; dirichlet u = 0 on \"x0\"; }
problem bent solves nonlinear { mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u = x[0] on \"x0\", \"x1\"; }
problem slipping solves elastic { mesh = ball(dim: 2, order: 2); degree = 2; dirichlet dot(u, n) = 0; }
problem periodic solves poisson {
    mesh = box(dim: 3, cells: 2); degree = 2; periodic \"x0\" = \"x1\"; dirichlet u = 0 on \"y0\"; param f = 2;
}
problem channel solves stokes {
    mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u = [x[1] * (1 - x[1]), 0]; mean p = 2;
}
";

const NAMES: [&str; 8] =
    ["triangles", "hanging", "carried", "bent", "slipping", "periodic", "channel", "jumping"];

/// Computes A x.
fn product(matrix: &Csr, x: &[f64]) -> Vec<f64> {
    (0..matrix.size()).map(|i| matrix.row(i).map(|(j, a)| a * x[j]).sum()).collect()
}

/// Computes ‖a − b‖ / ‖b‖ in the maximum norm.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let most = |all: &mut dyn Iterator<Item = f64>| all.fold(0.0, |most: f64, x| most.max(x.abs()));
    most(&mut a.iter().zip(b).map(|(a, b)| a - b)) / most(&mut b.iter().copied())
}

#[test]
fn systems_have_the_solutions_of_their_problems() -> Result<(), Error> {
    for name in NAMES {
        let form = PROBLEMS.lines().find_map(|line| {
            let rest = line.strip_prefix(&format!("problem {name} solves "))?;
            rest.split(' ').next()
        });
        let problem = Form::parse(PROBLEMS, form.expect("its form"))?.problem(name)?;
        let problem = problem.execution(Execution::Interpreted);
        let solution = problem.run()?;
        let system = solution.assemble()?;
        let n = solution.dofs();
        assert_eq!((system.matrix.size(), system.rhs.len(), system.points.len()), (n, n, n));
        let left = distance(&product(&system.matrix, solution.values()), &system.rhs);
        assert!(left < 1e-7, "{name}: {left:e} is left");
        assert_eq!(system.symmetric, !["carried", "bent"].contains(&name), "{name}");
        let entry = |i: usize, j: usize| {
            system.matrix.row(i).find(|(column, _)| *column == j).map_or(0.0, |(_, a)| a)
        };
        let largest = system.matrix.values.iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        for i in 0..n {
            if system.constrained[i] {
                assert_eq!(system.matrix.row(i).collect::<Vec<_>>(), [(i, 1.0)], "{name}: row {i}");
                let value = solution.values()[i];
                assert!((system.rhs[i] - value).abs() < 1e-12, "{name}: row {i}");
            }
            for (j, a) in system.matrix.row(i) {
                assert!(i == j || !system.constrained[j], "{name}: column {j}");
                let other = if system.symmetric { entry(j, i) } else { a };
                assert!((a - other).abs() < 1e-12 * largest, "{name}: {i}, {j}");
            }
        }
        // Conditions of discontinuous fields are terms of the form.
        assert!(system.constrained.iter().any(|given| *given) || name == "jumping", "{name}");
    }
    Ok(())
}

fn wf(arguments: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_wf")).args(arguments).output().expect("wf");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

/// Returns the numbers of a NumPy file with eight bytes each.
pub(crate) fn reals(file: &Path) -> Vec<f64> {
    let bytes = std::fs::read(file).expect("a file");
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let numbers = bytes[10 + length..].chunks_exact(8);
    numbers.map(|number| f64::from_le_bytes(number.try_into().expect("eight"))).collect()
}

#[test]
fn files_have_the_system_to_the_bit() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("problems.wf");
    std::fs::write(&file, PROBLEMS).expect("a file");
    let (file, out) = (file.to_str().expect("a name"), folder.path().join("system"));
    let into = out.to_str().expect("a name");
    let (done, json, error) =
        wf(&["assemble", file, "--problem", "carried", "-o", into, "--json", "--interpret"]);
    assert!(done, "{error}{json}");
    let value: serde_json::Value = serde_json::from_str(&json).expect("an object");
    let n = value["unknowns"].as_u64().expect("a number") as usize;
    assert_eq!((n, value["symmetric"].as_bool()), (81, Some(false)));
    assert_eq!(value["fields"][0]["name"], "u");
    let text = std::fs::read_to_string(out.join("matrix.mtx")).expect("a matrix");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("%%MatrixMarket matrix coordinate real general"));
    let entries = value["entries"].as_u64().expect("a number");
    assert_eq!(lines.next(), Some(format!("{n} {n} {entries}").as_str()));
    let [rhs, u] = ["rhs.npy", "solution.npy"].map(|file| reals(&out.join(file)));
    assert_eq!((rhs.len(), u.len(), reals(&out.join("coordinates.npy")).len()), (n, n, 2 * n));
    let mut left = rhs.clone();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [i, j] = [words[0], words[1]].map(|word| word.parse::<usize>().expect("a number") - 1);
        left[i] -= words[2].parse::<f64>().expect("a number") * u[j];
    }
    let most = left.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    assert!(most < 1e-8, "{most:e}");
    let given = std::fs::read(out.join("constrained.npy")).expect("a file");
    assert_eq!(given[given.len() - n..].iter().filter(|byte| **byte == 1).count(), 9);

    is_read_back(&out, most);

    let (done, _, error) = wf(&["assemble", file, "-o", into]);
    assert!(!done && error.contains("choose one with --problem"), "{error}");
    let inside = format!("{file}/folder");
    let (done, _, error) = wf(&["assemble", file, "--problem", "carried", "-o", &inside]);
    assert!(!done && error.contains("cannot make the folder"), "{error}");
}

/// Checks that `wf residual` computes the residual of the system in a folder, whose largest entry is `most`, and
/// reports errors of files.
fn is_read_back(folder: &Path, most: f64) {
    let own = folder.to_str().expect("a name");
    let (done, json, error) = wf(&["residual", own, "--json", "--at-most", "1e-6"]);
    assert!(done, "{error}");
    let value: serde_json::Value = serde_json::from_str(&json).expect("an object");
    let number = |key: &str| value[key].as_f64().expect("a number");
    // Sums of few terms in another order.
    assert!(
        (number("residual") >= most / 2.0 || most < 1e-12) && number("residual") < 1e-7,
        "{json}"
    );
    assert!(number("relative") < 1e-7 && number("backward") < 1e-8, "{json}");
    // A wrong solution: x = 1 everywhere, one number per line.
    let (ones, n) = (folder.join("ones.txt"), value["unknowns"].as_u64().expect("a number"));
    std::fs::write(&ones, "1\n".repeat(n as usize)).expect("a file");
    let ones = ones.to_str().expect("a name");
    let (done, said, error) = wf(&["residual", own, "--solution", ones, "--at-most", "1e-3"]);
    assert!(!done && error.contains("the relative residual is") && said.contains("worst row"));
    // An invalid line, a vector that is too short, a missing file.
    let bad = folder.join("bad.mtx");
    std::fs::write(&bad, "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 2 3\n")
        .expect("a file");
    let bad = bad.to_str().expect("a name");
    let (done, _, error) = wf(&["residual", own, "--matrix", bad]);
    assert!(!done && error.contains("bad.mtx:3: there is no column 2"), "{error}");
    let short = folder.join("short.txt");
    std::fs::write(&short, "1\n").expect("a file");
    let (done, _, error) = wf(&["residual", own, "--rhs", short.to_str().expect("a name")]);
    assert!(!done && error.contains("has 1 numbers, but the matrix has 81 rows"), "{error}");
    let (done, _, error) = wf(&["residual", own, "--rhs", "none.npy"]);
    assert!(!done && error.contains("cannot read none.npy") && error.contains("help:"), "{error}");
}

/// `wf assemble` of a problem with `eigen` writes matrices that its modes solve, and no linear system.
#[test]
fn a_problem_with_eigen_has_a_stiffness_and_a_mass() -> Result<(), Error> {
    let text = "
form hard { field u: scalar; f1[u] = grad(u); f0[u] = u^3; }
form heavy { field u: scalar; param rho = 3; f0[u] = rho * u; }
problem square solves hard {
    mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u = 0 on \"x0\"; initial u = 2; eigen = smallest(3); mass = heavy;
}
";
    let solution = Form::parse(text, "hard")?.problem("square")?.run()?;
    let error = solution.assemble().err().expect("no linear system").to_string();
    assert!(error.contains("no linear system"), "{error}");
    let pencil = solution.assemble_pencil()?;
    let n = solution.dofs();
    assert_eq!((pencil.values.len(), pencil.modes.len()), (3, 3 * n));
    for (value, mode) in pencil.values.iter().zip(pencil.modes.chunks(n)) {
        // 3 u² = 12 without constraints.
        assert!(*value > 12.0 / 3.0, "{value}");
        let of_mass: Vec<f64> =
            product(&pencil.mass, mode).into_iter().map(|entry| value * entry).collect();
        let left = distance(&product(&pencil.stiffness, mode), &of_mass);
        assert!(left < 1e-6, "{value}: {left:e}");
    }
    for row in (0..n).filter(|&row| pencil.constrained[row]) {
        assert_eq!(pencil.mass.row(row).count(), 0);
        assert_eq!(pencil.stiffness.row(row).collect::<Vec<_>>(), [(row, 1.0)]);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (file, out) = (folder.path().join("modes.wf"), folder.path().join("pencil"));
    std::fs::write(&file, text).expect("a file");
    let (file, into) = (file.to_str().expect("a name"), out.to_str().expect("a name"));
    let (done, json, error) = wf(&["assemble", file, "-o", into, "--json", "--interpret"]);
    assert!(done, "{error}{json}");
    let values = reals(&out.join("eigenvalues.npy"));
    for (found, known) in values.iter().zip(&pencil.values) {
        assert!((found - known).abs() < 1e-9 * known, "{found}, {known}");
    }
    assert_eq!(reals(&out.join("modes.npy")).len(), 3 * n);
    assert!(out.join("stiffness.mtx").exists() && out.join("mass.mtx").exists());
    assert!(!out.join("matrix.mtx").exists() && !out.join("rhs.npy").exists());
    Ok(())
}

/// The solution of the files by SciPy, if available.
const SCRIPT: &str = "
import sys, numpy, scipy.io, scipy.sparse.linalg
folder = sys.argv[1]
a = scipy.sparse.csc_matrix(scipy.io.mmread(folder + '/matrix.mtx'))
b, u = numpy.load(folder + '/rhs.npy'), numpy.load(folder + '/solution.npy')
x = scipy.sparse.linalg.spsolve(a, b)
assert numpy.load(folder + '/coordinates.npy').shape == (len(u), 2)
assert numpy.load(folder + '/constrained.npy').dtype == bool
print(abs(x - u).max() / abs(u).max())
";

#[test]
fn scipy_finds_the_same_solution() {
    let python = |arguments: &[&str]| Command::new("python3").args(arguments).output();
    if !python(&["-c", "import scipy.io"]).is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no scipy");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("problems.wf");
    let text = PROBLEMS.replace("degree = 3;", "degree = 3; solver = direct;");
    std::fs::write(&file, text).expect("a file");
    let (file, into) = (file.to_str().expect("a name"), folder.path().to_str().expect("a name"));
    let (done, _, error) = wf(&["assemble", file, "--problem", "triangles", "-o", into]);
    assert!(done, "{error}");
    let output = python(&["-c", SCRIPT, into]).expect("python");
    let printed = String::from_utf8_lossy(&output.stdout);
    let difference: f64 = printed
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{printed}{}", String::from_utf8_lossy(&output.stderr)));
    assert!(difference < 1e-10, "{difference:e}");
}

#[test]
fn a_problem_through_time_has_no_single_system() {
    let heat = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/heat.wf");
    let folder = std::env::temp_dir().join(format!("wf-assemble-time-{}", std::process::id()));
    let into = folder.to_str().expect("a name");
    let (done, _, error) = wf(&["assemble", heat, "-o", into]);
    assert!(
        !done && error.contains("a system for each stage") && error.contains("help"),
        "{error}"
    );
    assert!(!folder.join("matrix.mtx").exists());
    let _ = std::fs::remove_dir_all(&folder);
    let (done, text, error) = wf(&["run", "--dry-run", heat]);
    assert!(done && text.contains("bdf from 0 to 32, 64 steps at least"), "{text}{error}");
}
