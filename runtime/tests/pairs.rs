//! Integrals over facets between cells of different size: what leaves one enters the other, linear functions are
//! solutions, and the larger cell may be on either side.

use super::devices;
use super::multigrid::adapted;
use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Argument;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::device::Device;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::Mesh;
use runtime::mesh::generate::generate;
use runtime::problem::{Platform, Solution, run};
use runtime::solve::Continue;
use std::sync::Arc;

/// A box of squares or cubes.
fn boxed(dim: usize, cells: usize, deform: f64) -> Mesh {
    let arguments = [("dim", dim as f64), ("cells", cells as f64), ("deform", deform)];
    let arguments = arguments.map(|(name, value)| (name.to_owned(), Argument::Number(value)));
    generate("box", &arguments.into()).expect("a mesh")
}

/// Solves a problem of a form on a mesh.
fn solved_on(form: &str, mesh: Mesh, problem: &str, device: Option<&Arc<dyn Device>>) -> Solution {
    let text =
        format!("form f {{ {form} }} problem p solves f {{ mesh = \"box.msh\"; {problem} }}");
    let (program, found) = compile(&Source::new("test", &text));
    let program = program.unwrap_or_else(|| panic!("{found:?}\n{text}"));
    let problem = program.problem("p", mesh.dim(), &Overrides::default());
    let problem = problem.unwrap_or_else(|found| panic!("{found:?}\n{text}"));
    let target = Target { execution: Execution::Interpreted, ..Target::native() };
    let platform = Platform::new(target, device.cloned());
    let run = run(&problem, mesh, &platform, &mut |_| Continue::Yes);
    run.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Solves a problem of a form on a deformed box, refined in a corner.
fn solved(form: &str, dim: usize, problem: &str, device: Option<&Arc<dyn Device>>) -> Solution {
    let mut mesh = adapted(boxed(dim, 2, 0.1));
    mesh.tag_cells("left", |x| x[0] < 0.5);
    mesh.tag_cells("right", |x| x[0] > 0.5);
    assert!(mesh.hanging().is_some());
    solved_on(form, mesh, problem, device)
}

/// The boundary of a box.
fn sides(dim: usize) -> String {
    let all = ["x0", "x1", "y0", "y1", "z0", "z1"];
    let all: Vec<String> = all[..2 * dim].iter().map(|side| format!("\"{side}\"")).collect();
    all.join(", ")
}

/// Interior penalty with `exact` on the boundary.
fn interior_penalty(dim: usize, exact: &str) -> String {
    format!(
        "field u: scalar in L2(k); f1[u] = grad(u); \
         on interior {{ energy = avg(penalty(u)) * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); }} \
         on boundary {} {{ let g = {exact}; energy = penalty(u) * (u - g)^2 - dot(grad(u), n) * (u - g); }}",
        sides(dim)
    )
}

/// On the host, and on each device that there is.
fn everywhere(mut check: impl FnMut(Option<&Arc<dyn Device>>)) {
    check(None);
    devices::devices().iter().for_each(|device| check(Some(device)));
}

#[test]
fn what_leaves_a_cell_enters_its_larger_neighbour() {
    everywhere(|device| {
        for (dim, degree) in [(2, 2), (3, 2)] {
            let (flux, divergence) = match dim {
                2 => ("[x[0] * x[1], x[1]^2 - x[0]]", "3 * x[1]"),
                _ => ("[x[0] * x[2], x[1] - x[0], x[0] * x[1] + x[2]]", "x[2] + 2"),
            };
            let form = format!(
                "field u: scalar in L2(k); let F = {flux}; f0[u] = u - 1 + {divergence}; f1[u] = F; \
                 on interior {{ f0[jump(u)] = -dot(F, n); }} \
                 on boundary {} {{ f0[u] = -dot(F, n); }}",
                sides(dim)
            );
            let problem = format!(
                "degree = {degree}; \
                 solver = cg(rtol: 1e-13); exact u = 1;"
            );
            let found = solved(&form, dim, &problem, device);
            let [(_, error, _)] = found.errors[..] else { panic!("one field") };
            assert!(error < 1e-11, "{dim}: {error}");
        }
    });
}

#[test]
fn linear_functions_are_solutions_on_adapted_meshes() {
    everywhere(|device| {
        // Kernels of devices are compiled one by one.
        let cases = &[(2, 1), (2, 3), (3, 1)][..if device.is_some() { 1 } else { 3 }];
        for &(dim, degree) in cases {
            let exact =
                if dim == 2 { "1 + 2 * x[0] - x[1]" } else { "1 + 2 * x[0] - x[1] + 3 * x[2]" };
            for solver in
                ["cg(rtol: 1e-12)", "cg(rtol: 1e-12, preconditioner: multigrid)", "direct"]
            {
                let problem = format!(
                    "degree = {degree}; \
                     solver = {solver}; exact u = {exact};"
                );
                let found = solved(&interior_penalty(dim, exact), dim, &problem, device);
                let [(_, error, slope)] = found.errors[..] else { panic!("one field") };
                assert!(error < 1e-10 && slope < 1e-9, "{dim} {degree} {solver}: {error} {slope}");
                let few = found.multigrid.is_empty() || found.linear_iterations < 16;
                assert!(few, "{dim} {degree}: {} iterations", found.linear_iterations);
            }
        }
    });
}

/// Exchanging both the order of the tags and the sides leaves the form as it is; small cells are left of large ones.
#[test]
fn the_larger_cell_may_be_the_inside() {
    let form = |dim: usize, from: &str, to: &str, [a, b]: [&str; 2]| {
        format!(
            "{} f0[u] = u - x[1]; on interior from \"{from}\" to \"{to}\" {{ \
                 f0[{a}(u)] = {a}(h) * {a}(u) - 3 * x[1] * {b}(u) + n[0] * {b}(hn) * dot({b}(grad(u)), n); \
                 f0[{b}(u)] = {b}(penalty(u)) * {a}(u); f1[{b}(u)] = {a}(u) * {a}(grad(u)); }}",
            interior_penalty(dim, "x[0]")
        )
    };
    for (dim, degree) in [(2, 2), (3, 1)] {
        let problem = format!(
            "degree = {degree}; \
             solver = newton(rtol: 1e-13);"
        );
        let forward = form(dim, "left", "right", ["inside", "outside"]);
        let back = form(dim, "right", "left", ["outside", "inside"]);
        let [forward, back] = [forward, back].map(|form| solved(&form, dim, &problem, None).u);
        let largest = forward.iter().fold(0.0_f64, |most, u| most.max(u.abs()));
        assert!(largest > 0.1, "{largest}");
        for (a, b) in forward.iter().zip(&back) {
            assert!((a - b).abs() < 1e-10 * largest, "{dim}: {a} {b}");
        }
    }
}

/// Iterations of CG with multigrid: as many on finer meshes, and hardly more than of continuous functions.
#[test]
fn iterations_with_multigrid_do_not_depend_on_the_mesh() {
    let iterations = |form: &str, mesh: Mesh, degree: usize, more: &str| {
        let solver = "solver = cg(rtol: 1e-10, preconditioner: multigrid);";
        let form = format!("{form} f0[u] = -1;");
        let found = solved_on(&form, mesh, &format!("degree = {degree}; {solver} {more}"), None);
        assert!(!found.multigrid.is_empty(), "{form}");
        found.linear_iterations
    };
    for (dim, sizes, degrees) in [
        (2, [8, 16], 3..=4),
        (2, [16, 32], 1..=2),
        (3, [8, 16], 1..=1),
        (3, [4, 8], 2..=2),
        (3, [2, 4], 4..=4),
    ] {
        for degree in degrees {
            let form = interior_penalty(dim, "0");
            let found = sizes.map(|n| iterations(&form, boxed(dim, n, 0.0), degree, ""));
            let whole = "field u: scalar; f1[u] = grad(u);";
            let continuous =
                iterations(whole, boxed(dim, sizes[1], 0.0), degree, "dirichlet u = 0;");
            assert!(found[0].abs_diff(found[1]) <= 1, "{dim} {degree}: {found:?}");
            assert!(2 * found[1] <= 3 * continuous, "{dim} {degree}: {found:?} {continuous}");
        }
    }
}

/// Transport by upwind fluxes.
const UPWIND: &str = "field u: scalar in L2(k); let b = [2, 1]; f1[u] = -u * b; f0[u] = 0.1 * u - 1; \
     on interior { f0[jump(u)] = dot(b, n) * avg(u) + abs(dot(b, n)) / 2 * jump(u); } \
     on boundary \"x1\", \"y1\" { f0[u] = dot(b, n) * u; }";

/// Block Jacobi: transport by upwind fluxes, and interior penalty on stretched cells.
#[test]
fn blocks_of_cells_precondition_better_than_the_diagonal() {
    let penalty = interior_penalty(2, "x[0]");
    let square = || boxed(2, 8, 0.1);
    let stretched = || {
        let cells = Argument::Numbers(vec![4.0, 64.0]);
        let arguments = [("dim", Argument::Number(2.0)), ("cells", cells)];
        generate("box", &arguments.map(|(name, value)| (name.to_owned(), value)).into())
            .expect("a mesh")
    };
    let hanging = || adapted(boxed(2, 4, 0.1));
    let cases: [(&str, &str, &dyn Fn() -> Mesh, usize, f64); 4] = [
        ("gmres", UPWIND, &square, 2, 0.5),
        ("gmres", UPWIND, &hanging, 3, 0.5),
        ("cg", &penalty, &stretched, 2, 0.8),
        ("cg", &penalty, &hanging, 3, 0.9),
    ];
    for (method, form, mesh, degree, share) in cases {
        let run = |preconditioner: &str| {
            let problem = format!(
                "degree = {degree}; solver = {method}(rtol: 1e-10, preconditioner: {preconditioner});"
            );
            let solution = solved_on(form, mesh(), &problem, None);
            (solution.linear_iterations, solution.u.clone())
        };
        let ((blocks, u), (points, v)) = (run("block_jacobi"), run("jacobi"));
        println!("{method}, degree {degree}: {blocks} and {points}");
        assert!((blocks as f64) < share * points as f64, "{method}: {blocks} and {points}");
        let largest = v.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        assert!(u.iter().zip(&v).all(|(u, v)| (u - v).abs() < 1e-7 * largest), "{method}");
    }
}

/// On a device the inverses of the blocks are a matrix.
#[test]
fn blocks_of_cells_precondition_alike_on_devices() {
    for device in devices::devices() {
        for (mesh, degree) in [(boxed(2, 5, 0.1), 2), (adapted(boxed(2, 2, 0.1)), 1)] {
            let problem = format!(
                "degree = {degree}; solver = gmres(rtol: 1e-10, preconditioner: block_jacobi);"
            );
            let [here, there] = [None, Some(&device)]
                .map(|device| solved_on(UPWIND, mesh.clone(), &problem, device));
            let iterations = [&here, &there].map(|solution| solution.linear_iterations);
            assert!(iterations[0].abs_diff(iterations[1]) <= 1, "{iterations:?}");
            let largest = here.u.iter().fold(0.0f64, |most, u| most.max(u.abs()));
            let pairs = || here.u.iter().zip(&there.u);
            assert!(pairs().all(|(u, v)| (u - v).abs() < 1e-8 * largest));
        }
    }
}
