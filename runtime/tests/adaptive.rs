//! Adaptive runs: convergence rates against known solutions, nonlinear forms, several fields, and stopping criteria.

#[path = "adaptive/in_time.rs"]
mod in_time;
#[path = "adaptive/vectors.rs"]
mod vectors;

use fem_dsl::check::problem::Overrides;
use fem_dsl::problem::Problem;
use fem_dsl::source::Source;
use kernels_gen::element::{default_rule, tabulate_rule};
use runtime::estimate::adapt::{AdaptError, AdaptiveMesh};
use runtime::mesh::{Cell, Mesh};
use runtime::problem::{Monitor, Platform, RunError, Solution, Step, run_steps};
use runtime::solve::{Continue, Progress};
use runtime::space::discretisation::Discretisation;
use std::path::Path;

const LAPLACE: &str = "form laplace { field u: scalar; f1[u] = grad(u); }";
const CORNER: &str = "dirichlet u; \
     exact u = dot(x, x)^(1 / 3) * cos(2 / 3 * atan2(x[0] - x[1], -x[0] - x[1]));";

/// Records the results of all steps.
#[derive(Default)]
struct Steps(Vec<Step>);

impl Monitor for Steps {
    fn iteration(&mut self, _: Progress) -> Continue {
        Continue::Yes
    }

    fn step(&mut self, step: &Step, _: &Solution) -> Continue {
        self.0.push(step.clone());
        Continue::Yes
    }
}

fn compiled(text: &str) -> (Problem, Mesh) {
    let source = Source::new("adaptive.wf", text);
    let (program, found) = fem_dsl::program::compile(&source);
    let program = program.unwrap_or_else(|| panic!("{found:?}"));
    let name = program.problems().next().expect("a problem").name.to_owned();
    let overrides = Overrides::default();
    let (mesh, _) = program.mesh(&name, &overrides).unwrap_or_else(|found| panic!("{found:?}"));
    let mesh = runtime::mesh::load(&mesh, Path::new(".")).expect("a mesh");
    let problem = program.problem(&name, mesh.dim(), &overrides);
    (problem.unwrap_or_else(|found| panic!("{found:?}")), mesh)
}

fn run(text: &str) -> Result<(Solution, Vec<Step>), RunError> {
    let (problem, mesh) = compiled(text);
    let mut steps = Steps::default();
    let solution = run_steps(&problem, mesh, None, &Platform::native(), &mut steps)?;
    Ok((solution, steps.0))
}

/// Returns the rate r in e ∝ N^(−r) over the last steps, by least squares.
fn rate(steps: &[Step], error: impl Fn(&Step) -> f64) -> f64 {
    let points: Vec<[f64; 2]> =
        steps.iter().map(|step| [(step.dofs as f64).ln(), error(step).ln()]).collect();
    let mean = |c: usize| points.iter().map(|at| at[c]).sum::<f64>() / points.len() as f64;
    let (x, y) = (mean(0), mean(1));
    let above: f64 = points.iter().map(|at| (at[0] - x) * (at[1] - y)).sum();
    let below: f64 = points.iter().map(|at| (at[0] - x).powi(2)).sum();
    -above / below
}

/// Checks that energy-norm errors and estimates decrease at the optimal rate.
fn falls(text: &str, last: usize, wanted: f64) {
    let (_, steps) = run(text).expect("a solution");
    let tail = &steps[steps.len() - last..];
    let errors = rate(tail, |step| step.errors[0].2);
    let estimates = rate(tail, |step| step.estimate.expect("an estimate"));
    assert!((errors - wanted).abs() < 0.1, "errors fall with {errors}, not {wanted}");
    assert!((estimates - wanted).abs() < 0.1, "estimates fall with {estimates}, not {wanted}");
    assert!(steps.iter().all(|step| step.estimate.is_some() && step.kind.word() == "adapt"));
}

#[test]
fn around_a_corner_of_the_plane_errors_fall_as_for_smooth_solutions() {
    for (degree, fraction, most, last) in
        [(1, 0.5, 2500, 4), (2, 0.5, 2600, 4), (3, 0.5, 28_000, 5)]
    {
        let text = format!(
            "{LAPLACE} problem p solves laplace {{ mesh = lshape(dim: 2, refine: 1); degree = {degree}; {CORNER} \
             solver = cg(rtol: 1e-9); adapt(steps: 60, fraction: {fraction}, max_dofs: {most}); }}"
        );
        falls(&text, last, degree as f64 / 2.0);
    }
}

/// Corners that are divided as often as numbers of cells allow end a run, whose last solution stays.
#[test]
fn refinement_ends_at_the_finest_cells() {
    let text = format!(
        "{LAPLACE} problem p solves laplace {{ mesh = lshape(dim: 2, refine: 1); degree = 6; {CORNER} \
         solver = direct; adapt(steps: 60, fraction: 0.5); }}"
    );
    let (solution, steps) = run(&text).expect("a solution");
    assert!((29..60).contains(&steps.len()), "{}", steps.len());
    let note = solution.notes.iter().find(|note| note.contains("`adapt` stops"));
    assert!(note.is_some_and(|note| note.contains("divided 30 times")), "{:?}", solution.notes);
}

#[test]
fn triangles_follow_a_corner_too() {
    let text = format!(
        "{LAPLACE} problem p solves laplace {{ mesh = lshape(dim: 2, refine: 1, cell: tri); degree = 2; {CORNER} \
         solver = cg(rtol: 1e-9); adapt(steps: 60, fraction: 0.4, max_dofs: 5e3); }}"
    );
    falls(&text, 6, 1.0);
}

/// Interior penalty around a corner: errors in cells, and jumps, fall as for smooth solutions.
#[test]
fn discontinuous_fields_follow_a_corner_too() {
    let exact = "dot(x, x)^(1 / 3) * cos(2 / 3 * atan2(x[0] - x[1], -x[0] - x[1]))";
    for (cell, degree, fraction, most, last) in [
        ("quad", 1, 0.5, 2500, 4),
        ("quad", 2, 0.5, 4000, 4),
        ("quad", 3, 0.75, 30_000, 3),
        ("tri", 2, 0.5, 4000, 5),
    ] {
        let text = format!(
            "form sipg {{ field u: scalar in L2(k); f1[u] = grad(u); \
             on interior {{ energy = avg(penalty(u)) * jump(u)^2 - dot(avg(grad(u)), n) * jump(u); }} \
             on boundary \"boundary\" {{ let g = {exact}; energy = penalty(u) * (u - g)^2 - dot(grad(u), n) * (u - g); }} }} \
             problem p solves sipg {{ mesh = lshape(dim: 2, refine: 1, cell: {cell}); degree = {degree}; \
             exact u = {exact}; solver = cg(rtol: 1e-9); \
             adapt(steps: 60, fraction: {fraction}, max_dofs: {most}); }}"
        );
        falls(&text, last, degree as f64 / 2.0);
    }
}

/// Upwind fluxes: the layer in which the solution changes is refined.
#[test]
fn transport_is_refined_along_its_layer() {
    let (solution, steps) = run("form upwind { field u: scalar in L2(k); let b = [2, 1]; f1[u] = -u * b; f0[u] = 0; \
         on interior { f0[jump(u)] = dot(b, n) * avg(u) + abs(dot(b, n)) / 2 * jump(u); } \
         on boundary \"x0\", \"y0\" { f0[u] = dot(b, n) * (if x[1] > 0.3 { 1 } else { 0 }); } \
         on boundary \"x1\", \"y1\" { f0[u] = dot(b, n) * u; } } \
         problem p solves upwind { mesh = box(dim: 2, cells: 8); degree = 1; adapt(steps: 6, fraction: 0.7); }")
        .expect("a solution");
    let mesh = &solution.context.on.mesh;
    let off = |cell: usize| (mesh.centre(cell)[1] - 0.3 - mesh.centre(cell)[0] / 2.0).abs();
    let (mut near, mut far) = (0, 0);
    for cell in (0..mesh.n_cells()).filter(|&cell| mesh.diameter(cell) < 0.5f64.sqrt() / 16.0) {
        *(if off(cell) < 0.15 { &mut near } else { &mut far }) += 1;
    }
    assert!(near > 100 && far < near / 20, "{near} {far}");
    assert!(steps.last().is_some_and(|step| step.dofs < 4 * 64 * 64 / 2), "{steps:?}");
}

#[test]
fn around_a_corner_of_space_errors_fall_as_for_smooth_solutions() {
    let text = "form poisson { field u: scalar; f0[u] = 3 / 4 * dot(x, x)^(-3 / 4); f1[u] = grad(u); } \
         problem fichera solves poisson { mesh = lshape(dim: 3, refine: 1); degree = 2; dirichlet u; \
         exact u = dot(x, x)^(1 / 4); solver = cg(rtol: 1e-9); adapt(steps: 40, fraction: 0.5, max_dofs: 8e3); }";
    let (_, steps) = run(text).expect("a solution");
    let found = rate(&steps[steps.len() - 5..], |step| step.errors[0].2);
    assert!((found - 2.0 / 3.0).abs() < 0.1, "{found}");
}

#[test]
fn nonlinear_and_coupled_forms_adapt() {
    let (_, steps) = run(
        "form p_laplacian { field u: scalar; f0[u] = -1; \
         f1[u] = (1e-4 + dot(grad(u), grad(u)))^(1 / 2) * grad(u); } \
         problem p solves p_laplacian { mesh = lshape(dim: 2, refine: 1); degree = 2; dirichlet u = 0 on all; \
         adapt(steps: 6, fraction: 0.4, coarsen: 0.02); }",
    )
    .expect("a solution");
    let of = |step: &Step| step.estimate.expect("an estimate");
    assert_eq!(steps.len(), 7);
    assert!(of(&steps[6]) < 0.4 * of(&steps[0]), "{steps:?}");
    let (solution, steps) =
        run("form stokes { field u: vector in H1(k); field p: scalar in H1(k - 1); \
         f1[u] = grad(u) - p * I; f0[p] = -div(u); } \
         problem p solves stokes { mesh = lshape(dim: 2, refine: 1); degree = 2; \
         dirichlet u = [x[1]^2, x[0]^3] on all; mean p = 0; adapt(steps: 5, fraction: 0.4); }")
        .expect("a solution");
    assert!(of(&steps[5]) < 0.6 * of(&steps[0]), "{steps:?}");
    assert!(solution.context.on.mesh.hanging().is_some());
}

#[test]
fn runs_end_for_the_reason_that_they_say() {
    let with = |adapt: &str, exact: &str| {
        format!(
            "{LAPLACE} problem p solves laplace {{ mesh = lshape(dim: 2, refine: 1); degree = 2; {exact} {adapt} }}"
        )
    };
    let linear = "dirichlet u; exact u = x[0] + 2 * x[1];";
    let (solution, steps) = run(&with("adapt(steps: 5);", linear)).expect("a solution");
    // Exact solutions only have rounding errors.
    assert!(steps.len() <= 2 || steps[0].estimate.expect("an estimate") < 1e-10, "{steps:?}");
    assert!(solution.errors[0].1 < 1e-10);
    let (_, steps) = run(&with("adapt(steps: 9, until: 0.1);", CORNER)).expect("a solution");
    let last = steps.last().and_then(|step| step.estimate).expect("an estimate");
    assert!(last <= 0.1 && steps.len() < 10);
    let (solution, steps) =
        run(&with("adapt(steps: 9, max_dofs: 150);", CORNER)).expect("a solution");
    assert!(steps.iter().all(|step| step.dofs <= 150) && steps.len() < 10);
    assert!(solution.notes.iter().any(|note| note.contains("max_dofs")), "{:?}", solution.notes);
    let (solution, steps) =
        run(&with("adapt(steps: 2, until: 1e-9);", CORNER)).expect("a solution");
    assert_eq!(steps.len(), 3);
    assert!(
        solution.notes.iter().any(|note| note.contains("after 2 steps")),
        "{:?}",
        solution.notes
    );
}

/// Returns a randomly refined mesh with a function of a space on it.
fn grown(cell: &str, dim: usize) -> AdaptiveMesh {
    let text = format!(
        "{LAPLACE} problem p solves laplace {{ mesh = lshape(dim: {dim}, cell: {cell}, refine: {}); degree = 1; \
         dirichlet u = 0 on all; }}",
        4 - dim
    );
    let mut adaptive = AdaptiveMesh::new(compiled(&text).1).expect("a mesh");
    for step in 0..3 {
        let mesh = adaptive.mesh().expect("a mesh");
        let marked: Vec<bool> =
            (0..mesh.n_cells()).map(|cell| (cell * 7 + step) % 5 == 0).collect();
        adaptive.adapt(&mesh, &marked, &[]).expect("few cells");
    }
    adaptive
}

#[test]
fn solutions_go_from_mesh_to_mesh_exactly_where_spaces_have_them() {
    for (cell, dim) in [("quad", 2), ("hex", 3), ("tri", 2), ("tet", 3)] {
        let mut adaptive = grown(cell, dim);
        let on = |mesh: Mesh| {
            let element =
                kernels_gen::element::Lagrange::continuous(mesh.cell(), 2).expect("an element");
            Discretisation::new(mesh, &[(element, 2)]).expect("a discretisation")
        };
        let function = |x: &[f64; 3], row: &mut [f64]| {
            row[0] = 1.0 + x[0] * x[1] - 2.0 * x[2] * x[0];
            row[1] = x[1] * x[1] + x[2];
        };
        let values = |on: &Discretisation| {
            let space = &on.fields[0].space;
            space.interpolate(&space.points(&on.mesh, &on.partition).expect("points"), function)
        };
        let before = on(adaptive.mesh().expect("a mesh"));
        let n = before.mesh.n_cells();
        assert!(n > 100, "{cell}: {n}");
        let refine: Vec<bool> = (0..n).map(|cell| cell % 3 == 0).collect();
        let coarsen: Vec<bool> = (0..n).map(|cell| cell % 3 != 0 || cell > n / 2).collect();
        let changed = adaptive.adapt(&before.mesh, &refine, &coarsen).expect("few cells");
        assert!(changed.refined > 0, "{cell}");
        let after = on(adaptive.mesh().expect("a mesh"));
        let found = AdaptiveMesh::transfer(&before, &values(&before), &after).expect("one forest");
        for (found, wanted) in found.iter().zip(values(&after)) {
            assert!((found - wanted).abs() < 1e-13, "{cell}: {found} and {wanted}");
        }
        // Coarsens all cells, and back.
        let all = vec![true; after.mesh.n_cells()];
        let changed = adaptive.adapt(&after.mesh, &[], &all).expect("fewer cells");
        assert!(changed.coarsened > 0, "{cell}");
        let coarser = on(adaptive.mesh().expect("a mesh"));
        let found = AdaptiveMesh::transfer(&after, &values(&after), &coarser).expect("one forest");
        for (found, wanted) in found.iter().zip(values(&coarser)) {
            assert!((found - wanted).abs() < 1e-13, "{cell}: {found} and {wanted}");
        }
    }
}

/// Returns |det ∂x/∂ξ| of a straight cell.
fn determinant(mesh: &Mesh, cell: usize) -> f64 {
    let vertices = mesh.vertices(cell);
    let edges = if mesh.cell().is_tensor() { [1, 2, 4] } else { [1, 2, 3] };
    let point = |vertex: usize| mesh.points()[vertices[vertex] as usize];
    let edge = |axis: usize| [0, 1, 2].map(|c| point(edges[axis])[c] - point(0)[c]);
    let (a, b) = (edge(0), edge(1));
    let c = if mesh.dim() == 2 { [0.0, 0.0, 1.0] } else { edge(2) };
    let cross = [b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]];
    (a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]).abs()
}

/// The integral of a discontinuous function, and functions of the space, stay when cells merge.
#[test]
fn discontinuous_functions_are_projected_where_cells_merge() {
    for (cell, dim, degree) in
        [("quad", 2, 1), ("quad", 2, 3), ("hex", 3, 2), ("tri", 2, 3), ("tet", 3, 2)]
    {
        let mut adaptive = grown(cell, dim);
        let on = |mesh: Mesh| {
            let element = kernels_gen::element::Lagrange::discontinuous(mesh.cell(), degree)
                .expect("an element");
            Discretisation::new(mesh, &[(element, 2)]).expect("a discretisation")
        };
        // A polynomial, and a function outside of the space.
        let function = |x: &[f64; 3], row: &mut [f64]| {
            row[0] = 1.0 + x[0] - 2.0 * x[1] + x[2];
            row[1] = (20.0 * (x[0] + x[1])).sin();
        };
        let values = |on: &Discretisation| {
            let space = &on.fields[0].space;
            space.interpolate(&space.points(&on.mesh, &on.partition).expect("points"), function)
        };
        let before = on(adaptive.mesh().expect("a mesh"));
        let all = vec![true; before.mesh.n_cells()];
        let changed = adaptive.adapt(&before.mesh, &[], &all).expect("fewer cells");
        assert!(changed.coarsened > 0, "{cell}");
        let after = on(adaptive.mesh().expect("a mesh"));
        let (old, wanted) = (values(&before), values(&after));
        let found = AdaptiveMesh::transfer(&before, &old, &after).expect("one hierarchy");
        for (found, wanted) in found.chunks(2).zip(wanted.chunks(2)) {
            assert!((found[0] - wanted[0]).abs() < 1e-12, "{cell} {degree}: {found:?} {wanted:?}");
        }
        let integral = |on: &Discretisation, u: &[f64]| -> f64 {
            let space = &on.fields[0].space;
            let rule = default_rule(on.mesh.cell(), degree, 1, None);
            let table = tabulate_rule(space.element(), rule);
            let of_cell = |cell: usize| -> f64 {
                let nodes = space.cell_nodes(cell);
                let at = |q: usize| -> f64 {
                    let terms = nodes.iter().enumerate();
                    terms.map(|(i, &node)| table.value(q, i) * u[2 * node as usize + 1]).sum()
                };
                let weights = rule.weights();
                let sum: f64 = weights.iter().enumerate().map(|(q, weight)| weight * at(q)).sum();
                determinant(&on.mesh, cell) * sum
            };
            (0..on.mesh.n_cells()).map(of_cell).sum()
        };
        let [known, kept] = [integral(&before, &old), integral(&after, &found)];
        let lost = integral(&after, &wanted);
        assert!((known - kept).abs() < 1e-13, "{cell} {degree}: {known} and {kept}");
        assert!((known - lost).abs() > 1e-6, "{cell} {degree}: interpolation keeps it too");
    }
}

#[test]
fn marks_of_another_mesh_are_refused() {
    let mut adaptive = grown("quad", 2);
    let mesh = adaptive.mesh().expect("a mesh");
    let expected = mesh.n_cells();
    let error = adaptive.adapt(&mesh, &[true], &[]).expect_err("one mark");
    assert_eq!(error, AdaptError::Marks { found: 1, expected });
    let all = vec![true; expected];
    adaptive.adapt(&mesh, &all, &[]).expect("few cells");
    let error = adaptive.adapt(&mesh, &all, &[]).expect_err("marks of the mesh before");
    assert!(matches!(error, AdaptError::Marks { .. }), "{error}");
    assert_eq!(mesh.cell(), Cell::Quadrilateral);
}
