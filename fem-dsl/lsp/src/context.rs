//! The place of the cursor, from the tokens before it: the block, the item so far, and the open brackets.
//!
//! It needs no tree, so that it is right in unfinished text. A `;` ends an item and all of its brackets, and so does a
//! word that begins items only.

use crate::document::Document;
use fem_dsl::parse::LexemeKind;
use fem_dsl::source::Span;

/// The kind of the innermost block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    File,
    Form,
    Cells,
    Boundary,
    Interior,
    Problem,
}

impl Block {
    /// Returns whether it is a form or a block of one.
    pub(crate) fn is_of_form(self) -> bool {
        !matches!(self, Self::File | Self::Problem)
    }

    /// Returns whether it is about facets.
    pub(crate) fn is_of_facets(self) -> bool {
        matches!(self, Self::Boundary | Self::Interior)
    }
}

/// An open bracket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bracket<'a> {
    pub(crate) sign: &'a str,
    /// The word before it: of a call the function.
    pub(crate) word: &'a str,
    /// The names of the arguments so far.
    pub(crate) labels: Vec<&'a str>,
    /// The name of the argument at the cursor, if it has one.
    pub(crate) label: Option<&'a str>,
    /// True directly after the bracket or a comma.
    pub(crate) begins: bool,
}

/// The place of the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Context<'a> {
    pub(crate) block: Block,
    /// The name of the form or problem.
    pub(crate) owner: &'a str,
    /// The tokens of the item before the cursor's word.
    pub(crate) item: Vec<&'a str>,
    pub(crate) brackets: Vec<Bracket<'a>>,
    /// The word before the cursor; empty without one.
    pub(crate) prefix: Span,
    /// True in the text of a string.
    pub(crate) in_string: bool,
    /// True in a comment or a number, where nothing can be completed.
    pub(crate) is_silent: bool,
}

/// Words that begin an item wherever they stand.
const BEGINS: &[&str] = &["form", "problem", "field", "aux", "let", "fn", "f0", "f1"];

impl<'a> Context<'a> {
    /// Returns the place of an offset.
    pub(crate) fn of(document: &'a Document, offset: usize) -> Self {
        let at = Span::new(offset, offset).start;
        let mut found = Self {
            block: Block::File,
            owner: "",
            item: Vec::new(),
            brackets: Vec::new(),
            prefix: Span { start: at, end: at },
            in_string: false,
            is_silent: false,
        };
        let mut outer = Vec::new();
        for lexeme in document.analysis.lexemes() {
            let Span { start, end } = lexeme.span;
            if start >= at {
                break;
            }
            let text = document.slice(lexeme.span);
            match lexeme.kind {
                LexemeKind::Comment | LexemeKind::Documentation => {
                    let open = text.starts_with("//") && at == end;
                    found.is_silent |= at < end || open;
                }
                LexemeKind::Number if at <= end => found.is_silent = true,
                LexemeKind::Word if at <= end => found.prefix.start = start,
                LexemeKind::String if at < end || !closes(text) && at == end => {
                    found.in_string = true;
                    found.prefix.start = start + 1;
                }
                _ => found.token(text, &mut outer),
            }
        }
        found
    }

    /// Returns the word that begins the item; empty at its beginning.
    pub(crate) fn first(&self) -> &'a str {
        self.item.first().copied().unwrap_or_default()
    }

    /// Returns the token before the cursor; empty at the beginning of an item.
    pub(crate) fn last(&self) -> &'a str {
        self.item.last().copied().unwrap_or_default()
    }

    /// Returns whether the item has this token.
    pub(crate) fn has(&self, token: &str) -> bool {
        self.item.contains(&token)
    }

    fn token(&mut self, text: &'a str, outer: &mut Vec<Block>) {
        // `output u;` and `form` in another place than the beginning: text that is being written.
        if BEGINS.contains(&text) && !self.item.is_empty() {
            self.end_item();
        }
        if matches!(text, "form" | "problem") {
            outer.clear();
            self.block = Block::File;
        }
        match text {
            ";" => self.end_item(),
            "{" if self.brackets.is_empty()
                && matches!(self.first(), "form" | "problem" | "on") =>
            {
                self.open_block(outer);
            }
            "}" if !self.brackets.iter().any(|own| own.sign == "{") => {
                self.block = outer.pop().unwrap_or(Block::File);
                self.end_item();
            }
            "(" | "[" | "{" => {
                let word = self.last();
                let labels = Vec::new();
                let bracket = Bracket { sign: text, word, labels, label: None, begins: true };
                self.brackets.push(bracket);
                self.item.push(text);
            }
            ")" | "]" | "}" => {
                let partner = match text {
                    ")" => "(",
                    "]" => "[",
                    _ => "{",
                };
                if let Some(at) = self.brackets.iter().rposition(|own| own.sign == partner) {
                    self.brackets.truncate(at);
                }
                self.item.push(text);
            }
            _ => {
                let last = self.last();
                if let Some(bracket) = self.brackets.last_mut() {
                    match text {
                        "," => (bracket.label, bracket.begins) = (None, true),
                        ":" => {
                            bracket.labels.push(last);
                            bracket.label = Some(last);
                        }
                        _ => bracket.begins = false,
                    }
                }
                self.item.push(text);
            }
        }
    }

    fn end_item(&mut self) {
        self.item.clear();
        self.brackets.clear();
    }

    fn open_block(&mut self, outer: &mut Vec<Block>) {
        outer.push(self.block);
        let second = self.item.get(1).copied().unwrap_or_default();
        self.block = match (self.first(), second) {
            ("form", _) => Block::Form,
            ("problem", _) => Block::Problem,
            (_, "cells") => Block::Cells,
            (_, "interior") => Block::Interior,
            _ => Block::Boundary,
        };
        if self.first() != "on" {
            self.owner = second;
        }
        self.end_item();
    }
}

/// Returns whether a string has its closing quote.
fn closes(text: &str) -> bool {
    text.len() > 1 && text.ends_with('"')
}
