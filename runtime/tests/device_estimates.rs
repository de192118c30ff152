//! Error estimates by device kernels against those on the host: equal up to rounding, with equal marks.

use super::devices;
use super::multigrid::adapted;
use devices::devices;
use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use runtime::assert_close;
use runtime::estimate::Estimator;
use runtime::kernels::compile::{Execution, Target};
use runtime::mesh::load;
use runtime::mesh::refine::mark::{coarsen, mark};
use runtime::problem::{Context, Platform};
use runtime::reference::BoundedValue;
use std::path::Path;

/// Several fields, regions, data, and boundary integrals.
const FORM: &str = "form f { field u: vector in H1(k); field p: scalar in H1(k - 1); aux a: scalar on cells; param nu = 0.7;
        f1[u] = nu * (1 + a) * grad(u) - p * I; f0[u] = a * u; f0[p] = -div(u);
        on boundary \"x1\" { f0[u] = 2 * u + n; } }
    form d { field u: scalar in L2(k); aux a: scalar on cells; f1[u] = (1 + a) * grad(u); f0[u] = u - 1;
        on interior { energy = (1 + avg(a)) * avg(penalty(u)) * jump(u)^2 - dot(avg((1 + a) * grad(u)), n) * jump(u); }
        on boundary \"x1\" { f0[u] = penalty(u) * u; } }
    form v { field E: vector in Hcurl(k); field u: vector in Hdiv(k); aux a: scalar on cells;
        f0[E] = (1 + a) * E + u; f1[E] = (1 + dot(E, E)) * curl(E); f0[u] = u; f1[u] = div(u);
        on boundary \"x1\" { f0[E] = tangential(E); f0[u] = x[1] * n; } }
    form s { field u: scalar; param c = 2; f1[u] = c * (1 + u^2) * grad(u); f0[u] = -x[0] * h; }";

#[test]
fn devices_and_the_host_estimate_alike() {
    let cases = [
        ("s", "box(dim: 3, cells: 3, deform: 0.1)", 2, "dirichlet u = 0 on \"x0\";"),
        ("s", "box(dim: 3, cells: 2, cell: tet)", 2, "dirichlet u = 0 on \"x0\";"),
        (
            "f",
            "box(dim: 2, cells: 4, cell: tri)",
            2,
            "aux a = x[0]; dirichlet u = [0, 0] on \"x0\";",
        ),
        (
            "f",
            "box(dim: 2, cells: 4, deform: 0.1)",
            3,
            "aux a = x[0]; dirichlet u = [0, 0] on \"x0\";",
        ),
        ("d", "box(dim: 2, cells: 4, deform: 0.1)", 3, "aux a = x[0];"),
        ("v", "box(dim: 3, cells: 2, deform: 0.1)", 2, "aux a = x[0];"),
        ("v", "box(dim: 2, cells: 3, cell: tri)", 2, "aux a = x[0];"),
        ("d", "box(dim: 3, cells: 2, cell: tet)", 2, "aux a = x[0];"),
    ];
    for device in devices() {
        for (form, mesh, degree, more) in cases {
            let text = format!(
                "{FORM} problem p solves {form} {{ mesh = {mesh}; degree = {degree}; {more} }}"
            );
            let (program, found) = compile(&Source::new("test", text.as_str()));
            let program = program.unwrap_or_else(|| panic!("{found:?}"));
            let (source, _) = program.mesh("p", &Overrides::default()).expect("a mesh");
            let mut mesh = load(&source, Path::new("")).expect("a mesh");
            if matches!(form, "d" | "v") && mesh.cell().is_tensor() {
                mesh = adapted(mesh);
            }
            let problem = program.problem("p", mesh.dim(), &Overrides::default()).expect("one");
            let Context { problem, on, elements, parameters, .. } =
                Context::new(problem, mesh, Platform::native()).expect("one");
            let state: Vec<f64> = (0..on.n_dofs()).map(|i| 0.6 * (0.3 * i as f64).cos()).collect();
            let target = Target { execution: Execution::Interpreted, ..Target::native() };
            let estimate = |device| {
                let (form, params) = (&problem.form, &parameters.values);
                let made = Estimator::new(form, &elements, &on, params, &target, device);
                made.expect("kernels").estimate(&state).expect("an estimate")
            };
            let (here, there) = (estimate(None), estimate(Some(&device)));
            let name = format!("{form} on {mesh:?}", mesh = on.mesh.cell());
            let largest = here.squares.iter().fold(0.0f64, |most, square| most.max(*square));
            for (here, there) in here.squares.iter().zip(&there.squares) {
                let want = BoundedValue::with_scale(*here, 100.0 * largest);
                assert_close!(*there, want, f64::EPSILON, "{name}");
            }
            let energy = BoundedValue::with_scale(here.energy, 100.0 * here.energy);
            assert_close!(there.energy, energy, f64::EPSILON, "{name}");
            for part in [0.1, 0.3, 0.7] {
                assert_eq!(mark(&here.squares, part), mark(&there.squares, part), "{name}");
                assert_eq!(coarsen(&here.squares, part), coarsen(&there.squares, part), "{name}");
            }
        }
    }
}
