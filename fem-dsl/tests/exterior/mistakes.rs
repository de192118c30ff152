//! Mistakes with fields in Hcurl and Hdiv: each has its code, its place and a remedy.

use crate::common::diagnostics;
use fem_dsl::check::problem::Overrides;
use fem_dsl::codes::Code;
use fem_dsl::program::compile;
use fem_dsl::source::Source;

/// Items, dimension, and the code, the text in its place and words of the message.
const MISTAKES: &[(&str, usize, Code, &str, &[&str])] = &[
    (
        "field E: vector in Hcurl(k); f0[E] = grad(E) * E;",
        3,
        Code::NoDerivative,
        "grad(E)",
        &["of `E` only `curl(E)` is a function", "write `curl(E)`"],
    ),
    (
        "field E: vector in Hcurl(k); f0[E] = div(E) * E;",
        3,
        Code::NoDerivative,
        "div(E)",
        &[
            "of `E` only `curl(E)` is a function",
            "against `grad(psi)`, with a field `psi` in `H1(k)`",
        ],
    ),
    (
        "field u: vector in Hdiv(k); f0[u] = curl(u);",
        3,
        Code::NoDerivative,
        "curl(u)",
        &[
            "of `u` only `div(u)` is a function",
            "let `u` live in `H1(k)`, or test it with the `curl`",
        ],
    ),
    (
        "field u: vector in Hdiv(k); f0[u] = curl(u) * u;",
        2,
        Code::NoDerivative,
        "curl(u)",
        &["of `u` only `div(u)` is a function"],
    ),
    (
        "field u: vector in Hdiv(k); test v for u; residual = tr(grad(v)) + dot(u, v);",
        2,
        Code::NoDerivative,
        "grad(v)",
        &["of `v` only `div(v)` is a function", "write `div(v)`"],
    ),
    (
        "field u: vector in Hdiv(k); f1[u] = div(dot(u, u) * u);",
        2,
        Code::NoDerivative,
        "div(dot(u, u) * u)",
        &["only sums and multiples of `u` have a `div`", "s does not depend on `u`"],
    ),
    (
        "field E: vector in Hcurl(k); f0[E] = curl(cross(x, E));",
        3,
        Code::NoDerivative,
        "curl(cross(x, E))",
        &["only sums and multiples of `E` have a `curl`"],
    ),
    (
        "field E: vector in Hcurl(k); f0[E] = curl(curl(E));",
        3,
        Code::NoDerivative,
        "curl(curl(E))",
        &["a second derivative of `E`", "`curl(a)` in `f0` becomes `a` in `f1`"],
    ),
    (
        "field u: vector in Hdiv(k); f0[u] = -grad(div(u));",
        2,
        Code::NoDerivative,
        "grad(div(u))",
        &["a second derivative of `u`", "`-grad(a)` in `f0` becomes `a` in `f1`"],
    ),
    (
        "field E: vector in Hcurl(k); f0[E] = dt(E) * grad(dt(E));",
        2,
        Code::NoDerivative,
        "grad(dt(E))",
        &["only `curl(dt(E))` is a function"],
    ),
    (
        "field E: vector in Hcurl(k); f1[E] = E;",
        2,
        Code::WrongShape,
        "E",
        &["f1[E] must have the shape of curl(E), a scalar"],
    ),
    (
        "field E: vector in Hcurl(k); f1[E] = outer(E, E);",
        3,
        Code::WrongShape,
        "outer(E, E)",
        &["f1[E] must have the shape of curl(E), a vector of 3"],
    ),
    (
        "field u: vector in Hdiv(k); f1[u] = u;",
        3,
        Code::WrongShape,
        "u",
        &["f1[u] must have the shape of div(u), a scalar"],
    ),
    (
        "field u: scalar in Hdiv(k); f0[u] = u;",
        3,
        Code::WrongShape,
        "scalar",
        &["a field in `Hdiv(k)` is a `vector`", "write `field u: vector in Hdiv(k);`"],
    ),
    (
        "field u: vector(3) in Hcurl(1); f0[u] = u;",
        3,
        Code::WrongShape,
        "vector(3)",
        &["`Hcurl(1)`"],
    ),
    (
        "field u: vector in Hdiv(0); f0[u] = u;",
        3,
        Code::BadDegree,
        "Hdiv(0)",
        &["the lowest order is 1"],
    ),
    (
        "field u: scalar; aux b: vector on nodes in Hdiv(k); f0[u] = b[0];",
        2,
        Code::NotAvailableHere,
        "Hdiv(k)",
        &["data in `Hdiv(k)` is not supported yet", "aux b: vector on points;"],
    ),
    (
        "field u: vector in Hdiv(k); field s: scalar in L2(k); test v for u; residual = inner(grad(u), grad(v));
      on interior { f0[jump(s)] = jump(s); }",
        2,
        Code::NoDerivative,
        "u",
        &["`grad(u)` leaves out the jumps of `u`", "its normal part alone", "its tangential part"],
    ),
    (
        "field E: vector in Hcurl(k); field s: scalar in L2(k); f0[E] = E; f0[s] = s;
      on interior { f0[jump(s)] = dot(E, n); }",
        2,
        Code::TwoValues,
        "E",
        &["`E` has two values here", "jump(E)"],
    ),
    (
        "field E: vector in Hcurl(k); test v for E; residual = dot(E, v);
      on interior { residual = dot(inside(grad(E)) * n, grad(v) * n); }",
        2,
        Code::TwoValues,
        "grad(v)",
        &["`grad(v)` has two values here"],
    ),
    (
        "field u: scalar; f0[u] = u; on boundary \"a\" { f0[u] = tangential(u); }",
        2,
        Code::WrongArgumentShape,
        "tangential(u)",
        &["`tangential` needs a vector of 2"],
    ),
];

#[test]
fn what_fields_do_not_have_is_refused_with_a_remedy() {
    for (items, dim, code, underlined, wording) in MISTAKES {
        let text = format!("form f {{ {items} }}");
        let found = diagnostics(&text, *dim);
        let first = found.first().unwrap_or_else(|| panic!("no mistake: {items}"));
        let source = Source::new("test.wf", text.as_str());
        let place = first.primary().map(|label| source.slice(label.span));
        assert_eq!((first.code, place), (*code, Some(*underlined)), "{items}: {found:#?}");
        let labels = first.labels.iter().map(|label| label.text.clone());
        let all: Vec<String> =
            [first.message.clone()].into_iter().chain(labels).chain(first.help.clone()).collect();
        for words in *wording {
            assert!(all.iter().any(|text| text.contains(words)), "{items}: {words}: {found:#?}");
        }
        assert!(!first.help.is_empty(), "{items}: no remedy");
    }
}

#[test]
fn conditions_on_other_parts_are_refused_with_a_remedy() {
    let curl = "field a: vector in Hcurl(k); f1[a] = curl(a);";
    let div = "field a: vector in Hdiv(k); f1[a] = div(a);";
    let nodal = "field a: vector; f1[a] = grad(a);";
    for (items, statement, wording) in [
        (curl, "dirichlet a[0] = 1;", "write `dirichlet cross(n, a) = … on \"tag\";`"),
        (curl, "dirichlet dot(a, n) = 1;", "write `dirichlet cross(n, a) = … on \"tag\";`"),
        (curl, "dirichlet a = x at [0, 0];", "write `dirichlet cross(n, a) = … on \"tag\";`"),
        (curl, "dirichlet cross(m, a) = 1;", "write `dirichlet cross(n, a) = 0 on \"tag\";`"),
        (curl, "mean a = [0, 0];", "leave it out"),
        (div, "dirichlet a[0] = 1;", "write `dirichlet dot(a, n) = … on \"tag\";`"),
        (div, "dirichlet cross(n, a) = 1;", "write `dirichlet dot(a, n) = 0 on \"tag\";`"),
        (nodal, "dirichlet cross(n, a) = 1;", "give its components, or let it live in `Hcurl(k)`"),
    ] {
        let text = format!(
            "form f {{ {items} }} problem p solves f {{ mesh = box(cells: 2, cell: quad); {statement} }}"
        );
        let (_, mut found) = compile(&Source::new("exterior.wf", text.clone()));
        if let (Some(program), false) =
            (compile(&Source::new("exterior.wf", text)).0, !found.is_empty())
        {
            found = program.problem("p", 2, &Overrides::default()).expect_err(statement);
        }
        assert_eq!(found.len(), 1, "{statement}: {found:#?}");
        assert!(found[0].help.iter().any(|help| help.contains(wording)), "{statement}: {found:#?}");
    }
}
