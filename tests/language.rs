//! The reference of the language, `docs/language.md`: its examples are compiled and solved, with the files that they
//! refer to, and no keyword is missing.

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::program::{Program, compile};
use fem_dsl::source::Source;
use fem_dsl::words;
use weakform::{Execution, Form, language};

/// The form for the page's examples of problem items.
const FORM: &str = "form example { field u: scalar; param f = 1; aux kappa: scalar on cells;
    f0[u] = -f; f1[u] = kappa * grad(u); }";

/// Returns the examples of the page, completed: each with its first line number.
fn examples() -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut lines = language::PAGE.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let inside = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```");
        let text: Vec<&str> = inside.collect();
        let text = text.join("\n");
        found.push(match kind {
            "text" => continue,
            "wf" => (number + 1, text),
            "wf,form" => (number + 1, format!("form example {{ {text} }}")),
            "wf,problem" => (number + 1, format!("{FORM} problem p solves example {{ {text} }}")),
            _ => panic!("line {}: an example of `{kind}`", number + 1),
        });
    }
    assert!(found.len() > 8, "the examples of the page were not found");
    found
}

/// The solution from which an example continues.
const LAST: &str = "last.vtu";

/// Returns data on sixteen cells in NumPy's format.
fn conductivity() -> Vec<u8> {
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (16,), }\n";
    let length = (header.len() as u16).to_le_bytes();
    let numbers: Vec<u8> = (1..=16).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    [b"\x93NUMPY\x01\0", &length[..], header.as_bytes(), &numbers].concat()
}

fn compiled(text: &str) -> (Option<Program>, Vec<Diagnostic>) {
    let (program, found) = compile(&Source::new("example", text));
    (program, found.into_iter().filter(Diagnostic::is_error).collect())
}

#[test]
fn every_example_compiles_and_every_problem_is_solved() {
    let made = tempfile::tempdir().expect("a folder");
    let folder = made.path();
    for (line, text) in examples() {
        let (program, errors) = compiled(&text);
        assert!(errors.is_empty(), "line {line}: {errors:#?}");
        let program = program.expect("a program without errors");
        // The interpreter takes long on meshes from files.
        let solved = !text.contains(".msh");
        for problem in program.problems().filter(|_| solved) {
            let solve = |text: &str| {
                let form =
                    Form::parse(text, problem.form).unwrap_or_else(|e| panic!("line {line}: {e}"));
                let known = form.problem(problem.name).expect("a problem of the form");
                let solved = known.folder(folder).execution(Execution::Interpreted).run();
                solved.unwrap_or_else(|error| panic!("line {line}: {error}"))
            };
            // An example that continues from a solution uses one of an earlier run.
            let first: Vec<&str> = text.lines().filter(|line| !line.contains(LAST)).collect();
            std::fs::write(folder.join("conductivity.npy"), conductivity()).expect("a file");
            if text.contains(LAST) {
                solve(&first.join("\n")).write_vtu(folder.join(LAST)).expect("a file");
            }
            solve(&text);
        }
    }
}

/// Returns whether the page has this word in code, as a separate word.
fn names(page: &str, word: &str) -> bool {
    let mut code = page.split('`').skip(1).step_by(2);
    code.any(|code| {
        code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|found| found == word)
    })
}

fn section(wanted: &str) -> &'static str {
    let found = language::sections().find(|(name, ..)| name == wanted);
    found.map(|(.., text)| text).unwrap_or_else(|| panic!("no section {wanted}"))
}

/// Returns the section without its examples, which do not explain words.
fn prose(wanted: &str) -> String {
    section(wanted).split("```").step_by(2).collect()
}

#[track_caller]
fn complete<'a>(wanted: &str, known: impl IntoIterator<Item = &'a str>) {
    let page = prose(wanted);
    let missing: Vec<&str> = known.into_iter().filter(|word| !names(&page, word)).collect();
    assert!(missing.is_empty(), "`{wanted}` does not name {missing:?}");
}

#[test]
fn every_word_of_the_language_is_named_where_it_belongs() {
    complete("expressions", words::FUNCTIONS.iter().copied());
    complete("known", words::KNOWN.iter().copied());
    complete("forms", words::FORM_ITEMS.iter().copied());
    complete("problems", words::PROBLEM_ITEMS.iter().copied());
    complete("grammar", words::LATER.iter().copied());
}

/// Returns the available names according to the compiler's note about an unknown one.
fn known(item: &str) -> Vec<String> {
    let (_, errors) = compiled(&format!("{FORM} problem p solves example {{ {item} }}"));
    let notes = errors.iter().flat_map(|error| &error.notes);
    let note = notes.clone().find(|note| note.starts_with("it takes") || note.contains(" are `"));
    let note = note.unwrap_or_else(|| panic!("`{item}` is not refused with a list: {errors:#?}"));
    note.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_generator_and_solver_is_named_with_all_that_it_takes() {
    for (topic, item) in [("meshes", "mesh"), ("solvers", "solver")] {
        let all = known(&format!("{item} = nonsense;"));
        assert!(all.len() >= 4, "{all:?}");
        complete(topic, all.iter().map(String::as_str));
        for name in &all {
            let arguments = known(&format!("{item} = {name}(nonsense: 1);"));
            complete(topic, arguments.iter().map(String::as_str));
        }
    }
}

/// Arguments of meshes and solvers accept no parameters.
#[test]
fn parameters_stand_where_the_page_says() {
    let problem = |items: &str| {
        let form = FORM.replace("param f = 1", "param f = 2");
        compiled(&format!("{form} problem p solves example {{ aux kappa = 1; {items} }}")).1
    };
    let names_f =
        |items: &str| problem(items).iter().any(|error| error.message.contains("unknown name `f`"));
    let mesh = "mesh = box(dim: 2, cells: 2);";
    let takers = [
        "degree = f;",
        "refine = f;",
        "quadrature = 2 * f;",
        "time = bdf(to: f, step: f / 10);",
        "adapt(steps: f);",
    ];
    for item in takers {
        assert!(!names_f(&format!("{mesh} {item}")), "{item}");
    }
    assert!(names_f("mesh = box(dim: 2, cells: f);"));
    assert!(names_f(&format!("{mesh} solver = cg(rtol: 1e-3 / f);")));
    let page = section("problems").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("The arguments of meshes and solvers take numbers, `pi` and `dim`."));
}

#[test]
fn all_that_adaptive_steps_take_is_named() {
    let arguments = known("adapt(nonsense: 1);");
    assert!(arguments.len() >= 5, "{arguments:?}");
    complete("adaptive", arguments.iter().map(String::as_str));
}

#[test]
fn every_scheme_is_named_with_all_that_it_takes() {
    let all = known("time = nonsense();");
    assert!(all.len() >= 7, "{all:?}");
    complete("time", all.iter().map(String::as_str));
    for name in &all {
        let arguments = known(&format!("time = {name}(nonsense: 1);"));
        complete("time", arguments.iter().map(String::as_str));
    }
}

#[test]
fn files_are_named() {
    complete("data", [words::FILE]);
}

#[test]
fn every_measure_is_named() {
    complete("reports", ["integral", "minimum", "maximum", "l2", "line", "reaction"]);
    complete("reports", ["on", "from", "to", "points"]);
}

#[test]
fn sections_are_the_page_and_have_names_of_their_own() {
    let all: Vec<_> = language::sections().collect();
    let length: usize = all.iter().map(|(.., text)| text.len()).sum();
    let before = language::PAGE.find("\n## ").expect("a section") + 1;
    assert_eq!(before + length, language::PAGE.len());
    for (i, (name, ..)) in all.iter().enumerate() {
        assert!(all[..i].iter().all(|(other, ..)| other != name), "two sections are `{name}`");
    }
}
