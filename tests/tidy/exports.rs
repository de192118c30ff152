//! Types in the facade's public items, and their availability through the facade: the files of its library →
//! [`missing`].

use std::collections::BTreeSet;

use crate::code::{Code, words};

/// Types of the standard library's prelude, or with well-known paths.
const STANDARD: [&str; 22] = [
    "Arc",
    "AsRef",
    "BTreeMap",
    "Box",
    "Fn",
    "FnMut",
    "From",
    "Into",
    "Item",
    "Iterator",
    "Option",
    "Path",
    "PathBuf",
    "RangeInclusive",
    "Result",
    "Self",
    "Send",
    "String",
    "Sync",
    "ToString",
    "Vec",
    "Write",
];

/// Returns the types in public signatures, fields or variants that no public module exports: one complaint each. A file
/// is its path below `src/` and its text.
pub(crate) fn missing(files: &[(&str, &str)]) -> Vec<String> {
    let root = files.iter().find(|(path, _)| *path == "lib.rs").map_or("", |(_, text)| text);
    let root = Code::new(root).text;
    let modules: Vec<&str> =
        root.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let is_public = |path: &str| {
        path == "lib.rs" || modules.iter().any(|module| path == format!("{module}.rs"))
    };
    let mut exported: BTreeSet<String> = BTreeSet::new();
    let mut named: Vec<(String, String)> = Vec::new();
    for (path, text) in files {
        let code = Code::new(text).text;
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        for statement in statements(code) {
            let types = words(&statement).map(|(_, word)| word.to_owned()).filter(|w| is_type(w));
            if statement.starts_with("pub use") && is_public(path) {
                exported.extend(types);
            } else if !statement.starts_with("pub use") {
                let mut types = types.peekable();
                if is_public(path) && defines(&statement) {
                    exported.extend(types.peek().cloned());
                }
                named.extend(types.map(|word| (word, format!("src/{path}"))));
            }
        }
    }
    let known = |word: &String| exported.contains(word) || STANDARD.contains(&word.as_str());
    let missing: BTreeSet<(String, String)> =
        named.into_iter().filter(|(word, _)| !known(word)).collect();
    missing.into_iter().map(|(word, path)| format!("{path} names {word}")).collect()
}

fn is_type(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|first| first.is_ascii_uppercase())
        && letters.any(|c| c.is_ascii_lowercase())
}

fn defines(statement: &str) -> bool {
    ["pub struct", "pub enum", "pub trait", "pub type"]
        .iter()
        .any(|kind| statement.starts_with(kind))
}

/// Returns items that begin with `pub`, up to their body or end; and the fields of public variants, which need no
/// `pub`.
fn statements(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find("pub ").map(|offset| at + offset) {
        let rest = &code[start..];
        let line_start = code[..start].rfind('\n').map_or(0, |end| end + 1);
        at = start + 4;
        if !code[line_start..start].trim().is_empty() {
            continue;
        }
        let end = if rest.starts_with("pub use") {
            rest.find(';')
        } else if rest.starts_with("pub enum") {
            rest.find("\n}")
        } else if rest.starts_with("pub struct") {
            // Fields are separate statements; those of tuples are private here.
            rest.find(['{', '(', ';'])
        } else if rest.starts_with("pub fn") || defines(rest) || rest.starts_with("pub const fn") {
            rest.find(['{', ';'])
        } else {
            rest.find(['\n', '='])
        };
        let end = end.unwrap_or(rest.len());
        let own = &rest[..end];
        // Names of variants are not types.
        let own = if rest.starts_with("pub enum") { without_variants(own) } else { own.to_owned() };
        found.push(own);
        at = start + end;
    }
    found
}

fn without_variants(text: &str) -> String {
    let (head, body) = text.split_once('{').unwrap_or((text, ""));
    let fields = body.lines().filter_map(|line| {
        let line = line.trim();
        match (line.split_once(": "), line.split_once('(')) {
            (Some((_, ty)), _) => Some(ty),
            (None, Some((_, ty))) if !line.starts_with('#') => Some(ty),
            _ => None,
        }
    });
    format!("{head} {}", fields.collect::<Vec<_>>().join(" "))
}

#[test]
fn what_is_not_exported_is_found() {
    let root = "pub mod open;\nmod shut;\npub use shut::{Known, make};\npub use other::Kind;\n";
    let open = "pub struct Own { pub a: Kind }\npub enum Both {\n    Name(Hidden),\n    Other {\n        x: Vec<Kind>,\n    },\n}\n";
    let shut = "/// Lost.\npub struct Known;\nimpl Known {\n    pub fn make(&self, to: Lost) -> Option<Own> {}\n    fn no(&self) -> Private {}\n}\n";
    let files = [("lib.rs", root), ("open.rs", open), ("shut.rs", shut)];
    assert_eq!(missing(&files), ["src/open.rs names Hidden", "src/shut.rs names Lost"]);
}
