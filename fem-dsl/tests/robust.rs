//! For any text, `compile` terminates without a panic, and its result can be queried.

use fem_dsl::check::problem::Overrides;
use fem_dsl::program::compile;
use fem_dsl::source::Source;
use fem_dsl::testing::Random;
use std::path::Path;
use std::time::{Duration, Instant};

/// Returns the number of variants of each file; many more with `WF_FULL`.
fn rounds() -> usize {
    if std::env::var_os("WF_FULL").is_some() { 100 } else { 4 }
}

fn corpus() -> Vec<String> {
    let mut texts = Vec::new();
    for folder in ["../tests/forms", "../tests/errors"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = std::fs::read_dir(folder).expect("the folder should be readable");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        texts.extend(paths.iter().filter_map(|path| std::fs::read_to_string(path).ok()));
    }
    texts
}

fn harmless(text: &str) {
    let begin = Instant::now();
    let source = Source::new("mutated.wf", text);
    let (program, diagnostics) = compile(&source);
    assert!(program.is_some() || !diagnostics.is_empty(), "{text}");
    for diagnostic in &diagnostics {
        for label in &diagnostic.labels {
            assert!(source.text().get(label.span.range()).is_some(), "{diagnostic:?}\n{text}");
        }
    }
    if let Some(program) = program {
        let names: Vec<String> =
            program.problems().map(|problem| problem.name.to_owned()).collect();
        for name in names {
            for dim in [2, 3] {
                // Either outcome is right; none panics.
                let _ = program.problem(&name, dim, &Overrides::default());
            }
        }
    }
    assert!(begin.elapsed() < Duration::from_secs(60), "{text}");
}

#[test]
fn exchanged_words_are_harmless() {
    let mut random = Random(3);
    let corpus = corpus();
    let words: Vec<String> = corpus
        .iter()
        .flat_map(|text| text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()))
        .map(str::to_owned)
        .collect();
    assert!(words.len() > 1000);
    for text in &corpus {
        for _ in 0..rounds() {
            let mut pieces: Vec<&str> =
                text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()).collect();
            for _ in 0..=random.below(3) {
                let at = random.below(pieces.len());
                pieces[at] = &words[random.below(words.len())];
            }
            harmless(&pieces.concat());
        }
    }
}

#[test]
fn exchanged_letters_are_harmless() {
    let mut random = Random(4);
    for text in corpus() {
        for _ in 0..rounds() {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = b"(){}[];\"/*^-=.,:e0uxI\n"[random.below(22)];
            }
            harmless(&String::from_utf8_lossy(&bytes));
        }
    }
}
