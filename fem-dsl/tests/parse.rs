//! The parser: precedence, results of each item, recovery, depth, and arbitrary input.

use fem_dsl::arena::Id;
use fem_dsl::ast::{
    BinaryOp, BlockRegion, ExprId, ExprKind, File, FormItemKind, ProblemItemKind, ShapeKind,
    SupportSpec, UnaryOp,
};
use fem_dsl::codes::Code;
use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::parse::parse;
use fem_dsl::source::Source;
use fem_dsl::testing::Random;
use std::path::PathBuf;

fn read(text: &str) -> (File, Vec<Diagnostic>) {
    parse(&Source::new("test.wf", text))
}

fn clean(text: &str) -> File {
    let (file, diagnostics) = read(text);
    assert!(diagnostics.is_empty(), "{text}\n{diagnostics:#?}");
    file
}

/// Returns an expression with all its brackets.
fn show(file: &File, id: ExprId) -> String {
    let mut texts: Vec<String> = Vec::new();
    for (_, expr) in file.exprs.iter_enumerated() {
        let text = |id: &ExprId| texts[id.index()].clone();
        let list = |ids: &[ExprId]| ids.iter().map(text).collect::<Vec<_>>().join(", ");
        texts.push(match &expr.kind {
            ExprKind::Error => "error".to_owned(),
            ExprKind::Number(value) => format!("{value}"),
            ExprKind::Name(name) => name.clone(),
            ExprKind::Array(items) => format!("[{}]", list(items)),
            ExprKind::Text(text) => format!("{text:?}"),
            ExprKind::Interior(region, tags) => {
                let tags: Vec<&str> = tags.iter().map(|tag| tag.text.as_str()).collect();
                format!("{region:?} {tags:?}")
            }
            ExprKind::Call { function, arguments, named } => {
                let named =
                    named.iter().map(|one| format!("{}: {}", one.name.name, text(&one.value)));
                let all: Vec<String> = arguments.iter().map(text).chain(named).collect();
                format!("{}({})", function.name, all.join(", "))
            }
            ExprKind::Index { base, indices } => format!("{}[{}]", text(base), list(indices)),
            ExprKind::Unary { op: UnaryOp::Neg, operand, .. } => format!("(-{})", text(operand)),
            ExprKind::Unary { op: UnaryOp::Not, operand, .. } => format!("(!{})", text(operand)),
            ExprKind::Binary { op, left, right, .. } => {
                format!("({} {} {})", text(left), op.symbol(), text(right))
            }
            ExprKind::If { condition, then, otherwise } => {
                format!("(if {} {} {})", text(condition), text(then), text(otherwise))
            }
        });
    }
    texts[id.index()].clone()
}

fn expression(text: &str) -> String {
    let file = clean(&format!("form a {{ let a = {text}; }}"));
    match &file.forms[0].items[0].kind {
        FormItemKind::Let { value, .. } => show(&file, *value),
        other => panic!("{other:?}"),
    }
}

#[test]
fn precedence() {
    for (text, expected) in [
        ("-u^2", "(-(u ^ 2))"),
        ("-u * v", "((-u) * v)"),
        ("f(a, \"b\", on: \"c\", to: [1, -d],) + 1", "(f(a, \"b\", on: \"c\", to: [1, (-d)]) + 1)"),
        (
            "f(on: interior, of: interior from \"a\"  to \"b\", in: interior \"c\")",
            "f(on: Interior [], of: OrderedInterior [\"a\", \"b\"], in: Interior [\"c\"])",
        ),
        ("f(on: g(x: 1)[0])", "f(on: g(x: 1)[0])"),
        ("2^-x", "(2 ^ (-x))"),
        ("2^-x^y * 3", "((2 ^ (-(x ^ y))) * 3)"),
        ("a^b^c", "(a ^ (b ^ c))"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b * c", "((a / b) * c)"),
        ("a + b * c", "(a + (b * c))"),
        ("a * -b", "(a * (-b))"),
        ("a - -b", "(a - (-b))"),
        ("--a", "(-(-a))"),
        ("(a + b) * c", "((a + b) * c)"),
        ("a && b || c && d", "((a && b) || (c && d))"),
        ("a || b && c || d", "((a || (b && c)) || d)"),
        ("!a < b && c", "((!(a < b)) && c)"),
        ("!a == b || !(c)", "((!(a == b)) || (!c))"),
        ("a + 1 < b * 2", "((a + 1) < (b * 2))"),
        ("(a < b) == (c < d)", "((a < b) == (c < d))"),
        ("f(x)[i] ^ 2", "(f(x)[i] ^ 2)"),
        ("-f(x, y)[i, j]", "(-f(x, y)[i, j])"),
        ("(a)[0][1]", "a[0][1]"),
        ("[[a, b], [c, -d]]", "[[a, b], [c, (-d)]]"),
        ("f()", "f()"),
        ("if a < b { 1 } else if c { 2 } else { 3 } + 4", "((if (a < b) 1 (if c 2 3)) + 4)"),
        ("1e3 + 2.5E-1", "(1000 + 0.25)"),
        ("iffy + format + lets", "((iffy + format) + lets)"),
    ] {
        assert_eq!(expression(text), expected, "{text}");
    }
}

#[test]
fn spans_reach_over_brackets() {
    let text = "form a { let a = (b + c) * (d); }";
    let file = clean(text);
    let product = file.exprs.iter().last().expect("there should be a product");
    assert!(matches!(product.kind, ExprKind::Binary { op: BinaryOp::Mul, .. }));
    assert_eq!(&text[product.span.range()], "(b + c) * (d)");
    let operand = file.exprs.iter().find(|expr| expr.kind == ExprKind::Name("d".to_owned()));
    assert_eq!(operand.map(|expr| &text[expr.span.range()]), Some("d"));
}

fn corpus() -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/forms");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("tests/forms should be readable")
        .map(|entry| entry.expect("an entry should be readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wf"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a form should be readable");
        (path, text)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn the_corpus_is_clean() {
    assert!(corpus().len() >= 10);
    for (path, text) in corpus() {
        let (file, diagnostics) = read(&text);
        assert!(diagnostics.is_empty(), "{}: {diagnostics:#?}", path.display());
        assert!(!file.forms.is_empty(), "{}", path.display());
        let broken = |expr: &fem_dsl::ast::Expr| expr.kind == ExprKind::Error;
        assert!(!file.exprs.iter().any(broken), "{}", path.display());
    }
}

#[test]
fn items_of_a_form() {
    let file = clean(
        "/// One\n/// two.\nform a {\n/// U.\nfield u: vector(3) in H1(k - 1); aux m: tensor on nodes in L2(0);\
         param p: vector = [1, 2]; fn f(a, b) = a; f1[u] = 1; test v for u; \
         on boundary \"a\", \"b\" { f0[u] = 2; } }",
    );
    let form = &file.forms[0];
    assert_eq!((form.name.name.as_str(), form.doc.as_str()), ("a", "One\ntwo."));
    assert_eq!(form.items[0].doc, "U.");
    let FormItemKind::Field { shape: Some(shape), space: Some(space), .. } = &form.items[0].kind
    else {
        panic!("{:?}", form.items[0]);
    };
    assert_eq!(shape.kind, ShapeKind::Vector(Some(3)));
    assert_eq!(space.degree, Some(fem_dsl::ast::DegreeSpec::Relative(-1)));
    let FormItemKind::Fn { parameters, .. } = &form.items[3].kind else {
        panic!("{:?}", form.items[3]);
    };
    assert_eq!(parameters.len(), 2);
    let FormItemKind::Block { region: BlockRegion::Boundary, tags, items } = &form.items[6].kind
    else {
        panic!("{:?}", form.items[6]);
    };
    assert_eq!(tags[1].text, "b");
    assert!(matches!(items[0].kind, FormItemKind::Row { .. }));
}

#[test]
fn items_of_a_problem() {
    let file = clean(
        "problem p solves a { mesh = \"a b.msh\"; t = 1; dirichlet u[0] = 1 on \"q\"; \
         dirichlet u; dirichlet u = 0 on all; aux c = 2; solver = cg(preconditioner: jacobi); }",
    );
    let items: Vec<_> = file.problems[0].items.iter().map(|item| &item.kind).collect();
    assert!(matches!(items[0], ProblemItemKind::MeshFile(text) if text.text == "a b.msh"));
    assert!(matches!(items[1], ProblemItemKind::Setting { name, .. } if name.name == "t"));
    assert!(matches!(
        items[2],
        ProblemItemKind::Dirichlet { component: Some(_), value: Some(_), place: Some(SupportSpec::Tags(tags)), .. }
            if tags[0].text == "q"
    ));
    assert!(matches!(
        items[3],
        ProblemItemKind::Dirichlet { component: None, value: None, place: None, .. }
    ));
    assert!(matches!(
        items[4],
        ProblemItemKind::Dirichlet { place: Some(SupportSpec::All(_)), .. }
    ));
    assert!(matches!(items[5], ProblemItemKind::Aux { .. }));
    assert!(matches!(items[6], ProblemItemKind::Solver(named) if named.arguments.len() == 1));
}

#[test]
fn broken_items_keep_their_declarations() {
    let (file, diagnostics) = read(
        "form a {\n field u scalar;\n let kappa = ;\n param c = 1\n f0[u] = * 2;\n f1[u] = kappa * grad(u);\n}",
    );
    assert_eq!(diagnostics.len(), 4, "{diagnostics:#?}");
    let items: Vec<_> = file.forms[0].items.iter().map(|item| &item.kind).collect();
    assert!(matches!(items[0], FormItemKind::Field { name, shape: None, .. } if name.name == "u"));
    assert!(matches!(items[1], FormItemKind::Let { name, .. } if name.name == "kappa"));
    assert!(matches!(items[2], FormItemKind::Param { name, .. } if name.name == "c"));
    assert!(matches!(items[3], FormItemKind::Row { field, .. } if field.name == "u"));
    assert!(matches!(items[4], FormItemKind::Row { .. }));
}

#[test]
fn depth_is_bounded_and_reached() {
    // A form's own brace is the first of the 128.
    for (open, close) in [("(", ")"), ("[", "]"), ("if 1 < f(2) {", "} else { 3 }"), ("f(", ")")] {
        let nested = |depth: usize| {
            format!("form a {{ let b = {}1{}; }}", open.repeat(depth), close.repeat(depth))
        };
        clean(&nested(126));
        for depth in [128, 10_000, 30_000] {
            let (_, diagnostics) = read(&nested(depth));
            let codes: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
            assert_eq!(codes, [Code::NestedTooDeeply], "{open} {depth}");
        }
    }
    let braces = |depth: usize| format!("form a {{ let b = {} ; }}", "{".repeat(depth));
    assert!(!read(&braces(126)).1.is_empty());
    assert!(!read(&braces(100_000)).1.is_empty());
    assert!(!read(&format!("form a {{ let b = \"{} ; }}", "{".repeat(100_000))).1.is_empty());
    assert!(!read(&"/*".repeat(200_000)).1.is_empty());
}

#[test]
fn long_flat_input_is_read() {
    clean(&format!("form a {{ let b = 1{}; }}", " + 1".repeat(100_000)));
    clean(&format!("form a {{ let b = {}1; }}", "-".repeat(100_000)));
    clean(&format!("form a {{ let b = 1{}; }}", "^2".repeat(100_000)));
    clean(&format!("form a {{ let b = 1{}; }}", "[0]".repeat(100_000)));
    clean(&format!("form a {{ {} }}", "let b = 1; ".repeat(50_000)));
    let chain = "if 1 < 2 { 1 } else ".repeat(100);
    clean(&format!("form a {{ let b = {chain} {{ 0 }}; let c = {chain} {{ 0 }}; }}"));
}

#[test]
fn errors_are_counted_and_cut() {
    for text in
        [";".repeat(1 << 15), "#".repeat(1 << 15), ")".repeat(1 << 15), "form ".repeat(1 << 15)]
    {
        let (_, diagnostics) = read(&text);
        assert!((1..=101).contains(&diagnostics.len()), "{}", diagnostics.len());
    }
    let (_, diagnostics) = read(&format!("form a {{ {} }}", ";".repeat(1 << 15)));
    assert_eq!(diagnostics.last().map(|last| last.code), Some(Code::TooManyErrors));
}

/// Checks that every location of a diagnostic lies in the text.
fn harmless(text: &[u8]) {
    let source = Source::from_bytes("random.wf", text);
    let (_, diagnostics) = parse(&source);
    for diagnostic in &diagnostics {
        for label in &diagnostic.labels {
            let (start, end) = (label.span.start as usize, label.span.end as usize);
            assert!(start <= end && end <= source.text().len(), "{diagnostic:?}");
            assert!(source.text().get(start..end).is_some(), "{diagnostic:?}");
        }
    }
}

#[test]
fn arbitrary_bytes_are_harmless() {
    let mut random = Random(1);
    for _ in 0..400 {
        let length = random.below(300);
        harmless(&(0..length).map(|_| random.below(256) as u8).collect::<Vec<_>>());
        let words = [
            "form",
            "a",
            "{",
            "}",
            "(",
            ")",
            "[",
            "]",
            ";",
            "let",
            "=",
            "if",
            "else",
            "\"",
            "//",
            "/*",
            "*/",
            "///",
            "\n",
            "problem",
            "solves",
            "on",
            "boundary",
            "1",
            ".",
            "e",
            "^",
            "-",
            "é",
            "f0",
            "mesh",
            "dirichlet",
            "u",
            ",",
            ":",
            "\\",
        ];
        let text: String = (0..length)
            .map(|_| [words[random.below(words.len())], " "][..1 + random.below(2)].concat())
            .collect();
        harmless(text.as_bytes());
    }
}

#[test]
fn mutated_forms_are_harmless() {
    let mut random = Random(2);
    for (_, text) in corpus() {
        for _ in 0..150 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                let to = (at + random.below(20)).min(bytes.len());
                match random.below(4) {
                    0 => drop(bytes.drain(at..to)),
                    1 => bytes.insert(at, b"(){}[];\"/*^-=.,:e0\n"[random.below(19)]),
                    2 => {
                        let piece = bytes[at..to].to_vec();
                        let place = random.below(bytes.len());
                        bytes.splice(place..place, piece);
                    }
                    _ => bytes[at] = random.below(256) as u8,
                }
                if bytes.is_empty() {
                    bytes.push(b' ');
                }
            }
            harmless(&bytes);
        }
    }
}

/// In comments and strings, which may contain any other character, an invisible one is an error; one in white space is
/// an error as well.
#[test]
fn invisible_characters_are_errors_in_comments_and_strings_too() {
    for unseen in
        ['\0', '\u{b}', '\u{c}', '\u{1b}', '\u{7f}', '\u{85}', '\u{2028}', '\u{202e}', '\u{2066}']
    {
        for text in [
            format!("// a{unseen}b\nform a {{ }}"),
            format!("/// a{unseen}\nform a {{ }}"),
            format!("/* {unseen} */ form a {{ }}"),
            format!("form a {{ }} {unseen}"),
            format!("form a {{ on boundary \"l{unseen}\" {{ f0[u] = 1; }} }}"),
        ] {
            let (_, diagnostics) = read(&text);
            let [found] = &diagnostics[..] else { panic!("{text:?}: {diagnostics:#?}") };
            assert_eq!(found.code, Code::UnknownCharacter, "{text:?}");
            let name = format!("U+{:04X}", unseen as u32);
            assert!(found.message.contains(&name) && found.help == ["remove it"], "{found:#?}");
        }
    }
    clean("// one\ttwo é ∇ 👩‍🔬\r\n/* three\r\n */ form a { }\r\n");
}

/// A lone carriage return ends a line: a comment before it ends there, and lines are counted accordingly.
#[test]
fn a_carriage_return_alone_ends_a_line() {
    let source = Source::new("a.wf", "// note\rform a {\r    let b = ;\r\n}\r");
    let (file, diagnostics) = parse(&source);
    assert_eq!(file.forms[0].name.name, "a");
    let [found] = &diagnostics[..] else { panic!("{diagnostics:#?}") };
    let place = found.primary().expect("a place").span.start;
    assert_eq!(source.line_column(place), (3, 13));
    let (_, diagnostics) = read("/// note\r#define get_group_id(d) 0\nform a { }");
    assert_eq!(diagnostics[0].code, Code::UnknownCharacter, "{diagnostics:#?}");
}
