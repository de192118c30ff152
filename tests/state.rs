//! States of a solve: initial states, imposed states, load steps, and states without a finite value.

use fem_dsl::problem::{Method, NewtonSettings};
use weakform::{ALL, Execution, Form, Setup, Solution, System, mesh};

/// Returns a form on a mesh, with interpreted kernels.
fn setup(text: &str, form: &str, on: &str) -> Setup {
    let form = Form::parse(text, form).expect("a form");
    form.on(mesh(on).expect("a mesh")).execution(Execution::Interpreted)
}

/// Solves a problem with interpreted kernels.
fn interpreted(text: &str, form: &str, problem: &str) -> Result<Solution, String> {
    let form = Form::parse(text, form).map_err(|error| error.to_string())?;
    let problem = form.problem(problem).map_err(|error| error.to_string())?;
    problem.execution(Execution::Interpreted).run().map_err(|error| error.to_string())
}

/// `newton(linear: direct, steps: N, load: NAME)`.
fn in_steps(steps: usize, load: Option<&str>) -> NewtonSettings {
    NewtonSettings {
        steps: Some(steps),
        linear: Some(Method::Direct),
        load: load.map(str::to_owned),
        ..NewtonSettings::default()
    }
}

const LAPLACE: &str = "form laplace { field u: scalar; param height = 1; f1[u] = grad(u); }";

#[test]
fn conditions_are_imposed_whatever_the_state() {
    let square = "box(dim: 2, cells: 3)";
    let mut system =
        setup(LAPLACE, "laplace", square).dirichlet("u", ALL, |_| 1.0).build().expect("a system");
    let wild = system.interpolate("u", |x| 3.0 * x[0]).expect("a state");
    for steps in [None, Some(1), Some(3)] {
        let solver = steps.map(|steps| in_steps(steps, None).into());
        for mut u in [system.vector(), wild.clone(), system.initial()] {
            system.solve_with(&mut u, solver.as_ref()).expect("a solution");
            let error = system.error_l2("u", &u, |_| 1.0).expect("an error");
            assert!(error < 1e-8, "{error}, {solver:?}");
        }
    }
}

#[test]
fn conditions_follow_parameters_in_a_continuation() {
    let mut system = setup(LAPLACE, "laplace", "box(dim: 2, cells: 2)")
        .dirichlet_of("u", "x0", ["height"], |_, [height]| height)
        .dirichlet("u", "x1", |_| 0.0)
        .build()
        .expect("a system");
    let mut u = system.initial();
    for step in 1..=11 {
        let height = f64::from(step);
        system.set_param("height", height).expect("a parameter");
        system.solve(&mut u).expect("a solution");
        let error = system.error_l2("u", &u, |x| height * (1.0 - x[0])).expect("an error");
        assert!(error < 1e-7, "step {step}: {error}");
    }
    let said = system.set_param("height", f64::NAN).expect_err("not finite").to_string();
    assert!(said.contains("height"), "{said}");
    assert!((system.initial().norm() - 11.0 * 3f64.sqrt()).abs() < 1e-12, "nothing is replaced");
    // What is scaled in load steps is as it was afterwards.
    system.solve_with(&mut u, Some(&in_steps(4, Some("height")).into())).expect("a solution");
    assert!(system.error_l2("u", &u, |x| 11.0 * (1.0 - x[0])).expect("an error") < 1e-7);
    assert!((system.initial().norm() - 11.0 * 3f64.sqrt()).abs() < 1e-12);
}

/// A bar whose end is rotated about its axis.
const BAR: &str = "
    form bar {
        field u: vector;
        param angle = pi;
        let F = I + grad(u);
        let J = det(F);
        energy = (inner(F, F) - dim - 2 * log(J)) / 2 + log(J)^2 / 2;
    }
    problem twist solves bar {
        mesh = box(dim: 3, cells: [1, 1, 4], from: [-1, -1, 0], to: [1, 1, 4]);
        dirichlet u = [0, 0, 0] on \"z0\";
        dirichlet u = [
            (cos(angle) - 1) * x[0] - sin(angle) * x[1], sin(angle) * x[0] + (cos(angle) - 1) * x[1], 0
        ] on \"z1\";
        SOLVER
    }";

#[test]
fn a_bar_is_twisted_by_half_a_turn_in_load_steps() {
    let steps = "solver = newton(steps: 12, linear: direct, load: angle);";
    let solved = interpreted(&BAR.replace("SOLVER", steps), "bar", "twist");
    let energy = solved.expect("a twisted bar").energy().expect("an energy");
    // The same from Rust.
    let turned = |x: &[f64; 3], [angle]: [f64; 1]| {
        let (s, c) = angle.sin_cos();
        [(c - 1.0) * x[0] - s * x[1], s * x[0] + (c - 1.0) * x[1], 0.0]
    };
    let on = "box(dim: 3, cells: [1, 1, 4], from: [-1, -1, 0], to: [1, 1, 4])";
    let mut system: System = setup(&BAR.replace("SOLVER", ""), "bar", on)
        .dirichlet("u", "z0", |_| [0.0; 3])
        .dirichlet_of("u", "z1", ["angle"], turned)
        .build()
        .expect("a system");
    let mut u = system.vector();
    system.solve_with(&mut u, Some(&in_steps(12, Some("angle")).into())).expect("a twisted bar");
    let points = system.points("u").expect("points");
    let values = system.values("u", &u).expect("values");
    let end = points.iter().zip(values.chunks(3)).filter(|(x, _)| x[2] == 4.0);
    for (x, value) in end {
        assert!((value[0] + 2.0 * x[0]).abs() + (value[1] + 2.0 * x[1]).abs() < 1e-12);
    }
    // Half a turn without collapsing the section: the middle is rotated by a quarter.
    let middle = points.iter().zip(values.chunks(3)).filter(|(x, _)| x[2] == 2.0);
    for (x, value) in middle {
        let radius = (x[0] + value[0]).hypot(x[1] + value[1]);
        assert!(radius > 0.7 * x[0].hypot(x[1]), "{x:?} {value:?}");
    }
    assert!(energy > 0.0 && energy.is_finite(), "{energy}");
}

#[test]
fn a_load_step_that_is_too_long_is_halved() {
    let steps = "solver = newton(steps: 2, max_iterations: 4, linear: direct, load: angle);";
    let solved = interpreted(&BAR.replace("SOLVER", steps), "bar", "twist").expect("a bar");
    let notes = &solved.inner().notes;
    assert!(notes.iter().any(|note| note.contains("of 2") && note.contains("halved")), "{notes:?}");
}

#[test]
fn the_p_laplacian_with_p_2_is_the_laplacian() {
    let text = |flux: &str| {
        format!(
            "form f {{ field u: scalar; param p = P; {flux} }}
             problem q solves f {{ mesh = box(dim: 2, cells: 3); dirichlet u = 0; solver = newton(linear: direct); }}"
        )
    };
    let fluxes = [
        "f0[u] = -1; f1[u] = (dot(grad(u), grad(u)))^((p - 2) / 2) * grad(u);",
        "f0[u] = -1; f1[u] = norm(grad(u))^(p - 2) * grad(u);",
        "energy = norm(grad(u))^p / p - u;",
        "energy = dot(grad(u), grad(u))^(p / 2) / p - u;",
    ];
    let plain = "f0[u] = -1; f1[u] = grad(u);";
    let values = |flux: &str| {
        let text = text(flux).replace("P;", "2;");
        let solved = interpreted(&text, "f", "q");
        solved.unwrap_or_else(|error| panic!("{flux}: {error}")).values().to_vec()
    };
    let wanted = values(plain);
    for flux in fluxes {
        for (found, wanted) in values(flux).iter().zip(&wanted) {
            assert!((found - wanted).abs() < 1e-9, "{flux}: {found} {wanted}");
        }
    }
}

#[test]
fn what_is_not_finite_is_named_with_its_place() {
    let text = |flux: &str| {
        format!(
            "form f {{ field u: scalar; let s = 1 - 4 * u; {flux} f0[u] = -1; }}
             problem q solves f {{ mesh = box(dim: 2, cells: 2); dirichlet u = x[0]; }}"
        )
    };
    let said = |flux: &str| interpreted(&text(flux), "f", "q").expect_err("not finite");
    let log = said("f1[u] = (2 + log(s)) * grad(u);");
    for part in ["`log(s)` is NaN", "`s` = -", "cell ", "`u` = ", "log(s)", "^^^^^^"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let text_at_zero =
        text("f1[u] = grad(u) + sqrt(dot(grad(u), grad(u))) * x;").replace("u = x[0]", "u = 0");
    let root = interpreted(&text_at_zero, "f", "q").expect_err("not finite");
    assert!(root.contains("the derivative of `sqrt(dot(grad(u), grad(u)))`"), "{root}");
    // The same from Rust.
    let mut system = setup(&text("f1[u] = (2 + log(s)) * grad(u);"), "f", "box(dim: 2, cells: 2)")
        .dirichlet("u", ALL, |x| x[0])
        .build()
        .expect("a system");
    let mut u = system.initial();
    let rust = system.solve(&mut u).expect_err("not finite").to_string();
    assert!(rust.contains("`log(s)` is NaN") && rust.contains("cell "), "{rust}");
}

#[test]
fn what_is_not_finite_between_cells_is_named_too() {
    let text = "form f { field u: scalar in L2(k); f0[u] = u - 1 - x[0]; f1[u] = grad(u);
         on interior { let s = 1 - inside(u) * outside(u); f0[jump(u)] = log(s) * jump(u); } }
         problem q solves f { mesh = box(dim: 2, cells: 2); initial u = 2; }";
    let said = interpreted(text, "f", "q").expect_err("not finite");
    for part in ["`log(s)` is NaN", "`s` = -3", "between two cells, one of them cell "] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn vectors_of_another_system_are_refused() {
    let system = |on: &str, degree: usize| {
        let setup = setup(LAPLACE, "laplace", on).degree(degree);
        setup.dirichlet("u", "x0", |_| 0.0).build().expect("a system")
    };
    let mut one = system("box(dim: 2, cells: 4)", 1);
    let others = [
        // Another length, and the same length with other nodes.
        system("box(dim: 2, cells: 3)", 1),
        system("box(dim: 2, cells: 2)", 2),
        system("box(dim: 2, cells: 4, to: [2, 1])", 1),
    ];
    let path = std::env::temp_dir().join("vectors_of_another_system.vtu");
    for other in &others {
        let (mut own, mut foreign) = (one.vector(), other.initial());
        assert!(one.values("u", &foreign).is_err());
        assert!(one.error_l2("u", &foreign, |_| 0.0).is_err());
        assert!(one.write_vtu(&path, &foreign).is_err());
        assert!(one.residual(&foreign, &mut own).is_err());
        assert!(one.apply(&foreign, &mut own).is_err());
        assert!(one.apply(&own.clone(), &mut foreign).is_err());
        assert!(one.diagonal(&mut foreign).is_err());
        assert!(one.linearise(&foreign).is_err());
        let said = one.solve(&mut foreign).expect_err("foreign").to_string();
        assert!(said.contains("does not fit"), "{said}");
    }
    let single = weakform::Vector::zeros(one.dofs(), runtime::algebra::vector::Precision::F32);
    assert!(one.values("u", &single).is_err(), "another precision");
    // Other conditions, the same DoFs: a solution is a valid initial state.
    let setup = setup(LAPLACE, "laplace", "box(dim: 2, cells: 4)");
    let mut twin = setup.dirichlet("u", ALL, |_| 2.0).build().expect("a system");
    let mut u = one.initial();
    twin.solve(&mut u).expect("a solution");
    assert!(twin.error_l2("u", &u, |_| 2.0).expect("an error") < 1e-8);
}

#[test]
fn spaces_of_equal_degree_are_not_inf_sup_stable() {
    let text = |space: &str| {
        format!(
            "form stokes {{
                 field u: vector in H1(k); field p: scalar in {space};
                 f0[u] = [-1, x[0]]; f1[u] = grad(u) - p * I; f0[p] = -div(u);
             }}
             problem q solves stokes {{
                 mesh = box(dim: 2, cells: 2); degree = 2; dirichlet u = [0, 0]; mean p = 0;
             }}"
        )
    };
    let said = match interpreted(&text("H1(k)"), "stokes", "q") {
        Ok(solved) => solved.inner().notes.join("; "),
        Err(said) => said,
    };
    for part in ["inf-sup", "Ladyzhenskaya", "`p`", "`H1(k - 1)`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("mean p"), "{said}");
    let stable = interpreted(&text("H1(k - 1)"), "stokes", "q").expect("a flow");
    assert!(stable.inner().notes.iter().all(|note| !note.contains("inf-sup")));
}

/// For any initial state, the tolerance refers to the solution.
#[test]
fn a_far_start_is_not_the_measure() {
    let linear = "form p { field u: scalar; f0[u] = -1; f1[u] = grad(u); }";
    let cubic = "form p { field u: scalar; f0[u] = u^3 - 1; f1[u] = grad(u); }";
    for (text, starts) in [(linear, [1e3, 1e15, 1e20]), (cubic, [1e2, 1e4, 1e6])] {
        let on = setup(text, "p", "box(dim: 2, cells: 4)").degree(2);
        let mut system = on.dirichlet("u", ALL, |_| 0.0).build().expect("a system");
        for start in starts {
            let mut u = system.interpolate("u", |x| start * x[0]).expect("a start");
            system.solve(&mut u).expect("a solution");
            let values = system.values("u", &u).expect("values");
            let largest = values.into_iter().fold(0.0, f64::max);
            assert!((largest - 0.0737).abs() < 2e-4, "{text} from {start:e}: {largest}");
        }
    }
}

/// Returns the largest value of a field of a problem, and the remarks on its solve.
fn largest(text: &str, field: &str, component: usize) -> f64 {
    let form = text.split_whitespace().nth(1).expect("a name");
    let solution = interpreted(text, form, "q").expect("a solution");
    let values = solution.values_of(field).expect("values");
    let components = values.len() / solution.points_of(field).expect("points").len();
    let own = values.iter().skip(component).step_by(components);
    own.fold(f64::NEG_INFINITY, |largest, value| largest.max(value.abs()))
}

/// A field whose equations have small coefficients is solved as accurately as one with large ones.
#[test]
fn tolerances_hold_for_each_field() {
    let text = |solver: &str, load: &str, numbers: &str| {
        format!(
            "form f {{ field T: scalar; field v: scalar; f0[T] = {load}; f1[T] = grad(T); {numbers} }}
             problem q solves f {{ mesh = box(dim: 2, cells: 4); degree = 2; dirichlet T = 0; dirichlet v = 0; \
             {solver} }}"
        )
    };
    let cubic = "f0[v] = v^3 - 1; f1[v] = (1 + 10 * v^2) * grad(v);";
    let affine = "f0[v] = v - 1; f1[v] = grad(v);";
    for (numbers, load, solver) in [
        (cubic, "-1e12", ""),
        (cubic, "-1e12", "solver = newton(linear: direct);"),
        (affine, "-1e15", "solver = cg();"),
        (affine, "-1e15", "solver = gmres();"),
    ] {
        let alone = largest(&text("", "-1", numbers), "v", 0);
        let beside = largest(&text(solver, load, numbers), "v", 0);
        assert!((alone - beside).abs() < 1e-4 * alone, "{solver} {numbers}: {alone} {beside}");
    }
}

/// Terms of high degree make the first residual huge: the last one is compared with the step.
#[test]
fn steep_reactions_are_solved_to_the_end() {
    let text = |solver: &str| {
        format!(
            "form m {{ field u: scalar; f0[u] = u * abs(u)^4 - 1; f1[u] = grad(u); }}
             problem q solves m {{ mesh = box(dim: 2, cells: 8); degree = 1; dirichlet u = 1000 on \"x0\"; {solver} }}"
        )
    };
    let values = |solver: &str| {
        let solution = interpreted(&text(solver), "m", "q").expect("a solution");
        solution.values_of("u").expect("values").to_vec()
    };
    let want = values("solver = newton(rtol: 0);");
    for solver in ["", "solver = newton(linear: direct);"] {
        let got = values(solver);
        let far = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < 1e-2, "{solver}: {far}");
    }
}

/// A function that returns two numbers at some points and one at others is an error, not a panic.
#[test]
fn functions_have_one_shape_everywhere() {
    let system = setup(LAPLACE, "laplace", "box(dim: 2, cells: 3)")
        .dirichlet("u", ALL, |_| 1.0)
        .build()
        .expect("a system");
    let uneven = |x: &[f64; 3]| vec![0.0; if x[0] > 0.3 { 2 } else { 1 }];
    let error = system.interpolate("u", uneven).expect_err("two components").to_string();
    assert!(error.contains('2') && error.contains("`u`"), "{error}");
    let error = system.error_l2("u", &system.initial(), uneven).expect_err("two").to_string();
    assert!(error.contains('2') && error.contains("`u`"), "{error}");
}

/// The matrix is checked even if the load is 0.
#[test]
fn without_a_load_solutions_are_not_unique_either() {
    let text = "form f { field u: vector; f1[u] = grad(u) - transpose(grad(u)); }
        problem q solves f { mesh = box(dim: 2, cells: 3); degree = 2; dirichlet u = [0, 0]; solver = direct(); }";
    let error = interpreted(text, "f", "q").expect_err("a singular matrix");
    assert!(error.contains("singular"), "{error}");
}

#[test]
fn load_steps_of_a_linear_form_are_one() {
    let mut system = setup(LAPLACE, "laplace", "box(dim: 2, cells: 3)")
        .dirichlet_of("u", "x0", ["height"], |_, [height]| height)
        .dirichlet("u", "x1", |_| 0.0)
        .build()
        .expect("a system");
    let mut solver = in_steps(3, Some("height"));
    solver.rtol = Some(1e-9);
    let mut u = system.initial();
    let report = system.solve_with(&mut u, Some(&solver.clone().into())).expect("a solution");
    assert!(report.notes.iter().any(|note| note.contains("load steps change nothing")));
    assert!(system.error_l2("u", &u, |x| 1.0 - x[0]).expect("an error") < 1e-12);
    solver.load = Some("width".to_owned());
    let said =
        system.solve_with(&mut u, Some(&solver.clone().into())).expect_err("no such parameter");
    assert!(said.to_string().contains("no parameter `width`"), "{said}");
}
