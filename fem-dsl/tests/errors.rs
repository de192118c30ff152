//! Each file of `tests/errors/` has the errors and warnings listed in its first lines: code, line and column, message,
//! labels, notes and help. `WF_UPDATE=1 cargo test -p weakform-dsl errors::` updates the lists.
//!
//! A file has one mistake, or as many as its first line states, `//# 3 mistakes`. The number is counted by hand, so
//! that consequential errors are detected independently of the lists.

use fem_dsl::diagnostic::Diagnostic;
use fem_dsl::source::Source;
use std::fmt::Write;
use std::path::Path;

const MARK: &str = "//~";
const COUNT: &str = "//# ";

/// Returns the diagnostics in the format of a file's list.
fn list(source: &Source, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let place = diagnostic.primary().map_or_else(String::new, |label| {
            let (line, column) = source.line_column(label.span.start);
            format!(" {line}:{column} `{}`", source.slice(label.span).replace('\n', "⏎"))
        });
        writeln!(text, "{MARK} {}{place} {}", diagnostic.code, diagnostic.message)
            .expect("a string takes all text");
        for label in &diagnostic.labels {
            let (line, column) = source.line_column(label.span.start);
            let place = if label.primary { String::new() } else { format!(" {line}:{column}") };
            writeln!(text, "{MARK}   label{place}: {}", label.text)
                .expect("a string takes all text");
        }
        for note in &diagnostic.notes {
            writeln!(text, "{MARK}   note: {note}").expect("a string takes all text");
        }
        for help in &diagnostic.help {
            writeln!(text, "{MARK}   help: {help}").expect("a string takes all text");
        }
    }
    text
}

fn check(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let head = text.split_inclusive('\n').next().filter(|line| line.starts_with(COUNT));
    let head = head.unwrap_or_default();
    let text = &text[head.len()..];
    let expected: String = text
        .lines()
        .take_while(|line| line.starts_with(MARK))
        .map(|line| format!("{line}\n"))
        .collect();
    // The lines of the list are not counted, so that it can grow.
    let source = Source::new(name.clone(), &text[expected.len()..]);
    let mut diagnostics = diagnostics(&source);
    // Unimplemented parts of the language are listed only in files about them.
    if !name.contains("later") {
        diagnostics.retain(|found| !later(found));
    }
    let found = list(&source, &diagnostics);
    if found == expected && !found.is_empty() {
        return count(&name, head, &diagnostics);
    }
    if std::env::var_os("WF_UPDATE").is_some() {
        std::fs::write(path, format!("{head}{found}{}", source.text()))
            .map_err(|e| e.to_string())?;
    }
    Err(format!("{name}: expected\n{expected}found\n{found}"))
}

/// Checks that there are as many errors as mistakes, without unimplemented parts of the language.
fn count(name: &str, head: &str, diagnostics: &[Diagnostic]) -> Result<(), String> {
    let number = head.strip_prefix(COUNT).and_then(|rest| rest.split(' ').next());
    let mistakes: usize = match number {
        Some(number) => number.parse().map_err(|error| format!("{name}: {error}"))?,
        None => 1,
    };
    let errors = diagnostics.len();
    if errors == mistakes || name.contains("later") {
        return Ok(());
    }
    Err(format!("{name}: {mistakes} mistakes, but {errors} errors"))
}

/// Returns whether a diagnostic is about an unimplemented part of the language.
fn later(found: &Diagnostic) -> bool {
    found.code.id().starts_with("E09")
}

fn diagnostics(source: &Source) -> Vec<Diagnostic> {
    let (program, diagnostics) = fem_dsl::program::compile(source);
    let harmless = |found: &Diagnostic| later(found) || !found.is_error();
    assert_eq!(program.is_none(), !diagnostics.iter().all(harmless), "{}", source.name());
    diagnostics
}

#[test]
fn each_file_has_the_errors_it_lists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/errors");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("tests/errors should be readable")
        .map(|entry| entry.expect("an entry should be readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "wf"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 140, "only {} files", paths.len());
    let wrong: Vec<_> = paths.iter().filter_map(|path| check(path).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    for (open, close) in [("(", ")"), ("[", "]"), ("if x[0] < 1 {", "} else { 0 }")] {
        let (opens, closes) = (open.repeat(10_000), close.repeat(10_000));
        let source = Source::new(
            "deep.wf",
            format!("form a {{ field u: scalar; f0[u] = u; let b = {opens}1{closes}; }}"),
        );
        let codes: Vec<_> = diagnostics(&source).iter().map(|d| d.code.id()).collect();
        assert_eq!(codes, ["E0107"]);
    }
    let chain = "if x[0] < 1 { 1 } else ".repeat(10_000);
    let source = Source::new(
        "chain.wf",
        format!("form a {{ field u: scalar; f0[u] = u; let b = {chain} {{ 0 }}; }}"),
    );
    let codes: Vec<_> = diagnostics(&source).iter().map(|d| d.code.id()).collect();
    assert_eq!(codes, ["E0107"]);
}
