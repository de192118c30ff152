//! Completion: the words and names that may stand at the cursor, also in unfinished text.

mod items;

use crate::context::{Block, Bracket, Context};
use crate::document::Document;
use crate::hover::{call_text, of_name};
use crate::reference::Reference;
use crate::shapes::shape_of;
use fem_dsl::ast::{Problem, ProblemItemKind, SupportSpec};
use fem_dsl::check::problem::{KeywordUsage, generator_tags, keywords, measures};
use fem_dsl::names::{Declaration, NameKind};
use fem_dsl::words;
use items::{FORM_SNIPPETS, PROBLEM_SNIPPETS, Snippet, TOP_SNIPPETS};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Kinds of completion in the protocol.
mod kind {
    pub(super) const FUNCTION: u32 = 3;
    pub(super) const FIELD: u32 = 5;
    pub(super) const VARIABLE: u32 = 6;
    pub(super) const CLASS: u32 = 7;
    pub(super) const MODULE: u32 = 9;
    pub(super) const PROPERTY: u32 = 10;
    pub(super) const KEYWORD: u32 = 14;
    pub(super) const VALUE: u32 = 12;
    pub(super) const CONSTANT: u32 = 21;
}

/// Values of all kinds of names in expressions.
const VALUES: &[NameKind] =
    &[NameKind::Field, NameKind::Data, NameKind::State, NameKind::Param, NameKind::Let];

/// Returns the sections of the reference about the settings of a statement.
pub(crate) fn sections_of(item: &str) -> &'static [&'static str] {
    match item {
        "mesh" => &["Meshes"],
        "solver" => &["Solvers"],
        "time" => &["Time"],
        "adapt" => &["Adaptive"],
        "eigen" => &["Eigenvalues"],
        "stages" => &["Several"],
        "periodic" => &["Problems"],
        _ => &["Reports", "Expressions"],
    }
}

/// One completion.
struct Item {
    label: String,
    kind: u32,
    detail: String,
    doc: String,
    /// The inserted text, if it is not the label.
    insert: Option<String>,
    is_snippet: bool,
}

impl Item {
    fn new(label: &str, kind: u32) -> Self {
        let label = label.to_owned();
        let (detail, doc) = (String::new(), String::new());
        Self { label, kind, detail, doc, insert: None, is_snippet: false }
    }

    fn with_detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    fn with_doc(self, doc: Option<String>) -> Self {
        Self { doc: doc.unwrap_or_default(), ..self }
    }

    fn with_text(self, text: impl Into<String>) -> Self {
        Self { insert: Some(text.into()), ..self }
    }
}

/// Returns the completions at an offset.
pub(crate) fn complete(
    document: &Document,
    reference: &Reference,
    offset: usize,
    snippets: bool,
) -> Value {
    let context = Context::of(document, offset);
    let range = document.range(context.prefix);
    let completer = Completer { document, reference, context: &context, snippets };
    let mut seen = BTreeSet::new();
    let items = completer.items().into_iter().filter(|item| seen.insert(item.label.clone()));
    let value = |item: Item| {
        let text = item.insert.as_deref().unwrap_or(&item.label);
        let mut value = json!({
            "label": item.label,
            "kind": item.kind,
            "textEdit": { "range": range, "newText": text },
        });
        if !item.detail.is_empty() {
            value["detail"] = json!(item.detail);
        }
        if !item.doc.is_empty() {
            value["documentation"] = json!({ "kind": "markdown", "value": item.doc });
        }
        if item.is_snippet {
            value["insertTextFormat"] = json!(2);
        }
        value
    };
    let items: Vec<Value> = items.map(value).collect();
    json!({ "isIncomplete": false, "items": items })
}

struct Completer<'a> {
    document: &'a Document,
    reference: &'a Reference,
    context: &'a Context<'a>,
    snippets: bool,
}

impl Completer<'_> {
    fn items(&self) -> Vec<Item> {
        let context = self.context;
        if context.is_silent {
            return Vec::new();
        }
        if context.in_string {
            return self.tags();
        }
        match context.block {
            Block::File => self.in_file(),
            Block::Problem => self.in_problem(),
            _ => self.in_form(),
        }
    }

    fn in_file(&self) -> Vec<Item> {
        match (self.context.item.len(), self.context.first(), self.context.last()) {
            (0, ..) => self.snippets(TOP_SNIPPETS),
            (2, "problem", _) => words_of(&["solves"]),
            (_, "problem", "solves") => self.declared(&[NameKind::Form], true),
            _ => Vec::new(),
        }
    }

    fn in_form(&self) -> Vec<Item> {
        let context = self.context;
        let (first, last, length) = (context.first(), context.last(), context.item.len());
        if length == 0 {
            let in_block = context.block != Block::Form;
            let mut items = self.snippets(FORM_SNIPPETS);
            let own = ["field", "state", "update", "on"];
            items.retain(|item| !in_block || !own.contains(&item.label.as_str()));
            return items;
        }
        if context.has("=") {
            return self.expression();
        }
        match (first, last) {
            ("field" | "aux" | "state" | "param", ":" | "complex") => words_of(words::SHAPES),
            (_, "in") => words_of(words::SPACES),
            ("aux", "on") => words_of(&["nodes", "cells", "points"]),
            ("state", "on") => words_of(&["points"]),
            ("on", "on") => words_of(&["boundary", "cells", "interior"]),
            ("on", "interior") => words_of(&["from"]),
            ("field", "scalar" | "vector" | "tensor" | ")") => words_of(&["in", "on"]),
            ("aux" | "state", "scalar" | "vector" | "tensor" | ")") => words_of(&["on"]),
            ("aux", "nodes") => words_of(&["in"]),
            ("test", "for") => self.declared(&[NameKind::Field], false),
            ("test", _) if length == 2 => words_of(&["for"]),
            ("update", "update") => self.declared(&[NameKind::State], false),
            ("f0" | "f1", "[") => {
                let mut items = self.declared(&[NameKind::Field], false);
                if context.block == Block::Interior {
                    items.extend(words_of(&["jump", "avg", "inside", "outside"]));
                }
                items
            }
            ("f0" | "f1", "(") => self.declared(&[NameKind::Field], false),
            _ => Vec::new(),
        }
    }

    fn in_problem(&self) -> Vec<Item> {
        let context = self.context;
        let (first, last, length) = (context.first(), context.last(), context.item.len());
        if length == 0 {
            return self.snippets(PROBLEM_SNIPPETS);
        }
        if let Some(items) = self.of_keyword() {
            return items;
        }
        let subject = length == 1 || matches!((length, last), (3, "("));
        match first {
            "dirichlet" | "bound" | "source" | "mean" | "exact" | "manufactured" | "initial"
                if subject =>
            {
                self.declared(&[NameKind::Field], false)
            }
            "param" if length == 1 => self.declared(&[NameKind::Param], false),
            "aux" if length == 1 => self.declared(&[NameKind::Data, NameKind::State], false),
            "output" if length == 1 => self.declared(&[NameKind::Let, NameKind::Field], false),
            "mass" => self.declared(&[NameKind::Form], true),
            "aux" | "initial" if last == "=" => {
                let mut items = self.expression();
                items.push(Item::new(words::SOLUTION, kind::FUNCTION));
                items.push(Item::new(words::FILE, kind::FUNCTION));
                items
            }
            "aux" | "initial" if last == "(" && context.has(words::SOLUTION) => {
                self.declared(&[NameKind::Problem], true)
            }
            "dirichlet" | "bound" | "aux" | "output" if last == "on" => {
                let mut items = words_of(if first == "output" { &["cells"] } else { &["all"] });
                if first != "output" {
                    items.extend(self.tags().into_iter().map(|item| {
                        let text = format!("\"{}\"", item.label);
                        Item::new(&text, item.kind)
                    }));
                }
                items
            }
            _ if context.has("=") || context.has(">=") || context.has("<=") => self.expression(),
            _ => Vec::new(),
        }
    }

    /// Returns the words and arguments of a statement with a table; `None` in its expressions, and in other statements.
    fn of_keyword(&self) -> Option<Vec<Item>> {
        let context = self.context;
        let first = context.first();
        let usages = keywords(first);
        let last = context.last();
        if usages.is_empty() {
            return None;
        }
        let Some(outermost) = context.brackets.first() else {
            let starts = last == "=" && first != "periodic" || last == "by";
            return starts.then(|| usages.iter().map(|usage| self.usage(usage, first)).collect());
        };
        let word = if first == "adapt" { "adapt" } else { outermost.word };
        let usage = usages.into_iter().find(|own| own.word == word)?;
        let [bracket, rest @ ..] = &context.brackets[..] else { return None };
        let Some(argument) = bracket.label else {
            let mut items = self.arguments(&usage, bracket, first);
            if first == "stages" {
                items.extend(self.declared(&[NameKind::Problem], true));
            }
            return Some(items);
        };
        let own = usage.arguments.iter().find(|own| own.name == argument)?;
        match rest {
            [] if argument == "load" => Some(self.declared(&[NameKind::Param], false)),
            [] if own.words.is_empty() => None,
            [] => Some(own.words.iter().map(|usage| self.usage(usage, first)).collect()),
            [inner, deeper @ ..] => {
                let inner_usage = own.words.iter().find(|own| own.word == inner.word)?;
                self.of_inner(inner_usage, inner, deeper, first)
            }
        }
    }

    /// Returns the same inside of an argument, as in `preconditioner: block(u: multigrid(degree: 3))`.
    fn of_inner(
        &self,
        usage: &KeywordUsage,
        bracket: &Bracket<'_>,
        deeper: &[Bracket<'_>],
        first: &str,
    ) -> Option<Vec<Item>> {
        let of_fields = !usage.of_fields.is_empty();
        let Some(argument) = bracket.label else {
            let mut items = self.arguments(usage, bracket, first);
            if of_fields {
                let fields = self.declared(&[NameKind::Field], false).into_iter();
                items.extend(fields.map(|item| {
                    let text = format!("{}: ", item.label);
                    item.with_text(text)
                }));
            }
            return Some(items);
        };
        let own = usage.arguments.iter().find(|own| own.name == argument);
        let words = if of_fields { &usage.of_fields } else { &own?.words };
        match deeper {
            [] => Some(words.iter().map(|usage| self.usage(usage, first)).collect()),
            [inner, ..] => {
                let usage = words.iter().find(|own| own.word == inner.word)?;
                match inner.label {
                    None => Some(self.arguments(usage, inner, first)),
                    Some(label) => {
                        let own = usage.arguments.iter().find(|own| own.name == label)?;
                        Some(own.words.iter().map(|usage| self.usage(usage, first)).collect())
                    }
                }
            }
        }
    }

    fn usage(&self, usage: &KeywordUsage, first: &str) -> Item {
        Item::new(usage.word, kind::FUNCTION)
            .with_detail(call_text(usage))
            .with_doc(self.reference.about(usage.word, sections_of(first)))
    }

    /// Returns the arguments that a call does not have yet.
    fn arguments(&self, usage: &KeywordUsage, bracket: &Bracket<'_>, first: &str) -> Vec<Item> {
        if !bracket.begins {
            return Vec::new();
        }
        let missing = usage.arguments.iter().filter(|own| !bracket.labels.contains(&own.name));
        missing
            .map(|own| {
                Item::new(own.name, kind::PROPERTY)
                    .with_detail(own.values.clone())
                    .with_doc(self.reference.about(own.name, sections_of(first)))
                    .with_text(format!("{}: ", own.name))
            })
            .collect()
    }

    /// Returns the names and words of an expression.
    fn expression(&self) -> Vec<Item> {
        let context = self.context;
        let is_report = context.first() == "report";
        let of_problem = context.block == Block::Problem;
        let mut items = Vec::new();
        if is_report {
            items.extend(measures().iter().map(|word| {
                Item::new(word, kind::FUNCTION).with_doc(self.reference.about(word, &["Reports"]))
            }));
        }
        let kinds: &[NameKind] = match (of_problem, is_report || context.first() == "output") {
            (true, false) => &[NameKind::Param],
            _ if context.first() == "param" => &[NameKind::Param],
            _ => VALUES,
        };
        items.extend(self.declared(kinds, false));
        if kinds.len() > 1 {
            items.extend(self.declared(&[NameKind::Function], false));
        }
        if !of_problem && matches!(context.first(), "residual" | "let" | "fn") {
            items.extend(self.declared(&[NameKind::Test], false));
        }
        if context.first() == "fn" {
            items.extend(self.declared(&[NameKind::Argument], false));
            items.extend(self.parameters());
        }
        let facets = context.block.is_of_facets() || of_problem;
        let known = words::KNOWN.iter().filter(|word| facets || **word != "n").copied();
        let extent = context.block.is_of_facets().then_some(words::EXTENT);
        items.extend(known.chain(extent).map(|word| {
            Item::new(word, kind::CONSTANT).with_doc(self.reference.about(word, &["Known names"]))
        }));
        let of_facets = if context.block.is_of_facets() { words::FACET_FUNCTIONS } else { &[] };
        let functions = words::FUNCTIONS.iter().chain(of_facets);
        items.extend(functions.map(|word| {
            Item::new(word, kind::FUNCTION)
                .with_doc(self.reference.about(word, &["Expressions", "Facets"]))
        }));
        items.extend(words_of(&["if", "else"]));
        items
    }

    /// Returns the parameters of the function that is being written.
    fn parameters(&self) -> Vec<Item> {
        let open = self.context.item.iter().position(|token| *token == "(");
        let after = open.map_or(&[][..], |at| &self.context.item[at + 1..]);
        let names = after.iter().take_while(|token| **token != ")").filter(|token| **token != ",");
        names.map(|name| Item::new(name, kind::VARIABLE).with_detail("argument")).collect()
    }

    /// Returns the declared names of some kinds: of the form of the cursor, or of the whole file.
    fn declared(&self, kinds: &[NameKind], whole: bool) -> Vec<Item> {
        let form = self.form();
        let offset = self.context.prefix.start;
        let in_form = self.context.block.is_of_form();
        let names = self.document.analysis.names().declarations().iter();
        let fits = |own: &&Declaration| {
            let here = !in_form || own.scope.start <= offset && offset <= own.scope.end;
            kinds.contains(&own.kind) && (whole || own.form == form && form.is_some() && here)
        };
        names.filter(fits).map(|own| self.of_declaration(own)).collect()
    }

    fn of_declaration(&self, own: &Declaration) -> Item {
        let kind = match own.kind {
            NameKind::Form => kind::CLASS,
            NameKind::Problem => kind::MODULE,
            NameKind::Field => kind::FIELD,
            NameKind::Function => kind::FUNCTION,
            NameKind::Param => kind::CONSTANT,
            NameKind::Data | NameKind::State => kind::PROPERTY,
            NameKind::Let
            | NameKind::Argument
            | NameKind::Test
            | NameKind::Report
            | NameKind::Output => kind::VARIABLE,
        };
        let detail = match own.kind {
            NameKind::Function => format!("fn {}({})", own.name, own.arguments.join(", ")),
            _ => match shape_of(self.document, own) {
                Some(shape) => format!("{}: {shape}", own.kind.noun()),
                None => own.kind.noun().to_owned(),
            },
        };
        // The derived rows of a form are for its hover.
        let doc = match own.kind {
            NameKind::Form => own.doc.clone(),
            _ => of_name(self.document, own),
        };
        Item::new(&own.name, kind).with_detail(detail).with_doc(Some(doc))
    }

    /// Returns the index of the form of the cursor, or of that of its problem.
    fn form(&self) -> Option<usize> {
        let file = self.document.file();
        let name = match self.context.block {
            Block::Problem => &self.problem()?.form.name,
            _ => self.context.owner,
        };
        file.forms.iter().position(|form| form.name.name == name)
    }

    fn problem(&self) -> Option<&Problem> {
        let problems = &self.document.file().problems;
        problems.iter().find(|problem| problem.name.name == self.context.owner)
    }

    /// Returns the tags of the meshes of the problem, or of the problems of the form, and those that the file names.
    fn tags(&self) -> Vec<Item> {
        let file = self.document.file();
        let form = self.form().and_then(|at| file.forms.get(at)).map(|form| &form.name.name);
        let of_problem = self.context.block == Block::Problem;
        let problems = file.problems.iter().filter(|problem| match of_problem {
            true => problem.name.name == self.context.owner,
            false => Some(&problem.form.name) == form,
        });
        let mut items = Vec::new();
        for item in problems.flat_map(|problem| &problem.items) {
            match &item.kind {
                ProblemItemKind::MeshGenerator(call) => {
                    let dim = call.arguments.iter().find(|own| own.name.name == "dim");
                    let dim = dim.and_then(|own| match file.exprs[own.value].kind {
                        fem_dsl::ast::ExprKind::Number(n) => Some(n as usize),
                        _ => None,
                    });
                    let tags = generator_tags(&call.name.name, dim).iter();
                    let detail = format!("side of the {}", call.name.name);
                    items.extend(
                        tags.map(|tag| Item::new(tag, kind::VALUE).with_detail(detail.as_str())),
                    );
                }
                ProblemItemKind::Dirichlet { place: Some(SupportSpec::Tags(tags)), .. }
                | ProblemItemKind::Bound { place: Some(SupportSpec::Tags(tags)), .. }
                | ProblemItemKind::Aux { place: Some(SupportSpec::Tags(tags)), .. } => {
                    let named = tags.iter().map(|tag| Item::new(&tag.text, kind::VALUE));
                    items.extend(named.filter(|item| !item.label.is_empty()));
                }
                _ => {}
            }
        }
        items
    }

    fn snippets(&self, snippets: &[Snippet]) -> Vec<Item> {
        let sections: &[&str] = match self.context.block {
            Block::Problem => &["Problems"],
            _ => &["Forms"],
        };
        let item = |snippet: &Snippet| {
            let item = Item::new(snippet.word, kind::KEYWORD)
                .with_doc(self.reference.about(snippet.word, sections));
            match self.snippets {
                true => Item { is_snippet: true, ..item.with_text(snippet.text) },
                false => item,
            }
        };
        snippets.iter().map(item).collect()
    }
}

fn words_of(words: &[&str]) -> Vec<Item> {
    words.iter().map(|word| Item::new(word, kind::KEYWORD)).collect()
}
