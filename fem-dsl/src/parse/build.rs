//! `build`: the parser's pairs → the tree. Files, forms, problems and their broken parts; the items themselves are in
//! `items`.

use super::builder::{Builder, ident, span, text};
use super::expect::{self, ParseContext};
use super::expression::Expressions;
use super::items::{form_item, problem_item, state_items};
use super::scan::{Scan, Token, TokenKind};
use super::tables::{self, TableSettings};
use crate::ast::{
    BlockRegion, File, Form, FormItem, FormItemKind, Ident, LocationKind, LocationSpec, Problem,
    ProblemItem, ProblemItemKind, RowKind, SideWord, Span,
};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::TableFolder;
use crate::words;
use fem_dsl_grammar::{Grammar, Rule};
use pest::Parser;
use pest::iterators::Pair;

/// Builds the tree of a scanned text, and returns its syntax errors.
pub(super) fn build(scan: &mut Scan, folder: Option<&TableFolder>) -> (File, Vec<Diagnostic>) {
    let text = std::mem::take(&mut scan.text);
    let tables =
        TableSettings { folder: folder.cloned(), is_declared: tables::is_declared(scan, &text) };
    let mut builder = Builder { scan, text: &text, exprs: Expressions::default() };
    builder.exprs.tables = tables;
    let mut file = File::default();
    match Grammar::parse(Rule::file, &text) {
        Ok(pairs) => {
            builder.exprs.listen(&pairs);
            for pair in pairs.flat_map(Pair::into_inner) {
                builder.file_item(pair, &mut file);
            }
        }
        // The grammar matches any text, so that only the parser's stack guard can cause this.
        Err(_) => builder.report(
            Diagnostic::new(Code::NestedTooDeeply, "there is too little stack to read this file")
                .help("run in a thread with a larger stack, or nest fewer brackets"),
        ),
    }
    builder.stray_documentation();
    let Expressions { arena, diagnostics, .. } = builder.exprs;
    file.exprs = arena;
    (file, diagnostics)
}

impl Builder<'_> {
    fn file_item(&mut self, pair: Pair<'_, Rule>, file: &mut File) {
        match pair.as_rule() {
            Rule::form => {
                let form = self.form(pair);
                file.forms.push(form);
            }
            Rule::problem => {
                let problem = self.problem(pair);
                file.problems.push(problem);
            }
            Rule::broken_top => {
                let at = span(&pair);
                self.documentation(at);
                let rule = match self.first_word(at).as_str() {
                    "form" => Rule::form,
                    "problem" => Rule::problem,
                    _ => Rule::file,
                };
                self.broken(at, rule, ParseContext::File);
            }
            _ => {}
        }
    }

    fn form(&mut self, pair: Pair<'_, Rule>) -> Form {
        let at = span(&pair);
        let doc = self.documentation(at);
        let mut name = None;
        let mut items = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::name => name = Some(self.declared(&part)),
                Rule::broken_head => {
                    name = self.second_word(at);
                    self.broken(
                        Span { end: span(&part).end, ..at },
                        Rule::form_start,
                        ParseContext::File,
                    );
                }
                Rule::open_brace | Rule::close_brace | Rule::kw_form => {}
                Rule::state => {
                    let at = span(&part);
                    let doc = self.documentation(at);
                    let item = |kind| FormItem { doc: doc.clone(), kind, span: at };
                    items.extend(state_items(self, part).map(item));
                }
                _ => items.push(self.form_item(part)),
            }
        }
        Form { doc, name: name.unwrap_or_else(|| nameless(at)), items, span: at }
    }

    fn form_item(&mut self, pair: Pair<'_, Rule>) -> FormItem {
        let at = span(&pair);
        let doc = self.documentation(at);
        let kind = match pair.as_rule() {
            Rule::region => self.block(pair),
            Rule::broken_item | Rule::broken_block => self.broken_form_item(at),
            _ => form_item(self, pair),
        };
        FormItem { doc, kind, span: at }
    }

    fn block(&mut self, pair: Pair<'_, Rule>) -> FormItemKind {
        let at = span(&pair);
        let (mut region, mut tags, mut items) = (BlockRegion::Boundary, Vec::new(), Vec::new());
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::kw_cells => region = BlockRegion::Cells,
                Rule::kw_interior => region = BlockRegion::Interior,
                Rule::kw_from => region = BlockRegion::OrderedInterior,
                Rule::string => tags.push(text(&part)),
                Rule::broken_head => {
                    let head = Span { end: span(&part).end, ..at };
                    self.broken(head, Rule::block_start, ParseContext::Boundary);
                }
                Rule::open_brace
                | Rule::close_brace
                | Rule::kw_on
                | Rule::kw_boundary
                | Rule::kw_to
                | Rule::comma => {}
                // The grammar allows no block here, so that the recursion is one level deep.
                _ => items.push(self.form_item(part)),
            }
        }
        FormItemKind::Block { region, tags, items }
    }

    fn problem(&mut self, pair: Pair<'_, Rule>) -> Problem {
        let at = span(&pair);
        let doc = self.documentation(at);
        let mut names = Vec::new();
        let mut items = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                // The names of problems and reports do not occur in expressions: no names are reserved.
                Rule::name => names.push(ident(&part)),
                Rule::broken_head => {
                    names.extend(self.second_word(at));
                    let head = Span { end: span(&part).end, ..at };
                    self.broken(head, Rule::problem_start, ParseContext::File);
                }
                Rule::open_brace | Rule::close_brace | Rule::kw_problem | Rule::kw_solves => {}
                _ => items.push(self.problem_item(part)),
            }
        }
        let mut names = names.into_iter();
        let mut next = || names.next().unwrap_or_else(|| nameless(at));
        Problem { doc, name: next(), form: next(), items, span: at }
    }

    fn problem_item(&mut self, pair: Pair<'_, Rule>) -> ProblemItem {
        let at = span(&pair);
        let doc = self.documentation(at);
        let kind = if pair.as_rule() == Rule::broken_item {
            self.broken_problem_item(at)
        } else {
            problem_item(self, pair)
        };
        ProblemItem { doc, kind, span: at }
    }

    fn broken_form_item(&mut self, at: Span) -> FormItemKind {
        let first = self.first_word(at);
        let rule = expect::item_rule(&first).unwrap_or(Rule::form_item);
        self.broken(at, rule, ParseContext::Form);
        // `kappa = 3;` is an assignment in the notation of other languages.
        if let Some(name) = self.assigned(rule, at) {
            return FormItemKind::Let { name, value: self.error(at) };
        }
        let Some(name) = self.second_word(at).filter(|name| words::reserved(&name.name).is_none())
        else {
            return self.broken_row(&first, at).unwrap_or(FormItemKind::Broken);
        };
        // A misspelt item declares the name of the intended item.
        let meant = nearest(&first, words::FORM_ITEMS.iter().copied());
        match if rule == Rule::form_item { meant.unwrap_or("") } else { first.as_str() } {
            "field" => FormItemKind::Field { name, shape: None, space: None, tags: Vec::new() },
            "aux" => FormItemKind::Aux { name, shape: None, place: None },
            "state" => {
                let place = Some(LocationSpec { kind: LocationKind::Points, span: at });
                FormItemKind::Aux { name, shape: None, place }
            }
            "update" => FormItemKind::Update { name, value: self.error(at) },
            "fn" => match self.parameters(at) {
                Some(parameters) => FormItemKind::Fn { name, parameters, body: self.error(at) },
                None => FormItemKind::Broken,
            },
            "param" => FormItemKind::Param { name, shape: None, value: self.error(at) },
            "let" => FormItemKind::Let { name, value: self.error(at) },
            "residual" => FormItemKind::Residual { value: self.error(at) },
            "energy" => FormItemKind::Energy { value: self.error(at) },
            _ => FormItemKind::Broken,
        }
    }

    /// Returns the parameters of `fn f(a, b)` followed by unreadable text.
    fn parameters(&self, at: Span) -> Option<Vec<Ident>> {
        let index = self.scan.token_at(at.start) + 2;
        let inside = self.scan.tokens.get(index..)?.iter().take_while(|own| at.contains(own.span));
        let mut parameters = Vec::new();
        for (number, token) in inside.enumerate() {
            let text = &self.text[token.span.range()];
            match (number, text, token.kind) {
                (0, "(", _) | (1.., ",", _) => {}
                (1.., ")", _) => return Some(parameters),
                (1.., _, TokenKind::Word) if words::reserved(text).is_none() => {
                    parameters.push(Ident { name: text.to_owned(), span: token.span });
                }
                _ => return None,
            }
        }
        None
    }

    /// Returns the name of an unknown item that continues with `=`.
    fn assigned(&self, rule: Rule, at: Span) -> Option<Ident> {
        let index = self.scan.token_at(at.start);
        let [first, next] = self.scan.tokens.get(index..index + 2)? else { return None };
        let name = self.text[first.span.range()].to_owned();
        let unlike = nearest(&name, words::FORM_ITEMS.iter().copied()).is_none();
        let named = first.kind == TokenKind::Word && words::reserved(&name).is_none();
        let assigned = &self.text[next.span.range()] == "=";
        (rule == Rule::form_item && unlike && named && assigned)
            .then_some(Ident { name, span: first.span })
    }

    /// Returns `f0[u] …` followed by unreadable text.
    fn broken_row(&mut self, first: &str, at: Span) -> Option<FormItemKind> {
        let row = match first {
            "f0" => RowKind::F0,
            "f1" => RowKind::F1,
            _ => return None,
        };
        let index = self.scan.token_at(at.start);
        let tokens = self.scan.tokens.get(index..index + 4)?;
        let part = |token: &Token| &self.text[token.span.range()];
        let word = SideWord::of(part(&tokens[2])).filter(|_| part(&tokens[3]) == "(");
        let side = word.map(|word| (word, tokens[2].span));
        // The field, and what follows it.
        let start = index + if word.is_some() { 4 } else { 2 };
        let &[field, end] = self.scan.tokens.get(start..start + 2)? else { return None };
        let closed = part(&end) == if word.is_some() { ")" } else { "]" };
        if part(&tokens[1]) != "[" || !closed || field.kind != TokenKind::Word {
            return None;
        }
        let field = Ident { name: part(&field).to_owned(), span: field.span };
        let row_span = tokens[0].span;
        Some(FormItemKind::Row { row, row_span, side, field, value: self.error(at) })
    }

    fn broken_problem_item(&mut self, at: Span) -> ProblemItemKind {
        let first = self.first_word(at);
        let rule = expect::problem_rule(&first).unwrap_or(Rule::problem_item);
        self.broken(at, rule, ParseContext::Problem);
        ProblemItemKind::Broken
    }
}

/// Returns a placeholder for a broken name.
fn nameless(at: Span) -> Ident {
    Ident { name: String::new(), span: Span { end: at.start, ..at } }
}
