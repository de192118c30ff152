//! `compile` and the queries of a program.

use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::eval::eval;
use fem_dsl::point::{Input, Shape};
use fem_dsl::problem::{
    AdaptiveRefinement, Argument, Expression, MeshSource, NullSpaceKind, Quadrature, RigidMotion,
    Support, Trace, UndeterminedField, ValueSource,
};
use fem_dsl::program::{Program, compile, compile_with};
use fem_dsl::source::Source;

fn program(text: &str) -> Program {
    let (program, diagnostics) = compile(&Source::new("test.wf", text));
    assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:#?}");
    program.expect("without errors there should be a program")
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<Code> {
    diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

/// Returns the formula of values, for evaluation at a point with parameters.
fn formula(values: &ValueSource) -> &Expression {
    values.formula().expect("a formula")
}

fn value(expression: &Expression, x: [f64; 3], params: &[Vec<f64>]) -> Vec<f64> {
    let values = eval(&expression.graph, |input| match input {
        Input::Coordinate(i) => x[i],
        Input::Param(i, component) => params[i][component],
        Input::Time => 0.25,
        other => panic!("{other:?}"),
    });
    expression.value.iter().map(|&node| values[node]).collect()
}

const HEAT: &str = "
form heat {
    field u: vector;
    aux q: scalar on nodes;
    param c = 1;
    param d = 2 * c;
    param g: vector = [0, 1];
    f0[u] = q * c * d * u + g;
    f1[u] = grad(u);
}
problem warm solves heat {
    mesh = box(dim: 2, cells: [4, 3], to: [2, 1], cell: tri);
    degree = 3;
    quadrature = 2 * 4;
    t = 1 / 4;
    param c = pi;
    aux q = sin(x[0]) * c;
    exact u = [x[0]^2, x[1] + t];
    dirichlet u on \"x0\";
    dirichlet u[1];
    dirichlet u[0] = c on \"y1\", \"y0\";
    solver = cg(rtol: 1e-9, preconditioner: none);
}
problem bare solves heat { }
";

#[test]
fn a_problem_is_all_that_was_written() {
    let program = program(HEAT);
    let (mesh, dim) = program.mesh("warm", &Overrides::default()).expect("there is a mesh");
    assert_eq!(dim, Some(2));
    let MeshSource::Generator { name, arguments } = &mesh else { panic!("{mesh:?}") };
    assert_eq!(name, "box");
    assert_eq!(arguments["cells"], Argument::Numbers(vec![4.0, 3.0]));
    assert_eq!(arguments["cell"], Argument::Word("tri".to_owned()));

    let problem = program.problem("warm", 2, &Overrides::default()).expect("a right problem");
    assert_eq!(
        (problem.degree, problem.quadrature, problem.time),
        (3, Some(Quadrature::Degree(8)), 0.25)
    );
    // d depends on c.
    let pi = std::f64::consts::PI;
    assert_eq!(problem.params, vec![(0, vec![pi]), (1, vec![2.0 * pi])]);
    let params = [vec![pi], vec![2.0 * pi], vec![0.0, 1.0]];
    assert_eq!(
        value(formula(&problem.aux[0].value), [2.0, 0.0, 0.0], &params),
        [2.0f64.sin() * pi]
    );
    assert_eq!(problem.exact[0].1.gradient.len(), 4);
    let conditions = &problem.dirichlet;
    assert_eq!(conditions.len(), 3);
    assert_eq!(value(&conditions[0].value, [3.0, 5.0, 0.0], &params), [9.0, 5.25]);
    assert_eq!(
        (conditions[1].trace, conditions[1].value.shape),
        (Trace::Component(1), Shape::Scalar)
    );
    assert_eq!(value(&conditions[1].value, [3.0, 5.0, 0.0], &params), [5.25]);
    assert_eq!(conditions[1].support, Support::Boundary);
    assert_eq!(value(&conditions[2].value, [0.0; 3], &params), [pi]);
    assert_eq!(conditions[2].support, Support::Tags(vec!["y1".to_owned(), "y0".to_owned()]));
    let solver = problem.solver.expect("a solver was named");
    assert_eq!(solver.tolerances(), [Some(1e-9), None]);
    program.problem("warm", 2, &Overrides::default()).expect("a right problem");
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

#[test]
fn overrides_replace_items() {
    let program = program(HEAT);
    let overrides = Overrides {
        mesh: Some("ball(dim: 2, refine: 1)".to_owned()),
        degree: Some("1 + 1".to_owned()),
        solver: Some("newton".to_owned()),
        params: vec![pair("c", "3"), pair("g", "[c, 0]")],
        aux: vec![pair("q", "x[1] // a remark")],
        ..Overrides::default()
    };
    let (mesh, dim) = program.mesh("warm", &overrides).expect("there is a mesh");
    assert!(matches!(mesh, MeshSource::Generator { name, .. } if name == "ball"));
    assert_eq!(dim, Some(2));
    // The ball has no side "x0".
    let wrong = program.problem("warm", 2, &overrides).expect_err("a tag is missing");
    assert_eq!(codes(&wrong), [Code::BadValue; 3]);

    let overrides = Overrides { mesh: Some("C:\\a b.msh".to_owned()), ..overrides };
    let problem = program.problem("warm", 2, &overrides).expect("a right problem");
    let (mesh, _) = program.mesh("warm", &overrides).expect("there is a mesh");
    assert_eq!(mesh, MeshSource::File("C:\\a b.msh".to_owned()));
    assert_eq!(problem.degree, 2);
    assert_eq!(problem.params, vec![(0, vec![3.0]), (1, vec![6.0]), (2, vec![3.0, 0.0])]);
    assert_eq!(value(formula(&problem.aux[0].value), [0.0, 7.0, 0.0], &[]), [7.0]);
    assert_eq!(problem.solver.map(|solver| solver.word()), Some("newton"));
}

#[test]
fn mistakes_in_overrides_show_the_override() {
    let program = program(HEAT);
    let overrides = Overrides {
        mesh: Some("bal(dim: 2)".to_owned()),
        degree: Some("2;".to_owned()),
        params: vec![pair("kappa", "1"), pair("c", "log(-1)"), pair("d", "1 +")],
        ..Overrides::default()
    };
    let wrong = program.problem("warm", 2, &overrides).expect_err("all of it is wrong");
    let place = |found: &Diagnostic| {
        let source = found.source.as_ref().expect("a piece of the command line");
        let span = found.primary().expect("a place").span;
        (source.name().to_owned(), source.slice(span).to_owned())
    };
    let places: Vec<_> = wrong.iter().map(place).collect();
    assert_eq!(codes(&wrong), [Code::UnexpectedToken, Code::UnexpectedToken], "{wrong:#?}");
    assert_eq!(places[1], ("--param".to_owned(), String::new()));

    let overrides = Overrides { degree: None, ..overrides };
    let overrides = Overrides { params: overrides.params[..2].to_vec(), ..overrides };
    let wrong = program.problem("warm", 2, &overrides).expect_err("all of it is wrong");
    assert_eq!(codes(&wrong), [Code::UnknownGenerator, Code::NotInForm, Code::NotFinite]);
    let places: Vec<_> = wrong.iter().map(place).collect();
    let expected = [("--mesh", "bal"), ("--param", "kappa"), ("--param", "log(-1)")];
    assert_eq!(places, expected.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

#[test]
fn missing_items_are_reported() {
    let program = program(HEAT);
    let none = Overrides::default();
    assert_eq!(codes(&program.mesh("bare", &none).expect_err("no mesh")), [Code::MissingSetting]);
    let wrong = program.problem("bare", 2, &none).expect_err("no mesh, no q");
    assert_eq!(codes(&wrong), [Code::MissingSetting; 2]);
    let wrong = program.problem("warn", 2, &none).expect_err("no such problem");
    assert_eq!(codes(&wrong), [Code::UnknownProblem]);
    assert_eq!(wrong[0].help, ["did you mean `warm`?"]);
    let wrong = program.point_form("heet", 2).expect_err("no such form");
    assert_eq!(codes(&wrong), [Code::UnknownForm]);
}

#[test]
fn the_dimension_comes_from_the_mesh() {
    let program = program(
        "form a { field u: scalar; f0[u] = u * x[2]; } problem p solves a { mesh = \"m.msh\"; }",
    );
    assert_eq!(program.mesh("p", &Overrides::default()).expect("a mesh").1, None);
    assert!(program.problem("p", 3, &Overrides::default()).is_ok());
    let wrong = program.problem("p", 2, &Overrides::default()).expect_err("x[2] needs 3");
    assert_eq!(codes(&wrong), [Code::WrongDimension]);
    assert_eq!(program.source().slice(wrong[0].labels[1].span), "2");
    assert!(program.point_form("a", 3).is_ok());
    assert_eq!(codes(&program.point_form("a", 2).expect_err("x[2]")), [Code::WrongDimension]);
}

#[test]
fn adaptive_steps_have_limits_and_defaults() {
    let adapt = |dim: usize, arguments: &str, overrides: &Overrides| {
        let rate = if arguments.contains("time") { "dt(u) + " } else { "" };
        let text = format!(
            "form a {{ field u: scalar; param share = 0.4; f0[u] = {rate}share * u; }}
             problem q solves a {{ mesh = ball(dim: {dim}); param share = 0.2; adapt({arguments}); }}"
        );
        let problem = program(&text).problem("q", dim, overrides).expect("a problem");
        problem.adapt.expect("adaptive steps")
    };
    let plain = |dim, arguments| adapt(dim, arguments, &Overrides::default());
    let none = AdaptiveRefinement {
        every: None,
        steps: 10,
        fraction: 0.5,
        until: None,
        max_dofs: None,
        coarsen: 0.0,
        levels: None,
    };
    assert_eq!(plain(2, ""), none);
    assert_eq!(plain(3, ""), AdaptiveRefinement { fraction: 0.3, ..none });
    assert_eq!(
        plain(2, "until: 10^-3"),
        AdaptiveRefinement { steps: 100, until: Some(10f64.powi(-3)), ..none }
    );
    assert_eq!(
        plain(2, "max_dofs: 1e6"),
        AdaptiveRefinement { steps: 100, max_dofs: Some(1_000_000), ..none }
    );
    assert_eq!(
        plain(2, "coarsen: 0.03, max_dofs: 5000, until: 0.1, fraction: 0.3, steps: 2 * dim"),
        AdaptiveRefinement {
            steps: 4,
            fraction: 0.3,
            until: Some(0.1),
            max_dofs: Some(5000),
            coarsen: 0.03,
            ..none
        }
    );
    assert_eq!(plain(2, "levels: 3"), AdaptiveRefinement { steps: 100, levels: Some(3), ..none });
    // Through time the initial mesh is adapted, and then one after each so many steps.
    let timed = |arguments: &str| {
        let text = format!("{arguments}); time = bdf(to: 1, step: 0.1");
        adapt(2, &text, &Overrides::default())
    };
    let moving =
        AdaptiveRefinement { every: Some(5), steps: 20, fraction: 0.99, coarsen: 1e-3, ..none };
    assert_eq!(timed("every: 5, levels: 3"), AdaptiveRefinement { levels: Some(3), ..moving });
    assert_eq!(
        timed("every: 5, max_dofs: 5000, coarsen: 0, steps: 1"),
        AdaptiveRefinement { steps: 1, max_dofs: Some(5000), coarsen: 0.0, ..moving }
    );
    // Parameters of the problem, and of the command line.
    assert_eq!(plain(2, "fraction: share"), AdaptiveRefinement { fraction: 0.2, ..none });
    let said =
        Overrides { params: vec![("share".to_owned(), "0.7".to_owned())], ..Overrides::default() };
    assert_eq!(adapt(2, "fraction: share", &said), AdaptiveRefinement { fraction: 0.7, ..none });
    let without = program(
        "form a { field u: scalar; f0[u] = u; } problem q solves a { mesh = ball(dim: 2); }",
    );
    assert_eq!(without.problem("q", 2, &Overrides::default()).expect("a problem").adapt, None);
}

/// A parameter that only `adapt` reads is used.
#[test]
fn settings_of_adaptive_steps_are_used() {
    let program = program(
        "form a { field u: scalar; param share = 0.4; f0[u] = u; }
         problem q solves a { mesh = ball(); adapt(fraction: share); }",
    );
    assert!(program.warnings().is_empty(), "{:?}", program.warnings());
}

#[test]
fn undetermined_fields_are_reported_at_the_problem() {
    let program = program(
        "form a { field u: vector; f1[u] = grad(u); }
         problem free solves a { mesh = ball(dim: 2); }",
    );
    let at = [0.5, 0.0, 0.0];
    let motion = |speed: ([f64; 3], [f64; 3])| {
        NullSpaceKind::Motion(Box::new(RigidMotion::new(2, at, speed, at, (1, [1.0, 0.0, 0.0]))))
    };
    for (component, freedom, words) in [
        (
            Some(1),
            NullSpaceKind::Constant,
            "component 1 of `u`: its solution is known up to a constant",
        ),
        (None, NullSpaceKind::EachCell, "`u`: its solution is known up to a constant in each cell"),
        (
            None,
            NullSpaceKind::Part { parts: 2, free: 1, at, mean: false },
            "one of the 2 parts of the mesh, at (0.5, 0, 0)",
        ),
        (
            None,
            NullSpaceKind::Part { parts: 3, free: 2, at, mean: true },
            "`mean` fixes one constant, and nothing fixes `u` on 2 of",
        ),
        (
            None,
            NullSpaceKind::Everything { at },
            "no term of the form determines `u` at (0.5, 0, 0)",
        ),
        (
            None,
            motion(([0.0; 3], [0.0, 0.0, 2.0])),
            "the conditions on `u` let the part at (0.5, 0, 0) turn about (0.5, 0)",
        ),
        // The centre has zero displacement.
        (None, motion(([0.0, 2.0, 0.0], [0.0, 0.0, 2.0])), "turn about (-0.5, 0)"),
        (None, motion(([0.0, 3.0, 0.0], [0.0; 3])), "move along (0, 1)"),
    ] {
        let unfixed = UndeterminedField { field: "u".to_owned(), component, null_space: freedom };
        let diagnostic = program.undetermined_field("free", &unfixed);
        assert_eq!((diagnostic.code, diagnostic.labels.len()), (Code::Unfixed, 1));
        assert!(diagnostic.message.contains(words), "{diagnostic:?}");
        assert!(unfixed.remedy().contains("u"), "{unfixed:?}");
    }
}

#[test]
fn linear_solvers_are_for_linear_forms() {
    let program = program(
        "form a { field u: scalar; f0[u] = u^3; f1[u] = grad(u); }
         problem p solves a { mesh = ball(); solver = cg(); }
         problem q solves a { mesh = ball(); solver = newton(rtol: 1e-8, line_search: none); }",
    );
    let wrong = program.problem("p", 3, &Overrides::default()).expect_err("u^3");
    assert_eq!(codes(&wrong), [Code::BadValue]);
    assert!(program.problem("q", 3, &Overrides::default()).is_ok());
}

#[test]
fn solvers_for_symmetric_jacobians_are_refused_where_they_are_not() {
    let program = program(
        "form wind { field u: scalar; f0[u] = grad(u)[0]; f1[u] = grad(u); }
         form plain { field u: vector; let F = I + grad(u); f1[u] = F - transpose(inv(F)); }
         problem p solves wind { mesh = ball(); solver = minres(); }
         problem q solves wind { mesh = ball(); solver = direct(); }
         problem r solves plain { mesh = ball(); solver = newton(linear: cg, steps: 4); }
         problem s solves wind { mesh = ball(); solver = newton(linear: cg); }",
    );
    for name in ["p", "s"] {
        let wrong = program.problem(name, 3, &Overrides::default()).expect_err("a wind");
        assert!(wrong[0].message.contains("symmetric"), "{name}: {}", wrong[0].message);
    }
    for name in ["q", "r"] {
        assert!(program.problem(name, 3, &Overrides::default()).is_ok(), "{name}");
    }
}

#[test]
fn fields_on_the_command_line() {
    let program = program(HEAT);
    let values = [pair("u", "[x[0] * c, 1]")];
    let found = program.field_values("heat", 2, "--at", &values).expect("a right value");
    assert_eq!(found[0].0, 0);
    assert_eq!(value(&found[0].1, [2.0, 0.0, 0.0], &[vec![5.0]]), [10.0, 1.0]);
    let wrong = program.field_values("heat", 2, "--at", &[pair("u", "1"), pair("v", "x")]);
    let wrong = wrong.expect_err("neither is right");
    assert_eq!(codes(&wrong), [Code::WrongShape, Code::NotInForm]);
}

/// Returns the warnings of a text without errors, each with the underlined text.
fn warned(text: &str, overrides: &Overrides) -> Vec<(Code, String)> {
    let source = Source::new("a.wf", text);
    let (program, diagnostics) = compile_with(&source, None, overrides);
    assert!(diagnostics.iter().all(|found| !found.is_error()), "{diagnostics:#?}");
    let program = program.expect("a program");
    assert_eq!(program.warnings(), diagnostics);
    let place =
        |found: &Diagnostic| source.slice(found.primary().expect("a place").span).to_owned();
    diagnostics.iter().map(|found| (found.code, place(found))).collect()
}

/// A name used only by unused ones is unused; one that a problem or the command line needs is not.
#[test]
fn names_that_are_never_used_are_warned_of() {
    let text = "form a { field u: scalar; param c = 1; param d = c; let e = 2 * d; fn f(s) = s * e; aux q: scalar;
                f0[u] = -1; f1[u] = grad(u); }
                problem p solves a { mesh = box(dim: 2, cells: 1); aux q = 1; dirichlet u = 0; }";
    let none = Overrides::default();
    let names = |found: Vec<(Code, String)>| -> Vec<String> {
        assert!(found.iter().all(|(code, _)| *code == Code::UnusedName), "{found:?}");
        found.into_iter().map(|(_, name)| name).collect()
    };
    assert_eq!(names(warned(text, &none)), ["c", "d", "e", "f", "q"]);
    let by_problem = text.replace("dirichlet u = 0", "dirichlet u = d");
    assert_eq!(names(warned(&by_problem, &none)), ["e", "f", "q"]);
    let by_row = text.replace("f0[u] = -1;", "on boundary \"x0\" { f0[u] = f(u); }");
    assert_eq!(names(warned(&by_row, &none)), ["q"]);
    let solution = Overrides { manufactured: vec![pair("u", "d")], ..none };
    assert_eq!(names(warned(text, &solution)), ["e", "f", "q"]);
    // A load parameter without other uses has no effect.
    let grown =
        text.replace("dirichlet u = 0;", "dirichlet u = 0; solver = newton(steps: 2, load: d);");
    assert_eq!(names(warned(&grown, &Overrides::default())), ["c", "d", "e", "f", "q"]);
    // Errors suppress warnings.
    let (_, wrong) = compile(&Source::new("a.wf", text.replace("f0[u] = -1", "f0[u] = -g")));
    assert_eq!(codes(&wrong), [Code::UnknownName]);
}

#[test]
fn conditions_with_different_values_on_one_tag_are_warned_of() {
    let with = |conditions: &str| {
        let text = format!(
            "form a {{ field u: vector; param c = 2; f0[u] = c * u; f1[u] = grad(u); }}
             problem p solves a {{ mesh = box(dim: 2, cells: 1); {conditions} }}"
        );
        let found = warned(&text, &Overrides::default());
        assert!(found.iter().all(|(code, _)| *code == Code::ReplacedCondition), "{found:?}");
        found.len()
    };
    let twice = "dirichlet u[0] = 1 on \"x0\";";
    assert_eq!(with(&format!("{twice} dirichlet u[0] = 2 on \"x0\";")), 1);
    assert_eq!(with(&format!("{twice} dirichlet u[0] = x[0] on \"y0\", \"x0\";")), 1);
    assert_eq!(with(&format!("{twice} dirichlet u = [0, 0] on \"x0\";")), 1);
    assert_eq!(with(&format!("{twice} dirichlet u = [0, 0] on all;")), 1);
    assert_eq!(with("dirichlet u = [0, 0]; dirichlet u = [c, 0];"), 1);
    // Exceptions, other supports, other components, and equal values cause no warnings.
    assert_eq!(
        with(
            "dirichlet u = [0, 0] on all; dirichlet u = [1, 0] on \"x0\"; dirichlet u[1] = 3 on \"x0\";"
        ),
        0
    );
    assert_eq!(
        with(&format!("{twice} dirichlet u[0] = 2 on \"x1\"; dirichlet u[1] = 2 on \"x0\";")),
        0
    );
    assert_eq!(
        with(&format!(
            "{twice} dirichlet u[0] = c / 2 on \"x0\"; dirichlet u = [1, x[1]] on \"x0\";"
        )),
        0
    );
}

/// Examples, the forms of the tests and the code of the README.
#[test]
fn the_files_of_the_project_have_no_warnings() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut texts = Vec::new();
    for folder in ["examples", "tests/forms"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder").flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "wf") {
                let text = std::fs::read_to_string(entry.path()).expect("a text");
                texts.push((entry.path().display().to_string(), text));
            }
        }
    }
    let readme = std::fs::read_to_string(root.join("README.md")).expect("the README");
    let shown = readme.split("```wf\n").skip(1).filter_map(|rest| rest.split("```").next());
    texts.extend(shown.map(|text| ("README.md".to_owned(), text.to_owned())));
    assert!(texts.len() > 20, "{}", texts.len());
    for (name, text) in texts {
        let (_, mut found) = compile(&Source::new(&name, text));
        found.retain(|found| !found.is_error());
        assert!(found.is_empty(), "{name}: {found:#?}");
    }
}

/// One check reports all tags that the mesh lacks, with locations in boundary blocks and in conditions.
#[test]
fn all_unknown_tags_come_out_of_one_check() {
    let text = "form a { field u: scalar; f1[u] = grad(u); on boundary \"x1\", \"lefft\" { f0[u] = u; } \
                on boundary \"x2\" { f0[u] = 1; } } \
                problem q solves a { mesh = MESH; dirichlet u = 0 on \"x00\", \"y0\"; }";
    let source = Source::new("a.wf", text.replace("MESH", "box(dim: 2, cells: 2)"));
    let (_, found) = compile(&source);
    let place =
        |found: &Diagnostic| source.slice(found.primary().expect("a place").span).to_owned();
    assert_eq!(
        found.iter().map(place).collect::<Vec<_>>(),
        ["\"lefft\"", "\"x2\"", "\"x00\""],
        "{found:#?}"
    );
    assert!(
        found.iter().all(|found| found.code == Code::BadValue && found.notes[0].contains("\"y1\""))
    );
    assert_eq!(found[1].help, ["did you mean `x0`?"]);
    let given = Overrides { tagged: true, ..Overrides::default() };
    assert_eq!(compile_with(&source, None, &given).1.len(), 1, "those of forms are given");
    // Those of a file are found when it is read.
    let program = program(&text.replace("MESH", "\"a.msh\""));
    let known = ["x0".to_owned(), "left".to_owned()];
    let found = program.unknown_tags("q", &Overrides::default(), &known);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(found[1].help == ["did you mean `left`?"], "{found:#?}");
}

#[test]
fn faults_in_other_problems_and_forms_are_no_failure() {
    let text = "
        form poisson { field u: scalar; f1[u] = grad(u); }
        form broken { field u: scalar; f1[u] = u; param unused = 1; }
        problem good solves poisson { mesh = box(dim: 2, cells: 1); dirichlet u = 0; }
        problem bad solves poisson { mesh = box(dim: 2, cells: 1); dirichlet v = 0; degree = ; }
        problem worse solves broken { mesh = box(dim: 4, cells: 1); }";
    let source = Source::new("test.wf", text);
    let (program, found) = compile_with(&source, Some("good"), &Overrides::default());
    assert_eq!(codes(&found), []);
    program.expect("a program").problem("good", 2, &Overrides::default()).expect("a problem");
    for wanted in [Some("bad"), Some("worse"), None] {
        let (program, found) = compile_with(&source, wanted, &Overrides::default());
        assert!(program.is_none() && found.iter().any(Diagnostic::is_error), "{wanted:?}");
    }
    // The form of the mass belongs to the problem.
    let eigen = "problem good solves poisson { mesh = box(dim: 2, cells: 1); eigen = smallest(1); mass = broken; }";
    let text = format!(
        "form poisson {{ field u: scalar; f1[u] = grad(u); }} form broken {{ field u: scalar; f0[u] = v; }} {eigen}"
    );
    let (program, _) =
        compile_with(&Source::new("test.wf", text), Some("good"), &Overrides::default());
    assert!(program.is_none());
}

#[test]
fn names_such_as_energy_and_where_clash_with_nothing() {
    let text = "
        form match {
            field test: scalar;
            param energy = 1;
            param while = 2;
            let where = energy * while;
            fn residual(vector, loop) = vector + loop;
            f0[test] = residual(where, test) - 3;
            f1[test] = grad(test);
        }
        problem for solves match {
            mesh = box(dim: 2, cells: 2);
            param while = 4;
            dirichlet test = energy * while;
            report energy_of = integral(where * test);
            report mean = integral(test);
            report max = maximum(test);
            report h = energy * test([0, 0]);
        }";
    let program = program(text);
    let problem = program.problem("for", 2, &Overrides::default()).expect("a problem");
    let names: Vec<&str> = problem.reports.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["energy_of", "mean", "max", "h"]);
    // Energies and weak forms are parsed as usual, also after a broken item.
    let text = "form a { field u: scalar; let energy = ; energy = u^2; }
                form b { field u: scalar; test v for u; let c = 1 residual = u * v; }";
    let (_, found) = compile(&Source::new("test.wf", text));
    assert_eq!(codes(&found), [Code::UnexpectedToken, Code::UnexpectedToken], "{found:#?}");
}

#[test]
fn a_report_without_a_measure_is_a_reference_value() {
    let text = "
        form a { field u: scalar; param r = 0.1; param D = 3; f0[u] = r; f1[u] = D * grad(u); }
        problem p solves a {
            mesh = box(dim: 2, cells: 2);
            t = 2;
            dirichlet u = 0;
            report law = 2 * sqrt(r * D) + t;
            report place = x[0];
        }";
    let (_, found) = compile(&Source::new("test.wf", text));
    assert_eq!(codes(&found), [Code::NotAvailableHere]);
    let problem = program(&text.replace("report place = x[0];", ""));
    let problem = problem.problem("p", 2, &Overrides::default()).expect("a problem");
    assert!(problem.reports.integrals.is_none() && problem.reports.pointwise.is_none());
}
