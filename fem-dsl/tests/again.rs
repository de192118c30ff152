//! `inspect_after` of a change has the result of `inspect`: diagnostics, forms and their locations.

use fem_dsl::program::{Program, inspect, inspect_after};
use fem_dsl::source::Source;
use fem_dsl::testing::Random;

/// Returns forms and problems that refer to each other: stages, a solution as data, a mass, complex numbers, and terms
/// between cells.
fn text() -> String {
    let names = ["projection", "plates", "conjugate", "waveguide", "discontinuous", "thermal"];
    let read = |name: &str| {
        let path = format!("{}/../examples/{name}.wf", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("an example should be readable");
        // Of two problems with one name the first counts.
        let unique = |word: &str| match word.split_once(' ') {
            Some((kind @ ("form" | "problem" | "solves"), of)) => format!("{kind} {name}_{of}"),
            _ => word.to_owned(),
        };
        let plain =
            !text.contains("solution(") && !text.contains("stages") && !text.contains("mass =");
        if !plain {
            return text;
        }
        let lines = text.lines().map(|line| match line.split_once(" solves ") {
            Some((head, form)) => format!("{} solves {name}_{form}", unique(head)),
            None => unique(line),
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    names.map(read).join("\n")
}

/// Returns all that a program knows of its forms.
fn forms(program: &Program) -> String {
    let of = |dim: usize| {
        let forms = program.forms().iter();
        forms.map(move |form| (form.dimensions.form(dim), form.dimensions.refusal(dim)))
    };
    format!("{:?}", [2, 3, 1].map(|dim| of(dim).collect::<Vec<_>>()))
}

/// Checks a text after another one.
fn next(before: &mut Program, text: &str, whole: bool) {
    let source = Source::new("a.wf", text);
    let (fresh, expected) = inspect(&source);
    let (program, found) = inspect_after(&source, before);
    assert_eq!(found, expected, "{text}");
    assert_eq!(program.warnings(), fresh.warnings(), "{text}");
    if whole {
        assert!(forms(&program) == forms(&fresh), "forms differ: {text}");
    }
    *before = program;
}

#[test]
fn changes_have_the_results_of_the_whole_text() {
    let text = text();
    let (mut before, found) = inspect(&Source::new("a.wf", &*text));
    assert!(found.iter().all(|found| !found.is_error()), "{found:?}");
    let mut random = Random(7);
    for round in 0..24 {
        let mut bytes = text.clone().into_bytes();
        let at = random.below(bytes.len());
        match round % 4 {
            0 => bytes.insert(at, b"\n (};\"x1"[random.below(8)]),
            1 => drop(bytes.remove(at)),
            2 => bytes[at] = b"(){}[];\"/*^-=.,:e0uxI\n"[random.below(22)],
            _ => drop(bytes.splice(0..0, *b"// A remark.\n")),
        }
        next(&mut before, &String::from_utf8_lossy(&bytes), round % 8 == 0);
        if round % 3 > 0 {
            next(&mut before, &text, round % 8 == 1);
        }
    }
}

#[test]
fn problems_follow_what_they_name() {
    let text = "form a { field u: scalar; aux c: scalar on nodes; f0[u] = c; f1[u] = grad(u); }\n\
                form b { field v: scalar; f0[v] = v; }\n\
                problem p solves a { mesh = box(dim: 2, cells: 2); aux c = solution(q, \"v\"); }\n\
                problem q solves b { mesh = box(dim: 2, cells: 2); aux d = 1; }\n";
    let (mut before, found) = inspect(&Source::new("a.wf", text));
    assert_eq!(found.len(), 1, "{found:?}");
    for (old, new) in [
        ("field v: scalar; f0[v] = v;", "field w: scalar; f0[w] = w;"),
        ("problem q", "problem r"),
        ("on nodes", "on points"),
        ("aux d = 1;", ""),
        ("form b", "form d"),
        ("f0[v] = v;", "f0[v] = v + ;"),
        ("form b", "/// Documented.\n form b"),
        ("aux d = 1;", "initial v = solution(p, \"u\");"),
    ] {
        assert!(text.contains(old), "{old}");
        next(&mut before, &text.replace(old, new), true);
        next(&mut before, text, true);
    }
}
