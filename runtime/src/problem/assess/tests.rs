//! Compiled kernels and the interpreter of point forms compute the same errors and energies.

use super::*;
use crate::assert_close;
use crate::problem::Context;
use crate::problem::testing::problem;
use crate::reference::BoundedValue;

/// Returns nodal values of the known solutions plus a random perturbation of size `beside`.
fn state(context: &Context, beside: f64) -> Vec<f64> {
    let on = &context.on;
    let mut u = vec![0.0; on.n_dofs()];
    for (field, exact) in &context.problem.exact {
        let space = &on.fields[*field].space;
        let points = space.points(&on.mesh, &on.partition).expect("points");
        let values = crate::support::expression::evaluate(
            exact,
            &exact.value,
            &points,
            &context.parameters,
            |_| 0.0,
        );
        u[on.dofs_of(*field)].copy_from_slice(&values);
    }
    let noise = |i: usize| (i as f64 * 12.9898).sin();
    u.iter_mut().enumerate().for_each(|(i, u)| *u += beside * noise(i));
    u
}

fn here<'a>(platform: &'a Platform, table_cache: &'a mut TableCache) -> SharedResources<'a> {
    SharedResources { platform, table_cache }
}

/// Compares kernels and interpreter: errors and energy; `size` is the magnitude of the solution.
fn compare(text: &str, beside: f64, size: f64, execution: Execution) {
    let context = problem(text);
    let u = state(&context, beside);
    let Context { problem, on, .. } = &context;
    let of = EvaluationState::of(&context, &u);
    let native = Platform::from(Target { execution, ..Target::native() });
    let table_cache = &mut TableCache::default();
    let found = errors_by_kernels(&problem.exact, of, here(&native, table_cache)).expect("errors");
    let interpreted = Target { execution: Execution::Interpreted, ..native.target }.into();
    let (wanted, energy) =
        assess(problem, of, IntegrationBackend::new(&interpreted), table_cache).expect("numbers");
    // Rounding error of values and gradients: a nodal value divided by the cell size.
    let slopes = 100.0 * size * (on.mesh.n_cells() as f64).sqrt();
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(found.0, wanted.0);
        let (l2, h1) = (wanted.1.max(100.0 * size), wanted.2.max(slopes));
        assert_close!(found.1, BoundedValue::with_scale(wanted.1, l2), f64::EPSILON, "{text}");
        assert_close!(found.2, BoundedValue::with_scale(wanted.2, h1), f64::EPSILON, "{text}");
        assert!(beside == 0.0 || wanted.1 > 0.1 * beside, "{text}: {wanted:?}");
    }
    let integral = &problem.form.integrals[0];
    assert_eq!(energy.is_some(), integral.symmetric, "{text}");
    if let Some(energy) = energy {
        let found = energy_by_kernels(integral, of, here(&native, table_cache)).expect("an energy");
        let scale = energy.abs().max(slopes * slopes);
        assert_close!(found, BoundedValue::with_scale(energy, scale), f64::EPSILON, "{text}");
    }
}

const PAIR: &str = "form pair { field u: vector; field p: scalar in H1(k - 1); aux a: scalar on cells; param c = 2;
    f0[u] = a * u - [1, 0]; f1[u] = c * grad(u) - p * I; f0[p] = div(u) + x[0] * t; }
problem p solves pair { mesh = MESH; degree = 2; aux a = 1 + x[0]; t = 0.5; dirichlet u on all;
    exact u = [sin(x[0]) * c, x[1]^2]; exact p = if x[0] > 0.4 { exp(x[1]) } else { t * h }; }";

#[test]
fn errors_of_several_fields_on_all_cells() {
    for mesh in [
        "ball(dim: 2, refine: 1, order: 2)",
        "box(dim: 2, cells: 3, cell: tri, deform: 0.1)",
        "box(cells: 2, cell: hex)",
        "ball(refine: 0, order: 2, cell: tet)",
    ] {
        let three = !mesh.contains("dim: 2");
        let text = PAIR.replace("MESH", mesh);
        let text = match three {
            true => text.replace("[1, 0]", "[1, 0, 0]").replace("x[1]^2]", "x[1]^2, x[2]]"),
            false => text,
        };
        compare(&text, 0.1, 3.0, Execution::Interpreted);
    }
}

const ENERGIES: [&str; 4] = [
    "f0[u] = -x[0]; f1[u] = k0 * grad(u);",
    "f0[u] = u^3 - 1; f1[u] = (1 + dot(grad(u), grad(u))) * grad(u);",
    "energy = k0 * dot(grad(u), grad(u)) / 2 + cos(u);",
    "energy = sqrt(1 + dot(grad(u), grad(u))) - a * u;",
];

fn energetic(body: &str, size: f64) -> String {
    format!(
        "form f {{ field u: scalar; param k0 = 2; aux a: scalar; {body} }} problem p solves f {{ \
         mesh = box(dim: 2, cells: 3, deform: 0.1); degree = 2; aux a = 1 + x[0]; \
         dirichlet u on all; exact u = {size:e} * sin(x[0] + 2 * x[1]); }}"
    )
}

#[test]
fn energies_are_integrals_along_a_ray() {
    for body in ENERGIES {
        compare(&energetic(body, 1.0), 0.1, 1.0, Execution::Interpreted);
    }
    compare(&energetic(ENERGIES[1], 1.0), 0.1, 1.0, Execution::Automatic);
}

#[test]
fn small_errors_and_those_whose_squares_are_no_numbers() {
    // The error is 1e-12 relative to the solution.
    compare(&energetic(ENERGIES[0], 1.0), 1e-12, 1.0, Execution::Interpreted);
    for size in [1e-300, 1e-200, 1e-140, 1e200, 1e300] {
        let text = energetic(ENERGIES[0], size);
        let context = problem(&text);
        let u = state(&context, 1e-3 * size);
        let Context { problem, on, elements, parameters, .. } = &context;
        let of = EvaluationState::of(&context, &u);
        let platform = Target { execution: Execution::Interpreted, ..Target::native() }.into();
        let found =
            errors_by_kernels(&problem.exact, of, here(&platform, &mut TableCache::default()))
                .expect("errors");
        let wanted = functional::errors(
            on,
            (0, measuring_rule(on, elements.rule)),
            &u,
            &problem.exact[0].1,
            parameters,
        );
        let wanted = wanted.expect("errors");
        let close = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-9;
        assert!(close(found[0].1, wanted.0) && close(found[0].2, wanted.1), "{found:?} {wanted:?}");
        assert!(wanted.0 > 1e-4 * size, "{wanted:?}");
    }
}

#[test]
fn single_precision_is_measured_in_double() {
    let context = problem(&energetic(ENERGIES[0], 1.0));
    let u = state(&context, 1e-3);
    let elements = &context.elements;
    let of = EvaluationState::of(&context, &u);
    let platform = Target { precision: Precision::F32, ..Target::native() }.into();
    let means = IntegrationBackend { many: 0, ..IntegrationBackend::new(&platform) };
    if let Some(found) = means.kernels(of.on, elements.rule) {
        assert_eq!(found.target.precision, Precision::F64);
    }
    let few = IntegrationBackend::new(&platform);
    assert!(few.kernels(of.on, elements.rule).is_none());
}
