//! The facade: expansions of `weak_form!`, kernels compiled ahead of time in comparison with just in time, and rejected
//! input.
// The expansion with kernels compiled ahead of time is also valid in programs that forbid `unsafe`.
#![forbid(unsafe_code)]

use weakform::{ALL, Error, Form, Isa, Origin, System, at, mesh, weak_form};

weak_form! {
    #![ahead_of_time(quad(1), quad(3, order = 1), tri(2, order = 1), tet(1, order = 1))]

    /// Reaction and diffusion with data everywhere.
    form reaction {
        field u: scalar;
        aux kappa: scalar on cells;
        aux source: scalar;
        param sigma = 2;
        f0[u] = sigma * u + u^3 - source;
        f1[u] = kappa * (1 + u^2) * grad(u);
    }

    problem small solves reaction {
        mesh = box(dim: 2, cells: 3);
        param sigma = 1;
        aux kappa = 1;
        aux source = 1;
        dirichlet u = 0 on "x0";
        quadrature = 4;
    }
}

weak_form! {
    #![ahead_of_time(quad(2))]

    /// A vector potential.
    form potential {
        field A: vector in Hcurl(k);
        aux nu: scalar on cells;
        f0[A] = A - [x[1], x[0]^2];
        f1[A] = nu * curl(A);
    }
}

weak_form! {
    /// Its solution is the position.
    form place { field u: vector; f0[u] = u - x; }
}

weak_form! {
    /// Declarations that depend on the dimension, and a name that Rust reserves.
    form anywhere {
        field u: vector;
        param weights: tensor = final * I;
        param final = dim / 2;
        param pair: vector(2) = [3, 4];
        aux b: vector;
        aux c: tensor on cells;
        f0[u] = weights * u - pair[0] * b;
        f1[u] = c * grad(u);
    }
}

weak_form! {
    /// Two real fields.
    form waves {
        field u: complex scalar;
        param w = 3;
        test v for u;
        residual = inner(grad(u), grad(v)) - (w^2 * u + 1) * conj(v);
        on boundary "x0" { residual = -i * w * u * conj(v); }
    }
}

const MESHES: [(&str, usize); 8] = [
    ("box(dim: 2, cells: 3)", 1),
    ("box(dim: 2, cells: 3, deform: 0.1)", 1),
    ("ball(dim: 2, refine: 1, order: 2)", 1),
    ("box(dim: 2, cells: 3)", 3),
    ("box(dim: 2, cells: 3, deform: 0.1)", 3),
    ("box(dim: 2, cells: 3, cell: tri)", 2),
    ("box(dim: 3, cells: 2, cell: tet)", 1),
    ("box(dim: 3, cells: 2, cell: tet, deform: 0.1)", 1),
];

fn system(form: &Form, text: &str, degree: usize, conditions: bool) -> Result<System, Error> {
    let setup = form
        .on(mesh(text)?)
        .degree(degree)
        .param("sigma", 3.0)
        .aux("kappa", |x| 1.0 + x[0])
        .aux("source", |x| x[1]);
    if conditions { setup.dirichlet("u", ALL, |x| x[0] * x[1]).build() } else { setup.build() }
}

/// Returns residual, action and diagonal at a state.
fn outcomes(system: &mut System) -> Result<[Vec<f64>; 3], Error> {
    let u = system.interpolate("u", |x| (x[0] - x[1] * x[2]).sin())?;
    let x = system.interpolate("u", |x| 1.0 - x[0] * x[1])?;
    let (mut r, mut y, mut d) = (system.vector(), system.vector(), system.vector());
    system.linearise(&u)?;
    system.residual(&u, &mut r)?;
    system.apply(&x, &mut y)?;
    system.diagonal(&mut d)?;
    Ok([r.to_vec(), y.to_vec(), d.to_vec()])
}

#[test]
fn kernels_ahead_of_time_are_those_that_the_jit_would_build() -> Result<(), Error> {
    let ahead = reaction::form();
    let now = Form::parse(ahead.text(), "reaction")?;
    for (text, degree) in MESHES {
        for conditions in [false, true] {
            let mut first = system(&ahead, text, degree, conditions)?;
            let mut second = system(&now, text, degree, conditions)?;
            assert_eq!(first.origin(), Origin::AheadOfTime, "{text}, degree {degree}");
            assert_ne!(second.origin(), Origin::AheadOfTime);
            let plans = (&first.kernels().plans, &second.kernels().plans);
            assert_eq!(plans.0, plans.1);
            let (first, second) = (outcomes(&mut first)?, outcomes(&mut second)?);
            assert!(first.iter().flatten().any(|value| *value != 0.0));
            // The same operations in the same order, bit for bit, unless the flags select others.
            if cfg!(target_arch = "x86_64") {
                assert_eq!(first, second, "{text}, degree {degree}");
            }
        }
    }
    Ok(())
}

#[test]
fn vector_fields_have_kernels_ahead_of_time() -> Result<(), Error> {
    let ahead = potential::form();
    let now = Form::parse(ahead.text(), "potential")?;
    let solved = |form: &Form| -> Result<(Origin, Vec<f64>, f64), Error> {
        let setup = form.on(mesh("box(dim: 2, cells: 3, deform: 0.1)")?).degree(2);
        let mut system = setup.aux("nu", |x| 1.0 + x[0]).build()?;
        let mut u = system.interpolate("A", |x| vec![x[1], 1.0])?;
        system.solve(&mut u)?;
        let error = system.error_l2("A", &u, |x| vec![x[1], x[0] * x[0]])?;
        Ok((system.origin(), u.to_vec(), error))
    };
    let (first, second) = (solved(&ahead)?, solved(&now)?);
    assert_eq!(first.0, Origin::AheadOfTime);
    assert_ne!(second.0, Origin::AheadOfTime);
    for (a, b) in first.1.iter().zip(&second.1) {
        assert!((a - b).abs() < 1e-10, "{a} and {b}");
    }
    // The curl of the data is 2 x − 1, so that the solution differs from it.
    assert!((1e-3..0.5).contains(&first.2), "{}", first.2);
    Ok(())
}

/// The CPU's most capable instruction set is the first available one; all below it agree.
#[test]
fn every_instruction_set_of_this_processor_gives_the_same() -> Result<(), Error> {
    let build = |isa: Isa| {
        let setup = reaction::form().on(mesh("box(dim: 2, cells: 5, deform: 0.1)")?);
        let setup = setup.aux("kappa", |x| 1.0 + x[0]).aux("source", |x| x[1]).isa(isa);
        setup.dirichlet("u", "x0", |_| 1.0).build()
    };
    let mut seen: Vec<[Vec<f64>; 3]> = Vec::new();
    for isa in Isa::ALL {
        let mut system = match build(isa) {
            Ok(system) => system,
            Err(Error::Isa { .. }) if seen.is_empty() && isa != Isa::Portable => continue,
            Err(error) => return Err(error),
        };
        assert_eq!(system.origin(), Origin::AheadOfTime, "{isa}");
        seen.push(outcomes(&mut system)?);
    }
    let first = &seen[0];
    for other in &seen[1..] {
        for (a, b) in first.iter().flatten().zip(other.iter().flatten()) {
            // Sums of a few hundred terms below 10, with or without fused multiply-adds.
            assert!((a - b).abs() <= 1e4 * f64::EPSILON, "{a} and {b}");
        }
    }
    Ok(())
}

#[test]
fn a_problem_runs_with_what_it_says_and_what_is_said_otherwise() -> Result<(), Error> {
    let solution = reaction::problem::small().run()?;
    assert_eq!((solution.cells(), solution.dofs()), (9, 16));
    // Its own quadrature is among the compiled ones.
    assert_eq!(solution.origin(), Origin::AheadOfTime);
    assert!(solution.residual() < 1e-8 && solution.error("u").is_none());
    let other = reaction::problem::small()
        .mesh("box(dim: 2, cells: 4)")
        .degree(2)
        .param("sigma", 5)
        .aux("source", "1 + x[0]")
        .run()?;
    assert_eq!(other.dofs(), 81);
    assert_eq!(other.points()?.len(), other.values().len());
    Ok(())
}

#[test]
fn a_system_solves_and_its_parameters_change() -> Result<(), Error> {
    // u = x for vectors, in a space that contains it.
    let mut vector = place::form().on(mesh("box(dim: 3, cells: 2)")?).build()?;
    let mut u = vector.initial();
    vector.solve(&mut u)?;
    assert!(vector.error_l2("u", &u, |x| *x)? < 1e-10);
    let mut system = system(&reaction::form(), "box(dim: 2, cells: 3)", 1, true)?;
    let (mut before, mut after) = (system.initial(), system.initial());
    system.solve(&mut before)?;
    system.set_param("sigma", 30.0)?;
    system.solve(&mut after)?;
    assert!(after.norm() < before.norm());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("u.vtu");
    system.write_vtu(&file, &after)?;
    assert!(file.is_file());
    Ok(())
}

/// Returns the message of an error.
fn refused<T>(result: Result<T, Error>) -> String {
    result.err().map_or_else(|| "nothing was refused".to_owned(), |error| error.to_string())
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let square = || mesh("box(dim: 2, cells: 2)").expect("a mesh");
    let setup = || {
        let setup = reaction::form().on(square());
        setup.aux("kappa", |_| 1.0).aux("source", |_| 1.0)
    };
    let cases = [
        (refused(mesh("bix(dim: 2, cells: 2)")), "unknown mesh generator `bix`"),
        (refused(mesh("missing.msh")), "missing.msh"),
        (refused(Form::parse("form a { field u scalar; }", "a")), "expected `:`"),
        (refused(Form::parse("form a { field u: scalar; f0[u] = u; }", "b")), "no form `b`"),
        (refused(reaction::form().problem("smell")), "did you mean `small`?"),
        (refused(reaction::problem::small().param("sigm", 2).run()), "sigm"),
        (refused(setup().param("sigm", 2.0).build()), "did you mean `sigma`?"),
        (
            refused(setup().param("sigma", [2.0, 3.0]).build()),
            "has 1 components, but its value has 2",
        ),
        (refused(setup().param("sigma", f64::NAN).build()), "`param sigma` is NaN"),
        (refused(setup().aux("kapa", |_| 1.0).build()), "there is no aux `kapa`"),
        (refused(setup().aux("kappa", |_| f64::INFINITY).build()), "`aux kappa` is inf"),
        (refused(reaction::form().on(square()).build()), "`aux kappa` has no value"),
        (refused(setup().dirichlet("v", ALL, |_| 0.0).build()), "there is no field `v`"),
        (refused(setup().dirichlet("u", "x2", |_| 0.0).build()), "x2"),
        (
            refused(
                setup()
                    .dirichlet("u", "x2", |_| 0.0)
                    .dirichlet("u", ["x0", "xx1"], |_| 0.0)
                    .build(),
            ),
            "no boundary tags \"x2\" (did you mean \"x0\"?), \"xx1\" (did you mean \"x1\"?); it has \"x0\"",
        ),
        (refused(setup().dirichlet("u", ["x0"], |_| [0.0; 2]).build()), "its value has 2"),
        (refused(setup().dirichlet_component("u", 1, "x0", |_| 0.0).build()), "component `1`"),
        (refused(setup().dirichlet("u", ALL, |_| f64::NAN).build()), "no finite value"),
        (refused(setup().degree(13).build()), "degrees 1 to 12"),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "expected {expected:?} in {found:?}");
    }
}

#[test]
fn values_in_structs_are_those_by_name() -> Result<(), Error> {
    let untyped = system(&reaction::form(), MESHES[1].0, 1, true)?;
    let params = reaction::Params { sigma: 3.0 };
    assert_eq!(reaction::Params::default(), reaction::Params { sigma: 2.0 });
    let data = reaction::Aux { kappa: at(|x| 1.0 + x[0]), source: at(|x| x[1]) };
    let setup = reaction::form().on(mesh(MESHES[1].0)?).data(data);
    let setup = setup.dirichlet("u", ALL, |x| x[0] * x[1]);
    let mut typed = setup.params(reaction::Params { sigma: 9.0 }).build()?;
    typed.set_params(&params)?;
    let [untyped, typed] = [untyped, typed].map(|mut system| outcomes(&mut system));
    assert_eq!(untyped?, typed?);
    Ok(())
}

/// The operator of a linear form commutes with i.
#[test]
fn complex_fields_are_their_parts() -> Result<(), Error> {
    let setup = waves::form().on(mesh("box(dim: 2, cells: 3, deform: 0.1)")?).degree(2);
    let system = setup.params(waves::Params { w: 2.0 }).build()?;
    let sum = |re: f64, im: f64| -> Result<_, Error> {
        let mut u = system.interpolate("u_re", |x| re * x[0].sin() - im * x[1].cos())?;
        u.axpby(1.0, &system.interpolate("u_im", |x| im * x[0].sin() + re * x[1].cos())?, 1.0);
        let mut y = system.vector();
        system.apply(&u, &mut y)?;
        let y = y.to_vec();
        Ok([y[..y.len() / 2].to_vec(), y[y.len() / 2..].to_vec()])
    };
    let ([a, b], [c, d]) = (sum(1.0, 0.0)?, sum(0.0, 1.0)?);
    let largest = a.iter().chain(&b).fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let minus_b: Vec<f64> = b.iter().map(|b| -b).collect();
    for (one, other) in a.iter().zip(&d).chain(minus_b.iter().zip(&c)) {
        assert!((one - other).abs() <= 1e-13 * largest && largest > 0.1, "{one} {other}");
    }
    Ok(())
}

#[test]
fn structs_follow_the_dimension() -> Result<(), Error> {
    let (plane, space) = (anywhere::Params::<2>::default(), anywhere::Params::<3>::default());
    assert_eq!((plane.r#final, plane.weights), (1.0, [[1.0, 0.0], [0.0, 1.0]]));
    assert_eq!((space.r#final, space.weights[2]), (1.5, [0.0, 0.0, 1.5]));
    assert_eq!((plane.pair, space.pair), ([3.0, 4.0], [3.0, 4.0]));
    let data = || anywhere::Aux::<2> { b: at(|x| [x[0], x[1]]), c: at(|_| [[0.0; 2]; 2]) };
    let setup = || Ok::<_, Error>(anywhere::form().on(mesh("box(dim: 2, cells: 3)")?).data(data()));
    let mut system = setup()?.params(plane).build()?;
    let mut u = system.initial();
    system.solve(&mut u)?;
    assert!(system.error_l2("u", &u, |x| [3.0 * x[0], 3.0 * x[1]])? < 1e-10);
    // Those of another dimension are rejected once the mesh is known.
    let refused = setup()?.params(space).build().map(|_| ()).expect_err("another dimension");
    assert!(refused.to_string().contains("`weights` has 4 components"), "{refused}");
    assert!(system.set_params(&space).is_err());
    // All of them are replaced, or none.
    let norm = |system: &System| -> Result<f64, Error> {
        let mut r = system.vector();
        system.residual(&system.vector(), &mut r)?;
        Ok(r.norm())
    };
    let before = norm(&system)?;
    let broken = anywhere::Params::<2> { pair: [f64::NAN, 0.0], r#final: 7.0, ..plane };
    assert!(system.set_params(&broken).is_err());
    assert_eq!(norm(&system)?, before);
    Ok(())
}
