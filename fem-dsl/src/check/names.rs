//! What each name of a form means: declarations, uses, cycles. Independent of the dimension.

use crate::arena::Id;
use crate::ast::{self, ExprKind, FormItemKind, Ident};
use crate::codes::Code;
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use crate::words;
use std::collections::{BTreeMap, BTreeSet};

/// The most parameters that a function may have.
const MOST_PARAMETERS: usize = 64;

/// After so many errors nothing more is said of names.
const MOST_ERRORS: usize = 200;

/// What a declared name stands for: its place among its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Field(usize),
    Aux(usize),
    Param(usize),
    /// A `let` or a `fn`.
    Definition(usize),
    /// The test function of the field with this name, as declared.
    Test(usize),
}

/// A declared name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) meaning: Meaning,
    /// The boundary block that it belongs to; none for the whole form.
    pub(super) region: Option<usize>,
    pub(super) span: Span,
}

/// A field as declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldItem<'a> {
    pub(super) name: &'a Ident,
    pub(super) shape: Option<ast::ShapeSpec>,
    pub(super) space: Option<ast::SpaceSpec>,
}

/// Auxiliary data as declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuxItem<'a> {
    pub(super) name: &'a Ident,
    pub(super) shape: Option<ast::ShapeSpec>,
    pub(super) place: Option<ast::PlaceSpec>,
}

/// A parameter as declared.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParamItem<'a> {
    pub(super) name: &'a Ident,
    pub(super) shape: Option<ast::ShapeSpec>,
    pub(super) value: ast::ExprId,
}

/// A `let` or a `fn`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition<'a> {
    pub(super) name: &'a Ident,
    /// The parameters of a `fn`.
    pub(super) parameters: Option<&'a [Ident]>,
    pub(super) body: ast::ExprId,
    pub(super) region: Option<usize>,
}

/// The names of a form and what they stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Names<'a> {
    pub(super) entries: BTreeMap<&'a str, Entry>,
    pub(super) fields: Vec<FieldItem<'a>>,
    pub(super) aux: Vec<AuxItem<'a>>,
    pub(super) params: Vec<ParamItem<'a>>,
    pub(super) definitions: Vec<Definition<'a>>,
    /// The field's name and the span of each test function.
    pub(super) tests: Vec<(&'a Ident, &'a Ident)>,
    /// Params and definitions in an order in which each comes after what it rests on; what is in
    /// a cycle is left out.
    pub(super) param_order: Vec<usize>,
    pub(super) definition_order: Vec<usize>,
    /// The definitions that are in `definition_order`.
    pub(super) sound: BTreeSet<usize>,
    /// Expressions with a name or call that has been reported.
    pub(super) broken: BTreeSet<ast::ExprId>,
}

/// Where an expression stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    /// The boundary block.
    pub(super) region: Option<usize>,
    /// The parameters of the function whose body it is.
    pub(super) parameters: &'a [Ident],
    /// Whether it is the default of a parameter.
    pub(super) param: bool,
}

impl<'a> Place<'a> {
    /// In a region, outside functions and parameters.
    pub(super) fn region(region: Option<usize>) -> Self {
        Place { region, parameters: &[], param: false }
    }
}

/// Resolves the names of a form.
pub(super) fn resolve<'a>(
    file: &'a ast::File,
    form: &'a ast::Form,
) -> (Names<'a>, Vec<Diagnostic>) {
    let mut resolver = Resolver { file, names: Names::default(), diagnostics: Vec::new() };
    resolver.declare(&form.items, None);
    let mut blocks = 0;
    for item in &form.items {
        if let FormItemKind::Boundary { items, .. } = &item.kind {
            resolver.declare(items, Some(blocks));
            blocks += 1;
        }
    }
    resolver.parameters();
    let mut uses = Uses::default();
    resolver.bodies(&mut uses);
    resolver.rows(&form.items, None);
    let mut blocks = 0;
    for item in &form.items {
        if let FormItemKind::Boundary { items, .. } = &item.kind {
            resolver.rows(items, Some(blocks));
            blocks += 1;
        }
    }
    let param_idents: Vec<&Ident> = resolver.names.params.iter().map(|param| param.name).collect();
    let definition_idents: Vec<&Ident> =
        resolver.names.definitions.iter().map(|definition| definition.name).collect();
    resolver.names.param_order = order(&uses.params, &param_idents, &mut resolver.diagnostics);
    resolver.names.definition_order =
        order(&uses.definitions, &definition_idents, &mut resolver.diagnostics);
    resolver.names.sound = resolver.names.definition_order.iter().copied().collect();
    (resolver.names, resolver.diagnostics)
}

/// Checks the names of one expression against given ones.
pub(super) fn resolve_expression<'a>(
    file: &'a ast::File,
    root: ast::ExprId,
    names: Names<'a>,
    place: Place<'a>,
) -> (Names<'a>, Vec<Diagnostic>) {
    let mut resolver = Resolver { file, names, diagnostics: Vec::new() };
    resolver.expression(root, place);
    (resolver.names, resolver.diagnostics)
}

/// Which params each param uses, and which definitions each definition, with the place.
#[derive(Default)]
struct Uses {
    params: Vec<Vec<(usize, Span)>>,
    definitions: Vec<Vec<(usize, Span)>>,
}

struct Resolver<'a> {
    file: &'a ast::File,
    names: Names<'a>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Resolver<'a> {
    fn declare(&mut self, items: &'a [ast::FormItem], region: Option<usize>) {
        for item in items {
            let names = &mut self.names;
            let (name, meaning) = match &item.kind {
                FormItemKind::Field { name, shape, space } => {
                    names.fields.push(FieldItem { name, shape: *shape, space: *space });
                    (name, Meaning::Field(names.fields.len() - 1))
                }
                FormItemKind::Aux { name, shape, place } => {
                    names.aux.push(AuxItem { name, shape: *shape, place: *place });
                    (name, Meaning::Aux(names.aux.len() - 1))
                }
                FormItemKind::Param { name, shape, value } => {
                    names.params.push(ParamItem { name, shape: *shape, value: *value });
                    (name, Meaning::Param(names.params.len() - 1))
                }
                FormItemKind::Let { name, value } => {
                    let definition = Definition { name, parameters: None, body: *value, region };
                    names.definitions.push(definition);
                    (name, Meaning::Definition(names.definitions.len() - 1))
                }
                FormItemKind::Fn { name, parameters, body } => {
                    let parameters = Some(parameters.as_slice());
                    names.definitions.push(Definition { name, parameters, body: *body, region });
                    (name, Meaning::Definition(names.definitions.len() - 1))
                }
                FormItemKind::Test { name, field } => {
                    names.tests.push((name, field));
                    (name, Meaning::Test(names.tests.len() - 1))
                }
                FormItemKind::Broken
                | FormItemKind::Row { .. }
                | FormItemKind::Residual { .. }
                | FormItemKind::Energy { .. }
                | FormItemKind::Boundary { .. } => continue,
            };
            self.enter(name, Entry { meaning, region, span: name.span });
        }
    }

    fn enter(&mut self, name: &'a Ident, entry: Entry) {
        if let Some(first) = self.names.entries.get(name.name.as_str()) {
            let message = format!("the name `{}` is declared twice", name.name);
            self.diagnostics.push(
                Diagnostic::new(Code::DuplicateName, message)
                    .label(name.span, "declared again here")
                    .secondary(first.span, "first declared here")
                    .help("names are unique within a form, its boundary blocks included"),
            );
        } else {
            self.names.entries.insert(&name.name, entry);
        }
    }

    /// The parameters of functions shadow nothing, and are not too many.
    fn parameters(&mut self) {
        for definition in &mut self.names.definitions {
            let mut parameters = definition.parameters.unwrap_or_default();
            if parameters.len() > MOST_PARAMETERS {
                let message = format!("a function has at most {MOST_PARAMETERS} parameters");
                self.diagnostics.push(
                    Diagnostic::new(Code::WrongArgumentCount, message)
                        .label(definition.name.span, format!("this has {}", parameters.len()))
                        .help("put them into a vector"),
                );
                parameters = &parameters[..MOST_PARAMETERS];
                definition.parameters = Some(parameters);
            }
            for (i, parameter) in parameters.iter().enumerate() {
                let earlier = parameters[..i].iter().find(|other| other.name == parameter.name);
                let outer = self.names.entries.get(parameter.name.as_str()).map(|entry| entry.span);
                if let Some(first) = earlier.map(|other| other.span).or(outer) {
                    let message = format!("the name `{}` is declared twice", parameter.name);
                    self.diagnostics.push(
                        Diagnostic::new(Code::DuplicateName, message)
                            .label(parameter.span, "declared again here")
                            .secondary(first, "first declared here")
                            .help("nothing shadows: give the parameter another name"),
                    );
                }
            }
        }
    }

    /// Checks the names in parameters and definitions and notes who uses whom.
    fn bodies(&mut self, uses: &mut Uses) {
        for param in self.names.params.clone() {
            let place = Place { region: None, parameters: &[], param: true };
            let found = self.expression(param.value, place);
            let used = found.into_iter().filter_map(|(meaning, span)| match meaning {
                Meaning::Param(i) => Some((i, span)),
                _ => None,
            });
            uses.params.push(used.collect());
        }
        for definition in self.names.definitions.clone() {
            let parameters = definition.parameters.unwrap_or_default();
            let place = Place { region: definition.region, parameters, param: false };
            let found = self.expression(definition.body, place);
            let used = found.into_iter().filter_map(|(meaning, span)| match meaning {
                Meaning::Definition(i) => Some((i, span)),
                _ => None,
            });
            uses.definitions.push(used.collect());
        }
    }

    /// Checks the names in rows, residuals and energies.
    fn rows(&mut self, items: &'a [ast::FormItem], region: Option<usize>) {
        for item in items {
            match &item.kind {
                FormItemKind::Row { field, value, .. } => {
                    self.field(field);
                    self.expression(*value, Place::region(region));
                }
                FormItemKind::Test { field, .. } => self.field(field),
                FormItemKind::Residual { value } | FormItemKind::Energy { value } => {
                    self.expression(*value, Place::region(region));
                }
                _ => {}
            }
        }
    }

    fn field(&mut self, name: &Ident) {
        let entry = self.names.entries.get(name.name.as_str());
        if matches!(entry, Some(Entry { meaning: Meaning::Field(_), .. })) {
            return;
        }
        let fields = self.names.fields.iter().map(|field| field.name.name.as_str());
        let diagnostic = match entry {
            Some(entry) => {
                Diagnostic::new(Code::NotAvailableHere, format!("`{}` is no field", name.name))
                    .label(name.span, "a field should stand here")
                    .secondary(entry.span, "declared here as something else")
            }
            None => Diagnostic::new(Code::UnknownName, format!("unknown field `{}`", name.name))
                .label(name.span, "no field has this name"),
        };
        self.diagnostics.push(diagnostic.suggest(&name.name, fields));
    }

    /// Checks the names of one expression; gives back those that the form declares.
    fn expression(&mut self, root: ast::ExprId, place: Place<'a>) -> Vec<(Meaning, Span)> {
        let mut used = Vec::new();
        for id in subtree(self.file, root) {
            let expr = &self.file.exprs[id];
            // What is wrong is put into words only while there is someone to read them.
            let quiet = self.diagnostics.len() >= MOST_ERRORS;
            let resolved = match &expr.kind {
                ExprKind::Name(name) if quiet => self.quiet(name, place),
                ExprKind::Name(name) => self.name(name, expr.span, place).map_err(Some),
                ExprKind::Call { function, .. } if quiet && !is_built_in(function) => {
                    self.quiet(&function.name, place)
                }
                ExprKind::Call { function, arguments } => {
                    self.call(function, arguments.len(), place).map_err(Some)
                }
                _ => continue,
            };
            match resolved {
                Ok(meaning) => used.extend(meaning.map(|meaning| (meaning, expr.span))),
                Err(diagnostic) => {
                    self.names.broken.insert(id);
                    self.diagnostics.extend(diagnostic.map(|diagnostic| *diagnostic));
                }
            }
        }
        used
    }

    /// What a declared name means, without a word where it means nothing.
    fn quiet(
        &self,
        name: &str,
        place: Place<'a>,
    ) -> Result<Option<Meaning>, Option<Box<Diagnostic>>> {
        let known = words::KNOWN.contains(&name)
            || place.parameters.iter().any(|parameter| parameter.name == name);
        match self.names.entries.get(name) {
            Some(entry) => Ok(Some(entry.meaning)),
            None if known => Ok(None),
            None => Err(None),
        }
    }

    fn name(
        &self,
        name: &str,
        span: Span,
        place: Place<'a>,
    ) -> Result<Option<Meaning>, Box<Diagnostic>> {
        if place.parameters.iter().any(|parameter| parameter.name == name) {
            return Ok(None);
        }
        if words::KNOWN.contains(&name) {
            return known(name, span, place).map(|()| None);
        }
        if words::FUNCTIONS.contains(&name) {
            let message = format!("`{name}` is a function and needs arguments");
            return Err(Box::new(
                Diagnostic::new(Code::NotAFunction, message).label(span, "used as a value here"),
            ));
        }
        let entry = self.entry(name, span, place)?;
        if let Meaning::Definition(i) = entry.meaning
            && self.names.definitions[i].parameters.is_some()
        {
            let message = format!("`{name}` is a function and needs arguments");
            return Err(Box::new(
                Diagnostic::new(Code::NotAFunction, message)
                    .label(span, "used as a value here")
                    .secondary(entry.span, "declared as a function here"),
            ));
        }
        Ok(Some(entry.meaning))
    }

    fn call(
        &self,
        function: &Ident,
        given: usize,
        place: Place<'a>,
    ) -> Result<Option<Meaning>, Box<Diagnostic>> {
        let (name, span) = (function.name.as_str(), function.span);
        let count = |wanted: usize| {
            let plural = if wanted == 1 { "" } else { "s" };
            let message = format!("`{name}` takes {wanted} argument{plural}, but this has {given}");
            Diagnostic::new(Code::WrongArgumentCount, message).label(span, "in this call")
        };
        if let Some(wanted) = super::functions::argument_count(name) {
            return if wanted == given { Ok(None) } else { Err(Box::new(count(wanted))) };
        }
        let is_value = words::KNOWN.contains(&name)
            || place.parameters.iter().any(|parameter| parameter.name == name);
        if is_value {
            let message = format!("`{name}` is no function");
            return Err(Box::new(
                Diagnostic::new(Code::NotAFunction, message).label(span, "called here"),
            ));
        }
        if words::LATER.contains(&name) {
            return Err(Box::new(later_word(name, span)));
        }
        if !self.names.entries.contains_key(name) {
            let message = format!("unknown function `{name}`");
            return Err(Box::new(
                Diagnostic::new(Code::UnknownName, message)
                    .label(span, "no function has this name")
                    .suggest(name, self.functions(place)),
            ));
        }
        let entry = self.entry(name, span, place)?;
        let definition = match entry.meaning {
            Meaning::Definition(i) => self.names.definitions.get(i),
            _ => None,
        };
        match definition.and_then(|definition| definition.parameters) {
            Some(parameters) if parameters.len() == given => Ok(Some(entry.meaning)),
            Some(parameters) => {
                Err(Box::new(count(parameters.len()).secondary(entry.span, "declared here")))
            }
            None => Err(Box::new(
                Diagnostic::new(Code::NotAFunction, format!("`{name}` is no function"))
                    .label(span, "called here")
                    .secondary(entry.span, "declared here as a value"),
            )),
        }
    }

    /// The declaration of a name that may be used at `place`.
    fn entry(&self, name: &str, span: Span, place: Place<'a>) -> Result<Entry, Box<Diagnostic>> {
        let Some(&entry) = self.names.entries.get(name) else {
            if words::LATER.contains(&name) {
                return Err(Box::new(later_word(name, span)));
            }
            let message = format!("unknown name `{name}`");
            let found = nearest(name, self.values(place));
            return Err(Box::new(
                Diagnostic::new(Code::UnknownName, message)
                    .label(span, "not declared in this form")
                    .help_if(found.map(|found| format!("did you mean `{found}`?"))),
            ));
        };
        if entry.region.is_some() && entry.region != place.region {
            let message = format!("`{name}` belongs to a boundary block and is not known here");
            return Err(Box::new(
                Diagnostic::new(Code::NotAvailableHere, message)
                    .label(span, "used outside its block")
                    .secondary(entry.span, "declared here")
                    .help("declare it in the form itself to use it everywhere"),
            ));
        }
        if place.param && !matches!(entry.meaning, Meaning::Param(_)) {
            let message = format!("a parameter cannot be computed from `{name}`");
            return Err(Box::new(
                Diagnostic::new(Code::NotAvailableHere, message)
                    .label(span, "differs from point to point")
                    .secondary(entry.span, "declared here")
                    .help("use numbers, `pi`, `dim` and other parameters"),
            ));
        }
        Ok(entry)
    }

    fn visible(&self, place: Place<'a>) -> impl Iterator<Item = (&'a str, bool)> {
        let visible = move |entry: &Entry| {
            (entry.region.is_none() || entry.region == place.region)
                && (!place.param || matches!(entry.meaning, Meaning::Param(_)))
        };
        self.names.entries.iter().filter(move |(_, entry)| visible(entry)).map(|(&name, entry)| {
            let function = matches!(entry.meaning, Meaning::Definition(i)
                if self.names.definitions[i].parameters.is_some());
            (name, function)
        })
    }

    fn values(&self, place: Place<'a>) -> impl Iterator<Item = &'a str> {
        let declared = self.visible(place).filter(|(_, function)| !function).map(|(name, _)| name);
        let parameters = place.parameters.iter().map(|parameter| parameter.name.as_str());
        declared.chain(parameters)
    }

    fn functions(&self, place: Place<'a>) -> impl Iterator<Item = &'a str> {
        let declared = self.visible(place).filter(|(_, function)| *function).map(|(name, _)| name);
        declared.chain(words::FUNCTIONS.iter().copied())
    }
}

fn is_built_in(function: &Ident) -> bool {
    super::functions::argument_count(&function.name).is_some()
}

/// Whether a known name has a value at `place`.
fn known(name: &str, span: Span, place: Place<'_>) -> Result<(), Box<Diagnostic>> {
    if place.param && !matches!(name, "pi" | "dim" | "I") {
        let message = format!("a parameter cannot be computed from `{name}`");
        return Err(Box::new(
            Diagnostic::new(Code::NotAvailableHere, message)
                .label(span, "not known when parameters are set")
                .help("use numbers, `pi`, `dim` and other parameters"),
        ));
    }
    if name == "n" && place.region.is_none() {
        return Err(Box::new(
            Diagnostic::new(Code::NotAvailableHere, "`n` is the normal of a boundary facet")
                .label(span, "there is no normal inside a cell")
                .help("use it, and what is computed from it, in an `on boundary` block"),
        ));
    }
    Ok(())
}

/// The nodes of an expression, operands first.
pub(super) fn subtree(file: &ast::File, root: ast::ExprId) -> Vec<ast::ExprId> {
    let mut seen = BTreeSet::new();
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if id.index() < file.exprs.len() && seen.insert(id) {
            open.extend(operands(&file.exprs[id].kind));
        }
    }
    seen.into_iter().collect()
}

fn operands(kind: &ExprKind) -> Vec<ast::ExprId> {
    match kind {
        ExprKind::Error | ExprKind::Number(_) | ExprKind::Name(_) => vec![],
        ExprKind::Array(items) => items.clone(),
        ExprKind::Call { arguments, .. } => arguments.clone(),
        ExprKind::Index { base, indices } => {
            let mut all = vec![*base];
            all.extend(indices);
            all
        }
        ExprKind::Unary { operand, .. } => vec![*operand],
        ExprKind::Binary { left, right, .. } => vec![*left, *right],
        ExprKind::If { condition, then, otherwise } => vec![*condition, *then, *otherwise],
    }
}

/// An order in which each item comes after those it uses. A cycle is reported once, and left out
/// with all that rests on it.
fn order(
    uses: &[Vec<(usize, Span)>],
    idents: &[&Ident],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<usize> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
        Cyclic,
    }
    let mut states = vec![State::New; uses.len()];
    let mut order = Vec::new();
    for start in 0..uses.len() {
        if states[start] != State::New {
            continue;
        }
        states[start] = State::Open;
        // The path from `start`, each with the number of its uses that have been followed.
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        while let Some(&mut (item, ref mut next)) = path.last_mut() {
            let Some(&(used, span)) = uses[item].get(*next) else {
                path.pop();
                if states[item] == State::Open {
                    states[item] = State::Done;
                    order.push(item);
                } else if let Some(&(user, _)) = path.last() {
                    states[user] = State::Cyclic;
                }
                continue;
            };
            *next += 1;
            match states[used] {
                State::New => {
                    states[used] = State::Open;
                    path.push((used, 0));
                }
                State::Done => {}
                State::Open => {
                    if diagnostics.len() < MOST_ERRORS {
                        diagnostics.push(cycle(&path, used, span, idents));
                    }
                    states[item] = State::Cyclic;
                }
                State::Cyclic => {
                    // Reported already where `used` still lies on the path.
                    states[item] = State::Cyclic;
                }
            }
        }
    }
    order
}

fn cycle(path: &[(usize, usize)], used: usize, span: Span, idents: &[&Ident]) -> Diagnostic {
    let from = path.iter().position(|&(item, _)| item == used).unwrap_or(0);
    let mut chain: Vec<&str> =
        path[from..].iter().map(|&(item, _)| idents[item].name.as_str()).collect();
    let name = &idents[used].name;
    chain.push(name);
    let diagnostic = Diagnostic::new(Code::Cycle, format!("`{name}` is defined by itself"))
        .label(span, "used here")
        .secondary(idents[used].span, "while it is being defined here");
    if chain.len() > 2 && chain.len() <= 12 {
        return diagnostic.note(format!("the circle is {}", chain.join(" → ")));
    }
    diagnostic
}

/// A word that this version only keeps.
fn later_word(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(Code::LaterWord, format!("`{name}` comes later"))
        .label(span, "kept for later versions of the language")
}
