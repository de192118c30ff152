//! Names of an exported header: any names → distinct C identifiers and string literals.

use crate::dialect::names::is_reserved_in_c;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The identifiers of one scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    used: BTreeSet<String>,
}

impl Names {
    /// Creates a scope with the names that the library's functions have.
    pub(super) fn with(names: &str) -> Self {
        Self { used: names.split_whitespace().map(str::to_owned).collect() }
    }

    /// Returns the wished name as an identifier that the scope does not have yet.
    pub(super) fn unique(&mut self, wish: &str) -> String {
        let letters = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let mut name: String = wish.chars().map(letters).collect();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) || is_macro(&name) {
            name.insert_str(0, "a_");
        }
        if is_reserved_in_c(&name) {
            name.push('_');
        }
        let (own, mut number) = (name.clone(), 1);
        while !self.used.insert(name.clone()) {
            number += 1;
            name = format!("{own}_{number}");
        }
        name
    }
}

/// Returns whether a name may be a macro of a header: `I` of complex.h, `M_PI`, `FLT_MAX`.
fn is_macro(name: &str) -> bool {
    let capitals = name.bytes().filter(u8::is_ascii_uppercase).count();
    name == "I" || capitals > 1 && !name.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns a C string literal of the text in UTF-8.
pub(super) fn string(text: &str) -> String {
    let mut literal = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => literal.extend(['\\', char::from(byte)]),
            b' '..=b'~' => literal.push(char::from(byte)),
            // Three octal digits end the escape.
            _ => {
                let _ = write!(literal, "\\{byte:03o}");
            }
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
mod tests {
    use super::{Names, string};

    #[test]
    fn names_are_distinct_identifiers() {
        let mut names = Names::with("u x");
        let wishes = ["u", "u", "double", "T", "F_0_0", "I", "M_PI", "J", "κ", "2nd"];
        let found = wishes.map(|wish| names.unique(wish));
        let wanted = ["u_2", "u_3", "double_", "T", "F_0_0", "a_I", "a_M_PI", "J", "a__", "a_2nd"];
        assert_eq!(found, wanted);
    }

    #[test]
    fn literals_have_no_trigraphs_and_no_bytes_beyond_ascii() {
        assert_eq!(string("a \"b\" ??/ \\ é1\n"), r#""a \"b\" \?\?/ \\ \303\2511\012""#);
    }
}
