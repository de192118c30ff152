//! The builder of the tree: names, documentation and broken text.

use super::MAX_ERRORS;
use super::expect::{self, ParseContext};
use super::expression::Expressions;
use super::scan::{Scan, TokenKind};
use crate::ast::{ExprId, ExprKind, Ident, Span, Text};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::words;
use fem_dsl_grammar::Rule;
use pest::iterators::Pair;

/// Returns the location of a pair.
pub(super) fn span(pair: &Pair<'_, Rule>) -> Span {
    Span::new(pair.as_span().start(), pair.as_span().end())
}

/// The builder of the tree of one file.
pub(super) struct Builder<'a> {
    pub(super) scan: &'a mut Scan,
    pub(super) text: &'a str,
    pub(super) exprs: Expressions,
}

impl Builder<'_> {
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        self.exprs.diagnostics.push(diagnostic);
    }

    /// Returns a declared name; reports reserved words.
    pub(super) fn declared(&mut self, pair: &Pair<'_, Rule>) -> Ident {
        let ident = ident(pair);
        if let Some(what) = words::reserved(&ident.name) {
            let message = format!("`{}` is reserved and cannot be declared", ident.name);
            let help =
                format!("choose another name, such as `{}`", words::alternative(&ident.name));
            self.report(
                Diagnostic::new(Code::ReservedWord, message).label(ident.span, what).help(help),
            );
        }
        ident
    }

    /// Returns whether the scanner has reported a character or a number inside `at`.
    pub(super) fn is_torn(&self, at: Span) -> bool {
        self.scan.diagnostics.iter().any(|diagnostic| {
            matches!(
                diagnostic.code,
                Code::UnknownCharacter | Code::MalformedNumber | Code::NumberTooLarge
            ) && diagnostic.primary().is_some_and(|label| at.contains(label.span))
        })
    }

    /// Takes the documentation before the token at the beginning of `at`.
    pub(super) fn documentation(&mut self, at: Span) -> String {
        self.scan.docs.remove(&at.start).map_or_else(String::new, |docs| docs.text)
    }

    /// Reports documentation without an item.
    pub(super) fn stray_documentation(&mut self) {
        for docs in std::mem::take(&mut self.scan.docs).into_values() {
            self.report(
                Diagnostic::new(Code::StrayDocumentation, "this comment documents nothing")
                    .label(docs.span, "no item follows")
                    .help("a remark that documents no item begins with `//`"),
            );
        }
    }

    pub(super) fn first_word(&self, at: Span) -> String {
        let index = self.scan.token_at(at.start);
        self.scan.tokens.get(index).map_or("", |token| &self.text[token.span.range()]).to_owned()
    }

    /// Returns the second token of `at`, if it is a word.
    pub(super) fn second_word(&self, at: Span) -> Option<Ident> {
        let token = *self.scan.tokens.get(self.scan.token_at(at.start) + 1)?;
        let name = self.text[token.span.range()].to_owned();
        let good = token.kind == TokenKind::Word
            && at.contains(token.span)
            && name.starts_with(|c: char| c.is_ascii_alphabetic());
        good.then_some(Ident { name, span: token.span })
    }

    /// Reports unreadable text that should have been `rule`, with the position and the reason.
    pub(super) fn broken(&mut self, at: Span, rule: Rule, place: ParseContext) {
        if self.exprs.diagnostics.len() > MAX_ERRORS {
            return;
        }
        let failure = expect::failure(self.text, at, rule);
        let reported = |diagnostic: &Diagnostic| {
            diagnostic
                .labels
                .iter()
                .any(|label| at.start <= label.span.start && label.span.start <= failure.at)
        };
        // An error reported by the scanner at or before this position is the cause.
        if self.scan.diagnostics.iter().any(reported) {
            return;
        }
        let diagnostic = expect::describe(self.text, &self.scan.tokens, at, &failure, place);
        self.report(diagnostic);
        // An excess closing bracket after the error is a consequence of it. It was blanked.
        let rest = &self.text[at.end as usize..];
        let blanks = rest.len() - rest.trim_start().len();
        let at = at.to(Span::new(at.end as usize + blanks, at.end as usize + blanks));
        self.scan.diagnostics.retain(|diagnostic| {
            let dependent =
                diagnostic.code == Code::UnmatchedBracket && place == ParseContext::File;
            let inside = diagnostic.primary().is_some_and(|label| at.contains(label.span));
            !(dependent && inside)
        });
    }

    pub(super) fn error(&mut self, at: Span) -> ExprId {
        self.exprs.push(ExprKind::Error, at)
    }
}

/// Returns the name in a pair.
pub(super) fn ident(pair: &Pair<'_, Rule>) -> Ident {
    Ident { name: pair.as_str().to_owned(), span: span(pair) }
}

/// Returns the string in a pair.
pub(super) fn text(pair: &Pair<'_, Rule>) -> Text {
    let quoted = pair.as_str();
    Text { text: quoted[1..quoted.len() - 1].to_owned(), span: span(pair) }
}
