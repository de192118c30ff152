//! Rust text without comments and literals, sufficient to find the names that a file uses: text → [`Code`] → [`words`].

/// A text of the same length and lines, with comments and the insides of literals blanked.
pub(crate) struct Code {
    pub(crate) text: String,
}

impl Code {
    pub(crate) fn new(source: &str) -> Self {
        let mut bytes = source.as_bytes().to_vec();
        let mut at = 0;
        while at < bytes.len() {
            let end = literal_end(&bytes, at);
            for byte in &mut bytes[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            // Names are skipped as a whole, so that the `r` in `for"` begins no raw string.
            at = if end > at { end } else { at + name_length(&bytes[at..]).max(1) };
        }
        Self { text: String::from_utf8_lossy(&bytes).into_owned() }
    }
}

/// Returns every name and keyword with its line, counted from 1.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    code.lines().enumerate().flat_map(|(line, text)| {
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|word| !word.is_empty()).map(move |word| (line + 1, word))
    })
}

/// Returns the end of the comment or literal that begins at `at`; `at` itself if there is none.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let find = |needle: &[u8], from: usize| {
        let found =
            rest[from.min(rest.len())..].windows(needle.len()).position(|part| part == needle);
        found.map_or(bytes.len(), |offset| at + from + offset + needle.len())
    };
    if rest.starts_with(b"//") {
        return find(b"\n", 2);
    }
    if rest.starts_with(b"/*") {
        return block_end(bytes, at);
    }
    let raw = rest.strip_prefix(b"br").or_else(|| rest.strip_prefix(b"r"));
    if let Some(raw) = raw {
        let hashes = raw.iter().take_while(|byte| **byte == b'#').count();
        if raw.get(hashes) == Some(&b'"') {
            let close = [b"\"".as_slice(), &raw[..hashes]].concat();
            return find(&close, rest.len() - raw.len() + hashes + 1);
        }
    }
    match rest {
        [b'"', ..] => quoted_end(bytes, at + 1, b'"'),
        // A character, unlike a lifetime, closes after one (possibly escaped) character.
        [b'\'', b'\\', ..] => quoted_end(bytes, at + 1, b'\''),
        [b'\'', tail @ ..] => {
            let width = tail.iter().skip(1).take_while(|byte| **byte & 0xC0 == 0x80).count() + 1;
            if tail.get(width) == Some(&b'\'') { at + width + 2 } else { at }
        }
        _ => at,
    }
}

fn block_end(bytes: &[u8], at: usize) -> usize {
    let (mut depth, mut at) = (0, at);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if bytes[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted_end(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while at < bytes.len() && bytes[at] != quote {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn name_length(bytes: &[u8]) -> usize {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || **byte >= 0x80;
    let length = bytes.iter().take_while(part).count();
    // `r"…"` and `b"…"` are literals, not names.
    let literal = matches!(&bytes[..length], b"r" | b"b" | b"br");
    if literal && matches!(bytes.get(length), Some(b'"' | b'#')) { 0 } else { length }
}

#[test]
fn names_in_comments_and_literals_do_not_count() {
    let source = r##"use a::b; // unsafe
        /* unsafe /* unsafe */ unsafe */ let c = "unsafe \" unsafe"; let d = '"';
        fn e<'f>(g: &'f str) -> char { r#"unsafe " unsafe"#; b"unsafe"; '\'' } for_r"unsafe""##;
    let code = Code::new(source);
    assert_eq!(code.text.lines().count(), source.lines().count());
    let found: Vec<_> = words(&code.text).map(|(_, word)| word).collect();
    assert!(!found.contains(&"unsafe"), "{found:?}");
    for name in ["a", "b", "c", "d", "e", "f", "g", "str", "char", "for_r"] {
        assert!(found.contains(&name), "{name}: {found:?}");
    }
}
