//! Meshes that follow a solution through time: fronts against uniform meshes and known solutions, histories of all
//! schemes, integrals, several processes, and refusals.

use super::{Steps, compiled, run};
use runtime::mesh::Mesh;
use runtime::problem::{Monitor, Platform, ReportValue, Solution, Step, run_steps};
use runtime::processes::threads::each;
use runtime::solve::{Continue, Progress};
use std::sync::Arc;

/// Burgers' equation, u_t + 2 u u_x = ν Δu, with a front that travels along x at speed 1.
fn front(mesh: &str, degree: usize, adapt: &str) -> String {
    format!(
        "form front {{ field u: scalar; param nu = 0.02; \
         f0[u] = dt(u) + 2 * u * grad(u)[0]; f1[u] = nu * grad(u); }} \
         problem p solves front {{ mesh = {mesh}; degree = {degree}; dirichlet u on \"x0\", \"x1\"; \
         exact u = 1 / (1 + exp((x[0] - t) / nu)); \
         time = bdf(order: 2, from: 0.3, to: 0.4, step: 0.0025); {adapt} }}"
    )
}

/// Cell, dimension, cells of an axis, degree, levels, and cells of an axis of a uniform mesh.
type FrontCase = (&'static str, usize, usize, usize, usize, usize);

/// The mesh follows a front, with a smaller error than a uniform one of at least as many unknowns, and with no more of them
/// at the end than at the beginning: the front keeps its length, and cells merge after it.
#[test]
fn fronts_are_followed() {
    let cases: [FrontCase; 5] = [
        ("quad", 2, 4, 1, 4, 34),
        ("quad", 2, 4, 2, 3, 20),
        ("quad", 2, 4, 3, 2, 12),
        ("tri", 2, 4, 2, 4, 26),
        ("hex", 3, 4, 1, 2, 13),
    ];
    let check = |&(cell, dim, cells, degree, levels, uniform): &FrontCase| {
        let mesh = |cells| format!("box(dim: {dim}, cells: {cells}, cell: {cell})");
        let adapt = format!("adapt(every: 8, levels: {levels});");
        let solved = |text: &str| {
            let (solution, steps) = run(text).expect("a solution");
            let sizes: Vec<usize> = steps.iter().map(|step| step.dofs).collect();
            (solution.errors[0].1, sizes)
        };
        let (error, sizes) = solved(&front(&mesh(cells), degree, &adapt));
        let (known, of_uniform) = solved(&front(&mesh(uniform), degree, ""));
        let most = sizes.iter().copied().max().unwrap_or(0);
        let name = format!(
            "{cell} {degree}: {error:.2e} with {sizes:?}, uniform {known:.2e} with {}",
            of_uniform[0]
        );
        assert!(most <= of_uniform[0] && error <= known, "{name}");
        assert!(most as f64 <= 1.5 * sizes[0] as f64, "{name}");
    };
    std::thread::scope(|scope| {
        cases.iter().for_each(|case| drop(scope.spawn(move || check(case))));
    });
}

/// The largest number of unknowns holds for all meshes; an error that is small enough ends refinement.
#[test]
fn limits_hold_through_time() {
    let (_, steps) = run(&front("box(dim: 2, cells: 4)", 2, "adapt(every: 8, max_dofs: 1200);"))
        .expect("a solution");
    let sizes: Vec<usize> = steps.iter().map(|step| step.dofs).collect();
    assert!(sizes.iter().all(|&dofs| dofs <= 1200) && sizes[0] > 600, "{sizes:?}");
    let (solution, steps) = run(&front("box(dim: 2, cells: 4)", 2, "adapt(every: 8, until: 0.1);"))
        .expect("a solution");
    let sizes: Vec<usize> = steps.iter().map(|step| step.dofs).collect();
    assert!(sizes.iter().all(|dofs| (200..1200).contains(dofs)), "{sizes:?}");
    let (_, least) = run(&front("box(dim: 2, cells: 4)", 2, "")).expect("a solution");
    assert!(solution.errors[0].2 < 0.5 * least[least.len() - 1].errors[0].2, "{sizes:?}");
}

/// The solution is in the space on every mesh, and schemes reproduce it: nothing that they read of the past may be lost.
/// Cells are marked by rounding errors.
#[test]
fn solutions_of_the_space_are_kept_with_their_history() {
    let schemes = [
        (1, 1, "theta(to: 1, step: 0.05)"),
        (1, 2, "bdf(order: 2, to: 1, step: 0.05)"),
        (1, 2, "bdf(order: 5, to: 1, step: 0.05)"),
        (1, 1, "bdf(order: 3, to: 1, tolerance: 1e-3)"),
        (1, 1, "sdirk(stages: 2, to: 1, step: 0.05)"),
        (2, 2, "newmark(to: 1, step: 0.05)"),
        (2, 1, "generalised_alpha(to: 1, step: 0.05)"),
        (2, 1, "bdf(order: 3, to: 1, step: 0.05)"),
        (2, 2, "leapfrog(mass: consistent, to: 0.2, step: 5e-3)"),
    ];
    let check = |&(order, power, time): &(usize, usize, &str)| {
        let rate = if order == 1 { "dt(u)" } else { "dt(dt(u))" };
        let (solution, steps) = run(&format!(
            "form a {{ field u: scalar; f0[u] = {rate}; f1[u] = grad(u); }} \
             problem p solves a {{ mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u; \
             manufactured u = (x[0]^2 + x[1]) * (1 + t^{power}); time = {time}; \
             adapt(every: 3, levels: 2, fraction: 0.5, coarsen: 0.2); }}"
        ))
        .unwrap_or_else(|error| panic!("{time}: {error}"));
        let sizes: Vec<usize> = steps.iter().map(|step| step.cells).collect();
        let error = solution.errors[0].1;
        assert!(sizes.windows(2).any(|pair| pair[1] < pair[0]), "{time}: {sizes:?}");
        assert!(error < 1e-8, "{time}: {error:e} on {sizes:?}");
    };
    std::thread::scope(|scope| {
        schemes.iter().for_each(|scheme| drop(scope.spawn(move || check(scheme))));
    });
}

/// A bump is carried around by upwind fluxes; no cell at the boundary sees it.
#[test]
fn discontinuous_fields_keep_their_integral() {
    for (cell, cells) in [("quad", 6), ("tri", 5)] {
        let (_, steps, masses) = watched(&format!(
            "form rotation {{ field c: scalar in L2(k); let b = [0.5 - x[1], x[0] - 0.5]; \
             f0[c] = dt(c); f1[c] = -c * b; \
             on interior {{ f0[jump(c)] = dot(b, n) * avg(c) + abs(dot(b, n)) / 2 * jump(c); }} }} \
             problem turn solves rotation {{ mesh = box(dim: 2, cells: {cells}, cell: {cell}); degree = 2; \
             time = rk(order: 4, to: 0.6, step: 1e-2, every: 0.1); \
             initial c = exp(-200 * ((x[0] - 0.5)^2 + (x[1] - 0.75)^2)); \
             adapt(every: 10, levels: 3, coarsen: 0.05); report mass = integral(c); }}"
        ));
        let merges = steps.windows(2).any(|pair| pair[1].cells < pair[0].cells);
        assert!(merges, "{cell}: {steps:?}");
        let change = masses.iter().fold(0.0, |most: f64, mass| most.max((mass - masses[0]).abs()));
        assert!(change < 1e-13, "{cell}: {change:e} of {}", masses[0]);
    }
}

/// Two processes mark the same cells as one, and get the same solution up to solver errors.
#[test]
fn processes_follow_a_front_like_one() {
    for cell in ["quad", "tri"] {
        let mesh = format!("box(dim: 2, cells: 4, cell: {cell})");
        let (problem, mesh) = compiled(&front(&mesh, 2, "adapt(every: 10, levels: 2);"));
        let mesh = Arc::new(mesh);
        let run_on = |mesh: Arc<Mesh>| {
            let mut steps = Steps::default();
            let solution = run_steps(&problem, mesh, None, &Platform::native(), &mut steps);
            (solution.expect("a solution").errors[0].1, steps.0)
        };
        let (error, steps) = run_on(Arc::clone(&mesh));
        for (found, taken) in each(2, |group| run_on(Arc::clone(&mesh).part(&group))) {
            let sizes = |steps: &[Step]| steps.iter().map(|step| step.dofs).collect::<Vec<_>>();
            assert_eq!(sizes(&taken), sizes(&steps), "{cell}");
            assert!((found - error).abs() < 1e-7 * error, "{cell}: {found:e} and {error:e}");
        }
    }
}

/// Devices take the same meshes.
#[test]
fn devices_follow_a_front_like_the_processor() {
    use runtime::kernels::compile::Target;
    let (problem, mesh) =
        compiled(&front("box(dim: 2, cells: 4)", 2, "adapt(every: 10, levels: 2);"));
    let mesh = Arc::new(mesh);
    let run_on = |platform: &Platform| {
        let mut steps = Steps::default();
        let solution = run_steps(&problem, Arc::clone(&mesh), None, platform, &mut steps);
        (solution.expect("a solution").errors[0].1, steps.0)
    };
    let (error, steps) = run_on(&Platform::native());
    for device in crate::devices::devices() {
        let (found, taken) = run_on(&Platform::new(Target::native(), Some(device)));
        assert!(taken.iter().zip(&steps).all(|(a, b)| a.dofs == b.dofs), "{taken:?}");
        assert!((found - error).abs() < 1e-7 * error, "{found:e} and {error:e}");
    }
}

/// A steady gradient has no residual.
#[test]
fn fields_with_steady_parts_that_no_residual_sees_are_refused() {
    let error = run("form a { field E: vector in Hcurl(k); f0[E] = dt(E); f1[E] = curl(E); } \
         problem p solves a { mesh = box(dim: 2, cells: 2); degree = 1; \
         time = bdf(to: 1, step: 0.1); adapt(every: 2, levels: 1); }")
    .err();
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("would lose them") && said.contains("leave `adapt` out"), "{said}");
}

/// A checkpoint would have to hold the mesh.
#[test]
fn checkpoints_are_refused() {
    struct Wants;
    impl Monitor for Wants {
        fn iteration(&mut self, _: Progress) -> Continue {
            Continue::Yes
        }

        fn wants_checkpoints(&self) -> bool {
            true
        }

        fn step(&mut self, _: &Step, _: &Solution) -> Continue {
            Continue::Yes
        }
    }
    let (problem, mesh) =
        compiled(&front("box(dim: 2, cells: 2)", 1, "adapt(every: 8, levels: 1);"));
    let error = run_steps(&problem, mesh, None, &Platform::native(), &mut Wants).err();
    let said = error.map(|error| error.to_string()).unwrap_or_default();
    assert!(said.contains("does not hold the mesh") && said.contains("help: leave"), "{said}");
}

/// Runs a problem and returns the first report of each step.
fn watched(text: &str) -> (Solution, Vec<Step>, Vec<f64>) {
    let (problem, mesh) = compiled(text);
    let mut watch = Watch::default();
    let solution = run_steps(&problem, mesh, None, &Platform::native(), &mut watch);
    (solution.unwrap_or_else(|error| panic!("{error}")), watch.steps, watch.values)
}

#[derive(Default)]
struct Watch {
    steps: Vec<Step>,
    values: Vec<f64>,
}

impl Monitor for Watch {
    fn iteration(&mut self, _: Progress) -> Continue {
        Continue::Yes
    }

    fn step(&mut self, step: &Step, solution: &Solution) -> Continue {
        if let Some(report) = solution.reports.first()
            && let ReportValue::Value(_, values) = &report.value
        {
            self.values.push(values[0]);
        }
        self.steps.push(step.clone());
        Continue::Yes
    }
}
