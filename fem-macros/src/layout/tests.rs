//! The macro and the file parser read every input identically.

use super::*;
use fem_dsl::ast::File;
use fem_dsl::parse::parse;
use fem_dsl::source::{Source, TableFolder};
use std::path::Path;

fn tokens(text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Returns a source whose tables are beside the examples.
fn source(name: &str, text: impl Into<String>) -> Source {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    Source::new(name, text).in_folder(Some(TableFolder { path, read }))
}

/// Returns a tree as text without locations.
fn plain(file: &File) -> String {
    let mut text = format!("{file:?}");
    for mark in ["start: ", "end: "] {
        let parts: Vec<&str> = text.split(mark).collect();
        let digits = |part: &&str| part.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
        let rest: Vec<String> = parts[1..].iter().map(digits).collect();
        text = format!("{}{}", parts[0], rest.concat());
    }
    text
}

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder should be readable");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wf"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("a form should be readable");
        (path.display().to_string(), text)
    };
    paths.iter().map(read).collect()
}

#[test]
fn the_corpus_reads_the_same_through_both_doors() {
    let corpus = files("tests/forms");
    assert!(corpus.len() >= 10);
    for (name, text) in corpus.into_iter().chain(files("examples")) {
        let (direct, wrong) = parse(&source(&name, text.clone()));
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let laid_out = layout(tokens(&text));
        let (through, wrong) = parse(&source(&name, laid_out.text()));
        assert!(wrong.is_empty(), "{name}: {wrong:?}\n{}", laid_out.text());
        assert_eq!(plain(&direct), plain(&through), "{name}\n{}", laid_out.text());
    }
}

#[test]
fn wrong_files_have_the_same_mistakes() {
    let mut seen = 0;
    for (name, text) in files("tests/errors") {
        // Some mistakes (brackets, quotes, characters) are reported by Rust instead of the macro.
        let Ok(tokens) = text.parse::<TokenStream>() else { continue };
        let codes = |text: &str| {
            let (_, found) = parse(&Source::new(name.clone(), text));
            found.iter().map(|found| (found.code, found.message.clone())).collect::<Vec<_>>()
        };
        // A number that ends in a point and a string after a word are other tokens in Rust.
        if matches!(name.rsplit('/').next(), Some("malformed_numbers.wf" | "unknown_character.wf"))
        {
            continue;
        }
        seen += 1;
        let laid_out = layout(tokens);
        assert_eq!(codes(&text), codes(laid_out.text()), "{name}\n{}", laid_out.text());
    }
    assert!(seen > 60, "{seen}");
}

#[test]
fn places_lead_back_to_tokens() {
    let text = "form a { let kappa = 1; let b = kapa * (2 + x[0]); }";
    let laid_out = layout(tokens(text));
    let find = |piece: &str| {
        let start = laid_out.text().find(piece).expect("the piece should be there");
        laid_out.tokens(Some(source::Span::new(start, start + piece.len())))
    };
    let (first, last) = find("kapa");
    assert_eq!((first.start().column, last.end().column), (32, 36));
    let (first, last) = find("(2 + x[0])");
    assert_eq!((first.start().column, last.end().column), (39, 49));
    let end = laid_out.text().len();
    let (first, _) = laid_out.tokens(Some(source::Span::new(end, end)));
    assert_eq!(first.end().column, text.len());
}

#[test]
fn groups_without_delimiters_are_flat() {
    let hidden = |text: &str| TokenTree::from(Group::new(Delimiter::None, tokens(text)));
    let laid_out = |token: TokenTree| {
        let mut stream = tokens("2 *");
        stream.extend([token]);
        layout(stream).text().to_owned()
    };
    assert_eq!(laid_out(hidden("f(x - 1)")), "2 * f(x - 1)");
    let twice = Group::new(Delimiter::None, hidden("u").into());
    assert_eq!(laid_out(twice.into()), "2 * u");
    assert_eq!(laid_out(hidden("1 + u")), "2 * (1 + u)");
}

#[test]
fn documentation_comes_back() {
    let laid_out =
        layout(tokens("/// One \"two\" \\ é\n/** three\n four */\n//! inner\nform a { }"));
    let (file, wrong) = parse(&Source::new("a.wf", laid_out.text()));
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(file.forms[0].doc, "One \"two\" \\ é\nthree\nfour");
    assert_eq!(unquote(r##"r#"a"b"#"##).as_deref(), Some("a\"b"));
    assert_eq!(unquote(r#""\x41\u{e9}\n""#).as_deref(), Some("Aé\n"));
}

/// The contents of documentation never become code.
#[test]
fn line_ends_inside_documentation_stay_inside() {
    let laid_out = layout(tokens(r##"#[doc = "one\r field v: scalar;\r\ntwo"] form a { }"##));
    let (file, wrong) = parse(&Source::new("a.wf", laid_out.text()));
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(file.forms[0].doc, "one\nfield v: scalar;\ntwo");
    assert!(file.forms[0].items.is_empty());
}

#[test]
fn text_is_readable() {
    let laid_out = layout(tokens("form a{field u:scalar;f0[u]=if x[0]<=1{u}else{-2*u};}"));
    assert_eq!(
        laid_out.text(),
        "form a {\n    field u: scalar;\n    f0[u] = if x[0] <= 1 { u } else { - 2 * u };\n}\n"
    );
}
