//! Comments of generated sources, the only place for text that a user wrote: any text → lines that are comments and
//! nothing else for every compiler.
//!
//! Clang ends `//` at a carriage return, `rustc` rejects characters that change the text direction, and C joins a line
//! that ends with `\` or `??/` to the next.

use fem_dsl::source::is_unseen;
use std::fmt::Write;

/// Writes `words` as comments, one per line.
pub(crate) fn comment(text: &mut String, indent: &str, words: &str) {
    for line in words.replace("\r\n", "\n").split(ends_line) {
        let _ = writeln!(text, "{indent}{}", format!("// {}", visible(line)).trim_end());
    }
}

/// Returns whether some compiler or editor treats a character as a line end.
fn ends_line(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns a line with every invisible character replaced by a visible mark, and without effect on the next line.
fn visible(line: &str) -> String {
    let mark =
        |character| if is_unseen(character) { char::REPLACEMENT_CHARACTER } else { character };
    let line: String = line.chars().map(mark).collect();
    // C99 reads `??/` as `\`.
    let mut line = line.replace("??/", "?? /").trim_end().to_owned();
    if line.ends_with('\\') {
        line.push_str(" .");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::comment;

    fn written(words: &str) -> String {
        let mut text = String::new();
        comment(&mut text, "  ", words);
        text
    }

    #[test]
    fn plain_text_stays_as_it_is() {
        assert_eq!(written("−∇·(κ∇u) = f"), "  // −∇·(κ∇u) = f\n");
        assert_eq!(written("a\n\n\tb \r\nc"), "  // a\n  //\n  // \tb\n  // c\n");
    }

    #[test]
    fn every_line_is_a_comment_whoever_reads_it() {
        for end in ["\r", "\u{b}", "\u{c}", "\u{85}", "\u{2028}", "\u{2029}", "\n\r", "\r\r\n"] {
            let text = written(&format!("note{end}#define get_group_id(d) 0"));
            assert!(text.lines().all(|line| line.starts_with("  //")), "{end:?}: {text:?}");
            assert_eq!(
                text.chars().filter(|c| c.is_control() && *c != '\n').count(),
                0,
                "{text:?}"
            );
        }
        assert_eq!(written("a\0b\u{1b}[31m\u{202e}c"), "  // a\u{fffd}b\u{fffd}[31m\u{fffd}c\n");
    }

    #[test]
    fn no_line_goes_on_with_the_next() {
        assert_eq!(
            written("a \\\nb \\ \t\nc ??/\nd ???/"),
            "  // a \\ .\n  // b \\ .\n  // c ?? /\n  // d ??? /\n"
        );
        assert_eq!(written("\\"), "  // \\ .\n");
        assert_eq!(written("in \\the middle ??"), "  // in \\the middle ??\n");
    }
}
