//! The builder of the tree: names, documentation and broken text.

use super::MAX_ERRORS;
use super::expect::{self, ParseContext};
use super::expression::Expressions;
use super::scan::{Scan, TokenKind};
use crate::ast::{ExprId, ExprKind, Ident, Span, Text};
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::words;
use fem_dsl_grammar::{Grammar, Rule};
use pest::Parser;
use pest::iterators::Pair;
use std::borrow::Cow;

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

    /// Reports unreadable text that should have been `rule`, with the position and the reason. If the position is in
    /// brackets, the rest of the text is read as if a number stood there.
    pub(super) fn broken(&mut self, at: Span, rule: Rule, place: ParseContext) {
        let mut text = Cow::Borrowed(self.text);
        let mut after = at.start;
        while let Some(failure) = self.failed(&text, at, rule, (place, after))
            && let Some(part) = self.bracketed(at, failure)
        {
            after = part.end;
            let number = format!("0{}", " ".repeat(part.range().len() - 1));
            text.to_mut().replace_range(part.range(), &number);
            if Grammar::parse(rule, &text[at.range()]).is_ok() {
                return;
            }
        }
    }

    /// Returns the part of an item between brackets and commas in which the item is unreadable from `offset` on; `None`
    /// outside of brackets.
    fn bracketed(&self, at: Span, offset: u32) -> Option<Span> {
        let tokens = self.scan.tokens.iter().filter(|token| at.contains(token.span));
        // The start of the part at each depth.
        let mut open: Vec<u32> = Vec::new();
        let mut depth = None;
        for token in tokens {
            if token.span.start >= offset && depth.is_none() {
                depth = Some(open.len()).filter(|depth| *depth > 0);
                depth?;
            }
            let text = &self.text[token.span.range()];
            let ends = matches!(text, ")" | "]" | "}" | ",");
            if let (Some(depth), true, Some(&start)) = (depth, ends, open.last())
                && open.len() == depth
            {
                let part = Span { start, end: token.span.start };
                return (part.start < part.end).then_some(part);
            }
            match text {
                "(" | "[" | "{" => open.push(token.span.end),
                ")" | "]" | "}" => drop(open.pop()),
                "," | ":" => open
                    .iter_mut()
                    .next_back()
                    .into_iter()
                    .for_each(|start| *start = token.span.end),
                _ => {}
            }
        }
        None
    }

    /// Reports the position at which `text` is no `rule`, and returns it. Positions before `after`, where a number stands
    /// that is not in the text, are not reported, nor those of which another error is the cause.
    fn failed(
        &mut self,
        text: &str,
        at: Span,
        rule: Rule,
        (place, after): (ParseContext, u32),
    ) -> Option<u32> {
        if self.exprs.diagnostics.len() > MAX_ERRORS {
            return None;
        }
        let failure = expect::failure(text, at, rule);
        if failure.at < after {
            return None;
        }
        let reported = |diagnostic: &Diagnostic| {
            diagnostic
                .labels
                .iter()
                .any(|label| at.start <= label.span.start && label.span.start <= failure.at)
        };
        // An error reported by the scanner at or before this position is the cause.
        if self.scan.diagnostics.iter().any(reported) {
            return None;
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
        Some(failure.at)
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
