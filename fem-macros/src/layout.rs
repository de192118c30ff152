//! `layout`: tokens → text, with a table from ranges of the text to the spans of the tokens.
//!
//! The spacing is independent of the input: lines and columns are meaningless for tokens that a macro created, or that
//! come from several files. Groups without delimiters, the variables of a `macro_rules!`, are flattened (in parentheses
//! if they contain an operator), and `#[doc = "…"]` is converted back to `///`.

use fem_dsl::source;
use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};

/// Laid-out tokens.
pub(crate) struct Layout {
    text: String,
    /// The range of each token, in order, with its span.
    places: Vec<(source::Span, Span)>,
}

impl Layout {
    /// Returns the text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the spans of the first and the last token of a range of the text; those of the whole macro without a
    /// range.
    pub(crate) fn tokens(&self, range: Option<source::Span>) -> (Span, Span) {
        let whole = (Span::call_site(), Span::call_site());
        let (Some(range), Some(&(_, end))) = (range, self.places.last()) else { return whole };
        let first = self.places.partition_point(|(token, _)| token.end <= range.start);
        let behind = self.places.partition_point(|(token, _)| token.start < range.end);
        match self.places.get(first..behind.max(first)) {
            Some([one]) => (one.1, one.1),
            Some([first, .., last]) => (first.1, last.1),
            // Between two tokens, or after the last: the next one, or the last.
            _ => self.places.get(first).map_or((end, end), |token| (token.1, token.1)),
        }
    }
}

/// The kind of the last token, for the spacing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastToken {
    /// The beginning of a line or an opening bracket.
    Opening,
    /// An operator character that continues in the next token.
    Joint,
    /// A word that a bracket may follow directly: a function or an indexed name.
    Word,
    Other,
}

/// A token stream that is being laid out.
struct Frame {
    tokens: std::vec::IntoIter<TokenTree>,
    /// Its closing delimiter.
    close: Option<(&'static str, Span)>,
    /// True if it contains items, each on its own line.
    items: bool,
}

/// Lays out tokens.
pub(crate) fn layout(tokens: TokenStream) -> Layout {
    let mut writer = Writer {
        layout: Layout { text: String::new(), places: Vec::new() },
        last: LastToken::Opening,
        indent: 0,
    };
    // An explicit stack of frames, because the user determines the nesting depth.
    let mut frames = vec![frame(tokens, None)];
    while let Some(frame) = frames.last_mut() {
        let Some(token) = frame.tokens.next() else {
            if let Some(closed) = frames.pop() {
                writer.close(&closed);
            }
            continue;
        };
        match token {
            TokenTree::Group(group) => frames.push(writer.open(&group)),
            TokenTree::Ident(ident) => writer.word(&ident.to_string(), ident.span()),
            TokenTree::Literal(literal) => {
                writer.token(&literal.to_string(), literal.span(), LastToken::Other);
            }
            TokenTree::Punct(punct) if punct.as_char() == '#' => match documentation(frame) {
                Some((text, span)) => writer.documentation(text.as_deref(), span),
                None => writer.token("#", punct.span(), LastToken::Other),
            },
            TokenTree::Punct(punct) => {
                let joint = punct.spacing() == Spacing::Joint;
                let last = if joint { LastToken::Joint } else { LastToken::Other };
                writer.token(&punct.as_char().to_string(), punct.span(), last);
                if punct.as_char() == ';' && frame.items {
                    writer.line();
                }
            }
        }
    }
    writer.layout
}

/// Returns whether there is an operator outside of any brackets.
fn has_operator(group: &Group) -> bool {
    let operator =
        |token| matches!(token, TokenTree::Punct(punct) if "+-*/^<>=!&|".contains(punct.as_char()));
    group.stream().into_iter().any(operator)
}

fn frame(tokens: TokenStream, close: Option<(&'static str, Span)>) -> Frame {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let items = tokens
        .iter()
        .any(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';'));
    Frame { tokens: tokens.into_iter(), close, items }
}

/// Returns the text of a `#[doc = "…"]` or `#![doc = "…"]` whose `#` has been consumed; without a text for inner
/// documentation, like `//!`, which is a comment in the language.
fn documentation(frame: &mut Frame) -> Option<(Option<String>, Span)> {
    let mut ahead = frame.tokens.clone();
    let mut next = ahead.next()?;
    let inner = matches!(&next, TokenTree::Punct(punct) if punct.as_char() == '!');
    if inner {
        next = ahead.next()?;
    }
    let TokenTree::Group(group) = next else { return None };
    let parts: Vec<TokenTree> = group.stream().into_iter().collect();
    let [TokenTree::Ident(name), TokenTree::Punct(equals), TokenTree::Literal(text)] = &parts[..]
    else {
        return None;
    };
    if name != "doc" || equals.as_char() != '=' {
        return None;
    }
    let text = unquote(&text.to_string())?;
    frame.tokens = ahead;
    Some(((!inner).then_some(text), group.span()))
}

/// Returns the value of a string literal.
fn unquote(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('r') {
        let marks = raw.len() - raw.trim_start_matches('#').len();
        return raw.get(marks + 1..raw.len().checked_sub(marks + 1)?).map(str::to_owned);
    }
    let mut rest = literal.strip_prefix('"')?.strip_suffix('"')?.chars();
    let mut text = String::new();
    while let Some(character) = rest.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match rest.next()? {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            '0' => text.push('\0'),
            'x' => {
                let code: String = rest.by_ref().take(2).collect();
                text.push(char::from(u8::from_str_radix(&code, 16).ok()?));
            }
            'u' => {
                let code: String = rest.by_ref().take_while(|c| *c != '}').collect();
                let code = code.trim_start_matches('{').replace('_', "");
                text.push(char::from_u32(u32::from_str_radix(&code, 16).ok()?)?);
            }
            other => text.push(other),
        }
    }
    Some(text)
}

struct Writer {
    layout: Layout,
    last: LastToken,
    indent: usize,
}

impl Writer {
    /// Begins a new line, unless the current one is empty.
    fn line(&mut self) {
        let text = &mut self.layout.text;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        self.last = LastToken::Opening;
    }

    fn token(&mut self, token: &str, span: Span, last: LastToken) {
        let text = &mut self.layout.text;
        if text.is_empty() || text.ends_with('\n') {
            text.push_str(&"    ".repeat(self.indent.min(16)));
        } else {
            let close = matches!(self.last, LastToken::Opening | LastToken::Joint)
                || matches!(token, ";" | "," | ":" | ")" | "]")
                || (self.last == LastToken::Word && matches!(token, "(" | "["));
            if !close {
                text.push(' ');
            }
        }
        let start = text.len();
        text.push_str(token);
        self.layout.places.push((source::Span::new(start, text.len()), span));
        self.last = last;
    }

    fn word(&mut self, word: &str, span: Span) {
        let keyword = matches!(word, "if" | "else" | "in" | "on");
        self.token(word, span, if keyword { LastToken::Other } else { LastToken::Word });
    }

    fn documentation(&mut self, text: Option<&str>, span: Span) {
        let Some(text) = text else { return };
        for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
            self.line();
            let mark = if line.starts_with('/') { "/// " } else { "///" };
            let start = self.layout.text.len();
            let indent = "    ".repeat(self.indent.min(16));
            self.layout.text.push_str(&format!("{indent}{mark}{line}"));
            let range = source::Span::new(start + indent.len(), self.layout.text.len());
            self.layout.places.push((range, span));
        }
        self.line();
    }

    fn open(&mut self, group: &Group) -> Frame {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            // A variable with an operator is one operand, regardless of its surroundings.
            Delimiter::None if has_operator(group) => ("(", ")"),
            Delimiter::None => return frame(group.stream(), None),
        };
        let frame = frame(group.stream(), Some((close, group.span_close())));
        let inside = if open == "{" { LastToken::Other } else { LastToken::Opening };
        self.token(open, group.span_open(), inside);
        if frame.items {
            self.indent += 1;
            self.line();
        }
        frame
    }

    fn close(&mut self, frame: &Frame) {
        let Some((close, span)) = frame.close else { return };
        if frame.items {
            self.indent -= 1;
            self.line();
        }
        // A bracket may be followed directly by an index: `f(x)[0]`.
        self.token(close, span, if close == "}" { LastToken::Other } else { LastToken::Word });
        if frame.items {
            self.line();
        }
    }
}

#[cfg(test)]
mod tests;
