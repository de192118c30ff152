//! Completion by place: a mark in a text, words that must be offered there, and words that must not.

use crate::session::{Session, URI, at, marked};
use std::collections::BTreeSet;

const FORM: &str = "form a {\n    field u: vector;\n    field p: scalar;\n    aux load: scalar on cells;\n    \
                    param mu = 1;\n    let strain = sym(grad(u));\n    fn twice(s) = 2 * s;\n";

/// Texts after `FORM`, with words that are offered and words that are not.
const PLACES: &[(&str, &[&str], &[&str])] = &[
    // Items.
    ("    |\n}", &["field", "f0", "on", "residual"], &["mesh", "u", "dot"]),
    ("    fi|\n}\nproblem b solves a {}", &["field"], &["u"]),
    (
        "    on boundary \"s\" {\n        |\n    }\n}",
        &["f0", "aux", "let"],
        &["field", "on", "state"],
    ),
    // Parts of items.
    ("    field w: |", &["scalar", "vector", "tensor", "complex"], &["u", "H1"]),
    ("    field w: vector in |", &["H1", "L2", "Hdiv"], &["scalar"]),
    ("    aux w: scalar on |", &["nodes", "cells", "points"], &["boundary"]),
    ("    test v for |", &["u", "p"], &["mu", "strain", "load"]),
    ("    f0[|", &["u", "p"], &["mu", "jump"]),
    ("    on interior {\n        f0[|", &["u", "jump", "avg"], &["mu"]),
    ("    on |", &["boundary", "cells", "interior"], &["u"]),
    // Expressions, also after lines without an end, and before others.
    (
        "    f1[u] = 2 * s|\n}",
        &["strain", "mu", "load", "twice", "sym", "x", "u"],
        &["n", "penalty", "mesh"],
    ),
    ("    let q = (mu + [twice(|\n    f0[p] = 1;\n}", &["strain", "mu", "p"], &["field"]),
    ("    param nu = m|;\n}", &["mu", "pi"], &["strain", "u", "load"]),
    ("    fn g(left, right) = l|;\n}", &["left", "right", "strain"], &["s"]),
    (
        "    on boundary \"s\" {\n        let own = 1;\n        f0[u] = |",
        &["n", "hn", "penalty", "own"],
        &["jumped"],
    ),
    ("    on boundary \"s\" {\n        let own = 1;\n    }\n    f0[u] = |", &["strain"], &["own"]),
    ("    // field |\n}", &[], &["u", "field"]),
    ("    f0[p] = 12|;\n}", &[], &["u"]),
    // Problems.
    ("}\n|", &["form", "problem"], &["field"]),
    ("}\nproblem b |", &["solves"], &["a"]),
    ("}\nproblem b solves |", &["a"], &["u", "b"]),
    (
        "}\nproblem b solves a {\n    |\n}",
        &["mesh", "dirichlet", "report", "stages"],
        &["field", "u"],
    ),
    ("}\nproblem b solves a {\n    mesh = |\n}", &["box", "ball", "interval"], &["cg", "u"]),
    (
        "}\nproblem b solves a {\n    mesh = box(|\n}",
        &["dim", "cells", "deform"],
        &["box", "u", "inner"],
    ),
    ("}\nproblem b solves a {\n    mesh = box(dim: 2, |);\n}", &["cells"], &["dim"]),
    ("}\nproblem b solves a {\n    mesh = box(dim: 2, cell: |);\n}", &["quad", "tri"], &["cells"]),
    (
        "}\nproblem b solves a {\n    mesh = box(dim: 2, cells: 4);\n    dirichlet |",
        &["u", "p"],
        &["mu", "load"],
    ),
    (
        "}\nproblem b solves a {\n    mesh = box(dim: 2, cells: 4);\n    dirichlet u = [0, 0] on |",
        &["all", "\"x0\"", "\"y1\""],
        &["\"z0\""],
    ),
    (
        "}\nproblem b solves a {\n    mesh = box(dim: 2, cells: 4);\n    dirichlet u = [0, 0] on \"|\"",
        &["x0", "y1"],
        &["all", "z0"],
    ),
    ("}\nproblem b solves a {\n    param |", &["mu"], &["u"]),
    ("}\nproblem b solves a {\n    aux |", &["load"], &["mu"]),
    (
        "}\nproblem b solves a {\n    aux load = |",
        &["mu", "x", "file", "solution"],
        &["strain", "u"],
    ),
    ("}\nproblem b solves a {\n    solver = |", &["cg", "newton", "direct"], &["box"]),
    ("}\nproblem b solves a {\n    solver = newton(linear: |", &["automatic", "gmres"], &["rtol"]),
    ("}\nproblem b solves a {\n    solver = newton(load: |", &["mu"], &["u"]),
    ("}\nproblem b solves a {\n    solver = gmres(preconditioner: block(|", &["u", "p"], &["rtol"]),
    (
        "}\nproblem b solves a {\n    solver = gmres(preconditioner: block(u: |",
        &["multigrid", "mass"],
        &["p"],
    ),
    (
        "}\nproblem b solves a {\n    solver = cg(preconditioner: multigrid(|",
        &["smoother", "degree"],
        &["rtol"],
    ),
    ("}\nproblem b solves a {\n    time = bdf(|", &["order", "step", "tolerance"], &["stages"]),
    ("}\nproblem b solves a {\n    adapt(|", &["steps", "until"], &["order"]),
    (
        "}\nproblem b solves a {\n    periodic \"x0\" = \"x1\" by |",
        &["rotation", "translation"],
        &["u"],
    ),
    (
        "}\nproblem b solves a {\n    report r = |",
        &["integral", "maximum", "reaction", "strain", "mu"],
        &["box"],
    ),
    ("}\nproblem b solves a {\n    output |", &["strain"], &["mu"]),
    ("}\nproblem b solves a {\n    stages = repeat(|", &["b", "steps"], &["a"]),
];

#[test]
fn each_place_offers_what_may_stand_there() {
    let mut session = Session::initialized(&["utf-8"]);
    for (text, offered, others) in PLACES {
        let (text, position) = marked(&format!("{FORM}{text}"));
        session.open(URI, &text);
        let found = session.request("textDocument/completion", &at(&position));
        let items = found["items"].as_array().expect("items");
        let labels: BTreeSet<&str> =
            items.iter().filter_map(|item| item["label"].as_str()).collect();
        let missing: Vec<_> = offered.iter().filter(|word| !labels.contains(**word)).collect();
        let wrong: Vec<_> = others.iter().filter(|word| labels.contains(**word)).collect();
        let place = text.lines().last().unwrap_or_default();
        assert!(missing.is_empty(), "{place}: {missing:?} are not among {labels:?}");
        assert!(wrong.is_empty(), "{place}: {wrong:?} are offered");
        assert_eq!(labels.len(), items.len(), "{place}: a word twice");
    }
}
