//! Misuse of the library: the language's checks also apply to programs, and remedies are those of the library.

use weakform::solve::{LinearSettings, Method};
use weakform::{
    ALL, Boundary, Cell, Emission, Error, Execution, Form, Isa, Language, Scatter, Scheme, Setup,
    SolverSettings, System, Task, Vector, emit, mesh, weak_form,
};

weak_form! {
    form poisson {
        field u: scalar;
        param f = 1;
        f0[u] = -f;
        f1[u] = grad(u);
    }

    problem square solves poisson {
        mesh = box(dim: 2, cells: 2);
        dirichlet u = 0 on all;
    }
}

weak_form! { form cubic { field u: scalar; f0[u] = u^3 - 1; f1[u] = grad(u); } }

weak_form! {
    form swept { field u: scalar; f0[u] = dot([1, 2], grad(u)) - 1; f1[u] = grad(u); }
}

weak_form! { form fed { field u: scalar; aux kappa: scalar on cells; f1[u] = kappa * grad(u); } }

const SQUARE: &str = "box(dim: 2, cells: 2)";

fn on_square(form: &Form) -> Setup {
    form.on(mesh(SQUARE).expect("a mesh")).execution(Execution::Interpreted)
}

fn held(form: &Form) -> System {
    on_square(form).dirichlet("u", ALL, |_| 0.0).build().expect("a system")
}

/// Returns the DoF in the middle, the only free one.
fn centre(system: &System) -> usize {
    let points = system.points("u").expect("points");
    points.iter().position(|point| *point == [0.5, 0.5, 0.0]).expect("a node in the middle")
}

fn message<T>(result: Result<T, Error>) -> String {
    result.err().map_or_else(|| "nothing was refused".to_owned(), |error| error.to_string())
}

/// Returns a vector of another mesh.
fn cubic_vector() -> Vector {
    let setup = cubic::form().on(mesh("box(dim: 2, cells: 3)").expect("a mesh"));
    setup.execution(Execution::Interpreted).build().expect("a system").vector()
}

/// Returns whether a message names an option of a command line; its locations have an arrow.
fn names_an_option(text: &str) -> bool {
    text.replace("-->", "").contains("--")
}

/// The checks and codes of the language.
#[test]
fn solvers_are_those_of_the_language_from_rust_too() {
    let cases = [
        ("magic", "unknown solver `magic`"),
        ("", "expected"),
        ("cg(rtoll: 1e-8)", "`cg` has no argument `rtoll`"),
        ("cg(restart: 3)", "`cg` has no argument `restart`"),
        ("cg(rtol: 2)", "`rtol` should be a number from 0 on and below 1"),
        ("cg(rtol: NaN)", "NaN"),
        ("cg(atol: -1)", "`atol` should be"),
        ("gmres(restart: 0.5)", "`restart` should be a whole number"),
        ("cg(max_iterations: 0)", "`max_iterations` should be"),
        ("cg(preconditioner: magic)", "`preconditioner` should be"),
        ("cg(preconditioner: multigrid(degree: 99))", "`degree` should be"),
        ("cg(rtol: u; dirichlet u = 0 on all)", "expected"),
        ("newton(load: f)", "`load` is for load steps"),
        ("newton(load: g, steps: 2)", "has no parameter `g`"),
    ];
    let mut system = held(&poisson::form());
    let refused = |found: Result<(), Error>, solver: &str, part: &str| {
        let is_language = matches!(found, Err(Error::Language { .. }));
        let found = message(found);
        assert!(is_language && found.contains(part), "{solver}: {part:?} in {found}");
        assert!(!names_an_option(&found), "{found}");
    };
    for (solver, part) in cases {
        refused(system.solver(solver).map(drop), solver, part);
    }
    // Values are looked at as well as text.
    let mut u = system.initial();
    let cg = LinearSettings::new(Method::Cg);
    let restart = LinearSettings { restart: Some(3), ..cg.clone() };
    for (settings, part) in [
        (LinearSettings { rtol: Some(2.0), ..cg.clone() }, "`rtol` should be"),
        (LinearSettings { rtol: Some(f64::NAN), ..cg.clone() }, "NaN"),
        (LinearSettings { max_iterations: Some(0), ..cg.clone() }, "`max_iterations` should be"),
        (restart, "`cg` has no argument `restart`"),
    ] {
        let settings = SolverSettings::from(settings);
        let found = system.solve_with(&mut u, Some(&settings)).map(drop);
        refused(found, &settings.to_string(), part);
    }
    assert!(matches!(system.solve(&mut cubic_vector()), Err(Error::Vector(_))));
    let mut u = system.initial();
    let fine = system.solver("newton(linear: direct, steps: 3)").expect("a solver");
    assert!(system.solve_with(&mut u, Some(&fine)).is_ok());
    // Suitability for a form is checked, too.
    let mut cubic = held(&cubic::form());
    let mut u = cubic.initial();
    let found = message(cubic.solve_with(&mut u, Some(&cg.clone().into())));
    assert!(found.contains("`cg` solves linear problems"), "{found}");
    let mut swept = held(&swept::form());
    let mut u = swept.initial();
    let found = message(swept.solve_with(&mut u, Some(&cg.into())));
    assert!(found.contains("needs a symmetric Jacobian"), "{found}");
}

#[test]
fn solvers_of_steps_through_time_are_checked() {
    let form =
        Form::parse("form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }", "heat");
    let mut system = held(&form.expect("a form"));
    let start = system.initial();
    let begun = system.begin(Scheme::Bdf { order: 1 }, 0.0, &start, None);
    let mut motion = begun.expect("a beginning");
    let cg = LinearSettings { restart: Some(3), ..LinearSettings::new(Method::Cg) };
    let found = message(system.advance(&mut motion, 0.1, Some(&cg.into())));
    assert!(found.contains("`cg` has no argument `restart`"), "{found}");
    assert_eq!(motion.time(), 0.0);
}

#[test]
fn a_boundary_without_tags_is_refused() {
    let none = Boundary::Tags(Vec::new());
    let form = poisson::form();
    for setup in [
        on_square(&form).dirichlet("u", none.clone(), |_| 0.0),
        on_square(&form).dirichlet_component("u", 0, none.clone(), |_| 0.0),
        on_square(&form).dirichlet_of("u", none, ["t"], |_, [t]| t),
    ] {
        let found = setup.build();
        assert!(matches!(&found, Err(Error::NoBoundary { field }) if field == "u"));
        assert!(message(found).contains("weakform::ALL"));
    }
    let found = message(on_square(&form).dirichlet("u", ["x0", "x9"], |_| 0.0).build());
    assert!(found.contains("x9") && found.contains("x1"), "{found}");
}

#[test]
fn a_product_before_a_linearisation_says_so() {
    let mut system = held(&cubic::form());
    let (x, mut y) = (system.initial(), system.vector());
    assert!(matches!(system.apply(&x, &mut y), Err(Error::NotLinearised)));
    assert!(matches!(system.diagonal(&mut y), Err(Error::NotLinearised)));
    assert!(message(system.apply(&x, &mut y)).contains("linearise(&u)"));
    system.linearise(&x).expect("a linearisation");
    system.apply(&x, &mut y).expect("a product");
    system.diagonal(&mut y).expect("a diagonal");
}

/// `.aux(…)` and `.dirichlet(…)`, rather than the notation of the language or the command line.
#[test]
fn remedies_are_those_of_the_library() {
    let missing = on_square(&fed::form()).dirichlet("u", ALL, |_| 0.0).build();
    assert!(matches!(&missing, Err(Error::System(_))), "{missing:?}");
    let found = message(missing);
    assert!(
        found.contains("`.aux(\"kappa\", |x| …)`") && !found.contains("aux kappa ="),
        "{found}"
    );
    let mut free = on_square(&poisson::form()).build().expect("a system");
    let mut u = free.initial();
    let found = message(free.solve(&mut u));
    assert!(
        found.contains(".dirichlet(\"u\"")
            && found.contains(".mean(\"u\"")
            && !found.contains("dirichlet u ="),
        "{found}"
    );
    for text in
        ["box(dim: 2, cells: 0)", "box(dim: 2,", "ball(dim: 4)", "no/such.msh", "sphere(dim: 2)"]
    {
        let found = message(mesh(text));
        assert!(!names_an_option(&found) && found != "nothing was refused", "{text}: {found}");
    }
    let found = message(poisson::problem::square().degree(99).run());
    assert!(found.contains("degree") && !names_an_option(&found), "{found}");
    let found = message(poisson::problem::square().mesh("box(").run());
    assert!(!names_an_option(&found), "{found}");
}

/// Every call with invalid arguments: an error with a message, or correct results; never a panic.
#[test]
fn bad_arguments_are_errors_and_no_panics() {
    let form = poisson::form();
    let mut system = held(&form);
    let u = system.initial();
    let other = form.on(mesh("box(dim: 2, cells: 3)").expect("a mesh"));
    let other = other.execution(Execution::Interpreted).build().expect("a system");
    let (foreign, middle) = (other.vector(), centre(&system));
    let mut refused: Vec<(&str, String)> = Vec::new();
    let mut say = |what, found: String| refused.push((what, found));
    say("points", message(system.points("v")));
    say("values of no field", message(system.values("v", &u)));
    say("values of another system", message(system.values("u", &foreign)));
    say("interpolate", message(system.interpolate("u", |_| [1.0, 2.0])));
    say("interpolate nothing", message(system.interpolate("u", |_| Vec::new())));
    say("set_param name", message(system.set_param("g", 1.0)));
    say("set_param NaN", message(system.set_param("f", f64::NAN)));
    say("set_param infinite", message(system.set_param("f", f64::INFINITY)));
    say("set_param shape", message(system.set_param("f", vec![1.0, 2.0])));
    say("set_param empty", message(system.set_param("f", Vec::new())));
    say("residual", message(system.residual(&foreign, &mut system.vector())));
    say("residual into another", message(system.residual(&u, &mut other.vector())));
    say("linearise", message(system.linearise(&foreign)));
    say("apply", message(system.apply(&u, &mut other.vector())));
    say("diagonal", message(system.diagonal(&mut other.vector())));
    say("solve", message(system.solve(&mut other.vector())));
    say("write_vtu", message(system.write_vtu("no/such/folder/u.vtu", &u)));
    say("write_vtu of another", message(system.write_vtu("u.vtu", &foreign)));
    say("unknown", message(system.unknown("u", usize::MAX, 0)));
    say("unknown component", message(system.unknown("u", 0, usize::MAX)));
    say("mean", message(system.mean("u", 1, 0.0)));
    say("equation of nothing", message(system.equation(&[], 1.0)));
    say("equation of zeros", message(system.equation(&[(middle, 0.0)], 1.0)));
    say("equation that cancels", message(system.equation(&[(middle, 1.0), (middle, -1.0)], 1.0)));
    let beyond = system.equation(&[(usize::MAX, 1.0)], 1.0).expect("a row");
    say("constrain beyond", message(system.constrain(&[beyond])));
    let broken = system.equation(&[(middle, f64::NAN)], 1.0).expect("a row");
    say("constrain NaN", message(system.constrain(&[broken])));
    let itself = weakform::AffineConstraint::new(middle).plus(1.0, middle);
    say("constrain by itself", message(system.constrain(&[itself])));
    say("set_aux", message(system.set_aux("kappa", |_| 1.0)));
    say("set_aux_values", message(system.set_aux_values("kappa", &[])));
    say("aux_points", message(system.aux_points("")));
    say("set_load", message(system.set_load(&foreign)));
    say("error NaN", message(system.error_l2("u", &u, |_| f64::NAN)));
    say("error of another", message(system.error_l2("u", &foreign, |_| 0.0)));
    say("error shape", message(system.error_l2("u", &u, |_| vec![0.0; 3])));
    say("gradient shape", message(system.error_h1("u", &u, |_| 0.0, |_| 0.0)));
    for x in [f64::NAN, f64::INFINITY, -1e300, 1e9] {
        say("values_at", message(system.values_at("u", &u, &[[x, 0.5, 0.0]])));
        say("gradients_at", message(system.gradients_at("u", &u, &[[0.5, x, 0.0]])));
    }
    for text in ["", ";", "u", "integral(", "integral(u) +", "\0", "u([0])", "u([0.5, 0.5, 0.5])"] {
        say("measure", message(system.measure(&u, text)));
    }
    for (what, found) in refused {
        assert!(found != "nothing was refused" && !found.is_empty(), "{what}: {found}");
    }
    // The system is unchanged after all of that.
    assert_eq!(system.values_at("u", &u, &[]).expect("no points"), Vec::<f64>::new());
    let mut u = system.initial();
    system.solve(&mut u).expect("a solution");
    assert!((u.to_vec()[middle] - 0.09375).abs() < 1e-12, "{:?}", u.to_vec());
}

#[test]
fn bad_setups_are_errors_and_no_panics() {
    let form = poisson::form();
    let held = || on_square(&form).dirichlet("u", ALL, |_| 0.0);
    let cases: Vec<(&str, Setup)> = vec![
        ("degree 0", held().degree(0)),
        ("degree without end", held().degree(usize::MAX)),
        ("quadrature", held().quadrature(100_000)),
        ("time", held().time(f64::NAN)),
        ("no such parameter", held().param("", 1.0)),
        ("shape of a parameter", held().param("f", [1.0, 2.0])),
        ("parameter NaN", held().param("f", f64::NAN)),
        ("no such field", held().dirichlet("", ALL, |_| 0.0)),
        ("shape of a condition", held().dirichlet("u", ALL, |_| [0.0, 1.0])),
        ("condition NaN", held().dirichlet("u", ALL, |_| f64::NAN)),
        ("condition infinite", held().dirichlet("u", "x0", |_| f64::NEG_INFINITY)),
        ("component", held().dirichlet_component("u", 1, ALL, |_| 0.0)),
        ("normal of a scalar", held().dirichlet_normal("u", ALL, |_| 0.0)),
        ("condition of no parameter", held().dirichlet_of("u", ALL, ["g"], |_, [g]| g)),
        ("no such data", held().aux("kappa", |_| 1.0)),
        ("no such tag", held().dirichlet("u", "", |_| 0.0)),
    ];
    for (what, setup) in cases {
        let found = message(setup.build());
        assert!(found != "nothing was refused" && !found.is_empty(), "{what}: {found}");
        assert!(!names_an_option(&found), "{what}: {found}");
    }
    for dim in [0, 4, usize::MAX] {
        assert!(form.point_form(dim).is_err(), "{dim}");
    }
    for text in ["", "\0", "form", "form poisson { field u: scalar; f0[u] = u }"] {
        assert!(Form::parse(text, "poisson").is_err(), "{text}");
    }
    for text in
        ["", "(", "box()", "box(dim: 5)", "box(dim: 3, cells: 4294967295)", "box(dim: NaN)", "."]
    {
        assert!(mesh(text).is_err(), "{text}");
    }
    for problem in [
        poisson::problem::square().degree(0),
        poisson::problem::square().mesh(""),
        poisson::problem::square().param("f", f64::NAN),
        poisson::problem::square().param("", ""),
        poisson::problem::square().param("f", "1; dirichlet u = 1 on all"),
        poisson::problem::square().aux("kappa", 1),
        poisson::problem::square().quadrature(usize::MAX),
    ] {
        let shown = format!("{problem:?}");
        let found = message(problem.execution(Execution::Interpreted).run());
        assert!(found != "nothing was refused" && !names_an_option(&found), "{shown}: {found}");
    }
}

/// Terms of one DoF are combined: ½ u + ½ u = 3.
#[test]
fn terms_of_one_unknown_are_added_up() {
    let system = held(&poisson::form());
    let middle = centre(&system);
    let row = system.equation(&[(middle, 0.5), (middle, 0.5)], 3.0).expect("a row");
    assert_eq!((row.unknown, row.value, row.terms), (middle, 3.0, Vec::new()));
    let mut system =
        on_square(&poisson::form()).dirichlet("u", "x0", |_| 0.0).build().expect("a system");
    let free =
        (0..system.dofs()).filter(|&unknown| system.equation(&[(unknown, 1.0)], 0.0).is_ok());
    let [a, b] = free.take(2).collect::<Vec<_>>()[..] else { panic!("two unknowns") };
    let row = system.equation(&[(a, 1.0), (b, -2.0), (a, 2.0)], 6.0).expect("a row");
    system.constrain(&[row]).expect("constrained");
    let mut u = system.initial();
    system.solve(&mut u).expect("a solution");
    let u = u.to_vec();
    assert!((3.0 * u[a] - 2.0 * u[b] - 6.0).abs() < 1e-10, "{u:?}");
}

#[test]
fn what_is_between_snapshots_is_of_one_system() {
    let text = "form heat { field u: scalar; f0[u] = dt(u); f1[u] = grad(u); }";
    let form = Form::parse(text, "heat").expect("a form");
    let mut system = held(&form);
    let start = system.initial();
    let begun = system.begin(Scheme::Bdf { order: 1 }, 0.0, &start, None);
    let mut motion = begun.expect("a beginning");
    let before = motion.snapshot();
    system.advance(&mut motion, 0.5, None).expect("a step");
    let after = motion.snapshot();
    for time in [f64::NAN, -1.0, 2.0, f64::INFINITY] {
        assert!(message(system.between(&before, &after, time)).contains("is no time"), "{time}");
    }
    let other = form.on(mesh("box(dim: 2, cells: 3)").expect("a mesh"));
    let other = other.execution(Execution::Interpreted).build().expect("a system");
    let mut mixed = after.clone();
    mixed.rate = Some(other.vector());
    assert_ne!(message(system.between(&before, &mixed, 0.2)), "nothing was refused");
    let mut steps = system.steps(&mut motion, 0.5, f64::NAN, None);
    assert!(steps.next().is_some_and(|step| step.is_err()));
    assert!(steps.next().is_none());
    for step in [f64::NAN, 0.0, -1.0] {
        let mut steps = system.steps(&mut motion, step, 2.0, None);
        assert!(steps.next().is_some_and(|taken| taken.is_err()), "{step}");
        assert!(steps.next().is_none());
    }
}

/// The DoFs of one mesh on another, and forms with other fields.
#[test]
fn files_of_unknowns_that_do_not_fit_are_refused() {
    let solution = poisson::problem::square().execution(Execution::Interpreted).run();
    let solution = solution.expect("a solution");
    let on = &solution.inner().context.on;
    let form = poisson::form().point_form(2).expect("a form");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("u.vtu");
    for u in [&[][..], &solution.values()[1..], &[solution.values(), &[0.0]].concat()] {
        assert!(weakform::write_vtu(&path, &form, on, u).is_err());
    }
    let none =
        Form::parse("form two { field u: scalar; field v: scalar; f0[u] = u; f0[v] = v; }", "two");
    let none = none.and_then(|form| form.point_form(2)).expect("a form");
    assert!(weakform::write_vtu(&path, &none, on, solution.values()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    weakform::write_vtu(&path, &form, on, solution.values()).expect("written");
}

/// Systems are solved concurrently, each with its own data.
#[test]
fn threads_share_a_form_and_not_its_systems() {
    let form = poisson::form();
    let solve = |f: f64| {
        let setup = on_square(&form).param("f", f).dirichlet("u", ALL, |_| 0.0);
        let mut system = setup.build().expect("a system");
        let mut u = system.initial();
        system.solve(&mut u).expect("a solution");
        u.to_vec()[centre(&system)]
    };
    let one = solve(1.0);
    std::thread::scope(|scope| {
        let solve = &solve;
        let all: Vec<_> = (1..=4).map(|f| scope.spawn(move || (f, solve(f64::from(f))))).collect();
        for thread in all {
            let (f, found) = thread.join().expect("no panic");
            assert!((found - f64::from(f) * one).abs() < 1e-12, "{f}: {found}");
        }
    });
}

/// Kernels of every kind: text, or the reason why there is none.
#[test]
fn sources_are_emitted_or_refused() {
    let form = "form mass { field u: scalar; f0[u] = u; }";
    let all = [Cell::Triangle, Cell::Quadrilateral, Cell::Tetrahedron, Cell::Hexahedron];
    let mut emissions = Vec::new();
    for cell in all {
        for degree in [0, 1, 33, 1000, usize::MAX] {
            emissions.push(Emission::new(cell, degree));
        }
        for quadrature in [0, 1, 100_000, usize::MAX] {
            emissions.push(Emission::new(cell, 1).quadrature(quadrature));
        }
        for task in Task::ALL {
            emissions.push(Emission::new(cell, 1).task(task));
            emissions.push(Emission::new(cell, 1).task(task).language(Language::Cuda).hanging());
        }
        emissions.push(Emission::new(cell, 1).scatter(Scatter::Owner));
        emissions.push(Emission::new(cell, 1).form("nobody"));
    }
    let mut texts = 0;
    for emission in emissions {
        let emission = emission.isa(Isa::Portable);
        match emit(form, &emission) {
            Ok(text) => texts += usize::from(!text.is_empty()),
            Err(error) => assert!(!error.to_string().is_empty(), "{emission:?}"),
        }
    }
    assert!(texts > 20, "{texts}");
    for text in ["", "form", "form a { } form b { }", "\0"] {
        assert!(emit(text, &Emission::default()).is_err(), "{text}");
    }
}

/// A system without a free DoF is solved, and calls out of order return an error that names the required call, or
/// correct results.
#[test]
fn calls_in_any_order() {
    let form = poisson::form();
    let one = form.on(mesh("box(dim: 2, cells: 1)").expect("a mesh"));
    let one = one.execution(Execution::Interpreted).dirichlet("u", ALL, |x| x[0]);
    let mut one = one.build().expect("a system");
    let mut u = one.vector();
    one.solve(&mut u).expect("nothing to solve");
    assert!((u.norm() - 2f64.sqrt()).abs() < 1e-14, "{:?}", u.to_vec());
    let mut system = held(&form);
    let middle = centre(&system);
    let mut u = system.initial();
    // Data before a solve, between solves, and taken back.
    system.clear_load();
    system.constrain(&[]).expect("no constraints");
    let mut load = system.vector();
    load.set_entry(middle, 0.25);
    system.set_load(&load).expect("a load");
    system.solve(&mut u).expect("a solution");
    assert!((u.get(middle) - 2.0 * 0.09375).abs() < 1e-12, "{}", u.get(middle));
    system.set_param("f", 3.0).expect("a parameter");
    system.clear_load();
    system.solve(&mut u).expect("a solution");
    assert!((u.get(middle) - 3.0 * 0.09375).abs() < 1e-12, "{}", u.get(middle));
    // A state that is not finite is rejected as the start of a solve, and the system is unchanged.
    let mut broken = system.vector();
    broken.fill(f64::NAN);
    let _ = system.solve(&mut broken);
    system.solve(&mut u).expect("a solution");
    assert!((u.get(middle) - 3.0 * 0.09375).abs() < 1e-12, "{}", u.get(middle));
    // All results of a system are evaluated at the given state, rather than that of a linearisation.
    system.linearise(&u).expect("a linearisation");
    let mut r = system.vector();
    system.residual(&u, &mut r).expect("a residual");
    assert!(r.norm() < 1e-12);
}

/// The data of a solver belongs to its settings: other settings start anew.
#[test]
fn steps_through_time_may_change_their_solver() {
    let form =
        Form::parse("form heat { field u: scalar; f0[u] = dt(u) - 1; f1[u] = grad(u); }", "heat");
    let setup = form.expect("a form").on(mesh("box(dim: 2, cells: 4)").expect("a mesh"));
    let setup = setup.execution(Execution::Interpreted).dirichlet("u", ALL, |_| 0.0);
    let mut system = setup.build().expect("a system");
    let start = system.initial();
    let begun = system.begin(Scheme::Bdf { order: 1 }, 0.0, &start, None);
    let mut motion = begun.expect("a beginning");
    let [good, short] = ["gmres(rtol: 1e-9)", "gmres(rtol: 1e-9, max_iterations: 1)"]
        .map(|text| system.solver(text).expect("a solver"));
    system.advance(&mut motion, 0.1, Some(&good)).expect("a step");
    let found = message(system.advance(&mut motion, 0.1, Some(&short)));
    assert!(found.contains("gmres") && motion.time() == 0.1, "{found}");
    system.advance(&mut motion, 0.1, Some(&good)).expect("a step");
}

/// The system of a solution through time is that of its end, not of its start.
#[test]
fn a_solution_through_time_goes_on_as_a_system_at_its_end() {
    let text = "form heat { field u: scalar; aux q: scalar; f0[u] = dt(u) - q; f1[u] = grad(u); }
        problem p solves heat {
            mesh = box(dim: 2, cells: 2); aux q = 1 + t; dirichlet u = 3 * t on \"x0\";
            time = bdf(order: 1, to: 0.5, step: 0.25);
        }";
    let form = Form::parse(text, "heat").expect("a form");
    let solution = form.problem("p").expect("a problem").run().expect("a solution");
    let (system, u) = solution.system().expect("a system");
    assert_eq!(system.time(), 0.5);
    assert!(system.aux_values("q").expect("data").iter().all(|q| *q == 1.5));
    let mut held = u.clone();
    system.impose(&mut held).expect("a vector");
    assert_eq!(held.to_vec(), u.to_vec());
    let start = system.initial().to_vec();
    assert!(start.contains(&1.5) && start.iter().all(|value| *value <= 1.5));
}

#[test]
fn a_system_counts_the_iterations_of_its_solution() {
    let form = Form::parse("form f { field u: scalar; f0[u] = -1; f1[u] = grad(u); }", "f");
    let square = mesh("box(dim: 2, cells: 8)").expect("a mesh");
    let setup = form.expect("a form").on(square).dirichlet("u", ALL, |_| 0.0);
    let mut system = setup.build().expect("a system");
    let (mut u, cg) = (system.initial(), system.solver("cg(rtol: 1e-8)").expect("a solver"));
    let report = system.solve_with(&mut u, Some(&cg)).expect("a solution");
    let iterations = report.iterations;
    let solution = system.solution(&u, report).expect("a solution");
    assert!(iterations > 0 && solution.inner().linear_iterations == iterations);
}

/// A manufactured solution adds data to the form; reports on its system read the same fields.
#[test]
fn a_manufactured_solution_goes_on_as_a_system() {
    let text = "form f { field u: scalar; f1[u] = grad(u); }
        problem p solves f {
            mesh = box(dim: 2, cells: 2); degree = 2; manufactured u = x[0] * x[1]; dirichlet u on all;
        }";
    let form = Form::parse(text, "f").expect("a form");
    let solution = form.problem("p").expect("a problem").run().expect("a solution");
    let (mut system, mut u) = solution.system().expect("a system");
    system.solve(&mut u).expect("a solution");
    let number = |text: &str| system.measure(&u, text).expect("a value").number();
    assert!((number("integral(u)").expect("a number") - 0.25).abs() < 1e-9);
    let slope = system.at_quadrature_points(&u, "grad(u)").expect("values");
    let near = |(x, slope): (&[f64; 3], &[f64])| (slope[0] - x[1]).abs() < 1e-8;
    assert!(slope.points.iter().zip(slope.values.chunks(2)).all(near));
}

#[test]
fn a_solution_overwrites_no_file_of_another_format() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("mine.wf");
    let text = "form poisson { field u: scalar; f0[u] = -1; f1[u] = grad(u); }
        problem p solves poisson { mesh = interval(cells: 2); dirichlet u = 0; }";
    std::fs::write(&source, text).expect("written");
    let form = Form::parse(text, "poisson").expect("a form");
    let problem = form.problem("p").expect("a problem");
    let solution = problem.execution(Execution::Interpreted).run().expect("a solution");
    let error = solution.write(&source).expect_err("an error").to_string();
    assert!(error.contains("`.wf`") && error.contains("mine.vtu"), "{error}");
    assert_eq!(std::fs::read_to_string(&source).expect("text"), text);
    for name in ["mine.vtu", "plain"] {
        solution.write(folder.path().join(name)).expect("written");
    }
}
