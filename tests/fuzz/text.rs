//! Assertions of the targets about texts.

use fem_dsl::ast::File;

/// Returns a tree without its locations.
pub(crate) fn without_spans(file: &File) -> String {
    let shown = format!("{file:?}");
    let mut rest = shown.as_str();
    let mut tree = String::new();
    while let Some(at) = rest.find("Span { start: ") {
        tree.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = &rest[rest.find('}').map_or(rest.len(), |end| end + 1)..];
    }
    tree.push_str(rest);
    tree
}

/// Asserts that a source is ASCII outside of comments and that its brackets are balanced: user text can neither end a
/// comment nor open a block.
pub(crate) fn balanced(source: &str, c: bool) {
    let code = without_comments(source, c);
    let mut open = Vec::new();
    for (at, byte) in code.bytes().enumerate() {
        assert!(byte.is_ascii(), "not ASCII at {at} of\n{code}");
        match byte {
            b'(' | b'[' | b'{' => open.push(byte),
            b')' => assert_eq!(open.pop(), Some(b'('), "at {at} of\n{code}"),
            b']' => assert_eq!(open.pop(), Some(b'['), "at {at} of\n{code}"),
            b'}' => assert_eq!(open.pop(), Some(b'{'), "at {at} of\n{code}"),
            _ => {}
        }
    }
    assert!(open.is_empty(), "brackets without partners in\n{code}");
}

/// Returns the code of a source, without comments and strings. In C, a backslash joins a line comment with the next
/// line, and block comments do not nest.
fn without_comments(source: &str, c: bool) -> String {
    let mut code = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            let mut end = rest.find('\n').unwrap_or(rest.len());
            while c && rest[..end].trim_end_matches('\r').ends_with('\\') && end < rest.len() {
                end += 1 + rest[end + 1..].find('\n').unwrap_or(rest.len() - end - 1);
            }
            rest = &rest[end..];
        } else if rest.starts_with("/*") {
            rest = &rest[block_comment(rest, !c)..];
        } else if first == '"' {
            let end = rest[1..].find('"').map_or(rest.len(), |end| end + 2);
            rest = &rest[end..];
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// Returns the length of the block comment with which `text` begins.
fn block_comment(text: &str, nests: bool) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (1, 2);
    while depth > 0 && at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] if nests => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    at.min(text.len())
}
