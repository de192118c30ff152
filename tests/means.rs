//! Fields determined up to a constant: singular, consistent systems, in which every row is solved and the mean value is
//! set at the end.

use weakform::{ALL, Error, Execution, Form, Scheme, Solution, mesh};

const STOKES: &str = "form stokes {
    field u: vector in H1(k); field p: scalar in H1(k - 1);
    f1[u] = grad(u) - p * I; f0[p] = -div(u);
}";

/// Returns the flow in the cube with a known solution, whose components are cyclic permutations.
fn cube(cells: usize, solver: &str) -> String {
    format!(
        "form stokes {{
            field u: vector in H1(k); field p: scalar in H1(k - 1);
            let X = pi * x[0]; let Y = pi * x[1]; let Z = pi * x[2];
            let f = pi * [
                -24*pi^2*sin(X)^2*sin(Y)*sin(Z)*sin(Y - Z) - 4*pi^2*sin(X)^2*sin(Y)*cos(Y)
                    + 4*pi^2*sin(X)^2*sin(Z)*cos(Z) - sin(X)*cos(Y)*cos(Z) + 4*pi^2*sin(Y)*sin(Z)*sin(Y - Z),
                24*pi^2*sin(X)*sin(Y)^2*sin(Z)*sin(X - Z) + 4*pi^2*sin(X)*sin(Y)^2*cos(X)
                    - 4*pi^2*sin(X)*sin(Z)*sin(X - Z) - 4*pi^2*sin(Y)^2*sin(Z)*cos(Z) - sin(Y)*cos(X)*cos(Z),
                -24*pi^2*sin(X)*sin(Y)*sin(Z)^2*sin(X - Y) + 4*pi^2*sin(X)*sin(Y)*sin(X - Y)
                    - 4*pi^2*sin(X)*sin(Z)^2*cos(X) + 4*pi^2*sin(Y)*sin(Z)^2*cos(Y) - sin(Z)*cos(X)*cos(Y)];
            f0[u] = -f; f1[u] = grad(u) - p * I; f0[p] = -div(u);
        }}
        problem p solves stokes {{
            mesh = box(dim: 3, cells: {cells}); degree = 2; dirichlet u = [0, 0, 0]; mean p = 0;
            exact p = cos(pi*x[0])*cos(pi*x[1])*cos(pi*x[2]); solver = {solver};
        }}"
    )
}

/// Solves the only problem of a text with the interpreter.
#[track_caller]
fn run(text: &str) -> Result<Solution, Error> {
    let form = text.split_whitespace().nth(1).expect("a form");
    Form::parse(text, form)?.problem("p")?.execution(Execution::Interpreted).run()
}

#[track_caller]
fn solved(text: &str) -> Solution {
    run(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let Err(error) = run(text) else { panic!("solved: {text}") };
    let said = error.to_string();
    assert!(words.iter().all(|word| said.contains(word)), "{said}\n{text}");
}

/// Returns ∫ over the unit square of a bilinear field on n² cells, from its values.
fn mean(solution: &Solution, field: &str, n: f64) -> f64 {
    let points = solution.points_of(field).expect("points");
    let values = solution.values_of(field).expect("values");
    let on_side = |x: f64| if (1e-9..=1.0 - 1e-9).contains(&x) { 1.0 } else { 0.5 };
    let weights = points.iter().map(|x| on_side(x[0]) * on_side(x[1]) / (n * n));
    weights.zip(values).map(|(weight, value)| weight * value).sum()
}

/// The residual is distributed over all rows and not concentrated in a single node, for every tolerance.
#[test]
fn an_enclosed_flow_is_solved_at_every_tolerance_and_has_no_spike() {
    let by =
        |rtol: &str| solved(&cube(4, &format!("fgmres(rtol: {rtol}, preconditioner: multigrid)")));
    for rtol in ["1e-6", "1e-8", "1e-10"] {
        let solution = by(rtol);
        let (l2, _) = solution.error("p").expect("an error");
        assert!((l2 - 0.1526).abs() < 1e-3, "{rtol}: {l2}");
        let [[least, most]] = solution.range("p").expect("a range") else { panic!("one range") };
        // The pressure is as antisymmetric as its solution.
        assert!((least + most).abs() < 2e-3 * most, "{rtol}: {least} to {most}");
        assert!(solution.iterations() <= 26, "{rtol}: {} iterations", solution.iterations());
    }
    let loose = by("1e-2");
    let points = loose.points_of("p").expect("points");
    let values = loose.values_of("p").expect("values");
    let exact = |x: &[f64; 3]| x.iter().map(|x| (std::f64::consts::PI * x).cos()).product::<f64>();
    let errors: Vec<f64> = points.iter().zip(values).map(|(x, p)| (p - exact(x)).abs()).collect();
    let corner = |x: &[f64; 3]| x.iter().all(|x| *x < 1e-9 || *x > 1.0 - 1e-9);
    let corners: Vec<f64> =
        points.iter().zip(&errors).filter(|(x, _)| corner(x)).map(|(_, error)| *error).collect();
    let largest = |all: &[f64]| all.iter().fold(0.0, |most: f64, own| most.max(*own));
    let first = errors[0];
    assert!(first <= 1.5 * largest(&corners[1..]).max(1e-3), "{first} of {corners:?}");
}

const NEUMANN: &str = "form neumann {
    field u: scalar; param f = 0;
    f0[u] = -f - 2 * pi^2 * cos(pi * x[0]) * cos(pi * x[1]); f1[u] = grad(u);
}";

#[test]
fn a_neumann_problem_has_its_mean_by_every_solver() {
    for solver in [
        "cg(preconditioner: multigrid)",
        "cg(preconditioner: algebraic)",
        "cg(preconditioner: jacobi)",
        "cg(preconditioner: none)",
        "minres(preconditioner: multigrid)",
        "minres()",
        "gmres()",
        "fgmres(preconditioner: multigrid)",
        "bicgstab()",
        "newton(linear: direct)",
        "newton()",
        "direct",
    ] {
        let solution = solved(&format!(
            "{NEUMANN} problem p solves neumann {{ mesh = box(dim: 2, cells: 16); mean u = 3;
             exact u = 3 + cos(pi * x[0]) * cos(pi * x[1]); solver = {solver}; }}"
        ));
        let (l2, _) = solution.error("u").expect("an error");
        assert!(l2 < 5e-3, "{solver}: {l2}");
        let found = mean(&solution, "u", 16.0);
        assert!((found - 3.0).abs() < 1e-12, "{solver}: {found}");
        assert!(solution.notes().is_empty(), "{solver}: {:?}", solution.notes());
    }
}

/// Hanging nodes are not DoFs, and the hierarchy is built from the leaves.
#[test]
fn means_go_with_hanging_nodes() {
    for solver in ["cg(preconditioner: multigrid)", "direct"] {
        let solution = solved(&format!(
            "form neumann {{ field u: scalar; f0[u] = x[1] - x[0]; f1[u] = grad(u); }}
             problem p solves neumann {{ mesh = lshape(dim: 2, refine: 1); degree = 2; mean u = -2; solver = {solver};
             adapt(steps: 2, fraction: 0.3); report whole = integral(u); report area = integral(1); }}"
        ));
        let number = |name: &str| solution.report(name).and_then(|f| f.number()).expect("a number");
        let mean = number("whole") / number("area");
        assert!((mean + 2.0).abs() < 1e-10, "{solver}: {mean}");
        assert!(solution.cells() > 12);
    }
}

#[test]
fn several_fields_have_means() {
    let solution = solved(
        "form two { field u: vector; field v: scalar;
         f0[u] = [1 / 2 - x[0], x[1] - 1 / 2]; f1[u] = grad(u); f0[v] = -cos(pi * x[0]); f1[v] = grad(v); }
         problem p solves two { mesh = box(dim: 2, cells: 6); mean u = [1, -2]; mean v = 7; }",
    );
    assert!((mean(&solution, "v", 6.0) - 7.0).abs() < 1e-10);
    let u = solution.values_of("u").expect("values");
    let points = solution.points_of("u").expect("points");
    let sides = |x: &[f64; 3]| {
        x[..2].iter().map(|x| if x.fract() < 1e-9 { 0.5 } else { 1.0 }).product::<f64>()
    };
    for (c, wanted) in [1.0, -2.0].into_iter().enumerate() {
        let sum: f64 = points.iter().enumerate().map(|(i, x)| sides(x) * u[2 * i + c]).sum();
        assert!((sum / 36.0 - wanted).abs() < 1e-10, "{c}: {sum}");
    }
}

/// The remaining residual of a solver is not an incompatibility of the data.
#[test]
fn compatibility_is_tested_on_the_data() {
    let neumann = |items: &str| {
        format!("{NEUMANN} problem p solves neumann {{ mesh = box(dim: 2, cells: 6); {items} }}")
    };
    let words = ["the data for `u` is incompatible", "not orthogonal to the constants (imbalance"];
    for items in [
        "mean u = 2; param f = 3;",
        "mean u = 2; param f = 3; solver = cg(preconditioner: multigrid);",
    ] {
        refused(&neumann(items), &words);
    }
    // For any tolerance.
    solved(&neumann("mean u = 2; solver = gmres(rtol: 0.5);"));
    let enclosed = |more: &str| {
        format!(
            "{STOKES} problem p solves stokes {{ mesh = box(dim: 2, cells: 4); degree = 2; mean p = 0; {more} }}"
        )
    };
    refused(&enclosed("dirichlet u = [x[0], 0] on all;"), &["the data for `p` is incompatible"]);
    // For any size and units.
    refused(
        &enclosed("dirichlet u = [1e-9 * x[0], 0] on all;"),
        &["the data for `p` is incompatible"],
    );
    // Rows that cancel up to rounding count as compatible.
    solved(&enclosed(
        "manufactured u = [sin(3 * x[0]) * cos(3 * x[1]), -cos(3 * x[0]) * sin(3 * x[1])]; manufactured p = x[0] - 1 / 2; dirichlet u;",
    ));
}

#[test]
fn what_is_not_free_up_to_a_constant_has_no_mean() {
    let words = ["is not free up to a constant"];
    let form = |f: &str| {
        format!(
            "form f {{ field u: scalar; {f} }} problem p solves f {{ mesh = box(dim: 2, cells: 4); mean u = 0; }}"
        )
    };
    refused(&form("f0[u] = 1e-6 * u; f1[u] = grad(u);"), &words);
    // The equations are invariant under constants, but their sum is not 0.
    refused(&form("f0[u] = grad(u)[0] - x[0]; f1[u] = grad(u);"), &words);
    refused(
        &form("f0[u] = -1; f1[u] = (1 + u^2) * grad(u); on boundary \"x0\" { f0[u] = u; }"),
        &words,
    );
    // Convection along closed lines transports nothing in or out, up to quadrature errors.
    let solution = solved(&form(
        "let b = [sin(pi*x[0])*cos(pi*x[1]), -cos(pi*x[0])*sin(pi*x[1])];
         f0[u] = 9 * dot(b, grad(u)) + cos(pi * x[0]); f1[u] = grad(u);",
    ));
    assert!(mean(&solution, "u", 4.0).abs() < 1e-12);
}

/// On curved cells the quadrature error of a constant makes no difference.
#[test]
fn an_enclosed_flow_in_a_curved_mesh_is_solved() {
    for solver in
        ["direct", "minres(rtol: 1e-10)", "fgmres(rtol: 1e-10, preconditioner: multigrid)"]
    {
        let solution = solved(&format!(
            "{STOKES} problem p solves stokes {{ mesh = ball(dim: 2, order: 2, refine: 1); degree = 2; mean p = 1; solver = {solver};
             manufactured u = [-x[1] * (1 - dot(x, x)), x[0] * (1 - dot(x, x))]; manufactured p = 1 + x[0]; dirichlet u = [0, 0];
             report whole = integral(p); report area = integral(1); }}"
        ));
        let number = |name: &str| solution.report(name).and_then(|f| f.number()).expect("a number");
        let mean = number("whole") / number("area");
        assert!((mean - 1.0).abs() < 1e-10, "{solver}: {mean}");
        let (l2, _) = solution.error("p").expect("an error");
        assert!(l2 < 0.2, "{solver}: {l2}");
    }
}

/// The velocity grows linearly, which all schemes reproduce, and the pressure has its mean at each time.
#[test]
fn an_enclosed_flow_goes_through_time() {
    for scheme in [
        "theta(SPAN)",
        "theta(theta: 1, SPAN)",
        "bdf(order: 1, SPAN)",
        "bdf(order: 2, SPAN)",
        "sdirk(stages: 2, SPAN)",
        "sdirk(stages: 3, SPAN)",
    ] {
        let scheme = scheme.replace("SPAN", "to: 0.2, step: 0.05");
        let solution = solved(&format!(
            "form flow {{ field u: vector in H1(k); field p: scalar in H1(k - 1);
             f0[u] = dt(u); f1[u] = grad(u) - p * I; f0[p] = -div(u); }}
             problem p solves flow {{ mesh = box(dim: 2, cells: 3); degree = 2; mean p = 2; dirichlet u;
             manufactured u = (1 + t) * [x[0] * x[1], -x[1]^2 / 2]; manufactured p = 2 + x[0] - x[1]; time = {scheme}; }}"
        ));
        let (of_u, of_p) = (solution.error("u").expect("one"), solution.error("p").expect("one"));
        assert!(of_u.0 < 1e-9 && of_p.0 < 1e-7, "{scheme}: {of_u:?}, {of_p:?}");
        let found = mean(&solution, "p", 3.0);
        assert!((found - 2.0).abs() < 1e-11, "{scheme}: {found}");
    }
}

/// Convection, by Newton's method, with the iterations of the previous steps available.
#[test]
fn an_enclosed_nonlinear_flow_goes_through_time() {
    let text = |time: &str, rate: &str| {
        format!(
            "form flow {{ field u: vector in H1(k); field p: scalar in H1(k - 1);
             f0[u] = {rate} + grad(u) * u; f1[u] = 0.1 * grad(u) - p * I; f0[p] = -div(u); }}
             problem p solves flow {{ mesh = box(dim: 2, cells: 4); degree = 2; mean p = -1;
             dirichlet u = [0, 0]; dirichlet u = [16 * x[0]^2 * (1 - x[0])^2, 0] on \"y1\"; {time} }}"
        )
    };
    let steady = solved(&text("", "0 * u"));
    let settled = solved(&text("time = bdf(order: 1, to: 40, step: 8);", "dt(u)"));
    for solution in [&steady, &settled] {
        assert!((mean(solution, "p", 4.0) + 1.0).abs() < 1e-11);
    }
    let pairs = steady.values().iter().zip(settled.values());
    let apart = pairs.fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()));
    assert!(apart < 1e-3, "{apart}");
}

/// The velocity is quadratic and grows linearly: the mesh that follows it changes neither, and the pressure has its mean on
/// each mesh.
#[test]
fn an_enclosed_flow_goes_through_time_on_meshes_that_change() {
    let solution = solved(
        "form flow { field u: vector in H1(k); field p: scalar in H1(k - 1);
         f0[u] = dt(u); f1[u] = grad(u) - p * I; f0[p] = -div(u); }
         problem p solves flow { mesh = box(dim: 2, cells: 3); degree = 2; mean p = 2; dirichlet u;
         manufactured u = (1 + t) * [x[0] * x[1], -x[1]^2 / 2]; manufactured p = 2 + x[0] - x[1];
         time = bdf(order: 2, to: 0.2, step: 0.02); adapt(every: 2, levels: 1, coarsen: 0.2, fraction: 0.5); }",
    );
    let (of_u, of_p) = (solution.error("u").expect("one"), solution.error("p").expect("one"));
    assert!(of_u.0 < 1e-9 && of_p.0 < 1e-7, "{of_u:?}, {of_p:?}");
    let note = solution.notes().iter().find(|note| note.contains("`adapt` changed the mesh"));
    assert!(note.is_some_and(|note| !note.contains("mesh 0 times")), "{:?}", solution.notes());
}

/// Heat in an insulated body: the mean stays, by every scheme, and the field decays to it, exp(−π² t).
#[test]
fn insulated_bodies_keep_their_mean_through_time() {
    for scheme in ["bdf(order: 2, SPAN)", "theta(SPAN)", "sdirk(stages: 2, SPAN)"] {
        let scheme = scheme.replace("SPAN", "to: 0.1, step: 0.005");
        let solution = solved(&format!(
            "form heat {{ field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }}
             problem p solves heat {{ mesh = box(dim: 2, cells: [6, 2]); degree = 4;
             exact u = 3 + cos(pi * x[0]) * exp(-pi^2 * t); time = {scheme};
             report mean = integral(u) / integral(1); }}"
        ));
        let mean = solution.report("mean").and_then(|report| report.number()).expect("a number");
        assert!((mean - 3.0).abs() < 1e-9, "{scheme}: {mean}");
        let error = solution.error("u").expect("an error").0;
        assert!(error < 1e-3, "{scheme}: {error:e}");
    }
}

#[test]
fn data_that_become_incompatible_in_time_are_refused() {
    refused(
        "form flow { field u: vector in H1(k); field p: scalar in H1(k - 1);
         f0[u] = dt(u); f1[u] = grad(u) - p * I; f0[p] = -div(u); }
         problem p solves flow { mesh = box(dim: 2, cells: 2); degree = 2; mean p = 0;
         dirichlet u = [max(0, t - 0.15) * x[0], 0]; time = bdf(order: 1, to: 0.3, step: 0.1); }",
        &["the data for `p` is incompatible", "t = "],
    );
}

/// π², π² and 2π² without the constant.
#[test]
fn modes_are_without_the_constants_of_a_mean() {
    for (cells, more) in
        [(4, ""), (20, ""), (20, ", preconditioner: multigrid"), (20, ", preconditioner: jacobi")]
    {
        let solution = solved(&format!(
            "form laplace {{ field u: scalar; f1[u] = grad(u); }}
             problem p solves laplace {{ mesh = box(dim: 2, cells: {cells}); degree = 2; mean u = 0; eigen = smallest(3{more}); }}"
        ));
        let found: Vec<f64> = solution.modes().iter().map(|mode| mode.value).collect();
        let square = std::f64::consts::PI.powi(2);
        for (found, known) in found.iter().zip([1.0, 1.0, 2.0]) {
            assert!((found / square / known - 1.0).abs() < 2e-3, "{cells}{more}: {found}");
        }
    }
}

#[test]
fn a_program_gives_fields_their_means() -> Result<(), Error> {
    let form = Form::parse(STOKES, "stokes")?;
    let setup = |value: f64| {
        let square = mesh("box(dim: 2, cells: 4)").expect("a mesh");
        let setup = form.on(square).degree(2).execution(Execution::Interpreted);
        setup.dirichlet("u", ALL, move |x| [x[1] * x[1] + value * x[0], x[0] * x[0]])
    };
    let mut system = setup(0.0).mean("p", 5.0).build()?;
    let mut u = system.initial();
    system.solve(&mut u)?;
    // u is its own solution: −Δu + ∇p = 0 with p = 2 (x + y) + c.
    assert!(system.error_l2("p", &u, |x| 2.0 * (x[0] + x[1]) + 3.0)? < 1e-8);
    let refused = |setup: weakform::Setup, word: &str| {
        let done = setup.build().and_then(|mut system| {
            let mut u = system.initial();
            system.solve(&mut u)
        });
        let said = done.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains(word), "{word}: {said}");
    };
    refused(setup(1.0).mean("p", 0.0), "the data for `p` is incompatible");
    refused(setup(0.0).mean("u", [0.0, 0.0]), "its mean follows");
    refused(setup(0.0).mean("p", [0.0, 0.0]), "components");
    refused(setup(0.0).mean("q", 0.0), "there is no field `q`");
    // Time-dependent.
    let text = STOKES.replace("f1[u]", "f0[u] = dt(u); f1[u]");
    let form = Form::parse(&text, "stokes")?;
    let setup = form.on(mesh("box(dim: 2, cells: 2)")?).degree(2).execution(Execution::Interpreted);
    let setup = setup.dirichlet_of("u", ALL, ["t"], |x, [t]| [t * x[1], t * x[0]]);
    let mut system = setup.mean("p", 1.0).build()?;
    let mut motion = system.begin(Scheme::Bdf { order: 1 }, 0.0, &system.vector(), None)?;
    for _ in 0..3 {
        system.advance(&mut motion, 0.1, None)?;
    }
    // ∂u/∂t = [y, x] is the gradient of −p.
    assert!(system.error_l2("p", motion.u(), |x| 1.25 - x[0] * x[1])? < 0.05);
    Ok(())
}
