//! Mistakes in the text of a file and on the command line.

use super::gallery::{FORM, Said, Stand, at, place, plain_failure, said};

const BOX: &str = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";

#[test]
fn texts_that_are_no_forms() {
    let cases: [(&str, &str, &str, &[&str]); 8] = [
        ("form a { field u: scalar;\n  f0[u] = -; }", "E0101", "; }", &["expected an expression"]),
        ("form a { field u: scalar; f1[u] = u; }", "E0203", "u; }", &["a vector of 2", "gradient"]),
        (
            "form a { field u: scalar; let kappa = 1; f0[u] = kapa; f1[u] = grad(u); }",
            "E0201",
            "kapa",
            &["unknown name `kapa`", "did you mean `kappa`?"],
        ),
        ("form a { field u: scalar; f0[u] = u + grad(u); }", "E0202", "+", &["vector of 2"]),
        ("form a { field u: scalar; param f = 0 / 0; f0[u] = f; }", "E0307", "0 / 0", &["NaN"]),
        ("form a { field u: scalar; f0[u] = u ∇ u; }", "E0102", "∇", &["`grad(u)`"]),
        ("form a { field u: scalar; f0[u] = u\0; }", "E0102", "\0", &["U+0000", "remove it"]),
        ("form a { field u: scalar; f0[u] = (u; }", "E0106", "(u", &["add `)`"]),
    ];
    for (text, code, token, words) in cases {
        let stand = Stand::with(text);
        let said = at(code, place(text, token), words);
        for command in [&["check", "a.wf"][..], &["run", "a.wf"], &["emit", "a.wf"]] {
            stand.refuses(command, said);
        }
        stand.refuses_probe(&["--at", "u=1"], said);
    }
}

#[test]
fn files_that_are_no_texts() {
    let words = &["not valid UTF-8", "0xFF", "save the file as UTF-8"];
    let not_utf8 = Stand::with(b"form a {\n  field \xFF: scalar; }");
    not_utf8.refuses_run(&[], at("E0111", ("a.wf", 2, 9), words));
    let long = Stand::with("/".repeat((1 << 20) + 1));
    let said_long =
        Said { code: Some("E0110"), place: None, words: &["longer than 1048576 bytes"] };
    long.refuses_run(&[], said_long);
    let none = Stand::new();
    none.refuses_run(&[], said(&["cannot read a.wf", "help: "]));
    none.refuses(&["check", "a.wf"], said(&["cannot read a.wf"]));
    let folder = Stand::new();
    std::fs::create_dir(folder.path("a.wf")).expect("a folder");
    folder.refuses_run(&[], said(&["cannot read a.wf", "help: "]));
}

/// Deep nesting, by any construct of the grammar, is an error and never a crash.
#[test]
fn nesting_is_limited() {
    let words = &["nest more than 128 deep", "`let`"];
    let nests = [
        ("(".repeat(10_000), ")".repeat(10_000)),
        ("(".repeat(10_000), String::new()),
        ("[".repeat(10_000), "]".repeat(10_000)),
        ("sin(".repeat(10_000), ")".repeat(10_000)),
        ("if u > 0 { 1 } else ".repeat(10_000), "{ 2 }".to_owned()),
    ];
    for (open, close) in nests {
        let stand = Stand::with(format!("form a {{ field u: scalar; f0[u] = {open}u{close}; }}"));
        let output = stand.output(&["run", "a.wf"]);
        let text = plain_failure(&output, &["run"]);
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
        assert!(text.contains("error[E0107]"), "{text}");
    }
    let stand = Stand::problem(BOX);
    let deep = format!("f={}1{}", "(".repeat(10_000), ")".repeat(10_000));
    stand.refuses_run(&["--param", &deep], at("E0107", ("--param", 1, 132), words));
}

#[test]
fn all_errors_of_all_files_come_out_of_one_run() {
    let stand = Stand::with("form a { field u: scalar; f0[u] = v; f1[u] = u; }");
    stand.write("b.wf", "form b { field u: scalar; f0[u] = +; }");
    let output = stand.output(&["check", "a.wf", "missing.wf", "b.wf"]);
    let text = plain_failure(&output, &["check"]);
    for words in ["E0201", "E0203", "missing.wf", "E0101", "a.wf:1:35", "b.wf:1:35"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn problems_that_do_not_fit_their_forms() {
    let cases: [(&str, &str, &str, &[&str]); 12] = [
        (
            "mesh = box(dim: 2, cells: 2); dirichlet u = 0 on \"left\";",
            "E0405",
            "\"left\"",
            &["\"x0\", \"x1\""],
        ),
        (
            "mesh = box(dim: 2, cells: 2);",
            "E0412",
            "q solves",
            &["nothing fixes `u`", "dirichlet u = …"],
        ),
        (
            "mesh = box(dim: 2, cells: 2); param f = log(-1); dirichlet u = 0;",
            "E0307",
            "log",
            &["NaN"],
        ),
        (
            "mesh = box(dim: 2, cells: 2); param f = 0; dirichlet u = 0;",
            "E0307",
            "0;",
            &["`g`", "inf"],
        ),
        (
            "mesh = box(dim: 2, cells: 2); dirichlet w = 0;",
            "E0408",
            "w =",
            &["no field `w`", "`u`"],
        ),
        ("mesh = box(dim: 2, cells: 2); dirichlet u = [0, 0];", "E0203", "[0", &["vector of 2"]),
        ("mesh = bax(dim: 2, cells: 2);", "E0403", "bax", &["did you mean `box`?"]),
        ("mesh = box(cells: 1, dim: 2, cell: squares);", "E0405", "squares", &["`quad`"]),
        ("mesh = box(dim: 4, cells: 2);", "E0405", "4", &["from 2 to 3"]),
        ("mesh = box(cells: 2); degree = 1.5; dirichlet u = 0;", "E0405", "1.5", &["from 1 to 12"]),
        (
            "mesh = box(cells: 2); solver = cgg(); dirichlet u = 0;",
            "E0407",
            "cgg",
            &["did you mean `cg`?"],
        ),
        (
            "mesh = box(cells: 2); solver = cg(rtoll: 1); dirichlet u = 0;",
            "E0404",
            "rtoll",
            &["did you mean `rtol`?"],
        ),
    ];
    for (items, code, token, words) in cases {
        let stand = Stand::problem(items);
        stand.refuses_run(&[], at(code, stand.place(token), words));
    }
    Stand::problem("dirichlet u = 0;")
        .refuses_run(&[], at("E0402", ("a.wf", 2, 9), &["no mesh", "write `mesh = "]));
    Stand::with(FORM).refuses_run(&[], said(&["no problem to solve", "help: add `problem"]));
    Stand::with("problem q solves nothing { mesh = ball(); }")
        .refuses_run(&[], at("E0401", ("a.wf", 1, 18), &["no form `nothing`"]));
}

#[test]
fn values_that_are_no_numbers_somewhere() {
    let form =
        "form p { field u: vector; aux a: scalar on cells; f0[u] = a * u; f1[u] = grad(u); }\n";
    let cases: [(&str, &str, &[&str]); 5] = [
        ("aux a = 1 / 0; dirichlet u = [0, 0];", "1 / 0", &["`aux a` is inf"]),
        ("dirichlet u = [0, 0];", "q solves", &["`a` has no value", "write `aux a = "]),
        ("aux a = 1; dirichlet u = [0, log(x[0])];", "[0, log", &["`u` is -inf at (0, "]),
        ("aux a = 1; dirichlet u[1] = 1 / x[0] on \"x0\";", "1 / x", &["is inf at (0, "]),
        ("aux a = 1; dirichlet u = [0, 0]; exact u = [1, log(-1)];", "[1, log", &["`u` is NaN"]),
    ];
    for (items, token, words) in cases {
        let problem = format!("problem q solves p {{ mesh = box(dim: 2, cells: 2); {items} }}");
        let stand = Stand::with(format!("{form}{problem}"));
        let code = if token == "q solves" { "E0402" } else { "E0307" };
        stand.refuses_run(&[], at(code, stand.place(token), words));
    }
    let components = "mesh = box(dim: 2, cells: 2); dirichlet u[0] = 0;";
    let free = "form p { field u: vector; f1[u] = grad(u); }\n";
    let stand = Stand::with(format!("{free}problem q solves p {{ {components} }}"));
    stand.refuses_run(&[], at("E0412", stand.place("q"), &["component 1 of `u`"]));
}

#[test]
fn a_form_without_a_finite_value_is_underlined() {
    let form = "form p { field u: scalar; let s = 1 - 4 * u; f0[u] = -1; f1[u] = (2 + log(s)) * grad(u); }\n";
    let problem = "problem q solves p { mesh = box(dim: 2, cells: 2); dirichlet u = x[0]; }";
    let text = format!("{form}{problem}");
    let words = &["`log(s)` is NaN", "`s` = -", "cell "];
    Stand::with(text.clone()).refuses_run(&[], at("E0418", place(&text, "log(s)"), words));
}

#[test]
fn forms_on_meshes_of_the_wrong_dimension() {
    let text = "form p { field u: scalar; f1[u] = cross(x, grad(u)); }\n\
                problem q solves p { mesh = box(dim: 2, cells: 2); dirichlet u = 0; }";
    let words = &["does not hold in 2 dimensions", "`cross` needs vectors of 3"];
    let stand = Stand::with(text);
    stand.refuses_run(&[], at("E0409", ("a.wf", 2, 29), words));
    stand.refuses(&["check", "a.wf"], at("E0409", ("a.wf", 2, 29), words));
    let emitted = ["emit", "a.wf", "--cell", "quad"];
    stand.write("a.wf", text.lines().next().expect("the form"));
    stand.refuses(&emitted, at("E0409", ("a.wf", 1, 35), words));
}

#[test]
fn what_the_command_line_gets_wrong() {
    let stand = Stand::problem(BOX);
    let cases: [(&[&str], &str, (&str, u64, u64), &[&str]); 15] = [
        (&["--param", "f=0/0"], "E0307", ("--param", 1, 5), &["NaN"]),
        (&["--param", "f=NaN"], "E0201", ("--param", 1, 5), &["`NaN`"]),
        (&["--param", "f=1e400"], "E0114", ("--param", 1, 5), &["1.8e308"]),
        (&["--param", "f=1e-400"], "E0114", ("--param", 1, 5), &["4.9e-324"]),
        (
            &["--quadrature", "62"],
            "E0405",
            ("--quadrature", 1, 1),
            &["on a quad can use, which is 49"],
        ),
        (&["--param", "f=0"], "E0307", ("--param", 1, 5), &["`g`", "inf"]),
        (&["--param", "f=[1, 2]"], "E0203", ("--param", 1, 5), &["vector of 2"]),
        (&["--param", "f=1 +"], "E0101", ("--param", 1, 8), &["expected an expression"]),
        (&["--param", "ff=1"], "E0408", ("--param", 1, 1), &["it has `f`, `g`"]),
        (&["--aux", "a=1"], "E0408", ("--aux", 1, 1), &["no auxiliary data"]),
        (&["--degree", "0"], "E0405", ("--degree", 1, 1), &["from 1 to 12"]),
        (&["--degree", "13"], "E0306", ("--degree", 1, 1), &["degrees 1 to 12"]),
        (
            &["--quadrature", "63"],
            "E0405",
            ("--quadrature", 1, 1),
            &["on a quad can use, which is 49"],
        ),
        (&["--mesh", "box(cells: 0)"], "E0405", ("--mesh", 1, 12), &["a whole number from 1"]),
        (&["--mesh", "gone.msh"], "E0413", ("--mesh", 1, 1), &["gone.msh", "current folder"]),
    ];
    for (arguments, code, place, words) in cases {
        stand.refuses_run(arguments, at(code, place, words));
    }
    let triangles = ["--degree", "5", "--mesh", "box(dim: 2, cells: 1, cell: tri)"];
    stand.refuses_run(&triangles, at("E0306", ("--degree", 1, 1), &["degrees 1 to 4"]));
    let unknown = Said { code: Some("E0411"), place: None, words: &["did you mean", "`q`"] };
    let many = Stand::with(format!(
        "{FORM}problem first solves p {{ {BOX} }}\nproblem q solves p {{ {BOX} }}"
    ));
    many.refuses_run(&["--problem", "frist"], unknown);
    many.refuses_run(&["--output", "u.vtu"], said(&["several problems", "--problem NAME"]));
    for wrong in
        [&["run"][..], &["run", "a.wf", "--degree", "two"], &["run", "a.wf", "--param", "f"]]
    {
        let output = stand.output(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{wrong:?}");
    }
}

/// Mistakes in the file that the command line overrides are not reported.
#[test]
fn what_the_command_line_puts_right() {
    let stand = Stand::problem("mesh = \"gone.msh\"; param f = 0; dirichlet u = 0 on \"surface\";");
    let right = ["run", "a.wf", "--interpret", "--mesh", "ball(dim: 2, refine: 1)"];
    let arguments = [&right[..], &["--param", "f=1", "--no-output"]].concat();
    let output = stand.output(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    stand.refuses(&right, at("E0307", stand.place("0;"), &["`g`"]));
}

#[test]
fn probes_that_cannot_be() {
    let stand = Stand::problem(BOX);
    let cases: [(&[&str], &str, (&str, u64, u64), &[&str]); 8] = [
        (&["--at", "v=1"], "E0408", ("--at", 1, 1), &["no field `v`", "`u`"]),
        (&["--at", "u=[1, 2]"], "E0203", ("--at", 1, 5), &["vector of 2"]),
        (&["--at", "u=u"], "E0211", ("--at", 1, 5), &["before the problem is solved"]),
        (&["--at", "u=1 / x[0]"], "E0307", ("--at", 1, 1), &["inf at (0, 0, 0)", "help"]),
        (&["--at", "u=1", "--test", "u=log(-1)"], "E0307", ("--test", 1, 1), &["NaN"]),
        (&["--at", "u=1", "--direction", "w=1"], "E0408", ("--direction", 1, 1), &["`w`"]),
        (&["--at", "u=1", "--test", "u=x[2]"], "E0205", ("--test", 1, 7), &["2"]),
        (&["--at", "u=1", "--mesh", "gone.msh"], "E0413", ("--mesh", 1, 1), &["gone.msh"]),
    ];
    for (arguments, code, place, words) in cases {
        stand.refuses_probe(arguments, at(code, place, words));
    }
    assert_eq!(stand.output(&["probe", "a.wf"]).status.code(), Some(2), "--at is needed");
    let bare = Stand::with("form p { field u: scalar; f0[u] = log(u); }");
    bare.refuses_probe(&["--at", "u=1"], said(&["no mesh", "--mesh"]));
    let negative = ["--mesh", "box(dim: 2, cells: 1)", "--at", "u=-1"];
    bare.refuses_probe(&negative, said(&["R(u)·v is NaN", "logarithm"]));
}

/// A comment ends at a carriage return for the reader, in messages and in every generated source. Otherwise the text
/// after it would become a line of OpenCL source; `#define get_group_id(d) 0` would change the result.
#[test]
fn a_carriage_return_inside_a_comment_ends_it_for_everyone() {
    let form = "form a { field u: scalar; f0[u] = u; }\n";
    let stand = Stand::with(format!("/// note\r#define get_group_id(d) 0\n{form}"));
    let words = &["unknown character `#`"];
    for command in
        [&["check", "a.wf"][..], &["emit", "a.wf", "--target", "opencl", "--cell", "quad"]]
    {
        stand.refuses(command, at("E0102", ("a.wf", 2, 1), words));
    }
    let unseen = Stand::with(format!("/// note\u{2028}#define get_group_id(d) 0\n{form}"));
    unseen.refuses(&["check", "a.wf"], at("E0102", ("a.wf", 1, 9), &["U+2028", "remove it"]));
}

/// Each names the bound that is exceeded.
#[test]
fn ranges_of_settings_are_those_that_hold() {
    let quads = "mesh = box(dim: 2, cells: 2); dirichlet u = 0;";
    for (mesh, item, words) in [
        (quads, "degree = 33;", "`degree` is a whole number from 1 to 12"),
        (quads, "degree = 0.5;", "`degree` is a whole number from 1 to 12"),
        (quads, "quadrature = 1e9;", "`quadrature` is a whole number from 0 to 65535"),
        (
            "mesh = box(dim: 2, cells: 2, cell: tri); dirichlet u = 0;",
            "degree = 33;",
            "`degree` is a whole number from 1 to 4",
        ),
    ] {
        let stand = Stand::problem(&format!("{mesh} {item}"));
        stand.refuses_run(&[], Said { code: Some("E0405"), words: &[words], ..Said::default() });
    }
}

/// A broken `time` still counts as present.
#[test]
fn a_broken_time_is_not_called_missing() {
    let text = "form p { field u: scalar; f0[u] = dt(u) - 1; f1[u] = grad(u); }\n\
                problem q solves p { mesh = box(dim: 2, cells: 2); dirichlet u = 0; time = bdf(to: 0.5, step: 0.1, at: []); }";
    let stand = Stand::with(text);
    let said = at("E0101", place(text, "]); }"), &["expected an expression"]);
    stand.refuses_run(&[], said);
    let output = stand.output(&["run", "a.wf", "--interpret"]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("E0402"));
}
