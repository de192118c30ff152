//! Reports of problems on their solutions, in comparison with exact values.

use weakform::{Execution, Form, ReportValue, Solution, StepKind};

/// Solves a problem with the solution u = 1 + 2 x + 3 y (+ 4 z), with these reports.
fn solved(mesh: &str, reports: &str, execution: Execution) -> Solution {
    let dim = if mesh.contains("dim: 2") { 2 } else { 3 };
    let u = if dim == 2 { "1 + 2 * x[0] + 3 * x[1]" } else { "1 + 2 * x[0] + 3 * x[1] + 4 * x[2]" };
    let text = format!(
        "form poisson {{
            field u: scalar;
            aux kappa: scalar on cells;
            aux weight: scalar on nodes;
            param two = 2;
            let flux = kappa * grad(u);
            fn square(a) = a * a;
            f1[u] = flux * weight;
        }}
        problem p solves poisson {{
            mesh = {mesh};
            degree = 2;
            aux kappa = 3;
            aux weight = 1;
            dirichlet u = {u} on all;
            {reports}
        }}"
    );
    let form = Form::parse(&text, "poisson").unwrap_or_else(|error| panic!("{error}"));
    let problem = form.problem("p").expect("a problem").execution(execution);
    problem.run().unwrap_or_else(|error| panic!("{error}"))
}

fn number(solution: &Solution, name: &str) -> f64 {
    let found = solution.report(name).unwrap_or_else(|| panic!("no report {name}"));
    found.number().unwrap_or_else(|| panic!("{name} is no number: {found:?}"))
}

#[track_caller]
fn close(found: f64, known: f64) {
    assert!((found - known).abs() <= 1e-11 * known.abs().max(1.0), "{found} for {known}");
}

const REPORTS: &str = "
    report volume = integral(1);
    report average = integral(u) / integral(1);
    report moment = two * integral(x[0] * flux);
    report squared = integral(square(u) * weight);
    report size = l2(u);
    report out = integral(dot(flux, n), on: \"x1\");
    report all_out = integral(flux * n[0], on: \"x1\");
    report side = integral(1, on: \"x1\") + integral(x[0], on: \"y1\");
    report held = reaction(u, on: \"x1\");
    report lowest = minimum(u);
    report highest = maximum(two * u - t + norm(flux) - norm(flux));
    report width = integral(h) / integral(1);
";

/// ∫ (1 + 2x + 3y)² and ∫ (1 + 2x + 3y + 4z)² over the unit square and cube.
#[test]
fn integrals_extrema_and_reactions_are_exact_on_every_cell() {
    for mesh in [
        "box(dim: 2, cells: 3)",
        "box(dim: 2, cells: 3, cell: tri)",
        "box(dim: 2, cells: 4, deform: 0.1)",
        "box(dim: 3, cells: 2)",
        "box(dim: 3, cells: 2, cell: tet)",
        "box(dim: 3, cells: 2, deform: 0.1)",
    ] {
        let three = mesh.contains("dim: 3");
        // Compiled on one cell of each kind.
        let compiled = mesh.ends_with("tri)") || mesh.contains("dim: 3, cells: 2, deform");
        let executions = [Execution::Interpreted, Execution::Compiled];
        for execution in executions.into_iter().take(if compiled { 2 } else { 1 }) {
            let solution = solved(mesh, REPORTS, execution);
            close(number(&solution, "volume"), 1.0);
            close(number(&solution, "average"), if three { 5.5 } else { 3.5 });
            let squares = if three { 30.25 + 29.0 / 12.0 } else { 12.25 + 13.0 / 12.0 };
            close(number(&solution, "squared"), squares);
            close(number(&solution, "size"), squares.sqrt());
            close(number(&solution, "out"), 6.0);
            close(number(&solution, "side"), 1.5);
            // The reaction of the condition is the natural flux.
            close(number(&solution, "held"), 6.0);
            close(number(&solution, "lowest"), 1.0);
            close(number(&solution, "highest"), if three { 20.0 } else { 12.0 });
            assert!(number(&solution, "width") > 0.3);
            let [flux_x, flux_y] = [6.0, 9.0];
            for (name, known) in
                [("moment", [flux_x, flux_y, 12.0]), ("all_out", [flux_x, flux_y, 12.0])]
            {
                let Some(ReportValue::Value(_, values)) = solution.report(name) else {
                    panic!("{name}")
                };
                assert_eq!(values.len(), if three { 3 } else { 2 });
                values.iter().zip(known).for_each(|(&found, known)| close(found, known));
            }
            assert_eq!(solution.range("u").map(<[_]>::len), Some(1));
        }
    }
}

#[test]
fn points_and_lines_have_the_values_of_the_solution() {
    let reports = "
        report at = u([0.3, 0.4]);
        report corner = 1 / u([1, 1]);
        report flux_along = line(flux, from: [0, 0], to: [1, 0.5], points: 3);
        report along = line(square(u), from: [0.25, 0.25], to: [0.75, 0.25]);
    ";
    for mesh in ["box(dim: 2, cells: 3, deform: 0.1)", "box(dim: 2, cells: 3, cell: tri)"] {
        let solution = solved(mesh, reports, Execution::Interpreted);
        close(number(&solution, "at"), 2.8);
        close(number(&solution, "corner"), 1.0 / 6.0);
        let Some(ReportValue::Line(_, points)) = solution.report("flux_along") else {
            panic!("a line")
        };
        assert_eq!(points.len(), 3);
        assert_eq!(points[1].0, [0.5, 0.25, 0.0]);
        for (_, flux) in points {
            close(flux[0], 6.0);
            close(flux[1], 9.0);
        }
        let Some(ReportValue::Line(_, points)) = solution.report("along") else { panic!("a line") };
        assert_eq!(points.len(), 101);
        for (x, values) in points {
            close(values[0], (1.0 + 2.0 * x[0] + 3.0 * x[1]).powi(2));
        }
    }
}

#[test]
fn what_is_0_everywhere_is_reported() {
    let reports = "report none = integral(0 * u); report least = minimum(0 * u);
        report at = line(0 * u, from: [0, 0], to: [1, 1], points: 2);";
    let solution = solved("box(dim: 2, cells: 3)", reports, Execution::Interpreted);
    let [step] = solution.steps() else { panic!("{:?}", solution.steps()) };
    assert_eq!((step.cells, step.dofs), (solution.cells(), solution.dofs()));
    assert_eq!((step.kind, step.estimate), (StepKind::Solve, None));
    assert_eq!((number(&solution, "none"), number(&solution, "least")), (0.0, 0.0));
    let Some(ReportValue::Line(_, points)) = solution.report("at") else { panic!("a line") };
    assert!(points.iter().all(|(_, values)| values == &[0.0]), "{points:?}");
}

#[test]
fn a_report_point_or_line_that_leaves_the_mesh_is_a_gap_and_one_beside_a_curved_side_is_noted() {
    let text = |at: &str| {
        format!(
            "form f {{ field u: scalar; f0[u] = -4; f1[u] = grad(u); }}
             problem p solves f {{
                 mesh = ball(dim: 2, refine: 2); dirichlet u = 0; report at = u({at});
                 report inside = u([0, 0]); report cut = line(u, from: [0, 0], to: {at}, points: 3);
             }}"
        )
    };
    let run = |at: &str| {
        let form = Form::parse(&text(at), "f").expect("a form");
        form.problem("p").expect("a problem").execution(Execution::Interpreted).run()
    };
    let solution = run("[4, 0]").expect("outside");
    assert!(number(&solution, "at").is_nan() && number(&solution, "inside") > 0.9);
    let Some(ReportValue::Line(_, points)) = solution.report("cut") else { panic!("a line") };
    let gaps: Vec<bool> = points.iter().map(|(_, values)| values[0].is_nan()).collect();
    assert_eq!(gaps, [false, true, true]);
    let solution = run("[0.3, 0.9539392014169457]").expect("beside");
    assert!(solution.notes().iter().any(|note| note.contains("beside the mesh")));
}

/// ∫ exp(−50 (x − 0.3)²) dx from 0 to 1 is 0.25032445820538396; the rule of degree 1 on two cells has an error of 6e-2,
/// that of reports 4e-3.
#[test]
fn reports_energies_and_errors_take_the_larger_of_the_problems_rule_and_their_own() {
    let run = |quadrature: &str| {
        let text = format!(
            "form f {{
                field u: scalar;
                energy = u^2 / 2 + dot(grad(u), grad(u)) / 2 - exp(-50 * (x[0] - 0.3)^2) * u;
            }}
            problem p solves f {{
                mesh = box(dim: 2, cells: [2, 1]);
                {quadrature}
                dirichlet u = 1;
                exact u = 1 + exp(-25 * (x[0] - 0.3)^2);
                report mass = integral(exp(-50 * (x[0] - 0.3)^2));
                report stored = integral(u^2 / 2 + dot(grad(u), grad(u)) / 2 - exp(-50 * (x[0] - 0.3)^2) * u);
                report law = 2 * sqrt(16);
            }}"
        );
        let problem = Form::parse(&text, "f").expect("a form").problem("p").expect("a problem");
        problem.execution(Execution::Interpreted).run().expect("a solution")
    };
    let mass = 0.250_324_458_205_383_96;
    let fine = run("quadrature = 48;");
    close(number(&fine, "mass"), mass);
    close(fine.energy().expect("an energy"), 0.5 - mass);
    close(fine.error("u").expect("an error").0.powi(2), mass);
    for quadrature in ["", "quadrature = 2;", "quadrature = 5;"] {
        let own = run(quadrature);
        let found = number(&own, "mass");
        assert!((found - mass).abs() > 1e-5 && (found - mass).abs() < 2e-3, "{found}");
        close(own.energy().expect("an energy"), number(&own, "stored"));
        close(own.error("u").expect("an error").0.powi(2), found);
        assert_eq!(number(&own, "law"), 8.0);
    }
}

/// The sum of the reactions is minus the load, up to rounding for a direct solver.
#[test]
fn reactions_balance_the_load() {
    let text = "
        form elasticity {
            field u: vector;
            param load: vector = [0, -1, 0.5];
            let strain = sym(grad(u));
            f0[u] = -load;
            f1[u] = 2 * strain + tr(strain) * I;
        }
        problem beam solves elasticity {
            mesh = box(dim: 3, cells: [4, 2, 2], to: [2, 1, 1]);
            dirichlet u = [0, 0, 0] on \"x0\";
            solver = direct;
            report held = reaction(u, on: \"x0\");
            report left = norm(reaction(u) + integral(load));
            report tip = u([2, 0.5, 0.5])[1];
        }";
    let form = Form::parse(text, "elasticity").expect("a form");
    let solution = form.problem("beam").expect("a problem").run().expect("a solution");
    let Some(ReportValue::Value(_, held)) = solution.report("held") else { panic!("a vector") };
    for (found, known) in held.iter().zip([0.0, 2.0, -1.0]) {
        assert!((found - known).abs() < 1e-12, "{held:?}");
    }
    assert!(number(&solution, "left") < 1e-12);
    assert!(number(&solution, "tip") < -1.0);
}

/// NAFEMS, The Standard NAFEMS Benchmarks (1990), test T4: a plate of 0.6 m × 1 m with a conductivity of 52 W/(m K). It
/// is at 100 °C at the bottom, insulated at the left, and cooled at the right and top by 750 W/(m² K) to 0 °C. At (0.6,
/// 0.2) it has 18.25 °C (here to four digits).
#[test]
fn the_plate_of_nafems_t4_has_its_temperature() {
    let text = "
        form conduction {
            field T: scalar;
            param conductivity = 52;
            param film = 750;
            f1[T] = conductivity * grad(T);
            on boundary \"x1\", \"y1\" { f0[T] = film * T; }
        }
        problem t4 solves conduction {
            mesh = box(dim: 2, cells: [18, 30], to: [0.6, 1]);
            degree = 3;
            dirichlet T = 100 on \"y0\";
            report target = T([0.6, 0.2]);
            report lost = integral(film * T, on: \"x1\") + integral(film * T, on: \"y1\") - reaction(T, on: \"y0\");
        }";
    let form = Form::parse(text, "conduction").expect("a form");
    let solution = form.problem("t4").expect("a problem").run().expect("a solution");
    let target = number(&solution, "target");
    assert!((target - 18.25).abs() < 0.01, "{target}");
    assert!(number(&solution, "lost").abs() < 1e-6 * 1e4, "{}", number(&solution, "lost"));
}

/// The load of 1 is carried by the conditions, wherever they are, and by the bound.
#[test]
fn reactions_are_those_of_conditions_inside_and_without_bounds() {
    let run = |problem: &str| {
        let text = format!(
            "form string {{ field u: scalar; f1[u] = grad(u); f0[u] = 1; }} problem p solves string {{ {problem} }}"
        );
        let form = Form::parse(&text, "string").unwrap_or_else(|error| panic!("{error}"));
        let problem = form.problem("p").expect("a problem").execution(Execution::Interpreted);
        problem.run().unwrap_or_else(|error| panic!("{error}"))
    };
    for mesh in [
        "interval(cells: 4); dirichlet u = 0 at [0.5]",
        "box(dim: 2, cells: 4); dirichlet u = 0 at [0.5, 0.5]",
    ] {
        close(number(&run(&format!("mesh = {mesh}; report all = reaction(u);")), "all").abs(), 1.0);
    }
    let held = run("mesh = interval(cells: 10); dirichlet u = 0 on \"x0\"; bound u >= -0.2;
         report all = reaction(u); report wall = reaction(u, on: \"x0\"); report floor = multiplier(u);");
    let [all, wall, floor] = ["all", "wall", "floor"].map(|name| number(&held, name));
    close(all, wall);
    close((all + floor).abs(), 1.0);
    assert!(floor.abs() > 0.1);
}
