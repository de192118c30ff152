//! The grammars of editors have the words of the language.

use fem_dsl::check::problem::{keywords, measures};
use fem_dsl::words;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the words of a pattern `\b(?:a|b)\b…`.
fn words_of(grammar: &Value, rule: &str) -> BTreeSet<String> {
    let pattern = grammar["repository"][rule]["match"].as_str().unwrap_or_default();
    let list = pattern.split_once("(?:").and_then(|(_, rest)| rest.split_once(')'));
    let list = list.unwrap_or_else(|| panic!("the rule `{rule}` has no list: {pattern}")).0;
    list.split('|').map(str::to_owned).collect()
}

fn set<'a>(lists: impl IntoIterator<Item = &'a [&'a str]>) -> BTreeSet<String> {
    lists.into_iter().flatten().map(|word| (*word).to_owned()).collect()
}

/// Returns the words of statements and arguments, with those of their values.
fn settings() -> BTreeSet<String> {
    let items = ["mesh", "solver", "time", "eigen", "stages", "periodic", "quadrature"];
    let mut found = BTreeSet::new();
    let mut open: Vec<_> = items.into_iter().flat_map(keywords).collect();
    while let Some(usage) = open.pop() {
        found.insert(usage.word.to_owned());
        open.extend(usage.of_fields);
        open.extend(usage.arguments.into_iter().flat_map(|argument| argument.words));
    }
    found
}

#[test]
fn the_textmate_grammar_has_all_words() {
    let grammar: Value = serde_json::from_str(&read("editors/wf.tmLanguage.json")).expect("JSON");
    let expected = [
        ("keywords", set([words::KEYWORDS, words::FORM_ITEMS, words::CONNECTIVES])),
        ("statements", set([words::PROBLEM_ITEMS])),
        (
            "functions",
            set([
                words::FUNCTIONS,
                words::FACET_FUNCTIONS,
                &["re", "im", "conj", "table"],
                &[words::FILE, words::SOLUTION],
            ]),
        ),
        ("measures", set([measures()])),
        ("types", set([words::SHAPES, words::SPACES])),
        ("known", set([words::KNOWN, &[words::EXTENT, "i"]])),
        ("settings", settings()),
    ];
    for (rule, expected) in expected {
        let found = words_of(&grammar, rule);
        let constants: &[&str] = if rule == "keywords" { &["true", "false"] } else { &[] };
        let expected: BTreeSet<String> =
            expected.into_iter().filter(|word| !constants.contains(&word.as_str())).collect();
        assert_eq!(found, expected, "the rule `{rule}`");
    }
}

#[test]
fn words_of_the_parser_stand_in_the_lists() {
    let grammar = read("fem-dsl/grammar/src/grammar.pest");
    let rules =
        grammar.lines().filter(|line| line.starts_with("kw_") || line.starts_with("family"));
    let parts = rules.flat_map(|line| line.split('"').skip(1).step_by(2));
    let words: BTreeSet<String> = parts
        .filter(|part| part.starts_with(|c: char| c.is_ascii_alphabetic()))
        .map(str::to_owned)
        .collect();
    assert!(words.len() > 50, "the grammar was not read");
    let known = set([
        words::KEYWORDS,
        words::FORM_ITEMS,
        words::PROBLEM_ITEMS,
        words::CONNECTIVES,
        words::SHAPES,
        words::SPACES,
        words::FUNCTIONS,
        words::FACET_FUNCTIONS,
        words::KNOWN,
    ]);
    let missing: Vec<&String> = words.difference(&known).collect();
    assert!(missing.is_empty(), "no list in `words` has {missing:?}");
}

#[test]
fn the_tree_sitter_grammar_has_all_items() {
    let grammar = read("editors/tree-sitter-wf/grammar.js");
    let highlights = read("editors/tree-sitter-wf/queries/highlights.scm");
    let items = words::FORM_ITEMS.iter().chain(words::PROBLEM_ITEMS);
    for word in items.chain(words::SHAPES).chain(words::SPACES).chain(words::CONNECTIVES) {
        assert!(grammar.contains(&format!("'{word}'")), "grammar.js has no '{word}'");
    }
    for word in words::FUNCTIONS.iter().chain(words::FACET_FUNCTIONS).chain(measures()) {
        assert!(highlights.contains(&format!("\"{word}\"")), "highlights.scm has no \"{word}\"");
    }
}
