//! Input and output of a [`System`]: changing data and right-hand sides, errors, values at points, all functionals of
//! the language, and names checked by the compiler.

use weakform::{
    ALL, Error, Execution, FieldName, ReportValue, Scheme, Setup, System, Vector, at, mesh,
    weak_form,
};

weak_form! {
    /// Flow through a porous body, with data of each kind.
    form darcy {
        field p: scalar;
        param c = 2;
        aux kappa: scalar on cells;
        aux source: scalar;
        aux wind: vector on points;
        f0[p] = dot(wind, grad(p)) - source;
        f1[p] = c * kappa * grad(p);
    }
}

weak_form! {
    /// A field of another type in each dimension, and names that Rust has, too.
    form both { field u: vector; field f64: scalar; param str = 1; f0[u] = str * u; f0[f64] = f64; }
}

weak_form! { form stiff { field u: vector; let e = sym(grad(u)); f1[u] = 2 * e; } }

weak_form! {
    form pushed {
        field u: vector;
        param push = 1;
        f0[u] = u - push * [x[1]^2, 1];
        f1[u] = 2 * sym(grad(u));
    }
}

const SQUARE: &str = "box(dim: 2, cells: 4)";

fn setup() -> Setup {
    let data = darcy::Aux { kappa: at(|_| 1.0), source: at(|_| 1.0), wind: at(|_| [0.0, 0.0]) };
    let setup = darcy::form().on(mesh(SQUARE).expect("a mesh")).data(data);
    setup.execution(Execution::Interpreted).dirichlet(darcy::field::p, ALL, |_| 0.0)
}

fn solved(system: &mut System) -> Result<Vector, Error> {
    let mut u = system.initial();
    system.solve(&mut u)?;
    Ok(u)
}

fn refused<T>(result: Result<T, Error>) -> String {
    result.err().map_or_else(|| "nothing was refused".to_owned(), |error| error.to_string())
}

/// Computes ‖a − b‖ / ‖a‖.
fn distance(a: &Vector, b: &Vector) -> f64 {
    let (a, b) = (a.to_vec(), b.to_vec());
    let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
    norm(&mut a.iter().zip(&b).map(|(a, b)| a - b)) / norm(&mut a.iter().copied())
}

#[test]
fn data_is_replaced_without_setting_up_again() -> Result<(), Error> {
    let fresh = |system: Setup| system.build().and_then(|mut system| solved(&mut system));
    let mut system = setup().build()?;
    solved(&mut system)?;
    system.set_aux(darcy::aux::source, |x| x[0])?;
    system.set_aux(darcy::aux::kappa, |x| 1.0 + x[1])?;
    system.set_aux(darcy::aux::wind, |x| [x[1], 1.0])?;
    let wanted = setup().aux("source", |x| x[0]).aux("kappa", |x| 1.0 + x[1]);
    let wanted = fresh(wanted.aux("wind", |x| [x[1], 1.0]))?;
    assert!(distance(&wanted, &solved(&mut system)?) < 1e-9);
    // The same by numbers, and all at once.
    let mut by_numbers = setup().build()?;
    for (name, value) in [
        ("source", &(|x: &[f64; 3]| vec![x[0]]) as &dyn Fn(&[f64; 3]) -> Vec<f64>),
        ("kappa", &|x| vec![1.0 + x[1]]),
        ("wind", &|x| vec![x[1], 1.0]),
    ] {
        let values: Vec<f64> = by_numbers.aux_points(name)?.iter().flat_map(value).collect();
        by_numbers.set_aux_values(name, &values)?;
        assert_eq!(by_numbers.aux_values(name)?, values);
    }
    assert!(distance(&wanted, &solved(&mut by_numbers)?) < 1e-9);
    let data =
        darcy::Aux { kappa: at(|x| 1.0 + x[1]), source: at(|x| x[0]), wind: at(|x| [x[1], 1.0]) };
    let mut at_once = setup().build()?;
    at_once.set_data(data)?;
    assert!(distance(&wanted, &solved(&mut at_once)?) < 1e-9);
    Ok(())
}

#[test]
fn what_is_refused_replaces_nothing() -> Result<(), Error> {
    let mut system = setup().build()?;
    let before = solved(&mut system)?;
    let broken = darcy::Aux {
        kappa: at(|_| 7.0),
        source: at(|x| if x[0] > 0.9 { f64::NAN } else { 7.0 }),
        wind: at(|_| [7.0, 7.0]),
    };
    let mut load = system.vector();
    load.fill(f64::INFINITY);
    let other = weakform::Form::parse("form f { field u: scalar; f0[u] = u; }", "f")?;
    let other =
        other.on(mesh("box(dim: 2, cells: 5)")?).execution(Execution::Interpreted).build()?;
    let cases = [
        (refused(system.set_aux("kapa", |_| 1.0)), "did you mean `kappa`?"),
        (refused(system.set_aux("kappa", |_| [1.0, 2.0])), "its value has 2"),
        (refused(system.set_aux("kappa", |_| f64::NAN)), "`aux kappa` is NaN"),
        (refused(system.set_aux_values("kappa", &[1.0])), "takes 16 numbers, but there are 1"),
        (refused(system.set_aux_values("kappa", &[f64::NAN; 16])), "`aux kappa` is NaN"),
        (refused(system.set_data(broken)), "`aux source` is NaN"),
        (refused(system.set_load(&load)), "the load has an entry inf"),
        (refused(system.set_load(&other.vector())), "does not fit"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "expected {expected:?} in {found:?}");
    }
    assert_eq!(before.to_vec(), solved(&mut system)?.to_vec());
    Ok(())
}

#[test]
fn a_load_is_the_right_hand_side() -> Result<(), Error> {
    // The source as part of the form, and as a vector.
    let mut with_source = setup().aux("source", |x| 1.0 + x[0]).build()?;
    let mut loaded = setup().aux("source", |_| 0.0).build()?;
    let free = setup().aux("source", |x| -1.0 - x[0]).build()?;
    let mut l = free.vector();
    let open = darcy::form().on(mesh(SQUARE)?).execution(Execution::Interpreted);
    let open = open.aux("source", |x| -1.0 - x[0]).aux("kappa", |_| 1.0);
    let open = open.aux("wind", |_| [0.0, 0.0]).build()?;
    open.residual(&open.vector(), &mut l)?;
    loaded.set_load(&l)?;
    let (wanted, found) = (solved(&mut with_source)?, solved(&mut loaded)?);
    assert!(distance(&wanted, &found) < 1e-9);
    // The reaction of the conditions is the load, 3/2, from either source.
    for (system, u) in [(&with_source, &wanted), (&loaded, &found)] {
        let held = system.measure(u, "reaction(p)")?.number().expect("a number");
        assert!((held + 1.5).abs() < 1e-9, "{held}");
    }
    loaded.clear_load();
    assert!(solved(&mut loaded)?.norm() < 1e-12);
    Ok(())
}

/// Constrained combinations of components: their part of the load is balanced by the reaction.
#[test]
fn a_load_beside_a_slip_wall() -> Result<(), Error> {
    let disc = |push: f64| -> Result<Setup, Error> {
        let setup = pushed::form().on(mesh("ball(dim: 2, refine: 1, order: 2)")?).degree(2);
        Ok(setup.param("push", push).execution(Execution::Interpreted))
    };
    let open = disc(-1.0)?.build()?;
    let mut l = open.vector();
    open.residual(&open.vector(), &mut l)?;
    let wall = |setup: Setup| setup.dirichlet_normal(pushed::field::u, ALL, |_| 0.0).build();
    let (mut wanted, mut loaded) = (wall(disc(1.0)?)?, wall(disc(0.0)?)?);
    loaded.set_load(&l)?;
    let (wanted, found) = (solved(&mut wanted)?, solved(&mut loaded)?);
    assert!(wanted.norm() > 0.1 && distance(&wanted, &found) < 1e-8);
    Ok(())
}

#[test]
fn errors_and_gradients_are_those_of_formulas() -> Result<(), Error> {
    let form = || Ok::<_, Error>(stiff::form().on(mesh("box(cells: 2, deform: 0.1)")?).degree(2));
    let system = form()?.execution(Execution::Interpreted).build()?;
    let linear = |x: &[f64; 3]| [x[0] + 2.0 * x[1], 3.0 * x[2], -x[0]];
    let slopes = [[1.0, 2.0, 0.0], [0.0, 0.0, 3.0], [-1.0, 0.0, 0.0]];
    let u = system.interpolate(stiff::field::u, linear)?;
    assert!(system.error_h1(stiff::field::u, &u, linear, |_| slopes)? < 1e-12);
    // Errors against 0 are norms: the gradient's is that of its entries, on a volume of 1.
    let zero = |_: &[f64; 3]| [0.0; 3];
    let (l2, h1) =
        (system.error_l2("u", &u, zero)?, system.error_h1("u", &u, zero, |_| [[0.0; 3]; 3])?);
    let volume = system.measure(&u, "integral(1)")?.number().expect("a number");
    assert!((h1 * h1 - l2 * l2 - 15.0 * volume).abs() < 1e-10, "{l2} {h1}");
    let norm = system.measure(&u, "l2(u)")?.number().expect("a number");
    assert!((norm - l2).abs() < 1e-12);
    let places = [[0.2, 0.3, 0.4], [0.9, 0.1, 0.5]];
    let (values, gradients) =
        (system.values_at("u", &u, &places)?, system.gradients_at("u", &u, &places)?);
    for (at, x) in places.iter().enumerate() {
        for (i, wanted) in linear(x).into_iter().enumerate() {
            assert!((values[3 * at + i] - wanted).abs() < 1e-12);
            for j in 0..3 {
                assert!((gradients[9 * at + 3 * i + j] - slopes[i][j]).abs() < 1e-11);
            }
        }
    }
    for (found, expected) in [
        (refused(system.values_at("u", &u, &[[2.0, 0.0, 0.0]])), "[2.0, 0.0, 0.0] lies outside"),
        (refused(system.values_at("v", &u, &places)), "no field `v`"),
        (refused(system.error_h1("u", &u, linear, |_| [0.0; 3])), "`grad(u)` has 9 components"),
    ] {
        assert!(found.contains(expected), "expected {expected:?} in {found:?}");
    }
    Ok(())
}

#[test]
fn whatever_the_language_reports_is_measured() -> Result<(), Error> {
    let mut system = setup().param("c", 4.0).build()?;
    let u = system.interpolate(darcy::field::p, |x| x[0] * x[0])?;
    let number = |system: &System, text: &str| {
        system.measure(&u, text).map(|found| found.number().expect("a number"))
    };
    // ∫ c κ ∂p/∂n over x = 1, with p interpolated by lines of slope 7/4 in the last cells.
    assert!(
        (number(&system, "integral(c * kappa * dot(grad(p), n), on: \"x1\")")? - 7.0).abs() < 1e-12
    );
    assert!((number(&system, "maximum(p) - p([0, 0])")? - 1.0).abs() < 1e-12);
    system.set_param("c", 1.0)?;
    system.set_aux("kappa", |_| 3.0)?;
    assert!((number(&system, "integral(c * kappa)")? - 3.0).abs() < 1e-12);
    assert_eq!(number(&system, "2 * sqrt(c)")?, 2.0);
    assert!(number(&system, "p([3, 3])")?.is_nan());
    let vector = system.measure(&u, "integral([1, x[0]])")?;
    assert!(matches!(vector, ReportValue::Value(_, values) if (values[1] - 0.5).abs() < 1e-12));
    for (text, expected) in [
        ("integral(q)", "unknown name `q`"),
        ("integral(p", "expected"),
        ("integral(p); dirichlet p = 0 on all", "expected one value"),
        ("integral(p, on: \"x7\")", "x7"),
    ] {
        let found = refused(system.measure(&u, text));
        assert!(found.contains(expected), "{text}: expected {expected:?} in {found:?}");
    }
    Ok(())
}

#[test]
fn names_are_those_of_the_form() -> Result<(), Error> {
    let setup = || Ok::<_, Error>(both::form().on(mesh("box(dim: 3, cells: 1)")?));
    let setup = setup()?.dirichlet(both::field::u, "x0", |x| *x);
    let setup = setup.dirichlet_component(both::field::u, 1, "x1", |_| 1.0);
    let setup = setup.dirichlet_of(both::field::f64, "x1", [both::param::str], |_, [c]| c);
    let system = setup.execution(Execution::Interpreted).build()?;
    assert_eq!((both::field::f64.name(), both::param::str), ("f64", "str"));
    let name = String::from("u");
    assert_eq!(system.points(&name)?.len(), 8);
    assert_eq!(system.values(both::field::f64, &system.initial())?.iter().sum::<f64>(), 4.0);
    Ok(())
}

/// Elasticity, and a flow with data of its own mesh, with multigrid: at most a third of the iterations with the
/// diagonal.
#[test]
fn levels_precondition_a_system() -> Result<(), Error> {
    let with = |system: &System, solver: &str, word: &str| {
        system.solver(&format!("{solver}(preconditioner: {word}, rtol: 1e-8)"))
    };
    let clamped = stiff::form().on(mesh("box(dim: 2, cells: 8)")?).degree(4);
    let clamped = clamped.execution(Execution::Interpreted).dirichlet("u", "x0", |_| [0.0, 0.0]);
    let mut system = clamped.dirichlet("u", "x1", |x| [x[1], 0.1]).build()?;
    let mut solve = |word: &str| {
        let mut u = system.initial();
        let cg = with(&system, "cg", word)?;
        let report = system.solve_with(&mut u, Some(&cg))?;
        Ok::<_, Error>((report.iterations, u))
    };
    let ((few, u), (many, v)) = (solve("multigrid")?, solve("jacobi")?);
    assert!(3 * few <= many, "{few} of {many}");
    assert!(distance(&u, &v) < 1e-6);
    let data = darcy::Aux {
        kappa: at(|x| 1.0 + 5.0 * x[0]),
        source: at(|x| x[1]),
        wind: at(|x| [0.5, -0.3 * x[0]]),
    };
    let flow = darcy::form().on(mesh("box(dim: 2, cells: 12)")?).data(data).degree(3);
    let flow = flow.execution(Execution::Interpreted).dirichlet(darcy::field::p, ALL, |_| 0.0);
    let mut flow = flow.build()?;
    let mut solve = |word: &str| {
        let mut u = flow.initial();
        let fgmres = with(&flow, "fgmres", word)?;
        let report = flow.solve_with(&mut u, Some(&fgmres))?;
        Ok::<_, Error>((report.iterations, u))
    };
    let ((few, u), (many, v)) = (solve("multigrid")?, solve("jacobi")?);
    assert!(3 * few <= many, "{few} of {many}");
    assert!(distance(&u, &v) < 1e-6);
    Ok(())
}

weak_form! {
    form wave { field u: scalar; param speed = 1; f0[u] = dt(dt(u)); f1[u] = speed^2 * grad(u); }
}

#[test]
fn a_program_goes_through_time_step_by_step() {
    use std::f64::consts::PI;
    let on = mesh("box(dim: 2, cells: [8, 1])").expect("a mesh");
    let setup = wave::form().on(on).degree(3).execution(Execution::Interpreted);
    let setup =
        setup.dirichlet(wave::field::u, "x0", |_| 0.0).dirichlet(wave::field::u, "x1", |_| 0.0);
    let mut system = setup.build().expect("a system");
    let start = system.interpolate(wave::field::u, |x| (PI * x[0]).sin()).expect("a start");
    let keeping = Scheme::Newmark { beta: 0.25, gamma: 0.5 };
    let mut motion = system.begin(keeping, 0.0, &start, None).expect("a beginning");
    // ü = −π² u from the first moment on, by M ü = −K u.
    let accelerated = motion.acceleration().expect("a second derivative").to_vec();
    let of_start = start.to_vec();
    let largest = |x: &[f64]| x.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
    let gap: Vec<f64> = accelerated.iter().zip(&of_start).map(|(a, u)| a + PI * PI * u).collect();
    assert!(largest(&gap) < 1e-3 * PI * PI, "{}", largest(&gap));

    let energy = "integral(dt(u)^2 / 2 + dot(grad(u), grad(u)) / 2)";
    let energy_of = |system: &System, u: &Vector| match system.measure(u, energy) {
        Ok(ReportValue::Value(_, values)) => values[0],
        other => panic!("{other:?}"),
    };
    let mut energies = Vec::new();
    for _ in 0..40 {
        system.advance(&mut motion, 0.01, None).expect("a step");
        energies.push(energy_of(&system, motion.u()));
    }
    assert!(energies.iter().all(|e| (e / energies[0] - 1.0).abs() < 1e-8), "{energies:?}");
    assert!((energies[0] - PI * PI / 4.0).abs() < 1e-3, "{}", energies[0]);
    // A standing wave, cos(π t) sin(π x); the scheme's own error is π³ t Δt² / 12.
    let factor = (PI * motion.time()).cos();
    let wanted: Vec<f64> = of_start.iter().map(|u| factor * u).collect();
    let gap: Vec<f64> = motion.u().to_vec().iter().zip(&wanted).map(|(a, b)| a - b).collect();
    assert!((motion.time() - 0.4).abs() < 1e-12 && largest(&gap) < 2e-4, "{}", largest(&gap));
    assert!(motion.rate().norm() > 0.0);

    // Unsuitable or invalid steps are rejected, and the motion is unchanged.
    for step in [0.0, -0.1, f64::NAN, f64::INFINITY] {
        assert!(refused(system.advance(&mut motion, step, None)).contains("a step of length"));
    }
    assert!((motion.time() - 0.4).abs() < 1e-12);
    let other = wave::form().on(mesh(SQUARE).expect("a mesh")).execution(Execution::Interpreted);
    let mut other = other.build().expect("a system");
    assert_ne!(refused(other.advance(&mut motion, 0.1, None)), "nothing was refused");
    assert_ne!(refused(other.begin(keeping, 0.0, &start, None)), "nothing was refused");
    // Twice as fast from this time on.
    system.set_params(&wave::Params { speed: 2.0 }).expect("a parameter");
    system.advance(&mut motion, 0.01, None).expect("a step");
}
