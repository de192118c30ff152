//! The lengths of functions: text → functions that are too long.

use super::code::Code;

/// A function that is longer than the rule allows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongFunction {
    pub(crate) name: String,
    /// The line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// Lines from its `fn` to its closing brace.
    pub(crate) lines: usize,
}

/// Returns the functions with more than `longest` lines, except those that are one `match` with an arm a line.
pub(crate) fn long_functions(source: &str, longest: usize) -> Vec<LongFunction> {
    let code = Code::new(source).text;
    let bytes = code.as_bytes();
    let is_part = |c: &char| c.is_alphanumeric() || *c == '_';
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(|c| is_part(&c)) {
            continue;
        }
        let name: String = code[at + 3..].chars().take_while(is_part).collect();
        let Some((begin, end)) = body(bytes, at).filter(|_| !name.is_empty()) else { continue };
        let lines = code[at..end].matches('\n').count() + 1;
        if lines > longest && !is_table(&code[begin + 1..end]) {
            let line = code[..at].matches('\n').count() + 1;
            found.push(LongFunction { name, line, lines });
        }
    }
    found
}

/// Returns the positions of the braces of a function's body; `None` for a declaration.
fn body(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let (mut depth, mut begin) = (0_usize, None);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b'{' => {
                begin = begin.or((depth == 0).then_some(at));
                depth += 1;
            }
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if let Some(begin) = begin.filter(|_| depth == 0) {
                    return Some((begin, at));
                }
            }
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Returns whether a body is one `match` whose arms have a line each.
fn is_table(body: &str) -> bool {
    let body = body.trim();
    let Some(begin) = body.starts_with("match ").then(|| body.find('{')).flatten() else {
        return false;
    };
    let Some(arms) = body[begin + 1..].strip_suffix('}') else { return false };
    let count = |line: &str, signs: [char; 3]| line.matches(signs).count();
    arms.lines().map(str::trim).filter(|line| !line.is_empty()).all(|line| {
        line.contains(" => ") && count(line, ['(', '[', '{']) == count(line, [')', ']', '}'])
    })
}

#[test]
fn lines_are_counted_from_the_signature_to_the_brace() {
    let statements = "    let a = \"}\"; // }\n".repeat(4);
    let signature = "pub(crate) fn long<T>(\n    a: [u8; 3],\n) -> u8\nwhere\n    T: Fn(u8),\n{\n";
    let source = format!("trait A {{ fn declared(&self); }}\n{signature}{statements}}}\n");
    let long = LongFunction { name: "long".to_owned(), line: 2, lines: 11 };
    assert_eq!(long_functions(&source, 10), [long]);
    assert_eq!(long_functions(&source, 11), []);
    assert_eq!(long_functions("type A = fn (u8) -> u8;\nfn a() {}\n", 1), []);
}

#[test]
fn a_match_with_an_arm_a_line_may_be_long() {
    let function =
        |arms: &str| format!("fn word(a: A) -> B {{\n    match a {{\n{arms}    }}\n}}\n");
    let table = function(&"        A::B(c) => B::new(c),\n".repeat(9));
    assert_eq!(long_functions(&table, 5), []);
    let blocks = function(&"        A::B(c) => {\n            c\n        }\n".repeat(9));
    assert_eq!(long_functions(&blocks, 5).len(), 1);
    let later = table.replace("    match", "    let c = 3;\n    match");
    assert_eq!(long_functions(&later, 5).len(), 1);
}
