//! Systems and problems of the library on devices, in comparison with the CPU.

use super::devices;
use devices::devices;
use std::sync::Arc;
use weakform::{ALL, Device, Error, Form, System, Vector, mesh};

const TEXT: &str = "form diffusion {
    field u: scalar;
    aux c: scalar on nodes;
    param a = 1;
    f0[u] = c * u^3 - a;
    f1[u] = (1 + u^2) * grad(u);
}
problem square solves diffusion {
    mesh = box(dim: 2, cells: 6, deform: 0.1);
    degree = 2;
    aux c = 1 + x[0];
    dirichlet u = 0;
    report size = integral(u^2 * c);
    report out = integral(dot(grad(u), n), on: \"x1\") + integral(h * u);
    report held = reaction(u);
    report top = maximum(u);
}";

fn system(text: &str, on: &str, device: Option<Arc<dyn Device>>) -> Result<System, Error> {
    let setup = Form::parse(text, "diffusion")?.on(mesh(on)?).degree(2);
    let setup = setup.aux("c", |x| 1.0 + x[0]).dirichlet("u", ALL, |x| x[0] * x[1]);
    match device {
        Some(device) => setup.device(device).build(),
        None => setup.build(),
    }
}

/// Returns the largest difference, relative to the largest entry.
fn difference(a: &Vector, b: &Vector) -> f64 {
    let (a, b) = (a.to_vec(), b.to_vec());
    let most = b.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / most
}

#[test]
fn a_system_on_a_device_does_what_it_does_on_the_processor() -> Result<(), Error> {
    for device in devices() {
        for on in ["box(dim: 2, cells: 5, cell: tri)", "box(dim: 3, cells: 3, deform: 0.1)"] {
            let mut here = system(TEXT, on, None)?;
            let mut there = system(TEXT, on, Some(device.clone()))?;
            assert_eq!(there.kernels().backend, device.backend());
            let mut results = Vec::new();
            for system in [&mut here, &mut there] {
                let u = system.interpolate("u", |x| 0.3 * (3.0 * x[0] + x[1]).sin())?;
                let w = system.interpolate("u", |x| x[0].cos())?;
                system.set_param("a", 2.5)?;
                system.linearise(&u)?;
                let [mut r, mut y, mut d] = [system.vector(), system.vector(), system.vector()];
                system.residual(&u, &mut r)?;
                system.apply(&w, &mut y)?;
                system.diagonal(&mut d)?;
                let mut solution = system.initial();
                let report = system.solve(&mut solution)?;
                let error = system.error_l2("u", &solution, |_| 0.0)?;
                results.push((report.iterations, [r, y, d], solution, error));
            }
            let [(steps, here, solved, norm), (count, there, found, same)] = &results[..] else {
                panic!("two results");
            };
            assert_eq!(steps, count, "{on}");
            for (name, (a, b)) in ["R", "J w", "diag J"].iter().zip(there.iter().zip(here)) {
                let difference = difference(a, b);
                assert!(difference < 1e-12, "{name} on {on}: {difference:.1e}");
            }
            assert!(difference(found, solved) < 1e-8 && (norm - same).abs() < 1e-8 * norm, "{on}");
        }
    }
    Ok(())
}

#[test]
fn a_problem_on_a_device_has_the_processors_solution() -> Result<(), Error> {
    let problem = Form::parse(TEXT, "diffusion")?.problem("square")?;
    let here = problem.run()?;
    for device in devices() {
        let there = problem.clone().device(device).run()?;
        assert_eq!(here.iterations(), there.iterations());
        for (a, b) in here.values().iter().zip(there.values()) {
            assert!((a - b).abs() < 1e-9, "{a} and {b}");
        }
        for name in ["size", "out", "held", "top"] {
            let [a, b] = [&here, &there].map(|solution| solution.report(name)?.number());
            let (a, b) = (a.expect("a number"), b.expect("a number"));
            assert!((a - b).abs() < 1e-8 * a.abs(), "{name}: {a} and {b}");
        }
    }
    Ok(())
}
