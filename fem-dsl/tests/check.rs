//! The checker's messages: code, place and wording for each kind of mistake.

use super::common::{check, diagnostics};
use fem_dsl::check::check_dimensions;
use fem_dsl::check::value::{expression, no_form, number};
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::eval::eval;
use fem_dsl::parse::parse;
use fem_dsl::point::{Degree, Input, Location, Space};
use fem_dsl::source::Source;
use std::collections::BTreeMap;

/// (items of a form, code, underlined text, part of the message or the help).
const MISTAKES: &[(&str, Code, &str, &str)] = &[
    (
        "field u: scalar; let kappa = 2; f0[u] = kapa * u;",
        Code::UnknownName,
        "kapa",
        "did you mean `kappa`?",
    ),
    ("field u: scalar; f0[u] = sinn(u);", Code::UnknownName, "sinn", "did you mean `sin`?"),
    ("field u: scalar; f0[v] = u; f1[u] = grad(u);", Code::UnknownName, "v", "unknown field `v`"),
    (
        "field u: scalar; aux a: scalar; f0[a] = u; f1[u] = grad(u);",
        Code::NotAvailableHere,
        "a",
        "is no field",
    ),
    ("field u: scalar; f0[u] = u + grad(u);", Code::ShapeMismatch, "+", "one shape"),
    ("field u: vector; f0[u] = u * u;", Code::ShapeMismatch, "*", "`outer(a, b)` the matrix"),
    ("field u: vector; f0[u] = u / u;", Code::ShapeMismatch, "/", "a component, a `norm`"),
    (
        "field u: vector; f0[u] = sin(u);",
        Code::WrongArgumentShape,
        "sin(u)",
        "`sin` needs a scalar",
    ),
    (
        "field u: scalar; f0[u] = dot(u, u);",
        Code::WrongArgumentShape,
        "dot(u, u)",
        "does not contract",
    ),
    (
        "field u: scalar; f0[u] = max(u);",
        Code::WrongArgumentCount,
        "max",
        "takes 2 arguments, but this has 1",
    ),
    (
        "field u: scalar; fn f(a) = a; f0[u] = f(u, u);",
        Code::WrongArgumentCount,
        "f",
        "takes 1 argument,",
    ),
    (
        "field u: scalar; f1[u] = u;",
        Code::WrongShape,
        "u",
        "f1[u] must have the shape of grad(u), a vector of",
    ),
    (
        "field u: vector; f0[u] = grad(u);",
        Code::WrongShape,
        "grad(u)",
        "f0[u] must have the shape of u, a vector of",
    ),
    (
        "field u: scalar; param c: vector = 1; f0[u] = u;",
        Code::WrongShape,
        "1",
        "is declared as a vector of",
    ),
    ("field u: vector; f0[u] = [u[7], u[0]];", Code::BadIndex, "7", "from 0 to"),
    ("field u: vector; f0[u] = u * u[0, 0];", Code::BadIndex, "0, 0", "has no component [0, 0]"),
    ("field u: scalar; f0[u] = u[0];", Code::BadIndex, "0", "leave the index out"),
    ("field u: scalar; f0[u] = x[u];", Code::BadIndex, "u", "an index is a whole number"),
    ("field u: scalar; f0[u] = x[0.5];", Code::BadIndex, "0.5", "an index is a whole number"),
    (
        "field u: scalar; let a = 1; let a = 2; f0[u] = a;",
        Code::DuplicateName,
        "a",
        "is declared twice",
    ),
    ("field u: scalar; fn f(u) = u; f0[u] = f(1);", Code::DuplicateName, "u", "nothing shadows"),
    (
        "field u: scalar; fn f(a, a) = a; f0[u] = f(1, u);",
        Code::DuplicateName,
        "a",
        "nothing shadows",
    ),
    (
        "field u: scalar; let a = b; let b = c + 1; let c = a; f0[u] = u;",
        Code::Cycle,
        "a",
        "a → b → c → a",
    ),
    (
        "field u: scalar; fn f(a) = f(a); f0[u] = f(u);",
        Code::Cycle,
        "f(a)",
        "`f` is defined by itself",
    ),
    (
        "field u: scalar; param c = d; param d = c; f0[u] = c;",
        Code::Cycle,
        "c",
        "defined by itself",
    ),
    (
        "field u: scalar; f0[u] = div(grad(div(grad(u))));",
        Code::NoDerivative,
        "grad(div(grad(u)))",
        "integrate by parts",
    ),
    (
        "field u: scalar; aux a: scalar on cells; f1[u] = grad(a * u);",
        Code::NoDerivative,
        "grad(a * u)",
        "`a` has no gradient",
    ),
    (
        "field u: scalar; aux a: scalar on points; f1[u] = grad(a);",
        Code::NoDerivative,
        "grad(a)",
        "only `aux … on nodes`",
    ),
    ("field u: scalar; f0[u] = u < 1;", Code::WrongShape, "u < 1", "but this is a condition"),
    ("field u: scalar; f0[u] = (u < 1) + u;", Code::ShapeMismatch, "+", "a condition and a scalar"),
    (
        "field u: scalar; f0[u] = if u { 1 } else { 2 };",
        Code::NotACondition,
        "if u { 1 } else { 2 }",
        "`if` needs a condition",
    ),
    (
        "field u: scalar; f0[u] = if !u { 1 } else { 2 };",
        Code::NotACondition,
        "!",
        "`!` needs a condition",
    ),
    (
        "field u: scalar; f0[u] = if u > 0 { x } else { u };",
        Code::ShapeMismatch,
        "if u > 0 { x } else { u }",
        "one shape",
    ),
    ("field u: scalar; f0[u] = sin;", Code::NotAFunction, "sin", "needs arguments"),
    ("field u: scalar; f0[u] = u(1);", Code::NotAFunction, "u", "is no function"),
    ("field u: scalar; f0[u] = x(1);", Code::NotAFunction, "x", "is no function"),
    ("field u: scalar; fn f(a) = a; f0[u] = f + 1;", Code::NotAFunction, "f", "needs arguments"),
    ("field u: scalar; f0[u] = n[0];", Code::NotAvailableHere, "n", "no normal inside a cell"),
    (
        "field u: scalar; param c = x[0]; f0[u] = c;",
        Code::NotAvailableHere,
        "x",
        "cannot be computed from `x`",
    ),
    (
        "field u: scalar; let a = 1; param c = a; f0[u] = c;",
        Code::NotAvailableHere,
        "a",
        "cannot be computed from `a`",
    ),
    (
        "field u: scalar; test v for u; f0[u] = v;",
        Code::NotAvailableHere,
        "v",
        "the test function `v`",
    ),
    (
        "field u: scalar; f0[u] = u; on boundary \"a\" { param g = 1; f0[u] = g; } on boundary \"b\" { f0[u] = g; }",
        Code::NotAvailableHere,
        "g",
        "belongs to a block",
    ),
    ("field u: scalar; f0[u] = [u, x][0];", Code::RaggedArray, "x", "have one shape"),
    ("field u: scalar; f0[u] = [[1, 2], [3]][0, 0];", Code::RaggedArray, "[3]", "have one shape"),
    ("param c = 1;", Code::NoField, "broken", "has no field"),
    ("field u: scalar; field p: scalar; f0[u] = u;", Code::MissingRow, "p", "write `f0[p] = …;`"),
    ("field u: scalar; f0[u] = u; f0[u] = 1;", Code::DuplicateRow, "f0[u] = 1;", "given twice"),
    (
        "field u: scalar; f0[u] = u; energy = u^2;",
        Code::MixedWays,
        "energy = u^2;",
        "one of the three ways",
    ),
    (
        "field u: scalar; test v for u; residual = u * v * v;",
        Code::NotLinear,
        "u * v * v",
        "linear in its test functions",
    ),
    ("field u: scalar; test v for u; residual = u * v + 1;", Code::NotLinear, "1", "linear"),
    ("field u: scalar; test v for u; residual = abs(v);", Code::NotLinear, "abs(v)", "linear"),
    (
        "field u: scalar; test v for u; residual = grad(v);",
        Code::WrongShape,
        "grad(v)",
        "a residual is a scalar",
    ),
    ("field u: scalar; energy = grad(u);", Code::WrongShape, "grad(u)", "an energy is a scalar"),
    ("field u: scalar in H1(0); f0[u] = u;", Code::BadDegree, "H1(0)", "degree 1 or more"),
    (
        "field u: scalar; param c = log(0); f0[u] = c;",
        Code::NotFinite,
        "log(0)",
        "not a finite number",
    ),
    ("field u: vector(65); f0[u] = u;", Code::BadComponentCount, "vector(65)", "1 to 64"),
    ("field u: scalar; f0[u] = det(x);", Code::WrongArgumentShape, "det(x)", "a square matrix"),
    (
        "field u: vector(4); f0[u] = tr(grad(x * x[0])) * u + curl(u);",
        Code::WrongArgumentShape,
        "curl(u)",
        "`curl` needs a",
    ),
];

fn text(items: &str) -> String {
    format!("form broken {{ {items} }}")
}

fn words(diagnostic: &Diagnostic) -> String {
    let labels = diagnostic.labels.iter().map(|label| label.text.clone());
    let parts = std::iter::once(diagnostic.message.clone()).chain(labels);
    let parts =
        parts.chain(diagnostic.notes.iter().cloned()).chain(diagnostic.help.iter().cloned());
    parts.collect::<Vec<_>>().join("\n")
}

#[test]
fn each_mistake_has_one_message_in_its_place() {
    for (items, code, underlined, wording) in MISTAKES {
        let text = text(items);
        for dim in [2, 3] {
            let found = diagnostics(&text, dim);
            assert_eq!(found.len(), 1, "{items}: {found:#?}");
            assert_eq!(found[0].code, *code, "{items}: {found:#?}");
            let source = Source::new("test.wf", text.as_str());
            let place = found[0].primary().map(|label| source.slice(label.span));
            assert_eq!(place, Some(*underlined), "{items}: {found:#?}");
            assert!(words(&found[0]).contains(wording), "{items}: {}", words(&found[0]));
        }
    }
}

#[test]
fn all_mistakes_of_a_form_in_one_run() {
    let found = diagnostics(
        "form a {
            field u: scalar;
            let a = wrong + 1;
            let b = a * a;
            let c = grad(grad(grad(u)));
            f0[u] = b + c + nowhere;
            f1[u] = b * u;
        }",
        2,
    );
    let codes: Vec<Code> = found.iter().map(|diagnostic| diagnostic.code).collect();
    assert_eq!(codes, [Code::UnknownName, Code::NoDerivative, Code::UnknownName], "{found:#?}");
}

#[test]
fn a_mistake_in_a_function_is_reported_once_with_its_call() {
    let found = diagnostics(
        "form a { field u: scalar; fn f(a) = a + x; f0[u] = f(u) + f(2 * u) + f(f(u)); }",
        2,
    );
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(words(&found[0]).contains("in this call of `f`"));
}

#[test]
fn functions_are_good_for_several_shapes() {
    let forms = check(
        "form a { field u: vector; fn twice(a) = a + a; f0[u] = twice(u); f1[u] = twice(grad(u)) * twice(1); }",
        2,
    );
    assert_eq!(forms.len(), 1);
}

#[test]
fn growth_by_functions_is_bounded() {
    let mut text = String::from("form a { field u: scalar; fn f0a(s) = s * s + 1; ");
    for i in 0..40 {
        text += &format!("fn g{}(s) = {}(s + {i}) * {}(s - {i}); ", i, previous(i), previous(i));
    }
    text += "f0[u] = g39(u); }";
    let found = diagnostics(&text, 2);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].code, Code::TooLarge);
}

fn previous(i: usize) -> String {
    if i == 0 { "f0a".to_owned() } else { format!("g{}", i - 1) }
}

#[test]
fn a_dimension_is_fixed_by_a_token() {
    let cases = [
        ("field u: scalar; f0[u] = x[2];", 3, "2"),
        ("field u: vector; f0[u] = cross(u, x);", 3, "cross(u, x)"),
        ("field u: vector; f0[u] = [0, 0, -9.81];", 3, "[0, 0, -9.81]"),
        ("field u: vector; param g: vector = [0, -9.81]; f0[u] = g;", 2, "[0, -9.81]"),
    ];
    for (items, good, token) in cases {
        let text = text(items);
        let source = Source::new("test.wf", text.as_str());
        let (file, errors) = parse(&source);
        assert!(errors.is_empty(), "{errors:#?}");
        let dimensions = check_dimensions(&source, &file, &file.forms[0]);
        assert!(dimensions.diagnostics().is_empty());
        assert!(dimensions.form(good).is_some() && dimensions.form(5 - good).is_none(), "{items}");
        let refusal = dimensions.refusal(5 - good).and_then(Diagnostic::primary);
        assert_eq!(refusal.map(|label| source.slice(label.span)), Some(token));
    }
}

#[test]
fn the_dimension_with_fewer_errors_is_shown() {
    let text = text("field u: scalar; f0[u] = x[2] + wrong;");
    let source = Source::new("test.wf", text.as_str());
    let (file, _) = parse(&source);
    let dimensions = check_dimensions(&source, &file, &file.forms[0]);
    let codes: Vec<Code> = dimensions.diagnostics().iter().map(|found| found.code).collect();
    assert_eq!(codes, [Code::UnknownName]);
}

#[test]
fn declarations_are_kept() {
    let form = &check(
        "/// Two\n/// lines.\nform a { field u: vector(4) in H1(k - 1); aux a: vector; aux b: scalar on nodes in L2(0);
         aux c: tensor on points; param p = q / 2; param q = 3 * pi; param r = [[1, 2], [3, 4]]; f0[u] = p * u; }",
        2,
    )[0];
    assert_eq!(form.doc, "Two\nlines.");
    assert!(form.source.starts_with("form a {") && form.source.ends_with('}'));
    assert_eq!(form.fields[0].space, Space::H1(Degree::Relative(-1)));
    assert_eq!(form.aux[0].location, Location::Nodes(Space::H1(Degree::Relative(-1))));
    assert_eq!(form.aux[1].location, Location::Nodes(Space::L2(Degree::Fixed(0))));
    assert_eq!(form.aux[2].location, Location::Points);
    assert_eq!(form.params[0].value, [1.5 * std::f64::consts::PI]);
    assert_eq!(form.params[2].value, [1.0, 2.0, 3.0, 4.0]);
    let values = form.param_values(&BTreeMap::from([(1, vec![8.0])]));
    assert_eq!(values, [vec![4.0], vec![8.0], vec![1.0, 2.0, 3.0, 4.0]]);
}

/// Returns the value of the problem's `exact` item.
fn exact(text: &str) -> (fem_dsl::ast::File, fem_dsl::ast::ExprId, fem_dsl::form::Form) {
    let all = format!(
        "form f {{ field u: scalar; aux a: scalar; param c = 3; f0[u] = c * a; }}
         problem p solves f {{ mesh = box(dim: 2, cells: 2); degree = 1; exact u = {text}; }}"
    );
    let form = check(&all, 2).remove(0);
    let (file, _) = parse(&Source::new("test.wf", all.as_str()));
    let value = file.problems[0].items.iter().find_map(|item| match item.kind {
        fem_dsl::ast::ProblemItemKind::Exact { value, .. } => Some(value),
        _ => None,
    });
    (file, value.expect("the problem has an exact solution"), form)
}

#[test]
fn problem_expressions_have_values_and_gradients() {
    let (file, value, form) = exact("c * x[0]^2 * x[1] + t");
    let checked = expression(&file, value, &form).expect("it should be well formed");
    let values = eval(&checked.graph, |input| match input {
        Input::Coordinate(j) => [0.5, 2.0][j],
        Input::Param(0, 0) => 3.0,
        Input::Time => 7.0,
        other => panic!("{other:?}"),
    });
    assert_eq!(values[checked.value[0]], 8.5);
    let gradient: Vec<f64> = checked.gradient.iter().map(|&node| values[node]).collect();
    assert_eq!(gradient, [6.0, 0.75]);
}

#[test]
fn problem_expressions_know_no_fields() {
    for (text, code, wording) in [
        ("u + 1", Code::NotAvailableHere, "a field, which is not known"),
        ("a", Code::NotAvailableHere, "auxiliary data"),
        ("n[0]", Code::NotAvailableHere, "no normal"),
        ("wrong", Code::UnknownName, "here are known"),
        ("x[0] + x", Code::ShapeMismatch, "one shape"),
        ("x[0] < 1", Code::NotACondition, "a value is expected"),
    ] {
        let (file, value, form) = exact(text);
        let found = expression(&file, value, &form).expect_err(text);
        assert_eq!(found.len(), 1, "{text}: {found:#?}");
        assert_eq!(found[0].code, code, "{text}");
        assert!(words(&found[0]).contains(wording), "{text}: {}", words(&found[0]));
    }
}

#[test]
fn numbers_are_constants() {
    let (file, value, form) = exact("2 * c + dim");
    let (_, found) = number(&file, value, &form, &[vec![5.0]]).expect("it is a number");
    assert_eq!(found, [12.0]);
    let (file, value, _) = exact("[1, 2 / 4]");
    let (_, found) = number(&file, value, &no_form(2), &[]).expect("it is a vector");
    assert_eq!(found, [1.0, 0.5]);
    let (file, value, form) = exact("x[0]");
    assert!(number(&file, value, &form, &[]).is_err());
    let (file, value, form) = exact("1 / 0");
    let found = number(&file, value, &form, &[]).expect_err("1 / 0 is not finite");
    assert_eq!(found[0].code, Code::NotFinite);
}

/// Inputs designed to be slow terminate soon, with few messages.
#[test]
fn hostile_forms_end() {
    let lets = |body: &dyn Fn(usize) -> String| -> String {
        (0..8_000).map(|i| format!("let a{i} = {}; ", body(i))).collect()
    };
    let cases = [
        // One long chain, one long cycle, many cycles, many unknown names.
        lets(&|i| if i == 0 { "u".to_owned() } else { format!("a{} + 1", i - 1) }),
        lets(&|i| format!("a{}", (i + 1) % 8_000)),
        lets(&|i| format!("a{i} + a{}", (i * 7) % 8_000)),
        lets(&|i| format!("b{i} + c{i}(1)")),
        format!("let a0 = {}1; ", "u + ".repeat(20_000)),
        format!("let a0 = grad({}u); ", "u * ".repeat(8_000)),
    ];
    for case in &cases {
        let text = format!("form a {{ field u: scalar; {case} f0[u] = a0; }}");
        let found = diagnostics(&text, 2);
        assert!(found.len() <= 101, "{}", found.len());
    }
}

#[test]
fn too_many_parameters_are_an_error() {
    let names: Vec<String> = (0..65).map(|i| format!("a{i}")).collect();
    let text = format!("form a {{ field u: scalar; fn f({}) = 1; f0[u] = u; }}", names.join(", "));
    let found = diagnostics(&text, 2);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].code, Code::WrongArgumentCount);
}
