//! Formatting of small texts, one aspect per test.

use super::*;
use crate::testing::formatted;

/// Returns the formatted item of a form.
fn item(text: &str) -> String {
    let text = formatted(&format!("form a {{\n{text}\n}}\n"));
    let inner = text.strip_prefix("form a {\n").and_then(|text| text.strip_suffix("}\n"));
    inner.expect("the form should stay around its item").to_owned()
}

#[track_caller]
fn becomes(text: &str, expected: &str) {
    assert_eq!(item(text), expected);
}

#[test]
fn tokens_have_their_spaces() {
    for (text, expected) in [
        ("field u:vector(3)in H1(k-1);", "field u: vector(3) in H1(k - 1);"),
        ("aux a : tensor on nodes in L2( 0 ) ;", "aux a: tensor on nodes in L2(0);"),
        ("param c:vector=[1,-2 , 3,];", "param c: vector = [1, -2, 3,];"),
        ("fn f ( a,b )=a^-b ^ 2;", "fn f(a, b) = a^-b^2;"),
        ("f1 [ u ]= - grad ( u ) [0 ,1];", "f1[u] = -grad(u)[0, 1];"),
        ("let a=b- -c*!d/(e+1)-1;", "let a = b - -c * !d / (e + 1) - 1;"),
        (
            "let a=if!(b<c)&&d>=e||f!=g{1}else if(h){2}else{3}[0];",
            "let a = if !(b < c) && d >= e || f != g { 1 } else if (h) { 2 } else { 3 }[0];",
        ),
        ("let a=[[1,0],[0,1]][0][1];", "let a = [[1, 0], [0, 1]][0][1];"),
        ("test v for u;residual=v;", "test v for u;\n    residual = v;"),
        ("on boundary \"a\" ,\"b\"{}", "on boundary \"a\", \"b\" {}"),
    ] {
        becomes(text, &format!("    {expected}\n"));
    }
}

#[test]
fn problems_have_theirs() {
    let text = "problem p solves a{mesh=box(dim:3,cells:[4,-3]);degree=3;t=0;\n\
                dirichlet u[2]=if x[0]<1{0}else{1}on \"x0\",\"x1\";dirichlet u;aux E=file( \"a b.vtu\" ,\"E\" )on \"steel\";initial u=file(\"u.npy\");solver=newton;}";
    let expected = "problem p solves a {\n    mesh = box(dim: 3, cells: [4, -3]);\n    degree = 3;\n    \
                    t = 0;\n    dirichlet u[2] = if x[0] < 1 { 0 } else { 1 } on \"x0\", \"x1\";\n    \
                    dirichlet u;\n    aux E = file(\"a b.vtu\", \"E\") on \"steel\";\n    \
                    initial u = file(\"u.npy\");\n    solver = newton;\n}\n";
    assert_eq!(formatted(text), expected);
}

#[test]
fn long_sums_are_broken_before_their_operators() {
    becomes(
        "residual = density * dot(grad(u) * u, v) + viscosity * inner(grad(u), grad(v)) - p * div(v) - q * div(u) - dot(f, v);",
        "    residual = density * dot(grad(u) * u, v)
        + viscosity * inner(grad(u), grad(v))
        - p * div(v)
        - q * div(u)
        - dot(f, v);
",
    );
    let long = "a_name_that_is_long".repeat(3);
    becomes(
        &format!("let a = {long} * {long} + {long} * ({long} - {long});"),
        &format!(
            "    let a = {long}\n            * {long}\n        + {long}\n            * ({long}\n                - {long});\n"
        ),
    );
}

#[test]
fn long_lists_have_an_entry_a_line() {
    let long = "a_name_that_is_long".repeat(2);
    becomes(
        &format!("f1[u] = -f([[{long}, {long}], [{long}, [{long}, {long}, {long}]]], 1);"),
        &format!(
            "    f1[u] = -f(
        [
            [{long}, {long}],
            [
                {long},
                [{long}, {long}, {long}]
            ]
        ],
        1
    );\n"
        )
        .replace(
            &format!("[{long}, {long}, {long}]"),
            &format!(
                "[\n                    {long},\n                    {long},\n                    {long}\n                ]"
            ),
        ),
    );
    let tags = (0..20).map(|i| format!("\"side {i}\"")).collect::<Vec<_>>().join(",");
    let text = item(&format!("on boundary {tags} {{}}"));
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
}

#[test]
fn long_conditions_are_broken_at_their_braces() {
    let long = "a_name_that_is_long".repeat(2);
    becomes(
        &format!("let a = if {long} < 1 && b {{ {long} }} else if c {{ 1 }} else {{ {long} }};"),
        &format!(
            "    let a = if {long} < 1 && b {{
        {long}
    }} else if c {{
        1
    }} else {{
        {long}
    }};\n"
        ),
    );
    becomes(
        &format!("let a = if {long} < 1 && {long} < 2 && {long} > 3 {{ 1 }} else {{ 2 }};"),
        &format!(
            "    let a = if {long} < 1
            && {long} < 2
            && {long} > 3 {{
        1
    }} else {{
        2
    }};\n"
        ),
    );
}

#[test]
fn blank_lines_are_kept_one_at_a_time() {
    let text =
        "\n\n// A\n\n\nform a {\n\n\n    let a = 1;\n\n\n\n    let b = 2;\n\n}form b{}\n\n\n";
    let expected = "// A\n\nform a {\n    let a = 1;\n\n    let b = 2;\n}\n\nform b {}\n";
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted(""), "");
    assert_eq!(formatted("\n // only\n\n\n /* comments */\n"), "// only\n\n/* comments */\n");
    // A comment after a form stays with it.
    let text = "form a {}\n// of a\n\nform b {}\n// of nothing\n";
    assert_eq!(formatted(text), text);
    assert_eq!(
        formatted("form a {} // x\n/// B\nform b {}"),
        "form a {} // x\n\n/// B\nform b {}\n"
    );
}

#[test]
fn comments_stay_between_items() {
    becomes(
        "let a = 1;// one\nlet bbb = 2; // two\n\n// three  \r\nlet c = 3;/* four */ /* five */ // six\n   /* seven\n   eight */\n",
        "    let a = 1;   // one
    let bbb = 2; // two

    // three
    let c = 3; /* four */ /* five */ // six
    /* seven
   eight */
",
    );
    becomes(
        "/// A\n/** B */ let a = 1; /// C\nlet b = 2;",
        "    /// A\n    /** B */\n    let a = 1;\n    /// C\n    let b = 2;\n",
    );
    assert_eq!(formatted("form a { /* empty */ }"), "form a { /* empty */\n}\n");
    assert_eq!(formatted("form a {\n// empty\n}"), "form a {\n    // empty\n}\n");
    // If one of them exceeds the page, the comments are not aligned.
    let long = "word ".repeat(18);
    let sum = "a + ".repeat(9) + "1";
    let text = item(&format!("let a = 1; // {long}\nlet b = f({sum}); // b"));
    assert!(text.contains("1; // word"), "{text}");
}

#[test]
fn comments_stay_within_items() {
    becomes(
        "let a = b // one\n + c /* two */\n   // three\n * /* four */ d;",
        "    let a = b // one
        + c /* two */
            // three
            * /* four */ d;
",
    );
    becomes(
        "let a = f(/* one */ b, // two\n /* three */ c /* four */, /* five */\n d, // six\n);",
        "    let a = f(
        /* one */ b, // two
        /* three */ c /* four */, /* five */
        d, // six
    );
",
    );
    becomes("let a = ( /* b */ c)^ /* d */2;", "    let a = (/* b */ c)^ /* d */ 2;\n");
    becomes(
        "let a // one\n = // two\n 1 // three\n ;",
        "    let a // one\n        = // two\n        1 // three\n        ;\n",
    );
}

#[test]
fn errors_are_left_alone() {
    let errors = format(&Source::new("a.wf", "form a { let b = ; }")).expect_err("an error");
    assert_eq!(errors.len(), 1);
    // The semantics of a form is not checked.
    assert!(format(&Source::new("a.wf", "form a { f0[w] = c; }")).is_ok());
}
