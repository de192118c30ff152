//! The check of the tree-sitter grammar: files without errors, the corpus, and the queries.
//!
//! Usage: `tree-sitter-wf-check FOLDER FILE…`, with the folder of the grammar and files that must parse.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tree_sitter::{Language, Node, Parser, Query};
use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_wf() -> *const ();
}

/// Returns the language of the generated parser.
fn language() -> Language {
    // SAFETY: the generated function returns a static table.
    unsafe { LanguageFn::from_raw(tree_sitter_wf) }.into()
}

/// Returns the first error or missing token of a tree.
fn mistake(root: Node<'_>) -> Option<Node<'_>> {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        if node.is_error() || node.is_missing() {
            return Some(node);
        }
        let count = u32::try_from(node.child_count()).unwrap_or_default();
        open.extend((0..count).rev().filter_map(|at| node.child(at as _)));
    }
    None
}

/// Returns an S-expression without white space and without the names of fields.
fn plain(text: &str) -> String {
    let words = text.replace('(', " ( ").replace(')', " ) ");
    words.split_whitespace().filter(|word| !word.ends_with(':')).collect::<Vec<_>>().join(" ")
}

/// Compares the trees of a file of the corpus; returns the number of its texts.
fn corpus(parser: &mut Parser, path: &Path, mistakes: &mut Vec<String>) -> usize {
    let text = fs::read_to_string(path).expect("a file of the corpus");
    let line = "==================\n";
    let parts: Vec<&str> = text.split(line).skip(1).collect();
    for pair in parts.chunks(2) {
        let [title, body] = pair else { panic!("{}: a title without a text", path.display()) };
        let (text, expected) = body.split_once("\n---\n").expect("a text and its tree");
        let tree = parser.parse(text, None).expect("a tree");
        let found = plain(&tree.root_node().to_sexp());
        if found != plain(expected) {
            mistakes.push(format!("{}:\n  expected {}\n  found    {found}", title.trim(), plain(expected)));
        }
    }
    parts.len() / 2
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().expect("the folder of the grammar");
    let mut parser = Parser::new();
    parser.set_language(&language()).expect("a language of this version");
    let mut mistakes = Vec::new();
    let files: Vec<PathBuf> = arguments.collect();
    for path in &files {
        let text = fs::read_to_string(path).expect("a file");
        let tree = parser.parse(&text, None).expect("a tree");
        if let Some(node) = mistake(tree.root_node()) {
            let place = node.start_position();
            let (line, column) = (place.row + 1, place.column + 1);
            mistakes.push(format!("{}:{line}:{column}: {}", path.display(), node.to_sexp()));
        }
    }
    let texts = corpus(&mut parser, &folder.join("test/corpus/language.txt"), &mut mistakes);
    let mut queries = 0;
    for entry in fs::read_dir(folder.join("queries")).expect("the queries").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a query");
        queries += 1;
        if let Err(error) = Query::new(&language(), &text) {
            mistakes.push(format!("{}: {error}", entry.path().display()));
        }
    }
    for mistake in &mistakes {
        eprintln!("{mistake}");
    }
    println!("tree-sitter: {} files, {texts} texts of the corpus, {queries} queries", files.len());
    ExitCode::from(u8::from(!mistakes.is_empty() || files.is_empty()))
}
